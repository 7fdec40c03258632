"""Normalizations and combinatorial fusion analysis against definitions written out class by class."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from linmax.normalization import (
    NORMALIZATIONS,
    Normalizer,
    cognitive_diversity,
    combine_scores,
    diversity_strength,
    rank_score,
    ranks,
)

# -- one vector at a time, in plain Python -----------------------------------------------------------------------


def slow_ranks(s):
    above = [sum(other > own for other in s) for own in s]
    same = [sum(other == own for other in s) for own in s]
    return [a + (e + 1) / 2 for a, e in zip(above, same, strict=True)]


def slow(kind, s):
    k = len(s)
    if kind == "minmax":
        return [(v - min(s)) / (max(s) - min(s)) if max(s) > min(s) else 0.0 for v in s]
    if kind == "sum":
        lifted = [v - min(0.0, min(s)) for v in s]
        return [v / sum(lifted) if sum(lifted) > 0 else 0.0 for v in lifted]
    if kind == "softmax":
        powers = [math.exp(v - max(s)) for v in s]
        return [p / sum(powers) for p in powers]
    if kind == "borda":
        return [(k - r) / (k - 1) if k > 1 else 0.0 for r in slow_ranks(s)]
    if kind == "log":
        shares = slow("softmax" if min(s) < 0 else "sum", s)
        return [1 + math.log(max(p, 1e-6)) / math.log(1e6) if any(shares) else 0.0 for p in shares]
    leaders = [v == max(s) for v in s]
    return [leader / sum(leaders) for leader in leaders]


SCORES = arrays(np.float64, st.tuples(*[st.integers(1, 4)] * 3), elements=st.integers(-8, 8).map(lambda i: i / 4))


@settings(max_examples=60, deadline=None)
@given(SCORES)
def test_every_kind_is_its_definition(scores):
    kinds = NORMALIZATIONS
    copies = Normalizer(kinds).apply(scores)
    assert copies.shape == (scores.shape[0], scores.shape[1] * len(kinds), scores.shape[2])
    for t, i in np.ndindex(scores.shape[:2]):
        for q, kind in enumerate(kinds):
            np.testing.assert_allclose(copies[t, i * len(kinds) + q], slow(kind, scores[t, i].tolist()), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1.0, 1e200, 1.7e308])
def test_any_scale_of_scores_stays_in_the_unit_interval(scale):
    scores = np.array([[[-1.0, 0.5, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.25, 1.0, 1.0]]]) * scale
    copies = Normalizer().apply(scores)
    assert np.isfinite(copies).all()
    assert copies.min() >= 0.0
    assert copies.max() <= 1.0
    unscaled = ("minmax", "borda", "onehot")
    np.testing.assert_allclose(
        Normalizer(unscaled).apply(scores), Normalizer(unscaled).apply(scores / scale), atol=1e-9
    )


def test_names():
    assert Normalizer().kinds == ("log",)
    assert Normalizer(NORMALIZATIONS).kinds == NORMALIZATIONS
    for bad, message in [("min-max", "must be one of minmax"), ([], "at least one"), (["log", "log"], "distinct")]:
        with pytest.raises(ValueError, match=message):
            Normalizer(bad)


@pytest.mark.parametrize(
    ("scores", "error", "said"),
    [
        ([[0.1, 0.2]], ValueError, "(trials, raters, classes), got shape (1, 2)"),
        ([[[0.1, float("nan")]]], ValueError, "got nan at (0, 0, 1); fill it in, or equal scores to abstain"),
        ([[["a", "b"]]], TypeError, "must be numbers"),
        (np.zeros((2, 2, 0)), ValueError, "at least one class"),
    ],
)
def test_bad_scores(scores, error, said):
    for use in (Normalizer().apply, cognitive_diversity):
        with pytest.raises(error, match=re.escape(said)):
            use(scores)


# -- combinatorial fusion analysis --------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(SCORES)
def test_diversity_is_its_definition(scores):
    trials, raters, k = scores.shape
    expected = np.zeros((raters, raters))
    for a, b in np.ndindex(raters, raters):
        for t in range(trials):
            f, g = (sorted(slow("minmax", scores[t, i].tolist()), reverse=True) for i in (a, b))
            expected[a, b] += math.sqrt(sum((x - y) ** 2 for x, y in zip(f, g, strict=True)) / k) / trials
    found = cognitive_diversity(scores)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    if raters > 1:
        off = expected[~np.eye(raters, dtype=bool)].reshape(raters, -1)
        np.testing.assert_allclose(diversity_strength(scores), off.mean(axis=1), atol=1e-12)


def test_diversity_in_stretches(monkeypatch):
    scores = np.random.default_rng(0).normal(size=(50, 4, 3))
    at_once = cognitive_diversity(scores)
    monkeypatch.setattr("linmax.normalization.STRETCH", 7)
    np.testing.assert_allclose(cognitive_diversity(scores), at_once, atol=1e-12)


def test_rank_score_function_of_a_known_example():
    scores = [3.0, 9.0, 6.0, 3.0]
    assert ranks(scores).tolist() == [3.5, 1.0, 2.0, 3.5]
    assert rank_score(scores).tolist() == [1.0, 0.5, 0.0, 0.0]


def test_the_six_combinations():
    random = np.random.default_rng(1)
    scores, performance = random.random((5, 3, 4)), [0.5, 0.2, 0.3]
    for by in ("score", "rank"):
        for weights in (None, "diversity", performance):
            shares = {None: np.ones(3), "diversity": diversity_strength(scores)}.get(
                weights if not isinstance(weights, list) else "", np.array(performance)
            )
            found = combine_scores(scores, by, weights)
            for t, c in np.ndindex(5, 4):
                rated = [
                    slow("minmax", scores[t, i].tolist()) if by == "score" else slow_ranks(scores[t, i].tolist())
                    for i in range(3)
                ]
                mean = sum(w * r[c] for w, r in zip(shares / shares.sum(), rated, strict=True))
                assert found[t, c] == pytest.approx(mean if by == "score" else -mean)
    upside_down = combine_scores(scores, "rank", performance, reciprocal=True)
    np.testing.assert_allclose(upside_down, combine_scores(scores, "rank", [2.0, 5.0, 10 / 3]))


def test_equal_raters_have_no_diversity_to_weigh_by():
    alike = np.tile([[[0.0, 1.0, 0.5]]], (3, 2, 1))
    np.testing.assert_array_equal(combine_scores(alike, weights="diversity"), combine_scores(alike))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"weights": [1.0]}, "2 numbers >= 0"),
        ({"weights": [1.0, -1.0]}, "2 numbers >= 0"),
        ({"weights": [0.0, 0.0]}, "not all 0"),
        ({"weights": [0.0, 1.0], "reciprocal": True}, "weights > 0"),
        ({"weights": "performance"}, "must be one of diversity"),
        ({"by": "votes"}, "must be one of score, rank"),
    ],
)
def test_bad_combinations(options, said):
    with pytest.raises(ValueError, match=said):
        combine_scores(np.zeros((1, 2, 3)), **options)
