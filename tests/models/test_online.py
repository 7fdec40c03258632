"""One trial at a time: the same as `run`, by name, with growth, labels that come late, and files."""

from __future__ import annotations

import copy
import json
import math
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from test_growth import LEARNERS, SHAPES, Stream

import linmax
from linmax import Learner, run
from linmax.data.instances import Instances
from linmax.datasets import majority_problem
from linmax.engine.engine import Settings
from linmax.engine.one_trial import REFUSED
from linmax.jit.compiling import JIT
from linmax.models.model import Model

PLAIN = ["perceptron", "winnow(1.3)", "balanced-winnow(1.3)", "alma(2.5, alpha=0.9)", "p-norm(3)"]


def by_name(instances: Any, t: int) -> dict[str, Any]:
    """One instance of a stream, in dicts."""
    found: dict[str, Any] = {}
    if instances.layout.voters:
        found["votes"] = {f"v{i}": int(v) for i, v in enumerate(instances.votes[t]) if v >= 0}
    if instances.layout.raters:
        found["scores"] = {f"r{i}": dict(enumerate(row.tolist())) for i, row in enumerate(instances.scores[t])}
    if instances.layout.dense:
        found["attributes"] = {f"a{i}": float(v) for i, v in enumerate(instances.dense[t])}
    return found


def teach(learner: Learner, stream: Stream, begin: int = 0, end: int = 10**9) -> list[Any]:
    trials = [(instances, t, labels[t]) for instances, labels in stream.phases for t in range(len(labels))]
    return [learner.learn(**by_name(instances, t), label=int(label)) for instances, t, label in trials[begin:end]]


@pytest.mark.parametrize("shape", ["scores", "attributes"])
@pytest.mark.parametrize("text", LEARNERS)
def test_the_same_as_a_machine(text: str, shape: str) -> None:
    stream = Stream(2, *SHAPES[shape], size=30)
    learner = Learner(text, classes=range(3))
    first = sparsely(stream.phases[0][0])
    machine = Model(text, first.layout, range(3), Settings(discover=False))
    predictions: list[Any] = []
    for instances, labels in stream.phases:
        predictions += machine.run(sparsely(instances), labels, grow=True).predictions.tolist()
    assert teach(learner, stream) == predictions
    assert learner.mistakes == sum(a != b for a, b in zip(predictions, stream.labels, strict=True))
    assert learner.trials == machine.trials
    assert learner.updates == machine.updates


def sparsely(instances: Instances) -> Instances:
    """With sparse attributes, as a learner keeps them."""
    blocks: dict[str, Any] = {"scores": instances.scores} if instances.layout.raters else {}
    if instances.layout.dense:
        blocks["attributes"] = sparse.csr_array(instances.dense)
    return linmax.instances(**blocks, classes=range(3))


@pytest.mark.parametrize("text", [*PLAIN, "A-perceptron", "AR-winnow(1.2)", "vr-combine"])
def test_votes_as_arrays_equal_run(text: str) -> None:
    data = majority_problem(n=6, r=3, k=4, noise=0.1, trials=150, seed=3)
    trace = run(text, linmax.instances(votes=data.votes, classes=range(4)), data.labels)
    learner = Learner(text, classes=range(4))
    rows = data.votes.tolist()
    for t, row in enumerate(rows):
        expected = trace.predictions[t]
        asked = learner.predict(votes=row if t % 2 else data.votes[t])
        assert asked == expected
        assert learner.learn(votes=row, label=int(data.labels[t])) == expected
    assert learner.mistakes == trace.mistakes[-1]
    named = Learner(text, classes=range(4))
    for t, row in enumerate(rows):
        votes = {f"voter {i}": vote for i, vote in enumerate(row)}
        assert named.learn(votes=votes, label=int(data.labels[t])) == trace.predictions[t]
    np.testing.assert_array_equal(list(named.weights["voters"].values()), trace.model.weights.arrays.voters)


