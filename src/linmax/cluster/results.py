"""What `linmax.cluster.fit` returns, and what it tells while it runs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from linmax.cluster.model_states import ShardModel
from linmax.cluster.shards import ShardCounts

__all__ = ["Fit", "Pass", "Progress", "told_refused", "warn_of_refused"]


@dataclass(frozen=True)
class Pass:
    """One pass: the counts of each shard, in their order, and how long learning and mixing took.

    Attributes
    ----------
    shards : list
        What happened in each shard, in their order: trials, mistakes, updates.
    learning, mixing : float
        Seconds until all shards were learned, and until their models were mixed.
    working : float
        Of these seconds, those in which the workers learned and mixed: of the one that took longest, and of what had to
        wait for it. The rest is the driver's, the scheduler's and the network's.

    See Also
    --------
    fit : makes them.

    Examples
    --------
    >>> import linmax
    >>> lines = ["1 1:1", "2 2:1"] * 20
    >>> result = linmax.cluster.fit("perceptron", [lines, lines])
    >>> result.passes[0].trials
    80
    """

    shards: list[ShardCounts]
    learning: float
    mixing: float
    working: float = 0.0

    @property
    def trials(self) -> int:
        """Of all shards."""
        return sum(counts.trials for counts in self.shards)

    @property
    def mistakes(self) -> int:
        """Of all shards, each predicting with the model that it had."""
        return sum(counts.mistakes for counts in self.shards)


M = TypeVar("M", bound=ShardModel)


@dataclass
class Fit(Generic[M]):
    """What `fit` returns: the model, and what happened in each pass.

    Attributes
    ----------
    model : StreamModel or VoteFusion
        The model, ready to predict and to go on learning.
    shards : list of str
        Their names.
    passes : list of Pass
        What happened in each pass.
    notes : list of str
        What was found out about the columns: which one is the label, and which were left out.
    refused : dict from str to int
        Shards with rows or lines that could not be read and were left out, and how many.

    See Also
    --------
    fit : makes it.

    Examples
    --------
    >>> import linmax
    >>> lines = ["1 1:1", "2 2:1"] * 20
    >>> linmax.cluster.fit("perceptron", [lines, lines]).model.classes
    ['1', '2']
    """

    model: M
    shards: list[str]
    passes: list[Pass] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """What was found out about the columns, each said once; shards without rows say nothing."""
        shards = self.passes[0].shards if self.passes else []
        return list(dict.fromkeys(note for counts in shards if counts.rows for note in counts.notes))

    @property
    def refused(self) -> dict[str, int]:
        """How many rows or lines of each shard could not be read, where any could not."""
        shards = self.passes[0].shards if self.passes else []
        return {name: counts.refused for name, counts in zip(self.shards, shards, strict=False) if counts.refused}

    def __repr__(self) -> str:
        told = f"{self.passes[-1].mistakes:,} mistakes in the last" if self.passes else "none yet"
        return f"<{self.model.learner} mixed from {len(self.shards)} shards, {len(self.passes)} passes: {told}>"


def warn_of_refused(result: Fit[Any]) -> None:
    """Warn whoever called `fit` of rows that are left out."""
    if refused := result.refused:
        first = next(counts.first_refused for counts in result.passes[0].shards if counts.refused)
        warnings.warn(told_refused(refused, first), stacklevel=3)


def told_refused(refused: Mapping[str, int], first: str) -> str:
    """That rows are left out: how many of each shard, and what is known of the first of them."""
    name, many = next(iter(refused)), sum(refused.values())
    left = "1 row could not be read and is" if many == 1 else f"{many:,} rows could not be read and are"
    told = first if first.startswith(name) else f"{name}: {first}" if first else name
    return f"{told}; {left} left out; reading={{'strict': True}} refuses them"


@dataclass(frozen=True)
class Progress:
    """Progress after each shard: the number of the pass (from 0), shards done in it, and all shards.

    Attributes
    ----------
    number : int
        Of the pass, from 0.
    done, shards : int
        Shards learned in this pass, and all.

    See Also
    --------
    fit : reports it to ``watch``.

    Examples
    --------
    >>> import linmax
    >>> lines = ["1 1:1", "2 2:1"] * 20
    >>> seen = []
    >>> result = linmax.cluster.fit("perceptron", [lines, lines], watch=seen.append)
    >>> seen[-1]
    Progress(number=0, done=2, shards=2)
    """

    number: int
    done: int
    shards: int
