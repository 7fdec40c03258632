"""The SQLite file of the event log: its tables, how it is opened and upgraded, and what its errors mean."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from linmax.service.chain import first_hash, name_hash

__all__ = ["VERSION", "DiskFull", "InUse", "StorageFailed", "damage_said", "open_file", "prepare_file", "translated"]


VERSION = 4  # 3: candidates, labels that are known to be wrong, and draws; 4: who abstained, and what is asked by
COMMON = """
CREATE TABLE info (name TEXT PRIMARY KEY, value) WITHOUT ROWID;  -- identity; seq, if it does not follow from events
CREATE TABLE pending (model INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (model, seq)) WITHOUT ROWID;
CREATE TABLE incidents (number INTEGER PRIMARY KEY, at INTEGER NOT NULL, told TEXT NOT NULL, settled INTEGER);
CREATE INDEX of_model ON events (model);  -- and by sequence number, as any index
CREATE INDEX faults ON answers (seq) WHERE fault IS NOT NULL;
"""
SCHEMA = f"""
CREATE TABLE models (
    model INTEGER PRIMARY KEY, name TEXT NOT NULL, description TEXT NOT NULL, created INTEGER NOT NULL,
    deleted INTEGER,  -- the last sequence number when it was deleted
    limits TEXT NOT NULL DEFAULT '{{}}',  -- options that were changed since
    base INTEGER NOT NULL DEFAULT 0, base_hash BLOB,  -- the running hash begins after this event
    kept INTEGER NOT NULL DEFAULT 0,  -- events up to this one may be gone: a snapshot has them
    named BLOB  -- hashes of all names, exclusive or
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
    served INTEGER, label INTEGER, hash BLOB
);
CREATE UNIQUE INDEX one_trial ON events (model, id) WHERE id IS NOT NULL;
CREATE UNIQUE INDEX one_label ON events (refers) WHERE refers IS NOT NULL;
CREATE TABLE answers (seq INTEGER PRIMARY KEY, predicted INTEGER, fault TEXT, probabilities BLOB);
{COMMON}
"""
FROM_1 = f"""
ALTER TABLE models ADD COLUMN limits TEXT NOT NULL DEFAULT '{{}}';
ALTER TABLE models ADD COLUMN base INTEGER NOT NULL DEFAULT 0;
ALTER TABLE models ADD COLUMN base_hash BLOB;
ALTER TABLE models ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;
ALTER TABLE models ADD COLUMN named BLOB;
ALTER TABLE events ADD COLUMN hash BLOB;
ALTER TABLE answers ADD COLUMN fault TEXT;
ALTER TABLE answers ADD COLUMN probabilities BLOB;
{COMMON}
INSERT INTO pending SELECT model, seq FROM events e WHERE kind = 1 AND NOT EXISTS
    (SELECT 1 FROM events l WHERE l.refers = e.seq);
UPDATE models SET base = coalesce((SELECT max(seq) FROM events e WHERE e.model = models.model), 0);
INSERT INTO info VALUES ('seq', max(coalesce((SELECT max(seq) FROM events), 0),
    coalesce((SELECT max(deleted) FROM models), 0)));
"""


class DiskFull(Exception):
    """The disk is full: the transaction was undone, and the stored data are intact."""


class InUse(ValueError):
    """Another process has the log."""


class StorageFailed(Exception):
    """A write or flush failed: only a restart finds out what is on the disk."""


def translated(error: apsw.Error) -> Exception:
    """SQLite's errors as the two that matter."""
    if isinstance(error, apsw.FullError):
        return DiskFull(str(error))
    return StorageFailed(f"{type(error).__name__}: {error}")


def open_file(path: Path, vfs: str | None, wait: float) -> apsw.Connection:
    try:
        database = apsw.Connection(str(path), vfs=vfs)
        database.set_busy_timeout(int(1000 * wait))
        return database
    except apsw.CantOpenError as error:
        raise OSError(f"cannot open {path}: {error}") from None


def prepare_file(database: apsw.Connection, path: Path, synchronous: str) -> None:
    """Lock the file for this process alone; make its tables if it is new, upgrade them if they are old."""
    with damage_said(database, path):
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        if database.execute("PRAGMA page_count").get == 0:  # a new file; in an old one this would write a page
            database.execute("PRAGMA auto_vacuum = INCREMENTAL")  # so that space can be given back
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(f"PRAGMA synchronous = {synchronous}")
        database.execute("PRAGMA cache_size = -65536")
        database.execute("BEGIN IMMEDIATE; COMMIT")
        version = database.execute("PRAGMA user_version").get
        if version == 0:
            database.execute(f"BEGIN IMMEDIATE; {SCHEMA} INSERT INTO info VALUES ('seq', 0)")
            _finish(database)
        elif version == 1:
            database.execute(f"BEGIN IMMEDIATE; {FROM_1}")
            _finish(database)
        elif version in (2, 3):  # the tables are the same, and an older linmax must not read what will be in them
            database.execute(f"PRAGMA user_version = {VERSION}")
        elif version != VERSION:
            raise ValueError(
                f"{path} has version {version}, this linmax reads {VERSION}; install the linmax that wrote it"
            )


@contextlib.contextmanager
def damage_said(database: apsw.Connection, path: Path) -> Iterator[None]:
    """Close a file that cannot be used, and say why."""
    try:
        yield
    except apsw.BusyError:
        database.close()
        raise InUse(
            f"{path.parent} is in use by another linmax serve; stop that one or choose another folder"
        ) from None
    except (apsw.NotADBError, apsw.CorruptError) as error:
        database.close()
        told = "is not a linmax log; choose another folder" if isinstance(error, apsw.NotADBError) else (
            f"is damaged ({error}); restore a backup"
        )  # fmt: skip
        raise ValueError(f"{path} {told}") from None
    except apsw.Error as error:
        database.close()
        raise OSError(f"{path} cannot be used: {error}; its disk must let this user write, and have room") from None


def _finish(database: apsw.Connection) -> None:
    """Give the log its identity and the models their first hashes; commit."""
    identity = secrets.token_hex(16)
    database.execute("INSERT INTO info VALUES ('identity', ?)", (identity,))
    models: list[Any] = database.execute("SELECT model, name, description, created FROM models").fetchall()
    for number, name, description, created in models:
        named = 0
        for kind, place, text in database.execute("SELECT kind, number, name FROM names WHERE model = ?", (number,)):
            named ^= name_hash(kind, place, text)
        database.execute(
            "UPDATE models SET base_hash = ?, named = ? WHERE model = ?",
            (first_hash(identity, number, name, description, created), named.to_bytes(16, "big"), number),
        )
    database.execute(f"PRAGMA user_version = {VERSION}; COMMIT")
