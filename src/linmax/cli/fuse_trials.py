"""The trials of a table for `linmax fuse`: voters or raters, side columns, labels where there are any, classes."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linmax.cli.fusion_table import Columns, as_ballots, read_table
from linmax.cli.reading import cells_listed, shown_name

if TYPE_CHECKING:
    import numpy as np

    from linmax.models.fusion.online import OnLineFusion

__all__ = ["FuseTable", "alike", "counted", "read_trials", "sorted_labels"]

MARKS = {"": False, "0": False, "0.0": False, "false": False, "no": False} | dict.fromkeys(
    ("1", "1.0", "true", "yes"), True
)


@dataclass
class FuseTable:
    """What the table holds: votes or scores, side columns, classes, labels (None where there is none), remarks."""

    voters: Columns
    scores: Mapping[str, np.ndarray] | None
    sides: Columns
    labels: list[Any]
    classes: list[Any]
    remarks: list[str]
    first: int  # the line of the first row
    wrong: list[bool] | None = None  # where the label is only known not to be the one given

    @property
    def raters(self) -> int:
        """How many vote or rate."""
        return len(self.voters) if self.scores is None else len(self.scores)

    def rows(self, places: np.ndarray) -> Any:
        """Some rows, as a fusion takes them."""
        if self.scores is not None:
            return {name: table[places] for name, table in self.scores.items()}
        return as_ballots(self.voters, self.sides, places)


def counted(number: int, what: str) -> str:
    """So many of them: "1 row", "2,000 rows"."""
    return f"{number:,d} {what}{'s' if number != 1 else ''}"


def read_trials(arguments: argparse.Namespace, fusion: OnLineFusion | None) -> FuseTable:
    """Voters, side columns and labels of the file; None is an abstention or a missing value."""
    name, ignored = shown_name(arguments.votes), cells_listed(arguments.ignore)
    by = list(dict.fromkeys(cells_listed(arguments.by)))
    if fusion is not None and fusion.by is not None:
        by = [fusion.by] if isinstance(fusion.by, str) else [str(column) for column in fusion.by]
    if arguments.label is not None and arguments.label in by:
        raise ValueError(f"--by {arguments.label} is the column of labels, which is not there when predicting")
    wanted = [*([] if arguments.label is None else [arguments.label]), *ignored, *by]
    columns, first = read_table(arguments.votes, arguments.format, wanted)
    label = arguments.label or _label_among(columns, {*ignored, *by})
    labels = columns.pop(label) if label is not None else [None] * len(next(iter(columns.values())))
    sides = {column: columns[column] for column in by}
    voters = {column: cells for column, cells in columns.items() if column not in {*ignored, *by}}
    wrong = _marked(arguments, voters)
    if fusion is not None:
        voters = {column: cells for column, cells in voters.items() if _known(column, fusion)}
    if not voters:
        raise ValueError(f"{name} has no column besides {label!r} that may be a voter")
    from linmax.data.score_columns import rated_columns

    scored = rated_columns(name, voters)
    if scored is not None and not by:
        classes = list(fusion.classes_) if fusion is not None else alike(scored[1], labels)
        return FuseTable({}, scored[0], {}, labels, classes, _unlabelled(labels, label), first, wrong)
    if arguments.abstain is not None:
        voters = {
            name: [None if str(vote) == arguments.abstain else vote for vote in votes] for name, votes in voters.items()
        }
    classes, remarks = _classes(arguments, voters, labels, fusion)
    return FuseTable(voters, None, sides, labels, classes, _unlabelled(labels, label) + remarks, first, wrong)


def _label_among(columns: Columns, others: Collection[str]) -> str | None:
    """The column of labels where none is named: the first of the usual names, as for all tables."""
    from linmax.io.schema import LABEL_NAMES

    small = {name.lower(): name for name in columns if name not in others}
    return next((small[name] for name in LABEL_NAMES if name in small), None)


def _unlabelled(labels: Sequence[Any], column: str | None) -> list[str]:
    """What to say of a table without any label."""
    if any(label is not None for label in labels):
        return []
    where = "no --label is given" if column is None else f"column {column!r} is empty"
    return [f"No row has a label ({where}): the fusion learns how far voters agree, and predicts by that."]


def _marked(arguments: argparse.Namespace, voters: Columns) -> list[bool] | None:
    """For each row whether its label is only known to be wrong, if there is a column that says so."""
    if arguments.wrong is None:
        return None
    if arguments.test_fraction or arguments.ask:
        raise ValueError("--wrong leaves rows without their label; it does not go with --test-fraction or --ask")
    if arguments.wrong not in voters:
        raise ValueError(f"{shown_name(arguments.votes)} has no column {arguments.wrong!r}; it has {', '.join(voters)}")
    found = []
    for row, value in enumerate(voters.pop(arguments.wrong), start=1):
        said = MARKS.get("" if value is None else str(value).strip().lower())
        if said is None:
            raise ValueError(f"row {row}: {arguments.wrong} must be true or false, got {value!r}")
        found.append(said)
    return found


def _known(column: str, fusion: OnLineFusion) -> bool:
    """Whether a column is of a voter or rater of the fusion."""
    return column in fusion.voters_ or column.rpartition(":")[0] in fusion.voters_


def alike(classes: Sequence[str], labels: Sequence[Any]) -> list[Any]:
    """Classes from the names of columns, of the type of the labels."""
    written = {str(label): label for label in labels if label is not None}
    return [written.get(name, name) for name in classes]


def _classes(
    arguments: argparse.Namespace, voters: Columns, labels: Sequence[Any], fusion: OnLineFusion | None
) -> tuple[list[Any], list[str]]:
    """The classes, and remarks on votes that name none of them; such votes are removed from ``voters``."""
    met = [label for label in labels if label is not None]
    named = met or [vote for votes in voters.values() for vote in votes if vote is not None]
    if fusion is not None:
        classes = fusion.classes_.tolist()
        classes += [] if fusion.classes is not None else [name for name in sorted_labels(named) if name not in classes]
    else:
        classes = alike(cells_listed(arguments.classes), met) if arguments.classes else sorted_labels(named)
    remarks = _match(voters, classes)
    known = set(classes)
    strangers = [
        name for name, votes in voters.items() if not known.intersection(votes) and any(v is not None for v in votes)
    ]
    if strangers:
        raise ValueError(
            f"{shown_name(arguments.votes)}: {', '.join(map(repr, strangers))} never name a label such as "
            f"{classes[0]!r}; leave them out with --ignore {','.join([*cells_listed(arguments.ignore), *strangers])}"
        )
    if arguments.classes:
        return classes, remarks
    outside = 0
    for name, votes in voters.items():
        kept = [vote if vote in known else None for vote in votes]
        outside += kept.count(None) - votes.count(None)
        voters[name] = kept
    if outside:
        remarks.append(
            "1 vote names something that is never a label; it counts as an abstention."
            if outside == 1
            else f"{outside:,d} votes name something that is never a label; they count as abstentions."
        )
    return classes, remarks


def _match(voters: Columns, classes: Sequence[Any]) -> list[str]:
    """Replace votes that are a label written otherwise, such as 1.0 for 1; returns what to say about it."""
    from linmax.data.matching import written

    meant = {written(name): name for name in reversed(list(classes))}
    known, remarks = set(classes), []
    for name, votes in voters.items():
        found = {vote for vote in set(votes) - known - {None} if written(vote) in meant}
        if found:
            voters[name] = [meant[written(vote)] if vote in found else vote for vote in votes]
            vote = min(found, key=str)
            remarks.append(f"{name}: {vote!r} is taken for the label {meant[written(vote)]!r}.")
    return remarks


def sorted_labels(labels: Sequence[Any]) -> list[Any]:
    """Each once, sorted if they can be."""
    met = dict.fromkeys(labels)
    try:
        return sorted(met)
    except TypeError:
        return list(met)
