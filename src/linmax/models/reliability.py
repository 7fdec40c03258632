"""How far probabilities can be believed: log loss, calibration error, and the reliability diagram.

Trials are sorted into ten bins by confidence, the probability of the class predicted. The expected calibration error
is the mean over trials of |mean confidence - accuracy| of their bin (Naeini, Cooper and Hauskrecht 2015).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Bin", "Reliability", "reliability"]

BINS = 10
LEAST_SHARE = 1e-12  # least probability that the log loss counts


@dataclass(frozen=True)
class Bin:
    """Trials of about the same confidence: its mean, the share that was right, and their number."""

    confidence: float
    accuracy: float
    trials: int


@dataclass(frozen=True)
class Reliability:
    """Log loss (nats a trial), expected calibration error, and the bins that hold any trial.

    ``by_chance`` is about the calibration error that true probabilities would have on so few trials.
    """

    trials: int
    log_loss: float
    calibration_error: float
    by_chance: float
    bins: tuple[Bin, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        return {
            "trials": self.trials,
            "log_loss": self.log_loss,
            "calibration_error": self.calibration_error,
            "by_chance": self.by_chance,
            "bins": [vars(found) for found in self.bins],
        }


def reliability(probabilities: np.ndarray, places: np.ndarray) -> Reliability:
    """Judge (trials, classes) probabilities by the places of the right classes; -1 is a class that is none of them.

    Examples
    --------
    >>> found = reliability(np.array([[0.8, 0.2], [0.8, 0.2], [0.4, 0.6]]), np.array([0, 1, 1]))
    >>> found.bins
    (Bin(confidence=0.6, accuracy=1.0, trials=1), Bin(confidence=0.8, accuracy=0.5, trials=2))
    >>> round(found.calibration_error, 3), round(found.log_loss, 3)
    (0.333, 0.781)
    """
    trials = len(places)
    given = np.where(places >= 0, probabilities[np.arange(trials), places], 0.0)
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == places
    which = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    bins = tuple(
        Bin(float(confidence[which == b].mean()), float(right[which == b].mean()), int((which == b).sum()))
        for b in np.unique(which).tolist()
    )
    error = sum(found.trials * abs(found.confidence - found.accuracy) for found in bins) / max(1, trials)
    # Of a bin of n trials, the share right is off by sqrt(2/pi) deviations on average.
    spread = sum(math.sqrt(found.trials * found.confidence * (1.0 - found.confidence)) for found in bins)
    chance = math.sqrt(2.0 / math.pi) * spread / max(1, trials)
    return Reliability(trials, float(-np.log(np.maximum(given, LEAST_SHARE)).mean()), error, chance, bins)
