"""Members of one learner on different workers: each plays the stream and logs its hypotheses, then they are combined.

Members do not see each other, so they can run anywhere. A combination, a vote or a stack needs their predictions,
whether they changed, and their hypotheses. These are sent back, and the nodes above process them as on one machine,
with the same result to the last bit. The log holds a hypothesis for each update, 16 bytes for each coordinate; that
limits this to problems with few coordinates, such as fusion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from linmax.cluster.workers import Workers
from linmax.core.contract import KNOWN, Instances
from linmax.data.arrays import Layout
from linmax.engine.engine import Engine, Outcome, Settings
from linmax.engine.loop import start_means
from linmax.engine.notation import parse
from linmax.techniques import average, combine, recycle
from linmax.techniques.averaging import AVERAGE_SCALES
from linmax.techniques.node import NO_RECYCLING, Chunk, Run

__all__ = ["EngineApart", "play_group"]

SCALE_NAMES = {number: name for name, number in AVERAGE_SCALES.items()}


class ApartPlan(NamedTuple):
    """What all parts of an engine have in common."""

    layout: Layout
    k: int
    settings: Settings
    memory: int  # recent instances kept
    logged: bool
    scored: bool
    tracked: bool
    slices: int  # trials in a slice and in a chunk
    chunks: int


class MemberRecord(NamedTuple):
    """What a group of members did in a chunk."""

    predictions: np.ndarray
    changes: np.ndarray
    tables: np.ndarray
    weights: np.ndarray  # of the log, versions that there are
    backlog: np.ndarray
    numbers: np.ndarray
    versions: np.ndarray


def written(run: Run) -> str:
    """A member as text."""
    described: Any = run.rule
    if run.recycling != NO_RECYCLING:
        s, u, passes, budget = run.recycling
        described = recycle(described, s, u, passes, budget or None)
    if run.averaging:
        described = average(described, SCALE_NAMES[run.averaging], run.fade)
    return str(described)


class MembersApart(Engine):
    """Some members of an engine, which keep a record of what they do."""

    def __init__(self, members: Sequence[str], plan: ApartPlan) -> None:
        super().__init__(combine([parse(text) for text in members]), plan.layout, plan.k, plan.settings)
        self.plan = plan
        self.memory, self.logged, self.scored = plan.memory, plan.logged, plan.scored
        if plan.tracked and not self.tracked:
            self.tracked = True
            for member in range(len(self.runs)):
                start_means(self.members, self.state, member)
        self.records: list[MemberRecord] = []

    @property
    def plain(self) -> bool:
        return False

    def slice_length(self, size: int) -> int:  # noqa: ARG002
        return self.plan.slices

    def chunk_length(self, size: int) -> int:  # noqa: ARG002
        return self.plan.chunks

    def play_members(self, chunk: Chunk, margins: np.ndarray) -> int:
        failed = super().play_members(chunk, margins)
        log = chunk.log
        many = int(log.versions.max(initial=0)) + 1 if log.versions.size else 0
        self.records.append(
            MemberRecord(
                chunk.predictions,
                chunk.changes,
                chunk.tables,
                log.weights[:, :many].copy(),
                log.backlog[:, :many].copy(),
                log.numbers[:, :many].copy(),
                log.versions.copy(),
            )
        )
        return failed


def play_group(
    members: Sequence[str], plan: ApartPlan, instances: Instances, labels: np.ndarray
) -> tuple[list[MemberRecord], dict[str, np.ndarray], str]:
    """Play all trials with some members; returns records, their final state, and what went wrong, if anything."""
    group = MembersApart(members, plan)
    try:
        group.run(instances, labels)
    except OverflowError as error:
        return [], {}, str(error)
    return group.records, group.arrays, ""


class EngineApart(Engine):
    """An engine whose members play elsewhere, in as many groups as there are workers."""

    def __init__(self, workers: Workers, learner: Any, layout: Layout, k: int, settings: Settings) -> None:
        super().__init__(learner, layout, k, settings)
        self.workers = workers
        self.replay: list[tuple[np.ndarray, list[MemberRecord]]] = []
        self.place = 0  # of the chunk that is played

    def run(self, instances: Instances, labels: np.ndarray, margins: bool = False, scored: int = 0) -> Outcome:
        """Play the trials, once, from the beginning."""
        if len(self.runs) < 2:
            return super().run(instances, labels, margins, scored)
        size = len(labels)
        plan = ApartPlan(
            self.layout, self.k, self.settings, self.memory, self.logged, self.scored,
            self.tracked, max(1, self.slice_length(size)), max(1, self.chunk_length(size), 8 * self.logged),
        )  # fmt: skip
        self.plan = plan
        count = min(self.workers.count, len(self.runs))
        groups = [np.arange(first, len(self.runs), count) for first in range(count)]
        given = self.workers.keep(instances)
        tasks = [
            self.workers.submit(
                play_group, [written(self.runs[m]) for m in group], plan, given, labels, name=f"members{place}"
            )
            for place, group in enumerate(groups)
        ]
        states = []
        for group, outcome in zip(groups, self.workers.gather(tasks), strict=True):
            if outcome.error:
                raise RuntimeError(f"{written(self.runs[group[0]])} and {len(group) - 1} others: {outcome.error}")
            records, arrays, failed = outcome.result
            if failed:
                raise OverflowError(failed)
            self.replay.append((group, records))
            states.append((group, arrays))
        played = super().run(instances, labels, margins, scored)
        for group, arrays in states:
            self._take(group, arrays)
        return played

    def slice_length(self, size: int) -> int:
        return self.plan.slices if self.replay else super().slice_length(size)

    def chunk_length(self, size: int) -> int:
        return self.plan.chunks if self.replay else super().chunk_length(size)

    def play_members(self, chunk: Chunk, margins: np.ndarray) -> int:
        """Take what the members did elsewhere from the records."""
        if not self.replay:  # one member stays here
            return super().play_members(chunk, margins)
        log = chunk.log
        for group, records in self.replay:
            record = records[self.place]
            chunk.predictions[group], chunk.changes[group] = record.predictions, record.changes
            if chunk.tables.size:
                chunk.tables[group] = record.tables
            if self.logged:
                many = record.weights.shape[1]
                log.weights[group, :many], log.numbers[group, :many] = record.weights, record.numbers
                if record.backlog.shape[2]:
                    log.backlog[group, :many] = record.backlog
                log.versions[group] = record.versions
        self.place += 1
        known = self.state.shape[KNOWN]
        self.state.shape[KNOWN] = max(known, int(chunk.seen.max(initial=-1)) + 1)
        return -1

    def _take(self, group: np.ndarray, arrays: Mapping[str, np.ndarray]) -> None:
        """The state of some members."""
        for name, mine in self.state._asdict().items():
            theirs = arrays[f"state.{name}"]
            if name in ("memory", "scalars", "backlog"):  # there is room for the largest member of all
                mine[group, : theirs.shape[1]] = theirs
            elif name != "shape":
                mine[group] = theirs
        if self.memory:
            self.tail_uses[group] = arrays["tail.uses"]
