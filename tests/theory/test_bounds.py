"""The bounds: their numbers, their best parameters, and that no learner ever breaks them."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import reference_techniques as techniques
from linmax.theory import LinearThreshold, bounds

Vector = npt.NDArray[np.float64]

MAJORITY = [1 / 12] * 10 + [0.0] * 10 + [4 / 60, 3 / 60, 2 / 60, 1 / 60, 0.0]
"""Target of the majority problem (20 voters, 10 relevant, 5 thresholds), margin 1/60."""

few = settings(max_examples=25, deadline=None)


def holds(count: float, bound: float) -> bool:
    """count <= bound, up to the rounding of the bound itself."""
    return count <= bound * (1.0 + 1e-10)


# -- numbers ---------------------------------------------------------------------------------------------


def test_majority_problem_numbers() -> None:
    d = 1 / 60
    assert 3.2 * 3600 * bounds.divergence(MAJORITY) == pytest.approx(7328.85, abs=0.005)
    assert bounds.divergence(MAJORITY) == pytest.approx(math.log(25) - 2.5826911573, abs=1e-9)
    assert bounds.balanced_printed(MAJORITY, d) == pytest.approx(15313.90, abs=0.005)
    assert bounds.multiplicative(MAJORITY, d, 1 + d) == pytest.approx(4580.64, abs=0.005)
    assert bounds.multiplicative(MAJORITY, d, 1 + d / 2) == pytest.approx(6124.30, abs=0.005)
    assert bounds.balanced(MAJORITY, d, 1 + d) == pytest.approx(9571.41, abs=0.005)
    assert bounds.balanced(MAJORITY, d, 1 + d / 2) == pytest.approx(12796.96, abs=0.005)


def test_disjunction_of_five() -> None:
    """Mesterharm and Hsu's example; the threshold's weight is negative (they print 1/11)."""
    u, d = [2 / 11] * 5 + [0.0] * 94 + [-1 / 11], 1 / 11
    assert math.ceil(3.2 / d**2) == 388
    assert 3.2 / d**2 * math.log(200) == pytest.approx(2051.5, abs=0.05)
    assert 388 * math.log(200) == pytest.approx(2055.7, abs=0.05)
    assert bounds.balanced_printed(u, d) == pytest.approx(1367, abs=0.5)
    assert bounds.balanced(u, d, 1 + d) == pytest.approx(855, abs=0.5)
    assert bounds.balanced(u, d, 1 + d / 2) == pytest.approx(1156, abs=0.5)
    worst = np.array([1.0] * 5 + [0.0] * 94 + [1.0])  # all relevant true, yet labelled negative
    assert max(0.0, d + float(np.dot(u, worst))) / d == pytest.approx(10.0)


def test_coefficients_of_the_balanced_bound() -> None:
    """Factor of RE/delta^2 and of N/delta, for four settings of alpha."""
    settings_of = [
        lambda d: 1 + d,
        lambda d: 1 + d / 2,
        lambda d: (1 - d) ** -0.5,
        lambda d: math.sqrt((1 + d) / (1 - d)),
    ]
    table = {
        0.001: [(2.000, 1.999), (2.667, 1.333), (2.666, 1.334), (2.000, 2.000)],
        0.1: [(2.002, 1.908), (2.711, 1.323), (2.577, 1.357), (1.997, 2.003)],
        0.3: [(2.014, 1.762), (2.796, 1.302), (2.388, 1.420), (1.969, 2.032)],
        0.999: [(2.127, 1.475), (3.073, 1.246), (1.449, 5.010), (1.449, 5.511)],
    }
    u = [0.5, 0.5]
    for d, row in table.items():
        for alpha_of, (main, noise) in zip(settings_of, row, strict=True):
            alpha = alpha_of(d)
            base = bounds.balanced(u, d, alpha)
            assert base * d**2 / bounds.divergence_balanced(u) == pytest.approx(main, abs=6e-4)
            assert bounds.balanced(u, d, alpha, noise=d) - base == pytest.approx(noise, abs=6e-4)


@given(st.floats(1e-4, 1.0), st.floats(0.0, 1e4))
def test_printed_constants_hold_for_half_the_step(d: float, relative_noise: float) -> None:
    """(1) of Mesterharm and Hsu is true for alpha = 1 + delta/2 ..."""
    u = [0.3, -0.7, 0.0]
    exact = bounds.balanced(u, d, 1 + d / 2, noise=relative_noise * d)
    assert exact <= bounds.balanced_printed(u, d, relative_noise * d)


@given(st.floats(1e-3, 1.0))
def test_printed_noise_constant_fails_for_the_printed_step(d: float) -> None:
    """... and for alpha = 1 + delta its 1.35 is not what the proof gives."""
    u = [0.3, -0.7, 0.0]
    slope = bounds.balanced(u, d, 1 + d, noise=d) - bounds.balanced(u, d, 1 + d)
    assert 1.47 < slope <= 2.0


def test_winnow_numbers() -> None:
    assert bounds.winnow2_disjunction(5, 1000) == pytest.approx(166.4868, abs=5e-5)
    assert bounds.winnow2_disjunction(5, 1000) == pytest.approx(2 + 15 * (1 + math.log2(1000)))
    assert bounds.winnow1_disjunction(5, 1000) == pytest.approx(1 + 10 * (1 + math.log2(1000)))
    assert bounds.winnow2(1000, 5, 1.0, 2.0) == pytest.approx(bounds.winnow2_disjunction(5, 1000))
    assert bounds.winnow2(1000, 7 / 3, 1 / 3, 1 + 1 / 6) == pytest.approx(1095, abs=0.5)
    printed = 8 * 9 + 5 * 7 + 14 * 7 * 3 * math.log(1000)
    assert bounds.winnow2_printed(1000, 7 / 3, 1 / 3) == pytest.approx(printed)
    assert round(printed) == 2138


def test_committee_numbers() -> None:
    for n, k, printed, at_wrong, at_right in [
        (20000, 3, 178.3, None, 155.5),
        (20000, 5, 495.2, None, 411.9),
        (2000, 3, None, 137.9, 114.8),
    ]:
        u, d = np.r_[np.full(k, 1 / k), np.zeros(n - k)], 1 / k
        if printed is not None:
            assert bounds.committee_printed(n, d) == pytest.approx(printed, abs=0.05)
        if at_wrong is not None:
            assert bounds.multiplicative(u, d, (1 - d) ** -0.5) == pytest.approx(at_wrong, abs=0.05)
        assert bounds.multiplicative(u, d, math.sqrt((1 + d) / (1 - d))) == pytest.approx(at_right, abs=0.05)


def test_alma_numbers() -> None:
    g = 0.2
    assert bounds.alma_separable(3, g, C=1.0) == pytest.approx(2 / g**2 + 1)
    assert bounds.alma_separable(3, g) == pytest.approx(9 * 2 / (8 * g**2) + 2)
    alpha = 0.8
    width = 8 / alpha - 6
    own = bounds.alma_separable(2, g, alpha, B=math.sqrt(8) / alpha)
    assert own == pytest.approx((width + 1) ** 2 / (8 * g**2) + width)
    assert own < bounds.alma_printed(2, g, alpha)
    assert bounds.alma(2, g, noise=1e-12) == pytest.approx(8 / g**2, rel=1e-6)
    assert bounds.alma(2, g) == bounds.alma_separable(2, g)


def test_alma_unprojected_solves_its_equation() -> None:
    for p, g in [(2.0, 0.5), (2.0, 0.05), (4.0, 0.2), (2.0, 1.0)]:
        m = bounds.alma_unprojected(p, g)
        right = 1 + math.sqrt((p - 1) * (1 + math.log(m))) / (2 * g)
        assert math.sqrt(m + 1) == pytest.approx(right)


def test_batch_numbers() -> None:
    assert bounds.survival_run(10, 0.1, 0.05) == 54
    assert bounds.survival_examples(10, 0.1, 0.05) == 594
    assert bounds.survival_run_printed(0.1, 0.05) == 30
    assert bounds.two_phase_examples(10, 0.1, 0.05) == (591, 1976)
    assert bounds.average_risk(0.0, 200, 0.05) * 2 == pytest.approx(bounds.average_risk_printed(0.0, 200, 0.05))


def test_additive_numbers() -> None:
    assert bounds.perceptron(3, 2, 0.5) == pytest.approx(144)
    assert bounds.perceptron(1, 1, 0.5, noise=0.5) == pytest.approx(1 + 2 + 2 * math.sqrt(2))
    assert bounds.p_norm(4, 2, 1, 0.5) == pytest.approx(48)
    n = 50
    p = 2 * math.log(n)
    like_winnow = (p - 1) * math.e / 0.1**2
    assert bounds.p_norm(p, n ** (1 / p), 1.0, 0.1) == pytest.approx(like_winnow)  # ||z||_inf = ||u||_1 = 1


def test_recycling_and_voting_numbers() -> None:
    known = {"u": MAJORITY, "margin": 1 / 60, "alpha": 1.01}
    assert bounds.recycling(bounds.multiplicative, 5, noise=2.0, **known) == bounds.multiplicative(noise=10.0, **known)
    assert [bounds.most_restarts(t, 100) for t in (0, 99, 100, 299, 300, 700)] == [0, 0, 1, 1, 2, 3]
    assert bounds.elimination(7) == 7
    assert bounds.elimination(7, negated=True) == 8


def test_the_selection_penalty_divides_by_the_instances_tested() -> None:
    """One hypothesis, one instance: how often its risk lies above its sum, against what is promised."""
    n, failure = 1, 0.5
    promised = failure / (n + 1)
    quoted = math.sqrt(math.log(n * (n + 1) / failure) / (2 * (n + 1)))
    assert 1 - quoted > promised + 0.1  # risk just above the penalty, no error on the one instance
    assert 1 - bounds.selection_penalty(n, 1, failure) <= promised
    for tested in range(1, 30):  # no risk and no number of errors breaks the corrected one
        penalty = bounds.selection_penalty(30, tested, failure)
        for risk in np.linspace(0.01, 0.99, 50):
            few = [e for e in range(tested + 1) if e / tested + penalty < risk]
            tail = sum(math.comb(tested, e) * risk**e * (1 - risk) ** (tested - e) for e in few)
            assert tail <= failure / (30 * 31) * (1 + 1e-9)


# -- best parameters -------------------------------------------------------------------------------------


@given(
    st.floats(0.01, 5.0),
    st.floats(0.01, 0.99),
    st.one_of(st.just(0.0), st.floats(1e-3, 1e4)),
    st.floats(0.0, 0.9),
    st.floats(0.2, 5.0),
)
def test_best_alpha_is_best(learned: float, share: float, noise: float, thick: float, largest: float) -> None:
    margin = share * largest
    thickness = thick * margin

    def value(alpha: float) -> float:
        rate = math.log(alpha)
        gain = margin * rate - bounds.log_growth(rate, thickness, largest)
        return (learned + noise * rate) / gain if gain > 0 else math.inf

    alpha = bounds.best_alpha(learned, margin, noise, thickness, largest)
    best = value(alpha)
    assert math.isfinite(best)
    for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 1.5):
        assert best <= value(1.0 + (alpha - 1.0) * factor) * (1 + 1e-9)


@given(st.floats(0.01, 0.999))
def test_noise_free_alpha(d: float) -> None:
    assert bounds.best_alpha(1.0, d) == pytest.approx(math.sqrt((1 + d) / (1 - d)))
    exact = bounds.multiplicative([1.0, 0.0, 0.0], d, bounds.best_alpha(1.0, d))
    entropy = ((1 + d) * math.log(1 + d) + (1 - d) * math.log(1 - d)) / 2
    assert exact == pytest.approx(math.log(3) / entropy)
    assert exact <= bounds.committee_printed(3, d) * (1 + 1e-12)
    assert bounds.balanced([1.0, 0, 0], d, bounds.best_alpha(1.0, d)) <= bounds.winnow_printed(3, 1, 1, d) * (1 + 1e-12)


def test_alpha_at_margin_one_is_the_halving_algorithm() -> None:
    u = np.eye(64)[0]
    assert bounds.multiplicative(u, 1.0, bounds.best_alpha(math.log(64), 1.0)) == pytest.approx(6.0, rel=1e-6)


def test_best_beta_and_winnow2_alpha() -> None:
    beta = bounds.best_beta(10, 20)
    assert all(
        bounds.weighted_majority(10, 20, beta) <= bounds.weighted_majority(10, 20, b) + 1e-9
        for b in np.linspace(0.01, 0.99, 99)
    )
    alpha = bounds.best_winnow2_alpha(1000, 7 / 3, 1 / 3)
    least = bounds.winnow2(1000, 7 / 3, 1 / 3, alpha)
    assert all(least <= bounds.winnow2(1000, 7 / 3, 1 / 3, a) + 1e-9 for a in np.linspace(1.01, 1.49, 99))
    assert least == pytest.approx(1041.25, abs=0.01)
    assert alpha == pytest.approx(1.22, abs=0.005)
    assert least < bounds.winnow2(1000, 7 / 3, 1 / 3, 1 + 1 / 6)  # Littlestone's alpha: 1095


@given(st.floats(0.05, 1.0), st.floats(0.2, 5.0))
def test_best_steps_of_alma(alpha: float, B: float) -> None:
    """C = 1 is best on separable data with a small margin, C = sqrt(2) with noise."""
    for C in np.geomspace(0.1, 5, 30):
        assert bounds.alma_separable(2, 1e-6, alpha, B, 1.0) <= bounds.alma_separable(2, 1e-6, alpha, B, C) * (1 + 1e-9)
        assert bounds.alma(2, 0.1, 1.0, alpha, B) <= bounds.alma(2, 0.1, 1.0, alpha, B, C) * (1 + 1e-9)


# -- silence and bad input -------------------------------------------------------------------------------


USUAL = {"u": [1.0, 0.0], "correlation": np.eye(2), "bound": bounds.perceptron, "p": 2, "trials": 2, "switches": 0}
USUAL |= {"classes": 3, "alpha": 1.1, "margin": 0.5} | dict.fromkeys(
    ["error", "failure", "beta", "share", "gamma"], 0.1
)


def usual(function: Callable[..., float]) -> dict[str, Any]:
    """Return valid arguments, of those without a default; 1 for what has no other usual value."""
    parameters = inspect.signature(function).parameters.values()
    needed = [each.name for each in parameters if each.default is each.empty and each.kind is not each.VAR_KEYWORD]
    return {name: USUAL.get(name, 1) for name in needed}


@pytest.mark.parametrize("name", bounds.__all__)
def test_no_margin_no_bound_and_no_argument_that_is_no_number(name: str) -> None:
    function = getattr(bounds, name)
    known = usual(function) | ({"alpha": 1.0} if name == "alma_printed" else {})
    if "margin" in known and not name.startswith("best_"):
        assert [function(**known | {"margin": margin}) for margin in (0.0, -0.5)] == [math.inf, math.inf]
    for parameter in inspect.signature(function).parameters.values():
        if parameter.annotation in ("float", "int") and parameter.name not in ("rate", "known"):
            for wrong, kind in [(math.nan, ValueError), ("wide", TypeError), (None, TypeError)]:
                with pytest.raises(kind, match=f"{parameter.name} must be a number, got"):
                    function(**known | {parameter.name: wrong})


def test_too_large_steps_have_no_bound() -> None:
    assert bounds.multiplicative([1, 0], 0.1, 1.5) == math.inf
    assert bounds.multiplicative([1, 0], 0.1, 1.05, thickness=0.1) == math.inf
    assert bounds.winnow2(10, 1, 0.4, 2.0) == math.inf
    assert bounds.multiplicative([1, 0], 0.1, 1.05, noise=math.inf) == math.inf


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bounds.multiplicative([0.5, 0.4], 0.1, 1.1), "sum u_i = 1"),
        (lambda: bounds.multiplicative([1.5, -0.5], 0.1, 1.1), "u must be >= 0"),
        (lambda: bounds.balanced([1.5, -0.5], 0.1, 1.1), r"sum \|u_i\| <= 1"),
        (lambda: bounds.balanced([[1.0]], 0.1, 1.1), "one row"),
        (lambda: bounds.balanced([math.nan, 1.0], 0.1, 1.1), "finite"),
        (lambda: bounds.multiplicative([1.0], 0.1, 0.9), "alpha must be > 1, got 0.9; try 1.1"),
        (lambda: bounds.multiplicative([1.0], 1.1, 1.1), "margin must be <= 1"),
        (lambda: bounds.multiplicative([1.0], 0.1, 1.1, noise=-1), "noise must be >= 0"),
        (lambda: bounds.multiplicative([1.0, 0.0], 0.1, 1.1, start=0.0), "start must be > 0"),
        (lambda: bounds.p_norm(1.5, 1, 1, 0.1), "p must be >= 2"),
        (lambda: bounds.alma(2, 0.1, alpha=1.5), "alpha must be in"),
        (lambda: bounds.winnow1_disjunction(1, 10, 2.0, 0.1), "threshold must be >= 1/alpha"),
        (lambda: bounds.winnow2(10, 1, 1.5, 1.1), "margin must be <= 1"),
        (lambda: bounds.weighted_majority(0, 1), "members must be >= 1"),
        (lambda: bounds.weighted_majority(3, 1, 1.0), "beta must lie between"),
        (lambda: bounds.survival_run(3, 1.5, 0.05), "error must lie between"),
        (lambda: bounds.best_alpha(1.0, 0.1, thickness=0.2), "margin must be > thickness"),
        (lambda: bounds.exponentiated_gradient(1, 1, 1, 2.0), "c must lie between"),
        (lambda: bounds.arow([1.0, 0.0], [[1.0]], 0, 0), "correlation must be 2 x 2"),
        (lambda: bounds.fixed_share(3, 10, 10, 0.1), "switches must be <= trials - 1"),
        (lambda: bounds.fixed_share(1, 10, 1, 0.1), "0 of one member"),
        (lambda: bounds.fixed_share(3, 10, 1, 1.5), "share must lie from 0 to 1"),
        (lambda: bounds.fixed_share(3, 10, 1, 0.5, rate=0.0), "rate must be > 0"),
        (lambda: bounds.fixed_share(0, 10, 1, 0.5), "members must be >= 1"),
        (lambda: bounds.best_share_rate(5, 5), "switches must be <= trials - 1"),
        (lambda: bounds.selective_perceptron(1, 1, 0.1, 0.0), "b must be > 0"),
    ],
)
def test_bad_input_is_named(call: Callable[[], float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


# -- no rule breaks its bound ----------------------------------------------------------------------------


def q_norm(v: Vector, q: float) -> float:
    return float((np.abs(v) ** q).sum() ** (1 / q))


@dataclass(frozen=True)
class Case:
    """A rule and its bound for a comparator u of any length, a margin and the noise that belong together."""

    make: Callable[[int], reference.Rule]
    bound: Callable[[Vector, Vector, float, float], float]  # (rows, u, margin, noise)
    positive: bool = False
    normalised: float | None = None  # the order p of the norm by which the rule divides z


def additive(p: float, threshold: float = 0.0) -> Callable[[Vector, Vector, float, float], float]:
    def bound(rows: Vector, u: Vector, margin: float, noise: float) -> float:
        size = max(q_norm(z, p) for z in rows)
        if p == 2:
            return bounds.perceptron(size, q_norm(u, 2), margin, noise, threshold)
        return bounds.p_norm(p, size, q_norm(u, p / (p - 1)), margin, noise)

    return bound


def winnow(
    alpha: float, thickness: float = 0.0, signed: bool = False
) -> Callable[[Vector, Vector, float, float], float]:
    def bound(rows: Vector, u: Vector, margin: float, noise: float) -> float:
        total = float(np.abs(u).sum())
        form = bounds.balanced if signed else bounds.multiplicative
        largest = float(np.abs(rows).max()) or 1.0
        return form(u / total, margin / total, alpha, noise / total, thickness=thickness, largest=largest)

    return bound


def alma(p: float, **known: float) -> Callable[[Vector, Vector, float, float], float]:
    def bound(rows: Vector, u: Vector, margin: float, noise: float) -> float:
        length = q_norm(u, p / (p - 1))
        return bounds.alma(p, margin / length, noise / length, **known)

    return bound


def alma_free(rows: Vector, u: Vector, margin: float, noise: float) -> float:
    return bounds.alma_unprojected(2.0, margin / q_norm(u, 2)) if noise == 0 else math.inf


CASES = {
    "perceptron": Case(reference.Perceptron, additive(2)),
    "margin perceptron": Case(lambda n: reference.Perceptron(n, rate=0.5, margin=1.0), additive(2, threshold=2.0)),
    "p-norm 3": Case(lambda n: reference.PNorm(n, 3.0), additive(3)),
    "p-norm 6": Case(lambda n: reference.PNorm(n, 6.0), additive(6)),
    "winnow 1.05": Case(lambda n: reference.Multiplicative(n, 1.05), winnow(1.05), positive=True),
    "winnow 1.5": Case(lambda n: reference.Multiplicative(n, 1.5), winnow(1.5), positive=True),
    "thick winnow": Case(lambda n: reference.Multiplicative(n, 1.1, thickness=0.1), winnow(1.1, 0.1), positive=True),
    "balanced 1.1": Case(lambda n: reference.Balanced(n, 1.1), winnow(1.1, signed=True)),
    "thick balanced": Case(lambda n: reference.Balanced(n, 1.2, thickness=0.05), winnow(1.2, 0.05, signed=True)),
    "sinh": Case(lambda n: reference.QuasiAdditive(n, math.sinh, 0.1), winnow(math.exp(0.1), signed=True)),
    "exp": Case(lambda n: reference.QuasiAdditive(n, math.exp, 0.1), winnow(math.exp(0.1)), positive=True),
    "alma 2": Case(lambda n: reference.Alma(n, 2.0), alma(2.0), normalised=2.0),
    "alma 2, C 1": Case(lambda n: reference.Alma(n, 2.0, C=1.0), alma(2.0, C=1.0), normalised=2.0),
    "alma 4, .8": Case(lambda n: reference.Alma(n, 4.0, alpha=0.8), alma(4.0, alpha=0.8), normalised=4.0),
    "alma, no projection": Case(lambda n: reference.Alma(n, 2.0, project=False), alma_free, normalised=2.0),
}


def comparator(random: np.random.Generator, n: int, positive: bool) -> Vector:
    """Sparse or not, never 0."""
    u = random.dirichlet(np.full(n, random.choice([0.1, 1.0, 10.0]))) + 1e-12
    return u if positive else u * random.choice([-1.0, 1.0], n)


def sequence(random: np.random.Generator, u: Vector, trials: int, flips: float) -> Vector:
    """Rows z, mostly on the right side of u; entries real or in {-1, 0, 1}."""
    n = len(u)
    z = random.choice([-1.0, 0.0, 1.0], (trials, n)) if random.random() < 0.5 else random.uniform(-1, 1, (trials, n))
    z *= np.where(z @ u < 0, -1.0, 1.0)[:, None]
    z[random.random(trials) < flips] *= -1.0
    z[0] = 1e-3 if not z.any() else z[0]
    return z * random.choice([0.3, 1.0, 2.0])


def seen(case: Case, rows: Vector) -> Vector:
    if case.normalised is None:
        return rows
    sizes = np.array([q_norm(z, case.normalised) for z in rows])
    return rows / np.where(sizes > 0, sizes, 1.0)[:, None]


@pytest.mark.parametrize("name", CASES)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 12),
    trials=st.integers(1, 80),
    flips=st.sampled_from([0.0, 0.1, 0.5]),
)
@few
def test_updates_stay_within_the_bound(name: str, seed: int, n: int, trials: int, flips: float) -> None:
    case, random = CASES[name], np.random.default_rng(seed)
    u = comparator(random, n, case.positive)
    rows = sequence(random, u, trials, flips)
    rule = case.make(n)
    updates = sum(rule.update(z) for z in rows)
    reach = seen(case, rows) @ u
    positive = reach[reach > 0]
    margins = [float(np.quantile(positive, q)) for q in (0.0, 0.3, 0.9)] if positive.size else [0.1]
    for margin in margins:
        noise = float(np.maximum(0.0, margin - reach).sum())
        if name.endswith("projection"):
            noise = 0.0 if noise < 1e-12 else noise
        assert holds(updates, case.bound(rows, u, margin, noise))


@given(seed=st.integers(0, 10**6), trials=st.integers(1, 100))
@few
def test_perceptron_deviations_hold(seed: int, trials: int) -> None:
    random = np.random.default_rng(seed)
    u = comparator(random, 6, positive=False)
    rows = sequence(random, u, trials, 0.2)
    rule = reference.Perceptron(6)
    updates = sum(rule.update(z) for z in rows)
    for margin in (0.05, 0.3):
        deviation = math.sqrt(float((np.maximum(0.0, margin - rows @ u) ** 2).sum()))
        radius = max(q_norm(z, 2) for z in rows)
        assert holds(updates, bounds.perceptron_deviations(radius, q_norm(u, 2), margin, deviation))


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 30),
    alpha=st.sampled_from([1.3, 2.0, 3.0]),
    threshold=st.sampled_from([None, 0.5, 4.0]),
    dense=st.floats(0.1, 0.9),
)
@few
def test_threshold_winnow_on_disjunctions(
    seed: int, n: int, alpha: float, threshold: float | None, dense: float
) -> None:
    random = np.random.default_rng(seed)
    k = int(random.integers(1, n + 1))
    theta = float(n) if threshold is None else max(threshold, 1 / alpha)
    rows = (random.random((200, n)) < dense).astype(float)
    winnow1, winnow2 = (reference.Winnow(n, alpha, theta, demotion=d) for d in (0.0, None))
    counts = [0, 0]
    for x in rows:
        label = int(x[:k].any())
        counts = [c + w.update(x, label) for c, w in zip(counts, (winnow1, winnow2), strict=True)]
    assert holds(counts[0], bounds.winnow1_disjunction(k, n, alpha, theta))
    assert holds(counts[1], bounds.winnow2_disjunction(k, n, alpha, theta))


@given(seed=st.integers(0, 10**6), r=st.integers(1, 4), extra=st.integers(0, 4), n=st.integers(8, 25))
@few
def test_threshold_winnow_on_r_of_k(seed: int, r: int, extra: int, n: int) -> None:
    random = np.random.default_rng(seed)
    k = min(n, r + extra)
    alpha = bounds.best_winnow2_alpha(n, k / r, 1 / r) if r > 1 else 2.0
    learner = reference.Winnow(n, alpha, float(n))
    rows = (random.random((300, n)) < random.uniform(0.1, 0.8)).astype(float)
    mistakes = sum(learner.update(x, int(x[:k].sum() >= r)) for x in rows)
    assert holds(mistakes, bounds.winnow2(n, k / r, 1 / r, alpha))


@given(seed=st.integers(0, 10**6), n=st.integers(1, 20), negated=st.booleans())
@few
def test_elimination(seed: int, n: int, negated: bool) -> None:
    random = np.random.default_rng(seed)
    rows = (random.random((150, n)) < 0.3).astype(float)
    literals = np.hstack([rows, 1 - rows]) if negated else rows
    relevant = random.random(literals.shape[1]) < 0.2
    learner = reference.Elimination(literals.shape[1])
    mistakes = 0
    for x in literals:
        label = int(bool((x[relevant] > 0).any()))
        mistakes += learner.predict(x) != label
        learner.update(x, label)
    assert mistakes <= bounds.elimination(n, negated)


# -- many classes and techniques -------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Instances (k, n), labels, and the rows z of every wrong class."""

    instances: list[Vector]
    labels: list[int]

    def noise(self, u: Vector, margin: float) -> float:
        return sum(
            max(0.0, margin - min(float(u @ (x[y] - x[j])) for j in range(len(x)) if j != y))
            for x, y in zip(self.instances, self.labels, strict=True)
        )

    @property
    def rows(self) -> Vector:
        return np.array(
            [x[y] - x[j] for x, y in zip(self.instances, self.labels, strict=True) for j in range(len(x)) if j != y]
        )


