"""The coordinates in use in an engine, and their places in a union."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linmax.core.contract import EXPERTS, STRIDE
from linmax.data.arrays import Layout
from linmax.engine.engine import Engine

__all__ = ["PlacedEngine", "read_existing", "write_existing"]


@dataclass(frozen=True)
class PlacedEngine:
    """An engine, and where its columns and classes are in the union."""

    engine: Engine
    voters: np.ndarray
    raters: np.ndarray
    dense: np.ndarray
    sparse: np.ndarray
    classes: np.ndarray
    alike: bool = False  # whether the union is known to have the same coordinates, in the same order

    def places(self, target: Engine) -> np.ndarray | None:
        """Where its coordinates are among those of the target; None where they are the same, in the same order."""
        if self.alike:
            return None
        own, layout = self.engine.layout, target.layout
        maps = (self.voters, self.raters, self.dense, self.sparse, self.classes)
        if own == layout and self.engine.k == target.k and all(map(_in_order, maps)):
            return None
        rows = np.concatenate([np.zeros(1 if own.constant else 0), 1 + self.dense, 1 + layout.dense + self.sparse])
        experts, rows = layout.voters + layout.raters, rows.astype(np.int64) - _first_row(layout)
        table = (experts + rows * target.k)[:, None] + self.classes
        return np.concatenate([self.voters, layout.voters + self.raters, table.ravel()]).astype(np.int64)


def _in_order(numbers: np.ndarray) -> bool:
    return bool((numbers == np.arange(numbers.size)).all())


def _first_row(layout: Layout) -> int:
    """The first row in use: room for the constant is kept even if there is none."""
    return 0 if layout.constant else 1


def _table(engine: Engine, stored: np.ndarray) -> np.ndarray:
    """A view of the rows of the linear machine that are in use, with one column for each class."""
    shape = engine.state.shape
    experts, stride = int(shape[EXPERTS]), int(shape[STRIDE])
    padded = stored[..., experts:].reshape(*stored.shape[:-1], engine.capacity, stride)
    return padded[..., _first_row(engine.layout) : engine.layout.rows, : engine.k]


def read_existing(engine: Engine, stored: np.ndarray) -> np.ndarray:
    """The coordinates in use, copied from an array whose last axis has room for more."""
    experts, table = int(engine.state.shape[EXPERTS]), _table(engine, stored)
    rows = table.shape[-2] * engine.k
    if not experts:
        return table.copy().reshape(*stored.shape[:-1], rows)
    found = np.empty((*stored.shape[:-1], experts + rows), stored.dtype)
    found[..., :experts] = stored[..., :experts]
    found[..., experts:].reshape(table.shape)[...] = table
    return found


def write_existing(engine: Engine, stored: np.ndarray, existing: np.ndarray) -> None:
    """Write the coordinates in use to their places."""
    experts, table = int(engine.state.shape[EXPERTS]), _table(engine, stored)
    stored[..., :experts] = existing[..., :experts]
    table[...] = existing[..., experts:].reshape(table.shape)
