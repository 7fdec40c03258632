"""What the members of the pool for attributes have in common: groups of diverse learners, in single precision.

A group is one or more members that read the same attributes and are worked out side by side. It is one file, and one
line of the registry in `pool_members`; the pool fuses, saves, grows, merges and shows whatever groups there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import float32

from linmax.core.contract import Instances
from linmax.jit.compiling import kernel
from linmax.learners.base import Mixture

__all__ = ["DENIED", "Group", "Single", "SingleCube", "SingleMatrix", "Task", "WeightedLabels", "best_rival", "renamed"]


DENIED = -2  # less a class, in the place of a label: all that is known is that it is not this class

Single = float32[::1]
SingleMatrix = float32[:, ::1]
SingleCube = float32[:, :, ::1]


class WeightedLabels(NamedTuple):
    """Labels, some of them perhaps `DENIED`, and how much each counts."""

    labels: np.ndarray
    weights: np.ndarray

    def part(self, begin: int, end: int) -> WeightedLabels:
        """Those of trials begin..end."""
        return WeightedLabels(self.labels[begin:end], self.weights[begin:end])


class Task(NamedTuple):
    """Trials for the members."""

    known: int  # classes before them
    instances: Instances  # for sparse attributes: trials begin..end of these
    labels: np.ndarray
    begin: int
    end: int
    learn: bool
    rows: np.ndarray  # dense attributes of just these trials
    met: np.ndarray  # how many dense attributes had been met at each of them
    weights: np.ndarray  # how much each of them counts


class Group:
    """Members that learn from the same attributes; all of their state is in ``arrays``.

    No group sees another. `lead` of all groups may be a chunk of trials ahead of `follow`, in another thread; a group
    does its work in one of them, or some in each.
    """

    members: tuple[str, ...] = ()  # what its members are called
    sparse: ClassVar[bool] = False  # which attributes it learns from
    studies: ClassVar[bool] = False  # whether it wants to see the first trials together, before it learns from them
    names: ClassVar[tuple[str, ...]] = ()  # of its arrays

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All the state."""
        return {name: getattr(self, name) for name in self.names}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over a state."""
        for name in self.names:
            setattr(self, name, arrays[name].copy())

    def fit(self, columns: int, width: int) -> None:
        """Make room for so many attributes and classes."""

    def mark(self) -> int:
        """What `rewind` takes back to: attributes that are only predicted from leave nothing behind."""
        return 0

    def rewind(self, mark: int) -> None:
        """Forget attributes that room was made for since."""

    def inherit(self, other: Group) -> None:
        """Take over room, but nothing learned, from one that is given up: memory that was used is ready sooner."""

    def study(self, rows: np.ndarray, labels: np.ndarray) -> None:
        """Look at the first trials, dense attributes only; the group is as it was made, and learns from them next."""

    def lead(self, task: Task, votes: np.ndarray, place: int) -> Any:
        """Scores before each trial is learned, and learning: into ``votes[:, place + m]`` for member m.

        What is returned is handed to `follow`.
        """

    def follow(self, task: Task, led: Any, votes: np.ndarray, place: int) -> None:
        """The same for what does not lead."""

    def tables(self, k: int) -> dict[str, np.ndarray]:
        """Weights of the members that are linear in the attributes: (the constant and the attributes, classes)."""
        return {}

    def mix(self, mixture: Mixture, width: int) -> None:
        """Become the mixture of groups that learned apart; this one has seen nothing."""
        raise NotImplementedError


def renamed(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels, and classes denied, with the places of their classes elsewhere.

    Examples
    --------
    >>> renamed(np.array([0, DENIED - 0, DENIED - 1]), np.array([5, 7])).tolist()
    [5, -7, -9]
    """
    denied = labels <= DENIED
    places = classes[np.where(denied, DENIED - labels, labels)]
    return np.where(denied, DENIED - places, places).astype(np.int32)


@kernel()
def best_rival(scores: np.ndarray, label: int, known: int) -> int:
    """The best of the known classes but the label; -1 without any."""
    rival = -1
    for c in range(known):
        if c != label and (rival < 0 or scores[c] > scores[rival]):
            rival = c
    return rival
