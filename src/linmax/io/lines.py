"""From lines to batches: blocks of bytes are read and parsed in memory that does not grow with the input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.io import parsing
from linmax.io.batches import Batch, Classes
from linmax.io.decimals import powers
from linmax.io.options import Position, ReadOptions
from linmax.io.parsing import REASONS, Work
from linmax.io.refusals import REFUSALS_KEPT, Refusals
from linmax.io.scan import PADDING, last_line_end
from linmax.io.sources import BOM, Source, refuse_encoding
from linmax.io.vocabulary import Vocabulary

if TYPE_CHECKING:
    from linmax.io.formats.base import LineFormat, StreamFormat

__all__ = ["LONGEST_LINE", "LineBlocks", "LineReader", "workspace"]

LONGEST_LINE = 2**24
PIPE_PATIENCE = 0.5  # seconds that a pipe is waited for when the types of columns depend on the next lines
VALUES = 2**18  # of a batch, unless one row has more
FEW_VALUES = 2**10  # for which there is always room
BUFFERS = 8  # batches whose memory may be reused


class LineBlocks:
    """Whole lines of files, a block at a time; ``state`` has AT, END, LINE and LAST of `linmax.io.parsing`.

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
        state[parsing.AT] = state[parsing.END] = state[parsing.LAST] = 0
        state[parsing.LINE] = 1
        if start is not None:
            source.skip(start.offset)
            self.base = start.offset
            state[parsing.LINE] = start.line
            return
        self.fill()
        self._sample(format)
        head = self.block[: self.filled].tobytes()
        mark = len(BOM) if head.startswith(BOM) else 0
        refuse_encoding(source.name, head)
        skipped, lines = format.begin(source.name, head[mark:])
        state[parsing.AT] += min(mark + skipped, self.filled)
        state[parsing.LINE] += lines

    def _sample(self, format: StreamFormat) -> None:
        """Read the lines that the format wants to see; from a pipe that pauses, those up to the first row."""
        wanted, first = format.lines_wanted(), format.first_row
        assert self.source is not None
        while wanted and self.filled < self.size:
            lines = int((self.block[: self.filled] == parsing.NEWLINE).sum())
            if lines >= wanted or (lines >= first and not self.source.ready(PIPE_PATIENCE)) or not self.fill():
                break

    def fill(self) -> bool:
        """Read more bytes after the rest of the block; False at the end."""
        source, state = self.source, self.state
        if source is None or self.ended:
            return False
        at = int(state[parsing.AT])
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
        if self.ended and self.filled and self.block[self.filled - 1] != parsing.NEWLINE:
            self.block[self.filled] = parsing.NEWLINE
            self.filled += 1
        self.block[self.filled : self.filled + PADDING] = parsing.NEWLINE
        self.state[parsing.AT] = at
        self.state[parsing.END] = max(at, int(last_line_end(self.block, 0, self.filled)))

    def _skip_line(self, source: Source) -> bool:
        """Skip a line that is too long."""
        room = self.block.size - PADDING
        self.base += self.filled
        while True:
            got = source.read_some(self.block[:room])
            newlines = np.flatnonzero(self.block[:got] == parsing.NEWLINE)
            if newlines.size or not got:
                break
            self.base += got
        self.refuse(int(self.state[parsing.LINE]), parsing.TOO_LONG)
        self.state[parsing.LINE] += 1
        self._received(0, got, int(newlines[0]) + 1 if newlines.size else got)
        return True

    def more(self) -> bool:
        """Whether there are whole lines, which are read if necessary."""
        return bool(self.state[parsing.AT] < self.state[parsing.END]) or self.fill()

    def lines(self) -> bytes:
        """The whole lines at hand."""
        return self.block[self.state[parsing.AT] : self.state[parsing.END]].tobytes()

    def advance(self, size: int, lines: int) -> None:
        """Go on after some bytes of some lines."""
        self.state[parsing.AT] += size
        self.state[parsing.LINE] += lines

    def waits(self) -> bool:
        """Whether the next bytes are still to come."""
        source = self.source
        return source is not None and source.live and not self.ended and not source.ready()


