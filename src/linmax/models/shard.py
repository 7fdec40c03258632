"""Learning from one shard of data with any model that can be merged.

`learn_rows` is all that a kind of model needs to run on a cluster, next to `state`, `from_state` and a merge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import numpy as np

from linmax.data.blocks import missing, silent_votes
from linmax.data.matching import written
from linmax.data.score_columns import rated_columns
from linmax.io.options import Refusals
from linmax.io.reader import read_table
from linmax.io.schema import LABEL_NAMES, label_of
from linmax.models.fusion import VoteFusion
from linmax.models.streams import StreamModel, stream
from linmax.models.streams.model import weights_of

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
        predicted = model.play(model.scaled(batch), batch.codes, weights_of(batch))
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
        columns, refused = _table(rows, ignore, format, strict)
        votes, labels = _trials(columns, label, model)
        if classes is not None and isinstance(next(iter(votes.values())), list):
            strange = _abstain_elsewhere(votes, {*classes, *silent_votes(model.abstain)}, model.by or ())
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
    columns, _ = _table(rows, ignore, format, strict)
    return list(dict.fromkeys(cell for cell in columns[_label_of(columns, label)] if not missing(cell)))


def _abstain_elsewhere(votes: dict[str, Any], known: Collection[Any], sides: Collection[Any]) -> Counter[Any]:
    """Replace votes that name nothing known by abstentions; return how often each was there."""
    meant, strange = {written(name): name for name in known}, Counter[Any]()
    for name in votes:
        if name not in sides:
            cells = [None if missing(cell) else cell for cell in votes[name]]
            strange.update(cell for cell in cells if cell is not None and written(cell) not in meant)
            votes[name] = [cell if cell is None else meant.get(written(cell)) for cell in cells]
    return strange


def _refuse_unreadable(refused: Refusals, rows: int) -> None:
    if refused.total and not rows:
        raise ValueError(f"not one of {refused.total:,} lines could be read; {_first(refused)}")


def _first(refused: Refusals) -> str:
    return "".join(f"{name}, line {line}: {reason}" for name, line, reason in refused.first[:1])


def _fusion_counts(fusion: VoteFusion) -> tuple[int, int, int]:
    if not fusion.__sklearn_is_fitted__():
        return 0, 0, 0
    return fusion.model.trials, fusion.model.mistakes, fusion.model.updates


def _table(rows: Any, ignore: Sequence[str], format: str | None, strict: bool) -> tuple[dict[str, Any], Refusals]:
    """Return the columns of a table of votes, without those to ignore, and the lines that could not be read."""
    ignored, refused = [str(name) for name in ignore], Refusals()
    if isinstance(rows, str) or hasattr(rows, "read"):
        table = read_table(rows, format, ignored, strict)
        columns, refused, names = dict(table.columns), table.refusals, {*table.columns, *table.left_out}
        _refuse_unreadable(refused, len(table.lines))
    else:
        columns = _columns(rows)
        names = set(columns)
    for name in ignored:
        if name not in names:
            raise ValueError(f"there is no column {name!r} to ignore among {', '.join(columns)}")
    return {name: cells for name, cells in columns.items() if name not in ignored}, refused


def _columns(rows: Any) -> dict[str, Any]:
    """Return the columns of what is not a file: a mapping, a frame, an Arrow table, or several Arrow tables."""
    if isinstance(rows, Mapping):
        return {str(name): cells for name, cells in rows.items()}
    if hasattr(rows, "to_pydict"):
        return dict(rows.to_pydict())
    if hasattr(rows, "columns"):
        return {str(name): np.array(rows[name], dtype=object) for name in rows.columns}
    found: dict[str, list[Any]] = {}
    for table in rows if isinstance(rows, Iterable) else [rows]:
        if not hasattr(table, "to_pydict"):
            raise TypeError(f"votes must be a file, a table, or a pair (votes, y), got {type(rows).__name__}")
        for name, cells in table.to_pydict().items():
            found.setdefault(name, []).extend(cells)
    return found


def _trials(columns: dict[str, Any], label: str | None, fusion: VoteFusion) -> tuple[Any, Sequence[Any]]:
    """Return votes, or scores from columns ``rater:class``, and labels."""
    labels = columns.pop(_label_of(columns, label))
    rated = rated_columns("the table", columns) if fusion.by is None else None
    if rated is not None and fusion.classes is None:  # one shard may not contain all of them as labels
        fusion.classes = sorted(rated[1])
    as_text = fusion.classes is not None and all(isinstance(name, str) for name in fusion.classes)
    labels = [_label(cell, as_text) for cell in labels]
    if rated is None:
        silent = {str(vote): vote for vote in silent_votes(fusion.abstain)}
        return {
            name: list(cells)
            if name in (fusion.by or ())
            else [silent[str(cell)] if str(cell) in silent else _label(cell, as_text) for cell in cells]
            for name, cells in columns.items()
        }, labels
    tables, classes = rated
    assert fusion.classes is not None
    absent = [str(name) for name in fusion.classes if str(name) not in classes]
    if absent:
        raise ValueError(f"there are no scores of the class {absent[0]!r} among {', '.join(columns)}")
    places = [classes.index(str(name)) for name in fusion.classes]
    return {rater: table[:, places] for rater, table in tables.items()}, labels


def _label(cell: Any, as_text: bool) -> Any:
    """Return a cell as a label: a number as text where classes are text."""
    if not as_text or isinstance(cell, str):
        return cell
    return None if missing(cell) else written(cell)


def _label_of(columns: Mapping[str, Any], given: str | None) -> str:
    label = label_of(columns, None if given is None else str(given))
    if label is None:
        raise ValueError(f"no column is called {' or '.join(LABEL_NAMES)}; pass the column of labels as label")
    if label not in columns:
        raise ValueError(f"there is no column {label!r} among {', '.join(columns)}")
    return label
