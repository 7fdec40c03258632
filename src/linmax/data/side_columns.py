"""Side columns of votes: a copy of each voter for every value, so that it can be trusted on one and not on another.

A copy votes where its value holds and abstains elsewhere. It rates its class `COPY` instead of 1, so that it takes more
evidence to trust it. New columns are added on the right only, since that is how a learner grows.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from linmax.data.blocks import COPY, copied
from linmax.data.instances import Instances
from linmax.data.names import missing
from linmax.util.aliases import Label, Name
from linmax.util.files import Header

__all__ = ["Sides", "read_sides"]

MOST_COLUMNS = 8192  # columns of voters and copies
VOTES_AT_ONCE = 1 << 24  # votes laid out at a time
ITSELF = -1  # in place of a value: the voter itself


@dataclass(frozen=True)
class Sides:
    """The values seen in each side column, what each column of votes is for, and the trials of each value."""

    names: tuple[str, ...] = ()
    values: tuple[tuple[int, Label], ...] = ()  # (side column, value)
    columns: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int64))  # (voter, value or ITSELF)
    counts: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def debuts(self, columns: Sequence[Sequence[Label]]) -> list[int]:
        """The first trial, and those at which a value holds for the first time.

        Examples
        --------
        >>> Sides(("subject",), ((0, "maths"),)).debuts([["maths", None, "art", "art", "maths"]])
        [0, 2]
        """
        seen, begins = set(self.values), {0}
        for i, column in enumerate(columns):
            first: dict[Name, int] = {}
            for t, value in enumerate(column):
                first.setdefault(value, t)
            begins |= {t for value, t in first.items() if value is not None and (i, value) not in seen}
        return sorted(begins)

    def joined(self, columns: Sequence[Sequence[Label]], voters: int) -> Sides:
        """Add the new values of further trials; ``columns`` gives the values of each side column."""
        seen = ((i, value) for i, column in enumerate(columns) for value in dict.fromkeys(column) if value is not None)
        values = tuple(dict.fromkeys([*self.values, *seen]))
        if voters * (1 + len(values)) > MOST_COLUMNS:
            counts = [sum(i == j for j, _ in values) for i in range(len(self.names))]
            widest = int(np.argmax(counts)) if counts else 0
            reason = f"by: {self.names[widest]!r} has {counts[widest]:,d} values" if counts else "votes"
            raise ValueError(
                f"{reason}; with {voters} voters that makes {voters * (1 + len(values)):,d} columns, and "
                f"{MOST_COLUMNS:,d} are the most; take columns with fewer values"
            )
        wanted = [(v, side) for side in (ITSELF, *range(len(values))) for v in range(voters)]
        there = set(map(tuple, self.columns.tolist()))
        fresh = np.array([pair for pair in wanted if pair not in there], np.int64).reshape(-1, 2)
        counts_met = np.zeros(len(values), np.int64)
        counts_met[: len(self.counts)] = self.counts
        return replace(self, values=values, columns=np.concatenate([self.columns, fresh]), counts=counts_met)

    def places(self, columns: Sequence[Sequence[Label]], trials: int) -> np.ndarray:
        """(trials, side columns) places among the values; -1 for a missing or unknown value."""
        found = np.full((trials, len(self.names)), -1, np.int64)
        place = {value: p for p, value in enumerate(self.values)}
        for i, column in enumerate(columns):
            found[:, i] = [place.get((i, value), -1) for value in column]
        return found

    def holds(self, places: np.ndarray) -> np.ndarray:
        """(trials, columns): in which columns a voter's vote stands, given the values of the side columns."""
        of, sides = np.array([0, *(column for column, _ in self.values)]), self.columns[:, 1]
        return np.asarray((sides == ITSELF) | (places[:, of[sides + 1]] == sides))

    def laid_out(self, instances: Instances, places: np.ndarray) -> Instances:
        """Instances of the voters alone with a column for each copy as well."""
        if not self.names:
            return instances
        return replace(
            instances,
            votes=self.laid_out_votes(instances.votes, places),
            signs=self.signs,
            voter_names=tuple(instances.voter_names[v] for v in self.columns[:, 0]),
        )

    def laid_out_votes(self, votes: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Votes of the voters alone with a column for each copy as well."""
        return copied(votes, self.columns[:, 0], self.holds(places))

    @property
    def signs(self) -> np.ndarray:
        """Rating of each column's vote."""
        return np.where(self.columns[:, 1] == ITSELF, 1.0, COPY)

    def stretch(self) -> int:
        """Return how many trials to lay out at a time."""
        return max(1, VOTES_AT_ONCE // max(len(self.columns), 1))

    def counted(self, places: np.ndarray) -> Sides:
        """Count the values of these trials."""
        return replace(self, counts=self.counts + np.bincount(places[places >= 0], minlength=len(self.values)))

    def mean_weights(self, weights: np.ndarray, trials: int) -> np.ndarray:
        """The mean weight of each voter's vote over the trials: its own weight and those of its copies."""
        voters, sides = self.columns.T
        share = np.append(self.counts / max(trials, 1) * COPY, 1.0)  # the last is that of ITSELF
        return np.bincount(voters, weights * share[sides])

    def weights_by(self, weights: np.ndarray, trials: int) -> list[np.ndarray]:
        """For each value, the weight of each voter's vote where it holds; other side columns count with their means."""
        voters, sides = self.columns.T
        mean = self.mean_weights(weights, trials)
        found = []
        for p, (column, _) in enumerate(self.values):
            same = np.array([i == column for i, _ in self.values])
            share = np.append(np.where(same, -self.counts / max(trials, 1), 0.0) * COPY, 0.0)
            share[p] += COPY
            found.append(mean + np.bincount(voters, weights * share[sides]))
        return found

    @property
    def labels(self) -> list[str]:
        """The values for display: with their column if there are several, quoted if two would look alike.

        Examples
        --------
        >>> Sides(("subject",), ((0, "maths"), (0, 1), (0, "1"))).labels
        ['maths', '1', "'1'"]
        """
        prefix = [f"{self.names[column]}=" if len(self.names) > 1 else "" for column, _ in self.values]
        plain = [f"{before}{value}" for before, (_, value) in zip(prefix, self.values, strict=True)]
        return [
            f"{before}{value!r}" if plain.count(text) > 1 else text
            for before, (_, value), text in zip(prefix, self.values, plain, strict=True)
        ]

    # -- files ----------------------------------------------------------------------------------------------------

    @property
    def description(self) -> Header:
        """Everything but the arrays."""
        return {
            "by": list(self.names),
            "side_columns": [column for column, _ in self.values],
            "side_values": [value for _, value in self.values],
        }

    @classmethod
    def restored(cls, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Sides:
        """Restore from a description and arrays."""
        values = tuple(zip(description["side_columns"], description["side_values"], strict=True))
        return cls(tuple(description["by"]), values, arrays["columns"], arrays["counts"])


def read_sides(names: Sequence[str], columns: Sequence[Sequence[Label]]) -> list[list[Label]]:
    """Side columns as lists of values, None where one is missing."""
    found = []
    for name, column in zip(names, columns, strict=True):
        values = [value.item() if isinstance(value, np.generic) else value for value in column]
        odd = next((value for value in values if not isinstance(value, Hashable)), None)
        if odd is not None:
            raise TypeError(f"by: {odd!r} in column {name!r} is not hashable; use text, a number or a tuple")
        found.append([None if missing(value) else value for value in values])
    return found
