"""Weights to look at: the largest ones, and those behind an instance, without a walk over all names.

The state of a large learner is copied in the event loop, where the learner belongs; what takes longer is done in a
thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from linmax.models.model import Model
from linmax.models.online import Learner
from linmax.models.weights import WeightArrays
from linmax.service.bodies import Label
from linmax.service.log import Instance

__all__ = ["NO_WEIGHTS", "Weight", "WeightsCache", "WeightsView"]

SMALL_STATE = 2**18  # bytes of a state: the weights of a smaller one are found within a millisecond or two
MOST_BEHIND = 1000  # weights of a kind in an explanation
QUICK = 0.001  # seconds: what takes less may be done each time
COPY_LIFETIME = 20.0
MOST_VIEWS = 8  # kept of the same weights


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
    """The weights of one model, for all who look at them: large ones are not made each time, but now and then.

    That takes time in proportion to the model. If it took more than a moment, what was found is good for twenty times
    as long, so that at most a twentieth of the time goes into it however many look.
    """

    def __init__(self) -> None:
        self._arrays: WeightArrays | ValueError | None = None
        self._applied = -1
        self._good_until = 0.0
        self._turn = asyncio.Lock()
        self._views: dict[int, WeightsView] = {}  # of these arrays, by how many weights were wanted

    async def arrays(self, learner: Learner, applied: int) -> WeightArrays:
        """The weights after this event, or a moment before; ValueError when a learner has none to show."""
        async with self._turn:
            return await self._found(learner, applied)

    async def _found(self, learner: Learner, applied: int) -> WeightArrays:
        began = time.monotonic()
        if self._arrays is None or (applied != self._applied and began > self._good_until):
            self._views.clear()
            try:
                self._arrays = await _weights(learner)
            except ValueError as error:  # as good as an answer: it is not asked again at once
                self._arrays = error.with_traceback(None)
            self._applied, self._good_until = applied, 0.0
            self._rest_after(began)
        if isinstance(self._arrays, ValueError):
            raise ValueError(str(self._arrays))
        return self._arrays

    def _rest_after(self, began: float) -> None:
        """What has been found in the time since then is good for a multiple of it."""
        ended = time.monotonic()
        if ended - began > QUICK:
            self._good_until = max(self._good_until, ended) + COPY_LIFETIME * (ended - began)

    async def largest(self, learner: Learner, applied: int, most: int) -> WeightsView:
        """The largest weights of each kind; ValueError when a learner has none to show."""
        async with self._turn:
            arrays, columns = await self._found(learner, applied), learner.model.columns
            if most not in self._views:
                began, names = time.monotonic(), (columns.voters, columns.raters, columns.attributes)
                found = await asyncio.to_thread(_largest, arrays, names, list(learner.classes), most)
                if len(self._views) == MOST_VIEWS:
                    self._views.clear()
                self._views[most] = found
                self._rest_after(began)
            return self._views[most]

    async def behind(self, learner: Learner, applied: int, instance: Instance) -> WeightsView:
        """The largest weights of what an instance holds; none where a learner has none to show."""
        try:
            arrays = await self.arrays(learner, applied)
        except ValueError:
            return NO_WEIGHTS
        columns, classes = learner.model.columns, list(learner.classes)
        own = dict(_places(columns.attributes, instance.get("attributes") or (), len(arrays.attributes)))
        votes, scores = instance.get("votes") or (), instance.get("scores") or ()
        return WeightsView(
            voters=_found(columns.voters, votes, arrays.voters),
            raters=_found(columns.raters, scores, arrays.raters),
            thresholds=_rows(arrays.thresholds, classes, MOST_BEHIND),
            attributes=await asyncio.to_thread(_cells, arrays.attributes, own, classes, MOST_BEHIND),
        )


async def _weights(learner: Learner) -> WeightArrays:
    """The weights of a small learner at once; those of a large one in a thread, from a copy of its state."""
    header, arrays = learner.state()
    if sum(array.nbytes for array in arrays.values()) < SMALL_STATE:
        return learner.weights.arrays
    nameless = header["model"] | {"columns": [[], [], []]}
    copies = {name: array.copy() for name, array in arrays.items()}
    return await asyncio.to_thread(lambda: Model.from_state(nameless, copies, copied=False).weights.arrays)


def _places(columns: Collection[Any], wanted: Iterable[Any], most: int) -> Iterator[tuple[Any, int]]:
    """Name and place of those that there are; a learner keeps its names as a mapping to places."""
    assert isinstance(columns, Mapping)
    for name in wanted:
        place = columns.get(name, most)
        if place < most:
            yield name, place


def _found(columns: Collection[Any], wanted: Iterable[Any], values: np.ndarray) -> list[Weight]:
    found = dict(_places(columns, wanted, len(values)))
    return _rows(values[list(found.values())], list(found), MOST_BEHIND)


def _largest(arrays: WeightArrays, names: Iterable[Collection[Any]], classes: list[Any], most: int) -> WeightsView:
    voters, raters, attributes = map(list, names)
    return WeightsView(
        voters=_rows(arrays.voters, voters, most),
        raters=_rows(arrays.raters, raters, most),
        thresholds=_rows(arrays.thresholds, classes, most),
        attributes=_largest_cells(arrays.attributes, attributes, classes, most),
    )


def _cells(table: np.ndarray, own: Mapping[Any, int], classes: list[Any], most: int) -> list[Weight]:
    """The largest weights of some attributes, by name and place."""
    return _largest_cells(table[list(own.values())], list(own), classes, most)


def _largest_cells(table: np.ndarray, names: Sequence[Any], classes: list[Any], most: int) -> list[Weight]:
    width = table.shape[1] if table.ndim == 2 else 0
    return [
        Weight(name=str(names[place // width]), weight=float(table.flat[place]), label=classes[place % width])
        for place in _top(table.ravel(), most)
        if table.flat[place]
    ]


def _rows(values: np.ndarray, names: Sequence[Any], most: int) -> list[Weight]:
    return [Weight(name=str(names[place]), weight=float(values[place])) for place in _top(values, most)]


def _top(values: np.ndarray, most: int) -> list[int]:
    """Places of the largest magnitudes, the largest first."""
    size = np.abs(values)
    places = np.argpartition(-size, most)[:most] if len(size) > most else np.arange(len(size))
    return [int(place) for place in places[np.argsort(-size[places], kind="stable")]]
