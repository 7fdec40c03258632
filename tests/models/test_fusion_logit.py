"""Rivals that are refitted: what they answer, whatever the cuts, and bounded in what is stored."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import linmax
from linmax.models import baselines
from linmax.models.baselines import StoredRivals, fit_logit, ratings_of
from linmax.normalization import log_shares

FUSED = "AR-winnow(1.1)"


def problem(trials: int, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    data = linmax.datasets.majority_problem(n=9, r=5, k=3, noise=0.1, trials=trials, seed=seed)
    return data.votes, data.labels


def slow_logit(ratings: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The weights c + u_i by a general optimizer, c and u apart as in the definition."""
    columns = ratings.shape[2]

    def loss(theta: np.ndarray) -> float:
        scores = ratings @ (theta[0] + theta[1:])
        fit = scores[np.arange(len(labels)), labels] - np.log(np.exp(scores).sum(axis=1))
        return float(0.5 * (theta[0] - 0.5) ** 2 + 0.5 * (theta[1:] ** 2).sum() - fit.sum())

    found = minimize(loss, np.zeros(columns + 1)).x
    return found[0] + found[1:]


def test_the_logit_is_its_definition() -> None:
    votes, labels = problem(60)
    votes = np.where(np.random.default_rng(0).random(votes.shape) < 0.2, -1, votes)
    ratings = ratings_of(votes, 3)
    expected = slow_logit(ratings.astype(float), labels)
    assert fit_logit(ratings, labels)[0] == pytest.approx(expected, abs=1e-2)
    assert fit_logit(ratings, labels, np.full(9, 3.0))[0] == pytest.approx(expected, abs=1e-2)


def slow_answers(ratings: np.ndarray, labels: np.ndarray, window: int, most: int) -> list[int]:
    answers: list[int] = []
    while len(answers) < len(labels):
        done = len(answers)
        first = max(0, done - window)
        weights = fit_logit(ratings[first:done], labels[first:done])[0] if done else np.ones(ratings.shape[2])
        answers += (ratings[done : done + min(1 + done // 10, most)] @ weights).argmax(axis=1).tolist()
    return answers[: len(labels)]


def slow_fixed_share(votes: np.ndarray, labels: np.ndarray) -> list[int]:
    weights, answers = [1.0 / votes.shape[1]] * votes.shape[1], []
    for row, label in zip(votes.tolist(), labels.tolist(), strict=True):
        totals = [sum(w for w, vote in zip(weights, row, strict=True) if vote == c) for c in range(3)]
        answers.append(totals.index(max(totals)))
        weights = [w / np.e if vote not in (label, -1) else w for w, vote in zip(weights, row, strict=True)]
        total = sum(weights)
        weights = [0.99 * w / total + 0.01 / len(row) for w in weights]
    return answers


def test_rivals_are_their_definitions_online_and_held_out() -> None:
    votes, labels = problem(400)
    half = votes.copy()
    half[150:] = half[150:, ::-1]  # the good voters become the bad ones
    report = linmax.VoteFusion(FUSED, classes=range(3)).fit(half[:300], labels[:300]).report(half[300:], labels[300:])
    ratings, accuracy = ratings_of(half[:300], 3), report.online.accuracy
    for key, answers in (
        ("logit", slow_answers(ratings, labels[:300], 1000, 1000)),
        ("logit_recent", slow_answers(ratings, labels[:300], 100, 20)),
        ("fixed_share", slow_fixed_share(half[:300], labels[:300])),
    ):
        assert accuracy[key] == pytest.approx(np.mean(np.array(answers) == labels[:300]), abs=0.02)
    assert accuracy["logit_recent"] > accuracy["logit"]
    weights = fit_logit(ratings, labels[:300])[0]
    assert report.test is not None
    expected = np.mean((ratings_of(half[300:], 3) @ weights).argmax(axis=1) == labels[300:])
    assert report.test.accuracy["logit"] == pytest.approx(expected, abs=0.02)
    rival = report.online.rivals["logit"]
    assert rival.difference == pytest.approx(accuracy["fusion"] - rival.accuracy)
    assert report.to_dict()["comparisons"]["logit"]["name"] == "conditional logit"


@pytest.mark.parametrize("room", [8192, 50])
def test_cuts_and_files_do_not_matter(room: int, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(baselines, "STORED_TRIALS", room)
    votes, labels = problem(130)
    whole = linmax.VoteFusion(FUSED, classes=range(3)).fit(votes, labels)
    cut = linmax.VoteFusion(FUSED, classes=range(3))
    for begin, end in ((0, 37), (37, 38), (38, 101), (101, 130)):
        cut.partial_fit(votes[begin:end], labels[begin:end])
        cut.save(tmp_path / "fusion.linmax")
        cut = pickle.loads(pickle.dumps(linmax.VoteFusion.load(tmp_path / "fusion.linmax")))
    rows = linmax.VoteFusion(FUSED, classes=range(3))
    for t in range(130):
        rows.partial_fit(votes[t : t + 1], labels[t : t + 1])
    expected = whole.report().online.rivals
    assert cut.report().online.rivals == rows.report().online.rivals == expected
    if room == 50:  # 130 trials: 30 of them are left, since 25 go at a time
        assert expected["logit"].name == "conditional logit, last 15 trials"


def test_scores_enter_as_logarithms_of_their_shares() -> None:
    random = np.random.default_rng(4)
    y = random.integers(0, 3, 120)
    scores = random.random((120, 2, 3)) + 0.7 * np.eye(3)[y][:, None]
    report = linmax.VoteFusion(FUSED).fit(scores[:80], y[:80]).report(scores[80:], y[80:])
    logs = log_shares(scores).astype(np.float32).transpose(0, 2, 1)
    weights = fit_logit(logs[:80], y[:80])[0]
    assert report.test is not None
    found = (logs[80:] @ weights).argmax(axis=1)
    assert report.test.accuracy["logit"] == pytest.approx(np.mean(found == y[80:]), abs=0.03)
    assert "fixed_share" not in report.online.rivals  # of votes


def test_voters_and_classes_that_join_and_too_few_or_too_many() -> None:
    fusion = linmax.VoteFusion(FUSED).fit({"a": ["x", "y"] * 3}, ["x", "y"] * 3)
    assert "logit" not in fusion.report().online.rivals  # too few
    fusion.partial_fit({"a": ["x", "z"] * 4, "b": ["z", "x"] * 4}, ["x", "z"] * 4)
    assert fusion.report().online.rivals["logit"].accuracy > 0.5
    crowd = StoredRivals()
    crowd.add(np.zeros((20, 300), int), np.zeros(20, int), np.ones(20, bool))
    assert crowd.online(3) == {}
