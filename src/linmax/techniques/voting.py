"""Hypothesis voting, V-B: hypotheses saved at doubling distances vote together with the current one.

Mesterharm and Hsu, section V. A saved hypothesis is replaced inside its window by one that is right on more of the
recent instances; when B makes fewer mistakes than the vote its own label is used, and when that is still so after a
waiting time, doubled each time, voting starts afresh. The mistakes are at most 2 M_B + restarts + 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numba import int64, typeof, types

from linmax.core.contract import KNOWN, Indices, Instances, Labels, Matrix, Vector
from linmax.core.linear_max import score
from linmax.core.member import EngineArrays, EngineArraysT, Scratch
from linmax.core.search import Trials, TrialsT
from linmax.jit.compiling import kernel
from linmax.techniques.combining import Followed, FollowedT
from linmax.techniques.hypothesis_log import (
    NORMS,
    Hypothesis,
    Log,
    LogT,
    count_right,
    decide_votes,
    look,
    rate,
    top_of_vote,
    write_out,
)
from linmax.techniques.node import Chunk, Node, PlayedChunk
from linmax.techniques.technique import LearnerLike, NodeMaker, PrefixTechnique, Technique, as_learner, turned_inside
from linmax.util.checks import counted, one_of

if TYPE_CHECKING:
    from linmax.engine.engine import Engine

__all__ = [
    "Ballot",
    "BallotT",
    "Vote",
    "VoteOutputs",
    "VoteOutputsT",
    "VoteT",
    "Voted",
    "Voting",
    "new_ballot",
    "vote",
    "vote_on",
]


class Ballot(NamedTuple):
    """The state of a vote."""

    saved: np.ndarray  # (h, N), at the scale at which they vote
    unseen: np.ndarray  # (h,): the weight in each of a coordinate that appears later
    centres: np.ndarray  # int64 (h,): nominal trial of each
    total: np.ndarray  # (N,): their sum
    marks: np.ndarray  # int64 (10,)


SIZE, SPACING, CENTRE, OPEN, TAU, VOTING, BASIC, WAIT, RESTARTS, LATEST = range(10)
BallotT = typeof(Ballot(np.zeros((1, 1)), np.zeros(1), np.zeros(1, np.int64), np.zeros(1), np.zeros(10, np.int64)))


def new_ballot(voted: Voted, size: int) -> Ballot:
    """Before the first trial."""
    marks = np.zeros(10, np.int64)
    marks[[SPACING, CENTRE, WAIT]] = 1, 1, voted.d
    return Ballot(np.zeros((voted.h, size)), np.zeros(voted.h), np.zeros(voted.h, np.int64), np.zeros(size), marks)


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


class Vote(NamedTuple):
    """What a vote works with."""

    ballot: Ballot
    settings: np.ndarray  # int64 (3,): the largest window, recent instances, and scale
    log: Log  # the hypotheses of the members
    seen: np.ndarray  # if the log is the state itself, the scores before the trial (see `look`); else none


class VoteOutputs(NamedTuple):
    """What a vote does at each trial of a chunk."""

    predictions: np.ndarray
    table: np.ndarray  # mean scores of the voters; or no rows


WIDEST, RECENT, SCALE = range(3)  # of the settings
VoteT = types.NamedTuple([BallotT, Indices, LogT, Vector], Vote)
VoteOutputsT = types.NamedTuple([Labels, Matrix], VoteOutputs)
VOTE = int64(EngineArraysT, TrialsT, int64, int64, VoteT, FollowedT, VoteOutputsT)


@kernel(VOTE)
def vote_on(
    arrays: EngineArrays, trials: Trials, begin: int, end: int, vote: Vote, followed: Followed, outputs: VoteOutputs
) -> int:
    """Play the vote over a chunk of trials begin..end; ``followed`` and ``outputs`` are indexed from begin.

    ``followed`` is B: which output it follows, and what it predicts. Where the log is the state itself, which has moved
    on, the chunk is one trial. Returns -1, or the trial at which raw weights outgrew a float.
    """
    instances, shape, scratch, log, ballot = trials.instances, arrays.state.shape, arrays.scratch, vote.log, vote.ballot
    marks, candidate, table, basic = ballot.marks, scratch.candidate, outputs.table, followed.predictions
    widest, recent, scale = vote.settings[WIDEST], vote.settings[RECENT], vote.settings[SCALE]
    scores, spare, own = scratch.scores, scratch.spare, scratch.own
    width = scores.size
    for t in range(begin, end):
        c = t - begin
        label = trials.labels[t]
        output = followed.before[c]
        version = log.versions[output // 2, c - 1] if c > 0 else 0
        if vote.seen.size:
            for j in range(width):
                own[j] = vote.seen[j]
        else:
            rate(instances, t, shape, log, Hypothesis(output, version, c - 1, scale), own, spare)
        score(instances, t, shape, ballot.total, scores)
        for j in range(width):
            scores[j] += own[j]
            if not abs(scores[j]) < np.inf:
                return t
        voted = top_of_vote(instances, t, shape, scores, marks[SIZE] + 1, scale)
        trusted = marks[VOTING] <= marks[BASIC]
        outputs.predictions[c] = voted if trusted else basic[c]
        if table.shape[0]:
            for j in range(table.shape[1]):
                table[c, j] = scores[j] / (marks[SIZE] + 1.0) if trusted else own[j]
        if label >= shape[KNOWN]:  # discovered by this trial
            shape[KNOWN] = label + 1
        marks[VOTING] += voted != label
        marks[BASIC] += basic[c] != label
        marks[TAU] += 1
        half = half_window(widest, marks[SPACING])
        output = followed.after[c]
        current = Hypothesis(output, log.versions[output // 2, c], c, scale)
        if not marks[OPEN]:
            if marks[TAU] >= marks[CENTRE] - half:
                slot = slot_for(ballot)
                ballot.centres[slot] = marks[CENTRE]
                ballot.unseen[slot] = write_out(log, current, ballot.saved[slot])
                marks[LATEST] = slot
                marks[OPEN] = 1
                add_up(ballot)
        elif followed.changed[c]:
            first = max(0, t + 1 - recent)
            unseen = write_out(log, current, candidate)
            latest = ballot.saved[marks[LATEST]]
            new = count_right(trials, first, t + 1, shape, candidate, scale, scratch)
            if new > count_right(trials, first, t + 1, shape, latest, scale, scratch):
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


@dataclass(frozen=True)
class Voted(PrefixTechnique):
    """Description of V-B; made by `linmax.vote`."""

    notation: ClassVar[str] = "V"
    h: int = 20
    w: int = 100
    r: int = 100
    d: int = 100
    scale: str = "l2"

    def __post_init__(self) -> None:
        counted("h", self.h, 1)
        counted("w", self.w, 0)
        counted("r", self.r, 1)
        counted("d", self.d, 1)
        one_of("scale", self.scale, NORMS)

    def node(self, make: NodeMaker) -> Node:
        base = make(self.base)
        if not base.selects:
            raise ValueError(self._refusal())
        return Voting(base, self)

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

    passes_scores_on = False
    wants_log = True
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
        self.seen = np.zeros(0)  # the child's scores before a trial, see `look`

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return dict(self.ballot._asdict())

    def move(self, moved: Callable[[np.ndarray], np.ndarray]) -> None:
        self.ballot = self.ballot._replace(saved=moved(self.ballot.saved), total=moved(self.ballot.total))

    def appear(self, fresh: np.ndarray, k: int) -> None:
        ballot = self.ballot
        ballot.saved[:, fresh] = ballot.unseen[:, None]
        ballot.total[fresh] = ballot.unseen[: ballot.marks[SIZE]].sum()

    def look(self, engine: Engine, scratch: Scratch, log: Log, instances: Instances, t: int) -> None:
        self.seen = np.zeros(scratch.scores.size)
        look(engine.kernel_arrays(scratch), log, self.children[0].output, self.scale, instances, t, self.seen)

    @property
    def settings(self) -> np.ndarray:
        """Options for the kernels (see `Vote`)."""
        return np.array([self.voted.w, self.voted.r, self.scale], np.int64)

    def play(self, engine: Engine, chunk: Chunk) -> PlayedChunk:
        base = self.children[0].play(engine, chunk)
        assert base.before is not None
        assert base.after is not None
        engine.state.shape[KNOWN] = chunk.known
        size = len(base.predictions)
        seen, self.seen = self.seen, np.zeros(0)
        table = np.zeros((size if chunk.scored else 0, engine.k))
        predictions = np.zeros(size, np.int32)
        failed = vote_on(
            engine.kernel_arrays(chunk.scratch),
            chunk.trials,
            chunk.begin,
            chunk.end,
            Vote(self.ballot, self.settings, chunk.log, seen),
            Followed(base.predictions, base.before, base.after, base.changed),
            VoteOutputs(predictions, table),
        )
        if failed >= 0:
            self.overflowed()
        return PlayedChunk(predictions, np.ones(size, np.uint8), table if chunk.scored else None)

    def overflowed(self) -> None:
        raise OverflowError(
            f"the raw weights of {self.voted.base} left the range of floats; vote with scale='l2' instead of 'raw'"
        )

    @property
    def trusted(self) -> bool:
        """Whether the vote has made no more mistakes than what it votes over."""
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
        return np.asarray(weights / np.linalg.norm(weights, 1 if self.voted.scale == "l1" else 2))

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        if self.trusted:
            hypotheses = int(self.ballot.marks[SIZE]) + 1
            predictions, table = engine.rate(instances, size, self.ballot.total + self._current(engine))
            decide_votes(instances, engine.state, hypotheses, self.scale, table, predictions)
            return predictions, table / hypotheses
        predictions, table = self.children[0].judge(engine, instances, size)
        return predictions, engine.rate(instances, size, self._current(engine))[1] if engine.scored else table


def vote(learner: LearnerLike, h: int = 20, w: int = 100, r: int = 100, d: int = 100, scale: str = "l2") -> Voted:
    """V-B: hypotheses saved at doubling distances vote together with the current one.

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

    Notes
    -----
    At most 2 M_B + restarts + 1 mistakes, restarts <= lg(T/d + 1).

    References
    ----------
    Mesterharm and Hsu, section V.

    Examples
    --------
    >>> import linmax
    >>> print(linmax.vote("A-perceptron", h=10))
    V(h=10)A-perceptron
    """
    return Voted(as_learner(learner), h, w, r, d, scale)
