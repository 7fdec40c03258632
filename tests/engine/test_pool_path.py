"""The pool for attributes one trial at a time in compiled code: the same bits as in arrays, whatever comes between."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import linmax
from linmax import Learner
from linmax.engine.one_trial import NumbersPath
from linmax.jit.compiling import JIT


def rows_of(trials: int, columns: int = 6, seed: int = 0) -> tuple[list[dict[str, float]], list[str]]:
    """Numbers by name, of which one is 0 for a long time, and labels of three classes, of which one is late."""
    generator = np.random.default_rng(seed)
    table = generator.normal(size=(trials, columns)).round(3)
    table[: trials // 2, -1] = 0.0
    classes = np.digitize(table[:, 0] * table[:, 1] + 0.3 * table[:, 2], [-0.3, 0.6])
    classes[:30] = np.minimum(classes[:30], 1)
    return [dict(zip("abcdefgh", row, strict=False)) for row in table.tolist()], ["xyz"[c] for c in classes]


def bits(learner: Learner) -> dict[str, Any]:
    """All that a learner knows."""
    description, arrays = learner.state()
    return {"": repr(description)} | {name: array.tobytes() for name, array in arrays.items()}


def slowly(learner: Learner) -> Learner:
    """The same without a path."""
    learner._short = False
    return learner


def teach_slowly(learner: Learner, x: dict[str, float], y: str) -> Any:
    """Learn in arrays."""
    return slowly(learner).learn(x, label=y)


@pytest.mark.small
@pytest.mark.parametrize("name", ["auto", "attributes"])
def test_the_path_gives_the_bits_of_the_arrays(name: str) -> None:
    rows, labels = rows_of(150)
    one, other = Learner(name), Learner(name)
    for x, y in zip(rows, labels, strict=True):
        assert one.predict(x) == slowly(other).predict(x)
        assert one.learn(x, label=y) == teach_slowly(other, x, y)
        assert one.predict_proba(x) == slowly(other).predict_proba(x)
    assert one.scores(rows[0]) == slowly(other).scores(rows[0])
    assert one.predict_set(rows[0]) == slowly(other).predict_set(rows[0])
    if JIT:
        assert isinstance(one._path, NumbersPath)
    assert bits(one) == bits(other)


def test_after_the_first_trials_and_with_all_that_comes_between() -> None:
    rows, labels = rows_of(1400)
    one, other = Learner(), Learner()
    for t, (x, y) in enumerate(zip(rows, labels, strict=True)):
        if t == 600:  # a new name, and one that is absent
            x = {**x, "new": 1.5}
            del x["b"]
        if t == 700:  # a copy goes on
            one = pickle.loads(pickle.dumps(one))
        if t == 800:
            assert one.predict(x, id="kept") == slowly(other).predict(x, id="kept")
        if t == 820:
            assert one.learn(id="kept", label="x") == slowly(other).learn(id="kept", label="x")
        if t == 900:
            y = "a class that is new"
        if t == 950:
            x = list(x.values())  # type: ignore[assignment]
        if t == 1000:
            for learner in one, other:
                learner._current_model.engine  # noqa: B018
        assert one.predict(x) == slowly(other).predict(x), t
        assert one.learn(x, label=y) == teach_slowly(other, x, y), t
    assert bits(one) == bits(other)
    assert isinstance(one._path, NumbersPath)


def test_labels_in_long_runs_are_judged_at_large() -> None:
    rows, labels = rows_of(700)
    order = np.argsort(labels, kind="stable")
    one, other = Learner(), Learner()
    for t in order:
        one.learn(rows[t], label=labels[t])
        teach_slowly(other, rows[t], labels[t])
    assert [one.predict(x) for x in rows[:50]] == [slowly(other).predict(x) for x in rows[:50]]
    assert bits(one) == bits(other)


def test_invalid_number_changes_nothing() -> None:
    rows, labels = rows_of(600)
    learner = Learner()
    for x, y in zip(rows, labels, strict=True):
        learner.learn(x, label=y)
    before = bits(learner)
    with pytest.raises(ValueError, match="'a'"):
        learner.learn({**rows[0], "a": 1e301}, label="x")
    assert bits(learner) == before


def test_the_faces_agree() -> None:
    rows, labels = rows_of(900)
    learner = Learner(classes=["x", "y", "z"])
    predicted = [learner.learn(x, label=y) for x, y in zip(rows, labels, strict=True)]
    table = np.array([list(x.values()) for x in rows])
    trace = linmax.run("auto", linmax.instances(attributes=table, classes=["x", "y", "z"]), labels)
    assert predicted == trace.predictions.tolist()
    assert learner.mistakes == trace.mistakes[-1]
