"""The event log: everything to be remembered, in order, on stable storage. It is the truth; all else is derived.

One SQLite file in WAL mode with ``synchronous=FULL``, so that a commit is on stable storage when it returns; one
connection that locks the file exclusively (`linmax.service.log_store`). Six kinds of event:

| kind | holds |
|---|---|
| predict | id, instance, the label that was served |
| learn | id, instance, label |
| label | the prediction that it belongs to, label |
| forget | the prediction whose label will never come |
| asks | the tolerance, and the costs if any, by which voters are asked from now on |
| wants | "?" and the id, instance: whether its label is worth asking for, which a selective learner draws |

A label is the number of a class, or -1 less that number: then all that is known is that the label is not this one. An
id names one trial of one model, and a trial has one label. A repeated request gets the first answer; a different one
with the same id is refused. What a model predicted just before a *learn* event, or drew in a *wants* event, follows
from the log; the table ``answers`` keeps it only to repeat it. Every event carries the running hash of its model
(`linmax.service.chain`).
"""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from linmax.service.chain import next_hash
from linmax.service.log_file import translated
from linmax.service.log_rows import (
    ASKS,
    FORGET,
    LABEL,
    LEARN,
    PREDICT,
    WANTS,
    Event,
    Guess,
    ModelRow,
    Place,
    signed,
    unsigned,
)
from linmax.service.log_store import LogStore
from linmax.service.packing import (
    CLASS,
    Instance,
    Label,
    Packed,
    class_of,
    code_of,
    new_code_of,
    pack,
    pack_known,
    pack_loosely,
    unpack,
)
from linmax.service.refusals import Refusal

__all__ = ["EventLog"]

NO_INSTANCE = (None,) * 4
INSERT = "INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"
FIND = (
    "SELECT e.seq, e.kind, e.votes, e.scores, e.places, e.numbers, e.served, e.label, "
    "a.predicted, a.seq, a.fault, a.probabilities "
    "FROM events e LEFT JOIN answers a ON a.seq = e.seq WHERE e.model = ? AND e.id = ?"
)
CLOSING = "SELECT e.seq, e.kind, e.label, a.fault FROM events e LEFT JOIN answers a ON a.seq = e.seq WHERE e.refers = ?"


