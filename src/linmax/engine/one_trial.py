"""One trial at a time at the price of a call: compiled code reads Python's objects, plays, counts, and answers.

Taking apart the tuples of arrays that a kernel works on costs Python several microseconds, more than the trial. So they
are taken apart once, and kept as the kernels hold them in a piece of memory. What Python calls is a built-in function
made of compiled code: it is handed the objects as they are, and reads dicts, lists and labels where they lie. The
arrays must stay where they are meanwhile: whoever opens a `Window` closes it when the state has grown.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import cfunc, float64, int32, int64, njit, types

from linmax.core.contract import (
    KNOWN,
    Bytes,
    Indices,
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
from linmax.data.instances import no_instances
from linmax.engine.engine import Engine
from linmax.engine.plain_loop import judge_plain_inline, play_plain_inline
from linmax.engine.record import TRIALS, Record, RecordT, keep_scores, note
from linmax.jit.compiling import CHECKED, JIT, OPTIONS, cache_folder, caching_in, kernel

__all__ = ["FAILED", "REFUSED", "Names", "Window", "built_in", "refuse"]

REFUSED = object()  # an instance that is not for the short way: something new, something wrong, or something rare
FAILED = object()  # the weights left the range of floats
LARGE = 1e50  # numbers beyond this may carry the weights out of the range of floats at once
ROOM = 2**14  # bytes; what is kept takes about half of it

# -- Python's objects, read in compiled code ----------------------------------------------------------------------

next_item = types.ExternalFunction("PyDict_Next", int32(int64, int64, int64, int64))
get_item = types.ExternalFunction("PyDict_GetItemWithError", int64(int64, int64))
list_size = types.ExternalFunction("PyList_Size", int64(int64))
list_item = types.ExternalFunction("PyList_GetItem", int64(int64, int64))
tuple_size = types.ExternalFunction("PyTuple_Size", int64(int64))
tuple_item = types.ExternalFunction("PyTuple_GetItem", int64(int64, int64))
to_whole = types.ExternalFunction("PyLong_AsLong", int64(int64))
whole_to_float = types.ExternalFunction("PyLong_AsDouble", float64(int64))
to_float = types.ExternalFunction("PyFloat_AsDouble", float64(int64))
error_set = types.ExternalFunction("PyErr_Occurred", int64())
clear_error = types.ExternalFunction("PyErr_Clear", types.void())
count_reference = types.ExternalFunction("Py_IncRef", types.void(int64))

KINDS: tuple[Any, ...] = (str, int, bool, float, np.float64, dict, list, tuple)
TEXT, WHOLE, TRUTH, FLOAT, DOUBLE, DICT, LIST, TUPLE = range(8)
NONE, NO, BAD = range(8, 11)
ATTRIBUTES, VOTERS, CHOSEN, KNOWN_CLASSES, CLASSES, ATTRIBUTES_BY_NUMBER, VOTERS_BY_NUMBER = range(11, 18)
NOT_READ = -3


class Names(NamedTuple):
    """What compiled code looks names up in."""

    attributes: dict[Any, int]
    voters: dict[Any, int]
    chosen: dict[Any, int]  # the place of each class that may be voted for; None is an abstention
    known: dict[Any, int]  # the place of each class that has had a label
    classes: list[Any]
    attributes_by_number: int  # how many, from the first on, are named 0, 1, ...
    voters_by_number: int

    def addresses(self) -> np.ndarray:
        """Where all the objects are, in the order of the constants above."""
        fixed = (*KINDS, None, REFUSED, FAILED, self.attributes, self.voters, self.chosen, self.known, self.classes)
        return np.array([*map(id, fixed), self.attributes_by_number, self.voters_by_number], np.int64)


if JIT:
    from numba.extending import intrinsic

    @intrinsic
    def keep(_, address, arguments):  # type: ignore[no-untyped-def]
        """Write the arguments to memory as they are: ROOM bytes at an address."""

        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            size = context.get_abi_sizeof(args[1].type)
            if size > ROOM:
                raise ValueError(f"ROOM must be at least {size}, got {ROOM}")
            builder.store(args[1], builder.inttoptr(args[0], args[1].type.as_pointer()))
            return context.get_dummy_value()

        return types.void(int64, arguments), codegen

    def keeper(kind: Any) -> Any:
        """What reads arguments of a kind back."""

        @intrinsic
        def kept(_, address):  # type: ignore[no-untyped-def]
            def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
                whole = context.get_value_type(kind)
                return _load(builder, builder.inttoptr(args[0], whole.as_pointer()), whole)

            return kind(int64), codegen

        return kept

    def _load(builder: Any, pointer: Any, kind: Any) -> Any:
        """Number by number, so that what is not used is not loaded."""
        parts = getattr(kind, "elements", None) or ([kind.element] * kind.count if hasattr(kind, "count") else None)
        if parts is None:
            return builder.load(pointer)
        found = ir.Constant(kind, ir.Undefined)
        for place, part in enumerate(parts):
            at = builder.gep(pointer, [ir.IntType(32)(0), ir.IntType(32)(place)], inbounds=True)
            found = builder.insert_value(found, _load(builder, at, part), place)
        return found

    @intrinsic
    def word_at(_, address):  # type: ignore[no-untyped-def]
        """The word in memory at an address."""

        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            return builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()))

        return int64(int64), codegen


@kernel(hot=True)
def type_of(thing: int) -> int:
    """The address of the type of the Python object at an address: its second word."""
    return word_at(thing + 8)


@kernel(hot=True)
def length_of(objects: np.ndarray, given: int) -> int:
    """The length of a list or tuple, -1 for anything else."""
    kind = type_of(given)
    if kind == objects[LIST]:
        return list_size(given)
    return tuple_size(given) if kind == objects[TUPLE] else -1


@kernel(hot=True)
def item_of(objects: np.ndarray, given: int, place: int) -> int:
    """An item of a list or tuple."""
    return list_item(given, place) if type_of(given) == objects[LIST] else tuple_item(given, place)


@kernel(hot=True)
def plain_name(objects: np.ndarray, thing: int) -> bool:
    """Whether a name is text or a whole number, so that looking it up runs nothing of the user's."""
    kind = type_of(thing)
    return kind == objects[TEXT] or kind == objects[WHOLE] or kind == objects[TRUTH]


