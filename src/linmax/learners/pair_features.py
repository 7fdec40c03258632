"""Bins of attributes and pairs of bins as features, hashed, and one AROW against all classes over them.

Attribute f is in bin b when edge b - 1 <= v < edge b; a literal is (f, b), a feature a literal or two of them together
(Littlestone's conjunctions). The commonest bin of an attribute, if more than half of the values are in it, is silent:
what it would say is said by the constant and the others. Pairs are made of the first `ACTIVE` literals of a row that
speak, in the order of how much their attributes told about the label. The expansion is never stored: a row is a list of
places in a hashed table, each of which belongs to the feature that came first.

Edges follow slow change: at each trial one edge e of an attribute moves by STEP_RATE (q - [v < e]) times the distance
of its neighbours, q the share of values below it when it was set.
"""

from __future__ import annotations

import math

import numpy as np
from numba import boolean, int64, types

from linmax.core.contract import Indices, Labels, Matrix, Vector
from linmax.jit.compiling import kernel
from linmax.learners.members import SingleCube, SingleMatrix

__all__ = ["ACTIVE", "MEAN", "MOST_BINS", "VARIANCE", "place_keys", "play_pairs"]

ACTIVE = 20  # literals of a row that are paired
MOST_BINS = 64  # more bins than an attribute can have
AROW = 0.1  # its r
STEP_RATE = 0.004
MEAN, VARIANCE, CELLS = range(3)
PROBES = 8  # places that are tried
LOW = (1 << 31) - 1  # numbers stay below 2^63 whatever they are multiplied with


@kernel()
def place_of(low: int, high: int, owners: np.ndarray) -> int:
    """The place of a feature, two literals or 0 and one, in a table: its own, or the first free one from there on.

    Where there is none nearby, it shares one.
    """
    mask, key = owners.size - 1, (low << 31) + high
    mixed = low * 0x2C1B3C6D + high * 0x297A2D39
    mixed = (mixed ^ (mixed >> 15) ^ (mixed >> 33)) & LOW
    mixed = mixed * 0x1B873593
    first = (mixed ^ (mixed >> 13) ^ (mixed >> 31)) & mask
    place = first
    for _ in range(PROBES):
        if owners[place] == 0 or owners[place] == key + 1:
            return place
        place = (place + 1) & mask
    return first


@kernel(types.void(Indices, Indices, Indices))
def place_keys(keys: np.ndarray, owners: np.ndarray, places: np.ndarray) -> None:
    """Places of features by their keys, low 2^31 + high, which then own them."""
    for i in range(keys.size):
        place = place_of(keys[i] >> 31, keys[i] & LOW, owners)
        places[i] = place
        if owners[place] == 0:
            owners[place] = keys[i] + 1


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
def own(key: int, place: int, cells: np.ndarray, owners: np.ndarray) -> None:
    """Give a free place to a feature."""
    if owners[place] == 0:
        owners[place] = key + 1
        variance = cells[place, VARIANCE]
        for c in range(variance.size):
            variance[c] = 1.0


@kernel()
def features_of(
    row: np.ndarray, edges: np.ndarray, silent: np.ndarray, rank: np.ndarray, cells: np.ndarray, owners: np.ndarray,
    literals: np.ndarray, places: np.ndarray, learn: bool,
) -> int:  # fmt: skip
    """Places of a row's features in the table; returns how many. The first is the constant."""
    places[0] = place_of(0, 0, owners)
    if learn:
        own(0, places[0], cells, owners)
    many = 1
    for f in rank:
        place = bin_of(row[f], edges[f])
        if place != silent[f]:
            literals[many] = f * MOST_BINS + place + 1
            places[many] = place_of(0, literals[many], owners)
            if learn:
                own(literals[many], places[many], cells, owners)
            many += 1
    active = min(many, ACTIVE + 1)
    for i in range(2, active):
        for j in range(1, i):
            low, high = min(literals[i], literals[j]), max(literals[i], literals[j])
            places[many] = place_of(low, high, owners)
            if learn:
                own((low << 31) + high, places[many], cells, owners)
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
        moved = own[i] - STEP_RATE * share * (below - above)
        if below < moved < above:
            own[i] = moved


@kernel(reorders=True)
def score_pairs(cells: np.ndarray, owners: np.ndarray, places: np.ndarray, many: int, scores: np.ndarray) -> None:
    """Means and variances of AROW, each feature 1 / sqrt(how many there are); a cell without owner is 0 and 1."""
    width = scores.shape[1]
    mean, variance, empty = scores[MEAN], scores[VARIANCE], np.float32(0.0)
    for c in range(width):
        mean[c] = variance[c] = 0.0
    for j in range(many):
        if owners[places[j]] == 0:
            empty += np.float32(1.0)
            continue
        row = cells[places[j]]
        for c in range(width):
            mean[c] += row[MEAN, c]
        for c in range(width):
            variance[c] += row[VARIANCE, c]
    x = np.float32(1.0 / math.sqrt(many))
    for c in range(width):
        mean[c] *= x
        variance[c] = (variance[c] + empty) * x * x


@kernel()
def learn_pairs(
    cells: np.ndarray, places: np.ndarray, many: int, label: int, known: int, weight: float, scores: np.ndarray,
    steps: np.ndarray,
) -> None:  # fmt: skip
    """One step of AROW for each class, r over the weight."""
    active, width = False, scores.shape[1]
    x, noise = np.float32(1.0 / math.sqrt(many)), np.float32(AROW / weight)
    for c in range(width):
        steps[0, c] = steps[1, c] = 0.0
    for c in range(known):
        sign = np.float32(1.0 if c == label else -1.0)
        loss = np.float32(1.0) - sign * scores[MEAN, c]
        if loss > 0.0:
            steps[1, c] = x * x / (scores[VARIANCE, c] + noise)
            steps[0, c] = sign * loss * steps[1, c] / x
            active = True
    if not active:
        return
    move, shrink = steps[0], steps[1]
    for j in range(many):
        row = cells[places[j]]
        mean, variance = row[MEAN], row[VARIANCE]
        for c in range(width):
            mean[c] += move[c] * variance[c]
            variance[c] -= shrink[c] * variance[c] * variance[c]


@kernel(
    types.void(
        Matrix, Labels, Vector, int64, int64, SingleCube, Indices, Matrix, Matrix, Indices, Indices, Vector, Indices,
        Indices, SingleMatrix, SingleMatrix, boolean, SingleCube, int64,
    )
)  # fmt: skip
def play_pairs(
    rows: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    begin: int,
    known: int,
    cells: np.ndarray,
    owners: np.ndarray,
    edges: np.ndarray,
    levels: np.ndarray,
    silent: np.ndarray,
    rank: np.ndarray,
    trials: np.ndarray,
    literals: np.ndarray,
    places: np.ndarray,
    scores: np.ndarray,
    steps: np.ndarray,
    learn: bool,
    votes: np.ndarray,
    member: int,
) -> None:
    """Scores at all rows, and learning; their labels begin at ``begin``."""
    for t in range(rows.shape[0]):
        many = features_of(rows[t], edges, silent, rank, cells, owners, literals, places, learn)
        score_pairs(cells, owners, places, many, scores)
        for c in range(known):
            votes[t, member, c] = scores[MEAN, c]
        if learn:
            label = labels[begin + t]
            known = max(known, label + 1)
            learn_pairs(cells, places, many, label, known, weights[t], scores, steps)
            follow_values(rows[t], edges, levels, int(trials[0]))
            trials[0] += 1.0
