"""Adding a multiple of an instance to the weights of one class and taking it from those of another, row by row.

Of a row all weights are written that a vector holds, not just the one that moves: then the scores of the next instance,
which are added up by vectors, need not wait until it has reached the cache. The functions ``plain_...`` define
the results; they run when the compiler is off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import boolean, float64, int32, int64
from numba.core import cgutils
from numba.extending import intrinsic

from linmax.jit.compiling import CHECKED, JIT
from linmax.jit.scores import check_rows, dense_tail, sparse_tail
from linmax.jit.selection import bits_of_values
from linmax.jit.vectors import (
    BIT,
    DOUBLE,
    FUSE,
    I64,
    broadcast,
    call_own,
    constants,
    data_pointer,
    each_bit,
    integer,
    larger,
    loop,
    vector_pointer,
)

__all__ = ["move_dense", "move_rows", "plain_move_dense", "plain_move_rows"]

_BLOCK = 4  # lanes of the parts of a row; one that is longer than two is so many whole blocks


def plain_move_rows(
    weights: np.ndarray,
    base: int,
    stride: int,
    classes: tuple[int, int],
    steps: tuple[float, float, float],
    rows: np.ndarray,
    values: np.ndarray,
    lo: int,
    hi: int,
) -> bool:
    """Move ``weights[base + rows[j] * stride + c]`` by ``rate * values[j]`` for the first class, back for the second.

    ``steps`` holds the rate, the value that belongs to the row before ``base``, and what the magnitudes of all weights
    written must be below; returns whether they are.
    """
    rate, constant, limit = steps
    fits = True
    pairs = [(-1, constant), *((int(rows[j]), float(values[j])) for j in range(lo, hi))]
    for row, value in pairs:
        for cls, pace in zip(classes, (rate, -rate), strict=True):
            place = base + row * stride + cls
            weights[place] += pace * value
            fits &= bool(abs(weights[place]) < limit)
    return fits


def plain_move_dense(
    weights: np.ndarray,
    base: int,
    stride: int,
    classes: tuple[int, int],
    steps: tuple[float, float, float],
    values: np.ndarray,
) -> bool:
    """The same for a dense row: attribute j sits at row j."""
    return plain_move_rows(weights, base, stride, classes, steps, np.arange(values.size), values, 0, values.size)


def _write_moves(builder: Any, arguments: Any, lanes: int, blocks: list[Any]) -> None:
    """Move the rows by blocks of so many lanes, each given by its first class; returns whether the weights fit."""
    weights, stride, first, second, rate, constant, limit, values, count, *numbers = arguments
    limits, nothing = broadcast(builder, limit, lanes), constants(0.0, lanes, DOUBLE)
    number = ir.Constant(ir.VectorType(I64, lanes), list(range(lanes)))
    magnitude = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(nothing.type, [nothing.type]), f"llvm.fabs.v{lanes}f64"
    )

    def pace(block: Any) -> Any:
        place = builder.add(number, broadcast(builder, block, lanes))
        up, down = (builder.icmp_signed("==", place, broadcast(builder, cls, lanes)) for cls in (first, second))
        back = builder.select(down, broadcast(builder, builder.fneg(rate), lanes), nothing)
        return builder.select(up, broadcast(builder, rate, lanes), back)

    paces = [pace(block) for block in blocks]

    def move(row: Any, value: Any, most: Any) -> Any:
        by = broadcast(builder, value, lanes)
        start = builder.mul(row, stride, flags=("nsw",))
        for block, step in zip(blocks, paces, strict=True):
            there = vector_pointer(builder, weights, builder.add(start, block), lanes)
            moved = builder.fadd(builder.load(there, align=8), builder.fmul(by, step, flags=FUSE), flags=FUSE)
            builder.store(moved, there, align=8)
            most = larger(builder, builder.call(magnitude, [moved]), most)
        return most

    most = move(integer(-1), constant, nothing)
    if numbers:

        def sparse(j: Any, carried: list[Any]) -> list[Any]:
            row = builder.sext(builder.load(builder.gep(numbers[0], [j])), I64)
            return [move(row, builder.load(builder.gep(values, [j])), carried[0])]

        _, most = loop(builder, integer(0), 1, count, [most], sparse)
    else:

        def dense(start: Any, carried: list[Any]) -> list[Any]:
            bits = bits_of_values(builder, builder.gep(values, [start]), builder.sub(count, start))

            def one(bit: Any, carried: list[Any]) -> list[Any]:
                row = builder.add(start, bit)
                return [move(row, builder.load(builder.gep(values, [row])), carried[0])]

            return each_bit(builder, bits, carried, one)

        whole = builder.and_(builder.add(count, integer(63)), integer(-64))
        _, most = loop(builder, integer(0), 64, whole, [most], dense)
    fits = builder.bitcast(builder.fcmp_ordered("<", most, limits), ir.IntType(lanes))
    builder.ret(builder.icmp_unsigned("==", fits, ir.Constant(fits.type, 2**lanes - 1)))


def _write(builder: Any, *arguments: Any) -> None:
    """Rows of two weights as a whole; of others the block, or the two blocks, that hold the classes."""
    stride, first, second = arguments[1:4]
    short, other, apart, together = (builder.append_basic_block(name) for name in ("short", "other", "apart", "one"))
    builder.cbranch(builder.icmp_signed("==", stride, integer(2)), short, other)
    builder.position_at_end(short)
    _write_moves(builder, arguments, 2, [integer(0)])
    builder.position_at_end(other)
    blocks = [builder.and_(cls, integer(-_BLOCK)) for cls in (first, second)]
    builder.cbranch(builder.icmp_signed("==", *blocks), together, apart)
    builder.position_at_end(together)
    _write_moves(builder, arguments, _BLOCK, blocks[:1])
    builder.position_at_end(apart)
    _write_moves(builder, arguments, _BLOCK, blocks)


def _moves(tail_of: Callable[..., list[Any]], name: str) -> Callable[..., Any]:
    """The code of a call; ``tail_of`` gives the values, their number and the row numbers."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        tail = tail_of(context, builder, sig.args, args)
        if CHECKED:
            check_rows(context, builder, sig.args, args, tail, before=True)
        weights = data_pointer(context, builder, sig.args[0], args[0], args[1])
        classes = [builder.extract_value(args[3], i) for i in range(2)]
        steps = [builder.extract_value(args[4], i) for i in range(3)]
        return call_own(builder, name, BIT, _write, weights, args[2], *classes, *steps, *tail[:3])

    return codegen


if JIT:

    @intrinsic
    def move_rows(_, weights, base, stride, classes, steps, rows, values, lo, hi):  # type: ignore[no-untyped-def]
        """See `plain_move_rows`."""
        kinds = (weights, int64, int64, classes, steps, int32[::1], float64[::1], int64, int64)
        return boolean(*kinds), _moves(sparse_tail, "linmax_move_rows")

    @intrinsic
    def move_dense(_, weights, base, stride, classes, steps, values):  # type: ignore[no-untyped-def]
        """See `plain_move_dense`."""
        return boolean(weights, int64, int64, classes, steps, float64[::1]), _moves(dense_tail, "linmax_move_dense")

else:
    move_rows, move_dense = plain_move_rows, plain_move_dense
