"""The reference against cases worked out by hand.

What the papers and proved bounds say is tested on the library, which must agree with the reference trial by trial.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from reference import (
    Alma,
    Balanced,
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
)
from reference_techniques import Average, Recycle, Vote


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
    for c in (3, 0, 1):
        learner.trial(only[c], c)
    base.labels = []
    learner.trial(only[2], 2)  # the oldest (3) leaves the buffer
    assert base.labels == [2, 0, 1, 2]


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