@pytest.mark.parametrize("text", PLAIN)
def test_the_short_way_and_the_long_way_agree(text: str) -> None:
    """A dict of numbers by text is read in compiled code; one of another kind in it, and Python reads it."""
    rng = np.random.default_rng(5)
    short, long = Learner(text), Learner(text)
    for _ in range(300):
        x = {f"word {i}": float(v) for i, v in zip(rng.integers(0, 40, 8), rng.integers(-2, 3, 8) / 2, strict=True)}
        label = "abc"[rng.integers(3)]
        other: dict[Any, Any] = dict(x) | {next(iter(x)): np.float32(x[next(iter(x))])}
        assert short.predict(x) == long.predict(other)
        assert short.learn(x, label=label) == long.learn(other, label=label)
    assert short.weights == long.weights
    assert short.mistakes == long.mistakes > 0


SITTING = [
    "A-perceptron",
    "A(scale=max, fade=True)-winnow(1.3)",
    "R(s=10, u=3, budget=5)-perceptron",
    "AR(s=10, u=3)-alma(3)",
    "arow(rivals=all)",
    "A-scw-i",
    "combine(perceptron, A-winnow(1.3))",
    "V(h=4, w=4, r=8, d=5)-winnow(1.3)",
    "V(h=4, w=4, r=8, d=5, scale=raw)A-perceptron",
    "V(h=4, saved=random)A-winnow(1.3)",
    "V(h=4, w=4, r=8, d=5)-combine(R(s=10, u=2)-perceptron, AR(s=10, u=2)-winnow(1.2))",
]


def votes_and_words(seed: int, size: int, kind: str) -> list[tuple[dict[str, Any], str]]:
    """Noisy voters, or attributes, or both; "wide" has too many for a panel."""
    rng = np.random.default_rng(seed)
    words = 400 if kind == "wide" else 6
    found: list[tuple[dict[str, Any], str]] = []
    for _ in range(size):
        label = int(rng.integers(4))
        instance: dict[str, Any] = {}
        if kind in ("votes", "both"):
            votes = np.where(rng.random(5) < [0.4, 0.5, 0.6, 0.7, 0.3], label, rng.integers(4, size=5))
            instance["votes"] = [None if rng.random() < 0.1 else "abcd"[v] for v in votes]
        if kind != "votes":
            chosen = {int(w) for w in rng.integers(words, size=5)} | {label}
            instance["attributes"] = {f"word {w}": float(rng.integers(-4, 5)) / 4 for w in sorted(chosen)}
        found.append((instance, "abcd"[label]))
    return found


