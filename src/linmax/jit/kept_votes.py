"""Kept instances that may still be used, side by side: which of thirty-two are in doubt, and the next of many.

Recycling looks at the recent instances again and again, and many of them have been used up. Those that have not are
copied out of their panel of votes (see `linmax.jit.vote_panels`) one after the other: row v of the copy holds what the
panel's blocks hold in their vector v, one byte for each instance.

The functions ``plain_...`` define the results; they run when the compiler is off.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import int8, int16, int32, int64, types
from numba.extending import intrinsic

from linmax.jit.compiling import JIT, inside, inside_array, kernel
from linmax.jit.panels import LANES, plain_used_below, write_used_below
from linmax.jit.vectors import (
    I8,
    I16,
    I32,
    I64,
    array_struct,
    broadcast,
    call_own,
    data_pointer,
    declared,
    integer,
    loop,
    vector_pointer,
)
from linmax.jit.vote_panels import BYTES, MIXES, NARROW, SUMS, TABLE, by_size, bytes_at, digit_bits, shuffled

__all__ = [
    "KEPT_LANES",
    "copy_kept",
    "kept_place",
    "next_kept",
    "plain_copy_kept",
    "plain_next_kept",
]

KEPT_LANES = 2 * LANES  # instances that are looked at together
KEPT_UNROLLED = 6  # rows that are added up side by side, in registers
MIDDLE = 128  # added to the sums of high digits, so that they are positive

# The places of the bits that are set in a byte, the lowest first, as the bytes of a number.
ORDERS = np.array([sum(bit << 8 * i for i, bit in enumerate(b for b in range(8) if m >> b & 1)) for m in range(256)])


@kernel()
def kept_place(row: int, lane: int) -> int:
    """Where `next_kept` leaves the sum of a row in a lane: lanes 0 to 7 and 16 to 23, then the others."""
    return row * KEPT_LANES + (lane & 8) * 2 + (lane >> 4) * 8 + (lane & 7)


def plain_copy_kept(
    copy: np.ndarray,
    numbers: np.ndarray,
    count: int,
    codes: np.ndarray,
    span: tuple[int, int],
    uses: np.ndarray,
    limit: int,
) -> int:
    """Copy the instances of the span that have been used less than limit times after the ``count`` that are there.

    ``numbers`` tells which they are. Both have room for a block after the last; what is there does not matter. Returns
    how many there are then.
    """
    (begin, end), vectors = span, copy.shape[0]
    for t in range(begin, end):
        block, lane = divmod(t, LANES)
        if plain_used_below(uses, block * LANES, limit) >> lane & 1:
            at = block * vectors * LANES + lane
            copy[:, count] = codes[at : at + vectors * LANES : LANES]
            numbers[count] = t
            count += 1
    return count


def plain_kept_sums(copy: np.ndarray, rows: int, first: int, tables: np.ndarray) -> np.ndarray:
    """Sums of the rows in 32 lanes, in whole steps."""
    groups = tables.size // TABLE
    digits = tables.reshape(groups, 2, LANES)
    sums = digits[:, 0].view(np.uint8) + np.int16(1 << digit_bits(groups)) * digits[:, 1]
    totals = np.zeros((rows, KEPT_LANES), np.int16)
    for row in range(rows):
        for group in range(groups):
            vector = (row // 2 * groups + group) * 2 + row % 2
            totals[row] += sums[group, copy[vector, first : first + KEPT_LANES] & 15]
    return totals


def plain_next_kept(
    sums: np.ndarray, copy: np.ndarray, tables: np.ndarray, slack: int, span: tuple[int, int], alive: np.ndarray
) -> int:
    """The first 32 with an instance of the span, among those ``alive``, whose label leads by at most ``slack`` steps.

    Returns their number times 2^32 plus a bit for each such instance; -1 where there is none. The sums of their rows,
    plus a number that is the same for all, are left at their `kept_place`.
    """
    begin, end = span
    for block in range(begin // KEPT_LANES, -(-end // KEPT_LANES)):
        first = block * KEPT_LANES
        bits = sum(1 << lane for lane in range(KEPT_LANES) if begin <= first + lane < end) & int(alive[block])
        if bits:
            totals = plain_kept_sums(copy, sums.size // KEPT_LANES, first, tables)
            for row, lanes in enumerate(totals):
                for lane in range(KEPT_LANES):
                    sums[kept_place(row, lane)] = lanes[lane]
            close = totals[0] - totals[1:].max(axis=0) <= slack
            bits &= sum(1 << lane for lane in range(KEPT_LANES) if close[lane])
        if bits:
            return (block << KEPT_LANES) + bits
    return -1


# Lane by lane what the two vectors of sums hold, see `kept_place`.
_ORDER = ir.Constant(
    ir.VectorType(I32, KEPT_LANES), [(lane & 8) * 2 + (lane >> 4) * 8 + (lane & 7) for lane in range(KEPT_LANES)]
)


def _within(builder: Any, first: Any, begin: Any, end: Any, lanes: int) -> Any:
    """Bits of those of so many lanes, from ``first`` on, that are in begin..end."""
    left, late = builder.sub(end, first), builder.sub(begin, first)
    left = builder.select(builder.icmp_signed("<", left, integer(lanes)), left, integer(lanes))
    late = builder.select(builder.icmp_signed(">", late, integer(0)), late, integer(0))
    ones = builder.sub(builder.shl(integer(1), left), integer(1))
    return builder.and_(ones, builder.shl(integer(-1), late))


def _write_copy(features: str) -> Any:
    """Sixteen at a time: their places become one vector, by which every vector of the panel's block is shuffled."""
    sixteen, wide = ir.VectorType(I8, LANES), ir.IntType(128)

    def order_of(builder: Any, bits: Any, orders: Any) -> Any:
        low, high = builder.and_(bits, integer(255)), builder.lshr(bits, integer(8))
        before, after = (builder.load(builder.gep(orders, [half])) for half in (low, high))
        after = builder.add(after, integer(0x0808080808080808))
        ahead = builder.mul(builder.zext(builder.ctpop(low), wide), ir.Constant(wide, 8))
        joined = builder.or_(builder.zext(before, wide), builder.shl(builder.zext(after, wide), ahead))
        return builder.bitcast(joined, sixteen)

    def write(
        builder: Any, copy: Any, vectors: Any, width: Any, numbers: Any, count: Any, codes: Any, begin: Any, end: Any,
        uses: Any, limit: Any, orders: Any,
    ) -> None:  # fmt: skip
        def block(number: Any, counted: list[Any]) -> list[Any]:
            first = builder.shl(number, integer(4))
            fresh = call_own(
                builder, "linmax_used_below", I64, write_used_below, uses, first, limit, how="alwaysinline"
            )
            bits = builder.and_(fresh, _within(builder, first, begin, end, LANES))
            order = order_of(builder, bits, orders)
            which = builder.zext(order, ir.VectorType(I32, LANES))
            which = builder.add(which, broadcast(builder, builder.trunc(first, I32), LANES))
            builder.store(which, vector_pointer(builder, numbers, counted[0], LANES), align=4)
            at = builder.mul(first, vectors)

            def vector(v: Any, _: list[Any]) -> list[Any]:
                place = builder.add(at, builder.shl(v, integer(4)))
                here = builder.load(vector_pointer(builder, codes, place, LANES), align=1)
                to = builder.add(builder.mul(v, width), counted[0])
                there = vector_pointer(builder, copy, to, LANES)
                builder.store(shuffled(builder, features, here, order), there, align=1)
                return []

            loop(builder, integer(0), 1, vectors, [], vector)
            return [builder.add(counted[0], builder.ctpop(bits))]

        start, stop = builder.ashr(begin, integer(4)), builder.ashr(builder.add(end, integer(LANES - 1)), integer(4))
        builder.ret(loop(builder, start, 1, stop, [count], block)[1])

    return write


