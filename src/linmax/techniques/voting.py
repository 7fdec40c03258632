"""Hypothesis voting, V-B: hypotheses saved at doubling distances vote together with the current one.

Mesterharm and Hsu, section V. A saved hypothesis is replaced inside its window by one that is right on more of the
recent instances; when B makes fewer mistakes than the vote its own label is used, and when that is still so after a
waiting time, doubled each time, voting starts afresh. The mistakes are at most 2 M_B + restarts + 1.

Hypotheses come from learners of different scale: each is divided by its 2-norm, which is kept in O(nonzeros) (see
`linmax.core.averages`), or by its 1-norm (O(n) a trial), or left raw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import int64, typeof, types

from linmax.core.averages import (
    AGE,
    ANCHOR,
    BACK,
    CROSS,
    FADE,
    IDLE,
    SQUARE,
    START,
    UNSEEN,
    WEIGHT,
    coming,
    squared_norm,
    term,
)
from linmax.core.contract import (
    GAUGE,
    KNOWN,
    LARGEST,
    SHIFT,
    TRIALS,
    Bytes,
    Instances,
    InstancesT,
    Labels,
    Matrix,
    Members,
    MembersT,
    Panel,
    PanelT,
    State,
    StateT,
    Vector,
)
from linmax.core.contract import RAW as RAW_AVERAGE
from linmax.core.linear_max import score, top_two
from linmax.core.member import LANES, MemberView, Scratch, ScratchT, view_of
from linmax.core.search import doubt, filled, lane_leads, lane_scores, to_single
from linmax.jit.compiling import kernel
from linmax.techniques import prefixed
from linmax.util.checks import counted, one_of

__all__ = [
    "DEFAULTS",
    "SCALES",
    "Ballot",
    "Log",
    "LogT",
    "Voted",
    "decide_votes",
    "look",
    "new_ballot",
    "take_version",
    "top_of_vote",
    "vote_on",
]

L2, L1, RAW = 0, 1, 2
SCALES = {"l2": L2, "l1": L1, "raw": RAW}

FAINT = 1e-280  # squares below this have lost digits
TIED = 1e-12  # of what scores can be: hypotheses were divided by their norms, so that a tie is one up to rounding

# What the log keeps of a version besides its weights.
SINCE, G, STEP_G, LOG_SQUARE, LOG_CROSS, LOG_BACK, LOG_SCALE, MEAN_SCALE, TERMS, LOG_START, LOG_UNSEEN = range(11)
LOG_IDLE, LOG_FADE, LOG_AGE = range(11, 14)
NUMBERS = 14


class Log(NamedTuple):
    """The hypotheses of a chunk of trials: one version per update. ``versions`` names the one after each trial."""

    weights: np.ndarray  # (B, V, N)
    backlog: np.ndarray  # (B, V, N), or (B, V, 0)
    numbers: np.ndarray  # (B, V, 14)
    versions: np.ndarray  # int32 (B, C)


class Ballot(NamedTuple):
    """The state of a vote."""

    saved: np.ndarray  # (h, N), at the scale at which they vote
    unseen: np.ndarray  # (h,): the weight in each of a coordinate that appears later
    centres: np.ndarray  # int64 (h,): nominal trial of each
    total: np.ndarray  # (N,): their sum
    marks: np.ndarray  # int64 (10,)


SIZE, SPACING, CENTRE, OPEN, TAU, VOTING, BASIC, WAIT, RESTARTS, LATEST = range(10)

_LOG = Log(np.zeros((1, 1, 1)), np.zeros((1, 1, 1)), np.zeros((1, 1, NUMBERS)), np.zeros((1, 1), np.int32))
_BALLOT = Ballot(np.zeros((1, 1)), np.zeros(1), np.zeros(1, np.int64), np.zeros(1), np.zeros(10, np.int64))
LogT, BallotT = typeof(_LOG), typeof(_BALLOT)


def new_ballot(voted: Voted, size: int) -> Ballot:
    """Before the first trial."""
    marks = np.zeros(10, np.int64)
    marks[[SPACING, CENTRE, WAIT]] = 1, 1, voted.d
    return Ballot(np.zeros((voted.h, size)), np.zeros(voted.h), np.zeros(voted.h, np.int64), np.zeros(size), marks)


@kernel()
def take_version(view: MemberView, log: Log, member: int, version: int, since: int, terms: int) -> None:
    """Write the member's present hypothesis into the log as the one after trial ``since`` of the chunk."""
    if log.weights.shape[1] > 1:  # with room for one version only, the log is the state itself
        for i in range(view.weights.size):
            log.weights[member, version, i] = view.weights[i]
        for i in range(view.backlog.size):
            log.backlog[member, version, i] = view.backlog[i]
    numbers = log.numbers[member, version]
    numbers[SINCE], numbers[LOG_IDLE] = since, view.sums[IDLE]
    numbers[LOG_FADE], numbers[LOG_AGE] = view.sums[FADE], view.sums[AGE]
    numbers[G] = view.sums[WEIGHT]
    numbers[STEP_G] = term(view.kind, view.scalars, view.sums) if view.kind else 0.0
    numbers[LOG_SQUARE], numbers[LOG_CROSS], numbers[LOG_BACK] = view.sums[SQUARE], view.sums[CROSS], view.sums[BACK]
    numbers[LOG_SCALE] = view.scalars[SHIFT] + view.scalars[GAUGE]
    numbers[MEAN_SCALE] = view.sums[ANCHOR] if view.kind == RAW_AVERAGE else 0.0
    numbers[LOG_START], numbers[LOG_UNSEEN] = view.sums[START], view.sums[UNSEEN]
    numbers[TERMS] = terms


