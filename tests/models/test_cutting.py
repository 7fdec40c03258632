"""However trials are cut into calls of partial_fit, the same is predicted, counted and learned, to the bit."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from linmax import LinearMaxClassifier, VoteFusion

SIZE = 90
LEARNERS = ["auto", "softmax", "robust-softmax", "perceptron", "AR(s=20)-winnow(1.1)", "winnow(1.2, thickness=0.05)"]
RAGGED = [0, 1, 2, 9, 10, 37, 38, 61, SIZE]
CUTS = {"ten": [*range(0, SIZE, 9), SIZE], "rows": list(range(SIZE + 1)), "ragged": RAGGED}


def labels_of(rng: np.random.Generator) -> np.ndarray:
    """Labels of which a new one appears every twenty trials; not in alphabetical order."""
    return np.array(list("rpsq"))[np.minimum(rng.integers(0, 4, SIZE), np.arange(SIZE) // 20)]


def votes_of(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Votes, also for classes whose label is still to come, and for one whose label never comes."""
    strange = rng.choice(list("pqrsz"), (SIZE, 4))
    return np.where(rng.random((SIZE, 4)) < [0.8, 0.6, 0.5, 0.4], labels[:, None], strange)


def problem(kind: str) -> tuple[Any, Any, np.ndarray]:
    """What makes a model of a learner, its input and the labels."""
    rng = np.random.default_rng(1)
    labels = labels_of(rng)
    if kind == "votes":
        return VoteFusion, votes_of(labels, rng), labels
    if kind == "sides":
        sides = np.array([[f"s{rng.integers(1 + t // 15)}", f"t{rng.integers(1 + t // 30)}"] for t in range(SIZE)])
        return lambda learner: VoteFusion(learner, by=[4, 5]), np.hstack([votes_of(labels, rng), sides]), labels
    if kind == "scores":
        table = rng.uniform(0.0, 0.6, (SIZE, 3, 4))
        table[np.arange(SIZE), :, ["pqrs".index(label) for label in labels]] += 0.4
        return lambda learner: VoteFusion(learner, classes=list("pqrs")), table, labels
    x = rng.normal(size=(SIZE, 5))
    x[np.arange(SIZE), ["pqrs".index(label) for label in labels]] += 1.5
    return LinearMaxClassifier, x, labels


def learned(model: Any) -> dict[str, np.ndarray]:
    """All that it has learned and counted, but for the calibration of its probabilities."""
    if isinstance(model, LinearMaxClassifier):
        counts = {"mistakes": np.array(model.mistakes_), "classes": np.array(model._model.classes)}
        return model._model.engine.arrays | counts
    state = model._fitted
    return state.model.engine.arrays | state.tally.arrays | {"classes": model.classes_}


@pytest.mark.parametrize("kind", ["votes", "sides", "scores", "attributes"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_calls_may_be_cut_anywhere(kind, learner):
    make, given, labels = problem(kind)
    whole = make(learner).partial_fit(given, labels)
    expected = learned(whole)
    for name, cuts in CUTS.items():
        model = make(learner)
        for begin, end in pairwise(cuts):
            model.partial_fit(given[begin:end], labels[begin:end])
        found = learned(model)
        assert found.keys() == expected.keys()
        for part, array in found.items():
            same = np.array_equal(array, expected[part], equal_nan=array.dtype.kind == "f")
            assert same, (name, part)
        np.testing.assert_array_equal(model.predict(given), whole.predict(given))
        np.testing.assert_array_equal(model.decision_function(given), whole.decision_function(given))


def test_a_label_is_not_known_before_its_trial():
    fusion = VoteFusion("perceptron").partial_fit([["b", "b"], ["b", "b"]], ["a", "b"])
    assert fusion.classes_.tolist() == ["a", "b"]
    assert fusion._fitted.tally.mistakes(0) == 2  # nothing is known, then a alone
