"""What workers do in a pass: learn a group of shards one after the other, and mix what they learned along the tree.

Each shard starts from the same model. A group holds the models of whole subtrees (`linmax.cluster.tree`): at most three
of a level, however many shards it has learned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from linmax.cluster.merge_checks import shares_by
from linmax.cluster.merging import merge_since
from linmax.cluster.shards import Refused, ShardCounts, State, learn_shard, same_names
from linmax.cluster.tree import FAN, Node, children, parent, top
from linmax.cluster.workers import tell
from linmax.models.streams import StreamModel

__all__ = ["Group", "Mixed", "Plan", "Report", "learn_group", "mix_groups", "report_on", "started"]


class Plan(NamedTuple):
    """What all tasks of a run have in common."""

    shards: int
    mix: str
    multiplicative: str
    reading: Mapping[str, Any]
    topic: str  # under which progress is told


@dataclass(frozen=True)
class Mixed:
    """The model of a subtree, and what its shards count for: since the model that they started from."""

    state: State
    learned: int = 0  # shards with any trial
    trials: int = 0
    updates: int = 0
    mistakes: int = 0


@dataclass
class Group:
    """Models by node, the counts of shards learned here, and those that failed."""

    mixed: dict[Node, Mixed] = field(default_factory=dict)
    counts: dict[int, ShardCounts] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    columns: tuple[int, int, str] | None = None  # two shards whose columns differ, and in what


class Report(NamedTuple):
    """What the driver must know of a group, without its models."""

    nodes: list[Node]
    counts: dict[int, ShardCounts]
    failed: dict[int, str]
    columns: tuple[int, int, str] | None


def started(state: State, shards: int) -> Group:
    """The model from which a pass starts, as the group that the pass before would have left."""
    return Group({top(shards): Mixed(state)})


def learn_group(base: Group, plan: Plan, places: Sequence[int], *sources: Any) -> Group:
    """Learn the shards at these places, each from the model of ``base``. Depends on its arguments alone."""
    state = _only(base).state
    start, group = _model(state), Group()
    for place, source in zip(places, sources, strict=True):
        outcome = learn_shard(state, source, plan.reading)
        if isinstance(outcome, Refused):
            group.failed[place] = outcome.reason
        else:
            learned, counts = outcome
            group.counts[place] = counts
            group.mixed[0, place] = Mixed(
                learned, int(counts.trials > 0), counts.trials, counts.updates, counts.mistakes
            )
            _mix_whole(group, start, plan, (0, place))
        tell(plan.topic)
    return group


def mix_groups(base: Group, plan: Plan, node: Node, *groups: Group) -> Group:
    """The model of a node from groups that hold those of its children."""
    gathered = Group({child: mixed for group in groups for child, mixed in group.mixed.items()})
    gathered.mixed = {child: gathered.mixed[child] for child in children(node, plan.shards) if child in gathered.mixed}
    gathered.columns = next((group.columns for group in groups if group.columns), None)
    if gathered.columns is None:
        _mix(gathered, _model(_only(base).state), plan, node)
    return gathered


def report_on(group: Group) -> Report:
    """What it holds, counts and failures."""
    return Report(list(group.mixed), group.counts, group.failed, group.columns)


def _only(group: Group) -> Mixed:
    (mixed,) = group.mixed.values()
    return mixed


def _model(state: State, start: StreamModel | None = None) -> StreamModel:
    """A model that is only looked at; if it met no new names, it shares those it started with."""
    names = start.vocabulary if start is not None and same_names(state, start.vocabulary) else None
    return StreamModel.from_state(*state, names, copied=False)


def _mix_whole(group: Group, start: StreamModel, plan: Plan, node: Node) -> None:
    """Mix upwards as long as all children of the node above are here."""
    last = top(plan.shards)
    while node != last and not group.columns:
        node = parent(node)
        if not all(child in group.mixed for child in children(node, plan.shards)):
            return
        _mix(group, start, plan, node)


def _mix(group: Group, start: StreamModel, plan: Plan, node: Node) -> None:
    """Put one model in the place of those of the node's children."""
    below = [child for child in children(node, plan.shards) if child in group.mixed]
    parts = [group.mixed[child] for child in below]
    models = [_model(part.state, start) for part in parts]
    group.columns = _other_columns(models, below)
    if group.columns:
        return
    merged = parts[0].state
    if len(parts) > 1:
        shares = shares_by(plan.mix, [(part.learned, part.trials, part.updates, part.mistakes) for part in parts])
        merged = merge_since(start, models, shares.tolist(), plan.multiplicative).state()
    for child in below:
        del group.mixed[child]
    group.mixed[node] = Mixed(
        merged,
        sum(part.learned for part in parts),
        sum(part.trials for part in parts),
        sum(part.updates for part in parts),
        sum(part.mistakes for part in parts),
    )


def _other_columns(models: Sequence[StreamModel], nodes: Sequence[Node]) -> tuple[int, int, str] | None:
    begun = [place for place, model in enumerate(models) if model.engine is not None]
    for place in begun[1:]:
        mine, first = models[place].dense_names, models[begun[0]].dense_names
        if mine != first:
            differ = ", ".join(sorted(set(mine) ^ set(first))[:5]) or "their order"
            (level, number), (other_level, other) = nodes[place], nodes[begun[0]]
            return number * FAN**level, other * FAN**other_level, differ
    return None
