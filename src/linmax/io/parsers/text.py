"""Label and text, a tab between them; and the words of texts, with n-grams.

A word is a run of two or more letters, digits, underscores or bytes beyond ASCII; ASCII letters are made small. An
n-gram is the words with a single space between them. The value of each is how often it comes.
"""

from __future__ import annotations

import numpy as np
from numba import int64

from linmax.io.parsing import (
    ASIDE,
    AT,
    END,
    ENDED,
    FILLED,
    MORE_TOKENS,
    NEW_CLASS,
    NEWLINE,
    NO_CLASS,
    NO_TAB,
    ROWS,
    SPACE,
    SUMMED,
    TAB,
    Work,
    WorkT,
    blank,
    class_of,
    finished,
    put_row,
    refuse,
)
from linmax.io.scan import Block, byte
from linmax.io.vocabulary import NameTable, NameTableT
from linmax.jit.compiling import kernel

__all__ = ["FOLDED", "parse_text"]


def _folded() -> np.ndarray:
    table = np.zeros(256, np.uint8)
    for c in range(256):
        if c >= 128 or chr(c).isalnum() or c == 95:
            table[c] = ord(chr(c).lower()) if c < 128 else c
    return table


FOLDED = _folded()  # what each byte becomes in a word; 0 = it is not part of one
SHORTEST = 2


@kernel(hot=True)
def words_of(
    work: Work, block: np.ndarray, at: int, scratch: np.ndarray, folded: np.ndarray, most: int
) -> tuple[int, int, int]:
    """The words and n-grams from ``at`` to the end of the line: (tokens, or -1 without room; where; bytes of names)."""
    count, put, size = 0, 0, 0
    begin = put
    while True:
        c = byte(block, at)
        small = folded[c]
        if small:
            scratch[put] = small
            put += 1
            at += 1
            continue
        if put - begin >= SHORTEST:
            if count == work.amounts.size:
                return -1, at, size
            work.tokens[count, 0], work.tokens[count, 1], work.tokens[count, 2] = begin, put - begin, 0
            work.amounts[count] = 1.0
            size += put - begin
            count += 1
            scratch[put] = SPACE
            put += 1
            begin = put
        else:
            put = begin
        if c == NEWLINE:
            break
        at += 1
    words = count
    for n in range(2, most + 1):
        for i in range(words + 1 - n):
            if count == work.amounts.size:
                return -1, at, size
            last = i + n - 1
            length = work.tokens[last, 0] + work.tokens[last, 1] - work.tokens[i, 0]
            work.tokens[count, 0], work.tokens[count, 1], work.tokens[count, 2] = work.tokens[i, 0], length, 0
            work.amounts[count] = 1.0
            size += length
            count += 1
    return count, at, size


@kernel(int64(Block, WorkT, NameTableT, NameTableT, Block, Block, int64))
def parse_text(
    block: np.ndarray,
    work: Work,
    names: NameTable,
    labels: NameTable,
    scratch: np.ndarray,
    folded: np.ndarray,
    most: int,
) -> int:
    """Take lines until something is needed; returns what. The scratch must hold the longest line."""
    state = work.state
    state[ASIDE] = 0
    while state[ROWS] < work.labels.size:
        at = state[AT]
        if at >= state[END]:
            return ENDED
        start = at
        while byte(block, at) != TAB and byte(block, at) != NEWLINE:
            at += 1
        if byte(block, at) == NEWLINE:
            empty = True
            for i in range(start, at):
                empty = empty and blank(byte(block, i))
            if empty:
                finished(work, block, at)
            else:
                refuse(work, block, at, NO_TAB)
            continue
        end = at
        while start < end and blank(byte(block, start)):
            start += 1
        while end > start and blank(byte(block, end - 1)):
            end -= 1
        label = NO_CLASS
        if end > start:
            label = class_of(work, labels, block, start, end)
            if label < NO_CLASS:
                return NEW_CLASS
        count, at, size = words_of(work, block, at + 1, scratch, folded, most)
        if count < 0:
            return MORE_TOKENS
        needs = put_row(work, names, scratch, block, at, count, size, SUMMED, label, 1.0, False)
        if needs != ENDED:
            return needs
    return FILLED
