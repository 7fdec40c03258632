"""Short rows of single-precision numbers in vectors of eight or four: how the pools of learners read and step cells.

Arrays are contiguous and indexed flat. Plain loops would compute the same; but rows are short, their length is known at
run time only and the arrays might overlap, so that the compiled loops would mostly run checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import ir
from numba import float32, int64, types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from linmax.jit.compiling import CHECKED, JIT, inside_array
from linmax.jit.vectors import (
    FLOAT,
    FUSE,
    I32,
    I64,
    array_struct,
    broadcast,
    constants,
    data_pointer,
    integer,
    vector_pointer,
)

__all__ = ["add_log_rows", "add_row", "add_rows", "entropy_row", "log_row", "shrink_row", "squash_row", "sum_row"]

BLOCKS = (8, 4, 1)  # elements of a row per step
# ln(1 + t) for 0 <= t < 1 is t times this polynomial, to 2e-7; the highest power comes first.
SERIES = (
    0.005105825797, -0.028991956381, 0.077380738367, -0.135906002346, 0.190713095830, -0.248339454568, 0.333179343220,
    -0.499994356905, 0.999999965160,
)  # fmt: skip


class _Row:
    """Writes code that goes along a row in blocks; within `along`, a block is ``lanes`` elements from ``first`` on."""

    def __init__(self, context: BaseContext, builder: ir.IRBuilder) -> None:
        self.context, self.builder = context, builder
        self.lanes, self.first = 0, None

    def along(self, width: ir.Value, body: Callable[[], None]) -> None:
        """Write the body for blocks of eight, for a block of four, and for single elements."""
        start = integer(0)
        for lanes in BLOCKS:
            stop = self.builder.and_(width, integer(-lanes))
            with cgutils.for_range_slice(self.builder, start, stop, integer(lanes), intp=I64) as (first, _):
                self.lanes, self.first = lanes, first
                body()
            start = stop

    def data(self, kind: types.Array, array: ir.Value) -> ir.Value:
        """Pointer to the first element of an array."""
        return data_pointer(self.context, self.builder, kind, array)

    def within(self, kind: types.Array, array: ir.Value, place: ir.Value, count: ir.Value) -> None:
        """In the checked mode: this many numbers from a place on are in the array."""
        inside_array(self.context, self.builder, kind, array, place, count)

    def block(self, data: ir.Value, place: ir.Value) -> ir.Value:
        """Pointer to the block of the row that starts at ``place``."""
        return vector_pointer(self.builder, data, self.builder.add(place, self.first), self.lanes)

    def load(self, data: ir.Value, place: ir.Value) -> ir.Value:
        """Load the block of a row."""
        return self.builder.load(self.block(data, place), align=4)

    def store(self, value: ir.Value, data: ir.Value, place: ir.Value) -> None:
        """Store the block of a row."""
        self.builder.store(value, self.block(data, place), align=4)

    def number(self, data: ir.Value, place: ir.Value) -> ir.Value:
        """One element of an array, in every lane."""
        return self.all(self.builder.load(self.builder.gep(data, [place])))

    def all(self, value: ir.Value) -> ir.Value:
        """A run-time value in every lane."""
        return broadcast(self.builder, value, self.lanes)

    def same(self, number: float, kind: ir.Type = FLOAT) -> ir.Value:
        """A constant in every lane."""
        return constants(number, self.lanes, kind)

    def fused(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """``a * b + c``."""
        return self.builder.fadd(self.builder.fmul(a, b, flags=FUSE), c, flags=FUSE)

    def log(self, values: ir.Value) -> ir.Value:
        """Logarithm of positive numbers: the exponent from the bits, the significand by a polynomial."""
        builder = self.builder
        held = builder.bitcast(values, ir.VectorType(I32, self.lanes))
        power = builder.sub(builder.ashr(held, self.same(23, I32)), self.same(127, I32))
        rest = builder.or_(builder.and_(held, self.same(0x7FFFFF, I32)), self.same(0x3F800000, I32))
        rest = builder.fsub(builder.bitcast(rest, values.type), self.same(1.0))
        return self._series(rest, builder.sitofp(power, values.type))

    def log1p(self, values: ir.Value) -> ir.Value:
        """ln(1 + v) for v >= 0, accurate for small v too."""
        builder = self.builder
        small = builder.fcmp_ordered("<", values, self.same(1.0))
        return builder.select(
            small, self._series(values, self.same(0.0)), self.log(builder.fadd(values, self.same(1.0)))
        )

    def _series(self, rest: ir.Value, power: ir.Value) -> ir.Value:
        """ln((1 + rest) 2^power), for rest from 0 to 1."""
        series = self.same(SERIES[0])
        for number in SERIES[1:]:
            series = self.fused(series, rest, self.same(number))
        return self.fused(series, rest, self.builder.fmul(power, self.same(math.log(2.0))))

    def sum(self, width: ir.Value, term: Callable[[], ir.Value]) -> ir.Value:
        """The sum of what ``term`` gives for each block."""
        builder = self.builder
        sums = {
            lanes: cgutils.alloca_once_value(builder, ir.Constant(ir.VectorType(FLOAT, lanes), [0.0] * lanes))
            for lanes in BLOCKS
        }

        def add() -> None:
            held = sums[self.lanes]
            builder.store(builder.fadd(builder.load(held), term()), held)

        self.along(width, add)
        eights, fours, ones = (self.total(builder.load(held)) for held in sums.values())
        return builder.fadd(eights, builder.fadd(fours, ones))

    def total(self, vector: ir.Value) -> ir.Value:
        """The sum of the lanes of a vector, by halves."""
        while vector.type.count > 1:
            half = vector.type.count // 2
            parts = [
                self.builder.shuffle_vector(
                    vector, vector, ir.Constant(ir.VectorType(I32, half), list(range(first, first + half)))
                )
                for first in (0, half)
            ]
            vector = self.builder.fadd(*parts)
        return self.builder.extract_element(vector, ir.Constant(I32, 0))


if JIT:

    @intrinsic
    def add_rows(_, target, cells, places, lo, hi, width, factors):  # type: ignore[no-untyped-def]
        """``target[q, c] += factors[q, j] cells[places[j] + q width + c]`` for lo <= j < hi, c < width and q = 0, 1, 2.

        The sums stay in registers meanwhile.
        """

        def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]) -> ir.Value:
            row = _Row(context, builder)
            to, of, at, by = (row.data(sig.args[i], args[i]) for i in (0, 1, 2, 6))
            lo, hi, width = args[3:6]
            long = builder.extract_value(array_struct(context, builder, sig.args[6], args[6]).shape, 1)
            rows = [builder.mul(width, integer(q)) for q in range(3)]
            factor_rows = [builder.mul(long, integer(q)) for q in range(3)]
            if CHECKED:
                three, many = builder.mul(width, integer(3)), builder.sub(hi, lo)
                row.within(sig.args[0], args[0], integer(0), three)
                row.within(sig.args[2], args[2], lo, many)
                for factor_row in factor_rows:
                    row.within(sig.args[6], args[6], builder.add(factor_row, lo), many)
                with cgutils.for_range_slice(builder, lo, hi, integer(1), intp=I64) as (j, _):
                    row.within(sig.args[1], args[1], builder.load(builder.gep(at, [j])), three)

            def add() -> None:
                sums = [cgutils.alloca_once(builder, ir.VectorType(FLOAT, row.lanes)) for _ in rows]
                for q, held in enumerate(sums):
                    builder.store(row.load(to, rows[q]), held)
                with cgutils.for_range_slice(builder, lo, hi, integer(1), intp=I64) as (j, _):
                    place = builder.load(builder.gep(at, [j]))
                    for q, held in enumerate(sums):
                        factor = row.number(by, builder.add(factor_rows[q], j))
                        cell = row.load(of, builder.add(place, rows[q]))
                        builder.store(row.fused(factor, cell, builder.load(held)), held)
                for q, held in enumerate(sums):
                    row.store(builder.load(held), to, rows[q])

            row.along(width, add)
            return context.get_dummy_value()

        return types.void(target, cells, places, int64, int64, int64, factors), codegen

    @intrinsic
    def squash_row(_, target, at, source, place, width):  # type: ignore[no-untyped-def]
        """``target[at + c]`` is log(1 + |v|) with the sign of v = ``source[place + c]``, for c < width."""

        def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]) -> ir.Value:
            row = _Row(context, builder)
            to, of = row.data(sig.args[0], args[0]), row.data(sig.args[2], args[2])
            row.within(sig.args[0], args[0], args[1], args[4])
            row.within(sig.args[2], args[2], args[3], args[4])

            def take() -> None:
                single, bits = ir.VectorType(FLOAT, row.lanes), ir.VectorType(I32, row.lanes)
                held = builder.bitcast(builder.fptrunc(row.load(of, args[3]), single), bits)
                size = builder.bitcast(builder.and_(held, row.same(0x7FFFFFFF, I32)), single)
                sign = builder.and_(held, row.same(-(2**31), I32))
                found = builder.or_(builder.bitcast(row.log1p(size), bits), sign)
                row.store(builder.bitcast(found, single), to, args[1])

            row.along(args[4], take)
            return context.get_dummy_value()

        return types.void(target, int64, source, int64, int64), codegen

    @intrinsic
    def log_row(_, target, at, width):  # type: ignore[no-untyped-def]
        """``target[at + c]`` becomes its logarithm, for c < width."""

        def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]) -> ir.Value:
            row = _Row(context, builder)
            data = row.data(sig.args[0], args[0])
            row.within(sig.args[0], args[0], args[1], args[2])
            row.along(args[2], lambda: row.store(row.log(row.load(data, args[1])), data, args[1]))
            return context.get_dummy_value()

        return types.void(target, int64, int64), codegen

    @intrinsic
    def shrink_row(_, cells, means, variances, width, x, steps):  # type: ignore[no-untyped-def]
        """AROW's step for one attribute: with a = variance x, mean += steps[0] a and variance -= steps[1] a^2."""

        def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]) -> ir.Value:
            row = _Row(context, builder)
            data, steps_data = row.data(sig.args[0], args[0]), row.data(sig.args[5], args[5])
            for place in args[1:3]:
                row.within(sig.args[0], args[0], place, args[3])
            row.within(sig.args[5], args[5], args[3], args[3])

            def step() -> None:
                variance = row.load(data, args[2])
                move, shrink = row.load(steps_data, integer(0)), row.load(steps_data, args[3])
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

        def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]) -> ir.Value:
            row = _Row(context, builder)
            data = row.data(sig.args[0], args[0])
            row.within(sig.args[0], args[0], args[1], args[2])
            return row.sum(args[2], lambda: row.load(data, args[1]))

        return float32(cells, int64, int64), codegen

    @intrinsic
    def entropy_row(_, cells, place, width, shares, smoothing, logs):  # type: ignore[no-untyped-def]
        """The sum of ``shares[0, c] u ln u`` with ``u = shares[1, c] cells[place + c] + smoothing`` for c < width.

        ln u is left in ``logs[c]``.
        """

        def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]) -> ir.Value:
            row = _Row(context, builder)
            data, by = row.data(sig.args[0], args[0]), row.data(sig.args[3], args[3])
            row.within(sig.args[0], args[0], args[1], args[2])
            row.within(sig.args[3], args[3], args[2], args[2])
            row.within(sig.args[5], args[5], integer(0), args[2])
            to = row.data(sig.args[5], args[5])

            def term() -> ir.Value:
                share, factor = row.load(by, integer(0)), row.load(by, args[2])
                size = row.fused(factor, row.load(data, args[1]), row.all(args[4]))
                log = row.log(size)
                row.store(log, to, integer(0))
                return builder.fmul(share, builder.fmul(size, log))

            return row.sum(args[2], term)

        return float32(cells, int64, int64, shares, float32, logs), codegen

    @intrinsic
    def add_row(_, target, source, factor, width):  # type: ignore[no-untyped-def]
        """``target[c] += factor source[c]`` for c < width."""

        def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]) -> ir.Value:
            row, none = _Row(context, builder), integer(0)
            to, of = row.data(sig.args[0], args[0]), row.data(sig.args[1], args[1])
            for array in (0, 1):
                row.within(sig.args[array], args[array], none, args[3])

            def add() -> None:
                row.store(row.fused(row.all(args[2]), row.load(of, none), row.load(to, none)), to, none)

            row.along(args[3], add)
            return context.get_dummy_value()

        return types.void(target, source, float32, int64), codegen

    @intrinsic
    def add_log_rows(_, target, cells, places, many, width, sums, smoothing, factors, at):  # type: ignore[no-untyped-def]
        """``target[c] -= factors[at + j] ln(sums[j] - cells[places[j] + c] + smoothing)`` for j < many, c < width."""

        def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]) -> ir.Value:
            row = _Row(context, builder)
            to, of, places, totals, by = (row.data(sig.args[i], args[i]) for i in (0, 1, 2, 5, 7))
            none = integer(0)
            if CHECKED:
                row.within(sig.args[0], args[0], none, args[4])
                for array, first in ((2, none), (5, none), (7, args[8])):
                    row.within(sig.args[array], args[array], first, args[3])
                with cgutils.for_range_slice(builder, none, args[3], integer(1), intp=I64) as (j, _):
                    row.within(sig.args[1], args[1], builder.load(builder.gep(places, [j])), args[4])

            def add() -> None:
                held = cgutils.alloca_once(builder, ir.VectorType(FLOAT, row.lanes))
                builder.store(row.load(to, none), held)
                with cgutils.for_range_slice(builder, none, args[3], integer(1), intp=I64) as (j, _):
                    rest = builder.fsub(row.number(totals, j), row.load(of, builder.load(builder.gep(places, [j]))))
                    log = builder.fneg(row.log(builder.fadd(rest, row.all(args[6]))))
                    factor = row.number(by, builder.add(args[8], j))
                    builder.store(row.fused(factor, log, builder.load(held)), held)
                row.store(builder.load(held), to, none)

            row.along(args[4], add)
            return context.get_dummy_value()

        return types.void(target, cells, places, int64, int64, sums, float32, factors, int64), codegen

