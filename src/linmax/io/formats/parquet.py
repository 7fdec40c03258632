"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from linmax.io.formats.arrow import ArrowTables
from linmax.io.options import BATCH_ROWS
from linmax.util.lazy import LazyModule

__all__ = ["Parquet"]

parquet = LazyModule("pyarrow.parquet")


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