def workspace(rows: int, wide: int, values: int, classes: np.ndarray, options: ReadOptions) -> Work:
    """The arrays that a kernel works in."""
    tens, table = powers()
    work = Work(
        state=np.zeros(parsing.WIDTH, np.int64),
        **parsing.room_for_tokens(1024),
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
    work.state[parsing.GROWS] = options.grows
    work.state[parsing.OPEN] = options.unlabelled
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


class LineReader:
    """Reads files of lines, all of one format with a compiled parser, into batches."""

    def __init__(
        self,
        paths: Sequence[Any],
        format: LineFormat,
        vocabulary: Vocabulary | None = None,
        classes: Classes | None = None,
    ) -> None:
        self.options = options = format.options
        self.paths, self.format = list(paths), format
        self.vocabulary = Vocabulary() if vocabulary is None else vocabulary
        self.classes = Classes() if classes is None else classes
        self.refusals = Refusals()
        # Of little input, little memory: clearing what is never used takes longer than reading a few lines.
        least = next((path.left for path in paths if isinstance(path, Source)), None) if len(paths) == 1 else None
        self.strict, self.rows, self.values, block = options.strict, options.rows, VALUES, options.block
        if least is not None:
            self.rows = min(self.rows, least + 1)
            self.values, block = min(VALUES, FEW_VALUES + 2 * least), min(block, least + 1)
        self.start = options.position
        self._file = self.start.file - 1
        self._buffers: list[dict[str, np.ndarray]] = []
        self._work = workspace(0, 0, 0, self.classes.numbers, options)
        self._blocks = LineBlocks(block, self._state, self._refused)
        self.notes = format.notes

    @property
    def _state(self) -> np.ndarray:
        return self._work.state

    def _values_room(self) -> dict[str, np.ndarray]:
        """Memory for the values of a batch: that of an earlier batch nobody uses any more, or else new memory.

        The operating system clears new memory, which takes a tenth of the time of parsing.
        """
        for room in self._buffers:
            # The dict and the call itself hold references; so does every view, and hence every user of the batch.
            if len(room["values"]) == self.values and all(sys.getrefcount(room[name]) == 2 for name in room):
                return room
        room = {"indices": np.empty(self.values, np.int32), "values": np.empty(self.values)}
        self._buffers = [*self._buffers[1 - BUFFERS :], room]
        return room

    def _next_file(self) -> bool:
        """Open the next file and look at its first lines; False if there is none."""
        if self._blocks.source is not None:
            self._blocks.source.close()
            self._blocks.source = None
        self._file += 1
        if self._file >= len(self.paths):
            return False
        source = Source.of(self.paths[self._file])
        resumes = self._file == self.start.file and self.start.offset > 0
        try:
            self._blocks.open(source, self.format, self.start if resumes else None)
        except BaseException:
            source.close()
            raise
        return True

    def _refused(self, line: int, reason: int, given: str | None = None) -> None:
        source = self._blocks.source
        name = source.name if source is not None else ""
        self.refusals.add(name, line, REASONS[reason], parsing.with_value(reason, given))

    def _text(self, begin: int, end: int) -> str:
        return self._blocks.block[begin:end].tobytes().decode("utf-8", "backslashreplace")

    def _drain(self) -> None:
        """Take over the refusals of a parser."""
        state, work = self._state, self._work
        count = int(state[parsing.REFUSED])
        if not count:
            return
        for line, reason, begin, end in work.refusals[: min(count, REFUSALS_KEPT)].tolist():
            self._refused(line, reason, self._text(begin, end).strip() if reason in parsing.WITH_VALUE else None)
            work.reasons[reason] -= 1
        for reason, more in enumerate(work.reasons.tolist()):
            if more:
                self.refusals.counts[REASONS[reason]] = self.refusals.counts.get(REASONS[reason], 0) + more
        work.reasons[:] = 0
        state[parsing.REFUSED] = 0

    def _serve(self, needs: int) -> None:
        """Give a parser what it needs."""
        state, work = self._state, self._work
        begin, end = int(state[parsing.FROM]), int(state[parsing.TO])
        if needs == parsing.MORE_VALUES:
            self.values *= 2
            self._work = work._replace(**self._values_room())
        elif needs == parsing.MORE_TOKENS:
            self._work = work._replace(**parsing.room_for_tokens(2 * work.amounts.size))
        elif needs == parsing.MORE_NAMES:
            self.vocabulary.reserve(begin, end)
        elif needs == parsing.LETTERS:
            self.format.new_letters()
        else:
            raw = self._blocks.block[begin:end].tobytes()
            if needs == parsing.NEW_CLASS:
                self.classes.number(raw)
                self.vocabulary.fit_classes(len(self.classes))
                self._work = work._replace(classes=self.classes.numbers)
            elif needs == parsing.NEW_PREFIX:
                self.format.new_prefix(raw, self.vocabulary)
            elif needs == parsing.ASK_NUMBER:
                count = int(state[parsing.ANSWERS])
                answers = work.answers if count < len(work.answers) else np.concatenate([work.answers] * 2)
                answers[count] = begin, float(raw)
                state[parsing.ANSWERS] = count + 1
                self._work = work._replace(answers=answers)

    def _tags(self, before: int, tags: list[str]) -> None:
        """Copy the tags of the rows since ``before`` while their bytes are still there."""
        if self._state[parsing.TAGGED]:
            tags += [""] * (before - len(tags))
            tags += [self._text(*place) for place in self._work.tags[before : int(self._state[parsing.ROWS])].tolist()]

    def __iter__(self) -> Generator[Batch, None, None]:
        """Batches of rows, as full as possible, until the input ends."""
        try:
            yield from self._batches()
        finally:
            if self._blocks.source is not None:
                self._blocks.source.close()

    def _batches(self) -> Iterator[Batch]:
        state, blocks = self._state, self._blocks
        more = True
        while more:
            self._work = self._work._replace(**rows_room(self.rows, 0), **self._values_room())
            state[parsing.ROWS] = state[parsing.PLACED] = state[parsing.TAGGED] = 0
            tags: list[str] = []
            unknown = int(state[parsing.UNKNOWN])
            while True:
                if state[parsing.ROWS] and state[parsing.AT] >= state[parsing.END] and blocks.waits():
                    break
                if not blocks.more():
                    more = self._next_file()
                    if not more:
                        break
                    continue
                before = int(state[parsing.ROWS])
                needs = self.format.parse(blocks.block, self._work, self.vocabulary, self.classes)
                self._tags(before, tags)
                self._drain()
                if self.strict and self.refusals.total:
                    more = False
                    break
                if needs == parsing.FILLED:
                    break
                if needs != parsing.ENDED:
                    self._serve(needs)
            if state[parsing.ROWS]:
                yield self._batch(tags, int(state[parsing.UNKNOWN]) - unknown)
            if self.strict and self.refusals.total:
                file, line, reason = self.refusals.first[0]
                raise ValueError(f"{file}, line {line}: {reason}")

    def remarks(self) -> list[str]:
        """What was noticed on the way: nothing."""
        return []

    def _batch(self, tags: list[str], unknown: int) -> Batch:
        state, work, source = self._state, self._work, self._blocks.source
        rows, placed = int(state[parsing.ROWS]), int(state[parsing.PLACED])
        over = self._file >= len(self.paths)
        offset, line = self._blocks.base + int(state[parsing.AT]), int(state[parsing.LINE])
        done = source.done() if source is not None else 1.0
        return Batch(
            work.dense[:rows],
            work.indptr[: rows + 1],
            work.indices[:placed],
            work.values[:placed],
            work.labels[:rows],
            work.importance[:rows],
            work.lines[:rows],
            tags + [""] * (rows - len(tags)) if state[parsing.TAGGED] else None,
            len(self.vocabulary),
            self.vocabulary,
            self.classes,
            (),
            Position(self._file, 0, 1) if over else Position(self._file, offset, line),
            unknown,
            (self._file + (done or 0.0)) / len(self.paths) if done is not None else None,
            self.format.settled_with_reading(),
        )
