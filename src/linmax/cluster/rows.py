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
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numba import int64, types

from linmax.cluster.coordinates import Placed
from linmax.cluster.merge_engines import merge_engines
from linmax.cluster.merge_scalings import merge_scalings
from linmax.cluster.shards import State
from linmax.core import averages
from linmax.core.contract import RAW, STRIDE, TRIALS, Vector
from linmax.data.scaling import Scaling
from linmax.engine.engine import Engine
from linmax.jit.compiling import kernel
from linmax.models.model import Columns, Model
from linmax.techniques.combining import BestOf, Weighing
from linmax.techniques.node import Leaf
from linmax.util.names import apart

__all__ = [
    "Rows",
    "apply_rows",
    "copy_rows",
    "few_rows_change",
    "filled",
    "merge_rows",
    "others_changed",
    "rows_of",
    "whole",
]

STATE = "model.engine.state."
WEIGHTS, MEMORY, BACKLOG = f"{STATE}weights", f"{STATE}memory", f"{STATE}backlog"
MEANS, COUNTS, SHAPE, SCALED = f"{STATE}means", f"{STATE}counts", f"{STATE}shape", "scaling.sparse"
COLUMNS = "rows.columns"
WIDE = (WEIGHTS, MEMORY, BACKLOG)  # one row for each attribute
MANY = averages.LONG / 2  # trials that m takes up before backlogs are written anew


