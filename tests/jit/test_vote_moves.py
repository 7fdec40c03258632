"""ALMA's step in vectors, against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from linmax.jit import vote_moves
from linmax.jit.compiling import JIT

pytestmark = pytest.mark.skipif(not JIT, reason="without the compiler the reference is what runs")


@njit
def norm_moves(copies: Any, up: int, down: int, amount: float, halves: int, bounds: Any) -> int:
    return vote_moves.norm_moves(copies, up, down, amount, halves, bounds)


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
