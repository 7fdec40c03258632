"""One member at work: a trial is presented to its rule, and its weights and averages are kept in order.

A member is a struct, and what it does are kernels over it, ``kernel(member, begin, end) -> int``. It calls those that
it needs by address (see `RunningRule`), so that nothing is compiled twice, or for a member that does without.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float32, float64, int64

from linmax.core import averages
from linmax.core.contract import (
    ALL,
    HUGE,
    L1,
    LARGEST,
    MASS,
    ON_TIES,
    PEAK,
    RAW,
    REACH,
    SHIFT,
    TOP,
    UNTOUCHED,
    VIOLATED,
    WEIGHT,
    Indices,
    Labels,
    Matrix,
    Played,
    RunningTrials,
    Vector,
    call_spread,
    call_step,
)
from linmax.core.linear_max import FAINT, LOWEST, SPECK, TIED, TINY, difference, log_sum, score, smaller
from linmax.jit.compiling import kernel
from linmax.jit.scores import largest_but, place_of, sum_rows
from linmax.jit.struct import Struct, act

__all__ = [
    "ACT",
    "CHANGED",
    "FAILED",
    "UNCHANGED",
    "RunningRule",
    "learn",
    "note_update",
    "present",
    "present_everywhere",
    "rescale",
    "rescore",
    "search",
]

UNCHANGED, CHANGED, FAILED = 0, 1, -1
CLOSE = 100.0  # weights whose logarithms are within this are kept as they are: then equal powers stay equal


class RunningRule(Struct):
    """One rule at work: its parameters, its part of the state arrays, and working memory that members share."""

    step: int = int64  # addresses of the rule's functions
    spread: int = int64
    search: int = int64  # addresses of kernels; 0 for those that the member does without
    scan: int = int64  # the search that looks at every trial, where `search` looks at a panel
    learn: int = int64
    present: int = int64  # presents a trial to several rivals
    everywhere: int = int64  # presents a z to a rule that wants all coordinates
    note: int = int64  # keeps averages and norms
    rescale: int = int64
    rescore: int = int64
    average: int = int64  # predicts with the average
    detail: int = int64  # writes margins and scores
    recycle: int = int64
    predict: int = int64  # predicts an instance without learning
    row: int = int64  # among what is `played`: its own, then that of its average
    kind: int = int64  # how it averages, 0 = not at all
    tracked: int = int64  # whether its 2-norm is kept
    gain: int = int64  # whether it is of second order
    scales: int = int64  # whether the weight of a trial multiplies z
    only_sign: int = int64  # whether the step asks only whether the margin is above REACH
    rivals: int = int64
    limit: int = int64  # the search passes over instances used as often; 0 = over none
    first: int = int64  # the trial that the search found: the class predicted, the rival and the lead over it
    rival: int = int64
    margin: float = float64
    fresh: int = int64  # coordinates that the update is the first to touch
    g: float = float64  # the weight of its hypothesis in the average
    multiplies: int = int64  # whether weights are powers, so that ties are decided up to rounding (see `rescore`)
    close: float = float64  # leads up to this may be such ties
    total: float = float64  # of the weights in `tables`; below 0 when these must be filled
    recycling: np.ndarray = Indices  # see `linmax.techniques.recycling`
    params: np.ndarray = Vector
    shape: np.ndarray = Indices  # that of the state
    weights: np.ndarray = Vector
    memory: np.ndarray = Matrix
    marks: np.ndarray = Vector  # the first row of memory, of a rule that marks untouched coordinates; or none
    scalars: np.ndarray = Vector
    backlog: np.ndarray = Vector
    sums: np.ndarray = Vector
    counts: np.ndarray = Indices
    uses: np.ndarray = Labels  # of each instance; or none
    trials: RunningTrials = RunningTrials.numba_type
    played: Played = Played.numba_type
    scores: np.ndarray = Vector  # working memory: as long as the stride
    spare: np.ndarray = Vector
    own: np.ndarray = Vector
    index: np.ndarray = Indices  # z where it is not 0: coordinates and values
    z: np.ndarray = Vector
    before: np.ndarray = Vector
    full_index: np.ndarray = Indices  # z on all coordinates, for rules that want it
    full_z: np.ndarray = Vector
    tables: np.ndarray = float32[::1]  # the weights for a panel, this member's own
    lanes: np.ndarray = float32[:, ::1]  # scores of sixteen instances


ACT = int64(RunningRule.numba_type, int64, int64)


# -- which trials call for the rule -------------------------------------------------------------------------------


@kernel(hot=True)
def known_at(m: RunningRule, t: int) -> int:
    """Return how many classes may be the rival in trial t; when it is recycled, its label is one of them."""
    known = m.trials.known[t]
    return max(known, m.trials.labels[t] + 1) if m.limit else known


@kernel(hot=True)
def top_but(scores: np.ndarray, label: int, known: int) -> float:
    """Return the best score of a class other than the label."""
    return scores[1 - label] if known == 2 and 0 <= label < 2 else largest_but(scores, known, label)


@kernel(hot=True)
def rival_of(scores: np.ndarray, label: int, known: int, top: float, shape: np.ndarray) -> int:
    """The class other than the label with the score `top_but`, -1 if there is none; of tied ones the first, or last."""
    if known == 2 and 0 <= label < 2:
        return 1 - label
    rival = place_of(scores, known, label, top, shape[LARGEST])
    if rival >= 0:
        return rival
    return int(label == 0) if int(label == 0) < known else -1  # no score is a number


@kernel()
def corrected_rival(m: RunningRule, t: int, label: int, known: int, lost: bool) -> int:
    """`rescore`, and return the rival."""
    act(m.rescore, m, t, int(lost))
    return rival_of(m.scores, label, known, top_but(m.scores, label, known), m.shape)


@kernel()
def may_tie(m: RunningRule, label: int, known: int, top: float) -> bool:
    """Return whether the label and a rival may tie, or two rivals, though their scores differ."""
    least = top - m.close
    if 0 <= label < known and abs(m.scores[label] - top) <= m.close:
        return True
    return known > 2 and place_of(m.scores, known, label, least, 0) != place_of(m.scores, known, label, least, 1)


@kernel(hot=True)
def calls(m: RunningRule, t: int, label: int, known: int, top: float) -> bool:
    """Rank the classes by their scores; return whether trial t calls for the rule, or has no label."""
    shape, scores, reach = m.shape, m.scores, m.scalars[REACH]
    new = label >= known
    rival = rival_of(scores, label, known, top, shape)
    if m.rescore != 0 and rival >= 0:
        lost = abs(scores[rival]) < TINY and (new or label < 0 or scores[label] < TINY)
        if lost or (m.multiplies and may_tie(m, label, known, top)):
            rival = corrected_rival(m, t, label, known, lost)
    m.rival, m.first, m.margin = rival, rival, np.inf
    if label < 0:
        return m.limit == 0
    if rival < 0:
        m.first = -1 if new else label
        return new or m.rivals == ALL
    m.margin = (0.0 if new else scores[label]) - scores[rival]
    if new or not abs(m.margin) < np.inf:
        return True
    if scores[label] > scores[rival]:
        m.first = label
    elif scores[label] == scores[rival]:
        m.first = max(label, rival) if shape[LARGEST] else min(label, rival)
    if m.first != label or m.rivals == ALL:
        return True
    if m.margin > reach or (not shape[ON_TIES] and m.margin <= 0.0):
        return False
    if m.rescore != 0 and m.margin > 0.0 and abs(scores[rival]) < TINY:  # a thick rule updates: which rival?
        m.rival = corrected_rival(m, t, label, known, True)
        m.margin = scores[label] - scores[m.rival]
    return True


@kernel(ACT)
def search(m: RunningRule, begin: int, end: int) -> int:
    """Find the first of trials begin..end that calls for the rule; those before are predicted right.

    It leaves the scores of the last trial, and of the one found `first`, `rival` and `margin`. The inner loop has the
    registers to itself.
    """
    trials, weights, scores, limit, uses = m.trials, m.weights, m.scores, m.limit, m.uses
    indptr, rows, values, constant, labels = (
        trials.indptr,
        trials.indices,
        trials.values,
        trials.constant,
        trials.labels,
    )
    counts, spread, reach = trials.known, m.spread, max(m.scalars[REACH], m.close)
    if m.rivals == ALL:
        reach = np.inf
    base, stride = trials.shape[0], trials.shape[1]
    sparse = indptr.size > 0 and trials.dense.shape[1] == 0 and base == 0
    t = begin
    while t < end:
        if limit and uses[t] >= limit:
            t += 1
            continue
        if sparse:
            lo, hi = indptr[t], indptr[t + 1]
            sum_rows(scores, weights, 0, constant, weights, stride, stride, rows, values, lo, hi)
        else:
            score(trials, t, weights, scores)
        label = np.int64(labels[t])
        known = max(counts[t], label + 1) if limit else counts[t]
        top = top_but(scores, label, known)
        # A clear lead: nothing happens, whatever the rival. Stored weights may be too small to add (see `rescore`).
        clear = 0 <= label < known and known > 1 and (spread == 0 or scores[label] >= TINY)
        if not (clear and reach < scores[label] - top < np.inf) and calls(m, t, label, known, top):
            break
        t += 1
    return t


# -- weights too large or too small to store ----------------------------------------------------------------------


@kernel()
def add_logarithms(m: RunningRule, t: int, known: int) -> None:
    """Compute scores from the weights' logarithms, where the stored weights may have underflowed."""
    index, z, scores, shift = m.index, m.z, m.scores, m.scalars[SHIFT]
    for j in range(known):
        count = difference(m.trials, t, j, -1, index, z)
        total, log = log_sum(m.spread, m.memory, m.scalars, m.params, index[:count], z[:count])
        if log - shift > LOWEST:
            continue  # nothing was lost: a small score is one whose terms cancel
        scores[j] = total * math.exp(log - shift) if total != 0.0 else 0.0
        if total != 0.0 and abs(scores[j]) < FAINT:
            scores[j] = math.copysign(SPECK, total)
    for j in range(known):
        if not 0.0 < abs(scores[j]) < FAINT:
            continue
        count = difference(m.trials, t, j, -1, index, z)
        total, log = log_sum(m.spread, m.memory, m.scalars, m.params, index[:count], z[:count])
        rank = 1
        for other in range(known):
            if other != j and 0.0 < abs(scores[other]) < FAINT and (scores[other] > 0.0) == (total > 0.0):
                count = difference(m.trials, t, other, -1, index, z)
                theirs, their_log = log_sum(m.spread, m.memory, m.scalars, m.params, index[:count], z[:count])
                rank += smaller(theirs, their_log, total, log)
        scores[j] = math.copysign(rank * SPECK, total)


