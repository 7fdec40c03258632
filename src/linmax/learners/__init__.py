"""Learners that are no rule: they use all classes of a trial, or none of its sub-experts.

Each has a `Description`, which is what the user writes, and a `Running` learner, which has the state and does the work,
a chunk of trials at a time. They stand alone or among the members of `combine` and `stack`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from linmax.core.contract import LARGEST, Instances
from linmax.learners.mixing import Mixture

__all__ = ["AutomaticPool", "Description", "Running", "silent"]


@dataclass(frozen=True)
class Description:
    """Description of such a learner; its fields are its parameters, all of them numbers."""

    name: ClassVar[str]
    from_zero: ClassVar[bool] = True  # whether a sub-expert that is new changes no score
    makes_room: ClassVar[bool] = False  # whether `Running.judge` takes instances with attributes not met before
    unmixable: ClassVar[str] = "no mixture of its states is known"  # why `Running.mix` cannot be; "" if it can
    takes_gaps: ClassVar[bool] = False  # whether `Running.play` takes trials without a label, below 0
    linear: ClassVar[bool] = True  # whether its scores are those of its hypothesis, where it has one
    learns_attributes: ClassVar[bool] = True  # whether there is anything in attributes for it

    def __str__(self) -> str:
        numbers = [repr(float(getattr(self, field.name))).removesuffix(".0") for field in fields(self)]
        return f"{self.name}({', '.join(numbers)})" if numbers else self.name

    def start(self, size: int) -> Running:
        """One that has seen nothing, over ``size`` coordinates."""
        raise NotImplementedError


@dataclass(frozen=True)
class AutomaticPool:
    """Description of the pool that suits the instances at hand; made by ``linmax.vr_combine(pool="auto")``.

    ``kind`` is what the attributes are, "dense" or "sparse", if it is not to be decided by the data.
    """

    kind: str = ""

    def __post_init__(self) -> None:
        if self.kind not in ("", "dense", "sparse"):
            raise ValueError(f"kind must be dense or sparse, got {self.kind!r}; leave it out and the data decide")

    def __str__(self) -> str:
        return f"auto({self.kind})" if self.kind else "auto"


class Running:
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
        """Weights over the coordinates, where it predicts with one vector of them; those left out at the end are 0."""
        raise ValueError("this learner is not a single weight vector")

    def linear_form(self, dense: int, sparse: int, k: int) -> np.ndarray | None:
        """Weights of the constant and of each attribute for each class, to look at; None: see `hypothesis`."""
        return None

    def mix(self, mixture: Mixture) -> None:
        """Become the mixture of states that learned apart; this one has seen nothing (see `Description.unmixable`)."""
        raise NotImplementedError

    def renumber(self, order: Sequence[int]) -> None:
        """Class ``order[c]``, not yet known, is class c from now on."""

    def move(self, moved: Callable[[np.ndarray], np.ndarray]) -> None:
        """The coordinates have new places: ``moved`` puts the last axis of an array in order."""


def silent(shape: np.ndarray, known: np.ndarray) -> np.ndarray:
    """What is predicted when nothing speaks, ``known`` classes at each trial."""
    return np.where((shape[LARGEST] != 0) | (known == 0), known - 1, 0).astype(np.int32)
