"""Lines of a table: fields between separators, quoted or not.

A column is ignored, the label, a number (dense; an empty field or one of ``NA nan null none ?`` is missing) or a
category, whose value v becomes the attribute ``column=v`` with value 1 (an empty field gives none).
"""

from __future__ import annotations

import numpy as np
from numba import int64

from linmax.io.decimals import GOOD, HARD, WILD
from linmax.io.parsing import (
    ASIDE,
    ASK_NUMBER,
    AT,
    END,
    ENDED,
    FEW_FIELDS,
    FILLED,
    MANY_FIELDS,
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
    VALUE,
    Work,
    WorkT,
    class_of,
    finished,
    put_row,
    read_number,
    refuse,
)
from linmax.io.scan import Block, byte
from linmax.io.schema import MISSING
from linmax.io.vocabulary import SIZE, NameTable, NameTableT
from linmax.jit.compiling import kernel

__all__ = ["CATEGORY", "IGNORED", "LABEL", "MISSING_WORDS", "NUMERIC", "parse_table"]

IGNORED, LABEL, NUMERIC, CATEGORY = range(4)
QUOTE = 34
MISSING_WORDS = np.array([int.from_bytes(text.encode().ljust(8, b"\0"), "little") for text in MISSING], np.int64)


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


@kernel(int64(Block, WorkT, NameTableT, NameTableT, Block, int64, int64[:, ::1], int64[::1]))
def parse_table(
    block: np.ndarray,
    work: Work,
    names: NameTable,
    labels: NameTable,
    scratch: np.ndarray,
    separator: int,
    columns: np.ndarray,
    missing: np.ndarray,
) -> int:
    """Take lines until something is needed; returns what.

    ``columns`` are (kind, place among the dense attributes or prefix of the names) of each. Fields are copied to the
    scratch, which must hold the longest line, without quotes and outer spaces.
    """
    state = work.state
    state[ASIDE] = 1
    while state[ROWS] < work.labels.size:
        at = state[AT]
        if at >= state[END]:
            return ENDED
        c = byte(block, at)
        if c == NEWLINE or (c == RETURN and byte(block, at + 1) == NEWLINE):
            finished(work, block, at)
            continue
        row, put, count, room, wrong, label, field = state[ROWS], 0, 0, 0, 0, NO_CLASS, 0
        while True:
            while byte(block, at) == SPACE and separator != SPACE:
                at += 1
            start = put
            quoted = byte(block, at) == QUOTE
            if quoted:
                at += 1
                while True:
                    c = byte(block, at)
                    if c == NEWLINE:
                        wrong = OPEN_QUOTE
                        break
                    if c == QUOTE:
                        at += 1
                        if byte(block, at) != QUOTE:
                            break
                    scratch[put] = c
                    put += 1
                    at += 1
                while byte(block, at) == SPACE or byte(block, at) == RETURN:
                    at += 1
            else:
                c = byte(block, at)
                while c != separator and c != NEWLINE:
                    scratch[put] = c
                    put += 1
                    at += 1
                    c = byte(block, at)
                while put > start and (byte(scratch, put - 1) == SPACE or byte(scratch, put - 1) == RETURN):
                    put -= 1
            if wrong:
                break
            if field == len(columns):
                wrong = MANY_FIELDS
                break
            kind, length = columns[field, 0], put - start
            scratch[put] = NEWLINE  # where a number must end
            if kind == LABEL and length:
                label = class_of(work, labels, scratch, start, put)
                if label < NO_CLASS:
                    return NEW_CLASS
            elif kind == NUMERIC:
                if is_missing(scratch, start, length, missing):
                    value = np.nan
                else:
                    value, end, status = read_number(work, scratch, start)
                    if status == HARD:
                        return ASK_NUMBER
                    if status != GOOD or end != put:
                        wrong = NOT_FINITE if status == WILD else VALUE
                        break
                work.dense[row, columns[field, 1]] = value
            elif kind == CATEGORY and length:
                if count == work.amounts.size:
                    return MORE_TOKENS
                work.tokens[count, 0], work.tokens[count, 1], work.tokens[count, 2] = start, length, columns[field, 1]
                work.amounts[count] = 1.0
                room += length + names.prefixes[columns[field, 1], SIZE]
                count += 1
            put += 1
            field += 1
            c = byte(block, at)
            if c == NEWLINE:
                break
            if c != separator:
                wrong = OPEN_QUOTE
                break
            at += 1
        if not wrong and field < len(columns):
            wrong = FEW_FIELDS
        if wrong:
            refuse(work, block, at, wrong)
            continue
        needs = put_row(work, names, scratch, block, at, count, room, SUMMED, label, 1.0, False)
        if needs != ENDED:
            return needs
    return FILLED
