"""One trial at a time: Python reads an instance by its names into small arrays, and one compiled call plays it.

A path takes an engine's parts (`linmax.engine.bench`), or the groups of the pool for attributes, as structs that stay
in place between trials, and gives the call their address. `RulesPath` stores recent instances, which recycling and
voting need; after some hundred trials they are handed to the engine, and a new path is set up. `NumbersPath` is that of
the pool for attributes, where these are numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import float32, float64, int64, types

from linmax.core.contract import (
    KNOWN,
    NO_LABEL,
    TRIALS,
    UPDATES,
    Indices,
    Labels,
    Matrix,
    Played,
    RunningTrials,
    Trials,
    Vector,
)
from linmax.core.linear_max import longest_row
from linmax.core.search import fill_panel
from linmax.data.arrays import Layout, attributes_of, concatenate, cut, no_trials
from linmax.data.scaling import MOST_NUMERIC
from linmax.engine.bench import Bench
from linmax.engine.coordinates import largest_rating
from linmax.engine.engine import Engine
from linmax.engine.loop import MANY, run
from linmax.engine.record import TRIALS as TRIALS_NOTED
from linmax.engine.record import Record, keep_scores, note
from linmax.jit.compiling import JIT, calling, kernel
from linmax.jit.panels import LANES
from linmax.jit.struct import Struct, act, entry
from linmax.learners.attributes.group import ROWS_PLAYED
from linmax.learners.attributes.pairs import PairMembers
from linmax.learners.attributes.pool import RunningPool, width_of
from linmax.learners.attributes.stacker import FusionT, fingerprints, fuse
from linmax.learners.attributes.warm_up import DENSE
from linmax.util.aliases import Label, Name

__all__ = [
    "FAILED",
    "LARGE",
    "REFUSED",
    "NamePlaces",
    "NumbersPath",
    "OneTrialPath",
    "RulesPath",
    "may_have_path",
    "path_for",
    "refuse",
]

REFUSED = object()  # returned for an instance that the caller must read and play itself
FAILED = object()  # returned when the weights left the range of floats
LARGE = 1e50  # numbers beyond this may carry the weights out of the range of floats at once
NOT_PLAYED, LEFT_RANGE = -3, -4  # what compiled code returns for REFUSED and FAILED, instead of a class
UNREADABLE = (KeyError, IndexError, TypeError, ValueError, OverflowError, struct.error)
TRIALS_KEPT = 256  # trials that a path takes


# -- the compiled call --------------------------------------------------------------------------------------------


class Single(Struct):
    """Everything that a trial is played with."""

    columns: np.ndarray = Labels  # the instance as Python has read it: the places of its attributes
    values: np.ndarray = Vector
    votes: np.ndarray = Labels  # for each voter the place of a class, -1 for an abstention
    bound: float = float64  # the largest magnitude that an attribute may have
    at: int = int64  # where the next instance goes
    end: int = int64  # and where none goes
    remembers: int = int64  # whether instances stay
    gather: int = int64  # the kernel by which the top reads the instance, and may refuse it; or 0
    fill: int = int64  # the kernel that writes an instance into the panel, if there is one
    failed: int = int64
    top: int = int64  # what predicts: a part, its kernel and an argument
    predict: int = int64
    which: int = int64
    row: int = int64  # of the top among what is played
    parts: np.ndarray = Indices  # who takes turns, and their kernels
    plays: np.ndarray = Indices
    shape: np.ndarray = Indices  # that of the state
    trials: RunningTrials = RunningTrials.numba_type
    played: Played = Played.numba_type
    counts: np.ndarray = Indices  # the arrays of a `Record`
    curve: np.ndarray = int64[:, ::1]
    scores: np.ndarray = Matrix
    labels: np.ndarray = Labels
    gaps: np.ndarray = Vector
    levels: np.ndarray = Vector


single_at = Single.from_address()


@kernel()
def begin(s: Single, count: int, voted: int) -> bool:
    """Copy the instance that Python has read to its place; False if there is none, or it does not fit."""
    trials, t, bound = s.trials, s.at, s.bound
    indptr, indices, values, votes = trials.indptr, trials.indices, trials.values, trials.votes
    start = indptr[t] if indptr.size else 0
    if t == s.end or start + count > values.size:
        return False
    columns, numbers, choices = s.columns, s.values, s.votes
    for j in range(count):
        if not abs(numbers[j]) <= bound:
            return False
        indices[start + j] = columns[j]
        values[start + j] = numbers[j]
    if indptr.size:
        indptr[t + 1] = start + count
    for i in range(votes.shape[1]):
        votes[t, i] = choices[i] if voted else -1
    trials.known[t] = s.shape[KNOWN]
    trials.labels[t] = NO_LABEL
    return s.gather == 0 or act(s.gather, s.top, t, 0) >= 0


@kernel(int64(int64, int64, int64), locked=True)
def ask(address: int, count: int, voted: int) -> int:
    """Return the class predicted, or NOT_PLAYED."""
    s = single_at(address)
    return act(s.predict, s.top, s.at, s.which) if begin(s, count, voted) else NOT_PLAYED


@kernel(int64(int64, int64, int64, int64), locked=True)
def teach(address: int, count: int, voted: int, label: int) -> int:
    """Return the class predicted before the label was learned, or NOT_PLAYED, or LEFT_RANGE."""
    s = single_at(address)
    if not begin(s, count, voted):
        return NOT_PLAYED
    t, shape = s.at, s.shape
    s.trials.labels[t] = label
    if s.fill != 0:
        act(s.fill, s.trials, t, t + 1)
    s.failed = run(s.parts, s.plays, t, t + 1, 1)
    if s.failed >= 0:
        return LEFT_RANGE
    shape[KNOWN] = max(shape[KNOWN], label + 1)
    if s.remembers:
        s.at = t + 1
    predicted = int(s.played.predictions[s.row, t])
    note(s, int(predicted != label))
    keep_scores(s, s.played.tables[s.row, t], s.trials.known[t], label)
    return predicted


# -- the paths ----------------------------------------------------------------------------------------------------


class NamePlaces(NamedTuple):
    """Places of the names that an instance may have."""

    attributes: dict[Name, int]
    voters: dict[Name, int]
    chosen: dict[Name, int]  # the place of each class that may be voted for; None is an abstention
    known: dict[Name, int]  # the place of each class that has had a label
    classes: list[Label]
    attributes_by_number: int  # how many, from the first on, are named 0, 1, ...
    voters_by_number: int


@cache
def _formats(count: int) -> tuple[struct.Struct, struct.Struct]:
    return struct.Struct(f"{count}i"), struct.Struct(f"{count}d")


def refuse(*_: object) -> object:
    """Return REFUSED; stands in for `ask` and `teach` where there is no path for single trials."""
    return REFUSED


def blank_instances(layout: Layout, trials: int, numbers: int) -> Trials:
    """Return instances of voters and sparse attributes, to be written."""
    numbers = numbers if layout.sparse else 0
    return no_trials(trials)._replace(
        votes=np.full((trials, layout.voters), -1, np.int32),
        signs=np.ones(layout.voters),
        indptr=np.zeros(trials + 1 if layout.sparse else 0, np.int64),
        indices=np.zeros(numbers, np.int32),
        values=np.zeros(numbers),
        constant=layout.constant,
    )


class OneTrialPath:
    """An engine set up for trials that come one by one, with at most ``longest`` attributes up to ``bound``.

    The path lives no longer than the arrays of the engine: when the engine grows, there must be a new one.
    """

    remembers = False  # whether it stores recent instances that the engine will need, or must not miss a trial
    asked: np.ndarray | None = None  # (1, k): the scores of the instance asked about last, where it has them

    def __init__(
        self, engine: Engine, names: NamePlaces, record: Record, longest: int, bound: float, **fields: Any
    ) -> None:
        self._engine, self._names, self._longest = engine, names, longest if engine.layout.sparse else 0
        single = self._single = Single(
            columns=np.zeros(self._longest, np.int32), values=np.zeros(self._longest), bound=bound,
            votes=np.zeros(engine.layout.voters, np.int32), shape=engine.state.shape, **record._asdict(), **fields,
        )  # fmt: skip
        self._address, self._teach = single.address, teach.compiled
        self._ask: Any = None  # compiled at the first question
        self._columns, self._values = single.columns.data.cast("B"), single.values.data.cast("B")
        self._votes, self._nobody = single.votes.data, np.full_like(single.votes, -1).data

    def ask(self, attributes: object, votes: object) -> object:
        """Return the class predicted, or REFUSED for an instance that this path cannot read."""
        try:
            count = self._read(attributes, votes)
        except UNREADABLE:
            return REFUSED
        if self._ask is None:
            self._single.predict = self.predicting()
            self._ask = ask.compiled
        return self._answer(self._ask(self._address, count, votes is not None))

    def teach(self, attributes: object, votes: object, label: Label) -> object:
        """Learn an instance; return the class predicted before, or REFUSED with nothing changed, or FAILED."""
        try:
            place = self._names.known[label]
            count = self._read(attributes, votes)
        except UNREADABLE:
            return REFUSED
        return self._answer(self._teach(self._address, count, votes is not None, place))

    def _read(self, attributes: Any, votes: Any) -> int:
        """Write an instance, dicts by name or lists, into the struct; return the number of attributes."""
        names, count = self._names, 0
        if attributes is not None:
            count, kind = len(attributes), type(attributes)
            if count > self._longest:
                raise KeyError
            whole, floats = _formats(count)
            if kind is dict:
                places = names.attributes
                whole.pack_into(self._columns, 0, *[places[name] for name in attributes])
                floats.pack_into(self._values, 0, *attributes.values())
            elif (kind is list or kind is tuple) and count <= names.attributes_by_number:
                whole.pack_into(self._columns, 0, *range(count))
                floats.pack_into(self._values, 0, *attributes)
            else:
                raise KeyError
        if votes is not None:
            self._read_votes(votes)
        elif attributes is None:
            raise KeyError
        return count

    def _read_votes(self, votes: Any) -> None:
        names, row = self._names, self._votes
        if type(votes) is dict:
            row[:] = self._nobody
            places: Iterable[int] = [names.voters[voter] for voter in votes]
            choices: Iterable[Label] = votes.values()
        elif (type(votes) is list or type(votes) is tuple) and len(votes) == len(row) == names.voters_by_number:
            places, choices = range(len(row)), votes
        else:
            raise KeyError
        if not row:
            raise KeyError
        chosen = names.chosen
        for place, choice in zip(places, choices, strict=True):
            row[place] = chosen[choice] if choice == choice else -1  # nan is an abstention

    def _answer(self, place: int) -> object:
        if place >= 0:
            return self._names.classes[place]
        return None if place == -1 else REFUSED if place == NOT_PLAYED else FAILED

    def predicting(self) -> int:
        """Prepare what only `ask` needs; return the address of the kernel by which the top predicts."""
        raise NotImplementedError

    def has_room(self, count: int, largest: float) -> bool:
        """Return whether it takes another instance, of ``count`` attributes up to ``largest``."""
        raise NotImplementedError

    def taught_votes(self) -> np.ndarray:
        """Return the votes of the instance taught last, as places of classes; a view, until the next one."""
        raise NotImplementedError

    def settle(self) -> None:
        """Hand the recent instances to the engine."""

    def complain(self) -> None:
        """Raise the error of a trial that has FAILED."""
        raise NotImplementedError


# -- rules and techniques -----------------------------------------------------------------------------------------


def _takes_turns(engine: Engine) -> bool:
    """Return whether all of a learner is compiled parts that can predict."""
    if not JIT or not engine.runs or engine.layout.raters or engine.scored:
        return False
    turns = engine.bench.turns
    return all(node.row in turns and turns[node.row].predict is not None for node in engine.top.walk())


class RulesPath(OneTrialPath):
    """The path of rules and the techniques over them, for instances of at least ``longest`` attributes.

    It stores the recent instances, until `settle` hands them to the engine.
    """

    def __init__(self, engine: Engine, names: NamePlaces, record: Record, longest: int, largest: float) -> None:
        layout, top = engine.layout, engine.top
        self.remembers = engine.memory > 0
        self._settled = played = 0 if engine.tail is None else engine.tail.size
        size = -(-(played + TRIALS_KEPT) // LANES) * LANES if self.remembers else 1
        tail = engine.tail if engine.tail is not None else no_trials(0)
        longest = max(longest, longest_row(tail.indptr))  # recent instances are learned from as well
        instances = blank_instances(layout, size, len(tail.values) + longest * (size - played))
        if played:
            instances.votes[:played], instances.labels[:played] = tail.votes, tail.labels
            instances.known[:played], instances.weights[:played] = tail.known, tail.weights
            instances.indices[: len(tail.indices)], instances.values[: len(tail.values)] = tail.indices, tail.values
            instances.indptr[: len(tail.indptr)] = tail.indptr
        bounded = any(run.rule.bounded for run in engine.runs)
        largest = 1.0 + 1e-12 if bounded else max(1.0, largest, largest_rating(tail))
        bench = self._bench = Bench(engine)
        bench.show(instances)
        bench.reserve(0, layout.voters + 2 * (longest + 1), 0)
        paneled = self.remembers and engine.small(tail) and int(engine.state.shape[KNOWN]) == engine.k
        bench.lay_out(engine, size, largest if paneled else 0.0, True, played)
        self._uses = np.zeros((len(engine.runs), size if self.remembers else 0), np.int32)
        self._uses[:, :played] = engine.tail_uses if self.remembers else 0
        for member, own in zip(bench.members, self._uses, strict=True):
            member.uses = own
        bench.reserve_outputs(size, size, False, top.passes_scores_on, engine.k)
        panel = bench.trials.largest > 0.0
        self._who, parts, plays, _ = bench.turns_of(bench.first, members=True)
        turn = self._turn = bench.turns[top.row]
        super().__init__(
            engine, names, record, longest, min(largest, LARGE) if bounded or panel else LARGE,
            at=played, end=size, remembers=self.remembers, fill=entry(fill_panel) if panel else 0,
            top=turn.part.address, which=turn.which, row=top.row, parts=parts, plays=plays,
            trials=bench.trials, played=bench.played,
        )  # fmt: skip

    def predicting(self) -> int:
        self._bench.ready()
        return entry(self._turn.predict)

    def has_room(self, count: int, largest: float) -> bool:
        indptr, single = self._bench.trials.indptr, self._single
        stored = int(indptr[single.at]) if indptr.size else 0
        fits = count <= self._longest and stored + count <= len(self._bench.trials.values)
        return fits and single.at < single.end and not largest > single.bound

    def settle(self) -> None:
        engine, trials, played = self._engine, self._bench.trials, self._single.at
        if played == self._settled:
            return
        first = max(0, played - engine.memory)
        instances = Trials(*(getattr(trials, name) for name in Trials._fields))
        # Joined with nothing it is a copy.
        engine.tail = concatenate(cut(instances, first, played), cut(instances, played, played))
        engine.tail_uses = self._uses[:, first:played].copy()
        self._settled = played

    def taught_votes(self) -> np.ndarray:
        return np.asarray(self._bench.trials.votes[self._single.at - 1 if self.remembers else 0])

    def complain(self) -> None:
        who = self._who[self._single.failed // MANY]
        if isinstance(who, int):
            self._engine.overflowed(who, int(self._single.counts[TRIALS_NOTED]))
        who.overflowed()


# -- the pool for attributes --------------------------------------------------------------------------------------

NUMBER_GROUPS = ("dense", "pairs8", "pairs16", "nearest")  # those of numbers alone
KERNEL, STRUCT, PLACE = range(3)  # columns of ``groups``


class NumbersRow(Struct):
    """The pool for attributes at work on a row of numbers."""

    trials: RunningTrials = RunningTrials.numba_type  # one of them
    played: Played = Played.numba_type
    places: np.ndarray = Indices  # of its attributes among those seen
    rows: np.ndarray = Matrix  # (1, attributes seen)
    seen: np.ndarray = Indices  # (1,): how many these are
    shape: np.ndarray = Indices
    counts: np.ndarray = int64[:, ::1]
    groups: np.ndarray = int64[:, ::1]  # addresses of kernel and struct, and the place of the first member
    votes: np.ndarray = float32[:, :, ::1]  # (1, members, classes)
    mark: np.ndarray = Indices  # (1,): its fingerprint
    fuse: int = int64  # the kernel of the fusion
    fusion: Any = FusionT


ON_ROW = int64(NumbersRow.numba_type, int64, int64)
call_group = calling(types.void(int64, *ROWS_PLAYED))
call_fuse = calling(fuse.signature) if JIT else fuse


@kernel(ON_ROW)
def gather_row(m: NumbersRow, _begin: int, _end: int) -> int:
    """Write the instance as a row; return -1 where an attribute is new."""
    trials, row, places = m.trials, m.rows[0], m.places
    fingerprints(trials.dense, trials.indptr, trials.indices, trials.values, m.mark)
    for f in range(row.size):
        row[f] = 0.0
    for j in range(trials.indptr[1]):
        column, value = trials.indices[j], trials.values[j]
        if value != 0.0:
            if column >= places.size or places[column] < 0:
                return -1
            row[places[column]] += value
    return 0


@kernel()
def score_row(m: NumbersRow, learn: bool) -> None:
    """Let all members score the row, and fuse them."""
    trials, played, votes, groups = m.trials, m.played, m.votes, m.groups
    counts, labels, weights, rows, seen = trials.known, trials.labels, trials.weights, m.rows, m.seen
    for i in range(votes.shape[1]):
        for c in range(votes.shape[2]):
            votes[0, i, c] = 0.0
    for g in range(groups.shape[0]):
        call_group(
            groups[g, KERNEL], groups[g, STRUCT], rows, seen, trials.constant, counts, labels, weights, learn, votes,
            groups[g, PLACE],
        )  # fmt: skip
    predictions, table = played.predictions[0], played.tables[0]
    call_fuse(m.fuse, m.fusion, votes, m.mark, counts, labels, weights, m.shape, learn, predictions, table)


@kernel(ON_ROW)
def play_row(m: NumbersRow, _begin: int, _end: int) -> int:
    """Predict and learn; return -1."""
    score_row(m, True)
    m.counts[0, TRIALS] += 1
    m.counts[0, UPDATES] += 1
    return -1


@kernel(ON_ROW)
def predict_row(m: NumbersRow, _t: int, _: int) -> int:
    """Return the class predicted, without learning."""
    score_row(m, False)
    return int(m.played.predictions[0, 0])


def _columns(group: Any) -> int:
    """Attributes that a group has; -1 before it has seen the first trials."""
    if isinstance(group, PairMembers):
        return len(group.edges) if group.ready else -1
    return len(group.stats)


def plays_numbers(pool: RunningPool) -> bool:
    """Return whether a pool can be taught by `NumbersPath` by now."""
    width, groups = pool.kinds.width, pool.groups
    if pool.kinds.kind != DENSE or int(pool.kinds.counts[0]) > MOST_NUMERIC or tuple(groups) != NUMBER_GROUPS:
        return False
    return all(_columns(group) == width for group in groups.values())


class NumbersPath(OneTrialPath):
    """The path of an engine whose learner is a pool that `plays_numbers`."""

    remembers = True

    def __init__(self, engine: Engine, pool: RunningPool, names: NamePlaces, record: Record, longest: int) -> None:
        width, classes = pool.kinds.width, width_of(engine.k)
        for group in pool.groups.values():
            group.fit(width, classes)
        groups = [(entry(group.kernel), group.struct.address, place) for place, _, group in pool.placed()]
        pool.fusion.grow(**{"class": engine.k})
        votes = np.zeros((1, len(pool.fusion.squares), classes), np.float32)
        self._instances = blank_instances(engine.layout, 1, longest)
        played = Played(predictions=np.zeros((1, 1), np.int32), tables=np.zeros((1, 1, engine.k)))
        self._part = NumbersRow(
            trials=RunningTrials(**self._instances._asdict()), played=played,
            places=pool.kinds.sparse_places, rows=np.zeros((1, width)),
            seen=np.array([int(pool.kinds.counts[0])], np.int64), shape=engine.state.shape, counts=engine.state.counts,
            groups=np.array(groups, np.int64), votes=votes, mark=np.zeros(1, np.int64),
            fuse=entry(fuse), fusion=pool.fusion.struct,
        )  # fmt: skip
        address = self._part.address
        super().__init__(
            engine, names, record, longest, LARGE,
            end=1, gather=entry(gather_row), top=address, parts=np.array([address]), plays=np.array([entry(play_row)]),
            trials=self._part.trials, played=played,
        )  # fmt: skip
        self._pool, self._large, self._open = pool, pool.at_large, True
        self.asked = played.tables[0]

    def predicting(self) -> int:
        return entry(predict_row)

    def ask(self, attributes: object, votes: object) -> object:
        return super().ask(attributes, votes) if self._open and not self._large.long_runs else REFUSED

    def teach(self, attributes: object, votes: object, label: Label) -> object:
        first, large, trials = self._pool.first, self._large, self._instances
        if not self._open or (first.open and first.until == 1) or self._pool.fusion.is_full:
            return REFUSED  # the pool looks at the first trials after this one, or the set of fingerprints doubles
        predicted = super().teach(attributes, votes, label)
        if predicted is not REFUSED:
            instance = attributes_of(trials, 0) if first.open or large.due else None
            if first.open and instance is not None:
                first.add(instance)
                self._pool.kinds.count(instance.values)
            large.keep_one(instance, int(trials.labels[0]))
        return predicted

    def has_room(self, count: int, largest: float) -> bool:  # noqa: ARG002
        return self._open and count <= self._longest

    def settle(self) -> None:
        self._open = False  # the holder of the engine may move its arrays


# -- which path there is ------------------------------------------------------------------------------------------


def _pool_of(engine: Engine) -> RunningPool | None:
    """The pool for attributes that learns by itself, if the learner is one."""
    return None if engine.layout.voters else engine.top.weighing


def may_have_path(engine: Engine) -> bool:
    """Return whether there can be a path, now or when the pool for attributes has seen enough."""
    return JIT and (_takes_turns(engine) or _pool_of(engine) is not None)


def path_for(engine: Engine, names: NamePlaces, record: Record, count: int, largest: float) -> OneTrialPath | None:
    """Return a path for instances such as one of ``count`` attributes up to ``largest``; None if there is none yet."""
    longest, pool = max(32, 2 * count), _pool_of(engine)
    if pool is None:
        return RulesPath(engine, names, record, longest, 2.0 * largest)
    return NumbersPath(engine, pool, names, record, longest) if plays_numbers(pool) else None
