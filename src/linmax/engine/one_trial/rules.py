"""One trial at a time for rules and the techniques over them: an instance is written to memory, and the loop plays it.

The recent instances, their panel and all working memory stay in place between trials. After some hundred trials the
recent instances are handed to the engine, and a new path is set up.
"""

from __future__ import annotations

import numpy as np
from numba import int64

from linmax.core.contract import KNOWN, Indices, Instances, Matrix, Played, Trials
from linmax.core.linear_max import longest_row
from linmax.core.search import fill_panel
from linmax.data.arrays import concatenate, cut, no_instances
from linmax.engine.bench import Bench
from linmax.engine.coordinates import largest_rating
from linmax.engine.engine import Engine
from linmax.engine.loop import MANY, run
from linmax.engine.one_trial.path import (
    ASK,
    LARGE,
    LEFT_RANGE,
    NOT_PLAYED,
    TEACH,
    NamePlaces,
    OneTrialPath,
    Reader,
    RecordArrays,
    blank_instances,
    new_reader,
    note_and_answer,
    write_instance,
)
from linmax.engine.record import TRIALS, Record
from linmax.jit.compiling import JIT, kernel
from linmax.jit.panels import LANES
from linmax.jit.struct import Struct, act, entry

__all__ = ["RulesPath", "has_path"]

TRIALS_KEPT = 256  # trials that a path takes


class Single(Struct):
    """Everything that a trial is played with."""

    at: int = int64  # where the next instance goes
    end: int = int64  # and where none goes
    remembers: int = int64  # whether instances stay
    fill: int = int64  # the kernel that writes an instance into the panel, if there is one
    failed: int = int64
    top: int = int64  # what predicts: a part, its kernel and an argument
    predict: int = int64
    which: int = int64
    row: int = int64  # of the top among what is played
    parts: np.ndarray = Indices  # who takes turns, and their kernels
    plays: np.ndarray = Indices
    shape: np.ndarray = Indices  # that of the state
    shapes: np.ndarray = int64[:, ::1]  # those of the parts
    trials: Trials = Trials.numba_type
    played: Played = Played.numba_type
    table: np.ndarray = Matrix  # the scores of the top at each trial
    reader: Reader = Reader.numba_type
    record: RecordArrays = RecordArrays.numba_type


single_at = Single.from_address()


@kernel()
def begin(s: Single, count: int, voted: int) -> bool:
    """Write the instance that Python has read to its place; False if there is none, or it does not fit."""
    if s.at == s.end or not write_instance(s.reader, count, voted, s.trials, s.at):
        return False
    known, shapes = s.shape[KNOWN], s.shapes  # others may have played trials meanwhile
    for i in range(shapes.shape[0]):
        shapes[i, KNOWN] = known
    return True


@kernel(ASK, locked=True)
def ask(address: int, count: int, voted: int) -> int:
    """Return the class predicted, or NOT_PLAYED."""
    s = single_at(address)
    return act(s.predict, s.top, s.at, s.which) if begin(s, count, voted) else NOT_PLAYED


@kernel(TEACH, locked=True)
def teach(address: int, count: int, voted: int, label: int) -> int:
    """Return the class predicted before the label was learned, or NOT_PLAYED, or LEFT_RANGE."""
    s = single_at(address)
    if not begin(s, count, voted):
        return NOT_PLAYED
    t = s.at
    s.trials.labels[t] = label
    if s.fill != 0:
        act(s.fill, s.trials, t, t + 1)
    s.failed = run(s.parts, s.plays, t, t + 1, 1)
    if s.failed >= 0:
        return LEFT_RANGE
    s.shape[KNOWN] = max(s.shape[KNOWN], label + 1)
    if s.remembers:
        s.at = t + 1
    return note_and_answer(s.record, s.played.predictions[s.row, t], label, s.table[t], s.shape[KNOWN])


def has_path(engine: Engine) -> bool:
    """Whether an engine can be taught on this path."""
    if not JIT or not engine.runs or engine.layout.raters or engine.scored:
        return False
    turns = engine.bench.turns
    return all(node.row in turns and turns[node.row].predict is not None for node in engine.top.walk())


