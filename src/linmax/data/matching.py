"""Votes that cannot be meant as they stand: matched with the labels and said so, or refused, but never learned.

Votes and labels often come by different ways: text from one file and numbers from another, whole numbers that a gap in
the column has turned into 1.0, -1 for "no vote", probabilities instead of votes, an id among the voters.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linmax.data.blocks import missing
from linmax.data.distinct import distinct_of
from linmax.data.labels import labels_with_gaps
from linmax.data.votes import Ballots

__all__ = ["as_meant", "check_meant", "labels_meant", "matched", "written"]

WHOLE = re.compile(r"-?(0|[1-9]\d*)(\.0+)?")
ROWS_OF_IDS = 20  # in which a column of ids shows
NUMBER_TYPES = (int, float, np.integer, np.floating)


def written(value: Any) -> str | None:
    """How a label looks when only its looks matter: 1, 1.0, "1" and "1.0" alike; None for what has no such form."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, NUMBER_TYPES):
        return str(int(value)) if np.isfinite(value) and float(value).is_integer() else repr(float(value))
    if isinstance(value, str):
        return str(int(float(value))) if WHOLE.fullmatch(value) and len(value) < 16 else value
    return None


def matched(ballots: Ballots, known: Collection[Any], abstain: Any = None, *, learning: bool = True) -> Ballots:
    """The votes as they are meant, given the labels and classes that are known; a warning tells what was matched.

    Examples
    --------
    >>> import warnings
    >>> from linmax.data.votes import read_ballots
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     matched(read_ballots([["1.0", "2"], [None, "1"]]), [1, 2]).table.tolist()
    [[1, 2], [None, 1]]
    """
    if ballots.scored:
        return ballots
    voted = _distinct(ballots.table, abstain)
    strange = voted - set(known)
    if not strange:
        return ballots
    if not known:  # votes alone
        if learning:
            _refuse_probabilities(ballots.table, strange)
            _refuse_no_vote(strange, voted - {-1})
            _refuse_ids(ballots, _named_once(ballots.table))
        return ballots
    if learning:
        _refuse_probabilities(ballots.table, strange)
        _refuse_no_vote(strange, known)
        _refuse_ids(ballots, strange)
    found = _alike(strange, known)
    if found:
        return _replaced(ballots, found)
    if learning:
        _refuse_kinds(voted, known)
    return ballots


def labels_meant(labels: np.ndarray, known: Collection[Any]) -> np.ndarray:
    """Labels as they are meant, given the classes that votes have named; a warning tells what was matched."""
    found = as_meant(labels_with_gaps(labels)[0], known) if known else {}
    return np.array([found.get(label, label) for label in labels.tolist()], dtype=object) if found else labels


def _alike(strange: Collection[Any], known: Collection[Any]) -> dict[Any, Any]:
    """Those that are a known class written otherwise, and how it is written.

    Where all classes are whole numbers, so is a class that is not yet known.
    """
    meant = {written(name): name for name in reversed(list(known)) if written(name) is not None}
    found = {name: meant[written(name)] for name in strange if written(name) in meant}
    for kind, other in ((int, (str,)), (str, NUMBER_TYPES)):
        if all(type(name) is kind and WHOLE.fullmatch(str(name)) and written(name) == str(name) for name in known):
            rest = (name for name in strange if name not in found and isinstance(name, other))
            looks = {name: str(written(name)) for name in rest if not isinstance(name, bool)}
            found |= {name: kind(text) for name, text in looks.items() if WHOLE.fullmatch(text)}
    return found


def _distinct(table: np.ndarray, abstain: Any) -> set[Any]:
    """What is voted for."""
    if table.dtype.kind in "iufb":
        table = distinct_of(table)[0]
    found = set()
    for vote in table.ravel().tolist():
        try:
            found.add(vote)
        except TypeError:  # no label at all, which is refused where votes are read
            return set()
    return {vote for vote in found if not missing(vote) and not (abstain is not None and vote == abstain)}


def _replaced(ballots: Ballots, found: dict[Any, Any]) -> Ballots:
    table = np.empty(ballots.table.shape, dtype=object)
    for t, row in enumerate(ballots.table.tolist()):
        table[t] = [found.get(vote, vote) for vote in row]
    vote, label = next(iter(sorted(found.items(), key=lambda pair: str(pair[0]))))
    more = f", and so for {len(found) - 1} more" if len(found) > 1 else ""
    warnings.warn(f"votes: {vote!r} is taken for the label {label!r}{more}; give votes and labels alike", stacklevel=5)
    return replace(ballots, table=table)


