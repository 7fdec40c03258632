"""One trial at a time for the pool for attributes, where these are numbers.

The kernels are those that play many trials; they are called by their addresses, on arrays that stay in place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float32, int32, int64, types

from linmax.core.contract import KNOWN, TRIALS, UPDATES, Indices, Instances, InstancesT, Labels, Matrix, Vector
from linmax.data.arrays import attributes_of
from linmax.data.scaling import MOST_NUMERIC
from linmax.engine.engine import Engine
from linmax.engine.one_trial.path import (
    ASK,
    LARGE,
    NOT_PLAYED,
    REFUSED,
    SPACE,
    TEACH,
    NamePlaces,
    OneTrialPath,
    Reader,
    blank_instances,
    calling,
    new_reader,
    note_and_answer,
    store,
    stored_at,
    write_instance,
)
from linmax.engine.record import Record, RecordT
from linmax.jit.compiling import JIT, kernel
from linmax.jit.struct import entry
from linmax.learners.attributes.member import ROWS_PLAYED
from linmax.learners.attributes.pairs import PairMembers
from linmax.learners.attributes.pool import RunningPool, width_of
from linmax.learners.attributes.stacker import fuse
from linmax.learners.attributes.warm_up import DENSE

__all__ = ["NumbersPath", "NumbersTrial", "NumbersTrialT", "plays_numbers"]

NUMBER_GROUPS = ("dense", "pairs8", "pairs16", "nearest")  # those of numbers alone
KERNEL, STRUCT, PLACE = range(3)  # columns of ``groups``


class NumbersTrial(NamedTuple):
    """Everything that a trial is played with."""

    instances: Instances  # one of them
    places: np.ndarray  # of its attributes among those met
    rows: np.ndarray  # (1, attributes met)
    met: np.ndarray  # int64 (1,): how many these are
    labels: np.ndarray  # int32 (1,)
    weights: np.ndarray  # (1,): 1; trials of another weight are left to Python
    shape: np.ndarray
    counts: np.ndarray
    groups: np.ndarray  # int64 (groups, 3): addresses of kernel and struct, and the place of the first member
    votes: np.ndarray  # float32 (1, members, classes)
    bits: np.ndarray  # the same as integers
    fusing: np.ndarray  # int64 (2,): addresses of kernel and struct of the fusion
    predictions: np.ndarray  # int32 (1,)
    table: np.ndarray  # (1, k)
    reader: Reader
    record: Record


NumbersTrialT = types.NamedTuple(
    [
        InstancesT,
        Indices,
        Matrix,
        Indices,
        Labels,
        Vector,
        Indices,
        int64[:, ::1],
        int64[:, ::1],
        float32[:, :, ::1],
        int32[:, :, ::1],
        Indices,
        Labels,
        Matrix,
        Reader.numba_type,
        RecordT,
    ],
    NumbersTrial,
)

trial_at = stored_at(NumbersTrialT)
call_group = calling(types.void(int64, *ROWS_PLAYED))
call_fuse = calling(types.void(int64, *fuse.signature.args[1:]) if JIT else None)


@kernel(types.void(int64, NumbersTrialT))
def store_trial(address: int, trial: NumbersTrial) -> None:
    """Write a trial to memory."""
    store(address, trial)


@kernel()
def read_row(trial: NumbersTrial, count: int, voted: int) -> bool:
    """Write the instance as a row; False if it is refused, as is a new attribute."""
    instances, row = trial.instances, trial.rows[0]
    if not write_instance(trial.reader, count, voted, instances, 0):
        return False
    for f in range(row.size):
        row[f] = 0.0
    for j in range(instances.indptr[1]):
        column, value = instances.indices[j], instances.values[j]
        if value != 0.0:
            if column >= trial.places.size or trial.places[column] < 0:
                return False
            row[trial.places[column]] += value
    return True


@kernel()
def play(trial: NumbersTrial, learn: bool) -> None:
    """Let all members score the row, and fuse them."""
    labels, one, votes = trial.labels, trial.weights, trial.votes
    known, constant = trial.shape[KNOWN], trial.instances.constant
    for m in range(votes.shape[1]):
        for c in range(votes.shape[2]):
            votes[0, m, c] = 0.0
    for group in trial.groups:
        arguments = trial.rows, trial.met, constant, labels, one, 0, known, learn, votes, group[PLACE]
        call_group(group[KERNEL], (group[STRUCT], *arguments))
    call_fuse(
        trial.fusing[KERNEL],
        (
            trial.fusing[STRUCT], votes, trial.bits, labels, one, trial.shape, learn, trial.predictions, trial.table,
        ),
    )  # fmt: skip


@kernel(ASK, locked=True)
def ask(address: int, count: int, voted: int) -> int:
    """Return the class predicted, or NOT_PLAYED."""
    trial = trial_at(address)
    if not read_row(trial, count, voted):
        return NOT_PLAYED
    play(trial, False)
    return trial.predictions[0]


@kernel(TEACH, locked=True)
def teach(address: int, count: int, voted: int, label: int) -> int:
    """Return the class predicted before the label was learned, or NOT_PLAYED."""
    trial = trial_at(address)
    if not read_row(trial, count, voted):
        return NOT_PLAYED
    trial.labels[0] = label
    play(trial, True)
    trial.counts[0, TRIALS] += 1
    trial.counts[0, UPDATES] += 1
    known = trial.shape[KNOWN]
    return note_and_answer(trial.record, trial.predictions[0], label, trial.table[0], known)


def plays_numbers(pool: RunningPool) -> bool:
    """Whether a pool can be taught on this path by now."""
    width, groups = pool.kinds.width, pool.groups
    if pool.kinds.kind != DENSE or int(pool.kinds.counts[0]) > MOST_NUMERIC or tuple(groups) != NUMBER_GROUPS:
        return False
    return all(_columns(group) == width for group in groups.values())


def _columns(group: Any) -> int:
    """Attributes that a group has; -1 before it has seen the first trials."""
    if isinstance(group, PairMembers):
        return len(group.edges) if group.ready else -1
    return len(group.stats)


class NumbersPath(OneTrialPath):
    """The path of an engine whose learner is a pool that `plays_numbers`, for at most ``longest`` attributes."""

    remembers = True

    def __init__(self, engine: Engine, pool: RunningPool, names: NamePlaces, record: Record, longest: int) -> None:
        width, classes = pool.kinds.width, width_of(engine.k)
        for group in pool.groups.values():
            group.fit(width, classes)
        groups = [(entry(group.kernel), group.struct.address, place) for place, _, group in pool.placed()]
        votes = np.zeros((1, len(pool.fusion.weights), classes), np.float32)
        trial = NumbersTrial(
            instances=blank_instances(engine.layout, 1, longest),
            places=pool.kinds.sparse_places,
            rows=np.zeros((1, width)),
            met=np.array([int(pool.kinds.counts[0])], np.int64),
            labels=np.zeros(1, np.int32),
            weights=np.ones(1),
            shape=engine.state.shape,
            counts=engine.state.counts,
            groups=np.array(groups, np.int64),
            votes=votes,
            bits=votes.view(np.int32),
            fusing=np.array([entry(fuse), pool.fusion.struct.address], np.int64),
            predictions=np.zeros(1, np.int32),
            table=np.zeros((1, engine.k)),
            reader=new_reader(engine.layout, longest, LARGE),
            record=record,
        )
        self._memory, self._trial = np.zeros(SPACE, np.uint8), trial  # which must live as long as the address
        address = int(self._memory.ctypes.data)
        store_trial(address, trial)
        super().__init__(engine, names, trial.reader, address, (ask, teach))
        self._pool, self._large, self._open = pool, pool.at_large, True
        self.asked = trial.table

    def ask(self, attributes: Any, votes: Any) -> Any:
        return super().ask(attributes, votes) if self._open and not self._large.long_runs else REFUSED

    def teach(self, attributes: Any, votes: Any, label: Any) -> Any:
        first, large, trial = self._pool.first, self._large, self._trial
        if not self._open or (first.open and first.until == 1):  # the pool looks at the first trials after this one
            return REFUSED
        predicted = super().teach(attributes, votes, label)
        if predicted is not REFUSED:
            instance = None
            if first.open or large.due:
                instance = attributes_of(trial.instances, 0)
            if first.open and instance is not None:
                first.add(instance, trial.labels.copy(), trial.weights)
                self._pool.kinds.count(instance.values)
            large.keep_one(instance, int(trial.labels[0]))
        return predicted

    def has_room(self, count: int, largest: float) -> bool:  # noqa: ARG002
        return self._open and count <= self._longest

    def settle(self) -> None:
        self._open = False  # whoever has the engine may move its arrays
