"""The compiled part of the second-order softmax: its trials as lists of ratings, and what one of them teaches."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import float64, int32, int64, types

from linmax.core.contract import EXPERTS, KNOWN, STRIDE, Indices, Instances, InstancesT, Labels, Matrix, Vector
from linmax.core.linear_max import top_two
from linmax.jit.blocks import add_times
from linmax.jit.compiling import kernel

__all__ = [
    "COUNT", "DUE", "FITTED", "RATINGS", "STORE", "TRIALS", "IntTable", "Store", "StoreT", "curve", "judge_all", "rate",
    "survey", "to_shares", "trust", "walk", "walk_diagonal",
]  # fmt: skip

STORE = 8192  # trials kept for refits; the older half is folded away when it is full
RATINGS = 2**20  # likewise ratings
KEEN = 128  # coordinates up to which the curvature is updated at every trial; beyond, at refits only
DULL = 1e-12  # a class less likely than this adds no curvature

Ints = int32[::1]
IntTable = int64[:, ::1]
TRIALS, DUE, FITTED, COUNT = range(4)  # of `sizes`: trials, those at the next refit and at the last, those stored


class Store(NamedTuple):
    """Trials as lists of ratings: coordinate ``place`` gives ``value`` to ``of``, a class that was known then."""

    starts: np.ndarray  # int64: trial t has the ratings starts[t]..starts[t + 1], those of a coordinate together
    places: np.ndarray  # int32
    of: np.ndarray  # int32
    values: np.ndarray
    labels: np.ndarray  # int32
    known: np.ndarray  # int32: classes known at each trial, its label included


StoreT = types.NamedTuple((Indices, Ints, Ints, Vector, Ints, Ints), Store)


@kernel()
def add_attribute(store: Store, at: int, row: int, known: int, value: float) -> int:
    """An attribute rates every class by its own sub-expert."""
    for c in range(known):
        store.places[at], store.of[at], store.values[at] = row + c, c, value
        at += 1
    return at


@kernel()
def write_out(instances: Instances, t: int, shape: np.ndarray, known: int, store: Store, at: int) -> int:
    """The ratings of instance t from ``at`` on; returns where they end."""
    voters = instances.signs.size
    for i in range(voters):
        if 0 <= instances.votes[t, i] < known:
            store.places[at], store.of[at], store.values[at] = i, instances.votes[t, i], instances.signs[i]
            at += 1
    for i in range(instances.scores.shape[1]):
        for c in range(known):
            store.places[at], store.of[at], store.values[at] = voters + i, c, instances.scores[t, i, c]
            at += 1
    row, stride, dense = shape[EXPERTS], shape[STRIDE], instances.dense.shape[1]
    if instances.constant != 0.0:
        at = add_attribute(store, at, row, known, instances.constant)
    row += stride
    for f in range(dense):
        at = add_attribute(store, at, row + f * stride, known, instances.dense[t, f])
    row += dense * stride
    if instances.indptr.size:
        for j in range(instances.indptr[t], instances.indptr[t + 1]):
            at = add_attribute(store, at, row + instances.indices[j] * stride, known, instances.values[j])
    return at


@kernel()
def rate(store: Store, lo: int, hi: int, weights: np.ndarray, scores: np.ndarray) -> None:
    """The scores w.x^c of the ratings lo..hi."""
    scores[:] = 0.0
    for j in range(lo, hi):
        scores[store.of[j]] += weights[store.places[j]] * store.values[j]


@kernel()
def to_shares(scores: np.ndarray, known: int, shares: np.ndarray) -> None:
    """exp(s_c) / sum of exp(s), over the known classes."""
    largest, total = scores[0], 0.0
    for c in range(1, known):
        largest = max(largest, scores[c])
    for c in range(known):
        shares[c] = math.exp(scores[c] - largest)
        total += shares[c]
    for c in range(known):
        shares[c] /= total


@kernel()
def trust(share: float, guess: float, known: int) -> float:
    """How likely a label of this probability is no guess."""
    if guess == 0.0:
        return 1.0
    return (1.0 - guess) * share / ((1.0 - guess) * share + guess / known)


@kernel()
def curve(
    store: Store,
    lo: int,
    hi: int,
    sure: float,
    shares: np.ndarray,
    mean: np.ndarray,
    chain: np.ndarray,
    curvature: np.ndarray,
) -> None:
    """Add sure * (sum_c P_c x^c x^c' - m m'), m = sum_c P_c x^c, to the lower half; ``mean`` is 0 before and after.

    The coordinates may come in any order, as those of attributes by name do.
    """
    last = chain[0]  # of each class, the rating met last
    for c in range(last.size):
        last[c] = -1
    for a in range(lo, hi):
        place, of, value = store.places[a], store.of[a], store.values[a]
        weighted = shares[of] * value
        mean[place] += weighted
        chain[1, a - lo] = last[of]
        last[of] = a - lo
        b = last[of]
        while b >= 0:
            other = store.places[lo + b]
            curvature[max(place, other), min(place, other)] += sure * weighted * store.values[lo + b]
            b = chain[1, b]
    for a in range(lo, hi):
        place = store.places[a]
        if a == lo or place != store.places[a - 1]:
            add_times(curvature[place], mean, -sure * mean[place], place + 1)
    for a in range(lo, hi):
        mean[store.places[a]] = 0.0


@kernel(float64(StoreT, int64, int64, Vector, float64, Vector, Matrix, Matrix, IntTable))
def survey(
    store: Store,
    begin: int,
    end: int,
    weights: np.ndarray,
    guess: float,
    gradient: np.ndarray,
    curvature: np.ndarray,
    room: np.ndarray,
    chain: np.ndarray,
) -> float:
    """Log likelihood of the stored trials begin..end; its gradient, and the lower half of its curvature, are added.

    The last of ``gradient`` receives the number of labels that were guesses, as far as can be told.
    """
    total, shares, mean = 0.0, room[1], room[2]
    for t in range(begin, end):
        lo, hi, label, known = store.starts[t], store.starts[t + 1], store.labels[t], store.known[t]
        scores = room[0][:known]
        rate(store, lo, hi, weights, scores)
        to_shares(scores, known, shares)
        sure = trust(shares[label], guess, known)
        gradient[-1] += 1.0 - sure
        total += math.log((1.0 - guess) * shares[label] + guess / known + 1e-300)
        for a in range(lo, hi):
            of, value = store.of[a], store.values[a]
            gradient[store.places[a]] += sure * ((1.0 if of == label else 0.0) - shares[of]) * value
        if sure * (1.0 - shares[label]) >= DULL or shares[label] <= 0.5:
            curve(store, lo, hi, sure, shares, mean, chain, curvature)
    return total


@kernel()
def add_curvature(
    store: Store, lo: int, hi: int, known: int, sure: float, shares: np.ndarray, spread: np.ndarray, room: np.ndarray
) -> None:
    """Add sum_c P_c (x^c - m)(x^c - m)', m the mean rating, to the matrix whose inverse is ``spread``."""
    n = spread.shape[0]
    mean, u, v = room[0], room[1], room[2]
    mean[:] = 0.0
    for j in range(lo, hi):
        mean[store.places[j]] += shares[store.of[j]] * store.values[j]
    for c in range(known):
        weight = sure * shares[c]
        if weight * (1.0 - shares[c]) < DULL:
            continue
        for i in range(n):
            u[i] = -mean[i]
            v[i] = 0.0
        for j in range(lo, hi):
            if store.of[j] == c:
                u[store.places[j]] += store.values[j]
        for i in range(n):
            if u[i] != 0.0:
                add_times(v, spread[i], u[i], n)
        product = 0.0
        for i in range(n):
            product += u[i] * v[i]
        factor = weight / (1.0 + weight * max(product, 0.0))  # below 0 by rounding
        for i in range(n):
            add_times(spread[i], v, -factor * v[i], n)


