"""The explicit vectors against plain loops, for every shape that a learner can have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from linmax.contract import JIT
from linmax.simd import add_dense, add_rows, plain_add_dense, plain_add_rows

pytestmark = pytest.mark.skipif(not JIT, reason="without the compiler the plain loops are what runs")

STRIDES = [*range(1, 20), 23, 24, 31, 32, 33, 40, 63, 64, 65, 100]
LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 16, 17, 31, 60, 100]


@njit
def rows(scores: Any, weights: Any, base: int, stride: int, index: Any, values: Any, lo: int, hi: int) -> None:
    add_rows(scores, weights, base, stride, index, values, lo, hi)


@njit
def dense(scores: Any, weights: Any, base: int, stride: int, values: Any) -> None:
    add_dense(scores, weights, base, stride, values)


def case(stride: int, length: int, base: int, whole: bool, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    features = length + 3

    def numbers(size: int) -> np.ndarray:
        return rng.integers(-8, 9, size).astype(float) if whole else rng.normal(size=size)

    weights = numbers(base + features * stride)
    index = rng.integers(0, features, length).astype(np.int32)
    return numbers(stride), weights, index, numbers(length)


@pytest.mark.parametrize("stride", STRIDES)
def test_equal_plain_loops(stride: int) -> None:
    """Whole numbers: the same to the last bit, in whatever order they are added."""
    for length in LENGTHS:
        for base in (0, 1, 5):
            scores, weights, index, values = case(stride, length, base, whole=True, seed=length)
            slow, fast = scores.copy(), scores.copy()
            plain_add_rows(slow, weights, base, stride, index, values, 0, length)
            rows(fast, weights, base, stride, index, values, 0, length)
            assert np.array_equal(slow, fast), length
            slow, fast = scores.copy(), scores.copy()
            plain_add_dense(slow, weights, base, stride, values)
            dense(fast, weights, base, stride, values)
            assert np.array_equal(slow, fast), length


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 70), st.integers(0, 70), st.integers(0, 9), st.integers(0, 10**6), st.data())
def test_equal_to_rounding(stride: int, length: int, base: int, seed: int, data: st.DataObject) -> None:
    scores, weights, index, values = case(stride, length, base, whole=False, seed=seed)
    lo = data.draw(st.integers(0, length))
    hi = data.draw(st.integers(lo, length))
    slow, fast = scores.copy(), scores.copy()
    plain_add_rows(slow, weights, base, stride, index, values, lo, hi)
    rows(fast, weights, base, stride, index, values, lo, hi)
    size = np.abs(scores).max() + np.abs(values).sum() * np.abs(weights).max(initial=0.0)
    np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-14 * size)
    slow, fast = scores.copy(), scores.copy()
    plain_add_dense(slow, weights, base, stride, values)
    dense(fast, weights, base, stride, values)
    np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-14 * size)


def test_only_the_scores_of_the_stride_are_written() -> None:
    for stride in (1, 3, 8, 17):
        scores, weights, index, values = case(stride, 9, 2, whole=True, seed=stride)
        room = np.concatenate([scores, np.full(32, 7.0)])
        rows(room, weights, 2, stride, index, values, 0, 9)
        dense(room, weights, 2, stride, values)
        assert (room[stride:] == 7.0).all()


def test_infinite_and_missing_weights_keep_their_meaning() -> None:
    weights = np.array([np.inf, 1.0, np.nan, 2.0])
    scores = np.zeros(2)
    dense(scores, weights, 0, 2, np.array([1.0, 1.0]))
    assert np.isnan(scores[0])
    assert scores[1] == 3.0
