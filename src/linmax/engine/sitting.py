"""A learner with techniques, one trial at a time: what a trial needs is laid out once, and stays for those to come.

An `Engine` plays slices: each is joined to the recent instances, written out as a panel, and given to members and
nodes. For one trial that takes Python longer than the trial itself. A `Sitting` keeps the recent instances, their panel
and all room to work in, and adds a trial to them in compiled code. There are sittings for what the papers combine: a
rule with recycling and averaging, the best of several, and a vote over the hypotheses of either.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import float64, int32, int64, types, uint8

from linmax.core.contract import (
    KNOWN,
    Bytes,
    Indices,
    Instances,
    InstancesT,
    Labels,
    LabelTable,
    Matrix,
    Members,
    MembersT,
    Panel,
    PanelT,
    State,
    StateT,
    Vector,
)
from linmax.core.linear_max import longest_row, score
from linmax.core.member import LANES, Scratch, ScratchT, scratch_for
from linmax.core.search import fill_lane, fill_panel, filled
from linmax.data.instances import Layout, concatenate, cut, no_instances
from linmax.engine.coordinates import largest_rating
from linmax.engine.engine import NO_PANEL, Engine
from linmax.engine.loop import JUDGE, MANY, PLAY, judge, play_all
from linmax.engine.one_trial import (
    BAD,
    LARGE,
    NO,
    NOT_READ,
    ROOM,
    Names,
    answer,
    answer_no,
    built_in,
    place_of_label,
    read_instance,
    to_whole,
)
from linmax.engine.record import TRIALS, Record, RecordT, keep_scores, note
from linmax.jit.compiling import JIT, address_of, caller, kernel
from linmax.techniques.combining import FOLLOW, BestOf, follow_best, least
from linmax.techniques.hypothesis_log import Log, LogT, look, top_of_vote
from linmax.techniques.node import Leaf
from linmax.techniques.voting import (
    BASIC,
    SIZE,
    VOTE,
    VOTING,
    Ballot,
    BallotT,
    Voting,
    vote_on,
)

__all__ = ["Sitting", "sits"]

TRIALS_KEPT = 256  # beside the recent instances: after as many there is a new sitting

# The settings of a sitting: where the next instance goes, the attributes that there is room to work on, and so on; then
# the addresses of compiled functions.
AT, END, MOST, TRACKED, REMEMBERS, VOTES, WIDEST, RECENT, SCALE, FAILED_AT = range(10)
PLAYS, FOLLOWS, JUDGES, VOTES_ON = range(10, 14)

NO_BALLOT = Ballot(np.zeros((0, 0)), np.zeros(0), np.zeros(0, np.int64), np.zeros(0), np.zeros(10, np.int64))


class Desk(NamedTuple):
    """Everything that a trial is played with."""

    members: Members
    state: State
    scratch: Scratch
    instances: Instances  # the recent ones, and room for more
    asked: Instances  # room for one
    panel: Panel
    labels: np.ndarray
    uses: np.ndarray  # int32 (B, T), or (B, 0)
    outputs: np.ndarray  # int32 (B, 2, 1): what the members and their averages predict
    changes: np.ndarray  # uint8 (B, 1)
    margins: np.ndarray  # none
    log: Log
    tables: np.ndarray  # (B, 2, 1, k): the scores of the members and their averages, or none
    ballot: Ballot
    leaves: np.ndarray  # int32: the outputs that the best is chosen from
    mistakes: np.ndarray  # of each
    proposals: np.ndarray  # int32 (leaves, 1)
    changed: np.ndarray  # uint8 (leaves, 1)
    before: np.ndarray  # the best of them before the trial and after it, and whether that is new
    after: np.ndarray
    new: np.ndarray
    basic: np.ndarray  # its prediction
    seen: np.ndarray  # its scores
    predictions: np.ndarray  # (1,): of the whole
    table: np.ndarray  # (1, k): the scores of the vote, or none
    settings: np.ndarray
    objects: np.ndarray  # see `linmax.engine.one_trial`
    cursor: np.ndarray
    bound: np.ndarray
    record: Record


DeskT = types.NamedTuple(
    [
        MembersT, StateT, ScratchT, InstancesT, InstancesT, PanelT, Labels, LabelTable, int32[:, :, ::1],
        uint8[:, ::1], Vector, LogT, float64[:, :, :, ::1], BallotT, Labels, Indices, LabelTable, uint8[:, ::1],
        Labels, Labels, Bytes, Labels, Vector, Labels, Matrix, Indices, Indices, Indices, Vector, RecordT,
    ],
    Desk,
)  # fmt: skip

if JIT:
    from numba.extending import intrinsic

    from linmax.engine.one_trial import keep, keeper, word_at

    def calling(kind: Any) -> Any:
        """What calls a compiled function of a signature by its address: its code need not be compiled in here."""

        @intrinsic
        def call(_, address, arguments):  # type: ignore[no-untyped-def]
            def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
                parts = [builder.extract_value(args[1], place) for place in range(len(kind.args))]
                found = caller(kind)(context, builder, signature, [args[0], *parts])
                return context.get_dummy_value() if kind.return_type == types.void else found

            return kind.return_type(int64, arguments), codegen

        return call

    kept = keeper(DeskT)
    call_play, call_follow, call_judge, call_vote = calling(PLAY), calling(FOLLOW), calling(JUDGE), calling(VOTE)


@kernel(types.void(int64, DeskT))
def keep_desk(address: int, desk: Desk) -> None:
    """Write it to memory."""
    keep(address, desk)


def ask(itself: int, arguments: int, _: int) -> int:
    """(attributes, votes) -> the class predicted, or REFUSED."""
    desk = kept(to_whole(itself))
    objects, settings, scratch, asked, shape = desk.objects, desk.settings, desk.scratch, desk.asked, desk.state.shape
    given, votes = word_at(arguments), word_at(arguments + 8)
    if not read_instance(objects, given, votes, asked, 0, settings[MOST], desk.cursor, desk.bound[0]):
        return answer_no(objects, NO)
    output = np.int64(desk.leaves[least(desk.mistakes)])
    marks = desk.ballot.marks
    if settings[VOTES] == 0 or marks[VOTING] > marks[BASIC]:
        call_judge(
            settings[JUDGES], (desk.members, desk.state, scratch, output, asked, 1, desk.predictions, desk.table)
        )
        return answer(objects, desk.predictions[0])
    look(desk.members, desk.state, scratch, desk.log, output, settings[SCALE], asked, 0, desk.seen)
    score(asked, 0, shape, desk.ballot.total, scratch.scores)
    for c in range(desk.seen.size):
        scratch.scores[c] += desk.seen[c]
    return answer(objects, top_of_vote(asked, 0, shape, scratch.scores, marks[SIZE] + 1, settings[SCALE]))


def teach(itself: int, arguments: int, _: int) -> int:
    """(attributes, votes, label) -> the class predicted before the label was seen, or REFUSED, or FAILED."""
    desk = kept(to_whole(itself))
    objects, settings, instances, labels = desk.objects, desk.settings, desk.instances, desk.labels
    label, t = place_of_label(objects, word_at(arguments + 16)), settings[AT]
    if label == NOT_READ or t == settings[END]:
        return answer_no(objects, NO)
    given, votes = word_at(arguments), word_at(arguments + 8)
    if not read_instance(objects, given, votes, instances, t, settings[MOST], desk.cursor, desk.bound[0]):
        return answer_no(objects, NO)
    labels[t] = label
    if filled(desk.panel):
        fill_lane(instances, t, label, desk.state, desk.panel)
    if settings[VOTES] != 0:
        output = np.int64(desk.leaves[least(desk.mistakes)])
        look(desk.members, desk.state, desk.scratch, desk.log, output, settings[SCALE], instances, t, desk.seen)
    settings[FAILED_AT] = call_play(
        settings[PLAYS],
        (
            desk.members, desk.state, desk.scratch, instances, desk.panel, labels, t, t + 1, settings[TRACKED], desk.uses,
            desk.outputs, desk.changes, desk.margins, desk.log, desk.tables,
        ),
    )  # fmt: skip
    if settings[FAILED_AT] >= 0:
        return answer_no(objects, BAD)
    before, after = desk.before, desk.after
    for child in range(desk.leaves.size):
        member, averaged = desk.leaves[child] // 2, desk.leaves[child] % 2
        desk.proposals[child, 0] = desk.outputs[member, averaged, 0]
        desk.changed[child, 0] = desk.changes[member, 0] | averaged
    call_follow(
        settings[FOLLOWS],
        (desk.proposals, desk.changed, labels[t : t + 1], desk.mistakes, desk.basic, before, after, desk.new),
    )
    before[0], after[0] = desk.leaves[before[0]], desk.leaves[after[0]]
    followed = np.int64(before[0])
    desk.predictions[0] = desk.basic[0]
    if settings[VOTES] != 0:
        failed = call_vote(
            settings[VOTES_ON],
            (
                instances, desk.panel, labels, desk.state, desk.scratch, desk.log, desk.ballot, settings[WIDEST],
                settings[RECENT], settings[SCALE], 0, t, t + 1, before, after, desk.new, desk.basic, desk.seen,
                desk.predictions, desk.table,
            ),
        )  # fmt: skip
        if failed >= 0:
            return answer_no(objects, BAD)
    if settings[REMEMBERS] != 0:
        settings[AT] = t + 1
    note(desk.record, int(desk.predictions[0] != label))
    if settings[VOTES] != 0:
        keep_scores(desk.record, desk.table[0], desk.state.shape[KNOWN], label)
    else:
        keep_scores(desk.record, desk.tables[followed // 2, followed % 2, 0], desk.state.shape[KNOWN], label)
    return answer(objects, desk.predictions[0])


def parts_of(engine: Engine) -> tuple[Voting | None, BestOf | None, np.ndarray | None]:
    """The vote and the choice of the best, where there are any, and the outputs; none if it is something else."""
    voting = engine.top if isinstance(engine.top, Voting) else None
    base = engine.top if voting is None else voting.children[0]
    if isinstance(base, Leaf):
        return voting, None, np.array([base.output], np.int32)
    return (voting, base, base.leaves) if isinstance(base, BestOf) else (voting, None, None)


def sits(engine: Engine) -> bool:
    """Whether there are sittings for such an engine."""
    return JIT and engine.layout.raters == 0 and not engine.scored and parts_of(engine)[2] is not None


@cache
def addresses() -> tuple[int, ...]:
    """Where the compiled functions are that it calls."""
    functions = (play_all, follow_best, judge, vote_on)
    return tuple(address_of(function, function.signature) for function in functions)


class Sitting:
    """An engine that `sits`, opened for trials that come one by one, with room for ``longest`` attributes or more.

    It is used like a `Window`. The recent instances are here, until `settle` hands them to the engine.
    """

    def __init__(self, engine: Engine, names: Names, record: Record, longest: int, largest: float) -> None:
        layout, state, count = engine.layout, engine.state, len(engine.runs)
        self._engine, self._names = engine, names
        self.remembers = engine.memory > 0
        self._settled = played = len(engine.tail_labels)
        size = -(-(played + TRIALS_KEPT) // LANES) * LANES if self.remembers else 1
        tail = engine.tail if engine.tail is not None else no_instances(0)
        longest = max(longest, longest_row(tail.indptr))  # those that are kept are worked on as well
        bounded = any(run.rule.bounded for run in engine.runs)
        largest = 1.0 + 1e-12 if bounded else max(1.0, largest, largest_rating(tail))
        panel = engine.panel(size, largest, True) if self.remembers else NO_PANEL
        self._bound = min(largest, LARGE) if bounded or panel is not NO_PANEL else LARGE
        instances = with_room(layout, size, len(tail.values) + longest * (size - played))
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
        scratch = scratch_for(state, engine.everywhere, 0, layout.voters + 2 * (longest + 1), rows, engine.logged)
        settings = np.zeros(VOTES_ON + 1, np.int64)
        settings[[AT, END, MOST, TRACKED, REMEMBERS]] = played, size, longest, engine.tracked, self.remembers
        ballot = NO_BALLOT
        if voting is not None:
            ballot = voting.ballot
            settings[[VOTES, WIDEST, RECENT, SCALE]] = 1, voting.voted.w, voting.voted.r, voting.scale
        settings[[PLAYS, FOLLOWS, JUDGES, VOTES_ON]] = addresses()
        self._longest = longest
        self._desk = Desk(
            members=engine.members,
            state=state,
            scratch=scratch,
            instances=instances,
            asked=with_room(layout, 1, longest),
            panel=panel,
            labels=labels,
            uses=uses,
            outputs=np.zeros((count, 2, 1), np.int32),
            changes=np.zeros((count, 1), np.uint8),
            margins=np.zeros(0),
            log=engine.state_log(),
            tables=np.zeros((count, 2, 1, engine.k) if voting is None else (count, 0, 0, 0)),
            ballot=ballot,
            leaves=leaves,
            mistakes=np.zeros(1, np.int64) if best is None else best.mistakes,
            proposals=np.zeros((len(leaves), 1), np.int32),
            changed=np.zeros((len(leaves), 1), np.uint8),
            before=np.zeros(1, np.int32),
            after=np.zeros(1, np.int32),
            new=np.zeros(1, np.uint8),
            basic=np.zeros(1, np.int32),
            seen=np.zeros(len(scratch.scores)),
            predictions=np.zeros(1, np.int32),
            table=np.zeros((0 if voting is None else 1, engine.k)),
            settings=settings,
            objects=names.addresses(),
            cursor=np.zeros(3, np.int64),
            bound=np.array([self._bound]),
            record=record,
        )
        self._memory = np.zeros(ROOM, np.uint8)
        address = int(self._memory.ctypes.data)
        keep_desk(address, self._desk)
        self.ask, self.teach = built_in(ask, address), built_in(teach, address)

    def has_room(self, count: int, largest: float) -> bool:
        """Whether another instance fits in, with ``count`` attributes up to ``largest``."""
        settings, instances = self._desk.settings, self._desk.instances
        stored = int(instances.indptr[settings[AT]]) if instances.indptr.size else 0
        fits = count <= self._longest and stored + count <= len(instances.values)
        return fits and bool(settings[AT] < settings[END]) and not largest > self._bound

    def settle(self) -> None:
        """Hand the recent instances to the engine."""
        desk, engine = self._desk, self._engine
        played = int(desk.settings[AT])
        if played == self._settled:
            return
        first = max(0, played - engine.memory)
        # Joined with nothing it is a copy.
        engine.tail = concatenate(cut(desk.instances, first, played), cut(desk.instances, played, played))
        engine.tail_labels, engine.tail_uses = desk.labels[first:played].copy(), desk.uses[:, first:played].copy()
        self._settled = played

    def complain(self) -> None:
        """Say what has FAILED."""
        failed = int(self._desk.settings[FAILED_AT])
        if failed >= 0:
            self._engine.overflowed(failed // MANY, int(self._desk.record.counts[TRIALS]))
        voting = parts_of(self._engine)[0]
        assert voting is not None
        voting.overflowed()


def with_room(layout: Layout, trials: int, numbers: int) -> Instances:
    """Instances of voters and sparse attributes, to be written."""
    return no_instances(trials)._replace(
        votes=np.full((trials, layout.voters), -1, np.int32),
        signs=np.ones(layout.voters),
        indptr=np.zeros(trials + 1 if layout.sparse else 0, np.int64),
        indices=np.zeros(numbers if layout.sparse else 0, np.int32),
        values=np.zeros(numbers if layout.sparse else 0),
        constant=layout.constant,
    )
