"""The events of an export stored and learned again: the history of a model, of this service or of another one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING

from linmax.service.bodies import instance_of, truth_of
from linmax.service.log import ASKS, Body, Event
from linmax.service.pipeline import Entry
from linmax.service.schemas import BodyReader, Imported, ImportRow, Instanced, LabelBody, LearnBody, Refusal
from linmax.service.trials import store_label, store_loss, store_prediction, store_question, store_trial

if TYPE_CHECKING:
    from linmax.service.service import Service

__all__ = ["Importer"]

ROWS = 200  # stored together
IN_FLIGHT = 4  # such groups
MOST_PROBLEMS = 20  # that are returned
EMPTY = Instanced()  # which may stand for blocks without names
read_row = BodyReader(ImportRow).read


class Importer:
    """One import.

    Parameters
    ----------
    service : where to store.
    model : the model of all events; "" for those that they name.
    """

    def __init__(self, service: Service, model: str) -> None:
        self.service, self.model = service, model
        self.done = Imported(problems=[])
        self._lines, self._rows = 0, max(1, min(ROWS, service.settings.queue // (2 * IN_FLIGHT)))
        self._waiting: deque[tuple[asyncio.Future[None], list[tuple[int, Entry]]]] = deque()

    async def run(self, parts: AsyncIterator[bytes]) -> Imported:
        """Take lines of JSON as they come; return what became of them."""
        left = b""
        async for part in parts:
            *lines, left = (left + part).split(b"\n")
            if len(left) > self.service.settings.max_body:
                raise Refusal(413, f"a line must be at most {self.service.settings.max_body} bytes", field="body")
            for start in range(0, len(lines), self._rows):
                await self._take(lines[start : start + self._rows])
        await self._take([left])
        while self._waiting:
            await self._count()
        return self.done

    async def _take(self, lines: list[bytes]) -> None:
        entries = []
        for line in lines:
            self._lines += 1
            if not line.strip():
                continue
            try:
                entries.append((self._lines, self._entry(read_row(line))))
            except Refusal as refusal:
                self._refuse(self._lines, refusal)
        if entries:
            self._waiting.append((self.service.pipeline.submit([entry for _, entry in entries]), entries))
        while len(self._waiting) >= IN_FLIGHT:
            await self._count()
        await asyncio.sleep(0)

    async def _count(self) -> None:
        future, entries = self._waiting.popleft()
        await future
        for line, entry in entries:
            if isinstance(entry.outcome, Event):
                self.done.repeated += entry.outcome.repeat
                self.done.stored += not entry.outcome.repeat
            elif entry.outcome is not None:
                if entry.outcome.status == 507:  # the disk is full: what follows would fail as well
                    raise entry.outcome
                self._refuse(line, entry.outcome)

    def _refuse(self, line: int, refusal: Refusal) -> None:
        self.done.refused += 1
        if len(self.done.problems) < MOST_PROBLEMS:
            self.done.problems.append((line, refusal.problem))

    def _entry(self, row: ImportRow) -> Entry:
        """Return what stores an event as the request did that made it."""
        model = self.service.model(self.model or row.model or "")
        number, limits, id = model.number, model.limits, row.id or self.service.ids.new()
        admit = partial(self.service.admit, model)
        if row.kind in ("label", "forget"):
            if row.kind == "forget":
                return Entry(lambda log: store_loss(log, number, id), model, id)
            late = LabelBody(id=id, label=row.label, wrong=row.wrong, weight=row.weight)
            body = Body(None, *truth_of(late, limits), weight=row.weight)
            return Entry(lambda log: store_label(log, number, id, body, admit), model, id)
        if row.kind == "ask":
            asking = {"tolerance": row.tolerance} | ({} if row.costs is None else {"costs": row.costs})
            return Entry(lambda log: log.append(number, ASKS, body=Body(asking)), model, id)
        if row.instance is None:
            raise Refusal(422, "instance is missing", field="instance")
        instance = {} if row.instance == EMPTY else instance_of(row.instance, limits)
        if row.kind == "wants_label":
            return Entry(lambda log: store_question(log, number, id, instance), model, id)
        if row.kind == "predict":
            served = Body(instance, served=row.served)
            return Entry(lambda log: store_prediction(log, number, id, served), model, id)
        label, wrong = truth_of(LearnBody(label=row.label, wrong=row.wrong, weight=row.weight), limits)
        model.check(instance, label)
        trial = Body(instance, label, wrong, weight=row.weight)
        return Entry(lambda log: store_trial(log, number, id, trial, admit), model, id)
