"""Tables in memory and in files: frames of pandas and polars, Arrow's tables and batches, Parquet, arrays.

Columns of numbers are dense attributes (null, nan and words such as NA are missing, true is 1 and false is 0), columns
of text and categories become attributes ``column=value``, a text becomes its words. A word in a column of numbers is a
category there, and its number is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from linmax.data.names import no_label
from linmax.io.batch import Batch
from linmax.io.columns import Fields, Numbers, columns_of, is_columnar, plain
from linmax.io.read_options import BATCH_ROWS, Position, ReadOptions
from linmax.io.reader import StreamReader
from linmax.io.records import COLUMN_OPTIONS, Columns, Items, Records, StreamFormat
from linmax.io.schema import (
    CATEGORY,
    MISSING,
    NUMBER,
    cell_type,
    dense_columns,
    ignored_note,
    named_columns,
    number_note,
    refuse_other_columns,
    refuse_repeated,
    schema_of,
    text_note,
)
from linmax.io.sources import Source
from linmax.io.vocabulary import Vocabulary
from linmax.util.checks import warn
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import ipc, parquet
    from scipy import sparse
else:
    pa, ipc, parquet = LazyModule("pyarrow"), LazyModule("pyarrow.ipc"), LazyModule("pyarrow.parquet")
    sparse = LazyModule("scipy.sparse")
Batches: TypeAlias = "pa.RecordBatch | pa.Table"

__all__ = ["Arrow", "FrameReader", "Frames", "Parquet", "TableFormat", "TableLayout", "is_columnar", "is_table"]


class TableLayout:
    """Lays out records from the columns of tables. The first table decides what the columns are.

    ``settled`` and ``notes`` are those of the format.
    """

    def __init__(self, options: ReadOptions, settled: dict[str, Any], notes: list[str]) -> None:
        self.options, self.settled, self.notes = options, settled, notes
        self.kinds: dict[str, str] = {}
        self.dense_names: tuple[str, ...] = ()
        self.widened: dict[str, tuple[str, int]] = {}  # columns of numbers with words: unit and number of the first
        if "kinds" in settled:
            self._decided()

    def settle(self, name: str, given: Mapping[str, Fields | Numbers]) -> None:
        """Decide what the columns are."""
        header, options = named_columns(list(given)), self.options
        refuse_repeated(name, header)
        columns = dict(zip(header, given.values(), strict=True))
        cells: dict[str, list[Any]] = {column: [*of.sample()] for column, of in columns.items()}
        untyped = [column for column, of in columns.items() if not of.kind]  # as in CSV: the texts decide
        for column in untyped:
            cells[column] = [text for text in cells[column] if text.lower() not in MISSING]
        schema = schema_of(name, header, lambda one: columns[one].kind or cell_type(cells[one]), options)
        kinds = dict(zip(header, schema.kinds, strict=True))
        guessed = {column: kind for column, kind in kinds.items() if column not in options.categorical}
        self.notes += [*schema.notes, *(text_note(header, schema.kinds, cells) if untyped else [])]
        self.notes += number_note(guessed, cells)
        self.notes += [
            f"Column {column!r} has whole numbers beyond 2^53, which are rounded; if they are names, make it "
            "categorical."
            for column, kind in kinds.items()
            if kind == NUMBER and columns[column].is_rounded
        ]
        self.settled |= {"header": header, "kinds": schema.kinds}
        self._decided()

    def _decided(self) -> None:
        header, kinds = self.settled["header"], self.settled["kinds"]
        self.kinds = dict(zip(header, kinds, strict=True))
        self.dense_names = dense_columns(header, kinds, self.options.known)

    def one(self, kind: str) -> str | None:
        """The column of a kind of which there is at most one."""
        return next((name for name, one in self.kinds.items() if one == kind), None)

    def rows(self, name: str, given: Mapping[str, Fields | Numbers], lines: np.ndarray, unit: str = "line") -> Records:
        """Lay out the rows of a table, and decide first what the columns are if it is the first."""
        if not self.kinds:
            self.settle(name, given)
        columns = dict(zip(named_columns(list(given)), given.values(), strict=True))
        if sorted(columns) != sorted(self.kinds):
            refuse_other_columns(name, list(columns), list(self.kinds))
        size, items, alone = len(lines), Items(), [*self.kinds.values()].count("text") == 1
        dense = np.zeros((size, len(self.dense_names)))
        for column, kind in self.kinds.items():
            head = f"{column}=".encode()
            if kind == NUMBER:
                items.head(head)
                words = columns[column].read_numbers(dense[:, self.dense_names.index(column)])
                if len(words):
                    self.widened.setdefault(column, (unit, int(lines[words[0]])))
                    codes, texts = columns[column].coded
                    only = np.full(size, -1)
                    only[words] = codes[words]
                    items.add_coded(head, only, texts)
            elif kind == CATEGORY:
                items.add_coded(head, *columns[column].coded)
            elif kind == "text":
                items.add_coded(b"" if alone else f"{column}^".encode(), *columns[column].coded, is_text=True)
        label, weight, id = self.one("label"), self.one("weight"), self.options.id
        codes, texts = (np.full(size, -1), []) if label is None else columns[label].coded
        weights, weight_texts = np.ones(size), None
        if weight is not None:
            weights[columns[weight].read_numbers(weights)] = np.nan
            weight_texts = None if (weights >= 0.0).all() and (weights < np.inf).all() else columns[weight].written()
        return Records(
            name, lines, codes, texts, dense, items.by_row(size), weights, weight_texts, unit=unit,
            dense_names=self.dense_names, tags=None if id is None else columns[id].written(),
        )  # fmt: skip

    def remarks(self) -> list[str]:
        """Columns of numbers in which words were found."""
        return [
            f"Column {column!r} has words among its numbers, the first in {unit} {number:,}; they are taken as "
            "categories."
            for column, (unit, number) in self.widened.items()
        ]


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


def _opened(source: Source, title: str, read: Callable[[pa.NativeFile], Iterator[Batches]]) -> Iterator[Batches]:
    """Tables in a source. A file is memory-mapped; a pipe or a packed file is read into memory first."""
    try:
        mapped = source.plain_file
        with pa.memory_map(str(source.path)) if mapped else pa.BufferReader(source.read_all()) as file:
            yield from read(file)
    except pa.ArrowException as error:
        raise ValueError(f"{source.name} cannot be read as {title}: {error}") from None


def _columns(name: str, tables: Iterable[Batches]) -> Columns:
    """Columns with their types; empty text is None."""
    found: Columns = {}
    for table in tables:
        refuse_repeated(name, table.schema.names)
        for column, cells in zip(table.schema.names, table.columns, strict=True):
            found.setdefault(column, []).extend(None if v in ("", None) else v for v in cells.to_pylist())
    return found


def _read_arrow(file: pa.NativeFile) -> Iterator[Batches]:
    """An empty table with the columns, and the batches of a file, or else of a stream."""
    try:
        opened = ipc.open_file(file)
    except pa.ArrowInvalid:
        file.seek(0)
        with ipc.open_stream(file) as stream:
            yield stream.schema.empty_table()
            yield from stream
        return
    yield opened.schema.empty_table()
    for i in range(opened.num_record_batches):
        yield opened.get_batch(i)


def _read_parquet(file: pa.NativeFile) -> Iterator[Batches]:
    """An empty table with the columns, and batches of rows."""
    with parquet.ParquetFile(file) as opened:
        yield opened.schema_arrow.empty_table()
        yield from opened.iter_batches(batch_size=BATCH_ROWS)


class Arrow(TableFormat):
    """Arrow IPC, as a file or as a stream."""

    endings = (".arrow", ".feather", ".ipc")
    first_bytes = (b"ARROW1", b"\xff\xff\xff\xff")
    title = "Arrow"

    def tables(self, source: Source) -> Iterator[Batches]:
        """Record batches."""
        return _opened(source, self.title, _read_arrow)

    def columns(self, source: Source) -> Columns:
        """Columns with their types; empty text is None."""
        return _columns(source.name, self.tables(source))


class Parquet(TableFormat):
    """Parquet, in batches of rows."""

    endings = (".parquet",)
    first_bytes = (b"PAR1",)
    title = "Parquet"

    def tables(self, source: Source) -> Iterator[Batches]:
        """Record batches."""
        return _opened(source, self.title, _read_parquet)

    def columns(self, source: Source) -> Columns:
        """Columns with their types; empty text is None."""
        return _columns(source.name, self.tables(source))


def _is_pair(data: object) -> bool:
    if not isinstance(data, tuple) or len(data) not in (2, 3):
        return False
    return bool(sparse.issparse(data[0]) or isinstance(data[0], np.ndarray))


def is_table(data: object) -> bool:
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
        batches = list(StreamReader([frame], None, options, self.vocabulary, format=Frames(options)))
        if not batches:
            raise ValueError("X must have at least one row, got a table with 0 samples")
        return batches[0]
