"""Scores of sixteen instances at once, one in each lane of a vector: what the search for the next violation reads.

A panel of ratings holds the numbers of sixteen instances side by side, so that element (j, lane) is at ``16 j + lane``.

A panel of votes holds bits: which of four voters vote for a row. The sums of all subsets of four weights are a table
of sixteen, in whole steps, and one shuffle of bytes looks up sixteen of them, once for the low bytes and once for the
high ones. Rows stand in pairs, the two of a pair side by side; the codes of row r and voters 4 g to 4 g + 3 are the
sixteen bytes at `code_place`.

The functions ``plain_...`` define the results; they run when the compiler is off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import float32, float64, int8, int16, int32, int64, types
from numba.extending import intrinsic

from linmax.jit.compiling import JIT, inside, inside_array, kernel
from linmax.jit.scores import WeightedRows, dense_tail, plain_add_dense, write_pass
from linmax.jit.vectors import (
    FLOAT,
    I8,
    I16,
    I32,
    I64,
    VOID,
    array_struct,
    broadcast,
    call_own,
    data_pointer,
    integer,
    larger,
    loop,
    vector_pointer,
)

__all__ = [
    "LANES",
    "TABLE",
    "add_lanes",
    "close_codes",
    "close_lanes",
    "code_place",
    "fill_tables",
    "plain_add_lanes",
    "plain_close_codes",
    "plain_close_lanes",
    "plain_fill_tables",
    "plain_sum_codes",
    "plain_used_below",
    "sum_codes",
    "sum_place",
    "used_below",
]

LANES = 16  # instances of a panel
TABLE = 2 * LANES  # bytes of a table of subset sums: the low ones, then the high ones


@kernel()
def code_place(row: int, group: int, groups: int) -> int:
    """Where, in a block, the codes of a row and a group of four voters begin."""
    return ((row // 2) * groups + group) * 2 * LANES + row % 2 * LANES


@kernel()
def sum_place(row: int, lane: int) -> int:
    """Where `close_codes` leaves the sum of a row in a lane: pair by pair, first lanes 0 to 7 of both rows."""
    return row // 2 * 2 * LANES + lane // 8 * LANES + row % 2 * 8 + lane % 8


def plain_add_lanes(scores: np.ndarray, panel: np.ndarray, base: int, values: np.ndarray) -> None:
    """``scores += sum over j of values[j] * panel[base + 16 j :][:16]``, in single precision."""
    plain_add_dense(scores, panel, base, LANES, values)


def plain_fill_tables(steps: np.ndarray, tables: np.ndarray) -> None:
    """The sums of the subsets of every four of ``steps`` (int16), as low and high bytes."""
    bits = np.arange(LANES)[:, None] >> np.arange(4) & 1
    for group in range(steps.size // 4):
        sums = (bits * steps[4 * group : 4 * group + 4]).sum(axis=1).astype(np.int16)
        tables[group * TABLE : (group + 1) * TABLE] = sums.view(np.int8).reshape(-1, 2).T.ravel()


def plain_sum_codes(scores: np.ndarray, codes: np.ndarray, base: int, tables: np.ndarray, unit: float) -> None:
    """``scores[r, lane]`` = ``unit`` times the sum of what the codes of row r say in each table."""
    groups = tables.size // TABLE
    pairs = tables.reshape(groups, 2, LANES)
    sums = pairs[:, 0].view(np.uint8) + np.int16(256) * pairs[:, 1]
    for row in range(scores.shape[0]):
        total = np.zeros(LANES, np.int16)
        for group in range(groups):
            place = base + code_place(row, group, groups)
            total += sums[group, codes[place : place + LANES]]
        scores[row] = np.float32(unit) * total


def plain_close_codes(sums: np.ndarray, codes: np.ndarray, base: int, tables: np.ndarray, slack: int) -> int:
    """`plain_close_lanes` of the sums in whole steps, which are left in ``sums`` (int16) at their `sum_place`."""
    scores = np.zeros((sums.size // LANES, LANES), np.float32)
    plain_sum_codes(scores, codes, base, tables, 1.0)
    for row in range(len(scores)):
        for lane in range(LANES):
            sums[sum_place(row, lane)] = scores[row, lane]
    return plain_close_lanes(scores, slack)


def plain_used_below(uses: np.ndarray, first: int, limit: int) -> int:
    """A bit for each of sixteen from ``first`` on that is below the limit, the first in the lowest."""
    return sum(1 << lane for lane in range(LANES) if uses[first + lane] < limit)


def plain_close_lanes(scores: np.ndarray, slack: float) -> int:
    """A bit for each lane in which row 0 leads all others by at most slack, lane 0 in the lowest."""
    return sum(1 << lane for lane in range(LANES) if not scores[0, lane] - scores[1:, lane].max() > slack)


def _write_lanes(builder: Any, scores: Any, panel: Any, values: Any, count: Any) -> None:
    """One pass over the panel, whose lanes take the part of classes."""
    rows = WeightedRows(panel, integer(LANES), None, values, count, None)
    write_pass(builder, scores, scores, ir.Constant(FLOAT, 1.0), rows, (LANES, 1, 4))
    builder.ret_void()


def _bytes_at(builder: Any, features: str, table: Any, places: Any) -> Any:
    """``table[places]``, lane by lane: a shuffle of bytes where the processor has one."""
    halves = [ir.Constant(ir.VectorType(I32, LANES), [half + lane for lane in range(LANES)]) for half in (0, LANES)]
    joined = ir.Constant(ir.VectorType(I32, 2 * LANES), list(range(2 * LANES)))
    sixteen, all_lanes = ir.VectorType(I8, LANES), ir.VectorType(I8, 2 * LANES)

    def call(name: str, kind: Any, *arguments: Any) -> Any:
        function = builder.module.globals.get(name)
        if function is None:
            function = ir.Function(builder.module, ir.FunctionType(kind, [kind, kind]), name)
        return builder.call(function, arguments)

    if "+avx2" in features:
        twice = ir.Constant(ir.VectorType(I32, 2 * LANES), list(range(LANES)) * 2)
        return call("llvm.x86.avx2.pshuf.b", all_lanes, builder.shuffle_vector(table, table, twice), places)
    shuffles = {"+ssse3": "llvm.x86.ssse3.pshuf.b.128", "+neon": "llvm.aarch64.neon.tbl1.v16i8"}
    for feature, name in shuffles.items():
        if feature in features:
            parts = [builder.shuffle_vector(places, places, half) for half in halves]
            return builder.shuffle_vector(*(call(name, sixteen, table, part) for part in parts), joined)
    found = ir.Constant(all_lanes, None)
    for entry in range(LANES):
        value = broadcast(builder, builder.extract_element(table, ir.Constant(I32, entry)), 2 * LANES)
        here = builder.icmp_signed("==", places, ir.Constant(all_lanes, [entry] * 2 * LANES))
        found = builder.select(here, value, found)
    return found


def _write_tables(builder: Any, steps: Any, groups: Any, tables: Any) -> None:
    """Four weights, each in those of sixteen lanes whose number has its bit."""
    sums = ir.VectorType(I16, LANES)
    has_bit = [ir.Constant(sums, [-(entry >> bit & 1) for entry in range(LANES)]) for bit in range(4)]

    def fill(group: Any, _: list[Any]) -> list[Any]:
        first, total = builder.mul(group, integer(4)), ir.Constant(sums, None)
        for bit in range(4):
            step = builder.load(builder.gep(steps, [builder.add(first, integer(bit))]))
            total = builder.add(total, builder.and_(broadcast(builder, step, LANES), has_bit[bit]))
        high = builder.ashr(total, ir.Constant(sums, [8] * LANES))
        for part, half in enumerate((total, high)):
            place = builder.add(builder.mul(group, integer(TABLE)), integer(part * LANES))
            there = vector_pointer(builder, tables, place, LANES)
            builder.store(builder.trunc(half, ir.VectorType(I8, LANES)), there, align=1)
        return []

    loop(builder, integer(0), 1, groups, [], fill)
    builder.ret_void()


def _pair_sums(builder: Any, features: str, codes: Any, tables: Any, groups: Any, number: Any) -> list[Any]:
    """The sums of a pair of rows in 16 bits: lanes 0 to 7 of the one row and the other, then lanes 8 to 15."""
    sums = ir.VectorType(I16, LANES)
    # Interleaved, low and high bytes are 16-bit numbers.
    low = [half + lane + part * TABLE for half in (0, LANES) for lane in range(8) for part in (0, 1)]
    mixes = [ir.Constant(ir.VectorType(I32, TABLE), [8 * late + place for place in low]) for late in (0, 1)]
    first = builder.mul(number, groups)

    def add(group: Any, totals: list[Any]) -> list[Any]:
        at = builder.mul(builder.add(first, group), integer(TABLE))
        places = builder.load(vector_pointer(builder, codes, at, TABLE), align=1)
        of = builder.mul(group, integer(TABLE))
        found = []
        for half in (0, LANES):
            there = vector_pointer(builder, tables, builder.add(of, integer(half)), LANES)
            found.append(_bytes_at(builder, features, builder.load(there, align=1), places))
        numbers = [builder.bitcast(builder.shuffle_vector(*found, mix), sums) for mix in mixes]
        return [builder.add(total, number) for total, number in zip(totals, numbers, strict=True)]

    return loop(builder, integer(0), 1, groups, [ir.Constant(sums, None)] * 2, add)[1:]


def _write_codes(features: str) -> Any:
    """The writer of a loop over pairs of rows, whose sums become floats."""
    # Row by row: its first eight lanes from the one sum, the others from the other.
    places = [[8 * r + j for j in (*range(8), *range(16, 24))] for r in (0, 1)]
    rows = [ir.Constant(ir.VectorType(I32, LANES), lanes) for lanes in places]

    def write(builder: Any, scores: Any, pairs: Any, codes: Any, tables: Any, groups: Any, unit: Any) -> None:
        def pair(number: Any, _: list[Any]) -> list[Any]:
            totals = _pair_sums(builder, features, codes, tables, groups, number)
            for r, lanes in enumerate(rows):
                whole = builder.shuffle_vector(*totals, lanes)
                value = builder.fmul(
                    builder.sitofp(whole, ir.VectorType(FLOAT, LANES)), broadcast(builder, unit, LANES)
                )
                place = builder.mul(builder.add(builder.mul(number, integer(2)), integer(r)), integer(LANES))
                builder.store(value, vector_pointer(builder, scores, place, LANES), align=4)
            return []

        loop(builder, integer(0), 1, pairs, [], pair)
        builder.ret_void()

    return write


def _write_close_codes(features: str) -> Any:
    """The same, but that the sums stay whole and the label's lead is compared at once."""
    swapped = ir.Constant(ir.VectorType(I32, LANES), [*range(8, 16), *range(8)])
    joined = ir.Constant(ir.VectorType(I32, LANES), [*range(8), *range(16, 24)])

    def write(builder: Any, sums: Any, pairs: Any, codes: Any, tables: Any, groups: Any, slack: Any) -> None:
        def most(a: Any, b: Any) -> Any:
            return builder.select(builder.icmp_signed(">", a, b), a, b)

        def pair(number: Any) -> list[Any]:
            totals = _pair_sums(builder, features, codes, tables, groups, number)
            for late, total in enumerate(totals):
                place = builder.add(builder.mul(number, integer(2 * LANES)), integer(late * LANES))
                builder.store(total, vector_pointer(builder, sums, place, LANES), align=2)
            return totals

        def others(number: Any, best: list[Any]) -> list[Any]:
            return [most(a, b) for a, b in zip(best, pair(number), strict=True)]

        label = pair(integer(0))  # the label in one half, the second row in the other
        second = [builder.shuffle_vector(total, total, swapped) for total in label]
        halves = ir.Constant(ir.VectorType(I32, LANES), [*range(8), *range(8)])
        both = [builder.shuffle_vector(total, total, halves) for total in second]
        _, *best = loop(builder, integer(1), 1, pairs, both, others)
        best = [most(total, builder.shuffle_vector(total, total, swapped)) for total in best]
        leads = builder.sub(builder.shuffle_vector(*label, joined), builder.shuffle_vector(*best, joined))
        close = builder.icmp_signed("<=", leads, broadcast(builder, builder.trunc(slack, I16), LANES))
        builder.ret(builder.zext(builder.bitcast(close, I16), I64))

    return write


