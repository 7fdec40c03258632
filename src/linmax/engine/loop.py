"""The loop over trials: a member predicts each instance, sees its label, and its rule and techniques learn from it.

Kernels over a member are called by address (see `linmax.core.member`), as are those over the nodes above members.
`run` is the loop of every learner: parts take turns, trial by trial where one looks at what others have learned.
"""

from __future__ import annotations

import math

import numpy as np
from numba import int64, types

from linmax.core import averages
from linmax.core.contract import (
    GAUGE,
    LEFT,
    SHIFT,
    TRIALS,
    UPDATES,
    Indices,
    Labels,
    Matrix,
    Vector,
)
from linmax.core.linear_max import TINY, score, top_two
from linmax.core.member import ACT, RunningRule
from linmax.jit.compiling import kernel
from linmax.jit.struct import act
from linmax.techniques.recycling import BUDGET, KEPT, SAVED

__all__ = ["MANY", "appear", "detail", "judge", "play", "predict", "predict_average", "rate", "run", "start_means"]

MANY = 2**40  # more than there are trials


@kernel(ACT)
def predict_average(m: RunningRule, begin: int, end: int) -> int:
    """Predict trials begin..end, between which the member does not change, with the average of its hypotheses.

    The sum is H + n g w, n trials on (or what they count for, where averages fade).
    """
    trials, sums, scores, spare = m.trials, m.sums, m.scores, m.spare
    predictions, tables, row, origin = m.played.predictions, m.played.tables, m.row + 1, m.played.scored
    idle, fade, age = sums[averages.IDLE], sums[averages.FADE], sums[averages.AGE]
    g = averages.term(m.kind, m.scalars, sums)
    scored = end - begin == 1 and m.tables.size == 0 and m.rescore == 0  # the search has left its scores
    for t in range(begin, end):
        if not scored:
            score(trials, t, m.weights, scores)
        score(trials, t, m.backlog, spare)
        added = (idle + averages.coming(t - begin, fade, age)) * g
        factor = sums[averages.WEIGHT] + added
        for c in range(spare.size):
            spare[c] = factor * scores[c] - spare[c]
        predictions[row, t] = top_two(spare, trials.known[t], m.shape)[0]
        if t >= origin and tables.shape[1]:
            norm = math.sqrt(averages.square_of_sum(added, m.weights, m.backlog, sums, m.marks))
            norm = norm if norm > 0.0 else averages.untouched_sum(factor, sums)
            for c in range(tables.shape[2]):
                tables[row, t - origin, c] = spare[c] / norm if norm > 0.0 else spare[c]
    return 0


@kernel()
def best_corrected(m: RunningRule, t: int, known: int) -> int:
    """Return the best class by scores that are corrected where need be (see `linmax.core.member.rescore`)."""
    scores = m.scores
    first, second = top_two(scores, known, m.shape)
    if m.rescore == 0 or first < 0:
        return first
    lost = abs(scores[first]) < TINY
    if not lost and (not m.multiplies or second < 0 or scores[first] - scores[second] > m.close):
        return first
    act(m.rescore, m, t, int(lost))
    return top_two(scores, known, m.shape)[0]


@kernel(ACT)
def detail(m: RunningRule, t: int, _: int) -> int:
    """Write the margin and the scores of a trial that the search has looked at."""
    scores, tables, margins, label = m.scores, m.played.tables, m.played.margins, np.int64(m.trials.labels[t])
    place, known = t - m.played.scored, m.trials.known[t]
    if margins.size and m.row == 0 and 0 <= label < known:
        margin = np.inf
        for c in range(known):
            if c != label:
                margin = min(margin, scores[label] - scores[c])
        margins[t] = margin * math.exp(m.scalars[SHIFT] + m.scalars[GAUGE])
    if place >= 0 and tables.shape[1]:
        if m.tables.size or m.rescore != 0:
            score(m.trials, t, m.weights, scores)
        best_corrected(m, t, known)
        unit = averages.unit_of(m.tracked, m.spread, m.scalars, m.sums)
        for c in range(tables.shape[2]):
            tables[m.row, place, c] = scores[c] / unit
    return 0


