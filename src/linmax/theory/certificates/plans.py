"""What the bound of each rule asks of a comparator, and how one is sought that makes it least."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from linmax import bounds
from linmax.core.contract import Rule
from linmax.theory.certificates.margins import SOFTNESS, Rows, Vector, descend, norm_of, slope_of_norm


@dataclass(frozen=True)
class Additive:
    """Perceptron, p-norm, ALMA: M <= noise(v, 1) + rho sqrt(M), where v = u/margin, rho = factor ||v||."""

    order: float
    factor: float
    value: Callable[[float, float], float]  # (margin, noise) -> bound, for ||u|| = 1
    positive = False
    alpha: float | None = None

    def bound(self, _: Vector, margin: float, noise: float) -> float:
        return self.value(margin, noise)

    def unit(self, u: Vector) -> Vector:
        return u / (norm_of(u, self.order) or 1.0)

    def search(self, rows: Rows, weight: float) -> Iterator[Vector]:
        def objective(v: Vector, softness: float) -> tuple[float, Vector]:
            noise, slope = rows.soft_noise(v, 1.0, softness)
            rho, turn = self.factor * norm_of(v, self.order), self.factor * slope_of_norm(v, self.order)
            root = math.sqrt(rho * rho / 4.0 + weight * noise)
            return rho / 2.0 + root, turn / 2.0 + (rho * turn / 2.0 + weight * slope) / (2.0 * root)

        mean = np.asarray(rows.matrix.mean(axis=0), float).ravel()
        direction = self.unit(mean) if np.abs(mean).max() > 0.0 else self.unit(np.ones_like(mean))
        lengths = np.geomspace(1e-2, 1e4, 25)
        v = direction * min(lengths, key=lambda c: objective(c * direction, 1.0)[0])
        yield direction
        for softness in SOFTNESS:
            v = descend(objective, v, softness)
            yield v


@dataclass(frozen=True)
class Multiplicative:
    """Both Winnows: M = (RE + r N)/(delta r - growth(r)), r = ln alpha; alpha=None takes the best."""

    positive: bool
    alpha: float | None
    thickness: float
    largest: float
    order = 1.0

    def bound(self, u: Vector, margin: float, noise: float) -> float:
        alpha = self.alpha or self.best_alpha(u, margin, noise)
        form = bounds.multiplicative if self.positive else bounds.balanced
        return (
            math.inf if alpha is None else form(u, margin, alpha, noise, thickness=self.thickness, largest=self.largest)
        )

    def best_alpha(self, u: Vector, margin: float, noise: float) -> float | None:
        """None when the margin is within the thickness, where no alpha gives a bound."""
        if margin <= self.thickness:
            return None
        learned = bounds.divergence(u) if self.positive else bounds.divergence_balanced(u)
        return bounds.best_alpha(learned, margin, noise, self.thickness, self.largest)

    def unit(self, u: Vector) -> Vector:
        return u / (float(np.abs(u).sum()) or 1.0)

    def search(self, rows: Rows, weight: float) -> Iterator[Vector]:
        n = rows.shape[1]
        fixed = None if self.alpha is None else math.log(self.alpha)
        # below this margin the bound of a fixed alpha is infinite
        floor = self.thickness if fixed is None else bounds.log_growth(fixed, self.thickness, self.largest) / fixed
        yield self.unit(np.ones(n))

        def objective(x: Vector, softness: float) -> tuple[float, Vector]:
            share = _softmax(x[:-1])
            u = share if self.positive else share[:n] - share[n:]
            logs = np.log(np.maximum(share, 1e-300))
            learned = max(math.log(len(share)) + float(share @ logs), 1e-12)
            step = math.exp(x[-1])
            margin = floor + step
            noise, slope = rows.soft_noise(u, margin, softness * margin)
            noise, slope = weight * noise, weight * slope
            by_margin = (noise - float(u @ slope)) / margin  # the soft noise is homogeneous in (u, margin)
            rate = fixed or math.log(bounds.best_alpha(learned, margin, noise, self.thickness, self.largest))
            gain = rate * step  # for a fixed alpha, by the choice of the floor
            if fixed is None:
                gain = margin * rate - bounds.log_growth(rate, self.thickness, self.largest)
            cost = learned + rate * noise
            pull = rate * slope if self.positive else rate * np.concatenate([slope, -slope])
            by_share = (logs + 1.0 + pull) / cost
            turn = share * (by_share - float(share @ by_share))
            return math.log(cost) - math.log(gain), np.append(turn, step * (rate * by_margin / cost - rate / gain))

        x = np.append(np.zeros(n if self.positive else 2 * n), math.log(0.05 * self.largest))
        limits = [(None, None)] * (len(x) - 1) + [(math.log(1e-5 * self.largest), math.log(1e3 * self.largest))]
        for softness in SOFTNESS:
            x = descend(objective, x, softness, bounds=limits)
            share = _softmax(x[:-1])
            yield share if self.positive else share[:n] - share[n:]


def _softmax(x: Vector) -> Vector:
    parts = np.exp(x - x.max())
    return np.asarray(parts / parts.sum())


Plan = Additive | Multiplicative

TUNABLE = {"winnow": True, "committee": True, "balanced-winnow": False}
"""Rules that may be named without an alpha, and whether their weights are positive."""


def plan_of(learner: Rule | str, rows: Rows) -> tuple[Plan, Rows]:
    """The bound that a rule obeys, and the rows as that bound sees them."""
    if isinstance(learner, str):
        return Multiplicative(TUNABLE[learner], None, 0.0, _largest(rows)), rows
    known = dict(learner.parameters)
    name = learner.name
    if not learner.lifts or name not in PLANS:
        raise ValueError(f"no bound from data is known for {learner}; known: {', '.join(sorted(PLANS))}")
    if learner.rivals == "all":
        raise ValueError(f"{learner} is one two-class problem for each class; certify these one by one")
    return PLANS[name](known, rows)


def _largest(rows: Rows) -> float:
    return float(abs(rows.matrix).max()) or 1.0


def _perceptron_plan(known: dict[str, Any], rows: Rows) -> tuple[Plan, Rows]:
    threshold = known.get("margin", 0.0) / known.get("rate", 1.0)
    radius = float(rows.sizes(2.0).max())

    def value(margin: float, noise: float) -> float:
        return bounds.perceptron(radius, 1.0, margin, noise, threshold)

    return Additive(2.0, math.sqrt(radius**2 + 2.0 * threshold), value), rows


def _p_norm_plan(known: dict[str, Any], rows: Rows) -> tuple[Plan, Rows]:
    p = known["p"]
    size = float(rows.sizes(p).max())

    def value(margin: float, noise: float) -> float:
        return bounds.p_norm(p, size, 1.0, margin, noise)

    return Additive(p / (p - 1.0), math.sqrt(p - 1.0) * size, value), rows


def _alma_plan(known: dict[str, Any], rows: Rows) -> tuple[Plan, Rows]:
    p, alpha, B, C = known["p"], known["alpha"], known["B"], known["C"]
    sizes = rows.sizes(p)
    scaled = rows.divided(sizes if known["normalise"] else np.full(len(sizes), known["bound"]))
    covered = bool(known["normalise"] or sizes.max() <= known["bound"] * (1.0 + 1e-12))

    def value(margin: float, noise: float) -> float:
        if not covered:
            return math.inf
        if not known["project"]:
            return bounds.alma_unprojected(p, margin) if noise == 0.0 and alpha == 1.0 else math.inf
        return bounds.alma(p, margin, noise, alpha, B, C)

    factor = math.sqrt(p - 1.0) * (2.0 / C + C + 2.0 * (1.0 - alpha) * (1.0 / alpha if B is None else B))
    return Additive(p / (p - 1.0), factor, value), scaled


def _winnow_plan(known: dict[str, Any], rows: Rows) -> tuple[Plan, Rows]:
    return Multiplicative(True, known["alpha"], known["thickness"], _largest(rows)), rows


def _balanced_plan(known: dict[str, Any], rows: Rows) -> tuple[Plan, Rows]:
    # w+ w- = 1 keeps sum(w+ + w-) >= 2n, so an absolute margin is at most this thick
    thickness = known["thickness"] + known["margin"] / (2.0 * rows.shape[1])
    return Multiplicative(False, known["alpha"], thickness, _largest(rows)), rows


def _quasi_additive_plan(known: dict[str, Any], rows: Rows) -> tuple[Plan, Rows]:
    link, alpha = known["link"], math.exp(known["rate"])
    if link == "identity":
        return _perceptron_plan({}, rows)
    if link not in ("exp", "sinh"):
        raise ValueError(f"no bound is known for the link {link!r}; known: identity, exp, sinh")
    return Multiplicative(link == "exp", alpha, 0.0, _largest(rows)), rows


PLANS: dict[str, Callable[[dict[str, Any], Rows], tuple[Plan, Rows]]] = {
    "alma": _alma_plan,
    "balanced_winnow": _balanced_plan,
    "committee": _winnow_plan,
    "p_norm": _p_norm_plan,
    "perceptron": _perceptron_plan,
    "quasi_additive": _quasi_additive_plan,
    "winnow": _winnow_plan,
}
