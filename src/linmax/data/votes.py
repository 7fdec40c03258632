"""Votes and scores as users have them: arrays, lists, dicts of columns, dicts for rows, frames, Arrow tables.

`Ballots` are what `read_ballots` makes of a table: places among the distinct values that were voted for, whose spelling
`linmax.data.names` checks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from linmax.core.contract import HUGE
from linmax.data.names import (
    NONE,
    NOT_ASKED,
    Names,
    distinct_names,
    label_array,
    missing,
    refuse_ids,
    silent_votes,
    used_names,
)
from linmax.normalization import checked_scores
from linmax.util.aliases import Label, Name
from linmax.util.checks import refuse_masked

__all__ = ["AnswerRatings", "Ballots", "encode_votes", "in_classes", "read_ballots", "read_ratings", "read_votes"]

AnswerRatings: TypeAlias = Mapping[Label, float]  # of one trial


def encode_votes(
    table: np.ndarray, columns: Sequence[str] | None = None
) -> tuple[np.ndarray, list[Label], np.ndarray | None]:
    """Return the votes as places among the distinct ones, these, and who was not asked (None if all were).

    Empty text is a vote like others; `linmax.data.names.silent_votes` decides whether it means abstention.

    Examples
    --------
    >>> codes, named, skipped = encode_votes(np.array([["x", ...], ["y", None]], dtype=object))
    >>> codes.tolist(), named, skipped.tolist()
    ([[0, -1], [1, -1]], ['x', 'y'], [[False, True], [False, False]])
    """

    def place(at: tuple[int, ...]) -> str:
        return f"trial {at[0]}, voter {at[1] if columns is None else repr(columns[at[1]])}"

    named, codes = distinct_names(table, "votes", place, blank=True)
    skipped = codes == NOT_ASKED
    return (np.where(skipped, np.int32(NONE), codes), named, skipped) if skipped.any() else (codes, named, None)


def in_classes(
    codes: np.ndarray,
    named: Sequence[Label],
    classes: Sequence[Label] | None,
    columns: Sequence[str],
    abstain: Label | Collection[Label] = None,
) -> tuple[np.ndarray, tuple[Label, ...]]:
    """Return votes as places among the classes, all others refused, and the classes: those voted for if not given."""
    silent = {*silent_votes(abstain)}
    order = tuple(name for name in named if name not in silent) if classes is None else tuple(classes)
    place = {name: i for i, name in enumerate(order)}
    wanted = np.array([*(NONE if name in silent else place.get(name, NOT_ASKED) for name in named), NONE], np.int32)
    if (wanted[:-1] == np.arange(len(named))).all():
        return codes, order
    placed = wanted[codes]
    if (placed == NOT_ASKED).any():
        t, i = np.argwhere(placed == NOT_ASKED)[0]
        raise ValueError(
            f"votes: voter {columns[i]!r} voted for {named[codes[t, i]]!r} at trial {t}, which is not among "
            f"classes={list(order)!r}; add it, or name it with abstain="
        )
    return placed, order


def read_votes(
    votes: Any, size: int, classes: tuple[Label, ...] | None, abstain: Label | Collection[Label]
) -> tuple[np.ndarray, tuple[Label, ...], tuple[str, ...]]:
    """Return codes (-1 abstains), the classes they stand for and the voters' names, as `instances` takes them."""
    if votes is None:
        return np.zeros((size, 0), np.int32), classes or (), ()
    table, names = _table(votes)
    if table.ndim != 2:
        raise ValueError(f"votes must be (trials, voters), got shape {table.shape}; one voter is votes.reshape(-1, 1)")
    columns = tuple(map(str, range(table.shape[1]))) if names is None else names
    codes, named, _ = encode_votes(table, names)
    return *in_classes(codes, named, classes, columns, abstain), columns


