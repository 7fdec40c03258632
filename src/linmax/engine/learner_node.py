"""The node of a learner that is not a rule.

Such a learner may compute differently for many voters: by diagonals, without evidence for each of them. Voters that
never voted must not cause that. So where they would, the learner gets each voter at its first vote
(Mesterharm 2001, section 6.1), and it gets all of them as soon as the rest makes no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.core.contract import EXPERTS, STRIDE, Trials
from linmax.data.arrays import Layout, cut
from linmax.learners.base import Description, Mixture, Placement, Running
from linmax.techniques.node import Chunk, Node, PlayedChunk

if TYPE_CHECKING:
    from linmax.engine.engine import Engine
    from linmax.learners.attributes.pool import RunningPool

Moved = Callable[[np.ndarray], np.ndarray]  # puts the last axis of an array, that of coordinates, in a new order
Play = Callable[[np.ndarray, Trials, int], tuple[np.ndarray, np.ndarray]]  # shape, trials, classes

__all__ = ["LearnerNode"]


class LearnerNode(Node):
    """A learner that is not a rule; all its work and state are its own (see `linmax.learners`)."""

    always_changes = True
    running: Running
    voters: np.ndarray  # those that the learner has, by their columns in the instances, in its own order
    ordered: bool  # whether these are the first columns, in their order

    def __init__(self, described: Description) -> None:
        self.described = described
        self.from_zero = described.from_zero
        self.unmixable = described.unmixable
        self.learns_attributes = described.learns_attributes
        self.passes_attributes_over = "" if described.learns_attributes else str(described)

    def hosts(self, experts: bool) -> bool:
        return self.described.makes_room[experts]

    @property
    def linear(self) -> bool:
        return self.described.linear

    @property
    def takes_gaps(self) -> bool:  # type: ignore[override]
        return self.running.takes_gaps

    @property
    def takes_denied(self) -> bool:  # type: ignore[override]
        return bool(self.pools)

    @property
    def gives_logarithms(self) -> bool:  # type: ignore[override]
        return self.running.gives_logarithms

    @property
    def gives_probabilities(self) -> bool:  # type: ignore[override]
        return self.running.gives_probabilities

    @property
    def pools(self) -> Mapping[str, Any]:  # type: ignore[override]
        return self.running.pools

    @property
    def weighing(self) -> RunningPool | None:  # type: ignore[override]
        """The pool for attributes, where it decides."""
        return None if "votes" in self.pools else self.pools.get("attributes")

    def prepare(self, engine: Engine) -> None:
        self._start(engine, np.arange(engine.layout.voters))
        if self._stage(engine, 0) != self._stage(engine, engine.layout.voters):
            self._start(engine, np.zeros(0, np.int64))

    def _start(self, engine: Engine, voters: np.ndarray) -> None:
        self._have(voters)
        self.running = self.described.start(self._size(engine, voters.size))
        self.running.open = self.running.open or engine.settings.candidates
        self.running.meet(engine.layout)

    def grown(self, engine: Engine) -> None:
        self.running.meet(engine.layout)

    # -- the voters that the learner has --

    @staticmethod
    def _size(engine: Engine, voters: int) -> int:
        """Return the number of coordinates with this many voters."""
        return int(engine.state.weights.shape[1]) - engine.layout.voters + voters

    def _stage(self, engine: Engine, voters: int) -> Hashable:
        layout = replace(engine.layout, voters=voters)
        return self.running.stage(layout, engine.k, self._size(engine, voters))

    def _have(self, voters: np.ndarray) -> None:
        self.voters, self.ordered = voters, bool((voters == np.arange(voters.size)).all())

    def _has_all(self, voters: int) -> bool:
        """Return whether the learner has all of this many voters, in their own order."""
        return self.ordered and self.voters.size == voters

    def _include(self, voters: np.ndarray) -> None:
        before, more = self.voters.size, voters.size
        self._have(np.append(self.voters, voters))

        def wider(array: np.ndarray) -> np.ndarray:
            new = np.zeros((*array.shape[:-1], array.shape[-1] + more), array.dtype)
            new[..., :before], new[..., before + more :] = array[..., :before], array[..., before:]
            return new

        self.running.move(wider)

    def _narrowed(self, engine: Engine, trials: Trials, voters: np.ndarray) -> tuple[np.ndarray, Trials]:
        """Return the shape of the engine and the trials with these voters only."""
        shape = engine.state.shape.copy()
        shape[EXPERTS] += voters.size - trials.signs.size
        votes = np.ascontiguousarray(trials.votes[:, voters])
        return shape, trials._replace(votes=votes, signs=trials.signs[voters])

    def _stretches(self, engine: Engine, trials: Trials) -> Iterator[tuple[int, int]]:
        """Yield stretches of trials; before each, include the voters that vote for the first time where it begins."""
        total = trials.signs.size
        missing = np.setdiff1d(np.arange(total), self.voters)
        votes = trials.votes[:, missing] >= 0
        first = np.where(votes.any(axis=0), votes.argmax(axis=0), trials.size) if trials.size else np.zeros(0, int)
        begin = 0
        for end in [*np.unique(first[first < trials.size]).tolist(), trials.size]:
            if self._stage(engine, self.voters.size) == self._stage(engine, total):
                break
            if end > begin:
                yield begin, end
            self._include(missing[first == end] if end < trials.size else missing[:0])
            begin = end
        if begin < trials.size:
            self._include(np.setdiff1d(missing, self.voters))
            yield begin, trials.size

    def _play(self, engine: Engine, trials: Trials, play: Play) -> tuple[np.ndarray, np.ndarray]:
        if self._has_all(trials.signs.size):
            return play(engine.state.shape, trials, engine.k)
        predictions, table = np.zeros(trials.size, np.int32), np.zeros((trials.size, engine.k))
        for begin, end in self._stretches(engine, trials):
            shape, own = self._narrowed(engine, cut(trials, begin, end), self.voters)
            predictions[begin:end], table[begin:end] = play(shape, own, engine.k)
        return predictions, table

    def _widened(self, engine: Engine, experts: np.ndarray) -> np.ndarray:
        """Return weights of sub-experts with 0 for the voters that the learner does not have."""
        own = self.voters.size
        if self._has_all(engine.layout.voters):
            return experts
        new = np.zeros(engine.layout.voters + max(0, experts.size - own))
        new[self.voters[: experts.size]], new[engine.layout.voters :] = experts[:own], experts[own:]
        return new

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return {"present": self.voters} | self.running.arrays

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._have(arrays["present"].copy())
        self.running.restore({name: array for name, array in arrays.items() if name != "present"})

    def move(self, moved: Moved, old: Layout, new: Layout) -> None:
        if old.voters == new.voters and self._has_all(old.voters):
            return self.running.move(moved)

        def narrowed(array: np.ndarray) -> np.ndarray:
            own = self.voters.size
            whole = np.zeros((*array.shape[:-1], array.shape[-1] - own + old.voters), array.dtype)
            whole[..., self.voters], whole[..., old.voters :] = array[..., :own], array[..., own:]
            whole = moved(whole)
            return np.concatenate([whole[..., self.voters], whole[..., new.voters :]], axis=-1)

        return self.running.move(narrowed)

    def play(self, engine: Engine, chunk: Chunk) -> PlayedChunk:
        predictions, table = self._play(engine, chunk.own, self.running.play)
        return PlayedChunk(predictions, np.ones(len(predictions), np.uint8), table)

    def play_one(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray] | None:
        return self._play(engine, trials, self.running.play)

    def judge(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        if self._has_all(trials.signs.size):
            return self.running.judge(engine.state.shape, trials, engine.k)
        voters = self.voters
        if not self.from_zero:  # those that vote here for the first time count as newcomers
            voting = np.flatnonzero((trials.votes >= 0).any(axis=0))
            voters = np.append(voters, np.setdiff1d(voting, voters))
        return self.running.judge(*self._narrowed(engine, trials, voters), engine.k)

    def watch(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        return self._play(engine, trials, self.running.watch)

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        weights = self._widened(engine, self.running.hypothesis())
        return np.append(weights, np.zeros(engine.state.weights.shape[1] - len(weights))), 0.0

    def shown(self, engine: Engine) -> tuple[np.ndarray, float]:
        form = self.running.linear_form(replace(engine.layout, voters=self.voters.size), engine.k)
        if form is None:
            return self.hypothesis(engine)
        experts, stride = (int(n) for n in engine.state.shape[[EXPERTS, STRIDE]])
        stored = np.zeros(experts + engine.capacity * stride)
        weights = self._widened(engine, form.experts)
        stored[: len(weights)] = weights
        if stride:
            rows = engine.layout.rows
            stored[experts:].reshape(-1, stride)[:rows, : engine.k] = form.rows[:rows]
        return stored, 0.0

    def mix(self, mixture: Mixture) -> None:
        parts = [*mixture.parts, *([] if mixture.base is None else [mixture.base])]
        self._have(np.unique(np.concatenate([part.voters[part.state.voters] for part in parts])))

        def placed(part: Placement) -> Placement:
            return part._replace(voters=np.searchsorted(self.voters, part.voters[part.state.voters]))

        self.running.mix(mixture.map(placed).of(lambda node: node.running))
