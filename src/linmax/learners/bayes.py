"""Complement naive Bayes, online, for counts and other attributes >= 0.

With n_fc the sum of attribute f over the trials of class c, n_f = sum_c n_fc and N_c = sum_f n_fc, the score of class
c is how unlike it is to all others together:

    -sum_f x_f ln((n_f - n_fc + a) / (N - N_c + a V)),   V attributes seen so far.

Rennie, Shih, Teevan and Karger (2003), Tackling the poor assumptions of naive Bayes text classifiers. It is generative:
nothing is fitted to mistakes, so that it is good from the first trials on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numba import boolean, float64, types

from linmax.core.contract import Indices, Labels, Matrix, Trials, TrialsT, Vector
from linmax.core.linear_max import top_two
from linmax.data.arrays import Layout
from linmax.jit.compiling import kernel
from linmax.learners.base import Description, Field, Mixture, Running, WeightForm
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


class BayesCounts(NamedTuple):
    """Counts of attributes by class."""

    dense: np.ndarray  # (dense attributes, classes): n_fc
    sparse: np.ndarray  # (sparse attributes, classes): n_fc
    dense_seen: np.ndarray  # 1 for attributes that were not 0 in some trial
    sparse_seen: np.ndarray
    totals: np.ndarray  # (classes,): N_c
    seen: np.ndarray  # (1,): V


CountsT = types.NamedTuple((Matrix, Matrix, Vector, Vector, Vector, Vector), BayesCounts)


@kernel()
def count(value: float, f: int, label: int, counts: np.ndarray, seen: np.ndarray, total: np.ndarray) -> None:
    """Count one attribute of a trial."""
    total[0] += 1.0 - seen[f]
    seen[f] = 1.0
    counts[f, label] += value


@kernel(types.void(TrialsT, Indices, float64, CountsT, boolean, Labels, Matrix))
def play_bayes(
    trials: Trials,
    shape: np.ndarray,
    smoothing: float,
    counts: BayesCounts,
    learn: bool,
    predictions: np.ndarray,
    table: np.ndarray,
) -> None:
    """Predict, and learn, all trials."""
    dense, sparse, seen = trials.dense.shape[1], trials.indptr.size > 0, counts.seen
    for t in range(predictions.size):
        known, scores = trials.known[t], table[t]
        lo, hi = (trials.indptr[t], trials.indptr[t + 1]) if sparse else (0, 0)
        size = 0.0
        for f in range(dense):
            size += trials.dense[t, f]
        for j in range(lo, hi):
            size += trials.values[j]
        if seen[0] > 0.0:
            class_terms(counts.totals, seen[0], smoothing, known, size, scores)
            for f in range(dense):
                if trials.dense[t, f] != 0.0:
                    add_evidence(counts.dense[f], trials.dense[t, f], smoothing, known, scores)
            for j in range(lo, hi):
                add_evidence(counts.sparse[trials.indices[j]], trials.values[j], smoothing, known, scores)
        predictions[t] = top_two(scores, known, shape)[0]
        label = trials.labels[t]
        if not learn or label < 0:
            continue
        weight = trials.weights[t]
        counts.totals[label] += weight * size
        for f in range(dense):
            if trials.dense[t, f] != 0.0:
                count(weight * trials.dense[t, f], f, label, counts.dense, counts.dense_seen, seen)
        for j in range(lo, hi):
            count(weight * trials.values[j], trials.indices[j], label, counts.sparse, counts.sparse_seen, seen)


class RunningBayes(Running):
    """Complement naive Bayes at work."""

    takes_gaps = True
    fields: ClassVar = {
        "dense": Field(("dense", "class")),
        "sparse": Field(("sparse", "class")),
        "dense_seen": Field(("dense",), merge="max"),
        "sparse_seen": Field(("sparse",), merge="max"),
        "totals": Field(("class",)),
        "seen": Field(merge=""),
    }

    def __init__(self, smoothing: float) -> None:
        self.smoothing = smoothing

    def _fit(self, trials: Trials, k: int) -> None:
        """Make room for all attributes and classes of these trials."""
        if min(trials.dense.min(initial=0.0), trials.values.min(initial=0.0)) < 0.0:
            raise ValueError("naive-bayes needs attributes >= 0, such as counts; got a negative one; shift or drop it")
        sparse = int(trials.indices.max(initial=-1)) + 1
        spare = sparse // 2 if sparse > len(self.sparse) else 0
        self.grow(**{"dense": trials.dense.shape[1], "sparse": sparse + spare, "class": k})

    @property
    def counts(self) -> BayesCounts:
        """All the state, as the kernel takes it."""
        return BayesCounts(**self.arrays)

    def linear_form(self, layout: Layout, k: int) -> WeightForm:
        """Return the weights of its scores, ln((N - N_c + a V) / (n_f - n_fc + a)); 0 for attributes not yet seen."""
        dense, classes, a = layout.dense, len(self.totals), self.smoothing
        form = np.zeros((1 + dense + layout.sparse, k))
        rest = self.totals.sum() - self.totals + a * self.seen[0]
        for first, counts, seen in ((1, self.dense, self.dense_seen), (1 + dense, self.sparse, self.sparse_seen)):
            met = np.flatnonzero(seen)
            if met.size:
                logs = np.log(counts[met].sum(axis=1, keepdims=True) - counts[met] + a)
                form[first + met, :classes] = np.log(rest) - logs
        return WeightForm(np.zeros(0), form)

    def mix(self, mixture: Mixture) -> None:
        """Become the mixture: counts add up, so that this is what one that saw all trials would be."""
        parts = [part for part, _ in mixture.counted]
        sizes = {
            "dense": max(part.dense.size for part in parts),
            "sparse": max(int(part.sparse.max(initial=-1)) + 1 for part in parts),
            "class": mixture.k,
        }
        self.merge_fields(
            mixture, sizes, lambda part: {"dense": part.dense, "sparse": part.sparse, "class": part.classes}
        )
        self.seen[0] = self.dense_seen.sum() + self.sparse_seen.sum()

    def play(self, shape: np.ndarray, trials: Trials, k: int) -> tuple[np.ndarray, np.ndarray]:
        if not trials.dense.shape[1] and not trials.indptr.size:
            raise ValueError("naive-bayes learns from attributes, and these instances have none; use a rule or softmax")
        self._fit(trials, k)
        predictions, table = np.zeros(trials.size, np.int32), np.zeros((trials.size, k))
        play_bayes(trials, shape, self.smoothing, self.counts, True, predictions, table)
        return predictions, table

    def judge(self, shape: np.ndarray, trials: Trials, k: int) -> tuple[np.ndarray, np.ndarray]:
        kept = self.arrays
        self._fit(trials, k)
        predictions, table = np.zeros(trials.size, np.int32), np.zeros((trials.size, k))
        play_bayes(trials, shape, self.smoothing, self.counts, False, predictions, table)
        for name, array in kept.items():  # attributes that are only predicted from leave nothing behind
            setattr(self, name, array)
        return predictions, table


@dataclass(frozen=True)
class NaiveBayes(Description):
    """Description of complement naive Bayes; made by `linmax.learners.naive_bayes`."""

    smoothing: float
    name: ClassVar[str] = "naive-bayes"
    from_zero: ClassVar[bool] = False
    makes_room: ClassVar[tuple[bool, bool]] = (True, True)
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
    >>> trace = linmax.run("naive-bayes(0.1)", linmax.instances(attributes=texts), ["spam", "ham", "spam", "ham"])
    >>> trace.predictions.tolist()[2:]
    ['spam', 'ham']
    """
    return NaiveBayes(smoothing)