class _Sums:
    """Sums of rows in 32 lanes, from ``codes`` on, as two vectors of 16 bits."""

    def __init__(self, builder: Any, features: str, codes: Any, width: Any, tables: Any, groups: Any) -> None:
        self.builder, self.features = builder, features
        self.codes, self.width, self.tables, self.groups = codes, width, tables, groups

    def _look_up(self, rows: list[Any], group: Any) -> list[Any]:
        """Low and high digits of each row."""
        builder, found = self.builder, []
        of = builder.mul(group, integer(TABLE))
        at = [vector_pointer(builder, self.tables, builder.add(of, integer(half)), LANES) for half in (0, LANES)]
        tables = [builder.load(there, align=1) for there in at]
        for row in rows:
            odd = builder.and_(row, integer(1))
            vector = builder.add(builder.mul(builder.sub(row, odd), self.groups), odd)
            vector = builder.add(vector, builder.shl(group, integer(1)))
            there = vector_pointer(builder, self.codes, builder.mul(vector, self.width), KEPT_LANES)
            places = builder.load(there, align=1)
            found += [bytes_at(builder, self.features, table, places) for table in tables]
        return found

    def narrow(self, rows: list[Any]) -> list[list[Any]]:
        """Where bytes hold the sums of digits."""
        builder = self.builder

        def add(group: Any, totals: list[Any]) -> list[Any]:
            return [builder.add(a, b) for a, b in zip(totals, self._look_up(rows, group), strict=True)]

        start = [ir.Constant(BYTES, None), ir.Constant(BYTES, [MIDDLE - 256] * KEPT_LANES)] * len(rows)
        digits = loop(builder, integer(0), 1, self.groups, start, add)[1:]
        return [self._numbers(low, high) for low, high in zip(digits[::2], digits[1::2], strict=True)]

    def _numbers(self, low: Any, high: Any) -> list[Any]:
        """low + 32 high, both of them positive."""
        builder = self.builder
        pairs = [builder.shuffle_vector(low, high, mix) for mix in MIXES]
        if "+avx2" in self.features:
            factors = ir.Constant(BYTES, [1, 32] * LANES)
            add = declared(builder, "llvm.x86.avx2.pmadd.ub.sw", SUMS, BYTES, BYTES)
            return [builder.call(add, [pair, factors]) for pair in pairs]
        wholes = [builder.bitcast(pair, SUMS) for pair in pairs]
        ones, eight, five = (ir.Constant(SUMS, [number] * LANES) for number in (255, 8, 5))
        return [
            builder.add(builder.and_(whole, ones), builder.shl(builder.lshr(whole, eight), five)) for whole in wholes
        ]

    def wide(self, row: Any) -> list[Any]:
        """Where digits are bytes."""
        builder = self.builder

        def add(group: Any, totals: list[Any]) -> list[Any]:
            low, high = self._look_up([row], group)
            numbers = [builder.bitcast(builder.shuffle_vector(low, high, mix), SUMS) for mix in MIXES]
            return [builder.add(a, b) for a, b in zip(totals, numbers, strict=True)]

        return loop(builder, integer(0), 1, self.groups, [ir.Constant(SUMS, None)] * 2, add)[1:]

    def one(self, row: Any) -> list[Any]:
        """One row, by either way."""
        return by_size(self.builder, self.groups, lambda: self.narrow([row])[0], lambda: self.wide(row))


