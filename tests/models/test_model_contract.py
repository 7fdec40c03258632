"""One contract for every interface and learner: cuts, files, weights, missing labels, wrong classes, pure predictions."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmax
from linmax import Learner, LinearMaxClassifier, StreamModel, VoteFusion, instances
from linmax.data.arrays import Layout
from linmax.engine.engine import Settings
from linmax.models.model import Model

SIZE = 72
CLASSES = list("pqrs")
LEARNERS = ["auto", "softmax", "perceptron", "AR(s=20)-winnow(1.1)"]
RAGGED = [0, 1, 2, 9, 10, 37, 38, 61, SIZE]
RNG = np.random.default_rng(1)
# A new class every 16 trials, not in alphabetical order; votes also name classes whose label is still to come, or never.
LABELS = np.array(list("rpsq"))[np.minimum(RNG.integers(0, 4, SIZE), np.arange(SIZE) // 16)]
STRANGE = RNG.choice(list("pqrsz"), (SIZE, 4))
VOTES = np.where(RNG.random((SIZE, 4)) < [0.8, 0.6, 0.5, 0.4], LABELS[:, None], STRANGE)
SIDES = np.array([[f"s{RNG.integers(1 + t // 15)}", f"t{RNG.integers(1 + t // 30)}"] for t in range(SIZE)])
PLACES = np.array([CLASSES.index(label) for label in LABELS])
SCORES = RNG.uniform(0.0, 0.6, (SIZE, 3, 4))
SCORES[np.arange(SIZE), :, PLACES] += 0.4
TABLE = RNG.normal(size=(SIZE, 5))
TABLE[np.arange(SIZE), PLACES] += 1.5
TABLE /= np.abs(TABLE).max()
NO_LABEL = np.arange(SIZE) % 5 == 4
WRONG = np.arange(SIZE) % 4 == 3
OTHERS = np.array(CLASSES)[(PLACES + 1) % 4]
WEIGHTS = np.array([0.25, 1.0, 2.0, 3.5])[RNG.integers(0, 4, SIZE)]


class Face:
    """An interface: how to make a model, teach it trials begin..end, ask it, and read all that it is."""

    batches = True
    features = frozenset({"wrong", "weights", "no label"})

    def make(self, learner: str) -> Any:
        raise NotImplementedError

    def given(self) -> Any:
        raise NotImplementedError

    def teach(self, model: Any, begin: int, end: int, labels: np.ndarray = LABELS, **options: np.ndarray) -> None:
        columns = {name: column[begin:end] for name, column in options.items()}
        model.partial_fit(self.given()[begin:end], labels[begin:end], **columns)

    def ask(self, model: Any) -> Any:
        return model.predict(self.given()).tolist(), model.decision_function(self.given()).tolist()

    def bits(self, model: Any) -> Any:
        description, arrays = model.state()
        return repr(description), {name: array.tobytes() for name, array in arrays.items()}


class Fusion(Face):
    def __init__(self, table: np.ndarray, **options: Any) -> None:
        self.table, self.options = table, options

    def make(self, learner: str) -> VoteFusion:
        return VoteFusion(learner, **self.options)

    def given(self) -> Any:
        return self.table


class Estimator(Face):
    features = frozenset({"wrong", "weights"})

    def make(self, learner: str) -> LinearMaxClassifier:
        return LinearMaxClassifier(learner)

    def given(self) -> Any:
        return TABLE

    def bits(self, model: LinearMaxClassifier) -> Any:
        return pickle.dumps(model.__getstate__()["_model"])


class OneByOne(Face):
    """A `Learner`, taught one instance after the other."""

    batches = False

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def make(self, learner: str) -> Learner:
        return Learner(learner)

    def instance(self, t: int) -> dict[str, Any]:
        if self.kind == "votes":
            return {"votes": dict(zip("abcd", VOTES[t].tolist(), strict=True))}
        if self.kind == "attributes":
            return {"attributes": {f"x{i}": value for i, value in enumerate(TABLE[t].tolist())}}
        rows = {f"r{i}": dict(zip(CLASSES, row, strict=True)) for i, row in enumerate(SCORES[t].tolist())}
        if self.kind == "scores":
            return {"scores": rows}
        names = CLASSES[t % 3 :] + CLASSES[: t % 3]  # candidates in another order at each trial
        return {"scores": rows, "votes": dict(zip("abcd", VOTES[t].tolist(), strict=True)), "candidates": names}

    def teach(self, model: Learner, begin: int, end: int, labels: np.ndarray = LABELS, **options: np.ndarray) -> None:
        wrong, weights = options.get("wrong"), options.get("sample_weight")
        for t in range(begin, end):
            label: Any = labels[t]
            answer: dict[str, Any] = {"wrong" if wrong is not None and wrong[t] else "label": label}
            if weights is not None:
                answer["weight"] = float(weights[t])
            model.learn(**self.instance(t), **answer)

    def ask(self, model: Learner) -> Any:
        return [(model.predict(**self.instance(t)), model.scores(**self.instance(t))) for t in range(0, SIZE, 7)]


class River(OneByOne):
    """River's classifier, taught one instance after the other."""

    features = frozenset({"weights"})

    def make(self, learner: str) -> Any:
        return pytest.importorskip("linmax.river").LinearMaxClassifier(learner, scale="none")

    def teach(self, model: Any, begin: int, end: int, labels: np.ndarray = LABELS, **options: np.ndarray) -> None:
        weights = options.get("sample_weight", np.ones(SIZE))
        for t in range(begin, end):
            model.learn_one(self.instance(t)["attributes"], labels[t], float(weights[t]))

    def ask(self, model: Any) -> Any:
        rows = [self.instance(t)["attributes"] for t in range(0, SIZE, 7)]
        return [(model.predict_one(row), model.predict_proba_one(row)) for row in rows]

    def bits(self, model: Any) -> Any:
        return super().bits(model._learner)


