"""Asking through `Learner` and `VoteFusion`: the same questions, answers and refusals for the same trials."""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmax

Row = dict[str, Any]


def jury(seed: int, size: int, voters: int = 6, classes: str = "abc") -> tuple[list[Row], list[str]]:
    """Rows of voters of different skill, who abstain now and then; some rows name a class of their own."""
    random = np.random.default_rng(seed)
    skill, shy = random.uniform(0.35, 0.9, voters), random.choice([0.0, 0.2], voters)
    labels = random.choice(list(classes), size).tolist()
    rows = []
    for label in labels:
        said = np.where(random.random(voters) < skill, label, random.choice(list(classes), voters)).tolist()
        silent = random.random(voters) < shy
        rows.append({f"v{i}": None if silent[i] else said[i] for i in range(voters)})
    return rows, labels


def bits(learner: linmax.Learner | linmax.VoteFusion) -> tuple[str, dict[str, bytes]]:
    """All that it is."""
    description, arrays = learner.state()
    return json.dumps(description), {name: array.tobytes() for name, array in arrays.items()}


class Both:
    """A fusion and a learner side by side."""

    def __init__(self, learner: str = "auto", **options: Any) -> None:
        self.fusion = linmax.VoteFusion(learner, **options)
        self.learner = linmax.Learner(learner, **options)

    def learn(self, votes: Row, label: Any) -> None:
        self.fusion.partial_fit({name: [vote] for name, vote in votes.items()}, [label])
        self.learner.learn(votes=votes, label=label)

    def ask(self, votes: Row, **options: Any) -> str | None:
        found = self.fusion.ask(votes, **options)
        assert self.learner.ask(votes, **options) == found
        return found

    def asked(self, row: Row, **options: Any) -> Row:
        """The votes of those asked, one by one."""
        heard: Row = {}
        while (voter := self.ask(heard, **options)) is not None:
            heard[voter] = row[voter]
        return heard

    def same(self, votes: Row) -> None:
        """The same answer, scores up to a factor, and probabilities."""
        given = {name: [vote] for name, vote in votes.items()}
        assert self.learner.predict(votes=votes) == self.fusion.predict(given)[0]
        found = self.learner.predict_proba(votes=votes)
        shares = dict(zip(self.fusion.classes_.tolist(), self.fusion.predict_proba(given)[0].tolist(), strict=True))
        assert {name: found[name] for name in shares} == pytest.approx(shares, abs=1e-12)  # without who is new here


def trials(seed: int, size: int) -> Iterator[tuple[int, Row, str]]:
    rows, labels = jury(seed, size)
    for t, (row, label) in enumerate(zip(rows, labels, strict=True)):
        if t in (40, 41, 90):  # a class that nobody has named before, by votes or by the label
            row, label = row | ({"v1": "new"} if t < 90 else {}), "new" if t < 90 else "last"
        yield t, row, label


@pytest.mark.parametrize("learner", ["auto", "winnow(1.2)", "combine(perceptron, alma(2))"])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_questions_and_answers(learner: str, seed: int) -> None:
    both, options = Both(learner), {"tolerance": 0.02, "explore": 0.2}
    calls = []
    for t, row, label in trials(seed, 130):
        if t < 30 or t % 25 == 0:
            both.learn(row, label)
            continue
        heard = both.asked(row, **options)
        calls.append(len(heard))
        both.same(heard)
        both.learn(heard, label)
        if t == 70:
            both.same(row)
            assert both.learner.panel().to_dict() == both.fusion.panel().to_dict()
    assert both.learner.trials == 130
    assert np.mean(calls) < 6
    assert both.learner.panel().to_dict() == both.fusion.panel().to_dict()


def test_costs_change_the_questions_and_both_change_them_alike() -> None:
    both = Both()
    rows, labels = jury(5, 140)
    for row, label in zip(rows[:60], labels[:60], strict=True):
        both.learn(row, label)
    dear = {f"v{i}": float(1 + 9 * (i % 2)) for i in range(6)}
    spent = []
    for t, (row, label) in enumerate(zip(rows[60:], labels[60:], strict=True)):
        heard = both.asked(
            row, costs=dear if t % 40 < 20 else None, tolerance=(0.01, 0.05, 0.0)[t % 3 if t > 60 else 0]
        )
        spent.append(sum(dear[name] for name in heard))
        both.learn(heard, label)
    assert np.mean(spent[:20]) < np.mean(spent[20:40])
    assert both.learner.panel(dear).to_dict() == both.fusion.panel(dear).to_dict()


