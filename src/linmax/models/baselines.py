"""Baselines of a fusion on the same trials: plurality, soft voting, the best voters and a refitted logit.

`Tally` counts while a fusion learns; what it keeps does not grow with the trials. For each baseline it counts the
trials that only the fusion got right (wins) and those that only the baseline got right (losses): a paired bootstrap of
the difference in accuracy needs no more, since resampling T trials draws the numbers of wins and losses from a
multinomial distribution (Efron and Tibshirani 1993).

`LogitRival` keeps at most 8,192 trials and fits one weight for each voter by maximum likelihood under a ridge. It runs
when a report is made, and predicts each trial before its label is seen. When it is full the older half of the trials is
dropped; from then on the two are compared on the newer half of the remaining trials only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import int64, types

from linmax.core.contract import Bytes, Indices, Labels, LabelTable, Vector
from linmax.data.experts import Experts, experts
from linmax.engine.engine import Settings
from linmax.engine.record import FILLED, POINTS, STRIDE, TRIALS
from linmax.jit.compiling import kernel
from linmax.models.experts_model import ExpertsModel

__all__ = [
    "BEST_LATELY",
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
    "rival_of",
]

FUSION, PLURALITY, BEST_SO_FAR, BEST_LATELY, SOFT = range(5)
FIRST_VOTER = 5
LATELY_DECAY = 0.99  # of what a voter was right before, when it is asked who is best lately: about 100 trials count
NO_VOTES = np.zeros(0, np.uint8)
BY_TRIAL = np.array([-1, -1])  # leaders: those before each trial
RESAMPLES = 10_000

LOGIT_LEARNER = "softmax(10)"
STACKED_TRIALS = 8192  # trials kept
MOST_CELLS = 2**18  # votes, or scores for a class, kept
MOST_VOTERS = 256  # voters beyond which nothing is kept
FEWEST_STACKED = 10  # trials
DROPPED, SIZE, ADDED = range(3)


def plurality(votes: np.ndarray, k: int) -> np.ndarray:
    """Return the class with the most votes; the first among equals, and the first class if nobody votes.

    Examples
    --------
    >>> plurality(np.array([[2, 1, 2], [1, 0, -1], [-1, -1, -1]]), 3).tolist()
    [2, 0, 0]
    """
    trials = len(votes)
    cells = (np.arange(trials)[:, None] * (k + 1) + np.where(votes < 0, k, votes)).ravel()
    counts = np.bincount(cells, minlength=trials * (k + 1)).reshape(trials, k + 1)
    return np.asarray(counts[:, :k].argmax(axis=1)) if k else np.zeros(trials, np.int64)


class Counted(NamedTuple):
    """Counts in arrays; the second axis of counts and curves is the baselines, then the voters."""

    numbers: np.ndarray  # int64 (4,), as in `linmax.engine.record`: trials, points of the curves, the stride of these
    counts: np.ndarray  # int64 (4, rivals): right, wins of the fusion, losses, trials at which a voter spoke
    times: np.ndarray  # int64 (POINTS + 1,): trials of the points
    curves: np.ndarray  # int64 (POINTS + 1, rivals): mistakes up to each
    recent: np.ndarray  # (voters,) right answers, each trial before counting LATELY_DECAY times as much as the next


RIGHT, WINS, LOSSES, SPOKE = range(4)
CountedT = types.NamedTuple([Indices, int64[:, ::1], Indices, int64[:, ::1], Vector], Counted)


@kernel()
def named_most(votes: np.ndarray, counts: np.ndarray) -> int:
    """Return the class with the most votes, the first among equals; ``counts`` is a buffer of a number a class."""
    counts[:] = 0
    for voter in range(votes.size):
        if votes[voter] >= 0:
            counts[votes[voter]] += 1
    best = 0
    for c in range(1, counts.size):
        if counts[c] > counts[best]:
            best = c
    return best


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
def leading(tally: Counted, voters: int) -> tuple[int, int]:
    """Return the voters with the fewest mistakes so far and recently; the first among equals."""
    so_far, lately = 0, 0
    for voter in range(1, voters):
        if tally.counts[RIGHT, FIRST_VOTER + voter] > tally.counts[RIGHT, FIRST_VOTER + so_far]:
            so_far = voter
        if tally.recent[voter] > tally.recent[lately]:
            lately = voter
    return so_far, lately


@kernel(types.void(CountedT, Bytes, Bytes, LabelTable, Labels, Indices, Indices))
def count_trials(
    tally: Counted,
    right: np.ndarray,
    soft: np.ndarray,
    votes: np.ndarray,
    labels: np.ndarray,
    leaders: np.ndarray,
    room: np.ndarray,
) -> None:
    """Count trials; ``room`` has a number a class, ``soft`` one a trial of scores.

    ``leaders`` are the best voters so far and lately; -1 for those before each trial.
    """
    counts = tally.counts
    for t in range(labels.size):
        so_far, lately = leaders[0], leaders[1]
        if so_far < 0:
            so_far, lately = leading(tally, votes.shape[1])
        fusion = right[t] != 0
        plural = named_most(votes[t], room) == labels[t]
        for rival in range(counts.shape[1]):
            if rival == FUSION:
                agrees = fusion
            elif rival == PLURALITY:
                agrees = plural
            elif rival == SOFT:
                agrees = soft.size > 0 and soft[t] != 0
                counts[SPOKE, SOFT] += soft.size > 0
            else:
                voter = rival - FIRST_VOTER
                if rival == BEST_SO_FAR:
                    voter = so_far
                elif rival == BEST_LATELY:
                    voter = lately
                agrees = voter < votes.shape[1] and votes[t, voter] == labels[t]
            counts[RIGHT, rival] += agrees
            counts[WINS, rival] += fusion and not agrees
            counts[LOSSES, rival] += agrees and not fusion
            if rival >= FIRST_VOTER:
                voter = rival - FIRST_VOTER
                counts[SPOKE, rival] += votes[t, voter] >= 0
                tally.recent[voter] = LATELY_DECAY * tally.recent[voter] + agrees
        tally.numbers[TRIALS] += 1
        draw(tally)


class Tally:
    """Right answers of a fusion and of its rivals, trial by trial.

    The rivals are plurality, soft voting where there are scores, the best voter so far (the fewest mistakes in the
    trials before, the first among equals) and lately (in about the last 100), and every voter; an abstention is a
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
        numbers, counts, times, curves, recent = self._counted
        filled = int(numbers[FILLED])
        found = {"numbers": numbers, "counts": counts, "times": times[:filled], "curves": curves[:filled]}
        return found | {"recent": recent}

    @classmethod
    def restored(cls, arrays: Mapping[str, np.ndarray]) -> Tally:
        """Restore from `arrays`."""
        tally = cls(arrays["counts"].shape[1] - FIRST_VOTER)
        numbers, counts, times, curves, recent = tally._counted
        filled = int(arrays["numbers"][FILLED])
        numbers[:], counts[:], recent[:] = arrays["numbers"], arrays["counts"], arrays["recent"]
        times[:filled], curves[:filled] = arrays["times"], arrays["curves"]
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
            own[WINS] = tally.right[FUSION]  # who was not there was not right
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
    def spoke(self) -> np.ndarray:
        """Trials at which each voter voted, in the same places."""
        return self._counted.counts[SPOKE]

    @property
    def leader(self) -> int:
        """Voter with the fewest mistakes so far."""
        return int(self.right[FIRST_VOTER:].argmax())

    @property
    def leaders(self) -> tuple[int, int]:
        """Voters with the fewest mistakes so far and recently."""
        return self.leader, int(self._counted.recent.argmax())

    def add(
        self,
        right: np.ndarray,
        votes: np.ndarray,
        labels: np.ndarray,
        k: int,
        leaders: tuple[int, int] | None = None,
        soft: np.ndarray | None = None,
    ) -> None:
        """Further trials: whether the fusion was right, and votes (-1 abstains) and labels in class numbers.

        Voters may have joined at the right. With ``leaders`` the best voters so far and lately are those throughout: so
        it is on held-out trials, from which nobody learns. ``soft`` marks where soft voting was right, where there
        are scores.
        """
        self._welcome(votes.shape[1])
        count_trials(
            self._counted,
            np.ascontiguousarray(right, np.uint8),
            NO_VOTES if soft is None else np.ascontiguousarray(soft, np.uint8),
            np.ascontiguousarray(votes, np.int32),
            np.ascontiguousarray(labels, np.int32),
            BY_TRIAL if leaders is None else np.array(leaders),
            np.zeros(k, np.int64),
        )

    def _welcome(self, voters: int) -> None:
        numbers, counts, times, curves, recent = self._counted
        new = FIRST_VOTER + voters - counts.shape[1]
        if new:
            counts = np.hstack([counts, np.zeros((4, new), np.int64)])
            counts[WINS, -new:] = counts[RIGHT, FUSION]  # who was not there was not right
            curves = np.hstack([curves, np.repeat(times[:, None], new, axis=1)])
            self._counted = Counted(numbers, counts, times, curves, np.append(recent, np.zeros(new)))

    def curve(self, rival: int) -> np.ndarray:
        """Mistakes of a rival up to and including each trial; between the points kept, a straight line."""
        filled = int(self._counted.numbers[FILLED])
        times = np.append(self._counted.times[:filled], self.trials)
        counts = np.append(self._counted.curves[:filled, rival], self.mistakes(rival))
        return np.interp(np.arange(1, self.trials + 1), np.append(0, times), np.append(0, counts))

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Trials, from 0, and (points, rivals) the mistakes up to each."""
        filled = int(self._counted.numbers[FILLED])
        times = np.concatenate([[0], self._counted.times[:filled], [self.trials]])
        curves = self._counted.curves[:filled]
        return times, np.vstack([np.zeros((1, curves.shape[1])), curves, (self.trials - self.right)[None]])

    def mistakes(self, rival: int) -> int:
        """Mistakes of a rival so far."""
        return int(self.trials - self.right[rival])

    def compare(self, voters: Sequence[str], seed: int, leaders: tuple[int, int] | None = None) -> Comparison:
        """Compare the fusion with its baselines; ``voters`` are names, ``seed`` is that of the bootstrap."""
        random = np.random.default_rng(seed)
        best, (so_far, lately) = self.leader, self.leaders if leaders is None else leaders
        rivals = {
            "best_voter": self._rival(voters[best], FIRST_VOTER + best, random),
            "best_so_far": self._rival(voters[so_far], BEST_SO_FAR, random),
            "plurality": self._rival("plurality", PLURALITY, random),
            "best_lately": self._rival(voters[lately], BEST_LATELY, random),
        }
        if self.trials and self.spoke[SOFT] == self.trials:
            rivals["soft_voting"] = self._rival("soft voting", SOFT, random)
        return Comparison(self.trials, self.mistakes(FUSION), rivals)

    def _rival(self, name: str, place: int, random: np.random.Generator) -> Rival:
        wins, losses = self._counted.counts[[WINS, LOSSES], place].tolist()
        return _resampled(name, int(self.right[place]), wins, losses, self.trials, random)


def _resampled(name: str, right: int, wins: int, losses: int, trials: int, random: np.random.Generator) -> Rival:
    """Return the baseline and the interval of the difference, given the counts."""
    trials = max(1, trials)
    drawn = random.multinomial(trials, np.array([wins, losses, trials - wins - losses]) / trials, size=RESAMPLES)
    low, high = np.quantile((drawn[:, 0] - drawn[:, 1]) / trials, [0.025, 0.975])
    return Rival(name, right / trials, wins, losses, (wins - losses) / trials, float(low), float(high))


def rival_of(name: str, fusion: np.ndarray, rival: np.ndarray, random: np.random.Generator) -> Rival:
    """Return a baseline, given where it and the fusion were right.

    Examples
    --------
    >>> fusion, other = np.array([True, True, False]), np.array([True, False, False])
    >>> found = rival_of("other", fusion, other, np.random.default_rng(0))
    >>> found.wins, found.losses, round(found.difference, 2)
    (1, 0, 0.33)
    """
    wins, losses = int((fusion & ~rival).sum()), int((rival & ~fusion).sum())
    return _resampled(name, int(rival.sum()), wins, losses, len(rival), random)


# -- what came out ------------------------------------------------------------------------------------------------


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

    def __init__(self) -> None:
        self.votes = np.full((0, 0), -1, np.int32)
        self.scores = np.zeros((0, 0, 0), np.float32)
        self.labels = np.zeros(0, np.int32)
        self.right = np.zeros(0, np.uint8)  # whether the fusion was
        self.marks = np.zeros(3, np.int64)
        self._run: tuple[int, ExpertsModel, np.ndarray] | None = None  # as of this many trials

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """State arrays by name."""
        size = int(self.marks[SIZE])
        kept = {name: getattr(self, name)[:size] for name in ("votes", "scores", "labels", "right")}
        return kept | {"marks": self.marks}

    @classmethod
    def restored(cls, arrays: Mapping[str, np.ndarray]) -> LogitRival:
        """Restore from `arrays`."""
        found = cls()
        for name, array in arrays.items():
            setattr(found, name, array.copy())
        return found

    def add(self, votes: np.ndarray, labels: np.ndarray, right: np.ndarray, scores: np.ndarray | None = None) -> None:
        """Keep trials; voters may have joined at the right."""
        if votes.shape[1] > MOST_VOTERS:
            self.marks[SIZE] = 0
            return
        block = np.zeros((len(votes), 0, 0), np.float32) if scores is None else scores
        room = max(2, min(STACKED_TRIALS, MOST_CELLS // max(1, votes.shape[1] * max(1, block.shape[2]))))
        begin = 0
        while begin < len(labels):
            size = int(self.marks[SIZE])
            if size >= room:
                self._drop(size - room // 2)
                continue
            end = min(len(labels), begin + room - size)
            self._widen(min(room, max(64, 2 * size, size + end - begin)), votes.shape[1], block.shape[1:])
            part, place = slice(begin, end), slice(size, size + end - begin)
            self.votes[place, : votes.shape[1]] = votes[part]
            if block.shape[1]:
                self.scores[place] = block[part]
            self.labels[place], self.right[place] = labels[part], right[part]
            self.marks[SIZE], begin = place.stop, end
        self.marks[ADDED] += len(labels)

    def add_row(self, votes: np.ndarray, labels: np.ndarray, right: np.ndarray) -> None:
        """`add` for one trial of votes; at once where there is room for it."""
        size = int(self.marks[SIZE])
        if size == len(self.labels) or votes.shape[1] != self.votes.shape[1] or self.scores.shape[1]:
            self.add(votes, labels, right)
            return
        self.votes[size], self.labels[size], self.right[size] = votes[0], labels[0], right[0]
        self.marks[SIZE] = size + 1
        self.marks[ADDED] += 1

    def _drop(self, count: int) -> None:
        """Forget the oldest."""
        size = int(self.marks[SIZE]) - count
        for array in (self.votes, self.scores, self.labels, self.right):
            array[:size] = array[count : count + size].copy()
        self.votes[size:] = -1
        self.marks[DROPPED] += count
        self.marks[SIZE] = size

    def _widen(self, rows: int, voters: int, rated: tuple[int, ...]) -> None:
        """Allocate this many trials, voters, and scores of raters for classes."""
        more, joined = max(0, rows - len(self.labels)), max(0, voters - self.votes.shape[1])
        if more or joined:
            self.votes = np.pad(self.votes, ((0, more), (0, joined)), constant_values=-1)
            self.labels, self.right = np.pad(self.labels, (0, more)), np.pad(self.right, (0, more))
        old = self.scores
        if len(old) < len(self.labels) or old.shape[1] < rated[0] or old.shape[2] < rated[1]:
            self.scores = np.zeros((len(self.labels), *rated), np.float32)
            self.scores[: len(old), : old.shape[1], : old.shape[2]] = old

    def _instances(self, votes: np.ndarray, scores: np.ndarray, k: int) -> Experts:
        if scores.shape[1]:
            return experts(scores=scores.astype(float), classes=range(k))
        return experts(votes=votes.astype(np.int32), classes=range(k), abstain=-1)

    def _played(self, k: int) -> tuple[ExpertsModel, np.ndarray] | None:
        """Return the logit after the trials kept, and where it was right; None for too few trials."""
        size = int(self.marks[SIZE])
        if size < FEWEST_STACKED or k < 2:
            return None
        if self._run is None or self._run[0] != self.marks[ADDED] or len(self._run[1].classes) != k:
            instances = self._instances(self.votes[:size], self.scores[:size], k)
            model = ExpertsModel(LOGIT_LEARNER, instances.layout, list(range(k)), Settings())
            right = ~model.run(instances, self.labels[:size].astype(np.int64)).wrong
            self._run = int(self.marks[ADDED]), model, right
        return self._run[1:]

    def online(self, k: int, random: np.random.Generator) -> Rival | None:
        """Compare the fusion with the logit on the trials that both learned from."""
        played = self._played(k)
        if played is None:
            return None
        size = int(self.marks[SIZE])
        late = slice(size // 2 if self.marks[DROPPED] else 0, size)
        name = f"conditional logit, last {late.stop - late.start:,d} trials" if late.start else "conditional logit"
        return rival_of(name, self.right[late].astype(bool), played[1][late], random)

    def held_out(
        self,
        votes: np.ndarray,
        scores: np.ndarray | None,
        labels: np.ndarray,
        right: np.ndarray,
        k: int,
        random: np.random.Generator,
    ) -> Rival | None:
        """Compare the fusion, ``right`` or not, with the logit on trials that neither learned from."""
        played = self._played(k)
        if played is None:
            return None
        voters, block = self.votes.shape[1], np.zeros((len(votes), 0, 0)) if scores is None else scores
        given = np.full((len(votes), voters), -1, np.int32)
        given[:, : votes.shape[1]] = votes[:, :voters]
        found = played[0].predict(self._instances(given, block, k))
        return rival_of("conditional logit", right, found == labels, random)
