"""The workers of a Dask cluster: tasks run there, are tried again when workers die, and what goes wrong is named."""

from __future__ import annotations

import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from linmax.cluster.workers import Here, TaskOutcome, Workers, is_lazy, message_of

__all__ = ["OnDask", "workers_of"]

RETRIES = 3  # of a task that failed for a reason that may be temporary
MOST_ADAPTIVE = 10_000  # workers: an adaptive cluster that may have more has no limit
PATIENCE = 10.0  # seconds for a scheduler to take in what it was sent
DIED = "its worker died repeatedly: killed, or out of memory"


class OnDask(Workers):
    """The workers of a Dask client."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.run = uuid.uuid4().hex[:8]  # keeps the tasks of different runs apart
        self._orders: dict[str, tuple[Any, ...]] = {}  # by key: what was submitted, for another attempt
        self._addresses: list[str] = []  # one for each thread, when they were last counted
        self._tasks: weakref.WeakSet[Any] = weakref.WeakSet()  # all that were submitted and are held

    @property
    def count(self) -> int:  # type: ignore[override]
        """Threads of all workers, or of as many as an adaptive cluster may start: tasks that run at a time."""
        with self._answered():
            threads = sorted(self.client.nthreads().items())
        self._addresses = [address for address, many in threads for _ in range(many)]
        most = getattr(getattr(getattr(self.client, "cluster", None), "_adaptive", None), "maximum", 0)
        each = threads[0][1] if threads else 1
        return max(1, len(self._addresses), each * int(most) if most < MOST_ADAPTIVE else 0)

    @contextmanager
    def _answered(self) -> Iterator[None]:
        """Say by name that the scheduler has gone away."""
        from concurrent.futures import CancelledError

        from distributed.comm.core import CommClosedError

        try:
            yield
        except (OSError, TimeoutError, CancelledError, RuntimeError, ValueError) as error:
            # The client may hear of it only later; errors of tasks are no errors of its connection.
            self._refuse_lost(error, forgotten=isinstance(error, CommClosedError))
            raise

    def _refuse_lost(self, error: BaseException | None = None, forgotten: bool = False) -> None:
        if forgotten or self.client.status != "running":
            address = getattr(self.client.scheduler, "address", "an unknown address")
            raise ConnectionError(
                f"the scheduler at {address} has gone away, and with it what the workers knew; when it is back, "
                "go on from the checkpoint, if there is one, with resume"
            ) from error

    def keep(self, value: Any) -> Any:
        # As the result of a task, which the scheduler can repeat: data that was only scattered is lost with its worker.
        return self._submitted(_same, value, name="model")

    def hold(self, sources: Sequence[Any], often: bool = True) -> list[Any]:  # noqa: ARG002
        with self._answered():
            pieces = self.client.compute([source for source in sources if is_lazy(source)])
        self._tasks.update(pieces)
        computed = iter(pieces)
        held: list[Any] = []
        for source in sources:
            if is_lazy(source):
                held.append(next(computed))
            elif isinstance(source, str):  # a path
                held.append(source)
            else:
                held.append(self._submitted(_same, source, name="shard"))
        return held

    def submit(
        self, function: Callable[..., Any], *arguments: Any, name: str, worker: int | None = None, again: bool = True
    ) -> Any:
        given = [self.client.compute(argument) if is_lazy(argument) else argument for argument in arguments]
        where: dict[str, Any] = {}
        if worker is not None and worker < len(self._addresses):
            where = {"workers": [self._addresses[worker]], "allow_other_workers": True}
        task = self._submitted(function, *given, name=name, **where)
        if again:
            self._orders[task.key] = function, arguments, name
        return task

    def _submitted(self, function: Callable[..., Any], *arguments: Any, name: str, **where: Any) -> Any:
        import dask

        key = f"linmax-{name}-{self.run}-{uuid.uuid4().hex[:8]}"
        with self._answered(), dask.config.set({"distributed.admin.large-graph-warning-threshold": "10 GB"}):
            task = self.client.submit(function, *arguments, key=key, pure=False, retries=RETRIES, **where)
        self._tasks.add(task)
        return task

    def abandon(self) -> None:
        # Not cancelled: the pieces of a collection may be somebody else's too.
        tasks = list(self._tasks)
        with suppress(Exception):  # the scheduler may be gone
            self._wait_until_known([task.key for task in tasks if task.status == "pending"])
        for task in tasks:
            with suppress(Exception):
                task.release()

    def _wait_until_known(self, keys: list[Any]) -> None:
        """Wait until the scheduler has heard of tasks: one that is released before is started later, and held.

        It takes them in beside its other work, so that what is sent later may overtake them.
        """

        def unknown(keys: list[Any], dask_scheduler: Any) -> list[Any]:  # sent by value: it needs no linmax there
            return [key for key in keys if key not in dask_scheduler.tasks]

        until = time.monotonic() + PATIENCE
        while keys and self.client.status == "running" and time.monotonic() < until:
            keys = self.client.run_on_scheduler(unknown, keys)
            time.sleep(0.01 if keys else 0.0)

    def fetch(self, task: Any) -> Any:
        with self._answered():
            return task.result()

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        with self._answered():
            try:
                found: dict[str, Any] = self.client.run(function, *arguments, on_error="return")
                if not found:  # a queue, or an adaptive cluster, starts the first worker when there is work
                    self._submitted(_same, None, name="wake").result()
                    found = self.client.run(function, *arguments, on_error="return")
            except (OSError, TimeoutError) as error:  # those of workers are returned
                self._refuse_lost(error, forgotten=True)
                raise
        if found and all(isinstance(there, OSError) for there in found.values()):
            self._refuse_lost()  # they may have gone with it
        return found

    @contextmanager
    def _hearing(self, topic: str, watch: Callable[[], None]) -> Iterator[None]:
        self.client.subscribe_topic(topic, lambda _: watch())
        try:
            with super()._hearing(topic, watch):  # the workers may be threads of this process
                yield
        finally:
            self.client.unsubscribe_topic(topic)

    def gather(self, tasks: Sequence[Any], watch: Callable[[int], None] | None = None) -> list[TaskOutcome]:
        from distributed import as_completed, wait

        places = {task.key: place for place, task in enumerate(tasks)}
        orders = [self._orders.pop(task.key, None) for task in tasks]
        for task in as_completed(tasks):
            if watch is not None:
                watch(places[task.key])
        found = self._outcomes(tasks)
        for task in tasks:
            task.release()  # the worker need not hold the result any more, and another attempt needs a new task
        killed = [place for place, outcome in enumerate(found) if outcome.error == DIED]
        for place in killed if len(killed) > 1 else []:  # one by one, to find the one that kills
            order = orders[place]
            if order is None:
                continue
            function, arguments, name = order
            self._revive(arguments)
            again = self.submit(function, *arguments, name=name, again=False)
            wait(again)
            (found[place],) = self._outcomes([again])
            again.release()
        return found

    def _revive(self, arguments: Sequence[Any]) -> None:
        """Compute again, one by one, arguments that were blamed for dead workers, which others may have killed."""
        from distributed import Future, wait

        for argument in arguments:
            if isinstance(argument, list):
                self._revive(argument)
            elif isinstance(argument, Future) and argument.status == "error" and self._failed(argument).error == DIED:
                with self._answered():
                    argument.retry()
                    wait(argument)

    def _outcomes(self, tasks: Sequence[Any]) -> list[TaskOutcome]:
        """Of tasks that have ended; results are fetched together, those that died with a worker once they are back."""
        from distributed import wait

        self._refuse_lost()
        while again := [task for task in tasks if task.status in ("lost", "pending")]:
            with self._answered():
                wait(again)
            self._refuse_lost()
        good = [task for task in tasks if task.status == "finished"]
        with self._answered():
            results = {task.key: result for task, result in zip(good, self.client.gather(good), strict=True)}
        return [TaskOutcome(results[task.key]) if task.key in results else self._failed(task) for task in tasks]

    def _failed(self, task: Any) -> TaskOutcome:
        from distributed import KilledWorker

        if task.status == "cancelled":  # by a scheduler that was started again
            self._refuse_lost(forgotten=True)
        error = task.exception() if task.status == "error" else None
        if isinstance(error, KilledWorker):
            return TaskOutcome(error=DIED)
        return TaskOutcome(error=message_of(error) if error is not None else f"the task was {task.status}")


def _same(value: Any) -> Any:
    return value


def workers_of(client: Any) -> Workers:
    """Workers from a Dask client, or none."""
    if client is None:
        return Here()
    if isinstance(client, Workers):
        return client
    if not (hasattr(client, "submit") and hasattr(client, "scheduler_info")):
        raise TypeError(f"client must be a distributed.Client, or None for this process, got {client!r}")
    if getattr(client, "asynchronous", False):
        raise TypeError(
            "client is asynchronous, and fitting waits for its results; give a client made with asynchronous=False, or "
            "call from a thread: await asyncio.to_thread(...)"
        )
    if getattr(client, "status", "") in ("closed", "closing"):
        raise ValueError(f"client is {client.status}; give one that is connected, or None for this process")
    return OnDask(client)