@pytest.mark.parametrize(
    ("text", "kind"),
    [(text, kind) for text in SITTING for kind in ("votes", "words", "both", "wide")],
)
def test_one_trial_at_a_time_changes_no_bit(text: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trial by trial in compiled code, in Python, and both in turn: longer than a path lasts, and saved within."""
    trials = votes_and_words(7, 340, kind)
    learners = {name: Learner(text) for name in ("compiled", "slow", "mixed")}
    told: dict[str, list[Any]] = {name: [] for name in learners}
    for t, (instance, label) in enumerate(trials):
        rare = dict(instance)  # a dict that compiled code does not read
        if "votes" in rare:
            rare["votes"] = {np.int64(i): vote for i, vote in enumerate(rare["votes"])}
        else:
            rare["attributes"] = {name: np.float32(value) for name, value in rare["attributes"].items()}
        for name, learner in learners.items():
            monkeypatch.setattr("linmax.engine.one_trial.JIT", name != "slow")
            given = rare if name == "mixed" and t % 50 == 40 else instance
            if t % 3 == 0:
                told[name].append(learner.predict(**given))
            told[name].append(learner.learn(**given, label=label))
            if name == "mixed" and t % 70 == 60:
                learners[name] = Learner.from_state(*learner.state())
    assert told["compiled"] == told["slow"] == told["mixed"]
    assert learners["compiled"].trials == len(trials)
    for name in ("compiled", "mixed"):
        assert_same(learners[name], learners["slow"])


def test_attributes_may_become_larger() -> None:
    """A panel knows the largest rating that it may meet."""
    rng = np.random.default_rng(3)
    rows = [{f"a{i}": float(v) for i, v in enumerate(rng.normal(size=4) * 1.5**t)} for t in range(200)]
    labels = [int(max(row, key=row.__getitem__)[1]) for row in rows]
    table = sparse.csr_array(np.array([list(row.values()) for row in rows]))
    trace = run("R(s=30, u=3)-p-norm(3)", linmax.instances(attributes=table, classes=range(4)), labels)
    learner = Learner("R(s=30, u=3)-p-norm(3)", classes=range(4))
    assert [learner.learn(row, label=y) for row, y in zip(rows, labels, strict=True)] == trace.predictions.tolist()
    assert learner.updates == trace.model.updates > learner.mistakes


@pytest.mark.small
@pytest.mark.parametrize("text", ["perceptron", "A-winnow(1.2)", "R(s=5, u=2)-perceptron", "arow"])
def test_new_attributes_join_alike_however_they_are_written(text: str) -> None:
    """Plain numbers, of which compiled code learns at once, and NumPy's, which are read first."""
    rng, quick, slow = np.random.default_rng(5), Learner(text), Learner(text)
    for t in range(60):
        row = {f"a{t // 2}": 0.5, f"a{rng.integers(t + 1)}": 1, "b": float(rng.random())}
        told = quick.learn(row, label=t % 3)
        assert told == slow.learn({name: np.float64(value) for name, value in row.items()}, label=np.int64(t % 3))
    assert_same(quick, slow)


@pytest.mark.small
@pytest.mark.parametrize(("value", "label"), [(math.inf, 1), (1.0, [1]), (1e301, 1)])
def test_a_bad_instance_brings_no_attribute(value: Any, label: Any) -> None:
    learner = Learner("perceptron")
    for t in range(8):
        learner.learn({f"a{t}": 1.0}, label=t % 2)
    with pytest.raises((ValueError, TypeError), match=r"must be|hashable"):
        learner.learn({"new": value, "a0": 1.0}, label=label)
    assert learner.attributes == [f"a{t}" for t in range(8)]
    assert learner.trials == 8


def learn_all(learner: Learner, trials: list[tuple[Any, Any, Any]]) -> None:
    for attributes, votes, label in trials:
        learner.learn(attributes, votes=votes, label=label)


@pytest.mark.skipif(not JIT, reason="paths for single trials are compiled")
@pytest.mark.parametrize("text", ["perceptron", "R-perceptron", "V-winnow(1.2)", "vr-combine"])
def test_an_instance_longer_than_there_is_room_for_is_refused(text: str) -> None:
    """A path takes as many attributes as it was set up for, however many it could store."""
    learner = Learner(text)
    for label in 0, 1:
        learner.learn(dict.fromkeys(range(100 * label, 100 * label + 100), 0.5), label=label)
    learner.learn({0: 1.0}, label=1)
    path = learner._path
    assert path is not None
    assert path._longest >= (100 if path.remembers else 1), "the instances that it keeps must fit in as well"
    before = learner._current_model.engine.state.weights.copy()
    whole = dict.fromkeys(range(path._longest + 1), 0.5)
    for given in whole, list(whole.values()):
        assert learner._teach(given, None, 0) is REFUSED
        assert learner._ask(given, None) is REFUSED
    np.testing.assert_array_equal(learner._current_model.engine.state.weights, before)
    assert learner.learn(whole, label=0) in (0, 1)
    assert learner._path is not path


@pytest.mark.parametrize("text", ["perceptron", "R-perceptron", "AR(s=20)-winnow(1.2)", "V-perceptron", "vr-combine"])
def test_instances_of_every_length(text: str) -> None:
    """Short after long and long after short, in stretches, so that paths are set up for both."""
    rng = np.random.default_rng(5)
    lengths = np.repeat(rng.choice([1, 3, 20, 40, 90], 30), rng.integers(1, 9, 30))
    rows = [rng.permutation(120)[:length] for length in lengths]
    table = np.zeros((len(rows), 120))
    for t, row in enumerate(rows):
        table[t, row] = rng.uniform(-1, 1, len(row)).round(2)
    labels = rng.integers(3, size=len(rows)).tolist()
    learner = Learner(text, classes=range(3))
    learner.learn(dict.fromkeys(range(120), 0.0), label=0)
    instances = linmax.instances(attributes=sparse.csr_array(np.vstack([np.zeros(120), table])), classes=range(3))
    trace = run(text, instances, [0, *labels])
    got = []
    for row, values, label in zip(rows, table, labels, strict=True):
        given = {int(column): float(values[column]) for column in np.sort(row) if values[column] != 0.0}
        got.append(learner.learn(given, label=label))
    assert got == trace.predictions[1:].tolist()
    assert learner.updates == trace.model.updates


def test_weights_that_leave_the_range() -> None:
    for text in ("perceptron", "A-perceptron", "combine(perceptron, R-perceptron)"):
        learner = Learner(text, classes=["a", "b"])
        learner.learn({"x": 1.0}, label="a")
        learner.learn({"x": 1.0}, label="b")
        trials = [({"x": 1e100}, None, label) for label in "abab"]
        with pytest.raises(OverflowError, match="weights of perceptron left the range of floats"):
            learn_all(learner, trials)
    data = majority_problem(trials=3000, noise=0.3, seed=1)
    voted = Learner("V(scale=raw)-R(u=50)-winnow(4)")
    with pytest.raises(OverflowError, match=r"raw weights of R\(u=50\)-winnow\(4\).*scale='l2'"):
        learn_all(voted, [(None, *trial) for trial in zip(data.votes.tolist(), data.labels.tolist(), strict=True)])


def test_answers_are_counted_by_reference() -> None:
    """Compiled code returns the class itself, and whoever asked holds one reference more."""
    label = "".join(["a", " class"])
    learner = Learner("perceptron", classes=[label, "other"])
    learner.learn({"x": 1.0}, votes=["other"], label=label)
    before = sys.getrefcount(label), sys.getrefcount(REFUSED)
    for _ in range(100):
        assert learner.predict({"x": -1.0}, votes=[label]) in (label, "other")
        learner.learn({"x": 1.0}, votes=[label], label=label)
        learner.learn({"y": 1.0}, label="other")
        learner.predict({"z": 1.0})
    assert (sys.getrefcount(label), sys.getrefcount(REFUSED)) == before


@pytest.mark.parametrize("text", ["perceptron", "A-perceptron"])
def test_a_label_is_needed_though_nothing_else_is_missing(text: str) -> None:
    learner = Learner(text)
    for label in "ab":
        learner.learn({"x": 1.0}, label=label)
    before = copy.deepcopy(learner)
    for given in ({"x": 1.0}, [1.0], np.array([1.0])):
        with pytest.raises(TypeError, match="needs label="):
            learner.learn(given)
    assert_same(learner, before)


class Odd(str):
    """Text that compiled code leaves to Python."""


@pytest.mark.parametrize("text", ["perceptron", "AR(s=10)-perceptron"])
def test_instances_of_every_kind(text: str) -> None:
    """What compiled code reads itself and what it leaves to Python give the same."""
    votes: list[Any] = [
        ["a", "b", None],
        ("a", "b", float("nan")),
        np.array(["a", "b", None], object),
        {0: "a", 1: "b"},
        {0: "a", 1: "b", 2: np.nan},
        {True: "b", False: "a"},
        {np.int64(0): "a", np.int64(1): "b"},
        [Odd("a"), "b", None],
    ]
    attributes: list[Any] = [
        {"x": 1, "y": -1},
        {"x": 1.0, "y": -1.0},
        {"x": True, "y": -1},
        {"x": np.float64(1.0), "y": np.int64(-1)},
        {"x": np.float32(1.0), "y": -1.0},
        {Odd("x"): 1.0, "y": -1.0},
    ]
    rows: list[Any] = [
        [0.25, -1],
        (0.25, np.float64(-1.0)),
        np.array([0.25, -1.0]),
        np.array([0.25, -1.0], np.float32),
        {0: 0.25, 1: -1.0},
        [np.float32(0.25), -1.0],
    ]
    for name, forms in ("votes", votes), ("attributes", attributes), ("attributes", rows):
        states = []
        for form in forms:
            learner = Learner(text)
            first = {"votes": ["a", "b", "a"]} if name == "votes" else {"attributes": {"x": 0.5, "y": 0.25}}
            first = {"attributes": [0.5, 0.75]} if forms is rows else first
            for label in "ab":
                learner.learn(**first, label=label)
            answers = [learner.predict(**{name: form}), learner.learn(**{name: form}, label="a")]
            answers += [learner.learn(**{name: form}, label=Odd("b")), learner.predict(**{name: form})]
            states.append((answers, learner.weights, learner.mistakes))
        assert all(state == states[0] for state in states)


@pytest.mark.parametrize("text", ["perceptron", "AR(s=10)-perceptron"])
def test_compiled_path_leaves_errors_to_python(text: str) -> None:
    learner = Learner(text, classes=["a", "b"])
    for label in "abab":
        learner.learn({"x": 1.0}, votes=["a", "b"], label=label)
    before = Learner.from_state(*learner.state())
    wrong: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"attributes": {"x": 10**400}}, ValueError),
        ({"attributes": {"x": float("inf")}}, ValueError),
        ({"votes": ["a", "c"]}, ValueError),
        ({"votes": [["a"], "b"]}, TypeError),
        ({}, TypeError),
    ]
    for given, error in wrong:
        for call in (learner.predict, lambda **x: learner.learn(**x, label="a")):
            with pytest.raises(error):
                call(**given)
    for label, error in [(["a"], TypeError), ("c", ValueError)]:
        with pytest.raises(error, match="label"):
            learner.learn({"x": 1.0}, votes=["a", "b"], label=label)
    assert_same(learner, before)


