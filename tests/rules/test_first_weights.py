"""First weights as a vector, against plain multiplication and addition, trial by trial."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import linmax
from linmax import parse, rules, run
from linmax.theory import LinearThreshold, certify

VOTERS, CLASSES, TRIALS = 4, 3, 60
pytestmark = pytest.mark.small

Weights = np.ndarray


def problem(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    votes = rng.integers(CLASSES, size=(TRIALS, VOTERS))
    return votes, np.where(rng.random(TRIALS) < 0.8, votes[:, 0], rng.integers(CLASSES, size=TRIALS))


def slow(start: Weights, update: Callable[[Weights, Weights], Weights], averaged: bool = False) -> list[int]:
    """Predictions of linear-max over voters and thresholds, of the hypothesis or of the average of all so far."""
    votes, labels = problem()
    w, total, found = start.copy(), np.zeros_like(start), []
    for row, label in zip(votes, labels, strict=True):
        x = np.hstack([np.eye(CLASSES)[row].T, np.eye(CLASSES)])
        total += w
        found.append(int(np.argmax(x @ (total if averaged else w))))
        scores = x @ w
        rival = int(np.argmax(np.where(np.arange(CLASSES) == label, -np.inf, scores)))
        z = x[label] - x[rival]
        if w @ z <= 0.0:
            w = update(w, z)
    return found


def balanced(w: Weights, z: Weights) -> Weights:
    plus = (w + np.sqrt(w * w + 4)) / 2
    return plus * 1.3**z - 1.3**-z / plus


POSITIVE = (2.0, 0.5, 1.5, 0.7, 1.1, 0.9, 1.05)
SIGNED = (0.4, -0.3, 0.2, 1.0, -0.1, 0.05, 0.3)
CASES: list[tuple[str, tuple[float, ...], Callable[[Weights, Weights], Weights]]] = [
    ("perceptron(start={})", SIGNED, lambda w, z: w + z),
    ("winnow(1.3, start={})", POSITIVE, lambda w, z: w * 1.3**z),
    ("committee(1.3, start={})", POSITIVE, lambda w, z: w * 1.3**z),
    ("balanced-winnow(1.3, start={})", SIGNED, balanced),
]


@pytest.mark.parametrize("prefix", ["", "A-"])
@pytest.mark.parametrize(("text", "vector", "update"), CASES, ids=[case[0].partition("(")[0] for case in CASES])
def test_equals_the_plain_formula(text: str, vector: tuple[float, ...], update: Any, prefix: str) -> None:
    votes, labels = problem()
    instances = linmax.instances(votes=votes, classes=range(CLASSES))
    for length in (VOTERS + CLASSES, 3):  # the others start as if nothing were said
        default = 1.0 if min(vector) > 0 else 0.0
        start = np.array([*vector[:length], *[default] * (VOTERS + CLASSES - length)])
        trace = run(prefix + text.format(list(vector[:length])), instances, labels)
        assert trace.predictions.tolist() == slow(start, update, averaged=bool(prefix))


def test_two_classes_with_a_threshold() -> None:
    """Winnow2 of the lecture notes with first weights mu."""
    rng = np.random.default_rng(1)
    x, mu = (rng.random((80, 5)) < 0.5).astype(float), np.array([3.0, 0.5, 1.0, 0.2, 2.0])
    labels, w = x[:, 1].astype(int), mu.copy()
    learner = LinearThreshold(rules.winnow(2, threshold=5, start=mu), labels=(0, 1))
    trace = learner.run(x, labels)
    for t, (row, label) in enumerate(zip(x, labels, strict=True)):
        predicted = int(row @ w >= 5)
        assert trace.predictions[t] == predicted
        if predicted != label:
            w *= 2.0 ** (row if label else -row)
    assert learner.weights == pytest.approx(w)


def test_thickness_counts_the_first_weights() -> None:
    votes, labels = problem(3)
    instances = linmax.instances(votes=votes, classes=range(CLASSES))
    first = run("winnow(1.2, thickness=0.1)", instances, labels)
    same = run(f"winnow(1.2, thickness=0.1, start={[1.0] * VOTERS})", instances, labels)
    scaled = run(f"winnow(1.2, thickness=0.1, start={[8.0] * (VOTERS + CLASSES)})", instances, labels)
    assert first.changed.tolist() == same.changed.tolist() == scaled.changed.tolist()


@pytest.mark.parametrize("text", [case[0].format(list(case[1])) for case in CASES])
def test_text_and_pickle(text: str) -> None:
    learner = parse(text)
    assert parse(str(learner)) == learner == pickle.loads(pickle.dumps(learner))
    assert learner != parse(text.partition("start")[0].rstrip("(, ") + (")" if "1.3" in text else ""))
    votes, labels = problem()
    instances = linmax.instances(votes=votes, classes=range(CLASSES))
    whole = run(learner, instances, labels)
    half = run(learner, instances[:30], labels[:30]).model
    again = pickle.loads(pickle.dumps(half))
    assert again.run(instances[30:], labels[30:]).predictions.tolist() == whole.predictions[30:].tolist()
    assert np.array_equal(again.weights.arrays.flat, whole.model.weights.arrays.flat)


def test_bad_vectors() -> None:
    votes, labels = problem()
    with pytest.raises(ValueError, match="start has 8 weights, but there are 7 coordinates"):
        run(rules.perceptron(start=[1.0] * 8), linmax.instances(votes=votes, classes=range(CLASSES)), labels)
    with pytest.raises(ValueError, match="start must be > 0, got 0"):
        rules.winnow(1.1, start=[1.0, 0.0])
    with pytest.raises(ValueError, match="start must be a vector"):
        rules.balanced_winnow(1.1, start=1.0)
    with pytest.raises(ValueError, match="its first weights are a vector"):
        certify(linmax.instances(votes=votes), labels, "winnow(1.1, start=[2.0])")
