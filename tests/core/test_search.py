"""Searching in panels of sixteen: they decide what is beyond doubt, so every result is the same bits without them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine import assert_same, everything
from test_rules import small_problems

import linmax
import linmax.core.search as search_module
import linmax.engine.bench as bench_module
import linmax.engine.engine as machine_module
from compare import Problem, problem, problems
from linmax import run
from linmax.core.contract import RunningTrials
from linmax.core.search import close_lanes, doubt, fill_panel, load_weights, row_of
from linmax.data.arrays import no_trials
from linmax.jit.compiling import JIT
from linmax.jit.panels import fill_tables, magnitude, plain_close_codes

LEARNERS = [
    "R(s=30, u=4)-perceptron",
    "V(h=4, w=20, r=20)-combine(R-alma(2.5), AR-alma(2.5), R-winnow(1.1), AR-winnow(1.1))",
    "AR(s=30, u=4)-winnow(1.3)",
    "V(h=4, w=20, r=20)A-alma(3)",
    "A(scale=max)-p-norm(3)",
]
python = (lambda function: function.py_func) if JIT else (lambda function: function)


@pytest.fixture
def panels(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The panels that were filled."""
    filled: list[Any] = []
    fill = bench_module.fill_panel

    def watched(trials: Any, begin: int, end: int) -> None:
        fill(trials, begin, end)
        filled.append(SimpleNamespace(codes=trials.codes, ratings=trials.ratings, largest=trials.largest))

    monkeypatch.setattr(bench_module, "fill_panel", watched)
    return filled


def without_panels(action: Callable[[], Any]) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine_module, "SMALL", 0)
        return action()


def assert_panels_change_nothing(learner: str, given: Problem, **options: Any) -> None:
    def play() -> Any:
        return everything(run(learner, given.instances, given.labels, **options))

    assert_same(play(), without_panels(play))


@pytest.mark.small
@pytest.mark.parametrize("learner", LEARNERS)
def test_every_kind_of_instance(learner: str) -> None:
    some = list(problems(70 if JIT else 18).values())
    for played in some if JIT else some[:1]:
        for tie in ("smallest", "largest"):
            assert_panels_change_nothing(learner, played, tie=tie)


@pytest.mark.small
@settings(max_examples=60 if JIT else 6, deadline=None)
@given(st.sampled_from(LEARNERS), small_problems(), st.booleans())
def test_anything(learner: str, given: Problem, update_on_tie: bool) -> None:
    assert_panels_change_nothing(learner, given, update_on_tie=update_on_tie)


def hard(trials: int, offset: float, spread: float, seed: int = 1) -> Problem:
    """Attributes with a large common part: leads are lost in the rounding of single precision."""
    rng = np.random.default_rng(seed)
    dense = offset + spread * rng.uniform(-1.0, 1.0, (trials, 5))
    labels = (dense - offset)[:, :3].argmax(axis=1)
    return problem(labels, 3, attributes=dense)


@pytest.mark.small
@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-6, 1e-7, 1e-8, 1e-12])
@pytest.mark.parametrize("learner", ["AR(s=40, u=9)-perceptron", "V(w=30, r=30)A-alma(2)", "R(s=40)-p-norm(5)"])
def test_leads_within_rounding(learner: str, spread: float) -> None:
    assert_panels_change_nothing(learner, hard(200 if JIT else 18, 1.0, spread))


@pytest.mark.small
@pytest.mark.parametrize("size", [1e-300, 1e-120, 1e-45, 1e-38, 1e-30, 1e-20, 1.0, 1e20, 1e30, 1e38, 1e45])
def test_ratings_too_small_or_too_large_for_single_precision(size: float, panels: list[Any]) -> None:
    given = hard(150 if JIT else 18, 0.0, size)
    given = problem(given.labels, 3, attributes=np.array([x[0, ::3] for x in given.matrices])[:, 1:], thresholds=False)
    for learner in ("AR(s=40)-perceptron", "VA(scale=l1)-alma(2)"):
        assert_panels_change_nothing(learner, given)
    assert bool(panels) == (1e-30 < size < 1e30) or size in (1e-30, 1e30)


