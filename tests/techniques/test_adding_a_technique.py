"""A technique is one file and one line of the registry: here both are written while the test runs."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import linmax
from linmax.techniques import REGISTRY

# Follow the base, but repeat the last label while the base has been wrong ``after`` times in a row or more.
FILE = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from linmax.techniques.node import Node, PlayedChunk
from linmax.techniques.technique import LearnerLike, PrefixTechnique, as_learner
from linmax.util.checks import counted


@dataclass(frozen=True)
class Hesitant(PrefixTechnique):
    notation: ClassVar[str] = "H"
    after: int = 2

    def __post_init__(self):
        counted("after", self.after, 1)

    def node(self, make):
        return Hesitating(make(self.base), self)


class Hesitating(Node):
    def __init__(self, base, described):
        self.children, self.described = [base], described
        self.marks = np.array([0, -1])  # wrong in a row, last label

    @property
    def arrays(self):
        return {"marks": self.marks}

    def play(self, engine, chunk):
        base = self.children[0].play(engine, chunk)
        predictions = base.predictions.copy()
        for t, label in enumerate(chunk.seen):
            if self.marks[0] >= self.described.after:
                predictions[t] = self.marks[1]
            self.marks[:] = (self.marks[0] + 1 if base.predictions[t] != label else 0), label
        return PlayedChunk(predictions, base.changed, base.scores)

    def judge(self, engine, instances, size):
        predictions, table = self.children[0].judge(engine, instances, size)
        if self.marks[0] >= self.described.after:
            predictions = np.full_like(predictions, self.marks[1])
        return predictions, table


def hesitate(learner: LearnerLike, after: int = 2) -> Hesitant:
    return Hesitant(as_learner(learner), after)
"""

DATA = linmax.datasets.majority_problem(trials=300, seed=3)
INSTANCES = linmax.instances(votes=DATA.votes)


@pytest.fixture(autouse=True)
def technique(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    package = tmp_path / "techniques_of_mine"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "hesitating.py").write_text(FILE)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("techniques_of_mine.hesitating")
    monkeypatch.setitem(REGISTRY, module.Hesitant.notation, module.hesitate)
    for name in ("techniques_of_mine", "techniques_of_mine.hesitating"):
        monkeypatch.delitem(sys.modules, name)  # so that the next test reads its own file
    return module


def hesitated(predictions: np.ndarray, labels: np.ndarray, after: int) -> list[int]:
    found, wrong = [], 0
    for t, (predicted, label) in enumerate(zip(predictions, labels, strict=True)):
        found.append(labels[t - 1] if wrong >= after else predicted)
        wrong = wrong + 1 if predicted != label else 0
    return found


@pytest.mark.small
def test_it_has_a_public_function_and_a_notation(technique: ModuleType) -> None:
    made = technique.hesitate("R-perceptron", after=3)
    assert made == technique.Hesitant(linmax.parse("R-perceptron"), 3)
    assert str(made) == "H(after=3)R-perceptron"
    assert linmax.parse("h(after=3)r-Perceptron") == made
    assert str(linmax.parse("H-combine(perceptron, A-winnow(1.1))")) == "H-combine(perceptron, A-winnow(1.1))"
    with pytest.raises(ValueError, match="H has no option 'before'; it has after"):
        linmax.parse("H(before=1)-perceptron")
    with pytest.raises(ValueError, match="options of A, R, V, S, B and H are written key=value"):
        linmax.parse("H(1)-perceptron")
    with pytest.raises(ValueError, match="prefixes A-, R-, V-, S-, B-, H-"):
        linmax.parse("H-percepton")


@pytest.mark.parametrize("base", ["perceptron", "AR-winnow(1.1)", "VR-perceptron", "combine(perceptron, alma(2))"])
def test_it_runs_over_other_learners(base: str) -> None:
    basic = linmax.run(base, INSTANCES, DATA.labels)
    trace = linmax.run(f"H(after=1)-{base}".replace("-AR", "AR").replace("-VR", "VR"), INSTANCES, DATA.labels)
    assert trace.predictions.tolist() == hesitated(basic.predictions, DATA.labels, 1)


@pytest.mark.small
@pytest.mark.parametrize(
    "text",
    [
        "combine(H-perceptron, winnow(1.1))",
        "combine(H-perceptron, winnow(1.1), how=wma)",
        "stack(H-perceptron, winnow(1.1), fusion=H(after=1)-perceptron)",
    ],
)
def test_other_techniques_stand_over_it(text: str) -> None:
    trace = linmax.run(text, linmax.instances(votes=DATA.votes[:60]), DATA.labels[:60])
    assert str(trace.model.learner) == text
    assert trace.mistakes[-1] < 50


@pytest.mark.small
def test_vote_over_it_is_refused() -> None:
    with pytest.raises(ValueError, match="vote\\(\\) needs hypotheses that are weights; H-perceptron has none"):
        linmax.run("VH-perceptron", INSTANCES, DATA.labels)


@pytest.mark.small
def test_it_is_taught_one_by_one_saved_and_loaded(tmp_path: Path) -> None:
    trials = 80
    expected = linmax.run("HR-perceptron", linmax.instances(votes=DATA.votes[:trials]), DATA.labels[:trials])
    learner = linmax.Learner("HR-perceptron", classes=sorted(set(DATA.labels.tolist())))
    found = []
    for t in range(trials):
        if t == trials // 2:
            learner.save(tmp_path / "hesitant.model")
            learner = linmax.Learner.load(tmp_path / "hesitant.model")
        found.append(learner.learn(votes=DATA.votes[t].tolist(), label=int(DATA.labels[t])))
    assert found == expected.predictions.tolist()
    assert str(learner.learner) == "HR-perceptron"
