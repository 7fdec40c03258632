"""Hypothesis voting, V-B: hypotheses saved at doubling distances vote together with the current one.

Mesterharm and Hsu, section V. A saved hypothesis is replaced inside its window by one that is right on more of the
recent instances; when B makes fewer mistakes than the vote its own label is used, and when that is still so after a
waiting time, doubled each time, voting starts again. The mistakes are at most 2 M_B + restarts + 1.

Or, as in Littlestone (1995), the majority of a random sample of the hypotheses of all trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numba import float32, int64, types

from linmax.core import averages
from linmax.core.contract import (
    GAUGE,
    LARGEST,
    SHIFT,
    TRIALS,
    UNTOUCHED,
    Indices,
    Labels,
    Matrix,
    Played,
    RunningTrials,
    Vector,
)
from linmax.core.contract import RAW as RAW_AVERAGE
from linmax.core.linear_max import TIED, score, top_two
from linmax.core.member import RunningRule
from linmax.core.search import close_lanes, doubt, filled, load_weights, sure_rival, within
from linmax.jit.compiling import kernel
from linmax.jit.panels import LANES, lowest_bit
from linmax.jit.struct import Struct, act, entry
from linmax.techniques.node import Node, Turn
from linmax.techniques.technique import LearnerLike, NodeMaker, PrefixTechnique, Technique, as_learner, turned_inside
from linmax.util.checks import counted, one_of, whole
from linmax.util.draws import drawn

if TYPE_CHECKING:
    from linmax.core.contract import Trials
    from linmax.data.arrays import Layout
    from linmax.engine.bench import Bench
    from linmax.engine.engine import Engine

__all__ = ["Ballot", "Vote", "Voted", "Voting", "new_ballot", "vote"]

L2, L1, RAW = 0, 1, 2
NORMS = {"l2": L2, "l1": L1, "raw": RAW}

WHICH_SAVED = ("doubling", "random")  # which hypotheses are saved
NEVER = 2**62
DRAWS_EACH = 64  # of every hypothesis of a sample: more than are replaced in 10^20 trials

FAINT = 1e-280  # squares below this have lost digits


class Ballot(NamedTuple):
    """The state of a vote."""

    saved: np.ndarray  # (h, N), at the scale at which they vote
    unseen: np.ndarray  # (h,): the weight in each of a coordinate that appears later
    centres: np.ndarray  # int64 (h,): nominal trial of each
    total: np.ndarray  # (N,): their sum
    marks: np.ndarray  # int64 (10,)


SIZE, SPACING, CENTRE, OPEN, TAU, VOTING, BASIC, WAIT, RESTARTS, LATEST = range(10)


def new_ballot(voted: Voted, size: int) -> Ballot:
    """Before the first trial."""
    marks = np.zeros(10, np.int64)
    marks[[SPACING, CENTRE, WAIT]] = 1, 1, voted.d
    return Ballot(np.zeros((voted.h, size)), np.zeros(voted.h), np.zeros(voted.h, np.int64), np.zeros(size), marks)


class Sample(NamedTuple):
    """The state of a vote over a random sample."""

    saved: np.ndarray  # (h, N), at 2-norm 1
    unseen: np.ndarray  # (h,): the weight in each of a coordinate that appears later
    centres: np.ndarray  # int64 (h,): the trial that each has met
    due: np.ndarray  # int64 (h,): the trial whose hypothesis comes in its place
    marks: np.ndarray  # int64 (3,): labels seen, hypotheses, draws


LABELS_SEEN, SAMPLED, DRAWN = range(3)


class Vote(Struct):
    """A vote at work."""

    widest: int = int64  # the largest window
    recent: int = int64  # recent instances
    scale: int = int64  # what a hypothesis is divided by, see NORMS
    row: int = int64  # among what is `played`
    child: int = int64  # the row of what it votes over
    output: int = int64  # the output that this follows now
    child_part: int = int64  # what predicts it: a part, its kernel and an argument
    child_predict: int = int64
    child_which: int = int64
    members: np.ndarray = Indices  # their addresses
    saved: np.ndarray = Matrix  # the state, see `Ballot`
    unseen: np.ndarray = Vector
    centres: np.ndarray = Indices
    total: np.ndarray = Vector
    marks: np.ndarray = Indices
    due: np.ndarray = Indices  # of a sample, see `Sample`; and random numbers for it
    draws: np.ndarray = Vector
    shape: np.ndarray = Indices  # that of the state
    trials: RunningTrials = RunningTrials.numba_type
    played: Played = Played.numba_type
    scores: np.ndarray = Vector  # working memory
    spare: np.ndarray = Vector
    current: np.ndarray = Vector  # the scores of the output that is followed, before the trial changes it
    candidate: np.ndarray = Vector
    tables: np.ndarray = float32[::1]
    lanes: np.ndarray = float32[:, ::1]


TURN = int64(Vote.numba_type, int64, int64)
member_at = RunningRule.from_address()


# -- hypotheses at the scale at which they vote -------------------------------------------------------------------


@kernel()
def weight_of(m: RunningRule, averaged: int, factor: float, i: int) -> float:
    """One weight of a member's hypothesis, or of its average; ``factor`` is the `averages.multiple`."""
    return factor * m.weights[i] - m.backlog[i] if averaged else m.weights[i]


