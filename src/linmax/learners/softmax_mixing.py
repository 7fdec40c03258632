"""Mixtures of softmaxes that learned apart: what each learned from its trials, as a Gaussian, added up.

The trials that a softmax keeps for its refits are folded into its Gaussian, as old ones are in any case
(`linmax.learners.softmax_state`). With the prior precision r, one of precision P and pull b has learned
P - r and b. These add up over the parts whatever their shares, that of a common base once; the guess rate comes from
counts, which add up too. So merging a second and a third model one after the other is merging all three.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from linmax.learners.softmax_state import FIRST, GUESSES, OTHERS, RunningSoftmax
from linmax.learners.softmax_trials import COUNT, DUE, FITTED, TRIALS
from linmax.util.blas import one_blas_thread

__all__ = ["PlacedSoftmax", "definite", "mix_softmaxes", "moved_to"]


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
    """What its trials taught it: the precision and the pull beyond those of the prior, and labels guessed and not."""
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
