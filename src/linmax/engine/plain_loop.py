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
from linmax.jit.scores import largest_but, start_rows

__all__ = ["PLAY_PLAIN", "PlainOutputs", "PlainOutputsT", "judge_plain_inline", "play_plain"]

score_inline, difference_inline = written_out(score), written_out(difference)


@kernel(hot=True)
def rival_of(scores: np.ndarray, label: int, shape: np.ndarray) -> int:
    """The best class other than the label, -1 when there is none; of tied classes the first, or the last."""
    known = shape[KNOWN]
    if known == 2 and label < 2:
        return 1 - label
    top = largest_but(scores, known, label)
    for place in range(known):
        c = known - 1 - place if shape[LARGEST] else place
        if scores[np.uint64(c)] == top and c != label:
            return c
    return int(label == 0) if int(label == 0) < known else -1  # no score is a number


@kernel(hot=True)
def leads_clearly(scores: np.ndarray, known: int, label: int, spread: int, reach: float) -> bool:
    """Whether the label leads by so much that nothing happens; then its rival need not be known.

    Where stored weights may be too small to add, its score must be one that is not.
    """
    if label >= known or known < 2 or (spread != 0 and scores[label] < TINY):
        return False
    rival = scores[1 - label] if known == 2 else largest_but(scores, known, label)
    return bool(reach < scores[label] - rival < np.inf)


@kernel(hot=True)
def pass_clear(
    instances: Instances,
    labels: np.ndarray,
    trials: tuple[int, int],
    state: tuple[np.ndarray, np.ndarray, np.ndarray],
    rule: tuple[int, float],
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
        else:
            score_inline(instances, t, shape, weights, scores)
        if t >= stop or not leads_clearly(scores, known, labels[t], spread, reach):
            break
        predictions[t] = labels[t]
        t += 1
    return t


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


PLAY_PLAIN = int64(EngineArraysT, InstancesT, Labels, PlainOutputsT)


@kernel(PLAY_PLAIN)
def play_plain(arrays: EngineArrays, instances: Instances, labels: np.ndarray, outputs: PlainOutputs) -> int:
    """Play all trials. Returns -1, or the trial at which the weights left the range of floats."""
    members, state, scratch = arrays.members, arrays.state, arrays.scratch
    predictions, changes, margins, table = outputs.predictions, outputs.changes, outputs.margins, outputs.table
    step, spread = members.steps[0], members.spreads[0]
    shape, weights, memory = state.shape, state.weights[0], state.memory[0]
    scalars, params, counts = state.scalars[0], members.params[0], state.counts[0]
    scores, support, z = scratch.scores, scratch.support, scratch.z
    scored = labels.size - table.shape[0]
    unasked = scored if margins.size == 0 else 0  # of these trials nothing but the prediction is kept
    following = 0
    while True:
        trials, rule = (following, unasked), (spread, scalars[REACH])
        t = pass_clear(instances, labels, trials, (shape, weights, scores), rule, predictions)
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
