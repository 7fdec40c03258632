"""Trial-by-trial comparison of techniques with their reference.

`follow_technique` plays a learner of the library and the same from `reference_techniques` and fails where the two
part without an excuse. Unlike a plain rule a technique has state that its predictions do not show, so a decision in
doubt excuses whatever happens from its trial on; the number of trials that agreed is returned, for the caller to see
that enough was compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from compare import CASES, ROUNDING, Case, Problem, in_order, lift_of
from linmax import run
from linmax.core.contract import Rule
from linmax.engine.notation import as_learner
from linmax.techniques.averaging import Averaged
from linmax.techniques.combining import Combined
from linmax.techniques.exploring import Explored
from linmax.techniques.recycling import Recycled
from linmax.techniques.selecting import Selected
from linmax.techniques.stacking import Stacked
from linmax.techniques.voting import BASIC, CENTRE, OPEN, RESTARTS, SIZE, SPACING, TAU, VOTING, WAIT, Voted
from reference import Alma, Hypothesis, LinearMax, Multiplicative, Sasb, Vector, doubt
from reference_techniques import Average, Combine, Explore, Recycle, SampledVote, Select, Stack, Vote

__all__ = ["Watchful", "assert_same_hypothesis", "case_of", "follow_technique", "slow_of"]

BY_TEXT = {str(case.rule): case for case in CASES}


def case_of(rule: Rule) -> Case:
    """The case of a rule, also for other parameters of the rules of the papers' pool."""
    if str(rule) in BY_TEXT:
        return BY_TEXT[str(rule)]
    first = rule.values[0]
    if rule.name == "alma":
        return Case(rule, lambda n: Alma(n, first))
    assert str(rule) == f"winnow({first:g})"
    return Case(rule, lambda n: Multiplicative(n, first))


class Watchful(LinearMax):
    """A linear-max learner that also doubts decisions by what is left of weights that cancelled.

    With ``crumbs`` even ties are doubted: weights that should be equal may differ by rounding, when they came about
    in different ways (ALMA's opposite steps, sums of hypotheses). When weights are ``rounded`` a tie is doubted if the
    classes have the same score from different terms, such as a + a and 2 a.
    """

    crumbs = False
    rounded = False

    def decide(self, weights: Vector, x: Vector, without: int = -1) -> int:
        self._watch(weights, x, [j for j in self.known if j != without])
        return super().decide(weights, x, without)

    def _learn(self, x: Vector, label: int) -> bool:
        self._watch(self.hypothesis(), x, self.known)
        return super()._learn(x, label)

    def _watch(self, weights: Vector, x: Vector, classes: list[int]) -> None:
        largest = float(np.abs(weights).max(initial=0.0))
        if len(classes) < 2 or ((weights == weights[:1]).all() and not self.updates):
            return
        width = min(len(weights), x.shape[1])
        terms = (x[classes, :width] * weights[:width]).tolist()
        scored = sorted((math.fsum(some), place) for place, some in enumerate(terms))
        size = largest * float(np.abs(x).max(initial=0.0))
        for (low, one), (high, other) in pairwise(scored):
            gap = high - low
            if 0.0 < gap < 1e-12 * size or (
                gap == 0.0 and (self.crumbs or (self.rounded and differ(terms, one, other)))
            ):
                doubt.smallest = min(doubt.smallest, gap / (size or 1.0))


def differ(terms: list[list[float]], one: int, other: int) -> bool:
    """Whether two classes have other terms than each other, whatever their order."""
    first, second = (sorted(filter(None, terms[place])) for place in (one, other))
    return first != second


@contextmanager
def doubting_ties(linear: Any, doubted: bool) -> Iterator[None]:
    """Ties are doubted meanwhile."""
    before, linear.crumbs = linear.crumbs, linear.crumbs or doubted
    yield
    linear.crumbs = before


class WatchfulAverage(Average):
    """An average whose ties are doubted unless it is free of rounding.

    So is a hypothesis of which only rounding is left, when it is divided by its size, and an average whose terms cancel.
    """

    inexact = False
    peak = 0.0
    highest = 0.0

    def trial(self, x: Vector, label: int) -> int:
        predicted = super().trial(x, label)
        largest = float(np.abs(self.base.hypothesis()).max(initial=0.0))
        self.peak = max(self.peak, largest)
        average = float(np.abs(self.snapshot().weights).max(initial=0.0))
        self.highest = max(self.highest, average)
        if (self.scale != "raw" and largest < 1e-12 * self.peak) or (self.inexact and average < 1e-12 * self.highest):
            doubt.smallest = 0.0
        return predicted

    def predict(self, x: Vector) -> int:
        with doubting_ties(self.linear, self.inexact):
            return super().predict(x)


