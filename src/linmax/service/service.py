"""The service without HTTP: models by name, requests turned into events, snapshots, recovery, shutdown."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from linmax.service import bodies
from linmax.service.bodies import LabelBody, LearnBody, Learned, NewModel, PredictBody, Predicted
from linmax.service.ids import Ids
from linmax.service.log import Event, EventLog, ModelRow
from linmax.service.log_file import DiskFull
from linmax.service.model import UNFIT, ServedModel
from linmax.service.packing import Label, SentNames
from linmax.service.pipeline import Entry, Pipeline
from linmax.service.refusals import Refusal
from linmax.service.settings import ServiceSettings
from linmax.service.snapshots import Snapshots

__all__ = ["Service"]

logger = logging.getLogger("linmax.service")

CONFIRM_SECONDS = 120
LAST_ERRORS = 20

Done = Callable[[list[Any]], None]


class Service:
    """Several models over one log.

    Parameters
    ----------
    settings : where the data are, and the limits.
    observe : called with (entries, seconds) after each commit.
    fail : what to do when storage fails: by default, end the process.
    vfs : name of the SQLite virtual file system, for tests.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        *,
        observe: Callable[[int, float], None] | None = None,
        fail: Callable[[BaseException], None] | None = None,
        vfs: str | None = None,
    ) -> None:
        settings.data.mkdir(parents=True, exist_ok=True)
        self.settings = settings
        self.log = EventLog(settings.data / "log.sqlite", vfs=vfs)
        self.snapshots = Snapshots(settings.data / "snapshots")
        self.ids = Ids(self.log.at)
        self.models: dict[str, ServedModel] = {}
        self.ready = False
        self.stopping = asyncio.Event()
        self.replayed = 0
        self.recovery_seconds = 0.0
        self.snapshot_failures = 0
        self.errors: deque[dict[str, Any]] = deque(maxlen=LAST_ERRORS)
        self._observe, self._fail = observe, fail
        self._confirmations: dict[str, tuple[int, float]] = {}
        self._unwritten: list[tuple[int, int, Label | None]] = []
        self._housekeeping: asyncio.Task[None] | None = None
        self._saving = asyncio.Lock()
        self._purging = True  # an earlier run may have stopped in the middle

    async def start(self) -> None:
        """Recover, then take requests."""
        began = time.perf_counter()
        await asyncio.to_thread(self._recover)
        self.recovery_seconds = time.perf_counter() - began
        self.pipeline = Pipeline(
            self.log,
            self._apply,
            queue=self.settings.queue,
            gather=self.settings.gather,
            observe=self._observe,
            fail=self._fail,
        )
        for note in self._unwritten:
            self.pipeline.answered(*note)
        self._unwritten.clear()
        self.ready = True
        self._housekeeping = asyncio.create_task(self._keep_house())
        logger.info(
            "ready: %d models, %d trials replayed, %.2f s", len(self.models), self.replayed, self.recovery_seconds
        )

    async def stop(self) -> None:
        """Answer what is waiting, write snapshots, close the log."""
        self.stopping.set()
        if self._housekeeping is not None:
            self._housekeeping.cancel()
            for model in list(self.models.values()):
                await self.save(model)
            await self.pipeline.close()
        try:
            self.log.close()
        except DiskFull:
            logger.warning("no room to move the WAL into the log file; the next start will read both")
        logger.info("stopped")

    def _recover(self) -> None:
        for row in self.log.models.values():
            model = ServedModel(row)
            self.snapshots.restore(model, self.log.last(row.number))
            self.replayed += model.replay(self.log, self._noting(row.number))
            self.models[row.name] = model

    def _noting(self, number: int) -> Callable[[int, Label | None], None]:
        written = self.log.answered

        def note(seq: int, predicted: Label | None) -> None:
            if seq > written:
                self._unwritten.append((number, seq, predicted))

        return note

    # -- models ---------------------------------------------------------------------------------------

    def model(self, name: str) -> ServedModel:
        """The model of this name; 404 when there is none, 503 before recovery is done."""
        if not self.ready:
            raise Refusal(503, "the log is being replayed; try again", retry_after=1)
        found = self.models.get(name)
        if found is None:
            raise Refusal(404, f"no model is called {name!r}")
        return found

    async def create(self, body: NewModel) -> ServedModel:
        """Make a model."""
        if not self.ready:
            raise Refusal(503, "the log is being replayed; try again", retry_after=1)
        if len(self.models) >= self.settings.max_models:
            raise Refusal(429, f"there are {len(self.models)} models, the most allowed; delete one")
        description = msgspec.to_builtins(body)
        del description["name"]
        row = ModelRow(0, body.name, description, 0, SentNames())
        trial = ServedModel(row)  # refuses impossible options before anything is stored
        await asyncio.to_thread(trial.warm_up)
        row = await self.pipeline.call(lambda log: log.create(body.name, description))
        model = self.models[body.name] = ServedModel(row)
        logger.info("model %s created: %s", model.name, model.options.learner)
        return model

    async def delete(self, model: ServedModel, confirm: str | None) -> None:
        """Delete a model and its log; the first request gets a word with which to confirm."""
        now = time.monotonic()
        self._confirmations = {word: (n, end) for word, (n, end) in self._confirmations.items() if end > now}
        if confirm is None or self._confirmations.get(confirm, (None,))[0] != model.number:
            word = secrets.token_urlsafe(9)
            self._confirmations[word] = (model.number, now + CONFIRM_SECONDS)
            told = f"this deletes {model.account.trials} trials for ever; ask again with ?confirm={word}"
            raise Refusal(428, told, field="confirm", confirm=word)
        del self._confirmations[confirm]
        del self.models[model.name]
        try:
            await self.pipeline.call(lambda log: log.delete(model.number))
        except Refusal:
            self.models[model.name] = model
            raise
        self._purging = True
        async with self._saving:
            await asyncio.to_thread(self.snapshots.remove, model.number)
        logger.info("model %s deleted after %d trials", model.name, model.account.trials)

    # -- trials ---------------------------------------------------------------------------------------

    # `done` is called with one answer for each item: at once, or when everything is stored and applied.

    def predict(self, model: ServedModel, items: list[PredictBody], done: Done) -> None:
        """Serve labels; keep the instances that expect one."""
        answers: list[Any] = []
        kept: list[tuple[int, str, Entry]] = []
        for position, body in enumerate(items):
            try:
                instance = bodies.instance_of(body, model.choices)
                label = self._serve(model, instance)
                if body.id is not None or body.store:
                    id = body.id or self.ids.new()
                    kept.append((position, id, self._keep(model, id, instance, label, len(kept))))
                answers.append(Predicted(label=label))
            except Refusal as refusal:
                answers.append(refusal)
        if not kept:
            done(answers)
            return

        def stored() -> None:
            model.arriving -= len(kept)
            for position, id, entry in kept:
                event = entry.outcome
                if isinstance(event, Event):
                    answers[position] = Predicted(label=event.served, id=id, seq=event.seq)
                else:
                    answers[position] = event
            done(answers)

        self.pipeline.submit([entry for _, _, entry in kept], stored)
        model.arriving += len(kept)

    def _serve(self, model: ServedModel, instance: dict[str, Any]) -> Label | None:
        try:
            return model.predict(instance)
        except UNFIT as error:
            raise Refusal(422, str(error), field=model.options.kind) from None

    def _keep(self, model: ServedModel, id: str, instance: dict[str, Any], label: Label | None, before: int) -> Entry:
        waiting, most = model.pending + model.arriving + before, model.options.max_pending
        if waiting >= most:
            message = f"{waiting} predictions wait for labels, the most this model keeps; label or forget some"
            raise Refusal(429, message, retry_after=60)
        number = model.number
        return Entry(lambda log: log.predict(number, id, instance, label), model)

    def learn(self, model: ServedModel, items: list[LearnBody], done: Done) -> None:
        """Store instances with their labels, and learn them."""
        self._teach(model, items, self._learn_entry, done)

    def _learn_entry(self, model: ServedModel, body: LearnBody) -> tuple[str, Entry]:
        instance = bodies.instance_of(body, model.choices)
        label = bodies.checked_label(body.label, model.choices)
        model.check(instance, label)
        id = body.id or self.ids.new()
        number = model.number
        return id, Entry(lambda log: log.learn(number, id, instance, label), model)

    def label(self, model: ServedModel, items: list[LabelBody], done: Done) -> None:
        """Store labels of earlier predictions, and learn them."""
        self._teach(model, items, self._label_entry, done)

    def _label_entry(self, model: ServedModel, body: LabelBody) -> tuple[str, Entry]:
        label = bodies.checked_label(body.label, model.choices)
        id, number = body.id, model.number
        return id, Entry(lambda log: log.label(number, id, label), model)

    def _teach(
        self,
        model: ServedModel,
        items: list[Any],
        entry_of: Callable[[ServedModel, Any], tuple[str, Entry]],
        done: Done,
    ) -> None:
        answers: list[Any] = []
        for body in items:
            try:
                answers.append(entry_of(model, body))
            except Refusal as refusal:
                answers.append(refusal)

        def stored() -> None:
            done([self._learned(*answer) if type(answer) is tuple else answer for answer in answers])

        entries = [answer[1] for answer in answers if type(answer) is tuple]
        if entries:
            self.pipeline.submit(entries, stored)
        else:
            done(answers)

    def _learned(self, id: str, entry: Entry) -> Learned | Refusal:
        event = entry.outcome
        if not isinstance(event, Event):
            assert event is not None
            return event
        assert event.label is not None
        mistake = event.served != event.label
        return Learned(id=id, seq=event.seq, label=event.label, predicted=event.served, mistake=mistake)

    async def forget(self, model: ServedModel, id: str) -> None:
        """Store that no label will come for this prediction."""
        number = model.number
        entry = Entry(lambda log: log.forget(number, id), model)
        stored = asyncio.Event()
        self.pipeline.submit([entry], stored.set)
        await stored.wait()
        if isinstance(entry.outcome, Refusal):
            raise entry.outcome

    def _apply(self, entry: Entry) -> None:
        """Called by the pipeline, in order, with what is on stable storage."""
        event, model = entry.outcome, entry.model
        assert isinstance(event, Event)
        if not event.repeat:
            fault = model.apply(event, lambda seq, predicted: self.pipeline.answered(model.number, seq, predicted))
            if fault is not None:
                entry.outcome = Refusal(422, f"stored, but it cannot be learned: {fault}", field=model.options.kind)
        elif not event.answered:
            event.served = self.pipeline.unwritten[event.seq]

    # -- housekeeping ---------------------------------------------------------------------------------

    async def save(self, model: ServedModel) -> Path | None:
        """Write a snapshot if there is something new; a failure is logged and harmless, as the log has everything."""
        async with self._saving:
            if model.applied == model.saved or self.models.get(model.name) is not model:
                return None
            state = model.state()
            try:
                await self.pipeline.flush()  # once in a snapshot, answers cannot be found by replaying
                path = await asyncio.to_thread(self.snapshots.write, model.number, state)
            except (OSError, Refusal) as error:
                self.snapshot_failures += 1
                logger.warning("no snapshot of %s: %s", model.name, error)
                return None
            model.saved = state[0]["applied_seq"]
            return path

    async def _keep_house(self) -> None:
        last = time.monotonic()
        while True:
            await asyncio.sleep(1.0)
            try:
                while self._purging:
                    self._purging = await self.pipeline.call(lambda log: log.purge()) > 0
                due = time.monotonic() - last > self.settings.snapshot_seconds
                last = time.monotonic() if due else last
                for model in list(self.models.values()):
                    if due or model.applied - model.saved >= self.settings.snapshot_events:
                        await self.save(model)
            except Refusal as refusal:
                logger.warning("housekeeping waits: %s", refusal)
