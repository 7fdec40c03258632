"""Options of reading, positions in streams, and counts of unreadable lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["BATCH_ROWS", "BLOCK", "REFUSALS_KEPT", "REMEMBERED", "Position", "ReadOptions", "Refusals"]

REMEMBERED = (
    "ngrams", "pairs", "header", "delimiter", "label", "weight", "ignore", "categorical", "text",
)  # fmt: skip

BLOCK = 2**20  # bytes read at a time: few enough to stay in the cache until they are parsed
BATCH_ROWS = 2**13  # of a batch


@dataclass(frozen=True)
class Position:
    """Position in a stream: the next byte of which file, and the number of its line.

    Attributes
    ----------
    file : int
        Which of the files.
    offset, line : int
        The next byte in it, and the number of the next line.

    See Also
    --------
    linmax.stream : takes one, to continue from there.

    Examples
    --------
    >>> Position()
    Position(file=0, offset=0, line=1)
    """

    file: int = 0
    offset: int = 0
    line: int = 1


@dataclass(frozen=True)
class ReadOptions:
    """The options of reading. A format takes those that concern it and leaves the others.

    Attributes
    ----------
    label, weight, ignore, categorical, text, id
        Columns of a table, or keys of JSON: the label (if not given, `linmax.io.schema` chooses), how much a row
        counts, those to leave out, those whose numbers are categories, those whose words are attributes, and the one
        that identifies rows.
    delimiter, header
        What separates the fields of a table, recognized if not given; whether its first line names the columns.
    ngrams
        Longest run of words of a text that is an attribute (see `linmax.io.words`).
    pairs
        Which attributes are paired (see `linmax.io.pairing`).
    known
        The kind of each column as a model has learned from it.
    unlabelled
        Whether rows may come without labels, as when they are to be predicted.
    classes
        Names of the classes that a model knows.
    learned_keys
        The key of the label and the keys of dates, as a model has learned them from JSON lines.
    prefer
        The format to take if neither the name nor the first bytes of the input show it.
    learned
        Names of the options that come from a model and were not given.
    grows
        Whether names that were not met before get a number; else they are left out.
    strict
        Raise at the first line that cannot be read.
    rows, block
        Most rows of a batch, and bytes read at a time.
    position, settled
        Where to begin, and what the format found out about the input before.
    """

    label: str | None = None
    weight: str | None = None
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    id: str | None = None
    delimiter: str | None = None
    header: bool = True
    ngrams: int = 1
    pairs: tuple[str, ...] = ()
    known: Mapping[str, str] | None = None
    unlabelled: bool = False
    classes: frozenset[str] = frozenset()
    learned_keys: Mapping[str, Any] | None = None
    prefer: str | None = None
    learned: frozenset[str] = frozenset()
    grows: bool = True
    strict: bool = False
    rows: int = BATCH_ROWS
    block: int = BLOCK
    position: Position = Position()
    settled: dict[str, Any] | None = None

    def given(self) -> list[str]:
        """Names of the options that were given, of those that say what the data mean."""
        names = (*REMEMBERED, "id")
        return [name for name in names if getattr(self, name) != getattr(ReadOptions, name)]

    def remembered(self) -> dict[str, Any]:
        """Return the options that a model keeps, to read other data as it has read those it learned from."""
        return {name: getattr(self, name) for name in self.given() if name in REMEMBERED}


REFUSALS_KEPT = 20  # refused lines that are remembered


@dataclass
class Refusals:
    """Lines that could not be read: how many for each reason, and the first of them.

    Attributes
    ----------
    counts : dict from str to int
        How many lines for each reason.
    first : list
        The first of them: file, line and reason.

    See Also
    --------
    linmax.stream : counts them in ``refusals``.

    Examples
    --------
    >>> Refusals().counts
    {}
    """

    counts: dict[str, int] = field(default_factory=dict)
    first: list[tuple[str, int, str]] = field(default_factory=list)  # file, line, reason

    @property
    def total(self) -> int:
        """Number of refused lines."""
        return sum(self.counts.values())

    def add(self, file: str, line: int, reason: str, message: str | None = None) -> None:
        """Count one; ``message`` is the reason with what was given in the line."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        if len(self.first) < REFUSALS_KEPT:
            self.first.append((file, line, message or reason))

    def join(self, other: Refusals) -> None:
        """Count those of another file, too."""
        for reason, count in other.counts.items():
            self.counts[reason] = self.counts.get(reason, 0) + count
        self.first = [*self.first, *other.first][:REFUSALS_KEPT]

    def copy(self) -> Refusals:
        """As it is now."""
        return Refusals(dict(self.counts), list(self.first))
