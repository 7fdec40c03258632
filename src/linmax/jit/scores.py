"""Scores of a linear machine: scores[c] = sum over j of value_j * weights[base + row_j * stride + c].

A plain loop over a number of classes known at run time only is three to five times slower at 20 classes than these
explicit vectors. The functions ``plain_...`` define the results; they run when the compiler is off.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import float64, int32, int64, types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from linmax.jit.compiling import CHECKED, JIT, inside_array
from linmax.jit.vectors import (
    DOUBLE,
    EIGHT_DOUBLES,
    EIGHT_INTS,
    FUSE,
    I32,
    I64,
    VOID,
    array_struct,
    broadcast,
    call_own,
    constants,
    data_pointer,
    integer,
    larger,
    largest_lane,
    loop,
    prefetch_pointer,
    vector_pointer,
)

__all__ = [
    "largest_but",
    "place_of",
    "plain_largest_but",
    "plain_place_of",
    "plain_sum_dense",
    "plain_sum_rows",
    "sum_dense",
    "sum_rows",
]

# A shape is: lanes of a vector, vectors side by side, and independent sums that hide the latency of additions. Strides
# of 1, 2, 4, 8 and 24 are one pass with the stride as a constant; others are passes over 16 classes, then over 8.
# Vectors have at most 8 lanes: LLVM splits longer ones badly.
_SHAPES = ((1, 1, 4), (2, 1, 4), (4, 1, 4), (8, 1, 4), (8, 3, 2))
_WIDE, _NARROW = (8, 2, 4), (8, 1, 4)
_ROWS_AHEAD = 24  # rows prefetched, the next instance's included: its first misses would otherwise stall every trial
_VALUES_AHEAD = 256  # row numbers and values prefetched: the hardware's own prefetching stops at the end of every page


def plain_sum_rows(
    scores: np.ndarray,
    start: np.ndarray,
    first: int,
    factor: float,
    weights: np.ndarray,
    base: int,
    stride: int,
    rows: np.ndarray,
    values: np.ndarray,
    lo: int,
    hi: int,
) -> None:
    """``scores = factor * start[first:] + sum over j in lo..hi of values[j] * weights[base + rows[j] * stride :]``.

    All have ``stride`` numbers. The scores may be ``start`` themselves.
    """
    scores[:stride] = factor * start[first : first + stride]
    for j in range(lo, hi):
        place = base + rows[j] * stride
        scores[:stride] += values[j] * weights[place : place + stride]


def plain_sum_dense(
    scores: np.ndarray,
    start: np.ndarray,
    first: int,
    factor: float,
    weights: np.ndarray,
    base: int,
    stride: int,
    values: np.ndarray,
) -> None:
    """`plain_sum_rows` of a dense row: value j belongs to row j."""
    rows = np.arange(values.size)
    plain_sum_rows(scores, start, first, factor, weights, base, stride, rows, values, 0, values.size)


def plain_largest_but(scores: np.ndarray, known: int, skip: int) -> float:
    """Return the largest of ``scores[:known]`` except ``skip``, if that is one; -inf without any; nan is ignored.

    ``scores`` has space for whole vectors of 8.
    """
    others = np.delete(scores[:known], skip) if 0 <= skip < known else scores[:known]
    return float(np.fmax.reduce(others, initial=-np.inf))


def plain_place_of(scores: np.ndarray, known: int, skip: int, least: float, last: int) -> int:
    """Return the first of the known classes but one (or the ``last``) that has at least this score; -1 without any."""
    places = [c for c in range(known) if c != skip and scores[c] >= least]
    return places[-1 if last else 0] if places else -1


class _WeightedRows(NamedTuple):
    """The rows that a pass adds up, as IR values."""

    weights: ir.Value  # pointer to the first row
    stride: ir.Value
    numbers: ir.Value  # pointer to the int32 row numbers, or None when value j belongs to row j
    values: ir.Value
    count: ir.Value
    within: ir.Value  # how many row numbers may be read, those of later instances included


def _places(builder: ir.IRBuilder, rows: _WeightedRows, j: ir.Value, together: int) -> list[ir.Value]:
    """The row numbers from j on, one or an even number of them; two by each load, since loads limit the speed."""
    following = [builder.add(j, integer(way), flags=("nsw",)) for way in range(together)]
    if rows.numbers is None:
        return following
    if together == 1:
        return [builder.sext(builder.load(builder.gep(rows.numbers, [j])), I64)]
    found = []
    for even in following[::2]:
        at = builder.bitcast(builder.gep(rows.numbers, [even]), I64.as_pointer())
        both = builder.load(at, align=4)
        halves = [builder.sext(builder.trunc(both, I32), I64), builder.ashr(both, integer(32))]
        found += halves if sys.byteorder == "little" else halves[::-1]
    return found


def _rows(builder: ir.IRBuilder, rows: _WeightedRows, j: ir.Value, together: int) -> list[ir.Value]:
    """Pointers to the rows from j on."""
    starts = [builder.mul(place, rows.stride, flags=("nsw",)) for place in _places(builder, rows, j, together)]
    return [builder.gep(rows.weights, [start]) for start in starts]


def _write_pass(
    builder: ir.IRBuilder,
    scores: ir.Value,
    start: ir.Value,
    factor: ir.Value,
    rows: _WeightedRows,
    shape: tuple[int, int, int],
) -> None:
    """Write one pass over the rows, for as many classes as the shape has: ``scores = factor * start + sum of rows``."""
    lanes, parts, ways = shape
    vector = ir.VectorType(DOUBLE, lanes)
    streamed = parts == 1  # with more classes the weights, not the rows, limit the speed

    def prefetch_weights(j: ir.Value) -> None:
        coming = builder.add(j, integer(_ROWS_AHEAD))
        there = builder.icmp_signed("<=", builder.add(coming, integer(ways)), rows.within)
        for at in _rows(builder, rows, builder.select(there, coming, j), ways):
            for part in range(parts):
                prefetch_pointer(builder, builder.gep(at, [integer(part * lanes)]), locality=3)

    def prefetch_stream(j: ir.Value) -> None:
        ahead = builder.add(j, integer(_VALUES_AHEAD))
        for pointer in (rows.values,) if rows.numbers is None else (rows.values, rows.numbers):
            prefetch_pointer(builder, builder.gep(pointer, [ahead]), locality=3)

    def add(together: int) -> Callable[[ir.Value, list[ir.Value]], list[ir.Value]]:
        def body(j: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            if together > 1 and streamed:
                prefetch_stream(j)
            if rows.numbers is not None and together > 1 and lanes > 1:  # rows of one number gain nothing
                prefetch_weights(j)
            updated = []
            for way, at in enumerate(_rows(builder, rows, j, together)):
                here = builder.add(j, integer(way), flags=("nsw",))
                value = broadcast(builder, builder.load(builder.gep(rows.values, [here])), lanes)
                for part in range(parts):
                    weight = builder.load(vector_pointer(builder, at, integer(part * lanes), lanes), align=8)
                    term = builder.fmul(value, weight, flags=FUSE)
                    updated.append(builder.fadd(sums[way * parts + part], term, flags=FUSE))
            return updated

        return body

    offsets = [integer(part * lanes) for part in range(parts)]
    multiple = broadcast(builder, factor, lanes)
    first = [builder.load(vector_pointer(builder, start, place, lanes), align=8) for place in offsets]
    sums = [builder.fmul(multiple, begin) for begin in first] + [ir.Constant(vector, None)] * (parts * (ways - 1))
    j, *sums = loop(builder, integer(0), ways, rows.count, sums, add(ways))
    while len(sums) > parts:
        half = len(sums) // 2
        sums = [builder.fadd(a, b) for a, b in zip(sums[:half], sums[half:], strict=True)]
    _, *sums = loop(builder, j, 1, rows.count, sums, add(1))
    for total, place in zip(sums, offsets, strict=True):
        builder.store(total, vector_pointer(builder, scores, place, lanes), align=8)


def _write_scores(sparse: bool) -> Callable[..., None]:
    """The writer of the function that adds up rows, sparse or dense: a pass for every block of classes."""

    def write(builder: ir.IRBuilder, *arguments: ir.Value) -> None:
        scores, weights, stride, start, factor, values, count, *sparse_only = arguments
        numbers, within = sparse_only if sparse else (None, None)

        def block(first: ir.Value, step: ir.Value, shape: tuple[int, int, int]) -> None:
            to, of, begin = [builder.gep(pointer, [first]) for pointer in (scores, weights, start)]
            _write_pass(builder, to, begin, factor, _WeightedRows(of, step, numbers, values, count, within), shape)

        other = builder.append_basic_block("other")
        choice = builder.switch(stride, other)
        for shape in _SHAPES:
            length = integer(shape[0] * shape[1])
            case = builder.append_basic_block("case")
            choice.add_case(length, case)
            builder.position_at_end(case)
            block(integer(0), length, shape)
            builder.ret_void()
        builder.position_at_end(other)
        done = integer(0)
        for shape in (_WIDE, _NARROW):

            def body(first: ir.Value, _: list[ir.Value], shape: tuple[int, int, int] = shape) -> list[ir.Value]:
                block(first, stride, shape)
                return []

            (done,) = loop(builder, done, shape[0] * shape[1], stride, [], body)
        builder.ret_void()

    return write


def _scores(
    context: BaseContext, builder: ir.IRBuilder, kinds: Sequence[types.Type], args: Sequence[ir.Value], sparse: bool
) -> ir.Value:
    """Call the function that adds up rows: those that the last arguments name, or all."""
    scores, start, first, factor, weights, base, stride, *which = args
    if sparse:
        rows, values, lo, hi = which
        table, count = array_struct(context, builder, kinds[7], rows), builder.sub(hi, lo)
        tail = [data_pointer(context, builder, kinds[8], values, lo), count]
        tail += [builder.gep(table.data, [lo]), builder.sub(table.nitems, lo)]
    else:
        row = array_struct(context, builder, kinds[7], which[0])
        tail = [row.data, row.nitems]
    if CHECKED:
        inside_array(context, builder, kinds[0], scores, integer(0), stride)
        inside_array(context, builder, kinds[1], start, first, stride)
        if sparse:
            for place in (7, 8):
                inside_array(context, builder, kinds[place], args[place], lo, count)
            with cgutils.for_range_slice(builder, integer(0), count, integer(1), intp=I64) as (j, _):
                row = builder.sext(builder.load(builder.gep(tail[2], [j])), I64)
                at = builder.add(base, builder.mul(row, stride))
                inside_array(context, builder, kinds[4], weights, at, stride)
        else:
            inside_array(context, builder, kinds[4], weights, base, builder.mul(tail[1], stride))
    to = data_pointer(context, builder, kinds[0], scores)
    of = data_pointer(context, builder, kinds[4], weights, base)
    begin = data_pointer(context, builder, kinds[1], start, first)
    name = "linmax_rows" if sparse else "linmax_dense"
    call_own(builder, name, VOID, _write_scores(sparse), to, of, stride, begin, factor, *tail)
    return context.get_dummy_value()


def _largest(
    builder: ir.IRBuilder, scores: ir.Value, known: ir.Value, skip: ir.Value, number: Callable[..., ir.Value]
) -> ir.Value:
    """The largest ``number(scores, places)`` of the known classes but one; -inf without any."""
    limit, skipped = broadcast(builder, known, 8), broadcast(builder, skip, 8)
    least = constants(-math.inf, 8, DOUBLE)

    def eight(first: ir.Value, largest: list[ir.Value]) -> list[ir.Value]:
        place = builder.add(broadcast(builder, first, 8), ir.Constant(EIGHT_INTS, list(range(8))))
        out = builder.or_(builder.icmp_signed("==", place, skipped), builder.icmp_signed(">=", place, limit))
        some = number(builder.load(vector_pointer(builder, scores, first, 8), align=8), place)
        return [larger(builder, builder.select(out, least, some), largest[0])]

    first = eight(integer(0), [least])  # outside the loop, as there are seldom more
    _, largest = loop(builder, integer(8), 8, builder.add(known, integer(7)), first, eight)
    return builder.extract_element(largest_lane(builder, largest), ir.Constant(I32, 0))


def _write_largest_but(builder: ir.IRBuilder, scores: ir.Value, known: ir.Value, skip: ir.Value) -> None:
    builder.ret(_largest(builder, scores, known, skip, lambda some, _: some))


def _write_place_of(
    builder: ir.IRBuilder, scores: ir.Value, known: ir.Value, skip: ir.Value, number: ir.Value, last: ir.Value
) -> None:
    """The largest place of a number as large, or the largest of the negative places."""
    least = broadcast(builder, number, 8)
    turn = broadcast(builder, builder.select(builder.icmp_signed("!=", last, integer(0)), integer(1), integer(-1)), 8)

    def signed(some: ir.Value, place: ir.Value) -> ir.Value:
        number = builder.sitofp(builder.mul(place, turn), EIGHT_DOUBLES)
        return builder.select(builder.fcmp_ordered(">=", some, least), number, constants(-math.inf, 8, DOUBLE))

    found = _largest(builder, scores, known, skip, signed)
    place = builder.fptosi(found, I64)
    place = builder.select(builder.icmp_signed("<", place, integer(0)), builder.neg(place), place)
    builder.ret(builder.select(builder.fcmp_ordered("==", found, ir.Constant(DOUBLE, -math.inf)), integer(-1), place))


if JIT:

    def _among_scores(
        context: BaseContext,
        builder: ir.IRBuilder,
        sig: Signature,
        args: Sequence[ir.Value],
        name: str,
        kind: ir.Type,
        write: Callable[..., None],
    ) -> ir.Value:
        """Call a function that looks at the known scores, in whole vectors."""
        eights = builder.and_(builder.add(args[1], integer(7)), integer(-8))
        inside_array(context, builder, sig.args[0], args[0], integer(0), eights)
        return call_own(builder, name, kind, write, data_pointer(context, builder, sig.args[0], args[0]), *args[1:])

    @intrinsic
    def largest_but(_, scores, known, skip):  # type: ignore[no-untyped-def]
        """See `plain_largest_but`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            return _among_scores(context, builder, sig, args, "linmax_largest_but", DOUBLE, _write_largest_but)

        return float64(scores, int64, int64), codegen

    @intrinsic
    def place_of(_, scores, known, skip, least, last):  # type: ignore[no-untyped-def]
        """See `plain_place_of`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            return _among_scores(context, builder, sig, args, "linmax_place_of", I64, _write_place_of)

        return int64(scores, int64, int64, float64, int64), codegen

    @intrinsic
    def sum_rows(_, scores, start, first, factor, weights, base, stride, rows, values, lo, hi):  # type: ignore[no-untyped-def]
        """See `plain_sum_rows`."""
        kind, number = float64[::1], int64
        takes = types.void(kind, kind, number, float64, kind, number, number, int32[::1], kind, number, number)
        return takes, lambda context, builder, sig, args: _scores(context, builder, sig.args, args, True)

    @intrinsic
    def sum_dense(_, scores, start, first, factor, weights, base, stride, values):  # type: ignore[no-untyped-def]
        """See `plain_sum_dense`."""
        kind, number = float64[::1], int64
        takes = types.void(kind, kind, number, float64, kind, number, number, kind)
        return takes, lambda context, builder, sig, args: _scores(context, builder, sig.args, args, False)

else:
    sum_rows, sum_dense, largest_but, place_of = plain_sum_rows, plain_sum_dense, plain_largest_but, plain_place_of
