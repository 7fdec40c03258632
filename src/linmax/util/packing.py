"""Arrays made small without loss: zeros left out, numbers in the smallest type that holds them, the rest deflated.

Most of a model's numbers are 0, or whole, or were float32 before; leaving that out takes as long as copying it, so that
saving stays as fast as the disk. Arrays are packed and unpacked piece by piece, so that there is never a second copy
of a large one. What is unpacked is at most `RATIO` times as large as what is stored: a file cannot ask for much more
memory than it has bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

__all__ = ["RATIO", "Stored", "as_it_is", "pack", "unpack", "unpacked_size"]

RATIO = 64
WORTHWHILE = 4096  # bytes of an array that is packed at all
SHARE_OF_ZEROS = 0.125  # share of zeros that are left out
LEVEL = 1  # of deflating: the fastest
PACKED_AT_A_TIME = 2**18  # numbers that are worked on at a time; whole bytes of the mask
ZEROS_SUFFIX = "#zeros"
SMALLER = {"i": ("<u1", "<i1", "<u2", "<i2", "<u4", "<i4"), "f": ("<f4",)}

Pieces = Callable[[], Iterator[np.ndarray]]


class Stored(NamedTuple):
    """An array as a file holds it; its bytes come in pieces, each time they are asked for."""

    dtype: np.dtype
    shape: tuple[int, ...]
    pieces: Pieces

    @property
    def nbytes(self) -> int:
        """The bytes of all pieces together."""
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize


def as_it_is(array: np.ndarray) -> Stored:
    """An array that is stored without being packed."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return Stored(array.dtype, array.shape, lambda: iter([flat] if flat.size else []))


def pack(arrays: Mapping[str, np.ndarray]) -> tuple[dict[str, Stored], dict[str, dict[str, Any]]]:
    """The arrays as they are stored, and how each that was packed is unpacked. They must stay as they are meanwhile.

    Examples
    --------
    >>> stored, how = pack({"weights": np.zeros(10_000)})
    >>> sum(part.nbytes for part in stored.values()), unpack(stored, how)["weights"].shape
    (1250, (10000,))
    """
    stored: dict[str, Stored] = {}
    how: dict[str, dict[str, Any]] = {}
    for name, given in arrays.items():
        if given.nbytes < WORTHWHILE or given.dtype.kind not in "fiu":
            stored[name] = as_it_is(given)
            continue
        how[name] = {"dtype": given.dtype.newbyteorder("<").str, "shape": list(given.shape)}
        stored |= _packed(name, np.ascontiguousarray(given).reshape(-1), how[name])
    return stored, how


