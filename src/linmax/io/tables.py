"""Tables as columns of Arrow: frames of pandas and polars, Arrow's own tables and batches, fields of text.

Columns of numbers are dense attributes (null, nan and words such as NA are missing, true is 1 and false is 0), columns
of text and categories become attributes ``column=value``, a text becomes its words. A word in a column of numbers is a
category there, and its number is missing.

Tables with types: Parquet, Arrow's files and streams of record batches, and tables in memory.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from linmax.data.names import no_label
from linmax.io.batch import Batch, Classes
from linmax.io.options import BATCH_ROWS, Position, ReadOptions
from linmax.io.records import COLUMN_OPTIONS, Columns, Items, RecordReader, Records, StreamFormat
from linmax.io.schema import (
    CATEGORY,
    DATES,
    MISSING,
    NUMBER,
    TRUTH,
    TYPE_SAMPLE,
    cell_type,
    dense_columns,
    ignored_note,
    is_number,
    named_columns,
    number_note,
    refuse_repeated,
    schema_of,
    text_note,
    words_type,
)
from linmax.io.sources import Source
from linmax.io.vocabulary import Vocabulary
from linmax.util.checks import warn
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import types
else:
    pa, types = LazyModule("pyarrow"), LazyModule("pyarrow.types")
if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = [
    "Arrow",
    "Column",
    "FrameReader",
    "Frames",
    "Parquet",
    "TableFormat",
    "TableLayout",
    "columns_of",
    "floats",
    "is_columnar",
    "is_table",
    "number_of",
]

INEXACT = 2**53  # from here on, whole numbers may be rounded as floats


def is_columnar(data: Any) -> bool:
    """Return whether this is a frame, or an Arrow table or batch."""
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


@dataclass(frozen=True, eq=False)
class Column:
    """A column: its kind (number, category, or why it is no attribute), and its cells.

    They are numbers, with nan for those missing; an Arrow array of text; or objects with None for those missing.
    """

    kind: str
    cells: Any

    def sample(self, many: int = TYPE_SAMPLE) -> list[Any]:
        """The first values, without those missing."""
        if isinstance(self.cells, np.ndarray):
            return [value for value in self.cells[:many].tolist() if value is not None]
        return [value for value in self.cells[:many].to_pylist() if value is not None]

    @property
    def beyond(self) -> bool:
        """Return whether there are whole numbers that are rounded as floats."""
        if not isinstance(self.cells, np.ndarray):
            return False
        if self.cells.dtype.kind == "O":
            return any(isinstance(value, int) and abs(value) >= INEXACT for value in self.cells.tolist())
        return self.cells.dtype.kind in "iu" and bool((np.abs(self.cells.astype(float)) >= INEXACT).any())

    @cached_property
    def coded(self) -> tuple[np.ndarray, list[Any]]:
        """The place of each cell among the different values, -1 for those missing; and these values."""
        if not isinstance(self.cells, np.ndarray):
            found = self.cells.dictionary_encode()
            codes = found.indices.fill_null(-1) if found.null_count else found.indices
            return np.from_dlpack(codes).astype(np.int64), found.dictionary.to_pylist()  # to_numpy imports pandas
        if self.cells.dtype.kind == "O":
            places: dict[tuple[type, Any], int] = {}
            objects = [-1 if v is None else places.setdefault((type(v), v), len(places)) for v in self.cells.tolist()]
            return np.array(objects, np.int64), [value for _, value in places]
        values, codes = np.unique(self.cells, return_inverse=True)
        codes = np.where(self.cells != self.cells, -1, codes)
        return codes, values.tolist()

    def texts(self) -> tuple[np.ndarray, list[str]]:
        """Return `coded` with values as texts; an empty text is missing, too."""
        codes, values = self.coded
        return codes, [plain(value) for value in values]

    def written(self) -> list[str]:
        """All cells as texts, empty for those missing."""
        codes, texts = self.texts()
        return np.array([*texts, ""], dtype=object)[codes].tolist()

    def read_numbers(self, out: np.ndarray) -> np.ndarray:
        """Write all cells as floats, nan for those missing; returns the rows of words."""
        none = np.zeros(0, np.int64)
        if isinstance(self.cells, np.ndarray) and self.cells.dtype.kind != "O":
            out[:] = self.cells
            return none
        if not isinstance(self.cells, np.ndarray):
            try:
                out[:] = floats(self.cells.cast(pa.float64()))
                return none
            except pa.ArrowInvalid:
                pass
        codes, values = self.coded
        found = [number_of(value) for value in values]
        out[:] = np.array([*(math.nan if number is None else number for number in found), math.nan])[codes]
        return np.flatnonzero(np.array([*(number is None for number in found), False])[codes])


def floats(cells: Any) -> np.ndarray:
    """Return an Arrow array of floats as NumPy's, nan where it is null. (``to_numpy`` would import pandas.)"""
    return np.from_dlpack(cells.fill_null(math.nan) if cells.null_count else cells)


