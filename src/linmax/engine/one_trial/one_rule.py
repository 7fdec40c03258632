"""One trial at a time for a rule without techniques."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int64, types

from linmax.core.contract import KNOWN, Instances, InstancesT, Labels
from linmax.core.member import EngineArrays, EngineArraysT, scratch_for
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
from linmax.engine.plain_loop import PlainOutputs, PlainOutputsT, judge_plain_inline, play_plain_inline
from linmax.engine.record import TRIALS, Record, RecordT
from linmax.jit.compiling import kernel

__all__ = ["OneRulePath", "OneRuleTrial", "OneRuleTrialT"]


class OneRuleTrial(NamedTuple):
    """Everything that a trial is played with."""

    arrays: EngineArrays
    instances: Instances  # one of them
    labels: np.ndarray  # (1,)
    outputs: PlainOutputs  # of one trial
    reader: Reader
    record: Record


OneRuleTrialT = types.NamedTuple([EngineArraysT, InstancesT, Labels, PlainOutputsT, ReaderT, RecordT], OneRuleTrial)
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
    return answer(objects, judge_plain_inline(trial.arrays, instances, 0))


def teach(itself: int, arguments: int, _: int) -> int:
    """(attributes, votes, label) -> the class predicted before the rule saw the label, or REFUSED, or FAILED."""
    trial = kept(to_whole(itself))
    objects, instances, outputs = trial.reader.objects, trial.instances, trial.outputs
    label = place_of_label(objects, word_at(arguments + 16))
    if label == NOT_READ or not read_instance(trial.reader, arguments, instances, 0, instances.values.size):
        return answer_no(objects, NO)
    trial.labels[0] = label
    if play_plain_inline(trial.arrays, instances, trial.labels, outputs) >= 0:
        return answer_no(objects, BAD)
    known = trial.arrays.state.shape[KNOWN]
    return note_and_answer(objects, trial.record, outputs.predictions[0], label, outputs.table[0], known)


class OneRulePath(OneTrialPath):
    """The path of an engine that is `plain`, for instances of at most ``longest`` attributes."""

    def __init__(self, engine: Engine, names: Names, record: Record, longest: int) -> None:
        layout = engine.layout
        scratch = scratch_for(engine.state, False, 0, layout.voters + 2 * (longest + 1), 0, False)
        trial = OneRuleTrial(
            arrays=engine.kernel_arrays(scratch),
            instances=blank_instances(layout, 1, longest),
            labels=np.zeros(1, np.int32),
            outputs=PlainOutputs(np.zeros(1, np.int32), np.zeros(1, np.uint8), np.zeros(0), np.zeros((1, engine.k))),
            reader=new_reader(names, 1.0 + 1e-12 if engine.runs[0].rule.bounded else LARGE),
            record=record,
        )
        super().__init__(engine, names, trial, keep_trial, ask, teach)
        self._longest = longest

    def has_room(self, count: int, largest: float) -> bool:  # noqa: ARG002
        return count <= self._longest

    def taught_votes(self) -> np.ndarray:
        return np.asarray(self._trial.instances.votes[0])

    def complain(self) -> None:
        self._engine.overflowed(0, int(self._trial.record.counts[TRIALS]))
