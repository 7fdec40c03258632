"""What is checked before anything starts: options of reading, and whether the workers see the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from linmax.cluster.addresses import missing
from linmax.cluster.shards import Shard, ShardError
from linmax.cluster.workers import THIS_PROCESS, Workers
from linmax.models.streams import stream

__all__ = ["checked_reading", "refuse_missing_files"]

OURS = ("model", "grow", "prefetch", "position", "settled", "hash_bits")  # of `stream`, but not for shards


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
