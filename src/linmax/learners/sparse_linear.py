"""PA-I and AROW over sparse attributes, side by side, as `sparse_bayes` scales and weights them.

PA-I (C = 1) has attributes weighted by how rare they are and by what they tell about the classes, and learns against
the best rival: it tracks. AROW (r = .1) has them as they are, and learns one against all: second order.

References
----------
Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006), Online passive-aggressive algorithms: PA-I. Crammer, Kulesza
and Dredze (2009), Adaptive regularization of weight vectors: AROW.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import boolean, int64, types

from linmax.core.contract import Indices, Instances, InstancesT, Labels, Vector
from linmax.jit.compiling import kernel
from linmax.jit.float_rows import add_rows, shrink_row
from linmax.learners.members import DENIED, SingleCube, SingleMatrix, best_rival
from linmax.learners.sparse_bayes import PLAIN, TELLING, attributes_of, fetch_row

__all__ = ["LINEAR", "MEAN", "PA", "VARIANCE", "LinearRoom", "play_linear"]

AROW = 0.1  # its r
GROUP = 8  # attributes whose cells are asked for at a time

# Rows of an attribute's cells, and how many there are; attribute 0 is the constant.
PA, MEAN, VARIANCE, LINEAR = range(4)
SQUARE = 2  # row of x, after `TELLING`, which PA has, and `PLAIN`, which AROW has: its squares, for variances


class LinearRoom(NamedTuple):
    """Where trials are worked out. There is a place for each attribute of a trial, and before them for the constant."""

    factors: np.ndarray  # float32 (LINEAR, attributes): x
    places: np.ndarray  # int64: where the attribute's cells begin
    scores: np.ndarray  # float32 (LINEAR, classes): PA, AROW and AROW's variances
    steps: np.ndarray  # float32 (2, classes)


RoomT = types.NamedTuple((SingleMatrix, Indices, SingleMatrix, SingleMatrix), LinearRoom)


@kernel()
def take_row(instances: Instances, t: int, at: int, scaled: np.ndarray, room: LinearRoom) -> int:
    """x of a trial, which begins at ``at``, and where its cells are into ``room``; returns how many."""
    first, size = instances.indptr[t], instances.indptr[t + 1] - instances.indptr[t] + 1
    told, plain, square = room.factors[TELLING], room.factors[PLAIN], room.factors[SQUARE]
    cells = LINEAR * room.scores.shape[1]
    room.places[0] = 0
    for j in range(1, size):
        room.places[j] = (instances.indices[first + j - 1] + 1) * cells
    for j in range(size):
        told[j], plain[j] = scaled[TELLING, at + j], scaled[PLAIN, at + j]
        square[j] = plain[j] * plain[j]
    return size


@kernel()
def score_linear(instances: Instances, t: int, size: int, cells: np.ndarray, room: LinearRoom) -> None:
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
    width, told, plain = scores.shape[1], room.factors[TELLING], room.factors[PLAIN]
    step, rival = np.float32(0.0), best_rival(scores[0], label, known)
    if rival >= 0:
        square = np.float32(0.0)
        for j in range(size):
            square += told[j] * told[j]
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
            cells[column, PA, label] += step * told[j]
            cells[column, PA, rival] -= step * told[j]
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
    scores, told, plain = room.scores, room.factors[TELLING], room.factors[PLAIN]
    other = best_rival(scores[0], wrong, known)
    if other < 0:
        return
    square = np.float32(0.0)
    for j in range(size):
        square += told[j] * told[j]
    loss = np.float32(1.0) - (scores[0, other] - scores[0, wrong])
    step = np.float32(0.0)
    if loss > 0.0 and square > 0.0:
        step = min(np.float32(weight), loss / (np.float32(2.0) * square))
    loss = np.float32(1.0) - (scores[1, best_rival(scores[1], wrong, known)] - scores[1, wrong])
    shrink = np.float32(1.0) / (scores[2, wrong] + np.float32(AROW / weight)) if loss > 0.0 else np.float32(0.0)
    for j in range(size):
        column = indices[first + j - 1] + 1 if j else 0
        cells[column, PA, wrong] -= step * told[j]
        along = cells[column, VARIANCE, wrong] * plain[j]
        cells[column, MEAN, wrong] -= loss * shrink * along
        cells[column, VARIANCE, wrong] -= shrink * along * along


@kernel(
    types.void(
        InstancesT, Labels, Vector, int64, int64, int64, SingleCube, SingleMatrix, RoomT, boolean, SingleCube, int64
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
    scaled: np.ndarray,
    room: LinearRoom,
    learn: bool,
    votes: np.ndarray,
    member: int,
) -> None:
    """Scores of PA and AROW at trials begin..end, whose x is in ``scaled``, and their learning."""
    at = 0
    for t in range(begin, end):
        size = take_row(instances, t, at, scaled, room)
        score_linear(instances, t, size, cells, room)
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
        at += size
