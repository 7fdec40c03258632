"""Weights to look at: the largest ones, and those behind an instance, without a walk over all names.

Copies of arrays are made in the event loop, where the learner belongs; they are searched in a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from linmax.models.online import Learner
from linmax.models.weights import WeightArrays
from linmax.service.bodies import Label
from linmax.service.packing import Instance

__all__ = ["NO_WEIGHTS", "Weight", "WeightsCache", "WeightsView"]

QUICK = 0.001  # seconds: a copy that takes less may be made each time
COPY_LIFETIME = 20.0


class Weight(Struct, kw_only=True, omit_defaults=True):
    """One weight; with `label` if each class has its own."""

    name: str
    weight: float
    label: Label | None = None


class WeightsView(Struct, kw_only=True):
    """The largest weights of each kind, by magnitude."""

    voters: list[Weight]
    raters: list[Weight]
    thresholds: list[Weight]
    attributes: list[Weight]


NO_WEIGHTS = WeightsView(voters=[], raters=[], thresholds=[], attributes=[])


class WeightsCache:
    """The weights of one model, for all who look at them: large ones are not copied each time, but now and then.

    Copying takes time in proportion to the model. If it took more than a moment, the copy is good for twenty times as
    long, so that at most a twentieth of the time goes into copies however many look.
    """

    def __init__(self) -> None:
        self._arrays: WeightArrays | None = None
        self._applied = -1
        self._good_until = 0.0

    def arrays(self, learner: Learner, applied: int) -> WeightArrays:
        """The weights after this event, or a moment before; ValueError when a learner has none to show."""
        began = time.monotonic()
        if self._arrays is None or (applied != self._applied and began > self._good_until):
            self._arrays, self._applied = learner.weights.arrays, applied
            ended = time.monotonic()
            self._good_until = ended + COPY_LIFETIME * (ended - began) if ended - began > QUICK else 0.0
        return self._arrays

    async def largest(self, learner: Learner, applied: int, most: int) -> WeightsView:
        """The largest weights of each kind; ValueError when a learner has none to show."""
        arrays, columns = self.arrays(learner, applied), learner.model.columns
        names = (columns.voters, columns.raters, columns.attributes)
        return await asyncio.to_thread(_largest, arrays, names, list(learner.classes), most)

    def behind(self, learner: Learner, applied: int, instance: Instance) -> WeightsView:
        """The weights of what an instance holds, the largest first; none where a learner has none to show."""
        try:
            arrays = self.arrays(learner, applied)
        except ValueError:
            return NO_WEIGHTS
        columns, classes = learner.model.columns, learner.classes
        table = arrays.attributes
        own = [
            Weight(name=str(name), weight=float(weight), label=label)
            for name, place in _places(columns.attributes, instance.get("attributes") or (), len(table))
            for label, weight in zip(classes, table[place].tolist(), strict=False)
            if weight
        ]
        votes, scores = instance.get("votes") or (), instance.get("scores") or ()
        return WeightsView(
            voters=_sorted(_found(columns.voters, votes, arrays.voters)),
            raters=_sorted(_found(columns.raters, scores, arrays.raters)),
            thresholds=_rows(arrays.thresholds, classes, len(arrays.thresholds)),
            attributes=_sorted(own),
        )


def _places(columns: Collection[Any], wanted: Iterable[Any], most: int) -> Iterator[tuple[Any, int]]:
    """Name and place of those that there are; a learner keeps its names as a mapping to places."""
    assert isinstance(columns, Mapping)
    for name in wanted:
        place = columns.get(name, most)
        if place < most:
            yield name, place


def _found(columns: Collection[Any], wanted: Iterable[Any], values: np.ndarray) -> list[Weight]:
    found = _places(columns, wanted, len(values))
    return [Weight(name=str(name), weight=float(values[place])) for name, place in found]


def _sorted(rows: list[Weight]) -> list[Weight]:
    return sorted(rows, key=lambda row: -abs(row.weight))


def _largest(arrays: WeightArrays, names: Iterable[Collection[Any]], classes: list[Any], most: int) -> WeightsView:
    voters, raters, attributes = map(list, names)
    table = arrays.attributes
    width = table.shape[1] if table.ndim == 2 else 0
    return WeightsView(
        voters=_rows(arrays.voters, voters, most),
        raters=_rows(arrays.raters, raters, most),
        thresholds=_rows(arrays.thresholds, classes, most),
        attributes=[
            Weight(name=str(attributes[place // width]), weight=float(table.flat[place]), label=classes[place % width])
            for place in _top(table.ravel(), most)
            if table.flat[place]
        ],
    )


def _rows(values: np.ndarray, names: Sequence[Any], most: int) -> list[Weight]:
    return [Weight(name=str(names[place]), weight=float(values[place])) for place in _top(values, most)]


def _top(values: np.ndarray, most: int) -> list[int]:
    """Places of the largest magnitudes, the largest first."""
    size = np.abs(values)
    places = np.argpartition(-size, most)[:most] if len(size) > most else np.arange(len(size))
    return [int(place) for place in places[np.argsort(-size[places], kind="stable")]]
