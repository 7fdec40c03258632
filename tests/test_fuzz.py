"""Instances of any length, order and kind through every face: nothing crashes, and what must agree agrees.

Each round is made from its number, which a failure tells. LINMAX_FUZZ_SECONDS=600 goes on with further rounds for as
long; with NUMBA_BOUNDSCHECK=1 an access outside an array raises where it would otherwise read or spoil what lies there.
"""

from __future__ import annotations

import copy
import os
import re
import time
import warnings
from collections.abc import Callable
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import linmax
from linmax import Learner, VoteFusion, run, stream
from linmax.data.instances import Instances
from linmax.theory import LinearThreshold

pytestmark = pytest.mark.fuzz

SECONDS = float(os.environ.get("LINMAX_FUZZ_SECONDS", "0"))
LEARNERS = [
    "perceptron",
    "R-perceptron",
    "V(h=4, w=4, r=8, d=5)-winnow(1.3)",
    "A-balanced-winnow(1.3)",
    "vr-combine",
    "auto",
    "softmax",
    "stack(perceptron, A-winnow(1.3), fusion=winnow(1.3))",
    "naive-bayes",
    "combine(perceptron, AR(s=10, u=3)-winnow(1.3))",
    "arow(rivals=all)",
    "attributes",
    "recent-label",
    "V(h=4, w=4, r=8, d=5)-combine(R(s=10, u=2)-perceptron, AR(s=10, u=2)-winnow(1.2))",
    "robust-softmax",
    "AR(s=10, u=3)-alma(3)",
    "combine(perceptron, winnow(1.3), how=wma)",
    "balanced-winnow(1.01, thickness=0.05)",
    "votes",
    "p-norm(3)",
    "A(scale=max, fade=True)-winnow(1.3)",
    "R(s=40, u=2)-combine",
    "adagrad",
    "pa-ii(0.5, rivals=violated)",
    "ftrl",
    "S(b=0.5)R(s=10, u=3)-perceptron",
    "B(gamma=0.3)-auto",
    "B(gamma=0.3)A-winnow(1.3)",
]
OF_ATTRIBUTES = [text for text in LEARNERS if text != "votes"]
REFUSALS = re.compile(
    "needs attributes|learns from attributes|range of floats|is the limit"
)  # what is told, and ends a round
LENGTHS = (0, 1, 2, 3, 7, 8, 9, 16, 17, 40, 64, 65, 200)


def numbered(rounds: int) -> Any:
    """Play a function of a number so many times, or for SECONDS; a failure tells the number."""

    def wrap(play: Callable[[np.random.Generator, int, Path], None]) -> Callable[[Path], None]:
        def test(tmp_path: Path) -> None:
            end = time.monotonic() + SECONDS
            for number in count():
                if number >= rounds and time.monotonic() >= end:
                    return
                try:
                    play(np.random.default_rng([number, rounds]), number, tmp_path)
                except Exception as error:
                    if isinstance(error, (ValueError, OverflowError)) and REFUSALS.search(str(error)):
                        continue
                    error.add_note(f"in round {number} of {play.__name__}")
                    raise

        test.__name__, test.__doc__, test.play, test.rounds = play.__name__, play.__doc__, play, rounds
        return test

    return wrap


