"""`linmax.techniques.recycling.recycle_instances` where only votes are kept and the rule is one of the papers' pool.

VR-Combine spends most of its time here: 31 rules, each shown a hundred instances again after every update. The steps of
the Perceptron, Winnow and ALMA are written out on the bits of the voters that agree, together with what averages keep
of them, and a block of sixteen instances is looked up once however many of them are in doubt. The operations and their
order are those of the general functions, so the results are the same bits.
"""

from __future__ import annotations

import math

import numpy as np

from linmax.core import averages
from linmax.core.averages import CANCELLED, LARGEST_G, LONG
from linmax.core.contract import (
    ADDS,
    EXPERTS,
    GAUGE,
    HUGE,
    KNOWN,
    MASS,
    MULTIPLIES,
    NORMED,
    ON_TIES,
    OTHER,
    PEAK,
    RAW,
    REACH,
    RECYCLED,
    SHIFT,
    TOP,
    UPDATES,
)
from linmax.core.linear_max import TINY, rescore, top_two
from linmax.core.member import LANES, MemberView, Scratch, rescale
from linmax.core.search import Trials, score_votes, sure_rival, usable
from linmax.jit.compiling import address_of, kernel
from linmax.jit.panels import magnitude
from linmax.jit.selection import agreeing, lowest_bit
from linmax.jit.vote_panels import TABLE, close_codes, fill_tables, whole_steps
from linmax.rules.alma import BOUND, LOG_C, NORMALISE, SIZES, project, step_size
from linmax.rules.alma import step as alma_step
from linmax.rules.p_norm import weight_at as weight_of_norm
from linmax.rules.perceptron import step as perceptron_step
from linmax.rules.winnow import LISTED_POWERS, settle, weight_at
from linmax.rules.winnow import step as winnow_step
from linmax.techniques.node import Run
from linmax.techniques.recycling import FOREVER, LEFT_RANGE, NOT_LEARNED, RECYCLE

__all__ = ["form_of", "recycle_votes", "recycler_of"]

CHANGED, UNCHANGED, FAILED = 1, 0, -1
FIRST_SHARE, LEAST_SHARE = 0.85, 0.6  # of the steps of a table: what the weights use at first, and at least
NEARLY = 0.01  # of a step: far more than the rounding of sums of weights


def form_of(run: Run, tracked: bool, votes: bool) -> int:
    """How a member's rule moves weights; ``votes``: there are few voters and nothing else.

    OTHER where the general functions do it: `recycle_instances`, or the step that `linmax.engine.plain_loop` calls.
    """
    rule, (kept, _, passes, budget) = run.rule, run.recycling
    if rule.rivals != "best" or not rule.only_sign:
        return OTHER
    if not tracked:
        return ADDS if rule.step is perceptron_step and not kept else OTHER
    if not votes or not kept or budget or passes != FOREVER or run.averaging not in (0, RAW):
        return OTHER
    forms = ((perceptron_step, ADDS), (winnow_step, MULTIPLIES), (alma_step, NORMED))
    return next((form for step, form in forms if rule.step is step), OTHER)


@kernel(hot=True)
def look(view: MemberView, scratch: Scratch, trials: Trials, t: int) -> int:
    """The rival to update against, from scores in full; -1 where nothing calls for it."""
    shape, scores, label = view.shape, scratch.scores, trials.labels[t]
    score_votes(trials.instances, t, shape, view.weights, scores)
    first, second = top_two(scores, shape)
    thick = first == label and second >= 0 and view.scalars[REACH] > 0.0 and abs(scores[second]) < TINY
    if view.spread != 0 and first >= 0 and (thick or abs(scores[first]) < TINY):
        rescore(
            trials.instances, t, shape, view.spread, view.memory, view.scalars, view.params, scratch.support,
            scratch.z, scores,
        )  # fmt: skip
        first, second = top_two(scores, shape)
    rival = second if first == label else first
    if rival < 0:
        return -1
    margin = scores[label] - scores[rival]
    return rival if margin <= view.scalars[REACH] and (shape[ON_TIES] or first != label or margin > 0.0) else -1


@kernel(hot=True)
def add_votes(view: MemberView, up: int, down: int) -> bool:
    """The Perceptron's step and what averages keep of it; returns whether all weights are in range."""
    weights, backlog, means, rate = view.weights, view.backlog, view.sums, view.params[0]
    weight, square, cross, fits = means[averages.WEIGHT], means[averages.SQUARE], means[averages.CROSS], True
    bits = up | down
    while bits != 0:
        bit = lowest_bit(bits)
        i = np.uint64(bit)
        old = weights[i]
        new = old + (-rate if (down >> bit) & 1 else rate)
        weights[i] = new
        fits &= abs(new) < HUGE
        square += new * new - old * old
        if view.kind:
            cross += (weight * old - backlog[i]) * (new - old)
            backlog[i] += weight * (new - old)
        bits &= bits - 1
    means[averages.SQUARE], means[averages.CROSS] = square, cross
    view.scalars[TOP] = 0.0 if fits else np.inf
    return fits