def _packed(name: str, flat: np.ndarray, how: dict[str, Any]) -> dict[str, Stored]:
    found: dict[str, Stored] = {}
    rising = _rises(flat)
    if rising:
        how["rising"] = True
    numbers: Pieces = partial(_numbers, flat, rising)
    others, kind = _summary(numbers, flat.dtype)
    zeros = others <= (1.0 - SHARE_OF_ZEROS) * flat.size
    if zeros:
        how["zeros"] = True
        found[name + ZEROS_SUFFIX] = _bytes(-(-flat.size // 8), partial(_masks, numbers))
    how["values"] = kind.newbyteorder("<").str
    size = (others if zeros else flat.size) * kind.itemsize
    values: Pieces = partial(_values, numbers, zeros, kind)
    if kind.kind != "f" and size:
        deflated = _deflated(values)
        many = sum(part.size for part in deflated)
        if many < size and many * RATIO >= unpacked_size({name: how}):
            how["deflated"] = True
            size, values = many, partial(iter, deflated)
    return found | {name: _bytes(size, values)}


def _bytes(size: int, pieces: Pieces) -> Stored:
    return Stored(np.dtype(np.uint8), (size,), pieces)


def _cut(flat: np.ndarray) -> Iterator[np.ndarray]:
    return (flat[begin : begin + PACKED_AT_A_TIME] for begin in range(0, flat.size, PACKED_AT_A_TIME))


def _rises(flat: np.ndarray) -> bool:
    """Whether whole numbers >= 0 never fall."""
    if flat.dtype.kind != "i" or flat[0] < 0:
        return False
    return all(bool((after >= before).all()) for before, after in zip(_cut(flat[:-1]), _cut(flat[1:]), strict=True))


def _numbers(flat: np.ndarray, rising: bool) -> Iterator[np.ndarray]:
    """The numbers, or by how much each is larger than the one before."""
    last = flat.dtype.type(0)
    for part in _cut(flat):
        yield np.diff(part, prepend=last) if rising else part
        last = part[-1]


def _others(part: np.ndarray) -> np.ndarray:
    """Where a number is not 0, by its bits: -0.0 is kept."""
    return part.view(f"u{part.itemsize}") != 0


def _summary(numbers: Pieces, kind: np.dtype) -> tuple[int, np.dtype]:
    """How many numbers are not 0, and the smallest type that holds them all."""
    others, least, most, single = 0, 0, 0, kind == np.float64
    for part in numbers():
        others += int(np.count_nonzero(_others(part)))
        if kind.kind == "i":
            least, most = min(least, int(part.min())), max(most, int(part.max()))
        elif single:
            with np.errstate(over="ignore", invalid="ignore"):
                back = part.astype(np.float32).astype(np.float64)
            single = bool((back.view(np.int64) == part.view(np.int64)).all())
    if not others:
        return others, kind
    if kind.kind == "i":
        for smaller in map(np.dtype, SMALLER["i"]):
            limits = np.iinfo(smaller)
            if limits.min <= least and most <= limits.max and limits.bits < 8 * kind.itemsize:
                return others, smaller
    return others, np.dtype(SMALLER["f"][0]) if single else kind


def _masks(numbers: Pieces) -> Iterator[np.ndarray]:
    return (np.packbits(_others(part)) for part in numbers())


def _values(numbers: Pieces, zeros: bool, kind: np.dtype) -> Iterator[np.ndarray]:
    for part in numbers():
        kept = part[_others(part)] if zeros else part
        with np.errstate(over="ignore", invalid="ignore"):
            small = kept.astype(kind, copy=False)
        if small.size:
            yield small.view(np.uint8)


def _deflated(values: Pieces) -> list[np.ndarray]:
    deflater = zlib.compressobj(LEVEL)
    parts = [*(deflater.compress(part.data) for part in values()), deflater.flush()]
    return [np.frombuffer(part, np.uint8) for part in parts if part]


def unpacked_size(how: Mapping[str, Mapping[str, Any]]) -> int:
    """The bytes of all arrays once they are unpacked."""
    return sum(
        int(np.prod([int(n) for n in entry["shape"]], dtype=object)) * np.dtype(entry["dtype"]).itemsize
        for entry in how.values()
    )


def unpack(stored: Mapping[str, Stored], how: Mapping[str, Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """The arrays that `pack` was given; raises ValueError, KeyError or zlib.error if they do not fit together."""
    found = {name: _whole(array) for name, array in stored.items() if name.removesuffix(ZEROS_SUFFIX) not in how}
    for name, entry in how.items():
        values, mask = stored[name], stored[name + ZEROS_SUFFIX] if entry.get("zeros") else None
        size, room = unpacked_size({name: entry}), values.nbytes + (mask.nbytes if mask else 0)
        if np.dtype(entry["dtype"]).kind not in "fiu" or size > RATIO * room:
            raise ValueError(f"array {name!r} announces {size} bytes, too many for those stored")
        found[name] = _unpacked(entry, values, mask)
    return found


def _whole(stored: Stored) -> np.ndarray:
    array = np.empty(stored.shape, stored.dtype)
    content, place = array.reshape(-1).view(np.uint8), 0
    for part in stored.pieces():
        content[place : place + part.size] = part
        place += part.size
    return array


def _unpacked(entry: Mapping[str, Any], values: Stored, mask: Stored | None) -> np.ndarray:
    kind = np.dtype(entry["values"])
    array = np.zeros(entry["shape"], np.dtype(entry["dtype"]))
    flat = array.reshape(-1)
    given = _Reader(_inflated(values, flat.nbytes) if entry.get("deflated") else values.pieces())
    masks = _Reader(mask.pieces() if mask else iter(()))
    last = flat.dtype.type(0)
    for part in _cut(flat):
        if mask is None:
            part[:] = given.take(part.size * kind.itemsize).view(kind)
        else:
            there = np.unpackbits(masks.take(-(-part.size // 8)), count=part.size).astype(bool)
            part[there] = given.take(np.count_nonzero(there) * kind.itemsize).view(kind)
        if entry.get("rising"):
            part[0] += last
            np.cumsum(part, out=part)
            last = part[-1]
    if given.left or masks.left:
        raise ValueError("more numbers are stored than there is room for")
    return array


def _inflated(values: Stored, most: int) -> Iterator[np.ndarray]:
    """The content of deflated bytes; ValueError when it is more than ``most`` bytes."""
    inflater = zlib.decompressobj()
    for part in values.pieces():
        rest = part.tobytes()
        while rest:
            content = inflater.decompress(rest, PACKED_AT_A_TIME)
            most -= len(content)
            if most < 0:
                raise ValueError("more numbers are stored than there is room for")
            yield np.frombuffer(content, np.uint8)
            rest = inflater.unconsumed_tail
    yield np.frombuffer(inflater.flush(), np.uint8)


class _Reader:
    """Bytes that come in pieces, taken in other pieces."""

    def __init__(self, pieces: Iterator[np.ndarray]) -> None:
        self._pieces = pieces
        self._rest = np.zeros(0, np.uint8)

    def take(self, size: int) -> np.ndarray:
        """The next bytes; ValueError when there are not so many."""
        parts, many = [self._rest], self._rest.size
        while many < size:
            part = next(self._pieces, None)
            if part is None:
                raise ValueError(f"{size - many} bytes are missing")
            parts.append(part)
            many += part.size
        joined = np.concatenate(parts) if len(parts) > 1 else self._rest
        self._rest = joined[size:]
        return joined[:size]

    @property
    def left(self) -> bool:
        """Whether there are bytes that nobody took."""
        return bool(self._rest.size) or any(part.size for part in self._pieces)
