"""Structs by address: Python and kernels read and set the same fields."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from numba import float64, int64

from linmax.jit.compiling import JIT, kernel
from linmax.jit.struct import Struct, act, entry

pytestmark = pytest.mark.small


class Inner(Struct):
    table: np.ndarray = float64[:, ::1]


class Outer(Struct):
    count: int = int64
    total: float = float64
    following: int = int64  # the address of a kernel
    values: np.ndarray = float64[::1]
    inner: Inner = Inner.numba_type


@kernel(int64(Outer.numba_type, int64, int64))
def add_up(outer: Outer, begin: int, end: int) -> int:
    values, table = outer.values, outer.inner.table
    for i in range(begin, end):
        outer.total += values[i] + table[i, table.shape[1] - 1]
        outer.count += 1
    return outer.count


@kernel(int64(int64, int64, int64))
def pass_on(address: int, begin: int, end: int) -> int:
    outer = outer_at(address)
    return act(outer.following, outer, begin, end) + act(outer.following, address, end, end)


outer_at = Outer.from_address()


def made() -> Outer:
    return Outer(values=np.arange(4.0), inner=Inner(table=np.array([[0.0, 10.0], [0.0, 20.0]])), count=3)


def test_kernels_and_python_see_the_same_fields() -> None:
    outer = made()
    assert add_up(outer, 0, 2) == outer.count == 5
    assert outer.total == 31.0
    outer.values[1] = 5.0  # in place
    outer.bind(total=0.5, inner=Inner(table=np.ones((2, 3))))
    add_up(outer, 1, 2)
    assert (outer.count, outer.total) == (6, 6.5)
    assert outer.values[1] == 5.0


def test_kernels_are_called_by_address() -> None:
    outer = made()
    outer.following = entry(add_up)
    assert pass_on(outer.address, 0, 2) == 10
    assert outer.total == 31.0


@pytest.mark.skipif(not JIT, reason="other objects keep no addresses")
def test_arrays_of_another_kind_are_refused() -> None:
    outer = made()
    for wrong in (np.arange(4), np.zeros((2, 2)), np.arange(8.0)[::2]):
        with pytest.raises(TypeError, match="values must be a contiguous array of type float64 with 1 axes"):
            outer.values = wrong
    with pytest.raises(TypeError, match="make it again instead of copying it"):
        copy.deepcopy(outer)
