"""The inner loops that LLVM does not vectorise by itself, written as explicit vectors.

Scores of a linear machine, scores[c] = sum_j value_j * weights[base + row_j * stride + c]: plain loops over a run-time
number of classes are three to five times slower at 20 classes. The best class but the label; which of 64 numbers are
not 0; the hyperbolic sines of Balanced Winnow; sixteen instances of a panel abreast. The functions ``plain_...`` are
the same in plain words: the reference, and what runs when the compiler is off.

The larger ones are functions of their own in the compiled module, so that they do not share registers with the loop
around them, and are compiled once however often they are called.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import float32, float64, int8, int32, int64, types
from numba.core import cgutils
from numba.extending import intrinsic

from linmax.jit.compiling import CHECKED, JIT, inside, inside_array

__all__ = [
    "add_dense",
    "add_lanes",
    "add_rows",
    "best_but",
    "lowest_bit",
    "next_lane",
    "nonzero_bits",
    "put_pairs",
    "sinh_weights",
    "start_dense",
    "start_rows",
    "sum_codes",
    "twice_sinh",
]

# Rows of up to 8 classes, and of 24, are one pass in which their length is a constant; other lengths are passes of 16
# and 8. A shape is lanes of a vector, vectors side by side, and independent sums that hide the latency of additions.
# Vectors are of 8 lanes at most: of longer ones LLVM would make a mess.
_SHAPES = ((1, 1, 4), (2, 1, 4), (4, 1, 4), (8, 1, 4), (8, 3, 2))
_WIDE, _NARROW = (8, 2, 4), (8, 1, 4)
LANES = 16  # instances abreast in a panel
_LN_2_REST = 2.3190468138462996e-17  # ln 2 is math.log(2) and this
_FAR = 1000.0  # twice_sinh of more is that of this, still a float
_AHEAD = 16  # rows fetched early, the next instance's included: its first misses would otherwise stall every trial
_FAR_AHEAD = 256  # places and values fetched early: what reads memory in order for us stops at the end of every page


# -- in plain words -----------------------------------------------------------------------------------------------


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
    """The same for a dense row: attribute j sits at row j."""
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
    """The same for a dense row."""
    for c in range(stride):
        scores[c] = constant * weights[base - stride + c]
    plain_add_dense(scores, weights, base, stride, values)


def plain_best_but(scores: np.ndarray, known: int, skip: int, largest: int) -> int:
    """Place of the largest of ``scores[:known]``, ``skip`` left out; of equals the first, or the last if ``largest``.

    -1 when there is none. ``scores`` has room for whole vectors of 8.
    """
    best = -1
    for j in range(known):
        if j != skip and (best < 0 or scores[j] > scores[best] or (largest and scores[j] == scores[best])):
            best = j
    return best


def plain_nonzero_bits(values: np.ndarray, first: int) -> int:
    """Which of ``values[first : first + 64]`` are not 0, the first in the lowest bit."""
    return sum(1 << j for j, value in enumerate(values[first : first + 64].tolist()) if value != 0.0)


def plain_lowest_bit(bits: int) -> int:
    """Place of the lowest bit that is set; there must be one."""
    return (bits & -bits).bit_length() - 1


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
    """From ``count`` on, two coordinates for each j in lo..hi: z = sign * values[j] at the low one, its opposite above.

    ``places`` are the low coordinate of row 0, that of the high one, and the stride of a row.
    """
    low, high, stride = places
    for j in range(lo, hi):
        at, value = rows[j] * stride, sign * values[j]
        index[count], index[count + 1] = at + low, at + high
        z[count], z[count + 1] = value, -value
        count += 2


def plain_twice_sinh(x: float) -> float:
    """2^x - 2^-x: odd to the last bit, exact for whole x while it can be, within 2 units in the last place."""
    size = min(abs(x), _FAR)
    turns = round(size)
    less_one = math.ldexp(math.expm1((size - turns) * math.log(2.0)), turns) + (math.ldexp(1.0, turns) - 1.0)
    return math.copysign(less_one + less_one / (less_one + 1.0), x)


def plain_sinh_weights(weights: np.ndarray, memory: np.ndarray, index: np.ndarray, rate: float) -> float:
    """``weights[i] = twice_sinh(rate * memory[0, i])`` for i in ``index``; returns the largest magnitude written."""
    largest = 0.0
    for i in index:
        weights[i] = plain_twice_sinh(rate * memory[0, i])
        largest = max(largest, abs(weights[i]))
    return largest


# -- as vectors ---------------------------------------------------------------------------------------------------

I64, I32, I16, I8 = (ir.IntType(bits) for bits in (64, 32, 16, 8))
BIT, DOUBLE, VOID = ir.IntType(1), ir.DoubleType(), ir.VoidType()
EIGHT, EIGHT_BITS = ir.VectorType(DOUBLE, 8), ir.VectorType(I64, 8)
FUSE = ("contract",)


def _whole(number: int) -> Any:
    return ir.Constant(I64, number)


def _all(number: float) -> Any:
    return ir.Constant(EIGHT, [float(number)] * 8)


def _splat(builder: Any, value: Any, lanes: int) -> Any:
    kind = ir.VectorType(value.type, lanes)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(I32, 0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(I32, lanes), [0] * lanes))


def _at(builder: Any, pointer: Any, place: Any, lanes: int) -> Any:
    """Pointer to a vector."""
    there = builder.gep(pointer, [place])
    return builder.bitcast(there, ir.VectorType(there.type.pointee, lanes).as_pointer())


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def _largest_lane(builder: Any, vector: Any) -> Any:
    """The largest of eight lanes, in all of them."""
    for half in (4, 2, 1):
        turn = ir.Constant(ir.VectorType(I32, 8), [(lane + half) % 8 for lane in range(8)])
        vector = _larger(builder, vector, builder.shuffle_vector(vector, vector, turn))
    return vector


def _fetch(builder: Any, pointer: Any) -> None:
    kind = ir.FunctionType(VOID, [I8.as_pointer(), I32, I32, I32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    read_keep_data = [ir.Constant(I32, number) for number in (0, 3, 1)]
    builder.call(function, [builder.bitcast(pointer, I8.as_pointer()), *read_keep_data])


def _loop(
    builder: Any, start: Any, step: int, stop: Any, carried: list[Any], body: Callable[[Any, list[Any]], list[Any]]
) -> list[Any]:
    """``for j = start; j + step <= stop; j += step: carried = body(j, carried)``; returns j and what was carried."""
    before = builder.block
    head, inside, after = (builder.append_basic_block(f"loop.{name}") for name in ("head", "body", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    j = builder.phi(I64)
    j.add_incoming(start, before)
    phis = []
    for value in carried:
        phi = builder.phi(value.type)
        phi.add_incoming(value, before)
        phis.append(phi)
    following = builder.add(j, _whole(step), flags=("nsw",))
    builder.cbranch(builder.icmp_signed("<=", following, stop), inside, after)
    builder.position_at_end(inside)
    updated = body(j, phis)
    j.add_incoming(following, builder.block)
    for phi, value in zip(phis, updated, strict=True):
        phi.add_incoming(value, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return [j, *phis]


def _call_own(
    builder: Any, name: str, result: Any, write: Callable[..., None], *arguments: Any, how: str = "noinline"
) -> Any:
    """Call a function of the module, written when it is first wanted."""
    function = builder.module.globals.get(name)
    if function is None:
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        function = ir.Function(builder.module, kind, name)
        function.linkage = "linkonce_odr"  # modules are linked together: one of them is enough
        for attribute in (how, "nounwind"):
            function.attributes.add(attribute)
        write(ir.IRBuilder(function.append_basic_block("entry")), *function.args)
    return builder.call(function, arguments)


def _pass(
    builder: Any,
    scores: Any,
    weights: Any,
    stride: Any,
    start: Any,
    factor: Any,
    rows: Any,
    values: Any,
    count: Any,
    within: Any,
    shape: tuple[int, int, int],
) -> None:
    """One pass over the rows, for as many classes as the shape has: ``scores = factor * start + sum of the rows``.

    ``rows`` is a pointer to int32, or None when attribute j sits at row j; ``within`` is how many rows may be looked
    at ahead.
    """
    lanes, parts, ways = shape
    number = values.type.pointee
    vector = ir.VectorType(number, lanes)
    align = 4 if number == ir.FloatType() else 8
    streamed = parts == 1 and number == DOUBLE  # with more classes the weights, not the rows, are what we wait for

    def row(j: Any) -> Any:
        place = builder.sext(builder.load(builder.gep(rows, [j])), I64) if rows is not None else j
        return builder.gep(weights, [builder.mul(place, stride, flags=("nsw",))])

    def fetch(j: Any) -> None:
        coming = builder.add(j, _whole(_AHEAD))
        there = builder.icmp_signed("<=", builder.add(coming, _whole(ways)), within)
        coming = builder.select(there, coming, j)
        for way in range(ways):
            at = row(builder.add(coming, _whole(way)))
            for part in range(parts):
                _fetch(builder, builder.gep(at, [_whole(part * lanes)]))

    def add(together: int) -> Callable[[Any, list[Any]], list[Any]]:
        def body(j: Any, sums: list[Any]) -> list[Any]:
            if together > 1 and streamed:
                far = builder.add(j, _whole(_FAR_AHEAD))
                for pointer in (values, rows) if rows is not None else (values,):
                    _fetch(builder, builder.gep(pointer, [far]))
            if rows is not None and together > 1 and lanes > 2:  # rows of two numbers come as fast without
                fetch(j)
            updated = []
            for way in range(together):
                here = builder.add(j, _whole(way), flags=("nsw",))
                at, value = row(here), _splat(builder, builder.load(builder.gep(values, [here])), lanes)
                for part in range(parts):
                    weight = builder.load(_at(builder, at, _whole(part * lanes), lanes), align=align)
                    term = builder.fmul(value, weight, flags=FUSE)
                    updated.append(builder.fadd(sums[way * parts + part], term, flags=FUSE))
            return updated

        return body

    places = [_whole(part * lanes) for part in range(parts)]
    multiple = _splat(builder, factor, lanes)
    first = [builder.load(_at(builder, start, place, lanes), align=align) for place in places]
    sums = [builder.fmul(multiple, begin) for begin in first] + [ir.Constant(vector, None)] * (parts * (ways - 1))
    j, *sums = _loop(builder, _whole(0), ways, count, sums, add(ways))
    while len(sums) > parts:
        half = len(sums) // 2
        sums = [builder.fadd(a, b) for a, b in zip(sums[:half], sums[half:], strict=True)]
    _, *sums = _loop(builder, j, 1, count, sums, add(1))
    for total, place in zip(sums, places, strict=True):
        builder.store(total, _at(builder, scores, place, lanes), align=align)


def _write_scores(sparse: bool) -> Callable[..., None]:
    """The function that adds up rows, sparse or dense."""

    def write(builder, scores, weights, stride, start, factor, values, count, *more):  # type: ignore[no-untyped-def]
        rows, within = more if sparse else (None, None)

        def block(first: Any, step: Any, shape: tuple[int, int, int]) -> None:
            moved = [builder.gep(pointer, [first]) for pointer in (scores, weights, start)]
            _pass(builder, moved[0], moved[1], step, moved[2], factor, rows, values, count, within, shape)

        other = builder.append_basic_block("other")
        choice = builder.switch(stride, other)
        for shape in _SHAPES:
            length = _whole(shape[0] * shape[1])
            case = builder.append_basic_block("case")
            choice.add_case(length, case)
            builder.position_at_end(case)
            block(_whole(0), length, shape)
            builder.ret_void()
        builder.position_at_end(other)
        done = _whole(0)
        for shape in (_WIDE, _NARROW):

            def body(first: Any, _: list[Any], shape: tuple[int, int, int] = shape) -> list[Any]:
                block(first, stride, shape)
                return []

            (done,) = _loop(builder, done, shape[0] * shape[1], stride, [], body)
        builder.ret_void()

    return write


def _write_best_but(builder: Any, scores: Any, known: Any, skip: Any, largest: Any) -> None:
    limit, skipped, never = _splat(builder, known, 8), _splat(builder, skip, 8), _all(-math.inf)

    def eight(first: Any) -> Any:
        place = builder.add(_splat(builder, first, 8), ir.Constant(EIGHT_BITS, list(range(8))))
        out = builder.or_(builder.icmp_signed("==", place, skipped), builder.icmp_signed(">=", place, limit))
        return builder.select(out, never, builder.load(_at(builder, scores, first, 8), align=8))

    def most(first: Any, carried: list[Any]) -> list[Any]:
        return [_larger(builder, eight(first), carried[0])]

    last, best = _loop(builder, _whole(0), 8, builder.add(known, _whole(7)), [never], most)
    best = _largest_lane(builder, best)
    none, ends, find, found = (builder.append_basic_block(name) for name in ("none", "ends", "find", "found"))
    top = builder.extract_element(best, ir.Constant(I32, 0))
    builder.cbranch(builder.fcmp_ordered(">", top, ir.Constant(DOUBLE, -math.inf)), ends, none)

    builder.position_at_end(none)  # nothing but nan and minus infinity, if anything
    other = builder.zext(builder.icmp_signed("==", skip, _whole(0)), I64)
    builder.ret(builder.select(builder.icmp_signed("<", other, known), other, _whole(-1)))

    builder.position_at_end(ends)
    backwards = builder.icmp_signed("!=", largest, _whole(0))
    begin = builder.select(backwards, builder.sub(last, _whole(8)), _whole(0))
    step = builder.select(backwards, _whole(-8), _whole(8))
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


def _write_pairs(
    builder: Any, index: Any, z: Any, low: Any, high: Any, stride: Any, sign: Any, rows: Any, values: Any, count: Any
) -> None:
    def some(lanes: int) -> Callable[[Any, list[Any]], list[Any]]:
        zipped = ir.Constant(ir.VectorType(I32, 2 * lanes), [lane // 2 + lane % 2 * lanes for lane in range(2 * lanes)])

        def store(pointer: Any, j: Any, first: Any, second: Any) -> None:
            pairs = builder.shuffle_vector(first, second, zipped)
            builder.store(pairs, _at(builder, pointer, builder.add(j, j), 2 * lanes), align=8)

        def body(j: Any, _: list[Any]) -> list[Any]:
            place = builder.sext(builder.load(_at(builder, rows, j, lanes), align=4), ir.VectorType(I64, lanes))
            at = builder.mul(place, _splat(builder, stride, lanes))
            value = builder.load(_at(builder, values, j, lanes), align=8)
            value = builder.fmul(value, _splat(builder, sign, lanes))
            store(index, j, *(builder.add(at, _splat(builder, first, lanes)) for first in (low, high)))
            store(z, j, value, builder.fneg(value))
            return []

        return body

    (j,) = _loop(builder, _whole(0), 4, count, [], some(4))
    _loop(builder, j, 1, count, [], some(1))
    builder.ret_void()


def _write_nonzero_bits(builder: Any, values: Any, count: Any) -> None:
    length = builder.select(builder.icmp_signed("<", count, _whole(64)), count, _whole(64))

    def some(lanes: int) -> Callable[[Any, list[Any]], list[Any]]:
        def body(j: Any, bits: list[Any]) -> list[Any]:
            vector = builder.load(_at(builder, values, j, lanes), align=8)
            there = builder.fcmp_unordered("!=", vector, ir.Constant(vector.type, None))
            found = builder.zext(builder.bitcast(there, ir.IntType(lanes)), I64)
            return [builder.or_(bits[0], builder.shl(found, j))]

        return body

    j, bits = _loop(builder, _whole(0), 8, length, [_whole(0)], some(8))
    _, bits = _loop(builder, j, 1, length, [bits], some(1))
    builder.ret(bits)


def _twice_sinh(builder: Any, x: Any) -> tuple[Any, Any]:
    """|2^x - 2^-x| and itself, for eight x. With m = 2^|x| - 1 it is m + m / (m + 1).

    m comes from the Taylor series at the nearest whole number, so that small x lose no digits. Products and sums are
    fused by name, not at the compiler's discretion: every caller then gets the same bits.
    """

    def fused(a: Any, b: Any, c: Any) -> Any:
        kind = ir.FunctionType(EIGHT, [EIGHT] * 3)
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v8f64"), [a, b, c])

    bits = builder.bitcast(x, EIGHT_BITS)
    sign = builder.and_(bits, ir.Constant(EIGHT_BITS, [-(1 << 63)] * 8))
    size = builder.bitcast(builder.xor(bits, sign), EIGHT)
    size = builder.select(builder.fcmp_ordered(">", size, _all(_FAR)), _all(_FAR), size)
    rounding = _all(1.5 * 2.0**52)  # adding this leaves the nearest whole number in the low bits
    shifted = builder.fadd(size, rounding)
    part = builder.fsub(size, builder.fsub(shifted, rounding))
    rest = builder.fmul(part, _all(math.log(2.0)))
    lost = fused(part, _all(_LN_2_REST), fused(part, _all(math.log(2.0)), builder.fneg(rest)))
    series = _all(1.0 / math.factorial(13))
    for n in range(12, 1, -1):
        series = fused(series, rest, _all(1.0 / math.factorial(n)))
    series = builder.fadd(rest, fused(builder.fmul(series, rest), rest, lost))
    turns = builder.sub(builder.bitcast(shifted, EIGHT_BITS), builder.bitcast(rounding, EIGHT_BITS))
    exponent = builder.add(turns, ir.Constant(EIGHT_BITS, [1023] * 8))
    scale = builder.bitcast(builder.shl(exponent, ir.Constant(EIGHT_BITS, [52] * 8)), EIGHT)
    less_one = fused(series, scale, builder.fsub(scale, _all(1.0)))
    result = builder.fadd(less_one, builder.fdiv(less_one, builder.fadd(less_one, _all(1.0))))
    return result, builder.bitcast(builder.or_(builder.bitcast(result, EIGHT_BITS), sign), EIGHT)


def _write_sinh_weights(builder: Any, weights: Any, memory: Any, index: Any, count: Any, rate: Any) -> None:
    rates, largest = _splat(builder, rate, 8), _all(0.0)

    def some(first: Any, lanes: int, largest: Any) -> Any:
        sums, places = _all(0.0), []
        for lane in range(lanes):
            places.append(builder.load(builder.gep(index, [builder.add(first, _whole(lane))])))
            term = builder.load(builder.gep(memory, [places[-1]]))
            sums = builder.insert_element(sums, term, ir.Constant(I32, lane))
        size, weight = _twice_sinh(builder, builder.fmul(sums, rates))
        for lane, place in enumerate(places):
            builder.store(builder.extract_element(weight, ir.Constant(I32, lane)), builder.gep(weights, [place]))
        return _larger(builder, size, largest)

    def result(largest: Any) -> None:
        builder.ret(builder.extract_element(_largest_lane(builder, largest), ir.Constant(I32, 0)))

    few, many = builder.append_basic_block("few"), builder.append_basic_block("many")
    builder.cbranch(builder.icmp_signed("<", count, _whole(8)), few, many)
    builder.position_at_end(few)
    _, most = _loop(builder, _whole(0), 1, count, [largest], lambda j, carried: [some(j, 1, carried[0])])
    result(most)
    builder.position_at_end(many)
    end = builder.sub(count, _whole(8))

    def eight(j: Any, carried: list[Any]) -> list[Any]:
        first = builder.select(builder.icmp_signed("<", j, end), j, end)  # the last eight may have been done before
        return [some(first, 8, carried[0])]

    _, most = _loop(builder, _whole(0), 8, builder.add(count, _whole(7)), [largest], eight)
    result(most)


def _write_lanes(builder: Any, scores: Any, panel: Any, values: Any, count: Any) -> None:
    one, sixteen = ir.Constant(ir.FloatType(), 1.0), _whole(LANES)
    _pass(builder, scores, panel, sixteen, scores, one, None, values, count, None, (LANES, 1, 4))
    builder.ret_void()


def _write_codes(builder: Any, scores: Any, rows: Any, codes: Any, values: Any, count: Any) -> None:
    """Passes over the voters, eight classes at a time or as many as are left, each in a vector of sixteen sums."""
    floats = ir.VectorType(ir.FloatType(), LANES)
    done = _whole(0)
    for width in (8, 5, 4, 3, 2, 1):

        def some(first: Any, _: list[Any], width: int = width) -> list[Any]:
            places = [builder.add(first, _whole(a)) for a in range(width)]
            wanted = [_splat(builder, builder.trunc(place, I8), LANES) for place in places]

            def vote(j: Any, sums: list[Any]) -> list[Any]:
                votes = builder.load(_at(builder, codes, builder.mul(j, _whole(LANES)), LANES), align=1)
                value = _splat(builder, builder.load(builder.gep(values, [j])), LANES)
                return [
                    builder.select(builder.icmp_signed("==", votes, cls), builder.fadd(total, value), total)
                    for cls, total in zip(wanted, sums, strict=True)
                ]

            _, *sums = _loop(builder, _whole(0), 1, count, [ir.Constant(floats, None)] * width, vote)
            for place, total in zip(places, sums, strict=True):
                builder.store(total, _at(builder, scores, builder.mul(place, _whole(LANES)), LANES), align=4)
            return []

        (done,) = _loop(builder, done, width, rows, [], some)
    builder.ret_void()


def _write_next_lane(builder: Any, scores: Any, rows: Any, slack: Any, start: Any) -> None:
    """The rows in a loop, the lanes in one vector, whose comparison becomes sixteen bits."""

    def load(row: Any) -> Any:
        return builder.load(_at(builder, scores, builder.mul(row, _whole(LANES)), LANES), align=4)

    label, second = load(_whole(0)), load(_whole(1))
    _, best = _loop(builder, _whole(2), 1, rows, [second], lambda row, best: [_larger(builder, load(row), best[0])])
    limit = _splat(builder, builder.fptrunc(slack, ir.FloatType()), LANES)
    close = builder.fcmp_unordered("<=", builder.fsub(label, best), limit)
    found = builder.zext(builder.bitcast(close, I16), I32)
    passed = builder.shl(ir.Constant(I32, 0xFFFF), builder.trunc(start, I32))
    found = builder.or_(builder.and_(found, passed), ir.Constant(I32, 1 << LANES))  # none: lane 16
    builder.ret(builder.zext(builder.cttz(found, ir.Constant(BIT, 1)), I64))


# -- as functions of kernels --------------------------------------------------------------------------------------


def _array(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return cgutils.create_struct_proxy(kind)(context, builder, value)


def _data(context: Any, builder: Any, kind: Any, value: Any, start: Any = None) -> Any:
    data = _array(context, builder, kind, value).data
    return data if start is None else builder.gep(data, [start])


def _check_scores(context: Any, builder: Any, kinds: Any, args: Any, constant: Any, tail: list[Any]) -> None:
    """That all the rows are in the weights, and the scores have room for one."""
    base, stride = args[2:4]
    inside_array(context, builder, kinds[0], args[0], _whole(0), stride)
    if constant is not None:
        inside_array(context, builder, kinds[1], args[1], builder.sub(base, stride), stride)
    if len(tail) == 2:
        inside_array(context, builder, kinds[1], args[1], base, builder.mul(tail[1], stride))
        return
    for kind, array in zip(kinds[-4:-2], args[-4:-2], strict=True):
        inside_array(context, builder, kind, array, args[-2], tail[1])
    with cgutils.for_range_slice(builder, _whole(0), tail[1], _whole(1), intp=I64) as (j, _):
        row = builder.sext(builder.load(builder.gep(tail[2], [j])), I64)
        inside_array(context, builder, kinds[1], args[1], builder.add(base, builder.mul(row, stride)), stride)


def _scores(context: Any, builder: Any, kinds: Any, args: Any, constant: Any, tail: list[Any]) -> Any:
    """Call the function that adds up rows; the ``tail`` is its values, their number and what sparse rows need more."""
    if CHECKED:
        _check_scores(context, builder, kinds, args, constant, tail)
    scores = _data(context, builder, kinds[0], args[0])
    weights, stride = _data(context, builder, kinds[1], args[1], args[2]), args[3]
    start, factor = scores, ir.Constant(DOUBLE, 1.0)
    if constant is not None:
        start, factor = builder.gep(weights, [builder.neg(stride)]), constant
    sparse = len(tail) > 2
    name = "linmax_rows" if sparse else "linmax_dense"
    _call_own(builder, name, VOID, _write_scores(sparse), scores, weights, stride, start, factor, *tail)
    return context.get_dummy_value()


def _tail_of_rows(context: Any, builder: Any, kinds: Any, args: Any) -> list[Any]:
    (rows, values, lo, hi), (rows_kind, values_kind) = args[-4:], kinds[-4:-2]
    table = _array(context, builder, rows_kind, rows)
    at = _data(context, builder, values_kind, values, lo)
    return [at, builder.sub(hi, lo), builder.gep(table.data, [lo]), builder.sub(table.nitems, lo)]


def _tail_of_dense(context: Any, builder: Any, kinds: Any, args: Any) -> list[Any]:
    row = _array(context, builder, kinds[-1], args[-1])
    return [row.data, row.nitems]


if JIT:

    @intrinsic
    def add_rows(_, scores, weights, base, stride, rows, values, lo, hi):  # type: ignore[no-untyped-def]
        """See `plain_add_rows`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            tail = _tail_of_rows(context, builder, sig.args, args)
            return _scores(context, builder, sig.args, args, None, tail)

        return types.void(scores, weights, int64, int64, int32[::1], float64[::1], int64, int64), codegen

    @intrinsic
    def start_rows(_, scores, weights, base, stride, constant, rows, values, lo, hi):  # type: ignore[no-untyped-def]
        """See `plain_start_rows`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            tail = _tail_of_rows(context, builder, sig.args, args)
            return _scores(context, builder, sig.args, args, args[4], tail)

        return types.void(scores, weights, int64, int64, float64, int32[::1], float64[::1], int64, int64), codegen

    @intrinsic
    def add_dense(_, scores, weights, base, stride, values):  # type: ignore[no-untyped-def]
        """See `plain_add_dense`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            tail = _tail_of_dense(context, builder, sig.args, args)
            return _scores(context, builder, sig.args, args, None, tail)

        return types.void(scores, weights, int64, int64, float64[::1]), codegen

    @intrinsic
    def start_dense(_, scores, weights, base, stride, constant, values):  # type: ignore[no-untyped-def]
        """See `plain_start_dense`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            tail = _tail_of_dense(context, builder, sig.args, args)
            return _scores(context, builder, sig.args, args, args[4], tail)

        return types.void(scores, weights, int64, int64, float64, float64[::1]), codegen

    @intrinsic
    def best_but(_, scores, known, skip, largest):  # type: ignore[no-untyped-def]
        """See `plain_best_but`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            data = _data(context, builder, sig.args[0], args[0])
            eights = builder.and_(builder.add(args[1], _whole(7)), _whole(-8))
            inside_array(context, builder, sig.args[0], args[0], _whole(0), eights)
            return _call_own(builder, "linmax_best_but", I64, _write_best_but, data, *args[1:])

        return int64(scores, int64, int64, int64), codegen

    @intrinsic
    def nonzero_bits(_, values, first):  # type: ignore[no-untyped-def]
        """See `plain_nonzero_bits`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            row = _array(context, builder, sig.args[0], args[0])
            inside(context, builder, args[1], _whole(1), row.nitems)
            there, left = builder.gep(row.data, [args[1]]), builder.sub(row.nitems, args[1])
            return _call_own(builder, "linmax_nonzero_bits", I64, _write_nonzero_bits, there, left, how="alwaysinline")

        return int64(values, int64), codegen

    @intrinsic
    def put_pairs(_, index, z, count, places, sign, rows, values, lo, hi):  # type: ignore[no-untyped-def]
        """See `plain_put_pairs`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            starts = (args[2], args[2], args[7], args[7])
            four = zip((0, 1, 5, 6), starts, strict=True)
            data = [_data(context, builder, sig.args[i], args[i], start) for i, start in four]
            places = [builder.extract_value(args[3], i) for i in range(3)]
            length = builder.sub(args[8], args[7])
            lengths = [builder.mul(length, _whole(2))] * 2 + [length] * 2
            for i, start, many in zip((0, 1, 5, 6), starts, lengths, strict=True):
                inside_array(context, builder, sig.args[i], args[i], start, many)
            _call_own(builder, "linmax_pairs", VOID, _write_pairs, *data[:2], *places, args[4], *data[2:], length)
            return context.get_dummy_value()

        three = types.UniTuple(int64, 3)
        return types.void(index, z, int64, three, float64, int32[::1], float64[::1], int64, int64), codegen

    @intrinsic
    def lowest_bit(_, bits):  # type: ignore[no-untyped-def]
        """See `plain_lowest_bit`."""
        return int64(int64), lambda _context, builder, _signature, args: builder.cttz(args[0], ir.Constant(BIT, 1))

    @intrinsic
    def twice_sinh(_, x):  # type: ignore[no-untyped-def]
        """See `plain_twice_sinh`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            return builder.extract_element(_twice_sinh(builder, _splat(builder, args[0], 8))[1], ir.Constant(I32, 0))

        return float64(float64), codegen

    @intrinsic
    def sinh_weights(_, weights, memory, index, rate):  # type: ignore[no-untyped-def]
        """See `plain_sinh_weights`."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            arrays = [_array(context, builder, kind, value) for kind, value in zip(sig.args[:3], args, strict=False)]
            data = [array.data for array in arrays]
            size = arrays[2].nitems
            if CHECKED:
                rooms = (arrays[0].nitems, arrays[1].nitems, builder.extract_value(arrays[1].shape, 1))
                with cgutils.for_range_slice(builder, _whole(0), size, _whole(1), intp=I64) as (j, _):
                    for room in rooms:
                        inside(context, builder, builder.load(builder.gep(data[2], [j])), _whole(1), room)
            return _call_own(builder, "linmax_sinh_weights", DOUBLE, _write_sinh_weights, *data, size, args[3])

        return float64(weights, memory, index, float64), codegen

    @intrinsic
    def add_lanes(_, scores, panel, base, values):  # type: ignore[no-untyped-def]
        """`add_dense` in single precision, stride 16: ``scores += sum of values[j] * panel[base + 16 j :]``."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            data = [_data(context, builder, sig.args[0], args[0]), _data(context, builder, sig.args[1], *args[1:3])]
            tail = _tail_of_dense(context, builder, sig.args, args)
            inside_array(context, builder, sig.args[0], args[0], _whole(0), _whole(LANES))
            inside_array(context, builder, sig.args[1], args[1], args[2], builder.mul(tail[1], _whole(LANES)))
            _call_own(builder, "linmax_lanes", VOID, _write_lanes, *data, *tail)
            return context.get_dummy_value()

        return types.void(scores, float32[::1], int64, float32[::1]), codegen

    @intrinsic
    def sum_codes(_, scores, codes, base, values):  # type: ignore[no-untyped-def]
        """Sixteen instances of voters: ``scores[c, lane]`` = sum of values[j] with codes[base + 16 j + lane] = c."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            table = _array(context, builder, sig.args[0], args[0])
            rows, at = builder.extract_value(table.shape, 0), _data(context, builder, sig.args[1], *args[1:3])
            tail = _tail_of_dense(context, builder, sig.args, args)
            inside_array(context, builder, sig.args[0], args[0], _whole(0), builder.mul(rows, _whole(LANES)))
            inside_array(context, builder, sig.args[1], args[1], args[2], builder.mul(tail[1], _whole(LANES)))
            _call_own(builder, "linmax_codes", VOID, _write_codes, table.data, rows, at, *tail)
            return context.get_dummy_value()

        return types.void(float32[:, ::1], int8[::1], int64, float32[::1]), codegen

    @intrinsic
    def next_lane(_, scores, slack, start):  # type: ignore[no-untyped-def]
        """The first lane from ``start`` on in which row 0 leads all others by at most slack; 16 when there is none."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            table = _array(context, builder, sig.args[0], args[0])
            rows = builder.extract_value(table.shape, 0)
            inside(context, builder, _whole(0), _whole(2), rows)
            inside_array(context, builder, sig.args[0], args[0], _whole(0), builder.mul(rows, _whole(LANES)))
            return _call_own(builder, "linmax_next_lane", I64, _write_next_lane, table.data, rows, *args[1:])

        return int64(float32[:, ::1], float64, int64), codegen

else:
    add_rows, add_dense, start_rows, start_dense = plain_add_rows, plain_add_dense, plain_start_rows, plain_start_dense
    best_but, nonzero_bits, lowest_bit = plain_best_but, plain_nonzero_bits, plain_lowest_bit
    put_pairs = plain_put_pairs
    twice_sinh, sinh_weights = plain_twice_sinh, plain_sinh_weights

    def add_lanes(scores: np.ndarray, panel: np.ndarray, base: int, values: np.ndarray) -> None:
        plain_add_dense(scores, panel, base, LANES, values)

    def sum_codes(scores: np.ndarray, codes: np.ndarray, base: int, values: np.ndarray) -> None:
        scores[:] = 0.0
        for j in range(values.size):
            for lane in range(LANES):
                if codes[base + LANES * j + lane] >= 0:
                    scores[codes[base + LANES * j + lane], lane] += values[j]

    def next_lane(scores: np.ndarray, slack: float, start: int) -> int:
        for lane in range(start, LANES):
            if not scores[0, lane] - scores[1:, lane].max() > slack:
                return lane
        return LANES