@pytest.mark.parametrize("text", ["perceptron", "AR(s=10)-winnow(1.3)", "V(h=4, w=4, r=8, d=5)A-perceptron"])
def test_a_copy_goes_its_own_way(text: str) -> None:
    trials = votes_and_words(3, 60, "both")
    learner = Learner(text)
    for instance, label in trials[:30]:
        learner.learn(**instance, label=label)
    copies = [copy.deepcopy(learner), copy.copy(learner), pickle.loads(pickle.dumps(learner))]
    before = copy.deepcopy(learner)
    for instance, label in trials[30:]:
        learner.learn(**instance, label=label)
    for other in copies:
        assert_same(other, before)
        for instance, label in trials[30:]:
            other.learn(**instance, label=label)
        assert_same(other, learner)


@pytest.mark.small
def test_names_and_classes_appear() -> None:
    learner = Learner("winnow(2)", discover="labels", thresholds=False)
    assert learner.predict(votes={"anna": "x"}) is None  # nothing is known
    assert learner.learn(votes={"anna": "x"}, label="y") is None
    assert learner._current_model.known == learner.classes == ["y"]  # x gets a number with its first label
    assert learner.predict(votes={"anna": "x", "ben": "x"}) == "y"  # x has had no label
    assert learner.learn(votes={"anna": "x"}, label="x") == "y"
    assert learner.predict(votes={"new": "y"}) == "y"  # with the weight that it starts with
    assert learner.voters == ["anna"]  # asking teaches nothing
    assert learner.scores(votes={"new": "y"}) == {"y": 1.0, "x": 0.0}
    assert learner.learn({"size": 0.5}, votes={"ben": "y"}, label="y") == "y"
    assert (learner.attributes, learner.voters, learner.raters) == (["size"], ["anna", "ben"], [])


