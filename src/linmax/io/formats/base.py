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
from linmax.io.lines import LineBlocks
from linmax.io.options import Position, ReadOptions
from linmax.io.parsing import REASONS, Work
from linmax.io.records import Items, Records
from linmax.io.refusals import Refusals
from linmax.io.sources import Source
from linmax.io.tables import TableLayout, columns_of
from linmax.io.vocabulary import Vocabulary

__all__ = ["Columns", "LineFormat", "Row", "RowFormat", "StreamFormat", "TableFormat"]

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
    kind
        The name by which users call it.
    endings
        File extensions, in lower case. If two formats share one, the first lines decide.
    first_bytes
        First bytes by which a file of this format is recognised.
    rectangular
        Whether every row has the same columns, with visibly missing values.
    takes
        The options of reading that concern it, of those that do not concern every format.
    of_files, of_bytes
        Whether it reads files, and positions in them are those of bytes.
    sample, first_row
        Number of lines that `begin` wants to see, and the number of the line that completes the first row: a pipe that
        pauses after it is not waited for.
    settled
        What it found out about the input: plain data, enough to continue elsewhere.
    notes
        What it found out and the user should know.
    lines, refusals, left_out, objects
        The lines that could not be read. Of a file that was read as columns: the line of each row, the columns to
        ignore that were there, and the key of JSON whose object a column stands in.
    """

    endings: ClassVar[tuple[str, ...]] = ()
    first_bytes: ClassVar[tuple[bytes, ...]] = ()
    rectangular: ClassVar[bool] = False
    takes: ClassVar[frozenset[str]] = frozenset()
    title: ClassVar[str] = "of a format without it"
    of_files: ClassVar[bool] = True
    of_bytes: ClassVar[bool] = True
    sample: ClassVar[int] = 0
    first_row: int = 1

    def __init__(self, options: ReadOptions, kind: str = "") -> None:
        self.options, self.kind = options, kind
        self.settled: dict[str, Any] = dict(options.settled or {})
        self.notes: list[str] = []
        self.lines: list[int] = []
        self.refusals = Refusals()
        self.left_out: set[str] = set()
        self.objects: dict[str, str] = {}

    def refuse(self, file: str, line: int, reason: str, told: str | None = None, unit: str = "line") -> None:
        """Count a line or row that cannot be read, or raise, if reading is strict."""
        if self.options.strict:
            raise ValueError(f"{file}, {unit} {line}: {told or reason}")
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

    # -- rows -----------------------------------------------------------------------------------------------------

    def begin(self, name: str, head: bytes) -> tuple[int, int]:  # noqa: ARG002
        """Look at the first lines of a file; returns the bytes and lines that are not data."""
        return 0, 0

    def lines_wanted(self) -> int:
        """Number of lines that `begin` wants to see."""
        return 0 if self.settled else self.sample

    def rows(self, source: Any, start: Position | None) -> Iterator[Records]:
        """Records of a source, from a position on or all of them; not of formats with a compiled parser."""
        raise NotImplementedError

    def blocks(self, source: Source, start: Position | None) -> LineBlocks:
        """The blocks of a source, from its first data or a position on."""
        if start is not None and not self.settled:
            raise ValueError("a position needs what was settled before it; give settled=batch.settled as well")

        def refuse(line: int, reason: int) -> None:
            self.refuse(source.name, line, REASONS[reason])

        size = self.options.block if source.left is None else min(self.options.block, source.left + 1)
        found = LineBlocks(size, np.zeros(parsing.WIDTH, np.int64), refuse)
        found.open(source, self, start)
        return found

    def learned_keys(self) -> dict[str, Any]:
        """Facts about the input that a model stores to read other data alike."""
        return {}

    def settled_with_reading(self) -> dict[str, Any]:
        """What was found out about the input, and how it is read."""
        if "reading" not in self.settled:
            self.settled["reading"] = {"format": self.kind, **self.options.remembered(), **self.learned_keys()}
        return self.settled

    def remarks(self) -> list[str]:
        """What was noticed while rows were read."""
        return []

    # -- columns --------------------------------------------------------------------------------------------------

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
    of_bytes = False

    def __init__(self, options: ReadOptions, kind: str = "table") -> None:
        super().__init__(options, kind)
        self.settled = {}
        self.layout = TableLayout(options, self.settled, self.notes)
        self._passed = 0  # rows of earlier tables

    def tables(self, source: Any) -> Iterator[Any]:
        """The tables of a file, one after the other: frames, or Arrow tables and batches."""
        raise NotImplementedError

    def rows(self, source: Any, start: Position | None) -> Iterator[Records]:  # noqa: ARG002
        """The rows of each table; the first one with rows decides what the columns are."""
        empty, name = None, source.name if self.of_files else "the table"
        self._passed = 0 if self.of_files else self._passed
        for table in self.tables(source):
            columns, size = columns_of(table)
            if not size:
                empty = columns
                continue
            found = self.layout.rows(name, columns, np.arange(self._passed + 1, self._passed + size + 1), "row")
            self._passed += size
            yield found
        if empty is not None and not self.settled:
            self.layout.settle(name, empty)

    def remarks(self) -> list[str]:
        """Columns of numbers in which words were found."""
        return self.layout.remarks()


class LineFormat(StreamFormat):
    """A format of lines with a compiled parser."""

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines (see `linmax.io.parsing`)."""
        raise NotImplementedError

    def new_prefix(self, raw: bytes, vocabulary: Vocabulary) -> None:
        """A namespace was met."""
        raise NotImplementedError

    def new_letters(self) -> None:
        """A letter beyond ASCII was met."""
        raise NotImplementedError


