"""Weighted sums of rows against plain loops, for every stride that a learner can have."""

from __future__ import annotations

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
def add_rows(scores: Any, weights: Any, base: int, stride: int, index: Any, values: Any, lo: int, hi: int) -> None:
    row_sums.add_rows(scores, weights, base, stride, index, values, lo, hi)


@njit
def add_dense(scores: Any, weights: Any, base: int, stride: int, values: Any) -> None:
    row_sums.add_dense(scores, weights, base, stride, values)


@njit
def start_rows(
    scores: Any, weights: Any, base: int, stride: int, constant: float, index: Any, values: Any, lo: int, hi: int
) -> None:
    row_sums.start_rows(scores, weights, base, stride, constant, index, values, lo, hi)


@njit
def start_dense(scores: Any, weights: Any, base: int, stride: int, constant: float, values: Any) -> None:
    row_sums.start_dense(scores, weights, base, stride, constant, values)


@njit
def largest_but(scores: Any, known: int, skip: int) -> float:
    return row_sums.largest_but(scores, known, skip)


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
    """What the vectors and the plain loops make of the same numbers, for the four functions."""
    stride, found = len(scores), []
    calls = [
        (add_rows, row_sums.plain_add_rows, (base, stride, index, values, lo, hi)),
        (add_dense, row_sums.plain_add_dense, (base, stride, values)),
        (start_rows, row_sums.plain_start_rows, (base, stride, 3.0, index, values, lo, hi)),
        (start_dense, row_sums.plain_start_dense, (base, stride, 3.0, values)),
    ]
    for fast, plain, arguments in calls if base >= stride else calls[:2]:
        ours, theirs = scores.copy(), scores.copy()
        fast(ours, weights, *arguments)
        plain(theirs, weights, *arguments)
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
        add_rows(room, weights, stride, stride, index, values, 0, 9)
        start_dense(room, weights, stride, stride, 1.0, values)
        assert (room[stride:] == 7.0).all()


def test_infinite_and_missing_weights_keep_their_meaning() -> None:
    weights = np.array([np.inf, 1.0, np.nan, 2.0])
    scores = np.zeros(2)
    add_dense(scores, weights, 0, 2, np.array([1.0, 1.0]))
    assert np.isnan(scores[0])
    assert scores[1] == 3.0


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([-np.inf, np.nan, -2.0, 0.0, 1.0, 1e300]), max_size=33), st.integers(0, 40))
def test_largest_but(scores: list[float], skip: int) -> None:
    padded = np.full(-(-len(scores) // 8) * 8, 1e308)  # beyond the known classes, never to be found
    padded[: len(scores)] = scores
    assert largest_but(padded, len(scores), skip) == row_sums.plain_largest_but(padded, len(scores), skip)
