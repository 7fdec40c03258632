"""One member at work: an instance is presented to its rule, and its weights and averages are kept in order."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import int64, typeof
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
    State,
    _example,
    call_spread,
    call_step,
)
from linmax.core.linear_max import difference, put
from linmax.jit.compiling import JIT, caller, kernel
from linmax.jit.panels import LANES

__all__ = [
    "CHANGED",
    "FAILED",
    "LANES",
    "PRESENT",
    "UNCHANGED",
    "Bench",
    "Scratch",
    "ScratchT",
    "call_present",
    "lay_out",
    "only_votes",
    "present",
    "present_instance",
    "scratch_for",
]

UNCHANGED, CHANGED, FAILED = 0, 1, 2
CLOSE = 100.0  # weights whose logarithms are within this are kept as they are: then equal powers stay equal


class Scratch(NamedTuple):
    """Room to work in; holds nothing between calls."""

    scores: np.ndarray  # as long as the stride: scores of the classes
    spare: np.ndarray
    own: np.ndarray
    support: np.ndarray  # z where it is not 0: coordinates and values
    z: np.ndarray
    before: np.ndarray
    full_index: np.ndarray  # z on all coordinates, for rules that want it
    full_z: np.ndarray
    single: np.ndarray  # float32: weights for a panel
    single_slope: np.ndarray
    lanes: np.ndarray  # float32: scores of sixteen instances
    slopes: np.ndarray
    leads: np.ndarray
    candidate: np.ndarray  # a hypothesis written out


class Bench(NamedTuple):
    """One member's state and rule laid out for work."""

    step: int
    spread: int
    kind: int  # how it averages, 0 = not at all
    tracked: int  # whether its 2-norm is kept
    everywhere: int  # whether the step wants all coordinates
    gain: int  # whether it is of second order
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
def lay_out(members: Members, state: State, member: int, tracked: int) -> Bench:
    """One member's arrays."""
    kind = members.averaging[member]
    return Bench(
        members.steps[member],
        members.spreads[member],
        kind,
        tracked,
        members.everywhere[member],
        members.gains[member],
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
    """Room for one member: ``support`` is the most coordinates that a z can touch, ``rows`` the classes of a panel."""
    full = state.weights.shape[1] if everywhere else 0
    width = -(-max(int(state.shape[STRIDE]), classes) // 8) * 8  # whole vectors
    size = state.weights.shape[1]
    return Scratch(
        np.zeros(width),
        np.zeros(width),
        np.zeros(width),
        np.zeros(support, np.int64),
        np.zeros(support),
        np.zeros(support),
        np.zeros(full, np.int64),
        np.zeros(full),
        np.zeros(size if rows else 0, np.float32),
        np.zeros(size if rows else 0, np.float32),
        np.zeros((rows, LANES), np.float32),
        np.zeros((rows, LANES), np.float32),
        np.zeros(LANES, np.float32),
        np.zeros(size if rows or voting else 0),
    )


ScratchT = typeof(scratch_for(_example()[2], True, 1, 1, 1, True))
_line, _table, _shape = np.zeros(1), np.zeros((1, 1)), np.zeros(1, np.int64)
BenchT = typeof(Bench(0, 0, 0, 0, 0, 0, 0, 0, _shape, _line, _table, _line, _line, _line, _line))
PRESENT = int64(BenchT, ScratchT, InstancesT, int64, int64)  # see `linmax.core.rivals.present_rivals`


if JIT:

    @intrinsic
    def call_present(_, address, bench, room, instances, t, label):  # type: ignore[no-untyped-def]
        """By address, so that those who meet the best rival alone need not compile it."""
        return PRESENT.return_type(int64, *PRESENT.args), caller(PRESENT)

else:
    call_present = caller(PRESENT)


@kernel()
def rescale(bench: Bench) -> None:
    """Move SHIFT so that the largest stored weight becomes 1. Rare: they must first grow or shrink by 100 decades."""
    weights, memory, scalars = bench.weights, bench.memory, bench.scalars
    averages.rebase(bench.kind, weights, bench.backlog, bench.sums)
    largest = -np.inf
    for i in range(weights.size):
        factor, log = call_spread(bench.spread, memory, scalars, i, bench.params)
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
        factor, log = call_spread(bench.spread, memory, scalars, i, bench.params)
        if factor == factor:  # nan: the coordinate does not exist
            weights[i] = factor * math.exp(log - largest) if factor != 0.0 else 0.0
    averages.rescaled(bench.kind, shrink, weights, bench.backlog, bench.sums)


@kernel()
def everything(index: np.ndarray, z: np.ndarray, count: int, full_index: np.ndarray, full_z: np.ndarray) -> None:
    """z over all coordinates, for rules whose update may change every weight."""
    for i in range(full_index.size):
        full_index[i] = i
        full_z[i] = 0.0
    for place in range(count):
        full_z[index[place]] = z[place]


@kernel(hot=True)
def present(bench: Bench, room: Scratch, count: int, margin: float) -> int:
    """Give the rule the z in ``room``: UNCHANGED, CHANGED or FAILED (a weight left the range of floats)."""
    weights, scalars = bench.weights, bench.scalars
    g = averages.term(bench.kind, scalars, bench.sums) if bench.sums[averages.IDLE] > 0.0 else 0.0
    if bench.everywhere:
        everything(room.support, room.z, count, room.full_index, room.full_z)
        shift = scalars[SHIFT]
        averages.settle(g, bench.sums)
        averages.rebase(bench.kind, weights, bench.backlog, bench.sums)
        if not call_step(
            bench.step, weights, bench.memory, scalars, room.full_index, room.full_z, margin, bench.params
        ):
            return UNCHANGED
        averages.rescaled(bench.kind, math.exp(shift - scalars[SHIFT]), weights, bench.backlog, bench.sums)
        if bench.kind == RAW:
            averages.raise_anchor(scalars, weights, bench.backlog, bench.sums)
        return CHANGED if bench.sums[averages.SQUARE] < HUGE * HUGE else FAILED
    index, z = room.support[:count], room.z[:count]
    if bench.tracked:
        for place in range(count):
            room.before[place] = weights[index[place]]
    if not call_step(bench.step, weights, bench.memory, scalars, index, z, margin, bench.params):
        return UNCHANGED
    afresh = averages.settle(g, bench.sums)
    if bench.tracked:
        averages.note(bench.kind, scalars, weights, bench.backlog, bench.sums, index, room.before, afresh)
    huge = False
    for place in range(count):
        huge = huge or not abs(weights[index[place]]) < HUGE
    if huge and bench.spread == 0:
        return FAILED
    if bench.spread != 0 and (huge or (scalars[MASS] < 1.0 / HUGE and scalars[PEAK] > 0.0)):
        rescale(bench)
    if bench.kind == RAW:
        averages.raise_anchor(scalars, weights, bench.backlog, bench.sums)
    return CHANGED


@kernel(hot=True)
def only_votes(instances: Instances) -> bool:
    """Whether there are no sub-experts but voters and thresholds."""
    return instances.scores.shape[1] + instances.dense.shape[1] + instances.indptr.size == 0


@kernel(hot=True)
def difference_of_votes(
    instances: Instances, t: int, shape: np.ndarray, label: int, rival: int, index: np.ndarray, z: np.ndarray
) -> int:
    """`difference` where there are `only_votes`, without branches: which voters agree cannot be foretold."""
    count = 0
    for i in range(instances.signs.size):
        vote, sign = instances.votes[t, i], instances.signs[i]
        index[count] = i
        z[count] = sign if vote == label else -sign
        count += 1 if vote >= 0 and (vote == label or vote == rival) else 0
    if instances.constant != 0.0:
        count = put(index, z, count, shape[EXPERTS], label, rival, instances.constant)
    return count


@kernel(hot=True)
def present_instance(
    bench: Bench, room: Scratch, instances: Instances, t: int, label: int, rival: int, margin: float
) -> int:
    """`present` z = x^label - x^rival of instance t; a class of -1 rates everything 0."""
    if only_votes(instances):
        count = difference_of_votes(instances, t, bench.shape, label, rival, room.support, room.z)
    else:
        count = difference(instances, t, bench.shape, label, rival, room.support, room.z)
    return present(bench, room, count, margin)
