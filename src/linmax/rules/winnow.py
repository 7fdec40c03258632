"""Winnow with positive weights. If w.z <= thickness sum(w): w_i <- w_i alpha^z_i. Littlestone (1988, 1989).

The logarithm of a weight is kept as s_i = sum of z_i, so nothing overflows and equal sums give equal weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from linmax.core.contract import MASS, PEAK, REACH, SHIFT, SPREAD, STEP, UNTOUCHED, Part, Rule
from linmax.jit.compiling import kernel
from linmax.rules.first_weights import NO_BOUND, first_weights
from linmax.rules.mixing import keep_untouched, mix_memory, weights_of_memory
from linmax.rules.threshold_winnow import threshold_step
from linmax.theory.bounding import MultiplicativeBound
from linmax.theory.rows import Rows
from linmax.util.checks import at_least, finite, greater, positive

__all__ = ["committee", "winnow"]


NEAR = 200.0  # a power alpha^s is computed while its logarithm is within this
LISTED_POWERS = 1024  # powers of alpha up to this, and down to minus this, are looked up
FIRST_POWER = 4  # of the parameters: from it on the powers


@cache
def powers(alpha: float) -> tuple[float, ...]:
    """alpha^-LISTED_POWERS .. alpha^LISTED_POWERS, the same bits as alpha**s; votes need no others."""
    largest = math.log(1.7e308) / math.log(alpha)  # beyond, Python would raise where a kernel gives infinity
    return tuple(math.pow(alpha, s) if s < largest else math.inf for s in range(-LISTED_POWERS, LISTED_POWERS + 1))


@kernel(SPREAD)
def spread(memory: np.ndarray, scalars: np.ndarray, i: int, params: np.ndarray) -> tuple[float, float]:
    s, log = memory[0, i], memory[0, i] * params[2]
    if not abs(log) > NEAR:
        return params[1] * params[0] ** s, 0.0  # nan where the coordinate does not exist
    return params[1], log


@kernel()
def weight_at(s: float, shift: float, params: np.ndarray) -> float:
    """start alpha^s at the stored scale.

    A power is exact where an exponential is not (2 + 2 against 4), and then ties stay ties.
    """
    if shift != 0.0:
        return params[1] * math.exp(s * params[2] - shift)
    if abs(s) <= LISTED_POWERS and s == math.floor(s):
        return params[1] * params[FIRST_POWER + LISTED_POWERS + int(s)]
    return params[1] * params[0] ** s


@kernel()
def settle(weights: np.ndarray, memory: np.ndarray, scalars: np.ndarray, mass: float, thickness: float) -> None:
    """Store the sum of the weights that updates have touched, and the reach that follows from it."""
    scalars[MASS] = mass
    scalars[PEAK] = max(scalars[PEAK], mass)
    if not scalars[MASS] > 1e-3 * scalars[PEAK]:  # cancellation: recompute the sum
        mass = 0.0
        for i in range(weights.size):
            mass += 0.0 if memory[0, i] == UNTOUCHED else weights[i]
        scalars[MASS] = scalars[PEAK] = mass
    scalars[REACH] = thickness * scalars[MASS]


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
    shift, mass, thickness = scalars[SHIFT], scalars[MASS], params[3]
    counted = mass
    if thickness > 0.0 and mass == 0.0:  # before the first update: the weights that this one touches
        for j in range(index.size):
            counted += weights[index[j]] if z[j] != 0.0 else 0.0
    if margin > thickness * counted:
        return False
    for j in range(index.size):
        i = index[j]
        before = memory[0, i]
        s = before + z[j]
        memory[0, i] = s
        weight = weight_at(s, shift, params)
        if s != UNTOUCHED:
            mass += weight - (0.0 if before == UNTOUCHED else weights[i])
        weights[i] = weight
    settle(weights, memory, scalars, mass, thickness)
    return True


def mix(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    """Logarithms of weights are mixed, or the weights themselves (``plain``)."""
    if plain:
        log_alpha = rule.values[2]
        target.memory[0] = plain_mixture([part.memory[0] * log_alpha for part in parts], shares) / log_alpha
        keep_untouched(parts, target)
    else:
        mix_memory(parts, shares, target)
    weights_of_memory(rule, target)
    mass = target.weights[target.memory[0] != UNTOUCHED].sum()
    target.scalars[MASS] = target.scalars[PEAK] = mass
    target.scalars[REACH] = math.inf if rule.thickness and mass == 0.0 else rule.thickness * mass


def plain_mixture(powers: Sequence[np.ndarray], shares: np.ndarray) -> np.ndarray:
    """ln(sum mu_i exp(v_i)), whatever the size of the v_i."""
    with np.errstate(divide="ignore"):
        logs = np.log(shares)
    return np.asarray(np.logaddexp.reduce([log + v for log, v in zip(logs, powers, strict=True)], axis=0))


def remember(rule: Rule, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The exponents s and the parts of MASS that belong to first weights."""
    return np.log(weights / rule.start) / rule.values[2], weights