def test_a_vote_makes_its_class_known() -> None:
    learner = Learner("winnow(2)", thresholds=False)
    assert learner.predict(votes={"anna": "x"}) == "x"
    assert learner.predict_proba(votes={"anna": "x", "ben": "y"}).keys() == {"x", "y"}
    assert (learner._current_model.known, learner.voters) == ([], [])  # asking teaches nothing
    assert learner.learn(votes={"anna": "x", "ben": "z"}, label="y") == "x"
    assert learner._current_model.known == ["x", "z", "y"]
    assert learner.learn(votes={"ben": "w", "anna": "v"}, label="w") in ("v", "w")
    assert learner._current_model.known == [*"xzyvw"]  # in the order of the voters, whatever that of the votes
    assert learner.predict({"size": 1.0}, votes={"carl": "new"}) == "new"
    assert learner.options["discover"] == "votes"
    fixed = Learner("winnow(2)", classes=["x", "y"])
    assert (fixed._current_model.known, fixed.options["discover"]) == (["x", "y"], None)
    with pytest.raises(ValueError, match="discover must be one of votes, labels, got 'scores'"):
        Learner(discover="scores")


@pytest.mark.parametrize("shape", ["votes", "scores", "attributes", "hybrid"])
@pytest.mark.parametrize("text", LEARNERS)
def test_asking_about_names_never_met(text: str, shape: str) -> None:
    """It is answered as if they had been given a column; and nothing is remembered of them."""
    stream = Stream(9, *SHAPES[shape], size=12)
    learner = Learner(text, classes=range(3))
    (first, labels), *others = stream.phases
    for t, label in enumerate(labels):
        learner.learn(**by_name(first, t), label=int(label))
    before, nothing = Learner.from_state(*learner.state()), dict.fromkeys(["attributes", "votes", "scores"])
    for instances, _ in others:
        for t in range(3):
            met = Learner.from_state(*before.state())
            met._add(met._reader.read(**(nothing | by_name(instances, t))), ())
            met._renamed()
            assert learner.predict(**by_name(instances, t)) == met.predict(**by_name(instances, t))
            assert learner.scores(**by_name(instances, t)) == pytest.approx(met.scores(**by_name(instances, t)))
    assert_same(learner, before)


