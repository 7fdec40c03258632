"""Rows of single-precision numbers, eight at a time: what the members of a pool do with the cells of an attribute.

Arrays are contiguous, and places in them are counted through all dimensions. What is left of a row after its eights is
done one by one. Plain loops would do the same; but rows are short, their length is not known beforehand and the arrays
might overlap, so that the compiler makes of them mostly tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import float32, int64, types
from numba.core import cgutils
from numba.extending import intrinsic

from linmax.contract import JIT

__all__ = ["add_log_row", "add_row", "shrink_row", "sum_row"]

LANES = 8
FUSE = ("contract",)
# ln(1 + t) for 0 <= t < 1 is t times a polynomial, to 1e-6; the highest power first.
SERIES = (0.0107644244, -0.0551448926, 0.134674124, -0.225897743, 0.328242114, -0.499471771, 0.999981137)
FLOAT, I32, I64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)


class _Row:
    """Writes code that goes along a row."""

    def __init__(self, context: Any, builder: Any) -> None:
        self.context, self.builder = context, builder
        self.lanes, self.first = 0, None

    def along(self, width: Any, body: Callable[[], None]) -> None:
        """Write the body twice: for eights, and for what is left."""
        eights = self.builder.and_(width, ir.Constant(I64, -LANES))
        for lanes, start, stop in ((LANES, ir.Constant(I64, 0), eights), (1, eights, width)):
            with cgutils.for_range_slice(self.builder, start, stop, ir.Constant(I64, lanes), intp=I64) as (first, _):
                self.lanes, self.first = lanes, first
                body()

    def data(self, kind: Any, array: Any) -> Any:
        """The memory of an array."""
        return cgutils.create_struct_proxy(kind)(self.context, self.builder, array).data

    def at(self, data: Any, place: Any) -> Any:
        """Pointer to the numbers at hand of the row that begins there."""
        there = self.builder.gep(data, [self.builder.add(place, self.first)])
        return self.builder.bitcast(there, ir.VectorType(FLOAT, self.lanes).as_pointer())

    def load(self, data: Any, place: Any) -> Any:
        """The numbers at hand."""
        return self.builder.load(self.at(data, place), align=4)

    def store(self, value: Any, data: Any, place: Any) -> None:
        """Write them."""
        self.builder.store(value, self.at(data, place), align=4)

    def all(self, value: Any) -> Any:
        """One number for each of those at hand."""
        vector = ir.Constant(ir.VectorType(value.type, self.lanes), ir.Undefined)
        one = self.builder.insert_element(vector, value, ir.Constant(I32, 0))
        return self.builder.shuffle_vector(one, vector, ir.Constant(ir.VectorType(I32, self.lanes), [0] * self.lanes))

    def same(self, number: float, kind: Any = FLOAT) -> Any:
        """A constant for each."""
        return ir.Constant(ir.VectorType(kind, self.lanes), [number] * self.lanes)

    def fused(self, a: Any, b: Any, c: Any) -> Any:
        """A b + c."""
        return self.builder.fadd(self.builder.fmul(a, b, flags=FUSE), c, flags=FUSE)

    def minus_log(self, values: Any) -> Any:
        """-ln of positive numbers: the exponent is read off the bits, the rest is a polynomial."""
        builder, bits = self.builder, ir.VectorType(I32, self.lanes)
        held = builder.bitcast(values, bits)
        power = builder.sub(builder.ashr(held, self.same(23, I32)), self.same(127, I32))
        power = builder.sitofp(power, values.type)
        rest = builder.or_(builder.and_(held, self.same(0x7FFFFF, I32)), self.same(0x3F800000, I32))
        rest = builder.fsub(builder.bitcast(rest, values.type), self.same(1.0))
        series = self.same(SERIES[0])
        for number in SERIES[1:]:
            series = self.fused(series, rest, self.same(number))
        return builder.fneg(self.fused(series, rest, builder.fmul(power, self.same(math.log(2.0)))))


if JIT:

    @intrinsic
    def add_row(_, target, at, source, place, width, factor):  # type: ignore[no-untyped-def]
        """``target[at + c] += factor * source[place + c]`` for c < width."""

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            row = _Row(context, builder)
            to, of = row.data(sig.args[0], args[0]), row.data(sig.args[2], args[2])
            row.along(
                args[4],
                lambda: row.store(
                    row.fused(row.all(args[5]), row.load(of, args[3]), row.load(to, args[1])), to, args[1]
                ),
            )
            return context.get_dummy_value()

        return types.void(target, int64, source, int64, int64, float32), codegen

    @intrinsic
    def shrink_row(_, cells, means, variances, width, x, steps):  # type: ignore[no-untyped-def]
        """AROW's step for one attribute: with a = variance x, mean += steps[0] a and variance -= steps[1] a^2."""

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            row = _Row(context, builder)
            data, steps_data = row.data(sig.args[0], args[0]), row.data(sig.args[5], args[5])

            def step() -> None:
                variance = row.load(data, args[2])
                move, shrink = row.load(steps_data, ir.Constant(I64, 0)), row.load(steps_data, args[3])
                along = builder.fmul(variance, row.all(args[4]))
                row.store(row.fused(move, along, row.load(data, args[1])), data, args[1])
                lost = builder.fmul(shrink, builder.fmul(along, along))
                row.store(builder.fsub(variance, lost), data, args[2])

            row.along(args[3], step)
            return context.get_dummy_value()

        return types.void(cells, int64, int64, int64, float32, steps), codegen

    @intrinsic
    def sum_row(_, cells, place, width):  # type: ignore[no-untyped-def]
        """The sum of ``cells[place + c]`` for c < width."""

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            row = _Row(context, builder)
            data = row.data(sig.args[0], args[0])
            sums = {
                lanes: cgutils.alloca_once_value(builder, ir.Constant(ir.VectorType(FLOAT, lanes), [0.0] * lanes))
                for lanes in (LANES, 1)
            }

            def add() -> None:
                total = sums[row.lanes]
                builder.store(builder.fadd(builder.load(total), row.load(data, args[1])), total)

            row.along(args[2], add)
            numbers = [
                builder.extract_element(builder.load(total), ir.Constant(I32, lane))
                for lanes, total in sums.items()
                for lane in range(lanes)
            ]
            while len(numbers) > 1:
                numbers = [builder.fadd(*numbers[i : i + 2]) for i in range(0, len(numbers) - 1, 2)] + (
                    numbers[-1:] if len(numbers) % 2 else []
                )
            return numbers[0]

        return float32(cells, int64, int64), codegen

    @intrinsic
    def add_log_row(_, target, at, source, place, width, total, smoothing, factor):  # type: ignore[no-untyped-def]
        """``target[at + c] -= factor ln(total - source[place + c] + smoothing)`` for c < width, to 1e-6."""

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            row = _Row(context, builder)
            to, of = row.data(sig.args[0], args[0]), row.data(sig.args[2], args[2])

            def add() -> None:
                rest = builder.fsub(row.all(args[5]), row.load(of, args[3]))
                log = row.minus_log(builder.fadd(rest, row.all(args[6])))
                row.store(row.fused(row.all(args[7]), log, row.load(to, args[1])), to, args[1])

            row.along(args[4], add)
            return context.get_dummy_value()

        return types.void(target, int64, source, int64, int64, float32, float32, float32), codegen

else:

    def _part(array: np.ndarray, place: int, width: int) -> np.ndarray:
        return array.reshape(-1)[place : place + width]

    def add_row(target: np.ndarray, at: int, source: np.ndarray, place: int, width: int, factor: float) -> None:
        _part(target, at, width)[:] += factor * _part(source, place, width)

    def shrink_row(cells: np.ndarray, means: int, variances: int, width: int, x: float, steps: np.ndarray) -> None:
        along = _part(cells, variances, width) * x
        _part(cells, means, width)[:] += steps[0] * along
        _part(cells, variances, width)[:] -= steps[1] * along * along

    def sum_row(cells: np.ndarray, place: int, width: int) -> np.float32:
        return _part(cells, place, width).sum(dtype=np.float32)

    def add_log_row(
        target: np.ndarray,
        at: int,
        source: np.ndarray,
        place: int,
        width: int,
        total: float,
        smoothing: float,
        factor: float,
    ) -> None:
        _part(target, at, width)[:] -= factor * np.log(total - _part(source, place, width) + smoothing)
