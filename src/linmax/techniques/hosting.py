"""A node with one learner inside that does not play every trial, or not as it comes: the learner has its own engine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.core import averages
from linmax.core.contract import GAUGE, RAW, SHIFT, UNTOUCHED, Trials
from linmax.data.arrays import cut
from linmax.techniques.node import Chunk, Leaf, Node, overwrite

if TYPE_CHECKING:
    from linmax.engine.engine import Engine

__all__ = ["Host"]

LARGEST_LOG = 300.0  # the logarithm of a scale that is still a float, with room to multiply by it


class Host(Node):
    """A node that shows each trial to an engine of its own, if it shows it at all, and predicts with that."""

    unmixable = "no mixture of its states is known"

    def __init__(self, base: Any) -> None:
        self.base = base

    def prepare(self, engine: Engine) -> None:
        self.outer = engine
        self.inner = type(engine)(self.base, engine.layout, engine.k, engine.settings)

    @property
    def engines(self) -> Sequence[Engine]:  # type: ignore[override]
        """The one inside."""
        return (self.inner,)

    @property
    def own(self) -> dict[str, np.ndarray]:
        """The arrays of the node itself."""
        raise NotImplementedError

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return self.own | {f"base.{name}": array for name, array in self.inner.arrays.items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        base = {name.removeprefix("base."): array for name, array in arrays.items() if name.startswith("base.")}
        own = {name: array for name, array in arrays.items() if not name.startswith("base.")}
        overwrite(self.own, own, type(self).__name__.lower())
        made, outer = type(self.outer).restored, self.outer
        self.inner = made(self.base, outer.layout, outer.k, outer.settings, base)

    def hosts(self, experts: bool) -> bool:
        return False

    @property
    def linear(self) -> bool:
        return self.inner.top.linear

    @property
    def from_zero(self) -> bool:  # type: ignore[override]
        """`from_zero` of the learner inside."""
        return self.inner.from_zero

    def grown(self, engine: Engine) -> None:
        self.inner.grow(engine.layout, engine.k)

    def judge(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        return self.inner.top.judge(self.inner, trials)

    def single(self, engine: Engine) -> bool:
        return self.inner.top.single(self.inner)

    def unit(self, engine: Engine) -> float:
        return self.inner.top.unit(self.inner)

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        return self.inner.top.hypothesis(self.inner)

    def shown(self, engine: Engine) -> tuple[np.ndarray, float]:
        return self.inner.top.shown(self.inner)

    def scoring(self, engine: Engine) -> np.ndarray:
        return self.inner.top.scoring(self.inner)

    def taught(self, chunk: Chunk, t: int, label: int) -> bool:
        """Let the learner inside play trial t of the chunk with this label; whether that changed it."""
        one = cut(chunk.trials, chunk.begin + t, chunk.begin + t + 1)
        return bool(self.inner.run(one._replace(labels=np.array([label], np.int32))).changed[0])

    def scale(self) -> float:
        """Return the factor by which scores of `judge` become w.x: of a rule, or of an average, with its true weights.

        Weights that multiply have no scale of their own: theirs is the one at which they add up to 1. Of other learners
        it is that of weights of 2-norm 1, or their own.
        """
        inner, top = self.inner, self.inner.top
        if not isinstance(top, Leaf):
            return 1.0 / top.unit(inner)
        member, averaged = divmod(top.output, 2)
        run, state = inner.runs[member], inner.state
        if averaged:
            anchor = float(state.means[member, averages.ANCHOR]) if run.averaging == RAW else 0.0
            return math.exp(min(anchor, LARGEST_LOG)) / inner.terms(member)
        if run.rule.start > 0.0 and run.rule.spread is not None:
            touched = state.memory[member, 0] != UNTOUCHED
            return 1.0 / float(np.abs(state.weights[member])[touched].sum() or run.rule.start)
        return math.exp(min(float(state.scalars[member, SHIFT] + state.scalars[member, GAUGE]), LARGEST_LOG))
