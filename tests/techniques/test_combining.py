"""Combinations: the best so far, weighted majority, weighted scores and stacks, by their formulas and bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import linmax
from linmax import combine, run, stack
from linmax.core.contract import UNTOUCHED
from linmax.datasets import majority_problem
from linmax.jit.compiling import JIT

TRIALS = 200 if JIT else 15
POOL = ["perceptron", "A-winnow(1.3)", "R(s=10)-alma(3)", "A-perceptron"]
DATA = majority_problem(n=6, r=3, k=3, trials=TRIALS, noise=0.1, seed=7)
INSTANCES = linmax.instances(votes=DATA.votes, classes=range(3))


@pytest.fixture(scope="module")
def alone() -> list[Any]:
    return [run(member, INSTANCES, DATA.labels) for member in POOL]


def mistakes_before(alone: list[Any]) -> np.ndarray:
    """(members, trials): mistakes of each member before each trial."""
    return np.array([np.concatenate([[0], trace.mistakes[:-1]]) for trace in alone])


@pytest.mark.small
def test_best_follows_the_fewest_mistakes(alone: list[Any]) -> None:
    trace = run(combine(POOL), INSTANCES, DATA.labels)
    best = mistakes_before(alone).argmin(axis=0)  # the first of those that tie
    expected = np.array([member.predictions for member in alone])[best, np.arange(TRIALS)]
    assert trace.predictions.tolist() == expected.tolist()
    now = int(np.argmin([member.mistakes[-1] for member in alone]))
    assert np.array_equal(trace.model.weights.arrays.flat, alone[now].model.weights.arrays.flat)
    assert [member.mistakes for member in trace.model.members] == [member.mistakes[-1] for member in alone]
    assert [member.name for member in trace.model.members] == POOL


@pytest.mark.small
@pytest.mark.parametrize("beta", [0.05, 0.5, 0.9])
def test_weighted_majority(alone: list[Any], beta: float) -> None:
    trace = run(combine(POOL, how="wma", beta=beta), INSTANCES, DATA.labels)
    before = mistakes_before(alone)
    weights = beta ** (before - before.min(axis=0))
    votes = np.zeros((TRIALS, 3))
    for member, weight in zip(alone, weights, strict=True):
        votes[np.arange(TRIALS), member.predictions] += weight
    sure = np.sort(votes, axis=1)[:, -1] - np.sort(votes, axis=1)[:, -2] > 1e-9
    assert sure.sum() > 0.7 * TRIALS
    assert (trace.predictions == votes.argmax(axis=1))[sure].all()
    m = min(member.mistakes[-1] for member in alone)
    assert trace.mistakes[-1] <= (math.log(4) + m * math.log(1.0 / beta)) / math.log(2.0 / (1.0 + beta))


def unit(member: Any) -> np.ndarray:
    """The weights, divided by their 2-norm over what updates have touched."""
    weights, counted = member.weights.arrays.flat, member.weights.arrays.flat
    if member.engine.runs[0].rule.marks:
        touched = member.engine.state.memory[0, 0, : len(weights)] != UNTOUCHED
        counted = weights[touched] if touched.any() else weights[:1]
    return np.asarray(weights / (np.linalg.norm(counted) or 1.0))


@pytest.mark.small
def test_weighted_scores(alone: list[Any]) -> None:
    """exp(-eta (M_i - M_min)) times the scores over their size so far, eta = sqrt(2 ln v / (M_min + 1))."""
    machine = run(combine(POOL, how="weighted"), INSTANCES[:0], []).model
    members = [run(member, INSTANCES[:0], []).model for member in POOL]
    squares, mistakes = np.zeros(4), np.zeros(4)
    for t in range(TRIALS):
        one, label = INSTANCES[t : t + 1], DATA.labels[t : t + 1]
        units = [unit(member) for member in members]
        scores = np.array([INSTANCES.matrix(t) @ unit for unit in units])
        spreads = scores.var(axis=1)
        eta = math.sqrt(2.0 * math.log(4) / (mistakes.min() + 1))
        sizes = np.where(squares > 1e-20, squares / max(t, 1), spreads)
        shares = np.where(sizes > 1e-20, np.exp(-eta * (mistakes - mistakes.min())) / np.sqrt(sizes + 1e-300), 0.0)
        np.testing.assert_allclose(machine.scores(one)[0], shares @ scores, rtol=1e-9, atol=1e-12)
        if (squares > 1e-20).all():
            np.testing.assert_allclose(machine.weights.arrays.flat, shares @ units, rtol=1e-9, atol=1e-12)
        squares += spreads
        machine.run(one, label)
        mistakes += [member.run(one, label).wrong[0] for member in members]
    whole = run(combine(POOL, how="weighted"), INSTANCES, DATA.labels).model
    np.testing.assert_allclose(whole.weights.arrays.flat, machine.weights.arrays.flat, rtol=1e-9, atol=1e-12)


@pytest.mark.small
def test_a_combination_of_one_is_that_one(alone: list[Any]) -> None:
    for how in ("best", "wma", "weighted"):
        for member, trace in zip(POOL, alone, strict=True):
            combined = run(combine([member], how=how), INSTANCES, DATA.labels)
            assert combined.predictions.tolist() == trace.predictions.tolist()


@pytest.mark.small
def test_a_stack_by_hand() -> None:
    """The fusion's instances are shares of softmax over centred scores divided by their running size."""
    learner = stack(["perceptron", "A-winnow(1.3)"], fusion="winnow(1.2)")
    machine = run(learner, INSTANCES[:0], []).model
    members = [run(member, INSTANCES[:0], []).model for member in ("perceptron", "A-winnow(1.3)")]
    squares = np.zeros(2)
    shares = np.zeros((TRIALS, 2, 3))
    for t in range(TRIALS):
        one = INSTANCES[t : t + 1]
        for i, member in enumerate(members):
            scores = INSTANCES.matrix(t) @ unit(member)
            centred = scores - scores.mean()
            squares[i] += (centred**2).mean()
            root = math.sqrt(squares[i] / (t + 1)) or 1.0
            shares[t, i] = np.exp(centred / root) / np.exp(centred / root).sum()
            member.run(one, DATA.labels[t : t + 1])
    fused = run("winnow(1.2)", linmax.instances(scores=shares, classes=range(3), thresholds=False), DATA.labels)
    trace = machine.run(INSTANCES, DATA.labels)
    assert trace.predictions.tolist() == fused.predictions.tolist()
    fusion = machine.engine.top.fusion
    np.testing.assert_allclose(fusion.state.weights[0], fused.model.weights.arrays.flat, rtol=1e-9)


