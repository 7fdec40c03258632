"""Lines of whole numbers with values, in rising order, as most svmlight files have them: taken together, in vectors.

First the places where words end are found; then all names and all values become numbers, in plain loops without
branches, which the compiler makes vectors of. A line that is anything else is left to the parser of its format, which
takes one word after the other; both give the same rows.

References
----------
Langdale and Lemire, "Parsing gigabytes of JSON per second", VLDB Journal 28 (2019): ends of words by bits of vectors.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64
from numba.extending import intrinsic

from linmax.io.decimals import GOOD, POINT, ZERO_DIGITS, eight_digits
from linmax.io.name_table import ABSENT, NUMBER, NameTable, NameTableT, cell, has_room, look_up
from linmax.io.parsing import (
    COLON,
    GROWS,
    MINUS,
    NEWLINE,
    PLACED,
    UNKNOWN,
    ZERO,
    Work,
    WorkT,
    blank,
    end_row,
    read_value,
)
from linmax.io.scan import VECTOR, Block, byte, equals, lifted, others, population, shifted, stops, trailing, word
from linmax.jit.compiling import JIT, caller, kernel

__all__ = ["PLAIN", "call_plain", "looks_plain", "put_plain", "put_plain_row"]

PLAIN = int64(WorkT, NameTableT, Block, int64, int64, int64, float64)  # of `put_plain`

# Rows of Work.plain: the first eight bytes of a name, later the number that it is; its length; the first eight bytes of
# its value, later whether that is no plain number; its length; whether there is a minus before it.
NAME, NAME_SIZE, AMOUNT, AMOUNT_SIZE, NEGATIVE = range(5)
AT_ONCE = 8


@kernel(hot=True)
def ends_of_words(block: np.ndarray, at: int, other: int, ends: np.ndarray) -> int:
    """Write where the words of a line end, its own end last; how many there are, or -1 when there is no room."""
    count = 0
    while count + VECTOR + AT_ONCE <= ends.size:
        marks, newline = stops(block, at, COLON, other), equals(block, at, NEWLINE)
        if newline != 0:
            marks &= newline ^ (newline - 1)
        place = count
        count += population(marks)
        while place < count:  # some more are written than there are: their number is hard to foretell
            for _ in range(AT_ONCE):
                ends[np.uint64(place)] = at + trailing(marks)
                marks &= marks - 1
                place += 1
        if newline != 0:
            return count
        at += VECTOR
    return -1


@kernel(hot=True)
def take_words(block: np.ndarray, at: int, ends: np.ndarray, pairs: int, plain: np.ndarray) -> bool:
    """Write down names and values; False unless each is followed by what it should be."""
    strange = False
    for i in range(pairs):
        colon, stop = ends[np.uint64(2 * i)], ends[np.uint64(2 * i + 1)]
        strange |= byte(block, colon) != COLON
        c = byte(block, stop)
        strange |= not (blank(c) or c == NEWLINE)
        plain[NAME, i], plain[NAME_SIZE, i] = word(block, at), colon - at
        minus = byte(block, colon + 1) == MINUS
        plain[AMOUNT, i], plain[AMOUNT_SIZE, i] = word(block, colon + 1 + minus), stop - colon - 1 - minus
        plain[NEGATIVE, i] = minus
        at = stop + 1
    return not strange


@kernel(hot=True)
def names_to_numbers(words: np.ndarray, sizes: np.ndarray, pairs: int) -> bool:
    """Names of one to eight digits become the numbers that they are, in place; False if there are others.

    They must rise, and not begin with 0.
    """
    strange, last = False, -1
    for i in range(pairs):
        size, text = sizes[i], words[i]
        digits = lifted(text ^ ZERO_DIGITS, (64 - 8 * size) & 63)
        strange |= (size < 1) | (size > 8) | (((text & 0xFF) == ZERO) & (size != 1)) | (others(digits) != 0)
        words[i] = eight_digits(digits)
    for i in range(pairs):
        strange |= words[i] <= last
        last = words[i]
    return not strange


@kernel(hot=True)
def values_to_numbers(
    words: np.ndarray, sizes: np.ndarray, negative: np.ndarray, pairs: int, amounts: np.ndarray
) -> bool:
    """Values of one to eight digits, one of them perhaps a point; False if there are others, which are marked.

    As `plain_number`: the digits before the point are moved up to those behind it.
    """
    any_strange = False
    for i in range(pairs):
        size = sizes[i]
        digits = lifted(words[i] ^ ZERO_DIGITS, (64 - 8 * size) & 63)
        found = others(digits)
        lowest = found & -found  # the highest bit of the point, or 0
        below = shifted(lowest, 7) - 1  # all bits below it; all there are without a point
        upto = lifted(lowest, 1) - 1
        pointed = (digits & ~upto) | lifted(digits & below, 8)
        point = shifted(lowest, 7) * POINT
        strange = (found != lowest) | ((digits & (upto ^ below)) != point) | (size < 1 + (lowest != 0)) | (size > 8)
        mantissa = eight_digits(digits if lowest == 0 else pointed)
        places = 8 - shifted(population(upto), 3)
        power = (10.0 if places & 1 else 1.0) * (100.0 if places & 2 else 1.0) * (1e4 if places & 4 else 1.0)
        amounts[i] = (1.0 - 2.0 * negative[i]) * (mantissa / power)
        words[i] = strange
        any_strange |= strange
    return not any_strange


@kernel()
def other_values(work: Work, block: np.ndarray, pairs: int) -> bool:
    """The values that are marked, one by one; False if one is no number."""
    for i in range(pairs):
        if work.plain[AMOUNT, i] != 0:
            work.amounts[i], status = read_value(work, block, work.ends[2 * i] + 1, work.ends[2 * i + 1])
            if status != GOOD:
                return False
    return True


@kernel(hot=True)
def looks_plain(names: NameTable, block: np.ndarray, at: int) -> bool:
    """Whether the rest of a line begins as a plain one does, and names may be whole numbers."""
    return names.direct.size > 0 and ZERO <= byte(block, at) < COLON


@kernel(hot=True)
def put_plain_row(
    work: Work, names: NameTable, block: np.ndarray, at: int, other: int, label: int, weight: float
) -> bool:
    """Make a row of the rest of a line, from ``at`` on, if it is plain and there is room; else nothing has happened.

    ``other`` ends a word as a colon does.
    """
    if not looks_plain(names, block, at):
        return False
    ends, plain, amounts = work.ends, work.plain, work.amounts
    count, put = ends_of_words(block, at, other, ends), work.state[PLACED]
    pairs = count >> 1
    if count < 2 or pairs > amounts.size or put + pairs > work.indices.size:
        return False
    if count & 1 and ends[count - 1] != ends[count - 2] + 1:  # one space before the end of the line is usual
        return False
    if not (
        take_words(block, at, ends, pairs, plain)
        and names_to_numbers(plain[NAME], plain[NAME_SIZE], pairs)
        and plain[NAME, pairs - 1] < names.direct.size
    ):
        return False
    if not (
        values_to_numbers(plain[AMOUNT], plain[AMOUNT_SIZE], plain[NEGATIVE], pairs, amounts)
        or other_values(work, block, pairs)
    ):
        return False
    unknown, grows = 0, work.state[GROWS] != 0
    for i in range(pairs):
        index, value = np.uint64(plain[NAME, i]), amounts[i]
        if value == 0.0:
            continue
        number = names.direct[index] - 1
        if number < 0:
            if names.shared.size or (grows and not has_room(names, 1, VECTOR)):
                return False
            slot = look_up(names, block, ends[2 * i] - plain[NAME_SIZE, i], plain[NAME_SIZE, i], 0, grows)
            if slot == ABSENT:
                unknown += 1
                continue
            number = names.slots[cell(slot, NUMBER)]
            names.direct[index] = number + 1
        work.indices[np.uint64(put)], work.values[np.uint64(put)] = number, value
        put += 1
    work.state[UNKNOWN] += unknown
    end_row(work, block, ends[count - 1], put, label, weight)
    return True


@kernel(PLAIN)
def put_plain(work: Work, names: NameTable, block: np.ndarray, at: int, other: int, label: int, weight: float) -> int:
    """`put_plain_row` by itself, for a format in which few files have such lines: it takes seconds to compile."""
    return int(put_plain_row(work, names, block, at, other, label, weight))


if JIT:

    @intrinsic
    def call_plain(_, address, work, names, block, at, other, label, weight):  # type: ignore[no-untyped-def]
        """Call `put_plain` by its address."""
        return PLAIN.return_type(int64, *PLAIN.args), caller(PLAIN)

else:
    call_plain = caller(PLAIN)
