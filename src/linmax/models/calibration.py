"""Probabilities from scores: P(j) = (1 - e) softmax_j(beta z) + e / k, z the scores over their usual size.

The sharpness beta and the guess rate e are fitted to scores that were given before their labels were seen, so that
confidence in what was learned by heart does not count. The guess rate is for labels that no score can foresee: without
it, a softmax under noisy labels must be unsure of everything. One trial is taken as guessed from the start, so that
nothing ever becomes certain.

Scores have no unit of their own: those of a Perceptron grow as it learns. Their usual size at a trial is the root mean
square of the scores, centred, of the last trials, the present one included.

Where scores are logarithms of probabilities already, as those of the pool for votes, they have a unit: z is the score
itself, and what is fitted is mixed with those probabilities: they owe nothing to the chance of the last trials, and are
all that there is before the first label.
"""

from __future__ import annotations

import math

import numpy as np
from numba import boolean, float64, types

from linmax.core.contract import Labels, Matrix, Vector
from linmax.engine.record import JUDGED, RING, Record, RecordT, latest
from linmax.jit.compiling import kernel

__all__ = ["Calibration", "fit_losses", "fit_moment", "fit_probabilities", "softmax"]

RECENT = 1000  # trials that are fitted to
WINDOW = 400  # trials before one from which the usual size of its scores is taken
LOWEST, HIGHEST, STEPS = -3.0, 12.0, 11  # logarithms of the sharpness, for scores of magnitude 1, that are tried first
PRECISION = 1e-5  # to which the logarithm of the sharpness is found
LEAST = 1e-6  # guess rate
LEAST_LOGGED = 1e-300  # probability of which the logarithm is taken
FEWEST_JUDGED = 20  # trials by which probabilities are judged
ALONE = 10.0  # trials after which the learner's own probabilities, all that there is at first, come down to a half
OWN, LEARNED = 0.45, 150.0  # their share in the end, and the trials after which it has half of that


# -- in compiled code ---------------------------------------------------------------------------------------------


@kernel()
def mean_square(scores: np.ndarray) -> float:
    """The mean square of the scores of one trial, centred; -inf is the score of a class not yet known."""
    number, total = 0, 0.0
    for c in range(scores.size):
        if scores[c] > -np.inf:
            number += 1
            total += scores[c]
    if number == 0:
        return 0.0
    mean, squares = total / number, 0.0
    for c in range(scores.size):
        if scores[c] > -np.inf:
            squares += (scores[c] - mean) ** 2
    return squares / number


@kernel()
def largest_of(scores: np.ndarray) -> float:
    """The highest score of one trial."""
    highest = -np.inf
    for c in range(scores.size):
        highest = max(highest, scores[c])
    return highest


@kernel()
def best_guess(chosen: np.ndarray, even: np.ndarray) -> float:
    """The guess rate e that minimises -sum log((1 - e) chosen + e even) - log e, which is convex."""
    low, high, guess = LEAST, 1.0, 0.1
    for _ in range(60):
        slope, bend = -1.0 / guess, 1.0 / (guess * guess)
        for t in range(chosen.size):
            ratio = (even[t] - chosen[t]) / ((1.0 - guess) * chosen[t] + guess * even[t])
            slope -= ratio
            bend += ratio * ratio
        if slope > 0.0:
            high = guess
        else:
            low = guess
        step = guess - slope / bend
        if not low <= step <= high:
            step = 0.5 * (low + high)
        if abs(step - guess) <= 1e-12:
            break
        guess = step
    return guess


@kernel()
def judge_sharpness(
    scores: np.ndarray, labels: np.ndarray, beta: float, chosen: np.ndarray, even: np.ndarray, rise: np.ndarray
) -> tuple[float, float, float]:
    """For one sharpness: the loss at the best guess rate, its slope along log beta, and that guess rate.

    ``chosen`` is filled with the shares of the labels, ``rise`` with how much each grows along beta.
    """
    for t in range(labels.size):
        row, label = scores[t], labels[t]
        highest, total, mean = largest_of(row), 0.0, 0.0
        for c in range(row.size):
            if row[c] > -np.inf:
                share = math.exp(beta * (row[c] - highest))
                total += share
                mean += share * (row[c] - highest)
        chosen[t] = math.exp(beta * (row[label] - highest)) / total
        rise[t] = chosen[t] * (row[label] - highest - mean / total)
    guess = best_guess(chosen, even)
    loss, slope = -math.log(guess), 0.0
    for t in range(labels.size):
        mixed = (1.0 - guess) * chosen[t] + guess * even[t]
        loss -= math.log(max(mixed, 1e-300))
        slope -= (1.0 - guess) * rise[t] / max(mixed, 1e-300)
    return loss, slope * beta, guess


