"""Open answers: which spellings are one answer, and the candidates of each trial.

Where questions have no fixed list of classes, the candidates of a trial are the answers given in it. Two answers are
the same where their keys are equal. Without a key only the same text and whole numbers are: "3.0" is 3, "0.50" is not
"0.5".
"""

from __future__ import annotations

import json
import re
import string
import unicodedata
import zlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from linmax.data.names import NONE, missing, no_label, written
from linmax.data.votes import Ballots
from linmax.util.aliases import Label, Name

__all__ = [
    "KEYS",
    "AnswerKey",
    "Key",
    "OpenAnswers",
    "TrialAnswers",
    "are_open",
    "json_key",
    "key_of",
    "math_key",
    "none_probability",
    "number_key",
    "opened_key",
    "stored_key",
    "text_key",
]

OWN_KEY = "(function)"  # stands in files for a key that is a function
NONE_PRIOR = 0.5, 9.5  # labelled trials, before the first, in which no voter, and in which some voter gave the label
FEWEST_JUDGED = 20  # from which it shows whether answers are open

AnswerKey: TypeAlias = Callable[[Any], Hashable]
Key: TypeAlias = "str | AnswerKey | None"

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)"
_DECIMAL = rf"(?:{_DIGITS}(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_NUMBER = re.compile(rf"(?<![\w.])(?P<sign>[+-]?\s*)\$?(?:(?P<whole>\d+)\s+(?=\d+\s*/))?(?P<top>{_DECIMAL})(?:\s*/\s*(?P<below>{_DECIMAL}))?")  # fmt: skip # noqa: E501
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = re.compile(f"[{re.escape(string.punctuation)}]")
_LONGEST_EXPONENT = 400  # of a number that is worked out; a longer one stays text


# -- keys ---------------------------------------------------------------------------------------------------------


def number_key(answer: Label) -> Hashable:
    """Return the last number in an answer, exactly; text without one stays text.

    Signs of currency and percent, and units, are ignored: "50 %" is 50.

    Examples
    --------
    >>> {number_key(answer) for answer in ["0.50", "1/2", ".5", "x = 0.5"]}
    {Fraction(1, 2)}
    >>> number_key("3 apples") == 3, number_key("$1,250.00") == 1250, number_key("1 1/2") == 1.5, number_key("None")
    (True, True, True, 'none')
    """
    if isinstance(answer, (int, np.integer)) and not isinstance(answer, bool):
        return Fraction(int(answer))
    if isinstance(answer, (float, np.floating)):
        return Fraction(repr(float(answer))) if np.isfinite(answer) else str(answer)
    text = str(answer).replace("−", "-").strip()
    for found in reversed([*_NUMBER.finditer(text)]):
        value = _fraction(found)
        if value is not None:
            return value
    return " ".join(text.casefold().split())


def _fraction(found: re.Match[str]) -> Fraction | None:
    parts = [part.replace(",", "") if part else part for part in found.group("whole", "top", "below")]
    if any(part and abs(int(part.lower().partition("e")[2] or 0)) > _LONGEST_EXPONENT for part in parts):
        return None
    whole, top, below = (None if part is None else Fraction(part) for part in parts)
    if top is None or below == 0:
        return None
    value = (whole or 0) + (top if below is None else top / below)
    return -value if "-" in found["sign"] else value


def text_key(answer: Label) -> Hashable:
    """Return an answer in lower case, without punctuation, articles and superfluous space.

    Examples
    --------
    >>> text_key("The Beatles.") == text_key("beatles"), text_key("?!")
    (True, '?!')
    """
    text = unicodedata.normalize("NFKC", str(answer)).casefold().strip()
    bare = " ".join(_ARTICLES.sub(" ", _PUNCTUATION.sub(" ", text)).split())
    return bare or text


