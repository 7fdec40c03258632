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
    MEMORY,
    OLD,
    OLD_MEMORY,
    WEIGHTS,
    norm_moves,
)
from linmax.jit.vote_panels import TABLE, fill_tables, whole_steps
from linmax.rules.alma import BOUND, LOG_C, NORMALISE, SIZES, pace, project
from linmax.rules.p_norm import LEAST, MOST, MOST_HALVES
from linmax.rules.winnow import FIRST_POWER, LISTED_POWERS, settle, weight_at

__all__ = ["bits_set", "give_back", "learn", "paces_of", "room_for", "take_copies"]

FIRST_SHARE, LEAST_SHARE = 0.85, 0.6  # of the steps of a table: what the weights use at first, and at least
FIRST_LISTED = 3  # of the powers that are listed, after the scale and the rule that they are of
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
def middle_of(shift: float, params: np.ndarray) -> int:
    """The exponent in the middle of a list of powers: that of a weight which is stored as about 1."""
    return math.floor(shift / params[2])


@kernel()
def list_powers(view: MemberView, powers: np.ndarray, support: np.ndarray) -> None:
    """List the powers near those of the coordinates ``support``, at the present scale, for the steps to come."""
    shift, params, far = view.scalars[SHIFT], view.params, (powers.size - FIRST_LISTED) // 2
    middle = middle_of(shift, params)
    if not is_listed(view, powers):  # those of another member, or scale
        powers[0], powers[1], powers[2] = shift, params[2], params[1]
        for place in range(FIRST_LISTED, powers.size):
            powers[place] = np.nan
    for j in range(support.size):
        exponent = view.memory[0, support[j]]
        if exponent == math.floor(exponent) and abs(exponent - middle) < far - NEAR_POWERS:
            for s in range(int(exponent) - NEAR_POWERS, int(exponent) + NEAR_POWERS + 1):
                place = FIRST_LISTED + far + s - middle
                if powers[place] != powers[place]:
                    powers[place] = weight_at(float(s), shift, params)


@kernel()
def is_listed(view: MemberView, powers: np.ndarray) -> bool:
    """Whether the powers that are listed are of this member at its present scale."""
    return bool(powers[0] == view.scalars[SHIFT] and powers[1] == view.params[2] and powers[2] == view.params[1])


@kernel(hot=True)
def add_votes(view: MemberView, copies: np.ndarray, up: int, down: int) -> int:
    """The weights' part of the Perceptron's step: bits of `linmax.jit.vote_moves`."""
    weights, old, rate, bits, fits = copies[WEIGHTS, 0], copies[OLD, 0], view.params[0], up | down, True
    while bits != 0:
        bit = lowest_bit(bits)
        i = np.uint64(bit)
        old[i] = weights[i]
        new = weights[i] + rate * (1 - 2 * ((down >> bit) & 1))
        weights[i] = new
        fits &= abs(new) < HUGE
        bits &= bits - 1
    return DONE | (FITS if fits else 0)


@kernel(hot=True)
def multiply_votes(
    view: MemberView, copies: np.ndarray, up: int, down: int, table: np.ndarray, zero: int, start: float
) -> tuple[int, float]:
    """The same for Winnow's step, and its MASS; ``table[zero]`` is the power 0, nan where none has been taken."""
    weights, memory, old = copies[WEIGHTS, 0], copies[MEMORY, 0], copies[OLD, 0]
    mass, bits, fits = view.scalars[MASS], up | down, True
    while bits != 0:
        bit = lowest_bit(bits)
        i = np.uint64(bit)
        exponent, before = memory[i] + (1 - 2 * ((down >> bit) & 1)), weights[i]
        new = start * table[np.uint64(int(exponent) + zero)]
        mass += new - before
        old[i] = before
        memory[i] = exponent
        weights[i] = new
        bits &= bits - 1
    if mass < 0.5 * HUGE:  # no weight is larger: all are positive
        return DONE | FITS, mass
    bits, known = up | down, mass == mass
    while bits != 0:
        bit = lowest_bit(bits)
        i = np.uint64(bit)
        fits &= abs(weights[i]) < HUGE
        if not known:
            weights[i] = old[i]
            memory[i] -= 1 - 2 * ((down >> bit) & 1)
        bits &= bits - 1
    return (DONE if known else 0) | (FITS if fits else 0), mass