@kernel(types.UniTuple(float64, 3)(Matrix, Labels, Matrix))
def likeliest(scores: np.ndarray, labels: np.ndarray, room: np.ndarray) -> tuple[float, float, float]:
    """Sharpness and guess rate for which the labels are likeliest, and the loss.

    The best of a few sharpnesses is made precise. There is ``room`` for three numbers of each trial.
    """
    chosen, even, rise = room[0], room[1], room[2]
    spread = 0.0
    for t in range(labels.size):
        number, total = 0, 0.0
        for c in range(scores.shape[1]):
            if scores[t, c] > -np.inf:
                number += 1
                total += scores[t, c]
        even[t] = 1.0 / number
        for c in range(scores.shape[1]):
            if scores[t, c] > -np.inf:
                spread = max(spread, abs(scores[t, c] - total / number))
    if spread == 0.0:
        spread = 1.0
    apart = (HIGHEST - LOWEST) / (STEPS - 1)
    best, at = np.inf, LOWEST
    for step in range(STEPS):
        place = LOWEST + step * apart
        loss, _, _ = judge_sharpness(scores, labels, math.exp(place) / spread, chosen, even, rise)
        if loss < best:
            best, at = loss, place
    low, high = max(LOWEST, at - apart), min(HIGHEST, at + apart)
    _, before, _ = judge_sharpness(scores, labels, math.exp(low) / spread, chosen, even, rise)
    _, after, _ = judge_sharpness(scores, labels, math.exp(high) / spread, chosen, even, rise)
    side = 0
    while before < 0.0 < after and high - low > PRECISION:  # the Illinois method
        at = (low * after - high * before) / (after - before)
        _, slope, _ = judge_sharpness(scores, labels, math.exp(at) / spread, chosen, even, rise)
        if abs(slope) <= PRECISION:
            break
        if slope > 0.0:
            high, after = at, slope
            before = before / 2.0 if side > 0 else before
            side = 1
        else:
            low, before = at, slope
            after = after / 2.0 if side < 0 else after
            side = -1
    beta = math.exp(at) / spread
    loss, _, guess = judge_sharpness(scores, labels, beta, chosen, even, rise)
    return beta, guess, loss


@kernel(types.void(Matrix, Matrix, Vector))
def over_size(scores: np.ndarray, sized: np.ndarray, squares: np.ndarray) -> None:
    """Each trial's scores over their usual size: of the last WINDOW trials, and its own."""
    for t in range(len(scores)):
        squares[t], total, first = mean_square(scores[t]), 0.0, max(0, t - WINDOW)
        for before in range(first, t + 1):
            total += squares[before]
        size = math.sqrt(total / (t + 1 - first))
        for c in range(scores.shape[1]):
            if scores[t, c] > -np.inf:
                sized[t, c] = scores[t, c] / size if size > 0.0 else 0.0
            else:
                sized[t, c] = -np.inf


@kernel(types.void(RecordT, Matrix, boolean, float64, float64, Matrix))
def shares_of(record: Record, scores: np.ndarray, natural: bool, beta: float, guess: float, shares: np.ndarray) -> None:
    """(1 - e) softmax(beta z) + e / k of each trial.

    z are the scores over the size of the last ones of the record and their own; where they are ``natural``, themselves.
    """
    judged, room = record.counts[JUDGED], record.labels.size
    recent, total = min(judged, min(room, WINDOW)), 0.0
    for t in range(judged - recent, judged):
        total += mean_square(record.scores[t % room])
    for t in range(len(scores)):
        row, out = scores[t], shares[t]
        size = 1.0 if natural else math.sqrt((total + mean_square(row)) / (recent + 1))
        highest, number, whole = largest_of(row), 0, 0.0
        for c in range(row.size):
            out[c] = 0.0
            if row[c] > -np.inf:
                out[c] = math.exp(beta * (row[c] - highest) / size) if size > 0.0 else 1.0
                whole += out[c]
                number += 1
        for c in range(row.size):
            if row[c] > -np.inf:
                out[c] = (1.0 - guess) * out[c] / whole + guess / number


