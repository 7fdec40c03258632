"""Records that formats lay out, from lines, tables and JSON: their names are numbered batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from linmax.io import lexer
from linmax.io.bytes import PADDING
from linmax.io.lexer import (
    HEAD,
    ITEM,
    LARGEST_VALUE,
    REASONS,
    SPAN,
    START,
    WHOLE_TEXT,
)
from linmax.io.numbering import ItemRows
from linmax.io.read_options import Position, ReadOptions, Refusals
from linmax.io.sources import LineBlocks, Source

__all__ = ["Columns", "Items", "Records", "Row", "RowFormat", "StreamFormat"]


class Items:
    """Attributes of rows by name: spans of bytes with heads before them, or texts whose words are attributes."""

    def __init__(self) -> None:
        self.source: list[bytes] = []
        self.size = 0
        self.heads: dict[bytes, int] = {b"": 0}
        self.parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # rows, items, values
        self.has_texts = False

    def head(self, head: bytes) -> int:
        """Number what names begin with."""
        return self.heads.setdefault(head, len(self.heads))

    def spans(self, texts: list[bytes]) -> np.ndarray:
        """Add bytes to the source; returns where each of them begins, and its length."""
        sizes = np.fromiter(map(len, texts), np.int64, len(texts))
        ends = self.size + np.cumsum(sizes)
        self.source += texts
        self.size = int(ends[-1]) if len(texts) else self.size
        return np.column_stack([ends - sizes, sizes])

    def add(
        self,
        rows: np.ndarray,
        spans: np.ndarray,
        heads: int | np.ndarray = 0,
        values: float | np.ndarray = 1.0,
        is_text: bool = False,
    ) -> None:
        """Add an attribute, or a text, to each of these rows, which must not fall."""
        items = np.empty((len(rows), ITEM), np.int64)
        items[:, [START, SPAN]], items[:, HEAD] = spans, WHOLE_TEXT - np.asarray(heads) if is_text else heads
        self.parts.append((rows, items, np.broadcast_to(np.asarray(values, np.float64), len(rows))))
        self.has_texts |= is_text

    def add_coded(self, head: bytes, codes: np.ndarray, texts: list[str], is_text: bool = False) -> None:
        """Add the text of each row's code; -1 and empty texts have none."""
        raw = [text.encode("utf-8", "surrogateescape") for text in texts]
        present = np.array([*map(bool, texts), False])[codes]
        spans = self.text_spans(raw) if is_text else self.spans(raw)
        self.add(np.flatnonzero(present), spans[codes[present]], self.head(head), is_text=is_text)

    def text_spans(self, texts: list[bytes]) -> np.ndarray:
        """Add texts to the source, each as one line."""
        return self.spans([text.replace(b"\0", b" ").replace(b"\n", b" ") + b"\n" for text in texts])

    def by_row(self, rows: int) -> ItemRows:
        """Return the items in the order of the rows."""
        counts = [np.bincount(part, minlength=rows) for part, _, _ in self.parts]
        starts = np.concatenate([[0], np.cumsum(sum(counts, np.zeros(rows, np.int64)))])
        items, values, free = np.empty((starts[-1], ITEM), np.int64), np.empty(starts[-1]), starts[:-1].copy()
        for many, (part, spans, amounts) in zip(counts, self.parts, strict=True):
            places = (free - np.cumsum(many) + many)[part] + np.arange(len(part))
            items[places], values[places] = spans, amounts
            free += many
        source = np.frombuffer(b"".join([*self.source, bytes(PADDING)]), np.uint8)
        heads = [*self.heads]
        found = ItemRows(source, self.size, items, values, starts, heads, np.arange(len(heads)), self.has_texts)
        return found.with_room()


