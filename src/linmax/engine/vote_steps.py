"""Steps of the Perceptron, Winnow and ALMA on votes, and what averages keep of them, on copies of a member's arrays.

The operations and their order are those of the rules' own steps and of `linmax.core.averages.note`, so the results are
the same bits. What the vectors of `linmax.jit.vote_moves` do not cover, such as powers that are not listed, is left to
the rule.
"""

from __future__ import annotations

import math

import numpy as np

from linmax.core import averages
from linmax.core.averages import CANCELLED, LARGEST_G, LONG
from linmax.core.contract import ADDS, GAUGE, HUGE, MASS, MULTIPLIES, NORMED, PEAK, RAW, SHIFT, TOP
from linmax.core.member import (
    CHANGED,
    FAILED,
    UNCHANGED,
    MemberView,
    Scratch,
    difference_of_votes,
    present,
    rescale,
)
from linmax.core.search import Trials
from linmax.jit.compiling import kernel
from linmax.jit.panels import magnitude
from linmax.jit.selection import lowest_bit
from linmax.jit.vote_moves import (
    BACKLOG,
    DONE,
    FITS,
    GROWN,
    LEAD,
    MEMORY,
    MOVED,
    OLD,
    OLD_MEMORY,
    WEIGHTS,
    add_moves,
    norm_moves,
    note_moves,
    power_moves,
)
from linmax.jit.vote_panels import TABLE, fill_tables, whole_steps
from linmax.rules.alma import BOUND, LOG_C, NORMALISE, SIZES, pace, project
from linmax.rules.p_norm import LEAST, MOST, MOST_HALVES
from linmax.rules.winnow import FIRST_POWER, LISTED_POWERS, settle, weight_at

__all__ = ["bits_set", "give_back", "learn", "paces_of", "take_copies"]

FIRST_SHARE, LEAST_SHARE = 0.85, 0.6  # of the steps of a table: what the weights use at first, and at least
NOT_TRIED = -1
FIRST_LISTED = 2  # of the powers that are listed, after the scale and the rule that they are of
NEAR_POWERS = 8  # listed before and after one that is missing

present_apart = kernel(apart=True)(getattr(present, "py_func", present))


@kernel()
def take_copies(view: MemberView, copies: np.ndarray, form: int) -> MemberView:
    """The member as a view of copies, whose rows are whole vectors: zeros after its coordinates."""
    size = view.weights.size
    for i in range(size):
        copies[WEIGHTS, 0, i] = view.weights[i]
        copies[MEMORY, 0, i] = view.memory[0, i] if form != ADDS else 0.0
        copies[BACKLOG, 0, i] = view.backlog[i] if view.kind else 0.0
    for i in range(size, copies.shape[2]):
        copies[WEIGHTS, 0, i] = copies[MEMORY, 0, i] = copies[BACKLOG, 0, i] = 0.0
    return MemberView(
        view.step, view.spread, view.kind, view.tracked, view.everywhere, view.gain, view.only_sign, view.rivals,
        view.presents, view.shape, copies[WEIGHTS, 0, :size], copies[MEMORY], view.scalars, view.params,
        copies[BACKLOG, 0, : view.backlog.size], view.sums,
    )  # fmt: skip


@kernel()
def give_back(view: MemberView, copies: np.ndarray, form: int) -> None:
    """Write the copies to the member."""
    for i in range(view.weights.size):
        view.weights[i] = copies[WEIGHTS, 0, i]
        if form != ADDS:
            view.memory[0, i] = copies[MEMORY, 0, i]
        if view.kind:
            view.backlog[i] = copies[BACKLOG, 0, i]


@kernel()
def bits_set(bits: int) -> int:
    """How many bits are set, of at most 63."""
    bits -= (bits >> 1) & 0x5555555555555555
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    bits += bits >> 32
    bits += bits >> 16
    return (bits + (bits >> 8)) & 0x7F


