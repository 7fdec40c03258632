"""Scores of sixteen instances at once against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from linmax.jit import panels
from linmax.jit.compiling import JIT

pytestmark = pytest.mark.skipif(not JIT, reason="without the compiler the reference is what runs")

LANES, TABLE = panels.LANES, panels.TABLE


@njit
def add_lanes(scores: Any, panel: Any, base: int, values: Any) -> None:
    panels.add_lanes(scores, panel, base, values)


@njit
def fill_tables(steps: Any, tables: Any) -> None:
    panels.fill_tables(steps, tables)


@njit
def sum_codes(scores: Any, codes: Any, base: int, tables: Any, unit: Any) -> None:
    panels.sum_codes(scores, codes, base, tables, unit)


@njit
def close_codes(sums: Any, codes: Any, base: int, tables: Any, slack: int) -> int:
    return panels.close_codes(sums, codes, base, tables, slack)


@njit
def close_lanes(scores: Any, slack: float) -> int:
    return panels.close_lanes(scores, slack)


@njit
def used_below(uses: Any, first: int, limit: int) -> int:
    return panels.used_below(uses, first, limit)


def whole(random: np.random.Generator, *shape: int) -> np.ndarray:
    """Whole numbers, whose sums are exact in whatever order they are added."""
    return random.integers(-8, 9, shape).astype(np.float32)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 8, 31])
def test_add_lanes(count: int) -> None:
    random = np.random.default_rng(count)
    scores, values, panel = whole(random, LANES), whole(random, count), whole(random, (count + 2) * LANES)
    for base in (0, LANES, 7):
        found, wanted = scores.copy(), scores.copy()
        add_lanes(found, panel, base, values)
        panels.plain_add_lanes(wanted, panel, base, values)
        assert np.array_equal(found, wanted)


def filled_tables(random: np.random.Generator, groups: int) -> np.ndarray:
    steps, tables = random.integers(-900, 900, 4 * groups).astype(np.int16), np.zeros(TABLE * groups, np.int8)
    fill_tables(steps, tables)
    return tables


@pytest.mark.parametrize("groups", [0, 1, 3, 7])
def test_tables_hold_the_sums_of_all_subsets(groups: int) -> None:
    random = np.random.default_rng(groups)
    steps, found = random.integers(-8000, 8000, 4 * groups).astype(np.int16), np.zeros(TABLE * groups, np.int8)
    fill_tables(steps, found)
    wanted = found.copy()
    panels.plain_fill_tables(steps, wanted)
    assert np.array_equal(found, wanted)
    for group in range(groups):
        low, high = found[group * TABLE :][:LANES].view(np.uint8), found[group * TABLE + LANES :][:LANES]
        sums = low + 256 * high.astype(int)
        assert sums[0b1010] == int(steps[4 * group + 1]) + steps[4 * group + 3]


@pytest.mark.parametrize("pairs", [1, 2, 3, 8])
@pytest.mark.parametrize("groups", [1, 4, 7])
def test_sums_of_codes(pairs: int, groups: int) -> None:
    random = np.random.default_rng(pairs)
    tables = filled_tables(random, groups)
    block = pairs * groups * TABLE
    codes = random.integers(0, 16, 2 * block).astype(np.int8)
    for base in (0, block):
        found, wanted = (np.full((2 * pairs, LANES), 7.0, np.float32) for _ in range(2))
        sum_codes(found, codes, base, tables, np.float32(0.25))
        panels.plain_sum_codes(wanted, codes, base, tables, 0.25)
        assert np.array_equal(found, wanted)
        for slack in (-3000, -1, 0, 40, 32767):
            sums, plain = (np.zeros(2 * pairs * LANES, np.int16) for _ in range(2))
            close = close_codes(sums, codes, base, tables, slack)
            assert close == panels.plain_close_codes(plain, codes, base, tables, slack)
            assert np.array_equal(sums, plain)
            assert sums[panels.sum_place(1, 9)] == 4 * found[1, 9]


@pytest.mark.parametrize("rows", [2, 3, 9])
def test_close_lanes(rows: int) -> None:
    random = np.random.default_rng(rows)
    scores = whole(random, rows, LANES)
    scores[0] += 6.0
    for slack in (-100.0, -1.0, 0.0, 3.5, 100.0):
        assert close_lanes(scores, slack) == panels.plain_close_lanes(scores, slack)


def test_a_lane_without_numbers_counts_as_close() -> None:
    scores = np.zeros((2, LANES), np.float32)
    scores[0], scores[0, 11] = 9.0, np.nan
    assert close_lanes(scores, 1.0) == panels.plain_close_lanes(scores, 1.0) == 1 << 11


def test_used_below() -> None:
    uses = np.random.default_rng(0).integers(0, 6, 3 * LANES).astype(np.int32)
    for first in (0, 5, 2 * LANES):
        assert used_below(uses, first, 5) == panels.plain_used_below(uses, first, 5)
