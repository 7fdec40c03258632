"""Weights of trials scale the step of every rule, as in the reference, recycled instances included."""

from __future__ import annotations

import numpy as np
import pytest

from compare import Case, cases
from linmax.data.arrays import Layout, no_trials
from linmax.engine.engine import Engine, Settings
from reference import LinearMax, expand

TRIALS, VOTERS, K = 60, 6, 3
RNG = np.random.default_rng(5)
LABELS = RNG.integers(0, K, TRIALS, np.int32)
VOTES = np.where(RNG.random((TRIALS, VOTERS)) < 0.5, LABELS[:, None], RNG.integers(-1, K, (TRIALS, VOTERS))).astype(
    np.int32
)
WEIGHTS = RNG.choice([0.0, 0.25, 1.0, 1.0, 2.0, 3.5], TRIALS)


def engine_of(learner: object, weights: np.ndarray) -> tuple[Engine, np.ndarray]:
    engine = Engine(learner, Layout(VOTERS, 0, 0, 0, 1.0), K, Settings())
    labels = np.where(weights > 0.0, LABELS, -1).astype(np.int32)
    trials = no_trials(TRIALS)._replace(
        votes=VOTES, signs=np.ones(VOTERS), constant=1.0, labels=labels, weights=weights
    )
    return engine, engine.run(trials).predictions


@pytest.mark.small
@pytest.mark.parametrize("case", cases(), ids=str)
def test_steps_are_those_of_the_reference(case: Case) -> None:
    engine, predictions = engine_of(case.rule, WEIGHTS)
    slow, expected = LinearMax(case.reference, K), []
    for votes, label, weight in zip(VOTES, LABELS.tolist(), WEIGHTS.tolist(), strict=True):
        x = expand(votes, k=K)
        expected.append(slow.trial(x, label, weight) if weight > 0.0 else slow.predict(x))
    assert predictions.tolist() == expected
    found = engine.top.hypothesis(engine)[0]
    rows = found[VOTERS:].reshape(-1, int(engine.state.shape[1]))[:, :K]
    weights = np.concatenate([found[:VOTERS], rows.ravel()])
    scale = np.abs(slow.hypothesis()).max() or 1.0
    np.testing.assert_allclose(
        weights / (np.abs(weights).max() or 1.0), slow.hypothesis() / scale, rtol=1e-6, atol=1e-9
    )
