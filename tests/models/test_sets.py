"""Prediction sets: how often they hold the label, through change, by every face and cut; and answers that are sure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB

import linmax
from linmax.engine.coverage import COVERAGES, LEVEL_STEPS, MISSES, follow, reach
from linmax.engine.record import RING, keep_table, new_record, widened
from linmax.theory.bounds import adaptive_coverage


def missed(gaps: np.ndarray, place: int) -> tuple[np.ndarray, np.ndarray]:
    """Which labels the sets of one coverage miss, one trial after the other, and the levels at the end."""
    levels, kept = MISSES.copy(), np.zeros(RING)
    found = []
    for t, gap in enumerate(gaps.tolist()):
        found.append(gap > reach(levels, kept, t, float(COVERAGES[place])))
        follow(levels, kept, t, gap)
        kept[t % RING] = gap
    return np.array(found), levels


@pytest.mark.small
@pytest.mark.parametrize("place", range(len(COVERAGES)))
def test_coverage_is_kept_whatever_the_sequence(place: int) -> None:
    """Gaps that rise all the time, that never rise, that come at random, or that miss whenever they can."""
    random = np.random.default_rng(place)
    size = 1500
    sequences = [
        np.arange(size, dtype=float),
        -np.arange(size, dtype=float),
        np.zeros(size),
        random.exponential(size=size) * np.where(np.arange(size) < size // 2, 1.0, 20.0),
        np.where(random.random(size) < 0.5, 1e300, 0.0),
    ]
    for gaps in sequences:
        found, levels = missed(gaps, place)
        share = np.cumsum(found) / np.arange(1, size + 1)
        bounds = [adaptive_coverage(t, LEVEL_STEPS[place], MISSES[place]) for t in range(1, size + 1)]
        assert (np.abs(share - MISSES[place]) <= np.array(bounds) + 1e-12).all()
        # The misses so far follow from the level alone.
        derived = MISSES[place] + (MISSES[place] - levels[place]) / (LEVEL_STEPS[place] * size)
        assert share[-1] == pytest.approx(derived, abs=1e-9)


@pytest.mark.small
def test_an_adversary_reaches_the_order_of_the_bound() -> None:
    """It misses until the sets hold everything, then never again: the levels cannot be driven further."""
    levels, kept, misses = MISSES.copy(), np.zeros(RING), 0
    place = int(np.flatnonzero(COVERAGES == 0.5)[0])
    for t in range(400):
        largest = reach(levels, kept, t, 0.5)
        gap = float(t) if np.isfinite(largest) else 0.0
        misses += gap > largest
        follow(levels, kept, t, gap)
        kept[t] = gap
        assert -LEVEL_STEPS[place] <= levels[place] <= 1.0 + LEVEL_STEPS[place]
    excess = misses / 400 - 0.5
    assert (
        0.5 * adaptive_coverage(400, LEVEL_STEPS[place], 0.5)
        < excess
        <= adaptive_coverage(400, LEVEL_STEPS[place], 0.5)
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [({"trials": 0, "step": 0.1}, "trials"), ({"trials": 5, "step": 0}, "step"), ({"trials": 5, "step": 1, "miss": 1}, "miss")],
)  # fmt: skip
def test_the_bound_refuses(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        adaptive_coverage(**options)


@pytest.mark.small
def test_levels_do_not_hang_on_cuts_and_survive_growth() -> None:
    random = np.random.default_rng(2)
    size = RING + 300
    scores, labels = random.normal(size=(size, 3)), random.integers(3, size=size).astype(np.int32)
    whole, parts = new_record(3, followed=True), new_record(3, followed=True)
    keep_table(whole, scores, labels, np.full(len(labels), 3))
    for begin in range(0, size, 17):
        own = labels[begin : begin + 17].copy()
        keep_table(parts, scores[begin : begin + 17].copy(), own, np.full(len(own), 3))
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)
    wider = widened(whole, 5)
    np.testing.assert_array_equal(wider.levels, whole.levels)
    np.testing.assert_array_equal(wider.gaps, whole.gaps)


def changing(trials: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Votes of ten voters, the best of whom become the worst half-way."""
    random = np.random.default_rng(seed)
    labels, good = random.integers(0, 4, trials), np.linspace(0.25, 0.6, 10)
    skill = np.where(np.arange(trials)[:, None] < trials // 2, good, good[::-1])
    right = random.random((trials, 10)) < skill
    return np.where(right, labels[:, None], (labels[:, None] + random.integers(1, 4, (trials, 10))) % 4), labels


@pytest.mark.parametrize("learner", ["auto", "AR-perceptron"])
def test_sets_cover_through_a_change_and_alike_through_every_face(learner: str, tmp_path: Path) -> None:
    votes, labels = changing(1800, seed=4)
    fusion, one = linmax.VoteFusion(learner, classes=range(4)), linmax.Learner(learner, classes=range(4))
    covered = []
    for t in range(1800):
        found = one.predict_set(votes=votes[t].tolist())
        covered.append(labels[t] in found)
        one.learn(votes=votes[t].tolist(), label=int(labels[t]))
    shares = np.convolve(covered[400:], np.ones(1000) / 1000, "valid")
    assert shares.min() >= 0.88
    assert shares.max() <= 0.92
    fusion.partial_fit(votes[:700], labels[:700])
    fusion.save(tmp_path / "fusion.linmax")
    fusion = linmax.VoteFusion.load(tmp_path / "fusion.linmax").partial_fit(votes[700:], labels[700:])
    for coverage in (0.99, 0.9, 0.77, 0.5, 0.1):
        expected = [one.predict_set(votes=row, coverage=coverage) for row in votes[:40].tolist()]
        assert fusion.predict_set(votes[:40], coverage) == expected
        assert all(found[0] == label for found, label in zip(expected, fusion.predict(votes[:40]), strict=True))


def fused_models(seed: int) -> tuple[linmax.FusionClassifier, np.ndarray, np.ndarray]:
    """Two models fused over 1,500 rows, and 1,000 more."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 3, 3000)
    X = random.normal(size=(3000, 4)) + y[:, None] * [[0.7, 0.0, 0.4, 0.0]]
    fusion = linmax.FusionClassifier([("bayes", GaussianNB()), ("dummy", DummyClassifier())], cv="prefit")
    for _, model in fusion.estimators:
        model.fit(X[:500], y[:500])
    for begin in range(500, 2000, 500):
        fusion.partial_fit(X[begin : begin + 500], y[begin : begin + 500])
    return fusion, X[2000:], y[2000:]


def test_answers_of_fused_models_that_are_not_sure() -> None:
    fusion, X, _ = fused_models(1)
    sure = fusion.predict(X, reject=0.2)
    expected = np.where(fusion.predict_proba(X).max(axis=1) < 0.8, None, fusion.predict(X).astype(object))
    assert sure.tolist() == expected.tolist()
    assert None in sure.tolist()
    with pytest.raises(ValueError, match="reject must lie between 0 and 1"):
        fusion.predict(X[:1], reject=2.0)


def test_sets_of_fused_models() -> None:
    covered = []
    for seed in range(1, 5):
        fusion, X, y = fused_models(seed)
        sets = fusion.predict_set(X, coverage=0.9)
        covered += [label in found for label, found in zip(y, sets, strict=True)]
        assert np.mean([len(found) for found in sets]) < 2.5
    assert 0.85 <= np.mean(covered) <= 0.95


def test_answers_that_are_sure() -> None:
    data = linmax.datasets.majority_problem(n=20, r=10, k=5, noise=0.3, trials=3000, seed=6)
    fusion = linmax.VoteFusion().fit(data.votes[:1500], data.labels[:1500])
    sure, all_answers = fusion.predict(data.votes[1500:], reject=0.3), fusion.predict(data.votes[1500:])
    answered = np.array([answer is not None for answer in sure])
    assert 0.2 < answered.mean() < 1.0
    np.testing.assert_array_equal(sure[answered], all_answers[answered])
    assert np.mean(sure[answered] != data.labels[1500:][answered]) <= 0.3
    assert all(answer is None for answer in fusion.predict(data.votes[1500:], reject=1e-6))
    one = linmax.Learner(classes=range(5))
    assert one.predict(votes=data.votes[0].tolist(), reject=0.1) is None  # it knows nothing yet
    for row, label in zip(data.votes[:300].tolist(), data.labels.tolist(), strict=False):
        one.learn(votes=row, label=label)
    row = data.votes[301].tolist()
    sure_enough = max(one.predict_proba(votes=row).values())
    assert one.predict(votes=row, reject=1.0 - sure_enough + 1e-9) == one.predict(votes=row)
    assert one.predict(votes=row, reject=1.0 - sure_enough - 1e-9) is None


def test_invalid_coverage_and_risk() -> None:
    fusion = linmax.VoteFusion("perceptron").fit([["a"], ["b"]], ["a", "b"])
    for value in (0.0, 1.0, 90, -0.1):
        with pytest.raises(ValueError, match="coverage must lie between 0 and 1"):
            fusion.predict_set([["a"]], coverage=value)
        with pytest.raises(ValueError, match="reject must lie between 0 and 1"):
            fusion.predict([["a"]], reject=value)
    with pytest.raises(TypeError, match="coverage must be a number"):
        fusion.predict_set([["a"]], coverage="90 %")  # type: ignore[arg-type]
    assert linmax.Learner().predict_set(votes={"a": "x"}) == ("x",)  # a vote makes its class known
    assert linmax.Learner().predict_set({"a": 1.0}) == ()
