"""Adversaries that see the weights before each trial."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from linmax.theory.adversaries.games import Adversary, Vector
from linmax.util.checks import finite, whole

__all__ = ["balanced_mass", "orthogonal", "worst_flips"]


def balanced_mass(n: int, relevant: int) -> Adversary:
    """The greedy adversary of multiplicative rules with positive weights.

    The first ``relevant`` (odd) attributes are right by one vote: u = 1/relevant each, margin delta =
    1/relevant. The lightest of them are those that are right. All others are split so that w.z comes as
    close to 0 from below as it can. Every z_i is -1 or +1 and w.z is nearly 0, the case in which the bound
    is tight; `bounds.multiplicative` is reached within 5 per cent.

    With n = 20000 and 3 relevant attributes it forces 183 mistakes on WMA with alpha = (1 - delta)^(-1/2),
    where Mesterharm (2001) prints 2 ln(n)/delta^2 = 178.3 (`bounds.committee_printed`), and 153 with alpha
    = sqrt((1 + delta)/(1 - delta)), for which that is true.

    Source: derived here; the counter-example to Mesterharm (2001), section 4.2.

    Parameters
    ----------
    n
        Attributes in all.
    relevant
        How many of them matter; an odd number below n.

    Returns
    -------
    Adversary
        Sees the weights, answers with the next z, or None when it gives up.

    Examples
    --------
    >>> balanced_mass(n=5, relevant=1)(np.ones(5)).tolist()
    [1.0, -1.0, -1.0, -1.0, 1.0]
    """
    n, relevant = whole("n", n, 2), _odd("relevant", relevant, n - 1)

    def answer(weights: Vector) -> Vector | None:
        # equal weights that differ by rounding are one group
        w = np.round(weights / (float(np.abs(weights).max()) or 1.0), 14)
        z = np.ones(n)
        z[np.argsort(w[:relevant], kind="stable")[(relevant + 1) // 2 :]] = -1.0
        # a hair below 0, so that rounding in the learner's sum cannot turn an update into none
        lead = float(w[:relevant] @ z[:relevant]) + 1e-13 * float(np.abs(w).sum())
        signs, lead = _split(np.abs(w[relevant:]), lead)
        z[relevant:] = np.where(w[relevant:] < 0.0, -signs, signs)
        return None if lead > 0.0 else z

    return answer


def _split(weights: Vector, lead: float) -> tuple[Vector, float]:
    """Signs that bring lead + sum of signed weights as close to 0 from below as possible, heaviest first."""
    signs = np.ones(len(weights))
    order = np.argsort(-weights, kind="stable")
    heavy = weights[order]
    starts = np.flatnonzero(np.concatenate([[True], heavy[1:] != heavy[:-1]]))
    for start, end in zip(starts, np.append(starts[1:], len(heavy)), strict=True):
        value, count = float(heavy[start]), int(end - start)
        if value <= 0.0:
            break  # weights that have vanished decide nothing
        minus = min(count, max(0, math.ceil((count + lead / value) / 2.0)))
        signs[order[start : start + minus]] = -1.0
        lead += value * (count - 2 * minus)
    return signs, lead


def orthogonal(u: npt.ArrayLike, margin: float, first: npt.ArrayLike | None = None, seed: int = 0) -> Adversary:
    """Unit vectors orthogonal to the weights, ties on every trial, with u.z = margin: the Perceptron's worst.

    ``u`` has unit length. The Perceptron updates about 1/margin^2 - 1 times, its bound being 1/margin^2.
    ``first`` is shown before all else: with first = -u, a flipped label, ALMA_2(1; C = 1) exceeds
    `bounds.alma_noisy_printed`.

    Source: Novikoff (1962) has the bound that it reaches.

    Parameters
    ----------
    u
        The comparator, of unit length, with at least 3 coordinates.
    margin
        u.z of every instance, between 0 and 1.
    first
        An instance to be shown before all else.
    seed
        Of the directions that are free.

    Returns
    -------
    Adversary
        Sees the weights, answers with the next z, or None when it gives up.

    Examples
    --------
    >>> z = orthogonal([1.0, 0.0, 0.0], margin=0.5)(np.array([0.0, 2.0, 0.0]))
    >>> round(float(z[0]), 9), round(float(z[1]), 9), round(float(z @ z), 9)
    (0.5, 0.0, 1.0)
    """
    target = np.asarray(u, dtype=float)
    if target.ndim != 1 or target.size < 3 or abs(float(target @ target) - 1.0) > 1e-9:
        raise ValueError("u must have unit length and at least 3 coordinates; divide it by its 2-norm")
    gap = finite("margin", margin)
    if not 0.0 < gap < 1.0:
        raise ValueError(f"margin must lie between 0 and 1, got {margin!r}; try 0.1")
    random = np.random.default_rng(seed)
    opening = [] if first is None else [np.asarray(first, dtype=float)]

    def answer(weights: Vector) -> Vector | None:
        if opening:
            return opening.pop()
        along = float(weights @ target)
        across = weights - along * target
        length = float(np.linalg.norm(across))
        rest = math.sqrt(1.0 - gap * gap)
        # z = margin u + s across/|across| + the remainder in a fresh direction; s makes w.z = 0 if it can
        s = -along * gap / length if length > 1e-12 else 0.0
        if s < -rest or (length <= 1e-12 and along > 0.0):
            return None
        s = min(s, rest)
        z = gap * target
        if length > 1e-12:
            z = z + s * across / length
        fresh = random.normal(size=target.size)
        for direction, size in ((target, 1.0), (across, length)):
            if size > 1e-12:
                fresh -= float(fresh @ direction) / size**2 * direction
        z = z + math.sqrt(max(0.0, rest * rest - s * s)) * fresh / float(np.linalg.norm(fresh))
        lead = float(weights @ z)
        return z - (lead + 1e-15) / float(weights @ weights) * weights if lead > 0.0 else z

    return answer


def worst_flips(adversary: Adversary, u: npt.ArrayLike, times: int) -> Adversary:
    """Label noise at the worst moment: ``times`` flipped labels among the instances of another adversary.

    A flipped instance is wrong in every relevant attribute (u.z = -sum |u_i|) and right in as many others as
    still make the learner err; it costs the noise margin + sum |u_i|. It hurts most when relevant and other
    attributes weigh the same: then w.z is nearly 0 and nothing of the learner's progress pays for it. With
    `balanced_mass` the bound is reached within 6 per cent, its noise term included.

    Source: derived here.

    Parameters
    ----------
    adversary
        The adversary whose instances are played between the flips.
    u
        The comparator.
    times
        How many labels are flipped.

    Returns
    -------
    Adversary
        Sees the weights, answers with the next z, or None when it gives up.

    Examples
    --------
    >>> inner = balanced_mass(n=3, relevant=1)
    >>> worst_flips(inner, [1, 0, 0], times=1)(np.array([9.0, 1.0, 1.0])).tolist()
    [-1.0, 1.0, 1.0]
    """
    target = np.asarray(u, dtype=float)
    left = whole("times", times, 0)
    others = np.flatnonzero(target == 0.0)

    def answer(weights: Vector) -> Vector | None:
        nonlocal left
        z = adversary(weights)
        learned = float(weights @ np.sign(target)) >= float(np.abs(weights[others]).sum())
        if left == 0 or not (learned or z is None):
            return z
        left -= 1
        flipped: Vector = -np.sign(target)
        order = others[np.argsort(np.abs(weights[others]), kind="stable")]
        lead = float(weights @ flipped) + np.cumsum(np.abs(weights[order]))
        chosen = order[lead <= 0.0]
        flipped[chosen] = np.where(weights[chosen] < 0.0, -1.0, 1.0)
        return flipped

    return answer


def _odd(name: str, value: int, most: int) -> int:
    number = whole(name, value, 1)
    if number % 2 == 0 or number > most:
        raise ValueError(f"{name} must be odd and at most {most}, got {value!r}; a majority needs an odd number")
    return number
