"""Averages of hypotheses, kept lazily: a trial costs nothing, an update O(nonzeros).

The sum of the weights with which each trial was met, S = sum_s g_s w_s, is written as

    S = m * weights - backlog,  m = WEIGHT + IDLE g = sum of the g_s.

A trial adds 1 to IDLE, which joins WEIGHT only when the weights change: then S does not depend on how the trials were
cut into runs. A change d of a weight adds WEIGHT * d to its backlog and leaves S as it was. g is the common factor
of the stored weights (raw), or 1 over their largest magnitude (max) or over the sum of their magnitudes (l1). Three
more sums give the 2-norm of S at any time: ||S||^2 = m^2 SQUARE - 2 m CROSS + BACK.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, int64

from linmax.contract import GAUGE, L1, MAX, RAW, Vector, kernel

__all__ = ["advance", "begin", "multiple", "note", "rebase", "settle", "shift", "squared_norm", "term"]

WEIGHT, SQUARE, CROSS, BACK, HIGHEST, NORM, IDLE = range(7)
LONG = 1e4  # WEIGHT over g beyond which the differences above would lose digits


@kernel()
def term(kind: int, scalars: np.ndarray, means: np.ndarray) -> float:
    """g: the weight in the sum of the hypothesis as it is stored now."""
    if kind == RAW:
        return math.exp(scalars[GAUGE]) if scalars[GAUGE] != 0.0 else 1.0
    return 1.0 / means[NORM] if means[NORM] > 0.0 else 0.0


@kernel(float64(int64, Vector, Vector))
def multiple(kind: int, scalars: np.ndarray, means: np.ndarray) -> float:
    """m, the sum of all g so far."""
    return means[WEIGHT] + means[IDLE] * term(kind, scalars, means)


@kernel()
def sums(kind: int, weights: np.ndarray, backlog: np.ndarray, means: np.ndarray) -> None:
    """Take SQUARE, CROSS, BACK and NORM afresh: O(n)."""
    square, cross, back, norm = 0.0, 0.0, 0.0, 0.0
    for i in range(weights.size):
        square += weights[i] * weights[i]
        if kind == MAX:
            norm = max(norm, abs(weights[i]))
        elif kind == L1:
            norm += abs(weights[i])
    for i in range(backlog.size):
        cross += weights[i] * backlog[i]
        back += backlog[i] * backlog[i]
    means[SQUARE], means[CROSS], means[BACK], means[HIGHEST], means[NORM] = square, cross, back, square, norm


@kernel()
def begin(kind: int, scalars: np.ndarray, weights: np.ndarray, backlog: np.ndarray, means: np.ndarray) -> None:
    """The sum before the first trial: its one term is the hypothesis that will meet it."""
    sums(kind, weights, backlog, means)
    means[WEIGHT] = 0.0
    means[IDLE] = 1.0 if kind else 0.0


@kernel()
def settle(g: float, means: np.ndarray) -> None:
    """The weights change: the trials since the last change join WEIGHT, with the g that they had."""
    means[WEIGHT] += means[IDLE] * g
    means[IDLE] = 0.0


@kernel()
def rebase(kind: int, weights: np.ndarray, backlog: np.ndarray, means: np.ndarray) -> None:
    """Write S with WEIGHT = 0: O(n), rare, and exact to rounding. IDLE must be 0 (see `settle`)."""
    for i in range(backlog.size):
        backlog[i] -= means[WEIGHT] * weights[i]
    means[WEIGHT] = 0.0
    sums(kind, weights, backlog, means)


@kernel()
def exchange(weights: np.ndarray, index: np.ndarray, others: np.ndarray) -> None:
    """Swap the weights at ``index`` with others."""
    for j in range(index.size):
        weights[index[j]], others[j] = others[j], weights[index[j]]


@kernel(hot=True)
def note(
    kind: int,
    scalars: np.ndarray,
    weights: np.ndarray,
    backlog: np.ndarray,
    means: np.ndarray,
    index: np.ndarray,
    before: np.ndarray,
) -> None:
    """The weights at ``index`` have changed from ``before``."""
    fell, norm = False, means[NORM]
    if kind == L1 or kind == MAX:
        for j in range(index.size):
            old, new = abs(before[j]), abs(weights[index[j]])
            fell = fell or (kind == MAX and old >= means[NORM])
            norm = norm + (new - old) if kind == L1 else max(norm, new)
    g = term(kind, scalars, means) if kind == RAW else (1.0 / norm if norm > 0.0 else 0.0)
    if kind and means[WEIGHT] > LONG * g:  # the new weights times WEIGHT would drown S
        exchange(weights, index, before)
        rebase(kind, weights, backlog, means)
        exchange(weights, index, before)
    weight, square, cross, back = means[WEIGHT], means[SQUARE], means[CROSS], means[BACK]
    for j in range(index.size):
        i = index[j]
        old, new = before[j], weights[i]
        square += new * new - old * old
        if kind:
            behind = backlog[i]
            ahead = behind + weight * (new - old)
            backlog[i] = ahead
            cross += new * ahead - old * behind
            back += ahead * ahead - behind * behind
    means[SQUARE], means[CROSS], means[BACK], means[NORM] = square, cross, back, norm
    means[HIGHEST] = max(means[HIGHEST], square)
    if fell or not square > 1e-6 * means[HIGHEST]:  # the largest shrank, or only rounding is left
        sums(kind, weights, backlog, means)


@kernel()
def shift(kind: int, factor: float, weights: np.ndarray, backlog: np.ndarray, means: np.ndarray) -> None:
    """The stored weights have all been multiplied by ``factor``; WEIGHT must be 0 (see `rebase`)."""
    if kind == RAW:
        for i in range(backlog.size):
            backlog[i] *= factor
    sums(kind, weights, backlog, means)


@kernel()
def advance(kind: int, trials: int, means: np.ndarray) -> None:
    """Add the present hypothesis for this many trials."""
    if kind:
        means[IDLE] += trials


@kernel()
def squared_norm(m: float, square: float, cross: float, back: float) -> float:
    """||m * weights - backlog||^2 from the kept sums."""
    return max(0.0, m * (m * square - 2.0 * cross) + back)