@kernel()
def counted_weight(m: RunningRule, averaged: int, factor: float, i: int) -> float:
    """Return `weight_of`, or 0 for a coordinate that no update has touched."""
    return 0.0 if m.marks.size and m.marks[i] == UNTOUCHED else weight_of(m, averaged, factor, i)


@kernel()
def size_of(m: RunningRule, averaged: int, scale: int, factor: float) -> float:
    """Return the divisor of a hypothesis before it votes; 0 for a hypothesis of zeros."""
    sums, scalars = m.sums, m.scalars
    if scale == L2:
        square = sums[averages.SQUARE]
        if averaged:
            added = sums[averages.IDLE] * averages.term(m.kind, scalars, sums)
            square = averages.squared_norm(added, square, sums[averages.CROSS], sums[averages.BACK])
        if square > FAINT:
            return math.sqrt(square)
    if scale != RAW:
        largest, total = 0.0, 0.0
        for i in range(m.weights.size):
            largest = max(largest, abs(counted_weight(m, averaged, factor, i)))
        if largest == 0.0:  # before the first update: as if of one weight
            return averages.untouched_sum(factor, sums) if averaged else abs(sums[averages.START])
        for i in range(m.weights.size):
            part = abs(counted_weight(m, averaged, factor, i)) / largest
            total += part if scale == L1 else part * part
        return largest * (total if scale == L1 else math.sqrt(total))
    if averaged:
        count = m.counts[TRIALS] + 1.0
        log = sums[averages.ANCHOR] if m.kind == RAW_AVERAGE else 0.0
        return (count + sums[averages.FADE] * 0.5 * count * (count - 1.0)) * math.exp(-log)
    return math.exp(-(scalars[SHIFT] + scalars[GAUGE]))


@kernel()
def inverse_size(m: RunningRule, averaged: int, scale: int, factor: float) -> float:
    """Return the factor of a hypothesis before it votes; not finite when its raw weights outgrow a float."""
    size = size_of(m, averaged, scale, factor)
    return 1.0 / size if size > 0.0 else (np.inf if scale == RAW else 0.0)


@kernel()
def write_out(m: RunningRule, averaged: int, scale: int, target: np.ndarray) -> float:
    """Write a hypothesis at its voting scale to ``target``; return the weight of a coordinate that appears later."""
    sums = m.sums
    factor = averages.multiple(m.kind, m.scalars, sums) if averaged else 0.0
    inverse = inverse_size(m, averaged, scale, factor)
    for i in range(target.size):
        target[i] = inverse * weight_of(m, averaged, factor, i)
    start = sums[averages.START]
    return inverse * (factor * start - sums[averages.UNSEEN] if averaged else start)


