"""One instance as users give it: attributes, votes and scores, by name or as arrays; checked, and as dicts."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from linmax.core.contract import HUGE
from linmax.data.blocks import missing
from linmax.data.labels import no_label, refuse_wide
from linmax.data.matching import as_meant, check_meant
from linmax.data.normalisation import Normaliser

__all__ = [
    "UNSET",
    "Given",
    "Reading",
    "check_given",
    "check_places",
    "check_rows",
    "distinct",
    "normaliser_of",
    "numbered",
    "said",
]

Attributes = Mapping[Any, float] | Sequence[float] | np.ndarray | None
Votes = Mapping[Any, Any] | Sequence[Any] | np.ndarray | None
Scores = Mapping[Any, Any] | Sequence[Sequence[float]] | np.ndarray | None
Blocks = tuple[Attributes, Votes, Scores]
Candidates = Sequence[Hashable] | None

UNSET: Any = object()  # a label that was not given; None is one that has not come


class Given(NamedTuple):
    """An instance by name. A voter who was asked and abstained is there with None."""

    attributes: dict[Any, float]
    votes: dict[Any, Any]
    scores: dict[Any, dict[Any, float]]

    @property
    def largest(self) -> float:
        """The largest magnitude in it."""
        rated = [max(map(abs, row.values()), default=0.0) for row in self.scores.values()]
        return max(max(map(abs, self.attributes.values()), default=0.0), *rated, 0.0)


class Reading:
    """How instances are checked: against classes that are fixed, and a rule that needs numbers in a range.

    With a ``normaliser`` each rater becomes several, named (rater, normalisation).
    """

    def __init__(self, classes: Sequence[Any], fixed: bool, bounded: Any, normaliser: Normaliser | None = None) -> None:
        self.classes, self.fixed, self.bounded, self.normaliser = classes, fixed, bounded, normaliser

    @cached_property
    def _met(self) -> dict[Any, None]:
        """The classes, to look them up."""
        return dict.fromkeys(self.classes)

    def check_label(self, label: Hashable, what: str = "label") -> None:
        """Refuse what is no label, or not among the classes that were fixed."""
        if missing(label):
            raise ValueError(f"{what} must be a class, got {label!r}; leave the trial out")
        self._check_class(what, label)

    def label_meant(self, label: Hashable) -> Any:
        """The label as a class that votes have named, if it is that one written otherwise."""
        if label in self._met:
            return label
        refuse_wide("label", label)
        return as_meant([label], self._met).get(label, label)

    def _check_class(self, what: str, name: Any) -> None:
        if self.fixed and name not in self.classes:
            raise ValueError(f"{what}: {name!r} is not among the classes {self.classes!r}, which were fixed")

    def read(self, attributes: Attributes, votes: Votes, scores: Scores, label: Hashable = UNSET) -> Given:
        """An instance as dicts by name, checked; with its label, which may be None, if it is to be learned."""
        if attributes is None and votes is None and scores is None:
            raise TypeError("an instance needs attributes, votes= or scores=; got none of them")
        numbers = {name: _number("attributes", name, value) for name, value in _items("attributes", attributes)}
        voted = {name: None if no_label(value) else value for name, value in _items("votes", votes)}
        for name, choice in voted.items():
            if choice.__hash__ is None:
                raise TypeError(
                    f"votes: {choice!r} of {name!r} is not hashable; a vote is one class, and numbers for all classes "
                    "go into scores="
                )
        voted = self.meant(voted, label)
        for name, choice in said(voted).items() if self.fixed else ():
            self._check_class(f"votes: {name!r} voted for a class that", choice)
        rated = {name: self._ratings(name, row, label) for name, row in _items("scores", scores)}
        if self.normaliser is not None:
            rated = normalised(self.normaliser, rated)
        if self.bounded is not None:
            self._check_range(self.bounded, numbers, rated)
        return Given(numbers, voted, rated)

    def meant(self, voted: dict[Any, Any], label: Hashable) -> dict[Any, Any]:
        """Votes as they are meant, given the classes and the label, if the instance is to be learned."""
        votes = said(voted)
        if all(choice in self._met for choice in votes.values()):
            return voted
        known = self._with(label)
        found = as_meant(votes.values(), known)
        voted = {name: found.get(choice, choice) for name, choice in voted.items()} if found else voted
        if not self.fixed and (label is not UNSET or known):
            check_meant(said(voted), known)
        return voted

    def _with(self, label: Hashable) -> dict[Any, None]:
        """The classes, and the label if there is one."""
        if label is UNSET or no_label(label):
            return self._met
        return {**self._met, label.item() if isinstance(label, np.generic) else label: None}

    def _ratings(self, rater: Any, row: Any, label: Hashable) -> dict[Any, float]:
        """One rater's {class: number}."""
        if isinstance(row, Mapping):
            if not all(name in self._met for name in row):
                found = as_meant(row, self._with(label))
                row = {found.get(name, name): value for name, value in row.items()}
            for name in row:
                self._check_class(f"scores: {rater!r} rates a class that", name)
            return {name: _number(f"scores of {rater!r}", name, value) for name, value in row.items()}
        values = list(row) if isinstance(row, Iterable) and not isinstance(row, str) else None
        if values is None or len(values) != len(self.classes):
            raise ValueError(
                f"scores of {rater!r} must be a dict by class, or {len(self.classes)} numbers in the order of the "
                f"classes {self.classes!r}; got {row!r}"
            )
        return {c: _number(f"scores of {rater!r}", c, v) for c, v in zip(self.classes, values, strict=True)}

    def _check_range(self, rule: Any, numbers: dict[Any, float], rated: dict[Any, dict[Any, float]]) -> None:
        for name, value in numbers.items():
            if abs(value) > 1.0 + 1e-12:
                raise ValueError(f"{rule} needs attributes in [-1, 1], got {value!r} for {name!r}; scale them")
        for name, row in rated.items():
            values = [*row.values(), 0.0] if len(row) < len(self.classes) else list(row.values())
            if values and max(values) - min(values) > 1.0 + 1e-12:
                raise ValueError(
                    f"{rule} needs ratings that differ by at most 1, got {row!r} of {name!r}; make the Learner with "
                    "normalise='auto', or scale them"
                )


