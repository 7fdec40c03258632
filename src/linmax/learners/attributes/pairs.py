"""A member of the pool for attributes: quantile bins of dense attributes, and pairs of them (see `pair_features`).

The edges are set from the first trials, which the pool then learns once more. An attribute with no more values than
bins has a bin for each; one that is met later has bins for less than, equal to and more than 0.

Bins of attributes and pairs of bins as features, hashed, and one AROW against all classes over them.

Attribute f is in bin b when edge b - 1 <= v < edge b; a literal is (f, b), a feature a literal or two of them together
(Littlestone's conjunctions). The commonest bin of an attribute, if more than half of the values are in it, is silent:
what it would say is said by the constant and the others. Pairs are made of the first `ACTIVE` literals of a row that
speak, in the order of how informative their attributes were. The expansion is never stored: a row is a list of
rows of a table, found by a hashed index, each place of which belongs to the feature that came first.

Edges follow slow change: at each trial one edge e of an attribute moves by STEP_RATE (q - [v < e]) times the distance
of its neighbours, q the share of values below it when it was set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import types

from linmax.core.contract import Indices
from linmax.data.features import edges_of
from linmax.jit.compiling import kernel
from linmax.jit.prefetch import fetch
from linmax.learners.attributes.group import DENIED, ROWS_PLAYED, Group, Task, best_rival
from linmax.learners.base import Field, Mixture, Placement, Table, mix_learned, spot_of, struct_of

__all__ = ["MOST_BINS", "PairMembers"]


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
LITERAL_BITS, TAG = 20, (1 << 40) - 1  # the rest identifies the row, for up to 2^14 attributes without collisions


@kernel()
def tag_of(low: int, high: int) -> int:
    """Return the tag of a feature in the index."""
    return ((low << LITERAL_BITS) ^ high) & TAG


@kernel()
def first_place(low: int, high: int, places: int) -> int:
    """Return the place of a feature in an index of this size, if no other feature is there."""
    mixed = low * 0x2C1B3C6D + high * 0x297A2D39
    mixed = (mixed ^ (mixed >> 15) ^ (mixed >> 33)) & LOW
    mixed = mixed * 0x1B873593
    return (mixed ^ (mixed >> 13) ^ (mixed >> 31)) & (places - 1)


@kernel()
def place_of(low: int, high: int, index: np.ndarray) -> int:
    """The place of a feature, two literals or 0 and one, in the index: its own, or the first free one from there on.

    Where there is none nearby, it shares one.
    """
    mask, tag, first = index.size - 1, tag_of(low, high), first_place(low, high, index.size)
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
    place = 0
    for i in range(edges.size):  # all of them: a search would mostly wait for its own branches
        place += value >= edges[i]
    return place


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
def features_of(m: Any, row: np.ndarray, learn: bool) -> int:
    """Rows of the table for the features of a row of attributes; returns how many. The first is the constant.

    All places of the index, and then all cells, are prefetched: most are not in the nearest cache.
    """
    edges, silent, index, keys, cells, literals, features = (
        m.edges, m.silent, m.index, m.keys, m.cells, m.literals, m.features,
    )  # fmt: skip
    literals[0], many = 0, 1
    for f in m.rank:
        place = bin_of(row[f], edges[f])
        if place != silent[f]:
            literals[many] = f * MOST_BINS + place + 1
            many += 1
    active = min(many, ACTIVE + 1)
    for i in range(many):
        features[i] = literals[i]
        fetch(index, first_place(0, literals[i], index.size))
    for i in range(2, active):
        for j in range(1, i):
            low, high = min(literals[i], literals[j]), max(literals[i], literals[j])
            features[many] = (low << 31) + high
            fetch(index, first_place(low, high, index.size))
            many += 1
    for i in range(many):
        m.rows[i] = row_of(features[i] >> 31, features[i] & LOW, cells, index, keys, learn)
        fetch(cells, m.rows[i] * CELLS * m.scores.shape[1])
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


@kernel()
def sum_cells(cells: np.ndarray, rows: np.ndarray, many: int, kind: int, sums: np.ndarray) -> None:
    """Sum rows of the table, four classes at a time."""
    fours = sums.size - sums.size % 4
    for c in range(0, fours, 4):
        first = second = third = fourth = np.float32(0.0)
        for j in range(many):
            row = rows[j]
            first += cells[row, kind, c]
            second += cells[row, kind, c + 1]
            third += cells[row, kind, c + 2]
            fourth += cells[row, kind, c + 3]
        sums[c], sums[c + 1], sums[c + 2], sums[c + 3] = first, second, third, fourth
    for c in range(fours, sums.size):
        first = np.float32(0.0)
        for j in range(many):
            first += cells[rows[j], kind, c]
        sums[c] = first


@kernel()
def score_pairs(cells: np.ndarray, rows: np.ndarray, many: int, scores: np.ndarray, learn: bool) -> None:
    """Means of AROW, and variances if it learns, each feature 1 / sqrt(how many there are); row 0 has 0 and 1."""
    mean, variance, x = scores[MEAN], scores[VARIANCE], np.float32(1.0 / math.sqrt(many))
    sum_cells(cells, rows, many, MEAN, mean)
    if learn:
        sum_cells(cells, rows, many, VARIANCE, variance)
    for c in range(mean.size):
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


FIELDS = {
    "edges": Field(("column", "edge"), merge=""),  # of bins: those that are not there are infinite
    "levels": Field(("column", "bin"), merge=""),  # how many edges follow their values, and the share below each
    "silent": Field(("column",), merge="", dtype=np.int64),  # the bin that votes for nothing, or -1
    "rank": Field(("column",), merge="", dtype=np.int64),  # attributes, the most informative first
    "index": Field(("place",), merge="", dtype=np.int64),  # rows of features at hashed places, with a tag; 0 for none
    "keys": Field(("feature",), merge="", dtype=np.int64),  # of the features in their rows; keys[0] is their number
    "cells": Field(("feature", CELLS, "class"), merge="", dtype=np.float32),
    "trials": Field(),
    "literals": Field(("literal",), merge="", dtype=np.int64, saved=False),
    "features": Field(("pair",), merge="", dtype=np.int64, saved=False),  # of a row, as they are in ``keys``
    "rows": Field(("pair",), merge="", dtype=np.int64, saved=False),  # of the table, for these
    "scores": Field((CELLS, "class"), merge="", dtype=np.float32, saved=False),
    "steps": Field((CELLS, "class"), merge="", dtype=np.float32, saved=False),
}


@kernel(types.void(struct_of(FIELDS).numba_type, *ROWS_PLAYED))
def play_pairs(
    m: Any,
    rows: np.ndarray,
    met: np.ndarray,
    constant: float,
    counts: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    learn: bool,
    votes: np.ndarray,
    member: int,
) -> None:
    """Score all rows, and learn; ``counts`` are the known classes."""
    cells, places, scores, edges, trials = m.cells, m.rows, m.scores, m.edges, m.trials
    for t in range(rows.shape[0]):
        many = features_of(m, rows[t], learn)
        score_pairs(cells, places, many, scores, learn)
        for c in range(counts[t]):
            votes[t, member, c] = scores[MEAN, c]
        if learn:
            label = labels[t]
            known = max(counts[t], label + 1)
            learn_pairs(cells, places, many, label, known, weights[t], scores, m.steps)
            follow_values(rows[t], edges, m.levels, int(trials[0]))
            trials[0] += 1.0


LARGEST_PAIR_TABLE = 1 << 24  # bytes of a table
SMALLEST = 1 << 8  # rows of a table


class Bins(NamedTuple):
    """Edges of bins, a row an attribute, and the share of values below each after how many there are."""

    edges: np.ndarray
    levels: np.ndarray
    silent: np.ndarray  # the bin that says nothing, or -1
    rank: np.ndarray  # attributes, the most information first


def bins_of(rows: np.ndarray, labels: np.ndarray, bins: int) -> Bins:
    """Bins of each attribute; they are ranked by their information about the labels (mutual information).

    Of trials that only deny a class the values are looked at, and nothing else.
    """
    (size, columns), ordered = rows.shape, np.sort(rows, axis=0)
    edges, many = np.full((columns, bins - 1), np.inf), np.zeros(columns, np.int64)
    quantiles = np.zeros(columns, np.bool_)
    for f in range(columns):
        own, quantiles[f] = edges_of(ordered[:, f], bins)
        many[f] = own.size
        edges[f, : own.size] = own
    labeled = labels >= 0
    _, classes = np.unique(labels[labeled], return_inverse=True)
    k, labels_seen = int(classes.max(initial=0)) + 1, max(1, int(labeled.sum()))
    places = (rows[:, :, None] >= edges).sum(axis=2) + bins * np.arange(columns)
    joint = np.bincount((places[labeled] * k + classes[:, None]).ravel(), minlength=columns * bins * k) / labels_seen
    joint = joint.reshape(columns, bins, k)
    seen = shares = joint.sum(axis=2)
    if labels_seen < size:
        shares = np.bincount(places.ravel(), minlength=columns * bins).reshape(columns, bins) / size
    silent = np.where(shares.max(axis=1, initial=0.0) > 0.5, shares.argmax(axis=1), -1)
    levels = np.zeros((columns, bins))
    levels[:, 1:] = np.where(np.arange(bins - 1) < many[:, None], np.cumsum(shares, axis=1)[:, :-1], 0.0)
    levels[:, 0] = many
    levels[~quantiles] = 0.0
    independent = seen[:, :, None] * joint.sum(axis=1)[:, None]
    met = joint > 0.0
    surprise = np.log(np.divide(joint, independent, out=np.ones_like(joint), where=met))
    spurious = (np.count_nonzero(seen, axis=1) - 1) * (k - 1) / (2.0 * labels_seen)
    information = (joint * surprise).sum(axis=(1, 2)) - spurious
    return Bins(edges, levels, silent, np.argsort(-information, kind="stable"))


def late_bins(columns: int, bins: int) -> Bins:
    """Bins for attributes of which nothing is known: less than, equal to and more than 0."""
    edges = np.full((columns, bins - 1), np.inf)
    edges[:, : min(2, bins - 1)] = (0.0, np.nextafter(0.0, 1.0))[: bins - 1]
    return Bins(edges, np.zeros((columns, bins)), np.full(columns, 1), np.arange(columns))


class PairMembers(Group):
    """State: bins, the table with the keys of its features, and the trials.

    The cells and keys of features stand in the order in which these came, from row 1 on, so that those that come
    together are near each other in memory. Row 0 are the cells of all other features.
    """

    studies = True
    fields: ClassVar = FIELDS
    kernel = staticmethod(play_pairs)

    def __init__(self, bins: int = 16) -> None:
        self.bins = bins
        self.members = (f"pairs of {bins} bins",)
        self.set_bins(late_bins(0, bins))
        self.keys, self.cells = np.zeros(1, np.int64), np.zeros((1, CELLS, 0), np.float32)

    def set_bins(self, bins: Bins) -> None:
        """Use these."""
        self.edges, self.levels, self.silent, self.rank = bins

    @property
    def ready(self) -> bool:
        """Return whether there are bins."""
        return bool(len(self.index))

    @property
    def width(self) -> int:
        """Classes that there is room for."""
        return int(self.cells.shape[2])

    @property
    def used(self) -> np.ndarray:
        """Places of the index that belong to features."""
        return np.flatnonzero(self.index)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        used = self.used
        rows, found = self.index[used] & ROW, {name: getattr(self, name) for name in Bins._fields}
        return found | {
            "used": np.append(used, len(self.index)), "keys": 1 + self.keys[rows], "cells": self.cells[rows],
            "trials": self.trials,
        }  # fmt: skip

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        for name in (*Bins._fields, "trials"):
            setattr(self, name, arrays[name].copy())
        used, keys, cells = arrays["used"], arrays["keys"] - 1, arrays["cells"]
        self._empty_table(int(used[-1]), cells.shape[2])
        rows, tags = 1 + np.arange(len(keys)), tag_of(keys >> 31, keys & LOW)
        self.index[used[:-1]], self.keys[rows], self.cells[rows] = (tags << ROW_BITS) + rows, keys, cells
        self.keys[0] = len(keys)

    def _empty_table(self, size: int, width: int) -> None:
        """An index of this many places, and room for as many features; what is not used takes no memory."""
        self.index = np.zeros(size, np.int64)
        self.keys, self.cells = np.empty(1 + size, np.int64), np.empty((1 + size, CELLS, width), np.float32)
        self.keys[0], self.cells[0, MEAN], self.cells[0, VARIANCE] = 0, 0.0, 1.0
        self._make_workspace()

    def _make_workspace(self) -> None:
        most = 1 + len(self.edges)
        self.grow(**{"class": self.width, "literal": most, "pair": most + ACTIVE * (ACTIVE - 1) // 2})

    def fit(self, columns: int, width: int) -> None:
        if self.ready and columns > len(self.edges):
            old, late = len(self.edges), late_bins(columns - len(self.edges), self.bins)
            self.rank = np.concatenate([self.rank, old + late.rank])
            for name in ("edges", "levels", "silent"):
                setattr(self, name, np.concatenate([getattr(self, name), getattr(late, name)]))
        old, many = self.width, int(self.keys[0])
        if width > old:
            cells = np.empty((len(self.cells), CELLS, width), np.float32)
            cells[: many + 1, MEAN], cells[: many + 1, VARIANCE] = 0.0, 1.0
            cells[: many + 1, :, :old] = self.cells[: many + 1]
            self.cells = cells
        self._make_workspace()

    def study(self, rows: np.ndarray, labels: np.ndarray) -> None:
        if not rows.shape[1]:
            return
        self.set_bins(bins_of(rows, labels, self.bins))
        self._start(self.width)

    def _start(self, width: int) -> None:
        """An empty table that holds all features without many collisions, if memory allows."""
        columns = len(self.edges)
        features = columns * self.bins + columns * (columns - 1) // 2 * self.bins**2
        most = LARGEST_PAIR_TABLE // (2 * 4 * max(1, width))
        rows = 1 << (min(4 * features, most).bit_length() - 1)
        self._empty_table(max(SMALLEST, rows), width)

    def decided(self) -> dict[str, str | int | float]:
        if not self.ready:
            return {}
        numbers = int(np.count_nonzero(self.levels[:, 0]))
        return {"columns of numbers": numbers, "columns of few values": len(self.levels) - numbers}

    def play(self, task: Task, votes: np.ndarray, place: int) -> None:
        if self.ready:
            super().play(task, votes, place)

    def mix(self, mixture: Mixture, width: int) -> None:
        """Become the mixture: by what each part has learned (`mix_learned`).

        The bins are those of the start, with the mean of the edges by shares; without one those of the part with the
        greatest share, and a bin of another part becomes the bin that its middle is in.
        """
        ready = [(part, share) for part, share in mixture.weighed if part.state.ready]
        if not ready:
            self.fit(0, width)
            return
        start = mixture.start if mixture.start is not None and mixture.start.state.ready else None
        first = start or max(ready, key=lambda pair: pair[1])[0]
        columns = 1 + max(int(part.dense[: part.state.columns].max(initial=-1)) for part, _ in ready)
        self._take_bins(first, columns)
        self._start(width)
        if start is not None:
            self._average_edges(start, ready)
            self._keep_table(start, width)
        tables = [(self._table(part, start is not None), share) for part, share in ready]
        begun = None if start is None else self._table(start, True)
        own = self.cells[: self.keys[0] + 1]
        own[:, MEAN], own[:, VARIANCE] = mix_learned((len(own), width), tables, begun, mixture.last)
        own[0, MEAN], own[0, VARIANCE] = 0.0, 1.0
        self.merge_fields(mixture, {}, self.axes)

    def _take_bins(self, part: Placement, columns: int) -> None:
        """The bins of a part, its attributes at their places among ``columns``."""
        own, places = part.state, part.dense[: len(part.state.edges)]
        found = late_bins(columns, self.bins)
        for name in ("edges", "levels", "silent"):
            getattr(found, name)[places] = getattr(own, name)
        rest = np.setdiff1d(np.arange(columns), places)
        self.set_bins(found._replace(rank=np.concatenate([places[own.rank], rest])))

    def _average_edges(self, start: Placement, parts: Sequence[tuple[Placement, float]]) -> None:
        """Move edges to where they are in the parts on average; those that are the same in all stay as they are."""
        size, total = len(start.state.edges), sum(share for _, share in parts)
        places, mean = start.dense[:size], np.zeros_like(start.state.edges)
        same = np.ones(mean.shape, np.bool_)
        for part, share in parts:
            own = part.state.edges[:size]
            mean += share / total * own
            same &= own == parts[0][0].state.edges[:size]
        self.edges[places] = np.where(same, parts[0][0].state.edges[:size], mean)

    def _keep_table(self, start: Placement, width: int) -> None:
        """Features have the rows that they had at the start: in a full table, others would be left without."""
        own, places = start.state, start.dense[: len(start.state.edges)]
        if np.array_equal(places, np.arange(places.size)):
            self._empty_table(len(own.index), width)
            self.index[:], self.keys[: own.keys[0] + 1] = own.index, own.keys[: own.keys[0] + 1]

    def _table(self, part: Placement, same_bins: bool) -> Table:
        """Another's weights and variances, and where they are in this table."""
        used = part.state.index[part.state.used] & ROW
        keys, translated = part.state.keys[used], _literals(self, part, same_bins)
        low, high = translated[keys >> 31], translated[keys & LOW]
        rows, classes = np.zeros(keys.size, np.int64), part.classes[: part.state.width]
        place_keys((np.minimum(low, high) << 31) + np.maximum(low, high), self.index, self.keys, rows)
        cells = part.state.cells[used][:, :, : classes.size]
        return spot_of(rows, classes), cells[:, MEAN], cells[:, VARIANCE]


def _literals(to: PairMembers, part: Placement, same_bins: bool) -> np.ndarray:
    """Return the literals of this table for those of another, 0 for none."""
    translated = np.zeros(len(part.state.edges) * MOST_BINS + 1, np.int64)
    for f, edges in enumerate(part.state.edges):
        bounds = edges[np.isfinite(edges)]
        middles = 0.5 * (bounds[1:] + bounds[:-1])
        first = [0.0 if bounds[0] > 0.0 else bounds[0] - 1.0] if bounds.size else [0.0]
        ends = [first, middles, bounds[-1:]]
        there = int(part.dense[f])
        places = np.searchsorted(to.edges[there], np.concatenate(ends), side="right")
        if same_bins or np.array_equal(edges, to.edges[there]):
            places = np.arange(places.size)
        translated[f * MOST_BINS + 1 : f * MOST_BINS + 1 + places.size] = there * MOST_BINS + places + 1
    return translated
