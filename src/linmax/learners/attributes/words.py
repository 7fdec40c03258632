"""PA-I, AROW, naive Bayes and log odds over sparse attributes: a group of members of the pool for attributes.

Naive Bayes (`sparse_bayes`) scales attributes and weights them by what its counts tell, for itself and for the linear
members (`sparse_linear`). It sees nothing of theirs: `lead` may be ahead of `follow`, in another thread.

Sparse attributes as the members for words have them, and what counts tell: complement naive Bayes and log odds.

Attributes are taken as x = log(1 + v), the constant among them, of length 1. Naive Bayes has them weighted by inverse
document frequency, log((t + 2) / df), and a = .1: generative, good from the first trials. Its counts n_fc tell how much
an attribute says about the classes: the Kullback-Leibler divergence KL of p(c | f) = (n_fc + .3 p(c)) / (n_f + .3) from
p(c), the classes' shares of all counts. PA-I has attributes weighted by idf (KL + .1), and so has the member for log
odds: the sum of x_f log(p(c | f) / p(c)).

References
----------
Rennie, Shih, Teevan and Karger (2003), Tackling the poor assumptions of naive Bayes text classifiers. Sparck Jones
(1972): idf.

PA-I and AROW over sparse attributes, side by side, as `sparse_bayes` scales and weights them.

PA-I (C = 1) has attributes weighted by how rare they are and by what they tell about the classes, and learns against
the best rival: it tracks. AROW (r = .1) has them as they are, and learns one against all: second order.

References
----------
Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006), Online passive-aggressive algorithms: PA-I. Crammer, Kulesza
and Dredze (2009), Adaptive regularization of weight vectors: AROW.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import ClassVar, NamedTuple

import numpy as np
from numba import boolean, int64, types

from linmax.core.contract import Indices, Instances, InstancesT, Labels, Vector
from linmax.core.linear_max import longest_row
from linmax.data.scaling import squash
from linmax.jit.compiling import kernel
from linmax.jit.float_rows import add_log_rows, add_row, add_rows, entropy_row, log_row, shrink_row, squash_row, sum_row
from linmax.jit.prefetch import fetch
from linmax.learners.attributes.member import DENIED, Group, Single, SingleCube, SingleMatrix, Task, best_rival
from linmax.learners.base import Field, Mixture, mix_by_precision

__all__ = [
    "LINEAR",
    "MEAN",
    "PA",
    "PLAIN",
    "SMOOTHING",
    "TELLING",
    "VARIANCE",
    "BayesRoom",
    "LinearRoom",
    "SparseMembers",
    "attributes_of",
    "fetch_row",
    "log_odds",
    "play_bayes",
    "play_linear",
]


SMOOTHING = 0.1
DOUBT = 0.3  # counts as the classes have them on average, which every attribute has beside its own
LEAST_TELLING = 0.1  # an attribute that says nothing about the classes still counts this much
RAREST_CLASS = 1e-9  # share of all counts; a class that has less is left out
LINE = 16  # numbers in a cache line

TELLING, PLAIN = range(2)  # rows of x: as PA-I has it, and as it is


class BayesRoom(NamedTuple):
    """Where trials are worked out. There is a place for each attribute of a trial, and before them for the constant."""

    scaled: np.ndarray  # float32 (2, attributes of all trials at hand): x of all of them
    rare: np.ndarray  # float32: x weighted by idf, of length 1
    logs: np.ndarray  # float32
    class_logs: np.ndarray  # float32 (classes,)
    places: np.ndarray  # int64: where the attribute's counts begin
    sums: np.ndarray  # float32: of its counts
    shares: np.ndarray  # float32 (2, classes): of all counts, and 1 / them
    scores: np.ndarray  # float32 (classes,): of naive Bayes
    odds: np.ndarray  # float32 (classes,): log odds


BayesRoomT = types.NamedTuple(
    (SingleMatrix, Single, Single, Single, Indices, Single, SingleMatrix, Single, Single), BayesRoom
)


@kernel(hot=True)
def fetch_row(table: np.ndarray, place: int, long: int) -> None:
    """Have ``long`` numbers ready soon."""
    for part in range(0, long, LINE):
        fetch(table, place + part)


@kernel(hot=True)
def attributes_of(indptr: np.ndarray, t: int) -> tuple[int, int]:
    """Where the attributes of a trial begin and end; nothing if there is no such trial."""
    return (indptr[t], indptr[t + 1]) if t + 1 < indptr.size else (0, 0)


@kernel(hot=True)
def one_over_root(square: float) -> np.float32:
    """What a vector with this square is multiplied by, to have length 1."""
    return np.float32(1.0 / math.sqrt(square)) if square > 0.0 else np.float32(0.0)


@kernel(reorders=True)
def scale_sparse(
    instances: Instances, t: int, at: int, trials: float, frequency: np.ndarray, learn: bool, room: BayesRoom
) -> int:
    """x into row ``PLAIN`` of ``scaled`` from ``at`` on, and into ``rare``; returns how many."""
    first, many = instances.indptr[t], instances.indptr[t + 1] - instances.indptr[t]
    plain, rare, width = room.scaled[PLAIN], room.rare, room.scores.size
    squash_row(room.scaled, PLAIN * plain.size + at + 1, instances.values, first, many)
    for j in range(many):
        column = instances.indices[first + j]
        count = frequency[column] + 1.0
        if learn:
            frequency[column] = count
        rare[j + 1] = count
        room.places[j + 1] = (column + 1) * width
    log_row(rare, 1, many)
    room.places[0] = 0
    plain[at] = rare[0] = squash(instances.constant)
    rarity = np.float32(math.log(trials + 2.0))
    for j in range(1, many + 1):
        rare[j] = plain[at + j] * (rarity - rare[j])
    length, rare_length = np.float32(0.0), np.float32(0.0)
    for j in range(many + 1):
        length += plain[at + j] * plain[at + j]
        rare_length += rare[j] * rare[j]
    shrink, rare_shrink = one_over_root(length), one_over_root(rare_length)
    for j in range(many + 1):
        rare[j] *= rare_shrink
        plain[at + j] *= shrink
    return many + 1


@kernel(reorders=True)
def weigh_by_telling(at: int, size: int, counts: np.ndarray, totals: np.ndarray, room: BayesRoom) -> None:
    """x as PA-I has it into row ``TELLING`` of ``scaled``, of length 1; and ``odds``."""
    told, rare, shares, everything = room.scaled[TELLING], room.rare, room.shares, 0.0
    width = room.scores.size
    for c in range(width):
        everything += totals[c]
    for c in range(width):
        share = totals[c] / everything if everything > 0.0 else 0.0
        shares[0, c] = share if share > RAREST_CLASS else 0.0
        shares[1, c] = 1.0 / share if share > RAREST_CLASS else 0.0
    for j in range(size):
        room.logs[j] = room.sums[j] + np.float32(DOUBT)
    log_row(room.logs, 0, size)
    for c in range(width):
        room.odds[c] = 0.0
    length = np.float32(0.0)
    for j in range(size):
        mean = entropy_row(counts, room.places[j], width, shares, np.float32(DOUBT), room.class_logs)
        divergence = mean / (room.sums[j] + np.float32(DOUBT)) - room.logs[j] if everything > 0.0 else np.float32(0.0)
        told[at + j] = rare[j] * (max(divergence, np.float32(0.0)) + np.float32(LEAST_TELLING))
        length += told[at + j] * told[at + j]
        add_row(room.odds, room.class_logs, told[at + j], width)
    shrink = one_over_root(length)
    for j in range(size):
        told[at + j] *= shrink
    for c in range(width):
        room.odds[c] *= shrink


@kernel()
def score_bayes(
    instances: Instances, t: int, size: int, counts: np.ndarray, frequency: np.ndarray, room: BayesRoom
) -> np.float32:
    """Scores but for what depends on the classes alone; returns sum |x|. The next trial's counts are asked for."""
    width, amount = room.scores.size, np.float32(0.0)
    coming, stop = attributes_of(instances.indptr, t + 1)
    for j in range(size):
        if coming + j < stop:
            fetch(frequency, instances.indices[coming + j])
            fetch_row(counts, width * (instances.indices[coming + j] + 1), width)
        room.sums[j] = sum_row(counts, room.places[j], width)
        amount += abs(room.rare[j])
    for c in range(width):
        room.scores[c] = 0.0
    add_log_rows(room.scores, counts, room.places, size, width, room.sums, np.float32(SMOOTHING), room.rare, 0)
    return amount


