"""The log read again: to replay it, to list what waits for a label, to show a trial, and to export everything."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable
from typing import Any, NamedTuple

from linmax.service.chain import next_hash
from linmax.service.log import EventLog
from linmax.service.log_rows import ASKS, FORGET, LABEL, LEARN, PREDICT, WANTS, unsigned
from linmax.service.packing import LOOSE, Instance, Packed, class_of, unpack
from linmax.service.refusals import Refusal

__all__ = ["SKIPPED", "Damaged", "StoredEvent", "export", "faults", "hash_at", "replay", "trial", "waiting"]

SKIPPED = "skipped by the operator"
KIND_NAMES = {
    PREDICT: "predict",
    LEARN: "learn",
    LABEL: "label",
    FORGET: "forget",
    WANTS: "wants_label",
    ASKS: "ask",
}

REPLAY = (
    "SELECT e.seq, e.kind, e.at, e.id, e.refers, e.votes, e.scores, e.served, e.label, e.places, e.numbers, e.hash, "
    "p.served, p.votes, p.scores, p.places, p.numbers "
    "FROM events e LEFT JOIN events p ON p.seq = e.refers "
    "WHERE e.model = ? AND e.seq > ? AND e.seq <= ? ORDER BY e.seq"
)


class Damaged(Exception):
    """An event does not fit the running hash."""

    def __init__(self, seq: int, message: str) -> None:
        super().__init__(message)
        self.seq = seq


class StoredEvent(NamedTuple):
    """One event: its numbers, and the instance that it is about, packed."""

    seq: int
    kind: int
    label: int | None
    served: int | None
    votes: int
    scores: int
    places: bytes
    numbers: bytes


def replay(
    log: EventLog, number: int, after: int, until: int, hash: bytes, skipped: Collection[int] = ()
) -> Generator[tuple[StoredEvent, bytes]]:
    """All events of a model in order, each with the running hash after it, which is compared with the stored one.

    Parameters
    ----------
    log : the log.
    number : the model.
    after, until : the first event is later than `after`, the last one not later than `until`.
    hash : the running hash at `after`; before hashes were kept, the first one.
    skipped : events that an operator has given up, and whose damage is known.
    """
    cursor = log.run(REPLAY, (number, after, until))
    try:
        yield from _checked(cursor, log.models[number].base, hash, skipped)
    finally:
        cursor.close()  # one that is left open would lock the log


def _checked(
    cursor: Iterable[Any], base: int, running: bytes, skipped: Collection[int]
) -> Generator[tuple[StoredEvent, bytes]]:
    for seq, kind, at, id, refers, votes, scores, served, label, places, numbers, stored, *first in cursor:
        if seq > base:
            fields = (seq, kind, at, id, refers, votes, scores, served, label)
            running = stored if seq in skipped else next_hash(running, fields, places, numbers)
            if running != stored:
                raise Damaged(seq, f"event {seq} is damaged: it does not fit the running hash of the log")
        if seq in skipped:
            yield StoredEvent(seq, kind, label, None, 0, 0, b"", b""), running
        elif refers is None:
            yield StoredEvent(seq, kind, label, served, votes, scores, places, numbers), running
        else:
            if first[3] is None:
                raise Damaged(seq, f"event {seq} is about event {refers}, which is missing")
            yield StoredEvent(seq, kind, label, *first), running


def faults(log: EventLog, number: int, after: int) -> dict[int, str]:
    """Why events of a model could not be learned, as far as that is written down."""
    sql = (
        "SELECT a.seq, a.fault FROM answers a JOIN events e ON e.seq = a.seq "
        "WHERE a.fault IS NOT NULL AND a.seq > ? AND e.model = ?"
    )
    return dict(log.run(sql, (after, number)))


def hash_at(log: EventLog, number: int, seq: int) -> bytes | None:
    """The running hash of a model after one of its events; None when there is no such event, or it has no hash."""
    row = log.models[number]
    if seq == row.base:
        return row.base_hash
    found = log.run("SELECT hash FROM events WHERE model = ? AND seq = ?", (number, seq)).get
    return None if found is None else bytes(found)


def asking_of(stored: Instance) -> dict[str, Any]:
    """The tolerance, and the costs if any, that an event holds."""
    return stored["asking"] | {name: stored[name] for name in ("costs",) if name in stored}


def waiting(log: EventLog, number: int, after: int, most: int) -> list[dict[str, Any]]:
    """Predictions of a model that wait for their label, oldest first: id, seq, at, and the label that was served."""
    names = log.model(number).names
    sql = (
        "SELECT e.id, e.seq, e.at, e.served, e.votes, e.scores, e.places, e.numbers "
        "FROM pending p JOIN events e ON e.seq = p.seq WHERE p.model = ? AND p.seq > ? ORDER BY p.seq LIMIT ?"
    )
    found = []
    for id, seq, at, served, *packed in log.run(sql, (number, after, most)):
        instance = unpack(Packed(*packed), names) if packed[0] == LOOSE else {}  # which may have candidates
        found.append({"id": id, "seq": seq, "at": at, "label": class_of(served, instance, names)})
    return found


def trial(log: EventLog, number: int, id: str) -> dict[str, Any]:
    """Everything that the log knows of one trial; 404 when there is none."""
    own = "SELECT seq FROM events WHERE model = ? AND id = ?"
    first, asked = (log.run(own, (number, name)).get for name in (id, f"?{id}"))
    if first is None and asked is None:
        raise Refusal(404, f"no trial of this model has the id {id!r}", field="id")
    closing = None if first is None else log.run("SELECT seq FROM events WHERE refers = ?", (first,)).get
    seqs = sorted(seq for seq in (first, asked, closing) if seq is not None)
    events = [event for seq in seqs for event in export(log, seq - 1, number, 1)]
    states = {"learn": "learned", "label": "learned", "predict": "pending", "forget": "forgotten"}
    last = next((event for event in reversed(events) if event["kind"] in states), None)
    state = "asked" if last is None else "refused" if "fault" in last else states[last["kind"]]
    return {"id": id, "state": state, "events": events}


def export(log: EventLog, after: int, number: int | None, most: int) -> list[dict[str, Any]]:
    """Up to `most` events after a sequence number, of one model or of all, as plain data."""
    chosen = "e.model = ?" if number is not None else "m.deleted IS NULL"
    sql = (
        "SELECT e.seq, m.model, e.kind, e.at, coalesce(e.id, p.id), e.refers, coalesce(e.votes, p.votes), "
        "coalesce(e.scores, p.scores), coalesce(e.places, p.places), coalesce(e.numbers, p.numbers), "
        "e.served, e.label, e.hash, a.seq, a.predicted, a.fault "
        "FROM events e JOIN models m ON m.model = e.model LEFT JOIN events p ON p.seq = e.refers "
        f"LEFT JOIN answers a ON a.seq = e.seq WHERE e.seq > ? AND {chosen} ORDER BY e.seq LIMIT ?"
    )
    values = (after, most) if number is None else (after, number, most)
    found = []
    for seq, model, kind, at, id, refers, *packed, served, label, hash, told, predicted, fault in log.run(sql, values):
        names = log.models[model].names
        event: dict[str, Any] = {
            "seq": seq,
            "model": log.models[model].name,
            "kind": KIND_NAMES[kind],
            "at": at,
            "id": id if kind != WANTS else id.removeprefix("?"),
        }
        instance = {} if packed[2] is None else unpack(Packed(*packed), names)
        if kind == ASKS:
            event |= asking_of(instance)
        elif refers is None:
            event["instance"] = instance
        if kind == PREDICT:
            event["served"] = class_of(served, instance, names)
        if label is not None:
            code, wrong = unsigned(label)
            event["wrong" if wrong else "label"] = class_of(code, instance, names)
        elif kind == LEARN:
            event["label"] = None
        if kind == LEARN and told is not None:
            event["predicted"] = class_of(predicted, instance, names)
        if kind == WANTS and told is not None:
            event["wanted"] = predicted == 1
        if fault is not None:
            event["fault"] = fault
        found.append(event | {"hash": None if hash is None else hash.hex()})
    return found
