"""On-line Newton steps of a conditional logit: with all of its curvature, or with the diagonal for many coordinates.

The logit of `linmax.learners.softmax` with a Gaussian prior of precision ``ridge`` about the weights ``home``. Before
each trial the past is forgotten at the rate g: with precision P about the weights w,

    P <- g P + (1 - g) ridge,    w is drawn towards home by (1 - g) ridge (home - w),

then the curvature H of the trial's log loss is added to P, and one Newton step is taken.
"""

from __future__ import annotations

import math

import numpy as np

from linmax.jit.compiling import kernel
from linmax.learners.softmax_trials import Store, curve

__all__ = ["step_by_diagonal", "step_by_matrix"]

GRADIENT_ROUNDS = 8  # most steps of conjugate gradients
SOLVED = 1e-12  # share of the first residual, squared, below which they stop


@kernel(reorders=True)
def dot(a: np.ndarray, b: np.ndarray, size: int) -> float:
    """a.b over the first coordinates."""
    total = 0.0
    for i in range(size):
        total += a[i] * b[i]
    return total


@kernel(reorders=True)
def four_dots(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray, e: np.ndarray, size: int
) -> tuple[float, float, float, float]:
    """a.b, a.c, a.d and a.e over the first coordinates."""
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    for i in range(size):
        value = a[i]
        first += value * b[i]
        second += value * c[i]
        third += value * d[i]
        fourth += value * e[i]
    return first, second, third, fourth


@kernel()
def decompose(matrix: np.ndarray, factor: np.ndarray, inverses: np.ndarray) -> None:
    """The lower triangle L with L L' = matrix, of which the lower half is read; four columns at a time, twice as fast.

    ``inverses`` is room for those of the diagonal.
    """
    for i in range(matrix.shape[0]):
        row, given = factor[i], matrix[i]
        j = 0
        while j + 4 <= i:
            one, two, three = factor[j + 1], factor[j + 2], factor[j + 3]
            s, t, u, v = four_dots(row, factor[j], one, two, three, j)
            p = (given[j] - s) * inverses[j]
            q = (given[j + 1] - t - p * one[j]) * inverses[j + 1]
            r = (given[j + 2] - u - p * two[j] - q * two[j + 1]) * inverses[j + 2]
            row[j], row[j + 1], row[j + 2] = p, q, r
            rest = given[j + 3] - v - p * three[j] - q * three[j + 1] - r * three[j + 2]
            row[j + 3] = rest * inverses[j + 3]
            j += 4
        while j < i:
            row[j] = (given[j] - dot(row, factor[j], j)) * inverses[j]
            j += 1
        row[i] = math.sqrt(max(given[i] - dot(row, row, i), 1e-12 * given[i]))
        inverses[i] = 1.0 / row[i]


@kernel()
def solve(factor: np.ndarray, right: np.ndarray, x: np.ndarray) -> None:
    """x with L L' x = right."""
    n = factor.shape[0]
    for i in range(n):
        x[i] = (right[i] - dot(factor[i], x, i)) / factor[i, i]
    for place in range(n):
        i = n - 1 - place
        x[i] /= factor[i, i]
        for j in range(i):
            x[j] -= factor[i, j] * x[i]


@kernel()
def along(matrix: np.ndarray, x: np.ndarray) -> float:
    """x' matrix x, from the lower half."""
    total = 0.0
    for i in range(matrix.shape[0]):
        total += x[i] * (2.0 * dot(matrix[i], x, i) + matrix[i, i] * x[i])
    return total


