"""Scaling of rows one after the other, each with what was seen up to and including it (see `linmax.data.scaling`).

References
----------
Sparck Jones, "A statistical interpretation of term specificity", Journal of Documentation 28 (1972): idf.
Welford, "Note on a method for calculating corrected sums of squares", Technometrics 4 (1962): running deviation.
"""

from __future__ import annotations

import math

import numpy as np
from numba import boolean, float64, int32, int64, types

from linmax.data.numeric import are_numbers
from linmax.jit.compiling import kernel

__all__ = ["KINDS", "STEADY", "kind_now", "scale_rows", "squash", "standardise"]

KINDS = ("none", "max", "length", "log", "idf", "standard", "auto", "auto within 1")
NONE, MAX, LENGTH, LOG, IDF, STANDARD, AUTO, AUTO_WITHIN = range(8)
CLIP = 5.0
STEADY = 1e-10  # a deviation this far below the mean is rounding


@kernel()
def squash(value: float) -> float:
    """sign(v) log(1 + |v|)."""
    if value == 1.0:
        return 0.6931471805599453
    return math.copysign(math.log1p(abs(value)), value)


@kernel()
def clipped(value: float) -> float:
    """At most CLIP in magnitude."""
    return min(CLIP, max(-CLIP, value))


@kernel()
def standardise(value: float, stats: np.ndarray, learn: bool) -> float:
    """(v - mean) / deviation, this value included; ``stats`` are count, mean and sum of squared deviations."""
    count = stats[0] + 1.0
    delta = value - stats[1]
    mean = stats[1] + delta / count
    squares = stats[2] + delta * (value - mean)
    if learn:
        stats[0], stats[1], stats[2] = count, mean, squares
    deviation = math.sqrt(squares / count)
    return clipped((value - mean) / deviation) if deviation > STEADY * abs(mean) else 0.0


@kernel()
def kind_now(asked: int, trials: int, values: int, attributes: int) -> int:
    """Return the kind, or the one decided by the numbers of sparse values, attributes and trials so far."""
    if asked < AUTO:
        return asked
    if not are_numbers(values, trials, attributes):
        return IDF
    return MAX if asked == AUTO_WITHIN else STANDARD


@kernel()
def note(asked: int, kind: int, value: float, trials: np.ndarray, stats: np.ndarray) -> None:
    """Count a value of a sparse attribute, and what of its statistics the present kind does not keep itself."""
    trials[1] += 1
    trials[2] += stats[0] == 0.0
    if kind == MAX:
        stats[0] += 1.0
    elif kind == IDF:
        stats[1] = max(stats[1], abs(value)) if asked == AUTO_WITHIN else stats[1] + value * value


@kernel(
    types.void(
        int64, boolean, float64, int64, float64[:, ::1], int64[::1], int32[::1], float64[::1], int64[::1],
        float64[:, ::1], float64[:, ::1], float64[:, ::1], int64[::1], int32[::1], float64[::1],
    )
)  # fmt: skip
def scale_rows(
    kind: int,
    learn: bool,
    constant: float,
    shift: int,
    dense: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    trials: np.ndarray,
    dense_stats: np.ndarray,
    sparse_stats: np.ndarray,
    new_dense: np.ndarray,
    new_indptr: np.ndarray,
    new_indices: np.ndarray,
    new_values: np.ndarray,
) -> None:
    """Scale rows into the ``new`` arrays; with ``shift`` 1 the constant comes first, among the dense ones if any.

    ``sparse_stats`` are occurrences and the sum of squares (or the largest magnitude) of each attribute; ``trials`` are
    followed by the sparse values and attributes met in them.
    """
    width, past, asked = dense.shape[1], trials[0], kind
    dense_shift = shift if width else 0
    sparse_shift = shift - dense_shift
    put = 0
    for t in range(dense.shape[0]):
        kind = kind_now(asked, past, trials[1], trials[2])
        squares = 0.0
        for f in range(width):
            value = dense[t, f]
            if value != value:  # missing: says nothing and teaches nothing
                value = 0.0
            elif kind == STANDARD:
                value = standardise(value, dense_stats[f], learn)
            elif kind == MAX:
                largest = max(dense_stats[f, 0], abs(value))
                if learn:
                    dense_stats[f, 0] = largest
                value = value / largest if largest > 0.0 else 0.0
            elif kind == LOG or kind == IDF:
                value = squash(value)
            squares += value * value
            new_dense[t, f + dense_shift] = value
        begin, end = put, put
        if indptr.size:
            put += sparse_shift
            begin, end = put, put + indptr[t + 1] - indptr[t]
            offset = indptr[t] - begin
            rarity = math.log(past + 2.0)
            for place in range(begin, end):
                column, value = indices[place + offset], values[place + offset]
                if asked >= AUTO and learn:
                    note(asked, kind, value, trials, sparse_stats[column])
                if kind == LOG or kind == IDF:
                    value = squash(value)
                if kind == IDF:
                    count = sparse_stats[column, 0] + 1.0
                    value *= rarity - math.log(count)
                    if learn:
                        sparse_stats[column, 0] = count
                elif kind == STANDARD:
                    count = sparse_stats[column, 0] + 1.0
                    total = sparse_stats[column, 1] + value * value
                    if learn:
                        sparse_stats[column, 0], sparse_stats[column, 1] = count, total
                    value = clipped(value / math.sqrt(total / count)) if total > 0.0 else 0.0
                elif kind == MAX:
                    largest = max(sparse_stats[column, 1], abs(value))
                    if learn:
                        sparse_stats[column, 1] = largest
                    value = value / largest if largest > 0.0 else 0.0
                squares += value * value
                new_indices[place] = column + sparse_shift
                new_values[place] = value
            put = end
            new_indptr[t + 1] = put
        one = squash(constant) if kind == LOG or kind == IDF else constant
        factor = 1.0
        if kind == STANDARD:
            factor = 1.0 / math.sqrt(max(1.0, float(width + end - begin)))
        elif kind == LENGTH or kind == LOG or kind == IDF:
            squares += one * one
            factor = 1.0 / math.sqrt(squares) if squares > 0.0 else 1.0
        for f in range(new_dense.shape[1]):
            new_dense[t, f] *= factor
        for place in range(begin, end):
            new_values[place] *= factor
        if dense_shift:
            new_dense[t, 0] = one * factor
        if sparse_shift:
            new_indices[begin - 1], new_values[begin - 1] = 0, one * factor
        if learn:
            past += 1
    trials[0] = past
