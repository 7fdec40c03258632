"""Votes and scores of one instance that cannot be meant as they stand: matched with a word about it, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linmax

LEARNER = "AR-winnow(1.1)"


def test_other_spellings_are_matched_with_warning() -> None:
    learner, expected = linmax.Learner(LEARNER), linmax.Learner(LEARNER)
    rows = [({"a": "1", "b": "2.0", "c": 2}, 1), ({"a": "2", "b": "2", "c": None}, 2), ({"a": "1", "b": 1, "c": 2}, 1)]
    for votes, label in rows * 3:
        with pytest.warns(UserWarning, match="is taken for the class"):
            learner.learn(votes=votes, label=label)
        meant = {name: None if vote is None else int(float(vote)) for name, vote in votes.items()}
        expected.learn(votes=meant, label=label)
    assert learner.classes == expected.classes == [1, 2]
    assert learner.weights["voters"] == expected.weights["voters"]
    with pytest.warns(UserWarning, match="'2' is taken for the class 2"):
        assert learner.predict(votes={"a": "2", "b": "2"}) == 2


def test_later_label_resolves_spelling() -> None:
    learner = linmax.Learner(LEARNER)
    learner.predict(votes={"a": "1", "b": "0"}, id=7)
    with pytest.warns(UserWarning, match="'0' is taken for the class 0, and so for 1 more"):
        learner.learn(id=7, label=1)
    assert 1 in learner.classes
    assert "1" not in learner.classes
    with pytest.warns(UserWarning, match="'1' is taken for the class 1"):
        learner.learn(scores={"r": {"1": 0.5, "2": 0.25}}, label=2)
    assert set(learner.classes) >= {1, 2}
    assert "2" not in learner.classes


def test_fixed_classes_are_matched_too() -> None:
    learner = linmax.Learner(LEARNER, classes=[1, 2])
    with pytest.warns(UserWarning, match="'1.0' is taken for the class 1"):
        learner.learn(votes={"a": "1.0"}, label=1)
    with pytest.raises(ValueError, match="'x' is not among the classes"):
        learner.learn(votes={"a": "x"}, label=1)


@pytest.mark.parametrize(
    ("votes", "label", "told"),
    [
        ({"a": 0.3, "b": 0.7}, 1, "0.3 of 'a' is not a label; probabilities are scores"),
        (np.array([0.25, 1.0]), 0, "0.25 of 0 is not a label"),
        ({"a": -1, "b": 2}, 2, "-1 of 'a' is not a label; if it means no vote, pass None"),
        ({"a": "x", "b": "y"}, 3, "votes are text, such as 'x', and labels are not, such as 3"),
        ({"a": 1, "b": 2}, "cat", "votes are numbers, such as 1, and labels are not, such as 'cat'"),
        ({"a": 0.3}, None, "0.3 of 'a' is not a label"),
    ],
)
def test_obvious_mistakes_are_refused(votes: Any, label: Any, told: str) -> None:
    learner = linmax.Learner()
    with pytest.raises(ValueError, match=told.replace("(", r"\(")):
        learner.learn(votes=votes, label=label)
    assert (learner.classes, learner.voters, learner.trials) == ([], [], 0)
    if label is not None:
        with pytest.raises(ValueError, match=told):
            learner.check(votes=votes, label=label)


@pytest.mark.parametrize(
    ("votes", "told"),
    [
        ({"a": 0.3, "b": 0.7}, "0.3 of 'a' is not a label; probabilities are scores"),
        ({"a": -1, "b": 2}, "-1 of 'a' is not a label; if it means no vote, pass None"),
        ({"a": "x", "b": "y"}, "votes are text, such as 'x', and labels are not, such as 0"),
    ],
)
def test_predict_refuses_what_learn_refuses(votes: Any, told: str) -> None:
    learner = linmax.Learner(LEARNER)
    for label in (0, 1, 2):
        learner.learn(votes={"a": label, "b": 2}, label=label)
    for ask in (learner.predict, learner.predict_proba, learner.predict_set):
        with pytest.raises(ValueError, match=told.replace("(", r"\(")):
            ask(votes=votes)
    assert learner.predict(votes={"a": 7, "b": 7}) == 7  # a class that may be new
    assert learner.predict(votes={"a": "", "b": 2}) == learner.predict(votes={"b": 2})  # empty text is no vote


def test_rows_of_probabilities_are_no_votes() -> None:
    with pytest.raises(TypeError, match="numbers for all classes go into scores="):
        linmax.Learner().learn(votes=np.array([[0.2, 0.8], [0.4, 0.6]]), label=1)


def test_what_may_be_meant_is_learned() -> None:
    signs = linmax.Learner(LEARNER)
    with pytest.warns(UserWarning, match="-1 of 'b' is not a label"):
        signs.learn(votes={"a": 1, "b": -1}, label=1)
    signs.learn(votes={"a": 1, "b": -1}, label=-1)
    assert set(signs.classes) == {1, -1}
    halves = linmax.Learner(LEARNER)
    halves.learn(votes={"a": 0.5, "b": 1.5}, label=1.5)
    assert set(halves.classes) == {0.5, 1.5}
    given = linmax.Learner(LEARNER, classes=[-1, 0, 1])
    given.learn(votes={"a": -1, "b": 0}, label=0)
    assert given.trials == 1


@pytest.mark.parametrize("learner", [LEARNER, "auto"])
def test_raw_scores_of_any_scale_as_a_fusion_takes_them(learner: str) -> None:
    random = np.random.default_rng(5)
    y = random.integers(0, 3, 60)
    scores = random.normal(size=(60, 2, 3)) * [[[1.0], [100.0]]]
    scores[np.arange(60), :, y] += [1.0, 150.0]
    one = linmax.Learner(learner, classes=[0, 1, 2], normalize="auto")
    fusion = linmax.VoteFusion(learner, classes=[0, 1, 2])
    for t in range(60):
        if t:
            assert one.predict(scores=scores[t]) == fusion.predict(scores[t : t + 1])[0]
        one.learn(scores=scores[t], label=int(y[t]))
        fusion.partial_fit(scores[t : t + 1], y[t : t + 1])
    assert one.mistakes == fusion.report().online.mistakes
    assert set(one.raters) == {(0, "log"), (1, "log")}
    again = linmax.Learner.from_state(*one.state())
    for t in range(10):
        assert again.learn(scores=scores[t], label=int(y[t])) == one.learn(scores=scores[t], label=int(y[t]))
    assert again.weights["raters"] == one.weights["raters"]
    assert again.options == one.options


def test_raw_scores_that_a_rule_cannot_take_name_the_remedy() -> None:
    with pytest.raises(ValueError, match="normalize='auto'"):
        linmax.Learner(LEARNER).learn(scores={"r": {"x": 3.0, "y": -2.0}}, label="x")
    ranked = linmax.Learner("perceptron", normalize=["borda", "log"])
    for t in range(20):
        said = {"bm25": [20.0, 90.0, 10.0], "clicks": [0.8, 0.3, 0.4]}
        ranked.learn(candidates=[f"{t}a", f"{t}b", f"{t}c"], scores=said, label=f"{t}a")
    assert ranked.rank(["x", "y", "z"], scores={"bm25": [500.0, 1.0, 2.0], "clicks": [0.1, 0.4, 0.9]})[0] == "z"


def test_a_fusion_matches_row_by_row_and_labels_that_come_after_votes() -> None:
    fusion = linmax.VoteFusion(LEARNER)
    with pytest.warns(UserWarning, match="is taken for the class"):
        fusion.partial_fit([["1", "2"]], [1])
    assert fusion.classes_.tolist() == [1, 2]
    unlabelled = linmax.VoteFusion(LEARNER).fit([["1", "2"], ["2", "2"]])
    with pytest.warns(UserWarning, match="1 is taken for the class '1'"):
        unlabelled.partial_fit([["1", "2"]], [1])
    assert unlabelled.classes_.tolist() == ["1", "2"]


def test_votes_without_any_label_are_looked_at_too() -> None:
    rows = [[f"q{t}", "xy"[t % 2], "yx"[t % 3 == 0]] for t in range(30)]
    with pytest.raises(ValueError, match="column 0 has another value in every row, such as 'q0'"):
        linmax.VoteFusion().fit(rows)
    with pytest.raises(ValueError, match="0.25 at trial 0, voter 0 is not a label"):
        linmax.VoteFusion().fit(np.array([[0.25, 0.75], [0.5, 0.5]]))
    with pytest.raises(ValueError, match="if it means no vote, pass None or abstain=-1"):
        linmax.VoteFusion().fit(np.array([[0, -1], [2, 1]]))
    many = linmax.VoteFusion(LEARNER).fit([[t, t, t + 1] for t in range(30)])  # another class in every row
    assert len(many.classes_) == 31


@pytest.mark.small
@pytest.mark.parametrize("weight", [0.0, 0.5, 2.0])
def test_weighed_instances_are_matched_as_others(weight: float) -> None:
    """What a weight of 1 matches and refuses, every weight does."""
    learner = linmax.Learner("perceptron")
    learner.learn(votes={"a": 1, "b": 2}, label=1)
    with pytest.warns(UserWarning, match="is taken for the class"):
        learner.learn(votes={"a": "1", "b": "2"}, label=2, weight=weight)
    with pytest.warns(UserWarning, match="is taken for the class"):
        learner.learn(votes={"a": 1, "b": 2}, label="2", weight=weight)
    learner.predict(votes={"a": 2, "b": 1}, id=7)
    with pytest.warns(UserWarning, match="is taken for the class"):
        learner.learn(id=7, label="1", weight=weight)
    assert learner.classes == [1, 2]
    with pytest.raises(ValueError, match="votes are"):
        learner.learn(votes={"a": "x", "b": "y"}, label=2, weight=weight)
