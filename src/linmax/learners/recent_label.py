"""The recent-label voter: it rates each class by how often its label came lately, and looks at nothing else.

r_c <- decay r_c + [c = label]. On streams sorted by class, or with drift, the last label says more than most
sub-experts; on shuffled ones it says how frequent a class is. It assumes that labels come promptly.

A member of the pool for attributes: which labels came lately (see `recent_label`).

It is silent where rows are predicted only: nobody says that they come after those that were learned last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import float64, int64, types

from linmax.core.contract import KNOWN, Indices, Instances, Labels, Matrix, Vector
from linmax.core.linear_max import top_two
from linmax.jit.compiling import kernel
from linmax.learners.attributes.member import Group, Task
from linmax.learners.base import Description, Field, Mixture, Running
from linmax.util.checks import finite

__all__ = ["RecentLabel", "RecentLabels", "recent_label"]


@kernel(types.void(Labels, int64, int64, Indices, float64, Vector, Labels, Matrix))
def play_recent(
    labels: np.ndarray,
    begin: int,
    end: int,
    shape: np.ndarray,
    decay: float,
    recent: np.ndarray,
    predictions: np.ndarray,
    table: np.ndarray,
) -> None:
    """Trials begin..end."""
    for t in range(begin, end):
        for c in range(recent.size):
            table[t - begin, c] = recent[c]
            recent[c] *= decay
        predictions[t - begin] = top_two(table[t - begin], shape)[0]
        if labels[t] >= 0:
            recent[labels[t]] += 1.0
        shape[KNOWN] = max(shape[KNOWN], labels[t] + 1)


@kernel(int64(Vector, Indices))
def leader(scores: np.ndarray, shape: np.ndarray) -> int:
    """The class predicted."""
    return top_two(scores, shape)[0]


class RunningRecent(Running):
    """State: one number a class."""

    fields: ClassVar = {"recent": Field(("class",))}

    def __init__(self, decay: float) -> None:
        self.decay = decay

    def play(
        self, shape: np.ndarray, instances: Instances, labels: np.ndarray, begin: int, end: int, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        self.grow(**{"class": k})
        predictions, table = np.zeros(end - begin, np.int32), np.zeros((end - begin, k))
        play_recent(labels, begin, end, shape, self.decay, self.recent, predictions, table)
        return predictions, table

    def judge(self, shape: np.ndarray, instances: Instances, size: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        self.grow(**{"class": k})
        return np.full(size, leader(self.recent, shape), np.int32), np.tile(self.recent, (size, 1))

    def hypothesis(self) -> np.ndarray:
        raise ValueError("recent-label is not a single weight vector: it looks at labels only, and has no weights")

    def mix(self, mixture: Mixture) -> None:
        """Add up the labels where none fades; else they are those of one stream, and of several are forgotten."""
        self.grow(**{"class": mixture.k})
        if mixture.alone is not None:
            mixture = mixture._replace(parts=[part for part, _ in mixture.weighed], shares=np.ones(1), base=None)
        elif self.decay < 1.0:
            return
        self.merge_fields(mixture, {"class": mixture.k}, lambda part: {"class": part.classes})


@dataclass(frozen=True)
class RecentLabel(Description):
    """Description of the recent-label voter; made by `linmax.recent_label`."""

    decay: float
    name: ClassVar[str] = "recent-label"
    unmixable: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if not 0.0 <= finite("decay", self.decay) <= 1.0:
            raise ValueError(f"decay must be in [0, 1], got {self.decay!r}; try 0.8")

    def start(self, size: int) -> Running:
        return RunningRecent(float(self.decay))


def recent_label(decay: float = 0.8) -> RecentLabel:
    """Predict the class whose label came most lately and often: r_c <- decay r_c + [c = label].

    Parameters
    ----------
    decay
        In [0, 1]: 0 repeats the last label, 1 predicts the most frequent class.

    Notes
    -----
    Models that are merged have no last label in common: all is forgotten, but for decay = 1, where the labels are
    counted and the counts add up.

    See Also
    --------
    vr_combine : the pool for attributes has it as a member.

    Examples
    --------
    >>> import linmax
    >>> instances = linmax.experts(attributes=[[0.0]] * 5)
    >>> linmax.run("recent-label(0.8)", instances, ["a", "b", "b", "b", "a"]).predictions.tolist()
    ['a', 'a', 'b', 'b', 'b']
    """
    return RecentLabel(decay)


LABEL_DECAY = 0.8


class RecentLabels(Group):
    """State: one number a class."""

    members = ("recent labels",)
    sparse = True
    fields: ClassVar = {"recent": Field(("class",), merge="")}

    def play(self, task: Task, votes: np.ndarray, place: int) -> None:
        if not task.learn:
            return
        size, shape = task.end - task.begin, np.zeros(KNOWN + 8, np.int64)
        shape[KNOWN] = task.known
        table = np.zeros((size, self.recent.size))
        play_recent(task.labels, task.begin, task.end, shape, LABEL_DECAY, self.recent, np.zeros(size, np.int32), table)
        votes[:, place] = table[:, : votes.shape[2]]

    def mix(self, mixture: Mixture, width: int) -> None:
        """Keep the recent labels of a single part; those of several streams are forgotten."""
        self.fit(0, width)
        if len(mixture.weighed) == 1:
            part = mixture.weighed[0][0]
            self.recent[part.classes] = part.state.recent[: part.classes.size]
