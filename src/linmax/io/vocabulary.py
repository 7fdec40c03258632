"""Names as numbers, in arrays that compiled code works on: what `linmax.io.vocabulary` is made of.

Open addressing over the bytes of the names. A slot holds the name's first eight bytes when it has no more (else a
hash of it), its length, its number, and a stamp that says where in the present line it was met last. Longer names are
compared byte by byte with the store, so that two names never become one unless hashing is asked for. Beyond a limit
names share slots.

Names of attributes and classes as numbers: a dictionary that grows, in arrays that compiled code works on.

A vocabulary may have a limit (`Vocabulary.limit_to`). The names met first have numbers of their own; when there is no
room for more, those that come later share the last ones, by their hash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import int64, typeof, types

from linmax.io.bytes import MIX, PADDING, SEED, Block, fold, ones, same_bytes, shifted, word
from linmax.io.lexer import HEAD, SPAN, START
from linmax.jit.compiling import kernel
from linmax.jit.prefetch import fetch

__all__ = ["ABSENT", "NameTable", "NameTableT", "Vocabulary", "look_up", "number_names"]

KEY, LENGTH, NUMBER, STAMP = range(4)  # in a slot; the stamp is alone when names are hashed
SLOT_WIDTH = 4
COUNT, USED, SHIFT, HASHED, SERIAL, LIMIT = range(6)  # in `sizes`
OFFSET, SIZE, MIXED, CARRY, REST = range(5)  # of a prefix: where, how long, its whole words hashed, the bytes left over
KEYED, FIRST_SLOT, LONG = range(3)  # what `approach` notes of a name; the last lists those that are long

ABSENT = -1


class NameTable(NamedTuple):
    """Arrays of a vocabulary for the kernels."""

    slots: np.ndarray  # int64, SLOT_WIDTH a slot, or only the stamp when names are hashed
    store: np.ndarray  # uint8: the names one after the other
    offsets: np.ndarray  # int64: where each begins
    sizes: np.ndarray  # int64 (6,): names, bytes used, 64 - lg slots, whether hashed, lines stamped, most names
    prefixes: np.ndarray  # int64 (prefixes, 5): what a name may begin with
    heads: np.ndarray  # uint8: their bytes
    shared: np.ndarray  # int64: slots of the numbers that names beyond the limit share


@kernel(hot=True)
def cell(slot: int, part: int) -> np.uint64:
    """Return the place of a part of a slot, unsigned so that no index counts from the end."""
    return np.uint64(SLOT_WIDTH * slot + part)


@kernel()
def hash_of(block: np.ndarray, start: int, length: int, mixed: int, carry: int, rest: int) -> int:
    """The hash of a prefix and a name: the prefix's whole words are in ``mixed``, its last ``rest`` bytes in carry."""
    place, left = start, length + rest
    lifted = 8 * rest
    while left > 8:
        given = word(block, place)
        mixed = fold((carry | (given << lifted)) ^ SEED, MIX ^ mixed)
        carry = shifted(given, 64 - lifted) if rest else 0
        place += 8
        left -= 8
    last = (carry | (word(block, place) << lifted)) & ones(left) if left > 0 else carry
    return fold(last ^ SEED, MIX ^ mixed)


@kernel(hot=True)
def short_key(names: NameTable, block: np.ndarray, start: int, total: int, prefix: int) -> int:
    """The 1 to 8 bytes of a name with its prefix, as a word."""
    lifted = 8 * names.prefixes[prefix, REST]
    return (names.prefixes[prefix, CARRY] | (word(block, start) << lifted)) & ones(total)


@kernel(hot=True)
def short_hash(key: int) -> int:
    """`hash_of` a name of up to 8 bytes."""
    return fold(key ^ SEED, MIX)