def test_asking_in_between_changes_nothing() -> None:
    """The few follow from the trials learned: who looks at them, and when, leaves no trace."""
    rows, labels = jury(3, 110)
    quiet, curious = linmax.Learner(), linmax.Learner()
    for t, (row, label) in enumerate(zip(rows, labels, strict=True)):
        for learner in quiet, curious:
            if t == 30:
                learner.ask({}, tolerance=0.02)
        if t > 30:
            for votes in ({}, dict(list(row.items())[:2]), {"v0": None}):
                curious.ask(votes, tolerance=0.02)
                curious.predict_proba(votes=votes)
            curious.panel()
        votes = row if t < 30 or t % 9 == 0 else {name: row[name] for name in list(row)[: 1 + t % 3]}
        quiet.learn(votes=votes, label=label)
        curious.learn(votes=votes, label=label)
    assert bits(quiet) == bits(curious)


def test_file_and_pickle_resume_alike(tmp_path: Path) -> None:
    rows, labels = jury(4, 100)
    learner = linmax.Learner()
    for t, (row, label) in enumerate(zip(rows, labels, strict=True)):
        votes = row
        if t > 40:
            votes = {}
            while (voter := learner.ask(votes, tolerance=0.02)) is not None:
                votes[voter] = row[voter]
        if t in (50, 70):
            learner.save(tmp_path / "learner")
            learner = linmax.Learner.load(tmp_path / "learner")
            for other in (pickle.loads(pickle.dumps(learner)), learner):
                assert other.ask({}, tolerance=0.02) == learner.ask({}, tolerance=0.02)
        learner.learn(votes=votes, label=label)
    once = linmax.Learner()
    for t, (row, label) in enumerate(zip(rows, labels, strict=True)):
        votes = row
        if t > 40:
            votes = {}
            while (voter := once.ask(votes, tolerance=0.02)) is not None:
                votes[voter] = row[voter]
        once.learn(votes=votes, label=label)
    assert bits(once) == bits(learner)


def test_abstaining_differs_from_absent() -> None:
    learner = linmax.Learner("winnow(1.2)")
    learner.learn(votes={"ann": None, "bob": "a"}, label="a")
    learner.learn(votes={"bob": "b"}, label="b")
    learner.learn(votes=["a", None], label="a")  # voters 0 and 1
    assert learner.voters == ["ann", "bob", 0, 1]
    assert learner._asked().recent.ever.tolist() == [1, 2, 1, 1]
    assert learner.predict(votes={"bob": "b"}, id=1) == "b"
    assert learner.predict(votes={"ann": None, "bob": "b"}, id=2) == "b"
    for id in 1, 2:
        learner.learn(id=id, label="b")
    assert learner._asked().recent.ever.tolist() == [2, 4, 1, 1]


def test_labels_that_came_late_or_are_wrong_are_kept_as_any() -> None:
    rows, labels = jury(6, 60)
    both = Both(classes=list("abc"))
    for t, (row, label) in enumerate(zip(rows, labels, strict=True)):
        if t % 4 == 0:
            both.learner.predict(votes=row, id=t)
            both.learner.learn(id=t, label=label)
            both.fusion.partial_fit({name: [vote] for name, vote in row.items()}, [label])
        elif t % 4 == 1:
            wrong = "b" if label == "a" else "a"
            both.fusion.partial_fit({name: [vote] for name, vote in row.items()}, [wrong], wrong=[True])
            both.learner.learn(votes=row, wrong=wrong)
        elif t % 4 == 2:
            both.learn(row, None)
        else:
            both.learn(row, label)
    assert both.learner.panel().to_dict() == both.fusion.panel().to_dict()
    both.asked(rows[0], tolerance=0.02)


@pytest.mark.small
def test_all_are_asked_before_there_is_something_to_choose_by() -> None:
    rows, labels = jury(7, 60)
    both, calls = Both("winnow(1.2)"), []
    both.learn(rows[0], labels[0])
    for row, label in zip(rows[1:], labels[1:], strict=True):
        heard = both.asked(row, tolerance=0.2, explore=0.0)
        calls.append(len(heard))
        both.learn(heard, label)
    assert calls[:49] == [6] * 49
    assert max(calls[49:]) < 6


def some(learner: linmax.Learner, count: int = 12) -> linmax.Learner:
    for row, label in zip(*jury(1, count), strict=True):
        learner.learn(votes=row, label=label)
    return learner


def some_fusion() -> linmax.VoteFusion:
    rows, labels = jury(1, 12)
    return linmax.VoteFusion("winnow(1.2)").fit({name: [row[name] for row in rows] for name in rows[0]}, labels)


