"""The loop over trials for one rule without techniques. Its helpers are inlined, since a call costs more than they do.

`linmax.engine.loop.play` does the same and more; both give the same bits. It would do for this too, but takes 1.3 times
as long (the Perceptron on rows of 20 to 50 numbers, 2 to 20 classes): the bookkeeping for averages, recycling and logs
of hypotheses is still there when there are none.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import int64, types

from linmax.core.averages import unit_of
from linmax.core.contract import (
    ADDS,
    EXPERTS,
    GAUGE,
    HUGE,
    KNOWN,
    LARGEST,
    MASS,
    ON_TIES,
    PEAK,
    REACH,
    SHIFT,
    STRIDE,
    TOP,
    TRIALS,
    UPDATES,
    Bytes,
    Instances,
    InstancesT,
    Labels,
    Matrix,
    Vector,
    call_step,
)
from linmax.core.linear_max import TINY, difference, rescore, score, top_two
from linmax.core.member import EngineArrays, EngineArraysT, rescale, view_of
from linmax.jit.compiling import kernel, written_out
from linmax.jit.moves import move_dense, move_rows
from linmax.jit.scores import start_dense_skipping, start_rows
from linmax.jit.selection import best_but, leads

__all__ = ["PlainOutputs", "PlainOutputsT", "judge_plain_inline", "play_plain", "play_plain_inline"]

SAMPLE = 64  # rows that are looked at for zeros

score_inline, difference_inline = written_out(score), written_out(difference)


@kernel(hot=True)
def rival_of(scores: np.ndarray, label: int, shape: np.ndarray) -> int:
    """The best class other than the label, -1 when there is none."""
    known = shape[KNOWN]
    return 1 - label if known == 2 and label < 2 else best_but(scores, known, label, shape[LARGEST])


@kernel()
def mostly_zeros(instances: Instances, shape: np.ndarray) -> bool:
    """Whether there are dense attributes alone, up to eight classes, and in the first rows most fours of them are 0."""
    dense, stretches = instances.dense, instances.dense.shape[1] // 4
    rows, empty = min(SAMPLE, dense.shape[0]), 0
    if rows < SAMPLE or instances.indptr.size or shape[EXPERTS] or not 2 <= shape[STRIDE] <= 8:
        return False
    for t in range(rows):
        for part in range(stretches):
            f = 4 * part
            empty += dense[t, f] == dense[t, f + 1] == dense[t, f + 2] == dense[t, f + 3] == 0.0
    return 2 * empty > rows * stretches


@kernel(hot=True)
def leads_clearly(scores: np.ndarray, known: int, label: int, spread: int, reach: float) -> bool:
    """Whether the label leads by so much that nothing happens; then its rival need not be known.

    Where stored weights may be too small to add, its score must be one that is not.
    """
    if label >= known or (spread != 0 and scores[label] < TINY):
        return False
    if known == 2:
        return bool(reach < scores[label] - scores[1 - label] < np.inf)
    return bool(known > 2 and leads(scores, known, label, reach))


@kernel(hot=True)
def pass_clear(
    instances: Instances,
    labels: np.ndarray,
    trials: tuple[int, int],
    state: tuple[np.ndarray, np.ndarray, np.ndarray],
    rule: tuple[int, float],
    skips: bool,
    predictions: np.ndarray,
) -> int:
    """Predict the labels of trials, from one to another, as long as they lead clearly, and nothing happens.

    Returns the trial at which that ends, and leaves its scores. ``state`` has the shape, the weights and room for the
    scores; ``rule`` is how weights spread, and the reach. A loop of its own has the registers to itself.
    """
    (t, stop), (shape, weights, scores), (spread, reach) = trials, state, rule
    stride, known, constant, reach = shape[STRIDE], shape[KNOWN], instances.constant, max(reach, 0.0)
    if not reach < np.inf:
        stop = t
    indptr, rows, values = instances.indptr, instances.indices, instances.values
    sparse = indptr.size > 0 and instances.dense.shape[1] == 0 and shape[EXPERTS] == 0
    while t < labels.size:
        if sparse:
            start_rows(scores, weights, stride, stride, constant, rows, values, indptr[t], indptr[t + 1])
        elif skips:
            start_dense_skipping(scores, weights, stride, stride, constant, instances.dense[t])
        else:
            score_inline(instances, t, shape, weights, scores)
        if t >= stop or not leads_clearly(scores, known, labels[t], spread, reach):
            break
        predictions[t] = labels[t]
        t += 1
    return t


@kernel(hot=True)
def add_difference(
    instances: Instances, t: int, shape: np.ndarray, weights: np.ndarray, classes: tuple[int, int], rate: float
) -> bool:
    """w <- w + rate z on attributes alone, for rules that do that (`ADDS`); returns whether the weights fit."""
    stride, steps = shape[STRIDE], (rate, instances.constant, HUGE)
    row, dense, fits = stride, instances.dense.shape[1], True
    if dense:
        fits = move_dense(weights, row, stride, classes, steps, instances.dense[t])
        row, steps = row + dense * stride, (rate, 0.0, HUGE)
    if instances.indptr.size:
        lo, hi = instances.indptr[t], instances.indptr[t + 1]
        fits &= move_rows(weights, row, stride, classes, steps, instances.indices, instances.values, lo, hi)
    elif not dense and instances.constant != 0.0:  # it alone
        weights[classes[0]] += rate * instances.constant
        weights[classes[1]] -= rate * instances.constant
        fits = max(abs(weights[classes[0]]), abs(weights[classes[1]])) < HUGE
    return fits


@kernel(hot=True)
def written(weights: np.ndarray, scalars: np.ndarray, index: np.ndarray) -> float:
    """The largest magnitude that the last update wrote, infinity for nan."""
    if scalars[TOP] == scalars[TOP]:
        return scalars[TOP]
    largest = 0.0
    for j in range(index.size):
        size = abs(weights[index[j]])
        largest = max(largest, size if size == size else np.inf)
    return largest


@kernel(hot=True)
def judge_plain_inline(arrays: EngineArrays, instances: Instances, t: int) -> int:
    """The class of instance t, without learning; `linmax.engine.loop.judge` for this rule."""
    members, state, scratch = arrays.members, arrays.state, arrays.scratch
    shape, scores, spread = state.shape, scratch.scores, members.spreads[0]
    score_inline(instances, t, shape, state.weights[0], scores)
    first, _ = top_two(scores, shape)
    if spread != 0 and first >= 0 and abs(scores[first]) < TINY:
        memory, scalars, params = state.memory[0], state.scalars[0], members.params[0]
        rescore(instances, t, shape, spread, memory, scalars, params, scratch.support, scratch.z, scores)
        first, _ = top_two(scores, shape)
    return first


class PlainOutputs(NamedTuple):
    """What the rule did at each trial."""

    predictions: np.ndarray
    changes: np.ndarray  # uint8: whether it was updated
    margins: np.ndarray  # or none
    table: np.ndarray  # the scores of the last trials, for as many as it has rows


PlainOutputsT = types.NamedTuple([Labels, Bytes, Vector, Matrix], PlainOutputs)


@kernel(hot=True)
def play_plain_inline(
    arrays: EngineArrays, instances: Instances, labels: np.ndarray, outputs: PlainOutputs, skips: bool
) -> int:
    """Play all trials. Returns -1, or the trial at which the weights left the range of floats.

    ``skips`` is for instances that are `mostly_zeros`, and changes no result.
    """
    members, state, scratch = arrays.members, arrays.state, arrays.scratch
    predictions, changes, margins, table = outputs.predictions, outputs.changes, outputs.margins, outputs.table
    step, spread = members.steps[0], members.spreads[0]
    shape, weights, memory = state.shape, state.weights[0], state.memory[0]
    scalars, params, counts = state.scalars[0], members.params[0], state.counts[0]
    scores, support, z = scratch.scores, scratch.support, scratch.z
    scored = labels.size - table.shape[0]
    unasked = scored if margins.size == 0 else 0  # of these trials nothing but the prediction is kept
    adds = members.forms[0] == ADDS and shape[EXPERTS] == 0
    following = 0
    while True:
        trials, rule = (following, unasked), (spread, scalars[REACH])
        t = pass_clear(instances, labels, trials, (shape, weights, scores), rule, skips, predictions)
        counts[TRIALS] += t - following
        if t == labels.size:
            return -1
        following, label = t + 1, np.int64(labels[t])
        rival = rival_of(scores, label, shape)
        new = label >= shape[KNOWN]
        if spread != 0 and rival >= 0 and abs(scores[rival]) < TINY and (new or scores[label] < TINY):
            rescore(instances, t, shape, spread, memory, scalars, params, support, z, scores)
            rival = rival_of(scores, label, shape)
        first = rival
        if not new and (rival < 0 or scores[label] > scores[rival]):
            first = label
        elif not new and scores[label] == scores[rival]:
            first = max(label, rival) if shape[LARGEST] else min(label, rival)
        predictions[t] = first
        if t >= scored:
            unit = unit_of(0, spread, scalars, state.means[0])
            for c in range(table.shape[1]):
                table[t - scored, c] = scores[c] / unit
        counts[TRIALS] += 1
        if new:
            shape[KNOWN] = label + 1
        if rival < 0:
            if margins.size and not new:
                margins[t] = np.inf
            continue
        margin = (0.0 if new else scores[label]) - scores[rival]
        if not abs(margin) < np.inf:
            return t
        if margins.size and not new:
            margins[t] = margin * math.exp(scalars[SHIFT] + scalars[GAUGE])
        if not new and (margin > scalars[REACH] or (first == label and not shape[ON_TIES] and margin <= 0.0)):
            continue
        if spread != 0 and margin > 0.0 and not new and abs(scores[rival]) < TINY:  # a thick rule updates: which rival?
            rescore(instances, t, shape, spread, memory, scalars, params, support, z, scores)
            rival = rival_of(scores, label, shape)
            margin = scores[label] - scores[rival]
        if adds and not new:
            changes[t] = 1
            counts[UPDATES] += 1
            if not add_difference(instances, t, shape, weights, (label, rival), params[0]):
                return t
            scalars[TOP] = 0.0
            continue
        count = difference_inline(instances, t, shape, -1 if new else label, rival, support, z)
        index = support[:count]
        if not call_step(step, weights, memory, scalars, index, z[:count], margin, params):
            continue
        changes[t] = 1
        counts[UPDATES] += 1
        huge = not written(weights, scalars, index) < HUGE
        if spread == 0:
            if huge:
                return t
        elif huge or (scalars[MASS] < 1.0 / HUGE and scalars[PEAK] > 0.0):
            rescale(view_of(members, state, 0, 0))


@kernel(int64(EngineArraysT, InstancesT, Labels, PlainOutputsT))
def play_plain(arrays: EngineArrays, instances: Instances, labels: np.ndarray, outputs: PlainOutputs) -> int:
    """`play_plain_inline`, as a function that Python can call."""
    skips = mostly_zeros(instances, arrays.state.shape)
    return int(play_plain_inline(arrays, instances, labels, outputs, skips))