def _refuse_probabilities(table: np.ndarray, strange: Collection[Any]) -> None:
    """Numbers with fractions, which are no labels."""
    broken = [vote for vote in strange if isinstance(vote, float) and not vote.is_integer()]
    if not broken:
        return
    t, i = next((t, i) for t, row in enumerate(table.tolist()) for i, vote in enumerate(row) if vote in broken)
    raise ValueError(
        f"votes: {table[t].tolist()[i]!r} at trial {t}, voter {i}, is never a label. Probabilities and scores are "
        "(trials, raters, classes) numbers: for two classes np.stack([1 - p, p], axis=2), where p is what you gave"
    )


def _refuse_no_vote(strange: Collection[Any], known: Collection[Any]) -> None:
    """-1 where all labels are 0, 1, 2, ..."""
    counted = all(isinstance(name, (int, np.integer)) and not isinstance(name, bool) and name >= 0 for name in known)
    if -1 in strange and counted:
        raise ValueError("votes: -1 is never a label; pass abstain=-1 if it means no vote, or classes= if it is one")


def _named_once(table: np.ndarray) -> set[Any]:
    """What only one voter ever names."""
    named = Counter(vote for column in table.T for vote in set(column.tolist()) if isinstance(vote, Hashable))
    return {vote for vote, voters in named.items() if voters == 1}


def _refuse_ids(ballots: Ballots, strange: Collection[Any]) -> None:
    """A column with another value in every row, none of them a label."""
    if len(ballots) < ROWS_OF_IDS:
        return
    for i in range(ballots.table.shape[1]):
        column: Sequence[Any] = ballots.table[:, i].tolist()
        if len(set(column)) == len(column) and set(column) <= set(strange):
            name = f"{ballots.names[i]!r}" if ballots.names is not None else f"{i}"
            raise ValueError(
                f"votes: column {name} has another value in every row, such as {column[0]!r}, and never a label; it is "
                "no voter: leave it out"
            )


def _refuse_kinds(votes: Collection[Any], known: Collection[Any]) -> None:
    """Text where labels are numbers, or numbers where they are text."""
    for one, other, told in ((str, NUMBER_TYPES, "text"), (NUMBER_TYPES, str, "numbers")):
        if all(isinstance(vote, one) for vote in votes) and all(isinstance(name, other) for name in known):
            vote, name = min(votes, key=str), next(iter(known))
            raise ValueError(
                f"votes are {told}, such as {vote!r}, and labels are not, such as {name!r}; give votes and labels alike"
            )


# -- one instance by name -----------------------------------------------------------------------------------------


def as_meant(named: Collection[Any], known: Collection[Any]) -> dict[Any, Any]:
    """Of the classes ``named`` at one trial those that are a known one written otherwise, and that one; with a warning.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     as_meant(["1.0", "2", "x"], {1: 0, 2: 1})
    {'1.0': 1, '2': 2}
    """
    strange = [name for name in named if name not in known]
    if not strange or not known:
        return {}
    found = _alike(strange, known)
    for name, label in found.items():
        told = f"{name!r} is taken for the class {label!r}; write classes alike in votes, scores and labels"
        warnings.warn(told, stacklevel=4)
    return found


def check_meant(votes: Mapping[Any, Any], known: Collection[Any]) -> None:
    """Refuse votes of one trial that is to be learned if they cannot be meant as they stand; ``known`` has its label.

    Examples
    --------
    >>> check_meant({"anna": 0.25}, [0, 1])
    Traceback (most recent call last):
    ValueError: votes: 0.25 of 'anna' is no class so far; numbers for classes go into scores={rater: {class: number}}
    """
    strange = {voter: vote for voter, vote in votes.items() if vote not in known}
    if not strange:
        return
    if not any(isinstance(name, float) and not name.is_integer() for name in known):
        for voter, vote in strange.items():
            if isinstance(vote, float) and not vote.is_integer():
                raise ValueError(
                    f"votes: {vote!r} of {voter!r} is no class so far; numbers for classes go into "
                    "scores={rater: {class: number}}"
                )
    if not known:
        return
    silent = next((voter for voter, vote in strange.items() if _is_minus_one(vote)), None)
    if silent is not None and all(isinstance(name, int) and not isinstance(name, bool) and name >= 0 for name in known):
        told = f"votes: -1 of {silent!r} is no label so far; leave the voter out, or give None, if it means no vote"
        if set(known) != {1}:  # beside which -1 is a likely class
            raise ValueError(f"{told}, and pass classes= if it is one")
        warnings.warn(told, stacklevel=4)
    _refuse_kinds(votes.values(), known)


def _is_minus_one(vote: Any) -> bool:
    return isinstance(vote, NUMBER_TYPES) and not isinstance(vote, bool) and vote == -1
