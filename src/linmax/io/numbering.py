"""Names of rows as numbers: a kernel looks up the names, and the words of texts, and writes sparse rows.

A word is a run of two or more letters, digits, marks or underscores of any script; everything else, typographic quotes
and dashes included, separates. Letters are made small, one for one; an ideograph is a word by itself. An n-gram is
words with a single space between them. The value of each is its number of occurrences.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int64, typeof, types

from linmax.io.bytes import PADDING, Block, byte
from linmax.io.lexer import HEAD, ITEM, NEWLINE, SPACE, SPAN, START, WHOLE_TEXT
from linmax.io.vocabulary import (
    ABSENT,
    HASHED,
    NUMBER,
    SERIAL,
    SIZE,
    NameTable,
    NameTableT,
    Vocabulary,
    approach,
    cell,
    find,
    has_room,
    look_up,
)
from linmax.jit.compiling import address_of, calling, kernel

__all__ = ["ItemRows", "Numbering", "SparseRows"]

SHORTEST_WORD = 2  # letters of a word
LAST_LETTER = 0x32000  # code points beyond are no letters of a script in use
SKIPPED, OWN = 1, 1 << 30  # dropped within a word; a word by itself
OWN_SCRIPTS = ((0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, LAST_LETTER))  # ideographs
JOINERS = (0xAD, 0x200B, 0x200C, 0x200D, 0x2060)

# What the kernel says when it stops.
(
    DONE,
    MORE_VALUES,  # this row needs more room
    MORE_TOKENS,
    MORE_NAMES,  # WANTED of them, with WANTED_BYTES
    LETTERS,  # the table of letters beyond ASCII
) = range(5)
ROWS, PLACED, UNKNOWN, WANTED, WANTED_BYTES = range(5)  # in Work.state: rows and values written, names left out
STAMPS = 2**26  # items that a row may have
REPEATED = -100  # instead of the place where the values of a row end


class Words(NamedTuple):
    """Tables by which kernels cut texts into words."""

    folded: np.ndarray  # uint8 (256,): what each byte becomes in a word; 0: it separates, or begins another letter
    letters: np.ndarray  # uint32: the same for code points beyond ASCII, see `letters`; empty until it is wanted
    most: int  # words in a row that are an attribute


def words_for(ngrams: int) -> Words:
    """The settings as the kernels take them; the table of letters is made when a text needs it."""
    found = np.zeros(256, np.uint8)
    for c in range(128):
        if chr(c).isalnum() or c == ord("_"):
            found[c] = ord(chr(c).lower())
    return Words(found, np.zeros(0, np.uint32), ngrams)


@cache
def letters() -> np.ndarray:
    """For each code point the small letter that it becomes, 0 if it separates, SKIPPED, or with OWN its own word."""
    found = np.zeros(LAST_LETTER, np.uint32)
    for code in range(128, LAST_LETTER):
        letter = chr(code)
        if letter.isalnum() or unicodedata.category(letter) in ("Mn", "Mc", "Me", "Pc"):
            small = letter.casefold()
            found[code] = ord(small if len(small) == 1 else letter.lower()[0])
    for first, last in OWN_SCRIPTS:
        part = found[first : last + 1]
        part[part > 0] |= OWN
    found[list(JOINERS)] = SKIPPED
    return found


class Work(NamedTuple):
    """The arrays that the kernel works in."""

    state: np.ndarray  # int64 (5,)
    tokens: np.ndarray  # int64 (most, ITEM): the items of a row with texts, whose words are items
    amounts: np.ndarray  # float64 (most,): their values
    found: np.ndarray  # int64 (most, 3): what `approach` notes of the names of a row
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


WorkT = typeof(
    Work(
        np.zeros(1, np.int64), np.zeros((1, 1), np.int64), np.zeros(1), np.zeros((1, 1), np.int64),
        np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1),
    )
)  # fmt: skip
WordsT = typeof(words_for(1))
WORDS = types.UniTuple(int64, 3)(WorkT, Block, int64, int64, int64, int64, WordsT)  # of `put_words`
NO_ROOM, NO_TABLE = -1, -2  # instead of a number of tokens


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
def encode(block: np.ndarray, put: int, code: int) -> int:
    """Write a code point as UTF-8; where the next one goes."""
    more = 0 if code < 0x80 else 1 if code < 0x800 else 2 if code < 0x10000 else 3  # bytes after the first
    block[put] = code if more == 0 else ((0xF0 << (3 - more)) & 0xFF) | (code >> (6 * more))
    for i in range(1, more + 1):
        block[put + i] = 0x80 | ((code >> (6 * (more - i))) & 0x3F)
    return put + more + 1


@kernel(hot=True)
def put_token(work: Work, count: int, start: int, length: int, head: int, value: float) -> None:
    """Write an item of a row with texts."""
    work.tokens[count, START], work.tokens[count, SPAN], work.tokens[count, HEAD] = start, length, head
    work.amounts[count] = value


@kernel(WORDS)
def put_words(
    work: Work, block: np.ndarray, at: int, put: int, count: int, head: int, words: Words
) -> tuple[int, int, int]:
    """Add the words from ``at`` to the end of the line to the ``count`` tokens that there are.

    They are written to the block from ``put`` on. Returns the number of tokens, or what is missing; the bytes of their
    names; the next free place. Few files have texts, and this takes a second to compile, so it is called by address.
    """
    first, size = count, 0
    begin, folded, table, inside = put, words.folded, words.letters, 0  # inside: letters of the word
    while True:
        c = byte(block, at)
        small = folded[c]
        if small:
            block[put] = small
            put += 1
            at += 1
            inside += 1
            continue
        alone, step = 0, 1
        if c >= 128:
            if table.size == 0:
                return NO_TABLE, size, put
            code, step = decoded(block, at)
            if code < 0:  # not UTF-8: some other encoding's letter
                block[put] = c
                put += 1
                at += 1
                inside += 1
                continue
            letter = int64(table[code]) if code < table.size else 0
            if letter == SKIPPED:
                at += step
                continue
            if 0 < letter < OWN:
                put = encode(block, put, letter)
                at += step
                inside += 1
                continue
            alone = letter & ~OWN
        for part in range(2 if alone else 1):  # the word that ends here, and one that is alone
            if part:
                put, inside = encode(block, put, alone), SHORTEST_WORD
            if inside >= SHORTEST_WORD:
                if count == work.amounts.size:
                    return NO_ROOM, size, put
                put_token(work, count, begin, put - begin, head, 1.0)
                size += put - begin
                count += 1
                block[put] = SPACE
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
                return NO_ROOM, size, put
            last = i + n - 1
            length = work.tokens[last, START] + work.tokens[last, SPAN] - work.tokens[i, START]
            put_token(work, count, work.tokens[i, START], length, head, 1.0)
            size += length
            count += 1
    return count, size, put


call_words = calling(WORDS)


@kernel(hot=True)
def put_row(
    work: Work,
    names: NameTable,
    source: np.ndarray,
    items: np.ndarray,
    values: np.ndarray,
    first: int,
    count: int,
    prefixes: np.ndarray,
    size: int,
    grows: bool,
    once: bool,
) -> int:
    """Number the ``count`` items of a row from the first on and write them after the values of the rows before.

    Their names are in ``source`` and have ``size`` bytes at most. Returns where the values of the row end; REPEATED if
    an attribute may come ``once`` only and comes again; or -1 less what is missing.
    """
    state, slots, begin = work.state, names.slots, work.state[PLACED]
    put = begin
    if begin + count > work.indices.size:
        return -1 - MORE_VALUES
    if grows and not has_room(names, count, size):
        state[WANTED], state[WANTED_BYTES] = count, size
        return -1 - MORE_NAMES
    names.sizes[SERIAL] += 1
    serial, hashed = names.sizes[SERIAL] * STAMPS, names.sizes[HASHED] != 0
    if not hashed:
        approach(names, source, items, first, count, prefixes, work.found)
    for i in range(count):
        item = np.uint64(first + i)
        start, length, prefix = items[item, START], items[item, SPAN], prefixes[items[item, HEAD]]
        slot, known = 0, False
        if not hashed:
            total = length + names.prefixes[prefix, SIZE]
            slot, known = find(names, source, start, length, prefix, work.found[i, 0], total, work.found[i, 1])
        if not known:
            slot = look_up(names, source, start, length, prefix, grows)
            if slot == ABSENT:
                state[UNKNOWN] += 1
                continue
        mark = np.uint64(slot) if hashed else cell(slot, 3)
        again = slots[mark] >= serial
        if again and once and known:
            return REPEATED
        # Words come again at random: a branch would be mispredicted.
        where = begin + slots[mark] - serial if again else put
        before = work.values[np.uint64(where)]
        work.values[np.uint64(where)] = values[item] + (before if again else 0.0)
        named = slot if hashed else slots[cell(slot, NUMBER)]
        work.indices[np.uint64(where)] = named
        slots[mark] = serial + where - begin
        put += not again
    return put


@kernel(
    int64(
        Block, WorkT, NameTableT, WordsT, int64[:, ::1], float64[::1], int64[::1], int64[::1], int64[::1], int64, int64,
        boolean, boolean, boolean[::1],
    )
)  # fmt: skip
def number_items(
    source: np.ndarray,
    work: Work,
    names: NameTable,
    words: Words,
    items: np.ndarray,
    values: np.ndarray,
    starts: np.ndarray,
    prefixes: np.ndarray,
    rows: np.ndarray,
    free: int,
    takes_words: int,
    grows: bool,
    once: bool,
    repeated: np.ndarray,
) -> int:
    """Number the items of some rows, from number ROWS of the state on; returns what is missing, or DONE.

    Words of texts are written to ``source`` from ``free`` on. ``takes_words`` is the address of `put_words`, 0 if there
    are no texts. The prefix of the name of an item is that of its head. Rows in which an attribute comes twice,
    although it may come ``once``, are empty and marked.
    """
    state = work.state
    while state[ROWS] < rows.size:
        row = rows[state[ROWS]]
        first, end = starts[row], starts[row + 1]
        count, size, put, tokens, amounts = end - first, 0, free, items, values
        if takes_words:
            count, tokens, amounts = 0, work.tokens, work.amounts
        for i in range(first, end):
            start, length, head = items[i, START], items[i, SPAN], items[i, HEAD]
            if takes_words and head <= WHOLE_TEXT:
                before, head = count, WHOLE_TEXT - head
                count, more, put = call_words(takes_words, work, source, start, put, count, head, words)
                if count < 0:
                    return MORE_TOKENS if count == NO_ROOM else LETTERS
                size += more + (count - before) * names.prefixes[prefixes[head], SIZE]
                continue
            size += length + names.prefixes[prefixes[head], SIZE]
            if takes_words:
                if count == work.amounts.size:
                    return MORE_TOKENS
                put_token(work, count, start, length, head, values[i])
                count += 1
        if count > work.found.shape[0]:
            return MORE_TOKENS
        stop = put_row(
            work, names, source, tokens, amounts, 0 if takes_words else first, count, prefixes, size, grows, once
        )
        if stop == REPEATED:
            repeated[state[ROWS]] = True
            stop = state[PLACED]
        elif stop < 0:
            return -1 - stop
        state[PLACED] = stop
        state[ROWS] += 1
        work.indptr[state[ROWS]] = stop
    return DONE


class ItemRows(NamedTuple):
    """Items of rows: places of names in bytes, with what goes before them, and values; or texts."""

    source: np.ndarray  # uint8: behind ``size`` bytes room for the words of the texts of a row, and `PADDING`
    size: int
    items: np.ndarray  # int64 (items, ITEM): place, length and head; a text has the head WHOLE_TEXT - head
    values: np.ndarray
    starts: np.ndarray  # int64 (rows + 1,): the first item of each row
    heads: list[bytes]  # what names begin with
    codes: np.ndarray  # int64: which of them each head is
    has_texts: bool = False
    once: bool = False  # whether a row in which an attribute comes twice is refused

    def with_room(self) -> ItemRows:
        """Return the items with bytes of their own, and room for words."""
        sizes = np.where(self.items[:, HEAD] <= WHOLE_TEXT, self.items[:, SPAN], 0)
        longest = int(np.diff(np.concatenate([[0], np.cumsum(sizes)])[self.starts]).max(initial=0))
        room = np.zeros(self.size + 3 * longest + PADDING, np.uint8)
        room[: self.size] = self.source[: self.size]
        return self._replace(source=room)


class SparseRows(NamedTuple):
    """Rows of numbered attributes."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    unknown: int  # names left out because the vocabulary does not grow
    repeated: np.ndarray  # rows to be refused, because an attribute comes twice


