"""The second-order softmax at work: its state, its refits, and the folding of old trials into a Gaussian."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from linmax.core.contract import Instances
from linmax.core.linear_max import longest_row
from linmax.learners import Running
from linmax.learners.softmax_trials import (
    COUNT,
    DUE,
    FITTED,
    RATINGS,
    STORE,
    TRIALS,
    Store,
    judge_all,
    survey,
    walk,
    walk_diagonal,
)  # fmt: skip
from linmax.util.blas import one_blas_thread
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import linalg
else:
    linalg = LazyModule("scipy.linalg")

__all__ = ["RunningSoftmax", "new_store", "symmetric"]

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


def new_store(trials: int, ratings: int) -> Store:
    """Room for so many."""
    return Store(
        np.zeros(trials + 1, np.int64),
        np.zeros(ratings, np.int32),
        np.zeros(ratings, np.int32),
        np.zeros(ratings),
        np.zeros(trials, np.int32),
        np.zeros(trials, np.int32),
    )


def most_ratings(instances: Instances, k: int) -> int:
    """Most ratings that one of these instances can have."""
    attributes = 1 + instances.dense.shape[1] + longest_row(instances.indptr)
    return instances.signs.size + k * (instances.scores.shape[1] + attributes)


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

    def __init__(self, prior: float, robust: bool, size: int) -> None:
        self.prior, self.robust = prior, robust
        self.weights = np.zeros(size)
        self.sizes = np.array([0, FIRST, 0, 0], np.int64)
        self.counts = np.array([GUESSES, OTHERS])  # labels guessed and not, in trials that are folded away
        self.guess = np.array([GUESSES / (GUESSES + OTHERS) if robust else 0.0])
        self.store = new_store(0, 0)
        if size <= FULL:
            self.spread, self.precision = np.eye(size) / prior, np.eye(size) * prior
            self.pull, self.curvature = np.zeros(size), np.zeros(0)
        else:
            self._no_matrices()
            self.curvature = np.full(size, prior)

    def _no_matrices(self) -> None:
        self.spread = self.precision = np.zeros((0, 0))
        self.pull = np.zeros(0)
        self.store = new_store(0, 0)
        self.sizes[COUNT] = 0

    @property
    def full(self) -> bool:
        """Whether the curvature is a full matrix."""
        return not self.curvature.size

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        names = ("weights", "sizes", "counts", "guess", "spread", "precision", "pull", "curvature")
        count = int(self.sizes[COUNT])
        used = int(self.store.starts[count])
        store = Store(*(a[: [count + 1, used, used, used, count, count][i]] for i, a in enumerate(self.store)))
        return {name: getattr(self, name) for name in names} | {f"store.{n}": a for n, a in store._asdict().items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        for name, array in arrays.items():
            if not name.startswith("store."):
                setattr(self, name, array.copy())
        self.store = Store(*(arrays[f"store.{name}"].copy() for name in Store._fields))

    def hypothesis(self) -> np.ndarray:
        return self.weights.copy()

    def play(
        self, shape: np.ndarray, instances: Instances, labels: np.ndarray, begin: int, end: int, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        predictions, table = np.zeros(end - begin, np.int32), np.zeros((end - begin, k))
        most = most_ratings(instances, k)
        room = np.zeros((6, max(self.weights.size, k)))
        if not self.full:
            walk_diagonal(
                instances, labels, begin, end, shape, new_store(1, most), self.counts, self.weights, self.curvature,
                room, self.robust, predictions, table,
            )  # fmt: skip
            if not np.isfinite(self.weights).all():
                raise OverflowError(TOO_LARGE)
            return predictions, table
        t = begin
        while t < end:
            self._make_room(most)
            t = walk(
                instances, labels, t, end, shape, self.store, most, self.sizes, float(self.guess[0]), self.weights,
                self.spread, room, begin, predictions, table,
            )  # fmt: skip
            if not np.isfinite(self.weights).all():
                raise OverflowError(TOO_LARGE)
            trials, due, _, count = self.sizes
            full = count == STORE or self.store.starts[count] >= RATINGS
            if full or trials == due:
                self._refit()
            if trials == due:
                self.sizes[DUE] += due // 2
            if full:
                self.fold(int(count) // 2)
        return predictions, table

    def judge(self, shape: np.ndarray, instances: Instances, size: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        predictions, table = np.zeros(size, np.int32), np.zeros((size, k))
        judge_all(instances, size, shape, new_store(1, most_ratings(instances, k)), self.weights, predictions, table)
        return predictions, table

    def _make_room(self, most: int) -> None:
        """Enlarge the store for at least one more trial."""
        count = int(self.sizes[COUNT])
        used = int(self.store.starts[count])
        if count < len(self.store.labels) and used + most <= len(self.store.values):
            return
        trials, ratings = len(self.store.labels), len(self.store.values)
        larger = new_store(max(trials, min(STORE, 2 * count + 64)), max(ratings, 2 * (used + most)))
        for new, old in zip(larger, self.store, strict=True):
            new[: len(old)] = old
        self.store = larger

    def _survey(self, begin: int, end: int, weights: np.ndarray, guess: float) -> tuple[float, np.ndarray, np.ndarray]:
        """Log likelihood, its gradient (with the number of guesses after it) and the lower half of its curvature."""
        n, k = len(weights), int(self.store.known.max(initial=1))
        gradient, curvature = np.zeros(n + 1), np.zeros((n, n))
        longest = longest_row(self.store.starts[begin : end + 1])
        room, chain = np.zeros((3, max(n, k))), np.zeros((2, max(k, longest)), np.int64)
        likelihood = survey(self.store, begin, end, weights, guess, gradient, curvature, room, chain)
        return likelihood, gradient, curvature

    def _posterior(self, weights: np.ndarray, guess: float) -> tuple[float, np.ndarray, np.ndarray]:
        """The same of the posterior over all trials."""
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
        value = -float(np.log(self.store.known[: self.sizes[COUNT]]).sum())
        return value + self._guessed(guess)

    def _guessed(self, guess: float) -> float:
        """What trials that are folded away say about the guess rate."""
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
                    guess = float((self.counts[0] + gradient[-1]) / (self.counts.sum() + self.sizes[COUNT]))
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
            self.spread = np.ascontiguousarray(symmetric(inverse))
        self.sizes[FITTED] = self.sizes[TRIALS]

    def fold(self, count: int) -> None:
        """Replace the oldest trials by the parabola that touches their log likelihood here."""
        _, gradient, curvature = self._survey(0, count, self.weights, float(self.guess[0]))
        curvature = symmetric(curvature)
        with one_blas_thread():
            self.pull += curvature @ self.weights + gradient[:-1]
        self.precision += curvature
        self.counts += gradient[-1], count - gradient[-1]
        starts, *_ = old = self.store
        first, last = int(starts[count]), int(starts[self.sizes[COUNT]])
        kept = int(self.sizes[COUNT]) - count
        self.store = Store(
            np.concatenate([starts[count : count + kept + 1] - first, np.zeros(count, np.int64)]),
            *(np.concatenate([block[first:last], block[:first]]) for block in old[1:4]),
            *(np.concatenate([block[count : count + kept], block[:count]]) for block in old[4:]),
        )
        self.sizes[COUNT] = kept

    def move(self, moved: Callable[[np.ndarray], np.ndarray]) -> None:
        places = moved(np.arange(1.0, self.weights.size + 1.0))
        whole = self.full and places.size <= FULL
        if self.full and not whole:
            curvature = np.diag(self._posterior(self.weights, float(self.guess[0]))[2]).copy()
            self._no_matrices()
            self.curvature = curvature
        self.weights = moved(self.weights)
        new = np.flatnonzero(places == 0.0)
        if not whole:
            self.curvature = moved(self.curvature)
            self.curvature[new] = self.prior
            return
        self.pull = moved(self.pull)
        for name, value in (("spread", 1.0 / self.prior), ("precision", self.prior)):
            matrix = np.ascontiguousarray(moved(np.ascontiguousarray(moved(getattr(self, name)).T)).T)
            matrix[new, new] = value
            setattr(self, name, matrix)
        old = np.zeros(self.weights.size, np.int32)
        old[places[places > 0.0].astype(np.int64) - 1] = np.flatnonzero(places > 0.0)
        self.store = self.store._replace(places=old[self.store.places])
