"""NHERD, normal herding. If w.z < 1: w <- w + (1 - w.z) Sz / (v + 1/C), S <- S - (C^2 v + 2C)/(1 + Cv)^2 Sz (Sz)'.

v = z'Sz. Crammer and Lee (2010).
"""

from __future__ import annotations

import numpy as np

from linmax.core.contract import GAIN, Rule
from linmax.jit.compiling import kernel
from linmax.rules.second_order import OWN, Gain, second_order
from linmax.util.checks import positive

__all__ = ["nherd"]


@kernel(GAIN)
def gain(margin: float, v: float, weight: float, params: np.ndarray) -> tuple[float, float]:
    if margin >= 1.0:
        return 0.0, 0.0
    C = params[OWN] * weight
    return (1.0 - margin) / (v + 1.0 / C), (C * C * v + 2.0 * C) / (1.0 + C * v) ** 2


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
    >>> data = linmax.datasets.majority_problem(trials=300, seed=1)
    >>> trace = linmax.run(linmax.rules.nherd(), linmax.instances(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 80
    True
    """
    C = positive("C", C, 1.0)
    return second_order("nherd", {"C": C}, {"C": 1.0}, Gain(gain, (C,), reach=1.0))
