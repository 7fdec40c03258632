"""The members of an engine and their state before the first trial, as the arrays that kernels work on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.core import averages
from linmax.core.contract import SPREAD, STEP, Members, State
from linmax.core.rivals import RIVALS, presenting
from linmax.engine.coordinates import aligned, stride_for
from linmax.jit.compiling import address_of
from linmax.techniques.node import Run

if TYPE_CHECKING:
    from linmax.engine.engine import Engine

__all__ = ["first_state", "members_of"]


def _addresses(functions: Sequence[Any], signature: Any) -> np.ndarray:
    """Where the functions are; each is looked for once, since pools run a rule many times."""
    found = {function: address_of(function, signature) for function in dict.fromkeys(functions)}
    return np.array([found[function] for function in functions], np.int64)


@lru_cache(maxsize=256)
def _numbers(values: tuple[float, ...]) -> np.ndarray:
    """The same as an array; rules that list powers have thousands."""
    return np.array(values, float)


def members_of(runs: Sequence[Run]) -> Members:
    """The rules of the members, by address, and their techniques."""
    params = np.zeros((len(runs), max((len(run.rule.values) for run in runs), default=0)))
    for member, run in enumerate(runs):
        params[member, : len(run.rule.values)] = _numbers(run.rule.values)
    return Members(
        _addresses([run.rule.step for run in runs], STEP),
        _addresses([run.rule.spread for run in runs], SPREAD),
        np.array([run.rule.everywhere for run in runs], np.int64),
        np.array([run.rule.gain for run in runs], np.int64),
        np.array([run.rule.only_sign for run in runs], np.int64),
        np.array([RIVALS[run.rule.rivals] for run in runs], np.int64),
        np.array([presenting(run.rule) for run in runs], np.int64),
        params,
        np.array([run.recycling for run in runs], np.int64).reshape(-1, 4),
        np.array([run.averaging for run in runs], np.int64),
    )


def first_state(engine: Engine, rows: int) -> State:
    """The state before the first trial, with space for so many rows of the linear machine."""
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

    scalars = np.zeros((count, max((len(run.rule.first_scalars(0)) for run in runs), default=0)))
    for member, run in enumerate(runs):
        fill(weights[member], run.rule.start)
        for slot, value in enumerate(run.rule.slots):
            fill(memory[member, slot], value)
        memory[member, len(run.rule.slots) :] = np.nan
        first = run.rule.first_scalars(experts + (layout.rows - absent) * k)
        scalars[member, : len(first)] = first
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
