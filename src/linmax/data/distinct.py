"""The distinct values of an array and the place of each value among them: counted, not sorted, where that can be."""

from __future__ import annotations

import numpy as np
from numba import int32, int64

from linmax.jit.compiling import kernel

__all__ = ["distinct_of"]

COUNTED_RANGE = 65_536  # whole numbers in a range up to this are counted
BITS = 32  # places that a word has where the range is short
MANY_VALUES = 131_072  # values from which on a compiled loop is worth while


@kernel(int64(int64[::1], int64, int32[::1]))
def place_few(values: np.ndarray, lowest: int, places: np.ndarray) -> int:
    """Write how far each value is above the lowest; return which places are taken, as bits, 0 if some do not fit."""
    taken, together = 0, 0
    for t in range(values.size):  # a loop of vectors
        place = values[t] - lowest
        places[t] = place & (BITS - 1)
        taken |= 1 << (place & (BITS - 1))
        together |= place
    return taken if 0 <= together < BITS else 0


def _few(numbers: np.ndarray) -> tuple[int, np.ndarray, np.ndarray] | None:
    """`_counted`, if the values lie close to the lowest of the first ones."""
    lowest, places = int(numbers[:BITS].min()), np.empty(numbers.size, np.int32)
    taken = int(place_few(numbers, lowest, places)) if abs(lowest) < 2**62 else 0  # where differences do not overflow
    there = np.array([taken >> bit & 1 for bit in range(taken.bit_length())], np.bool_)
    return (lowest, places, there) if taken else None


def _counted(numbers: np.ndarray) -> tuple[int, np.ndarray, np.ndarray] | None:
    """The lowest number, how far each is above it and which such places are taken; None if the range is long."""
    if numbers.size >= MANY_VALUES and (found := _few(numbers)):
        return found
    lowest, highest = int(numbers.min()), int(numbers.max())
    if highest - lowest >= COUNTED_RANGE:
        return None
    places, there = (numbers - lowest).astype(np.int32), np.zeros(highest - lowest + 1, np.bool_)
    there[places] = True
    return lowest, places, there


def distinct_of(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values, sorted, and their places in the shape of the array.

    Examples
    --------
    >>> values, places = distinct_of(np.array([[7, -1], [-1, 3]]))
    >>> values.tolist(), places.tolist()
    ([-1, 3, 7], [[2, 0], [0, 1]])
    """
    if array.dtype.kind in "iu" and array.size and (array.dtype != np.uint64 or int(array.max()) < 2**63):
        counted = _counted(np.require(array, np.int64, ("C", "W")).ravel())
        if counted:  # sorting would take as long as learning
            lowest, places, there = counted
            if not there.all():
                places = (np.cumsum(there, dtype=np.int32) - 1)[places]
            return (np.flatnonzero(there) + lowest).astype(array.dtype), places.reshape(array.shape)
    values, inverse = np.unique(array, return_inverse=True)
    return values, inverse.reshape(array.shape)
