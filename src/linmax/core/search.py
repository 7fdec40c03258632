"""Looking for the next instance that calls for an update.

A mistake-driven rule spends its time predicting with weights that do not change, so predicting is searching: for the
next trial, and for the next old instance when recycling. Small problems are searched sixteen instances at a time
through a *panel*: instance t in lane t % 16 of block t // 16, row 0 for its label and the other classes after it in
order; voters as the row that they vote for, other ratings written out in single precision. The panel only rules
instances out: what single precision leaves in doubt is looked at in full, so the result is the same bits as without.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import types

from linmax.core.contract import (
    ALL,
    EXPERTS,
    GAUGE,
    KNOWN,
    ON_TIES,
    REACH,
    SHIFT,
    STRIDE,
    Instances,
    InstancesT,
    Labels,
    LabelTable,
    Panel,
    PanelT,
    State,
    StateT,
)
from linmax.core.linear_max import TINY, rescore, score, top_two
from linmax.core.member import LANES, MemberView, Scratch, only_votes
from linmax.jit.compiling import kernel
from linmax.jit.panels import add_lanes, next_lane, sum_codes

__all__ = [
    "Trials",
    "TrialsT",
    "doubt",
    "fill_lane",
    "fill_panel",
    "filled",
    "lane_leads",
    "lane_scores",
    "search",
    "to_single",
]


@kernel()
def row_of(cls: int, label: int) -> int:
    """The row of a class in a panel: the label first, the others in order."""
    return 0 if cls == label else (cls + 1 if cls < label else cls)


@kernel()
def fill_lane(instances: Instances, t: int, label: int, state: State, panel: Panel) -> None:
    """Write instance t out into its lane, which is zeros."""
    shape = state.shape
    stride, base, known, size = shape[STRIDE], shape[EXPERTS], shape[KNOWN], state.weights.shape[1]
    voters, raters, dense = instances.signs.size, instances.scores.shape[1], instances.dense.shape[1]
    ratings = panel.ratings
    if panel.codes.size:
        start = t // LANES * size * LANES + t % LANES
        for i in range(size):
            panel.codes[start + i * LANES] = -1
        for i in range(voters):
            if instances.votes[t, i] >= 0:
                panel.codes[start + i * LANES] = row_of(instances.votes[t, i], label)
        if instances.constant != 0.0:
            for c in range(known):
                panel.codes[start + (base + c) * LANES] = row_of(c, label)
        return
    start = t // LANES * known * size * LANES + t % LANES
    for i in range(voters):
        vote = instances.votes[t, i]
        if vote >= 0:
            ratings[start + (row_of(vote, label) * size + i) * LANES] = instances.signs[i]
    for c in range(known):
        row = start + row_of(c, label) * size * LANES
        for i in range(raters):
            ratings[row + (voters + i) * LANES] = instances.scores[t, i, c]
        if instances.constant != 0.0:
            ratings[row + (base + c) * LANES] = instances.constant
        for f in range(dense):
            ratings[row + (base + (1 + f) * stride + c) * LANES] = instances.dense[t, f]
        if instances.indptr.size:
            for place in range(instances.indptr[t], instances.indptr[t + 1]):
                at = base + (1 + dense + instances.indices[place]) * stride + c
                ratings[row + at * LANES] = instances.values[place]


@kernel(types.void(InstancesT, Labels, StateT, PanelT))
def fill_panel(instances: Instances, labels: np.ndarray, state: State, panel: Panel) -> None:
    """Write the instances out, one lane each."""
    for t in range(labels.size):
        fill_lane(instances, t, labels[t], state, panel)


@kernel(hot=True)
def filled(panel: Panel) -> bool:
    """Whether there is a panel."""
    return panel.codes.size + panel.ratings.size > 0


@kernel(hot=True, reorders=True)
def to_single(weights: np.ndarray, single: np.ndarray) -> float:
    """The weights in single precision, divided by the sum of their magnitudes, which is returned (0: all are 0)."""
    total = 0.0
    for i in range(weights.size):
        total += abs(weights[i])
    inverse = 1.0 / total if total > 0.0 else 0.0
    for i in range(weights.size):
        single[i] = weights[i] * inverse
    return total


@kernel(hot=True)
def lane_scores(panel: Panel, block: int, single: np.ndarray, lanes: np.ndarray) -> None:
    """Scores of a block's sixteen instances: ``lanes[row, lane]``."""
    rows, size = lanes.shape[0], single.size
    if panel.codes.size:
        sum_codes(lanes, panel.codes, block * size * LANES, single)
        return
    for row in range(rows):
        for lane in range(LANES):
            lanes[row, lane] = 0.0
        add_lanes(lanes[row], panel.ratings, (block * rows + row) * size * LANES, single)


@kernel()
def lane_leads(lanes: np.ndarray, leads: np.ndarray) -> None:
    """By how much the label leads the best other class, in every lane."""
    for lane in range(LANES):
        leads[lane] = lanes[1, lane]
    for row in range(2, lanes.shape[0]):
        for lane in range(LANES):
            leads[lane] = max(leads[lane], lanes[row, lane])
    for lane in range(LANES):
        leads[lane] = lanes[0, lane] - leads[lane]


