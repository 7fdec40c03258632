"""Scores of sixteen instances at once, one in each lane of a vector: what the search for the next violation reads.

A panel holds the numbers of sixteen instances side by side, so that element (j, lane) is at ``16 j + lane``. The
functions ``plain_...`` define the results; they run when the compiler is off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import float32, float64, int8, int64, types
from numba.extending import intrinsic

from linmax.jit.compiling import JIT, inside, inside_array
from linmax.jit.scores import WeightedRows, dense_tail, plain_add_dense, write_pass
from linmax.jit.vectors import (
    BIT,
    FLOAT,
    I8,
    I16,
    I32,
    I64,
    VOID,
    array_struct,
    broadcast,
    call_own,
    data_pointer,
    integer,
    larger,
    loop,
    vector_pointer,
)

__all__ = ["LANES", "add_lanes", "next_lane", "plain_add_lanes", "plain_next_lane", "plain_sum_codes", "sum_codes"]

LANES = 16  # instances of a panel


def plain_add_lanes(scores: np.ndarray, panel: np.ndarray, base: int, values: np.ndarray) -> None:
    """``scores += sum over j of values[j] * panel[base + 16 j :][:16]``, in single precision."""
    plain_add_dense(scores, panel, base, LANES, values)


def plain_sum_codes(scores: np.ndarray, codes: np.ndarray, base: int, values: np.ndarray) -> None:
    """``scores[c, lane]`` = sum of values[j] over the voters j with codes[base + 16 j + lane] = c."""
    scores[:] = 0.0
    for j in range(values.size):
        for lane in range(LANES):
            if codes[base + LANES * j + lane] >= 0:
                scores[codes[base + LANES * j + lane], lane] += values[j]


def plain_next_lane(scores: np.ndarray, slack: float, start: int) -> int:
    """The first lane from ``start`` on in which row 0 leads all others by at most slack; 16 when there is none."""
    for lane in range(start, LANES):
        if not scores[0, lane] - scores[1:, lane].max() > slack:
            return lane
    return LANES


def _write_lanes(builder: Any, scores: Any, panel: Any, values: Any, count: Any) -> None:
    """One pass over the panel, whose lanes take the part of classes."""
    rows = WeightedRows(panel, integer(LANES), None, values, count, None)
    write_pass(builder, scores, scores, ir.Constant(FLOAT, 1.0), rows, (LANES, 1, 4))
    builder.ret_void()


def _write_codes(builder: Any, scores: Any, rows: Any, codes: Any, values: Any, count: Any) -> None:
    """Passes over the voters, each for up to eight classes with a vector of sixteen sums per class."""
    floats = ir.VectorType(FLOAT, LANES)
    done = integer(0)
    for width in (8, 5, 4, 3, 2, 1):

        def some(first: Any, _: list[Any], width: int = width) -> list[Any]:
            places = [builder.add(first, integer(a)) for a in range(width)]
            wanted = [broadcast(builder, builder.trunc(place, I8), LANES) for place in places]

            def vote(j: Any, sums: list[Any]) -> list[Any]:
                votes = builder.load(vector_pointer(builder, codes, builder.mul(j, integer(LANES)), LANES), align=1)
                value = broadcast(builder, builder.load(builder.gep(values, [j])), LANES)
                return [
                    builder.select(builder.icmp_signed("==", votes, cls), builder.fadd(total, value), total)
                    for cls, total in zip(wanted, sums, strict=True)
                ]

            _, *sums = loop(builder, integer(0), 1, count, [ir.Constant(floats, None)] * width, vote)
            for place, total in zip(places, sums, strict=True):
                there = vector_pointer(builder, scores, builder.mul(place, integer(LANES)), LANES)
                builder.store(total, there, align=4)
            return []

        (done,) = loop(builder, done, width, rows, [], some)
    builder.ret_void()


def _write_next_lane(builder: Any, scores: Any, rows: Any, slack: Any, start: Any) -> None:
    """A loop over the rows; the comparison of sixteen lanes becomes sixteen bits."""

    def load(row: Any) -> Any:
        return builder.load(vector_pointer(builder, scores, builder.mul(row, integer(LANES)), LANES), align=4)

    label, second = load(integer(0)), load(integer(1))
    _, best = loop(builder, integer(2), 1, rows, [second], lambda row, best: [larger(builder, load(row), best[0])])
    limit = broadcast(builder, builder.fptrunc(slack, FLOAT), LANES)
    close = builder.fcmp_unordered("<=", builder.fsub(label, best), limit)
    found = builder.zext(builder.bitcast(close, I16), I32)
    passed = builder.shl(ir.Constant(I32, 0xFFFF), builder.trunc(start, I32))
    found = builder.or_(builder.and_(found, passed), ir.Constant(I32, 1 << LANES))  # bit 16 stands for none
    builder.ret(builder.zext(builder.cttz(found, ir.Constant(BIT, 1)), I64))


if JIT:

    @intrinsic
    def add_lanes(_, scores, panel, base, values):  # type: ignore[no-untyped-def]
        """See `plain_add_lanes`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            to = data_pointer(context, builder, sig.args[0], args[0])
            of = data_pointer(context, builder, sig.args[1], *args[1:3])
            tail = dense_tail(context, builder, sig.args, args)
            inside_array(context, builder, sig.args[0], args[0], integer(0), integer(LANES))
            inside_array(context, builder, sig.args[1], args[1], args[2], builder.mul(tail[1], integer(LANES)))
            call_own(builder, "linmax_lanes", VOID, _write_lanes, to, of, *tail)
            return context.get_dummy_value()

        return types.void(scores, float32[::1], int64, float32[::1]), codegen

    @intrinsic
    def sum_codes(_, scores, codes, base, values):  # type: ignore[no-untyped-def]
        """See `plain_sum_codes`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            table = array_struct(context, builder, sig.args[0], args[0])
            rows, at = builder.extract_value(table.shape, 0), data_pointer(context, builder, sig.args[1], *args[1:3])
            tail = dense_tail(context, builder, sig.args, args)
            inside_array(context, builder, sig.args[0], args[0], integer(0), builder.mul(rows, integer(LANES)))
            inside_array(context, builder, sig.args[1], args[1], args[2], builder.mul(tail[1], integer(LANES)))
            call_own(builder, "linmax_codes", VOID, _write_codes, table.data, rows, at, *tail)
            return context.get_dummy_value()

        return types.void(float32[:, ::1], int8[::1], int64, float32[::1]), codegen

    @intrinsic
    def next_lane(_, scores, slack, start):  # type: ignore[no-untyped-def]
        """See `plain_next_lane`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            table = array_struct(context, builder, sig.args[0], args[0])
            rows = builder.extract_value(table.shape, 0)
            inside(context, builder, integer(0), integer(2), rows)
            inside_array(context, builder, sig.args[0], args[0], integer(0), builder.mul(rows, integer(LANES)))
            return call_own(builder, "linmax_next_lane", I64, _write_next_lane, table.data, rows, *args[1:])

        return int64(float32[:, ::1], float64, int64), codegen

else:
    add_lanes, sum_codes, next_lane = plain_add_lanes, plain_sum_codes, plain_next_lane
