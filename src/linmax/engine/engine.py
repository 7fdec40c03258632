"""The engine: the state of a learner, and the trials that it plays, slice by slice.

A slice is a stretch of trials, after the recent instances of the slice before; a small one is copied to a panel.
Its length changes no result.

The rest of the engine: `linmax.engine.lowering` (from descriptions to members and nodes), `first_state` and `growth`
(the arrays), `bench` (what kernels see of them), `loop` (the kernels), `one_trial` (one trial at a time, without Python
in between).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from linmax.core import averages
from linmax.core.contract import EXPERTS, KNOWN, NO_LABEL, STRIDE, TRIALS, UPDATES, Rule, Trials
from linmax.core.member import RunningRule
from linmax.data.arrays import Layout, concatenate, cut
from linmax.engine.bench import Bench
from linmax.engine.coordinates import largest_rating, stride_for
from linmax.engine.first_state import first_state
from linmax.engine.gaps import play_around_gaps
from linmax.engine.growth import first_values, grow, hosting, refuse_attributes
from linmax.engine.loop import judge, rate, start_means
from linmax.engine.lowering import lower
from linmax.engine.outcome import Outcome
from linmax.engine.settings import Settings, settings_of
from linmax.engine.stored import arrays_of, take_over
from linmax.jit.panels import LANES
from linmax.techniques.node import Chunk, Leaf

__all__ = ["HEAVIEST", "Engine", "Outcome", "Settings", "settings_of"]

MEMORY = 2**26  # bytes that a panel or scores may take; it sets the length of slices
HEAVIEST = 1e6  # a weight beyond it counts as much: more would leave the range of single precision
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
        self.scored = scored or any(node.wants_scores for node in nodes)
        self.memory = max([*(run.recycling[0] for run in self.runs), *(node.looks_back for node in nodes)], default=0)
        self.averages = any(run.averaging for run in self.runs)
        self.everywhere = any(run.rule.everywhere for run in self.runs)
        self.tracked = self.scored or self.averages or any(node.needs_norms for node in nodes)
        self.always_changes = any(node.always_changes for node in nodes)
        for place, node in enumerate(nodes):
            node.row = node.row if isinstance(node, Leaf) else 2 * len(self.runs) + place
        self.state = first_state(self, max(capacity, layout.rows))
        self._bench: Bench | None = None
        for member, run in enumerate(self.runs):
            self.state.means[member, [averages.START, averages.FADE]] = run.rule.start, run.fade
        self.top.prepare(self)
        if self.tracked and begin:  # not where a state is to be taken over
            for view in self.bench.members:
                start_means(view, 0, 0)
        self.tail: Trials | None = None
        self.tail_uses = np.zeros((len(self.runs), 0), np.int32)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_bench": None}  # a copy has arrays of its own

    @property
    def bench(self) -> Bench:
        """The structs of the present arrays."""
        if self._bench is None or self._bench.state is not self.state:
            self._bench = Bench(self)
        return self._bench

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All state by name: members, nodes, and the recent instances with their uses."""
        return arrays_of(self)

    @classmethod
    def restored(
        cls, learner: Any, layout: Layout, k: int, settings: Settings, arrays: Mapping[str, np.ndarray]
    ) -> Engine:
        """An engine that continues where another one's `arrays` were taken; they are copied."""
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
        """Return the sum of the terms of a member's average: one for each trial played, and the present one."""
        count = int(self.state.counts[member, TRIALS]) + 1
        return count * (count + 1) // 2 if self.runs[member].fade else count

    def grow(self, layout: Layout, k: int) -> None:
        """Add columns at the right of each block, and classes that become known (see `linmax.engine.growth`)."""
        grow(self, layout, k)

    @property
    def from_zero(self) -> bool:
        """True if a sub-expert that is new changes no score."""
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

    def known_in(self, trials: Trials, learned: bool) -> Trials:
        """Fill the column ``known`` of trials that follow those learned, or are predicted each by itself.

        A class is known from its first label on: after the trial that brings it; where votes discover classes, from
        its first vote on. Classes are numbered in the order in which they become known. Candidates are the classes
        voted for in a trial.
        """
        before = int(self.state.shape[KNOWN])
        if self.settings.candidates:
            return trials._replace(known=np.maximum(trials.known, trials.votes.max(axis=1, initial=-1) + 1))
        labels = trials.labels.max(initial=-1) if learned else -1
        votes = trials.votes.max(initial=-1) if self.settings.by_votes else -1
        if max(labels, votes) < before:  # all are known
            return trials._replace(known=np.maximum(trials.known, before))
        known = np.full(trials.size, before)
        if self.settings.by_votes and trials.votes.shape[1]:
            known = np.maximum(known, trials.votes.max(axis=1) + 1)
        if learned:
            np.maximum(known[1:], trials.labels[:-1] + 1, out=known[1:])
            known = np.maximum.accumulate(known)
        return trials._replace(known=np.maximum(known, trials.known))

    def judge(self, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores without learning."""
        return self.top.judge(self, self.known_in(trials, False))

    def judge_output(self, output: int, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores of one output of a member (see `linmax.techniques.node`)."""
        predictions, table = np.zeros(trials.size, np.int32), np.zeros((trials.size, self.k))
        self.bench.show(trials)
        self.bench.ready()
        judge(self.bench.members[output // 2], output % 2, predictions, table)
        return predictions, table

    def rate(self, trials: Trials, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and scores of these weights."""
        predictions, table = np.zeros(trials.size, np.int32), np.zeros((trials.size, self.k))
        self.bench.show(trials)
        scorer = RunningRule(trials=self.bench.trials, shape=self.state.shape)  # there may be no member
        self.bench.room.lend(scorer)
        rate(scorer, weights, predictions, table)
        return predictions, table

    def run(self, trials: Trials, margins: bool = False, scored: int = 0) -> Outcome:
        """Play the trials, and keep the scores of the last ``scored`` ones, as they were before the labels.

        A trial without a label is predicted, and those learn from it that can learn without labels. One of weight 0 is
        predicted only; weights beyond `HEAVIEST` count as much.
        """
        if trials.weights.max(initial=0.0) > HEAVIEST:
            trials = trials._replace(weights=np.minimum(trials.weights, HEAVIEST))
        trials, size = self.known_in(trials, True), trials.size
        labels, scored = trials.labels, min(trials.size, scored)
        if size == 1 and not self.runs and not margins and (labels[0] != NO_LABEL or self.top.takes_gaps):
            labeled = int(labels[0] != NO_LABEL)
            one = self.top.play_one(self, trials)
            if one is not None:
                self._know(trials)
                self.state.counts[0, TRIALS] += labeled
                self.state.counts[0, UPDATES] += labeled
                return Outcome(one[0], np.array([labeled], np.uint8), None, one[1] if scored else None, trials.known)
        outcome = Outcome(
            np.zeros(size, np.int32),
            np.zeros(size, np.uint8),
            np.zeros(size) if margins else None,
            np.zeros((scored, self.k)) if scored else None,
            trials.known,
        )
        takes_gaps = not self.memory and all(node.takes_gaps for node in self.top.walk())
        if not takes_gaps and (labels == NO_LABEL).any():
            play_around_gaps(self, trials, outcome)
        else:
            step = self.slice_length(trials, scored)
            for begin in range(0, size, max(1, step)):
                end = min(size, begin + step)
                part = cut(trials, begin, end) if step < size else trials
                self._slice(part, begin, max(0, end - max(begin, size - scored)), outcome)
        if size:
            self._know(trials)
        return outcome

    def _know(self, trials: Trials) -> None:
        """Note how many classes are known after these trials."""
        if not self.settings.candidates:
            self.state.shape[KNOWN] = max(int(trials.known[-1]), int(trials.labels.max()) + 1)

    def slice_length(self, trials: Trials, scored: int) -> int:
        """Trials that are played at a time."""
        small = self.small(trials)
        numbers = self.k * self.state.weights.shape[1] if small else 0
        if self.runs and (self.scored or scored):
            numbers += self.k * (2 * len(self.runs) + len(self.top.walk()))
        longest = max(1, MEMORY // (8 * numbers)) if numbers else trials.size
        return min(LONGEST_SLICE, longest) if self.memory or small else longest

    def overflowed(self, member: int, trial: int) -> None:
        raise OverflowError(
            f"the weights of {self.runs[member].rule} left the range of floats at trial {trial}; scale the instances "
            "down, or use a rule that keeps logarithms, such as winnow or balanced_winnow"
        )

    def small(self, trials: Trials) -> bool:
        """Return whether trials are copied to a panel: few ratings each, and a technique that scores them often."""
        attributes = self.layout.dense + self.layout.sparse > 0
        often = self.memory or (self.averages and not attributes)
        limit = min(SMALL, SMALL_WITH_ATTRIBUTES) if attributes else SMALL
        small = self.k >= 2 and self.k * self.state.weights.shape[1] <= limit
        return bool(often and small and trials.known.min(initial=self.k) == self.k)

    def _slice(self, trials: Trials, origin: int, scored: int, outcome: Outcome) -> None:
        """Play a slice, whose first trial has the place ``origin`` in the outcome, and whose last ones are scored."""
        offset = 0
        if self.memory and self.tail is not None:
            offset = self.tail.size
            trials = concatenate(self.tail, trials)
        size, bench = trials.size, self.bench
        if bench.turns:
            bench.show(trials)
        if self.memory:
            uses = np.zeros((len(self.runs), -(-size // LANES) * LANES), np.int32)
            uses[:, :offset] = self.tail_uses
            for member, own in zip(bench.members, uses, strict=True):
                member.uses = own
        if self.runs:
            ones = trials.constant in (0.0, 1.0) and bool((trials.signs == 1.0).all())
            # A panel passes over what need not be looked at.
            largest = largest_rating(trials) if self.small(trials) and outcome.margins is None else 0.0
            bench.lay_out(self, size, largest, ones, size)
        wanted = size if self.scored else scored
        if bench.turns:
            detailed = self.scored or self.top.passes_scores_on
            bench.reserve_outputs(size, wanted, outcome.margins is not None, detailed, self.k)
        chunk = Chunk(trials, offset, size, wanted, bench)
        failed = bench.run(bench.first, chunk, members=True)
        if failed is not None:
            who, trial = failed
            if isinstance(who, int):
                self.overflowed(who, trial - offset + origin)
            who.overflowed()
        played = self.top.play(self, chunk)
        if not self.runs:
            labeled = chunk.seen != NO_LABEL
            self.state.counts[0, [TRIALS, UPDATES]] += int(labeled.sum()), int((played.changed * labeled).sum())
        place = slice(origin, origin + size - offset)
        outcome.predictions[place] = played.predictions
        changed: np.ndarray = played.changed
        if self.runs:
            changes = bench.played.changed[: 2 * len(self.runs) : 2, offset:size]
            changed = np.asarray(changes.any(axis=0)) | self.always_changes
        outcome.changed[place] = changed * (chunk.seen != NO_LABEL)
        if outcome.margins is not None:
            outcome.margins[place] = bench.played.margins[offset:] if self.runs else 0.0
        if outcome.scores is not None and scored:
            assert played.scores is not None
            last = place.stop - len(outcome.predictions) + len(outcome.scores)
            outcome.scores[last - scored : last] = played.scores[len(played.scores) - scored :]
        if self.memory:
            keep = min(self.memory, size)
            # Joined with nothing it is a copy: the arrays may be a user's, who may write over them.
            self.tail = concatenate(cut(trials, size - keep, size), cut(trials, size, size))
            self.tail_uses = uses[:, size - keep : size].copy()
