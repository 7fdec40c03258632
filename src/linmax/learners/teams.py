"""Small teams of diverse linear learners over attributes, scaled on-line: the members of the pool for attributes.

Sparse attributes are taken as x = log(1 + v), of length 1, and have

- PA-I (C = 1) on x weighted by inverse document frequency, log((t + 2) / df), against the best rival: it tracks;
- AROW (r = .1), one against all: second order;
- complement naive Bayes (a = .1): generative, good from the first trials on.

Dense attributes are standardised, cut off at 5 deviations and divided by sqrt(d), and have

- PA-I (C = 1) with a constant of 1, in time order the memory of the last labels;
- SCW-I (eta = .9, C = 1) against the best rival;
- the averaged Perceptron.

The constant is scaled like any attribute otherwise. A team has five numbers for each attribute and class, in single
precision and side by side, so that an attribute's numbers share their cache lines: two and a half times the memory of
one rule's weights.

References
----------
Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006), Online passive-aggressive algorithms: PA-I. Crammer, Kulesza
and Dredze (2009), Adaptive regularization of weight vectors: AROW. Wang, Zhao and Hoi (2012), Exact soft
confidence-weighted learning: SCW. Rennie et al. (2003): complement naive Bayes. Freund and Schapire (1998): averaging.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numba import boolean, float32, int32, int64, types

from linmax.contract import KNOWN, Indices, Instances, InstancesT, Labels, Matrix, Vector, deferred, kernel
from linmax.fetching import fetch
from linmax.learners.lanes import add_row, log_row, shrink_row, sum_row
from linmax.scaling import squash, standardise

__all__ = ["MEMBERS", "DenseTeam", "SparseTeam"]

MEMBERS = 3
ROWS = 5  # numbers for each attribute and class
LINE = 16  # of them in a cache line
SMOOTHING = 0.1  # of naive Bayes
AROW = 0.1
PHI = 1.2815515655446004  # the normal quantile of eta = .9, for SCW

Single = float32[::1]
SingleCube = float32[:, :, ::1]
Ints = int32[::1]


@kernel()
def best_rival(scores: np.ndarray, label: int, known: int) -> int:
    """The best of the known classes but the label; -1 without any."""
    rival = -1
    for c in range(known):
        if c != label and (rival < 0 or scores[c] > scores[rival]):
            rival = c
    return rival


# -- sparse -------------------------------------------------------------------------------------------------------

PA, MEAN, LOG, VARIANCE, COUNT = range(ROWS)  # of an attribute; 0 is the constant


class Room(NamedTuple):
    """Where a trial is worked out: each as long as the classes, or as the longest instance and the constant."""

    plain: np.ndarray  # float32: x of each attribute
    rare: np.ndarray  # float32: the same weighted by idf
    scores: np.ndarray  # float32 (4, classes): PA, AROW, naive Bayes and AROW's variances
    steps: np.ndarray  # float32 (2, classes)
    logs: np.ndarray  # ln 1, ln 2, ...


LOGS = np.log(np.arange(1.0, 4097.0))
RoomT = types.NamedTuple((Single, Single, float32[:, ::1], float32[:, ::1], Vector), Room)


@kernel()
def scale_sparse(instances: Instances, t: int, trials: float, frequency: np.ndarray, learn: bool, room: Room) -> int:
    """x and its idf form into ``room``, the constant first; returns how many there are."""
    lo, hi = instances.indptr[t], instances.indptr[t + 1]
    one = squash(instances.constant)
    plain, rare = one * one, one * one
    rarity = math.log(trials + 2.0)
    for j in range(lo, hi):
        value = squash(instances.values[j])
        count = frequency[instances.indices[j]] + 1.0
        if learn:
            frequency[instances.indices[j]] = count
        log = room.logs[int(count) - 1] if count <= room.logs.size else math.log(count)
        weighted = value * (rarity - log)
        plain += value * value
        rare += weighted * weighted
        room.plain[j - lo + 1], room.rare[j - lo + 1] = value, weighted
    room.plain[0] = room.rare[0] = one
    plain = 1.0 / math.sqrt(plain) if plain > 0.0 else 0.0
    rare = 1.0 / math.sqrt(rare) if rare > 0.0 else 0.0
    for j in range(hi - lo + 1):
        room.plain[j] *= plain
        room.rare[j] *= rare
    return hi - lo + 1


@kernel()
def fetch_trial(instances: Instances, t: int, j: int, cells: np.ndarray, frequency: np.ndarray) -> None:
    """Have the cells of a trial's j-th attribute ready soon, if there is such a one."""
    if t + 1 < instances.indptr.size and j < instances.indptr[t + 1] - instances.indptr[t]:
        column = instances.indices[instances.indptr[t] + j]
        if column < frequency.size:
            long = ROWS * cells.shape[2]
            place = (column + 1) * long
            fetch(frequency, column)
            for part in range(0, long, LINE):
                fetch(cells, place + part)


