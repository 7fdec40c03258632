"""Spelling of votes and labels: matched with a warning where they differ, and obvious mistakes refused.

Mistakes are text in the votes and numbers in the labels, whole numbers that a gap in the column has turned into 1.0, -1
for "no vote", probabilities instead of votes, an id among the voters.
"""

from __future__ import annotations

import re
import string
import warnings
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from linmax.data.blocks import silent_votes
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
    """Return a label in its plainest spelling: 1, 1.0, "1" and " 1.0" alike; None for what has no such form."""
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
    """Return the votes as they are meant, given the labels and classes that are known; warn of what was matched.

    Examples
    --------
    >>> import warnings
    >>> from linmax.data.votes import read_ballots
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     matched(read_ballots([["1.0", "2"], [None, "1"]]), [1, 2]).named
    [1, 2]
    """
    if ballots.scored:
        return ballots
    ballots = ballots.without(silent_votes(abstain))
    voted = set(ballots.named)
    strange = voted - set(known)
    if strange and (learning or known):
        _refuse_probabilities(ballots, strange, known)
        _refuse_no_vote(strange, known or voted)
    if strange and learning:
        _refuse_ids(ballots, *((strange, known) if known else (_named_once(ballots), ())))
    if not known:  # votes alone
        return ballots
    found = _alike(strange, known)
    if found:
        _tell(found)
    elif strange:
        refuse_kinds(voted, known)
    whole = {name: name for name in known if type(name) is int}  # 1.0 in a column with gaps
    found |= {vote: whole[vote] for vote in voted if type(vote) in (float, bool) and vote in whole}
    return ballots.renamed(found) if found else ballots


def _of_columns(ballots: Ballots) -> list[set[Any]]:
    """Return what each voter votes for."""
    return [{ballots.named[c] for c in np.unique(column).tolist() if c >= 0} for column in ballots.codes.T]


def tell_strangers(ballots: Ballots, labels: Collection[Any]) -> None:
    """Refuse votes of which none is ever a label, and warn of single columns of this kind; ``labels`` are not few.

    Examples
    --------
    >>> from linmax.data.votes import read_ballots
    >>> tell_strangers(read_ballots({"ann": ["Yes", "No"]}), ["no", "yes"])
    Traceback (most recent call last):
    ValueError: votes: no vote is ever a label; votes are such as 'No', and labels such as 'no'. Write them alike
    """
    met = set(labels)
    said = _of_columns(ballots)
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
    names = [ballots.column(i) for i in strangers]
    message = f"column {names[0]} never names a label, but {min(said[strangers[0]], key=str)!r}, say"
    message += f" (nor {'do' if len(names) > 2 else 'does'} {', '.join(names[1:])})" if len(names) > 1 else ""
    warnings.warn(
        f"votes: {message}; leave it out if it is no voter, or pass it as by= if it is a subject", stacklevel=4
    )


def near_misses(strange: Collection[Any], known: Collection[Any]) -> dict[str, str]:
    """Return names that differ from a known class in case or surrounding punctuation only, and that class.

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
    message = (
        f"votes: {vote!r} is never a label, but {near[vote]!r} is, from which it differs in case or punctuation only"
    )
    warnings.warn(f"{message}{more}; write votes and labels alike, or they are classes of their own", stacklevel=5)


def _bare(text: str) -> str:
    return text.strip(AROUND).casefold()


def labels_meant(labels: np.ndarray, known: Collection[Any]) -> np.ndarray:
    """Labels as they are meant, given the classes that votes have named; warn of what was matched."""
    found = as_meant(labels_with_gaps(labels)[0], known) if known else {}
    return np.array([found.get(label, label) for label in labels.tolist()], dtype=object) if found else labels


def _alike(strange: Collection[Any], known: Collection[Any]) -> dict[Any, Any]:
    """Return names that are a known class in another spelling, and its known spelling.

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
    codes = [c for c, vote in enumerate(ballots.named) if vote in broken]
    t, i = np.argwhere(np.isin(ballots.codes, codes))[0].tolist()
    vote = ballots.named[ballots.codes[t, i]]
    raise ValueError(
        f"votes: {vote!r} at trial {t}, voter {ballots.column(i)}, is never a label. Probabilities and scores "
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


def _named_once(ballots: Ballots) -> set[Any]:
    """Return what only one voter ever names."""
    voters = Counter(vote for votes in _of_columns(ballots) for vote in votes)
    return {vote for vote, count in voters.items() if count == 1}


def _refuse_ids(ballots: Ballots, strange: Collection[Any], labels: Collection[Any]) -> None:
    """Refuse a column with another value in every row, few of them a label; none, where labels are as many as rows."""
    size = len(ballots)
    if size < ROWS_OF_IDS:
        return
    columns = _of_columns(ballots)
    for i, votes in enumerate(columns):
        if len(votes) < size:
            continue
        others = labels or set().union(*columns[:i], *columns[i + 1 :])
        outside = len(votes.intersection(strange)) / size
        if outside == 1.0 or (outside > 0.5 and len(others) <= size / 2):
            one = next(ballots.named[c] for c in ballots.codes[:, i].tolist() if ballots.named[c] in strange)
            raise ValueError(
                f"votes: column {ballots.column(i)} has another value in every row, such as {one!r}, which is "
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
    for one, other, kind in ((str, NUMBER_TYPES, "text"), (NUMBER_TYPES, str, "numbers")):
        if all(isinstance(vote, one) for vote in votes) and all(isinstance(name, other) for name in known):
            vote, name = min(votes, key=str), next(iter(known))
            kind = "truth values" if isinstance(vote, bool) else kind
            raise ValueError(
                f"votes are {kind}, such as {vote!r}, and labels are not, such as {name!r}; give votes and labels alike"
            )


# -- one instance by name -----------------------------------------------------------------------------------------


def as_meant(named: Collection[Any], known: Collection[Any]) -> dict[Any, Any]:
    """Return names at one trial that are a known class in another spelling, and that class; warn of them.

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
        message = f"{name!r} is taken for the class {label!r}; write classes alike in votes, scores and labels"
        warnings.warn(message, stacklevel=4)
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
        message = f"votes: -1 of {silent!r} is no label so far; leave the voter out, or give None, if it means no vote"
        if set(known) != {1}:  # then -1 is probably a class
            raise ValueError(f"{message}, and pass classes= if it is one")
        warnings.warn(message, stacklevel=4)
    refuse_kinds(votes.values(), known)


def _is_minus_one(vote: Any) -> bool:
    return isinstance(vote, NUMBER_TYPES) and not isinstance(vote, bool) and vote == -1
