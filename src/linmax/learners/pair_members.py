"""A member of the pool for attributes: quantile bins of dense attributes, and pairs of them (see `pair_features`).

The edges are set from the first trials, which the pool then learns once more. An attribute with no more values than
bins has a bin for each; one that is met later has bins for less than, equal to and more than 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numba import types

from linmax.core.contract import Indices, Matrix, Vector
from linmax.data.features.bins import edges_of
from linmax.learners.members import Group, SingleCube, SingleMatrix, Task
from linmax.learners.mixing import Mixture, Placement, Table, mix_learned, spot_of
from linmax.learners.pair_features import (
    ACTIVE,
    LOW,
    MEAN,
    MOST_BINS,
    ROW,
    ROW_BITS,
    VARIANCE,
    place_keys,
    play_pairs,
    tag_of,
)  # fmt: skip

__all__ = ["Bins", "PairMembers", "PairRoom", "PairRoomT"]

LARGEST_PAIR_TABLE = 1 << 24  # bytes of a table
SMALLEST = 1 << 8  # rows of a table


class Bins(NamedTuple):
    """Edges of bins, a row an attribute, and the share of values below each after how many there are."""

    edges: np.ndarray
    levels: np.ndarray
    silent: np.ndarray  # the bin that says nothing, or -1
    rank: np.ndarray  # attributes, the most telling first


class PairRoom(NamedTuple):
    """What the member works in: its state, and room for the features of one row, their scores and steps."""

    cells: np.ndarray
    hashed: np.ndarray  # the index
    keys: np.ndarray
    edges: np.ndarray
    levels: np.ndarray
    silent: np.ndarray
    rank: np.ndarray
    trials: np.ndarray
    literals: np.ndarray
    places: np.ndarray
    scores: np.ndarray
    steps: np.ndarray


PairRoomT = types.NamedTuple(
    (
        SingleCube,
        Indices,
        Indices,
        Matrix,
        Matrix,
        Indices,
        Indices,
        Vector,
        Indices,
        Indices,
        SingleMatrix,
        SingleMatrix,
    ),
    PairRoom,
)


def bins_of(rows: np.ndarray, labels: np.ndarray, bins: int) -> Bins:
    """Bins of each attribute; they are ranked by what they tell about the labels (mutual information).

    Of trials that only deny a class the values are looked at, and nothing else.
    """
    (size, columns), ordered = rows.shape, np.sort(rows, axis=0)
    edges, many = np.full((columns, bins - 1), np.inf), np.zeros(columns, np.int64)
    quantiles = np.zeros(columns, np.bool_)
    for f in range(columns):
        own, quantiles[f] = edges_of(ordered[:, f], bins)
        many[f] = own.size
        edges[f, : own.size] = own
    told = labels >= 0
    _, classes = np.unique(labels[told], return_inverse=True)
    k, many_told = int(classes.max(initial=0)) + 1, max(1, int(told.sum()))
    places = (rows[:, :, None] >= edges).sum(axis=2) + bins * np.arange(columns)
    joint = np.bincount((places[told] * k + classes[:, None]).ravel(), minlength=columns * bins * k) / many_told
    joint = joint.reshape(columns, bins, k)
    seen = shares = joint.sum(axis=2)
    if many_told < size:
        shares = np.bincount(places.ravel(), minlength=columns * bins).reshape(columns, bins) / size
    silent = np.where(shares.max(axis=1, initial=0.0) > 0.5, shares.argmax(axis=1), -1)
    levels = np.zeros((columns, bins))
    levels[:, 1:] = np.where(np.arange(bins - 1) < many[:, None], np.cumsum(shares, axis=1)[:, :-1], 0.0)
    levels[:, 0] = many
    levels[~quantiles] = 0.0
    apart = seen[:, :, None] * joint.sum(axis=1)[:, None]
    met = joint > 0.0
    surprise = np.log(np.divide(joint, apart, out=np.ones_like(joint), where=met))
    spurious = (np.count_nonzero(seen, axis=1) - 1) * (k - 1) / (2.0 * many_told)
    telling = (joint * surprise).sum(axis=(1, 2)) - spurious
    return Bins(edges, levels, silent, np.argsort(-telling, kind="stable"))


def late_bins(columns: int, bins: int) -> Bins:
    """Bins for attributes of which nothing is known: less than, equal to and more than 0."""
    edges = np.full((columns, bins - 1), np.inf)
    edges[:, : min(2, bins - 1)] = (0.0, np.nextafter(0.0, 1.0))[: bins - 1]
    return Bins(edges, np.zeros((columns, bins)), np.full(columns, 1), np.arange(columns))


class PairMembers(Group):
    """State: bins, the table with the keys of its features, and the trials.

    The cells and keys of features stand in the order in which these came, from row 1 on, so that those that come
    together are near each other in memory; ``index`` has their rows at hashed places, below a tag by which they are
    known, and 0 where there is none. Row 0 are the cells of all other features, ``keys[0]`` is how many there are.
    """

    studies = True
    names = ("edges", "levels", "silent", "rank", "used", "keys", "cells", "trials")

    def __init__(self, bins: int = 16) -> None:
        self._spare: PairMembers | None = None  # whose table may be used again
        self.bins = bins
        self.members = (f"pairs of {bins} bins",)
        self.set_bins(late_bins(0, bins))
        self.index, self.keys = np.zeros(0, np.int64), np.zeros(1, np.int64)
        self.cells: np.ndarray = np.zeros((1, 2, 0), np.float32)
        self.trials = np.zeros(1)

    def set_bins(self, bins: Bins) -> None:
        """Use these."""
        self.edges, self.levels, self.silent, self.rank = bins

    @property
    def ready(self) -> bool:
        """Whether there are bins."""
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
        rows, found = self.index[used] & ROW, {name: getattr(self, name) for name in self.names[:4]}
        return found | {
            "used": np.append(used, len(self.index)), "keys": 1 + self.keys[rows], "cells": self.cells[rows],
            "trials": self.trials,
        }  # fmt: skip

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        for name in ("edges", "levels", "silent", "rank", "trials"):
            setattr(self, name, arrays[name].copy())
        used, keys, cells = arrays["used"], arrays["keys"] - 1, arrays["cells"]
        self._empty_table(int(used[-1]), cells.shape[2])
        rows, tags = 1 + np.arange(len(keys)), tag_of(keys >> 31, keys & LOW)
        self.index[used[:-1]], self.keys[rows], self.cells[rows] = (tags << ROW_BITS) + rows, keys, cells
        self.keys[0] = len(keys)

    def inherit(self, other: Group) -> None:
        if isinstance(other, PairMembers):
            self._spare, other._spare = other, None

    def _empty_table(self, size: int, width: int) -> None:
        """An index of so many places, and room for as many features; what is not used takes no memory."""
        spare, self._spare = self._spare, None
        if spare is not None and spare.cells.shape == (1 + size, 2, width):
            self.index, self.keys, self.cells = spare.index, spare.keys, spare.cells
            self.index[:] = 0
        else:
            self.index = np.zeros(size, np.int64)
            self.keys, self.cells = np.empty(1 + size, np.int64), np.empty((1 + size, 2, width), np.float32)
        self.keys[0], self.cells[0, MEAN], self.cells[0, VARIANCE] = 0, 0.0, 1.0

    def fit(self, columns: int, width: int) -> None:
        if self.ready and columns > len(self.edges):
            old, late = len(self.edges), late_bins(columns - len(self.edges), self.bins)
            self.rank = np.concatenate([self.rank, old + late.rank])
            for name in ("edges", "levels", "silent"):
                setattr(self, name, np.concatenate([getattr(self, name), getattr(late, name)]))
        old, many = self.width, int(self.keys[0])
        if width > old:
            cells = np.empty((len(self.cells), 2, width), np.float32)
            cells[: many + 1, MEAN], cells[: many + 1, VARIANCE] = 0.0, 1.0
            cells[: many + 1, :, :old] = self.cells[: many + 1]
            self.cells = cells

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

    def room(self) -> PairRoom:
        """What a trial is worked out in."""
        width, columns = self.width, len(self.edges)
        many = 1 + columns + ACTIVE * (ACTIVE - 1) // 2
        literals, places = np.zeros(1 + columns, np.int64), np.zeros(many, np.int64)
        scores, steps = np.zeros((2, width), np.float32), np.zeros((2, width), np.float32)
        bins = self.edges, self.levels, self.silent, self.rank
        return PairRoom(self.cells, self.index, self.keys, *bins, self.trials, literals, places, scores, steps)

    def lead(self, task: Task, votes: np.ndarray, place: int) -> None:
        if not self.ready:
            return
        rows, columns = task.rows, len(self.edges)
        if rows.shape[1] < columns:
            rows = np.concatenate([rows, np.zeros((len(rows), columns - rows.shape[1]))], axis=1)
        play_pairs(rows, task.labels, task.weights, task.begin, task.known, *self.room(), task.learn, votes, place)

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
        columns = 1 + max(int(part.dense[: len(part.state.edges)].max(initial=-1)) for part, _ in ready)
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
        for part, sign in mixture.counted:
            self.trials += sign * part.state.trials

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
    """What another's literals, 0 for none, are called here."""
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