class EventLog(LogStore):
    """The events of the log. Not for several threads at a time; made as `LogStore` is."""

    def predict(
        self, number: int, id: str, instance: Instance, served: Label | None, probabilities: bytes | None = None
    ) -> Event:
        """Store a prediction whose label will come later."""
        row = self._touch(number)
        code = None if served is None else new_code_of(served, instance, row.names)
        if row.pending >= row.max_pending and not self._is_known(number, id):
            message = f"{row.pending} predictions wait for labels, the most this model keeps; label or forget some"
            raise Refusal(429, message, retry_after=60)
        packed = pack_known(instance, row.names) or pack_loosely(instance)
        if self._insert(row, PREDICT, id, None, packed, code, None):
            row.pending += 1
            self.run("INSERT INTO pending VALUES (?,?)", (number, self.seq))
            if probabilities is not None:
                self.run("INSERT INTO answers VALUES (?,NULL,NULL,?)", (self.seq, probabilities))
            return Event(self.seq, PREDICT, instance, served, hash=row.hash, probabilities=probabilities)
        first = self.find(number, id)
        if first.kind != PREDICT:
            raise Refusal(409, f"id {id!r} was used by a learn request; choose another", field="id")
        if first.instance != instance:  # whatever the order of its names
            raise Refusal(409, f"id {id!r} was used for another instance; choose another", field="id")
        return first

    def learn(self, number: int, id: str, instance: Instance, label: Label | None, wrong: bool = False) -> Event:
        """Store an instance together with its label, if it has one, or with a class that is not its label."""
        row = self._touch(number)
        names, packed, code = row.names, pack_known(instance, row.names), None
        if label is not None:
            code = code_of(label, instance, names)
        ready = packed is not None and (code is not None or label is None)
        if not ready and not self._is_known(number, id):
            row.admit(instance, label, self.budget)
            packed, ready = pack(instance, names), True
            code = None if label is None else new_code_of(label, instance, names)
        coded = None if code is None else signed(code, wrong)
        if ready and self._insert(row, LEARN, id, None, packed, None, coded):
            return Event(self.seq, LEARN, instance, None, label, False, False, hash=row.hash, wrong=wrong)
        first = self.find(number, id)
        if first.kind != LEARN:
            raise Refusal(409, f"id {id!r} names a prediction; send its label without the instance", field="id")
        if first.instance != instance:  # whatever the order of its names
            raise Refusal(409, f"id {id!r} was used for another instance; choose another", field="id")
        if (first.label, first.wrong) != (label, wrong):
            raise _conflict(id, first.label, first.wrong, label, wrong)
        return first

    def label(self, number: int, id: str, label: Label, wrong: bool = False) -> Event:
        """Store the label of an earlier prediction, or a class that is not its label."""
        row = self._touch(number)
        first = self.find(number, id)
        if first.kind == LEARN:
            if (first.label, first.wrong) != (label, wrong):
                raise _conflict(id, first.label, first.wrong, label, wrong)
            return first
        known = self.run(CLOSING, (first.seq,)).get
        assert first.instance is not None
        if known is None:
            code = self._code(row, first.instance, label, wrong)
            self._insert(row, LABEL, None, first.seq, None, None, signed(code, wrong))
            self._no_longer_pending(row, first.seq)
            return Event(self.seq, LABEL, first.instance, first.served, label, hash=row.hash, wrong=wrong)
        seq, kind, code, fault = known
        if kind == FORGET:
            raise Refusal(404, f"the prediction {id!r} was forgotten", field="id")
        place, was_wrong = unsigned(code)
        told = class_of(place, first.instance, row.names)
        if (told, was_wrong) != (label, wrong):
            raise _conflict(id, told, was_wrong, label, wrong)
        return Event(seq, LABEL, first.instance, first.served, label, repeat=True, fault=fault, wrong=wrong)

    def _code(self, row: ModelRow, instance: Instance, label: Label, wrong: bool) -> int:
        """The number of a class that came for an instance that was kept; from now on its names have numbers."""
        candidates = instance.get("candidates")
        if candidates is not None and label not in candidates:
            field = "wrong" if wrong else "label"
            raise Refusal(422, f"{field}: {label!r} is not among the candidates {candidates!r}", field=field)
        if code_of(label, instance, row.names) is None or pack_known(instance, row.names) is None:
            row.admit(instance, label, self.budget)
            pack(instance, row.names)
        return new_code_of(label, instance, row.names)

    def wants(self, number: int, id: str, instance: Instance | None) -> Event:
        """Store that a label may be asked for: of an instance, or of the prediction that was kept under this id."""
        row = self._touch(number)
        asked = f"?{id}"  # which is nobody's id
        if self._is_known(number, asked):
            first = self.find(number, asked)
            if instance is not None and first.instance != instance:
                raise Refusal(409, f"id {id!r} was asked about with another instance; choose another", field="id")
            return first
        given = self.kept(number, id).instance if instance is None else instance
        assert given is not None
        self._insert(row, WANTS, asked, None, pack_known(given, row.names) or pack_loosely(given), None, None)
        return Event(self.seq, WANTS, given, answered=False, hash=row.hash)

    def asks(self, number: int, asking: Instance) -> Event:
        """Store by what voters are asked from now on."""
        row = self._touch(number)
        self._insert(row, ASKS, None, None, pack_loosely(asking), None, None)
        return Event(self.seq, ASKS, asking, hash=row.hash)

    def kept(self, number: int, id: str) -> Event:
        """The prediction that waits for its label under this id, as a question that any learner says yes to."""
        first = self.find(number, id)
        if first.kind != PREDICT or self.run(CLOSING, (first.seq,)).get is not None:
            raise Refusal(409, f"id {id!r} does not wait for a label any more", field="id")
        return Event(first.seq, WANTS, first.instance, repeat=True)

    def forget(self, number: int, id: str) -> Event:
        """Store that no label will come for this prediction."""
        first = self.find(number, id)
        if first.kind == LEARN:
            raise Refusal(409, f"id {id!r} has its label already", field="id")
        known = self.run(CLOSING, (first.seq,)).get
        if known is None:
            row = self._touch(number)
            self._insert(row, FORGET, None, first.seq, None, None, None)
            self._no_longer_pending(row, first.seq)
            return Event(self.seq, FORGET, hash=row.hash)
        if known[1] == LABEL:
            raise Refusal(409, f"id {id!r} has its label already", field="id")
        return Event(known[0], FORGET, repeat=True)

    def write_answers(self, number: int, answers: Iterable[tuple[int, Guess, str | None]]) -> None:
        """Store what was predicted or drawn in these events, or why an event could not be learned."""
        if number not in self.models:
            return
        names = self._touch(number).names
        rows: list[tuple[int, int | None, str | None]] = []
        for seq, guess, fault in answers:
            if isinstance(guess, Place):
                rows.append((seq, guess.number, fault))
            else:
                rows.append((seq, None if guess is None else names.number(CLASS, guess), fault))
        self.many("INSERT OR IGNORE INTO answers VALUES (?,?,?,NULL)", rows)

    def find(self, number: int, id: str) -> Event:
        """The event that brought this id; 404 when there is none."""
        found = self.run(FIND, (number, id)).get
        if found is None:
            raise Refusal(404, f"no trial of this model has the id {id!r}", field="id")
        seq, kind, votes, scores, places, numbers, served, label, predicted, answered, fault, probabilities = found
        names = self.model(number).names
        instance = unpack(Packed(votes, scores, places, numbers), names)
        place, wrong = (None, False) if label is None else unsigned(label)
        return Event(
            seq,
            kind,
            instance,
            class_of(predicted if kind == LEARN else served, instance, names) if kind != WANTS else None,
            class_of(place, instance, names),
            repeat=True,
            answered=kind not in (LEARN, WANTS) or answered is not None,
            fault=fault,
            probabilities=probabilities,
            wrong=wrong,
            wanted=kind != WANTS or predicted == 1,
        )

    def _is_known(self, number: int, id: str) -> bool:
        return self.run("SELECT 1 FROM events WHERE model = ? AND id = ?", (number, id)).get is not None

    def _no_longer_pending(self, row: ModelRow, seq: int) -> None:
        self.run("DELETE FROM pending WHERE model = ? AND seq = ?", (row.number, seq))
        row.pending -= 1

    def _insert(
        self,
        row: ModelRow,
        kind: int,
        id: str | None,
        refers: int | None,
        packed: Packed | None,
        served: int | None,
        label: int | None,
    ) -> bool:
        """Append an event; whether that was new."""
        votes, scores, places, numbers = packed or NO_INSTANCE
        seq, at = self.seq + 1, self.at
        hash = next_hash(row.hash, (seq, kind, at, id, refers, votes, scores, served, label), places, numbers)
        stored = (seq, row.number, kind, at, id, refers, votes, scores, places, numbers, served, label, hash)
        try:
            self.database.execute(INSERT, stored)
        except apsw.ConstraintError:
            return False
        except apsw.Error as error:
            raise translated(error) from error
        self.seq = row.last = seq
        row.hash = hash
        return True


def _conflict(id: str, known: Label | None, was_wrong: bool, label: Label | None, wrong: bool) -> Refusal:
    told = f"is known not to be {known!r}" if was_wrong else f"has the label {known!r} already"
    if known is None:
        told = "was learned without a label"
    got = f"got wrong={label!r}" if wrong else f"got {label!r}"
    return Refusal(409, f"id {id!r} {told}, {got}", field="wrong" if wrong else "label")
