"""The groups of members that the pool for attributes is made of: one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from linmax.learners.dense_members import DenseMembers
from linmax.learners.members import Group
from linmax.learners.nearest_rows import NearestRows
from linmax.learners.pair_members import PairMembers
from linmax.learners.recent_members import RecentLabels
from linmax.learners.sparse_linear import LINEAR
from linmax.learners.sparse_members import ROOM, SparseMembers

__all__ = ["REGISTRY", "Registry", "bytes_of_attribute", "first_slots", "sizes", "width_of"]

CLASS_BLOCK = 4  # numbers of classes that members have room for are multiples of it, but for those in `NEVER_PADDED`
NEVER_PADDED = (5, 6)  # where much of the memory would be room

Registry = Mapping[str, Callable[[], Group]]

# By the names that saved models know them by, in the order in which they are fused.
REGISTRY: dict[str, Callable[[], Group]] = {
    "sparse": SparseMembers,
    "recent": RecentLabels,
    "dense": DenseMembers,
    "pairs8": partial(PairMembers, 8),
    "pairs16": partial(PairMembers, 16),
    "nearest": NearestRows,
}


def sizes() -> dict[str, int]:
    """How many members each group has."""
    return {name: len(make().members) for name, make in REGISTRY.items()}


def first_slots() -> dict[str, int]:
    """A place of its own for each member of all groups: where those of each group begin."""
    found, place = {}, 0
    for name, members in sizes().items():
        found[name] = place
        place += members
    return found


def width_of(k: int) -> int:
    """Classes that the members have room for."""
    return k if k in NEVER_PADDED else CLASS_BLOCK * -(-k // CLASS_BLOCK)


def bytes_of_attribute(k: int) -> float:
    """About how much memory a sparse attribute takes with k classes."""
    return (1.0 + 1.0 / ROOM) * ((LINEAR + 1) * 4 * width_of(k) + 8)
