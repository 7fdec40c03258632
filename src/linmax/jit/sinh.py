"""2^x - 2^-x, which turns the sums of Balanced Winnow into weights, eight at a time.

The functions ``plain_...`` define the results up to rounding; they run when the compiler is off.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import float64
from numba.core import cgutils
from numba.extending import intrinsic

from linmax.jit.compiling import CHECKED, JIT, inside
from linmax.jit.vectors import (
    DOUBLE,
    EIGHT_DOUBLES,
    EIGHT_INTS,
    I32,
    I64,
    array_struct,
    broadcast,
    call_own,
    constants,
    integer,
    larger,
    largest_lane,
    loop,
)

__all__ = ["plain_sinh_weights", "plain_twice_sinh", "sinh_weights", "twice_sinh"]

_LN_2_REST = 2.3190468138462996e-17  # ln 2 is math.log(2) plus this
_LARGEST = 1000.0  # larger arguments are cut to this, so that the result stays finite


def plain_twice_sinh(x: float) -> float:
    """2^x - 2^-x: exactly odd, exact for integers x while representable, otherwise within 2 ulp."""
    size = min(abs(x), _LARGEST)
    turns = round(size)
    less_one = math.ldexp(math.expm1((size - turns) * math.log(2.0)), turns) + (math.ldexp(1.0, turns) - 1.0)
    return math.copysign(less_one + less_one / (less_one + 1.0), x)


def plain_sinh_weights(weights: np.ndarray, memory: np.ndarray, index: np.ndarray, rate: float) -> float:
    """``weights[i] = twice_sinh(rate * memory[0, i])`` for i in ``index``; returns the largest magnitude written."""
    largest = 0.0
    for i in index:
        weights[i] = plain_twice_sinh(rate * memory[0, i])
        largest = max(largest, abs(weights[i]))
    return largest


def _eight(number: float) -> ir.Value:
    return constants(number, 8, DOUBLE)


def _twice_sinh(builder: ir.IRBuilder, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """|2^x - 2^-x| and 2^x - 2^-x for eight x. With m = 2^|x| - 1 the first is m + m / (m + 1).

    m comes from the Taylor series at the nearest integer, so that small x lose no digits. Products and sums are fused
    explicitly, not at the compiler's discretion, so that every caller gets the same bits.
    """

    def fused(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        kind = ir.FunctionType(EIGHT_DOUBLES, [EIGHT_DOUBLES] * 3)
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v8f64"), [a, b, c])

    bits = builder.bitcast(x, EIGHT_INTS)
    sign = builder.and_(bits, ir.Constant(EIGHT_INTS, [-(1 << 63)] * 8))
    size = builder.bitcast(builder.xor(bits, sign), EIGHT_DOUBLES)
    size = builder.select(builder.fcmp_ordered(">", size, _eight(_LARGEST)), _eight(_LARGEST), size)
    rounding = _eight(1.5 * 2.0**52)  # adding this leaves the nearest integer in the low bits
    shifted = builder.fadd(size, rounding)
    part = builder.fsub(size, builder.fsub(shifted, rounding))
    rest = builder.fmul(part, _eight(math.log(2.0)))
    lost = fused(part, _eight(_LN_2_REST), fused(part, _eight(math.log(2.0)), builder.fneg(rest)))
    series = _eight(1.0 / math.factorial(13))
    for n in range(12, 1, -1):
        series = fused(series, rest, _eight(1.0 / math.factorial(n)))
    series = builder.fadd(rest, fused(builder.fmul(series, rest), rest, lost))
    turns = builder.sub(builder.bitcast(shifted, EIGHT_INTS), builder.bitcast(rounding, EIGHT_INTS))
    exponent = builder.add(turns, ir.Constant(EIGHT_INTS, [1023] * 8))
    scale = builder.bitcast(builder.shl(exponent, ir.Constant(EIGHT_INTS, [52] * 8)), EIGHT_DOUBLES)
    less_one = fused(series, scale, builder.fsub(scale, _eight(1.0)))
    result = builder.fadd(less_one, builder.fdiv(less_one, builder.fadd(less_one, _eight(1.0))))
    return result, builder.bitcast(builder.or_(builder.bitcast(result, EIGHT_INTS), sign), EIGHT_DOUBLES)


def _write_sinh_weights(
    builder: ir.IRBuilder, weights: ir.Value, memory: ir.Value, index: ir.Value, count: ir.Value, rate: ir.Value
) -> None:
    """Gather eight coordinates, transform them, scatter the weights, and keep the largest magnitude."""
    rates, largest = broadcast(builder, rate, 8), _eight(0.0)

    def some(first: ir.Value, lanes: int, largest: ir.Value) -> ir.Value:
        sums, places = _eight(0.0), []
        for lane in range(lanes):
            places.append(builder.load(builder.gep(index, [builder.add(first, integer(lane))])))
            term = builder.load(builder.gep(memory, [places[-1]]))
            sums = builder.insert_element(sums, term, ir.Constant(I32, lane))
        size, weight = _twice_sinh(builder, builder.fmul(sums, rates))
        for lane, place in enumerate(places):
            builder.store(builder.extract_element(weight, ir.Constant(I32, lane)), builder.gep(weights, [place]))
        return larger(builder, size, largest)

    def result(largest: ir.Value) -> None:
        builder.ret(builder.extract_element(largest_lane(builder, largest), ir.Constant(I32, 0)))

    few, many = builder.append_basic_block("few"), builder.append_basic_block("many")
    builder.cbranch(builder.icmp_signed("<", count, integer(8)), few, many)
    builder.position_at_end(few)
    _, most = loop(builder, integer(0), 1, count, [largest], lambda j, carried: [some(j, 1, carried[0])])
    result(most)
    builder.position_at_end(many)
    end = builder.sub(count, integer(8))

    def eight(j: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        first = builder.select(builder.icmp_signed("<", j, end), j, end)  # the last eight may overlap those before
        return [some(first, 8, carried[0])]

    _, most = loop(builder, integer(0), 8, builder.add(count, integer(7)), [largest], eight)
    result(most)


if JIT:

    @intrinsic
    def twice_sinh(_, x):  # type: ignore[no-untyped-def]
        """See `plain_twice_sinh`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            return builder.extract_element(_twice_sinh(builder, broadcast(builder, args[0], 8))[1], ir.Constant(I32, 0))

        return float64(float64), codegen

    @intrinsic
    def sinh_weights(_, weights, memory, index, rate):  # type: ignore[no-untyped-def]
        """See `plain_sinh_weights`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            arrays = [
                array_struct(context, builder, kind, value) for kind, value in zip(sig.args[:3], args, strict=False)
            ]
            data = [array.data for array in arrays]
            size = arrays[2].nitems
            if CHECKED:
                rooms = (arrays[0].nitems, arrays[1].nitems, builder.extract_value(arrays[1].shape, 1))
                with cgutils.for_range_slice(builder, integer(0), size, integer(1), intp=I64) as (j, _):
                    for room in rooms:
                        inside(context, builder, builder.load(builder.gep(data[2], [j])), integer(1), room)
            return call_own(builder, "linmax_sinh_weights", DOUBLE, _write_sinh_weights, *data, size, args[3])

        return float64(weights, memory, index, float64), codegen

else:
    twice_sinh, sinh_weights = plain_twice_sinh, plain_sinh_weights
