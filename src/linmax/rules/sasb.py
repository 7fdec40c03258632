"""SASB, an experimental reconstruction of the apobayesian relative of Winnow. After Littlestone and Mesterharm (1997).

The original equations were not at hand. This is the mistake-driven posterior vote under the prior "one attribute
predicts the label, with an unknown accuracy uniform on [0, 1]": over m updates, with v_i = sum of z_i,
w_i = v_i Gamma((m + v_i)/2 + 1) Gamma((m - v_i)/2 + 1), defined for z in [-1, 1] and so liftable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linmax.core.contract import OWN, SHIFT, SPREAD, STEP, WEIGHT, Part, Rule
from linmax.jit.compiling import kernel
from linmax.rules.mixing import mix_memory, weights_of_memory

__all__ = ["sasb"]

UPDATES = OWN


@kernel(SPREAD)
def spread(memory: np.ndarray, scalars: np.ndarray, i: int, params: np.ndarray) -> tuple[float, float]:
    v, m = memory[0, i], scalars[UPDATES]
    return v, math.lgamma(0.5 * (m + v) + 1.0) + math.lgamma(0.5 * (m - v) + 1.0)


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
    if margin > 0.0:
        return False
    scalars[UPDATES] += scalars[WEIGHT]  # no |v| is larger
    for j in range(index.size):
        memory[0, index[j]] += z[j]
    largest = -np.inf
    for j in range(index.size):
        v, log = spread(memory, scalars, index[j], params)
        if v == v and log > largest:  # nan marks a coordinate that does not exist
            largest = log
    for j in range(index.size):
        v, log = spread(memory, scalars, index[j], params)
        if v == v:
            weights[index[j]] = v * math.exp(log - largest)
    if largest > -np.inf:
        scalars[SHIFT] = largest
    return True


def mix(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    """v and the count of updates are mixed."""
    mix_memory(parts, shares, target)
    weights_of_memory(rule, target)


def sasb() -> Rule:
    """SASB without parameters (experimental: our reconstruction; no bound is known for it).

    Every update changes every weight, so it costs O(n) where the other rules cost O(nonzeros).

    References
    ----------
    Littlestone and Mesterharm (1997), An apobayesian relative of Winnow, whose abstract states what is kept here:
    mistake-driven, linear threshold, no parameters, the relation to on-line Bayes.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.datasets.majority_problem(trials=300, seed=1)
    >>> trace = linmax.run(linmax.rules.sasb(), linmax.instances(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 150
    True
    """
    return Rule("sasb", {}, step, slots=(0.0,), scalars=(0.0,), spread=spread, everywhere=True, bounded=True, mix=mix)
