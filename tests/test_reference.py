"""The reference against numbers that do not come from it: the papers', proved bounds, and hand-made cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from reference import (
    Alma,
    Balanced,
    Elimination,
    LinearMax,
    Multiplicative,
    Perceptron,
    PNorm,
    QuasiAdditive,
    Sasb,
    Vector,
    Winnow,
    doubt,
    expand,
    margin,
    multiclass_perceptron,
    radius,
)
from reference_techniques import Average, Combine, Recycle, Stack, VCombine, Vote, unit_scores

Stream = list[tuple[Vector, int]]


def multiplicative_bound(entropy: float, delta: float, alpha: float, noise: float = 0.0) -> float:
    """(RE + N ln alpha) / (delta ln alpha - ln((alpha + 1/alpha)/2))."""
    gain = delta * math.log(alpha) - math.log((alpha + 1.0 / alpha) / 2.0)
    return (entropy + noise * math.log(alpha)) / gain


def majority(trials: int, noise: float = 0.0, seed: int = 0, n: int = 20, r: int = 10, k: int = 5) -> Stream:
    """One-hot votes at random; the label is the plurality of the first r voters, the smallest class on ties.

    With probability `noise` it is another class. k threshold sub-experts follow the n voters.
    """
    rng = np.random.default_rng(seed)
    stream = []
    for _ in range(trials):
        votes = rng.integers(k, size=n)
        label = int(np.argmax(np.bincount(votes[:r], minlength=k)))
        if rng.random() < noise:
            label = int((label + rng.integers(1, k)) % k)
        stream.append((expand(votes=votes, k=k), label))
    return stream


def random_stream(trials: int, n: int, k: int, seed: int, ties: bool = False) -> Stream:
    rng = np.random.default_rng(seed)
    draw: Callable[[], Vector] = (
        (lambda: rng.integers(0, 2, size=(k, n)).astype(float)) if ties else (lambda: rng.random((k, n)))
    )
    return [(draw(), int(rng.integers(k))) for _ in range(trials)]


def run(learner: Any, stream: Stream) -> list[int]:
    return [learner.trial(x, label) for x, label in stream]


LIFTABLE: dict[str, Callable[[int], Any]] = {
    "perceptron": Perceptron,
    "margin perceptron": lambda n: Perceptron(n, rate=0.5, margin=0.05),
    "multiplicative": lambda n: Multiplicative(n, 1.3),
    "thick multiplicative": lambda n: Multiplicative(n, 1.3, thickness=0.01),
    "balanced": lambda n: Balanced(n, 1.3),
    "thick balanced": lambda n: Balanced(n, 1.3, thickness=0.01),
    "quasi-additive": lambda n: QuasiAdditive(n, math.tanh, 0.3),
    "p-norm": lambda n: PNorm(n, 3.0),
    "alma": lambda n: Alma(n, 3.0),
    "alma(.9)": lambda n: Alma(n, 2.5, alpha=0.9, project=False),
    "alma not normalised": lambda n: Alma(n, 2.0, alpha=0.9, normalise=False),
    "sasb": Sasb,
}
WITH_MARGIN = {
    "margin perceptron",
    "thick multiplicative",
    "thick balanced",
    "alma(.9)",
    "alma not normalised",
}
rules = pytest.mark.parametrize("make", LIFTABLE.values(), ids=LIFTABLE.keys())


# --- rules --------------------------------------------------------------------------------------------------


def test_alma_golden_values() -> None:
    rule = Alma(2, 3.0, alpha=1.0, C=math.sqrt(2.0))
    assert rule.update(np.array([1.0, 1.0]))
    assert rule.theta == pytest.approx([0.79370053, 0.79370053], abs=1e-8)
    assert rule.w == pytest.approx([0.62996052, 0.62996052], abs=1e-8)
    assert rule.update(-np.array([1.0, -1.0]))  # w.z = 0 is an update
    assert rule.theta == pytest.approx([0.17128499, 0.99832210], abs=1e-8)
    assert rule.w == pytest.approx([0.02933855, 0.99664702], abs=1e-8)
    assert np.sum(np.abs(rule.w) ** 1.5) ** (1 / 1.5) == pytest.approx(1.0)
    assert rule.k == 3


def test_alma_two_formulas_agree() -> None:
    """Keeping theta alone equals mapping w through f, stepping, mapping back and dividing by ||w||_q."""
    p, q = 3.0, 1.5
    rng = np.random.default_rng(0)
    rule, w, k = Alma(6, p, alpha=0.8), np.zeros(6), 1
    for z in rng.normal(size=(200, 6)):
        unit = z / np.sum(np.abs(z) ** p) ** (1 / p)
        fires = w @ unit <= 0.2 * rule.B * math.sqrt(p - 1) / math.sqrt(k)
        if fires:
            norm = np.sum(np.abs(w) ** q) ** (1 / q) or 1.0
            theta = np.sign(w) * np.abs(w) ** (q - 1) / norm ** (q - 2)
            theta += math.sqrt(2.0) / (math.sqrt(p - 1) * math.sqrt(k)) * unit
            w = np.sign(theta) * np.abs(theta) ** (p - 1) / (np.sum(np.abs(theta) ** p) ** (1 / p)) ** (p - 2)
            w /= max(1.0, np.sum(np.abs(w) ** q) ** (1 / q))
            k += 1
        assert rule.update(z) == fires
        assert rule.w == pytest.approx(w, abs=1e-12)
    assert 20 < k < 200
    assert not rule.update(np.zeros(6))


def test_perceptron_moves_on_ties_only_then() -> None:
    rule = Perceptron(2)
    assert rule.update(np.array([1.0, 0.0]))
    assert rule.update(np.array([0.0, 1.0]))
    assert not rule.update(np.array([1.0, 0.0]))
    assert rule.w.tolist() == [1.0, 1.0]
    thick = Perceptron(1, rate=0.25, margin=0.5)
    assert [thick.update(np.ones(1)) for _ in range(4)] == [True, True, True, False]
    assert thick.w.tolist() == [0.75]


def test_multiplicative_by_hand() -> None:
    rule = Multiplicative(3, 2.0, start=0.5)
    assert rule.update(np.array([1.0, -1.0, 0.0]))  # a tie
    assert rule.w == pytest.approx([1.0, 0.25, 0.5])
    assert not rule.update(np.array([1.0, -1.0, 0.0]))
    assert rule.update(np.array([-0.5, 1.0, 0.0]))
    assert rule.w == pytest.approx([1.0 / math.sqrt(2.0), 0.5, 0.5])
    thick = Multiplicative(2, 2.0, thickness=1 / 3)
    assert thick.update(np.array([1.0, -1.0]))  # now (2, 1/2): 1.5 > 2.5/3
    assert not thick.update(np.array([1.0, -1.0]))
    assert thick.update(np.array([1.0, -2.5]))  # .75 <= .83: inside the thick separator


def test_balanced_is_multiplicative_on_signed_copies() -> None:
    rng = np.random.default_rng(1)
    for thickness in (0.0, 0.02):
        balanced, copies = Balanced(5, 1.2, thickness), Multiplicative(10, 1.2, thickness=thickness)
        for z in rng.uniform(-1, 1, size=(300, 5)):
            assert balanced.update(z) == copies.update(np.concatenate([z, -z]))
            assert balanced.w == pytest.approx(copies.w[:5] - copies.w[5:], abs=1e-12)


def test_links_give_the_other_rules() -> None:
    rng = np.random.default_rng(2)
    pairs: list[tuple[Any, Any, float]] = [
        (QuasiAdditive(4, lambda v: v), Perceptron(4), 1.0),
        (QuasiAdditive(4, math.sinh, math.log(1.2)), Balanced(4, 1.2), 2.0),
        (QuasiAdditive(4, math.exp, math.log(1.2)), Multiplicative(4, 1.2), 1.0),
        (PNorm(4, 2.0), Perceptron(4), 1.0),
    ]
    cube, p_norm = QuasiAdditive(4, lambda v: math.copysign(abs(v) ** 2.0, v)), PNorm(4, 3.0)
    for z in rng.uniform(-1, 1, size=(200, 4)):
        for one, other, factor in pairs:
            assert one.update(z) == other.update(z)
            assert factor * one.w == pytest.approx(other.w, abs=1e-11)
        assert cube.update(z) == p_norm.update(z)
        scale = float(np.sum(np.abs(p_norm.v) ** 3) ** (1 / 3))
        assert p_norm.w * scale == pytest.approx(cube.w, abs=1e-9)


def test_sasb_formula() -> None:
    rule = Sasb(3)
    for z in np.array([[1, 1, -1], [1, -1, -1], [1, -1, 1.0]]):
        rule.v, rule.m = rule.v + z, rule.m + 1
    direct = [v * math.gamma((3 + v) / 2 + 1) * math.gamma((3 - v) / 2 + 1) for v in (3.0, -1.0, -1.0)]
    assert rule.w == pytest.approx(np.array(direct) / max(abs(v) for v in direct))
    with pytest.raises(ValueError, match="z must lie in"):
        rule.update(np.array([1.5, 0.0, 0.0]))


@pytest.mark.parametrize("alpha", [1.01, 1.6, 4.0])
@pytest.mark.parametrize("kind", [Multiplicative, Balanced])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_no_overflow(alpha: float, kind: Callable[[int, float], Any], sign: float) -> None:
    rule = kind(3, alpha)
    rule.s = rule.s + sign * 1e6 * np.array([1.0, 0.5, 0.0])
    assert np.all(np.isfinite(rule.w))
    assert 0.0 < np.abs(rule.w).max() <= max(1.0, math.exp(600))
    before = rule.s.copy()
    assert rule.update(np.array([-1.0, 0.0, 0.0]) * (sign if kind is Balanced else 1.0))
    assert not np.array_equal(rule.s, before)
    true_log = rule.log_scale + math.log(np.abs(rule.w).max())
    expected = np.abs(rule.s).max() if kind is Balanced else rule.s.max()
    assert true_log == pytest.approx(expected * math.log(alpha), rel=1e-9, abs=1e-9)


def test_scale_is_one_until_it_must_change() -> None:
    rule = Multiplicative(2, math.e)
    rule.s = np.array([599.0, 0.0])
    assert rule.log_scale == 0.0
    assert rule.w[0] == pytest.approx(math.exp(599), rel=1e-9)
    rule.s = np.array([601.0, 600.0])
    assert rule.log_scale == 601.0
    assert rule.w == pytest.approx([1.0, math.exp(-1)])


def test_winnow_ties_and_demotions() -> None:
    x, none = np.array([1.0, 1.0, 0.0]), np.zeros(3)
    rule = Winnow(3, 2.0, threshold=2.0)
    assert rule.predict(x) == 1
    assert rule.predict(none) == 0
    assert not rule.update(x, 1)
    assert rule.update(x, 0)
    assert rule.w.tolist() == [0.5, 0.5, 1.0]
    assert rule.update(x, 1)
    assert rule.w.tolist() == [1.0, 1.0, 1.0]
    first = Winnow(3, 2.0, threshold=2.0, demotion=0.0)
    assert first.update(x, 0)
    assert first.w.tolist() == [0.0, 0.0, 1.0]
    rates = Winnow(3, 1.5, threshold=4.0, demotion=0.8, start=3.0)
    assert rates.update(np.array([1.0, 0.5, 0.0]), 0)
    assert rates.w == pytest.approx([2.4, 3.0 * math.sqrt(0.8), 3.0])
    assert (rates.promotions, rates.demotions) == (0, 1)


def test_winnow_thick_separator() -> None:
    rule = Winnow(2, 2.0, threshold=2.0, thick_positive=0.5, thick_negative=0.5)
    x = np.array([1.0, 1.0])
    assert rule.predict(x) == 1
    assert rule.update(x, 1)  # right, but not by the margin
    assert rule.w.tolist() == [2.0, 2.0]
    assert not rule.update(x, 1)
    assert not rule.update(np.array([0.74, 0.0]), 0)
    assert rule.update(np.array([0.75, 0.0]), 0)  # reaches threshold - .5


@pytest.mark.parametrize(("demotion", "bound"), [(None, 166.4868), (0.0, 1 + 10 * (1 + math.log2(1000)))])
def test_winnow_on_disjunctions(demotion: float | None, bound: float) -> None:
    n, relevant = 1000, 5
    assert 2 + 3 * relevant * (1 + math.log2(n)) == pytest.approx(166.4868, abs=1e-4)
    rng = np.random.default_rng(0)
    rule, mistakes, updates = Winnow(n, 2.0, threshold=float(n), demotion=demotion), 0, 0
    for _ in range(2000):
        x = (rng.random(n) < 0.1).astype(float)
        y = int(x[:relevant].any())
        mistakes += rule.predict(x) != y
        updates += rule.update(x, y)
    assert mistakes == updates
    assert 20 < mistakes <= bound
    assert rule.promotions <= relevant * (math.floor(math.log2(n)) + 1)


def test_elimination() -> None:
    n, rng = 12, np.random.default_rng(0)
    rule, mistakes = Elimination(2 * n), 0
    for _ in range(400):
        x = rng.integers(0, 2, size=n)
        y = int(x[1] or not x[4])
        literals = np.concatenate([x, 1 - x]).astype(float)
        mistakes += rule.predict(literals) != y
        rule.update(literals, y)
    assert 1 < mistakes <= n + 1
    assert np.flatnonzero(rule.w).tolist() == [1, n + 4]
    assert not rule.inconsistent
    assert not rule.update(np.zeros(2 * n), 1)
    assert rule.inconsistent


# --- bounds -------------------------------------------------------------------------------------------------


def test_majority_target_and_printed_bounds() -> None:
    target = np.concatenate([np.full(10, 1 / 12), np.zeros(10), np.array([4, 3, 2, 1, 0]) / 60])
    gaps = [min(target @ (x[y] - x[j]) for j in range(5) if j != y) for x, y in majority(2000)]
    assert min(gaps) == pytest.approx(1 / 60)
    used = target[target > 0]
    entropy = float(used @ np.log(used))
    assert entropy == pytest.approx(-2.5826911573, abs=1e-10)
    assert 3.2 * 3600 * (math.log(25) + entropy) == pytest.approx(7328.85, abs=0.01)
    assert 3.2 * 3600 * (math.log(50) + entropy) == pytest.approx(15313.90, abs=0.01)
    d = 1 / 60
    for n, whole, half in ((25, 4580.64, 6124.30), (50, 9571.41, 12796.96)):
        assert multiplicative_bound(math.log(n) + entropy, d, 1 + d) == pytest.approx(whole, abs=0.01)
        assert multiplicative_bound(math.log(n) + entropy, d, 1 + d / 2) == pytest.approx(half, abs=0.01)


def adversary_updates(alpha: float, n: int, k: int) -> int:
    """Updates that an adversary wins from the multiplicative rule.

    The first k attributes are right by one vote (the heaviest ones wrong); the others are signed, heaviest
    first, so that the total stays near 0, and then made <= 0.
    """
    rule = Multiplicative(n, alpha)
    updates = 0
    while True:
        w, z = rule.w, np.ones(n)
        z[np.argsort(-w[:k], kind="stable")[: (k - 1) // 2]] = -1.0
        balance = float(w[:k] @ z[:k])
        order = np.argsort(-w[k:], kind="stable") + k
        for i in order:
            z[i] = -1.0 if balance > 0.0 else 1.0
            balance += z[i] * w[i]
        balance = math.fsum(w * z)
        if balance > 0.0:
            helpful = [i for i in order if z[i] > 0.0 and balance - 2.0 * w[i] <= 0.0]
            if not helpful:
                return updates
            z[min(helpful, key=lambda i: w[i])] = -1.0
        if not rule.update(z):
            return updates
        updates += 1


def test_adversary_almost_attains_the_bound() -> None:
    n, k, d = 2000, 3, 1 / 3
    entropy = math.log(n / k)
    for alpha, updates, bound in (((1 - d) ** -0.5, 132, 137.9), (math.sqrt((1 + d) / (1 - d)), 111, 114.8)):
        assert multiplicative_bound(entropy, d, alpha) == pytest.approx(bound, abs=0.05)
        assert adversary_updates(alpha, n, k) == updates


@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_on_separable_data(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 8
    u = rng.normal(size=n)
    z = rng.uniform(-1, 1, size=(4000, n))
    z *= np.sign(z @ u)[:, None]
    z = z[z @ u > 0.2 * np.abs(u).sum()]
    l1, alpha = u / np.abs(u).sum(), 1.2
    delta = float((z @ l1).min())
    entropy = math.log(2 * n) + float(np.abs(l1) @ np.log(np.abs(l1)))
    p, q = 4.0, 4.0 / 3.0
    uq = float(np.sum(np.abs(u) ** q) ** (1 / q))
    xp = float((np.sum(np.abs(z) ** p, axis=1) ** (1 / p)).max())
    unit_margin = float((z @ u / uq / np.sum(np.abs(z) ** p, axis=1) ** (1 / p)).min())
    gamma = float((z @ u).min())
    cases = [
        (Perceptron(n), (float(np.linalg.norm(z, axis=1).max()) * float(np.linalg.norm(u)) / gamma) ** 2),
        (Balanced(n, alpha), multiplicative_bound(entropy, delta, alpha)),
        (PNorm(n, p), (p - 1) * (xp * uq / gamma) ** 2),
        (Alma(n, p), 9 * (p - 1) / (8 * unit_margin**2) + 2),
        (Alma(n, p, C=1.0), (p - 1) / unit_margin**2 + 1),
    ]
    for rule, bound in cases:
        updates = sum(rule.update(row) for _ in range(5) for row in z)
        assert 0 < updates <= bound


# --- linear-max ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LIFTABLE)
@pytest.mark.parametrize("ties", [False, True])
def test_same_weights_as_the_rule_fed_with_z(name: str, ties: bool) -> None:
    n, k = 6, 4
    learner, alone, idle = LinearMax(LIFTABLE[name], k), LIFTABLE[name](n), 0
    for x, label in random_stream(150, n, k, seed=3, ties=ties):
        scores = learner.scores(x)
        rival = max((j for j in range(k) if j != label), key=lambda j: (scores[j], -j))
        z = x[label] - x[rival]
        prediction = learner.trial(x, label)
        assert prediction == int(np.argmax(scores))
        assert alone.update(z) == learner.changed
        assert np.array_equal(alone.w, learner.hypothesis())
        # a mistake is an update, but ALMA skips z = 0; a correct prediction is one on ties and in margins
        skipped = isinstance(alone, Alma) and not z.any()
        idle += skipped
        assert prediction == label or learner.changed or skipped
        if learner.changed and prediction == label and name not in WITH_MARGIN:
            assert scores[label] == pytest.approx(scores[rival], abs=1e-12)
    assert learner.mistakes <= learner.updates + idle
    assert learner.updates < 150


@rules
def test_shifting_a_sub_expert_changes_nothing(make: Callable[[int], Any]) -> None:
    rng = np.random.default_rng(4)
    one, other = LinearMax(make, 3), LinearMax(make, 3)
    for x, label in random_stream(100, 5, 3, seed=5):
        # dyadic values and shifts, so that the differences z are the same bit for bit
        x = np.round(x * 64) / 64
        shift = np.round(rng.random(5) * 64) / 64
        doubt.reset()
        first = one.trial(x, label)
        second = other.trial(x + shift, label)
        if doubt.smallest < 1e-11:
            break
        assert first == second
        assert one.hypothesis() == pytest.approx(other.hypothesis(), abs=1e-12)
    assert one.updates > 5


@rules
def test_two_classes_are_the_binary_rule(make: Callable[[int], Any]) -> None:
    rng = np.random.default_rng(6)
    learner, binary = LinearMax(make, 2), make(5)
    for _ in range(150):
        votes, label = rng.integers(2, size=5), int(rng.integers(2))
        x = np.where(votes == 0, 1.0, -1.0)
        binary.update(x if label == 0 else -x)
        learner.trial(expand(votes=votes, k=2, thresholds=False), label)
        assert np.array_equal(binary.w, learner.hypothesis())


def test_tie_policies() -> None:
    x = np.ones((3, 1))
    assert LinearMax(Perceptron, 3).trial(x, 2) == 0
    assert LinearMax(Perceptron, 3, tie="largest").trial(x, 0) == 2
    strict = LinearMax(Perceptron, 3, update_on_tie=False)
    assert strict.trial(np.eye(3), 0) == 0
    assert strict.updates == 0
    assert strict.trial(np.eye(3), 1) == 0
    assert strict.updates == 1
    lax = LinearMax(Perceptron, 3)
    assert lax.trial(np.eye(3), 0) == 0
    assert (lax.updates, lax.mistakes) == (1, 0)
    assert lax.hypothesis().tolist() == [1.0, -1.0, 0.0]


def test_expand_order() -> None:
    x = expand(votes=[2, -1], scores=[[0.1, 0.2, 0.3]], attributes=[5.0, 7.0], k=3)
    assert x.shape == (3, 3 + 9)
    assert x[:, :3].tolist() == [[0, 0, 0.1], [0, 0, 0.2], [1, 0, 0.3]]
    for c in range(3):
        row = np.zeros(9)
        row[[c, 3 + c, 6 + c]] = [1.0, 5.0, 7.0]
        assert x[c, 3:].tolist() == row.tolist()
    assert expand(attributes=[5.0], k=2, thresholds=False).tolist() == [[5.0, 0.0], [0.0, 5.0]]
    assert expand(votes=[1], k=2).tolist() == [[0, 1, 0], [1, 0, 1]]


TECHNIQUES: dict[str, Callable[[LinearMax], Any]] = {
    "B": lambda base: base,
    "A": Average,
    "AR": lambda base: Average(Recycle(base, s=10)),
    "V": lambda base: Vote(base, h=4, d=8, scale="raw"),
}


# a thick separator compares with a sum over all coordinates, so it depends on how many there are
@pytest.mark.parametrize("name", [name for name in LIFTABLE if "thick" not in name])
@pytest.mark.parametrize("technique", TECHNIQUES)
def test_growth_is_as_if_it_had_been_there(name: str, technique: str) -> None:
    whole, growing = (TECHNIQUES[technique](LinearMax(LIFTABLE[name], 3)) for _ in range(2))
    compared = 0
    for t, (x, label) in enumerate(random_stream(60, 6, 3, seed=7)):
        known = 3 if t < 30 else 6
        x[:, known:] = 0.0
        doubt.reset()
        expected, got = whole.trial(x, label), growing.trial(x[:, :known].copy(), label)
        if doubt.smallest < 1e-11:
            break
        assert expected == got
        if known == 6:
            assert growing.hypothesis() == pytest.approx(whole.hypothesis(), abs=1e-9)
            compared += 1
    assert compared > 0


def test_discovery() -> None:
    learner = LinearMax(Perceptron, 3, discover=True)
    x = expand(votes=[0, 0, 1], k=3)
    assert learner.trial(x, 1) == -1  # nothing known: a mistake, no update
    assert (learner.known, learner.mistakes, learner.updates) == ([1], 1, 0)
    assert learner.trial(x, 1) == 1  # one class: right, nobody to beat
    assert (learner.mistakes, learner.updates) == (1, 0)
    assert learner.trial(x, 2) == 1  # z = 0 - x^1
    assert (learner.known, learner.mistakes, learner.updates) == ([1, 2], 2, 1)
    assert learner.hypothesis().tolist() == (-x[1]).tolist()
    assert learner.predict(np.zeros((3, 6))) == 1  # ties: the class known first
    assert learner.trial(x, 0) == 2  # class 0 was in no arg max; -x^2 is a tie, hence an update
    assert learner.hypothesis().tolist() == (-x[1] - x[2]).tolist()
    assert learner.known == [1, 2, 0]


def test_discovery_with_positive_weights_always_updates() -> None:
    learner = LinearMax(lambda n: Multiplicative(n, 1.5), 3, discover=True)
    x = expand(votes=[0, 0, 1], k=3)
    run(learner, [(x, 0), (x, 1)])
    assert learner.updates == 1
    assert learner.hypothesis() == pytest.approx([1 / 1.5, 1 / 1.5, 1, 1 / 1.5, 1, 1])
    with pytest.raises(ValueError, match="label must be in"):
        learner.trial(x, 3)


def test_all_classes_met_at_once_equals_knowing_them() -> None:
    """Once all classes are known in natural order, discovery makes no difference any more."""
    stream = majority(120, seed=8)
    learner = LinearMax(Perceptron, 5, discover=True)
    silent = np.zeros((5, 25))
    for c in range(5):
        learner.trial(silent, c)
    assert learner.known == [0, 1, 2, 3, 4]
    assert not learner.hypothesis().any()
    assert run(learner, stream) == run(LinearMax(Perceptron, 5), stream)


# --- the multi-class Perceptron -----------------------------------------------------------------------------


def three_classes(d: int = 4, points: int = 60, seed: int = 9) -> tuple[Vector, list[int]]:
    rng = np.random.default_rng(seed)
    target, p = rng.normal(size=(3, d)), rng.normal(size=(points * 4, d))
    ordered = np.sort(p @ target.T, axis=1)
    p = p[ordered[:, 2] - ordered[:, 1] > 0.5][:points]
    return p, [int(c) for c in np.argmax(p @ target.T, axis=1)]


def test_multiclass_perceptron_is_linear_max_perceptron() -> None:
    p, labels = three_classes()
    result = multiclass_perceptron(p, labels, 3)
    assert result.converged
    assert result.violations > 5
    learner = LinearMax(Perceptron, 3, update_on_tie=False)
    for _ in range(result.epochs):
        for point, label in zip(p, labels, strict=True):
            learner.trial(expand(attributes=point, k=3, thresholds=False), label)
    assert learner.updates == learner.mistakes == result.violations
    assert np.array_equal(learner.hypothesis().reshape(-1, 3).T, result.weights)


def test_multiclass_margin_radius_and_bound() -> None:
    p, labels = three_classes()
    result = multiclass_perceptron(p, labels, 3)
    gamma = margin(result.weights, p, labels)
    assert gamma > 0.0
    assert result.violations <= (radius(p) / gamma) ** 2
    u = result.weights / np.linalg.norm(result.weights)
    one = min(u[y] @ x - u[z] @ x for x, y in zip(p, labels, strict=True) for z in range(3) if z != y)
    assert one == pytest.approx(math.sqrt(2.0) * gamma)


def test_multiclass_perceptron_of_two_classes() -> None:
    p, labels = three_classes()
    p, labels = p[np.array(labels) < 2], [label for label in labels if label < 2]
    result = multiclass_perceptron(p, labels, 2)
    assert np.array_equal(result.weights[0], -result.weights[1])
    w = result.weights[0]
    signs = np.where(np.array(labels) == 0, 1.0, -1.0)
    assert margin(result.weights, p, labels) == pytest.approx(float((signs * (p @ w)).min() / np.linalg.norm(w)))


def test_multiclass_perceptron_stops() -> None:
    result = multiclass_perceptron(np.ones((2, 1)), [0, 1], 2, max_epochs=7)
    assert not result.converged
    assert result.epochs == 7
    assert result.violations > 7
    hand = multiclass_perceptron(np.array([[1.0, 0.0], [0.0, 2.0]]), [0, 1], 2)
    assert hand.weights.tolist() == [[0.0, -2.0], [0.0, 2.0]]
    assert margin(hand.weights, np.array([[0.0, 2.0]]), [1]) == pytest.approx(2.0)


# --- averaging and recycling --------------------------------------------------------------------------------


def test_average_equals_the_lazy_form_and_the_plain_mean() -> None:
    stream = majority(300, noise=0.1, seed=10)
    learner = Average(LinearMax(Perceptron, 5))
    plain: list[Vector] = [np.zeros(25)]
    weighted_steps = np.zeros(25)
    for s, (x, label) in enumerate(stream, start=1):
        expected = int(np.argmax(x @ sum(plain)))
        before = plain[-1]
        assert learner.trial(x, label) == expected
        plain.append(learner.base.hypothesis())
        weighted_steps += s * (plain[-1] - before)
        # sum_{i<=s} w_i = s w_{s+1} - Q
        assert s * plain[-1] - weighted_steps == pytest.approx(sum(plain[:-1]), abs=1e-9)
        assert learner.hypothesis() == pytest.approx(np.mean(plain, axis=0), abs=1e-9)
    assert learner.mistakes < learner.base.mistakes


@pytest.mark.parametrize("scale", ["max", "l1"])
def test_average_scales(scale: str) -> None:
    learner = Average(LinearMax(lambda n: Multiplicative(n, 1.5), 5), scale)
    seen = []
    for x, label in majority(50, seed=11):
        learner.grow(25)
        w, touched = learner.base.hypothesis(), learner.base.rule.touched
        if scale == "max" or touched.any():  # before the first update no coordinate counts in the sum
            seen.append(w / (w.max() if scale == "max" else w[touched].sum()))
            assert learner.hypothesis() * learner.terms == pytest.approx(np.sum(seen, axis=0), abs=1e-12)
        learner.trial(x, label)


def test_average_over_the_scale_limit() -> None:
    base = LinearMax(lambda n: Multiplicative(n, 4.0), 2)
    learner = Average(base)
    x = np.array([[1.0, 0.0], [0.0, 1.0]])
    learner.grow(2)
    base.rule.s = np.array([500.0, 499.0])  # e^693: beyond the limit
    learner.trial(x, 0)
    base.rule.s = np.array([0.0, 0.0])
    learner.trial(x, 0)
    # start (1, 1), then the heavy pair, then after two trials (1, 1) moved by z = (1, -1) at the tie
    heavy = np.array([1.0, 0.25])
    assert learner.log_scale == pytest.approx(500 * math.log(4.0))
    assert learner.hypothesis() == pytest.approx(heavy / 3)


def test_recycling_counts_and_rest() -> None:
    learner, real = Recycle(LinearMax(Perceptron, 5), s=20, u=3), 0
    for x, label in majority(400, noise=0.2, seed=12):
        before = learner.updates
        learner.trial(x, label)
        assert len(learner.buffer) <= 20
        assert all(stored.count <= 3 for stored in learner.buffer)
        assert learner.updates - before <= 3 * 20
        assert learner.changed == (learner.updates > before)
        real += learner.changed
        for stored in learner.buffer if learner.changed else []:
            others = np.delete(stored.x @ learner.hypothesis(), stored.label)
            at_rest = stored.x[stored.label] @ learner.hypothesis() > others.max()
            assert at_rest or stored.count == 3
    assert learner.recycled > learner.mistakes
    assert learner.updates == learner.recycled + real


def test_recycling_by_hand() -> None:
    """Two instances that contradict each other: the older is presented first, each until its count is u."""
    x = np.eye(2)
    learner = Recycle(LinearMax(Perceptron, 2), s=2, u=2)
    learner.trial(x, 0)  # tie: w = (1, -1), count 1; its pass is quiet
    assert learner.hypothesis().tolist() == [1.0, -1.0]
    assert learner.recycled == 0
    learner.trial(
        x, 1
    )  # w = 0, count 1; pass: the older ties: (1, -1), count 2; the newer: 0, count 2; pass: none usable
    assert learner.hypothesis().tolist() == [0.0, 0.0]
    assert [stored.count for stored in learner.buffer] == [2, 2]
    assert (learner.updates, learner.recycled, learner.mistakes) == (4, 2, 1)


class Presented(LinearMax):
    """Keeps the labels in the order in which they were presented."""

    def learn(self, x: Vector, label: int, weight: float = 1.0) -> bool:
        self.labels = [*getattr(self, "labels", []), label]
        return super().learn(x, label, weight)


def test_recycling_goes_from_the_oldest_to_the_newest() -> None:
    base = Presented(Perceptron, 4)
    learner = Recycle(base, s=3, u=9)
    only = [np.diag(np.eye(4)[c]) for c in range(4)]  # one sub-expert, right for class c
    run(learner, [(only[c], c) for c in (3, 0, 1)])
    base.labels = []
    learner.trial(only[2], 2)  # the oldest (3) leaves the buffer
    assert base.labels == [2, 0, 1, 2]


def test_unlimited_recycling_is_capped() -> None:
    learner = Recycle(LinearMax(Perceptron, 2), s=2, u=math.inf, max_passes=7)
    run(learner, [(np.eye(2), 0), (np.eye(2), 1)])
    assert learner.recycled == 14
    assert Recycle(LinearMax(Perceptron, 2), u=math.inf).max_passes == 1000


# --- voting -------------------------------------------------------------------------------------------------


class Clock:
    """A base whose hypothesis is the number of trials seen and which is always right."""

    changed = True

    def __init__(self) -> None:
        self.linear = LinearMax(Perceptron, 2)
        self.mistakes = 0
        self.time = 0

    def grow(self, n: int) -> None:
        self.linear.grow(n)

    def snapshot(self) -> Any:
        self.linear.rule._w = np.array([float(self.time), 0.0])
        return self.linear.snapshot()

    def hypothesis(self) -> Vector:
        return np.asarray(self.snapshot().weights)

    log_scale = 0.0

    def scores(self, x: Vector) -> Vector:
        return np.asarray(self.snapshot().scores(x))

    def predict(self, x: Vector) -> int:
        return 0

    def trial(self, x: Vector, label: int) -> int:
        self.time += 1
        return 0


def numbers(h: int, w: int, until: int) -> Iterator[tuple[int, Vote]]:
    learner = Vote(Clock(), h=h, w=w, r=1, d=10**9, scale="raw")
    for tau in range(1, until + 1):
        learner.trial(np.array([[1.0, 0.0], [0.0, 0.0]]), 0)
        yield tau, learner


def test_schedule_of_four() -> None:
    saved: dict[int, list[int]] = {}
    replaced: list[int] = []
    previous: list[int] = []
    for tau, learner in numbers(4, 0, 70):
        now = [voter.number for voter in learner.voters]
        if now != previous:
            saved[tau] = now
            replaced += [number for number in previous if number not in now]
            previous = now
    assert list(saved) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
    assert replaced[:6] == [1, 3, 2, 6, 4, 12]
    assert saved[16] == [4, 8, 12, 16]
    assert saved[64] == [16, 32, 48, 64]
    assert [voter.hypothesis.weights[0] for voter in learner.voters] == [16.0, 32.0, 48.0, 64.0]


@pytest.mark.parametrize("h", [1, 2, 3, 5, 20])
def test_schedule_always_finds_a_slot(h: int) -> None:
    for tau, learner in numbers(h, 100, 700):
        assert len(learner.voters) <= h
        if tau >= h:
            assert len(learner.voters) == h
    assert learner.voters[-1].number > 300


def test_entry_sixteen_of_thirty() -> None:
    alive = {}
    for tau, learner in numbers(30, 0, 512):
        alive[tau] = {voter.number for voter in learner.voters}
    assert 16 in alive[480]
    assert 16 in alive[511]
    assert 16 not in alive[512]


def test_window_of_256_with_spacing_128() -> None:
    opened, closed = None, None
    for tau, learner in numbers(2, 100, 300):
        if learner.centre == 256 and learner.is_open and opened is None:
            opened = tau
            assert learner.spacing == 128
            assert learner.half_window == 32
        if opened is not None and closed is None and not learner.is_open:
            closed = tau
    assert (opened, closed) == (224, 288)


def test_window_is_never_larger_than_w() -> None:
    sizes = {learner.half_window for _, learner in numbers(2, 100, 2000)}
    assert max(sizes) == 50  # 101 trials
    assert {0, 1, 2, 4, 8, 16, 32, 50} == sizes


def test_a_better_hypothesis_takes_the_slot() -> None:
    stream = majority(400, noise=0.1, seed=13)
    learner = Vote(LinearMax(Perceptron, 5), h=4, w=100, r=50, d=10**9)
    taken = 0
    for x, label in stream:
        open_before, number = learner.is_open, learner.centre
        saved = learner.voters[-1].hypothesis if learner.voters else None
        learner.trial(x, label)
        if not open_before or saved is None:
            continue
        slot = learner.voters[-1]
        assert slot.number == number
        if slot.hypothesis is not saved:
            assert learner.base.changed
            assert learner.accuracy(slot.hypothesis) > learner.accuracy(saved)
            assert slot.hypothesis.weights == pytest.approx(learner.base.snapshot().scaled("l1").weights)
            taken += 1
        elif learner.base.changed:
            assert learner.accuracy(learner.base.snapshot()) <= learner.accuracy(saved)
    assert taken > 5


def test_voting_predicts_with_the_sum() -> None:
    for scale in ("raw", "l1", "l2", "max"):
        learner = Vote(LinearMax(lambda n: Balanced(n, 1.2), 5), h=6, d=50, scale=scale)
        for x, label in majority(150, noise=0.2, seed=14):
            learner.grow(25)
            voters = [voter.hypothesis for voter in learner.voters] + [learner.base.snapshot().scaled(scale)]
            label_of_sum = int(np.argmax(x @ sum(voter.weights for voter in voters)))
            trusted = learner.voting_mistakes <= learner.basic_mistakes
            basic = learner.base.predict(x)
            doubt.reset()
            output = learner.trial(x, label)
            if doubt.smallest > 1e-11:
                assert output == (label_of_sum if trusted else basic)


def test_one_vote_each() -> None:
    learner = Vote(LinearMax(Perceptron, 5), h=6, scale="vote")
    for x, label in majority(100, seed=15):
        learner.grow(25)
        ballots = np.zeros(5)
        for voter in [voter.hypothesis for voter in learner.voters] + [learner.base.snapshot()]:
            ballots[int(np.argmax(x @ voter.weights))] += 1
        assert learner.voting_label(x) == int(np.argmax(ballots))
        learner.trial(x, label)
    assert learner.voting_mistakes <= learner.basic_mistakes
    with pytest.raises(TypeError, match="no linear sum"):
        learner.hypothesis()


class Scripted:
    """A base that is right when told so; its hypothesis votes for class 1, hence voting errs on label 0."""

    def __init__(self, right: Callable[[int], bool]) -> None:
        self.inner = Clock()
        self.right, self.time, self.mistakes = right, 0, 0
        self.linear, self.changed, self.log_scale = self.inner.linear, False, 0.0

    def grow(self, n: int) -> None:
        self.inner.grow(n)

    def snapshot(self) -> Any:
        self.linear.rule._w = np.array([0.0, 1.0])
        return self.linear.snapshot()

    def hypothesis(self) -> Vector:
        return np.array([0.0, 1.0])

    def scores(self, x: Vector) -> Vector:
        return np.array([0.0, 1.0])

    def predict(self, x: Vector) -> int:
        return 0 if self.right(self.time) else 1

    def trial(self, x: Vector, label: int) -> int:
        prediction = self.predict(x)
        self.time += 1
        self.mistakes += prediction != label
        return prediction


def test_restarts_and_fallback() -> None:
    learner = Vote(Scripted(lambda t: True), h=4, d=5)
    x, restarts, outputs = np.eye(2), [], []
    for t in range(1, 80):
        outputs.append(learner.trial(x, 0))
        if learner.tau == 0:
            restarts.append(t)
            assert learner.voters == []
            assert learner.spacing == 1
            assert learner.centre == 1
    assert restarts == [5, 15, 35, 75]  # waits 5, 10, 20, 40
    assert learner.wait == 80
    # after each restart one trial trusts voting (0 <= 0), errs, and then the base is followed
    assert [t for t, output in enumerate(outputs, start=1) if output == 1] == [1, 6, 16, 36, 76]


def test_equal_mistakes_are_no_reason_to_restart() -> None:
    learner = Vote(Scripted(lambda t: False), h=4, d=5)
    run(learner, [(np.eye(2), 0)] * 50)
    assert learner.voting_mistakes == learner.basic_mistakes == 50
    assert learner.restarts == 0


def test_saved_hypotheses_grow_at_their_own_scale() -> None:
    base = LinearMax(lambda n: Multiplicative(n, 2.0), 2)
    learner = Vote(base, h=4)
    learner.trial(expand(votes=[0, 1], k=2, thresholds=False), 0)  # a tie: weights 2, 1/2, saved as .8, .2
    wider = expand(votes=[-1, -1, 0], k=2, thresholds=False)
    assert learner.voters[0].hypothesis.weights == pytest.approx([0.8, 0.2])
    # the voter and the current hypothesis, normalized now, give the newcomer 1/2.5: no update has touched it
    assert learner.scores(wider) == pytest.approx([2 / 2.5, 0.0])
    averaged = Average(LinearMax(lambda n: Multiplicative(n, 2.0), 2), "max")
    averaged.trial(expand(votes=[0, 1], k=2, thresholds=False), 0)
    assert averaged.scores(wider) == pytest.approx([(1 + 1 / 2) / 2, 0.0])


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_voting_guarantee(noise: float) -> None:
    d = 20
    learner = Vote(LinearMax(Perceptron, 5), h=4, d=d)
    run(learner, majority(500, noise=noise, seed=16))
    assert learner.mistakes <= 2 * learner.base.mistakes + learner.restarts + 1
    assert learner.restarts <= math.log2(500 / d + 1)


# --- combining ----------------------------------------------------------------------------------------------


def pool() -> list[Any]:
    return [
        LinearMax(lambda n: Multiplicative(n, 1.05), 5),
        Average(Recycle(LinearMax(Perceptron, 5), s=20, u=2)),
        Recycle(LinearMax(lambda n: Alma(n, 3.0), 5), s=20, u=2),
        Average(LinearMax(lambda n: Balanced(n, 1.1), 5)),
    ]


def test_combine_follows_the_fewest_mistakes() -> None:
    stream = majority(200, noise=0.05, seed=17)
    learner, alone = Combine(pool()), pool()
    switched = 0
    for x, label in stream:
        mistakes = [member.mistakes for member in alone]
        best = mistakes.index(min(mistakes))
        switched += best != 0
        predictions = [member.trial(x, label) for member in alone]
        assert learner.best == best
        assert learner.trial(x, label) == predictions[best]
        after = [member.mistakes for member in alone]
        now = after.index(min(after))
        assert learner.changed == (now != best or alone[now].changed)
    assert switched > 50
    assert [member.mistakes for member in learner.members] == [member.mistakes for member in alone]


def test_wma_weights_and_bound() -> None:
    stream = majority(300, noise=0.05, seed=18)
    for beta in (0.3, 0.9):
        learner = Combine(pool(), how="wma", beta=beta)
        for x, label in stream:
            learner.grow(25)
            ballots = np.zeros(5)
            for member in learner.members:
                ballots[member.predict(x)] += beta**member.mistakes
            clear = np.sort(ballots)[-1] - np.sort(ballots)[-2] > 1e-9 * ballots.max()
            prediction = learner.trial(x, label)
            assert prediction == int(np.argmax(ballots)) or not clear
        best = min(member.mistakes for member in learner.members)
        bound = (math.log(4) + best * math.log(1 / beta)) / math.log(2 / (1 + beta))
        assert learner.mistakes <= bound


def test_weighted_scores() -> None:
    learner, past = Combine(pool(), how="weighted"), []
    for x, label in majority(150, noise=0.05, seed=19):
        learner.grow(25)
        mistakes = np.array([member.mistakes for member in learner.members])
        eta = math.sqrt(2 * math.log(4) / (mistakes.min() + 1))
        scores = np.array([unit_scores(member, x) for member in learner.members])
        spreads = np.where(scores.var(axis=1) > 1e-24 * scores.mean(axis=1) ** 2, scores.var(axis=1), 0.0)
        sizes = np.mean(past, axis=0) if past else spreads
        sizes = np.sqrt(np.where(sizes > 0.0, sizes, np.where(spreads > 0.0, spreads, np.inf)))
        expected = (np.exp(-eta * (mistakes - mistakes.min())) / sizes) @ scores
        assert learner.scores(x) == pytest.approx(expected, abs=1e-12)
        assert learner.trial(x, label) in np.flatnonzero(expected >= expected.max() - 1e-9)
        past.append(spreads)
    assert Combine(pool()[:1], how="weighted").member_weights().tolist() == [1.0]
    with pytest.raises(TypeError, match="no snapshot"):
        Combine(pool(), how="wma").hypothesis()


def test_v_combine_votes_over_the_best() -> None:
    learner = VCombine(pool(), h=4, w=20, r=20, d=30)
    twin = Combine(pool())
    previous: list[int] = []
    for x, label in majority(150, noise=0.05, seed=21):
        twin.trial(x, label)
        learner.trial(x, label)
        now = [voter.number for voter in learner.voters]
        if now != previous and now:
            expected = twin.members[twin.best].snapshot().scaled("l1").weights
            assert learner.voters[-1].hypothesis.weights == pytest.approx(expected, abs=1e-12)
        previous = now
    assert learner.base.mistakes == twin.mistakes
    assert learner.mistakes <= 2 * twin.mistakes + learner.restarts + 1


@pytest.mark.parametrize("scale", ["vote", "raw", "softmax"])
def test_stack(scale: str) -> None:
    learner = Stack(pool(), LinearMax(lambda n: Multiplicative(n, 1.1), 5), scale=scale, thresholds=True)
    alone = pool()
    fusion = LinearMax(lambda n: Multiplicative(n, 1.1), 5)
    history: list[list[Vector]] = [[] for _ in alone]
    for x, label in majority(60, seed=22):
        columns = []
        for member, past in zip(alone, history, strict=True):
            member.grow(25)
            if scale == "vote":
                columns.append(np.eye(5)[member.predict(x)])
            elif scale == "raw":
                columns.append(x @ member.hypothesis())
            else:
                w = member.hypothesis()
                scores = x @ (w / (np.linalg.norm(w) or 1.0))
                past.append(scores - scores.mean())
                exponent = np.exp(past[-1] / (np.sqrt(np.mean(np.square(past))) or 1.0))
                columns.append(exponent / exponent.sum())
        instance = expand(scores=np.array(columns), k=5)
        assert learner.instance(x) == pytest.approx(instance, abs=1e-9)
        doubt.reset()
        expected = fusion.trial(instance, label)
        for member in alone:
            member.trial(x, label)
        got = learner.trial(x, label)
        if doubt.smallest < 1e-11:
            break
        assert got == expected
        assert learner.hypothesis() == pytest.approx(fusion.hypothesis(), abs=1e-9)
    assert learner.trials > 3


def test_bad_parameters_are_named() -> None:
    base = LinearMax(Perceptron, 2)
    for make, message in (
        (lambda: Multiplicative(2, 0.9), "alpha must be > 1, got 0.9"),
        (lambda: Balanced(2, 1.0), "alpha must be > 1, got 1.0"),
        (lambda: PNorm(2, 1.5), "p must be >= 2, got 1.5"),
        (lambda: Alma(2, 2.0, alpha=0.0), "alpha must be in"),
        (lambda: LinearMax(Perceptron, 1), "k must be >= 2, got 1"),
        (lambda: Recycle(base, u=0), "u must be >= 1, got 0"),
        (lambda: Recycle(base, s=0), "s must be >= 1, got 0"),
        (lambda: Average(base, "l3"), "scale must be one of"),
        (lambda: Combine([]), "members must not be empty"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


# --- doubt and the experiment of the paper ------------------------------------------------------------------


def test_doubt_ignores_exact_arithmetic() -> None:
    doubt.reset()
    for terms in ([3.0, -2.0, -1.0], [0.1, -0.1, 0.1, -0.1], [], [0.0, 0.5, 0.25]):
        doubt.note(terms)
    assert doubt.smallest == math.inf
    doubt.note([0.3, -0.1])
    assert doubt.smallest == pytest.approx(0.5)
    doubt.note([0.3, -0.1, -0.2])  # a tie or not, as the sum is taken
    assert doubt.smallest < 1e-15
    doubt.reset()
    assert doubt.smallest == math.inf


def perceptron() -> LinearMax:
    return LinearMax(Perceptron, 5)


@pytest.mark.parametrize(
    ("make", "low", "high"),
    [
        (perceptron, 330, 420),  # 374 +- 10 on average
        (lambda: Average(perceptron()), 90, 140),  # 110 to 116
        (lambda: Recycle(perceptron()), 95, 150),  # 122
        (lambda: Average(Recycle(perceptron())), 40, 75),  # 54 to 57
        (lambda: LinearMax(lambda n: Multiplicative(n, 1.1), 5), 255, 325),  # 289
        (lambda: LinearMax(Sasb, 5), 400, 520),  # 461
    ],
    ids=["perceptron", "A-perceptron", "R-perceptron", "AR-perceptron", "winnow(1.1)", "sasb"],
)
def test_majority_problem_without_noise(make: Callable[[], Any], low: int, high: int) -> None:
    learner = make()
    run(learner, majority(5000, seed=1000))
    assert low <= learner.mistakes <= high
