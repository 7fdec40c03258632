"""What the paths for single trials have in common: reading an instance, and calling a kernel with one address.

Unpacking the tuples of arrays that a kernel takes costs Python several microseconds, more than a trial. So a path
unpacks them once and stores them in memory as compiled code holds them; a kernel then takes their address. The arrays
must not move meanwhile. Python reads the names of an instance into the small arrays of a `Reader`; compiled code copies
the instance from there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import float64, int64, types
from numba.extending import intrinsic

from linmax.core.contract import Indices, Instances, Labels, Matrix, Trials, Vector
from linmax.data.arrays import Layout, no_instances
from linmax.engine.engine import Engine
from linmax.engine.record import Record, keep_scores, note
from linmax.jit.compiling import Kernel, caller, kernel
from linmax.jit.struct import Struct

__all__ = [
    "ASK",
    "FAILED",
    "LARGE",
    "LEFT_RANGE",
    "NOT_PLAYED",
    "REFUSED",
    "TEACH",
    "NamePlaces",
    "OneTrialPath",
    "Reader",
    "RecordArrays",
    "blank_instances",
    "calling",
    "new_reader",
    "note_and_answer",
    "refuse",
    "store",
    "stored_at",
    "write_instance",
]

REFUSED = object()  # returned for an instance that the caller must read and play itself
FAILED = object()  # returned when the weights left the range of floats
LARGE = 1e50  # numbers beyond this may carry the weights out of the range of floats at once
NOT_PLAYED, LEFT_RANGE = -3, -4  # what compiled code returns for REFUSED and FAILED, instead of a class
SPACE = 2**14  # bytes for the arguments of a kernel, which take about half of it
UNREADABLE = (KeyError, IndexError, TypeError, ValueError, OverflowError, struct.error)

ASK = int64(int64, int64, int64)  # address of the stored arguments, attributes, whether there are votes -> class
TEACH = int64(int64, int64, int64, int64)  # the same, and the place of the label


# -- arguments in memory ------------------------------------------------------------------------------------------


@intrinsic
def store(_, address, arguments):  # type: ignore[no-untyped-def]
    """Write the arguments to memory as they are: at most SPACE bytes at an address."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        size = context.get_abi_sizeof(args[1].type)
        if size > SPACE:
            raise ValueError(f"SPACE must be at least {size}, got {SPACE}")
        builder.store(args[1], builder.inttoptr(args[0], args[1].type.as_pointer()))
        return context.get_dummy_value()

    return types.void(int64, arguments), codegen


def stored_at(kind: Any) -> Any:
    """Return a function for kernels that reads stored arguments of a type at an address."""

    @intrinsic
    def read(_, address):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            whole = context.get_value_type(kind)
            return _load(builder, builder.inttoptr(args[0], whole.as_pointer()), whole)

        return kind(int64), codegen

    return read


def _load(builder: Any, pointer: Any, kind: Any) -> Any:
    """Load number by number, so that the compiler can leave out what is not used."""
    parts = getattr(kind, "elements", None) or ([kind.element] * kind.count if hasattr(kind, "count") else None)
    if parts is None:
        return builder.load(pointer)
    found = ir.Constant(kind, ir.Undefined)
    for place, part in enumerate(parts):
        at = builder.gep(pointer, [ir.IntType(32)(0), ir.IntType(32)(place)], inbounds=True)
        found = builder.insert_value(found, _load(builder, at, part), place)
    return found


def calling(kind: Any) -> Any:
    """Return a function for kernels that calls one of this signature by address, so that it is not compiled again."""

    @intrinsic
    def call(_, address, arguments):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            parts = [builder.extract_value(args[1], place) for place in range(len(kind.args))]
            found = caller(kind)(context, builder, signature, [args[0], *parts])
            return context.get_dummy_value() if kind.return_type == types.void else found

        return kind.return_type(int64, arguments), codegen

    return call


# -- one instance -------------------------------------------------------------------------------------------------


class NamePlaces(NamedTuple):
    """Places of the names that an instance may have."""

    attributes: dict[Any, int]
    voters: dict[Any, int]
    chosen: dict[Any, int]  # the place of each class that may be voted for; None is an abstention
    known: dict[Any, int]  # the place of each class that has had a label
    classes: list[Any]
    attributes_by_number: int  # how many, from the first on, are named 0, 1, ...
    voters_by_number: int


class Reader(Struct):
    """One instance, written by Python and read by compiled code."""

    columns: np.ndarray = Labels  # places of its attributes
    values: np.ndarray = Vector
    votes: np.ndarray = Labels  # for each voter the place of a class, -1 for an abstention
    bound: float = float64  # the largest magnitude that an attribute may have


class RecordArrays(Struct):
    """The arrays of a `Record`."""

    counts: np.ndarray = Indices
    curve: np.ndarray = int64[:, ::1]
    scores: np.ndarray = Matrix
    labels: np.ndarray = Labels
    gaps: np.ndarray = Vector
    levels: np.ndarray = Vector


def new_reader(layout: Layout, longest: int, bound: float) -> Reader:
    """A reader of instances with at most ``longest`` attributes up to ``bound``."""
    longest = longest if layout.sparse else 0
    columns, votes = np.zeros(longest, np.int32), np.zeros(layout.voters, np.int32)
    return Reader(columns=columns, values=np.zeros(longest), votes=votes, bound=bound)


