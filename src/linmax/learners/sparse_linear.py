"""PA-I and AROW over sparse attributes, side by side.

Attributes are taken as x = log(1 + v), of length 1. PA-I (C = 1) has them weighted by inverse document frequency,
log((t + 2) / df), and learns against the best rival: it tracks. AROW (r = .1) learns one against all: second order.

References
----------
Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006), Online passive-aggressive algorithms: PA-I. Crammer, Kulesza
and Dredze (2009), Adaptive regularization of weight vectors: AROW. Sparck Jones (1972): idf.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import boolean, int64, types

from linmax.core.contract import Indices, Instances, InstancesT, Labels, Vector
from linmax.data.scaling import squash
from linmax.jit.compiling import kernel
from linmax.jit.float_rows import add_rows, log_row, shrink_row, squash_row
from linmax.jit.prefetch import fetch
from linmax.learners.members import DENIED, Single, SingleCube, SingleMatrix, best_rival

__all__ = ["LINEAR", "MEAN", "PA", "VARIANCE", "LinearRoom", "attributes_of", "fetch_row", "play_linear"]

AROW = 0.1  # its r
LINE = 16  # numbers in a cache line
GROUP = 8  # attributes whose cells are asked for at a time

# Rows of an attribute's cells, and how many there are; attribute 0 is the constant.
PA, MEAN, VARIANCE, LINEAR = range(4)
RARE, PLAIN, SQUARE = range(LINEAR)  # x as PA has it, weighted by idf; as AROW has it; and its squares, for variances


class LinearRoom(NamedTuple):
    """Where trials are worked out. There is a place for each attribute of a trial, and before them for the constant."""

    scaled: np.ndarray  # float32: x of all trials at hand
    factors: np.ndarray  # float32 (LINEAR, attributes)
    places: np.ndarray  # int64: where the attribute's cells begin
    scores: np.ndarray  # float32 (LINEAR, classes): PA, AROW and AROW's variances
    steps: np.ndarray  # float32 (2, classes)


RoomT = types.NamedTuple((Single, SingleMatrix, Indices, SingleMatrix, SingleMatrix), LinearRoom)


@kernel(reorders=True)
def scale_sparse(
    instances: Instances, t: int, at: int, trials: float, frequency: np.ndarray, learn: bool, room: LinearRoom
) -> int:
    """x and its idf form into ``room``, the former also into its ``scaled`` from ``at`` on; returns how many."""
    first, many = instances.indptr[t], instances.indptr[t + 1] - instances.indptr[t]
    rare, plain, square = room.factors[RARE], room.factors[PLAIN], room.factors[SQUARE]
    cells = LINEAR * room.scores.shape[1]
    squash_row(room.factors, PLAIN * room.factors.shape[1] + 1, instances.values, first, many)
    for j in range(many):
        column = instances.indices[first + j]
        count = frequency[column] + 1.0
        if learn:
            frequency[column] = count
        rare[j + 1] = count
        room.places[j + 1] = (column + 1) * cells
    log_row(room.factors, 1, many)
    plain[0] = rare[0] = squash(instances.constant)
    rarity = np.float32(math.log(trials + 2.0))
    for j in range(1, many + 1):
        rare[j] = plain[j] * (rarity - rare[j])
    length, rare_length = np.float32(0.0), np.float32(0.0)
    for j in range(many + 1):
        length += plain[j] * plain[j]
        rare_length += rare[j] * rare[j]
    shrink = np.float32(1.0 / math.sqrt(length)) if length > 0.0 else np.float32(0.0)
    rare_shrink = np.float32(1.0 / math.sqrt(rare_length)) if rare_length > 0.0 else np.float32(0.0)
    for j in range(many + 1):
        rare[j] *= rare_shrink
        plain[j] *= shrink
        square[j] = plain[j] * plain[j]
        room.scaled[at + j] = plain[j]
    return many + 1


@kernel(hot=True)
def fetch_row(table: np.ndarray, place: int, long: int) -> None:
    """Have ``long`` numbers ready soon."""
    for part in range(0, long, LINE):
        fetch(table, place + part)


@kernel(hot=True)
def attributes_of(indptr: np.ndarray, t: int) -> tuple[int, int]:
    """Where the attributes of a trial begin and end; nothing if there is no such trial."""
    return (indptr[t], indptr[t + 1]) if t + 1 < indptr.size else (0, 0)


@kernel()
def score_linear(
    instances: Instances, t: int, size: int, cells: np.ndarray, frequency: np.ndarray, room: LinearRoom
) -> None:
    """Scores of PA and AROW, and AROW's variances; the next trial's cells are asked for meanwhile."""
    scores = room.scores
    width = scores.shape[1]
    for q in range(LINEAR):
        for c in range(width):
            scores[q, c] = 0.0
    coming, end = attributes_of(instances.indptr, t + 1)
    for lo in range(0, size, GROUP):
        hi = min(lo + GROUP, size)
        for j in range(coming + lo, min(coming + hi, end)):
            fetch(frequency, instances.indices[j])
            fetch_row(cells, LINEAR * width * (instances.indices[j] + 1), LINEAR * width)
        add_rows(scores, cells, room.places, lo, hi, width, room.factors)


@kernel()
def learn_linear(
    indices: np.ndarray,
    first: int,
    size: int,
    label: int,
    known: int,
    weight: float,
    cells: np.ndarray,
    room: LinearRoom,
) -> None:
    """One step of PA and of AROW; a weight is PA's C, and what AROW's r is divided by."""
    scores, factor, shrink = room.scores, room.steps[0], room.steps[1]
    most, noise = np.float32(weight), np.float32(AROW / weight)
    width, rare, plain = scores.shape[1], room.factors[RARE], room.factors[PLAIN]
    step, rival = np.float32(0.0), best_rival(scores[0], label, known)
    if rival >= 0:
        square = np.float32(0.0)
        for j in range(size):
            square += rare[j] * rare[j]
        loss = np.float32(1.0) - (scores[0, label] - scores[0, rival])
        if loss > 0.0 and square > 0.0:
            step = min(most, loss / (np.float32(2.0) * square))
    active = False
    for c in range(width):
        factor[c] = shrink[c] = 0.0
    for c in range(known):
        sign = np.float32(1.0 if c == label else -1.0)
        loss = np.float32(1.0) - sign * scores[1, c]
        if loss > 0.0:
            shrink[c] = np.float32(1.0) / (scores[2, c] + noise)
            factor[c] = sign * loss * shrink[c]
            active = True
    for j in range(size):
        place = room.places[j]
        if step > 0.0:
            column = indices[first + j - 1] + 1 if j else 0
            cells[column, PA, label] += step * rare[j]
            cells[column, PA, rival] -= step * rare[j]
        if active:
            shrink_row(cells, place + MEAN * width, place + VARIANCE * width, width, plain[j], room.steps)


@kernel()
def deny_linear(
    indices: np.ndarray,
    first: int,
    size: int,
    wrong: int,
    known: int,
    weight: float,
    cells: np.ndarray,
    room: LinearRoom,
) -> None:
    """One step of PA and of AROW that lets this class fall behind the best other one, which itself stays as it is."""
    scores, rare, plain = room.scores, room.factors[RARE], room.factors[PLAIN]
    other = best_rival(scores[0], wrong, known)
    if other < 0:
        return
    square = np.float32(0.0)
    for j in range(size):
        square += rare[j] * rare[j]
    loss = np.float32(1.0) - (scores[0, other] - scores[0, wrong])
    step = np.float32(0.0)
    if loss > 0.0 and square > 0.0:
        step = min(np.float32(weight), loss / (np.float32(2.0) * square))
    loss = np.float32(1.0) - (scores[1, best_rival(scores[1], wrong, known)] - scores[1, wrong])
    shrink = np.float32(1.0) / (scores[2, wrong] + np.float32(AROW / weight)) if loss > 0.0 else np.float32(0.0)
    for j in range(size):
        column = indices[first + j - 1] + 1 if j else 0
        cells[column, PA, wrong] -= step * rare[j]
        along = cells[column, VARIANCE, wrong] * plain[j]
        cells[column, MEAN, wrong] -= loss * shrink * along
        cells[column, VARIANCE, wrong] -= shrink * along * along


@kernel(
    types.void(
        InstancesT, Labels, Vector, int64, int64, int64, SingleCube, Vector, Vector, RoomT, boolean, SingleCube, int64
    )
)  # fmt: skip
def play_linear(
    instances: Instances,
    labels: np.ndarray,
    weights: np.ndarray,
    begin: int,
    end: int,
    known: int,
    cells: np.ndarray,
    frequency: np.ndarray,
    trials: np.ndarray,
    room: LinearRoom,
    learn: bool,
    votes: np.ndarray,
    member: int,
) -> None:
    """Scores of PA and AROW at trials begin..end, and their learning; x of all of them is left in ``scaled``."""
    at = 0
    for t in range(begin, end):
        size = scale_sparse(instances, t, at, trials[0], frequency, learn, room)
        score_linear(instances, t, size, cells, frequency, room)
        for c in range(known):
            votes[t - begin, member, c] = room.scores[0, c]
            votes[t - begin, member + 1, c] = room.scores[1, c]
        if learn:
            known = max(known, labels[t] + 1)
            first, weight = instances.indptr[t], weights[t - begin]
            if labels[t] < 0:
                deny_linear(instances.indices, first, size, DENIED - labels[t], known, weight, cells, room)
            else:
                learn_linear(instances.indices, first, size, labels[t], known, weight, cells, room)
            trials[0] += 1.0
        at += size