def problem(random: np.random.Generator, u: Vector, k: int, trials: int, flips: float) -> Problem:
    instances = list(random.choice([0.0, 0.5, 1.0], (trials, k, len(u))))
    labels = [int(np.argmax(x @ u)) for x in instances]
    labels = [int(random.integers(k)) if random.random() < flips else y for y in labels]
    return Problem(instances, labels)


LIFTED = ["perceptron", "p-norm 3", "winnow 1.05", "thick winnow", "balanced 1.1"]


@pytest.mark.parametrize("name", LIFTED)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(2, 5),
    flips=st.sampled_from([0.0, 0.3]),
    uses=st.sampled_from([1, 3]),
)
@settings(max_examples=12, deadline=None)
def test_linear_max_recycling_and_voting(name: str, seed: int, k: int, flips: float, uses: int) -> None:
    """The bounds lift; recycling obeys them with noise counted ``uses`` times; voting at most doubles."""
    case, random = CASES[name], np.random.default_rng(seed)
    u = comparator(random, 6, case.positive)
    data = problem(random, u, k, 50, flips)
    plain = reference.LinearMax(case.make, k)
    recycled = techniques.Recycle(reference.LinearMax(case.make, k), s=10, u=uses)
    voted = techniques.Vote(reference.LinearMax(case.make, k), h=4, w=4, r=5, d=3)
    reference.doubt.reset()
    for x, label in zip(data.instances, data.labels, strict=True):
        for learner in (plain, recycled, voted):
            learner.trial(x, label)
    # a tie at rounding level may be a mistake for the scores and none for w.z
    assert plain.mistakes <= plain.updates or reference.doubt.smallest < 1e-11
    assert plain.updates == voted.base.updates
    assert voted.restarts <= bounds.most_restarts(50, 3)
    assert voted.mistakes <= bounds.voting(voted.base.mistakes, voted.restarts)
    rows = data.rows
    for margin in (0.02, 0.2, 0.6):
        noise = data.noise(u, margin)
        assert holds(plain.updates, case.bound(rows, u, margin, noise))
        known = {"rows": rows, "u": u, "margin": margin}
        assert holds(recycled.updates, bounds.recycling(case.bound, uses, noise=noise, **known))