def said(voted: Mapping[Any, Any]) -> dict[Any, Any]:
    """The votes of those who did not abstain."""
    return {name: choice for name, choice in voted.items() if choice is not None}


def normaliser_of(kinds: str | Sequence[str] | None) -> Normaliser | None:
    """The normalisations of a learner, each of one instance by itself."""
    found = None if kinds is None else Normaliser(kinds)
    if found is not None and "running" in found.kinds:
        raise ValueError("normalise: 'running' needs all trials of a rater; leave it out, or use linmax.VoteFusion")
    return found


def normalised(normaliser: Normaliser, rated: Mapping[Any, Mapping[Any, float]]) -> dict[Any, dict[Any, float]]:
    """Each rater under every normalisation, over the classes that it rates; the others have 0, which is lowest."""
    found = {}
    for name, row in rated.items():
        if not row:
            continue
        copies = normaliser.apply(np.array([[list(row.values())]]))[0]
        for kind, values in zip(normaliser.kinds, copies.tolist(), strict=True):
            found[name, kind] = dict(zip(row, values, strict=True))
    return found


def distinct(classes: Sequence[Any]) -> list[Any]:
    if isinstance(classes, str):
        raise TypeError(f"classes must be a list of labels, got the text {classes!r}; try list({classes!r})")
    names = [c.item() if isinstance(c, np.generic) else c for c in classes]
    if len(names) < 1 or len(set(names)) < len(names):
        raise ValueError(f"classes must be distinct, and at least one, got {names!r}")
    return names


def check_given(label: Hashable) -> None:
    """Refuse to learn from nothing."""
    if label is UNSET:
        raise TypeError("learn() needs label=; to ask for a prediction call predict()")


def check_rows(indptr: np.ndarray, columns: int, values: int, size: int) -> None:
    """Refuse rows that do not lie one after the other."""
    rises = len(indptr) == size + 1 and indptr[0] == 0 and bool((np.diff(indptr) >= 0).all())
    if not rises or indptr[-1] != columns or values != columns:
        raise ValueError(
            f"indptr must rise from 0 to {columns}, the number of columns and values, in {size} steps, one per label; "
            f"got {indptr!r} and {values} values"
        )


def check_places(what: str, places: np.ndarray, count: int, among: str) -> None:
    if len(places) and not 0 <= places.min() <= places.max() < count:
        raise ValueError(
            f"{what} must be places among the {count} {among}, got {places.min()} to {places.max()}; learn() takes in "
            "what is new"
        )


def _items(what: str, given: Any) -> Iterable[tuple[Any, Any]]:
    """Names and values of one block of an instance; an array names its columns 0, 1, ..."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        return given.items()
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{what} must be a dict by name or an array, got {given!r}")
    values = given.tolist() if isinstance(given, np.ndarray) else list(given)
    return enumerate(values)


def numbered(names: Mapping[Any, int]) -> int:
    """How many names, from the first on, are 0, 1, ..."""
    return next((place for place, name in enumerate(names) if type(name) is not int or name != place), len(names))


def _number(what: str, name: Any, value: Any) -> float:
    try:
        number = float(value) if not isinstance(value, str) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{what}: {name!r} must be a finite number, got {value!r}")
    if abs(number) > HUGE:
        raise ValueError(
            f"{what}: {name!r} must be at most {HUGE:g} in magnitude, got {value!r}; scale the instances down"
        )
    return number
