"""Score normalisation as voters.

A rater gives every class a score, s in R^k, on its own scale. `Normaliser` makes several copies of each rater, one
for each normalisation named, all in [0, 1] as multiplicative rules need; the learner chooses by weighing the copies.
Mesterharm and Hsu propose this as future work. The quantities of combinatorial fusion analysis are here too
(`linmax.data.rank_scores`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from linmax.data.rank_scores import (
    checked_scores,
    cognitive_diversity,
    combine_scores,
    diversity_strength,
    minmax,
    rank_score,
    ranks,
    tamed,
)
from linmax.util.checks import boolean, one_of, positive
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import special
else:
    special = LazyModule("scipy.special")

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


def _shares(scores: np.ndarray) -> np.ndarray:
    scores = tamed(scores)
    lifted = scores - np.minimum(scores.min(axis=-1, keepdims=True), 0.0)
    total = lifted.sum(axis=-1, keepdims=True)
    return np.divide(lifted, total, out=np.zeros_like(scores), where=total > 0.0)


def _logistic(scores: np.ndarray) -> np.ndarray:
    scores = tamed(scores)
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
    "minmax": minmax,
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
