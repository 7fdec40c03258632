"""Votes and scores as users have them: arrays, lists, dicts of columns, dicts for rows, DataFrames, Arrow tables."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from linmax.core.contract import HUGE
from linmax.data.labels import label_array
from linmax.data.normalization import checked_scores
from linmax.util.checks import refuse_masked

__all__ = ["Ballots", "ballots_of", "read_ballots"]


IS_LEFT_OUT = np.frompyfunc(partial(operator.is_, ...), 1, 1)  # whether a vote is ``...``


@dataclass(frozen=True)
class Ballots:
    """(trials, voters) labels or (trials, voters, classes) scores, and the voters' names if they were given."""

    table: np.ndarray
    names: tuple[str, ...] | None
    sides: tuple[list[Any], ...] = ()  # columns that are not voters (see `linmax.data.side_columns`)
    skipped: np.ndarray | None = None  # bool (trials, voters): who was not asked; None if all were

    @property
    def scored(self) -> bool:
        """Whether these are scores."""
        return self.table.ndim == 3

    def __len__(self) -> int:
        return len(self.table)

    def without(self, by: Sequence[str | int]) -> Ballots:
        """The votes without these columns, given by name, or by position if there are no names."""
        if not by:
            return self
        if self.scored:
            raise ValueError("by makes copies of voters, and these are scores; leave it out")
        count = self.table.shape[1]
        columns = [self._place(column) for column in by]
        rest = [i for i in range(count) if i not in columns]
        if not rest:
            raise ValueError(f"votes have no column besides {', '.join(map(repr, by))} that may be a voter")
        names = None if self.names is None else tuple(self.names[i] for i in rest)
        skipped = None if self.skipped is None else self.skipped[:, rest]
        return Ballots(self.table[:, rest], names, tuple(self.table[:, i].tolist() for i in columns), skipped)

    def _place(self, column: str | int) -> int:
        """The position of a side column."""
        if self.names is not None:
            if str(column) not in self.names:
                raise ValueError(f"votes have no column {column!r}; they have {', '.join(self.names)}")
            return self.names.index(str(column))
        count = self.table.shape[1]
        if isinstance(column, str):
            raise ValueError(
                f"votes have no column {column!r}, since they came without names; give its place (0 to {count - 1}), "
                "or a DataFrame or dict that names them"
            )
        if not -count <= column < count:
            raise ValueError(f"votes have no column {column}; they have {count}")
        return column % count

    def voters(self, known: Sequence[str] | None, named: bool) -> tuple[str, ...]:
        """The voters after these have joined those known, if any; ``named`` says whether those came with names."""
        count = self.table.shape[1]
        if known is None:
            return self.names or tuple(str(i) for i in range(count))
        if named and self.names is not None:
            return tuple(dict.fromkeys([*known, *self.names]))
        if count < len(known) or (count > len(known) and named):
            raise ValueError(
                f"votes have {count} columns without names, but {len(known)} voters are known; give a column for each, "
                "or a DataFrame or dict that names them"
            )
        return (*known, *(str(i) for i in range(len(known), count)))

    def aligned(self, voters: Sequence[str], named: bool) -> np.ndarray:
        """The table with a column for each of these voters; those absent abstain."""
        if self.names is None or not named or self.names == tuple(voters):
            return self.table
        places = {name: i for i, name in enumerate(self.names)}
        columns = [places.get(name, -1) for name in voters]
        if min(columns) >= 0:
            return self.table[:, columns]
        if self.scored:
            silent = np.zeros((len(self), 1, self.table.shape[2]))
            return np.concatenate([self.table, silent], axis=1)[:, columns]
        table = np.full((len(self), len(voters)), None, dtype=object)
        present = [i for i, column in enumerate(columns) if column >= 0]
        table[:, present] = self.table[:, [columns[i] for i in present]]
        return table

    def asked(self, voters: Sequence[str], named: bool) -> np.ndarray:
        """(trials, voters): who was asked; those who have no column were not."""
        asked = np.ones(self.table.shape[:2], bool) if self.skipped is None else ~self.skipped
        if self.names is None or not named:
            return np.pad(asked, ((0, 0), (0, len(voters) - asked.shape[1])))
        found, places = np.zeros((len(self), len(voters)), bool), {name: i for i, name in enumerate(voters)}
        found[:, [places[name] for name in self.names]] = asked
        return found


def read_ballots(votes: Any) -> Ballots:
    """Read votes or scores of any of these forms. A vote ``...`` is of a voter who was not asked.

    Examples
    --------
    >>> read_ballots({"ann": ["x", "y"], "bob": ["x", None]}).table.tolist()
    [['x', 'x'], ['y', None]]
    >>> read_ballots([{"ann": "x", "bob": "x"}, {"ann": "y", "bob": None}]).table.tolist()
    [['x', 'x'], ['y', None]]
    >>> read_ballots({"ann": [[0.1, 0.9]], "bob": [[0.7, 0.3]]}).table.shape
    (1, 2, 2)
    """
    if isinstance(votes, Ballots):
        return votes
    if isinstance(votes, Mapping):
        return _from_columns(votes)
    if hasattr(votes, "column_names") and hasattr(votes, "to_pydict"):  # a table of Arrow
        return _from_columns(votes.to_pydict())
    if hasattr(votes, "columns") and hasattr(votes, "to_numpy"):
        return _checked(votes.to_numpy(), _distinct(votes.columns))
    if isinstance(votes, np.ma.MaskedArray) and votes.ndim == 2:
        filled = np.array(votes.data, dtype=object)
        filled[np.ma.getmaskarray(votes)] = None
        return _checked(filled, None)
    if isinstance(votes, np.ndarray):
        return _checked(votes, None)
    if isinstance(votes, (str, bytes)) or not hasattr(votes, "__len__"):
        raise TypeError(f"votes must be an array, a DataFrame or lists, got {type(votes).__name__}")
    rows = list(votes)
    if rows and isinstance(rows[0], Mapping):
        return _from_rows(rows)
    innermost = rows[0][0] if rows and _is_row(rows[0]) and len(rows[0]) else None
    if isinstance(innermost, (list, np.ndarray)):
        return _checked(checked_scores(rows, 3), None)
    return _checked(_objects(rows), None)


