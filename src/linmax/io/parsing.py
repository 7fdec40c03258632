"""What the readers of lines have in common: their working memory, rows put together, lines refused by name.

A parser is a kernel that takes lines from a block of bytes and writes rows. It stops when the block ends, the batch is
full, or it needs something that only Python can give (more room, a new class, a number with too many digits to round
here); Python sees to that and calls it again, at the line where it stopped. So its kernels allocate nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import typeof

from linmax.io.decimals import BAD, GOOD, HARD, WILD, number, plain_number
from linmax.io.name_table import (
    ABSENT,
    HASHED,
    KEYED,
    NUMBER,
    PREFIX,
    SERIAL,
    SIZE,
    SLOT,
    SPAN,
    STAMP,
    START,
    TOKEN,
    NameTable,
    approach,
    cell,
    find,
    has_room,
    look_up,
)
from linmax.io.scan import byte
from linmax.jit.compiling import kernel

__all__ = ["REASONS", "TOKEN", "Work", "WorkT"]

# What a parser says when it stops.
(
    ENDED,  # of the block
    FILLED,  # the batch is full
    MORE_VALUES,  # this row needs more room
    MORE_TOKENS,
    MORE_NAMES,  # FROM of them, with TO bytes
    NEW_CLASS,  # its bytes are state[FROM]..state[TO]
    NEW_PREFIX,
    ASK_NUMBER,
    MORE_BYTES,  # a row goes on beyond the block
    LETTERS,  # the table of letters beyond ASCII
) = range(10)

# Places in Work.state.
(
    AT,  # next byte
    END,  # of the whole lines in the block
    LINE,  # number of the next line, from 1
    ROWS,
    PLACED,  # values written
    FROM,
    TO,
    REFUSED,  # lines refused since the state was cleared
    GROWS,  # whether new names are numbered
    UNKNOWN,  # names left out because they are not
    ANSWERS,  # numbers that Python rounded for this line
    TAGGED,  # whether a row has a tag
    ASIDE,  # whether FROM..TO are in the scratch of the parser and not in the block
    LAST,  # whether no bytes follow those of the block
    OPEN,  # whether rows may come without a label in formats that have nothing to show its place
    WIDTH,
) = range(16)

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

# How a reason is told with what was given, and what to do about it.
WITH_VALUE = {
    NOT_FINITE: "{reason}: {given!r}; leave it out, or scale it",
    IMPORTANCE: "{reason}, but {given!r}; 0 leaves a row out",
}


def with_value(reason: int, given: str | None) -> str | None:
    """A reason with what was given in the line, if that is known."""
    return WITH_VALUE[reason].format(reason=REASONS[reason], given=given) if given is not None else None


LARGEST_VALUE = 1e100
NEWLINE, SPACE, TAB, RETURN, COLON, MINUS, ZERO = 10, 32, 9, 13, 58, 45, 48
STAMPS = 2**26  # tokens that a line may have
NO_CLASS = -1
SUMMED, TURNED_DOWN = range(2)  # what happens to an attribute that comes twice
REPEATED = -100  # instead of the place where the values of a row end


class Work(NamedTuple):
    """The arrays that a parser works in."""

    state: np.ndarray  # int64 (WIDTH,)
    tokens: np.ndarray  # int64 (most tokens of a line, TOKEN): what is known of each name
    amounts: np.ndarray  # float64: their values
    labels: np.ndarray  # int32 (rows,): class, NO_CLASS without a label
    importance: np.ndarray  # float64 (rows,)
    tags: np.ndarray  # int64 (rows, 2): where a tag is in the block
    lines: np.ndarray  # int64 (rows,): number of the line
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    dense: np.ndarray  # float64 (rows, dense attributes)
    classes: np.ndarray  # int32: the class of each label met
    refusals: np.ndarray  # int64 (some, 4): line and reason of the first ones, and what is to blame, if that is told
    reasons: np.ndarray  # int64: how many for each reason
    answers: np.ndarray  # float64 (some, 2): where a number is, and its value
    tens: np.ndarray
    table: np.ndarray


WorkT = typeof(
    Work(
        np.zeros(1, np.int64), np.zeros((1, 3), np.int64), np.zeros(1), np.zeros(1, np.int32), np.zeros(1),
        np.zeros((1, 2), np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1),
        np.zeros((1, 1)), np.zeros(1, np.int32), np.zeros((1, 2), np.int64), np.zeros(1, np.int64), np.zeros((1, 2)),
        np.zeros(1), np.zeros((1, 2), np.int64),
    )
)  # fmt: skip


def room_for_tokens(size: int) -> dict[str, np.ndarray]:
    """The arrays of `Work` that hold the tokens of a line."""
    return {
        "tokens": np.zeros((size, TOKEN), np.int64),
        "amounts": np.zeros(size),
    }


@kernel(hot=True)
def blank(c: int) -> bool:
    """A space within a line."""
    return c == SPACE or c == TAB or c == RETURN


@kernel(hot=True)
def finished(work: Work, block: np.ndarray, place: int) -> None:
    """Go on with the line after ``place``."""
    while byte(block, place) != NEWLINE:
        place += 1
    work.state[AT] = place + 1
    work.state[LINE] += 1
    work.state[ANSWERS] = 0


@kernel()
def refuse(work: Work, block: np.ndarray, place: int, reason: int) -> None:
    """Count a line that cannot be read, and go on with the next."""
    count = work.state[REFUSED]
    if count < work.refusals.shape[0]:
        work.refusals[count, 0], work.refusals[count, 1] = work.state[LINE], reason
    work.state[REFUSED] = count + 1
    work.reasons[reason] += 1
    finished(work, block, place)


@kernel()
def blame(work: Work, begin: int, end: int) -> None:
    """Say what in the block the line is refused for, before it is."""
    count = work.state[REFUSED]
    if count < work.refusals.shape[0]:
        work.refusals[count, 2], work.refusals[count, 3] = begin, end


@kernel(hot=True)
def read_number(work: Work, block: np.ndarray, place: int) -> tuple[float, int, int]:
    """`number`, with the answers that Python gave, and values beyond 1e100 as WILD."""
    value, end, status = number(block, place, work.tens, work.table)
    if status == HARD:
        for i in range(work.state[ANSWERS]):
            if work.answers[i, 0] == place:
                value, status = work.answers[i, 1], GOOD
        work.state[FROM], work.state[TO] = place, end
    if status == GOOD and abs(value) > LARGEST_VALUE:
        status = WILD
    return value, end, status


@kernel(hot=True)
def read_value(work: Work, block: np.ndarray, at: int, end: int) -> tuple[float, int]:
    """The number that takes all of at..end, and GOOD; or what is wrong with it, as `number` says."""
    minus = byte(block, at) == MINUS
    value = plain_number(block, at + minus, end - at - minus, work.tens)
    if value >= 0.0:
        return -value if minus else value, GOOD
    value, stop, status = read_number(work, block, at)
    return value, BAD if status == GOOD and stop != end else status


@kernel(hot=True)
def class_of(work: Work, labels: NameTable, block: np.ndarray, start: int, end: int) -> int:
    """The class that a label names; below NO_CLASS when it is new, with its bytes left for Python."""
    slot = look_up(labels, block, start, end - start, 0, False)
    if slot == ABSENT:
        work.state[FROM], work.state[TO] = start, end
        return NO_CLASS - 1
    return work.classes[labels.slots[cell(slot, NUMBER)]]


@kernel(hot=True)
def put_token(work: Work, count: int, start: int, length: int, prefix: int, value: float) -> None:
    """Write down an attribute of the row."""
    place = np.uint64(count)
    work.tokens[place, START], work.tokens[place, SPAN], work.tokens[place, PREFIX] = start, length, prefix
    work.amounts[place] = value


@kernel(hot=True)
def put_tokens(work: Work, names: NameTable, source: np.ndarray, count: int, size: int, twice: int) -> int:
    """Number the ``count`` tokens of a row and write them after the values of the rows before.

    Their names are in ``source`` and have ``size`` bytes at most. Returns where the values of the row end; REPEATED for
    a repeated attribute if ``twice`` is TURNED_DOWN; or -1 less what is missing.
    """
    state = work.state
    begin = put = state[PLACED]
    if begin + count > work.indices.size:
        return -1 - MORE_VALUES
    if state[GROWS] and not has_room(names, count, size):
        state[FROM], state[TO] = count, size
        return -1 - MORE_NAMES
    names.sizes[SERIAL] += 1
    serial = names.sizes[SERIAL] * STAMPS
    hashed, grows = names.sizes[HASHED] != 0, state[GROWS] != 0
    tokens, slots = work.tokens, names.slots
    if not hashed:
        approach(names, source, tokens, count)
    for i in range(count):
        start, length, prefix = tokens[i, START], tokens[i, SPAN], tokens[i, PREFIX]
        slot, known = 0, False
        if not hashed:
            total = length + names.prefixes[prefix, SIZE]
            slot, known = find(names, source, start, length, prefix, tokens[i, KEYED], total, tokens[i, SLOT])
        if not known:
            slot = look_up(names, source, start, length, prefix, grows)
            if slot == ABSENT:
                state[UNKNOWN] += 1
                continue
        mark = np.uint64(slot) if hashed else cell(slot, STAMP)
        again = slots[mark] >= serial
        if again and twice == TURNED_DOWN and known:
            return REPEATED
        # Words come again at random: a branch would be mispredicted.
        where = begin + slots[mark] - serial if again else put
        before = work.values[np.uint64(where)]
        work.values[np.uint64(where)] = work.amounts[i] + (before if again else 0.0)
        named = slot if hashed else slots[cell(slot, NUMBER)]
        work.indices[np.uint64(where)] = named
        slots[mark] = serial + where - begin
        put += not again
    return put


@kernel()
def put_row(
    work: Work,
    names: NameTable,
    source: np.ndarray,
    block: np.ndarray,
    place: int,
    count: int,
    size: int,
    twice: int,
    label: int,
    weight: float,
) -> int:
    """Write a row of tokens (see `put_tokens`), whose line ends after ``place``; returns ENDED or what is missing."""
    state = work.state
    put = put_tokens(work, names, source, count, size, twice)
    if put == REPEATED:
        refuse(work, block, place, TWICE)
        return ENDED
    if put < 0:
        return FILLED if put == -1 - MORE_VALUES and state[ROWS] > 0 else -1 - put
    row = state[ROWS]
    work.labels[row] = label
    work.importance[row] = weight
    work.lines[row] = state[LINE]
    work.indptr[row + 1] = put
    state[ROWS] = row + 1
    state[PLACED] = put
    finished(work, block, place)
    return ENDED
