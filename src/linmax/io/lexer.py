"""Compiled reading of lines: a kernel cuts them into rows of items, which `linmax.io.numbering` numbers.

An item is the place of a name in the block of bytes, with the namespace before it and a value, or the place of a text.
Lines that cannot be read are listed with their reasons. The kernel allocates nothing; it stops where an array is full,
and is called again from there.

svmlight and LIBSVM: ``label [qid:number] [cost:weight] index:value ... [# comment]``.

Labels are numbers. Indices are names like any other (0- or 1-based does not matter) and need not be in order; one that
comes twice, or lies beyond 2^31 - 1, is refused with its line. A qid is read over. Values of 0 are not stored.

Vowpal Wabbit's text: ``[label [importance [base]]] [tag]|namespace[:factor] name[:value] ... |...``.

A label is a number or a name. The last word before the bar is a tag when it touches the bar or begins with a quote, as
in Vowpal Wabbit. The attribute ``word`` of namespace ``title`` is called ``title^word``; without a namespace it is
just ``word``. Attributes that come twice are summed, values of 0 are not stored.

Text: ``label<tab>text``. In rows that need no label a text may stand alone. There a tab ends a label if one word comes
before it, or several that are a known class; else it is part of the text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int64, typeof, types

from linmax.io.bytes import (
    BAD,
    GOOD,
    HARD,
    WILD,
    Block,
    byte,
    next_stop,
    number,
    plain_number,
    stops,
    whole_number,
    word,
)
from linmax.jit.compiling import kernel

__all__ = ["REASONS", "Lines", "cut_lines", "with_value"]

REASONS = (
    "",
    "no label",
    "the label is not a number",
    "more than one label",
    "an index is not a whole number",
    "an index beyond 2^31 - 1",
    "no colon after an index",
    "a value is not a number",
    "a value is not finite, or beyond 1e100",
    "the same attribute twice",
    "a control character",
    "no '|'",
    "more than a label, an importance and a base",
    "the weight is not a finite number >= 0",
    "an attribute without a name",
    "costs instead of a label",
    "fewer fields than columns",
    "more fields than columns",
    "a quote is not closed",
    "no tab between label and text",
    "longer than 16 MB",
    "not JSON",
    "not a JSON object",
    "a label that is an object or a list",
    "not UTF-8",
)
(
    _,
    NO_LABEL,
    LABEL_NUMBER,
    LABELS,
    INDEX,
    LARGE_INDEX,
    NO_COLON,
    VALUE,
    NOT_FINITE,
    TWICE,
    CONTROL,
    NO_BAR,
    LABEL_PARTS,
    IMPORTANCE,
    NAMELESS,
    COSTS,
    FEW_FIELDS,
    MANY_FIELDS,
    OPEN_QUOTE,
    NO_TAB,
    TOO_LONG,
    NOT_JSON,
    NOT_AN_OBJECT,
    NOT_A_LABEL,
    NOT_UTF8,
) = range(len(REASONS))

# Wording of a reason with the value given and the remedy
WITH_VALUE = {
    NOT_FINITE: "{reason}: {given!r}; leave it out, or scale it",
    IMPORTANCE: "{reason}, but {given!r}; 0 leaves a row out",
}


def with_value(reason: int, given: str | None) -> str | None:
    """A reason with what was given in the line, if that is known."""
    return WITH_VALUE[reason].format(reason=REASONS[reason], given=given) if given is not None else None


LARGEST_VALUE = 1e100
NEWLINE, SPACE, TAB, RETURN, COLON, MINUS, ZERO, NINE = 10, 32, 9, 13, 58, 45, 48, 57
BAR, QUOTE, HASH, COMMA = 124, 39, 35, 44
INDEX_LIMIT, LONGEST_INDEX = 2**31 - 1, 10
QID_COLON = int.from_bytes(b"qid:", "little")
COST_COLON = int.from_bytes(b"cost:", "little")
QID, COST, NOTHING = -1, -2, -3  # not wrong, but to be passed over; the weight of the row; a blank line

SVMLIGHT, VW, TEXT = range(3)  # dialects
AT, LINE, ROWS, ITEMS, SPACES, REFUSED, HARD_ONES, STATE = range(8)  # next byte and line; sizes of what is written
LABEL, LABEL_END, TAG, TAG_END, WEIGHT, WEIGHT_END, DOUBTFUL, NUMBER, NEXT, ROW = range(10)  # of a row: places, line
START, SPAN, HEAD, ITEM = range(4)  # of an item: its place, its length, and its namespace
WHOLE_TEXT = -1  # as the namespace of an item: a text, of which the words are attributes


class Lines(NamedTuple):
    """The arrays into which lines are cut."""

    state: np.ndarray  # int64 (STATE,)
    rows: np.ndarray  # int64 (most rows, ROW)
    starts: np.ndarray  # int64 (most rows + 1,): the first item of each row
    weights: np.ndarray  # float64 (most rows,); nan where Python must round the number
    items: np.ndarray  # int64 (most items, ITEM)
    values: np.ndarray  # float64 (most items,); nan where Python must round the number
    spaces: np.ndarray  # int64 (most items, 2): where the name of each namespace begins and ends; the first has none
    factors: np.ndarray  # float64 (most items,): of namespaces
    bad: np.ndarray  # int64 (most, 4): line and reason, and the bytes to blame, if known
    tens: np.ndarray
    table: np.ndarray


LinesT = typeof(
    Lines(
        np.zeros(1, np.int64), np.zeros((1, 1), np.int64), np.zeros(1, np.int64), np.zeros(1),
        np.zeros((1, 1), np.int64), np.zeros(1), np.zeros((1, 1), np.int64), np.zeros(1), np.zeros((1, 1), np.int64),
        np.zeros(1), np.zeros((1, 1), np.int64),
    )
)  # fmt: skip


@kernel(hot=True)
def blank(c: int) -> bool:
    """A space within a line."""
    return c == SPACE or c == TAB or c == RETURN


@kernel(hot=True)
def read_value(lines: Lines, block: np.ndarray, at: int, end: int) -> tuple[float, int]:
    """The number that takes all of at..end, nan if Python must round it, and 0; or the reason to refuse it."""
    minus = byte(block, at) == MINUS
    value = plain_number(block, at + minus, end - at - minus, lines.tens)
    if value >= 0.0:
        return -value if minus else value, 0
    value, stop, status = number(block, at, lines.tens, lines.table)
    if status == BAD or (status != WILD and stop != end):
        return value, VALUE
    if status == WILD or abs(value) > LARGEST_VALUE:
        return value, NOT_FINITE
    if status == HARD:
        lines.state[HARD_ONES] += 1
        value = np.nan
    return value, 0


@kernel()
def check_index(block: np.ndarray, at: int) -> int:
    """Return 0 for an index of more than eight digits at ``at``, else the reason to refuse it."""
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


@kernel()
def svmlight_head(
    rows: np.ndarray, block: np.ndarray, at: int, row: int, needs_label: bool, tens: np.ndarray, table: np.ndarray
) -> tuple[int, int]:
    """Read the label of a line; return where it ends, and the reason to refuse it or 0."""
    start, c = at, byte(block, at)
    while c > 32 and c != COLON and c != COMMA and c != HASH:
        at += 1
        c = byte(block, at)
    if c == COLON and not needs_label:
        return start, 0
    if c == COLON or c == COMMA:
        return at, NO_LABEL if c == COLON else LABELS
    _, end, status = number(block, start, tens, table)
    if (status != GOOD and status != HARD) or end != at:  # a hard one need not be rounded: its text is the name
        return at, LABEL_NUMBER
    rows[row, LABEL], rows[row, LABEL_END] = start, at
    return at, 0


@kernel()
def vw_head(rows: np.ndarray, block: np.ndarray, at: int, row: int) -> tuple[int, int]:
    """Find label, importance and tag of a line; return the place behind the bar, and the reason to refuse it or 0."""
    words = 0
    while True:
        while blank(byte(block, at)):
            at += 1
        if byte(block, at) == BAR:
            break
        if byte(block, at) == NEWLINE:
            return at, NO_BAR
        start = at
        while byte(block, at) > 32 and byte(block, at) != BAR:
            at += 1
        if byte(block, at) < 32 and not (byte(block, at) == NEWLINE or blank(byte(block, at))):
            return at, CONTROL
        if byte(block, start) == QUOTE or byte(block, at) == BAR:
            rows[row, TAG], rows[row, TAG_END] = start + (byte(block, start) == QUOTE), at
            while blank(byte(block, at)):
                at += 1
            if byte(block, at) != BAR:  # a quoted word that is not the last
                return at, LABEL_PARTS if byte(block, at) != NEWLINE else NO_BAR
            break
        if words < 2:
            part = LABEL if words == 0 else WEIGHT
            rows[row, part], rows[row, part + 1] = start, at
        words += 1
    if words > 3:
        return at, LABEL_PARTS
    for i in range(rows[row, LABEL], rows[row, LABEL_END]):
        if byte(block, i) == COLON:
            return at, COSTS
    return at + 1, 0


@kernel()
def text_head(rows: np.ndarray, block: np.ndarray, at: int, row: int, needs_label: bool) -> tuple[int, int]:
    """Find the label before a tab; return where the text begins, and the reason to refuse the line or 0.

    Where rows need no label, several words before a tab may be part of the text: such a row is marked as doubtful.
    """
    start, end = at, at
    while byte(block, end) != TAB and byte(block, end) != NEWLINE:
        end += 1
    tab = end
    while start < end and blank(byte(block, start)):
        start += 1
    while end > start and blank(byte(block, end - 1)):
        end -= 1
    if byte(block, tab) == NEWLINE:
        return start, NOTHING if start == end else NO_TAB if needs_label else 0
    rows[row, LABEL], rows[row, LABEL_END] = start, end
    for i in range(start, end):
        if blank(byte(block, i)) and not needs_label:
            rows[row, DOUBTFUL] = 1
    return tab + 1, 0


@kernel(hot=True)
def put_item(lines: Lines, count: int, start: int, length: int, head: int, value: float) -> None:
    """Write an item of the row."""
    place = np.uint64(count)
    lines.items[place, START], lines.items[place, SPAN], lines.items[place, HEAD] = start, length, head
    lines.values[place] = value


@kernel(types.void(Block, int64, LinesT, int64, types.boolean))
def cut_lines(block: np.ndarray, end: int, lines: Lines, dialect: int, needs_label: bool) -> None:
    """Cut the lines up to ``end``, as far as there is room; a row that finds none is left whole."""
    state, rows, spaces = lines.state, lines.rows, lines.spaces
    svm = dialect == SVMLIGHT
    mark = HASH if svm else BAR
    while state[AT] < end and state[ROWS] < rows.shape[0] and state[REFUSED] < lines.bad.shape[0]:
        at, row, count, space = state[AT], state[ROWS], state[ITEMS], state[SPACES]
        wrong, blamed, blamed_end, full, head, factor = 0, 0, 0, False, 0, 1.0
        while blank(byte(block, at)) and dialect != TEXT:
            at += 1
        for column in range(NUMBER):
            rows[row, column] = 0
        lines.weights[row] = 1.0
        empty = byte(block, at) == NEWLINE or (svm and byte(block, at) == HASH)
        if dialect == TEXT:
            at, wrong = text_head(rows, block, at, row, needs_label)
            empty = wrong == NOTHING
        elif not empty:
            if svm:
                at, wrong = svmlight_head(rows, block, at, row, needs_label, lines.tens, lines.table)
            else:
                at, wrong = vw_head(rows, block, at, row)
        place = base = at
        if dialect == TEXT and not (wrong or empty):
            while byte(block, place) != NEWLINE:
                wrong = CONTROL if byte(block, place) == 0 else wrong
                place += 1
            full = count == lines.values.size
            if not full:
                put_item(lines, count, at, place - at, WHOLE_TEXT, 1.0)
                count += 1
        bar = not svm
        marks = stops(block, at, COLON, mark)
        while not (wrong or empty or dialect == TEXT):
            place, base, marks = next_stop(block, base, marks, COLON, mark)
            c, start, length = byte(block, place), at, place - at
            at = place + 1
            if length == 0 and not bar:
                if blank(c):
                    continue
                if c == NEWLINE or (svm and c == HASH):
                    break
                if c == BAR:
                    bar = True
                    continue
            if svm:
                if c != COLON or not 0 < length <= 8 or whole_number(block, start, length) < 0:
                    wrong = check_index(block, start)
                if wrong == QID:
                    wrong = 0
                    while byte(block, place) == COLON:
                        place, base, marks = next_stop(block, base, marks, COLON, mark)
                    at = base = place
                    marks = stops(block, base, COLON, mark)
                    continue
                if wrong > 0:
                    break
                while byte(block, start) == ZERO and length > 1:
                    start += 1
                    length -= 1
            value, named = 1.0, length > 0 or c == COLON
            if c == COLON:
                place, base, marks = next_stop(block, base, marks, COLON, mark)
                c = byte(block, place)
                if wrong == COST:
                    wrong, rows[row, WEIGHT], rows[row, WEIGHT_END] = 0, at, place
                    at = place + 1
                    if c == NEWLINE or c == HASH:
                        break
                    continue
                value, wrong = read_value(lines, block, at, place)
                at = place + 1
            if not (wrong or c == NEWLINE or c == mark or blank(c)):
                wrong = CONTROL if c < SPACE and not svm else VALUE
            if bar and not wrong:
                factor, head = value, 0
                if named:
                    full = space == spaces.shape[0]
                    if full:
                        break
                    spaces[space, 0], spaces[space, 1] = start, start + length
                    lines.factors[space] = factor
                    head = space
                    space += 1
            elif not wrong:
                value *= factor
                wrong = NAMELESS if length == 0 else NOT_FINITE if abs(value) > LARGEST_VALUE else 0
                if value != 0.0 and not wrong:
                    full = count == lines.values.size
                    if full:
                        break
                    put_item(lines, count, start, length, head, value)
                    count += 1
            if wrong:
                blamed, blamed_end = start, place
            if wrong or c == NEWLINE or (svm and c == HASH):
                break
            bar = c == BAR and not svm
        if full:
            return
        if rows[row, WEIGHT_END] and not wrong:
            weight, stop, status = number(block, rows[row, WEIGHT], lines.tens, lines.table)
            if status == BAD or status == WILD or stop != rows[row, WEIGHT_END] or not 0.0 <= weight <= LARGEST_VALUE:
                wrong, blamed, blamed_end = IMPORTANCE, rows[row, WEIGHT], rows[row, WEIGHT_END]
            state[HARD_ONES] += status == HARD
            lines.weights[row] = np.nan if status == HARD else weight
        at = place
        while byte(block, at) != NEWLINE:
            at += 1
        at += 1
        if wrong > 0:
            refused = state[REFUSED]
            lines.bad[refused, 0], lines.bad[refused, 1] = state[LINE], wrong
            lines.bad[refused, 2], lines.bad[refused, 3] = blamed, blamed_end
            state[REFUSED] = refused + 1
        elif not empty:
            rows[row, NUMBER], rows[row, NEXT] = state[LINE], at
            lines.starts[row + 1] = count
            state[ROWS], state[ITEMS], state[SPACES] = row + 1, count, space
        state[AT] = at
        state[LINE] += 1
