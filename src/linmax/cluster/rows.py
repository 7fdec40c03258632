"""What a shard changes of a model: the rows of its weights for the attributes that it met.

Rules change a weight only where an attribute is present. A shard that names few of many attributes therefore leaves
most rows as they were, bit for bit; only the others are kept, mixed and sent. Such rows are mixed by the same functions
as whole models, over the attributes that any of them met. An attribute that nobody met keeps its bits.

Averages need a word more. The sum behind them is S = m w - backlog (`linmax.core.averages`); over T trials in which w
stays the same it grows by T w. So m takes up the trials of all shards, and the backlog of an attribute that nobody met
stays as it is. Before m becomes so large that S would lose digits, all backlogs are written anew for m = 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numba import int64, types

from linmax.cluster.coordinates import PlacedEngine
from linmax.cluster.merge_engines import merge_engines
from linmax.cluster.merge_scalings import merge_scalings
from linmax.cluster.shards import State
from linmax.core import averages
from linmax.core.contract import RAW, STRIDE, TRIALS, Vector
from linmax.data.scaling import Scaling
from linmax.engine.engine import Engine
from linmax.engine.record import Record
from linmax.jit.compiling import kernel
from linmax.models.columns import Columns
from linmax.models.model import Model
from linmax.techniques.combining import BestOf, WeightedCombination
from linmax.techniques.node import Leaf
from linmax.util.names import apart

__all__ = [
    "Base",
    "ModelRows",
    "apply_rows",
    "few_rows_change",
    "merge_rows",
    "others_changed",
    "whole",
]

STATE = "model.engine.state."
WEIGHTS, MEMORY, BACKLOG = f"{STATE}weights", f"{STATE}memory", f"{STATE}backlog"
MEANS, COUNTS, SHAPE, SCALED = f"{STATE}means", f"{STATE}counts", f"{STATE}shape", "scaling.sparse"
COLUMNS_ENTRY = "rows.columns"
WIDE = (WEIGHTS, MEMORY, BACKLOG)  # one row for each attribute
LONG_BACKLOG = averages.LONG / 2  # trials that m takes up before backlogs are written anew


@dataclass(frozen=True)
class ModelRows:
    """Some rows of a model: the arrays of its state, but of the wide ones only what belongs to these columns."""

    columns: np.ndarray  # of the vocabulary, in order
    arrays: dict[str, np.ndarray]

    @property
    def stored(self) -> dict[str, np.ndarray]:
        """All of it as arrays by name."""
        return self.arrays | {COLUMNS_ENTRY: self.columns}

    @classmethod
    def from_stored(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """What was `stored`."""
        return cls(arrays[COLUMNS_ENTRY], {name: array for name, array in arrays.items() if name != COLUMNS_ENTRY})

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.columns.nbytes + sum(array.nbytes for array in self.arrays.values())


def few_rows_change(engine: Engine | None) -> bool:
    """Whether a trial changes nothing but the rows of the attributes that it has, and numbers that all of them share.

    So it is for rules that keep no sum over all coordinates, under combinations and plain averages.
    """
    if engine is None or not engine.runs or not engine.k or engine.memory:
        return False
    if not all(isinstance(node, (Leaf, BestOf, WeightedCombination)) for node in engine.top.walk()):
        return False
    return all(
        run.rule.spread is None
        and not (run.rule.everywhere or run.rule.matrix or run.rule.mass or run.rule.thickness)
        and run.averaging in (0, RAW)
        and not run.fade
        for run in engine.runs
    )


@dataclass(frozen=True)
class Base:
    """The model that shards start from: its state, and a model of the same learner and classes to look things up in."""

    state: State
    model: Model

    @property
    def first(self) -> int:
        """Rows before those of the vocabulary: the constant and columns of numbers, which every trial may change."""
        description = self.state[0]
        return 1 + self.dense + int(description["scaling"]["prepends"] and not description["dense_names"])

    @property
    def dense(self) -> int:
        """Rows of columns of numbers."""
        return int(self.state[0]["model"]["layout"][2])

    @property
    def stride(self) -> int:
        """Numbers in a row."""
        return int(self.state[1][SHAPE][STRIDE])

    def places(self, columns: np.ndarray) -> np.ndarray:
        """The rows of these columns, after those that come first."""
        return np.concatenate([np.arange(self.first), self.first + columns])

    def rows(self, columns: np.ndarray, arrays: Mapping[str, np.ndarray] | None = None) -> ModelRows:
        """A copy of these rows, of this model or of the arrays of another; arrays without rows are not copied."""
        places, stride = self.places(columns), self.stride
        found = {}
        for name, array in (self.state[1] if arrays is None else arrays).items():
            if _is_wide(name, array):
                taken = _table(array, stride).take(places, axis=-2)
                found[name] = taken.reshape(*array.shape[:-1], places.size * stride)
            elif name == SCALED and len(array):
                found[name] = array[columns]
            elif not name.startswith("names."):
                found[name] = array
        return ModelRows(columns, found)

    def write(self, rows: ModelRows, target: Mapping[str, np.ndarray]) -> None:
        """Write rows into the arrays of a model with the same names."""
        places, stride = self.places(rows.columns), self.stride
        for name, array in rows.arrays.items():
            if _is_wide(name, array):
                _table(target[name], stride)[..., places, :] = _table(array, stride)
            elif name == SCALED and len(target[name]):
                target[name][rows.columns] = array
            else:
                target[name][...] = array

    def met(self, rows: ModelRows) -> list[tuple[int, float, float, int]]:
        """Members with averages: m in these rows, m here, and trials in between.

        Here m counts the hypotheses that met a trial, so that it does not change but by trials, unless backlogs were
        written anew.
        """
        trials = rows.arrays[COUNTS][:, TRIALS] - self.state[1][COUNTS][:, TRIALS]
        own, start = rows.arrays[MEANS], self.state[1][MEANS]
        averaged = [member for member, run in enumerate(self.model.engine.runs) if run.averaging]
        return [(member, _met(own[member]), _met(start[member]), int(trials[member])) for member in averaged]

    def filled(self, rows: ModelRows, start: ModelRows) -> ModelRows:
        """The same over the columns of ``start``, which are rows of this model; their columns are among them."""
        arrays = rows.arrays | {name: start.arrays[name].copy() for name in (*WIDE, SCALED)}
        for member, own, before, trials in self.met(rows):
            if own != before + trials:
                arrays[BACKLOG][member] += (own - before - trials) * arrays[WEIGHTS][member]
        inside = np.searchsorted(start.columns, rows.columns)
        places, stride = self.places(inside), self.stride
        for name, array in rows.arrays.items():
            if _is_wide(name, array):
                _table(arrays[name], stride)[..., places, :] = _table(array, stride)
            elif name == SCALED and len(array):
                arrays[name][inside] = array
        return ModelRows(start.columns, arrays)

    def alone(self, rows: ModelRows) -> Model:
        """A model of these rows and nothing else, to be looked at."""
        parts = apart(apart(rows.arrays)["model"])
        model, engine = Model.__new__(Model), copy(self.model.engine)
        sparse = self.first - 1 - self.dense + rows.columns.size
        engine.layout, engine.top = replace(engine.layout, sparse=sparse), deepcopy(engine.top)
        engine.restore(parts["engine"], copied=False)
        vars(model).update(vars(self.model) | {"engine": engine, "record": Record(**parts["record"])})
        return model


def _is_wide(name: str, array: np.ndarray) -> bool:
    return name in WIDE and array.shape[-1] > 0


def _table(array: np.ndarray, stride: int) -> np.ndarray:
    """A view with one row for each attribute."""
    return array.reshape(*array.shape[:-1], array.shape[-1] // stride, stride)


def _met(means: np.ndarray) -> float:
    return float(means[averages.WEIGHT] + means[averages.IDLE] - means[averages.AGE])


def others_changed(rows: ModelRows, base: Base) -> bool:
    """Whether a model that learned has written other rows anew as well, as it does once in many trials."""
    return any(own != before + trials for _, own, before, trials in base.met(rows))


def whole(rows: ModelRows, base: Base) -> State:
    """The model that has these rows, and else those of its start."""
    description, arrays = base.state
    full = base.filled(rows, base.rows(np.arange(int(description["columns"]))))
    return description, full.arrays | {name: array for name, array in arrays.items() if name.startswith("names.")}


def merge_rows(base: Base, parts: Sequence[ModelRows], shares: np.ndarray, multiplicative: str) -> ModelRows:
    """`linmax.cluster.merging.merge_since` for models that differ from their start in these rows."""
    columns = np.unique(np.concatenate([part.columns for part in parts]))
    start = base.rows(columns)
    full = [base.filled(part, start) for part in parts]
    models, before = [base.alone(part) for part in full], base.alone(start)
    k = len(before.classes)
    placed = [_placed(model) for model in models]
    engine = merge_engines(_placed(before), placed, before.layout, k, k, shares, multiplicative)
    mistakes = sum(model.mistakes for model in models) - (len(models) - 1) * before.mistakes
    merged = Model.of(engine, before.classes, Columns(), mistakes, models)
    scaling = merge_scalings(
        _scaling(start, base),
        [_scaling(part, base) for part in full],
        [np.arange(columns.size)] * (len(parts) + 1),
        columns.size,
    )
    arrays = {f"model.{name}": array for name, array in merged.state()[1].items()}
    return ModelRows(columns, arrays | {f"scaling.{name}": array for name, array in scaling.arrays.items()})


def _placed(model: Model) -> PlacedEngine:
    none, layout = np.zeros(0, np.int64), model.layout
    return PlacedEngine(
        model.engine, none, none, np.arange(layout.dense), np.arange(layout.sparse), np.arange(len(model.classes))
    )


def _scaling(rows: ModelRows, base: Base) -> Scaling:
    return Scaling.from_state(base.state[0]["scaling"], apart(rows.arrays)["scaling"])


@kernel(types.void(int64, int64, Vector, Vector, Vector))
def renew(kind: int, anew: int, weights: np.ndarray, backlog: np.ndarray, means: np.ndarray) -> None:
    """Take the sums over all coordinates, after writing the backlogs anew where that is asked for."""
    if anew:
        averages.rebase(kind, weights, backlog, means)
    else:
        averages.sums(kind, weights, backlog, means)


def apply_rows(rows: ModelRows, base: Base) -> bool:
    """Turn the arrays of ``base`` into the model that was mixed from it.

    Returns whether other rows have changed as well, in how their averages are written.
    """
    description, arrays = base.state
    mixed = rows.arrays | {name: rows.arrays[name].copy() for name in (MEANS, BACKLOG)}
    far = set()
    for member, own, before, trials in base.met(rows):
        means, more = mixed[MEANS][member], before + trials - own
        mixed[BACKLOG][member] += more * mixed[WEIGHTS][member]
        means[averages.UNSEEN] += more * means[averages.START]
        means[averages.WEIGHT] += more
        if means[averages.WEIGHT] > LONG_BACKLOG:
            far.add(member)
    base.write(ModelRows(rows.columns, mixed), arrays)
    description["model"] = description["model"] | {"grows": True}
    engine = base.model.engine
    if engine.tracked:
        for member, run in enumerate(engine.runs):
            wide = (arrays[WEIGHTS][member], arrays[BACKLOG][member])
            renew(run.averaging, int(member in far), *wide, arrays[MEANS][member])
    return bool(far)