def _write_used_below(builder: Any, uses: Any, first: Any, limit: Any) -> None:
    """One comparison of sixteen."""
    counts = builder.load(vector_pointer(builder, uses, first, LANES), align=4)
    below = builder.icmp_signed("<", counts, broadcast(builder, builder.trunc(limit, I32), LANES))
    builder.ret(builder.zext(builder.bitcast(below, I16), I64))


def _write_close_lanes(builder: Any, scores: Any, rows: Any, slack: Any) -> None:
    """A loop over the rows; the comparison of sixteen lanes becomes sixteen bits."""

    def load(row: Any) -> Any:
        return builder.load(vector_pointer(builder, scores, builder.mul(row, integer(LANES)), LANES), align=4)

    label, second = load(integer(0)), load(integer(1))
    _, best = loop(builder, integer(2), 1, rows, [second], lambda row, best: [larger(builder, load(row), best[0])])
    limit = broadcast(builder, builder.fptrunc(slack, FLOAT), LANES)
    close = builder.fcmp_unordered("<=", builder.fsub(label, best), limit)
    builder.ret(builder.zext(builder.bitcast(close, I16), I64))


if JIT:

    @intrinsic
    def add_lanes(_, scores, panel, base, values):  # type: ignore[no-untyped-def]
        """See `plain_add_lanes`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            to = data_pointer(context, builder, sig.args[0], args[0])
            of = data_pointer(context, builder, sig.args[1], *args[1:3])
            tail = dense_tail(context, builder, sig.args, args)
            inside_array(context, builder, sig.args[0], args[0], integer(0), integer(LANES))
            inside_array(context, builder, sig.args[1], args[1], args[2], builder.mul(tail[1], integer(LANES)))
            call_own(builder, "linmax_lanes", VOID, _write_lanes, to, of, *tail)
            return context.get_dummy_value()

        return types.void(scores, float32[::1], int64, float32[::1]), codegen

    @intrinsic
    def fill_tables(_, steps, tables):  # type: ignore[no-untyped-def]
        """See `plain_fill_tables`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            source = array_struct(context, builder, sig.args[0], args[0])
            to = data_pointer(context, builder, sig.args[1], args[1])
            groups = builder.sdiv(source.nitems, integer(4))
            inside_array(context, builder, sig.args[1], args[1], integer(0), builder.mul(groups, integer(TABLE)))
            call_own(builder, "linmax_tables", VOID, _write_tables, source.data, groups, to)
            return context.get_dummy_value()

        return types.void(int16[::1], int8[::1]), codegen

    @intrinsic
    def sum_codes(_, scores, codes, base, tables, unit):  # type: ignore[no-untyped-def]
        """See `plain_sum_codes`; the rows are even in number."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            table = array_struct(context, builder, sig.args[0], args[0])
            pairs = builder.sdiv(builder.extract_value(table.shape, 0), integer(2))
            at = data_pointer(context, builder, sig.args[1], *args[1:3])
            of = array_struct(context, builder, sig.args[3], args[3])
            groups = builder.sdiv(of.nitems, integer(TABLE))
            length = builder.mul(builder.mul(pairs, groups), integer(TABLE))
            inside_array(context, builder, sig.args[1], args[1], args[2], length)
            write = _write_codes(context.codegen()._tm_features)
            call_own(builder, "linmax_codes", VOID, write, table.data, pairs, at, of.data, groups, args[4])
            return context.get_dummy_value()

        return types.void(float32[:, ::1], int8[::1], int64, int8[::1], float32), codegen

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
    def used_below(_, uses, first, limit):  # type: ignore[no-untyped-def]
        """See `plain_used_below`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            data = data_pointer(context, builder, sig.args[0], args[0])
            inside_array(context, builder, sig.args[0], args[0], args[1], integer(LANES))
            how = "alwaysinline"
            return call_own(builder, "linmax_used_below", I64, _write_used_below, data, *args[1:], how=how)

        return int64(int32[::1], int64, int64), codegen

    @intrinsic
    def close_lanes(_, scores, slack):  # type: ignore[no-untyped-def]
        """See `plain_close_lanes`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            table = array_struct(context, builder, sig.args[0], args[0])
            rows = builder.extract_value(table.shape, 0)
            inside(context, builder, integer(0), integer(2), rows)
            inside_array(context, builder, sig.args[0], args[0], integer(0), builder.mul(rows, integer(LANES)))
            return call_own(builder, "linmax_close_lanes", I64, _write_close_lanes, table.data, rows, args[1])

        return int64(float32[:, ::1], float64), codegen

else:
    add_lanes, sum_codes, close_codes, close_lanes = (
        plain_add_lanes,
        plain_sum_codes,
        plain_close_codes,
        plain_close_lanes,
    )
    fill_tables, used_below = plain_fill_tables, plain_used_below
