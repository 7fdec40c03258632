"""The trials of a table for `linmax fuse`: voters or raters, side columns, labels where there are any, classes."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from linmax.cli.fusion_table import Columns, as_ballots, counted, one_table, some
from linmax.cli.reading import cells_listed, shown_names
from linmax.cli.strange_votes import are_ids, leave_out, match, never_a_class, of_strange_votes

if TYPE_CHECKING:
    import numpy as np

    from linmax.io.refusals import Refusals
    from linmax.models.fusion import OnLineFusion

__all__ = ["FuseTable", "alike", "in_places", "read_trials", "sorted_labels"]

MOST_REMEMBERED = 1000  # different votes that are no class
Tables = dict[str, "np.ndarray"]

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
    lines: list[int]  # where each row stands
    refusals: Refusals
    silent: frozenset[Any] = frozenset()  # votes that were taken for abstentions
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


def read_trials(arguments: argparse.Namespace, fusion: OnLineFusion | None) -> FuseTable:
    """Voters, side columns and labels of the file; None is an abstention or a missing value."""
    name = shown_names(arguments.votes)
    by = list(dict.fromkeys(cells_listed(arguments.by)))
    if fusion is not None and fusion.by is not None:
        by = [fusion.by] if isinstance(fusion.by, str) else [str(column) for column in fusion.by]
    if arguments.label is not None and arguments.label in by:
        raise ValueError(f"--by {arguments.label} is the column of labels, which is not there when predicting")
    wanted = [*([] if arguments.label is None else [arguments.label]), *by]
    table, lacking = one_table(arguments, arguments.votes, wanted)
    columns = table.columns
    label = arguments.label or _label_among(columns, by)
    labels = columns.pop(label) if label is not None else [None] * len(next(iter(columns.values())))
    sides = {column: columns[column] for column in by}
    voters = {column: cells for column, cells in columns.items() if column not in by}
    wrong = _marked(arguments, voters, label)
    said = [*lacking, *_alike_labels(labels), *_unlabelled(labels, label), *_of_wrong(wrong)]
    if fusion is not None:
        voters, joining = _of_fusion(fusion, voters, name)
        said += joining
    if not voters:
        raise ValueError(f"{name} has no column besides {label!r} that may be a voter")
    from linmax.data.score_columns import rated_columns

    scored = None if by else rated_columns(name, voters)
    if scored is not None and _are_classes(scored[1], labels):
        classes = alike(scored[1], labels) if fusion is None else fusion.classes_.tolist()
        tables = scored[0] if fusion is None else in_places(scored, classes, name)
        return FuseTable({}, tables, {}, labels, classes, said, table.lines, table.refusals, wrong=wrong)
    if arguments.abstain is not None:
        voters = {
            name: [None if str(vote) == arguments.abstain else vote for vote in votes] for name, votes in voters.items()
        }
    voters, skipped = _not_asked(arguments, voters)
    classes, remarks, silent = _classes(arguments, voters, labels, fusion, table.objects)
    for name, rows in skipped.items():
        voters[name] = [... if skip else vote for vote, skip in zip(voters[name], rows, strict=True)]
    silent |= set() if arguments.abstain is None else {arguments.abstain}
    return FuseTable(voters, None, sides, labels, classes, said + remarks, table.lines, table.refusals, silent, wrong)


def _are_classes(names: Sequence[str], labels: Sequence[Any]) -> bool:
    """Whether these may be the classes of scores, and not voters whose answers stand in an object of JSON."""
    from linmax.data.matching import written

    met = {written(label) for label in labels if label is not None}
    return not met or not met.isdisjoint(map(written, names))


def _not_asked(arguments: argparse.Namespace, voters: Columns) -> tuple[Columns, dict[str, list[bool]]]:
    """The votes without the mark of voters who were not asked, and for each who has it, in which rows."""
    if arguments.not_asked is None:
        return voters, {}
    rows = {name: [str(vote) == arguments.not_asked for vote in votes] for name, votes in voters.items()}
    skipped = {name: marks for name, marks in rows.items() if any(marks)}
    if skipped and arguments.ask is not None:
        name, marks = next(iter(skipped.items()))
        raise ValueError(
            f"--ask needs the votes of all, and {name!r} was not asked in row {marks.index(True) + 1}; leave it out"
        )
    left = {
        name: [None if skip else vote for vote, skip in zip(voters[name], rows[name], strict=True)] for name in rows
    }
    return left, skipped


def _label_among(columns: Columns, others: Collection[str]) -> str | None:
    """The column of labels where none is named: the first of the usual names, as for all tables."""
    from linmax.io.schema import label_of

    return label_of(name for name in columns if name not in others)


def _alike_labels(labels: list[Any]) -> list[str]:
    """Replace labels that are written otherwise than before, such as 1 where "1" was; returns what to say of it."""
    from linmax.data.matching import written

    if len({type(label) for label in labels} - {type(None)}) < 2:  # as in tables of one format
        return []
    meant: dict[str | None, Any] = {}
    found: dict[Any, Any] = {}
    for row, label in enumerate(labels):
        if label is not None:
            labels[row] = meant.setdefault(written(label), label)
            if type(labels[row]) is not type(label):
                found.setdefault(label, labels[row])
    if not found:
        return []
    label, first = next(iter(found.items()))
    return [f"Labels are written in two ways, and taken for the same: {label!r} for {first!r}, say."]


def _unlabelled(labels: Sequence[Any], column: str | None) -> list[str]:
    """What to say of a table without any label."""
    if any(label is not None for label in labels):
        return []
    where = "no --label is given" if column is None else f"column {column!r} is empty"
    return [f"No row has a label ({where}): the fusion learns how far voters agree, and predicts by that."]


def _marked(arguments: argparse.Namespace, voters: Columns, label: str | None) -> list[bool] | None:
    """For each row whether its label is only known to be wrong, if there is a column that says so."""
    if arguments.wrong is None:
        return None
    if arguments.wrong == label:
        raise ValueError(f"--wrong {label} is the column of labels; name the one that says true or false of them")
    if arguments.test_fraction or arguments.ask:
        raise ValueError("--wrong leaves rows without their label; it does not go with --test-fraction or --ask")
    if arguments.wrong not in voters:
        raise ValueError(
            f"{shown_names(arguments.votes)} has no column {arguments.wrong!r}; it has {', '.join(voters)}"
        )
    if label is None:
        raise ValueError("--wrong says of labels that they are wrong, and there are none; name their column by --label")
    found = []
    for row, value in enumerate(voters.pop(arguments.wrong), start=1):
        said = MARKS.get("" if value is None else str(value).strip().lower())
        if said is None:
            told = f"row {row} of {shown_names(arguments.votes)} has {value!r}"
            raise ValueError(f"--wrong {arguments.wrong} must be true or false in every row; {told}")
        found.append(said)
    return found


def _of_wrong(wrong: Sequence[bool] | None) -> list[str]:
    """What to say of rows whose label is only known not to be the one given."""
    count = sum(wrong or ())
    told = "it, figures count the class" if count == 1 else "them, figures count the classes"
    return [f"{counted(count, 'row')} with a label that is wrong: of {told} drawn instead."] if count else []


def _of_fusion(fusion: OnLineFusion, voters: Columns, name: str) -> tuple[Columns, list[str]]:
    """The columns of voters or raters for a fusion to go on with, and what to say of those that join or are left."""
    rated = {column: column.rpartition(":") for column in voters}
    if fusion.model.layout.raters:
        known = {str(label) for label in fusion.classes_.tolist()}
        kept = {column: cells for column, cells in voters.items() if rated[column][2] in known and rated[column][0]}
        if not kept:
            raise ValueError(f"{name} has no columns rater:class, such as {fusion.voters_[0]}:{fusion.classes_[0]}")
        met = list(dict.fromkeys(rated[column][0] for column in kept))
    else:
        kept, met = voters, list(voters)
    new, left = [one for one in met if one not in fusion.voters_], [one for one in voters if one not in kept]
    absent = [one for one in fusion.voters_ if one not in met]
    told = [(new, "new, and trusted like an average one at first"), (absent, "absent, and abstain"), (left, "left out")]
    return kept, [f"{'Columns' if names is left else 'Voters'} {what}: {some(names)}." for names, what in told if names]


def in_places(scored: tuple[Mapping[str, np.ndarray], list[str]], classes: Sequence[Any], name: str) -> Tables:
    """The scores of each rater in the order of these classes."""
    tables, found = scored
    missing = next((str(label) for label in classes if str(label) not in found), None)
    if missing is not None:
        rater = next(iter(tables))
        raise ValueError(f"{name} has no column '{rater}:{missing}', and the fusion has this class; add it")
    places = [found.index(str(label)) for label in classes]
    return {rater: table[:, places] for rater, table in tables.items()}


def alike(classes: Sequence[str], labels: Sequence[Any]) -> list[Any]:
    """Classes from the names of columns, of the type of the labels."""
    written = {str(label): label for label in labels if label is not None}
    return [written.get(name, name) for name in classes]


def _classes(
    arguments: argparse.Namespace,
    voters: Columns,
    labels: Sequence[Any],
    fusion: OnLineFusion | None,
    objects: Mapping[str, str],
) -> tuple[list[Any], list[str], frozenset[Any]]:
    """The classes, remarks on votes that name none of them, and these; they are removed from ``voters``."""
    met = [label for label in labels if label is not None]
    named = met or [vote for votes in voters.values() for vote in votes if vote is not None]
    if fusion is not None:
        classes = fusion.classes_.tolist()
        classes += [] if fusion.classes is not None else [name for name in sorted_labels(named) if name not in classes]
    else:
        classes = alike(cells_listed(arguments.classes), met) if arguments.classes else sorted_labels(named)
        unknown = next((label for label in met if label not in set(classes)), None)
        if unknown is not None:
            raise ValueError(f"--classes {arguments.classes} lacks {unknown!r}, which is a label; add it")
    remarks = match(voters, classes)
    known = set(classes)
    strangers = never_a_class(voters, known)
    strangers += [name for name, votes in voters.items() if name not in strangers and are_ids(votes, known)]
    if strangers:
        do, them = ("does", "it") if len(strangers) == 1 else ("do", "them")
        good = {objects[name] for name in voters if name in objects and name not in strangers}
        keys = [objects[name] if name in objects and objects[name] not in good else name for name in strangers]
        left = dict.fromkeys([*cells_listed(arguments.ignore), *keys])
        raise ValueError(
            f"{shown_names(arguments.votes)}: {some(list(map(repr, strangers)))} {do} not vote for labels such as "
            f"{classes[0]!r}; leave {them} out with --ignore {','.join(left)}, or give a subject to --by"
        )
    if arguments.classes:
        return classes, remarks, frozenset()
    strange = leave_out(voters, known)
    remembered = frozenset(vote for vote, _ in strange.most_common(MOST_REMEMBERED))
    return classes, remarks + of_strange_votes(strange, known, "never a label"), remembered


def sorted_labels(labels: Sequence[Any]) -> list[Any]:
    """Each once, sorted if they can be."""
    met = dict.fromkeys(labels)
    try:
        return sorted(met)
    except TypeError:
        return list(met)
