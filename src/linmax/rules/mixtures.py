"""How the states of one rule, after different examples, are mixed into one state of that rule.

Each mixture takes shares mu_i that add up to 1:

* additive rules mix their weights, w = sum mu_i w_i;
* rules with w = f(v) mix v, where their steps add up, and take w from it: for the Winnows v = log w, so that their
  weights are mixed as geometric means (``multiplicative="plain"`` mixes w instead and takes v from it);
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
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numba import float64, int64, types

from linmax.core.contract import (
    GAUGE,
    MASS,
    OWN,
    PEAK,
    REACH,
    SHIFT,
    SPREAD,
    Matrix,
    Rule,
    Vector,
    call_link,
    call_spread,
)
from linmax.jit.compiling import address_of, kernel
from linmax.rules.alma import LOG_C
from linmax.rules.p_norm import FAR
from linmax.rules.romma import BASE, MOST, SQUARE

__all__ = ["MULTIPLICATIVE", "Part", "mix", "refuse_unmixable"]

MULTIPLICATIVE = ("log", "plain")
CLOSE = 100.0  # weights whose largest logarithm is within this are kept as they are


class Part(NamedTuple):
    """One member's state over existing coordinates; those of the result are written over."""

    weights: np.ndarray  # (N,)
    memory: np.ndarray  # (slots, N), or (slots + N, N) with a matrix
    scalars: np.ndarray


# -- compiled ------------------------------------------------------------------------------------------------------


@kernel(types.void(int64, Vector, Matrix, Vector, Vector))
def take_weights(spread: int, weights: np.ndarray, memory: np.ndarray, scalars: np.ndarray, params: np.ndarray) -> None:
    """The weights and SHIFT that follow from the memory."""
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


@kernel(types.void(float64, Vector, Vector))
def apply_link(link: float, v: np.ndarray, weights: np.ndarray) -> None:
    """w = link(v)."""
    for i in range(v.size):
        weights[i] = call_link(link, v[i])


# -- mixtures of one family each: (rule, parts, shares, plain, target) -----------------------------------------------


def average(arrays: Sequence[np.ndarray], shares: np.ndarray) -> np.ndarray:
    """sum mu_i a_i, in this order."""
    total = shares[0] * arrays[0]
    for share, array in zip(shares[1:], arrays[1:], strict=True):
        total += share * array
    return total


def true_weights(parts: Sequence[Part], shares: np.ndarray) -> tuple[np.ndarray, float]:
    """sum mu_i w_i, and the logarithm of the scale that it is to be multiplied by."""
    logs = [float(part.scalars[SHIFT] + part.scalars[GAUGE]) for part in parts]
    top = max(logs)
    return average([part.weights * math.exp(log - top) for part, log in zip(parts, logs, strict=True)], shares), top


