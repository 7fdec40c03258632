"""ALMA's step on votes, four weights at a time.

A member is worked on in copies of its arrays: rows of numbers, each a whole number of vectors long, see the constants.
A step goes up for the voters of one class and down for those of another; both are given as bits. All lanes are
computed, and the weights of those who vote for neither stay as they were.

The functions ``plain_...`` define the results; they run when the compiler is off.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import float64, int64, types
from numba.core import cgutils
from numba.extending import intrinsic

from linmax.jit.compiling import JIT, inside
from linmax.jit.vectors import (
    BIT,
    DOUBLE,
    I64,
    array_struct,
    broadcast,
    call_own,
    constants,
    integer,
    loop,
    vector_pointer,
)

__all__ = [
    "BACKLOG",
    "COPIES",
    "DONE",
    "FITS",
    "GROWN",
    "MEMORY",
    "OLD",
    "OLD_MEMORY",
    "WEIGHTS",
    "norm_moves",
    "plain_norm_moves",
]

WEIGHTS, MEMORY, BACKLOG, OLD, OLD_MEMORY, GROWN = range(6)
COPIES = 6  # rows: the state, the weights and the memory before the step, and growth of the norm
DONE, FITS = 1, 2  # bits of what a step returns: it was possible, and all new weights are below the limit

_LANES = 4
_FOUR = ir.VectorType(DOUBLE, _LANES)
_WHOLE = ir.VectorType(I64, _LANES)


def plain_signs(copies: np.ndarray, up: int, down: int) -> np.ndarray:
    """1 for those who go up, -1 for those who go down, 0 for the others."""
    places = range(copies.shape[2])
    return np.array([float((up >> i & 1) - (down >> i & 1)) for i in places])


def plain_norm_moves(
    copies: np.ndarray, up: int, down: int, amount: float, halves: int, bounds: tuple[float, ...]
) -> int:
    """MEMORY moves by an amount, and weights become its powers ``halves / 2``, with its sign.

    ``bounds``: magnitudes must be between the first two, or the step is not DONE, and below the third. GROWN tells by
    how much the products of weights and memory have grown.
    """
    signs, (least, most, limit) = plain_signs(copies, up, down), bounds
    copies[OLD, 0], copies[OLD_MEMORY, 0] = copies[WEIGHTS, 0], copies[MEMORY, 0]
    copies[MEMORY, 0] += np.where(signs != 0.0, signs * amount, 0.0)
    result = DONE | FITS
    for i in np.flatnonzero(signs):
        v = float(copies[MEMORY, 0, i])
        base, left = abs(v), halves // 2
        size = math.sqrt(base) if halves % 2 else 1.0
        while left:
            if left % 2:
                size *= base
            base *= base
            left //= 2
        if v != 0.0 and not least < size < most:
            result &= ~DONE
        if not size < limit:
            result &= ~FITS
        copies[WEIGHTS, 0, i] = math.copysign(size, v)
    with np.errstate(over="ignore", invalid="ignore"):
        now, before = np.abs(copies[WEIGHTS, 0] * copies[MEMORY, 0]), np.abs(copies[OLD, 0] * copies[OLD_MEMORY, 0])
        copies[GROWN, 0] = now - before
    return result


class _Rows:
    """Vectors of the rows of the copies, at one place."""

    def __init__(self, builder: Any, copies: Any, width: Any, first: Any) -> None:
        self.builder, self.copies, self.width, self.first = builder, copies, width, first

    def _at(self, row: int) -> Any:
        place = self.builder.add(self.builder.mul(self.width, integer(row)), self.first)
        return vector_pointer(self.builder, self.copies, place, _LANES)

    def __getitem__(self, row: int) -> Any:
        return self.builder.load(self._at(row), align=8)

    def __setitem__(self, row: int, value: Any) -> None:
        self.builder.store(value, self._at(row), align=8)

    def chosen(self, bits: Any) -> Any:
        """For each lane whether its bit is set."""
        here = broadcast(self.builder, self.builder.lshr(bits, self.first), _LANES)
        here = self.builder.and_(here, ir.Constant(_WHOLE, [1 << lane for lane in range(_LANES)]))
        return self.builder.icmp_signed("!=", here, ir.Constant(_WHOLE, None))


def _magnitude(builder: Any, value: Any) -> Any:
    bits = builder.and_(builder.bitcast(value, _WHOLE), constants(2**63 - 1, _LANES, I64))
    return builder.bitcast(bits, _FOUR)


def _steps(builder: Any, up: Any, down: Any, amount: Any) -> Any:
    """The amount, its opposite or 0, lane by lane."""
    back = broadcast(builder, builder.fneg(amount), _LANES)
    return builder.select(up, broadcast(builder, amount, _LANES), builder.select(down, back, ir.Constant(_FOUR, None)))


def _write_moves(
    builder: Any, given: tuple[Any, Any, Any, Any], limit: Any, move: Callable[[_Rows, Any, Any], tuple[Any, Any]]
) -> None:
    """A loop over vectors; ``move`` gives the new weights of a vector, and for each lane whether they can be had."""
    copies, width, up, down = given

    def body(first: Any, carried: list[Any]) -> list[Any]:
        rows = _Rows(builder, copies, width, first)
        rises, falls = rows.chosen(up), rows.chosen(down)
        touched, old = builder.or_(rises, falls), rows[WEIGHTS]
        rows[OLD] = old
        new, possible = move(rows, rises, falls)
        beyond = builder.fcmp_unordered(">=", _magnitude(builder, new), broadcast(builder, limit, _LANES))
        rows[WEIGHTS] = builder.select(touched, new, old)
        refused, outgrown = (builder.sext(builder.and_(touched, it), _WHOLE) for it in (builder.not_(possible), beyond))
        return [builder.or_(carried[0], refused), builder.or_(carried[1], outgrown)]

    none = ir.Constant(_WHOLE, None)
    _, *found = loop(builder, integer(0), _LANES, width, [none, none], body)
    result = integer(0)
    for bit, lanes in zip((DONE, FITS), found, strict=True):
        some = builder.bitcast(builder.icmp_signed("!=", lanes, none), ir.IntType(_LANES))
        clear = builder.icmp_unsigned("==", some, ir.Constant(some.type, 0))
        result = builder.or_(result, builder.select(clear, integer(bit), integer(0)))
    builder.ret(result)


def _power(builder: Any, base: Any, halves: Any) -> Any:
    """base^(halves / 2) by multiplication, as `linmax.rules.p_norm.power` does it."""
    before, root, head, inner, after = builder.block, *(builder.append_basic_block(f"power.{name}") for name in "abcd")
    builder.cbranch(builder.trunc(halves, BIT), root, head)
    builder.position_at_end(root)
    square_root = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_FOUR, [_FOUR]), "llvm.sqrt.v4f64")
    first = builder.call(square_root, [base])
    builder.branch(head)
    builder.position_at_end(head)
    result, square, left = builder.phi(_FOUR), builder.phi(_FOUR), builder.phi(I64)
    builder.cbranch(builder.icmp_signed("!=", left, integer(0)), inner, after)
    builder.position_at_end(inner)
    times = builder.select(builder.trunc(left, BIT), builder.fmul(result, square), result)
    rest = builder.lshr(left, integer(1))
    ways = (
        (before, constants(1.0, _LANES, DOUBLE), base, None),
        (root, first, base, None),
        (inner, times, builder.fmul(square, square), rest),
    )
    builder.branch(head)
    whole = ir.IRBuilder(before)
    whole.position_before(before.terminator)
    once = whole.lshr(halves, integer(1))
    for block, size, factor, bits in ways:
        result.add_incoming(size, block)
        square.add_incoming(factor, block)
        left.add_incoming(once if bits is None else bits, block)
    builder.position_at_end(after)
    return result


def _write_norm(
    builder: Any,
    copies: Any,
    width: Any,
    up: Any,
    down: Any,
    amount: Any,
    halves: Any,
    least: Any,
    most: Any,
    limit: Any,
) -> None:
    sign = constants(-(2**63), _LANES, I64)

    def move(rows: _Rows, rises: Any, falls: Any) -> tuple[Any, Any]:
        old, old_weights = rows[MEMORY], rows[WEIGHTS]
        rows[OLD_MEMORY] = old
        new = builder.fadd(old, _steps(builder, rises, falls, amount))
        rows[MEMORY] = new
        size = _power(builder, _magnitude(builder, new), halves)
        signs = builder.and_(builder.bitcast(new, _WHOLE), sign)
        weights = builder.bitcast(builder.or_(builder.bitcast(size, _WHOLE), signs), _FOUR)
        before = _magnitude(builder, builder.fmul(old_weights, old))
        rows[GROWN] = builder.fsub(_magnitude(builder, builder.fmul(weights, new)), before)
        above = builder.fcmp_ordered(">", size, broadcast(builder, least, _LANES))
        within = builder.and_(above, builder.fcmp_ordered("<", size, broadcast(builder, most, _LANES)))
        return weights, builder.or_(within, builder.fcmp_ordered("==", new, ir.Constant(_FOUR, None)))

    _write_moves(builder, (copies, width, up, down), limit, move)


if JIT:

    def _copies(context: Any, builder: Any, kind: Any, value: Any) -> list[Any]:
        """Where the copies are, and how long their rows."""
        array = array_struct(context, builder, kind, value)
        width = builder.extract_value(array.shape, 2)
        inside(context, builder, integer(0), builder.mul(width, integer(COPIES)), array.nitems)
        inside(context, builder, builder.and_(width, integer(_LANES - 1)), integer(1), integer(1))
        return [array.data, width]

    @intrinsic
    def norm_moves(_, copies, up, down, amount, halves, bounds):  # type: ignore[no-untyped-def]
        """See `plain_norm_moves`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            rows = _copies(context, builder, sig.args[0], args[0])
            bounds = [builder.extract_value(args[5], i) for i in range(3)]
            return call_own(builder, "linmax_norm_moves", I64, _write_norm, *rows, *args[1:5], *bounds)

        three = types.UniTuple(float64, 3)
        return int64(float64[:, :, ::1], int64, int64, float64, int64, three), codegen

else:
    norm_moves = plain_norm_moves
