"""The fusion of the members of the pool for attributes: against the formulas, and what it knows about repeated rows."""

from __future__ import annotations

import numpy as np
import pytest

import linmax
from linmax.core.contract import LARGEST, Trials
from linmax.data.arrays import cut, no_trials
from linmax.learners.attributes.group import DENIED
from linmax.learners.attributes.stacker import LEAST_MARKS, MOST_MARKS, MemberFusion, fingerprints
from reference_learners import ReferenceFusion

MEMBERS, K, TRIALS = 3, 4, 120


def scores_of(trials: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores of members, a third of them 0, and labels that the first member often knows."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, K, trials)
    scores = random.normal(size=(trials, MEMBERS, K)) * np.array([1.0, 5.0, 0.2])[:, None]
    scores[:, 0] += 1.5 * np.eye(K)[labels]
    scores[random.random((trials, MEMBERS)) < 0.3] = 0.0
    return scores.astype(np.float32), labels


SHAPE = np.zeros(LARGEST + 1, np.int64)


def trials_of(known: object, labels: object, weights: object) -> Trials:
    given = np.asarray(labels, np.int32)
    return no_trials(len(given))._replace(
        known=np.broadcast_to(np.asarray(known, np.int64), given.shape).copy(),
        labels=given,
        weights=np.asarray(weights, float),
    )


def fused(
    fusion: MemberFusion, scores: np.ndarray, marks: np.ndarray, trials: Trials, learn: bool = True
) -> np.ndarray:
    return fusion.fuse(scores.copy(), np.asarray(marks, np.int64), trials, SHAPE, learn, K)[1]


@pytest.mark.small
@pytest.mark.parametrize("denied", [False, True])
def test_agrees_with_the_formulas(denied: bool) -> None:
    """With repeated rows, weights, classes that join with their first label, and classes that are denied."""
    scores, labels = scores_of(TRIALS)
    random = np.random.default_rng(1)
    rows, weights = random.integers(1, 60, TRIALS), random.choice([0.5, 1.0, 7.0, 1e4], TRIALS)
    labels[:20] %= 3  # the last class is late
    labels = np.array(list(dict.fromkeys(labels.tolist()))).argsort()[labels]  # and none comes before a lower one
    fusion, slow, known = MemberFusion(), ReferenceFusion(MEMBERS), 0
    fusion.join(MEMBERS)
    for t in range(TRIALS):
        label = int(labels[t])
        if denied and t > 30 and t % 2:
            label = DENIED - label
        one, here = scores[t : t + 1], slice(t, t + 1)
        trial = trials_of(known, [label], weights[here])
        asked = fused(fusion, one, rows[here], trial, learn=False)
        table = fused(fusion, one, rows[here], trial)
        np.testing.assert_array_equal(asked, table)  # a prediction changes nothing
        if known:
            expected = slow.shares(int(rows[t]), one[0, :, :known].astype(float))
            np.testing.assert_allclose(np.exp(table[0, :known]), expected, rtol=1e-4, atol=1e-6)
        slow.learn(int(rows[t]), one[0, :, :known].astype(float), label, weights[t])
        known = max(known, label + 1)
    assert fusion.repeats == slow.repeats > 20
    assert known == K


@pytest.mark.small
def test_denials_alone_do_not_turn_members_around() -> None:
    fusion = MemberFusion()
    fusion.join(2)
    for _ in range(60):  # both vote for class 0 always, which is always wrong
        scores = np.zeros((1, 2, K), np.float32)
        scores[0, :, 0] = 3.0
        fused(fusion, scores, np.zeros(1), trials_of(3, [DENIED - 0], [1.0]))
    assert fusion.weights.min() >= 0.0


@pytest.mark.small
def test_fingerprints_ignore_zeros() -> None:
    def of(values: dict[int, float], dense: tuple[float, ...] = ()) -> int:
        found = np.zeros(1, np.int64)
        columns = np.array(list(values), np.int32)
        fingerprints(
            np.array([dense]), np.array([0, len(columns)]), columns, np.array(list(values.values()), float), found
        )
        return int(found[0])

    assert of({3: 1.5, 9: -2.0}) == of({9: -2.0, 3: 1.5}) == of({9: -2.0, 4: 0.0, 3: 1.5})
    different = [
        of({}), of({3: 1.5}), of({9: -2.0}), of({3: 1.5, 9: 2.0}), of({3: -2.0, 9: 1.5}), of({9: -2.0, 4: 1.5}),
        of({3: 3.0, 9: -1.0}), of({}, (1.5, -2.0)), of({}, (-2.0, 1.5)),
    ]  # fmt: skip
    assert len(set(different)) == len(different)
    assert of({}, (0.0, 1.0)) == of({1: 1.0}, (0.0, 0.0)) == of({1: 1.0})


def test_rows_of_few_values_have_different_fingerprints() -> None:
    rows = np.stack(np.meshgrid(*[np.arange(1.0, 17.0)] * 4), axis=-1).reshape(-1, 4)
    found = np.zeros(len(rows), np.int64)
    fingerprints(rows, np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0), found)
    assert len(np.unique(found)) >= len(rows) - 20
    assert 0 < found.min() < found.max() < 2**31


