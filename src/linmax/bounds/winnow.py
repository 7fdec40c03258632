"""Bounds of Winnow with a fixed threshold."""

from __future__ import annotations

import math

from linmax.bounds.arguments import above, amount, count, lowest_point, number
from linmax.bounds.documentation import documented


def _promotions(k: float, alpha: float, threshold: float) -> float:
    return k * (math.log(threshold) / math.log(alpha) + 1.0)


def _threshold_form(n: float, alpha: float, threshold: float | None) -> tuple[float, float, float]:
    n = count("n", n, 1)
    alpha = above("alpha", alpha, 1.0, 2.0)
    theta = n if threshold is None else above("threshold", threshold, 0.0, n)
    if theta * alpha < 1.0:
        raise ValueError(f"threshold must be >= 1/alpha = {1 / alpha:g}, got {threshold!r}; try n = {n:g}")
    return n, alpha, theta


@documented("Bound on the mistakes; infinite where nothing can be promised.")
def winnow1_disjunction(k: int, n: int, alpha: float = 2.0, threshold: float | None = None) -> float:
    """Mistakes of Winnow1 (demotion sets weights to 0): monotone disjunctions of k of n attributes in {0, 1}.

        M <= alpha k (log_alpha(theta) + 1) + n/theta,   theta >= 1/alpha

    ``threshold`` theta is n by default; with alpha = 2 that is 1 + 2k(1 + lg n). Disjunctions with negated
    attributes: use the 2n attributes x and 1 - x.

    Source: Littlestone (1988), theorem 7.

    Examples
    --------
    >>> winnow1_disjunction(k=1, n=1024)
    23.0
    """
    k = int(count("k", k, 0))
    n_, alpha, theta = _threshold_form(n, alpha, threshold)
    return alpha * _promotions(k, alpha, theta) + n_ / theta


@documented("Bound on the mistakes; infinite where nothing can be promised.")
def winnow2_disjunction(k: int, n: int, alpha: float = 2.0, threshold: float | None = None) -> float:
    """Mistakes of Winnow2 (demotion divides by alpha): monotone disjunctions of k of n attributes in {0, 1}.

        M <= (1 + alpha) k (log_alpha(theta) + 1) + alpha n / ((alpha - 1) theta),  theta >= 1/alpha

    ``threshold`` theta is n by default; with alpha = 2 that is 2 + 3k(1 + lg n). The lecture notes on
    linear learners halve on demotion, yet their lemma 6.3 gives the count for elimination
    (`winnow1_disjunction`).

    Source: Littlestone (1988); lecture notes on Winnow, theorem 2.

    Examples
    --------
    >>> round(winnow2_disjunction(k=5, n=1000), 4)
    166.4868
    """
    k = int(count("k", k, 0))
    n_, alpha, theta = _threshold_form(n, alpha, threshold)
    return (1.0 + alpha) * _promotions(k, alpha, theta) + alpha * n_ / ((alpha - 1.0) * theta)


@documented(
    "Bound on the mistakes; infinite where nothing can be promised.",
    margin="Margin delta: mu.x <= 1 - delta on negatives.",
)
def winnow2(n: int, total: float, margin: float, alpha: float, threshold: float | None = None) -> float:
    """Mistakes of Winnow2 on any target with a gap, attributes in {0, 1}.

    Conditions: some mu_i >= 0 with sum mu_i = total has mu.x >= 1 if y = 1 and mu.x <= 1 - delta if y = 0.

        u <= ((1 + log_alpha theta) total + (1 - delta) alpha n/((alpha - 1) theta)) / (1 - alpha (1 -
        delta)) M <= (1 + alpha) u + alpha n / ((alpha - 1) theta),      infinite unless alpha (1 - delta) <
        1

    u counts promotions. Proof: the total weight gives v <= alpha n/((alpha-1) theta) + alpha u demotions;
    sum mu_i log_alpha w_i >= u - (1 - delta) v, and no weight exceeds alpha theta.

    r of k attributes: total = k/r, delta = 1/r. A disjunction (delta = 1) gives `winnow2_disjunction`.

    Source: derived here, after Littlestone (1988).

    Examples
    --------
    >>> winnow2(n=1000, total=5, margin=1.0, alpha=2.0) == winnow2_disjunction(k=5, n=1000)
    True
    """
    n_, alpha, theta = _threshold_form(n, alpha, threshold)
    total = amount("total", total)
    margin = number("margin", margin)
    if margin > 1.0:
        raise ValueError(f"margin must be <= 1 (mu.x <= 1 - margin on negatives), got {margin!r}; try 1")
    slack = 1.0 - alpha * (1.0 - margin)
    if margin <= 0.0 or slack <= 0.0:
        return math.inf
    demotions = alpha * n_ / ((alpha - 1.0) * theta)
    promotions = (_promotions(total, alpha, theta) + (1.0 - margin) * demotions) / slack
    return (1.0 + alpha) * promotions + demotions


@documented("Best alpha.", margin="Margin delta: mu.x <= 1 - delta on negatives.")
def best_winnow2_alpha(n: int, total: float, margin: float, threshold: float | None = None) -> float:
    """The alpha that makes `winnow2` least.

    Source: derived here.

    Examples
    --------
    >>> alpha = best_winnow2_alpha(n=1000, total=7 / 3, margin=1 / 3)
    >>> winnow2(1000, 7 / 3, 1 / 3, alpha) < winnow2(1000, 7 / 3, 1 / 3, 1.2)
    True
    """
    margin = above("margin", margin, 0.0, 0.5)
    # alpha - 1 spans many magnitudes, hence the logarithm; a theta below 1/alpha is outside the bound
    top = math.log(1e6 if margin >= 1.0 else margin / (1.0 - margin))
    least = 1e-9 if threshold is None or threshold >= 1.0 else 1.0 / threshold - 1.0 + 1e-9
    if math.log(least) >= top:
        raise ValueError(f"threshold must be > {1.0 - margin:g} for this margin, got {threshold!r}; try {n}")

    def value(log_step: float) -> float:
        return winnow2(n, total, margin, 1.0 + math.exp(log_step), threshold)

    return 1.0 + math.exp(lowest_point(value, math.log(least), top))


@documented(
    "Bound on the mistakes; infinite where nothing can be promised.",
    margin="Margin delta: mu.x <= 1 - delta on negatives.",
)
def winnow2_printed(n: int, total: float, margin: float, threshold: float | None = None) -> float:
    """Winnow2 on any target with a gap, as Littlestone (1988) prints it for alpha = 1 + delta/2.

        8n/(delta^2 theta) + (5/delta + 14 ln(theta)/delta^2) total,   x in [0, 1]^n

    r of k with theta = n: 8r^2 + 5k + 14kr ln n. `winnow2` (attributes in {0, 1}) is about half of it.

    Source: Littlestone (1988), Learning quickly when irrelevant attributes abound.

    Examples
    --------
    >>> round(winnow2_printed(n=1000, total=7 / 3, margin=1 / 3))
    2138
    """
    n_, _, theta = _threshold_form(n, 2.0, threshold)
    total, margin = amount("total", total), number("margin", margin)
    if margin <= 0.0:
        return math.inf
    return 8.0 * n_ / (margin**2 * theta) + (5.0 / margin + 14.0 * math.log(theta) / margin**2) * total
