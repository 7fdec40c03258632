"""Probabilities from scores: the sharpness against a plain search, and what it must not do."""

import numpy as np
import pytest
from scipy.special import softmax

from linmax.calibration import EVERY, WINDOW, Calibration


def loss(scores, labels, b):
    """Mean -ln P(label), one trial after the other."""
    total = 0.0
    for row, label in zip(scores, labels, strict=True):
        total += np.log(np.exp(b * (row - row.max())).sum()) - b * (row[label] - row.max())
    return total / len(labels)


@pytest.mark.parametrize("true", [0.5, 3.0, 40.0])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_finds_the_sharpness_that_made_the_labels(true, unit):
    random = np.random.default_rng(0)
    scores = random.normal(size=(400, 4))
    labels = np.array([random.choice(4, p=p) for p in softmax(true * scores, axis=1)])
    calibration = Calibration()
    calibration.add(unit * scores, labels)
    found = loss(scores, labels, calibration.sharpness * unit)
    best = min(loss(scores, labels, b) for b in np.exp(np.linspace(-3, 6, 60)))
    assert found < best + 0.01


def test_a_small_faultless_past_gives_no_certainty():
    calibration = Calibration()
    calibration.add(np.array([[1.0, -1.0]]), np.array([0]))
    assert 0.6 < calibration.probabilities(np.array([[1.0, -1.0]]))[0, 0] < 0.999


def test_useless_scores_give_even_probabilities():
    random = np.random.default_rng(0)
    calibration = Calibration()
    calibration.add(random.normal(size=(500, 3)), random.integers(0, 3, 500))
    np.testing.assert_allclose(calibration.probabilities(random.normal(size=(50, 3))), 1 / 3, atol=0.1)


def test_scores_without_difference():
    calibration = Calibration()
    calibration.add(np.zeros((40, 3)), np.zeros(40, int))
    np.testing.assert_allclose(calibration.probabilities(np.zeros((1, 3))), 1 / 3)


def test_a_class_not_yet_known_has_no_probability():
    calibration = Calibration()
    calibration.add(np.array([[1.0, 0.0, -np.inf]] * 40), np.array([0, 0, 1, 0] * 10))
    probabilities = calibration.probabilities(np.array([[1.0, 0.0, -np.inf]]))
    assert probabilities[0, 2] == 0.0
    assert probabilities.sum() == pytest.approx(1.0)


def test_classes_come_later():
    calibration = Calibration()
    calibration.add(np.array([[1.0, 0.0]] * 40), np.zeros(40, int))
    calibration.add(np.array([[0.0, 0.0, 1.0]] * 40), np.full(40, 2))
    assert calibration.scores.shape == (80, 3)
    assert np.isfinite(calibration.sharpness)


def test_only_the_latest_count():
    early, late = np.tile([[1.0, 0.0]], (WINDOW, 1)), np.tile([[1.0, 0.0]], (WINDOW, 1))
    calibration, fresh = Calibration(), Calibration()
    calibration.add(early, np.ones(WINDOW, int))  # always wrong
    calibration.add(late, np.zeros(WINDOW, int))  # always right
    fresh.add(late, np.zeros(WINDOW, int))
    assert calibration.sharpness == fresh.sharpness
    assert len(calibration.scores) == WINDOW


def test_is_fitted_at_fixed_trials_only():
    random = np.random.default_rng(0)
    calibration, seen = Calibration(), []
    for _ in range(4 * EVERY):
        calibration.add(random.normal(size=(1, 2)), random.integers(0, 2, 1))
        seen.append(calibration.sharpness)
    changes = np.flatnonzero(np.diff(seen)) + 2  # in trials
    assert set(changes[changes > EVERY]) == {2 * EVERY, 3 * EVERY, 4 * EVERY}
