"""Compiled parsers of lines: working memory, rows, refused lines.

A parser is a kernel that takes lines from a block of bytes and writes rows. It stops when the block ends, the batch is
full, or it needs something that only Python can give (more room, a new class, a number with too many digits to round
here); Python sees to that and calls it again, at the line where it stopped. So its kernels allocate nothing.

Label and text, a tab between them; and the words of texts, with n-grams (see `linmax.io.words`).

An n-gram is words with a single space between them. The value of each is its number of occurrences.

svmlight and LIBSVM lines: ``label [qid:number] [cost:weight] index:value ... [# comment]``.

Labels are numbers. Indices are names like any other (0- or 1-based does not matter) and need not be in order; one that
comes twice, or lies beyond 2^31 - 1, is refused with its line. A qid is read over. Values of 0 are not stored.

Vowpal Wabbit's text: ``[label [importance [base]]] [tag]|namespace[:factor] name[:value] ... |...``.

A label is a number or a name. The last word before the bar is a tag when it touches the bar or begins with a quote, as
in Vowpal Wabbit. The attribute ``word`` of namespace ``title`` is called ``title^word``; without a namespace it is
just ``word``. Attributes that come twice are summed, values of 0 are not stored.
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
from linmax.io.vocabulary import (
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
    NameTableT,
    approach,
    cell,
    find,
    has_room,
    look_up,
)
from linmax.io.words import OWN, SHORTEST_WORD, SKIPPED, Words, words_for
from linmax.jit.compiling import calling, kernel

__all__ = ["REASONS", "WORDS", "WordsT", "Work", "WorkT", "parse_svmlight", "parse_text", "parse_vw", "put_words"]

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
    MORE_BYTES,  # a row continues beyond the block
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

# Wording of a reason with the value given and the remedy
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
    refusals: np.ndarray  # int64 (some, 4): line and reason of the first ones, and the bytes to blame, if known
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
    """Continue with the line after ``place``."""
    while byte(block, place) != NEWLINE:
        place += 1
    work.state[AT] = place + 1
    work.state[LINE] += 1
    work.state[ANSWERS] = 0


@kernel()
def refuse(work: Work, block: np.ndarray, place: int, reason: int) -> None:
    """Count an unreadable line and continue with the next."""
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


call_words = calling(WORDS)


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


HASH, COMMA, NINE = 35, 44, 57
INDEX_LIMIT, LONGEST_INDEX = 2**31 - 1, 10
QID_COLON = int.from_bytes(b"qid:", "little")
COST_COLON = int.from_bytes(b"cost:", "little")
QID, COST = -1, -2  # not wrong, but to be passed over; and the weight of the row


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
