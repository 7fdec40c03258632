"""Rows of a table: fields between separators, quoted or not; a quoted field may hold newlines.

A column is ignored, the label, a number (dense; true is 1, false is 0, an empty field or one of ``NA nan null none ?``
is missing), a category, whose value v becomes the attribute ``column=v`` with value 1 (an empty field gives none), a
text, whose words are attributes, a tag, or the weight of the row. A word in a column of numbers is a category there,
and its number is missing.

A quote that is not closed costs one line: the next one is read as if it stood alone.
"""

from __future__ import annotations

import numpy as np
from numba import int64

from linmax.io.decimals import GOOD, HARD, WILD
from linmax.io.name_table import SIZE, NameTable, NameTableT
from linmax.io.parsers.text import NO_ROOM, WordsT, call_words
from linmax.io.parsing import (
    ASIDE,
    ASK_NUMBER,
    AT,
    CONTROL,
    END,
    ENDED,
    FEW_FIELDS,
    FILLED,
    IMPORTANCE,
    LAST,
    LETTERS,
    LINE,
    MANY_FIELDS,
    MORE_BYTES,
    MORE_TOKENS,
    NEW_CLASS,
    NEWLINE,
    NO_CLASS,
    NOT_FINITE,
    OPEN_QUOTE,
    RETURN,
    ROWS,
    SPACE,
    SUMMED,
    TAGGED,
    Work,
    WorkT,
    blame,
    class_of,
    finished,
    put_row,
    read_number,
    refuse,
)
from linmax.io.scan import Block, byte
from linmax.io.schema import MISSING, TRUTH
from linmax.io.words import Words
from linmax.jit.compiling import kernel

__all__ = ["CATEGORY", "IGNORED", "LABEL", "MISSING_WORDS", "NUMERIC", "TEXT", "WEIGHT", "parse_table"]

IGNORED, LABEL, NUMERIC, CATEGORY, TEXT, WEIGHT = range(6)
KIND, PLACE, NAMED, WIDENED, IS_ID = range(5)  # what is known of a column
QUOTE = 34
LONGEST_ROW = 2**20  # bytes within which a quote must be closed
MISSING_WORDS = np.array([int.from_bytes(text.encode().ljust(8, b"\0"), "little") for text in MISSING], np.int64)
FALSE_WORD, TRUE_WORD = (int.from_bytes(text.encode(), "little") for text in TRUTH)


@kernel(hot=True)
def is_missing(scratch: np.ndarray, start: int, length: int, missing: np.ndarray) -> bool:
    """Whether a field, followed by zeros in the scratch, says that there is no number."""
    if length > 4:
        return False
    bits = 0
    for i in range(length):
        c = byte(scratch, start + i)
        bits |= (c | 32 if 65 <= c <= 90 else c) << (8 * i)
    for i in range(missing.size):
        if missing[i] == bits:
            return True
    return False


@kernel(hot=True)
def truth(scratch: np.ndarray, start: int, length: int) -> float:
    """1 for true, 0 for false, nan for any other word."""
    if length < 4 or length > 5:
        return np.nan
    bits = 0
    for i in range(length):
        c = byte(scratch, start + i)
        bits |= (c | 32 if 65 <= c <= 90 else c) << (8 * i)
    if bits == TRUE_WORD:
        return 1.0
    return 0.0 if bits == FALSE_WORD else np.nan


@kernel(hot=True)
def read_field(
    state: np.ndarray, block: np.ndarray, at: int, scratch: np.ndarray, put: int, separator: int, kind: int
) -> tuple[int, int, int, int]:
    """Copy a field to the scratch: (where it ends in the block, and in the scratch; what is wrong; lines it crosses).

    What is wrong is a reason to refuse the row, or -MORE_BYTES when a quoted field goes on beyond the block.
    """
    start, crossed = put, 0
    c = byte(block, at)
    if c != QUOTE:
        while c != separator and c != NEWLINE and c != 0:
            scratch[put] = c
            put += 1
            at += 1
            c = byte(block, at)
        while put > start and (byte(scratch, put - 1) == SPACE or byte(scratch, put - 1) == RETURN):
            put -= 1
        return at, put, CONTROL if c == 0 else 0, 0
    at += 1
    while True:
        c = byte(block, at)
        if c == NEWLINE:
            if at + 1 >= state[END] or at - state[AT] > LONGEST_ROW:
                waits = not state[LAST] and at - state[AT] <= LONGEST_ROW
                return at, put, -MORE_BYTES if waits else OPEN_QUOTE, crossed
            crossed += 1
            if kind == TEXT:
                c = SPACE
        elif c == 0:
            return at, put, CONTROL, crossed
        elif c == QUOTE:
            at += 1
            if byte(block, at) != QUOTE:
                break
        scratch[put] = c
        put += 1
        at += 1
    while (byte(block, at) == SPACE and separator != SPACE) or byte(block, at) == RETURN:
        at += 1
    c = byte(block, at)
    return at, put, 0 if c == separator or c == NEWLINE else OPEN_QUOTE, crossed