_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{(.*)\}\s*\.?$", re.DOTALL)
_DROPPED = re.compile(r"\\(?:left|right|displaystyle|mathrm|mathbf|operatorname|quad|qquad)\b|\\[!,;: ()\[\]%]|[$~\s%]|\^\{?\\circ\}?")  # fmt: skip # noqa: E501
_UNIT = re.compile(r"\\(?:text|mbox)\s*\{([^{}]*)\}")
_FRACTION = re.compile(r"\\[dt]?frac(?:\{([^{}]*)\}|(\w))(?:\{([^{}]*)\}|(\w))")
_ROOT = re.compile(r"\\?sqrt(?:\{([^{}]*)\}|\(([^()]*)\)|(\w))")
_ASSIGNED = re.compile(r"^[a-zA-Z](?:_\w+|\([a-z]\))?=(?=[^=])")
_PLAIN = re.compile(rf"[+-]?{_DECIMAL}(?:/{_DECIMAL})?")


def math_key(answer: Label) -> Hashable:
    r"""Return a mathematical answer without the marks of LaTeX, as a number if it is one.

    Nothing is worked out beyond fractions: "2+2" is not 4.

    Examples
    --------
    >>> {math_key(answer) for answer in [r"\boxed{\frac{1}{2}}", "$x = 0.5$", r"\dfrac12", "1/2"]}
    {Fraction(1, 2)}
    >>> math_key(r"\left( 3, \frac{\pi}{2} \right)") == math_key("(3.0, pi/2)"), math_key(r"5\text{ cm}") == 5
    (True, True)
    """
    if not isinstance(answer, str):
        return number_key(answer)
    text = answer.replace("−", "-").strip()
    boxed = _BOX.search(text)
    text = _DROPPED.sub("", boxed[1] if boxed else text).rstrip(".")
    value = _UNIT.sub("", text)
    text = value or _UNIT.sub(r"\1", text)  # an answer in words alone
    for pattern, form in ((_ROOT, "sqrt({})"), (_FRACTION, "{}/{}"), (_ROOT, "sqrt({})"), (_FRACTION, "{}/{}")):
        text = pattern.sub(lambda found, form=form: form.format(*_grouped(found)), text)  # type: ignore[misc]
    text = _ASSIGNED.sub("", text.replace("\\cdot", "*").replace("\\times", "*").replace("{", "(").replace("}", ")"))
    return _math_value(text.replace("\\", ""))


def _grouped(found: re.Match[str]) -> list[str]:
    parts = [part for part in found.groups() if part is not None]
    return [f"({part})" if len(parts) == 2 and re.search(r"[-+*/]", part[1:]) else part for part in parts]


def _math_value(text: str) -> Hashable:
    """Return a number, the values of a list in brackets, or the text."""
    if _PLAIN.fullmatch(text):
        return number_key(text)
    if len(text) > 2 and text[0] + text[-1] in ("()", "[]", "(]", "[)") and "," in text:
        parts, depth = [""], 0
        for mark in text[1:-1]:
            depth += (mark in "([") - (mark in ")]")
            if mark == "," and depth == 0:
                parts.append("")
            else:
                parts[-1] += mark
        if depth == 0:
            return (text[0], *map(_math_value, parts), text[-1])
    return text


def json_key(answer: Any) -> Hashable:
    """Return an answer in JSON in one form: keys in order, no space, 1.0 as 1. What is not JSON stays text.

    Examples
    --------
    >>> json_key('{"b": 1.0, "a": [2]}'), json_key({"a": [2], "b": 1}), json_key(" x ")
    ('{"a":[2],"b":1}', '{"a":[2],"b":1}', 'x')
    """
    if isinstance(answer, str):
        try:
            answer = json.loads(answer, parse_float=_whole)
        except ValueError:
            return answer.strip()
    return json.dumps(_with_whole_numbers(answer), sort_keys=True, separators=(",", ":"), default=str)


