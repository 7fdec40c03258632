"""Score normalisation as voters, and the quantities of combinatorial fusion analysis.

A rater gives every class a score, s in R^k, on its own scale. `Normaliser` makes several copies of each rater, one
for each normalisation named, all in [0, 1] as multiplicative rules need; the learner chooses by weighing the copies.
Mesterharm and Hsu propose this as future work.

Seen by combinatorial fusion analysis, a rater is a scoring system on the k classes of one instance. Its rank-score
characteristic f(i) is the score, min-max normalised, at rank i; the cognitive diversity of two raters is
CD(A, B) = sqrt(mean over i of (f_A(i) - f_B(i))^2), averaged over instances (Hsu and Taksa 2005; Hsu, Chung and
Kristal 2006).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.util.checks import boolean, one_of, positive, refuse_masked
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import special, stats
else:
    special, stats = LazyModule("scipy.special"), LazyModule("scipy.stats")

__all__ = [
    "AUTOMATIC",
    "NORMALISATIONS",
    "Normaliser",
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
STRETCH = 2**22  # ratings ranked or compared at a time, to bound memory


def _tamed(scores: np.ndarray) -> np.ndarray:
    """Each vector divided by a power of two, so that its largest magnitude is about 1: exact, without overflow."""
    return np.ldexp(scores, -np.frexp(np.abs(scores).max(axis=-1, keepdims=True))[1])


def _minmax(scores: np.ndarray) -> np.ndarray:
    scores = _tamed(scores)
    low, width = scores.min(axis=-1, keepdims=True), np.ptp(scores, axis=-1)[..., None]
    return np.divide(scores - low, width, out=np.zeros_like(scores), where=width > 0.0)


def _shares(scores: np.ndarray) -> np.ndarray:
    scores = _tamed(scores)
    lifted = scores - np.minimum(scores.min(axis=-1, keepdims=True), 0.0)
    total = lifted.sum(axis=-1, keepdims=True)
    return np.divide(lifted, total, out=np.zeros_like(scores), where=total > 0.0)


def _logistic(scores: np.ndarray) -> np.ndarray:
    scores = _tamed(scores)
    centred = scores - scores.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True))
    # The mean of equal numbers may differ from them in the last digit: such a deviation is rounding.
    real = np.ptp(scores, axis=-1)[..., None] > 0.0
    return np.asarray(
        special.expit(np.divide(centred, deviation, out=np.zeros_like(scores), where=real & (deviation > 0.0)))
    )


def _borda(scores: np.ndarray) -> np.ndarray:
    k = scores.shape[-1]
    return (k - ranks(scores)) / (k - 1) if k > 1 else np.zeros_like(scores)


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
    Normaliser : applies this under the name "log".

    Examples
    --------
    >>> log_shares(np.array([0.9, 0.1, 0.0])).round(3).tolist()
    [0.992, 0.833, 0.0]
    """
    shares = np.where(scores.min(axis=-1, keepdims=True) < 0.0, _softmax(scores, 1.0), _shares(scores))
    silent = ~shares.any(axis=-1, keepdims=True)
    return np.where(silent, 0.0, 1.0 + np.log(np.maximum(shares, NO_SHARE)) / -np.log(NO_SHARE))


def _onehot(scores: np.ndarray) -> np.ndarray:
    leading = scores == scores.max(axis=-1, keepdims=True)
    return leading / leading.sum(axis=-1, keepdims=True)


def _softmax(scores: np.ndarray, temperature: float) -> np.ndarray:
    with np.errstate(over="ignore"):  # far below the highest: -inf, whose exponential is 0
        powers = np.exp((scores - scores.max(axis=-1, keepdims=True)) / temperature)
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


# Those that need only the instance itself; "softmax" has a temperature, "running" needs the instances so far.
_OF_ONE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "raw": np.copy,
    "minmax": _minmax,
    "sum": _shares,
    "zscore": _logistic,
    "borda": _borda,
    "reciprocal": lambda scores: 1.0 / ranks(scores),
    "onehot": _onehot,
    "log": log_shares,
}
NORMALISATIONS = (*_OF_ONE, "softmax", "running")
AUTOMATIC = ("minmax", "softmax", "borda", "onehot", "log")


