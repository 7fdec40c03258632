"""Places of coordinates in arrays: rows of classes, their strides, and what moves when they grow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linmax.core.contract import Trials
from linmax.core.linear_max import longest_row
from linmax.data.arrays import Layout

__all__ = ["aligned", "appearing", "coordinates", "largest_rating", "most_touched", "stride_for"]


def most_touched(trials: Trials) -> int:
    """Most coordinates that a z can touch."""
    attributes = 1 + trials.dense.shape[1] + longest_row(trials.indptr)
    return trials.signs.size + trials.scores.shape[1] + 2 * attributes


def largest_rating(trials: Trials) -> float:
    """Largest magnitude of any rating."""
    blocks = [trials.signs, trials.scores, trials.dense, trials.values]
    return max([abs(trials.constant), *(float(np.abs(block).max()) for block in blocks if block.size)])


def stride_for(classes: int) -> int:
    """Length of a row of weights for this many classes: whole vectors, so that rows start at cache lines."""
    if classes <= 2:
        return classes
    return 4 if classes <= 4 else -(-classes // 8) * 8


def appearing(old: Layout, old_k: int, new: Layout, k: int, stride: int) -> np.ndarray:
    """The coordinates that are new, in the new numbering."""
    if (old.voters, old.raters, old.dense, old_k) == (new.voters, new.raters, new.dense, k):
        if new.sparse == old.sparse + 1:
            first = new.voters + new.raters + (new.dense + new.sparse) * stride
            return np.arange(first, first + k)
        rows = np.arange(1 + old.dense + old.sparse, 1 + new.dense + new.sparse)
        return ((new.voters + new.raters + rows * stride)[:, None] + np.arange(k)).ravel()
    voters, raters = np.arange(old.voters, new.voters), np.arange(new.voters + old.raters, new.voters + new.raters)
    constant = [0] if new.constant else []  # its row is kept all the same, but its coordinates do not exist
    dense, sparse = 1 + old.dense, 1 + new.dense + old.sparse
    rows = np.concatenate([np.arange(dense, 1 + new.dense), np.arange(sparse, 1 + new.dense + new.sparse)])
    first = new.voters + new.raters
    table = (first + rows * stride)[:, None] + np.arange(k)
    if k == old_k:
        return np.concatenate([voters, raters, table.ravel()]).astype(np.int64)
    kept = np.concatenate([constant, np.arange(1, dense), np.arange(1 + new.dense, sparse)])
    classes = (first + kept * stride)[:, None] + np.arange(old_k, k)
    return np.concatenate([voters, raters, table.ravel(), classes.ravel()]).astype(np.int64)


def coordinates(old: Layout, old_stride: int, old_rows: int, new: Layout, stride: int) -> np.ndarray | slice:
    """The new coordinate of each old one; a slice where none moves."""
    if (old.voters, old.raters, old.dense, old_stride) == (new.voters, new.raters, new.dense, stride):
        return slice(0, old.voters + old.raters + old_rows * stride)
    rows = np.arange(old_rows)
    rows[1 + old.dense :] += new.dense - old.dense  # sparse attributes come after dense ones
    table = (new.voters + new.raters + rows * stride)[:, None] + np.arange(old_stride)
    raters = new.voters + np.arange(old.raters)
    return np.concatenate([np.arange(old.voters), raters, table.ravel()])


def aligned(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    """An array of zeros that starts at a cache line."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    offset = -raw.ctypes.data % 64
    return raw[offset : offset + size].view(dtype).reshape(shape)
