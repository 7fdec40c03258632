"""Problems, rules with their references, and the trial-by-trial comparison of the library with the reference.

The tests of the rules, of the transformation and of the trial loop call `follow`, which fails at the first
trial where the two part without an excuse: a decision of that very trial whose terms cancel to rounding level
(`doubt`), or one made by weights that have themselves cancelled to rounding level. From there on two correct
programs may part.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

import linmax
import reference
import reference_rules
from linmax import rules, run
from linmax.core.contract import Rule
from linmax.data.instances import Instances
from reference import LinearMax, Vector, doubt, expand

ROUNDING = 1e-11


# -- rules and their references ------------------------------------------------------------------------------


class BalancedWithMargin(reference.Balanced):
    """Balanced Winnow with an absolute margin: if w.z <= margin."""

    def __init__(self, n: int, alpha: float, margin: float) -> None:
        super().__init__(n, alpha)
        self.margin = margin

    def update(self, z: Vector) -> bool:
        if not reference.at_most_zero(np.append(self.w * z, -self.margin * math.exp(-self.log_scale))):
            return False
        self.s = self.s + self.weight * z
        return True


class PowersOfTwo(reference.Multiplicative):
    """Winnow with alpha = 2 and weights that are exactly 2^s while s is whole, so that ties are ties."""

    def __init__(self, n: int) -> None:
        super().__init__(n, 2.0)

    @property
    def w(self) -> Vector:
        return np.asarray(2.0**self.s)

    @property
    def log_scale(self) -> float:
        return 0.0


class BalancedPowersOfTwo(reference.Balanced):
    """The same for Balanced Winnow."""

    def __init__(self, n: int) -> None:
        super().__init__(n, 2.0)

    @property
    def w(self) -> Vector:
        return np.asarray(2.0**self.s - 2.0**-self.s)

    @property
    def log_scale(self) -> float:
        return 0.0


class TwoNorm(reference.PNorm):
    """p = 2, where the link is the identity."""

    def __init__(self, n: int) -> None:
        super().__init__(n, 2.0)

    @property
    def w(self) -> Vector:
        return self.v


def tanh(v: float) -> float:
    return math.tanh(v)


def cube(v: float) -> float:
    return v * v * v


@dataclass(frozen=True)
class Case:
    """A rule of the library and the same from the reference."""

    rule: Rule
    reference: Callable[[int], Any]
    scale_free: bool = False  # the weights are defined up to a common factor only
    exact: bool = False  # on small whole numbers both are free of rounding
    graded: bool = False  # steps of any size: what should tie may differ by rounding and the order of summing
    tolerance: float = 1e-9  # of a weight; more where the rule itself magnifies rounding

    def __str__(self) -> str:
        return str(self.rule)

    def same_weights(self, one: Vector, other: Vector) -> bool:
        """Bit for bit, or to rounding where the steps are graded."""
        if not self.graded:
            return np.array_equal(one, other)
        return np.allclose(one, other, rtol=self.tolerance, atol=1e-4 * self.tolerance * np.abs(one).max(initial=0.0))


def cases() -> list[Case]:
    r = reference
    return [
        Case(rules.perceptron(), r.Perceptron, exact=True),
        Case(rules.perceptron(rate=0.5, margin=1.0), lambda n: r.Perceptron(n, 0.5, 1.0), exact=True),
        Case(rules.winnow(1.3), lambda n: r.Multiplicative(n, 1.3)),
        Case(rules.winnow(2.0), PowersOfTwo, exact=True),
        Case(rules.winnow(1.5, thickness=0.05), lambda n: r.Multiplicative(n, 1.5, thickness=0.05)),
        Case(rules.winnow(1.3, start=0.25), lambda n: r.Multiplicative(n, 1.3, start=0.25)),
        Case(rules.winnow(3.0, 0.21, start=5.0), lambda n: r.Multiplicative(n, 3.0, 5.0, 0.21)),
        Case(rules.committee(1.1), lambda n: r.Multiplicative(n, 1.1)),
        Case(rules.committee(4.0, thickness=0.01), lambda n: r.Multiplicative(n, 4.0, thickness=0.01)),
        Case(rules.balanced_winnow(1.3), lambda n: r.Balanced(n, 1.3)),
        Case(rules.balanced_winnow(2.0), BalancedPowersOfTwo, exact=True),
        Case(rules.balanced_winnow(1.01, thickness=0.05), lambda n: r.Balanced(n, 1.01, thickness=0.05)),
        Case(rules.balanced_winnow(1.5, margin=0.5), lambda n: BalancedWithMargin(n, 1.5, 0.5)),
        Case(rules.quasi_additive("identity", 0.5), lambda n: r.QuasiAdditive(n, lambda v: v, 0.5), exact=True),
        Case(rules.quasi_additive("sinh", 0.3), lambda n: r.QuasiAdditive(n, math.sinh, 0.3)),
        Case(rules.quasi_additive("exp", 0.3), lambda n: r.QuasiAdditive(n, math.exp, 0.3)),
        Case(rules.quasi_additive(tanh, 0.3), lambda n: r.QuasiAdditive(n, math.tanh, 0.3)),
        Case(rules.quasi_additive(cube), lambda n: r.QuasiAdditive(n, cube), exact=True),
        Case(rules.p_norm(2.0), TwoNorm, exact=True),
        Case(rules.p_norm(3.0), lambda n: r.PNorm(n, 3.0)),
        Case(rules.p_norm(7.5), lambda n: r.PNorm(n, 7.5)),
        Case(rules.p_norm(120.0), lambda n: r.PNorm(n, 120.0)),
        Case(rules.alma(), lambda n: r.Alma(n, 2.0)),
        Case(rules.alma(3.0), lambda n: r.Alma(n, 3.0)),
        Case(rules.alma(50.0), lambda n: r.Alma(n, 50.0)),
        Case(rules.alma(2.5, alpha=0.9), lambda n: r.Alma(n, 2.5, 0.9)),
        Case(rules.alma(2.0, alpha=0.5, B=2.0, C=0.7), lambda n: r.Alma(n, 2.0, 0.5, 2.0, 0.7)),
        Case(rules.alma(3.0, normalise=False), lambda n: r.Alma(n, 3.0, normalise=False)),
        Case(
            rules.alma(4.0, alpha=0.8, normalise=False, project=False),
            lambda n: r.Alma(n, 4.0, 0.8, normalise=False, project=False),
        ),
        Case(rules.alma(3.0, project=False), lambda n: r.Alma(n, 3.0, project=False)),
        Case(rules.alma(2.0, preset="fusion"), lambda n: r.Alma(n, 2.0, 0.9, project=False)),
        Case(rules.sasb(), r.Sasb, scale_free=True),
        *margin_cases(),
    ]


def margin_cases() -> list[Case]:
    r = reference_rules
    return [
        Case(rules.pa(), lambda n: r.PassiveAggressive(n, "PA"), graded=True),
        Case(rules.pa_i(0.1), lambda n: r.PassiveAggressive(n, "PA-I", 0.1), graded=True),
        Case(rules.pa_ii(0.5), lambda n: r.PassiveAggressive(n, "PA-II", 0.5), graded=True),
        Case(rules.arow(), r.Arow, graded=True),
        Case(rules.arow(0.1, start=1.0), lambda n: r.Arow(n, 0.1, start=1.0), graded=True),
        Case(rules.arow(10.0, 1.0, 0.01), lambda n: r.Arow(n, 10.0, start=1.0, inflation=0.01), graded=True),
        Case(rules.scw_i(), lambda n: r.Scw(n, "I"), graded=True),
        Case(rules.scw_i(0.7, C=0.05), lambda n: r.Scw(n, "I", 0.7, 0.05), graded=True),
        Case(rules.scw_ii(0.95, C=0.3), lambda n: r.Scw(n, "II", 0.95, 0.3), graded=True),
        Case(rules.nherd(0.5), lambda n: r.Nherd(n, 0.5), graded=True),
        Case(rules.second_order_perceptron(0.5), lambda n: r.SecondOrderPerceptron(n, 0.5), graded=True),
        Case(rules.adagrad(0.5), lambda n: r.AdaGrad(n, 0.5)),
        Case(rules.logistic(0.3), lambda n: r.Logistic(n, 0.3), graded=True),
        Case(rules.logistic(0.3, l2=0.2), lambda n: r.Logistic(n, 0.3, 0.2), graded=True),
        Case(rules.ftrl(0.5, beta=0.0), lambda n: r.Ftrl(n, 0.5, 0.0, 0.0, 0.0, "logistic"), graded=True),
        Case(rules.ftrl(0.5, l1=0.2, l2=0.1, loss="hinge"), lambda n: r.Ftrl(n, 0.5, 1.0, 0.2, 0.1, "hinge")),
        Case(rules.romma(), r.Romma, graded=True, tolerance=1e-6),
    ]


CASES = cases()


# -- problems ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Instances of the library and the same as dense matrices (k, n), made without the library."""

    instances: Instances
    matrices: list[Vector]
    labels: list[int]
    k: int
    exact: bool = False  # small whole numbers and halves


