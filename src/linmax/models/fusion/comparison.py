"""How a fusion fares beside plurality, the best voter in hindsight and the best voter so far, on the same trials.

`Tally` counts while a fusion learns; what it keeps does not grow with the trials. For each rival it counts the trials
that only the fusion got right (wins) and those that only the rival got right (losses): a paired bootstrap of the
difference in accuracy needs no more, since resampling T trials draws the numbers of wins and losses from a multinomial
distribution (Efron and Tibshirani 1993).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["BEST_SO_FAR", "FIRST_VOTER", "FUSION", "PLURALITY", "Comparison", "Rival", "Tally", "plurality"]

FUSION, PLURALITY, BEST_SO_FAR = 0, 1, 2
FIRST_VOTER = 3
RESAMPLES = 10_000
POINTS = 1024  # of a mistake curve that are kept
BLOCK = 2**20  # answers counted at a time, so that memory stays small


def plurality(votes: np.ndarray, k: int) -> np.ndarray:
    """The class that most voters name; the first among equals, and the first class if nobody votes.

    Examples
    --------
    >>> plurality(np.array([[2, 1, 2], [1, 0, -1], [-1, -1, -1]]), 3).tolist()
    [2, 0, 0]
    """
    trials = len(votes)
    cells = (np.arange(trials)[:, None] * (k + 1) + np.where(votes < 0, k, votes)).ravel()
    counts = np.bincount(cells, minlength=trials * (k + 1)).reshape(trials, k + 1)
    return np.asarray(counts[:, :k].argmax(axis=1)) if k else np.zeros(trials, np.int64)


class Tally:
    """Right answers of a fusion and of its rivals, trial by trial.

    The rivals are plurality, the best voter so far (the fewest mistakes in the trials before, the first among equals)
    and every voter; an abstention is a mistake.
    """

    def __init__(self, voters: int = 0) -> None:
        self.trials = 0
        self.right = np.zeros(FIRST_VOTER + voters, np.int64)
        self.wins, self.losses, self.spoke = (np.zeros_like(self.right) for _ in range(3))
        self.stride = 1
        self.times = np.zeros(0, np.int64)
        self.curves = np.zeros((0, FIRST_VOTER + voters), np.int64)  # mistakes after each of `times`

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All state."""
        numbers = np.array([self.trials, self.stride])
        counts = np.stack([self.right, self.wins, self.losses, self.spoke])
        return {"numbers": numbers, "counts": counts, "times": self.times, "curves": self.curves}

    @classmethod
    def restored(cls, arrays: Mapping[str, np.ndarray]) -> Tally:
        """One that goes on from `arrays`."""
        tally = cls()
        tally.trials, tally.stride = (int(n) for n in arrays["numbers"])
        tally.right, tally.wins, tally.losses, tally.spoke = arrays["counts"].copy()
        tally.times, tally.curves = arrays["times"].copy(), arrays["curves"].copy()
        return tally

    @property
    def leader(self) -> int:
        """The voter with the fewest mistakes so far."""
        return int(self.right[FIRST_VOTER:].argmax())

    def add(self, right: np.ndarray, votes: np.ndarray, labels: np.ndarray, k: int, leader: int | None = None) -> None:
        """Further trials: whether the fusion was right, and votes (-1 abstains) and labels in class numbers.

        Voters may have joined at the right. With ``leader`` the best voter so far is that one throughout: so it is on
        held-out trials, from which nobody learns.
        """
        self._welcome(votes.shape[1])
        step = max(1, BLOCK // (len(self.right) + k))
        for begin in range(0, len(labels), step):
            part = slice(begin, begin + step)
            self._block(right[part], votes[part], labels[part], k, leader)

    def _block(self, right: np.ndarray, votes: np.ndarray, labels: np.ndarray, k: int, leader: int | None) -> None:
        agree = votes == labels[:, None]
        if leader is None:
            before = self.right[FIRST_VOTER:] + np.cumsum(agree, axis=0) - agree
            followed = agree[np.arange(len(labels)), before.argmax(axis=1)]
        else:
            followed = agree[:, leader]
        self._count(np.column_stack([right, plurality(votes, k) == labels, followed, agree]), votes)

    def _welcome(self, voters: int) -> None:
        new = FIRST_VOTER + voters - len(self.right)
        if new:
            self.right, self.wins, self.losses, self.spoke = (
                np.append(counts, np.zeros(new, np.int64))
                for counts in (self.right, self.wins, self.losses, self.spoke)
            )
            self.wins[-new:] = self.right[FUSION]  # who was not there was not right
            self.curves = np.hstack([self.curves, np.repeat(self.times[:, None], new, axis=1)])

    def _count(self, answers: np.ndarray, votes: np.ndarray) -> None:
        self._draw(np.cumsum(~answers, axis=0))
        fusion = answers[:, :1]
        self.trials += len(answers)
        self.right += answers.sum(axis=0)
        self.wins += (fusion & ~answers).sum(axis=0)
        self.losses += (~fusion & answers).sum(axis=0)
        self.spoke[FIRST_VOTER:] += (votes >= 0).sum(axis=0)

    def _draw(self, mistakes: np.ndarray) -> None:
        """Keep the curves at every ``stride``-th trial, a stride that doubles when the points become too many."""
        times = self.trials + 1 + np.arange(len(mistakes))
        kept = times % self.stride == 0
        self.times = np.concatenate([self.times, times[kept]])
        self.curves = np.concatenate([self.curves, self.trials - self.right + mistakes[kept]])
        while len(self.times) > POINTS:
            self.stride *= 2
            kept = self.times % self.stride == 0
            self.times, self.curves = self.times[kept], self.curves[kept]

    def curve(self, rival: int) -> np.ndarray:
        """Mistakes of a rival up to and including each trial; between the points kept, a straight line."""
        times, counts = np.append(self.times, self.trials), np.append(self.curves[:, rival], self.mistakes(rival))
        return np.interp(np.arange(1, self.trials + 1), np.append(0, times), np.append(0, counts))

    def mistakes(self, rival: int) -> int:
        """Mistakes of a rival so far."""
        return int(self.trials - self.right[rival])

    def compare(self, voters: Sequence[str], seed: int, leader: int | None = None) -> Comparison:
        """The fusion beside its rivals; ``voters`` are their names, ``seed`` that of the bootstrap."""
        random = np.random.default_rng(seed)
        best, leading = self.leader, self.leader if leader is None else leader
        rivals = {
            "best_voter": self._rival(voters[best], FIRST_VOTER + best, random),
            "best_so_far": self._rival(voters[leading], BEST_SO_FAR, random),
            "plurality": self._rival("plurality", PLURALITY, random),
        }
        return Comparison(self.trials, self.mistakes(FUSION), rivals)

    def _rival(self, name: str, place: int, random: np.random.Generator) -> Rival:
        wins, losses, trials = int(self.wins[place]), int(self.losses[place]), max(1, self.trials)
        drawn = random.multinomial(trials, np.array([wins, losses, trials - wins - losses]) / trials, size=RESAMPLES)
        low, high = np.quantile((drawn[:, 0] - drawn[:, 1]) / trials, [0.025, 0.975])
        return Rival(
            name, float(self.right[place] / trials), wins, losses, (wins - losses) / trials, float(low), float(high)
        )


# -- what came out ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rival:
    """What the fusion is compared with, and the 95 % interval (low, high) of the difference in accuracy."""

    name: str
    accuracy: float
    wins: int
    losses: int
    difference: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Of the fusion: "beats", "loses to", or "unclear" when the interval holds 0."""
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
        """Who was right most often; the fusion among equals."""
        accuracy = self.accuracy
        return max(accuracy, key=lambda key: accuracy[key])

    def to_dict(self) -> dict[str, Any]:
        """The differences as plain numbers and text."""
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
