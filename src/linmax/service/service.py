"""The service without HTTP: models by name, recovery, shutdown."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypedDict

import msgspec

from linmax.models.online import Learner
from linmax.service.bodies import Instance, InstanceLimits, Label
from linmax.service.environment import environment, versions
from linmax.service.folder import flush_folder, private_folder
from linmax.service.ids import Ids
from linmax.service.log import BACKUP_NOTE, Damaged, DiskFull, Event, EventLog, ModelRow
from linmax.service.maintenance import Maintenance
from linmax.service.memory_budget import Budget, KnownNames
from linmax.service.pipeline import Entry, Guess, Pipeline
from linmax.service.replay import Interrupted, replay
from linmax.service.schemas import Limits, ModelOptions, NewModel, RecentError, Refusal
from linmax.service.served_model import SAME, UNFIT, Account, ServedModel, is_fragile, warm_up
from linmax.service.service_settings import ServiceSettings
from linmax.service.snapshots import Snapshots
from linmax.service.trials import TrialService

__all__ = ["Creation", "Quarantined", "Service"]

logger = logging.getLogger("linmax.service")

Learned = tuple[Learner, Account]  # what a model has learned, and how it has fared
CONFIRM_SECONDS = 120
LOCK_SECONDS = 3.0
SLOW_COMPILATION = 1.0  # seconds that are reported
LOADING_SECONDS = 0.1  # of CPU time: a new model that takes longer has loaded compiled code
CLOCK_HOURS = 0.1  # that a clock may be set back without a word
LAST_ERRORS = 20
LAST_INCIDENTS = 20


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A model that could not be replayed: it is kept as it is, and the others are served."""

    number: int
    name: str
    reason: str


@dataclass(slots=True)
class Creation:
    """A model that is being created: its code is compiled."""

    name: str
    options: NewModel
    description: dict[str, object]
    began: float
    task: asyncio.Task[ServedModel] = field(init=False)


class ServiceOptions(TypedDict, total=False):
    """Options of a service, for tests and the process around it."""

    fail: Callable[[BaseException], None] | None
    loaded: Callable[[], None]
    vfs: str | None