def problem(
    labels: Sequence[int],
    k: int,
    votes: Any = None,
    scores: Any = None,
    attributes: Any = None,
    *,
    thresholds: bool = True,
    negated: bool = False,
    split: Any = None,
    as_sparse: bool = False,
    exact: bool = False,
) -> Problem:
    """Both forms of the same instances; votes are class numbers, -1 abstains."""
    given = None if votes is None else np.where(np.asarray(votes) < 0, None, np.asarray(votes, dtype=object))
    instances = linmax.instances(
        votes=given,
        scores=scores,
        attributes=sparse.csr_array(np.asarray(attributes, float)) if as_sparse else attributes,
        classes=range(k),
        thresholds=thresholds,
        negated=negated,
        split=split,
    )
    matrices = []
    for t in range(len(labels)):
        v = [] if votes is None else list(votes[t])
        s = np.zeros((0, k)) if scores is None else np.asarray(scores[t], float)
        a = np.zeros(0) if attributes is None else np.asarray(attributes[t], float)
        matrices.append(_matrix(v, s, a, k, thresholds, negated, split, as_sparse))
    return Problem(instances, matrices, [int(label) for label in labels], k, exact)


def _matrix(
    votes: list[int],
    scores: Vector,
    attributes: Vector,
    k: int,
    thresholds: bool,
    negated: bool,
    split: Any,
    as_sparse: bool,
) -> Vector:
    """One instance in the library's order of coordinates: voters, raters, the constant, dense, sparse."""
    one_hot = expand(votes=votes, k=k, thresholds=False)
    rated = expand(scores=scores, k=k, thresholds=False)
    if split == "all":
        split = dict.fromkeys(range(len(votes) + len(scores)), "all")
    extra_dense, extra_sparse = [], []
    for i, cls in (split or {}).items():
        for c in range(k) if cls == "all" else [cls]:
            if i < len(votes):
                extra_sparse.append(one_hot[c, i])
            else:
                extra_dense.append(scores[i - len(votes), c])
    if negated:
        one_hot, rated = np.hstack([one_hot, -one_hot]), np.hstack([rated, -rated])
        attributes = np.concatenate([attributes, -attributes])
    features = [*attributes, *extra_dense] if not as_sparse else [*extra_dense, *attributes]
    features = expand(attributes=[*features, *extra_sparse], k=k, thresholds=thresholds)
    return np.hstack([one_hot, rated, features])