@pytest.mark.small
@pytest.mark.parametrize("make", [some_fusion, lambda: some(linmax.Learner("winnow(1.2)"))], ids=["fusion", "learner"])
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m.ask({}, costs={"v0": 1}), "'v1' has none"),
        (lambda m: m.ask({}, costs={f"v{i}": -1.0 for i in range(6)}), "costs of 'v0' must be >= 0, got -1"),
        (lambda m: m.ask({}, costs={f"v{i}": float("nan") for i in range(6)}), "costs of 'v0' must be finite, got nan"),
        (lambda m: m.ask({}, costs={f"v{i}": 1.0 for i in range(7)}), "costs: 'v6' is not a known voter"),
        (lambda m: m.panel([1.0] * 6), "costs must be a dict"),
        (lambda m: m.ask({"eve": "a"}), "votes: 'eve' is not a known voter"),
        (lambda m: m.ask(["a"]), "votes must be a dict"),
        (lambda m: m.ask({"v0": ["a"]}), "of 'v0' is not hashable"),
        (lambda m: m.ask({}, tolerance=-0.1), "tolerance must be between 0 and 1, got -0.1; try 0.002"),
        (lambda m: m.ask({}, tolerance=float("nan")), "tolerance must be finite, got nan"),
        (lambda m: m.ask({}, tolerance="little"), "tolerance must be a number, got 'little'"),
        (lambda m: m.ask({}, explore=2), "explore must be between 0 and 1, got 2"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(make: Any, call: Any, words: str) -> None:
    model = make()
    before = bits(model)
    with pytest.raises((TypeError, ValueError), match=words):
        call(model)
    assert bits(model) == before


@pytest.mark.small
def test_votes_so_far_are_read_as_in_predict() -> None:
    learner = linmax.Learner("perceptron", thresholds=False)
    for label in [1, 2] * 5:
        learner.learn(votes={"anna": label, "ben": 1, "carl": 2}, label=label)
    for said in ("1", 1.0, "1.0"):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            assert learner.ask({"anna": said}, tolerance=0) is learner.ask({"anna": 1}, tolerance=0)
            assert learner.ask({"ben": said}, tolerance=0) == learner.ask({"ben": 1}, tolerance=0) == "anna"
        assert bool(warned) is isinstance(said, str)


@pytest.mark.small
def test_where_it_is_not_possible() -> None:
    for call, words in (
        (lambda m: m.ask({}, voters=["eve"]), "voters: 'eve' is not a known voter"),
        (
            lambda m: m.ask({}, attributes={"rain": 1.0}),
            "tolerance=0.002 needs a learner of votes alone, .* attributes",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            call(some(linmax.Learner("winnow(1.2)")))
    fresh = linmax.Learner()
    with pytest.raises(ValueError, match=r"ask\(\) needs voters, and this learner has met none"):
        fresh.ask({})
    fresh.learn({"rain": 1.0}, label="a")
    with pytest.raises(ValueError, match=r"panel\(\) needs voters, and this learner has met none"):
        fresh.panel()
    mixed = some(linmax.Learner())
    assert mixed.ask({}) is not None
    mixed.learn({"rain": 1.0}, votes={"v0": "a"}, label="a")
    for call in (lambda: mixed.ask({}), lambda: mixed.panel()):
        with pytest.raises(ValueError, match="needs a learner of votes alone, and this one has attributes; "):
            call()
    assert mixed.ask({}, attributes={"rain": 1.0}, tolerance=0) is not None
    rated = some(linmax.Learner("winnow(1.2)"))
    rated.learn(votes={"v0": "a"}, scores={"bm25": {"a": 1.0}}, label="a")
    with pytest.raises(ValueError, match="this one has raters; ask with tolerance=0"):
        rated.ask({})
    choosing = linmax.Learner()
    choosing.learn(votes={"ann": "x"}, candidates=["x", "y"], label="x")
    with pytest.raises(ValueError, match="this one has candidates; ask with tolerance=0"):
        choosing.ask({}, candidates=["x", "y"])
    assert choosing.ask({}, candidates=["x", "y"], tolerance=0) == "ann"


def test_excluded_voters_are_not_asked() -> None:
    learner = some(linmax.Learner(), 60)
    first = learner.ask({}, tolerance=0.02)
    others = [name for name in learner.voters if name != first]
    heard: Row = {}
    while (voter := learner.ask(heard, tolerance=0.02, voters=others)) is not None:
        assert voter != first
        heard[voter] = "a"
    assert heard
    assert [learner.ask({}, tolerance=0.02, voters=[name]) for name in learner.voters] == learner.voters
    assert learner.ask({}, tolerance=0.02, voters=[]) is None
