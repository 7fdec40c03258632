"""svmlight and LIBSVM lines: ``label [qid:number] [cost:weight] index:value ... [# comment]``.

Labels are numbers. Indices are names like any other (0- or 1-based does not matter) and need not be in order; one that
comes twice, or lies beyond 2^31 - 1, is refused with its line. A qid is read over. Values of 0 are not stored.
"""

from __future__ import annotations

import numpy as np
from numba import int64

from linmax.io.decimals import GOOD, HARD, WILD, whole_number
from linmax.io.name_table import NameTable, NameTableT
from linmax.io.parsing import (
    ASK_NUMBER,
    AT,
    COLON,
    END,
    ENDED,
    FILLED,
    IMPORTANCE,
    INDEX,
    LABEL_NUMBER,
    LABELS,
    LARGE_INDEX,
    MORE_TOKENS,
    NEW_CLASS,
    NEWLINE,
    NO_CLASS,
    NO_COLON,
    NO_LABEL,
    NOT_FINITE,
    OPEN,
    ROWS,
    TURNED_DOWN,
    VALUE,
    ZERO,
    Work,
    WorkT,
    blame,
    blank,
    class_of,
    finished,
    put_row,
    put_token,
    read_number,
    read_value,
    refuse,
)
from linmax.io.scan import Block, byte, next_stop, stops, word
from linmax.jit.compiling import kernel

__all__ = ["parse_svmlight"]

HASH, COMMA, NINE = 35, 44, 57
INDEX_LIMIT, LONGEST_INDEX = 2**31 - 1, 10
QID_COLON = int.from_bytes(b"qid:", "little")
COST_COLON = int.from_bytes(b"cost:", "little")
QID, COST = -1, -2  # not wrong, but to be passed over; and the weight of the row


@kernel()
def check_index(block: np.ndarray, at: int) -> int:
    """Tell what stands at ``at`` instead of one to eight digits and a colon: 0 for an index, else the reason."""
    c = byte(block, at)
    while c == ZERO and ZERO <= byte(block, at + 1) <= NINE:
        at += 1
        c = byte(block, at)
    start, index = at, 0
    while ZERO <= c <= NINE and at - start <= LONGEST_INDEX:
        index = 10 * index + (c - ZERO)
        at += 1
        c = byte(block, at)
    if index > INDEX_LIMIT:
        return LARGE_INDEX
    if at == start:
        if (word(block, at) & 0xFFFFFFFFFF) == COST_COLON:
            return COST
        return QID if (word(block, at) & 0xFFFFFFFF) == QID_COLON else INDEX
    if c != COLON:
        return NO_COLON if c <= 32 else INDEX
    return 0


@kernel(int64(Block, WorkT, NameTableT, NameTableT))
def parse_svmlight(block: np.ndarray, work: Work, names: NameTable, labels: NameTable) -> int:
    """Take lines until something is needed; returns what."""
    state = work.state
    while state[ROWS] < work.labels.size:
        at = state[AT]
        if at >= state[END]:
            return ENDED
        while blank(byte(block, at)):
            at += 1
        c = byte(block, at)
        if c == NEWLINE or c == HASH:
            finished(work, block, at)
            continue
        start = at
        while c > 32 and c != COLON and c != COMMA and c != HASH:
            at += 1
            c = byte(block, at)
        label = NO_CLASS
        if c == COLON and state[OPEN]:
            at = start
        elif c == COLON or c == COMMA:
            refuse(work, block, at, NO_LABEL if c == COLON else LABELS)
            continue
        else:
            _, end, status = read_number(work, block, start)
            if (status != GOOD and status != HARD) or end != at:  # a hard one need not be rounded: its text is the name
                refuse(work, block, at, LABEL_NUMBER)
                continue
            label = class_of(work, labels, block, start, at)
            if label < NO_CLASS:
                return NEW_CLASS
        count, wrong, weight = 0, 0, 1.0
        base, marks = at, stops(block, at, COLON, HASH)
        while True:
            place, base, marks = next_stop(block, base, marks, COLON, HASH)
            c, start, length = byte(block, place), at, place - at
            at = place + 1
            if length == 0 and blank(c):
                continue
            if length == 0 and (c == NEWLINE or c == HASH):
                break
            if c != COLON or not 0 < length <= 8 or whole_number(block, start, length) < 0:
                wrong = check_index(block, start)
                if wrong == QID:
                    wrong = 0
                    while byte(block, place) == COLON:
                        place, base, marks = next_stop(block, base, marks, COLON, HASH)
                    at = base = place
                    marks = stops(block, base, COLON, HASH)
                    continue
                if wrong == COST:
                    wrong = 0
                    place, base, marks = next_stop(block, base, marks, COLON, HASH)
                    weight, status = read_value(work, block, at, place)
                    if status == HARD:
                        return ASK_NUMBER
                    if status != GOOD or weight < 0.0:
                        wrong = IMPORTANCE
                        blame(work, at, place)
                        break
                    if byte(block, place) == NEWLINE or byte(block, place) == HASH:
                        break
                    at = place + 1
                    continue
                if wrong:
                    break
            while byte(block, start) == ZERO and length > 1:
                start += 1
                length -= 1
            place, base, marks = next_stop(block, base, marks, COLON, HASH)
            c = byte(block, place)
            value, status = read_value(work, block, at, place)
            if status == HARD:
                return ASK_NUMBER
            if status != GOOD:
                wrong = NOT_FINITE if status == WILD else VALUE
                blame(work, start, place)
                break
            if not (c == NEWLINE or blank(c) or c == HASH):
                wrong = VALUE
                break
            if value != 0.0:
                if count == work.amounts.size:
                    return MORE_TOKENS
                put_token(work, count, start, length, 0, value)
                count += 1
            if c == NEWLINE or c == HASH:
                break
            at = place + 1
        if wrong:
            refuse(work, block, place, wrong)
            continue
        needs = put_row(work, names, block, block, place, count, place - state[AT], TURNED_DOWN, label, weight)
        if needs != ENDED:
            return needs
    return FILLED
