"""Explanation of a prediction by what is lost when each part of the instance is left out, for every learner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.core.contract import Trials
from linmax.data.arrays import cut
from linmax.util.aliases import Label, Name

if TYPE_CHECKING:
    from linmax.engine.engine import Engine
    from linmax.models.model import Model

__all__ = ["Contributions", "InstanceExplanation", "explain_trials"]

LOG_FLOOR = 1e-300  # probability below which logarithms end


@dataclass(frozen=True)
class InstanceExplanation:
    """Contributions of the parts of an instance to its prediction.

    Attributes
    ----------
    winner, runner_up
        The most probable class and the one after it.
    difference
        log P(winner) - log P(runner-up).
    contributions
        By how much the difference falls if a part is left out, largest first: an attribute (numbers of the pool are set
        to their mean instead), a vote or a rater's scores. All members of the learner count. What matters only together
        is in none of them, so that they need not add up to the difference.
    """

    winner: Label
    runner_up: Label
    difference: float
    contributions: dict[Name, float]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and labels."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{self.winner} rather than {self.runner_up}, by {self.difference:.3g}"]
        return "\n".join([*lines, *(f"{added:+.3f}  {name}" for name, added in self.contributions.items())])


@dataclass(frozen=True)
class Contributions:
    """`InstanceExplanation` in numbers: classes, and what each voter, rater and attribute contributed."""

    winner: int
    runner_up: int
    difference: float
    voters: dict[int, float]
    raters: dict[int, float]
    dense: dict[int, float]
    sparse: dict[int, float]

    def named(
        self,
        classes: Sequence[Label],
        blocks: Iterable[tuple[dict[int, float], Sequence[Name]]],
        most: int | None = None,
    ) -> InstanceExplanation:
        """Return it with names, ``most`` contributions at most; ``blocks`` pair contributions with names of columns."""
        found = {names[place]: added for own, names in blocks for place, added in own.items() if place < len(names)}
        ordered = dict(sorted(found.items(), key=lambda item: -abs(item[1]))[:most])
        return InstanceExplanation(classes[self.winner], classes[self.runner_up], self.difference, ordered)


def explain_trials(model: Model, engine: Engine, trials: Trials) -> Iterator[Contributions]:
    """Explain the prediction of each trial; two classes or more must be known."""
    layout = model.layout
    dense, sparse = np.zeros(layout.dense), np.zeros(layout.sparse)
    if model.pool is not None:
        dense, sparse = model.pool.typical(layout)
    for t in range(trials.size):
        yield _explain(model, engine, cut(trials, t, t + 1), dense, sparse)


def _explain(model: Model, engine: Engine, row: Trials, dense: np.ndarray, sparse: np.ndarray) -> Contributions:
    """Predict the row with each of its parts left out in turn."""
    typical = np.append(sparse, 0.0)[np.minimum(row.indices, sparse.size)]
    voters, raters = np.flatnonzero(row.votes[0] >= 0), np.flatnonzero(row.scores[0].any(axis=1))
    columns, places = np.flatnonzero(row.dense[0] != dense[: row.dense.shape[1]]), np.flatnonzero(row.values != typical)
    sizes = [1, voters.size, raters.size, columns.size, places.size]
    begin, size, entries = np.cumsum(sizes), sum(sizes), row.values.size
    votes, scores, numbers = (np.repeat(block, size, axis=0) for block in (row.votes, row.scores, row.dense))
    values = np.repeat(row.values[None], size, axis=0)
    votes[begin[0] + np.arange(voters.size), voters] = -1
    scores[begin[1] + np.arange(raters.size), raters] = 0.0
    numbers[begin[2] + np.arange(columns.size), columns] = dense[columns]
    values[begin[3] + np.arange(places.size), places] = typical[places]
    variants = row._replace(
        votes=votes,
        scores=scores,
        dense=numbers,
        indptr=entries * np.arange(size + 1) if row.indptr.size else row.indptr,
        indices=np.tile(row.indices, size),
        values=values.ravel(),
        known=np.repeat(row.known, size),
        labels=np.repeat(row.labels, size),
        weights=np.repeat(row.weights, size),
    )
    logs = np.log(np.maximum(model.probabilities(engine.judge(variants)[1][:, : len(model.classes)]), LOG_FLOOR))
    second, winner = np.argsort(logs[0], kind="stable")[-2:].tolist()
    leads = logs[:, winner] - logs[:, second]
    blocks = (voters, raters, columns, row.indices[places])
    found = [
        dict(zip(block.tolist(), (leads[0] - leads[first : first + block.size]).tolist(), strict=True))
        for block, first in zip(blocks, begin.tolist(), strict=False)
    ]
    return Contributions(winner, second, float(leads[0]), *found)