def _larger(builder: Any, some: list[Any], others: list[Any]) -> list[Any]:
    return [builder.select(builder.icmp_signed(">", a, b), a, b) for a, b in zip(some, others, strict=True)]


def _bits_of(builder: Any, features: str, close: list[Any]) -> Any:
    """One bit for each lane."""
    if "+avx2" in features:
        pack = declared(builder, "llvm.x86.avx2.packsswb", BYTES, SUMS, SUMS)
        mask = declared(builder, "llvm.x86.avx2.pmovmskb", I32, BYTES)
        whole = [builder.sext(lanes, SUMS) for lanes in close]
        return builder.zext(builder.call(mask, [builder.call(pack, whole)]), I64)
    return builder.zext(builder.bitcast(builder.shuffle_vector(*close, _ORDER), I32), I64)


def _write_next(features: str) -> Any:
    """For few rows a loop over blocks of its own, with their sums in registers; another for the rest."""

    def write(
        builder: Any, sums: Any, rows: Any, copy: Any, width: Any, tables: Any, groups: Any, slack: Any, begin: Any,
        end: Any, alive: Any,
    ) -> None:  # fmt: skip
        limit = broadcast(builder, builder.trunc(slack, I16), LANES)

        def keep(row: Any, totals: list[Any]) -> list[Any]:
            for late, total in enumerate(totals):
                place = builder.add(builder.mul(row, integer(KEPT_LANES)), integer(late * LANES))
                builder.store(total, vector_pointer(builder, sums, place, LANES), align=2)
            return totals

        def close_lanes(count: int, first: Any) -> Any:
            """Bits of the lanes in which row 0 leads the others by at most ``slack``; count 0: any number of rows."""
            each = _Sums(builder, features, builder.gep(copy, [first]), width, tables, groups)
            numbers = [integer(row) for row in range(count or 2)]
            totals = each.narrow(numbers) if count else [each.one(row) for row in numbers]
            label, best, *rest = [keep(*it) for it in zip(numbers, totals, strict=True)]
            for more in rest:
                best = _larger(builder, best, more)
            if not count:

                def later(row: Any, best: list[Any]) -> list[Any]:
                    return _larger(builder, best, keep(row, each.one(row)))

                _, *best = loop(builder, integer(2), 1, rows, best, later)
            leads = [builder.sub(a, b) for a, b in zip(label, best, strict=True)]
            return _bits_of(builder, features, [builder.icmp_signed("<=", lead, limit) for lead in leads])

        few, other = builder.append_basic_block("few"), builder.append_basic_block("other")
        builder.cbranch(builder.icmp_signed("<=", groups, integer(NARROW)), few, other)
        builder.position_at_end(few)
        choice = builder.switch(rows, other)
        for count in range(2, KEPT_UNROLLED + 1):
            case = builder.append_basic_block("case")
            choice.add_case(integer(count), case)
            builder.position_at_end(case)
            _first_of(builder, begin, end, alive, partial(close_lanes, count))
        builder.position_at_end(other)
        _first_of(builder, begin, end, alive, partial(close_lanes, 0))

    return write


