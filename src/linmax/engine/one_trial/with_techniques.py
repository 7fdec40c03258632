"""One trial at a time for a learner with techniques: recycling and averaging, the best of several, a vote over either.

The recent instances, their panel and all working memory stay in place between trials, and a trial is added to them in
compiled code. After some hundred trials the recent instances are handed to the engine, and a new path is set up.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import int64, types, uint8

from linmax.core.contract import KNOWN, Indices, Instances, InstancesT, Labels, LabelTable
from linmax.core.linear_max import longest_row, score
from linmax.core.member import LANES, EngineArrays, EngineArraysT, scratch_for
from linmax.core.search import Trials, TrialsT, fill_lane, fill_panel, filled
from linmax.data.arrays import concatenate, cut, no_instances
from linmax.engine.coordinates import largest_rating
from linmax.engine.engine import NO_PANEL, Engine
from linmax.engine.loop import JUDGE, MANY, PLAY, Outputs, OutputsT, judge, play_all
from linmax.engine.one_trial.path import (
    ASK,
    LARGE,
    LEFT_RANGE,
    NOT_PLAYED,
    TEACH,
    NamePlaces,
    OneTrialPath,
    Reader,
    ReaderT,
    blank_instances,
    calling,
    new_reader,
    note_and_answer,
    store,
    stored_at,
    write_instance,
)
from linmax.engine.record import TRIALS, Record, RecordT
from linmax.jit.compiling import JIT, address_of, kernel
from linmax.techniques.combining import FOLLOW, BestOf, Followed, FollowedT, follow_best, least
from linmax.techniques.hypothesis_log import LOOK, look, top_of_vote
from linmax.techniques.node import Leaf
from linmax.techniques.voting import (
    BASIC,
    SCALE,
    SIZE,
    VOTE,
    VOTING,
    Ballot,
    Vote,
    VoteOutputs,
    VoteOutputsT,
    VoteT,
    Voting,
    vote_on,
)

__all__ = ["TechniquesPath", "TechniquesTrial", "TechniquesTrialT", "has_path"]

TRIALS_KEPT = 256  # trials that a path takes

# The settings: where the next instance goes and where the last one may go, whether there are recent instances and a
# vote, where a trial failed; then the addresses of compiled functions.
AT, END, REMEMBERS, VOTES, FAILED_AT = range(5)
PLAYS, FOLLOWS, JUDGES, VOTES_ON, LOOKS = range(5, 10)

NO_BALLOT = Ballot(np.zeros((0, 0)), np.zeros(0), np.zeros(0, np.int64), np.zeros(0), np.zeros(10, np.int64))


class TechniquesTrial(NamedTuple):
    """Everything that a trial is played with."""

    arrays: EngineArrays
    trials: Trials  # the recent ones, then blank ones
    asked: Instances  # one of them
    outputs: Outputs  # of the members, at one trial
    leaves: np.ndarray  # int32: the outputs that the best is chosen from
    mistakes: np.ndarray  # of each
    proposals: np.ndarray  # int32 (leaves, 1): what each predicts
    changed: np.ndarray  # uint8 (leaves, 1)
    followed: Followed  # the best of them
    vote: Vote
    voted: VoteOutputs  # of the whole
    settings: np.ndarray
    reader: Reader
    record: Record


TechniquesTrialT = types.NamedTuple(
    [
        EngineArraysT,
        TrialsT,
        InstancesT,
        OutputsT,
        Labels,
        Indices,
        LabelTable,
        uint8[:, ::1],
        FollowedT,
        VoteT,
        VoteOutputsT,
        Indices,
        ReaderT,
        RecordT,
    ],
    TechniquesTrial,
)

trial_at = stored_at(TechniquesTrialT)
call_play, call_follow, call_judge = calling(PLAY), calling(FOLLOW), calling(JUDGE)
call_vote, call_look = calling(VOTE), calling(LOOK)


@kernel(types.void(int64, TechniquesTrialT))
def store_trial(address: int, trial: TechniquesTrial) -> None:
    """Write a trial to memory."""
    store(address, trial)


@kernel(ASK, locked=True)
def ask(address: int, count: int, voted: int) -> int:
    """Return the class predicted, or NOT_PLAYED."""
    trial = trial_at(address)
    settings, arrays, asked = trial.settings, trial.arrays, trial.asked
    if not write_instance(trial.reader, count, voted, asked, 0):
        return NOT_PLAYED
    output, vote, outputs = np.int64(trial.leaves[least(trial.mistakes)]), trial.vote, trial.voted
    marks, scale = vote.ballot.marks, vote.settings[SCALE]
    if settings[VOTES] == 0 or marks[VOTING] > marks[BASIC]:
        call_judge(settings[JUDGES], (arrays, output, asked, 1, outputs.predictions, outputs.table))
        return outputs.predictions[0]
    call_look(settings[LOOKS], (arrays, vote.log, output, scale, asked, 0, vote.seen))
    shape, scores = arrays.state.shape, arrays.scratch.scores
    score(asked, 0, shape, vote.ballot.total, scores)
    for c in range(vote.seen.size):
        scores[c] += vote.seen[c]
    return top_of_vote(asked, 0, shape, scores, marks[SIZE] + 1, scale)


@kernel(TEACH, locked=True)
def teach(address: int, count: int, voted: int, label: int) -> int:
    """Return the class predicted before the label was learned, or NOT_PLAYED, or LEFT_RANGE."""
    trial = trial_at(address)
    settings, arrays, trials = trial.settings, trial.arrays, trial.trials
    instances, labels, outputs = trials.instances, trials.labels, trial.outputs
    t = settings[AT]
    if t == settings[END] or not write_instance(trial.reader, count, voted, instances, t):
        return NOT_PLAYED
    labels[t] = label
    if filled(trials.panel):
        fill_lane(instances, t, label, arrays.state, trials.panel)
    if settings[VOTES] != 0:
        output = np.int64(trial.leaves[least(trial.mistakes)])
        scale = trial.vote.settings[SCALE]
        call_look(settings[LOOKS], (arrays, trial.vote.log, output, scale, instances, t, trial.vote.seen))
    settings[FAILED_AT] = call_play(settings[PLAYS], (arrays, trials, t, t + 1, outputs))
    if settings[FAILED_AT] >= 0:
        return LEFT_RANGE
    for child in range(trial.leaves.size):
        member, averaged = trial.leaves[child] // 2, trial.leaves[child] % 2
        trial.proposals[child, 0] = outputs.predictions[member, averaged, 0]
        trial.changed[child, 0] = outputs.changes[member, 0] | averaged
    followed = trial.followed
    call_follow(settings[FOLLOWS], (trial.proposals, trial.changed, labels[t : t + 1], trial.mistakes, followed))
    before, after = followed.before, followed.after
    before[0], after[0] = trial.leaves[before[0]], trial.leaves[after[0]]
    best = np.int64(before[0])
    trial.voted.predictions[0] = followed.predictions[0]
    if settings[VOTES] != 0:
        failed = call_vote(settings[VOTES_ON], (arrays, trials, t, t + 1, trial.vote, followed, trial.voted))
        if failed >= 0:
            return LEFT_RANGE
    if settings[REMEMBERS] != 0:
        settings[AT] = t + 1
    scores = trial.voted.table[0] if settings[VOTES] != 0 else outputs.tables[best // 2, best % 2, 0]
    known = arrays.state.shape[KNOWN]
    return note_and_answer(trial.record, trial.voted.predictions[0], label, scores, known)


def parts_of(engine: Engine) -> tuple[Voting | None, BestOf | None, np.ndarray | None]:
    """The vote and the choice of the best, if there are any, and the outputs, or None for any other learner."""
    voting = engine.top if isinstance(engine.top, Voting) else None
    base = engine.top if voting is None else voting.children[0]
    if isinstance(base, Leaf):
        return voting, None, np.array([base.output], np.int32)
    return (voting, base, base.leaves) if isinstance(base, BestOf) else (voting, None, None)


def has_path(engine: Engine) -> bool:
    """Whether an engine with techniques can be taught on this path."""
    return JIT and engine.layout.raters == 0 and not engine.scored and parts_of(engine)[2] is not None


@cache
def addresses(votes: bool) -> tuple[int, ...]:
    """The addresses of the compiled functions that `ask` and `teach` call; those of a vote are 0 without one."""
    played = [address_of(function, function.signature) for function in (play_all, follow_best, judge)]
    voting = [address_of(function, function.signature) if votes else 0 for function in (vote_on, look)]
    return (*played, *voting)


class TechniquesPath(OneTrialPath):
    """The path of an engine that `has_path`, for instances of at least ``longest`` attributes, up to ``largest``.

    It keeps the recent instances, until `settle` hands them to the engine.
    """

    def __init__(self, engine: Engine, names: NamePlaces, record: Record, longest: int, largest: float) -> None:
        layout, state, count = engine.layout, engine.state, len(engine.runs)
        self.remembers = engine.memory > 0
        self._settled = played = len(engine.tail_labels)
        size = -(-(played + TRIALS_KEPT) // LANES) * LANES if self.remembers else 1
        tail = engine.tail if engine.tail is not None else no_instances(0)
        longest = max(longest, longest_row(tail.indptr))  # recent instances are learned from as well
        bounded = any(run.rule.bounded for run in engine.runs)
        largest = 1.0 + 1e-12 if bounded else max(1.0, largest, largest_rating(tail))
        panel = engine.panel(size, largest, True) if self.remembers else NO_PANEL
        self._bound = min(largest, LARGE) if bounded or panel is not NO_PANEL else LARGE
        instances = blank_instances(layout, size, len(tail.values) + longest * (size - played))
        labels, uses = np.zeros(size, np.int32), np.zeros((count, size if self.remembers else 0), np.int32)
        if played:
            instances.votes[:played] = tail.votes
            instances.indices[: len(tail.indices)], instances.values[: len(tail.values)] = tail.indices, tail.values
            instances.indptr[: len(tail.indptr)] = tail.indptr
            labels[:played], uses[:, :played] = engine.tail_labels, engine.tail_uses
            if panel is not NO_PANEL:
                fill_panel(instances, labels[:played], state, panel)
        voting, best, leaves = parts_of(engine)
        assert leaves is not None
        rows = engine.k if engine.small else 0
        support = layout.voters + 2 * (longest + 1)
        scratch = scratch_for(state, engine.everywhere, 0, support, rows, engine.logged)
        settings = np.zeros(LOOKS + 1, np.int64)
        settings[[AT, END, REMEMBERS, VOTES]] = played, size, self.remembers, voting is not None
        settings[PLAYS:] = addresses(voting is not None)
        log = engine.state_log()
        predictions = np.zeros((count, 2, 1), np.int32)
        tables = np.zeros((count, 2, 1, engine.k) if voting is None else (count, 0, 0, 0))
        one = [np.zeros(1, np.int32) for _ in range(4)]
        trial = TechniquesTrial(
            arrays=engine.kernel_arrays(scratch),
            trials=Trials(instances, panel, labels, uses),
            asked=blank_instances(layout, 1, longest),
            outputs=Outputs(predictions, np.zeros((count, 1), np.uint8), np.zeros(0), tables, log),
            leaves=leaves,
            mistakes=np.zeros(1, np.int64) if best is None else best.mistakes,
            proposals=np.zeros((len(leaves), 1), np.int32),
            changed=np.zeros((len(leaves), 1), np.uint8),
            followed=Followed(one[0], one[1], one[2], np.zeros(1, np.uint8)),
            vote=Vote(
                NO_BALLOT if voting is None else voting.ballot,
                np.zeros(3, np.int64) if voting is None else voting.settings,
                log,
                np.zeros(len(scratch.scores)),
            ),
            voted=VoteOutputs(one[3], np.zeros((0 if voting is None else 1, engine.k))),
            settings=settings,
            reader=new_reader(layout, longest, self._bound),
            record=record,
        )
        super().__init__(engine, names, trial, (store_trial, ask, teach))

    def has_room(self, count: int, largest: float) -> bool:
        settings, instances = self._trial.settings, self._trial.trials.instances
        stored = int(instances.indptr[settings[AT]]) if instances.indptr.size else 0
        fits = count <= self._longest and stored + count <= len(instances.values)
        return fits and bool(settings[AT] < settings[END]) and not largest > self._bound

    def settle(self) -> None:
        trials, engine = self._trial.trials, self._engine
        played = int(self._trial.settings[AT])
        if played == self._settled:
            return
        first = max(0, played - engine.memory)
        # Joined with nothing it is a copy.
        engine.tail = concatenate(cut(trials.instances, first, played), cut(trials.instances, played, played))
        engine.tail_labels, engine.tail_uses = trials.labels[first:played].copy(), trials.uses[:, first:played].copy()
        self._settled = played

    def taught_votes(self) -> np.ndarray:
        trial = self._trial
        return np.asarray(trial.trials.instances.votes[trial.settings[AT] - 1 if self.remembers else 0])

    def complain(self) -> None:
        failed = int(self._trial.settings[FAILED_AT])
        if failed >= 0:
            self._engine.overflowed(failed // MANY, int(self._trial.record.counts[TRIALS]))
        voting = parts_of(self._engine)[0]
        assert voting is not None
        voting.overflowed()
