"""Growth of an engine: space for further sub-experts, attributes and classes.

A new coordinate is one that has always been there and was never touched: it has the rule's first weight, in the
averages and in the saved hypotheses as well (Mesterharm 2001, section 6.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy, deepcopy
from typing import TYPE_CHECKING

import numpy as np

from linmax.core.contract import EXPERTS, KNOWN, STRIDE
from linmax.data.arrays import Layout, widen
from linmax.engine.coordinates import aligned, appearing, coordinates, stride_for
from linmax.engine.loop import FIRST_SLOT, FIRST_START, appear
from linmax.techniques.node import Run

if TYPE_CHECKING:
    from linmax.engine.engine import Engine

__all__ = ["first_values", "grow", "hosting", "refuse_attributes"]


def refuse_attributes(engine: Engine, new: int) -> None:
    """Refuse new attributes that nobody would learn from; nothing is changed."""
    nodes = engine.top.walk()
    deaf = [node.passes_attributes_over for node in nodes if node.passes_attributes_over]
    if new > 0 and deaf and not (engine.runs or any(node.learns_attributes for node in nodes)):
        raise ValueError(
            f"{deaf[0]} learns from votes and scores, and these instances have attributes; remove them, or use "
            "'auto', which learns from all of them"
        )


def engines_of(engine: Engine) -> Iterator[Engine]:
    """An engine, and those in its nodes that see the same instances."""
    yield engine
    for node in engine.top.walk():
        if node.shows:
            for inside in node.engines:
                yield from engines_of(inside)


def grow(engine: Engine, layout: Layout, k: int) -> None:
    """See `Engine.grow`."""
    for inside in engines_of(engine):
        refuse_attributes(inside, layout.dense + layout.sparse - inside.layout.dense - inside.layout.sparse)
    old, stride, rows = engine.layout, int(engine.state.shape[STRIDE]), engine.capacity
    more_experts = layout.voters + layout.raters > old.voters + old.raters
    everyone = range(len(engine.runs))
    if more_experts or k > stride or layout.rows > rows or layout.dense > old.dense:
        space = rows if layout.rows <= rows else max(layout.rows, rows + rows // 2)
        move(engine, layout, max(stride, stride_for(k)), space, everyone)
    add_coordinates(engine, layout, k, everyone)
    engine.layout, engine.k = layout, k
    if engine.settings.candidates:
        engine.state.shape[KNOWN] = k
    if engine.tail is not None:
        engine.tail = widen(engine.tail, layout, k)
    for node in engine.top.walk():
        node.grown(engine)


def hosting(engine: Engine, layout: Layout) -> Engine:
    """See `Engine.hosting`."""
    experts = layout.voters + layout.raters > engine.layout.voters + engine.layout.raters
    if not all(node.hosts(experts) for node in engine.top.walk()):
        grown = deepcopy(engine)
        grown.grow(layout, engine.k)
        return grown
    asked = sorted({output // 2 for output in engine.top.asked()})
    host, state = copy(engine), engine.state
    host.top = engine.top.twin()
    host.state = state._replace(scalars=state.scalars.copy(), means=state.means.copy(), shape=state.shape.copy())
    move(host, layout, int(state.shape[STRIDE]), max(engine.capacity, layout.rows), asked)
    add_coordinates(host, layout, engine.k, asked)
    host.layout = layout
    return host


def move(engine: Engine, layout: Layout, stride: int, rows: int, which: Sequence[int]) -> None:
    """Put the coordinates of the members ``which`` into their new places; the others lose theirs."""
    state, old = engine.state, engine.layout
    experts = layout.voters + layout.raters
    places = coordinates(old, int(state.shape[STRIDE]), engine.capacity, layout, stride)

    def moved(array: np.ndarray, filling: float = 0.0, parts: Sequence[int] | None = None) -> np.ndarray:
        target = aligned(*array.shape[:-1], experts + rows * stride)
        for part in range(len(array)) if parts is None else parts:
            if filling != 0.0:
                target[part] = filling
            target[part][..., places] = array[part]
        return target

    engine.state = state._replace(
        weights=moved(state.weights, 0.0, which),
        memory=moved(state.memory, np.nan, which),
        backlog=moved(state.backlog, 0.0, which) if engine.averages else state.backlog,
    )
    for node in engine.top.walk():
        node.move(lambda array: moved(array) if array.ndim > 1 else moved(array[None])[0], old, layout)
    state.shape[[EXPERTS, STRIDE]] = experts, stride


def add_coordinates(engine: Engine, layout: Layout, k: int, which: Sequence[int]) -> None:
    """Initialise the coordinates that a layout and further classes add, for the members ``which``."""
    fresh = np.zeros(0, np.int64)
    if engine.runs:
        fresh = appearing(engine.layout, engine.k, layout, k, int(engine.state.shape[STRIDE]))
        for member in which:
            appear(engine.bench.members[member], engine.first_values[member], fresh)
    for node in engine.top.walk():
        node.appear(fresh, k)


def first_values(runs: Sequence[Run]) -> np.ndarray:
    """The first values of a new coordinate under each rule (see `linmax.engine.loop.appear`)."""
    table = np.full((len(runs), FIRST_SLOT + max((len(run.rule.slots) for run in runs), default=0)), np.nan)
    for row, run in zip(table, runs, strict=True):
        row[FIRST_START] = run.rule.start
        row[FIRST_SLOT : FIRST_SLOT + len(run.rule.slots)] = run.rule.slots
    return table
