"""A voter that is an id, in trials that come one by one: said once, by name, and nothing is refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import linmax
from linmax.data.names import ROWS_OF_IDS

ROWS = 2 * ROWS_OF_IDS


def one_by_one(rows: list[tuple[dict[str, Any], Any]]) -> linmax.Learner:
    learner = linmax.Learner("perceptron")
    for votes, label in rows:
        learner.learn(votes=votes, label=label)
    return learner


def kept(rows: list[tuple[dict[str, Any], Any]]) -> linmax.Learner:
    learner = linmax.Learner("perceptron", discover="labels")
    for t, (votes, label) in enumerate(rows):
        learner.predict(votes=votes, id=t)
        learner.learn(id=t, label=label)
    return learner


def single_rows(rows: list[tuple[dict[str, Any], Any]]) -> linmax.VoteFusion:
    fusion = linmax.VoteFusion("perceptron")
    for votes, label in rows:
        fusion.partial_fit({name: [vote] for name, vote in votes.items()}, [label])
    return fusion


def few_rows(rows: list[tuple[dict[str, Any], Any]]) -> linmax.VoteFusion:
    fusion = linmax.VoteFusion("perceptron")
    for begin in range(0, len(rows), 5):
        part = rows[begin : begin + 5]
        votes = {name: [row[name] for row, _ in part] for name in part[0][0]}
        fusion.partial_fit(votes, [label for _, label in part])
    return fusion


FACES = pytest.mark.parametrize("face", [one_by_one, kept, single_rows, few_rows])


def told_of(face: Callable[..., Any], rows: list[tuple[dict[str, Any], Any]]) -> list[str]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        face(rows)
    return [str(warning.message) for warning in told if "looks like an id" in str(warning.message)]


@pytest.mark.small
@FACES
def test_id_column_is_reported_once(face: Callable[..., Any]) -> None:
    rows = [({"ann": "ab"[t % 2], "bob": "a", "row": f"q{t}"}, "ab"[t % 2]) for t in range(ROWS)]
    told = told_of(face, rows)
    assert len(told) == 1
    assert f"votes: 'row' named a class never met before in {ROWS_OF_IDS} trials on end" in told[0]
    assert told[0].endswith("remove it")
    assert not told_of(face, rows[: ROWS_OF_IDS - 1])


@pytest.mark.small
@FACES
def test_classes_that_come_one_after_the_other_are_none(face: Callable[..., Any]) -> None:
    first = [({"ann": f"c{t}", "bob": f"c{t // 2}"}, f"c{t}") for t in range(ROWS)]
    rarely = [({"ann": "a", "row": f"q{t}" if t % 10 else "a"}, "a") for t in range(ROWS)]
    assert told_of(face, first) == told_of(face, rarely) == []


@pytest.mark.small
@pytest.mark.parametrize("face", [one_by_one, single_rows])
def test_it_learns_all_the_same(face: Callable[..., Any]) -> None:
    rows = [({"ann": "ab"[t % 2], "row": f"q{t}"}, "ab"[t % 2]) for t in range(ROWS)]
    with pytest.warns(UserWarning, match="looks like an id"):
        learned = face(rows)
    assert (learned if face is one_by_one else learned._state.model).trials == ROWS
