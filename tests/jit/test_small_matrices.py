"""Short rows and small matrices in vectors: against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from linmax.jit import small_matrices
from linmax.jit.compiling import kernel

SIZES = [4, 8, 12, 16, 36]


@kernel(allocates=True)
def added(to: np.ndarray, of: np.ndarray, factor: float, size: int) -> None:
    small_matrices.add_times(to, of, factor, size)


@kernel(allocates=True)
def solved(factor: np.ndarray, least: np.ndarray, x: np.ndarray) -> None:
    small_matrices.factorise(factor, least)
    small_matrices.solve_blocks(factor, x)


def plainly_solved(factor: np.ndarray, least: np.ndarray, x: np.ndarray) -> None:
    small_matrices.plain_factorise(factor, least)
    small_matrices.plain_solve_blocks(factor, x)


@pytest.mark.small
@pytest.mark.parametrize("size", range(10))
@pytest.mark.parametrize("add", [added, small_matrices.plain_add_times])
def test_rows_are_added_up_to_the_last_number(add, size):
    to, of = np.arange(10.0), 1.0 + np.arange(10.0) ** 2
    expected = to + np.where(np.arange(10) < size, -0.5 * of, 0.0)
    add(to, of, -0.5, size)
    np.testing.assert_allclose(to, expected)


@pytest.mark.small
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("solve", [solved, plainly_solved])
def test_systems_are_solved(solve, size):
    random = np.random.default_rng(size)
    rows = random.normal(size=(2 * size, size))
    matrix, x = rows.T @ rows, random.normal(size=size + 3)
    factor, right = np.triu(matrix), x.copy()
    solve(factor, np.zeros(size), x)
    np.testing.assert_allclose(matrix @ x[:size], right[:size], atol=1e-9)
    assert x[size:].tolist() == right[size:].tolist()
    upper = np.triu(factor, 1) + np.diag(1.0 / np.diag(factor))
    np.testing.assert_allclose(upper.T @ upper, matrix, atol=1e-9)
    assert not np.tril(factor, -1).any()


@pytest.mark.small
@pytest.mark.parametrize("solve", [solved, plainly_solved])
def test_a_matrix_that_is_not_definite_is_solved_as_far_as_bounds_allow(solve):
    factor, x = np.ones((4, 4)), np.ones(4)
    solve(factor, np.full(4, 1e-12), x)
    assert np.isfinite(x).all()
    assert np.diag(factor).tolist() == pytest.approx([1.0, 1e6, 1e6, 1e6])