@kernel()
def score_sparse(instances: Instances, t: int, size: int, cells: np.ndarray, frequency: np.ndarray, room: Room) -> None:
    """Scores of PA, AROW and naive Bayes, and AROW's variances; the next trial's cells are asked for meanwhile."""
    scores, first = room.scores, instances.indptr[t]
    width = scores.shape[1]
    for q in range(4):
        for c in range(width):
            scores[q, c] = 0.0
    for j in range(size):
        fetch_trial(instances, t + 1, j, cells, frequency)
        place = ROWS * width * (instances.indices[first + j - 1] + 1 if j else 0)
        rare, plain = room.rare[j], room.plain[j]
        add_row(scores, 0, cells, place + PA * width, width, rare)
        add_row(scores, width, cells, place + MEAN * width, width, plain)
        add_row(scores, 2 * width, cells, place + LOG * width, width, plain)
        add_row(scores, 3 * width, cells, place + VARIANCE * width, width, plain * plain)


@kernel()
def learn_sparse(
    instances: Instances,
    first: int,
    size: int,
    label: int,
    known: int,
    cells: np.ndarray,
    totals: np.ndarray,
    room: Room,
) -> None:
    """One step of each member; naive Bayes counts |x|. The last of ``totals`` is how many attributes were seen."""
    scores, factor, shrink = room.scores, room.steps[0], room.steps[1]
    width = scores.shape[1]
    step, rival = np.float32(0.0), best_rival(scores[0], label, known)
    if rival >= 0:
        square = np.float32(0.0)
        for j in range(size):
            square += room.rare[j] * room.rare[j]
        loss = np.float32(1.0) - (scores[0, label] - scores[0, rival])
        if loss > 0.0 and square > 0.0:
            step = min(np.float32(1.0), loss / (np.float32(2.0) * square))
    active = False
    for c in range(width):
        factor[c] = shrink[c] = 0.0
    for c in range(known):
        sign = np.float32(1.0 if c == label else -1.0)
        loss = np.float32(1.0) - sign * scores[1, c]
        if loss > 0.0:
            shrink[c] = np.float32(1.0) / (scores[3, c] + np.float32(AROW))
            factor[c] = sign * loss * shrink[c]
            active = True
    total = np.float32(0.0)
    for j in range(size):
        column = instances.indices[first + j - 1] + 1 if j else 0
        place, plain = ROWS * width * column, room.plain[j]
        if step > 0.0:
            cells[column, PA, label] += step * room.rare[j]
            cells[column, PA, rival] -= step * room.rare[j]
        if active:
            shrink_row(cells, place + MEAN * width, place + VARIANCE * width, width, plain, room.steps)
        amount = abs(plain)
        total += amount
        count = sum_row(cells, place + COUNT * width, width)
        if count == 0.0:
            totals[-1] += 1.0
        cells[column, COUNT, label] += amount
        log_row(cells, place + LOG * width, place + COUNT * width, width, count + amount + np.float32(SMOOTHING))
    totals[label] += total


@deferred(
    types.void(
        InstancesT, Labels, int64, int64, Indices, SingleCube, Vector, Vector, Vector, RoomT, boolean, SingleCube
    )
)
def play_sparse(
    instances: Instances,
    labels: np.ndarray,
    begin: int,
    end: int,
    shape: np.ndarray,
    cells: np.ndarray,
    frequency: np.ndarray,
    totals: np.ndarray,
    trials: np.ndarray,
    room: Room,
    learn: bool,
    table: np.ndarray,
) -> None:
    """Scores of the three members at trials begin..end, and their learning."""
    width = room.scores.shape[1]
    for t in range(begin, end):
        first = instances.indptr[t]
        size = scale_sparse(instances, t, trials[0], frequency, learn, room)
        score_sparse(instances, t, size, cells, frequency, room)
        amount = np.float32(0.0)
        for j in range(size):
            amount += abs(room.plain[j])
        everything = 0.0
        for c in range(totals.size - 1):
            everything += totals[c]
        known = shape[KNOWN]
        for c in range(min(known, width)):
            rest = everything - totals[c] + SMOOTHING * totals[-1]
            table[t - begin, 0, c] = room.scores[0, c]
            table[t - begin, 1, c] = room.scores[1, c]
            table[t - begin, 2, c] = room.scores[2, c] + amount * (math.log(rest) if rest > 0.0 else 0.0)
        if learn:
            shape[KNOWN] = max(known, labels[t] + 1)
            learn_sparse(instances, first, size, labels[t], shape[KNOWN], cells, totals, room)
            trials[0] += 1.0


