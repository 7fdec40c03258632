"""Searching and packing short rows: the best class but the label, which values are not 0, paired coordinates.

The functions ``plain_...`` define the results; they run when the compiler is off.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import boolean, float64, int32, int64, types
from numba.extending import intrinsic

from linmax.jit.compiling import JIT, inside, inside_array
from linmax.jit.vectors import (
    BIT,
    DOUBLE,
    EIGHT_INTS,
    I8,
    I32,
    I64,
    VOID,
    array_struct,
    broadcast,
    call_own,
    constants,
    data_pointer,
    each_bit,
    integer,
    larger,
    largest_lane,
    loop,
    vector_pointer,
)

__all__ = [
    "agreeing",
    "best_but",
    "bits_of_values",
    "leads",
    "lowest_bit",
    "nonzero_bits",
    "plain_agreeing",
    "plain_best_but",
    "plain_leads",
    "plain_lowest_bit",
    "plain_nonzero_bits",
    "plain_put_pairs",
    "plain_put_votes",
    "put_pairs",
    "put_votes",
]


def plain_best_but(scores: np.ndarray, known: int, skip: int, largest: int) -> int:
    """Index of the largest of ``scores[:known]`` except ``skip``, or -1 when there is none.

    Ties go to the first, or to the last if ``largest``. ``scores`` has room for whole vectors of 8.
    """
    best = -1
    for j in range(known):
        if j != skip and (best < 0 or scores[j] > scores[best] or (largest and scores[j] == scores[best])):
            best = j
    return best


def plain_leads(scores: np.ndarray, known: int, label: int, reach: float) -> bool:
    """Whether the label's score is above each of the others in ``scores[:known]`` by more than ``reach``, at least 0.

    By a number: where there is a nan or an infinity it does not lead. ``scores`` has room for whole vectors of 8.
    """
    return all(reach < float(scores[label]) - float(scores[j]) < math.inf for j in range(known) if j != label)


def plain_nonzero_bits(values: np.ndarray, first: int) -> int:
    """A mask of those of ``values[first : first + 64]`` that are not 0, the first in the lowest bit."""
    return sum(1 << j for j, value in enumerate(values[first : first + 64].tolist()) if value != 0.0)


def plain_lowest_bit(bits: int) -> int:
    """Position of the lowest set bit; at least one must be set."""
    return int(bits & -bits).bit_length() - 1


def plain_put_pairs(
    index: np.ndarray,
    z: np.ndarray,
    count: int,
    places: tuple[int, int, int],
    sign: float,
    rows: np.ndarray,
    values: np.ndarray,
    lo: int,
    hi: int,
) -> None:
    """Write two coordinates for each j in lo..hi, from ``count`` on: z = sign * values[j] and its opposite.

    ``places`` holds the coordinate of z in row 0, that of the opposite, and the stride of a row.
    """
    low, high, stride = places
    for j in range(lo, hi):
        at, value = rows[j] * stride, sign * values[j]
        index[count], index[count + 1] = at + low, at + high
        z[count], z[count + 1] = value, -value
        count += 2


def plain_put_votes(
    index: np.ndarray, z: np.ndarray, votes: np.ndarray, signs: np.ndarray, label: int, rival: int
) -> int:
    """The voters for the label, z = sign, and for the rival, z = -sign, in order; returns how many."""
    count = 0
    for i in range(votes.size):
        if votes[i] >= 0 and (votes[i] == label or votes[i] == rival):
            index[count] = i
            z[count] = signs[i] if votes[i] == label else -signs[i]
            count += 1
    return count


def plain_agreeing(votes: np.ndarray, cls: int) -> int:
    """A mask of the voters, at most 63, who vote for a class, the first in the lowest bit."""
    return sum(1 << i for i, vote in enumerate(votes.tolist()) if vote == cls)


def _write_best_but(builder: Any, scores: Any, known: Any, skip: Any, largest: Any) -> None:
    """One pass for the largest score, a second from either end for where it is."""
    limit, skipped, never = broadcast(builder, known, 8), broadcast(builder, skip, 8), constants(-math.inf, 8, DOUBLE)

    def eight(first: Any) -> Any:
        place = builder.add(broadcast(builder, first, 8), ir.Constant(EIGHT_INTS, list(range(8))))
        out = builder.or_(builder.icmp_signed("==", place, skipped), builder.icmp_signed(">=", place, limit))
        return builder.select(out, never, builder.load(vector_pointer(builder, scores, first, 8), align=8))

    def most(first: Any, carried: list[Any]) -> list[Any]:
        return [larger(builder, eight(first), carried[0])]

    last, best = loop(builder, integer(0), 8, builder.add(known, integer(7)), [never], most)
    best = largest_lane(builder, best)
    none, ends, find, found = (builder.append_basic_block(name) for name in ("none", "ends", "find", "found"))
    top = builder.extract_element(best, ir.Constant(I32, 0))
    builder.cbranch(builder.fcmp_ordered(">", top, ir.Constant(DOUBLE, -math.inf)), ends, none)

    builder.position_at_end(none)  # every score is nan or minus infinity: any class but the skipped one
    other = builder.zext(builder.icmp_signed("==", skip, integer(0)), I64)
    builder.ret(builder.select(builder.icmp_signed("<", other, known), other, integer(-1)))

    builder.position_at_end(ends)
    backwards = builder.icmp_signed("!=", largest, integer(0))
    begin = builder.select(backwards, builder.sub(last, integer(8)), integer(0))
    step = builder.select(backwards, integer(-8), integer(8))
    builder.branch(find)
    builder.position_at_end(find)
    first = builder.phi(I64)
    first.add_incoming(begin, ends)
    equal = builder.bitcast(builder.fcmp_ordered("==", eight(first), best), I8)
    first.add_incoming(builder.add(first, step), find)
    builder.cbranch(builder.icmp_unsigned("!=", equal, ir.Constant(I8, 0)), found, find)
    builder.position_at_end(found)
    low = builder.cttz(equal, ir.Constant(BIT, 1))
    high = builder.sub(ir.Constant(I8, 7), builder.ctlz(equal, ir.Constant(BIT, 1)))
    builder.ret(builder.add(first, builder.zext(builder.select(backwards, high, low), I64)))


def _write_leads(builder: Any, scores: Any, known: Any, label: Any, reach: Any) -> None:
    """Count the classes that the label does not lead: it is one of them itself."""
    top, least = (broadcast(builder, x, 4) for x in (builder.load(builder.gep(scores, [label])), reach))
    most = constants(math.inf, 4, DOUBLE)

    def four(first: Any, carried: list[Any]) -> list[Any]:
        lead = builder.fsub(top, builder.load(vector_pointer(builder, scores, first, 4), align=8))
        ahead = builder.and_(builder.fcmp_ordered(">", lead, least), builder.fcmp_ordered("<", lead, most))
        behind = builder.zext(builder.bitcast(builder.not_(ahead), ir.IntType(4)), I64)
        left = builder.sub(known, first)
        room = builder.select(builder.icmp_signed("<", left, integer(4)), left, integer(4))
        there = builder.and_(behind, builder.sub(builder.shl(integer(1), room), integer(1)))
        return [builder.add(carried[0], builder.ctpop(there))]

    _, count = loop(builder, integer(0), 4, builder.add(known, integer(3)), [integer(0)], four)
    builder.ret(builder.icmp_signed("==", count, integer(1)))


def bits_of_values(builder: Any, values: Any, count: Any) -> Any:
    """A mask of those of the first 64 of ``count`` numbers that are not 0."""
    return call_own(builder, "linmax_nonzero_bits", I64, _write_nonzero_bits, values, count)


def _write_nonzero_bits(builder: Any, values: Any, count: Any) -> None:
    """Eight comparisons at a time become eight bits."""
    length = builder.select(builder.icmp_signed("<", count, integer(64)), count, integer(64))

    def some(lanes: int) -> Callable[[Any, list[Any]], list[Any]]:
        def body(j: Any, bits: list[Any]) -> list[Any]:
            vector = builder.load(vector_pointer(builder, values, j, lanes), align=8)
            there = builder.fcmp_unordered("!=", vector, ir.Constant(vector.type, None))
            found = builder.zext(builder.bitcast(there, ir.IntType(lanes)), I64)
            return [builder.or_(bits[0], builder.shl(found, j))]

        return body

    j, bits = loop(builder, integer(0), 8, length, [integer(0)], some(8))
    j, bits = loop(builder, j, 4, length, [bits], some(4))
    _, bits = loop(builder, j, 1, length, [bits], some(1))
    builder.ret(bits)


def _write_pairs(builder: Any, *arguments: Any) -> None:
    """Four pairs at a time, then one: the two halves of a pair are interleaved by a shuffle."""
    index, z, low, high, stride, sign, rows, values, count = arguments

    def some(lanes: int) -> Callable[[Any, list[Any]], list[Any]]:
        zipped = ir.Constant(ir.VectorType(I32, 2 * lanes), [lane // 2 + lane % 2 * lanes for lane in range(2 * lanes)])

        def store(pointer: Any, j: Any, first: Any, second: Any) -> None:
            pairs = builder.shuffle_vector(first, second, zipped)
            builder.store(pairs, vector_pointer(builder, pointer, builder.add(j, j), 2 * lanes), align=8)

        def body(j: Any, _: list[Any]) -> list[Any]:
            place = builder.sext(
                builder.load(vector_pointer(builder, rows, j, lanes), align=4), ir.VectorType(I64, lanes)
            )
            at = builder.mul(place, broadcast(builder, stride, lanes))
            value = builder.load(vector_pointer(builder, values, j, lanes), align=8)
            value = builder.fmul(value, broadcast(builder, sign, lanes))
            store(index, j, *(builder.add(at, broadcast(builder, first, lanes)) for first in (low, high)))
            store(z, j, value, builder.fneg(value))
            return []

        return body

    (j,) = loop(builder, integer(0), 4, count, [], some(4))
    loop(builder, j, 1, count, [], some(1))
    builder.ret_void()


def _bits_of(builder: Any, votes: Any, first: Any, length: Any, classes: list[Any]) -> list[Any]:
    """For each class the mask of those of at most 64 voters from ``first`` on who vote for it."""

    def some(lanes: int) -> Callable[[Any, list[Any]], list[Any]]:
        def body(j: Any, masks: list[Any]) -> list[Any]:
            vote = builder.load(vector_pointer(builder, votes, builder.add(first, j), lanes), align=4)
            found = []
            for mask, which in zip(masks, classes, strict=True):
                here = builder.icmp_signed("==", vote, broadcast(builder, which, lanes))
                bits = builder.zext(builder.bitcast(here, ir.IntType(lanes)), I64)
                found.append(builder.or_(mask, builder.shl(bits, j)))
            return found

        return body

    j, *masks = loop(builder, integer(0), 8, length, [integer(0)] * len(classes), some(8))
    j, *masks = loop(builder, j, 4, length, masks, some(4))
    return loop(builder, j, 1, length, masks, some(1))[1:]


def _write_agreeing(builder: Any, votes: Any, size: Any, cls: Any) -> None:
    """All voters at once."""
    builder.ret(*_bits_of(builder, votes, integer(0), size, [builder.trunc(cls, I32)]))


def _write_votes(builder: Any, index: Any, z: Any, votes: Any, signs: Any, size: Any, label: Any, rival: Any) -> None:
    """Sixty-four voters at a time become bits, and the bits coordinates: one branch that cannot be foretold."""
    nobody = ir.Constant(I32, -2)  # a class that no vote names, an abstention neither
    classes = [
        builder.select(builder.icmp_signed("<", which, integer(0)), nobody, builder.trunc(which, I32))
        for which in (label, rival)
    ]

    def put(first: Any, counted: list[Any]) -> list[Any]:
        left = builder.sub(size, first)
        length = builder.select(builder.icmp_signed("<", left, integer(64)), left, integer(64))
        right, wrong = _bits_of(builder, votes, first, length, classes)

        def one(bit: Any, counted: list[Any]) -> list[Any]:
            (count,) = counted
            place = builder.add(first, bit)
            builder.store(place, builder.gep(index, [count]))
            flip = builder.shl(builder.lshr(wrong, bit), integer(63))  # a choice would become a branch
            sign = builder.bitcast(builder.load(builder.gep(signs, [place])), I64)
            builder.store(builder.bitcast(builder.xor(sign, flip), DOUBLE), builder.gep(z, [count]))
            return [builder.add(count, integer(1))]

        return each_bit(builder, builder.or_(right, wrong), counted, one)

    blocks = builder.and_(builder.add(size, integer(63)), integer(-64))
    _, count = loop(builder, integer(0), 64, blocks, [integer(0)], put)
    builder.ret(count)


if JIT:

    @intrinsic
    def put_votes(_, index, z, votes, signs, label, rival):  # type: ignore[no-untyped-def]
        """See `plain_put_votes`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            size = array_struct(context, builder, sig.args[2], args[2]).nitems
            for kind, array in zip(sig.args[:4], args[:4], strict=True):
                inside_array(context, builder, kind, array, integer(0), size)
            data = [
                data_pointer(context, builder, kind, array) for kind, array in zip(sig.args[:4], args[:4], strict=True)
            ]
            return call_own(builder, "linmax_votes", I64, _write_votes, *data, size, *args[4:])

        return int64(index, z, int32[::1], float64[::1], int64, int64), codegen

    @intrinsic
    def agreeing(_, votes, cls):  # type: ignore[no-untyped-def]
        """See `plain_agreeing`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            row = array_struct(context, builder, sig.args[0], args[0])
            inside(context, builder, integer(0), row.nitems, integer(64))
            return call_own(builder, "linmax_agreeing", I64, _write_agreeing, row.data, row.nitems, args[1])

        return int64(int32[::1], int64), codegen

    @intrinsic
    def best_but(_, scores, known, skip, largest):  # type: ignore[no-untyped-def]
        """See `plain_best_but`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            data = data_pointer(context, builder, sig.args[0], args[0])
            eights = builder.and_(builder.add(args[1], integer(7)), integer(-8))
            inside_array(context, builder, sig.args[0], args[0], integer(0), eights)
            return call_own(builder, "linmax_best_but", I64, _write_best_but, data, *args[1:])

        return int64(scores, int64, int64, int64), codegen

    @intrinsic
    def leads(_, scores, known, label, reach):  # type: ignore[no-untyped-def]
        """See `plain_leads`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            data = data_pointer(context, builder, sig.args[0], args[0])
            fours = builder.and_(builder.add(args[1], integer(3)), integer(-4))
            inside_array(context, builder, sig.args[0], args[0], integer(0), fours)
            return call_own(builder, "linmax_leads", BIT, _write_leads, data, *args[1:])

        return boolean(scores, int64, int64, float64), codegen

    @intrinsic
    def nonzero_bits(_, values, first):  # type: ignore[no-untyped-def]
        """See `plain_nonzero_bits`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            row = array_struct(context, builder, sig.args[0], args[0])
            inside(context, builder, args[1], integer(1), row.nitems)
            there, left = builder.gep(row.data, [args[1]]), builder.sub(row.nitems, args[1])
            return bits_of_values(builder, there, left)

        return int64(values, int64), codegen

    @intrinsic
    def lowest_bit(_, bits):  # type: ignore[no-untyped-def]
        """See `plain_lowest_bit`."""
        return int64(int64), lambda _context, builder, _signature, args: builder.cttz(args[0], ir.Constant(BIT, 1))

    @intrinsic
    def put_pairs(_, index, z, count, places, sign, rows, values, lo, hi):  # type: ignore[no-untyped-def]
        """See `plain_put_pairs`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            starts = (args[2], args[2], args[7], args[7])
            four = zip((0, 1, 5, 6), starts, strict=True)
            data = [data_pointer(context, builder, sig.args[i], args[i], start) for i, start in four]
            places = [builder.extract_value(args[3], i) for i in range(3)]
            length = builder.sub(args[8], args[7])
            lengths = [builder.mul(length, integer(2))] * 2 + [length] * 2
            for i, start, many in zip((0, 1, 5, 6), starts, lengths, strict=True):
                inside_array(context, builder, sig.args[i], args[i], start, many)
            call_own(builder, "linmax_pairs", VOID, _write_pairs, *data[:2], *places, args[4], *data[2:], length)
            return context.get_dummy_value()

        three = types.UniTuple(int64, 3)
        return types.void(index, z, int64, three, float64, int32[::1], float64[::1], int64, int64), codegen

else:
    best_but, leads, nonzero_bits, lowest_bit = plain_best_but, plain_leads, plain_nonzero_bits, plain_lowest_bit
    put_pairs, put_votes, agreeing = plain_put_pairs, plain_put_votes, plain_agreeing