@given(seed=st.integers(0, 10**6), beta=st.sampled_from([0.2, 0.5, 0.9]))
@few
def test_weighted_majority_of_algorithms(seed: int, beta: float) -> None:
    random = np.random.default_rng(seed)
    data = problem(random, comparator(random, 6, positive=True), 4, 60, 0.2)
    members = [reference.LinearMax(CASES[name].make, 4) for name in ("perceptron", "winnow 1.05", "winnow 1.5")]
    pool = techniques.Combine(members, how="wma", beta=beta)
    for x, label in zip(data.instances, data.labels, strict=True):
        pool.trial(x, label)
    best = min(member.mistakes for member in members)
    assert holds(pool.mistakes, bounds.weighted_majority(len(members), best, beta))


def test_multiclass_perceptron_is_the_linear_max_perceptron() -> None:
    """R^2/gamma^2 from points and weight vectors equals s^2/delta^2 from sub-experts."""
    random = np.random.default_rng(3)
    points, weights = random.normal(size=(40, 4)), random.normal(size=(3, 4))
    labels = [int(np.argmax(weights @ p)) for p in points]
    result = reference.multiclass_perceptron(points, labels, 3)
    radius, margin = reference.radius(points), reference.margin(weights, points, labels)
    bound = bounds.multiclass_perceptron(radius, margin)
    assert result.converged
    assert result.violations <= bound
    unit = (weights / np.linalg.norm(weights)).T.ravel()  # sub-expert (attribute f, class c) at f k + c
    rows = np.array(
        [
            np.kron(p, np.eye(3)[y] - np.eye(3)[j])
            for p, y in zip(points, labels, strict=True)
            for j in range(3)
            if j != y
        ]
    )
    assert bounds.perceptron(max(q_norm(z, 2) for z in rows), 1.0, float((rows @ unit).min())) == pytest.approx(bound)