def additive(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    target.weights[:] = average([part.weights for part in parts], shares)


def mix_memory(parts: Sequence[Part], shares: np.ndarray, target: Part) -> None:
    """Mix what the steps add up, and counts."""
    target.memory[:] = average([part.memory for part in parts], shares)
    target.scalars[OWN:] = average([part.scalars[OWN:] for part in parts], shares)


def weights_of_memory(rule: Rule, target: Part) -> None:
    take_weights(
        address_of(rule.spread, SPREAD), target.weights, target.memory, target.scalars, np.array([*rule.values, 0.0])
    )


def winnows(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    balanced = rule.name == "balanced_winnow"
    if plain:
        log_alpha = rule.values[1] if balanced else rule.values[2]
        powers = [part.memory[0] * log_alpha for part in parts]
        target.memory[0] = (plain_balanced if balanced else plain_positive)(powers, shares) / log_alpha
    else:
        mix_memory(parts, shares, target)
    weights_of_memory(rule, target)
    weights, scalars = target.weights, target.scalars
    unit = math.exp(-scalars[SHIFT])
    mass = np.sqrt(weights * weights + 4.0 * unit * unit).sum() if balanced else weights.sum()
    scalars[MASS] = scalars[PEAK] = mass
    scalars[REACH] = rule.thickness * mass + (rule.values[3] * unit if balanced else 0.0)


def plain_positive(powers: Sequence[np.ndarray], shares: np.ndarray) -> np.ndarray:
    """ln(sum mu_i exp(v_i)), whatever the size of the v_i."""
    with np.errstate(divide="ignore"):
        logs = np.log(shares)
    return np.asarray(np.logaddexp.reduce([log + v for log, v in zip(logs, powers, strict=True)], axis=0))


def plain_balanced(powers: Sequence[np.ndarray], shares: np.ndarray) -> np.ndarray:
    """arsinh(sum mu_i sinh(v_i)), whatever the size of the v_i."""
    top = np.max(np.abs(powers), axis=0)
    near = np.arcsinh(average([np.sinh(np.clip(v, -FAR, FAR)) for v in powers], shares))
    far = average([np.exp(v - top) - np.exp(-v - top) for v in powers], shares)  # 2 sinh(v) / exp(top)
    with np.errstate(divide="ignore"):
        logs = np.log(np.abs(far)) + top
    large = np.copysign(np.maximum(logs, FAR), far)
    beyond = np.where(logs > FAR, large, np.arcsinh(np.copysign(0.5 * np.exp(np.minimum(logs, FAR)), far)))
    return np.where(top > FAR, beyond, near)


def quasi_additive(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    link = rule.parameters["link"]
    if plain and link in ("exp", "sinh"):
        weights = average([part.weights for part in parts], shares)
        target.memory[0] = np.log(weights) if link == "exp" else np.arcsinh(weights)
    else:
        mix_memory(parts, shares, target)
    apply_link(rule.values[1], target.memory[0], target.weights)


def p_norms(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    mix_memory(parts, shares, target)
    if rule.name == "alma":
        target.memory[0] = average([part.memory[0] * math.exp(part.scalars[LOG_C]) for part in parts], shares)
        target.scalars[LOG_C] = 0.0
    weights_of_memory(rule, target)
    p, sizes, scalars = rule.values[0], np.abs(target.memory[0]), target.scalars
    largest = sizes.max(initial=0.0)
    if largest > 0.0:
        norm = math.log(largest) + math.log(((sizes / largest) ** p).sum()) / p
        scalars[GAUGE] = -(p - 2.0) * norm
        scalars[MASS] = scalars[PEAK] = math.exp(min(p * norm - scalars[SHIFT], FAR))


def sasb(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    mix_memory(parts, shares, target)
    weights_of_memory(rule, target)


def romma(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    weights, top = true_weights(parts, shares)
    length = float(np.linalg.norm(weights))
    if length > 0.0:
        target.weights[:] = target.memory[0] = weights / length
        target.scalars[[SHIFT, BASE]] = top + math.log(length)
        target.scalars[[SQUARE, MOST]] = target.weights @ target.weights
        target.scalars[[MASS, PEAK]] = 1.0


def by_variance(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
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


def adagrad(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    roots = [np.sqrt(part.memory[0]) for part in parts]
    root = average(roots, shares)
    pulls = average([r * part.weights for r, part in zip(roots, parts, strict=True)], shares)
    target.memory[0] = root * root
    target.weights[:] = np.divide(pulls, root, out=np.zeros_like(root), where=root > 0.0)


def ftrl(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    rate, beta, l1, l2 = rule.values[:4]
    total = average([part.memory[0] for part in parts], shares)
    root = average([np.sqrt(part.memory[1]) for part in parts], shares)
    target.memory[0], target.memory[1] = total, root * root
    beyond = np.maximum(np.abs(total) - l1, 0.0)
    target.weights[:] = -np.copysign(beyond, total) / ((beta + root) / rate + l2)


def second_order_perceptron(rule: Rule, parts: Sequence[Part], shares: np.ndarray, plain: bool, target: Part) -> None:
    if rule.matrix:
        by_variance(rule, parts, shares, plain, target)
        return
    mix_memory(parts, shares, target)
    target.weights[:] = target.memory[1] / target.memory[0]


Mixture = Callable[[Rule, Sequence[Part], np.ndarray, bool, Part], None]

MIXTURES: dict[str, Mixture] = {
    "adagrad": adagrad,
    "alma": p_norms,
    "arow": by_variance,
    "balanced_winnow": winnows,
    "committee": winnows,
    "ftrl": ftrl,
    "logistic": additive,
    "nherd": by_variance,
    "p_norm": p_norms,
    "pa": additive,
    "pa_i": additive,
    "pa_ii": additive,
    "perceptron": additive,
    "quasi_additive": quasi_additive,
    "romma": romma,
    "sasb": sasb,
    "scw_i": by_variance,
    "scw_ii": by_variance,
    "second_order_perceptron": second_order_perceptron,
    "winnow": winnows,
}


def refuse_unmixable(rule: Rule) -> None:
    """Raise where no mixture of the rule's states is known; a rule of one's own may keep nothing but weights."""
    if rule.name not in MIXTURES and (rule.slots or rule.scalars or rule.spread is not None or rule.matrix):
        raise ValueError(
            f"no mixture is known for {rule}, which remembers more than its weights; known: {', '.join(MIXTURES)}"
        )


def mix(rule: Rule, parts: Sequence[Part], shares: np.ndarray, multiplicative: str, target: Part) -> None:
    """Write the mixture of the parts into ``target``, a state before the first trial."""
    MIXTURES.get(rule.name, additive)(rule, parts, shares, multiplicative == "plain", target)
