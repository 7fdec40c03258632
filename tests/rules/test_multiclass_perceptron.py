"""The multi-class Perceptron of textbooks: cyclic passes, its margin, its radius and its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import linmax
import reference
from linmax import run
from linmax.jit.compiling import JIT
from linmax.theory import LinearThreshold
from linmax.theory.certificates import multiclass_margin

pytestmark = pytest.mark.small


def separable(points: int, d: int, k: int, seed: int, gap: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Points that a random linear machine labels, without those that it labels by less than the gap."""
    rng = np.random.default_rng(seed)
    target = rng.normal(size=(k, d))
    x = rng.normal(size=(20 * points, d))
    scores = np.sort(x @ target.T, axis=1)
    x = x[scores[:, -1] - scores[:, -2] > gap * np.linalg.norm(target)][:points]
    return x, np.argmax(x @ target.T, axis=1)


@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(("d", "k"), [(2, 2), (3, 3), (5, 4), (4, 9)])
def test_equals_reference(d: int, k: int, as_sparse: bool) -> None:
    points = 40 if JIT else 10
    x, labels = separable(points, d, k, seed=d + k)
    slow = reference.multiclass_perceptron(x, labels.tolist(), k, max_epochs=500)
    block = sparse.csr_array(x) if as_sparse else x
    instances = linmax.instances(attributes=block, classes=range(k), thresholds=False)
    trace = run("perceptron", instances, labels, passes=500, update_on_tie=False)
    assert slow.converged
    assert trace.consistent
    assert trace.passes == slow.epochs
    assert trace.wrong.sum() == trace.changed.sum() == trace.model.updates == slow.violations
    np.testing.assert_allclose(trace.model.weights.arrays.attributes.T, slow.weights, rtol=1e-12, atol=1e-12)
    gamma = reference.margin(slow.weights, x, labels.tolist())
    assert trace.model.margin(instances, labels) == pytest.approx(gamma, rel=1e-9)
    assert instances.radius == pytest.approx(reference.radius(x), rel=1e-12)
    # The bound holds for the largest margin, hence for the one that was found.
    assert gamma > 0.0
    assert slow.violations <= instances.radius**2 / gamma**2


@settings(max_examples=60 if JIT else 15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(2, 4), st.integers(1, 8))
def test_identical_on_small_whole_points(seed: int, d: int, k: int, points: int) -> None:
    """Ties everywhere, separable or not: the same weights to the last bit, and the same number of passes."""
    rng = np.random.default_rng(seed)
    x, labels = rng.integers(-2, 3, size=(points, d)).astype(float), rng.integers(k, size=points)
    slow = reference.multiclass_perceptron(x, labels.tolist(), k, max_epochs=12)
    instances = linmax.instances(attributes=x, classes=range(k), thresholds=False)
    trace = run("perceptron", instances, labels, passes=12, update_on_tie=False)
    assert np.array_equal(trace.model.weights.arrays.attributes.T, slow.weights)
    assert (trace.changed.sum(), trace.passes, trace.consistent) == (slow.violations, slow.epochs, slow.converged)
    assert np.array_equal(trace.wrong, trace.changed)
    if np.any(slow.weights):
        expected = reference.margin(slow.weights, x, labels.tolist())
        assert trace.model.margin(instances, labels) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "sparse"])
def test_the_largest_margin_in_one_call(as_sparse: bool) -> None:
    x, labels = separable(30, 2, 3, seed=7)
    names = np.array(["a", "b", "c"])[labels]
    found = multiclass_margin(sparse.csr_array(x) if as_sparse else x, names)
    assert found.classes == ["a", "b", "c"]
    assert found.gamma == pytest.approx(reference.margin(found.weights, x, labels.tolist()), rel=1e-9)
    assert found.radius == pytest.approx(reference.radius(x))
    assert found.bound == pytest.approx((found.radius / found.gamma) ** 2)
    rng = np.random.default_rng(0)
    others = [found.weights + 0.05 * rng.normal(size=(3, 2)) for _ in range(2000)]  # the optimum is unique
    assert max(reference.margin(weights, x, labels.tolist()) for weights in others) <= found.gamma
    trace = run("perceptron", linmax.instances(attributes=x, thresholds=False), names, passes=500, update_on_tie=False)
    assert trace.changed.sum() <= found.bound


