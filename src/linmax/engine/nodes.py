"""What stands above the members: a tree of nodes that follow, weigh, vote or stack what the members did in a chunk.

A member is one rule with its recycling. Its two *outputs* are its own prediction, number 2 * member, and that of its
average, number 2 * member + 1. `lower` makes the tree of a description and lists the members that it needs.
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
from linmax.core.contract import GAUGE, KNOWN, SHIFT, Instances, Panel, Rule
from linmax.core.member import Scratch
from linmax.data.instances import Layout, cut
from linmax.engine.loop import judge
from linmax.learners import Auto, Whole, silent
from linmax.learners.attributes import SLOTS, AttributeWorker
from linmax.learners.votes import VotesWorker
from linmax.techniques.averaging import SCALES as AVERAGES
from linmax.techniques.averaging import Averaged
from linmax.techniques.combining import WAYS, Combined, Stacked, follow_best, weigh, weights_of
from linmax.techniques.recycling import Recycled
from linmax.techniques.voting import BASIC, SIZE, VOTING, Log, Voted, decide_votes, look, new_ballot, vote_on
from linmax.techniques.voting import SCALES as VOTES

if TYPE_CHECKING:
    from linmax.engine.engine import Engine

__all__ = ["Chunk", "Node", "Run", "Voting", "lower", "overwrite"]


@dataclass
class Run:
    """One member to be: a rule, its recycling and whether its average is wanted."""

    rule: Rule
    recycling: tuple[int, int, int, int]
    averaging: int = 0
    fade: bool = False


NO_RECYCLING = (0, 0, 0, 0)


def lower(learner: Any, runs: list[Run]) -> Node:
    """The node of a description; members it needs are added to ``runs``, and shared where they are the same."""
    if isinstance(learner, Combined):
        children = [lower(member, runs) for member in learner.members]
        return BestOf(children) if learner.how == "best" else Weighing(children, learner)
    if isinstance(learner, Stacked):
        return Stacking([lower(member, runs) for member in learner.members], learner)
    if isinstance(learner, Voted):
        base = lower(learner.base, runs)
        if not base.selects:
            raise ValueError(
                f"vote() needs hypotheses that are weights; {learner.base} has none: vote over its members"
            )
        return Voting(base, learner)
    if isinstance(learner, Whole):
        return Working(learner)
    if isinstance(learner, Auto):
        return Automatic()
    recycling, averaging, fade = NO_RECYCLING, 0, False
    described = learner
    while not isinstance(described, Rule):
        if isinstance(described, Averaged):
            if averaging:
                raise ValueError(f"{learner} averages twice; once is enough")
            averaging, fade = AVERAGES[described.scale], described.fade
        elif isinstance(described, Recycled):
            if recycling != NO_RECYCLING:
                raise ValueError(f"{learner} recycles twice; once is enough")
            if isinstance(described.base, Averaged):
                raise ValueError(f"{learner} recycles an average; average what is recycled instead: AR, not RA")
            recycling = described.numbers
        else:
            raise ValueError(
                f"average() and recycle() work on a rule; apply them to the members of {described} instead"
            )
        described = described.base
    if not described.lifts:
        raise ValueError(
            f"{described} has a fixed threshold and does not lift to many classes; use LinearThreshold, or a rule with "
            "threshold zero such as winnow(1.1)"
        )
    for place, run in enumerate(runs):
        same_average = not averaging or not run.averaging or (run.averaging, run.fade) == (averaging, fade)
        if run.rule == described and run.recycling == recycling and same_average:
            if averaging:
                run.averaging, run.fade = averaging, fade
            return Leaf(2 * place + bool(averaging))
    runs.append(Run(described, recycling, averaging, fade))
    return Leaf(2 * (len(runs) - 1) + bool(averaging))


@dataclass
class Chunk:
    """A stretch of trials and what the members did in it; arrays are indexed from its first trial."""

    instances: Instances
    panel: Panel
    labels: np.ndarray
    scratch: Scratch
    oldest: int
    begin: int
    end: int
    known: int  # classes known before it
    predictions: np.ndarray  # int32 (B, 2, C)
    changes: np.ndarray  # uint8 (B, C)
    tables: np.ndarray  # (B, 2, C, k), or empty
    log: Log
    scored: bool  # whether the scores of the whole are wanted

    @property
    def seen(self) -> np.ndarray:
        """The labels of this chunk."""
        return self.labels[self.begin : self.end]


@dataclass
class Played:
    """What a node did in a chunk. ``before`` and ``after`` name the output it followed, where it followed one."""

    predictions: np.ndarray
    changed: np.ndarray
    scores: np.ndarray | None = None
    before: np.ndarray | None = None
    after: np.ndarray | None = None


def overwrite(own: Mapping[str, np.ndarray], others: Mapping[str, np.ndarray], what: str) -> None:
    """Copy arrays into those of the same names, which must have the same shapes and types."""
    for name in sorted(own.keys() | others.keys()):
        mine, other = own.get(name), others.get(name)
        if mine is None or other is None or mine.shape != other.shape or mine.dtype != other.dtype:
            told = [None if array is None else (array.shape, str(array.dtype)) for array in (mine, other)]
            raise ValueError(f"the state of {what} has {name} as {told[0]}, not {told[1]}; it is another learner's")
        mine[...] = other


class Node:
    """A part of a learner above the members. ``arrays`` is all its state, by name."""

    selects = False  # whether at every trial it follows one output
    wants_scores = False  # of the members, whoever asks
    from_zero = True  # whether a sub-expert that is new changes none of its scores, if it changes none of its members'
    children: Sequence[Node] = ()

    @cached_property
    def leaves(self) -> np.ndarray | None:
        """The outputs of the children, where all of them are leaves."""
        outputs = [child.output for child in self.children if isinstance(child, Leaf)]
        return np.array(outputs, np.int32) if len(outputs) == len(self.children) else None

    @property
    def linear(self) -> bool:
        """Whether its scores are those of its hypothesis, where it has one, up to a factor."""
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
        """The output that it follows now, where it follows one."""
        raise NotImplementedError

    def look(self, engine: Engine, scratch: Scratch, log: Log, instances: Instances, t: int) -> None:
        """Before a trial whose log is the state itself: see what will be gone after it."""

    def renumber(self, order: Sequence[int]) -> None:
        """Class ``order[c]`` is class c from now on (see `Engine.renumber`)."""

    def move(self, moved: Callable[[np.ndarray], np.ndarray]) -> None:
        """The coordinates, the last axis of an array, have new places: ``moved`` puts an array in order."""

    def appear(self, fresh: np.ndarray, k: int) -> None:
        """The coordinates ``fresh`` have come into being, and there are k classes (see `Engine.grow`)."""

    def grown(self, engine: Engine) -> None:
        """The engine has grown."""

    def play(self, engine: Engine, chunk: Chunk) -> Played:
        raise NotImplementedError

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores without learning."""
        raise NotImplementedError

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        """Weights over the coordinates and the logarithm of their scale."""
        raise ValueError("this learner is no single weight vector; look at its members")

    def unit(self, engine: Engine) -> float:
        """How many times as large the scores of `judge` are as those of `play`."""
        return 1.0

    def scoring(self, engine: Engine) -> np.ndarray:
        """The weights that give its scores: its hypothesis at the scale at which it scores."""
        return self.hypothesis(engine)[0]

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
        """Whether it judges instances with further columns as it is: attributes, and voters or raters if ``experts``.

        See `Engine.hosting`.
        """
        return True

    def twin(self) -> Node:
        """A node like this one that may be given other arrays; itself if it has none."""
        if not any(isinstance(node, Voting) for node in self.walk()):
            return self
        other = copy(self)
        other.__dict__.pop("_below", None)
        other.children = [child.twin() for child in self.children]
        return other