@kernel()
def doubt(size: int, largest: float) -> float:
    """A lead above this is a lead: twice the error of a sum of ``size`` products in single precision, weights summing
    to 1 and ratings up to ``largest``."""
    return 2.4e-7 * (size + 4) * largest


@kernel(hot=True)
def usable(uses: np.ndarray, begin: int, end: int, limit: int) -> bool:
    """Whether any of begin..end has been used less than limit times (0: without limit)."""
    if limit == 0:
        return True
    for t in range(begin, end):
        if uses[t] < limit:
            return True
    return False


@kernel(hot=True)
def next_in_panel(
    panel: Panel,
    scratch: Scratch,
    slack: float,
    begin: int,
    end: int,
    uses: np.ndarray,
    limit: int,
) -> int:
    """The first of begin..end whose label leads by at most slack and which has been used less than limit times."""
    t = begin
    while t < end:
        first = t // LANES * LANES
        last = min(end, first + LANES)
        if usable(uses, t, last, limit):
            lane_scores(panel, first // LANES, scratch.single, scratch.lanes)
            t = first + next_lane(scratch.lanes, slack, t - first)
            while t < last:
                if limit == 0 or uses[t] < limit:
                    return t
                t = first + next_lane(scratch.lanes, slack, t + 1 - first)
        t = last
    return end


@kernel(hot=True)
def score_votes(instances: Instances, t: int, shape: np.ndarray, weights: np.ndarray, scores: np.ndarray) -> None:
    """`score` where there are `only_votes`: the same sums in the same order, short enough to be written out."""
    for c in range(scores.size):
        scores[c] = 0.0
    for i in range(instances.signs.size):
        vote = instances.votes[t, i]
        if vote >= 0:
            scores[vote] += weights[i] * instances.signs[i]
    if instances.constant != 0.0:
        for c in range(shape[STRIDE]):
            scores[c] += instances.constant * weights[shape[EXPERTS] + c]


class Trials(NamedTuple):
    """Trials to play, or to look at again."""

    instances: Instances
    panel: Panel
    labels: np.ndarray
    uses: np.ndarray  # int32: the updates that each instance has caused, (B, T) or one member's (T,); or none


TrialsT = types.NamedTuple([InstancesT, PanelT, Labels, LabelTable], Trials)


@kernel(hot=True)
def search(
    view: MemberView,
    scratch: Scratch,
    trials: Trials,
    begin: int,
    end: int,
    limit: int,
    margins: np.ndarray,
) -> tuple[int, int, int, float]:
    """The first of begin..end that calls for the rule: (t, prediction, rival, margin), t = end when there is none.

    ``limit`` 0 takes every instance, else only those used less often. Those passed over are predicted right.
    """
    instances, panel, labels, uses = trials.instances, trials.panel, trials.labels, trials.uses
    shape, scores = view.shape, scratch.scores
    slack = 0.0
    quick = filled(panel) and view.rivals != ALL  # where every trial calls for the rule, none is passed over
    if quick:
        total = to_single(view.weights, scratch.single)
        slack = doubt(scratch.single.size, panel.largest) + (view.scalars[REACH] / total if total > 0.0 else np.inf)
    t = begin
    while t < end:
        if quick:
            t = next_in_panel(panel, scratch, slack, t, end, uses, limit)
            if t == end:
                break
        elif limit and uses[t] >= limit:
            t += 1
            continue
        label = labels[t]
        if only_votes(instances):
            score_votes(instances, t, shape, view.weights, scores)
        else:
            score(instances, t, shape, view.weights, scores)
        first, second = top_two(scores, shape)
        # Of a right prediction by a thick rule the rival matters, too.
        thick = first == labels[t] and second >= 0 and view.scalars[REACH] > 0.0 and abs(scores[second]) < TINY
        if view.spread != 0 and first >= 0 and (thick or abs(scores[first]) < TINY):
            rescore(
                instances,
                t,
                shape,
                view.spread,
                view.memory,
                view.scalars,
                view.params,
                scratch.support,
                scratch.z,
                scores,
            )
            first, second = top_two(scores, shape)
        rival = second if first == label else first
        if label >= shape[KNOWN]:  # a class not seen before: always an event, even with no rival
            return t, first, rival, -scores[rival] if rival >= 0 else 0.0
        margin = scores[label] - scores[rival] if rival >= 0 else np.inf
        if margins.size:
            margins[t] = margin * math.exp(view.scalars[SHIFT] + view.scalars[GAUGE])
        if view.rivals == ALL:
            return t, first, rival, margin
        if rival >= 0 and margin <= view.scalars[REACH] and (shape[ON_TIES] or first != label or margin > 0.0):
            return t, first, rival, margin
        t += 1
    return end, -1, -1, 0.0
