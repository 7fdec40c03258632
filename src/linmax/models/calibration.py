"""Probabilities from scores: P(j) = (1 - e) softmax_j(beta z) + e / k, z the scores over their usual size.

The sharpness beta and the guess rate e are fitted by maximum likelihood to scores that were given before their labels
were seen, so that memorized labels do not count. The guess rate covers labels that no score predicts: without it, a
softmax under noisy labels must be unsure of everything. One trial counts as guessed from the start, so that nothing
ever becomes certain.

Scores have no unit of their own: those of a Perceptron grow as it learns. Their usual size at a trial is the root mean
square of the centered scores of the last trials, the present one included.

Where scores are logarithms of probabilities already, as those of the pool for votes, they have a unit: z is the score
itself, and beta = 1 and e = 0 leave the learner's own probabilities as they are. There the fit has a prior about these
(`BELIEVED`), so that a few labels change little.

`reliability` judges probabilities: trials are sorted into ten bins by confidence, the probability of the class
predicted. The expected calibration error is the mean over trials of |mean confidence - accuracy| of their bin (Naeini,
Cooper and Hauskrecht 2015).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from linmax.engine.coverage import covered, reach
from linmax.engine.engine import Engine
from linmax.engine.record import JUDGED, RING, Record, latest, new_record
from linmax.util.checks import fraction

__all__ = [
    "Bin",
    "Calibration",
    "Confidence",
    "Reliability",
    "fit_losses",
    "fit_moment",
    "fit_probabilities",
    "reliability",
    "softmax",
]

RECENT = 1000  # trials used in a fit
WINDOW = 400  # trials before one from which the usual size of its scores is taken
LOG_BETAS = np.linspace(-3.0, 12.0, 11)  # logarithms of the sharpness, for scores of magnitude 1, that are tried first
PRECISION = 1e-9  # of the logarithm of the sharpness and of the guess rate
MOST_STEPS = 60
LEAST_GUESS, MOST_GUESS = 1e-6, 1.0 - 1e-9  # below 1, so that the order of the scores stays
LEAST_LOGGED = 1e-300  # probability whose logarithm is taken
FEWEST_JUDGED = 20  # trials needed to judge probabilities
BINS = 10
LEAST_COUNTED = 1e-12  # smallest probability that the log loss counts


# -- fitting ------------------------------------------------------------------------------------------------------


def softmax(scores: np.ndarray) -> np.ndarray:
    """exp(s) / sum of exp(s) over the classes of each trial; -inf gives 0.

    Examples
    --------
    >>> softmax(np.log([[0.5, 1.5, 0.0001]])).round(2).tolist()
    [[0.25, 0.75, 0.0]]
    """
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def fitted_shares(scores: np.ndarray, beta: float, guess: float) -> np.ndarray:
    """Return (1 - e) softmax(beta z) + e / k of each trial, over the k classes that are known (-inf is unknown).

    Examples
    --------
    >>> fitted_shares(np.log([[0.5, 1.5, 1e-300]]), beta=0.0, guess=0.5).round(2).tolist()
    [[0.33, 0.33, 0.33]]
    """
    known = np.isfinite(scores)
    count = np.maximum(known.sum(axis=1, keepdims=True), 1)
    finite = np.where(known, scores, 0.0)
    highest = np.where(known, scores, -np.inf).max(axis=1, keepdims=True, initial=-1e300)
    powers = np.exp(beta * (finite - highest), where=known, out=np.zeros(scores.shape))
    total = np.maximum(powers.sum(axis=1, keepdims=True), LEAST_LOGGED)
    return np.asarray((1.0 - guess) * powers / total + guess * known / count)


def centered(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the centered scores of each trial, 0 for unknown classes, and how many classes are known."""
    known = np.isfinite(scores)
    count = known.sum(axis=1)
    finite = np.where(known, scores, 0.0)
    mean = finite.sum(axis=1) / np.maximum(count, 1)
    return np.where(known, finite - mean[:, None], 0.0), count


def mean_squares(scores: np.ndarray) -> np.ndarray:
    """Return the mean square of the centered scores of each trial."""
    values, count = centered(scores)
    return np.asarray((values**2).sum(axis=1) / np.maximum(count, 1))


