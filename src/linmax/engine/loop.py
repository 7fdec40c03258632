"""The loop over trials: a member predicts each instance, sees its label, and its rule and techniques learn from it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import float64, int32, int64, types, uint8

from linmax.core import averages
from linmax.core.contract import (
    ALL,
    KNOWN,
    LEFT,
    MASS,
    PEAK,
    REACH,
    SHIFT,
    TRIALS,
    UPDATES,
    VIOLATED,
    Indices,
    Instances,
    InstancesT,
    Labels,
    Matrix,
    Members,
    MembersT,
    Panel,
    State,
    StateT,
    Vector,
)
from linmax.core.linear_max import TINY, rescore, score, top_two
from linmax.core.member import (
    CHANGED,
    FAILED,
    LANES,
    EngineArrays,
    EngineArraysT,
    MemberView,
    Scratch,
    ScratchT,
    call_present,
    only_votes,
    present_instance,
    view_of,
)
from linmax.core.search import (
    Trials,
    TrialsT,
    close_lanes,
    doubt,
    lane_leads,
    load_member_weights,
    load_weights,
    score_votes,
    search,
)
from linmax.jit.compiling import kernel, written_out
from linmax.techniques.hypothesis_log import Log, LogT, take_version
from linmax.techniques.recycling import BUDGET, KEPT, SAVED, recycle_instances

__all__ = [
    "JUDGE",
    "MANY",
    "PLAY",
    "Outputs",
    "OutputsT",
    "appear",
    "judge",
    "judge_by_weights",
    "play_all",
    "start_means",
]

MANY = 2**40  # more than there are trials
FEW = 2  # trials that are looked at in full rather than through a panel


score_here = written_out(score)


@kernel(hot=True)
def average_scores(view: MemberView, scratch: Scratch, instances: Instances, t: int, factor: float) -> int:
    """Scores of instance t under factor * weights - backlog, into ``scratch.spare``; returns the class predicted."""
    if only_votes(instances):
        score_votes(instances, t, view.shape, view.weights, scratch.scores)
        score_votes(instances, t, view.shape, view.backlog, scratch.spare)
    else:
        score_here(instances, t, view.shape, view.weights, scratch.scores)
        score_here(instances, t, view.shape, view.backlog, scratch.spare)
    for c in range(scratch.spare.size):
        scratch.spare[c] = factor * scratch.scores[c] - scratch.spare[c]
    return top_two(scratch.spare, view.shape)[0]


@kernel()
def move_lanes(lanes: np.ndarray, towards: np.ndarray, shares: np.ndarray) -> None:
    """Move the scores of each lane by a share of the way."""
    for row in range(lanes.shape[0]):
        for lane in range(LANES):
            lanes[row, lane] += shares[lane] * (towards[row, lane] - lanes[row, lane])


@kernel(hot=True)
def judge_by_average(
    view: MemberView,
    scratch: Scratch,
    instances: Instances,
    panel: Panel,
    labels: np.ndarray,
    begin: int,
    end: int,
    origin: int,
    total: float,
    predictions: np.ndarray,
    tables: np.ndarray,
) -> None:
    """Predictions of the average for trials begin..end, between which the member does not change.

    The sum is then H + n g w, n trials on (or what they count for, where averages fade). A panel of H and of w says
    where the label leads beyond doubt; ``total`` is what `linmax.core.search.load_member_weights` found for w.
    """
    sums = view.sums
    weight, idle, fade, age = sums[averages.WEIGHT], sums[averages.IDLE], sums[averages.FADE], sums[averages.AGE]
    g = averages.term(view.kind, view.scalars, sums)
    m, size = weight + idle * g, 0.0
    if total > 0.0 and end - begin > FEW and tables.shape[0] == 0:
        for i in range(view.weights.size):
            scratch.candidate[i] = m * view.weights[i] - view.backlog[i]
        size = load_weights(scratch.candidate, panel, scratch.tables_mean)
    if size == 0.0:
        for t in range(begin, end):
            factor = weight + (idle + averages.coming(t - begin, fade, age)) * g
            predictions[1, t - origin] = average_scores(view, scratch, instances, t, factor)
            if tables.shape[0]:
                added = (idle + averages.coming(t - begin, fade, age)) * g
                square = averages.squared_norm(added, sums[averages.SQUARE], sums[averages.CROSS], sums[averages.BACK])
                if square < 0.0:
                    square = 0.0
                    for i in range(view.weights.size):
                        square += (factor * view.weights[i] - view.backlog[i]) ** 2
                norm = math.sqrt(square)
                for c in range(tables.shape[2]):
                    tables[1, t - origin, c] = scratch.spare[c] / norm if norm > 0.0 else scratch.spare[c]
        return
    slope, width = g * total, view.weights.size
    # Where H is a small difference of its parts, double precision leaves doubt as well.
    slack = doubt(panel, width) * (1.0 + 1e-8 * m * total / size)
    for block in range(begin // LANES, (end + LANES - 1) // LANES):
        close_lanes(panel, block, width, scratch.tables_mean, scratch.lanes, 0.0)
        close_lanes(panel, block, width, scratch.tables, scratch.slopes, 0.0)
        for lane in range(LANES):
            ahead = averages.coming(max(0, block * LANES + lane - begin), fade, age) * slope
            scratch.leads[lane] = ahead / (size + ahead)
        move_lanes(scratch.lanes, scratch.slopes, scratch.leads)
        lane_leads(scratch.lanes, scratch.leads)
        for t in range(max(begin, block * LANES), min(end, (block + 1) * LANES)):
            if scratch.leads[t % LANES] > slack:
                predictions[1, t - origin] = labels[t]
            else:
                factor = weight + (idle + averages.coming(t - begin, fade, age)) * g
                predictions[1, t - origin] = average_scores(view, scratch, instances, t, factor)


class Outputs(NamedTuple):
    """What the members did at each trial of a chunk, indexed from its first trial unless said otherwise."""

    predictions: np.ndarray  # int32 (B, 2, C): of each member, and of its average
    changes: np.ndarray  # uint8 (B, C): whether it was updated
    margins: np.ndarray  # of the first member, indexed like the labels; or none
    tables: np.ndarray  # (B, 2, C, k): scores of weights of 2-norm 1; or (B, 0, 0, 0)
    log: Log


OutputsT = types.NamedTuple([int32[:, :, ::1], uint8[:, ::1], Vector, float64[:, :, :, ::1], LogT], Outputs)


@kernel(hot=True)
def play(arrays: EngineArrays, member: int, trials: Trials, begin: int, end: int, outputs: Outputs) -> int:
    """Play trials begin..end for one member. Returns -1, or the trial at which its weights left the range."""
    members, state, scratch, log = arrays.members, arrays.state, arrays.scratch, outputs.log
    view = view_of(members, state, member, arrays.tracked)
    instances, panel, labels = trials.instances, trials.panel, trials.labels
    given = Trials(instances, panel, labels, trials.uses[member])
    predictions, changes, tables = outputs.predictions[member], outputs.changes[member], outputs.tables[member]
    margins = outputs.margins if member == 0 else outputs.margins[:0]
    shape, counts = view.shape, state.counts[member]
    recycling = members.recycling[member]
    logged = log.versions.shape[1] > 0
    version = 0
    if logged:
        take_version(view, log, member, 0, -1, counts[TRIALS] + 1)
    t, total = begin, load_member_weights(view, scratch, panel)
    while t < end:
        event, first, rival, margin = search(view, scratch, given, t, end, 0, total, margins)
        last = min(event, end - 1)
        for q in range(t, last + 1):
            predictions[0, q - begin] = labels[q]
            changes[q - begin] = 0
        if event < end:
            predictions[0, event - begin] = first
        if tables.shape[0] > 0:
            for q in range(t, last + 1):
                if t < event or view.spread != 0 or view.only_sign:  # else the search has left its scores
                    score(instances, q, shape, view.weights, scratch.scores)
                if view.spread != 0 and abs(scratch.scores[top_two(scratch.scores, shape)[0]]) < TINY:
                    rescore(
                        instances, q, shape, view.spread, view.memory, view.scalars, view.params, scratch.support,
                        scratch.z, scratch.scores,
                    )  # fmt: skip
                unit = averages.unit_of(view.tracked, view.spread, view.scalars, view.sums)
                for c in range(tables.shape[2]):
                    tables[0, q - begin, c] = scratch.scores[c] / unit
        if view.kind:
            judge_by_average(view, scratch, instances, panel, labels, t, last + 1, begin, total, predictions, tables)
            averages.advance(view.kind, last - t, view.sums)
        if logged:
            for q in range(t, last):
                log.versions[member, q - begin] = version
        counts[TRIALS] += last + 1 - t
        if recycling[BUDGET]:
            counts[LEFT] = min(counts[LEFT] + recycling[BUDGET] * (last + 1 - t), recycling[BUDGET] * SAVED)
        if event < end:
            label = labels[event]
            new = label >= shape[KNOWN]
            if new:
                shape[KNOWN] = label + 1
            steps, start = 0, max(0, event + 1 - recycling[KEPT])
            if view.rivals == ALL or (view.rivals == VIOLATED and not new):
                steps = call_present(view.presents, view, scratch, instances, event, label)
            elif rival >= 0:
                outcome = present_instance(view, scratch, instances, event, -1 if new else label, rival, margin)
                steps = -1 if outcome == FAILED else int(outcome == CHANGED)
            if steps < 0:
                return event
            if steps > 0:
                changes[event - begin] = 1
                counts[UPDATES] += steps
                if recycling[KEPT]:
                    given.uses[event] = 1
                    total = recycle_instances(view, scratch, given, start, event + 1, recycling, counts)
                    if total < 0.0:
                        return event
                else:
                    total = load_member_weights(view, scratch, panel)
        averages.advance(view.kind, 1, view.sums)
        if logged:
            if event < end and changes[event - begin]:
                if log.weights.shape[1] > 1:
                    version += 1
                take_version(view, log, member, version, last - begin, counts[TRIALS] + 1)
            elif log.weights.shape[1] == 1:
                take_version(view, log, member, 0, last - begin, counts[TRIALS] + 1)
            log.versions[member, last - begin] = version
        t = last + 1
    return -1


PLAY = int64(EngineArraysT, TrialsT, int64, int64, OutputsT)


@kernel(PLAY)
def play_all(arrays: EngineArrays, trials: Trials, begin: int, end: int, outputs: Outputs) -> int:
    """Play trials begin..end for every member, each from the same known classes.

    Returns -1, or member * MANY + trial where weights left the range.
    """
    shape = arrays.state.shape
    known = shape[KNOWN]
    for member in range(arrays.members.steps.size):
        shape[KNOWN] = known
        failed = play(arrays, member, trials, begin, end, outputs)
        if failed >= 0:
            return member * MANY + failed
    return -1


JUDGE = types.void(EngineArraysT, int64, InstancesT, int64, Labels, Matrix)


@kernel(JUDGE)
def judge(
    arrays: EngineArrays, output: int, instances: Instances, size: int, predictions: np.ndarray, table: np.ndarray
) -> None:
    """Predictions of an output, and its scores where ``table`` has rows, without learning."""
    scratch, view = arrays.scratch, view_of(arrays.members, arrays.state, output // 2, 0)
    shape, scores, spare = view.shape, scratch.scores, scratch.spare
    factor = averages.multiple(view.kind, view.scalars, view.sums)
    for t in range(size):
        score(instances, t, shape, view.weights, scores)
        if output % 2:
            score(instances, t, shape, view.backlog, spare)
            for c in range(scores.size):
                scores[c] = factor * scores[c] - spare[c]
        first, _ = top_two(scores, shape)
        if not output % 2 and view.spread != 0 and first >= 0 and abs(scores[first]) < TINY:
            rescore(
                instances,
                t,
                shape,
                view.spread,
                view.memory,
                view.scalars,
                view.params,
                scratch.support,
                scratch.z,
                scores,
            )
            first, _ = top_two(scores, shape)
        predictions[t] = first
        if table.shape[0]:
            for c in range(table.shape[1]):
                table[t, c] = scores[c]


@kernel(types.void(StateT, ScratchT, InstancesT, Vector, int64, Labels, Matrix))
def judge_by_weights(
    state: State,
    scratch: Scratch,
    instances: Instances,
    weights: np.ndarray,
    size: int,
    predictions: np.ndarray,
    table: np.ndarray,
) -> None:
    """The same for one vector of weights."""
    for t in range(size):
        score(instances, t, state.shape, weights, scratch.scores)
        predictions[t] = top_two(scratch.scores, state.shape)[0]
        for c in range(table.shape[1]):
            table[t, c] = scratch.scores[c]


FIRST_START, FIRST_MASS, FIRST_THICKNESS, FIRST_SLOT = range(4)  # of what a rule gives a coordinate


@kernel(types.void(MembersT, StateT, Matrix, Indices, Indices))
def appear(members: Members, state: State, firsts: np.ndarray, fresh: np.ndarray, which: np.ndarray) -> None:
    """The coordinates ``fresh`` come into being for the members ``which``; ``firsts`` has a row for each member."""
    for place in range(which.size):
        member = which[place]
        view = view_of(members, state, member, 1)
        first, scalars, sums = firsts[member], view.scalars, view.sums
        unit = math.exp(-scalars[SHIFT])
        sums[averages.START] = first[FIRST_START] * unit
        for j in range(fresh.size):
            view.weights[fresh[j]] = sums[averages.START]
            if view.kind:
                view.backlog[fresh[j]] = sums[averages.UNSEEN]
            for slot in range(first.size - FIRST_SLOT):
                value = first[FIRST_SLOT + slot]
                if value == value:  # nan: the rule has fewer slots
                    view.memory[slot, fresh[j]] = value
        if state.counts[member, TRIALS] == 0:  # what is there at the first trial has been there before it
            averages.begin(view.kind, scalars, view.weights, view.backlog, sums)
        else:
            averages.join(view.kind, fresh.size, scalars, view.weights, view.backlog, sums)
        added = first[FIRST_MASS] * fresh.size * unit
        scalars[MASS] += added
        scalars[PEAK] = max(scalars[PEAK], scalars[MASS])
        if first[FIRST_THICKNESS] != 0.0:
            scalars[REACH] += first[FIRST_THICKNESS] * added


@kernel(types.void(MembersT, StateT, int64))
def start_means(members: Members, state: State, member: int) -> None:
    """The averages before the first trial."""
    view = view_of(members, state, member, 1)
    averages.begin(view.kind, view.scalars, view.weights, view.backlog, view.sums)
