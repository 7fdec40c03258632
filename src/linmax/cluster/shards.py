"""Shards of data: what users give, and what comes of each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linmax.cluster.addresses import TableFile, fingerprint, parts_of
from linmax.cluster.partitions import is_collection, is_joint, partitions
from linmax.cluster.unions import begins_with
from linmax.data.arrays import Layout
from linmax.engine.engine import Engine, Settings
from linmax.io.frames import is_table
from linmax.io.vocabulary import Vocabulary
from linmax.rules import REGISTRY
from linmax.rules.quasi_additive import LINKS

__all__ = ["Refused", "Shard", "ShardCounts", "ShardError", "refuse_untold", "same_names", "shards_of", "why"]

State = tuple[dict[str, Any], dict[str, np.ndarray]]


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
    def path(self) -> str | None:
        """Of the file, if it is one."""
        if isinstance(self.source, TableFile):
            return self.source.path
        return self.source if isinstance(self.source, str) else None

    @property
    def fingerprint(self) -> list[Any] | None:
        """Size and time of the last change of a file that can be seen from here, to know it again."""
        return None if self.path is None else fingerprint(self.path)


@dataclass(frozen=True)
class ShardCounts:
    """What happened in one shard in one pass."""

    trials: int
    mistakes: int
    updates: int
    unlabelled: int
    refused: int  # lines that could not be read
    seconds: float
    first_refused: str = ""  # the first of these lines, and why
    notes: list[str] = field(default_factory=list)  # what was found out about the columns

    @property
    def rows(self) -> int:
        """With a label or without, or such that could not be read."""
        return self.trials + self.unlabelled + self.refused


@dataclass(frozen=True)
class Refused:
    """The shard cannot be learned from, and trying again would not help."""

    reason: str


def shards_of(given: Any) -> list[Shard]:
    """Shards from paths, patterns, folders, frames, pairs (X, y), lists of lines, and parts of Dask collections."""
    if isinstance(given, (str, os.PathLike, TableFile)) or is_table(given) or is_collection(given) or is_joint(given):
        given = [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"shards must be a list of files or tables, or a Dask collection, got {given!r}")
    given = list(given)
    files = iter(parts_of([os.fspath(item) for item in given if isinstance(item, (str, os.PathLike))]))
    found: list[Shard] = []
    for item in given:
        if is_collection(item) or is_joint(item):
            found += [Shard(f"partition {place}", part) for place, part in enumerate(partitions(item), len(found))]
        elif isinstance(item, (str, os.PathLike)):
            found += [Shard(str(part), part) for part in next(files)]
        elif isinstance(item, Shard):
            found.append(item)
        else:
            found.append(Shard(str(item) if isinstance(item, TableFile) else f"shard {len(found)}", item))
    if not found:
        raise ValueError("shards must hold at least one shard, got none")
    return found


def refuse_untold(learner: Any) -> None:
    """Refuse your own rules: workers get the learner as text, and cannot look such a rule up."""
    for run in Engine(learner, Layout(0, 0, 0, 0, 1.0), 0, Settings(discover=True)).runs:
        own = run.rule.name.replace("_", "-") not in REGISTRY or run.rule.parameters.get("link", "exp") not in LINKS
        if own:
            raise ValueError(f"{run.rule} is a rule of your own, which the workers do not know; use a built-in rule")


def same_names(state: State, known: Vocabulary) -> bool:
    """Whether a state has these names, and no others."""
    own, others = _names(state), known.arrays()
    return state[0]["hash_bits"] == known.bits and begins_with(own, others) and begins_with(others, own)


def _names(state: State) -> dict[str, np.ndarray]:
    return {part: state[1][f"names.{part}"] for part in ("names", "offsets")}


def why(error: Exception) -> str:
    """The reason in one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}"
    if isinstance(error, FileNotFoundError):  # of a file system that does not say so
        return f"No such file: {error}"
    return " ".join(str(error).split()) or type(error).__name__