@kernel(
    int64(
        InstancesT, Labels, int64, int64, Indices, StoreT, int64, Indices, float64, Vector, Matrix, Matrix, int64,
        Labels, Matrix,
    )
)  # fmt: skip
def walk(
    instances: Instances,
    labels: np.ndarray,
    begin: int,
    end: int,
    shape: np.ndarray,
    store: Store,
    most: int,
    sizes: np.ndarray,
    guess: float,
    weights: np.ndarray,
    spread: np.ndarray,
    room: np.ndarray,
    origin: int,
    predictions: np.ndarray,
    table: np.ndarray,
) -> int:
    """Predict, store and learn trials begin..end, of at most ``most`` ratings each; returns where it stopped.

    Trials without a label, below 0, are only predicted. It stops after a trial at which a refit is due, or before one
    that the arrays have no room for.
    """
    n = weights.size
    gradient, shares = room[3], room[4]
    for t in range(begin, end):
        label, scores = labels[t], table[t - origin]
        stored = sizes[COUNT]
        lo = store.starts[stored]
        if stored == store.labels.size or lo + most > store.values.size:
            return t
        hi = write_out(instances, t, shape, shape[KNOWN], store, lo)
        rate(store, lo, hi, weights, scores)
        predictions[t - origin] = top_two(scores, shape)[0]
        if label < 0:
            continue
        if label >= shape[KNOWN]:
            shape[KNOWN] = label + 1
            hi = write_out(instances, t, shape, shape[KNOWN], store, lo)
            rate(store, lo, hi, weights, room[5][: scores.size])
            to_shares(room[5], shape[KNOWN], shares)
        else:
            to_shares(scores, shape[KNOWN], shares)
        known = shape[KNOWN]
        store.starts[stored + 1], store.labels[stored], store.known[stored] = hi, label, known
        sizes[COUNT] += 1
        sizes[TRIALS] += 1
        sure = trust(shares[label], guess, known)
        step = sure
        if n <= KEEN:
            add_curvature(store, lo, hi, known, sure, shares, spread, room)
        else:
            step *= max(1, sizes[FITTED]) / sizes[TRIALS]
        for j in range(lo, hi):
            gradient[store.places[j]] = 0.0
        for j in range(lo, hi):
            of = store.of[j]
            gradient[store.places[j]] += step * ((1.0 if of == label else 0.0) - shares[of]) * store.values[j]
        for j in range(lo, hi):
            place = store.places[j]
            slope = gradient[place]
            if slope != 0.0:
                gradient[place] = 0.0
                add_times(weights, spread[place], slope, n)
        if sizes[TRIALS] == sizes[DUE] or sizes[COUNT] == STORE or hi >= RATINGS:
            return t + 1
    return end


