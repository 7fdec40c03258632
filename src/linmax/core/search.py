"""Looking for the next instance that calls for an update.

A mistake-driven rule spends its time predicting with weights that do not change, so predicting is searching: for the
next trial, and for the next old instance when recycling. Small problems are searched sixteen instances at a time
through a *panel*: instance t in lane t % 16 of block t // 16, row 0 for its label and the other classes after it in
order; voters as bits of the row that they vote for, to be looked up in tables of sums of weights in whole steps; other
ratings in single precision. The panel only decides what is beyond doubt; the rest is looked at in full, so that the
result is the same bits as without.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import types

from linmax.core.contract import (
    ALL,
    BEST,
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
from linmax.jit.compiling import kernel, written_out
from linmax.jit.panels import add_lanes, close_lanes, magnitude, used_below
from linmax.jit.selection import lowest_bit
from linmax.jit.vote_leads import close_codes
from linmax.jit.vote_panels import (
    TABLE,
    code_place,
    fill_tables,
    sum_codes,
    sum_place,
    whole_steps,
)

__all__ = [
    "Trials",
    "TrialsT",
    "doubt",
    "fill_lane",
    "fill_panel",
    "filled",
    "in_steps",
    "lane_leads",
    "lane_scores",
    "score_votes",
    "search",
    "sighted",
    "sure_rival",
    "take_aim",
    "usable",
    "within",
]

BEYOND_STEPS = 10**6  # steps: more than any sum

score_here = written_out(score)


@kernel()
def row_of(cls: int, label: int) -> int:
    """The row of a class in a panel: the label first, the others in order."""
    return 0 if cls == label else (cls + 1 if cls < label else cls)


@kernel()
def note_voters(instances: Instances, t: int, base: int, voters: np.ndarray) -> None:
    """Which coordinates rate each class, in instance t, as bits."""
    for c in range(voters.size):
        voters[c] = 1 << (base + c) if instances.constant != 0.0 else 0
    for i in range(instances.signs.size):
        if instances.votes[t, i] >= 0:
            voters[instances.votes[t, i]] |= 1 << i


@kernel()
def fill_lane(instances: Instances, t: int, label: int, state: State, panel: Panel) -> None:
    """Write instance t out into its lane, which is zeros."""
    shape = state.shape
    stride, base, known, size = shape[STRIDE], shape[EXPERTS], shape[KNOWN], state.weights.shape[1]
    voters, raters, dense = instances.signs.size, instances.scores.shape[1], instances.dense.shape[1]
    ratings = panel.ratings
    if panel.codes.size:
        groups, rows = (size + 3) // 4, known + known % 2
        start = t // LANES * groups * rows * LANES + t % LANES
        for place in range(start, start + groups * rows * LANES, LANES):
            panel.codes[place] = 0
        if panel.voters.shape[0]:
            note_voters(instances, t, base, panel.voters[t])
        for i in range(voters):
            if instances.votes[t, i] >= 0:
                panel.codes[start + code_place(row_of(instances.votes[t, i], label), i // 4, groups)] |= 1 << i % 4
        if instances.constant != 0.0:
            for i in range(base, base + known):
                panel.codes[start + code_place(row_of(i - base, label), i // 4, groups)] |= 1 << i % 4
        if known % 2:  # so that rows come in pairs, which changes no maximum
            for group in range(groups):
                again = panel.codes[start + code_place(1, group, groups)]
                panel.codes[start + code_place(known, group, groups)] = again
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


@kernel()
def take_aim(weights: np.ndarray, panel: Panel, single: np.ndarray, tables: np.ndarray) -> float:
    """Make weights ready for `lane_scores`, as shares of the sum of their magnitudes; returns that sum.

    It is 0 where there is nothing to go by: all are 0, or one is not finite.
    """
    total = magnitude(weights)
    if not 0.0 < total < np.inf:
        return 0.0
    inverse = 1.0 / total
    if panel.codes.size == 0:
        for i in range(weights.size):
            single[i] = weights[i] * inverse
        return total
    fill_tables(weights, whole_steps(tables.size // TABLE) * inverse, tables)
    return total


@kernel(hot=True)
def sighted(view: MemberView, scratch: Scratch, panel: Panel) -> float:
    """`take_aim` with a member's weights, to be called when they have changed; what `search` takes."""
    if filled(panel) and view.rivals != ALL:  # where every trial calls for the rule, none is passed over
        return take_aim(view.weights, panel, scratch.single, scratch.tables)
    return 0.0


