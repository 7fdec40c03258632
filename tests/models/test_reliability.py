"""Log loss, calibration error and coverage, as models and reports tell them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linmax
from linmax.models.calibration import reliability


def test_true_probabilities_are_off_by_chance_alone() -> None:
    random = np.random.default_rng(0)
    table = random.dirichlet([0.5] * 4, size=4000)
    labels = (table.cumsum(axis=1) > random.random((4000, 1))).argmax(axis=1)
    found = reliability(table, labels)
    assert found.calibration_error == pytest.approx(found.by_chance, rel=0.6)
    assert found.log_loss == pytest.approx(-np.mean(np.log(table[np.arange(4000), labels])))
    assert sum(part.trials for part in found.bins) == found.trials == 4000
    sharper = table**3 / (table**3).sum(axis=1, keepdims=True)
    assert reliability(sharper, labels).calibration_error > 4 * found.by_chance
    certain = reliability(np.eye(3), np.arange(3))
    assert str(certain.log_loss) == "0.0"


def test_log_loss_of_unknown_class_is_bounded() -> None:
    assert 20.0 < reliability(np.array([[0.5, 0.5]]), np.array([-1])).log_loss < 30.0


def test_report_shows_probabilities_and_sets(tmp_path: Path) -> None:
    data = linmax.datasets.majority_problem(n=20, r=10, k=5, noise=0.3, trials=2000, seed=3)
    fusion = linmax.VoteFusion("AR-winnow(1.1)").fit(data.votes[:1200], data.labels[:1200])
    told = fusion.report(data.votes[1200:], data.labels[1200:])
    assert told.reliability is not None
    assert told.test_reliability is not None
    table = fusion.predict_proba(data.votes[1200:])
    places = np.array([fusion.classes_.tolist().index(label) for label in data.labels[1200:].tolist()])
    assert told.test_reliability == reliability(table, places)
    assert told.reliability.trials == 564
    assert told.reliability.calibration_error < 0.1
    assert abs(told.coverage[0.9] - 0.9) < 0.02
    figures = told.to_dict()
    assert figures["coverage"]["0.9"] == told.coverage[0.9]
    assert figures["test_reliability"]["log_loss"] == told.test_reliability.log_loss
    assert abs(told.coverage[0.9] - 0.9) <= linmax.theory.bounds.adaptive_coverage(1200, 0.01, 0.1)
    assert "(never more than 7.6 % off, whatever changes)" in str(told)
    for text in ("calibration error", "by chance alone", "Sets for a coverage of 90.0 % held the label in"):
        assert text in str(told)
    fusion.plot_reliability(tmp_path / "recent.png")
    figure = fusion.plot_reliability(tmp_path / "held_out.svg", votes=data.votes[1200:], y=data.labels[1200:])
    assert figure.axes[0].get_title(loc="left") == "Reliability of the fusion"
    assert (tmp_path / "recent.png").exists()
    assert (tmp_path / "held_out.svg").exists()


def test_few_trials_give_no_reliability() -> None:
    fusion = linmax.VoteFusion("perceptron").fit([["a"], ["b"], ["b"]], ["a", "b", "b"])
    assert fusion.report().reliability is None
    with pytest.raises(ValueError, match="3 trials are too few"):
        fusion.plot_reliability()


def test_recent_best_voter_and_soft_voting_are_rivals() -> None:
    random = np.random.default_rng(5)
    labels = random.integers(0, 3, 600)
    good = np.where(np.arange(600)[:, None] < 300, [0.9, 0.3], [0.3, 0.9])
    votes = np.where(random.random((600, 2)) < good, labels[:, None], (labels[:, None] + 1) % 3)
    fusion = linmax.VoteFusion("perceptron", classes=range(3))
    for begin in range(0, 600, 70):
        fusion.partial_fit(votes[begin : begin + 70], labels[begin : begin + 70])
    recent, right = np.zeros(2), 0
    for row, label in zip(votes, labels, strict=True):
        right += row[recent.argmax()] == label
        recent = 0.99 * recent + (row == label)
    accuracy = fusion.report().online.accuracy
    assert accuracy["best_recent"] == pytest.approx(right / 600)
    assert accuracy["best_recent"] > accuracy["best_so_far"] + 0.1
    assert "best recent voter" in str(fusion.report())
    held = fusion.report(votes[:50], labels[:50]).test
    assert held is not None
    assert held.rivals["best_recent"].name == "1"  # who led when learning ended
    assert held.accuracy["best_recent"] == pytest.approx(np.mean(votes[:50, 1] == labels[:50]))
    assert "soft_voting" not in accuracy  # of votes
    scores = random.random((200, 4, 3))
    scores[np.arange(200), :, labels[:200]] += 0.4
    rated = (
        linmax.VoteFusion("perceptron")
        .partial_fit(scores[:120], labels[:120])
        .partial_fit(scores[120:], labels[120:200])
    )
    shares = scores / scores.sum(axis=2, keepdims=True)
    expected = np.mean(shares.mean(axis=1).argmax(axis=1) == labels[:200])
    assert rated.report().online.accuracy["soft_voting"] == pytest.approx(expected)
    assert "soft voting" in str(rated.report())
