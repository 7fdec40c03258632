"""Steps over the rows of a linear machine against plain loops, for every stride that a learner can have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from linmax.engine.coordinates import stride_for
from linmax.jit import moves
from linmax.jit.compiling import JIT

pytestmark = pytest.mark.skipif(not JIT, reason="without the compiler the reference is what runs")

STRIDES = sorted({stride_for(k) for k in (2, 3, 8, 9, 20, 70)})


@njit
def move_rows(
    weights: Any, base: int, stride: int, classes: Any, steps: Any, rows: Any, values: Any, lo: int, hi: int
) -> bool:
    return moves.move_rows(weights, base, stride, classes, steps, rows, values, lo, hi)


@njit
def move_dense(weights: Any, base: int, stride: int, classes: Any, steps: Any, values: Any) -> bool:
    return moves.move_dense(weights, base, stride, classes, steps, values)


@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("length", [0, 1, 5, 63, 64, 131])
def test_equal_plain_loops(stride: int, length: int) -> None:
    """Whole numbers and a rate that is a power of two: the same to the last bit, fused or not."""
    random = np.random.default_rng(length)
    for label, rival in {(0, stride - 1), (stride - 1, 0), (1, 0), (min(5, stride - 1), min(2, stride - 2))}:
        weights = random.integers(-9, 10, (length + 4) * stride).astype(float)
        values = random.integers(-2, 3, length + 3).astype(float)
        rows, steps = random.permutation(length + 3).astype(np.int32), (0.5, float(random.integers(0, 2)), 1e100)
        ours, theirs = weights.copy(), weights.copy()
        assert move_rows(ours, stride, stride, (label, rival), steps, rows, values, 2, length + 2)
        assert moves.plain_move_rows(theirs, stride, stride, (label, rival), steps, rows, values, 2, length + 2)
        np.testing.assert_array_equal(ours, theirs)
        assert move_dense(ours, stride, stride, (label, rival), steps, values)
        assert moves.plain_move_dense(theirs, stride, stride, (label, rival), steps, values)
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("value", [1e100, -2e100, 1e308])
@pytest.mark.parametrize("at", ["constant", "first", "last"])
def test_weights_beyond_the_limit_are_told(stride: int, value: float, at: str) -> None:
    values, steps = np.ones(7), (1.0, value if at == "constant" else 1.0, 1e100)
    if at != "constant":
        values[0 if at == "first" else -1] = value
    for classes in ((0, 1), (1, stride - 1 if stride > 2 else 0)):
        assert not move_dense(np.zeros(8 * stride), stride, stride, classes, steps, values)
        rows = np.arange(7, dtype=np.int32)
        assert not move_rows(np.zeros(8 * stride), stride, stride, classes, steps, rows, values, 0, 7)
        assert not moves.plain_move_dense(np.zeros(8 * stride), stride, stride, classes, steps, values)