def _whole(number: str) -> float | int:
    value = float(number)
    return int(value) if value.is_integer() else value


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _with_whole_numbers(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_whole_numbers(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _exact_key(answer: Label) -> Hashable:
    plain = written(answer)
    return answer if plain is None else plain


KEYS: dict[str, AnswerKey] = {"number": number_key, "text": text_key, "math": math_key, "json": json_key}


def key_of(key: Key) -> AnswerKey:
    """Return the function of a key given by name, as a function, or not at all.

    Examples
    --------
    >>> key_of("numbers")
    Traceback (most recent call last):
    ValueError: key must be 'number', 'text', 'math' or 'json', or a function, got 'numbers'
    """
    if key is None:
        return _exact_key
    if isinstance(key, str) and key in KEYS:
        return KEYS[key]
    if callable(key):
        return key
    *names, last = map(repr, KEYS)
    raise ValueError(f"key must be {', '.join(names)} or {last}, or a function, got {key!r}")


def stored_key(key: Key) -> str | None:
    """Return a key as files hold it, and `opened_key` reads it."""
    return key if key is None or isinstance(key, str) else OWN_KEY


def opened_key(key: str | None) -> Key:
    """Return the key that a file holds; in place of a function one that asks for it."""
    return _lost_key if key == OWN_KEY else key


def _lost_key(_: Label) -> Hashable:
    raise ValueError(
        "the key was a function, which files do not hold; after loading, call set_params(key=...) or set learner.key"
    )


def none_probability(unnamed: int, trials: int) -> float:
    """Return the probability that no voter is right, if that was so in ``unnamed`` of the labelled trials."""
    return (NONE_PRIOR[0] + unnamed) / (sum(NONE_PRIOR) + trials)


# -- candidates ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OpenAnswers:
    """Trials whose candidates are the answers given in them.

    Attributes
    ----------
    given
        The answers as the voters spelled them.
    ballots
        The same trials with places among the candidates of each trial. Their order is that of a checksum of their keys:
        it depends neither on the order of the voters nor on the trial, so that a place says nothing about an answer.
    labels
        Places too; -1 where there is no label yet, ``counts[t]`` for a label that no voter of trial t gave.
    counts
        Number of candidates of each trial.
    ratings
        (trials, raters, candidates) scores by the raters of ``given``, in its order; 0 for a candidate without one.
        Scores of anything but an answer of the trial are left out.
    """

    given: Ballots
    ballots: Ballots
    labels: np.ndarray
    counts: np.ndarray
    ratings: np.ndarray

    @classmethod
    def read(
        cls, given: Ballots, labels: Sequence[Label] | np.ndarray | None = None, key: Key = None, blank: bool = False
    ) -> OpenAnswers:
        """Number the answers of each trial; answers of equal key are one candidate. A ``blank`` label is one.

        Examples
        --------
        >>> from linmax.data.votes import read_ballots
        >>> votes = read_ballots([["1/2", "0.5", "3", None], ["x", None, "y", "x"]])
        >>> found = OpenAnswers.read(votes, [".5", "z"], "number")
        >>> found.ballots.codes.tolist(), found.labels.tolist(), found.counts.tolist()
        ([[0, 0, 1, -1], [0, -1, 1, 0]], [0, 2], [2, 2])
        """
        keyed, ids = key_of(key), dict[Hashable, int]()

        def number(answer: Label, place: Callable[[], str]) -> int:
            return ids.setdefault(_checked_key(keyed, answer, place), len(ids))

        numbers = [number(answer, lambda answer=answer: given.where(answer)) for answer in given.named]  # type: ignore[misc]
        checksums = [_checksum(answer) for answer in ids]
        rows = np.append(np.array(numbers, np.int64), NONE)[given.codes].tolist()
        codes, places, counts = [], np.full(len(rows), NONE, np.int32), np.zeros(len(rows), np.int32)
        scored: list[tuple[int, int, int, float]] = []
        for t, row in enumerate(rows):
            candidates = sorted({*row} - {NONE}, key=checksums.__getitem__)
            found = {NONE: NONE} | {answer: place for place, answer in enumerate(candidates)}
            codes.append([found[answer] for answer in row])
            counts[t] = len(candidates)
            if labels is not None and not (missing(labels[t]) if blank else no_label(labels[t])):
                label = number(labels[t], lambda t=t: f", the label of trial {t}")  # type: ignore[misc]
                places[t] = found.get(label, counts[t])
            for rater, (name, column) in enumerate(given.ratings.items()):
                for answer, value in column[t].items():
                    known = found.get(number(answer, lambda name=name, t=t: f", which {name!r} rates in trial {t}"))  # type: ignore[misc]
                    if known is not None:
                        scored.append((t, rater, known, value))
        ratings = np.zeros((len(rows), len(given.ratings), int(counts.max(initial=0))))
        for t, rater, place, value in scored:
            ratings[t, rater, place] = value
        local = np.array(codes, np.int32).reshape(given.codes.shape)
        named: list[Label] = list(range(int(counts.max(initial=0))))
        return cls(given, replace(given, codes=local, named=named), places, counts, ratings)


class TrialAnswers:
    """Reader of the answers of one trial at a time, and the count of trials whose label nobody gave."""

    def __init__(self, key: Key = None, unnamed: int = 0) -> None:
        self.key, self.unnamed = key, unnamed
        key_of(key)

    def keyed(self, answer: Label, where: str = "") -> Hashable:
        """Return what is equal for the same answers; ``where`` is for messages."""
        return _checked_key(key_of(self.key), answer, lambda: where)

    def read(self, votes: Mapping[Name, Label], worth: Callable[[], Mapping[Name, float]]) -> dict[Hashable, Label]:
        """Return the answer of each key, as the voter of the largest worth spells it, in the order of `OpenAnswers`.

        Examples
        --------
        >>> votes = {"ann": "1/2", "bob": "0.5", "cy": "3"}
        >>> sorted(TrialAnswers("number").read(votes, lambda: {"bob": 0.7}).values())
        ['0.5', '3']
        """
        spellings: dict[Hashable, dict[Label, list[Label]]] = {}
        for voter, answer in votes.items():
            spellings.setdefault(self.keyed(answer, f" of {voter!r}"), {}).setdefault(answer, []).append(voter)
        found = {}
        for key in sorted(spellings, key=_checksum):
            ways = spellings[key]
            weights = worth() if len(ways) > 1 else {}
            found[key] = max(ways, key=lambda way: max(weights.get(voter, 0.0) for voter in ways[way]))
        return found

    def place(self, label: Label, answers: Sequence[Label]) -> int:
        """Return the place of a label among answers: -1 if there is none yet, their number if nobody gave it."""
        if no_label(label):
            return NONE
        key = self.keyed(label, ", the label")
        return next((place for place, answer in enumerate(answers) if self.keyed(answer) == key), len(answers))


def _checksum(key: Hashable) -> int:
    return zlib.crc32(repr(key).encode())


def _checked_key(key: AnswerKey, answer: Label, place: Callable[[], str]) -> Hashable:
    try:
        value = key(answer)
    except Exception as error:
        raise ValueError(f"key failed for the answer {answer!r}{place()}: {type(error).__name__}: {error}") from error
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"key must return something hashable, got {value!r} for the answer {answer!r}{place()}"
        ) from None
    return value


def are_open(given: Ballots, labels: Sequence[Label] | np.ndarray) -> bool:
    """Return whether most of the later labelled trials bring an answer never seen before.

    A voter with another answer in every trial that is seldom right does not count: its column may hold ids. With fewer
    than `FEWEST_JUDGED` labelled trials the answer is no.

    Examples
    --------
    >>> from linmax.data.votes import read_ballots
    >>> are_open(read_ballots([[t, t] for t in range(40)]), range(40))
    True
    >>> are_open(read_ballots([[f"row {t}", t % 3] for t in range(40)]), [t % 3 for t in range(40)])
    False
    """
    labelled = [t for t, label in enumerate(labels) if not no_label(label)]
    if given.scored or len(labelled) < FEWEST_JUDGED or 4 * len(given.named) < len(labelled):
        return False
    place = {name: code for code, name in enumerate(given.named)}
    right = np.array([place.get(labels[t], NONE - 1) for t in labelled])[:, None]
    codes = given.codes[labelled]
    voted = (codes >= 0).sum(axis=0)
    distinct = np.array([len(np.unique(column[column >= 0])) for column in codes.T])
    answers = codes[:, (distinct < voted) | (4 * (codes == right).sum(axis=0) > voted)]
    first = np.full(len(given.named) + 1, len(labelled))
    np.minimum.at(first, answers, np.arange(len(labelled))[:, None])
    new = ((first[answers] == np.arange(len(labelled))[:, None]) & (answers >= 0)).any(axis=1)
    later = new[len(new) // 2 :]
    return bool(2 * later.sum() > len(later))