@pytest.mark.small
def test_one_voter_that_outweighs_all_others() -> None:
    """Weights many orders of magnitude apart: what the small ones decide is below single precision."""
    rng = np.random.default_rng(4)
    trials = 300 if JIT else 20
    votes = rng.integers(3, size=(trials, 6))
    votes[: trials // 2, 0] = votes[: trials // 2, 1]
    labels = votes[:, 1].copy()
    votes[trials // 2 :, :2] = -1  # from now on only the small ones speak
    labels[trials // 2 :] = votes[trials // 2 :, 2]
    given = problem(labels, 3, votes=votes, thresholds=False)
    for learner in ("AR(s=50, u=20)-winnow(4, thickness=0.3)", "VR(s=50, u=20)-balanced-winnow(4, thickness=0.1)"):
        assert_panels_change_nothing(learner, given)


@pytest.mark.small
def test_voters_are_written_as_rows_and_others_as_ratings(panels: list[Any]) -> None:
    """The label is row 0, the other classes follow in order; who abstains and padding are in no row."""
    instances = linmax.instances(votes=[[2, 0, None], [1, 1, 2]], classes=range(3))
    run("R-perceptron", instances, [2, 1])
    codes = panels[0].codes.reshape(3, 2, 16)  # rows, groups of four: three voters and four thresholds
    rows = codes.transpose(2, 0, 1)  # lane, row, group
    assert rows[0].tolist() == [[0b0001, 0b010], [0b1010, 0b000], [0b0000, 0b001]]
    assert rows[1].tolist() == [[0b0011, 0b001], [0b1000, 0b000], [0b0100, 0b010]]
    assert not panels[0].ratings.size
    panels.clear()
    run("R-perceptron", linmax.instances(attributes=[[0.5, -2.0]], classes=range(3)), [1])
    assert not panels[0].codes.size
    ratings = panels[0].ratings.reshape(1, 3, 3 * 4, 16)[0, :, :, 0]
    for row, cls in enumerate([1, 0, 2]):
        expected = np.zeros(12)
        expected[[cls, 4 + cls, 8 + cls]] = [1.0, 0.5, -2.0]
        assert ratings[row].tolist() == expected.tolist()
    assert panels[0].largest == 2.0
    panels.clear()
    run("R-perceptron", linmax.instances(votes=[[0, 1]], classes=range(2), negated=True), [0])
    assert not panels[0].codes.size  # negated copies are no votes for a class


@pytest.mark.small
def test_rows() -> None:
    for label in range(5):
        rows = [python(row_of)(cls, label) for cls in range(5)]
        assert rows[label] == 0
        assert sorted(rows) == list(range(5))
        assert [rows[cls] for cls in range(5) if cls != label] == [1, 2, 3, 4]


@pytest.mark.small
def test_no_lead_beyond_doubt_is_false() -> None:
    """The error of a lead in single precision, weights summing to 1, against its bound."""
    rng = np.random.default_rng(5)
    for size in (1, 2, 10, 300):
        for _ in range(200 if JIT else 20):
            weights = rng.standard_normal(size) * 10.0 ** rng.uniform(-6.0, 6.0, size)
            weights /= np.abs(weights).sum()
            largest = 10.0 ** rng.uniform(-3.0, 3.0)
            rated = rng.uniform(-largest, largest, (2, size))
            single = np.zeros(2, np.float32)
            for i in rng.permutation(size):
                single += weights.astype(np.float32)[i] * rated.astype(np.float32)[:, i]
            error = abs(float(single[0] - single[1]) - float((rated[0] - rated[1]) @ weights))
            assert error <= python(doubt)(RunningTrials(largest=largest), size)


@pytest.mark.small
@pytest.mark.parametrize("voters", [3, 20, 130])
def test_no_lead_of_votes_beyond_doubt_is_false(voters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a lead that is looked up, in single precision, against its bound."""
    monkeypatch.setattr(search_module, "magnitude", python(magnitude))
    monkeypatch.setattr(search_module, "fill_tables", python(fill_tables))
    monkeypatch.setattr(search_module, "close_codes", plain_close_codes)
    rng = np.random.default_rng(voters)
    k, trials = 5, 16
    size = voters + 8
    room = bench_module.Room.of(size, False, k, 1, k)
    for _ in range(20 if JIT else 3):
        votes, labels = rng.integers(-1, k, (trials, voters), dtype=np.int32), rng.integers(0, k, trials, np.int32)
        instances = no_trials(trials)._replace(votes=votes, signs=np.ones(voters), constant=1.0, labels=labels)
        given = RunningTrials(
            **instances._asdict(), shape=np.array([voters, 8, k, 0, 1]), coordinates=size, classes=k, largest=1.0,
            codes=np.zeros(-(-size // 4) * k * 16, np.int8), ratings=np.zeros(0, np.float32),
        )  # fmt: skip
        python(fill_panel)(given, 0, trials)
        weights = rng.standard_normal(size) * 10.0 ** rng.uniform(-3.0, 0.0, size)
        weights[voters + k :] = 0.0
        total = python(load_weights)(given, weights, room.tables)
        assert total == pytest.approx(np.abs(weights).sum())
        python(close_lanes)(given, 0, size, room.tables, room.lanes, 0.0)
        slack = python(doubt)(given, size)
        for t in range(trials):
            exact = weights[voters : voters + k].copy()
            for voter, vote in enumerate(votes[t]):
                if vote >= 0:
                    exact[vote] += weights[voter]
            rows = [python(row_of)(cls, labels[t]) for cls in range(k)]
            found = room.lanes[rows, t]
            assert np.abs((found[:, None] - found) - (exact[:, None] - exact) / total).max() <= slack


@pytest.mark.small
def test_panels_are_for_small_problems_that_are_scored_often(panels: list[Any]) -> None:
    rng = np.random.default_rng(6)
    labels = [0, 1, 0]
    small = linmax.instances(attributes=rng.random((3, 2)), classes=range(2))
    large = linmax.instances(attributes=rng.random((3, 40)), classes=range(2))
    votes = linmax.instances(votes=rng.integers(2, size=(3, 40)), classes=range(2))
    run("perceptron", small, labels)
    run("A-perceptron", small, labels)  # averages of attributes are as fast without
    run("R-perceptron", large, labels)
    run("R-perceptron", small, labels, discover=True)
    assert not panels
    run("R-perceptron", small, labels)
    run("V-perceptron", small, labels)
    run("A-perceptron", votes, labels)
    run("R-perceptron", votes, labels)
    assert len(panels) == 4