class SparseTeam:
    """State: the cells, how many instances had each attribute, the classes' totals, and the trials."""

    names = ("cells", "frequency", "totals", "trials")

    def __init__(self) -> None:
        self.cells = np.zeros((0, ROWS, 0), np.float32)
        self.frequency, self.totals, self.trials = np.zeros(0), np.zeros(1), np.zeros(1)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All the state."""
        return {name: getattr(self, name) for name in self.names}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over a state."""
        for name in self.names:
            setattr(self, name, arrays[name].copy())

    def fit(self, columns: int, width: int) -> None:
        """Make room for further attributes and classes."""
        rows, _, old = self.cells.shape
        if columns + 1 <= rows and width <= old:
            return
        room = max(columns + 1, rows + rows // 2) if columns + 1 > rows else rows
        cells = np.zeros((room, ROWS, width), np.float32)
        cells[:rows, :, :old] = self.cells
        cells[rows:, LOG] = -np.log(np.float32(SMOOTHING))
        cells[rows:, VARIANCE] = cells[:rows, VARIANCE, old:] = 1.0
        if old and width > old:  # a class without labels: all that was counted belongs to others
            cells[:rows, LOG, old:] = -np.log(self.cells[:, COUNT].sum(axis=1) + np.float32(SMOOTHING))[:, None]
        self.cells = cells
        self.frequency = np.concatenate([self.frequency, np.zeros(room - 1 - len(self.frequency))])
        self.totals = np.concatenate([self.totals[:-1], np.zeros(width + 1 - len(self.totals)), self.totals[-1:]])

    def scores(
        self, shape: np.ndarray, instances: Instances, labels: np.ndarray, begin: int, end: int, width: int, learn: bool
    ) -> np.ndarray:
        """Scores of the members, (trials, members, classes), before each trial is learned."""
        self.fit(int(instances.indices.max(initial=-1)) + 1, width)
        longest = int(np.diff(instances.indptr[begin : end + 1]).max(initial=0)) + 1
        width = self.cells.shape[2]
        room = Room(
            np.zeros(longest, np.float32),
            np.zeros(longest, np.float32),
            np.zeros((4, width), np.float32),
            np.zeros((2, width), np.float32),
            LOGS,
        )
        table = np.zeros((end - begin, MEMBERS, width), np.float32)
        play_sparse(
            instances, labels, begin, end, shape, self.cells, self.frequency, self.totals, self.trials, room, learn,
            table,
        )  # fmt: skip
        return table


# -- dense --------------------------------------------------------------------------------------------------------

TRACK, FIRM, DOUBT, QUICK, PAST = range(ROWS)  # PA; SCW's means and variances; the Perceptron and its lag


@kernel()
def score_dense(x: np.ndarray, one: float, cells: np.ndarray, scores: np.ndarray) -> None:
    """Scores of the weights in all rows but the variances; row 0 of the cells is the constant, ``one`` for PA."""
    width = scores.shape[1]
    for q in range(ROWS):
        value = one if q == TRACK else x[0]
        for c in range(width):
            scores[q, c] = value * cells[0, q, c]
    track, firm, quick, past = scores[TRACK], scores[FIRM], scores[QUICK], scores[PAST]
    for f in range(1, x.size):
        row, value = cells[f], x[f]
        for c in range(width):
            track[c] += value * row[TRACK, c]
        for c in range(width):
            firm[c] += value * row[FIRM, c]
        for c in range(width):
            quick[c] += value * row[QUICK, c]
        for c in range(width):
            past[c] += value * row[PAST, c]


@kernel()
def soft_confidence(margin: float, v: float) -> tuple[float, float]:
    """SCW-I's two step sizes, C = 1: w <- w + a Sz, S <- S - b Sz (Sz)'."""
    psi, xi = 1.0 + PHI * PHI / 2.0, 1.0 + PHI * PHI
    root = math.sqrt(margin * margin * PHI**4 / 4.0 + v * PHI * PHI * xi)
    a = min(1.0, max(0.0, (-margin * psi + root) / (v * xi)))
    if a == 0.0:
        return 0.0, 0.0
    u = 0.25 * (-a * v * PHI + math.sqrt(a * a * v * v * PHI * PHI + 4.0 * v)) ** 2
    return a, a * PHI / (math.sqrt(u) + v * a * PHI)


@kernel()
def learn_dense(
    x: np.ndarray, one: float, label: int, known: int, trials: float, cells: np.ndarray, scores: np.ndarray
) -> None:
    """One step of each member against its own best rival."""
    rival = best_rival(scores[TRACK], label, known)
    if rival < 0:
        return
    loss = 1.0 - (scores[TRACK, label] - scores[TRACK, rival])
    if loss > 0.0:
        square = one * one
        for f in range(1, x.size):
            square += x[f] * x[f]
        step = np.float32(min(1.0, loss / (2.0 * square))) if square > 0.0 else np.float32(0.0)
        cells[0, TRACK, label] += step * one
        cells[0, TRACK, rival] -= step * one
        for f in range(1, x.size):
            cells[f, TRACK, label] += step * x[f]
            cells[f, TRACK, rival] -= step * x[f]
    rival = best_rival(scores[FIRM], label, known)
    margin, v = scores[FIRM, label] - scores[FIRM, rival], 0.0
    for f in range(x.size):
        v += x[f] * x[f] * (cells[f, DOUBT, label] + cells[f, DOUBT, rival])
    if v > 0.0 and PHI * math.sqrt(v) > margin:
        wide_a, wide_b = soft_confidence(margin, v)
        a, b = np.float32(wide_a), np.float32(wide_b)
        for f in range(x.size):
            row, value = cells[f], x[f]
            along = row[DOUBT, label] * value
            row[FIRM, label] += a * along
            row[DOUBT, label] -= b * along * along
            along = row[DOUBT, rival] * value
            row[FIRM, rival] -= a * along
            row[DOUBT, rival] -= b * along * along
    rival = best_rival(scores[QUICK], label, known)
    if scores[QUICK, label] <= scores[QUICK, rival]:
        lag = np.float32(trials)
        for f in range(x.size):
            row, value = cells[f], x[f]
            row[QUICK, label] += value
            row[QUICK, rival] -= value
            row[PAST, label] += lag * value
            row[PAST, rival] -= lag * value


@deferred(
    types.void(
        InstancesT, Labels, int64, int64, Indices, SingleCube, Matrix, Vector, Single, float32[:, ::1], boolean,
        SingleCube,
    )
)  # fmt: skip
def play_dense(
    instances: Instances,
    labels: np.ndarray,
    begin: int,
    end: int,
    shape: np.ndarray,
    cells: np.ndarray,
    stats: np.ndarray,
    trials: np.ndarray,
    x: np.ndarray,
    scores: np.ndarray,
    learn: bool,
    table: np.ndarray,
) -> None:
    """Scores of the three members at trials begin..end, and their learning."""
    dense = instances.dense.shape[1]
    shrink = 1.0 / math.sqrt(float(dense))
    one = np.float32(instances.constant)
    x[0] = instances.constant * shrink
    for t in range(begin, end):
        for f in range(dense):
            x[f + 1] = standardise(instances.dense[t, f], stats[f], learn) * shrink
        score_dense(x, one, cells, scores)
        past = np.float32(trials[0] + 1.0)
        known = shape[KNOWN]
        for c in range(known):
            table[t - begin, 0, c] = scores[TRACK, c]
            table[t - begin, 1, c] = scores[FIRM, c]
            table[t - begin, 2, c] = scores[QUICK, c] - scores[PAST, c] / past
        if learn:
            trials[0] += 1.0
            shape[KNOWN] = max(known, labels[t] + 1)
            learn_dense(x, one, labels[t], shape[KNOWN], trials[0], cells, scores)


class DenseTeam:
    """State: the cells, count, mean and squares of each attribute, and the trials."""

    names = ("cells", "stats", "trials")

    def __init__(self) -> None:
        self.cells = np.zeros((0, ROWS, 0), np.float32)
        self.stats, self.trials = np.zeros((0, 3)), np.zeros(1)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All the state."""
        return {name: getattr(self, name) for name in self.names}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over a state."""
        for name in self.names:
            setattr(self, name, arrays[name].copy())

    def fit(self, columns: int, width: int) -> None:
        """Make room for further attributes and classes."""
        rows, _, old = self.cells.shape
        if columns + 1 == rows and width <= old:
            return
        cells = np.zeros((columns + 1, ROWS, width), np.float32)
        cells[:, DOUBT] = 1.0
        cells[:rows, :, :old] = self.cells
        self.cells = cells
        self.stats = np.concatenate([self.stats, np.zeros((columns - len(self.stats), 3))])

    def scores(
        self, shape: np.ndarray, instances: Instances, labels: np.ndarray, begin: int, end: int, width: int, learn: bool
    ) -> np.ndarray:
        """Scores of the members, (trials, members, classes), before each trial is learned."""
        self.fit(instances.dense.shape[1], width)
        rows, _, width = self.cells.shape
        x, scores = np.zeros(rows, np.float32), np.zeros((ROWS, width), np.float32)
        table = np.zeros((end - begin, MEMBERS, width), np.float32)
        play_dense(instances, labels, begin, end, shape, self.cells, self.stats, self.trials, x, scores, learn, table)
        return table