class Normaliser:
    """Copies of raters under several normalisations, side by side: (T, n, k) scores become (T, n q, k).

    Parameters
    ----------
    kinds
        Names, "auto" for minmax, softmax, borda, onehot and log, or "all" for every one but raw:

        ========== ==========================================================================================
        raw        s as it is; only for scores that differ by at most 1
        minmax     (s - min) / (max - min) over the classes of the instance; 0 if all are equal
        running    the same with the smallest and largest score of the rater so far, the present one included; a
                   rater that scores all classes alike abstains and leaves both as they are
        sum        s / sum(s), after lifting negative scores so that the smallest is 0
        softmax    exp(s / temperature), divided by its sum
        zscore     logistic function of (s - mean) / deviation over the classes
        borda      (k - rank) / (k - 1), tied classes at their mean rank
        reciprocal 1 / rank
        onehot     1 for the highest class, the vote of the rater; tied leaders share it
        log        1 + log(p) / log(1e6), at least 0: p is s / sum(s), or softmax of s if some are negative
        ========== ==========================================================================================
    temperature
        Of softmax.

    References
    ----------
    Hsu and Taksa (2005), Comparing rank and score combination methods for data fusion in information retrieval.

    Examples
    --------
    >>> import numpy as np
    >>> Normaliser(["minmax", "borda"]).apply(np.array([[[1.0, 4.0, 2.0]]])).round(2).tolist()
    [[[0.0, 1.0, 0.33], [0.0, 1.0, 0.5]]]
    """

    def __init__(self, kinds: str | Sequence[str] = "auto", *, temperature: float = 1.0) -> None:
        named = {"auto": AUTOMATIC, "all": NORMALISATIONS[1:]}
        if isinstance(kinds, str):
            kinds = named.get(kinds, (kinds,))
        self.kinds = tuple(one_of("normalisation", kind, NORMALISATIONS) for kind in kinds)
        if not self.kinds or len(set(self.kinds)) < len(self.kinds):
            raise ValueError(f"normalisations must be distinct and at least one, got {list(self.kinds)!r}; try 'auto'")
        self.temperature = positive("temperature", temperature, 1.0)
        self.lows, self.highs = np.zeros(0), np.zeros(0)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All state: the smallest and largest score of each rater so far, which "running" needs."""
        return {"lows": self.lows, "highs": self.highs}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Continue from `arrays`."""
        self.lows, self.highs = arrays["lows"].copy(), arrays["highs"].copy()

    def apply(self, scores: np.ndarray, *, learn: bool = True) -> np.ndarray:
        """The copies: rater 0 under every kind, then rater 1, ...; ``learn=False`` leaves the state as it is."""
        scores = checked_scores(scores, 3)
        learn = boolean("learn", learn)
        copies = [self._copy(kind, scores, learn) for kind in self.kinds]
        trials, raters, k = scores.shape
        return np.stack(copies, axis=2).reshape(trials, raters * len(copies), k)

    def _copy(self, kind: str, scores: np.ndarray, learn: bool) -> np.ndarray:
        if kind == "softmax":
            return _softmax(scores, self.temperature)
        return self._running(scores, learn) if kind == "running" else _OF_ONE[kind](scores)

    def _running(self, scores: np.ndarray, learn: bool) -> np.ndarray:
        raters = scores.shape[1]
        new = np.full(max(0, raters - len(self.lows)), np.inf)  # new raters have no range yet
        lows, highs = np.append(self.lows, new)[:raters], np.append(self.highs, -new)[:raters]
        if not scores.size:
            return np.zeros_like(scores)
        speaks = np.ptp(scores / 2, axis=2) > 0.0
        lowest = np.where(speaks, scores.min(axis=2), np.inf)
        highest = np.where(speaks, scores.max(axis=2), -np.inf)
        if learn:  # one instance after the other, so that the cuts into calls do not matter
            lowest = np.minimum.accumulate(np.vstack([lows, lowest]))[1:]
            highest = np.maximum.accumulate(np.vstack([highs, highest]))[1:]
            self.lows = np.append(lowest[-1], self.lows[raters:])
            self.highs = np.append(highest[-1], self.highs[raters:])
        else:
            lowest, highest = np.minimum(lows, lowest), np.maximum(highs, highest)
        lowest, highest = np.where(speaks, lowest, 0.0)[:, :, None], np.where(speaks, highest, 0.0)[:, :, None]
        width = highest / 2 - lowest / 2  # halves do not overflow
        return np.divide(scores / 2 - lowest / 2, width, out=np.zeros_like(scores), where=width > 0.0)


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
    return -np.sort(-_minmax(checked_scores(scores)), axis=-1)


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
        raise ValueError(f"scores must be finite, got {array[place]} at {place}; equal scores abstain")
    return array


def _told(scores: Any) -> str:
    text = repr(scores)
    return text if len(text) <= 60 else f"{text[:57]}..."
