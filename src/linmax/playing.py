"""The one loop over trials: a member meets each instance, sees its label, and its rule and techniques do their work."""

from __future__ import annotations

import math

import numpy as np
from numba import int32, int64, types

from linmax import means
from linmax.contract import (
    KNOWN,
    LARGEST,
    STRIDE,
    TRIALS,
    UPDATES,
    Bytes,
    Cube,
    Instances,
    InstancesT,
    Labels,
    LabelTable,
    Matrix,
    Members,
    MembersT,
    PanelT,
    State,
    StateT,
    Vector,
    borrow,
    kernel,
)
from linmax.linear_max import TINY, lend, rescore, score, top_two
from linmax.member import (
    CHANGED,
    FAILED,
    LANES,
    UNCHANGED,
    Bench,
    Scratch,
    ScratchT,
    lay_out,
    lend_scratch,
    present_instance,
)
from linmax.search import lane_class, lane_scores, search
from linmax.techniques.recycling import recycle_instances
from linmax.techniques.voting import Log, LogT, take_version

__all__ = ["judge", "judge_by_weights", "play", "start_means"]

UseTable = int32[:, ::1]


@kernel()
def judge_by_average(
    bench: Bench,
    room: Scratch,
    instances: Instances,
    panel: np.ndarray,
    labels: np.ndarray,
    begin: int,
    end: int,
    origin: int,
    predictions: np.ndarray,
    tables: np.ndarray,
) -> None:
    """Predictions of the average for trials begin..end, between which the member does not change."""
    weight = bench.sums[means.WEIGHT]
    g = means.term(bench.kind, bench.scalars, bench.sums)
    shape = bench.shape
    if panel.size and tables.shape[0] == 0:
        behind = np.empty_like(room.lanes)
        for block in range(begin // LANES, (end + LANES - 1) // LANES):
            lane_scores(panel, block, bench.weights, room.lanes)
            lane_scores(panel, block, bench.backlog, behind)
            for t in range(max(begin, block * LANES), min(end, (block + 1) * LANES)):
                lane = t % LANES
                factor = weight + (t - begin) * g
                for row in range(behind.shape[0]):
                    behind[row, lane] = factor * room.lanes[row, lane] - behind[row, lane]
                predictions[1, t - origin] = lane_class(behind, lane, labels[t], shape[LARGEST])
        return
    spare = np.empty_like(room.scores)
    for t in range(begin, end):
        score(instances, t, shape, bench.weights, room.scores)
        score(instances, t, shape, bench.backlog, spare)
        factor = weight + (t - begin) * g
        for c in range(spare.size):
            spare[c] = factor * room.scores[c] - spare[c]
        predictions[1, t - origin] = top_two(spare, shape)[0]
        if tables.shape[0]:
            sums = bench.sums
            norm = math.sqrt(
                means.squared_norm(factor, sums[means.SQUARE], sums[means.CROSS], sums[means.BACK])
            )
            for c in range(tables.shape[2]):
                tables[1, t - origin, c] = spare[c] / norm if norm > 0.0 else spare[c]


@kernel(
    int64(
        MembersT, StateT, ScratchT, int64, InstancesT, PanelT, Labels, int64, int64, int64, int64, UseTable, LabelTable,
        Bytes, Vector, LogT, Cube,
    )
)  # fmt: skip
def play(
    members: Members,
    state: State,
    scratch: Scratch,
    member: int,
    instances: Instances,
    panel: np.ndarray,
    labels: np.ndarray,
    oldest: int,
    begin: int,
    end: int,
    tracked: int,
    uses: np.ndarray,
    predictions: np.ndarray,
    changes: np.ndarray,
    margins: np.ndarray,
    log: Log,
    tables: np.ndarray,
) -> int:
    """Play trials begin..end for one member. Returns -1, or the trial at which its weights left the range.

    What is written per trial is indexed from begin: ``predictions[0]`` are the member's own, ``predictions[1]`` those
    of its average, likewise ``tables`` the scores (of weights of 2-norm 1); ``margins`` are indexed like the labels. ``oldest`` is the first
    instance that recycling may use.
    """
    bench = lay_out(members, state, member, tracked)
    room = lend_scratch(scratch)
    given = lend(instances)
    uses_here = borrow(uses[member] if uses.shape[0] else uses.reshape(uses.size))
    nothing = room.z[:0]
    shape, counts = bench.shape, borrow(state.counts[member])
    kept, limit, passes = members.recycling[member, 0], members.recycling[member, 1], members.recycling[member, 2]
    logged = log.versions.shape[1] > 0
    version = 0
    if logged:
        take_version(bench, log, member, 0, -1, counts[TRIALS] + 1)
    t = begin
    while t < end:
        event, first, rival, margin = search(bench, room, given, panel, labels, t, end, uses_here, 0, margins)
        last = min(event, end - 1)
        for q in range(t, last + 1):
            predictions[0, q - begin] = labels[q]
            changes[q - begin] = 0
        if event < end:
            predictions[0, event - begin] = first
        if tables.shape[0] > 0:
            for q in range(t, last + 1):
                score(given, q, shape, bench.weights, room.scores)
                if bench.spread != 0 and abs(room.scores[top_two(room.scores, shape)[0]]) < TINY:
                    rescore(
                        given, q, shape, bench.spread, bench.memory, bench.scalars, bench.params, room.index, room.z,
                        room.scores,
                    )  # fmt: skip
                norm = math.sqrt(bench.sums[means.SQUARE])
                for c in range(tables.shape[2]):
                    tables[0, q - begin, c] = room.scores[c] / norm if norm > 0.0 else room.scores[c]
        if bench.kind:
            judge_by_average(bench, room, given, panel, labels, t, last + 1, begin, predictions, tables)
            means.advance(bench.kind, last - t, bench.scalars, bench.weights, bench.backlog, bench.sums)
        if logged:
            for q in range(t, last):
                log.versions[member, q - begin] = version
        counts[TRIALS] += last + 1 - t
        if event < end:
            label = labels[event]
            if label >= shape[KNOWN]:
                shape[KNOWN] = label + 1
                label = -1
            outcome = UNCHANGED
            if rival >= 0:
                outcome = present_instance(bench, room, given, event, label, rival, margin)
            if outcome == FAILED:
                return event
            if outcome == CHANGED:
                changes[event - begin] = 1
                counts[UPDATES] += 1
                if kept:
                    uses_here[event] = 1
                    start = max(oldest, event + 1 - kept)
                    if not recycle_instances(
                        bench, room, given, panel, labels, start, event + 1, uses_here, limit, passes, counts, nothing
                    ):
                        return event
        means.advance(bench.kind, 1, bench.scalars, bench.weights, bench.backlog, bench.sums)
        if logged:
            if event < end and changes[event - begin]:
                if log.weights.shape[1] > 1:
                    version += 1
                take_version(bench, log, member, version, last - begin, counts[TRIALS] + 1)
            elif log.weights.shape[1] == 1:
                take_version(bench, log, member, 0, last - begin, counts[TRIALS] + 1)
            log.versions[member, last - begin] = version
        t = last + 1
    return -1


@kernel(types.void(MembersT, StateT, ScratchT, int64, InstancesT, int64, Labels, Matrix))
def judge(
    members: Members,
    state: State,
    scratch: Scratch,
    output: int,
    instances: Instances,
    size: int,
    predictions: np.ndarray,
    table: np.ndarray,
) -> None:
    """Predictions of an output, and its scores where ``table`` has rows, without learning."""
    bench = lay_out(members, state, output // 2, 0)
    room = lend_scratch(scratch)
    given = lend(instances)
    shape, scores = bench.shape, room.scores
    spare = np.empty_like(scores)
    for t in range(size):
        score(given, t, shape, bench.weights, scores)
        if output % 2:
            score(given, t, shape, bench.backlog, spare)
            for c in range(scores.size):
                scores[c] = bench.sums[means.WEIGHT] * scores[c] - spare[c]
        first, _ = top_two(scores, shape)
        if not output % 2 and bench.spread != 0 and first >= 0 and abs(scores[first]) < TINY:
            rescore(
                given, t, shape, bench.spread, bench.memory, bench.scalars, bench.params, room.index, room.z, scores
            )
            first, _ = top_two(scores, shape)
        predictions[t] = first
        if table.shape[0]:
            for c in range(table.shape[1]):
                table[t, c] = scores[c]


@kernel(types.void(StateT, InstancesT, Vector, int64, Labels, Matrix))
def judge_by_weights(
    state: State, instances: Instances, weights: np.ndarray, size: int, predictions: np.ndarray, table: np.ndarray
) -> None:
    """The same for one vector of weights."""
    given = lend(instances)
    scores = np.empty(max(state.shape[STRIDE], instances.scores.shape[2]))
    for t in range(size):
        score(given, t, state.shape, weights, scores)
        predictions[t] = top_two(scores, state.shape)[0]
        for c in range(table.shape[1]):
            table[t, c] = scores[c]


@kernel(types.void(MembersT, StateT, int64))
def start_means(members: Members, state: State, member: int) -> None:
    """The averages before the first trial."""
    bench = lay_out(members, state, member, 1)
    means.begin(bench.kind, bench.scalars, bench.weights, bench.backlog, bench.sums)
