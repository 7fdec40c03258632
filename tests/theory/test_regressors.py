"""EG and EG+- against their formulas and their bound."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from linmax.theory.regressors import EG, EGPM

pytestmark = pytest.mark.small


def eg(X, y, eta):
    """EG, line by line: predictions and final weights."""
    w = np.full(X.shape[1], 1 / X.shape[1])
    predictions = []
    for x, value in zip(X, y, strict=True):
        yhat = w @ x
        predictions.append(yhat)
        w = w * np.exp(-2 * eta * (yhat - value) * x)
        w = w / w.sum()
    return np.array(predictions), w


@st.composite
def data(draw, low, high):
    """Rows within [low, high], values of any small size, not necessarily linear in the rows."""
    n, rows = draw(st.integers(1, 6)), draw(st.integers(1, 25))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    X = rng.uniform(low, high, (rows, n))
    if draw(st.booleans()):
        X = rng.choice([low, 0.0, high], (rows, n))
    y = X @ rng.dirichlet(np.ones(n)) + draw(st.sampled_from([0.0, 0.1, 3.0])) * rng.standard_normal(rows)
    return X, y, rng


# -- the formulas ----------------------------------------------------------------------------------------


def test_one_step_of_eg_by_hand():
    regressor = EG(eta=0.5)
    assert regressor.learn([1.0, 0.0], 1.0) == 0.5
    factor = math.exp(2 * 0.5 * 0.5)  # exp(-2 eta (yhat - y) x), yhat - y = -1/2
    np.testing.assert_allclose(regressor.weights, [factor / (factor + 1), 1 / (factor + 1)], rtol=1e-14)


def test_one_step_of_egpm_by_hand():
    regressor = EGPM(eta=0.5, total=2.0)
    assert regressor.learn([1.0, 0.0], 1.0) == 0.0
    r = math.exp(2 * 0.5 * 2)
    z = r + 1 / r + 2
    np.testing.assert_allclose(regressor.weights, [2 * (r - 1 / r) / z, 0.0], rtol=1e-14)


@settings(max_examples=40, deadline=None)
@given(data(0.0, 1.0), st.sampled_from([0.01, 0.3, 1.0, 2.0]))
def test_eg_equals_its_formula(problem, eta):
    X, y, _ = problem
    regressor = EG(eta)
    expected, weights = eg(X, y, eta)
    np.testing.assert_allclose(regressor.run(X, y), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(regressor.weights, weights, rtol=1e-9, atol=1e-12)
    assert regressor.weights.sum() == pytest.approx(1.0, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(data(-1.0, 1.0), st.sampled_from([0.01, 0.1, 0.4]), st.sampled_from([0.5, 1.0, 3.0]))
def test_egpm_is_eg_on_both_signs(problem, eta, total):
    X, y, _ = problem
    regressor, n = EGPM(eta, total), X.shape[1]
    both, w = eg(np.hstack([total * X, -total * X]), y, eta)
    np.testing.assert_allclose(regressor.run(X, y), both, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(regressor.weights, total * (w[:n] - w[n:]), rtol=1e-9, atol=1e-10)
    assert np.abs(regressor.weights).sum() <= total * (1 + 1e-12)


@pytest.mark.parametrize("regressor", [EG, EGPM])
def test_one_trial_at_a_time_equals_a_run(regressor):
    rng = np.random.default_rng(2)
    X = rng.random((40, 3))
    y = X @ [0.2, 0.5, 0.3] + 0.1 * rng.standard_normal(40)
    whole, single, parts = regressor(), regressor(), regressor()
    predictions = whole.run(X, y)
    before = [(single.predict(x), single.learn(x, value)) for x, value in zip(X, y, strict=True)]
    # A processor that fuses multiplications and additions rounds a sum that cancels differently.
    np.testing.assert_allclose([p for p, _ in before], predictions, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal([p for _, p in before], predictions)
    np.testing.assert_array_equal(np.concatenate([parts.run(X[:7], y[:7]), parts.run(X[7:], y[7:])]), predictions)
    np.testing.assert_array_equal(single.weights, whole.weights)
    assert parts.run(X[:0], y[:0]).shape == (0,)


def test_the_presets_of_the_paper():
    assert EG(range=2.0).eta == pytest.approx(2 / (3 * 4))
    assert EGPM(total=3.0, bound=2.0).eta == pytest.approx(1 / (3 * 9 * 4))
    X, y = np.array([[0.0, 1.0]]), np.array([1.0])
    # c = 2/3: 3/2 loss + 3/2 KL; KL = ln 2 for a corner.  c = 4/3: 3 loss + 3 KL with ln 4.
    assert EG().loss_bound([1, 0], X, y) == pytest.approx(1.5 + 1.5 * math.log(2))
    assert EGPM().loss_bound([1, 0], X, y) == pytest.approx(3 + 3 * math.log(4))


# -- the bound -------------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(data(0.0, 1.0), st.sampled_from([0.05, 2 / 3, 1.0, 1.9]))
def test_the_bound_of_eg_holds(problem, c):
    X, y, rng = problem
    regressor = EG(eta=c)
    loss = np.sum((regressor.run(X, y) - y) ** 2)
    n = X.shape[1]
    comparators = [np.full(n, 1 / n), np.eye(n)[0], rng.dirichlet(np.ones(n)), rng.dirichlet(np.full(n, 0.1))]
    for u in comparators:
        u = np.abs(u) / np.abs(u).sum()
        assert loss <= regressor.loss_bound(u, X, y) * (1 + 1e-9) + 1e-12


@settings(max_examples=80, deadline=None)
@given(data(-2.0, 2.0), st.sampled_from([0.05, 1.0, 4 / 3, 1.9]), st.sampled_from([0.5, 2.0]))
def test_the_bound_of_egpm_holds(problem, c, total):
    X, y, rng = problem
    regressor = EGPM(eta=c / (4 * total * total * 4), total=total, bound=2.0)
    loss = np.sum((regressor.run(X, y) - y) ** 2)
    n = X.shape[1]
    for inside in (0.0, 0.5, 1.0):
        u = rng.dirichlet(np.ones(n)) * rng.choice([-1, 1], n)
        u *= inside * total / np.abs(u).sum()
        assert loss <= regressor.loss_bound(u, X, y) * (1 + 1e-9) + 1e-12


def test_the_bound_is_far_from_empty():
    """A sparse target among 200 attributes: a loss near the bound, far below that of zero weights."""
    rng = np.random.default_rng(3)
    X = rng.choice([-1.0, 1.0], (400, 200))
    u = np.zeros(200)
    u[7], u[100] = 0.6, -0.4
    regressor = EGPM()
    loss = np.sum((regressor.run(X, X @ u) - X @ u) ** 2)
    bound = regressor.loss_bound(u, X, X @ u)
    assert 0.1 * bound < loss <= bound < 0.1 * np.sum((X @ u) ** 2)


def test_the_divergence_is_the_least_over_all_splittings():
    u, total, n = np.array([0.4, -0.1, 0.0]), 1.0, 3
    regressor = EGPM(eta=0.1, total=total)
    X, y = np.zeros((1, n)), np.zeros(1)
    least = regressor.loss_bound(u, X, y) * 0.1  # no loss: what remains is KL / eta
    spare = (total - np.abs(u).sum()) / 2
    rng = np.random.default_rng(0)
    tried = []
    for share in rng.dirichlet(np.ones(n), 3000):
        parts = np.concatenate([np.maximum(u, 0) + spare * share, np.maximum(-u, 0) + spare * share])
        tried.append(math.log(2 * n) + np.sum(parts * np.log(np.where(parts > 0, parts, 1))))
    assert least <= min(tried) + 1e-12
    assert least == pytest.approx(min(tried), abs=2e-3)
    assert regressor.loss_bound(np.zeros(n), X, y) == pytest.approx(0.0, abs=1e-9)


def test_no_bound_outside_theorem():
    X, y = np.array([[0.0, 1.0]]), np.array([1.0])
    assert EG(eta=2.0).loss_bound([0.5, 0.5], X, y) == math.inf
    assert EGPM(eta=0.5).loss_bound([0.5, 0.5], X, y) == math.inf
    assert EG(eta=1e308, range=1e60).loss_bound([0.5, 0.5], X, y) == math.inf


# -- extremes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eta", [5e-324, 1e-300, 1e3, 1e100, 1.7e308])
@pytest.mark.parametrize("size", [1.0, 1e100, 1.7e308])
@pytest.mark.parametrize("make", [lambda eta: EG(eta, range=2.0), lambda eta: EGPM(eta, total=5.0)])
def test_no_nan_and_no_overflow(make, eta, size):
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 0.0, 1.0], (200, 4))
    y = size * rng.choice([-1.0, 0.0, 1.0], 200)
    regressor = make(eta)
    predictions = regressor.run(X, y)
    assert np.isfinite(predictions).all()
    assert np.abs(predictions).max() <= 5 * (1 + 1e-9)
    assert np.isfinite(regressor.weights).all()
    assert np.abs(regressor.weights).sum() <= 5 * (1 + 1e-9)
    assert math.isfinite(regressor.predict(X[0]))


def test_a_weight_comes_back_from_below_the_smallest_float():
    """exp(-1500) is 0 in floating point; its logarithm is kept, so the weight recovers as it should."""
    regressor = EG(eta=1.0)
    regressor.learn([1.0, 0.0], -750.0)  # yhat - y = 750.5: log weight of the first falls by 1501
    assert regressor.weights[0] == 0.0
    regressor.learn([1.0, 0.0], 750.5)  # yhat = 0, rises by 1501
    np.testing.assert_allclose(regressor.weights, [0.5, 0.5], atol=1e-9)


def test_many_large_steps_one_way():
    X = np.tile([1.0, 0.0], (20_000, 1))
    for regressor in (EG(eta=50.0), EGPM(eta=50.0)):
        regressor.run(X, np.full(20_000, 1e4))
        np.testing.assert_allclose(regressor.weights, [1.0, 0.0], atol=1e-12)


# -- input -----------------------------------------------------------------------------------------------


def test_every_kind_of_array_is_welcome():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, (30, 4)).astype(float)
    y = X @ [0.25, 0.25, 0.5, 0.0]
    expected = EG().run(X, y)
    frozen = X.copy()
    frozen.setflags(write=False)
    for kind in (
        X.astype(np.float32),
        X.astype(bool),
        X.tolist(),
        np.asfortranarray(X),
        frozen,
        X[::-1][::-1],
    ):
        np.testing.assert_array_equal(EG().run(kind, y.astype(np.float32)), expected)


def test_predicting_does_not_settle_the_number_of_attributes():
    regressor = EG()
    assert regressor.predict([0.0, 1.0]) == 0.5
    assert regressor.predict([0.0, 1.0, 0.0, 0.0]) == 0.25
    with pytest.raises(ValueError, match="call learn or run first"):
        regressor.weights  # noqa: B018


def test_a_refused_trial_changes_nothing():
    regressor = EG()
    regressor.learn([0.0, 1.0], 1.0)
    before = regressor.weights
    with pytest.raises(ValueError, match="y must be finite, got nan"):
        regressor.run([[1.0, 0.0], [0.0, 1.0]], [1.0, float("nan")])
    np.testing.assert_array_equal(regressor.weights, before)


def test_they_print_their_parameters():
    assert repr(EG(0.5)) == "EG(eta=0.5, range=1)"
    assert repr(EGPM(0.5, 2)) == "EGPM(eta=0.5, total=2, bound=1)"


def trained(regressor):
    regressor.learn([0.5, 0.5], 1.0)
    return regressor


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: EG(eta=0.0), ValueError, "eta must be > 0, got 0.0; try 0.666667 or remove it"),
        (lambda: EG(eta=math.nan), ValueError, "eta must be finite, got nan"),
        (lambda: EG(eta="fast"), TypeError, "eta must be a number, got 'fast'"),
        (lambda: EG(range=0.0), ValueError, "range must be > 0"),
        (lambda: EG(range=1e200), ValueError, "range must be > 0 .*, got 1e\\+200"),
        (lambda: EGPM(total=-1.0), ValueError, "total must be > 0 .*, got -1"),
        (lambda: EGPM(bound=math.inf), ValueError, "bound must be finite, got inf"),
        (
            lambda: EG().learn([0.0, 2.0], 1.0),
            ValueError,
            "^x must have .* within range = 1 .*got 2; try range=2",
        ),
        (lambda: EGPM().learn([0.0, -3.0], 1.0), ValueError, "magnitude <= bound = 1, got 3; try bound=3"),
        (lambda: EG().learn([0.0, math.nan], 1.0), ValueError, "x must be finite, got nan"),
        (lambda: EG().learn([0.0, 1.0], math.inf), ValueError, "y must be finite, got inf"),
        (lambda: EG().learn([0.0, 1.0], None), TypeError, "y must hold numbers"),
        (lambda: EG().learn([0.0, 1.0], [1.0, 2.0]), ValueError, "y must be one number, got shape"),
        (lambda: EG().learn(["a"], 1.0), TypeError, "x must hold numbers"),
        (
            lambda: EG().learn([], 1.0),
            ValueError,
            "x must have some attributes, got 0",
        ),
        (lambda: EG().learn([[1.0]], 1.0), ValueError, "x must be a vector, got shape"),
        (lambda: EG().run([1.0], [1.0]), ValueError, "X must be a matrix .*, got shape"),
        (lambda: EG().run([[1.0], [1.0, 0.0]], [1.0]), ValueError, "X has rows of different lengths"),
        (lambda: EG().run([[1.0]], [1.0, 2.0]), ValueError, "y must have 1 values, .* got 2"),
        (lambda: EG().run(sparse.csr_array([[1.0]]), [1.0]), TypeError, "try X.toarray"),
        (lambda: trained(EG()).predict([1.0]), ValueError, "x must have 2 attributes, got 1"),
        (
            lambda: trained(EGPM()).run([[1.0, 0.0, 0.0]], [1.0]),
            ValueError,
            "X must have 2 attributes, got 3",
        ),
        (
            lambda: EG().loss_bound([0.5, 0.6], [[0, 1]], [1]),
            ValueError,
            "u must be >= 0 with sum 1, got sum 1.1",
        ),
        (lambda: EG().loss_bound([1.5, -0.5], [[0, 1]], [1]), ValueError, "least -0.5"),
        (lambda: EG().loss_bound([1.0], [[0, 1]], [1]), ValueError, "u must have 2 weights"),
        (
            lambda: EGPM().loss_bound([1.0, -1.0], [[0, 1]], [1]),
            ValueError,
            "<= total = 1, got 2; try total=2",
        ),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()
