"""Logistic regression, stochastic gradient: w <- w + rate (z / (1 + exp(w.z)) - l2 w) on every trial."""

from __future__ import annotations

import math

import numpy as np

from linmax.core.contract import STEP, Rule
from linmax.jit.compiling import kernel
from linmax.rules.mixing import mix_weights
from linmax.util.checks import at_least, positive

__all__ = ["logistic", "surprise"]


@kernel()
def surprise(margin: float) -> float:
    """1 / (1 + exp(margin)), the probability that the label was not given."""
    if margin > 0.0:
        small = math.exp(-margin)
        return small / (1.0 + small)
    return 1.0 / (1.0 + math.exp(margin))


@kernel(STEP)
def step(
    weights: np.ndarray,
    memory: np.ndarray,
    scalars: np.ndarray,
    index: np.ndarray,
    z: np.ndarray,
    margin: float,
    params: np.ndarray,
) -> bool:
    amount, shrink = params[0] * surprise(margin), params[0] * params[1]
    if amount == 0.0 and shrink == 0.0:
        return False
    for j in range(index.size):
        weights[index[j]] += amount * z[j] - shrink * weights[index[j]]
    return True


def logistic(rate: float = 1.0, l2: float = 0.0) -> Rule:
    """Logistic regression by gradient steps: w <- w + rate z / (1 + exp(w.z)), on every trial.

    Parameters
    ----------
    rate
        Size of a step, > 0.
    l2
        Regularisation: every step also takes rate l2 w_i from each weight that z concerns. rate l2 must be < 1.

    Notes
    -----
    With many classes it is the logistic loss of the label against its best rival.

    References
    ----------
    Bottou (1998), Online learning and stochastic approximations.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.datasets.majority_problem(trials=300, seed=1)
    >>> trace = linmax.run(linmax.rules.logistic(), linmax.instances(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 100
    True
    """
    rate, l2 = positive("rate", rate, 1.0), at_least("l2", l2, 0.0)
    if rate * l2 >= 1.0:
        raise ValueError(f"rate times l2 must be < 1, got {rate * l2:g}; try l2={0.001 / rate:g}")
    return Rule(
        "logistic",
        {"rate": rate, "l2": l2},
        step,
        values=(rate, l2),
        reach=math.inf,
        mix=mix_weights,
        defaults={"rate": 1.0, "l2": 0.0},
    )
