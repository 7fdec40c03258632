"""What the paths for single trials have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linmax.core.contract import Instances
from linmax.data.arrays import Layout, no_instances
from linmax.engine.engine import Engine
from linmax.engine.one_trial.built_in import SPACE, built_in
from linmax.engine.one_trial.objects import Names, answer
from linmax.engine.record import Record, keep_scores, note
from linmax.jit.compiling import kernel

__all__ = ["OneTrialPath", "blank_instances", "note_and_answer"]

Native = Callable[[int, int, int], int]  # what becomes a built-in function


class OneTrialPath:
    """An engine set up for trials that come one by one.

    `ask` and `teach` are built-in functions: ``ask(attributes, votes)`` and ``teach(attributes, votes, label)`` return
    a class, or REFUSED for what they leave to Python, with nothing changed, or FAILED. They live no longer than the
    path, and the path no longer than the arrays of the engine: when the engine grows, there must be a new one.
    """

    remembers = False  # whether it keeps recent instances that the engine will need, or must not miss a trial
    asked: np.ndarray | None = None  # (1, k): the scores of the instance asked about last, where it has them

    def __init__(self, engine: Engine, names: Names, trial: Any, keep: Any, ask: Native, teach: Native) -> None:
        self._engine, self._names, self._trial = engine, names, trial  # which must live as long as their addresses
        self._memory = np.zeros(SPACE, np.uint8)
        address = int(self._memory.ctypes.data)
        keep(address, trial)
        self.ask, self.teach = built_in(ask, address), built_in(teach, address)

    def has_room(self, count: int, largest: float) -> bool:
        """Whether it takes another instance, of ``count`` attributes up to ``largest``."""
        raise NotImplementedError

    def taught_votes(self) -> np.ndarray:
        """The votes of the instance taught last, as places of classes; a view, until the next one."""
        raise NotImplementedError

    def settle(self) -> None:
        """Hand the recent instances to the engine."""

    def complain(self) -> None:
        """Raise the error of a trial that has FAILED."""
        raise NotImplementedError


def blank_instances(layout: Layout, trials: int, numbers: int) -> Instances:
    """Instances of voters and sparse attributes, to be written."""
    return no_instances(trials)._replace(
        votes=np.full((trials, layout.voters), -1, np.int32),
        signs=np.ones(layout.voters),
        indptr=np.zeros(trials + 1 if layout.sparse else 0, np.int64),
        indices=np.zeros(numbers if layout.sparse else 0, np.int32),
        values=np.zeros(numbers if layout.sparse else 0),
        constant=layout.constant,
    )


@kernel(hot=True)
def note_and_answer(
    objects: np.ndarray, record: Record, predicted: int, label: int, scores: np.ndarray, known: int
) -> int:
    """Record a trial; the class predicted, to be returned to Python."""
    note(record, int(predicted != label))
    keep_scores(record, scores, known, label)
    return answer(objects, predicted)
