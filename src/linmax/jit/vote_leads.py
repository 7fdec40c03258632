"""Where the label's lead is in doubt: sixteen instances of a panel of votes at once.

`plain_close_codes` defines the result; it runs when the compiler is off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import int8, int16, int64
from numba.extending import intrinsic

from linmax.jit.compiling import JIT, inside, inside_array
from linmax.jit.panels import LANES, plain_close_lanes
from linmax.jit.vectors import (
    I16,
    I32,
    I64,
    array_struct,
    broadcast,
    call_own,
    data_pointer,
    integer,
    loop,
    vector_pointer,
)
from linmax.jit.vote_panels import NARROW, TABLE, narrow_sums, pair_sums, plain_sum_codes, sum_place

__all__ = ["close_codes", "plain_close_codes"]

UNROLLED = 4  # pairs of rows that are added up side by side, in registers


def plain_close_codes(sums: np.ndarray, codes: np.ndarray, base: int, tables: np.ndarray, slack: int) -> int:
    """`plain_close_lanes` of the sums in whole steps, which are left in ``sums`` (int16) at their `sum_place`."""
    scores = np.zeros((sums.size // LANES, LANES), np.float32)
    plain_sum_codes(scores, codes, base, tables, 1.0)
    for row in range(len(scores)):
        for lane in range(LANES):
            sums[sum_place(row, lane)] = scores[row, lane]
    return plain_close_lanes(scores, slack)


def _write_close_codes(features: str) -> Any:
    """The same, but that the sums stay whole and the label's lead is compared at once."""
    swapped = ir.Constant(ir.VectorType(I32, LANES), [*range(8, 16), *range(8)])
    joined = ir.Constant(ir.VectorType(I32, LANES), [*range(8), *range(16, 24)])
    halves = ir.Constant(ir.VectorType(I32, LANES), [*range(8), *range(8)])

    def write(builder: Any, sums: Any, pairs: Any, codes: Any, tables: Any, groups: Any, slack: Any) -> None:
        def most(a: Any, b: Any) -> Any:
            return builder.select(builder.icmp_signed(">", a, b), a, b)

        def keep(number: Any, totals: list[Any]) -> list[Any]:
            for late, total in enumerate(totals):
                place = builder.add(builder.mul(number, integer(2 * LANES)), integer(late * LANES))
                builder.store(total, vector_pointer(builder, sums, place, LANES), align=2)
            return totals

        def pair(number: Any) -> list[Any]:
            return keep(number, pair_sums(builder, features, codes, tables, groups, number))

        def others(number: Any, best: list[Any]) -> list[Any]:
            return [most(a, b) for a, b in zip(best, pair(number), strict=True)]

        def second(label: list[Any]) -> list[Any]:
            swaps = [builder.shuffle_vector(total, total, swapped) for total in label]
            return [builder.shuffle_vector(total, total, halves) for total in swaps]

        def finish(label: list[Any], best: list[Any]) -> None:
            best = [most(total, builder.shuffle_vector(total, total, swapped)) for total in best]
            leads = builder.sub(builder.shuffle_vector(*label, joined), builder.shuffle_vector(*best, joined))
            close = builder.icmp_signed("<=", leads, broadcast(builder, builder.trunc(slack, I16), LANES))
            builder.ret(builder.zext(builder.bitcast(close, I16), I64))

        few, other = builder.append_basic_block("few"), builder.append_basic_block("other")
        builder.cbranch(builder.icmp_signed("<=", groups, integer(NARROW)), few, other)
        builder.position_at_end(few)
        choice = builder.switch(pairs, other)
        for count in range(1, UNROLLED + 1):
            case = builder.append_basic_block("case")
            choice.add_case(integer(count), case)
            builder.position_at_end(case)
            totals = narrow_sums(builder, features, codes, tables, groups, [integer(n) for n in range(count)])
            label, *rest = [keep(integer(n), totals[2 * n : 2 * n + 2]) for n in range(count)]
            best = second(label)
            for more in rest:
                best = [most(a, b) for a, b in zip(best, more, strict=True)]
            finish(label, best)
        builder.position_at_end(other)
        label = pair(integer(0))  # the label in one half, the second row in the other
        _, *best = loop(builder, integer(1), 1, pairs, second(label), others)
        finish(label, best)

    return write


if JIT:

    @intrinsic
    def close_codes(_, sums, codes, base, tables, slack):  # type: ignore[no-untyped-def]
        """See `plain_close_codes`; the rows are even in number."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            to = array_struct(context, builder, sig.args[0], args[0])
            pairs = builder.sdiv(to.nitems, integer(2 * LANES))
            at = data_pointer(context, builder, sig.args[1], *args[1:3])
            of = array_struct(context, builder, sig.args[3], args[3])
            groups = builder.sdiv(of.nitems, integer(TABLE))
            inside(context, builder, integer(0), integer(1), pairs)
            length = builder.mul(builder.mul(pairs, groups), integer(TABLE))
            inside_array(context, builder, sig.args[1], args[1], args[2], length)
            write = _write_close_codes(context.codegen()._tm_features)
            return call_own(builder, "linmax_close_codes", I64, write, to.data, pairs, at, of.data, groups, args[4])

        return int64(int16[::1], int8[::1], int64, int8[::1], int64), codegen

else:
    close_codes = plain_close_codes
