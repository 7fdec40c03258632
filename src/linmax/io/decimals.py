"""Decimal numbers in blocks of bytes, rounded as Python rounds them.

References
----------
Lemire, "Number parsing at a gigabyte per second", Software: Practice and Experience 51 (2021).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from linmax.io.scan import as_double, below, byte, leading, lifted, others, product, shifted, signed, trailing, word
from linmax.jit.compiling import kernel

__all__ = ["BAD", "GOOD", "HARD", "WILD", "eight_digits", "number", "plain_number", "powers", "whole_number"]

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