def _is_row(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, Mapping))


def _from_rows(rows: Sequence[Any]) -> Ballots:
    """Trials as dicts from voter to vote; who is absent from one was not asked."""
    for t, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(f"votes: trial 0 is a dict from voter to vote, and trial {t} is {row!r}; give all alike")
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = np.full((len(rows), len(names)), ..., dtype=object)
    for i, name in enumerate(names):
        table[:, i] = label_array([row.get(name, ...) for row in rows])
    return _checked(table, _distinct(names))


def _from_columns(columns: Mapping[Any, Any]) -> Ballots:
    names = _distinct(columns)
    for name, block in columns.items():
        if isinstance(block, (str, bytes)) or not hasattr(block, "__iter__"):
            raise TypeError(
                f"votes of {name!r} must be a column, with one vote for each trial, got {block!r}; one trial is "
                f"[{{{name!r}: {block!r}, ...}}]"
            )
        if getattr(block, "ndim", 1) > 1:
            refuse_masked(f"scores of {name!r}", block)
    blocks = [np.asarray(_plain(block)) for block in columns.values()]
    shapes = {block.shape for block in blocks}
    if len(shapes) > 1:
        told = ", ".join(f"{name!r} has {block.shape}" for name, block in zip(names, blocks, strict=True))
        raise ValueError(f"votes: the columns must have one shape, but {told}")
    if blocks and blocks[0].ndim == 2:
        return _checked(np.stack([block.astype(np.float64) for block in blocks], axis=1), names)
    return _checked(_objects(list(zip(*map(_plain, columns.values()), strict=True))), names)


def _plain(column: Any) -> Any:
    """A column as a list or an array; lists of labels stay lists, so that labels keep their type."""
    if hasattr(column, "to_numpy"):
        column = column.to_numpy()
    if isinstance(column, np.ndarray):
        return column if column.ndim != 1 else column.tolist()
    return list(column)


def _objects(rows: Sequence[Any]) -> np.ndarray:
    """Rows as an array of objects, so that labels keep their types, and a tuple stays one label."""
    length = len(rows[0]) if rows and _is_row(rows[0]) else 0
    table = np.empty((len(rows), length), dtype=object)
    for t, row in enumerate(rows):
        if not _is_row(row) or len(row) != length:
            raise ValueError(
                f"votes must be (trials, voters), every row of the same length, got {row!r} at trial {t}; one voter is "
                "[[vote], [vote], ...]"
            )
        for i, vote in enumerate(row):
            table[t, i] = None if vote is np.ma.masked else vote
    return table


def _distinct(names: Any) -> tuple[str, ...]:
    told = tuple(str(name) for name in names)
    repeated = next((name for i, name in enumerate(told) if name in told[:i]), None)
    if repeated is not None:
        raise ValueError(f"votes: two voters are called {repeated!r}; rename one")
    return told


def ballots_of(table: np.ndarray, names: tuple[str, ...] | None) -> Ballots:
    """A table of votes, of which those that are ``...`` are of voters who were not asked.

    Examples
    --------
    >>> given = ballots_of(np.array([["x", ...], ["y", None]], dtype=object), ("ann", "bob"))
    >>> given.table.tolist(), given.asked(["ann", "bob"], True).tolist()
    ([['x', None], ['y', None]], [[True, False], [True, True]])
    """
    skipped = IS_LEFT_OUT(table).astype(bool) if table.dtype == object else np.zeros(0, bool)
    if not skipped.any():
        return Ballots(table, names)
    table = table.copy()
    table[skipped] = None
    return Ballots(table, names, (), skipped)


def _checked(table: np.ndarray, names: tuple[str, ...] | None) -> Ballots:
    if table.ndim not in (2, 3):
        raise ValueError(
            f"votes must be (trials, voters) labels or (trials, raters, classes) scores, got shape {table.shape}; "
            "reshape it"
        )
    if not len(table) or not table.shape[1]:
        raise ValueError(f"votes must have at least one trial and one voter, got shape {table.shape}")
    if table.ndim == 2:
        return ballots_of(table, names)
    scores = checked_scores(table, 3)
    if np.abs(scores).max() > HUGE:
        t, i = np.argwhere(np.abs(scores) > HUGE)[0, :2].tolist()
        rater = repr(names[i]) if names is not None else i
        raise ValueError(
            f"scores must be at most {HUGE:g} in magnitude, got {np.abs(scores[t, i]).max():g} at trial {t}, rater "
            f"{rater}; scale them down"
        )
    return Ballots(scores, names)
