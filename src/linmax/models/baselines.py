"""Baselines of a fusion on the same trials: plurality, soft voting, the best voters and a refitted logit.

`Tally` counts while a fusion learns; its size does not grow with the trials. For each baseline it counts the trials
that only the fusion got right (wins) and those that only the baseline got right (losses). The interval of the
difference in accuracy is that of Agresti and Min (2005), a Wald interval after adding half a trial to each of the four
outcomes; it holds its level where few trials differ, as a percentile bootstrap does not.

`LogitRival` keeps at most 8,192 trials and fits one weight for each voter by maximum likelihood under a ridge. It runs
when a report is made, and predicts each trial before its label is seen. Once older trials have been dropped, the two
are compared on the newer half of the remaining ones only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import int64, types, uint8

from linmax.core.contract import Indices, Vector
from linmax.data.experts import Experts, experts
from linmax.engine.engine import Settings
from linmax.engine.record import FILLED, POINTS, STRIDE, TRIALS
from linmax.jit.compiling import kernel
from linmax.models.kept_trials import KeptTrials
from linmax.models.model import Model

__all__ = [
    "BEST_RECENT",
    "BEST_SO_FAR",
    "FIRST_VOTER",
    "FUSION",
    "LOGIT_LEARNER",
    "PLURALITY",
    "SOFT",
    "Comparison",
    "LogitRival",
    "Rival",
    "Tally",
    "plurality",
]

FUSION, PLURALITY, BEST_SO_FAR, BEST_RECENT, SOFT = range(5)
FIRST_VOTER = 5
RECENT_DECAY = 0.99  # weight of a voter's earlier answers when the best recent voter is chosen: about 100 trials count
FREE = np.array([-1, -1])  # leaders: those before each trial
CELLS_COUNTED = 2**22  # counts of votes, a number for each trial and class, that are held at a time
NORMAL = 1.959964  # quantile of a 95 % interval

LOGIT_LEARNER = "softmax(10)"
STACKED_TRIALS = 8192  # trials kept
MOST_CELLS = 2**18  # votes, or scores for a class, kept
MOST_VOTERS = 256  # voters beyond which nothing is kept
FEWEST_STACKED = 10  # trials


def plurality(votes: np.ndarray, k: int) -> np.ndarray:
    """Return the class with the most votes; the first among equals, and the first class if nobody votes.

    Examples
    --------
    >>> plurality(np.array([[2, 1, 2], [1, 0, -1], [-1, -1, -1]]), 3).tolist()
    [2, 0, 0]
    """
    if not k:
        return np.zeros(len(votes), np.int64)
    step, found = max(1, CELLS_COUNTED // (k + 1)), [np.zeros(0, np.int64)]
    for begin in range(0, len(votes), step):
        part = votes[begin : begin + step]
        cells = (np.arange(len(part))[:, None] * (k + 1) + np.where(part < 0, k, part)).ravel()
        counts = np.bincount(cells, minlength=len(part) * (k + 1)).reshape(len(part), k + 1)
        found.append(counts[:, :k].argmax(axis=1))
    return np.concatenate(found)


# -- counts -------------------------------------------------------------------------------------------------------


class Counted(NamedTuple):
    """Counts in arrays; the second axis of counts and curves is the baselines, then the voters."""

    numbers: np.ndarray  # int64 (4,), as in `linmax.engine.record`: trials, points of the curves, the stride of these
    counts: np.ndarray  # int64 (4, rivals): right, wins of the fusion, losses, trials with an answer
    times: np.ndarray  # int64 (POINTS + 1,): trials of the points
    curves: np.ndarray  # int64 (POINTS + 1, rivals): mistakes up to each
    recent: np.ndarray  # (voters,) right answers, each trial before counting RECENT_DECAY times as much as the next


RIGHT, WINS, LOSSES, ANSWERED = range(4)
CountedT = types.NamedTuple([Indices, int64[:, ::1], Indices, int64[:, ::1], Vector], Counted)


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


@kernel(types.void(CountedT, uint8[:, ::1], Indices))
def count_trials(tally: Counted, right: np.ndarray, leaders: np.ndarray) -> None:
    """Count trials, given who was right in each, in the order of the counts.

    ``leaders`` are the best voters so far and recently; -1 for those before each trial.
    """
    counts, recent = tally.counts, tally.recent
    for t in range(len(right)):
        row, so_far, last = right[t], leaders[0], leaders[1]
        if so_far < 0:
            so_far, last = counts[RIGHT, FIRST_VOTER:].argmax(), recent.argmax()
        row[BEST_SO_FAR], row[BEST_RECENT] = row[FIRST_VOTER + so_far], row[FIRST_VOTER + last]
        for rival in range(row.size):
            counts[RIGHT, rival] += row[rival]
            counts[WINS, rival] += row[FUSION] > row[rival]
            counts[LOSSES, rival] += row[FUSION] < row[rival]
        for voter in range(recent.size):
            recent[voter] = RECENT_DECAY * recent[voter] + row[FIRST_VOTER + voter]
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
            np.zeros((4, rivals), np.int64),
            np.zeros(POINTS + 1, np.int64),
            np.zeros((POINTS + 1, rivals), np.int64),
            np.zeros(voters),
        )

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """State arrays by name."""
        filled = int(self._counted.numbers[FILLED])
        return self._counted._asdict() | {
            "times": self._counted.times[:filled],
            "curves": self._counted.curves[:filled],
        }

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
        table = np.zeros((len(labels), FIRST_VOTER + votes.shape[1]), np.uint8)
        table[:, FUSION], table[:, PLURALITY] = right, plurality(votes, k) == labels
        table[:, FIRST_VOTER:] = votes == labels[:, None]
        answered = self._counted.counts[ANSWERED]
        answered[FIRST_VOTER:] += (votes >= 0).sum(axis=0)
        if soft is not None:
            table[:, SOFT] = soft
            answered[SOFT] += len(labels)
        count_trials(self._counted, table, FREE if leaders is None else np.array(leaders))

    def widen(self, voters: int) -> None:
        """Make room for voters that have joined at the right."""
        numbers, counts, times, curves, recent = self._counted
        new = FIRST_VOTER + voters - counts.shape[1]
        if new:
            counts = np.hstack([counts, np.zeros((4, new), np.int64)])
            counts[WINS, -new:] = counts[RIGHT, FUSION]  # a voter that was not there was not right
            curves = np.hstack([curves, np.repeat(times[:, None], new, axis=1)])
            self._counted = Counted(numbers, counts, times, curves, np.append(recent, np.zeros(new)))

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Return trials, from 0, and (points, rivals) the mistakes up to each."""
        filled = int(self._counted.numbers[FILLED])
        times = np.concatenate([[0], self._counted.times[:filled], [self.trials]])
        curves = self._counted.curves[:filled]
        return times, np.vstack([np.zeros((1, curves.shape[1])), curves, (self.trials - self.right)[None]])

    def curve(self, rival: int) -> np.ndarray:
        """Return the mistakes of a rival up to and including each trial, interpolated between the points kept."""
        times, mistakes = self.points()
        return np.interp(np.arange(1, self.trials + 1), times, mistakes[:, rival])

    def mistakes(self, rival: int) -> int:
        """Return the mistakes of a rival so far."""
        return int(self.trials - self.right[rival])

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
            right, wins, losses, _ = self._counted.counts[:, place].tolist()
            rivals[key] = Rival.of(name, right, wins, losses, self.trials)
        return Comparison(self.trials, self.mistakes(FUSION), rivals)


