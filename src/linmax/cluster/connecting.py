"""A client of a Dask cluster: of one that runs somewhere, or of one that is started here."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from linmax.cluster.workers import message_of

__all__ = ["connect"]

NEEDS_DISTRIBUTED = "a cluster needs the package distributed; try pip install 'linmax[cluster]'"
# Dask's profiler and timers run fifty times a second or more in every process: a sixth of a core with two workers.
QUIET = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s"}


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
            raise ValueError(f"no scheduler answers at {address}: {message_of(error)}") from None
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