def _first_of(builder: Any, begin: Any, end: Any, alive: Any, close_lanes: Callable[[Any], Any]) -> None:
    """A loop over blocks that ends at the first with a bit left."""
    before, head, some, look, found, after = (
        builder.block, *(builder.append_basic_block(name) for name in ("head", "some", "look", "found", "after")),
    )  # fmt: skip
    start = builder.ashr(begin, integer(5))
    builder.branch(head)
    builder.position_at_end(head)
    block = builder.phi(I64)
    block.add_incoming(start, before)
    first = builder.shl(block, integer(5))
    builder.cbranch(builder.icmp_signed("<", first, end), some, after)
    builder.position_at_end(some)
    following = builder.add(block, integer(1))
    bits = _within(builder, first, begin, end, KEPT_LANES)
    bits = builder.and_(bits, builder.load(builder.gep(alive, [block])))
    builder.cbranch(builder.icmp_signed("!=", bits, integer(0)), look, head)
    builder.position_at_end(look)
    bits = builder.and_(bits, close_lanes(first))
    builder.cbranch(builder.icmp_signed("!=", bits, integer(0)), found, head)
    for block_before in (some, builder.block):
        block.add_incoming(following, block_before)
    builder.position_at_end(found)
    builder.ret(builder.or_(builder.shl(block, integer(KEPT_LANES)), bits))
    builder.position_at_end(after)
    builder.ret(integer(-1))


if JIT:

    def _shape(builder: Any, table: Any) -> list[Any]:
        return [builder.extract_value(table.shape, i) for i in range(2)]

    @intrinsic
    def _copy_kept(_, copy, numbers, count, codes, span, uses, limit, orders):  # type: ignore[no-untyped-def]
        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            to, order = (array_struct(context, builder, sig.args[i], args[i]) for i in (0, 7))
            vectors, width = _shape(builder, to)
            begin, end = (builder.extract_value(args[4], i) for i in (0, 1))
            room = builder.add(builder.sub(end, begin), integer(LANES))
            whole = builder.and_(builder.add(end, integer(LANES - 1)), integer(-LANES))
            inside(context, builder, begin, integer(1), whole)
            inside(context, builder, args[2], room, width)
            inside_array(context, builder, sig.args[1], args[1], args[2], room)
            inside_array(context, builder, sig.args[3], args[3], integer(0), builder.mul(whole, vectors))
            inside_array(context, builder, sig.args[5], args[5], integer(0), whole)
            which, of, used = (data_pointer(context, builder, sig.args[i], args[i]) for i in (1, 3, 5))
            write = _write_copy(context.codegen()._tm_features)
            given = to.data, vectors, width, which, args[2], of, begin, end, used, args[6], order.data
            return call_own(builder, "linmax_copy_kept", I64, write, *given)

        two = types.UniTuple(int64, 2)
        return int64(int8[:, ::1], int32[::1], int64, int8[::1], two, int32[::1], int64, int64[::1]), codegen

    @kernel(hot=True)
    def copy_kept(
        copy: np.ndarray,
        numbers: np.ndarray,
        count: int,
        codes: np.ndarray,
        span: tuple[int, int],
        uses: np.ndarray,
        limit: int,
    ) -> int:
        """See `plain_copy_kept`."""
        return _copy_kept(copy, numbers, count, codes, span, uses, limit, ORDERS)

    @intrinsic
    def next_kept(_, sums, copy, tables, slack, span, alive):  # type: ignore[no-untyped-def]
        """See `plain_next_kept`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            to, by, of, left = (array_struct(context, builder, sig.args[i], args[i]) for i in (0, 1, 2, 5))
            rows, groups = builder.sdiv(to.nitems, integer(KEPT_LANES)), builder.sdiv(of.nitems, integer(TABLE))
            vectors, width = _shape(builder, by)
            begin, end = (builder.extract_value(args[4], i) for i in (0, 1))
            blocks = builder.ashr(builder.add(end, integer(KEPT_LANES - 1)), integer(5))
            inside(context, builder, integer(1), integer(1), rows)
            inside(context, builder, integer(0), builder.mul(rows, groups), vectors)
            inside(context, builder, integer(0), builder.mul(blocks, integer(KEPT_LANES)), width)
            inside(context, builder, integer(0), blocks, left.nitems)
            write = _write_next(context.codegen()._tm_features)
            given = to.data, rows, by.data, width, of.data, groups, args[3], begin, end, left.data
            return call_own(builder, "linmax_next_kept", I64, write, *given)

        two = types.UniTuple(int64, 2)
        return int64(int16[::1], int8[:, ::1], int8[::1], int64, two, int64[::1]), codegen

else:
    copy_kept, next_kept = plain_copy_kept, plain_next_kept