class Run(Face):
    """What `run` returns, continued."""

    features = frozenset({"wrong", "weights", "no label"})

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def make(self, learner: str) -> Model:
        return Model(learner, Layout(0, 0, 0, 0, 1.0), (), Settings(discover=True, by_votes=self.kind == "votes"))

    def given(self) -> Any:
        if self.kind == "votes":
            return instances(votes=VOTES)
        return instances(attributes=TABLE)

    def teach(self, model: Model, begin: int, end: int, labels: np.ndarray = LABELS, **options: np.ndarray) -> None:
        wrong, weights = (
            None if (a := options.get(name)) is None else a[begin:end] for name in ("wrong", "sample_weight")
        )
        model.run(self.given()[begin:end], labels[begin:end], grow=True, weights=weights, wrong=wrong)

    def ask(self, model: Model) -> Any:
        return model.predict(self.given()).tolist(), model.scores(self.given()).tolist()


class Stream(Face):
    """A `StreamModel` of batches that are read once and cut."""

    features = frozenset({"weights", "no label"})

    def make(self, learner: str) -> StreamModel:
        return StreamModel(learner, scale="none")

    def bits(self, model: StreamModel) -> Any:
        assert model._current_model is not None  # scaling learns from rows that are only predicted, too
        return super().bits(model._current_model)

    def read(self, model: StreamModel, begin: int, end: int, **options: Any) -> Iterator[Any]:
        labels, weights = (
            options.get("labels", LABELS)[begin:end],
            options.get("sample_weight", np.ones(SIZE))[begin:end],
        )
        rows = zip(labels, weights, TABLE[begin:end].tolist(), strict=True)
        lines = [
            f"{'' if y is None else f'{y} {w}'} | " + " ".join(f"x{i}:{value!r}" for i, value in enumerate(row))
            for y, w, row in rows
        ]
        return iter(linmax.stream(lines, model=model, format="vw", prefetch=False, grow=options.get("grow", True)))

    def teach(self, model: StreamModel, begin: int, end: int, labels: np.ndarray = LABELS, **options: Any) -> None:
        if any(label is None for label in labels):
            labels = np.where([label is None for label in labels], "r", labels)
            options["sample_weight"] = np.where(NO_LABEL, 0.0, 1.0)
        for batch in self.read(model, begin, end, labels=labels, **options):
            model.learn(batch)

    def ask(self, model: StreamModel) -> Any:
        batches = self.read(model, 0, SIZE, grow=False)
        return [(model.predict(batch).tolist(), model.scores(batch).round(9).tolist()) for batch in batches]


