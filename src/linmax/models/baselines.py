"""Baselines of a fusion on the same trials: plurality, soft voting, the best voters, and rivals that are refitted.

`Tally` counts while a fusion learns; its size does not grow with the trials. For each baseline it counts the trials
that only the fusion got right (wins) and those that only the baseline got right (losses). Where m classes have the most
votes, plurality is right by 1/m: it breaks ties by chance. The interval of the difference in accuracy is that of
Agresti and Min (2005), a Wald interval after adding half a trial to each of the four outcomes; it holds its level where
few trials differ, as a percentile bootstrap does not.

`StoredRivals` keeps at most 16,384 trials and plays three more rivals when a report is made, each predicting a trial
before its label is seen. Two of them forget, for voters that change:

- the conditional logit (a batch refit): one weight for each voter, by maximum likelihood with a ridge of 1 about
  plurality, fitted again to all trials so far at trials 1, 2, 3, ... 10, 11, 12, 14, ..., each time 10 % more;
- the same logit on the last 100 trials alone;
- fixed share (Herbster and Warmuth 1998): a weighted vote, where each mistake divides a voter's weight by e, and
  after each trial 1 % of all weight is shared out.

Once older trials have been dropped, these are compared on the newer half of the stored ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import float64, types, uint8

from linmax.core.contract import Indices, Labels, LabelTable, Vector
from linmax.engine.record import FILLED, POINTS, STRIDE, TRIALS
from linmax.jit.compiling import kernel
from linmax.models.kept_trials import KeptTrials
from linmax.util.blas import one_blas_thread

__all__ = [
    "BEST_RECENT",
    "BEST_SO_FAR",
    "FIRST_VOTER",
    "FUSION",
    "PLURALITY",
    "SOFT",
    "Comparison",
    "Rival",
    "StoredRivals",
    "Tally",
    "fit_logit",
    "ratings_of",
]

FUSION, PLURALITY, BEST_SO_FAR, BEST_RECENT, SOFT = range(5)
FIRST_VOTER = 5
RECENT_DECAY = 0.99  # weight of a voter's earlier answers when the best recent voter is chosen: about 100 trials count
FREE = np.array([-1, -1])  # leaders: those before each trial
NORMAL = 1.959964  # quantile of a 95 % interval

STORED_TRIALS = 16384
MOST_CELLS = 2**19  # votes, or scores for a class, stored
MOST_VOTERS = 256  # voters beyond which nothing is stored
FEWEST_FITTED = 10  # trials
MOST_RATINGS = 2**22  # numbers that a logit is fitted to: trials x classes x voters
PLURALITY_WEIGHT = 0.5  # of every vote, before the first label
NEWTON_STEPS = 20
LEAST_GAINED = 1e-3  # of the logarithm of the likelihood
REFIT = 10  # a logit is fitted again after 1/10 more trials
WINDOW, WINDOW_STEP = 100, 20  # trials of the logit that forgets, and those from one fit to the next
SHARED = 0.01  # weight shared out after each trial


# -- counts -------------------------------------------------------------------------------------------------------


class Counted(NamedTuple):
    """Counts in arrays; the second axis of counts and curves is the baselines, then the voters."""

    numbers: np.ndarray  # int64 (4,), as in `linmax.engine.record`: trials, points of the curves, the stride of these
    counts: np.ndarray  # (4, rivals): right, wins of the fusion, losses, trials with an answer
    times: np.ndarray  # int64 (POINTS + 1,): trials of the points
    curves: np.ndarray  # (POINTS + 1, rivals): mistakes up to each
    recent: np.ndarray  # (voters,) right answers, each trial before counting RECENT_DECAY times as much as the next


RIGHT, WINS, LOSSES, ANSWERED = range(4)
CountedT = types.NamedTuple([Indices, float64[:, ::1], Indices, float64[:, ::1], Vector], Counted)


@kernel()
def draw(tally: Counted) -> None:
    """Keep a point of the curves at multiples of the stride, which doubles when there are too many."""
    numbers, times, curves = tally.numbers, tally.times, tally.curves
    if numbers[TRIALS] % numbers[STRIDE]:
        return
    times[numbers[FILLED]] = numbers[TRIALS]
    for rival in range(curves.shape[1]):
        curves[numbers[FILLED], rival] = numbers[TRIALS] - tally.counts[RIGHT, rival]
    numbers[FILLED] += 1
    if numbers[FILLED] <= POINTS:
        return
    numbers[STRIDE] *= 2
    kept = 0
    for point in range(numbers[FILLED]):
        if times[point] % numbers[STRIDE] == 0:
            times[kept] = times[point]
            for rival in range(curves.shape[1]):
                curves[kept, rival] = curves[point, rival]
            kept += 1
    numbers[FILLED] = kept


@kernel()
def fair_share(votes: np.ndarray, label: int, named: np.ndarray) -> float:
    """Return how probably plurality names the label, ties broken by chance; ``named`` holds a zero for each class."""
    most, tied = 0, 0
    for i in range(votes.size):
        if votes[i] >= 0:
            named[votes[i]] += 1
            count = named[votes[i]]
            if count > most:
                most, tied = count, 1
            elif count == most:
                tied += 1
    share = 1.0 / tied if most and named[label] == most else 0.0
    for i in range(votes.size):
        if votes[i] >= 0:
            named[votes[i]] = 0
    return share


@kernel(types.void(CountedT, uint8[::1], uint8[::1], LabelTable, Labels, Indices, Indices, Vector))
def count_trials(
    tally: Counted,
    right: np.ndarray,
    soft: np.ndarray,
    votes: np.ndarray,
    labels: np.ndarray,
    leaders: np.ndarray,
    named: np.ndarray,
    row: np.ndarray,
) -> None:
    """Count trials, given where the fusion and soft voting (empty if there are no scores) were right.

    ``leaders`` are the best voters so far and recently; -1 for those before each trial. ``named`` and ``row`` are
    zeros, one for each class and for each rival.
    """
    counts, recent = tally.counts, tally.recent
    for t in range(right.size):
        so_far, last = leaders[0], leaders[1]
        if so_far < 0:
            so_far, last = counts[RIGHT, FIRST_VOTER:].argmax(), recent.argmax()
        row[FUSION], row[PLURALITY] = right[t], fair_share(votes[t], labels[t], named)
        if soft.size:
            row[SOFT] = soft[t]
            counts[ANSWERED, SOFT] += 1.0
        for voter in range(recent.size):
            row[FIRST_VOTER + voter] = votes[t, voter] == labels[t]
            counts[ANSWERED, FIRST_VOTER + voter] += votes[t, voter] >= 0
            recent[voter] = RECENT_DECAY * recent[voter] + row[FIRST_VOTER + voter]
        row[BEST_SO_FAR], row[BEST_RECENT] = row[FIRST_VOTER + so_far], row[FIRST_VOTER + last]
        for rival in range(row.size):
            counts[RIGHT, rival] += row[rival]
            counts[WINS, rival] += right[t] * (1.0 - row[rival])
            counts[LOSSES, rival] += (1.0 - right[t]) * row[rival]
        tally.numbers[TRIALS] += 1
        draw(tally)


class Tally:
    """Right answers of a fusion and of its rivals, trial by trial.

    The rivals are plurality, soft voting where there are scores, the best voter so far (the fewest mistakes in the
    trials before, the first among equals) and recently (in about the last 100), and every voter; an abstention is a
    mistake.
    """

    def __init__(self, voters: int = 0) -> None:
        rivals = FIRST_VOTER + voters
        self._counted = Counted(
            np.array([0, 0, 0, 1], np.int64),
            np.zeros((4, rivals)),
            np.zeros(POINTS + 1, np.int64),
            np.zeros((POINTS + 1, rivals)),
            np.zeros(voters),
        )

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """State arrays by name."""
        filled = int(self._counted.numbers[FILLED])
        points = {"times": self._counted.times[:filled], "curves": self._counted.curves[:filled]}
        return self._counted._asdict() | points

    @classmethod
    def restored(cls, arrays: Mapping[str, np.ndarray]) -> Tally:
        """Restore from `arrays`."""
        tally = cls(arrays["counts"].shape[1] - FIRST_VOTER)
        for name, array in arrays.items():
            getattr(tally._counted, name)[: len(array)] = array
        return tally

    @classmethod
    def added_up(cls, tallies: Sequence[tuple[Tally, np.ndarray]], signs: Sequence[int], voters: int) -> Tally:
        """Add up the counts of several, each with the places of its voters among all and a sign.

        The curves start empty.
        """
        total = cls(voters)
        numbers, counts, _, _, recent = total._counted
        for (tally, places), sign in zip(tallies, signs, strict=True):
            own = np.zeros_like(counts)
            own[WINS] = tally.right[FUSION]  # a voter that was not there was not right
            there = np.concatenate([np.arange(FIRST_VOTER), FIRST_VOTER + places])
            own[:, there] = tally._counted.counts
            counts += sign * own
            numbers[TRIALS] += sign * tally.trials
            if sign > 0:
                recent[places] += tally._counted.recent * tally.trials
        recent /= max(1, sum(tally.trials for (tally, _), sign in zip(tallies, signs, strict=True) if sign > 0))
        while numbers[TRIALS] > POINTS * numbers[STRIDE]:
            numbers[STRIDE] *= 2
        return total

    @property
    def trials(self) -> int:
        """Trials counted."""
        return int(self._counted.numbers[TRIALS])

    @property
    def right(self) -> np.ndarray:
        """Right answers of the fusion and its rivals, in their order, and of the voters."""
        return self._counted.counts[RIGHT]

    @property
    def answered(self) -> np.ndarray:
        """Trials at which each voter voted, in the same places."""
        return self._counted.counts[ANSWERED]

    @property
    def leaders(self) -> tuple[int, int]:
        """Voters with the fewest mistakes so far and recently."""
        return int(self.right[FIRST_VOTER:].argmax()), int(self._counted.recent.argmax())

    def add(
        self,
        right: np.ndarray,
        votes: np.ndarray,
        labels: np.ndarray,
        k: int,
        leaders: tuple[int, int] | None = None,
        soft: np.ndarray | None = None,
    ) -> None:
        """Count further trials: whether the fusion was right, and votes (-1 abstains) and labels in class numbers.

        Voters may have joined at the right. On held-out trials, from which nobody learns, ``leaders`` are the best
        voters so far and recently throughout. ``soft`` marks where soft voting was right, where there are scores.
        """
        self.widen(votes.shape[1])
        soft_right = np.zeros(0, np.uint8) if soft is None else soft.astype(np.uint8)
        given = np.ascontiguousarray(votes, np.int32), np.ascontiguousarray(labels, np.int32)
        places, room = FREE if leaders is None else np.array(leaders), np.zeros(k, np.int64)
        row = np.zeros(FIRST_VOTER + votes.shape[1])
        count_trials(self._counted, right.astype(np.uint8), soft_right, *given, places, room, row)

    def widen(self, voters: int) -> None:
        """Make room for voters that have joined at the right."""
        numbers, counts, times, curves, recent = self._counted
        new = FIRST_VOTER + voters - counts.shape[1]
        if new:
            counts = np.hstack([counts, np.zeros((4, new))])
            counts[WINS, -new:] = counts[RIGHT, FUSION]  # a voter that was not there was not right
            curves = np.hstack([curves, np.repeat(times[:, None].astype(float), new, axis=1)])
            self._counted = Counted(numbers, counts, times, curves, np.append(recent, np.zeros(new)))

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Return trials, from 0, and (points, rivals) the mistakes up to each."""
        filled = int(self._counted.numbers[FILLED])
        times = np.concatenate([[0], self._counted.times[:filled], [self.trials]])
        curves = self._counted.curves[:filled]
        return times, np.vstack([np.zeros((1, curves.shape[1])), curves, (self.trials - self.right)[None]])

    def curve(self, rival: int) -> np.ndarray:
        """Return the mistakes of a rival up to and including each trial, interpolated between the points stored."""
        times, mistakes = self.points()
        return np.interp(np.arange(1, self.trials + 1), times, mistakes[:, rival])

    def compare(self, voters: Sequence[str], leaders: tuple[int, int] | None = None) -> Comparison:
        """Compare the fusion with its baselines; ``voters`` are names."""
        best, (so_far, last) = self.leaders[0], self.leaders if leaders is None else leaders
        places = {
            "best_voter": (voters[best], FIRST_VOTER + best),
            "best_so_far": (voters[so_far], BEST_SO_FAR),
            "plurality": ("plurality", PLURALITY),
            "best_recent": (voters[last], BEST_RECENT),
        }
        if self.trials and self.answered[SOFT] == self.trials:
            places["soft_voting"] = "soft voting", SOFT
        rivals = {}
        for key, (name, place) in places.items():
            right, wins, losses = self._counted.counts[:ANSWERED, place].tolist()
            rivals[key] = Rival.of(name, right, wins, losses, self.trials)
        return Comparison(self.trials, int(self.trials - self.right[FUSION]), rivals)


