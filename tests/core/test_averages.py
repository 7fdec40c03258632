"""Averages kept lazily equal averages summed up one hypothesis after the other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import linmax
from linmax import average, recycle, run, vote
from linmax.core import averages
from linmax.core.contract import UNTOUCHED
from linmax.data.instances import Instances
from linmax.datasets import majority_problem
from linmax.jit.compiling import JIT
from linmax.techniques.averaging import AVERAGE_SCALES

RULES = [
    "perceptron",
    "winnow(1.5)",
    "winnow(4)",
    "balanced-winnow(4)",
    "quasi-additive(sinh)",
    "p-norm(3)",
    "p-norm(50)",
    "p-norm(120)",
    "alma(2)",
    "alma(9)",
    "alma(50)",
    "alma(3, alpha=0.9)",
    "sasb",
]
scales = pytest.mark.parametrize("scale", list(AVERAGE_SCALES))
compiled = pytest.mark.skipif(not JIT, reason="needs many trials")


Held = tuple[int, np.ndarray, float, np.ndarray]


def scaled(weights: np.ndarray, scale: str, touched: np.ndarray) -> np.ndarray:
    """Divide by a norm over the coordinates that updates have touched, before the first by that of one weight."""
    counted = np.abs(weights[touched] if touched.any() else weights[:1])
    return weights / ({"raw": 1.0, "max": counted.max(), "l1": counted.sum()}[scale] or 1.0)


def touched_by(machine: Any) -> np.ndarray:
    """The coordinates that take part in norms: all, but for rules whose weights do not start at 0."""
    size, state = len(machine.weights.arrays.flat), machine.engine.state
    return state.memory[0, 0, :size] != UNTOUCHED if machine.engine.runs[0].rule.marks else np.ones(size, bool)


def hypotheses(learner: Any, instances: Instances, labels: np.ndarray) -> list[Held]:
    """The hypotheses of a learner: for how many trials each was held, weights, logarithm of their scale, what counts.

    The one after the last trial counts as held for one trial, as in the average.
    """
    changed = np.flatnonzero(run(learner, instances, labels).changed)
    machine = run(learner, instances[:0], []).model
    found = []
    begin = 0
    for end in [*(changed + 1).tolist(), len(labels)]:
        weights = machine.weights.arrays
        found.append((end - begin, weights.flat, weights.log_scale, touched_by(machine)))
        machine.run(instances[begin:end], labels[begin:end])
        begin = end
    weights = machine.weights.arrays
    return [*found, (1, weights.flat, weights.log_scale, touched_by(machine))]


def explicit(learner: Any, instances: Instances, labels: np.ndarray, scale: str) -> tuple[np.ndarray, float]:
    """The average of the scaled hypotheses, and the logarithm of its scale."""
    held = hypotheses(learner, instances, labels)
    top = max((log for _, weights, log, _ in held if weights.any()), default=0.0) if scale == "raw" else 0.0
    if scale == "l1" and held[-1][3].any():  # hypotheses before the first update have no part in the sum
        held = [(count * touched.any(), weights, log, touched) for count, weights, log, touched in held]
    rows = [
        count * scaled(weights, scale, touched) * (math.exp(log - top) if scale == "raw" else 1.0)
        for count, weights, log, touched in held
    ]
    return np.array([math.fsum(column) for column in np.array(rows).T]) / (len(labels) + 1), top


def assert_same_average(learner: Any, instances: Instances, labels: np.ndarray, scale: str) -> Any:
    expected, log_scale = explicit(learner, instances, labels, scale)
    machine = run(average(learner, scale), instances, labels).model
    got = machine.weights.arrays.flat * math.exp(machine.weights.arrays.log_scale - log_scale)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())
    return machine


def assert_same_norm(machine: Any) -> None:
    """The 2-norm of the sum, kept in three numbers, is that of the weights."""
    state, kind = machine.engine.state, machine.engine.runs[0].averaging
    m = averages.multiple(kind, state.scalars[0], state.means[0])
    total = m * state.weights[0] - state.backlog[0]
    square, cross, back = state.means[0, [averages.SQUARE, averages.CROSS, averages.BACK]]
    # compiled it is part of its callers
    squared_norm = getattr(averages.squared_norm, "py_func", averages.squared_norm)
    kept = squared_norm(m - state.means[0, averages.WEIGHT], square, cross, back)
    touched = touched_by(machine)
    assert math.sqrt(kept) == pytest.approx(np.linalg.norm(total[: len(touched)][touched]), rel=1e-7)


@pytest.mark.small
@scales
@pytest.mark.parametrize("rule", RULES)
def test_lazy_equals_explicit(rule: str, scale: str) -> None:
    data = majority_problem(trials=300 if JIT else 12, noise=0.1, seed=3)
    instances = linmax.instances(votes=data.votes, classes=range(5))
    for learner in (rule, recycle(rule, s=30, u=3)):
        machine = assert_same_average(learner, instances, data.labels, scale)
        assert_same_norm(machine)


@compiled
@scales
@pytest.mark.parametrize("rule", ["perceptron", "winnow(1.3)", "balanced-winnow(1.2)", "alma(3)", "p-norm(4)"])
def test_over_many_trials(rule: str, scale: str) -> None:
    """Far more trials than the sum is kept up before it is written afresh."""
    data = majority_problem(n=10, r=5, k=3, trials=int(3 * averages.LONG), noise=0.002, seed=4)
    machine = assert_same_average(rule, linmax.instances(votes=data.votes, classes=range(3)), data.labels, scale)
    assert_same_norm(machine)
    if scale == "raw" and rule in ("perceptron", "winnow(1.3)"):  # g is 1: WEIGHT is the trials since
        assert machine.engine.state.means[0, averages.WEIGHT] < 2 * averages.LONG


@compiled
@scales
def test_weights_that_grow_and_come_back(scale: str) -> None:
    """One voter is right for hundreds of updates and then wrong for as many, while others hold still."""
    votes = np.array([[0, 1, 0]] * 900 + [[1, 0, 0]] * 900 + [[0, 1, 1]] * 900)
    labels = np.zeros(len(votes), int)
    instances = linmax.instances(votes=votes, classes=range(2), thresholds=False)
    assert_same_average("winnow(4, thickness=0.9)", instances, labels, scale)
    assert_same_average("winnow(4)", instances, labels, scale)


@compiled
@scales
def test_stored_weights_that_jump(scale: str) -> None:
    """A step by a power of fifty: hypotheses that are stored at scales far apart are added all the same."""
    rng = np.random.default_rng(6)
    dense = rng.uniform(-1.0, 1.0, (60, 3)) * 10.0 ** rng.integers(-3, 3, (60, 3))
    labels = rng.integers(2, size=60)
    for rule in ("alma(50)", "p-norm(50)", "alma(20, normalise=False, project=False)"):
        assert_same_average(rule, linmax.instances(attributes=dense, classes=range(2)), labels, scale)


@compiled
def test_a_sum_whose_squares_underflow_still_votes() -> None:
    data = majority_problem(trials=600, noise=0.1, seed=3)
    instances = linmax.instances(votes=data.votes, classes=range(5))
    base = average(recycle("p-norm(120)", s=50, u=3))
    machine = run(vote(base), instances, data.labels).model
    ballot = machine.engine.top.ballot
    norms = np.linalg.norm(ballot.saved, axis=1)
    np.testing.assert_allclose(norms, 1.0, rtol=1e-6)


@pytest.mark.small
@pytest.mark.parametrize("size", [1e-145, 1e-100, 1e60, 9e99])
def test_instances_of_any_size(size: float) -> None:
    rng = np.random.default_rng(8)
    dense = rng.uniform(-1.0, 1.0, (20, 3))
    labels = rng.integers(2, size=20)
    plain = linmax.instances(attributes=dense, classes=range(2), thresholds=False)
    other = linmax.instances(attributes=dense * size, classes=range(2), thresholds=False)
    for learner in ("A-perceptron", "A(scale=max)-perceptron", "VA(scale=l1)-perceptron", "V-perceptron"):
        if size < 1e90:
            assert run(learner, other, labels).predictions.tolist() == run(learner, plain, labels).predictions.tolist()
        else:
            with pytest.raises(OverflowError, match="left the range of floats at trial"):
                run(learner, other, labels)


@pytest.mark.small
@scales
def test_the_average_before_the_first_trial_is_the_start(scale: str) -> None:
    instances = linmax.instances(votes=[[0, 1]], classes=range(2), thresholds=False)
    machine = run(average("winnow(2)", scale), instances[:0], []).model
    expected = 1.0 if scale else 0.0
    assert machine.weights.arrays.flat.tolist() == [expected, expected]
    assert run(average("perceptron", scale), instances[:0], []).model.weights.arrays.flat.tolist() == [0.0, 0.0]


@pytest.mark.small
def test_by_hand() -> None:
    """Perceptron hypotheses 0, (1, -1), (1, -1), (0, 0) meet three trials and the next."""
    instances = linmax.instances(attributes=[[1.0], [2.0], [1.0]], classes=range(2), thresholds=False)
    machine = run("A-perceptron", instances, [0, 0, 1]).model
    assert machine.weights.arrays.flat.tolist() == [0.5, -0.5]
    assert run("perceptron", instances, [0, 0, 1]).model.weights.arrays.flat.tolist() == [0.0, 0.0]
