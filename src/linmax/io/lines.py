"""From lines to batches: blocks of bytes are read, parsed and assembled in memory that does not grow with the input."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np

from linmax.io import parsing
from linmax.io.batches import Batch, Classes
from linmax.io.decimals import powers
from linmax.io.formats import make_format
from linmax.io.formats.base import LineFormat
from linmax.io.options import Position, ReadOptions
from linmax.io.parsing import REASONS, Work
from linmax.io.refusals import REFUSALS_KEPT, Refusals
from linmax.io.scan import PADDING, last_line_end
from linmax.io.sources import BOM, Source, refuse_encoding
from linmax.io.vocabulary import Vocabulary

__all__ = ["LONGEST_LINE", "LineReader"]

LONGEST_LINE = 2**24
PIPE_PATIENCE = 0.5  # seconds that a pipe is waited for when the types of columns depend on the next lines
VALUES = 2**18  # of a batch, unless one row has more
FEW_VALUES = 2**10  # for which there is always room
ROOMS = 8  # batches whose memory may be reused


class LineReader:
    """Reads files of lines, all of one format, into batches."""

    def __init__(
        self,
        paths: Sequence[Any],
        kind: str,
        options: ReadOptions | None = None,
        vocabulary: Vocabulary | None = None,
        classes: Classes | None = None,
    ) -> None:
        self.options = options = ReadOptions() if options is None else options
        self.paths, self.kind = list(paths), kind
        self.vocabulary = Vocabulary() if vocabulary is None else vocabulary
        self.classes = Classes() if classes is None else classes
        self.refusals = Refusals()
        # Of little input, little memory: clearing what is never used takes longer than reading a few lines.
        least = next((path.left for path in paths if isinstance(path, Source)), None) if len(paths) == 1 else None
        self.strict, self.rows, self.values, block = options.strict, options.rows, VALUES, options.block
        if least is not None:
            self.rows = min(self.rows, least + 1)
            self.values, block = min(VALUES, FEW_VALUES + 2 * least), min(block, least + 1)
        self.format: LineFormat | None = None
        self.settled = options.settled
        self.start = options.position
        self._file = self.start.file - 1
        self._source: Source | None = None
        self._block = np.zeros(block + PADDING, np.uint8)
        self._base = self._filled = 0
        self._ended = True  # the current source
        self._rooms: list[dict[str, np.ndarray]] = []
        tens, table = powers()
        self._work = Work(
            state=np.zeros(parsing.WIDTH, np.int64),
            **parsing.room_for_tokens(1024),
            classes=self.classes.numbers,
            refusals=np.zeros((REFUSALS_KEPT, 4), np.int64),
            reasons=np.zeros(len(REASONS), np.int64),
            answers=np.zeros((16, 2)),
            tens=tens,
            table=table,
            **self._rows_room(0, 0),
        )
        self._work.state[parsing.GROWS] = options.grows
        self._work.state[parsing.OPEN] = options.unlabelled
        self.notes: list[str] = []

    def _rows_room(self, rows: int, wide: int) -> dict[str, np.ndarray]:
        """New arrays for a batch: the last batch keeps its own."""
        return {
            "labels": np.zeros(rows, np.int32),
            "importance": np.ones(rows),
            "tags": np.zeros((rows, 2), np.int64),
            "lines": np.zeros(rows, np.int64),
            "indptr": np.zeros(rows + 1, np.int64),
            "dense": np.zeros((rows, wide)),
            **self._values_room(),
        }

    def _values_room(self) -> dict[str, np.ndarray]:
        """Memory for the values of a batch: that of an earlier batch nobody uses any more, or else new memory.

        The operating system clears new memory, which takes a tenth of the time of parsing.
        """
        for room in self._rooms:
            # The dict and the call itself hold references; so does every view, and hence every user of the batch.
            if len(room["values"]) == self.values and all(sys.getrefcount(room[name]) == 2 for name in room):
                return room
        room = {"indices": np.empty(self.values, np.int32), "values": np.empty(self.values)}
        self._rooms = [*self._rooms[1 - ROOMS :], room]
        return room

    @property
    def _state(self) -> np.ndarray:
        return self._work.state

    # -- bytes --------------------------------------------------------------------------------------------------

    def _next_file(self) -> bool:
        """Open the next file and look at its first lines; False if there is none."""
        if self._source is not None:
            self._source.close()
            self._source = None
        self._file += 1
        if self._file >= len(self.paths):
            return False
        source = self._source = Source.of(self.paths[self._file])
        self._base = self._filled = 0
        self._ended = False
        state = self._state
        state[parsing.AT] = state[parsing.END] = 0
        state[parsing.LINE] = 1
        state[parsing.LAST] = 0
        if self.format is None:
            self.format = self._made()
        if self._file == self.start.file and self.start.offset > 0:
            if self.settled is None:
                raise ValueError("a position needs what was settled before it; give settled=batch.settled as well")
            source.skip(self.start.offset)
            self._base = self.start.offset
            state[parsing.LINE] = self.start.line
            return True
        self._fill()
        self._sample()
        head = self._block[: self._filled].tobytes()
        mark = len(BOM) if head.startswith(BOM) else 0
        refuse_encoding(source.name, head)
        skipped, lines = self.format.begin(source.name, head[mark:])
        state[parsing.AT] += min(mark + skipped, self._filled)
        state[parsing.LINE] += lines
        self.notes += [note for note in self.format.notes if note not in self.notes]
        return True

    def _sample(self) -> None:
        """Read the lines that the format wants to see; from a pipe that pauses, those up to the first row."""
        assert self.format is not None
        assert self._source is not None
        wanted, first = self.format.lines_wanted(), self.format.first_row
        while wanted and self._filled < self.options.block:
            lines = int((self._block[: self._filled] == parsing.NEWLINE).sum())
            if lines >= wanted or (lines >= first and not self._source.ready(PIPE_PATIENCE)) or not self._fill():
                break

    def _made(self) -> LineFormat:
        """The format, with what is known about the input."""
        made = make_format(self.kind, self.options)
        assert isinstance(made, LineFormat)
        if self.settled:
            made.restore({**self.settled})
        made.refuse_options(self._source.name if self._source is not None else "the input")
        return made

    def _fill(self) -> bool:
        """Read more bytes after the rest of the block; False at the end."""
        source, state = self._source, self._state
        if source is None or self._ended:
            return False
        at = int(state[parsing.AT])
        left = self._filled - at
        room = self._block.size - PADDING
        if left >= room:  # one line fills the block
            if room >= LONGEST_LINE:
                return self._skip_line()
            self._block = np.concatenate([self._block, np.zeros(room, np.uint8)])
            room *= 2
        if at and left:
            self._block[:left] = self._block[at : self._filled].copy()
        self._base += at
        got = source.read_some(self._block[left:room])
        self._ended = not got
        self._filled = left + got
        state[parsing.AT] = 0
        if self._ended and self._filled and self._block[self._filled - 1] != parsing.NEWLINE:
            self._block[self._filled] = parsing.NEWLINE
            self._filled += 1
        self._block[self._filled : self._filled + PADDING] = parsing.NEWLINE
        state[parsing.END] = last_line_end(self._block, 0, self._filled)
        if self.format is not None:
            self.format.renewed()
        return self._filled > 0

    def _skip_line(self) -> bool:
        """Skip a line that is too long."""
        source, state = self._source, self._state
        assert source is not None
        room = self._block.size - PADDING
        self._base += self._filled
        while True:
            got = source.read_some(self._block[:room])
            found = np.flatnonzero(self._block[:got] == parsing.NEWLINE)
            if found.size or not got:
                break
            self._base += got
        end = int(found[0]) + 1 if found.size else got
        self._refused(int(state[parsing.LINE]), parsing.TOO_LONG)
        state[parsing.LINE] += 1
        self._ended = not got
        self._filled = got
        if self._ended and got and self._block[got - 1] != parsing.NEWLINE:
            self._block[got] = parsing.NEWLINE
            self._filled += 1
        self._block[self._filled : self._filled + PADDING] = parsing.NEWLINE
        state[parsing.AT] = end
        state[parsing.END] = max(end, int(last_line_end(self._block, 0, self._filled)))
        if self.format is not None:
            self.format.renewed()
        return True

    # -- rows ---------------------------------------------------------------------------------------------------

    def _refused(self, line: int, reason: int, given: str | None = None) -> None:
        name = self._source.name if self._source is not None else ""
        self.refusals.add(name, line, REASONS[reason], parsing.with_value(reason, given))

    def _drain(self) -> None:
        """Take over the refusals of a parser."""
        state, work = self._state, self._work
        count = int(state[parsing.REFUSED])
        if not count:
            return
        assert self.format is not None
        kept = work.refusals[: min(count, REFUSALS_KEPT)]
        for line, reason, begin, end in kept.tolist():
            blamed = self.format.blamed(self._block, begin, end) if reason in parsing.WITH_VALUE else None
            self._refused(line, reason, blamed)
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
        assert self.format is not None
        if needs == parsing.MORE_VALUES:
            self.values *= 2
            self._work = work._replace(**self._values_room())
        elif needs == parsing.MORE_TOKENS:
            self._work = work._replace(**parsing.room_for_tokens(2 * work.amounts.size))
        elif needs == parsing.MORE_NAMES:
            self.vocabulary.reserve(begin, end)
        else:
            raw = (self.format.aside() if state[parsing.ASIDE] else self._block)[begin:end].tobytes()
            if needs == parsing.NEW_CLASS:
                self.classes.number(raw)
                self.vocabulary.fit_classes(len(self.classes))
                self._work = work._replace(classes=self.classes.numbers)
            elif needs == parsing.NEW_PREFIX:
                self.format.new_prefix(raw, self.vocabulary)
            elif needs == parsing.LETTERS:
                self.format.new_letters()
            elif needs == parsing.ASK_NUMBER:
                count = int(state[parsing.ANSWERS])
                answers = work.answers if count < len(work.answers) else np.concatenate([work.answers] * 2)
                answers[count] = begin, float(raw)
                state[parsing.ANSWERS] = count + 1
                self._work = work._replace(answers=answers)

    def _tags(self, before: int, tags: list[str]) -> None:
        """Copy the tags of the rows since ``before`` while their bytes are still there."""
        if not self._state[parsing.TAGGED]:
            return
        tags += [""] * (before - len(tags))
        assert self.format is not None
        for begin, end in self._work.tags[before : int(self._state[parsing.ROWS])].tolist():
            tags.append(self.format.tag(self._block, begin, end))

    def __iter__(self) -> Generator[Batch, None, None]:
        """Batches of rows, as full as possible, until the input ends."""
        try:
            yield from self._batches()
        finally:
            if self._source is not None:
                self._source.close()

    def _batches(self) -> Iterator[Batch]:
        state = self._state
        wide = 0
        more = True
        while more:
            if self.format is not None:
                wide = len(self.format.dense_names)
            self._renew(wide)
            tags: list[str] = []
            unknown = int(state[parsing.UNKNOWN])
            while True:
                if self._waits():
                    break
                if self.format is None or (state[parsing.AT] >= state[parsing.END] and not self._fill()):
                    more = self._next_file()
                    if not more:
                        break
                    continue
                before = int(state[parsing.ROWS])
                if self._work.dense.shape[1] != self._wide():
                    if before:
                        break
                    self._renew(self._wide())
                needs = self.format.parse(self._block, self._work, self.vocabulary, self.classes)
                self._tags(before, tags)
                self._drain()
                if self.strict and self.refusals.total:
                    more = False
                    break
                if needs == parsing.FILLED or (needs == parsing.MORE_BYTES and self._waits(within=True)):
                    break
                if needs == parsing.MORE_BYTES:
                    state[parsing.LAST] |= not self._fill()
                elif needs != parsing.ENDED:
                    self._serve(needs)
            if state[parsing.ROWS]:
                yield self._batch(tags, int(state[parsing.UNKNOWN]) - unknown)
            if self.strict and self.refusals.total:
                file, line, reason = self.refusals.first[0]
                raise ValueError(f"{file}, line {line}: {reason}")

    def _waits(self, within: bool = False) -> bool:
        """Whether there are rows to hand out, and the next bytes are still to come, even ``within`` the next row."""
        state, source = self._state, self._source
        if source is None or not source.live or not state[parsing.ROWS]:
            return False
        if state[parsing.AT] < state[parsing.END] and not within:
            return False
        return not (self._ended or source.ready())

    def _wide(self) -> int:
        """The number of dense attributes; known before the first line is parsed."""
        assert self.format is not None
        return sum(kind == "number" for kind in self.format.settled.get("kinds", ()))

    def _settled(self) -> dict[str, Any]:
        """What was found out about the input, and how it is read."""
        assert self.format is not None
        settled = self.format.settled
        if "reading" not in settled:
            settled["reading"] = {"format": self.kind, **self.options.remembered(), **self.format.learned_keys()}
        return settled

    def remarks(self) -> list[str]:
        """What was noticed on the way."""
        return [] if self.format is None else self.format.remarks()

    def _renew(self, wide: int) -> None:
        """Begin a batch."""
        self._work = self._work._replace(**self._rows_room(self.rows, wide))
        state = self._state
        state[parsing.ROWS] = state[parsing.PLACED] = state[parsing.TAGGED] = 0

    def _batch(self, tags: list[str], unknown: int) -> Batch:
        state, work = self._state, self._work
        rows, placed = int(state[parsing.ROWS]), int(state[parsing.PLACED])
        assert self.format is not None
        over = self._file >= len(self.paths)
        offset, line = self._base + int(state[parsing.AT]), int(state[parsing.LINE])
        position = Position(self._file, 0, 1) if over else Position(self._file, offset, line)
        done = self._source.done() if self._source is not None else 1.0
        share = (self._file + (done or 0.0)) / len(self.paths) if done is not None else None
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
            self.format.dense_names,
            position,
            unknown,
            share,
            self._settled(),
        )
