"""From what users give a fusion to trials: votes and scores read, voters in their columns, classes numbered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from linmax.data.experts import Experts, experts
from linmax.data.matching import matched
from linmax.data.normalisation import Normaliser, log_shares, soft_votes
from linmax.data.side_columns import Sides, read_sides
from linmax.data.votes import Ballots, read_ballots
from linmax.util.checks import at_least

if TYPE_CHECKING:
    from linmax.models.fusion.state import FusionState

SEVERAL = (list, np.ndarray)  # types of what holds several votes

__all__ = [
    "VoteBatch",
    "in_order",
    "joined",
    "later",
    "make_batch",
    "one_row",
    "read_votes",
    "side_columns",
    "some_rows",
    "weights_given",
]


class Options(Protocol):
    """How votes are read: the parameters of a `VoteFusion` that matter for it."""

    abstain: Any
    thresholds: bool
    by: Any


@dataclass(frozen=True)
class NamedVotes:
    """A table of votes with its voters, as `experts` takes a DataFrame."""

    table: np.ndarray
    columns: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.table)

    def to_numpy(self) -> np.ndarray:
        """The votes."""
        return self.table


@dataclass(frozen=True)
class VoteBatch:
    """Trials of the voters, and what each said: places in ``names``, -1 for an abstention and for who was not asked.

    ``places`` are the values of the side columns, as `Sides.places` gives them.
    """

    instances: Experts
    said: np.ndarray
    names: tuple[Any, ...]
    places: np.ndarray
    asked: np.ndarray  # bool (trials, voters)
    soft: np.ndarray | None = None  # what soft voting says of scores: places in ``names``
    logs: np.ndarray | None = None  # (trials, raters, classes) logarithms of scores, as shares

    def __len__(self) -> int:
        return len(self.said)

    def __getitem__(self, trials: slice) -> VoteBatch:
        return self.taken(trials)

    def taken(self, trials: slice | np.ndarray) -> VoteBatch:
        """Some of the trials."""
        soft, logs = (None if block is None else block[trials] for block in (self.soft, self.logs))
        asked = self.asked[trials]
        return VoteBatch(self.instances[trials], self.said[trials], self.names, self.places[trials], asked, soft, logs)


def weights_given(sample_weight: Any, count: int) -> np.ndarray | None:
    """One weight >= 0 for each of so many trials, or None."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=object)
    if weights.shape != (count,):
        raise ValueError(f"sample_weight must be one number per trial: got shape {weights.shape} for {count} trials")
    for t, weight in enumerate(weights.tolist()):
        at_least(f"sample_weight of trial {t}", weight, 0.0, "0, which leaves it out")
    return weights.astype(float)


def some_rows(ballots: Ballots, rows: slice | np.ndarray) -> Ballots:
    """Some of the trials; a mask tells which."""
    picked = np.arange(len(ballots))[rows].tolist()
    skipped = None if ballots.skipped is None else ballots.skipped[rows]
    sides = tuple([column[t] for t in picked] for column in ballots.sides)
    return Ballots(ballots.table[rows], ballots.names, sides, skipped)


def joined(state: FusionState | None, ballots: Ballots) -> tuple[tuple[str, ...], bool]:
    """The voters, these included, and whether they go by name."""
    if state is None:
        return ballots.voters(None, False), ballots.names is not None
    if ballots.scored != (state.normaliser is not None):
        fitted, given = ("scores", "votes") if state.normaliser is not None else ("votes", "scores")
        raise ValueError(f"this VoteFusion was fitted to {fitted}, got {given} of shape {ballots.table.shape}")
    # Where voters have no names they have numbers, and votes may name these.
    named = state.named or (ballots.names is not None and set(ballots.names).issubset(state.voters))
    return ballots.voters(state.voters, named), named


