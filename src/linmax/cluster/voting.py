"""Fusions of votes as models that learn from shards: tables with a column for each voter, and one of labels."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linmax.cluster.addresses import TableFile, opened
from linmax.cluster.differences import StateDifference
from linmax.cluster.model_states import IS_ESTIMATOR, model_of, state_of
from linmax.cluster.shards import Refused, ShardCounts, State, why
from linmax.data.blocks import missing
from linmax.data.matching import written
from linmax.data.score_columns import rated_columns
from linmax.io.reader import ReadTable, read_table
from linmax.io.refusals import Refusals
from linmax.io.schema import LABEL_NAMES, label_of
from linmax.models.fusion import OnLineFusion, side_columns
from linmax.util.checks import one_of

__all__ = ["HeldFusion", "checked_votes_reading", "label_among", "table_of_votes"]

Columns = dict[str, Any]
TABLE_OPTIONS = ("label", "ignore", "format", "others", "strict")
OTHERS = ("refuse", "abstain")  # what votes for other classes than the fusion's are


def checked_votes_reading(reading: Mapping[str, Any] | None) -> dict[str, Any]:
    """Options of reading tables of votes as a dict, refused if they are none."""
    options = dict(reading or {})
    for name in options:
        if name not in TABLE_OPTIONS:
            raise TypeError(f"reading: tables of votes have no option {name!r}; there are {', '.join(TABLE_OPTIONS)}")
    ignored = options.get("ignore", ())
    if isinstance(ignored, str):
        raise TypeError(f"reading: ignore must be a list of columns, got {ignored!r}; try {[ignored]!r}")
    one_of("others", options.get("others", OTHERS[0]), OTHERS)
    return options


class HeldFusion:
    """The fusion from which pass ``number`` starts; what `linmax.cluster.held.Held` is for stream models."""

    def __init__(self, number: int, state: State) -> None:
        self.number, self.state = number, state

    def advance(self, mixed: Any) -> None:
        """Go on to the next pass, which starts from what was mixed in this one."""
        self.number += 1
        self.state = mixed.applied(self.state) if isinstance(mixed, StateDifference) else mixed

    def looked_at(self) -> OnLineFusion:
        """The fusion, not to be changed."""
        return self.made(self.state)

    def made(self, state: Any) -> OnLineFusion:
        """A fusion from its state, or from how that differs from this one."""
        whole: State = state.applied(self.state) if isinstance(state, StateDifference) else state
        found = model_of(whole, at_work=True)
        assert isinstance(found, OnLineFusion)
        return found

    def state_of(self, fusion: OnLineFusion) -> State:
        """Its state, of the kind that this one is."""
        description, arrays = state_of(fusion)
        return description | {IS_ESTIMATOR: self.state[0][IS_ESTIMATOR]}, arrays

    def learn(self, source: Any, reading: Mapping[str, Any], by_rows: bool) -> tuple[State, ShardCounts] | Refused:  # noqa: ARG002
        """Go through one shard, once."""
        began, fusion = time.perf_counter(), self.looked_at()
        before = _counts(fusion)
        try:
            votes, labels, refusals = _trials(source, reading, fusion)
            if len(labels):
                fusion.partial_fit(votes, labels)
        except (ValueError, TypeError, OverflowError, OSError, ImportError) as error:
            return Refused(why(error))
        trials, updates, mistakes = (now - then for now, then in zip(_counts(fusion), before, strict=True))
        spent = time.perf_counter() - began
        refused = "".join(f"{file}, line {line}: {reason}" for file, line, reason in refusals.first[:1])
        unlabelled = len(labels) - trials
        counts = ShardCounts(trials, mistakes, updates, unlabelled, refusals.total, spent, refused)
        return self.state_of(fusion), counts


def _counts(fusion: OnLineFusion) -> tuple[int, int, int]:
    state = getattr(fusion, "_state", None)
    return (0, 0, 0) if state is None else (state.model.trials, state.model.updates, state.model.mistakes)


def _trials(source: Any, reading: Mapping[str, Any], fusion: OnLineFusion) -> tuple[Any, Sequence[Any], Refusals]:
    """Votes or scores, and labels, of a shard, and the lines that could not be read."""
    if isinstance(source, tuple) and len(source) == 2:
        return *source, Refusals()
    table = table_of_votes(source, reading)
    voters, labels = _votes_of(dict(table.columns), reading, fusion)
    return voters, labels, table.refusals


def _votes_of(columns: Columns, reading: Mapping[str, Any], fusion: OnLineFusion) -> tuple[Any, Sequence[Any]]:
    """Votes or scores, and labels."""
    labels = columns.pop(label_among(columns, reading))
    voters = columns
    rated = rated_columns("the table", voters) if fusion.by is None else None
    if rated is None:
        if fusion.classes is not None and reading.get("others") == "abstain":
            return _without_others(voters, fusion), labels
        return {name: list(cells) for name, cells in voters.items()}, labels
    tables, classes = rated
    if fusion.classes is None:  # a shard may not have them all as labels: they are called as the columns are
        fusion.classes = sorted(classes)
        labels = [None if missing(one) else written(one) for one in labels]
    absent = [str(name) for name in fusion.classes if str(name) not in classes]
    if absent:
        raise ValueError(f"there are no scores of the class {absent[0]!r} among {', '.join(columns)}")
    places = [classes.index(str(name)) for name in fusion.classes]
    return {rater: table[:, places] for rater, table in tables.items()}, labels


def _without_others(voters: Columns, fusion: OnLineFusion) -> Columns:
    """Votes, those that name no class left out; side columns as they are."""
    by = {str(name) for name in side_columns(fusion.by)}
    meant = {written(name): name for name in reversed(list(fusion.classes or ()))}
    known = set(fusion.classes or ())

    def vote(cell: Any) -> Any:
        if missing(cell):
            return None
        return cell if cell in known else meant.get(written(cell))

    return {name: list(cells) if name in by else [vote(cell) for cell in cells] for name, cells in voters.items()}


def label_among(columns: Columns, reading: Mapping[str, Any]) -> str:
    """The column of labels: the one that is named, or the first with a usual name."""
    named = reading.get("label")
    if named is not None:
        if str(named) not in columns:
            raise ValueError(f"there is no column {str(named)!r} among {', '.join(columns)}")
        return str(named)
    found = label_of(columns)
    if found is None:
        raise ValueError(f"no column is called {' or '.join(LABEL_NAMES)}; name that of the labels by label")
    return found


def table_of_votes(source: Any, reading: Mapping[str, Any]) -> ReadTable:
    """The columns of a shard by name, without those to ignore, which must be there; and lines that cannot be read."""
    ignored = [str(name) for name in reading.get("ignore", ())]
    if isinstance(source, str):
        with opened(source) as file:
            table = read_table(file, reading.get("format"), ignored, bool(reading.get("strict", False)))
        if not table.lines and table.refusals.total:
            name, line, reason = table.refusals.first[0]
            raise ValueError(f"not one of {table.refusals.total:,} lines could be read; {name}, line {line}: {reason}")
    else:
        found = _columns_of(source)
        kept = {name: cells for name, cells in found.items() if name not in ignored}
        table = ReadTable(kept, [], Refusals(), found.keys() - kept.keys(), {})
    for name in ignored:
        if name not in table.left_out:
            raise ValueError(f"there is no column {name!r} to ignore among {', '.join(table.columns)}")
    return table


def _columns_of(source: Any) -> Columns:
    """The columns by name of what is not a file of lines."""
    if isinstance(source, TableFile):
        with opened(source) as file:
            return _joined(file)
    if isinstance(source, Mapping):
        return {str(name): cells for name, cells in source.items()}
    if hasattr(source, "to_pydict"):  # a table of Arrow
        return dict(source.to_pydict())
    if hasattr(source, "columns"):  # a frame of pandas or polars
        return {str(name): np.array(source[name], dtype=object) for name in source.columns}
    raise TypeError(f"a shard of votes must be a file, a table, or a pair (votes, y), got {type(source).__name__}")


def _joined(tables: Any) -> Columns:
    """The columns of several tables of Arrow, one after the other."""
    found: dict[str, list[Any]] = {}
    for table in tables:
        for name, cells in table.to_pydict().items():
            found.setdefault(name, []).extend(cells)
    return found
