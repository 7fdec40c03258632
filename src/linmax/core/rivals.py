"""Which z a trial presents: against the best wrong class, each class that comes too near, or each class for itself.

With label rho and scores zeta:

* ``best``: z = x^rho - x^A, A the best class other than rho (Mesterharm 2001, section 2).
* ``violated``: z = x^rho - x^j for every j whose lead is violated, zeta(rho) - zeta(j) <= reach, when the trial is
  met; the highest score first, tied ones by class. Each is presented with the margin that it then has.
* ``all``: one-vs-all. z = x^rho, then z = -x^j for every other known class in order: each class is a two-class problem
  with threshold 0. On attributes the problems share no weights.

A z of ``best`` and ``violated`` is one of the transformed problem, so the rule's bound on its updates holds for
either. ``all`` has the bound of the two-class problems: on attributes the sum of k bounds, one for each class.
"""

from __future__ import annotations

import math

import numpy as np

from linmax.core import averages
from linmax.core.contract import (
    ALL,
    BEST,
    EXPERTS,
    HUGE,
    LARGEST,
    REACH,
    SHIFT,
    STRIDE,
    VIOLATED,
    WEIGHT,
    call_gain,
)
from linmax.core.linear_max import LOWEST, SPECK, TINY, difference, log_sum
from linmax.core.member import ACT, FAILED, UNCHANGED, RunningRule, known_at, present
from linmax.jit.compiling import kernel
from linmax.jit.scores import sum_dense, sum_rows
from linmax.jit.struct import act

__all__ = ["RIVALS", "activation", "present_rivals"]

RIVALS = {"best": BEST, "violated": VIOLATED, "all": ALL}


@kernel()
def activation(m: RunningRule, count: int) -> float:
    """w.x of the x in memory; where stored weights are too small from logarithms, with its sign at least."""
    index, x, weights = m.index[:count], m.z[:count], m.weights
    total = 0.0
    for place in range(count):
        total += weights[index[place]] * x[place]
    if m.spread == 0 or abs(total) >= TINY:
        return total
    exact, log = log_sum(m.spread, m.memory, m.scalars, m.params, index, x)
    if log - m.scalars[SHIFT] > LOWEST:
        return total  # nothing was lost: the terms cancel
    if exact == 0.0:
        return 0.0
    return math.copysign(max(abs(exact) * math.exp(log - m.scalars[SHIFT]), SPECK), exact)


@kernel()
def highest(scores: np.ndarray, known: int, largest: int) -> int:
    """The best class; of tied ones the smallest, or the largest."""
    best = 0
    for j in range(1, known):
        if scores[j] > scores[best] or (largest and scores[j] == scores[best]):
            best = j
    return best


@kernel()
def present_pair(m: RunningRule, t: int, label: int, rival: int, margin: float, stale: bool) -> int:
    """`present` z = x^label - x^rival; where the margin is ``stale`` it is computed again."""
    count = difference(m.trials, t, label, rival, m.index, m.z)
    m.margin = activation(m, count) if stale else margin
    return UNCHANGED if m.margin > m.scalars[REACH] else present(m, count)


@kernel()
def present_violated(m: RunningRule, t: int, label: int) -> int:
    """Each class whose lead was violated, highest score first."""
    scores, left, known = m.scores, m.spare, known_at(m, t)
    reach, steps = m.scalars[REACH], 0
    for j in range(known):
        left[j] = scores[j]
    left[label] = -np.inf
    for _ in range(known - 1):
        rival = highest(left, known, m.shape[LARGEST])
        margin = scores[label] - scores[rival]
        if margin > reach:
            break
        left[rival] = -np.inf
        outcome = present_pair(m, t, label, rival, margin, steps > 0)
        if outcome == FAILED:
            return FAILED
        steps += outcome
    return steps


@kernel()
def present_alone(m: RunningRule, t: int, label: int) -> int:
    """Each class for itself, the label first."""
    shared = m.trials.signs.size + m.trials.scores.shape[1] > 0
    steps = 0
    for turn in range(max(known_at(m, t), label + 1)):
        cls = turn - (turn <= label)
        if turn == 0:
            outcome = present_pair(m, t, label, -1, m.scores[label], False)
        else:
            outcome = present_pair(m, t, -1, cls, -m.scores[cls], shared and steps > 0)
        if outcome == FAILED:
            return FAILED
        steps += outcome
    return steps


