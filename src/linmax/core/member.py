"""One member at work: an instance is presented to its rule, and its weights and averages are kept in order."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import int64, typeof, types
from numba.extending import intrinsic

from linmax.core import averages
from linmax.core.contract import (
    EXPERTS,
    HUGE,
    MASS,
    PEAK,
    RAW,
    REACH,
    SHIFT,
    STRIDE,
    Instances,
    InstancesT,
    Members,
    MembersT,
    State,
    StateT,
    _example,
    call_spread,
    call_step,
)
from linmax.core.linear_max import difference, put
from linmax.jit.compiling import JIT, caller, kernel, written_out
from linmax.jit.panels import GROUP_SIZE, LANES

__all__ = [
    "CHANGED",
    "FAILED",
    "LANES",
    "PRESENT",
    "UNCHANGED",
    "EngineArrays",
    "EngineArraysT",
    "MemberView",
    "MemberViewT",
    "Scratch",
    "ScratchT",
    "call_present",
    "only_votes",
    "present",
    "present_instance",
    "rescale",
    "scratch_for",
    "view_of",
]

UNCHANGED, CHANGED, FAILED = 0, 1, 2
CLOSE = 100.0  # weights whose logarithms are within this are kept as they are: then equal powers stay equal


class Scratch(NamedTuple):
    """Working memory of the kernels; holds nothing between calls of theirs."""

    scores: np.ndarray  # as long as the stride: scores of the classes
    spare: np.ndarray
    own: np.ndarray
    support: np.ndarray  # z where it is not 0: coordinates and values
    z: np.ndarray
    before: np.ndarray
    full_index: np.ndarray  # z on all coordinates, for rules that want it
    full_z: np.ndarray
    tables: np.ndarray  # float32: the weights for a panel: a table for each group of votes, or one number for each
    tables_mean: np.ndarray  # those of an average
    lanes: np.ndarray  # float32 (k, 16): scores of sixteen instances
    slopes: np.ndarray
    leads: np.ndarray
    candidate: np.ndarray  # a hypothesis written out


class MemberView(NamedTuple):
    """One member's rule, and its part of the state arrays."""

    step: int
    spread: int
    kind: int  # how it averages, 0 = not at all
    tracked: int  # whether its 2-norm is kept
    everywhere: int  # whether the step wants all coordinates
    gain: int  # whether it is of second order
    only_sign: int  # whether the step asks only whether the margin is above REACH
    rivals: int
    presents: int
    shape: np.ndarray
    weights: np.ndarray
    memory: np.ndarray
    scalars: np.ndarray
    params: np.ndarray
    backlog: np.ndarray
    sums: np.ndarray


@kernel()
def view_of(members: Members, state: State, member: int, tracked: int) -> MemberView:
    """The view of one member."""
    kind = members.averaging[member]
    return MemberView(
        members.steps[member],
        members.spreads[member],
        kind,
        tracked,
        members.everywhere[member],
        members.gains[member],
        members.only_sign[member],
        members.rivals[member],
        members.presents[member],
        state.shape,
        state.weights[member],
        state.memory[member],
        state.scalars[member],
        members.params[member],
        state.backlog[member] if kind else state.backlog[member, :0],
        state.means[member],
    )