def remember_logs(_: Rule, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`remember` for the threshold form, which keeps logarithms."""
    return np.log(weights), np.zeros(len(weights))


def bound(rule: Rule, rows: Rows) -> MultiplicativeBound:
    """`linmax.theory.bounds.multiplicative`."""
    return MultiplicativeBound(rows, positive=True, alpha=rule.values[0], thickness=rule.thickness)


def winnow(
    alpha: float,
    thickness: float | tuple[float, float] = 0.0,
    threshold: float | None = None,
    demotion: float | None = None,
    start: float | Sequence[float] = 1.0,
) -> Rule:
    """Winnow: multiply the weights of what was right by alpha^z, divide those of what was wrong.

    Without ``threshold`` this is the zero-threshold form, which lifts to many classes: if
    w.z <= thickness * sum(w), then w_i <- w_i * alpha^(z_i), all weights positive from ``start``. The sum is over the
    weights that updates have touched, so that sub-experts that never vote change nothing. It is the Weighted Majority
    Algorithm for linear thresholds, also called Committee.

    With ``threshold`` (theta) it is the two-class form on attributes in [0, 1]: predict 1 if w.x >= theta; when
    that is wrong multiply by alpha^(x_i) (promotion) or by demotion^(x_i).

    Parameters
    ----------
    alpha
        Promotion factor, > 1.
    thickness
        Zero-threshold form: thick separator relative to the sum of weights, 0 <= thickness < margin. Threshold form:
        a positive must reach theta + thickness and a negative stay below theta - thickness; a pair sets both sides.
    threshold
        theta > 0; None for the form that lifts.
    demotion
        Threshold form only: 1/alpha (Winnow2, the default), 0 (Winnow1, elimination) or any factor in [0, 1).
    start
        First weights, > 0: one number for all, or a vector mu for the first coordinates (voters and raters, then
        thresholds and attributes by class); further ones start at 1.

    Notes
    -----
    Zero threshold, u >= 0, sum u = 1, z in [-1, 1]^n, u.z >= delta but for hinge noise N: updates <=
    (ln n + sum u ln u + N ln alpha) / (delta ln alpha - ln((alpha + 1/alpha)/2)).
    Winnow2, monotone disjunction of k of n, theta = n, alpha = 2: at most 2 + 3k(1 + lg n) mistakes.

    References
    ----------
    Littlestone (1988), Learning quickly when irrelevant attributes abound. Littlestone (1989), UCSC-CRL-89-11.
    Thick separator: Carlson, Cumby, Rosen and Roth (1999), the SNoW learning architecture.

    Examples
    --------
    >>> import linmax
    >>> str(linmax.rules.winnow(1.1))
    'winnow(1.1)'
    >>> str(linmax.rules.winnow(2, threshold=100, demotion=0))
    'winnow(2, threshold=100, demotion=0)'
    """
    alpha = greater("alpha", alpha, 1.0, 1.1)
    weights = first_weights(start, 1.0, above_zero=True)
    defaults: dict[str, Any] = {"thickness": 0.0, "threshold": None, "demotion": None, "start": 1.0}
    shown = {"alpha": alpha, "thickness": thickness, "threshold": threshold, "demotion": demotion, "start": weights[0]}
    if threshold is None:
        if demotion is not None:
            raise ValueError(f"demotion={demotion!r} belongs to the threshold form; give threshold= as well")
        if isinstance(thickness, tuple):
            raise TypeError(f"thickness must be one number without a threshold, got {thickness!r}")
        return _positive("winnow", alpha, at_least("thickness", thickness, 0.0), weights, shown, defaults)
    theta = positive("threshold", threshold, "the number of attributes")
    factor = 1.0 / alpha if demotion is None else finite("demotion", demotion)
    if not 0.0 <= factor < 1.0:
        raise ValueError(f"demotion must be in [0, 1), got {demotion!r}; try {1.0 / alpha:g} or 0")
    sides = thickness if isinstance(thickness, tuple) else (thickness, thickness)
    if len(sides) != 2:
        raise ValueError(f"thickness must be a number or a pair (above, below), got {thickness!r}")
    above, below = sides
    above, below = at_least("thickness", above, 0.0), at_least("thickness", below, 0.0)
    return Rule(
        "winnow",
        shown,
        threshold_step,
        values=(alpha, factor, above, below),
        start=weights[1],
        first=weights[2],
        remember=remember_logs,
        slots=(math.log(weights[1]),),
        reach=max(above, below),
        bounded=True,
        nonnegative=True,
        threshold=theta,
        mix="only rules without a fixed threshold are merged",
        defaults=defaults,
    )


def committee(alpha: float, thickness: float = 0.0, start: float | Sequence[float] = 1.0) -> Rule:
    """The zero-threshold `winnow` under its other name: WMA for linear thresholds, or Committee.

    Notes
    -----
    alpha = sqrt((1 + delta)/(1 - delta)) gives at most 2 ln(n)/delta^2 mistakes.

    References
    ----------
    Mesterharm (2000), A multi-class linear learning algorithm related to Winnow; (2001), section 4.2.

    Parameters
    ----------
    alpha
        Factor of the steps, > 1.
    thickness
        Update also where w.z <= thickness sum(w).
    start
        First weights, as in `winnow`.

    Examples
    --------
    >>> import linmax
    >>> str(linmax.rules.committee(1.1))
    'committee(1.1)'
    """
    alpha = greater("alpha", alpha, 1.0, 1.1)
    thickness = at_least("thickness", thickness, 0.0)
    weights = first_weights(start, 1.0, above_zero=True)
    shown = {"alpha": alpha, "thickness": thickness, "start": weights[0]}
    return _positive("committee", alpha, thickness, weights, shown, {"thickness": 0.0, "start": 1.0})


def _positive(
    name: str,
    alpha: float,
    thickness: float,
    weights: tuple[Any, float, Any],
    shown: dict[str, Any],
    defaults: dict[str, Any],
) -> Rule:
    _, start, first = weights
    return Rule(
        name,
        shown,
        step,
        values=(alpha, start, math.log(alpha), thickness, *powers(alpha)),
        start=start,
        first=first,
        remember=remember,
        slots=(UNTOUCHED,),
        thickness=thickness,
        marks=True,
        spread=spread,
        only_sign=True,
        bounded=True,
        mix=mix,
        bound=NO_BOUND if first else bound,
        defaults=defaults,
    )
