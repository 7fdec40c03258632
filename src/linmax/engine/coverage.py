"""Adaptive conformal inference: how far below the highest score the label lies, and how often that was foreseen.

The gap of a class is the highest score less its own. A prediction set of level a holds the classes whose gap is at
most the quantile 1 - a of the labels' gaps in the last trials. After each trial

    a <- a + step (miss rate asked for - 1 if the label was not in the set, else 0),

so that sets widen after misses: over any sequence of trials, even an adversary's, the miss rate comes to that asked for
(Gibbs and Candes 2021, Adaptive conformal inference under distribution shift;
`linmax.theory.bounds.adaptive_coverage`). Several coverages are followed side by side.
"""

from __future__ import annotations

import math

import numpy as np

from linmax.jit.compiling import kernel

__all__ = ["COVERAGES", "LEVEL_STEPS", "covered", "follow", "level_for", "reach"]

COVERAGES = np.array([0.99, 0.975, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5])  # that are followed
MISSES = 1.0 - COVERAGES
LEVEL_STEPS = np.minimum(0.01, 0.1 * MISSES)
GAPS = 400  # trials whose gaps the quantile is of


@kernel()
def smaller(gaps: np.ndarray, gap: float) -> int:
    """Return the number of gaps that are smaller than this one."""
    count = 0
    for i in range(gaps.size):
        count += gaps[i] < gap
    return count


@kernel()
def follow(levels: np.ndarray, gaps: np.ndarray, judged: int, gap: float) -> None:
    """Learn from the gap of a label; ``gaps`` is a ring of those of the ``judged`` trials before."""
    size = gaps.size
    seen = min(judged, GAPS, size)
    begin = (judged - seen) % size
    count = smaller(gaps[begin : min(begin + seen, size)], gap)
    if begin + seen > size:
        count += smaller(gaps[: begin + seen - size], gap)
    for i in range(levels.size):
        rank = math.ceil((1.0 - levels[i]) * (seen + 1))
        missed = 1.0 if rank <= seen and count >= rank else 0.0
        levels[i] += LEVEL_STEPS[i] * (MISSES[i] - missed)


def level_for(levels: np.ndarray, coverage: float) -> float:
    """The present level for a coverage; between those that are followed, on a straight line."""
    return float(np.interp(1.0 - coverage, [0.0, *MISSES, 1.0], [0.0, *levels, 1.0]))


def reach(levels: np.ndarray, gaps: np.ndarray, judged: int, coverage: float) -> float:
    """The largest gap in a set of this coverage: infinite while too little is known, -inf for none.

    Examples
    --------
    >>> gaps = np.arange(1.0, 10.0)  # of nine trials
    >>> reach(MISSES, gaps, judged=9, coverage=0.9), reach(MISSES, gaps, 9, 0.5), reach(MISSES, gaps, 8, 0.9)
    (9.0, 5.0, inf)
    """
    seen = min(judged, GAPS, gaps.size)
    rank = math.ceil((1.0 - level_for(levels, coverage)) * (seen + 1))
    if rank > seen:
        return math.inf
    recent = gaps[np.arange(judged - seen, judged) % gaps.size]
    return float(np.partition(recent, rank - 1)[rank - 1]) if rank >= 1 else -math.inf


def covered(levels: np.ndarray, judged: int) -> dict[float, float]:
    """The share of trials whose label was in the set of each coverage: the levels are what the misses add up to.

    Examples
    --------
    >>> levels, gaps = MISSES.copy(), np.zeros(4)
    >>> for t, gap in enumerate([0.0, 0.0, 9.0, 9.0]):
    ...     follow(levels, gaps, t, gap)
    ...     gaps[t] = gap
    >>> covered(levels, 4)[0.5]
    0.5
    """
    shares = COVERAGES - (MISSES - levels) / (LEVEL_STEPS * judged)
    return dict(zip(COVERAGES.tolist(), shares.round(12).tolist(), strict=True))
