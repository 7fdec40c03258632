"""Averages of hypotheses, kept lazily: a trial costs nothing, an update O(nonzeros).

The sum of the weights with which each trial was met, S = sum_s g_s w_s, is written as

    S = m * weights - backlog,  m = WEIGHT + IDLE g = sum of the g_s.

A trial adds 1 to IDLE, or its number where averages FADE (AGE is the last that was added). IDLE joins WEIGHT only when
the weights change: then S does not depend on how the trials were cut into runs. A change d of a weight adds WEIGHT * d
to its backlog and leaves S as it was. g is the common factor of the stored weights (raw), or 1 over their largest
magnitude (max) or over the sum of their magnitudes (l1). A raw S is kept at the scale exp(ANCHOR), which rises with
that of the weights.

A coordinate that appears later has had the weight START all along, and the backlog UNSEEN. Norms are taken over the
coordinates that took part in an update: ``marks`` is the memory of a rule whose weights do not start at 0, UNTOUCHED
where none did, and empty for other rules, whose untouched weights are 0 anyway.

Three more numbers give the 2-norm of S at any time: SQUARE = w.w, CROSS = S.w and BACK = S.S, the last two without the
IDLE trials: ||S + d w||^2 = BACK + d (2 CROSS + d SQUARE), d = IDLE g.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, int64

from linmax.core.contract import GAUGE, L1, MASS, MAX, RAW, SHIFT, UNTOUCHED, Vector
from linmax.jit.compiling import kernel

__all__ = [
    "advance",
    "begin",
    "coming",
    "join",
    "multiple",
    "note",
    "raise_anchor",
    "rebase",
    "rescaled",
    "settle",
    "square_of_sum",
    "squared_norm",
    "term",
    "unit_of",
    "untouched_sum",
]

WEIGHT, SQUARE, CROSS, BACK, HIGHEST, NORM, IDLE, START, UNSEEN, ANCHOR, FADE, AGE = range(12)
NUMBERS = 12
LARGEST_G = 200.0  # logarithm of a g that is too large to add up
LONG = 1e4  # WEIGHT over g beyond which S would lose digits
CANCELLED = 1e-6  # a sum this much smaller than its parts has lost digits


@kernel()
def term(kind: int, scalars: np.ndarray, means: np.ndarray) -> float:
    """g: the weight in the sum of the hypothesis as it is stored now."""
    if kind == RAW:
        log = scalars[SHIFT] + scalars[GAUGE] - means[ANCHOR]
        return math.exp(log) if log != 0.0 else 1.0
    norm = means[NORM] if means[NORM] > 0.0 else abs(means[START])  # before the first update: as if of one weight
    return 1.0 / norm if norm > 0.0 else 0.0


@kernel(float64(int64, Vector, Vector))
def multiple(kind: int, scalars: np.ndarray, means: np.ndarray) -> float:
    """m, the sum of all g so far."""
    return means[WEIGHT] + means[IDLE] * term(kind, scalars, means)


@kernel()
def sums(kind: int, weights: np.ndarray, backlog: np.ndarray, means: np.ndarray, marks: np.ndarray) -> None:
    """Compute SQUARE, CROSS, BACK and NORM again: O(n)."""
    square, cross, back, norm = 0.0, 0.0, 0.0, 0.0
    for i in range(weights.size):
        if marks.size and marks[i] == UNTOUCHED:
            continue
        square += weights[i] * weights[i]
        if kind == MAX:
            norm = max(norm, abs(weights[i]))
        elif kind == L1:
            norm += abs(weights[i])
    for i in range(backlog.size):
        if marks.size and marks[i] == UNTOUCHED:
            continue
        so_far = means[WEIGHT] * weights[i] - backlog[i]
        cross += so_far * weights[i]
        back += so_far * so_far
    means[SQUARE], means[CROSS], means[BACK], means[HIGHEST], means[NORM] = square, cross, back, square, norm


@kernel()
def begin(kind: int, weights: np.ndarray, backlog: np.ndarray, means: np.ndarray, marks: np.ndarray) -> None:
    """The sum before the first trial: its one term is the hypothesis that will meet it."""
    means[WEIGHT] = 0.0
    means[IDLE] = 1.0 if kind else 0.0
    means[AGE] = 1.0
    sums(kind, weights, backlog, means, marks)


@kernel()
def squared_norm(added: float, square: float, cross: float, back: float) -> float:
    """||S + added w||^2 from the kept sums; -1 where they cancel, so that it must be summed again."""
    result = back + added * (2.0 * cross + added * square)
    return result if result > CANCELLED * (back + added * added * square) else -1.0


@kernel()
def square_of_sum(
    added: float, weights: np.ndarray, backlog: np.ndarray, means: np.ndarray, marks: np.ndarray
) -> float:
    """||S||^2 where ``added`` is what IDLE trials add to WEIGHT: from the kept sums, or in O(n) where they cancel."""
    square = squared_norm(added, means[SQUARE], means[CROSS], means[BACK])
    if square < 0.0:
        square = 0.0
        for i in range(weights.size):
            if marks.size and marks[i] == UNTOUCHED:
                continue
            square += ((means[WEIGHT] + added) * weights[i] - backlog[i]) ** 2
    return square


@kernel()
def untouched_sum(multiple: float, means: np.ndarray) -> float:
    """|S| of a coordinate that no update has touched: what S is divided by before the first update."""
    return abs(multiple * means[START] - means[UNSEEN])


@kernel()
def unit_of(tracked: int, spread: int, scalars: np.ndarray, means: np.ndarray) -> float:
    """Return the divisor of a member's scores: the 2-norm of its weights, where that is tracked, or its MASS.

    A rule that keeps logarithms may rescale its weights at any update, and its MASS with them.
    """
    if tracked:
        return math.sqrt(means[SQUARE]) if means[SQUARE] > 0.0 else abs(means[START]) or 1.0
    return scalars[MASS] if spread != 0 and scalars[MASS] > 0.0 else 1.0


@kernel()
def settle(g: float, means: np.ndarray) -> bool:
    """The weights change: the trials since the last change join WEIGHT, with the g that they had.

    Returns whether the sums cancelled and must be summed again.
    """
    added = means[IDLE] * g
    if added == 0.0:
        means[IDLE] = 0.0
        return False
    means[BACK] = squared_norm(added, means[SQUARE], means[CROSS], means[BACK])
    means[CROSS] += added * means[SQUARE]
    means[WEIGHT] += added
    means[IDLE] = 0.0
    return means[BACK] < 0.0


@kernel()
def rebase(kind: int, weights: np.ndarray, backlog: np.ndarray, means: np.ndarray, marks: np.ndarray) -> None:
    """Write S with WEIGHT = 0: O(n), rare, and exact to rounding. IDLE must be 0 (see `settle`)."""
    for i in range(backlog.size):
        backlog[i] -= means[WEIGHT] * weights[i]
    means[UNSEEN] -= means[WEIGHT] * means[START]
    means[WEIGHT] = 0.0
    sums(kind, weights, backlog, means, marks)


@kernel()
def exchange(weights: np.ndarray, index: np.ndarray, others: np.ndarray) -> None:
    """Swap the weights at ``index`` with others."""
    for j in range(index.size):
        weights[index[j]], others[j] = others[j], weights[index[j]]


@kernel()
def note(
    kind: int,
    scalars: np.ndarray,
    weights: np.ndarray,
    backlog: np.ndarray,
    means: np.ndarray,
    index: np.ndarray,
    before: np.ndarray,
    afresh: bool,
    marks: np.ndarray,
) -> None:
    """The weights at ``index`` have changed from ``before``; ``afresh`` is what `settle` returned."""
    fell, norm = afresh, means[NORM]
    if kind == L1 or kind == MAX:
        for j in range(index.size):
            old, new = abs(before[j]), abs(weights[index[j]])
            fell = fell or (kind == MAX and old >= means[NORM])
            norm = norm + (new - old) if kind == L1 else max(norm, new)
    g = term(kind, scalars, means) if kind == RAW else (1.0 / norm if norm > 0.0 else 0.0)
    if kind and means[WEIGHT] > LONG * g * means[AGE]:  # the new weights times WEIGHT would drown S
        exchange(weights, index, before)
        rebase(kind, weights, backlog, means, marks)
        exchange(weights, index, before)
    weight, square, cross = means[WEIGHT], means[SQUARE], means[CROSS]
    for j in range(index.size):
        i = index[j]
        old, new = before[j], weights[i]
        square += new * new - old * old
        if kind:
            cross += (weight * old - backlog[i]) * (new - old)
            backlog[i] += weight * (new - old)
    means[SQUARE], means[CROSS], means[NORM] = square, cross, norm
    means[HIGHEST] = max(means[HIGHEST], square)
    if fell or not square > CANCELLED * means[HIGHEST]:  # the largest shrank, or little but rounding is left
        sums(kind, weights, backlog, means, marks)


@kernel()
def note_square(
    grown: float, kind: int, weights: np.ndarray, backlog: np.ndarray, means: np.ndarray, marks: np.ndarray
) -> None:
    """`note` where no average is kept: the weights' squares have grown by this much."""
    means[SQUARE] += grown
    means[HIGHEST] = max(means[HIGHEST], means[SQUARE])
    if not means[SQUARE] > CANCELLED * means[HIGHEST]:
        sums(kind, weights, backlog, means, marks)


