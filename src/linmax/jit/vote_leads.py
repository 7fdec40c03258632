"""Where the label's lead is in doubt: sixteen instances of a panel of votes at once, and the next of many.

The functions ``plain_...`` define the results; they run when the compiler is off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import int8, int16, int32, int64, types
from numba.extending import intrinsic

from linmax.jit.compiling import JIT, inside, inside_array
from linmax.jit.panels import LANES, plain_close_lanes, plain_used_below, write_used_below
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

__all__ = ["close_codes", "next_close", "plain_close_codes", "plain_next_close"]

UNROLLED = 4  # pairs of rows that are added up side by side, in registers


def plain_close_codes(sums: np.ndarray, codes: np.ndarray, base: int, tables: np.ndarray, slack: int) -> int:
    """`plain_close_lanes` of the sums in whole steps, which are left in ``sums`` (int16) at their `sum_place`."""
    scores = np.zeros((sums.size // LANES, LANES), np.float32)
    plain_sum_codes(scores, codes, base, tables, 1.0)
    for row in range(len(scores)):
        for lane in range(LANES):
            sums[sum_place(row, lane)] = scores[row, lane]
    return plain_close_lanes(scores, slack)


def plain_next_close(
    sums: np.ndarray,
    codes: np.ndarray,
    tables: np.ndarray,
    slack: int,
    span: tuple[int, int],
    uses: np.ndarray,
    limit: int,
) -> int:
    """The first block with close lanes among the instances of the span that have been used less than limit times.

    Returns its number times 2^16 plus its bits, -1 where there is none; limit 0 takes every instance.
    """
    begin, end = span
    for block in range(begin // LANES, -(-end // LANES)):
        first = block * LANES
        bits = sum(1 << lane for lane in range(LANES) if begin <= first + lane < end)
        bits &= plain_used_below(uses, first, limit) if limit else -1
        if bits:
            bits &= plain_close_codes(sums, codes, block * (tables.size // TABLE) * sums.size, tables, slack)
        if bits:
            return (block << LANES) + bits
    return -1


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


def _write_next_close(features: str) -> Any:
    """A loop over blocks that ends at the first with a bit left."""

    def write(
        builder: Any, sums: Any, pairs: Any, codes: Any, tables: Any, groups: Any, slack: Any, begin: Any, end: Any,
        uses: Any, limit: Any,
    ) -> None:  # fmt: skip
        before, head, some, look, found, after = (
            builder.block, *(builder.append_basic_block(name) for name in ("head", "some", "look", "found", "after")),
        )  # fmt: skip

        def smaller(a: Any, b: Any) -> Any:
            return builder.select(builder.icmp_signed("<", a, b), a, b)

        size = builder.mul(builder.mul(pairs, groups), integer(TABLE))  # bytes of a block
        start = builder.ashr(begin, integer(4))
        every = builder.icmp_signed("==", limit, integer(0))
        builder.branch(head)
        builder.position_at_end(head)
        block = builder.phi(I64)
        block.add_incoming(start, before)
        first = builder.shl(block, integer(4))
        builder.cbranch(builder.icmp_signed("<", first, end), some, after)
        builder.position_at_end(some)
        following = builder.add(block, integer(1))
        ones = builder.sub(builder.shl(integer(1), smaller(builder.sub(end, first), integer(LANES))), integer(1))
        late = builder.sub(begin, first)
        late = builder.select(builder.icmp_signed("<", late, integer(0)), integer(0), late)
        fresh = call_own(builder, "linmax_used_below", I64, write_used_below, uses, first, limit, how="alwaysinline")
        bits = builder.and_(builder.and_(ones, builder.shl(integer(-1), late)), builder.select(every, ones, fresh))
        builder.cbranch(builder.icmp_signed("!=", bits, integer(0)), look, head)
        builder.position_at_end(look)
        at = builder.gep(codes, [builder.mul(block, size)])
        given = sums, pairs, at, tables, groups, slack
        bits = builder.and_(bits, call_own(builder, "linmax_close_codes", I64, _write_close_codes(features), *given))
        builder.cbranch(builder.icmp_signed("!=", bits, integer(0)), found, head)
        for block_before in (some, look):
            block.add_incoming(following, block_before)
        builder.position_at_end(found)
        builder.ret(builder.or_(builder.shl(block, integer(LANES)), bits))
        builder.position_at_end(after)
        builder.ret(integer(-1))

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

    @intrinsic
    def next_close(_, sums, codes, tables, slack, span, uses, limit):  # type: ignore[no-untyped-def]
        """See `plain_next_close`; the rows are even in number."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            to, by, of, used = (array_struct(context, builder, sig.args[i], args[i]) for i in (0, 1, 2, 5))
            pairs, groups = builder.sdiv(to.nitems, integer(2 * LANES)), builder.sdiv(of.nitems, integer(TABLE))
            begin, end = (builder.extract_value(args[4], i) for i in (0, 1))
            whole = builder.and_(builder.add(end, integer(LANES - 1)), integer(-LANES))
            inside(context, builder, integer(0), integer(1), pairs)
            inside(context, builder, begin, integer(1), whole)
            length = builder.mul(builder.mul(whole, groups), builder.mul(pairs, integer(2)))
            inside_array(context, builder, sig.args[1], args[1], integer(0), length)
            inside_array(context, builder, sig.args[5], args[5], integer(0), whole)
            write = _write_next_close(context.codegen()._tm_features)
            given = to.data, pairs, by.data, of.data, groups, args[3], begin, end, used.data, args[6]
            return call_own(builder, "linmax_next_close", I64, write, *given)

        two = types.UniTuple(int64, 2)
        return int64(int16[::1], int8[::1], int8[::1], int64, two, int32[::1], int64), codegen

else:
    close_codes, next_close = plain_close_codes, plain_next_close
