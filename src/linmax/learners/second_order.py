"""Second-order softmax over sub-experts, plain and with a learned guess rate.

Class j has probability P_j = exp(w.x^j) / sum_i exp(w.x^i): the conditional logit of McFadden (1974). All classes
speak at once, so this is not of the form f(w, z), and no mistake bound is lifted to it. Nor is a bound on its log loss
known: see the notes of `softmax`.

Between refits each trial is a Kalman step (the curvature of its log loss is added, then one Newton step on its
gradient). At trials 10, 15, 22, 33, ... Newton steps with a line search refit all stored trials. Old trials are
folded into a Gaussian when the store is full, so that nothing grows with the stream.

The robust form takes a label for a guess with probability e: P(y) = (1 - e) P_y + e / k. Each trial then counts as
much as it is likely to be no guess, and e is learned by expectation maximisation at each refit. Under label noise log
loss alone is drawn to the worst trials; this is not.

The compiled part of the second-order softmax: its trials as lists of ratings, and what one of them teaches.

The second-order softmax at work: its state, its refits, and the folding of old trials into a Gaussian.

Mixtures of softmaxes that learned separately: what each learned from its trials, as a Gaussian, added up.

The trials that a softmax keeps for its refits are folded into its Gaussian, as old ones are in any case.
With the prior precision r, one of precision P and pull b has learned
P - r and b. These add up over the parts whatever their shares, that of a common base once; the guess rate comes from
counts, which add up too. So merging a second and a third model one after the other is merging all three.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numba import boolean, float64, int64, types

from linmax.core.contract import EXPERTS, STRIDE, Indices, Labels, Matrix, Trials, TrialsT, Vector
from linmax.core.linear_max import longest_row, top_two
from linmax.data.arrays import Layout
from linmax.jit.compiling import kernel
from linmax.jit.small_matrices import add_times
from linmax.learners.base import Description, Field, Running, struct_of
from linmax.util.blas import one_blas_thread
from linmax.util.checks import positive
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import linalg
else:
    linalg = LazyModule("scipy.linalg")

__all__ = [
    "COUNT",
    "DUE",
    "FITTED",
    "RATINGS",
    "STORE",
    "TRIALS",
    "IntTable",
    "PlacedSoftmax",
    "RobustSoftmax",
    "RunningSoftmax",
    "Softmax",
    "SoftmaxT",
    "curve",
    "definite",
    "mix_softmaxes",
    "moved_to",
    "rate",
    "robust_softmax",
    "softmax",
    "survey",
    "symmetric",
    "to_shares",
    "trust",
    "walk",
    "walk_diagonal",
]


FIRST = 10  # the trial of the first refit; each later one comes after half as many trials again
FULL = 1024  # coordinates up to which the curvature is a full matrix; beyond, its diagonal, and no refits
NEWTON_STEPS = 20  # most Newton steps of a refit
LEAST_GAIN = 0.02  # a step that gains less log likelihood than this is the last
ENOUGH = 1e-4  # share of the promised gain with which a step is content
SHORTEST_STEP = 1e-3  # share of a Newton step below which the search gives up
ASTRAY = 10.0  # steps on rows of very different sizes can lead so far below ignorance: then a refit begins at 0
EPSILON = float(np.finfo(float).eps)
TOO_LARGE = "the scores of softmax left the range of floats; scale the instances down"
GUESSES, OTHERS = 1.0, 9.0  # trials taken to have been seen, guessed and not, before the first: e starts at .1
IntTable = int64[:, ::1]
STORE = 8192  # trials kept for refits; the older half is folded away when it is full
RATINGS = 2**20  # likewise ratings
KEEN = 128  # coordinates up to which the curvature is updated at every trial; beyond, at refits only
DULL = 1e-12  # a class less likely than this adds no curvature

TRIALS, DUE, FITTED, COUNT = range(4)  # of `sizes`: trials, those at the next refit and at the last, those stored

# Trials as lists of ratings: coordinate ``places`` gives ``values`` to ``of``, a class that was known then.
STORED = {
    "starts": Field(("start",), merge="", dtype=np.int64),  # trial t has the ratings starts[t]..starts[t + 1], those
    # of a coordinate together
    "places": Field(("rating",), merge="", dtype=np.int32),
    "of": Field(("rating",), merge="", dtype=np.int32),
    "values": Field(("rating",), merge=""),
    "labels": Field(("trial",), merge="", dtype=np.int32),
    "known": Field(("trial",), merge="", dtype=np.int32),  # classes known at each trial, its label included
    "amounts": Field(("trial",), merge=""),  # how much each trial counts
}


# All arrays. The curvature is a full matrix over "square", or a diagonal over "line".
FIELDS = STORED | {
    "weights": Field(("coordinate",), merge=""),
    "sizes": Field((4,), [0, FIRST, 0, 0], "", np.int64),
    "counts": Field((2,), [GUESSES, OTHERS], ""),  # labels guessed and not, in trials that are folded away
    "guess": Field(merge=""),  # the guess rate
    "spread": Field(("square", "square"), merge=""),  # the inverse of the precision, all trials included
    "precision": Field(("square", "square"), merge=""),  # of the prior and of trials that are folded away
    "pull": Field(("square",), merge=""),  # precision times weights, likewise
    "curvature": Field(("line",), merge=""),
    "vectors": Field((6, "longest"), merge="", saved=False),
}
SoftmaxT = struct_of(FIELDS).numba_type


@kernel()
def add_attribute(m: Any, at: int, row: int, known: int, value: float) -> int:
    """An attribute rates every class by its own sub-expert."""
    places, of, values = m.places, m.of, m.values
    for c in range(known):
        places[at], of[at], values[at] = row + c, c, value
        at += 1
    return at


@kernel()
def write_out(trials: Trials, t: int, shape: np.ndarray, known: int, m: Any, at: int) -> int:
    """The ratings of instance t from ``at`` on; returns where they end."""
    voters, places, of, values = trials.signs.size, m.places, m.of, m.values
    for i in range(voters):
        if 0 <= trials.votes[t, i] < known:
            places[at], of[at], values[at] = i, trials.votes[t, i], trials.signs[i]
            at += 1
    for i in range(trials.scores.shape[1]):
        for c in range(known):
            places[at], of[at], values[at] = voters + i, c, trials.scores[t, i, c]
            at += 1
    row, stride, dense = shape[EXPERTS], shape[STRIDE], trials.dense.shape[1]
    if trials.constant != 0.0:
        at = add_attribute(m, at, row, known, trials.constant)
    row += stride
    for f in range(dense):
        at = add_attribute(m, at, row + f * stride, known, trials.dense[t, f])
    row += dense * stride
    if trials.indptr.size:
        for j in range(trials.indptr[t], trials.indptr[t + 1]):
            at = add_attribute(m, at, row + trials.indices[j] * stride, known, trials.values[j])
    return at


@kernel()
def rate(m: Any, lo: int, hi: int, weights: np.ndarray, scores: np.ndarray) -> None:
    """The scores w.x^c of the ratings lo..hi."""
    places, of, values = m.places, m.of, m.values
    scores[:] = 0.0
    for j in range(lo, hi):
        scores[of[j]] += weights[places[j]] * values[j]


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
    """Return the probability that a label of this probability is no guess."""
    if guess == 0.0:
        return 1.0
    return (1.0 - guess) * share / ((1.0 - guess) * share + guess / known)


@kernel()
def curve(
    m: Any, lo: int, hi: int, sure: float, shares: np.ndarray, mean: np.ndarray, chain: np.ndarray,
    curvature: np.ndarray,
) -> None:  # fmt: skip
    """Add sure * (sum_c P_c x^c x^c' - m m'), m = sum_c P_c x^c, to the lower half; ``mean`` is 0 before and after.

    The coordinates may come in any order, as those of attributes by name do.
    """
    last, places, values = chain[0], m.places, m.values  # of each class, the rating met last
    for c in range(last.size):
        last[c] = -1
    for a in range(lo, hi):
        place, of, value = places[a], m.of[a], values[a]
        weighted = shares[of] * value
        mean[place] += weighted
        chain[1, a - lo] = last[of]
        last[of] = a - lo
        b = last[of]
        while b >= 0:
            other = places[lo + b]
            curvature[max(place, other), min(place, other)] += sure * weighted * values[lo + b]
            b = chain[1, b]
    for a in range(lo, hi):
        place = places[a]
        if a == lo or place != places[a - 1]:
            add_times(curvature[place], mean, -sure * mean[place], place + 1)
    for a in range(lo, hi):
        mean[places[a]] = 0.0


@kernel(float64(SoftmaxT, int64, int64, Vector, float64, Vector, Matrix, Matrix, IntTable))
def survey(
    m: Any,
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

    The last of ``gradient`` receives the number of labels that were guesses, as far as is known.
    """
    total, shares, mean = 0.0, room[1], room[2]
    for t in range(begin, end):
        lo, hi, label, known, amount = m.starts[t], m.starts[t + 1], m.labels[t], m.known[t], m.amounts[t]
        scores = room[0][:known]
        rate(m, lo, hi, weights, scores)
        to_shares(scores, known, shares)
        sure = trust(shares[label], guess, known)
        gradient[-1] += amount * (1.0 - sure)
        total += amount * math.log((1.0 - guess) * shares[label] + guess / known + 1e-300)
        sure *= amount
        for a in range(lo, hi):
            of, value = m.of[a], m.values[a]
            gradient[m.places[a]] += sure * ((1.0 if of == label else 0.0) - shares[of]) * value
        if sure * (1.0 - shares[label]) >= DULL or shares[label] <= 0.5:
            curve(m, lo, hi, sure, shares, mean, chain, curvature)
    return total