@kernel(hot=True)
def multiply_votes(view: MemberView, scratch: Scratch, up: int, down: int) -> bool:
    """Winnow's step and what averages keep of it; returns whether all weights are in range."""
    weights, backlog, means, memory = view.weights, view.backlog, view.sums, view.memory
    scalars, params, powers = view.scalars, view.params, scratch.powers
    weight, square, cross, fits = means[averages.WEIGHT], means[averages.SQUARE], means[averages.CROSS], True
    shift, mass, start, log_alpha = scalars[SHIFT], scalars[MASS], params[1], params[2]
    if shift != 0.0 and (powers[0] != shift or powers[1] != log_alpha):  # those of another member, or scale
        powers[0], powers[1] = shift, log_alpha
        for place in range(2, powers.size):
            powers[place] = np.nan
    bits = up | down
    while bits != 0:
        bit = lowest_bit(bits)
        i = np.uint64(bit)
        old, s = weights[i], memory[0, i] + (-1.0 if (down >> bit) & 1 else 1.0)
        memory[0, i] = s
        place = int(s) + LISTED_POWERS
        if shift == 0.0 or not 0 <= place <= 2 * LISTED_POWERS:
            new = weight_at(s, shift, params)
        else:
            new = powers[2 + place]
            if new != new:
                new = start * math.exp(s * log_alpha - shift)
                powers[2 + place] = new
        mass += new - old
        weights[i] = new
        fits &= abs(new) < HUGE
        square += new * new - old * old
        if view.kind:
            cross += (weight * old - backlog[i]) * (new - old)
            backlog[i] += weight * (new - old)
        bits &= bits - 1
    means[averages.SQUARE], means[averages.CROSS] = square, cross
    settle(weights, scalars, mass, params[3])
    return fits


@kernel()
def bits_set(bits: int) -> int:
    """How many bits are set, of at most 63."""
    bits -= (bits >> 1) & 0x5555555555555555
    bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
    bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
    bits += bits >> 32
    bits += bits >> 16
    return (bits + (bits >> 8)) & 0x7F


@kernel(hot=True)
def norm_votes(view: MemberView, scratch: Scratch, up: int, down: int) -> bool:
    """ALMA's step and what averages keep of it; returns whether all weights are in range."""
    weights, backlog, means, memory = view.weights, view.backlog, view.sums, view.memory
    scalars, params, before, fits, count = view.scalars, view.params, scratch.before, True, 0
    size = params[SIZES + bits_set(up | down)] if params[NORMALISE] != 0.0 else params[BOUND]
    p, mass, shift = params[0], scalars[MASS], scalars[SHIFT]
    amount = step_size(scalars, params, size) / math.exp(scalars[LOG_C])
    bits = up | down
    while bits != 0:
        bit = lowest_bit(bits)
        i = np.uint64(bit)
        old, v = weights[i], memory[0, i]
        before[count] = old
        count += 1
        so_far = abs(old * v)
        v += -amount if (down >> bit) & 1 else amount
        memory[0, i] = v
        new = weight_of_norm(v, shift, p)
        weights[i] = new
        fits &= abs(new) < HUGE
        mass += abs(new * v) - so_far
        bits &= bits - 1
    scalars[MASS] = mass
    project(weights, memory, scalars, params)
    if view.kind and means[averages.WEIGHT] > 0.0 and drowned(scalars, means):
        count, bits = 0, up | down
        while bits != 0:  # with the weights as they were
            i = lowest_bit(bits)
            weights[i], before[count] = before[count], weights[i]
            count += 1
            bits &= bits - 1
        averages.rebase(view.kind, weights, backlog, means)
        count, bits = 0, up | down
        while bits != 0:
            i = lowest_bit(bits)
            weights[i], before[count] = before[count], weights[i]
            count += 1
            bits &= bits - 1
    weight, square, cross = means[averages.WEIGHT], means[averages.SQUARE], means[averages.CROSS]
    count, bits = 0, up | down
    while bits != 0:
        i = np.uint64(lowest_bit(bits))
        old, new = before[count], weights[i]
        square += new * new - old * old
        if view.kind:
            cross += (weight * old - backlog[i]) * (new - old)
            backlog[i] += weight * (new - old)
        count += 1
        bits &= bits - 1
    means[averages.SQUARE], means[averages.CROSS] = square, cross
    return fits


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
def learn(view: MemberView, scratch: Scratch, up: int, down: int, form: int) -> int:
    """The rule's step on z = 1 where ``up`` has a bit and -1 where ``down`` has one."""
    means, scalars, fits, afresh = view.sums, view.scalars, True, False
    if form == NORMED and up | down == 0:
        return UNCHANGED
    if means[averages.IDLE] > 0.0:
        afresh = averages.settle(averages.term(view.kind, scalars, means), means)
    if form == ADDS:
        fits = add_votes(view, up, down)
    elif form == MULTIPLIES:
        fits = multiply_votes(view, scratch, up, down)
    else:
        fits = norm_votes(view, scratch, up, down)
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


