"""Bins of attributes and pairs of bins as features, hashed, and one AROW against all classes over them.

Attribute f is in bin b when edge b - 1 <= v < edge b; a literal is (f, b), a feature a literal or two of them together
(Littlestone's conjunctions). The commonest bin of an attribute, if more than half of the values are in it, is silent:
what it would say is said by the constant and the others. Pairs are made of the first `ACTIVE` literals of a row that
speak, in the order of how much their attributes told about the label. The expansion is never stored: a row is a list of
rows of a table, found by a hashed index, each place of which belongs to the feature that came first.

Edges follow slow change: at each trial one edge e of an attribute moves by STEP_RATE (q - [v < e]) times the distance
of its neighbours, q the share of values below it when it was set.
"""

from __future__ import annotations

import math

import numpy as np
from numba import boolean, int64, types

from linmax.core.contract import Indices, Labels, Matrix, Vector
from linmax.jit.compiling import kernel
from linmax.learners.members import DENIED, SingleCube, SingleMatrix, best_rival

__all__ = ["ACTIVE", "MEAN", "MOST_BINS", "VARIANCE", "place_keys", "play_pairs"]

ACTIVE = 20  # literals of a row that are paired
MOST_BINS = 64  # more bins than an attribute can have
AROW = 0.1  # its r
APART = 2.0  # how far a class that is denied falls behind: as far as the scores of the label, 1, and of others, -1
STEP_RATE = 0.004
MEAN, VARIANCE, CELLS = range(3)
PROBES = 8  # places that are tried
LOW = (1 << 31) - 1  # numbers stay below 2^63 whatever they are multiplied with
ROW_BITS = 22  # of a row in an entry of the index
ROW = (1 << ROW_BITS) - 1
LITERAL_BITS, TAG = 20, (1 << 40) - 1  # the rest tells whose row it is: all of up to 2^14 attributes apart


@kernel()
def tag_of(low: int, high: int) -> int:
    """What a feature is known by in the index."""
    return ((low << LITERAL_BITS) ^ high) & TAG


@kernel()
def place_of(low: int, high: int, index: np.ndarray) -> int:
    """The place of a feature, two literals or 0 and one, in the index: its own, or the first free one from there on.

    Where there is none nearby, it shares one.
    """
    mask, tag = index.size - 1, tag_of(low, high)
    mixed = low * 0x2C1B3C6D + high * 0x297A2D39
    mixed = (mixed ^ (mixed >> 15) ^ (mixed >> 33)) & LOW
    mixed = mixed * 0x1B873593
    first = (mixed ^ (mixed >> 13) ^ (mixed >> 31)) & mask
    place = first
    for _ in range(PROBES):
        if index[place] == 0 or index[place] >> ROW_BITS == tag:
            return place
        place = (place + 1) & mask
    return first


@kernel(types.void(Indices, Indices, Indices, Indices))
def place_keys(given: np.ndarray, index: np.ndarray, keys: np.ndarray, rows: np.ndarray) -> None:
    """Rows of features by their keys, low 2^31 + high, which then own them; their cells are left as they are."""
    for i in range(given.size):
        low, high = given[i] >> 31, given[i] & LOW
        place = place_of(low, high, index)
        if index[place] == 0:
            keys[0] += 1
            index[place] = (tag_of(low, high) << ROW_BITS) + keys[0]
            keys[keys[0]] = given[i]
        rows[i] = index[place] & ROW


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
def row_of(low: int, high: int, cells: np.ndarray, index: np.ndarray, keys: np.ndarray, learn: bool) -> int:
    """The row of a feature in the table; one that is new gets the next one, or if nothing is learned 0."""
    place = place_of(low, high, index)
    if learn and index[place] == 0:
        keys[0] += 1
        row = keys[0]
        index[place], keys[row] = (tag_of(low, high) << ROW_BITS) + row, (low << 31) + high
        mean, variance = cells[row, MEAN], cells[row, VARIANCE]
        for c in range(variance.size):
            mean[c], variance[c] = 0.0, 1.0
    return index[place] & ROW


