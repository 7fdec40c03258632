"""svmlight and LIBSVM lines: ``label [qid:number] index:value ... [# comment]``.

Labels are numbers. Indices are names like any other (0- or 1-based does not matter) and need not be in order; one that
comes twice, or lies beyond 2^31 - 1, is refused with its line. A qid is read over. Values of 0 are not stored.
"""

from __future__ import annotations

import numpy as np
from numba import int64

from linmax.contract import deferred
from linmax.streams.parsing import (
    ASK_NUMBER,
    AT,
    END,
    ENDED,
    FILLED,
    IMPOSSIBLE,
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
    ROWS,
    TURNED_DOWN,
    VALUE,
    Work,
    WorkT,
    blank,
    class_of,
    finished,
    put_row,
    read_number,
    refuse,
)
from linmax.streams.scan import GOOD, HARD, WILD, Block, byte
from linmax.streams.vocabulary import Names, NamesT

__all__ = ["parse_svmlight"]

COLON, HASH, COMMA = 58, 35, 44
INDEX_LIMIT = 2**31 - 1


@deferred(int64(Block, WorkT, NamesT, NamesT))
def parse_svmlight(block: np.ndarray, work: Work, names: Names, labels: Names) -> int:
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
        if c == COLON or c == COMMA:
            refuse(work, block, at, NO_LABEL if c == COLON else LABELS)
            continue
        _, end, status = read_number(work, block, start)
        if (status != GOOD and status != HARD) or end != at:  # a hard one need not be rounded: its text is the name
            refuse(work, block, at, LABEL_NUMBER)
            continue
        label = class_of(work, labels, block, start, at)
        if label < NO_CLASS:
            return NEW_CLASS
        count, wrong, last, rising = 0, 0, -1, True
        while True:
            while blank(byte(block, at)):
                at += 1
            c = byte(block, at)
            if c == NEWLINE or c == HASH:
                break
            while c == 48 and 48 <= byte(block, at + 1) <= 57:  # leading zeros
                at += 1
                c = byte(block, at)
            start, index = at, 0
            while 48 <= c <= 57:
                index = 10 * index + (c - 48)
                at += 1
                c = byte(block, at)
            length = at - start
            if length > 9 and (length > 10 or index > INDEX_LIMIT):
                wrong = LARGE_INDEX
                break
            if length == 0:
                if (
                    c == 113
                    and byte(block, at + 1) == 105
                    and byte(block, at + 2) == 100
                    and byte(block, at + 3) == COLON
                ):
                    while byte(block, at) > 32 and byte(block, at) != HASH:
                        at += 1
                    continue
                wrong = INDEX
                break
            if c != COLON:
                wrong = NO_COLON if c <= 32 else INDEX
                break
            value, end, status = read_number(work, block, at + 1)
            at = end
            c = byte(block, at)
            if status == HARD:
                return ASK_NUMBER
            if status == WILD:
                wrong = NOT_FINITE
                break
            if status != GOOD or not (c == NEWLINE or blank(c) or c == HASH):
                wrong = VALUE
                break
            if value != 0.0:
                if count == work.amounts.size:
                    return MORE_TOKENS
                work.tokens[count, 0], work.tokens[count, 1], work.tokens[count, 2] = start, length, 0
                work.amounts[count] = value
                count += 1
                rising = rising and index > last
                last = index
        if wrong:
            refuse(work, block, at, wrong)
            continue
        twice = IMPOSSIBLE if rising else TURNED_DOWN
        needs = put_row(work, names, block, block, at, count, at - state[AT], twice, label, 1.0)
        if needs != ENDED:
            return needs
    return FILLED
