"""The last trials of a fusion in which voters spoke as usual: what panels and a report look back at."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

__all__ = ["KEPT", "Recent"]

KEPT = 2000  # trials
FORGET = 0.97  # of a voter's record, at each of its votes
RIGHT, SPOKE = 0, 1
NEXT, SIZE, PASSED = range(3)


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

    def add(self, votes: np.ndarray, labels: np.ndarray) -> None:
        """Take in trials."""
        missing = votes.shape[1] - self.votes.shape[1]
        if missing > 0:
            self.votes = np.pad(self.votes, ((0, 0), (0, missing)), constant_values=-1)
            self.lately = np.pad(self.lately, ((0, 0), (0, missing)))
        kept = []
        for t, (row, label) in enumerate(zip(votes[-KEPT:], labels[-KEPT:], strict=True)):
            spoke = row >= 0
            if self._usual(int(spoke.sum())):
                kept.append(t)
            self.lately[:, : len(row)] *= np.where(spoke, FORGET, 1.0)
            self.lately[SPOKE, : len(row)] += spoke
            self.lately[RIGHT, : len(row)] += spoke & (row == label)
        if kept:
            self._keep(votes[-KEPT:][kept].astype(np.int32), labels[-KEPT:][kept].astype(np.int32))

    def _usual(self, count: int) -> bool:
        """Whether a trial with so many votes is to be kept."""
        if self.marks[SIZE] and 2 * count < self.usual[0] and self.marks[PASSED] < KEPT:
            self.marks[PASSED] += 1
            return False
        self.usual[0] += (count - self.usual[0]) * (0.05 if self.usual[0] else 1.0)
        self.marks[SIZE], self.marks[PASSED] = min(KEPT, self.marks[SIZE] + 1), 0
        return True

    def _keep(self, votes: np.ndarray, labels: np.ndarray) -> None:
        if not len(self.labels):
            self.votes = np.full((KEPT, self.votes.shape[1]), -1, np.int32)
            self.labels = np.zeros(KEPT, np.int32)
        places = (int(self.marks[NEXT]) + np.arange(len(labels))) % KEPT
        self.votes[places] = -1
        self.votes[places, : votes.shape[1]] = votes
        self.labels[places] = labels
        self.marks[NEXT] = (self.marks[NEXT] + len(labels)) % KEPT

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Votes and labels, the oldest first."""
        size = int(self.marks[SIZE])
        order = (int(self.marks[NEXT]) - size + np.arange(size)) % KEPT
        return self.votes[order], self.labels[order]

    def accuracy_lately(self) -> np.ndarray:
        """How often each voter was right of late, of the trials in which it spoke; shy of extremes."""
        return np.asarray((self.lately[RIGHT] + 1.0) / (self.lately[SPOKE] + 2.0))