@kernel(hot=True)
def number_of(objects: np.ndarray, thing: int) -> float:
    """The value of a Python number, nan for anything else."""
    kind = type_of(thing)
    if kind == objects[FLOAT] or kind == objects[DOUBLE]:
        return to_float(thing)
    if kind != objects[WHOLE] and kind != objects[TRUTH]:
        return np.nan
    value = whole_to_float(thing)
    if value == -1.0 and error_set() != 0:  # too large
        clear_error()
        return np.nan
    return value


@kernel()
def read_attributes(
    objects: np.ndarray, given: int, instances: Instances, start: int, longest: int, cursor: np.ndarray, bound: float
) -> int:
    """Write a dict of numbers by name, or a list of numbers, into the sparse attributes from ``start`` on.

    Returns where it ends, or NOT_READ: also for more than ``longest`` of them, or than there is room left for.
    """
    size, place = length_of(objects, given), start
    last = min(start + longest, instances.values.size)
    if size >= 0:
        if size > objects[ATTRIBUTES_BY_NUMBER] or start + size > last:
            return NOT_READ
        for column in range(size):
            value = number_of(objects, item_of(objects, given, column))
            if not abs(value) <= bound:
                return NOT_READ
            instances.indices[start + column] = column
            instances.values[start + column] = value
        return start + size
    if type_of(given) != objects[DICT]:
        return NOT_READ
    item = cursor.ctypes.data
    cursor[0] = 0
    while next_item(given, item, item + 8, item + 16) != 0:
        if place >= last or not plain_name(objects, cursor[1]):
            return NOT_READ
        column = get_item(objects[ATTRIBUTES], cursor[1])
        value = number_of(objects, cursor[2])
        if column == 0 or not abs(value) <= bound:
            return NOT_READ
        instances.indices[place] = to_whole(column)
        instances.values[place] = value
        place += 1
    return place


@kernel(hot=True)
def place_of(objects: np.ndarray, choice: int) -> int:
    """The place of the class that a vote is for, -1 for an abstention, or NOT_READ."""
    kind = type_of(choice)
    if kind == objects[FLOAT] or kind == objects[DOUBLE]:
        value = to_float(choice)
        return -1 if value != value else NOT_READ
    if choice != objects[NONE] and not plain_name(objects, choice):
        return NOT_READ
    place = get_item(objects[CHOSEN], choice)
    return NOT_READ if place == 0 else to_whole(place)


