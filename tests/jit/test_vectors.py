"""The helpers that write LLVM IR: loops and vectors that do what their docstrings say."""

from __future__ import annotations

from typing import Any

import pytest
from llvmlite import ir
from numba import float64, int64, njit
from numba.extending import intrinsic

from linmax.jit.compiling import JIT
from linmax.jit.vectors import DOUBLE, I32, broadcast, constants, integer, larger, largest_lane, loop

pytestmark = pytest.mark.skipif(not JIT, reason="is about compiled code")


@intrinsic
def count_by_three(_: Any, start: Any, stop: Any) -> Any:
    """1000 for every step of three, plus where the loop ended."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        def body(_j: Any, carried: list[Any]) -> list[Any]:
            return [builder.add(carried[0], integer(1000))]

        end, steps = loop(builder, args[0], 3, args[1], [integer(0)], body)
        return builder.add(end, steps)

    return int64(int64, int64), codegen


@intrinsic
def largest_of_two(_: Any, x: Any, y: Any) -> Any:
    """The largest lane of a vector that holds x seven times and y once, but at least -5."""

    def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        vector = builder.insert_element(broadcast(builder, args[0], 8), args[1], ir.Constant(I32, 5))
        best = largest_lane(builder, larger(builder, vector, constants(-5.0, 8, DOUBLE)))
        return builder.extract_element(best, ir.Constant(I32, 0))

    return float64(float64, float64), codegen


@njit
def call_count(start: int, stop: int) -> int:
    return count_by_three(start, stop)


@njit
def call_largest(x: float, y: float) -> float:
    return largest_of_two(x, y)


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (0, 2), (0, 3), (1, 10), (2, 10), (5, 0)])
def test_a_loop_takes_whole_steps_only(start: int, stop: int) -> None:
    j, steps = start, 0
    while j + 3 <= stop:
        j, steps = j + 3, steps + 1
    assert call_count(start, stop) == j + 1000 * steps


@pytest.mark.parametrize(("x", "y"), [(1.0, 2.0), (2.0, 1.0), (-9.0, -7.0), (0.0, float("inf"))])
def test_the_largest_lane(x: float, y: float) -> None:
    assert call_largest(x, y) == max(x, y, -5.0)