@kernel()
def add_curvature(m: Any, lo: int, hi: int, known: int, sure: float, shares: np.ndarray) -> None:
    """Add sum_c P_c (x^c - m)(x^c - m)', m the mean rating, to the matrix whose inverse is ``spread``."""
    places, of, values, spread = m.places, m.of, m.values, m.spread
    n, mean, u, v = spread.shape[0], m.vectors[0], m.vectors[1], m.vectors[2]
    mean[:] = 0.0
    for j in range(lo, hi):
        mean[places[j]] += shares[of[j]] * values[j]
    for c in range(known):
        weight = sure * shares[c]
        if weight * (1.0 - shares[c]) < DULL:
            continue
        for i in range(n):
            u[i] = -mean[i]
            v[i] = 0.0
        for j in range(lo, hi):
            if of[j] == c:
                u[places[j]] += values[j]
        for i in range(n):
            if u[i] != 0.0:
                add_times(v, spread[i], u[i], n)
        product = 0.0
        for i in range(n):
            product += u[i] * v[i]
        factor = weight / (1.0 + weight * max(product, 0.0))  # below 0 by rounding
        for i in range(n):
            add_times(spread[i], v, -factor * v[i], n)


@kernel()
def predict(m: Any, trials: Trials, t: int, shape: np.ndarray, lo: int, table: np.ndarray) -> tuple[int, int]:
    """Write the ratings of trial t from ``lo`` on and its scores into ``table``; return the class and where they end.

    A label of a class that was not known makes it known, and then they are written again. ``vectors[5]`` receives the
    scores of all classes known by then.
    """
    best, answered, scores, known = -1, False, m.vectors[5][: table.size], trials.known[t]
    while True:
        hi = write_out(trials, t, shape, known, m, lo)
        rate(m, lo, hi, m.weights, scores)
        if not answered:
            for c in range(table.size):
                table[c] = scores[c]
            best, answered = top_two(table, known, shape)[0], True
        if trials.labels[t] < known:
            return best, hi
        known = trials.labels[t] + 1


