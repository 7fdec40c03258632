"""One trial at a time for a rule without techniques."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int64, types

from linmax.core.contract import KNOWN, Indices, Instances, InstancesT, Labels
from linmax.core.member import EngineArrays, EngineArraysT, scratch_for
from linmax.engine.engine import Engine
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
from linmax.engine.plain_loop import PLAY_PLAIN, PlainOutputs, PlainOutputsT, judge_plain_inline, play_plain
from linmax.engine.record import TRIALS, Record, RecordT
from linmax.jit.compiling import address_of, kernel

__all__ = ["OneRulePath", "OneRuleTrial", "OneRuleTrialT"]


class OneRuleTrial(NamedTuple):
    """Everything that a trial is played with."""

    arrays: EngineArrays
    instances: Instances  # one of them
    labels: np.ndarray  # (1,)
    outputs: PlainOutputs  # of one trial
    plays: np.ndarray  # int64 (1,): the address of `play_plain`
    reader: Reader
    record: Record


OneRuleTrialT = types.NamedTuple(
    [EngineArraysT, InstancesT, Labels, PlainOutputsT, Indices, ReaderT, RecordT], OneRuleTrial
)
trial_at, call_play = stored_at(OneRuleTrialT), calling(PLAY_PLAIN)


@kernel(types.void(int64, OneRuleTrialT))
def store_trial(address: int, trial: OneRuleTrial) -> None:
    """Write a trial to memory."""
    store(address, trial)


@kernel(ASK, locked=True)
def ask(address: int, count: int, voted: int) -> int:
    """Return the class predicted, or NOT_PLAYED."""
    trial = trial_at(address)
    instances = trial.instances
    if not write_instance(trial.reader, count, voted, instances, 0):
        return NOT_PLAYED
    return judge_plain_inline(trial.arrays, instances, 0)


@kernel(TEACH, locked=True)
def teach(address: int, count: int, voted: int, label: int) -> int:
    """Return the class predicted before the label was learned, or NOT_PLAYED, or LEFT_RANGE."""
    trial = trial_at(address)
    instances, outputs = trial.instances, trial.outputs
    if not write_instance(trial.reader, count, voted, instances, 0):
        return NOT_PLAYED
    trial.labels[0] = label
    if call_play(trial.plays[0], (trial.arrays, instances, trial.labels, outputs)) >= 0:
        return LEFT_RANGE
    known = trial.arrays.state.shape[KNOWN]
    return note_and_answer(trial.record, outputs.predictions[0], label, outputs.table[0], known)


class OneRulePath(OneTrialPath):
    """The path of an engine that is `plain`, for instances of at most ``longest`` attributes."""

    def __init__(self, engine: Engine, names: NamePlaces, record: Record, longest: int) -> None:
        layout = engine.layout
        scratch = scratch_for(engine.state, False, 0, layout.voters + 2 * (longest + 1), 0, False)
        trial = OneRuleTrial(
            arrays=engine.kernel_arrays(scratch),
            instances=blank_instances(layout, 1, longest),
            labels=np.zeros(1, np.int32),
            outputs=PlainOutputs(np.zeros(1, np.int32), np.zeros(1, np.uint8), np.zeros(0), np.zeros((1, engine.k))),
            plays=np.array([address_of(play_plain, PLAY_PLAIN)]),
            reader=new_reader(layout, longest, 1.0 + 1e-12 if engine.runs[0].rule.bounded else LARGE),
            record=record,
        )
        super().__init__(engine, names, trial, (store_trial, ask, teach))

    def has_room(self, count: int, largest: float) -> bool:  # noqa: ARG002
        return count <= self._longest

    def taught_votes(self) -> np.ndarray:
        return np.asarray(self._trial.instances.votes[0])

    def complain(self) -> None:
        self._engine.overflowed(0, int(self._trial.record.counts[TRIALS]))
