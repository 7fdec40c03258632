"""Bins of attributes and pairs of bins as features, hashed, and one AROW against all classes over them.

Attribute f is in bin b when edge b - 1 <= v < edge b; a literal is (f, b), a feature a literal or two of them together
(Littlestone's conjunctions). The commonest bin of an attribute, if more than half of the values are in it, is silent:
what it would say is said by the constant and the others. Pairs are made of the first `ACTIVE` literals of a row that
speak, in the order of how much their attributes told about the label. The expansion is never stored: a row is a list of
places in a hashed table.

Edges follow slow change: at each trial one edge e of an attribute moves by RATE (q - [v < e]) times the distance of its
neighbours, q the share of values below it when it was set.
"""

from __future__ import annotations

import math

import numpy as np
from numba import boolean, int64, types

from linmax.core.contract import Indices, Labels, Matrix, Vector
from linmax.jit.compiling import kernel
from linmax.learners.members import SingleCube, SingleMatrix

__all__ = ["ACTIVE", "BINS", "MEAN", "VARIANCE", "play_pairs", "rows_of_keys"]

ACTIVE = 20  # literals of a row that are paired
BINS = 64  # more bins than an attribute can have
AROW = 0.1  # its r
RATE = 0.004
MEAN, VARIANCE, CELLS = range(3)
LOW = (1 << 31) - 1  # numbers stay below 2^63 whatever they are multiplied with


@kernel()
def row_of(low: int, high: int, mask: int) -> int:
    """The place of a feature, two literals or 0 and one, in a table."""
    mixed = (low * 0x2C1B3C6D + high * 0x297A2D39) & ((1 << 62) - 1)
    mixed = (mixed ^ (mixed >> 15) ^ (mixed >> 33)) & LOW
    mixed = mixed * 0x1B873593
    return (mixed ^ (mixed >> 13) ^ (mixed >> 31)) & mask


@kernel(types.void(Indices, int64, Indices))
def rows_of_keys(keys: np.ndarray, mask: int, rows: np.ndarray) -> None:
    """Places of features by their keys, low 2^31 + high."""
    for i in range(keys.size):
        rows[i] = row_of(keys[i] >> 31, keys[i] & LOW, mask)


@kernel()
def bin_of(value: float, edges: np.ndarray) -> int:
    """The bin of a value; edges that are not there are infinite."""
    lo, hi = 0, edges.size
    while lo < hi:
        middle = (lo + hi) >> 1
        if value >= edges[middle]:
            lo = middle + 1
        else:
            hi = middle
    return lo


@kernel()
def features_of(
    row: np.ndarray, edges: np.ndarray, silent: np.ndarray, rank: np.ndarray, mask: int, keys: np.ndarray,
    places: np.ndarray,
) -> int:  # fmt: skip
    """Keys of a row's features and their places in the table; returns how many. The first is the constant."""
    keys[0] = places[0] = 0
    many = 1
    for f in rank:
        place = bin_of(row[f], edges[f])
        if place != silent[f]:
            keys[many] = f * BINS + place + 1
            places[many] = row_of(0, keys[many], mask)
            many += 1
    active = min(many, ACTIVE + 1)
    for i in range(2, active):
        for j in range(1, i):
            low, high = min(keys[i], keys[j]), max(keys[i], keys[j])
            keys[many] = (low << 31) + high
            places[many] = row_of(low, high, mask)
            many += 1
    return many


@kernel()
def follow_values(row: np.ndarray, edges: np.ndarray, levels: np.ndarray, trial: int) -> None:
    """Move one edge of each attribute whose edges are quantiles."""
    for f in range(edges.shape[0]):
        many = int(levels[f, 0])
        if many < 2 or f >= row.size:
            continue
        i = trial % many
        own = edges[f]
        below = own[i - 1] if i > 0 else own[0] - (own[1] - own[0])
        above = own[i + 1] if i + 1 < many else own[many - 1] + (own[many - 1] - own[many - 2])
        share = levels[f, i + 1] - (1.0 if row[f] < own[i] else 0.0)
        moved = own[i] - RATE * share * (below - above)
        if below < moved < above:
            own[i] = moved


@kernel(reorders=True)
def score_pairs(cells: np.ndarray, places: np.ndarray, many: int, scores: np.ndarray) -> None:
    """Means and variances of AROW, each feature 1 / sqrt(how many there are)."""
    width = scores.shape[1]
    mean, variance = scores[MEAN], scores[VARIANCE]
    for c in range(width):
        mean[c] = variance[c] = 0.0
    for j in range(many):
        row = cells[places[j]]
        for c in range(width):
            mean[c] += row[MEAN, c]
        for c in range(width):
            variance[c] += row[VARIANCE, c]
    x = np.float32(1.0 / math.sqrt(many))
    for c in range(width):
        mean[c] *= x
        variance[c] *= x * x


@kernel()
def learn_pairs(
    cells: np.ndarray, owners: np.ndarray, keys: np.ndarray, places: np.ndarray, many: int, label: int, known: int,
    scores: np.ndarray, steps: np.ndarray,
) -> None:  # fmt: skip
    """One step of AROW for each class."""
    active, width = False, scores.shape[1]
    x = np.float32(1.0 / math.sqrt(many))
    for c in range(width):
        steps[0, c] = steps[1, c] = 0.0
    for c in range(known):
        sign = np.float32(1.0 if c == label else -1.0)
        loss = np.float32(1.0) - sign * scores[MEAN, c]
        if loss > 0.0:
            steps[1, c] = x * x / (scores[VARIANCE, c] + np.float32(AROW))
            steps[0, c] = sign * loss * steps[1, c] / x
            active = True
    if not active:
        return
    move, shrink = steps[0], steps[1]
    for j in range(many):
        row = cells[places[j]]
        mean, variance = row[MEAN], row[VARIANCE]
        if owners[places[j]] < 0:
            owners[places[j]] = keys[j]
        for c in range(width):
            mean[c] += move[c] * variance[c]
            variance[c] -= shrink[c] * variance[c] * variance[c]


@kernel(
    types.void(
        Matrix, Labels, int64, int64, SingleCube, Indices, Matrix, Matrix, Indices, Indices, Vector, Indices, Indices,
        SingleMatrix, SingleMatrix, boolean, SingleCube, int64,
    )
)  # fmt: skip
def play_pairs(
    rows: np.ndarray,
    labels: np.ndarray,
    begin: int,
    known: int,
    cells: np.ndarray,
    owners: np.ndarray,
    edges: np.ndarray,
    levels: np.ndarray,
    silent: np.ndarray,
    rank: np.ndarray,
    trials: np.ndarray,
    keys: np.ndarray,
    places: np.ndarray,
    scores: np.ndarray,
    steps: np.ndarray,
    learn: bool,
    votes: np.ndarray,
    member: int,
) -> None:
    """Scores at all rows, and learning; their labels begin at ``begin``."""
    for t in range(rows.shape[0]):
        many = features_of(rows[t], edges, silent, rank, cells.shape[0] - 1, keys, places)
        score_pairs(cells, places, many, scores)
        for c in range(known):
            votes[t, member, c] = scores[MEAN, c]
        if learn:
            label = labels[begin + t]
            known = max(known, label + 1)
            learn_pairs(cells, owners, keys, places, many, label, known, scores, steps)
            follow_values(rows[t], edges, levels, int(trials[0]))
            trials[0] += 1.0
