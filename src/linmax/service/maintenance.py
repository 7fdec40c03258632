"""Upkeep while the service runs: snapshots, predictions that expire, retention, what was deleted.

Each duty is tried again if it fails: the failure is counted and logged, and the others continue.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from linmax.service.log import EventLog
from linmax.service.served_model import ServedModel
from linmax.service.snapshots import SNAPSHOT, SNAPSHOTS_KEPT, belongs
from linmax.util import files

if TYPE_CHECKING:
    from linmax.service.service import Service

__all__ = ["Maintenance"]

logger = logging.getLogger("linmax.service")

ROUND_SECONDS = 1.0
EXPIRED = 100  # predictions forgotten at a time
UPKEEP_PAUSE = 4.0  # times as long as a slice of upkeep took, before the next one


class Maintenance:
    """The duties of one service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.failures: Counter[str] = Counter()
        self.expired = 0
        self._failing: dict[str, str] = {}
        self._task: asyncio.Task[None] | None = None
        self._saving = asyncio.Lock()
        self._last_saved = time.monotonic()
        self._cut_at: dict[int, int] = {}  # the snapshot at which each model was cut last
        self._purging = True  # an earlier run may have stopped in the middle

    def begin(self) -> None:
        """Start the maintenance tasks."""
        self._last_saved = time.monotonic()
        self._task = asyncio.create_task(self._rounds())

    async def end(self) -> None:
        """Stop; what is being written is finished."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _rounds(self) -> None:
        duties: dict[str, Callable[[], Awaitable[object]]] = {
            "snapshots": self._save_due,
            "expiry": self._expire,
            "purge": self._purge,
            "retention": self._retain,
        }
        while True:
            await asyncio.sleep(ROUND_SECONDS)
            for name, duty in duties.items():
                await self._attempt(name, duty)

    async def _attempt(self, name: str, duty: Callable[[], Awaitable[object]]) -> None:
        try:
            await duty()
        except Exception as error:  # it is tried again in the next round
            self.failures[name] += 1
            if self._failing.get(name) != str(error):  # say the same thing once
                logger.warning("housekeeping: %s failed and will be tried again: %s", name, error, exc_info=error)
            self._failing[name] = str(error)
        else:
            if self._failing.pop(name, None) is not None:
                logger.info("housekeeping: %s works again", name)

    async def _gently(self, work: Callable[[EventLog], bool]) -> None:
        """Run a long task of the writer in slices, with pauses between them, until it returns that nothing is left."""
        more = True
        while more:
            began = time.monotonic()
            more = await self.service.pipeline.call(work)
            await asyncio.sleep(max(0.005, UPKEEP_PAUSE * (time.monotonic() - began)))

    # -- snapshots ------------------------------------------------------------------------------------

    async def save(self, model: ServedModel) -> Path | None:
        """Write a snapshot if there is something new; a failure is counted and harmless, as the log has everything."""
        service = self.service
        async with self._saving:
            if model.applied == model.saved or service.models.get(model.name) is not model:
                return None
            path = None

            async def write() -> None:
                nonlocal path
                state = model.state()
                await service.pipeline.flush()  # once in a snapshot, answers cannot be found by replaying
                path = await asyncio.to_thread(service.snapshots.write, model.number, state)
                model.saved = state[0]["applied_seq"]

            await self._attempt("snapshots", write)
            return path

    async def _save_due(self) -> None:
        settings = self.service.settings
        due = time.monotonic() - self._last_saved > settings.snapshot_seconds
        self._last_saved = time.monotonic() if due else self._last_saved
        for model in list(self.service.models.values()):
            if due or model.applied - model.saved >= settings.snapshot_events:
                await self.save(model)

    # -- predictions whose label never came -----------------------------------------------------------

    async def _expire(self) -> None:
        """Forget predictions that have waited for longer than their model wants; these are events like any other."""
        for model in list(self.service.models.values()):
            expire, more = model.options.expire, True
            while expire is not None and more:
                number = model.number
                found = await self.service.pipeline.call(
                    partial(EventLog.waiting, number=number, after=0, most=EXPIRED)
                )
                oldest = time.time_ns() // 1_000_000 - 1000.0 * expire
                ids = [row.id for row in found if row.at < oldest]
                more = len(ids) == EXPIRED
                if ids:
                    await self.service.trials.forget(model, ids)
                    self.expired += len(ids)

    # -- what was deleted -----------------------------------------------------------------------------

    async def deleted(self, number: int) -> None:
        """A model was deleted: remove its snapshots, and its events bit by bit."""
        self._purging = True
        async with self._saving:
            await asyncio.to_thread(self.service.snapshots.remove, number)

    async def _purge(self) -> None:
        if not self._purging:
            return
        self._purging = False  # a model that is deleted from now on sets it again
        try:
            await self._gently(lambda log: log.purge() > 0)
            await self._gently(EventLog.give_back)
        except Exception:
            self._purging = True
            raise

    # -- retention ------------------------------------------------------------------------------------

    async def _retain(self) -> None:
        """Cut the logs behind the snapshots, as far as the operator wants it."""
        settings = self.service.settings
        if settings.keep_events is None and settings.keep_seconds is None:
            return
        for model in list(self.service.models.values()):
            saved = model.saved
            if self._cut_at.get(model.number) != saved:
                await self._cut(model)
                self._cut_at[model.number] = saved

    async def _cut(self, model: ServedModel) -> None:
        service, number = self.service, model.number
        settings, call = service.settings, service.pipeline.call
        found = service.snapshots.found(number)
        if len(found) < SNAPSHOTS_KEPT:
            return
        seconds = settings.keep_seconds
        since = None if seconds is None else int(time.time() * 1000 - seconds * 1000)
        point = await call(lambda log: log.cut_point(number, found[-1][0], settings.keep_events, since))
        if point <= service.log.models[number].kept:
            return
        for seq, path in found:  # what stands for the events must be whole, and of this history
            header, _ = await asyncio.to_thread(files.read, path, SNAPSHOT)
            if not await call(partial(_is_own, header=header, seq=seq, number=number)):
                raise ValueError(f"snapshot {path.name} is not part of this log's history")
        await call(lambda log: log.cut(number, point))
        position: int | None = 0
        while position is not None:
            began = time.monotonic()
            position = await call(partial(EventLog.drop, number=number, after=position))
            await asyncio.sleep(UPKEEP_PAUSE * (time.monotonic() - began))
        await self._gently(EventLog.give_back)


def _is_own(log: EventLog, *, header: Mapping[str, object], seq: int, number: int) -> bool:
    return belongs(header, seq, log, number)
