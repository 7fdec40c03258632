"""LinearThreshold: any two labels, both counters, zero_label, the constant, sparse and named attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import reference
from compare import CASES, Case
from linmax import rules
from linmax.jit.compiling import JIT
from linmax.theory import LinearThreshold

TRIALS = 60 if JIT else 15
lifted = pytest.mark.parametrize("case", CASES, ids=str)
EVERY = [case.rule for case in CASES] + [rules.winnow(2, threshold=2), rules.elimination()]


def data(trials: int = TRIALS, m: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (trials, m)) * (rng.random((trials, m)) < 0.7)
    return x, np.where(x[:, 0] - x[:, 1] + rng.normal(scale=0.3, size=trials) > 0, 1, -1)


def state(learner: LinearThreshold) -> tuple[Any, ...]:
    return (
        learner.weights.tolist(),
        learner.log_scale,
        learner.trials,
        learner.updates,
        learner.mistakes,
        learner.labels,
    )


@pytest.mark.small
@lifted
@pytest.mark.parametrize("constant", [False, True])
def test_equals_reference(case: Case, constant: bool) -> None:
    """The two-class rules themselves: z = y x."""
    x, y = data()
    columns = np.hstack([np.ones((TRIALS, 1)), x]) if constant else x
    slow = case.reference(columns.shape[1])
    fast = LinearThreshold(case.rule, labels=(-1, 1), constant=constant)
    compared = 0
    for t in range(TRIALS):
        score = reference.total(slow.w * columns[t])
        reference.doubt.reset()
        changed = slow.update(y[t] * columns[t])
        trace = fast.run(x[t : t + 1], y[t : t + 1])
        expected = (1 if score >= 0.0 else -1, changed)
        if (trace.predictions[0], trace.changed[0]) != expected and reference.doubt.smallest < 1e-11:
            break
        assert (trace.predictions[0], trace.changed[0]) == expected
        got, wanted = fast.weights * np.exp(fast.log_scale - slow.log_scale), slow.w
        if case.scale_free:
            got, wanted = (v / (np.abs(v).max() or 1.0) for v in (got, wanted))
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-13 * np.abs(wanted).max(initial=0.0))
        compared += 1
    assert compared >= TRIALS // 2


@pytest.mark.small
@pytest.mark.parametrize("rule", EVERY, ids=str)
def test_any_two_labels(rule: Any) -> None:
    x, y = data()
    x = np.abs(x) if rule.nonnegative else x
    y = np.where(x[:, 0] > 0.5, 1, -1) if rule.name == "elimination" else y
    x = np.hstack([x, (x[:, :1] > 0.5).astype(float)])
    plain = LinearThreshold(rule, labels=(-1, 1))
    expected = plain.run(x, y)
    for negative, positive in [("no", "yes"), (False, True), (0, 1), ("only", 7), (("a", 1), ("b", 2))]:
        names = [positive if side > 0 else negative for side in y]
        learner = LinearThreshold(rule, labels=(negative, positive))
        trace = learner.run(x, names)
        assert trace.predictions.tolist() == [positive if p > 0 else negative for p in expected.predictions]
        assert np.array_equal(trace.wrong, expected.wrong)
        assert np.array_equal(learner.weights, plain.weights)
        assert learner.mistakes == plain.mistakes == expected.wrong.sum()
        assert learner.updates == plain.updates == expected.changed.sum()
        assert learner.predict(x[:3]).tolist() == [positive if p > 0 else negative for p in plain.predict(x[:3])]


@pytest.mark.small
def test_labels_are_sorted_when_not_given() -> None:
    x, y = data()
    learner = LinearThreshold("perceptron")
    learner.run(x, np.where(y > 0, "up", "down"))
    assert learner.labels == ("down", "up")
    np.testing.assert_allclose(learner.score(x[:5]), x[:5] @ learner.weights, rtol=1e-12, atol=1e-14)


@pytest.mark.small
@lifted
def test_zero_label_changes_predictions_but_no_weights(case: Case) -> None:
    x, y = data()
    x[::3] = 0.0
    x[0] = 0.0
    positive = LinearThreshold(case.rule, labels=(-1, 1))
    negative = LinearThreshold(case.rule, labels=(-1, 1), zero_label=-1)
    first, second = positive.run(x, y), negative.run(x, y)
    assert np.array_equal(positive.weights, negative.weights)
    assert np.array_equal(first.changed, second.changed)
    apart = first.predictions != second.predictions
    assert apart[::3].all()  # w.x = 0 there
    assert (first.predictions[apart] == 1).all()


@pytest.mark.small
def test_updates_count_ties_and_mistakes_do_not() -> None:
    learner = LinearThreshold("perceptron", labels=(-1, 1))
    learner.run([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1, 1, -1])
    assert (learner.trials, learner.mistakes, learner.updates) == (3, 1, 3)
    assert repr(learner) == "<perceptron: 3 trials, 1 mistakes, 3 updates>"


@pytest.mark.small
def test_winnow2_of_littlestone() -> None:
    """alpha = 2, theta = n = 4, by hand."""
    learner = LinearThreshold(rules.winnow(2, threshold=4), labels=(0, 1))
    trace = learner.run([[1, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 1]], [1, 1, 0, 0])
    assert trace.predictions.tolist() == [0, 0, 1, 0]
    assert learner.weights.tolist() == [2.0, 0.5, 1.0, 1.0]
    assert learner.updates == learner.mistakes == 3
    with pytest.raises(AttributeError, match="inconsistent belongs to elimination, not to winnow"):
        _ = learner.inconsistent


@pytest.mark.small
@pytest.mark.parametrize("rule", EVERY, ids=str)
def test_sparse_is_dense(rule: Any) -> None:
    x, y = data()
    x = np.abs(x) if rule.nonnegative else x
    y = np.where(x[:, 0] > 0, 1, -1) if rule.name == "elimination" else y
    learners = [LinearThreshold(rule, labels=(-1, 1), constant=rule.lifts) for _ in range(3)]
    full = sparse.csr_array(x)
    explicit = sparse.csr_array((x.ravel().copy(), np.tile(np.arange(4), TRIALS), np.arange(TRIALS + 1) * 4), x.shape)
    traces = [learner.run(block, y) for learner, block in zip(learners, (x, full, explicit), strict=True)]
    for trace, learner in zip(traces[1:], learners[1:], strict=True):
        assert np.array_equal(trace.predictions, traces[0].predictions)
        assert np.array_equal(trace.changed, traces[0].changed)
        assert np.array_equal(learner.weights, learners[0].weights)


@pytest.mark.small
@lifted
def test_attributes_by_name_grow(case: Case) -> None:
    """Names that come later are as good as columns that were 0 before: same weights, same decisions."""
    rng = np.random.default_rng(3)
    x, y = data(30, m=6, seed=4)
    order = np.minimum(5, np.arange(len(x)) // 3)  # column c is first seen at trial 3 c
    x[np.arange(6)[None, :] > order[:, None]] = 0.0
    names = rng.permutation(6)
    named, dense = LinearThreshold(case.rule, labels=(-1, 1)), LinearThreshold(case.rule, labels=(-1, 1))
    dense.run(x, y)
    for t, row in enumerate(x):
        named.learn({f"name {names[c]}": row[c] for c in range(6) if row[c]}, int(y[t]))
    columns = [named._vocabulary[f"name {names[c]}"] for c in range(6)]
    assert (named.trials, named.updates, named.mistakes) == (dense.trials, dense.updates, dense.mistakes)
    if not case.scale_free:
        np.testing.assert_allclose(named.weights[columns], dense.weights, rtol=1e-12, atol=1e-14)
    before = named.weights
    assert named.predict([{"never seen": 1.0}, {}]).tolist() == [1, 1]
    assert named.weights[:6].tolist() == before.tolist()
    assert (
        named.weights[6] == pytest.approx(case.rule.start * np.exp(-named.log_scale), abs=1e-300)
        or case.rule.start == 0
    )


@pytest.mark.small
def test_growth_of_a_thick_rule_counts_the_new_weight() -> None:
    """winnow(2, thickness=.3): lead 1 against .3 of a sum of 3, 4 (update) and then 1 against .3 of 2."""
    learner = LinearThreshold(rules.winnow(2, thickness=0.3), labels=(-1, 1))
    slow = reference.Multiplicative(1, 2.0, thickness=0.3)
    names = [{"a": 1.0}, {"b": 1.0}, {"c": 1.0, "a": -1.0}, {"b": 1.0}, {"d": 1.0}, {"e": 1.0}, {"b": 1.0}, {"f": 1.0}]
    place: dict[str, int] = {}
    for instance in names:
        for name in instance:
            place.setdefault(name, len(place))
        if len(place) > slow.n:
            slow.grow(len(place))
        z = np.zeros(len(place))
        for name, value in instance.items():
            z[place[name]] = value
        expected = slow.update(z)
        before = learner.updates
        learner.learn(instance, 1)
        assert (learner.updates > before) == expected
        np.testing.assert_allclose(learner.weights, slow.w, rtol=1e-9)


@pytest.mark.small
def test_growth_at_another_scale() -> None:
    """A name that comes when the weights have grown by hundreds of decades starts at its true weight."""
    learner = LinearThreshold(rules.winnow(4, thickness=2), labels=(-1, 1))
    for _ in range(600):
        learner.learn({"old": 1.0}, 1)
    learner.learn({"new": 1.0}, 1)
    assert learner.updates == 601
    assert learner.score([{"new": 1.0}])[0] > 0.0
    assert learner.score([{"new": 0.5, "newest": -1.0}])[0] > 0.0  # 4^1 / 2 against 1
    assert learner.score([{"new": 0.125, "newest": -1.0}])[0] < 0.0


@pytest.mark.small
def test_one_trial_at_a_time() -> None:
    x, y = data()
    whole, single, columns = (LinearThreshold("alma(2.5, alpha=0.9)", labels=(-1, 1)) for _ in range(3))
    trace = whole.run(x, y)
    assert [single.learn(row, label) for row, label in zip(x, y, strict=True)] == trace.predictions.tolist()
    for t in range(TRIALS):
        columns.learn(sparse.csr_array(x[t : t + 1]), y[t])
    assert np.array_equal(single.weights, whole.weights)
    assert np.array_equal(columns.weights, whole.weights)


@pytest.mark.small
def test_inputs_of_any_kind() -> None:
    x, y = data()
    x = np.round(x * 8) / 8  # exact in float16
    expected = LinearThreshold("winnow(1.5)", labels=(-1, 1))
    expected.run(x, y)
    frozen = x.copy()
    frozen.flags.writeable = False
    for block in (
        x.astype(np.float32),
        x.astype(np.float16),
        np.asfortranarray(x),
        frozen,
        x.tolist(),
        pd.DataFrame(x),
    ):
        learner = LinearThreshold("winnow(1.5)", labels=(-1, 1))
        learner.run(block, y)
        assert np.array_equal(learner.weights, expected.weights)


@pytest.mark.small
@pytest.mark.parametrize("text", ["perceptron", "winnow(2, threshold=3)", "elimination"])
def test_prediction_of_one_instance_and_before_the_first_trial(text: str) -> None:
    rows = (np.random.default_rng(0).random((20, 4)) < 0.4).astype(float)
    learner = LinearThreshold(text, labels=("no", "yes"))
    first = learner.predict(rows[0])
    assert first == learner.predict(rows[:1])[0] == learner.run(rows[:1], ["no"]).predictions[0]
    assert learner.trials == 1
    learner.run(rows[1:], np.where(rows[1:, 0] > 0, "yes", "no"))
    scores, labels = learner.score(rows), learner.predict(rows)
    assert [learner.predict(row) for row in rows] == labels.tolist()
    assert [learner.score(row) for row in rows] == scores.tolist()
    by_name = LinearThreshold(text, labels=("no", "yes"))
    assert by_name.predict({"a": 1.0}) == by_name.predict([{"a": 1.0}])[0]


BAD: list[tuple[Any, type[Exception], str]] = [
    (lambda: LinearThreshold("perceptron", labels=("a",)), ValueError, r"labels must be two different .*got \('a',\)"),
    (lambda: LinearThreshold("perceptron", labels=("a", "a")), ValueError, "labels must be two different labels"),
    (lambda: LinearThreshold("perceptron", constant="yes"), TypeError, "constant must be True or False, got 'yes'"),
    (lambda: LinearThreshold(5), TypeError, "learner must be a rule.* got 5"),
    (lambda: LinearThreshold("A-perceptron"), TypeError, "a plain rule is needed here, got A-perceptron"),
    (lambda: LinearThreshold("winnow(2, threshold=3)", zero_label=0), ValueError, "zero_label=0: .*remove it"),
    (
        lambda: LinearThreshold("perceptron", zero_label="c").run([[1], [2]], ["a", "b"]),
        ValueError,
        "zero_label must be 'a' or 'b', got 'c'",
    ),
    (
        lambda: LinearThreshold("perceptron").run([[1.0]], ["a"]),
        ValueError,
        r"labels must have two distinct values, got \['a'\]; pass labels=",
    ),
    (
        lambda: LinearThreshold("perceptron").learn([1.0], "a"),
        ValueError,
        r"learn\(\) needs to know both labels; pass labels=",
    ),
    (
        lambda: LinearThreshold("perceptron").predict([[1.0]]),
        ValueError,
        r"predict\(\) requires both labels; pass labels=",
    ),
    (lambda: LinearThreshold("perceptron").weights, ValueError, "has seen no instance yet"),
]


@pytest.mark.parametrize(("call", "kind", "message"), BAD, ids=[message for _, _, message in BAD])
def test_bad_calls(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.small
@pytest.mark.parametrize("text", ["winnow(2, threshold=2)", "winnow(1.5)", "perceptron"])
def test_a_refused_run_changes_nothing(text: str) -> None:
    learner = LinearThreshold(text, labels=("no", "yes"))
    fresh = (learner.trials, learner.updates, learner.mistakes)
    with pytest.raises(ValueError, match="labels: 'maybe' at trial 1 is neither 'no' nor 'yes'"):
        learner.run(np.eye(2), ["no", "maybe"])
    assert (learner.trials, learner.updates, learner.mistakes) == fresh
    learner.run(np.eye(2), ["no", "yes"])
    before = state(learner)
    refused: list[tuple[Any, Any, str]] = [
        (np.eye(2), ["no"], r"labels must be one per trial: got shape \(1,\) for 2 instances"),
        (np.eye(2), ["no", None], "labels: None at trial 1 is not a class; drop"),
        (
            np.eye(3),
            ["no", "no", "no"],
            "3 attributes and no thresholds, but the learner was made for .*give it the same",
        ),
        ([[np.nan, 1.0]], ["no"], r"attributes must be finite, got nan at \(0, 0\); fill or drop it"),
        ([[np.inf, 1.0]], ["no"], r"attributes must be finite, got inf at \(0, 0\)"),
        ([1.0, 2.0], ["no", "yes"], r"attributes must be \(trials, attributes\), got shape \(2,\); reshape it"),
        ([[1.0], [1.0, 2.0]], ["no", "yes"], "attributes must be .*rows of different lengths; make them equally long"),
    ]
    if text != "perceptron":
        refused.append(([[0.5, 3.0]], ["no"], "needs attributes of size at most 1, but these reach 3; scale them"))
    if "threshold" in text:
        refused.append(([[0.5, -0.5]], ["no"], r"needs attributes in \[0, 1\], got -0.5; use balanced_winnow"))
    for block, labels, message in refused:
        with pytest.raises(ValueError, match=message):
            learner.run(block, labels)
        assert state(learner) == before
    with pytest.raises(TypeError, match="attributes must be numbers, got 'x'; encode"):
        learner.run([["x", "y"]], ["no"])
    assert state(learner) == before
