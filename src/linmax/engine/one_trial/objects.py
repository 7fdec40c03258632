"""Python's objects, read in compiled code: an instance as dicts or lists of attributes and votes, and a label.

Compiled code is handed the objects as they are and reads dicts, lists, numbers and labels where they lie in memory.
Whatever is new, wrong or rare is refused, and left to Python.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float64, int32, int64, types

from linmax.core.contract import Indices, Instances, Vector
from linmax.engine.one_trial.built_in import word_at
from linmax.jit.compiling import kernel

__all__ = ["FAILED", "LARGE", "REFUSED", "Names", "Reader", "ReaderT", "new_reader", "refuse"]

REFUSED = object()  # returned for an instance that is left to Python
FAILED = object()  # returned when the weights left the range of floats
LARGE = 1e50  # numbers beyond this may carry the weights out of the range of floats at once

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

VALUE_TYPES: tuple[Any, ...] = (str, int, bool, float, np.float64, dict, list, tuple)
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
        fixed = (
            *VALUE_TYPES,
            None,
            REFUSED,
            FAILED,
            self.attributes,
            self.voters,
            self.chosen,
            self.known,
            self.classes,
        )
        return np.array([*map(id, fixed), self.attributes_by_number, self.voters_by_number], np.int64)


class Reader(NamedTuple):
    """What compiled code needs to read an instance."""

    objects: np.ndarray  # where Python's objects are, in the order of the constants above
    cursor: np.ndarray  # int64 (3,): a place in a dict, a key and a value
    bound: np.ndarray  # (1,): the largest magnitude that an attribute may have


ReaderT = types.NamedTuple([Indices, Indices, Vector], Reader)


def new_reader(names: Names, bound: float) -> Reader:
    """A reader of instances with attributes up to ``bound``."""
    return Reader(names.addresses(), np.zeros(3, np.int64), np.array([bound]))


def refuse(*_: Any) -> Any:
    """Stands in for a built-in function where there is no path for single trials."""
    return REFUSED


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
    """Whether a name is text or an integer, so that looking it up runs no code of the user."""
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
def read_attributes(reader: Reader, given: int, instances: Instances, start: int, longest: int) -> int:
    """Write a dict of numbers by name, or a list of numbers, into the sparse attributes from ``start`` on.

    Returns where it ends, or NOT_READ: also if there are more than ``longest``, or more than the arrays can hold.
    """
    objects, cursor, bound = reader.objects, reader.cursor, reader.bound[0]
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
def read_votes(reader: Reader, given: int, votes: np.ndarray) -> bool:
    """Write votes, a dict by name or a list in the order of the voters, into one row; False if they are refused."""
    objects, cursor = reader.objects, reader.cursor
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
def read_instance(reader: Reader, arguments: int, instances: Instances, t: int, longest: int) -> bool:
    """Write the instance (attributes, votes) at the address of the arguments as number t; False if it is refused.

    Nothing may have been written after number t yet. An instance of more than ``longest`` attributes is refused.
    """
    none, attributes, votes = reader.objects[NONE], word_at(arguments), word_at(arguments + 8)
    sparse, voters = instances.indptr.size > 0, instances.signs.size
    if t >= instances.votes.shape[0]:
        return False
    start = instances.indptr[t] if sparse else 0
    end = start
    if attributes != none:
        end = read_attributes(reader, attributes, instances, start, longest)
        if end == NOT_READ:
            return False
    if sparse:
        instances.indptr[t + 1] = end
    if votes == none:
        instances.votes[t, :] = -1
        return attributes != none
    return voters > 0 and read_votes(reader, votes, instances.votes[t])


@kernel(hot=True)
def place_of_label(objects: np.ndarray, label: int) -> int:
    """The place of a label that is known, or NOT_READ."""
    place = get_item(objects[KNOWN_CLASSES], label)
    if place == 0:
        clear_error()  # raised by a label that cannot be hashed
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
