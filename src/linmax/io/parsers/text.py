"""Label and text, a tab between them; and the words of texts, with n-grams (see `linmax.io.words`).

An n-gram is words with a single space between them. The value of each is its number of occurrences.
"""

from __future__ import annotations

import numpy as np
from numba import int64, typeof, types
from numba.extending import intrinsic

from linmax.io.name_table import ABSENT, NameTable, NameTableT, look_up
from linmax.io.parsing import (
    ASIDE,
    AT,
    CONTROL,
    END,
    ENDED,
    FILLED,
    LETTERS,
    MORE_TOKENS,
    NEW_CLASS,
    NEWLINE,
    NO_CLASS,
    NO_TAB,
    OPEN,
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
from linmax.io.words import OWN, SHORTEST_WORD, SKIPPED, Words, words_for
from linmax.jit.compiling import JIT, caller, kernel

__all__ = ["WORDS", "WordsT", "call_words", "parse_text", "put_words"]

WordsT = typeof(words_for(1))
WORDS = types.UniTuple(int64, 4)(WorkT, Block, int64, Block, int64, int64, int64, WordsT)  # of `put_words`
NO_ROOM, NO_TABLE, BAD_BYTE = -1, -2, -3  # instead of a number of tokens


@kernel(hot=True)
def decoded(block: np.ndarray, at: int) -> tuple[int, int]:
    """The code point that begins with a byte beyond ASCII, and its length; (-1, 1) when it is no UTF-8."""
    c = byte(block, at)
    size = 2 if c < 0xE0 else 3 if c < 0xF0 else 4
    if c < 0xC2 or c > 0xF4:
        return -1, 1
    code = c & (0x7F >> size)
    for i in range(1, size):
        more = byte(block, at + i)
        if more & 0xC0 != 0x80:
            return -1, 1
        code = (code << 6) | (more & 0x3F)
    return code, size


@kernel(hot=True)
def encode(scratch: np.ndarray, put: int, code: int) -> int:
    """Write a code point as UTF-8; where the next one goes."""
    if code < 0x80:
        scratch[put] = code
        return put + 1
    if code < 0x800:
        scratch[put], scratch[put + 1] = 0xC0 | (code >> 6), 0x80 | (code & 0x3F)
        return put + 2
    if code < 0x10000:
        scratch[put], scratch[put + 1] = 0xE0 | (code >> 12), 0x80 | ((code >> 6) & 0x3F)
        scratch[put + 2] = 0x80 | (code & 0x3F)
        return put + 3
    scratch[put], scratch[put + 1] = 0xF0 | (code >> 18), 0x80 | ((code >> 12) & 0x3F)
    scratch[put + 2], scratch[put + 3] = 0x80 | ((code >> 6) & 0x3F), 0x80 | (code & 0x3F)
    return put + 4


@kernel(hot=True)
def words_of(
    work: Work, block: np.ndarray, at: int, scratch: np.ndarray, put: int, count: int, prefix: int, words: Words
) -> tuple[int, int, int, int]:
    """Add the words from ``at`` to the end of the line to the ``count`` tokens that there are.

    They are written to the scratch from ``put`` on. Returns the number of tokens, or what is missing; where the line
    ends; the bytes of their names; the next free place.
    """
    first, size = count, 0
    begin, folded, letters, inside = put, words.folded, words.letters, 0  # inside: letters of the word
    while True:
        c = byte(block, at)
        small = folded[c]
        if small:
            scratch[put] = small
            put += 1
            at += 1
            inside += 1
            continue
        alone, step = 0, 1
        if c >= 128:
            if letters.size == 0:
                return NO_TABLE, at, size, put
            code, step = decoded(block, at)
            if code < 0:  # not UTF-8: some other encoding's letter
                scratch[put] = c
                put += 1
                at += 1
                inside += 1
                continue
            letter = int64(letters[code]) if code < letters.size else 0
            if letter == SKIPPED:
                at += step
                continue
            if 0 < letter < OWN:
                put = encode(scratch, put, letter)
                at += step
                inside += 1
                continue
            alone = letter & ~OWN
        elif c == 0:
            return BAD_BYTE, at, size, put
        for part in range(2 if alone else 1):  # the word that ends here, and one that is alone
            if part:
                put, inside = encode(scratch, put, alone), SHORTEST_WORD
            if inside >= SHORTEST_WORD:
                if count == work.amounts.size:
                    return NO_ROOM, at, size, put
                work.tokens[count, 0], work.tokens[count, 1], work.tokens[count, 2] = begin, put - begin, prefix
                work.amounts[count] = 1.0
                size += put - begin
                count += 1
                scratch[put] = SPACE
                put += 1
                begin = put
            put, inside = begin, 0
        if c == NEWLINE:
            break
        at += step
    singles = count - first
    for n in range(2, words.most + 1):
        for i in range(first, first + singles + 1 - n):
            if count == work.amounts.size:
                return NO_ROOM, at, size, put
            last = i + n - 1
            length = work.tokens[last, 0] + work.tokens[last, 1] - work.tokens[i, 0]
            work.tokens[count, 0], work.tokens[count, 1], work.tokens[count, 2] = work.tokens[i, 0], length, prefix
            work.amounts[count] = 1.0
            size += length
            count += 1
    return count, at, size, put


@kernel(WORDS)
def put_words(
    work: Work, block: np.ndarray, at: int, scratch: np.ndarray, put: int, count: int, prefix: int, words: Words
) -> tuple[int, int, int, int]:
    """`words_of` by itself, for formats in which few files have texts: it takes a second to compile."""
    return words_of(work, block, at, scratch, put, count, prefix, words)


if JIT:

    @intrinsic
    def call_words(_, address, work, block, at, scratch, put, count, prefix, words):  # type: ignore[no-untyped-def]
        """Call `put_words` by its address."""
        return WORDS.return_type(int64, *WORDS.args), caller(WORDS)

else:
    call_words = caller(WORDS)


@kernel(int64(Block, WorkT, NameTableT, NameTableT, Block, WordsT, NameTableT))
def parse_text(
    block: np.ndarray,
    work: Work,
    names: NameTable,
    labels: NameTable,
    scratch: np.ndarray,
    words: Words,
    known: NameTable,
) -> int:
    """Take lines until something is needed; returns what. The scratch must hold the words of the longest line.

    In lines that need no label, several words before a tab are one only if they are ``known``.
    """
    state = work.state
    state[ASIDE] = 0
    while state[ROWS] < work.labels.size:
        at = state[AT]
        if at >= state[END]:
            return ENDED
        first = start = at
        while byte(block, at) != TAB and byte(block, at) != NEWLINE:
            at += 1
        label, tab, end = NO_CLASS, byte(block, at) == TAB, at
        if tab:
            while start < end and blank(byte(block, start)):
                start += 1
            while end > start and blank(byte(block, end - 1)):
                end -= 1
            if state[OPEN]:
                spaces = False
                for i in range(start, end):
                    spaces |= blank(byte(block, i))
                tab = not spaces or look_up(known, block, start, end - start, 0, False) != ABSENT
        if not tab:
            at = first
            while blank(byte(block, at)):
                at += 1
            if byte(block, at) == NEWLINE:
                finished(work, block, at)
                continue
            if not state[OPEN]:
                refuse(work, block, at, NO_TAB)
                continue
        else:
            at += 1
            if end > start:
                label = class_of(work, labels, block, start, end)
                if label < NO_CLASS:
                    return NEW_CLASS
        count, at, size, _ = words_of(work, block, at, scratch, 0, 0, 0, words)
        if count == BAD_BYTE:
            refuse(work, block, at, CONTROL)
            continue
        if count < 0:
            return MORE_TOKENS if count == NO_ROOM else LETTERS
        needs = put_row(work, names, scratch, block, at, count, size, SUMMED, label, 1.0)
        if needs != ENDED:
            return needs
    return FILLED
