"""Balanced Winnow. If w.z <= margin: w+_i <- w+_i alpha^z_i and w-_i <- w-_i alpha^-z_i. Littlestone (1989).

Since w+_i w-_i = 1 one sum s_i of z_i carries both: w_i = w+_i - w-_i = alpha^s_i - alpha^-s_i.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from linmax.core.contract import MASS, PEAK, REACH, SHIFT, SPREAD, STEP, TOP, UNTOUCHED, Part, Rule
from linmax.jit.compiling import kernel
from linmax.jit.sinh import sinh_weights, twice_sinh
from linmax.rules.first_weights import NO_BOUND, first_weights
from linmax.rules.mixing import average, keep_untouched, mix_memory, weights_of_memory
from linmax.theory.bounding import MultiplicativeBound
from linmax.theory.rows import Rows
from linmax.util.checks import at_least, greater

__all__ = ["balanced_winnow"]

NEAR = 200.0  # powers are computed while their logarithm is within this; beyond it alpha^-s is nothing
FAR = 340.0  # sinh(v) is computed while |v| is within this, and its square fits a float


@kernel(SPREAD)
def spread(memory: np.ndarray, scalars: np.ndarray, i: int, params: np.ndarray) -> tuple[float, float]:
    power = memory[0, i] * params[1]
    if memory[0, i] == UNTOUCHED:
        return 0.0, 0.0
    if not abs(power) > NEAR:
        return twice_sinh(memory[0, i] * params[0]), 0.0
    return math.copysign(1.0, power), abs(power)


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
    lg_alpha, log_alpha, thickness, thick = params[0], params[1], params[2], params[3]
    shift, counted = scalars[SHIFT], scalars[MASS]
    if thickness > 0.0 and counted == 0.0:  # before the first update: w+ + w- = 2 of what this one touches
        for j in range(index.size):
            counted += 2.0 if z[j] != 0.0 else 0.0
    if margin > thickness * counted + thick * math.exp(-shift):
        return False
    least = 4.0 * math.exp(-2.0 * shift)  # w+ + w- = sqrt(w^2 + 4)
    for j in range(index.size):  # a loop of its own, so that the memory's cache misses overlap
        i = index[j]
        if thickness > 0.0 and memory[0, i] != UNTOUCHED:
            scalars[MASS] -= math.sqrt(weights[i] * weights[i] + least)
        memory[0, i] += z[j]
    if shift == 0.0 and thickness == 0.0:
        scalars[TOP] = sinh_weights(weights, memory, index, lg_alpha)
        scalars[MASS], scalars[PEAK], scalars[REACH] = 1.0, 0.0, thick  # MASS: the unit of scores alone
        return True
    scalars[TOP] = np.nan
    for j in range(index.size):
        i = index[j]
        if shift == 0.0:
            weight = twice_sinh(memory[0, i] * lg_alpha)
        else:
            power = memory[0, i] * log_alpha
            weight = math.copysign(-math.expm1(-2.0 * abs(power)) * math.exp(abs(power) - shift), power)
        if thickness > 0.0 and memory[0, i] != UNTOUCHED:
            scalars[MASS] += math.sqrt(weight * weight + least)
        weights[i] = weight
    if thickness == 0.0:
        scalars[MASS], scalars[PEAK], scalars[REACH] = math.exp(-shift), 0.0, thick * math.exp(-shift)
        return True
    scalars[PEAK] = max(scalars[PEAK], scalars[MASS])
    if not scalars[MASS] > 1e-3 * scalars[PEAK]:  # cancellation: recompute the sum
        total = 0.0
        for i in range(weights.size):
            if memory[0, i] == memory[0, i] and memory[0, i] != UNTOUCHED:  # nan: the coordinate does not exist
                total += math.sqrt(weights[i] * weights[i] + least)
        scalars[MASS] = total
        scalars[PEAK] = total
    scalars[REACH] = thickness * scalars[MASS] + thick * math.exp(-shift)
    return True


def mix(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    """Logarithms of both weights are mixed, or the weights themselves (``plain``)."""
    if plain:
        log_alpha = rule.values[1]
        target.memory[0] = plain_mixture([part.memory[0] * log_alpha for part in parts], shares) / log_alpha
        keep_untouched(parts, target)
    else:
        mix_memory(parts, shares, target)
    weights_of_memory(rule, target)
    weights, scalars = target.weights, target.scalars
    unit = math.exp(-scalars[SHIFT])
    thick = rule.thickness > 0.0
    mass = np.sqrt(weights * weights + 4.0 * unit * unit)[target.memory[0] != UNTOUCHED].sum() if thick else unit
    scalars[MASS], scalars[PEAK] = mass, mass if thick else 0.0
    scalars[REACH] = math.inf if thick and mass == 0.0 else rule.thickness * mass + rule.values[3] * unit


def plain_mixture(powers: Sequence[np.ndarray], shares: np.ndarray) -> np.ndarray:
    """arsinh(sum mu_i sinh(v_i)), whatever the size of the v_i."""
    top = np.max(np.abs(powers), axis=0)
    near = np.arcsinh(average([np.sinh(np.clip(v, -FAR, FAR)) for v in powers], shares))
    far = average([np.exp(v - top) - np.exp(-v - top) for v in powers], shares)  # 2 sinh(v) / exp(top)
    with np.errstate(divide="ignore"):
        logs = np.log(np.abs(far)) + top
    large = np.copysign(np.maximum(logs, FAR), far)
    beyond = np.where(logs > FAR, large, np.arcsinh(np.copysign(0.5 * np.exp(np.minimum(logs, FAR)), far)))
    return np.where(top > FAR, beyond, near)


def remember(rule: Rule, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The exponents s and the parts of MASS that belong to first weights."""
    return np.arcsinh(0.5 * weights) / rule.values[1], np.sqrt(weights * weights + 4.0)


