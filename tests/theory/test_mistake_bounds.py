"""The bound along a run is the formula of `linmax.theory.bounds` with the noise so far."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import linmax
from linmax.theory import bounds
from linmax.theory.mistake_bounds import bound_of
from linmax.theory.rows import Rows

DATA = linmax.datasets.majority_problem(n=6, r=3, k=2, noise=0.1, trials=40, seed=3)
MARGIN = 0.2


def so_far(text: str) -> np.ndarray:
    instances = linmax.instances(votes=DATA.votes, thresholds=False)
    return linmax.run(text, instances, DATA.labels).bound(np.eye(6)[0], MARGIN)


def differences() -> np.ndarray:
    """z of each trial: 1 or -1 where a voter alone is right or wrong against the other class."""
    return np.where(np.asarray(DATA.votes) == np.asarray(DATA.labels)[:, None], 1.0, -1.0)


@pytest.mark.small
@pytest.mark.parametrize(("text", "uses"), [("perceptron", 1), ("R(u=3)-perceptron", 3)])
def test_the_bound_of_each_trial_by_the_formula(text: str, uses: int) -> None:
    noise = np.cumsum(np.maximum(0.0, MARGIN - differences()[:, 0]))
    expected = [bounds.perceptron(np.sqrt(6.0), 1.0, MARGIN, uses * amount, 0.0) for amount in noise]
    assert noise[-1] > 0.0
    assert so_far(text) == pytest.approx(expected, rel=1e-12)


@pytest.mark.small
def test_voting_adds_the_restarts_so_far() -> None:
    inside = so_far("perceptron")
    expected = [bounds.voting(value, bounds.most_restarts(t + 1, 7)) for t, value in enumerate(inside)]
    assert so_far("V(d=7)-perceptron") == pytest.approx(expected, rel=1e-12)


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("arow", "no bound from data is known for arow: none is known"),
        ("winnow(2, threshold=3)", "it has a fixed threshold"),
        ("perceptron(rivals=all)", "one two-class problem for each class"),
        ("A-perceptron", "no bound is known for A-perceptron"),
    ],
)
def test_learners_without_bound_give_reason(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        bound_of(linmax.parse(text), Rows([[1.0, -1.0]]))


@pytest.mark.small
def test_a_link_of_ones_own_has_no_bound() -> None:
    cubic = linmax.rules.quasi_additive(lambda v: v * v * v)
    with pytest.raises(ValueError, match="none is known for this link; known for identity, sinh, exp"):
        bound_of(cubic, Rows([[1.0, -1.0]]))


def test_bounds_are_loaded_when_one_is_asked_for() -> None:
    code = "import sys, linmax.rules, linmax.models.run; print([m for m in sys.modules if 'linmax.theory.bounds' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