def _table(votes: Any) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Return a table without names, or a frame, as an array, and its names."""
    if hasattr(votes, "columns") and hasattr(votes, "to_numpy"):
        return votes.to_numpy(), tuple(map(str, votes.columns))
    if isinstance(votes, np.ma.MaskedArray) and votes.ndim == 2:
        filled = np.array(votes.data, dtype=object)
        filled[np.ma.getmaskarray(votes)] = None
        return filled, None
    if isinstance(votes, np.ndarray):
        return votes, None
    return _objects(list(votes)), None


def _is_row(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))


def _objects(rows: Sequence[Any]) -> np.ndarray:
    """Return rows as an array of objects, so that labels keep their types, and a tuple stays one label."""
    rows = [list(row) if _is_row(row) else row for row in rows]
    length = len(rows[0]) if rows and isinstance(rows[0], list) else 0
    table = np.empty((len(rows), length), dtype=object)
    for t, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != length:
            raise ValueError(
                f"votes must be (trials, voters), every row of the same length, got {row!r} at trial {t}; one voter is "
                "[[vote], [vote], ...]"
            )
        for i, vote in enumerate(row):
            table[t, i] = None if vote is np.ma.masked else vote
    return table


# -- ballots --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ballots:
    """Votes or scores of some trials, and the voters' names if they were given.

    Attributes
    ----------
    codes : int32 array (trials, voters)
        Place of each vote in ``named``, -1 for an abstention; for scores no columns.
    named : list
        The distinct values voted for.
    scores : array (trials, raters, classes), optional
    sides : tuple of lists
        Columns that are not voters (see `linmax.data.side_columns`).
    ratings : dict of rater to list of dicts
        Columns that rate open answers: for each trial a number for each of some answers.
    skipped : bool array (trials, voters), optional
        Who was not asked; None if all were.
    """

    codes: np.ndarray
    named: list[Label]
    names: tuple[str, ...] | None
    sides: tuple[list[Label], ...] = ()
    skipped: np.ndarray | None = None
    scores: np.ndarray | None = None
    ratings: Mapping[str, list[AnswerRatings]] = field(default_factory=dict)

    @property
    def scored(self) -> bool:
        """True for scores."""
        return self.scores is not None

    @property
    def count(self) -> int:
        """Number of voters or raters."""
        return self.codes.shape[1] if self.scores is None else self.scores.shape[1]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: np.ndarray) -> Ballots:
        named, codes = used_names(self.named, self.codes[rows])
        picked = np.arange(len(self))[rows].tolist()
        return replace(
            self,
            codes=codes,
            named=named,
            sides=tuple([column[t] for t in picked] for column in self.sides),
            skipped=None if self.skipped is None else self.skipped[rows],
            scores=None if self.scores is None else self.scores[rows],
            ratings={name: [column[t] for t in picked] for name, column in self.ratings.items()},
        )

    def without(self, votes: Collection[Label]) -> Ballots:
        """Return the ballots with these votes as abstentions."""
        silent = [c for c, name in enumerate(self.named) if name in votes]
        if not silent:
            return self
        named, codes = used_names(self.named, np.where(np.isin(self.codes, silent), np.int32(NONE), self.codes))
        return replace(self, codes=codes, named=named)

    def renamed(self, names: Mapping[Name, Label]) -> Ballots:
        """Return the ballots with other names for some votes, which may be those of other votes."""
        named = [names.get(name, name) for name in self.named]
        distinct = list(dict.fromkeys(named))
        place = {name: c for c, name in enumerate(distinct)}
        return replace(self, codes=np.array([*map(place.get, named), NONE], np.int32)[self.codes], named=distinct)

    def matched(
        self, known: Collection[Label], abstain: Label | Collection[Label] = None, *, learning: bool = True
    ) -> Ballots:
        """Return the votes as they are meant, given the labels and classes that are known; warn of what was matched.

        Examples
        --------
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     read_ballots([["1.0", "2"], [None, "1"]]).matched([1, 2]).named
        [1, 2]
        """
        if self.scored:
            return self
        ballots, names = self.without(silent_votes(abstain)), Names(known)
        found = names.match(ballots.named, ballots.where, learning=learning)
        if learning and any(vote not in names for vote in ballots.named):
            refuse_ids(ballots.columns, ballots.shown, len(ballots), names.names)
        whole = {name: name for name in names.names if type(name) is int}  # 1.0 in a column with gaps
        found |= {vote: whole[vote] for vote in ballots.named if type(vote) in (float, bool) and vote in whole}
        return ballots.renamed(found) if found else ballots

    @property
    def columns(self) -> list[list[Label]]:
        """The distinct votes of each voter, in the order of their first trials."""
        found = []
        for column in self.codes.T:
            codes, first = np.unique(column, return_index=True)
            found.append([self.named[c] for c in codes[np.argsort(first)].tolist() if c >= 0])
        return found

    @property
    def shown(self) -> list[str]:
        """The columns' names in messages."""
        return list(map(repr, self.names or range(self.count)))

    def where(self, vote: Label) -> str:
        """Return the first place of a vote, for messages."""
        t, i = np.argwhere(self.codes == self.named.index(vote))[0].tolist()
        return f" at trial {t}, voter {self.shown[i]}"

    def voters(self, known: Sequence[str] | None, named: bool) -> tuple[str, ...]:
        """Return the voters after these have joined those known, if any, which came with names if ``named``."""
        count = self.count
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

    def aligned(self, voters: Sequence[str], named: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return codes or scores with a column for each of these voters, and who was asked; absent ones were not."""
        table, silent = (self.codes, NONE) if self.scores is None else (self.scores, 0.0)
        asked = np.ones((len(self), self.count), bool) if self.skipped is None else ~self.skipped
        if self.names is None or not named or self.names == tuple(voters):
            return table, np.pad(asked, ((0, 0), (0, max(0, len(voters) - self.count))))
        places = {name: i for i, name in enumerate(self.names)}
        columns = [places.get(name, self.count) for name in voters]
        absent = np.full((len(self), 1, *table.shape[2:]), silent, table.dtype)
        asked = np.pad(asked, ((0, 0), (0, 1)))
        return np.ascontiguousarray(np.concatenate([table, absent], axis=1)[:, columns]), asked[:, columns]


def read_ballots(votes: Any, by: Sequence[str | int] = (), raters: Collection[str] = ()) -> Ballots:
    """Read votes or scores of any of these forms; the columns ``by``, by name or place, are not voters.

    Nor are columns of dicts from answer to number, and those that are known as ``raters``.

    Examples
    --------
    >>> ballots = read_ballots({"ann": ["x", "y"], "bob": ["x", None]})
    >>> ballots.codes.tolist(), ballots.named
    ([[0, 0], [1, -1]], ['x', 'y'])
    >>> read_ballots([{"ann": "x", "bob": "x"}, {"ann": "y", "bob": None}]).codes.tolist()
    [[0, 0], [1, -1]]
    >>> read_ballots({"ann": [[0.1, 0.9]], "bob": [[0.7, 0.3]]}).scores.shape
    (1, 2, 2)
    >>> read_ballots({"ann": ["x"], "surety": [{"x": 0.9}]}).ratings
    {'surety': [{'x': 0.9}]}
    """
    if isinstance(votes, Ballots):
        return votes
    if isinstance(votes, Mapping):
        return _from_columns(votes, by, raters)
    if hasattr(votes, "column_names") and hasattr(votes, "to_pydict"):  # a table of Arrow
        return _from_columns(votes.to_pydict(), by, raters)
    if isinstance(votes, (str, bytes)) or not hasattr(votes, "__len__"):
        raise TypeError(f"votes must be an array, a DataFrame or lists, got {type(votes).__name__}")
    if not (isinstance(votes, np.ndarray) or hasattr(votes, "columns")):
        votes = list(votes)
        if votes and isinstance(votes[0], Mapping):
            return _from_rows(votes, by, raters)
        innermost = votes[0][0] if votes and _is_row(votes[0]) and len(votes[0]) else None
        if isinstance(innermost, (list, np.ndarray)):
            return _read(checked_scores(votes, 3), None, by)
    table, names = _table(votes)
    return _read(table, None if names is None else _distinct(names), by, raters)


def _from_rows(rows: Sequence[Any], by: Sequence[str | int], raters: Collection[str]) -> Ballots:
    """Read trials as dicts from voter to vote; who is absent from one was not asked."""
    for t, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(f"votes: trial 0 is a dict from voter to vote, and trial {t} is {row!r}; give all alike")
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = np.full((len(rows), len(names)), ..., dtype=object)
    for i, name in enumerate(names):
        table[:, i] = label_array([row.get(name, ...) for row in rows])
    return _read(table, _distinct(names), by, raters)


def _from_columns(columns: Mapping[Name, Sequence[Label]], by: Sequence[str | int], raters: Collection[str]) -> Ballots:
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
        given = ", ".join(f"{name!r} has {block.shape}" for name, block in zip(names, blocks, strict=True))
        raise ValueError(f"votes: the columns must have one shape, but {given}")
    if blocks and blocks[0].ndim == 2:
        return _read(np.stack([block.astype(np.float64) for block in blocks], axis=1), names, by)
    return _read(_objects(list(zip(*map(_plain, columns.values()), strict=True))), names, by, raters)


def _plain(column: Any) -> Any:
    """Return a column as a list or an array; lists of labels stay lists, so that labels keep their type."""
    if hasattr(column, "to_numpy"):
        column = column.to_numpy()
    if isinstance(column, np.ndarray):
        return column if column.ndim != 1 else column.tolist()
    return list(column)


def _distinct(names: Any) -> tuple[str, ...]:
    texts = tuple(str(name) for name in names)
    repeated = next((name for i, name in enumerate(texts) if name in texts[:i]), None)
    if repeated is not None:
        raise ValueError(f"votes: two voters are called {repeated!r}; rename one")
    return texts


def _read(
    table: np.ndarray, names: tuple[str, ...] | None, by: Sequence[str | int], raters: Collection[str] = ()
) -> Ballots:
    """Return a table as ballots, checked, with the columns ``by`` and those of raters separate."""
    if table.ndim not in (2, 3):
        raise ValueError(
            f"votes must be (trials, voters) labels or (trials, raters, classes) scores, got shape {table.shape}; "
            "reshape it"
        )
    if not len(table) or not table.shape[1]:
        raise ValueError(f"votes must have at least one trial and one voter, got shape {table.shape}")
    if table.ndim == 3:
        if by:
            raise ValueError("by= requires votes, got scores; remove by=")
        return _scores(checked_scores(table, 3), names)
    columns = [_place(column, names, table.shape[1]) for column in by]
    sides = tuple(table[:, i].tolist() for i in columns)
    shown = [str(i) for i in range(table.shape[1])] if names is None else names
    rating = [i for i, name in enumerate(shown) if i not in columns and (name in raters or _rates(table[:, i]))]
    if rating and names is None:
        raise ValueError(f"votes: column {rating[0]} rates answers; raters require names: give a dict or a DataFrame")
    ratings = {shown[i]: read_ratings(shown[i], table[:, i].tolist()) for i in rating}
    if columns or rating:
        others = [*columns, *rating]
        rest = [i for i in range(table.shape[1]) if i not in others]
        if not rest:
            given = ", ".join(map(repr, [*by, *ratings]))
            raise ValueError(f"votes have no column besides {given} that may be a voter")
        table, names = table[:, rest], None if names is None else tuple(names[i] for i in rest)
    codes, named, skipped = encode_votes(table, names)
    return Ballots(codes, named, names, sides, skipped, ratings=ratings)


def _rates(column: np.ndarray) -> bool:
    """Return whether the first cell that is not missing is a dict."""
    if column.dtype != object:
        return False
    return isinstance(next((cell for cell in column if cell is not ... and not missing(cell)), None), Mapping)


def read_ratings(rater: str, cells: Sequence[Any]) -> list[AnswerRatings]:
    """Return what a rater says of the answers of each trial, checked; nothing where a cell is missing.

    Examples
    --------
    >>> read_ratings("surety", [{"4": 0.9, "5": None}, None])
    [{'4': 0.9}, {}]
    >>> read_ratings("surety", [0.9])
    Traceback (most recent call last):
    TypeError: votes: 'surety' rates answers, so each cell must be a dict from answer to number; got 0.9 at trial 0
    """
    found: list[AnswerRatings] = []
    for t, cell in enumerate(cells):
        empty = cell is ... or (not isinstance(cell, Mapping) and missing(cell))
        if not empty and not isinstance(cell, Mapping):
            raise TypeError(
                f"votes: {rater!r} rates answers, so each cell must be a dict from answer to number; got {cell!r} at "
                f"trial {t}"
            )
        row: dict[Label, Any] = {} if empty else {answer: value for answer, value in cell.items() if not missing(value)}
        for answer, value in row.items():
            number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            if not number or abs(float(value)) > HUGE:
                raise ValueError(
                    f"votes: {rater!r} must rate answers by numbers of at most {HUGE:g} in magnitude, got {value!r} "
                    f"for {answer!r} at trial {t}"
                )
        found.append({answer: float(value) for answer, value in row.items()})
    return found


def _place(column: str | int, names: tuple[str, ...] | None, count: int) -> int:
    """Return the position of a side column."""
    if names is not None:
        if str(column) not in names:
            raise ValueError(f"votes have no column {column!r}; they have {', '.join(names)}")
        return names.index(str(column))
    if isinstance(column, str):
        raise ValueError(
            f"votes have no column {column!r}, since they came without names; give its place (0 to {count - 1}), "
            "or a DataFrame or dict that names them"
        )
    if not -count <= column < count:
        raise ValueError(f"votes have no column {column}; they have {count}")
    return column % count


def _scores(scores: np.ndarray, names: tuple[str, ...] | None) -> Ballots:
    if np.abs(scores).max() > HUGE:
        t, i = np.argwhere(np.abs(scores) > HUGE)[0, :2].tolist()
        rater = repr(names[i]) if names is not None else i
        raise ValueError(
            f"scores must be at most {HUGE:g} in magnitude, got {np.abs(scores[t, i]).max():g} at trial {t}, rater "
            f"{rater}; scale them down"
        )
    return Ballots(np.zeros((len(scores), 0), np.int32), [], names, scores=scores)
