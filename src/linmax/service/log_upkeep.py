"""Upkeep of the log, in slices that are short enough to let requests through."""

from __future__ import annotations

from linmax.service.log import EventLog
from linmax.service.log_reading import hash_at

__all__ = ["SLICE_EVENTS", "cut", "cut_point", "drop", "give_back", "purge"]

SLICE_EVENTS = 500
SLICE_PAGES = 100
FREE_PAGES = 64  # that may stay in the file for what comes next


def purge(log: EventLog, most: int = SLICE_EVENTS) -> int:
    """Remove up to `most` events or names of deleted models; the number removed."""
    for (number,) in log.run("SELECT model FROM models WHERE deleted IS NOT NULL AND named IS NOT NULL").fetchall():
        chosen = "SELECT seq FROM events WHERE model = ? LIMIT ?"
        log.run(f"DELETE FROM answers WHERE seq IN ({chosen})", (number, most))
        log.run(f"DELETE FROM events WHERE seq IN ({chosen})", (number, most))
        gone = log.database.changes()
        for table, place in (("names", "kind, number"), ("pending", "seq")):
            if not gone:
                slice = f"SELECT model, {place} FROM {table} WHERE model = ? LIMIT ?"
                log.run(f"DELETE FROM {table} WHERE (model, {place}) IN ({slice})", (number, most))
                gone = log.database.changes()
        if gone:
            return gone
        log.run("UPDATE models SET named = NULL WHERE model = ?", (number,))  # nothing of it is left
    return 0


def cut_point(log: EventLog, number: int, most: int, keep: int | None, since: int | None) -> int:
    """The last event of a model that need not be kept.

    Parameters
    ----------
    log : the log.
    number : the model.
    most : no event after this one is given up: a snapshot has all up to it.
    keep : how many events to keep; None for all.
    since : the time, in milliseconds, from which on events are kept; None for all.
    """
    newest = "SELECT seq FROM events WHERE model = ? AND seq <= ? ORDER BY seq DESC LIMIT 1"
    point = most
    if keep is not None:
        count = f"SELECT seq FROM events WHERE model = ? ORDER BY seq DESC LIMIT 1 OFFSET {keep}"
        point = min(point, log.run(count, (number,)).get or 0)
    if since is not None:
        low, high = log.model(number).kept, point  # times go up with the numbers: look for the place by halves
        while low < high:
            middle = (low + high + 1) // 2
            at = log.run("SELECT at FROM events WHERE seq <= ? ORDER BY seq DESC LIMIT 1", (middle,)).get
            low, high = (middle, high) if at is None or at < since else (low, middle - 1)
        point = min(point, low)
    found = log.run(newest, (number, point)).get
    return 0 if found is None else int(found)


def cut(log: EventLog, number: int, seq: int) -> None:
    """Let the log of a model begin after an event that its snapshots have; `drop` removes what is before."""
    row, hash = log.model(number), hash_at(log, number, seq)
    if hash is None or seq <= row.kept:
        return
    log.note_seq()
    before = row.kept, row.base, row.base_hash
    log.run("UPDATE models SET kept = ?, base = ?, base_hash = ? WHERE model = ?", (seq, seq, hash, number))
    row.kept, row.base, row.base_hash = seq, seq, hash
    log.undo_with(lambda: row.begin_after(*before))


def drop(log: EventLog, number: int, after: int, most: int = SLICE_EVENTS) -> int | None:
    """Remove events before the cut, a slice of them after a number; returns where to go on, None at the end.

    A prediction stays as long as it waits for its label, or as the event of its label stays.
    """
    kept = log.model(number).kept
    looked = "SELECT seq FROM events WHERE model = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
    seqs = [seq for (seq,) in log.run(looked, (number, after, kept, most))]
    if not seqs:
        return None
    between = (seqs[0], seqs[-1])
    needed = {
        seq for (seq,) in log.run("SELECT seq FROM pending WHERE model = ? AND seq BETWEEN ? AND ?", (number, *between))
    }
    later = "SELECT refers FROM events WHERE refers BETWEEN ? AND ? AND seq > ?"
    needed |= {seq for (seq,) in log.run(later, (*between, kept))}
    gone = [(seq,) for seq in seqs if seq not in needed]
    log.many("DELETE FROM answers WHERE seq = ?", gone)
    log.many("DELETE FROM events WHERE seq = ?", gone)
    return seqs[-1]


def give_back(log: EventLog) -> bool:
    """Give some free pages back to the file system; whether there are more."""
    if log.run("PRAGMA freelist_count").get <= FREE_PAGES or log.run("PRAGMA auto_vacuum").get != 2:
        return False
    log.run(f"PRAGMA incremental_vacuum({SLICE_PAGES})").fetchall()
    return bool(log.run("PRAGMA freelist_count").get > FREE_PAGES)
