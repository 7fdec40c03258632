"""Add up the averaged hypotheses of several engines."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linmax.cluster.coordinates import PlacedEngine, read_existing, write_existing
from linmax.core import averages
from linmax.core.contract import GAUGE, RAW, SHIFT, TRIALS
from linmax.engine.engine import Engine

__all__ = ["add_averages"]


class AverageSums:
    """The sum behind a member's average: the hypotheses that met a trial.

    That is S without its last term, the present hypothesis, which has not met a trial yet (see `linmax.core.averages`).
    """

    def __init__(self, engine: Engine, member: int, there: np.ndarray | None) -> None:
        self.engine, self.member, self.there = engine, member, there
        state, kind = engine.state, engine.runs[member].averaging
        numbers, scalars = state.means[member], state.scalars[member]
        self.log = float(numbers[averages.ANCHOR]) if kind == RAW else 0.0  # the logarithm of its scale
        if kind == RAW:
            g = math.exp(scalars[SHIFT] + scalars[GAUGE] - self.log)
        else:
            g = 1.0 / numbers[averages.NORM] if numbers[averages.NORM] > 0.0 else 0.0
        self.multiple = numbers[averages.WEIGHT] + (numbers[averages.IDLE] - numbers[averages.AGE]) * g
        self.unseen = float(self.multiple * numbers[averages.START] - numbers[averages.UNSEEN])  # if it appears later
        trials = int(state.counts[member, TRIALS])
        self.ages = trials * (trials + 1) / 2  # what the trials count for together, where averages fade

    def add_to(self, total: np.ndarray, factor: float) -> None:
        """Add it to a total over the union."""
        state = self.engine.state
        own = read_existing(self.engine, state.weights[self.member])
        own *= self.multiple
        own -= read_existing(self.engine, state.backlog[self.member])
        if self.there is not None:
            seen, own = own, np.full(total.size, self.unseen)
            own[self.there] = seen
        own *= factor
        total += own


def add_averages(
    kind: int,
    merged: Engine,
    member: int,
    spots: Sequence[tuple[PlacedEngine, np.ndarray | None]],
    base: PlacedEngine | None,
) -> None:
    """The average over all engines: their sums added up, with the base counted once."""
    state = merged.state
    numbers, scalars = state.means[member], state.scalars[member]
    sums = [AverageSums(one.engine, member, there) for one, there in spots]
    anchor = max(one.log for one in sums)
    scale = float(scalars[SHIFT] + scalars[GAUGE])
    if kind == RAW and scale > anchor + averages.LARGEST_G:
        anchor = scale
    terms = [(one, math.exp(one.log - anchor)) for one in sums]
    ages = sum(one.ages for one in sums)
    if base is not None:
        before, many = AverageSums(base.engine, member, base.places(merged)), len(sums) - 1
        terms.append((before, -many * math.exp(before.log - anchor)))
        ages -= many * before.ages
    total, unseen = np.zeros_like(read_existing(merged, state.backlog[member])), 0.0
    for one, factor in terms:
        one.add_to(total, factor)
        unseen += factor * one.unseen
    if merged.runs[member].fade and ages:
        trials = int(state.counts[member, TRIALS])
        stretch = trials * (trials + 1) / 2 / ages
        total, unseen = stretch * total, stretch * unseen
    write_existing(merged, state.backlog[member], -total)
    numbers[averages.UNSEEN], numbers[averages.ANCHOR] = -unseen, anchor
