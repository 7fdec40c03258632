"""Probabilities from scores: P(j) = softmax of temperature^-1 times the scores, the temperature learned.

The temperature is fitted to scores that were given before their labels were seen, so that confidence in what was
learned by heart does not count. Targets are smoothed as Platt (1999) does, so that it stays finite when every
prediction was right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import softmax

__all__ = ["Calibration", "sharpness"]

KEPT = 1000  # most recent trials that it is fitted to
SHARPEST = 1e6


def sharpness(scores: np.ndarray, labels: np.ndarray) -> float:
    """The beta >= 0 for which softmax(beta scores) is likeliest; scores of -inf belong to classes not yet known.

    With m trials the label's target is (m + 1) / (m + k) and that of every other class 1 / (m + k). The derivative of
    the log-likelihood falls with beta, so that its zero is found by bisection.

    Examples
    --------
    >>> import numpy as np
    >>> float(softmax(sharpness(np.eye(2)[[0, 0, 0, 0]], np.array([0, 0, 0, 1])) * np.eye(2)[0])[0].round(2))
    0.67
    """
    size = len(labels)
    known = np.isfinite(scores)
    targets = known / (size + known.sum(axis=1, keepdims=True))
    targets[np.arange(size), labels] *= size + 1
    finite = np.where(known, scores, 0.0)
    aimed = (targets * finite).sum()

    def rising(beta: float) -> bool:
        shares = softmax(np.where(known, beta * finite, -np.inf), axis=1)
        return bool((shares * finite).sum() < aimed)

    low, high = 0.0, 1.0
    if not rising(low):
        return 0.0
    while rising(high) and high < SHARPEST:
        low, high = high, 2.0 * high
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if rising(middle) else (low, middle)
    return low


class Calibration:
    """The scores of recent trials with their labels, and the probabilities that follow from them."""

    def __init__(self, classes: Sequence[Any] = ()) -> None:
        self.classes = list(classes)
        self.scores = np.zeros((0, len(self.classes)))
        self.labels = np.zeros(0, np.int64)
        self._beta: float | None = None

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All state, but for the classes."""
        return {"scores": self.scores, "labels": self.labels}

    @classmethod
    def restored(cls, classes: Sequence[Any], arrays: dict[str, np.ndarray]) -> Calibration:
        """One that goes on from `arrays`."""
        made = cls(classes)
        made.scores, made.labels = arrays["scores"], arrays["labels"]
        return made

    def add(self, scores: np.ndarray, labels: np.ndarray, classes: Sequence[Any]) -> None:
        """Trials with the scores given to ``classes`` before the labels, numbers of classes, were seen.

        Classes may have joined, or changed places, since the last call.
        """
        if self.classes != list(classes):
            place = {name: i for i, name in enumerate(classes)}
            old = [place[name] for name in self.classes]
            wider = np.full((len(self.scores), len(classes)), -np.inf)
            wider[:, old] = self.scores
            self.scores, self.labels = wider, np.array(old, np.int64)[self.labels]
            self.classes = list(classes)
        judged = np.isfinite(scores[np.arange(len(labels)), labels])  # a class met for the first time was not
        self.scores = np.concatenate([self.scores, scores[judged]])[-KEPT:]
        self.labels = np.concatenate([self.labels, labels[judged]])[-KEPT:]
        self._beta = None

    @property
    def beta(self) -> float:
        """One over the temperature; 0 before any trial."""
        if self._beta is None:
            self._beta = sharpness(self.scores, self.labels) if len(self.labels) else 0.0
        return self._beta

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """(T, k) scores as probabilities; -inf, a class not yet known, gives 0."""
        known = np.isfinite(scores)
        shares = softmax(np.where(known, self.beta * np.where(known, scores, 0.0), -np.inf), axis=1)
        return np.asarray(shares)
