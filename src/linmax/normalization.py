"""Score normalizations, which make voters of raters, and the quantities of combinatorial fusion analysis.

A rater gives every class a score, s in R^k, on its own scale. `Normalizer` makes several copies of each rater, one
for each normalization named, all in [0, 1] as multiplicative rules need; the learner chooses by weighing the copies.
Mesterharm and Hsu propose this as future work.

In combinatorial fusion analysis a rater is a scoring system on the k classes of one instance. Its rank-score
characteristic f(i) is the score, min-max normalized, at rank i; the cognitive diversity of two raters is
CD(A, B) = sqrt(mean over i of (f_A(i) - f_B(i))^2), averaged over instances (Hsu and Taksa 2005; Hsu, Chung and
Kristal 2006).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linmax.util.checks import boolean, one_of, refuse_masked
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import stats
else:
    stats = LazyModule("scipy.stats")

__all__ = [
    "NORMALIZATIONS",
    "Normalizer",
    "checked_scores",
    "cognitive_diversity",
    "combine_scores",
    "diversity_strength",
    "log_shares",
    "rank_score",
    "ranks",
    "soft_votes",
]

NO_SHARE = 1e-6  # share of a score that counts as none in its logarithm
NEARLY_ONE = 1e-3  # difference from 1 up to which a sum is one of probabilities
STRETCH = 2**22  # ratings compared at a time, to bound memory


def _tamed(scores: np.ndarray) -> np.ndarray:
    """Divide each vector by a power of two, so that its largest magnitude is about 1: exact, without overflow."""
    return np.ldexp(scores, -np.frexp(np.abs(scores).max(axis=-1, keepdims=True))[1])


def _minmax(scores: np.ndarray) -> np.ndarray:
    """Scores of each vector from 0 for the lowest class to 1 for the highest; 0 if all are equal."""
    scores = _tamed(scores)
    low, width = scores.min(axis=-1, keepdims=True), np.ptp(scores, axis=-1)[..., None]
    return np.divide(scores - low, width, out=np.zeros_like(scores), where=width > 0.0)


def _shares(scores: np.ndarray) -> np.ndarray:
    scores = _tamed(scores)
    lifted = scores - np.minimum(scores.min(axis=-1, keepdims=True), 0.0)
    total = lifted.sum(axis=-1, keepdims=True)
    return np.divide(lifted, total, out=np.zeros_like(scores), where=total > 0.0)


def _borda(scores: np.ndarray) -> np.ndarray:
    k = scores.shape[-1]
    return (k - ranks(scores)) / (k - 1) if k > 1 else np.zeros_like(scores)


def _onehot(scores: np.ndarray) -> np.ndarray:
    leading = scores == scores.max(axis=-1, keepdims=True)
    return leading / leading.sum(axis=-1, keepdims=True)


def _softmax(scores: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # far below the highest: -inf, whose exponential is 0
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def log_shares(scores: np.ndarray) -> np.ndarray:
    """The logarithms of shares, in [0, 1]: 1 + log(share) / log(1e6), and 0 for shares below 1e-6.

    Parameters
    ----------
    scores : array of shape (..., k)
        Of the k classes. Scores below 0 become shares by softmax, others by division by their sum.

    Returns
    -------
    array of the same shape. A rater that gives no class anything gets 0 for all.

    See Also
    --------
    Normalizer : applies this under the name "log".

    Examples
    --------
    >>> log_shares(np.array([0.9, 0.1, 0.0])).round(3).tolist()
    [0.992, 0.833, 0.0]
    """
    shares = np.where(scores.min(axis=-1, keepdims=True) < 0.0, _softmax(scores), _shares(scores))
    silent = ~shares.any(axis=-1, keepdims=True)
    return np.where(silent, 0.0, 1.0 + np.log(np.maximum(shares, NO_SHARE)) / -np.log(NO_SHARE))


def scaled_logarithms(scores: np.ndarray) -> np.ndarray:
    """Scores that are probabilities, or logarithms of such, as `log_shares` has them; others as they are.

    Parameters
    ----------
    scores : array of shape (..., k)
        Of the k classes.

    Returns
    -------
    array of the same shape.

    Examples
    --------
    >>> scaled_logarithms(np.array([[0.5, 0.5, 0.0], [-0.7, -0.7, -50.0], [-3.0, 2.0, 4.0]])).round(2).tolist()
    [[0.95, 0.95, 0.0], [0.95, 0.95, 0.0], [-3.0, 2.0, 4.0]]
    """
    least = scores.min(axis=-1, keepdims=True, initial=np.inf)
    powers = np.exp(np.minimum(scores, 1.0)).sum(axis=-1, keepdims=True)
    logs = abs(powers - 1.0) < 10.0 * NEARLY_ONE
    shares = (least >= 0.0) & (abs(scores.sum(axis=-1, keepdims=True) - 1.0) < NEARLY_ONE)
    values = np.log(np.maximum(np.where(shares, scores, 1.0), NO_SHARE)) + np.where(logs, scores, 0.0)
    return np.where(shares | logs, np.maximum(0.0, 1.0 + values / -np.log(NO_SHARE)), scores)


_NORMALIZE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "minmax": _minmax,
    "softmax": _softmax,
    "borda": _borda,
    "onehot": _onehot,
    "log": log_shares,
}
NORMALIZATIONS = tuple(_NORMALIZE)


class Normalizer:
    """Copies of raters under several normalizations, side by side: (T, n, k) scores become (T, n q, k).

    Parameters
    ----------
    kinds
        Names, or "auto" for "log":

        ========== ==========================================================================================
        minmax     (s - min) / (max - min) over the classes of the instance; 0 if all are equal
        softmax    exp(s), divided by its sum
        borda      (k - rank) / (k - 1), tied classes at their mean rank
        onehot     1 for the highest class, the vote of the rater; tied leaders share it
        log        1 + log(p) / log(1e6), at least 0: p is s / sum(s), or softmax of s if some are negative
        ========== ==========================================================================================

    References
    ----------
    Hsu and Taksa (2005), Comparing rank and score combination methods for data fusion in information retrieval.

    Examples
    --------
    >>> import numpy as np
    >>> Normalizer(["minmax", "borda"]).apply(np.array([[[1.0, 4.0, 2.0]]])).round(2).tolist()
    [[[0.0, 1.0, 0.33], [0.0, 1.0, 0.5]]]
    """

    def __init__(self, kinds: str | Sequence[str] = "auto") -> None:
        names = "log" if isinstance(kinds, str) and kinds == "auto" else kinds
        names = (names,) if isinstance(names, str) else names
        self.kinds = tuple(one_of("normalization", kind, NORMALIZATIONS) for kind in names)
        if not self.kinds or len(set(self.kinds)) < len(self.kinds):
            raise ValueError(f"normalizations must be distinct and at least one, got {list(self.kinds)!r}; try 'auto'")

    def apply(self, scores: np.ndarray) -> np.ndarray:
        """Return the copies: rater 0 under every kind, then rater 1, ..."""
        scores = checked_scores(scores, 3)
        copies = [_NORMALIZE[kind](scores) for kind in self.kinds]
        trials, raters, k = scores.shape
        return np.stack(copies, axis=2).reshape(trials, raters * len(copies), k)


def soft_votes(scores: np.ndarray) -> np.ndarray:
    """Soft voting: the mean over the raters of their shares.

    Parameters
    ----------
    scores : array of shape (T, n, k)
        Of n raters for k classes in T trials, at least 0.

    Returns
    -------
    array of shape (T, k).

    See Also
    --------
    combine_scores : combines raters by other means.

    Examples
    --------
    >>> soft_votes(np.array([[[0.6, 0.4], [0.1, 0.9]]])).round(2).tolist()
    [[0.35, 0.65]]
    """
    return np.asarray(_shares(scores).mean(axis=1))


# -- combinatorial fusion analysis --------------------------------------------------------------------------------


def ranks(scores: npt.ArrayLike) -> np.ndarray:
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


def rank_score(scores: npt.ArrayLike) -> np.ndarray:
    """Rank-score characteristic f(1) >= ... >= f(k): the scores, min-max normalized, in falling order.

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
    return -np.sort(-_minmax(checked_scores(scores)), axis=-1)


