"""What second-order rules share: each weight has a variance, large at first, that shrinks as the weight is used.

S is the matrix of variances, its diagonal alone or in full. With v = z'Sz, the variance of the margin, a rule is its
*gain*, ``gain(margin, v, params) -> (rate, shrink)``:

    w <- w + rate S z,   S <- S - shrink S z (S z)' + inflation I

params[0] is the gain's address and params[1] the inflation; a rule's own numbers follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from linmax.core.contract import GAIN, HUGE, STEP, TOP, Part, Rule, as_number, call_gain
from linmax.jit.compiling import address_of, kernel
from linmax.rules.mixing import average
from linmax.util.checks import boolean

__all__ = ["OWN", "Gain", "mix_by_variance", "second_order"]

INFLATION, OWN = 1, 2


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
    """The diagonal of S, in memory[0]."""
    v = 0.0
    for j in range(index.size):
        v += memory[0, index[j]] * (z[j] * z[j])
    if not v > 0.0:
        return False
    rate, shrink = call_gain(params[0], margin, v, params)
    if rate == 0.0 and shrink == 0.0:
        return False
    fits = True
    for j in range(index.size):
        i = index[j]
        pull = memory[0, i] * z[j]
        weight = weights[i] + rate * pull
        weights[i] = weight
        fits &= abs(weight) < HUGE
        memory[0, i] += params[INFLATION] - shrink * (pull * pull)
    scalars[TOP] = 0.0 if fits else np.inf
    return True


@kernel(STEP)
def full_step(
    weights: np.ndarray,
    memory: np.ndarray,
    scalars: np.ndarray,
    index: np.ndarray,
    z: np.ndarray,
    margin: float,
    params: np.ndarray,
) -> bool:
    """All of S, in memory[1:]; memory[0] is room for Sz."""
    pull, matrix = memory[0], memory[1:]
    size = weights.size
    for i in range(size):
        pull[i] = 0.0
    for j in range(size):
        if z[j] != 0.0:
            for i in range(size):
                pull[i] += z[j] * matrix[j, i]
    v = 0.0
    for j in range(size):
        v += z[j] * pull[j]
    if not v > 0.0:
        return False
    rate, shrink = call_gain(params[0], margin, v, params)
    if rate == 0.0 and shrink == 0.0:
        return False
    for j in range(size):
        if matrix[j, j] == 0.0:  # the coordinate does not exist
            continue
        weights[j] += rate * pull[j]
        for i in range(size):
            matrix[j, i] -= shrink * (pull[j] * pull[i])  # in this order S stays symmetric to the last bit
        matrix[j, j] += params[INFLATION]
    return True


def mix_by_variance(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    """Precisions, 1 / variance, are mixed, and the weights in proportion to them."""
    if not rule.matrix:
        precisions = [1.0 / part.memory[0] for part in parts]
        target.memory[0] = 1.0 / average(precisions, shares)
        pulls = [precision * part.weights for precision, part in zip(precisions, parts, strict=True)]
        target.weights[:] = target.memory[0] * average(pulls, shares)
        return
    slots = len(rule.slots)
    matrices = [np.linalg.inv(part.memory[slots:]) for part in parts]
    variances = np.linalg.inv(average(matrices, shares))
    target.memory[slots:] = 0.5 * (variances + variances.T)
    pulls = [matrix @ part.weights for matrix, part in zip(matrices, parts, strict=True)]
    target.weights[:] = target.memory[slots:] @ average(pulls, shares)


class Gain(NamedTuple):
    """How far steps go."""

    function: Any  # compiled, with the signature GAIN
    values: tuple[float, ...]  # of the rule's own, params[OWN:]
    reach: float  # no step is made while margin > reach
    inflation: float = 0.0


def second_order(
    name: str,
    shown: Mapping[str, Any],
    defaults: Mapping[str, Any],
    gain: Gain,
    full: bool,
    *,
    variance: float = 1.0,
    start: float = 0.0,
) -> Rule:
    """The rule with this gain; each weight starts with this variance."""
    full = boolean("full", full)
    return Rule(
        name,
        {**shown, "full": full},
        full_step if full else step,
        values=(as_number(address_of(gain.function, GAIN)), gain.inflation, *gain.values),
        start=start,
        slots=(0.0,) if full else (variance,),
        reach=gain.reach,
        everywhere=full,
        matrix=variance if full else 0.0,
        gain=not full,
        mix=mix_by_variance,
        defaults={**defaults, "full": False},
    )