# -- margin and second-order rules, regression -----------------------------------------------------------


@given(
    seed=st.integers(0, 10**6),
    C=st.sampled_from([0.1, 1.0, 10.0]),
    squared=st.booleans(),
    flips=st.sampled_from([0.0, 0.2]),
)
@few
def test_passive_aggressive(seed: int, C: float, squared: bool, flips: float) -> None:
    random = np.random.default_rng(seed)
    u = 5 * comparator(random, 6, positive=False)
    rows = sequence(random, u, 80, flips)
    w, mistakes = np.zeros(6), 0
    for z in rows:
        lead, square = float(w @ z), float(z @ z)
        mistakes += lead <= 0
        loss = max(0.0, 1.0 - lead)
        if loss > 0 and square > 0:
            w = w + (loss / (square + 1 / (2 * C)) if squared else min(C, loss / square)) * z
    losses = np.maximum(0.0, 1.0 - rows @ u)
    hinge = float((losses**2 if squared else losses).sum())
    radius = max(q_norm(z, 2) for z in rows)
    assert holds(mistakes, bounds.passive_aggressive(radius, q_norm(u, 2), hinge, C, squared))


@given(seed=st.integers(0, 10**6), r=st.sampled_from([0.1, 1.0, 10.0]), flips=st.sampled_from([0.0, 0.2]))
@few
def test_arow(seed: int, r: float, flips: float) -> None:
    random = np.random.default_rng(seed)
    u = 5 * comparator(random, 5, positive=False)
    rows = sequence(random, u, 80, flips)
    w, S, X = np.zeros(5), np.eye(5), np.zeros((5, 5))
    mistakes = extra = 0
    hinge = 0.0
    for z in rows:
        lead = float(w @ z)
        if lead >= 1:
            continue
        mistakes, extra = mistakes + (lead <= 0), extra + (lead > 0)
        hinge += max(0.0, 1.0 - float(u @ z))
        X += np.outer(z, z)
        Sz = S @ z
        b = 1 / (float(z @ Sz) + r)
        w, S = w + (1 - lead) * b * Sz, S - b * np.outer(Sz, Sz)
    assert holds(mistakes, bounds.arow(u, X, hinge, extra, r))


