"""What the driver knows of a pass: who holds which models, what the pass starts from, and how many shards are done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from linmax.cluster.groups import GroupReport
from linmax.cluster.results import Progress
from linmax.cluster.tree import Node

__all__ = ["Counter", "Holder", "Start"]

MOST_PASSES = 16  # passes of which what changed is held


class Holder(NamedTuple):
    """The task of a group, and the nodes whose models it holds, or will."""

    task: Any
    nodes: list[Node]
    report: GroupReport | None = None

    def told(self, report: GroupReport) -> Holder:
        """The same, once it is known."""
        return Holder(self.task, report.nodes, report)


class Start:
    """The model from which a pass starts: the tasks that hold a whole model, and what was mixed in the passes since."""

    def __init__(self, group: Any, report: GroupReport) -> None:
        self.groups, self.sizes = [group], [report.nbytes]

    def restart(self, group: Any) -> None:
        """Put the task of a whole model in the place of all."""
        self.groups, self.sizes = [group], self.sizes[:1]

    def add(self, group: Any, report: GroupReport) -> None:
        """What was mixed in a pass."""
        if not report.partly:
            self.groups, self.sizes = [], []
        self.groups, self.sizes = [*self.groups, group], [*self.sizes, report.nbytes]

    @property
    def long(self) -> bool:
        """Whether a whole model would be less to hold, and to send to a worker that has none."""
        return len(self.groups) > MOST_PASSES or sum(self.sizes[1:]) > self.sizes[0]


class Counter:
    """Counts the shards of a pass that are done, and tells who watches."""

    def __init__(self, number: int, done: int, shards: int, watch: Callable[[Progress], None] | None) -> None:
        self.number, self.done, self.shards, self.watch = number, done, shards, watch

    def __call__(self) -> None:
        if self.done < self.shards:  # a worker that died may have told of shards that are learned again
            self.done += 1
            if self.watch is not None:
                self.watch(Progress(self.number, self.done, self.shards))

    def finish(self) -> None:
        """All are done, also those that nobody told of."""
        while self.done < self.shards:
            self()
