"""ROMMA, the relaxed on-line maximum margin algorithm. If w.z <= 0: w <- c w + d z. Li and Long (2002).

w = V exp(BASE + GAUGE) with V in memory, so that multiplying all weights only changes a number. On data that no
weights separate |w| grows without end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linmax.core.contract import GAUGE, MASS, OWN, PEAK, SHIFT, SPREAD, STEP, Part, Rule
from linmax.jit.compiling import kernel
from linmax.rules.mixing import average

__all__ = ["romma"]

SQUARE, MOST, BASE = OWN, OWN + 1, OWN + 2  # |V|^2, the largest it has been, and what was once in GAUGE
FAR_LOG = 100.0  # logarithms beyond this are moved: rare
PARALLEL = 1e-9  # square of the sine of an angle that counts as 0


@kernel(SPREAD)
def spread(memory: np.ndarray, scalars: np.ndarray, i: int, params: np.ndarray) -> tuple[float, float]:
    v = memory[0, i]
    if v == 0.0 or v != v:  # nan where the coordinate does not exist
        return v, 0.0
    return math.copysign(1.0, v), math.log(abs(v)) + scalars[BASE]


@kernel()
def sum_squares(memory: np.ndarray, scalars: np.ndarray) -> None:
    """|V|^2, summed again."""
    total = 0.0
    for i in range(memory.shape[1]):
        if memory[0, i] == memory[0, i]:
            total += memory[0, i] * memory[0, i]
    scalars[SQUARE], scalars[MOST] = total, total


@kernel()
def fold(memory: np.ndarray, scalars: np.ndarray) -> None:
    """Make |V| = 1 and GAUGE = 0; the stored weights stay as they are."""
    log = 0.5 * math.log(scalars[SQUARE])
    for i in range(memory.shape[1]):
        memory[0, i] *= math.exp(-log)
    scalars[BASE] += log + scalars[GAUGE]
    scalars[SHIFT] += scalars[GAUGE]
    scalars[GAUGE] = 0.0
    sum_squares(memory, scalars)


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
    size = 0.0
    for j in range(index.size):
        size += z[j] * z[j]
    if size == 0.0:
        return False
    amount = 1.0 / size
    if scalars[SQUARE] > 0.0:
        size, length = math.sqrt(size), math.sqrt(scalars[SQUARE])
        cosine = margin * math.exp(scalars[SHIFT] - scalars[BASE]) / (length * size)
        apart = 1.0 - cosine * cosine
        if apart <= PARALLEL:
            return False
        inverse = math.exp(-scalars[BASE] - scalars[GAUGE]) / (length * size)  # 1 / (|w| |z|)
        keep = (1.0 - inverse * cosine) / apart
        amount = length / size * (inverse - cosine) / (apart * keep)
        scalars[GAUGE] += math.log(keep)
    stored = math.exp(scalars[BASE] - scalars[SHIFT])
    for j in range(index.size):
        i = index[j]
        step_i = amount * z[j]
        scalars[SQUARE] += step_i * (2.0 * memory[0, i] + step_i)
        memory[0, i] += step_i
        weights[i] = memory[0, i] * stored
    scalars[MOST] = max(scalars[MOST], scalars[SQUARE])
    if not scalars[SQUARE] > 1e-3 * scalars[MOST]:  # what is left of the sum is partly rounding
        sum_squares(memory, scalars)
    if not max(abs(scalars[GAUGE]), abs(0.5 * math.log(scalars[SQUARE]))) < FAR_LOG:
        fold(memory, scalars)
    scalars[MASS], scalars[PEAK] = 1.0, 1.0  # not used here, but where MASS is 0 the loop would rescale for ever
    return True


def mix(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    """w is mixed, whatever the factors that the parts keep separately, and V is its direction."""
    logs = [float(part.scalars[SHIFT] + part.scalars[GAUGE]) for part in parts]
    top = max(logs)
    weights = average([part.weights * math.exp(log - top) for part, log in zip(parts, logs, strict=True)], shares)
    length = float(np.linalg.norm(weights))
    if length > 0.0:
        target.weights[:] = target.memory[0] = weights / length
        target.scalars[[SHIFT, BASE]] = top + math.log(length)
        target.scalars[[SQUARE, MOST]] = target.weights @ target.weights
        target.scalars[[MASS, PEAK]] = 1.0


def romma() -> Rule:
    """ROMMA: the shortest w with w.z >= 1 among those that keep to the right side of what w has already learned.

    If w.z <= 0: the first time w = z/|z|^2; then, with m = w.z, w <- c w + d z,
    c = (|z|^2 |w|^2 - m) / (|z|^2 |w|^2 - m^2), d = |w|^2 (1 - m) / (|z|^2 |w|^2 - m^2).

    Notes
    -----
    Where z is parallel to w no such weights exist, and nothing is changed. Mistakes <= R^2 |u|^2 with R >= |z| and
    u.z >= 1 on every trial, as for the Perceptron.

    References
    ----------
    Li and Long (2002), The relaxed online maximum margin algorithm.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.datasets.majority_problem(trials=300, seed=1)
    >>> trace = linmax.run(linmax.rules.romma(), linmax.instances(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 150
    True
    """
    bound = "it is known for separable trials only, where it is that of the Perceptron"
    return Rule(
        "romma", {}, step, slots=(0.0,), scalars=(0.0, 0.0, 0.0), spread=spread, weighs=True, mix=mix, bound=bound
    )
