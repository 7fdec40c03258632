"""What the bound of each rule asks of a comparator, and how one is sought that makes it least."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from linmax import bounds
from linmax.bounds.zero_threshold import LARGEST_RATE, from_divergence
from linmax.core.contract import Rule
from linmax.theory.certificates.margins import SOFTNESS, Rows, Vector, descend, norm_of, slope_of_norm


@dataclass(frozen=True)
class Additive:
    """Perceptron, p-norm, ALMA: M <= noise(v, 1) + rho sqrt(M), where v = u/margin, rho = factor ||v||."""

    order: float
    factor: float
    value: Callable[[float, float, float], float]  # (||u||, margin, noise) -> bound
    positive = False
    alpha: float | None = None

    @property
    def reach(self) -> float:
        """The size of margins that matter."""
        return self.factor or 1.0

    def measure(self, u: Vector) -> float:
        return norm_of(u, self.order)

    def unit(self, u: Vector) -> Vector:
        return u / (norm_of(u, self.order) or 1.0)

    def search(self, rows: Rows, weight: float) -> Iterator[Vector]:
        scaled, factor = rows.scaled(1.0 / rows.largest), self.factor / rows.largest

        def objective(v: Vector, softness: float) -> tuple[float, Vector]:
            noise, slope = scaled.soft_noise(v, 1.0, softness)
            rho, turn = factor * norm_of(v, self.order), factor * slope_of_norm(v, self.order)
            root = max(math.sqrt(rho * rho / 4.0 + weight * noise), 1e-150)
            return rho / 2.0 + root, turn / 2.0 + (rho * turn / 2.0 + weight * slope) / (2.0 * root)

        yield np.zeros(rows.shape[1])  # of data without a pattern nothing is better: a bound of one mistake a trial
        mean = np.asarray(scaled.matrix.mean(axis=0), float).ravel()
        direction = self.unit(mean) if np.abs(mean).max() > 0.0 else self.unit(np.ones_like(mean))
        lengths = np.geomspace(1e-2, 1e4, 25)
        v = direction * min(lengths, key=lambda c: objective(c * direction, 1.0)[0])
        yield direction
        for softness in SOFTNESS:
            v = descend(objective, v, softness)
            yield self.unit(v)


@dataclass(frozen=True)
class Multiplicative:
    """Both Winnows: M = (RE + r N)/(delta r - growth(r)), r = ln alpha; alpha=None takes the best.

    The comparator of Balanced Winnow is a difference u+ - u-, of which both may be positive: sum |u_i| <= 1.
    """

    positive: bool
    alpha: float | None
    thickness: float
    largest: float
    order = 1.0

    @property
    def reach(self) -> float:
        """The size of margins that matter."""
        return max(self.largest, self.thickness)

    def measure(self, u: Vector) -> float:
        return bounds.divergence(u) if self.positive else bounds.divergence_balanced(u)

    def value(self, learned: float, margin: float, noise: float) -> float:
        alpha = self.alpha or self.best_alpha(learned, margin, noise)
        if alpha is None or math.isinf(alpha):
            return math.inf
        return from_divergence(learned, margin, alpha, noise, self.thickness, self.largest)

    def best_alpha(self, learned: float, margin: float, noise: float) -> float | None:
        """None when the margin is within the thickness, where no alpha gives a bound."""
        if margin <= self.thickness:
            return None
        return bounds.best_alpha(learned, margin, noise, self.thickness, self.largest)

    def unit(self, u: Vector) -> Vector:
        return u / (float(np.abs(u).sum()) or 1.0)

    def search(self, rows: Rows, weight: float) -> Iterator[Vector]:
        n = rows.shape[1]
        yield self.unit(np.ones(n))
        if not self.positive:
            yield np.zeros(n)
        fixed = None if self.alpha is None else math.log(self.alpha)
        if fixed is not None and math.isinf(fixed):
            return
        # below this margin the bound of a fixed alpha is infinite
        floor = self.thickness if fixed is None else bounds.log_growth(fixed, self.thickness, self.largest) / fixed

        def objective(x: Vector, softness: float) -> tuple[float, Vector]:
            share = _softmax(x[:-1])
            u = share if self.positive else share[:n] - share[n:]
            logs = np.log(np.maximum(share, 1e-300))
            learned = max(math.log(len(share)) + float(share @ logs), 1e-12)
            step = math.exp(x[-1])
            margin = floor + step
            noise, slope = rows.soft_noise(u, margin, softness * margin)
            noise, slope = max(weight * noise, 1e-300), weight * slope
            by_margin = (noise - float(u @ slope)) / margin  # the soft noise is homogeneous in (u, margin)
            rate = fixed or math.log(bounds.best_alpha(learned, margin, noise, self.thickness, self.largest))
            gain = rate * step  # for a fixed alpha, by the choice of the floor
            if fixed is None:
                exact = margin * rate - bounds.log_growth(rate, self.thickness, self.largest)
                gain = max(exact, 1e-12 * rate * margin)  # not below 0 where the difference is rounding
            cost = learned + rate * noise
            pull = rate * slope if self.positive else rate * np.concatenate([slope, -slope])
            by_share = (logs + 1.0 + pull) / cost
            turn = share * (by_share - float(share @ by_share))
            return math.log(cost) - math.log(gain), np.append(turn, step * (rate * by_margin / cost - rate / gain))

        unit = max(self.largest, floor)
        x = np.append(np.zeros(n if self.positive else 2 * n), math.log(0.05 * unit))
        limits = [(None, None)] * (len(x) - 1) + [(math.log(1e-5 * unit), math.log(1e3 * unit))]
        for softness in SOFTNESS:
            x = descend(objective, x, softness, bounds=limits)
            share = _softmax(x[:-1])
            yield self.unit(share) if self.positive else share[:n] - share[n:]


def _softmax(x: Vector) -> Vector:
    parts = np.exp(x - x.max())
    return np.asarray(parts / parts.sum())


Plan = Additive | Multiplicative

TUNABLE = {"winnow": True, "committee": True, "balanced-winnow": False}
"""Rules that may be named without an alpha, and whether their weights are positive."""


def plan_of(learner: Rule | str, rows: Rows) -> tuple[Plan, Rows]:
    """The bound that a rule obeys, and the rows as that bound sees them."""
    if isinstance(learner, str):
        return Multiplicative(TUNABLE[learner], None, 0.0, rows.largest), rows
    known = dict(learner.parameters)
    name = learner.name
    if not learner.lifts or name not in PLANS:
        raise ValueError(f"no bound from data is known for {learner}; known: {', '.join(sorted(PLANS))}")
    if learner.rivals == "all":
        raise ValueError(f"{learner} is one two-class problem for each class; certify these one by one")
    # every violated rival causes an update of its own, so that each of them adds its hinge loss to the noise
    return PLANS[name](known, rows.one_by_one() if learner.rivals == "violated" else rows)


def _perceptron_plan(known: dict[str, Any], rows: Rows) -> tuple[Plan, Rows]:
    threshold = known.get("margin", 0.0) / known.get("rate", 1.0)
    radius = float(rows.sizes(2.0).max())

    def value(norm: float, margin: float, noise: float) -> float:
        return bounds.perceptron(radius, norm, margin, noise, threshold)

    return Additive(2.0, math.sqrt(radius**2 + 2.0 * threshold), value), rows


def _p_norm_plan(known: dict[str, Any], rows: Rows) -> tuple[Plan, Rows]:
    p = known["p"]
    size = float(rows.sizes(p).max())

    def value(norm: float, margin: float, noise: float) -> float:
        return bounds.p_norm(p, size, norm, margin, noise)

    return Additive(p / (p - 1.0), math.sqrt(p - 1.0) * size, value), rows


def _alma_plan(known: dict[str, Any], rows: Rows) -> tuple[Plan, Rows]:
    p, alpha, B, C = known["p"], known["alpha"], known["B"], known["C"]
    sizes = rows.sizes(p)
    scaled = rows.divided(sizes if known["normalise"] else np.full(len(sizes), known["bound"]))
    covered = bool(known["normalise"] or sizes.max() <= known["bound"] * (1.0 + 1e-12))

    def value(_: float, margin: float, noise: float) -> float:
        if not covered:
            return math.inf
        if not known["project"]:
            return bounds.alma_unprojected(p, margin) if noise == 0.0 and alpha == 1.0 else math.inf
        return bounds.alma(p, margin, noise, alpha, B, C)

    factor = math.sqrt(p - 1.0) * (2.0 / C + C + 2.0 * (1.0 - alpha) * (1.0 / alpha if B is None else B))
    return Additive(p / (p - 1.0), factor, value), scaled


def _winnow_plan(known: dict[str, Any], rows: Rows) -> tuple[Plan, Rows]:
    return Multiplicative(True, known["alpha"], known["thickness"], rows.largest), rows


def _balanced_plan(known: dict[str, Any], rows: Rows) -> tuple[Plan, Rows]:
    # w+ w- = 1 keeps sum(w+ + w-) >= 2n, so an absolute margin is at most this thick
    thickness = known["thickness"] + known["margin"] / (2.0 * rows.shape[1])
    return Multiplicative(False, known["alpha"], thickness, rows.largest), rows


def _quasi_additive_plan(known: dict[str, Any], rows: Rows) -> tuple[Plan, Rows]:
    link = known["link"]
    alpha = math.exp(known["rate"]) if known["rate"] <= LARGEST_RATE else math.inf
    if link == "identity":
        return _perceptron_plan({}, rows)
    if link not in ("exp", "sinh"):
        raise ValueError(f"no bound is known for the link {link!r}; known: identity, exp, sinh")
    return Multiplicative(link == "exp", alpha, 0.0, rows.largest), rows


PLANS: dict[str, Callable[[dict[str, Any], Rows], tuple[Plan, Rows]]] = {
    "alma": _alma_plan,
    "balanced_winnow": _balanced_plan,
    "committee": _winnow_plan,
    "p_norm": _p_norm_plan,
    "perceptron": _perceptron_plan,
    "quasi_additive": _quasi_additive_plan,
    "winnow": _winnow_plan,
}
