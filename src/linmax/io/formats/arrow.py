"""Tables with types: Parquet, Arrow's files and streams of record batches, and tables in memory."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from linmax.data.labels import no_label
from linmax.io.formats.base import Columns, TableFormat
from linmax.io.options import BATCH_ROWS, Position
from linmax.io.records import Items, Records
from linmax.io.schema import refuse_repeated
from linmax.io.sources import Source
from linmax.io.tables import is_columnar, plain
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = ["Arrow", "ArrowTables", "Frames", "Parquet", "is_table"]

ipc = LazyModule("pyarrow.ipc")
parquet = LazyModule("pyarrow.parquet")


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
    """Whether this is a frame, an Arrow table or batch, or arrays (X, y) or (X, y, weights)."""
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
        """What a model stores of arrays, which settle nothing, and of tables."""
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
            dense, dense_names = np.asarray(x, np.float64), tuple(names)
        lines = np.arange(self._passed + 1, self._passed + size + 1)
        self._passed += size
        return Records(
            "the table", lines, codes, list(texts), dense, items, row_weights, unit="row", dense_names=dense_names
        )
