"""Averages of hypotheses, kept lazily: a trial costs nothing, an update O(nonzeros).

The sum of the weights with which each trial was met, S = sum_s g_s w_s, is written as

    S = WEIGHT * weights - backlog,

WEIGHT = sum of the g_s. A trial without change adds g to WEIGHT; a change d of a weight adds WEIGHT * d to its backlog
and leaves S as it was. g is the common factor of the stored weights (raw), or 1 over their largest magnitude (max) or
over the sum of their magnitudes (l1). Three more sums give the 2-norm of S at any time:
||S||^2 = WEIGHT^2 SQUARE - 2 WEIGHT CROSS + BACK.
"""

from __future__ import annotations

import math

import numpy as np

from linmax.contract import GAUGE, L1, MAX, RAW, kernel

__all__ = ["advance", "begin", "note", "rebase", "shift", "squared_norm", "term"]

WEIGHT, SQUARE, CROSS, BACK, HIGHEST, NORM = range(6)
LONG = 1e6  # WEIGHT over g beyond which the difference above would lose digits


@kernel()
def term(kind: int, scalars: np.ndarray, means: np.ndarray) -> float:
    """g: the weight in the sum of the hypothesis as it is stored now."""
    if kind == RAW:
        return math.exp(scalars[GAUGE])
    return 1.0 / means[NORM] if means[NORM] > 0.0 else 0.0


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
    means[WEIGHT] = term(kind, scalars, means) if kind else 0.0


@kernel()
def rebase(kind: int, weights: np.ndarray, backlog: np.ndarray, means: np.ndarray) -> None:
    """Write S with WEIGHT = 0: O(n), rare, and exact to rounding."""
    for i in range(backlog.size):
        backlog[i] -= means[WEIGHT] * weights[i]
    means[WEIGHT] = 0.0
    sums(kind, weights, backlog, means)


@kernel()
def note(
    kind: int, weights: np.ndarray, backlog: np.ndarray, means: np.ndarray, index: np.ndarray, before: np.ndarray
) -> None:
    """The weights at ``index`` have changed from ``before``."""
    fell = False
    for j in range(index.size):
        i = index[j]
        old, new = before[j], weights[i]
        means[SQUARE] += new * new - old * old
        if kind:
            behind = backlog[i]
            backlog[i] += means[WEIGHT] * (new - old)
            means[CROSS] += new * backlog[i] - old * behind
            means[BACK] += backlog[i] * backlog[i] - behind * behind
        if kind == L1:
            means[NORM] += abs(new) - abs(old)
        elif kind == MAX:
            fell = fell or abs(old) >= means[NORM]
    if kind == MAX:
        for j in range(index.size):
            means[NORM] = max(means[NORM], abs(weights[index[j]]))
    means[HIGHEST] = max(means[HIGHEST], means[SQUARE])
    if fell or not means[SQUARE] > 1e-6 * means[HIGHEST]:  # the largest shrank, or only rounding is left
        sums(kind, weights, backlog, means)


@kernel()
def shift(kind: int, factor: float, weights: np.ndarray, backlog: np.ndarray, means: np.ndarray) -> None:
    """The stored weights have all been multiplied by ``factor``; WEIGHT must be 0 (see `rebase`)."""
    if kind == RAW:
        for i in range(backlog.size):
            backlog[i] *= factor
    sums(kind, weights, backlog, means)


@kernel()
def advance(
    kind: int, trials: int, scalars: np.ndarray, weights: np.ndarray, backlog: np.ndarray, means: np.ndarray
) -> None:
    """Add the present hypothesis for this many trials."""
    if kind == 0 or trials == 0:
        return
    g = term(kind, scalars, means)
    if means[WEIGHT] > LONG * g:
        rebase(kind, weights, backlog, means)
    means[WEIGHT] += trials * g


@kernel()
def squared_norm(weight: float, square: float, cross: float, back: float) -> float:
    """||weight * weights - backlog||^2 from the kept sums."""
    return max(0.0, weight * weight * square - 2.0 * weight * cross + back)
