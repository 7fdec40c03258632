"""LineBlocks of whole lines from files and pipes, and the arrays that kernels work in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from linmax.io import lexer
from linmax.io.bytes import PADDING, powers
from linmax.io.lexer import REASONS, Work
from linmax.io.options import REFUSALS_KEPT, Position, ReadOptions
from linmax.io.sources import BOM, Source, refuse_encoding

if TYPE_CHECKING:
    from linmax.io.records import StreamFormat

__all__ = ["LONGEST_LINE", "LineBlocks", "workspace"]

LONGEST_LINE = 2**24
PIPE_PATIENCE = 0.5  # seconds that a pipe is waited for when the types of columns depend on the next lines


class LineBlocks:
    """Whole lines of files, a block at a time; ``state`` has AT, END, LINE and LAST of `linmax.io.lexer`.

    ``block`` ends in PADDING newlines more than it holds. ``refuse(line, reason)`` counts a line that is too long.
    """

    def __init__(self, size: int, state: np.ndarray, refuse: Callable[[int, int], None]) -> None:
        self.size, self.state, self.refuse = size, state, refuse
        self.source: Source | None = None
        self.block = np.zeros(size + PADDING, np.uint8)
        self.base = self.filled = 0  # where the block begins in the file, and how many bytes it holds
        self.ended = True  # the current source

    def open(self, source: Source, format: StreamFormat, start: Position | None) -> None:
        """Begin a file at its first data, or at a position."""
        self.source, self.base, self.filled, self.ended = source, 0, 0, False
        state = self.state
        state[lexer.AT] = state[lexer.END] = state[lexer.LAST] = 0
        state[lexer.LINE] = 1
        if start is not None:
            source.skip(start.offset)
            self.base = start.offset
            state[lexer.LINE] = start.line
            return
        self.fill()
        self._sample(format)
        head = self.block[: self.filled].tobytes()
        mark = len(BOM) if head.startswith(BOM) else 0
        refuse_encoding(source.name, head)
        skipped, lines = format.begin(source.name, head[mark:])
        state[lexer.AT] += min(mark + skipped, self.filled)
        state[lexer.LINE] += lines

    def _sample(self, format: StreamFormat) -> None:
        """Read the lines that the format wants to see; from a pipe that pauses, those up to the first row."""
        wanted, first = format.lines_wanted(), format.first_row
        assert self.source is not None
        while wanted and self.filled < self.size:
            lines = int((self.block[: self.filled] == lexer.NEWLINE).sum())
            if lines >= wanted or (lines >= first and not self.source.ready(PIPE_PATIENCE)) or not self.fill():
                break

    def fill(self) -> bool:
        """Read more bytes after the rest of the block; False at the end."""
        source, state = self.source, self.state
        if source is None or self.ended:
            return False
        at = int(state[lexer.AT])
        left = self.filled - at
        room = self.block.size - PADDING
        if left >= room:  # one line fills the block
            if room >= LONGEST_LINE:
                return self._skip_line(source)
            self.block = np.concatenate([self.block, np.zeros(room, np.uint8)])
            room *= 2
        if at and left:
            self.block[:left] = self.block[at : self.filled].copy()
        self.base += at
        self._received(left, source.read_some(self.block[left:room]), 0)
        return self.filled > 0

    def _received(self, left: int, got: int, at: int) -> None:
        """Note the bytes that came after the first ``left`` ones; the next line begins at ``at``."""
        self.ended, self.filled = not got, left + got
        if self.ended and self.filled and self.block[self.filled - 1] != lexer.NEWLINE:
            self.block[self.filled] = lexer.NEWLINE
            self.filled += 1
        self.block[self.filled : self.filled + PADDING] = lexer.NEWLINE
        self.state[lexer.AT] = at
        self.state[lexer.END] = max(at, self.block[: self.filled].tobytes().rfind(b"\n") + 1)

    def _skip_line(self, source: Source) -> bool:
        """Skip a line that is too long."""
        room = self.block.size - PADDING
        self.base += self.filled
        while True:
            got = source.read_some(self.block[:room])
            newlines = np.flatnonzero(self.block[:got] == lexer.NEWLINE)
            if newlines.size or not got:
                break
            self.base += got
        self.refuse(int(self.state[lexer.LINE]), lexer.TOO_LONG)
        self.state[lexer.LINE] += 1
        self._received(0, got, int(newlines[0]) + 1 if newlines.size else got)
        return True

    def more(self) -> bool:
        """Return whether there are whole lines, which are read if necessary."""
        return bool(self.state[lexer.AT] < self.state[lexer.END]) or self.fill()

    def lines(self) -> bytes:
        """The whole lines at hand."""
        return self.block[self.state[lexer.AT] : self.state[lexer.END]].tobytes()

    def advance(self, size: int, lines: int) -> None:
        """Continue after some bytes of some lines."""
        self.state[lexer.AT] += size
        self.state[lexer.LINE] += lines

    def waits(self) -> bool:
        """Return whether the next bytes are still to come."""
        source = self.source
        return source is not None and source.live and not self.ended and not source.ready()


def workspace(rows: int, wide: int, values: int, classes: np.ndarray, options: ReadOptions) -> Work:
    """The arrays that a kernel works in."""
    tens, table = powers()
    work = Work(
        state=np.zeros(lexer.WIDTH, np.int64),
        **lexer.room_for_tokens(1024),
        **rows_room(rows, wide),
        indices=np.empty(values, np.int32),
        values=np.empty(values),
        classes=classes,
        refusals=np.zeros((REFUSALS_KEPT, 4), np.int64),
        reasons=np.zeros(len(REASONS), np.int64),
        answers=np.zeros((16, 2)),
        tens=tens,
        table=table,
    )
    work.state[lexer.GROWS] = options.grows
    work.state[lexer.OPEN] = options.unlabelled
    return work


def rows_room(rows: int, wide: int) -> dict[str, np.ndarray]:
    """New arrays for the rows of a batch: the last batch keeps its own."""
    return {
        "labels": np.zeros(rows, np.int32),
        "importance": np.ones(rows),
        "tags": np.zeros((rows, 2), np.int64),
        "lines": np.zeros(rows, np.int64),
        "indptr": np.zeros(rows + 1, np.int64),
        "dense": np.zeros((rows, wide)),
    }
