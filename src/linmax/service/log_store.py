"""The file of the event log at work: transactions, models, checkpoints, and what happens here if they are undone."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from linmax.service.chain import first_hash, name_hash
from linmax.service.log_file import StorageFailed, damage_said, open_file, prepare_file, translated
from linmax.service.log_rows import Budget, ModelRow, made_row
from linmax.service.mark import MOST_WAL, Mark, wal_damage
from linmax.service.probing import Footprint
from linmax.service.refusals import Refusal

__all__ = ["BACKUP_NOTE", "LogStore"]

logger = logging.getLogger("linmax.service")

CHECKPOINT_PAGES = 2_000  # 8 MB: a longer WAL makes recovery slower, a shorter one more syncs
UNLIMITED = 2**62
BACKUP_NOTE = "backup"  # a file that says that the folder is a backup; until a service uses it


class LogStore:
    """The log in one file. Not for several threads at a time.

    Parameters
    ----------
    path : path of the SQLite file; it is made when missing.
    vfs : name of the SQLite virtual file system, for tests.
    synchronous : "FULL". Tests show that "NORMAL" loses acknowledged events when the power fails.
    wait : seconds to wait for another process that has the log, such as a backup of a stopped service.
    """

    def __init__(
        self, path: str | Path, *, vfs: str | None = None, synchronous: str = "FULL", wait: float = 0.0
    ) -> None:
        self.path, self._alone = Path(path), vfs is None
        aside = _set_aside_foreign_wal(self.path)
        wal = _content(self.path.with_name(f"{self.path.name}-wal"))
        self.database = open_file(self.path, vfs, wait)
        prepare_file(self.database, self.path, synchronous)
        self._pages = 0
        self.database.set_wal_hook(self._note_pages)
        with damage_said(self.database, self.path):
            self._read_tables()
        self._stored_seq = self.seq
        self._touched: set[int] = set()
        self._undo: list[Callable[[], None]] = []
        self.commits = 0
        self.budget = Budget(UNLIMITED, UNLIMITED, self.models.values)
        self._mark = Mark(self.path.with_name("acknowledged"))
        self._own = self._seen()
        if aside is not None:
            self._note(aside)
        self._compare_with_mark(wal)

    def _read_tables(self) -> None:
        execute = self.database.execute
        self.identity: str = execute("SELECT value FROM info WHERE name = 'identity'").get
        known = execute("SELECT value FROM info WHERE name = 'environments'").get
        self.environments: list[dict[str, str]] = json.loads(known or "[]")
        self.models: dict[int, ModelRow] = {}
        for row in execute("SELECT model, name, description, created, limits, base, base_hash, kept, named "
                           "FROM models WHERE deleted IS NULL ORDER BY model"):  # fmt: skip
            self.models[row[0]] = made_row(self.database, *row)
        self.seq: int = execute("SELECT max(coalesce((SELECT max(seq) FROM events), 0), value) FROM info "
                                "WHERE name = 'seq'").get  # fmt: skip
        self.at = execute("SELECT max(coalesce((SELECT at FROM events ORDER BY seq DESC LIMIT 1), 0), "
                          "coalesce((SELECT max(created) FROM models), 0))").get  # fmt: skip
        # Answers to learn events are written in order; those to predictions, which have probabilities, at once.
        self.answered = (
            execute("SELECT seq FROM answers WHERE probabilities IS NULL ORDER BY seq DESC LIMIT 1").get or 0
        )

    def close(self) -> None:
        """Move everything from the WAL to the file, and close it."""
        try:
            self.checkpoint(truncate=True)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the files as they are."""
        self.database.close()
        with contextlib.suppress(OSError):
            self._mark.close()

    def _compare_with_mark(self, wal: bytes) -> None:
        """Say what is missing at the end of the log, and use none of its numbers again."""
        identity, seq = self._mark.read() or (self.identity, 0)
        if identity == self.identity and seq <= self.seq:
            self._mark.write(self.identity, self.seq)
            return
        where = wal_damage(wal)
        told = (
            f"the log ends at event {self.seq}, but events up to {seq} were acknowledged: {seq - self.seq} are lost; "
        )
        if identity != self.identity:
            told = f"this is not the log whose events up to {seq} were acknowledged in this folder: they are lost; "
        if where is None:
            told += "either media are damaged, or a backup was restored over another folder"
        else:
            kept = self.path.with_name("aside") / f"wal-{time.time_ns()}"
            kept.parent.mkdir(mode=0o700, exist_ok=True)
            kept.write_bytes(wal)
            told += f"{where}, a copy of it is {kept.parent.name}/{kept.name}"
        self.seq = max(seq, self.seq)
        self._note(told)

    def _note(self, told: str) -> None:
        self.begin()
        self.note_seq()
        self.note_incident(told)
        self.commit()

    def _seen(self) -> tuple[int, ...]:
        """What tells the file from another one, and from itself after another program has written to it."""
        if not self._alone:
            return ()
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return (0,)
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def _check_own(self) -> None:
        """Fail if the file is no longer the one that was opened: what is written to it would be lost."""
        if self._seen() != self._own:
            self.database.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            raise StorageFailed(
                f"{self.path} was replaced, removed or changed by another program; nothing more is acknowledged; stop "
                "the service before you restore a backup"
            )

    # -- transactions ---------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start a transaction."""
        self.at = max(self.at, time.time_ns() // 1_000_000)  # ids stay in order even when the clock is set back
        self.run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Commit to stable storage; raises `DiskFull` if undone, `StorageFailed` if the outcome is unknown."""
        for number in self._touched:
            self._write_names(self.models[number])
        self.run("COMMIT")
        self._check_own()
        for number in self._touched:
            self.models[number].names.keep()
        self._settle()
        if self.seq != self._stored_seq:
            self._mark.write(self.identity, self.seq)
        self._stored_seq = self.seq
        self.commits += 1

    def rollback(self) -> None:
        """Undo the transaction, in the file (SQLite may have done so) and here."""
        if self.database.in_transaction:
            self.run("ROLLBACK")
        for undo in reversed(self._undo):
            undo()
        for number in self._touched:
            if number in self.models:
                self.models[number].names.take_back()
        self._settle()
        self.seq = self._stored_seq

    def undo_with(self, undo: Callable[[], None]) -> None:
        """What to do if the transaction is undone."""
        self._undo.append(undo)

    def _settle(self) -> None:
        self._touched.clear()
        self._undo.clear()

    def _write_names(self, row: ModelRow) -> None:
        fresh = row.names.fresh
        if not fresh:
            return
        self.many("INSERT INTO names VALUES (?,?,?,?)", [(row.number, *name) for name in fresh])
        named, before = row.named, row.named
        for name in fresh:
            named ^= name_hash(*name)
        self.run("UPDATE models SET named = ? WHERE model = ?", (named.to_bytes(16, "big"), row.number))
        row.named = named
        self._undo.append(lambda: setattr(row, "named", before))

    def checkpoint(self, *, truncate: bool = False) -> None:
        """Move the WAL into the file if it is long enough, or if `truncate` is set."""
        if self._pages < CHECKPOINT_PAGES and not truncate:
            return
        self._check_own()
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
        try:
            self.database.wal_checkpoint(mode=mode)
        except apsw.Error as error:
            raise translated(error) from error
        self._pages, self._own = 0, self._seen()

    def _note_pages(self, _database: apsw.Connection, _name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    # -- models ---------------------------------------------------------------------------------------

    def create(self, name: str, description: dict[str, Any], footprint: Footprint | None = None) -> ModelRow:
        """A new model; 409 when the name is taken."""
        if any(row.name == name for row in self.models.values()):
            raise Refusal(409, f"a model called {name!r} exists; delete it or choose another name", field="name")
        self.seq += 1
        self.note_seq()
        number = self.run("SELECT coalesce(max(model), 0) + 1 FROM models").get
        text = json.dumps(description, allow_nan=False)
        start = first_hash(self.identity, number, name, text, self.at)
        stored = (number, name, text, self.at, "{}", 0, start, 0, bytes(16))
        self.run("INSERT INTO models VALUES (?,?,?,?,NULL,?,?,?,?,?)", stored)
        row = self.models[number] = made_row(self.database, *stored)
        row.footprint = footprint
        self._undo.append(lambda: self.models.__delitem__(number))
        return row

    def delete(self, number: int) -> None:
        """Delete a model: its name is free at once; `purge` removes its log bit by bit."""
        row = self.model(number)
        self.seq += 1
        self.note_seq()
        self.run("UPDATE models SET deleted = ? WHERE model = ?", (self.seq, number))
        del self.models[number]
        self._touched.discard(number)
        self._undo.append(lambda: self.models.__setitem__(number, row))

    def change(self, number: int, limits: dict[str, Any]) -> None:
        """Change a model's limits."""
        row = self.model(number)
        before = row.limits
        row.limits = before | limits
        self.run("UPDATE models SET limits = ? WHERE model = ?", (json.dumps(row.limits), number))
        self._undo.append(lambda: setattr(row, "limits", before))

    def note_seq(self) -> None:
        """Write the last number down where it does not follow from the events."""
        self.run("UPDATE info SET value = ? WHERE name = 'seq'", (self.seq,))

    def note_environment(self, here: dict[str, str]) -> None:
        """Remember the libraries and the processor that learn from the next event on, where these are others."""
        if not self.environments or self.environments[-1] != here:
            self.environments.append(here)
            self.begin()
            self.run("INSERT OR REPLACE INTO info VALUES ('environments', ?)", (json.dumps(self.environments),))
            self.commit()

    def note_incident(self, told: str) -> None:
        """Remember something that an operator must know, until it is settled."""
        logger.critical(told)
        self.run("INSERT INTO incidents (at, told) VALUES (?,?)", (self.at, told))

    def model(self, number: int) -> ModelRow:
        """The model of this number; 404 when it was deleted."""
        if number not in self.models:
            raise Refusal(404, "the model was deleted")
        return self.models[number]

    def _touch(self, number: int) -> ModelRow:
        """The model, which this transaction may change."""
        row = self.models.get(number) or self.model(number)
        if number not in self._touched:
            self._touched.add(number)
            before = row.last, row.hash, row.pending
            self._undo.append(lambda: row.go_back(*before))
        return row

    # -- statements -----------------------------------------------------------------------------------

    def run(self, sql: str, values: tuple[Any, ...] = ()) -> apsw.Cursor:
        """Execute one statement."""
        try:
            return self.database.execute(sql, values)
        except apsw.Error as error:
            raise translated(error) from error

    def many(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        """Execute one statement for many rows."""
        if rows:
            try:
                self.database.executemany(sql, rows)
            except apsw.Error as error:
                raise translated(error) from error


def _set_aside_foreign_wal(path: Path) -> str | None:
    """Keep SQLite from a WAL that is not of this log: where a backup was put back, it is of the log before."""
    wal = path.with_name(f"{path.name}-wal")
    if not (path.with_name(BACKUP_NOTE).exists() and wal.exists() and wal.stat().st_size):
        return None
    target = path.with_name("aside") / f"wal-{time.time_ns()}"
    target.parent.mkdir(mode=0o700, exist_ok=True)
    wal.replace(target)
    return f"a backup was put back here; the WAL of the log before is set aside as aside/{target.name}"


def _content(path: Path) -> bytes:
    """The WAL as it is before SQLite sees it: SQLite writes over what it cannot use."""
    try:
        return path.read_bytes() if path.stat().st_size <= MOST_WAL else b""
    except FileNotFoundError:
        return b""