class WatchfulVote(Vote):
    """A vote whose ties are doubted: hypotheses that were divided by a norm add up to what rounding makes of them.

    So is a hypothesis that has come back to 0: what rounding left of it would be divided by its norm.
    """

    def _at_voting_scale(self, hypothesis: Hypothesis) -> Hypothesis:
        if self.linear.updates and not hypothesis.weights.any():
            doubt.smallest = 0.0
        return super()._at_voting_scale(hypothesis)

    def voting_label(self, x: Vector) -> int:
        with doubting_ties(self.linear, True):
            return super().voting_label(x)

    def accuracy(self, hypothesis: Hypothesis) -> int:
        with doubting_ties(self.linear, True):
            return super().accuracy(hypothesis)


class WatchfulSample(SampledVote):
    """A sample whose ties are doubted, as those of `WatchfulVote`."""

    def decide(self, weights: Vector, x: Vector) -> int:
        with doubting_ties(self.linear, True):
            return super().decide(weights, x)


class WatchfulStack(Stack):
    """A stack that doubts members whose weights have cancelled: what rounding left of them is divided by its norm."""

    def __init__(self, members: list[Any], fusion: Any) -> None:
        super().__init__(members, fusion)
        self.peaks: dict[int, float] = {}

    def trial(self, x: Vector, label: int) -> int:
        predicted = super().trial(x, label)
        for part in (part for member in self.members for part in linear_parts(member)):
            largest = float(np.abs(part.snapshot().weights).max(initial=0.0))
            self.peaks[id(part)] = max(self.peaks.get(id(part), 0.0), largest)
            if largest < 1e-12 * self.peaks[id(part)]:
                doubt.smallest = 0.0
        return predicted


def linear_parts(learner: Any) -> list[Any]:
    """The learners of one vector of weights in it."""
    if isinstance(learner, Combine | Stack):
        return [part for member in learner.members for part in linear_parts(member)]
    return linear_parts(learner.base) if isinstance(learner, Vote) else [learner]


class TrueSasb(Sasb):
    """SASB at the scale of its formula, which averages of raw weights add up at."""

    @property
    def log_scale(self) -> float:
        return max((self._log_weight(float(v)) for v in self.v if v != 0.0), default=0.0)


def slow_of(learner: Any, k: int, crumbs: bool = False, **options: Any) -> Any:
    """The reference of a description; ``crumbs`` if even its ties are decided by rounding."""
    described = as_learner(learner)
    if isinstance(described, Rule):
        case = case_of(replace(described, rivals="best"))
        watchful = type("WatchfulLift", (Watchful, lift_of(described)), {}) if described.rivals != "best" else Watchful
        linear = watchful(TrueSasb if described.name == "sasb" else case.reference, k, **options)
        linear.crumbs = crumbs or case.graded or described.name in ("alma", "p_norm")
        linear.rounded = not case.exact
        return linear
    if isinstance(described, Averaged):
        averaged = WatchfulAverage(slow_of(described.base, k, crumbs, **options), described.scale, described.fade)
        averaged.inexact = described.scale != "raw" or not exact(described.base)
        return averaged
    if isinstance(described, Recycled):
        base = slow_of(described.base, k, crumbs, **options)
        return Recycle(base, described.s, described.u, described.passes, described.budget)
    if isinstance(described, Voted):
        v = described
        if v.saved == "random":
            return WatchfulSample(slow_of(v.base, k, crumbs, **options), v.h, v.seed)
        return WatchfulVote(slow_of(v.base, k, crumbs, **options), v.h, v.w, v.r, v.d, v.scale)
    if isinstance(described, Selected):
        rule = described.base
        multiplies = isinstance(rule, Rule) and rule.start > 0.0 and rule.spread is not None
        return Select(slow_of(rule, k, crumbs, **options), described.b, described.seed, multiplies)
    if isinstance(described, Explored):
        return Explore(slow_of(described.base, k, crumbs, **options), described.gamma, described.seed)
    members = [slow_of(member, k, crumbs, **options) for member in described.members]
    if isinstance(described, Combined):
        return Combine(members, described.how, described.beta)
    assert isinstance(described, Stacked)
    return WatchfulStack(members, slow_of(described.fusion, k, True, **options))


