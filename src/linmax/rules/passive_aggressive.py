"""Passive-aggressive rules. If w.z < 1: w <- w + tau z, the least step that reaches a margin of 1, or less of it.

Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006).
"""

from __future__ import annotations

import math

import numpy as np

from linmax.core.contract import HUGE, STEP, TOP, WEIGHT, Rule
from linmax.jit.compiling import kernel
from linmax.rules.mixing import mix_weights
from linmax.util.checks import positive

__all__ = ["pa", "pa_i", "pa_ii"]

BOUND = "its bound is on mistakes, not on updates: see linmax.theory.bounds.passive_aggressive"


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
    most, softness = params[0] * scalars[WEIGHT], params[1] / scalars[WEIGHT]
    if margin >= 1.0:
        return False
    square = 0.0
    for j in range(index.size):
        square += z[j] * z[j]
    if square == 0.0:
        return False
    tau = min(most, (1.0 - margin) / (square + softness))
    fits = True
    for j in range(index.size):
        weight = weights[index[j]] + tau * z[j]
        weights[index[j]] = weight
        fits &= abs(weight) < HUGE
    scalars[TOP] = 0.0 if fits else np.inf
    return True


def pa() -> Rule:
    """PA: if w.z < 1, then w <- w + tau z with tau = (1 - w.z) / |z|^2, after which w.z = 1.

    Notes
    -----
    Mistakes <= R^2 |u|^2 with R >= |z| and u.z >= 1 on every trial: `linmax.theory.bounds.passive_aggressive`.

    References
    ----------
    Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006), Online passive-aggressive algorithms.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.datasets.majority_problem(trials=300, seed=1)
    >>> trace = linmax.run(linmax.rules.pa(), linmax.instances(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 100
    True
    """
    return Rule("pa", {}, step, values=(math.inf, 0.0), reach=1.0, weighs=True, mix=mix_weights, bound=BOUND)


def pa_i(C: float = 1.0) -> Rule:
    """PA-I: as `pa`, but no step is larger than C: tau = min(C, (1 - w.z) / |z|^2).

    Parameters
    ----------
    C
        Aggressiveness, > 0: small for noisy labels.

    Notes
    -----
    Mistakes <= max(R^2, 1/C) (|u|^2 + 2 C sum max(0, 1 - u.z)) for every u.

    References
    ----------
    Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006), Online passive-aggressive algorithms.

    Examples
    --------
    >>> import linmax
    >>> str(linmax.rules.pa_i()), str(linmax.rules.pa_i(0.1))
    ('pa-i', 'pa-i(C=0.1)')
    """
    C = positive("C", C, 1.0)
    return Rule(
        "pa_i",
        {"C": C},
        step,
        values=(C, 0.0),
        reach=1.0,
        weighs=True,
        mix=mix_weights,
        bound=BOUND,
        defaults={"C": 1.0},
    )


def pa_ii(C: float = 1.0) -> Rule:
    """PA-II: as `pa`, with every step made shorter: tau = (1 - w.z) / (|z|^2 + 1/(2C)).

    Parameters
    ----------
    C
        Aggressiveness, > 0: small for noisy labels.

    Notes
    -----
    Mistakes <= (R^2 + 1/(2C)) (|u|^2 + 2 C sum max(0, 1 - u.z)^2) for every u.

    References
    ----------
    Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006), Online passive-aggressive algorithms.

    Examples
    --------
    >>> import linmax
    >>> str(linmax.rules.pa_ii(0.5))
    'pa-ii(C=0.5)'
    """
    C = positive("C", C, 1.0)
    return Rule(
        "pa_ii",
        {"C": C},
        step,
        values=(math.inf, 0.5 / C),
        weighs=True,
        reach=1.0,
        mix=mix_weights,
        bound=BOUND,
        defaults={"C": 1.0},
    )
