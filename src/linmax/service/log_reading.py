"""The log read again: to replay it, to list what waits for a label, to show a trial, and to export everything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from linmax.service.chain import next_hash
from linmax.service.log import EventLog

__all__ = ["Damaged", "Row", "faults", "hash_at", "replay"]

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


class Row(NamedTuple):
    """One event: its numbers, and the instance that it is about, packed."""

    seq: int
    kind: int
    label: int | None
    served: int | None
    votes: int
    scores: int
    places: bytes
    numbers: bytes


def replay(log: EventLog, number: int, after: int, until: int, hash: bytes | None) -> Iterator[tuple[Row, bytes]]:
    """All events of a model in order, each with the running hash after it, which is compared with the stored one.

    Parameters
    ----------
    log : the log.
    number : the model.
    after, until : the first event is later than `after`, the last one not later than `until`.
    hash : the running hash at `after`; None before hashes were kept.
    """
    base, base_hash = log.models[number].base, log.models[number].base_hash
    running = hash if hash is not None else base_hash
    for seq, kind, at, id, refers, votes, scores, served, label, places, numbers, stored, *first in log.run(
        REPLAY, (number, after, until)
    ):
        if seq > base:
            fields = (seq, kind, at, id, refers, votes, scores, served, label)
            running = next_hash(running, fields, places, numbers)
            if running != stored:
                raise Damaged(seq, f"event {seq} is damaged: it does not fit the running hash of the log")
        if refers is None:
            yield Row(seq, kind, label, served, votes, scores, places, numbers), running
        else:
            if first[3] is None:
                raise Damaged(seq, f"event {seq} is about event {refers}, which is missing")
            yield Row(seq, kind, label, *first), running


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
