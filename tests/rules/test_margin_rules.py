"""Margin and second-order rules: their bounds, growth, the limits of floating point, saving."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linmax
from linmax import Learner, rules, run
from linmax.core.contract import GAUGE, SHIFT
from linmax.jit.compiling import JIT
from linmax.rules.romma import BASE, SQUARE
from linmax.theory import LinearThreshold, bounds

TRIALS = 600 if JIT else 40


def noisy(seed: int, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, their sides of a hyperplane (some of them wrong), and its normal, scaled to margin 1."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=6)
    x = rng.uniform(-1.0, 1.0, (3 * TRIALS, 6))
    x = x[np.abs(x @ u) > 0.2][:TRIALS]
    y = np.sign(x @ u) * np.where(rng.random(len(x)) < noise, -1.0, 1.0)
    return x, y, u / 0.2


def mistakes(rule: Any, x: np.ndarray, y: np.ndarray) -> tuple[int, np.ndarray]:
    """Mistakes, the first trial included, at which the margin is 0; and which trials updated."""
    trace = LinearThreshold(rule, labels=(-1, 1)).run(x, y.astype(int))
    return 1 + int(trace.wrong[1:].sum()), trace.changed


# -- bounds --------------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rule", [rules.pa(), rules.romma()], ids=str)
def test_the_bound_of_separable_data(rule: Any, seed: int) -> None:
    x, y, u = noisy(seed, 0.0)
    wrong, _ = mistakes(rule, x, y)
    radius = np.linalg.norm(x, axis=1).max()
    assert 0 < wrong <= bounds.passive_aggressive(radius, np.linalg.norm(u))


@pytest.mark.small
@pytest.mark.parametrize("noise", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("C", [0.01, 0.1, 1.0, 10.0])
def test_the_bounds_of_pa_i_and_pa_ii(noise: float, C: float) -> None:
    x, y, u = noisy(1, noise)
    radius = float(np.linalg.norm(x, axis=1).max())
    for scale in (0.0, 0.1, 0.5, 1.0):  # every u has its bound
        hinge = np.maximum(0.0, 1.0 - y * (x @ (scale * u)))
        size = scale * np.linalg.norm(u)
        wrong, _ = mistakes(rules.pa_i(C), x, y)
        assert wrong <= bounds.passive_aggressive(radius, size, hinge.sum(), C)
        wrong, _ = mistakes(rules.pa_ii(C), x, y)
        assert wrong <= bounds.passive_aggressive(radius, size, (hinge**2).sum(), C, squared=True)


@pytest.mark.small
@pytest.mark.parametrize("rule", ["arow", "scw-i", "second-order-perceptron"])
def test_attributes_that_appear_later_had_always_been_there(rule: str) -> None:
    rng = np.random.default_rng(4)
    rows = [{f"a{j}": float(v) for j, v in enumerate(rng.uniform(-1, 1, 2 + t // 10)) if v > -0.5} for t in range(40)]
    names = [f"a{j}" for j in range(5)]
    labels = rng.integers(2, size=40)
    growing = LinearThreshold(rule, labels=(0, 1))
    for t in range(40):
        growing.run([rows[t]], labels[t : t + 1])
    fixed = LinearThreshold(rule, labels=(0, 1))
    fixed.run([[row.get(name, 0.0) for name in names] for row in rows], labels)
    order = [growing._vocabulary[name] for name in names]  # type: ignore[index]
    np.testing.assert_allclose(np.asarray(growing.weights)[order], fixed.weights, rtol=1e-9, atol=1e-12)


# -- limits of floating point --------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize("learner", ["romma", "A-romma", "A(scale=max)-romma", "R(s=5)-romma"])
def test_romma_outgrows_no_float(learner: str) -> None:
    """Labels at random: |w| grows by a factor with every update, thousands of times."""
    trials = 40_000 if JIT else 60
    rng = np.random.default_rng(6)
    instances = linmax.instances(attributes=rng.normal(size=(trials, 4)), classes=range(3))
    machine = run(learner, instances, rng.integers(3, size=trials)).model
    stored, scalars = machine.engine.state.weights[0], machine.engine.state.scalars[0]
    assert np.isfinite(machine.weights.arrays.flat).all()
    length = 0.5 * math.log(scalars[SQUARE]) + scalars[BASE] - scalars[SHIFT]  # of the stored weights
    assert math.log(np.linalg.norm(stored)) == pytest.approx(length, abs=1e-9)
    if JIT:
        assert length + scalars[SHIFT] + scalars[GAUGE] > 20.0


@pytest.mark.small
@pytest.mark.parametrize("size", [1e-8, 1e-3, 1e3, 1e8])
@pytest.mark.parametrize(
    "rule", ["pa", "pa-i", "arow", "scw-i", "scw-ii", "nherd", "adagrad", "ftrl", "logistic", "romma"]
)
def test_any_scale_of_instances(rule: str, size: float) -> None:
    """It may learn badly, but it stays finite; PA, whose steps are in units of 1/|z|, makes the same predictions."""
    rng = np.random.default_rng(7)
    trials = 300 if JIT else 30
    x = rng.normal(size=(trials, 5))
    labels = np.argmax(x[:, :3], axis=1)
    trace = run(rule, linmax.instances(attributes=x * size, thresholds=False, classes=range(3)), labels)
    assert np.isfinite(trace.model.weights.arrays.flat).all()
    assert trace.model.updates > 0
    if rule in ("pa", "romma"):
        plain = run(rule, linmax.instances(attributes=x, thresholds=False, classes=range(3)), labels)
        assert (trace.predictions == plain.predictions).mean() > 0.99


@pytest.mark.small
def test_adagrad_and_ftrl_pass_over_zeros() -> None:
    instances = linmax.instances(attributes=[[0.0, 0.0]] * 3, thresholds=False, classes=range(2))
    for rule in ("adagrad", "ftrl(beta=0)", "ftrl(loss=hinge)", "logistic", "arow", "pa", "scw-i"):
        machine = run(rule, instances, [1, 0, 1]).model
        assert not machine.weights.arrays.flat.any()
        assert np.isfinite(machine.weights.arrays.flat).all()


# -- saving --------------------------------------------------------------------------------------------------


@pytest.mark.small
@pytest.mark.parametrize(
    "learner",
    [
        "arow(0.5)",
        "romma",
        "scw-ii(rivals=violated)",
        "arow(0.1, rivals=all)",
        "A(scale=max, fade=True)R(s=8, u=3, budget=4)-winnow(1.2)",
        "stack(pa-i, arow(rivals=all), fusion=arow(10, start=1, inflation=0.0001))",
    ],
)
def test_saved_and_continued(learner: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    trials = 60 if JIT else 16
    x = rng.normal(size=(trials, 4)).round(2)
    labels = [
        str(c) for c in np.where(rng.random(trials) < 0.8, np.argmax(x[:, :3], axis=1), rng.integers(3, size=trials))
    ]
    whole, first = Learner(learner), Learner(learner)
    for t in range(trials // 2):
        whole.learn(x[t] * 0.1, label=labels[t])
        first.learn(x[t] * 0.1, label=labels[t])
    first.save(tmp_path / "model")
    second = Learner.load(tmp_path / "model")
    for t in range(trials // 2, trials):
        assert whole.learn(x[t] * 0.1, label=labels[t]) == second.learn(x[t] * 0.1, label=labels[t])
    assert whole.scores(0.1 * x[0]) == second.scores(0.1 * x[0])
