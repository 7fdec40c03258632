"""The node of a learner that is not a rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.core.contract import EXPERTS, STRIDE, Trials
from linmax.learners.base import Description, Mixture, Running
from linmax.techniques.node import Chunk, Node, PlayedChunk

if TYPE_CHECKING:
    from linmax.engine.engine import Engine
    from linmax.learners.attributes.pool import RunningPool

__all__ = ["LearnerNode"]


class LearnerNode(Node):
    """A learner that is not a rule; all its work and state are its own (see `linmax.learners`)."""

    always_changes = True
    running: Running

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
        self.running = self.described.start(engine.state.weights.shape[1])
        self.running.open = self.running.open or engine.settings.candidates
        self.running.meet(engine.layout)

    def grown(self, engine: Engine) -> None:
        self.running.meet(engine.layout)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return self.running.arrays

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.running.restore(arrays)

    def renumber(self, order: Sequence[int]) -> None:
        self.running.renumber(order)

    def move(self, moved: Callable[[np.ndarray], np.ndarray]) -> None:
        self.running.move(moved)

    def play(self, engine: Engine, chunk: Chunk) -> PlayedChunk:
        predictions, table = self.running.play(engine.state.shape, chunk.own, engine.k)
        return PlayedChunk(predictions, np.ones(len(predictions), np.uint8), table)

    def play_one(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray] | None:
        return self.running.play(engine.state.shape, trials, engine.k)

    def judge(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        return self.running.judge(engine.state.shape, trials, engine.k)

    def watch(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        return self.running.watch(engine.state.shape, trials, engine.k)

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        weights = self.running.hypothesis()
        return np.append(weights, np.zeros(engine.state.weights.shape[1] - len(weights))), 0.0

    def shown(self, engine: Engine) -> tuple[np.ndarray, float]:
        form = self.running.linear_form(engine.layout, engine.k)
        if form is None:
            return self.hypothesis(engine)
        experts, stride = (int(n) for n in engine.state.shape[[EXPERTS, STRIDE]])
        stored = np.zeros(experts + engine.capacity * stride)
        stored[: len(form.experts)] = form.experts
        if stride:
            rows = engine.layout.rows
            stored[experts:].reshape(-1, stride)[:rows, : engine.k] = form.rows[:rows]
        return stored, 0.0

    def mix(self, mixture: Mixture) -> None:
        self.running.mix(mixture.of(lambda node: node.running))