# -- for the models -----------------------------------------------------------------------------------------------


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
    room = np.empty((3, len(labels)))
    numbers = np.ascontiguousarray(labels, np.int32)
    return likeliest(np.ascontiguousarray(scores, np.float64), numbers, room)[:2]


def fit_losses(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The log loss of each label under the probabilities of `fit_probabilities`.

    Examples
    --------
    >>> import numpy as np
    >>> fit_losses(np.zeros((50, 2)), np.array([0, 1] * 25)).round(2)[:3].tolist()  # scores that tell nothing
    [0.69, 0.69, 0.69]
    """
    beta, guess = fit_probabilities(scores, labels)
    known = np.isfinite(scores)
    shares = (1.0 - guess) * softmax(beta * scores) + guess * known / known.sum(axis=1, keepdims=True)
    return np.asarray(-np.log(np.maximum(shares[np.arange(len(labels)), labels], LEAST_LOGGED)))


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
    """The probabilities that follow from the recent scores of a `Record`.

    ``natural`` scores are logarithms of probabilities.
    """

    def __init__(self) -> None:
        self._moment = (-1, False)
        self._fitted = 0.0, 1.0  # before any trial everything is guessed

    def fitted(self, record: Record, natural: bool = False) -> tuple[float, float]:
        """Sharpness and guess rate, as of the latest moment of a fit."""
        judged = int(record.counts[JUDGED])
        moment = fit_moment(judged)
        if (moment, natural) != self._moment:
            scores, labels = latest(record)
            until = len(labels) - (judged - moment)
            self._moment = moment, natural
            self._fitted = self._fit(scores[:until], labels[:until], natural) if until > 0 else (0.0, 1.0)
        return self._fitted

    def _fit(self, scores: np.ndarray, labels: np.ndarray, natural: bool) -> tuple[float, float]:
        sized = scores if natural else _sized(scores)
        return fit_probabilities(sized[-RECENT:], labels[-RECENT:])

    def probabilities(self, record: Record, scores: np.ndarray, natural: bool = False) -> np.ndarray:
        """(T, k) scores as probabilities; -inf, a class not yet known, gives 0."""
        beta, guess = self.fitted(record, natural)
        shares = np.empty(scores.shape)
        shares_of(record, np.ascontiguousarray(scores), natural, beta, guess, shares)
        return _mixed(shares, scores, int(record.counts[JUDGED])) if natural else shares

    def foreseen(self, record: Record, natural: bool = False) -> tuple[np.ndarray, np.ndarray] | None:
        """Probabilities of the newer half of the trials kept, by the older half alone, and their labels.

        None of fewer than `FEWEST_JUDGED` trials.
        """
        scores, labels = latest(record)
        half = len(labels) // 2
        if half < FEWEST_JUDGED:
            return None
        beta, guess = self._fit(scores[:half], labels[:half], natural)
        sized, known = (scores if natural else _sized(scores))[half:], np.isfinite(scores[half:])
        shares = softmax(beta * sized)
        shares = (1.0 - guess) * shares + guess * known / known.sum(axis=1, keepdims=True)
        return _mixed(shares, scores[half:], half) if natural else shares, labels[half:]


def softmax(scores: np.ndarray) -> np.ndarray:
    """exp(s) / sum of exp(s) over the classes of each trial; -inf gives 0.

    Examples
    --------
    >>> softmax(np.log([[0.5, 1.5, 0.0001]])).round(2).tolist()
    [[0.25, 0.75, 0.0]]
    """
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _mixed(fitted: np.ndarray, scores: np.ndarray, trials: int) -> np.ndarray:
    """What was fitted to so many trials, and the learner's own probabilities, whose logarithms are the scores."""
    own = max(ALONE / (ALONE + trials), OWN * trials / (LEARNED + trials))
    return (1.0 - own) * fitted + own * softmax(scores)


def _sized(scores: np.ndarray) -> np.ndarray:
    """Scores of trials that came one after the other, each over the usual size at its time."""
    sized = np.empty_like(scores)
    over_size(scores, sized, np.empty(len(scores)))
    return sized
