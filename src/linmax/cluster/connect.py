"""Run tasks on the workers of a Dask client, or in this process."""

from __future__ import annotations

import signal
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

from linmax.cluster.shards import ShardSource, TableFile, reason_of
from linmax.util.installation import install_command

if TYPE_CHECKING:
    from dask.delayed import Delayed
    from distributed import Client, Future, Scheduler

__all__ = ["DaskWorkers", "ThisProcess", "connect", "workers_of"]

# Dask's profiler and timers run fifty times a second or more in every process: a sixth of a core with two workers.
QUIET = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s"}
RETRIES = 3  # of a task that failed for a reason that may be temporary
PATIENCE = 10.0  # seconds for a scheduler to register tasks
DIED = "its worker died repeatedly: killed, or out of memory"
P = ParamSpec("P")
Result = TypeVar("Result")
VERSIONED = ("python", "numpy", "numba", "linmax")  # packages that decide about bits


@contextmanager
def connect(address: str) -> Iterator[Client]:
    """Connect to a cluster, or start one on this machine: "local", or "local:N" for N workers.

    Local workers are processes with one thread each, on the loopback interface.

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
        raise ValueError(f"a cluster requires the package distributed; run {install_command('cluster')}") from None
    if kind != "local":
        try:
            client = Client(address, timeout=10)
        except (OSError, ValueError, TimeoutError) as error:
            raise ValueError(f"no scheduler answers at {address}: {reason_of(error)}") from None
        try:
            yield client
        finally:
            client.close()
        return
    with dask.config.set(QUIET):
        with _ignoring_interrupts():
            cluster = LocalCluster(
                n_workers=int(number) if number else None, threads_per_worker=1, host="127.0.0.1", silence_logs=50
            )
        with cluster, Client(cluster, direct_to_workers=True) as client:
            yield client


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Start processes that leave Ctrl-C to this one, which ends them; else each prints a traceback."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def workers_of(client: Client | None) -> DaskWorkers | ThisProcess:
    """Return the workers of a Dask client, or this process for None."""
    if client is None:
        return ThisProcess()
    if not (hasattr(client, "submit") and hasattr(client, "scheduler_info")):
        raise TypeError(f"client must be a distributed.Client, or None for this process, got {client!r}")
    if getattr(client, "asynchronous", False):
        raise TypeError(
            "client is asynchronous, but fit waits for its results; pass a client made with asynchronous=False, or "
            "call from a thread: await asyncio.to_thread(...)"
        )
    if getattr(client, "status", "") in ("closed", "closing"):
        raise ValueError(f"client is {client.status}; pass one that is connected, or None for this process")
    return DaskWorkers(client)


class ThisProcess:
    """Run tasks in this process, each when it is submitted."""

    remote = False

    def hold(self, sources: Sequence[ShardSource], often: bool) -> list[ShardSource]:
        """Compute pieces of Dask collections together, if they are needed ``often``."""
        lazy = [source for source in sources if is_lazy(source)] if often else []
        if not lazy:
            return list(sources)
        import dask

        try:
            computed = iter(dask.compute(*lazy, scheduler="synchronous"))
        except Exception:  # raised again with the name of the piece
            return list(sources)
        return [next(computed) if is_lazy(source) else source for source in sources]

    def submit(self, function: Callable[..., Result], *arguments: object, name: str) -> Result:  # noqa: ARG002
        """Call the function."""
        return function(*map(computed, arguments))

    def result(self, task: Result) -> Result:
        """Return the result of a task."""
        return task

    def run(self, function: Callable[P, Result], *arguments: P.args, **options: P.kwargs) -> dict[str, Result]:
        """Call a function in each process that runs tasks."""
        return {"": function(*arguments, **options)}

    def refuse_other_versions(self) -> None:
        """Do nothing: there is one process."""

    def release(self) -> None:
        """Do nothing: tasks have ended."""


class DaskWorkers:
    """Run tasks on the workers of a Dask client."""

    remote = True

    def __init__(self, client: Client) -> None:
        self.client, self.id = client, uuid.uuid4().hex[:8]
        self._futures: weakref.WeakSet[Future] = weakref.WeakSet()

    def hold(self, sources: Sequence[ShardSource], often: bool) -> list[Future | ShardSource]:  # noqa: ARG002
        """Send rows in memory once, and compute pieces of Dask collections once, all of them together."""
        lazy = [source for source in sources if is_lazy(source)]
        with self._connection():
            pieces = self.client.compute(lazy) if lazy else []
        self._futures.update(pieces)
        computed = iter(pieces)
        return [
            next(computed)
            if is_lazy(source)
            else source
            if isinstance(source, (str, TableFile))
            else self.submit(_identity, source, name="rows")
            for source in sources
        ]

    def submit(self, function: Callable[..., object], *arguments: object, name: str) -> Future:
        """Start a task; results of `hold` and `submit` may be arguments, alone or in lists."""
        import dask

        key = f"linmax-{name}-{self.id}-{uuid.uuid4().hex[:8]}"
        # as tasks, also for data: the scheduler can repeat them, while scattered data are lost with their worker
        with self._connection(), dask.config.set({"distributed.admin.large-graph-warning-threshold": "10 GB"}):
            future = self.client.submit(function, *arguments, key=key, pure=False, retries=RETRIES)
        self._futures.add(future)
        return future

    def each_done(self, futures: Sequence[Future]) -> Iterator[Future]:
        """Yield futures as they end."""
        from distributed import as_completed

        with self._connection():
            yield from as_completed(futures)
            self._refuse_lost()

    def result(self, future: Result) -> Result:
        """Wait for the result of a task."""
        with self._connection():
            found: Result = cast("Future", future).result()
        return found

    def failure_of(self, future: Future) -> str:
        """Wait for a task; return why it failed, or ""."""
        from distributed import KilledWorker, wait

        with self._connection():
            wait(future)
            self._refuse_lost(forgotten=future.status in ("cancelled", "lost"))
            error = future.exception()
        return "" if error is None else DIED if isinstance(error, KilledWorker) else reason_of(error)

    def repeat(self, futures: Sequence[Future]) -> None:
        """Run failed tasks again, one by one: those whose workers died may have died with another task's worker."""
        from distributed import Future

        for future in futures:
            if isinstance(future, Future) and future.status == "error" and self.failure_of(future) == DIED:
                future.retry()
                self.failure_of(future)

    def run(self, function: Callable[P, Result], *arguments: P.args, **options: P.kwargs) -> dict[str, Result]:
        """Call a function on each worker; errors are returned."""
        with self._connection():
            if not self.client.nthreads():  # an adaptive cluster starts the first worker when there is a task
                self.result(self.submit(_identity, None, name="wake"))
            found: dict[str, Result] = self.client.run(function, *arguments, on_error="return", **options)
        return found

    def refuse_other_versions(self) -> None:
        """Raise unless all workers have the versions that decide about bits."""
        with self._connection():
            found = self.client.get_versions(packages=list(VERSIONED[1:]))
        ours = found["client"]["packages"]
        for address, there in found["workers"].items():
            for name in VERSIONED:
                version = there["packages"].get(name)
                if name == "linmax" and version is None:
                    raise ValueError(f"the worker {address} cannot import linmax; install it there")
                if _minor(name, version) != _minor(name, ours[name]):
                    raise ValueError(
                        f"the worker {address} has {name} {version}, the driver {ours[name]}; "
                        "install the same version everywhere"
                    )

    @contextmanager
    def _connection(self) -> Iterator[None]:
        """Name the scheduler if the connection to it breaks."""
        from concurrent.futures import CancelledError

        try:
            yield
        except (OSError, CancelledError, RuntimeError, ValueError) as error:
            self._refuse_lost(error, forgotten=isinstance(error, (OSError, CancelledError)))  # not of tasks
            raise

    def _refuse_lost(self, error: BaseException | None = None, forgotten: bool = False) -> None:
        if isinstance(error, ConnectionError):
            return
        if forgotten or self.client.status != "running":
            address = getattr(self.client.scheduler, "address", "an unknown address")
            raise ConnectionError(
                f"the scheduler at {address} has gone away, and with it the results of the workers; when it is back, "
                "continue from the checkpoint, if there is one, with resume"
            ) from error

    def release(self) -> None:
        """Drop all results, and tasks that have not begun."""
        futures = list(self._futures)
        with suppress(Exception):  # the scheduler may be gone
            self._wait_until_known([future.key for future in futures if future.status == "pending"])
        for future in futures:
            with suppress(Exception):  # not cancelled: pieces of a collection may have other users
                future.release()

    def _wait_until_known(self, keys: list[str]) -> None:
        """Wait until the scheduler knows tasks: one released before is started later, and held."""

        def unknown(keys: list[str], dask_scheduler: Scheduler) -> list[str]:  # sent by value: needs no linmax there
            return [key for key in keys if key not in dask_scheduler.tasks]

        until = time.monotonic() + PATIENCE
        while keys and self.client.status == "running" and time.monotonic() < until:
            keys = self.client.run_on_scheduler(unknown, keys)
            time.sleep(0.01 if keys else 0.0)


def _identity(value: Result) -> Result:
    return value


def _minor(name: str, version: str | None) -> str:
    """Return a version as far as it decides about bits: of Python 3.11.7 the 3.11."""
    return ".".join(str(version).split(".")[:2]) if name == "python" else str(version)


def is_lazy(source: object) -> bool:
    """Return whether this is a piece of a Dask collection."""
    return hasattr(source, "__dask_graph__") and hasattr(source, "compute")


def computed(source: ShardSource) -> ShardSource:
    """Compute a piece of a Dask collection in this process; return anything else unchanged."""
    piece = cast("Delayed", source)
    graph = dict(piece.__dask_graph__()) if is_lazy(source) else {"": source}
    if any(map(is_future, graph.values())) or (is_lazy(source) and piece.key not in graph):
        raise ValueError("held by the workers of a Dask client; pass this client, or compute the shard first")
    return piece.compute(scheduler="synchronous") if is_lazy(source) else source


def is_future(given: object) -> bool:
    """Return whether this is a result on the workers of a Dask client."""
    return type(given).__module__.startswith("distributed.") and hasattr(given, "key")
