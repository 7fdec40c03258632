"""Right or wrong is enough: trials of which all that is known is that an answer was wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmax
from linmax.cli import main
from linmax.util.draws import another

CLASSES = list("abcd")


def votes(size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = np.array(CLASSES)[random.integers(4, size=size)]
    chance = np.array([0.9, 0.7, 0.4, 0.4, 0.3])
    right = random.random((size, 5)) < chance
    return np.where(right, labels[:, None], np.array(CLASSES)[random.integers(4, size=(size, 5))]), labels


@pytest.mark.small
def test_another_class_is_drawn_by_its_probability() -> None:
    drawn = Counter(another({"a": 0.5, "b": 0.3, "c": 0.2}, "a", 2, t) for t in range(2000))
    assert drawn["a"] == 0
    assert drawn["b"] / 2000 == pytest.approx(0.6, abs=0.05)
    assert another({"a": 1.0, "b": 0.0}, "a", 2, 1) == "b"
    assert another({"a": 1.0}, "a", 2, 1) is None


def on_line(learner: Any, table: np.ndarray, labels: np.ndarray, told: bool) -> tuple[float, Any]:
    """Accuracy, with labels or with right and wrong only."""
    model = linmax.Learner(learner, classes=CLASSES)
    right = []
    for row, label in zip(table.tolist(), labels.tolist(), strict=True):
        answer = model.predict(votes=row)
        right.append(answer == label)
        if told or answer == label:
            model.learn(votes=row, label=label)
        else:
            model.learn(votes=row, wrong=answer)
    return float(np.mean(right)), model


@pytest.mark.parametrize("learner", ["auto", "A-perceptron", "A-arow"])
def test_nearly_as_good_as_labels(learner: str) -> None:
    table, labels = votes(1500)
    full, _ = on_line(learner, table, labels, told=True)
    bandit, model = on_line(learner, table, labels, told=False)
    assert bandit > full - 0.03
    assert model.trials == 1500


@pytest.mark.small
def test_wrong_by_id_with_candidates_and_without() -> None:
    learner = linmax.Learner("perceptron", classes=["x", "y"])
    learner.predict({"f": 1.0}, id=1)
    assert learner.learn(id=1, wrong="x") == "x"  # so it is y
    assert learner.predict({"f": 1.0}) == "y"
    with pytest.raises(ValueError, match="id 1 has had its label already"):
        learner.learn(id=1, wrong="x")
    ranker = linmax.Learner("perceptron")
    assert ranker.learn(candidates=["a", "b"], scores={"r": [0.0, 1.0]}, wrong="a") == "a"
    assert ranker.predict(candidates=["c", "d"], scores={"r": [0.0, 1.0]}) == "d"
    ranker.predict(candidates=["c", "d"], scores={"r": [0.0, 1.0]}, id="q")
    assert ranker.learn(id="q", wrong="d") == "d"
    open_ended = linmax.Learner("perceptron")
    assert open_ended.learn({"f": 1.0}, wrong="x") is None  # no other class is known
    for one, given in (
        (ranker, {"candidates": ["only"], "votes": {"v": "only"}}),
        (open_ended, {"attributes": {"f": 1.0}}),
    ):
        answer = one.predict(id="alone", **given)
        assert one.learn(id="alone", wrong="only") == answer
        with pytest.raises(ValueError, match="has had its label already"):
            one.learn(id="alone", wrong="only")
    assert open_ended.trials == 0


@pytest.mark.small
def test_bad_input_is_refused() -> None:
    learner = linmax.Learner("perceptron", classes=["x", "y"])
    with pytest.raises(TypeError, match="label= or wrong=, not both"):
        learner.learn({"f": 1.0}, label="x", wrong="y")
    with pytest.raises(ValueError, match="'z' is not among the classes"):
        learner.learn({"f": 1.0}, wrong="z")
    with pytest.raises(ValueError, match="'c' is not among the candidates"):
        linmax.Learner("perceptron").learn(candidates=["a", "b"], votes={"v": "a"}, wrong="c")
    assert learner.trials == 0
    fusion = linmax.VoteFusion("perceptron").fit([["x", "y"]] * 3, ["x", "x", "y"])
    before = fusion.weights()
    for mask in ([True], [1, 0], [[True, False]]):
        with pytest.raises(ValueError, match="wrong must be a mask"):
            fusion.partial_fit([["x", "y"]] * 2, ["x", "y"], wrong=mask)
    assert fusion.weights() == before


def test_the_command_reads_a_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, labels = votes(200)
    path = tmp_path / "votes.csv"
    wrong = [t % 5 == 0 for t in range(200)]
    given = [CLASSES[(CLASSES.index(y) + 1) % 4] if bad else y for y, bad in zip(labels.tolist(), wrong, strict=True)]
    rows = zip(table.tolist(), given, wrong, strict=True)
    lines = [",".join([*row, label, "true" if bad else ""]) for row, label, bad in rows]
    path.write_text("\n".join(["v0,v1,v2,v3,v4,label,bad", *lines]) + "\n")
    model = tmp_path / "fusion.linmax"
    assert main(["fuse", str(path), "--label", "label", "--wrong", "bad", "--model", str(model)]) == 0
    fusion = linmax.VoteFusion.load(model)
    assert fusion.voters_ == ["v0", "v1", "v2", "v3", "v4"]
    assert next(iter(fusion.weights())) == "v0"
    assert main(["fuse", str(path), "--label", "label", "--wrong", "nothing"]) == 2
    assert main(["fuse", str(path), "--label", "label", "--wrong", "v0"]) == 2
    assert main(["fuse", str(path), "--label", "label", "--wrong", "bad", "--test-fraction", "0.5"]) == 2
    capsys.readouterr()


@pytest.mark.small
def test_drawn_class_is_never_the_label() -> None:
    """A heavy sample is shown many times, and a bandit learner may learn from right answers only."""
    model = linmax.LinearMaxClassifier("B(gamma=1.0)-perceptron", scale="none")
    model.partial_fit([[1.0]], ["a"], classes=list("abcd"), sample_weight=[50.0], wrong=[True])
    assert not model.decision_function([[1.0]]).any()


@pytest.mark.small
def test_classifier_refuses_wrong_without_alternative() -> None:
    model = linmax.LinearMaxClassifier("perceptron")
    with pytest.raises(ValueError, match="pass classes="):
        model.partial_fit([[1.0], [0.0]], ["a", "b"], wrong=[True, True])
    model.partial_fit([[1.0], [0.0], [1.0]], ["a", "b", "z"], wrong=[False, False, True])  # z: never heard of
    assert model.classes_.tolist() == ["a", "b"]
    before = model.decision_function([[1.0], [2.0]]).tolist()
    for mask in ([True], [1, 0], [[True, False]]):
        with pytest.raises(ValueError, match="wrong must be a mask"):
            model.partial_fit([[1.0], [0.0]], ["a", "b"], wrong=mask)
    assert model.decision_function([[1.0], [2.0]]).tolist() == before


def test_a_fusion_of_models_learns_from_right_or_wrong() -> None:
    from sklearn.linear_model import SGDClassifier
    from sklearn.naive_bayes import GaussianNB

    random = np.random.default_rng(4)
    X = random.normal(size=(300, 4))
    labels = np.array(CLASSES)[X.argmax(axis=1)]
    wrong = random.random(300) < 0.4
    given = np.where(wrong, np.array(CLASSES)[(X.argmax(axis=1) + 1) % 4], labels)
    models = [("bayes", GaussianNB()), ("linear", SGDClassifier(random_state=0))]
    fusion = linmax.FusionClassifier(models, "A-perceptron")
    with pytest.raises(ValueError, match="pass samples with labels first"):
        fusion.partial_fit(X[:5], given[:5], wrong=[True] * 5)
    fusion.partial_fit(X[:100], given[:100], classes=CLASSES, wrong=wrong[:100])
    told = linmax.FusionClassifier(models, "A-perceptron")
    told.partial_fit(X[:100][~wrong[:100]], given[:100][~wrong[:100]], classes=CLASSES)
    assert fusion.estimators_[0].theta_.tolist() == told.estimators_[0].theta_.tolist()  # what is wrong is not theirs
    assert fusion.final_estimator_._model.trials > told.final_estimator_._model.trials
    before = fusion.final_estimator_._model.trials
    fusion.partial_fit(X[100:], given[100:], wrong=wrong[100:])
    assert fusion.final_estimator_._model.trials == before + 200
    assert np.mean(fusion.predict(X) == labels) > 0.8


def blobs(size: int, k: int) -> tuple[list[list[float]], list[int]]:
    """Attributes of many classes: two clouds of points a class, so that no linear rule is enough."""
    random = np.random.default_rng(4)
    centres = 2.5 * random.normal(size=(2 * k, 6))
    places = random.integers(2 * k, size=size)
    return (centres[places] + random.normal(size=(size, 6))).tolist(), (places % k).tolist()


def told_right_or_wrong(learner: linmax.Learner, rows: list[list[float]], labels: list[int]) -> np.ndarray:
    """Whether each answer was wrong."""
    wrong = []
    for row, label in zip(rows, labels, strict=True):
        answer = learner.explore(row)
        wrong.append(answer != label)
        learner.learn(row, **({"wrong": answer} if answer != label else {"label": label}))
    return np.array(wrong)


@pytest.mark.parametrize("learner", ["auto", "B(gamma=0)-auto", "B(gamma=0)-attributes"])
def test_attributes_of_many_classes_are_learned_from_right_or_wrong(learner: str) -> None:
    rows, labels = blobs(1500, 12)
    full = linmax.Learner(classes=range(12))
    late = np.array([full.learn(row, label) != label for row, label in zip(rows, labels, strict=True)])[-500:]
    wrong = told_right_or_wrong(linmax.Learner(learner, classes=range(12)), rows, labels)
    assert wrong[:100].mean() > 0.5  # nobody told it anything
    assert wrong[-500:].mean() < late.mean() + 0.08


def test_words_of_many_classes_are_learned_from_right_or_wrong() -> None:
    random = np.random.default_rng(0)
    learner, wrong = linmax.Learner(classes=range(8)), []
    for label in random.integers(8, size=600).tolist():
        words = {
            f"word {8 * int(random.integers(20)) + (label if i < 4 else int(random.integers(8)))}": 1.0
            for i in range(6)
        }
        answer = learner.predict(words)
        wrong.append(answer != label)
        learner.learn(words, **({"wrong": answer} if answer != label else {"label": label}))
    assert np.mean(wrong[-200:]) < 0.3


def bits(fusion: linmax.VoteFusion) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in fusion._state.parts()[1].items()}


def test_denial_of_unknown_class_changes_nothing() -> None:
    table, labels = votes(60)
    fusion = linmax.VoteFusion().fit(table, labels)
    before = bits(fusion)
    fusion.partial_fit(table[:1], ["zebra"], wrong=[True])
    assert bits(fusion) == before


def test_a_wrong_class_written_otherwise_is_matched() -> None:
    table, labels = votes(60)
    numbers, told = np.searchsorted(CLASSES, table), np.searchsorted(CLASSES, labels)
    fusion, expected = linmax.VoteFusion().fit(numbers, told), linmax.VoteFusion().fit(numbers, told)
    with pytest.warns(UserWarning, match="'2' is taken for the class 2"):
        fusion.partial_fit(numbers[:1], ["2"], wrong=[True])
    assert bits(fusion) == bits(expected.partial_fit(numbers[:1], [2], wrong=[True]))
    learner, other = linmax.Learner(), linmax.Learner()
    for one in (learner, other):
        for row, label in zip(numbers.tolist(), told.tolist(), strict=True):
            one.learn(votes=row, label=label)
    with pytest.warns(UserWarning, match="'2' is taken for the class 2"):
        learner.learn(votes=numbers[0], wrong="2")
    other.learn(votes=numbers[0], wrong=2)
    assert learner.weights["voters"] == other.weights["voters"]


@pytest.mark.parametrize(
    ("y", "told"),
    [
        (None, "wrong= says of which trials the class in y is wrong, and y is not given"),
        (["a", None], "y: trial 1 is marked wrong, but has no class: None"),
        (["a", ""], "y: trial 1 is marked wrong, but has no class: ''"),
        (["a"], r"y must be one label per trial: got shape \(1,\) for 2 trials"),
    ],
)
def test_a_mark_needs_a_class(y: Any, told: str) -> None:
    table, labels = votes(60)
    fusion = linmax.VoteFusion().fit(table, labels)
    before = bits(fusion)
    with pytest.raises(ValueError, match=told):
        fusion.partial_fit(table[:2], y, wrong=[False, True])
    assert bits(fusion) == before


def test_error_names_wrong() -> None:
    learner = linmax.Learner("perceptron")
    learner.learn(votes={"ann": "x", "bob": "y"}, label="x")
    with pytest.raises(ValueError, match="wrong must be a class, got None"):
        learner.learn(votes={"ann": "x"}, wrong=None)
    among = linmax.Learner("perceptron")
    with pytest.raises(ValueError, match=r"wrong: 'z' is not among the candidates \['x', 'y'\]"):
        among.learn(candidates=["x", "y"], votes={"ann": "x"}, wrong="z")
    with pytest.raises(ValueError, match="candidates.*got None"):
        among.predict(candidates=["x", None], votes={"ann": "x"})
    assert among.trials == 0


def test_estimators_refuse_a_wrong_class_of_another_kind() -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 3)), random.integers(0, 3, 60)
    model = linmax.LinearMaxClassifier("perceptron").partial_fit(X, y)
    before = model.mistakes_
    with pytest.raises(ValueError, match=r"y: '1' is of another kind than the classes \[0, 1, 2\]"):
        model.partial_fit(X[:1], ["1"], wrong=[True])
    assert model.mistakes_ == before


def test_attribute_members_are_equal_with_votes() -> None:
    """What a wrong class tells them does not hang on whether voters are fused with them."""
    random = np.random.default_rng(4)
    alone, beside = (linmax.Learner(classes=CLASSES) for _ in range(2))
    for t in range(120):
        label = CLASSES[int(random.integers(4))]
        numbers = {f"x{i}": (label == name) + random.normal() for i, name in enumerate(CLASSES)}
        told = {"wrong": random.choice([name for name in CLASSES if name != label])} if t % 2 else {"label": label}
        told = {key: str(name) for key, name in told.items()}
        alone.learn(numbers, **told)
        beside.learn(numbers, votes={"ann": label, "ben": str(random.choice(CLASSES))}, **told)
    first, second = (learner._current_model.engine.top.pools["attributes"].arrays for learner in (alone, beside))
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)
