"""ALMA's step in vectors, and the search for the next close block, against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from linmax.jit import vote_leads, vote_moves, vote_panels
from linmax.jit.compiling import JIT
from linmax.jit.panels import LANES

pytestmark = pytest.mark.skipif(not JIT, reason="without the compiler the reference is what runs")


@njit
def norm_moves(copies: Any, up: int, down: int, amount: float, halves: int, bounds: Any) -> int:
    return vote_moves.norm_moves(copies, up, down, amount, halves, bounds)


@njit
def next_close(sums: Any, codes: Any, tables: Any, slack: int, span: Any, uses: Any, limit: int) -> int:
    return vote_leads.next_close(sums, codes, tables, slack, span, uses, limit)


def copies_of(random: np.random.Generator, width: int) -> np.ndarray:
    copies = np.zeros((vote_moves.COPIES, 1, width))
    copies[: vote_moves.OLD] = random.normal(size=(vote_moves.OLD, 1, width))
    return copies


@pytest.mark.parametrize("width", [4, 12, 64])
@pytest.mark.parametrize("halves", [2, 3, 7, 16, 32])
def test_steps_of_norms(width: int, halves: int) -> None:
    random = np.random.default_rng(width + halves)
    down, up = (int(bits) for bits in random.integers(0, 2 ** min(width, 62), 2))
    up &= ~down
    found = copies_of(random, width)
    wanted = found.copy()
    bounds = (1e-140, 1e140, 1e100)
    result = vote_moves.plain_norm_moves(wanted, up, down, 0.3, halves, bounds)
    assert norm_moves(found, up, down, 0.3, halves, bounds) == result == vote_moves.DONE | vote_moves.FITS
    touched = [i for i in range(width) if (up | down) >> i & 1]
    assert found[:, 0, touched].tobytes() == wanted[:, 0, touched].tobytes()
    assert found[: vote_moves.GROWN].tobytes() == wanted[: vote_moves.GROWN].tobytes()


@pytest.mark.parametrize(
    ("value", "amount", "wanted"),
    [(1.0, -1.0, 3), (1.0, 1e120, 1), (1.0, 1e200, 0), (0.0, 1e-200, 2), (0.0, np.nan, 0)],
)
def test_steps_that_leave_the_range(value: float, amount: float, wanted: int) -> None:
    """A power of 1e120 is beyond the limit, those of 1e200 and 1e-200 beyond the bounds; one of 0 is 0."""
    copies = np.zeros((vote_moves.COPIES, 1, 8))
    copies[vote_moves.MEMORY] = value
    plain = copies.copy()
    bounds = (1e-140, 1e140, 1e100)
    assert norm_moves(copies, 0b100, 0, amount, 2, bounds) & 3 == wanted
    assert vote_moves.plain_norm_moves(plain, 0b100, 0, amount, 2, bounds) == wanted
    assert copies[vote_moves.OLD_MEMORY, 0, 2] == value


@pytest.mark.parametrize("limit", [0, 2, 5])
@pytest.mark.parametrize(("pairs", "groups"), [(1, 1), (3, 7), (5, 9)])
def test_the_next_close_block(pairs: int, groups: int, limit: int) -> None:
    random = np.random.default_rng(pairs + limit)
    tables, blocks = np.zeros(groups * vote_panels.TABLE, np.int8), 5
    weights = random.normal(size=4 * groups)
    vote_panels.plain_fill_tables(weights, vote_panels.whole_steps(groups) / np.abs(weights).sum(), tables)
    codes = random.integers(0, 16, blocks * pairs * groups * vote_panels.TABLE).astype(np.int8)
    uses = random.integers(0, 6, blocks * LANES).astype(np.int32)
    uses[2 * LANES : 3 * LANES] = 5  # a block without any
    for begin, end in ((0, 80), (3, 77), (17, 18), (33, 47), (40, 41), (79, 80)):
        for slack in (-6000, -1500, 0, 32767):
            sums, plain = (np.zeros(2 * pairs * LANES, np.int16) for _ in range(2))
            wanted = vote_leads.plain_next_close(plain, codes, tables, slack, (begin, end), uses, limit)
            assert next_close(sums, codes, tables, slack, (begin, end), uses, limit) == wanted
            assert wanted < 0 or np.array_equal(sums, plain)