@kernel()
def settle_ties(m: RunningRule, t: int, known: int) -> None:
    """Give the best classes the same score where w.z is 0 up to rounding, z their difference; then the next ones."""
    index, z, scores, weights, below = m.index, m.z, m.scores, m.weights, np.inf
    for _ in range(2):
        best = -1
        for j in range(known):
            if scores[j] < below and (best < 0 or scores[j] > scores[best]):
                best = j
        if best < 0:
            return
        below = scores[best]
        for j in range(known):
            if not 0.0 < below - scores[j] <= m.close:
                continue
            count = difference(m.trials, t, best, j, index, z)
            total, size = 0.0, 0.0
            for place in range(count):
                term = weights[index[place]] * z[place]
                total += term
                size += abs(term)
            if abs(total) <= TIED * size and size >= TINY:
                scores[j] = below


@kernel(ACT)
def rescore(m: RunningRule, t: int, lost: int) -> int:
    """Correct the scores of classes that tie up to rounding, and those that are ``lost`` to underflow.

    Where others have grown by hundreds of orders of magnitude, the stored weights of an instance may be too small to
    hold: its plain scores are zero and would tie, but the logarithms still distinguish the classes. A score too small
    for a float becomes a tiny number in the right order and with the right sign.
    """
    known = known_at(m, t)
    if lost:
        add_logarithms(m, t, known)
    if m.multiplies:
        settle_ties(m, t, known)
    return 0


