"""Search for a comparator that minimizes a bound."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from linmax import bounds
from linmax.theory.bounding import AdditiveBound, Bound, MultiplicativeBound, norm_of
from linmax.theory.certificates.margins import SOFTNESS, descend, slope_of_norm
from linmax.theory.rows import Rows, Vector

__all__ = ["search"]


def search(bound: Bound, rows: Rows, weight: float) -> Iterator[Vector]:
    """Comparators, on the whole better and better; ``rows`` may be a sample, of which each noise counts ``weight``."""
    if isinstance(bound, AdditiveBound):
        return _search_additive(bound, rows, weight)
    return _search_multiplicative(bound, rows, weight)


def _search_additive(bound: AdditiveBound, rows: Rows, weight: float) -> Iterator[Vector]:
    scaled, factor = rows.scaled(1.0 / rows.largest), bound.factor / rows.largest

    def objective(v: Vector, softness: float) -> tuple[float, Vector]:
        noise, slope = scaled.soft_noise(v, 1.0, softness)
        rho, turn = factor * norm_of(v, bound.order), factor * slope_of_norm(v, bound.order)
        root = max(math.sqrt(rho * rho / 4.0 + weight * noise), 1e-150)
        return rho / 2.0 + root, turn / 2.0 + (rho * turn / 2.0 + weight * slope) / (2.0 * root)

    yield np.zeros(rows.shape[1])  # of data without a pattern nothing is better: a bound of one mistake a trial
    mean = np.asarray(scaled.matrix.mean(axis=0), float).ravel()
    direction = bound.unit(mean) if np.abs(mean).max() > 0.0 else bound.unit(np.ones_like(mean))
    lengths = np.geomspace(1e-2, 1e4, 25)
    v = direction * min(lengths, key=lambda c: objective(c * direction, 1.0)[0])
    yield direction
    for softness in SOFTNESS:
        v = descend(objective, v, softness)
        yield bound.unit(v)


def _search_multiplicative(bound: MultiplicativeBound, rows: Rows, weight: float) -> Iterator[Vector]:
    n = rows.shape[1]
    yield bound.unit(np.ones(n))
    if not bound.positive:
        yield np.zeros(n)
    fixed = None if bound.alpha is None else math.log(bound.alpha)
    if fixed is not None and math.isinf(fixed):
        return
    # below this margin the bound of a fixed alpha is infinite
    floor = bound.thickness if fixed is None else bounds.log_growth(fixed, bound.thickness, bound.largest) / fixed

    def objective(x: Vector, softness: float) -> tuple[float, Vector]:
        share = _softmax(x[:-1])
        u = share if bound.positive else share[:n] - share[n:]
        logs = np.log(np.maximum(share, 1e-300))
        learned = max(math.log(len(share)) + float(share @ logs), 1e-12)
        step = math.exp(x[-1])
        margin = floor + step
        noise, slope = rows.soft_noise(u, margin, softness * margin)
        noise, slope = max(weight * noise, 1e-300), weight * slope
        by_margin = (noise - float(u @ slope)) / margin  # the soft noise is homogeneous in (u, margin)
        rate = fixed or math.log(bounds.best_alpha(learned, margin, noise, bound.thickness, bound.largest))
        gain = rate * step  # for a fixed alpha, by the choice of the floor
        if fixed is None:
            exact = margin * rate - bounds.log_growth(rate, bound.thickness, bound.largest)
            gain = max(exact, 1e-12 * rate * margin)  # not below 0 where the difference is rounding
        cost = learned + rate * noise
        pull = rate * slope if bound.positive else rate * np.concatenate([slope, -slope])
        by_share = (logs + 1.0 + pull) / cost
        turn = share * (by_share - float(share @ by_share))
        return math.log(cost) - math.log(gain), np.append(turn, step * (rate * by_margin / cost - rate / gain))

    unit = max(bound.largest, floor)
    x = np.append(np.zeros(n if bound.positive else 2 * n), math.log(0.05 * unit))
    limits = [(None, None)] * (len(x) - 1) + [(math.log(1e-5 * unit), math.log(1e3 * unit))]
    for softness in SOFTNESS:
        x = descend(objective, x, softness, bounds=limits)
        share = _softmax(x[:-1])
        yield bound.unit(share) if bound.positive else share[:n] - share[n:]


def _softmax(x: Vector) -> Vector:
    parts = np.exp(x - x.max())
    return np.asarray(parts / parts.sum())