class Leaf(Node):
    """One output of one member."""

    selects = True
    passes_scores_on = True

    def __init__(self, output: int) -> None:
        self._output = output

    @property
    def output(self) -> int:
        return self._output

    def asked(self) -> list[int]:
        return [self._output]

    def play(self, engine: Engine, chunk: Chunk) -> Played:
        member, averaged = divmod(self.output, 2)
        changed = np.ones_like(chunk.changes[member]) if averaged else chunk.changes[member]
        chosen = np.full(len(changed), self.output, np.int32)
        scores = chunk.tables[member, averaged] if chunk.tables.size else None
        return Played(chunk.predictions[member, averaged], changed, scores, chosen, chosen)

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        predictions, table = np.zeros(size, np.int32), np.zeros((size, engine.k))
        judge(engine.members, engine.state, engine.scratch(instances), self.output, instances, size, predictions, table)
        return predictions, table / self._unit(engine) if engine.scored else table

    def unit(self, engine: Engine) -> float:
        return 1.0 if engine.scored else self._unit(engine)

    def _unit(self, engine: Engine) -> float:
        """What its scores are divided by when it plays."""
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
        scale = float(state.means[member, averages.ANCHOR]) if kind == AVERAGES["raw"] else 0.0
        return total / engine.terms(member), scale

    def scoring(self, engine: Engine) -> np.ndarray:
        weights, _ = self.hypothesis(engine)
        norm = float(np.linalg.norm(weights))
        return weights / norm if norm > 0.0 else weights


