"""Small teams of diverse linear learners over attributes, scaled on-line: the members of the pool for attributes.

Sparse attributes are taken as x = log(1 + v), of length 1, and have

- PA-I (C = 1) on x weighted by inverse document frequency, log((t + 2) / df), against the best rival: it tracks;
- AROW (r = .1), one against all: second order;
- complement naive Bayes (a = .1): generative, good from the first trials on.

Dense attributes are standardised, cut off at 5 deviations and divided by sqrt(d), and have

- PA-I (C = 1) with a constant of 1, in time order the memory of the last labels;
- SCW-I (eta = .9, C = 1) against the best rival;
- the averaged Perceptron.

The constant is scaled like any attribute otherwise. A team has four numbers for each sparse attribute and class and
five for each dense one, in single precision and side by side, so that an attribute's numbers share their cache lines:
two and a half times the memory of one rule's weights at most.

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
from numba import boolean, float32, int64, types

from linmax.core.contract import Indices, Instances, InstancesT, Labels, Matrix, Vector
from linmax.core.linear_max import longest_row
from linmax.data.scaling import squash, standardise
from linmax.jit.compiling import kernel
from linmax.jit.float_rows import add_log_rows, add_rows, log_row, shrink_row, squash_row, sum_row
from linmax.jit.prefetch import fetch

__all__ = ["MEMBERS", "DenseTeam", "SparseTeam", "Task"]

MEMBERS = 3
LINE = 16  # of them in a cache line
SMOOTHING = 0.1  # of naive Bayes
AROW = 0.1
PHI = 1.2815515655446004  # the normal quantile of eta = .9, for SCW

Single = float32[::1]
SingleMatrix = float32[:, ::1]
SingleCube = float32[:, :, ::1]


class Task(NamedTuple):
    """Trials for the members."""

    known: int  # classes before them
    instances: Instances
    labels: np.ndarray
    begin: int
    end: int
    learn: bool


@kernel()
def best_rival(scores: np.ndarray, label: int, known: int) -> int:
    """The best of the known classes but the label; -1 without any."""
    rival = -1
    for c in range(known):
        if c != label and (rival < 0 or scores[c] > scores[rival]):
            rival = c
    return rival


# -- sparse -------------------------------------------------------------------------------------------------------

PA, MEAN, VARIANCE, LINEAR = range(
    4
)  # rows of an attribute's cells, and how many there are; attribute 0 is the constant
BAYES = 2  # the member that counts
GROUP = 8  # attributes whose cells are asked for at a time
ROOM = 4  # times the attributes met, for those to come


RARE, PLAIN, SQUARE = range(LINEAR)  # x as PA has it, weighted by idf; as AROW has it; and its squares, for variances


class Room(NamedTuple):
    """Where trials are worked out. There is a place for each attribute of a trial, and before them for the constant."""

    scaled: np.ndarray  # float32: x of all trials at hand
    factors: np.ndarray  # float32 (LINEAR, attributes)
    places: np.ndarray  # int64: where the attribute's cells begin
    scores: np.ndarray  # float32 (LINEAR, classes): PA, AROW and AROW's variances
    steps: np.ndarray  # float32 (2, classes)


RoomT = types.NamedTuple((Single, SingleMatrix, Indices, SingleMatrix, SingleMatrix), Room)


@kernel(reorders=True)
def scale_sparse(
    instances: Instances, t: int, at: int, trials: float, frequency: np.ndarray, learn: bool, room: Room
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
def score_linear(instances: Instances, t: int, size: int, cells: np.ndarray, frequency: np.ndarray, room: Room) -> None:
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
    indices: np.ndarray, first: int, size: int, label: int, known: int, cells: np.ndarray, room: Room
) -> None:
    """One step of PA and of AROW."""
    scores, factor, shrink = room.scores, room.steps[0], room.steps[1]
    width, rare, plain = scores.shape[1], room.factors[RARE], room.factors[PLAIN]
    step, rival = np.float32(0.0), best_rival(scores[0], label, known)
    if rival >= 0:
        square = np.float32(0.0)
        for j in range(size):
            square += rare[j] * rare[j]
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
            shrink[c] = np.float32(1.0) / (scores[2, c] + np.float32(AROW))
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


@kernel(
    types.void(InstancesT, Labels, int64, int64, int64, SingleCube, Vector, Vector, RoomT, boolean, SingleCube, int64)
)
def play_linear(
    instances: Instances,
    labels: np.ndarray,
    begin: int,
    end: int,
    known: int,
    cells: np.ndarray,
    frequency: np.ndarray,
    trials: np.ndarray,
    room: Room,
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
            learn_linear(instances.indices, instances.indptr[t], size, labels[t], known, cells, room)
            trials[0] += 1.0
        at += size


@kernel(
    types.void(
        InstancesT, Labels, int64, int64, int64, SingleMatrix, Vector, Single, Indices, Single, Single, boolean,
        SingleCube, int64,
    )
)  # fmt: skip
def play_bayes(
    instances: Instances,
    labels: np.ndarray,
    begin: int,
    end: int,
    known: int,
    counts: np.ndarray,
    totals: np.ndarray,
    scaled: np.ndarray,
    places: np.ndarray,
    sums: np.ndarray,
    scores: np.ndarray,
    learn: bool,
    votes: np.ndarray,
    member: int,
) -> None:
    """Scores of naive Bayes at trials begin..end, and its learning: it counts |x|.

    The last of ``totals`` is how many attributes were met.
    """
    at, width = 0, counts.shape[1]
    for t in range(begin, end):
        first, size = instances.indptr[t], instances.indptr[t + 1] - instances.indptr[t] + 1
        coming, stop = attributes_of(instances.indptr, t + 1)
        amount = np.float32(0.0)
        for j in range(size):
            if coming + j < stop:
                fetch_row(counts, width * (instances.indices[coming + j] + 1), width)
            places[j] = width * (instances.indices[first + j - 1] + 1) if j else 0
            sums[j] = sum_row(counts, places[j], width)
            amount += abs(scaled[at + j])
        for c in range(width):
            scores[c] = 0.0
        add_log_rows(scores, counts, places, size, width, sums, np.float32(SMOOTHING), scaled, at)
        everything = 0.0
        for c in range(totals.size - 1):
            everything += totals[c]
        for c in range(known):
            rest = everything - totals[c] + SMOOTHING * totals[-1]
            votes[t - begin, member, c] = scores[c] + amount * (math.log(rest) if rest > 0.0 else 0.0)
        if learn:
            label = labels[t]
            known = max(known, label + 1)
            for j in range(size):
                if sums[j] == 0.0 and scaled[at + j] != 0.0 and sum_row(counts, places[j], width) == 0.0:
                    totals[-1] += 1.0
                column = instances.indices[first + j - 1] + 1 if j else 0
                counts[column, label] += abs(scaled[at + j])
            totals[label] += amount
        at += size


class SparseTeam:
    """State: cells of the linear members, counts of naive Bayes, how many instances had each attribute, the classes'
    totals, and the trials.

    The linear members and naive Bayes do not see each other: `lead` may be ahead of `follow`, in another thread.
    """

    names = ("cells", "counts", "frequency", "totals", "trials")

    def __init__(self) -> None:
        self.cells = np.zeros((0, LINEAR, 0), np.float32)
        self.counts = np.zeros((0, 0), np.float32)
        self.frequency, self.totals, self.trials = np.zeros(0), np.zeros(1), np.zeros(1)
        self.used = 0  # attributes and the constant: rows of the arrays, which have room for more

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All the state."""
        found = {name: getattr(self, name) for name in self.names}
        rows = {name: found[name][: self.used] for name in ("cells", "counts")}
        return found | rows | {"frequency": self.frequency[: max(0, self.used - 1)]}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over a state."""
        for name in self.names:
            setattr(self, name, arrays[name].copy())
        self.used = len(self.cells)

    def fit(self, instances: Instances, width: int) -> None:
        """Make room for the attributes of these instances and for further classes."""
        need = max(self.used, int(instances.indices.max(initial=-1)) + 2)
        rows, _, old = self.cells.shape
        if need > rows or width > old:
            rows = ROOM * need if need > rows else rows  # rows without attributes take no memory until they are used
            cells, counts = np.zeros((rows, LINEAR, width), np.float32), np.zeros((rows, width), np.float32)
            frequency, totals = np.zeros(rows - 1), np.zeros(width + 1)
            cells[: self.used, VARIANCE] = 1.0
            cells[: self.used, :, :old], counts[: self.used, :old] = self.cells[: self.used], self.counts[: self.used]
            frequency[: max(0, self.used - 1)] = self.frequency[: max(0, self.used - 1)]
            totals[: len(self.totals) - 1], totals[-1] = self.totals[:-1], self.totals[-1]
            self.cells, self.counts, self.frequency, self.totals = cells, counts, frequency, totals
        self.cells[self.used : need, VARIANCE] = 1.0
        self.used = need

    def tables(self) -> dict[str, np.ndarray | None]:
        """The weights of each member, the constant first; naive Bayes has none that could be told apart from counts."""
        cells = self.cells[: self.used]
        return {"PA-I": cells[:, PA], "AROW": cells[:, MEAN], "naive Bayes": None}

    def lead(self, task: Task, votes: np.ndarray, member: int) -> np.ndarray:
        """Scores of the linear members before each trial is learned, into ``votes`` from place ``member`` on.

        Returns x of all trials.
        """
        known, instances, labels, begin, end, learn = task
        width, longest = self.cells.shape[2], _longest(instances, begin, end)
        room = Room(
            np.empty(instances.indptr[end] - instances.indptr[begin] + end - begin, np.float32),
            np.empty((LINEAR, longest), np.float32),
            np.zeros(longest, np.int64),
            np.zeros((LINEAR, width), np.float32),
            np.zeros((2, width), np.float32),
        )
        play_linear(
            instances, labels, begin, end, known, self.cells, self.frequency, self.trials, room, learn, votes, member
        )
        return room.scaled

    def follow(self, task: Task, scaled: np.ndarray, votes: np.ndarray, member: int) -> None:
        """The same of naive Bayes, from what `lead` returned."""
        known, instances, labels, begin, end, learn = task
        longest = _longest(instances, begin, end)
        room = np.zeros(longest, np.int64), np.zeros(longest, np.float32), np.zeros(votes.shape[2], np.float32)
        play_bayes(
            instances, labels, begin, end, known, self.counts, self.totals, scaled, *room, learn, votes, member + BAYES
        )


def _longest(instances: Instances, begin: int, end: int) -> int:
    """Most attributes of a trial, the constant among them."""
    return int(longest_row(instances.indptr[begin : end + 1])) + 1


# -- dense --------------------------------------------------------------------------------------------------------

TRACK, FIRM, DOUBT, QUICK, PAST, ROWS = range(6)  # PA; SCW's means and variances; the Perceptron and its lag; how many


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


@kernel(
    types.void(
        InstancesT, Labels, int64, int64, int64, SingleCube, Matrix, Vector, Single, SingleMatrix, boolean,
        SingleCube, int64,
    )
)  # fmt: skip
def play_dense(
    instances: Instances,
    labels: np.ndarray,
    begin: int,
    end: int,
    known: int,
    cells: np.ndarray,
    stats: np.ndarray,
    trials: np.ndarray,
    x: np.ndarray,
    scores: np.ndarray,
    learn: bool,
    votes: np.ndarray,
    member: int,
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
        for c in range(known):
            votes[t - begin, member, c] = scores[TRACK, c]
            votes[t - begin, member + 1, c] = scores[FIRM, c]
            votes[t - begin, member + 2, c] = scores[QUICK, c] - scores[PAST, c] / past
        if learn:
            trials[0] += 1.0
            known = max(known, labels[t] + 1)
            learn_dense(x, one, labels[t], known, trials[0], cells, scores)


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

    def fit(self, instances: Instances, width: int) -> None:
        """Make room for the attributes of these instances and for further classes."""
        columns = instances.dense.shape[1]
        rows, _, old = self.cells.shape
        if columns + 1 == rows and width <= old:
            return
        cells = np.zeros((columns + 1, ROWS, width), np.float32)
        cells[:, DOUBT] = 1.0
        cells[:rows, :, :old] = self.cells
        self.cells = cells
        self.stats = np.concatenate([self.stats, np.zeros((columns - len(self.stats), 3))])

    def tables(self) -> dict[str, np.ndarray | None]:
        """The weights of each member, the constant first."""
        cells, past = self.cells, self.trials[0] + 1.0
        return {
            "PA-I": cells[:, TRACK],
            "SCW-I": cells[:, FIRM],
            "A-perceptron": cells[:, QUICK] - cells[:, PAST] / past,
        }

    def play(self, task: Task, votes: np.ndarray, member: int) -> None:
        """Scores of the members before each trial is learned, into ``votes`` from place ``member`` on."""
        known, instances, labels, begin, end, learn = task
        rows, _, width = self.cells.shape
        x, scores = np.zeros(rows, np.float32), np.zeros((ROWS, width), np.float32)
        play_dense(
            instances, labels, begin, end, known, self.cells, self.stats, self.trials, x, scores, learn, votes, member
        )
