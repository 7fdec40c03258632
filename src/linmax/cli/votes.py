"""Tables of votes or scores, as `linmax fuse` and `linmax predict` read them.

Columns named rater:class hold the scores of raters (`linmax.data.score_columns`); in JSON lines they may be written
{"bayes": {"cat": 0.9, "dog": 0.1}}. Any other column is a voter. Votes that are a class written otherwise are matched
with it; votes that name no class count as abstentions, and are reported.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from linmax.cli.reading import cells_listed, counted, nothing_read, shown_name, shown_names, some

if TYPE_CHECKING:
    import numpy as np

    from linmax.io.options import Refusals
    from linmax.io.reader import ReadTable
    from linmax.models.fusion import OnLineFusion

__all__ = [
    "VOTES_SHOWN",
    "Columns",
    "FuseTable",
    "alike",
    "as_ballots",
    "in_places",
    "leave_out",
    "match",
    "objects",
    "of_strange_votes",
    "read_trials",
    "sorted_labels",
    "table_of",
]

VOTES_SHOWN = 3
MOST_REMEMBERED = 1000  # different votes that are no class
Columns = dict[str, list[Any]]
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


def table_of(
    arguments: argparse.Namespace,
    path: str,
    wanted: Sequence[str],
    voters: Sequence[str] | None = None,
    ignored: bool = True,
) -> ReadTable:
    """A table without the columns that --ignore leaves out; they, if ``ignored``, and those ``wanted`` must be there.

    With ``voters``, only their columns and those that are wanted need hold what a table can hold.
    """
    from linmax.io.reader import read_table

    known = None if voters is None else {*voters, *wanted}
    table = read_table(path, arguments.format, cells_listed(arguments.ignore), arguments.strict, known)
    if not table.lines and table.refusals.total:
        raise ValueError(nothing_read([shown_name(path)], table.refusals))
    if not table.columns and not table.left_out:
        raise ValueError(f"{shown_name(path)} is empty; give a table")
    for name in (*(cells_listed(arguments.ignore) if ignored else ()), *wanted):
        if name not in table.columns and name not in table.left_out:
            raise ValueError(f"{shown_name(path)} has no column {name!r}; it has {', '.join(table.columns)}")
    if not table.columns or not table.lines:
        raise ValueError(f"{shown_name(path)} has no rows below its header")
    return table


def one_table(
    arguments: argparse.Namespace, paths: Sequence[str], wanted: Sequence[str]
) -> tuple[ReadTable, list[str]]:
    """The rows of one or several tables, one after the other, and what to say of columns that some of them lack."""
    tables = [table_of(arguments, path, wanted, ignored=len(paths) == 1) for path in paths]
    first, remarks = tables[0], list[str]()
    if len(tables) == 1:
        return first, remarks
    names = list(dict.fromkeys(name for table in tables for name in table.columns))
    columns: Columns = {name: [] for name in names}
    lines = [line for table in tables for line in table.lines]
    for path, table in zip(paths, tables, strict=True):
        lacking = [name for name in names if name not in table.columns]
        if lacking:
            them = "column" if len(lacking) == 1 else "columns"
            remarks.append(f"{shown_name(path)} has no {them} {some(lacking)}; empty there.")
        for name, cells in columns.items():
            cells += table.columns.get(name) or [None] * len(table.lines)
    for table in tables[1:]:
        first.refusals.join(table.refusals)
    left_out, objects_of = set[str]().union(*(table.left_out for table in tables)), dict[str, str]()
    for table in tables:
        objects_of |= table.objects
    whole = replace(first, columns=columns, lines=lines, left_out=left_out, objects=objects_of)
    absent = next((name for name in cells_listed(arguments.ignore) if name not in columns.keys() | left_out), None)
    if absent is not None:
        raise ValueError(f"none of {len(paths)} tables has a column {absent!r}; they have {', '.join(columns)}")
    return whole, remarks


def as_ballots(voters: Mapping[str, Sequence[Any]], sides: Mapping[str, Sequence[Any]], rows: np.ndarray) -> Any:
    """These rows of votes, with the side columns to their right, as a fusion takes them."""
    return {name: objects(column)[rows] for name, column in {**voters, **sides}.items()}


def objects(values: Sequence[Any]) -> np.ndarray:
    """Values of any kind as an array."""
    import numpy as np

    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def match(voters: Columns, classes: Sequence[Any]) -> list[str]:
    """Replace votes that are a label written otherwise, such as 1.0 for 1; returns what to say about it."""
    from linmax.data.matching import written

    meant = {written(name): name for name in reversed(list(classes))}
    known = set(classes)
    told: dict[str, list[str]] = {}
    for name, votes in voters.items():
        found = {vote for vote in set(votes) - known - {None} if written(vote) in meant}
        if found:
            voters[name] = [meant[written(vote)] if vote in found else vote for vote in votes]
            vote = min(found, key=str)
            told.setdefault(f"{vote!r} is taken for the label {meant[written(vote)]!r}", []).append(name)
    return [f"{some(names)}: {what}." for what, names in told.items()]


def never_a_class(voters: Columns, known: Collection[Any]) -> list[str]:
    """Columns with votes of which none names a class."""
    spoken = {name: set(votes) - {None} for name, votes in voters.items()}
    return [name for name, votes in spoken.items() if votes and votes.isdisjoint(known)]


def are_ids(votes: Sequence[Any], known: Collection[Any]) -> bool:
    """Whether a column has another value in every row, most of them never a label."""
    from linmax.data.matching import ROWS_OF_IDS

    if len(votes) < ROWS_OF_IDS or len(known) > len(votes) / 2 or len(set(votes)) < len(votes):
        return False
    return sum(vote not in known for vote in votes) > len(votes) / 2


def leave_out(voters: Columns, known: Collection[Any]) -> Counter[Any]:
    """Replace votes that name no class by abstentions; returns how often each was there."""
    found: Counter[Any] = Counter()
    for name, votes in voters.items():
        found.update(vote for vote in votes if vote is not None and vote not in known)
        voters[name] = [vote if vote in known else None for vote in votes]
    return found


def of_strange_votes(outside: Counter[Any], known: Collection[Any], what: str) -> list[str]:
    """What to say of votes that name no class, and of those among them that nearly do."""
    count = outside.total()
    if not count:
        return []
    named = ", ".join(f"{vote!r} ({often:,d})" for vote, often in outside.most_common(VOTES_SHOWN))
    named += ", ..." * (len(outside) > VOTES_SHOWN)
    end = "it counts as an abstention" if count == 1 else "they count as abstentions"
    name = "names" if count == 1 else "name"
    return [f"{counted(count, 'vote')} {name} something that is {what}, {named}; {end}.", *_nearly(outside, known)]


def _nearly(outside: Counter[Any], known: Collection[Any]) -> list[str]:
    """What to say of votes that differ from a class in case or punctuation only."""
    from linmax.data.matching import near_misses

    near = near_misses(outside, known)
    if not near:
        return []
    count = sum(outside[vote] for vote in near)
    vote = max(near, key=lambda one: outside[one])
    be, them = ("is", "it counts") if count == 1 else ("are", "they count")
    return [
        f"{count:,d} of these {be} a class but for case or punctuation, such as {vote!r} for {near[vote]!r}; written "
        f"like the labels, {them} as votes."
    ]
