"""What stands above the members: a tree of nodes that follow, weigh, vote on or stack what the members did.

A *member* is one rule with its recycling. It has two *outputs*: its own prediction, number 2 * member, and that of its
average, number 2 * member + 1. The leaves of the tree are outputs; the nodes above them belong to techniques. The
engine runs every member over a chunk of trials, and then the nodes go over the chunk with what the members did.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.core import averages
from linmax.core.contract import GAUGE, RAW, SHIFT, Instances, Rule
from linmax.core.member import Scratch
from linmax.core.search import Trials
from linmax.techniques.hypothesis_log import Log
from linmax.util.names import Handed

if TYPE_CHECKING:
    from linmax.engine.engine import Engine
    from linmax.learners.attributes.pool import RunningPool
    from linmax.learners.base import Mixture

__all__ = ["NO_RECYCLING", "Chunk", "Leaf", "Node", "PlayedChunk", "Run", "overwrite", "play_children"]

NO_RECYCLING = (0, 0, 0, 0)


@dataclass
class Run:
    """How one member is run: its rule, its recycling, and whether its average is wanted."""

    rule: Rule
    recycling: tuple[int, int, int, int] = NO_RECYCLING
    averaging: int = 0
    fade: bool = False


@dataclass
class Chunk:
    """A stretch of trials and what the members did in it; arrays are indexed from its first trial."""

    trials: Trials
    scratch: Scratch
    begin: int
    end: int
    known: int  # classes known before it
    predictions: np.ndarray  # int32 (B, 2, C)
    changes: np.ndarray  # uint8 (B, C)
    tables: np.ndarray  # (B, 2, C, k), or empty
    log: Log
    scored: bool  # whether the scores of the whole are wanted

    @property
    def instances(self) -> Instances:
        """All instances; those of the chunk are begin..end."""
        return self.trials.instances

    @property
    def labels(self) -> np.ndarray:
        """The labels of all instances."""
        return self.trials.labels

    @property
    def seen(self) -> np.ndarray:
        """The labels of this chunk."""
        return self.labels[self.begin : self.end]


@dataclass
class PlayedChunk:
    """What a node did in a chunk. ``before`` and ``after`` name the output it followed, if it followed one."""

    predictions: np.ndarray
    changed: np.ndarray
    scores: np.ndarray | None = None
    before: np.ndarray | None = None
    after: np.ndarray | None = None


def overwrite(own: Mapping[str, np.ndarray], others: Mapping[str, np.ndarray], what: str) -> None:
    """Copy arrays into those of the same names, which must have the same shapes and types; let go those handed over."""
    for name in sorted(own.keys() | others.keys()):
        mine, other = own.get(name), others.get(name)
        if mine is None or other is None or mine.shape != other.shape or mine.dtype != other.dtype:
            told = [None if array is None else (array.shape, str(array.dtype)) for array in (mine, other)]
            raise ValueError(f"the state of {what} has {name} as {told[0]}, not {told[1]}; it is another learner's")
        mine[...] = other
        if isinstance(others, Handed):
            del others[name], other


class Node:
    """A part of a learner above the members. ``arrays`` is all its state, by name."""

    selects = False  # whether at every trial it follows one output
    wants_scores = False  # whether it needs the scores of the members
    wants_log = False  # whether it needs the hypotheses of the members (`Chunk.log`)
    looks_back = 0  # how many recent instances it needs
    has_weights = False  # whether its arrays have coordinates, so that `move` and `appear` change them
    always_changes = False  # whether every trial counts as an update
    unmixable = "no mixture of its states is known"  # why `mix` is impossible; "" if it is possible
    takes_gaps = False  # whether `play` takes trials without a label, below 0
    weighing: RunningPool | None = None  # what plays trials that count as much as weights say, if anything does
    gives_logarithms = False  # whether its scores are used as logarithms of probabilities
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
        """Whether its scores are those of its hypothesis, if it has one, up to a factor."""
        return all(child.linear for child in self.children)

    @property
    def passes_scores_on(self) -> bool:
        """Whether its own scores are those of members."""
        return any(child.passes_scores_on for child in self.children)

    def prepare(self, engine: Engine) -> None:
        """Make the state before the first trial."""
        for child in self.children:
            child.prepare(engine)

    @property
    def output(self) -> int:
        """The output that it follows now, if it follows one."""
        raise NotImplementedError

    def look(self, engine: Engine, scratch: Scratch, log: Log, instances: Instances, t: int) -> None:
        """Called before a trial whose log is the state itself: note what the trial will overwrite."""

    def renumber(self, order: Sequence[int]) -> None:
        """Rename class ``order[c]`` to c (see `Engine.renumber`)."""

    def know(self, classes: int) -> None:
        """So many classes are known from now on (see `Engine.know`)."""

    def move(self, moved: Callable[[np.ndarray], np.ndarray]) -> None:
        """Put arrays over the coordinates into a new order with ``moved``, which permutes their last axis."""

    def appear(self, fresh: np.ndarray, k: int) -> None:
        """Initialise the new coordinates ``fresh``; there are k classes now (see `Engine.grow`)."""

    def grown(self, engine: Engine) -> None:
        """Called after the engine has grown."""

    def play(self, engine: Engine, chunk: Chunk) -> PlayedChunk:
        """Predict and learn the trials of a chunk, which the members have played."""
        raise NotImplementedError

    def play_one(self, engine: Engine, instances: Instances, label: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Prediction and scores of one trial, which is learned; None where `play` is to do it.

        For a node that has no members below it, without what a chunk costs.
        """
        return None

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores without learning."""
        raise NotImplementedError

    def watch(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores of instances without labels; what can be learned without them is learned."""
        return self.judge(engine, instances, size)

    @property
    def deniable(self) -> RunningPool | None:
        """What learns from a trial that says only that a class is wrong, if anything does (`linmax.models.model`)."""
        return self.weighing

    def single(self, engine: Engine) -> bool:
        """Whether its scores are now those of one weight vector, so that each vote adds to them by itself."""
        try:
            self.hypothesis(engine)
        except ValueError:
            return False
        return self.linear

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        """Weights over the coordinates and the logarithm of their scale."""
        raise ValueError("this learner is not a single weight vector; look at its members")

    def unit(self, engine: Engine) -> float:
        """How many times as large the scores of `judge` are as those of `play`."""
        return 1.0

    def scoring(self, engine: Engine) -> np.ndarray:
        """The weights that give its scores: its hypothesis at the scale of the scores."""
        return self.hypothesis(engine)[0]

    def shown(self, engine: Engine) -> tuple[np.ndarray, float]:
        """Weights to look at, in the form of `hypothesis`; of a pool, the linear form that is near to what it does."""
        return self.hypothesis(engine)

    def mix(self, mixture: Mixture) -> None:
        """Become the mixture of nodes that learned apart: counts add up."""
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
        """Whether it can judge instances with new attributes, and new voters or raters if ``experts``, unchanged.

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

    selects = True
    unmixable = ""
    passes_scores_on = True

    def __init__(self, output: int) -> None:
        self._output = output

    @property
    def output(self) -> int:
        return self._output

    def asked(self) -> list[int]:
        return [self._output]

    def play(self, engine: Engine, chunk: Chunk) -> PlayedChunk:
        member, averaged = divmod(self.output, 2)
        changed = np.ones_like(chunk.changes[member]) if averaged else chunk.changes[member]
        chosen = np.full(len(changed), self.output, np.int32)
        scores = chunk.tables[member, averaged] if chunk.tables.size else None
        return PlayedChunk(chunk.predictions[member, averaged], changed, scores, chosen, chosen)

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        predictions, table = engine.judge_output(self.output, instances, size)
        return predictions, table / self._unit(engine) if engine.scored else table

    def unit(self, engine: Engine) -> float:
        return 1.0 if engine.scored else self._unit(engine)

    def _unit(self, engine: Engine) -> float:
        """The divisor of its scores in `play`."""
        member, averaged = divmod(self.output, 2)
        state, spread = engine.state, int(engine.members.spreads[member])
        scalars, sums = state.scalars[member], state.means[member]
        if not averaged:
            return averages.unit_of(int(engine.tracked), spread, scalars, sums)
        g = averages.term(engine.runs[member].averaging, scalars, sums)
        parts = sums[[averages.SQUARE, averages.CROSS, averages.BACK]]
        square = averages.squared_norm(sums[averages.IDLE] * g, *parts)
        if square < 0.0:  # the sums cancel
            return float(np.linalg.norm(self.hypothesis(engine)[0])) * engine.terms(member) or 1.0
        return math.sqrt(square) or 1.0

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

    def scoring(self, engine: Engine) -> np.ndarray:
        weights, _ = self.hypothesis(engine)
        norm = float(np.linalg.norm(weights))
        return weights / norm if norm > 0.0 else weights


def play_children(parent: Node, engine: Engine, chunk: Chunk) -> PlayedChunk:
    """What the children did: the first axis of each array is the child."""
    outputs = parent.leaves
    if outputs is not None:  # all at once, since a pool has many
        size = len(chunk.seen)
        predictions = chunk.predictions.reshape(-1, size)[outputs]
        changed = chunk.changes[outputs // 2] | (outputs % 2).astype(np.uint8)[:, None]
        chosen = np.broadcast_to(outputs[:, None], (len(outputs), size))
        scores = chunk.tables.reshape(-1, size, engine.k)[outputs] if chunk.tables.size else None
        return PlayedChunk(predictions, changed, scores, chosen, chosen)
    played = [child.play(engine, chunk) for child in parent.children]

    def gathered(name: str) -> Any:
        parts = [getattr(p, name) for p in played]
        return None if any(part is None for part in parts) else np.array(parts)

    return PlayedChunk(*(gathered(name) for name in ("predictions", "changed", "scores", "before", "after")))
