"""Names as numbers, in arrays that compiled code works on: what `linmax.io.vocabulary` is made of.

Open addressing over the bytes of the names. A slot holds the name's first eight bytes when it has no more (else a
hash of it), its length, its number, and a stamp that says where in the present line it was met last. Longer names are
compared byte by byte with the store, so that two names never become one unless hashing is asked for. Beyond a limit
names share slots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int64, typeof, types

from linmax.io.scan import MIX, PADDING, SEED, Block, fold, ones, same_bytes, shifted, word
from linmax.jit.compiling import kernel
from linmax.jit.prefetch import fetch

__all__ = [
    "ABSENT",
    "COUNT",
    "HASHED",
    "LIMIT",
    "NUMBER",
    "PREFIX",
    "SERIAL",
    "SHIFT",
    "SIZE",
    "SLOT_WIDTH",
    "SPAN",
    "START",
    "TOKEN",
    "USED",
    "NameTable",
    "NameTableT",
    "approach",
    "cell",
    "find",
    "has_room",
    "look_up",
    "mixed_words",
    "number_names",
    "refill",
]  # fmt: skip

KEY, LENGTH, NUMBER, STAMP = range(4)  # in a slot; the stamp is alone when names are hashed
SLOT_WIDTH = 4
COUNT, USED, SHIFT, HASHED, SERIAL, LIMIT = range(6)  # in `sizes`
OFFSET, SIZE, MIXED, CARRY, REST = range(5)  # of a prefix: where, how long, its whole words hashed, the bytes left over
# Columns of the tokens of a row: where the name is, how long, and what goes before it; its key and first slot. The last
# lists those that are long.
START, SPAN, PREFIX, KEYED, SLOT, LONG, TOKEN = range(7)
ABSENT = -1


class NameTable(NamedTuple):
    """What the kernels see of a vocabulary."""

    slots: np.ndarray  # int64, SLOT_WIDTH a slot, or only the stamp when names are hashed
    store: np.ndarray  # uint8: the names one after the other
    offsets: np.ndarray  # int64: where each begins
    sizes: np.ndarray  # int64 (6,): names, bytes used, 64 - lg slots, whether hashed, lines stamped, most names
    prefixes: np.ndarray  # int64 (prefixes, 5): what a name may begin with
    heads: np.ndarray  # uint8: their bytes
    shared: np.ndarray  # int64: slots of the numbers that names beyond the limit share


@kernel(hot=True)
def cell(slot: int, part: int) -> np.uint64:
    """Where a part of a slot is; unsigned, so that no index counts from the end."""
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
def approach(names: NameTable, source: np.ndarray, tokens: np.ndarray, count: int) -> None:
    """Note the key and the first slot of each name of a row, and have ready all that `find` will look at."""
    shift, slots = names.sizes[SHIFT], names.slots
    many = 0  # names of more than eight bytes
    for i in range(count):
        start, length, prefix = tokens[i, START], tokens[i, SPAN], tokens[i, PREFIX]
        total = length + names.prefixes[prefix, SIZE]
        if 0 < total <= 8:
            key = short_key(names, source, start, total, prefix)
            hashed = short_hash(key)
        else:
            ahead = names.prefixes[prefix]
            hashed = hash_of(source, start, length, ahead[MIXED], ahead[CARRY], ahead[REST])
            key = hashed if total else 0
            tokens[many, LONG] = i
            many += 1
        tokens[i, KEYED], tokens[i, SLOT] = key, shifted(hashed, shift)
        fetch(slots, SLOT_WIDTH * tokens[i, SLOT])
    for j in range(many):
        fetch(names.offsets, max(0, slots[cell(tokens[tokens[j, LONG], SLOT], NUMBER)]))
    for j in range(many):
        fetch(names.store, names.offsets[max(0, slots[cell(tokens[tokens[j, LONG], SLOT], NUMBER)])])


@kernel(hot=True)
def has_room(names: NameTable, count: int, size: int) -> bool:
    """Whether that many more names of ``size`` bytes in all can be added."""
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


@kernel(types.void(NameTableT, Block, int64[::1], int64[::1], int64, types.boolean))
def number_names(
    names: NameTable, block: np.ndarray, offsets: np.ndarray, numbers: np.ndarray, prefix: int, add: bool
) -> None:
    """The number of each name that the block holds one after the other."""
    for i in range(numbers.size):
        slot = look_up(names, block, offsets[i], offsets[i + 1] - offsets[i], prefix, add)
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
