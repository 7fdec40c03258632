"""Typed tables: Parquet and Arrow files, pandas and polars frames, (X, y) pairs.

Columns of numbers are dense attributes (null and nan are missing), columns of text and categories become attributes
``column=value``. Rows come in the order of the table, however it is divided.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.io.batches import Batch, Classes
from linmax.io.options import Position, ReadOptions
from linmax.io.parsing import LARGEST, NOT_FINITE, REASONS
from linmax.io.refusals import Refusals
from linmax.io.schema import column_kinds, dense_columns
from linmax.io.vocabulary import ABSENT, Vocabulary
from linmax.util.lazy import Later

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = Later("scipy.sparse")

__all__ = ["TableReader", "is_table"]


def is_table(data: Any) -> bool:
    """Whether this is a frame, an Arrow table or batch, or a pair (X, y)."""
    return _columnar(data) or _pair(data)


def _columnar(data: Any) -> bool:
    return (
        hasattr(data, "__arrow_c_stream__")
        or hasattr(data, "__arrow_c_array__")
        or (hasattr(data, "columns") and hasattr(data, "dtypes"))
    )


def _pair(data: Any) -> bool:
    return isinstance(data, tuple) and len(data) == 2 and (sparse.issparse(data[0]) or isinstance(data[0], np.ndarray))


class TableReader:
    """Reads tables into batches; the counterpart of `linmax.io.lines.LineReader`."""

    kind = "table"

    def __init__(
        self,
        tables: Iterable[Any],
        options: ReadOptions | None = None,
        vocabulary: Vocabulary | None = None,
        classes: Classes | None = None,
        name: str = "the table",
    ) -> None:
        self.tables, self.name = tables, name
        self.options = options = ReadOptions() if options is None else options
        self.vocabulary = Vocabulary() if vocabulary is None else vocabulary
        self.classes = Classes() if classes is None else classes
        self.grows, self.rows, self.start = options.grows, options.rows, options.position
        self.refusals = Refusals()
        self.settled: dict[str, Any] = {}
        self._passed = 0

    def __iter__(self) -> Generator[Batch, None, None]:
        """Batches of rows. Pieces of a table are never joined."""
        for table in self.tables:
            if _pair(table):
                yield from self._pairs(*table)
                continue
            if not _columnar(table):
                raise TypeError(
                    f"a stream of tables holds frames, Arrow batches or pairs (X, y), got {type(table).__name__}"
                )
            columns, size = _columns(table)
            for begin in range(0, size, self.rows):
                end = min(size, begin + self.rows)
                skip = min(max(0, self.start.offset - self._passed - begin), end - begin)
                if begin + skip < end:
                    cut = {name: column[begin + skip : end] for name, column in columns.items()}
                    yield self._batch(cut, end - begin - skip, self._passed + begin + skip)
            self._passed += size

    def _pairs(self, x: Any, y: Any) -> Iterator[Batch]:
        """X and y as in scikit-learn; columns are named by their numbers."""
        labels = list(y)
        if x.shape[0] != len(labels):
            raise ValueError(f"X has {x.shape[0]} rows, but y has {len(labels)}")
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
                yield self._made(*block, labels[begin : begin + self.rows], (), begin)
            return
        dense = np.asarray(x, np.float64)
        names = tuple(map(str, range(dense.shape[1])))
        for begin in range(0, len(labels), self.rows):
            part = np.ascontiguousarray(dense[begin : begin + self.rows])
            nothing = np.zeros(len(part) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
            yield self._made(part, *nothing, labels[begin : begin + self.rows], names, begin)

    def _batch(self, columns: dict[str, np.ndarray], size: int, first: int) -> Batch:
        header = list(columns)
        kinds = column_kinds(self.name, header, lambda name: columns[name].dtype.kind == "f", self.options)
        of = dict(zip(header, kinds, strict=True))
        self.settled = {"header": header, "kinds": kinds}
        label = next((name for name, kind in of.items() if kind == "label"), None)
        labels: list[Any] = [None] * size if label is None else list(columns[label])
        used = {name: c for name, c in columns.items() if of[name] == "category"}
        numbers = dense_columns(header, kinds, self.options.known)
        dense = np.column_stack([columns[name] for name in numbers]) if numbers else np.zeros((size, 0))
        if dense.dtype.kind != "f":
            raise ValueError(f"{self.name} has text where numbers were learned from, in one of {', '.join(numbers)}")
        indptr, indices = self._categories(used, size)
        values = np.ones(len(indices))
        return self._made(np.ascontiguousarray(dense), indptr, indices, values, labels, numbers, first)

    def _categories(self, columns: dict[str, np.ndarray], size: int) -> tuple[np.ndarray, np.ndarray]:
        """Sparse rows of ``column=value``; names are numbered in the order of the rows."""
        texts = [
            f"{name}={_plain(value)}" if value is not None and value == value else None
            for row in zip(*columns.values(), strict=True)
            for name, value in zip(columns, row, strict=True)
        ]
        there = np.array([text is not None for text in texts], bool).reshape(size, len(columns))
        found = self.vocabulary.numbers([text for text in texts if text is not None], add=self.grows)
        numbers = np.full(there.shape, ABSENT, np.int64)
        numbers[there] = found
        known = numbers != ABSENT
        indptr = np.concatenate([[0], np.cumsum(known.sum(axis=1))]).astype(np.int64)
        return indptr, numbers[known].astype(np.int32)

    def _made(
        self,
        dense: np.ndarray,
        indptr: np.ndarray,
        indices: np.ndarray,
        values: np.ndarray,
        labels: list[Any],
        names: tuple[str, ...],
        first: int,
    ) -> Batch:
        size = len(labels)
        if self.vocabulary.bits is not None:  # two names may share a column
            rows = sparse.csr_array((values, indices, indptr), shape=(size, len(self.vocabulary)))
            rows.sum_duplicates()
            indptr, indices, values = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data
        with np.errstate(invalid="ignore"):
            wild = (np.abs(dense) > LARGEST).any(axis=1)
        far = np.flatnonzero(~(np.abs(values) <= LARGEST))
        wild[np.searchsorted(indptr, far, side="right") - 1] = True
        codes = np.array(
            [self._code(label) if not bad else -1 for label, bad in zip(labels, wild, strict=True)], np.int32
        )
        lines = np.arange(first + 1, first + size + 1)
        for t in np.flatnonzero(wild).tolist():
            self.refusals.add(self.name, int(lines[t]), REASONS[NOT_FINITE])
            if self.options.strict:
                raise ValueError(f"{self.name}, row {int(lines[t])}: {REASONS[NOT_FINITE]}")
        if wild.any():
            keep = ~wild
            counts = np.diff(indptr)
            flags = np.repeat(keep, counts)
            dense, codes, lines = dense[keep], codes[keep], lines[keep]
            indptr = np.concatenate([[0], np.cumsum(counts[keep])]).astype(np.int64)
            indices, values = indices[flags], values[flags]
        size = len(codes)
        place = Position(self.start.file, first + len(labels), first + len(labels) + 1)
        return Batch(
            dense, indptr, indices, values, codes, np.ones(size), lines, None, len(self.vocabulary), self.vocabulary,
            self.classes, names, place, settled=self.settled,
        )  # fmt: skip

    def _code(self, label: Any) -> int:
        if label is None or label != label:
            return -1
        return self.classes.number(_plain(label).encode())


def _plain(value: Any) -> str:
    """A value as text, whole numbers without a point."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _columns(table: Any) -> tuple[dict[str, np.ndarray], int]:
    """Columns by name: numbers as floats with nan for null, all else as objects with None for null."""
    if hasattr(table, "to_pylist") or hasattr(table, "__arrow_c_array__") or hasattr(table, "read_next_batch"):
        return _arrow_columns(table)
    found: dict[str, np.ndarray] = {}
    for name in table.columns:
        column = table[name]
        array = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
        found[str(name)] = _typed(str(name), array)
    return found, len(table)


