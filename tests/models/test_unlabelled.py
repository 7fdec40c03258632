"""Rows without a label: predicted, not counted, and a lesson in how far voters agree; the same by every face and cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linmax
from linmax import Learner, VoteFusion, run


def crowd(trials: int, accuracies: Any, k: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Votes of independent voters who are right that often, and the labels."""
    rng, n = np.random.default_rng(seed), len(accuracies)
    labels = rng.integers(0, k, trials)
    wrong = (labels[:, None] + rng.integers(1, k, (trials, n))) % k
    return np.where(rng.random((trials, n)) < accuracies, labels[:, None], wrong), labels


def plurality(votes: np.ndarray, k: int = 4) -> np.ndarray:
    return np.stack([(votes == c).sum(axis=1) for c in range(k)], axis=1).argmax(axis=1)


def some(labels: np.ndarray, share: float, seed: int = 1) -> list[Any]:
    """The labels, most of them still to come."""
    kept = np.random.default_rng(seed).random(len(labels)) < share
    return [int(label) if keep else None for label, keep in zip(labels, kept, strict=True)]


def test_agreement_alone_finds_the_good_voters() -> None:
    votes, labels = crowd(1500, [0.9, 0.9, 0.9, *[0.3] * 12])
    fusion = VoteFusion().fit(votes[:1000])
    right = np.mean(fusion.predict(votes[1000:]) == labels[1000:])
    assert right > np.mean(plurality(votes[1000:]) == labels[1000:]) + 0.1
    assert right > 0.95
    assert set(list(fusion.weights())[:3]) == {"0", "1", "2"}


def test_a_clique_that_copies_itself_deceives_only_itself() -> None:
    votes, labels = crowd(1500, [0.5, *np.linspace(0.55, 0.8, 12)])
    copies = np.where(np.random.default_rng(2).random((1500, 8)) < 0.95, votes[:, :1], 3)
    votes = np.hstack([copies, votes[:, 1:]])
    fusion = VoteFusion().fit(votes[:1000])
    right = np.mean(fusion.predict(votes[1000:]) == labels[1000:])
    assert right > np.mean(plurality(votes[1000:]) == labels[1000:]) + 0.1


def test_one_class_rules_learn_nothing_from_agreement() -> None:
    """Whether such rules agree says no more than which classes they name."""
    rng = np.random.default_rng(8)
    labels = rng.integers(0, 3, 800)
    names = np.arange(12) % 3
    speaks = rng.random((800, 12)) < np.where(labels[:, None] == names, 0.5, 0.15)
    votes = np.where(speaks, names, -1)
    plain, taught = (VoteFusion(classes=[0, 1, 2], abstain=-1) for _ in range(2))
    taught.fit(votes[:500])
    right = [np.mean(fusion.predict(votes) == labels) for fusion in (taught, plain.fit(votes[:1]))]
    assert right[0] > right[1] - 0.05


def test_no_agreement_is_no_worse_than_plurality() -> None:
    data = linmax.datasets.majority_problem(n=15, r=7, k=3, trials=900, seed=3)  # all votes are drawn by themselves
    fusion = VoteFusion(classes=[0, 1, 2]).fit(data.votes[:400])
    counted = np.mean(plurality(data.votes[400:], 3) == data.labels[400:])
    assert np.mean(fusion.predict(data.votes[400:]) == data.labels[400:]) > counted - 0.05


def test_probabilities_before_the_first_label_are_those_of_the_pool() -> None:
    votes, labels = crowd(800, [0.9, 0.9, 0.9, *[0.3] * 12])
    fusion = VoteFusion(classes=range(4)).fit(votes[:500])
    found = fusion.predict_proba(votes[500:])
    assert (found.argmax(axis=1) == fusion.predict(votes[500:])).all()
    assert -np.log(found[np.arange(300), labels[500:]]).mean() < 0.5 * np.log(4)
    one, short = Learner(classes=list(range(4))), VoteFusion(classes=range(4)).fit(votes[:100])
    for row in votes[:100].tolist():
        one.learn(votes=row, label=None)
    told = one.predict_proba(votes=votes[100].tolist())
    np.testing.assert_allclose(list(told.values()), short.predict_proba(votes[100:101])[0])
    assert max(told.values()) > 0.3


