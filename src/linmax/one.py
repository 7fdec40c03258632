"""A plain rule, one trial at a time, at the price of a call with three numbers.

Taking apart the tuples of arrays that a kernel works on costs Python several microseconds, more than the trial. So they
are taken apart once, and kept as the kernels hold them in a piece of memory; a call hands over its address. The arrays
must stay where they are meanwhile: whoever opens a `Window` closes it when the state has grown.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import float64, int32, int64, types

from linmax.contract import (
    JIT,
    Bytes,
    Deferred,
    Indices,
    Instances,
    InstancesT,
    Labels,
    Matrix,
    MembersT,
    StateT,
    Vector,
    kernel,
)
from linmax.machine import Engine
from linmax.member import ScratchT, scratch_for
from linmax.nodes import no_instances
from linmax.playing import judge
from linmax.straight import play_straight

__all__ = ["FAILED", "REFUSED", "Window"]

ROOM = 2**14  # bytes; the arguments take about half of it
REFUSED = -3  # a value is not finite, or out of the range that the rule needs
FAILED = -4  # the weights left the range of floats

ArgumentsT = types.Tuple([MembersT, StateT, ScratchT, InstancesT, Labels, Labels, Bytes, Vector, Matrix, Indices])

# Of CPython: a dict is read where it lies, which takes a fifth of the time of handing its items over.
next_item = types.ExternalFunction("PyDict_Next", int32(int64, int64, int64, int64))
get_item = types.ExternalFunction("PyDict_GetItem", int64(int64, int64))
to_whole = types.ExternalFunction("PyLong_AsLong", int64(int64))
to_float = types.ExternalFunction("PyFloat_AsDouble", float64(int64))
TEXT, FLOAT = id(str), id(float)

if JIT:
    from numba.extending import intrinsic

    @intrinsic
    def keep(_, address, arguments):  # type: ignore[no-untyped-def]
        """Write the arguments to memory as they are."""

        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            builder.store(args[1], builder.inttoptr(args[0], args[1].type.as_pointer()))
            return context.get_dummy_value()

        return types.void(int64, arguments), codegen

    @intrinsic
    def kept(_, address):  # type: ignore[no-untyped-def]
        """Read them back."""

        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            kind = context.get_value_type(ArgumentsT)
            return builder.load(builder.inttoptr(args[0], kind.as_pointer()))

        return ArgumentsT(int64), codegen

    @intrinsic
    def type_of(_, thing):  # type: ignore[no-untyped-def]
        """The address of the type of the Python object at an address: its second word."""

        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            word = ir.IntType(64)
            return builder.load(builder.inttoptr(builder.add(args[0], word(8)), word.as_pointer()))

        return int64(int64), codegen


# The loops as compiled functions; set when the kernels below are compiled.
straight: Any = None
judged: Any = None


def _compile(signature: Any, locked: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """A kernel that calls the loops, compiled when it is first called."""

    def compile_it(function: Any) -> Any:
        global straight, judged
        straight, judged = play_straight.compiled, judge.compiled
        return kernel(signature, locked=locked)(function)

    return lambda function: Deferred(lambda: compile_it(function))


@_compile(types.void(int64, ArgumentsT))
def keep_arguments(address: int, arguments: Any) -> None:
    keep(address, arguments)


@kernel()
def in_order(values: np.ndarray, count: int, bound: float) -> bool:
    """Whether the values are within the bound, and so finite."""
    for j in range(count):
        if not abs(values[j]) <= bound:
            return False
    return True


@_compile(int64(int64, int64, float64))
def predict_one(address: int, count: int, bound: float) -> int:
    """The class of the instance in the window, whose sparse attributes are ``count``."""
    members, state, room, instances, _, predictions, _, _, table, _ = kept(address)
    if not in_order(instances.values, count, bound):
        return REFUSED
    if instances.indptr.size:
        instances.indptr[1] = count
    judged(members, state, room, 0, instances, 1, predictions, table)
    return predictions[0]


@_compile(int64(int64, int64, float64, int64))
def learn_one(address: int, count: int, bound: float, label: int) -> int:
    """The same, then the rule sees the label."""
    members, state, room, instances, labels, predictions, changes, margins, _, _ = kept(address)
    if not in_order(instances.values, count, bound):
        return REFUSED
    if instances.indptr.size:
        instances.indptr[1] = count
    labels[0] = label
    failed = straight(members, state, room, instances, labels, predictions, changes, margins)
    return FAILED if failed >= 0 else predictions[0]


@kernel()
def read_dict(
    vocabulary: int, given: int, text: int, number: int, instances: Instances, cursor: np.ndarray, bound: float
) -> int:
    """Write the dict at an address, of floats by text, into the window: how many, or REFUSED."""
    count = 0
    item = cursor.ctypes.data
    cursor[0] = 0
    while next_item(given, item, item + 8, item + 16) != 0:
        if count == instances.values.size or type_of(cursor[1]) != text or type_of(cursor[2]) != number:
            return REFUSED
        place = get_item(vocabulary, cursor[1])
        if place == 0:
            return REFUSED
        value = to_float(cursor[2])
        if not abs(value) <= bound:
            return REFUSED
        instances.indices[count] = to_whole(place)
        instances.values[count] = value
        count += 1
    if instances.indptr.size:
        instances.indptr[1] = count
    return count


@_compile(int64(int64, int64, int64, int64, int64, float64), locked=True)
def predict_dict(address: int, vocabulary: int, given: int, text: int, number: int, bound: float) -> int:
    """`predict_one` for a dict."""
    members, state, room, instances, _, predictions, _, _, table, cursor = kept(address)
    if read_dict(vocabulary, given, text, number, instances, cursor, bound) < 0:
        return REFUSED
    judged(members, state, room, 0, instances, 1, predictions, table)
    return predictions[0]


@_compile(int64(int64, int64, int64, int64, int64, float64, int64), locked=True)
def learn_dict(address: int, vocabulary: int, given: int, text: int, number: int, bound: float, label: int) -> int:
    """`learn_one` for a dict."""
    members, state, room, instances, labels, predictions, changes, margins, _, cursor = kept(address)
    if read_dict(vocabulary, given, text, number, instances, cursor, bound) < 0:
        return REFUSED
    labels[0] = label
    failed = straight(members, state, room, instances, labels, predictions, changes, margins)
    return FAILED if failed >= 0 else predictions[0]


class Window:
    """An engine of one plain rule, opened for trials that come one by one. It has room for ``longest`` attributes.

    ``votes``, ``columns`` and ``values`` are where an instance is written before a call.
    """

    def __init__(self, engine: Engine, longest: int) -> None:
        layout = engine.layout
        self.longest = longest
        self.votes = np.full((1, layout.voters), -1, np.int32)
        self.columns, self.values = np.zeros(longest, np.int32), np.zeros(longest)
        indptr = np.zeros(2 if layout.sparse else 0, np.int64)
        instances = no_instances(1)._replace(
            votes=self.votes,
            signs=np.ones(layout.voters),
            indptr=indptr,
            indices=self.columns,
            values=self.values,
            constant=layout.constant,
        )
        one = np.zeros(1, np.int32)
        scratch = scratch_for(engine.state, False, 0, layout.voters + 2 * (longest + 1), 0, False)
        self._arguments = (
            engine.members,
            engine.state,
            scratch,
            instances,
            one,
            one.copy(),
            np.zeros(1, np.uint8),
            np.zeros(0),
            np.zeros((0, 0)),
            np.zeros(3, np.int64),
        )
        self._memory = np.zeros(ROOM, np.uint8)
        self._address = int(self._memory.ctypes.data)
        bounded = engine.runs[0].rule.bounded
        self._bound = 1.0 + 1e-12 if bounded else np.finfo(float).max
        keep_arguments(self._address, self._arguments)
        self._predict, self._learn = predict_one.compiled, learn_one.compiled
        self._predict_dict, self._learn_dict = predict_dict.compiled, learn_dict.compiled
        self._pack_votes: Any = struct.Struct(f"{layout.voters}i").pack_into
        self._packing: dict[int, tuple[Any, Any]] = {}

    def predict_dict(self, vocabulary: dict[Any, int], given: dict[Any, Any]) -> int:
        """`predict` for a dict of floats by text, all in the vocabulary; REFUSED for any other."""
        return self._predict_dict(self._address, id(vocabulary), id(given), TEXT, FLOAT, self._bound)

    def learn_dict(self, vocabulary: dict[Any, int], given: dict[Any, Any], label: int) -> int:
        """`learn` for such a dict."""
        return self._learn_dict(self._address, id(vocabulary), id(given), TEXT, FLOAT, self._bound, label)

    def write(self, columns: Iterable[int], values: Iterable[float], count: int) -> None:
        """Put an instance of ``count`` attributes into the window."""
        if count not in self._packing:
            self._packing[count] = struct.Struct(f"{count}i").pack_into, struct.Struct(f"{count}d").pack_into
        pack_columns, pack_values = self._packing[count]
        pack_columns(self.columns, 0, *columns)
        pack_values(self.values, 0, *values)

    def write_votes(self, codes: Iterable[int]) -> None:
        """Put the places voted for into the window, -1 for an abstention."""
        self._pack_votes(self.votes, 0, *codes)

    def predict(self, count: int) -> int:
        """The class of the instance in the window, -1 before one is known, or REFUSED."""
        return int(self._predict(self._address, count, self._bound))

    def learn(self, count: int, label: int) -> int:
        """The same, then learn its label; FAILED where the weights left the range of floats."""
        return int(self._learn(self._address, count, self._bound, label))
