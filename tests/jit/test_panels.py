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
def add_lanes(scores: Any, panel: Any, base: int, values: Any) -> None:
    panels.add_lanes(scores, panel, base, values)


@njit
def sum_codes(scores: Any, codes: Any, base: int, values: Any) -> None:
    panels.sum_codes(scores, codes, base, values)


@njit
def next_lane(scores: Any, slack: float, start: int) -> int:
    return panels.next_lane(scores, slack, start)


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


@pytest.mark.parametrize("classes", [*range(1, 18), 40])
def test_sum_codes(classes: int) -> None:
    random = np.random.default_rng(classes)
    values = whole(random, 9)
    codes = random.integers(-1, classes, 11 * LANES).astype(np.int8)  # -1: the voter abstains
    for base in (0, 2 * LANES):
        found, wanted = (np.full((classes, LANES), 7.0, np.float32) for _ in range(2))
        sum_codes(found, codes, base, values)
        panels.plain_sum_codes(wanted, codes, base, values)
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("rows", [2, 3, 9])
def test_next_lane(rows: int) -> None:
    random = np.random.default_rng(rows)
    scores = whole(random, rows, LANES)
    scores[0] += 6.0
    for slack in (-100.0, -1.0, 0.0, 3.5, 100.0):
        for start in range(LANES):
            assert next_lane(scores, slack, start) == panels.plain_next_lane(scores, slack, start)


def test_a_lane_without_numbers_counts_as_close() -> None:
    scores = np.zeros((2, LANES), np.float32)
    scores[0], scores[0, 11] = 9.0, np.nan
    assert next_lane(scores, 1.0, 0) == panels.plain_next_lane(scores, 1.0, 0) == 11
