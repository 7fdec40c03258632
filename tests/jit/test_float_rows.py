"""Operations on short rows of single-precision numbers against NumPy, for whole and partial blocks."""

from __future__ import annotations

import numpy as np
import pytest
from numba import float32, float64, int64, types

from linmax.jit.compiling import kernel
from linmax.jit.float_rows import add_log_rows, add_row, add_rows, entropy_row, log_row, shrink_row, squash_row, sum_row

Single, Rows, Places = float32[::1], float32[:, ::1], int64[::1]


@kernel(
    types.UniTuple(float32, 2)(Single, Rows, Places, Rows, Rows, float64[::1], Single, Single, Single, Single, int64)
)
def along_rows(
    cells: np.ndarray,
    target: np.ndarray,
    places: np.ndarray,
    factors: np.ndarray,
    steps: np.ndarray,
    values: np.ndarray,
    logs: np.ndarray,
    totals: np.ndarray,
    weights: np.ndarray,
    rest: np.ndarray,
    width: int,
) -> tuple[np.float32, np.float32]:
    """All that is done with rows, on five of them with one number before them and one behind."""
    add_rows(target, cells, places, 0, 2, width, factors)
    add_log_rows(logs, cells, places, 2, width, totals, np.float32(0.5), weights, 1)
    total = sum_row(cells, 1 + 2 * width, width)
    entropy = entropy_row(cells, 1 + 2 * width, width, steps, np.float32(0.5), rest)
    add_row(logs, rest, np.float32(3.0), width)
    shrink_row(cells, 1, 1 + width, width, np.float32(0.25), steps)
    log_row(cells, 1 + 3 * width, width)
    squash_row(cells, 1 + 4 * width, values, 0, width)
    return total, entropy


@pytest.mark.small
@pytest.mark.parametrize("width", [1, 2, 4, 8, 11, 20, 24])
def test_rows_in_vectors_and_remainder(width: int) -> None:
    random = np.random.default_rng(width)
    cells, target, factors, steps, logs = (
        random.random(shape).astype(np.float32) for shape in (5 * width + 2, (3, width), (3, 2), (2, width), width)
    )
    cells[1 + 2 * width : 1 + 3 * width] *= 9e5
    places, totals, weights = np.array([1, 1 + 2 * width]), np.float32([3.0, 1e6]), np.float32([9.0, 0.5, -2.0])
    values = random.normal(size=width) * 10.0 ** random.integers(-6, 7, width)
    before, rows = cells.copy(), cells[1:-1].reshape(5, width).astype(float)
    sums, less = target.astype(float), logs.astype(float)
    for j, row in enumerate((0, 2)):
        sums += factors[:, j, None] * rows[row : row + 3]
        less -= weights[1 + j] * np.log(totals[j] - rows[row] + 0.5)
    sizes, rest = steps[1] * rows[2] + 0.5, np.zeros(width, np.float32)
    less += 3.0 * np.log(sizes)
    total, entropy = along_rows(cells, target, places, factors, steps, values, logs, totals, weights, rest, width)
    found = cells[1:-1].reshape(5, width)
    np.testing.assert_allclose(target, sums, rtol=1e-6)
    np.testing.assert_allclose(logs, less, rtol=1e-6)
    np.testing.assert_allclose(total, rows[2].sum(), rtol=1e-6)
    np.testing.assert_allclose(entropy, (steps[0] * sizes * np.log(sizes)).sum(), rtol=1e-6)
    np.testing.assert_allclose(rest, np.log(sizes), rtol=1e-6)
    np.testing.assert_allclose(found[0], rows[0] + steps[0] * 0.25 * rows[1], rtol=1e-6)
    np.testing.assert_allclose(found[1], rows[1] - steps[1] * (0.25 * rows[1]) ** 2, rtol=1e-6)
    np.testing.assert_allclose(found[3], np.log(rows[3]), rtol=1e-6, atol=2e-7)
    np.testing.assert_allclose(found[4], np.copysign(np.log1p(abs(values)), values), rtol=1e-6)
    assert (cells[[0, -1]] == before[[0, -1]]).all()
