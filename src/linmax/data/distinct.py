"""The distinct values of an array and the place of each value among them: counted, not sorted, where that can be."""

from __future__ import annotations

import numpy as np
from numba import int32, int64, types, uint8

from linmax.jit.compiling import kernel

__all__ = ["distinct_of"]

COUNTED_RANGE = 65_536  # whole numbers in a range up to this are counted
BITS = 64  # in a word: a place for each where the range is short


@kernel(types.void(int64[::1], int64, int32[::1], uint8[::1]))
def place_values(values: np.ndarray, lowest: int, places: np.ndarray, there: np.ndarray) -> None:
    """How far each value is above the lowest, and which such places are taken."""
    if there.size <= BITS:  # a loop of vectors
        taken = np.uint64(0)
        for t in range(values.size):
            place = np.uint64(values[t] - lowest)
            places[t] = place
            taken |= np.uint64(1) << place
        for bit in range(there.size):
            there[bit] = (taken >> np.uint64(bit)) & np.uint64(1)
        return
    for t in range(values.size):
        place = np.uint64(values[t] - lowest)
        places[t] = place
        there[place] = 1


def distinct_of(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values, sorted, and their places in the shape of the array.

    Examples
    --------
    >>> values, places = distinct_of(np.array([[7, -1], [-1, 3]]))
    >>> values.tolist(), places.tolist()
    ([-1, 3, 7], [[2, 0], [0, 1]])
    """
    if array.dtype.kind in "iu" and array.size:
        lowest, highest = int(array.min()), int(array.max())
        if highest - lowest < COUNTED_RANGE and highest < 2**63:  # sorting would take as long as learning
            places, there = np.zeros(array.size, np.int32), np.zeros(highest - lowest + 1, np.uint8)
            place_values(np.require(array, np.int64, ("C", "W")).ravel(), lowest, places, there)
            if not there.all():
                places = (np.cumsum(there, dtype=np.int32) - 1)[places]
            return (np.flatnonzero(there) + lowest).astype(array.dtype), places.reshape(array.shape)
    values, inverse = np.unique(array, return_inverse=True)
    return values, inverse.reshape(array.shape)
