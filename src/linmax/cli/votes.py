"""Tables of votes or scores, as `linmax fuse` and `linmax predict` read them.

Columns named rater:class hold the scores of raters (`linmax.data.score_columns`); in JSON lines they may be written
{"bayes": {"cat": 0.9, "dog": 0.1}}. Any other column is a voter. Votes that are a class written otherwise are matched
with it; votes that name no class count as abstentions, and are reported.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.cli.options import cells_listed
from linmax.cli.report import counted, nothing_read, shown_name, shown_names, some
from linmax.data.blocks import silent_votes
from linmax.data.matching import ROWS_OF_IDS, near_misses, written
from linmax.data.score_columns import rated_columns
from linmax.io.reader import ReadTable, read_table
from linmax.io.schema import label_of

if TYPE_CHECKING:
    from linmax.io.options import Refusals
    from linmax.models.fusion import OnLineFusion

__all__ = [
    "MOST_REMEMBERED",
    "VOTES_SHOWN",
    "Columns",
    "VoteTable",
    "objects",
    "remarks_on_strange",
    "remember",
    "side_names",
    "sorted_labels",
    "votes_for",
    "votes_to_learn",
]

VOTES_SHOWN = 3
MOST_REMEMBERED = 1000  # different votes that are no class
Columns = dict[str, list[Any]]
MARKS = dict.fromkeys(("", "0", "0.0", "false", "no"), False) | dict.fromkeys(("1", "1.0", "true", "yes"), True)


@dataclass
class VoteTable:
    """Votes or scores, side columns and labels (None where there is none) of a table, and remarks on them."""

    name: str
    voters: Columns
    sides: Columns
    labels: list[Any]
    lines: list[int]  # where each row stands
    refusals: Refusals
    tags: list[str] | None = None
    scores: Mapping[str, np.ndarray] | None = None  # (rows, classes) of each rater, in the place of voters
    classes: list[Any] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    silent: set[Any] = field(default_factory=set)  # votes that were taken for abstentions
    wrong: np.ndarray | None = None  # where the label is only known not to be the one given

    @property
    def raters(self) -> int:
        """Number of voters or raters."""
        return len(self.voters) if self.scores is None else len(self.scores)

    def rows(self, places: np.ndarray) -> Any:
        """Return some rows, as a fusion takes them."""
        if self.scores is not None:
            return {name: table[places] for name, table in self.scores.items()}
        return {name: objects(column)[places] for name, column in (self.voters | self.sides).items()}

    def take_scores(self, scored: tuple[Mapping[str, np.ndarray], list[str]], classes: Sequence[Any]) -> None:
        """Take the columns for scores, in the order of these classes."""
        tables, found = scored
        missing = next((str(label) for label in classes if str(label) not in found), None)
        if missing is not None:
            column = f"{next(iter(tables))}:{missing}"
            raise ValueError(f"{self.name} has no column {column!r}, and the fusion has this class; add it")
        places = [found.index(str(label)) for label in classes]
        self.scores = {rater: table[:, places] for rater, table in tables.items()}
        self.voters, self.sides, self.classes = {}, {}, list(classes)

    def replace(self, vote: str | None, mark: Any) -> None:
        """Replace a vote, given as text, by another in all columns."""
        if vote is not None:
            for name, votes in self.voters.items():
                self.voters[name] = [mark if str(one) == vote else one for one in votes]

    def match(self, classes: Sequence[Any]) -> None:
        """Replace votes that are a class written otherwise, such as 1.0 for 1."""
        meant, known = {written(name): name for name in reversed(list(classes))}, {*classes, None, ...}
        matched: dict[str, list[str]] = {}
        for name, votes in self.voters.items():
            found = {vote for vote in set(votes) - known if written(vote) in meant}
            if found:
                self.voters[name] = [meant[written(vote)] if vote in found else vote for vote in votes]
                vote = min(found, key=str)
                matched.setdefault(f"{vote!r} is taken for the label {meant[written(vote)]!r}", []).append(name)
        self.remarks += [f"{some(names)}: {what}." for what, names in matched.items()]

    def leave_out(self, known: Collection[Any], classes: Collection[Any], what: str) -> Counter[Any]:
        """Replace votes that are not ``known`` by abstentions; return how often each was there."""
        found: Counter[Any] = Counter()
        for name, votes in self.voters.items():
            found.update(vote for vote in votes if vote not in known and vote is not None and vote is not ...)
            self.voters[name] = [vote if vote in known or vote is ... else None for vote in votes]
        self.remarks += remarks_on_strange(found, classes, what)
        return found


def votes_to_learn(arguments: argparse.Namespace, fusion: OnLineFusion | None) -> VoteTable:
    """Read voters, side columns and labels of the tables of ``linmax fuse``, for a new fusion or one to continue."""
    name = shown_names(arguments.votes)
    by = side_names(fusion) if fusion is not None and fusion.by is not None else cells_listed(arguments.by)
    by = list(dict.fromkeys(by))
    if arguments.label is not None and arguments.label in by:
        raise ValueError(f"--by {arguments.label} is the column of labels, which is not there when predicting")
    read, remarks = _joined(arguments, [*([] if arguments.label is None else [arguments.label]), *by])
    columns = dict(read.columns)
    label = arguments.label or label_of(column for column in columns if column not in by)
    labels = columns.pop(label) if label is not None else [None] * len(read.lines)
    sides = {column: columns.pop(column) for column in by}
    table = VoteTable(name, columns, sides, labels, read.lines, read.refusals, remarks=remarks)
    table.wrong = _marked(arguments, table, label)
    table.remarks += _same_labels(labels)
    if all(one is None for one in labels):
        where = "no --label is given" if label is None else f"column {label!r} is empty"
        table.remarks.append(
            f"No row has a label ({where}): the fusion learns how far voters agree, and predicts by that."
        )
    if table.wrong is not None and (count := int(table.wrong.sum())):
        drawn = "it, figures count the class" if count == 1 else "them, figures count the classes"
        table.remarks.append(f"{counted(count, 'row')} with a label that is wrong: of {drawn} drawn instead.")
    if fusion is not None:
        _refuse_others(fusion, table)
    if not table.voters:
        raise ValueError(f"{name} has no column besides {label!r} that may be a voter")
    scored = None if by else rated_columns(name, table.voters)
    met = {written(one) for one in labels if one is not None}
    # the others are voters whose answers stand in an object of JSON
    if scored is not None and (not met or not met.isdisjoint(map(written, scored[1]))):
        table.take_scores(scored, _in_type(scored[1], labels) if fusion is None else fusion.classes_.tolist())
        return table
    table.replace(arguments.abstain, None)
    if arguments.ask is not None and arguments.not_asked is not None:
        for voter, votes in table.voters.items():
            row = next((row for row, vote in enumerate(votes, 1) if str(vote) == arguments.not_asked), None)
            if row is not None:
                raise ValueError(
                    f"--ask needs the votes of all, and {voter!r} was not asked in row {row}; leave it out"
                )
    table.replace(arguments.not_asked, ...)
    _find_classes(arguments, table, fusion, read.objects)
    table.silent |= set() if arguments.abstain is None else {arguments.abstain}
    return table


def votes_for(fusion: OnLineFusion, arguments: argparse.Namespace, path: str) -> VoteTable:
    """Read the votes or scores of the voters that a fusion knows, and its side columns, to predict from."""
    by = side_names(fusion)
    needed = [name for name in (arguments.id, arguments.label) if name]
    read = _table(arguments, path, needed, known=[*fusion.voters_, *by])
    columns, name, rows = dict(read.columns), shown_name(path), len(read.lines)
    tags = None if not arguments.id else ["" if cell is None else str(cell) for cell in columns[arguments.id]]
    labels = columns.pop(arguments.label) if arguments.label else [None] * rows
    for side in by:
        if side not in columns:
            raise ValueError(f"{name} has no column {side!r}, by which the fusion was learned; add it")
    known = set(fusion.voters_)
    raters = {column: cells for column, cells in columns.items() if column.rpartition(":")[0] in known}
    voters = {column: cells for column, cells in columns.items() if column in known and column not in by}
    table = VoteTable(name, voters, {side: columns[side] for side in by}, labels, read.lines, read.refusals, tags)
    present = set(voters) | {column.rpartition(":")[0] for column in raters}
    if not present:
        example = f"such as {fusion.voters_[0]!r}; it has {', '.join(columns)}"
        raise ValueError(f"{name} has no column of a voter of the fusion, {example}")
    absent = [voter for voter in fusion.voters_ if voter not in present]
    if absent:
        table.remarks.append(f"{name}: {len(absent)} of {len(known)} voters are absent, and abstain: {some(absent)}")
    classes = fusion.classes_.tolist()
    scored = rated_columns(name, raters) if raters and not voters else None
    if scored is not None:
        table.take_scores(scored, classes)
        return table
    place = len(table.remarks)
    table.match(classes)
    named = {vote for votes in table.voters.values() for vote in votes if vote is not None}
    strange = named.difference(classes)
    if fusion.classes is None:  # others may be right
        strange &= set(silent_votes(fusion.abstain))
    table.leave_out(named - strange, classes, "no class of the fusion")
    table.remarks[place:] = [f"{name}: {remark}" for remark in table.remarks[place:]]
    return table


def remember(fusion: OnLineFusion, silent: Iterable[Any], classes: Collection[Any] = ()) -> None:
    """Have the fusion take for abstentions what was taken for them in learning, except for classes."""
    fusion.abstain = {*silent, *silent_votes(fusion.abstain)}.difference(classes) or None


def side_names(fusion: OnLineFusion) -> list[str]:
    """Return the names of a fusion's side columns."""
    by = fusion.by
    return (
        [] if by is None else [by] if isinstance(by, str) else [str(by)] if isinstance(by, int) else list(map(str, by))
    )


