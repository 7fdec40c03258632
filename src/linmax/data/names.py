"""Names and their numbers: the codec of voters, raters, attributes, classes and side values.

`Names` gives each name the next number. It is the one place where the spelling of votes and labels is matched, with a
warning, and where obvious mistakes are refused: text in the votes and numbers in the labels, -1 for "no vote",
probabilities instead of votes, an id among the voters. `distinct_names` numbers a whole array at once.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from linmax.util.aliases import Label, Name
from linmax.util.checks import refuse_masked, warn

__all__ = [
    "NONE",
    "NOT_ASKED",
    "ROWS_OF_IDS",
    "IdWatch",
    "Names",
    "as_array",
    "distinct_classes",
    "distinct_labels",
    "distinct_names",
    "label_array",
    "missing",
    "named",
    "near_misses",
    "no_label",
    "refuse_ids",
    "refuse_kinds",
    "refuse_wide",
    "silent_votes",
    "used_names",
    "warn_of_strangers",
    "written",
]

NONE, NOT_ASKED = -1, -2  # codes of a missing name, and of a vote of a voter that was not asked
ROWS_OF_IDS = 20  # in which a column of ids shows
COUNTED_RANGE = 65_536  # whole numbers in a range up to this are counted rather than sorted
WHOLE = re.compile(r"-?(0|[1-9]\d*)(\.0+)?")
WHOLE_NUMBER = re.compile(r"0|[1-9]\d*")
AROUND = string.punctuation + string.whitespace  # what may stand around a label
NUMBER_TYPES = (int, float, np.integer, np.floating)


# -- the codec ----------------------------------------------------------------------------------------------------


class Names:
    """A codec between names and their numbers 0, 1, ... in the order in which they were added.

    Examples
    --------
    >>> names = Names(["no", "yes"])
    >>> names.encode(["yes", None, "no"]).tolist()
    [1, -1, 0]
    >>> names.add(["maybe", "yes"])
    >>> names.decode([2, -1]), len(names)
    (['maybe', None], 3)
    """

    __slots__ = ("codes", "names")

    def __init__(self, names: Iterable[Label] = ()) -> None:
        self.names: list[Label] = []
        self.codes: dict[Name, int] = {None: NONE}  # numbers by name
        self.add(names)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Label]:
        return iter(self.names)

    def __contains__(self, name: Label) -> bool:
        return self.codes.get(name, NONE) >= 0

    def code(self, name: Label) -> int:
        """Return the number of a name, -1 for None; raise KeyError for an unknown name."""
        return self.codes[name]

    def encode(self, values: Iterable[Label]) -> np.ndarray:
        """Return the numbers of these names as an int32 array, -1 for None; raise KeyError at an unknown name."""
        return np.array([*map(self.codes.__getitem__, values)], np.int32)

    def encode_known(self, values: Iterable[Label]) -> np.ndarray:
        """Return the numbers of these names, -1 for None and for unknown names."""
        get = self.codes.get
        return np.array([get(name, NONE) for name in values], np.int32)

    def decode(self, codes: Iterable[int]) -> list[Label]:
        """Return the names with these numbers, None for -1."""
        names = self.names
        return [names[code] if code >= 0 else None for code in codes]

    def add(self, values: Iterable[Label]) -> None:
        """Give each new name the next number."""
        for value in values:
            if value not in self.codes:
                name = value.item() if isinstance(value, np.generic) else value
                self.codes[name] = len(self.names)
                self.names.append(name)

    def truncate(self, count: int) -> None:
        """Drop the names from number ``count`` on."""
        for name in self.names[count:]:
            del self.codes[name]
        del self.names[count:]

    def match(
        self, votes: Collection[Label], where: Callable[[Label], str] = lambda _: "", *, learning: bool = True
    ) -> dict[Name, Label]:
        """Return the votes that are a known class in another spelling, and that class; warn of them.

        Parameters
        ----------
        votes
            Distinct values that were voted for, or that stand for classes otherwise.
        where
            Returns the place of a vote, for messages.
        learning
            Whether they are to be learned: then mistakes are refused before any class is known, too.

        Examples
        --------
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     Names([1, 2]).match(["1.0", "2", 2])
        {'1.0': 1, '2': 2}
        >>> Names([0, 1]).match([0.25], lambda _: " of 'anna'")
        Traceback (most recent call last):
        ValueError: votes: 0.25 of 'anna' is not a label; probabilities are scores, (trials, raters, classes) ...
        """
        strange = [vote for vote in votes if vote not in self]
        if not strange or not (learning or self.names):
            return {}
        self._refuse_no_vote(votes, strange, where)
        found = self.respell(strange)
        broken = next((vote for vote in strange if _is_broken(vote) and vote not in found), None)
        if broken is not None and not any(map(_is_broken, self.names)):
            raise ValueError(
                f"votes: {broken!r}{where(broken)} is not a label; probabilities are scores, (trials, raters, "
                "classes) numbers such as np.stack([1 - p, p], axis=2), or scores={rater: {class: number}} for one"
            )
        if not found:
            refuse_kinds(votes, self.names)
        return found

    def respell(self, values: Iterable[Label]) -> dict[Name, Label]:
        """Return the values that are a known class in another spelling, and its known spelling; warn of them.

        Where all classes are whole numbers, so is a class that is not yet known.
        """
        strange = [value for value in values if value not in self] if self.names else []
        if not strange:
            return {}
        spellings = {written(name): name for name in reversed(self.names) if written(name) is not None}
        found = {name: spellings[written(name)] for name in strange if written(name) in spellings}
        for kind, other in ((int, (str,)), (str, NUMBER_TYPES)):
            known = self.names
            if all(type(name) is kind and WHOLE.fullmatch(str(name)) and written(name) == str(name) for name in known):
                rest = (name for name in strange if name not in found and isinstance(name, other))
                looks = {name: str(written(name)) for name in rest if not isinstance(name, bool)}
                found |= {name: kind(text) for name, text in looks.items() if WHOLE.fullmatch(text)}
        if found:
            value, name = min(found.items(), key=lambda pair: str(pair[0]))
            more = f", and so for {len(found) - 1} more" if len(found) > 1 else ""
            warn(f"{value!r} is taken for the class {name!r}{more}; write classes alike in votes, scores and labels")
        return found

    def _refuse_no_vote(
        self, votes: Collection[Label], strange: Sequence[Label], where: Callable[[Label], str]
    ) -> None:
        """Refuse -1, as a number or as text, where all labels are 0, 1, 2, ..."""
        silent = next((vote for vote in strange if written(vote) == "-1"), None)
        known = self.names or [vote for vote in votes if written(vote) != "-1"]
        if silent is None or not all(WHOLE_NUMBER.fullmatch(written(name) or "") for name in known):
            return
        message = (
            f"votes: {silent!r}{where(silent)} is not a label; if it means no vote, pass None or abstain={silent!r}; "
            "if it is a class, pass classes="
        )
        if self.names != [1]:  # then -1 is probably a class
            raise ValueError(message)
        warn(message)


# -- single names -------------------------------------------------------------------------------------------------


def missing(value: object) -> bool:
    """Return whether a value is missing: None, nan, masked, or pandas' NA."""
    return value is None or value is np.ma.masked or type(value).__name__ == "NAType" or value != value


