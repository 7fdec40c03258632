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
    KNOWN,
    LARGEST,
    REACH,
    SHIFT,
    STRIDE,
    VIOLATED,
    Instances,
    Rule,
    call_gain,
)
from linmax.core.linear_max import LOWEST, SPECK, TINY, difference, log_sum, rescore, score
from linmax.core.member import CHANGED, FAILED, PRESENT, UNCHANGED, MemberView, Scratch, present
from linmax.jit.compiling import address_of, kernel
from linmax.jit.scores import add_dense, add_rows

__all__ = ["RIVALS", "activation", "presenting"]

RIVALS = {"best": BEST, "violated": VIOLATED, "all": ALL}


@kernel()
def activation(view: MemberView, index: np.ndarray, x: np.ndarray) -> float:
    """w.x; from the weights' logarithms where the stored weights are too small to add, with its sign at least."""
    total = 0.0
    for place in range(index.size):
        total += view.weights[index[place]] * x[place]
    if view.spread == 0 or abs(total) >= TINY:
        return total
    exact, log = log_sum(view.spread, view.memory, view.scalars, view.params, index, x)
    if log - view.scalars[SHIFT] > LOWEST:
        return total  # nothing was lost: the terms cancel
    if exact == 0.0:
        return 0.0
    return math.copysign(max(abs(exact) * math.exp(log - view.scalars[SHIFT]), SPECK), exact)


@kernel()
def highest(scores: np.ndarray, known: int, largest: int) -> int:
    """The best class; of tied ones the smallest, or the largest."""
    best = 0
    for j in range(1, known):
        if scores[j] > scores[best] or (largest and scores[j] == scores[best]):
            best = j
    return best


@kernel()
def present_pair(
    view: MemberView, scratch: Scratch, instances: Instances, t: int, label: int, rival: int, margin: float, stale: bool
) -> int:
    """`present` z = x^label - x^rival; where the margin is ``stale`` it is taken afresh."""
    count = difference(instances, t, view.shape, label, rival, scratch.support, scratch.z)
    if stale:
        margin = activation(view, scratch.support[:count], scratch.z[:count])
    if margin > view.scalars[REACH]:
        return UNCHANGED
    return present(view, scratch, count, margin)


@kernel()
def present_violated(view: MemberView, scratch: Scratch, instances: Instances, t: int, label: int) -> int:
    """Each class whose lead was violated, highest score first."""
    scores, left, known = scratch.scores, scratch.spare, view.shape[KNOWN]
    reach, steps = view.scalars[REACH], 0
    for j in range(known):
        left[j] = scores[j]
    left[label] = -np.inf
    for _ in range(known - 1):
        rival = highest(left, known, view.shape[LARGEST])
        margin = scores[label] - scores[rival]
        if margin > reach:
            break
        left[rival] = -np.inf
        outcome = present_pair(view, scratch, instances, t, label, rival, margin, steps > 0)
        if outcome == FAILED:
            return -1
        steps += outcome == CHANGED
    return steps


@kernel()
def present_alone(view: MemberView, scratch: Scratch, instances: Instances, t: int, label: int) -> int:
    """Each class for itself, the label first."""
    shared = instances.signs.size + instances.scores.shape[1] > 0
    steps = 0
    for turn in range(view.shape[KNOWN]):
        cls = turn - (turn <= label)
        if turn == 0:
            outcome = present_pair(view, scratch, instances, t, label, -1, scratch.scores[label], False)
        else:
            outcome = present_pair(view, scratch, instances, t, -1, cls, -scratch.scores[cls], shared and steps > 0)
        if outcome == FAILED:
            return -1
        steps += outcome == CHANGED
    return steps


@kernel()
def by_rows(view: MemberView, instances: Instances) -> bool:
    """Whether all classes can learn at once: second order, no averages, nothing but attributes."""
    return view.gain != 0 and view.kind == 0 and instances.signs.size + instances.scores.shape[1] == 0