class Numbering:
    """Numbers the names of rows by a vocabulary, which ``grows`` or leaves out new names."""

    def __init__(self, vocabulary: Vocabulary, grows: bool, ngrams: int) -> None:
        self.vocabulary, self.grows, self.words = vocabulary, grows, words_for(ngrams)
        self._room = 0
        self._make_room(1024)

    def _make_room(self, size: int) -> None:
        """Make room for the items of a row."""
        self._room = size
        self._tokens, self._amounts = np.zeros((size, ITEM), np.int64), np.zeros(size)
        self._found = np.zeros((size, 3), np.int64)

    def sparse_rows(self, given: ItemRows, rows: np.ndarray) -> SparseRows:
        """Number the items of some rows."""
        many, vocabulary = len(given.items), self.vocabulary
        repeated, indptr = np.zeros(len(rows), bool), np.zeros(len(rows) + 1, np.int64)
        if not many:
            return SparseRows(indptr, np.zeros(0, np.int32), np.zeros(0), 0, repeated)
        prefixes = np.array(vocabulary.prefixes(given.heads), np.int64)[given.codes]
        room = int((given.starts[rows + 1] - given.starts[rows]).sum())
        room = max(1024, 2 * room) if given.has_texts else room
        work = Work(
            np.zeros(5, np.int64), self._tokens, self._amounts, self._found, indptr, np.empty(room, np.int32),
            np.empty(room),
        )  # fmt: skip
        address = address_of(put_words, WORDS) if given.has_texts else 0
        arrays = given.items, given.values, given.starts, prefixes, rows, given.size, address, self.grows, given.once
        while needs := number_items(given.source, work, vocabulary.names, self.words, *arrays, repeated):
            if needs == MORE_VALUES:
                indices, values = (
                    np.concatenate([array, np.empty_like(array)]) for array in (work.indices, work.values)
                )
                work = work._replace(indices=indices, values=values)
            elif needs == MORE_TOKENS:
                self._make_room(2 * self._room)
                work = work._replace(tokens=self._tokens, amounts=self._amounts, found=self._found)
            elif needs == MORE_NAMES:
                vocabulary.reserve(int(work.state[WANTED]), int(work.state[WANTED_BYTES]))
            else:
                self.words = self.words._replace(letters=letters())
        placed = int(work.state[PLACED])
        return SparseRows(indptr, work.indices[:placed], work.values[:placed], int(work.state[UNKNOWN]), repeated)
