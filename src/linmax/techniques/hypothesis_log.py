"""The hypotheses of the members over a chunk of trials, one version for each update, and how a vote reads them.

A vote goes over a chunk after the members have played it, and needs the hypotheses that they had meanwhile. Where
these are too large to be copied, the chunk is one trial and the log is the state itself.

Members have hypotheses of different scale: each is divided by its 2-norm, which is kept in O(nonzeros) (see
`linmax.core.averages`), or by its 1-norm (O(n) a trial), or left raw.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import int64, typeof, types

from linmax.core.averages import (
    AGE,
    ANCHOR,
    BACK,
    CROSS,
    FADE,
    IDLE,
    SQUARE,
    START,
    UNSEEN,
    WEIGHT,
    coming,
    squared_norm,
    term,
)
from linmax.core.contract import (
    GAUGE,
    KNOWN,
    LARGEST,
    SHIFT,
    TRIALS,
    Instances,
    InstancesT,
    Labels,
    Matrix,
    State,
    StateT,
    Vector,
)
from linmax.core.contract import RAW as RAW_AVERAGE
from linmax.core.linear_max import score, top_two
from linmax.core.member import LANES, EngineArrays, EngineArraysT, MemberView, Scratch, view_of
from linmax.core.search import Trials, close_lanes, doubt, filled, load_weights, sure_rival, within
from linmax.jit.compiling import kernel
from linmax.jit.panels import lowest_bit

__all__ = [
    "LOG_NUMBERS",
    "NORMS",
    "Hypothesis",
    "Log",
    "LogT",
    "count_right",
    "decide_votes",
    "look",
    "rate",
    "take_version",
    "top_of_vote",
    "write_out",
]

L2, L1, RAW = 0, 1, 2
NORMS = {"l2": L2, "l1": L1, "raw": RAW}

FAINT = 1e-280  # squares below this have lost digits
TIED = 1e-12  # of the largest possible score: hypotheses are divided by their norms, so equal scores differ by rounding

# What the log keeps of a version besides its weights.
SINCE, G, STEP_G, LOG_SQUARE, LOG_CROSS, LOG_BACK, LOG_SCALE, MEAN_SCALE, TERMS, LOG_START, LOG_UNSEEN = range(11)
LOG_IDLE, LOG_FADE, LOG_AGE = range(11, 14)
LOG_NUMBERS = 14


class Log(NamedTuple):
    """The hypotheses of a chunk of trials: one version per update. ``versions`` names the one after each trial."""

    weights: np.ndarray  # (B, V, N)
    backlog: np.ndarray  # (B, V, N), or (B, V, 0)
    numbers: np.ndarray  # (B, V, 14)
    versions: np.ndarray  # int32 (B, C)


LogT = typeof(Log(np.zeros((1, 1, 1)), np.zeros((1, 1, 1)), np.zeros((1, 1, LOG_NUMBERS)), np.zeros((1, 1), np.int32)))


class Hypothesis(NamedTuple):
    """One hypothesis of a log, and how it votes."""

    output: int  # of a member: its own, or that of its average
    version: int
    after: int  # the trial of the chunk after which it is wanted
    scale: int  # what it is divided by, see NORMS


@kernel()
def take_version(view: MemberView, log: Log, member: int, version: int, since: int, terms: int) -> None:
    """Write the member's present hypothesis into the log as the one after trial ``since`` of the chunk."""
    if log.weights.shape[1] > 1:  # with room for one version only, the log is the state itself
        for i in range(view.weights.size):
            log.weights[member, version, i] = view.weights[i]
        for i in range(view.backlog.size):
            log.backlog[member, version, i] = view.backlog[i]
    numbers = log.numbers[member, version]
    numbers[SINCE], numbers[LOG_IDLE] = since, view.sums[IDLE]
    numbers[LOG_FADE], numbers[LOG_AGE] = view.sums[FADE], view.sums[AGE]
    numbers[G] = view.sums[WEIGHT]
    numbers[STEP_G] = term(view.kind, view.scalars, view.sums) if view.kind else 0.0
    numbers[LOG_SQUARE], numbers[LOG_CROSS], numbers[LOG_BACK] = view.sums[SQUARE], view.sums[CROSS], view.sums[BACK]
    numbers[LOG_SCALE] = view.scalars[SHIFT] + view.scalars[GAUGE]
    numbers[MEAN_SCALE] = view.sums[ANCHOR] if view.kind == RAW_AVERAGE else 0.0
    numbers[LOG_START], numbers[LOG_UNSEEN] = view.sums[START], view.sums[UNSEEN]
    numbers[TERMS] = terms