FACES: dict[str, Face] = {
    "fusion of votes": Fusion(VOTES),
    "fusion with side columns": Fusion(np.hstack([VOTES, SIDES]), by=[4, 5]),
    "fusion of scores": Fusion(SCORES, classes=CLASSES),
    "estimator": Estimator(),
    "stream": Stream(),
    "river": River("attributes"),
    "run of votes": Run("votes"),
    "run of attributes": Run("attributes"),
    "learner of votes": OneByOne("votes"),
    "learner of scores": OneByOne("scores"),
    "learner of attributes": OneByOne("attributes"),
    "learner of candidates": OneByOne("candidates"),
}
EVERYWHERE = [(face, learner) for face in FACES for learner in LEARNERS]


def learned(model: Any) -> dict[str, np.ndarray]:
    """What was learned and counted, but for the ring of scores, which depends on the classes known when it was saved."""
    if isinstance(model, VoteFusion):
        state = model._fitted
        return state.model.engine.arrays | state.tally.arrays | state.recent.arrays
    if isinstance(model, Model):
        return model.engine.arrays | {"counts": model.record.counts[:3]}
    inner = model._model if isinstance(model, LinearMaxClassifier) else getattr(model, "_learner", model)._current_model
    return inner.engine.arrays | {"counts": inner.record.counts[:3]}


def having(*features: str) -> Any:
    """The interfaces with these features, and the learners."""
    return pytest.mark.parametrize(
        ("name", "learner"), [pair for pair in EVERYWHERE if FACES[pair[0]].features.issuperset(features)]
    )


def taught(face: Face, learner: str, *args: Any, **options: Any) -> Any:
    model = face.make(learner)
    face.teach(model, 0, SIZE, *args, **options)
    return model


def resumed(model: Any, path: Path) -> Any:
    """Save and load a model, and pickle it."""
    if isinstance(model, Model):
        return Model.from_state(*model.state())
    if not hasattr(model, "save"):
        return pickle.loads(pickle.dumps(model))
    model.save(path)
    return pickle.loads(pickle.dumps(linmax.load(path)))


CASES: dict[str, tuple[np.ndarray, dict[str, np.ndarray], set[str]]] = {
    "labels": (LABELS, {}, set()),
    "weights": (LABELS, {"sample_weight": WEIGHTS}, {"weights"}),
    "no label": (np.where(NO_LABEL, None, LABELS), {}, {"no label"}),  # type: ignore[call-overload]
    "not this class": (np.where(WRONG, OTHERS, LABELS), {"wrong": WRONG}, {"wrong"}),
}


@pytest.mark.parametrize("case", CASES)
@having()
def test_cut_anywhere_and_saved_and_resumed(name: str, learner: str, case: str, tmp_path: Path) -> None:
    labels, options, needed = CASES[case]
    face = FACES[name]
    if not needed <= face.features or (name == "learner of candidates" and case == "no label"):
        pytest.skip("this interface has no such labels")
    whole = taught(face, learner, labels, **options)
    for cuts in ([0, 20, 50, SIZE], RAGGED, range(SIZE + 1)) if face.batches else ([0, 20, 50, SIZE],):
        model = face.make(learner)
        for begin, end in pairwise(cuts):
            face.teach(model, begin, end, labels, **options)
            if len(cuts) == 4:
                model = resumed(model, tmp_path / "model")
        assert face.ask(model) == face.ask(whole)
        if name == "stream":  # names and classes join with their batch, so that sums may be rounded differently
            continue
        found, expected = learned(model), learned(whole)
        assert found.keys() == expected.keys()
        for part, array in found.items():
            assert np.array_equal(array, expected[part], equal_nan=array.dtype.kind == "f"), (part, len(cuts))


