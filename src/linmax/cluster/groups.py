"""What workers do in a pass: learn a group of shards one after the other, and mix what they learned along the tree.

Each shard starts from the same model (`linmax.cluster.held`). A group holds the models of whole subtrees
(`linmax.cluster.tree`), at most three of a level, however many shards it has learned; of a model that differs from its
start in few rows, these alone (`linmax.cluster.rows`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from linmax.cluster.differences import StateDifference, difference_of, state_bytes
from linmax.cluster.held import Held, Learned, borrowed
from linmax.cluster.merge_checks import shares_by
from linmax.cluster.merge_rows import merge_rows
from linmax.cluster.merging import merge_since
from linmax.cluster.rows import ModelRows
from linmax.cluster.shards import Refused, ShardCounts, State
from linmax.cluster.tree import FAN, Node, children, parent, top
from linmax.cluster.versions import refuse_other_here
from linmax.cluster.voting import HeldFusion
from linmax.cluster.workers import tell
from linmax.models.streams import StreamModel

__all__ = [
    "GroupReport",
    "Mixed",
    "RunPlan",
    "ShardGroup",
    "learn_group",
    "lengthened",
    "mix_groups",
    "report_on",
    "started",
    "whole_model",
]


class RunPlan(NamedTuple):
    """What all tasks of a run have in common."""

    shards: int
    mix: str
    multiplicative: str
    reading: Mapping[str, Any]
    topic: str  # names the run, and under it progress is told
    told: bool = False  # whether anybody watches
    versions: Mapping[str, str] | None = None  # that every worker must have


@dataclass(frozen=True)
class Mixed:
    """The model of a subtree, and what its shards count for: since the model that they started from."""

    state: Learned
    learned: int = 0  # shards with any trial
    trials: int = 0
    updates: int = 0
    mistakes: int = 0


@dataclass
class ShardGroup:
    """Models by node, the counts of shards learned here, and those that failed."""

    mixed: dict[Node, Mixed] = field(default_factory=dict)
    counts: dict[int, ShardCounts] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    columns: tuple[int, int, str] | None = None  # two shards whose columns differ, and in what
    seconds: float = 0.0  # spent here


class GroupReport(NamedTuple):
    """What the driver must know of a group, without its models."""

    nodes: list[Node]
    counts: dict[int, ShardCounts]
    failed: dict[int, str]
    columns: tuple[int, int, str] | None
    seconds: float
    partly: bool  # whether of all models there is only what has changed
    nbytes: int  # of all models


def started(state: State, shards: int) -> ShardGroup:
    """The model from which a pass starts, as the group that the pass before would have left."""
    return ShardGroup({top(shards): Mixed(state)})


def learn_group(
    number: int, groups: list[ShardGroup], plan: RunPlan, places: Sequence[int], *sources: Any
) -> ShardGroup:
    """Learn the shards at these places, each from the model from which the pass starts (see `borrowed`)."""
    began, group = time.perf_counter(), ShardGroup()
    refuse_other_here(plan.versions)
    with borrowed(plan.topic, number, [_only(one).state for one in groups]) as held:
        for place, source in zip(places, sources, strict=True):
            outcome = held.learn(source, plan.reading, by_rows=plan.shards > 1)
            if isinstance(outcome, Refused):
                group.failed[place] = outcome.reason
            else:
                learned, counts = outcome
                group.counts[place] = counts
                group.mixed[0, place] = Mixed(
                    learned, int(counts.trials > 0), counts.trials, counts.updates, counts.mistakes
                )
                _mix_whole(group, held, plan, (0, place))
            if plan.told:
                tell(plan.topic)
        _shorten(group, held)
    group.seconds = time.perf_counter() - began
    return group


def mix_groups(number: int, groups: list[ShardGroup], plan: RunPlan, node: Node, *parts: ShardGroup) -> ShardGroup:
    """The model of a node from groups that hold those of its children."""
    began = time.perf_counter()
    refuse_other_here(plan.versions)
    gathered = ShardGroup({child: mixed for group in parts for child, mixed in group.mixed.items()})
    gathered.mixed = {child: gathered.mixed[child] for child in children(node, plan.shards) if child in gathered.mixed}
    gathered.columns = next((group.columns for group in parts if group.columns), None)
    if gathered.columns is None and gathered.mixed:  # else all its shards failed, as their groups report
        with borrowed(plan.topic, number, [_only(one).state for one in groups]) as held:
            _mix(gathered, held, plan, node)
            _shorten(gathered, held)
    # Those below worked side by side.
    gathered.seconds = time.perf_counter() - began + max((group.seconds for group in parts), default=0.0)
    return gathered


def whole_model(number: int, groups: list[ShardGroup], topic: str, shards: int) -> ShardGroup:
    """The model from which a pass starts, in one piece."""
    with borrowed(topic, number, [_only(one).state for one in groups]) as held:
        description, arrays = held.state
        return started((description, {name: array.copy() for name, array in arrays.items()}), shards)


def report_on(group: ShardGroup) -> GroupReport:
    """What it holds, counts and failures."""
    states = [mixed.state for mixed in group.mixed.values()]
    partly = all(isinstance(state, (ModelRows, StateDifference)) for state in states)
    nbytes = sum(state_bytes(state) if isinstance(state, tuple) else state.nbytes for state in states)
    return GroupReport(list(group.mixed), group.counts, group.failed, group.columns, group.seconds, partly, nbytes)


def _shorten(group: ShardGroup, held: Held | HeldFusion) -> None:
    """Of whole models keep only how they differ from the start, where that is much less to send."""
    for node, mixed in group.mixed.items():
        if isinstance(mixed.state, tuple):
            group.mixed[node] = replace(mixed, state=difference_of(mixed.state, held.state))


def lengthened(number: int, groups: list[ShardGroup], topic: str, group: ShardGroup) -> ShardGroup:
    """The same with whole models in the place of `StateDifference` objects."""
    with borrowed(topic, number, [_only(one).state for one in groups]) as held:
        found = {
            node: replace(mixed, state=mixed.state.applied(held.state))
            if isinstance(mixed.state, StateDifference)
            else mixed
            for node, mixed in group.mixed.items()
        }
    return replace(group, mixed=found)


def _only(group: ShardGroup) -> Mixed:
    (mixed,) = group.mixed.values()
    return mixed


def _mix_whole(group: ShardGroup, held: Held | HeldFusion, plan: RunPlan, node: Node) -> None:
    """Mix upwards as long as all children of the node above are here."""
    last = top(plan.shards)
    while node != last and not group.columns:
        node = parent(node)
        if not all(child in group.mixed for child in children(node, plan.shards)):
            return
        _mix(group, held, plan, node)


def _mix(group: ShardGroup, held: Held | HeldFusion, plan: RunPlan, node: Node) -> None:
    """Put one model in the place of those of the node's children."""
    below = [child for child in children(node, plan.shards) if child in group.mixed]
    parts = [group.mixed[child] for child in below]
    merged = parts[0].state
    if len(parts) > 1:
        shares = shares_by(plan.mix, [(part.learned, part.trials, part.updates, part.mistakes) for part in parts])
        rows = [part.state for part in parts if isinstance(part.state, ModelRows)]
        if len(rows) == len(parts) and isinstance(held, Held):
            merged = merge_rows(held.base(), rows, shares, plan.multiplicative)
        else:
            start = held.looked_at()
            models: list[Any] = [held.made(part.state) for part in parts]
            group.columns = _other_columns(models, below)
            if group.columns:
                return
            last = node == top(plan.shards)
            merged = held.state_of(merge_since(start, models, shares.tolist(), plan.multiplicative, last))
    for child in below:
        del group.mixed[child]
    group.mixed[node] = Mixed(
        merged,
        sum(part.learned for part in parts),
        sum(part.trials for part in parts),
        sum(part.updates for part in parts),
        sum(part.mistakes for part in parts),
    )


def _other_columns(models: Sequence[Any], nodes: Sequence[Node]) -> tuple[int, int, str] | None:
    begun = [place for place, model in enumerate(models) if isinstance(model, StreamModel) and model.engine is not None]
    for place in begun[1:]:
        differ = sorted(set(models[place].dense_names) ^ set(models[begun[0]].dense_names))
        if differ:
            (level, number), (other_level, other) = nodes[place], nodes[begun[0]]
            return number * FAN**level, other * FAN**other_level, ", ".join(differ[:5])
    return None
