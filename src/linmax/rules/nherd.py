"""NHERD, normal herding. If w.z < 1: w <- w + (1 - w.z) Sz / (v + 1/C), S <- S - (C^2 v + 2C)/(1 + Cv)^2 Sz (Sz)'.

v = z'Sz. Crammer and Lee (2010).
"""

from __future__ import annotations

import numpy as np

from linmax.checks import positive
from linmax.contract import STEP, Rule, kernel
from linmax.rules.second_order import move, variance

__all__ = ["nherd"]


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
    C = params[0]
    v = variance(memory[0], index, z)
    if v == 0.0:
        return False
    move(weights, memory[0], index, z, (1.0 - margin) / (v + 1.0 / C), (C * C * v + 2.0 * C) / (1.0 + C * v) ** 2)
    return True


def nherd(C: float = 1.0) -> Rule:
    """NHERD: as `arow`, but the variances fall about twice as fast.

    If w.z < 1: with v = z'Sz, w <- w + (1 - w.z) Sz / (v + 1/C) and S <- S - (C^2 v + 2C)/(1 + C v)^2 Sz (Sz)', of
    which the diagonal is kept, 1 at first.

    Parameters
    ----------
    C
        Aggressiveness, > 0.

    References
    ----------
    Crammer and Lee (2010), Learning via Gaussian herding.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.majority_problem(trials=300, seed=1)
    >>> trace = linmax.run(linmax.rules.nherd(), linmax.experts(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 80
    True
    """
    C = positive("C", C, 1.0)
    return Rule("nherd", {"C": C}, step, values=(C,), slots=(1.0,), reach=1.0, defaults={"C": 1.0})
