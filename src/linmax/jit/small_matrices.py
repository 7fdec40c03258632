"""Short rows in vectors of four, and small positive definite matrices in blocks of four rows and four columns.

A factor of A is an upper triangle U with U'U = A, but that its diagonal holds the inverses. Its size is a multiple of
four; the coordinates beyond those of A are 1 on the diagonal and 0 elsewhere. Plain loops would compute the same; but
the rows are short, and the compiled loops would mostly run checks and remainders.

The functions ``plain_...`` define the results up to rounding; they run when the compiler is off.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import float64, int64, types
from numba.core.base import BaseContext
from numba.extending import intrinsic

from linmax.jit.compiling import JIT, inside_array
from linmax.jit.vectors import (
    DOUBLE,
    FUSE,
    I32,
    VOID,
    array_struct,
    broadcast,
    call_own,
    integer,
    larger,
    loop,
    vector_pointer,
)

__all__ = [
    "SIDE",
    "add_times",
    "factorise",
    "plain_add_times",
    "plain_factorise",
    "plain_solve_blocks",
    "solve_blocks",
]

SIDE = 4  # rows and columns of a block
FOUR = ir.VectorType(DOUBLE, SIDE)


def plain_add_times(to: np.ndarray, of: np.ndarray, factor: float, size: int) -> None:
    """Add ``factor`` times the first numbers of ``of`` to those of ``to``, which is another array."""
    to[:size] += factor * of[:size]


def plain_factorise(factor: np.ndarray, least: np.ndarray) -> None:
    """Replace A, of which the upper half is read, by its factor; ``least`` bounds the squares on the diagonal."""
    for i, row in enumerate(factor):
        above = factor[:i]
        row[i:] -= above[:, i] @ above[:, i:]
        row[i] = 1.0 / math.sqrt(max(row[i], least[i]))
        row[i + 1 :] *= row[i]


def plain_solve_blocks(factor: np.ndarray, x: np.ndarray) -> None:
    """Replace the first numbers of ``x``, as many as the factor has rows, by U^-1 U'^-1 times them."""
    size = len(factor)
    for i in range(size):
        x[i] = (x[i] - factor[:i, i] @ x[:i]) * factor[i, i]
    for i in reversed(range(size)):
        x[i] = (x[i] - factor[i, i + 1 :] @ x[i + 1 : size]) * factor[i, i]


def _write_add(builder: ir.IRBuilder, to: ir.Value, of: ir.Value, factor: ir.Value, size: ir.Value) -> None:
    start = integer(0)
    for lanes in (SIDE, 1):
        times = broadcast(builder, factor, lanes)

        def add(j: ir.Value, _: list[ir.Value], lanes: int = lanes, times: ir.Value = times) -> list[ir.Value]:
            there = vector_pointer(builder, to, j, lanes)
            given = builder.load(vector_pointer(builder, of, j, lanes), align=8)
            product = builder.fmul(times, given, flags=FUSE)
            builder.store(builder.fadd(builder.load(there, align=8), product, flags=FUSE), there, align=8)
            return []

        start = loop(builder, start, lanes, size, [], add)[0]
    builder.ret_void()


