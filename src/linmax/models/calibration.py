"""Probabilities from scores: P(j) = (1 - e) softmax_j(beta scores) + e / k.

The sharpness beta and the guess rate e are fitted to scores that were given before their labels were seen, so that
confidence in what was learned by heart does not count. The guess rate is for labels that no score can foresee: without
it, a softmax under noisy labels must be unsure of everything. One trial is taken as guessed from the start, so that
nothing ever becomes certain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from linmax.util.lazy import Later

if TYPE_CHECKING:
    from scipy import optimize, special
else:
    optimize, special = Later("scipy.optimize"), Later("scipy.special")

__all__ = ["Calibration", "fit_probabilities"]

KEPT = 1000  # most recent trials that they are fitted to
STARTS = (1.0, 10.0, 100.0)  # sharpness, for scores of magnitude 1, from which the fit begins
LIMIT = 14.0  # of the logarithms of both


def fit_probabilities(scores: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Sharpness and guess rate for which the labels are likeliest; a score of -inf is that of a class not yet known.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import softmax
    >>> scores = np.eye(2)[[0, 1] * 50]
    >>> beta, guess = fit_probabilities(scores, np.array([0, 1] * 50))  # always right
    >>> round((1 - guess) * float(softmax([beta, 0.0])[0]) + guess / 2, 2)
    0.99
    """
    known = np.isfinite(scores)
    number = known.sum(axis=1)
    finite = np.where(known, scores, 0.0)
    centred = np.where(known, finite - (finite.sum(axis=1) / number)[:, None], 0.0)
    spread = float(np.abs(centred).max()) or 1.0
    rows = np.arange(len(labels))

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        beta, guess = np.exp(parameters[0]) / spread, special.expit(parameters[1])
        shares = special.softmax(np.where(known, beta * centred, -np.inf), axis=1)
        chosen = shares[rows, labels]
        mixed = (1.0 - guess) * chosen + guess / number
        steeper = chosen * (centred[rows, labels] - (shares * centred).sum(axis=1))
        by_beta = -((1.0 - guess) * steeper / mixed).sum() * beta
        by_guess = -((1.0 / number - chosen) / mixed).sum() * guess * (1.0 - guess) - (1.0 - guess)
        return float(-np.log(mixed).sum() - np.log(guess)), np.array([by_beta, by_guess])

    bounds = [(-LIMIT, LIMIT)] * 2
    starts = [np.array([np.log(start), special.logit(0.1)]) for start in STARTS]
    with threadpool_limits(1):  # over two parameters, threads cost many times what they save
        ends = [optimize.minimize(loss, start, jac=True, bounds=bounds) for start in starts]
    found = min(ends, key=lambda result: result.fun)
    return float(np.exp(found.x[0]) / spread), float(special.expit(found.x[1]))


class Calibration:
    """The scores of recent trials with their labels, and the probabilities that follow from them."""

    def __init__(self, classes: Sequence[Any] = ()) -> None:
        self.classes = list(classes)
        self.scores = np.zeros((0, len(self.classes)))
        self.labels = np.zeros(0, np.int64)
        self._fitted: tuple[float, float] | None = None

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All state, but for the classes."""
        return {"scores": self.scores, "labels": self.labels}

    @classmethod
    def restored(cls, classes: Sequence[Any], arrays: Mapping[str, np.ndarray]) -> Calibration:
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
        self._fitted = None

    @property
    def fitted(self) -> tuple[float, float]:
        """Sharpness and guess rate; before any trial everything is guessed."""
        if self._fitted is None:
            self._fitted = fit_probabilities(self.scores, self.labels) if len(self.labels) else (0.0, 1.0)
        return self._fitted

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """(T, k) scores as probabilities; -inf, a class not yet known, gives 0."""
        beta, guess = self.fitted
        known = np.isfinite(scores)
        shares = special.softmax(np.where(known, beta * np.where(known, scores, 0.0), -np.inf), axis=1)
        return np.asarray((1.0 - guess) * shares + guess * known / known.sum(axis=1, keepdims=True))
