"""Mix models that differ from their start in few rows: by the same functions as whole models, over these rows alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace

import numpy as np

from linmax.cluster.coordinates import PlacedEngine
from linmax.cluster.merge_engines import mix_into
from linmax.cluster.merge_scalings import pool_statistics
from linmax.cluster.rows import STATE, Base, ModelRows
from linmax.core import averages
from linmax.core.contract import KNOWN, TRIALS, State
from linmax.engine.engine import Engine
from linmax.engine.first_state import first_state
from linmax.engine.joined_records import joined_records
from linmax.engine.record import MISTAKES, Record
from linmax.techniques.node import Leaf

__all__ = ["merge_rows"]

ENGINE, RECORD, SCALING = "model.engine.", "model.record.", "scaling."


def merge_rows(base: Base, parts: Sequence[ModelRows], shares: np.ndarray, multiplicative: str) -> ModelRows:
    """`linmax.cluster.merging.merge_since` for models that differ from their start in these rows."""
    columns = np.unique(np.concatenate([part.columns for part in parts]))
    start = base.rows(columns)
    full = [base.filled(part, start).arrays for part in parts]
    merged = _blank(base, columns.size)
    before, *placed = _placed(base, [start.arrays, *full], merged)
    mix_into(merged, before, placed, shares, multiplicative)
    earlier, *records = (_record(one) for one in (start.arrays, *full))
    mistakes = sum(int(one.counts[MISTAKES]) for one in records) - (len(parts) - 1) * int(earlier.counts[MISTAKES])
    record = joined_records(
        [(one, None) for one in records], merged.k, int(merged.state.counts[0, TRIALS]), mistakes, base.model.follows
    )
    kind, places = base.state[0]["scaling"]["kind"], [np.arange(columns.size)] * (len(parts) + 1)
    statistics = pool_statistics(kind, _statistics(start.arrays), [*map(_statistics, full)], places, columns.size)
    found = {f"{ENGINE}{name}": array for name, array in merged.arrays.items()}
    found |= {f"{RECORD}{name}": array for name, array in record._asdict().items()}
    return ModelRows(columns, found | {f"{SCALING}{name}": array for name, array in statistics.items()})


def _blank(base: Base, columns: int) -> Engine:
    """An engine over so many columns that has learned nothing."""
    model = base.model.engine
    layout = replace(model.layout, sparse=base.first - 1 - base.dense + columns)
    if not isinstance(model.top, Leaf):
        blank = Engine(model.learner, layout, model.k, model.settings)
    else:  # a rule and nothing else has its state in arrays, so that the rest can be shared
        blank = copy(model)
        blank.layout = layout
        blank.state = first_state(blank, layout.rows)
        for member, run in enumerate(blank.runs):
            blank.state.means[member, averages.FADE] = run.fade
    blank.state.shape[KNOWN] = model.k
    return blank


def _placed(base: Base, parts: Sequence[Mapping[str, np.ndarray]], like: Engine) -> Iterator[PlacedEngine]:
    """Engines of rows and nothing else, to be looked at; they have the coordinates of another one."""
    none = np.zeros(0, np.int64)
    maps = none, none, np.arange(like.layout.dense), np.arange(like.layout.sparse), np.arange(like.k)
    for arrays in parts:
        engine = copy(base.model.engine)
        engine.layout = like.layout
        engine.state = State(*(arrays[f"{STATE}{name}"] for name in State._fields))
        if not isinstance(engine.top, Leaf):
            engine.top = deepcopy(engine.top)
            for place, node in enumerate(engine.top.walk()):
                node.restore({name: arrays[f"{ENGINE}node{place}.{name}"] for name in node.arrays})
        yield PlacedEngine(engine, *maps, alike=True)


def _record(arrays: Mapping[str, np.ndarray]) -> Record:
    return Record(*(arrays[f"{RECORD}{name}"] for name in Record._fields))


def _statistics(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: arrays[f"{SCALING}{name}"] for name in ("trials", "dense", "sparse")}
