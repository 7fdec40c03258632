"""Arrays made small without loss: zeros left out, numbers in the smallest type that holds them, the rest deflated.

Most of a model's numbers are 0, or whole, or were float32 before; leaving that out takes as long as copying it, so that
saving stays as fast as the disk. What is unpacked is at most `RATIO` times as large as what is stored: a file cannot
ask for much more memory than it has bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["RATIO", "pack", "unpack", "unpacked_size"]

RATIO = 64
WORTHWHILE = 4096  # bytes of an array that is packed at all
SHARE_OF_ZEROS = 0.125  # share of zeros that are left out
LEVEL = 1  # of deflating: the fastest
ZEROS_SUFFIX = "#zeros"
SMALLER = {"i": ("<u1", "<i1", "<u2", "<i2", "<u4", "<i4"), "f": ("<f4",)}


def pack(arrays: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], dict[str, dict[str, Any]]]:
    """The arrays as they are stored, and how each that was packed is unpacked.

    Examples
    --------
    >>> stored, how = pack({"weights": np.zeros(10_000)})
    >>> sum(part.nbytes for part in stored.values()), unpack(stored, how)["weights"].shape
    (1250, (10000,))
    """
    stored: dict[str, np.ndarray] = {}
    how: dict[str, dict[str, Any]] = {}
    for name, given in arrays.items():
        array = np.ascontiguousarray(given)
        if array.nbytes < WORTHWHILE or array.dtype.kind not in "fiu":
            stored[name] = array.reshape(given.shape)
            continue
        how[name] = {"dtype": array.dtype.newbyteorder("<").str, "shape": list(given.shape)}
        stored |= _packed(name, array.reshape(-1), how[name])
    return stored, how


def _packed(name: str, flat: np.ndarray, how: dict[str, Any]) -> dict[str, np.ndarray]:
    parts: dict[str, np.ndarray] = {}
    if flat.dtype.kind == "i" and (flat[1:] >= flat[:-1]).all() and flat[0] >= 0:
        flat, how["rising"] = np.diff(flat, prepend=flat.dtype.type(0)), True
    there = flat.view(f"u{flat.itemsize}") != 0  # by their bits: -0.0 is kept
    if np.count_nonzero(there) <= (1.0 - SHARE_OF_ZEROS) * flat.size:
        parts[name + ZEROS_SUFFIX], flat = np.packbits(there), flat[there]
        how["zeros"] = True
    small = _narrowed(flat)
    how["values"] = small.dtype.newbyteorder("<").str
    raw = small.view(np.uint8)
    if small.dtype.kind != "f" and raw.size:
        deflated = np.frombuffer(zlib.compress(raw.data, LEVEL), np.uint8)
        if deflated.size < raw.size and deflated.size * RATIO >= unpacked_size({name: how}):
            raw, how["deflated"] = deflated, True
    return parts | {name: raw}


def _narrowed(flat: np.ndarray) -> np.ndarray:
    """The same numbers in the smallest type that holds them all."""
    if flat.dtype.kind == "i" and flat.size:
        least, most = int(flat.min()), int(flat.max())
        for kind in SMALLER["i"]:
            limits = np.iinfo(kind)
            if limits.min <= least and most <= limits.max and limits.bits < 8 * flat.itemsize:
                return flat.astype(kind)
    if flat.dtype == np.float64 and flat.size:
        with np.errstate(over="ignore", invalid="ignore"):
            small = flat.astype(np.float32)
        if (small.astype(np.float64).view(np.int64) == flat.view(np.int64)).all():
            return small
    return flat


def unpacked_size(how: Mapping[str, Mapping[str, Any]]) -> int:
    """The bytes of all arrays once they are unpacked."""
    return sum(
        int(np.prod([int(n) for n in entry["shape"]], dtype=object)) * np.dtype(entry["dtype"]).itemsize
        for entry in how.values()
    )


def unpack(stored: Mapping[str, np.ndarray], how: Mapping[str, Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """The arrays that `pack` was given; raises ValueError, KeyError or zlib.error if they do not fit together."""
    found = {name: array for name, array in stored.items() if name.removesuffix(ZEROS_SUFFIX) not in how}
    for name, entry in how.items():
        dtype, shape, raw = np.dtype(entry["dtype"]), entry["shape"], stored[name]
        size = unpacked_size({name: entry})
        if dtype.kind not in "fiu" or size > RATIO * (raw.size + stored.get(name + ZEROS_SUFFIX, raw[:0]).size):
            raise ValueError(f"array {name!r} announces {size} bytes, too many for those stored")
        content: Any = raw
        if entry.get("deflated"):
            content = zlib.decompressobj().decompress(raw.tobytes(), size + 1)
        values = np.frombuffer(content, np.dtype(entry["values"])).astype(dtype)
        if entry.get("zeros"):
            there = np.unpackbits(stored[name + ZEROS_SUFFIX], count=size // dtype.itemsize).astype(bool)
            flat = np.zeros(there.size, dtype)
            flat[there] = values
        else:
            flat = values
        if entry.get("rising"):
            flat = np.cumsum(flat, dtype=dtype)
        found[name] = flat.reshape(shape)
    return found
