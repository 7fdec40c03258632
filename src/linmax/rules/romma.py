"""ROMMA, the relaxed on-line maximum margin algorithm. If w.z <= 0: w <- c w + d z. Li and Long (2002).

w = V exp(BASE + GAUGE) with V in memory, so that multiplying all weights only changes a number. On data that no
weights separate |w| grows without end; so only logarithms of lengths are kept.
"""

from __future__ import annotations

import math

import numpy as np

from linmax.contract import GAUGE, MASS, OWN, PEAK, SHIFT, SPREAD, STEP, Rule, kernel

__all__ = ["romma"]

LENGTH, BASE = OWN, OWN + 1  # ln |w|, and what was once in GAUGE
FAR = 100.0  # logarithms beyond this are moved: rare
PARALLEL = 1e-9  # square of the sine of an angle that counts as 0


@kernel(SPREAD)
def spread(memory: np.ndarray, scalars: np.ndarray, i: int, params: np.ndarray) -> tuple[float, float]:
    v = memory[0, i]
    if v == 0.0 or v != v:  # nan where the coordinate does not exist
        return v, 0.0
    return math.copysign(1.0, v), math.log(abs(v)) + scalars[BASE]


@kernel()
def fold(memory: np.ndarray, scalars: np.ndarray) -> None:
    """Make |V| = 1 and GAUGE = 0; the stored weights stay as they are."""
    log = scalars[LENGTH] - scalars[BASE] - scalars[GAUGE]  # of |V|
    for i in range(memory.shape[1]):
        memory[0, i] *= math.exp(-log)
    scalars[BASE] += log + scalars[GAUGE]
    scalars[SHIFT] += scalars[GAUGE]
    scalars[GAUGE] = 0.0


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
    size = math.sqrt(size)
    if scalars[LENGTH] == -np.inf:
        scalars[LENGTH] = -math.log(size)
        amount = 1.0 / (size * size)
    else:
        cosine = margin * math.exp(scalars[SHIFT] + scalars[GAUGE] - scalars[LENGTH]) / size
        apart = 1.0 - cosine * cosine
        if apart <= PARALLEL:
            return False
        inverse = math.exp(-scalars[LENGTH]) / size  # 1 / (|w| |z|)
        length = math.exp(scalars[LENGTH] - scalars[BASE] - scalars[GAUGE])  # |V|
        keep, amount = (1.0 - inverse * cosine) / apart, length / size * (inverse - cosine) / apart
        scalars[LENGTH] += 0.5 * math.log((1.0 + inverse * (inverse - 2.0 * cosine)) / apart)
        scalars[GAUGE] += math.log(keep)
        amount /= keep
    stored = math.exp(scalars[BASE] - scalars[SHIFT])
    for j in range(index.size):
        i = index[j]
        memory[0, i] += amount * z[j]
        weights[i] = memory[0, i] * stored
    if not max(abs(scalars[GAUGE]), abs(scalars[LENGTH] - scalars[BASE] - scalars[GAUGE])) < FAR:
        fold(memory, scalars)
    scalars[MASS], scalars[PEAK] = 1.0, 1.0  # not used here, but where MASS is 0 the loop would rescale for ever
    return True


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
    >>> data = linmax.majority_problem(trials=300, seed=1)
    >>> trace = linmax.run(linmax.rules.romma(), linmax.experts(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 150
    True
    """
    return Rule("romma", {}, step, slots=(0.0,), scalars=(-math.inf, 0.0), spread=spread)
