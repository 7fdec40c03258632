"""The event log: everything to be remembered, in order, on stable storage. It is the truth; all else is derived.

One SQLite file in WAL mode with ``synchronous=FULL``, so that a commit is on stable storage when it returns; one
connection that locks the file exclusively. Four kinds of event:

| kind | holds |
|---|---|
| predict | id, instance, the label that was served |
| learn | id, instance, label |
| label | the prediction that it belongs to, label |
| forget | the prediction whose label will never come |

An id names one trial of one model, and a trial has one label. A repeated request gets the first answer; a different one
with the same id is refused. What a model predicted just before a *learn* event follows from the log; the table
``answers`` keeps it only to repeat it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import msgspec

from linmax.service.log_file import open_file, prepare_file, translated
from linmax.service.packing import CLASS, Instance, Label, Packed, SentNames, pack, unpack
from linmax.service.refusals import Refusal

__all__ = ["FORGET", "LABEL", "LEARN", "PREDICT", "Event", "EventLog", "ModelRow"]


PREDICT, LEARN, LABEL, FORGET = 1, 2, 3, 4
CHECKPOINT_PAGES = 2_000  # 8 MB: a longer WAL makes recovery slower, a shorter one more syncs
NO_INSTANCE = (None,) * 4
INSERT = "INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"
FIND = (
    "SELECT e.seq, e.kind, e.votes, e.scores, e.places, e.numbers, e.served, e.label, a.predicted, a.seq "
    "FROM events e LEFT JOIN answers a ON a.seq = e.seq WHERE e.model = ? AND e.id = ?"
)
REPLAY = (
    "SELECT e.seq, e.kind, e.label, p.served, "
    "coalesce(e.votes, p.votes), coalesce(e.scores, p.scores), "
    "coalesce(e.places, p.places), coalesce(e.numbers, p.numbers) "
    "FROM events e LEFT JOIN events p ON p.seq = e.refers "
    "WHERE e.model = ? AND e.seq > ? AND e.kind IN (2, 3) ORDER BY e.seq"
)


@dataclass(slots=True)
class ModelRow:
    """A model as the log knows it."""

    number: int
    name: str
    description: dict[str, Any]
    created: int
    names: SentNames


class Event(msgspec.Struct):
    """What a request added to the log, or what was there already (`repeat`)."""

    seq: int
    kind: int
    instance: Instance | None = None
    served: Label | None = None
    label: Label | None = None
    repeat: bool = False
    answered: bool = True  # `served` is known (of a learn event: it has been applied and written down)


class EventLog:
    """The log in one file. Not for several threads at a time.

    Parameters
    ----------
    path : path of the SQLite file; it is made when missing.
    vfs : name of the SQLite virtual file system, for tests.
    synchronous : "FULL". Tests show that "NORMAL" loses acknowledged events when the power fails.
    """

    def __init__(self, path: str | Path, *, vfs: str | None = None, synchronous: str = "FULL") -> None:
        self.path = Path(path)
        self.database = open_file(self.path, vfs)
        prepare_file(self.database, self.path, synchronous)
        self._pages = 0
        self.database.set_wal_hook(self._note_pages)
        execute = self.database.execute
        self.models: dict[int, ModelRow] = {}
        for number, name, description, created in execute(
            "SELECT model, name, description, created FROM models WHERE deleted IS NULL ORDER BY model"
        ):
            known = execute("SELECT kind, name FROM names WHERE model = ? ORDER BY kind, number", (number,))
            self.models[number] = _row(number, name, json.loads(description), created, known)
        self.seq = execute("SELECT max(coalesce((SELECT max(seq) FROM events), 0), "
                           "coalesce((SELECT max(deleted) FROM models), 0))").get  # fmt: skip
        self.at = execute("SELECT max(coalesce((SELECT at FROM events ORDER BY seq DESC LIMIT 1), 0), "
                          "coalesce((SELECT max(created) FROM models), 0))").get  # fmt: skip
        self.answered = execute("SELECT coalesce(max(seq), 0) FROM answers").get
        self._stored_seq = self.seq
        self._touched: set[int] = set()
        self._undo: list[Callable[[], None]] = []
        self.commits = 0

    def close(self) -> None:
        """Move everything from the WAL to the file, and close it."""
        try:
            self.checkpoint(truncate=True)
        finally:
            self.database.close()

    # -- transactions ---------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start a transaction."""
        self.at = max(self.at, time.time_ns() // 1_000_000)  # ids stay in order even when the clock is set back
        self._run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Commit to stable storage; raises `DiskFull` if undone, `StorageFailed` if the outcome is unknown."""
        for number in self._touched:
            rows = self.models[number].names.fresh
            self._many("INSERT INTO names VALUES (?,?,?,?)", [(number, *row) for row in rows])
        self._run("COMMIT")
        for number in self._touched:
            if number in self.models:
                self.models[number].names.keep()
        self._settle()
        self._stored_seq = self.seq
        self.commits += 1

    def rollback(self) -> None:
        """Undo the transaction, in the file (SQLite may have done so) and here."""
        if self.database.in_transaction:
            self._run("ROLLBACK")
        for undo in reversed(self._undo):
            undo()
        for number in self._touched:
            if number in self.models:
                self.models[number].names.take_back()
        self._settle()
        self.seq = self._stored_seq

    def _settle(self) -> None:
        self._touched.clear()
        self._undo.clear()

    def checkpoint(self, *, truncate: bool = False) -> None:
        """Move the WAL into the file if it is long enough, or if `truncate` is set."""
        if self._pages < CHECKPOINT_PAGES and not truncate:
            return
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
        try:
            self.database.wal_checkpoint(mode=mode)
        except apsw.Error as error:
            raise translated(error) from error
        self._pages = 0

    def _note_pages(self, _database: apsw.Connection, _name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    # -- models ---------------------------------------------------------------------------------------

    def create(self, name: str, description: dict[str, Any]) -> ModelRow:
        """A new model; 409 when the name is taken."""
        if any(row.name == name for row in self.models.values()):
            raise Refusal(409, f"a model called {name!r} exists; delete it or choose another name", field="name")
        self.seq += 1
        last = self._run("SELECT coalesce(max(model), 0) FROM models").get
        row = _row(last + 1, name, description, self.at)
        text = json.dumps(description, allow_nan=False)
        self._run("INSERT INTO models VALUES (?,?,?,?,NULL)", (row.number, name, text, row.created))
        self.models[row.number] = row
        self._undo.append(lambda: self.models.__delitem__(row.number))
        return row

    def delete(self, number: int) -> None:
        """Delete a model: its name is free at once; `purge` removes its log bit by bit."""
        row = self._model(number)
        self._run("UPDATE models SET deleted = ? WHERE model = ?", (self.seq, number))
        del self.models[number]
        self._touched.discard(number)
        self._undo.append(lambda: self.models.__setitem__(number, row))

    def purge(self, most: int = 2_000) -> int:
        """Remove up to `most` events of deleted models; the number removed."""
        doomed = "SELECT model FROM models WHERE deleted IS NOT NULL"
        chosen = f"SELECT seq FROM events WHERE model IN ({doomed}) LIMIT {most}"
        self._run(f"DELETE FROM answers WHERE seq IN ({chosen})")
        self._run(f"DELETE FROM events WHERE seq IN ({chosen})")
        gone = self.database.changes()
        if gone == 0:
            self._run(f"DELETE FROM names WHERE model IN ({doomed})")
        return gone

    def _model(self, number: int) -> ModelRow:
        if number not in self.models:
            raise Refusal(404, "the model was deleted")
        return self.models[number]

    # -- events ---------------------------------------------------------------------------------------

    def predict(self, number: int, id: str, instance: Instance, served: Label | None) -> Event:
        """Store a prediction whose label will come later."""
        names = self._names(number)
        packed = pack(instance, names)
        code = None if served is None else names.number(CLASS, served)
        if self._insert(number, PREDICT, id, None, packed, code, None):
            return Event(self.seq, PREDICT, instance, served)
        first = self._find(number, id)
        if first.kind != PREDICT:
            raise Refusal(409, f"id {id!r} was used by a learn request; choose another", field="id")
        if first.instance != instance:  # whatever the order of its names
            raise Refusal(409, f"id {id!r} was used for another instance; choose another", field="id")
        return first

    def learn(self, number: int, id: str, instance: Instance, label: Label) -> Event:
        """Store an instance together with its label."""
        names = self._names(number)
        packed = pack(instance, names)
        if self._insert(number, LEARN, id, None, packed, None, names.number(CLASS, label)):
            return Event(self.seq, LEARN, instance, None, label, False, False)
        first = self._find(number, id)
        if first.kind != LEARN:
            raise Refusal(409, f"id {id!r} names a prediction; send its label without the instance", field="id")
        if first.instance != instance:  # whatever the order of its names
            raise Refusal(409, f"id {id!r} was used for another instance; choose another", field="id")
        if first.label != label:
            raise _conflict(id, first.label, label)
        return first

    def label(self, number: int, id: str, label: Label) -> Event:
        """Store the label of an earlier prediction."""
        names = self._names(number)
        first = self._find(number, id)
        if first.kind == LEARN:
            if first.label != label:
                raise _conflict(id, first.label, label)
            return first
        if self._insert(number, LABEL, None, first.seq, None, None, names.number(CLASS, label)):
            return Event(self.seq, LABEL, first.instance, first.served, label)
        seq, kind, code = self._run("SELECT seq, kind, label FROM events WHERE refers = ?", (first.seq,)).get
        if kind == FORGET:
            raise Refusal(404, f"the prediction {id!r} was forgotten", field="id")
        known = names.texts[CLASS][code]
        if known != label:
            raise _conflict(id, known, label)
        return Event(seq, LABEL, first.instance, first.served, label, repeat=True)

    def forget(self, number: int, id: str) -> Event:
        """Store that no label will come for this prediction."""
        first = self._find(number, id)
        if first.kind == LEARN:
            raise Refusal(409, f"id {id!r} has its label already", field="id")
        if self._insert(number, FORGET, None, first.seq, None, None, None):
            return Event(self.seq, FORGET)
        seq, kind = self._run("SELECT seq, kind FROM events WHERE refers = ?", (first.seq,)).get
        if kind == LABEL:
            raise Refusal(409, f"id {id!r} has its label already", field="id")
        return Event(seq, FORGET, repeat=True)

    def write_answers(self, number: int, answers: Iterable[tuple[int, Label | None]]) -> None:
        """Store what was predicted in these learn events."""
        if number not in self.models:
            return
        names = self._names(number)
        rows = [(seq, None if label is None else names.number(CLASS, label)) for seq, label in answers]
        self._many("INSERT OR IGNORE INTO answers VALUES (?,?)", rows)

    def _names(self, number: int) -> SentNames:
        row = self.models.get(number) or self._model(number)
        self._touched.add(number)
        return row.names

    def _insert(
        self,
        number: int,
        kind: int,
        id: str | None,
        refers: int | None,
        packed: Packed | None,
        served: int | None,
        label: int | None,
    ) -> bool:
        """Append an event; whether that was new."""
        row = (self.seq + 1, number, kind, self.at, id, refers, *(packed or NO_INSTANCE), served, label)
        try:
            self.database.execute(INSERT, row)
        except apsw.ConstraintError:
            return False
        except apsw.Error as error:
            raise translated(error) from error
        self.seq += 1
        return True

    def _find(self, number: int, id: str) -> Event:
        found = self._run(FIND, (number, id)).get
        if found is None:
            raise Refusal(404, f"no trial of this model has the id {id!r}", field="id")
        seq, kind, votes, scores, places, numbers, served, label, predicted, answered = found
        names = self._model(number).names
        classes = names.texts[CLASS]
        instance = unpack(Packed(votes, scores, places, numbers), names)
        told = predicted if kind == LEARN else served
        return Event(
            seq,
            kind,
            instance,
            None if told is None else classes[told],
            None if label is None else classes[label],
            repeat=True,
            answered=kind != LEARN or answered is not None,
        )

    # -- reading again --------------------------------------------------------------------------------

    def replay(self, number: int, after: int) -> Iterator[tuple[Any, ...]]:
        """All labelled trials of a model, in order: (seq, kind, label, served, votes, scores, places, numbers)."""
        return iter(self._run(REPLAY, (number, after)))

    def counts(self, number: int, after: int) -> dict[int, int]:
        """How many events of each kind a model has after a sequence number."""
        sql = "SELECT kind, count(*) FROM events WHERE model = ? AND seq > ? GROUP BY kind"
        return dict(self._run(sql, (number, after)))

    def last(self, number: int) -> int:
        """The last sequence number of a model, 0 when it has none."""
        return self._run("SELECT coalesce(max(seq), 0) FROM events WHERE model = ?", (number,)).get

    def _run(self, sql: str, values: tuple[Any, ...] = ()) -> apsw.Cursor:
        try:
            return self.database.execute(sql, values)
        except apsw.Error as error:
            raise translated(error) from error

    def _many(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            try:
                self.database.executemany(sql, rows)
            except apsw.Error as error:
                raise translated(error) from error


def _row(
    number: int, name: str, description: dict[str, Any], created: int, known: Iterable[tuple[int, Label]] = ()
) -> ModelRow:
    return ModelRow(number, name, description, created, SentNames(known, description.get("max_names", 2**31)))


def _conflict(id: str, known: Label | None, label: Label) -> Refusal:
    return Refusal(409, f"id {id!r} has the label {known!r} already, got {label!r}", field="label")
