"""Complement naive Bayes (a = .1) over sparse attributes, beside PA-I and AROW: generative, good from the first trials.

Rennie, Shih, Teevan and Karger (2003), Tackling the poor assumptions of naive Bayes text classifiers.
"""

from __future__ import annotations

import math

import numpy as np
from numba import boolean, int64, types

from linmax.core.contract import Indices, Instances, InstancesT, Labels, Vector
from linmax.jit.compiling import kernel
from linmax.jit.float_rows import add_log_rows, sum_row
from linmax.learners.members import Single, SingleCube, SingleMatrix
from linmax.learners.sparse_linear import attributes_of, fetch_row

__all__ = ["SMOOTHING", "play_bayes"]

SMOOTHING = 0.1


@kernel(
    types.void(
        InstancesT, Labels, Vector, int64, int64, int64, SingleMatrix, Vector, Single, Indices, Single, Single, boolean,
        SingleCube, int64,
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
    scaled: np.ndarray,
    places: np.ndarray,
    sums: np.ndarray,
    scores: np.ndarray,
    learn: bool,
    votes: np.ndarray,
    member: int,
) -> None:
    """Scores of naive Bayes at trials begin..end, and its learning: it counts |x| times the trial's weight.

    The last of ``totals`` is how many attributes were met. Of a trial that denies a class nothing is counted.
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
        if learn and labels[t] >= 0:
            label, weight = labels[t], np.float32(weights[t - begin])
            known = max(known, label + 1)
            for j in range(size):
                if sums[j] == 0.0 and scaled[at + j] != 0.0 and sum_row(counts, places[j], width) == 0.0:
                    totals[-1] += 1.0
                column = instances.indices[first + j - 1] + 1 if j else 0
                counts[column, label] += weight * abs(scaled[at + j])
            totals[label] += weight * amount
        at += size
