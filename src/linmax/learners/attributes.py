"""Descriptions of the pool for attributes and of its groups by themselves; at work they are `running_pool`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from linmax.learners import Description, Running
from linmax.learners.attribute_kinds import DENSE, SPARSE, UNDECIDED
from linmax.learners.members import Group
from linmax.learners.running_pool import RunningPool

__all__ = ["ATTRIBUTE_KINDS", "AttributePool", "GroupLearner"]

ATTRIBUTE_KINDS = {"": UNDECIDED, "dense": DENSE, "sparse": SPARSE}


@dataclass(frozen=True)
class AttributePool(Description):
    """Description of the pool; made by ``linmax.vr_combine(pool="attributes")``.

    ``kind`` is "dense" or "sparse" if it is not to be decided by the data.
    """

    kind: str = ""
    name: ClassVar[str] = "attributes"
    from_zero: ClassVar[bool] = False
    makes_room: ClassVar[bool] = True
    unmixable: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if self.kind not in ATTRIBUTE_KINDS:
            raise ValueError(f"kind must be dense or sparse, got {self.kind!r}; leave it out and the data decide")

    def __str__(self) -> str:
        return f"{self.name}({self.kind})" if self.kind else self.name

    def start(self, size: int) -> Running:
        return RunningPool(ATTRIBUTE_KINDS[self.kind])


@dataclass(frozen=True)
class GroupLearner(Description):
    """A group of members by itself, with the first trials kept and learned again as in the pool."""

    from_zero: ClassVar[bool] = False
    makes_room: ClassVar[bool] = True
    unmixable: ClassVar[str] = ""

    def group(self) -> Group:
        """The group, which has seen nothing."""
        raise NotImplementedError

    def start(self, size: int) -> Running:
        return RunningPool(DENSE, {self.name: self.group})