@kernel(int64(SoftmaxT, TrialsT, int64, Indices, int64, boolean, Labels, Matrix))
def walk(
    m: Any,
    trials: Trials,
    begin: int,
    shape: np.ndarray,
    most: int,
    learn: bool,
    predictions: np.ndarray,
    table: np.ndarray,
) -> int:
    """Predict, store and learn the trials from ``begin`` on, of at most ``most`` ratings each; return where it stopped.

    Trials without a label are only predicted. It stops after a trial at which a refit is due, or before one that the
    arrays have no room for.
    """
    weights, spread, sizes, guess = m.weights, m.spread, m.sizes, m.guess[0]
    places, of, values, gradient, shares = m.places, m.of, m.values, m.vectors[3], m.vectors[4]
    n, labels = weights.size, trials.labels
    for t in range(begin, predictions.size):
        label, stored = labels[t], sizes[COUNT]
        lo = m.starts[stored]
        if stored == m.labels.size or lo + most > values.size:
            return t
        predictions[t], hi = predict(m, trials, t, shape, lo, table[t])
        if label < 0 or not learn:
            continue
        known = max(trials.known[t], np.int64(label) + 1)
        to_shares(m.vectors[5], known, shares)
        m.starts[stored + 1], m.labels[stored], m.known[stored] = hi, label, known
        sizes[COUNT] += 1
        sizes[TRIALS] += 1
        m.amounts[stored] = trials.weights[t]
        sure = trials.weights[t] * trust(shares[label], guess, known)
        step = sure
        if n <= KEEN:
            add_curvature(m, lo, hi, known, sure, shares)
        else:
            step *= max(1, sizes[FITTED]) / sizes[TRIALS]
        for j in range(lo, hi):
            gradient[places[j]] = 0.0
        for j in range(lo, hi):
            gradient[places[j]] += step * ((1.0 if of[j] == label else 0.0) - shares[of[j]]) * values[j]
        for j in range(lo, hi):
            place = places[j]
            slope = gradient[place]
            if slope != 0.0:
                gradient[place] = 0.0
                add_times(weights, spread[place], slope, n)
        if sizes[TRIALS] == sizes[DUE] or sizes[COUNT] == STORE or hi >= RATINGS:
            return t + 1
    return predictions.size