@kernel()
def by_rows(m: RunningRule) -> bool:
    """Return whether all classes can learn at once: second order, no averages, nothing but attributes."""
    return m.gain != 0 and m.kind == 0 and m.trials.signs.size + m.trials.scores.shape[1] == 0


@kernel()
def add_variances(m: RunningRule, t: int, v: np.ndarray) -> None:
    """x'Sx of every class."""
    variances, stride, base, squares = m.memory[0], m.shape[STRIDE], m.shape[EXPERTS], m.z
    constant, rows, indptr = m.trials.constant, m.trials.dense, m.trials.indptr
    for c in range(stride):
        v[c] = constant**2 * variances[base + c] if constant != 0.0 else 0.0
    dense = rows.shape[1]
    if dense:
        for f in range(dense):
            squares[f] = rows[t, f] ** 2
        sum_dense(v, v, 0, 1.0, variances, base + stride, stride, squares[:dense])
    if indptr.size:
        begin, end, values = indptr[t], indptr[t + 1], m.trials.values
        for place in range(begin, end):
            squares[place - begin] = values[place] ** 2
        start = base + (1 + dense) * stride
        sum_rows(v, v, 0, 1.0, variances, start, stride, m.trials.indices[begin:end], squares, 0, end - begin)


@kernel(reorders=True)
def move_row(
    weights: np.ndarray,
    variances: np.ndarray,
    rates: np.ndarray,
    shrinks: np.ndarray,
    known: int,
    inflation: float,
    x: float,
) -> float:
    """One attribute's weights and variances for all classes; returns by how much the squares of the weights grew."""
    grown = 0.0
    for c in range(known):
        old = weights[c]
        pull = variances[c] * x
        new = old + rates[c] * pull
        weights[c] = new
        variances[c] += (inflation if shrinks[c] != 0.0 else 0.0) - shrinks[c] * (pull * pull)
        grown += (new - old) * (new + old)
    return grown


@kernel()
def present_rows(m: RunningRule, t: int, label: int) -> int:
    """`present_alone` where `by_rows`: the same steps, attribute by attribute with the classes side by side."""
    stride, base, params, scores = m.shape[STRIDE], m.shape[EXPERTS], m.params, m.scores
    known = max(known_at(m, t), label + 1)
    rates, shrinks, steps = m.own, m.spare, 0
    add_variances(m, t, shrinks)
    for c in range(known):
        side = 1.0 if c == label else -1.0
        rate, shrink = 0.0, 0.0
        if shrinks[c] > 0.0:
            rate, shrink = call_gain(params[0], side * scores[c], shrinks[c], m.scalars[WEIGHT], params)
        rates[c], shrinks[c] = side * rate, shrink
        steps += rate != 0.0 or shrink != 0.0
    if steps == 0:
        return 0
    weights, variances, inflation, grown = m.weights, m.memory[0], params[1], 0.0
    constant, rows, indptr = m.trials.constant, m.trials.dense, m.trials.indptr
    dense = rows.shape[1]
    m.total = -1.0
    if constant != 0.0:
        grown += move_row(weights[base:], variances[base:], rates, shrinks, known, inflation, constant)
    for f in range(dense):
        if rows[t, f] != 0.0:
            at = base + (1 + f) * stride
            grown += move_row(weights[at:], variances[at:], rates, shrinks, known, inflation, rows[t, f])
    if indptr.size:
        indices, values = m.trials.indices, m.trials.values
        for place in range(indptr[t], indptr[t + 1]):
            at = base + (1 + dense + indices[place]) * stride
            grown += move_row(weights[at:], variances[at:], rates, shrinks, known, inflation, values[place])
    if not abs(grown) < HUGE * HUGE:
        return FAILED
    if m.tracked:
        averages.note_square(grown, m.kind, weights, m.backlog, m.sums, m.marks)
    return steps


@kernel(ACT)
def present_rivals(m: RunningRule, t: int, label: int) -> int:
    """Present what a trial presents where it is not the best rival alone; the search has left its scores.

    Returns the number of updates, or FAILED.
    """
    if m.rescore != 0:
        least = np.inf
        for j in range(max(known_at(m, t), label + 1)):
            least = min(least, abs(m.scores[j]))
        if least < TINY:
            act(m.rescore, m, t, 1)
    if m.rivals == VIOLATED:
        return present_violated(m, t, label)
    return present_rows(m, t, label) if by_rows(m) else present_alone(m, t, label)