def test_no_margin_no_bound() -> None:
    found = multiclass_margin([[1.0, 0.0], [1.0, 0.0]], [0, 1])
    assert (found.gamma, found.bound) == (0.0, math.inf)


def test_bound_with_the_margin_of_the_target() -> None:
    for seed in range(10 if JIT else 3):
        rng = np.random.default_rng(seed)
        target = rng.normal(size=(3, 4))
        x = rng.normal(size=(200, 4))
        labels = np.argmax(x @ target.T, axis=1)
        gamma = reference.margin(target, x, labels.tolist())
        keep = np.array([reference.margin(target, x[t : t + 1], [labels[t]]) > 0.05 for t in range(len(x))])
        x, labels, gamma = x[keep], labels[keep], 0.05
        instances = linmax.instances(attributes=x, classes=range(3), thresholds=False)
        trace = run("perceptron", instances, labels, passes=1000, update_on_tie=False)
        assert trace.consistent
        assert trace.changed.sum() <= (instances.radius / gamma) ** 2
        with_ties = run("perceptron", instances, labels, passes=1000)  # updating on ties keeps the bound
        assert with_ties.consistent
        assert with_ties.changed.sum() <= (instances.radius / gamma) ** 2


def test_two_classes_are_the_binary_perceptron() -> None:
    """w_1 = -w_2 at all times, and it is the vector of the two-class Perceptron; the margins coincide."""
    x, labels = separable(30 if JIT else 10, 3, 2, seed=1)
    instances = linmax.instances(attributes=x, classes=[0, 1], thresholds=False)
    trace = run("perceptron", instances, labels, passes=200)
    weights = trace.model.weights.arrays.attributes
    assert np.array_equal(weights[:, 0], -weights[:, 1])
    binary = LinearThreshold("perceptron", labels=(0, 1))
    for _ in range(trace.passes):
        binary.run(x, labels)
    assert np.array_equal(binary.weights, weights[:, 1])
    signs = 2 * labels - 1
    expected = float(np.min(signs * (x @ binary.weights)) / np.linalg.norm(binary.weights))
    assert trace.model.margin(instances, labels) == pytest.approx(expected, rel=1e-12)


def test_linear_max_margin_and_norm() -> None:
    """On the d k sub-experts ||z||^2 = 2 |p|^2, so that s^2 / delta^2 is R^2 / gamma^2."""
    x, labels = separable(20 if JIT else 8, 3, 3, seed=2)
    instances = linmax.instances(attributes=x, classes=range(3), thresholds=False)
    for t, label in enumerate(labels):
        z = instances.differences(t, label, range(3))
        assert np.sum(z * z, axis=1) == pytest.approx(2.0 * (x[t] @ x[t]))


def test_bias_is_part_of_the_point() -> None:
    x, labels = separable(20 if JIT else 8, 2, 3, seed=3)
    with_bias = linmax.instances(attributes=x, classes=range(3))
    appended = linmax.instances(attributes=np.hstack([np.ones((len(x), 1)), x]), classes=range(3), thresholds=False)
    assert with_bias.radius == pytest.approx(appended.radius)
    assert with_bias.radius == pytest.approx(math.sqrt(1.0 + np.max(np.sum(x * x, axis=1))))
    first = run("perceptron", with_bias, labels, passes=50, update_on_tie=False)
    second = run("perceptron", appended, labels, passes=50, update_on_tie=False)
    assert np.array_equal(first.predictions, second.predictions)
    assert np.array_equal(first.model.weights.arrays.flat, second.model.weights.arrays.flat)
    assert first.model.margin(with_bias, labels) == second.model.margin(appended, labels)


def test_radius_of_voters_is_refused() -> None:
    with pytest.raises(ValueError, match="radius is defined for attributes only; these instances have voters"):
        _ = linmax.instances(votes=[["a"]]).radius
