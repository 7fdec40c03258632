"""From requests to stored and applied events: one thread writes, one fsync serves many.

The event loop collects entries while the writer's thread is busy, and hands them over together: one transaction, one
commit. Then the loop applies them in the order of their sequence numbers and answers. So models belong to the event
loop alone and the log to the writer alone; neither needs a lock.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec

from linmax.service.bodies import Label
from linmax.service.log import DiskFull, Event, EventLog, StorageFailed
from linmax.service.schemas import Refusal

if TYPE_CHECKING:
    from linmax.service.served_model import ServedModel

__all__ = ["SLICE", "Entry", "Guess", "Pipeline"]

logger = logging.getLogger("linmax.service")

BATCH = 512  # entries in one transaction
SLICE = 0.002  # seconds of work on events before other requests get a turn
STORAGE_FAILED = 74  # exit status, EX_IOERR

Result = TypeVar("Result")
Guess = Label | bool | None  # what was predicted, or whether a label is wanted
Answered = tuple[int, int, Guess, str | None]  # model, seq, what was predicted or drawn, why it cannot be learned


class Entry(msgspec.Struct):
    """One event to be stored: how, for which model, under which id, and its outcome."""

    write: Callable[[EventLog], Event]
    model: ServedModel
    id: str = ""
    outcome: Event | Refusal | None = None


class _Job(msgspec.Struct):
    """Entries to store and apply, or a function to call on the log; `future` is done when that is."""

    entries: list[Entry]
    future: asyncio.Future[object]
    function: Callable[[EventLog], object] | None = None
    result: object = None
    applied: int = 0  # entries so far


@dataclass(slots=True)
class _Batch:
    jobs: deque[_Job]
    answers: list[Answered]  # to be written down
    error: Refusal | None = None
    seconds: float = 0.0
    entries: int = field(init=False)

    def __post_init__(self) -> None:
        self.entries = sum(len(job.entries) for job in self.jobs)


class Pipeline:
    """Collect, commit, apply, answer.

    Parameters
    ----------
    log : the log, which from now on belongs to the writer's thread.
    apply : called in the event loop with each stored entry, in order.
    queue : how many entries may wait; more are refused with 503.
    gather : seconds to wait for further entries when others are in flight.
    observe : called with (entries, seconds) after each commit.
    fail : what to do when storing or applying fails: by default, end the process.
    """

    def __init__(
        self,
        log: EventLog,
        apply: Callable[[Entry], None],
        *,
        queue: int = 8192,
        gather: float = 0.002,
        observe: Callable[[int, float], None] | None = None,
        fail: Callable[[BaseException], None] | None = None,
    ) -> None:
        self.queue, self.gather = queue, gather
        self.full = False  # the last commit found no room
        self.depth = 0  # entries that wait for the disk
        self.unwritten: dict[int, Answered] = {}  # by sequence number, not yet written down
        self._log, self._apply, self._observe = log, apply, observe
        self._fail = fail or _end_process
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Job] = deque()
        self._answers: list[Answered] = []
        self._busy = self._applying = self._closing = False
        self._target = 0  # entries worth waiting for: as many as were in flight when the last batch was done
        self._turn: asyncio.Handle | None = None
        self._delayed = self._urgent = False  # the next batch waits for further entries; it must not
        self._stored: deque[_Batch] = deque()
        self._inbox: SimpleQueue[_Batch | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name="linmax-writer", daemon=True)
        self._thread.start()

    def submit(self, entries: list[Entry]) -> asyncio.Future[None]:
        """Store these entries; the future is done when they are on stable storage and applied."""
        if self._closing:
            raise Refusal(503, "the server is stopping", retry_after=5)
        if self.depth + len(entries) > self.queue:
            raise Refusal(503, f"{self.depth} events wait for the disk; try again", retry_after=1)
        self.depth += len(entries)
        return cast("asyncio.Future[None]", self._enqueue(_Job(entries, self._loop.create_future())))

    def call(self, function: Callable[[EventLog], Result]) -> asyncio.Future[Result]:
        """Run a function on the log, in a transaction, after all that was submitted before."""
        self._urgent = True
        return cast("asyncio.Future[Result]", self._enqueue(_Job([], self._loop.create_future(), function)))

    async def flush(self) -> None:
        """Wait until the answers of all applied events are stored too."""
        await self.call(lambda _: None)

    def answered(self, model: int, seq: int, predicted: Guess, fault: str | None) -> None:
        """Take the prediction of an applied event, or its fault; it is stored with the next commit."""
        self._answers.append((model, seq, predicted, fault))
        self.unwritten[seq] = self._answers[-1]

    async def close(self) -> None:
        """Store, apply and answer everything that waits, then end the thread."""
        self._closing = True
        while self._waiting or self._busy or self._stored:
            await self.flush()
        await self.flush()
        self._inbox.put(None)
        await asyncio.to_thread(self._thread.join)

    # -- in the event loop ----------------------------------------------------------------------------

    def _enqueue(self, job: _Job) -> asyncio.Future[object]:
        self._waiting.append(job)
        self._wake()
        return job.future

    def _wake(self) -> None:
        """Hand over at the end of this turn of the event loop, or a little later if more entries are likely."""
        if self._busy:
            return
        if self._turn is None:
            self._turn = self._loop.call_soon(self._consider)
        elif self._delayed and self._is_enough():
            self._turn.cancel()
            self._delayed = False
            self._turn = self._loop.call_soon(self._hand_over)

    def _is_enough(self) -> bool:
        return self._urgent or self.depth >= self._target

    def _consider(self) -> None:
        if self._is_enough() or self.gather <= 0:
            self._hand_over()
        else:
            self._delayed = True
            self._turn = self._loop.call_later(self.gather, self._hand_over)

    def _hand_over(self) -> None:
        taken: deque[_Job] = deque()
        size = 0
        while self._waiting and (not taken or size + len(self._waiting[0].entries) <= BATCH):
            size += len(self._waiting[0].entries)
            taken.append(self._waiting.popleft())
        self._inbox.put(_Batch(taken, self._answers))
        self._answers = []
        self._turn, self._delayed, self._busy, self._urgent = None, False, True, bool(self._waiting)

    def _done(self, batch: _Batch) -> None:
        self._busy = False
        self._target = min(self.depth * 7 // 8, BATCH)
        self.depth -= batch.entries
        self.full = batch.error is not None
        if batch.error is None:
            for answer in batch.answers:
                self.unwritten.pop(answer[1], None)
            if self._observe is not None:
                self._observe(batch.entries, batch.seconds)
        else:
            self._answers = batch.answers + self._answers
        self._stored.append(batch)
        if not self._applying:
            self._apply_some()
        if self._waiting:
            self._wake()

    def _apply_some(self) -> None:
        """Apply what is stored, in order, a slice of time at a time."""
        self._applying, deadline = True, time.monotonic() + SLICE
        try:
            while self._stored:
                batch = self._stored[0]
                while batch.jobs:
                    if self._finish(batch.jobs[0], batch.error, deadline):
                        batch.jobs.popleft()
                    if time.monotonic() > deadline:
                        self._loop.call_soon(self._apply_some)
                        return
                self._stored.popleft()
            self._applying = False
        except BaseException as error:  # a stored event must never be skipped
            self._fail(error)

    def _finish(self, job: _Job, error: Refusal | None, deadline: float) -> bool:
        """Apply the entries of a job and complete its future; False if time is up before its end."""
        while job.applied < len(job.entries):
            entry = job.entries[job.applied]
            if error is not None:
                entry.outcome = error
            elif isinstance(entry.outcome, Event):
                self._apply(entry)
            job.applied += 1
            if job.applied < len(job.entries) and time.monotonic() > deadline:
                return False
        result = job.result if error is None or job.entries else error
        if job.future.done():  # nobody waits any more
            pass
        elif isinstance(result, BaseException):
            job.future.set_exception(result)
        else:
            job.future.set_result(result)
        return True

    # -- in the writer's thread -----------------------------------------------------------------------

    def _write_all(self) -> None:
        try:
            while (batch := self._inbox.get()) is not None:
                began = time.perf_counter()
                self._write(batch)
                batch.seconds = time.perf_counter() - began
                self._loop.call_soon_threadsafe(self._done, batch)
                try:
                    self._log.checkpoint()
                except DiskFull:
                    logger.warning("no room to move the WAL into the log file; it stays where it is")
        except BaseException as error:
            self._fail(error)

    def _write(self, batch: _Batch) -> None:
        log = self._log
        try:
            log.begin()
            log.write_answers([answer[1:] for answer in batch.answers if answer[0] in log.models])
            for job in batch.jobs:
                for entry in job.entries:
                    try:
                        entry.outcome = entry.write(log)
                    except Refusal as refusal:
                        entry.outcome = refusal
                if job.function is not None:
                    try:
                        job.result = job.function(log)
                    except (Refusal, OSError) as error:
                        job.result = error
            log.commit()
        except DiskFull:
            log.rollback()
            batch.error = Refusal(507, "the disk is full: nothing was stored; predictions without an id still work")


def _end_process(error: BaseException) -> None:
    """End the process: only the next start can find out what the disk holds."""
    failed = "storage" if isinstance(error, StorageFailed) else "applying what is stored"
    logger.critical("%s failed, the process ends", failed, exc_info=error)
    for handler in logging.getLogger("linmax").handlers:
        handler.flush()
    os._exit(STORAGE_FAILED)
