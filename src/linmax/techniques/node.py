"""Nodes above the members: a tree of nodes that follow, weigh, vote on or stack what the members did.

A *member* is one rule with its recycling. It has two *outputs*: its own prediction, number 2 * member, and that of its
average, number 2 * member + 1. The leaves of the tree are outputs; the nodes above them belong to techniques.

A node is compiled if it has a `part`: it then takes turns with the members (see `linmax.engine.bench`). Others play a
chunk of trials in Python, after the nodes below them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.core import averages
from linmax.core.contract import GAUGE, RAW, SHIFT, UNTOUCHED, Rule, Trials
from linmax.data.arrays import Layout, cut
from linmax.util.parts import Handed

if TYPE_CHECKING:
    from linmax.engine.bench import Bench
    from linmax.engine.engine import Engine
    from linmax.learners.attributes.pool import RunningPool
    from linmax.learners.base import Mixture

__all__ = ["NO_RECYCLING", "Chunk", "Leaf", "Node", "PlayedChunk", "Run", "Turn", "overwrite", "play_children"]

NO_RECYCLING = (0, 0, 0, 0)


@dataclass
class Run:
    """Settings of one member: its rule, its recycling, and whether its average is wanted."""

    rule: Rule
    recycling: tuple[int, int, int, int] = NO_RECYCLING
    averaging: int = 0
    fade: bool = False


@dataclass
class Turn:
    """A part of a learner that takes turns: a struct, and kernels over it.

    ``play(part, begin, end)`` plays trials and returns -1, or the trial where weights left the range of floats. Before
    the members play a trial ``look(part, t, 0)`` may look at it. ``predict(part, t, which)`` returns the class of an
    instance, learns nothing, and leaves scores in ``part.scores``.
    """

    part: Any
    play: Any
    predict: Any
    look: Any = None
    which: int = 0


@dataclass
class Chunk:
    """A stretch of trials, which compiled parts have played."""

    trials: Trials  # all of them; those of the chunk are begin..end
    begin: int
    end: int
    scored: int  # the scores of how many trials, the last ones, are wanted
    bench: Bench
    ran: set[int] = field(default_factory=set)  # the rows of those parts

    @property
    def seen(self) -> np.ndarray:
        """The labels of this chunk."""
        return self.trials.labels[self.begin : self.end]

    @property
    def own(self) -> Trials:
        """The trials of this chunk."""
        return cut(self.trials, self.begin, self.end)


@dataclass
class PlayedChunk:
    """Results of a node in a chunk."""

    predictions: np.ndarray
    changed: np.ndarray
    scores: np.ndarray | None = None


def overwrite(own: Mapping[str, np.ndarray], others: Mapping[str, np.ndarray], what: str) -> None:
    """Copy arrays into those of the same names, which must have the same shapes and types; let go those handed over."""
    for name in sorted(own.keys() | others.keys()):
        mine, other = own.get(name), others.get(name)
        if mine is None or other is None or mine.shape != other.shape or mine.dtype != other.dtype:
            found = [None if array is None else (array.shape, str(array.dtype)) for array in (mine, other)]
            raise ValueError(f"the state of {what} has {name} as {found[0]}, not {found[1]}; it is another learner's")
        mine[...] = other
        if isinstance(others, Handed):
            del others[name], other


class Node:
    """A part of a learner above the members. ``arrays`` is all its state, by name."""

    selects = False  # whether at every trial it follows one output
    wants_scores = False  # whether it needs the scores of the members
    needs_norms = False  # whether it needs the 2-norms of the members' weights
    row = -1  # of what it did among that of all (`linmax.core.contract.Played`)
    looks_back = 0  # how many recent instances it needs
    has_weights = False  # whether its arrays have coordinates, so that `move` and `appear` change them
    always_changes = False  # whether every trial counts as an update
    unmixable = "no mixture of its states is known"  # why `mix` is impossible; "" if it is possible
    takes_gaps = False  # whether `play` takes trials without a label, below 0
    takes_denied = False  # whether `play` takes labels of -2 - c, "not class c"
    weighing: RunningPool | None = None  # the pool for attributes, where it decides
    gives_logarithms = False  # whether its scores are used as logarithms of probabilities
    gives_probabilities = False  # whether these are its probabilities, without calibration
    pools: Mapping[str, Any] = {}  # the pools at work, for "attributes" and for "votes"
    from_zero = True  # whether a new sub-expert leaves its scores as they are, if it leaves those of the members
    children: Sequence[Node] = ()
    engines: Sequence[Engine] = ()  # those that it runs by itself
    shows = True  # whether these see the instances as they come
    passes_attributes_over: str = ""  # what it is called, if it learns from votes and scores only
    learns_attributes = False  # whether it learns from attributes without members

    @cached_property
    def leaves(self) -> np.ndarray | None:
        """The outputs of the children, if all of them are leaves."""
        outputs = [child.output for child in self.children if isinstance(child, Leaf)]
        return np.array(outputs, np.int32) if len(outputs) == len(self.children) else None

    @property
    def linear(self) -> bool:
        """True if its scores are those of its hypothesis, if it has one, up to a factor."""
        return all(child.linear for child in self.children)

    @property
    def passes_scores_on(self) -> bool:
        """True if its own scores are those of members."""
        return any(child.passes_scores_on for child in self.children)

    def prepare(self, engine: Engine) -> None:
        """Make the state before the first trial."""
        for child in self.children:
            child.prepare(engine)

    @property
    def output(self) -> int:
        """The output that it follows now, if it follows one."""
        raise NotImplementedError

    def move(self, moved: Callable[[np.ndarray], np.ndarray], old: Layout, new: Layout) -> None:
        """Put arrays over the coordinates of a layout into the order of another; ``moved`` permutes their last axis."""

    def appear(self, fresh: np.ndarray, k: int) -> None:
        """Initialise the new coordinates ``fresh``; there are k classes now (see `Engine.grow`)."""

    def grown(self, engine: Engine) -> None:
        """Called after the engine has grown."""

    def part(self, bench: Bench) -> Turn | None:
        """The compiled part that does its work, made after those of its children; None if Python does it."""
        return None

    def begin(self, bench: Bench) -> None:
        """Prepare its part for the trials to come."""

    def ready(self, bench: Bench) -> None:
        """Prepare its part to predict without learning."""

    def play(self, engine: Engine, chunk: Chunk) -> PlayedChunk:
        """Predict and learn the trials of a chunk, which compiled parts below have played."""
        if self.row not in chunk.ran:
            for child in self.children:
                if child.row not in chunk.ran:
                    chunk.bench.write(child.row, child.play(engine, chunk), chunk)
            chunk.bench.run([self], chunk)
        return self.played(chunk)

    def played(self, chunk: Chunk) -> PlayedChunk:
        """Results of its compiled part in a chunk."""
        found, place = chunk.bench.played, slice(chunk.begin, chunk.end)
        scores = found.tables[self.row, max(0, chunk.begin - found.scored) :] if found.tables.shape[1] else None
        return PlayedChunk(found.predictions[self.row, place], found.changed[self.row, place], scores)

    def play_one(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray] | None:
        """Prediction and scores of one trial, which is learned; None where `play` is to do it.

        For a node that has no members below it, without what a chunk costs.
        """
        return None

    def judge(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores without learning."""
        raise NotImplementedError

    def watch(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores of instances without labels; what can be learned without them is learned."""
        return self.judge(engine, trials)

    def single(self, engine: Engine) -> bool:
        """Return whether its scores are now those of one weight vector, so that each vote adds to them by itself."""
        try:
            self.hypothesis(engine)
        except ValueError:
            return False
        return self.linear

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        """Weights over the coordinates and the logarithm of their scale."""
        raise ValueError("this learner is not a single weight vector; look at its members")

    def unit(self, engine: Engine) -> float:
        """Return the ratio of the scores of `judge` to those of `play`."""
        return 1.0

    def scoring(self, engine: Engine) -> np.ndarray:
        """The weights that give its scores: its hypothesis at the scale of the scores."""
        return self.hypothesis(engine)[0]

    def shown(self, engine: Engine) -> tuple[np.ndarray, float]:
        """Weights to look at, in the form of `hypothesis`; of a pool, the linear form that is near to what it does."""
        return self.hypothesis(engine)

    def mix(self, mixture: Mixture) -> None:
        """Become the mixture of nodes that learned separately: counts add up."""
        for name, array in self.arrays.items():
            array[...] = sum(sign * part.state.arrays[name] for part, sign in mixture.counted)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The state of this node alone."""
        return {}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over the `arrays` of another node of the same description."""
        overwrite(self.arrays, arrays, type(self).__name__.lower())

    def walk(self) -> list[Node]:
        """This node and all below it."""
        return self._below

    @cached_property
    def _below(self) -> list[Node]:
        return [self, *(node for child in self.children for node in child.walk())]

    def asked(self) -> list[int]:
        """The outputs that it would ask to `judge` an instance now."""
        return [output for child in self.children for output in child.asked()]

    def hosts(self, experts: bool) -> bool:
        """Return whether it can judge instances with new attributes, and with new voters or raters if ``experts``.

        See `Engine.hosting`.
        """
        return True

    def twin(self) -> Node:
        """A copy whose arrays over coordinates may be replaced; the node itself if it has none."""
        if not any(node.has_weights for node in self.walk()):
            return self
        other = copy(self)
        other.__dict__.pop("_below", None)
        other.children = [child.twin() for child in self.children]
        return other


class Leaf(Node):
    """One output of one member."""

    takes_gaps = True
    selects = True
    unmixable = ""
    passes_scores_on = True

    def __init__(self, output: int) -> None:
        self.row = output

    @property
    def output(self) -> int:
        return self.row

    def asked(self) -> list[int]:
        return [self.row]

    def judge(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        predictions, table = engine.judge_output(self.output, trials)
        return predictions, table / self._unit(engine) if engine.scored else table

    def unit(self, engine: Engine) -> float:
        return 1.0 if engine.scored else self._unit(engine)

    def _unit(self, engine: Engine) -> float:
        """The divisor of its scores in `play`."""
        member, averaged = divmod(self.output, 2)
        state, spread = engine.state, int(engine.runs[member].rule.spread is not None)
        scalars, sums = state.scalars[member], state.means[member]
        if not averaged:
            return averages.unit_of(int(engine.tracked), spread, scalars, sums)
        g = averages.term(engine.runs[member].averaging, scalars, sums)
        parts = sums[[averages.SQUARE, averages.CROSS, averages.BACK]]
        square = averages.squared_norm(sums[averages.IDLE] * g, *parts)
        if square < 0.0:  # the sums cancel
            return self._norm(engine, self.hypothesis(engine)[0]) * engine.terms(member) or 1.0
        multiple = averages.multiple(engine.runs[member].averaging, scalars, sums)
        return math.sqrt(square) or averages.untouched_sum(multiple, sums) or 1.0

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        member, averaged = divmod(self.output, 2)
        state = engine.state
        scalars, weights = state.scalars[member], state.weights[member]
        if not averaged:
            return weights.copy(), float(scalars[SHIFT] + scalars[GAUGE])
        kind = engine.runs[member].averaging
        total = averages.multiple(kind, scalars, state.means[member]) * weights - state.backlog[member]
        scale = float(state.means[member, averages.ANCHOR]) if kind == RAW else 0.0
        return total / engine.terms(member), scale

    def _norm(self, engine: Engine, weights: np.ndarray) -> float:
        """The 2-norm of weights over the coordinates that updates have touched (see `linmax.core.averages`)."""
        member = self.output // 2
        if not engine.runs[member].rule.marks:
            return float(np.linalg.norm(weights))
        touched = engine.state.memory[member, 0] != UNTOUCHED
        return float(np.linalg.norm(weights[touched])) or float(abs(weights).max(initial=0.0))

    def scoring(self, engine: Engine) -> np.ndarray:
        weights, _ = self.hypothesis(engine)
        norm = self._norm(engine, weights)
        return weights / norm if norm > 0.0 else weights


def play_children(parent: Node, engine: Engine, chunk: Chunk) -> PlayedChunk:
    """Return the results of the children: the first axis of each array is the child."""
    played = [child.play(engine, chunk) for child in parent.children]

    def gathered(name: str) -> Any:
        parts = [getattr(p, name) for p in played]
        return None if any(part is None for part in parts) else np.array(parts)

    return PlayedChunk(*(gathered(name) for name in ("predictions", "changed", "scores")))
