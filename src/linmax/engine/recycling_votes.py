"""`linmax.techniques.recycling.recycle_instances` where only votes are kept and the rule is one of the papers' pool.

VR-Combine spends most of its time here: 31 rules, each shown a hundred instances again after every update. The steps of
the Perceptron, Winnow and ALMA are written out on the bits of the voters that agree, together with what averages keep
of them, and a block of sixteen instances is looked up once however many of them are in doubt. The operations and their
order are those of the general functions, so the results are the same bits.
"""

from __future__ import annotations

import numpy as np

from linmax.core.contract import (
    ADDS,
    KNOWN,
    MULTIPLIES,
    NORMED,
    ON_TIES,
    OTHER,
    RAW,
    REACH,
    RECYCLED,
    SHIFT,
    UPDATES,
)
from linmax.core.linear_max import TINY, rescore, top_two
from linmax.core.member import (
    CHANGED,
    COPIED,
    FAILED,
    FIRST_KEPT,
    LANES,
    NEXT_COPIED,
    USED_UP,
    Kept,
    MemberView,
    Scratch,
)
from linmax.core.search import BEYOND_STEPS, Trials, score_votes
from linmax.engine.vote_steps import give_back, learn, paces_of, room_for, take_copies
from linmax.jit.compiling import address_of, kernel
from linmax.jit.kept_votes import KEPT_LANES, copy_kept, kept_place, next_kept
from linmax.jit.selection import lowest_bit
from linmax.jit.vote_panels import TABLE, whole_steps
from linmax.rules.alma import step as alma_step
from linmax.rules.perceptron import step as perceptron_step
from linmax.rules.winnow import step as winnow_step
from linmax.techniques.node import Run
from linmax.techniques.recycling import FOREVER, LEFT_RANGE, NOT_LEARNED, RECYCLE

__all__ = ["form_of", "recycle_votes", "recycler_of"]

MOST_WASTED = 16  # places of copied instances that are not looked at any more
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
def rival_in(sums: np.ndarray, lane: int, known: int, slack: int) -> int:
    """The row of the class that leads the label and all others beyond doubt; 0 where there is doubt."""
    first = kept_place(0, lane)
    best, top, second = 0, int(sums[np.uint64(first)]), -BEYOND_STEPS
    for row in range(1, known):
        value = int(sums[np.uint64(first + KEPT_LANES * row)])
        second = max(second, min(top, value))
        best = row if value > top else best
        top = max(top, value)
    return best if top - second > slack else 0


@kernel(hot=True)
def next_violation(view: MemberView, scratch: Scratch, trials: Trials, begin: int, end: int, slack: int) -> int:
    """The first of the kept instances begin..end that calls for the rule: (its place << 8) + rival; -1 without.

    A lead of more than ``slack`` steps in the tables is one beyond doubt; without tables it is -1.
    """
    kept = scratch.kept
    while begin < end:
        if slack >= 0:
            close = next_kept(kept.sums, kept.codes, scratch.tables, slack, (begin, end), kept.alive)
            if close < 0:
                return -1
            block, bits = close >> KEPT_LANES, close & ((1 << KEPT_LANES) - 1)
        else:
            block = begin // KEPT_LANES
            bits = kept.alive[block] & places_within(block * KEPT_LANES, begin, end)
        while bits != 0:
            lane = lowest_bit(bits)
            place = block * KEPT_LANES + lane
            t = kept.numbers[place]
            row = rival_in(kept.sums, lane, view.shape[KNOWN], slack) if slack >= 0 else 0
            if row > 0:
                return (place << 8) + (row - 1 if row <= trials.labels[t] else row)
            rival = look(view, scratch, trials, t)
            if rival >= 0:
                return (place << 8) + rival
            bits &= bits - 1
        begin = (block + 1) * KEPT_LANES
    return -1


