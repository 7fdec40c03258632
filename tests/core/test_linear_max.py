"""The linear-max transformation: its four properties, the rival, and instances written out."""

from __future__ import annotations

import math
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

import linmax
from compare import CASES, Case, Problem, problem, problems
from linmax import rules, run
from linmax.core.contract import LARGEST
from linmax.core.linear_max import longest_row, top_two
from linmax.jit.compiling import JIT
from linmax.theory import LinearThreshold

TRIALS = 40 if JIT else 8
lifted = pytest.mark.parametrize("case", CASES, ids=str)
PROBLEMS = {
    name: given
    for name, given in problems(TRIALS).items()
    if name
    in ("abstaining votes", "negated votes", "scores", "dense", "sparse, no thresholds", "sparse hybrid", "ties")
}


def rival_of(scores: np.ndarray, label: int) -> int:
    """The best other class, the smallest of those that tie."""
    others = scores.copy()
    others[label] = -np.inf
    return int(np.argmax(others))


@pytest.mark.small
@lifted
def test_weights_are_those_of_the_two_class_rule_fed_with_z(case: Case) -> None:
    """Bit for bit: the transformation adds nothing to the rule but z = x^label - x^rival with label +1."""
    total = 0
    for name, given in PROBLEMS.items():
        binary = LinearThreshold(case.rule, labels=(-1, 1))
        machine = run(case.rule, given.instances[:0], []).model
        for t, x in enumerate(given.matrices):
            one, label = given.instances[t : t + 1], given.labels[t]
            scores = machine.scores(one)[0]
            z = x[label] - x[rival_of(scores, label)]
            trace = machine.run(one, [label])
            same = binary.run(z.reshape(1, -1), [1])
            if same.changed[0] != trace.changed[0]:
                # w.z and zeta(label) - zeta(rival) are summed in different orders.
                size = np.abs(scores).max() + np.abs(machine.weights.arrays.flat).max()
                lead = scores[label] - np.max(np.delete(scores, label)) - _reach(binary)
                assert abs(lead) < 1e-12 * size, f"{name}, trial {t}"
                break
            assert case.same_weights(binary.weights, machine.weights.arrays.flat), f"{name}, trial {t}"
            assert binary.log_scale == pytest.approx(machine.weights.arrays.log_scale, rel=1e-12, abs=1e-12)
            assert binary.updates == machine.updates
            total += 1
    assert total > 0.8 * TRIALS * len(PROBLEMS)


def _reach(binary: LinearThreshold) -> float:
    """Where the rule stops updating, for the thick forms; what a margin rule wants is checked by the reference."""
    reach = float(binary._state.scalars[0, 2])
    return reach if math.isfinite(reach) else 0.0


@pytest.mark.small
@lifted
def test_mistakes_are_updates(case: Case) -> None:
    """And updates are mistakes, or right predictions that only tie, when the rule is driven by mistakes."""
    for name, given in PROBLEMS.items():
        trace = run(case.rule, given.instances, given.labels, margins=True)
        assert trace.margins is not None
        moved = np.array([x[label].tolist() != np.delete(x, label, 0)[0].tolist() for x, label in _pairs(given)])
        assert not (trace.wrong & ~trace.changed & moved).any(), name
        assert (trace.mistakes <= trace.updates + np.cumsum(~moved)).all()
        if case.rule.reach == 0.0 and not case.rule.thickness:
            ties = trace.margins == 0.0
            assert np.array_equal(trace.changed & moved, (trace.wrong | ties) & moved), name
        else:
            assert (trace.margins[~trace.changed & moved] > 0.0).all()


def _pairs(given: Problem) -> Any:
    return zip(given.matrices, given.labels, strict=True)


@pytest.mark.small
@lifted
def test_adding_a_constant_to_a_sub_expert_changes_nothing(case: Case) -> None:
    """x_i^j + c_i: halves and quarters, so that the ratings' differences keep all their bits."""
    rng = np.random.default_rng(1)
    ratings = rng.integers(0, 5, size=(TRIALS, 4, 3)) / 4.0
    labels = rng.integers(3, size=TRIALS)
    shifted = ratings + rng.integers(-3, 4, size=(TRIALS, 4, 1)) / 2.0
    first = run(case.rule, linmax.instances(scores=ratings, thresholds=False), labels)
    second = run(case.rule, linmax.instances(scores=shifted, thresholds=False), labels)
    agree = np.flatnonzero((first.predictions != second.predictions) | (first.changed != second.changed))
    if case.exact and case.rule.name in ("perceptron", "quasi_additive", "p_norm"):
        assert agree.size == 0
    if agree.size == 0:
        expected = second.model.weights.arrays
        got = first.model.weights.arrays
        scale = math.exp(got.log_scale - expected.log_scale)
        np.testing.assert_allclose(got.flat * scale, expected.flat, rtol=1e-9, atol=1e-12)
    else:  # a tie that rounding broke: it must be one
        t = int(agree[0])
        machine = run(
            case.rule, linmax.instances(scores=ratings[:t], thresholds=False, classes=range(3)), labels[:t]
        ).model
        one = machine.scores(linmax.instances(scores=ratings[t : t + 1], thresholds=False, classes=range(3)))[0]
        top = np.sort(one)
        assert min(top[2] - top[1], top[1] - top[0]) < 1e-9 * np.abs(machine.weights.arrays.flat).max()


