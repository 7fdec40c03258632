"""The last trials in which voters were asked as usual: what panels and a report look back at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numba import types

from linmax.core.contract import Indices, Labels, LabelTable, Matrix, Vector
from linmax.jit.compiling import kernel

__all__ = ["RECENT_TRIALS", "Recent"]

RECENT_TRIALS = 2000  # trials kept
FIRST_ROOM = 64  # trials for which there is room at first
FEWEST_COMPARED = 50  # trials to choose a few of the voters by
FORGET = 0.97  # of a voter's record, each time that it is asked
FADE = 0.998  # of all records, at each trial that is not kept: who is asked seldom is judged by what was lately heard
PACE = 0.05  # at which the usual number of those asked follows
RIGHT, ASKED = 0, 1
NEXT, SIZE, PASSED = range(3)


@kernel(types.void(LabelTable, Labels, types.boolean[:, ::1], LabelTable, Labels, Indices, Vector, Matrix, Indices))
def keep_trials(
    votes: np.ndarray,
    labels: np.ndarray,
    asked: np.ndarray,
    kept: np.ndarray,
    kept_labels: np.ndarray,
    marks: np.ndarray,
    usual: np.ndarray,
    lately: np.ndarray,
    ever: np.ndarray,
) -> None:
    """Count who was right, and keep the trials in which voters were asked as usual."""
    voters = votes.shape[1]
    for t in range(labels.size):
        count = 0
        for i in range(voters):
            if asked[t, i]:
                count += 1
                ever[i] += 1
                lately[RIGHT, i] = FORGET * lately[RIGHT, i] + (votes[t, i] == labels[t])
                lately[ASKED, i] = FORGET * lately[ASKED, i] + 1.0
        if marks[SIZE] and 2 * count < usual[0] and marks[PASSED] < RECENT_TRIALS:
            marks[PASSED] += 1
            continue
        usual[0] += (count - usual[0]) * (PACE if usual[0] else 1.0)
        place = marks[NEXT]
        kept_labels[place] = labels[t]
        for i in range(kept.shape[1]):
            kept[place, i] = votes[t, i] if i < voters else -1
        marks[NEXT] = (place + 1) % RECENT_TRIALS
        marks[SIZE] = min(RECENT_TRIALS, marks[SIZE] + 1)
        marks[PASSED] = 0


class Recent:
    """A ring of trials in which voters were asked as usual, and how often each voter was right lately.

    Votes and labels are the numbers of classes; -1 is silence. A trial in which fewer than half
    the usual number of voters were asked is passed over; unless all have been so for long. Who is asked and abstains is
    not right.
    """

    def __init__(self, voters: int = 0) -> None:
        self.votes = np.full((0, voters), -1, np.int32)
        self.labels = np.zeros(0, np.int32)
        self.marks = np.zeros(3, np.int64)  # where the next trial goes, how many there are, passed over since
        self.usual = np.zeros(1)  # how many are asked in a trial
        self.lately = np.zeros((2, voters))
        self.ever = np.zeros(voters, np.int64)  # how often each voter was asked
        self.told = 0  # trials counted, kept or not

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All of it, by name."""
        size = int(self.marks[SIZE])
        return {
            "votes": self.votes[:size],
            "labels": self.labels[:size],
            "marks": self.marks,
            "usual": self.usual,
            "lately": self.lately,
            "ever": self.ever,
            "told": np.array([self.told]),
        }

    @classmethod
    def restored(cls, arrays: Mapping[str, np.ndarray]) -> Recent:
        """What `arrays` gave."""
        found = cls()
        for name, array in arrays.items():
            setattr(found, name, int(array[0]) if name == "told" else array.copy())
        if len(found.ever) < found.lately.shape[1]:  # stored before asked voters were counted
            found.ever = np.zeros(found.lately.shape[1], np.int64)
        return found

    @classmethod
    def joined(cls, parts: Sequence[tuple[Recent, np.ndarray, np.ndarray]], voters: int) -> Recent:
        """The latest trials of several, as many of each, with the places of its voters and classes among all."""
        found = cls(voters)
        for recent, there, classes in parts:
            votes, labels = (rows[-(RECENT_TRIALS // len(parts)) :] for rows in recent.rows())
            table = np.full((len(votes), voters), -1, np.int32)
            table[:, there[: votes.shape[1]]] = np.append(classes, -1)[votes]
            found.add(table, classes[labels], np.ones(table.shape, bool))
        found.lately[:] = 0.0
        found.ever[:] = 0
        found.told = sum(recent.told for recent, _, _ in parts)
        for recent, there, _ in parts:
            found.lately[:, there[: recent.lately.shape[1]]] += recent.lately
            found.ever[there[: len(recent.ever)]] += recent.ever
        return found

    def add(self, votes: np.ndarray, labels: np.ndarray, asked: np.ndarray) -> None:
        """Take in trials; voters may have joined at the right."""
        if not len(labels):
            return
        self._widen(votes.shape[1])
        self._make_room(len(labels))
        self.told += len(labels)
        keep_trials(
            np.ascontiguousarray(votes, np.int32), np.ascontiguousarray(labels, np.int32), np.ascontiguousarray(asked),
            self.votes, self.labels, self.marks, self.usual, self.lately, self.ever,
        )  # fmt: skip

    def _widen(self, voters: int) -> None:
        missing = voters - self.votes.shape[1]
        if missing > 0:
            self.votes = np.pad(self.votes, ((0, 0), (0, missing)), constant_values=-1)
            self.lately = np.pad(self.lately, ((0, 0), (0, missing)))
            self.ever = np.pad(self.ever, (0, missing))

    def _make_room(self, trials: int) -> None:
        """For so many more trials, as far as they are kept."""
        there, wanted = len(self.labels), min(RECENT_TRIALS, int(self.marks[SIZE]) + trials)
        if wanted > there:
            more = min(RECENT_TRIALS, max(wanted, 2 * there, FIRST_ROOM)) - there
            self.votes = np.pad(self.votes, ((0, more), (0, 0)), constant_values=-1)
            self.labels = np.pad(self.labels, (0, more))

    def note(self, votes: np.ndarray, asked: np.ndarray, label: int) -> None:
        """Count who was right in one trial that is not kept."""
        self._widen(len(votes))
        there = np.flatnonzero(asked)
        self.told += 1
        self.lately *= FADE
        self.lately[:, there] *= FORGET
        self.lately[RIGHT, there] += votes[there] == label
        self.lately[ASKED, there] += 1.0
        self.ever[there] += 1

    @property
    def enough(self) -> bool:
        """Whether there are trials to choose a few of the voters by."""
        return bool(self.marks[SIZE] >= FEWEST_COMPARED)

    def rows(self, voters: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Votes of at least so many voters, and labels, the oldest first."""
        size = int(self.marks[SIZE])
        order = (int(self.marks[NEXT]) - size + np.arange(size)) % RECENT_TRIALS
        missing = max(0, voters - self.votes.shape[1])
        return np.pad(self.votes[order], ((0, 0), (0, missing)), constant_values=-1), self.labels[order]

    def heard_lately(self, voters: int) -> np.ndarray:
        """(2, voters): how often each voter was right of late, and how often it was asked; the latest counts most."""
        return np.pad(self.lately, ((0, 0), (0, max(0, voters - self.lately.shape[1]))))

    def asked_ever(self, voters: int) -> np.ndarray:
        """How often each voter has been asked."""
        return np.pad(self.ever, (0, max(0, voters - len(self.ever))))

    def accuracy_lately(self, voters: int = 0) -> np.ndarray:
        """How often each voter was right of late, of the trials in which it was asked; shy of extremes."""
        right, asked = self.heard_lately(voters)
        return np.asarray((right + 1.0) / (asked + 2.0))