@kernel()
def bound_ties(m: RunningRule, top: float) -> None:
    """A weight has this magnitude: raise `close` to the most that leads within rounding can be; ratings are up to 1."""
    if m.multiplies:
        m.close = max(m.close, TIED * top * m.index.size)


@kernel(ACT)
def rescale(m: RunningRule, _begin: int, _end: int) -> int:
    """Move SHIFT so that the largest stored weight becomes 1. Rare: they must first grow or shrink by 100 decades."""
    weights, memory, scalars = m.weights, m.memory, m.scalars
    averages.rebase(m.kind, weights, m.backlog, m.sums, m.marks)
    largest = -np.inf
    for i in range(weights.size):
        factor, log = call_spread(m.spread, memory, scalars, i, m.params)
        if factor == factor and factor != 0.0:
            largest = max(largest, log + math.log(abs(factor)))
    if largest == -np.inf or abs(largest) < CLOSE:
        largest = 0.0
    shrink = math.exp(min(scalars[SHIFT] - largest, 300.0))
    scalars[SHIFT] = largest
    if scalars[REACH] < np.inf:
        scalars[REACH] *= shrink
    scalars[MASS] *= shrink
    scalars[PEAK] = np.inf  # the rule sums MASS again with its next update
    m.close = 0.0
    for i in range(weights.size):
        factor, log = call_spread(m.spread, memory, scalars, i, m.params)
        if factor == factor:  # nan: the coordinate does not exist
            weights[i] = factor * math.exp(log - largest) if factor != 0.0 else 0.0
            bound_ties(m, abs(weights[i]))
    averages.rescaled(m.kind, shrink, weights, m.backlog, m.sums, m.marks)
    if m.kind == RAW:
        averages.raise_anchor(scalars, weights, m.backlog, m.sums, m.marks)
    return 0


