"""Weighted sums of rows against plain loops, for every stride that a learner can have."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from linmax.engine.coordinates import stride_for
from linmax.jit import scores as row_sums
from linmax.jit.compiling import JIT

pytestmark = pytest.mark.skipif(not JIT, reason="without the compiler the reference is what runs")

STRIDES = sorted({stride_for(k) for k in (*range(1, 70), 100, 130)})
LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 16, 17, 31, 60, 100]


@njit
def sum_rows(
    scores: Any, start: Any, first: int, factor: float, weights: Any, base: int, stride: int, index: Any, values: Any,
    lo: int, hi: int,
) -> None:  # fmt: skip
    row_sums.sum_rows(scores, start, first, factor, weights, base, stride, index, values, lo, hi)


@njit
def sum_dense(
    scores: Any, start: Any, first: int, factor: float, weights: Any, base: int, stride: int, values: Any
) -> None:
    row_sums.sum_dense(scores, start, first, factor, weights, base, stride, values)


@njit
def largest_but(scores: Any, known: int, skip: int) -> float:
    return row_sums.largest_but(scores, known, skip)


@njit
def place_of(scores: Any, known: int, skip: int, least: float, last: int) -> int:
    return row_sums.place_of(scores, known, skip, least, last)


def case(stride: int, length: int, base: int, whole: bool, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    features = length + 3

    def numbers(size: int) -> np.ndarray:
        return rng.integers(-8, 9, size).astype(float) if whole else rng.normal(size=size)

    weights = numbers(base + features * stride)
    index = rng.integers(0, features, length).astype(np.int32)
    return numbers(stride), weights, index, numbers(length)


def pairs(
    scores: np.ndarray, weights: np.ndarray, base: int, index: np.ndarray, values: np.ndarray, lo: int, hi: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """What the vectors and the plain loops make of the same numbers, from the scores on or from another row."""
    stride, found = len(scores), []
    for fast, plain, row in (
        (sum_rows, row_sums.plain_sum_rows, (index, values, lo, hi)),
        (sum_dense, row_sums.plain_sum_dense, (values,)),
    ):
        for first, factor in [(0, 1.0), (0, 3.0), (base - stride, 3.0)][: 2 + (base >= stride)]:
            ours, theirs = scores.copy(), scores.copy()
            other = factor != 1.0
            fast(ours, weights if other else ours, first, factor, weights, base, stride, *row)
            plain(theirs, weights if other else theirs, first, factor, weights, base, stride, *row)
            found.append((ours, theirs))
    return found


@pytest.mark.parametrize("stride", STRIDES)
def test_equal_plain_loops(stride: int) -> None:
    """Whole numbers: the same to the last bit, in whatever order they are added."""
    for length in LENGTHS:
        for base in (0, 1, 5, stride, stride + 3):
            scores, weights, index, values = case(stride, length, base, whole=True, seed=length)
            for fast, plain in pairs(scores, weights, base, index, values, 0, length):
                assert np.array_equal(fast, plain), length


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(STRIDES), st.integers(0, 70), st.integers(0, 40), st.integers(0, 10**6), st.data())
def test_equal_to_rounding(stride: int, length: int, base: int, seed: int, data: st.DataObject) -> None:
    scores, weights, index, values = case(stride, length, base, whole=False, seed=seed)
    lo = data.draw(st.integers(0, length))
    hi = data.draw(st.integers(lo, length))
    size = np.abs(scores).max() + (3.0 + np.abs(values).sum()) * np.abs(weights).max(initial=0.0)
    for fast, plain in pairs(scores, weights, base, index, values, lo, hi):
        np.testing.assert_allclose(fast, plain, rtol=0, atol=1e-14 * size)


def test_only_the_scores_of_the_stride_are_written() -> None:
    for stride in (1, 4, 8, 16, 24, 40):
        scores, weights, index, values = case(stride, 9, stride, whole=True, seed=stride)
        room = np.concatenate([scores, np.full(32, 7.0)])
        sum_rows(room, room, 0, 1.0, weights, stride, stride, index, values, 0, 9)
        sum_dense(room, weights, 0, 1.0, weights, stride, stride, values)
        assert (room[stride:] == 7.0).all()


def test_infinite_and_missing_weights_keep_their_meaning() -> None:
    weights = np.array([np.inf, 1.0, np.nan, 2.0])
    scores = np.zeros(2)
    sum_dense(scores, scores, 0, 1.0, weights, 0, 2, np.array([1.0, 1.0]))
    assert np.isnan(scores[0])
    assert scores[1] == 3.0


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([-np.inf, np.nan, -2.0, 0.0, 1.0, 1e300]), max_size=33), st.integers(0, 40))
def test_largest_score_and_its_place(scores: list[float], skip: int) -> None:
    padded = np.full(-(-max(1, len(scores)) // 8) * 8, 1e308)  # beyond the known classes, never to be found
    padded[: len(scores)] = scores
    largest = row_sums.plain_largest_but(padded, len(scores), skip)
    assert largest_but(padded, len(scores), skip) == largest
    for last, least in itertools.product((0, 1), (largest, -1.0)):
        expected = row_sums.plain_place_of(padded, len(scores), skip, least, last)
        assert place_of(padded, len(scores), skip, least, last) == expected
