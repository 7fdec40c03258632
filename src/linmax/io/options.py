"""How to read a stream: options of its format, how rows are cut into batches, and where to begin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["BLOCK", "ROWS", "Position", "ReadOptions"]

BLOCK = 2**19  # bytes read at a time: few enough to stay in the cache until they are parsed
ROWS = 4096  # of a batch


@dataclass(frozen=True)
class Position:
    """Where a stream stands: the next byte of which file, and what was read before it.

    Attributes
    ----------
    file : int
        Which of the files.
    offset, line : int
        The next byte in it, and the number of the next line.

    See Also
    --------
    linmax.stream : takes one, to go on from there.

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
    label, ignore, categorical
        Columns of a table: the label (the last one if not given), those to leave out, and those whose numbers are
        categories.
    ngrams
        Longest run of words of a text that is an attribute.
    known
        The kind of each column as a model has learned from it.
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
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    ngrams: int = 1
    known: Mapping[str, str] | None = None
    grows: bool = True
    strict: bool = False
    rows: int = ROWS
    block: int = BLOCK
    position: Position = Position()
    settled: dict[str, Any] | None = None