# -- comparisons --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rival:
    """A baseline of the fusion, and the 95 % interval (low, high) of the difference in accuracy."""

    name: str
    accuracy: float
    wins: float
    losses: float
    difference: float
    low: float
    high: float

    @classmethod
    def of(cls, name: str, right: float, wins: float, losses: float, trials: int) -> Rival:
        """Return the baseline, given the trials that it got right, and the wins and losses of the fusion.

        Examples
        --------
        >>> rival = Rival.of("other", right=60, wins=20, losses=10, trials=100)
        >>> round(rival.low, 3), rival.difference, round(rival.high, 3), rival.verdict
        (-0.007, 0.1, 0.203, 'unclear')
        """
        size = max(1, trials)
        won, lost, more = wins + 0.5, losses + 0.5, size + 2.0
        middle = (won - lost) / more
        reach = NORMAL * math.sqrt(won + lost - (won - lost) ** 2 / more) / more
        return cls(name, right / size, wins, losses, (wins - losses) / size, middle - reach, middle + reach)

    @property
    def verdict(self) -> str:
        """Verdict on the fusion: "beats", "loses to", or "unclear" when the interval holds 0."""
        return "beats" if self.low > 0.0 else "loses to" if self.high < 0.0 else "unclear"


@dataclass(frozen=True)
class Comparison:
    """The fusion and its rivals on one set of trials."""

    trials: int
    mistakes: int
    rivals: Mapping[str, Rival]

    @property
    def accuracy(self) -> dict[str, float]:
        """Share of right answers: of the fusion and of each rival."""
        fusion = 1.0 - self.mistakes / max(1, self.trials)
        return {"fusion": fusion} | {key: rival.accuracy for key, rival in self.rivals.items()}

    @property
    def winner(self) -> str:
        """Most accurate one; the fusion among equals."""
        accuracy = self.accuracy
        return max(accuracy, key=lambda key: accuracy[key])

    def to_dict(self) -> dict[str, Any]:
        """Return the differences as plain numbers and text."""
        return {
            key: {
                "name": rival.name,
                "wins": rival.wins,
                "losses": rival.losses,
                "difference": rival.difference,
                "ci95": [rival.low, rival.high],
                "verdict": rival.verdict,
            }
            for key, rival in self.rivals.items()
        }


