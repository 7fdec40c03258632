"""Learners at work: descriptions are lowered to members (arrays) and a tree of nodes that judge by them.

A member is one rule with its recycling; its *outputs* are its own prediction and, if wanted, that of its average.
Members do not see each other, so each is run over a chunk of trials by itself; combinations and votes then go over the
chunk with what the members left: predictions, scores, and a log of hypotheses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linmax import means
from linmax.contract import (
    GAUGE,
    KNOWN,
    SHIFT,
    SPREAD,
    STEP,
    STRIDE,
    TRIALS,
    Instances,
    Members,
    Panel,
    Rule,
    State,
    address_of,
)
from linmax.instances import Layout, concatenate, cut
from linmax.member import LANES, Scratch, scratch_for
from linmax.playing import judge, judge_by_weights, play, start_means
from linmax.search import fill_panel
from linmax.techniques.averaging import SCALES as AVERAGES
from linmax.techniques.averaging import Averaged
from linmax.techniques.combining import WAYS, Combined, Stacked, follow_best, weigh
from linmax.techniques.recycling import Recycled
from linmax.techniques.voting import BASIC, VOTING, Log, Voted, new_ballot, vote_on
from linmax.techniques.voting import SCALES as VOTES

__all__ = ["Engine"]

MEMORY = 2**26  # bytes that a panel or a log of hypotheses may take; it sets the length of slices and chunks
LONGEST = 4096  # trials in a slice
SMALL = 4096  # ratings of an instance up to which they are written out as a panel


# -- lowering -----------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """One member to be: a rule, its recycling and whether its average is wanted."""

    rule: Rule
    recycling: tuple[int, int, int]
    averaging: int = 0


NO_RECYCLING = (0, 0, 0)


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
    recycling, averaging = NO_RECYCLING, 0
    described = learner
    while not isinstance(described, Rule):
        if isinstance(described, Averaged):
            if averaging:
                raise ValueError(f"{learner} averages twice; once is enough")
            averaging = AVERAGES[described.scale]
        elif isinstance(described, Recycled):
            if recycling != NO_RECYCLING:
                raise ValueError(f"{learner} recycles twice; once is enough")
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
        if run.rule == described and run.recycling == recycling and (not averaging or run.averaging in (0, averaging)):
            run.averaging = averaging or run.averaging
            return Leaf(2 * place + bool(averaging))
    runs.append(Run(described, recycling, averaging))
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
    before: np.ndarray  # scores of the outputs before a one-trial chunk, or empty

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


class Node:
    """A part of a learner above the members. ``arrays`` is all its state, by name."""

    selects = False  # whether at every trial it follows one output
    wants_scores = False
    children: Sequence[Node] = ()

    def prepare(self, engine: Engine) -> None:
        """Make the state before the first trial."""
        for child in self.children:
            child.prepare(engine)

    def play(self, engine: Engine, chunk: Chunk) -> Played:
        raise NotImplementedError

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores without learning."""
        raise NotImplementedError

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        """Weights over the coordinates and the logarithm of their scale."""
        raise ValueError("this learner is no single weight vector; look at its members")

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """The state of this node alone."""
        return {}

    def walk(self) -> list[Node]:
        """This node and all below it."""
        return [self, *(node for child in self.children for node in child.walk())]


