"""Votes that cannot be meant as they stand: matched with the labels and said so, or refused, but never learned.

Votes and labels often come by different ways: text from one file and numbers from another, whole numbers that a gap in
the column has turned into 1.0, -1 for "no vote", probabilities instead of votes, an id among the voters.
"""

from __future__ import annotations

import re
import string
import warnings
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linmax.data.blocks import missing, silent_votes
from linmax.data.distinct import distinct_of
from linmax.data.labels import labels_with_gaps, refuse_wide
from linmax.data.votes import Ballots

__all__ = [
    "as_meant",
    "check_meant",
    "labels_meant",
    "matched",
    "near_misses",
    "refuse_kinds",
    "tell_strangers",
    "written",
]

WHOLE = re.compile(r"-?(0|[1-9]\d*)(\.0+)?")
WHOLE_NUMBER = re.compile(r"0|[1-9]\d*")
ROWS_OF_IDS = 20  # in which a column of ids shows
AROUND = string.punctuation + string.whitespace  # what may stand around a label
NUMBER_TYPES = (int, float, np.integer, np.floating)


def written(value: Any) -> str | None:
    """How a label looks when only its looks matter: 1, 1.0, "1" and " 1.0" alike; None for what has no such form."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        refuse_wide("labels and votes", value)
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return str(int(value)) if np.isfinite(value) and float(value).is_integer() else repr(float(value))
    if isinstance(value, str):
        text = value.strip()
        return str(int(float(text))) if WHOLE.fullmatch(text) and len(text) < 16 else text
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
    voted = _distinct(ballots, abstain)
    if "" in voted:  # an empty field
        ballots, voted = _replaced(ballots, {"": None}), voted - {""}
    strange = voted - set(known)
    if strange and (learning or known):
        _refuse_probabilities(ballots, strange, known)
        _refuse_no_vote(strange, known or voted)
    if strange and learning:
        _refuse_ids(ballots, *((strange, known) if known else (_named_once(ballots.table), ())))
    if not known:  # votes alone
        return ballots
    found = _alike(strange, known)
    if found:
        _tell(found)
    elif strange:
        refuse_kinds(voted, known)
    whole = {name: name for name in known if type(name) is int}
    found |= {vote: whole[vote] for vote in voted if type(vote) in (float, bool) and vote in whole}  # 1.0 beside a gap
    return _replaced(ballots, found) if found else ballots


def tell_strangers(ballots: Ballots, labels: Collection[Any], abstain: Any = None) -> None:
    """Refuse votes of which none is ever a label, and warn of single columns of this kind; ``labels`` are not few.

    Examples
    --------
    >>> from linmax.data.votes import read_ballots
    >>> tell_strangers(read_ballots({"ann": ["Yes", "No"]}), ["no", "yes"])
    Traceback (most recent call last):
    ValueError: votes: no vote is ever a label; votes are such as 'No', and labels such as 'no'. Write them alike
    """
    met = set(labels)
    said = [{vote for vote in set(column) if _counts(vote, abstain)} for column in ballots.table.T.tolist()]
    strangers = [i for i, votes in enumerate(said) if votes and not votes & met]
    if strangers and len(strangers) == sum(map(bool, said)):
        vote, label = min(set().union(*said), key=str), min(met, key=str)
        raise ValueError(
            f"votes: no vote is ever a label; votes are such as {vote!r}, and labels such as {label!r}. Write them "
            "alike"
        )
    near = near_misses(set().union(*said) - met, met)
    if near:
        _tell_near(near)
    strangers = [i for i in strangers if not near.keys() & said[i]]
    if not strangers:
        return
    names = [_column(ballots, i) for i in strangers]
    told = f"column {names[0]} never names a label, but {min(said[strangers[0]], key=str)!r}, say"
    told += f" (nor {'do' if len(names) > 2 else 'does'} {', '.join(names[1:])})" if len(names) > 1 else ""
    warnings.warn(f"votes: {told}; leave it out if it is no voter, or pass it as by= if it is a subject", stacklevel=4)


def near_misses(strange: Collection[Any], known: Collection[Any]) -> dict[str, str]:
    """Those that are a known class but for case and what stands around it, and that class; none where classes are so.

    Examples
    --------
    >>> near_misses(["b", "(C).", "D and A", 1], ["A", "B", "C", "D"])
    {'b': 'B', '(C).': 'C'}
    """
    texts = [name for name in known if isinstance(name, str)]
    meant = {_bare(name): name for name in texts if _bare(name)}
    if len(meant) < len(texts):
        return {}
    return {vote: meant[_bare(vote)] for vote in strange if isinstance(vote, str) and _bare(vote) in meant}


def _tell_near(near: Mapping[str, str]) -> None:
    vote, others = min(near), len(near) - 1
    more = f", as are {others} others" if others > 1 else ", as is another" if others else ""
    told = f"votes: {vote!r} is never a label, but {near[vote]!r} is, from which it differs in case or punctuation only"
    warnings.warn(f"{told}{more}; write votes and labels alike, or they are classes of their own", stacklevel=5)


def _bare(text: str) -> str:
    return text.strip(AROUND).casefold()


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


def _counts(vote: Any, abstain: Any) -> bool:
    """Whether a vote is none that abstains."""
    return not missing(vote) and vote not in silent_votes(abstain)


def _column(ballots: Ballots, i: int) -> str:
    """How a column is called."""
    return f"{ballots.names[i]!r}" if ballots.names is not None else f"{i}"


def _distinct(ballots: Ballots, abstain: Any) -> set[Any]:
    """What is voted for."""
    table = ballots.table
    if table.dtype.kind in "iufb":
        table = distinct_of(table)[0]
    try:
        found = set(table.ravel().tolist())
    except TypeError:
        rows = ballots.table.tolist()
        t, i = next((t, i) for t, row in enumerate(rows) for i, vote in enumerate(row) if vote.__hash__ is None)
        raise TypeError(
            f"votes: {rows[t][i]!r} at trial {t}, voter {_column(ballots, i)}, is not hashable; a vote is one class: "
            "text, a number or a tuple"
        ) from None
    return {vote for vote in found if _counts(vote, abstain)}


def _replaced(ballots: Ballots, found: Mapping[Any, Any]) -> Ballots:
    table = np.empty(ballots.table.shape, dtype=object)
    for t, row in enumerate(ballots.table.tolist()):
        table[t] = [found.get(vote, vote) for vote in row]
    return replace(ballots, table=table)


def _tell(found: Mapping[Any, Any]) -> None:
    """Say what was matched."""
    vote, label = next(iter(sorted(found.items(), key=lambda pair: str(pair[0]))))
    more = f", and so for {len(found) - 1} more" if len(found) > 1 else ""
    warnings.warn(f"votes: {vote!r} is taken for the label {label!r}{more}; give votes and labels alike", stacklevel=5)


def _is_broken(vote: Any) -> bool:
    return isinstance(vote, float) and not vote.is_integer()


def _refuse_probabilities(ballots: Ballots, strange: Collection[Any], known: Collection[Any]) -> None:
    """Numbers with fractions, which are no labels unless others are."""
    broken = {vote for vote in strange if _is_broken(vote)}
    if not broken or any(map(_is_broken, known)):
        return
    rows = ballots.table.tolist()
    t, i = next((t, i) for t, row in enumerate(rows) for i, vote in enumerate(row) if vote in broken)
    raise ValueError(
        f"votes: {rows[t][i]!r} at trial {t}, voter {_column(ballots, i)}, is never a label. Probabilities and scores "
        "are (trials, raters, classes) numbers: for two classes np.stack([1 - p, p], axis=2), where p is what you gave"
    )


def _refuse_no_vote(strange: Collection[Any], known: Collection[Any]) -> None:
    """-1, as a number or as text, where all labels are 0, 1, 2, ..."""
    silent = [vote for vote in strange if written(vote) == "-1"]
    if silent and all(WHOLE_NUMBER.fullmatch(written(name) or "") for name in known if name not in silent):
        raise ValueError(
            f"votes: {silent[0]!r} is never a label; pass abstain={silent[0]!r} if it means no vote, or classes= if it "
            "is one"
        )


def _named_once(table: np.ndarray) -> set[Any]:
    """What only one voter ever names."""
    named = Counter(vote for column in table.T for vote in set(column.tolist()) if isinstance(vote, Hashable))
    return {vote for vote, voters in named.items() if voters == 1}


def _refuse_ids(ballots: Ballots, strange: Collection[Any], labels: Collection[Any]) -> None:
    """A column with another value in every row, few of them a label; none, where labels are as many as rows."""
    if len(ballots) < ROWS_OF_IDS:
        return
    for i in range(ballots.table.shape[1]):
        column: Sequence[Any] = ballots.table[:, i].tolist()
        if len(set(column)) < len(column):
            continue
        others = labels or {vote for one in np.delete(ballots.table, i, axis=1).T.tolist() for vote in set(one)}
        outside = len(set(strange).intersection(column)) / len(column)
        if outside == 1.0 or (outside > 0.5 and len(others) <= len(column) / 2):
            one = next(vote for vote in column if vote in strange)
            raise ValueError(
                f"votes: column {_column(ballots, i)} has another value in every row, such as {one!r}, which is "
                "never a label; it is no voter: leave it out"
            )


def refuse_kinds(votes: Collection[Any], known: Collection[Any]) -> None:
    """Refuse text where labels are numbers, or numbers where they are text.

    Examples
    --------
    >>> refuse_kinds(["1", "2"], [1, 2])
    Traceback (most recent call last):
    ValueError: votes are text, such as '1', and labels are not, such as 1; give votes and labels alike
    """
    if not votes or not known:
        return
    for one, other, told in ((str, NUMBER_TYPES, "text"), (NUMBER_TYPES, str, "numbers")):
        if all(isinstance(vote, one) for vote in votes) and all(isinstance(name, other) for name in known):
            vote, name = min(votes, key=str), next(iter(known))
            told = "truth values" if isinstance(vote, bool) else told
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
    if not any(map(_is_broken, known)):
        for voter, vote in strange.items():
            if _is_broken(vote):
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
    refuse_kinds(votes.values(), known)


def _is_minus_one(vote: Any) -> bool:
    return isinstance(vote, NUMBER_TYPES) and not isinstance(vote, bool) and vote == -1