@kernel()
def read_votes(objects: np.ndarray, given: int, votes: np.ndarray, cursor: np.ndarray) -> bool:
    """Write votes, a dict by name or a list in the order of the voters, into one row; whether that could be done."""
    if type_of(given) == objects[DICT]:
        votes[:] = -1
        item = cursor.ctypes.data
        cursor[0] = 0
        while next_item(given, item, item + 8, item + 16) != 0:
            if not plain_name(objects, cursor[1]):
                return False
            voter = get_item(objects[VOTERS], cursor[1])
            place = place_of(objects, cursor[2])
            if voter == 0 or place == NOT_READ:
                return False
            column = to_whole(voter)
            if column >= votes.size:
                return False
            votes[column] = place
        return True
    if length_of(objects, given) != votes.size or objects[VOTERS_BY_NUMBER] != votes.size:
        return False
    for voter in range(votes.size):
        place = place_of(objects, item_of(objects, given, voter))
        if place == NOT_READ:
            return False
        votes[voter] = place
    return True


@kernel()
def read_instance(
    objects: np.ndarray,
    attributes: int,
    votes: int,
    instances: Instances,
    t: int,
    longest: int,
    cursor: np.ndarray,
    bound: float,
) -> bool:
    """Write an instance as number t, after which nothing has been written yet; whether that could be done.

    It has at most ``longest`` attributes, which is what there is room to work on.
    """
    sparse, voters = instances.indptr.size > 0, instances.signs.size
    if t >= instances.votes.shape[0]:
        return False
    start = instances.indptr[t] if sparse else 0
    end = start
    if attributes != objects[NONE]:
        end = read_attributes(objects, attributes, instances, start, longest, cursor, bound)
        if end == NOT_READ:
            return False
    if sparse:
        instances.indptr[t + 1] = end
    if votes == objects[NONE]:
        instances.votes[t, :] = -1
        return attributes != objects[NONE]
    return voters > 0 and read_votes(objects, votes, instances.votes[t], cursor)


@kernel(hot=True)
def place_of_label(objects: np.ndarray, label: int) -> int:
    """The place of a label that has been met before, or NOT_READ."""
    place = get_item(objects[KNOWN_CLASSES], label)
    if place == 0:
        clear_error()  # of a label that cannot be looked up
        return NOT_READ
    return to_whole(place)


@kernel(hot=True)
def answer(objects: np.ndarray, place: int) -> int:
    """The class at a place, or None, to be returned to Python."""
    thing = list_item(objects[CLASSES], place) if place >= 0 else objects[NONE]
    count_reference(thing)
    return thing


@kernel(hot=True)
def answer_no(objects: np.ndarray, which: int) -> int:
    """REFUSED or FAILED, to be returned to Python."""
    count_reference(objects[which])
    return objects[which]


# -- built-in functions -------------------------------------------------------------------------------------------


class MethodDefinition(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


METH_FASTCALL = 0x80


@cache
def definition_of(function: Callable[[int, int, int], int]) -> MethodDefinition:
    """Compile what gets (self, address of the arguments, their number) and returns the address of a new reference."""
    options = OPTIONS | {"_nrt": False, "nogil": False}
    with caching_in(cache_folder(function.__code__.co_filename)):
        compiled = cfunc(int64(int64, int64, int64), cache=True, **options)(function)
    definition = MethodDefinition(function.__name__.encode(), compiled.address, METH_FASTCALL, None)
    definition.kept = compiled  # or its code would go
    return definition


@cache
def compiled_for_python(function: Callable[[int, int, int], int]) -> Any:
    """The same as `definition_of` compiles, but that Python gets the exceptions: a C function would swallow them."""
    with caching_in(cache_folder(function.__code__.co_filename)):
        return njit(int64(int64, int64, int64), cache=True, **OPTIONS | {"_nrt": False, "nogil": False})(function)


def checked(function: Callable[[int, int, int], int], address: int) -> Callable[..., Any]:
    """What stands in for a built-in function where bounds are checked."""

    def call(*arguments: Any) -> Any:
        objects = np.array([id(argument) for argument in arguments], np.int64)
        found = compiled_for_python(function)(id(address), objects.ctypes.data, len(arguments))
        held = ctypes.cast(found, ctypes.py_object)
        value = held.value
        ctypes.pythonapi.Py_DecRef(held)  # one reference came from the function, another is ours
        return value

    return call


def built_in(function: Callable[[int, int, int], int], address: int) -> Callable[..., Any]:
    """A built-in function whose self is the number ``address``."""
    if CHECKED:
        return checked(function, address)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes, make.restype = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p), ctypes.py_object
    made: Callable[..., Any] = make(ctypes.byref(definition_of(function)), address, None)
    return made


def refuse(*_: Any) -> Any:
    """What stands in for a built-in function where there is no window."""
    return REFUSED


# -- a plain rule -------------------------------------------------------------------------------------------------


