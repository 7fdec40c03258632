"""Instances as bytes: names become numbers, in the given order, so that unpacking restores the same instance.

An instance is a dict with any of ``votes`` {voter: class}, ``scores`` {rater: {class: number}} and ``attributes``
{name: number}. Packed, it is two arrays: *places*, unsigned 32-bit numbers of names, and *numbers*, 64-bit floats,
both little-endian. A vote is the places (voter, class), where the largest number means that the voter was asked and
abstained; a score the places (rater, class) and a number; an attribute
one place and a number. Votes come first, then scores, then attributes.

A prediction that brings new names is packed as JSON instead: its names take no numbers, and no memory, unless its
label comes. So is an instance with ``candidates``, a list of classes, which are those of one trial alone: they never
get numbers, and a class is stored as its place among them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

__all__ = [
    "NAME_KINDS",
    "Instance",
    "Label",
    "Packed",
    "SentNames",
    "class_of",
    "code_of",
    "named_in",
    "new_code_of",
    "pack",
    "pack_known",
    "pack_loosely",
    "unpack",
]

Label = str | int
Instance = dict[str, Any]
NAME_KINDS = ATTRIBUTE, VOTER, RATER, CLASS = range(4)
NAME_OVERHEAD = 400  # of memory that a name takes, beside its letters: here, in the learner, and in their tables
ABSTAINED = 2**32 - 1  # in the place of the class
LOOSE = -1  # in the place of the number of votes: the instance is JSON


class Packed(NamedTuple):
    """Numbers of votes and scores, then places and numbers as bytes."""

    votes: int
    scores: int
    places: bytes
    numbers: bytes


class SentNames:
    """The names of one model, numbered in order of appearance; new ones can be rolled back.

    Parameters
    ----------
    known : names that have their numbers, by kind, in order.

    Examples
    --------
    >>> names = SentNames()
    >>> packed = pack({"attributes": {"red": 1.0, "round": 0.5}}, names)
    >>> names.fresh
    [(0, 0, 'red'), (0, 1, 'round')]
    >>> unpack(packed, names)
    {'attributes': {'red': 1.0, 'round': 0.5}}
    """

    def __init__(self, known: Iterable[tuple[int, Label]] = ()) -> None:
        self.numbers: tuple[dict[Label, int], ...] = tuple({} for _ in NAME_KINDS)
        self.texts: tuple[list[Label], ...] = tuple([] for _ in NAME_KINDS)
        self.fresh: list[tuple[int, int, Label]] = []  # not yet on stable storage
        self.bytes = 0  # about how much memory they take
        for kind, name in known:
            self.number(kind, name)
        self.keep()

    def __len__(self) -> int:
        return sum(map(len, self.texts))

    def number(self, kind: int, name: Label) -> int:
        """The number of this name, a new one if necessary."""
        found = self.numbers[kind].get(name)
        if found is None:
            found = self.numbers[kind][name] = len(self.texts[kind])
            self.texts[kind].append(name)
            self.bytes += NAME_OVERHEAD + len(str(name))
            self.fresh.append((kind, found, name))
        return found

    def keep(self) -> None:
        """Commit the new names: they are stored."""
        self.fresh.clear()

    def take_back(self) -> None:
        """Roll back the new names: they were not stored."""
        for kind, _, name in reversed(self.fresh):
            del self.numbers[kind][name]
            self.texts[kind].pop()
            self.bytes -= NAME_OVERHEAD + len(str(name))
        self.fresh.clear()


def pack(instance: Instance, names: SentNames) -> Packed:
    """The instance as bytes; new names get numbers."""
    if "candidates" in instance:
        for kind, block in ((VOTER, "votes"), (RATER, "scores")):
            for name in instance.get(block) or ():
                names.number(kind, name)
        return pack_loosely(instance)
    return pack_known(instance, names) or _packed(instance, names.number)


def pack_known(instance: Instance, names: SentNames) -> Packed | None:
    """The instance as bytes, if all its names have numbers."""
    numbers = names.numbers
    try:
        if len(instance) == 1 and "attributes" in instance:  # the usual case
            attributes = instance["attributes"]
            known = _packer("I", len(attributes))(*map(numbers[ATTRIBUTE].__getitem__, attributes))
            return Packed(0, 0, known, _packer("d", len(attributes))(*attributes.values()))
        if "candidates" in instance:
            met = all(found <= numbers[kind].keys() for kind, found in enumerate(named_in(instance)))
            return pack_loosely(instance) if met else None
        return _packed(instance, lambda kind, name: numbers[kind][name])
    except KeyError:
        return None


def _packed(instance: Instance, number: Callable[[int, Label], int]) -> Packed:
    places: list[int] = []
    numbers: list[float] = []
    scores = 0
    votes = instance.get("votes") or {}
    for voter, vote in votes.items():
        places += (number(VOTER, voter), ABSTAINED if vote is None else number(CLASS, vote))
    for rater, ratings in (instance.get("scores") or {}).items():
        for label, rating in ratings.items():
            places += (number(RATER, rater), number(CLASS, label))
            numbers.append(rating)
            scores += 1
    attributes = instance.get("attributes")
    if attributes:
        places += [number(ATTRIBUTE, name) for name in attributes]
        numbers += attributes.values()
    return Packed(len(votes), scores, _packer("I", len(places))(*places), _packer("d", len(numbers))(*numbers))


def pack_loosely(instance: Instance) -> Packed:
    """The instance as JSON, so that its names need no numbers.

    Examples
    --------
    >>> unpack(pack_loosely({"votes": {"ann": 3}}), SentNames())
    {'votes': {'ann': 3}}
    """
    pairs = {kind: _pairs(block) if isinstance(block, dict) else block for kind, block in instance.items()}
    return Packed(LOOSE, 0, msgspec.json.encode(pairs), b"")


def named_in(instance: Instance) -> list[set[Label]]:
    """The names in an instance, by kind; candidates are none."""
    votes, scores = instance.get("votes") or {}, instance.get("scores") or {}
    classes = set() if "candidates" in instance else set(votes.values()).union(*scores.values()) - {None}
    return [set(instance.get("attributes") or ()), set(votes), set(scores), classes]


def unpack(packed: Packed, names: SentNames) -> Instance:
    """The instance again, with its names in the same order."""
    votes, scores = packed.votes, packed.scores
    if votes == LOOSE:
        told = msgspec.json.decode(packed.places)
        return {kind: pairs if kind == "candidates" else _unpaired(pairs) for kind, pairs in told.items()}
    places = struct.unpack(f"<{len(packed.places) // 4}I", packed.places)
    numbers = struct.unpack(f"<{len(packed.numbers) // 8}d", packed.numbers)
    instance: Instance = {}
    texts = names.texts
    if votes:
        voters, classes = texts[VOTER], texts[CLASS]
        pairs = ((voters[places[2 * i]], places[2 * i + 1]) for i in range(votes))
        instance["votes"] = {voter: None if place == ABSTAINED else classes[place] for voter, place in pairs}
    if scores:
        table: dict[Label, dict[Label, float]] = {}
        for i in range(scores):
            rater, label = places[2 * (votes + i)], places[2 * (votes + i) + 1]
            table.setdefault(texts[RATER][rater], {})[texts[CLASS][label]] = numbers[i]
        instance["scores"] = table
    first = 2 * (votes + scores)
    if len(places) > first:
        named = texts[ATTRIBUTE]
        instance["attributes"] = {
            named[place]: value for place, value in zip(places[first:], numbers[scores:], strict=True)
        }
    return instance


def code_of(label: Label, instance: Instance, names: SentNames) -> int | None:
    """The number that stands for a class in the event of this instance; None if it has none.

    Examples
    --------
    >>> code_of("b", {"candidates": ["a", "b"]}, SentNames())
    1
    """
    candidates = instance.get("candidates")
    if candidates is None:
        return names.numbers[CLASS].get(label)
    return candidates.index(label) if label in candidates else None


def new_code_of(label: Label, instance: Instance, names: SentNames) -> int:
    """The same, with a new number for a class that has none; a candidate has its place."""
    return int(instance["candidates"].index(label)) if "candidates" in instance else names.number(CLASS, label)


def class_of(code: int | None, instance: Instance, names: SentNames) -> Label | None:
    """The class that a number in the event of this instance stands for."""
    if code is None:
        return None
    found: Label = (instance.get("candidates") or names.texts[CLASS])[code]
    return found


def _pairs(block: dict[Label, Any]) -> list[list[Any]]:
    """A block as pairs: a label that is a whole number stays one."""
    return [[name, _pairs(value) if isinstance(value, dict) else value] for name, value in block.items()]


def _unpaired(pairs: list[list[Any]]) -> dict[Label, Any]:
    return {name: _unpaired(value) if isinstance(value, list) else value for name, value in pairs}


@lru_cache(maxsize=1024)
def _packer(code: str, count: int) -> Callable[..., bytes]:
    return struct.Struct(f"<{count}{code}").pack