class _Factor:
    """Writes code that reads and changes a factor."""

    def __init__(self, builder: ir.IRBuilder, data: ir.Value, size: ir.Value) -> None:
        self.builder, self.data, self.size = builder, data, size

    def place(self, row: ir.Value, column: ir.Value) -> ir.Value:
        return self.builder.add(self.builder.mul(row, self.size), column)

    def number(self, row: ir.Value, column: ir.Value) -> ir.Value:
        """The number that is there."""
        return self.builder.load(self.builder.gep(self.data, [self.place(row, column)]))

    def several(self, row: ir.Value, column: ir.Value, lanes: int) -> ir.Value:
        """Pointer to this many numbers of a row."""
        return vector_pointer(self.builder, self.data, self.place(row, column), lanes)

    def load(self, row: ir.Value, column: ir.Value, lanes: int = SIDE) -> ir.Value:
        """This many numbers of a row."""
        return self.builder.load(self.several(row, column, lanes), align=8)

    def less(self, sums: ir.Value, factor: ir.Value, numbers: ir.Value) -> ir.Value:
        """The sums minus a number times others."""
        times = broadcast(self.builder, factor, sums.type.count)
        return self.builder.fsub(sums, self.builder.fmul(times, numbers, flags=FUSE), flags=FUSE)

    def unexplained(self, rows: list[ir.Value], column: ir.Value, lanes: int = SIDE) -> list[ir.Value]:
        """The numbers of four rows from a column on, without what the rows above explain."""

        def take(k: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            numbers = self.load(k, column, lanes)
            return [self.less(total, self.number(k, row), numbers) for total, row in zip(sums, rows, strict=True)]

        return loop(self.builder, integer(0), 1, rows[0], [self.load(row, column, lanes) for row in rows], take)[1:]

    def corner(self, rows: list[ir.Value], least: ir.Value) -> dict[tuple[int, int], ir.Value]:
        """The block on the diagonal, worked out."""
        builder, found = self.builder, {}
        for r, numbers in enumerate(self.unexplained(rows, rows[0])):
            for c in range(r, SIDE):
                found[r, c] = builder.extract_element(numbers, ir.Constant(I32, c))
        root = builder.module.declare_intrinsic("llvm.sqrt", [DOUBLE])
        for r in range(SIDE):
            square = larger(builder, found[r, r], builder.load(builder.gep(least, [rows[r]])))
            found[r, r] = builder.fdiv(ir.Constant(DOUBLE, 1.0), builder.call(root, [square]))
            for c in range(r + 1, SIDE):
                found[r, c] = builder.fmul(found[r, c], found[r, r])
            for q in range(r + 1, SIDE):
                for c in range(q, SIDE):
                    product = builder.fmul(found[r, q], found[r, c], flags=FUSE)
                    found[q, c] = builder.fsub(found[q, c], product, flags=FUSE)
        for (r, c), value in found.items():
            builder.store(value, builder.gep(self.data, [self.place(rows[r], rows[c])]))
        return found


def _write_factorise(builder: ir.IRBuilder, data: ir.Value, size: ir.Value, least: ir.Value) -> None:
    """Four rows at a time: their block on the diagonal, then the columns beyond it, by eight and by four."""
    factor = _Factor(builder, data, size)

    def work_out(at: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        rows = [builder.add(at, integer(r)) for r in range(SIDE)]
        corner, start = factor.corner(rows, least), builder.add(at, integer(SIDE))
        for lanes in (2 * SIDE, SIDE):

            def finish(column: ir.Value, _: list[ir.Value], lanes: int = lanes) -> list[ir.Value]:
                found: list[ir.Value] = []
                for r, numbers in enumerate(factor.unexplained(rows, column, lanes)):
                    for q in range(r):
                        numbers = factor.less(numbers, corner[q, r], found[q])
                    found.append(builder.fmul(numbers, broadcast(builder, corner[r, r], lanes)))
                    builder.store(found[r], factor.several(rows[r], column, lanes), align=8)
                return []

            start = loop(builder, start, lanes, size, [], finish)[0]
        return []

    loop(builder, integer(0), SIDE, size, [], work_out)
    builder.ret_void()


def _sum_of(builder: ir.IRBuilder, four: ir.Value) -> ir.Value:
    """The sum of four lanes."""
    lanes = [builder.extract_element(four, ir.Constant(I32, lane)) for lane in range(SIDE)]
    return builder.fadd(builder.fadd(lanes[0], lanes[1]), builder.fadd(lanes[2], lanes[3]))


def _write_solve(builder: ir.IRBuilder, data: ir.Value, size: ir.Value, x: ir.Value) -> None:
    """Down the rows by what each solved number takes from the rest, and up by what the rest takes from each."""
    factor = _Factor(builder, data, size)

    def numbers(at: ir.Value) -> tuple[list[ir.Value], list[ir.Value], list[ir.Value]]:
        rows = [builder.add(at, integer(r)) for r in range(SIDE)]
        places = [builder.gep(x, [row]) for row in rows]
        return rows, places, [builder.load(place) for place in places]

    def settle(
        rows: list[ir.Value], places: list[ir.Value], values: list[ir.Value], order: list[int], corner: ir.Value
    ) -> list[ir.Value]:
        """Solve the four unknowns of a block one after the other."""
        for turn, r in enumerate(order):
            for q in order[:turn]:
                product = builder.fmul(corner(rows, q, r), values[q], flags=FUSE)
                values[r] = builder.fsub(values[r], product, flags=FUSE)
            values[r] = builder.fmul(values[r], factor.number(rows[r], rows[r]))
            builder.store(values[r], places[r])
        return values

    def down(at: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        rows, places, values = numbers(at)
        found = settle(rows, places, values, [0, 1, 2, 3], lambda rows, q, r: factor.number(rows[q], rows[r]))

        def take(column: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            there = vector_pointer(builder, x, column, SIDE)
            rest = builder.load(there, align=8)
            for row, value in zip(rows, found, strict=True):
                rest = factor.less(rest, value, factor.load(row, column))
            builder.store(rest, there, align=8)
            return []

        loop(builder, builder.add(at, integer(SIDE)), SIDE, size, [], take)
        return []

    def up(done: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
        at = builder.sub(builder.sub(size, integer(SIDE)), done)
        rows, places, values = numbers(at)

        def add(column: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            rest = builder.load(vector_pointer(builder, x, column, SIDE), align=8)
            products = [builder.fmul(factor.load(row, column), rest, flags=FUSE) for row in rows]
            return [builder.fadd(s, product, flags=FUSE) for s, product in zip(sums, products, strict=True)]

        start = builder.add(at, integer(SIDE))
        _, *sums = loop(builder, start, SIDE, size, [ir.Constant(FOUR, [0.0] * SIDE)] * SIDE, add)
        values = [builder.fsub(value, _sum_of(builder, s)) for value, s in zip(values, sums, strict=True)]
        settle(rows, places, values, [3, 2, 1, 0], lambda rows, q, r: factor.number(rows[r], rows[q]))
        return []

    loop(builder, integer(0), SIDE, size, [], down)
    loop(builder, integer(0), SIDE, size, [], up)
    builder.ret_void()


if JIT:

    def _square(
        context: BaseContext, builder: ir.IRBuilder, kind: types.Array, array: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        """The data and the size of a factor, whose rows and columns are as many."""
        table = array_struct(context, builder, kind, array)
        size = builder.extract_value(table.shape, 0)
        inside_array(context, builder, kind, array, integer(0), builder.mul(size, size))
        return table.data, size

    @intrinsic
    def add_times(_, to, of, factor, size):  # type: ignore[no-untyped-def]
        """See `plain_add_times`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            for kind, array in zip(sig.args[:2], args[:2], strict=True):
                inside_array(context, builder, kind, array, integer(0), args[3])
            rows = [
                array_struct(context, builder, kind, array).data
                for kind, array in zip(sig.args, args[:2], strict=False)
            ]
            call_own(builder, "linmax_add_times", VOID, _write_add, *rows, *args[2:], how="alwaysinline")
            return context.get_dummy_value()

        return types.void(float64[::1], float64[::1], float64, int64), codegen

    def _on_square(name: str, write):  # type: ignore[no-untyped-def]
        """Return a function that calls own code with a square array's data and size, and the data of a row as long."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            data, size = _square(context, builder, sig.args[0], args[0])
            inside_array(context, builder, sig.args[1], args[1], integer(0), size)
            row = array_struct(context, builder, sig.args[1], args[1]).data
            call_own(builder, name, VOID, write, data, size, row)
            return context.get_dummy_value()

        return types.void(float64[:, ::1], float64[::1]), codegen

    @intrinsic
    def factorise(_, factor, least):  # type: ignore[no-untyped-def]
        """See `plain_factorise`."""
        return _on_square("linmax_factorise", _write_factorise)

    @intrinsic
    def solve_blocks(_, factor, x):  # type: ignore[no-untyped-def]
        """See `plain_solve_blocks`."""
        return _on_square("linmax_solve_blocks", _write_solve)

else:
    add_times, factorise, solve_blocks = plain_add_times, plain_factorise, plain_solve_blocks
