"""PA-I, softmax, naive Bayes and log odds over sparse attributes: a group of members of the pool for attributes.

Attributes are taken as x = log(1 + v), the constant among them, of length 1. Naive Bayes has them weighted by inverse
document frequency, log((t + 2) / df), and a = .1: generative, good from the first trials. Its counts n_fc show how much
an attribute says about the classes: the Kullback-Leibler divergence KL of p(c | f) = (n_fc + .3 p(c)) / (n_f + .3) from
p(c), the classes' shares of all counts. PA-I (C = 1) has attributes weighted by idf (KL + .1), and learns against the
best rival: it tracks. So has the member for log odds: the sum of x_f log(p(c | f) / p(c)). Softmax has them as they
are, and learns by the extended Kalman filter with a diagonal (`kalman_step`): second order, and also good where labels
are uncertain, such as clicks.

References
----------
Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006), Online passive-aggressive algorithms: PA-I. Rennie, Shih,
Teevan and Karger (2003), Tackling the poor assumptions of naive Bayes text classifiers. Sparck Jones (1972): idf.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
from numba import boolean, int64, types

from linmax.core.contract import Trials, TrialsT
from linmax.core.linear_max import longest_row
from linmax.data.scaling import squash
from linmax.jit.compiling import kernel
from linmax.jit.float_rows import add_log_rows, add_row, add_rows, entropy_row, log_row, shrink_row, squash_row, sum_row
from linmax.jit.prefetch import fetch
from linmax.learners.attributes.group import DENIED, Group, SingleCube, Task, best_rival, kalman_step
from linmax.learners.base import Field, Mixture, mix_by_precision, struct_of

__all__ = ["LINEAR", "ROOM", "SparseMembers"]


SMOOTHING = 0.1
DOUBT = 0.3  # counts as the classes have them on average, which every attribute has in addition to its own
LEAST_TELLING = 0.1  # an attribute that says nothing about the classes still counts this much
RAREST_CLASS = 1e-9  # share of all counts; a class that has less is left out
LINE = 16  # numbers in a cache line

TELLING, PLAIN, SQUARE = range(3)  # rows of x: as PA-I has it, as the softmax has it, and its squares for variances


# Rows of an attribute's cells, and how many there are; attribute 0 is the constant.
PA, MEAN, VARIANCE, LINEAR = range(4)

FIELDS = {
    "cells": Field(("row", LINEAR, "class"), (np.arange(LINEAR) == VARIANCE)[:, None], "", np.float32),
    "counts": Field(("row", "class"), dtype=np.float32),
    "frequency": Field(("column",)),  # how many instances had each attribute
    "totals": Field(("class",)),
    "met": Field(merge=""),  # how many attributes were met
    "trials": Field(),
    # workspace of one trial: a place for each of its attributes, and before them one for the constant
    "scaled": Field((LINEAR, "longest"), merge="", dtype=np.float32, saved=False),  # x: `TELLING`, `PLAIN`, `SQUARE`
    "rare": Field(("longest",), merge="", dtype=np.float32, saved=False),  # x weighted by idf, of length 1
    "logs": Field(("longest",), merge="", dtype=np.float32, saved=False),
    "sums": Field(("longest",), merge="", dtype=np.float32, saved=False),  # of the attribute's counts
    "places": Field((2, "longest"), merge="", dtype=np.int64, saved=False),  # where its counts begin, and its cells
    "class_logs": Field(("class",), merge="", dtype=np.float32, saved=False),
    "shares": Field((2, "class"), merge="", dtype=np.float32, saved=False),  # of all counts, and 1 / them
    "bayes": Field(("class",), merge="", dtype=np.float32, saved=False),  # scores of naive Bayes
    "odds": Field(("class",), merge="", dtype=np.float32, saved=False),  # log odds
    "scores": Field(
        (LINEAR, "class"), merge="", dtype=np.float32, saved=False
    ),  # of PA and the softmax, and its variances
    "steps": Field((2, "class"), merge="", dtype=np.float32, saved=False),
}
WordsT = struct_of(FIELDS).numba_type


@kernel(hot=True)
def fetch_row(table: np.ndarray, place: int, long: int) -> None:
    """Have ``long`` numbers ready soon."""
    for part in range(0, long, LINE):
        fetch(table, place + part)


@kernel(hot=True)
def attributes_of(indptr: np.ndarray, t: int) -> tuple[int, int]:
    """Return the range of a trial's attributes; nothing if there is no such trial."""
    return (indptr[t], indptr[t + 1]) if t + 1 < indptr.size else (0, 0)


@kernel(hot=True)
def one_over_root(square: float) -> np.float32:
    """Return the factor that gives a vector with this square the length 1."""
    return np.float32(1.0 / math.sqrt(square)) if square > 0.0 else np.float32(0.0)


