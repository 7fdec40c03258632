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
from typing import Any

import msgspec

from linmax.service.log import DiskFull, Event, EventLog, Label, StorageFailed
from linmax.service.refusals import Refusal

__all__ = ["SLICE", "Entry", "Guess", "Pipeline"]

logger = logging.getLogger("linmax.service")

BATCH = 512  # entries in one transaction
SLICE = 0.002  # seconds of work on events before other requests get a turn
STORAGE_FAILED = 74  # exit status, EX_IOERR

Write = Callable[[EventLog], Event]
Guess = Label | bool | None  # what was predicted, or whether a label is wanted
Answered = tuple[int, int, Guess, str | None]  # model, seq, what was predicted or drawn, why it cannot be learned


class Entry(msgspec.Struct):
    """One event to be stored: how, for which model, and what became of it."""

    write: Write
    model: Any
    outcome: Event | Refusal | None = None


class _Request(msgspec.Struct):
    entries: list[Entry]
    done: Callable[[], None]
    applied: int = 0  # entries so far


@dataclass(slots=True)
class _Call:
    """Other work for the writer, in the same transaction or after it."""

    function: Callable[[EventLog], Any]
    future: asyncio.Future[Any]
    outside: bool
    result: Any = None


@dataclass(slots=True)
class _Batch:
    requests: deque[_Request]
    answers: list[Answered]  # to be written down
    calls: list[_Call] = field(default_factory=list)
    error: Refusal | None = None
    seconds: float = 0.0


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
        self._log, self._apply, self._observe = log, apply, observe
        self._fail = fail or _end_process
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Request] = deque()
        self._calls: list[_Call] = []
        self._answers: list[Answered] = []
        self.unwritten: dict[int, Answered] = {}  # by sequence number, not yet written down
        self._entries = 0  # waiting or being stored
        self._busy = False
        self._target = 0  # entries worth waiting for: as many as were in flight when the last batch was done
        self._turn: asyncio.Handle | None = None
        self._delayed = False
        self._stored: deque[_Batch] = deque()
        self._applying = False
        self._closing = False
        self._inbox: SimpleQueue[_Batch | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name="linmax-writer", daemon=True)
        self._thread.start()

    @property
    def depth(self) -> int:
        """Entries that wait for the disk."""
        return self._entries

    def submit(self, entries: list[Entry], done: Callable[[], None]) -> None:
        """Store these entries; `done` is called, in a later turn, when they are on stable storage and applied."""
        if self._closing:
            raise Refusal(503, "the server is stopping", retry_after=5)
        if self._entries + len(entries) > self.queue:
            raise Refusal(503, f"{self._entries} events wait for the disk; try again", retry_after=1)
        self._entries += len(entries)
        self._waiting.append(_Request(entries, done))
        self._wake()

    def call(self, function: Callable[[EventLog], Any], *, outside: bool = False) -> asyncio.Future[Any]:
        """Run a function on the log, after all that was submitted before: in a transaction, or `outside` of any."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._calls.append(_Call(function, future, outside))
        self._wake()
        return future

    async def flush(self) -> None:
        """Wait until the answers of all applied events are stored too."""
        await self.call(_nothing)

    def answered(self, model: int, seq: int, predicted: Guess, fault: str | None) -> None:
        """An event was applied: its prediction, or its fault, is stored with the next commit."""
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

    def _wake(self) -> None:
        """Hand over at the end of this turn of the event loop, or a little later if more entries are likely."""
        if self._busy:
            return
        if self._turn is None:
            self._turn = self._loop.call_soon(self._consider)
        elif self._delayed and (self._entries >= self._target or self._calls):
            self._turn.cancel()
            self._delayed = False
            self._turn = self._loop.call_soon(self._hand_over)

    def _consider(self) -> None:
        if self._entries < self._target and not self._calls and self.gather > 0:
            self._delayed = True
            self._turn = self._loop.call_later(self.gather, self._hand_over)
        else:
            self._hand_over()

    def _hand_over(self) -> None:
        self._turn, self._delayed, self._busy = None, False, True
        batch = _Batch(self._take(), self._answers)
        if not self._waiting:
            batch.calls, self._calls = self._calls, []
        self._answers = []
        self._inbox.put(batch)

    def _take(self) -> deque[_Request]:
        taken: deque[_Request] = deque()
        size = 0
        while self._waiting and (not taken or size + len(self._waiting[0].entries) <= BATCH):
            request = self._waiting.popleft()
            size += len(request.entries)
            taken.append(request)
        return taken

    def _done(self, batch: _Batch) -> None:
        self._busy = False
        stored = sum(len(request.entries) for request in batch.requests)
        self._target = min(self._entries * 2 // 3, BATCH)
        self._entries -= stored
        self.full = batch.error is not None
        if batch.error is None:
            for answer in batch.answers:
                self.unwritten.pop(answer[1], None)
            if self._observe is not None:
                self._observe(stored, batch.seconds)
        else:
            self._answers = batch.answers + self._answers
        self._stored.append(batch)
        if not self._applying:
            self._apply_some()
        if self._waiting or self._calls:
            self._wake()

    def _apply_some(self) -> None:
        """Apply what is stored, in order, a slice of time at a time."""
        try:
            self._apply_slice()
        except BaseException as error:  # a stored event must never be skipped
            self._fail(error)

    def _apply_slice(self) -> None:
        self._applying = True
        deadline = time.monotonic() + SLICE
        while self._stored:
            batch = self._stored[0]
            while batch.requests:
                if not self._finish(batch.requests[0], batch.error, deadline):
                    self._loop.call_soon(self._apply_some)
                    return
                batch.requests.popleft()
                if time.monotonic() > deadline:
                    self._loop.call_soon(self._apply_some)
                    return
            for call in batch.calls:
                self._finish_call(call, batch.error)
            self._stored.popleft()
        self._applying = False

    def _finish(self, request: _Request, error: Refusal | None, deadline: float) -> bool:
        """Apply the entries of a request and answer it; False if time is up before its end."""
        while request.applied < len(request.entries):
            entry = request.entries[request.applied]
            if error is not None:
                entry.outcome = error
            elif isinstance(entry.outcome, Event):
                self._apply(entry)
            request.applied += 1
            if request.applied < len(request.entries) and time.monotonic() > deadline:
                return False
        try:
            request.done()
        except Exception:  # it is stored and applied; others wait for their answers too
            logger.exception("an answer could not be given")
        return True

    def _finish_call(self, call: _Call, error: Refusal | None) -> None:
        if call.future.done():
            return
        result = call.result if call.outside else error or call.result
        if isinstance(result, BaseException):
            call.future.set_exception(result)
        else:
            call.future.set_result(result)

    # -- in the writer's thread -----------------------------------------------------------------------

    def _write_all(self) -> None:
        try:
            while (batch := self._inbox.get()) is not None:
                began = time.perf_counter()
                self._write(batch)
                batch.seconds = time.perf_counter() - began
                self._loop.call_soon_threadsafe(self._done, batch)
                self._checkpoint()
        except BaseException as error:
            self._fail(error)

    def _write(self, batch: _Batch) -> None:
        log = self._log
        try:
            log.begin()
            self._write_answers(batch)
            for request in batch.requests:
                for entry in request.entries:
                    try:
                        entry.outcome = entry.write(log)
                    except Refusal as refusal:
                        entry.outcome = refusal
            for call in batch.calls:
                if not call.outside:
                    self._call(call)
            log.commit()
        except DiskFull:
            log.rollback()
            batch.error = Refusal(507, "the disk is full: nothing was stored; predictions without an id go on")
        for call in batch.calls:
            if call.outside:
                self._call(call)

    def _call(self, call: _Call) -> None:
        try:
            call.result = call.function(self._log)
        except (Refusal, OSError) as error:
            call.result = error

    def _write_answers(self, batch: _Batch) -> None:
        self._log.write_answers([answer[1:] for answer in batch.answers if answer[0] in self._log.models])

    def _checkpoint(self) -> None:
        try:
            self._log.checkpoint()
        except DiskFull:
            logger.warning("no room to move the WAL into the log file; it stays where it is")


def _nothing(_log: EventLog) -> None:
    """The transaction writes the answers."""


def _end_process(error: BaseException) -> None:
    """End the process: only the next start can find out what the disk holds."""
    failed = "storage" if isinstance(error, StorageFailed) else "applying what is stored"
    logger.critical("%s failed, the process ends", failed, exc_info=error)
    for handler in logging.getLogger("linmax").handlers:
        handler.flush()
    os._exit(STORAGE_FAILED)
