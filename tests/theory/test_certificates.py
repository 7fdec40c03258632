"""Certificates: the best comparator by brute force and by duality, and bounds that no run breaks."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog
from test_bounds import CASES, holds

import linmax
import reference
from linmax.theory import adversaries, bounds
from linmax.theory.certificates import certify, certify_rows, hinge_noise, least_noise, widest_margin
from linmax.theory.rows import Rows

Vector = npt.NDArray[np.float64]


def random_rows(seed: int, trials: int, k: int, n: int, flips: float) -> tuple[Vector, npt.NDArray[np.int64]]:
    """Rows of a multi-class problem: k - 1 a trial, mostly on the right side of a hidden u >= 0."""
    random = np.random.default_rng(seed)
    u = random.dirichlet(np.full(n, 0.5))
    x = random.choice([0.0, 0.5, 1.0], (trials, k, n))
    labels = np.where(random.random(trials) < flips, random.integers(k, size=trials), np.argmax(x @ u, axis=1))
    rows = [x[t, labels[t]] - x[t, j] for t in range(trials) for j in range(k) if j != labels[t]]
    return np.array(rows), np.repeat(np.arange(trials), k - 1)


def circle(order: float, positive: bool) -> Vector:
    """Many u of unit norm in the plane."""
    angles = np.linspace(0, math.pi / 2 if positive else 2 * math.pi, 2881)
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return points / ((np.abs(points) ** order).sum(axis=1) ** (1 / order))[:, None]


def shares(rows: Rows, u: Vector, margin: float, softness: float) -> Vector:
    """Weights p of the rows with sum over a trial at most 1: a feasible point of the dual problems."""
    excess = (margin - rows.matrix @ u) / softness
    counts = np.diff(np.append(rows.starts, len(excess)))
    top = np.maximum(np.maximum.reduceat(excess, rows.starts), 0.0)
    parts = np.exp(excess - np.repeat(top, counts))
    return np.asarray(parts / np.repeat(np.exp(-top) + np.add.reduceat(parts, rows.starts), counts))


def norm(v: Vector, p: float) -> float:
    return float(np.abs(v).max()) if math.isinf(p) else float((np.abs(v) ** p).sum() ** (1 / p))


# -- widest margin ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "positive"), [(1.0, False), (1.0, True), (2.0, False), (1.5, False), (1.2, False)])
@given(seed=st.integers(0, 10**6), trials=st.integers(1, 8))
@settings(max_examples=15, deadline=None)
def test_widest_margin_by_brute_force(order: float, positive: bool, seed: int, trials: int) -> None:
    random = np.random.default_rng(seed)
    rows = random.uniform(-1, 1, (trials, 2))
    rows *= np.where(rows @ [0.6, 0.4] < 0, -1.0, 1.0)[:, None]
    u, margin = widest_margin(rows, order=order, positive=positive)
    best = float((rows @ circle(order, positive).T).min(axis=0).max())
    assert margin >= best - 1e-4  # no point of the circle does better
    assert margin <= best + 5e-3  # and the circle is fine enough to come near
    assert margin == pytest.approx(float((rows @ u).min()))
    assert norm(u, order) == pytest.approx(1.0)
    assert not positive or u.min() >= 0


@pytest.mark.parametrize("positive", [False, True])
def test_widest_margin_by_duality(positive: bool) -> None:
    """The largest margin in the 1-norm is the least max_i |sum p z|_i over distributions p: a game."""
    rows, trial = random_rows(1, 300, 4, 12, 0.0)
    u, margin = widest_margin(rows, trial, positive=positive)
    count, n = rows.shape
    columns = rows.T if positive else np.vstack([rows.T, -rows.T])
    game = linprog(
        np.append(np.zeros(count), 1.0),
        A_ub=np.hstack([columns, -np.ones((len(columns), 1))]),
        b_ub=np.zeros(len(columns)),
        A_eq=np.append(np.ones(count), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * count + [(None, None)],
    )
    assert margin > 0
    assert margin == pytest.approx(game.fun, abs=1e-7)
    assert np.abs(u).sum() == pytest.approx(1.0)
    assert u.shape == (n,)


@pytest.mark.parametrize("order", [2.0, 1.5, 1.2])
def test_widest_margin_in_other_norms_by_duality(order: float) -> None:
    """Weak duality: the margin is at most ||sum p z||_p for every distribution p; here the two meet."""
    rows, trial = random_rows(2, 400, 3, 10, 0.0)
    u, margin = widest_margin(rows, trial, order=order)
    dual = order / (order - 1)
    # the rows near the margin, weighted so that their sum points along u
    near = rows[rows @ u < margin + 0.02]
    game = linprog(
        np.append(np.zeros(len(near)), 1.0),  # least largest deviation of sum p z from the direction of u's dual
        A_ub=np.vstack([np.c_[near.T, -np.ones(10)], np.c_[-near.T, -np.ones(10)]]),
        b_ub=np.concatenate([target := margin * np.sign(u) * np.abs(u) ** (order - 1), -target]),
        A_eq=np.append(np.ones(len(near)), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * (len(near) + 1),
    )
    ceiling = norm(near.T @ game.x[:-1], dual)
    assert margin <= ceiling + 1e-9
    assert margin == pytest.approx(ceiling, rel=5e-3)


def test_support_vector_margin_is_that_of_the_multiclass_perceptron() -> None:
    """gamma of the multi-class Perceptron is the 2-norm margin of the z blocks over sqrt(2)."""
    random = np.random.default_rng(4)
    points, weights = random.normal(size=(60, 3)), random.normal(size=(3, 3))
    labels = [int(np.argmax(weights @ p)) for p in points]
    rows = np.array(
        [
            np.kron(p, np.eye(3)[y] - np.eye(3)[j])
            for p, y in zip(points, labels, strict=True)
            for j in range(3)
            if j != y
        ]
    )
    u, margin = widest_margin(rows, order=2)
    found = u.reshape(3, 3).T
    assert reference.margin(found, points, labels) == pytest.approx(margin / math.sqrt(2))
    assert margin / math.sqrt(2) >= reference.margin(weights, points, labels)
    result = reference.multiclass_perceptron(points, labels, 3)
    assert result.violations <= bounds.multiclass_perceptron(reference.radius(points), margin / math.sqrt(2))


def test_not_separable() -> None:
    rows = [[1.0, 0.5], [-1.0, -0.5]]
    for order in (1.0, 1.5, 2.0):
        assert widest_margin(rows, order=order)[1] == pytest.approx(0.0, abs=1e-12)
    assert widest_margin(rows, positive=True)[1] < 0


# -- least noise -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "positive"), [(1.0, False), (1.0, True), (2.0, False), (1.5, False)])
@given(seed=st.integers(0, 10**6), margin=st.floats(0.05, 0.8), trials=st.integers(1, 6))
@settings(max_examples=12, deadline=None)
def test_least_noise_by_brute_force(order: float, positive: bool, seed: int, margin: float, trials: int) -> None:
    random = np.random.default_rng(seed)
    rows = random.uniform(-1, 1, (2 * trials, 2))
    trial = np.repeat(np.arange(trials), 2)
    u, noise = least_noise(rows, margin, trial, order=order, positive=positive)
    candidates = circle(order, positive)
    if not positive:
        candidates = np.concatenate([size * candidates for size in np.linspace(0, 1, 41)])
    worst = np.minimum.reduceat(rows @ candidates.T, np.arange(0, 2 * trials, 2), axis=0)
    best = float(np.maximum(0.0, margin - worst).sum(axis=0).min())
    assert noise == pytest.approx(hinge_noise(rows, u, margin, trial))
    assert noise <= best + 1e-3 * trials + 1e-9
    assert noise >= best - 0.03 * trials
    assert norm(u, order) <= 1 + 1e-9


@pytest.mark.parametrize(("order", "positive"), [(1.0, False), (1.0, True), (2.0, False), (1.5, False)])
@pytest.mark.parametrize("margin", [0.05, 0.3])
def test_least_noise_by_duality(order: float, positive: bool, margin: float) -> None:
    """N >= margin sum p - max over the ball of u.(sum p z) for all p >= 0 with sum over a trial <= 1."""
    rows, trial = random_rows(3, 250, 4, 8, 0.2)
    u, noise = least_noise(rows, margin, trial, order=order, positive=positive)
    assert noise == pytest.approx(hinge_noise(rows, u, margin, trial))
    count, n = rows.shape
    groups = sparse.csr_array((np.ones(count), (trial, np.arange(count))), shape=(250, count))
    within = sparse.hstack([groups, sparse.csr_array((250, 1))])
    if order == 1.0:
        columns = rows.T if positive else np.vstack([rows.T, -rows.T])
        largest = sparse.hstack([sparse.csr_array(columns), -np.ones((len(columns), 1))])
        slack = np.zeros(len(columns))
    else:  # at the optimum sum p z = t (slope of the norm at u); a hair of room for rounding
        slope = np.sign(u) * (np.abs(u) / norm(u, order)) ** (order - 1)
        along = sparse.hstack([sparse.csr_array(rows.T), -slope[:, None]])
        largest, slack = sparse.vstack([along, -along]), np.full(2 * n, 1e-3)
    dual = linprog(
        np.append(-margin * np.ones(count), 1.0),
        A_ub=sparse.vstack([largest, within]),
        b_ub=np.concatenate([slack, np.ones(250)]),
        bounds=[(0, None)] * count + [(None, None) if order == 1.0 else (0, None)],
    )
    if order == 1.0:
        assert noise == pytest.approx(-dual.fun, rel=1e-7)
        return
    p = dual.x[:-1]
    floor = margin * float(p.sum()) - norm(rows.T @ p, order / (order - 1))
    assert floor <= noise + 1e-6
    assert noise == pytest.approx(floor, rel=2e-3)


# -- the least bound -------------------------------------------------------------------------------------


def simplex(n: int, steps: int) -> Vector:
    """All u >= 0 with sum 1 on a grid."""
    if n == 1:
        return np.array([[1.0]])
    parts = [
        np.c_[np.full(len(rest), first), (1 - first) * rest]
        for first in np.linspace(0, 1, steps)
        for rest in [simplex(n - 1, steps)]
    ]
    return np.concatenate(parts)


@pytest.mark.parametrize("alpha", [None, 1.1, 1.5])
@given(seed=st.integers(0, 10**6), flips=st.sampled_from([0.0, 0.2]))
@settings(max_examples=3, deadline=None)
def test_least_winnow_bound_by_brute_force(alpha: float | None, seed: int, flips: float) -> None:
    rows, trial = random_rows(seed, 60, 3, 3, flips)
    found = certify_rows(rows, trial, "winnow" if alpha is None else f"winnow({alpha})")
    table = Rows(rows, trial)
    best = math.inf
    for u in simplex(3, 13):
        lowest = table.lowest(u)
        for margin in np.geomspace(0.03, 2.0, 15):
            noise = float(np.maximum(0.0, margin - lowest).sum())
            if noise == 0.0 and margin > 1.0:
                continue
            step = alpha or bounds.best_alpha(bounds.divergence(u), float(margin), noise)
            best = min(best, bounds.multiplicative(u, float(margin), step, noise))
    assert found.bound <= best * (1 + 1e-3) + 1e-6


@pytest.mark.parametrize("learner", ["perceptron", "p-norm(3)", "alma(2)"])
@given(seed=st.integers(0, 10**6), flips=st.sampled_from([0.0, 0.2]))
@settings(max_examples=6, deadline=None)
def test_least_additive_bound_by_brute_force(learner: str, seed: int, flips: float) -> None:
    rows, trial = random_rows(seed, 60, 3, 2, flips)
    found = certify_rows(rows, trial, learner)
    p = 3.0 if learner.startswith("p") and "3" in learner else 2.0
    sizes = np.array([norm(z, p) for z in rows])
    if learner == "alma(2)":
        rows = rows / np.where(sizes > 0, sizes, 1.0)[:, None]
    table = Rows(rows, trial)
    best = math.inf
    for u in circle(p / (p - 1), positive=False)[::20]:
        lowest = table.lowest(u)
        for margin in np.geomspace(0.01, 50.0, 60):
            noise = float(np.maximum(0.0, margin - lowest).sum())
            if learner == "alma(2)":
                value = bounds.alma(2.0, float(margin), noise)
            else:
                value = bounds.p_norm(p, float(sizes.max()), 1.0, float(margin), noise)
            best = min(best, value)
    assert found.bound <= best * (1 + 1e-3)


@pytest.mark.parametrize("flips", [0.0, 0.2])
def test_least_winnow_bound_by_duality(flips: float) -> None:
    """No u and margin give less than m if some p with sum m, at most 1 a trial, has

    ln n - ln sum_i exp(r (sum p z)_i) + m growth(r) >= 0.
    """
    alpha = 1.05
    rows, trial = random_rows(5, 600, 4, 15, flips)
    found = certify_rows(rows, trial, f"winnow({alpha})")
    rate, table = math.log(alpha), Rows(rows, trial)
    growth = bounds.log_growth(rate, 0.0, float(np.abs(rows).max()))

    def excluded(m: float) -> bool:
        for softness in np.geomspace(1e-5, 1e-1, 60):
            p = shares(table, found.u, found.margin, softness * found.margin)
            if p.sum() < m:
                continue
            lifted = rate * (rows.T @ (p * (m / p.sum())))
            if math.log(15) - float(np.logaddexp.reduce(lifted)) + m * growth >= 0:
                return True
        return False

    assert not excluded(found.bound * 1.0001)
    assert excluded(found.bound * 0.995)


def test_majority_problem_does_better_than_its_target() -> None:
    data = linmax.datasets.majority_problem(n=20, r=10, k=5, noise=0.0, trials=1000, seed=1)
    target = np.array([1 / 12] * 10 + [0.0] * 10 + [4 / 60, 3 / 60, 2 / 60, 1 / 60, 0.0])
    instances = linmax.instances(votes=data.votes)
    found = certify(instances, data.labels, "winnow")
    assert found.separable
    assert found.alpha is not None
    assert found.bound < bounds.multiplicative(target, 1 / 60, bounds.best_alpha(bounds.divergence(target), 1 / 60))
    assert found.mistakes is not None
    assert found.mistakes <= found.updates <= found.bound < 1000
    assert not found.vacuous
    rows = np.concatenate([instances.differences(t, y) for t, y in enumerate(data.labels)])
    trial = np.repeat(np.arange(1000), 4)
    assert found.noise == pytest.approx(hinge_noise(rows, found.u, found.margin, trial))
    again = bounds.multiplicative(found.u, found.margin, found.alpha, found.noise)
    assert again == pytest.approx(found.bound)


# -- no run breaks its certificate -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "learner", ["R(s=10, u=3)-winnow(1.1)", "V(d=10)-perceptron", "V(d=10)R(s=10, u=2)-perceptron"]
)
def test_techniques_that_keep_a_bound(learner: str) -> None:
    data = linmax.datasets.majority_problem(n=6, r=3, k=3, noise=0.1, trials=200, seed=3)
    found = certify(linmax.instances(votes=data.votes), data.labels, learner)
    assert holds(found.mistakes or 0, found.bound)
    rule = learner.rsplit("-", 1)[1]
    plain = certify(linmax.instances(votes=data.votes), data.labels, rule)
    assert found.bound > plain.bound


@pytest.mark.parametrize("learner", ["winnow(1.1)", "perceptron", "balanced-winnow(1.05)"])
def test_turncoats_are_noise(learner: str) -> None:
    votes, labels = adversaries.turncoats(n=8, relevant=3, k=3, trials=300, seed=1)
    found = certify(linmax.instances(votes=votes), labels, learner)
    assert found.separable is False
    assert holds(found.updates or 0, found.bound)


@pytest.mark.parametrize("name", ["perceptron", "winnow 1.05", "balanced 1.1", "alma 2", "p-norm 3"])
def test_adversary_within_its_certificate(name: str) -> None:
    """The comparator that was found is at least as good as the one that the adversary had in mind."""
    case, n = CASES[name], 60
    learner = case.make(n)
    adversary = adversaries.balanced_mass(n, 3)
    game = adversaries.play(adversary, lambda: learner.w, learner.update, 150)
    text = {
        "winnow 1.05": "winnow(1.05)",
        "balanced 1.1": "balanced-winnow(1.1)",
        "alma 2": "alma(2)",
        "p-norm 3": "p-norm(3)",
    }
    found = certify_rows(game.rows, learner=text.get(name, name))
    assert holds(game.updates, found.bound)


# -- two classes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_two_classes(kind: str) -> None:
    random = np.random.default_rng(6)
    x = random.uniform(-1, 1, (150, 6))
    labels = np.where(x @ [1, -1, 0.5, 0, 0, 0] > 0, "yes", "no")
    found = certify(x if kind == "dense" else sparse.csr_array(x), labels, "balanced-winnow(1.1)")
    rows = np.where(labels == "yes", 1.0, -1.0)[:, None] * x
    plain = certify_rows(rows, learner="balanced-winnow(1.1)")
    assert found.bound == pytest.approx(plain.bound, rel=1e-3)
    assert found.separable
    assert found.u @ [1, -1, 0.5, 0, 0, 0] > 0
    assert holds(found.updates or 0, found.bound)


def test_the_comparator_is_laid_out_like_the_weights() -> None:
    """u of attributes: coordinate of (attribute, class) as in the weights of a run, classes in the same order."""
    random = np.random.default_rng(8)
    x = random.normal(size=(120, 2))
    labels = np.array(["b", "c", "a"])[np.argmax(x @ [[1.0, -1.0, 0.0], [0.0, 0.5, -1.0]], axis=1)]
    instances = linmax.instances(attributes=x)
    found = certify(instances, labels, "perceptron")
    trace = linmax.run("perceptron", instances, labels, passes=200)
    weights = trace.model.weights.arrays.flat
    assert trace.consistent
    assert weights.shape == found.u.shape
    assert weights @ found.u / np.linalg.norm(weights) > 0.7  # both separate the data


# -- sampling, speed, printing ---------------------------------------------------------------------------


def test_a_sample_still_gives_a_true_bound() -> None:
    rows, trial = random_rows(7, 2000, 3, 8, 0.1)
    full = certify_rows(rows, trial, "winnow")
    found = certify_rows(rows, trial, "winnow", most_rows=400)
    assert full.sampled is None
    assert found.sampled == 200
    assert "200 of 2000" in str(found)
    assert found.noise == pytest.approx(hinge_noise(rows, found.u, found.margin, trial))
    assert full.bound <= found.bound * (1 + 1e-6)
    assert found.bound == pytest.approx(full.bound, rel=0.2)
    assert found.alpha is not None
    assert found.bound == pytest.approx(bounds.multiplicative(found.u, found.margin, found.alpha, found.noise))


def test_five_thousand_instances_within_a_minute() -> None:
    data = linmax.datasets.majority_problem(n=20, r=10, k=5, noise=0.05, trials=5000, seed=0)
    begun = time.process_time()  # the machine may be busy
    found = certify(linmax.instances(votes=data.votes), data.labels, "winnow(1.03)")
    assert time.process_time() - begun < 60
    assert len(found.u) == 25
    assert found.sampled is None
    assert found.mistakes is not None
    assert found.mistakes <= found.bound < 5000


def test_it_prints_a_table() -> None:
    found = certify_rows([[1.0, 0.0, 0.0], [1.0, 1.0, -1.0]] * 50, learner="winnow(1.5)")
    text = str(found)
    assert text.splitlines()[0] == "winnow(1.5), 100 trials"
    for word in ("mistakes", "not run", "bound", "best alpha", "margin", "noise", "separable", "yes", "u[0]"):
        assert word in text


# -- bad input -------------------------------------------------------------------------------------------


def test_rows_of_zeros_count_as_noise() -> None:
    zeros = certify_rows(np.zeros((20, 3)), learner="perceptron")
    assert zeros.vacuous
    assert zeros.separable is False
    assert zeros.bound == pytest.approx(20)
    mixed = certify_rows([[1.0, 0.0]] * 50 + [[0.0, 0.0]] * 5, learner="winnow(2)")
    assert mixed.separable is False
    assert 5 < mixed.bound < 55


def test_where_theory_is_silent() -> None:
    noisy = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]] * 10
    found = certify_rows(noisy, learner="alma(2, project=False)")
    assert found.bound == math.inf
    assert found.vacuous
    assert "infinite" in str(found)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: certify_rows(np.zeros((0, 3))), "not empty"),
        (lambda: certify_rows([1.0, 2.0]), "rows must be"),
        (lambda: certify_rows([[math.nan]]), "finite"),
        (lambda: certify_rows([[1.0], [2.0]], [0]), "one trial a row"),
        (lambda: certify_rows([[1.0]], learner="sasb"), "no bound from data is known for sasb"),
        (lambda: certify_rows([[1.0]], learner="pa-i(0.1)"), "its bound is on mistakes, not on updates"),
        (lambda: certify_rows([[1.0]], learner="romma"), "for romma: it is known for separable trials only"),
        (lambda: certify_rows([[1.0]], learner="winnow(2, threshold=3)"), "no bound from data is known"),
        (lambda: certify_rows([[1.0]], learner="A-perceptron"), "no bound is known for A-perceptron"),
        (lambda: certify_rows([[1.0]], most_rows=0), "most_rows must be >= 1"),
        (lambda: hinge_noise([[1.0, 0.0]], [1.0], 0.1), "one weight a column: 2"),
        (lambda: least_noise([[1.0]], 0.0), "margin must be > 0"),
        (lambda: widest_margin([[1.0]], order=3), "order must be from 1 to 2"),
        (lambda: widest_margin([[1.0]], order=2, positive=True), "positive=True belongs to order=1"),
        (lambda: certify([[1.0], [2.0]], [1]), "one per trial"),
        (lambda: certify([[1.0], [2.0]], [1, 1]), "labels must be two"),
        (lambda: certify(np.zeros((0, 2)), []), "instances must not be empty"),
        (lambda: certify(linmax.instances(votes=[["a"], ["a"]]), ["a", "a"]), "two classes or more"),
        (lambda: certify(linmax.instances(votes=[["a"]], classes=["a", "b"]), ["x"]), "'x' is not among the classes"),
    ],
)
def test_bad_input_is_named(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.small
@pytest.mark.parametrize("learner", ["B-perceptron", "B(gamma=0.5)-winnow(1.1)", "B(gamma=1)-perceptron"])
def test_a_bound_that_lucky_draws_alone_would_keep_is_vacuous(learner: str) -> None:
    """Of labels at random nothing is learned; some of the classes drawn are right all the same."""
    random = np.random.default_rng(0)
    found = certify(
        linmax.instances(votes=random.integers(0, 4, (60, 3)), classes=[0, 1, 2, 3]), random.integers(0, 4, 60), learner
    )
    assert found.bound < found.trials
    assert found.bound >= found.most * (1 - 1e-9)
    assert found.vacuous
    assert "(vacuous)" in str(found)


@pytest.mark.small
def test_finite_bound_of_expected_mistakes() -> None:
    votes = np.tile([[0, 1], [1, 2], [2, 0]], (400, 1))
    found = certify(linmax.instances(votes=votes, thresholds=False), votes[:, 0], "B(gamma=0.3)-perceptron")
    assert found.bound < found.most < found.trials
    assert not found.vacuous


@pytest.mark.small
def test_an_alpha_next_to_one_is_not_rounded_to_it() -> None:
    """Of equal attributes the first weights are the best: the smaller alpha, the smaller the bound."""
    found = certify_rows([[1.0, 0.0], [0.0, 1.0]] * 30 + [[-1.0, -1.0]] * 2, learner="winnow")
    assert found.alpha is not None
    assert 1.0 < found.alpha < 1.00001
    assert str(linmax.parse(found.learner)) == found.learner
    assert "best alpha  1 (" not in str(found)


def test_soft_margin_on_separable_data() -> None:
    """One instance near the boundary: the largest margin gives a larger bound than a little noise."""
    rows = np.array([[1.0, 0.0]] * 40 + [[-1.0, 1e-3]])
    found = linmax.theory.certificates.certify_rows(rows, learner="perceptron")
    assert found.separable
    assert found.noise > 0.0
    assert found.widest is not None
    margin, bound = found.widest
    assert margin == pytest.approx(widest_margin(rows, order=2.0)[1])
    assert bound == pytest.approx(
        linmax.theory.bounds.perceptron(float(np.linalg.norm(rows, axis=1).max()), 1.0, margin)
    )
    assert bound > found.bound
    assert f"hard margin  {margin:.6g} (bound" in str(found)