class Source:
    """Instances by name, in stretches of alike ones: names and classes appear, lengths and magnitudes jump."""

    def __init__(
        self, rng: np.random.Generator, kinds: tuple[str, ...], largest: float = 1e30, least: float = -1.0
    ) -> None:
        self.rng, self.kinds, self.largest, self.least = rng, kinds, largest, least
        named = rng.integers(3)
        self.names = [[i, f"name {i}", (f"name {i}" if i % 2 else i)][named] for i in range(200)]
        self.voters = [f"voter {i}" for i in range(int(rng.choice([1, 2, 5, 17])))]
        self.raters = [f"rater {i}" for i in range(int(rng.choice([1, 2, 4])))]
        self.k = int(rng.choice([2, 3, 4, 7, 8, 9, 24, 30]))
        self.classes = list("abcdefghijklmnopqrstuvwxyzABCD")[: self.k] if rng.integers(2) else list(range(self.k))
        self.left = 0

    def _turn(self) -> None:
        """A new stretch."""
        rng = self.rng
        self.left = int(rng.choice([1, 2, 4, 9, 20]))
        self.length = int(rng.choice(LENGTHS))
        self.offset = int(rng.integers(200))
        self.met = int(rng.integers(1, self.k + 1))
        self.speaking = int(rng.integers(1, len(self.voters) + 1))
        self.kind = self.kinds[rng.integers(len(self.kinds))]
        self.magnitude = int(rng.integers(6))

    def values(self, size: int) -> np.ndarray:
        """Numbers of one of several magnitudes."""
        rng, kind = self.rng, self.magnitude
        if kind == 0:
            return np.ones(size)
        if kind == 1:
            return rng.integers(int(self.least), 2, size).astype(float)
        found = rng.uniform(self.least, 1, size)
        if kind == 2:
            return found * 10.0 ** -rng.integers(0, 300, size).astype(float)
        if kind == 3:
            return np.clip(found * 10.0 ** rng.integers(0, 31), -self.largest, self.largest)
        return np.where(rng.random(size) < 0.5, 0.0, found) if kind == 4 else found

    def attributes(self) -> dict[Any, float]:
        """A dict in shuffled order."""
        around = [self.names[(self.offset + i) % 200] for i in range(self.length)]
        order = self.rng.permutation(self.length)
        return dict(zip([around[i] for i in order], self.values(self.length).tolist(), strict=True))

    def votes(self) -> dict[Any, Any]:
        """Some abstain, some are absent."""
        chosen = self.rng.permutation(len(self.voters))[: self.speaking]
        said = self.rng.integers(-1, self.met, self.speaking)
        return {self.voters[i]: (self.classes[c] if c >= 0 else None) for i, c in zip(chosen, said, strict=True)}

    def scores(self) -> dict[Any, dict[Any, float]]:
        """Some classes are not rated."""
        chosen = self.rng.permutation(len(self.raters))[: int(self.rng.integers(1, len(self.raters) + 1))]
        return {
            self.raters[i]: {
                name: float(self.rng.random()) for name in self.classes[: self.met] if self.rng.random() < 0.8
            }
            for i in chosen
        }

    def instance(self) -> tuple[dict[str, Any], Any]:
        """Keywords of an instance, and its label."""
        if self.left == 0:
            self._turn()
        self.left -= 1
        made = {part: getattr(self, part)() for part in self.kind.split("+")}
        return made, self.classes[self.rng.integers(self.met)]


def least_of(text: str) -> float:
    """The least value that a learner takes, of those up to 1."""
    return 0.0 if text == "naive-bayes" else -1.0


# No rules: once a name has a column they learn from its being there, and predict leaves out what has none.
OTHERS = ("auto", "attributes", "naive-bayes", "softmax", "robust-softmax", "votes")

KINDS = [
    ("attributes",),
    ("attributes", "attributes+votes", "votes"),
    ("attributes", "votes", "attributes+votes+scores"),
    ("votes",),
    ("scores", "votes"),
]