@kernel()
def lane_scores(
    panel: Panel, block: int, known: int, single: np.ndarray, tables: np.ndarray, lanes: np.ndarray
) -> None:
    """Scores of a block's sixteen instances: ``lanes[row, lane]``; a last row that makes them even is the second."""
    if panel.codes.size:
        groups = tables.size // TABLE
        place = block * groups * lanes.shape[0] * LANES
        sum_codes(lanes, panel.codes, place, tables, np.float32(1.0 / whole_steps(groups)))
        return
    for row in range(known):
        for lane in range(LANES):
            lanes[row, lane] = 0.0
        add_lanes(lanes[row], panel.ratings, (block * known + row) * single.size * LANES, single)
    if known % 2:
        for lane in range(LANES):
            lanes[known, lane] = lanes[1, lane]


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
def doubt(panel: Panel, size: int) -> float:
    """A lead above this is a lead: twice the error of a sum over ``size`` coordinates, weights summing to 1.

    Of votes half a step for each, and no coordinate is in two rows; of ratings the rounding of single precision.
    """
    return (
        (0.5 * size + 1.0) / whole_steps((size + 3) // 4) if panel.codes.size else 2.4e-7 * (size + 4) * panel.largest
    )


@kernel(hot=True)
def within(first: int, begin: int, end: int) -> int:
    """Bits of those of a block's lanes, from trial ``first`` on, that are in begin..end."""
    return ((1 << (min(end - first, LANES))) - 1) & (-1 << max(0, begin - first))


@kernel(hot=True)
def usable(uses: np.ndarray, first: int, begin: int, end: int, limit: int) -> int:
    """`within` of those that have been used less than limit times (0: of any)."""
    bits = within(first, begin, end)
    return bits & used_below(uses, first, limit) if limit else bits


@kernel()
def in_steps(slack: float, groups: int) -> int:
    """A share of the weights' magnitudes in whole steps of so many tables, rounded up; at most what 16 bits hold."""
    return int(min(slack * whole_steps(groups) + 1.0, 32767.0))


@kernel(hot=True)
def next_in_panel(
    panel: Panel, scratch: Scratch, known: int, slack: float, begin: int, end: int, uses: np.ndarray, limit: int
) -> int:
    """The first of begin..end whose label leads by at most slack and which has been used less than limit times."""
    for block in range(begin // LANES, (end + LANES - 1) // LANES):
        bits = usable(uses, block * LANES, begin, end, limit)
        if bits != 0:
            if panel.codes.size:
                groups = scratch.tables.size // TABLE
                place = block * groups * scratch.sums.size
                bits &= close_codes(scratch.sums, panel.codes, place, scratch.tables, in_steps(slack, groups))
            else:
                lane_scores(panel, block, known, scratch.single, scratch.tables, scratch.lanes)
                bits &= close_lanes(scratch.lanes, slack)
            if bits != 0:
                return block * LANES + lowest_bit(bits)
    return end


@kernel(hot=True)
def sure_rival(sums: np.ndarray, lane: int, known: int, slack: int) -> int:
    """The row of the class that leads the label and all others beyond doubt; 0 where there is doubt."""
    first = sum_place(0, lane)
    best, top, second = 0, int(sums[np.uint64(first)]), -BEYOND_STEPS
    for row in range(1, known):
        value = int(sums[np.uint64(first + 16 * row - 8 * (row & 1))])  # at its `sum_place`
        second = max(second, min(top, value))
        best = row if value > top else best
        top = max(top, value)
    return best if top - second > slack else 0


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
    total: float,
    margins: np.ndarray,
) -> tuple[int, int, int, float]:
    """The first of begin..end that calls for the rule: (t, prediction, rival, margin), t = end when there is none.

    ``limit`` 0 takes every instance, else only those used less often. Those passed over are predicted right. ``total``
    is what `sighted` found when the weights last changed. Where a rule asks for the sign of the margin only, it may be
    all that the margin tells, and no scores are left in ``scratch``.
    """
    instances, panel, labels, uses = trials.instances, trials.panel, trials.labels, trials.uses
    shape, scores = view.shape, scratch.scores
    slack = doubt(panel, scratch.single.size) + (view.scalars[REACH] / total if total > 0.0 else 0.0)
    t = begin
    while t < end:
        if total > 0.0:
            t = next_in_panel(panel, scratch, shape[KNOWN], slack, t, end, uses, limit)
            if t == end:
                break
            if view.only_sign and view.rivals == BEST and panel.codes.size:
                row = sure_rival(scratch.sums, t % LANES, shape[KNOWN], in_steps(slack, scratch.tables.size // TABLE))
                if row > 0:
                    rival = row - 1 if row <= labels[t] else row
                    return t, rival, rival, -1.0
        elif limit and uses[t] >= limit:
            t += 1
            continue
        label = labels[t]
        if only_votes(instances):
            score_votes(instances, t, shape, view.weights, scores)
        else:
            score_here(instances, t, shape, view.weights, scores)
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
