"""On-line Newton steps of a conditional logit: with all of its curvature, or with the diagonal for many coordinates.

The logit of `linmax.learners.softmax` with a Gaussian prior of precision ``ridge`` about the weights ``home``. Before
each trial the past is forgotten at the rate g: with precision P about the weights w,

    P <- g P + (1 - g) ridge,    w is drawn towards home by (1 - g) ridge (home - w),

then the curvature H of the trial's log loss is added to P, and one Newton step is taken.

How sure a logit of the pool is, put right by how its predictions turned out.

A logit whose prior holds its weights back is right long before it is sure: of its scores the order is learned, and not
yet the size. So it is judged against the other members, and mixed, with its scores times a factor: the probability that
it gave to class c becomes

    Q(c) = P(c)^f / sum_j P(j)^f,    f = 1 + (s - 1) a / (a + t)

after t trials, since the weights themselves learn the size in time; a is `LASTS`. After each trial s takes one Newton
step on the log loss of P^s, which was said before the label was seen, with a Gaussian prior of precision
`SHARPNESS_PRIOR` about 1. A trial counts as far as its label is no guess, and `SHARPNESS_KEPT` of the past is kept. It
is never below 1: a logit that is too sure is left to the mixture, which trusts it less.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linmax.jit.blocks import SIDE, add_times, factorise, solve_blocks
from linmax.jit.compiling import kernel
from linmax.learners.softmax import to_shares

__all__ = [
    "FACTOR",
    "SHARPNESS_KEPT",
    "SHARPNESS_PRIOR",
    "curve_together",
    "factor_of",
    "forget",
    "join_sharpness",
    "learn_sharpness",
    "sharpen",
    "step_by_diagonal",
    "step_by_matrix",
]


GRADIENT_ROUNDS = 8  # most steps of conjugate gradients
SOLVED = 1e-12  # share of the first residual, squared, below which they stop


@kernel(reorders=True)
def dot(a: np.ndarray, b: np.ndarray, size: int) -> float:
    """a.b over the first coordinates."""
    total = 0.0
    for i in range(size):
        total += a[i] * b[i]
    return total


@kernel()
def decompose(matrix: np.ndarray, factor: np.ndarray, least: np.ndarray) -> None:
    """The factor (see `linmax.jit.blocks`) of a matrix of which the lower half is read; ``least`` is room."""
    n, size = matrix.shape[0], factor.shape[0]
    for i in range(n):
        row = matrix[i]
        for j in range(i + 1):
            factor[j, i] = row[j]
        least[i] = 1e-12 * row[i]
    for i in range(n, size):
        for j in range(i):
            factor[j, i] = 0.0
        factor[i, i] = least[i] = 1.0
    factorise(factor, least)


@kernel()
def along(matrix: np.ndarray, x: np.ndarray) -> float:
    """x' matrix x, from the lower half."""
    total = 0.0
    for i in range(matrix.shape[0]):
        total += x[i] * (2.0 * dot(matrix[i], x, i) + matrix[i, i] * x[i])
    return total


@kernel()
def forget(kept: float, ridge: float, precision: np.ndarray) -> None:
    """Draw the precision towards that of the prior; ``kept`` is g."""
    for i in range(precision.shape[0]):
        row = precision[i]
        for j in range(i + 1):
            row[j] *= kept
        row[i] += (1.0 - kept) * ridge


