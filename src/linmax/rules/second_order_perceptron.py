"""Second-order Perceptron, lagged. If w.z <= 0: A <- A + zz', y <- y + z, w = A^-1 y, A = a I at first.

Cesa-Bianchi, Conconi and Gentile (2005).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linmax.core.contract import STEP, WEIGHT, Part, Rule
from linmax.jit.compiling import kernel
from linmax.rules.mixing import mix_memory
from linmax.util.checks import positive

__all__ = ["second_order_perceptron"]


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
    changed, weight = False, scalars[WEIGHT]
    for j in range(index.size):
        i = index[j]
        memory[0, i] += weight * z[j] * z[j]
        memory[1, i] += weight * z[j]
        weights[i] = memory[1, i] / memory[0, i]
        changed = changed or z[j] != 0.0
    return changed


def mix(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    """Mix A and y."""
    mix_memory(parts, shares, target)
    target.weights[:] = target.memory[1] / target.memory[0]


def second_order_perceptron(a: float = 1.0) -> Rule:
    """The second-order Perceptron in a form that lifts to many classes.

    If w.z <= 0: A <- A + zz', y <- y + z, w = A^-1 y, with A = a I at first; the diagonal of A is kept.

    Parameters
    ----------
    a
        > 0; the larger, the more it is like the Perceptron.

    Notes
    -----
    The original predicts with (A + zz')^-1, where z is the instance to be predicted; of many classes z is known only
    afterwards. This form leaves it out, and the bound of the original
    (`linmax.theory.bounds.second_order_perceptron`) does not cover it.

    References
    ----------
    Cesa-Bianchi, Conconi and Gentile (2005), A second-order Perceptron algorithm.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.datasets.majority_problem(trials=300, seed=1)
    >>> rule = linmax.rules.second_order_perceptron()
    >>> int(linmax.run(rule, linmax.instances(votes=data.votes), data.labels).mistakes[-1]) < 150
    True
    """
    a = positive("a", a, 1.0)
    return Rule("second_order_perceptron", {"a": a}, step, slots=(a, 0.0), weighs=True, mix=mix, defaults={"a": 1.0})
