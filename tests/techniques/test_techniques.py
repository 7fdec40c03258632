"""Every technique over every rule against the slow reference, trial by trial."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_rules import small_problems

from compare import CASES, Case, Problem, problem, problems
from compare_techniques import follow_technique, slow_of
from linmax import average, bandit, combine, instances, parse, recycle, run, selective, stack, vote, vr_combine
from linmax.data.arrays import Layout
from linmax.datasets import majority_problem
from linmax.engine.engine import Engine, Settings
from linmax.jit.compiling import CHECKED, JIT

pytestmark = pytest.mark.portable

TRIALS = 25 if JIT else 8
KINDS_EACH = 2 if JIT and not CHECKED else 1  # kinds of instances that a pair of rule and technique meets
PROBLEMS = problems(TRIALS)
compiled = pytest.mark.skipif(not JIT, reason="needs many trials")

TECHNIQUES: dict[str, Callable[[Any], Any]] = {
    "A": average,
    "A max": lambda x: average(x, "max"),
    "A l1": lambda x: average(x, "l1"),
    "A max fading": lambda x: average(x, "max", fade=True),
    "R": lambda x: recycle(x, s=8, u=3),
    "R budget": lambda x: recycle(x, s=8, u=3, budget=4),
    "AR": lambda x: average(recycle(x, s=8, u=3)),
    "V": lambda x: vote(x, h=4, w=6, r=8, d=10),
    "V raw": lambda x: vote(x, h=4, w=6, r=8, d=10, scale="raw"),
    "VA": lambda x: vote(average(x), h=5, w=6, r=8, d=10, scale="l1"),
    "VA raw": lambda x: vote(average(x), h=4, w=6, r=8, d=10, scale="raw"),
    "VA raw fading": lambda x: vote(average(x, fade=True), h=4, w=6, r=8, d=10, scale="raw"),
    "VA max raw": lambda x: vote(average(x, "max"), h=4, w=6, r=8, d=10, scale="raw"),
    "VR": lambda x: vote(recycle(x, s=8, u=2), h=3, w=6, r=8, d=10, scale="l1"),
    "S": lambda x: selective(x, b=0.5),
    "SA": lambda x: selective(average(x), b=0.3, seed=1),
    "B": lambda x: bandit(x, gamma=0.4, seed=2),
    "SAR": lambda x: selective(average(recycle(x, s=8, u=3)), b=2.0),
    "V random": lambda x: vote(x, h=5, saved="random", seed=3),
    "VAR random": lambda x: vote(average(recycle(x, s=5, u=2)), h=4, saved="random"),
    "VAR": lambda x: vote(average(recycle(x, s=5, u=2)), h=4, w=6, r=8, d=10),
}

COMPOSED = [
    "combine(perceptron, A-winnow(1.3), R(s=6, u=2)-alma(3), AR(s=6)-balanced-winnow(1.3))",
    "combine(perceptron, A-winnow(1.3), R(s=6, u=2)-alma(3), AR(s=6)-balanced-winnow(1.3), how=wma)",
    "combine(perceptron, A-winnow(1.3), V(h=3, w=4, r=5, d=8)-balanced-winnow(1.3), how=wma, beta=0.8)",
    "combine(perceptron, A-winnow(1.3), R(s=6, u=2)-alma(3), AR(s=6)-balanced-winnow(1.3), how=weighted)",
    "combine(perceptron, A-winnow(1.3), V(h=3, w=4, r=5, d=8)AR(s=6, u=2)-alma(3), VA-p-norm(3), how=weighted)",
    "combine(combine(perceptron, winnow(1.3), how=wma), combine(alma(3), A-winnow(1.3), how=weighted), "
    "V(h=3, w=4, r=5, d=8)-perceptron)",
    "V(h=4, w=6, r=8, d=10)-combine(R(s=6, u=2)-perceptron, AR(s=6, u=2)-perceptron, R(s=6, u=2)-winnow(1.3), "
    "AR(s=6, u=2)-winnow(1.3), R(s=6, u=2)-alma(3), AR(s=6, u=2)-alma(3))",
    "V(h=4, w=6, r=8, d=10, scale=l1)-combine(perceptron, A-perceptron, winnow(1.3), A(scale=max)-winnow(1.3))",
    "V(h=4, w=6, r=8, d=10, scale=raw)-combine(perceptron, A-perceptron, winnow(1.3), A-winnow(1.3), A-alma(3))",
    "V(h=3, w=6, r=8, d=10)-combine(perceptron, combine(alma(3), A-winnow(1.3)))",
    "V(h=7, saved=random, seed=5)-combine(perceptron, A-perceptron, R(s=6, u=2)-winnow(1.3), A-alma(3))",
    "combine(perceptron, V(h=3, saved=random)-winnow(1.3), A-winnow(1.3))",
    "stack(perceptron, A-winnow(1.3), alma(3))",
    "stack(perceptron, R(s=6, u=2)-winnow(1.3), fusion=winnow(1.3))",
    "stack(perceptron, V(h=3, w=4, r=5, d=8)-winnow(1.3), combine(alma(3), A-winnow(1.3)), "
    "fusion=AR(s=6, u=2)-winnow(1.3))",
    "stack(V(scale=l1, h=3, w=4, r=5, d=3)-perceptron, V(scale=raw, h=3, w=4, r=5, d=3)A-winnow(1.3), fusion=alma(3))",
    "stack(combine(alma(3), A-winnow(1.3), how=weighted), combine(alma(3), A-winnow(1.3), how=wma), "
    "fusion=V(h=3, w=4, r=5, d=8)-balanced-winnow(1.3))",
    "combine(S-perceptron, S(b=0.1, seed=3)A-winnow(1.3), alma(3))",
    "stack(perceptron, stack(alma(3), A-winnow(1.3), fusion=p-norm(3)), fusion=combine(perceptron, winnow(1.3)))",
]

OPTIONS: list[dict[str, Any]] = [
    {},
    {"discover": True},
    {"tie": "largest"},
    {"update_on_tie": False},
    {"discover": True, "tie": "largest", "update_on_tie": False},
]


@pytest.mark.small
@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_reference_over_every_rule(case: Case) -> None:
    kinds = cycle(PROBLEMS)
    for _ in range(CASES.index(case) * KINDS_EACH * len(TECHNIQUES) % len(PROBLEMS)):
        next(kinds)  # every rule meets other pairs of technique and kind of instance
    agreed = 0
    for technique in TECHNIQUES.values():
        for _ in range(KINDS_EACH):
            kind = next(kinds)
            agreed += follow_technique(technique(case.rule), PROBLEMS[kind])
    assert agreed > 0.75 * len(TECHNIQUES) * KINDS_EACH * TRIALS  # few close calls, or nothing was tested


@pytest.mark.small
@pytest.mark.parametrize("learner", COMPOSED)
def test_equals_reference_of_compositions(learner: str) -> None:
    kinds = list(PROBLEMS)[COMPOSED.index(learner) :] + list(PROBLEMS)[: COMPOSED.index(learner)]
    chosen = kinds[:: 1 if JIT else 5]
    agreed = sum(
        follow_technique(learner, PROBLEMS[kind], **OPTIONS[place % len(OPTIONS)]) for place, kind in enumerate(chosen)
    )
    assert agreed > 0.75 * len(chosen) * TRIALS


def rules_alone() -> st.SearchStrategy[Any]:
    return st.sampled_from([case.rule for case in CASES])


def averaged() -> st.SearchStrategy[Any]:
    recycled = st.builds(recycle, rules_alone(), s=st.integers(1, 12), u=st.integers(1, 4))
    base = rules_alone() | recycled
    return base | st.builds(average, base, st.sampled_from(["raw", "max", "l1"]))


def voted() -> st.SearchStrategy[Any]:
    pool = st.lists(averaged(), min_size=1, max_size=3).map(combine)
    return st.builds(
        vote,
        averaged() | pool,
        h=st.integers(1, 5),
        w=st.integers(0, 6),
        r=st.integers(1, 6),
        d=st.integers(1, 6),
        scale=st.sampled_from(["l2", "l1", "raw"]),
    )


def learners() -> st.SearchStrategy[Any]:
    some = st.lists(averaged() | voted(), min_size=1, max_size=3)
    return (
        averaged()
        | voted()
        | st.builds(combine, some, how=st.sampled_from(["best", "wma", "weighted"]), beta=st.floats(0.1, 0.9))
        | st.builds(stack, some, fusion=averaged() | voted())
    )


@pytest.mark.small
@settings(max_examples=200 if JIT else 15, deadline=None)
@given(learners(), small_problems(), st.sampled_from(OPTIONS))
def test_equals_reference_on_anything(learner: Any, given: Problem, options: dict[str, Any]) -> None:
    if not Engine(learner, Layout(0, 0, 0, 0, 1.0), 2, Settings()).from_zero:
        options = options | {"discover": False}  # a class brings its attributes, which norms of positive weights count
    follow_technique(learner, given, **options)
    if "tanh" not in str(learner) and "cube" not in str(learner):  # a user's function has no text
        assert parse(str(learner)) == learner


@compiled
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_equals_reference_over_many_trials(noise: float) -> None:
    """Long enough for windows of several trials, replaced voters and restarts."""
    data = majority_problem(n=6, r=3, k=3, noise=noise, trials=250, seed=5)
    given = problem(data.labels, 3, votes=data.votes)
    for learner in (
        "VR(s=10, u=2)-perceptron",
        "V(h=6, d=20)A-winnow(1.3)",
        "V(h=4, w=20, d=20)-combine(R(s=10)-perceptron, AR(s=10)-perceptron, AR(s=10)-winnow(1.3))",
    ):
        assert follow_technique(learner, given) > 100


@compiled
def test_vr_combine_of_the_paper_equals_reference() -> None:
    data = majority_problem(n=8, r=5, k=3, trials=30, noise=0.1, seed=2)
    agreed = follow_technique(vr_combine(s=6, u=2, h=4, d=10), problem(data.labels, 3, votes=data.votes))
    assert agreed > 15


# -- sub-experts that come later -----------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("text", ["perceptron", "alma(3)", "balanced-winnow(1.3)", "winnow(1.3)"])
@pytest.mark.parametrize("technique", ["A", "R", "AR", "V", "V raw", "VA", "VA raw", "VR", "VAR"])
def test_raters_that_appear_are_raters_that_rated_nothing(text: str, technique: str) -> None:
    """The reference is shown wider instances as raters come; the library has them rate all classes 0 until then.

    Where a weight never seen is not 0 only raw scales are the same: a norm counts what is there.
    """
    if text == "winnow(1.3)" and technique in ("V", "VA", "VR", "VAR"):
        pytest.skip("norms differ")
    rng = np.random.default_rng(11)
    ratings = rng.random((TRIALS, 5, 3))
    labels = np.where(rng.random(TRIALS) < 0.7, ratings[:, 4].argmax(axis=1), rng.integers(3, size=TRIALS))
    begin = np.array([0, 0, 0, TRIALS // 3, TRIALS // 2])
    ratings[np.arange(TRIALS)[:, None] < begin] = 0.0
    learner = TECHNIQUES[technique](text)
    slow = slow_of(learner, 3)
    trace = run(learner, instances(scores=ratings, classes=range(3), thresholds=False), labels)
    for t in range(TRIALS):
        here = int((begin <= t).sum())
        assert trace.predictions[t] == slow.trial(ratings[t, :here].T.copy(), int(labels[t])), t
    weights = trace.model.weights.arrays
    got = weights.flat * np.exp(weights.log_scale - slow.log_scale)
    np.testing.assert_allclose(got, slow.hypothesis(), rtol=1e-9, atol=1e-12)


@pytest.mark.small
@pytest.mark.parametrize("learner", ["VAR(s=8)-winnow(1.3)", COMPOSED[0], COMPOSED[6]])
def test_voters_that_appear_are_voters_that_abstained(learner: str) -> None:
    """As it was when they were not yet there: what an abstention costs is nothing."""
    rng = np.random.default_rng(12)
    votes = rng.integers(3, size=(TRIALS, 5))
    votes[np.arange(TRIALS)[:, None] < [0, 0, 0, TRIALS // 3, TRIALS // 2]] = -1
    labels = np.where(rng.random(TRIALS) < 0.7, votes[:, 0], rng.integers(3, size=TRIALS))
    assert follow_technique(learner, problem(labels, 3, votes=votes)) > TRIALS // 2
    few = run(learner, instances(votes=votes[: TRIALS // 3, :3], classes=range(3), abstain=-1), labels[: TRIALS // 3])
    many = run(learner, instances(votes=votes, classes=range(3), abstain=-1)[: TRIALS // 3], labels[: TRIALS // 3])
    if "V" not in learner:  # whose norms count the weights of those who are there
        assert few.predictions.tolist() == many.predictions.tolist()


@compiled
def test_mistakes_on_the_majority_problem() -> None:
    """Averages over a few seeds, loosely, of what independent programs make."""
    for learner, low, high in (("A-perceptron", 95, 130), ("R-perceptron", 105, 140), ("AR-perceptron", 44, 66)):
        mistakes = []
        for seed in range(3):
            data = majority_problem(trials=5000, seed=seed)
            mistakes.append(run(learner, instances(votes=data.votes), data.labels).mistakes[-1])
        assert low < np.mean(mistakes) < high, (learner, mistakes)
