"""The trial loop: going on is the same as one run, options, labels of every kind, and refusals that change nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import linmax
from compare import CASES, Case, Problem, follow, problem, problems
from linmax import rules, run
from linmax.data.names import distinct_labels
from linmax.datasets import majority_problem
from linmax.jit.compiling import JIT
from reference import LinearMax

TRIALS = 60 if JIT else 10
lifted = pytest.mark.parametrize("case", CASES, ids=str)


def state(machine: Any) -> tuple[Any, ...]:
    """All that a user sees of a machine."""
    weights = machine.weights.arrays
    return (
        weights.flat.tolist(),
        weights.log_scale,
        machine.trials,
        machine.updates,
        list(machine.classes),
        list(machine.known),
    )


def simple(labels: Any, **options: Any) -> Any:
    rng = np.random.default_rng(0)
    return run("perceptron", linmax.instances(attributes=rng.normal(size=(len(labels), 2)), **options), labels)


# -- one run and many ----------------------------------------------------------------------------------------


@pytest.mark.small
def test_a_trace_counts() -> None:
    data = majority_problem(trials=200 if JIT else 30, seed=1)
    trace = run("perceptron", linmax.instances(votes=data.votes), data.labels)
    assert len(trace) == len(data.labels)
    assert np.array_equal(trace.wrong, trace.predictions != data.labels)
    assert np.array_equal(trace.mistakes, np.cumsum(trace.wrong))
    assert np.array_equal(trace.updates, np.cumsum(trace.changed))
    assert trace.margins is None
    assert trace.passes == 1
    assert repr(trace).startswith(f"<perceptron: {len(trace)} trials, {trace.wrong.sum()} mistakes (")
    assert repr(trace.model) == f"<perceptron over 5 classes: {trace.mistakes[-1]} mistakes in {len(trace)} trials>"


def test_a_trace_draws_itself(tmp_path: Any) -> None:
    data = majority_problem(trials=100, seed=1)
    trace = run("winnow(1.1)", linmax.instances(votes=data.votes), data.labels)
    path = tmp_path / "curve.png"
    trace.plot(path)
    assert path.read_bytes().startswith(b"\x89PNG")
    for bound in (80.0, np.full(100, 80.0)):
        drawn = [line.get_ydata() for line in trace.plot(bound=bound).axes[0].lines]
        assert any(len(y) > 90 and (np.asarray(y)[-90:] == 80.0).all() for y in drawn)
    with pytest.raises(ValueError, match=r"one number, or one for each of the 100 trials, got shape \(40,\)"):
        trace.plot(bound=np.full(40, 80.0))


# -- options -------------------------------------------------------------------------------------------------


@pytest.mark.small
@lifted
@pytest.mark.parametrize("tie", ["smallest", "largest"])
@pytest.mark.parametrize("update_on_tie", [True, False])
def test_ties(case: Case, tie: str, update_on_tie: bool) -> None:
    """On instances that tie all the time, with the reference; nothing at all is learned where nothing is told apart."""
    rng = np.random.default_rng(2)
    trials = 20 if JIT else 6
    given = problem(
        rng.integers(4, size=trials), 4, rng.integers(-1, 4, size=(trials, 2)), thresholds=False, exact=True
    )
    compared = follow(case, given, tie=tie, update_on_tie=update_on_tie)
    assert compared == trials or not case.exact
    nothing = problem([1, 3, 1], 4, [[-1], [-1], [-1]], thresholds=False)
    trace = run(case.rule, nothing.instances, nothing.labels, tie=tie, update_on_tie=update_on_tie)
    assert trace.predictions.tolist() == [0 if tie == "smallest" else 3] * 3
    assert not np.diff(trace.model.weights.arrays.flat).any()


@pytest.mark.small
@lifted
def test_classes_that_appear_later(case: Case) -> None:
    """Labels name 3, 0, 2, 1 in this order; before a class is known, by a label or a vote, it is never predicted."""
    rng = np.random.default_rng(5)
    trials = 40 if JIT else 12
    labels = np.concatenate([[3, 3, 0, 3, 0, 2], rng.integers(0, 3, trials - 8) + 1, [1, 0]])
    votes = rng.integers(-1, 4, size=(trials, 3))
    dense = rng.uniform(-1, 1, (trials, 2))
    for tie in ("smallest", "largest"):
        for discover in True, "labels":
            follow(case, problem(labels, 4, votes, attributes=dense), tie=tie, discover=discover)
            follow(case, problem(labels, 4, votes, thresholds=False), tie=tie, discover=discover)


@pytest.mark.small
def test_discovery_in_several_runs() -> None:
    rng = np.random.default_rng(5)
    votes, dense = rng.integers(4, size=(30, 3)), rng.uniform(-1, 1, (30, 2))
    labels = [*[3] * 5, *[1] * 5, *rng.integers(4, size=20)]
    instances = linmax.instances(votes=votes, attributes=dense, classes=range(4))
    whole = run("winnow(1.5)", instances, labels, discover="labels")
    machine = run("winnow(1.5)", instances[:5], labels[:5], discover="labels").model
    assert machine.known == [3]
    assert machine.predict(instances[:2]).tolist() == [3, 3]
    machine.run(instances[5:10], labels[5:10])
    assert machine.known == [3, 1]
    machine.run(instances[10:], labels[10:])
    assert state(machine) == state(whole.model)
    assert whole.predictions[0] is None
    assert whole.wrong[0]
    slow = LinearMax(CASES[0].reference, 4, discover=True)
    assert slow.best_of(np.zeros(4)) == -1


@pytest.mark.small
def test_epochs_end_with_a_pass_without_update() -> None:
    x = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    instances = linmax.instances(attributes=x, classes=["a", "b", "c"])
    trace = run("perceptron", instances, ["b", "c", "a"], passes=100)
    assert trace.consistent
    assert 1 < trace.passes < 100
    assert len(trace) == 3 * trace.passes == trace.model.trials
    assert not trace.changed[-3:].any()
    assert trace.model.predict(instances).tolist() == ["b", "c", "a"]
    short = run("perceptron", instances, ["b", "c", "a"], passes=1)
    assert not short.consistent
    assert short.predictions.tolist() == trace.predictions[:3].tolist()


@pytest.mark.small
def test_two_opposite_labels_never_end() -> None:
    instances = linmax.instances(attributes=[[1.0], [1.0]])
    trace = run("perceptron", instances, ["a", "b"], passes=7)
    assert (trace.passes, trace.consistent, len(trace)) == (7, False, 14)


# -- labels --------------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize(
    "names",
    [
        ["low", "high", "mid"],
        [10, 20, 30],
        [-1.5, 0.0, 2.5],
        [False, True, False],
        ["a", 1, (2, "x")],
        [(0, 1), (1, 0), (1, 1)],
        [np.int64(3), np.int64(5), np.int64(4)],
        [b"x", b"y", b"z"],
        pd.Series(["u", "v", "w"], index=[7, 8, 9]),
        pd.Categorical(["u", "v", "w"]),
        np.array(["k", "l", "m"]),
        np.array([3, 1, 2], dtype=np.uint8),
    ],
    ids=repr,
)
def test_labels_of_any_kind(names: Any) -> None:
    """Predictions are labels as they were given, equal in value and kind."""
    given = list(names)
    trace = simple(names)
    kinds = (
        {type(name) for name in np.asarray(given, dtype=object).ravel()} if not isinstance(given[0], tuple) else {tuple}
    )
    assert set(trace.predictions.tolist()) <= set(given)
    assert [bool(w) for w in trace.wrong] == [p != g for p, g in zip(trace.predictions.tolist(), given, strict=True)]
    assert set(trace.model.classes) == set(given)
    if kinds == {str}:
        assert trace.predictions.dtype.kind == "U"
    again = trace.model.predict(linmax.instances(attributes=np.zeros((2, 2))))
    assert set(again.tolist()) <= set(given)


@pytest.mark.small
def test_classes_are_sorted_or_as_given() -> None:
    assert simple(["b", "a", "c"]).model.classes == ["a", "b", "c"]
    assert simple(["b", "a"], classes=["b", "z", "a"]).model.classes == ["b", "z", "a"]
    assert simple(["b", 1, "a"]).model.classes == ["b", 1, "a"]  # no order: as they come
    votes = linmax.instances(votes=[["x", "y"], ["x", "x"]])
    assert run("perceptron", votes, ["y", "w"]).model.classes == ["w", "x", "y"]


@pytest.mark.small
def test_classes_are_written_as_the_labels_are() -> None:
    """Votes with gaps are numbers with fractions for NumPy and pandas, and name the same classes."""
    votes = linmax.instances(votes=np.array([[0.0, 2.0], [np.nan, 1.0], [1.0, np.nan]]))
    trace = run("perceptron", votes, np.array([0, 1, 1]))
    assert [repr(name) for name in trace.model.classes] == ["0", "1", "2"]
    assert trace.predictions.dtype.kind == "i"
    assert run("perceptron", votes, np.array([0.0, 1.0, 1.0])).predictions.dtype.kind == "f"


@pytest.mark.small
def test_one_class_is_no_problem() -> None:
    """With nothing to tell apart the one class is always predicted, and nothing is learned."""
    for case in CASES:
        trace = run(case.rule, linmax.instances(attributes=[[0.5], [-1.0]], classes=["only"]), ["only", "only"])
        assert trace.predictions.tolist() == ["only", "only"]
        assert not trace.wrong.any()
        assert not trace.changed.any()


@pytest.mark.small
def test_an_empty_stream() -> None:
    for empty in (
        linmax.instances(votes=np.zeros((0, 3), int), classes=["a", "b"]),
        linmax.instances(attributes=np.zeros((0, 2)), classes=["a", "b"]),
        linmax.instances(votes=[], classes=["a", "b"]),
    ):
        trace = run("winnow(1.1)", empty, [], passes=3)
        assert len(trace) == 0
        assert trace.mistakes.tolist() == []
        assert trace.model.trials == 0
        assert trace.model.predict(empty).tolist() == []
        assert repr(trace) == "<winnow(1.1): 0 trials, 0 mistakes, 0 updates>"
    with pytest.raises(ValueError, match="no trials and no classes; pass classes="):
        run("winnow(1.1)", linmax.instances(votes=np.zeros((0, 3), int)), [])
    machine = simple(["a", "b"]).model
    before = state(machine)
    assert len(machine.run(linmax.instances(attributes=np.zeros((0, 2))), [])) == 0
    assert state(machine) == before


# -- refusals ------------------------------------------------------------------------------------------------

GOOD = linmax.instances(attributes=np.eye(2), classes=["a", "b"])

BAD_CALLS: list[tuple[Any, type[Exception], str]] = [
    (lambda: run("perceptron", GOOD, ["a"]), ValueError, r"labels must be one per trial: got shape \(1,\) for 2"),
    (lambda: run("perceptron", GOOD, [["a"], ["b"]]), TypeError, r"labels: \['a'\] at trial 0 is not hashable; use"),
    (lambda: run("perceptron", GOOD, np.eye(2)), ValueError, r"labels must be one per trial: got shape \(2, 2\)"),
    (lambda: run("perceptron", GOOD, "ab"), ValueError, r"labels must be one per trial: got shape \(\)"),
    (lambda: run("perceptron", GOOD, ["a", "c"]), ValueError, r"'c' at trial 1 is not among the classes .*pass all"),
    (
        lambda: run("perceptron", np.eye(2), ["a", "b"]),
        TypeError,
        r"instances must come from instances\(...\), got ndarray",
    ),
    (lambda: run(3, GOOD, ["a", "b"]), TypeError, "learner must be a rule.* got 3"),
    (lambda: run(rules.winnow, GOOD, ["a", "b"]), TypeError, r"got the function winnow; call it: winnow\(...\)"),
    (lambda: run("winnow(0.9)", GOOD, ["a", "b"]), ValueError, "alpha must be > 1, got 0.9; try 1.1"),
    (
        lambda: run("perceptron", GOOD, ["a", "b"], tie="first"),
        ValueError,
        "tie must be one of smallest, largest, got 'first'",
    ),
    (lambda: run("perceptron", GOOD, ["a", "b"], passes=0), ValueError, "passes must be >= 1, got 0; try 1"),
    (
        lambda: run("perceptron", GOOD, ["a", "b"], passes=1.5),
        TypeError,
        "passes must be a whole number, got 1.5",
    ),
    (lambda: run("perceptron", GOOD, ["a", "b"], margins="yes"), TypeError, "margins must be True or False, got 'yes'"),
    (lambda: run("perceptron", GOOD, ["a", "b"], discover=2), TypeError, "discover must be True or False, .*got 2"),
    (lambda: run("perceptron", GOOD, ["a", "b"], update_on_tie=None), TypeError, "update_on_tie must be True or False"),
    (
        lambda: run("winnow(1.1)", linmax.instances(attributes=[[2.0], [0.0]]), ["a", "b"]),
        ValueError,
        r"winnow\(1.1\) needs .*attributes in \[-1, 1\], but the instances reach 2; pass scale='max'",
    ),
    (
        lambda: run("sasb", linmax.instances(scores=[[[3.0, 0.5]]]), [0]),
        ValueError,
        "sasb needs ratings that differ by at most 1.*but the instances reach 2.5; pass scale=",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), BAD_CALLS, ids=[message for _, _, message in BAD_CALLS])
def test_bad_calls(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.small
@pytest.mark.parametrize("discover", [False, True])
def test_a_refused_run_changes_nothing(discover: bool) -> None:
    rng = np.random.default_rng(0)

    def block(size: int, wide: int = 2, scale: float = 1.0) -> Any:
        attributes = scale * rng.uniform(-1, 1, (size, wide))
        return linmax.instances(votes=rng.choice(["a", "b"], (size, 1)), attributes=attributes, classes=list("abcd"))

    machine = run("winnow(1.3)", block(5), list("aabac"), discover=discover).model
    before = state(machine)
    refused: list[tuple[Any, Any, type[Exception]]] = [
        (block(2), ["d", "z"], ValueError),
        (block(2), ["d"], ValueError),
        (block(2), ["z", None], ValueError),
        (block(2), ["d", ["b"]], TypeError),
        (block(2, wide=3), ["d", "b"], ValueError),
        (block(2, scale=30.0), ["d", "b"], ValueError),
        (linmax.instances(attributes=np.zeros((2, 2))), ["d", "b"], ValueError),
        (np.zeros((2, 2)), ["d", "b"], TypeError),
    ]
    if not discover:  # otherwise further classes may join
        strange = linmax.instances(votes=[["e"], ["e"]], attributes=np.zeros((2, 2)))
        refused.append((strange, ["d", "b"], ValueError))
    for instances, labels, kind in refused:
        with pytest.raises(kind):
            machine.run(instances, labels)
        assert state(machine) == before
    for instances, _, kind in refused[4:]:
        with pytest.raises(kind):
            machine.predict(instances)
    machine.run(block(2), ["d", "b"])
    assert machine.trials == 7


@pytest.mark.small
def test_other_instances_than_the_learner_was_made_for() -> None:
    machine = simple(["a", "b"]).model
    with pytest.raises(ValueError, match=r"3 attributes and thresholds, but the learner was made for .* 2 attributes"):
        machine.predict(linmax.instances(attributes=np.zeros((1, 3))))
    with pytest.raises(
        ValueError, match="no thresholds, but the learner was made for .* and thresholds; give instances"
    ):
        machine.predict(linmax.instances(attributes=np.zeros((1, 2)), thresholds=False))
    voter = run("perceptron", linmax.instances(votes=[["x"], ["y"]]), ["x", "y"]).model
    with pytest.raises(ValueError, match="voter '0' voted for 'z' at trial 0, which is not among the classes"):
        voter.predict(linmax.instances(votes=[["z"]]))
    rater = run("perceptron", linmax.instances(scores=[[[1.0, 0.0]]], classes=["x", "y"]), ["x"]).model
    with pytest.raises(ValueError, match=r"scores rate the classes \['x', 'z'\], but the learner has \['x', 'y'\]"):
        rater.predict(linmax.instances(scores=[[[1.0, 0.0]]], classes=["x", "z"]))
    turned = linmax.instances(scores=[[[0.0, 1.0]]], classes=["y", "x"])
    assert (
        rater.predict(turned).tolist()
        == rater.predict(linmax.instances(scores=[[[1.0, 0.0]]], classes=["x", "y"])).tolist()
    )


@pytest.mark.small
def test_names_of_attributes_must_agree() -> None:
    """Columns of named attributes depend on what was seen before, so equal numbers of them are not enough."""
    first = linmax.instances(attributes=[{"red": 1.0}, {"round": 1.0}])
    machine = run("perceptron", first, ["a", "b"]).model
    before = state(machine)
    with pytest.raises(ValueError, match=r"2 attributes \('big', 'red'\) .*made for .*'red', 'round'.*vocabulary="):
        machine.run(linmax.instances(attributes=[{"big": 1.0, "red": 1.0}]), ["a"])
    assert state(machine) == before
    same = linmax.instances(attributes=[{"round": 1.0}], vocabulary=first.vocabulary)
    assert machine.predict(same).tolist() == ["b"]


@pytest.mark.small
def test_a_margin_needs_something_to_measure() -> None:
    machine = simple(["a", "b"]).model
    with pytest.raises(ValueError, match="margin needs at least one instance and two classes"):
        machine.margin(linmax.instances(attributes=np.zeros((0, 2))), [])
    fresh = run("perceptron", linmax.instances(attributes=[[0.0]], classes=["a", "b"], thresholds=False), ["a"]).model
    assert fresh.margin(linmax.instances(attributes=[[1.0]], thresholds=False), ["a"]) == 0.0


def exact_margin(given: Problem, weights: np.ndarray) -> float:
    leads = [
        x[label] @ weights - max(np.delete(x @ weights, label))
        for x, label in zip(given.matrices, given.labels, strict=True)
    ]
    return float(min(leads) / (math.sqrt(2.0) * np.linalg.norm(weights)))


@pytest.mark.small
@lifted
def test_margin_of_any_instances(case: Case) -> None:
    for name in ("votes", "dense", "sparse hybrid"):
        given = problems(TRIALS)[name]
        machine = run(case.rule, given.instances, given.labels).model
        expected = exact_margin(given, machine.weights.arrays.flat)
        assert machine.margin(given.instances, given.labels) == pytest.approx(expected, rel=1e-9)


@pytest.mark.small
@pytest.mark.parametrize(
    "labels",
    [
        np.array([-128, 127, 3, -128], np.int8),
        np.array([2**63 + 5, 2**63 + 5, 2**63 + 9], np.uint64),
        np.array([7, 7, 7]),
        np.array([10**12, -(10**12), 0]),
        np.array([5, 0, 65_000, 5], np.uint16),
    ],
)
def test_integer_labels_are_sorted_as_numbers(labels: np.ndarray) -> None:
    distinct, place = distinct_labels(labels)
    expected, inverse = np.unique(labels, return_inverse=True)
    assert distinct == expected.tolist()
    assert place.tolist() == inverse.tolist()