class Service:
    """Several models over one log.

    Parameters
    ----------
    settings : where the data are, and the limits.
    observe : called with (entries, seconds) after each commit.
    fail : what to do when storage fails: by default, end the process.
    loaded : called in the event loop when code and models have been loaded that will stay.
    vfs : name of the SQLite virtual file system, for tests.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        *,
        observe: Callable[[int, float], None] | None = None,
        fail: Callable[[BaseException], None] | None = None,
        loaded: Callable[[], None] = lambda: None,
        vfs: str | None = None,
    ) -> None:
        private_folder(settings.data)
        self.settings = settings
        self.log = EventLog(settings.data / "log.sqlite", vfs=vfs, wait=LOCK_SECONDS)
        (settings.data / BACKUP_NOTE).unlink(missing_ok=True)  # from now on it has its own history and WAL
        flush_folder(settings.data)
        self.budget = Budget(*settings.budgets, lambda: self.models.values())
        self.snapshots = Snapshots(settings.data)
        self.ids = Ids(self.log.at)
        self.models: dict[str, ServedModel] = {}
        self.quarantined: dict[str, Quarantined] = {}
        self.incidents: list[str] = []
        self.trials = TrialService(self)
        self.house = Maintenance(self)
        self.ready = False
        self.stopping = asyncio.Event()
        self.replayed = 0
        self.recovery_seconds = 0.0
        self.errors: deque[RecentError] = deque(maxlen=LAST_ERRORS)
        self._observe, self._fail, self._loaded = observe, fail, loaded
        self._confirmations: dict[int, tuple[str, float]] = {}
        self._unwritten: list[tuple[int, int, Guess, str | None]] = []
        self.creations: dict[str, Creation] = {}
        self.activity = "starting"  # what recovery does, for those who wait for it
        self._compiled: set[tuple[str, ...]] = set()  # options whose learners have been tried out
        self._creator = ThreadPoolExecutor(1, "linmax-creator")  # models are tried out, and compiled, one at a time

    async def start(self) -> None:
        """Recover, then take requests."""
        began = time.perf_counter()
        try:
            await asyncio.to_thread(self._recover)
        except Interrupted:
            logger.info("asked to stop while replaying the log")
            return
        self.recovery_seconds = time.perf_counter() - began
        self._loaded()
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
        self.house.begin()
        logger.info(
            "ready: %d models, %d trials replayed, %.2f s", len(self.models), self.replayed, self.recovery_seconds
        )

    async def stop(self) -> None:
        """Answer what is waiting, write snapshots, close the log."""
        self.stopping.set()
        if self.ready:
            await self.house.end()
            for model in list(self.models.values()):
                await self.house.save(model)
            await self.pipeline.close()
        self._creator.shutdown(wait=False, cancel_futures=True)
        try:
            self.log.close()
        except DiskFull:
            logger.warning("no room to move the WAL into the log file; the next start will read both")
        logger.info("stopped")

    def _recover(self) -> None:
        behind = (self.log.at - time.time_ns() // 1_000_000) / 3_600_000
        if behind > CLOCK_HOURS:
            logger.warning(
                "the clock is %.1f hours behind the last event; until it has caught up, no event and no prediction "
                "grows older", behind,
            )  # fmt: skip
        self.snapshots.sweep(self.log)
        for row in list(self.log.models.values()):
            try:
                model = ServedModel(row)
                self._announce(f"compiling for model {row.name}")
                self._compile(model.options)
                self._announce(f"replaying model {row.name}")
                self.snapshots.restore(model, self.log)
                self.replayed += replay(model, self.log, self._noting(row.number), stopping=self.stopping.is_set)
                model.names, model.nbytes = KnownNames(model.learner), model.measure()
            except Interrupted:
                raise
            except Exception as error:  # whatever it is, it concerns this model alone
                self._quarantine(row, error)
            else:
                self.models[row.name] = model
        self._note_environment()
        sql = "SELECT message FROM incidents WHERE settled IS NULL ORDER BY number DESC LIMIT ?"
        self.incidents = [message for (message,) in self.log.run(sql, (LAST_INCIDENTS,))]

    def _note_environment(self) -> None:
        """Keep the states in which another version or processor left the models; from here on this one learns."""
        others = self.log.environments
        if others and others[-1] != environment():
            logger.warning("learned so far by %s, from here on by %s", versions(others[-1]), versions(environment()))
            try:
                for model in self.models.values():
                    self.snapshots.write(model.number, model.state(), baseline=True)
            except OSError as error:  # the next start tries again; until then nothing is demanded of a replay
                logger.warning("the baselines cannot be written: %s", error)
                return
        self.log.note_environment(environment())

    def _announce(self, activity: str) -> None:
        if self.stopping.is_set():
            raise Interrupted
        self.activity = activity
        logger.info("start: %s", activity)

    def _compile(self, options: ModelOptions) -> None:
        """Compile what a model with these options needs, in a thread; at most once for all models like it."""
        kind = tuple(str(getattr(options, name)) for name in SAME)
        if kind not in self._compiled:
            began = time.perf_counter()
            warm_up(options)
            is_fragile(options.learner, options.kind, options.thresholds)
            self._compiled.add(kind)
            if (seconds := time.perf_counter() - began) > SLOW_COMPILATION:
                logger.info("%s for %s is compiled, %.1f s", options.learner, options.kind, seconds)

    def _quarantine(self, row: ModelRow, error: Exception) -> None:
        reason = f"{error}" if isinstance(error, (Refusal, Damaged)) else f"{type(error).__name__}: {error}"
        self._unwritten = [note for note in self._unwritten if note[0] != row.number]
        self.quarantined[row.name] = Quarantined(row.number, row.name, reason)
        logger.critical("model %s is in quarantine: %s", row.name, reason, exc_info=error)

    def _noting(self, number: int) -> Callable[[int, Guess, str | None], None]:
        written = self.log.answered

        def note(seq: int, predicted: Guess, fault: str | None) -> None:
            if seq > written:
                self._unwritten.append((number, seq, predicted, fault))

        return note

    # -- models ---------------------------------------------------------------------------------------

    def model(self, name: str) -> ServedModel:
        """Return the model of this name; 404 if there is none, 503 during recovery or if it is in quarantine."""
        self.check_ready()
        found = self.models.get(name)
        if found is None:
            if name in self.creations:
                raise Refusal(503, f"model {name!r} is compiling; try again", retry_after=1)
            if name in self.quarantined:
                message = f"model {name!r} is in quarantine: {self.quarantined[name].reason}; see linmax serve check"
                raise Refusal(503, message, quarantined=True)
            raise Refusal(404, f"no model is called {name!r}")
        return found

    def check_ready(self) -> None:
        """Refuse with 503 before recovery is done."""
        if not self.ready:
            raise Refusal(503, f"the service is starting: {self.activity}; try again", retry_after=1)

    async def create(self, body: NewModel, wait: float) -> tuple[int, ServedModel | Creation]:
        """Create a model; return 201 and the model, 200 if it exists, 202 if its code still compiles after `wait`.

        A request that is repeated, as after a timeout, gets the same model.
        """
        self.check_ready()
        name, description = body.name, msgspec.to_builtins(body)
        del description["name"]
        if (model := self.models.get(name)) is not None and model.is_described_by(description):
            return 200, model
        creation = self.creations.get(name)
        if creation is None or creation.description != description:
            self._check_name_is_free(name)
            InstanceLimits(body)  # which refuses options that contradict each other
            creation = self.creations[name] = Creation(name, body, description, time.time())
            creation.task = asyncio.create_task(self._create(creation))
            creation.task.add_done_callback(lambda task: (self.creations.pop(name), task.exception()))
        await asyncio.wait([creation.task], timeout=wait)  # a client that gives up leaves it to the next request
        return (201, creation.task.result()) if creation.task.done() else (202, creation)

    def _check_name_is_free(self, name: str) -> None:
        if name in self.creations or name in self.models or name in self.quarantined:
            message = f"a model called {name!r} with other options exists; delete it or choose another name"
            raise Refusal(409, message, field="name")
        count = len(self.models) + len(self.quarantined) + len(self.creations)
        if count >= self.settings.max_models:
            raise Refusal(429, f"there are {count} models, the most allowed; delete one")

    async def _create(self, creation: Creation) -> ServedModel:
        """Try a model out, and compile what it needs; then store it: what is impossible leaves no trace."""
        began = time.process_time()
        logger.info("compiling for model %s", creation.name)
        try:
            await asyncio.wrap_future(self._creator.submit(self._compile, creation.options))
        except UNFIT as error:
            logger.warning("model %s is not created: %s", creation.name, error)
            raise Refusal(422, str(error), field="learner") from None
        if time.process_time() - began > LOADING_SECONDS:
            self._loaded()
        row = await self.pipeline.call(lambda log: log.create(creation.name, creation.description))
        model = self.models[creation.name] = ServedModel(row)
        logger.info("model %s created: %s", model.name, model.options.learner)
        return model

    async def adopt(self, name: str, options: ModelOptions, state: Learned) -> ServedModel:
        """Create a model that begins with the state of another one, or of a file."""
        self._check_name_is_free(name)
        learner, account = state
        await asyncio.wrap_future(self._creator.submit(self._compile, options))

        def store(log: EventLog) -> ServedModel:
            row = log.create(name, msgspec.to_builtins(options), begun=True)
            try:
                model = ServedModel(row)
                model.begin(learner, account)
                self.budget.check(model)
                self.snapshots.write(row.number, model.state(), baseline=True)
            except (Refusal, OSError):
                log.delete(row.number)
                raise
            return model

        model = await self.pipeline.call(store)
        self.models[name] = model
        logger.info("model %s created with the state of %d trials", name, account.trials)
        return model

    async def change(self, model: ServedModel, wanted: Limits) -> None:
        """Change the name and the limits of a model."""
        name, limits = wanted.name or model.name, msgspec.to_builtins(wanted)
        limits.pop("name", None)
        if name != model.name and (name in self.creations or name in self.quarantined):
            raise Refusal(409, f"a model called {name!r} exists; choose another name", field="name")
        await self.pipeline.call(lambda log: log.change(model.number, name, limits))
        del self.models[model.name]
        self.models[name] = model
        model.change(name, limits)

    async def delete(self, name: str, confirm: str | None) -> None:
        """Delete a model and its log; the first request gets a word with which to confirm."""
        found = self.quarantined.get(name) or self.model(name)
        now = time.monotonic()
        word, end = self._confirmations.get(found.number, ("", 0.0))
        if confirm is None or end < now or not secrets.compare_digest(confirm.encode(), word.encode()):
            word = secrets.token_urlsafe(9)
            self._confirmations[found.number] = (word, now + CONFIRM_SECONDS)
            trials = f"{found.account.trials} trials" if isinstance(found, ServedModel) else "its trials"
            message = f"this deletes {trials} for ever; repeat with ?confirm={word}"
            raise Refusal(428, message, field="confirm", confirm=word)
        del self._confirmations[found.number]
        table: dict[str, Any] = self.models if isinstance(found, ServedModel) else self.quarantined
        del table[name]
        try:
            await self.pipeline.call(lambda log: log.delete(found.number))
        except Refusal:
            table[name] = found
            raise
        await self.house.deleted(found.number)
        logger.info("model %s deleted", name)

    def admit(self, model: ServedModel, instance: Instance, label: Label | None) -> None:
        """Take the new names of a trial, or refuse them; in the writer's thread."""
        new = model.names.new_in(instance, label)
        if new is not None:
            self.budget.admit(model, new)

    def _apply(self, entry: Entry) -> None:
        """Apply an entry that is on stable storage; the pipeline calls this in order."""
        event, model = entry.outcome, entry.model
        assert isinstance(event, Event)
        if not event.repeat:
            note = self.pipeline.answered
            event.fault = model.apply(event, lambda *answer: note(model.number, *answer))
        elif event.seq in self.pipeline.unwritten:
            _, _, guess, event.fault = self.pipeline.unwritten[event.seq]
            if not event.answered:
                event.answer(guess)
        if event.fault is not None:
            message = f"stored, but it cannot be learned: {event.fault}"
            entry.outcome = Refusal(422, message, field=model.options.kind)
