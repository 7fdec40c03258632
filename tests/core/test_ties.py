"""Ties of rules that multiply, against exact arithmetic: an alpha of 3/2 has exact powers, whose float sums are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest

import linmax
from linmax.data.instances import Instances

CLASSES, VOTERS, TRIALS, LEARNED = 4, 15, 600, 500
ALPHA = Fraction(3, 2)


def balanced(power: int) -> Fraction:
    return ALPHA**power - ALPHA**-power


def positive(power: int) -> Fraction:
    return ALPHA**power


class ExactMachine:
    """A rule with one weight for each of several coordinates, which rate any classes 0 or 1."""

    def __init__(self, weight: Callable[[int], Fraction], coordinates: int, largest: bool) -> None:
        self.weight, self.powers = weight, [0] * coordinates
        self.order = range(CLASSES - 1, -1, -1) if largest else range(CLASSES)
        self.ties = 0

    def scores(self, ratings: np.ndarray) -> list[Fraction]:
        """The score of each class; ``ratings[i, c]`` is what coordinate i rates class c."""
        weights = [self.weight(power) for power in self.powers]
        return [sum((w for w, x in zip(weights, column, strict=True) if x), Fraction(0)) for column in ratings.T]

    def predict(self, ratings: np.ndarray) -> int:
        scores = self.scores(ratings)
        return max(self.order, key=scores.__getitem__)

    def update(self, ratings: np.ndarray, label: int) -> bool:
        scores = self.scores(ratings)
        rival = max((c for c in self.order if c != label), key=scores.__getitem__)
        self.ties += sorted(scores)[-1] == sorted(scores)[-2]
        if scores[label] > scores[rival]:
            return False
        difference = ratings[:, label].astype(int) - ratings[:, rival]
        self.powers = [power + z for power, z in zip(self.powers, difference.tolist(), strict=True)]
        return True


def follow(learner: str, machine: ExactMachine, instances: Instances, ratings: np.ndarray, tie: str) -> None:
    """Learn most trials with both, and predict the others."""
    labels = np.random.default_rng(3).integers(0, CLASSES, len(ratings))
    trace = linmax.run(learner, instances[:LEARNED], labels[:LEARNED], tie=tie)
    for t in range(LEARNED):
        assert trace.predictions[t] == machine.predict(ratings[t])
        assert trace.changed[t] == machine.update(ratings[t], int(labels[t]))
    expected: Sequence[int] = [machine.predict(row) for row in ratings[LEARNED:]]
    assert trace.model.predict(instances[LEARNED:]).tolist() == expected


@pytest.mark.small
@pytest.mark.parametrize("kind", ["votes", "scores"])
@pytest.mark.parametrize(("learner", "weight"), [("balanced-winnow(1.5)", balanced), ("winnow(1.5)", positive)])
@pytest.mark.parametrize("tie", ["smallest", "largest"])
def test_ties_of_votes_and_scores(learner: str, weight: Callable[[int], Fraction], kind: str, tie: str) -> None:
    rng, ties = np.random.default_rng(5), 0
    for _ in range(3):
        votes = rng.integers(-1, CLASSES, (TRIALS, VOTERS))
        ratings = votes[:, :, None] == np.arange(CLASSES)
        columns = {"votes": votes, "abstain": -1} if kind == "votes" else {"scores": ratings.astype(float)}
        machine = ExactMachine(weight, VOTERS, tie == "largest")
        instances = linmax.instances(**columns, classes=range(CLASSES), thresholds=False)
        follow(learner, machine, instances, ratings, tie)
        ties += machine.ties
    assert ties >= 2


@pytest.mark.small
@pytest.mark.parametrize("sparse", [False, True])
def test_ties_of_attributes(sparse: bool) -> None:
    """Attribute a of class c is the coordinate CLASSES a + c; sums of equal powers in another order tie."""
    rows = np.random.default_rng(7).random((TRIALS, 6)) < 0.6
    ratings = (rows[:, :, None, None] & np.eye(CLASSES, dtype=bool)).reshape(TRIALS, -1, CLASSES)
    table = [{f"a{f}": 1.0 for f in np.flatnonzero(row)} for row in rows] if sparse else rows.astype(float)
    machine = ExactMachine(balanced, ratings.shape[1], False)
    instances = linmax.instances(attributes=table, classes=range(CLASSES), thresholds=False)
    follow("balanced-winnow(1.5)", machine, instances, ratings, "smallest")
    assert machine.ties >= 20