else:

    def _part(array: np.ndarray, place: int, width: int) -> np.ndarray:
        return array.reshape(-1)[place : place + width]

    def add_rows(
        target: np.ndarray,
        cells: np.ndarray,
        places: np.ndarray,
        lo: int,
        hi: int,
        width: int,
        factors: np.ndarray,
    ) -> None:
        for j in range(lo, hi):
            target += factors[:3, j, None] * _part(cells, places[j], 3 * width).reshape(3, width)

    def squash_row(target: np.ndarray, at: int, source: np.ndarray, place: int, width: int) -> None:
        values = _part(source, place, width)
        _part(target, at, width)[:] = np.copysign(np.log1p(np.abs(values)), values)

    def log_row(target: np.ndarray, at: int, width: int) -> None:
        _part(target, at, width)[:] = np.log(_part(target, at, width))

    def shrink_row(cells: np.ndarray, means: int, variances: int, width: int, x: float, steps: np.ndarray) -> None:
        along = _part(cells, variances, width) * x
        _part(cells, means, width)[:] += steps[0] * along
        _part(cells, variances, width)[:] -= steps[1] * along * along

    def sum_row(cells: np.ndarray, place: int, width: int) -> np.float32:
        return _part(cells, place, width).sum(dtype=np.float32)

    def entropy_row(
        cells: np.ndarray, place: int, width: int, shares: np.ndarray, smoothing: float, logs: np.ndarray
    ) -> np.float32:
        sizes = shares[1] * _part(cells, place, width) + smoothing
        logs[:width] = np.log(sizes)
        return (shares[0] * sizes * logs[:width]).sum(dtype=np.float32)

    def add_row(target: np.ndarray, source: np.ndarray, factor: float, width: int) -> None:
        target[:width] += factor * source[:width]

    def add_log_rows(
        target: np.ndarray,
        cells: np.ndarray,
        places: np.ndarray,
        many: int,
        width: int,
        sums: np.ndarray,
        smoothing: float,
        factors: np.ndarray,
        at: int,
    ) -> None:
        for j in range(many):
            target -= factors[at + j] * np.log(sums[j] - _part(cells, places[j], width) + smoothing)