def no_label(label: Label) -> bool:
    """Return whether there is no label yet: None, nan, pandas' NA or text that is empty but for spaces."""
    return missing(label) or (isinstance(label, str) and not label.strip())


def silent_votes(abstain: Any) -> Collection[Label]:
    """Return the votes that mean abstention: what ``abstain`` names and empty text; none for an empty set."""
    if isinstance(abstain, (set, frozenset)):
        return {*abstain, ""} if abstain else ()
    return ("",) if abstain is None else (abstain, "")


def distinct_classes(classes: Sequence[Label]) -> tuple[Label, ...]:
    """Return the classes as given by a user, checked."""
    if isinstance(classes, str):
        raise TypeError(f"classes must be a list of labels, got the text {classes!r}; try list({classes!r})")
    names = tuple(c.item() if isinstance(c, np.generic) else c for c in classes)
    if len(set(names)) < len(names):
        repeated = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"classes must be distinct, got {repeated!r} twice")
    if not names:
        raise ValueError("classes must not be empty; remove it to take them from votes and labels")
    return names


def refuse_wide(name: str, value: object) -> None:
    """Refuse an integer beyond 64 bits, which NumPy cannot hold.

    Examples
    --------
    >>> refuse_wide("labels", 10**20)
    Traceback (most recent call last):
    ValueError: labels: integers must fit in 64 bits, got 100000000000000000000; pass it as text
    """
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise ValueError(f"{name}: integers must fit in 64 bits, got {value}; pass it as text")