@kernel()
def curve_together(pool: Any, known: int, logits: int, informed: np.ndarray, weight: float) -> None:
    """Add the curvature of a trial, times its weight, to the precision of the first ``logits`` logits.

    The ratings that logit m sees end at ``ends[informed[m]]``. The pairs of ratings of one class are the same for all,
    and are gone through once.
    """
    places, classes, values, ends, shares = pool.places, pool.of, pool.values, pool.ends, pool.own
    means, chain, precisions = pool.means, pool.chain, pool.precision  # means are 0 before and after
    last = chain[0]  # of each class, the rating met last
    for c in range(known):
        last[c] = -1
    for a in range(ends[-1]):
        place, of, value = places[a], classes[a], values[a]
        chain[1, a] = last[of]
        last[of] = a
        for m in range(logits):
            if a < ends[informed[m]]:
                means[m, place] += shares[m, of] * value
        b = a
        while b >= 0:
            other, product = places[b], weight * value * values[b]
            row, column = max(place, other), min(place, other)
            for m in range(logits):
                if a < ends[informed[m]]:
                    precisions[m, row, column] += shares[m, of] * product
            b = chain[1, b]
    for m in range(logits):
        mean, precision = means[m], precisions[m]
        for i in range(mean.size):
            if mean[i] != 0.0:
                add_times(precision[i], mean, -weight * mean[i], i + 1)
        for i in range(mean.size):
            mean[i] = 0.0


@kernel()
def step_by_matrix(pool: Any, m: int, count: int, label: int, weight: float, drawn: float, n: int, fresh: bool) -> None:
    """Let logit m learn a trial of ``count`` ratings in its first ``n`` coordinates; ``drawn`` is (1 - g) ridge.

    The precision has the curvature of the trial already. Unless ``fresh``, an older factor of it gives the direction,
    and the precision the length of the step.
    """
    places, of, values, shares = pool.places, pool.of, pool.values, pool.own[m]
    weights, home, precision = pool.weights[m], pool.home[m], pool.precision[m, :n]
    size = (n + SIDE - 1) // SIDE * SIDE
    factor = pool.factor[m, : size * size].reshape((size, size))
    gradient, step = pool.vectors[1], pool.vectors[2]
    for i in range(n):
        gradient[i] = drawn * (home[i] - weights[i])
    for j in range(count):
        gradient[places[j]] += weight * ((1.0 if of[j] == label else 0.0) - shares[of[j]]) * values[j]
    if fresh:
        decompose(precision, factor, pool.vectors[3])
    for i in range(n):
        step[i] = gradient[i]
    for i in range(n, size):
        step[i] = 0.0
    solve_blocks(factor, step)
    length = 1.0
    if not fresh:
        square = along(precision, step)
        length = dot(gradient, step, n) / square if square > 0.0 else 0.0
    for i in range(n):
        weights[i] += length * step[i]


@kernel()
def curved(
    pool: Any, count: int, known: int, weight: float, shares: np.ndarray, x: np.ndarray, result: np.ndarray
) -> None:
    """Add H x, times the weight of the trial, to ``result`` at the coordinates of the trial."""
    places, of, values, by_class, mean = pool.places, pool.of, pool.values, pool.vectors[4], 0.0
    for c in range(known):
        by_class[c] = 0.0
    for j in range(count):
        by_class[of[j]] += values[j] * x[places[j]]
    for c in range(known):
        mean += shares[c] * by_class[c]
    for j in range(count):
        result[places[j]] += weight * values[j] * shares[of[j]] * (by_class[of[j]] - mean)


@kernel()
def step_by_diagonal(
    pool: Any, m: int, count: int, known: int, label: int, weight: float, ridge: float, kept: float
) -> int:
    """The same with the diagonal of the precision alone; return how many coordinates spoke, listed in ``chain[0]``.

    Only those that speak forget. The Newton step is one by the diagonal and all of the trial's own curvature, found by
    conjugate gradients, so that voters who always agree are not all corrected for the same mistake.
    """
    places, of, values, shares = pool.places, pool.of, pool.values, pool.own[m]
    weights, home, diagonal, active, room = pool.weights[m], pool.home[m], pool.diagonal[m], pool.chain[0], pool.vectors
    residual, direction, turned, step, squares = room[0], room[1], room[2], room[3], room[5]
    size = 0
    for j in range(count):
        place = places[j]
        if j == 0 or place != places[j - 1]:
            active[size] = place
            size += 1
            residual[place], step[place], squares[place] = 0.0, 0.0, 0.0
            if kept < 1.0:
                drawn = (1.0 - kept) * ridge
                diagonal[place] = kept * diagonal[place] + drawn
                residual[place] = drawn * (home[place] - weights[place])
            turned[place] = 0.0  # the mean rating, for now
    for j in range(count):
        place, share, value = places[j], shares[of[j]], values[j]
        residual[place] += weight * ((1.0 if of[j] == label else 0.0) - share) * value
        turned[place] += share * value
        squares[place] += share * value * value
    product = 0.0
    for a in range(size):
        place = active[a]
        squares[place] = weight * max(0.0, squares[place] - turned[place] * turned[place])
        direction[place] = residual[place] / diagonal[place]
        product += residual[place] * direction[place]
    enough = SOLVED * product
    for _ in range(GRADIENT_ROUNDS):
        if product <= enough:
            break
        for a in range(size):
            turned[active[a]] = diagonal[active[a]] * direction[active[a]]
        curved(pool, count, known, weight, shares, direction, turned)
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