@pytest.mark.small
@lifted
def test_two_classes_are_the_two_class_rule(case: Case) -> None:
    """One-hot votes for two classes: vote for the second is +1, for the first -1, abstaining is 0."""
    rng = np.random.default_rng(6)
    votes = rng.integers(-1, 2, size=(TRIALS, 4))
    labels = np.where(rng.random(TRIALS) < 0.8, np.maximum(votes[:, 0], 0), rng.integers(2, size=TRIALS))
    many = run(case.rule, linmax.instances(votes=votes, abstain=-1, classes=[0, 1], thresholds=False), labels)
    signs = np.where(votes < 0, 0, 2 * votes - 1)
    two = LinearThreshold(case.rule, labels=(0, 1), zero_label=0)  # ties go to the smaller class
    trace = two.run(signs, labels)
    apart = np.flatnonzero((many.changed != trace.changed) | (many.predictions != trace.predictions))
    stop = int(apart[0]) if apart.size else TRIALS
    if case.exact:
        assert stop == TRIALS
    assert stop > TRIALS // 4
    if stop == TRIALS:
        assert case.same_weights(many.model.weights.arrays.flat, two.weights)
        assert many.mistakes[-1] == two.mistakes


@pytest.mark.small
@settings(max_examples=200 if JIT else 50, deadline=None)
@hypothesis.given(st.lists(st.integers(-2, 2), min_size=1, max_size=6), st.booleans(), st.integers(0, 6))
def test_top_two(values: list[int], largest: bool, known: int) -> None:
    known = min(known, len(values))
    shape = np.zeros(5, np.int64)
    shape[LARGEST] = largest
    order = sorted(range(known), key=lambda j: (-values[j], -j if largest else j))
    expected = [*order, -1, -1][:2]
    plain = getattr(top_two, "py_func", top_two)  # compiled it is part of its callers
    assert list(plain(np.array(values, float), known, shape)) == expected


@pytest.mark.small
def test_instances_written_out() -> None:
    """`Instances.matrix` against the reference's columns, and scores and z through it."""
    for name, given in problems(4).items():
        for t, x in enumerate(given.matrices):
            assert given.instances.matrix(t, range(given.k)).tolist() == x.tolist(), name
            label = given.labels[t]
            expected = [x[label] - x[j] for j in range(given.k) if j != label]
            assert given.instances.differences(t, label).tolist() == np.array(expected).tolist()


@pytest.mark.small
@lifted
def test_scores_are_the_weighted_votes(case: Case) -> None:
    for given in PROBLEMS.values():
        machine = run(case.rule, given.instances, given.labels).model
        weights = machine.weights.arrays.flat
        table = machine.scores(given.instances)
        for t, x in enumerate(given.matrices):
            np.testing.assert_allclose(table[t], x @ weights, rtol=1e-9, atol=1e-12 * (1 + np.abs(weights).max()))
        first = np.argmax(table, axis=1)
        assert machine.predict(given.instances).tolist() == first.tolist()


@pytest.mark.small
def test_margins_of_a_run_are_at_true_scale() -> None:
    """zeta(label) - zeta(rival) with the true weights, also when those are stored scaled."""
    trials = 400 if JIT else 30
    votes = [["a", "b"]] * trials
    trace = run("winnow(4, thickness=2)", linmax.instances(votes=votes, thresholds=False), ["a"] * trials, margins=True)
    assert trace.margins is not None
    s = np.arange(trials)
    np.testing.assert_allclose(trace.margins, 4.0**s - 4.0**-s, rtol=1e-9)


def test_a_rule_with_a_threshold_is_refused() -> None:
    instances = linmax.instances(votes=[["a"], ["b"]])
    for rule in (rules.winnow(2, threshold=3), rules.elimination()):
        with pytest.raises(ValueError, match=r"has a fixed threshold and does not lift .*use LinearThreshold"):
            run(rule, instances, ["a", "b"])


