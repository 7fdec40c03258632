"""Combining whole learners: follow the best so far (Mesterharm and Hsu), let all vote with weights that fall with
their mistakes (the Weighted Majority Algorithm, Littlestone and Warmuth 1994), or add their scores so weighted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numba import float64, int64, types

from linmax.core.contract import (
    KNOWN,
    Bytes,
    Cube,
    Indices,
    Instances,
    Labels,
    LabelTable,
    Matrix,
    State,
    StateT,
    Vector,
)
from linmax.core.linear_max import top_two
from linmax.jit.compiling import kernel
from linmax.techniques.node import Chunk, Node, PlayedChunk, play_children
from linmax.techniques.technique import LearnerLike, NodeMaker, Technique, as_learners, bracketed
from linmax.util.checks import finite, one_of

if TYPE_CHECKING:
    from linmax.engine.engine import Engine

__all__ = [
    "WAYS",
    "BestOf",
    "Combined",
    "Followed",
    "FollowedT",
    "WeightedCombination",
    "combine",
    "follow_best",
    "weigh",
    "weights_of",
]

BEST, WMA, WEIGHTED = 0, 1, 2
WAYS = {"best": BEST, "wma": WMA, "weighted": WEIGHTED}
SQUARE_ROUNDING = 1e-24  # of squares, relative
ByteTable = types.Array(types.uint8, 2, "C")


@kernel()
def least(mistakes: np.ndarray) -> int:
    """The member with the fewest mistakes; of those that tie the first."""
    best = 0
    for i in range(mistakes.size):
        if mistakes[i] < mistakes[best]:
            best = i
    return best


class Followed(NamedTuple):
    """What is followed at each trial of a chunk: one of several, named before and after the trial."""

    predictions: np.ndarray
    before: np.ndarray
    after: np.ndarray
    changed: np.ndarray  # uint8: whether its hypothesis is new after the trial


FollowedT = types.NamedTuple([Labels, Labels, Labels, Bytes], Followed)
FOLLOW = types.void(LabelTable, ByteTable, Labels, Indices, FollowedT)


@kernel(FOLLOW)
def follow_best(
    proposals: np.ndarray, changes: np.ndarray, labels: np.ndarray, mistakes: np.ndarray, followed: Followed
) -> None:
    """Predict like the member with the fewest mistakes so far."""
    predictions, before, after, changed = followed.predictions, followed.before, followed.after, followed.changed
    for t in range(labels.size):
        best = least(mistakes)
        before[t] = best
        predictions[t] = proposals[best, t]
        for i in range(mistakes.size):
            mistakes[i] += proposals[i, t] != labels[t]
        after[t] = least(mistakes)
        changed[t] = 1 if after[t] != best else changes[after[t], t]


@kernel(types.void(int64, float64, Indices, float64[::1]))
def weights_of(how: int, beta: float, mistakes: np.ndarray, weights: np.ndarray) -> None:
    """beta^(M_i - M_min), or exp(-eta (M_i - M_min)) with eta = sqrt(2 ln N / (M_min + 1))."""
    fewest = mistakes[least(mistakes)]
    eta = -math.log(beta) if how == WMA else math.sqrt(2.0 * math.log(mistakes.size) / (fewest + 1.0))
    for i in range(mistakes.size):
        weights[i] = math.exp(-eta * (mistakes[i] - fewest))


@kernel()
def spread(scores: np.ndarray, known: int) -> float:
    """Mean square of the scores of the known classes about their mean; 0 where it is but rounding."""
    mean = 0.0
    for c in range(known):
        mean += scores[c] / known
    square = 0.0
    for c in range(known):
        square += (scores[c] - mean) ** 2 / known
    return square if square > SQUARE_ROUNDING * mean * mean else 0.0


class CombinationState(NamedTuple):
    """The state of a weighted combination."""

    mistakes: np.ndarray  # int64 (members,)
    squares: np.ndarray  # (members,): the sum of the `spread` of a member's scores over the trials
    trials: np.ndarray  # (1,): how many
    weights: np.ndarray  # (members,): working memory


class Proposed(NamedTuple):
    """What the members propose in a chunk."""

    classes: np.ndarray  # int32 (members, C)
    scores: np.ndarray  # (members, C, k), or none


class Sums(NamedTuple):
    """What a weighted combination predicts in a chunk, and the sums by which it does."""

    predictions: np.ndarray
    table: np.ndarray  # (C, k)


WEIGH = types.void(
    int64,
    float64,
    types.NamedTuple([Indices, Vector, Vector, Vector], CombinationState),
    types.NamedTuple([LabelTable, Cube], Proposed),
    Labels,
    StateT,
    types.NamedTuple([Labels, Matrix], Sums),
)


@kernel(WEIGH)
def weigh(
    how: int, beta: float, weighed: CombinationState, proposed: Proposed, labels: np.ndarray, state: State, sums: Sums
) -> None:
    """Weighted votes (WMA), or weighted sums of scores divided by their size. Without labels nothing is learned.

    The size of a member's scores is the root of their mean `spread` over the trials before; as long as that is 0, of
    the present trial.
    """
    mistakes, squares, trials, weights = weighed.mistakes, weighed.squares, weighed.trials, weighed.weights
    proposals, scores, predictions, table = proposed.classes, proposed.scores, sums.predictions, sums.table
    learning = labels.size > 0
    weights_of(how, beta, mistakes, weights)
    for t in range(predictions.size):
        total = table[t]
        for c in range(total.size):
            total[c] = 0.0
        known = state.shape[KNOWN]
        for i in range(mistakes.size):
            if how == WMA:
                if proposals[i, t] >= 0:
                    total[proposals[i, t]] += weights[i]
                continue
            present = spread(scores[i, t], known)
            size = squares[i] / trials[0] if squares[i] > 0.0 else present
            if size > 0.0:
                for c in range(known):
                    total[c] += weights[i] * scores[i, t, c] / math.sqrt(size)
            if learning:
                squares[i] += present
        predictions[t] = top_two(total, state.shape)[0]
        if learning:
            trials[0] += 1.0
            if labels[t] >= state.shape[KNOWN]:  # discovered by this trial
                state.shape[KNOWN] = labels[t] + 1
            for i in range(mistakes.size):
                mistakes[i] += proposals[i, t] != labels[t]
            weights_of(how, beta, mistakes, weights)


@dataclass(frozen=True)
class Combined(Technique):
    """Description of a combination; made by `linmax.combine`."""

    notation: ClassVar[str] = "combine"
    members: tuple[Any, ...]
    how: str = "best"
    beta: float = 0.5
    pool: str = ""  # the notation of a pool that has a name of its own, such as "R-combine"

    def __post_init__(self) -> None:
        if not self.members:
            raise ValueError("combine() needs at least one learner, got none")
        one_of("how", self.how, WAYS)
        if not 0.0 < finite("beta", self.beta) < 1.0:
            raise ValueError(f"beta must be in (0, 1), got {self.beta!r}; try 0.5")

    def __str__(self) -> str:
        if self.pool:
            return self.pool
        options = bracketed({"how": self.how, "beta": self.beta}, {"how": "best", "beta": 0.5})
        return f"combine({', '.join([*map(str, self.members), *filter(None, [options[1:-1]])])})"

    @property
    def starts_with_letter(self) -> bool:  # type: ignore[override]
        return self.pool.endswith("-combine")

    @property
    def learners(self) -> tuple[Any, ...]:
        return self.members

    def node(self, make: NodeMaker) -> Node:
        children = [make(member) for member in self.members]
        return BestOf(children) if self.how == "best" else WeightedCombination(children, self)


class BestOf(Node):
    """Follow the child with the fewest mistakes so far."""

    unmixable = ""

    def __init__(self, children: Sequence[Node]) -> None:
        self.children = children
        self.selects = all(child.selects for child in children)
        self.mistakes = np.zeros(len(children), np.int64)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return {"mistakes": self.mistakes}

    @property
    def best(self) -> Node:
        """The child that is followed now."""
        return self.children[int(np.argmin(self.mistakes))]

    @property
    def output(self) -> int:
        return self.best.output

    def asked(self) -> list[int]:
        return self.best.asked()

    def play(self, engine: Engine, chunk: Chunk) -> PlayedChunk:
        played = play_children(self, engine, chunk)
        size = len(chunk.seen)
        predictions, before, after = (np.zeros(size, np.int32) for _ in range(3))
        changed = np.zeros(size, np.uint8)
        followed = Followed(predictions, before, after, changed)
        follow_best(played.predictions, played.changed, chunk.seen, self.mistakes, followed)
        trials = np.arange(size)
        scores = None if played.scores is None else played.scores[before, trials]
        if played.before is None or played.after is None:
            return PlayedChunk(predictions, changed, scores)
        return PlayedChunk(predictions, changed, scores, played.before[before, trials], played.after[after, trials])

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        return self.best.judge(engine, instances, size)

    def single(self, engine: Engine) -> bool:
        return self.best.single(engine)

    def unit(self, engine: Engine) -> float:
        return self.best.unit(engine)

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        return self.best.hypothesis(engine)

    def shown(self, engine: Engine) -> tuple[np.ndarray, float]:
        return self.best.shown(engine)

    def scoring(self, engine: Engine) -> np.ndarray:
        return self.best.scoring(engine)


class WeightedCombination(Node):
    """All children vote, or add their scores, with weights that fall with their mistakes.

    The sum of scores, each divided by its size so far, is that of one weight vector.
    """

    passes_scores_on = False
    unmixable = ""

    def __init__(self, children: Sequence[Node], combined: Combined) -> None:
        self.children = children
        self.how, self.beta = WAYS[combined.how], combined.beta
        self.wants_scores = combined.how == "weighted"
        self.mistakes = np.zeros(len(children), np.int64)
        self.squares, self.trials = np.zeros(len(children)), np.zeros(1)  # of the scores (see `weigh`)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return {"mistakes": self.mistakes, "squares": self.squares, "trials": self.trials}

    def _weigh(
        self, engine: Engine, proposals: np.ndarray, scores: np.ndarray | None, labels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        size = proposals.shape[1]
        weighed = CombinationState(self.mistakes, self.squares, self.trials, np.zeros(len(proposals)))
        cube = scores if scores is not None and self.wants_scores else np.zeros((0, 0, 0))
        sums = Sums(np.zeros(size, np.int32), np.zeros((size, engine.k)))
        weigh(self.how, self.beta, weighed, Proposed(proposals, cube), labels, engine.state, sums)
        return sums.predictions, sums.table

    def play(self, engine: Engine, chunk: Chunk) -> PlayedChunk:
        played = play_children(self, engine, chunk)
        engine.state.shape[KNOWN] = chunk.known
        predictions, table = self._weigh(engine, played.predictions, played.scores, chunk.seen)
        return PlayedChunk(predictions, np.ones(len(predictions), np.uint8), table)

    def judge(self, engine: Engine, instances: Instances, size: int) -> tuple[np.ndarray, np.ndarray]:
        judged = [child.judge(engine, instances, size) for child in self.children]
        none = np.zeros(0, np.int32)
        proposals, scores = np.array([p for p, _ in judged]), np.array([s for _, s in judged])
        return self._weigh(engine, proposals, scores, none)

    def single(self, engine: Engine) -> bool:
        """A member whose scores have no size yet is measured by the trial at hand (see `weigh`)."""
        return bool((self.squares > 0.0).all()) and super().single(engine)

    def hypothesis(self, engine: Engine) -> tuple[np.ndarray, float]:
        if not self.wants_scores:
            return super().hypothesis(engine)
        factors = np.zeros(len(self.children))
        weights_of(self.how, self.beta, self.mistakes, factors)
        sizes = np.sqrt(self.squares / np.maximum(self.trials, 1.0))
        factors = np.divide(factors, sizes, out=np.zeros_like(factors), where=sizes > 0.0)
        parts = [factor * child.scoring(engine) for factor, child in zip(factors, self.children, strict=True)]
        return np.sum(parts, axis=0), 0.0


def combine(learners: Sequence[LearnerLike], how: str = "best", beta: float = 0.5) -> Combined:
    """Run several learners on every trial and combine their predictions.

    Parameters
    ----------
    how
        "best": follow the one with the fewest mistakes so far. "wma": each votes with weight beta^mistakes (the
        Weighted Majority Algorithm: at most (ln v + m ln(1/beta)) / ln(2/(1+beta)) mistakes over v members, the best
        of which makes m). "weighted": their scores, each divided by its root mean square about the classes' mean over
        the trials before, are added with weights exp(-eta (M_i - M_min)), eta = sqrt(2 ln v / (M_min + 1)); of linear
        members this is one weight vector.
    beta
        For "wma", in (0, 1).

    References
    ----------
    Mesterharm and Hsu, section V. Littlestone and Warmuth (1994), The weighted majority algorithm.

    Examples
    --------
    >>> import linmax
    >>> print(linmax.combine(["perceptron", "A-winnow(1.1)"]))
    combine(perceptron, A-winnow(1.1))
    """
    return Combined(tuple(as_learners(learners)), how, beta)