@kernel()
def places_within(first: int, begin: int, end: int) -> int:
    """Bits of those of a block of kept instances, from ``first`` on, that are in begin..end."""
    return ((1 << (min(end - first, KEPT_LANES))) - 1) & (-1 << max(0, begin - first))


@kernel(hot=True)
def gather(kept: Kept, trials: Trials, begin: int, end: int, limit: int) -> None:
    """Copy those of begin..end that have been used less than limit times, or those that are new since the last time.

    All are copied again when the places of many are wasted, or none is left.
    """
    marks = kept.marks
    while marks[FIRST_KEPT] < marks[COPIED] and kept.numbers[marks[FIRST_KEPT]] < begin:
        marks[FIRST_KEPT] += 1
    wasted = marks[FIRST_KEPT] + marks[USED_UP]
    full = marks[COPIED] + end - marks[NEXT_COPIED] + LANES > kept.numbers.size
    if marks[COPIED] == 0 or marks[NEXT_COPIED] < begin or wasted > MOST_WASTED or full:
        marks[COPIED] = marks[FIRST_KEPT] = marks[USED_UP] = 0
        marks[NEXT_COPIED] = begin
        for block in range(kept.alive.size):
            kept.alive[block] = 0
    before, span = marks[COPIED], (marks[NEXT_COPIED], end)
    count = copy_kept(kept.codes, kept.numbers, before, trials.panel.codes, span, trials.uses, limit)
    for block in range(before // KEPT_LANES, (count + KEPT_LANES - 1) // KEPT_LANES):
        kept.alive[block] |= places_within(block * KEPT_LANES, before, count)
    marks[COPIED], marks[NEXT_COPIED] = count, end


@kernel(hot=True)
def recycle_copies(
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
    """`recycle_votes` for a view of copies."""
    kept = scratch.kept
    gather(kept, trials, begin, end, limit)
    first, last = kept.marks[FIRST_KEPT], kept.marks[COPIED]
    found, size, quiet, at, steps, unit, slack = last - 1, last - first, 0, first, 0, 0.0, 0.0
    paces, room, shift = paces_of(view, form), 0, 0.0
    while found >= 0:
        if form == MULTIPLIES and (room <= 0 or shift != view.scalars[SHIFT]):
            room, shift = room_for(view, scratch.powers), view.scalars[SHIFT]
        t = kept.numbers[found]
        outcome, unit, off = learn(view, scratch, trials, t, rival, form, paces, unit, room)
        room -= 1
        if outcome == FAILED:
            return LEFT_RANGE
        if outcome == CHANGED:
            trials.uses[t] += 1
            if trials.uses[t] >= limit:
                kept.alive[found // KEPT_LANES] &= ~(1 << found % KEPT_LANES)
                kept.marks[USED_UP] += 1
            steps += 1
            quiet = 0
            slack = min(off + NEARLY + view.scalars[REACH] * unit, 32767.0)
            paces = paces_of(view, form)
        elif steps == 0:
            return NOT_LEARNED
        found = -1
        while found < 0 and quiet < size:
            stop = min(last, at + size - quiet)
            event = next_violation(view, scratch, trials, at, stop, int(slack) if unit > 0.0 else -1)
            if event >= 0:
                found, rival = event >> 8, event & 255
            looked = (found + 1 if event >= 0 else stop) - at
            quiet += looked
            at = at + looked if at + looked < last else first
    counts[UPDATES] += steps
    counts[RECYCLED] += steps - 1
    return whole_steps(scratch.tables.size // TABLE) / unit if unit > 0.0 else 0.0


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
    copies = take_copies(view, scratch.copies, form)
    found = recycle_copies(copies, scratch, trials, begin, end, limit, form, rival, counts)
    give_back(view, scratch.copies, form)
    return found


def recycler_of(forms: np.ndarray) -> int:
    """The address of `recycle_votes` where a member is of a form that it knows, else 0."""
    return address_of(recycle_votes, RECYCLE) if forms.any() else 0
