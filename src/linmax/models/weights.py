"""Weights of a model, by name and as arrays, and the names of its columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linmax.data.arrays import Layout
from linmax.util import files
from linmax.util.aliases import Label, Name

__all__ = ["Columns", "WeightArrays", "Weights"]

WEIGHT_BLOCKS = ("voters", "raters", "thresholds", "attributes")


@dataclass(frozen=True)
class WeightArrays:
    """The weights by what they belong to; the true ones are these times exp(log_scale)."""

    voters: np.ndarray
    raters: np.ndarray
    thresholds: np.ndarray  # (classes,), or none
    attributes: np.ndarray  # (attributes, classes)
    log_scale: float = 0.0

    @property
    def flat(self) -> np.ndarray:
        """All of them in the order of the coordinates: voters, raters, thresholds, attributes by class."""
        return np.concatenate([self.voters, self.raters, self.thresholds, self.attributes.ravel()])

    def over(self, divisor: float) -> WeightArrays:
        """All of them divided."""
        blocks = (self.voters, self.raters, self.thresholds, self.attributes)
        voters, raters, thresholds, attributes = (block / divisor for block in blocks)
        return WeightArrays(voters, raters, thresholds, attributes, self.log_scale)


class Weights(Mapping[str, dict[Name, Any]]):
    """The weights by name, up to one positive factor.

    A mapping with ``voters`` {name: weight}, ``raters`` {name: weight}, ``thresholds`` {class: weight} and
    ``attributes`` {name: {class: weight}}; ``arrays`` has the same as arrays.

    Examples
    --------
    >>> import linmax
    >>> weights = linmax.run("perceptron", linmax.instances(votes=[["a", "b"], ["b", "b"]]), ["a", "b"]).model.weights
    >>> weights["voters"], weights["thresholds"]
    ({'0': 2.0, '1': 0.0}, {'a': 0.0, 'b': 0.0})
    >>> weights.arrays.voters
    array([2., 0.])
    """

    def __init__(
        self,
        arrays: WeightArrays,
        classes: Collection[Label],
        voters: Collection[Name],
        raters: Collection[Name],
        attributes: Collection[Name],
    ) -> None:
        self.arrays = arrays
        self._names = {"voters": voters, "raters": raters, "thresholds": classes, "attributes": attributes}

    def __getitem__(self, block: str) -> dict[Name, Any]:
        names = self._names[block]
        values = getattr(self.arrays, block)
        if block != "attributes":
            return dict(zip(names, values.tolist(), strict=False))
        classes = self._names["thresholds"]
        return {name: dict(zip(classes, row, strict=False)) for name, row in zip(names, values.tolist(), strict=False)}

    def __iter__(self) -> Iterator[str]:
        return iter(WEIGHT_BLOCKS)

    def __len__(self) -> int:
        return len(WEIGHT_BLOCKS)

    def __repr__(self) -> str:
        return repr(dict(self))


@dataclass
class Columns:
    """Names of the columns of a model; columns without a name go by their numbers."""

    voters: Collection[Name] = ()
    raters: Collection[Name] = ()
    attributes: Collection[Name] = ()

    def all(self, layout: Layout) -> tuple[Collection[Name], Collection[Name], Collection[Name]]:
        """Return one name for each voter, rater and attribute."""
        counts = (layout.voters, layout.raters, layout.dense + layout.sparse)
        blocks = (self.voters, self.raters, self.attributes)
        voters, raters, attributes = (
            block if len(block) == count else [*block, *range(len(block), count)]
            for block, count in zip(blocks, counts, strict=True)
        )
        return voters, raters, attributes

    def plain(self) -> list[list[Label]]:
        """Return all names as JSON stores them."""
        blocks = []
        for block in (self.voters, self.raters, self.attributes):
            names = list(block)
            blocks.append(names if set(map(type, names)) <= {str} else list(map(files.plain, names)))
        return blocks
