"""Trials with candidates from JSON lines, or from the multi-line label-dependent text of Vowpal Wabbit.

JSON: one object per line, ``{"candidates": [...], "votes": {...}, "scores": {...}, "label": ...}``, or ``"wrong": ...``
in the place of the label.

VW: a block of lines is a trial and ends with an empty line; a line is a candidate, ``name:cost |space feature:value``.
The candidate of least cost is the label, and a feature is a rater that gives the candidate its value. A line that
begins with ``shared`` says the same of all candidates, which changes nothing, and is left out.

A trial that cannot be read is refused, and those after it are read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby
from typing import Any, NamedTuple

__all__ = ["ChoiceLine", "read_choices"]


class ChoiceLine(NamedTuple):
    """One trial, and the line on which it begins."""

    line: int
    candidates: list[Any]
    votes: dict[str, Any] | None
    scores: dict[str, Any] | None
    label: Any  # None: not known
    wrong: Any = None  # a candidate of which all that is known is that it is not the label

    @property
    def given(self) -> dict[str, Any]:
        """Arguments of a `Learner`, before the label."""
        return {"candidates": self.candidates, "votes": self.votes, "scores": self.scores}


Refuse = Callable[[int, str], None]  # given the line and what is wrong there


def read_choices(lines: Iterable[bytes], label: str, refuse: Refuse) -> Iterator[ChoiceLine]:
    """The trials of a file; JSON or VW, by the first line that is not empty."""
    numbered = ((number, raw.decode("utf-8", "replace").strip()) for number, raw in enumerate(lines, start=1))
    first = next(((number, text) for number, text in numbered if text), None)
    if first is None:
        return
    everything = chain([first], numbered)
    objects = first[1].startswith("{")
    for block in ([line] for line in everything if line[1]) if objects else _blocks(everything):
        try:
            yield _of_object(*block[0], label) if objects else _of_block(block)
        except BadLine as bad:
            refuse(bad.line, bad.reason)


class BadLine(ValueError):
    """A line that cannot be read."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line, self.reason = line, reason


def _blocks(numbered: Iterable[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Lines between empty ones."""
    for blank, block in groupby(numbered, key=lambda line: not line[1]):
        if not blank:
            yield list(block)


def _of_object(number: int, text: str, label: str) -> ChoiceLine:
    try:
        given = json.loads(text)
    except ValueError as error:
        raise BadLine(number, f"not a JSON object: {error}") from None
    if not isinstance(given, dict) or not isinstance(given.get("candidates"), list):
        raise BadLine(number, 'an object with "candidates": [...] is needed')
    for name in ("votes", "scores"):
        if not isinstance(given.get(name) or {}, dict):
            raise BadLine(number, f'"{name}" must be an object by name, got {given[name]!r}')
    votes, scores = given.get("votes"), given.get("scores")
    if votes is None and scores is None:
        raise BadLine(number, '"votes" or "scores" must say something of the candidates')
    if given.get(label) is not None and given.get("wrong") is not None:
        raise BadLine(number, f'"{label}" or "wrong", not both: a label says more')
    return ChoiceLine(number, given["candidates"], votes, scores, given.get(label), given.get("wrong"))


def _of_block(block: list[tuple[int, str]]) -> ChoiceLine:
    names: list[str] = []
    costs: list[float | None] = []
    scores: dict[str, dict[str, float]] = {}
    for number, text in block:
        head, bar, rest = text.partition("|")
        if not bar:
            raise BadLine(number, f"a candidate's line needs a |, got {text!r}")
        words = head.split()
        if words and words[0] == "shared":
            continue
        name, _, cost = (words[0] if words else "").partition(":")
        names.append(name or str(len(names)))
        costs.append(_number(number, cost) if cost else None)
        for rater, value in _features(number, "|" + rest):
            row = scores.setdefault(rater, {})
            row[str(len(names) - 1)] = row.get(str(len(names) - 1), 0.0) + value
    if not names:
        raise BadLine(block[0][0], "a trial without candidates")
    if len(set(names)) < len(names):  # names that are not distinct
        names = [str(place) for place in range(len(names))]
    rated = {rater: {names[int(place)]: value for place, value in row.items()} for rater, row in scores.items()}
    known = [(cost, place) for place, cost in enumerate(costs) if cost is not None]
    return ChoiceLine(block[0][0], names, None, rated, names[min(known)[1]] if known else None)


def _features(number: int, text: str) -> Iterator[tuple[str, float]]:
    """Names, with their namespace in front, and values."""
    for part in text.split("|")[1:]:
        words = part.split()
        space, factor = "", 1.0
        if part[:1] not in (" ", "\t", "") and words:
            space, _, scale = words.pop(0).partition(":")
            factor = _number(number, scale) if scale else 1.0
        for word in words:
            name, _, value = word.rpartition(":") if ":" in word else (word, "", "")
            yield f"{space}^{name}" if space else name, factor * (_number(number, value) if value else 1.0)


def _number(line: int, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadLine(line, f"{text!r} is not a number") from None
