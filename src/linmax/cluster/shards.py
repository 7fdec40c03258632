"""Shards of data, and the task that learns from one: it takes a model and returns a model and counts."""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from linmax.cluster.unions import begins_with
from linmax.data.arrays import Layout
from linmax.engine.engine import Engine, Settings
from linmax.io.frames import is_table
from linmax.io.vocabulary import Vocabulary
from linmax.models.streams import StreamModel, stream
from linmax.models.streams.model import weights_of
from linmax.rules import REGISTRY
from linmax.rules.quasi_additive import LINKS

__all__ = ["Refused", "Shard", "ShardCounts", "ShardError", "learn_shard", "refuse_untold", "same_names", "shards_of"]

State = tuple[dict[str, Any], dict[str, np.ndarray]]
PATTERN = frozenset("*?[")


class ShardError(ValueError):
    """Some shards could not be learned from; ``shards`` says which, and why.

    Attributes
    ----------
    shards : dict from str to str
        The reason for each shard that failed.

    See Also
    --------
    fit : raises it once all other shards are done.

    Examples
    --------
    >>> import linmax
    >>> try:
    ...     linmax.cluster.fit("perceptron", [["1 1:1"], ["no label:here"]], reading={"strict": True})
    ... except linmax.cluster.ShardError as error:
    ...     print(len(error.shards))
    1
    """

    def __init__(self, message: str, shards: Mapping[str, str]) -> None:
        super().__init__(message)
        self.shards = dict(shards)


@dataclass(frozen=True)
class Shard:
    """A part of the data by name: a file that the workers can read, or the rows themselves."""

    name: str
    source: Any

    @property
    def fingerprint(self) -> list[int] | None:
        """Size and time of the last change of a file that can be seen from here, to know it again."""
        if not isinstance(self.source, str) or not os.path.isfile(self.source):
            return None
        found = os.stat(self.source)
        return [found.st_size, found.st_mtime_ns]


@dataclass(frozen=True)
class ShardCounts:
    """What happened in one shard in one pass."""

    trials: int
    mistakes: int
    updates: int
    unlabelled: int
    refused: int  # lines that could not be read
    seconds: float


@dataclass(frozen=True)
class Refused:
    """The shard cannot be learned from, and trying again would not help."""

    reason: str


def shards_of(given: Any) -> list[Shard]:
    """Shards from paths, patterns, frames, pairs (X, y), lists of lines, and the partitions of Dask collections."""
    if isinstance(given, (str, os.PathLike)) or is_table(given) or hasattr(type(given), "to_delayed"):
        given = [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"shards must be a list of files or tables, or a Dask collection, got {given!r}")
    found: list[Shard] = []
    for item in given:
        if hasattr(type(item), "to_delayed"):  # of the type: a delayed object claims to have every attribute
            parts = np.ravel(np.array(item.to_delayed(), dtype=object)).tolist()
            found += [Shard(f"partition {place}", part) for place, part in enumerate(parts, len(found))]
        elif isinstance(item, (str, os.PathLike)):
            found += [Shard(path, path) for path in _paths(os.fspath(item))]
        else:
            found.append(Shard(f"shard {len(found)}", item))
    if not found:
        raise ValueError("shards must hold at least one shard, got none")
    return found


def _paths(path: str) -> Sequence[str]:
    if not PATTERN & set(path) or os.path.exists(path):
        return [path]
    found = sorted(glob.glob(path))
    if not found:
        raise ValueError(f"shards: no file matches {path}")
    return found


def refuse_untold(learner: Any) -> None:
    """Refuse your own rules: workers get the learner as text, and cannot look such a rule up."""
    for run in Engine(learner, Layout(0, 0, 0, 0, 1.0), 0, Settings(discover=True)).runs:
        own = run.rule.name.replace("_", "-") not in REGISTRY or run.rule.parameters.get("link", "exp") not in LINKS
        if own:
            raise ValueError(f"{run.rule} is of your own making, which the workers do not know; use a built-in rule")


def same_names(state: State, known: Vocabulary) -> bool:
    """Whether a state has these names, and no others."""
    own, others = _names(state), known.arrays()
    return state[0]["hash_bits"] == known.bits and begins_with(own, others) and begins_with(others, own)


def _names(state: State) -> dict[str, np.ndarray]:
    return {part: state[1][f"names.{part}"] for part in ("names", "offsets")}


_met: list[Vocabulary] = []  # at most one: a vocabulary that a task of this process has left unchanged


def names_of(state: State) -> Vocabulary:
    """The vocabulary of a state; reuses that of the last task, with its lookup table, if the names are the same."""
    with suppress(IndexError):  # another thread may have them
        met = _met.pop()
        if same_names(state, met):
            return met
    return Vocabulary.from_arrays(_names(state), state[0]["hash_bits"])


def learn_shard(state: State, source: Any, reading: Mapping[str, Any]) -> tuple[State, ShardCounts] | Refused:
    """Continue from a state through one shard, once. Depends on its arguments alone and does not change them."""
    started = time.perf_counter()
    try:
        model = StreamModel.from_state(*state, names_of(state))
        names = len(model.vocabulary)
        trials = mistakes = unlabelled = 0
        updates = model.updates
        rows = stream(source, model=model, prefetch=False, **reading)
        for batch in rows:
            labelled = batch.codes >= 0
            predicted = model.play(model.scaled(batch), batch.codes, weights_of(batch))
            trials += int(labelled.sum())
            mistakes += int((predicted[labelled] != batch.codes[labelled]).sum())
            unlabelled += len(batch) - int(labelled.sum())
        if not trials and rows.refusals.total:
            file, line, reason = rows.refusals.first[0]
            return Refused(f"not one of {rows.refusals.total:,} lines could be read; {file}, line {line}: {reason}")
        if len(model.vocabulary) == names:
            _met[:] = [model.vocabulary]
    except (ValueError, TypeError, OverflowError, FileNotFoundError, IsADirectoryError, ImportError) as error:
        return Refused(_reason(error))
    counts = ShardCounts(
        trials, mistakes, model.updates - updates, unlabelled, rows.refusals.total, time.perf_counter() - started
    )
    return model.state(), counts


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}"
    return " ".join(str(error).split()) or type(error).__name__
