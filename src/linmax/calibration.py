"""Probabilities from scores, learned on-line: softmax at one temperature.

    P(j) = exp(b zeta(j)) / (exp(b zeta(1)) + ... + exp(b zeta(k)))

The sharpness b is the one under which the latest labels were most likely, each judged by the scores that were given
before it was seen. It changes no order: the class with the highest score stays the most probable one. Guo, Pleiss, Sun
and Weinberger (2017), On calibration of modern neural networks, call it temperature scaling.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax

from linmax.contract import KNOWN, Instances
from linmax.machine import Engine

__all__ = ["Calibration", "one_vector", "unit_scores"]

WINDOW = 500  # latest trials that count
EVERY = 32  # trials after which b is fitted anew
DOUBT = 2.0  # standard deviation of ln(b rms) before anything is seen, rms the root mean square of the scores
WIDEST = 12.0  # largest |ln(b rms)|


def one_vector(engine: Engine) -> np.ndarray | None:
    """The weights over all coordinates, where the learner predicts with one vector of them."""
    try:
        return engine.top.hypothesis(engine)[0]
    except ValueError:
        return None


def unit_scores(engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Predictions, and the scores of weights of 2-norm 1, so that scores given at different times can be compared.

    A learner without one weight vector gives its scores as they are: votes, shares, or sums of such unit scores. A
    class whose first label is still to come has -inf.
    """
    weights = one_vector(engine)
    if weights is None:
        predictions, table = engine.judge(instances, size)
    else:
        predictions, table = engine.rate(instances, size, weights)
        norm = float(np.linalg.norm(weights))
        table = table / norm if norm > 0.0 else table
    table[:, int(engine.state.shape[KNOWN]) :] = -np.inf
    return predictions, table


class Calibration:
    """The latest scores with their labels, and the sharpness that fits them.

    Examples
    --------
    >>> import numpy as np
    >>> calibration = Calibration()
    >>> scores = np.array([[0.2, 0.0], [0.0, 0.2], [0.2, 0.0], [0.0, 0.2]] * 25)
    >>> calibration.add(scores, np.array([0, 1, 0, 0] * 25))  # right three times in four
    >>> calibration.probabilities(np.array([[0.2, 0.0]])).round(2)
    array([[0.75, 0.25]])
    """

    def __init__(self) -> None:
        self.scores = np.zeros((0, 0))
        self.labels = np.zeros(0, np.int64)
        self.seen = 0
        self.sharpness = 1.0

    def add(self, scores: np.ndarray, labels: np.ndarray) -> None:
        """Take in scores (trials, k) given before their labels (places among the k) were seen."""
        k = max(scores.shape[1], self.scores.shape[1])
        joined = np.concatenate([_widened(self.scores, k), _widened(scores, k)])
        self.scores = joined[-WINDOW:].copy()
        self.labels = np.concatenate([self.labels, np.asarray(labels, np.int64)])[-WINDOW:].copy()
        before, self.seen = self.seen, self.seen + len(labels)
        if len(labels) and (self.seen <= EVERY or before // EVERY < self.seen // EVERY):
            self.sharpness = self._fitted()

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """The probability of each class, from scores (trials, k); a class with score -inf has none."""
        return np.asarray(softmax(self.sharpness * scores, axis=1))

    def _fitted(self) -> float:
        """argmin over b of -sum ln P(label) + ln(b rms)^2 / (2 DOUBT^2); the second term keeps b finite."""
        finite = np.isfinite(self.scores)
        centred = self.scores - np.where(finite, self.scores, 0.0).sum(axis=1, keepdims=True) / finite.sum(
            axis=1, keepdims=True
        )
        rms = float(np.sqrt(np.mean(centred[finite] ** 2)))
        if rms == 0.0:
            return 1.0
        unit = centred / rms
        right = unit[np.arange(len(unit)), self.labels].sum()

        def loss(log: float) -> float:
            b = np.exp(log)
            return float(logsumexp(b * unit, axis=1).sum() - b * right + log**2 / (2.0 * DOUBT**2))

        return float(np.exp(minimize_scalar(loss, bounds=(-WIDEST, WIDEST), method="bounded").x) / rms)


def _widened(scores: np.ndarray, k: int) -> np.ndarray:
    """A class that was not yet known could not be predicted."""
    missing = np.full((len(scores), k - scores.shape[1]), -np.inf)
    return np.concatenate([scores, missing], axis=1)