def cognitive_diversity(scores: npt.ArrayLike) -> np.ndarray:
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
            gaps = shapes[:, i + 1 :] - shapes[:, i : i + 1]
            total[i, i + 1 :] += np.sqrt((gaps**2).mean(axis=2)).sum(axis=0)
    return (total + total.T) / max(1, trials)


def diversity_strength(scores: npt.ArrayLike) -> np.ndarray:
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
    scores: npt.ArrayLike, by: str = "score", weights: str | Sequence[float] | None = None, *, reciprocal: bool = False
) -> np.ndarray:
    """The combinations of combinatorial fusion analysis, without learning: (T, n, k) scores to (T, k), highest best.

    With the mean of min-max normalized scores or of ranks, and equal weights, weights by diversity strength or by
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
            raise ValueError("reciprocal weights need weights > 0, but a rater has 0; remove it")
        shares = 1.0 / shares
    rated = _minmax(array) if one_of("by", by, ("score", "rank")) == "score" else -ranks(array)
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


def checked_scores(scores: npt.ArrayLike, dimensions: int | None = None) -> np.ndarray:
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
    Normalizer : checks what it is given with this.

    Examples
    --------
    >>> checked_scores([[1, 2]]).tolist()
    [[1.0, 2.0]]
    """
    refuse_masked("scores", scores)
    try:
        array = np.asarray(scores, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"scores must be numbers in a regular array, got {_shown(scores)}") from None
    if dimensions is not None and array.ndim != dimensions:
        raise ValueError(f"scores must be (trials, raters, classes), got shape {array.shape}; reshape it")
    if not array.ndim or not array.shape[-1]:
        raise ValueError(f"scores must rate at least one class, got shape {array.shape}")
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        remedy = "give a low number for the logarithm of 0, such as -100" if array[place] == -np.inf else "fill it in"
        raise ValueError(f"scores must be finite, got {array[place]} at {place}; {remedy}, or equal scores to abstain")
    return array


def _shown(scores: Any) -> str:
    text = repr(scores)
    return text if len(text) <= 60 else f"{text[:57]}..."