@pytest.mark.small
def test_negated_copies_make_winnow_balanced() -> None:
    """Winnow on [x, -x] with start 1 is Balanced Winnow on x: w+ and w- are the weights of the two copies."""
    rng = np.random.default_rng(9)
    trials = 200 if JIT else 20
    ratings = rng.integers(0, 65, size=(trials, 5, 3)) / 64.0  # w+ = w- = 1 must cancel at first
    labels = rng.integers(3, size=trials)
    both = run("winnow(1.4)", linmax.instances(scores=ratings, negated=True, thresholds=False), labels)
    balanced = run("balanced-winnow(1.4)", linmax.instances(scores=ratings, thresholds=False), labels)
    assert np.array_equal(both.predictions, balanced.predictions)
    assert np.array_equal(both.changed, balanced.changed)
    weights = both.model.weights.arrays.raters
    np.testing.assert_allclose(weights[:5] - weights[5:], balanced.model.weights.arrays.raters, rtol=1e-9, atol=1e-12)


@pytest.mark.small
def test_a_split_voter_can_be_trusted_for_one_class() -> None:
    """Right for class 0 and misleading for the others: as a whole it cannot be used, split it is learned exactly."""
    rng = np.random.default_rng(3)
    trials = 600 if JIT else 60
    votes = rng.integers(3, size=(trials, 1))
    labels = np.where(votes[:, 0] == 0, 0, 3 - votes[:, 0])  # 1 stands for 2 and 2 for 1
    plain = run("perceptron", linmax.instances(votes=votes, classes=range(3)), labels)
    split = run("perceptron", linmax.instances(votes=votes, classes=range(3), split="all"), labels)
    assert split.wrong[trials // 2 :].sum() == 0
    assert plain.wrong[trials // 2 :].sum() > trials // 20


def test_problem_and_library_agree_on_the_layout() -> None:
    given = problem([0], 3, [[1]], [[[0.0, 0.5, 1.0]]], [[0.25]], as_sparse=True, negated=True, split={0: 1, 1: "all"})
    layout = given.instances.layout
    assert (layout.voters, layout.raters, layout.dense, layout.sparse) == (2, 2, 3, 3)
    assert given.instances.attribute_names == ("rater 0:0", "rater 0:1", "rater 0:2", "0", "-0", "0:1")


@pytest.mark.small
@pytest.mark.parametrize("many", [1, 1000])
@pytest.mark.parametrize(("starts", "longest"), [([], 0), ([3], 0), ([3, 3], 0), ([0, 4], 4), ([2, 5, 5, 12, 13], 7)])
def test_the_longest_row_is_found(starts: list[int], longest: int, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linmax.core.linear_max.MANY_ROWS", many)
    assert longest_row(np.array(starts, np.int64)) == longest


@pytest.mark.small
@pytest.mark.parametrize("each", [False, True], ids=["one", "each"])
def test_score_of_unseen_class(each: bool) -> None:
    """x^inf = c: a new label gives z = c - x^A for every sub-expert, thresholds and attributes included."""
    rng = np.random.default_rng(2)
    votes, attributes = rng.integers(4, size=(TRIALS, 3)), np.round(rng.random((TRIALS, 1)), 2)
    labels, n = votes[:, 0], 3 + 4 + 4
    unseen = np.linspace(0.0, 1.0, n) if each else np.full(n, 0.3)
    given = {"votes": votes, "attributes": attributes, "classes": range(4)}
    trace = run("perceptron", linmax.instances(**given, unseen=unseen if each else 0.3), labels, discover="labels")
    plain, w, known, met = linmax.instances(**given), np.zeros(n), [], []
    for t, label in enumerate(labels.tolist()):
        x = plain.matrix(t)
        order = sorted(known, key=lambda j, x=x: -round(float(x[j] @ w), 9))  # a stable sort: the first known wins ties
        met.append(order[0] if order else None)
        if label not in known:
            z = unseen - x[order[0]] if order else np.zeros(n)
            known.append(label)
        else:
            others = [j for j in order if j != label]
            z = x[label] - x[others[0]] if others else np.zeros(n)
        if z @ w <= 1e-12:
            w = w + z
    assert trace.predictions.tolist() == met
    assert trace.model.weights.arrays.flat == pytest.approx(w)


def test_bad_ratings_of_unseen_classes() -> None:
    with pytest.raises(ValueError, match="unseen=0.2 requires classes="):
        linmax.instances(votes=[[0, 1]], unseen=0.2)
    with pytest.raises(ValueError, match="unseen must be from 0 to 1, as ratings are, got 2"):
        linmax.instances(votes=[[0, 1]], classes=[0, 1], unseen=2)
    with pytest.raises(ValueError, match="unseen must be one number or 4, one a sub-expert, got 3"):
        linmax.instances(votes=[[0, 1]], classes=[0, 1], unseen=[0, 0, 0.5])