def _arrow_columns(table: Any) -> tuple[dict[str, np.ndarray], int]:
    import pyarrow

    if hasattr(table, "read_all"):
        table = table.read_all()
    found: dict[str, np.ndarray] = {}
    for name, column in zip(table.schema.names, table.columns, strict=True):
        kind = column.type
        if pyarrow.types.is_dictionary(kind):
            column = column.cast(kind.value_type)
            kind = kind.value_type
        if pyarrow.types.is_boolean(kind):
            column = column.cast(pyarrow.int8())
        if pyarrow.types.is_boolean(kind) or pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind):
            array = column.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
            found[name] = np.array(array, np.float64)
        else:
            found[name] = _typed(name, np.array(column.to_pylist(), dtype=object))
    return found, table.num_rows


def _typed(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind in "fiub":
        return array.astype(np.float64)
    objects = np.array(array, dtype=object)
    for i, value in enumerate(objects):
        if (
            value is None
            or (isinstance(value, float) and value != value)
            or type(value).__name__ in ("NAType", "NaTType")
        ):
            objects[i] = None
        elif not isinstance(value, (str, int, float, bool, np.generic)):
            raise ValueError(
                f"column {name!r} holds {type(value).__name__}, which is neither a number nor text; ignore it"
            )
    return objects
