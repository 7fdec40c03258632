"""Typed tables: Parquet and Arrow files, pandas and polars frames, (X, y) pairs.

Columns of numbers are dense attributes (null and nan are missing), columns of text and categories become attributes
``column=value``. Rows come in the order of the table, however it is divided.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.io.batches import Batch, Classes
from linmax.io.columns import Column, columns_of, is_columnar
from linmax.io.columns import plain as _plain
from linmax.io.options import Position, ReadOptions
from linmax.io.parsing import LARGEST, NOT_FINITE, REASONS
from linmax.io.refusals import Refusals
from linmax.io.schema import dense_columns, named_columns, refuse_repeated, schema_of
from linmax.io.vocabulary import ABSENT, Vocabulary
from linmax.io.words import split, words_for
from linmax.util.lazy import Later

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = Later("scipy.sparse")

__all__ = ["TableReader", "is_table"]


def is_table(data: Any) -> bool:
    """Whether this is a frame, an Arrow table or batch, or a pair (X, y)."""
    return is_columnar(data) or _pair(data)


def _pair(data: Any) -> bool:
    return isinstance(data, tuple) and len(data) == 2 and (sparse.issparse(data[0]) or isinstance(data[0], np.ndarray))


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
        self._words = words_for(options.words, options.ngrams, options.skips, table=bool(options.text))
        self._widened: dict[str, int] = {}  # columns of numbers with words in them: the row of the first
        self._passed = 0

    def remarks(self) -> list[str]:
        """Columns of numbers in which words were found."""
        return [
            f"Column {column!r} has words among its numbers, the first in row {row:,}; they are taken as categories."
            for column, row in self._widened.items()
        ]

    def __iter__(self) -> Generator[Batch, None, None]:
        """Batches of rows. Pieces of a table are never joined."""
        for table in self.tables:
            if _pair(table):
                yield from self._pairs(*table)
                continue
            if not is_columnar(table):
                raise TypeError(
                    f"a stream of tables holds frames, Arrow batches or pairs (X, y), got {type(table).__name__}"
                )
            columns, size = columns_of(table)
            if not self.settled:
                self._settle(columns)
            for begin in range(0, size, self.rows):
                end = min(size, begin + self.rows)
                skip = min(max(0, self.start.offset - self._passed - begin), end - begin)
                if begin + skip < end:
                    cut = {name: column.part(begin + skip, end) for name, column in columns.items()}
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

    def _settle(self, columns: dict[str, Column]) -> None:
        """Decide what the columns are, by those of the first table."""
        header = named_columns(list(columns))
        refuse_repeated(self.name, header)
        of = dict(zip(header, columns.values(), strict=True))
        schema = schema_of(self.name, header, lambda name: of[name].kind, self.options)
        self.notes += schema.notes
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
        dense = np.zeros((size, len(numbers)))
        parts: list[list[tuple[str, float]]] = [[] for _ in range(size)]
        for place, name in enumerate(numbers):
            dense[:, place], strange = columns[name].numbers()
            for t in strange:
                self._widened.setdefault(name, first + t + 1)
                parts[t].append((f"{name}={columns[name].cell(t)}", 1.0))
        alone = kinds.count("text") == 1
        for name, kind in of.items():
            if kind in ("category", "text"):
                for t, value in enumerate(columns[name].values()):
                    if value is not None:
                        head = "" if alone else f"{name}^"
                        found = split(_plain(value), self._words) if kind == "text" else {f"{name}={_plain(value)}": 1}
                        head = head if kind == "text" else ""
                        parts[t] += [(head + word, float(times)) for word, times in found.items()]
        tagged = next((name for name, kind in of.items() if kind == "id"), None)
        tags = None if tagged is None else ["" if v is None else _plain(v) for v in columns[tagged].values()]
        return self._made(dense, *self._sparse(parts), labels, numbers, first, tags)

    def _sparse(self, parts: list[list[tuple[str, float]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sparse rows of names with values; names are numbered in the order of the rows."""
        found = self.vocabulary.numbers([name for part in parts for name, _ in part], add=self.grows)
        values = np.array([value for part in parts for _, value in part])
        known = found != ABSENT
        ends = np.cumsum([0, *map(len, parts)])
        indptr = np.concatenate([[0], np.cumsum(known)])[ends].astype(np.int64)
        return indptr, found[known].astype(np.int32), values[known]

    def _made(
        self,
        dense: np.ndarray,
        indptr: np.ndarray,
        indices: np.ndarray,
        values: np.ndarray,
        labels: list[Any],
        names: tuple[str, ...],
        first: int,
        tags: list[str] | None = None,
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
            tags = None if tags is None else [tag for tag, kept in zip(tags, keep.tolist(), strict=True) if kept]
        size = len(codes)
        place = Position(self.start.file, first + len(labels), first + len(labels) + 1)
        return Batch(
            dense, indptr, indices, values, codes, np.ones(size), lines, tags, len(self.vocabulary), self.vocabulary,
            self.classes, names, place, settled=self.settled,
        )  # fmt: skip

    def _code(self, label: Any) -> int:
        if label is None or label != label:
            return -1
        return self.classes.number(_plain(label).encode())
