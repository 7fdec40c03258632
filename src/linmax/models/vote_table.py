"""Tables of votes or scores with labels, as commands and shards of a cluster read them.

Columns named rater:class hold the scores of raters (`linmax.data.score_columns`); in JSON lines they may be written
{"bayes": {"cat": 0.9, "dog": 0.1}}. Any other column is a voter. Votes that are a class in another spelling are matched
with it; votes that name no class count as abstentions, and are reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linmax.data.names import label_array, missing, near_misses, silent_votes, written
from linmax.data.score_columns import rated_columns
from linmax.io.options import Refusals
from linmax.io.reader import ReadTable, read_table
from linmax.models.fusion import VoteFusion, side_columns

__all__ = ["Columns", "VoteTable", "read_votes", "remarks_on_strange", "remember", "side_names", "some"]

NAMES_SHOWN = 5  # in a message
VOTES_SHOWN = 3
Columns = dict[str, list[Any]]


def read_votes(
    source: Any,
    ignore: Sequence[str] = (),
    format: str | None = None,
    strict: bool = False,
    wanted: Collection[str] | None = None,
) -> ReadTable:
    """Return the columns of a file, a mapping, a frame, an Arrow table or several; `read_table` explains the options.

    Examples
    --------
    >>> read_votes({"ann": ["x", "y"], "id": [1, 2]}, ignore=["id"]).columns
    {'ann': ['x', 'y']}
    """
    if isinstance(source, str) or hasattr(source, "read"):
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


@dataclass
class VoteTable:
    """Votes or scores, side columns and labels (None where there is none) of a table, and remarks on them."""

    name: str
    voters: Columns
    sides: Columns
    labels: list[Any]
    lines: list[int]  # where each row is
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

    def rows(self, places: Any = slice(None)) -> dict[str, Any]:
        """Return some rows, as a fusion takes them."""
        if self.scores is not None:
            return {name: table[places] for name, table in self.scores.items()}
        return {name: label_array(column)[places] for name, column in (self.voters | self.sides).items()}

    def take_scores(self, scored: tuple[Mapping[str, np.ndarray], list[str]], classes: Sequence[Any]) -> None:
        """Take the columns for scores, in the order of these classes."""
        tables, found = scored
        absent = next((str(label) for label in classes if str(label) not in found), None)
        if absent is not None:
            column = f"{next(iter(tables))}:{absent}"
            raise ValueError(f"{self.name} has no column {column!r}, and the fusion has this class; add it")
        places = [found.index(str(label)) for label in classes]
        self.scores = {rater: table[:, places] for rater, table in tables.items()}
        self.voters, self.sides, self.classes = {}, {}, list(classes)

    def replace(self, vote: str | None, mark: Any) -> None:
        """Replace a vote, given as text, by another in all columns."""
        if vote is not None:
            for name, votes in self.voters.items():
                self.voters[name] = [mark if str(one) == vote else one for one in votes]

    def match(self, classes: Collection[Any]) -> None:
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

    def leave_out(self, known: Collection[Any]) -> Counter[Any]:
        """Replace votes that are not ``known`` by abstentions; return how often each was there."""
        found: Counter[Any] = Counter()
        for name, votes in self.voters.items():
            found.update(vote for vote in votes if vote not in known and vote is not None and vote is not ...)
            self.voters[name] = [vote if vote in known or vote is ... else None for vote in votes]
        return found

    def rated(self) -> tuple[dict[str, np.ndarray], list[str]] | None:
        """Return the scores of raters and their classes, if all columns are named rater:class."""
        return None if self.sides else rated_columns(self.name, self.voters)


def some(names: Sequence[str]) -> str:
    """Return a few names, and how many more there are."""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{', '.join(names[:NAMES_SHOWN])}{more}"


def remember(fusion: VoteFusion, silent: Iterable[Any], classes: Collection[Any] = ()) -> None:
    """Make the fusion take for abstentions what was taken for them in learning, except for classes."""
    fusion.abstain = {*silent, *silent_votes(fusion.abstain)}.difference(classes) or None


def side_names(fusion: VoteFusion) -> list[str]:
    """Return the names of a fusion's side columns."""
    return list(map(str, side_columns(fusion.by)))


def remarks_on_strange(strange: Counter[Any], classes: Collection[Any], what: str) -> list[str]:
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
