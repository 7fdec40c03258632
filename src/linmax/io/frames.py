"""Typed tables: Parquet and Arrow files, pandas and polars frames, (X, y) and (X, y, weights).

Columns of numbers are dense attributes (null and nan are missing), columns of text and categories become attributes
``column=value``. Rows come in the order of the table, however it is divided.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.data.labels import no_label
from linmax.io.batches import Batch, Classes
from linmax.io.options import Position, ReadOptions
from linmax.io.parsing import IMPORTANCE, LARGEST_VALUE, NOT_FINITE, REASONS, with_value
from linmax.io.refusals import Refusals
from linmax.io.schema import (
    DATES,
    NUMBER,
    TRUTH,
    TYPE_SAMPLE,
    dense_columns,
    named_columns,
    number_note,
    refuse_repeated,
    schema_of,
    words_type,
)
from linmax.io.vocabulary import ABSENT, Vocabulary
from linmax.io.words import split, words_for
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = ["TableReader", "is_table"]

INEXACT = 2**53  # from here on, whole numbers may be rounded as floats
PLURALS = {"list": "lists", "tuple": "lists", "ndarray": "lists", "dict": "objects", "bytes": "bytes", "set": "sets"}


def is_columnar(data: Any) -> bool:
    """Whether this is a frame, or an Arrow table or batch."""
    return (
        hasattr(data, "__arrow_c_stream__")
        or hasattr(data, "__arrow_c_array__")
        or (hasattr(data, "columns") and hasattr(data, "dtypes"))
    )


def plain(value: Any) -> str:
    """A value as text, whole numbers without a point."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


@dataclass(frozen=True)
class Column:
    """A column: its kind (number, category, or why it is no attribute), and its values as floats or as objects."""

    kind: str
    content: np.ndarray  # float64 with nan for null; int64, uint64 or bool without nulls; or objects with None for null

    def part(self, begin: int, end: int) -> Column:
        """Some rows of it."""
        return Column(self.kind, self.content[begin:end])

    @property
    def beyond(self) -> bool:
        """Whether there are whole numbers that are rounded as floats."""
        if self.content.dtype.kind == "O":
            return any(isinstance(value, int) and abs(value) >= INEXACT for value in self.content.tolist())
        return self.content.dtype.kind in "iu" and bool((np.abs(self.content.astype(float)) >= INEXACT).any())

    def cell(self, row: int) -> str:
        """A value as text."""
        return plain(self.content[row])

    def values(self) -> list[Any]:
        """All values, None for those that are missing."""
        found = self.content.tolist()
        return [None if value is None or value != value else value for value in found]

    def numbers(self) -> tuple[np.ndarray, list[int]]:
        """All values as floats, nan for those missing; and the rows of those that are no numbers."""
        if self.content.dtype.kind != "O":
            return self.content.astype(np.float64), []
        found, strange = np.full(len(self.content), np.nan), []
        for row, value in enumerate(self.content.tolist()):
            try:
                found[row] = np.nan if value is None or value == "" else _number(value)
            except (TypeError, ValueError):
                strange.append(row)
        return found, strange


def _number(value: Any) -> float:
    """A value as a number; true and false may be words."""
    word = value.lower() if isinstance(value, str) else None
    return float(TRUTH.index(word)) if word in TRUTH else float(value)


def columns_of(table: Any) -> tuple[dict[str, Column], int]:
    """Columns by name, and the number of rows."""
    if hasattr(table, "to_pylist") or hasattr(table, "__arrow_c_array__") or hasattr(table, "read_next_batch"):
        return _arrow_columns(table)
    found: dict[str, Column] = {}
    for name in table.columns:
        column = table[name]
        array = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
        found[str(name)] = _of_array(array)
    return found, len(table)


def _of_array(array: np.ndarray) -> Column:
    kind = array.dtype.kind
    if kind in "iub":
        return Column(NUMBER, array)
    if kind == "f":
        return Column(NUMBER, array.astype(np.float64))
    if kind in "mM":
        return Column(DATES, np.array([None if value != value else str(value) for value in array], dtype=object))
    objects = np.array([_cleared(value) for value in array.tolist()] + [None], dtype=object)[:-1]
    return Column(_kind_of(objects), objects)