@given(seed=st.integers(0, 10**6), a=st.sampled_from([0.1, 1.0, 10.0]), flips=st.sampled_from([0.0, 0.2]))
@few
def test_second_order_perceptron(seed: int, a: float, flips: float) -> None:
    random = np.random.default_rng(seed)
    u = comparator(random, 5, positive=False)
    rows = sequence(random, u, 80, flips)
    A, v, X = a * np.eye(5), np.zeros(5), np.zeros((5, 5))
    mistakes, wrong = 0, []
    for z in rows:
        if float(z @ np.linalg.solve(A + np.outer(z, z), v)) <= 0:
            mistakes += 1
            wrong.append(z)
            A, v, X = A + np.outer(z, z), v + z, X + np.outer(z, z)
    for margin in (0.05, 0.3):
        noise = float(sum(max(0.0, margin - float(u @ z)) for z in wrong))
        assert holds(mistakes, bounds.second_order_perceptron(u, X, margin, noise, a))


@given(seed=st.integers(0, 10**6), c=st.sampled_from([0.3, 1.0, 1.7]))
@few
def test_exponentiated_gradient(seed: int, c: float) -> None:
    random = np.random.default_rng(seed)
    n = 6
    u = comparator(random, n, positive=True)
    u /= u.sum()
    rows = random.uniform(-1, 1, (100, n))
    targets = rows @ u + random.normal(0, 0.2, 100)
    w, loss, span = np.full(n, 1 / n), 0.0, 2.0
    for x, y in zip(rows, targets, strict=True):
        error = float(w @ x) - y
        loss += error**2
        w = w * np.exp(-2 * c / span**2 * error * x)
        w /= w.sum()
    best = float(((rows @ u - targets) ** 2).sum())
    assert holds(loss, bounds.exponentiated_gradient(bounds.divergence(u), best, span, c))