@kernel(hot=True)
def aimed(view: MemberView, scratch: Scratch, unit: float) -> tuple[float, float]:
    """Fill the tables with the weights as they are now: (steps of a weight of 1, what a lead must exceed to be one).

    A unit that still does is kept: then nothing waits for the sum of the magnitudes. Without tables both are 0.
    """
    steps = whole_steps(scratch.tables.size // TABLE)
    total, off = 0.0, 0.0
    if unit > 0.0:
        total, off = fill_tables(view.weights, unit, scratch.tables)
    if not LEAST_SHARE * steps < total < steps:
        total = magnitude(view.weights)
        if not 0.0 < total < np.inf:
            return 0.0, 0.0
        unit = FIRST_SHARE * steps / total
        _, off = fill_tables(view.weights, unit, scratch.tables)
    return unit, min(off + NEARLY + view.scalars[REACH] * unit, 32767.0)


@kernel(hot=True)
def next_violation(
    view: MemberView, scratch: Scratch, trials: Trials, begin: int, end: int, limit: int, slack: int
) -> int:
    """The first of begin..end, used less than limit times, that calls for the rule: (t << 8) + rival; -1 without.

    A lead of more than ``slack`` steps in the tables is one beyond doubt; without tables it is -1.
    """
    shape, groups = view.shape, scratch.tables.size // TABLE
    for block in range(begin // LANES, (end + LANES - 1) // LANES):
        bits = usable(trials.uses, block * LANES, begin, end, limit)
        if bits != 0 and slack >= 0:
            place = block * groups * scratch.sums.size
            bits &= close_codes(scratch.sums, trials.panel.codes, place, scratch.tables, slack)
        while bits != 0:
            lane = lowest_bit(bits)
            t = block * LANES + lane
            row = sure_rival(scratch.sums, lane, shape[KNOWN], slack) if slack >= 0 else 0
            if row > 0:
                return (t << 8) + (row - 1 if row <= trials.labels[t] else row)
            rival = look(view, scratch, trials, t)
            if rival >= 0:
                return (t << 8) + rival
            bits &= bits - 1
    return -1


@kernel(RECYCLE)
def recycle_votes(
    view: MemberView,
    scratch: Scratch,
    trials: Trials,
    begin: int,
    end: int,
    limit: int,
    form: int,
    rival: int,
    counts: np.ndarray,
) -> float:
    """Learn from the last of begin..end, which calls for it against ``rival``, and recycle.

    That is to look at all, oldest first, until nothing has called for an update since each was last looked at. Returns
    what the weights in the tables are shares of (`linmax.core.search.sighted`); LEFT_RANGE when a weight left its
    range, and NOT_LEARNED when the rule did nothing.
    """
    votes, labels, uses, base = trials.instances.votes, trials.labels, trials.uses, view.shape[EXPERTS]
    constant = trials.instances.constant != 0.0
    found, size, quiet, t, steps, unit, slack = end - 1, end - begin, 0, begin, 0, 0.0, 0.0
    while found >= 0:
        label = labels[found]
        up, down = agreeing(votes[found], label), agreeing(votes[found], rival)
        if constant:
            up |= 1 << (base + label)
            down |= 1 << (base + rival)
        outcome = learn(view, scratch, up, down, form)
        if outcome == FAILED:
            return LEFT_RANGE
        if outcome == CHANGED:
            uses[found] += 1
            steps += 1
            quiet = 0
            unit, slack = aimed(view, scratch, unit)
        elif steps == 0:
            return NOT_LEARNED
        found = -1
        while found < 0 and quiet < size:
            stop = min(end, t + size - quiet)
            event = next_violation(view, scratch, trials, t, stop, limit, int(slack) if unit > 0.0 else -1)
            if event >= 0:
                found, rival = event >> 8, event & 255
            looked = (found + 1 if event >= 0 else stop) - t
            quiet += looked
            t = t + looked if t + looked < end else begin
    counts[UPDATES] += steps
    counts[RECYCLED] += steps - 1
    return whole_steps(scratch.tables.size // TABLE) / unit if unit > 0.0 else 0.0


def recycler_of(forms: np.ndarray) -> int:
    """The address of `recycle_votes` where a member is of a form that it knows, else 0."""
    return address_of(recycle_votes, RECYCLE) if forms.any() else 0
