"""The rival to beat: one weight for each voter, fitted by maximum likelihood under a ridge, and refitted now and then.

It costs the fusion nothing while it learns: trials are kept, 8,192 at most, and the logit is run over them when a
report asks for it, each trial predicted before its label is seen. When there is no room the older half goes; from then
on the two are compared on the newer half of the trials that are left, so that the logit is not judged as a beginner.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from linmax.data.experts import Experts, experts
from linmax.engine.engine import Settings
from linmax.models.experts_model import ExpertsModel
from linmax.models.fusion.comparison import Rival, rival_of

__all__ = ["LOGIT_LEARNER", "LogitRival"]

LOGIT_LEARNER = "softmax(10)"
STACKED_TRIALS = 8192  # trials kept
MOST_CELLS = 2**18  # votes, or scores for a class, kept
MOST_VOTERS = 256  # voters beyond which nothing is kept
FEWEST_STACKED = 10  # trials
DROPPED, SIZE, ADDED = range(3)


class LogitRival:
    """Trials kept for the logit: votes by class number, -1 for none, or (raters, classes) logarithms of shares."""

    def __init__(self) -> None:
        self.votes = np.full((0, 0), -1, np.int32)
        self.scores = np.zeros((0, 0, 0), np.float32)
        self.labels = np.zeros(0, np.int32)
        self.right = np.zeros(0, np.uint8)  # whether the fusion was
        self.marks = np.zeros(3, np.int64)
        self._run: tuple[int, ExpertsModel, np.ndarray] | None = None  # as of so many trials

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All of it, by name."""
        size = int(self.marks[SIZE])
        kept = {name: getattr(self, name)[:size] for name in ("votes", "scores", "labels", "right")}
        return kept | {"marks": self.marks}

    @classmethod
    def restored(cls, arrays: Mapping[str, np.ndarray]) -> LogitRival:
        """What `arrays` gave."""
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
        """Make room for so many trials, voters, and scores of raters for classes."""
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
        """The logit after the trials kept, and where it was right; None of too few."""
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
        """The fusion beside the logit on the trials that both learned from."""
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
        """The fusion, ``right`` or not, beside the logit on trials that neither learned from."""
        played = self._played(k)
        if played is None:
            return None
        voters, block = self.votes.shape[1], np.zeros((len(votes), 0, 0)) if scores is None else scores
        given = np.full((len(votes), voters), -1, np.int32)
        given[:, : votes.shape[1]] = votes[:, :voters]
        found = played[0].predict(self._instances(given, block, k))
        return rival_of("conditional logit", right, found == labels, random)
