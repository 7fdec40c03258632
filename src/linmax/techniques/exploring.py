"""Learning from right or wrong alone, B-L: try a class, sometimes a random one, and see whether it is right.

Kakade, Shalev-Shwartz and Tewari (2008). With probability gamma the class that is tried is drawn from all, otherwise it
is the prediction of L. A class that is right is the label, and L learns it; of two classes a wrong one reveals the
label as well. Labels that come to light by draws alone are a fair sample of all, so that the mistake bound of a rule
carries over (`linmax.theory.bounds.bandit`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from linmax.core.contract import NO_LABEL
from linmax.core.linear_max import TIED
from linmax.data.arrays import cut
from linmax.techniques.hosting import Host
from linmax.techniques.node import Chunk, Leaf, Node, PlayedChunk
from linmax.techniques.selecting import AHEAD
from linmax.techniques.technique import LearnerLike, NodeMaker, PrefixTechnique, as_learner
from linmax.util.checks import finite, whole
from linmax.util.draws import another, drawn

if TYPE_CHECKING:
    from linmax.engine.engine import Engine

__all__ = ["Explored", "Exploring", "bandit"]

DRAWS, TOLD = range(2)  # of `Exploring.marks`: draws so far, labels that came to light
SECOND_SEED = 2**32  # added to the seed for the draws of other classes


@dataclass(frozen=True)
class Explored(PrefixTechnique):
    """Description of B-L; made by `linmax.bandit`."""

    notation: ClassVar[str] = "B"
    gamma: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= finite("gamma", self.gamma) <= 1.0:
            raise ValueError(f"gamma must lie from 0 to 1, got {self.gamma!r}; try 0.1")
        whole("seed", self.seed, 0)

    def node(self, make: NodeMaker) -> Node:
        return Exploring(self)


class Exploring(Host):
    """L in an engine of its own, which plays the trials whose label comes to light.

    A label that brings a new class is always learned: nobody could have tried it.
    """

    def __init__(self, explored: Explored) -> None:
        super().__init__(explored.base)
        self.gamma, self.seed = explored.gamma, explored.seed
        self.marks = np.zeros(2, np.int64)

    @property
    def own(self) -> dict[str, np.ndarray]:
        return {"marks": self.marks}

    @property
    def labels_seen(self) -> int:
        """Trials so far whose label was revealed."""
        return int(self.marks[TOLD])

    @property
    def guesses(self) -> bool:
        """True if a wrong class is learned from by drawing another: of pools, which weigh it by its probability."""
        return not self.inner.runs

    @property
    def steady(self) -> bool:
        """True if predictions stay as they are while no update is made."""
        top = self.inner.top
        return isinstance(top, Leaf) and top.output % 2 == 0

    def tried(self, prediction: int, known: int) -> int:
        """The class that is tried at the next trial, given the prediction of L."""
        draw = drawn(self.seed, int(self.marks[DRAWS]))
        return int(draw / self.gamma * known) if draw < self.gamma else prediction

    def _label(self, label: int, prediction: int, scores: np.ndarray) -> tuple[int, int]:
        """The class tried at a trial, and the label that L is to learn, -1 if none; takes the next draw.

        With a label of -2 - c it is c that was tried.
        """
        known, number = len(scores), int(self.marks[DRAWS])
        answer = self.tried(prediction, known) if label >= 0 else NO_LABEL - 1 - label
        self.marks[DRAWS] = number + 1
        if label >= known:
            self.marks[TOLD] += 1
            return answer, label
        right = answer == label
        if known == 2 or right:
            if known > 2 and not self.guesses and _tied(scores) and drawn(self.seed, number) >= self.gamma:
                return answer, NO_LABEL  # L would learn from it, and more often than from a wrong prediction
            self.marks[TOLD] += 1
            return answer, answer if right else 1 - answer
        if self.inner.top.takes_denied:
            return answer, NO_LABEL - 1 - answer
        if not self.guesses:
            return answer, NO_LABEL
        shares = dict(enumerate(np.exp(scores - scores.max()).tolist()))
        return answer, another(shares, answer, self.seed + SECOND_SEED, number)

    def play(self, engine: Engine, chunk: Chunk) -> PlayedChunk:
        inner, size = self.inner, len(chunk.seen)
        answers, changed = np.zeros(size, np.int32), np.zeros(size, np.uint8)
        scores, t, ahead = np.zeros((size, engine.k)), 0, 1
        while t < size:
            end = min(size, t + ahead)
            found, table = inner.top.judge(inner, cut(chunk.trials, chunk.begin + t, chunk.begin + end))
            scores[t:end] = table / self.unit(engine)
            stop = self._teach(chunk, t, found, table, answers, changed)
            ahead = min(AHEAD, 2 * ahead) if stop == end and self.steady else max(1, ahead // 2)
            t = stop
        return PlayedChunk(answers, changed, scores if chunk.scored else None)

    def _teach(
        self,
        chunk: Chunk,
        first: int,
        found: np.ndarray,
        table: np.ndarray,
        answers: np.ndarray,
        changed: np.ndarray,
    ) -> int:
        """Try and learn the trials from ``first`` on while these predictions and scores hold; returns where it ends."""
        for t, (prediction, row) in enumerate(zip(found.tolist(), table, strict=True), first):
            known = int(chunk.trials.known[chunk.begin + t])
            answers[t], label = self._label(int(chunk.seen[t]), prediction, row[:known])
            if label == NO_LABEL:
                continue
            changed[t] = self.taught(chunk, t, label)
            if changed[t] or not self.steady:
                return t + 1
        return first + len(found)


def _tied(scores: np.ndarray) -> bool:
    second, best = np.partition(scores, -2)[-2:]
    return bool(best - second <= TIED * np.abs(scores).max())


def bandit(learner: LearnerLike, gamma: float = 0.1, seed: int = 0) -> Explored:
    """B-L: let a learner L learn from whether the class that was tried is right; it never sees a label.

    The class tried is L's prediction or, with probability gamma, one drawn from all classes. It counts: of k classes a
    share gamma (k - 1)/k of the right predictions is given away to find out about the others.

    Parameters
    ----------
    learner
        Any learner.
    gamma
        How often a class is drawn, from 0 to 1. `linmax.theory.bounds.best_bandit_gamma` gives the one with the
        least bound.
    seed
        Of the draws.

    Notes
    -----
    L learns the label of a trial if the class tried was right, and with two classes in any case. A wrong class among
    more teaches a rule nothing. Pools learn that it is not this class. Softmax and naive Bayes learn another class in
    its stead, drawn with the probability that their scores give it, so that in the mean they follow the likelihood of
    "not this class". Where the two best scores are equal, a rule learns from a right class only if it was drawn.

    In a combination each B-L tries a class of its own, learns whether that one is right, and is followed for what it
    tried, draws included. Where only the answer of the combination is ever tried, B goes in front: ``B-combine(...)``.

    `run` and every other interface that is given labels uses them to decide right from wrong, and for nothing else;
    only a label that brings a new class is learned in any case. Where labels are not known, `Learner.explore` returns
    the class to try, and ``learn`` takes ``label`` if it was right and ``wrong`` if not. `predict` never draws.

    For rules that update on mistakes only, the *expected* number of mistakes, those of draws included, is at most
    `linmax.theory.bounds.bandit`.

    References
    ----------
    Kakade, Shalev-Shwartz and Tewari (2008), Efficient bandit algorithms for online multiclass prediction.

    Examples
    --------
    >>> import linmax
    >>> print(linmax.bandit("R-perceptron", gamma=0.2))
    B(gamma=0.2)R-perceptron
    >>> data = linmax.datasets.majority_problem(n=9, r=3, k=3, noise=0.0, trials=2000, seed=1)
    >>> trace = linmax.run("B-perceptron", linmax.instances(votes=data.votes), data.labels)
    >>> int(trace.wrong[:500].sum()) > int(trace.wrong[-500:].sum())
    True
    """
    return Explored(as_learner(learner), gamma, seed)
