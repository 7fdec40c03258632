"""Perceptron. If w.z <= margin: w <- w + rate z. Rosenblatt (1962); Mesterharm (2001), section 4.1."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linmax.core.contract import HUGE, STEP, TOP, Rule
from linmax.jit.compiling import kernel
from linmax.rules.first_weights import NO_BOUND, first_weights
from linmax.rules.mixing import mix_weights
from linmax.theory.bounding import AdditiveBound, bounds
from linmax.theory.rows import Rows
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
        place = np.uint64(index[j])  # unsigned: no wraparound check
        weight = weights[place] + rate * z[j]
        weights[place] = weight
        fits &= abs(weight) < HUGE
    scalars[TOP] = 0.0 if fits else np.inf
    return True


def bound(rule: Rule, rows: Rows) -> AdditiveBound:
    """`linmax.theory.bounds.perceptron`."""
    rate, margin = rule.values
    return perceptron_bound(rows, margin / rate)


def perceptron_bound(rows: Rows, threshold: float = 0.0) -> AdditiveBound:
    """The bound of the Perceptron that updates while w.z <= threshold, at rate 1."""
    radius = float(rows.sizes(2.0).max())

    def value(norm: float, margin: float, noise: float) -> float:
        return bounds.perceptron(radius, norm, margin, noise, threshold)

    return AdditiveBound(rows, 2.0, math.sqrt(radius**2 + 2.0 * threshold), value)


def perceptron(rate: float = 1.0, margin: float = 0.0, start: float | Sequence[float] = 0.0) -> Rule:
    """The Perceptron: if w.z <= margin, then w <- w + rate z.

    Parameters
    ----------
    rate
        Size of a step. Without a margin it changes no prediction where the weights start at 0.
    margin
        Thickness of the separator: also update when the right class leads by at most this much.
    start
        First weights: one number for all, or a vector for the first coordinates (voters and raters, then thresholds and
        attributes by class); further ones start at 0.

    Notes
    -----
    Updates <= (R U / gamma)^2 with R >= ||z||, U = ||u|| and u.z >= gamma on every trial.

    References
    ----------
    Rosenblatt (1962), Principles of Neurodynamics. Mesterharm (2001), Rutgers dcs-tr-460, section 4.1.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.datasets.majority_problem(trials=200, seed=1)
    >>> trace = linmax.run(linmax.rules.perceptron(), linmax.instances(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 120
    True
    """
    positive("rate", rate, 1.0)
    at_least("margin", margin, 0.0)
    shown, weight, first = first_weights(start, 0.0)
    return Rule(
        "perceptron",
        {"rate": float(rate), "margin": float(margin), "start": shown},
        step,
        values=(float(rate), float(margin)),
        start=weight,
        first=first,
        reach=float(margin),
        only_sign=True,
        mix=mix_weights,
        bound=NO_BOUND if shown else bound,
        defaults={"rate": 1.0, "margin": 0.0, "start": 0.0},
    )
