"""AROW, adaptive regularisation of weights. If w.z < 1: w <- w + (1 - w.z) b Sz, S <- S - b Sz (Sz)'.

b = 1/(z'Sz + r). Crammer, Kulesza and Dredze (2009).
"""

from __future__ import annotations

import numpy as np

from linmax.checks import finite, positive
from linmax.contract import STEP, Rule, kernel
from linmax.rules.second_order import move, variance

__all__ = ["arow"]


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
    if margin >= 1.0:
        return False
    v = variance(memory[0], index, z)
    if v == 0.0:
        return False
    b = 1.0 / (v + params[0])
    move(weights, memory[0], index, z, (1.0 - margin) * b, b)
    return True


def arow(r: float = 1.0, start: float = 0.0) -> Rule:
    """AROW: a step towards margin 1 along Sz, where S holds the variance of each weight, 1 at first.

    If w.z < 1: with b = 1/(z'Sz + r), w <- w + (1 - w.z) b Sz and S <- S - b Sz (Sz)', of which the diagonal is kept.

    Parameters
    ----------
    r
        > 0. Larger makes all steps smaller and the variances fall more slowly.
    start
        Weight of a coordinate never seen.

    Notes
    -----
    With the full matrix: mistakes <= sqrt(r |u|^2 + u'Xu) sqrt(ln det(I + X/r) + U) + sum max(0, 1 - u.z) - U, where
    X = sum z z' over the updates and U of them were no mistakes: `linmax.bounds.arow`.

    References
    ----------
    Crammer, Kulesza and Dredze (2009), Adaptive regularization of weight vectors.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.majority_problem(trials=300, seed=1)
    >>> trace = linmax.run(linmax.rules.arow(), linmax.experts(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 80
    True
    """
    r, start = positive("r", r, 1.0), finite("start", start)
    return Rule(
        "arow",
        {"r": r, "start": start},
        step,
        values=(r,),
        start=start,
        slots=(1.0,),
        reach=1.0,
        defaults={"r": 1.0, "start": 0.0},
    )
