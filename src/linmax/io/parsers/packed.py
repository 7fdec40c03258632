"""Rows that Python has read already (JSON lines): their names numbered and their texts taken apart by a kernel."""

from __future__ import annotations

import numpy as np
from numba import float64, int64

from linmax.io.name_table import SIZE, NameTable, NameTableT
from linmax.io.parsers.text import NO_ROOM, WordsT, call_words
from linmax.io.parsing import (
    ASIDE,
    AT,
    END,
    ENDED,
    FILLED,
    LETTERS,
    MORE_TOKENS,
    NEW_CLASS,
    NO_CLASS,
    ROWS,
    SUMMED,
    Work,
    WorkT,
    class_of,
    finished,
    put_row,
    refuse,
)
from linmax.io.scan import Block
from linmax.io.words import Words
from linmax.jit.compiling import kernel

__all__ = ["parse_packed"]

LABEL_FROM, LABEL_TO, TEXTS, FEATURES, REASON, AFTER = range(6)


@kernel(
    int64(
        Block, WorkT, NameTableT, NameTableT, Block, Block, WordsT, int64[:, ::1], int64[:, ::1], float64[::1],
        int64[:, ::1], int64,
    )
)  # fmt: skip
def parse_packed(
    block: np.ndarray,
    work: Work,
    names: NameTable,
    labels: NameTable,
    source: np.ndarray,
    scratch: np.ndarray,
    words: Words,
    lines: np.ndarray,
    features: np.ndarray,
    amounts: np.ndarray,
    texts: np.ndarray,
    takes_words: int,
) -> int:
    """Take lines until something is needed; returns what.

    ``lines``: where the label is in the source; how many texts and features; the reason to refuse the line (0 none, -1
    it is empty); where the next line begins. ``features`` are names in the source, ``amounts`` their values, ``texts``
    where each begins, which a newline ends, and the prefix of its words. Words and names are put into one scratch.
    ``takes_words`` is the address of `put_words`, needed if there are texts.
    """
    state = work.state
    state[ASIDE] = 2
    first, line, text = 0, 0, 0
    while line < len(lines) and lines[line, AFTER] <= state[AT]:
        first += lines[line, FEATURES]
        text += lines[line, TEXTS]
        line += 1
    while state[ROWS] < work.labels.size:
        if state[AT] >= state[END]:
            return ENDED
        entry = lines[line]
        place = entry[AFTER] - 1
        if entry[REASON] < 0:
            finished(work, block, place)
        elif entry[REASON] > 0:
            refuse(work, block, place, entry[REASON])
        else:
            label = NO_CLASS
            if entry[LABEL_TO] > entry[LABEL_FROM]:
                label = class_of(work, labels, source, entry[LABEL_FROM], entry[LABEL_TO])
                if label < NO_CLASS:
                    return NEW_CLASS
            count, put, room = 0, 0, 0
            for i in range(text, text + entry[TEXTS]):
                before = count
                count, _, size, put = call_words(
                    takes_words, work, source, texts[i, 0], scratch, put, count, texts[i, 1], words
                )
                if count < 0:
                    return MORE_TOKENS if count == NO_ROOM else LETTERS
                room += size + (count - before) * names.prefixes[texts[i, 1], SIZE]
            if count + entry[FEATURES] > work.amounts.size:
                return MORE_TOKENS
            for i in range(first, first + entry[FEATURES]):
                length = features[i, 1] - features[i, 0]
                for c in range(length):
                    scratch[put + c] = source[features[i, 0] + c]
                work.tokens[count, 0], work.tokens[count, 1], work.tokens[count, 2] = put, length, 0
                work.amounts[count] = amounts[i]
                put += length
                room += length
                count += 1
            work.tags[state[ROWS], 0], work.tags[state[ROWS], 1] = line, line + 1
            needs = put_row(work, names, scratch, block, place, count, room, SUMMED, label, 1.0)
            if needs != ENDED:
                return needs
        first += entry[FEATURES]
        text += entry[TEXTS]
        line += 1
    return FILLED
