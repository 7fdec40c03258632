"""AdaGrad on the hinge loss. If w.z < 1: G_i <- G_i + z_i^2, w_i <- w_i + rate z_i / sqrt(G_i).

Duchi, Hazan and Singer (2011).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linmax.core.contract import STEP, Part, Rule
from linmax.jit.compiling import kernel
from linmax.rules.mixing import average
from linmax.util.checks import positive

__all__ = ["adagrad"]


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
    changed = False
    for j in range(index.size):
        i = index[j]
        memory[0, i] += z[j] * z[j]
        if memory[0, i] > 0.0:
            weights[i] += params[0] * z[j] / math.sqrt(memory[0, i])
            changed = True
    return changed


def mix(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    """By precision, which is sqrt(G)."""
    roots = [np.sqrt(part.memory[0]) for part in parts]
    root = average(roots, shares)
    pulls = average([r * part.weights for r, part in zip(roots, parts, strict=True)], shares)
    target.memory[0] = root * root
    target.weights[:] = np.divide(pulls, root, out=np.zeros_like(root), where=root > 0.0)


def adagrad(rate: float = 1.0) -> Rule:
    """AdaGrad: gradient steps on the hinge loss, each coordinate with a rate that falls with its own steps.

    If w.z < 1: G_i <- G_i + z_i^2 and w_i <- w_i + rate z_i / sqrt(G_i).

    Parameters
    ----------
    rate
        > 0; the first step of a coordinate has this size whatever the scale of its values.

    References
    ----------
    Duchi, Hazan and Singer (2011), Adaptive subgradient methods for online learning and stochastic optimization.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.datasets.majority_problem(trials=300, seed=1)
    >>> trace = linmax.run(linmax.rules.adagrad(), linmax.instances(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 100
    True
    """
    rate = positive("rate", rate, 1.0)
    return Rule(
        "adagrad", {"rate": rate}, step, values=(rate,), slots=(0.0,), reach=1.0, mix=mix, defaults={"rate": 1.0}
    )
