"""A member of the pool for attributes: quantile bins of dense attributes, and pairs of them (see `pair_features`).

The edges are set from the first trials, which the pool then learns once more. An attribute with no more values than
bins has a bin for each; one that is met later has bins for less than, equal to and more than 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numba import types

from linmax.core.contract import Indices, Matrix, Vector
from linmax.data.features.bins import quantile_edges
from linmax.learners.members import Group, SingleCube, SingleMatrix, Task
from linmax.learners.mixing import Mixture, Placement, mix_by_precision
from linmax.learners.pair_features import ACTIVE, LOW, MEAN, MOST_BINS, VARIANCE, place_keys, play_pairs

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
    owners: np.ndarray
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
    (SingleCube, Indices, Matrix, Matrix, Indices, Indices, Vector, Indices, Indices, SingleMatrix, SingleMatrix),
    PairRoom,
)


def bins_of(rows: np.ndarray, labels: np.ndarray, bins: int) -> Bins:
    """Bins of each attribute; they are ranked by what they tell about the labels (mutual information)."""
    size, columns = rows.shape
    edges, levels = np.full((columns, bins - 1), np.inf), np.zeros((columns, bins))
    silent, telling = np.full(columns, -1), np.zeros(columns)
    _, classes = np.unique(labels, return_inverse=True)
    k = int(classes.max(initial=0)) + 1
    for f in range(columns):
        own, quantiles = quantile_edges(rows[:, f], bins)
        edges[f, : own.size] = own
        places = np.searchsorted(own, rows[:, f], side="right")
        joint = np.bincount(places * k + classes, minlength=(own.size + 1) * k).reshape(-1, k) / size
        shares = joint.sum(axis=1)
        if shares.max() > 0.5:
            silent[f] = shares.argmax()
        if quantiles:
            levels[f, 0], levels[f, 1 : own.size + 1] = own.size, np.cumsum(shares)[:-1]
        apart = np.outer(shares, joint.sum(axis=0))[joint > 0.0]
        spurious = (np.count_nonzero(shares) - 1) * (k - 1) / (2.0 * size)
        telling[f] = joint[joint > 0.0] @ np.log(joint[joint > 0.0] / apart) - spurious
    return Bins(edges, levels, silent, np.argsort(-telling, kind="stable"))


def late_bins(columns: int, bins: int) -> Bins:
    """Bins for attributes of which nothing is known: less than, equal to and more than 0."""
    edges = np.full((columns, bins - 1), np.inf)
    edges[:, : min(2, bins - 1)] = (0.0, np.nextafter(0.0, 1.0))[: bins - 1]
    return Bins(edges, np.zeros((columns, bins)), np.full(columns, 1), np.arange(columns))


class PairMembers(Group):
    """State: bins, the table's cells that are used with the keys of their features, and the trials."""

    studies = True
    names = ("edges", "levels", "silent", "rank", "used", "keys", "cells", "trials")

    def __init__(self, bins: int = 16) -> None:
        self.bins = bins
        self.members = (f"pairs of {bins} bins",)
        self.set_bins(late_bins(0, bins))
        self.table = np.zeros((0, 2, 0), np.float32)
        self.owners = np.zeros(0, np.int64)  # 1 + keys of the features that came first, or 0
        self.trials = np.zeros(1)
        self._spare: PairMembers | None = None  # whose table may be used again

    def set_bins(self, bins: Bins) -> None:
        """Use these."""
        self.edges, self.levels, self.silent, self.rank = bins

    @property
    def ready(self) -> bool:
        """Whether there are bins."""
        return bool(len(self.table))

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        used = np.flatnonzero(self.owners)
        found = {name: getattr(self, name) for name in ("edges", "levels", "silent", "rank", "trials")}
        return found | {
            "used": np.append(used, len(self.table)), "keys": self.owners[used], "cells": self.table[used]
        }  # fmt: skip

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        for name in ("edges", "levels", "silent", "rank", "trials"):
            setattr(self, name, arrays[name].copy())
        used, cells = arrays["used"], arrays["cells"]
        self._empty_table(int(used[-1]), cells.shape[2])
        self.table[used[:-1]], self.owners[used[:-1]] = cells, arrays["keys"]

    def inherit(self, other: Group) -> None:
        if isinstance(other, PairMembers):
            self._spare, other._spare = other, None

    def _empty_table(self, rows: int, width: int) -> None:
        spare, self._spare = self._spare, None
        if spare is not None and spare.table.shape == (rows, 2, width):
            self.table, self.owners = spare.table, spare.owners
            self.table[np.flatnonzero(self.owners)] = 0.0
            self.owners[:] = 0
            return
        self.table = np.zeros((rows, 2, width), np.float32)  # which takes no memory until it is used
        self.owners = np.zeros(rows, np.int64)

    def fit(self, columns: int, width: int) -> None:
        if self.ready and columns > len(self.edges):
            old, late = len(self.edges), late_bins(columns - len(self.edges), self.bins)
            self.rank = np.concatenate([self.rank, old + late.rank])
            for name in ("edges", "levels", "silent"):
                setattr(self, name, np.concatenate([getattr(self, name), getattr(late, name)]))
        old = self.table.shape[2]
        if width > old and self.ready:
            table, owners, used = self.table, self.owners, np.flatnonzero(self.owners)
            self._empty_table(len(table), width)
            self.table[used, VARIANCE] = 1.0
            self.table[used, :, :old], self.owners = table[used], owners
        elif width > old:
            self.table = np.zeros((0, 2, width), np.float32)

    def study(self, rows: np.ndarray, labels: np.ndarray) -> None:
        if not rows.shape[1]:
            return
        self.set_bins(bins_of(rows, labels, self.bins))
        self._start(self.table.shape[2])

    def _start(self, width: int) -> None:
        """An empty table that holds all features without many collisions, if memory allows."""
        columns = len(self.edges)
        features = columns * self.bins + columns * (columns - 1) // 2 * self.bins**2
        most = LARGEST_PAIR_TABLE // (2 * 4 * max(1, width))
        rows = 1 << (min(4 * features, most).bit_length() - 1)
        self._empty_table(max(SMALLEST, rows), width)

    def room(self) -> PairRoom:
        """What a trial is worked out in."""
        width, columns = self.table.shape[2], len(self.edges)
        many = 1 + columns + ACTIVE * (ACTIVE - 1) // 2
        literals, places = np.zeros(1 + columns, np.int64), np.zeros(many, np.int64)
        scores, steps = np.zeros((2, width), np.float32), np.zeros((2, width), np.float32)
        bins = self.edges, self.levels, self.silent, self.rank
        return PairRoom(self.table, self.owners, *bins, self.trials, literals, places, scores, steps)

    def lead(self, task: Task, votes: np.ndarray, place: int) -> None:
        if not self.ready:
            return
        rows, columns = task.rows, len(self.edges)
        if rows.shape[1] < columns:
            rows = np.concatenate([rows, np.zeros((len(rows), columns - rows.shape[1]))], axis=1)
        play_pairs(rows, task.labels, task.weights, task.begin, task.known, *self.room(), task.learn, votes, place)

    def mix(self, mixture: Mixture, width: int) -> None:
        """Become the mixture, by precision, over the bins of the part with the greatest share that has some.

        A bin of another part becomes the bin that its middle is in.
        """
        ready = [(part, share) for part, share in mixture.weighed if part.state.ready]
        if not ready:
            self.fit(0, width)
            return
        first = max(ready, key=lambda pair: pair[1])[0]
        columns = 1 + max(int(part.dense[: len(part.state.edges)].max(initial=-1)) for part, _ in ready)
        self._take_bins(first, columns)
        self._start(width)
        spots = []
        for part, share in ready:
            used = np.flatnonzero(part.state.owners)
            rows = self._rows(part, part.state.owners[used] - 1)
            classes = part.classes[: part.state.table.shape[2]]
            cells = part.state.table[used][:, :, : classes.size]
            spots.append((np.ix_(rows, classes), cells[:, MEAN], cells[:, VARIANCE], share))
        means, variances = mix_by_precision((len(self.table), width), spots)
        self.table[:, MEAN], self.table[:, VARIANCE] = means, variances
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

    def _rows(self, part: Placement, keys: np.ndarray) -> np.ndarray:
        """Places in this table of another's features, by their keys there."""
        low, high = _literals(self, part, keys >> 31), _literals(self, part, keys & LOW)
        keys = (np.minimum(low, high) << 31) + np.maximum(low, high)
        rows = np.zeros(keys.size, np.int64)
        place_keys(keys, self.owners, rows)
        return rows


def _literals(to: PairMembers, part: Placement, literals: np.ndarray) -> np.ndarray:
    """Another's literals, 0 for none, as they are called here."""
    translated = np.zeros(len(part.state.edges) * MOST_BINS + 1, np.int64)
    for f, edges in enumerate(part.state.edges):
        bounds = edges[np.isfinite(edges)]
        middles = 0.5 * (bounds[1:] + bounds[:-1])
        first = [0.0 if bounds[0] > 0.0 else bounds[0] - 1.0] if bounds.size else [0.0]
        ends = [first, middles, bounds[-1:]]
        there = int(part.dense[f])
        places = np.searchsorted(to.edges[there], np.concatenate(ends), side="right")
        if np.array_equal(edges, to.edges[there]):
            places = np.arange(places.size)
        translated[f * MOST_BINS + 1 : f * MOST_BINS + 1 + places.size] = there * MOST_BINS + places + 1
    return translated[literals]