def _same_labels(labels: list[Any]) -> list[str]:
    """Replace labels that are written otherwise than before, such as 1 where "1" was; return a remark on it."""
    if len({type(label) for label in labels} - {type(None)}) < 2:  # as in tables of one format
        return []
    meant: dict[str | None, Any] = {}
    found: dict[Any, Any] = {}
    for row, label in enumerate(labels):
        if label is not None:
            labels[row] = meant.setdefault(written(label), label)
            if type(labels[row]) is not type(label):
                found.setdefault(label, labels[row])
    pairs = [f"{label!r} for {first!r}" for label, first in found.items()]
    return [f"Labels are written in two ways, and taken for the same: {pairs[0]}, say."] if pairs else []


def _marked(arguments: argparse.Namespace, table: VoteTable, label: str | None) -> np.ndarray | None:
    """Return for each row whether its label is only known to be wrong, if there is a column that says so."""
    column = arguments.wrong
    if column is None:
        return None
    if column == label:
        raise ValueError(f"--wrong {label} is the column of labels; name the one that says true or false of them")
    if arguments.test_fraction or arguments.ask:
        raise ValueError("--wrong leaves rows without their label; it does not go with --test-fraction or --ask")
    if column not in table.voters:
        raise ValueError(f"{table.name} has no column {column!r}; it has {', '.join(table.voters)}")
    if label is None:
        raise ValueError("--wrong says of labels that they are wrong, and there are none; name their column by --label")
    cells = table.voters.pop(column)
    marks = [MARKS.get("" if cell is None else str(cell).strip().lower()) for cell in cells]
    if None in marks:
        row = marks.index(None)
        raise ValueError(
            f"--wrong {column} must be true or false in every row; row {row + 1} of {table.name} has {cells[row]!r}"
        )
    return np.array(marks, bool)