# -- rivals that are refitted -------------------------------------------------------------------------------------


def ratings_of(votes: np.ndarray, k: int) -> np.ndarray:
    """Return (trials, classes, voters) 1 for each vote for a class, from class numbers; -1 is an abstention."""
    return (votes[:, None, :] == np.arange(k)[None, :, None]).astype(np.float32)


def fit_logit(ratings: np.ndarray, labels: np.ndarray, start: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """Fit one weight for each column of (trials, classes, columns) ratings; return them and the log-likelihood.

    The weights of a conditional logit, P(j) in proportion to exp(weights . ratings[j]), are a common weight of all
    columns, and what each column differs from it; both under a ridge of 1, about `PLURALITY_WEIGHT` and 0. Newton's
    method, halving steps that do not improve; ``start`` are weights as returned.

    Examples
    --------
    >>> ratings = ratings_of(np.array([[0, 1], [1, 0]] * 20), k=2)
    >>> weights, _ = fit_logit(ratings, np.array([0, 1] * 20))  # the first voter is always right
    >>> bool(weights[0] > 1.0 > 0.0 > weights[1])
    True
    """
    trials, columns = np.arange(len(labels)), ratings.shape[2]
    # With a weight w_i = c + u_i, ridges on c and u are the Gaussian prior on w of this mean and precision.
    precision = np.eye(columns) - 1.0 / (columns + 1.0)
    mean = np.full(columns, PLURALITY_WEIGHT)
    weights = mean if start is None else start

    def likelihood(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = (ratings @ weights.astype(np.float32)).astype(float)
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares = powers / powers.sum(axis=1, keepdims=True)
        off = weights - mean
        fit = np.log(np.maximum(shares[trials, labels], 1e-300)).sum()
        return float(fit - 0.5 * off @ precision @ off), shares.astype(np.float32)

    value, shares = likelihood(weights)
    for _ in range(NEWTON_STEPS):
        expected = np.matmul(shares[:, None, :], ratings)[:, 0]
        slope = (ratings[trials, labels] - expected).sum(axis=0) - precision @ (weights - mean)
        spread = (ratings * np.sqrt(shares)[..., None]).reshape(-1, columns)
        step = np.linalg.solve(spread.T @ spread - expected.T @ expected + precision, slope)
        found, shares = likelihood(weights + step)
        while found < value - LEAST_GAINED and np.abs(step).max() > LEAST_GAINED:
            step *= 0.5
            found, shares = likelihood(weights + step)
        weights, gained, value = weights + step, found - value, found
        if gained < LEAST_GAINED:
            break
    return weights, value


def refitted(ratings: np.ndarray, labels: np.ndarray, window: int | None = None) -> np.ndarray:
    """Return the class that a logit names in each trial before its label; fitted to all trials before, or the last."""
    answers, weights, begin = np.zeros(len(labels), np.int64), np.full(ratings.shape[2], PLURALITY_WEIGHT), 0
    while begin < len(labels):
        if begin:
            first = 0 if window is None else max(0, begin - window)
            weights, _ = fit_logit(ratings[first:begin], labels[first:begin], weights)
        step = 1 + begin // REFIT
        end = begin + (step if window is None else min(step, WINDOW_STEP))
        answers[begin:end] = (ratings[begin:end] @ weights.astype(np.float32)).argmax(axis=1)
        begin = end
    return answers


def fixed_share(votes: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Return the class that fixed share names in each trial before its label."""
    answers, voters = np.zeros(len(labels), np.int64), votes.shape[1]
    weights = np.full(voters, 1.0 / voters)
    voted, wrong = votes >= 0, (votes != labels[:, None]) & (votes >= 0)
    for t in range(len(labels)):
        answers[t] = np.bincount(votes[t, voted[t]], weights[voted[t]], k).argmax()
        weights[wrong[t]] *= math.exp(-1.0)
        weights = (1.0 - SHARED) * weights / weights.sum() + SHARED / voters
    return answers


class StoredRivals:
    """Stored trials: votes by class number, -1 for none, or (raters, classes) logarithms of shares, and side values."""

    def __init__(self, kept: KeptTrials | None = None) -> None:
        self.kept = KeptTrials(STORED_TRIALS) if kept is None else kept
        self._fitted: tuple[tuple[int, int], np.ndarray] | None = None  # as of this many trials

    def add(
        self,
        votes: np.ndarray,
        labels: np.ndarray,
        right: np.ndarray,
        scores: np.ndarray | None = None,
        places: np.ndarray | None = None,
    ) -> None:
        """Store trials; voters may have joined at the right."""
        if votes.shape[1] > MOST_VOTERS:
            self.kept.clear()
            return
        block = np.zeros((len(votes), 0, 0), np.float32) if scores is None else scores.astype(np.float32)
        sides = np.zeros((len(votes), 0), np.int32) if places is None else places.astype(np.int32)
        room = max(2, min(STORED_TRIALS, MOST_CELLS // max(1, votes.shape[1] * max(1, block.shape[2]))))
        self.kept.add(room, votes=votes, labels=labels, right=right, scores=block, places=sides)

    def _ratings(self, votes: np.ndarray, scores: np.ndarray, k: int) -> np.ndarray:
        """Return what each voter or rater gives each class."""
        return scores.astype(np.float32).transpose(0, 2, 1) if scores.shape[1] else ratings_of(votes, k)

    def _rows(self, k: int) -> tuple[int, np.ndarray, np.ndarray] | None:
        """Return the first trial to compare on, ratings and labels of the trials to fit; None for too few."""
        size = len(self.kept)
        if size < FEWEST_FITTED or k < 2:
            return None
        columns = self.kept["scores"].shape[1] or self.kept["votes"].shape[1]
        room = MOST_RATINGS // (k * columns)
        if room < min(size, WINDOW):
            return None
        late = slice(-room, None)
        ratings = self._ratings(self.kept["votes"][late], self.kept["scores"][late], k)
        first = len(ratings) // 2 if self.kept.dropped or room < size else 0
        return first, ratings, self.kept["labels"][late].astype(np.int64)

    def online(self, k: int) -> dict[str, Rival]:
        """Compare the fusion with its rivals on the trials that all learned from."""
        rows = self._rows(k)
        if rows is None:
            return {}
        first, ratings, labels = rows
        with one_blas_thread():
            answers = {
                "logit": ("conditional logit", refitted(ratings, labels)),
                "logit_recent": (f"conditional logit of the last {WINDOW}", refitted(ratings, labels, WINDOW)),
            }
        if not self.kept["scores"].shape[1]:
            answers["fixed_share"] = "fixed share", fixed_share(self.kept["votes"][-len(labels) :], labels, k)
        right, last = self.kept["right"][-len(labels) :][first:].astype(bool), len(labels) - first
        where = f", last {last:,d} trials" if first else ""
        return {
            key: _compared(name + where, right, (answer == labels)[first:]) for key, (name, answer) in answers.items()
        }

    def held_out(
        self, votes: np.ndarray, scores: np.ndarray | None, labels: np.ndarray, right: np.ndarray, k: int
    ) -> dict[str, Rival]:
        """Compare the fusion, ``right`` or not, with the logit on trials that neither learned from."""
        moment = self.kept.dropped + len(self.kept), k
        if self._fitted is None or self._fitted[0] != moment:
            rows = self._rows(k)
            if rows is None:
                return {}
            with one_blas_thread():
                self._fitted = moment, fit_logit(*rows[1:])[0]
        voters, block = self.kept["votes"].shape[1], np.zeros((len(votes), 0, 0)) if scores is None else scores
        given = np.full((len(votes), voters), -1, np.int32)
        given[:, : votes.shape[1]] = votes[:, :voters]
        answers = (self._ratings(given, block, k) @ self._fitted[1].astype(np.float32)).argmax(axis=1)
        return {"logit": _compared("conditional logit", right, answers == labels)}


def _compared(name: str, fusion: np.ndarray, rival: np.ndarray) -> Rival:
    """Return a baseline, given where it and the fusion were right."""
    return Rival.of(name, int(rival.sum()), int((fusion & ~rival).sum()), int((rival & ~fusion).sum()), len(rival))
