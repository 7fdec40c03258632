"""The bound of learners that are only told whether the class they tried is right."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from linmax.bounds.arguments import amount, count, lowest_point, number
from linmax.bounds.documentation import documented


def revealed_share(classes: float, gamma: float) -> float:
    """Probability that the label of a trial that B would learn from is revealed."""
    return 1.0 if classes <= 2 else gamma / classes


@documented(
    "Bound on the expected mistakes; infinite where gamma is 0 and there are more than two classes.",
    gamma="Share of trials in which a class is drawn at random, from 0 to 1.",
)
def bandit(
    bound: Callable[..., float], trials: int, classes: int, gamma: float, *, noise: float = 0.0, **known: Any
) -> float:
    """Expected mistakes of a rule that tries a class and is told only whether it is right.

    Conditions: k = ``classes``, all known from the start. With probability gamma the class tried is drawn from all k,
    otherwise it is the prediction. The rule updates only where its prediction is wrong or tied. It is shown the trials
    whose label comes to light: those in which the class tried is right (where the prediction is tied, only if that
    class was drawn), and for k = 2 all. An instance and its label may depend on earlier draws, not on its own.
    ``bound`` is that of the rule with all labels; it must be concave in the noise, as those of the Perceptron, p-norm
    rules and both Winnows are. ``noise`` is the hinge loss of u over all trials, or its mean.

        E[M] <= gamma (1 - 1/k) T + (1 - gamma) bound(r N) / r,   r = gamma/k,   r = 1 for k = 2

    For the Perceptron bound(r N)/r is its bound with R^2 k/gamma for R^2. Without noise the best gamma is about
    sqrt(k/T) rho, rho = R |u|/margin, and gives about 2 sqrt(k T) rho mistakes.

    Proof: let V_t be 1 if the rule would update at trial t if it were shown it, and S_t be 1 if it is shown it. If
    V_t = 1, then S_t = 1 if and only if the label itself is drawn, which has the probability r whatever happened
    before. The updates number sum S_t V_t, and the bound on the trials shown and updated on gives
    sum S_t V_t <= bound(sum S_t V_t loss_t). In the mean, and by Jensen's inequality,
    r E[sum V_t] <= bound(r E[sum V_t loss_t]) <= bound(r N). Every wrong prediction has V_t = 1, so that their mean
    number P is at most bound(r N)/r. The class tried is wrong with probability 1 - gamma/k where the prediction is
    wrong, and gamma (1 - 1/k) where it is right: in all gamma (1 - 1/k) T + (1 - gamma) P. For k = 2 every S_t is 1.

    Source: derived here. The way of learning is that of Kakade, Shalev-Shwartz and Tewari (2008), Efficient bandit
    algorithms for online multiclass prediction, whose Banditron adds k/gamma times as much at a k/gamma-th of the
    trials.

    Examples
    --------
    >>> from linmax.bounds import perceptron
    >>> round(bandit(perceptron, trials=10000, classes=4, gamma=0.04, radius=1, norm=1, margin=0.5), 6)
    684.0
    >>> bandit(perceptron, trials=10000, classes=2, gamma=0.0, radius=1, norm=1, margin=0.5)
    4.0
    """
    T, k, gamma = count("trials", trials, 0), count("classes", classes, 2), number("gamma", gamma)
    if not 0.0 <= gamma <= 1.0:
        raise ValueError(f"gamma must lie from 0 to 1, got {gamma!r}; try 0.1")
    share = revealed_share(k, gamma)
    if share == 0.0:
        return math.inf
    wrong = 0.0 if gamma == 1.0 else (1.0 - gamma) * float(bound(noise=share * amount("noise", noise), **known)) / share
    return gamma * (1.0 - 1.0 / k) * T + wrong


@documented("Best gamma.")
def best_bandit_gamma(
    bound: Callable[..., float], trials: int, classes: int, *, noise: float = 0.0, **known: Any
) -> float:
    """The gamma that makes `bandit` least; 0 for two classes, which need no draws.

    Source: derived here; found by search.

    Examples
    --------
    >>> from linmax.bounds import perceptron
    >>> round(best_bandit_gamma(perceptron, trials=10000, classes=4, radius=1, norm=1, margin=0.5), 3)
    0.046
    """
    T, k = count("trials", trials, 0), count("classes", classes, 2)
    if k == 2.0:
        return 0.0
    return lowest_point(lambda gamma: bandit(bound, int(T), int(k), gamma, noise=noise, **known), 1e-9, 1.0)