@kernel()
def list_powers(view: MemberView, powers: np.ndarray, support: np.ndarray) -> None:
    """List the powers near those of the coordinates ``support``, at the present scale, for the steps to come."""
    shift, params, far = view.scalars[SHIFT], view.params, (powers.size - FIRST_LISTED) // 2
    middle = middle_of(shift, params)
    if powers[0] != shift or powers[1] != params[2]:  # those of another member, or scale
        powers[0], powers[1] = shift, params[2]
        for place in range(FIRST_LISTED, powers.size):
            powers[place] = np.nan
    for j in range(support.size):
        exponent = view.memory[0, support[j]]
        if exponent == math.floor(exponent) and abs(exponent - middle) < far - NEAR_POWERS:
            for s in range(int(exponent) - NEAR_POWERS, int(exponent) + NEAR_POWERS + 1):
                place = FIRST_LISTED + far + s - int(middle)
                if powers[place] != powers[place]:
                    powers[place] = weight_at(float(s), shift, params)


@kernel()
def middle_of(shift: float, params: np.ndarray) -> float:
    """The exponent in the middle of a list: that of a weight which is stored as about 1."""
    return math.floor(shift / params[2])


@kernel(hot=True)
def move_votes(view: MemberView, scratch: Scratch, up: int, down: int, form: int, paces: tuple[float, float]) -> int:
    """The weights' part of a step: what `linmax.jit.vote_moves` says of it, or NOT_TRIED."""
    params, copies, powers, shift = view.params, scratch.copies, scratch.powers, view.scalars[SHIFT]
    if form == ADDS:
        return add_moves(copies, up, down, params[0], HUGE)
    if form == MULTIPLIES:
        if powers[0] == shift and powers[1] == params[2]:
            table, far = powers[FIRST_LISTED:], (powers.size - FIRST_LISTED) // 2
            return power_moves(copies, up, down, table, far, middle_of(shift, params), 1.0, HUGE)
        if shift == 0.0:
            return power_moves(copies, up, down, params[FIRST_POWER:], LISTED_POWERS, 0.0, params[1], HUGE)
        return NOT_TRIED
    halves = 2.0 * (params[0] - 1.0)
    if shift != 0.0 or halves != math.floor(halves) or halves > MOST_HALVES:
        return NOT_TRIED
    size = params[SIZES + bits_set(up | down)] if params[NORMALISE] != 0.0 else params[BOUND]
    amount = paces[0] / size / paces[1]
    return norm_moves(copies, up, down, amount, int(halves), (LEAST, MOST, HUGE))


@kernel(hot=True)
def step_by_rule(view: MemberView, scratch: Scratch, trials: Trials, t: int, rival: int, form: int, tried: bool) -> int:
    """`present` instance t to the rule itself, with the copies as they were before `move_votes`."""
    weights, memory, copies = view.weights, view.memory, scratch.copies
    for i in range(weights.size if tried else 0):
        weights[i] = copies[OLD, 0, i]
        memory[0, i] = copies[OLD_MEMORY, 0, i]
    label = trials.labels[t]
    count = difference_of_votes(trials.instances, t, view.shape, label, rival, scratch.support, scratch.z)
    outcome = present_apart(view, scratch, count, -1.0)
    if form == MULTIPLIES:
        list_powers(view, scratch.powers, scratch.support[:count])
    return outcome


@kernel(hot=True)
def paces_of(view: MemberView, form: int) -> tuple[float, float]:
    """What the next step of ALMA goes by; known before it is known on which instance, so that nothing waits for it."""
    return (pace(view.scalars, view.params), math.exp(view.scalars[LOG_C])) if form == NORMED else (0.0, 0.0)


@kernel()
def drowned(scalars: np.ndarray, means: np.ndarray) -> bool:
    """Whether new weights times WEIGHT would drown a raw sum (see `linmax.core.averages.note`).

    A power of 2 below the scale mostly tells, and spares an exponential.
    """
    limit = LONG * means[averages.AGE]
    low = math.floor((scalars[SHIFT] + scalars[GAUGE] - means[averages.ANCHOR]) * 1.4426950408889634) - 1.0
    if abs(low) < 900.0 and means[averages.WEIGHT] <= limit * math.ldexp(1.0, int(low)):
        return False
    return means[averages.WEIGHT] > LONG * averages.term(RAW, scalars, means) * means[averages.AGE]