def number_of(value: Any) -> float | None:
    """A value as a number, nan if it is missing, None if it is a word; true and false may be words."""
    if not isinstance(value, str):
        return float(value)
    word = value.lower()
    if word in MISSING:
        return float("nan")
    if word in TRUTH:
        return float(TRUTH.index(word))
    return float(value) if is_number(value) else None


def columns_of(table: Any) -> tuple[dict[str, Column], int]:
    """Columns by name, and the number of rows."""
    if hasattr(table, "dtypes") and hasattr(table, "columns"):
        return {str(name): _of_series(table[name]) for name in table.columns}, len(table)
    if not hasattr(table, "num_rows"):
        table = pa.table(table)
    pairs = zip(table.schema.names, table.columns, strict=True)
    return {name: _of_arrow(column) for name, column in pairs}, table.num_rows


def _of_series(series: Any) -> Column:
    """A column of a frame; one in which types are mixed is a column of objects."""
    try:
        return _of_arrow(series.to_arrow() if hasattr(series, "to_arrow") else pa.array(series, from_pandas=True))
    except (pa.ArrowException, TypeError, OverflowError):
        objects = np.array([*map(_cleared, series.tolist()), None], dtype=object)[:-1]
    values = [value for value in objects.tolist() if value is not None]
    strange = next((v for v in values if not isinstance(v, (str, int, float, decimal.Decimal, np.generic))), None)
    if strange is not None:
        return Column(f"of the type {type(strange).__name__}", objects)
    is_numeric = values and not any(isinstance(value, str) for value in values[:1000])
    return Column(NUMBER if is_numeric else words_type(values[:TYPE_SAMPLE]), objects)


def _cleared(value: Any) -> Any:
    """None for what is missing."""
    return None if value is None or value != value or type(value).__name__ in ("NAType", "NaTType") else value


def _of_arrow(column: Any) -> Column:
    kind = column.type
    if types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        text = column.cast(pa.large_string())
        return Column(words_type([value for value in text[:TYPE_SAMPLE].to_pylist() if value is not None]), text)
    if types.is_integer(kind) and not column.null_count:
        return Column(NUMBER, np.from_dlpack(column))
    if types.is_boolean(kind):
        return Column(NUMBER, np.array(column.to_pylist(), object if column.null_count else bool))
    if types.is_integer(kind) and kind.bit_width == 64:
        objects = column.to_pylist()
        if any(value is not None and abs(value) >= INEXACT for value in objects):  # where it is a name, do not round it
            return Column(NUMBER, np.array([*objects, None], dtype=object)[:-1])
    if types.is_decimal(kind):  # Arrow's own cast does not round to the nearest number
        return Column(NUMBER, np.array([np.nan if v is None else float(v) for v in column.to_pylist()], np.float64))
    if types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind):
        return Column(NUMBER, floats(column.cast(pa.float64(), safe=False)))
    if types.is_temporal(kind):
        return Column(DATES, column.cast(pa.string()))
    if types.is_list(kind) or types.is_large_list(kind):
        return Column("lists", column)
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return Column("bytes", column)
    return Column(f"of the type {kind}", column)


