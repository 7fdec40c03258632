"""Bytes at the speed of the machine: words and vectors of bytes, their bits, and what names are hashed by.

A block of bytes is an array of uint8 that ends in at least `PADDING` bytes more than it holds, so that looking at a
whole vector never leaves it. Sixty-four bits travel as int64, whatever they mean.

Decimal numbers in blocks of bytes, rounded as Python rounds them.

References
----------
Lemire, "Number parsing at a gigabyte per second", Software: Practice and Experience 51 (2021).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from llvmlite import ir
from numba import float64, int64, types, uint8
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.extending import intrinsic

from linmax.jit.compiling import JIT, inside_array, kernel

__all__ = ["PADDING", "Block", "byte", "next_stop", "number", "plain_number", "powers", "stops", "whole_number", "word"]

PADDING = 64
VECTOR = 64  # bytes looked at together
I64, I8 = ir.IntType(64), ir.IntType(8)
WORD_RANGE = 2**64
UP_TO_NINE, HIGH_BITS = 0x7676767676767676, 0x8080808080808080  # added to a byte, 10 and more reach its highest bit

Block = uint8[::1]


def _pointer(
    context: BaseContext, builder: ir.IRBuilder, kind: types.Array, array: ir.Value, place: ir.Value, length: int
) -> ir.Value:
    inside_array(context, builder, kind, array, place, ir.Constant(I64, length))
    data = cgutils.create_struct_proxy(kind)(context, builder, array).data
    return builder.gep(data, [place])


def _vector(
    context: BaseContext, builder: ir.IRBuilder, kind: types.Array, block: ir.Value, place: ir.Value
) -> ir.Value:
    pointer = _pointer(context, builder, kind, block, place, VECTOR)
    return builder.load(builder.bitcast(pointer, ir.VectorType(I8, VECTOR).as_pointer()), align=1)


def _lanes(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """One byte in all places of a vector."""
    none = ir.Constant(ir.VectorType(I8, VECTOR), ir.Undefined)
    one = builder.insert_element(none, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, none, ir.Constant(ir.VectorType(ir.IntType(32), VECTOR), None))


def signed(bits: int) -> int:
    """Sixty-four bits as int64 holds them."""
    bits %= WORD_RANGE
    return bits - WORD_RANGE if bits >= WORD_RANGE // 2 else bits


if JIT:

    @intrinsic
    def byte(_, block, place):  # type: ignore[no-untyped-def]
        """block[place], which is known to be inside."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            loaded = builder.load(_pointer(context, builder, sig.args[0], args[0], args[1], 1))
            return builder.zext(loaded, I64)

        return int64(Block, int64), codegen

    @intrinsic
    def word(_, block, place):  # type: ignore[no-untyped-def]
        """Eight bytes from ``place`` on, the first lowest."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            pointer = _pointer(context, builder, sig.args[0], args[0], args[1], 8)
            return builder.load(builder.bitcast(pointer, I64.as_pointer()), align=1)

        return int64(Block, int64), codegen

    @intrinsic
    def stops(_, block, place, extra, other):  # type: ignore[no-untyped-def]
        """Bit i: byte place + i of the next VECTOR is a space, a control character, ``extra`` or ``other``."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            data = _vector(context, builder, sig.args[0], args[0], args[1])
            found = builder.icmp_unsigned("<=", data, _lanes(builder, ir.Constant(I8, 32)))
            for wanted in args[2:]:
                found = builder.or_(
                    found, builder.icmp_unsigned("==", data, _lanes(builder, builder.trunc(wanted, I8)))
                )
            return builder.bitcast(found, I64)

        return int64(Block, int64, int64, int64), codegen

    @intrinsic
    def trailing(_, bits):  # type: ignore[no-untyped-def]
        """Zeros below the lowest bit that is set; 64 without any."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

        return int64(int64), codegen

    @intrinsic
    def leading(_, bits):  # type: ignore[no-untyped-def]
        """Zeros above the highest bit that is set."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

        return int64(int64), codegen

    @intrinsic
    def product(_, a, b):  # type: ignore[no-untyped-def]
        """The low and the high half of a b, both without sign."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            double = ir.IntType(128)
            whole = builder.mul(builder.zext(args[0], double), builder.zext(args[1], double))
            low = builder.trunc(whole, I64)
            high = builder.trunc(builder.lshr(whole, ir.Constant(double, 64)), I64)
            return context.make_tuple(builder, sig.return_type, [low, high])

        return types.UniTuple(int64, 2)(int64, int64), codegen

    @intrinsic
    def shifted(_, bits, count):  # type: ignore[no-untyped-def]
        """bits moved right, zeros coming in."""
        return int64(int64, int64), lambda context, builder, sig, args: builder.lshr(*args)

    @intrinsic
    def lifted(_, bits, count):  # type: ignore[no-untyped-def]
        """bits moved left; what leaves the word is lost."""
        return int64(int64, int64), lambda context, builder, sig, args: builder.shl(*args)

    @intrinsic
    def others(_, digits):  # type: ignore[no-untyped-def]
        """The highest bit of each byte that is not 0 to 9; those above the first such byte may be wrong."""

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            carried = builder.or_(builder.add(args[0], ir.Constant(I64, UP_TO_NINE)), args[0])
            return builder.and_(carried, ir.Constant(I64, HIGH_BITS))

        return int64(int64), codegen

    @intrinsic
    def below(_, a, b):  # type: ignore[no-untyped-def]
        """a < b, both without sign."""
        return types.boolean(int64, int64), lambda context, builder, sig, args: builder.icmp_unsigned("<", *args)

    @intrinsic
    def as_double(_, bits):  # type: ignore[no-untyped-def]
        """The float with these bits."""
        return float64(int64), lambda context, builder, sig, args: builder.bitcast(args[0], ir.DoubleType())

else:

    def byte(block: np.ndarray, place: int) -> int:
        return int(block[place])

    def word(block: np.ndarray, place: int) -> int:
        return int.from_bytes(block[place : place + 8].tobytes(), "little", signed=True)

    def stops(block: np.ndarray, place: int, extra: int, other: int) -> int:
        part = block[place : place + VECTOR]
        found = (part <= 32) | (part == extra) | (part == other)
        return int(sum(1 << i for i in np.flatnonzero(found).tolist()))

    def trailing(bits: int) -> int:
        bits = int(bits) % WORD_RANGE
        return (bits & -bits).bit_length() - 1 if bits else 64

    def leading(bits: int) -> int:
        return 64 - (int(bits) % WORD_RANGE).bit_length()

    def product(a: int, b: int) -> tuple[int, int]:
        whole = (int(a) % WORD_RANGE) * (int(b) % WORD_RANGE)
        return signed(whole), signed(whole >> 64)

    def shifted(bits: int, count: int) -> int:
        return signed((int(bits) % WORD_RANGE) >> int(count))

    def lifted(bits: int, count: int) -> int:
        return signed(int(bits) << int(count))

    def others(digits: int) -> int:
        return ((int(digits) + UP_TO_NINE) | int(digits)) & HIGH_BITS

    def below(a: int, b: int) -> bool:
        return int(a) % WORD_RANGE < int(b) % WORD_RANGE

    def as_double(bits: int) -> float:
        return float(np.int64(bits).view(np.float64))


@kernel(hot=True)
def next_stop(block: np.ndarray, base: int, marks: int, extra: int, other: int) -> tuple[int, int, int]:
    """The next place that `stops` finds, when ``marks`` are left of those from ``base`` on; and what is left then."""
    while marks == 0:
        base += VECTOR
        marks = stops(block, base, extra, other)
    return base + trailing(marks), base, marks & (marks - 1)


# -- names --------------------------------------------------------------------------------------------------------

SEED = signed(0x9E3779B97F4A7C15)
MIX = signed(0xD6E8FEB86659FD93)


@kernel(hot=True)
def fold(a: int, b: int) -> int:
    """Both halves of a b together: mixes all bits of both."""
    low, high = product(a, b)
    return low ^ high


@kernel(hot=True)
def ones(count: int) -> int:
    """The mask of the lowest ``count`` bytes of a word, 1 to 8."""
    return shifted(-1, 64 - 8 * count)


@kernel(hot=True)
def same_bytes(first: np.ndarray, a: int, second: np.ndarray, b: int, length: int) -> bool:
    """Return whether ``length`` bytes are equal."""
    place = 0
    while place + 8 <= length:
        if word(first, a + place) != word(second, b + place):
            return False
        place += 8
    if place == length:
        return True
    return ((word(first, a + place) ^ word(second, b + place)) & ones(length - place)) == 0


GOOD, BAD, WILD, HARD = range(4)  # what `number` found: a number; none; nan or infinite; one for Python to round
FULL_MANTISSA = 10**17  # a mantissa beyond takes no further digit
LOWEST, HIGHEST = -342, 308  # powers of ten in the table


@cache
def powers() -> tuple[np.ndarray, np.ndarray]:
    """10^0..10^22, which are exact; and 128 bits of every 5^q, as two columns."""
    table = np.zeros((HIGHEST - LOWEST + 1, 2), np.int64)
    for q in range(LOWEST, HIGHEST + 1):
        if q < 0:
            power = 5**-q
            z = (power - 1).bit_length()
            bits = z + 127 if q >= -27 else 2 * z + 128
            scaled = (1 << bits) // power + 1
        else:
            scaled = 5**q << 128
        scaled >>= scaled.bit_length() - 128
        table[q - LOWEST] = signed(scaled >> 64), signed(scaled)
    return np.array([10.0**e for e in range(23)]), table


ZERO_DIGITS = 0x3030303030303030
POINT = 0x2E ^ 0x30


@kernel(hot=True)
def eight_digits(digits: int) -> int:
    """The number whose digits are the bytes of a word, the first lowest: pairs, fours, then all (Lemire 2021)."""
    digits = (digits * 2561) >> 8
    digits = ((digits & 0x00FF00FF00FF00FF) * 6553601) >> 16
    return (((digits & 0x0000FFFF0000FFFF) * 42949672960001) >> 32) & 0xFFFFFFFF


@kernel(hot=True)
def whole_number(block: np.ndarray, place: int, length: int) -> int:
    """The number written by ``length`` digits, 1 to 8; -1 when not all of them are digits."""
    digits = lifted(word(block, place) ^ ZERO_DIGITS, 64 - 8 * length)
    return -1 if others(digits) else eight_digits(digits)


@kernel(hot=True)
def plain_number(block: np.ndarray, place: int, length: int, tens: np.ndarray) -> float:
    """The number written by ``length`` digits with or without a point among them; -1 when it is not that plain.

    At most 15 digits, so that mantissa and power of ten are exact and their quotient is rounded once, as by `number`.
    """
    if length < 1 or length > 16:
        return -1.0
    if length <= 8:
        digits = lifted(word(block, place) ^ ZERO_DIGITS, 64 - 8 * length)
        strange = others(digits)
        if strange == 0:
            return float(eight_digits(digits))
        shift = trailing(strange) - 7
        if (strange & (strange - 1)) != 0 or (shifted(digits, shift) & 0xFF) != POINT or length == 1:
            return -1.0
        before = digits & (lifted(1, shift) - 1)
        digits = (digits & lifted(-256, shift)) | lifted(before, 8)
        return float(eight_digits(digits)) / tens[np.uint64(7 - (shift >> 3))]
    digits = word(block, place) ^ ZERO_DIGITS
    strange = others(digits)
    shift = trailing(strange) - 7
    if strange == 0 or (shifted(digits, shift) & 0xFF) != POINT:
        return -1.0
    mantissa = eight_digits(lifted(lifted(digits, 8), 56 - shift))
    start = place + (shift >> 3) + 1
    places = place + length - start
    ahead = 0
    if places > 8:
        ahead = 8
        more = whole_number(block, start, 8)
        if more < 0:
            return -1.0
        mantissa = mantissa * 100_000_000 + more
    more = whole_number(block, start + ahead, places - ahead)
    if more < 0:
        return -1.0
    power = tens[np.uint64(places - ahead)]
    return float(mantissa * int(power) + more) / tens[np.uint64(places)]


@kernel()
def rounded(mantissa: int, exponent: int, table: np.ndarray) -> float:
    """mantissa * 10^exponent rounded to the nearest float, for 0 < mantissa < 2^63 (Lemire 2021)."""
    if exponent < LOWEST:
        return 0.0
    if exponent > HIGHEST:
        return np.inf
    zeros = leading(mantissa)
    w = mantissa << zeros
    low, high = product(w, table[exponent - LOWEST, 0])
    if (high & 0x1FF) == 0x1FF:
        _, second = product(w, table[exponent - LOWEST, 1])
        low += second
        if below(low, second):
            high += 1
    upper = shifted(high, 63)
    m = shifted(high, upper + 9)
    power = ((217706 * exponent) >> 16) + 63 + upper - zeros + 1023
    if power <= 0:
        if 1 - power >= 64:
            return 0.0
        m = shifted(m, 1 - power)
        m = (m + (m & 1)) >> 1
        return as_double(m)
    if not below(1, low) and -4 <= exponent <= 23 and (m & 3) == 1 and (m << (upper + 9)) == high:
        m &= ~1
    m = (m + (m & 1)) >> 1
    if m >= 1 << 53:
        m = 1 << 52
        power += 1
    if power >= 2047:
        return np.inf
    return as_double((m & ~(1 << 52)) | (power << 52))


@kernel()
def number(block: np.ndarray, place: int, tens: np.ndarray, table: np.ndarray) -> tuple[float, int, int]:
    """The decimal number at ``place``: (value, where it ends, GOOD or what is wrong).

    Digits with a point and an exponent, as Python's float takes them but without underscores. HARD: it has more than
    eighteen digits and they matter; the value is then off by less than one unit in the last place.
    """
    at, negative = place, False
    c = byte(block, at)
    if c == 45 or c == 43:
        negative = c == 45
        at += 1
    first = at
    mantissa, exponent, dropped = 0, 0, 0
    digit = byte(block, at) - 48
    while 0 <= digit <= 9:
        if mantissa < FULL_MANTISSA:
            mantissa = mantissa * 10 + digit
        else:
            exponent += 1
            dropped |= digit
        at += 1
        digit = byte(block, at) - 48
    count = at - first
    if digit == -2:  # a point
        at += 1
        begin = at
        digit = byte(block, at) - 48
        while 0 <= digit <= 9:
            if mantissa < FULL_MANTISSA:
                mantissa = mantissa * 10 + digit
                exponent -= 1
            else:
                dropped |= digit
            at += 1
            digit = byte(block, at) - 48
        count += at - begin
    if count == 0:
        letter = byte(block, first) | 32
        return 0.0, place, WILD if letter == 110 or letter == 105 else BAD
    if (digit | 32) == 53:  # e or E, less 48
        sign, mark = 1, at
        at += 1
        c = byte(block, at)
        if c == 45 or c == 43:
            sign = -1 if c == 45 else 1
            at += 1
        begin, shift = at, 0
        digit = byte(block, at) - 48
        while 0 <= digit <= 9:
            if shift < 100000:
                shift = shift * 10 + digit
            at += 1
            digit = byte(block, at) - 48
        if at == begin:
            return 0.0, mark, BAD
        exponent += sign * shift
    if mantissa == 0:
        return 0.0, at, GOOD
    status = GOOD
    if mantissa < 1 << 53 and -22 <= exponent <= 22 and dropped == 0:
        value = float(mantissa)
        value = value / tens[-exponent] if exponent < 0 else value * tens[exponent]
    else:
        value = rounded(mantissa, exponent, table)
        if dropped != 0 and rounded(mantissa + 1, exponent, table) != value:
            status = HARD
        if not value < np.inf:
            status = WILD
    return -value if negative else value, at, status