def _cleared(value: Any) -> Any:
    """None for what is missing."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    return None if type(value).__name__ in ("NAType", "NaTType") else value


def _kind_of(objects: np.ndarray) -> str:
    """The kind of a column of objects: that of its first values."""
    some = [value for value in objects[:1000].tolist() if value is not None]
    for value in some:
        if isinstance(value, (datetime.date, datetime.time, datetime.timedelta, np.datetime64)):
            return DATES
        if type(value).__name__ in PLURALS:
            return PLURALS[type(value).__name__]
        if not isinstance(value, (str, int, float, decimal.Decimal, np.generic)):
            return f"of the type {type(value).__name__}"
    numbers = [isinstance(value, (int, float, decimal.Decimal)) for value in some]
    if numbers and all(numbers):
        return NUMBER
    return words_type([value for value in objects[:TYPE_SAMPLE].tolist() if value is not None])


def _arrow_columns(table: Any) -> tuple[dict[str, Column], int]:
    if hasattr(table, "read_all"):
        table = table.read_all()
    pairs = zip(table.schema.names, table.columns, strict=True)
    return {name: _of_arrow(column) for name, column in pairs}, table.num_rows


def _of_arrow(column: Any) -> Column:
    import pyarrow

    kinds, kind = pyarrow.types, column.type
    if kinds.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if kinds.is_integer(kind) and not column.null_count:
        return Column(NUMBER, np.array(column.to_numpy(zero_copy_only=False)))
    if kinds.is_boolean(kind):
        return Column(NUMBER, np.array(column.to_pylist(), object if column.null_count else bool))
    if kinds.is_integer(kind) and column.type.bit_width == 64:
        objects = column.to_pylist()
        if any(value is not None and abs(value) >= INEXACT for value in objects):  # where it is a name, do not round it
            return Column(NUMBER, np.array([*objects, None], dtype=object)[:-1])
    if kinds.is_decimal(kind):  # Arrow's own cast does not round to the nearest number
        return Column(NUMBER, np.array([np.nan if v is None else float(v) for v in column.to_pylist()], np.float64))
    if kinds.is_integer(kind) or kinds.is_floating(kind):
        array = column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
        return Column(NUMBER, np.array(array, np.float64))
    if kinds.is_temporal(kind):
        return Column(DATES, np.array([*column.cast(pyarrow.string()).to_pylist(), None], dtype=object)[:-1])
    objects = np.array([*column.to_pylist(), None], dtype=object)[:-1]
    if kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind):
        return Column(words_type([value for value in objects[:TYPE_SAMPLE].tolist() if value is not None]), objects)
    if kinds.is_null(kind):
        return Column(NUMBER, np.full(len(objects), np.nan))
    if kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_fixed_size_binary(kind):
        return Column("bytes", objects)
    return Column("lists" if kinds.is_list(kind) or kinds.is_large_list(kind) else f"of the type {kind}", objects)


def is_table(data: Any) -> bool:
    """Whether this is a frame, an Arrow table or batch, or arrays (X, y) or (X, y, weights)."""
    return is_columnar(data) or _pair(data)


def _pair(data: Any) -> bool:
    arrays = isinstance(data, tuple) and len(data) in (2, 3)
    return arrays and (sparse.issparse(data[0]) or isinstance(data[0], np.ndarray))


class TableReader:
    """Reads tables into batches; the counterpart of `linmax.io.lines.LineReader`."""

    def __init__(
        self,
        tables: Iterable[Any],
        options: ReadOptions | None = None,
        vocabulary: Vocabulary | None = None,
        classes: Classes | None = None,
        name: str = "the table",
        kind: str = "table",
    ) -> None:
        self.tables, self.name, self.kind = tables, name, kind
        self.options = options = ReadOptions() if options is None else options
        self.vocabulary = Vocabulary() if vocabulary is None else vocabulary
        self.classes = Classes() if classes is None else classes
        self.grows, self.rows, self.start = options.grows, options.rows, options.position
        self.refusals = Refusals()
        self.notes: list[str] = []
        self.settled: dict[str, Any] = {}
        self._reading: dict[str, Any] = {}  # what a model keeps of arrays, which settle nothing
        self._words = words_for(options.ngrams, table=bool(options.text))
        self._widened: dict[str, int] = {}  # columns of numbers with words in them: the row of the first
        self._passed = 0

    def remarks(self) -> list[str]:
        """Columns of numbers in which words were found."""
        return [
            f"Column {column!r} has words among its numbers, the first in row {row:,}; they are taken as categories."
            for column, row in self._widened.items()
        ]

    def __iter__(self) -> Generator[Batch, None, None]:
        """Batches of rows. Pieces of a table are never joined. The first rows decide what the columns are."""
        empty: dict[str, Column] = {}
        for table in self.tables:
            if _pair(table):
                yield from self._pairs(*table)
                continue
            if not is_columnar(table):
                raise TypeError(
                    f"a stream of tables holds frames, Arrow batches or arrays (X, y), got {type(table).__name__}"
                )
            columns, size = columns_of(table)
            if not size:
                empty = columns
                continue
            if not self.settled:
                self._settle(columns)
            for begin in range(0, size, self.rows):
                end = min(size, begin + self.rows)
                skip = min(max(0, self.start.offset - self._passed - begin), end - begin)
                if begin + skip < end:
                    cut = {name: column.part(begin + skip, end) for name, column in columns.items()}
                    yield self._batch(cut, end - begin - skip, self._passed + begin + skip)
            self._passed += size
        if empty and not self.settled:
            self._settle(empty)

    def _pairs(self, x: Any, y: Any, weights: Any = None) -> Iterator[Batch]:
        """X, y and sample_weight as in scikit-learn; columns are named by their numbers."""
        labels = list(y)
        if np.iscomplexobj(x):
            raise TypeError("X has complex numbers, and attributes are real; give real and imaginary parts as columns")
        if x.shape[0] != len(labels):
            raise ValueError(f"X has {x.shape[0]} rows, but y has {len(labels)}")
        if not self.settled and (remembered := self.options.remembered()):
            self._reading = {"reading": {"format": self.kind, **remembered}}
        row_weights = np.ones(len(labels)) if weights is None else np.asarray(weights, np.float64)
        if row_weights.shape != (len(labels),):
            raise ValueError(f"weights must be one number for each of {len(labels)} rows, got {row_weights.shape}")
        if sparse.issparse(x):
            csr = sparse.csr_array(x).astype(np.float64)
            csr.sum_duplicates()
            numbers = self.vocabulary.numbers([str(i) for i in range(csr.shape[1])], add=self.grows).astype(np.int32)
            for begin in range(0, len(labels), self.rows):
                part = csr[begin : begin + self.rows]
                indices, values = numbers[part.indices], part.data
                keep = (indices != ABSENT) & (values != 0.0)
                kept = np.concatenate([[0], np.cumsum(keep)])[part.indptr]
                block = np.zeros((part.shape[0], 0)), kept.astype(np.int64), indices[keep], values[keep]
                rows = slice(begin, begin + self.rows)
                yield self._made(*block, labels[rows], row_weights[rows], (), begin)
            return
        dense = np.asarray(x, np.float64)
        names = tuple(map(str, range(dense.shape[1])))
        for begin in range(0, len(labels), self.rows):
            part = np.ascontiguousarray(dense[begin : begin + self.rows])
            nothing = np.zeros(len(part) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
            rows = slice(begin, begin + self.rows)
            yield self._made(part, *nothing, labels[rows], row_weights[rows], names, begin)

    def _settle(self, columns: dict[str, Column]) -> None:
        """Decide what the columns are, by those of the first table."""
        header = named_columns(list(columns))
        refuse_repeated(self.name, header)
        of = dict(zip(header, columns.values(), strict=True))
        schema = schema_of(self.name, header, lambda name: of[name].kind, self.options)
        self.notes += schema.notes
        guessed = dict(zip(header, schema.kinds, strict=True))
        texts = {
            name: [value for value in column.content[:TYPE_SAMPLE].tolist() if value is not None]
            for name, column in of.items()
            if guessed[name] == "category" and name not in self.options.categorical
        }
        self.notes += number_note(guessed, texts)
        self.notes += [
            f"Column {name!r} has whole numbers beyond 2^53, which are rounded; if they are names, make it categorical."
            for name, kind in zip(header, schema.kinds, strict=True)
            if kind == "number" and of[name].beyond
        ]
        reading = {"format": self.kind, **self.options.remembered()}
        self.settled = {"header": header, "kinds": schema.kinds, "reading": reading}

    def _batch(self, given: dict[str, Column], size: int, first: int) -> Batch:
        header, kinds = self.settled["header"], self.settled["kinds"]
        columns = dict(zip(named_columns(list(given)), given.values(), strict=True))
        if list(columns) != header and sorted(columns) == sorted(header):
            columns = {name: columns[name] for name in header}
        if list(columns) != header:
            told = f"{', '.join(list(columns)[:5])} ..., not {', '.join(header[:5])} ..."
            raise ValueError(f"{self.name} has other columns than the tables before: {told}")
        of = dict(zip(header, kinds, strict=True))
        label = next((name for name, kind in of.items() if kind == "label"), None)
        labels: list[Any] = [None] * size if label is None else columns[label].values()
        numbers = dense_columns(header, kinds, self.options.known)
        dense, named = np.zeros((size, len(numbers))), _NamedCells()
        for place, name in enumerate(numbers):
            dense[:, place], strange = columns[name].numbers()
            for t in strange:
                self._widened.setdefault(name, first + t + 1)
            named.add(strange, [f"{name}={columns[name].cell(t)}" for t in strange])
        alone = kinds.count("text") == 1
        for name, kind in of.items():
            if kind == "category":
                named.add_column(name, columns[name].values())
            elif kind == "text":
                named.add_texts("" if alone else f"{name}^", columns[name].values(), self._words)
        ids = None if self.options.id is None else columns[self.options.id].values()
        tags = None if ids is None else ["" if value is None else plain(value) for value in ids]
        weighed = next((name for name, kind in of.items() if kind == "weight"), None)
        weights = np.ones(size) if weighed is None else columns[weighed].numbers()[0]
        sparse_rows = named.rows(size, self.vocabulary, self.grows)
        return self._made(dense, *sparse_rows, labels, weights, numbers, first, tags)

    def _made(
        self,
        dense: np.ndarray,
        indptr: np.ndarray,
        indices: np.ndarray,
        values: np.ndarray,
        labels: list[Any],
        weights: np.ndarray,
        names: tuple[str, ...],
        first: int,
        tags: list[str] | None = None,
    ) -> Batch:
        size = len(labels)
        if self.vocabulary.bits is not None or self.vocabulary.full:  # two names may share a column
            rows = sparse.csr_array((values, indices, indptr), shape=(size, len(self.vocabulary)))
            rows.sum_duplicates()
            indptr, indices, values = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data
        with np.errstate(invalid="ignore"):
            wild = (np.abs(dense) > LARGEST_VALUE).any(axis=1)
        far = np.flatnonzero(~(np.abs(values) <= LARGEST_VALUE))
        wild[np.searchsorted(indptr, far, side="right") - 1] = True
        with np.errstate(invalid="ignore"):
            wild |= ~((weights >= 0.0) & (weights <= LARGEST_VALUE))
        codes = self._codes(labels, wild)
        lines = np.arange(first + 1, first + size + 1)
        for t in np.flatnonzero(wild).tolist():
            light = not 0.0 <= weights[t] <= LARGEST_VALUE
            row = np.concatenate([dense[t], values[indptr[t] : indptr[t + 1]]])
            worst = weights[t] if light else row[int(np.nanargmax(np.abs(row)))] if not np.isnan(row).all() else np.nan
            reason = IMPORTANCE if light else NOT_FINITE
            self.refusals.add(self.name, int(lines[t]), REASONS[reason], with_value(reason, f"{worst:g}"))
            if self.options.strict:
                raise ValueError(f"{self.name}, row {int(lines[t])}: {self.refusals.first[-1][2]}")
        if wild.any():
            keep = ~wild
            weights = weights[keep]
            counts = np.diff(indptr)
            flags = np.repeat(keep, counts)
            dense, codes, lines = dense[keep], codes[keep], lines[keep]
            indptr = np.concatenate([[0], np.cumsum(counts[keep])]).astype(np.int64)
            indices, values = indices[flags], values[flags]
            tags = None if tags is None else [tag for tag, kept in zip(tags, keep.tolist(), strict=True) if kept]
        place = Position(self.start.file, first + len(labels), first + len(labels) + 1)
        return Batch(
            dense, indptr, indices, values, codes, weights, lines, tags, len(self.vocabulary), self.vocabulary,
            self.classes, names, place, settled=self.settled or self._reading,
        )  # fmt: skip

    def _codes(self, labels: list[Any], refused: np.ndarray) -> np.ndarray:
        """The class of each label, -1 where there is none or the row is refused; new ones in the order of the rows."""
        found: dict[str, int] = {}
        codes = np.full(len(labels), -1, np.int32)
        for t, (label, bad) in enumerate(zip(labels, refused.tolist(), strict=True)):
            if bad or no_label(label):
                continue
            name = plain(label)
            if name not in found:
                found[name] = self.classes.number(name.encode())
                self.vocabulary.fit_classes(len(self.classes))
            codes[t] = found[name]
        return codes


class _NamedCells:
    """Cells of some rows that are attributes by name, added column by column."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}  # of the names in this batch
        self.parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # rows, places of names, values

    def add(self, rows: Sequence[int], names: Sequence[str], values: Sequence[float] | None = None) -> None:
        """Add cells; ``rows`` never fall."""
        places = [self.places.setdefault(name, len(self.places)) for name in names]
        numbers = np.ones(len(rows)) if values is None else np.array(values, float)
        self.parts.append((np.array(rows, np.int64), np.array(places, np.int64), numbers))

    def add_column(self, column: str, values: Sequence[Any]) -> None:
        """Add categories; None and empty text are missing."""
        present = [(t, value) for t, value in enumerate(values) if value is not None and value != ""]
        self.add([t for t, _ in present], [f"{column}={plain(value)}" for _, value in present])

    def add_texts(self, head: str, values: Sequence[Any], words: Any) -> None:
        """Add the words of texts, with ``head`` before each."""
        cells = [
            (t, head + word, float(times))
            for t, value in enumerate(values)
            if value is not None
            for word, times in split(plain(value), words).items()
        ]
        rows, names, counts = zip(*cells, strict=True) if cells else ((), (), ())
        self.add(rows, names, counts)

    def rows(self, size: int, vocabulary: Vocabulary, grows: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The cells as sparse rows; names are numbered in the order of the rows."""
        if not self.places:
            return np.zeros(size + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
        rows, places, values = (np.concatenate(part) for part in zip(*self.parts, strict=True))
        order = np.argsort(rows, kind="stable")
        rows, places, values = rows[order], places[order], values[order]
        met, first = np.unique(places, return_index=True)
        met = met[np.argsort(first)]
        names = list(self.places)
        numbers = np.full(len(names), ABSENT, np.int64)
        numbers[met] = vocabulary.numbers([names[place] for place in met.tolist()], add=grows)
        found = numbers[places]
        known = found != ABSENT
        ends = np.searchsorted(rows, np.arange(size + 1))
        indptr = np.concatenate([[0], np.cumsum(known)])[ends].astype(np.int64)
        return indptr, found[known].astype(np.int32), values[known]