@kernel()
def features_of(
    row: np.ndarray, edges: np.ndarray, silent: np.ndarray, rank: np.ndarray, cells: np.ndarray, index: np.ndarray,
    keys: np.ndarray, literals: np.ndarray, rows: np.ndarray, learn: bool,
) -> int:  # fmt: skip
    """Rows of the table for the features of a row of attributes; returns how many. The first is the constant."""
    rows[0] = row_of(0, 0, cells, index, keys, learn)
    many = 1
    for f in rank:
        place = bin_of(row[f], edges[f])
        if place != silent[f]:
            literals[many] = f * MOST_BINS + place + 1
            rows[many] = row_of(0, literals[many], cells, index, keys, learn)
            many += 1
    active = min(many, ACTIVE + 1)
    for i in range(2, active):
        for j in range(1, i):
            low, high = min(literals[i], literals[j]), max(literals[i], literals[j])
            rows[many] = row_of(low, high, cells, index, keys, learn)
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
def score_pairs(cells: np.ndarray, rows: np.ndarray, many: int, scores: np.ndarray) -> None:
    """Means and variances of AROW, each feature 1 / sqrt(how many there are); row 0 has 0 and 1."""
    width = scores.shape[1]
    mean, variance = scores[MEAN], scores[VARIANCE]
    for c in range(width):
        mean[c] = variance[c] = 0.0
    for j in range(many):
        row = cells[rows[j]]
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
    cells: np.ndarray, rows: np.ndarray, many: int, label: int, known: int, weight: float, scores: np.ndarray,
    steps: np.ndarray,
) -> None:  # fmt: skip
    """One step of AROW for each class, r over the weight; a class that is denied falls behind the best other one."""
    active, width = False, scores.shape[1]
    x, noise = np.float32(1.0 / math.sqrt(many)), np.float32(AROW / weight)
    for c in range(width):
        steps[0, c] = steps[1, c] = 0.0
    wrong = DENIED - label if label < 0 else -1
    ahead = scores[MEAN, best_rival(scores[MEAN], wrong, known)] if wrong >= 0 else np.float32(0.0)
    for c in range(known):
        if wrong >= 0 and c != wrong:
            continue
        sign = np.float32(1.0 if c == label else -1.0)
        loss = np.float32(1.0 if wrong < 0 else APART) - sign * (scores[MEAN, c] - ahead)
        if loss > 0.0:
            steps[1, c] = x * x / (scores[VARIANCE, c] + noise)
            steps[0, c] = sign * loss * steps[1, c] / x
            active = True
    if not active:
        return
    move, shrink = steps[0], steps[1]
    for j in range(many):
        row = cells[rows[j]]
        mean, variance = row[MEAN], row[VARIANCE]
        for c in range(width):
            mean[c] += move[c] * variance[c]
            variance[c] -= shrink[c] * variance[c] * variance[c]


@kernel(
    types.void(
        Matrix, Labels, Vector, int64, int64, SingleCube, Indices, Indices, Matrix, Matrix, Indices, Indices, Vector,
        Indices, Indices, SingleMatrix, SingleMatrix, boolean, SingleCube, int64,
    )
)  # fmt: skip
def play_pairs(
    rows: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    begin: int,
    known: int,
    cells: np.ndarray,
    index: np.ndarray,
    keys: np.ndarray,
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
        many = features_of(rows[t], edges, silent, rank, cells, index, keys, literals, places, learn)
        score_pairs(cells, places, many, scores)
        for c in range(known):
            votes[t, member, c] = scores[MEAN, c]
        if learn:
            label = labels[begin + t]
            known = max(known, label + 1)
            learn_pairs(cells, places, many, label, known, weights[t], scores, steps)
            follow_values(rows[t], edges, levels, int(trials[0]))
            trials[0] += 1.0