def over_size(scores: np.ndarray) -> np.ndarray:
    """Return the scores of successive trials, each over their usual size at its time."""
    if not len(scores):
        return scores
    squares = np.concatenate([np.zeros(WINDOW), mean_squares(scores)])
    totals = np.lib.stride_tricks.sliding_window_view(squares, WINDOW + 1).sum(axis=1)
    sizes = np.sqrt(totals / np.minimum(np.arange(len(scores)) + 1, WINDOW + 1))[:, None]
    return _divided(scores, sizes)


def _divided(scores: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return scores over their size, 0 where that is 0; unknown classes stay at -inf."""
    sized = np.divide(scores, sizes, out=np.zeros_like(scores), where=sizes > 0.0)
    return np.where(np.isfinite(scores), sized, -np.inf)


class Prior(NamedTuple):
    """Belief before the first label: labels guessed and not, and the deviation of the logarithm of the sharpness."""

    guessed: float
    sure: float
    deviation: float  # about a sharpness of 1


FLAT = Prior(1.0, 0.0, math.inf)  # for scores without a unit
# For logarithms of probabilities. Chosen on sixteen tables of votes, of language models, crowds and small classifiers;
# deviations from 0.1 to 0.3 differ little from 100 labels on, and small ones are better before.
BELIEVED = Prior(0.7, 30.0, 0.15)


def best_guess(chosen: np.ndarray, even: np.ndarray, guess: float, prior: Prior = FLAT) -> float:
    """Return the most probable guess rate e, by Newton's method.

    It minimizes -sum log((1 - e) chosen + e even) - a log e - b log(1 - e), a and b the prior's labels.
    """
    gap = even - chosen
    for _ in range(MOST_STEPS):
        ratio, rest = gap / (chosen + guess * gap), 1.0 - guess
        slope = -ratio.sum() - prior.guessed / guess + prior.sure / rest
        bend = ratio @ ratio + prior.guessed / guess**2 + prior.sure / rest**2
        step = slope / bend
        damped = step / (1.0 + abs(slope) / math.sqrt(bend)) if abs(step) > 0.1 * guess else step
        guess, before = min(max(guess - damped, LEAST_GUESS), MOST_GUESS), guess
        if abs(guess - before) <= PRECISION * guess:
            break
    return float(guess)


class Likelihood:
    """Loss of the labels of some trials as a function of the sharpness, each at its best guess rate."""

    def __init__(self, scores: np.ndarray, labels: np.ndarray, prior: Prior = FLAT) -> None:
        values, count = centered(scores)
        self.known, self.even = np.isfinite(scores), 1.0 / count
        self.leads = np.where(self.known, scores - scores.max(axis=1, keepdims=True), 0.0)
        self.of_label = self.leads[np.arange(len(labels)), labels]
        self.prior = prior
        self.spread = (float(np.abs(values).max(initial=0.0)) or 1.0) if prior is FLAT else 1.0
        self.guess = 0.1  # where the search for the guess rate starts

    def at(self, log_beta: float) -> tuple[float, float, float]:
        """Return the loss, its slope along log beta, and the guess rate."""
        beta = math.exp(log_beta) / self.spread
        powers = np.exp(beta * self.leads) * self.known
        total = powers.sum(axis=1)
        chosen = np.exp(beta * self.of_label) / total
        rise = chosen * (self.of_label - (powers * self.leads).sum(axis=1) / total)
        self.guess = guess = best_guess(chosen, self.even, self.guess, self.prior)
        mixed = np.maximum((1.0 - guess) * chosen + guess * self.even, LEAST_LOGGED)
        guessed, sure, deviation = self.prior
        loss = -guessed * math.log(guess) - sure * math.log1p(-guess) + 0.5 * (log_beta / deviation) ** 2
        slope = log_beta / deviation**2 - beta * (1.0 - guess) * float((rise / mixed).sum())
        return loss - float(np.log(mixed).sum()), slope, guess


def fit_probabilities(scores: np.ndarray, labels: np.ndarray, prior: Prior = FLAT) -> tuple[float, float]:
    """Return the most probable sharpness and guess rate; a score of -inf is that of a class not yet known.

    Examples
    --------
    >>> scores = np.eye(2)[[0, 1] * 50]
    >>> beta, guess = fit_probabilities(scores, np.array([0, 1] * 50))  # always right
    >>> round((1 - guess) * float(softmax(np.array([[beta, 0.0]]))[0, 0]) + guess / 2, 2)
    0.99
    """
    likelihood = Likelihood(scores, labels, prior)
    best = int(np.argmin([likelihood.at(place)[0] for place in LOG_BETAS]))
    low, high = LOG_BETAS[max(0, best - 1)], LOG_BETAS[min(len(LOG_BETAS) - 1, best + 1)]
    at, before, after, side = float(LOG_BETAS[best]), likelihood.at(low)[1], likelihood.at(high)[1], 0
    for _ in range(MOST_STEPS):  # where the slope is 0, by the Illinois method
        if not (before < 0.0 < after and high - low > PRECISION):
            break
        at = (low * after - high * before) / (after - before)
        slope = likelihood.at(at)[1]
        if slope > 0.0:
            high, after, before, side = at, slope, before / (2.0 if side > 0 else 1.0), 1
        elif slope < 0.0:
            low, before, after, side = at, slope, after / (2.0 if side < 0 else 1.0), -1
        else:
            break
    return math.exp(at) / likelihood.spread, likelihood.at(at)[2]


def fit_losses(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the log loss of each label under the probabilities of `fit_probabilities`.

    Examples
    --------
    >>> fit_losses(np.zeros((50, 2)), np.array([0, 1] * 25)).round(2)[:3].tolist()  # uninformative scores
    [0.69, 0.69, 0.69]
    """
    beta, guess = fit_probabilities(scores, labels)
    shares = fitted_shares(scores, beta, guess)
    return np.asarray(-np.log(np.maximum(shares[np.arange(len(labels)), labels], LEAST_LOGGED)))


def fit_moment(judged: int) -> int:
    """Return the number of trials at the latest fit, when ``judged`` have been: at intervals that grow.

    Examples
    --------
    >>> [fit_moment(judged) for judged in (3, 31, 33, 100, 1000, 10_000)]
    [3, 31, 32, 100, 992, 9984]
    """
    step = 1
    while step < RING - RECENT and judged >= 16 * step * 2:
        step *= 2
    return judged - judged % step


def scored(record: Record) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores and labels of recent trials, without classes that had no score yet."""
    scores, labels = latest(record)
    known = np.isfinite(scores[np.arange(len(labels)), labels])
    return scores[known], labels[known]


class Calibration:
    """Probabilities that follow from the recent scores of a `Record`.

    ``natural`` scores are logarithms of probabilities.
    """

    def __init__(self) -> None:
        self._moment = (-1, False)
        self._fitted = 0.0, 1.0
        self._squares = -1, 0.0, 0  # of the last trials: as of how many, their sum, and how many of them

    def fitted(self, record: Record, natural: bool = False) -> tuple[float, float]:
        """Return the sharpness and the guess rate of the latest fit."""
        judged = int(record.counts[JUDGED])
        moment = fit_moment(judged)
        if (moment, natural) != self._moment:
            scores, labels = latest(record)
            until = len(labels) - (judged - moment)
            self._moment = moment, natural
            start = (1.0, 0.0) if natural else (0.0, 1.0)  # without a unit everything is guessed at first
            self._fitted = self._fit(scores[:until], labels[:until], natural) if until > 0 else start
        return self._fitted

    def _fit(self, scores: np.ndarray, labels: np.ndarray, natural: bool) -> tuple[float, float]:
        if natural:
            return fit_probabilities(scores[-RECENT:], labels[-RECENT:], BELIEVED)
        return fit_probabilities(over_size(scores)[-RECENT:], labels[-RECENT:])

    def probabilities(self, record: Record, scores: np.ndarray, natural: bool = False) -> np.ndarray:
        """Return (T, k) scores as probabilities; -inf, a class not yet known, gives 0."""
        beta, guess = self.fitted(record, natural)
        judged = int(record.counts[JUDGED])
        if natural:
            return fitted_shares(scores, beta, guess)
        if self._squares[0] != judged:
            room = len(record.labels)
            last = np.arange(max(0, judged - min(room, WINDOW)), judged) % room
            self._squares = judged, float(mean_squares(record.scores[last]).sum()), len(last)
        _, total, count = self._squares
        sizes = np.sqrt((total + mean_squares(scores)) / (count + 1))[:, None]
        return fitted_shares(_divided(scores, sizes), beta, guess)

    def foreseen(self, record: Record, natural: bool = False) -> tuple[np.ndarray, np.ndarray] | None:
        """Return probabilities of the newer half of the stored trials, fitted to the older half, and their labels.

        None for fewer than `FEWEST_JUDGED` trials.
        """
        scores, labels = scored(record)
        half = len(labels) // 2
        if half < FEWEST_JUDGED:
            return None
        beta, guess = self._fit(scores[:half], labels[:half], natural)
        sized = (scores if natural else over_size(scores))[half:]
        return fitted_shares(sized, beta, guess), labels[half:]


# -- reliability --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bin:
    """Trials of about the same confidence: its mean, the share that was right, and their number."""

    confidence: float
    accuracy: float
    trials: int


@dataclass(frozen=True)
class Reliability:
    """Log loss (nats a trial), expected calibration error, and the bins that hold any trial.

    ``by_chance`` is about the calibration error that true probabilities would have on this many trials.
    """

    trials: int
    log_loss: float
    calibration_error: float
    by_chance: float
    bins: tuple[Bin, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers."""
        return {**vars(self), "bins": [vars(part) for part in self.bins]}


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
    error = sum(part.trials * abs(part.confidence - part.accuracy) for part in bins) / max(1, trials)
    # Of a bin of n trials, the share right is off by sqrt(2/pi) deviations on average.
    spread = sum(math.sqrt(part.trials * part.confidence * (1.0 - part.confidence)) for part in bins)
    chance = math.sqrt(2.0 / math.pi) * spread / max(1, trials)
    loss = max(0.0, float(-np.log(np.maximum(given, LEAST_COUNTED)).mean()))  # not -0.0 for certain and right
    return Reliability(trials, loss, error, chance, bins)


# -- for models ---------------------------------------------------------------------------------------------------


class Confidence:
    """Probabilities, prediction sets and their reliability: the part of a `linmax.models.model.Model` about scores."""

    engine: Engine
    record: Record
    classes: list[Any]
    _calibration: Calibration

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return scores from `judge` as probabilities (see `linmax.models.calibration`)."""
        scores = scores / self.engine.top.unit(self.engine)
        if self.engine.top.gives_probabilities:
            return softmax(scores)
        return self._calibration.probabilities(self.record, scores, self._natural)

    def own_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return scores from `judge` as the probabilities that the learner itself works with.

        Scores of the pool for votes are logarithms of such; for any other learner they are `probabilities`.
        """
        return softmax(scores) if self._natural else self.probabilities(scores)

    @property
    def _natural(self) -> bool:
        """True if scores are logarithms of probabilities."""
        return self.engine.top.gives_logarithms

    @property
    def calibration(self) -> tuple[float, float]:
        """Sharpness, for scores of their usual size or logarithms of probabilities, and guess rate."""
        if self.engine.top.gives_probabilities:
            return 1.0, 0.0
        return self._calibration.fitted(self.record, self._natural)

    @property
    def foreseen(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Probabilities of recent trials, fitted to older ones, and their labels; None if there are too few."""
        if not self.engine.top.gives_probabilities:
            return self._calibration.foreseen(self.record, self._natural)
        scores, labels = scored(self.record)
        return (softmax(scores), labels) if len(labels) >= 2 * FEWEST_JUDGED else None

    @property
    def reliability(self) -> Reliability | None:
        """Reliability of the probabilities on recent trials; None if there are too few."""
        foreseen = self.foreseen
        return None if foreseen is None else reliability(*foreseen)

    @property
    def follows(self) -> bool:
        """True if the coverage of prediction sets is kept, which needs the scores of every trial."""
        return self.record.levels.size > 0

    def follow(self) -> Self:
        """Keep the coverage of prediction sets from now on; call it before the first trial."""
        self.record = new_record(len(self.classes), followed=True)
        return self

    def sets(self, scores: np.ndarray, coverage: float) -> np.ndarray:
        """Return which classes are in the prediction set of each row of scores (see `linmax.engine.coverage`)."""
        wanted, judged = fraction("coverage", coverage, 0.9), int(self.record.counts[JUDGED])
        if not self.follows:
            raise ValueError(
                "prediction sets need the scores of every trial, and this model has not kept them; learn the trials "
                "again, or use probabilities"
            )
        largest = reach(self.record.levels, self.record.gaps, judged, wanted)
        scores = scores / self.engine.top.unit(self.engine)
        highest = scores.max(axis=1, keepdims=True)
        return np.asarray((highest - scores <= largest) & np.isfinite(scores) | (scores == highest))

    @property
    def coverage(self) -> dict[float, float]:
        """Share of the trials whose label was in the prediction set of each coverage, before it was seen."""
        judged = int(self.record.counts[JUDGED])
        return covered(self.record.levels, judged) if self.follows and judged else {}
