"""PA-I, SCW-I, the averaged Perceptron and a softmax over dense attributes: a group of members of the pool.

Attributes are standardised, cut off at 5 deviations and divided by sqrt(d). The members are

- PA-I (C = 1) with a constant of 1, in time order the memory of the last labels;
- SCW-I (eta = .9, C = 1) against the best rival;
- the averaged Perceptron; a weight is how many steps it takes, but no more than put the label ahead;
- softmax, by the extended Kalman filter with a diagonal: with P_c its probabilities, v_c = 10 sum_f S_fc x_f^2 and
  h = P_c (1 - P_c), a trial of weight w moves M_fc by w 10 S_fc x_f ([c = label] - P_c) / (1 + w h v_c) and S_fc by
  -w h 10 (S_fc x_f)^2 / (1 + w h v_c). Then S_fc grows by w h / 200 of itself, to 1 at most: it forgets as it learns,
  and so follows drift.

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
from linmax.learners.attributes.group import (
    DENIED,
    ROWS_PLAYED,
    Group,
    best_rival,
    kalman_step,
    moments_of,
)
from linmax.learners.base import Field, Mixture, mix_by_precision, struct_of
from linmax.rules.scw import shrinkage, step_size

__all__ = ["DenseMembers"]


PHI = 1.2815515655446004  # the normal quantile of eta = .9, for SCW

# Rows of an attribute's cells: PA; SCW's means and variances; the Perceptron and its lag; the softmax's means and
# variances, which are in units of `PRIOR`
PA, SCW, SCW_VARIANCE, PERCEPTRON, LAG, SOFTMAX, VARIANCE, ROWS = range(8)
FORGETTING = 1.0 / 200.0  # times h: the share by which the softmax's variances grow at each trial


@kernel()
def score_dense(x: np.ndarray, one: float, cells: np.ndarray, scores: np.ndarray) -> None:
    """Scores of the weights in all rows but the variances; row 0 of the cells is the constant, ``one`` for PA."""
    width = scores.shape[1]
    for q in range(ROWS):
        value = one if q == PA else x[0]
        for c in range(width):
            scores[q, c] = value * cells[0, q, c]
    pa, scw, perceptron, lag, softmax = scores[PA], scores[SCW], scores[PERCEPTRON], scores[LAG], scores[SOFTMAX]
    for f in range(1, x.size):
        row, value = cells[f], x[f]
        for c in range(width):
            pa[c] += value * row[PA, c]
        for c in range(width):
            scw[c] += value * row[SCW, c]
        for c in range(width):
            perceptron[c] += value * row[PERCEPTRON, c]
        for c in range(width):
            lag[c] += value * row[LAG, c]
        for c in range(width):
            softmax[c] += value * row[SOFTMAX, c]


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
    other = best_rival(scores[PA], wrong, known)
    if other < 0:
        return
    loss = 1.0 - (scores[PA, other] - scores[PA, wrong])
    if loss > 0.0:
        step = passive_step(x, one, loss, weight)
        cells[0, PA, wrong] -= step * one
        for f in range(1, x.size):
            cells[f, PA, wrong] -= step * x[f]
    other = best_rival(scores[SCW], wrong, known)
    margin, v = scores[SCW, other] - scores[SCW, wrong], 0.0
    for f in range(x.size):
        v += x[f] * x[f] * cells[f, SCW_VARIANCE, wrong]
    if v > 0.0 and PHI * math.sqrt(v) > margin:
        wide = step_size(margin, v, PHI, weight)
        a, b = np.float32(wide), np.float32(shrinkage(wide, v, PHI))
        for f in range(x.size):
            along = cells[f, SCW_VARIANCE, wrong] * x[f]
            cells[f, SCW, wrong] -= a * along
            cells[f, SCW_VARIANCE, wrong] -= b * along * along
    other = best_rival(scores[PERCEPTRON], wrong, known)
    if scores[PERCEPTRON, wrong] >= scores[PERCEPTRON, other]:
        lag, steps = np.float32(trials), np.float32(min(weight, 1.0))
        for f in range(x.size):
            cells[f, PERCEPTRON, wrong] -= steps * x[f]
            cells[f, LAG, wrong] -= lag * steps * x[f]


@kernel()
def learn_softmax(m: Any, x: np.ndarray, label: int, known: int, weight: float) -> None:
    """Take one step of the Kalman filter, and let it forget a little."""
    cells, sizes, move, shrink = m.cells, m.scores[VARIANCE], m.steps[0], m.steps[1]
    for c in range(sizes.size):
        sizes[c] = 0.0
    for f in range(x.size):
        row, square = cells[f], x[f] * x[f]
        for c in range(sizes.size):
            sizes[c] += square * row[VARIANCE, c]
    kalman_step(m.scores[SOFTMAX], sizes, label, known, weight, m.steps)
    growth, most = sizes, np.float32(1.0)
    for c in range(growth.size):
        growth[c] = 1.0 + FORGETTING * sizes[c]
    for f in range(x.size):
        row, value = cells[f], x[f]
        for c in range(growth.size):
            along = row[VARIANCE, c] * value
            row[SOFTMAX, c] += move[c] * along
            row[VARIANCE, c] = min(most, growth[c] * (row[VARIANCE, c] - shrink[c] * along * along))


@kernel()
def learn_dense(
    x: np.ndarray, one: float, label: int, known: int, trials: float, weight: float, cells: np.ndarray,
    scores: np.ndarray,
) -> None:  # fmt: skip
    """One step of each member against its own best rival; a weight is the C of PA and SCW."""
    if label < 0:
        deny_dense(x, one, DENIED - label, known, trials, weight, cells, scores)
        return
    rival = best_rival(scores[PA], label, known)
    if rival < 0:
        return
    loss = 1.0 - (scores[PA, label] - scores[PA, rival])
    if loss > 0.0:
        step = passive_step(x, one, loss, weight)
        cells[0, PA, label] += step * one
        cells[0, PA, rival] -= step * one
        for f in range(1, x.size):
            cells[f, PA, label] += step * x[f]
            cells[f, PA, rival] -= step * x[f]
    rival = best_rival(scores[SCW], label, known)
    margin, v = scores[SCW, label] - scores[SCW, rival], 0.0
    for f in range(x.size):
        v += x[f] * x[f] * (cells[f, SCW_VARIANCE, label] + cells[f, SCW_VARIANCE, rival])
    if v > 0.0 and PHI * math.sqrt(v) > margin:
        wide = step_size(margin, v, PHI, weight)
        a, b = np.float32(wide), np.float32(shrinkage(wide, v, PHI))
        for f in range(x.size):
            row, value = cells[f], x[f]
            along = row[SCW_VARIANCE, label] * value
            row[SCW, label] += a * along
            row[SCW_VARIANCE, label] -= b * along * along
            along = row[SCW_VARIANCE, rival] * value
            row[SCW, rival] -= a * along
            row[SCW_VARIANCE, rival] -= b * along * along
    rival = best_rival(scores[PERCEPTRON], label, known)
    if scores[PERCEPTRON, label] <= scores[PERCEPTRON, rival]:
        lag, steps = np.float32(trials), np.float32(weight)
        if weight > 1.0:
            square = 0.0
            for f in range(x.size):
                square += x[f] * x[f]
            behind = scores[PERCEPTRON, rival] - scores[PERCEPTRON, label]
            steps = np.float32(min(weight, 1.0 + behind / (2.0 * square) if square > 0.0 else 1.0))
        for f in range(x.size):
            row, value = cells[f], steps * x[f]
            row[PERCEPTRON, label] += value
            row[PERCEPTRON, rival] -= value
            row[LAG, label] += lag * value
            row[LAG, rival] -= lag * value


FIELDS = {
    "cells": Field(("row", ROWS, "class"), np.isin(np.arange(ROWS), (SCW_VARIANCE, VARIANCE))[:, None], "", np.float32),
    "stats": Field(("column", 3), merge=""),  # count, mean and squares of each attribute
    "trials": Field(),
    "x": Field(("row",), merge="", dtype=np.float32, saved=False),
    "scores": Field((ROWS, "class"), merge="", dtype=np.float32, saved=False),
    "steps": Field((2, "class"), merge="", dtype=np.float32, saved=False),
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
            votes[t, member, c] = scores[PA, c]
            votes[t, member + 1, c] = scores[SCW, c]
            votes[t, member + 2, c] = scores[PERCEPTRON, c] - scores[LAG, c] / past
            votes[t, member + 3, c] = scores[SOFTMAX, c]
        if learn:
            trials[0] += 1.0
            label = labels[t]
            known = max(counts[t], label + 1)
            learn_dense(x, one, label, known, trials[0], weights[t], cells, scores)
            if known > 1:
                learn_softmax(m, x, label, known, weights[t])


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
            "PA-I": cells[:, PA] * shrink,
            "SCW-I": cells[:, SCW] * shrink,
            "A-perceptron": (cells[:, PERCEPTRON] - cells[:, LAG] / past) * shrink,
            "softmax": cells[:, SOFTMAX] * shrink,
        }
        found["PA-I"][:1] = cells[:1, PA]  # its constant is not scaled
        return found

    def mix(self, mixture: Mixture, width: int) -> None:
        """Become the mixture: SCW and softmax by precision, the others by shares.

        The sum of the Perceptron's hypotheses before each trial, T w - lag after T trials, adds up.
        """
        super().mix(mixture, width)
        columns = self.columns_of(mixture)
        self.fit(columns, width)
        shape = (len(self.cells), width)
        parts = [(*self.placed(part), share) for part, share in mixture.weighed]
        for kind in (PA, PERCEPTRON):
            mean = np.zeros(shape)
            for spot, cells, share in parts:
                mean[spot] += share * cells[:, kind]
            self.cells[:, kind] = mean
        for kind, variance in ((SCW, SCW_VARIANCE), (SOFTMAX, VARIANCE)):
            learned = [(spot, cells[:, kind], cells[:, variance], share) for spot, cells, share in parts]
            self.cells[:, kind], self.cells[:, variance] = mix_by_precision(shape, learned)
        lag = self.trials[0] * self.cells[:, PERCEPTRON].astype(np.float64)
        for part, sign in mixture.counted:
            spot, cells = self.placed(part)
            lag[spot] -= sign * (part.state.trials[0] * cells[:, PERCEPTRON] - cells[:, LAG])
        self.cells[:, LAG] = lag
        self.stats = pooled_moments(
            [moments_of(part, columns) for part, _ in mixture.counted], [n for _, n in mixture.counted]
        )
