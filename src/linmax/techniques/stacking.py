"""Stacking: the scores of several learners are the sub-experts of another one, which fuses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from linmax.core.contract import Trials
from linmax.data.arrays import Layout, no_trials
from linmax.techniques.node import Chunk, Node, PlayedChunk, overwrite, play_children
from linmax.techniques.technique import LearnerLike, NodeMaker, Technique, as_learner, as_learners

if TYPE_CHECKING:
    from linmax.engine.engine import Engine

__all__ = ["Stacked", "Stacking", "stack"]


@dataclass(frozen=True)
class Stacked(Technique):
    """Description of a stack; made by `linmax.stack`."""

    notation: ClassVar[str] = "stack"
    members: tuple[Any, ...]
    fusion: Any

    def __post_init__(self) -> None:
        if not self.members:
            raise ValueError("stack() needs at least one learner, got none")

    def __str__(self) -> str:
        return f"stack({', '.join(map(str, self.members))}, fusion={self.fusion})"

    @property
    def learners(self) -> tuple[Any, ...]:
        return (*self.members, self.fusion)

    def node(self, make: NodeMaker) -> Node:
        return Stacking([make(member) for member in self.members], self)


class Stacking(Node):
    """The children's scores are the sub-experts of another learner.

    Each child's scores of the known classes are centred, divided by their root mean square over all trials so far (the
    present one included) and turned into shares by softmax: a vote in [0, 1].
    """

    passes_scores_on = False

    wants_scores = True
    unmixable = "its fusion has learned to weigh the scores of other members than the merged ones"

    def __init__(self, children: Sequence[Node], stacked: Stacked) -> None:
        self.children = children
        self.stacked = stacked
        self.squares = np.zeros(len(children))
        self.trials = np.zeros(1, np.int64)

    def prepare(self, engine: Engine) -> None:
        super().prepare(engine)
        layout = Layout(0, len(self.children), 0, 0, 0.0)
        self.fusion = engine.like(self.stacked.fusion, layout)

    shows = False  # the fusion sees shares of scores

    @property
    def engines(self) -> Sequence[Engine]:  # type: ignore[override]
        """Engines of the fusion."""
        return (self.fusion,)

    def hosts(self, experts: bool) -> bool:
        return False

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        own = {"squares": self.squares, "trials": self.trials}
        return own | {f"fusion.{name}": array for name, array in self.fusion.arrays.items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        fusion = {name.removeprefix("fusion."): array for name, array in arrays.items() if name.startswith("fusion.")}
        own = {name: array for name, array in arrays.items() if not name.startswith("fusion.")}
        overwrite({"squares": self.squares, "trials": self.trials}, own, "stacking")
        self.fusion.restore(fusion)

    def appear(self, fresh: np.ndarray, k: int) -> None:
        self.fusion.grow(self.fusion.layout, k)

    def _shares(self, scores: np.ndarray, trials: Trials, learning: bool) -> Trials:
        """(children, trials, k) scores of trials as trials for the fusion."""
        size, known = trials.size, trials.known
        counts = np.arange(scores.shape[2]) < known[:, None]
        number = np.maximum(known, 1)[:, None]
        centred = np.where(counts, scores - np.where(counts, scores, 0.0).sum(axis=2, keepdims=True) / number, 0.0)
        squares = (centred**2).sum(axis=2) / number[:, 0]
        if learning:  # one after the other, so that it does not matter how trials are cut into chunks
            sums = np.cumsum(np.concatenate([self.squares[:, None], squares], axis=1), axis=1)
            running = sums[:, 1:] / (self.trials[0] + 1 + np.arange(size))
            self.squares[:] = sums[:, -1]
            self.trials += size
        else:
            running = (self.squares[:, None] + squares) / (self.trials[0] + 1)
        root = np.sqrt(running)[:, :, None]
        exponents = np.divide(centred, root, out=np.zeros_like(centred), where=root > 0.0)
        exponents = np.where(counts, exponents, -np.inf)
        largest = np.where(known > 0, exponents.max(axis=2, initial=-np.inf), 0.0)
        shares = np.where(counts, np.exp(exponents - largest[:, :, None]), 0.0)
        shares /= np.maximum(shares.sum(axis=2, keepdims=True), 1.0)
        columns = {name: getattr(trials, name) for name in ("known", "labels", "weights")}
        return no_trials(size)._replace(scores=np.ascontiguousarray(shares.transpose(1, 0, 2)), **columns)

    def play(self, engine: Engine, chunk: Chunk) -> PlayedChunk:
        scores, trials = play_children(self, engine, chunk).scores, chunk.own
        assert scores is not None
        shares = self._shares(scores, trials, True)
        table = self.fusion.run(shares, scored=trials.size if chunk.scored else 0)
        return PlayedChunk(table.predictions, np.ones(len(table.predictions), np.uint8), table.scores)

    def judge(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        scores = np.array([child.judge(engine, trials)[1] for child in self.children])
        return self.fusion.top.judge(self.fusion, self._shares(scores, trials, False))


def stack(learners: Sequence[LearnerLike], fusion: LearnerLike = "perceptron") -> Stacked:
    """The members' scores are the sub-experts of another learner, ``fusion``.

    Each member's k scores (of its weights at 2-norm 1) are centred, divided by their running root mean square, and
    made shares in [0, 1] by softmax.

    Parameters
    ----------
    learners
        The members: learners or text, at least one.
    fusion
        The learner that weighs their scores.

    See Also
    --------
    combine : follows the best, or lets members vote.

    Examples
    --------
    >>> import linmax
    >>> print(linmax.stack(["perceptron", "winnow(1.1)"], fusion="winnow(1.05)"))
    stack(perceptron, winnow(1.1), fusion=winnow(1.05))
    """
    return Stacked(tuple(as_learners(learners)), as_learner(fusion))
