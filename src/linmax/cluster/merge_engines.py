"""One engine over the union of voters, raters, attributes and classes, from engines of the same learner."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linmax.cluster.coordinates import PlacedEngine, read_existing, write_existing
from linmax.cluster.merge_averages import add_averages
from linmax.core import averages
from linmax.core.contract import KNOWN, OWN, SHIFT, TRIALS, Part, Rule
from linmax.data.arrays import Layout
from linmax.engine.engine import Engine
from linmax.engine.loop import start_means
from linmax.learners.base import Mixture, Placement
from linmax.rules.mixing import mixture_of

__all__ = ["merge_engines", "mix_into"]


def merge_engines(
    base: PlacedEngine | None,
    placed: Sequence[PlacedEngine],
    layout: Layout,
    classes: int,
    known: int,
    shares: np.ndarray,
    multiplicative: str,
    last: bool = False,
) -> Engine:
    """One engine over the union from engines of the same learner; ``last`` if it ends a pass (see `Mixture`)."""
    first = placed[0].engine
    merged = Engine(first.learner, layout, classes, first.settings)
    merged.state.shape[KNOWN] = known
    mix_into(merged, base, placed, shares, multiplicative, last)
    return merged


def mix_into(
    merged: Engine,
    base: PlacedEngine | None,
    placed: Sequence[PlacedEngine],
    shares: np.ndarray,
    multiplicative: str,
    last: bool = False,
) -> None:
    """The same, in the place of an engine over the union that has learned nothing."""
    spots = [one.places(merged) for one in placed]
    _count(base, placed, merged)
    _mix_nodes(base, placed, merged, shares, last)
    for member, run in enumerate(merged.runs):
        rule, state = run.rule, merged.state
        blank = _part(rule, merged, member)
        parts = [_spread_out(rule, one.engine, member, there, blank) for one, there in zip(placed, spots, strict=True)]
        target = Part(*(array.copy() for array in blank))
        mixture_of(rule)(rule, parts, shares, multiplicative == "plain", target)
        _write(rule, merged, member, target)
        if not np.isfinite(target.weights).all():
            raise OverflowError(f"the mixed weights of {rule} left the range of floats")
        if run.averaging:
            add_averages(run.averaging, merged, member, [*zip(placed, spots, strict=True)], base)
        state.means[member, averages.START] = rule.start * math.exp(-state.scalars[member, SHIFT])
        if merged.tracked:
            start_means(merged.members, state, member)
        if run.fade:
            state.means[member, [averages.IDLE, averages.AGE]] = state.counts[member, TRIALS] + 1


def _part(rule: Rule, engine: Engine, member: int) -> Part:
    """A member's state at the coordinates in use, copied."""
    state, slots = engine.state, len(rule.slots)
    memory = state.memory[member, :slots]
    if rule.matrix:
        memory = state.memory[member][np.concatenate([np.arange(slots), slots + _numbers(engine)])]
    weights = read_existing(engine, state.weights[member])
    return Part(
        weights,
        read_existing(engine, memory) if len(memory) else np.zeros((0, weights.size)),
        state.scalars[member, : OWN + len(rule.scalars)].copy(),
    )


def _numbers(engine: Engine) -> np.ndarray:
    """The places of the coordinates in use."""
    return read_existing(engine, np.arange(engine.state.weights.shape[1]))


def _spread_out(rule: Rule, engine: Engine, member: int, there: np.ndarray | None, blank: Part) -> Part:
    """A member's state over the union; what it has not met has its initial value."""
    own, slots = _part(rule, engine, member), len(rule.slots)
    if there is None:
        return own
    weights, memory = blank.weights.copy(), blank.memory.copy()
    weights[:] = rule.start * math.exp(-own.scalars[SHIFT])
    weights[there] = own.weights
    memory[:slots, there] = own.memory[:slots]
    if rule.matrix:
        memory[np.ix_(slots + there, there)] = own.memory[slots:]
    return Part(weights, memory, own.scalars)


def _write(rule: Rule, engine: Engine, member: int, part: Part) -> None:
    state, slots = engine.state, len(rule.slots)
    write_existing(engine, state.weights[member], part.weights)
    if slots:
        write_existing(engine, state.memory[member, :slots], part.memory[:slots])
    if rule.matrix:
        places = _numbers(engine)
        state.memory[member][np.ix_(slots + places, places)] = part.memory[slots:]
    state.scalars[member, : len(part.scalars)] = part.scalars


def _mix_nodes(
    base: PlacedEngine | None, placed: Sequence[PlacedEngine], merged: Engine, shares: np.ndarray, last: bool
) -> None:
    """What stands above the rules, and the learners that are none: each node from those in its place."""

    def walked(one: PlacedEngine) -> list[Placement]:
        maps = (one.voters, one.raters, one.dense, one.sparse, one.classes)
        return [Placement(node, *maps) for node in one.engine.top.walk()]

    walks, start = [walked(one) for one in placed], None if base is None else walked(base)
    for place, node in enumerate(merged.top.walk()):
        before = None if start is None else start[place]
        parts, known = [walk[place] for walk in walks], int(merged.state.shape[KNOWN])
        node.mix(Mixture(parts, shares, before, merged.k, known, last=last))


def _count(base: PlacedEngine | None, placed: Sequence[PlacedEngine], merged: Engine) -> None:
    """Counts of trials and updates."""
    merged.state.counts[...] = sum(one.engine.state.counts for one in placed)
    if base is not None:
        merged.state.counts[...] -= (len(placed) - 1) * base.engine.state.counts