def _refuse_others(fusion: OnLineFusion, table: VoteTable) -> None:
    """Keep the columns of voters or raters for a fusion to continue; remark on those that join or are left out."""
    rated = {column: column.rpartition(":") for column in table.voters}
    kept, met = table.voters, list(table.voters)
    if fusion.model.layout.raters:
        known = {str(label) for label in fusion.classes_.tolist()}
        kept = {column: cells for column, cells in kept.items() if rated[column][2] in known and rated[column][0]}
        if not kept:
            example = f"{fusion.voters_[0]}:{fusion.classes_[0]}"
            raise ValueError(f"{table.name} has no columns rater:class, such as {example}")
        met = list(dict.fromkeys(rated[column][0] for column in kept))
    new, left = [one for one in met if one not in fusion.voters_], [one for one in table.voters if one not in kept]
    absent = [one for one in fusion.voters_ if one not in met]
    for names, what in (
        (new, "Voters new, and trusted like an average one at first"),
        (absent, "Voters absent, and abstain"),
        (left, "Columns left out"),
    ):
        if names:
            table.remarks.append(f"{what}: {some(names)}.")
    table.voters = kept


def _in_type(classes: Sequence[str], labels: Sequence[Any]) -> list[Any]:
    """Return classes named by text, of the type of the labels."""
    known = {str(label): label for label in labels if label is not None}
    return [known.get(name, name) for name in classes]


def _find_classes(
    arguments: argparse.Namespace, table: VoteTable, fusion: OnLineFusion | None, objects: Mapping[str, str]
) -> None:
    """Find the classes, and take votes that name none of them for abstentions."""
    met = [label for label in table.labels if label is not None]
    named = met or [vote for votes in table.voters.values() for vote in votes if vote is not None and vote is not ...]
    if fusion is not None:
        classes = fusion.classes_.tolist()
        classes += [] if fusion.classes is not None else [name for name in sorted_labels(named) if name not in classes]
    else:
        classes = _in_type(cells_listed(arguments.classes), met) if arguments.classes else sorted_labels(named)
        unknown = next((label for label in met if label not in set(classes)), None)
        if unknown is not None:
            raise ValueError(f"--classes {arguments.classes} lacks {unknown!r}, which is a label; add it")
    table.classes, known = classes, set(classes)
    table.match(classes)
    strangers = [name for name, votes in table.voters.items() if _is_stranger(votes, known)]
    if strangers:
        do, them = ("does", "it") if len(strangers) == 1 else ("do", "them")
        good = {objects[name] for name in table.voters if name in objects and name not in strangers}
        keys = [objects[name] if name in objects and objects[name] not in good else name for name in strangers]
        left = ",".join(dict.fromkeys([*cells_listed(arguments.ignore), *keys]))
        raise ValueError(
            f"{table.name}: {some(list(map(repr, strangers)))} {do} not vote for labels such as {classes[0]!r}; leave "
            f"{them} out with --ignore {left}, or give a subject to --by"
        )
    if not arguments.classes:
        strange = table.leave_out(known, known, "never a label")
        table.silent = {vote for vote, _ in strange.most_common(MOST_REMEMBERED)}


