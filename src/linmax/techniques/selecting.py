"""Selective sampling, S-B: ask for a label with probability b / (b + lead), and learn from such trials only.

Cesa-Bianchi, Gentile and Zaniboni (2006). The lead is that of the best class over the second best: a sure prediction is
seldom worth a label. The expected mistakes, those without a label included, obey almost the bound of B with all labels
(`linmax.theory.bounds.selective_perceptron`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from linmax.data.arrays import cut
from linmax.techniques.hosting import Host
from linmax.techniques.node import Chunk, Node, PlayedChunk
from linmax.techniques.technique import LearnerLike, NodeMaker, PrefixTechnique, as_learner
from linmax.util.checks import positive, whole
from linmax.util.draws import drawn

if TYPE_CHECKING:
    from linmax.core.contract import Trials
    from linmax.engine.engine import Engine

__all__ = ["Selected", "Selecting", "selective"]

DRAWS, GRANTED, ASKED = range(3)  # of `Selecting.marks`: draws so far, labels promised but not seen, labels learned
AHEAD = 256  # most trials that are judged at a time, in the hope that none of them is asked for


@dataclass(frozen=True)
class Selected(PrefixTechnique):
    """Description of S-B; made by `linmax.selective`."""

    notation: ClassVar[str] = "S"
    b: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        positive("b", self.b, 1.0)
        whole("seed", self.seed, 0)

    def node(self, make: NodeMaker) -> Node:
        return Selecting(self)


class Selecting(Host):
    """B in an engine of its own, which plays the trials whose label is asked for.

    A label that brings a new class is always learned from: nobody could have asked for it.
    """

    def __init__(self, selected: Selected) -> None:
        super().__init__(selected.base)
        self.b, self.seed = selected.b, selected.seed
        self.marks = np.zeros(3, np.int64)

    @property
    def own(self) -> dict[str, np.ndarray]:
        return {"marks": self.marks}

    @property
    def asked_for(self) -> int:
        """Labels learned from so far."""
        return int(self.marks[ASKED])

    def chances(self, table: np.ndarray, known: int) -> np.ndarray:
        """The probability with which a label is asked for, given scores as `judge` gives them."""
        if known < 2:
            return np.ones(len(table))
        best = np.partition(table[:, :known], known - 2, axis=1)[:, known - 2 :]
        return self.b / (self.b + self.scale() * (best[:, 1] - best[:, 0]))

    def wants(self, table: np.ndarray, known: int) -> bool:
        """Draw for one trial, given its scores; if it wants the label, the next one that comes is learned from."""
        wanted = drawn(self.seed, int(self.marks[DRAWS])) < self.chances(table[:1], known)[0]
        self.marks[DRAWS] += 1
        self.marks[GRANTED] += wanted
        return bool(wanted)

    def _asked(self, trials: Trials, table: np.ndarray) -> int:
        """The first of these trials whose label is learned from, and their number if there is none."""
        chances, first = np.ones(len(table)), int(self.marks[DRAWS])
        for known in np.unique(trials.known).tolist():
            alike = trials.known == known
            chances[alike] = self.chances(table[alike], known)
        for t, (label, known, chance) in enumerate(zip(trials.labels, trials.known, chances.tolist(), strict=True)):
            if label >= known or self.marks[GRANTED] or drawn(self.seed, first + t) < chance:
                return t
        return trials.size

    def play(self, engine: Engine, chunk: Chunk) -> PlayedChunk:
        inner, size = self.inner, len(chunk.seen)
        predictions, changed = np.zeros(size, np.int32), np.zeros(size, np.uint8)
        scores, t, ahead = np.zeros((size, engine.k)), 0, 1
        while t < size:
            end = min(size, t + ahead)
            part = cut(chunk.trials, chunk.begin + t, chunk.begin + end)
            found, table = inner.top.judge(inner, part)
            quiet = self._asked(part, table)
            last = min(end, t + quiet + 1)
            predictions[t:last], scores[t:last] = found[: last - t], table[: last - t] / self.unit(engine)
            if t + quiet < end:
                changed[last - 1] = self.taught(chunk, last - 1, int(chunk.seen[last - 1]))
                granted = int(self.marks[GRANTED] > 0)
                self.marks += [quiet + 1 - granted, -granted, 1]
            else:
                self.marks[DRAWS] += end - t
            ahead = max(1, ahead // 2) if t + quiet < end else min(AHEAD, 2 * ahead)
            t = last
        return PlayedChunk(predictions, changed, scores if chunk.scored else None)


def selective(learner: LearnerLike, b: float = 1.0, seed: int = 0) -> Selected:
    """S-B: ask for the label of a trial with probability b / (b + lead), and learn from such trials only.

    The lead is that of the best class over the second best: w.x with the weights of a rule as they are, so that b is in
    the unit of |z|^2; with weights that add up to 1 for a rule that multiplies; with weights of 2-norm 1 for a vote or
    a combination; and a difference of log-probabilities for a pool.

    Parameters
    ----------
    learner
        Any learner.
    b
        The larger, the more labels: where the lead is b, every other one. For the Perceptron on |z|^2 <= R^2,
        b = R^2/2 gives the bound with all labels (`linmax.theory.bounds.best_selective_b`).
    seed
        Of the draws.

    Notes
    -----
    Labels that are not asked for are not looked at; only one that brings a new class is learned
    from in any case. `Learner.wants_label` and `VoteFusion.wants_label` draw for a trial whose label is not known yet.

    For perceptron and p-norm the *expected* number of mistakes, with labels and without, is at most
    `linmax.theory.bounds.selective_perceptron`.

    References
    ----------
    Cesa-Bianchi, Gentile and Zaniboni (2006), Worst-case analysis of selective sampling for linear classification.

    Examples
    --------
    >>> import linmax
    >>> print(linmax.selective("R-perceptron", b=2.0))
    S(b=2.0)R-perceptron
    >>> data = linmax.datasets.majority_problem(trials=1000, seed=1)
    >>> trace = linmax.run("S-perceptron", linmax.instances(votes=data.votes), data.labels)
    >>> trace.model.labels_used < 500
    True
    """
    return Selected(as_learner(learner), b, seed)
