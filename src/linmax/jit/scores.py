"""Scores of a linear machine: scores[c] = sum over j of value_j * weights[base + row_j * stride + c].

A plain loop over a number of classes known at run time only is three to five times slower at 20 classes than these
explicit vectors. The functions ``plain_...`` define the results; they run when the compiler is off.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import float64, int32, int64, types
from numba.core import cgutils
from numba.extending import intrinsic

from linmax.jit.compiling import CHECKED, JIT, inside_array
from linmax.jit.vectors import (
    DOUBLE,
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
    "add_dense",
    "add_rows",
    "largest_but",
    "plain_add_dense",
    "plain_add_rows",
    "plain_largest_but",
    "plain_start_dense",
    "plain_start_rows",
    "start_dense",
    "start_rows",
]

# A shape is: lanes of a vector, vectors side by side, and independent sums that hide the latency of additions. Strides
# of 1, 2, 4, 8 and 24 are one pass with the stride as a constant; others are passes over 16 classes, then over 8.
# Vectors have at most 8 lanes: LLVM splits longer ones badly.
_SHAPES = ((1, 1, 4), (2, 1, 4), (4, 1, 4), (8, 1, 4), (8, 3, 2))
_WIDE, _NARROW = (8, 2, 4), (8, 1, 4)
_ROWS_AHEAD = 24  # rows prefetched, the next instance's included: its first misses would otherwise stall every trial
_VALUES_AHEAD = 256  # row numbers and values prefetched: the hardware's own prefetching stops at the end of every page


def plain_add_rows(
    scores: np.ndarray,
    weights: np.ndarray,
    base: int,
    stride: int,
    rows: np.ndarray,
    values: np.ndarray,
    lo: int,
    hi: int,
) -> None:
    """``scores += sum over j in lo..hi of values[j] * weights[base + rows[j] * stride :][:stride]``."""
    for j in range(lo, hi):
        start = base + rows[j] * stride
        for c in range(stride):
            scores[c] += values[j] * weights[start + c]


def plain_add_dense(scores: np.ndarray, weights: np.ndarray, base: int, stride: int, values: np.ndarray) -> None:
    """Add a dense row: attribute j sits at row j."""
    for j in range(values.size):
        start = base + j * stride
        for c in range(stride):
            scores[c] += values[j] * weights[start + c]


def plain_start_rows(
    scores: np.ndarray,
    weights: np.ndarray,
    base: int,
    stride: int,
    constant: float,
    rows: np.ndarray,
    values: np.ndarray,
    lo: int,
    hi: int,
) -> None:
    """`plain_add_rows` to ``constant * weights[base - stride : base]``, the row before, instead of to the scores."""
    for c in range(stride):
        scores[c] = constant * weights[base - stride + c]
    plain_add_rows(scores, weights, base, stride, rows, values, lo, hi)


def plain_start_dense(
    scores: np.ndarray, weights: np.ndarray, base: int, stride: int, constant: float, values: np.ndarray
) -> None:
    """Start with a dense row."""
    for c in range(stride):
        scores[c] = constant * weights[base - stride + c]
    plain_add_dense(scores, weights, base, stride, values)


def plain_largest_but(scores: np.ndarray, known: int, skip: int) -> float:
    """Return the largest of ``scores[:known]`` except ``skip``, if that is one; -inf without any; nan is ignored.

    ``scores`` has space for whole vectors of 8.
    """
    others = np.delete(scores[:known], skip) if 0 <= skip < known else scores[:known]
    return float(np.fmax.reduce(others, initial=-np.inf))


class _WeightedRows(NamedTuple):
    """The rows that a pass adds up, as IR values."""

    weights: Any  # pointer to the first row
    stride: Any
    numbers: Any  # pointer to the int32 row numbers, or None when value j belongs to row j
    values: Any
    count: Any
    within: Any  # how many row numbers may be read, those of later instances included


def _places(builder: Any, rows: _WeightedRows, j: Any, together: int) -> list[Any]:
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


def _rows(builder: Any, rows: _WeightedRows, j: Any, together: int) -> list[Any]:
    """Pointers to the rows from j on."""
    starts = [builder.mul(place, rows.stride, flags=("nsw",)) for place in _places(builder, rows, j, together)]
    return [builder.gep(rows.weights, [start]) for start in starts]


def _write_pass(
    builder: Any, scores: Any, start: Any, factor: Any, rows: _WeightedRows, shape: tuple[int, int, int]
) -> None:
    """Write one pass over the rows, for as many classes as the shape has: ``scores = factor * start + sum of rows``."""
    lanes, parts, ways = shape
    vector = ir.VectorType(DOUBLE, lanes)
    streamed = parts == 1  # with more classes the weights, not the rows, limit the speed

    def prefetch_weights(j: Any) -> None:
        coming = builder.add(j, integer(_ROWS_AHEAD))
        there = builder.icmp_signed("<=", builder.add(coming, integer(ways)), rows.within)
        for at in _rows(builder, rows, builder.select(there, coming, j), ways):
            for part in range(parts):
                prefetch_pointer(builder, builder.gep(at, [integer(part * lanes)]), locality=3)

    def prefetch_stream(j: Any) -> None:
        ahead = builder.add(j, integer(_VALUES_AHEAD))
        for pointer in (rows.values,) if rows.numbers is None else (rows.values, rows.numbers):
            prefetch_pointer(builder, builder.gep(pointer, [ahead]), locality=3)

    def add(together: int) -> Callable[[Any, list[Any]], list[Any]]:
        def body(j: Any, sums: list[Any]) -> list[Any]:
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

    def write(builder: Any, *arguments: Any) -> None:
        scores, weights, stride, start, factor, values, count, *sparse_only = arguments
        numbers, within = sparse_only if sparse else (None, None)

        def block(first: Any, step: Any, shape: tuple[int, int, int]) -> None:
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

            def body(first: Any, _: list[Any], shape: tuple[int, int, int] = shape) -> list[Any]:
                block(first, stride, shape)
                return []

            (done,) = loop(builder, done, shape[0] * shape[1], stride, [], body)
        builder.ret_void()

    return write


def _check_rows(context: Any, builder: Any, kinds: Any, args: Any, tail: list[Any], before: bool) -> None:
    """In the checked mode: all rows are in the weights, which ``args`` begin with, and so is that ``before`` the first.

    After the weights come the first place and the stride; the last arguments are those of `_sparse_tail`, or
    `_dense_tail`.
    """
    base, stride = args[1:3]
    if before:
        inside_array(context, builder, kinds[0], args[0], builder.sub(base, stride), stride)
    if len(tail) == 2:
        inside_array(context, builder, kinds[0], args[0], base, builder.mul(tail[1], stride))
        return
    for kind, array in zip(kinds[-4:-2], args[-4:-2], strict=True):
        inside_array(context, builder, kind, array, args[-2], tail[1])
    with cgutils.for_range_slice(builder, integer(0), tail[1], integer(1), intp=I64) as (j, _):
        row = builder.sext(builder.load(builder.gep(tail[2], [j])), I64)
        inside_array(context, builder, kinds[0], args[0], builder.add(base, builder.mul(row, stride)), stride)


def _scores(context: Any, builder: Any, kinds: Any, args: Any, constant: Any, tail: list[Any]) -> Any:
    """Call the function that adds up rows; ``tail`` holds its arguments from ``values`` on."""
    if CHECKED:
        inside_array(context, builder, kinds[0], args[0], integer(0), args[3])
        _check_rows(context, builder, kinds[1:], args[1:], tail, constant is not None)
    scores = data_pointer(context, builder, kinds[0], args[0])
    weights, stride = data_pointer(context, builder, kinds[1], args[1], args[2]), args[3]
    start, factor = scores, ir.Constant(DOUBLE, 1.0)
    if constant is not None:
        start, factor = builder.gep(weights, [builder.neg(stride)]), constant
    sparse = len(tail) > 2
    name = "linmax_rows" if sparse else "linmax_dense"
    call_own(builder, name, VOID, _write_scores(sparse), scores, weights, stride, start, factor, *tail)
    return context.get_dummy_value()


def _sparse_tail(context: Any, builder: Any, kinds: Any, args: Any) -> list[Any]:
    """The values, their number, the row numbers and how many of these may be read."""
    (rows, values, lo, hi), (rows_kind, values_kind) = args[-4:], kinds[-4:-2]
    table = array_struct(context, builder, rows_kind, rows)
    at = data_pointer(context, builder, values_kind, values, lo)
    return [at, builder.sub(hi, lo), builder.gep(table.data, [lo]), builder.sub(table.nitems, lo)]


def _dense_tail(context: Any, builder: Any, kinds: Any, args: Any) -> list[Any]:
    """The values, which are the last argument, and their number."""
    row = array_struct(context, builder, kinds[-1], args[-1])
    return [row.data, row.nitems]


def _write_largest_but(builder: Any, scores: Any, known: Any, skip: Any) -> None:
    limit, skipped = broadcast(builder, known, 8), broadcast(builder, skip, 8)
    least = constants(-math.inf, 8, DOUBLE)

    def eight(first: Any, largest: list[Any]) -> list[Any]:
        place = builder.add(broadcast(builder, first, 8), ir.Constant(EIGHT_INTS, list(range(8))))
        out = builder.or_(builder.icmp_signed("==", place, skipped), builder.icmp_signed(">=", place, limit))
        some = builder.select(out, least, builder.load(vector_pointer(builder, scores, first, 8), align=8))
        return [larger(builder, some, largest[0])]

    _, largest = loop(builder, integer(0), 8, builder.add(known, integer(7)), [least], eight)
    builder.ret(builder.extract_element(largest_lane(builder, largest), ir.Constant(I32, 0)))


if JIT:

    @intrinsic
    def largest_but(_, scores, known, skip):  # type: ignore[no-untyped-def]
        """See `plain_largest_but`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            data = data_pointer(context, builder, sig.args[0], args[0])
            eights = builder.and_(builder.add(args[1], integer(7)), integer(-8))
            inside_array(context, builder, sig.args[0], args[0], integer(0), eights)
            return call_own(builder, "linmax_largest_but", DOUBLE, _write_largest_but, data, *args[1:])

        return float64(scores, int64, int64), codegen

    @intrinsic
    def add_rows(_, scores, weights, base, stride, rows, values, lo, hi):  # type: ignore[no-untyped-def]
        """See `plain_add_rows`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            tail = _sparse_tail(context, builder, sig.args, args)
            return _scores(context, builder, sig.args, args, None, tail)

        return types.void(scores, weights, int64, int64, int32[::1], float64[::1], int64, int64), codegen

    @intrinsic
    def start_rows(_, scores, weights, base, stride, constant, rows, values, lo, hi):  # type: ignore[no-untyped-def]
        """See `plain_start_rows`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            tail = _sparse_tail(context, builder, sig.args, args)
            return _scores(context, builder, sig.args, args, args[4], tail)

        return types.void(scores, weights, int64, int64, float64, int32[::1], float64[::1], int64, int64), codegen

    @intrinsic
    def add_dense(_, scores, weights, base, stride, values):  # type: ignore[no-untyped-def]
        """See `plain_add_dense`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            tail = _dense_tail(context, builder, sig.args, args)
            return _scores(context, builder, sig.args, args, None, tail)

        return types.void(scores, weights, int64, int64, float64[::1]), codegen

    @intrinsic
    def start_dense(_, scores, weights, base, stride, constant, values):  # type: ignore[no-untyped-def]
        """See `plain_start_dense`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            tail = _dense_tail(context, builder, sig.args, args)
            return _scores(context, builder, sig.args, args, args[4], tail)

        return types.void(scores, weights, int64, int64, float64, float64[::1]), codegen

else:
    add_rows, add_dense, start_rows, start_dense = plain_add_rows, plain_add_dense, plain_start_rows, plain_start_dense
    largest_but = plain_largest_but