@kernel(reorders=True)
def scale_sparse(m: Any, instances: Trials, t: int, learn: bool) -> int:
    """Write x into row ``PLAIN`` of ``scaled``, and into ``rare``; return how many attributes there are."""
    first, many = instances.indptr[t], instances.indptr[t + 1] - instances.indptr[t]
    plain, rare, counts_at, cells_at, width = m.scaled[PLAIN], m.rare, m.places[0], m.places[1], m.bayes.size
    frequency = m.frequency
    squash_row(m.scaled, PLAIN * plain.size + 1, instances.values, first, many)
    for j in range(many):
        column = instances.indices[first + j]
        count = frequency[column] + 1.0
        if learn:
            frequency[column] = count
        rare[j + 1] = count
        counts_at[j + 1] = (column + 1) * width
        cells_at[j + 1] = (column + 1) * LINEAR * width
    log_row(rare, 1, many)
    counts_at[0] = cells_at[0] = 0
    plain[0] = rare[0] = squash(instances.constant)
    rarity = np.float32(math.log(m.trials[0] + 2.0))
    for j in range(1, many + 1):
        rare[j] = plain[j] * (rarity - rare[j])
    length, rare_length = np.float32(0.0), np.float32(0.0)
    for j in range(many + 1):
        length += plain[j] * plain[j]
        rare_length += rare[j] * rare[j]
    shrink, rare_shrink = one_over_root(length), one_over_root(rare_length)
    for j in range(many + 1):
        rare[j] *= rare_shrink
        plain[j] *= shrink
    return many + 1


@kernel(reorders=True)
def weigh_by_telling(m: Any, size: int) -> None:
    """Write x as PA-I has it into row ``TELLING`` of ``scaled``, of length 1; and ``odds``."""
    counts, totals, rare, sums, logs, odds = m.counts, m.totals, m.rare, m.sums, m.logs, m.odds
    telling, shares, class_logs, counts_at, everything = m.scaled[TELLING], m.shares, m.class_logs, m.places[0], 0.0
    width = odds.size
    for c in range(width):
        everything += totals[c]
    for c in range(width):
        share = totals[c] / everything if everything > 0.0 else 0.0
        shares[0, c] = share if share > RAREST_CLASS else 0.0
        shares[1, c] = 1.0 / share if share > RAREST_CLASS else 0.0
    for j in range(size):
        logs[j] = sums[j] + np.float32(DOUBT)
    log_row(logs, 0, size)
    for c in range(width):
        odds[c] = 0.0
    length = np.float32(0.0)
    for j in range(size):
        mean = entropy_row(counts, counts_at[j], width, shares, np.float32(DOUBT), class_logs)
        divergence = mean / (sums[j] + np.float32(DOUBT)) - logs[j] if everything > 0.0 else np.float32(0.0)
        telling[j] = rare[j] * (max(divergence, np.float32(0.0)) + np.float32(LEAST_TELLING))
        length += telling[j] * telling[j]
        add_row(odds, class_logs, telling[j], width)
    shrink = one_over_root(length)
    for j in range(size):
        telling[j] *= shrink
    for c in range(width):
        odds[c] *= shrink


@kernel()
def score_bayes(m: Any, instances: Trials, t: int, size: int) -> np.float32:
    """Write scores but for what depends on the classes alone, and prefetch the next trial's counts; return sum |x|."""
    counts, frequency, rare, sums, bayes, counts_at = m.counts, m.frequency, m.rare, m.sums, m.bayes, m.places[0]
    width, amount = bayes.size, np.float32(0.0)
    coming, stop = attributes_of(instances.indptr, t + 1)
    for j in range(size):
        if coming + j < stop:
            fetch(frequency, instances.indices[coming + j])
            fetch_row(counts, width * (instances.indices[coming + j] + 1), width)
        sums[j] = sum_row(counts, counts_at[j], width)
        amount += abs(rare[j])
    for c in range(width):
        bayes[c] = 0.0
    add_log_rows(bayes, counts, counts_at, size, width, sums, np.float32(SMOOTHING), rare, 0)
    return amount


@kernel()
def learn_bayes(m: Any, indices: np.ndarray, first: int, size: int, label: int, weight: float, amount: float) -> None:
    """Count |x| times the weight of the trial."""
    counts, rare, width, factor = m.counts, m.rare, m.bayes.size, np.float32(weight)
    for j in range(size):
        if m.sums[j] == 0.0 and rare[j] != 0.0 and sum_row(counts, m.places[0, j], width) == 0.0:
            m.met[0] += 1.0
        column = indices[first + j - 1] + 1 if j else 0
        counts[column, label] += factor * abs(rare[j])
    m.totals[label] += factor * amount


