"""The last trials of a fusion in which voters spoke as usual: what panels and a report look back at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numba import types

from linmax.core.contract import Indices, Labels, LabelTable, Matrix, Vector
from linmax.jit.compiling import kernel

__all__ = ["RECENT_TRIALS", "Recent"]

RECENT_TRIALS = 2000  # trials kept
FORGET = 0.97  # of a voter's record, at each of its votes
FADE = 0.998  # of all records, at each trial that is not kept: who is asked seldom is judged by what was lately heard
PACE = 0.05  # at which the usual number of votes follows
RIGHT, SPOKE = 0, 1
NEXT, SIZE, PASSED = range(3)


@kernel(types.void(LabelTable, Labels, LabelTable, Labels, Indices, Vector, Matrix))
def keep_trials(
    votes: np.ndarray,
    labels: np.ndarray,
    kept: np.ndarray,
    kept_labels: np.ndarray,
    marks: np.ndarray,
    usual: np.ndarray,
    lately: np.ndarray,
) -> None:
    """Count who was right, and keep the trials in which voters spoke as usual."""
    voters = votes.shape[1]
    for t in range(labels.size):
        count = 0
        for i in range(voters):
            if votes[t, i] >= 0:
                count += 1
                lately[RIGHT, i] = FORGET * lately[RIGHT, i] + (votes[t, i] == labels[t])
                lately[SPOKE, i] = FORGET * lately[SPOKE, i] + 1.0
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
    """A ring of trials in which voters spoke as usual, and how often each voter was right lately.

    Votes and labels are numbers that mean the same within a trial only; -1 is silence. A trial with fewer than half the
    usual votes, since only some were asked, is passed over; unless all have been so for long.
    """

    def __init__(self, voters: int = 0) -> None:
        self.votes = np.full((0, voters), -1, np.int32)
        self.labels = np.zeros(0, np.int32)
        self.marks = np.zeros(3, np.int64)  # where the next trial goes, how many there are, passed over since
        self.usual = np.zeros(1)  # votes in a trial
        self.lately = np.zeros((2, voters))

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All of it, by name."""
        return {
            "votes": self.votes,
            "labels": self.labels,
            "marks": self.marks,
            "usual": self.usual,
            "lately": self.lately,
        }

    @classmethod
    def restored(cls, arrays: Mapping[str, np.ndarray]) -> Recent:
        """What `arrays` gave."""
        found = cls()
        for name, array in arrays.items():
            setattr(found, name, array.copy())
        return found

    @classmethod
    def joined(cls, parts: Sequence[tuple[Recent, np.ndarray, np.ndarray]], voters: int) -> Recent:
        """The latest trials of several, as many of each, with the places of its voters and classes among all."""
        found = cls(voters)
        for recent, there, classes in parts:
            votes, labels = (rows[-(RECENT_TRIALS // len(parts)) :] for rows in recent.rows())
            table = np.full((len(votes), voters), -1, np.int32)
            table[:, there[: votes.shape[1]]] = np.append(classes, -1)[votes]
            found.add(table, classes[labels])
        found.lately[:] = 0.0
        for recent, there, _ in parts:
            found.lately[:, there[: recent.lately.shape[1]]] += recent.lately
        return found

    def add(self, votes: np.ndarray, labels: np.ndarray) -> None:
        """Take in trials; voters may have joined at the right."""
        if not len(labels):
            return
        missing = votes.shape[1] - self.votes.shape[1]
        if missing > 0:
            self.votes = np.pad(self.votes, ((0, 0), (0, missing)), constant_values=-1)
            self.lately = np.pad(self.lately, ((0, 0), (0, missing)))
        if not len(self.labels):
            self.votes = np.full((RECENT_TRIALS, self.votes.shape[1]), -1, np.int32)
            self.labels = np.zeros(RECENT_TRIALS, np.int32)
        keep_trials(
            np.ascontiguousarray(votes, np.int32), np.ascontiguousarray(labels, np.int32), self.votes, self.labels,
            self.marks, self.usual, self.lately,
        )  # fmt: skip

    def note(self, votes: np.ndarray, label: int) -> None:
        """Count who was right in one trial that is not kept."""
        spoke = np.flatnonzero(votes >= 0)
        self.lately *= FADE
        self.lately[:, spoke] *= FORGET
        self.lately[RIGHT, spoke] += votes[spoke] == label
        self.lately[SPOKE, spoke] += 1.0

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Votes and labels, the oldest first."""
        size = int(self.marks[SIZE])
        order = (int(self.marks[NEXT]) - size + np.arange(size)) % RECENT_TRIALS
        return self.votes[order], self.labels[order]

    def accuracy_lately(self) -> np.ndarray:
        """How often each voter was right of late, of the trials in which it spoke; shy of extremes."""
        return np.asarray((self.lately[RIGHT] + 1.0) / (self.lately[SPOKE] + 2.0))