@kernel()
def score_current(v: Vote, t: int) -> None:
    """Score instance t by the output that is followed, at its voting scale."""
    m, averaged, current, spare = member_at(v.members[v.output // 2]), v.output % 2, v.current, v.spare
    score(v.trials, t, m.weights, current)
    factor = 0.0
    if averaged:
        factor = averages.multiple(m.kind, m.scalars, m.sums)
        score(v.trials, t, m.backlog, spare)
        for c in range(current.size):
            current[c] = factor * current[c] - spare[c]
    inverse = inverse_size(m, averaged, v.scale, factor)
    for c in range(current.size):
        current[c] *= inverse


# -- the vote -----------------------------------------------------------------------------------------------------


@kernel()
def length_of(trials: RunningTrials, t: int) -> float:
    """A bound on the 2-norm of what instance t rates any class."""
    votes, rated, dense, indptr = trials.votes, trials.scores, trials.dense, trials.indptr
    square = trials.constant * trials.constant
    for i in range(votes.shape[1]):
        square += 1.0 if votes[t, i] >= 0 else 0.0
    for i in range(rated.shape[1]):
        largest = 0.0
        for j in range(rated.shape[2]):
            largest = max(largest, abs(rated[t, i, j]))
        square += largest * largest
    for f in range(dense.shape[1]):
        square += dense[t, f] * dense[t, f]
    if indptr.size:
        values = trials.values
        for place in range(indptr[t], indptr[t + 1]):
            square += values[place] * values[place]
    return math.sqrt(square)


@kernel()
def top_of_vote(v: Vote, t: int, known: int, scores: np.ndarray, hypotheses: int) -> int:
    """The best known class of this many hypotheses together; of those tied up to rounding the smallest (or largest).

    Hypotheses are divided by their norms, so that equal scores differ by rounding. One of norm 1 gives no score beyond
    the instance's length; those of raw weights are compared with the scores themselves.
    """
    shape = v.shape
    first = top_two(scores, known, shape)[0]
    if first < 0:
        return first
    size = 0.0
    if v.scale == RAW:
        for j in range(known):
            size = max(size, abs(scores[j]))
    else:
        size = hypotheses * length_of(v.trials, t)
    least = scores[first] - TIED * size
    for place in range(known):
        j = known - 1 - place if shape[LARGEST] else place
        if scores[j] >= least:
            return j
    return first


@kernel()
def count_right(v: Vote, begin: int, end: int, weights: np.ndarray) -> int:
    """On how many of the trials begin..end these weights predict the label."""
    trials, lanes, scores = v.trials, v.lanes, v.scores
    right, total, slack = end - begin, 0.0, doubt(trials, weights.size)
    if filled(trials):
        total = load_weights(trials, weights, v.tables)
    for block in range(begin // LANES, (end + LANES - 1) // LANES):
        row, bits = 0, within(block * LANES, begin, end)
        if total > 0.0:
            bits &= close_lanes(trials, block, weights.size, v.tables, lanes, slack)
        while bits != 0:
            lane = lowest_bit(bits)
            t = block * LANES + lane
            if total > 0.0:
                row = sure_rival(lanes, lane, slack)
            if row > 0:
                right -= 1
            else:
                score(trials, t, weights, scores)
                known = max(trials.known[t], trials.labels[t] + 1)
                right -= top_of_vote(v, t, known, scores, 1) != trials.labels[t]
            bits &= bits - 1
    return right


@kernel()
def half_window(widest: int, spacing: int) -> int:
    """Half of 1 + min(w, spacing/2), rounded down."""
    return int(min(float(widest), spacing / 2.0) / 2.0)


@kernel()
def add_up(v: Vote) -> None:
    """The sum of the saved hypotheses."""
    total, saved = v.total, v.saved
    for i in range(total.size):
        total[i] = 0.0
    for slot in range(v.marks[SIZE]):
        for i in range(total.size):
            total[i] += saved[slot, i]


@kernel()
def slot_for(v: Vote) -> int:
    """An empty slot, or that of the oldest hypothesis which the doubled spacing leaves out."""
    marks, centres = v.marks, v.centres
    if marks[SIZE] < centres.size:
        marks[SIZE] += 1
        return marks[SIZE] - 1
    oldest = -1
    for slot in range(marks[SIZE]):
        if centres[slot] % marks[SPACING] == marks[SPACING] // 2 and (oldest < 0 or centres[slot] < centres[oldest]):
            oldest = slot
    return oldest


@kernel()
def add_votes(v: Vote, t: int) -> int:
    """Score instance t by all hypotheses together, after `look`; return their class."""
    scores, current = v.scores, v.current
    score(v.trials, t, v.total, scores)
    for c in range(scores.size):
        scores[c] += current[c]
    return top_of_vote(v, t, v.trials.known[t], scores, v.marks[SIZE] + 1)


@kernel(TURN)
def look(v: Vote, t: int, _: int) -> int:
    """Score trial t by the output that is followed before the members learn."""
    score_current(v, t)
    return -1


@kernel(TURN)
def play_vote(v: Vote, t: int, _: int) -> int:
    """Play the vote at trial t, which the members have learned. Return -1, or t where raw weights outgrew a float."""
    marks, played, scores, centres = v.marks, v.played, v.scores, v.centres
    tables, place = played.tables, t - played.scored
    label, basic = np.int64(v.trials.labels[t]), played.predictions[v.child, t]
    voted = add_votes(v, t)
    for c in range(scores.size):
        if not abs(scores[c]) < np.inf:
            return t
    trusted = marks[VOTING] <= marks[BASIC]
    played.predictions[v.row, t] = voted if trusted else basic
    if place >= 0:
        for c in range(tables.shape[2]):
            tables[v.row, place, c] = scores[c] / (marks[SIZE] + 1.0) if trusted else v.current[c]
    if label < 0:
        return -1
    marks[VOTING] += voted != label
    marks[BASIC] += basic != label
    marks[TAU] += 1
    v.output = played.after[v.child, t]
    m, averaged, half = member_at(v.members[v.output // 2]), v.output % 2, half_window(v.widest, marks[SPACING])
    if not marks[OPEN]:
        if marks[TAU] >= marks[CENTRE] - half:
            slot = slot_for(v)
            centres[slot] = marks[CENTRE]
            v.unseen[slot] = write_out(m, averaged, v.scale, v.saved[slot])
            marks[LATEST] = slot
            marks[OPEN] = 1
            add_up(v)
    elif played.changed[v.child, t]:
        first, candidate, latest = max(0, t + 1 - v.recent), v.candidate, v.saved[marks[LATEST]]
        unseen = write_out(m, averaged, v.scale, candidate)
        if count_right(v, first, t + 1, candidate) > count_right(v, first, t + 1, latest):
            for i in range(candidate.size):
                latest[i] = candidate[i]
            v.unseen[marks[LATEST]] = unseen
            add_up(v)
    if marks[OPEN] and marks[TAU] >= marks[CENTRE] + half:
        marks[OPEN] = 0
        if marks[CENTRE] == centres.size * marks[SPACING]:
            marks[SPACING] *= 2
            marks[CENTRE] = (centres.size // 2 + 1) * marks[SPACING]
        else:
            marks[CENTRE] += marks[SPACING]
    if marks[TAU] >= marks[WAIT] and marks[BASIC] < marks[VOTING]:
        marks[SIZE] = marks[TAU] = marks[VOTING] = marks[BASIC] = marks[OPEN] = 0
        marks[SPACING] = marks[CENTRE] = 1
        marks[WAIT] *= 2
        marks[RESTARTS] += 1
        add_up(v)
    return -1


@kernel(TURN)
def predict_vote(v: Vote, t: int, _: int) -> int:
    """Return the class of an instance without learning."""
    if v.marks[VOTING] > v.marks[BASIC]:
        return act(v.child_predict, v.child_part, t, v.child_which)
    score_current(v, t)
    return add_votes(v, t)


# -- a random sample ----------------------------------------------------------------------------------------------


@kernel()
def replace_due(v: Vote, number: int) -> None:
    """Put the hypothesis of trial ``number``, the one that is followed now, wherever it is due.

    Each place takes hypothesis t with probability 1/t, so that all up to now are equally probable in it: after
    hypothesis t it keeps the next ones with probabilities t/(t+1), (t+1)/(t+2), ..., and the first that it does not
    keep is 1 + floor(t/u) for a uniform u.
    """
    marks, draws, due, unseen = v.marks, v.draws, v.due, 0.0
    m, written = member_at(v.members[v.output // 2]), False
    for slot in range(due.size):
        if due[slot] > number:
            continue
        if not written:
            unseen, written = write_out(m, v.output % 2, v.scale, v.candidate), True
        for i in range(v.candidate.size):
            v.saved[slot, i] = v.candidate[i]
        v.unseen[slot], v.centres[slot] = unseen, number
        due[slot] = 1 + int(min(number / draws[marks[DRAWN] % draws.size], float(NEVER)))
        marks[DRAWN] += 1
    marks[SAMPLED] = due.size


@kernel(TURN)
def look_sample(v: Vote, t: int, _: int) -> int:
    """Save the hypothesis before the first trial, while it is there."""
    if v.marks[SAMPLED] == 0:
        replace_due(v, 1)
    return -1


@kernel(TURN)
def predict_sample(v: Vote, t: int, _: int) -> int:
    """Return the class that most hypotheses predict, and leave in ``scores`` how many predict each."""
    scores, counts, known = v.scores, v.current, v.trials.known[t]
    if v.marks[SAMPLED] == 0:
        return act(v.child_predict, v.child_part, t, v.child_which)
    for c in range(counts.size):
        counts[c] = 0.0
    for slot in range(v.due.size):
        score(v.trials, t, v.saved[slot], scores)
        best = top_of_vote(v, t, known, scores, 1)
        if best >= 0:
            counts[best] += 1.0
    for c in range(counts.size):
        scores[c] = counts[c]
    return top_two(scores, known, v.shape)[0]


@kernel(TURN)
def play_sample(v: Vote, t: int, _: int) -> int:
    """Predict trial t, and draw whether the hypothesis after it enters the sample."""
    played, tables, place = v.played, v.played.tables, t - v.played.scored
    played.predictions[v.row, t] = predict_sample(v, t, 0)
    if place >= 0:
        for c in range(tables.shape[2]):
            tables[v.row, place, c] = v.scores[c] / v.due.size
    if v.trials.labels[t] >= 0:
        v.output = played.after[v.child, t]
        v.marks[LABELS_SEEN] += 1
        replace_due(v, v.marks[LABELS_SEEN] + 1)
    return -1


@kernel(types.void(Vote.numba_type, Labels, Matrix))
def judge_sample(v: Vote, predictions: np.ndarray, table: np.ndarray) -> None:
    """`predict_sample` all instances; write the shares of the hypotheses that predict each class into ``table``."""
    for t in range(predictions.size):
        predictions[t] = predict_sample(v, t, 0)
        for c in range(table.shape[1]):
            table[t, c] = v.scores[c] / v.due.size


@kernel(types.void(Vote.numba_type, int64, Labels, Matrix))
def decide_votes(v: Vote, hypotheses: int, predictions: np.ndarray, table: np.ndarray) -> None:
    """`top_of_vote` of every row of a table of scores."""
    for t in range(predictions.size):
        predictions[t] = top_of_vote(v, t, v.trials.known[t], table[t], hypotheses)


@dataclass(frozen=True)
class Voted(PrefixTechnique):
    """Description of V-B; made by `linmax.vote`."""

    notation: ClassVar[str] = "V"
    h: int = 20
    w: int = 100
    r: int = 100
    d: int = 100
    scale: str = "l2"
    saved: str = "doubling"
    seed: int = 0

    def __post_init__(self) -> None:
        counted("h", self.h, 1)
        counted("w", self.w, 0)
        counted("r", self.r, 1)
        counted("d", self.d, 1)
        one_of("scale", self.scale, NORMS)
        one_of("saved", self.saved, WHICH_SAVED)
        whole("seed", self.seed, 0)
        unused = ("w", "r", "d", "scale") if self.saved == "random" else ("seed",)
        for name in unused:
            if getattr(self, name) != self.defaults[name]:
                raise ValueError(
                    f"{name} has no meaning with saved={self.saved!r}, got {name}={getattr(self, name)}; remove {name}"
                )

    def node(self, make: NodeMaker) -> Node:
        base = make(self.base)
        if not base.selects:
            raise ValueError(self._refusal())
        return Sampling(base, self) if self.saved == "random" else Voting(base, self)

    def _refusal(self) -> str:
        """Why it cannot vote over its base, and what can be done."""
        if isinstance(self.base, Voted):
            return f"{self} votes twice; once is enough"
        if isinstance(self.base, PrefixTechnique):
            remedy = f"write {turned_inside(self, self.base)}"
        else:
            remedy = f"vote over {'its members' if isinstance(self.base, Technique) else 'a rule'}"
        return f"vote() needs hypotheses that are weights; {self.base} has none: {remedy}"


class Voting(Node):
    """Saved hypotheses of what the child follows vote with its current one."""

    takes_gaps = True
    passes_scores_on = False
    needs_norms = True
    has_weights = True
    unmixable = "its saved hypotheses were judged on the recent instances of one stream; merge what it votes over"

    def __init__(self, base: Node, voted: Voted) -> None:
        self.children = [base]
        self.voted = voted
        self.scale = NORMS[voted.scale]
        self.looks_back = voted.r

    def prepare(self, engine: Engine) -> None:
        super().prepare(engine)
        self.ballot = new_ballot(self.voted, engine.state.weights.shape[1])

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return dict(self.ballot._asdict())

    def move(self, moved: Callable[[np.ndarray], np.ndarray], old: Layout, new: Layout) -> None:
        self.ballot = self.ballot._replace(saved=moved(self.ballot.saved), total=moved(self.ballot.total))

    def appear(self, fresh: np.ndarray, k: int) -> None:
        ballot = self.ballot
        ballot.saved[:, fresh] = ballot.unseen[:, None]
        ballot.total[fresh] = ballot.unseen[: ballot.marks[SIZE]].sum()

    def part(self, bench: Bench) -> Turn:
        v = Vote(
            widest=self.voted.w, recent=self.voted.r, scale=self.scale, row=self.row, child=self.children[0].row,
            members=bench.addresses, trials=bench.trials, played=bench.played, shape=bench.state.shape,
            candidate=np.zeros(len(self.ballot.total)), **self.ballot._asdict(),
        )  # fmt: skip
        return Turn(v, play_vote, predict_vote, look)

    def ready(self, bench: Bench) -> None:
        turn = bench.turns[self.children[0].row]
        bench.turns[self.row].part.bind(
            child_part=turn.part.address, child_predict=entry(turn.predict), child_which=turn.which
        )

    def begin(self, bench: Bench) -> None:
        bench.turns[self.row].part.bind(
            output=self.children[0].output, tables=bench.room.tables, lanes=bench.room.lanes,
            scores=bench.room.scores, spare=bench.room.spare,
            current=np.zeros_like(bench.room.scores),
        )  # fmt: skip

    def overflowed(self) -> None:
        raise OverflowError(
            f"the raw weights of {self.voted.base} left the range of floats; vote with scale='l2' instead of 'raw'"
        )

    @property
    def trusted(self) -> bool:
        """True if the vote has made no more mistakes than what it votes over."""
        return bool(self.ballot.marks[VOTING] <= self.ballot.marks[BASIC])

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        if not self.trusted:
            return self.children[0].hypothesis(engine)
        return self.ballot.total + self._current(engine), 0.0

    def scoring(self, engine: Engine) -> np.ndarray:
        current = self._current(engine)
        return (self.ballot.total + current) / (self.ballot.marks[SIZE] + 1.0) if self.trusted else current

    def _current(self, engine: Engine) -> np.ndarray:
        """The child's hypothesis at the scale at which it votes."""
        weights, log_scale = self.children[0].hypothesis(engine)
        if self.voted.scale == "raw":
            return weights * math.exp(log_scale)
        largest = float(np.abs(weights).max(initial=0.0))
        if largest == 0.0:
            return weights
        weights = weights / largest  # whose squares a float can hold
        member, counted = self.children[0].asked()[0] // 2, weights
        if engine.runs[member].rule.marks:
            counted = weights[engine.state.memory[member, 0] != UNTOUCHED]
        norm = float(np.linalg.norm(counted, 1 if self.voted.scale == "l1" else 2))
        return np.asarray(weights / (norm or 1.0))  # before the first update all weights are the same

    def judge(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        if self.trusted:
            hypotheses = int(self.ballot.marks[SIZE]) + 1
            predictions, table = engine.rate(trials, self.ballot.total + self._current(engine))
            decide_votes(engine.bench.turns[self.row].part, hypotheses, predictions, table)
            return predictions, table / hypotheses
        predictions, table = self.children[0].judge(engine, trials)
        return predictions, engine.rate(trials, self._current(engine))[1] if engine.scored else table


class Sampling(Voting):
    """The majority of a random sample of the child's hypotheses."""

    linear = False
    unmixable = "its hypotheses are a sample of those of one stream; merge what it votes over"

    def __init__(self, base: Node, voted: Voted) -> None:
        super().__init__(base, voted)
        self.looks_back = 0
        self.draws = np.array([1.0 - drawn(voted.seed, number) for number in range(DRAWS_EACH * voted.h)])

    def prepare(self, engine: Engine) -> None:
        self.children[0].prepare(engine)
        size, h = engine.state.weights.shape[1], self.voted.h
        self.sample = Sample(
            np.zeros((h, size)), np.zeros(h), np.zeros(h, np.int64), np.ones(h, np.int64), np.zeros(3, np.int64)
        )

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return dict(self.sample._asdict())

    def move(self, moved: Callable[[np.ndarray], np.ndarray], old: Layout, new: Layout) -> None:
        self.sample = self.sample._replace(saved=moved(self.sample.saved))

    def appear(self, fresh: np.ndarray, k: int) -> None:
        self.sample.saved[:, fresh] = self.sample.unseen[:, None]

    def part(self, bench: Bench) -> Turn:
        v = Vote(
            scale=self.scale, row=self.row, child=self.children[0].row, members=bench.addresses, trials=bench.trials,
            played=bench.played, shape=bench.state.shape, candidate=np.zeros(self.sample.saved.shape[1]),
            draws=self.draws, **self.sample._asdict(),
        )  # fmt: skip
        return Turn(v, play_sample, predict_sample, look_sample)

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        return Node.hypothesis(self, engine)

    scoring = Node.scoring

    def judge(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        if not self.sample.marks[SAMPLED]:
            return self.children[0].judge(engine, trials)
        predictions, table = np.zeros(trials.size, np.int32), np.zeros((trials.size, engine.k))
        engine.bench.show(trials)
        self.begin(engine.bench)
        judge_sample(engine.bench.turns[self.row].part, predictions, table)
        return predictions, table


def vote(
    learner: LearnerLike,
    h: int = 20,
    w: int = 100,
    r: int = 100,
    d: int = 100,
    scale: str = "l2",
    saved: str = "doubling",
    seed: int = 0,
) -> Voted:
    """V-B: hypotheses saved at doubling distances vote together with the current one; or a random sample of them.

    Parameters
    ----------
    learner
        A rule, its averaged or recycled form, or a combination by "best".
    h
        Saved hypotheses.
    w
        Largest window, in trials, within which a better one may replace the one just saved.
    r
        Recent instances on which "better" is judged.
    d
        Trials before a restart is considered; doubled at each restart.
    scale
        What a hypothesis is divided by before it votes: "l2" or "l1" norm, or nothing ("raw").
    saved
        "doubling", or "random": ``h`` hypotheses drawn uniformly, with replacement, from those with which B has met
        the trials so far, each with one vote for its best class. Then w, r, d and scale have no meaning.
    seed
        Of the draws of "random".

    Notes
    -----
    "doubling" makes at most 2 M_B + restarts + 1 mistakes, restarts <= lg(T/d + 1); for "random" no bound is known.

    References
    ----------
    Mesterharm and Hsu, section V; its reference 9 (Littlestone 1995) for "random".

    Examples
    --------
    >>> import linmax
    >>> print(linmax.vote("A-perceptron", h=10))
    V(h=10)A-perceptron
    >>> print(linmax.vote("winnow(1.1)", h=30, saved="random"))
    V(h=30, saved=random)-winnow(1.1)
    """
    return Voted(as_learner(learner), h, w, r, d, scale, saved, seed)