@kernel()
def aimed(view: MemberView, scratch: Scratch, unit: float) -> tuple[float, float]:
    """Fill the tables with the weights as they are now: (steps of a weight of 1, steps by which rounding moved them).

    A unit that still does is kept: then nothing waits for the sum of the magnitudes. Without tables both are 0.
    """
    steps = whole_steps(scratch.tables.size // TABLE)
    total, off = 0.0, 0.0
    if unit > 0.0:
        total, off = fill_tables(scratch.copies[WEIGHTS, 0], unit, scratch.tables)
    if not LEAST_SHARE * steps < total < steps:
        total = magnitude(view.weights)
        if not 0.0 < total < np.inf:
            return 0.0, 0.0
        unit = FIRST_SHARE * steps / total
        _, off = fill_tables(scratch.copies[WEIGHTS, 0], unit, scratch.tables)
    return unit, off


@kernel(hot=True)
def learn(
    view: MemberView,
    scratch: Scratch,
    trials: Trials,
    t: int,
    rival: int,
    form: int,
    paces: tuple[float, float],
    unit: float,
) -> tuple[int, float, float]:
    """The rule's step on instance t: up for those who vote for its label, down for those who vote for the rival.

    Returns what came of it, and what `aimed` found. The tables, for which the next search waits, are filled before the
    averages are brought up to date.
    """
    means, scalars, copies, afresh, shift = view.sums, view.scalars, scratch.copies, False, view.scalars[SHIFT]
    up, down = trials.panel.voters[t, trials.labels[t]], trials.panel.voters[t, rival]
    bits = up | down
    if form == NORMED and bits == 0:
        return UNCHANGED, unit, 0.0
    done = move_votes(view, scratch, up, down, form, paces)
    if done < 0 or not done & DONE:
        outcome = step_by_rule(view, scratch, trials, t, rival, form, done >= 0)
        unit, off = aimed(view, scratch, unit)
        return outcome, unit, off
    fits = done & FITS != 0
    unit, off = aimed(view, scratch, unit)
    if means[averages.IDLE] > 0.0:
        afresh = averages.settle(averages.term(view.kind, scalars, means), means)
    mass = scalars[MASS]
    if form == NORMED:
        while bits != 0:
            mass += copies[GROWN, 0, np.uint64(lowest_bit(bits))]
            bits &= bits - 1
        scalars[MASS] = mass
        project(view.weights, view.memory, scalars, view.params)
        if view.kind and means[averages.WEIGHT] > 0.0 and drowned(scalars, means):
            averages.rebase(view.kind, copies[OLD, 0, : view.weights.size], view.backlog, means)
        bits = up | down
    note_moves(copies, means[averages.WEIGHT])
    square, cross = means[averages.SQUARE], means[averages.CROSS]
    while bits != 0:
        i = np.uint64(lowest_bit(bits))
        square += copies[GROWN, 0, i]
        cross += copies[LEAD, 0, i] * copies[MOVED, 0, i]
        mass += copies[MOVED, 0, i]
        bits &= bits - 1
    means[averages.SQUARE], means[averages.CROSS] = square, cross if view.kind else means[averages.CROSS]
    if form == MULTIPLIES:
        settle(view.weights, scalars, mass, view.params[3])
    elif form == ADDS:
        scalars[TOP] = 0.0 if fits else np.inf
    outcome = finish(view, fits, afresh)
    if scalars[SHIFT] != shift:  # the weights may have been scaled
        unit, off = aimed(view, scratch, unit)
    return outcome, unit, off


@kernel(hot=True)
def finish(view: MemberView, fits: bool, afresh: bool) -> int:
    """Sums that lost digits are taken afresh, and weights that left the range are scaled."""
    means, scalars = view.sums, view.scalars
    means[averages.HIGHEST] = max(means[averages.HIGHEST], means[averages.SQUARE])
    if afresh or not means[averages.SQUARE] > CANCELLED * means[averages.HIGHEST]:
        averages.sums(view.kind, view.weights, view.backlog, means)
    if not fits and view.spread == 0:
        return FAILED
    if view.spread != 0 and (not fits or (scalars[MASS] < 1.0 / HUGE and scalars[PEAK] > 0.0)):
        rescale(view)
    if view.kind and scalars[SHIFT] + scalars[GAUGE] > means[averages.ANCHOR] + LARGEST_G:
        averages.raise_anchor(scalars, view.weights, view.backlog, means)
    return CHANGED
