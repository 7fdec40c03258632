"""Weights of samples, and the order in which the passes of a fit show them; on-line see `linmax.models.showings`."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

SUM_ROUNDING = 1e-9  # by which a sum of fractional weights may miss a whole number
GOLDEN = 0.6180339887498949  # multiples of it, less their whole part, are spread evenly


def weights_of(sample_weight: Any, X: Any) -> np.ndarray:
    """One weight for each sample, 1 by default; in one of many calls all may be 0."""
    given = None if sample_weight is None else np.asarray(sample_weight)
    if given is not None and given.ndim and not given.any():
        check_consistent_length(X, given)
        return np.zeros(len(given))
    weights = np.asarray(_check_sample_weight(given, X, dtype=np.float64))
    if (weights < 0.0).any():
        raise ValueError(f"sample_weight must be >= 0, got {weights.min():g}; 0 leaves a sample out")
    return weights


def showings(weights: np.ndarray, begin: float = 0.0) -> np.ndarray:
    """How often each sample is shown, floor(W_t) - floor(W_{t-1}) for W_t the sum of ``begin`` and weights up to t.

    A whole weight is that many showings; fractions add up, and each time they reach 1 the sample at hand is shown.

    Examples
    --------
    >>> import numpy as np
    >>> showings(np.array([2.0, 0.0, 0.5, 0.25, 0.5]))
    array([2, 0, 0, 0, 1])
    """
    whole_part = np.floor(begin + np.cumsum(weights) + SUM_ROUNDING).astype(np.int64)
    return np.diff(whole_part, prepend=0)


def shares_of(sample_weight: Any, class_weight: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """One weight for each sample of a fit, the mean of those that are not 0 being 1: only their ratios count.

    Examples
    --------
    >>> import numpy as np
    >>> shares_of([0.02, 0.02, 0.0, 0.04], None, np.zeros((4, 1)), np.array(["a", "b", "b", "b"])).round(2).tolist()
    [0.75, 0.75, 0.0, 1.5]
    """
    weights = weights_of(sample_weight, X)
    if class_weight is not None:
        shown = weights > 0.0
        factors = np.zeros(len(weights))
        factors[shown] = compute_sample_weight(class_weight, y[shown])
        weights = weights * factors
    largest = float(weights.max(initial=0.0))
    if largest == 0.0:
        raise ValueError("sample_weight: all weights are zero; leave it out, or give some sample more")
    scaled = weights / largest
    return np.asarray(scaled * (np.count_nonzero(scaled) / scaled.sum()))


class Showing:
    """The order in which the passes of a fit show samples, each on average as often as its weight says.

    Where fractions begin to add up differs from pass to pass, so that it favours no sample.
    """

    def __init__(self, rows: np.ndarray, weights: np.ndarray, random: np.random.RandomState | None) -> None:
        self.rows, self.weights, self.random = rows, weights, random
        self.even = bool((weights[rows] == 1.0).all())
        self.begin = 0.5

    def order(self) -> np.ndarray:
        """The samples of one pass, each as often as it is shown; in random order, or without ``random`` in theirs."""
        rows = self.rows if self.random is None else self.random.permutation(self.rows)
        if self.even:
            return rows
        counts = showings(self.weights[rows], self.begin)
        self.begin = (self.begin + GOLDEN) % 1.0
        shown = np.repeat(rows, counts)
        return shown if self.random is None else self.random.permutation(shown)
