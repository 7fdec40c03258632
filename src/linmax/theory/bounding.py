"""Mistake bounds on given rows, as rules state them (`Rule.bound`); certificates and traces use them.

A bound depends on the comparator by one number (`measure`), on its margin and on its noise. There are two kinds, each
with its own way to seek the comparator that makes it least: `AdditiveBound` and `MultiplicativeBound`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from linmax.theory.rows import Rows, Vector
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from linmax.theory import bounds
else:
    bounds = LazyModule(
        "linmax.theory.bounds"
    )  # rules take it from here, and load it when the first bound is asked for

__all__ = ["AdditiveBound", "Bound", "MultiplicativeBound", "bounds", "norm_of"]


def norm_of(v: Vector, order: float) -> float:
    """Return ||v||, also where powers of its numbers would overflow."""
    largest = float(np.abs(v).max(initial=0.0))
    return 0.0 if largest == 0.0 else largest * float(((np.abs(v) / largest) ** order).sum()) ** (1.0 / order)


@dataclass(frozen=True, eq=False)
class AdditiveBound:
    """Perceptron, p-norm, ALMA: M <= noise(v, 1) + rho sqrt(M), where v = u/margin, rho = factor ||v||.

    Attributes
    ----------
    rows
        The z, scaled where the rule scales them.
    order
        Of the norm of u.
    factor
        Of rho above; the search follows this form, while ``value`` is exact.
    value
        The bound from ||u||, margin and noise.
    """

    rows: Rows
    order: float
    factor: float
    value: Callable[[float, float, float], float]
    positive: ClassVar[bool] = False

    @property
    def reach(self) -> float:
        """Size of relevant margins."""
        return self.factor or 1.0

    def measure(self, u: Vector) -> float:
        """Return ||u||."""
        return norm_of(u, self.order)

    def unit(self, u: Vector) -> Vector:
        """Return u at length 1."""
        return u / (norm_of(u, self.order) or 1.0)


@dataclass(frozen=True, eq=False)
class MultiplicativeBound:
    """Both Winnows: M = (RE + r N)/(delta r - growth(r)), r = ln alpha.

    The comparator of Balanced Winnow is a difference u+ - u-, of which both may be positive: sum |u_i| <= 1.

    Attributes
    ----------
    rows
        The z.
    positive
        Whether the weights, and so u, are positive.
    alpha
        None takes the best for each comparator, margin and noise.
    thickness
        Of the separator, relative to the sum of the weights.
    """

    rows: Rows
    positive: bool
    alpha: float | None
    thickness: float
    order: ClassVar[float] = 1.0

    @property
    def largest(self) -> float:
        """Largest |z_i|."""
        return self.rows.largest

    @property
    def reach(self) -> float:
        """Size of relevant margins."""
        return max(self.largest, self.thickness)

    def measure(self, u: Vector) -> float:
        """Return the divergence of u from the first weights."""
        return bounds.divergence(u) if self.positive else bounds.divergence_balanced(u)

    def value(self, learned: float, margin: float, noise: float) -> float:
        """Return the bound."""
        alpha = self.alpha or self.best_alpha(learned, margin, noise)
        if alpha is None or math.isinf(alpha):
            return math.inf
        return bounds.from_divergence(learned, margin, alpha, noise, self.thickness, self.largest)

    def best_alpha(self, learned: float, margin: float, noise: float) -> float | None:
        """Return the best alpha, or None when the margin is within the thickness, where no alpha gives a bound."""
        if margin <= self.thickness:
            return None
        return bounds.best_alpha(learned, margin, noise, self.thickness, self.largest)

    def unit(self, u: Vector) -> Vector:
        """Scale u so that its magnitudes sum to 1."""
        return u / (float(np.abs(u).sum()) or 1.0)


Bound: TypeAlias = AdditiveBound | MultiplicativeBound