class TableLayout:
    """Records from the columns of tables. The first of them decide what the columns are.

    ``settled`` and ``notes`` are those of the format; ``fields`` says that all cells are text, as in CSV.
    """

    def __init__(self, options: ReadOptions, settled: dict[str, Any], notes: list[str], fields: bool = False) -> None:
        self.options, self.settled, self.notes, self.fields = options, settled, notes, fields
        self.dense_names: tuple[str, ...] = ()
        self.header: list[str] = []
        self.kinds: dict[str, str] = {}
        self.widened: dict[str, tuple[str, int]] = {}  # columns of numbers with words: unit and number of the first
        if "kinds" in settled:
            self._decided()

    def settle(self, name: str, columns: dict[str, Column]) -> None:
        """Decide what the columns are."""
        header, options = named_columns(list(columns)), self.options
        refuse_repeated(name, header)
        of = dict(zip(header, columns.values(), strict=True))
        cells = {column: of[column].sample() for column in header}
        if self.fields:
            cells = {column: [text for text in some if text.lower() not in MISSING] for column, some in cells.items()}
        schema = schema_of(name, header, lambda one: cell_type(cells[one]) if self.fields else of[one].kind, options)
        kinds = dict(zip(header, schema.kinds, strict=True))
        guessed = {column: kind for column, kind in kinds.items() if column not in options.categorical}
        self.notes += [*schema.notes, *(text_note(header, schema.kinds, cells) if self.fields else [])]
        self.notes += number_note(guessed, cells)
        self.notes += [
            f"Column {column!r} has whole numbers beyond 2^53, which are rounded; if they are names, make it "
            "categorical."
            for column, kind in kinds.items()
            if kind == NUMBER and of[column].beyond
        ]
        self.settled |= {"header": header, "kinds": schema.kinds}
        self._decided()

    def _decided(self) -> None:
        self.header, kinds = self.settled["header"], self.settled["kinds"]
        self.kinds = dict(zip(self.header, kinds, strict=True))
        self.dense_names = dense_columns(self.header, kinds, self.options.known)

    def one(self, kind: str) -> str | None:
        """The column of a kind of which there is at most one."""
        return next((name for name, one in self.kinds.items() if one == kind), None)

    def rows(self, name: str, given: dict[str, Column], lines: np.ndarray, unit: str = "line") -> Records:
        """Lay out the rows of a table, and decide first what the columns are if it is the first."""
        if not self.kinds:
            self.settle(name, given)
        columns, size, options = (
            dict(zip(named_columns(list(given)), given.values(), strict=True)),
            len(lines),
            self.options,
        )
        if list(columns) != self.header:
            if sorted(columns) != sorted(self.header):
                message = f"{', '.join(list(columns)[:5])} ..., not {', '.join(self.header[:5])} ..."
                raise ValueError(f"{name} has other columns than the data before it: {message}")
            columns = {column: columns[column] for column in self.header}
        items, alone = Items(), list(self.kinds.values()).count("text") == 1
        dense = np.zeros((size, len(self.dense_names)))
        places = {column: place for place, column in enumerate(self.dense_names)}
        for column, kind in self.kinds.items():
            if kind == "number":
                head = f"{column}=".encode()
                items.head(head)
                words = columns[column].read_numbers(dense[:, places[column]])
                if len(words):
                    self.widened.setdefault(column, (unit, int(lines[words[0]])))
                    codes, texts = columns[column].texts()
                    only = np.full(size, -1)
                    only[words] = codes[words]
                    items.add_coded(head, only, texts)
            elif kind == "category":
                items.add_coded(f"{column}=".encode(), *columns[column].texts())
            elif kind == "text":
                items.add_coded(b"" if alone else f"{column}^".encode(), *columns[column].texts(), is_text=True)
        label, weight = self.one("label"), self.one("weight")
        codes, texts = (np.full(size, -1), []) if label is None else columns[label].texts()
        weights, weight_texts = np.ones(size), None
        if weight is not None:
            weights[columns[weight].read_numbers(weights)] = np.nan
            weight_texts = None if (weights >= 0.0).all() and (weights < np.inf).all() else columns[weight].written()
        return Records(
            name, lines, codes, texts, dense, items.by_row(size), weights, weight_texts, unit=unit,
            dense_names=self.dense_names, tags=None if options.id is None else columns[options.id].written(),
        )  # fmt: skip

    def remarks(self) -> list[str]:
        """Columns of numbers in which words were found."""
        return [
            f"Column {column!r} has words among its numbers, the first in {unit} {number:,}; they are taken as "
            "categories."
            for column, (unit, number) in self.widened.items()
        ]


