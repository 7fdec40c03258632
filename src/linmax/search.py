"""Looking for the next instance that calls for an update.

A mistake-driven rule spends its time predicting with weights that do not change, so predicting is searching: for the
next trial, and for the next old instance when recycling. Small problems are searched sixteen instances at a time
through a *panel*: ratings written out as ``panel[start + (row * size + coordinate) * LANES]``, instance t in lane t % 16 of block
t // 16, row 0 the label's ratings and the other classes after it in order. `search` without a panel looks at one
instance after the other; both find the same.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from linmax.contract import (
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
    PanelT,
    State,
    StateT,
    kernel,
)
from linmax.linear_max import TINY, rescore, score, top_two
from linmax.member import LANES, Bench, Scratch
from linmax.simd import add_lanes

__all__ = ["fill_panel", "lane_class", "lane_scores", "search"]


@kernel(types.void(InstancesT, Labels, StateT, PanelT))
def fill_panel(instances: Instances, labels: np.ndarray, state: State, panel: np.ndarray) -> None:
    """Write the instances out, one lane each."""
    shape = state.shape
    stride, base, known, size = shape[STRIDE], shape[EXPERTS], shape[KNOWN], state.weights.shape[1]
    voters, raters, dense = instances.signs.size, instances.scores.shape[1], instances.dense.shape[1]
    for t in range(labels.size):
        start, label = t // LANES * known * size * LANES + t % LANES, labels[t]
        for i in range(voters):
            vote = instances.votes[t, i]
            if vote >= 0:
                row = 0 if vote == label else (vote + 1 if vote < label else vote)
                panel[start + (row * size + i) * LANES] = instances.signs[i]
        for c in range(known):
            row = 0 if c == label else (c + 1 if c < label else c)
            for i in range(raters):
                panel[start + (row * size + voters + i) * LANES] = instances.scores[t, i, c]
            if instances.constant != 0.0:
                panel[start + (row * size + base + c) * LANES] = instances.constant
            for f in range(dense):
                panel[start + (row * size + base + (1 + f) * stride + c) * LANES] = instances.dense[t, f]
            if instances.indptr.size:
                for place in range(instances.indptr[t], instances.indptr[t + 1]):
                    at = base + (1 + dense + instances.indices[place]) * stride + c
                    panel[start + (row * size + at) * LANES] = instances.values[place]


@kernel()
def lane_scores(panel: np.ndarray, block: int, weights: np.ndarray, lanes: np.ndarray) -> None:
    """Scores of a block's sixteen instances: ``lanes[row, lane]``."""
    rows, size = lanes.shape[0], weights.size
    for row in range(rows):
        for lane in range(LANES):
            lanes[row, lane] = 0.0
        add_lanes(lanes[row], panel, (block * rows + row) * size * LANES, weights)


@kernel()
def lane_class(lanes: np.ndarray, lane: int, label: int, largest: int) -> int:
    """The class predicted for one lane; of tied classes the smallest (or the largest)."""
    best, best_score = label, lanes[0, lane]
    for row in range(1, lanes.shape[0]):
        c = row - 1 if row <= label else row
        value = lanes[row, lane]
        if value > best_score or (value == best_score and (c > best if largest else c < best)):
            best, best_score = c, value
    return best


@kernel()
def next_in_panel(
    panel: np.ndarray,
    weights: np.ndarray,
    reach: float,
    begin: int,
    end: int,
    uses: np.ndarray,
    limit: int,
    lanes: np.ndarray,
    leads: np.ndarray,
) -> int:
    """The first of begin..end whose label leads by at most reach and which has been used less than limit times."""
    t = begin
    while t < end:
        block = t // LANES
        last = min(end, (block + 1) * LANES)
        wanted = limit == 0
        if not wanted:
            for q in range(t, last):
                if uses[q] < limit:
                    wanted = True
                    break
        if wanted:
            lane_scores(panel, block, weights, lanes)
            for lane in range(LANES):
                leads[lane] = lanes[1, lane]
            for row in range(2, lanes.shape[0]):
                for lane in range(LANES):
                    leads[lane] = max(leads[lane], lanes[row, lane])
            for lane in range(LANES):
                leads[lane] = lanes[0, lane] - leads[lane]
            for q in range(t, last):
                if not leads[q % LANES] > reach and (limit == 0 or uses[q] < limit):
                    return q
        t = last
    return end


@kernel()
def search(
    bench: Bench,
    room: Scratch,
    instances: Instances,
    panel: np.ndarray,
    labels: np.ndarray,
    begin: int,
    end: int,
    uses: np.ndarray,
    limit: int,
    margins: np.ndarray,
) -> tuple[int, int, int, float]:
    """The first of begin..end that calls for the rule: (t, prediction, rival, margin), t = end when there is none.

    ``limit`` 0 takes every instance, else only those used less often. Those passed over are predicted right.
    """
    shape, scores = bench.shape, room.scores
    t = begin
    while t < end:
        if panel.size:
            t = next_in_panel(panel, bench.weights, bench.scalars[REACH], t, end, uses, limit, room.lanes, room.leads)
            if t == end:
                break
        elif limit and uses[t] >= limit:
            t += 1
            continue
        label = labels[t]
        score(instances, t, shape, bench.weights, scores)
        first, second = top_two(scores, shape)
        if bench.spread != 0 and first >= 0 and abs(scores[first]) < TINY:
            rescore(
                instances, t, shape, bench.spread, bench.memory, bench.scalars, bench.params, room.index, room.z, scores
            )
            first, second = top_two(scores, shape)
        rival = second if first == label else first
        if label >= shape[KNOWN]:  # a class not seen before: always an event, even with no rival
            return t, first, rival, -scores[rival] if rival >= 0 else 0.0
        margin = scores[label] - scores[rival] if rival >= 0 else np.inf
        if margins.size:
            margins[t] = margin * math.exp(bench.scalars[SHIFT] + bench.scalars[GAUGE])
        if rival >= 0 and margin <= bench.scalars[REACH] and (shape[ON_TIES] or first != label or margin > 0.0):
            return t, first, rival, margin
        t += 1
    return end, -1, -1, 0.0
