"""A member of the pool for attributes: which labels came lately (see `recent_label`).

It is silent where rows are predicted only: nobody says that they come after those that were learned last.
"""

from __future__ import annotations

import numpy as np

from linmax.core.contract import KNOWN
from linmax.learners.members import Group, Task
from linmax.learners.mixing import Mixture
from linmax.learners.recent_label import play_recent

__all__ = ["RecentLabels"]

LABEL_DECAY = 0.8


class RecentLabels(Group):
    """State: one number a class."""

    members = ("recent labels",)
    sparse = True
    names = ("recent",)

    def __init__(self) -> None:
        self.recent = np.zeros(0)

    def fit(self, columns: int, width: int) -> None:
        self.recent = np.concatenate([self.recent, np.zeros(max(0, width - len(self.recent)))])

    def follow(self, task: Task, led: object, votes: np.ndarray, place: int) -> None:
        if not task.learn:
            return
        size, shape = task.end - task.begin, np.zeros(KNOWN + 8, np.int64)
        shape[KNOWN] = task.known
        table = np.zeros((size, self.recent.size))
        play_recent(task.labels, task.begin, task.end, shape, LABEL_DECAY, self.recent, np.zeros(size, np.int32), table)
        votes[:, place] = table[:, : votes.shape[2]]

    def mix(self, mixture: Mixture, width: int) -> None:
        """Which labels came lately is known of one stream only: of several it is forgotten."""
        self.fit(0, width)
        if len(mixture.weighed) == 1:
            part = mixture.weighed[0][0]
            self.recent[part.classes] = part.state.recent[: part.classes.size]
