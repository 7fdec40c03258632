"""Sparse attributes as the members for words have them, and what counts tell: complement naive Bayes and log odds.

Attributes are taken as x = log(1 + v), the constant among them, of length 1. Naive Bayes has them weighted by inverse
document frequency, log((t + 2) / df), and a = .1: generative, good from the first trials. Its counts n_fc tell how much
an attribute says about the classes: the Kullback-Leibler divergence KL of p(c | f) = (n_fc + .3 p(c)) / (n_f + .3) from
p(c), the classes' shares of all counts. PA-I has attributes weighted by idf (KL + .1), and so has the member for log
odds: the sum of x_f log(p(c | f) / p(c)).

References
----------
Rennie, Shih, Teevan and Karger (2003), Tackling the poor assumptions of naive Bayes text classifiers. Sparck Jones
(1972): idf.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import boolean, int64, types

from linmax.core.contract import Indices, Instances, InstancesT, Labels, Vector
from linmax.data.scaling_rows import squash
from linmax.jit.compiling import kernel
from linmax.jit.float_rows import add_log_rows, add_row, entropy_row, log_row, squash_row, sum_row
from linmax.jit.prefetch import fetch
from linmax.learners.members import Single, SingleCube, SingleMatrix

__all__ = ["PLAIN", "SMOOTHING", "TELLING", "BayesRoom", "attributes_of", "fetch_row", "log_odds", "play_bayes"]

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


RoomT = types.NamedTuple(
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
        InstancesT, Labels, Vector, int64, int64, int64, SingleMatrix, Vector, Vector, Vector, RoomT, boolean,
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
    frequency: np.ndarray,
    trials: np.ndarray,
    room: BayesRoom,
    learn: bool,
    votes: np.ndarray,
    member: int,
) -> None:
    """Scores of naive Bayes and log odds at trials begin..end, and learning: |x| times the trial's weight is counted.

    The last of ``totals`` is how many attributes were met. x of all trials is left in ``scaled``. Of a trial that
    denies a class nothing but the trial is counted.
    """
    at, width = 0, counts.shape[1]
    for t in range(begin, end):
        size = scale_sparse(instances, t, at, trials[0], frequency, learn, room)
        amount = score_bayes(instances, t, size, counts, frequency, room)
        weigh_by_telling(at, size, counts, totals, room)
        everything = 0.0
        for c in range(totals.size - 1):
            everything += totals[c]
        for c in range(known):
            rest = everything - totals[c] + SMOOTHING * totals[-1]
            votes[t - begin, member, c] = room.scores[c] + amount * (math.log(rest) if rest > 0.0 else 0.0)
            votes[t - begin, member + 1, c] = room.odds[c]
        if learn and labels[t] < 0:
            trials[0] += 1.0
        elif learn:
            first, label, weight = instances.indptr[t], labels[t], np.float32(weights[t - begin])
            known = max(known, label + 1)
            for j in range(size):
                if room.sums[j] == 0.0 and room.rare[j] != 0.0 and sum_row(counts, room.places[j], width) == 0.0:
                    totals[-1] += 1.0
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
