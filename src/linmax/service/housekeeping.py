"""Upkeep while the service runs: snapshots, and the removal of what was deleted.

Each duty is tried again if it fails: the failure is counted and logged, and the others go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linmax.service.log import EventLog
from linmax.service.log_upkeep import purge
from linmax.service.model import ServedModel

if TYPE_CHECKING:
    from linmax.service.service import Service

__all__ = ["Housekeeping"]

logger = logging.getLogger("linmax.service")

ROUND_SECONDS = 1.0
REST = 4.0  # times as long as a slice of upkeep took, before the next one


class Housekeeping:
    """The duties of one service."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.failures: Counter[str] = Counter()
        self._failing: dict[str, str] = {}
        self._task: asyncio.Task[None] | None = None
        self._saving = asyncio.Lock()
        self._last_saved = time.monotonic()
        self._purging = True  # an earlier run may have stopped in the middle

    def begin(self) -> None:
        """Keep house from now on."""
        self._last_saved = time.monotonic()
        self._task = asyncio.create_task(self._rounds())

    async def end(self) -> None:
        """Stop; what is being written is finished."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _rounds(self) -> None:
        while True:
            await asyncio.sleep(ROUND_SECONDS)
            for name, duty in self._duties().items():
                await self._attempt(name, duty)

    def _duties(self) -> dict[str, Callable[[], Awaitable[Any]]]:
        return {"snapshots": self._save_due, "purge": self._purge}

    async def _attempt(self, name: str, duty: Callable[[], Awaitable[Any]]) -> None:
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
        """Let the writer do a long work in slices, with rests between them, until it says that there is no more."""
        more = True
        while more:
            began = time.monotonic()
            more = await self.service.pipeline.call(work)
            await asyncio.sleep(max(0.005, REST * (time.monotonic() - began)))

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

    # -- what was deleted -----------------------------------------------------------------------------

    async def deleted(self, number: int) -> None:
        """A model was deleted: remove its snapshots, and its events bit by bit."""
        self._purging = True
        async with self._saving:
            await asyncio.to_thread(self.service.snapshots.remove, number)

    async def _purge(self) -> None:
        if self._purging:
            await self._gently(lambda log: purge(log) > 0)
            self._purging = False