# -- errata of the sources: what docs/errata.md says, one by one --------------------------------------------------


def test_negative_weight_is_weight_on_the_negated_copy() -> None:
    """Weight -1 on x is weight 1 on -x and 0 on x; with 1 and 1, as printed, the two cancel."""
    x = np.array([0.3, 0.8])
    doubled = np.r_[x, -x]
    assert np.array([0, 0, 1, 0]) @ doubled == -x[0]
    assert np.array([1, 0, 1, 0]) @ doubled == 0.0


def test_signed_comparators_are_measured_by_the_sum_of_magnitudes() -> None:
    """u = (20, -19) has sum 1; its margin as printed would promise fewer than the updates that are made."""
    u, rows = np.array([20.0, -19.0]), np.array([[1.0, 0.95], [-0.9, -1.0]] * 200)
    margin = float((rows @ u).min())
    assert margin > 0.9
    rule = reference.Balanced(2, 1.04)
    updates = sum(rule.update(z) for z in rows)
    assert updates > math.log(4) / (0.9 * math.log(1.04) - bounds.log_growth(math.log(1.04), 0.0, 1.0))
    assert holds(updates, bounds.balanced(u / 39, margin / 39, 1.04))


def test_a_tie_can_be_right_and_still_an_update() -> None:
    """Mistakes of linear-max and of its base differ on ties: "if and only if" is one way only."""
    learner = reference.LinearMax(reference.Perceptron, 3)
    assert learner.trial(np.eye(3), 0) == 0  # all scores are 0, the smallest class is right
    assert (learner.mistakes, learner.updates) == (0, 1)


