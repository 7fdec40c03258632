"""Rows with pairs of their attributes: the compiled part of `linmax.io.pairing`.

An attribute is identified by its number in the vocabulary, or by `FIRST_DENSE` plus its place among the dense ones.
``groups`` has a bit for each group that it belongs to. A pair has the key first 2^32 + second, and as its value the
product of theirs.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int32, int64, types

from linmax.jit.compiling import kernel

__all__ = ["FIRST_DENSE", "FRESH", "join_names", "merge_rows", "pair_rows", "place_pairs"]

FIRST_DENSE = 1 << 30  # from here on, dense attributes
FRESH = -2  # the column of the first pair that is new; -1 is one that is to have none
PAIR_MULTIPLIER = 0x2C1B3C6D
STAR = 42


@kernel(hot=True)
def wanted(one: int, other: int, asked: np.ndarray) -> int:
    """Whether groups of bits ``one`` and ``other`` are to be paired: 1, the other way round: -1, not at all: 0."""
    for p in range(asked.shape[0]):
        if one & asked[p, 0] and other & asked[p, 1]:
            return 1
        if other & asked[p, 0] and one & asked[p, 1]:
            return -1
    return 0


@kernel(int64(float64[:, ::1], int64[::1], int32[::1], float64[::1], int64[::1], int64[::1], int64[:, ::1], boolean,
              int64[::1], int64[::1], float64[::1]))  # fmt: skip
def pair_rows(
    dense: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    groups: np.ndarray,
    dense_groups: np.ndarray,
    asked: np.ndarray,
    fill: bool,
    ends: np.ndarray,
    keys: np.ndarray,
    products: np.ndarray,
) -> int:
    """Where the pairs of each row end, into ``ends``; with ``fill`` the pairs too. Returns how many there are.

    Pairs of two dense attributes are left out. Of attributes that are asked for in both orders the lower comes first.
    """
    put = 0
    for t in range(indptr.size - 1):
        for a in range(indptr[t], indptr[t + 1]):
            own = groups[indices[a]]
            if own == 0:
                continue
            for b in range(indptr[t], a):
                order = wanted(own, groups[indices[b]], asked)
                if order == 0 or indices[a] == indices[b]:
                    continue
                if fill:
                    both = wanted(groups[indices[b]], own, asked)
                    first, second = (indices[a], indices[b]) if order > 0 else (indices[b], indices[a])
                    if order == both and first > second:
                        first, second = second, first
                    keys[put] = (int64(first) << 32) + second
                    products[put] = values[a] * values[b]
                put += 1
            for d in range(dense.shape[1]):
                value = dense[t, d]
                if value == 0.0 or value != value:
                    continue
                order = wanted(own, dense_groups[d], asked)
                if order == 0:
                    continue
                if fill:
                    column = int64(FIRST_DENSE + d)
                    index = int64(indices[a])
                    ahead = order > 0 and wanted(dense_groups[d], own, asked) != order
                    keys[put] = (index << 32) + column if ahead else (column << 32) + index
                    products[put] = values[a] * value
                put += 1
        ends[t + 1] = put
    return put


@kernel(int64(int64[::1], int64[::1], int32[::1], int32[::1], int64[::1]))
def place_pairs(pairs: np.ndarray, keys: np.ndarray, columns: np.ndarray, found: np.ndarray, fresh: np.ndarray) -> int:
    """The column of each pair, from a table of them, into ``found``: FRESH - i for the i-th one that is new in it.

    The table has room for all; a place without a key has 0, because no pair is of attribute 0 with itself. Returns how
    many are new; their places are in ``fresh``.
    """
    mask, many = keys.size - 1, 0
    for i in range(pairs.size):
        place = ((pairs[i] >> 32) * PAIR_MULTIPLIER + (pairs[i] & 0xFFFFFFFF) * 0x297A2D39) & 0x7FFFFFFFFFFFFFFF
        place = (place ^ (place >> 17) ^ (place >> 29)) & mask
        while keys[place] != 0 and keys[place] != pairs[i]:
            place = (place + 1) & mask
        if keys[place] == 0:
            keys[place], columns[place] = pairs[i], FRESH - many
            fresh[many] = place
            many += 1
        found[i] = columns[place]
    return many


@kernel(types.void(int64[::1], types.uint8[::1], int64[::1], types.uint8[::1], int64[::1], types.uint8[::1],
                   int64[::1]))  # fmt: skip
def join_names(
    pairs: np.ndarray,
    store: np.ndarray,
    offsets: np.ndarray,
    numbers: np.ndarray,
    number_offsets: np.ndarray,
    block: np.ndarray,
    ends: np.ndarray,
) -> None:
    """The names of pairs, ``first*second``, one after the other; ``ends`` say where each ends in the block."""
    put = 0
    for i in range(pairs.size):
        for part in range(2):
            column = pairs[i] >> 32 if part == 0 else pairs[i] & 0xFFFFFFFF
            if column >= FIRST_DENSE:
                names, begin, end = (
                    numbers,
                    number_offsets[column - FIRST_DENSE],
                    number_offsets[column - FIRST_DENSE + 1],
                )
            else:
                names, begin, end = store, offsets[column], offsets[column + 1]
            for c in range(begin, end):
                block[put] = names[c]
                put += 1
            if part == 0:
                block[put] = STAR
                put += 1
        ends[i + 1] = put


@kernel(int64(int64[::1], int32[::1], float64[::1], int64[::1], int32[::1], float64[::1], int64[::1], int32[::1],
              float64[::1]))  # fmt: skip
def merge_rows(
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    ends: np.ndarray,
    found: np.ndarray,
    products: np.ndarray,
    out_indptr: np.ndarray,
    out_indices: np.ndarray,
    out_values: np.ndarray,
) -> int:
    """Rows with their pairs behind them, but for those of value 0, and without a column; returns how many have none."""
    put, unknown = 0, 0
    for t in range(indptr.size - 1):
        for j in range(indptr[t], indptr[t + 1]):
            out_indices[put], out_values[put] = indices[j], values[j]
            put += 1
        for j in range(ends[t], ends[t + 1]):
            if found[j] < 0:
                unknown += 1
            elif products[j] != 0.0:
                out_indices[put], out_values[put] = found[j], products[j]
                put += 1
        out_indptr[t + 1] = put
    return unknown