@kernel(
    types.void(
        InstancesT, Labels, Vector, int64, int64, int64, SingleMatrix, Vector, Vector, Vector, Vector, BayesRoomT,
        boolean, SingleCube, int64,
    )
)  # fmt: skip
def play_bayes(
    instances: Instances,
    labels: np.ndarray,
    weights: np.ndarray,
    begin: int,
    end: int,
    known: int,
    counts: np.ndarray,
    totals: np.ndarray,
    met: np.ndarray,
    frequency: np.ndarray,
    trials: np.ndarray,
    room: BayesRoom,
    learn: bool,
    votes: np.ndarray,
    member: int,
) -> None:
    """Scores of naive Bayes and log odds at trials begin..end, and learning: |x| times the trial's weight is counted.

    ``met`` is how many attributes were met. x of all trials is left in ``scaled``. Of a trial that denies a class
    nothing but the trial is counted.
    """
    at, width = 0, counts.shape[1]
    for t in range(begin, end):
        size = scale_sparse(instances, t, at, trials[0], frequency, learn, room)
        amount = score_bayes(instances, t, size, counts, frequency, room)
        weigh_by_telling(at, size, counts, totals, room)
        everything = 0.0
        for c in range(totals.size):
            everything += totals[c]
        for c in range(known):
            rest = everything - totals[c] + SMOOTHING * met[0]
            votes[t - begin, member, c] = room.scores[c] + amount * (math.log(rest) if rest > 0.0 else 0.0)
            votes[t - begin, member + 1, c] = room.odds[c]
        if learn and labels[t] < 0:
            trials[0] += 1.0
        elif learn:
            first, label, weight = instances.indptr[t], labels[t], np.float32(weights[t - begin])
            known = max(known, label + 1)
            for j in range(size):
                if room.sums[j] == 0.0 and room.rare[j] != 0.0 and sum_row(counts, room.places[j], width) == 0.0:
                    met[0] += 1.0
                column = instances.indices[first + j - 1] + 1 if j else 0
                counts[column, label] += weight * abs(room.rare[j])
            totals[label] += weight * amount
            trials[0] += 1.0
        at += size