@kernel(ACT)
def play(m: RunningRule, begin: int, end: int) -> int:
    """Play trials begin..end for one member; return -1, or the trial at which its weights left the range."""
    labels, counts, recycling, played, row = m.trials.labels, m.counts, m.recycling, m.played, m.row
    predictions, changed, budget = played.predictions, played.changed, recycling[BUDGET]
    # From the first of these on, one by one.
    details = begin if played.margins.size else played.scored if m.detail != 0 else end
    alone = begin if m.average != 0 and m.tables.size == 0 else details
    t = begin
    while t < end:
        stop = t + 1 if t >= alone else min(alone, end)
        event = act(m.search, m, t, stop)
        after = min(event + 1, stop)
        for q in range(t, event):
            predictions[row, q] = labels[q]
            changed[row, q] = 0
        if event < stop:
            predictions[row, event] = m.first
            changed[row, event] = 0
        if t >= details and m.detail != 0:
            act(m.detail, m, t, 0)
        if m.average != 0:
            act(m.average, m, t, after)
            averages.advance(m.kind, after - 1 - t, m.sums)
        unlabelled = event < stop and labels[event] < 0
        learned = after - t - unlabelled
        counts[TRIALS] += learned
        if budget:
            counts[LEFT] = min(counts[LEFT] + budget * learned, budget * SAVED)
        if unlabelled:
            t = after
            continue
        if event < stop:
            steps = act(m.learn, m, event, 0)
            if steps < 0:
                return event
            if steps > 0:
                changed[row, event] = 1
                counts[UPDATES] += steps
                if recycling[KEPT]:
                    m.uses[event] = 1
                    if act(m.recycle, m, max(0, event + 1 - recycling[KEPT]), event + 1) < 0:
                        return event
        averages.advance(m.kind, 1, m.sums)
        t = after
    return -1


@kernel(int64(Indices, Indices, int64, int64, int64))
def run(parts: np.ndarray, plays: np.ndarray, begin: int, end: int, step: int) -> int:
    """Let parts play trials begin..end by turns of ``step`` trials; ``plays`` are the addresses of their kernels.

    Returns -1, or turn * MANY + trial where weights left the range of floats.
    """
    t = begin
    while t < end:
        stop = min(end, t + step)
        for turn in range(parts.size):
            failed = act(plays[turn], parts[turn], t, stop)
            if failed >= 0:
                return turn * MANY + failed
        t = stop
    return -1


@kernel(ACT)
def predict(m: RunningRule, t: int, averaged: int) -> int:
    """Return the class of an instance by the member, or by its average, without learning; leave its scores."""
    scores, spare, known = m.scores, m.spare, m.trials.known[t]
    score(m.trials, t, m.weights, scores)
    if averaged:
        factor = averages.multiple(m.kind, m.scalars, m.sums)
        score(m.trials, t, m.backlog, spare)
        for c in range(scores.size):
            scores[c] = factor * scores[c] - spare[c]
    return top_two(scores, known, m.shape)[0] if averaged else best_corrected(m, t, known)


@kernel(types.void(RunningRule.numba_type, int64, Labels, Matrix))
def judge(m: RunningRule, averaged: int, predictions: np.ndarray, table: np.ndarray) -> None:
    """`predict` all instances; write their scores into ``table``."""
    for t in range(predictions.size):
        predictions[t] = act(m.predict, m, t, averaged)
        for c in range(table.shape[1]):
            table[t, c] = m.scores[c]


@kernel(types.void(RunningRule.numba_type, Vector, Labels, Matrix))
def rate(m: RunningRule, weights: np.ndarray, predictions: np.ndarray, table: np.ndarray) -> None:
    """`judge` by one vector of weights."""
    scores = m.scores
    for t in range(predictions.size):
        score(m.trials, t, weights, scores)
        predictions[t] = top_two(scores, m.trials.known[t], m.shape)[0]
        for c in range(table.shape[1]):
            table[t, c] = scores[c]


FIRST_START, FIRST_SLOT = range(2)  # of what a rule gives a coordinate


@kernel(types.void(RunningRule.numba_type, Vector, Indices))
def appear(m: RunningRule, first: np.ndarray, fresh: np.ndarray) -> None:
    """The coordinates ``fresh`` come into being with these first values (see `linmax.engine.growth.first_values`)."""
    scalars, sums, weights, backlog, memory = m.scalars, m.sums, m.weights, m.backlog, m.memory
    unit = math.exp(-scalars[SHIFT])
    sums[averages.START] = first[FIRST_START] * unit
    for j in range(fresh.size):
        weights[fresh[j]] = sums[averages.START]
        if m.kind:
            backlog[fresh[j]] = sums[averages.UNSEEN]
        for slot in range(first.size - FIRST_SLOT):
            value = first[FIRST_SLOT + slot]
            if value == value:  # nan: the rule has fewer slots
                memory[slot, fresh[j]] = value
    if m.counts[TRIALS] == 0:  # what is there at the first trial has been there before it
        averages.begin(m.kind, weights, backlog, sums, m.marks)
    elif m.marks.size == 0:  # otherwise they count when an update touches them
        averages.join(m.kind, fresh.size, scalars, weights, backlog, sums, m.marks)


@kernel(ACT)
def start_means(m: RunningRule, _begin: int, _end: int) -> int:
    """Start the averages before the first trial."""
    averages.begin(m.kind, m.weights, m.backlog, m.sums, m.marks)
    return 0
