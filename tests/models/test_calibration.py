"""Probabilities from scores that were given before their labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linmax
from linmax.engine.record import RING, Record, keep_table, latest, new_record, widened
from linmax.models.calibration import RECENT, Calibration, fit_moment

K = 3


def record_of(scores: np.ndarray, labels: np.ndarray) -> Record:
    record = new_record(scores.shape[1])
    keep_table(
        record, np.ascontiguousarray(scores, float), np.asarray(labels, np.int32), np.full(len(labels), scores.shape[1])
    )
    return record


@pytest.mark.small
@pytest.mark.parametrize("scale", [1e-90, 1.0, 1e90])
def test_at_the_edges(scale: float) -> None:
    fresh = Calibration().probabilities(new_record(K), np.eye(K))
    np.testing.assert_allclose(fresh, 1 / K)  # before any trial
    right = record_of(scale * np.eye(K), np.arange(K))
    always = Calibration().probabilities(right, scale * np.eye(K))
    assert np.isfinite(always).all()
    assert (np.diag(always) > 0.5).all()
    wrong = record_of(-scale * np.eye(K)[np.arange(60) % K], np.arange(60) % K)
    np.testing.assert_allclose(Calibration().probabilities(wrong, scale * np.eye(K)), 1 / K, atol=0.05)
    alike = record_of(np.zeros((5, 2)), np.zeros(5))
    np.testing.assert_allclose(Calibration().probabilities(alike, np.zeros((1, 2))), 0.5)


@pytest.mark.small
def test_log_probabilities_are_trusted_at_first() -> None:
    random = np.random.default_rng(3)
    shares = random.dirichlet(np.ones(K), 1000)
    labels = (shares.cumsum(axis=1) < random.random(1000)[:, None]).sum(axis=1)
    np.testing.assert_allclose(Calibration().probabilities(new_record(K), np.log(shares), True), shares)
    honest, guess = Calibration().fitted(record_of(np.log(shares[:3]), labels[:3]), True)
    assert 0.8 < honest < 1.25
    assert guess < 0.05
    stated = np.log(shares**3 / (shares**3).sum(axis=1, keepdims=True))  # too sure
    sharpness = []
    for trials in (10, 100, 1000):
        record = record_of(stated[:trials], labels[:trials])
        beta, guess = Calibration().fitted(record, True)
        powers = np.exp(beta * stated)
        fitted = (1.0 - guess) * powers / powers.sum(axis=1, keepdims=True) + guess / K
        np.testing.assert_allclose(Calibration().probabilities(record, stated, True), fitted, rtol=1e-9)
        sharpness.append(beta)
    assert sharpness == sorted(sharpness, reverse=True)
    losses = [-np.log(p[np.arange(1000), labels]).mean() for p in (shares, fitted, np.exp(stated))]
    assert losses[1] - losses[0] < 0.1 * (losses[2] - losses[0])  # of 1,000 labels


@pytest.mark.small
def test_scores_have_no_unit() -> None:
    """Scores that grow all the time, as those of a Perceptron do, are as good as scores that stay."""
    rng = np.random.default_rng(0)
    labels = rng.integers(K, size=800)
    scores = rng.normal(size=(800, K))
    scores[np.arange(800), labels] += 1.0
    grown = scores * np.linspace(1.0, 20.0, 800)[:, None]
    plain = Calibration().probabilities(record_of(scores, labels), scores[-50:])
    other = Calibration().probabilities(record_of(grown, labels), grown[-50:])
    np.testing.assert_allclose(plain, other, atol=0.1)


@pytest.mark.small
def test_the_ring_keeps_the_latest_whatever_the_cuts() -> None:
    rng = np.random.default_rng(1)
    size = 2 * RING + 77
    scores, labels = rng.normal(size=(size, K)), rng.integers(K, size=size).astype(np.int32)
    whole, parts = record_of(scores, labels), new_record(K)
    for begin in range(0, size, 13):
        keep_table(
            parts,
            scores[begin : begin + 13].copy(),
            labels[begin : begin + 13].copy(),
            np.full(len(labels[begin : begin + 13]), K),
        )
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)
    kept, met = latest(whole)
    np.testing.assert_array_equal(kept, scores[-RING:])
    np.testing.assert_array_equal(met, labels[-RING:])


@pytest.mark.small
def test_classes_that_join_have_no_scores_before() -> None:
    record = record_of(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 1]))
    wider = widened(record, 3)
    keep_table(
        wider, np.array([[0.5, 0.2, 0.1]]), np.array([2], np.int32), np.array([2])
    )  # discovered: it had no score
    keep_table(wider, np.array([[0.5, 0.2, 0.1]]), np.array([2], np.int32), np.array([3]))
    scores, labels = latest(wider)
    np.testing.assert_array_equal(scores, [[0.9, 0.1, -np.inf], [0.2, 0.8, -np.inf], [0.5, 0.2, 0.1]])
    assert labels.tolist() == [0, 1, 2]
    assert Calibration().probabilities(wider, np.array([[0.1, 0.2, -np.inf]]))[0, 2] == 0.0


def test_a_long_call_leaves_what_many_short_ones_do() -> None:
    data = linmax.datasets.majority_problem(n=8, r=4, k=3, noise=0.1, trials=RING + 900, seed=5)
    whole, parts = linmax.Learner("perceptron"), linmax.Learner("perceptron")
    rows = [{f"v{i}": float(vote) for i, vote in enumerate(row)} for row in data.votes.tolist()]
    for row, label in zip(rows[:20], data.labels[:20].tolist(), strict=True):
        whole.learn(row, label)
    size, names = len(rows) - 20, whole.attributes
    values = np.array([[row[name] for name in names] for row in rows[20:]])
    indptr, columns = np.arange(size + 1) * len(names), np.tile(np.arange(len(names)), size)
    places = np.array([whole._current_model.known.index(label) for label in data.labels[20:].tolist()])
    whole._learn_rows(indptr, columns, values.ravel(), places)
    for row, label in zip(rows, data.labels.tolist(), strict=True):
        parts.learn(row, label)
    for one, other in zip(whole._current_model.record, parts._current_model.record, strict=True):
        np.testing.assert_array_equal(one, other)


def test_fits_are_made_at_moments_of_their_own() -> None:
    moments = [fit_moment(judged) for judged in range(5000)]
    assert all(0 <= judged - moment <= RING - RECENT for judged, moment in enumerate(moments))
    assert moments == sorted(moments)
    assert all(judged - moment <= max(0, judged // 8) for judged, moment in enumerate(moments))


LEARNERS = [
    "perceptron",
    "winnow(1.1)",
    "A-perceptron",
    "AR-winnow(1.1)",
    "V-perceptron",
    "softmax",
    "auto",
    "vr-combine",
]


@pytest.mark.parametrize("learner", LEARNERS)
def test_as_sure_as_right_and_the_same_through_every_face(learner: str) -> None:
    data = linmax.datasets.majority_problem(n=12, r=6, k=3, noise=0.1, trials=1500, seed=3)
    votes, labels = data.votes[:1000], data.labels[:1000]
    options: dict[str, Any] = {"classes": range(3)}
    later = linmax.instances(votes=data.votes[1000:], **options)
    model = linmax.run(learner, linmax.instances(votes=votes, **options), labels).model
    found = model.predict_proba(later)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    right = (found.argmax(axis=1) == data.labels[1000:]).mean()
    assert abs(found.max(axis=1).mean() - right) < 0.08
    fusion = linmax.VoteFusion(learner, classes=range(3))
    for begin in range(0, 1000, 250):
        fusion.partial_fit(votes[begin : begin + 250], labels[begin : begin + 250])
    np.testing.assert_array_equal(fusion.predict_proba(data.votes[1000:]), found)
    one = linmax.Learner(learner, classes=range(3))
    for row, label in zip(votes.tolist(), labels.tolist(), strict=True):
        one.learn(votes=row, label=label)
    for row, expected in zip(data.votes[1000:1020].tolist(), found, strict=False):
        np.testing.assert_array_equal(list(one.predict_proba(votes=row).values()), expected)
