"""What is checked before anything starts: options of reading, versions of the workers, whether they see the files."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from linmax.cluster.addresses import missing
from linmax.cluster.shards import Shard, ShardError
from linmax.cluster.workers import THIS_PROCESS, Workers
from linmax.models.streams import stream

__all__ = ["checked_reading", "refuse_missing_files", "refuse_other_versions", "versions"]

OURS = ("model", "grow", "prefetch", "position", "settled", "hash_bits")  # of `stream`, but not for shards
PACKAGES = ("linmax", "numpy", "numba")  # whose versions decide about bits


def checked_reading(reading: Mapping[str, Any] | None) -> dict[str, Any]:
    """Options of `linmax.stream` as a dict, refused if they are none."""
    options = dict(reading or {})
    for name in OURS:
        if name in options:
            raise ValueError(f"reading: {name} cannot be chosen for shards; leave it out")
    try:
        stream([], **options)
    except TypeError as error:
        unknown = str(error).partition("unexpected keyword argument ")[2]
        told = f"linmax.stream has no option {unknown}" if unknown else str(error)
        raise TypeError(f"reading: {told}") from None
    except ValueError as error:
        raise ValueError(f"reading: {error}") from None
    return options


def versions() -> dict[str, str]:
    """Of what decides about bits, in this process."""
    return {"python": ".".join(platform.python_version_tuple()[:2])} | {name: version(name) for name in PACKAGES}


def refuse_other_versions(workers: Workers) -> None:
    """All workers must have the versions that this process has."""
    here, found = versions(), workers.everywhere(versions)
    if any(isinstance(there, OSError) for there in found.values()):  # a worker has just gone: ask those that are left
        found = workers.everywhere(versions)
    for address, there in found.items():
        if isinstance(there, OSError):
            raise ConnectionError(
                f"the worker {address} does not answer: {' '.join(str(there).split()) or type(there).__name__}; see "
                "whether it is running and can be reached, or stop it"
            )
        if isinstance(there, BaseException):
            raise ValueError(
                f"the worker {address} cannot run linmax: {' '.join(str(there).split())}; install it there"
            )
        for name, ours in here.items():
            if there[name] != ours:
                raise ValueError(
                    f"the worker {address} has {name} {there[name]}, this process {ours}; install the same everywhere"
                )


def refuse_missing_files(workers: Workers, shards: Sequence[Shard]) -> None:
    """Every worker must see every file, since it may get any of them."""
    files = [(shard.name, shard.path) for shard in shards if shard.path is not None]
    if not files:
        return
    failed: dict[str, str] = {}
    for address, found in workers.everywhere(missing, [path for _, path in files]).items():
        if isinstance(found, Mapping):  # else the worker has just gone
            for place, why in found.items():
                failed.setdefault(files[place][0], why if address == THIS_PROCESS else f"{why} on {address}")
    if failed:
        told = "; ".join(f"{name}: {why}" for name, why in list(failed.items())[:5])
        raise ShardError(f"{len(failed)} of {len(shards)} shards cannot be read: {told}", failed)