class Leaf(Node):
    """One output of one member."""

    selects = True

    def __init__(self, output: int) -> None:
        self.output = output

    def play(self, engine: Engine, chunk: Chunk) -> Played:
        member, averaged = divmod(self.output, 2)
        changed = np.ones_like(chunk.changes[member]) if averaged else chunk.changes[member]
        chosen = np.full(len(changed), self.output, np.int32)
        scores = chunk.tables[member, averaged] if chunk.tables.size else None
        return Played(chunk.predictions[member, averaged], changed, scores, chosen, chosen)

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        predictions, table = np.zeros(size, np.int32), np.zeros((size, engine.k))
        judge(engine.members, engine.state, engine.scratch(instances), self.output, instances, size, predictions, table)
        weights, _ = self.hypothesis(engine)
        norm = float(np.linalg.norm(weights))
        if self.output % 2:
            norm *= engine.terms(self.output // 2)
        return predictions, table / norm if norm > 0.0 and engine.scored else table

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        member, averaged = divmod(self.output, 2)
        state = engine.state
        scalars, weights = state.scalars[member], state.weights[member]
        if not averaged:
            return weights.copy(), float(scalars[SHIFT] + scalars[GAUGE])
        total = state.means[member, means.WEIGHT] * weights - state.backlog[member]
        scale = float(scalars[SHIFT]) if engine.runs[member].averaging == AVERAGES["raw"] else 0.0
        return total / engine.terms(member), scale


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

    def play(self, engine: Engine, chunk: Chunk) -> Played:
        played = [child.play(engine, chunk) for child in self.children]
        size = len(chunk.seen)
        predictions, before, after = (np.zeros(size, np.int32) for _ in range(3))
        changed = np.zeros(size, np.uint8)
        follow_best(
            np.array([p.predictions for p in played]),
            np.array([p.changed for p in played]),
            chunk.seen,
            self.mistakes,
            predictions,
            before,
            after,
            changed,
        )
        trials = np.arange(size)
        scores = None
        if all(p.scores is not None for p in played):
            scores = np.array([p.scores for p in played])[before, trials]
        if not self.selects:
            return Played(predictions, changed, scores)
        outputs_before = np.array([p.before for p in played])[before, trials]
        outputs_after = np.array([p.after for p in played])[after, trials]
        return Played(predictions, changed, scores, outputs_before, outputs_after)

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        return self.best.judge(engine, instances, size)

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        return self.best.hypothesis(engine)


class Weighing(Node):
    """All children vote, or add their scores, with weights that fall with their mistakes."""

    def __init__(self, children: Sequence[Node], combined: Combined) -> None:
        self.children = children
        self.how, self.beta = WAYS[combined.how], combined.beta
        self.wants_scores = combined.how == "weighted"
        self.mistakes = np.zeros(len(children), np.int64)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return {"mistakes": self.mistakes}

    def _weigh(
        self, engine: Engine, proposals: list[np.ndarray], scores: list[Any], labels: np.ndarray, learning: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        size = len(proposals[0])
        predictions, table = np.zeros(size, np.int32), np.zeros((size, engine.k))
        cube = np.array(scores) if self.wants_scores else np.zeros((0, 0, 0))
        weigh(
            self.how,
            self.beta,
            np.array(proposals),
            cube,
            labels,
            self.mistakes,
            engine.state,
            np.zeros(len(proposals)),
            predictions,
            table,
            learning,
        )
        return predictions, table

    def play(self, engine: Engine, chunk: Chunk) -> Played:
        played = [child.play(engine, chunk) for child in self.children]
        engine.state.shape[KNOWN] = chunk.known
        proposals, scores = [p.predictions for p in played], [p.scores for p in played]
        predictions, table = self._weigh(engine, proposals, scores, chunk.seen, True)
        return Played(predictions, np.ones(len(predictions), np.uint8), table)

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        judged = [child.judge(engine, instances, size) for child in self.children]
        none = np.zeros(0, np.int32)
        return self._weigh(engine, [p for p, _ in judged], [s for _, s in judged], none, False)


class Voting(Node):
    """Saved hypotheses of what the child follows vote with its current one."""

    def __init__(self, base: Node, voted: Voted) -> None:
        self.children = [base]
        self.voted = voted
        self.scale = VOTES[voted.scale]

    def prepare(self, engine: Engine) -> None:
        super().prepare(engine)
        self.ballot = new_ballot(self.voted, engine.state.weights.shape[1])

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return dict(self.ballot._asdict())

    def play(self, engine: Engine, chunk: Chunk) -> Played:
        base = self.children[0].play(engine, chunk)
        assert base.before is not None
        assert base.after is not None
        engine.state.shape[KNOWN] = chunk.known
        size = len(base.predictions)
        one_version = chunk.log.weights.shape[1] == 1
        table = np.zeros((size if chunk.tables.size else 0, engine.k))
        if one_version:
            table = np.zeros((1, chunk.before.shape[1]))
            table[0] = chunk.before[base.before[0]]
        predictions = np.zeros(size, np.int32)
        vote_on(
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
            predictions,
            table,
        )
        return Played(predictions, np.ones(size, np.uint8), table[:, : engine.k] if chunk.tables.size else None)

    @property
    def trusted(self) -> bool:
        """Whether the vote has made no more mistakes than what it votes over."""
        return bool(self.ballot.marks[VOTING] <= self.ballot.marks[BASIC])

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        weights, log_scale = self.children[0].hypothesis(engine)
        if not self.trusted:
            return weights, log_scale
        if self.voted.scale == "raw":
            size = math.exp(-log_scale)
        else:
            size = float(np.linalg.norm(weights, 1 if self.voted.scale == "l1" else 2))
        return self.ballot.total + (weights / size if size > 0.0 else weights), 0.0

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        if not self.trusted:
            return self.children[0].judge(engine, instances, size)
        predictions, table = np.zeros(size, np.int32), np.zeros((size, engine.k))
        weights, scratch = self.hypothesis(engine)[0], engine.scratch(instances)
        judge_by_weights(engine.state, scratch, instances, weights, size, predictions, table)
        return predictions, table


class Stacking(Node):
    """The children's scores are the sub-experts of another learner.

    Each child's k scores are centred, divided by their root mean square over all trials so far (the present one
    included) and turned into shares by softmax: a vote in [0, 1].
    """

    wants_scores = True

    def __init__(self, children: Sequence[Node], stacked: Stacked) -> None:
        self.children = children
        self.stacked = stacked
        self.squares = np.zeros(len(children))
        self.trials = np.zeros(1, np.int64)

    def prepare(self, engine: Engine) -> None:
        super().prepare(engine)
        layout = Layout(0, len(self.children), 0, 0, 0.0)
        self.fusion = Engine(self.stacked.fusion, layout, engine.k, engine.settings)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        own = {"squares": self.squares, "trials": self.trials}
        return own | {f"fusion.{name}": array for name, array in self.fusion.arrays.items()}

    def _shares(self, scores: np.ndarray, learning: bool) -> Instances:
        """(children, trials, k) scores as instances for the fusion."""
        centred = scores - scores.mean(axis=2, keepdims=True)
        squares = (centred**2).mean(axis=2)
        trials = int(self.trials[0]) + 1 + (np.arange(scores.shape[1]) if learning else np.zeros(scores.shape[1], int))
        if learning:
            running = (self.squares[:, None] + np.cumsum(squares, axis=1)) / trials
            self.squares += squares.sum(axis=1)
            self.trials += scores.shape[1]
        else:
            running = (self.squares[:, None] + squares) / trials
        root = np.sqrt(running)[:, :, None]
        exponents = np.divide(centred, root, out=np.zeros_like(centred), where=root > 0.0)
        shares = np.exp(exponents - exponents.max(axis=2, keepdims=True))
        shares /= shares.sum(axis=2, keepdims=True)
        return no_instances(scores.shape[1])._replace(scores=np.ascontiguousarray(shares.transpose(1, 0, 2)))

    def play(self, engine: Engine, chunk: Chunk) -> Played:
        scores = np.array([child.play(engine, chunk).scores for child in self.children])
        shares = self._shares(scores, True)
        table = self.fusion.run(shares, chunk.seen.copy(), scored=bool(chunk.tables.size))
        return Played(table.predictions, np.ones(len(table.predictions), np.uint8), table.scores)

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        scores = np.array([child.judge(engine, instances, size)[1] for child in self.children])
        return self.fusion.judge(self._shares(scores, False), size)


# -- the engine ---------------------------------------------------------------------------------------------------


def most_touched(instances: Instances) -> int:
    """Most coordinates that a z can touch."""
    longest = int(np.diff(instances.indptr).max(initial=0)) if instances.indptr.size else 0
    return instances.signs.size + instances.scores.shape[1] + 2 * (1 + instances.dense.shape[1] + longest)


def largest_rating(instances: Instances) -> float:
    """Largest magnitude of any rating."""
    blocks = [instances.signs, instances.scores, instances.dense, instances.values]
    return max([abs(instances.constant), *(float(np.abs(block).max()) for block in blocks if block.size)])


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


def stride_for(classes: int) -> int:
    """Classes a row of weights has room for: whole vectors, so that rows start at cache lines."""
    if classes <= 2:
        return classes
    return 4 if classes <= 4 else -(-classes // 8) * 8


def aligned(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    """Zeros that start at a cache line."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    offset = -raw.ctypes.data % 64
    return raw[offset : offset + size].view(dtype).reshape(shape)


NO_PANEL = Panel(np.zeros(0, np.int8), np.zeros(0, np.float32), 0.0)


@dataclass(frozen=True)
class Settings:
    """How ties are broken, whether they update, and whether classes are discovered."""

    largest: bool = False
    update_on_tie: bool = True
    discover: bool = False


@dataclass
class Outcome:
    """What an engine did: class indices, whether any member changed, margins and scores where asked for."""

    predictions: np.ndarray
    changed: np.ndarray
    margins: np.ndarray | None
    scores: np.ndarray | None


class Engine:
    """A learner over a fixed layout of coordinates, in class indices. All its state is in `arrays`."""

    def __init__(self, learner: Any, layout: Layout, k: int, settings: Settings) -> None:
        self.learner, self.layout, self.k, self.settings = learner, layout, k, settings
        self.runs: list[Run] = []
        self.top = lower(learner, self.runs)
        nodes = self.top.walk()
        self.logged = any(isinstance(node, Voting) for node in nodes)
        self.scored = any(node.wants_scores for node in nodes)
        recent = [node.voted.r for node in nodes if isinstance(node, Voting)]
        self.memory = max([run.recycling[0] for run in self.runs] + recent)
        self.tracked = self.logged or self.scored or any(run.averaging for run in self.runs)
        self.members = self._members()
        self.state = self._first_state()
        for member in range(len(self.runs)):
            start_means(self.members, self.state, member)
        self.top.prepare(self)
        self.tail: Instances | None = None
        self.tail_labels = np.zeros(0, np.int32)
        self.tail_uses = np.zeros((len(self.runs), 0), np.int32)

    def _members(self) -> Members:
        runs = self.runs
        params = np.zeros((len(runs), max(len(run.rule.values) for run in runs)))
        for member, run in enumerate(runs):
            params[member, : len(run.rule.values)] = run.rule.values
        return Members(
            np.array([address_of(run.rule.step, STEP) for run in runs], np.int64),
            np.array([address_of(run.rule.spread, SPREAD) for run in runs], np.int64),
            np.array([run.rule.everywhere for run in runs], np.int64),
            params,
            np.array([run.recycling for run in runs], np.int64),
            np.array([run.averaging for run in runs], np.int64),
        )

    def _first_state(self) -> State:
        stride = stride_for(self.k)
        experts, rows = self.layout.voters + self.layout.raters, self.layout.rows
        size = experts + rows * stride
        exists = np.concatenate([np.ones(experts, bool), np.tile(np.arange(stride) < self.k, rows)])
        if not self.layout.constant:  # the row of the constant is kept, but its coordinates do not exist
            exists[experts : experts + stride] = False
        count = len(self.runs)
        weights = aligned(count, size)
        memory = np.full((count, max(len(run.rule.slots) for run in self.runs), size), np.nan)
        scalars = np.zeros((count, max(len(run.rule.first_scalars(0)) for run in self.runs)))
        for member, run in enumerate(self.runs):
            weights[member, exists] = run.rule.start
            for slot, value in enumerate(run.rule.slots):
                memory[member, slot, exists] = value
            first = run.rule.first_scalars(int(exists.sum()))
            scalars[member, : len(first)] = first
        averages = any(run.averaging for run in self.runs)
        settings = self.settings
        known = 0 if settings.discover else self.k
        shape = np.array([experts, stride, known, settings.largest, settings.update_on_tie], np.int64)
        return State(
            weights,
            memory,
            scalars,
            np.zeros((count, size if averages else 0)),
            np.zeros((count, 6)),
            np.zeros((count, 3), np.int64),
            shape,
        )

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All state by name: members, nodes, and the recent instances with their uses."""
        found = {f"state.{name}": array for name, array in self.state._asdict().items()}
        for place, node in enumerate(self.top.walk()):
            found |= {f"node{place}.{name}": array for name, array in node.arrays.items()}
        if self.tail is not None:
            found |= {f"tail.{name}": np.asarray(array) for name, array in self.tail._asdict().items()}
            found |= {"tail_labels": self.tail_labels, "tail_uses": self.tail_uses}
        return found

    def terms(self, member: int) -> int:
        """Hypotheses in the member's average: one for each trial played, and the present one."""
        return int(self.state.counts[member, TRIALS]) + 1

    def scratch(self, instances: Instances) -> Scratch:
        """Room for the kernels to work in."""
        everywhere = any(run.rule.everywhere for run in self.runs)
        rows = self.k if self._small else 0
        return scratch_for(
            self.state, everywhere, instances.scores.shape[2], most_touched(instances), rows, self.logged
        )

    def judge(self, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores without learning."""
        return self.top.judge(self, instances, size)

    def run(self, instances: Instances, labels: np.ndarray, margins: bool = False, scored: bool = False) -> Outcome:
        """Play the trials."""
        size = len(labels)
        outcome = Outcome(
            np.zeros(size, np.int32),
            np.zeros(size, np.uint8),
            np.zeros(size) if margins else None,
            np.zeros((size, self.k)) if scored else None,
        )
        room = max(1, MEMORY // (8 * self.k * self.state.weights.shape[1]))
        step = size if not self.memory else min(LONGEST, room) if self._small else LONGEST
        for begin in range(0, size, max(1, step)):
            end = min(size, begin + step)
            self._slice(cut(instances, begin, end) if step < size else instances, labels[begin:end], begin, outcome)
        return outcome

    @property
    def _small(self) -> bool:
        """Whether instances are written out as a panel: few ratings each, and something that looks at them often."""
        looks = self.memory or any(run.averaging for run in self.runs)
        small = self.k >= 2 and self.k * self.state.weights.shape[1] <= SMALL
        return bool(looks and small and not self.settings.discover)

    def _slice(self, instances: Instances, labels: np.ndarray, origin: int, outcome: Outcome) -> None:
        offset = 0
        if self.memory and self.tail is not None:
            offset = len(self.tail_labels)
            instances = concatenate(self.tail, instances)
            labels = np.concatenate([self.tail_labels, labels])
        size = len(labels)
        uses = np.zeros((len(self.runs), size if self.memory else 0), np.int32)
        if self.memory:
            uses[:, :offset] = self.tail_uses
        panel = self._panel(instances, size)
        if outcome.margins is not None:
            panel = NO_PANEL  # which passes over what it need not look at
        if panel.codes.size or panel.ratings.size:
            fill_panel(instances, labels, self.state, panel)
        step = self._chunk_length(size - offset)
        for begin in range(offset, size, max(1, step)):
            self._chunk(instances, panel, labels, begin, min(size, begin + step), uses, origin - offset, outcome)
        if self.memory:
            keep = min(self.memory, size)
            self.tail = cut(instances, size - keep, size)
            self.tail_labels = labels[size - keep :].copy()
            self.tail_uses = uses[:, size - keep :].copy()

    def _panel(self, instances: Instances, size: int) -> Panel:
        """Room for a panel of these instances, or none."""
        largest = largest_rating(instances) if self._small else np.inf
        if largest > 1e30:  # single precision would overflow
            return NO_PANEL
        places = -(-size // LANES) * self.state.weights.shape[1] * LANES
        voters_only = self.layout.raters + self.layout.dense + self.layout.sparse == 0
        if voters_only and instances.constant in (0.0, 1.0) and (instances.signs == 1.0).all() and self.k < 128:
            return Panel(aligned(places, dtype=np.int8), NO_PANEL.ratings, largest)
        return Panel(NO_PANEL.codes, aligned(places * self.k, dtype=np.float32), largest)

    def _chunk_length(self, size: int) -> int:
        """Trials of which hypotheses and scores are kept at a time; 1 when they are too large to be copied."""
        if not (self.logged or self.scored):
            return size
        weights = 2 * self.state.weights.size if self.logged else 0
        scores = 2 * len(self.runs) * self.k if self.scored else 0
        room = MEMORY // (8 * (weights + scores))
        return int(min(size, 256, room)) if room >= 8 else 1

    def _chunk(
        self,
        instances: Instances,
        panel: Panel,
        labels: np.ndarray,
        begin: int,
        end: int,
        uses: np.ndarray,
        shift: int,
        outcome: Outcome,
    ) -> None:
        """Run every member over begin..end, then the nodes. ``shift`` + trial is its place in the outcome."""
        count, size = len(self.runs), end - begin
        known = int(self.state.shape[KNOWN])
        log = self._log(size)
        width = max(int(self.state.shape[STRIDE]), instances.scores.shape[2])
        predictions = np.zeros((count, 2, size), np.int32)
        changes = np.zeros((count, size), np.uint8)
        scored = self.scored or outcome.scores is not None
        tables = np.zeros((count, 2, size, self.k) if scored else (0, 0, 0, 0))
        before = np.zeros((0, width))
        one_version = self.logged and log.weights.shape[1] == 1
        if one_version:
            before = self._scores_before(cut(instances, begin, end), width)
        # The log's `tables` of a member: an empty cube when no scores are wanted.
        kept = np.zeros(len(labels) if outcome.margins is not None else 0)
        scratch = self.scratch(instances)
        for member in range(count):
            self.state.shape[KNOWN] = known
            failed = play(
                self.members,
                self.state,
                scratch,
                member,
                instances,
                panel,
                labels,
                0,
                begin,
                end,
                int(self.tracked),
                uses,
                predictions[member],
                changes[member],
                kept if member == 0 else kept[:0],
                log,
                tables[member] if scored else np.zeros((0, 0, 0)),
            )
            if failed >= 0:
                raise OverflowError(
                    f"the weights of {self.runs[member].rule} left the range of floats at trial {failed + shift}; "
                    "scale the instances down, or use a rule that keeps logarithms, such as winnow or balanced_winnow"
                )
        after = int(self.state.shape[KNOWN])
        chunk = Chunk(
            instances, panel, labels, scratch, 0, begin, end, known, predictions, changes, tables, log, before
        )
        played = self.top.play(self, chunk)
        self.state.shape[KNOWN] = after
        place = slice(begin + shift, end + shift)
        outcome.predictions[place] = played.predictions
        outcome.changed[place] = changes.any(axis=0)
        if outcome.margins is not None:
            outcome.margins[place] = kept[begin:end]
        if outcome.scores is not None:
            assert played.scores is not None
            outcome.scores[place] = played.scores

    def _log(self, size: int) -> Log:
        count, coordinates = self.state.weights.shape
        if not self.logged:
            return Log(np.zeros((0, 0, 0)), np.zeros((0, 0, 0)), np.zeros((0, 0, 8)), np.zeros((0, 0), np.int32))
        versions = np.zeros((count, size), np.int32)
        if size == 1 and self._chunk_length(1) == 1 and self._chunk_length(8) == 1:
            numbers = np.zeros((count, 1, 8))
            weights = self.state.weights.reshape(count, 1, coordinates)
            return Log(weights, self.state.backlog.reshape(count, 1, -1), numbers, versions)
        room = (count, size + 1, coordinates)
        return Log(
            np.zeros(room), np.zeros((*room[:2], self.state.backlog.shape[1])), np.zeros((count, size + 1, 8)), versions
        )

    def _scores_before(self, instance: Instances, width: int) -> np.ndarray:
        """Each output's scores of one instance at voting scale, before the trial."""
        rows = np.zeros((2 * len(self.runs), width))
        scale = next(node.voted.scale for node in self.top.walk() if isinstance(node, Voting))
        for output in range(len(rows)):
            if output % 2 and not self.runs[output // 2].averaging:
                continue
            predictions, table = np.zeros(1, np.int32), np.zeros((1, self.k))
            judge(self.members, self.state, self.scratch(instance), output, instance, 1, predictions, table)
            rows[output, : self.k] = table[0] / self._size(output, scale)
        return rows

    def _size(self, output: int, scale: str) -> float:
        """What an output's hypothesis (for an average: its sum) is divided by before it votes."""
        member, averaged = divmod(output, 2)
        sums, scalars = self.state.means[member], self.state.scalars[member]
        weight = sums[means.WEIGHT]
        if scale == "raw":
            return (self.terms(member) if averaged else 1.0) * math.exp(-(scalars[SHIFT] + scalars[GAUGE]))
        if scale == "l2":
            square = sums[means.SQUARE]
            if averaged:
                square = max(0.0, weight**2 * square - 2.0 * weight * sums[means.CROSS] + sums[means.BACK])
            return math.sqrt(square) or 1.0
        weights = self.state.weights[member]
        return float(np.abs(weight * weights - self.state.backlog[member] if averaged else weights).sum()) or 1.0
