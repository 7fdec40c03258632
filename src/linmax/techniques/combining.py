"""Combining whole learners: follow the best so far (Mesterharm and Hsu), let all vote with weights that fall with
their mistakes (the Weighted Majority Algorithm, Littlestone and Warmuth 1994), or add their scores so weighted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import float64, int64, types

from linmax.core.contract import KNOWN, Bytes, Cube, Indices, Labels, LabelTable, Matrix, State, StateT, Vector
from linmax.core.linear_max import top_two
from linmax.jit.compiling import kernel
from linmax.techniques import bracketed
from linmax.util.checks import finite, one_of

__all__ = ["WAYS", "Combined", "Stacked", "follow_best", "weigh", "weights_of"]

BEST, WMA, WEIGHTED = 0, 1, 2
WAYS = {"best": BEST, "wma": WMA, "weighted": WEIGHTED}
ROUNDING = 1e-24  # of squares, relative
ByteTable = types.Array(types.uint8, 2, "C")


@kernel()
def least(mistakes: np.ndarray) -> int:
    """The member with the fewest mistakes; of those that tie the first."""
    best = 0
    for i in range(mistakes.size):
        if mistakes[i] < mistakes[best]:
            best = i
    return best


FOLLOW = types.void(LabelTable, ByteTable, Labels, Indices, Labels, Labels, Labels, Bytes)


@kernel(FOLLOW)
def follow_best(
    proposals: np.ndarray,
    changes: np.ndarray,
    labels: np.ndarray,
    mistakes: np.ndarray,
    predictions: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
    changed: np.ndarray,
) -> None:
    """Predict like the member with the fewest mistakes so far; say which it was before and after each trial."""
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
    return square if square > ROUNDING * mean * mean else 0.0


@kernel(
    types.void(
        int64, float64, LabelTable, Cube, Labels, Indices, Vector, Vector, StateT, Vector, Labels, Matrix, types.boolean
    )
)
def weigh(
    how: int,
    beta: float,
    proposals: np.ndarray,
    scores: np.ndarray,
    labels: np.ndarray,
    mistakes: np.ndarray,
    squares: np.ndarray,
    trials: np.ndarray,
    state: State,
    weights: np.ndarray,
    predictions: np.ndarray,
    table: np.ndarray,
    learning: bool,
) -> None:
    """Weighted votes (WMA) or weighted sums of scores divided by their size; ``table`` receives the sums.

    The size of a member's scores is the root of their mean `spread` over the trials before, which ``squares`` sums up;
    as long as that is 0, of the trial at hand. ``weights`` is room for the members' weights.
    """
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
class Combined:
    """Description of a combination; made by `linmax.combine`."""

    members: tuple[Any, ...]
    how: str
    beta: float
    pool: str = ""  # the notation of a pool that has a name of its own, such as "R-combine"

    def __str__(self) -> str:
        if self.pool:
            return self.pool
        options = bracketed({"how": self.how, "beta": self.beta}, {"how": "best", "beta": 0.5})
        return f"combine({', '.join([*map(str, self.members), *filter(None, [options[1:-1]])])})"

    def __post_init__(self) -> None:
        if not self.members:
            raise ValueError("combine() needs at least one learner, got none")
        one_of("how", self.how, WAYS)
        if not 0.0 < finite("beta", self.beta) < 1.0:
            raise ValueError(f"beta must be in (0, 1), got {self.beta!r}; try 0.5")


@dataclass(frozen=True)
class Stacked:
    """Description of a stack; made by `linmax.stack`."""

    members: tuple[Any, ...]
    fusion: Any

    def __str__(self) -> str:
        return f"stack({', '.join(map(str, self.members))}, fusion={self.fusion})"

    def __post_init__(self) -> None:
        if not self.members:
            raise ValueError("stack() needs at least one learner, got none")