def random_votes(trials: int, n: int, k: int, seed: int, abstain: float = 0.0, **options: Any) -> Problem:
    rng = np.random.default_rng(seed)
    votes = rng.integers(k, size=(trials, n))
    labels = np.where(rng.random(trials) < 0.8, votes[:, 0], rng.integers(k, size=trials))
    votes[rng.random((trials, n)) < abstain] = -1
    return problem(labels, k, votes=votes, **options)


@functools.cache
def problems(trials: int) -> dict[str, Problem]:
    """One of every kind, all values in [-1, 1] (ratings in [0, 1]) so that every rule takes them."""
    rng = np.random.default_rng(7)

    def labels(k: int) -> np.ndarray:
        return rng.integers(k, size=trials)

    def dense(m: int) -> np.ndarray:
        return rng.uniform(-1.0, 1.0, (trials, m))

    def thin(m: int) -> np.ndarray:
        return dense(m) * (rng.random((trials, m)) < 0.3)

    def votes(n: int, k: int, low: int = 0) -> np.ndarray:
        return rng.integers(low, k, size=(trials, n))

    def ratings(n: int, k: int) -> np.ndarray:
        return rng.random((trials, n, k))

    small = rng.integers(-1, 2, size=(trials, 3)).astype(float)
    zeros = np.zeros((trials, 3))
    return {
        "votes": random_votes(trials, 6, 5, 1),
        "abstaining votes": random_votes(trials, 6, 3, 2, abstain=0.4),
        "votes, no thresholds": random_votes(trials, 7, 4, 3, thresholds=False),
        "negated votes": random_votes(trials, 4, 3, 4, negated=True),
        "split votes": random_votes(trials, 2, 3, 5, abstain=0.2, split="all"),
        "one split": random_votes(trials, 3, 4, 6, split={1: 2}),
        "scores": problem(labels(3), 3, scores=ratings(5, 3)),
        "negated scores, split": problem(labels(3), 3, scores=ratings(2, 3), negated=True, split={0: "all", 1: 1}),
        "dense": problem(labels(4), 4, attributes=dense(3)),
        "dense, no thresholds": problem(labels(3), 3, attributes=dense(4), thresholds=False),
        "sparse": problem(labels(3), 3, attributes=thin(6), as_sparse=True),
        "sparse, no thresholds": problem(labels(5), 5, attributes=thin(4), as_sparse=True, thresholds=False),
        "hybrid": problem(labels(3), 3, votes(2, 3, -1), ratings(2, 3), dense(2)),
        "sparse hybrid": problem(
            labels(3), 3, votes(2, 3, -1), ratings(1, 3), thin(3), as_sparse=True, negated=True, split="all"
        ),
        "ties": problem(labels(3), 3, votes(2, 3, -1), attributes=small, exact=True),
        "two classes": problem(labels(2), 2, votes(3, 2, -1), attributes=dense(2)),
        "one voter": problem(labels(3), 3, votes(1, 3, -1), thresholds=False, exact=True),
        "nothing but zeros": problem(labels(3), 3, attributes=zeros, thresholds=False, exact=True),
        "zeros and a threshold": problem(labels(3), 3, attributes=zeros, as_sparse=True, exact=True),
        "one label": problem([1] * trials, 3, votes(3, 3), attributes=dense(2)),
        "one instance": problem(
            labels(3), 3, [[0, 1, 1]] * trials, attributes=np.tile([[0.5, -1.0]], (trials, 1)), exact=True
        ),
        "nine classes": problem(labels(9), 9, votes(2, 9), attributes=dense(2)),
    }


