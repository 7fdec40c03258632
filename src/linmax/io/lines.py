"""From lines to batches: blocks of bytes are read and parsed in memory that does not grow with the input.

Labelled texts: ``label<tab>text``, whose words and n-grams are the attributes.

Vowpal Wabbit's text: ``label |namespace name:value ...``.

svmlight and LIBSVM: ``label index:value ...``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import numpy as np

from linmax.io import lexer
from linmax.io.batch import Batch, Classes, canonical
from linmax.io.blocks import LineBlocks, rows_room, workspace
from linmax.io.delimited import delimiter_of
from linmax.io.lexer import REASONS, Work
from linmax.io.options import REFUSALS_KEPT, Position, ReadOptions, Refusals
from linmax.io.records import TEXT_OPTIONS, StreamFormat
from linmax.io.schema import LABEL_NAMES
from linmax.io.sources import Source
from linmax.io.vocabulary import Vocabulary
from linmax.io.words import letters, words_for

__all__ = ["LineFormat", "LineReader", "Svmlight", "Text", "VowpalWabbit"]

VALUES = 2**18  # of a batch, unless one row has more
FEW_VALUES = 2**10  # for which there is always room
BUFFERS = 8  # batches whose memory may be reused


class LineFormat(StreamFormat):
    """A format of lines with a compiled parser."""

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines (see `linmax.io.lexer`)."""
        raise NotImplementedError

    def new_prefix(self, raw: bytes, vocabulary: Vocabulary) -> None:
        """A namespace was met."""
        raise NotImplementedError

    def new_letters(self) -> None:
        """A letter beyond ASCII was met."""
        raise NotImplementedError


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

        The operating system clears new memory, which takes a tenth of the time of lexer.
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
        self.refusals.add(name, line, REASONS[reason], lexer.with_value(reason, given))

    def _text(self, begin: int, end: int) -> str:
        return self._blocks.block[begin:end].tobytes().decode("utf-8", "backslashreplace")

    def _drain(self) -> None:
        """Take over the refusals of a parser."""
        state, work = self._state, self._work
        count = int(state[lexer.REFUSED])
        if not count:
            return
        for line, reason, begin, end in work.refusals[: min(count, REFUSALS_KEPT)].tolist():
            self._refused(line, reason, self._text(begin, end).strip() if reason in lexer.WITH_VALUE else None)
            work.reasons[reason] -= 1
        for reason, more in enumerate(work.reasons.tolist()):
            if more:
                self.refusals.counts[REASONS[reason]] = self.refusals.counts.get(REASONS[reason], 0) + more
        work.reasons[:] = 0
        state[lexer.REFUSED] = 0

    def _serve(self, needs: int) -> None:
        """Give a parser what it needs."""
        state, work = self._state, self._work
        begin, end = int(state[lexer.FROM]), int(state[lexer.TO])
        if needs == lexer.MORE_VALUES:
            self.values *= 2
            self._work = work._replace(**self._values_room())
        elif needs == lexer.MORE_TOKENS:
            self._work = work._replace(**lexer.room_for_tokens(2 * work.amounts.size))
        elif needs == lexer.MORE_NAMES:
            self.vocabulary.reserve(begin, end)
        elif needs == lexer.LETTERS:
            self.format.new_letters()
        else:
            raw = self._blocks.block[begin:end].tobytes()
            if needs == lexer.NEW_CLASS:
                self.classes.number(raw)
                self.vocabulary.fit_classes(len(self.classes))
                self._work = work._replace(classes=self.classes.numbers)
            elif needs == lexer.NEW_PREFIX:
                self.format.new_prefix(raw, self.vocabulary)
            elif needs == lexer.ASK_NUMBER:
                count = int(state[lexer.ANSWERS])
                answers = work.answers if count < len(work.answers) else np.concatenate([work.answers] * 2)
                answers[count] = begin, float(raw)
                state[lexer.ANSWERS] = count + 1
                self._work = work._replace(answers=answers)

    def _tags(self, before: int, tags: list[str]) -> None:
        """Copy the tags of the rows since ``before`` while their bytes are still there."""
        if self._state[lexer.TAGGED]:
            tags += [""] * (before - len(tags))
            tags += [self._text(*place) for place in self._work.tags[before : int(self._state[lexer.ROWS])].tolist()]

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
            state[lexer.ROWS] = state[lexer.PLACED] = state[lexer.TAGGED] = 0
            tags: list[str] = []
            unknown = int(state[lexer.UNKNOWN])
            while True:
                if state[lexer.ROWS] and state[lexer.AT] >= state[lexer.END] and blocks.waits():
                    break
                if not blocks.more():
                    more = self._next_file()
                    if not more:
                        break
                    continue
                before = int(state[lexer.ROWS])
                needs = self.format.parse(blocks.block, self._work, self.vocabulary, self.classes)
                self._tags(before, tags)
                self._drain()
                if self.strict and self.refusals.total:
                    more = False
                    break
                if needs == lexer.FILLED:
                    break
                if needs != lexer.ENDED:
                    self._serve(needs)
            if state[lexer.ROWS]:
                yield self._batch(tags, int(state[lexer.UNKNOWN]) - unknown)
            if self.strict and self.refusals.total:
                file, line, reason = self.refusals.first[0]
                raise ValueError(f"{file}, line {line}: {reason}")

    def remarks(self) -> list[str]:
        """Return no remarks."""
        return []

    def _batch(self, tags: list[str], unknown: int) -> Batch:
        state, work, source = self._state, self._work, self._blocks.source
        rows, placed = int(state[lexer.ROWS]), int(state[lexer.PLACED])
        over = self._file >= len(self.paths)
        offset, line = self._blocks.base + int(state[lexer.AT]), int(state[lexer.LINE])
        done = source.done() if source is not None else 1.0
        return Batch(
            work.dense[:rows],
            work.indptr[: rows + 1],
            work.indices[:placed],
            work.values[:placed],
            work.labels[:rows],
            work.importance[:rows],
            work.lines[:rows],
            tags + [""] * (rows - len(tags)) if state[lexer.TAGGED] else None,
            len(self.vocabulary),
            self.vocabulary,
            self.classes,
            (),
            Position(self._file, 0, 1) if over else Position(self._file, offset, line),
            unknown,
            (self._file + (done or 0.0)) / len(self.paths) if done is not None else None,
            self.format.settled_with_reading(),
        )