ALIKE = {
    "votes": ["fusion of votes", "learner of votes", "run of votes"],
    "attributes": ["estimator", "stream", "learner of attributes", "run of attributes", "river"],
}


def mistakes(model: Any) -> tuple[int, int]:
    """Labels seen and mistakes made."""
    inner = model._model if isinstance(model, LinearMaxClassifier) else model
    inner = model._current_model if isinstance(model, VoteFusion) else getattr(inner, "_learner", inner)
    return inner.trials, inner.mistakes


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("learner", [*LEARNERS, "combine(softmax, pa)", "B(gamma=0.5)-perceptron"])
@pytest.mark.parametrize("kind", ALIKE)
def test_interfaces_learn_the_same(kind: str, learner: str, case: str) -> None:
    labels, options, needed = CASES[case]
    faces = [FACES[name] for name in ALIKE[kind] if needed <= FACES[name].features]
    models = [face.make(learner) for face in faces]
    for face, model in zip(faces, models, strict=True):
        if isinstance(model, LinearMaxClassifier):
            model.scale = "none"
        face.teach(model, 0, SIZE, labels, **options)
    assert len({mistakes(model) for model in models}) == 1
    if case != "not this class":  # which says nothing of a class that is not known
        assert mistakes(models[0])[0] == sum(label is not None for label in labels)


@having()
def test_predicting_changes_nothing(name: str, learner: str) -> None:
    face = FACES[name]
    model = taught(face, learner)
    before = face.bits(model)
    first = face.ask(model)
    assert face.ask(model) == first
    assert face.bits(model) == before
    copied = deepcopy(model)
    face.teach(model, 0, 9)
    assert face.ask(copied) == first


@having("weights")
def test_a_weight_of_one_is_none_and_of_zero_predicts_only(name: str, learner: str) -> None:
    face = FACES[name]
    plain = taught(face, learner)
    assert face.ask(taught(face, learner, sample_weight=np.ones(SIZE))) == face.ask(plain)
    before = face.bits(plain)
    face.teach(plain, 0, 9, sample_weight=np.zeros(SIZE))
    assert face.bits(plain) == before


@having("wrong")
def test_a_wrong_class_of_two_is_the_other_one_as_label(name: str, learner: str) -> None:
    face = FACES[name]
    if name in ("learner of candidates", "fusion of scores", "learner of scores") or "votes" in name or "side" in name:
        pytest.skip("votes name further classes")
    labels = np.where(LABELS == "r", "r", "p")
    first = np.arange(SIZE) < 6
    first[:2], labels[:2] = False, ["r", "p"]
    mask = ~first & WRONG
    given = np.where(mask, np.where(labels == "r", "p", "r"), labels)
    assert face.ask(taught(face, learner, given, wrong=mask)) == face.ask(taught(face, learner, labels))


BAD: dict[str, list[dict[str, Any]]] = {
    "fusion of votes": [
        {"votes": [["p", {"q"}, "p", "p"]]},
        {"votes": [["p", "q"]]},
        {"y": [["p"]]},
        {"y": ["p", "q"]},
    ],
    "fusion of scores": [{"votes": [[[0.0] * 4] * 2]}, {"votes": [[[np.nan] * 4] * 3]}, {"y": ["z"]}],
    "estimator": [{"X": [[np.inf] * 5]}, {"X": [[0.0]]}, {"y": [None]}, {"sample_weight": [-1.0]}],
}


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("name", BAD)
def test_bad_input_changes_nothing(name: str, learner: str) -> None:
    face = FACES[name]
    model = taught(face, learner)
    before, (rows, *_) = face.bits(model), (face.given()[:1],)
    for bad in BAD[name]:
        call = {"X" if name == "estimator" else "votes": rows, "y": ["p"]} | bad
        with pytest.raises((ValueError, TypeError)):
            model.partial_fit(**call)
        assert face.bits(model) == before