def bound(rule: Rule, rows: Rows) -> MultiplicativeBound:
    """`linmax.theory.bounds.balanced`."""
    known = rule.parameters
    # w+ w- = 1 keeps sum(w+ + w-) >= 2n, so an absolute margin is at most this thick
    thickness = known["thickness"] + known["margin"] / (2.0 * rows.shape[1])
    return MultiplicativeBound(rows, positive=False, alpha=known["alpha"], thickness=thickness)


def balanced_winnow(
    alpha: float, margin: float = 0.0, thickness: float = 0.0, start: float | Sequence[float] = 0.0
) -> Rule:
    """Balanced Winnow: two positive weights per coordinate, w = w+ - w-, both from 1.

    If w.z <= margin + thickness * sum(w+ + w-), then w+_i <- w+_i alpha^(z_i), w-_i <- w-_i alpha^(-z_i).

    Parameters
    ----------
    alpha
        Update factor, > 1.
    margin
        Thickness of the separator, absolute (as in SNoW): also update while the lead is at most this much.
    thickness
        The same relative to the sum of the weights that updates have touched, for which a mistake bound holds.
    start
        First weights w = w+ - w- of the first coordinates, a vector, with w+ w- = 1; all others start at 0.

    Notes
    -----
    sum |u_i| = 1, z in [-1, 1]^n, u.z >= delta but for hinge noise N: updates <=
    (ln 2n + sum |u| ln |u| + N ln alpha) / (delta ln alpha - ln((alpha + 1/alpha)/2)).

    References
    ----------
    Littlestone (1989), UCSC-CRL-89-11. Mesterharm and Hsu, Combinatorial fusion with on-line learning algorithms,
    figure 1.

    Examples
    --------
    >>> import linmax
    >>> str(linmax.rules.balanced_winnow(1.1))
    'balanced-winnow(1.1)'
    """
    alpha = greater("alpha", alpha, 1.0, 1.1)
    margin = at_least("margin", margin, 0.0)
    thickness = at_least("thickness", thickness, 0.0)
    if margin and thickness:
        raise ValueError(f"give margin or thickness, not both; got margin={margin!r}, thickness={thickness!r}")
    shown, weight, first = first_weights(start, 0.0)
    if weight != 0.0:
        raise ValueError(
            f"start must be a vector of weights w+ - w-, got {start!r}; a coordinate never seen has w+ = w-"
        )
    return Rule(
        "balanced_winnow",
        {"alpha": alpha, "margin": margin, "thickness": thickness, "start": shown},
        step,
        values=(math.log2(alpha), math.log(alpha), thickness, margin),
        first=first,
        remember=remember,
        slots=(UNTOUCHED if thickness else 0.0,),
        reach=margin,
        only_sign=True,
        thickness=thickness,
        spread=spread,
        bounded=True,
        mix=mix,
        bound=NO_BOUND if first else bound,
        defaults={"margin": 0.0, "thickness": 0.0, "start": 0.0},
    )
