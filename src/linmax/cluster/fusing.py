"""Fusion at scale: models score the shards in parallel, and a fusion learns from the scores in the order of the stream.

Scoring is nearly all of the work, and its order does not matter. Only the fusion, a learner over a few numbers a trial,
is sequential.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from linmax.cluster.addresses import opened
from linmax.cluster.dask_workers import workers_of
from linmax.cluster.shards import Refused, ShardError, State, shards_of
from linmax.cluster.workers import TaskOutcome
from linmax.models.fusion.estimator import VoteFusion
from linmax.models.online import Learner
from linmax.models.streams import StreamModel, stream
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
    _refuse_failed([part.name for part in parts], outcomes)
    return _learn([outcome.result for outcome in outcomes], list(models), learner)


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


Scores = tuple[list[list[str]], list[np.ndarray], list[str]]  # classes and scores of each model, and labels


def score_shard(
    models: Mapping[str, Told], source: Any, reading: Mapping[str, Any], place: str | None
) -> Scores | str | Refused:
    """The scores of each model for the labelled rows of a shard, or the path at which they are stored."""
    try:
        classes, tables, labels = [], [], None
        for told in models.values():
            model = _opened(told)
            named, table, labels = _scores(model, source, reading)
            classes.append(named)
            tables.append(table)
    except (ValueError, TypeError, OverflowError, FileNotFoundError) as error:
        return Refused(" ".join(str(error).split()))
    if place is None:
        return classes, tables, labels or []
    arrays = {f"model{i}": table for i, table in enumerate(tables)}
    files.write(place, SCORES, {"classes": classes, "labels": labels or []}, arrays)
    return place


def _scores(
    model: StreamModel | Learner, source: Any, reading: Mapping[str, Any]
) -> tuple[list[str], np.ndarray, list[str]]:
    known = [str(name) for name in (model.classes if isinstance(model, StreamModel) else model.known)]
    tables, labels = [np.zeros((0, len(known)))], []
    given: dict[str, Any] = {"model": model, "grow": False} if isinstance(model, StreamModel) else {}
    with opened(source) as file:
        for batch in stream(file, prefetch=False, **given, **reading):
            keep = batch.codes >= 0
            labels += batch.labels[keep].tolist()
            if isinstance(model, StreamModel):
                tables.append(model.scores(batch)[keep])
            else:
                rows = [list(model.scores(row).values()) for row, kept in zip(batch.dicts(), keep, strict=True) if kept]
                tables.append(np.array(rows, float).reshape(-1, len(known)))
    return known, np.concatenate(tables), labels


def _refuse_failed(names: Sequence[str], outcomes: Sequence[TaskOutcome]) -> None:
    failed = {}
    for name, outcome in zip(names, outcomes, strict=True):
        why = outcome.result.reason if isinstance(outcome.result, Refused) else outcome.error
        if why:
            failed[name] = why
    if failed:
        told = "; ".join(f"{name}: {why}" for name, why in list(failed.items())[:5])
        raise ShardError(f"{len(failed)} of {len(names)} shards could not be scored: {told}", failed)


def _read(result: Scores | str) -> Scores:
    if not isinstance(result, str):
        return result
    description, arrays = files.read(result, SCORES)
    return description["classes"], [arrays[f"model{i}"] for i in range(len(arrays))], description["labels"]


def _learn(results: Sequence[Scores | str], names: Sequence[str], learner: Any) -> VoteFusion:
    """Learn from the scores, shard by shard; all classes are collected first, so that rows have the same columns."""
    everyone = sorted({name for result in results for part in _classes(result) for name in part})
    place = {name: i for i, name in enumerate(everyone)}
    fusion = VoteFusion(learner, classes=everyone)
    for result in results:
        classes, tables, labels = _read(result)
        if not labels:
            continue
        columns = {}
        for name, known, table in zip(names, classes, tables, strict=True):
            # A class that a model does not know must not win by a 0.
            columns[name] = np.repeat(table.min(axis=1, initial=0.0, keepdims=True), len(everyone), axis=1)
            columns[name][:, [place[label] for label in known]] = table
        fusion.partial_fit(columns, labels)
    return fusion


def _classes(result: Scores | str) -> list[list[str]]:
    classes, _, labels = _read(result)
    return [*classes, labels]
