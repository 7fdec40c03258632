"""FTRL-proximal: follow the regularised leader, coordinate by coordinate, on the logistic or the hinge loss.

McMahan, Holt, Sculley et al. (2013).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linmax.core.contract import STEP, Part, Rule
from linmax.jit.compiling import kernel
from linmax.rules.logistic import surprise
from linmax.rules.mixing import average
from linmax.util.checks import at_least, one_of, positive

__all__ = ["ftrl"]


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
    rate, beta, l1, l2 = params[0], params[1], params[2], params[3]
    if params[4] != 0.0:
        slope = surprise(margin)
    else:
        slope = 1.0 if margin < 1.0 else 0.0
    if slope == 0.0:
        return False
    changed = False
    for j in range(index.size):
        i, gradient = index[j], -slope * z[j]
        if gradient == 0.0:
            continue
        squares = memory[1, i] + gradient * gradient
        sigma = (math.sqrt(squares) - math.sqrt(memory[1, i])) / rate
        memory[0, i] += gradient - sigma * weights[i]
        memory[1, i] = squares
        beyond = abs(memory[0, i]) - l1
        weight = -math.copysign(beyond, memory[0, i]) / ((beta + math.sqrt(squares)) / rate + l2)
        weights[i] = weight if beyond > 0.0 else 0.0
        changed = True
    return changed


def mix(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    """q and sqrt(n) are mixed."""
    rate, beta, l1, l2 = rule.values[:4]
    total = average([part.memory[0] for part in parts], shares)
    root = average([np.sqrt(part.memory[1]) for part in parts], shares)
    target.memory[0], target.memory[1] = total, root * root
    beyond = np.maximum(np.abs(total) - l1, 0.0)
    target.weights[:] = -np.copysign(beyond, total) / ((beta + root) / rate + l2)


def ftrl(rate: float = 0.1, beta: float = 1.0, l1: float = 0.0, l2: float = 0.0, loss: str = "logistic") -> Rule:
    """FTRL-proximal: rates that fall coordinate by coordinate, and weights that are exactly 0 while evidence is weak.

    With the gradient g = -z / (1 + exp(w.z)) (logistic), or -z while w.z < 1 (hinge), for each coordinate:
    s = (sqrt(n_i + g_i^2) - sqrt(n_i)) / rate, q_i <- q_i + g_i - s w_i, n_i <- n_i + g_i^2;
    w_i = 0 if |q_i| <= l1, else -(q_i - sign(q_i) l1) / ((beta + sqrt(n_i))/rate + l2).

    Parameters
    ----------
    rate, beta
        A coordinate's rate is rate / (beta + sqrt(n_i)).
    l1, l2
        Regularisation: l1 makes weights 0, l2 small.
    loss
        "logistic" or "hinge".

    References
    ----------
    McMahan, Holt, Sculley et al. (2013), Ad click prediction: a view from the trenches, algorithm 1.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.datasets.majority_problem(trials=300, seed=1)
    >>> trace = linmax.run(linmax.rules.ftrl(rate=1), linmax.instances(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 100
    True
    """
    rate, beta = positive("rate", rate, 0.1), at_least("beta", beta, 0.0, 1.0)
    l1, l2 = at_least("l1", l1, 0.0), at_least("l2", l2, 0.0)
    loss = one_of("loss", loss, ("logistic", "hinge"))
    return Rule(
        "ftrl",
        {"rate": rate, "beta": beta, "l1": l1, "l2": l2, "loss": loss},
        step,
        values=(rate, beta, l1, l2, float(loss == "logistic")),
        slots=(0.0, 0.0),
        reach=math.inf if loss == "logistic" else 1.0,
        mix=mix,
        defaults={"rate": 0.1, "beta": 1.0, "l1": 0.0, "l2": 0.0, "loss": "logistic"},
    )
