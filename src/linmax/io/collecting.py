"""Rows of many batches as one matrix, for uses that need all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.io.batches import Batch
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = ["CollectedRows"]


class CollectedRows:
    """The sparse rows of batches, with the names of their classes.

    Examples
    --------
    >>> import linmax
    >>> rows = CollectedRows(linmax.stream(["a | x:2", "b | y x"], rows=1))
    >>> rows.labels, rows.matrix([0, 1]).toarray().tolist()
    (['a', 'b'], [[2.0, 0.0], [1.0, 1.0]])
    """

    def __init__(self, batches: Iterable[Batch]) -> None:
        self.labels: list[str] = []
        counts, indices, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0)]
        for batch in batches:
            self.labels += batch.labels.tolist()
            counts.append(np.diff(batch.indptr))
            indices.append(batch.indices.copy())  # the batch has room for more values than it holds
            values.append(batch.values.copy())
        self._indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        self._indices, self._values = np.concatenate(indices), np.concatenate(values)

    def matrix(self, columns: Sequence[int]) -> Any:
        """All rows as CSR; ``columns`` gives the place of each name of the vocabulary."""
        shape = (len(self.labels), max(columns, default=-1) + 1)
        placed = np.array(columns, np.int64)[self._indices]
        found = sparse.csr_array((self._values, placed, self._indptr), shape=shape)
        found.sort_indices()
        return found
