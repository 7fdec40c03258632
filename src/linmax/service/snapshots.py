"""Snapshots: the state of a model after an event, so that recovery need not start from the first event.

They are files ``MODEL-SEQ.linmax``, both numbers, in their own folder. The log is the truth: a damaged snapshot is
skipped, and one that is not of this log's history, as its running checksum shows, is set aside. Deleting all of them
only costs time, unless the log has been cut behind them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from linmax.service.log import EventLog
from linmax.service.served_model import ServedModel
from linmax.util import files

__all__ = ["SNAPSHOT", "SNAPSHOTS_KEPT", "SNAPSHOT_NAME", "Snapshots", "belongs"]

logger = logging.getLogger("linmax.service")

SNAPSHOT = "service snapshot"
SNAPSHOTS_KEPT = 2
SNAPSHOT_NAME = re.compile(r"(\d+)-(\d+)\.linmax")
DAMAGED = (ValueError, KeyError, TypeError, OSError)


class Snapshots:
    """The snapshots of a data folder; what does not belong there goes to the folder ``aside``.

    A baseline is a snapshot that is kept until there is a newer one: the state with which a model begins (a copy, an
    uploaded file), or in which another version or processor left it. From there on a replay gives the same bits.
    """

    def __init__(self, data: Path) -> None:
        self.folder, self.baselines, self.aside = data / "snapshots", data / "baselines", data / "aside"
        for folder in (self.folder, self.baselines):
            folder.mkdir(mode=0o700, exist_ok=True)
            for left in folder.glob(".*"):  # left by a process that was killed while writing
                left.unlink()

    def found(self, number: int) -> list[tuple[int, Path]]:
        """Return (sequence number, file) of a model's snapshots, newest first."""
        return _states(self.folder, number)

    def baseline(self, number: int, kept: int) -> tuple[int, Path] | None:
        """Return (sequence number, file) of a model's baseline, unless the log begins later."""
        return next(((seq, path) for seq, path in _states(self.baselines, number) if seq >= kept), None)

    def write(
        self, number: int, state: tuple[Mapping[str, object], Mapping[str, np.ndarray]], *, baseline: bool = False
    ) -> Path:
        """Save a state, and drop all but the newest few."""
        folder, most = (self.baselines, 1) if baseline else (self.folder, SNAPSHOTS_KEPT)
        description, arrays = state
        path = folder / f"{number}-{description['applied_seq']}.linmax"
        files.write(path, SNAPSHOT, description, arrays)
        for _, old in _states(folder, number)[most:]:
            old.unlink()
        return path

    def restore(self, model: ServedModel, log: EventLog) -> None:
        """Set the model to the newest state that is intact and part of the log's history.

        A snapshot that cannot be read is reported.
        """
        baseline = self.baseline(model.number, log.models[model.number].kept)
        for seq, path in sorted([*self.found(model.number), *([baseline] if baseline else [])], reverse=True):
            try:
                header, arrays = files.read(path, SNAPSHOT)
                if not belongs(header, seq, log, model.number):
                    self._set_aside(path, log)
                    continue
                model.restore(header, arrays)
            except DAMAGED as error:
                reason = f"no {error}" if isinstance(error, KeyError) else str(error)
                log.note_incident(
                    f"snapshot {path.name} of model {model.name} is passed over: {reason}; the log is replayed, and "
                    "where another linmax wrote it the figures may differ"
                )
            else:
                return

    def sweep(self, log: EventLog) -> None:
        """Set aside the snapshots of models that the log does not have, such as those made after a backup."""
        for path in sorted([*self.folder.iterdir(), *self.baselines.iterdir()]):
            match = SNAPSHOT_NAME.fullmatch(path.name)
            if match and int(match[1]) not in log.models:
                self._set_aside(path, log)

    def _set_aside(self, path: Path, log: EventLog) -> None:
        self.aside.mkdir(mode=0o700, exist_ok=True)
        target = self.aside / path.name
        path.replace(target)
        log.note_incident(
            f"snapshot {path.name} is not part of this log's history; it was set aside as {target.parent.name}/"
            f"{target.name}, and the model follows from the log"
        )

    def remove(self, number: int) -> None:
        """Delete all snapshots of a model."""
        for _, path in (*self.found(number), *_states(self.baselines, number)):
            path.unlink()


def _states(folder: Path, number: int) -> list[tuple[int, Path]]:
    matches = ((SNAPSHOT_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted(((int(m[2]), path) for m, path in matches if m and int(m[1]) == number), reverse=True)


def belongs(header: Mapping[str, object], seq: int, log: EventLog, number: int) -> bool:
    """Return whether a state is that of the model after this event of the log."""
    return header["applied_seq"] == seq and log.crc_at(number, seq) == header["crc"]