class RowFormat(StreamFormat):
    """A format whose lines are read by Python, one by one, in `row`; a kernel numbers what they hold.

    A row may set ``self.id`` to its tag, and ``self.weight`` to how much it counts; one that returns IMPORTANCE or
    NOT_FINITE puts what was given into ``self.strange``.
    """

    takes = TEXT_OPTIONS

    def __init__(self, options: ReadOptions, kind: str = "") -> None:
        super().__init__(options, kind)
        self.id, self.weight, self.strange = "", 1.0, ""

    def row(self, raw: bytes) -> Row | int:
        """Label, attributes and text of a non-blank line, or the reason for refusing it (see `linmax.io.parsing`)."""
        raise NotImplementedError

    def rows(self, source: Source, start: Position | None) -> Iterator[Records]:
        """The rows of each block of lines."""
        blocks = self.blocks(source, start)
        while blocks.more():
            raw, line = blocks.lines(), int(blocks.state[parsing.LINE])
            place, lines = blocks.base + int(blocks.state[parsing.AT]), raw.split(b"\n")[:-1]
            blocks.advance(len(raw), len(lines))
            found = self._laid_out(source.name, lines, line, place)
            found.end, found.done = (place + len(raw), line + len(lines)), source.done()
            yield found

    def _laid_out(self, name: str, lines: list[bytes], first: int, place: int) -> Records:
        """Read lines, of which the first has a number and a place in the file."""
        labels: dict[bytes, int] = {}
        codes, numbers, offsets, tags, weights = list[int](), list[int](), list[int](), list[str](), list[float]()
        names, values, counts = list[bytes](), list[float](), list[int]()
        texts: list[tuple[int, bytes, bytes]] = []  # row, head, text
        for number, raw in enumerate(lines, start=first):
            place += len(raw) + 1
            if not raw.strip(b" \t\r"):
                continue
            self.id, self.weight, self.strange = "", 1.0, ""
            row = self.row(raw)
            if isinstance(row, int):
                told = parsing.with_value(row, self.strange) if row in parsing.WITH_VALUE else None
                self.refuse(name, number, REASONS[row], told)
                continue
            label, features, bodies = row
            for head, body in bodies if isinstance(bodies, list) else [(b"", bodies)] * (bodies != b""):
                texts.append((len(codes), head, body))
            names += [one for one, _ in features]
            values += [value for _, value in features]
            counts.append(len(features))
            codes.append(labels.setdefault(label, len(labels)) if label else -1)
            numbers.append(number)
            offsets.append(place)
            tags.append(self.id)
            weights.append(self.weight)
        items = Items()
        if texts:
            raws = [text.replace(b"\0", b" ").replace(b"\n", b" ") + b"\n" for _, _, text in texts]
            heads = np.array([items.head(head) for _, head, _ in texts], np.int64)
            items.add(np.array([row for row, _, _ in texts]), items.spans(raws), heads, is_text=True)
        if names:
            items.add(np.repeat(np.arange(len(counts)), counts), items.spans(names), 0, np.array(values, float))
        lines_of = np.array(numbers, np.int64)
        return Records(
            name, lines_of, np.array(codes, np.int64), [label.decode("utf-8", "surrogateescape") for label in labels],
            np.zeros((len(codes), 0)), items, np.array(weights, float), tags=tags if any(tags) else None,
            offsets=np.array(offsets, np.int64), after=lines_of + 1,
        )  # fmt: skip
