"""Whom to ask next: voters are asked in order of worth until those left cannot change the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linmax.util.checks import finite

__all__ = ["Judge", "Question", "order_by_worth", "read_costs", "settled"]

Judge = Callable[[np.ndarray], np.ndarray]  # rows of votes as places of classes, -1 = silent, to classes predicted


@dataclass(frozen=True)
class Question:
    """One instance, of which some votes are known: ``votes`` are places of classes, and ``asked`` who has spoken."""

    votes: np.ndarray  # int32 (voters,)
    asked: np.ndarray  # bool (voters,)

    def next(
        self, order: Sequence[int], weights: np.ndarray, judge: Judge, known: int, against: float = 1.0
    ) -> int | None:
        """The first of ``order`` who has not been asked, unless the answer is settled without these."""
        left = [voter for voter in order if not self.asked[voter]]
        if not left or (self.asked.any() and settled(self.votes, left, weights, judge, known, against)):
            return None
        return left[0]


def settled(
    votes: np.ndarray, left: Sequence[int], weights: np.ndarray, judge: Judge, known: int, against: float = 1.0
) -> bool:
    """Whether the answer stays the same whatever those who are left say.

    With ``against`` below 1 that share of their weight, the heaviest first, says the worst, and the others are silent.

    The worst for class a and for the benefit of class c is that they all vote for c, but those of negative weight for
    a; for one vector of weights this decides it. Of a pool, whose members have weights of their own, it is the worst
    for each member that agrees about the signs.
    """
    if known < 2:
        return True
    answer = int(judge(votes[None])[0])
    rivals = [c for c in range(known) if c != answer]
    worst = np.repeat(votes[None], len(rivals), axis=0)
    places = np.asarray(left)
    if against < 1.0:
        places = places[np.argsort(-np.abs(weights[places]), kind="stable")]
        sizes = np.abs(weights[places])
        places = places[np.cumsum(sizes) - sizes < against * sizes.sum()]
    worst[:, places] = np.where(weights[places] >= 0.0, np.asarray(rivals)[:, None], answer)
    return bool((judge(worst) == answer).all())


def read_costs(costs: Any, voters: Sequence[str]) -> np.ndarray:
    """What asking each voter costs, 1 by default; checked."""
    if costs is None:
        return np.ones(len(voters))
    if not isinstance(costs, Mapping):
        raise TypeError(f"costs must be a dict from voter to number, got {costs!r}")
    missing = [name for name in voters if name not in costs]
    if missing:
        raise ValueError(f"costs: {missing[0]!r} has none; give one to every voter")
    found = np.array([finite(f"costs of {name!r}", costs[name]) for name in voters])
    if (found < 0.0).any():
        at = int(np.argmax(found < 0.0))
        raise ValueError(f"costs of {voters[at]!r} must be >= 0, got {found[at]:g}")
    return found


def order_by_worth(weights: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Voters, the most weight for its cost first; one that costs nothing comes before all that cost something."""
    worth = np.where(costs > 0.0, np.abs(weights) / np.where(costs > 0.0, costs, 1.0), np.inf)
    return np.lexsort((np.arange(len(worth)), -np.abs(weights), -worth))