@numbered(3 * len(LEARNERS))
def test_a_learner_by_name(rng: np.random.Generator, number: int, folder: Path) -> None:
    """Learner: predict says what learn would have predicted, and a copy by file goes on with the same bits."""
    text = LEARNERS[number % len(LEARNERS)]
    learner = Learner(text)
    kinds = ("scores", "votes") if text == "votes" else KINDS[(number // len(LEARNERS)) % len(KINDS)]
    source = Source(rng, kinds, 1.0 if learner._bounded is not None else 1e30, least_of(text))
    if rng.integers(3) == 0:
        learner = Learner(text, classes=source.classes)
    twin: Learner | None = None
    for trial in range(int(rng.choice([12, 30, 60]))):
        instance, label = source.instance()
        met = instance.get("attributes", {}).keys() <= set(learner.attributes)
        # Where labels come in long runs, the pool for attributes predicts rows at large otherwise than the next one.
        comparable = (met and text not in ("auto", "attributes")) or text not in OTHERS
        asked = learner.predict(**instance) if rng.integers(3) == 0 else linmax
        drawn = text.startswith("B")  # learn tells what was tried, and by id what was answered
        if rng.integers(9) == 0 and (comparable or twin is None) and not drawn:
            learner.predict(**instance, id=trial)
            told = learner.learn(id=trial, label=label)
        else:
            told = learner.learn(**instance, label=label)
        assert asked in (linmax, told) or drawn or not comparable, f"{text}: predicted {asked!r}, then {told!r}"
        assert told is None or told in learner.classes
        if twin is not None:
            assert twin.learn(**instance, label=label) == told, text
        if rng.integers(15) == 0:
            learner.save(folder / "learner.linmax")
            twin = Learner.load(folder / "learner.linmax")


def arrays(rng: np.random.Generator, size: int, text: str) -> tuple[dict[str, Any], np.ndarray, int]:
    """Blocks of instances, their labels and the number of classes."""
    k = int(rng.choice([2, 3, 8, 9, 25]))
    labels = rng.integers(k, size=size)
    blocks: dict[str, Any] = {}
    kind = int(rng.integers(1, 4 if text == "votes" else 8))
    if kind & 1:
        blocks["votes"] = rng.integers(-1, k, (size, int(rng.choice([1, 3, 16, 17]))))
    if kind & 2:
        blocks["scores"] = rng.random((size, int(rng.choice([1, 2, 5])), k))
    if kind & 4:
        wide = int(rng.choice([1, 2, 7, 8, 9, 65, 200]))
        dense = np.where(
            rng.random((size, wide)) < rng.choice([0.05, 0.5, 1.0]), rng.uniform(least_of(text), 1, (size, wide)), 0.0
        )
        blocks["attributes"] = dense if rng.integers(2) else sparse.csr_matrix(dense)
    return blocks, labels, k


def cut_up(rng: np.random.Generator, size: int) -> list[int]:
    """Ends of pieces, some of them empty."""
    return [0, *np.sort(rng.integers(0, size + 1, int(rng.integers(0, 6)))).tolist(), size]


@numbered(2 * len(LEARNERS))
def test_runs_in_pieces(rng: np.random.Generator, number: int, folder: Path) -> None:
    """`run` at once and in pieces is the same, with predictions in between."""
    text = LEARNERS[number % len(LEARNERS)]
    size = int(rng.choice([1, 2, 15, 16, 17, 60, 130]))
    blocks, labels, k = arrays(rng, size, text)
    options: dict[str, Any] = {"classes": range(k), "abstain": -1, "thresholds": bool(rng.integers(2))}
    instances: Instances = linmax.instances(**blocks, **options, negated=bool(rng.integers(4) == 0))
    whole = run(text, instances, labels)
    ends = cut_up(rng, size)
    pieces = run(text, instances[: ends[1]], labels[: ends[1]])
    machine, found = pieces.model, pieces.predictions.tolist()
    for begin, end in pairwise(ends[1:]):
        machine.predict(instances[begin:end])
        found += machine.run(instances[begin:end], labels[begin:end]).predictions.tolist()
    assert found == whole.predictions.tolist(), text


@numbered(len(OF_ATTRIBUTES))
def test_a_stream(rng: np.random.Generator, number: int, folder: Path) -> None:
    """The stream model: lines of any length in batches of any size; saved and loaded it goes on with the same bits."""
    text = OF_ATTRIBUTES[number % len(OF_ATTRIBUTES)]
    model = linmax.StreamModel(
        text, scale=str(rng.choice(["max", "auto", "none"])), hash_bits=None if rng.integers(2) else 4
    )
    source = Source(rng, ("attributes",), 1.0, least_of(text))
    lines = []
    for _ in range(int(rng.choice([1, 17, 90]))):
        instance, label = source.instance()
        lines.append(
            f"c{label} |x " + " ".join(f"n{str(n).split()[-1]}:{v!r}" for n, v in instance["attributes"].items())
        )
    rows = int(rng.choice([1, 5, 16, 100]))
    twin = None
    for batch in stream(lines, format="vw", rows=rows, model=model, prefetch=False):
        if twin is None:
            model.predict(batch)
            model.learn(batch)
        if rng.integers(4) == 0:
            model.save(folder / "model.linmax")
            twin = linmax.StreamModel.load(folder / "model.linmax")
            break
    if twin is not None:
        rest = lines[len(lines) // 2 :]
        for one, other in zip(
            stream(rest, format="vw", rows=rows, model=model),
            stream(rest, format="vw", rows=rows, model=twin),
            strict=True,
        ):
            assert model.learn(one).tolist() == twin.learn(other).tolist(), text


FUSIONS = ["auto", "R-winnow(1.1)", "softmax", "vr-combine", "A-perceptron", "robust-softmax", "V-winnow(1.2)"]


@numbered(2 * len(FUSIONS))
def test_fusion(rng: np.random.Generator, number: int, folder: Path) -> None:
    """`VoteFusion` over voters that join, by name or in columns, votes or scores."""
    text = FUSIONS[number % len(FUSIONS)]
    fusion = VoteFusion(text)
    k = int(rng.choice([2, 3, 9]))
    voters = int(rng.choice([1, 2, 5, 16]))
    scored = rng.integers(3) == 0
    for _ in range(int(rng.integers(1, 6))):
        size = int(rng.choice([1, 2, 16, 33]))
        labels = rng.integers(k, size=size)
        if scored:
            fusion.partial_fit(rng.random((size, voters, k)), labels) if rng.integers(5) else fusion.fit(
                rng.random((size, voters, k)), labels
            )
            fusion.predict(rng.random((3, voters, k)))
            continue
        voters += int(rng.integers(3))
        votes = {
            f"voter {i}": [None if c < 0 else c for c in rng.integers(-1, k, size).tolist()]
            for i in rng.permutation(voters)
        }
        fusion.partial_fit(votes, labels)
        fusion.predict_proba(votes)
        if rng.integers(3) == 0:
            fusion.save(folder / "fusion.linmax")
            twin = VoteFusion.load(folder / "fusion.linmax")
            assert twin.predict(votes).tolist() == fusion.predict(votes).tolist(), text
            fusion = twin


@numbered(len(OF_ATTRIBUTES))
def test_scikit_learn(rng: np.random.Generator, number: int, folder: Path) -> None:
    """`LinearMaxClassifier` by fit and partial_fit, dense and sparse, classes that join."""
    text = OF_ATTRIBUTES[number % len(OF_ATTRIBUTES)]
    wide = int(rng.choice([1, 2, 8, 65, 200]))
    model = linmax.LinearMaxClassifier(text, max_iter=int(rng.integers(1, 3)), random_state=0)
    most = int(rng.choice([2, 3, 9, 25]))
    for step in range(int(rng.integers(1, 5))):
        size = int(rng.choice([2, 3, 16, 40]))
        X = np.where(rng.random((size, wide)) < 0.5, rng.uniform(least_of(text), 1, (size, wide)), 0.0) * 10.0 ** int(
            rng.integers(-30, 31)
        )
        y = np.concatenate([[0, 1], rng.integers(int(rng.integers(2, most + 1)), size=size - 2)])
        given = sparse.csr_matrix(X) if rng.integers(2) else X
        weight = rng.integers(0, 3, size) if rng.integers(3) == 0 else None
        if weight is not None:
            weight[:2] = 1
        if step == 0 and rng.integers(2):
            model.fit(given, y, sample_weight=weight)
        else:
            model.partial_fit(given, y, sample_weight=weight)
        model.predict(X)
        if rng.integers(3) == 0:
            model = copy.deepcopy(model)
    assert model.decision_function(X).shape[0] == size


@numbered(6)
def test_scikit_learn_fusion(rng: np.random.Generator, number: int, folder: Path) -> None:
    """`FusionClassifier` over models, with and without the attributes."""
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import SGDClassifier
    from sklearn.naive_bayes import GaussianNB

    models = [("prior", DummyClassifier()), ("bayes", GaussianNB()), ("linear", SGDClassifier(random_state=0))]
    model = linmax.FusionClassifier(
        models[: int(rng.integers(1, 4))], FUSIONS[number % len(FUSIONS)], passthrough=bool(number % 2), cv=2
    )
    X, y = rng.uniform(-1, 1, (40, int(rng.choice([1, 9, 40])))), np.arange(40) % int(rng.choice([2, 3, 9]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "fold . of cv holds out all samples", RuntimeWarning)
        if rng.integers(2):
            model.fit(X, y)
        for begin in range(0, 40, 13):
            model.partial_fit(X[begin : begin + 13], y[begin : begin + 13], classes=np.unique(y))
    assert model.predict(X).shape == (40,)


@numbered(len(OF_ATTRIBUTES))
def test_river(rng: np.random.Generator, number: int, folder: Path) -> None:
    """River's classes: dicts of any length, a copy in between."""
    pytest.importorskip("river")
    from river import naive_bayes

    from linmax import river

    text = OF_ATTRIBUTES[number % len(OF_ATTRIBUTES)]
    source = Source(rng, ("attributes",), 1e30, least_of(text))
    model: Any = river.LinearMaxClassifier(text)
    if number % 5 == 4:
        model = river.FusionClassifier([naive_bayes.BernoulliNB(), model], "R-perceptron")
    for _ in range(int(rng.choice([5, 25, 50]))):
        instance, label = source.instance()
        x = instance["attributes"]
        model.predict_one(x)
        model.learn_one(x, label)
        model.predict_proba_one(x)
        if rng.integers(20) == 0:
            model = copy.deepcopy(model)


THRESHOLDS = [
    "perceptron",
    "winnow(2, threshold=4)",
    "elimination",
    "balanced-winnow(1.3)",
    "p-norm(3)",
    "sasb",
    "winnow(1.5, thickness=0.25, threshold=1.5, demotion=0)",
]


@pytest.mark.filterwarnings("ignore:.*no literal left")  # of elimination, whose labels these are not
@numbered(2 * len(THRESHOLDS))
def test_two_classes(rng: np.random.Generator, number: int, folder: Path) -> None:
    """`LinearThreshold` on columns, or on names that join."""
    text = THRESHOLDS[number % len(THRESHOLDS)]
    learner = LinearThreshold(text, labels=(0, 1), constant=bool(rng.integers(2)))
    wide = int(rng.choice([1, 2, 8, 65, 200]))
    named = rng.integers(2) == 0
    source = Source(rng, ("attributes",), 1.0)
    for _ in range(int(rng.integers(1, 12))):
        size = int(rng.choice([1, 2, 17]))
        given: Any = rng.integers(0, 2, (size, wide)).astype(float)
        if named:
            given = [
                {name: float(value != 0) for name, value in source.instance()[0]["attributes"].items()}
                for _ in range(size)
            ]
        trace = learner.run(given, rng.integers(2, size=size))
        assert len(trace) == size
        assert learner.predict(given).shape == (size,)
