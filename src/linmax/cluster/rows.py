"""What a shard changes of a model: the rows of its weights for the attributes that it met.

Rules change a weight only where an attribute is present. A shard that names few of many attributes therefore leaves
most rows as they were, bit for bit; only the others are kept, mixed and sent. Such rows are mixed by the same functions
as whole models, over the attributes that any of them met. An attribute that nobody met keeps its bits.

Averages need a word more. The sum behind them is S = m w - backlog (`linmax.core.averages`); over T trials in which w
stays the same it grows by T w. So m takes up the trials of all shards, and the backlog of an attribute that nobody met
stays as it is. Before m becomes so large that S would lose digits, all backlogs are written anew for m = 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numba import int64, types

from linmax.cluster.shards import State
from linmax.core import averages
from linmax.core.contract import RAW, STRIDE, TRIALS, Vector
from linmax.engine.engine import Engine
from linmax.jit.compiling import kernel
from linmax.models.model import Model
from linmax.techniques.combining import BestOf, WeightedCombination
from linmax.techniques.node import Leaf

__all__ = [
    "Base",
    "ModelRows",
    "apply_rows",
    "few_rows_change",
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

    @cached_property
    def first(self) -> int:
        """Rows before those of the vocabulary: the constant and columns of numbers, which every trial may change."""
        description = self.state[0]
        return 1 + self.dense + int(description["scaling"]["prepends"] and not description["dense_names"])

    @cached_property
    def dense(self) -> int:
        """Rows of columns of numbers."""
        return int(self.state[0]["model"]["layout"][2])

    @cached_property
    def stride(self) -> int:
        """Numbers in a row."""
        return int(self.state[1][SHAPE][STRIDE])

    @cached_property
    def wide(self) -> tuple[str, ...]:
        """The arrays with one row for each attribute."""
        return tuple(name for name in WIDE if self.state[1][name].shape[-1] > 0)

    @cached_property
    def scaled(self) -> tuple[str, ...]:
        """Likewise the statistics of scaling, if there are any."""
        return (SCALED,) if len(self.state[1][SCALED]) else ()

    @cached_property
    def averaged(self) -> list[int]:
        """Members with averages."""
        return [member for member, run in enumerate(self.model.engine.runs) if run.averaging]

    def places(self, columns: np.ndarray) -> np.ndarray:
        """The rows of these columns, after those that come first."""
        found = np.empty(self.first + columns.size, np.int64)
        found[: self.first] = np.arange(self.first)
        np.add(columns, self.first, out=found[self.first :])
        return found

    def rows(self, columns: np.ndarray, arrays: Mapping[str, np.ndarray] | None = None) -> ModelRows:
        """A copy of these rows, of this model or of the arrays of another; arrays without rows are not copied."""
        given, places, stride = self.state[1] if arrays is None else arrays, self.places(columns), self.stride
        found = {name: array for name, array in given.items() if not name.startswith("names.")}
        for name in self.wide:
            taken = _table(given[name], stride).take(places, axis=-2)
            found[name] = taken.reshape(*taken.shape[:-2], places.size * stride)
        for name in self.scaled:
            found[name] = given[name][columns]
        return ModelRows(columns, found)

    def write(self, rows: ModelRows, target: Mapping[str, np.ndarray]) -> None:
        """Write rows into the arrays of a model with the same names."""
        places, stride = self.places(rows.columns), self.stride
        for name, array in rows.arrays.items():
            if name in self.wide:
                _table(target[name], stride)[..., places, :] = _table(array, stride)
            elif name in self.scaled:
                target[name][rows.columns] = array
            else:
                target[name][...] = array

    def met(self, rows: ModelRows) -> list[tuple[int, float, float, int]]:
        """Members with averages: m in these rows, m here, and trials in between.

        Here m counts the hypotheses that met a trial, so that it does not change but by trials, unless backlogs were
        written anew.
        """
        counts, before = rows.arrays[COUNTS], self.state[1][COUNTS]
        own, start = rows.arrays[MEANS], self.state[1][MEANS]
        return [
            (member, _met(own[member]), _met(start[member]), int(counts[member, TRIALS] - before[member, TRIALS]))
            for member in self.averaged
        ]

    def filled(self, rows: ModelRows, start: ModelRows) -> ModelRows:
        """The same over the columns of ``start``, which are rows of this model; their columns are among them."""
        names = (*self.wide, *self.scaled)
        arrays = rows.arrays | {name: start.arrays[name].copy() for name in names}
        for member, own, before, trials in self.met(rows):
            if own != before + trials:
                arrays[BACKLOG][member] += (own - before - trials) * arrays[WEIGHTS][member]
        inside = np.searchsorted(start.columns, rows.columns)
        places, stride = self.places(inside), self.stride
        for name in self.wide:
            _table(arrays[name], stride)[..., places, :] = _table(rows.arrays[name], stride)
        for name in self.scaled:
            arrays[name][inside] = rows.arrays[name]
        return ModelRows(start.columns, arrays)


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
