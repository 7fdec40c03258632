"""Base classes of formats: how they are recognised, and what readers need from them.

Derive from one of three: a `LineFormat` has a compiled parser of lines; a `RowFormat` reads each line in Python, which
takes a few lines of code; a `TableFormat` gives tables, such as frames or Arrow's batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from linmax.io import parsing
from linmax.io.batches import Classes
from linmax.io.options import ReadOptions
from linmax.io.parsing import Work
from linmax.io.scan import PADDING
from linmax.io.sources import Source
from linmax.io.vocabulary import Vocabulary
from linmax.util.lazy import Later

__all__ = ["Columns", "LineFormat", "Row", "RowFormat", "ScratchFormat", "StreamFormat", "TableFormat"]

packed = Later("linmax.io.parsers.packed")
text = Later("linmax.io.parsers.text")

Columns = dict[str, list[Any]]  # the unchanged cells of each column, None for an empty one
Row = tuple[bytes, list[tuple[bytes, float]], bytes]  # label, names with their values, and a text


class StreamFormat:
    """A format of streams.

    Attributes
    ----------
    endings
        File extensions, in lower case. If two formats share one, the first lines decide.
    first_bytes
        First bytes by which a file of this format is recognised.
    rectangular
        Whether every row has the same columns, with visibly missing values.
    """

    endings: ClassVar[tuple[str, ...]] = ()
    first_bytes: ClassVar[tuple[bytes, ...]] = ()
    rectangular: ClassVar[bool] = False

    def __init__(self, options: ReadOptions) -> None:
        self.options = options

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:  # noqa: ARG003
        """Whether these may be the first lines of such a file; there is at least one, and all are non-empty."""
        return False

    @classmethod
    def has_columns(cls) -> bool:
        """Whether it can give the cells of its columns."""
        return cls.columns is not StreamFormat.columns

    def columns(self, source: Source) -> Columns:
        """All cells, column by column."""
        raise NotImplementedError(f"{source.name}: this format has no columns")


class TableFormat(StreamFormat):
    """A format of typed tables."""

    rectangular = True

    def tables(self, source: Source) -> Iterator[Any]:
        """The tables of a file, one after the other: what `linmax.io.frames.TableReader` takes."""
        raise NotImplementedError


class LineFormat(StreamFormat):
    """A format of lines. ``settled`` is what it found out about the input: plain data, enough to continue elsewhere.

    ``sample`` is the number of lines that `begin` wants to see.
    """

    sample: ClassVar[int] = 0

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self.settled: dict[str, Any] = {}
        self.dense_names: tuple[str, ...] = ()

    def begin(self, name: str, head: bytes) -> tuple[int, int]:  # noqa: ARG002
        """Look at the first lines of a file; returns the bytes and lines that are not data."""
        return 0, 0

    def restore(self, settled: dict[str, Any]) -> None:
        """Continue with what was found out before."""
        self.settled = settled

    def renewed(self) -> None:
        """The block has new bytes."""

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines (see `linmax.io.parsing`)."""
        raise NotImplementedError

    def aside(self) -> np.ndarray:
        """The bytes that are not in the block."""
        raise NotImplementedError

    def new_prefix(self, raw: bytes, vocabulary: Vocabulary) -> None:
        """A namespace was met."""
        raise NotImplementedError


class ScratchFormat(LineFormat):
    """A format whose parser copies parts of a line."""

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self._scratch = np.zeros(PADDING, np.uint8)

    def room_for(self, block: np.ndarray) -> np.ndarray:
        """Scratch as long as the block, and zeros beyond."""
        if self._scratch.size < 2 * block.size:  # an n-gram or an empty field takes one byte more than it has
            self._scratch = np.zeros(2 * block.size, np.uint8)
        return self._scratch

    def aside(self) -> np.ndarray:
        """The scratch."""
        return self._scratch


class RowFormat(ScratchFormat):
    """A format whose lines are read by Python, one by one, in `row`; a kernel numbers what they hold."""

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self._lines = np.zeros((0, 6), np.int64)
        self._names = np.zeros((0, 2), np.int64)
        self._amounts = np.zeros(0)
        self._source = np.zeros(PADDING, np.uint8)
        self._unpacked = False  # the block at hand

    def row(self, raw: bytes) -> Row | int:
        """Label, attributes and text of a non-blank line, or the reason for refusing it (see `linmax.io.parsing`)."""
        raise NotImplementedError

    def renewed(self) -> None:
        """The new lines must be read."""
        self._unpacked = False

    def aside(self) -> np.ndarray:
        """What was read; labels are looked up there."""
        return self._source

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines: Python reads them, the kernel numbers what they hold."""
        state = work.state
        if state[parsing.AT] >= state[parsing.END]:
            return parsing.ENDED
        if not self._unpacked:
            self._unpack(block, int(state[parsing.AT]), int(state[parsing.END]))
        scratch = self.room_for(self._source)
        return int(
            packed.parse_packed(
                block, work, vocabulary.names, classes.texts.names, self._source, scratch, text.FOLDED,
                self.options.ngrams, self._lines, self._names, self._amounts,
            )
        )  # fmt: skip

    def _unpack(self, block: np.ndarray, begin: int, end: int) -> None:
        """Read all lines of the block into the arrays of `parse_packed`."""
        self._unpacked = True
        lines: list[list[int]] = []
        names: list[tuple[int, int]] = []
        amounts: list[float] = []
        parts: list[bytes] = []
        size = 0

        def keep(raw: bytes) -> tuple[int, int]:
            nonlocal size
            parts.append(raw)
            size += len(raw)
            return size - len(raw), size

        place = begin
        for raw in block[begin:end].tobytes().split(b"\n")[:-1]:
            place += len(raw) + 1
            label, words, first, reason = (0, 0), (0, 0), len(names), 0
            if raw.strip(b" \t\r"):
                row = self.row(raw)
                if isinstance(row, int):
                    reason = row
                else:
                    label = keep(row[0])
                    for name, value in row[1]:
                        names.append(keep(name))
                        amounts.append(value)
                    words = keep(row[2] + b"\n")
            else:
                reason = -1
            lines.append([*label, words[0], len(names) - first, reason, place])
        self._lines = np.array(lines, np.int64).reshape(-1, 6)
        self._names = np.array(names, np.int64).reshape(-1, 2)
        self._amounts = np.array(amounts, float)
        joined = b"".join(parts)
        self._source = np.zeros(len(joined) + PADDING, np.uint8)
        self._source[: len(joined)] = np.frombuffer(joined, np.uint8)
