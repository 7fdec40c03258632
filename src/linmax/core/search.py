"""Search through panels for the next instance that calls for an update.

A mistake-driven rule spends its time predicting with weights that do not change, so predicting is searching: for the
next trial, and for the next old instance when recycling. Small problems are searched sixteen instances at a time
through a *panel* (see `linmax.jit.panels`): instance t in lane t % 16 of block t // 16, row 0 for its label and the
other classes after it in order. The panel's single precision only decides what is beyond doubt; other instances are
scored in full, so that the result is the same bits as without a panel.
"""

from __future__ import annotations

import numpy as np
from numba import int64

from linmax.core.contract import ALL, BEST, EXPERTS, REACH, STRIDE, RunningTrials
from linmax.core.member import ACT, RunningRule
from linmax.jit.compiling import kernel
from linmax.jit.panels import (
    GROUP_SIZE,
    LANES,
    close_codes,
    close_ratings,
    fill_tables,
    lowest_bit,
    magnitude,
    used_below,
)
from linmax.jit.struct import act

__all__ = [
    "close_lanes",
    "doubt",
    "fill_panel",
    "filled",
    "load_weights",
    "search_panel",
    "sure_rival",
    "within",
]


@kernel()
def row_of(cls: int, label: int) -> int:
    """The row of a class in a panel: the label first, the others in order."""
    return 0 if cls == label else (cls + 1 if cls < label else cls)


@kernel()
def fill_lane(trials: RunningTrials, t: int, size: int) -> None:
    """Write instance t out into its lane, for ``size`` coordinates; a lane of ratings must be zeros before."""
    shape, votes, signs, constant, label = trials.shape, trials.votes, trials.signs, trials.constant, trials.labels[t]
    stride, base, known, voters = shape[STRIDE], shape[EXPERTS], trials.classes, signs.size
    codes = trials.codes
    if codes.size:
        groups = (size + GROUP_SIZE - 1) // GROUP_SIZE
        start = t // LANES * groups * known * LANES + t % LANES
        for place in range(start, start + groups * known * LANES, LANES):
            codes[place] = 0
    if label < 0:  # all classes tie, so that it is looked at
        return
    if codes.size:
        for i in range(voters):
            if votes[t, i] >= 0:
                row = row_of(votes[t, i], label)
                codes[start + (row * groups + i // GROUP_SIZE) * LANES] |= 1 << i % GROUP_SIZE
        if constant != 0.0:
            for i in range(base, base + known):
                codes[start + (row_of(i - base, label) * groups + i // GROUP_SIZE) * LANES] |= 1 << i % GROUP_SIZE
        return
    ratings, rated, dense, indptr = trials.ratings, trials.scores, trials.dense, trials.indptr
    start = t // LANES * known * size * LANES + t % LANES
    for i in range(voters):
        vote = votes[t, i]
        if vote >= 0:
            ratings[start + (row_of(vote, label) * size + i) * LANES] = signs[i]
    for c in range(known):
        row = start + row_of(c, label) * size * LANES
        for i in range(rated.shape[1]):
            ratings[row + (voters + i) * LANES] = rated[t, i, c]
        if constant != 0.0:
            ratings[row + (base + c) * LANES] = constant
        for f in range(dense.shape[1]):
            ratings[row + (base + (1 + f) * stride + c) * LANES] = dense[t, f]
        if indptr.size:
            for place in range(indptr[t], indptr[t + 1]):
                at = base + (1 + dense.shape[1] + trials.indices[place]) * stride + c
                ratings[row + at * LANES] = trials.values[place]


@kernel(int64(RunningTrials.numba_type, int64, int64))
def fill_panel(trials: RunningTrials, begin: int, end: int) -> int:
    """Write instances begin..end out, one lane each."""
    for t in range(begin, end):
        fill_lane(trials, t, trials.coordinates)
    return 0


@kernel()
def filled(trials: RunningTrials) -> bool:
    """Return whether there is a panel."""
    return trials.codes.size + trials.ratings.size > 0


@kernel()
def load_weights(trials: RunningTrials, weights: np.ndarray, tables: np.ndarray) -> float:
    """Write weights into ``tables`` for `close_lanes`, as shares of the sum of their magnitudes; return that sum.

    It is 0 where the panel cannot be used: all weights are 0, or one is not finite.
    """
    total = magnitude(weights)
    if not 0.0 < total < np.inf:
        return 0.0
    if trials.codes.size:
        fill_tables(weights, 1.0 / total, tables)
    else:
        inverse = 1.0 / total
        for i in range(weights.size):
            tables[i] = weights[i] * inverse
    return total


@kernel()
def close_lanes(
    trials: RunningTrials, block: int, size: int, tables: np.ndarray, lanes: np.ndarray, slack: float
) -> int:
    """Fill the scores ``lanes[row, lane]`` of a block; return bits of the lanes whose label leads by at most slack."""
    rows = lanes.shape[0]
    if trials.codes.size:
        groups = (size + GROUP_SIZE - 1) // GROUP_SIZE
        return close_codes(lanes, trials.codes, block * rows * groups * LANES, tables[: groups * LANES], slack)
    return close_ratings(lanes, trials.ratings, block * rows * size * LANES, tables[:size], slack)


@kernel()
def doubt(trials: RunningTrials, size: int) -> float:
    """A lead above this is certain: the rounding of single precision over ``size`` weights that sum to 1."""
    return 2.4e-7 * (size + 4) * trials.largest


@kernel()
def within(first: int, begin: int, end: int) -> int:
    """Bits of those of a block's lanes, from trial ``first`` on, that are in begin..end."""
    return ((1 << (min(end - first, LANES))) - 1) & (-1 << max(0, begin - first))


@kernel()
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


@kernel(ACT)
def search_panel(m: RunningRule, begin: int, end: int) -> int:
    """`linmax.core.member.search` through the panel: only instances in doubt are looked at.

    For a rule that needs only the sign of the margin, only the sign may be right, and no scores are left.
    """
    trials, lanes, tables, uses, limit = m.trials, m.lanes, m.tables, m.uses, m.limit
    if m.total < 0.0:
        m.total = load_weights(trials, m.weights, tables)
    if m.total == 0.0 or m.rivals == ALL:
        return act(m.scan, m, begin, end)
    size, sign_only = m.weights.size, m.only_sign != 0 and m.rivals == BEST
    slack = doubt(trials, size) + m.scalars[REACH] / m.total
    for block in range(begin // LANES, (end + LANES - 1) // LANES):
        first = block * LANES
        bits = within(first, begin, end)
        if limit:
            bits &= used_below(uses, first, limit)
        if bits == 0:
            continue
        bits &= close_lanes(trials, block, size, tables, lanes, slack)
        while bits != 0:
            lane = lowest_bit(bits)
            t = first + lane
            if sign_only:
                row = sure_rival(lanes, lane, slack)
                if row > 0:
                    m.rival = m.first = row - 1 if row <= trials.labels[t] else row
                    m.margin = -1.0
                    return t
            if act(m.scan, m, t, t + 1) == t:
                return t
            bits &= bits - 1
    return end