def test_majorities_need_the_form_without_a_threshold() -> None:
    """Majority of 5 of 15: at theta = n and beta = 1 Winnow never settles, without a threshold 2 k^2 ln n holds."""
    n, k = 15, 5
    x = np.random.default_rng(0).integers(0, 2, (20_000, n)).astype(float)
    labels = (x[:, :k].sum(axis=1) > k / 2).astype(int)
    printed, smaller = (LinearThreshold(f"winnow(beta={beta}, threshold={n})", labels=(0, 1)) for beta in (1, 0.5))
    wrong = printed.run(x, labels).wrong
    assert wrong[-5000:].mean() > 0.05
    smaller.run(x, labels)
    assert smaller.mistakes < 100
    delta = 1 / k
    alpha = math.sqrt((1 + delta) / (1 - delta))
    free = LinearThreshold(f"winnow({alpha!r})", labels=(0, 1))
    free.run(2 * x - 1, labels)
    assert free.updates <= bounds.multiplicative([delta] * k + [0.0] * (n - k), delta, alpha) <= 2 * k**2 * math.log(n)


def test_margin_rules_need_the_rival_not_the_prediction() -> None:
    """On a right prediction x^label - x^prediction is 0; a margin rule must see the best other class."""
    learner = reference.LinearMax(lambda n: reference.Perceptron(n, margin=5.0), 2)
    learner.trial(np.eye(2), 0)
    before = learner.hypothesis().copy()
    assert learner.trial(np.eye(2), 0) == 0
    assert learner.updates == 2
    assert not np.array_equal(before, learner.hypothesis())