@kernel()
def rescaled(
    kind: int, factor: float, weights: np.ndarray, backlog: np.ndarray, means: np.ndarray, marks: np.ndarray
) -> None:
    """The stored weights have all been multiplied by ``factor``; WEIGHT must be 0 (see `rebase`)."""
    means[START] *= factor
    sums(kind, weights, backlog, means, marks)


@kernel()
def raise_anchor(
    scalars: np.ndarray, weights: np.ndarray, backlog: np.ndarray, means: np.ndarray, marks: np.ndarray
) -> None:
    """Bring a raw S to the scale of the weights, where it is far below: O(n), rare. IDLE must be 0."""
    scale = scalars[SHIFT] + scalars[GAUGE]
    if scale <= means[ANCHOR] + LARGEST_G:
        return
    rebase(RAW, weights, backlog, means, marks)
    factor = math.exp(means[ANCHOR] - scale)
    for i in range(backlog.size):
        backlog[i] *= factor
    means[UNSEEN] *= factor
    means[ANCHOR] = scale
    sums(RAW, weights, backlog, means, marks)


@kernel()
def coming(trials: int, fade: float, age: float) -> float:
    """Return the amount that the next trials add to IDLE."""
    return trials * age + fade * (0.5 * trials * (trials + 1))


@kernel()
def advance(kind: int, trials: int, means: np.ndarray) -> None:
    """Add the present hypothesis for this many trials."""
    if kind:
        means[IDLE] += coming(trials, means[FADE], means[AGE])
        means[AGE] += trials * means[FADE]


@kernel()
def join(
    kind: int,
    count: int,
    scalars: np.ndarray,
    weights: np.ndarray,
    backlog: np.ndarray,
    means: np.ndarray,
    marks: np.ndarray,
) -> None:
    """``count`` coordinates begin to count, with the weight START and the backlog UNSEEN; terms so far keep their g."""
    if settle(term(kind, scalars, means) if means[IDLE] > 0.0 else 0.0, means):
        sums(kind, weights, backlog, means, marks)
        return
    start = means[START]
    so_far = means[WEIGHT] * start - means[UNSEEN]
    means[SQUARE] += count * start * start
    means[HIGHEST] = max(means[HIGHEST], means[SQUARE])
    if kind:
        means[CROSS] += count * so_far * start
        means[BACK] += count * so_far * so_far
    if kind == MAX:
        means[NORM] = max(means[NORM], abs(start))
    elif kind == L1:
        means[NORM] += count * abs(start)
