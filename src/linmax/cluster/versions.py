"""Versions of what decides about bits: all workers must have those of the process that drives them."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version

from linmax.cluster.workers import Workers, here

__all__ = ["refuse_other_here", "refuse_other_versions", "versions"]

PACKAGES = ("linmax", "numpy", "numba")


@cache
def versions() -> dict[str, str]:
    """In this process."""
    return {"python": ".".join(platform.python_version_tuple()[:2])} | {name: version(name) for name in PACKAGES}


def refuse_other_versions(workers: Workers) -> None:
    """All workers must have the versions that this process has."""
    found = workers.everywhere(versions)
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
        _refuse(address, there, versions())


def refuse_other_here(wanted: Mapping[str, str] | None) -> None:
    """In a task: this worker may have come after all others were asked."""
    if wanted is not None:
        _refuse(here(), versions(), wanted)


def _refuse(address: str, there: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    for name, ours in wanted.items():
        if there[name] != ours:
            raise ValueError(
                f"the worker {address} has {name} {there[name]}, the driver {ours}; install the same everywhere"
            )