# -- updates ------------------------------------------------------------------------------------------------------


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


@kernel(ACT)
def note_update(m: RunningRule, count: int, _: int) -> int:
    """Keep averages and norms: the weights at ``index`` have changed from those ``before``."""
    kind, scalars, weights, backlog, sums, marks = m.kind, m.scalars, m.weights, m.backlog, m.sums, m.marks
    if kind == L1 and m.fresh and sums[averages.NORM] == 0.0:
        m.g = 0.0  # hypotheses before the first update have no norm to be divided by, and no part in the sum
    afresh = averages.settle(m.g, sums)
    if m.fresh:
        averages.join(kind, m.fresh, scalars, weights, backlog, sums, marks)
    averages.note(kind, scalars, weights, backlog, sums, m.index[:count], m.before, afresh, marks)
    if kind == RAW:
        averages.raise_anchor(scalars, weights, backlog, sums, marks)
    return 0


@kernel(ACT)
def present_everywhere(m: RunningRule, count: int, _: int) -> int:
    """`present` to a rule whose update may change every weight: z over all coordinates."""
    index, z, weights, scalars, sums = m.full_index, m.full_z, m.weights, m.scalars, m.sums
    for i in range(index.size):
        index[i] = i
        z[i] = 0.0
    for place in range(count):
        z[m.index[place]] = m.z[place]
    shift = scalars[SHIFT]
    averages.settle(averages.term(m.kind, scalars, sums) if sums[averages.IDLE] > 0.0 else 0.0, sums)
    averages.rebase(m.kind, weights, m.backlog, sums, m.marks)
    m.total = -1.0
    if not call_step(m.step, weights, m.memory, scalars, index, z, m.margin, m.params):
        return UNCHANGED
    bound_ties(m, written(weights, scalars, index))
    averages.rescaled(m.kind, math.exp(shift - scalars[SHIFT]), weights, m.backlog, sums, m.marks)
    if m.kind == RAW:
        averages.raise_anchor(scalars, weights, m.backlog, sums, m.marks)
    return CHANGED if sums[averages.SQUARE] < HUGE * HUGE else FAILED


@kernel()
def untouched(marks: np.ndarray, index: np.ndarray, z: np.ndarray) -> int:
    """Return how many of the coordinates that z will change no update has touched so far."""
    count = 0
    for place in range(index.size):
        count += marks[index[place]] == UNTOUCHED and z[place] != 0.0
    return count


@kernel(hot=True)
def present(m: RunningRule, count: int) -> int:
    """Give the rule the z in memory: UNCHANGED, CHANGED or FAILED (a weight left the range of floats)."""
    weight = m.scalars[WEIGHT]
    if weight != 1.0 and m.scales != 0:
        for place in range(count):
            m.z[place] *= weight
    if m.everywhere != 0:
        return act(m.everywhere, m, count, 0)
    weights, scalars, index, spread = m.weights, m.scalars, m.index[:count], m.spread
    if m.note != 0:
        before, sums = m.before, m.sums
        m.g = averages.term(m.kind, scalars, sums) if sums[averages.IDLE] > 0.0 else 0.0
        for place in range(count):
            before[place] = weights[index[place]]
        if m.marks.size:
            m.fresh = untouched(m.marks, index, m.z)
    if not call_step(m.step, weights, m.memory, scalars, index, m.z[:count], m.margin, m.params):
        return UNCHANGED
    m.total = -1.0
    if m.note != 0:
        act(m.note, m, count, 0)
    top = written(weights, scalars, index)
    huge = not top < HUGE
    if spread == 0:
        return FAILED if huge else CHANGED
    bound_ties(m, top)
    if huge or (scalars[MASS] < 1.0 / HUGE and scalars[PEAK] > 0.0):
        act(m.rescale, m, 0, 0)
    return CHANGED


@kernel(ACT)
def learn(m: RunningRule, t: int, _: int) -> int:
    """Learn the trial that the search found; return the number of updates, or FAILED."""
    label = np.int64(m.trials.labels[t])
    if label < 0:
        return 0
    m.scalars[WEIGHT] = m.trials.weights[t] if m.trials.weighted else 1.0
    new = label >= known_at(m, t)
    if m.rivals == ALL or (m.rivals == VIOLATED and not new):
        return act(m.present, m, t, label)
    if m.rival < 0 or (not new and m.margin > m.scalars[REACH]):
        return 0
    if not abs(m.margin) < np.inf:
        return FAILED
    return present(m, difference(m.trials, t, -1 if new else label, m.rival, m.index, m.z))
