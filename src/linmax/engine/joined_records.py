"""Record of a model that was merged from several: counts of all, and the latest scores of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linmax.engine.record import JUDGED, Record, begun, keep_table

__all__ = ["joined_records"]


def joined_records(
    parts: Sequence[tuple[Record, np.ndarray | None]], k: int, trials: int, mistakes: int, followed: bool
) -> Record:
    """Return the record with all trials and mistakes, and the latest scores, equally many of each part.

    Each part comes with the places of its classes among the k, or None if they are the same.
    """
    joint = begun(k, trials, mistakes, followed)
    most = -(-len(joint.labels) // len(parts))
    for record, there in parts:
        room, judged = len(record.labels), int(record.counts[JUDGED])
        order = np.arange(max(0, judged - min(room, most)), judged) % room
        table, labels = record.scores[order], record.labels[order]
        if there is not None:
            scores, table = table, np.full((len(labels), k), -np.inf)
            table[:, there] = scores
            labels = there[labels]
        keep_table(joint, table, labels, np.full(len(labels), k))
    return joint