def written(value: object) -> str | None:
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


def near_misses(strange: Collection[Label], known: Collection[Label]) -> dict[str, str]:
    """Return names that differ from a known class in case or surrounding punctuation only, and that class.

    Examples
    --------
    >>> near_misses(["b", "(C).", "D and A", 1], ["A", "B", "C", "D"])
    {'b': 'B', '(C).': 'C'}
    """
    texts = [name for name in known if isinstance(name, str)]
    spellings = {_bare(name): name for name in texts if _bare(name)}
    if len(spellings) < len(texts):
        return {}
    return {vote: spellings[_bare(vote)] for vote in strange if isinstance(vote, str) and _bare(vote) in spellings}


def _bare(text: str) -> str:
    return text.strip(AROUND).casefold()


def _is_broken(vote: Label) -> bool:
    return isinstance(vote, float) and not vote.is_integer()


def refuse_kinds(votes: Collection[Label], known: Collection[Label]) -> None:
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


# -- arrays of names ----------------------------------------------------------------------------------------------


def distinct_names(
    array: np.ndarray,
    what: str = "labels",
    place: Callable[[tuple[int, ...]], str] = lambda at: f"trial {at[0]}",
    blank: bool = False,
) -> tuple[list[Label], np.ndarray]:
    """Return the distinct names, sorted if they can be, and the number of each: -1 where it is missing.

    None, nan, masked, pandas' NA and, unless ``blank``, empty text are missing. A vote ``...``, of a voter that was not
    asked, has -2. ``place`` describes a place in the array for messages.

    Examples
    --------
    >>> names, codes = distinct_names(np.array([["x", ...], ["y", None]], dtype=object))
    >>> names, codes.tolist()
    (['x', 'y'], [[0, -2], [1, -1]])
    """

    def empty(name: Label) -> bool:
        return no_label(name) and not (blank and isinstance(name, str) and not name)

    if array.dtype != object:
        values, codes = _distinct_values(array)
        found = values.tolist()
        silent = [code for code, name in enumerate(found) if empty(name)]
        return used_names(found, np.where(np.isin(codes, silent), np.int32(NONE), codes)) if silent else (found, codes)
    numbers: dict[Name, int] = {None: NONE, ...: NOT_ASKED}
    flat: list[int] = []
    try:
        for name in array.ravel().tolist():
            code = numbers.get(name)
            if code is None:
                code = NONE if empty(name) else numbers.setdefault(name, len(numbers) - 2)
            flat.append(code)
    except TypeError:
        at = tuple(map(int, np.unravel_index(len(flat), array.shape)))
        raise TypeError(
            f"{what}: {array[at]!r} at {place(at)} is not hashable; use one class: text, a number or a tuple"
        ) from None
    found, codes = list(numbers)[2:], np.array(flat, np.int32).reshape(array.shape)
    for name in found:
        refuse_wide(what, name)
    try:
        order = sorted(found)  # type: ignore[type-var]
    except TypeError:  # names of several kinds have no order
        return found, codes
    if order != found:
        numbers = {name: code for code, name in enumerate(order)}
        codes = np.array([*(numbers[name] for name in found), NOT_ASKED, NONE], np.int32)[codes]
    return order, codes


