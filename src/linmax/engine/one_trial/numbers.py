"""One trial at a time for the pool for attributes, where these are numbers.

The kernels are those that play many trials; they are called by their addresses, on arrays that stay in place.
"""

from __future__ import annotations

from functools import cache
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
from linmax.jit.compiling import JIT, address_of, kernel
from linmax.learners.attributes.linear import DenseMembers, DenseRoom, DenseRoomT, play_dense
from linmax.learners.attributes.nearest import NearestRoom, NearestRoomT, NearestRows, play_nearest
from linmax.learners.attributes.pairs import PairMembers, PairRoom, PairRoomT, play_pairs
from linmax.learners.attributes.pool import RunningPool
from linmax.learners.attributes.stacker import FusionRoom, FusionRoomT, fuse
from linmax.learners.attributes.warm_up import DENSE

__all__ = ["NumbersPath", "NumbersTrial", "NumbersTrialT", "plays_numbers"]

NUMBER_GROUPS = ("dense", "pairs8", "pairs16", "nearest")  # those of numbers alone
COARSE, FINE, NEAREST = 3, 4, 5  # the places of their members, after the three of the first

DENSE_AT, PAIRS_AT, NEAREST_AT, FUSES = range(4)  # of the addresses of compiled functions


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
    dense: DenseRoom
    coarse: PairRoom
    fine: PairRoom
    nearest: NearestRoom
    votes: np.ndarray  # float32 (1, members, classes)
    bits: np.ndarray  # the same as integers
    fusion: FusionRoom
    predictions: np.ndarray  # int32 (1,)
    table: np.ndarray  # (1, k)
    settings: np.ndarray
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
        DenseRoomT,
        PairRoomT,
        PairRoomT,
        NearestRoomT,
        float32[:, :, ::1],
        int32[:, :, ::1],
        FusionRoomT,
        Labels,
        Matrix,
        Indices,
        Reader.numba_type,
        RecordT,
    ],
    NumbersTrial,
)

trial_at = stored_at(NumbersTrialT)
call_dense, call_pairs, call_nearest, call_fuse = (
    calling(function.signature if JIT else None) for function in (play_dense, play_pairs, play_nearest, fuse)
)


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
    rows, labels, one, votes, settings = trial.rows, trial.labels, trial.weights, trial.votes, trial.settings
    known, constant = trial.shape[KNOWN], trial.instances.constant
    for m in range(votes.shape[1]):
        for c in range(votes.shape[2]):
            votes[0, m, c] = 0.0
    d, n, f = trial.dense, trial.nearest, trial.fusion
    call_dense(
        settings[DENSE_AT],
        (
            rows, trial.met, constant, labels, one, 0, known, d.cells, d.stats, d.trials, d.x, d.scores, learn, votes,
            0,
        ),
    )  # fmt: skip
    for member in (COARSE, FINE):
        p = trial.coarse if member == COARSE else trial.fine
        call_pairs(
            settings[PAIRS_AT],
            (
                rows, labels, one, 0, known, p.cells, p.hashed, p.keys, p.edges, p.levels, p.silent, p.rank, p.trials,
                p.literals, p.places, p.scores, p.steps, learn, votes, member,
            ),
        )  # fmt: skip
    call_nearest(
        settings[NEAREST_AT],
        (
            rows, labels, one, 0, known, n.stats, n.memory, n.classes, n.places, n.distances, n.scores, learn, votes,
            NEAREST,
        ),
    )  # fmt: skip
    call_fuse(
        settings[FUSES],
        (
            votes, trial.bits, labels, one, trial.shape, f.weights, f.matrix, f.squares, f.trials, learn,
            trial.predictions, trial.table, f.room,
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


@cache
def addresses() -> tuple[int, ...]:
    """The addresses of the compiled functions that `ask` and `teach` call."""
    return tuple(address_of(function, function.signature) for function in (play_dense, play_pairs, play_nearest, fuse))


class NumbersPath(OneTrialPath):
    """The path of an engine whose learner is a pool that `plays_numbers`, for at most ``longest`` attributes."""

    remembers = True

    def __init__(self, engine: Engine, pool: RunningPool, names: NamePlaces, record: Record, longest: int) -> None:
        dense, coarse, fine, nearest = (pool.groups[name] for name in NUMBER_GROUPS)
        assert isinstance(dense, DenseMembers)
        assert isinstance(coarse, PairMembers)
        assert isinstance(fine, PairMembers)
        assert isinstance(nearest, NearestRows)
        width = pool.kinds.width
        votes = np.zeros((1, len(pool.fusion.weights), dense.cells.shape[2]), np.float32)
        trial = NumbersTrial(
            instances=blank_instances(engine.layout, 1, longest),
            places=pool.kinds.sparse_places,
            rows=np.zeros((1, width)),
            met=np.array([int(pool.kinds.counts[0])], np.int64),
            labels=np.zeros(1, np.int32),
            weights=np.ones(1),
            shape=engine.state.shape,
            counts=engine.state.counts,
            dense=dense.room(),
            coarse=coarse.room(),
            fine=fine.room(),
            nearest=nearest.room(votes.shape[2]),
            votes=votes,
            bits=votes.view(np.int32),
            fusion=pool.fusion.room(),
            predictions=np.zeros(1, np.int32),
            table=np.zeros((1, engine.k)),
            settings=np.array(addresses(), np.int64),
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