def log_odds(counts: np.ndarray, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """KL + .1 of each row of counts, and log(p(c | f) / p(c)); ``totals`` are those of the classes."""
    shares = totals / max(float(totals.sum()), np.finfo(float).tiny)
    shares = np.where(shares > RAREST_CLASS, shares, 0.0)
    sums = counts.sum(axis=1, keepdims=True) + DOUBT
    sizes = np.divide(counts, shares, out=np.zeros_like(counts), where=shares > 0.0) + DOUBT
    logs = np.log(sizes / sums)
    return np.maximum((shares * sizes * logs / sums).sum(axis=1), 0.0) + LEAST_TELLING, logs


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


LinearRoomT = types.NamedTuple((SingleMatrix, Indices, SingleMatrix, SingleMatrix), LinearRoom)


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
        InstancesT, Labels, Vector, int64, int64, int64, SingleCube, SingleMatrix, LinearRoomT, boolean, SingleCube,
        int64,
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


BAYES = 2  # the first member that counts
ROOM = 16  # one in so many of the attributes met is room for those to come


class SparseMembers(Group):
    """State: cells of the linear members, counts of naive Bayes, how many instances had each attribute, the classes'
    totals, how many attributes were met, and the trials.
    """

    members = ("PA-I", "AROW", "naive Bayes", "log odds")
    sparse = True
    fields: ClassVar = {
        "cells": Field(("row", LINEAR, "class"), (np.arange(LINEAR) == VARIANCE)[:, None], "", np.float32),
        "counts": Field(("row", "class"), dtype=np.float32),
        "frequency": Field(("column",)),
        "totals": Field(("class",)),
        "met": Field(merge=""),
        "trials": Field(),
    }

    def __init__(self) -> None:
        self.used = 0  # attributes and the constant: rows of the arrays, which have room for more

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        rows = {name: getattr(self, name)[: self.used] for name in ("cells", "counts")}
        return super().arrays | rows | {"frequency": self.frequency[: self.columns]}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        super().restore(arrays)
        self.used = len(self.cells)

    @property
    def columns(self) -> int:
        return max(0, self.used - 1)

    def fit(self, columns: int, width: int) -> None:
        need, rows = max(self.used, columns + 1), len(self.cells)
        spare = need + need // ROOM + ROOM if need > rows else rows
        if spare > rows and width <= self.totals.size:
            self._lengthen(spare)
        self.grow(**{"row": spare, "column": spare - 1, "class": width})
        self.used = need

    def mark(self) -> int:
        return self.used

    def rewind(self, mark: int) -> None:
        self.used = mark

    def _lengthen(self, rows: int) -> None:
        """Make the arrays longer where they are, which copies no pages of memory, if nobody else looks at them."""
        old, width = len(self.cells), self.totals.size
        for name, shape in {"cells": (rows, LINEAR, width), "counts": (rows, width), "frequency": (rows - 1,)}.items():
            array = self.take_out(name)
            with suppress(ValueError):  # `grow` copies it
                array.resize(shape)
            setattr(self, name, array)
        self.cells[old:, VARIANCE] = 1.0

    def tables(self, k: int) -> dict[str, np.ndarray]:
        """The weights of each member for x, (the constant and the attributes, classes).

        Those of PA-I and of log odds are times idf (KL + .1), those of naive Bayes times idf. Naive Bayes is linear in
        x >= 0; an attribute that it has not met has weight 0.
        """
        cells, counts = self.cells[: self.used, :, :k].astype(np.float64), self.counts[: self.used].astype(np.float64)
        rarity = np.log((self.trials[0] + 2.0) / (self.frequency[: self.columns] + 1.0))
        rarity = np.concatenate([np.ones(min(1, self.used)), rarity])
        sums = counts.sum(axis=1)
        rest = self.totals.sum() - self.totals[:k] + SMOOTHING * self.met[0]
        bayes = np.log(np.maximum(rest, SMOOTHING)) - np.log(sums[:, None] - counts[:, :k] + SMOOTHING)
        bayes[sums == 0.0] = 0.0
        told, odds = log_odds(counts, self.totals)
        telling = (rarity * told)[:, None]
        return {
            "PA-I": cells[:, PA] * telling,
            "AROW": cells[:, MEAN],
            "naive Bayes": bayes * rarity[:, None],
            "log odds": odds[:, :k] * telling,
        }

    def mix(self, mixture: Mixture, width: int) -> None:
        """Become the mixture: PA-I by shares, AROW by precision; what was counted adds up."""
        super().mix(mixture, width)
        self.used, shape = len(self.counts), self.counts.shape
        pa, means = np.zeros(shape), []
        for part, share in mixture.weighed:
            spot, cells = self.placed(part)
            pa[spot] += share * cells[:, PA]
            means.append((spot, cells[:, MEAN], cells[:, VARIANCE], share))
        self.cells = np.zeros((self.used, LINEAR, width), np.float32)
        self.cells[:, PA] = pa
        self.cells[:, MEAN], self.cells[:, VARIANCE] = mix_by_precision(shape, means)
        self.met[0] = np.count_nonzero(self.counts.sum(axis=1) > 0.0)

    def lead(self, task: Task, votes: np.ndarray, place: int) -> np.ndarray:
        """Naive Bayes and log odds; returns x of all trials."""
        known, instances, labels, begin, end, learn = task[:6]
        width, longest = self.counts.shape[1], _longest(instances, begin, end)
        many = int(instances.indptr[end] - instances.indptr[begin]) + end - begin
        room = BayesRoom(
            np.empty((2, many), np.float32),
            np.empty(longest, np.float32),
            np.empty(longest, np.float32),
            np.zeros(width, np.float32),
            np.zeros(longest, np.int64),
            np.empty(longest, np.float32),
            np.zeros((2, width), np.float32),
            np.zeros(width, np.float32),
            np.zeros(width, np.float32),
        )
        play_bayes(
            instances, labels, task.weights, begin, end, known, self.counts, self.totals, self.met, self.frequency,
            self.trials, room, learn, votes, place + BAYES,
        )  # fmt: skip
        return room.scaled

    def follow(self, task: Task, led: np.ndarray, votes: np.ndarray, place: int) -> None:
        """The linear members, from what `lead` returned."""
        known, instances, labels, begin, end, learn = task[:6]
        width, longest = self.cells.shape[2], _longest(instances, begin, end)
        room = LinearRoom(
            np.empty((LINEAR, longest), np.float32),
            np.zeros(longest, np.int64),
            np.zeros((LINEAR, width), np.float32),
            np.zeros((2, width), np.float32),
        )
        play_linear(
            instances, labels, task.weights, begin, end, known, self.cells, led, room, learn, votes, place,
        )  # fmt: skip


def _longest(instances: Instances, begin: int, end: int) -> int:
    """Most attributes of a trial, the constant among them."""
    return int(longest_row(instances.indptr[begin : end + 1])) + 1