@kernel()
def step_by_matrix(
    store: Store,
    count: int,
    label: int,
    shares: np.ndarray,
    ridge: float,
    kept: float,
    home: np.ndarray,
    weights: np.ndarray,
    precision: np.ndarray,
    factor: np.ndarray,
    fresh: bool,
    room: np.ndarray,
    chain: np.ndarray,
) -> None:
    """One trial of ``count`` ratings whose classes had the probabilities ``shares``; ``kept`` is g.

    Unless ``fresh``, an older factor of the precision gives the direction, and the precision the length of the step.
    """
    n = weights.size
    gradient, step = room[1], room[2]
    for i in range(n):
        gradient[i] = 0.0
    if kept < 1.0:
        drawn = (1.0 - kept) * ridge
        for i in range(n):
            row = precision[i]
            for j in range(i + 1):
                row[j] *= kept
            row[i] += drawn
            gradient[i] = drawn * (home[i] - weights[i])
    curve(store, 0, count, 1.0, shares, room[0], chain, precision)
    for j in range(count):
        of = store.of[j]
        gradient[store.places[j]] += ((1.0 if of == label else 0.0) - shares[of]) * store.values[j]
    if fresh:
        decompose(precision, factor, room[3])
    solve(factor, gradient, step)
    length = 1.0
    if not fresh:
        square = along(precision, step)
        length = dot(gradient, step, n) / square if square > 0.0 else 0.0
    for i in range(n):
        weights[i] += length * step[i]


@kernel()
def curved(
    store: Store, count: int, known: int, shares: np.ndarray, x: np.ndarray, by_class: np.ndarray, result: np.ndarray
) -> None:
    """Add H x to ``result`` at the coordinates of the trial."""
    mean = 0.0
    for c in range(known):
        by_class[c] = 0.0
    for j in range(count):
        by_class[store.of[j]] += store.values[j] * x[store.places[j]]
    for c in range(known):
        mean += shares[c] * by_class[c]
    for j in range(count):
        of = store.of[j]
        result[store.places[j]] += store.values[j] * shares[of] * (by_class[of] - mean)


@kernel()
def step_by_diagonal(
    store: Store,
    count: int,
    known: int,
    label: int,
    shares: np.ndarray,
    ridge: float,
    kept: float,
    home: np.ndarray,
    weights: np.ndarray,
    diagonal: np.ndarray,
    room: np.ndarray,
    active: np.ndarray,
) -> int:
    """The same with the diagonal of the precision alone; returns how many coordinates spoke, listed in ``active``.

    Only those that speak forget. The Newton step is one by the diagonal and all of the trial's own curvature, found by
    conjugate gradients, so that voters who always agree are not all corrected for the same mistake.
    """
    residual, direction, turned, step, by_class, squares = room[0], room[1], room[2], room[3], room[4], room[5]
    size = 0
    for j in range(count):
        place = store.places[j]
        if j == 0 or place != store.places[j - 1]:
            active[size] = place
            size += 1
            residual[place], step[place], squares[place] = 0.0, 0.0, 0.0
            if kept < 1.0:
                drawn = (1.0 - kept) * ridge
                diagonal[place] = kept * diagonal[place] + drawn
                residual[place] = drawn * (home[place] - weights[place])
            turned[place] = 0.0  # the mean rating, for now
    for j in range(count):
        place, of, value = store.places[j], store.of[j], store.values[j]
        residual[place] += ((1.0 if of == label else 0.0) - shares[of]) * value
        turned[place] += shares[of] * value
        squares[place] += shares[of] * value * value
    product = 0.0
    for a in range(size):
        place = active[a]
        squares[place] = max(0.0, squares[place] - turned[place] ** 2)
        direction[place] = residual[place] / diagonal[place]
        product += residual[place] * direction[place]
    enough = SOLVED * product
    for _ in range(GRADIENT_ROUNDS):
        if product <= enough:
            break
        for a in range(size):
            turned[active[a]] = diagonal[active[a]] * direction[active[a]]
        curved(store, count, known, shares, direction, by_class, turned)
        square = 0.0
        for a in range(size):
            square += direction[active[a]] * turned[active[a]]
        if square <= 0.0:
            break
        length, after = product / square, 0.0
        for a in range(size):
            place = active[a]
            step[place] += length * direction[place]
            residual[place] -= length * turned[place]
            after += residual[place] * residual[place] / diagonal[place]
        for a in range(size):
            place = active[a]
            direction[place] = residual[place] / diagonal[place] + after / product * direction[place]
        product = after
    for a in range(size):
        weights[active[a]] += step[active[a]]
        diagonal[active[a]] += squares[active[a]]
    return size
