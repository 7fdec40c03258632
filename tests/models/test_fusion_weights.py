"""Weights of trials in a fusion: w counts w times, 1 is none, 0 leaves a trial out, whatever the cuts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linmax

FUSED = "AR-winnow(1.1)"


def problem(trials: int = 160) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    data = linmax.datasets.majority_problem(n=7, r=4, k=3, noise=0.1, trials=trials, seed=6)
    return data.votes, data.labels, np.random.default_rng(1).choice([0.0, 0.4, 1.0, 2.0, 3.5], trials)


@pytest.mark.parametrize("learner", [FUSED, "auto"])
def test_ones_are_none_and_zeros_are_left_out(learner: str) -> None:
    votes, labels, weights = problem()
    plain = linmax.VoteFusion(learner, classes=range(3)).fit(votes, labels)
    ones = linmax.VoteFusion(learner, classes=range(3)).fit(votes, labels, sample_weight=np.ones(160))
    assert ones.report().to_dict() == plain.report().to_dict()
    shown = weights > 0.0
    zeros = linmax.VoteFusion(learner, classes=range(3)).fit(votes, labels, np.where(shown, 1.0, 0.0))
    left = linmax.VoteFusion(learner, classes=range(3)).fit(votes[shown], labels[shown])
    assert zeros.report().to_dict() == left.report().to_dict()
    zeros.partial_fit(votes[:5], labels[:5], np.zeros(5))
    assert zeros.report().to_dict() == left.report().to_dict()


@pytest.mark.parametrize("learner", [FUSED, "auto"])
def test_a_weight_scales_the_step_and_is_counted_once(learner: str) -> None:
    votes, labels, weights = problem()
    fusion = linmax.VoteFusion(learner, classes=range(3)).fit(votes, labels, weights)
    assert fusion.report().online.trials == int((weights > 0.0).sum())
    cut = linmax.VoteFusion(learner, classes=range(3))
    for begin, end in ((0, 1), (1, 70), (70, 71), (71, 160)):
        cut.partial_fit(votes[begin:end], labels[begin:end], sample_weight=weights[begin:end])
    assert cut.report().to_dict() == fusion.report().to_dict()
    twice = linmax.VoteFusion(learner, classes=range(3)).fit(votes, labels, np.full(160, 2.0))
    again = linmax.VoteFusion(learner, classes=range(3)).fit(np.repeat(votes, 2, axis=0), np.repeat(labels, 2))
    assert np.corrcoef(list(twice.weights().values()), list(again.weights().values()))[0, 1] > 0.99
    trusted = linmax.VoteFusion(learner, classes=range(3)).fit(votes, labels, np.where(votes[:, 6] == labels, 5.0, 0.2))
    assert trusted.weights()["6"] > fusion.weights()["6"]


def test_weights_with_sides_scores_and_answers_that_were_wrong() -> None:
    votes, labels, weights = problem(60)
    table = {f"v{i}": votes[:, i] for i in range(7)} | {"subject": ["law", "art"] * 30}
    sided = linmax.VoteFusion(FUSED, by="subject").fit(table, labels, weights)
    assert sided.report().online.trials == int((weights > 0.0).sum())
    scores = np.random.default_rng(2).random((60, 2, 3))
    assert linmax.VoteFusion(FUSED).fit(scores, labels, weights).report().online.trials == sided.report().online.trials
    wrong = np.arange(60) % 7 == 0
    first = linmax.VoteFusion(FUSED, classes=range(3)).partial_fit(votes, labels, weights, wrong=wrong)
    assert first.report().online.trials == int(((weights > 0.0) & ~wrong).sum())


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ([1.0], r"one number per trial: got shape \(1,\) for 60 trials"),
        ([-1.0] * 60, "sample_weight of trial 0 must be >= 0"),
        ([np.nan] * 60, "sample_weight of trial 0 must be finite"),
        ([0.0] * 60, "sample_weight.*got only 0"),
    ],
)
def test_bad_weights(weights: Any, told: str) -> None:
    votes, labels, _ = problem(60)
    with pytest.raises(ValueError, match=told):
        linmax.VoteFusion(FUSED).fit(votes, labels, weights)
    fusion = linmax.VoteFusion(FUSED).fit(votes, labels)
    before = fusion.report().to_dict()
    if weights[0] != 0.0:
        with pytest.raises(ValueError, match=told):
            fusion.partial_fit(votes, labels, weights)
    assert fusion.report().to_dict() == before
