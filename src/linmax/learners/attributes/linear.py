"""PA-I, SCW-I, the averaged Perceptron and a softmax over dense attributes: a group of members of the pool.

Attributes are standardised, cut off at 5 deviations and divided by sqrt(d). The members are

- PA-I (C = 1) with a constant of 1, in time order the memory of the last labels;
- SCW-I (eta = .9, C = 1) against the best rival;
- the averaged Perceptron; a weight is how many steps it takes, but no more than put the label ahead;
- softmax, by stochastic gradient steps of size 1 on the log loss, with the mean of about its last 400 hypotheses, which
  follows drift: M += (W - M) / min(t, 400). A weight scales the step, up to 2 / |x|^2.

The constant is scaled like any attribute otherwise; d is how many attributes were met so far.

References
----------
Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006), Online passive-aggressive algorithms: PA-I. Wang, Zhao and Hoi
(2012), Exact soft confidence-weighted learning: SCW. Freund and Schapire (1998): averaging.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numba import types

from linmax.data.scaling import pooled_moments, standardise
from linmax.jit.compiling import kernel
from linmax.learners.attributes.member import (
    DENIED,
    ROWS_PLAYED,
    Group,
    best_rival,
    moments_of,
)
from linmax.learners.base import Field, Mixture, mix_by_precision, struct_of
from linmax.rules.scw import shrinkage, step_size

__all__ = ["DenseMembers"]


PHI = 1.2815515655446004  # the normal quantile of eta = .9, for SCW

# PA; SCW's means and variances; the Perceptron and its lag; softmax and the mean of its hypotheses; how many
TRACK, FIRM, DOUBT, QUICK, PAST, STEEP, MEAN, ROWS = range(8)
SPAN = 400  # trials that the mean of the softmax goes over, about


@kernel()
def score_dense(x: np.ndarray, one: float, cells: np.ndarray, scores: np.ndarray) -> None:
    """Scores of the weights in all rows but the variances; row 0 of the cells is the constant, ``one`` for PA."""
    width = scores.shape[1]
    for q in range(ROWS):
        value = one if q == TRACK else x[0]
        for c in range(width):
            scores[q, c] = value * cells[0, q, c]
    track, firm, quick, past, steep, mean = (
        scores[TRACK], scores[FIRM], scores[QUICK], scores[PAST], scores[STEEP], scores[MEAN],
    )  # fmt: skip
    for f in range(1, x.size):
        row, value = cells[f], x[f]
        for c in range(width):
            steep[c] += value * row[STEEP, c]
        for c in range(width):
            mean[c] += value * row[MEAN, c]
        for c in range(width):
            track[c] += value * row[TRACK, c]
        for c in range(width):
            firm[c] += value * row[FIRM, c]
        for c in range(width):
            quick[c] += value * row[QUICK, c]
        for c in range(width):
            past[c] += value * row[PAST, c]


@kernel(hot=True)
def passive_step(x: np.ndarray, one: float, loss: float, weight: float) -> np.float32:
    """Return the step of PA-I; ``one`` stands for 1 in the place of the first attribute."""
    square = one * one
    for f in range(1, x.size):
        square += x[f] * x[f]
    return np.float32(min(weight, loss / (2.0 * square))) if square > 0.0 else np.float32(0.0)


@kernel()
def deny_dense(
    x: np.ndarray, one: float, wrong: int, known: int, trials: float, weight: float, cells: np.ndarray,
    scores: np.ndarray,
) -> None:  # fmt: skip
    """One step of each member that lets this class fall behind its best other one, which itself stays as it is."""
    other = best_rival(scores[TRACK], wrong, known)
    if other < 0:
        return
    loss = 1.0 - (scores[TRACK, other] - scores[TRACK, wrong])
    if loss > 0.0:
        step = passive_step(x, one, loss, weight)
        cells[0, TRACK, wrong] -= step * one
        for f in range(1, x.size):
            cells[f, TRACK, wrong] -= step * x[f]
    other = best_rival(scores[FIRM], wrong, known)
    margin, v = scores[FIRM, other] - scores[FIRM, wrong], 0.0
    for f in range(x.size):
        v += x[f] * x[f] * cells[f, DOUBT, wrong]
    if v > 0.0 and PHI * math.sqrt(v) > margin:
        wide = step_size(margin, v, PHI, weight)
        a, b = np.float32(wide), np.float32(shrinkage(wide, v, PHI))
        for f in range(x.size):
            along = cells[f, DOUBT, wrong] * x[f]
            cells[f, FIRM, wrong] -= a * along
            cells[f, DOUBT, wrong] -= b * along * along
    other = best_rival(scores[QUICK], wrong, known)
    if scores[QUICK, wrong] >= scores[QUICK, other]:
        lag, steps = np.float32(trials), np.float32(min(weight, 1.0))
        for f in range(x.size):
            cells[f, QUICK, wrong] -= steps * x[f]
            cells[f, PAST, wrong] -= lag * steps * x[f]


@kernel()
def learn_softmax(
    x: np.ndarray, label: int, known: int, trials: float, weight: float, cells: np.ndarray, scores: np.ndarray
) -> None:
    """One gradient step, and the mean of the hypotheses; of a class that is denied the rest are made more probable."""
    pull, square, largest, total, wrong = scores[STEEP], 0.0, -np.inf, 0.0, DENIED - label if label < 0 else -1
    for f in range(x.size):
        square += x[f] * x[f]
    for c in range(known):
        largest = max(largest, pull[c])
    for c in range(known):
        pull[c] = math.exp(pull[c] - largest)
        total += pull[c]
    rest = total - pull[wrong] if wrong >= 0 else 0.0
    step = np.float32(min(weight, 2.0 / square) if square > 0.0 else 0.0)
    for c in range(pull.size):
        right = 1.0 if c == label else 0.0
        if wrong >= 0:
            right = pull[c] / rest if c != wrong and rest > 0.0 else 0.0
        pull[c] = step * np.float32(right - pull[c] / total) if c < known else np.float32(0.0)
    rate = np.float32(1.0 / min(trials, SPAN))
    for f in range(x.size):
        row = cells[f]
        for c in range(pull.size):
            row[STEEP, c] += x[f] * pull[c]
        for c in range(pull.size):
            row[MEAN, c] += rate * (row[STEEP, c] - row[MEAN, c])


@kernel()
def learn_dense(
    x: np.ndarray, one: float, label: int, known: int, trials: float, weight: float, cells: np.ndarray,
    scores: np.ndarray,
) -> None:  # fmt: skip
    """One step of each member against its own best rival; a weight is the C of PA and SCW."""
    if label < 0:
        deny_dense(x, one, DENIED - label, known, trials, weight, cells, scores)
        return
    rival = best_rival(scores[TRACK], label, known)
    if rival < 0:
        return
    loss = 1.0 - (scores[TRACK, label] - scores[TRACK, rival])
    if loss > 0.0:
        step = passive_step(x, one, loss, weight)
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
        wide = step_size(margin, v, PHI, weight)
        a, b = np.float32(wide), np.float32(shrinkage(wide, v, PHI))
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
        lag, steps = np.float32(trials), np.float32(weight)
        if weight > 1.0:
            square = 0.0
            for f in range(x.size):
                square += x[f] * x[f]
            behind = scores[QUICK, rival] - scores[QUICK, label]
            steps = np.float32(min(weight, 1.0 + behind / (2.0 * square) if square > 0.0 else 1.0))
        for f in range(x.size):
            row, value = cells[f], steps * x[f]
            row[QUICK, label] += value
            row[QUICK, rival] -= value
            row[PAST, label] += lag * value
            row[PAST, rival] -= lag * value


FIELDS = {
    "cells": Field(("row", ROWS, "class"), (np.arange(ROWS) == DOUBT)[:, None], "", np.float32),
    "stats": Field(("column", 3), merge=""),  # count, mean and squares of each attribute
    "trials": Field(),
    "x": Field(("row",), merge="", dtype=np.float32, saved=False),
    "scores": Field((ROWS, "class"), merge="", dtype=np.float32, saved=False),
}


@kernel(types.void(struct_of(FIELDS).numba_type, *ROWS_PLAYED))
def play_dense(
    m: Any,
    rows: np.ndarray,
    met: np.ndarray,
    constant: float,
    counts: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    learn: bool,
    votes: np.ndarray,
    member: int,
) -> None:
    """Score all rows by the members, and let them learn; ``counts`` are the known classes."""
    cells, stats, trials, x, scores, one = m.cells, m.stats, m.trials, m.x, m.scores, np.float32(constant)
    for f in range(rows.shape[1] + 1, x.size):
        x[f] = 0.0
    for t in range(rows.shape[0]):
        shrink = 1.0 / math.sqrt(max(1.0, float(met[t])))
        x[0] = constant * shrink
        for f in range(rows.shape[1]):
            x[f + 1] = standardise(rows[t, f], stats[f], learn) * shrink
        score_dense(x, one, cells, scores)
        past = np.float32(trials[0] + 1.0)
        for c in range(counts[t]):
            votes[t, member, c] = scores[TRACK, c]
            votes[t, member + 1, c] = scores[FIRM, c]
            votes[t, member + 2, c] = scores[QUICK, c] - scores[PAST, c] / past
            votes[t, member + 3, c] = scores[MEAN, c]
        if learn:
            trials[0] += 1.0
            label = labels[t]
            known = max(counts[t], label + 1)
            learn_dense(x, one, label, known, trials[0], weights[t], cells, scores)
            if known > 1:
                learn_softmax(x, label, known, trials[0], weights[t], cells, scores)


class DenseMembers(Group):
    """PA-I, SCW-I, the averaged Perceptron and the softmax."""

    members = ("PA-I", "SCW-I", "A-perceptron", "softmax")
    fields: ClassVar = FIELDS
    kernel = staticmethod(play_dense)

    def fit(self, columns: int, width: int) -> None:
        known = len(self.stats)
        super().fit(columns, width)
        self.stats[known:, 0] = self.trials[0]  # attributes not seen before were 0 in all trials

    def tables(self, k: int) -> dict[str, np.ndarray]:
        cells, past = self.cells[:, :, :k].astype(np.float64), self.trials[0] + 1.0
        shrink = 1.0 / math.sqrt(max(1, len(cells) - 1))
        found = {
            "PA-I": cells[:, TRACK] * shrink,
            "SCW-I": cells[:, FIRM] * shrink,
            "A-perceptron": (cells[:, QUICK] - cells[:, PAST] / past) * shrink,
            "softmax": cells[:, MEAN] * shrink,
        }
        found["PA-I"][:1] = cells[:1, TRACK]  # its constant is not scaled
        return found

    def mix(self, mixture: Mixture, width: int) -> None:
        """Become the mixture: SCW by precision, the others by shares; the average of the Perceptron stays that of all.

        The sum of the Perceptron's hypotheses that met a trial, T w - lag after T trials, adds up.
        """
        super().mix(mixture, width)
        columns = self.columns_of(mixture)
        self.fit(columns, width)
        shape = (len(self.cells), width)
        shared = {kind: np.zeros(shape) for kind in (TRACK, QUICK, STEEP, MEAN)}
        met, means = np.zeros(shape), []
        for part, share in mixture.weighed:
            spot, cells = self.placed(part)
            for kind, mean in shared.items():
                mean[spot] += share * cells[:, kind]
            means.append((spot, cells[:, FIRM], cells[:, DOUBT], share))
        for part, sign in mixture.counted:
            spot, cells = self.placed(part)
            met[spot] += sign * (part.state.trials[0] * cells[:, QUICK] - cells[:, PAST])
        self.cells[:, FIRM], self.cells[:, DOUBT] = mix_by_precision(shape, means)
        for kind, mean in shared.items():
            self.cells[:, kind] = mean
        self.cells[:, PAST] = self.trials[0] * shared[QUICK] - met
        self.stats = pooled_moments(
            [moments_of(part, columns) for part, _ in mixture.counted], [n for _, n in mixture.counted]
        )
