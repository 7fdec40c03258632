"""Tables of votes or scores with labels, as commands and shards of a cluster read them.

Columns named rater:class hold the scores of raters (`linmax.data.score_columns`); in JSON lines they may be written
{"bayes": {"cat": 0.9, "dog": 0.1}}. Any other column is a voter. Votes that are a class in another spelling are matched
with it; votes that name no class count as abstentions, and are reported.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from linmax.data.names import label_array, missing, near_misses, silent_votes, written
from linmax.data.score_columns import numbers_of, rated_columns
from linmax.data.votes import AnswerRatings
from linmax.io.evaluation_logs import AnswerTable, Long, items_of, log_format, long_columns, long_of, tabulate
from linmax.io.read_options import Refusals
from linmax.io.reader import ReadTable, read_table
from linmax.io.schema import TRUTH_NAMES, label_of, plain_name
from linmax.io.sources import HEAD
from linmax.models.fusion import VoteFusion, side_columns
from linmax.util.aliases import Label, Source, VoteColumns

__all__ = [
    "CONFIDENCE",
    "Columns",
    "VoteTable",
    "files_in",
    "joined",
    "read_votes",
    "remarks_on_strange",
    "remember",
    "side_names",
    "some",
    "vote_columns",
]

NAMES_SHOWN = 5  # in a message
VOTES_SHOWN = 3
ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet", ".json")  # of tables that a message suggests
SHORT_NAMES = ("y", "class")  # of labels, which a voter may have
CONFIDENCE = "confidence"  # rater of the answers in a log
BELOW = 10.0  # by how much a class that a log gives no log-probability is below the least
Columns = dict[str, list[Label]]


def read_votes(
    source: Source | VoteColumns,
    *,
    long: Sequence[str] | None = None,
    label: str | None = None,
    ignore: Sequence[str] = (),
    scores: bool = False,
    format: str | None = None,
    strict: bool = False,
) -> VoteTable:
    """Read votes and labels: wide and long tables, JSON lines, and logs of evaluation frameworks.

    Parameters
    ----------
    source
        A file, a frame, an Arrow table, a mapping of columns, or a list or folder of files that are read as one: the
        parts of a table, or logs of one model each. Logs of Inspect, lm-evaluation-harness, promptfoo and OpenAI's
        evals are recognized by their content (`linmax.io.evaluation_logs`).
    long : tuple of str, optional
        The columns of items, voters and votes in a table with a row for each answer. Such a table is also recognized
        by its columns; ``()`` declines that.
    label : str, optional
        The column of labels; by default the first with a usual name, such as label, truth or answer.
    ignore : sequence of str
        Columns that are not voters.
    scores : bool, default=False
        Take the log-probabilities of a log, instead of its votes.
    format : str, optional
        The format, if it is not to be recognized.
    strict : bool, default=False
        Raise at the first line that cannot be read, instead of counting it in ``refusals``.

    Returns
    -------
    VoteTable
        ``votes`` and ``y`` as `linmax.VoteFusion` takes them, ``tags`` (the names of the items), ``costs`` and
        ``seconds`` by voter, ``remarks``.

    See Also
    --------
    linmax.VoteFusion : fuses them.

    Examples
    --------
    >>> import linmax
    >>> frame = {"task": [1, 1, 2, 2], "worker": ["ann", "bob"] * 2, "label": list("xyxx"), "truth": list("xxxx")}
    >>> read = linmax.read_votes(frame)
    >>> {name: votes.tolist() for name, votes in read.votes.items()}, read.y.tolist()
    ({'ann': ['x', 'x'], 'bob': ['y', 'x']}, ['x', 'x'])
    """
    given: list[object] = list(source) if isinstance(source, (list, tuple)) else [source]
    paths = [one for one in given if isinstance(one, (str, os.PathLike))]
    sources = [file for path in paths for file in files_in(path)] if len(paths) == len(given) else [source]
    names = [str(one) if isinstance(one, (str, os.PathLike)) else "the table" for one in sources]
    read = joined(names, [vote_columns(one, ignore, format, strict) for one in sources], long, label)
    table = VoteTable.of(names[0], read, label)
    if scores:
        table.take_log_probabilities()
    return table


def files_in(path: str | os.PathLike[str]) -> list[str]:
    """Return a file, or the logs of evaluations in a folder."""
    if not Path(path).is_dir():
        return [os.fspath(path)]
    for pattern in ("samples_*.jsonl", "*.eval", "*.json"):
        found = sorted(map(str, Path(path).rglob(pattern)))
        if pattern == "*.json":
            found = [file for file in found if _is_log(file)]
        if found:
            return found
    ending = next((ending for ending in ENDINGS if any(Path(path).glob(f"*{ending}"))), ENDINGS[0])
    raise ValueError(
        f"{path} is a folder without logs of evaluations (.eval, .json, samples_*.jsonl); give its files, as "
        f"{path}/*{ending}"
    )


def _is_log(path: str) -> bool:
    """Return whether a file of JSON is a log of Inspect."""
    with open(path, "rb") as file:
        return log_format(file.read(HEAD)) == "inspect"


def vote_columns(
    source: Any,
    ignore: Sequence[str] = (),
    format: str | None = None,
    strict: bool = False,
    wanted: Collection[str] | None = None,
) -> ReadTable:
    """Return the columns of a file, a mapping, a frame, an Arrow table or several; `read_table` explains the options.

    Examples
    --------
    >>> vote_columns({"ann": ["x", "y"], "id": [1, 2]}, ignore=["id"]).columns
    {'ann': ['x', 'y']}
    """
    if isinstance(source, (str, os.PathLike)) or hasattr(source, "read"):
        return read_table(source, format, ignore, strict, wanted)
    columns: Columns = {}
    single = hasattr(source, "columns") or isinstance(source, Mapping) or not isinstance(source, Iterable)
    for table in [source] if single else source:
        given = table.to_pydict() if hasattr(table, "to_pydict") else table
        if not (isinstance(given, Mapping) or hasattr(given, "columns")) or (given is table and not single):
            raise TypeError(f"votes must be a file, a table, or a pair (votes, y), got {type(source).__name__}")
        for name in given.columns if hasattr(given, "columns") else given:
            cells = given[name].tolist() if hasattr(given[name], "tolist") else given[name]
            columns.setdefault(str(name), []).extend(None if missing(cell) else cell for cell in cells)
    rows, left_out = max(map(len, columns.values()), default=0), columns.keys() & set(ignore)
    kept = {name: cells for name, cells in columns.items() if name not in left_out}
    return ReadTable(kept, list(range(1, rows + 1)), Refusals(), left_out, {})


def joined(
    names: Sequence[str], tables: Sequence[ReadTable], long: Sequence[str] | None = None, label: str | None = None
) -> ReadTable:
    """Read tables as one: rows one after the other, or the answers of logs and long tables by item and voter."""
    if len({table.answers is None for table in tables}) > 1:
        log = next(name for name, table in zip(names, tables, strict=True) if table.answers is not None)
        raise ValueError(f"{log} is a log of answers, and others are tables; fuse them separately")
    refusals, columns = Refusals(), dict[str, list[Label]]()
    for table in tables:
        refusals.join(table.refusals)
        columns |= {name: [] for name in table.columns if name not in columns}
    remarks, lines = [remark for table in tables for remark in table.remarks], [n for one in tables for n in one.lines]
    if tables[0].answers is not None:
        return _tabulated(tabulate((one for table in tables for one in table.answers or ()), remarks), refusals)
    for name, table in zip(names, tables, strict=True):
        if lacking := [column for column in columns if column not in table.columns]:
            noun = "column" if len(lacking) == 1 else "columns"
            remarks.append(f"{Path(name).name} has no {noun} {some(lacking)}; empty there.")
        for column, cells in columns.items():
            cells += table.columns.get(column) or [None] * len(table.lines)
    found = (Long(*long) if long else None) if long is not None else long_of(columns)
    if found is not None:
        rest = {name: cells for name, cells in columns.items() if name not in found}
        known = label if label is not None else find_label(rest, {*columns.get(found.vote, ())})
        how = "" if long is not None else "; --long none reads each column as a voter"
        truth = "" if known is None else f", labels {known!r}"
        remarks.append(
            f"A row is an answer: items {found.item!r}, voters {found.voter!r}, votes {found.vote!r}{truth}{how}."
        )
        return _tabulated(tabulate(long_columns(columns, found, known), remarks), refusals)
    left_out = set[str]().union(*(table.left_out for table in tables))
    objects = {name: key for table in tables for name, key in table.objects.items()}
    return ReadTable(columns, lines, refusals, left_out, objects, remarks=remarks)


def _tabulated(table: AnswerTable, refusals: Refusals) -> ReadTable:
    return ReadTable(
        table.columns, list(range(1, len(table.items) + 1)), refusals, set(), {}, remarks=table.remarks, by_item=table
    )


def find_label(columns: Mapping[str, Sequence[Label]], votes: Collection[Label] | None = None) -> str | None:
    """Return the column of labels by its name; one that shares values with the votes is preferred to others.

    Examples
    --------
    >>> find_label({"ann": ["x", "y"], "correct": [True, False], "Truth": ["x", "x"]})
    'Truth'
    """
    named = [name for one in TRUTH_NAMES if (name := label_of(columns, names=[one])) is not None]
    for name in named:
        others = votes if votes is not None else {cell for one in columns if one not in named for cell in columns[one]}
        if {written(cell) for cell in columns[name] if cell is not None} & {written(vote) for vote in others}:
            return name
    return named[0] if named and votes is None else None


@dataclass
class VoteTable:
    """Votes or scores, side columns and labels (None where there is none) of a table, and remarks on them."""

    name: str
    voters: Columns
    sides: Columns
    labels: list[Label]
    lines: list[int]  # where each row is
    refusals: Refusals
    tags: list[str] | None = None
    scores: Mapping[str, np.ndarray] | None = None  # (rows, classes) of each rater, in the place of voters
    classes: list[Label] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    silent: set[Label] = field(default_factory=set)  # votes that were taken for abstentions
    open: bool = False  # whether every row has its own answers
    ratings: dict[str, list[AnswerRatings]] = field(default_factory=dict)  # of open answers, by rater
    wrong: np.ndarray | None = None  # where the label is only known not to be the one given
    costs: dict[str, float] = field(default_factory=dict)  # mean cost and time of an answer, by voter
    seconds: dict[str, float] = field(default_factory=dict)
    label: str | None = None  # the column of the labels
    by_item: AnswerTable | None = None

    @classmethod
    def of(cls, name: str, read: ReadTable, label: str | None = None, by: Sequence[str] = ()) -> VoteTable:
        """Return voters, side columns and labels of a table; labels are found by name if none is given."""
        columns, answers = dict(read.columns), read.by_item
        others = columns if answers is None else columns | answers.sides
        for wanted in (*by, *([] if label is None else [label])):
            if wanted not in others and not (answers is not None and wanted == label and any_label(answers.labels)):
                raise ValueError(f"{name} has no column {wanted!r}; it has {', '.join(others)}")
        sides = {column: others[column] for column in by}
        if answers is not None:
            labels = answers.labels if label is None else answers.sides.get(label, answers.labels)
            table = cls(name, columns, sides, labels, read.lines, read.refusals, answers.items)
            table.costs, table.seconds, table.by_item = answers.costs, answers.seconds, answers
        else:
            voters = {column: cells for column, cells in columns.items() if column not in by}
            chosen = label if label is not None else find_label(voters)
            labels = [None] * len(read.lines) if chosen is None else voters.pop(chosen)
            table = cls(name, voters, sides, labels, read.lines, read.refusals, label=chosen)
            items = items_of(voters)
            few = 2 * len({*labels}) <= len(
                labels
            )  # labels come again, so that numbers of rows may equal some by chance
            if (
                items is not None
                and len(voters) > 1
                and (few or not {*map(written, voters[items])} & {*map(written, labels)})
            ):
                table.tags = ["" if cell is None else str(cell) for cell in voters.pop(items)]
                table.remarks.append(f"Column {items!r} differs in each row: it names the rows, and is no voter.")
            likely = {column: cells for column, cells in voters.items() if plain_name(column) not in SHORT_NAMES}
            second = find_label(likely, set(labels) - {None}) if chosen is not None else None
            if second is not None:
                raise ValueError(
                    f"{name}: {chosen!r} holds the labels, and column {second!r} looks like labels too, but would be a "
                    f"voter; remove it with --ignore {second}, pass --label {second}, or rename it if it votes"
                )
            if label is None and chosen is not None:
                table.remarks.append(f"The label is {chosen!r} (by its name); --label COLUMN names another.")
        table.remarks = [*read.remarks, *table.remarks]
        return table

    @property
    def votes(self) -> dict[str, Any]:
        """Votes, or scores, and side columns as arrays."""
        return self.rows()

    @property
    def y(self) -> np.ndarray:
        """Labels as an array; None where there is none."""
        return label_array(self.labels)

    @property
    def raters(self) -> int:
        """Number of voters or raters."""
        return len(self.voters) if self.scores is None else len(self.scores)

    @property
    def silence(self) -> float:
        """Share of the votes or scores that abstain."""
        if self.scores is not None:
            shares = [float((scores == scores[:, :1]).all(axis=1).mean()) for scores in self.scores.values()]
        else:
            shares = [column.count(None) / len(column) for column in self.voters.values()]
        return sum(shares) / len(shares)

    def rows(self, places: Any = slice(None)) -> dict[str, Any]:
        """Return some rows, as a fusion takes them."""
        if self.scores is not None:
            return {name: table[places] for name, table in self.scores.items()}
        columns: dict[str, list[Any]] = {**self.voters, **self.sides, **self.ratings}
        return {name: label_array(column)[places] for name, column in columns.items()}

    def take_ratings(self, confidences: bool = True, known: Collection[str] = ()) -> None:
        """Take scores of open answers: columns named rater:voter, which rate the answer of this voter in each row.

        Of a log or a long table the ``confidences`` are taken, as confidence:voter. Columns with anything but numbers
        stay voters, unless they are ``known`` raters.

        Examples
        --------
        >>> table = read_votes({"ann": ["7", "9"], "bob": ["8", "9"], "sure:ann": [0.9, None], "label": ["7", "9"]})
        >>> table.take_ratings()
        >>> [*table.voters], table.ratings
        (['ann', 'bob'], {'sure:ann': [{'7': 0.9}, {}]})
        """
        given: dict[str, tuple[str, Sequence[Any]]] = {}
        if confidences and self.by_item is not None:
            given = {f"{CONFIDENCE}:{voter}": (voter, cells) for voter, cells in self.by_item.certainties.items()}
        for column in self.voters:
            rater, _, voter = column.partition(":")
            if rater and voter in self.voters and (column in known or all(map(_may_rate, self.voters[column]))):
                given[column] = voter, self.voters[column]
        for column, (voter, cells) in given.items():
            pairs = zip(self.voters[voter], numbers_of(self.name, column, cells).tolist(), strict=True)
            self.ratings[column] = [{} if vote in (None, ...) or one != one else {vote: one} for vote, one in pairs]
        self.voters = {column: cells for column, cells in self.voters.items() if column not in given}
        if given:
            self.remarks.append(f"Scores of the voters' own answers: {some([*given])}.")

    def take_scores(self, scored: tuple[Mapping[str, np.ndarray], list[str]], classes: Sequence[Label]) -> None:
        """Take the columns for scores, in the order of these classes."""
        tables, found = scored
        absent = next((str(label) for label in classes if str(label) not in found), None)
        if absent is not None:
            column = f"{next(iter(tables))}:{absent}"
            raise ValueError(f"{self.name} has no column {column!r}, and the fusion has this class; add it")
        places = [found.index(str(label)) for label in classes]
        self.scores = {rater: table[:, places] for rater, table in tables.items()}
        self.voters, self.sides, self.classes = {}, {}, list(classes)

    def take_log_probabilities(self) -> None:
        """Take the log-probabilities of a log in the place of votes."""
        given = {} if self.by_item is None else self.by_item.scores
        if not given:
            raise ValueError(f"{self.name} has no log-probabilities or confidences of votes; remove --scores")
        classes = list(dict.fromkeys(name for rows in given.values() for row in rows for name in row or ()))
        tables = {voter: np.zeros((len(rows), len(classes))) for voter, rows in given.items()}
        for voter, rows in given.items():
            for row, numbers in enumerate(rows):
                if numbers:
                    least = min(numbers.values()) - BELOW
                    tables[voter][row] = [numbers.get(name, least) for name in classes]
        self.scores, self.voters, self.sides, self.classes = tables, {}, {}, [*classes]

    def replace(self, vote: str | None, mark: object) -> None:
        """Replace a vote, given as text, by another in all columns."""
        if vote is not None:
            for name, votes in self.voters.items():
                self.voters[name] = [mark if str(one) == vote else one for one in votes]

    def match(self, classes: Collection[Label]) -> None:
        """Replace votes that are a class in another spelling, such as 1.0 for 1."""
        meant, known = {written(name): name for name in reversed([*classes])}, {*classes, None, ...}
        matched: dict[str, list[str]] = {}
        for name, votes in self.voters.items():
            found = {vote for vote in set(votes) - known if written(vote) in meant}
            if found:
                self.voters[name] = [meant[written(vote)] if vote in found else vote for vote in votes]
                vote = min(found, key=str)
                matched.setdefault(f"{vote!r} is taken for the label {meant[written(vote)]!r}", []).append(name)
        self.remarks += [f"{some(names)}: {what}." for what, names in matched.items()]

    def leave_out(self, known: Collection[Label]) -> Counter[Label]:
        """Replace votes that are not ``known`` by abstentions; return how often each was there."""
        found: Counter[Label] = Counter()
        for name, votes in self.voters.items():
            found.update(vote for vote in votes if vote not in known and vote is not None and vote is not ...)
            self.voters[name] = [vote if vote in known or vote is ... else None for vote in votes]
        return found

    def rated(self) -> tuple[dict[str, np.ndarray], list[str]] | None:
        """Return the scores of raters and their classes, if all columns are named rater:class."""
        return None if self.sides else rated_columns(self.name, self.voters)


def _may_rate(cell: Any) -> bool:
    """Return whether a cell is a number, or empty."""
    if cell is None or cell is ...:
        return True
    try:
        return math.isfinite(float(cell))
    except (TypeError, ValueError):
        return False


def any_label(labels: Iterable[Label]) -> bool:
    """Return whether any row has a label."""
    return any(label is not None for label in labels)


def some(names: Sequence[str]) -> str:
    """Return a few names, and how many more there are."""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{', '.join(names[:NAMES_SHOWN])}{more}"


def remember(fusion: VoteFusion, silent: Iterable[Label], classes: Collection[Label] = ()) -> None:
    """Make the fusion take for abstentions what was taken for them in learning, except for classes."""
    fusion.abstain = {*silent, *silent_votes(fusion.abstain)}.difference([*classes, ""]) or None


def side_names(fusion: VoteFusion) -> list[str]:
    """Return the names of a fusion's side columns."""
    return list(map(str, side_columns(fusion.by)))


def remarks_on_strange(strange: Counter[Label], classes: Collection[Label], what: str) -> list[str]:
    """Return remarks on votes that name no class, and on those that differ from one in case or punctuation only."""
    count = strange.total()
    if not count:
        return []
    named = ", ".join(f"{vote!r} ({often:,d})" for vote, often in strange.most_common(VOTES_SHOWN))
    named += ", ..." * (len(strange) > VOTES_SHOWN)
    one = count == 1
    name, end = ("vote names", "it counts as an abstention") if one else ("votes name", "they count as abstentions")
    remarks = [f"{count:,d} {name} something that is {what}, {named}; {end}."]
    near = near_misses(strange, classes)
    if near:
        count, vote = sum(strange[vote] for vote in near), max(near, key=lambda one: strange[one])
        be, them = ("is", "it counts") if count == 1 else ("are", "they count")
        remarks.append(
            f"{count:,d} of these {be} a class but for case or punctuation, such as {vote!r} for {near[vote]!r}; "
            f"written like the labels, {them} as votes."
        )
    return remarks
