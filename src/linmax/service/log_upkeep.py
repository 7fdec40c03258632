"""Upkeep of the log, in slices that are short enough to let requests through."""

from __future__ import annotations

from linmax.service.log import EventLog

__all__ = ["SLICE_EVENTS", "purge"]

SLICE_EVENTS = 500


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
