"""Rows of a stream in another order, and whether they need it: files are often sorted by class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from linmax.io.batches import Batch

__all__ = ["LONG_RUNS", "Runs", "shuffled"]

SHUFFLED_BATCH_ROWS = 4096  # of a batch in the new order
LONG_RUNS = 25  # times as few runs of equal labels as in random order: rows look sorted
FEWEST_ROWS = 200  # rows that are needed to say so


def shuffled(batches: Iterable[Batch], seed: int = 0) -> Iterator[Batch]:
    """All rows of these batches in a random order; all of them are read, and held in memory, before the first comes."""
    found = list(batches)
    if not found:
        return
    last, starts = found[-1], np.cumsum([0, *(len(batch.values) for batch in found)])
    dense = np.concatenate([batch.dense for batch in found])
    begins = np.concatenate([batch.indptr[:-1] + first for batch, first in zip(found, starts[:-1], strict=True)])
    lengths = np.concatenate([np.diff(batch.indptr) for batch in found])
    indices, values = (np.concatenate([getattr(batch, name) for batch in found]) for name in ("indices", "values"))
    codes, importance, lines = (
        np.concatenate([getattr(batch, name) for batch in found]) for name in ("codes", "importance", "lines")
    )
    tags = None if all(batch.tags is None for batch in found) else [t for b in found for t in b.tags or [""] * len(b)]
    order = np.random.default_rng(seed).permutation(len(codes))
    for first in range(0, len(order), SHUFFLED_BATCH_ROWS):
        rows = order[first : first + SHUFFLED_BATCH_ROWS]
        indptr = np.concatenate([[0], np.cumsum(lengths[rows])]).astype(last.indptr.dtype)
        places = np.repeat(begins[rows] - indptr[:-1], lengths[rows]) + np.arange(indptr[-1])
        yield replace(
            last,
            dense=np.ascontiguousarray(dense[rows]),
            indptr=indptr,
            indices=np.ascontiguousarray(indices[places]),
            values=np.ascontiguousarray(values[places]),
            codes=codes[rows],
            importance=importance[rows],
            lines=lines[rows],
            tags=None if tags is None else [tags[row] for row in rows.tolist()],
            done=(first + len(rows)) / len(order),
        )


class Runs:
    """Counts how long the same label comes row after row."""

    def __init__(self) -> None:
        self.rows = self.runs = 0
        self.last = -1
        self.counts = np.zeros(0, np.int64)  # rows of each class

    def count(self, codes: np.ndarray) -> None:
        """Count further labels; rows without one are left out."""
        known = codes[codes >= 0]
        if known.size:
            self.runs += int(np.count_nonzero(np.diff(known, prepend=self.last)))
            self.rows, self.last = self.rows + known.size, int(known[-1])
            counts = np.bincount(known, minlength=len(self.counts))
            counts[: len(self.counts)] += self.counts
            self.counts = counts

    @property
    def long(self) -> bool:
        """Whether rows look sorted by class: far fewer runs than a random order of the same labels would have."""
        return self.rows >= FEWEST_ROWS and self.runs > 1 and self.expected >= LONG_RUNS * self.runs

    @property
    def expected(self) -> float:
        """Number of runs to expect if the same labels came in random order."""
        shares = self.counts / max(1, self.rows)
        return float(1.0 + (self.rows - 1) * (1.0 - (shares**2).sum()))