@kernel(hot=True)
def find(
    names: NameTable, block: np.ndarray, start: int, length: int, prefix: int, key: int, total: int, slot: int
) -> tuple[int, bool]:
    """The slot of a name from its first slot on, and True; or the empty one where it belongs, and False."""
    slots = names.slots
    last = slots.size // SLOT_WIDTH - 1
    while slots[cell(slot, NUMBER)] >= 0:
        if slots[cell(slot, KEY)] == key and slots[cell(slot, LENGTH)] == total:
            if total <= 8:
                return slot, True
            at, before = names.offsets[slots[cell(slot, NUMBER)]], total - length
            if same_bytes(block, start, names.store, at + before, length) and (
                before == 0 or same_bytes(names.heads, names.prefixes[prefix, OFFSET], names.store, at, before)
            ):
                return slot, True
        slot = (slot + 1) & last
    return slot, False


@kernel()
def look_up(names: NameTable, block: np.ndarray, start: int, length: int, prefix: int, add: bool) -> int:
    """The slot of a name, ABSENT when it has none and may not be added. There must be room for one name more.

    Beyond the limit it is a slot that names share.
    """
    total = length + names.prefixes[prefix, SIZE]
    mixed, carry, rest = names.prefixes[prefix, MIXED], names.prefixes[prefix, CARRY], names.prefixes[prefix, REST]
    hashed = hash_of(block, start, length, mixed, carry, rest)
    slots = names.slots
    slot = shifted(hashed, names.sizes[SHIFT])
    if names.sizes[HASHED]:
        return slot
    key = hashed
    if total <= 8:
        key = short_key(names, block, start, total, prefix) if total else 0
    slot, there = find(names, block, start, length, prefix, key, total, slot)
    if there:
        return slot
    if names.shared.size and names.sizes[COUNT] >= names.sizes[LIMIT]:
        return names.shared[shifted(hashed, 20) % names.shared.size]
    if not add:
        return ABSENT
    number, used = names.sizes[COUNT], names.sizes[USED]
    slots[cell(slot, KEY)], slots[cell(slot, LENGTH)], slots[cell(slot, NUMBER)] = key, total, number
    for i in range(total - length):
        names.store[used + i] = names.heads[names.prefixes[prefix, OFFSET] + i]
    for i in range(length):
        names.store[used + total - length + i] = block[start + i]
    names.sizes[COUNT], names.sizes[USED] = number + 1, used + total
    names.offsets[number + 1] = used + total
    return slot


@kernel(hot=True)
def approach(
    names: NameTable,
    source: np.ndarray,
    items: np.ndarray,
    first: int,
    count: int,
    prefixes: np.ndarray,
    found: np.ndarray,
) -> None:
    """Note the key and the first slot of each name of a row, and have ready all that `find` will look at."""
    shift, slots = names.sizes[SHIFT], names.slots
    many = 0  # names of more than eight bytes
    for i in range(count):
        item = np.uint64(first + i)
        start, length, prefix = items[item, START], items[item, SPAN], prefixes[items[item, HEAD]]
        total = length + names.prefixes[prefix, SIZE]
        if 0 < total <= 8:
            key = short_key(names, source, start, total, prefix)
            hashed = short_hash(key)
        else:
            ahead = names.prefixes[prefix]
            hashed = hash_of(source, start, length, ahead[MIXED], ahead[CARRY], ahead[REST])
            key = hashed if total else 0
            found[many, LONG] = i
            many += 1
        found[i, KEYED], found[i, FIRST_SLOT] = key, shifted(hashed, shift)
        fetch(slots, SLOT_WIDTH * found[i, FIRST_SLOT])
    for j in range(many):
        fetch(names.offsets, max(0, slots[cell(found[found[j, LONG], FIRST_SLOT], NUMBER)]))
    for j in range(many):
        fetch(names.store, names.offsets[max(0, slots[cell(found[found[j, LONG], FIRST_SLOT], NUMBER)])])


@kernel(hot=True)
def has_room(names: NameTable, count: int, size: int) -> bool:
    """Return whether that many more names of ``size`` bytes in all can be added."""
    if names.sizes[HASHED]:
        return True
    after = names.sizes[COUNT] + count
    if after > names.sizes[LIMIT]:
        if names.shared.size == 0:
            return False
        after = names.sizes[LIMIT]
    return (
        4 * SLOT_WIDTH * after <= 3 * names.slots.size
        and after < names.offsets.size
        and names.sizes[USED] + size + PADDING <= names.store.size
    )