def log_odds(counts: np.ndarray, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """KL + .1 of each row of counts, and log(p(c | f) / p(c)); ``totals`` are those of the classes."""
    shares = totals / max(float(totals.sum()), np.finfo(float).tiny)
    shares = np.where(shares > RAREST_CLASS, shares, 0.0)
    sums = counts.sum(axis=1, keepdims=True) + DOUBT
    sizes = np.divide(counts, shares, out=np.zeros_like(counts), where=shares > 0.0) + DOUBT
    logs = np.log(sizes / sums)
    return np.maximum((shares * sizes * logs / sums).sum(axis=1), 0.0) + LEAST_TELLING, logs


GROUP = 8  # attributes whose cells are asked for at a time


@kernel()
def score_linear(m: Any, instances: Trials, t: int, size: int) -> None:
    """Write the scores of PA and the softmax, and its variances; the next trial's cells are prefetched."""
    scores, scaled, cells = m.scores, m.scaled, m.cells
    width, plain, square = scores.shape[1], scaled[PLAIN], scaled[SQUARE]
    for j in range(size):
        square[j] = plain[j] * plain[j]
    for q in range(LINEAR):
        for c in range(width):
            scores[q, c] = 0.0
    coming, end = attributes_of(instances.indptr, t + 1)
    for lo in range(0, size, GROUP):
        hi = min(lo + GROUP, size)
        for j in range(coming + lo, min(coming + hi, end)):
            fetch_row(cells, LINEAR * width * (instances.indices[j] + 1), LINEAR * width)
        add_rows(scores, cells, m.places[1], lo, hi, width, scaled)


@kernel()
def learn_linear(m: Any, indices: np.ndarray, first: int, size: int, label: int, known: int, weight: float) -> None:
    """Take one step of PA, of which a weight is the C, and of the softmax.

    A class that is denied falls behind PA's best other one, which itself stays as it is.
    """
    scores, cells, cells_at = m.scores, m.cells, m.places[1]
    width, telling, plain = scores.shape[1], m.scaled[TELLING], m.scaled[PLAIN]
    wrong = DENIED - label if label < 0 else -1
    step, best = np.float32(0.0), best_rival(scores[PA], wrong if wrong >= 0 else label, known)
    if best >= 0:
        square = np.float32(0.0)
        for j in range(size):
            square += telling[j] * telling[j]
        lead = scores[PA, best] - scores[PA, wrong] if wrong >= 0 else scores[PA, label] - scores[PA, best]
        loss = np.float32(1.0) - lead
        if loss > 0.0 and square > 0.0:
            step = min(np.float32(weight), loss / (np.float32(2.0) * square))
    kalman_step(scores[MEAN], scores[VARIANCE], label, known, weight, m.steps)
    for j in range(size):
        place = cells_at[j]
        if step > 0.0:
            column = indices[first + j - 1] + 1 if j else 0
            if wrong < 0:
                cells[column, PA, label] += step * telling[j]
            cells[column, PA, wrong if wrong >= 0 else best] -= step * telling[j]
        shrink_row(cells, place + MEAN * width, place + VARIANCE * width, width, plain[j], m.steps)


@kernel(types.void(WordsT, TrialsT, boolean, SingleCube, int64))
def play_words(m: Any, given: Trials, learn: bool, votes: np.ndarray, member: int) -> None:
    """Score all trials by the four members, and let them learn; of a class denied the trial alone is counted."""
    totals, trials, scores = m.totals, m.trials, m.scores
    for t in range(given.labels.size):
        size, known = scale_sparse(m, given, t, learn), given.known[t]
        amount = score_bayes(m, given, t, size)
        weigh_by_telling(m, size)
        score_linear(m, given, t, size)
        everything = 0.0
        for c in range(totals.size):
            everything += totals[c]
        own = votes[t]
        for c in range(known):
            own[member, c], own[member + 1, c] = scores[0, c], scores[1, c]
            rest = everything - totals[c] + SMOOTHING * m.met[0]
            own[member + 2, c] = m.bayes[c] + amount * (math.log(rest) if rest > 0.0 else 0.0)
            own[member + 3, c] = m.odds[c]
        if not learn:
            continue
        label, weight, first = given.labels[t], given.weights[t], given.indptr[t]
        known = max(known, label + 1)
        if label >= 0:
            learn_bayes(m, given.indices, first, size, label, weight, amount)
        if known > 1:
            learn_linear(m, given.indices, first, size, label, known, weight)
        trials[0] += 1.0


ROOM = 16  # the share of rows that is spare, for attributes to come: one in 16


class SparseMembers(Group):
    """Linear members, which learn from mistakes, and generative ones, which count."""

    members = ("PA-I", "softmax", "naive Bayes", "log odds")
    sparse = True
    fields: ClassVar = FIELDS

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
        informative, odds = log_odds(counts, self.totals)
        telling = (rarity * informative)[:, None]
        return {
            "PA-I": cells[:, PA] * telling,
            "softmax": cells[:, MEAN],
            "naive Bayes": bayes * rarity[:, None],
            "log odds": odds[:, :k] * telling,
        }

    def mix(self, mixture: Mixture, width: int) -> None:
        """Become the mixture: PA-I by shares, the softmax by precision; what was counted adds up."""
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

    def play(self, task: Task, votes: np.ndarray, place: int) -> None:
        self.grow(longest=1 + int(longest_row(task.trials.indptr)))
        play_words(self.at_work(task.learn), task.trials, task.learn, votes, place)
