"""Hyperbolic sines in vectors: their accuracy, and eight at a time equal to one at a time."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from numba import njit

from linmax.jit import sinh
from linmax.jit.compiling import JIT

pytestmark = pytest.mark.skipif(not JIT, reason="without the compiler the reference is what runs")


@njit
def twice_sinh(x: Any) -> Any:
    result = np.zeros(x.size)
    for j in range(x.size):
        result[j] = sinh.twice_sinh(x[j])
    return result


@njit
def sinh_weights(weights: Any, memory: Any, index: Any, rate: float) -> float:
    return sinh.sinh_weights(weights, memory, index, rate)


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
    plain = np.array([sinh.plain_twice_sinh(v) for v in x.tolist()])
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