@kernel()
def room_for(view: MemberView, powers: np.ndarray) -> int:
    """For how many steps all powers of Winnow's weights will be in the list, as far as it is filled; 0 without one."""
    far, middle = LISTED_POWERS, 0
    if is_listed(view, powers):
        far, middle = (powers.size - FIRST_LISTED) // 2, middle_of(view.scalars[SHIFT], view.params)
    elif view.scalars[SHIFT] != 0.0:
        return 0
    room = far
    for i in range(view.weights.size):
        exponent = view.memory[0, i]
        if exponent == exponent:  # nan where the coordinate does not exist
            if exponent != math.floor(exponent) or abs(exponent - middle) >= far:
                return 0
            room = min(room, far - abs(int(exponent) - middle))
    return room


@kernel(hot=True)
def move_votes(
    view: MemberView, scratch: Scratch, up: int, down: int, form: int, paces: tuple[float, float], room: int
) -> tuple[int, float]:
    """The weights' part of a step, and Winnow's MASS: bits of `linmax.jit.vote_moves`; not DONE is left to the rule."""
    params, copies, powers, shift = view.params, scratch.copies, scratch.powers, view.scalars[SHIFT]
    if form == ADDS:
        return add_votes(view, copies, up, down), 0.0
    if form == MULTIPLIES:
        if room <= 0:
            return 0, 0.0
        table, zero, start = params[FIRST_POWER:], LISTED_POWERS, params[1]
        if is_listed(view, powers):
            far = (powers.size - FIRST_LISTED) // 2
            table, zero, start = powers[FIRST_LISTED:], far - middle_of(shift, params), 1.0
        return multiply_votes(view, copies, up, down, table, zero, start)
    halves = 2.0 * (params[0] - 1.0)
    if shift != 0.0 or halves != math.floor(halves) or halves > MOST_HALVES:
        return 0, 0.0
    size = params[SIZES + bits_set(up | down)] if params[NORMALISE] != 0.0 else params[BOUND]
    done = norm_moves(copies, up, down, paces[0] / size / paces[1], int(halves), (LEAST, MOST, HUGE))
    if not done & DONE:
        for i in range(view.weights.size):
            view.weights[i] = copies[OLD, 0, i]
            view.memory[0, i] = copies[OLD_MEMORY, 0, i]
    return done, 0.0


@kernel(hot=True)
def step_by_rule(view: MemberView, scratch: Scratch, trials: Trials, t: int, rival: int, form: int) -> int:
    """`present` instance t to the rule itself."""
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


@kernel(hot=True)
def note_votes(view: MemberView, copies: np.ndarray, bits: int) -> None:
    """What `averages.note` does of a step that changed the weights at these bits from OLD."""
    weights, old, backlog, means = copies[WEIGHTS, 0], copies[OLD, 0], copies[BACKLOG, 0], view.sums
    weight, square, cross = means[averages.WEIGHT], means[averages.SQUARE], means[averages.CROSS]
    while bits != 0:
        i = np.uint64(lowest_bit(bits))
        new, before = weights[i], old[i]
        square += new * new - before * before
        cross += (weight * before - backlog[i]) * (new - before)
        backlog[i] += weight * (new - before)
        bits &= bits - 1
    means[averages.SQUARE] = square
    if view.kind:
        means[averages.CROSS] = cross


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
    room: int,
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
    done, mass = move_votes(view, scratch, up, down, form, paces, room)
    if not done & DONE:
        outcome = step_by_rule(view, scratch, trials, t, rival, form)
        unit, off = aimed(view, scratch, unit)
        return outcome, unit, off
    fits = done & FITS != 0
    unit, off = aimed(view, scratch, unit)
    if means[averages.IDLE] > 0.0:
        afresh = averages.settle(averages.term(view.kind, scalars, means), means)
    if form == NORMED:
        mass = scalars[MASS]
        while bits != 0:
            mass += copies[GROWN, 0, np.uint64(lowest_bit(bits))]
            bits &= bits - 1
        scalars[MASS] = mass
        project(view.weights, view.memory, scalars, view.params)
        if view.kind and means[averages.WEIGHT] > 0.0 and drowned(scalars, means):
            averages.rebase(view.kind, copies[OLD, 0, : view.weights.size], view.backlog, means)
    note_votes(view, copies, up | down)
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
