"""Learning from one shard of data with any model that can be merged.

`learn_rows` is all that a kind of model needs to run on a cluster, next to `state`, `from_state` and a merge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

from linmax.data.names import silent_votes, written
from linmax.io.read_options import Refusals
from linmax.models.fusion import VoteFusion
from linmax.models.streams import StreamModel, stream
from linmax.models.streams.stream_model import weights_of
from linmax.models.vote_table import VoteTable, joined, side_names, vote_columns

__all__ = ["RowCounts", "labels_of_rows", "learn_rows"]

CHOSEN_BY_MODEL = ("model", "grow", "prefetch", "position", "settled", "hash_bits")  # options of `stream`


@dataclass(frozen=True)
class RowCounts:
    """Counts of the rows of one shard."""

    trials: int
    mistakes: int
    updates: int
    unlabelled: int
    refused: int  # rows that could not be read
    first_refused: str = ""  # the first of these rows, and the reason
    notes: list[str] = field(default_factory=list)  # about the columns
    strange: list[Any] = field(default_factory=list)  # votes that name none of the given classes, and how often

    @property
    def rows(self) -> int:
        """Number of rows, including those that could not be read."""
        return self.trials + self.unlabelled + self.refused


@singledispatch
def learn_rows(model: Any, rows: Any, /, **reading: Any) -> RowCounts:  # noqa: ARG001
    """Learn from rows, once, in their order; None checks the options of reading alone.

    Examples
    --------
    >>> counts = learn_rows(StreamModel("perceptron"), ["1 1:1", "2 2:1", "1 1:1"] * 10)
    >>> counts.trials, counts.mistakes
    (30, 4)
    >>> learn_rows(VoteFusion(), {"ann": ["x", "y"], "bob": ["x", "x"], "label": ["x", None]}).unlabelled
    1
    """
    raise TypeError(f"learner must be a rule, a pool or a VoteFusion, got {type(model).__name__}")


@learn_rows.register
def _(model: StreamModel, rows: Any, /, **reading: Any) -> RowCounts:
    for name in CHOSEN_BY_MODEL:
        if name in reading:
            raise ValueError(f"{name} cannot be chosen for shards; remove it")
    trials, mistakes, unlabelled, updates = 0, 0, 0, model.updates
    batches = stream([] if rows is None else rows, model=model, prefetch=False, **reading)
    if rows is None:
        return RowCounts(0, 0, 0, 0, 0)
    for batch in batches:
        labelled = batch.codes >= 0
        predicted = model._play(model._scaled(batch), batch.codes, weights_of(batch))
        trials += int(labelled.sum())
        mistakes += int((predicted != batch.codes)[labelled].sum())
        unlabelled += int((~labelled).sum())
    refused = batches.refusals
    _refuse_unreadable(refused, trials + unlabelled)
    return RowCounts(
        trials, mistakes, model.updates - updates, unlabelled, refused.total, _first(refused), list(batches.notes)
    )


@learn_rows.register
def _(
    model: VoteFusion,
    rows: Any,
    /,
    *,
    label: str | None = None,
    ignore: Sequence[str] = (),
    format: str | None = None,
    strict: bool = False,
    classes: Sequence[Any] | None = None,
) -> RowCounts:
    if isinstance(ignore, str):
        raise TypeError(f"ignore must be a list of columns, got {ignore!r}; try {[ignore]!r}")
    if rows is None:
        return RowCounts(0, 0, 0, 0, 0)
    before, strange = _fusion_counts(model), Counter[Any]()
    if isinstance(rows, tuple) and len(rows) == 2:
        (votes, labels), refused = rows, Refusals()
    else:
        table = _table(rows, label, ignore, format, strict, side_names(model))
        refused, fixed = table.refusals, list(model.classes or ())
        stated = model.answers == "open" or model.key is not None
        table.open = model.is_open if model.__sklearn_is_fitted__() else stated
        scored = None if table.open else table.rated()
        if table.open:
            table.take_ratings(confidences=False)
        elif scored is not None:
            model.classes = fixed or sorted(scored[1])  # one shard may not contain all of them as labels
            table.take_scores(scored, model.classes)
        else:
            table.match([*fixed, *(classes or ()), *silent_votes(model.abstain)])
            if classes is not None:
                strange = table.leave_out({*classes, *silent_votes(model.abstain)})
        spelled = {written(name): name for name in model.classes or ()}
        votes, labels = table.rows(), [spelled.get(written(cell), cell) for cell in table.labels]
    if len(labels):
        model.partial_fit(votes, labels)
    trials, mistakes, updates = (now - then for now, then in zip(_fusion_counts(model), before, strict=True))
    unlabelled = len(labels) - trials
    return RowCounts(
        trials, mistakes, updates, unlabelled, refused.total, _first(refused), [], [*map(list, strange.items())]
    )


def labels_of_rows(
    rows: Any, label: str | None = None, ignore: Sequence[str] = (), format: str | None = None, strict: bool = False
) -> list[Any]:
    """Return the distinct labels of a table of votes.

    Examples
    --------
    >>> labels_of_rows({"ann": ["x", "y"], "label": ["x", None]})
    ['x']
    """
    labels = _table(rows, label, ignore, format, strict).labels
    return list(dict.fromkeys(cell for cell in labels if cell is not None))


def _table(
    rows: Any, label: str | None, ignore: Sequence[str], format: str | None, strict: bool, by: Sequence[str] = ()
) -> VoteTable:
    """Return a table of votes with labels, whose columns are there."""
    read = joined(["the table"], [vote_columns(rows, [str(name) for name in ignore], format, strict)])
    _refuse_unreadable(read.refusals, len(read.lines))
    for name in map(str, ignore):
        if name not in read.left_out:
            raise ValueError(f"the table has no column {name!r}; it has {', '.join(read.columns)}")
    table = VoteTable.of("the table", read, None if label is None else str(label), [str(name) for name in by])
    if table.label is None and table.by_item is None:
        raise ValueError("no column is called label, truth or answer; pass the column of labels as label")
    return table


def _refuse_unreadable(refused: Refusals, rows: int) -> None:
    if refused.total and not rows:
        raise ValueError(f"not one of {refused.total:,} lines could be read; {_first(refused)}")


def _first(refused: Refusals) -> str:
    return "".join(f"{name}, line {line}: {reason}" for name, line, reason in refused.first[:1])


def _fusion_counts(fusion: VoteFusion) -> tuple[int, int, int]:
    if not fusion.__sklearn_is_fitted__():
        return 0, 0, 0
    return fusion._current_model.trials, fusion._current_model.mistakes, fusion._current_model.updates