def make_batch(
    options: Options,
    ballots: Ballots,
    voters: tuple[str, ...],
    named: bool,
    fixed: tuple[Any, ...] | None,
    normaliser: Normaliser | None,
    sides: Sides,
    *,
    learn: bool,
) -> VoteBatch:
    table, asked = ballots.aligned(voters, named), ballots.asked(voters, named)
    places = sides.places(read_sides(sides.names, ballots.sides), len(table))
    if normaliser is None:
        told = NamedVotes(table, voters)
        instances = experts(told, classes=fixed, abstain=options.abstain, thresholds=options.thresholds)
        return VoteBatch(instances, instances.votes, instances.names, places, asked)
    if fixed is None or table.shape[2] != len(fixed):
        raise ValueError(
            f"scores rate {table.shape[2]} classes, but there are {len(fixed or ())}: {list(fixed or ())!r}"
        )
    spread = np.ptp(table, axis=2)
    if "raw" in normaliser.kinds and spread.max() > 1.0 + 1e-12:
        raise ValueError(
            f"raw scores must differ by at most 1 within a trial, got {spread.max():g}; divide them, or use another "
            "normalisation"
        )
    instances = experts(scores=normaliser.apply(table, learn=learn), classes=fixed, thresholds=options.thresholds)
    said, shared = np.where(spread > 0.0, table.argmax(axis=2), -1), soft_votes(table).argmax(axis=1)
    return VoteBatch(instances, said, fixed, places, asked, shared, log_shares(table))


def later(options: Options, state: FusionState, votes: Any) -> VoteBatch:
    """Trials of voters that are all known; votes for classes never met are abstentions to the model."""
    ballots = matched(read_votes(votes, options.by), state.model.classes, options.abstain, learning=False)
    voters, named = joined(state, ballots)
    if len(voters) > len(state.voters):
        if named:
            raise ValueError(
                f"votes: {voters[len(state.voters)]!r} is not a known voter; partial_fit with it, or drop it"
            )
        raise ValueError(f"votes have {len(voters)} columns, but {len(state.voters)} voters are known; drop the others")
    return make_batch(options, ballots, voters, named, state.fixed, state.normaliser, state.sides, learn=False)


def read_votes(votes: Any, by: Any) -> Ballots:
    """Votes, and the side columns among them apart."""
    ballots = read_ballots(votes)
    return ballots if ballots.sides else ballots.without(side_columns(by))


def side_columns(by: Any) -> tuple[str | int, ...]:
    """The side columns as given: one or several names or places."""
    columns = () if by is None else (by,) if isinstance(by, (str, int, np.integer)) else tuple(by)
    for column in columns:
        if isinstance(column, (bool, np.bool_)) or not isinstance(column, (str, int, np.integer)):
            raise TypeError(f"by must be a column's name or place, or a list of these, got {column!r}")
    if len(set(columns)) < len(columns):
        raise ValueError(f"by names a column twice: {', '.join(map(repr, columns))}; drop one")
    return columns


def one_row(instance: Any, state: FusionState, by: Any) -> Ballots:
    """One instance as a table of one row."""
    if hasattr(instance, "columns"):
        rows = instance
    elif hasattr(instance, "to_dict") and hasattr(instance, "index"):  # a row of a DataFrame
        rows = {name: [vote] for name, vote in instance.to_dict().items()} if state.named else [instance.tolist()]
    elif isinstance(instance, Mapping):
        rows = {name: [vote] for name, vote in instance.items()}
        several = next((n for n, v in instance.items() if state.normaliser is None and isinstance(v, SEVERAL)), None)
        if several is not None:
            raise TypeError(f"this takes one trial; {several!r} has {instance[several]!r} instead of one vote")
    else:
        wanted = 1 if state.normaliser is None else 2
        rows = instance if isinstance(instance, np.ndarray) and instance.ndim > wanted else [instance]
        rows = np.asarray(rows) if isinstance(instance, np.ndarray) else rows
    ballots = read_votes(rows, by)
    if len(ballots) != 1:
        raise ValueError(f"this takes one trial, got {len(ballots)}; give it a row")
    return ballots


def in_order(names: Sequence[Any]) -> list[Any]:
    """Distinct classes, sorted when they can be; of those that are equal, the first."""
    met = list(dict.fromkeys(names))
    try:
        return sorted(met)
    except TypeError:
        return met
