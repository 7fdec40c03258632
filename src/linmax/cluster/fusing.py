"""Fusion at scale: models score the shards in parallel, and a fusion learns from the scores in the order of the stream.

Scoring is nearly all of the work, and its order does not matter. Only the fusion, a learner over a few numbers a trial,
is sequential.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linmax.cluster.addresses import opened
from linmax.cluster.dask_workers import workers_of
from linmax.cluster.results import told_refused
from linmax.cluster.shards import Refused, ShardError, State, shards_of
from linmax.cluster.workers import TaskOutcome
from linmax.models.online import Learner
from linmax.models.streams import StreamModel, stream
from linmax.models.vote_fusion import VoteFusion
from linmax.util import files

__all__ = ["fuse"]

SCORES = "scores"


def fuse(
    models: Mapping[str, Any],
    shards: Any,
    *,
    learner: Any = "auto",
    client: Any = None,
    store: str | os.PathLike[str] | None = None,
    reading: Mapping[str, Any] | None = None,
) -> VoteFusion:
    """Score shards with trained models in parallel, then learn to fuse them, on-line and in order.

    Parameters
    ----------
    models
        By name: `linmax.streams.StreamModel` or `linmax.Learner` objects, or files of stream models that the workers
        can read. They only predict.
    shards
        As in `linmax.cluster.fit`, in the order of the stream.
    learner
        What learns to fuse.
    client
        A ``distributed.Client``; without one all is done in this process, with the same result.
    store
        A folder for the scores that all workers can reach; without one the scores are sent to this process at once.
    reading
        Options of `linmax.stream`.

    Returns
    -------
    The `linmax.VoteFusion`, whose ``report()`` compares it with the best model alone.

    Warns
    -----
    UserWarning
        Rows could not be read; the others were learned from.

    See Also
    --------
    linmax.VoteFusion : what is learned here, in one process.

    Examples
    --------
    >>> import linmax
    >>> lines = ["1 1:1", "2 2:1", "1 1:1 3:1", "2 2:1 3:1"] * 25
    >>> one = linmax.cluster.fit("perceptron", [lines]).model
    >>> other = linmax.cluster.fit("winnow(1.5)", [lines[:2]]).model
    >>> fusion = linmax.cluster.fuse({"one": one, "other": other}, [lines[:50], lines[50:]], learner="winnow(1.1)")
    >>> report = fusion.report()
    >>> report.online.accuracy["fusion"] >= report.online.accuracy["best_voter"] - 0.02
    True
    """
    if not isinstance(models, Mapping) or not models:
        raise TypeError(f"models must be a dict of models by name, got {models!r}; try {{'a': model}}")
    states = {name: _told(name, model) for name, model in models.items()}
    parts = shards_of(shards)
    folder = None if store is None else Path(store)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    workers = workers_of(client)
    given = workers.keep(states)
    places = [None if folder is None else str(folder / f"part-{i}.linmax") for i in range(len(parts))]
    sources = workers.hold([part.source for part in parts], often=False)
    tasks = [
        workers.submit(score_shard, given, source, dict(reading or {}), place, name=f"scores{i}")
        for i, (source, place) in enumerate(zip(sources, places, strict=True))
    ]
    outcomes = workers.gather(tasks)
    names, results = [part.name for part in parts], [outcome.result for outcome in outcomes]
    _refuse_failed(names, outcomes)
    fusion = _learn(results, list(models), learner)
    _warn_of_refused(names, results)
    return fusion


Told = tuple[str, State] | str


def _told(name: str, model: Any) -> Told:
    """A model in a form that can be sent."""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model)
    if isinstance(model, (StreamModel, Learner)):
        return type(model).__name__, model.state()
    raise TypeError(f"models: {name!r} must be a stream model, a Learner or the file of one, got {model!r}")


def _opened(told: Told) -> StreamModel | Learner:
    if isinstance(told, str):
        return StreamModel.load(told)
    return StreamModel.from_state(*told[1]) if told[0] == "StreamModel" else Learner.from_state(*told[1])


class Scored(NamedTuple):
    """What models make of the rows of a shard that have labels."""

    classes: list[list[str]]  # of each model
    tables: list[np.ndarray]  # and its scores
    labels: list[str]
    refused: int = 0  # rows that could not be read
    first_refused: str = ""


def score_shard(
    models: Mapping[str, Told], source: Any, reading: Mapping[str, Any], place: str | None
) -> Scored | str | Refused:
    """The scores of each model for the labelled rows of a shard, or the path at which they are stored."""
    try:
        parts = {name: _scores(_opened(told), source, reading) for name, told in models.items()}
        _refuse_other_rows({name: lines for name, (_, lines) in parts.items()})
    except (ValueError, TypeError, OverflowError, FileNotFoundError) as error:
        return Refused(" ".join(str(error).split()))
    scored = [one for one, _ in parts.values()]
    found = scored[0]._replace(classes=[one.classes[0] for one in scored], tables=[one.tables[0] for one in scored])
    if place is None:
        return found
    arrays = {f"model{i}": table for i, table in enumerate(found.tables)}
    files.write(place, SCORES, {name: value for name, value in found._asdict().items() if name != "tables"}, arrays)
    return place


def _refuse_other_rows(lines: Mapping[str, list[int]]) -> None:
    """Models may read columns differently; a row that one of them cannot read would shift the scores of the others."""
    first, own = next(iter(lines.items()))
    for name, others in lines.items():
        if others != own:
            row = min(set(others) ^ set(own))
            alone = first if row in own else name
            raise ValueError(f"of the models {first!r} and {name!r} only {alone!r} can read row {row}; put it right")


def _scores(model: StreamModel | Learner, source: Any, reading: Mapping[str, Any]) -> tuple[Scored, list[int]]:
    """What one model makes of a shard, and the lines with labels that it has read."""
    known = [str(name) for name in (model.classes if isinstance(model, StreamModel) else model.known)]
    tables, labels, lines = [np.zeros((0, len(known)))], [], []
    given: dict[str, Any] = {"model": model, "grow": False} if isinstance(model, StreamModel) else {}
    with opened(source) as file:
        read = stream(file, prefetch=False, **given, **reading)
        for batch in read:
            keep = batch.codes >= 0
            labels += batch.labels[keep].tolist()
            lines += batch.lines[keep].tolist()
            if isinstance(model, StreamModel):
                tables.append(model.scores(batch)[keep])
            else:
                rows = [list(model.scores(row).values()) for row, kept in zip(batch.dicts(), keep, strict=True) if kept]
                tables.append(np.array(rows, float).reshape(-1, len(known)))
    refused = "".join(f"{name}, line {line}: {reason}" for name, line, reason in read.refusals.first[:1])
    return Scored([known], [np.concatenate(tables)], labels, read.refusals.total, refused), lines


def _refuse_failed(names: Sequence[str], outcomes: Sequence[TaskOutcome]) -> None:
    failed = {}
    for name, outcome in zip(names, outcomes, strict=True):
        why = outcome.result.reason if isinstance(outcome.result, Refused) else outcome.error
        if why:
            failed[name] = why
    if failed:
        told = "; ".join(f"{name}: {why}" for name, why in list(failed.items())[:5])
        raise ShardError(f"{len(failed)} of {len(names)} shards could not be scored: {told}", failed)


def _read(result: Scored | str) -> Scored:
    if not isinstance(result, str):
        return result
    description, arrays = files.read(result, SCORES)
    return Scored(tables=[arrays[f"model{i}"] for i in range(len(arrays))], **description)


def _learn(results: Sequence[Scored | str], names: Sequence[str], learner: Any) -> VoteFusion:
    """Learn from the scores, shard by shard; all classes are collected first, so that rows have the same columns."""
    everyone = sorted({name for result in results for part in _classes(result) for name in part})
    place = {name: i for i, name in enumerate(everyone)}
    fusion = VoteFusion(learner, classes=everyone)
    for result in results:
        scored = _read(result)
        if not scored.labels:
            continue
        columns = {}
        for name, known, table in zip(names, scored.classes, scored.tables, strict=True):
            # A class that a model does not know must not win by a 0.
            columns[name] = np.repeat(table.min(axis=1, initial=0.0, keepdims=True), len(everyone), axis=1)
            columns[name][:, [place[label] for label in known]] = table
        fusion.partial_fit(columns, scored.labels)
    return fusion


def _classes(result: Scored | str) -> list[list[str]]:
    scored = _read(result)
    return [*scored.classes, scored.labels]


def _warn_of_refused(names: Sequence[str], results: Sequence[Scored | str]) -> None:
    told = {name: scored for name, scored in zip(names, map(_read, results), strict=True) if scored.refused}
    if told:
        refused = {name: scored.refused for name, scored in told.items()}
        warnings.warn(told_refused(refused, next(iter(told.values())).first_refused), stacklevel=3)
