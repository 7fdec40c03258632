"""Combining whole learners: follow the best so far (Mesterharm and Hsu), let all vote with weights that fall with
their mistakes (the Weighted Majority Algorithm, Littlestone and Warmuth 1994), or add their scores so weighted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numba import float64, int64, types

from linmax.core.contract import Indices, Played, RunningTrials, Trials, Vector
from linmax.core.linear_max import top_two
from linmax.jit.compiling import kernel
from linmax.jit.struct import Struct, act, entry
from linmax.techniques.node import Node, Turn
from linmax.techniques.technique import LearnerLike, NodeMaker, Technique, as_learners, bracketed
from linmax.util.checks import finite, one_of

if TYPE_CHECKING:
    from linmax.engine.bench import Bench
    from linmax.engine.engine import Engine

__all__ = [
    "WAYS",
    "BestOf",
    "Combined",
    "WeightedCombination",
    "combine",
    "weights_of",
]

BEST, WMA, WEIGHTED = 0, 1, 2
WAYS = {"best": BEST, "wma": WMA, "weighted": WEIGHTED}
SQUARE_ROUNDING = 1e-24  # of squares, relative


@kernel()
def least(mistakes: np.ndarray) -> int:
    """The member with the fewest mistakes; of those that tie the first."""
    best = 0
    for i in range(mistakes.size):
        if mistakes[i] < mistakes[best]:
            best = i
    return best


class Following(Struct):
    """Following the best at work."""

    row: int = int64  # among what is `played`
    rows: np.ndarray = Indices  # those of the children
    mistakes: np.ndarray = Indices
    trials: RunningTrials = RunningTrials.numba_type
    played: Played = Played.numba_type
    parts: np.ndarray = Indices  # what predicts each child: a part, its kernel and an argument
    predicts: np.ndarray = Indices
    which: np.ndarray = Indices


FOLLOW = int64(Following.numba_type, int64, int64)


@kernel(FOLLOW)
def follow_best(f: Following, begin: int, end: int) -> int:
    """Predict trials like the child with the fewest mistakes so far."""
    rows, mistakes, labels, played, row = f.rows, f.mistakes, f.trials.labels, f.played, f.row
    predictions, changed, before, after = played.predictions, played.changed, played.before, played.after
    tables, origin = played.tables, played.scored
    for t in range(begin, end):
        best = least(mistakes)
        chosen = rows[best]
        before[row, t] = before[chosen, t]
        predictions[row, t] = predictions[chosen, t]
        if t >= origin:
            for c in range(tables.shape[2]):
                tables[row, t - origin, c] = tables[chosen, t - origin, c]
        for i in range(mistakes.size):
            mistakes[i] += predictions[rows[i], t] != labels[t] and labels[t] >= 0
        following = least(mistakes)
        after[row, t] = after[rows[following], t]
        changed[row, t] = 1 if following != best else changed[chosen, t]
    return -1


@kernel(FOLLOW)
def predict_best(f: Following, t: int, _: int) -> int:
    """Return the class of an instance without learning."""
    best = least(f.mistakes)
    return act(f.predicts[best], f.parts[best], t, f.which[best])


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


class Weighing(Struct):
    """A weighted combination at work."""

    how: int = int64
    beta: float = float64
    row: int = int64  # among what is `played`
    learning: int = int64
    rows: np.ndarray = Indices  # those of the children
    mistakes: np.ndarray = Indices
    squares: np.ndarray = Vector  # the sum of the `spread` of a child's scores over the trials
    count: np.ndarray = Vector  # (1,): how many trials
    weights: np.ndarray = Vector  # working memory
    shape: np.ndarray = Indices  # that of the state
    trials: RunningTrials = RunningTrials.numba_type
    played: Played = Played.numba_type
    sums: np.ndarray = Vector  # working memory


@kernel(int64(Weighing.numba_type, int64, int64))
def weigh(w: Weighing, begin: int, end: int) -> int:
    """Weighted votes (WMA), or weighted sums of scores divided by their size.

    The size of a member's scores is the root of their mean `spread` over the trials before; as long as that is 0, of
    the present trial.
    """
    how, beta, mistakes, squares, count, weights = w.how, w.beta, w.mistakes, w.squares, w.count, w.weights
    rows, labels, shape, predictions, scores = w.rows, w.trials.labels, w.shape, w.played.predictions, w.played.tables
    origin, sums = w.played.scored, w.sums
    weights_of(how, beta, mistakes, weights)
    for t in range(begin, end):
        total, known = sums, w.trials.known[t]
        learning = w.learning and labels[t] >= 0
        for c in range(total.size):
            total[c] = 0.0
        for i in range(mistakes.size):
            if how == WMA:
                if predictions[rows[i], t] >= 0:
                    total[predictions[rows[i], t]] += weights[i]
                continue
            present = spread(scores[rows[i], t - origin], known)
            size = squares[i] / count[0] if squares[i] > 0.0 else present
            if size > 0.0:
                for c in range(known):
                    total[c] += weights[i] * scores[rows[i], t - origin, c] / math.sqrt(size)
            if learning:
                squares[i] += present
        predictions[w.row, t] = top_two(total, known, shape)[0]
        if t >= origin:
            for c in range(scores.shape[2]):
                scores[w.row, t - origin, c] = total[c]
        w.played.changed[w.row, t] = 1
        if learning:
            count[0] += 1.0
            for i in range(mistakes.size):
                mistakes[i] += predictions[rows[i], t] != labels[t]
            weights_of(how, beta, mistakes, weights)
    return -1


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

    takes_gaps = True
    passes_scores_on = True
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

    def part(self, bench: Bench) -> Turn:
        rows, none = np.array([child.row for child in self.children]), np.zeros(0, np.int64)
        f = Following(
            row=self.row, rows=rows, mistakes=self.mistakes, trials=bench.trials, played=bench.played,
            parts=none, predicts=none, which=none,
        )  # fmt: skip
        return Turn(f, follow_best, predict_best)

    def ready(self, bench: Bench) -> None:
        turns = [bench.turns[child.row] for child in self.children]
        bench.turns[self.row].part.bind(
            parts=np.array([turn.part.address for turn in turns]),
            predicts=np.array([entry(turn.predict) for turn in turns]),
            which=np.array([turn.which for turn in turns]),
        )

    def judge(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        return self.best.judge(engine, trials)

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

    takes_gaps = True
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

    def part(self, bench: Bench) -> Turn:
        rows, count = np.array([child.row for child in self.children]), len(self.children)
        w = Weighing(
            how=self.how, beta=self.beta, row=self.row, rows=rows, learning=1, mistakes=self.mistakes,
            squares=self.squares, count=self.trials, weights=np.zeros(count), shape=bench.state.shape,
            trials=bench.trials, played=bench.played, sums=np.zeros(0),
        )  # fmt: skip
        return Turn(w, weigh, None)

    def begin(self, bench: Bench) -> None:
        bench.turns[self.row].part.sums = np.zeros(bench.classes)

    def judge(self, engine: Engine, trials: Trials) -> tuple[np.ndarray, np.ndarray]:
        judged, size = [child.judge(engine, trials) for child in self.children], trials.size
        count, none = len(judged), np.zeros((0, 0), np.int32)
        scores = np.array([*(table for _, table in judged), np.zeros((size, engine.k))])
        played = Played(
            predictions=np.array([*(predictions for predictions, _ in judged), np.zeros(size, np.int32)]),
            changed=np.zeros((count + 1, size), np.uint8), before=none, after=none, tables=scores, margins=np.zeros(0),
        )  # fmt: skip
        w = Weighing(
            how=self.how, beta=self.beta, row=count, rows=np.arange(count), mistakes=self.mistakes,
            squares=self.squares, count=self.trials, weights=np.zeros(count), shape=engine.state.shape,
            trials=RunningTrials(known=trials.known), played=played, sums=np.zeros(engine.k),
        )  # fmt: skip
        weigh(w, 0, size)
        return played.predictions[count], scores[count]

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
