"""A rule of another package is one file and one registration: everything else follows from these."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmax
from linmax import rules
from linmax.core.contract import Rule
from linmax.models.merge import merge
from linmax.rules.custom import TAKEN

FILE = '''
"""The Perceptron that remembers how often each weight was changed. If w.z <= 0: w <- w + rate z."""

from collections.abc import Sequence

import numpy as np

from linmax.theory.bounding import AdditiveBound
from linmax.core.contract import STEP, Part, Rule
from linmax.theory.rows import Rows
from linmax.jit.compiling import kernel
from linmax.rules.mixing import mix_memory, mix_weights
from linmax.rules.perceptron import perceptron_bound


@kernel(STEP)
def step(weights, memory, scalars, index, z, margin, params):
    if margin > 0.0:
        return False
    for j in range(index.size):
        weights[index[j]] += params[0] * z[j]
        memory[0, index[j]] += 1.0
    return True


def mix(rule, parts, shares, plain, target):
    mix_weights(rule, parts, shares, plain, target)
    mix_memory(parts, shares, target)


def bound(rule, rows):
    return perceptron_bound(rows)


def a_counting(rate=1.0):
    values = {"rate": float(rate)}
    return Rule(
        "a_counting", values, step, values=(float(rate),), slots=(0.0,), mix=mix, bound=bound, defaults={"rate": 1.0}
    )
'''

REGISTRATION = """
from linmax.rules import register_rule
from their_rules.counting import a_counting

register_rule("a-counting", a_counting)
"""


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The package, imported; afterwards the rule is forgotten."""
    package = tmp_path / "their_rules"
    package.mkdir()
    (package / "__init__.py").write_text(REGISTRATION)
    (package / "counting.py").write_text(FILE)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    before, taken = dict(rules.REGISTRY), set(TAKEN)
    yield importlib.import_module("their_rules.counting")
    rules.REGISTRY.clear()
    rules.REGISTRY.update(before)
    TAKEN.clear()
    TAKEN.update(taken)
    for name in [name for name in sys.modules if name.partition(".")[0] == "their_rules"]:
        del sys.modules[name]


def taught(seed: int, text: str = "a-counting(rate=0.5)") -> linmax.Learner:
    random, model = np.random.default_rng(seed), linmax.Learner(text)
    for _ in range(30):
        x = random.random(3)
        model.learn({f"x{i}": float(x[i]) for i in range(3)}, label="ab"[int(x[0] > x[1])])
    return model


@pytest.mark.small
def test_text_means_the_rule(added: Any) -> None:
    made = linmax.parse("a-counting(rate=0.5)")
    assert made == added.a_counting(0.5)
    assert str(made) == "a-counting(rate=0.5)"
    assert str(linmax.parse("AR-a-counting")) == "AR-a-counting"
    linmax.testing.check_rule(made)


@pytest.mark.small
def test_it_runs_and_its_bound_holds(added: Any) -> None:
    data = linmax.datasets.majority_problem(n=6, r=3, k=3, noise=0.0, trials=60, seed=1)
    instances = linmax.instances(votes=data.votes)
    trace = linmax.run("a-counting", instances, data.labels)
    same = linmax.run("perceptron", instances, data.labels)
    assert trace.predictions.tolist() == same.predictions.tolist()
    assert np.array_equal(trace.bound(data.target), same.bound(data.target))
    found = linmax.theory.certify(instances, data.labels, "R-a-counting")
    assert found.mistakes is not None
    assert found.mistakes <= found.bound == linmax.theory.certify(instances, data.labels, "R-perceptron").bound


@pytest.mark.small
def test_its_models_are_merged(added: Any) -> None:
    models = [taught(1), taught(2)]
    merged, same = merge(models), merge([taught(1, "perceptron(rate=0.5)"), taught(2, "perceptron(rate=0.5)")])
    assert merged.weights["attributes"] == same.weights["attributes"]
    states = [model._engine.state.memory for model in (merged, *models)]
    assert np.array_equal(states[0], 0.5 * states[1] + 0.5 * states[2], equal_nan=True)


@pytest.mark.small
def test_its_models_are_saved_and_pickled(added: Any, tmp_path: Path) -> None:
    model = taught(1)
    model.save(tmp_path / "model")
    for again in (linmax.Learner.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert again.weights["attributes"] == model.weights["attributes"]
        assert str(again.learner) == "a-counting(rate=0.5)"
    assert pickle.loads(pickle.dumps(added.a_counting(0.5))) == added.a_counting(0.5)


@pytest.mark.small
def test_rule_without_mixture_or_bound_gives_reason(added: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = {"mix": "its counts are its own", "bound": "nobody has looked for one"}

    def silent() -> Rule:
        return Rule("silent", {}, added.step, values=(1.0,), slots=(0.0,), **reasons)  # type: ignore[arg-type]

    rules.register_rule("silent", silent)
    with pytest.raises(ValueError, match="silent cannot be merged: its counts are its own"):
        merge([taught(1, "silent")])
    with pytest.raises(ValueError, match="no bound from data is known for silent: nobody has looked for one"):
        linmax.theory.certify([[1.0], [-1.0]], [0, 1], "silent")


@pytest.mark.small
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a-counting", "a rule 'a-counting' exists"),
        ("combine", "a rule 'combine' exists"),
        ("My_Rule", "lower-case words joined by '-', got 'My_Rule'"),
    ],
)
def test_names_that_are_refused(added: Any, name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        rules.register_rule(name, added.a_counting)


@pytest.mark.small
def test_registered_names_are_taken(added: Any) -> None:
    def a_counting(weights, memory, scalars, index, z, margin, params):  # type: ignore[no-untyped-def]
        return False

    with pytest.raises(ValueError, match="this is the name of a built-in"):
        linmax.rule(a_counting)
