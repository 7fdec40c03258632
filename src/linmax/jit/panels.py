"""Scores of sixteen instances at once, one in each lane of a vector, for the search for the next update.

A panel holds rows of coordinates for every instance: row 0 belongs to its label, the others to the other classes.
Coordinates that rate a row either 1 or 0, such as votes, are stored as *codes*: a byte has a bit for each of four
coordinates, and the score of a row is the sum of look-ups in tables that hold the sums of all subsets of four weights.
Other ratings are stored as single-precision numbers and multiplied by the weights.

Instance ``16 * block + lane``, row r, group g of ``groups`` is the byte
``codes[((block * rows + r) * groups + g) * 16 + lane]``; ratings are laid out in the same way, with one coordinate in
place of a group of four.

The functions ``plain_...`` define the results; they run when the compiler is off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import ir
from numba import float32, float64, int8, int32, int64
from numba.core.base import BaseContext
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from linmax.jit.compiling import JIT, inside, inside_array, kernel
from linmax.jit.vectors import (
    BIT,
    FLOAT,
    FUSE,
    I16,
    I32,
    I64,
    array_struct,
    broadcast,
    call_own,
    data_pointer,
    declared,
    integer,
    larger,
    loop,
    vector_pointer,
)

__all__ = [
    "GROUP_SIZE",
    "LANES",
    "close_codes",
    "close_ratings",
    "fill_tables",
    "lowest_bit",
    "magnitude",
    "plain_close_codes",
    "plain_close_ratings",
    "plain_lowest_bit",
    "plain_used_below",
    "used_below",
]

LANES = 16  # instances of a block
GROUP_SIZE = 4  # coordinates of a code; a table has 2 ** GROUP_SIZE = LANES sums
_SIXTEEN, _EIGHT = ir.VectorType(I32, LANES), ir.VectorType(I32, 8)
_FLOATS = ir.VectorType(FLOAT, LANES)


@kernel(reorders=True)
def magnitude(values: np.ndarray) -> float:
    """Return the sum of the magnitudes, added in any order."""
    total = 0.0
    for i in range(values.size):
        total += abs(values[i])
    return total


@kernel()
def fill_tables(weights: np.ndarray, unit: float, tables: np.ndarray) -> None:
    """Write the sums of the subsets of every four weights, times ``unit``; subset s of group g is at 16 g + s."""
    for i in range(0, weights.size, GROUP_SIZE):
        a = weights[i] * unit
        b = weights[i + 1] * unit if i + 1 < weights.size else 0.0
        c = weights[i + 2] * unit if i + 2 < weights.size else 0.0
        d = weights[i + 3] * unit if i + 3 < weights.size else 0.0
        table = tables[GROUP_SIZE * i : GROUP_SIZE * i + LANES]
        for subset in range(LANES):
            table[subset] = a * (subset & 1) + b * (subset >> 1 & 1) + c * (subset >> 2 & 1) + d * (subset >> 3)


def plain_close_codes(scores: np.ndarray, codes: np.ndarray, start: int, tables: np.ndarray, slack: float) -> int:
    """Fill ``scores[row, lane]`` of a block of codes; return a bit for each lane whose row 0 leads by at most slack."""
    sums = tables.reshape(-1, LANES)
    block = codes[start : start + scores.shape[0] * sums.shape[0] * LANES].reshape(scores.shape[0], -1, LANES)
    for row in range(scores.shape[0]):
        scores[row] = 0.0
        for group, subsets in enumerate(block[row]):
            scores[row] += sums[group, subsets]
    return _plain_close(scores, slack)


def plain_close_ratings(scores: np.ndarray, ratings: np.ndarray, start: int, weights: np.ndarray, slack: float) -> int:
    """Fill the scores of a block of ratings, and return the bits that `plain_close_codes` returns."""
    block = ratings[start : start + scores.shape[0] * weights.size * LANES].reshape(scores.shape[0], -1, LANES)
    for row in range(scores.shape[0]):
        scores[row] = 0.0
        for weight, rating in zip(weights, block[row], strict=True):
            scores[row] += weight * rating
    return _plain_close(scores, slack)


def _plain_close(scores: np.ndarray, slack: float) -> int:
    with np.errstate(invalid="ignore"):
        leads = scores[0] - scores[1:].max(axis=0)
    return sum(1 << lane for lane in range(LANES) if not leads[lane] > slack)


def plain_used_below(uses: np.ndarray, first: int, limit: int) -> int:
    """Return a bit for each of sixteen counts from ``first`` on that is below the limit, the first in the lowest."""
    return sum(1 << lane for lane in range(LANES) if uses[first + lane] < limit)


def plain_lowest_bit(bits: int) -> int:
    """Return the position of the lowest set bit; at least one must be set."""
    return int(bits & -bits).bit_length() - 1


def _look_up(builder: ir.IRBuilder, features: str, table: ir.Value, codes: ir.Value) -> ir.Value:
    """``table[codes]`` for sixteen codes: by permutation of registers where the processor has such an instruction."""
    places = builder.zext(builder.load(codes, align=1), _SIXTEEN)
    if "+avx512f" in features:
        permute = declared(builder, "llvm.x86.avx512.permvar.sf.512", _FLOATS, _FLOATS, _SIXTEEN)
        return builder.call(permute, [builder.load(vector_pointer(builder, table, integer(0), LANES), align=4), places])
    if "+avx2" in features:
        half = ir.VectorType(FLOAT, 8)
        permute = declared(builder, "llvm.x86.avx2.permps", half, half, _EIGHT)
        ends = [builder.load(vector_pointer(builder, table, integer(8 * end), 8), align=4) for end in (0, 1)]
        halves = []
        for first in (0, 8):
            some = builder.shuffle_vector(places, places, ir.Constant(_EIGHT, list(range(first, first + 8))))
            low, high = (builder.call(permute, [end, some]) for end in ends)
            halves.append(builder.select(builder.icmp_signed(">", some, ir.Constant(_EIGHT, [7] * 8)), high, low))
        return builder.shuffle_vector(*halves, ir.Constant(_SIXTEEN, list(range(LANES))))
    found = ir.Constant(_FLOATS, ir.Undefined)
    for lane in range(LANES):
        place = builder.extract_element(places, ir.Constant(I32, lane))
        found = builder.insert_element(found, builder.load(builder.gep(table, [place])), ir.Constant(I32, lane))
    return found


def _write_close(add: Callable[..., ir.Value]) -> Callable[..., None]:
    """Write the function that scores a block; ``add(builder, sum, place, j, weights)`` adds group or coordinate j."""

    def write(
        builder: ir.IRBuilder,
        scores: ir.Value,
        rows: ir.Value,
        block: ir.Value,
        weights: ir.Value,
        count: ir.Value,
        slack: ir.Value,
    ) -> None:
        def score(row: ir.Value) -> ir.Value:
            def body(j: ir.Value, total: list[ir.Value]) -> list[ir.Value]:
                place = builder.mul(builder.add(builder.mul(row, count), j), integer(LANES))
                return [add(builder, total[0], vector_pointer(builder, block, place, LANES), j, weights)]

            total = loop(builder, integer(0), 1, count, [ir.Constant(_FLOATS, None)], body)[1]
            builder.store(total, vector_pointer(builder, scores, builder.mul(row, integer(LANES)), LANES), align=4)
            return total

        label, second = score(integer(0)), score(integer(1))
        best = loop(builder, integer(2), 1, rows, [second], lambda row, best: [larger(builder, score(row), best[0])])[1]
        limit = broadcast(builder, builder.fptrunc(slack, FLOAT), LANES)
        close = builder.fcmp_unordered("<=", builder.fsub(label, best), limit)
        builder.ret(builder.zext(builder.bitcast(close, I16), I64))

    return write


def _add_codes(features: str) -> Callable[..., ir.Value]:
    def add(builder: ir.IRBuilder, total: ir.Value, place: ir.Value, group: ir.Value, tables: ir.Value) -> ir.Value:
        table = builder.gep(tables, [builder.mul(group, integer(LANES))])
        return builder.fadd(total, _look_up(builder, features, table, place))

    return add


def _add_ratings(
    builder: ir.IRBuilder, total: ir.Value, place: ir.Value, coordinate: ir.Value, weights: ir.Value
) -> ir.Value:
    weight = broadcast(builder, builder.load(builder.gep(weights, [coordinate])), LANES)
    return builder.fadd(total, builder.fmul(weight, builder.load(place, align=4), flags=FUSE), flags=FUSE)


def _write_used_below(builder: ir.IRBuilder, uses: ir.Value, first: ir.Value, limit: ir.Value) -> None:
    """One comparison of sixteen."""
    counts = builder.load(vector_pointer(builder, uses, first, LANES), align=4)
    below = builder.icmp_signed("<", counts, broadcast(builder, builder.trunc(limit, I32), LANES))
    builder.ret(builder.zext(builder.bitcast(below, I16), I64))


def _call_close(
    context: BaseContext,
    builder: ir.IRBuilder,
    sig: Signature,
    args: Sequence[ir.Value],
    name: str,
    width: int,
    add: ir.Value,
) -> ir.Value:
    """Call the function that scores a block; ``width`` numbers of the weights belong to a group or coordinate."""
    scores, weights = (array_struct(context, builder, sig.args[i], args[i]) for i in (0, 3))
    rows, count = builder.extract_value(scores.shape, 0), builder.sdiv(weights.nitems, integer(width))
    inside(context, builder, integer(0), integer(2), rows)
    size = builder.mul(builder.mul(rows, count), integer(LANES))
    inside_array(context, builder, sig.args[1], args[1], args[2], size)
    inside_array(context, builder, sig.args[0], args[0], integer(0), builder.mul(rows, integer(LANES)))
    block = data_pointer(context, builder, sig.args[1], args[1], args[2])
    return call_own(builder, name, I64, _write_close(add), scores.data, rows, block, weights.data, count, args[4])


if JIT:

    @intrinsic
    def close_codes(_, scores, codes, start, tables, slack):  # type: ignore[no-untyped-def]
        """See `plain_close_codes`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            add = _add_codes(context.codegen()._tm_features)
            return _call_close(context, builder, sig, args, "linmax_close_codes", LANES, add)

        return int64(float32[:, ::1], int8[::1], int64, float32[::1], float64), codegen

    @intrinsic
    def close_ratings(_, scores, ratings, start, weights, slack):  # type: ignore[no-untyped-def]
        """See `plain_close_ratings`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            return _call_close(context, builder, sig, args, "linmax_close_ratings", 1, _add_ratings)

        return int64(float32[:, ::1], float32[::1], int64, float32[::1], float64), codegen

    @intrinsic
    def used_below(_, uses, first, limit):  # type: ignore[no-untyped-def]
        """See `plain_used_below`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            data = data_pointer(context, builder, sig.args[0], args[0])
            inside_array(context, builder, sig.args[0], args[0], args[1], integer(LANES))
            how = "alwaysinline"
            return call_own(builder, "linmax_used_below", I64, _write_used_below, data, *args[1:], how=how)

        return int64(int32[::1], int64, int64), codegen

    @intrinsic
    def lowest_bit(_, bits):  # type: ignore[no-untyped-def]
        """See `plain_lowest_bit`."""
        return int64(int64), lambda _context, builder, _signature, args: builder.cttz(args[0], ir.Constant(BIT, 1))

else:
    close_codes, close_ratings = plain_close_codes, plain_close_ratings
    used_below, lowest_bit = plain_used_below, plain_lowest_bit
