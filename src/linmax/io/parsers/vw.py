"""Vowpal Wabbit's text: ``[label [importance [base]]] [tag]|namespace[:factor] name[:value] ... |...``.

A label is a number or a name. The last word before the bar is a tag when it touches the bar or begins with a quote, as
in Vowpal Wabbit. The attribute ``word`` of namespace ``title`` is called ``title^word``; without a namespace it is
just ``word``. Attributes that come twice are summed, values of 0 are not stored.
"""

from __future__ import annotations

import numpy as np
from numba import int64

from linmax.io.decimals import GOOD, HARD, WILD
from linmax.io.name_table import ABSENT, NUMBER, SIZE, NameTable, NameTableT, cell, look_up
from linmax.io.parsing import (
    ASK_NUMBER,
    AT,
    COLON,
    CONTROL,
    COSTS,
    END,
    ENDED,
    FILLED,
    FROM,
    IMPORTANCE,
    LABEL_PARTS,
    LARGEST_VALUE,
    MORE_TOKENS,
    NAMELESS,
    NEW_CLASS,
    NEW_PREFIX,
    NEWLINE,
    NO_BAR,
    NO_CLASS,
    NOT_FINITE,
    ROWS,
    SUMMED,
    TAGGED,
    TO,
    VALUE,
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
from linmax.io.scan import Block, byte, next_stop, stops
from linmax.jit.compiling import kernel

__all__ = ["parse_vw"]

BAR, QUOTE = 124, 39


@kernel(int64(Block, WorkT, NameTableT, NameTableT, NameTableT))
def parse_vw(block: np.ndarray, work: Work, names: NameTable, labels: NameTable, spaces: NameTable) -> int:
    """Parse lines until something is needed; returns what. ``spaces`` number the namespaces as prefixes, from 1."""
    state = work.state
    while state[ROWS] < work.labels.size:
        at = state[AT]
        if at >= state[END]:
            return ENDED
        while blank(byte(block, at)):
            at += 1
        if byte(block, at) == NEWLINE:
            finished(work, block, at)
            continue
        # Before the bar: where the words begin and end.
        words, wrong = 0, 0
        label_from = label_to = weight_from = weight_to = tag_from = tag_to = 0
        while True:
            while blank(byte(block, at)):
                at += 1
            c = byte(block, at)
            if c == BAR or c == NEWLINE:
                break
            start = at
            while byte(block, at) > 32 and byte(block, at) != BAR:
                at += 1
            if byte(block, at) < 32 and not (byte(block, at) == NEWLINE or blank(byte(block, at))):
                wrong = CONTROL
                break
            if byte(block, start) == QUOTE or byte(block, at) == BAR:
                tag_from, tag_to = start + (byte(block, start) == QUOTE), at
                while blank(byte(block, at)):
                    at += 1
                if byte(block, at) != BAR:  # a quoted word that is not the last
                    wrong = LABEL_PARTS if byte(block, at) != NEWLINE else NO_BAR
                break
            if words == 0:
                label_from, label_to = start, at
            elif words == 1:
                weight_from, weight_to = start, at
            words += 1
        if not wrong and byte(block, at) != BAR:
            wrong = NO_BAR
        if not wrong and words > 3:
            wrong = LABEL_PARTS
        if wrong:
            refuse(work, block, at, wrong)
            continue
        label, weight = NO_CLASS, 1.0
        if words:
            for i in range(label_from, label_to):
                if byte(block, i) == COLON:
                    wrong = COSTS
            if words > 1:
                weight, end, status = read_number(work, block, weight_from)
                if status == HARD:
                    return ASK_NUMBER
                if status != GOOD or end != weight_to or weight < 0.0:
                    wrong = IMPORTANCE
                    blame(work, weight_from, weight_to)
            if wrong:
                refuse(work, block, at, wrong)
                continue
            label = class_of(work, labels, block, label_from, label_to)
            if label < NO_CLASS:
                return NEW_CLASS
        row = state[ROWS]
        work.tags[row, 0], work.tags[row, 1] = tag_from, tag_to
        at += 1
        count, prefix, factor, room = 0, 0, 1.0, 0
        base, marks, bar = at, stops(block, at, COLON, BAR), True
        while True:
            place, base, marks = next_stop(block, base, marks, COLON, BAR)
            stop, start, length = byte(block, place), at, place - at
            at = place + 1
            if length == 0 and not bar and blank(stop):
                continue
            value = 1.0
            if stop == COLON:
                place, base, marks = next_stop(block, base, marks, COLON, BAR)
                stop = byte(block, place)
                value, status = read_value(work, block, at, place)
                if status == HARD:
                    return ASK_NUMBER
                if status != GOOD:
                    wrong = NOT_FINITE if status == WILD else VALUE
                    blame(work, start, place)
                    break
                at = place + 1
            elif length == 0 and not bar and (stop == NEWLINE or stop == BAR):
                if stop == NEWLINE:
                    break
                bar = True
                continue
            if not (stop == NEWLINE or stop == BAR or blank(stop)):
                wrong = CONTROL if stop < 32 else VALUE
                break
            if bar:
                prefix, factor = 0, value
                if length:
                    slot = look_up(spaces, block, start, length, 0, False)
                    if slot == ABSENT:
                        state[FROM], state[TO] = start, start + length
                        return NEW_PREFIX
                    prefix = spaces.slots[cell(slot, NUMBER)] + 1
            elif length == 0:
                wrong = NAMELESS
                break
            else:
                value *= factor
                if abs(value) > LARGEST_VALUE:
                    wrong = NOT_FINITE
                    blame(work, start, place)
                    break
                if value != 0.0:
                    if count == work.amounts.size:
                        return MORE_TOKENS
                    put_token(work, count, start, length, prefix, value)
                    room += length + names.prefixes[prefix, SIZE]
                    count += 1
            if stop == NEWLINE:
                break
            bar = stop == BAR
        if wrong:
            refuse(work, block, place, wrong)
            continue
        needs = put_row(work, names, block, block, place, count, room, SUMMED, label, weight)
        if needs != ENDED:
            return needs
        state[TAGGED] |= tag_to > tag_from
    return FILLED
