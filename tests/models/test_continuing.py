"""Saved in the middle, loaded and continued, a learner gives the same bits, whatever has joined it before and after."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import linmax
from linmax import Learner, StreamModel, rules
from linmax.rules.custom import CUSTOM_RULES
from linmax.util import files

WHOLE = ["softmax", "robust-softmax", "naive-bayes", "recent-label", "attributes", "auto", "votes"]
NEED = {
    "winnow": "(1.3)", "balanced-winnow": "(1.3)", "p-norm": "(3)", "alma": "(2)", "quasi-additive": "(sinh, 0.3)",
    "committee": "(1.3)",
}  # fmt: skip
RULES = [name + NEED.get(name, "") for name in rules.REGISTRY if name != "elimination"]
TECHNIQUES = [
    "AR(s=10, u=3)-perceptron",
    "A(scale=max, fade=True)R(s=10, u=3, budget=5)-winnow(1.3)",
    "V(h=4, w=4, r=8, d=5)-winnow(1.3)",
    "V(h=4, saved=random)AR(s=10, u=3)-perceptron",
    "combine(robust-softmax, A-perceptron, how=weighted)",
    "stack(softmax, perceptron, fusion=softmax)",
    "stack(auto, perceptron, fusion=auto)",
    "combine(auto, softmax, how=wma)",
    "vr-combine",
]
LEARNERS = [*WHOLE, *RULES, *TECHNIQUES]
ALONE = ("naive-bayes", "attributes")  # learn from attributes only
HISTORIES = ["".join(order) for size in (1, 2, 3) for order in permutations("VRA", size)]
PHASE = 14  # trials of a phase


def trials(history: str, seed: int) -> list[tuple[dict[str, Any], str]]:
    """Instances and labels: in each phase another kind joins, and in the midst of it a class, a name or both."""
    rng = np.random.default_rng(seed)
    found, classes = [], ["p", "q"]
    for phase in range(len(history)):
        kinds = history[: phase + 1]
        for t in range(PHASE):
            if t == PHASE // 2:
                classes = [*classes, f"c{phase}"]
            label = classes[rng.integers(len(classes))]
            names = range(2 + phase + (t >= PHASE // 2))
            instance: dict[str, Any] = {}
            if "V" in kinds:
                votes = {f"v{i}": label if rng.random() < 0.7 else classes[rng.integers(len(classes))] for i in names}
                instance["votes"] = votes
            if "R" in kinds:
                rows = {f"r{i}": {c: float(rng.uniform(0, 0.5) + 0.4 * (c == label)) for c in classes} for i in names}
                instance["scores"] = rows
            if "A" in kinds:
                told = {f"a{i}": float(rng.uniform(0.1, 1.0)) for i in rng.permutation(names).tolist()}
                instance["attributes"] = told | {f"is {label}": 1.0}
            found.append((instance, label))
    return found


def same_bits(one: Learner, other: Learner) -> None:
    (told, arrays), (told_other, arrays_other) = one.state(), other.state()
    assert told == told_other
    assert arrays.keys() == arrays_other.keys()
    for name, array in arrays.items():
        assert np.array_equal(array, arrays_other[name], equal_nan=array.dtype.kind == "f"), name


@pytest.mark.parametrize("learner", LEARNERS)
def test_save_and_load_resume_with_same_bits(learner, tmp_path):
    some = ["RAV"] if learner in RULES else ["VR", "RV"] if learner == "votes" else ["VRA", "AVR", "RAV"]
    for history in ["A"] if learner in ALONE else HISTORIES if learner == "auto" else some:
        rows = trials(history, 1)
        whole, told = Learner(learner), []
        for instance, label in rows:
            told.append(whole.learn(**instance, label=label))
        for step in (5, PHASE):
            model, told_again = Learner(learner), []
            for t, (instance, label) in enumerate(rows):
                if t % step == 0:
                    model.save(tmp_path / "model")
                    model = Learner.load(tmp_path / "model")
                told_again.append(model.learn(**instance, label=label))
            assert told_again == told, history
            same_bits(whole, model)


# -- rules and links of the user's own --------------------------------------------------------------------------------


def hinge(weights, memory, scalars, index, z, margin, params):
    if margin > params[0]:
        return False
    for j in range(index.size):
        weights[index[j]] += z[j]
    return True


def lazy(weights, memory, scalars, index, z, margin, params):
    if margin > params[0]:
        return False
    for j in range(index.size):
        weights[index[j]] += 0.5 * z[j]
    return True


lazy.__name__ = "hinge"


def faces() -> dict[str, Any]:
    """How each face learns a little with a learner, and is saved and loaded."""

    def one(learner: Any) -> Any:
        model = Learner(learner)
        for t in range(4):
            model.learn({"a": 1.0, "b": t}, label="pq"[t % 2])
        return model

    def streamed(learner: Any) -> Any:
        model = StreamModel(learner)
        for batch in linmax.stream(["p | a b:2", "q | a", "p | b:3"], format="vw", model=model):
            model.learn(batch)
        return model

    def fused(learner: Any) -> Any:
        return linmax.VoteFusion(learner).partial_fit([["p", "q"], ["q", "q"], ["p", "p"]], ["p", "q", "p"])

    def fitted(learner: Any) -> Any:
        return linmax.LinearMaxClassifier(learner).fit([[0.0, 1.0], [1.0, 0.5], [0.3, 1.0]], ["p", "q", "p"])

    return {"Learner": one, "stream": streamed, "VoteFusion": fused, "scikit-learn": fitted}


@pytest.fixture
def own():
    """Define a rule `hinge`; what the test defines is forgotten after it."""
    before = dict(CUSTOM_RULES)
    yield rules.rule(parameters={"margin": 1.0}, reach=1.0)
    CUSTOM_RULES.clear()
    CUSTOM_RULES.update(before)


@pytest.mark.parametrize("face", faces())
def test_a_rule_of_ones_own_is_known_again(face, own, tmp_path):
    model = faces()[face](linmax.average(own(hinge)(0.5)))
    model.save(tmp_path / "model")
    again = type(model).load(tmp_path / "model")
    again.save(tmp_path / "again")
    (told, arrays), (told_again, arrays_again) = (
        files.read(tmp_path / n, files.kind_of(tmp_path / "model")) for n in ("model", "again")
    )
    assert told == told_again
    assert all(np.array_equal(array, arrays_again[name], equal_nan=True) for name, array in arrays.items())

    CUSTOM_RULES.pop("hinge")
    with pytest.raises(ValueError, match="'hinge', a rule of your own that is not defined here"):
        type(model).load(tmp_path / "model")
    own(lazy)
    with pytest.raises(ValueError, match="'hinge'.*saved"):
        type(model).load(tmp_path / "model")
    with pytest.raises(ValueError, match=r"hinge\(margin=0.5\) cannot be saved: its name stands for another one"):
        model.save(tmp_path / "model")


@pytest.mark.parametrize("face", faces())
def test_a_link_of_ones_own_is_refused_when_saved(face, tmp_path):
    def cubic(v):
        return v + v * v * v

    for link in (lambda v: v + v, cubic):
        model = faces()[face](linmax.combine([rules.quasi_additive(link), "perceptron"]))
        with pytest.raises(ValueError, match="a link of your own has no name"):
            model.save(tmp_path / "model")
        assert not (tmp_path / "model").exists()


def test_large_numbers_do_not_need_a_name_for_the_rule():
    model = Learner(rules.quasi_additive(lambda v: v + v))
    model.learn({"a": 1.0}, label="p")
    with pytest.raises(OverflowError, match="left the range of floats"):
        model.learn({"a": 9e99}, label="q")
    assert (model.trials, model._current_model.known) == (1, ["p"])