def lift_of(rule: Rule) -> type[LinearMax]:
    """The transformation with the rule's way of choosing rivals."""
    if rule.rivals == "best":
        return LinearMax
    assert not rule.thickness
    return type("Lift", (LIFTS[rule.rivals],), {"reach": rule.reach})


LIFTS: dict[str, type[LinearMax]] = {"violated": reference_rules.Violated, "all": reference_rules.OneVsAll}


# -- the comparison ------------------------------------------------------------------------------------------


def assert_same_weights(flat: Vector, log_scale: float, rule: Any, case: Case, where: str) -> None:
    """True weights to the tolerance: relative for each weight, but for the rounding of sums that cancel."""
    expected, expected_scale = np.asarray(rule.w), rule.log_scale
    if case.scale_free:
        flat, expected = (v / (np.abs(v).max(initial=0.0) or 1.0) for v in (flat, expected))
        log_scale = expected_scale = 0.0
    got = flat * math.exp(log_scale - expected_scale)
    largest = float(np.abs(expected).max(initial=1.0 if case.graded else 0.0))
    tolerance = case.tolerance
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=1e-4 * tolerance * largest, err_msg=where)


def follow(
    case: Case,
    given: Problem,
    *,
    opponent: Callable[[int, int], int] | None = None,
    **options: Any,
) -> int:
    """Play library and reference side by side; returns the number of trials compared.

    ``opponent(t, prediction)`` chooses the label after the library's prediction is known.
    """
    slow = lift_of(case.rule)(case.reference, given.k, **options)
    machine = None
    peak, flat = 0.0, np.zeros(0)
    for t, x in enumerate(given.matrices):
        label = given.labels[t]
        one = given.instances[t : t + 1]
        if opponent is not None:
            guess = machine.predict(one)[0] if machine else 0
            label = opponent(t, int(guess))
        trace = machine.run(one, [label]) if machine else run(case.rule, one, [label], **options)
        machine = trace.model
        doubt.reset(products=not bool(np.isin(x, (-1.0, 0.0, 1.0)).all()))
        before, weights_before = slow.updates, (slow.hypothesis(), flat)
        if options.get("discover") is True:  # a vote makes its class known
            named = (one.names[vote] for vote in one.votes[0] if vote >= 0)
            slow.known += [name for name in dict.fromkeys(named) if name not in slow.known]
        expected = slow.trial(x, label)
        where = f"{case} at trial {t}"
        try:
            predicted = trace.predictions[0]
            assert (-1 if predicted is None else predicted) == expected, where
            assert trace.wrong[0] == (expected != label), where
            assert bool(trace.changed[0]) == (slow.updates > before), where
            assert machine.updates == slow.updates, where
            level = float(np.abs(slow.rule.w).max(initial=0.0))
            peak = max(peak, level)
            weights = machine.weights.arrays
            if level < 1e-12 * peak and slow.log_scale == 0.0 and (level > 0.0 or weights.flat.any()):
                return t  # what is left of the weights is rounding
            flat = in_order(weights, machine, given.k, slow.rule.w, slow.log_scale)
            assert_same_weights(flat, weights.log_scale, slow.rule, case, where)
        except AssertionError:
            if doubt.smallest < ROUNDING or any(_too_close(weights, x, case.graded) for weights in weights_before):
                return t
            raise
    assert machine is not None
    assert machine.trials == len(given.matrices)
    return len(given.matrices)