@dataclass(eq=False)
class Records:
    """Records of a file or table, to be numbered.

    Attributes
    ----------
    name, lines, unit
        The input, the number of each row in it, and what these numbers count.
    codes, texts
        The label of each row: its place among the texts, -1 without one.
    dense, dense_names, items
        Attributes: columns of numbers with their names, and attributes by name.
    weights, weight_texts, tags
        The weights as numbers and as they are written, and the tag of each row.
    offsets, after, end
        For input of bytes: where the line after each row begins, its number, and both after all rows.
    done
        The share of the input that was read.
    is_checked
        Whether no number is too large, or missing, to be learned from.
    """

    name: str
    lines: np.ndarray
    codes: np.ndarray
    texts: list[str]
    dense: np.ndarray
    items: ItemRows
    weights: np.ndarray
    weight_texts: list[str] | None = None
    tags: list[str] | None = None
    unit: str = "line"
    offsets: np.ndarray | None = None
    after: np.ndarray | None = None
    end: tuple[int, int] | None = None
    done: float | None = None
    dense_names: tuple[str, ...] = ()
    is_checked: bool = False

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def wild(self) -> np.ndarray:
        """Records with a number or a weight that cannot be learned from."""
        if self.is_checked:
            return np.zeros(len(self), bool)
        with np.errstate(invalid="ignore"):
            found: np.ndarray = ~((self.weights >= 0.0) & (self.weights <= LARGEST_VALUE))
            if self.dense.size:
                found |= (np.abs(self.dense) > LARGEST_VALUE).any(axis=1)
            far = np.flatnonzero(~(np.abs(self.items.values) <= LARGEST_VALUE))
        found[np.searchsorted(self.items.starts, far, side="right") - 1] = True
        return found

    def blame(self, row: int) -> tuple[int, str]:
        """The reason to refuse a row, and the number because of which."""
        weight = self.weights[row]
        if not 0.0 <= weight <= LARGEST_VALUE:
            return lexer.IMPORTANCE, f"{weight:g}" if self.weight_texts is None else self.weight_texts[row]
        begin, end = self.items.starts[row : row + 2]
        numbers = np.concatenate([self.dense[row], self.items.values[begin:end]])
        return (
            lexer.NOT_FINITE,
            f"{numbers[int(np.nanargmax(np.abs(numbers)))] if (numbers == numbers).any() else np.nan:g}",
        )


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
        First bytes by which a file of this format is recognized.
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

    def refuse(self, file: str, line: int, reason: str, message: str | None = None, unit: str = "line") -> None:
        """Count a line or row that cannot be read, or raise, if reading is strict."""
        if self.options.strict:
            raise ValueError(f"{file}, {unit} {line}: {message or reason}")
        self.refusals.add(file, line, reason, message)

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:
        """Return whether these may be the first lines of such a file; there is at least one, and all are non-empty."""
        return False

    def refuse_options(self, name: str) -> None:
        """Refuse options that do not concern this format."""
        for option in self.options.given():
            if option not in self.takes | self.options.learned | EVERYWHERE:
                shown = "no-header" if option == "header" else option
                raise ValueError(f"{shown} does not apply to {name}, which is {self.title}; remove it")
            if option in TEXT_OPTIONS - self.options.learned and self.rectangular and not self.options.text:
                raise ValueError(f"{option} is for texts, and no column of {name} is one; name it by --text")

    # -- rows -----------------------------------------------------------------------------------------------------

    def begin(self, name: str, head: bytes) -> tuple[int, int]:
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
        return LineBlocks(source, self, start)

    def refuse_long_line(self, file: str, line: int) -> None:
        """Count a line that is too long, or raise."""
        self.refuse(file, line, REASONS[lexer.TOO_LONG])

    def learned_keys(self) -> dict[str, Any]:
        """Facts about the input that a model stores to read other data alike."""
        return {}

    def settled_with_reading(self) -> dict[str, Any]:
        """Return the findings about the input, and how it is read."""
        if "reading" not in self.settled:
            self.settled["reading"] = {"format": self.kind, **self.options.remembered(), **self.learned_keys()}
        return self.settled

    def remarks(self) -> list[str]:
        """Return remarks collected while reading."""
        return []

    # -- columns --------------------------------------------------------------------------------------------------

    @classmethod
    def has_columns(cls) -> bool:
        """Return whether it can give the cells of its columns."""
        return cls.columns is not StreamFormat.columns

    def columns(self, source: Source) -> Columns:
        """All cells, column by column; notes ``lines`` as far as rows are lines, and gives bad ones to `refuse`."""
        raise NotImplementedError(f"{source.name}: this format has no columns")


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
        """Label, attributes and text of a non-blank line, or the reason for refusing it (see `linmax.io.lexer`)."""
        raise NotImplementedError

    def rows(self, source: Source, start: Position | None) -> Iterator[Records]:
        """The rows of each block of lines."""
        blocks = self.blocks(source, start)
        while blocks.more():
            raw, line, place = blocks.lines(), blocks.line, blocks.place
            lines = raw.split(b"\n")[:-1]
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
                message = lexer.with_value(row, self.strange) if row in lexer.WITH_VALUE else None
                self.refuse(name, number, REASONS[row], message)
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
            heads = np.array([items.head(head) for _, head, _ in texts], np.int64)
            spans = items.text_spans([text for _, _, text in texts])
            items.add(np.array([row for row, _, _ in texts]), spans, heads, is_text=True)
        if names:
            items.add(np.repeat(np.arange(len(counts)), counts), items.spans(names), 0, np.array(values, float))
        lines_of = np.array(numbers, np.int64)
        return Records(
            name, lines_of, np.array(codes, np.int64), [label.decode("utf-8", "surrogateescape") for label in labels],
            np.zeros((len(codes), 0)), items.by_row(len(codes)), np.array(weights, float),
            tags=tags if any(tags) else None, offsets=np.array(offsets, np.int64), after=lines_of + 1,
        )  # fmt: skip
