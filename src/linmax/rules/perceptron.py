"""Perceptron. If w.z <= margin: w <- w + rate z. Rosenblatt (1962); Mesterharm (2001), section 4.1."""

from __future__ import annotations

import numpy as np

from linmax.core.contract import HUGE, STEP, TOP, Rule
from linmax.jit.compiling import kernel
from linmax.util.checks import at_least, positive

__all__ = ["perceptron"]


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
    if margin > params[1]:
        return False
    rate, fits = params[0], True
    for j in range(index.size):
        place = np.uint64(index[j])  # which counts from the beginning without being asked
        weight = weights[place] + rate * z[j]
        weights[place] = weight
        fits &= abs(weight) < HUGE
    scalars[TOP] = 0.0 if fits else np.inf
    return True


def perceptron(rate: float = 1.0, margin: float = 0.0) -> Rule:
    """The Perceptron: if w.z <= margin, then w <- w + rate z.

    Parameters
    ----------
    rate
        Size of a step. Without a margin it changes no prediction, since the weights start at 0.
    margin
        Thickness of the separator: also update when the right class leads by at most this much.

    Notes
    -----
    Updates <= (R U / gamma)^2 with R >= ||z||, U = ||u|| and u.z >= gamma on every trial.

    References
    ----------
    Rosenblatt (1962), Principles of Neurodynamics. Mesterharm (2001), Rutgers dcs-tr-460, section 4.1.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.majority_problem(trials=200, seed=1)
    >>> trace = linmax.run(linmax.rules.perceptron(), linmax.experts(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 120
    True
    """
    positive("rate", rate, 1.0)
    at_least("margin", margin, 0.0)
    return Rule(
        "perceptron",
        {"rate": float(rate), "margin": float(margin)},
        step,
        values=(float(rate), float(margin)),
        reach=float(margin),
        defaults={"rate": 1.0, "margin": 0.0},
    )
