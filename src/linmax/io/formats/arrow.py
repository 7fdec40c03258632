"""Files that pyarrow reads: Parquet, and Arrow's files and streams of record batches."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, ClassVar

from linmax.io.formats.base import Columns, TableFormat
from linmax.io.options import BATCH_ROWS
from linmax.io.schema import refuse_repeated
from linmax.io.sources import Source
from linmax.util.lazy import LazyModule

__all__ = ["Arrow", "ArrowTables", "Parquet"]

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
