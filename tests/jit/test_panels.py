"""Scores of sixteen instances at once against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from linmax.jit import panels
from linmax.jit.compiling import JIT

pytestmark = pytest.mark.skipif(not JIT, reason="without the compiler the reference is what runs")

LANES = panels.LANES


@njit
def fill_tables(weights: Any, unit: float, tables: Any) -> None:
    panels.fill_tables(weights, unit, tables)


@njit
def magnitude(values: Any) -> float:
    return panels.magnitude(values)


@njit
def close_codes(scores: Any, codes: Any, start: int, tables: Any, slack: float) -> int:
    return panels.close_codes(scores, codes, start, tables, slack)


@njit
def close_ratings(scores: Any, ratings: Any, start: int, weights: Any, slack: float) -> int:
    return panels.close_ratings(scores, ratings, start, weights, slack)


@njit
def used_below(uses: Any, first: int, limit: int) -> int:
    return panels.used_below(uses, first, limit)


@njit
def lowest_bit(bits: int) -> int:
    return panels.lowest_bit(bits)


def whole(random: np.random.Generator, *shape: int) -> np.ndarray:
    """Whole numbers, whose sums are exact in whatever order they are added."""
    return random.integers(-8, 9, shape).astype(np.float32)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 25, 64])
def test_magnitude(size: int) -> None:
    values = whole(np.random.default_rng(size), size).astype(float)
    assert magnitude(values) == np.abs(values).sum()


@pytest.mark.parametrize("size", [0, 1, 4, 11, 25, 32, 90])
def test_tables_hold_the_sums_of_all_subsets(size: int) -> None:
    weights = whole(np.random.default_rng(size), size).astype(float)
    tables = np.zeros(-(-size // 4) * LANES, np.float32)
    fill_tables(weights, 0.5, tables)
    padded = np.append(weights, [0.0] * (-size % 4)).reshape(-1, 4)
    subsets = np.arange(LANES)[:, None] >> np.arange(4) & 1
    assert np.array_equal(tables.reshape(-1, LANES), 0.5 * padded @ subsets.T)


@pytest.mark.parametrize("rows", [2, 3, 8])
@pytest.mark.parametrize("groups", [1, 4, 9])
def test_sums_of_codes(rows: int, groups: int) -> None:
    random = np.random.default_rng(rows)
    tables, block = whole(random, groups * LANES), rows * groups * LANES
    codes = random.integers(0, 16, 2 * block).astype(np.int8)
    for start in (0, block):
        for slack in (-30.0, -1.0, 0.0, 3.5, 100.0):
            found, wanted = (np.full((rows, LANES), 7.0, np.float32) for _ in range(2))
            close = close_codes(found, codes, start, tables, slack)
            assert close == panels.plain_close_codes(wanted, codes, start, tables, slack)
            assert np.array_equal(found, wanted)


@pytest.mark.parametrize("rows", [2, 3, 8])
@pytest.mark.parametrize("size", [0, 1, 5, 31])
def test_sums_of_ratings(rows: int, size: int) -> None:
    random = np.random.default_rng(rows)
    weights, block = whole(random, size), rows * size * LANES
    ratings = whole(random, 2 * block)
    for start in (0, block):
        for slack in (-30.0, -1.0, 0.0, 3.5, 100.0):
            found, wanted = (np.full((rows, LANES), 7.0, np.float32) for _ in range(2))
            close = close_ratings(found, ratings, start, weights, slack)
            assert close == panels.plain_close_ratings(wanted, ratings, start, weights, slack)
            assert np.array_equal(found, wanted)


def test_a_lane_with_nan_counts_as_close() -> None:
    ratings, weights = np.zeros(2 * LANES, np.float32), np.ones(1, np.float32)
    ratings[:LANES], ratings[11] = 9.0, np.nan
    scores = np.zeros((2, LANES), np.float32)
    assert close_ratings(scores, ratings, 0, weights, 1.0) == 1 << 11
    assert panels.plain_close_ratings(scores, ratings, 0, weights, 1.0) == 1 << 11


def test_used_below() -> None:
    uses = np.random.default_rng(0).integers(0, 6, 3 * LANES).astype(np.int32)
    for first in (0, 5, 2 * LANES):
        assert used_below(uses, first, 5) == panels.plain_used_below(uses, first, 5)


@pytest.mark.parametrize("bits", [1, 0b1011000, 2**62])
def test_lowest_bit(bits: int) -> None:
    assert lowest_bit(bits) == panels.plain_lowest_bit(bits)