def _distinct_values(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values, sorted, and the place of each: counted where sorting would take as long as learning.

    Examples
    --------
    >>> values, places = _distinct_values(np.array([[7, -1], [-1, 3]]))
    >>> values.tolist(), places.tolist()
    ([-1, 3, 7], [[2, 0], [0, 1]])
    """
    if array.dtype.kind in "iu" and array.size:
        lowest, highest = int(array.min()), int(array.max())
        if highest - lowest < COUNTED_RANGE and highest < 2**63:
            wide = array.astype(np.int64, copy=False)
            wide = wide - lowest if lowest else wide
            present = np.bincount(wide.ravel()) > 0
            places = wide.astype(np.int32)
            if not present.all():
                places = (np.cumsum(present, dtype=np.int32) - 1)[places]
            return (np.flatnonzero(present) + lowest).astype(array.dtype), places
    values, inverse = np.unique(array, return_inverse=True)
    return values, inverse.reshape(array.shape).astype(np.int32)


def used_names(names: Sequence[Label], codes: np.ndarray) -> tuple[list[Label], np.ndarray]:
    """Return the names and codes without names that do not occur."""
    used = np.unique(codes[codes >= 0])
    if len(used) == len(names):
        return list(names), codes
    place = np.full(len(names) + 1, NONE, np.int32)
    place[used] = np.arange(len(used))
    return [names[code] for code in used.tolist()], place[codes]


def distinct_labels(
    labels: Sequence[Label] | np.ndarray, size: int | None = None, gaps: bool = False
) -> tuple[list[Label], np.ndarray]:
    """Return the distinct labels and the number of each; with ``gaps``, -1 where there is none yet.

    Without ``gaps`` missing labels are refused; so are infinite ones, and labels that are not one for each of ``size``
    trials.

    Examples
    --------
    >>> distinct_labels(["b", None, "a", ""], gaps=True)
    (['a', 'b'], array([ 1, -1,  0, -1], dtype=int32))
    """
    array = label_array(labels)
    if array.ndim != 1 or len(array) != (len(array) if size is None else size):
        raise ValueError(f"labels must be one per trial: got shape {array.shape} for {size} instances")
    names, codes = distinct_names(array)
    wrong = codes < (NONE if gaps else 0)
    if array.dtype.kind == "f":
        wrong |= np.isinf(array)
    if wrong.any():
        t = int(np.argmax(wrong))
        raise ValueError(f"labels: {array[t]!r} at trial {t} is not a class; drop the trial or fill it in")
    return names, codes


def label_array(labels: Any) -> np.ndarray:
    """Return labels as an array, one of objects unless they came in one, so that each keeps its type."""
    refuse_masked("labels", labels)
    if isinstance(labels, np.ndarray):
        return np.asarray(labels)  # without a mask that hides nothing
    if not isinstance(labels, (list, tuple)):
        return np.asarray(labels, dtype=object)
    array = np.empty(len(labels), dtype=object)
    for t, name in enumerate(labels):
        array[t] = name  # one by one: numpy would unpack a tuple
    return array


def as_array(names: Sequence[Label]) -> np.ndarray:
    """Return labels as an array of their own kind, or of objects if they are of several."""
    array = np.array(names) if not any(isinstance(name, tuple) for name in names) else np.zeros((0, 0))
    rounded = array.dtype.kind == "f" and any(isinstance(name, int) and abs(name) >= 2**53 for name in names)
    return array if array.ndim == 1 and array.tolist() == list(names) and not rounded else label_array(list(names))


def named(numbers: np.ndarray, classes: Sequence[Label]) -> np.ndarray:
    """Return the classes with these numbers; None for -1, which is before the first class is known."""
    names = as_array(classes)
    if numbers.min(initial=0) < 0:
        return np.array([classes[i] if i >= 0 else None for i in numbers], dtype=object)
    if names.dtype == np.int64 and (names == names[0] + np.arange(len(names))).all():
        found = numbers.astype(np.int64)
        return found + names[0] if names[0] else found
    return names[numbers]


# -- voters that are none -----------------------------------------------------------------------------------------


def refuse_ids(
    columns: Sequence[Collection[Label]], shown: Sequence[str], size: int, labels: Collection[Label]
) -> None:
    """Refuse a column with another value in every row, few of them a label; none, where labels are as many as rows.

    Parameters
    ----------
    columns
        The distinct votes of each voter in ``size`` rows.
    shown
        The columns' names in messages.
    labels
        The classes that are known; if there are none, what several voters name.
    """
    if size < ROWS_OF_IDS or not any(len(votes) == size for votes in columns):
        return
    voters = Counter(vote for votes in columns for vote in votes)
    strange = {vote for vote, count in voters.items() if (vote not in labels if labels else count == 1)}
    for i, votes in enumerate(columns):
        outside = [vote for vote in votes if vote in strange]
        others = len(labels) or len(set().union(*columns[:i], *columns[i + 1 :]))
        if len(votes) == size and outside and (len(outside) == size or (2 * len(outside) > size >= 2 * others)):
            raise ValueError(
                f"votes: column {shown[i]} has another value in every row, such as {outside[0]!r}, which is never a "
                "label; it is no voter; remove it"
            )


def warn_of_strangers(columns: Sequence[Collection[Label]], shown: Sequence[str], labels: Collection[Label]) -> None:
    """Refuse votes of which none is ever a label, and warn of single columns of this kind; ``labels`` are not few.

    Examples
    --------
    >>> warn_of_strangers([{"Yes", "No"}], ["'ann'"], ["no", "yes"])
    Traceback (most recent call last):
    ValueError: votes: no vote is ever a label; votes are such as 'No', and labels such as 'no'. Write them alike
    """
    known, voted = set(labels), set[Label]().union(*columns)
    strangers = [i for i, votes in enumerate(columns) if votes and known.isdisjoint(votes)]
    if strangers and len(strangers) == sum(map(bool, columns)):
        raise ValueError(
            f"votes: no vote is ever a label; votes are such as {min(voted, key=str)!r}, and labels such as "
            f"{min(known, key=str)!r}. Write them alike"
        )
    near = near_misses(voted - known, known)
    if near:
        vote, others = min(near), len(near) - 1
        more = f", as are {others} others" if others > 1 else ", as is another" if others else ""
        warn(
            f"votes: {vote!r} is never a label, but {near[vote]!r} is, from which it differs in case or punctuation "
            f"only{more}; write votes and labels alike, or they are classes of their own"
        )
    strangers = [i for i in strangers if near.keys().isdisjoint(columns[i])]
    if strangers:
        first, *others_shown = [shown[i] for i in strangers]
        verb = "do" if len(others_shown) > 1 else "does"
        also = f" (nor {verb} {', '.join(others_shown)})" if others_shown else ""
        warn(
            f"votes: column {first} never names a label; it has {min(columns[strangers[0]], key=str)!r}{also}; "
            "remove it if it is no voter, or pass it as by= if it is a subject"
        )


class IdWatch:
    """Counts in how many consecutive trials each voter named a class that was new and not the label.

    Only trials with such votes need be shown. There is one warning for a voter; what was learned does not change.

    Examples
    --------
    >>> import warnings
    >>> watch = IdWatch()
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     for trial in range(25):
    ...         watch.see(trial, {"ann": "yes", "row": trial}, {"yes", "no"}, "yes")
    >>> [str(warning.message)[:46] for warning in caught]
    ["votes: 'row' named a class never met before in"]
    """

    def __init__(self) -> None:
        self._runs: dict[Hashable, tuple[int, int]] = {}  # how many consecutive trials, and the last one
        self._warned: set[Hashable] = set()

    def see(self, trial: int, votes: Mapping[Hashable, Hashable], known: Container[Hashable], label: Hashable) -> None:
        """Count the votes of trial number ``trial``; ``known`` are the classes before it."""
        for voter, vote in votes.items():
            if vote in known or missing(vote) or vote == label:
                continue
            run, last = self._runs.get(voter, (0, trial))
            run = run + 1 if trial - last <= 1 else 1
            self._runs[voter] = run, trial
            if run >= ROWS_OF_IDS and voter not in self._warned:
                self._warned.add(voter)
                warn(
                    f"votes: {voter!r} named a class never met before in {run} trials on end, such as {vote!r}, and "
                    "never the label; it looks like an id; remove it"
                )

    def see_rows(
        self,
        trial: int,
        rows: Sequence[Sequence[Hashable]],
        voters: Sequence[Hashable],
        labels: Sequence[Hashable],
        known: set[Hashable],
    ) -> None:
        """Count some trials, from number ``trial`` on; to ``known`` is added what they name."""
        for t, (row, label) in enumerate(zip(rows, labels, strict=True)):
            self.see(trial + t, dict(zip(voters, row, strict=True)), known, label)
            known.update(row, [label])
