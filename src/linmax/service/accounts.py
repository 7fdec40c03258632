"""A model's results along the trials: mistakes of what was served, of plurality and of the best voter."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from linmax.service.instances import Instance, Label

__all__ = ["ACCOUNT_POINTS", "Account", "Curve"]

ACCOUNT_POINTS = 2048  # most points that a curve keeps

Point = tuple[int, int, int | None, int | None]


class Curve:
    """Points at multiples of a stride, which doubles when there are too many; depends on the trials alone.

    Examples
    --------
    >>> curve = Curve(most=4)
    >>> for t in range(1, 11):
    ...     curve.add((t, t // 2, None, None))
    >>> [point[0] for point in curve.points], curve.stride
    ([4, 8], 4)
    """

    def __init__(self, most: int = ACCOUNT_POINTS) -> None:
        self.most, self.stride = most, 1
        self.points: list[Point] = []

    def add(self, point: Point) -> None:
        """Note the state after a trial."""
        if point[0] % self.stride:
            return
        self.points.append(point)
        if len(self.points) >= self.most:
            self.stride *= 2
            self.points = [kept for kept in self.points if kept[0] % self.stride == 0]

    def after(self, trials: int, most: int) -> list[Point]:
        """At most `most` points after a trial, evenly thinned; the last one is kept."""
        found = [point for point in self.points if point[0] > trials]
        step = -(-len(found) // max(most, 1))
        return found[::-1][:: max(step, 1)][::-1]


class Account:
    """Trials and mistakes of a model, beside plurality and the best voter when there are votes.

    An abstention counts as a mistake of that voter. Plurality takes the smallest of the labels that most voters
    name.

    Examples
    --------
    >>> account = Account()
    >>> account.add({"votes": {"ann": "x", "bob": "y", "cy": "y"}}, served="x", label="x")
    >>> account.point
    (1, 0, 1, 0)
    """

    def __init__(self) -> None:
        self.trials = self.mistakes = self.plurality = self.best = 0
        self.right: dict[str, int] = {}  # how often each voter named the label
        self.votes = False
        self.curve = Curve()

    @property
    def point(self) -> Point:
        """Trials and mistakes so far: served, plurality, best voter."""
        if not self.votes:
            return self.trials, self.mistakes, None, None
        return self.trials, self.mistakes, self.plurality, self.trials - self.best

    def add(self, instance: Instance, served: Label | None, label: Label, *, wrong: bool = False) -> None:
        """Count one labelled trial; if the class is only known to be `wrong`, whoever named another one is right."""
        self.trials += 1
        if (served == label) == wrong:
            self.mistakes += 1
        votes = {voter: vote for voter, vote in (instance.get("votes") or {}).items() if vote is not None}
        if votes:
            self._count_votes(votes, label, wrong)
        elif self.votes:
            self.plurality += 1
        if self.trials % self.curve.stride == 0:
            self.curve.add(self.point)

    def add_many(self, wrong: np.ndarray) -> None:
        """Count labelled trials without votes: whether what was served was wrong, one by one."""
        first = self.trials
        mistakes = self.mistakes + np.cumsum(wrong)
        for trials in range(first + 1, first + len(wrong) + 1):
            if trials % self.curve.stride == 0:
                self.trials, self.mistakes = trials, int(mistakes[trials - first - 1])
                self.curve.add(self.point)
        self.trials, self.mistakes = first + len(wrong), int(mistakes[-1])

    def _count_votes(self, votes: dict[str, Label], label: Label, wrong: bool) -> None:
        if not self.votes:
            self.votes, self.plurality = True, self.trials - 1  # nobody had voted before
        for voter, vote in votes.items():
            if (vote == label) != wrong:
                count = self.right[voter] = self.right.get(voter, 0) + 1
                if count > self.best:
                    self.best = count
        counts = Counter(votes.values())
        most = max(counts.values())
        if (min(vote for vote, count in counts.items() if count == most) == label) == wrong:
            self.plurality += 1

    def state(self) -> dict[str, Any]:
        """All of it, as plain data."""
        return {
            "trials": self.trials,
            "mistakes": self.mistakes,
            "plurality": self.plurality,
            "best": self.best,
            "right": self.right.copy(),
            "votes": self.votes,
            "stride": self.curve.stride,
            "points": [list(point) for point in self.curve.points],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Account:
        """The account that had this state."""
        account = cls()
        for name in ("trials", "mistakes", "plurality", "best", "right", "votes"):
            setattr(account, name, state[name])
        account.curve.stride = state["stride"]
        account.curve.points = [(t, m, p, b) for t, m, p, b in state["points"]]
        return account