NameTableT = typeof(
    NameTable(
        np.zeros(1, np.int64), np.zeros(1, np.uint8), np.zeros(1, np.int64), np.zeros(1, np.int64),
        np.zeros((1, 1), np.int64), np.zeros(1, np.uint8), np.zeros(1, np.int64),
    )
)  # fmt: skip


@kernel(types.void(NameTableT, Block, int64[::1], int64[::1], int64[::1], int64, types.boolean))
def number_names(
    names: NameTable, block: np.ndarray, begins: np.ndarray, ends: np.ndarray, numbers: np.ndarray, prefix: int,
    add: bool,
) -> None:  # fmt: skip
    """The number of each name that is in the block."""
    for i in range(numbers.size):
        slot = look_up(names, block, begins[i], ends[i] - begins[i], prefix, add)
        if slot == ABSENT:
            numbers[i] = ABSENT
        else:
            numbers[i] = slot if names.sizes[HASHED] else names.slots[cell(slot, NUMBER)]


@kernel(types.void(NameTableT))
def refill(names: NameTable) -> None:
    """Put every name into its slot again, after the slots were replaced by empty ones."""
    last = names.slots.size // SLOT_WIDTH - 1
    for number in range(names.sizes[COUNT]):
        start = names.offsets[number]
        total = names.offsets[number + 1] - start
        hashed = hash_of(names.store, start, total, 0, 0, 0)
        key = hashed
        if total <= 8:
            key = word(names.store, start) & ones(total) if total else 0
        slot = shifted(hashed, names.sizes[SHIFT])
        while names.slots[cell(slot, NUMBER)] >= 0:
            slot = (slot + 1) & last
        names.slots[cell(slot, KEY)] = key
        names.slots[cell(slot, LENGTH)], names.slots[cell(slot, NUMBER)] = total, number


@kernel(int64(Block, int64))
def mixed_words(block: np.ndarray, count: int) -> int:
    """The hash of that many whole words."""
    mixed = 0
    for i in range(count):
        mixed = fold(word(block, 8 * i) ^ SEED, MIX ^ mixed)
    return mixed


MOST_BITS = 30
NO_LIMIT = 2**62
TAKEN_AT_A_TIME = 2**18  # names, when a vocabulary is read
ONE_IN_SHARED = 8  # one in this many numbers is shared, where there is a limit


