"""The pool for voters and raters at work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from linmax.core.contract import KNOWN, Instances
from linmax.learners import Whole, Worker
from linmax.learners.softmax import SoftmaxWorker, new_store
from linmax.learners.votes.mixture import FIRST, FULL, LOGITS, OUTSET, RIDGE, Pool, Room, play_votes
from linmax.learners.votes.trial import VOTERS

__all__ = ["VotesPool", "VotesWorker"]

REFITTED = 0.1  # precision of the prior of the logit that is fitted afresh to all trials now and then
GUESSES, OTHERS = 1.0, 9.0


class VotesWorker(Worker):
    """State: the logits and their mixture (`Pool`), and a robust softmax that is refitted now and then."""

    def __init__(self, size: int) -> None:
        self.refitted = SoftmaxWorker(REFITTED, True, size)
        self.blocks = np.zeros(3, np.int64)  # voters, raters, thresholds
        members = LOGITS + 1
        guesses = np.tile([GUESSES, OTHERS], (members, 1))
        self.pool = Pool(
            np.tile(OUTSET, (LOGITS, 1)), np.tile(OUTSET, (LOGITS, 1)), RIDGE[:, None, None] * np.eye(VOTERS),
            np.zeros((LOGITS, VOTERS, VOTERS)), np.zeros((LOGITS, 0)), np.zeros(VOTERS, np.int64), np.zeros((LOGITS, 2)),
            np.zeros((0, 2)), FIRST.copy(), guesses, np.zeros(3, np.int64),
        )  # fmt: skip

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        own = {f"pool.{name}": array for name, array in self.pool._asdict().items()}
        return own | {"blocks": self.blocks} | {f"refitted.{name}": a for name, a in self.refitted.arrays.items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.blocks = arrays["blocks"].copy()
        self.pool = Pool(*(arrays[f"pool.{name}"].copy() for name in Pool._fields))
        marked = {name: array for name, array in arrays.items() if name.startswith("refitted.")}
        self.refitted.restore({name.removeprefix("refitted."): array for name, array in marked.items()})

    def renumber(self, order: Sequence[int]) -> None:
        self.refitted.renumber(order)

    def move(self, moved: Callable[[np.ndarray], np.ndarray]) -> None:
        self.refitted.move(moved)

    def _fit(self, instances: Instances, k: int) -> None:
        """Make room for the voters and raters of these instances and for k classes."""
        blocks = np.array([instances.signs.size, instances.scores.shape[1], k if instances.constant else 0])
        if (blocks == self.blocks).all():
            return
        starts, old = VOTERS + np.append(0, np.cumsum(blocks)), VOTERS + np.append(0, np.cumsum(self.blocks))
        n, pool = int(starts[-1]), self.pool
        places = np.concatenate([np.arange(VOTERS), *(starts[b] + np.arange(self.blocks[b]) for b in range(3))]).astype(np.int64)

        def wider(array: np.ndarray, fill: float) -> np.ndarray:
            new = np.full((*array.shape[:-1], n), fill, array.dtype)
            new[..., places] = array
            return new

        diagonal, precision = pool.diagonal, np.zeros((LOGITS, 0, 0))
        if n <= FULL:
            precision = RIDGE[:, None, None] * np.eye(n)
            precision[np.ix_(range(LOGITS), places, places)] = pool.precision
        else:
            diagonal = np.tile(RIDGE[:, None], n)
            was = pool.diagonal if pool.diagonal.size else np.diagonal(pool.precision, axis1=1, axis2=2)
            diagonal[:, places] = was
        scales = np.zeros((int(blocks[1]), 2))
        scales[: len(pool.scales)] = pool.scales
        self.pool = pool._replace(
            weights=wider(pool.weights, 0.0), home=wider(pool.home, 0.0), precision=precision,
            factor=np.zeros_like(precision), diagonal=diagonal, seen=wider(pool.seen, 0), scales=scales,
        )  # fmt: skip
        self.blocks = blocks

    def _room(self, k: int) -> Room:
        n, most = self.pool.weights.shape[1], int(self.blocks[0] + k * (self.blocks[1] + VOTERS + 1))
        return Room(
            new_store(1, most), np.zeros((LOGITS + 1, k)), np.zeros(k), np.zeros((6, max(n, k))),
            np.zeros((2, max(k, most)), np.int64),
        )  # fmt: skip

    def play(
        self, shape: np.ndarray, instances: Instances, labels: np.ndarray, begin: int, end: int, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        self._fit(instances, k)
        known = int(shape[KNOWN])
        _, given = self.refitted.play(shape, instances, labels, begin, end, k)
        shape[KNOWN] = known
        predictions, table = np.zeros(end - begin, np.int32), np.zeros((end - begin, k))
        play_votes(
            instances, labels, begin, end, shape, self.pool, self._room(k), given[:, None], True, predictions, table
        )
        return predictions, table

    def judge(self, shape: np.ndarray, instances: Instances, size: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        kept = self.pool, self.blocks
        self._fit(instances, k)
        _, given = self.refitted.judge(shape, instances, size, k)
        predictions, table = np.zeros(size, np.int32), np.zeros((size, k))
        none = np.zeros(0, np.int32)
        play_votes(
            instances, none, 0, size, shape, self.pool, self._room(k), given[:, None], False, predictions, table
        )
        self.pool, self.blocks = kept
        return predictions, table


@dataclass(frozen=True)
class VotesPool(Whole):
    """Description of the pool; made by ``linmax.vr_combine(pool="votes")``."""

    name: ClassVar[str] = "votes"
    from_zero: ClassVar[bool] = False

    def worker(self, size: int) -> Worker:
        return VotesWorker(size)
