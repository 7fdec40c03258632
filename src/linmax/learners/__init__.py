"""Learners that are no rule: they use all classes of a trial, or none of its sub-experts. One file each.

A file holds a description (`Whole`), which is what the user writes, and a `Worker`, which has the state and does the
work, a chunk of trials at a time. They stand alone or among the members of `combine` and `stack`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from linmax.core.contract import LARGEST, Instances

__all__ = ["Auto", "Whole", "Worker", "silent"]


@dataclass(frozen=True)
class Whole:
    """Description of such a learner; its fields are its parameters, all of them numbers."""

    name: ClassVar[str]
    from_zero: ClassVar[bool] = True  # whether a sub-expert that is new changes no score
    linear: ClassVar[bool] = True  # whether its scores are those of its hypothesis, where it has one
    makes_room: ClassVar[bool] = False  # whether `Worker.judge` takes instances with attributes not met before

    def __str__(self) -> str:
        numbers = [repr(float(getattr(self, field.name))).removesuffix(".0") for field in fields(self)]
        return f"{self.name}({', '.join(numbers)})" if numbers else self.name

    def worker(self, size: int) -> Worker:
        """One that has seen nothing, over ``size`` coordinates."""
        raise NotImplementedError


@dataclass(frozen=True)
class Auto:
    """Description of the pool that suits the instances at hand; made by ``linmax.vr_combine(pool="auto")``."""

    def __str__(self) -> str:
        return "auto"


class Worker:
    """A learner at work. ``shape`` is that of `linmax.core.contract.State`, k the number of classes, known or not."""

    def play(
        self, shape: np.ndarray, instances: Instances, labels: np.ndarray, begin: int, end: int, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Predict and learn trials begin..end: the classes predicted, and the scores of all classes.

        A label beyond the known classes makes its class known: ``shape`` is changed.
        """
        raise NotImplementedError

    def judge(self, shape: np.ndarray, instances: Instances, size: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores without learning."""
        raise NotImplementedError

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All the state, by name."""
        raise NotImplementedError

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over a state."""
        raise NotImplementedError

    def hypothesis(self) -> np.ndarray:
        """Weights over the coordinates, where there are any; those left out at the end are 0."""
        raise ValueError("this learner is no single weight vector")

    def renumber(self, order: Sequence[int]) -> None:
        """Class ``order[c]``, not yet known, is class c from now on."""

    def move(self, moved: Callable[[np.ndarray], np.ndarray]) -> None:
        """The coordinates have new places: ``moved`` puts the last axis of an array in order."""


def silent(shape: np.ndarray, known: np.ndarray) -> np.ndarray:
    """What is predicted when nothing speaks, ``known`` classes at each trial."""
    return np.where((shape[LARGEST] != 0) | (known == 0), known - 1, 0).astype(np.int32)