@kernel()
def add_variances(view: MemberView, scratch: Scratch, instances: Instances, t: int, v: np.ndarray) -> None:
    """x'Sx of every class."""
    variances, stride, base = view.memory[0], view.shape[STRIDE], view.shape[EXPERTS]
    for c in range(stride):
        v[c] = instances.constant**2 * variances[base + c] if instances.constant != 0.0 else 0.0
    dense = instances.dense.shape[1]
    if dense:
        for f in range(dense):
            scratch.z[f] = instances.dense[t, f] ** 2
        add_dense(v, variances, base + stride, stride, scratch.z[:dense])
    if instances.indptr.size:
        begin, end = instances.indptr[t], instances.indptr[t + 1]
        for place in range(begin, end):
            scratch.z[place - begin] = instances.values[place] ** 2
        rows, start = instances.indices[begin:end], base + (1 + dense) * stride
        add_rows(v, variances, start, stride, rows, scratch.z, 0, end - begin)


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
def present_rows(view: MemberView, scratch: Scratch, instances: Instances, t: int, label: int) -> int:
    """`present_alone` where `by_rows`: the same steps, attribute by attribute with the classes abreast."""
    stride, base, known = view.shape[STRIDE], view.shape[EXPERTS], view.shape[KNOWN]
    rates, shrinks = scratch.own, scratch.spare
    add_variances(view, scratch, instances, t, shrinks)
    steps = 0
    for c in range(known):
        side = 1.0 if c == label else -1.0
        rate, shrink = 0.0, 0.0
        if shrinks[c] > 0.0:
            rate, shrink = call_gain(view.params[0], side * scratch.scores[c], shrinks[c], view.params)
        rates[c], shrinks[c] = side * rate, shrink
        steps += rate != 0.0 or shrink != 0.0
    if steps == 0:
        return 0
    weights, variances, inflation = view.weights, view.memory[0], view.params[1]
    grown = 0.0
    dense = instances.dense.shape[1]
    if instances.constant != 0.0:
        grown += move_row(weights[base:], variances[base:], rates, shrinks, known, inflation, instances.constant)
    for f in range(dense):
        if instances.dense[t, f] != 0.0:
            at = base + (1 + f) * stride
            grown += move_row(weights[at:], variances[at:], rates, shrinks, known, inflation, instances.dense[t, f])
    if instances.indptr.size:
        for place in range(instances.indptr[t], instances.indptr[t + 1]):
            at = base + (1 + dense + instances.indices[place]) * stride
            grown += move_row(weights[at:], variances[at:], rates, shrinks, known, inflation, instances.values[place])
    if not abs(grown) < HUGE * HUGE:
        return -1
    if view.tracked:
        averages.note_square(grown, view.kind, weights, view.backlog, view.sums)
    return steps


@kernel()
def look_again(view: MemberView, scratch: Scratch, instances: Instances, t: int) -> None:
    """The scores of instance t, those included that are too small for the stored weights to tell."""
    score(instances, t, view.shape, view.weights, scratch.scores)
    least = np.inf
    for j in range(view.shape[KNOWN]):
        least = min(least, abs(scratch.scores[j]))
    if view.spread != 0 and least < TINY:
        rescore(
            instances, t, view.shape, view.spread, view.memory, view.scalars, view.params, scratch.support, scratch.z,
            scratch.scores,
        )  # fmt: skip


@kernel(PRESENT)
def present_rivals(view: MemberView, scratch: Scratch, instances: Instances, t: int, label: int) -> int:
    """Present what a trial presents where it is not the best rival alone; the instance has just been looked at.

    Returns the number of updates, or -1 when a weight left the range of floats.
    """
    if view.kind != 0 or view.spread != 0:  # else its scores are still there
        look_again(view, scratch, instances, t)
    if view.rivals == VIOLATED:
        return present_violated(view, scratch, instances, t, label)
    if by_rows(view, instances):
        return present_rows(view, scratch, instances, t, label)
    return present_alone(view, scratch, instances, t, label)


def presenting(rule: Rule) -> int:
    """Address of what presents a trial to this rule, 0 when it is presented against the best rival alone."""
    return 0 if rule.rivals == "best" else address_of(present_rivals, PRESENT)