def assert_same(first: Learner, second: Learner) -> None:
    (one, arrays), (two, others) = first.state(), second.state()
    assert one == two
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        assert array.tobytes() == others[name].tobytes(), name


def test_labels_that_come_late() -> None:
    learner = Learner("perceptron", max_pending=2)
    learner.learn({"a": 1.0}, label=0)
    learner.learn({"b": 1.0}, label=1)
    assert learner.predict({"a": 1.0}, id=7) == 1
    assert learner.predict({"b": 1.0}, id="x") == 1
    learner = Learner.from_state(*learner.state())
    assert learner.pending == 2
    with pytest.raises(ValueError, match="2 instances are waiting for their labels already, which is max_pending"):
        learner.predict({"a": 1.0}, id=8)
    with pytest.raises(ValueError, match="id 7 is in use already"):
        learner.predict({"a": 1.0}, id=7)
    before = learner.trials
    with pytest.raises(KeyError, match="'y' is not waiting"):
        learner.learn(id="y", label=0)
    with pytest.raises(TypeError, match="the instance or the id, not both"):
        learner.learn({"a": 1.0}, id=7, label=0)
    assert (learner.trials, learner.pending) == (before, 2)
    assert learner.learn(id=7, label=0) == 1
    assert learner.mistakes == 3  # against what was predicted then
    with pytest.raises(ValueError, match="id 7 has had its label already"):
        learner.learn(id=7, label=0)
    learner.forget("x")
    with pytest.raises(KeyError, match="'x' is not waiting"):
        learner.forget("x")
    assert learner.pending == 0