@pytest.mark.small
def test_learner_without_weights_raises() -> None:
    for learner in (combine(POOL, how="wma"), stack(POOL)):
        machine = run(learner, INSTANCES[:5], DATA.labels[:5]).model
        with pytest.raises(ValueError, match="not a single weight vector; look at its members"):
            _ = machine.weights


@pytest.mark.small
def test_a_pool_whose_rules_need_different_ranges() -> None:
    """The narrowest need counts, and is named; a fusion sees shares in [0, 1] whatever the members see."""
    wide = linmax.instances(attributes=np.linspace(-3.0, 3.0, 20).reshape(10, 2), classes=range(2))
    labels = [0, 1] * 5
    for learner in (combine(["perceptron", "winnow(1.1)"]), stack(["perceptron", "A-winnow(1.1)"]), "V-winnow(1.1)"):
        with pytest.raises(ValueError, match="winnow\\(1.1\\) needs .* reach 3; pass scale='max' to instances"):
            run(learner, wide, labels)
    assert len(run(combine(["perceptron", "p-norm(3)"]), wide, labels)) == 10
    assert len(run(stack(["perceptron"], fusion="winnow(1.1)"), wide, labels)) == 10


@pytest.mark.skipif(not JIT, reason="needs many trials")
def test_selection_finds_the_best_rule_at_any_noise() -> None:
    for noise in (0.0, 0.3):
        data = majority_problem(trials=2000, noise=noise, seed=3)
        instances = linmax.instances(votes=data.votes)
        trace = run("VR-combine", instances, data.labels)
        least = min(member.mistakes for member in trace.model.members)
        assert trace.mistakes[-1] <= 1.1 * least + 10
