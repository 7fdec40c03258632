"""Differences between states of a model: the blocks of its arrays whose bits differ from those of another state.

An attribute that no trial had keeps its bits, so that a shard of few attributes sends few blocks of a large model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

__all__ = ["State", "StateDifference", "difference_of", "state_bytes"]

State = tuple[dict[str, Any], dict[str, np.ndarray]]

BLOCK_BYTES = 64
SENT_WHOLE = 1024  # bytes below which an array is sent whole
MOST_CHANGED = 0.5  # of the bytes of the whole: where more would differ, all of it is sent


class ChangedBlocks(NamedTuple):
    """Array as the blocks that differ from another one, and the bytes beyond the other's last block."""

    shape: tuple[int, ...]
    places: np.ndarray
    blocks: np.ndarray
    rest: np.ndarray


@dataclass(frozen=True)
class StateDifference:
    """State of a model as its differences from another one."""

    description: dict[str, Any]
    whole: dict[str, np.ndarray]
    changed: dict[str, ChangedBlocks]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        blocks = (part.nbytes for one in self.changed.values() for part in one[1:])
        return sum(array.nbytes for array in self.whole.values()) + sum(blocks)

    def applied(self, base: State) -> State:
        """Return the state; arrays that have not changed are the base's own."""
        arrays = {name: _applied(one, base[1][name]) for name, one in self.changed.items()}
        return self.description, self.whole | arrays


def state_bytes(state: State) -> int:
    """Bytes of all arrays."""
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
    whole: dict[str, np.ndarray] = {}
    changed: dict[str, ChangedBlocks] = {}
    for name, array in state[1].items():
        if _comparable(array, base[1].get(name)):
            changed[name] = _changed(array, base[1][name])
        else:
            whole[name] = array
    found = StateDifference(state[0], whole, changed)
    return found if found.nbytes < MOST_CHANGED * state_bytes(state) else state


def _comparable(array: np.ndarray, base: np.ndarray | None) -> bool:
    """Return whether the arrays have the same type and shape, except for the number of rows."""
    if base is None or array.nbytes < SENT_WHOLE:
        return False
    return array.dtype == base.dtype and array.ndim > 0 and array.shape[1:] == base.shape[1:]


def _flat(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _changed(array: np.ndarray, base: np.ndarray) -> ChangedBlocks:
    own, before = _flat(array), _flat(base)
    common = _whole_blocks(own.size, before.size)
    blocks = own[:common].view(np.uint64).reshape(-1, BLOCK_BYTES // 8)
    differs = (blocks != before[:common].view(np.uint64).reshape(blocks.shape)).any(axis=1)
    places = np.flatnonzero(differs).astype(np.uint32)
    rest = own[common:]
    if own.size == before.size and np.array_equal(rest, before[common:]):
        rest = rest[:0]
    return ChangedBlocks(array.shape, places, blocks[places], rest.copy())


def _applied(one: ChangedBlocks, base: np.ndarray) -> np.ndarray:
    if one.shape == base.shape and not one.places.size and not one.rest.size:
        return base
    made = np.empty(one.shape, base.dtype)
    own, before = made.reshape(-1).view(np.uint8), _flat(base)
    common = _whole_blocks(own.size, before.size)
    own[:common] = before[:common]
    own[:common].view(np.uint64).reshape(-1, BLOCK_BYTES // 8)[one.places] = one.blocks
    own[common:] = one.rest if one.rest.size else before[common : own.size]
    return made


def _whole_blocks(size: int, other: int) -> int:
    return min(size, other) // BLOCK_BYTES * BLOCK_BYTES