class RulesPath(OneTrialPath):
    """The path of an engine that `has_path`, for instances of at least ``longest`` attributes, up to ``largest``.

    It keeps the recent instances, until `settle` hands them to the engine.
    """

    def __init__(self, engine: Engine, names: NamePlaces, record: Record, longest: int, largest: float) -> None:
        layout, top = engine.layout, engine.top
        self.remembers = engine.memory > 0
        self._settled = played = len(engine.tail_labels)
        size = -(-(played + TRIALS_KEPT) // LANES) * LANES if self.remembers else 1
        tail = engine.tail if engine.tail is not None else no_instances(0)
        longest = max(longest, longest_row(tail.indptr))  # recent instances are learned from as well
        instances = blank_instances(layout, size, len(tail.values) + longest * (size - played))
        labels = np.zeros(size, np.int32)
        if played:
            instances.votes[:played] = tail.votes
            instances.indices[: len(tail.indices)], instances.values[: len(tail.values)] = tail.indices, tail.values
            instances.indptr[: len(tail.indptr)] = tail.indptr
            labels[:played] = engine.tail_labels
        bounded = any(run.rule.bounded for run in engine.runs)
        largest = 1.0 + 1e-12 if bounded else max(1.0, largest, largest_rating(tail))
        bench = self._bench = Bench(engine)
        bench.show(instances, labels)
        bench.reserve(0, layout.voters + 2 * (longest + 1), 0)
        bench.lay_out(engine, size, largest if self.remembers else 0.0, True, played)
        self._uses = np.zeros((len(engine.runs), size if self.remembers else 0), np.int32)
        self._uses[:, :played] = engine.tail_uses if self.remembers else 0
        for member, own in zip(bench.members, self._uses, strict=True):
            member.uses = own
        bench.reserve_outputs(size, size, False, top.passes_scores_on, engine.k)
        panel = bench.trials.largest > 0.0
        self._bound = min(largest, LARGE) if bounded or panel else LARGE
        self._who, parts, plays, _ = bench.turns_of(bench.first, members=True)
        turn, reader = bench.turns[top.row], new_reader(layout, longest, self._bound)
        self._single = Single(
            at=played, end=size, remembers=self.remembers, fill=entry(fill_panel) if panel else 0,
            top=turn.part.address, which=turn.which, row=top.row, parts=parts, plays=plays, shape=engine.state.shape,
            shapes=bench.shapes, trials=bench.trials, played=bench.played, table=bench.played.tables[top.row],
            reader=reader, record=RecordArrays(**record._asdict()),
        )  # fmt: skip
        super().__init__(engine, names, reader, self._single.address, (ask, teach))

    def prepare_to_ask(self) -> None:
        self._bench.ready()
        self._single.predict = entry(self._bench.turns[self._engine.top.row].predict)

    def has_room(self, count: int, largest: float) -> bool:
        indptr, single = self._bench.trials.indptr, self._single
        stored = int(indptr[single.at]) if indptr.size else 0
        fits = count <= self._longest and stored + count <= len(self._bench.trials.values)
        return fits and single.at < single.end and not largest > self._bound

    def settle(self) -> None:
        engine, trials, played = self._engine, self._bench.trials, self._single.at
        if played == self._settled:
            return
        first = max(0, played - engine.memory)
        instances = Instances(*(getattr(trials, name) for name in Instances._fields))
        # Joined with nothing it is a copy.
        engine.tail = concatenate(cut(instances, first, played), cut(instances, played, played))
        engine.tail_labels, engine.tail_uses = trials.labels[first:played].copy(), self._uses[:, first:played].copy()
        self._settled = played

    def taught_votes(self) -> np.ndarray:
        return np.asarray(self._bench.trials.votes[self._single.at - 1 if self.remembers else 0])

    def complain(self) -> None:
        who = self._who[self._single.failed // MANY]
        if isinstance(who, int):
            self._engine.overflowed(who, int(self._single.record.counts[TRIALS]))
        who.overflowed()