@pytest.mark.small
def test_the_set_of_rows_doubles_at_the_same_trials_however_they_are_cut() -> None:
    trials = 5 * LEAST_MARKS
    scores, labels = scores_of(trials)
    marks = np.random.default_rng(2).integers(1, 2**31, trials)
    marks[1::3] = marks[::3][: len(marks[1::3])]
    known, found = np.maximum.accumulate(np.append(0, labels + 1))[:-1], []
    for size in (1, 7, trials):
        fusion = MemberFusion()
        fusion.join(MEMBERS)
        for begin in range(0, trials, size):
            part = slice(begin, min(trials, begin + size))
            fused(fusion, scores[part], marks[part], trials_of(known[part], labels[part], np.ones(part.stop - begin)))
        found.append(fusion.arrays)
        assert fusion.repeats == len(marks[1::3])
    for name, array in found[0].items():
        assert all(np.array_equal(array, other[name]) for other in found), name


def test_the_set_of_rows_has_an_end() -> None:
    """The most recent rows are known, of many more than there is room for."""
    trials = MOST_MARKS * 3 // 2
    fusion = MemberFusion()
    fusion.join(1)
    marks = np.random.default_rng(3).integers(1, 2**31, trials)
    scores, given = np.zeros((trials, 1, 2), np.float32), trials_of(2, np.zeros(trials), np.ones(trials))
    for part in (slice(0, trials), slice(trials - 20_000, trials)):
        before = fusion.repeats
        fusion.fuse(scores[part], marks[part], cut(given, part.start, part.stop), SHAPE, True, 2)
    assert len(fusion.marks) == MOST_MARKS
    assert fusion.repeats - before > 18_000


def noisy(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    rows = random.normal(size=(size, 5))
    return rows, (rows[:, 0] - rows[:, 1] + 1.5 * random.normal(size=size) > 0.0).astype(int)


def test_repeated_rows_do_no_harm() -> None:
    rows, labels = noisy(1500, 0)
    far, truth = noisy(4000, 1)
    order = np.random.default_rng(2).permutation(np.tile(np.arange(len(rows)), 4))
    once = linmax.run("auto", linmax.instances(attributes=rows), labels).model
    often = linmax.run("auto", linmax.instances(attributes=rows[order]), labels[order]).model
    errors = [float(np.mean(model.predict(linmax.instances(attributes=far)) != truth)) for model in (once, often)]
    assert errors[1] < 1.05 * errors[0]
    assert often.pool.fusion.repeats == 3 * len(rows)


def test_probabilities_of_a_rare_class_are_its_share_or_better() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(12_000, 4))
    labels = (random.random(12_000) < 1.0 / (1.0 + np.exp(4.3 - 0.8 * rows[:, 0]))).astype(int)
    learned, test = slice(0, 8000), slice(8000, 12_000)
    for model in (
        linmax.LinearMaxClassifier().fit(rows[learned], labels[learned]),
        linmax.LinearMaxClassifier().partial_fit(rows[learned], labels[learned]),
    ):
        found = model.predict_proba(rows[test])[:, 1]
        share = labels[learned].mean()
        losses = [-np.log(np.where(labels[test] == 1, p, 1.0 - p)).mean() for p in (found, np.full(len(found), share))]
        assert losses[0] < losses[1]
        assert abs(found.mean() - share) < 0.3 * share


def test_class_weights_move_the_threshold() -> None:
    random = np.random.default_rng(0)
    rows = random.normal(size=(4000, 4))
    labels = (random.random(4000) < 1.0 / (1.0 + np.exp(3.5 - rows[:, 0]))).astype(int)
    plain = linmax.LinearMaxClassifier().fit(rows, labels)
    even = linmax.LinearMaxClassifier(class_weight="balanced").fit(rows, labels)
    shares, moved = plain.predict_proba(rows), even.predict_proba(rows)
    factors = len(labels) / (2.0 * np.bincount(labels))
    np.testing.assert_allclose(moved, shares * factors / (shares * factors).sum(axis=1, keepdims=True))
    recall = [np.mean(model.predict(rows)[labels == 1] == 1) for model in (plain, even)]
    assert recall[0] < 0.2 < 0.5 < recall[1]
    given = linmax.LinearMaxClassifier(class_weight={1: 20.0}).partial_fit(rows, labels)
    assert np.mean(given.predict(rows)) > 0.2
