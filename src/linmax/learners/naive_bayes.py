"""Complement naive Bayes, on-line, for counts and other attributes >= 0.

With n_fc the sum of attribute f over the trials of class c, n_f = sum_c n_fc and N_c = sum_f n_fc, the score of class
c is how unlike it is to all others together:

    -sum_f x_f ln((n_f - n_fc + a) / (N - N_c + a V)),   V attributes seen so far.

Rennie, Shih, Teevan and Karger (2003), Tackling the poor assumptions of naive Bayes text classifiers. It is generative:
nothing is fitted to mistakes, so that it is good from the first trials on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import boolean, float64, int64, types

from linmax.core.contract import KNOWN, Indices, Instances, InstancesT, Labels, Matrix, Vector
from linmax.core.linear_max import top_two
from linmax.jit.compiling import kernel
from linmax.learners.base import Description, Mixture, Running, spot_of
from linmax.util.checks import positive

__all__ = ["NaiveBayes", "naive_bayes"]


@kernel()
def class_terms(totals: np.ndarray, seen: float, smoothing: float, known: int, size: float, scores: np.ndarray) -> None:
    """size * ln(N - N_c + a V) for each known class, size = sum_f x_f."""
    everything = 0.0
    for c in range(known):
        everything += totals[c]
    for c in range(known):
        scores[c] = size * math.log(everything - totals[c] + smoothing * seen)


@kernel()
def add_evidence(row: np.ndarray, value: float, smoothing: float, known: int, scores: np.ndarray) -> None:
    """-x_f ln(n_f - n_fc + a), from the row of n_fc."""
    total = 0.0
    for c in range(known):
        total += row[c]
    for c in range(known):
        scores[c] -= value * math.log(total - row[c] + smoothing)


@kernel(types.void(InstancesT, Labels, int64, int64, Indices, float64, Matrix, Vector, boolean, Labels, Matrix))
def play_bayes(
    instances: Instances,
    labels: np.ndarray,
    begin: int,
    end: int,
    shape: np.ndarray,
    smoothing: float,
    counts: np.ndarray,
    totals: np.ndarray,
    learn: bool,
    predictions: np.ndarray,
    table: np.ndarray,
) -> None:
    """Trials begin..end. ``totals`` are N_c and, last, the attributes seen; a row of ``counts`` is n_f. and a mark."""
    dense, sparse = instances.dense.shape[1], instances.indptr.size > 0
    classes = totals.size - 1
    for t in range(begin, end):
        known, scores = shape[KNOWN], table[t - begin]
        lo, hi = (instances.indptr[t], instances.indptr[t + 1]) if sparse else (0, 0)
        size = 0.0
        for f in range(dense):
            size += instances.dense[t, f]
        for j in range(lo, hi):
            size += instances.values[j]
        if totals[classes] > 0.0:
            class_terms(totals, totals[classes], smoothing, known, size, scores)
            for f in range(dense):
                if instances.dense[t, f] != 0.0:
                    add_evidence(counts[f], instances.dense[t, f], smoothing, known, scores)
            for j in range(lo, hi):
                add_evidence(counts[dense + instances.indices[j]], instances.values[j], smoothing, known, scores)
        predictions[t - begin] = top_two(scores, shape)[0]
        if not learn:
            continue
        label = labels[t]
        if label >= known:
            shape[KNOWN] = label + 1
        totals[label] += size
        for f in range(dense):
            if instances.dense[t, f] != 0.0:
                totals[classes] += 1.0 - counts[f, classes]
                counts[f, classes] = 1.0
                counts[f, label] += instances.dense[t, f]
        for j in range(lo, hi):
            row = dense + instances.indices[j]
            totals[classes] += 1.0 - counts[row, classes]
            counts[row, classes] = 1.0
            counts[row, label] += instances.values[j]


class RunningBayes(Running):
    """State: the counts, with a last column that marks the attributes seen, and the classes' totals."""

    def __init__(self, smoothing: float) -> None:
        self.smoothing = smoothing
        self.counts, self.totals = np.zeros((0, 1)), np.zeros(1)
        self.dense = np.zeros(1, np.int64)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return {"counts": self.counts, "totals": self.totals, "dense": self.dense}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.counts, self.totals, self.dense = (arrays[name].copy() for name in ("counts", "totals", "dense"))

    def _fit(self, instances: Instances, k: int) -> None:
        """Make room for all attributes and classes of these instances; dense ones come first."""
        if min(instances.dense.min(initial=0.0), instances.values.min(initial=0.0)) < 0.0:
            raise ValueError("naive-bayes needs attributes >= 0, such as counts; got a negative one; shift or drop it")
        dense = instances.dense.shape[1]
        sparse = max(len(self.counts) - int(self.dense[0]), int(instances.indices.max(initial=-1)) + 1)
        self._make_room(dense, sparse + sparse // 2 if dense + sparse > len(self.counts) else sparse, k)

    def _make_room(self, dense: int, sparse: int, k: int) -> None:
        old, classes = int(self.dense[0]), len(self.totals) - 1
        if dense == old and dense + sparse == len(self.counts) and k == classes:
            return
        counts = np.zeros((dense + sparse, k + 1))
        columns = [*range(classes), k]
        counts[np.ix_(range(old), columns)] = self.counts[:old]
        counts[np.ix_(range(dense, dense + len(self.counts) - old), columns)] = self.counts[old:]
        totals = np.zeros(k + 1)
        totals[columns] = self.totals
        self.counts, self.totals, self.dense[0] = counts, totals, dense

    def linear_form(self, dense: int, sparse: int, k: int) -> np.ndarray:
        """Its scores are linear: ln((N - N_c + a V) / (n_f - n_fc + a)); 0 for attributes not yet met."""
        form, classes, own = np.zeros((1 + dense + sparse, k)), len(self.totals) - 1, int(self.dense[0])
        counts, a = self.counts[:, :classes], self.smoothing
        rest = self.totals[:classes].sum() - self.totals[:classes] + a * self.totals[classes]
        met = np.flatnonzero(self.counts[:, classes])
        logs = np.log(counts[met].sum(axis=1, keepdims=True) - counts[met] + a)
        rows = np.where(met < own, met, met - own + dense)
        if met.size:
            form[1 + rows, :classes] = np.log(rest) - logs
        return form

    def mix(self, mixture: Mixture) -> None:
        """Become the mixture: counts add up, so that this is what one that saw all trials would be."""
        sizes = [(part.dense.size, int(part.sparse.max(initial=-1)) + 1) for part, _ in mixture.counted]
        dense = max(size for size, _ in sizes)
        self._make_room(dense, max(size for _, size in sizes), mixture.k)
        for part, sign in mixture.counted:
            own, classes = int(part.state.dense[0]), len(part.state.totals) - 1
            columns = part.classes[:classes]
            counts = part.state.counts
            for rows, table in ((part.dense, counts[:own]), (dense + part.sparse, counts[own:])):
                rows, table = rows[: len(table)], table[: len(rows)]
                self.counts[spot_of(rows, columns)] += sign * table[:, : columns.size]
                self.counts[rows, -1] = np.maximum(self.counts[rows, -1], table[:, -1])
            self.totals[columns] += sign * part.state.totals[: columns.size]
        self.totals[-1] = self.counts[:, -1].sum()

    def play(
        self, shape: np.ndarray, instances: Instances, labels: np.ndarray, begin: int, end: int, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        if not instances.dense.shape[1] and not instances.indptr.size:
            raise ValueError("naive-bayes learns from attributes, and these instances have none; use a rule or softmax")
        self._fit(instances, k)
        predictions, table = np.zeros(end - begin, np.int32), np.zeros((end - begin, k))
        play_bayes(
            instances, labels, begin, end, shape, self.smoothing, self.counts, self.totals, True, predictions, table
        )
        return predictions, table

    def judge(self, shape: np.ndarray, instances: Instances, size: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        kept = self.counts, self.totals, int(self.dense[0])
        self._fit(instances, k)
        predictions, table = np.zeros(size, np.int32), np.zeros((size, k))
        none = np.zeros(0, np.int32)
        play_bayes(instances, none, 0, size, shape, self.smoothing, self.counts, self.totals, False, predictions, table)
        self.counts, self.totals, self.dense[0] = kept
        return predictions, table


@dataclass(frozen=True)
class NaiveBayes(Description):
    """Description of complement naive Bayes; made by `linmax.naive_bayes`."""

    smoothing: float
    name: ClassVar[str] = "naive-bayes"
    from_zero: ClassVar[bool] = False
    makes_room: ClassVar[bool] = True
    unmixable: ClassVar[str] = ""

    def __post_init__(self) -> None:
        positive("smoothing", self.smoothing, 0.1)

    def start(self, size: int) -> Running:
        return RunningBayes(float(self.smoothing))


def naive_bayes(smoothing: float = 0.1) -> NaiveBayes:
    """Complement naive Bayes over attributes >= 0, such as word counts; voters and raters are not looked at.

    The score of class c is -sum_f x_f ln((n_f - n_fc + a) / (N - N_c + a V)): n_fc is the sum of attribute f over the
    trials of class c, n_f and N_c its sums over classes and attributes, V the number of attributes seen.

    Parameters
    ----------
    smoothing
        a > 0, added to every count.

    References
    ----------
    Rennie, Shih, Teevan and Karger (2003), Tackling the poor assumptions of naive Bayes text classifiers.

    Examples
    --------
    >>> import linmax
    >>> texts = [{"cheap": 1, "pills": 1}, {"lunch": 1, "today": 1}, {"cheap": 2}, {"today": 1}]
    >>> trace = linmax.run("naive-bayes(0.1)", linmax.experts(attributes=texts), ["spam", "ham", "spam", "ham"])
    >>> trace.predictions.tolist()[2:]
    ['spam', 'ham']
    """
    return NaiveBayes(smoothing)
