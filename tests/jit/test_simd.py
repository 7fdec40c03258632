"""The explicit vectors against plain words, for every shape that a learner can have."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from linmax.engine.engine import stride_for
from linmax.jit import simd
from linmax.jit.compiling import JIT

pytestmark = pytest.mark.skipif(not JIT, reason="without the compiler the plain words are what runs")

STRIDES = sorted({stride_for(k) for k in (*range(1, 70), 100, 130)})
LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 16, 17, 31, 60, 100]


@njit
def add_rows(scores: Any, weights: Any, base: int, stride: int, index: Any, values: Any, lo: int, hi: int) -> None:
    simd.add_rows(scores, weights, base, stride, index, values, lo, hi)


@njit
def add_dense(scores: Any, weights: Any, base: int, stride: int, values: Any) -> None:
    simd.add_dense(scores, weights, base, stride, values)


@njit
def start_rows(
    scores: Any, weights: Any, base: int, stride: int, constant: float, index: Any, values: Any, lo: int, hi: int
) -> None:
    simd.start_rows(scores, weights, base, stride, constant, index, values, lo, hi)


@njit
def start_dense(scores: Any, weights: Any, base: int, stride: int, constant: float, values: Any) -> None:
    simd.start_dense(scores, weights, base, stride, constant, values)


@njit
def best_but(scores: Any, known: int, skip: int, largest: int) -> int:
    return simd.best_but(scores, known, skip, largest)


@njit
def bits_of(values: Any, first: int) -> tuple[int, int]:
    bits = simd.nonzero_bits(values, first)
    return bits, simd.lowest_bit(bits) if bits else 64


@njit
def put_pairs(
    index: Any, z: Any, count: int, places: Any, sign: float, rows: Any, values: Any, lo: int, hi: int
) -> None:
    simd.put_pairs(index, z, count, places, sign, rows, values, lo, hi)


@njit
def twice_sinh(x: Any) -> Any:
    result = np.zeros(x.size)
    for j in range(x.size):
        result[j] = simd.twice_sinh(x[j])
    return result


@njit
def sinh_weights(weights: Any, memory: Any, index: Any, rate: float) -> float:
    return simd.sinh_weights(weights, memory, index, rate)


# -- scores -------------------------------------------------------------------------------------------------------


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
        (add_rows, simd.plain_add_rows, (base, stride, index, values, lo, hi)),
        (add_dense, simd.plain_add_dense, (base, stride, values)),
        (start_rows, simd.plain_start_rows, (base, stride, 3.0, index, values, lo, hi)),
        (start_dense, simd.plain_start_dense, (base, stride, 3.0, values)),
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


# -- the best class but the label, and what is not 0 --------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([-np.inf, -2.0, -1.0, 0.0, 1.0, 1e300]), min_size=0, max_size=33),
    st.integers(-1, 40),
    st.booleans(),
)
def test_best_but(scores: list[float], skip: int, largest: bool) -> None:
    room = np.full(-(-len(scores) // 8) * 8 + 8, 1e308)  # beyond the known classes, never to be found
    room[: len(scores)] = scores
    got = best_but(room, len(scores), skip, int(largest))
    others = [score for j, score in enumerate(scores) if j != skip]
    if others and max(others) == -np.inf:  # a score that is no number: any class will do
        assert 0 <= got < len(scores)
        assert got != skip
        return
    assert got == simd.plain_best_but(np.array(scores), len(scores), skip, int(largest))


@pytest.mark.parametrize("length", LENGTHS)
def test_put_pairs(length):
    random = np.random.default_rng(length)
    rows, values = random.integers(0, 2**31 - 1, length + 5, dtype=np.int32), random.normal(size=length + 5)
    values[::3] = -0.0
    for sign, places in ((1.0, (3, 5, 24)), (-1.0, (0, 1, 2)), (1.0, (7, 2**40, 1))):
        found = np.full(2 * length + 9, -7), np.full(2 * length + 9, np.nan)
        wanted = found[0].copy(), found[1].copy()
        put_pairs(*found, 3, places, sign, rows, values, 2, 2 + length)
        simd.plain_put_pairs(*wanted, 3, places, sign, rows.astype(np.int64), values, 2, 2 + length)
        assert [one.tobytes() for one in found] == [one.tobytes() for one in wanted]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([0.0, -0.0, 1.0, 5e-324, -3.0]), max_size=150), st.data())
def test_nonzero_bits(values: list[float], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(values)))
    bits, lowest = bits_of(np.array(values), first)
    expected = simd.plain_nonzero_bits(np.array(values), first)
    assert bits % 2**64 == expected
    assert lowest == (simd.plain_lowest_bit(expected) if expected else 64)


# -- sines --------------------------------------------------------------------------------------------------------


def exact_twice_sinh(x: float) -> Decimal:
    with localcontext() as context:
        context.prec = 100
        half = (Decimal(x) * Decimal(2).ln()).exp()
        return half - 1 / half


def test_twice_sinh_is_right_to_two_units_in_the_last_place() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([10.0 ** rng.uniform(-40, -1, 300), rng.uniform(0, 3, 700), rng.uniform(0, 350, 300)])
    for ours, theirs in zip(twice_sinh(x), map(exact_twice_sinh, x.tolist()), strict=True):
        assert abs(Decimal(float(ours)) - theirs) <= 2 * Decimal(math.ulp(float(theirs)))
    assert np.array_equal(twice_sinh(-x), -twice_sinh(x))


def test_twice_sinh_of_whole_numbers_is_exact_while_it_can_be() -> None:
    whole = np.arange(-300.0, 301.0)
    assert np.array_equal(twice_sinh(whole), 2.0**whole - 2.0**-whole)
    assert twice_sinh(np.array([1000.0, 1e9, 1e308])).tolist() == [2.0**1000] * 3


def test_twice_sinh_agrees_with_the_plain_words() -> None:
    x = np.concatenate([np.linspace(-40.0, 40.0, 4001), [1e-300, 0.0, -0.0]])
    plain = np.array([simd.plain_twice_sinh(v) for v in x.tolist()])
    np.testing.assert_allclose(twice_sinh(x), plain, rtol=1e-15, atol=0)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 15, 16, 17, 26, 121])
def test_sinh_weights_are_those_of_one_at_a_time(count: int) -> None:
    rng = np.random.default_rng(count)
    memory = rng.normal(scale=9.0, size=(2, 200))
    index = rng.permutation(200)[:count]
    weights, expected = np.full(200, 5.0), np.full(200, 5.0)
    largest = sinh_weights(weights, memory, index, 0.3)
    expected[index] = twice_sinh(memory[0, index] * 0.3)
    assert np.array_equal(weights, expected)
    assert largest == np.abs(expected[index]).max(initial=0.0)