FORMAT_SAMPLE = 20  # lines that decide whether a file is of this format
HEADER_WORDS = 3  # that name the text in a header, at most
LABEL_HEADERS = (*LABEL_NAMES, "labels", "category", "sentiment")  # names of the label in a header, in lower case


class Text(LineFormat):
    """``label<tab>text``; n-grams up to ``options.ngrams`` words.

    Rows to be predicted may be texts alone. There a tab ends a label if one word comes before it, or several that a
    model knows as a class; else it is part of the text.
    """

    endings = (".tsv",)
    title = "labelled text"
    takes = TEXT_OPTIONS

    def __init__(self, options: ReadOptions, kind: str = "text") -> None:
        super().__init__(options, kind)
        self._scratch = np.zeros(0, np.uint8)
        self._words = words_for(options.ngrams)
        self._known = Vocabulary()  # labels of several words
        self._known.numbers([name for name in options.classes if " " in name])

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:
        """One tab in each line, and several words behind one of them."""
        first = lines[:FORMAT_SAMPLE]
        return {line.count(b"\t") for line in first} == {1} and any(
            len(line.split(b"\t")[1].split()) > 1 for line in first
        )

    def begin(self, name: str, head: bytes) -> tuple[int, int]:  # noqa: ARG002
        """Skip a header: the name of a label and a few words, unless that name is a class."""
        line = head.partition(b"\n")[0].decode("utf-8", "replace")
        label, tab, text = line.partition("\t")
        named = label.strip().lower() in LABEL_HEADERS and canonical(label) not in self.options.classes
        if tab and named and len(text.split()) <= HEADER_WORDS and b"\n" + label.encode() + b"\t" not in head:
            note = f"The first line is a header: {line.strip()!r}."
            self.notes += [note] if note not in self.notes else []
            return head.find(b"\n") + 1 or len(head), 1
        return 0, 0

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines."""
        if self._scratch.size < 3 * block.size:
            self._scratch = np.zeros(3 * block.size, np.uint8)
        names, labels = vocabulary.names, classes.texts.names
        return int(lexer.parse_text(block, work, names, labels, self._scratch, self._words, self._known.names))

    def new_letters(self) -> None:
        """Make the table of letters."""
        self._words = self._words._replace(letters=letters())


class VowpalWabbit(LineFormat):
    """``label |namespace name:value ...``."""

    endings = (".vw",)
    title = "Vowpal Wabbit's text"

    def __init__(self, options: ReadOptions, kind: str = "vw") -> None:
        super().__init__(options, kind)
        self._spaces = Vocabulary()

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:
        """A bar, unless it stands in the text behind the only tab, or between the names of columns."""
        line = lines[0]
        if len(lines) > 1 and b" " not in line and b":" not in line and delimiter_of(lines) == "|":
            return False
        return b"|" in line and not (line.count(b"\t") == 1 and line.index(b"\t") < line.index(b"|"))

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines."""
        tables = vocabulary.names, classes.texts.names, self._spaces.names
        return int(lexer.parse_vw(block, work, *tables))

    def new_prefix(self, raw: bytes, vocabulary: Vocabulary) -> None:
        """Number the namespace like its prefix, less one. The vocabulary may have others, from streams before."""
        for head in vocabulary.heads[len(self._spaces) + 1 :]:
            self._spaces.numbers([head.removesuffix(b"^") if head.endswith(b"^") else b"\0" + head])
        number = int(self._spaces.numbers([raw])[0])
        assert vocabulary.prefix(raw + b"^") == number + 1


_PAIRS = re.compile(rb"[^\s|]+(\s+(qid:\d+|cost:[^\s|]+|\d+:[^\s|]+))+\s*(#.*)?")
_LABEL_ONLY = re.compile(rb"[+-]?\d+(\.\d*)?\s*(#.*)?")


class Svmlight(LineFormat):
    """``label index:value ...``."""

    endings = (".svm", ".svmlight", ".libsvm")
    title = "svmlight"

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:
        """A line of pairs; the first may have none."""
        line = lines[1] if len(lines) > 1 and _LABEL_ONLY.fullmatch(lines[0]) else lines[0]
        return _PAIRS.fullmatch(line) is not None

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines."""
        return int(lexer.parse_svmlight(block, work, vocabulary.names, classes.texts.names))
