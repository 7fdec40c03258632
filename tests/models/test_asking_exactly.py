"""`ask` without tolerance: nobody is asked any more only where no votes of those left could change the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import linmax

LEARNERS = ["perceptron", "A-winnow(1.2)"]
VOTERS, TRIALS = [f"voter {i}" for i in range(6)], 40


def table_of(random: np.random.Generator, classes: list[str], trials: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Voters who confuse classes, each in its own way, and all otherwise in the last fifth; some votes are missing."""
    k, last = len(classes), np.arange(trials) >= 0.8 * trials
    labels, table = random.integers(k, size=trials), {}
    for name in VOTERS:
        habits = random.dirichlet(np.full(k, 0.3), size=(2, k))
        sound = random.random((2, k)) < 0.6
        habits[sound] = 0.3 * habits[sound] + 0.7 * np.broadcast_to(np.eye(k), (2, k, k))[sound]
        votes = [random.choice(k, p=habits[int(late), c]) for late, c in zip(last, labels, strict=True)]
        table[name] = np.where(random.random(trials) < 0.1, None, np.array(classes, dtype=object)[votes])
    return table, np.array(classes)[labels]


def questions(random: np.random.Generator, classes: list[str], count: int) -> Iterator[dict[str, Any]]:
    """Rows of votes, some of them for one class by most."""
    for _ in range(count):
        leaning = random.uniform(0.0, 0.9)
        said = [classes[0] if random.random() < leaning else random.choice([*classes, ""]) for _ in VOTERS]
        yield {name: vote or None for name, vote in zip(VOTERS, said, strict=True)}


def changed(heard: dict[str, Any], options: list[Any], predict: Callable[[dict[str, list[Any]]], list[Any]]) -> bool:
    """Whether any votes of those left change the answer."""
    left = [name for name in VOTERS if name not in heard]
    rest = list(product([None, *options], repeat=len(left)))
    rows = {name: [vote] * len(rest) for name, vote in heard.items()}
    rows |= {name: [votes[i] for votes in rest] for i, name in enumerate(left)}
    return len(set(predict(rows))) > 1


def stops(ask: Callable[[dict[str, Any]], Any], row: dict[str, Any]) -> dict[str, Any]:
    heard: dict[str, Any] = {}
    while (voter := ask(heard)) is not None:
        heard[voter] = row[voter]
    return heard


def calls_of(fusion: linmax.VoteFusion, row: dict[str, Any], options: list[Any], **side: str) -> int:
    """How many were asked, if that was enough."""
    heard = stops(lambda told: fusion.ask(side | told, tolerance=0), row)
    assert not changed(side | heard, options, lambda rows: fusion.predict(rows).tolist())
    return len(heard)


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("learner", LEARNERS)
def test_no_votes_of_those_left_change_the_answer(learner: str, fixed: bool) -> None:
    calls = []
    for seed in range(4):
        random, classes = np.random.default_rng(seed), list("abc")[: 2 + seed % 2]
        table, labels = table_of(random, classes, TRIALS)
        fusion = linmax.VoteFusion(learner, classes=classes if fixed else None, thresholds=seed < 3).fit(table, labels)
        options = classes if fixed else [*classes, "new", "newer"]
        calls += [calls_of(fusion, row, options) for row in questions(random, options[:4], 5)]
    assert np.mean(calls) < 5


@pytest.mark.parametrize("learner", ["auto", "stack(perceptron, auto)"])
def test_a_learner_without_a_single_weight_vector_asks_all(learner: str) -> None:
    random = np.random.default_rng(1)
    table, labels = table_of(random, ["a", "b"], TRIALS)
    fusion = linmax.VoteFusion(learner, classes=["a", "b"]).fit(table, labels)
    assert {calls_of(fusion, row, ["a", "b"]) for row in questions(random, ["a", "b"], 3)} == {len(VOTERS)}


def test_side_columns_and_trials_without_labels() -> None:
    for seed in range(3):
        random = np.random.default_rng(seed)
        table, labels = table_of(random, list("abc"), 120)
        table["subject"] = np.array(["x", "y"])[random.integers(2, size=120)]
        told = labels.astype(object)
        told[:40] = None
        fusion = linmax.VoteFusion("perceptron", classes=list("abc"), by="subject").fit(table, told)
        for row in questions(random, list("abc"), 5):
            calls_of(fusion, row, list("abc"), subject=str(random.choice(["x", "y", "z"])))


def calls_of_learner(learner: linmax.Learner, row: dict[str, Any], options: list[Any], **block: Any) -> int:
    """The same of a learner."""
    heard = stops(lambda told: learner.ask(told, **block, tolerance=0), row)

    def predict(rows: dict[str, list[Any]]) -> list[Any]:
        told = [dict(zip(rows, said, strict=True)) for said in zip(*rows.values(), strict=True)]
        return [learner.predict(**block, votes={n: v for n, v in said.items() if v is not None}) for said in told]

    assert not changed(heard, options, predict)
    return len(heard)


@pytest.mark.parametrize("attributes", [False, True])
def test_a_learner_asks_exactly(attributes: bool) -> None:
    random, calls = np.random.default_rng(5), []

    def given(label: str | None) -> dict[str, Any]:
        return {"attributes": {"x": (label == "a") + random.normal(), "y": 1.0}} if attributes else {}

    for classes, more in (["a", "b"], None), (["a", "b", "c"], None), (["a", "b"], "new"):
        table, labels = table_of(random, classes, TRIALS)
        taught = linmax.Learner("perceptron", classes=classes if more is None else None)
        for t, label in enumerate(labels.tolist()):
            said = {name: votes[t] for name, votes in table.items() if votes[t] is not None}
            taught.learn(**given(label), votes=said, label=label)
        options = classes if more is None else [*classes, more]
        rows = list(questions(random, classes, 4))
        calls += [calls_of_learner(taught, row, options, **given(row[VOTERS[0]])) for row in rows]
    assert np.mean(calls) < 5


def test_candidates_are_asked_about_exactly() -> None:
    random = np.random.default_rng(2)
    learner = linmax.Learner("perceptron")
    for t in range(60):
        names = [f"{t}a", f"{t}b", f"{t}c"]
        right = random.random(len(VOTERS)) < 0.8 - 0.15 * np.arange(len(VOTERS))
        said = {name: names[0] if right[i] else str(random.choice(names)) for i, name in enumerate(VOTERS)}
        learner.learn(candidates=names, votes=said, label=names[0])
    rows = questions(random, ["x", "y"], 8)
    assert np.mean([calls_of_learner(learner, row, ["x", "y"], candidates=["x", "y"]) for row in rows]) < 5