def _too_close(weights: Vector, x: Vector, graded: bool) -> bool:
    """Whether rounding may have decided between two classes.

    `doubt` looks at the terms in which two classes differ. The scores may have large terms in common as well, and
    opposite steps leave crumbs of rounding as weights, in one of the two programs or in both.
    """
    terms = np.abs(weights * x) if weights.size else np.zeros(1)
    if not terms.any() or (not graded and reference._sums_exactly(terms[terms > 0.0])):
        return False
    largest = max(float(np.abs(weights).max()), float(terms.sum(axis=1).max()))
    return bool(np.diff(np.sort(x @ weights)).min() < 1e-12 * largest)


def in_order(weights: Any, machine: Any, k: int, expected: Vector, log_scale: float) -> Vector:
    """The weights with the classes as 0..k-1; a learner that discovers them numbers them as they become known.

    Coordinates of classes that are not yet known do not exist: there the reference's weights are taken.
    """
    if machine.classes == list(range(k)):
        return weights.flat
    experts_ = machine.layout.voters + machine.layout.raters
    flat = np.array(expected) * math.exp(log_scale - weights.log_scale)
    flat[:experts_] = weights.flat[:experts_]
    if machine.classes:
        rows = weights.flat[experts_:].reshape(-1, len(machine.classes))
        flat[experts_:].reshape(-1, k)[:, machine.classes] = rows
    return flat
