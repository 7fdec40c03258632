"""The largest weights of a model, and those behind an instance, for all who look at them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import cast

import numpy as np

from linmax.models.model import Model
from linmax.models.online import Learner
from linmax.models.weights import WeightArrays
from linmax.service.bodies import Instance, Label
from linmax.service.schemas import Weight, WeightsView
from linmax.util.aliases import Name

__all__ = ["WeightsCache"]

MOST_BEHIND = 1000  # weights of a kind in an explanation
SMALL_STATE = 2**18  # bytes of a state: the weights of a smaller one are found within a millisecond or two
QUICK = 0.001  # seconds: shorter work is done again each time
COPY_LIFETIME = 20.0
MOST_VIEWS = 8  # of the same weights


class WeightsCache:
    """The weights of one model, for all who look at them; those of a large model are computed only now and then.

    The time is proportional to the size of the model. If it was more than a moment, the result is reused for twenty
    times as long, so that at most a twentieth of the time goes into it however many clients look. The state of a large
    learner is copied in the event loop, where the learner belongs; the rest is done in a thread.
    """

    def __init__(self) -> None:
        self._arrays: WeightArrays | ValueError | None = None
        self._applied = -1
        self._good_until = 0.0
        self._turn = asyncio.Lock()
        self._views: dict[int, WeightsView] = {}  # of these arrays, by how many weights were wanted

    async def arrays(self, learner: Learner, applied: int) -> WeightArrays:
        """Return the weights after this event, or a moment before; ValueError if a learner has none to show."""
        async with self._turn:
            return await self._current(learner, applied)

    async def _current(self, learner: Learner, applied: int) -> WeightArrays:
        began = time.monotonic()
        if self._arrays is None or (applied != self._applied and began > self._good_until):
            self._views.clear()
            try:
                self._arrays = await _weights(learner)
            except ValueError as error:  # as good as an answer: the learner is not asked again at once
                self._arrays = error.with_traceback(None)
            self._applied, self._good_until = applied, 0.0
            self._rest_after(began)
        if isinstance(self._arrays, ValueError):
            raise ValueError(str(self._arrays))
        return self._arrays

    def _rest_after(self, began: float) -> None:
        """Reuse the result for a multiple of the time that it took."""
        ended = time.monotonic()
        if ended - began > QUICK:
            self._good_until = max(self._good_until, ended) + COPY_LIFETIME * (ended - began)

    async def largest(self, learner: Learner, applied: int, most: int) -> WeightsView:
        """Return the largest weights of each kind; ValueError if a learner has none to show."""
        async with self._turn:
            arrays, columns = await self._current(learner, applied), learner._current_model.columns
            if most not in self._views:
                began, names = time.monotonic(), (columns.voters, columns.raters, columns.attributes)
                view = await asyncio.to_thread(_largest, arrays, names, cast(list[Label], learner.classes), most)
                if len(self._views) == MOST_VIEWS:
                    self._views.clear()
                self._views[most] = view
                self._rest_after(began)
            return self._views[most]

    async def behind(self, learner: Learner, applied: int, instance: Instance) -> WeightsView:
        """Return the largest weights of an instance's sub-experts; none if a learner has none to show."""
        try:
            arrays = await self.arrays(learner, applied)
        except ValueError:
            return WeightsView()
        columns, classes = learner._current_model.columns, cast(list[Label], list(learner.classes))
        names = (instance.get(block, ()) for block in ("votes", "scores", "attributes"))
        voters, raters, attributes = (
            dict(_places(known, wanted, len(values)))
            for known, wanted, values in zip(
                (columns.voters, columns.raters, columns.attributes),
                names,
                (arrays.voters, arrays.raters, arrays.attributes),
                strict=True,
            )
        )
        cells = arrays.attributes[list(attributes.values())]
        return WeightsView(
            voters=_rows(arrays.voters[list(voters.values())], list(voters), MOST_BEHIND),
            raters=_rows(arrays.raters[list(raters.values())], list(raters), MOST_BEHIND),
            thresholds=_rows(arrays.thresholds, classes, MOST_BEHIND),
            attributes=await asyncio.to_thread(_cells, cells, list(attributes), classes, MOST_BEHIND),
        )


async def _weights(learner: Learner) -> WeightArrays:
    """Return the weights; those of a large learner are computed in a thread, from a copy of its state."""
    header, arrays = learner.state()
    if sum(array.nbytes for array in arrays.values()) < SMALL_STATE:
        return learner.weights.arrays
    nameless = header["model"] | {"columns": [[], [], []]}
    copies = {name: array.copy() for name, array in arrays.items()}
    return await asyncio.to_thread(lambda: Model.from_state(nameless, copies, copied=False).weights.arrays)


def _places(columns: Collection[Name], wanted: Iterable[Name], most: int) -> Iterator[tuple[Name, int]]:
    """Yield name and place of the known names; a learner stores its names as a mapping to places."""
    assert isinstance(columns, Mapping)
    for name in wanted:
        place = columns.get(name, most)
        if place < most:
            yield name, place


def _largest(arrays: WeightArrays, names: Iterable[Collection[Name]], classes: list[Label], most: int) -> WeightsView:
    voters, raters, attributes = map(list, names)
    return WeightsView(
        voters=_rows(arrays.voters, voters, most),
        raters=_rows(arrays.raters, raters, most),
        thresholds=_rows(arrays.thresholds, classes, most),
        attributes=_cells(arrays.attributes, attributes, classes, most),
    )


def _cells(table: np.ndarray, names: Sequence[Name], classes: Sequence[Label], most: int) -> list[Weight]:
    width = table.shape[1] if table.ndim == 2 else 0
    return [
        Weight(name=str(names[place // width]), weight=float(table.flat[place]), label=classes[place % width])
        for place in _top(table.ravel(), most)
        if table.flat[place]
    ]


def _rows(values: np.ndarray, names: Sequence[Name], most: int) -> list[Weight]:
    return [Weight(name=str(names[place]), weight=float(values[place])) for place in _top(values, most)]


def _top(values: np.ndarray, most: int) -> list[int]:
    """Return the places of the largest magnitudes, the largest first."""
    size = np.abs(values)
    places = np.argpartition(-size, most)[:most] if len(size) > most else np.arange(len(size))
    return [int(place) for place in places[np.argsort(-size[places], kind="stable")]]
