"""The node of a learner that is not a rule.

Such a learner may compute differently for many sub-experts: by diagonals, without evidence for each of them. Those that
never voted must not cause that. So where they would, the learner gets each voter at its first vote and each rater at
its first rating (Mesterharm 2001, section 6.1), and it gets all of them as soon as the rest makes no difference.
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
Columns = tuple[np.ndarray, np.ndarray]  # of voters and of raters
Play = Callable[[np.ndarray, Trials, int], tuple[np.ndarray, np.ndarray]]  # shape, trials, classes

__all__ = ["LearnerNode"]


class LearnerNode(Node):
    """A learner that is not a rule; all its work and state are its own (see `linmax.learners`)."""

    always_changes = True
    running: Running
    present: Columns  # voters and raters that the learner has, by their columns in the instances, in its own order
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
        layout, nobody = engine.layout, np.zeros(0, np.int64)
        raters = np.arange(layout.raters)
        self._start(engine, (np.arange(layout.voters), raters))
        first = nobody, raters if layout.dense or layout.sparse else nobody
        if self._stage(engine, first) != self._stage(engine, self.present):
            self._start(engine, first)

    def _start(self, engine: Engine, present: Columns) -> None:
        self._have(present)
        layout = engine.layout
        size = engine.state.weights.shape[1] - layout.voters - layout.raters + present[0].size + present[1].size
        self.running = self.described.start(size)
        self.running.open = self.running.open or engine.settings.candidates
        self.running.meet(layout)

    def grown(self, engine: Engine) -> None:
        layout = engine.layout
        if (layout.dense or layout.sparse) and self.present[1].size < layout.raters:
            missing = np.setdiff1d(np.arange(layout.raters), self.present[1])
            self._include((np.zeros(0, np.int64), missing))
        self.running.meet(layout)

    # -- the voters and raters that the learner has --

    def _have(self, present: Columns) -> None:
        self.present = present
        self.ordered = all(bool((own == np.arange(own.size)).all()) for own in present)

    def _has_all(self, voters: int, raters: int) -> bool:
        """Return whether the learner has all of these, in their own order."""
        return self.ordered and (self.present[0].size, self.present[1].size) == (voters, raters)

    def _stage(self, engine: Engine, present: Columns) -> Hashable:
        layout, (voters, raters) = engine.layout, (own.size for own in present)
        size = int(engine.state.weights.shape[1]) - layout.voters - layout.raters + voters + raters
        return self.running.stage(replace(layout, voters=voters, raters=raters), engine.k, size)

    def _include(self, more: Columns) -> None:
        (voters, raters), first = self.present, self.present[0].size + self.present[1].size
        self._have((np.append(voters, more[0]), np.append(raters, more[1])))
        last = first + more[0].size + more[1].size
        places = np.arange(first)
        places[voters.size :] += more[0].size

        def wider(array: np.ndarray) -> np.ndarray:
            new = np.zeros((*array.shape[:-1], array.shape[-1] + last - first), array.dtype)
            new[..., places], new[..., last:] = array[..., :first], array[..., first:]
            return new

        self.running.move(wider)

    def _narrowed(self, engine: Engine, trials: Trials, present: Columns) -> tuple[np.ndarray, Trials]:
        """Return the shape of the engine and the trials with these voters and raters only."""
        (voters, raters), shape = present, engine.state.shape.copy()
        shape[EXPERTS] += voters.size + raters.size - trials.signs.size - trials.scores.shape[1]
        votes, scores = np.ascontiguousarray(trials.votes[:, voters]), np.ascontiguousarray(trials.scores[:, raters])
        return shape, trials._replace(votes=votes, signs=trials.signs[voters], scores=scores)

    def _missing(self, trials: Trials) -> Columns:
        """Return the voters and raters that the learner does not have."""
        totals = trials.signs.size, trials.scores.shape[1]
        voters, raters = (np.setdiff1d(np.arange(n), own) for n, own in zip(totals, self.present, strict=True))
        return voters, raters

    def _stretches(self, engine: Engine, trials: Trials) -> Iterator[tuple[int, int]]:
        """Yield stretches of trials; include those that vote or rate for the first time where one begins."""
        everyone = np.arange(trials.signs.size), np.arange(trials.scores.shape[1])
        missing, begin = self._missing(trials), 0
        first = [np.where(voted.any(axis=0), voted.argmax(axis=0), trials.size) for voted in active(trials, missing)]
        times = np.unique(np.concatenate(first))
        for end in [*times[times < trials.size].tolist(), trials.size]:
            if self._stage(engine, self.present) == self._stage(engine, everyone):
                break
            if end > begin:
                yield begin, end
            if end < trials.size:
                self._include((missing[0][first[0] == end], missing[1][first[1] == end]))
            begin = end
        if begin < trials.size:
            self._include(self._missing(trials))
            yield begin, trials.size

    def _play(self, engine: Engine, trials: Trials, play: Play) -> tuple[np.ndarray, np.ndarray]:
        if self._has_all(trials.signs.size, trials.scores.shape[1]):
            return play(engine.state.shape, trials, engine.k)
        predictions, table = np.zeros(trials.size, np.int32), np.zeros((trials.size, engine.k))
        if trials.size:
            for begin, end in self._stretches(engine, trials):
                shape, own = self._narrowed(engine, cut(trials, begin, end), self.present)
                predictions[begin:end], table[begin:end] = play(shape, own, engine.k)
        return predictions, table

    def _widened(self, layout: Layout, experts: np.ndarray) -> np.ndarray:
        """Return weights of sub-experts with 0 for those that the learner does not have."""
        if self._has_all(layout.voters, layout.raters):
            return experts
        voters, raters = self.present
        own = voters.size + raters.size
        padded, new = np.zeros(max(own, experts.size)), np.zeros(layout.voters + layout.raters)
        padded[: experts.size] = experts
        new[voters], new[layout.voters + raters] = padded[: voters.size], padded[voters.size : own]
        return np.append(new, padded[own:])

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return {"present_voters": self.present[0], "present_raters": self.present[1]} | self.running.arrays

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._have((arrays["present_voters"].copy(), arrays["present_raters"].copy()))
        self.running.restore({name: array for name, array in arrays.items() if not name.startswith("present_")})

    def move(self, moved: Moved, old: Layout, new: Layout) -> None:
        if (old.voters, old.raters) == (new.voters, new.raters) and self._has_all(old.voters, old.raters):
            return self.running.move(moved)
        before, after = (
            np.concatenate([self.present[0], layout.voters + self.present[1]]).astype(np.int64) for layout in (old, new)
        )

        def narrowed(array: np.ndarray) -> np.ndarray:
            own, first, last = before.size, old.voters + old.raters, new.voters + new.raters
            whole = np.zeros((*array.shape[:-1], array.shape[-1] - own + first), array.dtype)
            whole[..., before], whole[..., first:] = array[..., :own], array[..., own:]
            whole = moved(whole)
            return np.concatenate([whole[..., after], whole[..., last:]], axis=-1)

        return self.running.move(narrowed)

    def play(self, engine: Engine, chunk: Chunk) -> PlayedChunk:
        predictions, table = self._play(engine, chunk.own, self.running.play)
        return PlayedChunk(predictions, np.ones(len(predictions), np.uint8), table)

    def play_one(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray] | None:
        return self._play(engine, trials, self.running.play)

    def judge(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        if self._has_all(trials.signs.size, trials.scores.shape[1]):
            return self.running.judge(engine.state.shape, trials, engine.k)
        present = self.present
        if not self.from_zero:  # those that vote or rate here for the first time count as newcomers
            missing = self._missing(trials)
            new = [own[voted.any(axis=0)] for own, voted in zip(missing, active(trials, missing), strict=True)]
            present = np.append(present[0], new[0]), np.append(present[1], new[1])
        return self.running.judge(*self._narrowed(engine, trials, present), engine.k)

    def watch(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        return self._play(engine, trials, self.running.watch)

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        weights = self._widened(engine.layout, self.running.hypothesis())
        return np.append(weights, np.zeros(engine.state.weights.shape[1] - len(weights))), 0.0

    def shown(self, engine: Engine) -> tuple[np.ndarray, float]:
        voters, raters = (own.size for own in self.present)
        form = self.running.linear_form(replace(engine.layout, voters=voters, raters=raters), engine.k)
        if form is None:
            return self.hypothesis(engine)
        experts, stride = (int(n) for n in engine.state.shape[[EXPERTS, STRIDE]])
        stored = np.zeros(experts + engine.capacity * stride)
        weights = self._widened(engine.layout, form.experts)
        stored[: len(weights)] = weights
        if stride:
            rows = engine.layout.rows
            stored[experts:].reshape(-1, stride)[:rows, : engine.k] = form.rows[:rows]
        return stored, 0.0

    def mix(self, mixture: Mixture) -> None:
        parts = [*mixture.parts, *([] if mixture.base is None else [mixture.base])]
        voters = np.unique(np.concatenate([part.voters[part.state.present[0]] for part in parts]))
        raters = np.unique(np.concatenate([part.raters[part.state.present[1]] for part in parts]))
        self._have((voters, raters))

        def placed(part: Placement) -> Placement:
            own = part.state.present
            return part._replace(
                voters=np.searchsorted(voters, part.voters[own[0]]), raters=np.searchsorted(raters, part.raters[own[1]])
            )

        self.running.mix(mixture.map(placed).of(lambda node: node.running))


def active(trials: Trials, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Return where these voters vote, and where these raters rate classes differently: (trials, columns) each."""
    votes, scores = trials.votes[:, columns[0]], trials.scores[:, columns[1]]
    rated = np.ptp(scores, axis=2) > 0.0 if scores.shape[2] else np.zeros(scores.shape[:2], bool)
    return votes >= 0, rated