@pytest.mark.small
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"attributes": {"a": float("inf")}}, ValueError, "'a' must be a finite number, got inf"),
        ({"attributes": {"a": 2.0}}, ValueError, r"needs attributes in \[-1, 1\], got 2.0 for 'a'"),
        ({"attributes": 3.0}, TypeError, "attributes must be a dict by name or an array, got 3.0"),
        ({"votes": {"v": ["x"]}}, TypeError, r"\['x'\] of 'v' is not hashable"),
        ({"votes": "xy"}, TypeError, "votes must be a dict by name or an array, got 'xy'"),
        ({"scores": {"r": [1.0]}}, ValueError, "scores of 'r' must be a dict by class, or 2 numbers"),
        ({"scores": {"r": {"x": 0.0, "y": 3.0}}}, ValueError, "differ by at most 1"),
        ({}, TypeError, "an instance needs attributes, votes= or scores="),
    ],
)
def test_bad_instances_change_nothing(given: dict[str, Any], error: type[Exception], message: str) -> None:
    learner = Learner("winnow(1.5)")
    learner.learn({"a": 1.0}, votes={"v": "x"}, label="x")
    learner.learn({"a": 0.5}, votes={"v": "x"}, label="y")
    before = Learner.from_state(*learner.state())
    for call in (learner.predict, learner.scores, lambda **x: learner.learn(**x, label="x")):
        with pytest.raises(error, match=message):
            call(**given)
    assert_same(learner, before)


