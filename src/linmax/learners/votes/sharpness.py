"""How sure a logit of the pool is, put right by how its predictions turned out.

A logit whose prior holds its weights back is right long before it is sure: of its scores the order is learned, and not
yet the size. So its scores are multiplied by a factor s, and with s it is judged against the other members and mixed:
the probability that it gave to class c becomes

    Q(c) = P(c)^s / sum_j P(j)^s.

After each trial s takes one Newton step on the log loss of Q, which was said before the label was seen, with a Gaussian
prior of precision `SHARPNESS_PRIOR` about 1. A trial counts as far as its label is no guess, and `SHARPNESS_KEPT` of
the past is kept. The factor is never below 1: a logit that is too sure is left to the mixture, which trusts it less.
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
    "join_sharpness",
    "learn_sharpness",
    "new_sharpness",
    "sharpen",
]

FACTOR, PRECISION = 0, 1  # what is kept of each logit
SHARPNESS_PRIOR = 1.0
SHARPNESS_KEPT = 0.99
SHARPEST = 10.0  # the greatest factor
LEAST_SEEN = 1e-300  # least probability of which a logarithm is taken


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
def sharpen(factor: float, scores: np.ndarray, own: np.ndarray, known: int, shares: np.ndarray) -> None:
    """Q of the scores: ``shares``; P is ``own``. The scores change."""
    for c in range(known):
        if factor == 1.0:
            shares[c] = own[c]
        else:
            scores[c] *= factor
    if factor != 1.0:
        to_shares(scores, known, shares)


@kernel()
def learn_sharpness(
    sharpness: np.ndarray, own: np.ndarray, shares: np.ndarray, known: int, label: int, sure: float
) -> None:
    """One step of a logit's factor; ``sure`` is how likely the label is no guess."""
    mean, square = 0.0, 0.0
    for c in range(known):
        mean += shares[c] * math.log(max(LEAST_SEEN, own[c]))
    for c in range(known):
        square += shares[c] * (math.log(max(LEAST_SEEN, own[c])) - mean) ** 2
    factor, drawn = sharpness[FACTOR], (1.0 - SHARPNESS_KEPT) * SHARPNESS_PRIOR
    sharpness[PRECISION] = SHARPNESS_KEPT * sharpness[PRECISION] + drawn + sure * square
    slope = sure * (math.log(max(LEAST_SEEN, own[label])) - mean) + drawn * (1.0 - factor)
    sharpness[FACTOR] = min(SHARPEST, max(1.0, factor + slope / sharpness[PRECISION]))
