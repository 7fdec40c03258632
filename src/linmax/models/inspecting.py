"""What is inside a model: its weights by name, its members, and the pool that it may be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linmax.core.contract import EXPERTS, STRIDE
from linmax.data.arrays import Layout
from linmax.engine.engine import Engine
from linmax.learners.attributes.pool import RunningPool
from linmax.models.columns import Columns
from linmax.models.weights import WeightArrays, Weights
from linmax.techniques.combining import BestOf, Combined, WeightedCombination
from linmax.techniques.node import Node
from linmax.techniques.voting import Voted

__all__ = ["Inspectable", "Member"]


@dataclass(frozen=True, eq=False)
class Member:
    """One of the learners that a combination runs side by side, and the mistakes that it has made by itself."""

    name: str
    mistakes: int
    model: Inspectable = field(repr=False)
    node: Node = field(repr=False)

    @property
    def weights(self) -> Weights:
        """A copy of the weights that it would predict with now."""
        return self.model.weights_of(self.node)


class Inspectable:
    """The part of a `linmax.models.model.Model` that shows what is inside it."""

    learner: Any
    engine: Engine
    columns: Columns
    classes: list[Any]

    @property
    def layout(self) -> Layout:
        """Numbers of voters, raters and attributes."""
        return self.engine.layout

    @property
    def weights(self) -> Weights:
        """A copy of the weights that it predicts with now, by name, up to one positive factor."""
        return self.weights_of(self.engine.top)

    def weights_of(self, node: Node) -> Weights:
        """The weights of one part of the learner (see `Member`)."""
        stored, log_scale = node.shown(self.engine)
        layout, k = self.layout, len(self.classes)
        experts, stride = (int(n) for n in self.engine.state.shape[[EXPERTS, STRIDE]])
        rows = stored[experts:].reshape(-1, stride)[: layout.rows, :k] if stride else np.zeros((layout.rows, k))
        arrays = WeightArrays(
            stored[: layout.voters].copy(),
            stored[layout.voters : experts].copy(),
            rows[0].copy() if layout.constant else np.zeros(0),
            rows[1:].copy(),
            log_scale,
        )
        return Weights(arrays, self.classes, *self.columns.all(layout))

    @property
    def members(self) -> list[Member]:
        """What a combination, or a vote over one, runs side by side; none for any other learner.

        Examples
        --------
        >>> import linmax
        >>> data = linmax.majority_problem(trials=500, seed=1)
        >>> learner = linmax.combine(["perceptron", "AR-perceptron"])
        >>> trace = linmax.run(learner, linmax.experts(votes=data.votes), data.labels)
        >>> [member.name for member in sorted(trace.model.members, key=lambda member: member.mistakes)]
        ['AR-perceptron', 'perceptron']
        """
        described, node = self.learner, self.engine.top
        while isinstance(described, Voted):
            described, node = described.base, node.children[0]
        if not isinstance(described, Combined) or not isinstance(node, (BestOf, WeightedCombination)):
            return []
        parts = zip(described.members, node.mistakes.tolist(), node.children, strict=True)
        return [Member(str(learner), mistakes, self, child) for learner, mistakes, child in parts]

    @property
    def pool(self) -> RunningPool | None:
        """The pool for attributes at work, if the learner is one."""
        return self.engine.top.pools.get("attributes")