@kernel(hot=True)
def put_category(work: Work, names: NameTable, count: int, start: int, length: int, prefix: int) -> int:
    """Note the attribute ``column=value``; returns the bytes of its name."""
    work.tokens[count, 0], work.tokens[count, 1], work.tokens[count, 2] = start, length, prefix
    work.amounts[count] = 1.0
    return length + names.prefixes[prefix, SIZE]


@kernel(int64(Block, WorkT, NameTableT, NameTableT, Block, int64, int64[:, ::1], int64[::1], WordsT, int64))
def parse_table(
    block: np.ndarray,
    work: Work,
    names: NameTable,
    labels: NameTable,
    scratch: np.ndarray,
    separator: int,
    columns: np.ndarray,
    missing: np.ndarray,
    words: Words,
    texts: int,
) -> int:
    """Take rows until something is needed; returns what.

    ``columns`` are (kind, place among the dense attributes, prefix of the names, line of the first word in a column of
    numbers) of each. Fields are copied to the scratch, which must hold the longest row, without quotes and outer
    spaces. ``texts`` is the address of `put_words`, needed if a column is a text.
    """
    state = work.state
    state[ASIDE] = 1
    while state[ROWS] < work.labels.size:
        at = state[AT]
        if at >= state[END]:
            return ENDED
        while byte(block, at) == RETURN or (byte(block, at) == SPACE and separator == SPACE):
            at += 1
        if byte(block, at) == NEWLINE:
            finished(work, block, at)
            continue
        row, put, count, room, label, field, lines = state[ROWS], 0, 0, 0, NO_CLASS, 0, 0
        wrong, weight = 0, 1.0
        while True:
            while byte(block, at) == SPACE:
                at += 1
            start, raw = put, at
            kind = columns[field, KIND] if field < len(columns) else IGNORED
            at, put, wrong, crossed = read_field(state, block, at, scratch, put, separator, kind)
            if wrong:
                break
            lines += crossed
            if field == len(columns):
                wrong = MANY_FIELDS
                break
            length = put - start
            scratch[put] = NEWLINE  # where a number must end
            if columns[field, IS_ID]:
                work.tags[row, 0], work.tags[row, 1] = raw, at
                state[TAGGED] = 1
            if kind == LABEL and length:
                label = class_of(work, labels, scratch, start, put)
                if label < NO_CLASS:
                    return NEW_CLASS
            elif kind == NUMERIC:
                value = np.nan
                if not is_missing(scratch, start, length, missing):
                    value, end, status = read_number(work, scratch, start)
                    if status == HARD:
                        return ASK_NUMBER
                    if status == WILD:
                        wrong = NOT_FINITE
                        blame(work, raw, at)
                        break
                    if status != GOOD or end != put:
                        value = truth(scratch, start, length)
                    if np.isnan(value):  # a word among numbers
                        if count == work.amounts.size:
                            return MORE_TOKENS
                        room += put_category(work, names, count, start, length, columns[field, NAMED])
                        count += 1
                        if columns[field, WIDENED] == 0:
                            columns[field, WIDENED] = state[LINE]
                work.dense[row, columns[field, PLACE]] = value
            elif kind == CATEGORY and length:
                if count == work.amounts.size:
                    return MORE_TOKENS
                room += put_category(work, names, count, start, length, columns[field, NAMED])
                count += 1
            elif kind == TEXT:
                before = count
                count, _, size, put = call_words(
                    texts, work, scratch, start, scratch, put + 1, count, columns[field, NAMED], words
                )
                if count < 0:
                    return MORE_TOKENS if count == NO_ROOM else LETTERS
                room += size + (count - before) * names.prefixes[columns[field, NAMED], SIZE]
            elif kind == WEIGHT:
                weight, end, status = read_number(work, scratch, start)
                if status == HARD:
                    return ASK_NUMBER
                if status != GOOD or end != put or length == 0 or weight < 0.0:
                    wrong = IMPORTANCE
                    blame(work, raw, at)
                    break
            put += 1
            field += 1
            c = byte(block, at)
            if separator == SPACE:
                while c == SPACE or c == RETURN:
                    at += 1
                    c = byte(block, at)
            else:
                at += c != NEWLINE
            if c == NEWLINE:
                break
        if wrong == -MORE_BYTES:
            return MORE_BYTES
        if not wrong and field < len(columns):
            wrong = FEW_FIELDS
        if wrong == OPEN_QUOTE:
            refuse(work, block, state[AT], wrong)
        elif wrong:
            refuse(work, block, at, wrong)
            state[LINE] += lines
        else:
            needs = put_row(work, names, scratch, block, at, count, room, SUMMED, label, weight)
            if needs != ENDED:
                return needs
            state[LINE] += lines
    return FILLED
