"""Whom to ask next: voters are asked in order of worth until those left cannot change the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from linmax.core.contract import KNOWN, Instances
from linmax.data.arrays import Layout, repeated
from linmax.engine.engine import Engine
from linmax.models.model import Model
from linmax.util.checks import finite

__all__ = ["Question", "newcomer", "order_by_worth", "order_to_settle", "read_costs"]

SOMETHING = object()  # stands for a class that nobody has named
AGREEMENT = 0.3  # by how much more a voter of positive weight is worth, whose vote mostly speaks for the answer
MOST_TRIED = 2048  # sets of votes that are tried one by one where nothing else tells whether the answer stays


@dataclass(frozen=True)
class Question:
    """One instance with the votes so far: ``asked`` says who has spoken, or abstained.

    ``columns`` (voters, columns) is where each voter's vote stands among those of the instance. Where votes may bring
    new classes, ``visited`` gives an engine that knows one more; it stands for any of them.
    """

    engine: Engine
    instance: Instances
    asked: np.ndarray
    columns: np.ndarray
    visited: Callable[[], Engine] | None = None

    def next(self, order: Sequence[int], weights: np.ndarray, against: float = 1.0) -> int | None:
        """The first of ``order`` who has not been asked, unless the answer is settled without these.

        With ``against`` below 1 it is as good as settled if it stays although that share of their weight, the heaviest
        first, says the worst, and the others are silent.
        """
        left = np.array([voter for voter in order if not self.asked[voter]], np.int64)
        if not len(left):
            return None
        if self.asked.any():
            if against == 1.0:
                done = self.settled(left, weights)
            else:
                heaviest = left[np.argsort(-np.abs(weights[left]), kind="stable")]
                sizes = np.abs(weights[heaviest])
                done = not self._overturned(heaviest[np.cumsum(sizes) - sizes < against * sizes.sum()], weights)
            if done:
                return None
        return int(left[0])

    def settled(self, left: np.ndarray, weights: np.ndarray) -> bool:
        """Whether the answer stays the same whatever those who are left say: a class, a new class, or nothing.

        For one vector of weights the worst that they can say, for the benefit of class c, is that they all vote for c,
        but those of negative weight for the answer. A pool knows bounds (`linmax.learners.votes.reach`). For other
        learners all that the last few voters may say is tried.
        """
        if self._overturned(left, weights):
            return False
        if self.engine.top.single(self.engine):
            return True
        engine = self.engine if self.newcomer is None else self.newcomer
        fresh, columns = self.newcomer is not None, self.columns[left]
        return engine.top.stays(engine, self.instance, columns, self.answer, fresh) or self._always(left)

    @cached_property
    def newcomer(self) -> Engine | None:
        """The engine that knows one class more, if votes may bring any."""
        return None if self.visited is None else self.visited()

    @cached_property
    def answer(self) -> int:
        """The class predicted from the votes so far, as a place."""
        return int(self.engine.judge(self.instance, 1)[0][0])

    def _judged(self, engine: Engine, left: np.ndarray, votes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores where those left say, row by row, ``votes``: places of classes, -1 = nothing."""
        there, owner = self.columns[left].any(axis=0), self.columns[left].argmax(axis=0)
        rows = repeated(self.instance, len(votes))
        rows.votes[:, there] = votes[:, owner[there]]
        return engine.judge(rows, len(votes))

    def _helps(self, left: np.ndarray) -> np.ndarray:
        """What the vote of each of those left adds to the score of the answer."""
        alone = np.full((len(left) + 1, len(left)), -1, np.int32)
        np.fill_diagonal(alone[1:], self.answer)
        scores = self._judged(self.engine, left, alone)[1][:, self.answer]
        return np.asarray(scores[1:] - scores[0])

    def _overturned(self, left: np.ndarray, weights: np.ndarray) -> bool:
        """Whether the answer changes if all left vote for one rival, or those for the answer who speak against it."""
        answer, known = self.answer, int(self.engine.state.shape[KNOWN])
        if answer < 0:
            return True
        own = self._helps(left) if self.engine.top.single(self.engine) else weights[left]
        rivals = np.array([c for c in range(known) if c != answer], np.int32)
        worst = np.where(own >= 0.0, rivals[:, None], np.int32(answer))
        if len(rivals) and (self._judged(self.engine, left, worst)[0] != answer).any():
            return True
        if self.newcomer is None:
            return False
        own[int(own.argmax())] = 0.0  # someone must name the new class
        worst = np.where(own >= 0.0, np.int32(known), np.int32(answer))[None]
        return bool(self._judged(self.newcomer, left, worst)[0][0] != answer)

    def _always(self, left: np.ndarray) -> bool:
        """Whether the answer is the same for all that they may say; False also where that is too much to try."""
        known = int(self.engine.state.shape[KNOWN])
        if (known + 1) ** len(left) > MOST_TRIED or (self.newcomer is not None and len(left) > 1):
            return False
        votes = np.array(list(product(range(-1, known), repeat=len(left))), np.int32)
        if (self._judged(self.engine, left, votes)[0] != self.answer).any():
            return False
        new = np.full((1, len(left)), known, np.int32)
        return self.newcomer is None or bool(self._judged(self.newcomer, left, new)[0][0] == self.answer)


def newcomer(model: Model, layout: Layout) -> Engine:
    """Like the model's engine with these columns, and with one more class that a vote has named."""
    return model.visited(layout, [SOMETHING], [SOMETHING]).engine


def read_costs(costs: Any, voters: Sequence[Any]) -> np.ndarray:
    """What asking each voter costs, 1 by default; checked."""
    if costs is None:
        return np.ones(len(voters))
    if not isinstance(costs, Mapping):
        raise TypeError(f"costs must be a dict from voter to number, got {costs!r}")
    missing = [name for name in voters if name not in costs]
    if missing:
        raise ValueError(f"costs: {missing[0]!r} has none; give one to every voter")
    if len(costs) > len(voters):
        unknown = next(name for name in costs if name not in voters)
        raise ValueError(f"costs: {unknown!r} is not a known voter; the voters are {', '.join(map(str, voters))}")
    found = np.array([finite(f"costs of {name!r}", costs[name]) for name in voters])
    if (found < 0.0).any():
        at = int(np.argmax(found < 0.0))
        raise ValueError(f"costs of {voters[at]!r} must be >= 0, got {found[at]:g}")
    return found


def order_by_worth(weights: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Voters, the most weight for its cost first; one that costs nothing comes before all that cost something."""
    worth = np.where(costs > 0.0, np.abs(weights) / np.where(costs > 0.0, costs, 1.0), np.inf)
    return np.lexsort((np.arange(len(worth)), -np.abs(weights), -worth))


def order_to_settle(weights: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """The same where voters are asked until the answer is settled: who mostly speaks for it settles it sooner."""
    return order_by_worth(weights * np.where(weights < 0.0, 1.0 - AGREEMENT, 1.0 + AGREEMENT), costs)