@kernel(
    types.void(
        InstancesT, Labels, int64, int64, Indices, StoreT, Vector, Vector, Vector, Matrix, types.boolean, Labels,
        Matrix,
    )
)  # fmt: skip
def walk_diagonal(
    instances: Instances,
    labels: np.ndarray,
    begin: int,
    end: int,
    shape: np.ndarray,
    store: Store,
    counts: np.ndarray,
    weights: np.ndarray,
    curvature: np.ndarray,
    room: np.ndarray,
    robust: bool,
    predictions: np.ndarray,
    table: np.ndarray,
) -> None:
    """The same with the diagonal of the curvature alone, and without a store but for the trial itself."""
    shares = room[0]
    for t in range(begin, end):
        label, scores = labels[t], table[t - begin]
        hi = write_out(instances, t, shape, shape[KNOWN], store, 0)
        rate(store, 0, hi, weights, scores)
        predictions[t - begin] = top_two(scores, shape)[0]
        if label < 0:
            continue
        if label >= shape[KNOWN]:
            shape[KNOWN] = label + 1
            hi = write_out(instances, t, shape, shape[KNOWN], store, 0)
            rate(store, 0, hi, weights, room[1][: scores.size])
            to_shares(room[1], shape[KNOWN], shares)
        else:
            to_shares(scores, shape[KNOWN], shares)
        sure = 1.0
        if robust:
            sure = trust(shares[label], counts[0] / (counts[0] + counts[1]), shape[KNOWN])
            counts[0] += 1.0 - sure
            counts[1] += sure
        j = 0
        while j < hi:
            place, right, mean, square = store.places[j], 0.0, 0.0, 0.0
            while j < hi and store.places[j] == place:
                of, value = store.of[j], store.values[j]
                mean += shares[of] * value
                square += shares[of] * value * value
                if of == label:
                    right = value
                j += 1
            curvature[place] += sure * max(0.0, square - mean * mean)
            weights[place] += sure * (right - mean) / curvature[place]


@kernel(types.void(InstancesT, int64, Indices, StoreT, Vector, Labels, Matrix))
def judge_all(
    instances: Instances,
    size: int,
    shape: np.ndarray,
    store: Store,
    weights: np.ndarray,
    predictions: np.ndarray,
    table: np.ndarray,
) -> None:
    """Predictions and scores without learning."""
    for t in range(size):
        hi = write_out(instances, t, shape, shape[KNOWN], store, 0)
        rate(store, 0, hi, weights, table[t])
        predictions[t] = top_two(table[t], shape)[0]