def test_labels_take_over() -> None:
    """Voters who agree, but on the wrong class: labels undo what agreement taught."""
    votes, labels = crowd(1000, [0.8] * 9)
    shifted = (labels + 1) % 4  # the labels are never what the voters say
    fusion = VoteFusion().fit(votes[:500])
    assert np.mean(fusion.predict(votes) == labels) > 0.95
    fusion.partial_fit(votes[500:900], shifted[500:900])
    assert np.mean(fusion.predict(votes[900:]) == labels[900:]) < 0.3
    votes, labels = crowd(1200, [0.9, 0.9, 0.9, *[0.3] * 12], seed=4)
    helped = VoteFusion().fit(votes[:800]).partial_fit(votes[800:805], labels[800:805])
    alone = VoteFusion().fit(votes[800:805], labels[800:805])
    scores = [np.mean(fusion.predict(votes[805:]) == labels[805:]) for fusion in (helped, alone)]
    assert scores[0] > scores[1]


def test_voters_and_classes_that_only_unlabelled_rows_name() -> None:
    fusion = VoteFusion()
    for t in range(40):
        row: dict[str, list[Any]] = {"a": ["x" if t % 2 else "y"], "b": ["x" if t % 2 else "y"], "c": ["z"]}
        fusion.partial_fit(row if t > 5 else {"a": row["a"]}, [""])
    assert fusion.classes_.tolist() == ["x", "y", "z"]
    assert fusion.voters_ == ["a", "b", "c"]
    assert fusion.predict({"a": ["x"], "b": ["x"], "c": ["z"]}).tolist() == ["x"]
    fusion.partial_fit({"c": ["x"], "d": ["w"]}, ["w"])
    assert fusion.report().online.trials == 1


def test_attributes_with_votes() -> None:
    """The pool for attributes waits for labels; that for votes compares the voters."""
    votes, labels = crowd(200, [0.9, 0.8, 0.6])
    numbers = np.eye(4)[labels] + np.random.default_rng(5).normal(0, 1.0, (200, 4))
    given = some(labels, 0.5)
    trace = run("auto", linmax.instances(votes=votes, attributes=numbers, classes=range(4)), given)
    pieces = run(
        "auto", linmax.instances(votes=votes[:77], attributes=numbers[:77], classes=range(4)), given[:77]
    ).model
    more = linmax.instances(votes=votes[77:], attributes=numbers[77:], classes=range(4))
    assert pieces.run(more, given[77:]).predictions.tolist() == trace.predictions[77:].tolist()
    assert np.mean(trace.predictions == labels) > 0.75
    assert trace.model.trials == sum(label is not None for label in given)


@pytest.mark.small
def test_missing_labels() -> None:
    learner = Learner("perceptron")
    learner.predict({"x": 1.0}, id="a")
    with pytest.raises(ValueError, match="label must be a class, got None for id 'a'; call learn when the label has"):
        learner.learn(id="a", label=None)
    for nothing in None, float("nan"), "":
        assert learner.learn({"x": 1.0}, label=nothing) is None
    assert (learner.trials, learner.classes) == (0, [])
    trace = run(
        "perceptron", linmax.instances(attributes=[[1.0], [0.0], [1.0]], classes=["a", "b"]), np.array(["a", "", "b"])
    )
    assert trace.model.trials == 2
    trace = run(
        "perceptron", linmax.instances(attributes=[[1.0], [0.0], [1.0]], classes=[0, 1]), np.array([1.0, np.nan, 0.0])
    )
    assert trace.model.trials == 2