@kernel(types.void(SoftmaxT, TrialsT, Indices, boolean, Labels, Matrix))
def walk_diagonal(
    m: Any,
    trials: Trials,
    shape: np.ndarray,
    robust: bool,
    predictions: np.ndarray,
    table: np.ndarray,
) -> None:
    """Take Newton steps with the diagonal of the curvature, on the present trial alone."""
    weights, curvature, counts, shares = m.weights, m.curvature, m.counts, m.vectors[4]
    places, of, values, labels = m.places, m.of, m.values, trials.labels
    for t in range(predictions.size):
        label = labels[t]
        predictions[t], hi = predict(m, trials, t, shape, 0, table[t])
        if label < 0:
            continue
        known = max(trials.known[t], np.int64(label) + 1)
        to_shares(m.vectors[5], known, shares)
        sure, amount = 1.0, trials.weights[t]
        if robust:
            sure = trust(shares[label], counts[0] / (counts[0] + counts[1]), known)
            counts[0] += amount * (1.0 - sure)
            counts[1] += amount * sure
        sure *= amount
        j = 0
        while j < hi:
            place, right, mean, square = places[j], 0.0, 0.0, 0.0
            while j < hi and places[j] == place:
                value = values[j]
                mean += shares[of[j]] * value
                square += shares[of[j]] * value * value
                if of[j] == label:
                    right = value
                j += 1
            curvature[place] += sure * max(0.0, square - mean * mean)
            weights[place] += sure * (right - mean) / curvature[place]


def stage_of(size: int) -> tuple[bool, bool]:
    """Return whether the curvature over this many coordinates is a full matrix, and updated at every trial."""
    return size <= FULL, size <= KEEN


def most_ratings(trials: Trials, k: int) -> int:
    """Most ratings that one of these trials can have."""
    attributes = 1 + trials.dense.shape[1] + longest_row(trials.indptr)
    return trials.signs.size + k * (trials.scores.shape[1] + attributes)


def symmetric(lower: np.ndarray) -> np.ndarray:
    """The matrix whose lower half this is."""
    return np.tril(lower) + np.tril(lower, -1).T


def factored(matrix: np.ndarray) -> tuple[np.ndarray, bool]:
    """A Cholesky factor, as `scipy.linalg.cho_factor` gives it, of a matrix whose lower half this is.

    Where numbers of very different sizes leave it indefinite by rounding, as little as is needed is added to its
    diagonal, relative to that.
    """
    if not np.isfinite(matrix).all():
        raise OverflowError(TOO_LARGE)
    try:
        return linalg.cho_factor(matrix, lower=True)
    except np.linalg.LinAlgError:
        sizes = np.sqrt(np.maximum(np.diag(matrix), EPSILON * np.abs(np.tril(matrix)).max(axis=1)))
        scaled, ridge = matrix / sizes / sizes[:, None], EPSILON
    while True:
        try:
            factor, lower = linalg.cho_factor(scaled + ridge * np.eye(len(scaled)), lower=True)
            return factor * sizes[:, None], lower
        except np.linalg.LinAlgError:
            ridge *= 10.0


