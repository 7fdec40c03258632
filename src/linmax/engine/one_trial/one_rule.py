"""One trial at a time for a rule without techniques."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int64, types

from linmax.core.contract import (
    KNOWN,
    Bytes,
    Instances,
    InstancesT,
    Labels,
    Matrix,
    Members,
    MembersT,
    State,
    StateT,
    Vector,
)
from linmax.core.member import Scratch, ScratchT, scratch_for
from linmax.engine.engine import Engine
from linmax.engine.one_trial.built_in import keep, keeper, word_at
from linmax.engine.one_trial.objects import (
    BAD,
    LARGE,
    NO,
    NOT_READ,
    Names,
    Reader,
    ReaderT,
    answer,
    answer_no,
    new_reader,
    place_of_label,
    read_instance,
    to_whole,
)
from linmax.engine.one_trial.path import OneTrialPath, blank_instances, note_and_answer
from linmax.engine.plain_loop import judge_plain_inline, play_plain_inline
from linmax.engine.record import TRIALS, Record, RecordT
from linmax.jit.compiling import kernel

__all__ = ["OneRulePath", "OneRuleTrial", "OneRuleTrialT"]


class OneRuleTrial(NamedTuple):
    """Everything that a trial is played with."""

    members: Members
    state: State
    scratch: Scratch
    instances: Instances  # one of them
    labels: np.ndarray  # (1,), like what follows
    predictions: np.ndarray
    changes: np.ndarray
    margins: np.ndarray  # none
    table: np.ndarray  # (1, k): the scores
    reader: Reader
    record: Record


OneRuleTrialT = types.NamedTuple(
    [MembersT, StateT, ScratchT, InstancesT, Labels, Labels, Bytes, Vector, Matrix, ReaderT, RecordT], OneRuleTrial
)
kept = keeper(OneRuleTrialT)


@kernel(types.void(int64, OneRuleTrialT))
def keep_trial(address: int, trial: OneRuleTrial) -> None:
    """Write a trial to memory."""
    keep(address, trial)


def ask(itself: int, arguments: int, _: int) -> int:
    """(attributes, votes) -> the class predicted, or REFUSED."""
    trial = kept(to_whole(itself))
    objects, instances = trial.reader.objects, trial.instances
    if not read_instance(trial.reader, arguments, instances, 0, instances.values.size):
        return answer_no(objects, NO)
    return answer(objects, judge_plain_inline(trial.members, trial.state, trial.scratch, instances, 0))


def teach(itself: int, arguments: int, _: int) -> int:
    """(attributes, votes, label) -> the class predicted before the rule saw the label, or REFUSED, or FAILED."""
    trial = kept(to_whole(itself))
    objects, instances, labels, predictions = trial.reader.objects, trial.instances, trial.labels, trial.predictions
    label = place_of_label(objects, word_at(arguments + 16))
    if label == NOT_READ or not read_instance(trial.reader, arguments, instances, 0, instances.values.size):
        return answer_no(objects, NO)
    labels[0] = label
    failed = play_plain_inline(
        trial.members, trial.state, trial.scratch, instances, labels, predictions, trial.changes, trial.margins,
        trial.table,
    )  # fmt: skip
    if failed >= 0:
        return answer_no(objects, BAD)
    known = trial.state.shape[KNOWN]
    return note_and_answer(objects, trial.record, predictions[0], label, trial.table[0], known)


class OneRulePath(OneTrialPath):
    """The path of an engine that is `plain`, for instances of at most ``longest`` attributes."""

    def __init__(self, engine: Engine, names: Names, record: Record, longest: int) -> None:
        layout = engine.layout
        trial = OneRuleTrial(
            members=engine.members,
            state=engine.state,
            scratch=scratch_for(engine.state, False, 0, layout.voters + 2 * (longest + 1), 0, False),
            instances=blank_instances(layout, 1, longest),
            labels=np.zeros(1, np.int32),
            predictions=np.zeros(1, np.int32),
            changes=np.zeros(1, np.uint8),
            margins=np.zeros(0),
            table=np.zeros((1, engine.k)),
            reader=new_reader(names, 1.0 + 1e-12 if engine.runs[0].rule.bounded else LARGE),
            record=record,
        )
        super().__init__(engine, names, trial, keep_trial, ask, teach)
        self._longest = longest

    def has_room(self, count: int, largest: float) -> bool:  # noqa: ARG002
        return count <= self._longest

    def complain(self) -> None:
        self._engine.overflowed(0, int(self._trial.record.counts[TRIALS]))