def _is_stranger(votes: Sequence[Any], known: Collection[Any]) -> bool:
    """Return whether a column never names a class, or has another value in every row, most of them no class."""
    distinct = set(votes) - {None, ...}
    if distinct and distinct.isdisjoint(known):
        return True
    if len(votes) < ROWS_OF_IDS or len(known) > len(votes) / 2 or len(set(votes)) < len(votes):
        return False
    return sum(vote not in known for vote in votes) > len(votes) / 2


def sorted_labels(labels: Sequence[Any]) -> list[Any]:
    """Return each label once, sorted if they can be."""
    met = dict.fromkeys(labels)
    try:
        return sorted(met)
    except TypeError:
        return list(met)


def _table(
    arguments: argparse.Namespace,
    path: str,
    wanted: Sequence[str],
    known: Sequence[str] | None = None,
    alone: bool = True,
) -> ReadTable:
    """Read a table without the columns to ignore.

    Columns that are ``wanted`` must be there, and if the table is ``alone`` also those to ignore. With ``known`` only
    these columns and those that are wanted need hold what a table can hold.
    """
    ignored, name = cells_listed(arguments.ignore), shown_name(path)
    table = read_table(path, arguments.format, ignored, arguments.strict, None if known is None else {*known, *wanted})
    if not table.lines and table.refusals.total:
        raise ValueError(nothing_read([name], table.refusals))
    if not table.columns and not table.left_out:
        raise ValueError(f"{name} is empty; give a table")
    for column in (*(ignored if alone else ()), *wanted):
        if column not in table.columns and column not in table.left_out:
            raise ValueError(f"{name} has no column {column!r}; it has {', '.join(table.columns)}")
    if not table.columns or not table.lines:
        raise ValueError(f"{name} has no rows below its header")
    return table


def _joined(arguments: argparse.Namespace, wanted: Sequence[str]) -> tuple[ReadTable, list[str]]:
    """Read one or several tables as one, and remark on columns that some of them lack."""
    paths, remarks = arguments.votes, list[str]()
    tables = [_table(arguments, path, wanted, alone=len(paths) == 1) for path in paths]
    if len(tables) == 1:
        return tables[0], remarks
    columns: Columns = {name: [] for table in tables for name in table.columns}
    refusals, left_out = tables[0].refusals.copy(), set[str]().union(*(table.left_out for table in tables))
    for place, (path, table) in enumerate(zip(paths, tables, strict=True)):
        lacking = [name for name in columns if name not in table.columns]
        if lacking:
            noun = "column" if len(lacking) == 1 else "columns"
            remarks.append(f"{shown_name(path)} has no {noun} {some(lacking)}; empty there.")
        for name, cells in columns.items():
            cells += table.columns.get(name) or [None] * len(table.lines)
        if place:
            refusals.join(table.refusals)
    absent = next((name for name in cells_listed(arguments.ignore) if name not in columns.keys() | left_out), None)
    if absent is not None:
        raise ValueError(f"none of {len(paths)} tables has a column {absent!r}; they have {', '.join(columns)}")
    lines = [line for table in tables for line in table.lines]
    keys = {name: key for table in tables for name, key in table.objects.items()}
    return ReadTable(columns, lines, refusals, left_out, keys), remarks


def objects(values: Sequence[Any]) -> np.ndarray:
    """Return values of any kind as an array."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def remarks_on_strange(strange: Counter[Any], classes: Collection[Any], what: str) -> list[str]:
    """Return remarks on votes that name no class, and on those that differ from one in case or punctuation only."""
    count = strange.total()
    if not count:
        return []
    named = ", ".join(f"{vote!r} ({often:,d})" for vote, often in strange.most_common(VOTES_SHOWN))
    named += ", ..." * (len(strange) > VOTES_SHOWN)
    name, end = ("names", "it counts as an abstention") if count == 1 else ("name", "they count as abstentions")
    remarks = [f"{counted(count, 'vote')} {name} something that is {what}, {named}; {end}."]
    near = near_misses(strange, classes)
    if near:
        count, vote = sum(strange[vote] for vote in near), max(near, key=lambda one: strange[one])
        be, them = ("is", "it counts") if count == 1 else ("are", "they count")
        remarks.append(
            f"{count:,d} of these {be} a class but for case or punctuation, such as {vote!r} for {near[vote]!r}; "
            f"written like the labels, {them} as votes."
        )
    return remarks
