"""Generated problems: the majority learning problem of Mesterharm and Hsu."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linmax.util.checks import at_least, whole

__all__ = ["MajorityProblem", "majority_problem"]


@dataclass(frozen=True, eq=False)
class MajorityProblem:
    """Trials of the majority learning problem and the weights that solve it.

    Attributes
    ----------
    votes : int32 array (trials, n)
        The class, 0..k-1, that each sub-expert votes for. The first r sub-experts are the relevant ones.
    labels : int32 array (trials,)
        Labels that the learner sees, noise included.
    clean : int32 array (trials,)
        The labels before noise.
    target : array (n + k,)
        Weights u >= 0 with sum 1 that predict every clean label: the n sub-experts, then the thresholds of
        classes 0..k-1.
    margin : float
        delta, the least lead that `target` gives the clean label over any other class.
    """

    votes: np.ndarray
    labels: np.ndarray
    clean: np.ndarray
    target: np.ndarray
    margin: float


def _most_voted(votes: np.ndarray, k: int) -> np.ndarray:
    """The class with most votes in each row; argmax takes the first, so a tie goes to the smallest class."""
    trials = len(votes)
    cells = np.arange(trials)[:, np.newaxis] * k + votes
    counts = np.bincount(cells.ravel(), minlength=trials * k).reshape(trials, k)
    return np.asarray(np.argmax(counts, axis=1), dtype=np.int32)


def _target(n: int, r: int, k: int) -> tuple[np.ndarray, float]:
    """The weights of the paper for any n, r, k.

    Neighbouring thresholds differ by delta, which decides ties; one vote must outweigh the largest
    difference of two thresholds, (k - 1) delta, by delta, so a relevant sub-expert weighs k delta. The sum 1
    fixes delta.
    """
    parts = r * k + math.comb(k, 2)
    units = np.zeros(n + k)
    units[:r] = k
    units[n:] = np.arange(k - 1, -1, -1)
    return units / parts, 1.0 / parts


def majority_problem(
    n: int = 20, r: int = 10, k: int = 5, noise: float = 0.0, trials: int = 5000, seed: int = 0
) -> MajorityProblem:
    """Generate trials of the majority learning problem.

    In each trial each of n sub-experts votes for one of k classes, uniformly. The label is the class with
    most votes among the first r sub-experts, the smallest such class on a tie. With probability ``noise`` the
    label is replaced by one of the k - 1 others, uniformly; up to noise = 1 - 1/k, no learner can expect a
    lower error than that.

    The target weighs each relevant sub-expert k delta and the threshold of class c (k - 1 - c) delta, with
    delta = 1 / (r k + k (k - 1) / 2): for the default 1/12 each, thresholds 4/60, 3/60, 2/60, 1/60, 0 and
    margin delta = 1/60. A learner needs the k thresholds (``experts(votes=...)`` adds them) for the ties.

    Parameters
    ----------
    n, r, k
        Sub-experts, the relevant ones among them, and classes.
    noise
        Probability of a wrong label.
    trials
        Number of trials.
    seed
        Whole number >= 0. It starts three independent streams: the votes, row by row; one uniform number a
        trial, below ``noise`` when the label is replaced; which other class replaces it. So a longer run
        begins with the same trials, and all noise levels share their votes (a trial noisy at .05 is noisy at
        .1, with the same label).

    Returns
    -------
    MajorityProblem
        ``votes``, ``labels``, ``clean``, ``target`` and ``margin``.

    References
    ----------
    Mesterharm and Hsu, "Combinatorial fusion with on-line learning algorithms", section VII.

    Examples
    --------
    >>> problem = majority_problem(noise=0.05, trials=1000, seed=1)
    >>> problem.votes.shape, problem.target.shape
    ((1000, 20), (25,))
    >>> round(1 / problem.margin, 9)
    60.0
    >>> bool(0.03 < np.mean(problem.labels != problem.clean) < 0.07)
    True
    """
    n, r, k = whole("n", n, 1), whole("r", r, 1), whole("k", k, 2)
    trials, seed = whole("trials", trials, 1), whole("seed", seed, 0)
    noise = at_least("noise", noise, 0.0)
    if noise > 1.0:
        raise ValueError(f"noise must be <= 1 (it is a probability), got {noise:g}; try 0.05")
    if r > n:
        raise ValueError(f"r must be <= n = {n} (the relevant are among the n sub-experts), got {r}; try {n}")

    streams = np.random.SeedSequence(seed).spawn(3)
    voting, flipping, replacing = (np.random.default_rng(stream) for stream in streams)
    votes = voting.integers(k, size=(trials, n), dtype=np.int32)
    clean = _most_voted(votes[:, :r], k)
    flipped = flipping.random(trials) < noise
    other = replacing.integers(k - 1, size=trials, dtype=np.int32)
    other += other >= clean  # 0..k-2 without the clean label -> the k-1 other classes
    target, margin = _target(n, r, k)
    return MajorityProblem(votes, np.where(flipped, other, clean), clean, target, margin)
