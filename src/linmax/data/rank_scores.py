"""Ranks and scores of the classes side by side: the quantities of combinatorial fusion analysis.

A rater is a scoring system on the k classes of one instance. Its rank-score characteristic f(i) is the score, min-max
normalised, at rank i; the cognitive diversity of two raters is CD(A, B) = sqrt(mean over i of (f_A(i) - f_B(i))^2),
averaged over instances (Hsu and Taksa 2005; Hsu, Chung and Kristal 2006).

Users find them in `linmax.normalisation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.util.checks import boolean, one_of, refuse_masked
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import stats
else:
    stats = LazyModule("scipy.stats")

__all__ = [
    "checked_scores",
    "cognitive_diversity",
    "combine_scores",
    "diversity_strength",
    "minmax",
    "rank_score",
    "ranks",
    "tamed",
]

STRETCH = 2**22  # ratings compared at a time, to bound memory


def tamed(scores: np.ndarray) -> np.ndarray:
    """Each vector divided by a power of two, so that its largest magnitude is about 1: exact, without overflow."""
    return np.ldexp(scores, -np.frexp(np.abs(scores).max(axis=-1, keepdims=True))[1])


def minmax(scores: np.ndarray) -> np.ndarray:
    """Scores of each vector from 0 for the lowest class to 1 for the highest; 0 if all are equal."""
    scores = tamed(scores)
    low, width = scores.min(axis=-1, keepdims=True), np.ptp(scores, axis=-1)[..., None]
    return np.divide(scores - low, width, out=np.zeros_like(scores), where=width > 0.0)


def ranks(scores: Any) -> np.ndarray:
    """Rank of every class along the last axis: 1 for the highest score, the mean of their ranks for tied ones.

    Parameters
    ----------
    scores
        Numbers; the last axis is the classes.

    Returns
    -------
    array
        Of the same shape; 1 is best.

    References
    ----------
    Hsu and Taksa (2005), Comparing rank and score combination methods for data fusion in information retrieval.

    Examples
    --------
    >>> ranks([0.2, 0.9, 0.2]).tolist()
    [2.5, 1.0, 2.5]
    """
    return np.asarray(stats.rankdata(-checked_scores(scores), axis=-1))


def rank_score(scores: Any) -> np.ndarray:
    """Rank-score characteristic f(1) >= ... >= f(k): the scores, min-max normalised, in falling order.

    Parameters
    ----------
    scores
        Numbers; the last axis is the classes.

    Returns
    -------
    array
        Of the same shape.

    References
    ----------
    Hsu and Taksa (2005), Comparing rank and score combination methods for data fusion in information retrieval.

    Examples
    --------
    >>> rank_score([2.0, 6.0, 3.0]).tolist()
    [1.0, 0.25, 0.0]
    """
    return -np.sort(-minmax(checked_scores(scores)), axis=-1)


def cognitive_diversity(scores: Any) -> np.ndarray:
    """CD(A, B) = sqrt(mean over ranks of (f_A - f_B)^2), mean over instances, for every pair of raters: (n, n).

    Parameters
    ----------
    scores
        (T, n, k). Hard votes all have the characteristic 1, 0, ..., 0: the diversity of voters is 0.

    Returns
    -------
    array (n, n)
        Symmetric, 0 on the diagonal.

    References
    ----------
    Hsu, Chung and Kristal (2006), Combinatorial fusion analysis.

    Examples
    --------
    >>> cognitive_diversity([[[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]]).round(3).tolist()
    [[0.0, 0.577], [0.577, 0.0]]
    """
    array = checked_scores(scores, 3)
    trials, raters, k = array.shape
    total = np.zeros((raters, raters))
    step = max(1, STRETCH // max(1, raters * k))
    for begin in range(0, trials, step):
        shapes = rank_score(array[begin : begin + step])
        for i in range(raters - 1):
            apart = shapes[:, i + 1 :] - shapes[:, i : i + 1]
            total[i, i + 1 :] += np.sqrt((apart**2).mean(axis=2)).sum(axis=0)
    return (total + total.T) / max(1, trials)


def diversity_strength(scores: Any) -> np.ndarray:
    """Mean cognitive diversity of each rater to the others: (n,).

    Parameters
    ----------
    scores
        (T, n, k).

    Returns
    -------
    array (n,)
        One number for each rater.

    References
    ----------
    Hsu, Chung and Kristal (2006), Combinatorial fusion analysis.

    Examples
    --------
    >>> diversity_strength([[[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [3.0, 0.0, 0.0]]]).round(3).tolist()
    [0.289, 0.577, 0.289]
    """
    pairs = cognitive_diversity(scores)
    return pairs.sum(axis=1) / max(1, len(pairs) - 1)


def combine_scores(
    scores: Any, by: str = "score", weights: str | Sequence[float] | None = None, *, reciprocal: bool = False
) -> np.ndarray:
    """The combinations of combinatorial fusion analysis, without learning: (T, n, k) scores to (T, k), highest best.

    With the mean of min-max normalised scores or of ranks, and equal weights, weights by diversity strength or by
    performance, these are ASC, ARC, WSCDS, WRCDS, WSCP and WRCP.

    Parameters
    ----------
    by
        "score": sum of w_i s_i. "rank": minus the sum of w_i r_i, so that the highest is best here too.
    weights
        None for equal ones, "diversity", or one number > 0 for each rater, such as its accuracy on earlier data.
    reciprocal
        Weigh by 1 / w_i, as some authors do for ranks.

    Returns
    -------
    array (T, k)
        The combined scores; the highest is best.

    References
    ----------
    Hsu and Taksa (2005), Comparing rank and score combination methods for data fusion in information retrieval.

    Examples
    --------
    >>> scores = [[[0.9, 0.1, 0.3], [0.4, 0.5, 0.0]]]
    >>> combine_scores(scores).round(3).tolist(), combine_scores(scores, "rank").tolist()
    ([[0.9, 0.5, 0.125]], [[-1.5, -2.0, -2.5]])
    """
    array = checked_scores(scores, 3)
    shares = _weights(array, weights)
    if boolean("reciprocal", reciprocal):
        if not (shares > 0.0).all():
            raise ValueError("reciprocal weights need weights > 0, but a rater has 0; leave it out")
        shares = 1.0 / shares
    rated = minmax(array) if one_of("by", by, ("score", "rank")) == "score" else -ranks(array)
    return np.einsum("tnk,n->tk", rated, shares / shares.sum())


def _weights(scores: np.ndarray, weights: str | Sequence[float] | None) -> np.ndarray:
    raters = scores.shape[1]
    if isinstance(weights, str):
        one_of("weights", weights, ("diversity",))
        strength = diversity_strength(scores)
        return strength if strength.any() else np.ones(raters)
    given = np.ones(raters) if weights is None else np.asarray(weights, np.float64)
    if given.shape != (raters,) or not np.isfinite(given).all() or (given < 0.0).any() or not given.any():
        raise ValueError(f"weights must be {raters} numbers >= 0, one for each rater, not all 0, got {weights!r}")
    return given


def checked_scores(scores: Any, dimensions: int | None = None) -> np.ndarray:
    """Finite numbers, (trials, raters, classes) when three dimensions are asked for.

    Parameters
    ----------
    scores
        Numbers, as lists or arrays.
    dimensions
        How many axes there must be; any number without it.

    Returns
    -------
    array
        The scores as float64.

    See Also
    --------
    Normaliser : checks what it is given with this.

    Examples
    --------
    >>> checked_scores([[1, 2]]).tolist()
    [[1.0, 2.0]]
    """
    refuse_masked("scores", scores)
    try:
        array = np.asarray(scores, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"scores must be numbers in a regular array, got {_told(scores)}") from None
    if dimensions is not None and array.ndim != dimensions:
        raise ValueError(f"scores must be (trials, raters, classes), got shape {array.shape}; reshape it")
    if not array.ndim or not array.shape[-1]:
        raise ValueError(f"scores must rate at least one class, got shape {array.shape}")
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        remedy = "give a low number for the logarithm of 0, such as -100" if array[place] == -np.inf else "fill it in"
        raise ValueError(f"scores must be finite, got {array[place]} at {place}; {remedy}, or equal scores to abstain")
    return array


def _told(scores: Any) -> str:
    text = repr(scores)
    return text if len(text) <= 60 else f"{text[:57]}..."