class Vocabulary:
    """Names numbered in the order in which they are met, or hashed to 2^bits numbers.

    Examples
    --------
    >>> words = Vocabulary()
    >>> words.numbers(["red", "green", "red"]).tolist()
    [0, 1, 0]
    >>> words[1], len(words)
    ('green', 2)
    >>> words.numbers(["blue"], add=False).tolist()
    [-1]
    """

    def __init__(self, bits: int | None = None) -> None:
        if bits is not None and not 1 <= bits <= MOST_BITS:
            raise ValueError(f"hash bits must be from 1 to {MOST_BITS}, got {bits}; try 18")
        self.bits = bits
        self._first_shared = self._shares = 0
        self._heads = {b"": 0}  # their numbers
        self.room: Callable[[int], int] | None = None  # most names, given the classes
        sizes = np.array([0, 0, 64 - (bits or 6), bits is not None, 0, NO_LIMIT], np.int64)
        slots = np.zeros(2**bits, np.int64) if bits else np.full(64 * SLOT_WIDTH, -1, np.int64)
        self.names = NameTable(
            slots,
            np.zeros(1024, np.uint8),
            np.zeros(65, np.int64),
            sizes,
            np.zeros((1, 5), np.int64),
            np.zeros(PADDING, np.uint8),
            np.zeros(0, np.int64),
        )

    def __len__(self) -> int:
        return 2**self.bits if self.bits else int(self.names.sizes[COUNT])

    def __getitem__(self, number: int) -> str:
        if not 0 <= number < len(self):
            raise IndexError(f"there are {len(self)} names, got number {number}")
        if self.bits:
            return f"#{number}"
        begin, end = self.names.offsets[number : number + 2]
        return self.names.store[begin:end].tobytes().decode("utf-8", "backslashreplace")

    def numbers(self, names: Sequence[str | bytes], prefix: int = 0, add: bool = True) -> np.ndarray:
        """The number of each name; ABSENT for one that is not there and is not to be added."""
        raw = [name.encode("utf-8", "surrogateescape") if isinstance(name, str) else name for name in names]
        offsets = np.cumsum([0, *map(len, raw)], dtype=np.int64)
        block = np.zeros(offsets[-1] + PADDING, np.uint8)
        block[: offsets[-1]] = np.frombuffer(b"".join(raw), np.uint8)
        return self.numbers_of(block, offsets[:-1], offsets[1:], prefix, add)

    def numbers_of(
        self, block: np.ndarray, begins: np.ndarray, ends: np.ndarray, prefix: int = 0, add: bool = True
    ) -> np.ndarray:
        """The number of each name in a block of bytes, which ends in `PADDING` more; ABSENT as for `numbers`."""
        found = np.zeros(len(begins), np.int64)
        if add:
            size = int(self.names.prefixes[prefix, SIZE])
            self.reserve(len(found), int((ends - begins).sum()) + len(found) * size)
        number_names(self.names, block, begins, ends, found, prefix, add)
        return found

    def texts(self) -> list[str]:
        """All names, in the order of their numbers."""
        ends = self.names.offsets[: len(self) + 1].tolist()
        store = self.names.store[: ends[-1]].tobytes()
        return [store[begin:end].decode("utf-8", "backslashreplace") for begin, end in pairwise(ends)]

    def prefixes(self, heads: Sequence[bytes]) -> list[int]:
        """Return numbers for what names begin with, to be given along with the rest of them."""
        before = len(self._heads)
        found = [self._heads.setdefault(head, len(self._heads)) for head in heads]
        if len(self._heads) > before:
            self.names = self.names._replace(**_prefixes([*self._heads]))
        return found

    def reserve(self, count: int, size: int) -> None:
        """Make room for that many more names of ``size`` bytes in all."""
        names = self.names
        if self.bits:
            return
        used, after = int(names.sizes[USED]), int(names.sizes[COUNT]) + count
        if after > names.sizes[LIMIT]:
            if not names.shared.size:
                self._begin_sharing()
                names, used = self.names, int(self.names.sizes[USED])
            after = int(names.sizes[LIMIT])
        if used + size + PADDING > names.store.size:
            names = names._replace(store=_longer(names.store, used + size + PADDING))
        if after >= names.offsets.size:
            names = names._replace(offsets=_longer(names.offsets, after + 1))
        bits = 64 - int(names.sizes[SHIFT])
        if 4 * after > 3 * 2**bits:
            while 4 * after > 3 * 2**bits:
                bits += 1
            names = self._with_slots(names, bits)
        self.names = names

    def _with_slots(self, names: NameTable, bits: int) -> NameTable:
        """Put the names into 2^bits slots; the old ones are given up first, so that memory never holds both."""
        before, none = 64 - int(names.sizes[SHIFT]), np.zeros(0, np.int64)
        self.names = names = names._replace(slots=none)
        try:
            slots = np.full(2**bits * SLOT_WIDTH, -1, np.int64)
        except MemoryError:
            self.names = self._with_slots(names, before)
            raise
        names = names._replace(slots=slots)
        names.sizes[SHIFT] = 64 - bits
        refill(names)
        if names.shared.size:
            names = names._replace(shared=_slots_from(names, self._first_shared, names.shared.size))
        return names

    # -- a limit --------------------------------------------------------------------------------------------------

    @property
    def full(self) -> bool:
        """Return whether names that come now share a number with others."""
        return bool(self.names.shared.size and self.names.sizes[COUNT] >= self.names.sizes[LIMIT])

    def fit_classes(self, classes: int) -> None:
        """Set the limit for this many classes, if `room` is given."""
        if self.room is not None and not self.bits:
            self.limit_to(self.room(classes))

    def limit_to(self, most: int) -> None:
        """Limit the numbers to this many, or to those there are already.

        Examples
        --------
        >>> words = Vocabulary()
        >>> words.limit_to(16)
        >>> _ = words.numbers([f"word{i}" for i in range(100)])
        >>> len(words), words.full
        (16, True)
        >>> int(words.numbers(["word99"])[0]) == int(words.numbers(["word99"])[0])
        True
        """
        sharing, count = int(self.names.shared.size), int(self.names.sizes[COUNT])
        if not sharing:
            self._shares = max(1, most // ONE_IN_SHARED)
            most -= self._shares
        self.names.sizes[LIMIT] = max(count, most)

    def _begin_sharing(self) -> None:
        """Make the numbers that names beyond the limit share."""
        own, first = int(self.names.sizes[LIMIT]), int(self.names.sizes[COUNT])
        many = self._shares
        self.names.sizes[LIMIT] = NO_LIMIT
        self.numbers([f"(shared {i})" for i in range(many)])
        self._share(first, many, own + many)

    def _share(self, first: int, many: int, limit: int) -> None:
        """Names beyond the limit share these numbers."""
        self._first_shared = first
        self.names.sizes[LIMIT] = max(limit, int(self.names.sizes[COUNT]))
        self.names = self.names._replace(shared=_slots_from(self.names, first, many))

    def arrays(self, count: int | None = None) -> dict[str, np.ndarray]:
        """The first ``count`` names as arrays."""
        number = int(self.names.sizes[COUNT]) if count is None or self.bits else count
        offsets = self.names.offsets[: number + 1]
        found = {"names": self.names.store[: offsets[-1]], "offsets": offsets}
        many = self.names.shared.size
        if many and number >= self._first_shared + many:
            found["shared"] = np.array([self._first_shared, many, self.names.sizes[LIMIT]], np.int64)
        return found

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], bits: int | None = None) -> Vocabulary:
        """A vocabulary of names that `arrays` gave."""
        made = cls(bits)
        store, offsets = arrays["names"], arrays["offsets"]
        if (
            offsets.ndim != 1
            or not offsets.size
            or offsets[0]
            or offsets[-1] != store.size
            or (offsets[1:] < offsets[:-1]).any()
        ):
            raise ValueError("the names of the attributes are damaged: their places do not fit together")
        if bits or offsets.size == 1:
            return made
        made.reserve(offsets.size - 1, store.size)
        for begin in range(0, offsets.size - 1, TAKEN_AT_A_TIME):
            places = offsets[begin : begin + TAKEN_AT_A_TIME + 1].astype(np.int64)
            block = np.append(store[places[0] : places[-1]], np.zeros(PADDING, np.uint8))
            numbers = made.numbers_of(block, places[:-1] - places[0], places[1:] - places[0])
            if (numbers != begin + np.arange(numbers.size)).any():
                raise ValueError("the names of the attributes are damaged: one comes twice")
        if "shared" in arrays:
            made._share(*arrays["shared"].tolist())
        return made


def _slots_from(names: NameTable, first: int, many: int) -> np.ndarray:
    """Return the slots of ``many`` numbers from ``first`` on."""
    numbers = names.slots.reshape(-1, SLOT_WIDTH)[:, NUMBER]
    slots = np.flatnonzero((numbers >= first) & (numbers < first + many))
    return slots[np.argsort(numbers[slots])]


def _longer(array: np.ndarray, least: int) -> np.ndarray:
    room = np.zeros(max(least, 2 * array.size), array.dtype)
    room[: array.size] = array
    return room


def _prefixes(heads: Iterable[bytes]) -> dict[str, np.ndarray]:
    joined = b"".join(heads)
    rows, begin = [], 0
    for head in heads:
        whole = len(head) // 8
        block = np.frombuffer(head + bytes(PADDING), np.uint8).copy()
        rest = head[8 * whole :]
        rows.append(
            [
                begin,
                len(head),
                mixed_words(block, whole),
                int.from_bytes(rest.ljust(8, b"\0"), "little", signed=True),
                len(rest),
            ]
        )
        begin += len(head)
    return {
        "prefixes": np.array(rows, np.int64),
        "heads": np.frombuffer(joined + bytes(PADDING), np.uint8).copy(),
    }