class Working(Node):
    """A learner that is no rule, with all its work and state its own (see `linmax.learners`)."""

    def __init__(self, described: Whole) -> None:
        self.described = described
        self.from_zero = described.from_zero

    def hosts(self, experts: bool) -> bool:
        return self.described.makes_room

    @property
    def linear(self) -> bool:
        return self.described.linear

    def prepare(self, engine: Engine) -> None:
        self.worker = self.described.worker(engine.state.weights.shape[1])

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return self.worker.arrays

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.worker.restore(arrays)

    def renumber(self, order: Sequence[int]) -> None:
        self.worker.renumber(order)

    def move(self, moved: Callable[[np.ndarray], np.ndarray]) -> None:
        self.worker.move(moved)

    def play(self, engine: Engine, chunk: Chunk) -> Played:
        shape = engine.state.shape
        shape[KNOWN] = chunk.known
        played = self.worker.play(shape, chunk.instances, chunk.labels, chunk.begin, chunk.end, engine.k)
        return Played(played[0], np.ones(len(played[0]), np.uint8), played[1])

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        return self.worker.judge(engine.state.shape, instances, size, engine.k)

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        return filled_up(self.worker.hypothesis(), engine), 0.0


def filled_up(weights: np.ndarray, engine: Engine) -> np.ndarray:
    """Weights over all coordinates of the engine; those left out are 0."""
    return np.append(weights, np.zeros(engine.state.weights.shape[1] - len(weights)))


