"""AROW, adaptive regularisation of weights. If w.z < 1: w <- w + (1 - w.z) b Sz, S <- S - b Sz (Sz)'.

b = 1/(z'Sz + r). Crammer, Kulesza and Dredze (2009).
"""

from __future__ import annotations

import numpy as np

from linmax.core.contract import GAIN, Rule
from linmax.jit.compiling import kernel
from linmax.rules.second_order import OWN, Gain, second_order
from linmax.util.checks import at_least, finite, positive

__all__ = ["arow"]


@kernel(GAIN)
def gain(margin: float, v: float, weight: float, params: np.ndarray) -> tuple[float, float]:
    if margin >= 1.0:
        return 0.0, 0.0
    b = 1.0 / (v + params[OWN] / weight)
    return (1.0 - margin) * b, b


def arow(r: float = 1.0, start: float = 0.0, inflation: float = 0.0) -> Rule:
    """AROW: a step towards margin 1 along Sz, where S holds the variance of each weight, 1 at first.

    If w.z < 1: with b = 1/(z'Sz + r), w <- w + (1 - w.z) b Sz and S <- S - b Sz (Sz)', of which the diagonal is kept.

    Parameters
    ----------
    r
        > 0. Larger makes all steps smaller and the variances fall more slowly.
    start
        Weight of a coordinate never seen.
    inflation
        Added to the variances at each update (of the coordinates in z), so that the rule does not
        stop learning. A coordinate that appears later starts without it.

    Notes
    -----
    With the full matrix: mistakes <= sqrt(r |u|^2 + u'Xu) sqrt(ln det(I + X/r) + U) + sum max(0, 1 - u.z) - U, where
    X = sum z z' over the updates and U of them were no mistakes: `linmax.theory.bounds.arow`.

    References
    ----------
    Crammer, Kulesza and Dredze (2009), Adaptive regularization of weight vectors.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.datasets.majority_problem(trials=300, seed=1)
    >>> trace = linmax.run(linmax.rules.arow(), linmax.instances(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 80
    True
    """
    r, start = positive("r", r, 1.0), finite("start", start)
    inflation = at_least("inflation", inflation, 0.0)
    return second_order(
        "arow",
        {"r": r, "start": start, "inflation": inflation},
        {"r": 1.0, "start": 0.0, "inflation": 0.0},
        Gain(gain, (r,), reach=1.0, inflation=inflation),
        start,
    )
