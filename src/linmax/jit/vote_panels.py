"""Panels of votes: which voters vote for a row, sixteen instances at once.

A panel holds bits: which of four voters vote for a row. The sums of all subsets of four weights are a table of sixteen,
in whole steps, and one shuffle of bytes looks up sixteen of them, once for the low digits and once for the high ones.
Rows stand in pairs, the two of a pair side by side; the codes of row r and voters 4 g to 4 g + 3 are the sixteen bytes
at `code_place`. Up to `NARROW` tables have low digits so small that bytes hold their sums: then digits are added up as
they are found, and made numbers at the end.

The functions ``plain_...`` define the results; they run when the compiler is off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import float32, float64, int8, int64, types
from numba.core import cgutils
from numba.extending import intrinsic

from linmax.jit.compiling import JIT, inside, inside_array, kernel
from linmax.jit.panels import LANES
from linmax.jit.vectors import (
    DOUBLE,
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
    declared,
    integer,
    loop,
    vector_pointer,
)

__all__ = [
    "BYTES",
    "MIXES",
    "NARROW",
    "SUMS",
    "TABLE",
    "by_size",
    "bytes_at",
    "code_place",
    "digit_bits",
    "fill_tables",
    "narrow_sums",
    "pair_sums",
    "plain_fill_tables",
    "plain_sum_codes",
    "shuffled",
    "sum_codes",
    "sum_place",
    "whole_steps",
]

TABLE = 2 * LANES  # bytes of a table of subset sums: the low digits, then the high ones
NARROW = 8  # tables up to which low digits have 5 bits, else 8
FEW_STEPS, MANY_STEPS = 3800, 16000  # what magnitudes add up to, so that no sum outgrows its two digits
ABOVE = 16384  # added before a number is cut to a whole one, so that it is positive
BYTES, SUMS = ir.VectorType(I8, 2 * LANES), ir.VectorType(I16, LANES)

# Interleaved, thirty-two low and high bytes are 16-bit numbers: of lanes 0 to 7 and 16 to 23, then of the others.
_LOW = [half + lane + part * 2 * LANES for half in (0, LANES) for lane in range(8) for part in (0, 1)]
MIXES = [ir.Constant(ir.VectorType(I32, 2 * LANES), [8 * late + place for place in _LOW]) for late in (0, 1)]


@kernel()
def digit_bits(groups: int) -> int:
    """Bits of the low digits of so many tables."""
    return 5 if groups <= NARROW else 8


@kernel()
def whole_steps(groups: int) -> int:
    """What the magnitudes of all weights may add up to in so many tables."""
    return FEW_STEPS if groups <= NARROW else MANY_STEPS


@kernel()
def code_place(row: int, group: int, groups: int) -> int:
    """Where, in a block, the codes of a row and a group of four voters begin."""
    return ((row // 2) * groups + group) * 2 * LANES + row % 2 * LANES


@kernel()
def sum_place(row: int, lane: int) -> int:
    """Where `close_codes` leaves the sum of a row in a lane: pair by pair, first lanes 0 to 7 of both rows."""
    return row // 2 * 2 * LANES + lane // 8 * LANES + row % 2 * 8 + lane % 8


def plain_fill_tables(weights: np.ndarray, unit: float, tables: np.ndarray) -> tuple[float, float]:
    """The sums of the subsets of every four weights, in whole steps of 1 / ``unit``, as low and high digits.

    Returns, in steps and added up in any order, the magnitudes of the weights, and by how much rounding moved them.
    """
    groups = tables.size // TABLE
    steps, bits = np.zeros(4 * groups, np.int16), digit_bits(groups)
    with np.errstate(invalid="ignore"):  # weights that outgrow the tables
        steps[: weights.size] = (weights * unit + (ABOVE + 0.5)).astype(np.int32) - ABOVE
    subsets = np.arange(LANES)[:, None] >> np.arange(4) & 1
    for group in range(groups):
        sums = (subsets * steps[4 * group : 4 * group + 4]).sum(axis=1).astype(np.int16)
        digits = np.stack([sums & ((1 << bits) - 1), sums >> bits])
        tables[group * TABLE : (group + 1) * TABLE] = digits.astype(np.int8).ravel()
    scaled = weights * unit
    return float(np.abs(scaled).sum()), float(np.abs(scaled - steps[: weights.size]).sum())


def plain_sum_codes(scores: np.ndarray, codes: np.ndarray, base: int, tables: np.ndarray, unit: float) -> None:
    """``scores[r, lane]`` = ``unit`` times the sum of what the codes of row r say in each table."""
    groups = tables.size // TABLE
    pairs = tables.reshape(groups, 2, LANES)
    sums = pairs[:, 0].view(np.uint8) + np.int16(1 << digit_bits(groups)) * pairs[:, 1]
    for row in range(scores.shape[0]):
        total = np.zeros(LANES, np.int16)
        for group in range(groups):
            place = base + code_place(row, group, groups)
            total += sums[group, codes[place : place + LANES]]
        scores[row] = np.float32(unit) * total


def shuffled(builder: Any, features: str, table: Any, places: Any) -> Any:
    """``table[places]`` for sixteen places: a shuffle of bytes where the processor has one."""
    kind = ir.VectorType(I8, LANES)
    shuffles = {"+ssse3": "llvm.x86.ssse3.pshuf.b.128", "+neon": "llvm.aarch64.neon.tbl1.v16i8"}
    for feature, name in shuffles.items():
        if feature in features:
            return builder.call(declared(builder, name, kind, kind, kind), (table, places))
    found = ir.Constant(kind, None)
    for entry in range(LANES):
        value = broadcast(builder, builder.extract_element(table, ir.Constant(I32, entry)), LANES)
        here = builder.icmp_signed("==", places, ir.Constant(kind, [entry] * LANES))
        found = builder.select(here, value, found)
    return found


def bytes_at(builder: Any, features: str, table: Any, places: Any) -> Any:
    """`shuffled` for thirty-two places."""
    if "+avx2" in features:
        twice = ir.Constant(ir.VectorType(I32, 2 * LANES), list(range(LANES)) * 2)
        shuffle = declared(builder, "llvm.x86.avx2.pshuf.b", BYTES, BYTES, BYTES)
        return builder.call(shuffle, (builder.shuffle_vector(table, table, twice), places))
    halves = [ir.Constant(ir.VectorType(I32, LANES), [half + lane for lane in range(LANES)]) for half in (0, LANES)]
    joined = ir.Constant(ir.VectorType(I32, 2 * LANES), list(range(2 * LANES)))
    parts = [builder.shuffle_vector(places, places, half) for half in halves]
    return builder.shuffle_vector(*(shuffled(builder, features, table, part) for part in parts), joined)


def _write_tables(builder: Any, weights: Any, size: Any, unit: Any, groups: Any, tables: Any, totals: Any) -> None:
    """Of four weights the subsets of the first three, and the same with the last."""
    four, whole_four = ir.VectorType(DOUBLE, 4), ir.VectorType(I64, 4)
    members = [
        ir.Constant(ir.VectorType(I32, 8), [which if entry >> which & 1 else 4 for entry in range(8)])  # 4: nothing
        for which in range(3)
    ]
    last, joined = (ir.Constant(ir.VectorType(I32, len(lanes)), lanes) for lanes in ([3] * 8, list(range(LANES))))
    narrow = builder.icmp_signed("<=", groups, integer(NARROW))
    bits = builder.select(narrow, ir.Constant(I16, 5), ir.Constant(I16, 8))
    low_part = builder.select(narrow, ir.Constant(I16, 31), ir.Constant(I16, 255))

    def magnitudes(values: Any) -> Any:
        return builder.bitcast(
            builder.and_(builder.bitcast(values, whole_four), ir.Constant(whole_four, [2**63 - 1] * 4)), four
        )

    def fill(group: Any, values: Any, so_far: list[Any]) -> list[Any]:
        scaled = builder.fmul(values, broadcast(builder, unit, 4))
        above = builder.fadd(scaled, ir.Constant(four, [ABOVE + 0.5] * 4))
        steps = builder.sub(
            builder.fptosi(above, ir.VectorType(I32, 4)), ir.Constant(ir.VectorType(I32, 4), [ABOVE] * 4)
        )
        off = magnitudes(builder.fsub(scaled, builder.sitofp(steps, four)))
        steps = builder.trunc(steps, ir.VectorType(I16, 4))
        none = ir.Constant(steps.type, None)
        early = builder.add(*(builder.shuffle_vector(steps, none, which) for which in members[:2]))
        early = builder.add(early, builder.shuffle_vector(steps, none, members[2]))
        late = builder.add(early, builder.shuffle_vector(steps, steps, last))
        lows = [builder.and_(half, broadcast(builder, low_part, 8)) for half in (early, late)]
        highs = [builder.ashr(half, broadcast(builder, bits, 8)) for half in (early, late)]
        for place, halves in enumerate((lows, highs)):
            digits = builder.trunc(builder.shuffle_vector(*halves, joined), ir.VectorType(I8, LANES))
            to = builder.add(builder.mul(group, integer(TABLE)), integer(place * LANES))
            builder.store(digits, vector_pointer(builder, tables, to, LANES), align=1)
        return [builder.fadd(all_, more) for all_, more in zip(so_far, (magnitudes(scaled), off), strict=True)]

    def whole(first: Any, so_far: list[Any]) -> list[Any]:
        values = builder.load(vector_pointer(builder, weights, first, 4), align=8)
        return fill(builder.ashr(first, integer(2)), values, so_far)

    def rest(group: Any, so_far: list[Any]) -> list[Any]:
        values = ir.Constant(four, None)
        for lane in range(4):
            place = builder.add(builder.mul(group, integer(4)), integer(lane))
            there = builder.icmp_signed("<", place, size)
            value = builder.load(builder.gep(weights, [builder.select(there, place, integer(0))]))
            value = builder.select(there, value, ir.Constant(DOUBLE, 0.0))
            values = builder.insert_element(values, value, ir.Constant(I32, lane))
        return fill(group, values, so_far)

    none = ir.Constant(four, None)
    done, *so_far = loop(builder, integer(0), 4, size, [none, none], whole)
    _, *so_far = loop(builder, builder.ashr(done, integer(2)), 1, groups, so_far, rest)
    for place, parts in enumerate(so_far):
        lanes = [builder.extract_element(parts, ir.Constant(I32, lane)) for lane in range(4)]
        total = builder.fadd(builder.fadd(lanes[0], lanes[1]), builder.fadd(lanes[2], lanes[3]))
        builder.store(total, builder.gep(totals, [integer(place)]))
    builder.ret_void()


def _look_up(builder: Any, features: str, codes: Any, tables: Any, groups: Any, number: Any, group: Any) -> list[Any]:
    """Low and high digits that the codes of a pair of rows find in a table."""
    at = builder.mul(builder.add(builder.mul(number, groups), group), integer(TABLE))
    places = builder.load(vector_pointer(builder, codes, at, TABLE), align=1)
    of = builder.mul(group, integer(TABLE))
    halves = [vector_pointer(builder, tables, builder.add(of, integer(half)), LANES) for half in (0, LANES)]
    return [bytes_at(builder, features, builder.load(there, align=1), places) for there in halves]


def narrow_sums(builder: Any, features: str, codes: Any, tables: Any, groups: Any, numbers: list[Any]) -> list[Any]:
    """The sums of pairs of rows in 16 bits, two vectors each, where bytes hold the sums of digits."""

    def add(group: Any, totals: list[Any]) -> list[Any]:
        found = [digit for n in numbers for digit in _look_up(builder, features, codes, tables, groups, n, group)]
        return [builder.add(total, digits) for total, digits in zip(totals, found, strict=True)]

    none = ir.Constant(BYTES, None)
    digits = loop(builder, integer(0), 1, groups, [none] * (2 * len(numbers)), add)[1:]
    sums = []
    for low, high in zip(digits[::2], digits[1::2], strict=True):
        for mix in MIXES:
            small = builder.bitcast(builder.shuffle_vector(low, none, mix), SUMS)
            large = builder.bitcast(builder.shuffle_vector(none, high, mix), SUMS)  # 256 times the digit
            sums.append(builder.add(builder.ashr(large, ir.Constant(SUMS, [3] * LANES)), small))
    return sums


def _wide_sums(builder: Any, features: str, codes: Any, tables: Any, groups: Any, number: Any) -> list[Any]:
    """The same for one pair of rows where the digits are bytes."""

    def add(group: Any, totals: list[Any]) -> list[Any]:
        found = _look_up(builder, features, codes, tables, groups, number, group)
        numbers = [builder.bitcast(builder.shuffle_vector(*found, mix), SUMS) for mix in MIXES]
        return [builder.add(total, number) for total, number in zip(totals, numbers, strict=True)]

    return loop(builder, integer(0), 1, groups, [ir.Constant(SUMS, None)] * 2, add)[1:]


def pair_sums(builder: Any, features: str, codes: Any, tables: Any, groups: Any, number: Any) -> list[Any]:
    """The sums of one pair of rows, by either way."""
    given = builder, features, codes, tables, groups
    return by_size(builder, groups, lambda: narrow_sums(*given, [number]), lambda: _wide_sums(*given, number))


def by_size(builder: Any, groups: Any, few: Callable[[], list[Any]], many: Callable[[], list[Any]]) -> list[Any]:
    """Two vectors of sums: what ``few`` writes for so few tables that bytes hold sums of digits, else ``many``."""
    blocks = [builder.append_basic_block(name) for name in ("few", "many", "end")]
    builder.cbranch(builder.icmp_signed("<=", groups, integer(NARROW)), *blocks[:2])
    ways = []
    for block, write in zip(blocks[:2], (few, many), strict=True):
        builder.position_at_end(block)
        ways.append((write(), builder.block))
        builder.branch(blocks[2])
    builder.position_at_end(blocks[2])
    sums = [builder.phi(SUMS) for _ in range(2)]
    for totals, block in ways:
        for phi, total in zip(sums, totals, strict=True):
            phi.add_incoming(total, block)
    return sums


def _write_codes(features: str) -> Any:
    """The writer of a loop over pairs of rows, whose sums become floats."""
    # Row by row: its first eight lanes from the one sum, the others from the other.
    places = [[8 * r + j for j in (*range(8), *range(16, 24))] for r in (0, 1)]
    rows = [ir.Constant(ir.VectorType(I32, LANES), lanes) for lanes in places]

    def write(builder: Any, scores: Any, pairs: Any, codes: Any, tables: Any, groups: Any, unit: Any) -> None:
        def pair(number: Any, _: list[Any]) -> list[Any]:
            totals = pair_sums(builder, features, codes, tables, groups, number)
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


if JIT:

    @intrinsic
    def fill_tables(_, weights, unit, tables):  # type: ignore[no-untyped-def]
        """See `plain_fill_tables`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            of, to = (array_struct(context, builder, sig.args[i], args[i]) for i in (0, 2))
            groups = builder.sdiv(to.nitems, integer(TABLE))
            inside(context, builder, integer(0), of.nitems, builder.mul(groups, integer(4)))
            inside(context, builder, integer(0), groups, of.nitems)
            totals = cgutils.alloca_once(builder, DOUBLE, size=2)
            given = of.data, of.nitems, args[1], groups, to.data, totals
            call_own(builder, "linmax_tables", VOID, _write_tables, *given)
            found = [builder.load(builder.gep(totals, [integer(place)])) for place in (0, 1)]
            return context.make_tuple(builder, sig.return_type, found)

        return types.UniTuple(float64, 2)(float64[::1], float64, int8[::1]), codegen

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

else:
    fill_tables, sum_codes = plain_fill_tables, plain_sum_codes