def play_children(parent: Node, engine: Engine, chunk: Chunk) -> Played:
    """What the children did, each array with the child first."""
    outputs = parent.leaves
    if outputs is not None:  # at once: a pool has many
        size = len(chunk.seen)
        predictions = chunk.predictions.reshape(-1, size)[outputs]
        changed = chunk.changes[outputs // 2] | (outputs % 2).astype(np.uint8)[:, None]
        chosen = np.repeat(outputs[:, None], size, axis=1)
        scores = chunk.tables.reshape(-1, size, engine.k)[outputs] if chunk.tables.size else None
        return Played(predictions, changed, scores, chosen, chosen)
    played = [child.play(engine, chunk) for child in parent.children]

    def gathered(name: str) -> Any:
        parts = [getattr(p, name) for p in played]
        return None if any(part is None for part in parts) else np.array(parts)

    return Played(*(gathered(name) for name in ("predictions", "changed", "scores", "before", "after")))


class BestOf(Node):
    """Follow the child with the fewest mistakes so far."""

    def __init__(self, children: Sequence[Node]) -> None:
        self.children = children
        self.selects = all(child.selects for child in children)
        self.mistakes = np.zeros(len(children), np.int64)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return {"mistakes": self.mistakes}

    @property
    def best(self) -> Node:
        """The child that is followed now."""
        return self.children[int(np.argmin(self.mistakes))]

    @property
    def output(self) -> int:
        return self.best.output

    def asked(self) -> list[int]:
        return self.best.asked()

    def play(self, engine: Engine, chunk: Chunk) -> Played:
        played = play_children(self, engine, chunk)
        size = len(chunk.seen)
        predictions, before, after = (np.zeros(size, np.int32) for _ in range(3))
        changed = np.zeros(size, np.uint8)
        follow_best(played.predictions, played.changed, chunk.seen, self.mistakes, predictions, before, after, changed)
        trials = np.arange(size)
        scores = None if played.scores is None else played.scores[before, trials]
        if played.before is None or played.after is None:
            return Played(predictions, changed, scores)
        return Played(predictions, changed, scores, played.before[before, trials], played.after[after, trials])

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        return self.best.judge(engine, instances, size)

    def unit(self, engine: Engine) -> float:
        return self.best.unit(engine)

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        return self.best.hypothesis(engine)

    def scoring(self, engine: Engine) -> np.ndarray:
        return self.best.scoring(engine)


class Weighing(Node):
    """All children vote, or add their scores, with weights that fall with their mistakes.

    The sum of scores, each divided by its size so far, is that of one weight vector.
    """

    passes_scores_on = False

    def __init__(self, children: Sequence[Node], combined: Combined) -> None:
        self.children = children
        self.how, self.beta = WAYS[combined.how], combined.beta
        self.wants_scores = combined.how == "weighted"
        self.mistakes = np.zeros(len(children), np.int64)
        self.squares, self.trials = np.zeros(len(children)), np.zeros(1)  # of the scores (see `weigh`)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return {"mistakes": self.mistakes, "squares": self.squares, "trials": self.trials}

    def _weigh(
        self, engine: Engine, proposals: np.ndarray, scores: Any, labels: np.ndarray, learning: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        size = proposals.shape[1]
        predictions, table = np.zeros(size, np.int32), np.zeros((size, engine.k))
        cube = scores if self.wants_scores else np.zeros((0, 0, 0))
        weigh(
            self.how,
            self.beta,
            proposals,
            cube,
            labels,
            self.mistakes,
            self.squares,
            self.trials,
            engine.state,
            np.zeros(len(proposals)),
            predictions,
            table,
            learning,
        )
        return predictions, table

    def play(self, engine: Engine, chunk: Chunk) -> Played:
        played = play_children(self, engine, chunk)
        engine.state.shape[KNOWN] = chunk.known
        predictions, table = self._weigh(engine, played.predictions, played.scores, chunk.seen, True)
        return Played(predictions, np.ones(len(predictions), np.uint8), table)

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        judged = [child.judge(engine, instances, size) for child in self.children]
        none = np.zeros(0, np.int32)
        proposals, scores = np.array([p for p, _ in judged]), np.array([s for _, s in judged])
        return self._weigh(engine, proposals, scores, none, False)

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        if not self.wants_scores:
            return super().hypothesis(engine)
        factors = np.zeros(len(self.children))
        weights_of(self.how, self.beta, self.mistakes, factors)
        sizes = np.sqrt(self.squares / np.maximum(self.trials, 1.0))
        factors = np.divide(factors, sizes, out=np.zeros_like(factors), where=sizes > 0.0)
        parts = [factor * child.scoring(engine) for factor, child in zip(factors, self.children, strict=True)]
        return np.sum(parts, axis=0), 0.0


class Voting(Node):
    """Saved hypotheses of what the child follows vote with its current one."""

    passes_scores_on = False

    def __init__(self, base: Node, voted: Voted) -> None:
        self.children = [base]
        self.voted = voted
        self.scale = VOTES[voted.scale]

    def prepare(self, engine: Engine) -> None:
        super().prepare(engine)
        self.ballot = new_ballot(self.voted, engine.state.weights.shape[1])
        self.seen = np.zeros(0)  # the child's scores before a trial, see `look`

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return dict(self.ballot._asdict())

    def move(self, moved: Callable[[np.ndarray], np.ndarray]) -> None:
        self.ballot = self.ballot._replace(saved=moved(self.ballot.saved), total=moved(self.ballot.total))

    def appear(self, fresh: np.ndarray, k: int) -> None:
        ballot = self.ballot
        ballot.saved[:, fresh] = ballot.unseen[:, None]
        ballot.total[fresh] = ballot.unseen[: ballot.marks[SIZE]].sum()

    def look(self, engine: Engine, scratch: Scratch, log: Log, instances: Instances, t: int) -> None:
        self.seen = np.zeros(scratch.scores.size)
        output = self.children[0].output
        look(engine.members, engine.state, scratch, log, output, self.scale, instances, t, self.seen)

    def play(self, engine: Engine, chunk: Chunk) -> Played:
        base = self.children[0].play(engine, chunk)
        assert base.before is not None
        assert base.after is not None
        engine.state.shape[KNOWN] = chunk.known
        size = len(base.predictions)
        seen, self.seen = self.seen, np.zeros(0)
        table = np.zeros((size if chunk.scored else 0, engine.k))
        predictions = np.zeros(size, np.int32)
        failed = vote_on(
            chunk.instances,
            chunk.panel,
            chunk.labels,
            engine.state,
            chunk.scratch,
            chunk.log,
            self.ballot,
            self.voted.w,
            self.voted.r,
            self.scale,
            chunk.oldest,
            chunk.begin,
            chunk.end,
            base.before,
            base.after,
            base.changed,
            base.predictions,
            seen,
            predictions,
            table,
        )
        if failed >= 0:
            self.overflowed()
        return Played(predictions, np.ones(size, np.uint8), table if chunk.scored else None)

    def overflowed(self) -> None:
        raise OverflowError(
            f"the raw weights of {self.voted.base} left the range of floats; vote with scale='l2' instead of 'raw'"
        )

    @property
    def trusted(self) -> bool:
        """Whether the vote has made no more mistakes than what it votes over."""
        return bool(self.ballot.marks[VOTING] <= self.ballot.marks[BASIC])

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        if not self.trusted:
            return self.children[0].hypothesis(engine)
        return self.ballot.total + self._current(engine), 0.0

    def scoring(self, engine: Engine) -> np.ndarray:
        current = self._current(engine)
        return (self.ballot.total + current) / (self.ballot.marks[SIZE] + 1.0) if self.trusted else current

    def _current(self, engine: Engine) -> np.ndarray:
        """The child's hypothesis at the scale at which it votes."""
        weights, log_scale = self.children[0].hypothesis(engine)
        if self.voted.scale == "raw":
            return weights * math.exp(log_scale)
        largest = float(np.abs(weights).max(initial=0.0))
        if largest == 0.0:
            return weights
        weights = weights / largest  # whose squares a float can hold
        return np.asarray(weights / np.linalg.norm(weights, 1 if self.voted.scale == "l1" else 2))

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        if self.trusted:
            hypotheses = int(self.ballot.marks[SIZE]) + 1
            predictions, table = engine.rate(instances, size, self.ballot.total + self._current(engine))
            decide_votes(instances, engine.state, hypotheses, self.scale, table, predictions)
            return predictions, table / hypotheses
        predictions, table = self.children[0].judge(engine, instances, size)
        return predictions, engine.rate(instances, size, self._current(engine))[1] if engine.scored else table


class Stacking(Node):
    """The children's scores are the sub-experts of another learner.

    Each child's scores of the known classes are centred, divided by their root mean square over all trials so far (the
    present one included) and turned into shares by softmax: a vote in [0, 1].
    """

    passes_scores_on = False

    wants_scores = True

    def __init__(self, children: Sequence[Node], stacked: Stacked) -> None:
        self.children = children
        self.stacked = stacked
        self.squares = np.zeros(len(children))
        self.trials = np.zeros(1, np.int64)

    def prepare(self, engine: Engine) -> None:
        super().prepare(engine)
        layout = Layout(0, len(self.children), 0, 0, 0.0)
        self.fusion = engine.like(self.stacked.fusion, layout)

    def hosts(self, experts: bool) -> bool:
        return False

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        own = {"squares": self.squares, "trials": self.trials}
        return own | {f"fusion.{name}": array for name, array in self.fusion.arrays.items()}

    def renumber(self, order: Sequence[int]) -> None:
        self.fusion.renumber(order)

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        fusion = {name.removeprefix("fusion."): array for name, array in arrays.items() if name.startswith("fusion.")}
        own = {name: array for name, array in arrays.items() if not name.startswith("fusion.")}
        overwrite({"squares": self.squares, "trials": self.trials}, own, "stacking")
        self.fusion.restore(fusion)

    def appear(self, fresh: np.ndarray, k: int) -> None:
        self.fusion.grow(self.fusion.layout, k)

    def _shares(self, scores: np.ndarray, known: np.ndarray, learning: bool) -> Instances:
        """(children, trials, k) scores as instances for the fusion, ``known`` classes at each trial."""
        size = scores.shape[1]
        counts = np.arange(scores.shape[2]) < known[:, None]
        number = np.maximum(known, 1)[:, None]
        centred = np.where(counts, scores - np.where(counts, scores, 0.0).sum(axis=2, keepdims=True) / number, 0.0)
        squares = (centred**2).sum(axis=2) / number[:, 0]
        if learning:  # one after the other, so that it does not matter how trials are cut into chunks
            sums = np.cumsum(np.concatenate([self.squares[:, None], squares], axis=1), axis=1)
            running = sums[:, 1:] / (self.trials[0] + 1 + np.arange(size))
            self.squares[:] = sums[:, -1]
            self.trials += size
        else:
            running = (self.squares[:, None] + squares) / (self.trials[0] + 1)
        root = np.sqrt(running)[:, :, None]
        exponents = np.divide(centred, root, out=np.zeros_like(centred), where=root > 0.0)
        exponents = np.where(counts, exponents, -np.inf)
        largest = np.where(known > 0, exponents.max(axis=2, initial=-np.inf), 0.0)
        shares = np.where(counts, np.exp(exponents - largest[:, :, None]), 0.0)
        shares /= np.maximum(shares.sum(axis=2, keepdims=True), 1.0)
        return no_instances(size)._replace(scores=np.ascontiguousarray(shares.transpose(1, 0, 2)))

    def play(self, engine: Engine, chunk: Chunk) -> Played:
        scores = play_children(self, engine, chunk).scores
        assert scores is not None
        shares = self._shares(scores, np.maximum.accumulate([chunk.known, *chunk.seen[:-1] + 1]), True)
        table = self.fusion.run(shares, chunk.seen.copy(), scored=len(chunk.seen) if chunk.scored else 0)
        return Played(table.predictions, np.ones(len(table.predictions), np.uint8), table.scores)

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        scores = np.array([child.judge(engine, instances, size)[1] for child in self.children])
        return self.fusion.judge(self._shares(scores, np.full(size, engine.state.shape[KNOWN]), False), size)


class Automatic(Node):
    """A pool for what there is: one for attributes, one for voters and raters, or both.

    With both, the votes of the first one's members are raters beside the others, and the second one decides.
    ``columns`` says what each rater of the second is: a rater of the instances, or -1 - m for member m. They stand in
    the order in which they came.
    """

    from_zero = False
    linear = False

    def hosts(self, experts: bool) -> bool:
        return not experts

    def prepare(self, engine: Engine) -> None:
        self.columns = np.zeros(0, np.int64)
        self.attributes: AttributeWorker | None = None
        self.votes: VotesWorker | None = None
        self._fit(engine)

    def _fit(self, engine: Engine) -> None:
        """Make the parts that the layout needs, or let them grow."""
        layout = engine.layout
        if layout.dense or layout.sparse:
            self.attributes = self.attributes or AttributeWorker()
        raters = np.arange(self.columns[self.columns >= 0].size, layout.raters)
        members = -1 - np.arange(SLOTS)
        if not (layout.voters or layout.raters):
            return
        if self.attributes is None or (self.columns < 0).any():
            members = members[:0]
        self.columns = np.concatenate([self.columns, raters, members])
        self.votes = self.votes or VotesWorker()

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        found = {"columns": self.columns}
        if self.attributes is not None:
            found |= {f"attributes.{name}": array for name, array in self.attributes.arrays.items()}
        if self.votes is not None:
            found |= {f"votes.{name}": array for name, array in self.votes.arrays.items()}
        return found

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        parts: dict[str, dict[str, np.ndarray]] = {"attributes": {}, "votes": {}}
        for name, array in arrays.items():
            part, _, rest = name.partition(".")
            if rest:
                parts[part][rest] = array
        self.columns = arrays["columns"].copy()
        if self.attributes is not None and parts["attributes"]:
            self.attributes.restore(parts["attributes"])
        if self.votes is not None and parts["votes"]:
            self.votes.restore(parts["votes"])

    def grown(self, engine: Engine) -> None:
        self._fit(engine)

    def _fused(self, instances: Instances, begin: int, end: int, votes: np.ndarray | None, k: int) -> Instances:
        """Trials begin..end as the pool for voters and raters sees them, with the votes of the other's members."""
        part = cut(instances, begin, end)
        scores = np.zeros((end - begin, len(self.columns), k if len(self.columns) else 0))
        given = self.columns >= 0
        scores[:, given] = part.scores[:, self.columns[given], :k] if given.any() else 0.0
        if self.attributes is not None and votes is not None and not given.all():
            scores[:, ~given] = self.attributes.in_slots(votes, k)[:, -1 - self.columns[~given]]
        return no_instances(end - begin)._replace(
            votes=part.votes, signs=part.signs, scores=scores, constant=part.constant
        )

    def play(self, engine: Engine, chunk: Chunk) -> Played:
        shape = engine.state.shape
        shape[KNOWN] = chunk.known
        size = chunk.end - chunk.begin
        predictions = silent(shape, np.maximum.accumulate([chunk.known, *chunk.seen[:-1] + 1])[:size])
        table = np.zeros((size, engine.k))
        if self.attributes is None:
            self._vote(engine, chunk, chunk.begin, chunk.end, None, predictions, table)
        else:
            fused = self.attributes.chunks(shape, chunk.instances, chunk.labels, chunk.begin, chunk.end, engine.k)
            for begin, end, classes, scores, votes in fused:
                place = slice(begin - chunk.begin, end - chunk.begin)
                predictions[place], table[place] = classes, scores
                self._vote(engine, chunk, begin, end, votes, predictions, table)
        return Played(predictions, np.ones(size, np.uint8), table)

    def _vote(
        self,
        engine: Engine,
        chunk: Chunk,
        begin: int,
        end: int,
        votes: np.ndarray | None,
        predictions: np.ndarray,
        table: np.ndarray,
    ) -> None:
        """Have the pool for voters and raters decide trials begin..end, if there is one."""
        if self.votes is None:
            return
        fused = self._fused(chunk.instances, begin, end, votes, engine.k)
        place, shape = slice(begin - chunk.begin, end - chunk.begin), engine.state.shape
        shape[KNOWN] = max(chunk.known, int(chunk.labels[chunk.begin : begin].max(initial=-1)) + 1)
        labels = chunk.labels[begin:end]
        predictions[place], table[place] = self.votes.play(shape, fused, labels, 0, end - begin, engine.k)

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        votes, known = None, np.full(size, engine.state.shape[KNOWN])
        predictions, table = silent(engine.state.shape, known), np.zeros((size, engine.k))
        if self.attributes is not None:
            *_, predictions, table, votes = self.attributes.judged(engine.state.shape, instances, size, engine.k)
        if self.votes is not None:
            fused = self._fused(instances, 0, size, votes, engine.k)
            return self.votes.judge(engine.state.shape, fused, size, engine.k)
        return predictions, table

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        """For voters and raters alone: about that of their pool."""
        if self.attributes is not None or self.votes is None:
            return super().hypothesis(engine)
        return filled_up(self.votes.hypothesis(), engine), 0.0


def no_instances(size: int) -> Instances:
    """Instances without sub-experts."""
    none = np.zeros(0, np.int32)
    return Instances(
        np.zeros((size, 0), np.int32),
        np.zeros(0),
        np.zeros((size, 0, 0)),
        np.zeros((size, 0)),
        np.zeros(0, np.int64),
        none,
        np.zeros(0),
        0.0,
    )
