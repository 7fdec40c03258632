"""Snapshots: the state of a model after an event, so that recovery need not start from the first event.

They are files ``MODEL-SEQ.linmax``, both numbers, in their own folder. The log is the truth: a damaged snapshot is
skipped, and deleting all of them only costs time.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from linmax.service.model import SNAPSHOT, ServedModel
from linmax.util import files

__all__ = ["SNAPSHOTS_KEPT", "Snapshots"]

logger = logging.getLogger("linmax.service")

SNAPSHOTS_KEPT = 2
NAME = re.compile(r"(\d+)-(\d+)\.linmax")


class Snapshots:
    """The snapshots in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        for left in folder.glob(".*"):  # left by a process that was killed while writing
            left.unlink()

    def found(self, number: int) -> list[tuple[int, Path]]:
        """(sequence number, file) of a model's snapshots, newest first."""
        matches = ((NAME.fullmatch(path.name), path) for path in self.folder.iterdir())
        return sorted(((int(m[2]), path) for m, path in matches if m and int(m[1]) == number), reverse=True)

    def write(self, number: int, state: tuple[Mapping[str, Any], Mapping[str, np.ndarray]]) -> Path:
        """Save a state, and drop all but the newest few."""
        description, arrays = state
        path = self.folder / f"{number}-{description['applied_seq']}.linmax"
        files.write(path, SNAPSHOT, description, arrays)
        for _, old in self.found(number)[SNAPSHOTS_KEPT:]:
            old.unlink()
        return path

    def restore(self, model: ServedModel, last: int) -> None:
        """Put the model into the newest state that is intact and not ahead of the log."""
        for seq, path in self.found(model.number):
            if seq > last:
                logger.warning("snapshot %s is ahead of the log, which ends at %d: passed over", path.name, last)
                continue
            try:
                model.restore(path)
            except (ValueError, KeyError, TypeError, OSError) as error:
                logger.warning("snapshot %s is passed over: %s", path.name, error)
            else:
                return

    def remove(self, number: int) -> None:
        """Delete all snapshots of a model."""
        for _, path in self.found(number):
            path.unlink()
