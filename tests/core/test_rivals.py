"""Against which wrong classes a rule learns: the reference, the bounds that survive, and the words for it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from scipy import sparse
from test_rules import small_problems

import linmax
from compare import CASES, Case, Problem, follow, problems
from compare_techniques import follow_technique
from linmax import parse, rivals, rules, run
from linmax.jit.compiling import JIT
from linmax.theory import LinearThreshold, bounds, certify

TRIALS = 20 if JIT else 6
PROBLEMS = problems(TRIALS)
ATTRIBUTES = ["dense", "dense, no thresholds", "sparse", "sparse, no thresholds", "zeros and a threshold"]
VIOLATED = [
    replace(case, rule=rivals(case.rule, "violated"))
    for case in CASES
    if not case.rule.thickness and case.rule.name not in ("sasb", "alma", "balanced_winnow")
]
ALONE = [
    replace(case, rule=rivals(case.rule, "all"))
    for case in CASES
    if (case.graded and case.rule.name != "romma")
    or case.rule.name in ("perceptron", "adagrad", "p_norm", "second_order_perceptron")
]


@pytest.mark.small
@pytest.mark.parametrize("case", [*VIOLATED, *ALONE], ids=str)
def test_equals_reference_on_every_kind_of_instance(case: Case) -> None:
    compared = {name: follow(case, given) for name, given in PROBLEMS.items()}
    assert sum(compared.values()) > 0.7 * TRIALS * len(PROBLEMS), compared


@pytest.mark.small
@settings(max_examples=100 if JIT else 10, deadline=None)
@hypothesis.given(
    st.sampled_from([*VIOLATED, *ALONE]), small_problems(), st.sampled_from(["smallest", "largest"]), st.booleans()
)
def test_equals_reference_on_anything(case: Case, given: Problem, tie: str, discover: bool) -> None:
    follow(case, given, tie=tie, discover=discover)


@pytest.mark.small
@pytest.mark.parametrize(
    "learner",
    [
        "A-arow(rivals=violated)",
        "R(s=6, u=2)-nherd(0.5, rivals=violated)",
        "AR(s=6, u=2)-scw-i(rivals=violated)",
        "V(h=3, w=4, r=5, d=3)-arow(rivals=violated)",
        "A-arow(rivals=all)",
        "R(s=6, u=2)-arow(rivals=all)",
        "AR(s=6, u=2)-perceptron(rivals=all)",
        "combine(arow(rivals=all), pa, A-arow(rivals=violated), how=weighted)",
        "stack(arow(rivals=all), A-perceptron, fusion=arow(10, start=1, inflation=0.01))",
    ],
)
def test_techniques_over_rivals_equal_the_reference(learner: str) -> None:
    chosen = list(PROBLEMS)[:: 2 if JIT else 7]
    agreed = sum(follow_technique(learner, PROBLEMS[name]) for name in chosen)
    assert agreed > 0.6 * TRIALS * len(chosen)


@pytest.mark.small
@pytest.mark.parametrize("text", ["arow(0.1)", "pa-i", "scw-i", "perceptron", "winnow(1.3)"])
def test_of_two_classes_the_violated_rival_is_the_best(text: str) -> None:
    given = PROBLEMS["two classes"]
    first, second = (run(learner, given.instances, given.labels) for learner in (text, rivals(text, "violated")))
    assert np.array_equal(first.model.weights.arrays.flat, second.model.weights.arrays.flat)
    assert first.model.updates == second.model.updates


@pytest.mark.small
@pytest.mark.parametrize("rule", ["arow(0.1)", "scw-i", "nherd", "arow(0.1, inflation=0.01)", "pa-ii", "perceptron"])
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_on_attributes_all_is_one_two_class_learner_for_each_class(rule: str, name: str) -> None:
    """Those of second order learn all classes abreast, which must come to the same."""
    given = PROBLEMS[name]
    thresholds = given.instances.constant != 0.0
    machine = run(rivals(rule, "all"), given.instances, given.labels).model
    x = given.instances.dense if given.instances.csr is None else given.instances.csr.toarray()
    labels = np.array(given.labels)
    weights = machine.weights.arrays
    updates = 0
    for c in range(given.k):
        alone = LinearThreshold(rule, labels=(-1, 1), constant=thresholds)
        alone.run(x, np.where(labels == c, 1, -1))
        updates += alone.updates
        np.testing.assert_allclose(weights.attributes[:, c], alone.weights[-x.shape[1] :], rtol=1e-9, atol=1e-12)
    assert machine.updates == updates


@pytest.mark.small
def test_neutral_technique_changes_no_bit() -> None:
    """A stack wants scores and norms, so that another path through the loop is taken: the learner is the same."""
    rng = np.random.default_rng(5)
    trials = 200 if JIT else 20
    x = sparse.random_array((trials, 30), density=0.2, rng=rng, format="csr")
    labels = rng.integers(9, size=trials)
    instances = linmax.instances(attributes=x, classes=range(9))
    plain = run("arow(0.1, rivals=all)", instances, labels)
    recycled = run("R(s=1, u=1)-arow(0.1, rivals=all)", instances, labels)
    assert np.array_equal(plain.predictions, recycled.predictions)
    assert np.array_equal(plain.model.weights.arrays.flat, recycled.model.weights.arrays.flat)
    cut = run("arow(0.1, rivals=all)", instances[:70], labels[:70]).model
    cut.run(instances[70:], labels[70:])
    assert np.array_equal(plain.model.weights.arrays.flat, cut.weights.arrays.flat)


# -- which bounds survive ------------------------------------------------------------------------------------


def separable(seed: int, trials: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points that the columns of u tell apart, each by at least .1."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(4, k))
    x = rng.uniform(-1.0, 1.0, (trials * 3, 4))
    top = np.sort(x @ u, axis=1)
    x = x[top[:, -1] - top[:, -2] > 0.1][:trials]
    return x, np.argmax(x @ u, axis=1), u


@pytest.mark.small
@pytest.mark.parametrize("which", ["best", "violated"])
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_on_updates_holds_for_best_and_violated(which: str, seed: int) -> None:
    x, labels, u = separable(seed, 400 if JIT else 40, 5)
    z = np.concatenate(
        [x[t, :, None] * (np.eye(5)[c] - np.eye(5)[j]) for t, c in enumerate(labels) for j in range(5) if j != c]
    )
    z = z.reshape(-1, 20)
    radius, margin = np.linalg.norm(z, axis=1).max(), (z @ u.ravel())[np.linalg.norm(z, axis=1) > 0].min()
    learner = run(rivals("perceptron", which), linmax.instances(attributes=x, thresholds=False), labels).model
    assert learner.updates <= bounds.perceptron(radius, np.linalg.norm(u), margin)
    aggressive = run(rivals("pa", which), linmax.instances(attributes=x, thresholds=False), labels)
    assert aggressive.wrong.sum() <= bounds.passive_aggressive(radius, np.linalg.norm(u) / margin)


@pytest.mark.small
@pytest.mark.parametrize("seed", range(4))
def test_the_bounds_of_all_add_up(seed: int) -> None:
    """The updates are those of k two-class Perceptrons, each within its own bound with its own hinge noise."""
    x, labels, u = separable(seed, 400 if JIT else 40, 4)
    learner = run(rivals("perceptron", "all"), linmax.instances(attributes=x, thresholds=False), labels).model
    radius, total = np.linalg.norm(x, axis=1).max(), 0.0
    for c in range(4):
        lead = np.where(labels == c, 1.0, -1.0) * (x @ u[:, c])
        margin = 0.5
        total += bounds.perceptron(radius, np.linalg.norm(u[:, c]), margin, np.maximum(0.0, margin - lead).sum())
    assert learner.updates <= total


# -- words ---------------------------------------------------------------------------------------------------


def test_notation_and_errors() -> None:
    learner = parse("AR-arow(0.1, rivals=violated)")
    assert str(learner) == "AR-arow(r=0.1, rivals=violated)"
    assert parse(str(learner)) == learner
    assert rivals("arow(rivals=all)", "best") == rules.arow()
    assert rules.arow() != rivals(rules.arow(), "all")
    bad: list[tuple[Any, str]] = [
        (lambda: rivals("arow", "some"), "rivals must be one of best, violated, all, got 'some'"),
        (lambda: parse("arow(rivals=some)"), "rivals must be one of best, violated, all, got 'some'"),
        (lambda: rivals("winnow(1.1)", "all"), "rivals='all' needs weights of both signs, and winnow.*try 'violated'"),
        (lambda: LinearThreshold("arow(rivals=all)"), "of two classes there is one; leave rivals out"),
        (
            lambda: certify(linmax.instances(votes=[["a"], ["b"]]), ["a", "b"], "perceptron(rivals=all)"),
            "certify these one by",
        ),
    ]
    for call, message in bad:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="a plain rule is needed here"):
        rivals("A-arow", "all")


def exact_balanced_winnow(votes: np.ndarray, labels: np.ndarray, k: int) -> list[float]:
    """Balanced Winnow with alpha = 2 against every violated rival, in fractions."""
    s = [0] * votes.shape[1]

    def weight(i: int) -> Fraction:
        return Fraction(2) ** s[i] - Fraction(2) ** -s[i]

    def z(t: int, i: int, rival: int) -> int:
        return int(votes[t, i] == labels[t]) - int(votes[t, i] == rival)

    for t, label in enumerate(labels.tolist()):
        scores = [sum(weight(i) for i in range(len(s)) if votes[t, i] == c) for c in range(k)]
        others = sorted((c for c in range(k) if c != label), key=lambda c: (-scores[c], c))
        for rival in [c for c in others if scores[label] <= scores[c]]:
            if sum(weight(i) * z(t, i, rival) for i in range(len(s))) <= 0:
                s = [value + z(t, i, rival) for i, value in enumerate(s)]
    return [float(weight(i)) for i in range(len(s))]


@pytest.mark.small
def test_margins_whose_terms_cancel_are_ties() -> None:
    """Sums of powers of 2 are exact, so that a margin of 0 is 0 for the second rival, too."""
    random = np.random.default_rng(1)
    for _ in range(20 if JIT else 3):
        votes, labels = random.integers(0, 4, (60, 9)), random.integers(0, 4, 60)
        given = linmax.instances(votes=votes, classes=range(4), thresholds=False)
        trace = run("balanced-winnow(2, rivals=violated)", given, labels)
        assert trace.model.weights.arrays.flat.tolist() == exact_balanced_winnow(votes, labels, 4)