@dataclass(frozen=True)
class Rows:
    """Some rows of a model: the arrays of its state, but of the wide ones only what belongs to these columns."""

    columns: np.ndarray  # of the vocabulary, in order
    arrays: dict[str, np.ndarray]

    @property
    def stored(self) -> dict[str, np.ndarray]:
        """All of it as arrays by name."""
        return self.arrays | {COLUMNS: self.columns}

    @classmethod
    def from_stored(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """What was `stored`."""
        return cls(arrays[COLUMNS], {name: array for name, array in arrays.items() if name != COLUMNS})

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
    if not all(isinstance(node, (Leaf, BestOf, Weighing)) for node in engine.top.walk()):
        return False
    return all(
        run.rule.spread is None
        and not (run.rule.everywhere or run.rule.matrix or run.rule.mass or run.rule.thickness)
        and run.averaging in (0, RAW)
        and not run.fade
        for run in engine.runs
    )


def _layout(description: Mapping[str, Any]) -> list[Any]:
    found: list[Any] = description["model"]["layout"]
    return found


def _first(description: Mapping[str, Any]) -> int:
    """Rows before those of the vocabulary: the constant and the columns of numbers, which every trial may change."""
    return 1 + int(_layout(description)[2]) + int(description["scaling"]["prepends"] and not description["dense_names"])


def _is_wide(name: str, array: np.ndarray) -> bool:
    return name in WIDE and array.shape[-1] > 0


def _table(array: np.ndarray, stride: int) -> np.ndarray:
    """A view with one row for each attribute."""
    return array.reshape(*array.shape[:-1], array.shape[-1] // stride, stride)


def _places(description: Mapping[str, Any], columns: np.ndarray) -> np.ndarray:
    first = _first(description)
    return np.concatenate([np.arange(first), first + columns])


def rows_of(state: State, columns: np.ndarray) -> Rows:
    """A copy of these rows of a model."""
    description, arrays = state
    places, stride = _places(description, columns), int(arrays[SHAPE][STRIDE])
    found = {}
    for name, array in arrays.items():
        if _is_wide(name, array):
            taken = _table(array, stride).take(places, axis=-2)
            found[name] = taken.reshape(*array.shape[:-1], places.size * stride)
        elif name == SCALED and len(array):
            found[name] = array[columns]
        elif not name.startswith("names."):
            found[name] = array.copy()
    return Rows(columns, found)


def copy_rows(description: Mapping[str, Any], rows: Rows, target: Mapping[str, np.ndarray]) -> None:
    """Write rows into the arrays of a model with the same names."""
    places, stride = _places(description, rows.columns), int(rows.arrays[SHAPE][STRIDE])
    for name, array in rows.arrays.items():
        if _is_wide(name, array):
            _table(target[name], stride)[..., places, :] = _table(array, stride)
        elif name == SCALED and len(target[name]):
            target[name][rows.columns] = array
        else:
            target[name][...] = array


def filled(rows: Rows, base: Rows, description: Mapping[str, Any]) -> Rows:
    """The same over the columns of ``base``, the model that it started from; its columns are among them."""
    arrays = {name: array.copy() for name, array in base.arrays.items()}
    for member, (own, start, trials) in enumerate(_multiples(rows, base)):
        if arrays[BACKLOG].size and own != start + trials:
            arrays[BACKLOG][member] += (own - start - trials) * arrays[WEIGHTS][member]
    first, stride = _first(description), int(rows.arrays[SHAPE][STRIDE])
    inside = np.searchsorted(base.columns, rows.columns)
    places = np.concatenate([np.arange(first), first + inside])
    for name, array in rows.arrays.items():
        if _is_wide(name, array):
            _table(arrays[name], stride)[..., places, :] = _table(array, stride)
        elif name == SCALED and len(array):
            arrays[name][inside] = array
        else:
            arrays[name] = array
    return Rows(base.columns, arrays)


def _multiples(rows: Rows, base: Rows) -> list[tuple[float, float, int]]:
    """For each member m, m of the base, and trials since then, where m counts hypotheses that met a trial."""
    trials = rows.arrays[COUNTS][:, TRIALS] - base.arrays[COUNTS][:, TRIALS]
    own, start = (part.arrays[MEANS] for part in (rows, base))
    return [(_met(own[i]), _met(start[i]), int(trials[i])) for i in range(len(own))]


def _met(means: np.ndarray) -> float:
    return float(means[averages.WEIGHT] + means[averages.IDLE] - means[averages.AGE])


def others_changed(rows: Rows, base: State) -> bool:
    """Whether a model that learned has written other rows anew as well, as it does once in many trials."""
    start = Rows(rows.columns, base[1])
    return any(own != before + trials for own, before, trials in _multiples(rows, start))


def whole(rows: Rows, base: State) -> State:
    """The model that has these rows, and else those of its start."""
    description, arrays = base
    full = filled(rows, rows_of(base, np.arange(int(description["columns"]))), description)
    return description, full.arrays | {name: array for name, array in arrays.items() if name.startswith("names.")}


def merge_rows(base: State, parts: Sequence[Rows], shares: np.ndarray, multiplicative: str) -> Rows:
    """`linmax.cluster.merging.merge_since` for models that differ from their start in these rows."""
    description = base[0]
    columns = np.unique(np.concatenate([part.columns for part in parts]))
    start = rows_of(base, columns)
    full = [filled(part, start, description) for part in parts]
    models = [_model(part, description) for part in full]
    before = _model(start, description)
    engine = merge_engines(
        _placed(before), [_placed(model) for model in models], before.layout, len(before.classes), len(before.classes),
        shares, multiplicative,
    )  # fmt: skip
    mistakes = sum(model.mistakes for model in models) - (len(models) - 1) * before.mistakes
    merged = Model.of(engine, before.classes, Columns(), mistakes, models)
    scaling = merge_scalings(
        _scaling(start, description),
        [_scaling(part, description) for part in full],
        [np.arange(columns.size)] * (len(parts) + 1),
        columns.size,
    )
    arrays = {f"model.{name}": array for name, array in merged.state()[1].items()}
    return Rows(columns, arrays | {f"scaling.{name}": array for name, array in scaling.arrays.items()})


def _model(rows: Rows, description: Mapping[str, Any]) -> Model:
    """A model of these rows alone, to be looked at."""
    voters, raters, dense, _, constant, names = _layout(description)
    sparse = _first(description) - 1 - dense + rows.columns.size
    header = description["model"] | {"layout": [voters, raters, dense, sparse, constant, names]}
    return Model.from_state(header, apart(rows.arrays)["model"], copied=False)


def _placed(model: Model) -> Placed:
    none, layout = np.zeros(0, np.int64), model.layout
    return Placed(
        model.engine, none, none, np.arange(layout.dense), np.arange(layout.sparse), np.arange(len(model.classes))
    )


def _scaling(rows: Rows, description: Mapping[str, Any]) -> Scaling:
    return Scaling.from_state(description["scaling"], apart(rows.arrays)["scaling"])


@kernel(types.void(int64, int64, Vector, Vector, Vector))
def renew(kind: int, anew: int, weights: np.ndarray, backlog: np.ndarray, means: np.ndarray) -> None:
    """Take the sums over all coordinates, after writing the backlogs anew where that is asked for."""
    if anew:
        averages.rebase(kind, weights, backlog, means)
    else:
        averages.sums(kind, weights, backlog, means)


def apply_rows(rows: Rows, base: State, engine: Engine) -> bool:
    """Turn the arrays of ``base`` into the model that was mixed from it; ``engine`` is one of the same learner.

    Returns whether other rows have changed as well, in how their averages are written.
    """
    description, arrays = base
    start = rows_of(base, rows.columns)
    mixed = dict(rows.arrays)
    mixed[MEANS] = mixed[MEANS].copy()
    backlog = mixed[BACKLOG] = mixed[BACKLOG].copy()
    far = []
    for member, (own, before, trials) in enumerate(_multiples(rows, start)):
        means, kind = mixed[MEANS][member], engine.runs[member].averaging
        if kind:
            m = before + trials
            backlog[member] += (m - own) * mixed[WEIGHTS][member]
            means[averages.UNSEEN] += (m - own) * means[averages.START]
            means[averages.WEIGHT] += m - own
        far.append(bool(kind) and means[averages.WEIGHT] > MANY)
    copy_rows(description, Rows(rows.columns, mixed), arrays)
    description["model"] = description["model"] | {"grows": True}
    if engine.tracked:
        for member, run in enumerate(engine.runs):
            wide = (arrays[WEIGHTS][member], arrays[BACKLOG][member])
            renew(run.averaging, int(far[member]), *wide, arrays[MEANS][member])
    return any(far)
