"""Mixtures of rule states: models that learned from different examples become one.

How a rule's states are mixed is in its own file (`Rule.mix`), with shares mu_i that add up to 1:

* additive rules mix their weights, w = sum mu_i w_i (`mix_weights`);
* rules with w = f(v) mix v, where their steps add up, and take w from it: for the Winnows v = log w, so that their
  weights are mixed as geometric means (``plain`` mixes w instead and takes v from it);
* second-order rules mix by precision: P = sum mu_i P_i and w = P^-1 sum mu_i P_i w_i, where P is 1 / variance (a matrix
  or its diagonal), sqrt(G) for AdaGrad and FTRL, A for the second-order Perceptron;
* counts of updates, which set the length of ALMA's steps, are mixed like v.

References
----------
McDonald, Hall and Mann, "Distributed training strategies for the structured perceptron", NAACL (2010).
Genest and Zidek, "Combining probability distributions", Statistical Science 1 (1986): precisions add up, weighted, in
the logarithmic opinion pool of normal distributions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numba import int64, types

from linmax.core.contract import OWN, SHIFT, SPREAD, UNTOUCHED, Matrix, Mixture, Part, Rule, Vector, call_spread
from linmax.jit.compiling import address_of, kernel

__all__ = [
    "MULTIPLICATIVE",
    "average",
    "keep_untouched",
    "mix_memory",
    "mix_weights",
    "mixture_of",
    "weights_of_memory",
]

MULTIPLICATIVE = ("log", "plain")
CLOSE = 100.0  # weights whose largest logarithm is within this are kept as they are


@kernel(types.void(int64, Vector, Matrix, Vector, Vector))
def take_weights(spread: int, weights: np.ndarray, memory: np.ndarray, scalars: np.ndarray, params: np.ndarray) -> None:
    """Compute weights and SHIFT from the memory."""
    largest = -np.inf
    for i in range(weights.size):
        factor, log = call_spread(spread, memory, scalars, i, params)
        if factor == factor and factor != 0.0:
            largest = max(largest, log + math.log(abs(factor)))
    if largest == -np.inf or abs(largest) < CLOSE:
        largest = 0.0
    scalars[SHIFT] = largest
    for i in range(weights.size):
        factor, log = call_spread(spread, memory, scalars, i, params)
        weights[i] = factor * math.exp(log - largest) if factor != 0.0 else 0.0


def mixture_of(rule: Rule) -> Mixture:
    """Return the function that mixes states of the rule; raise with the rule's reason if there is none."""
    if isinstance(rule.mix, str):
        raise ValueError(f"{rule} cannot be merged: {rule.mix}")
    return rule.mix


def average(arrays: Sequence[np.ndarray], shares: np.ndarray) -> np.ndarray:
    """Return sum mu_i a_i, in this order."""
    total = shares[0] * arrays[0]
    for share, array in zip(shares[1:], arrays[1:], strict=True):
        total += share * array
    return total


def mix_weights(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    """Mix states of rules that store only their weights."""
    target.weights[:] = average([part.weights for part in parts], shares)


def mix_memory(parts: Sequence[Part], shares: np.ndarray, target: Part) -> None:
    """Mix the sums of steps, and counts; what no part has touched stays untouched."""
    target.memory[:] = average([part.memory for part in parts], shares)
    keep_untouched(parts, target)
    target.scalars[OWN:] = average([part.scalars[OWN:] for part in parts], shares)


def keep_untouched(parts: Sequence[Part], target: Part) -> None:
    """Mark coordinates that no part has touched (see `Rule.marks`)."""
    target.memory[np.all([part.memory == UNTOUCHED for part in parts], axis=0)] = UNTOUCHED


def weights_of_memory(rule: Rule, target: Part) -> None:
    """Write the weights that follow from the memory, by the rule's ``spread``."""
    params = np.array([*rule.values, 0.0])
    take_weights(address_of(rule.spread, SPREAD), target.weights, target.memory, target.scalars, params)
