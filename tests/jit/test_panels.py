"""Scores of sixteen instances at once against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from linmax.jit import panels, vote_leads, vote_panels
from linmax.jit.compiling import JIT

pytestmark = pytest.mark.skipif(not JIT, reason="without the compiler the reference is what runs")

LANES, TABLE = panels.LANES, vote_panels.TABLE


@njit
def add_lanes(scores: Any, panel: Any, base: int, values: Any) -> None:
    panels.add_lanes(scores, panel, base, values)


@njit
def fill_tables(weights: Any, unit: float, tables: Any) -> tuple[float, float]:
    return vote_panels.fill_tables(weights, unit, tables)


@njit
def magnitude(values: Any) -> float:
    return panels.magnitude(values)


@njit
def sum_codes(scores: Any, codes: Any, base: int, tables: Any, unit: Any) -> None:
    vote_panels.sum_codes(scores, codes, base, tables, unit)


@njit
def close_codes(sums: Any, codes: Any, base: int, tables: Any, slack: int) -> int:
    return vote_leads.close_codes(sums, codes, base, tables, slack)


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


def weights_for(random: np.random.Generator, size: int) -> tuple[np.ndarray, float]:
    """Weights of mixed signs, and the unit in which their magnitudes use all the steps there are."""
    weights = random.standard_normal(size)
    return weights, vote_panels.whole_steps(-(-size // 4)) / np.abs(weights).sum() if size else 1.0


def filled_tables(random: np.random.Generator, groups: int) -> np.ndarray:
    tables = np.zeros(TABLE * groups, np.int8)
    fill_tables(*weights_for(random, 4 * groups), tables)
    return tables


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 25, 64])
def test_magnitude(size: int) -> None:
    values = whole(np.random.default_rng(size), size).astype(float)
    assert magnitude(values) == panels.plain_magnitude(values)


@pytest.mark.parametrize("size", [0, 1, 4, 11, 25, 32, 33, 50, 90])
def test_tables_hold_the_sums_of_all_subsets(size: int) -> None:
    random = np.random.default_rng(size)
    groups = -(-size // 4)
    weights, unit = weights_for(random, size)
    found = np.zeros(TABLE * groups, np.int8)
    total, off = fill_tables(weights, unit, found)
    wanted = found.copy()
    assert (total, off) == pytest.approx(vote_panels.plain_fill_tables(weights, unit, wanted), rel=1e-12)
    assert np.array_equal(found, wanted)
    steps = np.zeros(4 * groups, int)
    steps[:size] = np.floor(weights * unit + 0.5)
    assert total == pytest.approx(np.abs(weights * unit).sum())
    assert off == pytest.approx(np.abs(weights * unit - steps[:size]).sum())
    for group in range(groups):
        low, high = found[group * TABLE :][:LANES].view(np.uint8), found[group * TABLE + LANES :][:LANES]
        sums = low + 2 ** vote_panels.digit_bits(groups) * high.astype(int)
        assert sums[0b1010] == steps[4 * group + 1] + steps[4 * group + 3]


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("groups", [1, 7, 8, 9, 20])
def test_no_sum_outgrows_its_digits(groups: int, sign: float) -> None:
    """All weights of one sign, all voters for one row: the largest sum that there is."""
    tables, weights = np.zeros(TABLE * groups, np.int8), np.full(4 * groups, sign)
    fill_tables(weights, vote_panels.whole_steps(groups) / weights.size, tables)
    codes, sums = np.full(TABLE * groups, 15, np.int8), np.zeros(2 * LANES, np.int16)
    close_codes(sums, codes, 0, tables, 0)
    assert np.all(np.abs(sums - sign * vote_panels.whole_steps(groups)) <= 2 * groups)


@pytest.mark.parametrize("pairs", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("groups", [1, 4, 8, 9])
def test_sums_of_codes(pairs: int, groups: int) -> None:
    random = np.random.default_rng(pairs)
    tables = filled_tables(random, groups)
    block = pairs * groups * TABLE
    codes = random.integers(0, 16, 2 * block).astype(np.int8)
    for base in (0, block):
        found, wanted = (np.full((2 * pairs, LANES), 7.0, np.float32) for _ in range(2))
        sum_codes(found, codes, base, tables, np.float32(0.25))
        vote_panels.plain_sum_codes(wanted, codes, base, tables, 0.25)
        assert np.array_equal(found, wanted)
        for slack in (-3000, -1, 0, 40, 32767):
            sums, plain = (np.zeros(2 * pairs * LANES, np.int16) for _ in range(2))
            close = close_codes(sums, codes, base, tables, slack)
            assert close == vote_leads.plain_close_codes(plain, codes, base, tables, slack)
            assert np.array_equal(sums, plain)
            assert sums[vote_panels.sum_place(1, 9)] == 4 * found[1, 9]


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