FACTOR, PRECISION = 0, 1  # what is kept of each logit: s, and the precision with which it is known
LASTS = 1000.0  # trials
SHARPNESS_PRIOR = 1.0
SHARPNESS_KEPT = 0.99
SHARPEST = 10.0  # the greatest s
LEAST_SEEN = 1e-300  # least probability of which a logarithm is taken
MOST_MORE = 60.0  # greatest logarithm of a ratio of probabilities


def join_sharpness(parts: list[tuple[np.ndarray, float]]) -> np.ndarray:
    """Return what was learned together from what pools learned separately, each with how many times it counts.

    The base of all counts less than not at all.

    Examples
    --------
    >>> join_sharpness([(np.array([[2.0, 3.0]]), 1.0), (np.array([[3.0, 3.0]]), 1.0)])
    array([[2.8, 5. ]])
    """
    prior = SHARPNESS_PRIOR
    pull = prior + sum(times * (own[:, FACTOR] * own[:, PRECISION] - prior) for own, times in parts)
    precision = np.maximum(prior + sum(times * (own[:, PRECISION] - prior) for own, times in parts), prior)
    return np.stack([np.clip(pull / precision, 1.0, SHARPEST), precision], axis=1)


@kernel()
def factor_of(sharpness: np.ndarray, trials: int) -> float:
    """f of a logit after so many trials."""
    return 1.0 + (sharpness[FACTOR] - 1.0) * LASTS / (LASTS + trials)


@kernel()
def sharpen(factor: float, scores: np.ndarray, own: np.ndarray, known: int, shares: np.ndarray) -> None:
    """Write Q to ``shares``; ``own`` is P, and the scores, whose softmax it is, are overwritten."""
    if factor == 1.0:
        for c in range(known):
            shares[c] = own[c]
    else:
        for c in range(known):
            scores[c] *= factor
        to_shares(scores, known, shares)


@kernel()
def learn_sharpness(sharpness: np.ndarray, own: np.ndarray, known: int, label: int, sure: float) -> None:
    """One step of a logit's factor; ``sure`` is how likely the label is no guess, times the weight of the trial."""
    factor, drawn = sharpness[FACTOR], (1.0 - SHARPNESS_KEPT) * SHARPNESS_PRIOR
    right = math.log(max(LEAST_SEEN, own[label]))
    total, mean, square = 0.0, 0.0, 0.0  # of P^s, relative to that of the label; of the logarithms less that of it
    for c in range(known):
        more = min(MOST_MORE, math.log(max(LEAST_SEEN, own[c])) - right)
        share = math.exp(factor * more)
        total += share
        mean += share * more
        square += share * more * more
    mean /= total
    square = max(0.0, square / total - mean * mean)
    sharpness[PRECISION] = SHARPNESS_KEPT * sharpness[PRECISION] + drawn + sure * square
    slope = drawn * (1.0 - factor) - sure * mean
    sharpness[FACTOR] = min(SHARPEST, max(1.0, factor + slope / sharpness[PRECISION]))
