"""Where tasks run: in this process, or on the workers of a Dask cluster. No other file of this room knows Dask.

A task depends on its arguments alone, so it may run anywhere, repeatedly, and in any order. Results stay where they
were made until they are asked for, and come back in the order in which the tasks were submitted.
"""

from __future__ import annotations

import signal
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

__all__ = ["Here", "OnDask", "TaskOutcome", "Workers", "connect", "here", "tell", "workers_of"]

RETRIES = 3  # of a task that failed for a reason that may be temporary
THIS_PROCESS = "this process"
MOST_ADAPTIVE = 10_000  # workers: an adaptive cluster that may have more has no limit
NEEDS_DISTRIBUTED = "a cluster needs the package distributed; try pip install 'linmax[cluster]'"


@dataclass(frozen=True)
class TaskOutcome:
    """What became of a task: its result, or why there is none."""

    result: Any = None
    error: str = ""


class Workers:
    """Somewhere for tasks to run."""

    count = 1

    def keep(self, value: Any) -> Any:
        """Prepare a value that many tasks will take as an argument."""
        raise NotImplementedError

    def hold(self, sources: Sequence[Any], often: bool = True) -> list[Any]:
        """Prepare the rows of shards, which many tasks will take if ``often``.

        Rows are sent once. Pieces of Dask collections are computed once, all of them together.
        """
        raise NotImplementedError

    def submit(
        self, function: Callable[..., Any], *arguments: Any, name: str, worker: int | None = None, again: bool = True
    ) -> Any:
        """Start a task, if possible on the worker of this number.

        Results of `keep`, `hold` and `submit` may be arguments, alone or in lists. With ``again`` it is tried once more
        by itself when it was one of several whose workers died, and its arguments are held until then.
        """
        raise NotImplementedError

    def fetch(self, task: Any) -> Any:
        """The result of one task, which goes on being held."""
        raise NotImplementedError

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """What a function returns, or raises, in each process that runs tasks, by their names."""
        return {THIS_PROCESS: function(*arguments)}

    @contextmanager
    def watching(self, topic: str, watch: Callable[[], None]) -> Iterator[None]:
        """Meanwhile ``watch`` is called whenever a task calls `tell` with this topic.

        It is called by one thread at a time, and no more once it has raised an error, which is raised at the end.
        """
        told = Watched(watch)
        with self._told(topic, told):
            yield
        if told.error is not None:
            raise told.error

    @contextmanager
    def _told(self, topic: str, watch: Callable[[], None]) -> Iterator[None]:
        """Meanwhile ``watch`` is called by tasks of this process."""
        _watchers[topic] = watch
        try:
            yield
        finally:
            del _watchers[topic]

    def abandon(self) -> None:
        """Nobody wants the results any more: what has not begun will not."""

    def gather(self, tasks: Sequence[Any], watch: Callable[[int], None] | None = None) -> list[TaskOutcome]:
        """Wait for all tasks; outcomes in their order. ``watch`` is called with the place of each that ends."""
        raise NotImplementedError


class Watched:
    """Somebody who is told of progress, whatever thread it comes from."""

    def __init__(self, watch: Callable[[], None]) -> None:
        self.watch, self.lock = watch, threading.Lock()
        self.error: Exception | None = None

    def __call__(self) -> None:
        with self.lock:
            if self.error is None:
                try:
                    self.watch()
                except Exception as error:
                    self.error = error


class HeldTask:
    """A task of this process: computed when it is first needed, and held."""

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        self.function, self.arguments = function, arguments
        self.outcome: TaskOutcome | None = None

    def __call__(self) -> Any:
        if self.outcome is None:
            try:
                self.outcome = TaskOutcome(self.function(*(_computed(argument) for argument in self.arguments)))
            except Exception as error:
                self.outcome = TaskOutcome(error=_told(error))
            self.arguments = ()
        if self.outcome.error:
            raise RuntimeError(self.outcome.error)
        return self.outcome.result


