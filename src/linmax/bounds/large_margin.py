"""Bounds of passive-aggressive rules and of those of second order."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from linmax.bounds.arguments import Vector, above, amount, count, number
from linmax.bounds.documentation import documented


@documented(
    "Bound on the mistakes.",
    hinge="Hinge losses of u at margin 1, or their squares, summed.",
    C="Largest step (PA-I), or weight of the loss (PA-II).",
    squared="Whether the rule is PA-II.",
)
def passive_aggressive(
    radius: float, norm: float, hinge: float = 0.0, C: float = math.inf, squared: bool = False
) -> float:
    """Mistakes (not updates) of the passive-aggressive rules.

    Conditions: |z|_2 <= radius; ``hinge`` is the sum over trials of max(0, 1 - u.z), or of its square if
    ``squared``.

        PA-I  (step at most C):       M <= max(R^2, 1/C) (|u|^2 + 2 C sum l)
        PA-II (step l/(|z|^2 + 1/2C)): M <= (R^2 + 1/(2C)) (|u|^2 + 2 C sum l^2)

    C = infinity is the plain PA rule, on separable instances: R^2 |u|^2.

    Source: Crammer, Dekel, Keshet, Shalev-Shwartz and Singer (2006), theorems 2, 4, 5.

    Examples
    --------
    >>> passive_aggressive(radius=2.0, norm=3.0)
    36.0
    """
    radius, norm, hinge = amount("radius", radius), amount("norm", norm), amount("hinge", hinge)
    C = above("C", C, 0.0, 1.0)
    paid = 0.0 if hinge == 0.0 else 2.0 * C * hinge
    scale = radius**2 + 1.0 / (2.0 * C) if squared else max(radius**2, 1.0 / C)
    return scale * (norm**2 + paid)


def _quadratic_form(u: npt.ArrayLike, correlation: npt.ArrayLike) -> tuple[float, float, Vector]:
    weights, matrix = np.asarray(u, dtype=float), np.asarray(correlation, dtype=float)
    if matrix.shape != (weights.size, weights.size):
        raise ValueError(
            f"correlation must be {weights.size} x {weights.size} like u, got {matrix.shape}; it is sum z z'"
        )
    return float(weights @ weights), float(weights @ matrix @ weights), np.linalg.eigvalsh(matrix).clip(0.0)


@documented(
    "Bound on the mistakes.",
    hinge="Hinge losses of u at margin 1, summed.",
    margin_updates="Number U of updates that were no mistakes.",
    r="Parameter of the rule, > 0.",
)
def arow(u: npt.ArrayLike, correlation: npt.ArrayLike, hinge: float, margin_updates: int, r: float = 1.0) -> float:
    """Mistakes of AROW(r) with the full matrix.

    Conditions: ``correlation`` = sum z z' over the trials that updated, ``hinge`` = sum of max(0, 1 - u.z)
    over them, ``margin_updates`` = U, how many of them were no mistakes.

        M <= sqrt(r |u|^2 + u'Xu) sqrt(ln det(I + X/r) + U) + sum l - U

    It needs the run itself: a bound after the event.

    Source: Crammer, Kulesza and Dredze (2009), Adaptive regularization of weight vectors, theorem 2.

    Examples
    --------
    >>> round(arow([1.0, 0.0], [[4.0, 0.0], [0.0, 1.0]], hinge=0.0, margin_updates=0), 2)
    3.39
    """
    square, energy, eigenvalues = _quadratic_form(u, correlation)
    r, hinge = above("r", r, 0.0, 1.0), amount("hinge", hinge)
    extra = count("margin_updates", margin_updates, 0)
    logdet = float(np.log1p(eigenvalues / r).sum())
    return math.sqrt(r * square + energy) * math.sqrt(logdet + extra) + hinge - extra


@documented("Bound on the mistakes; infinite without a margin.", a="Parameter of the rule, > 0.")
def second_order_perceptron(
    u: npt.ArrayLike, correlation: npt.ArrayLike, margin: float, noise: float = 0.0, a: float = 1.0
) -> float:
    """Mistakes of the second-order Perceptron with the current x in its matrix, (a I + sum z z' + x x')^-1.

    Conditions: ``correlation`` = X = sum z z' over the mistakes, l_i its eigenvalues, ``noise`` the hinge
    loss there.

        M <= N/gamma + (1/gamma) sqrt((a |u|^2 + u'Xu) sum ln(1 + l_i/a))

    The lagged form, which leaves the current x out so that it fits the linear-max transformation, is not
    covered.

    Source: Cesa-Bianchi, Conconi and Gentile (2005), A second-order Perceptron algorithm, theorem 3.1.

    Examples
    --------
    >>> round(second_order_perceptron([1.0, 0.0], [[4.0, 0.0], [0.0, 1.0]], margin=1.0), 2)
    3.39
    """
    square, energy, eigenvalues = _quadratic_form(u, correlation)
    margin, noise, a = number("margin", margin), amount("noise", noise), above("a", a, 0.0, 1.0)
    if margin <= 0.0:
        return math.inf
    return noise / margin + math.sqrt((a * square + energy) * float(np.log1p(eigenvalues / a).sum())) / margin