@kernel()
def idle(numbers: np.ndarray, after: int) -> float:
    """IDLE of the version's average at a trial of the chunk (see `linmax.core.averages`)."""
    return numbers[LOG_IDLE] + coming(after - int(numbers[SINCE]), numbers[LOG_FADE], numbers[LOG_AGE])


@kernel()
def multiple(log: Log, output: int, version: int, after: int) -> float:
    """The hypothesis of an output is multiple * weights - backlog (averaged), or its weights (multiple 0)."""
    numbers = log.numbers[output // 2, version]
    return numbers[G] + idle(numbers, after) * numbers[STEP_G] if output % 2 else 0.0


@kernel()
def weight_of(log: Log, output: int, version: int, factor: float, i: int) -> float:
    """One weight of the hypothesis of an output."""
    weight = log.weights[output // 2, version, i]
    return factor * weight - log.backlog[output // 2, version, i] if output % 2 else weight


@kernel()
def size_of(log: Log, output: int, version: int, after: int, scale: int) -> float:
    """What the hypothesis is divided by before it votes; 0 for a hypothesis of zeros."""
    member = output // 2
    numbers = log.numbers[member, version]
    factor = multiple(log, output, version, after)
    if scale == L2:
        square = numbers[LOG_SQUARE]
        if output % 2:
            added = idle(numbers, after) * numbers[STEP_G]
            square = squared_norm(added, square, numbers[LOG_CROSS], numbers[LOG_BACK])
        if square > FAINT:
            return math.sqrt(square)
    if scale == L1 or scale == L2:
        largest, total = 0.0, 0.0
        for i in range(log.weights.shape[2]):
            largest = max(largest, abs(weight_of(log, output, version, factor, i)))
        for i in range(log.weights.shape[2]):
            part = abs(weight_of(log, output, version, factor, i)) / largest if largest > 0.0 else 0.0
            total += part if scale == L1 else part * part
        return largest * (total if scale == L1 else math.sqrt(total))
    if output % 2:
        count = numbers[TERMS] + after - numbers[SINCE]
        return (count + numbers[LOG_FADE] * 0.5 * count * (count - 1.0)) * math.exp(-numbers[MEAN_SCALE])
    return math.exp(-numbers[LOG_SCALE])


@kernel()
def inverse_size(log: Log, output: int, version: int, after: int, scale: int) -> float:
    """What the hypothesis is multiplied by before it votes; not finite when its raw weights outgrow a float."""
    size = size_of(log, output, version, after, scale)
    return 1.0 / size if size > 0.0 else (np.inf if scale == RAW else 0.0)


@kernel()
def rate(
    instances: Instances,
    t: int,
    shape: np.ndarray,
    log: Log,
    output: int,
    version: int,
    after: int,
    scale: int,
    scores: np.ndarray,
    spare: np.ndarray,
) -> None:
    """Scores of instance t under an output's hypothesis, at its voting scale, after trial ``after`` of the chunk."""
    member = output // 2
    score(instances, t, shape, log.weights[member, version], scores)
    if output % 2:
        factor = multiple(log, output, version, after)
        score(instances, t, shape, log.backlog[member, version], spare)
        for c in range(scores.size):
            scores[c] = factor * scores[c] - spare[c]
    inverse = inverse_size(log, output, version, after, scale)
    for c in range(scores.size):
        scores[c] *= inverse


@kernel(types.void(MembersT, StateT, ScratchT, LogT, int64, int64, InstancesT, int64, Vector))
def look(
    members: Members,
    state: State,
    scratch: Scratch,
    log: Log,
    output: int,
    scale: int,
    instances: Instances,
    t: int,
    own: np.ndarray,
) -> None:
    """`rate` for a log that is the state itself, before the trial changes it."""
    member = output // 2
    take_version(view_of(members, state, member, 1), log, member, 0, -1, state.counts[member, TRIALS] + 1)
    rate(instances, t, state.shape, log, output, 0, -1, scale, own, scratch.spare)


@kernel()
def length_of(instances: Instances, t: int) -> float:
    """A bound on the 2-norm of what instance t rates any class."""
    square = instances.constant * instances.constant
    for i in range(instances.signs.size):
        square += 1.0 if instances.votes[t, i] >= 0 else 0.0
    for i in range(instances.scores.shape[1]):
        largest = 0.0
        for j in range(instances.scores.shape[2]):
            largest = max(largest, abs(instances.scores[t, i, j]))
        square += largest * largest
    for f in range(instances.dense.shape[1]):
        square += instances.dense[t, f] * instances.dense[t, f]
    if instances.indptr.size:
        for place in range(instances.indptr[t], instances.indptr[t + 1]):
            square += instances.values[place] * instances.values[place]
    return math.sqrt(square)


@kernel()
def top_of_vote(
    instances: Instances, t: int, shape: np.ndarray, scores: np.ndarray, hypotheses: int, scale: int
) -> int:
    """The best class of so many hypotheses together; of those tied up to rounding the smallest (or the largest).

    A hypothesis of norm 1 gives no score beyond the instance's length; those of raw weights are compared with the
    scores themselves.
    """
    first = top_two(scores, shape)[0]
    if first < 0:
        return first
    size = 0.0
    if scale == RAW:
        for j in range(shape[KNOWN]):
            size = max(size, abs(scores[j]))
    else:
        size = hypotheses * length_of(instances, t)
    least = scores[first] - TIED * size
    for place in range(shape[KNOWN]):
        j = shape[KNOWN] - 1 - place if shape[LARGEST] else place
        if scores[j] >= least:
            return j
    return first


@kernel(types.void(InstancesT, StateT, int64, int64, Matrix, Labels))
def decide_votes(
    instances: Instances, state: State, hypotheses: int, scale: int, table: np.ndarray, predictions: np.ndarray
) -> None:
    """`top_of_vote` of every row of a table of scores."""
    for t in range(predictions.size):
        predictions[t] = top_of_vote(instances, t, state.shape, table[t], hypotheses, scale)


@kernel()
def count_right(
    instances: Instances,
    panel: Panel,
    labels: np.ndarray,
    begin: int,
    end: int,
    shape: np.ndarray,
    weights: np.ndarray,
    scale: int,
    scratch: Scratch,
) -> int:
    """On how many of the instances begin..end these weights predict the label."""
    right = 0
    if filled(panel):
        to_single(weights, scratch.single)
    slack = doubt(weights.size, panel.largest)
    for t in range(begin, end):
        if filled(panel):
            if t == begin or t % LANES == 0:
                lane_scores(panel, t // LANES, scratch.single, scratch.lanes)
                lane_leads(scratch.lanes, scratch.leads)
            if scratch.leads[t % LANES] > slack:
                right += 1
                continue
        score(instances, t, shape, weights, scratch.scores)
        right += top_of_vote(instances, t, shape, scratch.scores, 1, scale) == labels[t]
    return right


@kernel()
def write_out(log: Log, output: int, version: int, after: int, scale: int, target: np.ndarray) -> float:
    """The hypothesis at its voting scale, coordinate by coordinate: O(n). Returns that of one that appears later."""
    factor = multiple(log, output, version, after)
    inverse = inverse_size(log, output, version, after, scale)
    for i in range(target.size):
        target[i] = inverse * weight_of(log, output, version, factor, i)
    numbers = log.numbers[output // 2, version]
    return inverse * (factor * numbers[LOG_START] - numbers[LOG_UNSEEN] if output % 2 else numbers[LOG_START])


@kernel()
def half_window(widest: int, spacing: int) -> int:
    """Half of 1 + min(w, spacing/2), rounded down."""
    return int(min(float(widest), spacing / 2.0) / 2.0)


@kernel()
def add_up(ballot: Ballot) -> None:
    """The sum of the saved hypotheses."""
    for i in range(ballot.total.size):
        ballot.total[i] = 0.0
    for slot in range(ballot.marks[SIZE]):
        for i in range(ballot.total.size):
            ballot.total[i] += ballot.saved[slot, i]


@kernel()
def slot_for(ballot: Ballot) -> int:
    """An empty slot, or that of the oldest hypothesis which the doubled spacing leaves out."""
    marks = ballot.marks
    if marks[SIZE] < ballot.centres.size:
        marks[SIZE] += 1
        return marks[SIZE] - 1
    oldest = -1
    for slot in range(marks[SIZE]):
        if ballot.centres[slot] % marks[SPACING] == marks[SPACING] // 2 and (
            oldest < 0 or ballot.centres[slot] < ballot.centres[oldest]
        ):
            oldest = slot
    return oldest


VOTE = int64(
    InstancesT, PanelT, Labels, StateT, ScratchT, LogT, BallotT, int64, int64, int64, int64, int64, int64,
    Labels, Labels, Bytes, Labels, Vector, Labels, Matrix,
)  # fmt: skip


@kernel(VOTE)
def vote_on(
    instances: Instances,
    panel: Panel,
    labels: np.ndarray,
    state: State,
    scratch: Scratch,
    log: Log,
    ballot: Ballot,
    widest: int,
    recent: int,
    scale: int,
    oldest: int,
    begin: int,
    end: int,
    chosen_before: np.ndarray,
    chosen_after: np.ndarray,
    changed: np.ndarray,
    basic: np.ndarray,
    seen: np.ndarray,
    predictions: np.ndarray,
    table: np.ndarray,
) -> int:
    """Play the vote over a chunk of trials begin..end of the instances; arrays of outcomes are indexed from begin.

    ``chosen_before`` and ``chosen_after`` name the output whose hypothesis is B's before and after each trial,
    ``basic`` is B's label, ``changed`` whether B's hypothesis is new. ``oldest`` is the first instance there is.
    Where the log is the state itself, which has moved on, the chunk is one trial and ``seen`` has B's scores before it
    (see `look`). ``table`` takes the mean scores of the voters, if it has rows. Returns -1, or the trial at which raw
    weights outgrew a float.
    """
    shape, marks, candidate = state.shape, ballot.marks, scratch.candidate
    scores, spare, own = scratch.scores, scratch.spare, scratch.own
    width = scores.size
    for t in range(begin, end):
        c = t - begin
        label = labels[t]
        output = chosen_before[c]
        version = log.versions[output // 2, c - 1] if c > 0 else 0
        if seen.size:
            for j in range(width):
                own[j] = seen[j]
        else:
            rate(instances, t, shape, log, output, version, c - 1, scale, own, spare)
        score(instances, t, shape, ballot.total, scores)
        for j in range(width):
            scores[j] += own[j]
            if not abs(scores[j]) < np.inf:
                return t
        voted = top_of_vote(instances, t, shape, scores, marks[SIZE] + 1, scale)
        trusted = marks[VOTING] <= marks[BASIC]
        predictions[c] = voted if trusted else basic[c]
        if table.shape[0]:
            for j in range(table.shape[1]):
                table[c, j] = scores[j] / (marks[SIZE] + 1.0) if trusted else own[j]
        if label >= shape[KNOWN]:  # discovered by this trial
            shape[KNOWN] = label + 1
        marks[VOTING] += voted != label
        marks[BASIC] += basic[c] != label
        marks[TAU] += 1
        half = half_window(widest, marks[SPACING])
        output = chosen_after[c]
        version = log.versions[output // 2, c]
        if not marks[OPEN]:
            if marks[TAU] >= marks[CENTRE] - half:
                slot = slot_for(ballot)
                ballot.centres[slot] = marks[CENTRE]
                ballot.unseen[slot] = write_out(log, output, version, c, scale, ballot.saved[slot])
                marks[LATEST] = slot
                marks[OPEN] = 1
                add_up(ballot)
        elif changed[c]:
            first = max(oldest, t + 1 - recent)
            unseen = write_out(log, output, version, c, scale, candidate)
            latest = ballot.saved[marks[LATEST]]
            new = count_right(instances, panel, labels, first, t + 1, shape, candidate, scale, scratch)
            if new > count_right(instances, panel, labels, first, t + 1, shape, latest, scale, scratch):
                for i in range(candidate.size):
                    latest[i] = candidate[i]
                ballot.unseen[marks[LATEST]] = unseen
                add_up(ballot)
        if marks[OPEN] and marks[TAU] >= marks[CENTRE] + half:
            marks[OPEN] = 0
            if marks[CENTRE] == ballot.centres.size * marks[SPACING]:
                marks[SPACING] *= 2
                marks[CENTRE] = (ballot.centres.size // 2 + 1) * marks[SPACING]
            else:
                marks[CENTRE] += marks[SPACING]
        if marks[TAU] >= marks[WAIT] and marks[BASIC] < marks[VOTING]:
            marks[SIZE] = marks[TAU] = marks[VOTING] = marks[BASIC] = marks[OPEN] = 0
            marks[SPACING] = marks[CENTRE] = 1
            marks[WAIT] *= 2
            marks[RESTARTS] += 1
            add_up(ballot)
    return -1


DEFAULTS: dict[str, Any] = {"h": 20, "w": 100, "r": 100, "d": 100, "scale": "l2"}


@dataclass(frozen=True)
class Voted:
    """Description of V-B; made by `linmax.vote`."""

    base: Any
    h: int
    w: int
    r: int
    d: int
    scale: str

    def __str__(self) -> str:
        return prefixed("V", {key: getattr(self, key) for key in DEFAULTS}, DEFAULTS, self.base)

    def __post_init__(self) -> None:
        counted("h", self.h, 1)
        counted("w", self.w, 0)
        counted("r", self.r, 1)
        counted("d", self.d, 1)
        one_of("scale", self.scale, SCALES)
