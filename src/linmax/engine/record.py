"""Record of a model: its trials and mistakes, their curve, and its recent scores before each label came.

The curve thins itself: its points are at multiples of a stride, which doubles when there are too many. The scores are
a ring of the last trials, by which they are turned into probabilities. Where all trials are scored, the levels of
prediction sets follow them (`linmax.engine.coverage`). All of it depends on the trials alone, not on how they were cut
into calls.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int64, types

from linmax.core.contract import NO_LABEL, Indices, Labels, Matrix, Vector
from linmax.engine.coverage import MISSES, follow
from linmax.jit.compiling import kernel

__all__ = ["Record", "RecordT", "begun", "keep_scores", "keep_table", "latest", "new_record", "note", "pass_over"]

TRIALS, MISTAKES, FILLED, STRIDE, JUDGED = range(5)  # of the counts
POINTS = 1024  # of the curve
RING = 1128  # trials whose scores are kept
LARGEST_RING = 2**20  # numbers that they may take


class Record(NamedTuple):
    """Counts, curve and recent scores."""

    counts: np.ndarray  # int64 (5,): trials, mistakes, points of the curve, trials from one to the next, trials judged
    curve: np.ndarray  # int64 (POINTS, 2): trials and mistakes
    scores: np.ndarray  # (RING or less, k) of the classes before the label was seen, -inf for those not yet known
    labels: np.ndarray  # int32: and the labels
    gaps: np.ndarray  # and how far each label's score was below the highest; empty unless levels are followed
    levels: np.ndarray  # of prediction sets; likewise


RecordT = types.NamedTuple([Indices, int64[:, ::1], Matrix, Labels, Vector, Vector], Record)


def new_record(k: int, followed: bool = False) -> Record:
    """Before the first trial; ``followed`` if the scores of every trial will be kept, for prediction sets."""
    room = max(1, min(RING, LARGEST_RING // max(k, 1)))
    counts, curve = np.array([0, 0, 0, 1, 0], np.int64), np.zeros((POINTS, 2), np.int64)
    gaps, levels = np.zeros(room if followed else 0), MISSES.copy() if followed else np.zeros(0)
    return Record(counts, curve, np.full((room, k), -np.inf), np.zeros(room, np.int32), gaps, levels)


def begun(k: int, trials: int, mistakes: int, followed: bool = False) -> Record:
    """After trials of which no more is known than their number: the curve continues from here."""
    record = new_record(k, followed)
    stride = 1
    while stride * POINTS < trials:
        stride *= 2
    record.counts[[TRIALS, MISTAKES, STRIDE]] = trials, mistakes, stride
    return record


def latest(record: Record) -> tuple[np.ndarray, np.ndarray]:
    """The scores and labels that are kept, the oldest first."""
    room, judged = len(record.labels), int(record.counts[JUDGED])
    order = np.arange(max(0, judged - room), judged) % room
    return record.scores[order], record.labels[order]


def widened(record: Record, k: int) -> Record:
    """Return the record with room for k classes."""
    if k == record.scores.shape[1]:
        return record
    other, (scores, labels) = new_record(k, followed=record.levels.size > 0), latest(record)
    room, judged = len(other.labels), int(record.counts[JUDGED])
    scores, labels = scores[-room:], labels[-room:]
    trials = np.arange(judged - len(labels), judged)
    places = trials % room
    other.scores[places, : scores.shape[1]], other.labels[places] = scores, labels
    if record.gaps.size:
        other.gaps[places] = record.gaps[trials % len(record.labels)]
    return other._replace(counts=record.counts, curve=record.curve, levels=record.levels)


@kernel()
def mark(record: Record) -> None:
    """Make the present count a point of the curve, if it is at a multiple of the stride, which is a power of two."""
    counts, curve = record.counts, record.curve
    if counts[TRIALS] & (counts[STRIDE] - 1):
        return
    if counts[FILLED] == POINTS:  # drop every other point
        for point in range(POINTS // 2):
            curve[point, 0], curve[point, 1] = curve[2 * point + 1, 0], curve[2 * point + 1, 1]
        counts[FILLED] = POINTS // 2
        counts[STRIDE] *= 2
        if counts[TRIALS] & (counts[STRIDE] - 1):
            return
    curve[counts[FILLED], 0], curve[counts[FILLED], 1] = counts[TRIALS], counts[MISTAKES]
    counts[FILLED] += 1


@kernel()
def note(record: Record, mistake: int) -> None:
    """Count a trial."""
    record.counts[TRIALS] += 1
    record.counts[MISTAKES] += mistake
    mark(record)


@kernel(types.void(RecordT, Labels, Labels))
def note_all(record: Record, predicted: np.ndarray, labels: np.ndarray) -> None:
    """Count many trials, but for those without a label; of -2 - c it is a mistake that c was predicted."""
    counts, t = record.counts, 0
    while t < labels.size:
        # As many trials as may lie before the next point of the curve: a loop without branches.
        end = min(labels.size, t + counts[STRIDE] - (counts[TRIALS] & (counts[STRIDE] - 1)))
        right, guess = labels[t:end], predicted[t:end]
        told, mistakes = 0, 0
        for q in range(right.size):
            told += right[q] != NO_LABEL
            mistakes += (right[q] >= 0) & (guess[q] != right[q]) | (guess[q] >= 0) & (guess[q] == -2 - right[q])
        counts[TRIALS] += told
        counts[MISTAKES] += mistakes
        if told:
            mark(record)
        t = end


@kernel()
def keep_scores(record: Record, scores: np.ndarray, known: int, label: int) -> None:
    """Put the scores of a trial into the ring; a class met for the first time had none, and leaves it as it is.

    So does a trial without a label, below 0.
    """
    if label >= known or label < 0:
        return
    place = record.counts[JUDGED] % record.labels.size
    if record.levels.size:
        highest = scores[label]
        for c in range(known):
            highest = max(highest, scores[c])
        gap = highest - scores[label]
        follow(record.levels, record.gaps, record.counts[JUDGED], gap)
        record.gaps[place] = gap
    for c in range(record.scores.shape[1]):
        record.scores[place, c] = scores[c] if c < known else -np.inf
    record.labels[place] = label
    record.counts[JUDGED] += 1


def pass_over(record: Record, labels: np.ndarray, known: np.ndarray) -> None:
    """Count trials whose scores would be overwritten anyway."""
    record.counts[JUDGED] += np.count_nonzero((labels >= 0) & (labels < known))


@kernel(types.void(RecordT, Matrix, Labels, Indices))
def keep_table(record: Record, table: np.ndarray, labels: np.ndarray, known: np.ndarray) -> None:
    """Put the scores of many trials into the ring, each of which had this many known classes."""
    for t in range(labels.size):
        keep_scores(record, table[t], known[t], labels[t])
