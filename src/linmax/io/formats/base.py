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
from linmax.io.refusals import Refusals
from linmax.io.scan import PADDING
from linmax.io.sources import Source
from linmax.io.vocabulary import Vocabulary
from linmax.io.words import letters, words_for
from linmax.jit.compiling import address_of
from linmax.util.lazy import LazyModule

__all__ = ["Columns", "LineFormat", "Row", "RowFormat", "ScratchFormat", "StreamFormat", "TableFormat"]

packed = LazyModule("linmax.io.parsers.packed")
text_parser = LazyModule("linmax.io.parsers.text")

Columns = dict[str, list[Any]]  # the unchanged cells of each column, None for an empty one
Texts = bytes | list[tuple[bytes, bytes]]  # a text, or several, each with what its words begin with
Row = tuple[bytes, list[tuple[bytes, float]], Texts]  # label, names with their values, and a text
EVERYWHERE = frozenset({"pairs"})  # options that concern every format
TEXT_OPTIONS = frozenset({"ngrams"})
COLUMN_OPTIONS = frozenset({"label", "weight", "ignore", "categorical", "text", "id"}) | TEXT_OPTIONS


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
    takes
        The options of reading that concern it, of those that do not concern every format.
    notes
        What it has found out about the input and the user should know.
    lines, refusals, left_out, objects
        Of a file that was read as columns: the line of each row, the lines that could not be read, the columns to
        ignore that were there, and the key of JSON whose object a column stands in.
    """

    endings: ClassVar[tuple[str, ...]] = ()
    first_bytes: ClassVar[tuple[bytes, ...]] = ()
    rectangular: ClassVar[bool] = False
    takes: ClassVar[frozenset[str]] = frozenset()
    title: ClassVar[str] = "of a format without it"

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self.notes: list[str] = []
        self.lines: list[int] = []
        self.refusals = Refusals()
        self.left_out: set[str] = set()
        self.objects: dict[str, str] = {}

    def refuse(self, file: str, line: int, reason: str, told: str | None = None) -> None:
        """Count a line of a table that cannot be read, or raise, if reading is strict."""
        if self.options.strict:
            raise ValueError(f"{file}, line {line}: {told or reason}")
        self.refusals.add(file, line, reason, told)

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:  # noqa: ARG003
        """Whether these may be the first lines of such a file; there is at least one, and all are non-empty."""
        return False

    def refuse_options(self, name: str) -> None:
        """Refuse options that do not concern this format."""
        for option in self.options.given():
            if option not in self.takes | self.options.learned | EVERYWHERE:
                shown = "no-header" if option == "header" else option
                raise ValueError(f"{shown} does not apply to {name}, which is {self.title}; leave it out")
            if option in TEXT_OPTIONS - self.options.learned and self.rectangular and not self.options.text:
                raise ValueError(f"{option} is for texts, and no column of {name} is one; name it by --text")

    @classmethod
    def has_columns(cls) -> bool:
        """Whether it can give the cells of its columns."""
        return cls.columns is not StreamFormat.columns

    def columns(self, source: Source) -> Columns:
        """All cells, column by column; notes ``lines`` as far as rows are lines, and gives bad ones to `refuse`."""
        raise NotImplementedError(f"{source.name}: this format has no columns")


class TableFormat(StreamFormat):
    """A format of typed tables."""

    rectangular = True
    takes = COLUMN_OPTIONS

    def tables(self, source: Source) -> Iterator[Any]:
        """The tables of a file, one after the other: what `linmax.io.frames.TableReader` takes."""
        raise NotImplementedError


class LineFormat(StreamFormat):
    """A format of lines. ``settled`` is what it found out about the input: plain data, enough to continue elsewhere.

    ``sample`` is the number of lines that `begin` wants to see, ``first_row`` the number of the line that completes the
    first row: a pipe that pauses after it is not waited for.
    """

    sample: ClassVar[int] = 0
    first_row: int = 1

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self.settled: dict[str, Any] = {}
        self.dense_names: tuple[str, ...] = ()

    def begin(self, name: str, head: bytes) -> tuple[int, int]:  # noqa: ARG002
        """Look at the first lines of a file; returns the bytes and lines that are not data."""
        return 0, 0

    def lines_wanted(self) -> int:
        """Number of lines that `begin` wants to see."""
        return 0 if self.settled else self.sample

    def restore(self, settled: dict[str, Any]) -> None:
        """Continue with what was found out before."""
        self.settled = settled

    def learned_keys(self) -> dict[str, Any]:
        """Facts about the input that a model stores to read other data alike."""
        return {}

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

    def new_letters(self) -> None:
        """A letter beyond ASCII was met."""
        raise NotImplementedError

    def tag(self, block: np.ndarray, begin: int, end: int) -> str:
        """The tag of a row, from the place that the parser noted."""
        return block[begin:end].tobytes().decode("utf-8", "backslashreplace")

    def blamed(self, block: np.ndarray, begin: int, end: int) -> str:
        """What a line was refused for, from the place that the parser noted."""
        return block[begin:end].tobytes().decode("utf-8", "backslashreplace").strip()

    def remarks(self) -> list[str]:
        """What was noticed while lines were taken."""
        return []


class ScratchFormat(LineFormat):
    """A format whose parser copies parts of a line."""

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self._scratch = np.zeros(PADDING, np.uint8)
        self.words = words_for(options.ngrams)

    def room_for(self, block: np.ndarray) -> np.ndarray:
        """Scratch for fields and their words, and zeros beyond."""
        size = 3 * block.size
        if self._scratch.size < size:
            self._scratch = np.zeros(size, np.uint8)
        return self._scratch

    def new_letters(self) -> None:
        """Make the table of letters."""
        self.words = self.words._replace(letters=letters())

    def taking_words(self, texts: bool) -> int:
        """The address of what takes the words of texts; 0 without any, since it takes a second to compile."""
        return address_of(text_parser.put_words, text_parser.WORDS) if texts else 0

    def aside(self) -> np.ndarray:
        """The scratch."""
        return self._scratch


class RowFormat(ScratchFormat):
    """A format whose lines are read by Python, one by one, in `row`; a kernel numbers what they hold.

    A row may set ``self.id`` to its tag, and ``self.weight`` to how much it counts; one that returns IMPORTANCE puts
    what was given as its weight into ``self.strange``.
    """

    takes = TEXT_OPTIONS

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self.id, self.weight = "", 1.0
        self._ids: list[str] = []
        self._weights: list[float] = []
        self.strange: list[str] = []
        self._texts = np.zeros((0, 2), np.int64)
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
            self._unpack(block, int(state[parsing.AT]), int(state[parsing.END]), vocabulary)
        scratch, before = self.room_for(self._source), int(state[parsing.ROWS])
        found = int(
            packed.parse_packed(
                block, work, vocabulary.names, classes.texts.names, self._source, scratch, self.words,
                self._lines, self._names, self._amounts, self._texts, self.taking_words(len(self._texts) > 0),
            )
        )  # fmt: skip
        state[parsing.TAGGED] |= any(self._ids)
        rows = slice(before, int(state[parsing.ROWS]))
        work.importance[rows] = np.array(self._weights)[work.tags[rows, 0]]
        return found

    def tag(self, block: np.ndarray, begin: int, end: int) -> str:  # noqa: ARG002
        """What `row` has set for that line."""
        return self._ids[begin]

    def blamed(self, block: np.ndarray, begin: int, end: int) -> str:  # noqa: ARG002
        """What `row` has noted."""
        return self.strange.pop(0) if self.strange else ""

    def _unpack(self, block: np.ndarray, begin: int, end: int, vocabulary: Vocabulary) -> None:
        """Read all lines of the block into the arrays of `parse_packed`."""
        self._unpacked = True
        lines: list[tuple[int, int, int, int]] = []
        labels, names, bodies, heads, amounts = list[bytes](), list[bytes](), list[bytes](), list[int](), list[float]()
        self._ids, self._weights, self.strange = [], [], []
        place = begin
        for raw in block[begin:end].tobytes().split(b"\n")[:-1]:
            place += len(raw) + 1
            label, first, above, reason = b"", len(names), len(bodies), 0
            self.id, self.weight = "", 1.0
            row = self.row(raw) if raw.strip(b" \t\r") else -1
            if isinstance(row, int):
                reason = row
            else:
                label, features, texts = row
                for name, value in features:
                    names.append(name)
                    amounts.append(value)
                for head, body in texts if isinstance(texts, list) else [(b"", texts)] * (texts != b""):
                    bodies.append(body.replace(b"\0", b" ").replace(b"\n", b" ") + b"\n")
                    heads.append(vocabulary.prefix(head) if head else 0)
            labels.append(label)
            self._ids.append(self.id)
            self._weights.append(self.weight)
            lines.append((len(bodies) - above, len(names) - first, reason, place))
        parts = [*labels, *names, *bodies]
        ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
        places = np.column_stack([ends[:-1], ends[1:]])
        many = len(labels)
        self._lines = np.column_stack([places[:many], np.array(lines, np.int64).reshape(-1, 4)])
        self._names = np.ascontiguousarray(places[many : many + len(names)])
        starts = places[many + len(names) :, 0]
        self._texts = np.column_stack([starts, np.array(heads, np.int64)])
        self._amounts = np.array(amounts, float)
        self._source = np.frombuffer(b"".join([*parts, bytes(PADDING)]), np.uint8).copy()
