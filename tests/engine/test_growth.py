"""Voters, raters, attributes and classes that appear while a learner runs, against the reference and against cuts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from compare import ROUNDING, doubt
from compare_techniques import slow_of
from linmax import instances, run
from linmax.data.instances import Instances
from linmax.engine.engine import Engine, Settings
from linmax.jit.compiling import JIT
from linmax.models.model import Model

LEARNERS = [
    "perceptron",
    "winnow(1.3)",
    "winnow(1.5, thickness=0.05)",
    "balanced-winnow(1.3)",
    "balanced-winnow(1.01, thickness=0.05)",
    "p-norm(3)",
    "alma(2.5, alpha=0.9)",
    "A-perceptron",
    "A-winnow(1.3)",
    "A(scale=max)-winnow(1.3)",
    "A(scale=l1)-winnow(1.3)",
    "A(scale=max, fade=True)-winnow(1.3)",
    "R(s=10, u=3, budget=5)-perceptron",
    "arow",
    "arow(rivals=all)",
    "pa-ii(0.5, rivals=violated)",
    "romma",
    "R(s=10, u=3)-winnow(1.3)",
    "AR(s=10, u=3)-alma(3)",
    "V(h=4, w=4, r=8, d=5)-winnow(1.3)",
    "V(h=4, w=4, r=8, d=5)A-winnow(1.3)",
    "V(h=4, w=4, r=8, d=5, scale=raw)-A(scale=max)-winnow(1.3)",
    "combine(perceptron, A-winnow(1.3), how=weighted)",
    "combine(perceptron, winnow(1.3), how=wma)",
    "stack(perceptron, A-winnow(1.3), fusion=winnow(1.3))",
    "V(h=4, w=4, r=8, d=5)-combine(R(s=10, u=2)-perceptron, AR(s=10, u=2)-winnow(1.2))",
]


class Stream:
    """Phases, each with more voters, raters, attributes or classes than the one before."""

    def __init__(self, seed: int, voters: list[int], raters: list[int], columns: list[int], k: list[int], size: int):
        rng = np.random.default_rng(seed)
        self.k = k[-1]
        self.phases: list[tuple[Instances, np.ndarray]] = []
        self.matrices: list[np.ndarray] = []  # coordinates in the order in which they appeared
        self.labels: list[int] = []
        places: list[tuple[Any, ...]] = []
        for v, r, m, classes in zip(voters, raters, columns, k, strict=True):
            labels = rng.integers(classes, size=size)
            votes = rng.integers(-1, classes, (size, v))
            if v:
                votes[:, -1] = np.where(rng.random(size) < 0.7, labels, votes[:, -1])
            scores = np.zeros((size, r, self.k))
            scores[:, :, :classes] = rng.random((size, r, classes)).round(2)
            dense = rng.uniform(-1, 1, (size, m)).round(2)
            blocks = {name: block for name, block in [("votes", votes), ("attributes", dense)] if block.shape[1]}
            options: dict[str, Any] = {"abstain": -1, "classes": range(classes)}
            given = blocks | ({"scores": scores[:, :, :classes]} if r else {})
            self.phases.append((instances(**given, **options), labels))
            whole = instances(**blocks, **({"scores": scores} if r else {}), abstain=-1, classes=range(self.k))
            names = [("voter", i) for i in range(v)] + [("rater", i) for i in range(r)]
            names += [("row", f, c) for f in range(m + 1) for c in range(self.k)]
            places += [name for name in names if name not in places]
            for t in range(size):
                x = np.zeros((self.k, len(places)))
                x[:, [places.index(name) for name in names]] = whole.matrix(t)
                self.matrices.append(x)
            self.labels += labels.tolist()


def machine_for(learner: Any, stream: Stream) -> Model:
    first = stream.phases[0][0]
    return Model(learner, first.layout, (), Settings(discover=True))


def played(learner: Any, stream: Stream, piece: int = 10**9) -> tuple[Model, list[Any]]:
    machine, predictions = machine_for(learner, stream), []
    for given, labels in stream.phases:
        for begin in range(0, len(labels), piece):
            part = slice(begin, begin + piece)
            predictions += machine.run(given[part], labels[part], grow=True).predictions.tolist()
    return machine, predictions


def follow(learner: str, stream: Stream) -> int:
    """Play both; returns how many trials agreed, all unless a decision was in doubt."""
    _, predictions = played(learner, stream)
    slow = slow_of(learner, stream.k, discover=True)
    doubt.reset()
    for t, (x, label) in enumerate(zip(stream.matrices, stream.labels, strict=True)):
        expected = slow.trial(x, label)
        got = -1 if predictions[t] is None else predictions[t]
        if got != expected:
            assert doubt.smallest < ROUNDING, f"{learner} at trial {t}: {got}, reference {expected}"
            return t
    return len(stream.labels)


SHAPES = {
    "votes": ([2, 3, 6], [0, 0, 0], [0, 0, 0], [3, 3, 3]),
    "scores": ([0, 0, 0], [1, 2, 3], [0, 0, 0], [3, 3, 3]),
    "attributes": ([0, 0, 0], [0, 0, 0], [1, 3, 5], [3, 3, 3]),
    "hybrid": ([1, 1, 3], [1, 2, 2], [1, 2, 2], [3, 3, 3]),
}
CLASSES = {
    "votes": ([3, 3, 3], [0, 0, 0], [0, 0, 0], [2, 3, 5]),
    "scores": ([0, 0, 0], [2, 2, 3], [0, 0, 0], [2, 3, 5]),
    "attributes": ([0, 0, 0], [0, 0, 0], [2, 2, 3], [2, 4, 9]),
    "hybrid": ([1, 1, 3], [1, 2, 2], [1, 2, 2], [1, 2, 3]),
}


def compare(learner: str, shape: tuple[list[int], ...]) -> None:
    agreed = total = 0
    for seed in range(3 if JIT else 1):
        stream = Stream(seed, *shape, size=25 if JIT else 5)
        agreed += follow(learner, stream)
        total += len(stream.labels)
    assert agreed > 0.5 * total or not JIT


@pytest.mark.small
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("learner", LEARNERS)
def test_new_sub_experts(learner: str, shape: str) -> None:
    compare(learner, SHAPES[shape])


# A class brings its thresholds and attributes with it; the reference has them from the beginning, which a norm of
# positive weights would see.
@pytest.mark.small
@pytest.mark.parametrize("shape", CLASSES)
@pytest.mark.parametrize("learner", [text for text in LEARNERS if not re.search("thick|max|l1|V.*win|wei|stack", text)])
def test_new_classes(learner: str, shape: str) -> None:
    compare(learner, CLASSES[shape])


def state_of(machine: Model) -> dict[str, Any]:
    return {name: array.copy() for name, array in machine.engine.arrays.items()}


def assert_same_state(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert first.keys() == second.keys()
    for name, array in first.items():
        assert array.shape == second[name].shape, name
        assert array.tobytes() == second[name].tobytes(), name


@pytest.mark.parametrize("learner", LEARNERS)
def test_pieces_and_a_restart_change_no_bit(learner: str) -> None:
    stream = Stream(7, *CLASSES["hybrid"], size=30)
    machine, predictions = played(learner, stream)
    again, cut = played(learner, stream, piece=7)
    assert cut == predictions
    assert_same_state(state_of(again), state_of(machine))
    engine = machine.engine
    copy = Engine.restored(engine.learner, engine.layout, engine.k, engine.settings, engine.arrays)
    assert_same_state(copy.arrays, state_of(machine))
    instances, labels = stream.phases[-1]
    expected = machine.run(instances, labels).predictions.tolist()
    again.engine = copy
    assert again.run(instances, labels).predictions.tolist() == expected
    assert_same_state(state_of(again), state_of(machine))


def test_a_state_of_another_learner_is_refused() -> None:
    stream = Stream(7, *SHAPES["votes"], size=10)
    arrays = {text: played(text, stream)[0].engine.arrays for text in ("A-perceptron", "R-perceptron", "winnow(2)")}
    engine = played("perceptron", stream)[0].engine
    for text, others in arrays.items():
        with pytest.raises(ValueError, match="another learner's|not part of perceptron"):
            Engine.restored(engine.learner, engine.layout, engine.k, engine.settings, others)
        assert text


def test_attributes_that_keep_appearing() -> None:
    """Row by row, far beyond the room that there was: as if all had been there from the beginning."""
    rng = np.random.default_rng(3)
    table = np.tril(rng.uniform(-1, 1, (60, 60)))
    labels = rng.integers(3, size=60)
    for learner in ("perceptron", "A-balanced-winnow(1.2)", "A-winnow(1.2)", "AR(s=10)-perceptron"):
        whole = run(learner, instances(attributes=sparse.csr_array(table), classes=range(3)), labels)
        first = instances(attributes=sparse.csr_array(table[:1, :1]), classes=range(3))
        machine = run(learner, first, labels[:1]).model
        for t in range(1, 60):
            one = instances(attributes=sparse.csr_array(table[t : t + 1, : t + 1]), classes=range(3))
            machine.run(one, labels[t : t + 1], grow=True)
        np.testing.assert_allclose(machine.weights.arrays.flat, whole.model.weights.arrays.flat, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(machine.weights.arrays.attributes.shape, (60, 3))


def test_what_does_not_fit_changes_nothing() -> None:
    machine = run("winnow(1.2)", instances(votes=[["a", "b"]]), ["a"]).model
    before = state_of(machine)
    wide = instances(votes=[["a", "b", "c"]])
    with pytest.raises(ValueError, match="3 voters"):
        machine.run(wide, ["a"])
    with pytest.raises(ValueError, match="no thresholds"):
        machine.run(instances(votes=[["a", "b", "c"]], thresholds=False), ["a"], grow=True)
    with pytest.raises(ValueError, match="reach 3; pass scale"):
        machine.run(instances(votes=[["a", "b"]], attributes=[[3.0]]), ["a"], grow=True)
    assert machine.classes == ["a", "b"]
    assert_same_state(state_of(machine), before)
    assert machine.run(wide, ["c"], grow=True).predictions.tolist() == ["a"]
    assert machine.predict(instances(votes=[["b"]])).tolist() == ["b"]  # who is missing abstains
