"""Bounds of ALMA, the approximate large margin algorithm."""

from __future__ import annotations

import math

from linmax.bounds.additive import quadratic
from linmax.bounds.arguments import above, amount, number
from linmax.bounds.documentation import documented


def _alma(p: float, alpha: float, B: float | None, C: float) -> tuple[float, float, float, float]:
    p = number("p", p)
    if p < 2.0:
        raise ValueError(f"p must be >= 2, got {p!r}; try 2")
    alpha = number("alpha", alpha)
    if not 0.0 < alpha <= 1.0:
        raise ValueError(f"alpha must be in (0, 1], got {alpha!r}; try 0.9")
    return p, alpha, 1.0 / alpha if B is None else above("B", B, 0.0, 1.0), above("C", C, 0.0, 1.414)


@documented(alpha="Share of the largest margin to reach, in (0, 1].")
def alma_separable(
    p: float, margin: float, alpha: float = 1.0, B: float | None = None, C: float = math.sqrt(2.0)
) -> float:
    """Updates of ALMA_p(alpha; B, C) on separable instances.

    Conditions: z is divided by its p-norm, theta is projected; some u with |u|_q <= 1 has u.z/|z|_p >=
    gamma always.

        M <= (p - 1)(A + 1)^2 / (4 C^2 gamma^2) + A,   A = max(1, C^2 + 2(1 - alpha) B C)

    Proof: |theta'|_p^2 <= 1 + A/k, so the k-th division is by at most ((k + 1)/k)^(A/2); k^(A/2) u.theta_k
    then grows by C gamma/sqrt(p - 1) k^((A-1)/2) a step and stays below k^(A/2).

    alpha = 1: C = 1 gives (p - 1)/gamma^2 + 1, C = sqrt(2) gives 9(p - 1)/(8 gamma^2) + 2. For every alpha
    and B the main term is least at C = 1.

    Source: derived here; smaller than `alma_printed`.

    Examples
    --------
    >>> alma_separable(p=2, margin=0.5, C=1.0)
    5.0
    """
    p, alpha, B, C = _alma(p, alpha, B, C)
    margin = number("margin", margin)
    if margin <= 0.0:
        return math.inf
    width = max(1.0, C * C + 2.0 * (1.0 - alpha) * B * C)
    return (p - 1.0) * (width + 1.0) ** 2 / (4.0 * C * C * margin**2) + width


@documented(alpha="Share of the largest margin to reach, in (0, 1].")
def alma(
    p: float,
    margin: float,
    noise: float = 0.0,
    alpha: float = 1.0,
    B: float | None = None,
    C: float = math.sqrt(2.0),
) -> float:
    """Updates of ALMA_p(alpha; B, C) on any sequence.

    Conditions: z is divided by its p-norm, theta is projected; |u|_q <= 1; hinge loss ``noise`` of
    u.z/|z|_p at ``margin``.

        M <= N/gamma + rho^2/2 + rho sqrt(N/gamma + rho^2/4),
        rho = sqrt(p - 1) (2/C + C + 2(1 - alpha) B)/gamma

    and without noise also `alma_separable`, of which the smaller is returned. Proof: mirror descent with
    steps 1/sqrt(k) on the unit q-ball, whose Bregman projection is the division that ALMA makes. 2/C + C is
    least at C = sqrt(2).

    ALMA skips z = 0; count such trials as noise (u.z = 0) and the bound covers the mistakes made on them.

    Source: derived here. See `alma_noisy_printed` for a smaller form that is often quoted, and false.

    Examples
    --------
    >>> round(alma(p=2, margin=0.5, noise=1.0), 1)
    35.9
    """
    p, alpha, B, C = _alma(p, alpha, B, C)
    margin, noise = number("margin", margin), amount("noise", noise)
    if margin <= 0.0:
        return math.inf
    rho = math.sqrt(p - 1.0) * (2.0 / C + C + 2.0 * (1.0 - alpha) * B) / margin
    value = quadratic(rho, noise / margin)
    return min(value, alma_separable(p, margin, alpha, B, C)) if noise == 0.0 else value


@documented()
def alma_unprojected(p: float, margin: float) -> float:
    """Updates of ALMA_p(1; C) without the projection, separable as in `alma_separable`: the largest M with

        sqrt(M + 1) <= 1 + sqrt((p - 1)(1 + ln M)) / (2 gamma)

    C cancels. Proof: u.theta >= gamma C/sqrt(p - 1) sum 1/sqrt(k), |theta|_p^2 <= C^2 sum 1/k.

    Source: derived here.

    Examples
    --------
    >>> round(alma_unprojected(p=2, margin=0.5), 1)
    6.2
    """
    p, _, _, _ = _alma(p, 1.0, None, 1.0)
    margin = number("margin", margin)
    if margin <= 0.0:
        return math.inf
    bound = 1.0
    for _ in range(1000):  # M -> the right side of M is increasing and concave: iterating from below converges
        following = (1.0 + math.sqrt((p - 1.0) * (1.0 + math.log(bound))) / (2.0 * margin)) ** 2 - 1.0
        if following <= bound * (1.0 + 1e-12):
            break
        bound = following
    return max(1.0, bound)


@documented(alpha="Share of the largest margin to reach, in (0, 1].")
def alma_printed(p: float, margin: float, alpha: float) -> float:
    """ALMA_p(alpha; sqrt(8)/alpha, sqrt(2)) on separable instances, Gentile (2001) theorem 3(1).

        (2(p - 1)/gamma^2)(2/alpha - 1)^2 + 8/alpha - 4

    `alma_separable` has A + 1 and A where this has A + 2, A = 8/alpha - 6, and so is smaller.

    Source: Gentile (2001), A new approximate maximal margin classification algorithm.

    Examples
    --------
    >>> alma_printed(2, 0.5, alpha=1.0), round(alma_separable(2, 0.5, alpha=1.0, B=8**0.5), 9)
    (12.0, 6.5)
    """
    p, alpha, _, _ = _alma(p, alpha, None, 1.0)
    margin = number("margin", margin)
    if margin <= 0.0:
        return math.inf
    return 2.0 * (p - 1.0) / margin**2 * (2.0 / alpha - 1.0) ** 2 + 8.0 / alpha - 4.0


@documented()
def alma_noisy_printed(p: float, margin: float, noise: float, C: float = 1.0) -> float:
    """ALMA_p on any sequence, the form often quoted as Gentile (2001) theorem 3(2).

        M <= N/gamma + rho^2/2 + sqrt(rho^4/4 + rho^2 N/gamma + rho^2),   rho = sqrt(p - 1)/(C gamma)

    for C^2 + 2(1 - alpha) B C = 1.

    **False in this form** (the original text was not at hand). With p = 2, C = 1, gamma = .1, let the
    first instance be -u (N = 1.1) and every later one orthogonal to w with u.z = gamma: 130 updates, and
    the formula gives 121.8. The step that fails: theta is divided by less than sqrt(1 + 1/k) on a noisy
    trial, so that old noise does not fade at the rate assumed. Without noise it holds; with noise use
    `alma`.

    Source: Gentile (2001), as others quote it.

    Examples
    --------
    >>> round(alma_noisy_printed(p=2, margin=0.1, noise=1.1), 1)
    121.8
    """
    p, _, _, C = _alma(p, 1.0, None, C)
    margin, noise = number("margin", margin), amount("noise", noise)
    if margin <= 0.0:
        return math.inf
    rho2, relative = (p - 1.0) / (C * margin) ** 2, noise / margin
    return relative + rho2 / 2.0 + math.sqrt(rho2**2 / 4.0 + rho2 * relative + rho2)
