"""The groups of members that the pool for attributes is made of: one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from linmax.learners.dense_members import DenseMembers
from linmax.learners.members import Group
from linmax.learners.nearest_rows import NearestRows
from linmax.learners.pair_members import PairMembers
from linmax.learners.recent_members import RecentLabels
from linmax.learners.sparse_members import SparseMembers

__all__ = ["REGISTRY", "Registry", "first_slots", "sizes"]

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
