"""Backups of a data folder, while it is in use or not: the log by SQLite's on-line backup, snapshots and keys as files.

A backup is a data folder. It is made under another name and gets its own when everything is on disk; so a folder with
the right name is complete. A running service is asked by a file in its folder, which only its owner can write.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from linmax.service.folder import give_to_owner
from linmax.service.log import EventLog
from linmax.service.log_file import InUse
from linmax.service.log_store import BACKUP_NOTE
from linmax.service.mark import Mark

__all__ = ["LiveBackup", "answered_requests", "back_up", "taken_request"]

STEP_PAGES = 128
PATIENCE = 10.0  # seconds for a running service to notice a request
WAIT = 0.05


class _Target:
    """The new folder, under another name until it is complete."""

    def __init__(self, data: Path, target: Path) -> None:
        self.data, self.target = data, target
        if target.exists():
            raise ValueError(f"{target} exists; choose a name that is free")
        if not target.parent.is_dir():
            raise ValueError(f"{target}: there is no folder {target.parent}; make it first")
        self.partial = target.with_name(f".{target.name}.partial")
        shutil.rmtree(self.partial, ignore_errors=True)
        self.partial.mkdir(mode=0o700)
        self.log: apsw.Connection = apsw.Connection(str(self.partial / "log.sqlite"))
        self.log.execute("PRAGMA synchronous = OFF")  # it is flushed as a whole at the end

    def copy_files(self) -> None:
        """Snapshots and keys; a snapshot that vanishes meanwhile is an old one."""
        (self.partial / "snapshots").mkdir(mode=0o700)
        for path in [*(self.data / "snapshots").glob("[0-9]*.linmax"), self.data / "keys.json", self.data / "closed"]:
            with contextlib.suppress(FileNotFoundError):
                shutil.copy2(path, self.partial / path.relative_to(self.data))

    def complete(self) -> str:
        """Note how far it reaches, flush everything, and give it its name."""
        identity = self.log.execute("SELECT value FROM info WHERE name = 'identity'").get
        seq = self.log.execute("SELECT max(coalesce((SELECT max(seq) FROM events), 0), value) FROM info "
                               "WHERE name = 'seq'").get  # fmt: skip
        self.log.close()
        mark = Mark(self.partial / "acknowledged")
        mark.write(identity, seq)
        mark.close()
        (self.partial / BACKUP_NOTE).write_text(f"A backup of {self.data} up to event {seq}.\n")
        for path in [*self.partial.rglob("*"), self.partial]:
            _flush(path)
        os.rename(self.partial, self.target)
        _flush(self.target.parent)
        return f"{self.target} has everything up to event {seq}"

    def give_up(self) -> None:
        self.log.close()
        shutil.rmtree(self.partial, ignore_errors=True)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class LiveBackup:
    """A backup by the running service, step by step, while requests go on.

    Parameters
    ----------
    data, target : the folder, and the new one.
    call : runs a function on the log, outside of any transaction.
    """

    def __init__(self, data: Path, target: Path, call: Callable[[Callable[[EventLog], Any]], Any]) -> None:
        self.data, self.path, self._call = data, target, call

    async def run(self, rest: float) -> str:
        """Make it; returns how far it reaches. Rests `rest` times as long as a step takes."""
        target = await asyncio.to_thread(_Target, self.data, self.path)
        try:
            await asyncio.to_thread(target.copy_files)
            copy = await self._call(lambda log: target.log.backup("main", log.database, "main"))
            try:
                more = True
                while more:
                    began = time.monotonic()
                    more = await self._call(lambda _: not copy.step(STEP_PAGES))
                    await asyncio.sleep(rest * (time.monotonic() - began))
            finally:
                await self._call(lambda _: copy.finish())
            return await asyncio.to_thread(target.complete)
        except BaseException:
            await asyncio.to_thread(target.give_up)
            raise


def back_up(data: Path, target: Path) -> str:
    """Make a backup: by this process if the folder is free, else by the service that is running."""
    if not (data / "log.sqlite").exists():
        raise ValueError(f"{data} holds no log; name the folder that linmax serve --data was given")
    while True:
        try:
            log = EventLog(data / "log.sqlite")
        except InUse:
            told = _ask_service(data, target.absolute())
            if told is not None:
                return told
            continue
        try:
            made = _Target(data, target.absolute())
            try:
                made.copy_files()
                with made.log.backup("main", log.database, "main") as copy:
                    copy.step(-1)
                return made.complete()
            except BaseException:
                made.give_up()
                raise
        finally:
            log.close()


# -- a request to the running service, as files -------------------------------------------------------------


def _ask_service(data: Path, target: Path) -> str | None:
    """Ask the running service and wait for its answer; None if it is gone."""
    request = data / "requests" / f"backup-{secrets.token_hex(8)}.json"
    request.parent.mkdir(mode=0o700, exist_ok=True)
    temporary = request.with_suffix(".tmp")
    temporary.write_text(json.dumps({"target": str(target)}))
    for path in (request.parent, temporary):
        give_to_owner(path, data)
    temporary.rename(request)
    answer, taken = request.with_suffix(".answer"), request.with_suffix(".taken")
    end = time.monotonic() + PATIENCE
    while not answer.exists():
        if taken.exists():
            end = time.monotonic() + PATIENCE
            pid = int(taken.read_text() or 0)
            with contextlib.suppress(PermissionError):
                try:
                    os.kill(pid, 0)
                except ProcessLookupError:
                    taken.unlink(missing_ok=True)
                    return None
        elif time.monotonic() > end:
            request.unlink(missing_ok=True)
            raise ValueError(f"the service that uses {data} does not answer; is it still starting?")
        time.sleep(WAIT)
    told = json.loads(answer.read_text())
    for path in (answer, taken):
        path.unlink(missing_ok=True)
    if not told["done"]:
        raise ValueError(told["told"])
    return str(told["told"])


def taken_request(data: Path) -> tuple[Path, Path] | None:
    """A request for a backup, taken over by this process: its file, and the target."""
    for path in sorted((data / "requests").glob("backup-*.json")):
        target = Path(json.loads(path.read_text())["target"])
        path.with_suffix(".taken").write_text(str(os.getpid()))
        path.unlink()
        return path, target
    return None


def answered_requests(request: Path, told: str, *, done: bool) -> None:
    """Answer a request."""
    temporary = request.with_suffix(".tmp")
    temporary.write_text(json.dumps({"done": done, "told": told}))
    temporary.rename(request.with_suffix(".answer"))
