"""One learner, many faces: `Learner`, streams and fusion against `run` and machines that grow, trial by trial.

Voters, raters, attributes and classes appear over time, voters name classes that have had no label yet, and dicts come
in any order. Whatever the face, predictions, mistakes, updates and weights are the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse

import linmax
from linmax import Learner, StreamModel, VoteFusion, instances, pool, run
from linmax.data.instances import Instances
from linmax.engine.engine import Settings
from linmax.engine.notation import as_learner
from linmax.engine.pools import POOLS
from linmax.jit.compiling import JIT
from linmax.models.model import Model

# The weight that a sub-expert starts with is seen by a norm: these depend on how many there are at a trial.
COUNTING = [
    "winnow(1.5, thickness=0.05)",
    "A(scale=l1)-winnow(1.3)",
    "A(scale=max)-winnow(1.3)",
    "V(h=4, w=4, r=8, d=5)-winnow(1.3)",
    "V(h=4, w=4, r=8, d=5, scale=l1)A-winnow(1.3)",
    "V(h=4, w=4, r=8, d=5)-combine(R(s=10, u=2)-perceptron, AR(s=10, u=2)-winnow(1.2))",
    "combine(perceptron, A-winnow(1.3), how=weighted)",
    "stack(perceptron, A-winnow(1.3), fusion=winnow(1.3))",
    "vr-combine",
]
OTHERS = [
    "perceptron",
    "winnow(1.3)",
    "balanced-winnow(1.3)",
    "p-norm(3)",
    "alma(2.5, alpha=0.9)",
    "arow",
    "pa-ii(0.5, rivals=violated)",
    "arow(rivals=all)",
    "A-perceptron",
    "A-winnow(1.3)",
    "R(s=20, u=3)-perceptron",
    "R(s=10, u=3)-winnow(1.3)",
    "AR(s=10, u=3)-alma(3)",
    "V(h=4, w=4, r=8, d=5)-perceptron",
    "V(h=4, w=4, r=8, d=5)AR-perceptron",
    "V(h=4, saved=random)R(s=20, u=3)-perceptron",
    "combine(R-perceptron, A-pa)",
    "combine(perceptron, winnow(1.3), how=wma)",
    "recent-label",
    "S(b=0.5)R(s=20, u=3)-perceptron",
    "B(gamma=0.4)R(s=20, u=3)-perceptron",
]
KINDS = ["votes", "scores", "attributes", "mixed"]


class Trial(NamedTuple):
    """One instance by name, and its label."""

    instance: dict[str, dict[Any, Any]]
    label: str


class Story:
    """Trials in which everything appears little by little, the names of each block in the order of appearance."""

    def __init__(self, seed: int, kind: str, size: int, growing: bool = True) -> None:
        rng = np.random.default_rng(seed)
        classes = [str(name) for name in rng.permutation(list("abcdef"))]
        self.trials: list[Trial] = []
        for t in range(size):
            part = min(1.0, 0.2 + t / size) if growing else 1.0
            label = str(rng.choice(classes[: 1 + int(5 * part)]))
            instance: dict[str, dict[Any, Any]] = {}
            if kind in ("votes", "mixed"):
                said = {
                    f"v{i}": label if rng.random() < 0.5 else str(rng.choice(classes)) for i in range(int(6 * part))
                }
                instance["votes"] = _shuffled(said, rng, 0.8 if growing else 1.0)
            if kind in ("scores", "mixed"):
                instance["scores"] = {
                    name: {str(c): float(rng.random()) for c in rng.permutation(classes)[: rng.integers(2, 6)]}
                    for name in _shuffled(
                        dict.fromkeys(f"r{i}" for i in range(1 + int(3 * part))), rng, 0.8 if growing else 1.0
                    )
                }
            if kind in ("attributes", "mixed"):
                numbers = {f"a{i}": float(rng.uniform(-1, 1)) for i in range(int(9 * part))}
                instance["attributes"] = _shuffled(numbers, rng, 0.7 if growing else 1.0)
            self.trials.append(Trial(instance, label))

    def __len__(self) -> int:
        return len(self.trials)

    @property
    def labels(self) -> list[str]:
        return [trial.label for trial in self.trials]

    def names(self, block: str, end: int) -> dict[Any, int]:
        """The column of each name that the first trials have met."""
        met = dict.fromkeys(name for trial in self.trials[:end] for name in trial.instance.get(block, {}))
        return {name: place for place, name in enumerate(met)}

    def classes(self, end: int) -> list[str]:
        """All classes that the first trials have named."""
        named: list[str] = []
        for instance, label in self.trials[:end]:
            named += [label, *instance.get("votes", {}).values()]
            named += [c for row in instance.get("scores", {}).values() for c in row]
        return list(dict.fromkeys(named))

    def arrays(self, begin: int, end: int) -> Instances:
        """Trials begin..end in the columns that have been met by the end."""
        trials, classes, given = self.trials[begin:end], self.classes(end), dict[str, Any]()
        if voters := self.names("votes", end):
            votes = np.full((len(trials), len(voters)), None, dtype=object)
            for row, (instance, _) in zip(votes, trials, strict=True):
                for name, choice in instance.get("votes", {}).items():
                    row[voters[name]] = choice
            given["votes"] = votes
        if raters := self.names("scores", end):
            scores = np.zeros((len(trials), len(raters), len(classes)))
            for table, (instance, _) in zip(scores, trials, strict=True):
                for name, row in instance.get("scores", {}).items():
                    for choice, value in row.items():
                        table[raters[name], classes.index(choice)] = value
            given["scores"] = scores
        if attributes := self.names("attributes", end):
            table = np.zeros((len(trials), len(attributes)))
            for row, (instance, _) in zip(table, trials, strict=True):
                for name, value in instance.get("attributes", {}).items():
                    row[attributes[name]] = value
            given["attributes"] = sparse.csr_array(table)
        return instances(**given, classes=classes)


def _shuffled(named: dict[Any, Any], rng: np.random.Generator, share: float) -> dict[Any, Any]:
    """Some of these, in any order; one at least."""
    names = list(named)
    kept = max(1, int(rng.binomial(len(names), share)))
    return {names[i]: named[names[i]] for i in rng.permutation(len(names))[:kept]}


def assert_same_weights(learner: Learner, machine: Model, story: Story) -> None:
    try:
        expected, found = machine.weights.arrays, learner.weights
    except ValueError:  # no single weight vector
        return
    single = str(learner.learner) in ("auto", "attributes")  # the precision of its members
    near = {"rtol": 1e-4, "atol": 1e-5} if single else {"rtol": 1e-7, "atol": 1e-9}
    np.testing.assert_allclose(list(found["voters"].values()), expected.voters, **near)
    np.testing.assert_allclose(list(found["raters"].values()), expected.raters, **near)
    for row, weights in zip(expected.attributes, found["attributes"].values(), strict=True):
        np.testing.assert_allclose([weights[name] for name in machine.known], row[: len(machine.known)], **near)
    thresholds = [found["thresholds"][name] for name in machine.known]
    np.testing.assert_allclose(thresholds, expected.thresholds[: len(machine.known)], **near)
    assert list(found["voters"]) == list(story.names("votes", len(story)))


def taught(learner: Learner, story: Story) -> list[Any]:
    return [learner.learn(**instance, label=label) for instance, label in story.trials]


SIZE = 60 if JIT else 12


@pytest.mark.small
def test_a_class_that_a_vote_named_before_a_label_did() -> None:
    learner = Learner("R(s=20, u=3)-perceptron")
    said = [learner.learn(votes={"v": 1}, label=0), learner.learn(votes={"v": 0}, label=1)]
    trace = run("R(s=20, u=3)-perceptron", instances(votes=[[1], [0]]), [0, 1], discover=True)
    assert said == trace.predictions.tolist() == [1, 1]
    assert learner.updates == trace.model.updates == 2
    assert list(learner.weights["voters"].values()) == list(trace.model.weights["voters"].values()) == [-2.0]
    papers = run("R(s=20, u=3)-perceptron", instances(votes=[[1], [0]]), [0, 1], discover="labels")
    assert papers.predictions.tolist() == [None, 0]


@pytest.mark.small
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", OTHERS)
def test_a_learner_is_a_run(text: str, kind: str) -> None:
    for seed in range(3 if JIT else 1):
        story = Story(seed, kind, SIZE)
        learner = Learner(text)
        trace = run(text, story.arrays(0, len(story)), story.labels, discover=True)
        assert taught(learner, story) == trace.predictions.tolist()
        assert learner.mistakes == trace.mistakes[-1]
        assert learner.updates == trace.model.updates
        assert_same_weights(learner, trace.model, story)


def grown(text: str, story: Story) -> tuple[Model, list[Any]]:
    """What a machine predicts that is given the columns and classes as they appear."""
    first = story.arrays(0, 1)
    machine = Model(text, first.layout, (), Settings(discover=True, by_votes=True))
    said = []
    for t, label in enumerate(story.labels):
        said += machine.run(story.arrays(t, t + 1), [label], grow=True).predictions.tolist()
    return machine, said


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [*OTHERS[::4], *COUNTING, "auto"])
def test_a_learner_is_a_machine_that_grows(text: str, kind: str) -> None:
    for seed in range(2 if JIT else 1):
        story = Story(seed, kind, SIZE)
        learner = Learner(text)
        machine, said = grown(text, story)
        assert taught(learner, story) == said
        assert learner.mistakes == sum(a != b for a, b in zip(said, story.labels, strict=True))
        assert learner.updates == machine.updates
        assert_same_weights(learner, machine, story)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", COUNTING)
def test_learner_with_fixed_names_equals_run(text: str, kind: str) -> None:
    story = Story(0, kind, SIZE, growing=False)
    learner = Learner(text, classes=story.classes(len(story)))
    trace = run(text, story.arrays(0, len(story)), story.labels)
    assert taught(learner, story) == trace.predictions.tolist()
    assert learner.mistakes == trace.mistakes[-1]
    assert learner.updates == trace.model.updates
    assert_same_weights(learner, trace.model, story)


WHOLE = ["auto", "attributes", "votes", "naive-bayes", "softmax", "robust-softmax", "combine(softmax, winnow(1.3))"]
EVERY = [*OTHERS, *COUNTING, *(pool(text) if text in POOLS else text for text in WHOLE)]
OF_ATTRIBUTES = [learner for learner in EVERY if str(learner) != "votes"]


def counted(story: Story) -> list[Trial]:
    """The trials with attributes >= 0, as naive Bayes needs them, in the order of their columns."""
    columns = story.names("attributes", len(story))
    trials = []
    for instance, label in story.trials:
        given = dict(instance)
        if "attributes" in instance:
            numbers = sorted(instance["attributes"].items(), key=lambda item: columns[item[0]])
            given["attributes"] = {name: abs(value) for name, value in numbers}
        trials.append(Trial(given, label))
    return trials


def told_apart(scores: dict[Any, float], first: Any, second: Any) -> bool:
    """Whether more than rounding is between two classes."""
    return abs(scores[first] - scores[second]) > 1e-12 * max(map(abs, scores.values()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("learner", EVERY, ids=str)
def test_predict_equals_learn(learner: Any, kind: str) -> None:
    """Whoever is new has the same weight for both: before the first label, after it, and when a class is new."""
    story = Story(4, kind, SIZE // 2)
    for classes in None, story.classes(len(story)):
        asked, silent = Learner(learner, classes=classes), Learner(learner, classes=classes)
        for t, (instance, label) in enumerate(counted(story)):
            if "attributes" in instance and str(learner) == "votes":
                with pytest.raises(ValueError, match="votes learns from votes and scores"):
                    asked.learn(**instance, label=label)
                return
            answers = asked.explore if str(asked.learner).startswith("B") else asked.predict
            predicted, scores = answers(**instance), asked.scores(**instance)
            assert (predicted is None) == (t == 0 and classes is None and "votes" not in instance)
            if "attributes" not in instance and str(asked.learner) in ("attributes", "naive-bayes(0.1)"):
                with pytest.raises(ValueError, match="attributes, and these instances have none"):
                    asked.learn(**instance, label=label)
                return
            learned = asked.learn(**instance, label=label)
            assert learned == silent.learn(**instance, label=label), t
            if kind not in ("attributes", "mixed") or str(asked.learner) not in POOLS:  # recent labels vote in streams
                assert predicted == learned or not told_apart(scores, predicted, learned), t
        arrays, others = asked.state()[1], silent.state()[1]
        assert arrays.keys() == others.keys()
        for name, array in arrays.items():
            assert array.tobytes() == others[name].tobytes(), f"asking left a trace in {name}"


# -- streams ------------------------------------------------------------------------------------------------------


def line_of(instance: dict[str, dict[Any, Any]], label: str = "") -> str:
    return f"{label} |w " + " ".join(f"{name}:{value!r}" for name, value in instance["attributes"].items())


@pytest.mark.parametrize("learner", OF_ATTRIBUTES, ids=str)
def test_a_model_of_streams_is_a_learner(learner: Any) -> None:
    """Row by row it predicts what a `Learner` does, also for names not met before."""
    story = Story(6, "attributes", SIZE)
    one, model = Learner(learner), StreamModel(learner, scale="none")
    for instance, label in counted(story):
        (unlabelled,) = linmax.stream([line_of(instance)], model=model)
        predicted, scores = one.predict(**instance), one.scores(**instance)
        assert model.predict(unlabelled).tolist() == [predicted]
        np.testing.assert_allclose(model.scores(unlabelled)[0], [scores[c] for c in model.classes], 1e-7, 1e-9)
        (batch,) = linmax.stream([line_of(instance, label)], model=model)
        assert model.learn(batch).tolist() == [one.learn(**instance, label=label)]
    assert model.trials == one.trials
    assert model.updates == one.updates


@pytest.mark.parametrize("learner", OF_ATTRIBUTES, ids=str)
def test_a_model_of_streams_is_asked_about_names_never_met(learner: Any) -> None:
    model = StreamModel(learner, scale="none")
    for batch in linmax.stream([f"{'ab'[i % 2]} |w x:0.5 y{i % 2}:0.25" for i in range(8)], model=model):
        model.learn(batch)
    before = {name: array.copy() for name, array in model._current_model.engine.arrays.items()}
    strange = " ".join(f"n{i}:0.5" for i in range(3000))
    (batch,) = linmax.stream([f"|w x:0.5 y1:1 {strange}", "|w y1:0.5"], model=model)
    assert np.isfinite(model.scores(batch)).all()
    assert np.isfinite(model.predict_proba(batch)).all()
    assert model.predict(batch)[1] == "b"
    after = model._current_model.engine.arrays
    assert before.keys() == after.keys()
    assert all(array.tobytes() == after[name].tobytes() for name, array in before.items())


# -- fusion, River, the service -----------------------------------------------------------------------------------

VOTING = [learner for learner in EVERY if str(as_learner(learner)) not in ("attributes", "naive-bayes(0.1)")]


@pytest.mark.parametrize("learner", VOTING, ids=str)
def test_a_fusion_is_a_machine_that_grows(learner: Any) -> None:
    """Trial by trial: voters join, and votes name classes before labels do."""
    story = Story(8, "votes", SIZE // 2)
    fusion, machine, wrong = VoteFusion(learner), None, 0
    for t, (instance, label) in enumerate(story.trials):
        voters = story.names("votes", t + 1)
        instances = replace(story.arrays(t, t + 1), fixed=False)
        if machine is None:
            machine = Model(learner, instances.layout, [], Settings(discover=True, by_votes=True))
        wrong += int(machine.run(instances, [label], grow=True).wrong.sum())
        fusion.partial_fit({name: [instance["votes"].get(name)] for name in voters}, [label])
    assert machine is not None
    assert fusion.report().online.mistakes == wrong
    assert fusion._state.model.updates == machine.updates
    assert fusion._state.model.known == machine.known
    assert fusion.classes_.tolist() == sorted(machine.classes)


@pytest.mark.small
@pytest.mark.parametrize("discover", ["votes", "labels"])
@pytest.mark.parametrize("learner", ["auto", "winnow(1.3)", "AR-perceptron", "combine(softmax, winnow(1.3))"])
def test_classes_that_votes_name_in_every_face_and_cut(learner: str, discover: str) -> None:
    """Many classes, most of them first named by a vote: `run`, `Learner` and fusion by any cut say the same."""
    rng, size = np.random.default_rng(3), 60 if JIT else 10
    labels = [f"c{c}" for c in rng.integers(0, 30, size)]
    votes = [[label if rng.random() < 0.8 else f"c{rng.integers(0, 30)}" for _ in range(5)] for label in labels]
    trace = run(learner, instances(votes=votes), labels, discover=discover)
    one = Learner(learner, discover=discover)
    rows = [{str(i): vote for i, vote in enumerate(row)} for row in votes]
    assert [one.learn(votes=row, label=y) for row, y in zip(rows, labels, strict=True)] == trace.predictions.tolist()
    assert one._current_model.known == trace.model.known
    for cut in 1, 7, size:
        fusion = VoteFusion(learner, discover=discover)
        for t in range(0, size, cut):
            fusion.partial_fit(votes[t : t + cut], labels[t : t + cut])
        assert fusion.report().online.mistakes == trace.mistakes[-1]
        assert fusion._state.model.known == one._current_model.known
    whole = VoteFusion(learner, discover=discover).fit(votes, labels)
    assert whole.predict(votes).tolist() == fusion.predict(votes).tolist()
    right = np.mean(trace.predictions == np.array(labels))
    if JIT:  # too few rows otherwise
        assert right > 0.9 if discover == "votes" else right < 0.7


@pytest.mark.parametrize("learner", OF_ATTRIBUTES, ids=str)
def test_river_classifiers_answer_before_they_learn(learner: Any) -> None:
    river = pytest.importorskip("linmax.river", reason="River is the extra 'river'")
    model = river.LinearMaxClassifier(learner, scale="none")
    one = Learner(learner)
    columns = [f"a{i}" for i in range(9)]
    assert model.predict_one(dict.fromkeys(columns, 0.5)) is None
    for instance, label in counted(Story(3, "attributes", SIZE // 2)):
        numbers = {name: instance["attributes"][name] for name in columns if name in instance["attributes"]}
        predicted = model.predict_one(numbers)
        assert predicted == one.predict(numbers)
        model.learn_one(numbers, label)
        one.learn(numbers, label=label)
    assert model.mistakes == one.mistakes
