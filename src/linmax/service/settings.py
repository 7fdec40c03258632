"""Settings that the operator chooses when starting the service."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["ServiceSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Where the data are, and the limits."""

    data: Path
    queue: int = 8192
    gather: float = 0.002
    max_body: int = 2**20
    receive_seconds: float = 20.0
    max_models: int = 100
    snapshot_events: int = 100_000
    snapshot_seconds: float = 300.0
    log_requests: bool = False
