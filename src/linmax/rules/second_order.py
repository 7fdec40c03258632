"""Common step of second-order rules: each weight has a variance, large at first, that shrinks as the weight is used.

S is the matrix of variances, of which the diagonal is stored. With v = z'Sz, the variance of the margin, a rule is its
*gain*, ``gain(margin, v, weight, params) -> (rate, shrink)``:

    w <- w + rate S z,   S <- S - shrink S z (S z)' + inflation I

params[0] is the address of the gain and params[1] the inflation; the rule's numbers follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from linmax.core.contract import GAIN, HUGE, STEP, TOP, WEIGHT, Part, Rule, as_number, call_gain
from linmax.jit.compiling import address_of, kernel
from linmax.rules.mixing import average

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
    """Update weights and variances; memory[0] is the diagonal of S."""
    v = 0.0
    for j in range(index.size):
        v += memory[0, index[j]] * (z[j] * z[j])
    if not v > 0.0:
        return False
    rate, shrink = call_gain(params[0], margin, v, scalars[WEIGHT], params)
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


def mix_by_variance(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    """Mix precisions, 1 / variance, and the weights in proportion to them."""
    precisions = [1.0 / part.memory[0] for part in parts]
    target.memory[0] = 1.0 / average(precisions, shares)
    pulls = [precision * part.weights for precision, part in zip(precisions, parts, strict=True)]
    target.weights[:] = target.memory[0] * average(pulls, shares)


class Gain(NamedTuple):
    """Length of the steps."""

    function: Any  # compiled, with the signature GAIN
    values: tuple[float, ...]  # of the rule, params[OWN:]
    reach: float  # no step is made while margin > reach
    inflation: float = 0.0


def second_order(
    name: str, parameters: Mapping[str, Any], defaults: Mapping[str, Any], gain: Gain, start: float = 0.0
) -> Rule:
    """Return the rule with this gain; each weight starts with variance 1."""
    return Rule(
        name,
        parameters,
        step,
        values=(as_number(address_of(gain.function, GAIN)), gain.inflation, *gain.values),
        start=start,
        slots=(1.0,),
        reach=gain.reach,
        gain=True,
        weighs=True,
        mix=mix_by_variance,
        defaults=defaults,
    )