@kernel()
def idle(numbers: np.ndarray, after: int) -> float:
    """IDLE of the version's average at a trial of the chunk (see `linmax.core.averages`)."""
    return numbers[LOG_IDLE] + coming(after - int(numbers[SINCE]), numbers[LOG_FADE], numbers[LOG_AGE])


@kernel()
def multiple(log: Log, which: Hypothesis) -> float:
    """A hypothesis is multiple * weights - backlog (averaged), or the weights (multiple 0)."""
    numbers = log.numbers[which.output // 2, which.version]
    return numbers[G] + idle(numbers, which.after) * numbers[STEP_G] if which.output % 2 else 0.0


@kernel()
def weight_of(log: Log, which: Hypothesis, factor: float, i: int) -> float:
    """One weight of a hypothesis; ``factor`` is its `multiple`."""
    weight = log.weights[which.output // 2, which.version, i]
    return factor * weight - log.backlog[which.output // 2, which.version, i] if which.output % 2 else weight


@kernel()
def size_of(log: Log, which: Hypothesis) -> float:
    """What the hypothesis is divided by before it votes; 0 for a hypothesis of zeros."""
    output, after, scale = which.output, which.after, which.scale
    numbers = log.numbers[output // 2, which.version]
    factor = multiple(log, which)
    if scale == L2:
        square = numbers[LOG_SQUARE]
        if output % 2:
            added = idle(numbers, after) * numbers[STEP_G]
            square = squared_norm(added, square, numbers[LOG_CROSS], numbers[LOG_BACK])
        if square > FAINT:
            return math.sqrt(square)
    if scale == L1 or scale == L2:
        largest, total = 0.0, 0.0
        for i in range(log.weights.shape[2]):
            largest = max(largest, abs(weight_of(log, which, factor, i)))
        for i in range(log.weights.shape[2]):
            part = abs(weight_of(log, which, factor, i)) / largest if largest > 0.0 else 0.0
            total += part if scale == L1 else part * part
        return largest * (total if scale == L1 else math.sqrt(total))
    if output % 2:
        count = numbers[TERMS] + after - numbers[SINCE]
        return (count + numbers[LOG_FADE] * 0.5 * count * (count - 1.0)) * math.exp(-numbers[MEAN_SCALE])
    return math.exp(-numbers[LOG_SCALE])


@kernel()
def inverse_size(log: Log, which: Hypothesis) -> float:
    """What the hypothesis is multiplied by before it votes; not finite when its raw weights outgrow a float."""
    size = size_of(log, which)
    return 1.0 / size if size > 0.0 else (np.inf if which.scale == RAW else 0.0)


@kernel()
def rate(
    instances: Instances,
    t: int,
    shape: np.ndarray,
    log: Log,
    which: Hypothesis,
    scores: np.ndarray,
    spare: np.ndarray,
) -> None:
    """Scores of instance t under a hypothesis, at its voting scale."""
    member = which.output // 2
    score(instances, t, shape, log.weights[member, which.version], scores)
    if which.output % 2:
        factor = multiple(log, which)
        score(instances, t, shape, log.backlog[member, which.version], spare)
        for c in range(scores.size):
            scores[c] = factor * scores[c] - spare[c]
    inverse = inverse_size(log, which)
    for c in range(scores.size):
        scores[c] *= inverse


LOOK = types.void(EngineArraysT, LogT, int64, int64, InstancesT, int64, Vector)


@kernel(LOOK)
def look(
    arrays: EngineArrays, log: Log, output: int, scale: int, instances: Instances, t: int, own: np.ndarray
) -> None:
    """`rate` for a log that is the state itself, before the trial changes it."""
    member, state = output // 2, arrays.state
    take_version(view_of(arrays.members, state, member, 1), log, member, 0, -1, state.counts[member, TRIALS] + 1)
    rate(instances, t, state.shape, log, Hypothesis(output, 0, -1, scale), own, arrays.scratch.spare)


@kernel()
def write_out(log: Log, which: Hypothesis, target: np.ndarray) -> float:
    """Write a hypothesis at its voting scale to ``target``; returns the weight of a coordinate that appears later."""
    factor, inverse = multiple(log, which), inverse_size(log, which)
    for i in range(target.size):
        target[i] = inverse * weight_of(log, which, factor, i)
    numbers = log.numbers[which.output // 2, which.version]
    return inverse * (factor * numbers[LOG_START] - numbers[LOG_UNSEEN] if which.output % 2 else numbers[LOG_START])


@kernel()
def length_of(instances: Instances, t: int) -> float:
    """A bound on the 2-norm of what instance t rates any class."""
    square = instances.constant * instances.constant
    for i in range(instances.signs.size):
        square += 1.0 if instances.votes[t, i] >= 0 else 0.0
    for i in range(instances.scores.shape[1]):
        largest = 0.0
        for j in range(instances.scores.shape[2]):
            largest = max(largest, abs(instances.scores[t, i, j]))
        square += largest * largest
    for f in range(instances.dense.shape[1]):
        square += instances.dense[t, f] * instances.dense[t, f]
    if instances.indptr.size:
        for place in range(instances.indptr[t], instances.indptr[t + 1]):
            square += instances.values[place] * instances.values[place]
    return math.sqrt(square)


@kernel()
def top_of_vote(
    instances: Instances, t: int, shape: np.ndarray, scores: np.ndarray, hypotheses: int, scale: int
) -> int:
    """The best class of so many hypotheses together; of those tied up to rounding the smallest (or the largest).

    A hypothesis of norm 1 gives no score beyond the instance's length; those of raw weights are compared with the
    scores themselves.
    """
    first = top_two(scores, shape)[0]
    if first < 0:
        return first
    size = 0.0
    if scale == RAW:
        for j in range(shape[KNOWN]):
            size = max(size, abs(scores[j]))
    else:
        size = hypotheses * length_of(instances, t)
    least = scores[first] - TIED * size
    for place in range(shape[KNOWN]):
        j = shape[KNOWN] - 1 - place if shape[LARGEST] else place
        if scores[j] >= least:
            return j
    return first


@kernel(types.void(InstancesT, StateT, int64, int64, Matrix, Labels))
def decide_votes(
    instances: Instances, state: State, hypotheses: int, scale: int, table: np.ndarray, predictions: np.ndarray
) -> None:
    """`top_of_vote` of every row of a table of scores."""
    for t in range(predictions.size):
        predictions[t] = top_of_vote(instances, t, state.shape, table[t], hypotheses, scale)


@kernel()
def count_right(
    trials: Trials,
    begin: int,
    end: int,
    shape: np.ndarray,
    weights: np.ndarray,
    scale: int,
    scratch: Scratch,
) -> int:
    """On how many of the trials begin..end these weights predict the label."""
    instances, panel, labels = trials.instances, trials.panel, trials.labels
    right, total, slack = end - begin, 0.0, doubt(panel, weights.size)
    if filled(panel):
        total = load_weights(weights, panel, scratch.tables)
    for block in range(begin // LANES, (end + LANES - 1) // LANES):
        row, bits = 0, within(block * LANES, begin, end)
        if total > 0.0:
            bits &= close_lanes(panel, block, weights.size, scratch.tables, scratch.lanes, slack)
        while bits != 0:
            lane = lowest_bit(bits)
            t = block * LANES + lane
            if total > 0.0:
                row = sure_rival(scratch.lanes, lane, slack)
            if row > 0:
                right -= 1
            else:
                score(instances, t, shape, weights, scratch.scores)
                right -= top_of_vote(instances, t, shape, scratch.scores, 1, scale) != labels[t]
            bits &= bits - 1
    return right