class Here(Workers):
    """This process, one task after the other."""

    def keep(self, value: Any) -> Any:
        return value

    def hold(self, sources: Sequence[Any], often: bool = True) -> list[Any]:
        lazy = [source for source in sources if _lazy(source)] if often else []
        if not lazy:
            return list(sources)
        import dask

        try:
            found = iter(dask.compute(*lazy, scheduler="synchronous"))
        except Exception:  # to be met again with the piece that fails
            return list(sources)
        return [next(found) if _lazy(source) else source for source in sources]

    def submit(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        name: str,  # noqa: ARG002
        worker: int | None = None,  # noqa: ARG002
        again: bool = True,  # noqa: ARG002
    ) -> Any:
        return HeldTask(function, arguments)

    def fetch(self, task: Any) -> Any:
        return _computed(task)

    def gather(self, tasks: Sequence[Any], watch: Callable[[int], None] | None = None) -> list[TaskOutcome]:
        found = []
        for place, task in enumerate(tasks):
            try:
                found.append(TaskOutcome(task()))
            except Exception as error:
                found.append(TaskOutcome(error=_told(error)))
            if watch is not None:
                watch(place)
        return found


def _computed(argument: Any) -> Any:
    if isinstance(argument, HeldTask):
        return argument()
    if isinstance(argument, list) and any(isinstance(item, HeldTask) for item in argument):
        return [_computed(item) for item in argument]
    return argument.compute(scheduler="synchronous") if _lazy(argument) else argument


def _lazy(argument: Any) -> bool:
    """Whether this is a piece of a Dask collection."""
    return hasattr(argument, "__dask_graph__") and hasattr(argument, "compute")


_watchers: dict[str, Callable[[], None]] = {}  # of tasks that run in this process


def tell(topic: str) -> None:
    """From within a task: something is done. Reaches who is `Workers.watching` here, or through Dask's scheduler."""
    watch = _watchers.get(topic)
    if watch is not None:
        watch()
        return
    with suppress(ImportError, ValueError):  # ValueError: this process is no worker
        from distributed import get_worker

        get_worker().log_event(topic, 1)


def here() -> str:
    """The address of the worker that runs this task."""
    with suppress(ImportError, ValueError):
        from distributed import get_worker

        return str(get_worker().address)
    return THIS_PROCESS


def _told(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


# Dask's profiler and timers run fifty times a second or more in every process: a sixth of a core with two workers.
QUIET = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s"}
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
            pieces = self.client.compute([source for source in sources if _lazy(source)])
        self._tasks.update(pieces)
        computed = iter(pieces)
        return [
            next(computed)
            if _lazy(source)
            else source
            if isinstance(source, str)
            else self._submitted(_same, source, name="shard")
            for source in sources
        ]

    def submit(
        self, function: Callable[..., Any], *arguments: Any, name: str, worker: int | None = None, again: bool = True
    ) -> Any:
        given = [self.client.compute(argument) if _lazy(argument) else argument for argument in arguments]
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
        for task in list(self._tasks):
            with suppress(Exception):  # the scheduler may be gone
                task.release()

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
    def _told(self, topic: str, watch: Callable[[], None]) -> Iterator[None]:
        self.client.subscribe_topic(topic, lambda _: watch())
        try:
            with super()._told(topic, watch):  # the workers may be threads of this process
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
        return TaskOutcome(error=_told(error) if error is not None else f"the task was {task.status}")


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
    return OnDask(client)


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """A client of the cluster at an address, or of one that is started here: "local", or "local:N" for N workers.

    Workers are processes with one thread each, on the loopback interface.

    Parameters
    ----------
    address
        "local" (a worker for each core), "local:N", or the address of a scheduler such as "tcp://10.0.0.1:8786".

    Returns
    -------
    context manager
        Gives a ``distributed.Client``, and closes it and what was started.

    See Also
    --------
    fit : takes the client.

    Examples
    --------
    >>> with connect("local:0"):
    ...     pass
    Traceback (most recent call last):
    ValueError: cluster must be 'local', 'local:N' with N >= 1 or an address, got 'local:0'
    """
    kind, _, number = address.partition(":")
    if kind == "local" and ":" in address and not (number.isdecimal() and int(number) >= 1):
        raise ValueError(f"cluster must be 'local', 'local:N' with N >= 1 or an address, got {address!r}")
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise ValueError(NEEDS_DISTRIBUTED) from None
    if kind != "local":
        try:
            client = Client(address, timeout=10)
        except (OSError, ValueError, TimeoutError) as error:
            raise ValueError(f"no scheduler answers at {address}: {_told(error)}") from None
        try:
            yield client
        finally:
            client.close()
        return
    with dask.config.set(QUIET):
        with _deaf_to_interrupts():
            cluster = LocalCluster(
                n_workers=int(number) if number else None, threads_per_worker=1, host="127.0.0.1", silence_logs=50
            )
        with cluster, Client(cluster, direct_to_workers=True) as client:
            yield client


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes that are started meanwhile leave Ctrl-C to this one, which ends them; else each prints a traceback."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
