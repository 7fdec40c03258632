"""Scores of sixteen instances at once, one in each lane of a vector: what the search for the next violation reads.

A panel of ratings holds the numbers of sixteen instances side by side, so that element (j, lane) is at ``16 j + lane``.
One of votes holds bits, see `linmax.jit.vote_panels`.

The functions ``plain_...`` define the results; they run when the compiler is off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import float32, float64, int32, int64, types
from numba.extending import intrinsic

from linmax.jit.compiling import JIT, inside, inside_array
from linmax.jit.scores import WeightedRows, dense_tail, plain_add_dense, write_pass
from linmax.jit.vectors import (
    DOUBLE,
    FLOAT,
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

__all__ = [
    "LANES",
    "add_lanes",
    "close_lanes",
    "magnitude",
    "plain_add_lanes",
    "plain_close_lanes",
    "plain_magnitude",
    "plain_used_below",
    "used_below",
    "write_used_below",
]

LANES = 16  # instances of a panel


def plain_add_lanes(scores: np.ndarray, panel: np.ndarray, base: int, values: np.ndarray) -> None:
    """``scores += sum over j of values[j] * panel[base + 16 j :][:16]``, in single precision."""
    plain_add_dense(scores, panel, base, LANES, values)


def plain_magnitude(values: np.ndarray) -> float:
    """The sum of the magnitudes, added up in any order."""
    return float(np.abs(values).sum())


def plain_used_below(uses: np.ndarray, first: int, limit: int) -> int:
    """A bit for each of sixteen from ``first`` on that is below the limit, the first in the lowest."""
    return sum(1 << lane for lane in range(LANES) if uses[first + lane] < limit)


def plain_close_lanes(scores: np.ndarray, slack: float) -> int:
    """A bit for each lane in which row 0 leads all others by at most slack, lane 0 in the lowest."""
    return sum(1 << lane for lane in range(LANES) if not scores[0, lane] - scores[1:, lane].max() > slack)


def _write_lanes(builder: Any, scores: Any, panel: Any, values: Any, count: Any) -> None:
    """One pass over the panel, whose lanes take the part of classes."""
    rows = WeightedRows(panel, integer(LANES), None, values, count, None)
    write_pass(builder, scores, scores, ir.Constant(FLOAT, 1.0), rows, (LANES, 1, 4))
    builder.ret_void()


def _write_magnitude(builder: Any, values: Any, size: Any) -> None:
    """Eight at a time, then one."""
    eight = ir.VectorType(DOUBLE, 8)

    def add(lanes: int) -> Any:
        def body(j: Any, total: list[Any]) -> list[Any]:
            some, bits = builder.load(vector_pointer(builder, values, j, lanes), align=8), ir.VectorType(I64, lanes)
            size = builder.and_(builder.bitcast(some, bits), ir.Constant(bits, [2**63 - 1] * lanes))
            return [builder.fadd(total[0], builder.bitcast(size, some.type))]

        return body

    j, totals = loop(builder, integer(0), 8, size, [ir.Constant(eight, None)], add(8))
    _, rest = loop(builder, j, 1, size, [ir.Constant(ir.VectorType(DOUBLE, 1), None)], add(1))
    for half in (4, 2, 1):
        parts = [ir.Constant(ir.VectorType(I32, half), [first + lane for lane in range(half)]) for first in (0, half)]
        totals = builder.fadd(*(builder.shuffle_vector(totals, totals, part) for part in parts))
    builder.ret(builder.extract_element(builder.fadd(totals, rest), ir.Constant(I32, 0)))


def write_used_below(builder: Any, uses: Any, first: Any, limit: Any) -> None:
    """One comparison of sixteen."""
    counts = builder.load(vector_pointer(builder, uses, first, LANES), align=4)
    below = builder.icmp_signed("<", counts, broadcast(builder, builder.trunc(limit, I32), LANES))
    builder.ret(builder.zext(builder.bitcast(below, I16), I64))


def _write_close_lanes(builder: Any, scores: Any, rows: Any, slack: Any) -> None:
    """A loop over the rows; the comparison of sixteen lanes becomes sixteen bits."""

    def load(row: Any) -> Any:
        return builder.load(vector_pointer(builder, scores, builder.mul(row, integer(LANES)), LANES), align=4)

    label, second = load(integer(0)), load(integer(1))
    _, best = loop(builder, integer(2), 1, rows, [second], lambda row, best: [larger(builder, load(row), best[0])])
    limit = broadcast(builder, builder.fptrunc(slack, FLOAT), LANES)
    close = builder.fcmp_unordered("<=", builder.fsub(label, best), limit)
    builder.ret(builder.zext(builder.bitcast(close, I16), I64))


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
    def magnitude(_, values):  # type: ignore[no-untyped-def]
        """See `plain_magnitude`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            of = array_struct(context, builder, sig.args[0], args[0])
            return call_own(builder, "linmax_magnitude", DOUBLE, _write_magnitude, of.data, of.nitems)

        return float64(float64[::1]), codegen

    @intrinsic
    def used_below(_, uses, first, limit):  # type: ignore[no-untyped-def]
        """See `plain_used_below`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            data = data_pointer(context, builder, sig.args[0], args[0])
            inside_array(context, builder, sig.args[0], args[0], args[1], integer(LANES))
            how = "alwaysinline"
            return call_own(builder, "linmax_used_below", I64, write_used_below, data, *args[1:], how=how)

        return int64(int32[::1], int64, int64), codegen

    @intrinsic
    def close_lanes(_, scores, slack):  # type: ignore[no-untyped-def]
        """See `plain_close_lanes`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            table = array_struct(context, builder, sig.args[0], args[0])
            rows = builder.extract_value(table.shape, 0)
            inside(context, builder, integer(0), integer(2), rows)
            inside_array(context, builder, sig.args[0], args[0], integer(0), builder.mul(rows, integer(LANES)))
            return call_own(builder, "linmax_close_lanes", I64, _write_close_lanes, table.data, rows, args[1])

        return int64(float32[:, ::1], float64), codegen

else:
    add_lanes, close_lanes, used_below, magnitude = (
        plain_add_lanes,
        plain_close_lanes,
        plain_used_below,
        plain_magnitude,
    )
