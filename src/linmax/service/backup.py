"""Backups of a data folder, while it is in use or not: the log by ``VACUUM INTO``, snapshots and keys as files.

A backup is a data folder. It is made under another name and gets its own when everything is on disk; so a folder with
the right name is complete. A running service continues meanwhile: the backup reads the log as it was at one moment.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any

import apsw

from linmax.service.folder import give_to_owner, log_in
from linmax.service.log import BACKUP_NOTE, Mark, explain_damage, last_seq
from linmax.service.pages import CheckedVFS, connect
from linmax.service.snapshots import SNAPSHOT_NAME

__all__ = ["back_up"]

ATTEMPTS = 10
WAIT_SECONDS = 10.0


def back_up(data: Path, target: Path) -> str:
    """Make a backup; returns how far it reaches."""
    log_in(data)
    target = target.absolute()
    if target.exists():
        raise ValueError(f"{target} exists; choose a name that is free")
    if not target.parent.is_dir():
        raise ValueError(f"{target}: there is no folder {target.parent}; make it first")
    partial = target.with_name(f".{target.name}.partial")
    try:
        for _ in range(ATTEMPTS):
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(mode=0o700)
            _copy_files(data, partial)  # first: a snapshot must not be ahead of the log
            _copy_log(data, partial)
            if _has_snapshots(partial):
                return _complete(data, partial, target)
        raise ValueError(f"{data} changes too quickly to be copied; try again, or with a greater --keep-events")
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _copy_files(data: Path, partial: Path) -> None:
    """Copy snapshots and keys; a snapshot that vanishes meanwhile is an old one."""
    states: list[Path] = []
    for folder in ("snapshots", "baselines"):
        (partial / folder).mkdir(mode=0o700)
        states += (data / folder).glob("[0-9]*.linmax")
    for path in [*states, data / "keys.json", data / "closed"]:
        with contextlib.suppress(FileNotFoundError):
            shutil.copy2(path, partial / path.relative_to(data))


def _copy_log(data: Path, partial: Path) -> None:
    vfs = CheckedVFS()  # which the copy gets too
    source = connect(data / "log.sqlite", vfs)
    source.set_busy_timeout(int(1000 * WAIT_SECONDS))
    with explain_damage(source, data / "log.sqlite"):
        source.execute("VACUUM INTO ?", (str(partial / "log.sqlite"),))
    source.close()


def _has_snapshots(partial: Path) -> bool:
    """Return whether the log begins early enough: events may have been removed after their snapshots were copied."""
    log = apsw.Connection(str(partial / "log.sqlite"))
    kept: list[Any] = log.execute("SELECT model, kept FROM models WHERE deleted IS NULL AND kept > 0").fetchall()
    log.close()
    matches = [SNAPSHOT_NAME.fullmatch(path.name) for path in partial.glob("*s/*.linmax")]
    reached = {(int(match[1]), int(match[2])) for match in matches if match}
    return all(any(model == number and seq >= first for model, seq in reached) for number, first in kept)


def _complete(data: Path, partial: Path, target: Path) -> str:
    """Note how far the backup reaches, flush everything, and give it its name."""
    log = apsw.Connection(str(partial / "log.sqlite"))
    identity, seq = log.execute("SELECT value FROM info WHERE name = 'identity'").get, last_seq(log)
    log.close()
    mark = Mark(partial / "acknowledged")
    mark.write(identity, seq)
    mark.close()
    (partial / BACKUP_NOTE).write_text(f"A backup of {data} up to event {seq}.\n")
    for path in [*partial.rglob("*"), partial]:
        give_to_owner(path, data)
        _flush(path)
    os.rename(partial, target)
    _flush(target.parent)
    return f"{target} has everything up to event {seq}"


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
