"""p-norm Perceptron. If w.z <= 0: v <- v + z, w_i = sign(v_i) |v_i|^(p-1) / ||v||_p^(p-2). Gentile (2003).

The stored weight is sign(v_i) |v_i|^(p-1); the norm is a common factor and lives in GAUGE.
MASS holds sum |v_i|^p, from which the norm is taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linmax.core.contract import GAUGE, HUGE, MASS, PEAK, SHIFT, SPREAD, STEP, Part, Rule
from linmax.jit.compiling import kernel
from linmax.rules.mixing import mix_memory, weights_of_memory
from linmax.theory.bounding import AdditiveBound, bounds
from linmax.theory.rows import Rows
from linmax.util.checks import at_least

__all__ = ["p_norm"]

FAR = 340.0  # a logarithm beyond that of HUGE, at which the loop rescales; its square still fits a float
MOST, LEAST = math.exp(FAR), math.exp(-FAR)
MOST_HALVES = 32.0  # multiples of 1/2 up to this are powers by multiplication


@kernel(SPREAD)
def spread(memory: np.ndarray, scalars: np.ndarray, i: int, params: np.ndarray) -> tuple[float, float]:
    v = memory[0, i]
    if v == 0.0 or v != v:  # nan where the coordinate does not exist
        return v, 0.0
    return math.copysign(1.0, v), (params[0] - 1.0) * math.log(abs(v))


@kernel()
def power(base: float, exponent: float) -> float:
    """base^exponent, base >= 0; small multiples of 1/2 by multiplication, which takes a tenth of the time."""
    halves = 2.0 * exponent
    if not (halves == math.floor(halves) and 0.0 <= halves <= MOST_HALVES):
        return base**exponent if base <= 1.0 or exponent * math.log(base) < 700.0 else math.inf
    left = int(halves)
    result = math.sqrt(base) if left % 2 else 1.0
    left //= 2
    while left:
        if left % 2:
            result *= base
        base *= base
        left //= 2
    return result


@kernel()
def weight_at(v: float, shift: float, p: float) -> float:
    """The weight of v at the stored scale."""
    if v == 0.0:
        return 0.0
    weight = power(abs(v), p - 1.0) if shift == 0.0 else 0.0  # exact at p = 2
    if not LEAST < weight < MOST:
        weight = math.exp(min((p - 1.0) * math.log(abs(v)) - shift, FAR))  # at FAR the loop rescales
    return math.copysign(weight, v)


@kernel()
def move(weights: np.ndarray, memory: np.ndarray, shift: float, i: int, amount: float, p: float) -> float:
    """v_i <- v_i + amount, with its weight; returns by how much the sum of |v|^p has grown."""
    before = abs(weights[i] * memory[0, i])
    v = memory[0, i] + amount
    memory[0, i] = v
    weights[i] = weight_at(v, shift, p)
    return abs(weights[i] * v) - before


@kernel()
def log_norm(weights: np.ndarray, memory: np.ndarray, scalars: np.ndarray, p: float) -> float:
    """ln ||v||_p, summed again when the kept sum has shrunk to rounding or left the range of floats."""
    scalars[PEAK] = max(scalars[PEAK], scalars[MASS])
    if scalars[MASS] > 1e-3 * scalars[PEAK] and 1.0 / HUGE < scalars[MASS] < HUGE:
        return (math.log(scalars[MASS]) + scalars[SHIFT]) / p
    largest = 0.0
    for i in range(memory.shape[1]):
        if abs(memory[0, i]) > largest:
            largest = abs(memory[0, i])
    if largest == 0.0:
        scalars[MASS], scalars[PEAK] = 0.0, 0.0
        return -np.inf
    total = 0.0
    for i in range(memory.shape[1]):
        if abs(memory[0, i]) > 0.0:
            total += (abs(memory[0, i]) / largest) ** p
    norm = math.log(largest) + math.log(total) / p
    scalars[MASS] = math.exp(min(p * norm - scalars[SHIFT], FAR))
    scalars[PEAK] = scalars[MASS] if scalars[MASS] > 0.0 else np.inf
    return norm


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
    p, mass, shift = params[0], scalars[MASS], scalars[SHIFT]
    for j in range(index.size):
        mass += move(weights, memory, shift, index[j], z[j], p)
    scalars[MASS] = mass
    norm = log_norm(weights, memory, scalars, p)
    scalars[GAUGE] = -(p - 2.0) * norm if norm > -np.inf else 0.0
    return True


def mix(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    """v is mixed, and the weights and the norm taken from it."""
    mix_memory(parts, shares, target)
    weights_of_v(rule, target)


def weights_of_v(rule: Rule, target: Part) -> None:
    """Write the weights, the norm and the sum of |v|^p that follow from v."""
    weights_of_memory(rule, target)
    p, sizes, scalars = rule.values[0], np.abs(target.memory[0]), target.scalars
    largest = sizes.max(initial=0.0)
    if largest > 0.0:
        norm = math.log(largest) + math.log(((sizes / largest) ** p).sum()) / p
        scalars[GAUGE] = -(p - 2.0) * norm
        scalars[MASS] = scalars[PEAK] = math.exp(min(p * norm - scalars[SHIFT], FAR))


def bound(rule: Rule, rows: Rows) -> AdditiveBound:
    """`linmax.theory.bounds.p_norm`."""
    p, size = rule.values[0], float(rows.sizes(rule.values[0]).max())

    def value(norm: float, margin: float, noise: float) -> float:
        return bounds.p_norm(p, size, norm, margin, noise)

    return AdditiveBound(rows, p / (p - 1.0), math.sqrt(p - 1.0) * size, value)


def p_norm(p: float) -> Rule:
    """The p-norm Perceptron, between Perceptron (p = 2) and Winnow (p about 2 ln n).

    Parameters
    ----------
    p
        At least 2. 2 ln n makes it behave like Winnow without knowing the margin.

    Notes
    -----
    Updates <= (p - 1) X_p^2 U_q^2 / gamma^2, with X_p >= ||z||_p, U_q = ||u||_q, 1/p + 1/q = 1.

    References
    ----------
    Grove, Littlestone and Schuurmans (1997). Gentile (2003), The robustness of the p-norm algorithms.

    Examples
    --------
    >>> import linmax
    >>> str(linmax.rules.p_norm(3))
    'p-norm(3)'
    """
    p = at_least("p", p, 2.0)
    return Rule(
        "p_norm", {"p": p}, step, values=(p,), slots=(0.0,), spread=spread, only_sign=True, mix=mix, bound=bound
    )
