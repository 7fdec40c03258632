"""Recycling: how often an instance is used, when it ends, and its limits."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import linmax
from compare import problem, random_votes
from compare_techniques import follow_technique
from linmax import average, recycle, run
from linmax.core.contract import LEFT
from linmax.datasets import majority_problem
from linmax.jit.compiling import JIT

pytestmark = pytest.mark.portable

compiled = pytest.mark.skipif(not JIT, reason="needs many trials")
RULES = [
    "perceptron",
    "perceptron(margin=2)",
    "winnow(1.3)",
    "balanced-winnow(1.5, thickness=0.05)",
    "alma(3, alpha=0.9)",
]


@pytest.mark.small
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("s", "u"), [(1, 1), (1, 7), (6, 1), (6, 3), (20, 2)])
def test_uses_never_exceed_u_and_it_comes_to_rest(rule: str, s: int, u: int) -> None:
    """After every trial each recent instance has been used u times or calls for no update any more."""
    given = random_votes(60 if JIT else 10, 5, 3, 3, abstain=0.1)
    machine = run(recycle(rule, s=s, u=u), given.instances[:0], []).model
    used = 0
    for t in range(len(given.labels)):
        before = machine.recycled
        machine.run(given.instances[t : t + 1], given.labels[t : t + 1])
        uses = machine.engine.tail_uses[0]
        assert len(uses) == min(t + 1, s)
        assert uses.max() <= u
        assert uses.min() >= 0
        used = max(used, int(uses.max()))
        assert machine.recycled - before <= s * u
        if machine.recycled == before:
            continue
        left = np.flatnonzero(uses < u)
        twin = run(rule, given.instances[:0], []).model
        for mine, theirs in zip(machine.engine.state, twin.engine.state, strict=True):
            if mine.shape == theirs.shape:
                theirs[...] = mine
        recent = given.instances[max(0, t + 1 - s) : t + 1]
        labels = np.array(given.labels[max(0, t + 1 - s) : t + 1])
        for i in left:
            assert not twin.run(recent[i : i + 1], labels[i : i + 1]).changed.any()
    assert used == u or s == 1 or not JIT


@pytest.mark.small
def test_recycled_updates_are_counted_separately() -> None:
    given = random_votes(50 if JIT else 12, 5, 3, 3)
    trace = run("R(s=8)-perceptron", given.instances, given.labels)
    assert trace.model.updates == trace.changed.sum() + trace.model.recycled
    assert trace.model.recycled > 0
    assert run("perceptron", given.instances, given.labels).model.recycled == 0


@pytest.mark.small
def test_recycling_one_instance() -> None:
    """With s = 1 an instance is shown again until it is learned: 0 < w.z after at most u updates."""
    instances = linmax.instances(attributes=[[1.0], [-3.0]], classes=range(2), thresholds=False)
    machine = run(recycle("perceptron(margin=10)", s=1, u=4), instances, [0, 1]).model
    # First z = (1, -1): 2, 4, 6, 8. Then z = (-3 -> class 1): w.z = 24 and is left alone.
    assert machine.updates == 4
    assert machine.weights.arrays.flat.tolist() == [4.0, -4.0]
    machine.run(instances[:1], [0])
    assert machine.updates == 6  # 8, 10 and then 12, which leaves the margin
    assert machine.weights.arrays.flat.tolist() == [6.0, -6.0]


def contradictions(trials: int) -> tuple[Any, list[int]]:
    """The same instance with one label and another."""
    return linmax.instances(votes=[[0, 1]] * trials, classes=range(2), thresholds=False), [t % 2 for t in range(trials)]


@pytest.mark.small
@pytest.mark.parametrize("passes", [1, 2, 5])
def test_unlimited_uses_end_with_the_passes(passes: int) -> None:
    instances, labels = contradictions(6)
    machine = run(recycle("perceptron", s=4, u=math.inf, passes=passes), instances[:0], []).model
    for t in range(6):
        before = machine.recycled
        machine.run(instances[t : t + 1], labels[t : t + 1])
        assert machine.recycled - before <= 4 * passes
    assert machine.recycled > 3 * passes


@pytest.mark.small
@pytest.mark.parametrize("passes", [None, 1, 3])
@pytest.mark.parametrize("u", [1, 3, math.inf])
@pytest.mark.parametrize("s", [1, 4, 100])
def test_passes_equal_the_reference(s: int, u: float, passes: int | None) -> None:
    if u == math.inf and passes is None:
        passes = 20 if not JIT else 50
    given = random_votes(14 if JIT else 7, 4, 3, 5)
    for rule in ("perceptron", "winnow(1.3)"):
        follow_technique(recycle(rule, s=s, u=u, passes=passes), given)
        follow_technique(average(recycle(rule, s=s, u=u, passes=passes)), given)


@compiled
def test_unlimited_uses_of_noisy_data_end() -> None:
    """A thousand passes by default; contradictory data would go on for ever."""
    instances, labels = contradictions(4)
    trace = run(recycle("perceptron", s=2, u=math.inf), instances, labels)
    assert 1000 <= trace.model.recycled <= 3 * 2 * 1000


@compiled
def test_unlimited_uses_of_separable_data_leave_nothing_to_learn() -> None:
    data = majority_problem(n=9, r=5, k=3, trials=300, seed=2)
    instances = linmax.instances(votes=data.votes, classes=range(3))
    machine = run(recycle("perceptron", s=300, u=math.inf, passes=100_000), instances, data.labels).model
    assert (machine.predict(instances) == data.labels).all()


@pytest.mark.small
def test_an_instance_may_be_used_again_by_a_later_trial_only_up_to_u() -> None:
    """Uses are kept while an instance is recent, over trials, runs and slices."""
    given = problem([0, 1] * 10, 2, attributes=[[1.0], [0.9]] * 10, thresholds=False)
    machine = run(recycle("perceptron", s=20, u=2), given.instances, given.labels).model
    assert machine.updates <= 2 * 20
    assert machine.engine.tail_uses.max() == 2
    assert machine.engine.tail_uses.sum() == machine.updates


# -- budgets -------------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("rule", [*RULES, "arow", "scw-i", "arow(rivals=all)"])
@pytest.mark.parametrize(("s", "u", "budget"), [(6, 3, 1), (6, 3, 4), (20, math.inf, 7), (3, 2, 1000)])
def test_a_budget_equals_the_reference(rule: str, s: int, u: float, budget: int) -> None:
    trials = 40 if JIT else 10
    given = random_votes(trials, 5, 3, 4, abstain=0.1)
    if rule in ("alma(3, alpha=0.9)", "perceptron(margin=2)", "balanced-winnow(1.5, thickness=0.05)"):
        rule = "perceptron"
    follow_technique(average(recycle(rule, s=s, u=u, budget=budget), fade=True), given)
    assert follow_technique(recycle(rule, s=s, u=u, budget=budget), given) > 0


@pytest.mark.small
def test_a_budget_bounds_the_look_ups() -> None:
    """Each recycled update takes one look-up at least, and no more are made than trials have brought."""
    trials = 400 if JIT else 40
    data = majority_problem(trials=trials, noise=0.4, seed=2)
    instances = linmax.instances(votes=data.votes)
    free = run("R(s=50, u=20)-perceptron", instances, data.labels).model
    machine = run("R(s=50, u=20, budget=2)-perceptron", instances, data.labels).model
    left = int(machine.engine.state.counts[0, LEFT])
    assert 0 <= left <= 2 * trials
    assert machine.recycled <= 2 * trials - left
    assert machine.recycled < free.recycled
    saved = run("R(s=50, budget=2)-perceptron", linmax.instances(votes=[["a", "b"]] * 1500), ["a"] * 1500).model
    assert saved.engine.state.counts[0, LEFT] <= 2000


@pytest.mark.small
@pytest.mark.parametrize(
    "learner", ["R(s=30, u=9, budget=3)-winnow(1.3)", "A(scale=max, fade=True)R(s=30, budget=9)-pa"]
)
def test_cuts_do_not_matter_to_a_budget(learner: str) -> None:
    trials = 300 if JIT else 30
    data = majority_problem(trials=trials, noise=0.3, seed=3)
    instances = linmax.instances(votes=data.votes)
    whole = run(learner, instances, data.labels)
    machine = run(learner, instances[:0], []).model
    predictions: list[Any] = []
    for begin, end in pairwise([0, 1, 2, trials // 4, trials // 2, trials]):
        predictions += list(machine.run(instances[begin:end], data.labels[begin:end]).predictions)
    assert predictions == list(whole.predictions)
    assert np.array_equal(machine.weights.arrays.flat, whole.model.weights.arrays.flat)


@pytest.mark.small
def test_a_large_budget_without_noise_learns_as_much_as_none() -> None:
    trials = 300 if JIT else 30
    data = majority_problem(trials=trials, seed=4)
    instances = linmax.instances(votes=data.votes)
    machine = run("R(s=300, u=1000, budget=1000)-perceptron", instances, data.labels).model
    assert (machine.predict(instances) == data.labels).all()


def test_a_budget_must_be_a_number_of_look_ups() -> None:
    with pytest.raises(ValueError, match="budget must be >= 1, got 0; try 1"):
        recycle("perceptron", budget=0)
    with pytest.raises(TypeError, match="budget must be a whole number, got 1.5"):
        recycle("perceptron", budget=1.5)  # type: ignore[arg-type]