class Trial(NamedTuple):
    """Everything that a trial is played with."""

    members: Members
    state: State
    scratch: Scratch
    instances: Instances  # room for one
    labels: np.ndarray  # (1,), like what follows
    predictions: np.ndarray
    changes: np.ndarray
    margins: np.ndarray  # none
    table: np.ndarray  # (1, k): the scores
    objects: np.ndarray  # where Python's objects are
    cursor: np.ndarray  # int64 (3,): a place in a dict, a key and a value
    bound: np.ndarray  # (1,): the largest magnitude that an attribute may have
    record: Record


TrialT = types.NamedTuple(
    [
        MembersT,
        StateT,
        ScratchT,
        InstancesT,
        Labels,
        Labels,
        Bytes,
        Vector,
        Matrix,
        Indices,
        Indices,
        Vector,
        RecordT,
    ],
    Trial,
)
if JIT:
    kept = keeper(TrialT)


@kernel(types.void(int64, TrialT))
def keep_trial(address: int, trial: Trial) -> None:
    """Write it to memory."""
    keep(address, trial)


def ask(itself: int, arguments: int, _: int) -> int:
    """(attributes, votes) -> the class predicted, or REFUSED."""
    trial = kept(to_whole(itself))
    objects, instances = trial.objects, trial.instances
    given, votes = word_at(arguments), word_at(arguments + 8)
    longest = instances.values.size
    if not read_instance(objects, given, votes, instances, 0, longest, trial.cursor, trial.bound[0]):
        return answer_no(objects, NO)
    return answer(objects, judge_plain_inline(trial.members, trial.state, trial.scratch, instances, 0))


def teach(itself: int, arguments: int, _: int) -> int:
    """(attributes, votes, label) -> the class predicted before the rule saw the label, or REFUSED, or FAILED."""
    trial = kept(to_whole(itself))
    objects, instances, labels, predictions = trial.objects, trial.instances, trial.labels, trial.predictions
    given, votes, label = word_at(arguments), word_at(arguments + 8), place_of_label(objects, word_at(arguments + 16))
    if label == NOT_READ:
        return answer_no(objects, NO)
    longest = instances.values.size
    if not read_instance(objects, given, votes, instances, 0, longest, trial.cursor, trial.bound[0]):
        return answer_no(objects, NO)
    labels[0] = label
    failed = play_plain_inline(
        trial.members, trial.state, trial.scratch, instances, labels, predictions, trial.changes, trial.margins,
        trial.table,
    )  # fmt: skip
    if failed >= 0:
        return answer_no(objects, BAD)
    note(trial.record, int(predictions[0] != label))
    keep_scores(trial.record, trial.table[0], trial.state.shape[KNOWN], label)
    return answer(objects, predictions[0])


class Window:
    """An engine of one plain rule, opened for trials that come one by one. It has room for ``longest`` attributes.

    `ask` and `teach` are built-in functions: ``ask(attributes, votes)`` and ``teach(attributes, votes, label)`` return
    a class, or REFUSED for what they leave to others, with nothing changed. They live no longer than the window.
    """

    remembers = False  # whether it keeps what the engine will need

    def __init__(self, engine: Engine, names: Names, record: Record, longest: int) -> None:
        layout = engine.layout
        self._engine, self._names, self._longest = engine, names, longest
        instances = no_instances(1)._replace(
            votes=np.full((1, layout.voters), -1, np.int32),
            signs=np.ones(layout.voters),
            indptr=np.zeros(2 if layout.sparse else 0, np.int64),
            indices=np.zeros(longest, np.int32),
            values=np.zeros(longest),
            constant=layout.constant,
        )
        bounded = engine.runs[0].rule.bounded
        self._trial = Trial(
            members=engine.members,
            state=engine.state,
            scratch=scratch_for(engine.state, False, 0, layout.voters + 2 * (longest + 1), 0, False),
            instances=instances,
            labels=np.zeros(1, np.int32),
            predictions=np.zeros(1, np.int32),
            changes=np.zeros(1, np.uint8),
            margins=np.zeros(0),
            table=np.zeros((1, engine.k)),
            objects=names.addresses(),
            cursor=np.zeros(3, np.int64),
            bound=np.array([1.0 + 1e-12 if bounded else LARGE]),
            record=record,
        )
        self._memory = np.zeros(ROOM, np.uint8)
        address = int(self._memory.ctypes.data)
        keep_trial(address, self._trial)
        self.ask, self.teach = built_in(ask, address), built_in(teach, address)

    def has_room(self, count: int, _: float) -> bool:
        """Whether an instance of ``count`` attributes fits in."""
        return count <= self._longest

    def settle(self) -> None:
        """There is nothing to hand to the engine: all is in its state."""

    def complain(self) -> None:
        """Say what has FAILED."""
        self._engine.overflowed(0, int(self._trial.record.counts[TRIALS]))