class RunningSoftmax(Running):
    """State of a softmax: weights, their curvature or its inverse, and the stored trials."""

    fields: ClassVar = FIELDS
    takes_gaps = True
    weights: np.ndarray
    spread: np.ndarray
    precision: np.ndarray
    curvature: np.ndarray

    def __init__(self, prior: float, robust: bool, size: int) -> None:
        self.prior, self.robust = prior, robust
        self.guess[0] = GUESSES / (GUESSES + OTHERS) if robust else 0.0
        whole = size if size <= FULL else 0
        self.grow(coordinate=size, square=whole, line=size - whole, start=1)
        self.curvature[:] = prior
        np.fill_diagonal(self.spread, 1.0 / prior)
        np.fill_diagonal(self.precision, prior)

    @property
    def full(self) -> bool:
        """True if the curvature is a full matrix."""
        return not self.curvature.size

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        count = int(self.sizes[COUNT])
        used = {"start": count + 1, "trial": count, "rating": int(self.starts[count])}
        stored = {name: getattr(self, name)[: used[str(field.axes[0])]] for name, field in STORED.items()}
        return super().arrays | stored

    def stage(self, layout: Layout, k: int, size: int) -> Hashable:
        return stage_of(size)

    def hypothesis(self) -> np.ndarray:
        return self.weights.copy()

    def play(self, shape: np.ndarray, trials: Trials, k: int) -> tuple[np.ndarray, np.ndarray]:
        predictions, table = np.zeros(trials.size, np.int32), np.zeros((trials.size, k))
        most = most_ratings(trials, k)
        t = 0
        while t < trials.size:
            self._make_room(most, k)
            if self.full:
                t = walk(self.struct, trials, t, shape, most, True, predictions, table)
            else:
                walk_diagonal(self.struct, trials, shape, self.robust, predictions, table)
                t = trials.size
            if not np.isfinite(self.weights).all():
                raise OverflowError(TOO_LARGE)
            learned, due, _, count = self.sizes
            full = count == STORE or self.starts[count] >= RATINGS
            if full or learned == due:
                self._refit()
            if learned == due:
                self.sizes[DUE] += due // 2
            if full:
                self.fold(int(count) // 2)
        return predictions, table

    def judge(self, shape: np.ndarray, trials: Trials, k: int) -> tuple[np.ndarray, np.ndarray]:
        most = most_ratings(trials, k)
        axes = {"start": 2, "trial": 1, "rating": most, "longest": max(self.weights.size, k)}
        empty = {name: FIELDS[name].filled(axes) for name in (*STORED, "sizes", "vectors")}
        predictions, table = np.zeros(trials.size, np.int32), np.zeros((trials.size, k))
        walk(self.reader(**empty), trials, 0, shape, most, False, predictions, table)
        return predictions, table

    def rate(self, shape: np.ndarray, trials: Trials, k: int) -> np.ndarray:
        """Return the scores of `judge`, in half the time, where no other thread does the same."""
        most = most_ratings(trials, k)
        self._make_room(most, k)
        predictions, table = np.zeros(trials.size, np.int32), np.zeros((trials.size, k))
        walk(self.struct, trials, 0, shape, most, False, predictions, table)
        return table

    def _make_room(self, most: int, k: int) -> None:
        """Enlarge the store for at least one more trial, and the workspace for k classes."""
        if self.vectors.shape[1] < max(self.weights.size, k):
            self.grow(longest=max(self.weights.size, k))
        count = int(self.sizes[COUNT])
        used = int(self.starts[count])
        if count == self.labels.size or used + most > self.values.size:
            trials = max(self.labels.size, min(STORE, 2 * count + 64))
            self.grow(start=trials + 1, trial=trials, rating=2 * (used + most))

    def _survey(self, begin: int, end: int, weights: np.ndarray, guess: float) -> tuple[float, np.ndarray, np.ndarray]:
        """Log likelihood, its gradient (with the number of guesses after it) and the lower half of its curvature."""
        n, k = len(weights), int(self.known.max(initial=1))
        gradient, curvature = np.zeros(n + 1), np.zeros((n, n))
        longest = longest_row(self.starts[begin : end + 1])
        room, chain = np.zeros((3, max(n, k))), np.zeros((2, max(k, longest)), np.int64)
        likelihood = survey(self.struct, begin, end, weights, guess, gradient, curvature, room, chain)
        return likelihood, gradient, curvature

    def _posterior(self, weights: np.ndarray, guess: float) -> tuple[float, np.ndarray, np.ndarray]:
        """Precision and pull of the posterior over all trials."""
        value, gradient, curvature = self._survey(0, int(self.sizes[COUNT]), weights, guess)
        drawn = self.precision @ weights
        value += float(self.pull @ weights - 0.5 * weights @ drawn)
        value += self._guessed(guess)
        gradient[:-1] += self.pull - drawn
        if not math.isfinite(value):
            raise OverflowError(TOO_LARGE)
        return value, gradient, curvature + self.precision

    def _ignorance(self, guess: float) -> float:
        """The posterior, as a logarithm, where all weights are 0."""
        count = self.sizes[COUNT]
        value = -float(self.amounts[:count] @ np.log(self.known[:count]))
        return value + self._guessed(guess)

    def _guessed(self, guess: float) -> float:
        """Return the counts of guesses in trials that are folded away."""
        return float(self.counts[0] * math.log(guess) + self.counts[1] * math.log1p(-guess)) if self.robust else 0.0

    def _refit(self) -> None:
        """Newton steps with a line search on the stored trials; the guess rate by expectation maximisation."""
        if not self.weights.size:  # there is nobody to weigh yet
            self.sizes[FITTED] = self.sizes[TRIALS]
            return
        with one_blas_thread():
            weights, guess = self.weights, float(self.guess[0])
            value, gradient, curvature = self._posterior(weights, guess)
            if value < ASTRAY * self._ignorance(guess):
                weights = np.zeros_like(weights)
                value, gradient, curvature = self._posterior(weights, guess)
            for _ in range(NEWTON_STEPS):
                direction = linalg.cho_solve(factored(curvature), gradient[:-1])
                slope, length, before = float(gradient[:-1] @ direction), 1.0, value
                if self.robust:
                    amount = self.counts.sum() + self.amounts[: self.sizes[COUNT]].sum()
                    guess = float((self.counts[0] + gradient[-1]) / amount)
                while length > SHORTEST_STEP:
                    tried = self._posterior(weights + length * direction, guess)
                    if tried[0] >= value + ENOUGH * length * slope:
                        break
                    length /= 2.0
                else:
                    break
                weights = weights + length * direction
                value, gradient, curvature = tried
                self.guess[0] = guess
                if value - before < LEAST_GAIN:
                    break
            self.weights = weights
            inverse, _ = linalg.lapack.dpotri(factored(curvature)[0], lower=1)
            self.spread = symmetric(inverse)
        self.sizes[FITTED] = self.sizes[TRIALS]

    def fold(self, count: int) -> None:
        """Replace the oldest trials by the parabola that touches their log likelihood here."""
        _, gradient, curvature = self._survey(0, count, self.weights, float(self.guess[0]))
        curvature = symmetric(curvature)
        with one_blas_thread():
            self.pull += curvature @ self.weights + gradient[:-1]
        self.precision += curvature
        self.counts += gradient[-1], self.amounts[:count].sum() - gradient[-1]
        first, last = int(self.starts[count]), int(self.starts[self.sizes[COUNT]])
        kept = int(self.sizes[COUNT]) - count
        self.starts[: kept + 1] = self.starts[count : count + kept + 1] - first
        for array in (self.places, self.of, self.values):
            array[: last - first] = array[first:last]
        for array in (self.labels, self.known, self.amounts):
            array[:kept] = array[count : count + kept]
        self.sizes[COUNT] = kept

    def move(self, moved: Callable[[np.ndarray], np.ndarray]) -> None:
        places = moved(np.arange(1.0, self.weights.size + 1.0))
        whole = self.full and places.size <= FULL
        if self.full and not whole:
            self.curvature = np.diag(self._posterior(self.weights, float(self.guess[0]))[2])
            self.spread = self.precision = np.zeros((0, 0))
            self.pull, self.sizes[COUNT] = np.zeros(0), 0
        self.weights = moved(self.weights)
        new = np.flatnonzero(places == 0.0)
        if not whole:
            self.curvature = moved(self.curvature)
            self.curvature[new] = self.prior
            return
        self.pull = moved(self.pull)
        for name, value in (("spread", 1.0 / self.prior), ("precision", self.prior)):
            matrix = moved(np.ascontiguousarray(moved(getattr(self, name)).T)).T
            matrix[new, new] = value
            setattr(self, name, matrix)
        old = np.zeros(self.weights.size, np.int32)
        old[places[places > 0.0].astype(np.int64) - 1] = np.flatnonzero(places > 0.0)
        used = slice(int(self.starts[self.sizes[COUNT]]))
        self.places[used] = old[self.places[used]]


class PlacedSoftmax(NamedTuple):
    """A softmax, and the places of its coordinates among those of all together."""

    running: RunningSoftmax
    places: np.ndarray


def mix_softmaxes(parts: Sequence[PlacedSoftmax], base: PlacedSoftmax | None, size: int) -> RunningSoftmax:
    """One softmax over ``size`` coordinates; parts and base stay as they are."""
    first = parts[0].running
    mixed = RunningSoftmax(first.prior, first.robust, size)
    signs = [1.0] * len(parts) + ([] if base is None else [1.0 - len(parts)])
    trials = 0
    learned, pull = np.zeros((size,) * (1 + mixed.full)), np.zeros(size)
    counts = np.array([GUESSES, OTHERS])
    for sign, (running, places) in zip(signs, [*parts, *([] if base is None else [base])], strict=True):
        information, pulled, guesses = _learned(running, mixed.full)
        learned[np.ix_(places, places) if mixed.full else places] += sign * information
        pull[places] += sign * pulled
        counts += sign * guesses
        trials += round(sign * int(running.sizes[TRIALS]))
    with one_blas_thread():
        if base is not None:
            learned = definite(learned)
        if mixed.full:
            mixed.precision += learned
            mixed.pull = pull
            mixed.spread = np.asarray(np.linalg.inv(mixed.precision), float)
            mixed.weights = np.asarray(np.linalg.solve(mixed.precision, pull), float)
        else:
            mixed.curvature += learned
            mixed.weights = pull / mixed.curvature
    mixed.counts = np.maximum(counts, 0.0)
    if mixed.robust:
        mixed.guess[0] = mixed.counts[0] / mixed.counts.sum()
    due = FIRST
    while due <= trials:
        due += due // 2
    mixed.sizes[[TRIALS, DUE, FITTED, COUNT]] = trials, due, trials, 0
    return mixed


def _learned(running: RunningSoftmax, full: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return precision and pull of its trials, beyond those of the prior, and labels guessed and not."""
    folded = RunningSoftmax(running.prior, running.robust, 0)
    folded.restore(running.arrays)
    if running.full:
        folded.fold(int(folded.sizes[COUNT]))
    guesses = folded.counts - np.array([GUESSES, OTHERS])
    if full:
        return folded.precision - np.eye(len(folded.pull)) * running.prior, folded.pull, guesses
    curvature = np.diag(folded.precision) if running.full else folded.curvature
    return curvature - running.prior, curvature * folded.weights, guesses


def definite(matrix: np.ndarray) -> np.ndarray:
    """The nearest information that there can be: a difference of such need not be any."""
    if matrix.ndim == 1:
        return np.maximum(matrix, 0.0)
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    if len(values) == 0 or values[0] >= 0.0:
        return matrix
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def moved_to(placed: PlacedSoftmax, size: int) -> RunningSoftmax:
    """A copy of one softmax over more coordinates, bit for bit."""
    copy = RunningSoftmax(placed.running.prior, placed.running.robust, 0)
    copy.restore(placed.running.arrays)

    def wider(array: np.ndarray) -> np.ndarray:
        new = np.zeros((*array.shape[:-1], size), array.dtype)
        new[..., placed.places] = array
        return new

    copy.move(wider)
    return copy


@dataclass(frozen=True)
class Softmax(Description):
    """Description of the second-order softmax; made by `linmax.learners.softmax`."""

    prior: float
    name: ClassVar[str] = "softmax"
    robust: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive("prior", self.prior, 0.1)

    def start(self, size: int) -> Running:
        return RunningSoftmax(float(self.prior), self.robust, size)


@dataclass(frozen=True)
class RobustSoftmax(Softmax):
    """Description of the same with a learned guess rate; made by `linmax.learners.robust_softmax`."""

    name: ClassVar[str] = "robust-softmax"
    robust: ClassVar[bool] = True


def softmax(prior: float = 0.1) -> Softmax:
    """Second-order softmax over sub-experts: P_c = exp(w.x^c) / sum, fitted online, and from scratch ever more rarely.

    Minimises prior/2 |w|^2 - sum_t ln P_label. Between refits, which come at trials 10, 15, 22, 33, ..., a trial is a
    Kalman step: H <- H + X (diag P - P P') X', w <- w + H^-1 (x^label - sum_c P_c x^c).

    Parameters
    ----------
    prior
        Precision of the weights around 0; the larger, the smaller they stay.

    Notes
    -----
    Refits use the last 8,192 trials (or 2^20 ratings); older ones are folded, in halves, into a Gaussian. A trial costs
    O(n^2 k) up to 128 coordinates and O(n m) with m ratings up to 1,024, where the curvature is taken at refits only.
    Beyond 1,024 coordinates, as with many attributes, the curvature is diagonal and nothing is refitted: O(m).
    Voters and raters count once they have spoken, attributes from the start: k coordinates for each column. So columns
    that are always 0 change this learner where they take it past 128 or 1,024 coordinates; leave them out. (The engine
    numbers the coordinates of attributes, sparse ones too, by column and class. A learner that had only some of them
    would need a numbering of its own, and a copy of every row in it.)

    No bound is known. That of the online Newton step (Hazan, Agarwal and Kale 2007) is for steps with the gradients'
    outer products, scaled by a constant that falls exponentially with the length of the weights, and for weights that
    are projected onto a ball; here the matrix is the curvature itself, and nothing is projected. Those from mixability
    are for other predictions: averages over all weights (Foster et al. 2018), regularised ones with pseudo-labels
    (Jezequel, Gaillard and Rudi 2021).

    References
    ----------
    McFadden (1974), Conditional logit analysis of qualitative choice behavior. Hazan, Agarwal and Kale (2007),
    Logarithmic regret algorithms for online convex optimization. Foster, Kale, Luo, Mohri and Sridharan (2018),
    Logistic regression: the importance of being improper. Jezequel, Gaillard and Rudi (2021), Mixability made
    efficient: fast online multiclass logistic regression.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.datasets.majority_problem(trials=1000, seed=1)
    >>> trace = linmax.run(linmax.learners.softmax(0.1), linmax.instances(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 45
    True
    """
    return Softmax(prior)


def robust_softmax(prior: float = 0.1) -> RobustSoftmax:
    """Second-order softmax for noisy labels: P(label) = (1 - e) P_label + e / k, with the guess rate e learned.

    Like `softmax`, but each trial counts as much as its label is likely to be no guess,
    (1 - e) P_label / ((1 - e) P_label + e / k); e is the mean of the rest, taken at each refit, from .1 on.

    Parameters
    ----------
    prior
        As in `softmax`.

    References
    ----------
    Dempster, Laird and Rubin (1977), Maximum likelihood from incomplete data via the EM algorithm; the references of
    `softmax`.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.datasets.majority_problem(noise=0.2, trials=2000, seed=1)
    >>> instances = linmax.instances(votes=data.votes)
    >>> robust, plain = (linmax.run(text, instances, data.labels) for text in ("robust-softmax(0.1)", "softmax(0.1)"))
    >>> bool(robust.mistakes[-1] < plain.mistakes[-1])
    True
    """
    return RobustSoftmax(prior)