def scratch_for(state: State, everywhere: bool, classes: int, support: int, rows: int, voting: bool) -> Scratch:
    """Working memory for one member: z touches at most ``support`` coordinates, a panel has ``rows`` classes."""
    size = state.weights.shape[1]
    full = size if everywhere else 0
    width = -(-max(int(state.shape[STRIDE]), classes) // 8) * 8  # whole vectors
    tables = -(-size // GROUP_SIZE) * LANES if rows else 0
    return Scratch(
        np.zeros(width),
        np.zeros(width),
        np.zeros(width),
        np.zeros(support, np.int64),
        np.zeros(support),
        np.zeros(support),
        np.zeros(full, np.int64),
        np.zeros(full),
        np.zeros(tables, np.float32),
        np.zeros(tables, np.float32),
        np.zeros((rows, LANES), np.float32),
        np.zeros((rows, LANES), np.float32),
        np.zeros(LANES, np.float32),
        np.zeros(size if rows or voting else 0),
    )


ScratchT = typeof(scratch_for(_example()[2], True, 1, 1, 1, True))


class EngineArrays(NamedTuple):
    """All members and their state, and working memory for one member at a time."""

    members: Members
    state: State
    scratch: Scratch
    tracked: int  # whether the 2-norms of the weights are kept


EngineArraysT = types.NamedTuple([MembersT, StateT, ScratchT, int64], EngineArrays)
_line, _table, _shape = np.zeros(1), np.zeros((1, 1)), np.zeros(1, np.int64)
MemberViewT = typeof(MemberView(0, 0, 0, 0, 0, 0, 0, 0, 0, _shape, _line, _table, _line, _line, _line, _line))
PRESENT = int64(MemberViewT, ScratchT, InstancesT, int64, int64)  # see `linmax.core.rivals.present_rivals`


if JIT:

    @intrinsic
    def call_present(_, address, view, scratch, instances, t, label):  # type: ignore[no-untyped-def]
        """By address, so that those who meet the best rival alone need not compile it."""
        return PRESENT.return_type(int64, *PRESENT.args), caller(PRESENT)

else:
    call_present = caller(PRESENT)


@kernel()
def rescale(view: MemberView) -> None:
    """Move SHIFT so that the largest stored weight becomes 1. Rare: they must first grow or shrink by 100 decades."""
    weights, memory, scalars = view.weights, view.memory, view.scalars
    averages.rebase(view.kind, weights, view.backlog, view.sums)
    largest = -np.inf
    for i in range(weights.size):
        factor, log = call_spread(view.spread, memory, scalars, i, view.params)
        if factor == factor and factor != 0.0:
            largest = max(largest, log + math.log(abs(factor)))
    if largest == -np.inf or abs(largest) < CLOSE:
        largest = 0.0
    shrink = math.exp(min(scalars[SHIFT] - largest, 300.0))
    scalars[SHIFT] = largest
    if scalars[REACH] < np.inf:
        scalars[REACH] *= shrink
    scalars[MASS] *= shrink
    scalars[PEAK] = np.inf  # the rule takes MASS afresh with its next update
    for i in range(weights.size):
        factor, log = call_spread(view.spread, memory, scalars, i, view.params)
        if factor == factor:  # nan: the coordinate does not exist
            weights[i] = factor * math.exp(log - largest) if factor != 0.0 else 0.0
    averages.rescaled(view.kind, shrink, weights, view.backlog, view.sums)


@kernel()
def everything(index: np.ndarray, z: np.ndarray, count: int, full_index: np.ndarray, full_z: np.ndarray) -> None:
    """z over all coordinates, for rules whose update may change every weight."""
    for i in range(full_index.size):
        full_index[i] = i
        full_z[i] = 0.0
    for place in range(count):
        full_z[index[place]] = z[place]


@kernel(hot=True)
def present(view: MemberView, scratch: Scratch, count: int, margin: float) -> int:
    """Give the rule the z in ``scratch``: UNCHANGED, CHANGED or FAILED (a weight left the range of floats)."""
    weights, scalars = view.weights, view.scalars
    g = averages.term(view.kind, scalars, view.sums) if view.sums[averages.IDLE] > 0.0 else 0.0
    if view.everywhere:
        everything(scratch.support, scratch.z, count, scratch.full_index, scratch.full_z)
        shift = scalars[SHIFT]
        averages.settle(g, view.sums)
        averages.rebase(view.kind, weights, view.backlog, view.sums)
        if not call_step(
            view.step, weights, view.memory, scalars, scratch.full_index, scratch.full_z, margin, view.params
        ):
            return UNCHANGED
        averages.rescaled(view.kind, math.exp(shift - scalars[SHIFT]), weights, view.backlog, view.sums)
        if view.kind == RAW:
            averages.raise_anchor(scalars, weights, view.backlog, view.sums)
        return CHANGED if view.sums[averages.SQUARE] < HUGE * HUGE else FAILED
    index, z = scratch.support[:count], scratch.z[:count]
    if view.tracked:
        for place in range(count):
            scratch.before[place] = weights[index[place]]
    if not call_step(view.step, weights, view.memory, scalars, index, z, margin, view.params):
        return UNCHANGED
    afresh = averages.settle(g, view.sums)
    if view.tracked:
        averages.note(view.kind, scalars, weights, view.backlog, view.sums, index, scratch.before, afresh)
    huge = False
    for place in range(count):
        huge = huge or not abs(weights[index[place]]) < HUGE
    if huge and view.spread == 0:
        return FAILED
    if view.spread != 0 and (huge or (scalars[MASS] < 1.0 / HUGE and scalars[PEAK] > 0.0)):
        rescale(view)
    if view.kind == RAW:
        averages.raise_anchor(scalars, weights, view.backlog, view.sums)
    return CHANGED


@kernel(hot=True)
def only_votes(instances: Instances) -> bool:
    """Whether there are no sub-experts but voters and thresholds."""
    return instances.scores.shape[1] + instances.dense.shape[1] + instances.indptr.size == 0


@kernel(hot=True)
def difference_of_votes(
    instances: Instances, t: int, shape: np.ndarray, label: int, rival: int, index: np.ndarray, z: np.ndarray
) -> int:
    """`difference` where there are `only_votes`."""
    count = 0
    for i in range(instances.signs.size):
        vote = instances.votes[t, i]
        if vote >= 0 and (vote == label or vote == rival):
            index[count] = i
            z[count] = instances.signs[i] if vote == label else -instances.signs[i]
            count += 1
    if instances.constant != 0.0:
        count = put(index, z, count, shape[EXPERTS], label, rival, instances.constant)
    return count


difference_here = written_out(difference)


@kernel(hot=True)
def present_instance(
    view: MemberView, scratch: Scratch, instances: Instances, t: int, label: int, rival: int, margin: float
) -> int:
    """`present` z = x^label - x^rival of instance t; a class of -1 rates everything 0."""
    if only_votes(instances):
        count = difference_of_votes(instances, t, view.shape, label, rival, scratch.support, scratch.z)
    else:
        count = difference_here(instances, t, view.shape, label, rival, scratch.support, scratch.z)
    return present(view, scratch, count, margin)