def test_bad_labels_and_options() -> None:
    learner = Learner("perceptron", classes=["x", "y"])
    for label, error in [(["x"], TypeError), ("z", ValueError)]:
        with pytest.raises(error, match="label"):
            learner.learn({"a": 1.0}, label=label)
    with pytest.raises(TypeError, match="needs label="):
        learner.learn({"a": 1.0})
    with pytest.raises(ValueError, match="'v' voted for a class that: 'z' is not among the classes"):
        learner.learn(votes={"v": "z"}, label="x")
    with pytest.raises(TypeError, match="id must be text or a whole number"):
        learner.predict({"a": 1.0}, id=(1, 2))
    assert learner.trials == 0
    for options, message in [
        ({"classes": "xy"}, "classes must be a list"),
        ({"classes": ["x", "x"]}, "distinct"),
        ({"max_pending": -1}, "max_pending"),
        ({"tie": "random"}, "tie"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            Learner("perceptron", **options)


def test_the_curve_is_thinned() -> None:
    learner = Learner("perceptron", classes=[0, 1])
    rng = np.random.default_rng(1)
    truth = []
    for _ in range(2500):
        x = {"a": float(rng.normal()), "b": float(rng.normal())}
        learner.learn(x, label=int(x["a"] + rng.normal() > 0))
        truth.append(learner.mistakes)
    trials, mistakes = learner.curve
    assert len(trials) <= 1025
    assert trials[-1] == 2500
    assert mistakes.tolist() == [truth[t - 1] for t in trials]
    assert np.diff(trials[:-1]).max() == np.diff(trials[:-1]).min()


def test_labels_of_numpy(tmp_path: Path) -> None:
    learner = Learner("perceptron")
    for label in np.array([3, 4, 3, 4]):
        learner.learn(votes=np.array([3, 4]), label=label)
    assert [type(name) for name in learner.classes] == [int, int]
    assert type(learner.mistakes) is int
    learner.save(tmp_path / "model")
    assert_same(Learner.load(tmp_path / "model"), learner)


def test_names_of_every_kind(tmp_path: Path) -> None:
    learner = Learner("perceptron")
    for t in range(6):
        learner.learn({(1, "a"): 1.0, 7: 0.5}, votes={True: (0, t % 2)}, label=(0, t % 2))
    learner.save(tmp_path / "model")
    other = Learner.load(tmp_path / "model")
    assert_same(other, learner)
    assert other.attributes == [(1, "a"), 7]
    learner.learn({object(): 1.0}, label=(0, 1))
    with pytest.raises(TypeError, match="cannot be saved; use text, numbers or tuples"):
        learner.save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


def everything(learner: Learner) -> tuple[str, dict[str, bytes]]:
    """All that a learner is."""
    description, arrays = learner.state()
    return json.dumps(description), {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("learner", ["perceptron", "A-perceptron", "combine(perceptron, A-pa)"])
def test_weights_out_of_range_change_nothing(learner):
    """Also where the instance brought a new name or class, and there was a one-trial path."""
    one = Learner(learner)
    for label in "xyxyxy":
        one.learn({"a": 1.0, label: 1.0}, label=label)
    kept = []
    for place, label in enumerate("xyzxyz"):
        before = everything(one)
        try:
            one.learn({"a": 1e100, f"new-{place}": -1e100}, label=label)
        except OverflowError:
            kept.append(everything(one) == before)
    assert kept
    assert all(kept)
    twin = pickle.loads(pickle.dumps(one))
    for label in "xzyzx":
        assert one.learn({"a": 1.0, label: 1.0}, label=label) == twin.learn({"a": 1.0, label: 1.0}, label=label)
    assert everything(one) == everything(twin)


@pytest.mark.small
@pytest.mark.parametrize(
    ("indptr", "columns", "labels", "message"),
    [
        ([0, 1], [2], [0], "columns must be places among the 2 attributes"),
        ([0, 1], [-1], [0], "columns must be places among the 2 attributes"),
        ([0, 1], [0], [2], "labels must be places among the 2 known classes"),
        ([0, 1], [0], [-1], "labels must be places among the 2 known classes"),
        ([0, 2], [0], [0], "indptr must rise from 0 to 1"),
        ([0, 1, 1], [0], [0], "indptr must rise from 0 to 1"),
        ([0, 2, 1], [0], [0, 1], "indptr must rise from 0 to 1"),
    ],
)
def test_rows_that_do_not_fit(indptr: list[int], columns: list[int], labels: list[int], message: str) -> None:
    learner = Learner("R-perceptron")
    for name in "yes", "no":
        learner.learn({name: 1.0}, label=name)
    with pytest.raises(ValueError, match=message):
        learner._learn_rows(np.array(indptr), np.array(columns), np.ones(len(columns)), np.array(labels))
    assert learner.trials == 2


@pytest.mark.parametrize("first", ["votes", "attributes", "scores"])
def test_a_pool_whose_raters_came_late_is_saved_and_continued(first: str, tmp_path: Path) -> None:
    parts: dict[str, Any] = {"votes": {"v": "a"}, "attributes": {"x": 1.0}, "scores": {"r": {"a": 1.0, "b": 0.5}}}
    learner = Learner("auto")
    for label in "abab":
        learner.learn(**{first: parts[first]}, label=label)
    for label in "bab":
        learner.learn(**parts, label=label)
    learner.save(tmp_path / "learner.linmax")
    again = Learner.load(tmp_path / "learner.linmax")
    for label in "abba":
        assert again.scores(**parts) == learner.scores(**parts)
        assert again.learn(**parts, label=label) == learner.learn(**parts, label=label)


@pytest.mark.small
def test_stacking_before_first_class() -> None:
    learner = Learner("stack(perceptron, A-winnow(1.3), fusion=winnow(1.3))")
    assert learner.predict({"x": 1.0}) is None
    assert learner.predict({"x": 1.0}, id=1) is None
    assert learner.learn(id=1, label="a") is None
    assert learner.predict({"x": 1.0}) == "a"