def blank_instances(layout: Layout, trials: int, numbers: int) -> Instances:
    """Instances of voters and sparse attributes, to be written."""
    return no_instances(trials)._replace(
        votes=np.full((trials, layout.voters), -1, np.int32),
        signs=np.ones(layout.voters),
        indptr=np.zeros(trials + 1 if layout.sparse else 0, np.int64),
        indices=np.zeros(numbers if layout.sparse else 0, np.int32),
        values=np.zeros(numbers if layout.sparse else 0),
        constant=layout.constant,
    )


@kernel()
def write_instance(reader: Reader, count: int, voted: int, instances: Instances | Trials, t: int) -> bool:
    """Copy the instance of ``count`` attributes to number t, the last one; False where it does not fit."""
    indptr, indices, values, votes = instances.indptr, instances.indices, instances.values, instances.votes
    columns, numbers, choices, bound = reader.columns, reader.values, reader.votes, reader.bound
    start = indptr[t] if indptr.size else 0
    if t >= votes.shape[0] or start + count > values.size:
        return False
    for j in range(count):
        if not abs(numbers[j]) <= bound:
            return False
        indices[start + j] = columns[j]
        values[start + j] = numbers[j]
    if indptr.size:
        indptr[t + 1] = start + count
    for i in range(votes.shape[1]):
        votes[t, i] = choices[i] if voted else -1
    return True


@kernel()
def note_and_answer(record: Record | RecordArrays, predicted: int, label: int, scores: np.ndarray, known: int) -> int:
    """Record a trial; return the class predicted."""
    note(record, int(predicted != label))
    keep_scores(record, scores, known, label)
    return predicted


# -- the path -----------------------------------------------------------------------------------------------------


@cache
def _formats(count: int) -> tuple[struct.Struct, struct.Struct]:
    return struct.Struct(f"{count}i"), struct.Struct(f"{count}d")


def refuse(*_: Any) -> Any:
    """Return REFUSED; stands in for `ask` and `teach` where there is no path for single trials."""
    return REFUSED


class OneTrialPath:
    """An engine set up for trials that come one by one.

    The path lives no longer than the arrays of the engine: when the engine grows, there must be a new one.
    """

    remembers = False  # whether it keeps recent instances that the engine will need, or must not miss a trial
    asked: np.ndarray | None = None  # (1, k): the scores of the instance asked about last, where it has them

    def __init__(
        self, engine: Engine, names: NamePlaces, reader: Reader, address: int, kernels: tuple[Kernel, Kernel]
    ) -> None:
        self._engine, self._names, self._address = engine, names, address
        self._kernel_to_ask = kernels[0]
        self._ask: Any = None  # compiled at the first question
        self._teach = kernels[1].compiled
        self._columns, self._values = reader.columns.data.cast("B"), reader.values.data.cast("B")
        self._votes, self._nobody = reader.votes.data, np.full_like(reader.votes, -1).data
        self._longest = len(reader.columns)

    def ask(self, attributes: Any, votes: Any) -> Any:
        """Return the class predicted, or REFUSED for an instance that this path cannot read."""
        try:
            count = self._read(attributes, votes)
        except UNREADABLE:
            return REFUSED
        if self._ask is None:
            self.prepare_to_ask()
            self._ask = self._kernel_to_ask.compiled
        return self._answer(self._ask(self._address, count, votes is not None))

    def teach(self, attributes: Any, votes: Any, label: Any) -> Any:
        """Learn an instance; return the class predicted before, or REFUSED with nothing changed, or FAILED."""
        try:
            place = self._names.known[label]
            count = self._read(attributes, votes)
        except UNREADABLE:
            return REFUSED
        return self._answer(self._teach(self._address, count, votes is not None, place))

    def _read(self, attributes: Any, votes: Any) -> int:
        """Write an instance, dicts by name or lists, into the reader; return the number of attributes."""
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
            choices: Iterable[Any] = votes.values()
        elif (type(votes) is list or type(votes) is tuple) and len(votes) == len(row) == names.voters_by_number:
            places, choices = range(len(row)), votes
        else:
            raise KeyError
        if not row:
            raise KeyError
        chosen = names.chosen
        for place, choice in zip(places, choices, strict=True):
            row[place] = chosen[choice] if choice == choice else -1  # nan is an abstention

    def _answer(self, place: int) -> Any:
        if place >= 0:
            return self._names.classes[place]
        return None if place == -1 else REFUSED if place == NOT_PLAYED else FAILED

    def prepare_to_ask(self) -> None:
        """Prepare what only `ask` needs."""

    def has_room(self, count: int, largest: float) -> bool:
        """Whether it takes another instance, of ``count`` attributes up to ``largest``."""
        raise NotImplementedError

    def taught_votes(self) -> np.ndarray:
        """The votes of the instance taught last, as places of classes; a view, until the next one."""
        raise NotImplementedError

    def settle(self) -> None:
        """Hand the recent instances to the engine."""

    def complain(self) -> None:
        """Raise the error of a trial that has FAILED."""
        raise NotImplementedError
