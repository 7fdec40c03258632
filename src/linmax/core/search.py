"""Search for the next instance that calls for an update.

A mistake-driven rule spends its time predicting with weights that do not change, so predicting is searching: for the
next trial, and for the next old instance when recycling. Small problems are searched sixteen instances at a time
through a *panel* (see `linmax.jit.panels`): instance t in lane t % 16 of block t // 16, row 0 for its label and the
other classes after it in order. The panel's single precision only decides what is beyond doubt; other instances are
scored in full, so that the result is the same bits as without a panel.
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
from linmax.jit.panels import GROUP_SIZE, close_codes, close_ratings, fill_tables, lowest_bit, magnitude, used_below

__all__ = [
    "Trials",
    "TrialsT",
    "close_lanes",
    "doubt",
    "fill_lane",
    "fill_panel",
    "filled",
    "lane_leads",
    "load_member_weights",
    "load_weights",
    "score_votes",
    "search",
    "sure_rival",
    "usable",
    "within",
]

score_here = written_out(score)


@kernel()
def row_of(cls: int, label: int) -> int:
    """The row of a class in a panel: the label first, the others in order."""
    return 0 if cls == label else (cls + 1 if cls < label else cls)


@kernel()
def fill_lane(instances: Instances, t: int, label: int, state: State, panel: Panel) -> None:
    """Write instance t out into its lane; a lane of ratings must be zeros before."""
    shape = state.shape
    stride, base, known, size = shape[STRIDE], shape[EXPERTS], shape[KNOWN], state.weights.shape[1]
    voters, raters, dense = instances.signs.size, instances.scores.shape[1], instances.dense.shape[1]
    if panel.codes.size:
        groups = (size + GROUP_SIZE - 1) // GROUP_SIZE
        start = t // LANES * groups * known * LANES + t % LANES
        for place in range(start, start + groups * known * LANES, LANES):
            panel.codes[place] = 0
        for i in range(voters):
            if instances.votes[t, i] >= 0:
                row = row_of(instances.votes[t, i], label)
                panel.codes[start + (row * groups + i // GROUP_SIZE) * LANES] |= 1 << i % GROUP_SIZE
        if instances.constant != 0.0:
            for i in range(base, base + known):
                panel.codes[start + (row_of(i - base, label) * groups + i // GROUP_SIZE) * LANES] |= 1 << i % GROUP_SIZE
        return
    ratings = panel.ratings
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
def load_weights(weights: np.ndarray, panel: Panel, tables: np.ndarray) -> float:
    """Write weights into ``tables`` for `close_lanes`, as shares of the sum of their magnitudes; return that sum.

    It is 0 where the panel cannot be used: all weights are 0, or one is not finite.
    """
    total = magnitude(weights)
    if not 0.0 < total < np.inf:
        return 0.0
    if panel.codes.size:
        fill_tables(weights, 1.0 / total, tables)
    else:
        inverse = 1.0 / total
        for i in range(weights.size):
            tables[i] = weights[i] * inverse
    return total


@kernel(hot=True)
def load_member_weights(view: MemberView, scratch: Scratch, panel: Panel) -> float:
    """Call `load_weights` with a member's weights, which have changed; return the total that `search` takes."""
    if filled(panel) and view.rivals != ALL:  # where every trial calls for the rule, none is skipped
        return load_weights(view.weights, panel, scratch.tables)
    return 0.0


@kernel(hot=True)
def close_lanes(panel: Panel, block: int, size: int, tables: np.ndarray, lanes: np.ndarray, slack: float) -> int:
    """Fill the scores ``lanes[row, lane]`` of a block; return bits of the lanes whose label leads by at most slack."""
    rows = lanes.shape[0]
    if panel.codes.size:
        groups = (size + GROUP_SIZE - 1) // GROUP_SIZE
        return close_codes(lanes, panel.codes, block * rows * groups * LANES, tables[: groups * LANES], slack)
    return close_ratings(lanes, panel.ratings, block * rows * size * LANES, tables[:size], slack)


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
    """A lead above this is certain: the rounding of single precision over ``size`` weights that sum to 1."""
    return 2.4e-7 * (size + 4) * panel.largest


@kernel(hot=True)
def within(first: int, begin: int, end: int) -> int:
    """Bits of those of a block's lanes, from trial ``first`` on, that are in begin..end."""
    return ((1 << (min(end - first, LANES))) - 1) & (-1 << max(0, begin - first))


@kernel(hot=True)
def usable(uses: np.ndarray, first: int, begin: int, end: int, limit: int) -> int:
    """`within` of those that have been used less than limit times (0: of any)."""
    bits = within(first, begin, end)
    return bits & used_below(uses, first, limit) if limit else bits


@kernel(hot=True)
def next_in_panel(
    panel: Panel, scratch: Scratch, size: int, slack: float, begin: int, end: int, uses: np.ndarray, limit: int
) -> int:
    """The first of begin..end whose label leads by at most slack and which has been used less than limit times."""
    for block in range(begin // LANES, (end + LANES - 1) // LANES):
        bits = usable(uses, block * LANES, begin, end, limit)
        if bits != 0:
            bits &= close_lanes(panel, block, size, scratch.tables, scratch.lanes, slack)
            if bits != 0:
                return block * LANES + lowest_bit(bits)
    return end


@kernel(hot=True)
def sure_rival(lanes: np.ndarray, lane: int, slack: float) -> int:
    """The row of the class that leads the label and all others beyond doubt; 0 where there is doubt."""
    place = np.uint64(lane)
    best, top, second = 0, lanes[0, place], np.float32(-np.inf)
    for row in range(1, lanes.shape[0]):
        value = lanes[np.uint64(row), place]
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

    ``limit`` 0 takes every instance, else only those used less often. Instances before t are predicted right.
    ``total`` is the return value of `load_member_weights` after the weights last changed. For a rule that needs only
    the sign of the margin, only the sign may be right, and no scores are left in ``scratch``.
    """
    instances, panel, labels, uses = trials.instances, trials.panel, trials.labels, trials.uses
    shape, scores = view.shape, scratch.scores
    slack = doubt(panel, view.weights.size) + (view.scalars[REACH] / total if total > 0.0 else 0.0)
    t = begin
    while t < end:
        if total > 0.0:
            t = next_in_panel(panel, scratch, view.weights.size, slack, t, end, uses, limit)
            if t == end:
                break
            if view.only_sign and view.rivals == BEST:
                row = sure_rival(scratch.lanes, t % LANES, slack)
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
