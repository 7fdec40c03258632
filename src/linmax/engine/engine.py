"""The engine: the state of a learner, and the trials that it plays, slice by slice and chunk by chunk.

Members do not see each other, so each plays a chunk of trials by itself; the nodes above them then go over the chunk
with the predictions, the scores and the log of hypotheses that the members left. A slice is the stretch of trials that
is written out as a panel, after the recent instances of the slice before. Neither length changes any result.

The rest of the engine: `linmax.engine.lowering` (from descriptions to members and nodes), `first_state` and `growth`
(the arrays), `loop` and `plain_loop` (the kernels), `one_trial` (one trial at a time, without Python in between).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from linmax.core import averages
from linmax.core.contract import EXPERTS, KNOWN, STRIDE, TRIALS, UPDATES, Instances, Panel, Rule
from linmax.core.member import LANES, EngineArrays, Scratch, scratch_for
from linmax.core.search import Trials, fill_panel
from linmax.data.arrays import Layout, concatenate, cut
from linmax.engine.coordinates import largest_rating, most_touched, stride_for
from linmax.engine.first_state import first_state, members_of
from linmax.engine.gaps import play_around_gaps
from linmax.engine.growth import first_values, grow, hosting, refuse_attributes
from linmax.engine.loop import MANY, Outputs, judge, judge_by_weights, play_all, start_means
from linmax.engine.lowering import lower
from linmax.engine.outcome import Outcome
from linmax.engine.plain_loop import PlainOutputs, play_plain
from linmax.engine.settings import Settings, settings_of
from linmax.engine.stored import arrays_of, take_over
from linmax.engine.written import NO_LOG, NO_PANEL, new_log, new_panel, state_log
from linmax.techniques.hypothesis_log import Log
from linmax.techniques.node import Chunk, Leaf

__all__ = ["NO_PANEL", "Engine", "Outcome", "Settings", "settings_of"]

MEMORY = 2**26  # bytes that a panel or a log of hypotheses may take; it sets the length of slices and chunks
LONGEST_SLICE = 4096  # trials in a slice
SMALL = 4096  # ratings of an instance up to which a panel pays
SMALL_WITH_ATTRIBUTES = 128  # the same where most ratings are 0: an attribute rates one class, in each class's row


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
        self.top, self.runs = lower(learner)
        nodes = self.top.walk()
        if begin:
            refuse_attributes(self, layout.dense + layout.sparse)
        self.logged = any(node.wants_log for node in nodes)
        self.scored = scored or any(node.wants_scores for node in nodes)
        self.memory = max([*(run.recycling[0] for run in self.runs), *(node.looks_back for node in nodes)], default=0)
        self.averages = any(run.averaging for run in self.runs)
        self.everywhere = any(run.rule.everywhere for run in self.runs)
        self.tracked = self.logged or self.scored or self.averages
        self.always_changes = any(node.always_changes for node in nodes)
        self.members = members_of(self.runs)
        self.state = first_state(self, max(capacity, layout.rows))
        for member, run in enumerate(self.runs):
            self.state.means[member, [averages.START, averages.FADE]] = run.rule.start, run.fade
            if self.tracked and begin:  # not where a state is to be taken over
                start_means(self.members, self.state, member)
        self.top.prepare(self)
        self._kept_log: Log | None = None  # while trials are played
        self.tail: Instances | None = None
        self.tail_labels = np.zeros(0, np.int32)
        self.tail_uses = np.zeros((len(self.runs), 0), np.int32)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All state by name: members, nodes, and the recent instances with their uses."""
        return arrays_of(self)

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
        """An engine for reading only: its state is another one's `arrays` themselves, which may be read-only."""
        engine = cls(learner, Layout(0, 0, 0, 0, layout.constant), 0, settings, begin=False)
        engine.layout, engine.k = layout, k
        engine.restore(arrays, copied=False)
        return engine

    def restore(self, arrays: Mapping[str, np.ndarray], copied: bool = True) -> None:
        """Take over the state of an engine of the same learner, layout and classes."""
        take_over(self, arrays, copied)

    def like(self, learner: Any, layout: Layout) -> Engine:
        """Another engine with these classes and settings, one that gives scores."""
        return Engine(learner, layout, self.k, self.settings, scored=True)

    @property
    def rules(self) -> list[Rule]:
        """The rules of the members, and of those inside nodes that have an engine of their own."""
        inside = [rule for node in self.top.walk() for engine in node.engines for rule in engine.rules]
        return [*(run.rule for run in self.runs), *inside]

    @property
    def facing(self) -> list[Rule]:
        """The rules that learn from the instances themselves."""
        inside = [rule for node in self.top.walk() if node.shows for engine in node.engines for rule in engine.facing]
        return [*(run.rule for run in self.runs), *inside]

    def terms(self, member: int) -> int:
        """What the terms of the member's average add up to: one for each trial played, and the present one."""
        count = int(self.state.counts[member, TRIALS]) + 1
        return count * (count + 1) // 2 if self.runs[member].fade else count

    def scratch(self, instances: Instances) -> Scratch:
        """Working memory for the kernels."""
        return scratch_for(
            self.state, self.everywhere, instances.scores.shape[2], most_touched(instances),
            self.k if self.small else 0, self.logged,
        )  # fmt: skip

    def renumber(self, order: Sequence[int]) -> None:
        """Rename class ``order[c]`` to c. Only classes not yet known may move: they have no weights yet."""
        place = np.append(np.argsort(order), -1).astype(np.int32)
        if self.tail is not None:
            scores = self.tail.scores[:, :, order] if self.tail.scores.size else self.tail.scores
            self.tail = self.tail._replace(votes=place[self.tail.votes], scores=np.ascontiguousarray(scores))
        for node in self.top.walk():
            node.renumber(order)

    def know(self, classes: int) -> None:
        """So many classes, from the first on, may be predicted from now on, before a label has named them all."""
        self.state.shape[KNOWN] = classes
        for node in self.top.walk():
            node.know(classes)

    def grow(self, layout: Layout, k: int) -> None:
        """Add columns at the right of each block, and classes that are not yet known (see `linmax.engine.growth`)."""
        grow(self, layout, k)

    @property
    def from_zero(self) -> bool:
        """Whether a sub-expert that is new changes no score."""
        return all(run.rule.start == 0.0 for run in self.runs) and all(node.from_zero for node in self.top.walk())

    def hosting(self, layout: Layout) -> Engine:
        """An engine that judges instances with further columns; this one stays as it is.

        It has the state of the members that are asked only, or is a copy where nodes have to grow themselves.
        """
        return hosting(self, layout)

    @cached_property
    def first_values(self) -> np.ndarray:
        """The first values of a new coordinate under each rule."""
        return first_values(self.runs)

    @property
    def capacity(self) -> int:
        """Rows of the linear machine that the arrays have space for."""
        experts, stride = int(self.state.shape[EXPERTS]), int(self.state.shape[STRIDE])
        return (self.state.weights.shape[1] - experts) // stride if stride else 0

    def judge(self, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores without learning."""
        return self.top.judge(self, instances, size)

    def judge_output(self, output: int, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores of one output of a member (see `linmax.techniques.node`)."""
        predictions, table = np.zeros(size, np.int32), np.zeros((size, self.k))
        judge(self.kernel_arrays(self.scratch(instances)), output, instances, size, predictions, table)
        return predictions, table

    def rate(self, instances: Instances, size: int, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores of these weights."""
        predictions, table = np.zeros(size, np.int32), np.zeros((size, self.k))
        judge_by_weights(self.state, self.scratch(instances), instances, weights, size, predictions, table)
        return predictions, table

    def run(self, instances: Instances, labels: np.ndarray, margins: bool = False, scored: int = 0) -> Outcome:
        """Play the trials, and keep the scores of the last ``scored`` ones, as they were before the labels.

        A label below 0 is none: the instance is predicted, and those learn from it that can learn without labels.
        """
        size = len(labels)
        scored = min(size, scored)
        if size == 1 and not self.runs and not margins and (labels[0] >= 0 or self.top.takes_gaps):
            known, told = int(self.state.shape[KNOWN]), int(labels[0] >= 0)
            one = self.top.play_one(self, instances, labels)
            if one is not None:
                self.state.shape[KNOWN] = max(known, int(labels[0]) + 1)
                self.state.counts[0, TRIALS] += told
                self.state.counts[0, UPDATES] += told
                return Outcome(one[0], np.array([told], np.uint8), None, one[1] if scored else None)
        outcome = Outcome(
            np.zeros(size, np.int32),
            np.zeros(size, np.uint8),
            np.zeros(size) if margins else None,
            np.zeros((scored, self.k)) if scored else None,
        )
        if labels.min(initial=0) < 0 and not all(node.takes_gaps for node in self.top.walk()):
            play_around_gaps(self, instances, labels, outcome)
            return outcome
        if self.plain:
            self._play_plain(instances, labels, outcome)
            return outcome
        edges = sorted({0, size - scored, size})
        for first, last in pairwise(edges):
            part = outcome.part(first, last)
            self._slices(cut(instances, first, last) if last - first < size else instances, labels[first:last], part)
        self._kept_log = None
        return outcome

    def run_weighed(self, instances: Instances, labels: np.ndarray, weights: np.ndarray, scored: int = 0) -> Outcome:
        """`run` trials that count as much as ``weights`` say, by a learner that can weigh them (`Node.weighing`)."""
        pool, size, shape = self.top.weighing, len(labels), self.state.shape
        assert pool is not None
        after = max(int(shape[KNOWN]), int(labels.max(initial=-1)) + 1)
        predictions, table = pool.play(shape, instances, labels, 0, size, self.k, weights)
        shape[KNOWN] = after
        self.state.counts[0, [TRIALS, UPDATES]] += size
        return Outcome(predictions, np.ones(size, np.uint8), None, table[size - scored :] if scored else None)

    def _slices(self, instances: Instances, labels: np.ndarray, outcome: Outcome) -> None:
        size = len(labels)
        step = self.slice_length(size)
        for begin in range(0, size, max(1, step)):
            end = min(size, begin + step)
            self._slice(cut(instances, begin, end) if step < size else instances, labels[begin:end], begin, outcome)

    def slice_length(self, size: int) -> int:
        """Trials that are written out as a panel at a time."""
        longest = max(1, MEMORY // (8 * max(1, self.k * self.state.weights.shape[1])))
        return min(LONGEST_SLICE, longest) if self.small else LONGEST_SLICE if self.memory else size

    @property
    def plain(self) -> bool:
        """Whether there is one rule and nothing else."""
        if not isinstance(self.top, Leaf):
            return False
        rule = self.runs[0].rule
        techniques = self.memory or self.tracked or rule.everywhere or rule.rivals != "best"
        return not techniques

    def _play_plain(self, instances: Instances, labels: np.ndarray, outcome: Outcome) -> None:
        """Play a rule without techniques."""
        margins = np.zeros(0) if outcome.margins is None else outcome.margins
        table = np.zeros((0, self.k)) if outcome.scores is None else outcome.scores
        outputs = PlainOutputs(outcome.predictions, outcome.changed, margins, table)
        failed = play_plain(self.kernel_arrays(self.scratch(instances)), instances, labels, outputs)
        if failed >= 0:
            self.overflowed(0, failed)

    def overflowed(self, member: int, trial: int) -> None:
        raise OverflowError(
            f"the weights of {self.runs[member].rule} left the range of floats at trial {trial}; scale the instances "
            "down, or use a rule that keeps logarithms, such as winnow or balanced_winnow"
        )

    @property
    def small(self) -> bool:
        """Whether instances are written out as a panel: few ratings each, and a technique that scores them often."""
        attributes = self.layout.dense + self.layout.sparse > 0
        often = self.memory or (self.averages and not attributes)
        limit = min(SMALL, SMALL_WITH_ATTRIBUTES) if attributes else SMALL
        small = self.k >= 2 and self.k * self.state.weights.shape[1] <= limit
        return bool(often and small and self.state.shape[KNOWN] == self.k)

    def _slice(self, instances: Instances, labels: np.ndarray, origin: int, outcome: Outcome) -> None:
        offset = 0
        if self.memory and self.tail is not None:
            offset = len(self.tail_labels)
            instances = concatenate(self.tail, instances)
            labels = np.concatenate([self.tail_labels, labels])
        size = len(labels)
        uses = np.zeros((len(self.runs), -(-size // LANES) * LANES if self.memory else 0), np.int32)
        if self.memory:
            uses[:, :offset] = self.tail_uses
        panel = NO_PANEL
        if self.small and outcome.margins is None:  # a panel passes over what need not be looked at
            ones = instances.constant in (0.0, 1.0) and bool((instances.signs == 1.0).all())
            panel = self.panel(size, largest_rating(instances), ones)
        if panel.codes.size or panel.ratings.size:
            fill_panel(instances, labels, self.state, panel)
        trials = Trials(instances, panel, labels, uses)
        step = self.chunk_length(size - offset)
        for begin in range(offset, size, max(1, step)):
            self._chunk(trials, begin, min(size, begin + step), origin - offset, outcome)
        if self.memory:
            keep = min(self.memory, size)
            # Joined with nothing it is a copy: the arrays may be a user's, who may write over them.
            self.tail = concatenate(cut(instances, size - keep, size), cut(instances, size, size))
            self.tail_labels = labels[size - keep :].copy()
            self.tail_uses = uses[:, size - keep : size].copy()

    def panel(self, size: int, largest: float, ones: bool) -> Panel:
        """An empty panel for instances with ratings up to ``largest``, or none; ``ones`` if voters rate 1."""
        if not self.small or not 1e-30 < largest < 1e30:  # too small or too large for single precision
            return NO_PANEL
        voters_only = self.layout.raters + self.layout.dense + self.layout.sparse == 0
        return new_panel(self.state, size, self.k, voters_only and ones, largest)

    def chunk_length(self, size: int) -> int:
        """Trials of which hypotheses and scores are kept at a time; 1 when they are too large to be copied."""
        if not (self.logged or self.scored):
            return size
        weights = 2 * self.state.weights.size if self.logged else 0
        scores = 2 * len(self.runs) * self.k if self.scored else 0
        longest = MEMORY // (8 * max(1, weights + scores))
        return int(min(size, 512, longest)) if longest >= 8 else 1

    def _chunk(self, trials: Trials, begin: int, end: int, shift: int, outcome: Outcome) -> None:
        """Run every member over begin..end, then the nodes. ``shift`` + trial is its place in the outcome."""
        count, size = len(self.runs), end - begin
        known = int(self.state.shape[KNOWN])
        log = self._log(size)
        predictions = np.zeros((count, 2, size), np.int32)
        changes = np.zeros((count, size), np.uint8)
        scored = self.scored or outcome.scores is not None
        passed_on = self.scored or (scored and self.top.passes_scores_on)
        tables = np.zeros((count, 2, size, self.k) if passed_on else (count, 0, 0, 0))
        kept = np.zeros(len(trials.labels) if outcome.margins is not None else 0)
        scratch = self.scratch(trials.instances)
        if log.weights.shape[1] == 1:
            for node in self.top.walk():
                node.look(self, scratch, log, trials.instances, begin)
        chunk = Chunk(trials, scratch, begin, end, known, predictions, changes, tables, log, scored)
        if self.runs:
            failed = self.play_members(chunk, kept)
            if failed >= 0:
                self.overflowed(failed // MANY, failed % MANY + shift)
        after = max(known, int(chunk.seen.max(initial=-1)) + 1)
        played = self.top.play(self, chunk)
        if not self.runs:
            told = chunk.seen >= 0
            self.state.counts[0, [TRIALS, UPDATES]] += int(told.sum()), int((played.changed * told).sum())
        self.state.shape[KNOWN] = after
        place = slice(begin + shift, end + shift)
        outcome.predictions[place] = played.predictions
        changed = changes.any(axis=0) | self.always_changes if self.runs else played.changed
        outcome.changed[place] = changed * (chunk.seen >= 0)
        if outcome.margins is not None:
            outcome.margins[place] = kept[begin:end]
        if outcome.scores is not None:
            assert played.scores is not None
            outcome.scores[place] = played.scores

    def play_members(self, chunk: Chunk, margins: np.ndarray) -> int:
        """Run every member over the chunk (see `linmax.engine.loop.play_all`)."""
        outputs = Outputs(chunk.predictions, chunk.changes, margins, chunk.tables, chunk.log)
        return int(play_all(self.kernel_arrays(chunk.scratch), chunk.trials, chunk.begin, chunk.end, outputs))

    def kernel_arrays(self, scratch: Scratch) -> EngineArrays:
        """Members, state and working memory, as kernels take them."""
        return EngineArrays(self.members, self.state, scratch, int(self.tracked))

    def state_log(self) -> Log:
        """A log of one trial that is the state itself, or none."""
        return state_log(self.state) if self.logged else NO_LOG

    def _log(self, size: int) -> Log:
        """A log for the hypotheses of a chunk: that of the chunk before, if it was as long."""
        if not self.logged or (size == 1 and self.chunk_length(1) == 1 and self.chunk_length(8) == 1):
            return self.state_log()
        if self._kept_log is None or self._kept_log.versions.shape[1] < size:
            self._kept_log = new_log(self.state, size)
        return self._kept_log
