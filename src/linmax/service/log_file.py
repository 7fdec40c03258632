"""The SQLite file of the event log: its tables, how it is opened, and what its errors mean."""

from __future__ import annotations

from pathlib import Path

import apsw

__all__ = ["DiskFull", "StorageFailed", "open_file", "prepare_file", "translated"]


VERSION = 1
SCHEMA = """
CREATE TABLE models (
    model INTEGER PRIMARY KEY, name TEXT NOT NULL, description TEXT NOT NULL, created INTEGER NOT NULL,
    deleted INTEGER  -- the last sequence number when it was deleted
);
CREATE UNIQUE INDEX one_name ON models (name) WHERE deleted IS NULL;
CREATE TABLE names (
    model INTEGER NOT NULL, kind INTEGER NOT NULL, number INTEGER NOT NULL, name NOT NULL,
    PRIMARY KEY (model, kind, number)
) WITHOUT ROWID;
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, model INTEGER NOT NULL, kind INTEGER NOT NULL, at INTEGER NOT NULL,
    id TEXT, refers INTEGER,
    votes INTEGER, scores INTEGER, places BLOB, numbers BLOB,
    served INTEGER, label INTEGER
);
CREATE UNIQUE INDEX one_trial ON events (model, id) WHERE id IS NOT NULL;
CREATE UNIQUE INDEX one_label ON events (refers) WHERE refers IS NOT NULL;
CREATE TABLE answers (seq INTEGER PRIMARY KEY, predicted INTEGER);
"""


class DiskFull(Exception):
    """The disk is full: the transaction was undone, and the stored data are intact."""


class StorageFailed(Exception):
    """A write or flush failed: only a restart finds out what is on the disk."""


def translated(error: apsw.Error) -> Exception:
    """SQLite's errors as the two that matter."""
    if isinstance(error, apsw.FullError):
        return DiskFull(str(error))
    return StorageFailed(f"{type(error).__name__}: {error}")


def open_file(path: Path, vfs: str | None) -> apsw.Connection:
    try:
        return apsw.Connection(str(path), vfs=vfs)
    except apsw.CantOpenError as error:
        raise OSError(f"cannot open {path}: {error}") from None


def prepare_file(database: apsw.Connection, path: Path, synchronous: str) -> None:
    """Lock the file for this process alone, and make its tables if it is new."""
    try:
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(f"PRAGMA synchronous = {synchronous}")
        database.execute("PRAGMA cache_size = -65536")
        database.execute("BEGIN IMMEDIATE; COMMIT")
        version = database.execute("PRAGMA user_version").get
        if version == 0:
            database.execute(f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT")
        elif version != VERSION:
            raise ValueError(
                f"{path} has version {version}, this linmax reads {VERSION}; install the linmax that wrote it"
            )
    except apsw.BusyError:
        database.close()
        raise ValueError(
            f"{path.parent} is in use by another linmax serve; stop that one or choose another folder"
        ) from None
    except apsw.NotADBError:
        database.close()
        raise ValueError(f"{path} is not a linmax log; choose another folder") from None
