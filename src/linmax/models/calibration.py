"""Probabilities from scores: P(j) = (1 - e) softmax_j(beta z) + e / k, z the scores over their usual size.

The sharpness beta and the guess rate e are fitted to scores that were given before their labels were seen, so that
confidence in what was learned by heart does not count. The guess rate is for labels that no score can foresee: without
it, a softmax under noisy labels must be unsure of everything. One trial is taken as guessed from the start, so that
nothing ever becomes certain.

Scores have no unit of their own: those of a Perceptron grow as it learns. Their usual size at a trial is the root mean
square of the scores, centred, of the last trials, the present one included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from linmax.engine.record import JUDGED, RING, Record, latest
from linmax.util.lazy import Later

if TYPE_CHECKING:
    from scipy import optimize, special
else:
    optimize, special = Later("scipy.optimize"), Later("scipy.special")

__all__ = ["Calibration", "fit_moment", "fit_probabilities"]

RECENT = 1000  # trials that are fitted to
WINDOW = 400  # trials before one from which the usual size of its scores is taken
STARTS = (1.0, 10.0, 100.0)  # sharpness, for scores of magnitude 1, from which the fit begins
FEWEST = 20  # trials by which probabilities are judged
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
    known, centred = _centred(scores)
    number = known.sum(axis=1)
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


def _centred(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which scores are those of known classes, and the scores less their mean, 0 for the others."""
    known = np.isfinite(scores)
    finite = np.where(known, scores, 0.0)
    mean = finite.sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    return known, np.where(known, finite - mean[:, None], 0.0)


def _squares(scores: np.ndarray) -> np.ndarray:
    """The mean square of the centred scores of each trial."""
    known, centred = _centred(scores)
    return np.asarray((centred**2).sum(axis=1) / np.maximum(known.sum(axis=1), 1))


def _over_size(scores: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Scores over their usual size: the root of ``sums`` of squares over the number of trials that they are of."""
    size = np.sqrt(sums / counts)[:, None]
    return np.divide(scores, size, out=np.where(np.isfinite(scores), 0.0, scores), where=size > 0.0)


def fit_moment(judged: int) -> int:
    """After how many trials the latest fit is made, when ``judged`` have been: now and then, and often at first.

    Examples
    --------
    >>> [fit_moment(judged) for judged in (3, 31, 33, 100, 1000, 10_000)]
    [3, 31, 32, 100, 992, 9984]
    """
    step = 1
    while step < RING - RECENT and judged >= 16 * step * 2:
        step *= 2
    return judged - judged % step


class Calibration:
    """The probabilities that follow from the recent scores of a `Record`."""

    def __init__(self) -> None:
        self._moment = -1
        self._fitted = 0.0, 1.0  # before any trial everything is guessed

    def fitted(self, record: Record) -> tuple[float, float]:
        """Sharpness and guess rate, as of the latest moment of a fit."""
        judged = int(record.counts[JUDGED])
        moment = fit_moment(judged)
        if moment != self._moment:
            scores, labels = latest(record)
            until = len(labels) - (judged - moment)
            self._moment = moment
            self._fitted = self._fit(scores[:until], labels[:until]) if until > 0 else (0.0, 1.0)
        return self._fitted

    def _fit(self, scores: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
        return fit_probabilities(_in_a_row(scores)[-RECENT:], labels[-RECENT:])

    def probabilities(self, record: Record, scores: np.ndarray) -> np.ndarray:
        """(T, k) scores as probabilities; -inf, a class not yet known, gives 0."""
        recent = _squares(latest(record)[0][-WINDOW:])
        sized = _over_size(scores, recent.sum() + _squares(scores), np.full(len(scores), len(recent) + 1))
        return _mixed(sized, *self.fitted(record))

    def foreseen(self, record: Record) -> tuple[np.ndarray, np.ndarray] | None:
        """Probabilities of the newer half of the trials kept, by the older half alone, and their labels.

        None of fewer than `FEWEST` trials.
        """
        scores, labels = latest(record)
        half = len(labels) // 2
        if half < FEWEST:
            return None
        return _mixed(_in_a_row(scores)[half:], *self._fit(scores[:half], labels[:half])), labels[half:]


def _in_a_row(scores: np.ndarray) -> np.ndarray:
    """Scores of trials that came one after the other, each over the usual size at its time."""
    sums = np.cumsum(_squares(scores))
    before = np.concatenate([np.zeros(WINDOW + 1), sums[: -WINDOW - 1]])[: len(sums)]
    counts = np.minimum(np.arange(len(sums)) + 1, WINDOW + 1)
    return _over_size(scores, np.maximum(sums - before, 0.0), counts)


def _mixed(sized: np.ndarray, beta: float, guess: float) -> np.ndarray:
    """Softmax of this sharpness, and guesses at this rate among the known classes."""
    known = np.isfinite(sized)
    shares = special.softmax(np.where(known, beta * np.where(known, sized, 0.0), -np.inf), axis=1)
    return np.asarray((1.0 - guess) * shares + guess * known / np.maximum(known.sum(axis=1, keepdims=True), 1))