ipc = LazyModule("pyarrow.ipc")
parquet = LazyModule("pyarrow.parquet")


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


class ArrowTables(TableFormat):
    """A format that pyarrow reads. A file is memory-mapped; a pipe or a compressed file is read into memory first."""

    title: ClassVar[str]

    def record_batches(self, file: Any) -> Iterator[Any]:
        """The batches of an open pyarrow file; if there are none, an empty table with its columns."""
        raise NotImplementedError

    def tables(self, source: Source) -> Iterator[Any]:
        """Record batches."""
        pyarrow = import_module("pyarrow")
        try:
            file = (
                pyarrow.memory_map(str(source.path)) if source.plain_file else pyarrow.BufferReader(source.read_all())
            )
            with file:
                yield from self.record_batches(file)
        except pyarrow.ArrowException as error:
            raise ValueError(f"{source.name} cannot be read as {self.title}: {error}") from None

    def columns(self, source: Source) -> Columns:
        """Columns with their types; empty text is None."""
        found: Columns = {}
        for table in self.tables(source):
            refuse_repeated(source.name, table.schema.names)
            for name, column in zip(table.schema.names, table.columns, strict=True):
                found.setdefault(name, []).extend(None if v in ("", None) else v for v in column.to_pylist())
        return found


class Arrow(ArrowTables):
    """Arrow IPC, as a file or as a stream."""

    endings = (".arrow", ".feather", ".ipc")
    first_bytes = (b"ARROW1", b"\xff\xff\xff\xff")
    title = "Arrow"

    def record_batches(self, file: Any) -> Iterator[Any]:
        """Try a file first, then a stream."""
        invalid: type[Exception] = import_module("pyarrow").ArrowInvalid
        try:
            opened = ipc.open_file(file)
        except invalid:
            file.seek(0)
            with ipc.open_stream(file) as stream:
                yield stream.schema.empty_table()
                yield from stream
            return
        yield opened.schema.empty_table()
        for i in range(opened.num_record_batches):
            yield opened.get_batch(i)


class Parquet(ArrowTables):
    """Parquet, in batches of rows."""

    endings = (".parquet",)
    first_bytes = (b"PAR1",)
    title = "Parquet"

    def record_batches(self, file: Any) -> Iterator[Any]:
        """As many rows as a batch has unless another number is asked for."""
        with parquet.ParquetFile(file) as opened:
            yield opened.schema_arrow.empty_table()
            yield from opened.iter_batches(batch_size=BATCH_ROWS)


def _is_pair(data: Any) -> bool:
    arrays = isinstance(data, tuple) and len(data) in (2, 3)
    return arrays and (sparse.issparse(data[0]) or isinstance(data[0], np.ndarray))


def is_table(data: Any) -> bool:
    """Return whether this is a frame, an Arrow table or batch, or arrays (X, y) or (X, y, weights)."""
    return is_columnar(data) or _is_pair(data)


