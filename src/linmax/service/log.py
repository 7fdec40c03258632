"""The event log: everything to be remembered, in order, on stable storage. It is the truth; all else is derived.

One SQLite file in WAL mode with ``synchronous=FULL``, so that a commit is on stable storage when it returns; its pages
carry checksums (`linmax.service.pages`), which are compared when it is opened and whenever a page is read. One
process owns a log, which an exclusive lock on the file ``lock`` in its folder enforces; others may read it, as a live
backup does.

An event has a number, a kind, the time, an id or the number of the event that it refers to, and a body: the msgpack
array [instance, label, wrong, served, likely, weight].

| kind | holds |
|---|---|
| predict | id, instance, the label that was served, and the probabilities and the like that were served with it |
| learn | id, instance, label, whether that class is only known to be wrong, weight |
| label | the prediction that it refers to, label, wrong, weight |
| forget | the prediction whose label will never come |
| wants | "?" and the id, instance: whether its label is worth asking for, which a selective learner draws |
| asks | the tolerance, and the costs if any, by which voters are asked from now on |

An id names one trial of one model, and a trial has one label; an event that repeats another is not stored again. What
a model predicted just before a *learn* event, or drew in a *wants* event, follows from the log; the table ``answers``
keeps it only to repeat it.

Every event carries a running CRC-32 over all events of its model, which starts from the log's identity and the model's
description: the text "seq kind at id refers", then the body. A state that carries the checksum of its last event
belongs to one history, and a damaged event is found.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import secrets
import shutil
import time
import zlib
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import apsw
import msgspec

from linmax.service.bodies import Instance, Label
from linmax.service.folder import flush_folder
from linmax.service.pages import CheckedVFS, DamagedPage, connect
from linmax.service.schemas import Refusal, TrialView, WaitingPrediction

logger = logging.getLogger("linmax.service")

PREDICT, LEARN, LABEL, FORGET, WANTS, ASKS = 1, 2, 3, 4, 5, 6
KIND_NAMES = {PREDICT: "predict", LEARN: "learn", LABEL: "label", FORGET: "forget", WANTS: "wants_label", ASKS: "ask"}
VERSION = 7
PAGES_SHOWN = 10  # damaged pages
CHECKPOINT_PAGES = 2_000  # 8 MB: a longer WAL makes recovery slower, a shorter one more syncs
SLICE_EVENTS, SLICE_PAGES = 500, 100  # of upkeep at a time
FREE_PAGES = 64  # that may stay in the file for what comes next
SKIPPED = "skipped by the operator"
BACKUP_NOTE = "backup"  # a file that says that the folder is a backup; until a service uses it
TABLES = """
CREATE TABLE info (name TEXT PRIMARY KEY, value) WITHOUT ROWID;  -- identity; seq, if it does not follow from events
CREATE TABLE models (
    model INTEGER PRIMARY KEY, name TEXT NOT NULL, description TEXT NOT NULL, created INTEGER NOT NULL,
    deleted INTEGER,  -- the last sequence number when it was deleted
    limits TEXT NOT NULL DEFAULT '{}',  -- options that were changed since
    kept INTEGER NOT NULL DEFAULT 0,  -- events up to this one may be gone: a snapshot has them
    kept_crc INTEGER NOT NULL,  -- the checksum after it
    purged INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, model INTEGER NOT NULL, kind INTEGER NOT NULL, at INTEGER NOT NULL,
    id TEXT, refers INTEGER, body BLOB NOT NULL, crc INTEGER NOT NULL
);
CREATE TABLE answers (seq INTEGER PRIMARY KEY, predicted, fault TEXT);
CREATE TABLE pending (model INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (model, seq)) WITHOUT ROWID;
CREATE TABLE incidents (number INTEGER PRIMARY KEY, at INTEGER NOT NULL, message TEXT NOT NULL, settled INTEGER);
"""
INDEXES = """
CREATE UNIQUE INDEX one_name ON models (name) WHERE deleted IS NULL;
CREATE UNIQUE INDEX one_trial ON events (model, id) WHERE id IS NOT NULL;
CREATE UNIQUE INDEX one_label ON events (refers) WHERE refers IS NOT NULL;
CREATE INDEX of_model ON events (model);  -- and by sequence number, as any index
CREATE INDEX faults ON answers (seq) WHERE fault IS NOT NULL;
"""
EventRow = tuple[
    int, int, int, str | None, int | None, bytes, int, str | None, bytes | None, int | None, Label | None, str | None
]
EVENT = (
    "SELECT e.seq, e.kind, e.at, e.id, e.refers, e.body, e.crc, p.id, p.body, a.seq, a.predicted, a.fault "
    "FROM events e LEFT JOIN events p ON p.seq = e.refers LEFT JOIN answers a ON a.seq = e.seq "
)


# -- events -------------------------------------------------------------------------------------------------------


class Body(msgspec.Struct, array_like=True, gc=False):
    """The content of an event, without its numbers."""

    instance: Instance | None = None
    label: Label | None = None
    wrong: bool = False  # all that is known is that the label is not `label`
    served: Label | None = None
    likely: bytes | None = None  # what was served with the label, as JSON
    weight: float = 1.0


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Body).decode


class Event(msgspec.Struct, gc=False):
    """Event that a request added to the log, or that was there already (`repeat`)."""

    seq: int
    kind: int
    instance: Instance | None = None
    served: Label | None = None
    label: Label | None = None
    wrong: bool = False
    likely: bytes | None = None
    weight: float = 1.0
    repeat: bool = False
    answered: bool = True  # `served` is known (of a learn event: it has been applied and written down)
    fault: str | None = None  # why it could not be learned
    wanted: bool = True  # of a draw: whether the label is
    crc: int = 0
    at: int = 0
    id: str | None = None

    def answer(self, guess: Label | bool | None) -> None:
        """Set what was predicted or drawn."""
        if self.kind == WANTS:
            self.wanted = bool(guess)
        else:
            self.served = guess
        self.answered = True


def _event(row: EventRow, *, repeat: bool = True) -> Event:
    """Make the event of a row of `EVENT`; one that refers to another is about the instance of that one."""
    seq, kind, at, id, _, content, crc, first_id, first, answered, predicted, fault = row
    if fault == SKIPPED:  # perhaps because it is damaged
        return Event(seq, kind, repeat=repeat, fault=fault, crc=crc, at=at, id=id if first_id is None else first_id)
    try:
        event = _joined(seq, kind, content, first, crc)
    except msgspec.DecodeError:
        raise Refusal(500, f"event {seq} is damaged; run linmax serve verify") from None
    event.repeat, event.fault, event.at = repeat, fault, at
    event.id = id if first_id is None else first_id
    if kind in (LEARN, WANTS):
        event.answered = answered is not None
        if event.answered:
            event.answer(predicted)
    return event


def _joined(seq: int, kind: int, content: bytes, first: bytes | None, crc: int) -> Event:
    """Make the event of a body, and of that of the event that it refers to, whose instance it is about."""
    body = _decode(content)
    about = body if first is None else _decode(first)
    return Event(
        seq, kind, about.instance, about.served, body.label, body.wrong, about.likely, body.weight, False, crc=crc
    )


class Damaged(Exception):
    """An event does not fit the running checksum."""

    def __init__(self, seq: int, message: str) -> None:
        super().__init__(message)
        self.seq = seq


@dataclass(slots=True)
class ModelRow:
    """A model as the log knows it: its last event with the running checksum, and how many wait for a label."""

    number: int
    name: str
    description: dict[str, object]
    created: int
    limits: dict[str, object] = field(default_factory=dict)
    kept: int = 0
    kept_crc: int = 0
    last: int = 0
    crc: int = 0
    pending: int = 0

    def limit(self, name: str, default: int) -> int:
        """Return a limit, as it was changed last."""
        return cast(int, self.limits.get(name, self.description.get(name, default)))


# -- the file -----------------------------------------------------------------------------------------------------


class DiskFull(Exception):
    """The disk is full: the transaction was undone, and the stored data are intact."""


class InUse(ValueError):
    """Another process has the log."""


class StorageFailed(Exception):
    """A write or flush failed: only a restart finds out what is on the disk."""


def _translated(error: apsw.Error) -> Exception:
    return (
        DiskFull(str(error)) if isinstance(error, apsw.FullError) else StorageFailed(f"{type(error).__name__}: {error}")
    )


@contextlib.contextmanager
def explain_damage(database: apsw.Connection, path: Path) -> Iterator[None]:
    """Close a file that cannot be used, and raise the reason in words."""
    try:
        yield
    except apsw.BusyError:
        database.close()
        raise InUse(
            f"{path.parent} is in use by another linmax serve; stop that one or choose another folder"
        ) from None
    except (apsw.NotADBError, apsw.CorruptError, DamagedPage) as error:
        database.close()
        unknown = "page 1 " in str(error) or isinstance(error, apsw.NotADBError)
        message = f"is damaged ({error}); restore a backup"
        raise ValueError(f"{path} {f'is not a linmax log, or {message}' if unknown else message}") from None
    except apsw.Error as error:
        database.close()
        raise OSError(f"{path} cannot be used: {error}; its disk must let this user write, and have room") from None


def _connect(path: Path, vfs: CheckedVFS | None, wait: float) -> apsw.Connection:
    try:
        database = apsw.Connection(str(path)) if vfs is None else connect(path, vfs)
    except apsw.CantOpenError as error:
        raise OSError(f"cannot open {path}: {error}") from None
    database.set_busy_timeout(int(1000 * wait))
    return database


def last_seq(database: apsw.Connection) -> int:
    """Return the last sequence number of a log."""
    sql = "SELECT max(coalesce((SELECT max(seq) FROM events), 0), value) FROM info WHERE name = 'seq'"
    return cast(int, database.execute(sql).get)


class Mark:
    """The last acknowledged sequence number of a log, in a file next to it, so that a log that lost its end is found.

    SQLite ends a WAL at the first damaged frame without a word. The mark is written after each commit and not flushed:
    after a crash of the process it is exact, after a loss of power it may be behind, and it is never ahead.

    Examples
    --------
    >>> import tempfile
    >>> mark = Mark(Path(tempfile.mkdtemp()) / "acknowledged")
    >>> mark.read() is None
    True
    >>> mark.write("log", 17)
    >>> mark.read()
    ('log', 17)
    >>> mark.close()
    """

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def read(self) -> tuple[str, int] | None:
        """Return identity and sequence number; None if nothing was written yet, ValueError if it is damaged."""
        found = os.pread(self._handle, 200, 0)
        if not found.strip(b"\0"):  # new, or the power failed before it was on the disk
            return None
        identity, _, rest = found.decode("latin-1").partition(" ")
        seq, _, check = rest.rstrip("\n").partition(" ")
        text = f"{identity} {seq}"
        if not seq.isdigit() or check != f"{zlib.crc32(text.encode('latin-1')):08x}":
            raise ValueError("the number of the last acknowledged event cannot be read: its file is damaged")
        return identity, int(seq)

    def write(self, identity: str, seq: int) -> None:
        """Note that everything up to this number is stored."""
        text = f"{identity} {seq:020d}"
        os.pwrite(self._handle, f"{text} {zlib.crc32(text.encode()):08x}\n".encode(), 0)

    def close(self) -> None:
        """Flush and close."""
        os.fsync(self._handle)
        os.close(self._handle)


class EventLog:
    """The log in one file. Not for several threads at a time.

    Parameters
    ----------
    path : path of the SQLite file; it is made when missing.
    vfs : name of the SQLite virtual file system, for tests.
    synchronous : "FULL". Tests show that "NORMAL" loses acknowledged events when the power fails.
    wait : seconds to wait for another process that has the log.
    """

    def __init__(
        self, path: str | Path, *, vfs: str | None = None, synchronous: str = "FULL", wait: float = 0.0
    ) -> None:
        self.path, self._is_plain_file = Path(path), vfs is None
        self._lock = _connect(self.path.with_name("lock"), None, wait)
        with explain_damage(self._lock, self.path):
            self._lock.execute("BEGIN EXCLUSIVE")
        try:
            self._open(vfs, synchronous, wait)
        except BaseException:
            self._lock.close()
            raise

    def _open(self, vfs: str | None, synchronous: str, wait: float) -> None:
        incident = _set_aside_foreign_wal(self.path)
        wal = self.path.with_name(f"{self.path.name}-wal")
        found = wal.read_bytes() if wal.exists() else b""  # before SQLite writes over what it cannot use
        self._base, self._pages = vfs or "", 0
        self._connect(wait)
        with explain_damage(self.database, self.path):
            self._prepare(synchronous)
            if (rebuilt := self._check_pages()) is not None:
                self._connect(wait)
                self._prepare(synchronous)
            self._read_tables()
        self.commits = 0
        self._mark = Mark(self.path.with_name("acknowledged"))
        self._own = self._seen()
        for message in filter(None, (incident, rebuilt)):
            self.note_incident(message)
        self._compare_with_mark(found)

    def _connect(self, wait: float) -> None:
        self._vfs = CheckedVFS(self._base)
        self.database = _connect(self.path, self._vfs, wait)
        self.database.set_wal_hook(self._note_pages)

    def _check_pages(self) -> str | None:
        """Read all pages; if some are damaged, make the file again from its tables, and return what happened."""
        wal = self.path.with_name(f"{self.path.name}-wal")
        if wal.exists() and shutil.disk_usage(wal.parent).free < wal.stat().st_size:
            return None  # there is no room to empty the WAL: pages are checked when they are read
        try:
            self.database.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except (apsw.BusyError, apsw.FullError):  # a backup reads
            return None
        pages = list(map(str, self._vfs.damaged()))
        if not pages:
            return None
        named = f"{len(pages)} damaged pages ({', '.join(pages[:PAGES_SHOWN])})"
        logger.error("%s has %s; what it holds is copied", self.path, named)
        try:
            aside = self._copy_tables()
        except apsw.Error as error:
            raise DamagedPage(f"{named}, with rows on them: {error}") from None
        return (
            f"the log had {named}, of indexes or unused; its rows were whole, and it was made again from them; {aside}"
        )

    def _copy_tables(self) -> str:
        """Write the rows of all tables into a new file, which takes the place of this one; indexes follow from rows."""
        fresh = self.path.with_name("copied.sqlite")
        for left in (fresh, fresh.with_name(f"{fresh.name}-journal")):
            left.unlink(missing_ok=True)
        vfs = CheckedVFS(self._base)
        with contextlib.closing(_connect(fresh, vfs, 0.0)) as copy:
            copy.execute(f"PRAGMA auto_vacuum = INCREMENTAL; PRAGMA synchronous = FULL; BEGIN; {TABLES}")
            for table in re.findall(r"CREATE TABLE (\w+)", TABLES):
                marks = ",".join("?" * len(self.database.execute(f"PRAGMA table_info({table})").fetchall()))
                rows = self.database.execute(f"SELECT * FROM {table} NOT INDEXED")
                copy.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
            copy.execute(f"{INDEXES} PRAGMA user_version = {VERSION}; COMMIT")
        self.database.close()
        aside = self.path.with_name("aside") / f"log-{time.time_ns()}"
        aside.parent.mkdir(mode=0o700, exist_ok=True)
        os.link(self.path, aside)
        fresh.replace(self.path)
        flush_folder(self.path.parent)
        return f"the damaged file is {aside.parent.name}/{aside.name}"

    def _prepare(self, synchronous: str) -> None:
        """Set the file up; make its tables if it is new."""
        execute = self.database.execute
        if execute("PRAGMA page_count").get == 0:  # a new file; in an old one this would write a page
            execute("PRAGMA auto_vacuum = INCREMENTAL")  # so that space can be given back
        execute("PRAGMA journal_mode = WAL")
        execute(f"PRAGMA synchronous = {synchronous}")
        execute("PRAGMA cache_size = -65536")
        execute("BEGIN IMMEDIATE; COMMIT")
        version = execute("PRAGMA user_version").get
        if version == 0:
            execute(f"BEGIN IMMEDIATE; {TABLES} {INDEXES} INSERT INTO info VALUES ('seq', 0)")
            execute("INSERT INTO info VALUES ('identity', ?)", (secrets.token_hex(16),))
            execute(f"PRAGMA user_version = {VERSION}; COMMIT")
        elif version != VERSION:
            self.database.close()
            raise ValueError(
                f"{self.path} has version {version}, this linmax reads {VERSION}; install the linmax that wrote it"
            )

    def _read_tables(self) -> None:
        execute = self.database.execute
        info = dict(execute("SELECT name, value FROM info"))
        self.identity: str = info["identity"]
        self.environments: list[dict[str, str]] = json.loads(info.get("environments", "[]"))
        self.models: dict[int, ModelRow] = {}
        columns = "model, name, description, created, limits, kept, kept_crc"
        rows: list[Any] = execute(f"SELECT {columns} FROM models WHERE deleted IS NULL ORDER BY model").fetchall()
        for number, name, description, created, limits, kept, kept_crc in rows:
            row = ModelRow(number, name, json.loads(description), created, json.loads(limits), kept, kept_crc)
            newest = execute("SELECT seq, crc FROM events WHERE model = ? ORDER BY seq DESC LIMIT 1", (number,)).get
            row.last, row.crc = max((kept, kept_crc), newest or (0, 0))
            row.pending = execute("SELECT count(*) FROM pending WHERE model = ?", (number,)).get
            self.models[number] = row
        self.seq = self._stored_seq = last_seq(self.database)
        self.at = execute("SELECT max(coalesce((SELECT at FROM events ORDER BY seq DESC LIMIT 1), 0), "
                          "coalesce((SELECT max(created) FROM models), 0))").get  # fmt: skip
        self.answered = execute("SELECT max(seq) FROM answers").get or 0  # answers are written in order

    def close(self) -> None:
        """Move everything from the WAL to the file, and close it."""
        try:
            self.checkpoint(truncate=True)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the files as they are."""
        self.database.close()
        self._lock.close()
        with contextlib.suppress(OSError):
            self._mark.close()

    def _compare_with_mark(self, wal: bytes) -> None:
        """Report what is missing at the end of the log, and use none of its numbers again."""
        try:
            identity, seq = self._mark.read() or (self.identity, 0)
        except ValueError as error:
            identity, seq = self.identity, 0
            self.note_incident(f"{error}; if the log has lost its end, it cannot be known")
        if identity == self.identity and seq <= self.seq:
            self._mark.write(self.identity, self.seq)
            return
        message = (
            f"the log ends at event {self.seq}, but events up to {seq} were acknowledged: {seq - self.seq} are lost; "
        )
        if identity != self.identity:
            message = f"this is not the log whose events up to {seq} were acknowledged in this folder: they are lost; "
        message += "either media are damaged, or a backup was restored over another folder"
        if wal:
            kept = self.path.with_name("aside") / f"wal-{time.time_ns()}"
            kept.parent.mkdir(mode=0o700, exist_ok=True)
            kept.write_bytes(wal)
            message += f"; the WAL as it was found is {kept.parent.name}/{kept.name}"
        self.seq = max(seq, self.seq)
        self.note_incident(message)

    def _seen(self) -> tuple[int, ...]:
        """Return what identifies the file, and changes when another program writes to it."""
        if not self._is_plain_file:
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
        self.run("COMMIT")
        self._check_own()
        if self.seq != self._stored_seq:
            self._mark.write(self.identity, self.seq)
        self._stored_seq = self.seq
        self.commits += 1

    def rollback(self) -> None:
        """Undo the transaction, in the file (SQLite may have done so) and here."""
        if self.database.in_transaction:
            self.run("ROLLBACK")
        self._read_tables()

    def checkpoint(self, *, truncate: bool = False) -> None:
        """Move the WAL into the file if it is long enough, or if `truncate` is set; a backup that reads goes first."""
        if self._pages < CHECKPOINT_PAGES and not truncate:
            return
        self._check_own()
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
        try:
            self.database.wal_checkpoint(mode=mode)
        except apsw.BusyError:
            logger.info("the log is being read; its WAL stays until later")
        except apsw.Error as error:
            raise _translated(error) from error
        self._pages, self._own = 0, self._seen()

    def _note_pages(self, _database: apsw.Connection, _name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    def run(self, sql: str, values: tuple[apsw.SQLiteValue, ...] = ()) -> apsw.Cursor:
        """Execute one statement."""
        try:
            return self.database.execute(sql, values)
        except apsw.Error as error:
            raise _translated(error) from error

    def many(self, sql: str, rows: Sequence[tuple[apsw.SQLiteValue, ...]]) -> None:
        """Execute one statement for many rows."""
        try:
            self.database.executemany(sql, rows)
        except apsw.Error as error:
            raise _translated(error) from error

    # -- events ---------------------------------------------------------------------------------------

    def append(
        self, number: int, kind: int, id: str | None = None, refers: int | None = None, body: Body | None = None
    ) -> Event:
        """Store an event, unless its id or the event that it refers to has one: then return that one, a `repeat`."""
        row = self.model(number)
        body = body or Body()
        seq, content = self.seq + 1, _encode(body)
        crc = _next_crc(row.crc, seq, kind, self.at, id, refers, content)
        try:
            self.database.execute(
                "INSERT INTO events VALUES (?,?,?,?,?,?,?,?)", (seq, number, kind, self.at, id, refers, content, crc)
            )
        except apsw.ConstraintError:
            first = self.find(number, id) if id is not None else self.closing(cast(int, refers))
            assert first is not None
            return first
        except apsw.Error as error:
            raise _translated(error) from error
        self.seq = row.last = seq
        row.crc = crc
        if kind == PREDICT:
            row.pending += 1
            self.run("INSERT INTO pending VALUES (?,?)", (number, seq))
        elif refers is not None:
            row.pending -= 1
            self.run("DELETE FROM pending WHERE model = ? AND seq = ?", (number, refers))
        event = Event(seq, kind, body.instance, body.served, body.label, body.wrong, body.likely, body.weight, crc=crc)
        event.answered = kind not in (LEARN, WANTS)
        return event

    def find(self, number: int, id: str) -> Event | None:
        """Return the event that brought an id, if there is one."""
        self.model(number)
        found = self.run(f"{EVENT} WHERE e.model = ? AND e.id = ?", (number, id)).get
        return None if found is None else _event(found)

    def closing(self, seq: int) -> Event | None:
        """Return the event that brought the label of a prediction, or gave it up."""
        found = self.run(f"{EVENT} WHERE e.refers = ?", (seq,)).get
        return None if found is None else _event(found)

    def write_answers(self, answers: Iterable[tuple[int, Label | bool | None, str | None]]) -> None:
        """Store what was predicted or drawn in these events, or why an event could not be learned."""
        rows = [(seq, int(guess) if isinstance(guess, bool) else guess, fault) for seq, guess, fault in answers]
        self.many("INSERT OR IGNORE INTO answers VALUES (?,?,?)", rows)

    # -- models ---------------------------------------------------------------------------------------

    def create(self, name: str, description: dict[str, object], *, begun: bool = False) -> ModelRow:
        """Store a new model, which is `begun` if it begins with a state; 409 when the name is taken."""
        if any(row.name == name for row in self.models.values()):
            raise Refusal(409, f"a model called {name!r} exists; delete it or choose another name", field="name")
        self.seq += 1
        self.note_seq()
        number = self.run("SELECT coalesce(max(model), 0) + 1 FROM models").get
        text = json.dumps(description, allow_nan=False)
        crc = zlib.crc32(json.dumps([self.identity, number, name, text, self.at]).encode())
        kept = self.seq if begun else 0
        sql = "INSERT INTO models (model, name, description, created, kept, kept_crc) VALUES (?,?,?,?,?,?)"
        self.run(sql, (number, name, text, self.at, kept, crc))
        row = ModelRow(number, name, description, self.at, kept=kept, kept_crc=crc, last=kept, crc=crc)
        self.models[number] = row
        return row

    def delete(self, number: int) -> None:
        """Delete a model: its name is free at once; `purge` removes its events bit by bit."""
        self.model(number)
        self.seq += 1
        self.note_seq()
        self.run("UPDATE models SET deleted = ? WHERE model = ?", (self.seq, number))
        del self.models[number]

    def change(self, number: int, name: str, limits: dict[str, object]) -> None:
        """Change a model's name and limits; 409 when the name is taken."""
        row = self.model(number)
        if any(other.name == name for other in self.models.values() if other is not row):
            raise Refusal(409, f"a model called {name!r} exists; choose another name", field="name")
        row.name, row.limits = name, row.limits | limits
        self.seq += 1
        self.note_seq()
        sql = "UPDATE models SET name = ?, limits = ? WHERE model = ?"
        self.run(sql, (name, json.dumps(row.limits), number))

    def model(self, number: int) -> ModelRow:
        """Return the model of a number; 404 when it was deleted."""
        row = self.models.get(number)
        if row is None:
            raise Refusal(404, "the model was deleted")
        return row

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

    def note_incident(self, message: str) -> None:
        """Remember something that an operator must know, until it is settled; once, however often it comes."""
        if self.run("SELECT 1 FROM incidents WHERE message = ? AND settled IS NULL", (message,)).get is None:
            logger.critical(message)
            self.begin()
            self.note_seq()
            self.run("INSERT INTO incidents (at, message) VALUES (?,?)", (self.at, message))
            self.commit()

    # -- reading --------------------------------------------------------------------------------------

    def replay(self, number: int, after: int, until: int, crc: int, skipped: Collection[int] = ()) -> Generator[Event]:
        """Yield the events of a model in order; each is compared with the running checksum.

        Parameters
        ----------
        number : the model.
        after, until : the first event is later than `after`, the last one not later than `until`.
        crc : the checksum at `after`.
        skipped : events that an operator has given up, and whose damage is known.
        """
        sql = (
            "SELECT e.seq, e.kind, e.at, e.id, e.refers, e.body, e.crc, p.body FROM events e "
            "LEFT JOIN events p ON p.seq = e.refers WHERE e.model = ? AND e.seq > ? AND e.seq <= ? ORDER BY e.seq"
        )
        with contextlib.closing(self.run(sql, (number, after, until))) as cursor:  # an open one would lock the log
            for seq, kind, at, id, refers, content, stored, first in cursor:
                if seq in skipped:
                    crc = stored
                    yield Event(seq, kind, {}, crc=crc)
                    continue
                crc = _next_crc(crc, seq, kind, at, id, refers, content)
                if crc != stored:
                    raise Damaged(seq, f"event {seq} is damaged: it does not fit the running checksum of the log")
                if refers is not None and first is None:
                    raise Damaged(seq, f"event {seq} is about event {refers}, which is missing")
                yield _joined(seq, kind, content, first, crc)

    def faults(self, number: int, after: int) -> dict[int, str]:
        """Return why events of a model could not be learned, as far as that is written down."""
        sql = (
            "SELECT a.seq, a.fault FROM answers a JOIN events e ON e.seq = a.seq "
            "WHERE a.fault IS NOT NULL AND a.seq > ? AND e.model = ?"
        )
        return dict(self.run(sql, (after, number)))

    def crc_at(self, number: int, seq: int) -> int | None:
        """Return the running checksum of a model after one of its events; None when there is no such event."""
        row = self.models[number]
        if seq == row.kept:
            return row.kept_crc
        return cast("int | None", self.run("SELECT crc FROM events WHERE model = ? AND seq = ?", (number, seq)).get)

    def waiting(self, number: int, after: int, most: int) -> list[WaitingPrediction]:
        """Return predictions of a model that wait for their label, oldest first."""
        self.model(number)
        sql = (
            "SELECT e.id, e.seq, e.at, e.body FROM pending p JOIN events e ON e.seq = p.seq "
            "WHERE p.model = ? AND p.seq > ? ORDER BY p.seq LIMIT ?"
        )
        rows = self.run(sql, (number, after, most))
        return [WaitingPrediction(id=id, seq=seq, at=at, label=_decode(body).served) for id, seq, at, body in rows]

    def trial(self, number: int, id: str) -> TrialView:
        """Return everything that the log knows of one trial; 404 when there is none."""
        first, asked = self.find(number, id), self.find(number, f"?{id}")
        if first is None and asked is None:
            raise Refusal(404, f"no trial of this model has the id {id!r}", field="id")
        closing = None if first is None else self.closing(first.seq)
        found = sorted((event for event in (first, asked, closing) if event is not None), key=lambda event: event.seq)
        name = self.models[number].name
        events = [_shown(event, name) for event in found]
        states = {LEARN: "learned", LABEL: "learned", PREDICT: "pending", FORGET: "forgotten"}
        last = next((event for event in reversed(found) if event.kind in states), None)
        state = "asked" if last is None else "refused" if last.fault is not None else states[last.kind]
        return TrialView(id=id, state=state, events=events)

    def export(self, after: int, number: int | None, most: int) -> list[dict[str, Any]]:
        """Return up to `most` events after a sequence number, of one model or of all, as plain data."""
        names = {row.number: row.name for row in self.models.values() if number in (None, row.number)}
        sql = EVENT.replace("SELECT", "SELECT e.model,", 1)
        chosen = ",".join(map(str, names)) or "0"
        rows = self.run(f"{sql} WHERE e.seq > ? AND e.model IN ({chosen}) ORDER BY e.seq LIMIT ?", (after, most))
        return [_shown(_event(row), names[model]) for model, *row in rows]

    # -- upkeep, in slices that are short enough to let requests through ------------------------------

    def purge(self, most: int = SLICE_EVENTS) -> int:
        """Remove up to `most` events of deleted models; the number removed."""
        for (number,) in self.run("SELECT model FROM models WHERE deleted IS NOT NULL AND NOT purged").fetchall():
            chosen = "SELECT seq FROM events WHERE model = ? LIMIT ?"
            self.run(f"DELETE FROM pending WHERE model = ? AND seq IN ({chosen})", (number, number, most))
            for table in ("answers", "events"):
                self.run(f"DELETE FROM {table} WHERE seq IN ({chosen})", (number, most))
            if gone := self.database.changes():
                return gone
            self.run("UPDATE models SET purged = 1 WHERE model = ?", (number,))
        return 0

    def cut_point(self, number: int, most: int, keep: int | None, since: int | None) -> int:
        """Return the last event of a model that need not be kept.

        Parameters
        ----------
        number : the model.
        most : no event after this one is given up: a snapshot has all up to it.
        keep : how many events to keep; None for all.
        since : the time, in milliseconds, from which on events are kept; None for all.
        """
        point = most
        if keep is not None:
            count = f"SELECT seq FROM events WHERE model = ? ORDER BY seq DESC LIMIT 1 OFFSET {keep}"
            point = min(point, self.run(count, (number,)).get or 0)
        if since is not None:
            low, high = self.model(number).kept, point  # times go up with the numbers: look for the place by halves
            while low < high:
                middle = (low + high + 1) // 2
                at = self.run("SELECT at FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT 1", (middle,)).get
                low, high = (middle, high) if at is None or at < since else (low, middle - 1)
            point = min(point, low)
        newest = "SELECT seq FROM events WHERE model = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
        return int(self.run(newest, (number, point)).get or 0)

    def cut(self, number: int, seq: int) -> None:
        """Let the log of a model begin after an event that its snapshots have; `drop` removes what is before."""
        row, crc = self.model(number), self.crc_at(number, seq)
        if crc is None or seq <= row.kept:
            return
        self.note_seq()
        self.run("UPDATE models SET kept = ?, kept_crc = ? WHERE model = ?", (seq, crc, number))
        row.kept, row.kept_crc = seq, crc

    def drop(self, number: int, after: int, most: int = SLICE_EVENTS) -> int | None:
        """Remove events before the cut, a slice of them after a number; where to continue, None at the end.

        A prediction stays as long as it waits for its label, or as the event of its label stays.
        """
        kept = self.model(number).kept
        looked = "SELECT seq FROM events WHERE model = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        seqs = [seq for (seq,) in self.run(looked, (number, after, kept, most))]
        if not seqs:
            return None
        between = (seqs[0], seqs[-1])
        waiting = self.run("SELECT seq FROM pending WHERE model = ? AND seq BETWEEN ? AND ?", (number, *between))
        later = self.run("SELECT refers FROM events WHERE refers BETWEEN ? AND ? AND seq > ?", (*between, kept))
        needed = {seq for (seq,) in (*waiting, *later)}
        gone = [(seq,) for seq in seqs if seq not in needed]
        self.many("DELETE FROM answers WHERE seq = ?", gone)
        self.many("DELETE FROM events WHERE seq = ?", gone)
        return seqs[-1]

    def give_back(self) -> bool:
        """Give some free pages back to the file system; whether there are more."""
        if self.run("PRAGMA freelist_count").get <= FREE_PAGES:
            return False
        self.run(f"PRAGMA incremental_vacuum({SLICE_PAGES})").fetchall()
        return bool(self.run("PRAGMA freelist_count").get > FREE_PAGES)


def _next_crc(crc: int, seq: int, kind: int, at: int, id: str | None, refers: int | None, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(f"{seq} {kind} {at} {id} {refers}".encode(), crc))


def _shown(event: Event, model: str) -> dict[str, Any]:
    """Return an event as plain data, for people."""
    id = event.id.removeprefix("?") if event.kind == WANTS and event.id else event.id
    shown = {"seq": event.seq, "model": model, "kind": KIND_NAMES[event.kind], "at": event.at, "id": id}
    if event.kind == ASKS:
        shown |= event.instance or {}
    elif event.kind not in (LABEL, FORGET):
        shown["instance"] = event.instance
    if event.kind == PREDICT:
        shown["served"] = event.served
    if event.kind in (LEARN, LABEL):
        shown["wrong" if event.wrong else "label"] = event.label
        if event.weight != 1.0:
            shown["weight"] = event.weight
    if event.kind == LEARN and event.answered:
        shown["predicted"] = event.served
    if event.kind == WANTS and event.answered:
        shown["wanted"] = event.wanted
    if event.fault is not None:
        shown["fault"] = event.fault
    return shown | {"crc": event.crc}


def _set_aside_foreign_wal(path: Path) -> str | None:
    """Keep SQLite from a WAL that is not of this log: where a backup was put back, it is of the log before."""
    wal = path.with_name(f"{path.name}-wal")
    if not (path.with_name(BACKUP_NOTE).exists() and wal.exists() and wal.stat().st_size):
        return None
    target = path.with_name("aside") / f"wal-{time.time_ns()}"
    target.parent.mkdir(mode=0o700, exist_ok=True)
    wal.replace(target)
    return f"a backup was put back here; the WAL of the log before is set aside as aside/{target.name}"
