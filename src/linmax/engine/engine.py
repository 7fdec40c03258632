"""Learners at work: an engine plays instances, slice by slice and chunk by chunk, through members and nodes.

Members do not see each other, so each is run over a chunk of trials by itself; combinations and votes then go over the
chunk with what the members left: predictions, scores, and a log of hypotheses. A slice is what is written out as a
panel and carries the recent instances over. Neither length changes any result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from linmax.core import averages
from linmax.core.contract import (
    EXPERTS,
    KNOWN,
    SPREAD,
    STEP,
    STRIDE,
    TRIALS,
    UPDATES,
    Instances,
    Members,
    Panel,
    State,
)
from linmax.core.linear_max import longest_row
from linmax.core.member import LANES, Scratch, scratch_for
from linmax.core.rivals import RIVALS, presenting
from linmax.core.search import fill_panel
from linmax.data.instances import Layout, concatenate, cut, widen
from linmax.engine.loop import (
    FIRST_MASS,
    FIRST_SLOT,
    FIRST_START,
    FIRST_THICKNESS,
    MANY,
    appear,
    judge_by_weights,
    play_all,
    start_means,
)
from linmax.engine.nodes import Automatic, Chunk, Leaf, Run, Voting, Working, lower, overwrite
from linmax.engine.straight import play_straight
from linmax.jit.compiling import address_of
from linmax.techniques.voting import NUMBERS, Log

__all__ = ["Engine", "Settings"]

MEMORY = 2**26  # bytes that a panel or a log of hypotheses may take; it sets the length of slices and chunks
LONGEST = 4096  # trials in a slice
SMALL = 4096  # ratings of an instance up to which they are written out as a panel


def most_touched(instances: Instances) -> int:
    """Most coordinates that a z can touch."""
    attributes = 1 + instances.dense.shape[1] + longest_row(instances.indptr)
    return instances.signs.size + instances.scores.shape[1] + 2 * attributes


def largest_rating(instances: Instances) -> float:
    """Largest magnitude of any rating."""
    blocks = [instances.signs, instances.scores, instances.dense, instances.values]
    return max([abs(instances.constant), *(float(np.abs(block).max()) for block in blocks if block.size)])


def stride_for(classes: int) -> int:
    """Classes a row of weights has room for: whole vectors, so that rows start at cache lines."""
    if classes <= 2:
        return classes
    return 4 if classes <= 4 else -(-classes // 8) * 8


def appearing(old: Layout, old_k: int, new: Layout, k: int, stride: int) -> np.ndarray:
    """The coordinates, in the new numbering, that come into being."""
    voters, raters = np.arange(old.voters, new.voters), np.arange(new.voters + old.raters, new.voters + new.raters)
    constant = [0] if new.constant else []  # its row is kept all the same, but its coordinates do not exist
    dense, sparse = 1 + old.dense, 1 + new.dense + old.sparse
    rows = np.concatenate([np.arange(dense, 1 + new.dense), np.arange(sparse, 1 + new.dense + new.sparse)])
    first = new.voters + new.raters
    table = (first + rows * stride)[:, None] + np.arange(k)
    if k == old_k:
        return np.concatenate([voters, raters, table.ravel()]).astype(np.int64)
    kept = np.concatenate([constant, np.arange(1, dense), np.arange(1 + new.dense, sparse)])
    classes = (first + kept * stride)[:, None] + np.arange(old_k, k)
    return np.concatenate([voters, raters, table.ravel(), classes.ravel()]).astype(np.int64)


def coordinates(old: Layout, old_stride: int, old_rows: int, new: Layout, stride: int) -> np.ndarray | slice:
    """The new coordinate of each old one; a slice where none moves."""
    if (old.voters, old.raters, old.dense, old_stride) == (new.voters, new.raters, new.dense, stride):
        return slice(0, old.voters + old.raters + old_rows * stride)
    rows = np.arange(old_rows)
    rows[1 + old.dense :] += new.dense - old.dense  # sparse attributes come after dense ones
    table = (new.voters + new.raters + rows * stride)[:, None] + np.arange(old_stride)
    raters = new.voters + np.arange(old.raters)
    return np.concatenate([np.arange(old.voters), raters, table.ravel()])


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
    scores: np.ndarray | None  # of the last trials

    def part(self, begin: int, end: int) -> Outcome:
        """That of trials begin..end, all of them scored or none; it is written to the same arrays."""
        first = len(self.predictions) - (0 if self.scores is None else len(self.scores))
        return Outcome(
            self.predictions[begin:end],
            self.changed[begin:end],
            None if self.margins is None else self.margins[begin:end],
            None if self.scores is None or begin < first else self.scores[begin - first : end - first],
        )


class Engine:
    """A learner over a fixed layout of coordinates, in class indices. All its state is in `arrays`."""

    def __init__(
        self,
        learner: Any,
        layout: Layout,
        k: int,
        settings: Settings,
        scored: bool = False,
        capacity: int = 0,
        begin: bool = True,
    ) -> None:
        self.learner, self.layout, self.k, self.settings = learner, layout, k, settings
        self.runs: list[Run] = []
        self.top = lower(learner, self.runs)
        nodes = self.top.walk()
        self.logged = any(isinstance(node, Voting) for node in nodes)
        self.scored = scored or any(node.wants_scores for node in nodes)
        recent = [node.voted.r for node in nodes if isinstance(node, Voting)]
        self.memory = max([run.recycling[0] for run in self.runs] + recent, default=0)
        self.averages = any(run.averaging for run in self.runs)
        self.everywhere = any(run.rule.everywhere for run in self.runs)
        self.tracked = self.logged or self.scored or self.averages
        self.working = any(isinstance(node, (Automatic, Working)) for node in nodes)
        self.members = self._members()
        self.state = self._first_state(max(capacity, layout.rows))
        for member, run in enumerate(self.runs):
            self.state.means[member, [averages.START, averages.FADE]] = run.rule.start, run.fade
            if self.tracked and begin:  # not where a state is to be taken over
                start_means(self.members, self.state, member)
        self.top.prepare(self)
        self.tail: Instances | None = None
        self.tail_labels = np.zeros(0, np.int32)
        self.tail_uses = np.zeros((len(self.runs), 0), np.int32)

    def _members(self) -> Members:
        runs = self.runs
        params = np.zeros((len(runs), max((len(run.rule.values) for run in runs), default=0)))
        for member, run in enumerate(runs):
            params[member, : len(run.rule.values)] = run.rule.values
        return Members(
            np.array([address_of(run.rule.step, STEP) for run in runs], np.int64),
            np.array([address_of(run.rule.spread, SPREAD) for run in runs], np.int64),
            np.array([run.rule.everywhere for run in runs], np.int64),
            np.array([run.rule.gain for run in runs], np.int64),
            np.array([RIVALS[run.rule.rivals] for run in runs], np.int64),
            np.array([presenting(run.rule) for run in runs], np.int64),
            params,
            np.array([run.recycling for run in runs], np.int64).reshape(-1, 4),
            np.array([run.averaging for run in runs], np.int64),
        )

    def _first_state(self, rows: int) -> State:
        stride, experts = stride_for(self.k), self.layout.voters + self.layout.raters
        size = experts + rows * stride
        absent = int(self.layout.rows > 0 and not self.layout.constant)  # its row is kept, but has no coordinates
        count = len(self.runs)
        weights = aligned(count, size)
        memory = aligned(count, max((run.rule.rows_of_memory(size) for run in self.runs), default=0), size)
        table = memory[:, :, experts:].reshape(*memory.shape[:2], rows, stride)
        for part in (table[..., self.k :], table[:, :, :absent], table[:, :, self.layout.rows :]):
            part[...] = np.nan

        def fill(row: np.ndarray, value: float) -> None:
            if value != 0.0:  # fresh memory is not touched before a trial needs it
                row[:experts] = value
                row[experts:].reshape(rows, stride)[absent : self.layout.rows, : self.k] = value

        scalars = np.zeros((count, max((len(run.rule.first_scalars(0)) for run in self.runs), default=0)))
        for member, run in enumerate(self.runs):
            fill(weights[member], run.rule.start)
            for slot, value in enumerate(run.rule.slots):
                fill(memory[member, slot], value)
            memory[member, len(run.rule.slots) :] = np.nan
            if run.rule.matrix:
                nothing = Layout(0, 0, 0, 0, self.layout.constant)
                run.rule.fill(memory[member], appearing(nothing, 0, self.layout, self.k, stride))
            first = run.rule.first_scalars(experts + (self.layout.rows - absent) * self.k)
            scalars[member, : len(first)] = first
        settings = self.settings
        known = 0 if settings.discover else self.k
        shape = np.array([experts, stride, known, settings.largest, settings.update_on_tie], np.int64)
        return State(
            weights,
            memory,
            scalars,
            np.zeros((count, size if self.averages else 0)),
            np.zeros((count, averages.NUMBERS)),
            np.zeros((max(1, count), 5), np.int64),
            shape,
        )

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All state by name: members, nodes, and the recent instances with their uses."""
        found = {f"state.{name}": array for name, array in self.state._asdict().items()}
        for place, node in enumerate(self.top.walk()):
            found |= {f"node{place}.{name}": array for name, array in node.arrays.items()}
        if self.tail is not None:
            found |= {f"tail.{name}": np.atleast_1d(array) for name, array in self.tail._asdict().items()}
            found |= {"tail.labels": self.tail_labels, "tail.uses": self.tail_uses}
        return found

    @classmethod
    def restored(
        cls, learner: Any, layout: Layout, k: int, settings: Settings, arrays: Mapping[str, np.ndarray]
    ) -> Engine:
        """An engine that goes on where another one's `arrays` were taken; they are copied."""
        stride, shape = stride_for(k), arrays["state.weights"].shape
        rows = (shape[-1] - layout.voters - layout.raters) // stride if stride else 0
        engine = cls(learner, layout, k, settings, capacity=rows, begin=False)
        engine.restore(arrays)
        return engine

    @classmethod
    def shown(
        cls, learner: Any, layout: Layout, k: int, settings: Settings, arrays: Mapping[str, np.ndarray]
    ) -> Engine:
        """An engine to be looked at only: its state is another one's `arrays` themselves, which may be read-only."""
        engine = cls(learner, Layout(0, 0, 0, 0, layout.constant), 0, settings, begin=False)
        engine.layout, engine.k = layout, k
        engine.restore(arrays, copied=False)
        return engine

    def restore(self, arrays: Mapping[str, np.ndarray], copied: bool = True) -> None:
        """Take over the state of an engine of the same learner, layout and classes."""
        parts: dict[str, dict[str, np.ndarray]] = {}
        for name, array in arrays.items():
            part, _, rest = name.partition(".")
            parts.setdefault(part, {})[rest] = array
        state = parts.pop("state", {})
        if copied:
            overwrite(self.state._asdict(), state, str(self.learner))
        else:
            self.state = State(**state)
        for place, node in enumerate(self.top.walk()):
            node.restore(parts.pop(f"node{place}", {}))
        tail = parts.pop("tail", None) if self.memory else None
        if tail is not None:
            blocks = {name: tail[name].copy() for name in Instances._fields if name != "constant"}
            self.tail = Instances(**blocks, constant=float(tail["constant"][0]))
            self.tail_labels, self.tail_uses = tail["labels"].copy(), tail["uses"].copy()
        if parts:
            raise ValueError(f"{sorted(parts)[0]!r} is no part of {self.learner}")

    def like(self, learner: Any, layout: Layout) -> Engine:
        """Another engine with these classes and settings, one that gives scores."""
        return Engine(learner, layout, self.k, self.settings, scored=True)

    def terms(self, member: int) -> int:
        """What the terms of the member's average add up to: one for each trial played, and the present one."""
        count = int(self.state.counts[member, TRIALS]) + 1
        return count * (count + 1) // 2 if self.runs[member].fade else count

    def scratch(self, instances: Instances) -> Scratch:
        """Room for the kernels to work in."""
        rows = self.k if self.small else 0
        return scratch_for(
            self.state, self.everywhere, instances.scores.shape[2], most_touched(instances), rows, self.logged
        )

    def renumber(self, order: Sequence[int]) -> None:
        """Class ``order[c]`` is class c from now on. Only classes not yet known may move: they have no weights yet."""
        place = np.append(np.argsort(order), -1).astype(np.int32)
        if self.tail is not None:
            scores = self.tail.scores[:, :, order] if self.tail.scores.size else self.tail.scores
            self.tail = self.tail._replace(votes=place[self.tail.votes], scores=np.ascontiguousarray(scores))
        for node in self.top.walk():
            node.renumber(order)

    def grow(self, layout: Layout, k: int) -> None:
        """Make room for further columns, at the right of each block, and for further classes, not yet known.

        A new coordinate is one that has always been there and was never touched: it has the rule's first weight, in
        the averages and in the saved hypotheses as well (Mesterharm 2001, section 6.1).
        """
        old = self.layout
        experts = layout.voters + layout.raters
        wider = k > self.state.shape[STRIDE] or layout.rows > self.capacity
        if wider or experts > old.voters + old.raters or layout.dense > old.dense:
            rows = self.capacity
            room = rows if layout.rows <= rows else max(layout.rows, rows + rows // 2)
            self._move(layout, max(int(self.state.shape[STRIDE]), stride_for(k)), room, range(len(self.runs)))
        self._appear(layout, k, range(len(self.runs)))
        self.layout, self.k = layout, k
        if self.tail is not None:
            self.tail = widen(self.tail, layout, k)
        for node in self.top.walk():
            node.grown(self)

    @property
    def from_zero(self) -> bool:
        """Whether a sub-expert that is new changes no score."""
        return all(run.rule.start == 0.0 for run in self.runs) and all(node.from_zero for node in self.top.walk())

    def hosting(self, layout: Layout) -> Engine:
        """An engine to judge instances with further columns by; this one stays as it is.

        It has the state of those members only that are asked, or is a copy where nodes have to grow themselves.
        """
        experts = layout.voters + layout.raters > self.layout.voters + self.layout.raters
        if not all(node.hosts(experts) for node in self.top.walk()):
            grown = deepcopy(self)
            grown.grow(layout, self.k)
            return grown
        asked = sorted({output // 2 for output in self.top.asked()})
        host = copy(self)
        host.top = self.top.twin()
        scalars, sums, shape = (array.copy() for array in (self.state.scalars, self.state.means, self.state.shape))
        host.state = self.state._replace(scalars=scalars, means=sums, shape=shape)
        host._move(layout, int(shape[STRIDE]), max(self.capacity, layout.rows), asked)
        host._appear(layout, self.k, asked)
        host.layout = layout
        return host

    def _move(self, layout: Layout, stride: int, rows: int, which: Sequence[int]) -> None:
        """Put the coordinates of the members ``which`` where they are to be; others have none any more."""
        state, old = self.state, self.layout
        experts = layout.voters + layout.raters
        places = coordinates(old, int(state.shape[STRIDE]), self.capacity, layout, stride)

        def moved(array: np.ndarray, filling: float = 0.0, parts: Sequence[int] | None = None) -> np.ndarray:
            target = aligned(*array.shape[:-1], experts + rows * stride)
            for part in range(len(array)) if parts is None else parts:
                if filling != 0.0:
                    target[part] = filling
                target[part][..., places] = array[part]
            return target

        memory = moved(state.memory, np.nan, which)
        self.state = state._replace(
            weights=moved(state.weights, 0.0, which),
            memory=self._moved_memory(memory, places),
            backlog=moved(state.backlog, 0.0, which) if self.averages else state.backlog,
        )
        for node in self.top.walk():
            node.move(lambda array: moved(array) if array.ndim > 1 else moved(array[None])[0])
        state.shape[[EXPERTS, STRIDE]] = experts, stride

    def _moved_memory(self, memory: np.ndarray, places: np.ndarray | slice) -> np.ndarray:
        """The rows of matrices go where their columns have gone."""
        size = memory.shape[2]
        rows = max((run.rule.rows_of_memory(size) for run in self.runs), default=0)
        if not any(run.rule.matrix for run in self.runs):
            return memory
        places = np.arange(size)[places]
        target = np.full((len(self.runs), rows, size), np.nan)
        places = np.arange(places.stop) if isinstance(places, slice) else places
        for member, run in enumerate(self.runs):
            slots = len(run.rule.slots)
            target[member, :slots] = memory[member, :slots]
            if run.rule.matrix:
                target[member, slots + places] = memory[member, slots : slots + len(places)]
        return target

    @property
    def capacity(self) -> int:
        """Rows of the linear machine that there is room for."""
        experts, stride = self.state.shape[[EXPERTS, STRIDE]]
        return int((self.state.weights.shape[1] - experts) // stride) if stride else 0

    def _appear(self, layout: Layout, k: int, which: Sequence[int]) -> None:
        """Coordinates that a layout and further classes bring come into being for the members ``which``."""
        fresh = np.zeros(0, np.int64)
        if self.runs:
            fresh = appearing(self.layout, self.k, layout, k, int(self.state.shape[STRIDE]))
            appear(self.members, self.state, self._firsts, fresh, np.array(which, np.int64))
        for member in which:
            if self.runs[member].rule.matrix:
                self.runs[member].rule.fill(self.state.memory[member], fresh)
        for node in self.top.walk():
            node.appear(fresh, k)

    @cached_property
    def _firsts(self) -> np.ndarray:
        """What each rule gives a coordinate that comes into being (see `linmax.engine.loop.appear`)."""
        table = np.full(
            (len(self.runs), FIRST_SLOT + max((len(run.rule.slots) for run in self.runs), default=0)), np.nan
        )
        for row, run in zip(table, self.runs, strict=True):
            row[[FIRST_START, FIRST_MASS, FIRST_THICKNESS]] = run.rule.start, run.rule.mass, run.rule.thickness
            row[FIRST_SLOT : FIRST_SLOT + len(run.rule.slots)] = run.rule.slots
        return table

    def judge(self, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores without learning."""
        return self.top.judge(self, instances, size)

    def rate(self, instances: Instances, size: int, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores of these weights."""
        predictions, table = np.zeros(size, np.int32), np.zeros((size, self.k))
        judge_by_weights(self.state, self.scratch(instances), instances, weights, size, predictions, table)
        return predictions, table

    def run(self, instances: Instances, labels: np.ndarray, margins: bool = False, scored: int = 0) -> Outcome:
        """Play the trials, and keep the scores of the last ``scored`` ones, as they were before the labels."""
        size = len(labels)
        scored = min(size, scored)
        outcome = Outcome(
            np.zeros(size, np.int32),
            np.zeros(size, np.uint8),
            np.zeros(size) if margins else None,
            np.zeros((scored, self.k)) if scored else None,
        )
        if self.plain:
            self._straight(instances, labels, outcome)
            return outcome
        edges = sorted({0, size - scored, size})
        for first, last in pairwise(edges):
            part = outcome.part(first, last)
            self._slices(cut(instances, first, last) if last - first < size else instances, labels[first:last], part)
        return outcome

    def _slices(self, instances: Instances, labels: np.ndarray, outcome: Outcome) -> None:
        size = len(labels)
        step = self.slice_length(size)
        for begin in range(0, size, max(1, step)):
            end = min(size, begin + step)
            self._slice(cut(instances, begin, end) if step < size else instances, labels[begin:end], begin, outcome)

    def slice_length(self, size: int) -> int:
        """Trials that are written out as a panel at a time."""
        room = max(1, MEMORY // (8 * max(1, self.k * self.state.weights.shape[1])))
        return min(LONGEST, room) if self.small else LONGEST if self.memory else size

    @property
    def plain(self) -> bool:
        """Whether there is one rule and nothing else."""
        if not isinstance(self.top, Leaf):
            return False
        rule = self.runs[0].rule
        techniques = self.memory or self.tracked or rule.everywhere or rule.rivals != "best"
        return isinstance(self.top, Leaf) and not techniques

    def _straight(self, instances: Instances, labels: np.ndarray, outcome: Outcome) -> None:
        """Play a rule without techniques."""
        margins = np.zeros(0) if outcome.margins is None else outcome.margins
        failed = play_straight(
            self.members,
            self.state,
            self.scratch(instances),
            instances,
            labels,
            outcome.predictions,
            outcome.changed,
            margins,
            np.zeros((0, self.k)) if outcome.scores is None else outcome.scores,
        )
        if failed >= 0:
            self.overflowed(0, failed)

    def overflowed(self, member: int, trial: int) -> None:
        raise OverflowError(
            f"the weights of {self.runs[member].rule} left the range of floats at trial {trial}; scale the instances "
            "down, or use a rule that keeps logarithms, such as winnow or balanced_winnow"
        )

    @property
    def small(self) -> bool:
        """Whether instances are written out as a panel: few ratings each, and something that looks at them often."""
        looks = self.memory or self.averages
        small = self.k >= 2 and self.k * self.state.weights.shape[1] <= SMALL
        return bool(looks and small and self.state.shape[KNOWN] == self.k)

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
        panel = NO_PANEL
        if self.small and outcome.margins is None:  # a panel passes over what need not be looked at
            ones = instances.constant in (0.0, 1.0) and bool((instances.signs == 1.0).all())
            panel = self.panel(size, largest_rating(instances), ones)
        if panel.codes.size or panel.ratings.size:
            fill_panel(instances, labels, self.state, panel)
        step = self.chunk_length(size - offset)
        for begin in range(offset, size, max(1, step)):
            self._chunk(instances, panel, labels, begin, min(size, begin + step), uses, origin - offset, outcome)
        if self.memory:
            keep = min(self.memory, size)
            # Joined with nothing it is a copy: the arrays may be a user's, who may write over them.
            self.tail = concatenate(cut(instances, size - keep, size), cut(instances, size, size))
            self.tail_labels = labels[size - keep :].copy()
            self.tail_uses = uses[:, size - keep :].copy()

    def panel(self, size: int, largest: float, ones: bool) -> Panel:
        """Room for a panel of instances with ratings up to ``largest``, or none; ``ones`` if voters rate 1."""
        if not self.small or not 1e-30 < largest < 1e30:  # too small or too large for single precision
            return NO_PANEL
        places = -(-size // LANES) * self.state.weights.shape[1] * LANES
        voters_only = self.layout.raters + self.layout.dense + self.layout.sparse == 0
        if voters_only and ones and self.k < 128:
            return Panel(aligned(places, dtype=np.int8), NO_PANEL.ratings, largest)
        return Panel(NO_PANEL.codes, aligned(places * self.k, dtype=np.float32), largest)

    def chunk_length(self, size: int) -> int:
        """Trials of which hypotheses and scores are kept at a time; 1 when they are too large to be copied."""
        if not (self.logged or self.scored):
            return size
        weights = 2 * self.state.weights.size if self.logged else 0
        scores = 2 * len(self.runs) * self.k if self.scored else 0
        room = MEMORY // (8 * max(1, weights + scores))
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
        predictions = np.zeros((count, 2, size), np.int32)
        changes = np.zeros((count, size), np.uint8)
        scored = self.scored or outcome.scores is not None
        passed_on = self.scored or (scored and self.top.passes_scores_on)
        tables = np.zeros((count, 2, size, self.k) if passed_on else (count, 0, 0, 0))
        kept = np.zeros(len(labels) if outcome.margins is not None else 0)
        scratch = self.scratch(instances)
        if log.weights.shape[1] == 1:
            for node in self.top.walk():
                node.look(self, scratch, log, instances, begin)
        chunk = Chunk(
            instances, panel, labels, scratch, 0, begin, end, known, predictions, changes, tables, log, scored
        )
        if self.runs:
            failed = self.play_members(chunk, uses, kept)
            if failed >= 0:
                self.overflowed(failed // MANY, failed % MANY + shift)
        after = max(known, int(labels[begin:end].max(initial=-1)) + 1)
        played = self.top.play(self, chunk)
        if not self.runs:
            self.state.counts[0, [TRIALS, UPDATES]] += size
        self.state.shape[KNOWN] = after
        place = slice(begin + shift, end + shift)
        outcome.predictions[place] = played.predictions
        outcome.changed[place] = changes.any(axis=0) | self.working
        if outcome.margins is not None:
            outcome.margins[place] = kept[begin:end]
        if outcome.scores is not None:
            assert played.scores is not None
            outcome.scores[place] = played.scores

    def play_members(self, chunk: Chunk, uses: np.ndarray, margins: np.ndarray) -> int:
        """Run every member over the chunk (see `linmax.engine.loop.play_all`)."""
        return int(
            play_all(
                self.members, self.state, chunk.scratch, chunk.instances, chunk.panel, chunk.labels, chunk.begin,
                chunk.end, int(self.tracked), uses, chunk.predictions, chunk.changes, margins, chunk.log, chunk.tables,
            )
        )  # fmt: skip

    def state_log(self) -> Log:
        """A log of one trial that is the state itself, or none."""
        count, coordinates = self.state.weights.shape
        if not self.logged:
            return Log(np.zeros((0, 0, 0)), np.zeros((0, 0, 0)), np.zeros((0, 0, NUMBERS)), np.zeros((0, 0), np.int32))
        weights, backlog = self.state.weights.reshape(count, 1, coordinates), self.state.backlog.reshape(count, 1, -1)
        return Log(weights, backlog, np.zeros((count, 1, NUMBERS)), np.zeros((count, 1), np.int32))

    def _log(self, size: int) -> Log:
        """Room for the hypotheses of a chunk."""
        count, coordinates = self.state.weights.shape
        if not self.logged or (size == 1 and self.chunk_length(1) == 1 and self.chunk_length(8) == 1):
            return self.state_log()
        versions = np.zeros((count, size), np.int32)
        room = (count, size + 1, coordinates)
        backlog, numbers = np.zeros((*room[:2], self.state.backlog.shape[1])), np.zeros((*room[:2], NUMBERS))
        return Log(np.zeros(room), backlog, numbers, versions)