# -- comparisons --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rival:
    """A baseline of the fusion, and the 95 % interval (low, high) of the difference in accuracy."""

    name: str
    accuracy: float
    wins: int
    losses: int
    difference: float
    low: float
    high: float

    @classmethod
    def of(cls, name: str, right: int, wins: int, losses: int, trials: int) -> Rival:
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


# -- the refitted logit -------------------------------------------------------------------------------------------


class LogitRival:
    """Trials kept for the logit: votes by class number, -1 for none, or (raters, classes) logarithms of shares."""

    def __init__(self, kept: KeptTrials | None = None) -> None:
        self.kept = KeptTrials(STACKED_TRIALS) if kept is None else kept
        self._played: tuple[tuple[int, int], Model, np.ndarray] | None = None  # as of this many trials

    def add(self, votes: np.ndarray, labels: np.ndarray, right: np.ndarray, scores: np.ndarray | None = None) -> None:
        """Keep trials; voters may have joined at the right."""
        if votes.shape[1] > MOST_VOTERS:
            self.kept.clear()
            return
        block = np.zeros((len(votes), 0, 0), np.float32) if scores is None else scores.astype(np.float32)
        room = max(2, min(STACKED_TRIALS, MOST_CELLS // max(1, votes.shape[1] * max(1, block.shape[2]))))
        self.kept.add(room, votes=votes, labels=labels, right=right, scores=block)

    def _instances(self, votes: np.ndarray, scores: np.ndarray, k: int) -> Experts:
        if scores.shape[1]:
            return experts(scores=scores.astype(float), classes=range(k))
        return experts(votes=votes.astype(np.int32), classes=range(k), abstain=-1)

    def _fitted(self, k: int) -> tuple[Model, np.ndarray] | None:
        """Return the logit after the trials kept, and where it was right; None for too few trials."""
        size, moment = len(self.kept), (self.kept.dropped + len(self.kept), k)
        if size < FEWEST_STACKED or k < 2:
            return None
        if self._played is None or self._played[0] != moment:
            instances = self._instances(self.kept["votes"], self.kept["scores"], k)
            model = Model(LOGIT_LEARNER, instances.layout, list(range(k)), Settings())
            self._played = moment, model, ~model.run(instances, self.kept["labels"].astype(np.int64)).wrong
        return self._played[1:]

    def online(self, k: int) -> Rival | None:
        """Compare the fusion with the logit on the trials that both learned from."""
        fitted = self._fitted(k)
        if fitted is None:
            return None
        first = len(self.kept) // 2 if self.kept.dropped else 0
        name = f"conditional logit, last {len(self.kept) - first:,d} trials" if first else "conditional logit"
        return _compared(name, self.kept["right"][first:].astype(bool), fitted[1][first:])

    def held_out(
        self, votes: np.ndarray, scores: np.ndarray | None, labels: np.ndarray, right: np.ndarray, k: int
    ) -> Rival | None:
        """Compare the fusion, ``right`` or not, with the logit on trials that neither learned from."""
        fitted = self._fitted(k)
        if fitted is None:
            return None
        voters, block = self.kept["votes"].shape[1], np.zeros((len(votes), 0, 0)) if scores is None else scores
        given = np.full((len(votes), voters), -1, np.int32)
        given[:, : votes.shape[1]] = votes[:, :voters]
        return _compared("conditional logit", right, fitted[0].predict(self._instances(given, block, k)) == labels)


def _compared(name: str, fusion: np.ndarray, rival: np.ndarray) -> Rival:
    """Return a baseline, given where it and the fusion were right."""
    return Rival.of(name, int(rival.sum()), int((fusion & ~rival).sum()), int((rival & ~fusion).sum()), len(rival))
