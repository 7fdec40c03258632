"""The recent-label voter: it rates each class by how often its label came recently, and looks at nothing else.

r_c <- decay r_c + [c = label]. On streams sorted by class, or with drift, the last label says more than most
sub-experts; on shuffled ones it says how frequent a class is. It assumes that labels come promptly.

A member of the pool for attributes: which labels came recently (see `recent_label`).

It is silent where rows are predicted only: nobody says that they come after those that were learned last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import float64, types

from linmax.core.contract import LARGEST, NO_LABEL, Indices, Labels, Matrix, Trials, Vector
from linmax.core.linear_max import top_two
from linmax.jit.compiling import kernel
from linmax.learners.attributes.group import Group, Task
from linmax.learners.base import Description, Field, Mixture, Running
from linmax.util.checks import finite

__all__ = ["RecentLabel", "RecentLabels", "recent_label"]


@kernel(types.void(Labels, Vector, Indices, Indices, float64, Vector, Labels, Matrix))
def play_recent(
    labels: np.ndarray,
    weights: np.ndarray,
    known: np.ndarray,
    shape: np.ndarray,
    decay: float,
    recent: np.ndarray,
    predictions: np.ndarray,
    table: np.ndarray,
) -> None:
    """Predict, and learn, all trials."""
    for t in range(labels.size):
        for c in range(recent.size):
            table[t, c] = recent[c]
        predictions[t] = top_two(table[t], known[t], shape)[0]
        if labels[t] == NO_LABEL:
            continue
        for c in range(recent.size):
            recent[c] *= decay
        if labels[t] >= 0:
            recent[labels[t]] += weights[t]


@kernel(types.void(Vector, Indices, Indices, Labels))
def lead(scores: np.ndarray, known: np.ndarray, shape: np.ndarray, predictions: np.ndarray) -> None:
    """Predict all trials by the same scores."""
    for t in range(known.size):
        predictions[t] = top_two(scores, known[t], shape)[0]


class RunningRecent(Running):
    """State: one number a class."""

    takes_gaps = True
    fields: ClassVar = {"recent": Field(("class",))}

    def __init__(self, decay: float) -> None:
        self.decay = decay

    def play(self, shape: np.ndarray, trials: Trials, k: int) -> tuple[np.ndarray, np.ndarray]:
        self.grow(**{"class": k})
        predictions, table = np.zeros(trials.size, np.int32), np.zeros((trials.size, k))
        play_recent(trials.labels, trials.weights, trials.known, shape, self.decay, self.recent, predictions, table)
        return predictions, table

    def judge(self, shape: np.ndarray, trials: Trials, k: int) -> tuple[np.ndarray, np.ndarray]:
        self.grow(**{"class": k})
        predictions = np.zeros(trials.size, np.int32)
        lead(self.recent, trials.known, shape, predictions)
        return predictions, np.tile(self.recent, (trials.size, 1))

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
    """Description of the recent-label voter; made by `linmax.learners.recent_label`."""

    decay: float
    name: ClassVar[str] = "recent-label"
    unmixable: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if not 0.0 <= finite("decay", self.decay) <= 1.0:
            raise ValueError(f"decay must be in [0, 1], got {self.decay!r}; try 0.8")

    def start(self, size: int) -> Running:
        return RunningRecent(float(self.decay))


def recent_label(decay: float = 0.8) -> RecentLabel:
    """Predict the class whose label came most recently and often: r_c <- decay r_c + [c = label].

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
    linmax.pool : the pool for attributes has it as a member.

    Examples
    --------
    >>> import linmax
    >>> instances = linmax.instances(attributes=[[0.0]] * 5)
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
        size, known, table = task.trials.size, task.trials.known, np.zeros((task.trials.size, self.recent.size))
        shape, none = np.zeros(LARGEST + 1, np.int64), np.zeros(size, np.int32)
        ones = np.ones(size)  # how often a label came, whatever it counts
        play_recent(task.trials.labels, ones, known, shape, LABEL_DECAY, self.recent, none, table)
        votes[:, place] = table[:, : votes.shape[2]]

    def mix(self, mixture: Mixture, width: int) -> None:
        """Keep the recent labels of a single part; those of several streams are forgotten."""
        self.fit(0, width)
        if len(mixture.weighed) == 1:
            part = mixture.weighed[0][0]
            self.recent[part.classes] = part.state.recent[: part.classes.size]
