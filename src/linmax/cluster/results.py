"""What `linmax.cluster.fit` returns, and what it tells while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from linmax.cluster.model_states import ShardModel
from linmax.cluster.shards import ShardCounts

__all__ = ["Fit", "Pass", "Progress"]


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

    def __repr__(self) -> str:
        told = f"{self.passes[-1].mistakes:,} mistakes in the last" if self.passes else "none yet"
        return f"<{self.model.learner} mixed from {len(self.shards)} shards, {len(self.passes)} passes: {told}>"


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
