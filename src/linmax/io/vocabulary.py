"""Names of attributes and classes as numbers: a dictionary that grows, in arrays that compiled code works on.

A vocabulary may have a limit (`Vocabulary.limit_to`). The names met first have numbers of their own; when there is no
room for more, those that come later share the last ones, told by their hash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from linmax.io.name_table import (
    ABSENT,
    COUNT,
    LIMIT,
    NUMBER,
    SHIFT,
    SLOT_WIDTH,
    USED,
    NameTable,
    mixed_words,
    number_names,
    refill,
)  # fmt: skip
from linmax.io.scan import PADDING

__all__ = ["ABSENT", "Vocabulary"]

MOST_BITS = 30
UNLIMITED = 2**62
TAKEN_AT_A_TIME = 2**18  # names, when a vocabulary is read
ONE_IN_SHARED = 8  # one in so many of the numbers is shared, where there is a limit


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
        self._heads: list[bytes] = [b""]
        self.room: Callable[[int], int] | None = None  # most names, given the classes
        sizes = np.array([0, 0, 64 - (bits or 6), bits is not None, 0, UNLIMITED], np.int64)
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
        found = np.zeros(len(raw), np.int64)
        if add:
            self.reserve(len(raw), int(offsets[-1]) + len(raw) * len(self._heads[prefix]))
        number_names(self.names, block, offsets, found, prefix, add)
        return found

    def prefix(self, head: bytes) -> int:
        """A number for what names begin with, to be given along with the rest of them."""
        return self.prefixes([head])[0]

    def prefixes(self, heads: Sequence[bytes]) -> list[int]:
        """The same for many at once."""
        places = {head: place for place, head in enumerate(self._heads)}
        new = [head for head in dict.fromkeys(heads) if head not in places]
        if new:
            places |= {head: len(self._heads) + i for i, head in enumerate(new)}
            self._heads += new
            self.names = self.names._replace(**_prefixes(self._heads))
        return [places[head] for head in heads]

    @property
    def heads(self) -> tuple[bytes, ...]:
        """What names begin with, by the numbers that `prefix` gave."""
        return tuple(self._heads)

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
        """The same names in 2^bits slots. Those of before are given up first, so that memory never holds both."""
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
        """Whether names that come now share a number with others."""
        return bool(self.names.shared.size and self.names.sizes[COUNT] >= self.names.sizes[LIMIT])

    def fit_classes(self, classes: int) -> None:
        """Set the limit for so many classes, where `room` says that there is one."""
        if self.room is not None and not self.bits:
            self.limit_to(self.room(classes))

    def limit_to(self, most: int) -> None:
        """Have at most so many numbers; a limit that is exceeded already ends here.

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
        self.names.sizes[LIMIT] = UNLIMITED
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
            numbers = np.zeros(places.size - 1, np.int64)
            number_names(made.names, block, places - places[0], numbers, 0, True)
            if (numbers != begin + np.arange(numbers.size)).any():
                raise ValueError("the names of the attributes are damaged: one comes twice")
        if "shared" in arrays:
            made._share(*arrays["shared"].tolist())
        return made


def _slots_from(names: NameTable, first: int, many: int) -> np.ndarray:
    """The slots of so many numbers from ``first`` on."""
    numbers = names.slots.reshape(-1, SLOT_WIDTH)[:, NUMBER]
    slots = np.flatnonzero((numbers >= first) & (numbers < first + many))
    return slots[np.argsort(numbers[slots])]


def _longer(array: np.ndarray, least: int) -> np.ndarray:
    room = np.zeros(max(least, 2 * array.size), array.dtype)
    room[: array.size] = array
    return room


def _prefixes(heads: Iterable[bytes]) -> dict[str, Any]:
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
