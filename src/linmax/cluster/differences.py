"""Differences between states of a model: the numbers in its arrays whose bits differ from those of another state.

An attribute that no trial had keeps its bits, so that a shard of few attributes sends few numbers of a large model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from linmax.util.files import State

__all__ = ["StateDifference", "difference_of", "state_bytes"]

SENT_WHOLE = 1024  # bytes below which an array is sent whole
PLACE = np.dtype(np.uint32)
MOST_CHANGED = 0.5  # of the bytes of the whole: where more would differ, all of it is sent


class ArrayDifference(NamedTuple):
    """Array as the numbers that differ from another one, and those beyond its end."""

    shape: tuple[int, ...]
    places: np.ndarray
    numbers: np.ndarray
    rest: np.ndarray

    def applied(self, base: np.ndarray) -> np.ndarray:
        """Return the array, or the base itself if nothing differs."""
        if self.shape == base.shape and not self.places.size:
            return base
        made, before = np.empty(self.shape, base.dtype), bits_of(base)
        own = bits_of(made)
        common = min(own.size, before.size)
        own[:common], own[common:] = before[:common], self.rest
        own[self.places] = self.numbers
        return made


@dataclass(frozen=True)
class StateDifference:
    """State of a model as its differences from another one."""

    description: dict[str, object]
    whole: dict[str, np.ndarray]
    changed: dict[str, ArrayDifference]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        changed = sum(part.nbytes for one in self.changed.values() for part in one[1:])
        return changed + sum(array.nbytes for array in self.whole.values())

    def applied(self, base: State) -> State:
        """Return the state; arrays that have not changed are the base's own."""
        return self.description, self.whole | {name: one.applied(base[1][name]) for name, one in self.changed.items()}


def state_bytes(state: State) -> int:
    """Return the bytes of all arrays."""
    return sum(array.nbytes for array in state[1].values())


def difference_of(state: State, base: State) -> State | StateDifference:
    """Return how the state differs from the base, or the state itself where that would not be much less.

    Examples
    --------
    >>> base = {"kind": "x"}, {"w": np.zeros(10_000)}
    >>> changed = base[0], {"w": np.append(np.zeros(10_000), [1.0])}
    >>> found = difference_of(changed, base)
    >>> found.nbytes, bool((found.applied(base)[1]["w"] == changed[1]["w"]).all())
    (8, True)
    """
    found, sent = StateDifference(state[0], {}, {}), 0
    for name, array in sorted(state[1].items(), key=lambda item: -item[1].nbytes):  # the largest decides
        before = base[1].get(name, array[:0] if array.ndim else array)
        alike = before.dtype == array.dtype and before.ndim == array.ndim > 0 and before.shape[1:] == array.shape[1:]
        if name not in base[1] or array.nbytes < SENT_WHOLE or not alike:
            found.whole[name] = array
            sent += array.nbytes
        else:
            own, other = bits_of(array), bits_of(before)
            common = min(own.size, other.size)
            differ, rest = own[:common] != other[:common], own[common:]
            sent += int(np.count_nonzero(differ)) * (PLACE.itemsize + array.itemsize) + rest.nbytes
        if sent >= MOST_CHANGED * state_bytes(state):
            return state
        if name not in found.whole:
            places = np.flatnonzero(differ).astype(PLACE)
            found.changed[name] = ArrayDifference(array.shape, places, own[places], rest.copy())
    return found


def bits_of(array: np.ndarray) -> np.ndarray:
    """Return the numbers in a row, as integers with the same bits."""
    return np.ascontiguousarray(array).reshape(-1).view(f"u{array.itemsize}")