class Frames(TableFormat):
    """Frames, Arrow tables and batches, and arrays (X, y) or (X, y, weights) in memory."""

    of_files = False

    def rows(self, source: Any, start: Position | None) -> Iterator[Records]:
        """The rows of a table; columns of arrays are named by their numbers."""
        if not _is_pair(source):
            return super().rows(source, start)
        return iter([self._of_arrays(*source)])

    def tables(self, source: Any) -> Iterator[Any]:
        """The table itself."""
        if not is_columnar(source):
            given = type(source).__name__
            raise TypeError(f"a stream of tables holds frames, Arrow batches or arrays (X, y), got {given}")
        yield source

    def settled_with_reading(self) -> dict[str, Any]:
        """Return the findings that a model stores; arrays have none."""
        if not self.settled and not self.options.remembered():
            return self.settled
        return super().settled_with_reading()

    def _of_arrays(self, x: Any, y: Any, weights: Any = None) -> Records:
        labels, items = list(y), Items()
        size = len(labels)
        if np.iscomplexobj(x):
            raise TypeError("X has complex numbers, and attributes are real; give real and imaginary parts as columns")
        if x.shape[0] != size:
            raise ValueError(f"X has {x.shape[0]} rows, but y has {size}")
        row_weights = np.ones(size) if weights is None else np.asarray(weights, np.float64)
        if row_weights.shape != (size,):
            raise ValueError(f"weights must be one number for each of {size} rows, got {row_weights.shape}")
        texts = {} if size == 0 else dict.fromkeys("" if no_label(label) else plain(label) for label in labels)
        places = {text: place for place, text in enumerate(texts)}
        codes = np.array([places["" if no_label(label) else plain(label)] for label in labels], np.int64)
        dense_names: tuple[str, ...] = ()
        names = [str(column) for column in range(x.shape[1])]
        if sparse.issparse(x):
            csr = sparse.csr_array(x).astype(np.float64)
            csr.sum_duplicates()
            csr.eliminate_zeros()
            spans = items.spans([name.encode() for name in names])
            items.add(np.repeat(np.arange(size), np.diff(csr.indptr)), spans[csr.indices], 0, csr.data)
            dense = np.zeros((size, 0))
        else:
            dense, dense_names = np.require(x, np.float64, "W"), tuple(names)  # kernels take no read-only arrays
        lines = np.arange(self._passed + 1, self._passed + size + 1)
        self._passed += size
        return Records(
            "the table",
            lines,
            codes,
            list(texts),
            dense,
            items.by_row(size),
            row_weights,
            unit="row",
            dense_names=dense_names,
        )


class FrameReader:
    """Reads frames without labels as rows of attributes, as streams are read; the first frame decides the columns.

    Numbers are dense attributes, text and categories sparse ones, whose names it numbers as they come.

    Examples
    --------
    >>> import pandas as pd
    >>> reader = FrameReader.of(pd.DataFrame({"size": [1.0, None], "color": ["red", "blue"]}))
    >>> batch = reader.read(pd.DataFrame({"size": [2.0], "color": ["red"]}), grow=True)
    >>> list(batch.dicts())
    [{'size': 2.0, 'color=red': 1.0}]
    """

    def __init__(self, kinds: dict[str, str], vocabulary: Vocabulary | None = None) -> None:
        self.kinds, self.vocabulary = kinds, Vocabulary() if vocabulary is None else vocabulary

    @classmethod
    def of(cls, frame: Any) -> FrameReader:
        """Decide the columns by a frame; those left out, such as dates, are named in a warning."""
        kinds, left_out = dict[str, str](), dict[str, list[str]]()
        for name, column in columns_of(frame)[0].items():
            kinds[name] = column.kind if column.kind in (NUMBER, CATEGORY) else "ignored"
            if kinds[name] == "ignored":
                left_out.setdefault(column.kind, []).append(name)
        for reason, names in left_out.items():
            warn(ignored_note(reason, names))
        if not {NUMBER, CATEGORY} & {*kinds.values()}:
            raise ValueError("X has no column of numbers, text, categories or booleans; give one")
        return cls(kinds)

    @staticmethod
    def has_categories(frame: Any) -> bool:
        """Return whether a frame has anything but numbers, and so is not the same as an array."""
        return any(column.kind != NUMBER for column in columns_of(frame)[0].values())

    def read(self, frame: Any, grow: bool) -> Batch:
        """Return the rows of a frame; with ``grow`` new categories get a column, else they are left out."""
        options = ReadOptions(known=self.kinds, unlabelled=True, grows=grow, strict=True, rows=2**62)
        batches = list(RecordReader([frame], Frames(options), self.vocabulary, Classes()))
        if not batches:
            raise ValueError("X must have at least one row, got a table with 0 samples")
        return batches[0]