def test_winnow_predicts_one_above_the_threshold() -> None:
    """As printed (predict 1 iff w.x <= theta) it says 1 on every negative for ever."""
    n, wrong_printed = 10, 0
    w, learner = np.ones(n), reference.Winnow(n, 2.0, float(n))
    rows = np.random.default_rng(1).integers(0, 2, (200, n)).astype(float)
    for x in rows:  # all negative
        if w @ x <= n:
            wrong_printed += 1
            w = np.where(x > 0, w / 2, w)
    assert wrong_printed == 200
    assert sum(learner.update(x, 0) for x in rows) <= bounds.winnow2_disjunction(0, n)


def test_halving_allows_more_demotions_than_elimination() -> None:
    """Lemma 6.3 prints v <= n/theta + u; with halving it is v <= 2n/theta + 2u."""
    n, theta = 4, 1.0
    learner = reference.Winnow(n, 2.0, theta)
    patterns = [[0], [1], [2], [3], [0, 1], [2, 3], [0, 1, 2, 3]]  # each has weight exactly theta when it comes
    demotions = sum(learner.update(np.isin(np.arange(n), p).astype(float), 0) for p in patterns)
    assert demotions == 7 > n / theta
    assert demotions <= 2 * n / theta


def test_promotions_are_counted_in_base_two() -> None:
    n = 1024
    learner = reference.Winnow(n, 2.0, float(n))
    promotions = sum(learner.update(np.eye(n)[0], 1) for _ in range(30))
    assert math.log(2 * n) < promotions <= math.log2(2 * n)


def test_accuracy_means_error() -> None:
    """M/T estimates the mean error of the hypotheses, not their accuracy: few mistakes, small number."""
    assert bounds.average_risk(0.02, 10_000, 0.05) < 0.04


@pytest.mark.parametrize("name", bounds.__all__)
def test_docstrings_describe_every_parameter(name: str) -> None:
    function = getattr(bounds, name)
    sections = (inspect.getdoc(function) or "").split("\n\n")
    (described,) = (section for section in sections if section.startswith("Parameters\n-"))
    entries = re.findall(r"^\**(\w+) : \S.*\n    \S", described, re.MULTILINE)
    assert entries == list(inspect.signature(function).parameters)
    headings = [section.partition("\n")[0] for section in sections[sections.index(described) :]]
    assert headings[:3] == ["Parameters", "Returns", "Examples"]
