"""Settings that the operator chooses when starting the service."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ServiceSettings", "memory_of_machine"]

DEFAULT_MEMORY = 2 * 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Settings of the service: the data folder and the limits."""

    data: Path
    queue: int = 8192
    gather: float = 0.002
    max_body: int = 2**20
    max_arriving: int = 64 * 2**20  # bytes of bodies that may arrive at a time
    max_connections: int = 4096
    receive_seconds: float = 20.0
    answer_seconds: float = 300.0  # a first model of a kind may have to be compiled
    max_models: int = 100
    memory: int = 0  # bytes for the states of all models, 0 for a quarter of the machine's
    model_memory: int = 0  # bytes for the state of one model, 0 for half of that
    snapshot_events: int = 100_000
    snapshot_seconds: float = 300.0
    keep_events: int | None = None  # of each model, behind its snapshots; None for all
    keep_seconds: float | None = None
    log_requests: bool = False

    @property
    def budgets(self) -> tuple[int, int]:
        """Memory of one model, and of all."""
        total = self.memory or memory_of_machine() // 4
        return self.model_memory or total // 2, total


def memory_of_machine() -> int:
    """Bytes that this process may use: what the machine has, or what its container is allowed.

    Examples
    --------
    >>> memory_of_machine() > 2**20
    True
    """
    found = [DEFAULT_MEMORY]
    with contextlib.suppress(OSError, ValueError, AttributeError):
        found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            found.append(int(Path(path).read_text()))
    return min(found)