def exact(described: Any) -> bool:
    """Whether the rule underneath is free of rounding on small whole numbers."""
    while not isinstance(described, Rule):
        described = described.base
    return case_of(replace(described, rivals="best")).exact


def assert_same_hypothesis(flat: Vector, log_scale: float, expected: Hypothesis, where: str) -> None:
    """True weights to 1e-9, but for the rounding of sums that cancel."""
    got = flat * math.exp(log_scale - expected.log_scale)
    weights = expected.padded(len(flat)).weights
    largest = float(np.abs(weights).max(initial=0.0))
    np.testing.assert_allclose(got, weights, rtol=1e-9, atol=1e-12 * largest, err_msg=where)


def linear(described: Any) -> bool:
    """Whether the learner is one vector of weights."""
    if isinstance(described, Combined):
        return described.how == "best" and all(map(linear, described.members))
    return not (isinstance(described, Stacked) or (isinstance(described, Voted) and described.saved == "random"))


def follow_technique(learner: Any, given: Problem, **options: Any) -> int:
    """Play both; returns the number of trials that agreed, all of them unless a decision was in doubt."""
    described = as_learner(learner)
    played = options | {"discover": "labels"} if options.get("discover") else options  # as the reference does
    trace = run(described, given.instances, given.labels, **played)
    machine = trace.model
    slow = slow_of(described, given.k, **options)
    doubt.reset()
    for t, x in enumerate(given.matrices):
        label = given.labels[t]
        expected = slow.trial(x, label)
        predicted = -1 if trace.predictions[t] is None else trace.predictions[t]
        if predicted != expected:
            if doubt.smallest < ROUNDING:
                return t
            raise AssertionError(f"{described} at trial {t}: {predicted}, reference {expected}")
        assert trace.wrong[t] == (expected != label)
    assert trace.mistakes[-1] == slow.mistakes
    try:
        _compare_the_end(described, machine, slow, given)
    except AssertionError:
        if doubt.smallest < ROUNDING:
            return 0
        raise
    return len(given.labels)


def _compare_the_end(described: Any, machine: Any, slow: Any, given: Problem) -> None:
    where = f"{described} after {machine.trials} trials"
    if hasattr(slow, "recycled"):
        assert machine.recycled == slow.recycled, where
        assert machine.updates == slow.updates, where
    if isinstance(slow, Select):
        assert machine.labels_used == slow.asked, where
    if isinstance(slow, Explore):
        assert machine.labels_used == slow.told, where
    if isinstance(slow, SampledVote):
        sample = machine.engine.top.sample
        assert sample.centres.tolist() == [voter.number for voter in slow.voters], where
        assert sample.due.tolist() == slow.due, where
    if isinstance(slow, Vote):
        ballot = machine.engine.top.ballot
        marks = ballot.marks
        assert sorted(ballot.centres[: marks[SIZE]]) == [voter.number for voter in slow.voters], where
        ours = [int(marks[i]) for i in (SPACING, CENTRE, OPEN, TAU, VOTING, BASIC, WAIT, RESTARTS)]
        theirs = [slow.spacing, slow.centre, int(slow.is_open), slow.tau]
        theirs += [slow.voting_mistakes, slow.basic_mistakes, slow.wait, slow.restarts]
        assert ours == theirs, where
    if linear(described):
        weights, expected = machine.weights.arrays, slow.snapshot()
        flat = in_order(
            weights, machine, given.k, expected.padded(given.matrices[0].shape[1]).weights, expected.log_scale
        )
        assert_same_hypothesis(flat, weights.log_scale, expected, where)
    known = [machine.classes.index(c) for c in slow.linear.known]
    for t in range(max(0, len(given.labels) - 3), len(given.labels)):
        one = given.instances[t : t + 1]
        predicted = machine.predict(one)[0]
        assert (-1 if predicted is None else predicted) == slow.predict(given.matrices[t]), where
        if len(known) > 1:
            ours, theirs = machine.scores(one)[0][known], slow.scores(given.matrices[t])[slow.linear.known]
            assert_proportional(ours, theirs, where)


def assert_proportional(ours: Vector, theirs: Vector, where: str) -> None:
    """Scores up to one positive factor."""
    a, b = (float(np.abs(scores).max()) for scores in (ours, theirs))
    np.testing.assert_allclose(ours / (a or 1.0), theirs / (b or 1.0), atol=1e-8, err_msg=where)
