"""The state of the members of an engine before the first trial, as the arrays that kernels work on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linmax.core import averages
from linmax.core.contract import State
from linmax.engine.coordinates import aligned, stride_for

if TYPE_CHECKING:
    from linmax.engine.engine import Engine

__all__ = ["first_state"]


def first_state(engine: Engine, rows: int) -> State:
    """The state before the first trial, with space for this many rows of the linear machine."""
    runs, layout, k, settings = engine.runs, engine.layout, engine.k, engine.settings
    stride, experts = stride_for(k), layout.voters + layout.raters
    size = experts + rows * stride
    absent = int(layout.rows > 0 and not layout.constant)  # its row is kept, but has no coordinates
    count = len(runs)
    weights = aligned(count, size)
    memory = aligned(count, max((len(run.rule.slots) for run in runs), default=0), size)
    table = memory[:, :, experts:].reshape(*memory.shape[:2], rows, stride)
    for part in (table[..., k:], table[:, :, :absent], table[:, :, layout.rows :]):
        part[...] = np.nan

    def fill(row: np.ndarray, value: float) -> None:
        if value != 0.0:  # fresh memory is not touched before a trial needs it
            row[:experts] = value
            row[experts:].reshape(rows, stride)[absent : layout.rows, :k] = value

    scalars = np.zeros((count, max((len(run.rule.first_scalars()) for run in runs), default=0)))
    for member, run in enumerate(runs):
        fill(weights[member], run.rule.start)
        for slot, value in enumerate(run.rule.slots):
            fill(memory[member, slot], value)
        memory[member, len(run.rule.slots) :] = np.nan
        first = run.rule.first_scalars()
        scalars[member, : len(first)] = first
        if run.rule.first:
            attributes = experts + np.arange(rows * stride).reshape(rows, stride)[absent : layout.rows, :k]
            places = np.concatenate([np.arange(experts), attributes.ravel()])
            run.rule.place_first(weights[member], memory[member], scalars[member], places)
    known = 0 if settings.discover else k
    shape = np.array([experts, stride, known, settings.largest, settings.update_on_tie], np.int64)
    return State(
        weights,
        memory,
        scalars,
        np.zeros((count, size if engine.averages else 0)),
        np.zeros((count, averages.NUMBERS)),
        np.zeros((max(1, count), 5), np.int64),
        shape,
    )
