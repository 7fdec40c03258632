"""How sure a logit of the pool is, put right by how its predictions turned out.

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
from collections.abc import Sequence

import numpy as np

from linmax.jit.compiling import kernel
from linmax.learners.softmax_trials import to_shares

__all__ = [
    "FACTOR",
    "SHARPNESS_KEPT",
    "SHARPNESS_PRIOR",
    "factor_of",
    "join_sharpness",
    "learn_sharpness",
    "new_sharpness",
    "sharpen",
]

FACTOR, PRECISION = 0, 1  # what is kept of each logit: s, and the precision with which it is known
LASTS = 1000.0  # trials
SHARPNESS_PRIOR = 1.0
SHARPNESS_KEPT = 0.99
SHARPEST = 10.0  # the greatest s
LEAST_SEEN = 1e-300  # least probability of which a logarithm is taken
MOST_MORE = 60.0  # greatest logarithm of a ratio of probabilities


def new_sharpness(logits: int) -> np.ndarray:
    """(logits, 2): before the first trial.

    Examples
    --------
    >>> new_sharpness(1)
    array([[1., 1.]])
    """
    return np.tile([1.0, SHARPNESS_PRIOR], (logits, 1))


def join_sharpness(parts: Sequence[tuple[np.ndarray, float]]) -> np.ndarray:
    """What pools have learned together that learned apart; each counts so many times, the base of all fewer than none.

    Examples
    --------
    >>> join_sharpness([(np.array([[2.0, 3.0]]), 1.0), (np.array([[3.0, 3.0]]), 1.0)])
    array([[2.8, 5. ]])
    """
    new = new_sharpness(len(parts[0][0]))
    pull = SHARPNESS_PRIOR + sum(often * (own[:, FACTOR] * own[:, PRECISION] - SHARPNESS_PRIOR) for own, often in parts)
    told = SHARPNESS_PRIOR + sum(often * (own[:, PRECISION] - SHARPNESS_PRIOR) for own, often in parts)
    new[:, PRECISION] = np.maximum(told, SHARPNESS_PRIOR)
    new[:, FACTOR] = np.clip(pull / new[:, PRECISION], 1.0, SHARPEST)
    return new


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
    """One step of a logit's factor; ``sure`` is how likely the label is no guess."""
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
