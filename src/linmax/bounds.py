"""Mistake bounds as functions: how many mistakes can a learner make at most?

Every function states its conditions, formula and source, and returns a float: infinity where the bound says
nothing (a margin of zero, an alpha too large for the margin). Rounding down is the caller's. Unless said
otherwise a bound counts *updates*, ties included, hence mistakes, and holds for every sequence of
instances, whoever chose it.

Symbols: z is the instance times its label, or x^label - x^rival for many classes (Mesterharm 2001); u is
the comparator, any fixed weights; the margin delta (or gamma) is what u.z should reach, and the noise is
the hinge loss

    N = sum over trials of max(0, margin - u.z),   for many classes the largest over all rivals.

Names ending in ``_printed`` are the forms as the papers print them; each says in what it differs from the
exact one. Functions beginning with ``best_`` return the parameter that makes a bound least.

The bounds of multiplicative rules rest on one inequality. Let W = sum w_i and z in [-X, X]^n; an update
with w.z <= tau W multiplies W by at most cosh(X r) + (tau/X) sinh(X r), r = ln alpha (convexity of
alpha^z), while ln W >= sum u_i ln(w_i/u_i) at all times (Jensen).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "alma",
    "alma_noisy_printed",
    "alma_printed",
    "alma_separable",
    "alma_unprojected",
    "arow",
    "average_risk",
    "average_risk_printed",
    "balanced",
    "balanced_printed",
    "best_alpha",
    "best_beta",
    "best_winnow2_alpha",
    "committee_printed",
    "divergence",
    "divergence_balanced",
    "elimination",
    "exponentiated_gradient",
    "log_growth",
    "most_restarts",
    "multiclass_perceptron",
    "multiplicative",
    "p_norm",
    "passive_aggressive",
    "perceptron",
    "perceptron_deviations",
    "recycling",
    "second_order_perceptron",
    "selection_penalty",
    "selection_risk",
    "survival_error",
    "survival_examples",
    "survival_run",
    "survival_run_printed",
    "survival_run_unknown",
    "two_phase_examples",
    "voted_risk",
    "voting",
    "weighted_majority",
    "winnow1_disjunction",
    "winnow2",
    "winnow2_disjunction",
    "winnow2_printed",
    "winnow_printed",
]

Vector = npt.NDArray[np.float64]


# -- checks ------------------------------------------------------------------------------------------------
# They differ from those of `linmax.checks` in one thing: infinity is an honest value here.


def _number(name: str, value: float) -> float:
    number = float(value)
    if math.isnan(number):
        raise ValueError(f"{name} must be a number, got nan")
    return number


def _amount(name: str, value: float) -> float:
    number = _number(name, value)
    if number < 0.0:
        raise ValueError(f"{name} must be >= 0, got {value!r}; a loss, length or count is never negative")
    return number


def _above(name: str, value: float, least: float, advice: float) -> float:
    number = _number(name, value)
    if number <= least:
        raise ValueError(f"{name} must be > {least:g}, got {value!r}; try {advice:g}")
    return number


def _fraction(name: str, value: float) -> float:
    number = _number(name, value)
    if not 0.0 < number < 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}; try 0.05")
    return number


def _count(name: str, value: float, least: int) -> float:
    number = _number(name, value)
    if number < least:
        raise ValueError(f"{name} must be >= {least}, got {value!r}; try {least}")
    return number


def _comparator(u: npt.ArrayLike, signed: bool) -> Vector:
    weights = np.asarray(u, dtype=float)
    if weights.ndim != 1 or weights.size == 0:
        raise ValueError(f"u must be one row of weights, got shape {weights.shape}; give a list of numbers")
    if not np.all(np.isfinite(weights)):
        raise ValueError("u must be finite, got nan or infinity; leave out what is unknown")
    if not signed and weights.min() < 0.0:
        raise ValueError(f"u must be >= 0, got {weights.min():g}; use the balanced bound for weights of both signs")
    total = float(np.abs(weights).sum())
    if abs(total - 1.0) > 1e-9:
        what = "sum |u_i|" if signed else "sum u_i"
        raise ValueError(f"u must have {what} = 1, got {total:g}; divide u and the margin by it")
    return weights


def _possible(margin: float, largest: float, noise: float) -> float:
    if noise == 0.0 and margin > largest * (1.0 + 1e-9):
        raise ValueError(
            f"margin must be <= {largest:g}, the most that u.z can be, got {margin:g}; give largest=max |z_i|"
        )
    return margin


# -- additive rules ----------------------------------------------------------------------------------------


def _quadratic(rho: float, relative_noise: float) -> float:
    """The largest M with M - N/gamma <= rho sqrt(M)."""
    return relative_noise + rho * rho / 2.0 + rho * math.sqrt(relative_noise + rho * rho / 4.0)


def perceptron(radius: float, norm: float, margin: float, noise: float = 0.0, threshold: float = 0.0) -> float:
    """Updates of the Perceptron (w = 0 at first; if w.z <= threshold then w += z).

    Conditions: |z|_2 <= radius on every update; u has |u|_2 = norm and hinge loss ``noise`` at ``margin``.

        M <= N/gamma + rho^2/2 + rho sqrt(N/gamma + rho^2/4),   rho^2 = (R^2 + 2 threshold) |u|^2 / gamma^2

    Proof: M gamma - N <= u.w <= |u| |w| <= |u| sqrt(M (R^2 + 2 threshold)); solve for sqrt(M). Without
    noise and threshold this is R^2 |u|^2/gamma^2.

    Source: Block, Novikoff (1962) without noise; Mesterharm (2001) 4.1. The statement in the lecture notes
    on linear learners (theorem 5.1) prints R/gamma; its own proof gives the square.

    Examples
    --------
    >>> perceptron(radius=3.0, norm=1.0, margin=0.5)
    36.0
    >>> perceptron(radius=3.0, norm=1.0, margin=0.0)
    inf
    """
    radius, norm = _amount("radius", radius), _amount("norm", norm)
    margin, noise = _number("margin", margin), _amount("noise", noise)
    threshold = _amount("threshold", threshold)
    if margin <= 0.0:
        return math.inf
    return _quadratic(math.sqrt(radius * radius + 2.0 * threshold) * norm / margin, noise / margin)


def perceptron_deviations(radius: float, norm: float, margin: float, deviation: float) -> float:
    """Updates of the Perceptron, from squared deviations.

    Conditions as in `perceptron`; deviation = sqrt(sum over updates of max(0, gamma - u.z)^2).

        M <= ((R |u| + deviation) / gamma)^2

    Proof: the sum of the hinge losses is at most deviation * sqrt(M), so M gamma - deviation sqrt(M) <= |u|
    R sqrt(M).

    Source: Freund and Schapire (1999), Large margin classification using the Perceptron algorithm, theorem
    2.

    Examples
    --------
    >>> perceptron_deviations(radius=1.0, norm=1.0, margin=0.5, deviation=1.0)
    16.0
    """
    radius, norm = _amount("radius", radius), _amount("norm", norm)
    margin, deviation = _number("margin", margin), _amount("deviation", deviation)
    return math.inf if margin <= 0.0 else ((radius * norm + deviation) / margin) ** 2


def multiclass_perceptron(radius: float, margin: float) -> float:
    """Violations of the multi-class Perceptron: R^2/gamma^2.

    Conditions: every point p has |p|_2 <= R; some weight vectors w_1..w_k give every point p of label l,
    for all z != l, (w_l - w_z).p / sqrt(2 sum_i |w_i|^2) >= gamma.

    It is `perceptron` for the sub-experts made of attributes: there |z|^2 = 2|p|^2 and the margin for |u| =
    1 is sqrt(2) gamma.

    Source: lecture slides on the multi-class Perceptron.

    Examples
    --------
    >>> multiclass_perceptron(radius=2.0, margin=0.25)
    64.0
    """
    return perceptron(radius, 1.0, margin)


def p_norm(p: float, size: float, norm: float, margin: float, noise: float = 0.0) -> float:
    """Updates of the p-norm Perceptron, p >= 2, 1/p + 1/q = 1.

    Conditions: |z|_p <= size on every update; |u|_q = norm; hinge loss ``noise`` at ``margin``.

        M <= N/gamma + rho^2/2 + rho sqrt(N/gamma + rho^2/4),   rho^2 = (p - 1) size^2 norm^2 / gamma^2

    p = 2 is the Perceptron; p = 2 ln n behaves like Winnow without knowing the margin:
    (p - 1) size^2 norm^2 <= (2 ln n - 1) e max|z_i|^2 |u|_1^2.

    Source: Grove, Littlestone and Schuurmans (2001); Gentile (2003), The robustness of the p-norm
    algorithms.

    Examples
    --------
    >>> p_norm(p=2, size=3.0, norm=1.0, margin=0.5) == perceptron(3.0, 1.0, 0.5)
    True
    """
    p = _number("p", p)
    if p < 2.0:
        raise ValueError(f"p must be >= 2, got {p!r}; try 2")
    size, norm = _amount("size", size), _amount("norm", norm)
    margin, noise = _number("margin", margin), _amount("noise", noise)
    if margin <= 0.0:
        return math.inf
    return _quadratic(math.sqrt(p - 1.0) * size * norm / margin, noise / margin)


# -- Winnow with a threshold -------------------------------------------------------------------------------


def _promotions(k: float, alpha: float, threshold: float) -> float:
    return k * (math.log(threshold) / math.log(alpha) + 1.0)


def _threshold_form(n: float, alpha: float, threshold: float | None) -> tuple[float, float, float]:
    n = _count("n", n, 1)
    alpha = _above("alpha", alpha, 1.0, 2.0)
    theta = n if threshold is None else _above("threshold", threshold, 0.0, n)
    if theta * alpha < 1.0:
        raise ValueError(f"threshold must be >= 1/alpha = {1 / alpha:g}, got {threshold!r}; try n = {n:g}")
    return n, alpha, theta


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
    k = int(_count("k", k, 0))
    n_, alpha, theta = _threshold_form(n, alpha, threshold)
    return alpha * _promotions(k, alpha, theta) + n_ / theta


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
    k = int(_count("k", k, 0))
    n_, alpha, theta = _threshold_form(n, alpha, threshold)
    return (1.0 + alpha) * _promotions(k, alpha, theta) + alpha * n_ / ((alpha - 1.0) * theta)


def winnow2(n: int, total: float, margin: float, alpha: float, threshold: float | None = None) -> float:
    """Mistakes of Winnow2 on any target with a gap, attributes in {0, 1}.

    Conditions: some mu_i >= 0 with sum mu_i = total has mu.x >= 1 if y = 1 and mu.x <= 1 - delta if y = 0.

        u <= ((1 + log_alpha theta) total + (1 - delta) alpha n/((alpha - 1) theta)) / (1 - alpha (1 -
        delta)) M <= (1 + alpha) u + alpha n / ((alpha - 1) theta),      infinite unless alpha (1 - delta) <
        1

    u counts promotions. Proof: the total weight gives v <= alpha n/((alpha-1) theta) + alpha u demotions;
    sum mu_i log_alpha w_i >= u - (1 - delta) v, and no weight exceeds alpha theta.

    r of k attributes: total = k/r, delta = 1/r. A disjunction (delta = 1) gives `winnow2_disjunction`.

    Examples
    --------
    >>> winnow2(n=1000, total=5, margin=1.0, alpha=2.0) == winnow2_disjunction(k=5, n=1000)
    True
    """
    n_, alpha, theta = _threshold_form(n, alpha, threshold)
    total = _amount("total", total)
    margin = _number("margin", margin)
    if margin > 1.0:
        raise ValueError(f"margin must be <= 1 (mu.x <= 1 - margin on negatives), got {margin!r}; try 1")
    slack = 1.0 - alpha * (1.0 - margin)
    if margin <= 0.0 or slack <= 0.0:
        return math.inf
    demotions = alpha * n_ / ((alpha - 1.0) * theta)
    promotions = (_promotions(total, alpha, theta) + (1.0 - margin) * demotions) / slack
    return (1.0 + alpha) * promotions + demotions


def best_winnow2_alpha(n: int, total: float, margin: float, threshold: float | None = None) -> float:
    """The alpha that makes `winnow2` least.

    Examples
    --------
    >>> alpha = best_winnow2_alpha(n=1000, total=7 / 3, margin=1 / 3)
    >>> winnow2(1000, 7 / 3, 1 / 3, alpha) < winnow2(1000, 7 / 3, 1 / 3, 1.2)
    True
    """
    margin = _above("margin", margin, 0.0, 0.5)
    # alpha - 1 spans many magnitudes, hence the logarithm; a theta below 1/alpha is outside the bound
    top = math.log(1e6 if margin >= 1.0 else margin / (1.0 - margin))
    least = 1e-9 if threshold is None or threshold >= 1.0 else 1.0 / threshold - 1.0 + 1e-9
    if math.log(least) >= top:
        raise ValueError(f"threshold must be > {1.0 - margin:g} for this margin, got {threshold!r}; try {n}")

    def value(log_step: float) -> float:
        return winnow2(n, total, margin, 1.0 + math.exp(log_step), threshold)

    return 1.0 + math.exp(_least(value, math.log(least), top))


def winnow2_printed(n: int, total: float, margin: float, threshold: float | None = None) -> float:
    """Winnow2 on any target with a gap, as Littlestone (1988) prints it for alpha = 1 + delta/2.

        8n/(delta^2 theta) + (5/delta + 14 ln(theta)/delta^2) total,   x in [0, 1]^n

    r of k with theta = n: 8r^2 + 5k + 14kr ln n. `winnow2` (attributes in {0, 1}) is about half of it.

    Examples
    --------
    >>> round(winnow2_printed(n=1000, total=7 / 3, margin=1 / 3))
    2138
    """
    n_, _, theta = _threshold_form(n, 2.0, threshold)
    total, margin = _amount("total", total), _number("margin", margin)
    if margin <= 0.0:
        return math.inf
    return 8.0 * n_ / (margin**2 * theta) + (5.0 / margin + 14.0 * math.log(theta) / margin**2) * total


# -- multiplicative rules at threshold zero ----------------------------------------------------------------


def divergence(u: npt.ArrayLike, start: npt.ArrayLike | None = None) -> float:
    """sum u_i ln(u_i/w_i) + ln sum w_i: what a multiplicative rule with first weights w must learn.

    Conditions: u >= 0, sum u_i = 1; w = ``start`` is 1 by default. At most ln n when all w_i are equal.

    Examples
    --------
    >>> divergence([0.25, 0.25, 0.25, 0.25])
    0.0
    >>> divergence([1, 0, 0, 0]) == math.log(4)
    True
    """
    weights = _comparator(u, signed=False)
    first = np.ones(weights.size) if start is None else np.broadcast_to(np.asarray(start, dtype=float), weights.shape)
    if not (np.all(np.isfinite(first)) and first.min() > 0.0):
        raise ValueError(f"start must be > 0, got {first.min():g}; try 1")
    used = weights > 0.0
    entropy = float((weights[used] * np.log(weights[used] / first[used])).sum())
    return max(0.0, entropy + math.log(float(first.sum())))


def divergence_balanced(u: npt.ArrayLike) -> float:
    """ln(2n) + sum |u_i| ln |u_i|, sum |u_i| = 1: the `divergence` over the 2n attributes x and -x.

    Examples
    --------
    >>> divergence_balanced([0.5, -0.5]) == math.log(2)
    True
    """
    weights = np.abs(_comparator(u, signed=True))
    used = weights > 0.0
    return math.log(2.0 * weights.size) + float((weights[used] * np.log(weights[used])).sum())


def log_growth(rate: float, thickness: float, largest: float) -> float:
    """ln(cosh(X r) + (tau/X) sinh(X r)): what one update can add to the logarithm of the total weight.

    r = ``rate`` = ln alpha, X = ``largest`` >= |z_i|, tau = ``thickness``.

    Examples
    --------
    >>> log_growth(0.0, 0.0, 1.0)
    0.0
    """
    x, tilt = largest * rate, thickness / largest
    if x < 20.0:
        return math.log1p(2.0 * math.sinh(x / 2.0) ** 2 + tilt * math.sinh(x))  # keeps its digits for small x
    return x + math.log(((1.0 + tilt) + (1.0 - tilt) * math.exp(-2.0 * x)) / 2.0)


def _multiplicative(
    learned: float, margin: float, alpha: float, noise: float, thickness: float, largest: float
) -> float:
    alpha = _above("alpha", alpha, 1.0, 1.1)
    margin, noise = _number("margin", margin), _amount("noise", noise)
    thickness, largest = _amount("thickness", thickness), _above("largest", largest, 0.0, 1.0)
    margin = _possible(margin, largest, noise)
    if margin <= thickness:
        return math.inf
    rate = math.log(alpha)
    gain = margin * rate - log_growth(rate, thickness, largest)
    return math.inf if gain <= 0.0 else (learned + noise * rate) / gain


def multiplicative(
    u: npt.ArrayLike,
    margin: float,
    alpha: float,
    noise: float = 0.0,
    start: npt.ArrayLike | None = None,
    thickness: float = 0.0,
    largest: float = 1.0,
) -> float:
    """Updates of Winnow with positive weights and threshold zero (WMA for linear thresholds, Committee).

    Conditions: the rule is "if w.z <= tau sum(w) then w_i *= alpha^(z_i)" from weights ``start``; |z_i| <=
    largest = X; u >= 0 with sum u_i = 1 and hinge loss ``noise`` at ``margin``; tau = thickness.

        M <= (RE + N ln alpha) / (delta ln alpha - ln(cosh(X ln alpha) + (tau/X) sinh(X ln alpha)))

    with RE = `divergence` (u, start). For X = 1, tau = 0 the last term is ln((alpha + 1/alpha)/2). Infinite
    where the denominator is not positive: alpha too large for the margin.

    alpha = sqrt((1 + delta)/(1 - delta)) is best without noise and gives at most 2 RE/delta^2; `best_alpha`
    finds the best with noise. Greedy adversaries come within 5 per cent of this bound.

    Source: derived here by Littlestone's potential argument; valid for every alpha.

    Examples
    --------
    >>> target = [1 / 3, 1 / 3, 1 / 3] + [0] * 1997
    >>> round(multiplicative(target, margin=1 / 3, alpha=2**0.5), 1)
    114.8
    """
    return _multiplicative(divergence(u, start), margin, alpha, noise, thickness, largest)


def balanced(
    u: npt.ArrayLike,
    margin: float,
    alpha: float,
    noise: float = 0.0,
    thickness: float = 0.0,
    largest: float = 1.0,
) -> float:
    """Updates of Balanced Winnow: `multiplicative` on the 2n attributes x and -x.

    Conditions: sum |u_i| = 1, |z_i| <= largest, hinge loss ``noise`` at ``margin``; thick form: the rule
    updates when w.z <= tau sum(w+ + w-). For X = largest = 1 and tau = thickness = 0

        M <= (ln(2n) + sum |u_i| ln |u_i| + N ln alpha) / (delta ln alpha - ln((alpha + 1/alpha)/2))

    Source: derived here; the exact form behind `balanced_printed`.

    Examples
    --------
    A disjunction of 5 among 99 attributes and a constant, margin 1/11:

    >>> target = [2 / 11] * 5 + [0] * 94 + [-1 / 11]
    >>> round(balanced(target, margin=1 / 11, alpha=12 / 11)), round(balanced_printed(target, margin=1 / 11))
    (855, 1367)
    """
    return _multiplicative(divergence_balanced(u), margin, alpha, noise, thickness, largest)


def best_alpha(
    learned: float, margin: float, noise: float = 0.0, thickness: float = 0.0, largest: float = 1.0
) -> float:
    """The alpha that makes `multiplicative` or `balanced` least.

    ``learned`` is the divergence of the comparator, the rest as there.
    Without noise: alpha = exp((atanh(delta/X) - atanh(tau/X))/X), that is sqrt((1 + delta)/(1 - delta)) for
    X = 1, tau = 0. With noise it is smaller; the bound is a convex function over a concave one in ln alpha,
    so its only stationary point is the minimum. Kept between 1 + 1e-6 and about 1e6^(1/X), where the bound
    has reached its limit to six digits.

    Examples
    --------
    >>> round(best_alpha(1.0, margin=0.5), 6) == round(3**0.5, 6)
    True
    >>> best_alpha(1.0, margin=0.5, noise=10) < 3**0.5
    True
    """
    learned, noise = _amount("learned", learned), _amount("noise", noise)
    thickness, largest = _amount("thickness", thickness), _above("largest", largest, 0.0, 1.0)
    margin = _possible(_number("margin", margin), largest, noise)
    if margin <= thickness:
        raise ValueError(f"margin must be > thickness = {thickness:g} for a bound to exist, got {margin!r}")
    tilt = math.atanh(thickness / largest)
    top = (math.atanh(min(margin / largest, 1.0 - 1e-12)) - tilt) / largest
    return max(1.0 + 1e-6, math.exp(_best_rate(learned, margin, noise, thickness, largest, top)))


def _best_rate(learned: float, margin: float, noise: float, thickness: float, largest: float, top: float) -> float:
    if noise == 0.0 or math.isinf(noise):
        return top if noise == 0.0 else 0.0
    tilt = math.atanh(thickness / largest)

    def slope(rate: float) -> tuple[float, float]:
        """A number with the sign of the bound's derivative, which increases with the rate, and how fast it does."""
        pull = math.tanh(largest * rate + tilt)
        gain = margin * rate - log_growth(rate, thickness, largest)
        cost = learned + noise * rate
        return noise * gain - cost * (margin - largest * pull), cost * largest**2 * (1.0 - pull * pull)

    low, high, rate = 0.0, top, top
    for _ in range(100):  # Newton's steps, halving the bracket where one would leave it
        value, increase = slope(rate)
        low, high = (rate, high) if value < 0.0 else (low, rate)
        following = rate - value / increase if increase > 0.0 else low
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - rate) <= 1e-14 * rate:
            break
        rate = following
    return rate


def committee_printed(n: int, margin: float) -> float:
    """Mesterharm (2001) 4.2 on WMA for linear thresholds: 2 ln(n)/delta^2 for alpha = (1 - delta)^(-1/2).

    **False for that alpha**: with n = 20000, three relevant sub-experts and delta = 1/3 an adversary forces
    183 mistakes, and 2 ln(n)/delta^2 = 178.3. It is true for alpha = sqrt((1 + delta)/(1 - delta)); for the
    printed alpha the factor is not 2 but up to 2.67 (`multiplicative` gives it exactly).

    Examples
    --------
    >>> round(committee_printed(20000, 1 / 3), 1)
    178.3
    """
    n_, margin = _count("n", n, 1), _number("margin", margin)
    return math.inf if margin <= 0.0 else 2.0 * math.log(n_) / margin**2


def winnow_printed(n: int, norm: float, largest: float, margin: float) -> float:
    """2 ln(2n) |u|_1^2 max|x|_inf^2 / gamma^2, theorem 6.4 of the lecture notes on linear learners.

    Right for the tuned rate, r = atanh(d)/X with d = gamma/(|u|_1 X), and weights of both signs; the notes
    fix r = 1, for which nothing holds in general. `balanced` with `best_alpha` is at most this.

    Examples
    --------
    >>> round(winnow_printed(n=100, norm=1.0, largest=1.0, margin=0.5), 2)
    42.39
    """
    n_, margin = _count("n", n, 1), _number("margin", margin)
    size = _amount("norm", norm) * _amount("largest", largest)
    return math.inf if margin <= 0.0 else 2.0 * math.log(2.0 * n_) * size**2 / margin**2


def balanced_printed(u: npt.ArrayLike, margin: float, noise: float = 0.0) -> float:
    """Balanced Winnow as Mesterharm and Hsu print it, their (1), "for alpha = 1 + delta".

        3.2 (ln(2n) + sum |u_i| ln |u_i|)/delta^2 + 1.35 N/delta

    The constants hold for alpha = 1 + delta/2 (there `balanced` gives at most 3.08 and 1.34, for every
    delta <= 1). For alpha = 1 + delta the first constant is at most 2.13, but the noise is multiplied by
    1.47 to 2, not by 1.35.

    Examples
    --------
    >>> round(balanced_printed([2 / 11] * 5 + [0] * 94 + [-1 / 11], margin=1 / 11))
    1367
    """
    learned, margin = divergence_balanced(u), _number("margin", margin)
    noise = _amount("noise", noise)
    if margin <= 0.0:
        return math.inf
    return 3.2 * learned / _possible(margin, 1.0, 0.0) ** 2 + 1.35 * noise / margin


# -- ALMA --------------------------------------------------------------------------------------------------


def _alma(p: float, alpha: float, B: float | None, C: float) -> tuple[float, float, float, float]:
    p = _number("p", p)
    if p < 2.0:
        raise ValueError(f"p must be >= 2, got {p!r}; try 2")
    alpha = _number("alpha", alpha)
    if not 0.0 < alpha <= 1.0:
        raise ValueError(f"alpha must be in (0, 1], got {alpha!r}; try 0.9")
    return p, alpha, 1.0 / alpha if B is None else _above("B", B, 0.0, 1.0), _above("C", C, 0.0, 1.414)


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
    margin = _number("margin", margin)
    if margin <= 0.0:
        return math.inf
    width = max(1.0, C * C + 2.0 * (1.0 - alpha) * B * C)
    return (p - 1.0) * (width + 1.0) ** 2 / (4.0 * C * C * margin**2) + width


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
    margin, noise = _number("margin", margin), _amount("noise", noise)
    if margin <= 0.0:
        return math.inf
    rho = math.sqrt(p - 1.0) * (2.0 / C + C + 2.0 * (1.0 - alpha) * B) / margin
    value = _quadratic(rho, noise / margin)
    return min(value, alma_separable(p, margin, alpha, B, C)) if noise == 0.0 else value


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
    margin = _number("margin", margin)
    if margin <= 0.0:
        return math.inf
    bound = 1.0
    for _ in range(1000):  # M -> the right side of M is increasing and concave: iterating from below converges
        following = (1.0 + math.sqrt((p - 1.0) * (1.0 + math.log(bound))) / (2.0 * margin)) ** 2 - 1.0
        if following <= bound * (1.0 + 1e-12):
            break
        bound = following
    return max(1.0, bound)


def alma_printed(p: float, margin: float, alpha: float) -> float:
    """ALMA_p(alpha; sqrt(8)/alpha, sqrt(2)) on separable instances, Gentile (2001) theorem 3(1).

        (2(p - 1)/gamma^2)(2/alpha - 1)^2 + 8/alpha - 4

    `alma_separable` has A + 1 and A where this has A + 2, A = 8/alpha - 6, and so is smaller.

    Examples
    --------
    >>> alma_printed(2, 0.5, alpha=1.0), round(alma_separable(2, 0.5, alpha=1.0, B=8**0.5), 9)
    (12.0, 6.5)
    """
    p, alpha, _, _ = _alma(p, alpha, None, 1.0)
    margin = _number("margin", margin)
    if margin <= 0.0:
        return math.inf
    return 2.0 * (p - 1.0) / margin**2 * (2.0 / alpha - 1.0) ** 2 + 8.0 / alpha - 4.0


def alma_noisy_printed(p: float, margin: float, noise: float, C: float = 1.0) -> float:
    """ALMA_p on any sequence, the form often quoted as Gentile (2001) theorem 3(2).

        M <= N/gamma + rho^2/2 + sqrt(rho^4/4 + rho^2 N/gamma + rho^2),   rho = sqrt(p - 1)/(C gamma)

    for C^2 + 2(1 - alpha) B C = 1.

    **False in this form** (the original text was not at hand). With p = 2, C = 1, gamma = .1, let the
    first instance be -u (N = 1.1) and every later one orthogonal to w with u.z = gamma: 130 updates, and
    the formula gives 121.8. The step that fails: theta is divided by less than sqrt(1 + 1/k) on a noisy
    trial, so that old noise does not fade at the rate assumed. Without noise it holds; with noise use
    `alma`.

    Examples
    --------
    >>> round(alma_noisy_printed(p=2, margin=0.1, noise=1.1), 1)
    121.8
    """
    p, _, _, C = _alma(p, 1.0, None, C)
    margin, noise = _number("margin", margin), _amount("noise", noise)
    if margin <= 0.0:
        return math.inf
    rho2, relative = (p - 1.0) / (C * margin) ** 2, noise / margin
    return relative + rho2 / 2.0 + math.sqrt(rho2**2 / 4.0 + rho2 * relative + rho2)


# -- margin and second-order rules -------------------------------------------------------------------------


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
    radius, norm, hinge = _amount("radius", radius), _amount("norm", norm), _amount("hinge", hinge)
    C = _above("C", C, 0.0, 1.0)
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
    r, hinge = _above("r", r, 0.0, 1.0), _amount("hinge", hinge)
    extra = _count("margin_updates", margin_updates, 0)
    logdet = float(np.log1p(eigenvalues / r).sum())
    return math.sqrt(r * square + energy) * math.sqrt(logdet + extra) + hinge - extra


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
    margin, noise, a = _number("margin", margin), _amount("noise", noise), _above("a", a, 0.0, 1.0)
    if margin <= 0.0:
        return math.inf
    return noise / margin + math.sqrt((a * square + energy) * float(np.log1p(eigenvalues / a).sum())) / margin


# -- other learners ----------------------------------------------------------------------------------------


def elimination(n: int, negated: bool = False) -> float:
    """Mistakes of the elimination algorithm on disjunctions: n; n + 1 with 2n literals (the first removes n).

    Examples
    --------
    >>> elimination(10), elimination(10, negated=True)
    (10.0, 11.0)
    """
    return _count("n", n, 1) + (1.0 if negated else 0.0)


def exponentiated_gradient(learned: float, loss: float, span: float, c: float) -> float:
    """Total square loss of EG with rate c/span^2 on the simplex.

    Conditions: the attributes of every instance lie in an interval of length ``span``; ``loss`` = sum (u.x
    - y)^2 of a comparator on the simplex; ``learned`` its `divergence`; 0 < c < 2.

        sum (yhat - y)^2 <= 2/(2 - c) * loss + span^2/c * learned

    EG+- with total weight U is EG on [Ux, -Ux]: span = 2 U max|x_i|.

    Source: Kivinen and Warmuth (1997), theorem 5.10 in another parametrisation.

    Examples
    --------
    >>> exponentiated_gradient(learned=2.0, loss=3.0, span=1.0, c=1.0)
    8.0
    """
    c = _number("c", c)
    if not 0.0 < c < 2.0:
        raise ValueError(f"c must lie between 0 and 2, got {c!r}; try 1")
    learned, loss, span = _amount("learned", learned), _amount("loss", loss), _amount("span", span)
    return 2.0 / (2.0 - c) * loss + span**2 / c * learned


def weighted_majority(members: int, best: float, beta: float = 0.5) -> float:
    """Mistakes of the weighted majority of whole algorithms, each weighted by beta^(its mistakes).

        M <= (ln v + m ln(1/beta)) / ln(2/(1 + beta)),   v = members, m = mistakes of the best

    Holds for any number of classes: on a mistake the label had at most half of the weight.

    Source: Littlestone and Warmuth (1994).

    Examples
    --------
    >>> round(weighted_majority(members=62, best=100, beta=0.9), 1)
    285.9
    """
    members_, best, beta = _count("members", members, 1), _amount("best", best), _fraction("beta", beta)
    return (math.log(members_) - best * math.log(beta)) / math.log(2.0 / (1.0 + beta))


def best_beta(members: int, best: float) -> float:
    """The beta that makes `weighted_majority` least when the best member makes ``best`` mistakes.

    Examples
    --------
    >>> best_beta(62, 100) > best_beta(62, 10)
    True
    """
    _count("members", members, 1), _amount("best", best)
    return _least(lambda beta: weighted_majority(members, best, beta), 1e-9, 1.0 - 1e-9)


def recycling(bound: Callable[..., float], uses: int, *, noise: float = 0.0, **known: Any) -> float:
    """All updates of a recycling learner, on stored instances too: the base bound with noise ``uses`` * N.

    Conditions: an instance may cause at most ``uses`` updates in all; ``bound`` is the base rule's,
    ``known`` the rest of its arguments.

    Source: Mesterharm and Hsu; the instances that cause updates form a sequence in which each occurs
    ``uses`` times at most.

    Examples
    --------
    >>> recycling(perceptron, 5, noise=0.2, radius=1, norm=1, margin=1) == perceptron(1, 1, 1, noise=1)
    True
    """
    return float(bound(noise=_count("uses", uses, 1) * _amount("noise", noise), **known))


def voting(mistakes: float, restarts: int) -> float:
    """Mistakes of voting over hypotheses that falls back on its basic algorithm: 2 M + restarts + 1.

    Conditions: the vote is followed while it has made no more mistakes than the basic algorithm since the
    last restart, the basic algorithm otherwise; M is what the basic algorithm makes.

    Proof: between restarts, mistakes made while following the vote number at most one more than those of
    the basic algorithm.

    Examples
    --------
    >>> voting(mistakes=50, restarts=2)
    103.0
    """
    return 2.0 * _amount("mistakes", mistakes) + _count("restarts", restarts, 0) + 1.0


def most_restarts(trials: int, wait: int) -> int:
    """How often voting can restart when the wait doubles each time: floor(lg(trials/wait + 1)).

    Examples
    --------
    >>> most_restarts(trials=5000, wait=100)
    5
    """
    trials_, wait_ = int(_count("trials", trials, 0)), int(_count("wait", wait, 1))
    return (trials_ // wait_ + 1).bit_length() - 1


# -- from on-line to batch ---------------------------------------------------------------------------------


def survival_run(mistakes: int, error: float, failure: float) -> int:
    """How many instances in a row a hypothesis must get right: ceil((1/eps) ln((M + 1)/delta)).

    Conditions: a learner that changes only on mistakes and makes at most M; the first hypothesis with such
    a run has error at most eps = ``error`` with probability 1 - delta, delta = ``failure``.

    Proof: a hypothesis of larger error has such a run with probability below (1 - eps)^s <= delta/(M + 1),
    and there are M + 1 hypotheses.

    Examples
    --------
    >>> survival_run(10, 0.1, 0.05), survival_run_printed(0.1, 0.05)
    (54, 30)
    """
    mistakes_ = _count("mistakes", mistakes, 0)
    return math.ceil(math.log((mistakes_ + 1.0) / _fraction("failure", failure)) / _fraction("error", error))


def survival_examples(mistakes: int, error: float, failure: float) -> int:
    """How many instances `survival_run` needs at most: (M + 1) runs.

    Examples
    --------
    >>> survival_examples(10, 0.1, 0.05)
    594
    """
    return (int(mistakes) + 1) * survival_run(mistakes, error, failure)


def survival_run_unknown(hypothesis: int, error: float, failure: float) -> int:
    """`survival_run` without knowing M: ceil((1/eps) ln(i(i + 1)/delta)) for the i-th hypothesis, i >= 1.

    Examples
    --------
    >>> [survival_run_unknown(i, 0.1, 0.05) for i in (1, 2, 3)]
    [37, 48, 55]
    """
    i = _count("hypothesis", hypothesis, 1)
    return math.ceil(math.log(i * (i + 1.0) / _fraction("failure", failure)) / _fraction("error", error))


def survival_run_printed(error: float, failure: float) -> int:
    """ceil((1/eps) ln(1/delta)), as theorem 9.1 of the lecture notes on linear learners prints it.

    It bounds the risk that *one given* hypothesis deceives; the algorithm tries up to M + 1
    (`survival_run`). The notes also print M runs in all where M + 1 may be needed.
    """
    return math.ceil(math.log(1.0 / _fraction("failure", failure)) / _fraction("error", error))


def survival_error(run: int, failure: float, mistakes: int | None = None, hypothesis: int = 1) -> float:
    """The error that a run of correct predictions guarantees, for all hypotheses at once: 1 - d^(1/run).

    d = delta/(M + 1) when at most M = ``mistakes`` can be made, else delta/(i(i + 1)) for the i-th
    ``hypothesis``. Proof: a hypothesis of error e has a run of s or more with probability (1 - e)^s.

    Examples
    --------
    >>> survival_error(54, 0.05, mistakes=10) < 0.1
    True
    >>> survival_error(0, 0.05, mistakes=10)
    1.0
    """
    run_, failure = _count("run", run, 0), _fraction("failure", failure)
    if run_ == 0.0:
        return 1.0
    i = _count("hypothesis", hypothesis, 1)
    share = failure / (i * (i + 1.0)) if mistakes is None else failure / (_count("mistakes", mistakes, 0) + 1.0)
    return -math.expm1(math.log(share) / run_)


def two_phase_examples(mistakes: int, error: float, failure: float) -> tuple[int, int]:
    """Instances to learn and to test with in the two-phase conversion.

        m1 = ceil(max(4M/eps, (16/eps) ln(2/delta))),   m2 = ceil((32/eps) ln(2(M + 2)/delta))

    Run the learner over m1 instances and keep every hypothesis; with probability 1 - delta/2 one has error
    <= eps/2. The one with the fewest errors on m2 fresh instances has error <= eps with probability 1 -
    delta.

    Proof: Chernoff's bounds; if all had larger error, m1 trials would make more than M mistakes.

    Source: after Littlestone (1989), who removes the ln M of the second phase.

    Examples
    --------
    >>> two_phase_examples(10, 0.1, 0.05)
    (591, 1976)
    """
    mistakes_, error, failure = (
        _count("mistakes", mistakes, 0),
        _fraction("error", error),
        _fraction("failure", failure),
    )
    learn = math.ceil(max(4.0 * mistakes_ / error, 16.0 / error * math.log(2.0 / failure)))
    return learn, math.ceil(32.0 / error * math.log(2.0 * (mistakes_ + 2.0) / failure))


def average_risk(loss: float, trials: int, failure: float) -> float:
    """The mean risk of the hypotheses H_0..H_(n-1) used in n trials: M_n + sqrt(ln(1/delta) / (2n)).

    Conditions: independent instances, losses in [0, 1], M_n = ``loss`` their mean on-line; with probability
    1 - delta. For a convex loss the average hypothesis has no larger risk; for mistakes there is no such
    statement about averaged weights, but a hypothesis drawn at random has this risk in the mean.

    Proof: the difference between risk and loss of a trial lies in an interval of length 1; Azuma-Hoeffding.

    Source: Cesa-Bianchi, Conconi and Gentile (2004), proposition 1, where the constant is four times
    larger.

    Examples
    --------
    >>> round(average_risk(0.1, 1000, 0.05), 4), round(average_risk_printed(0.1, 1000, 0.05), 4)
    (0.1387, 0.1774)
    """
    return min(1.0, _amount("loss", loss) + math.sqrt(_deviation(trials, failure)))


def average_risk_printed(loss: float, trials: int, failure: float) -> float:
    """`average_risk` as printed: M_n + sqrt((2/n) ln(1/delta)); true, but twice as far from M_n as needed."""
    return min(1.0, _amount("loss", loss) + math.sqrt(4.0 * _deviation(trials, failure)))


def _deviation(trials: int, failure: float) -> float:
    return math.log(1.0 / _fraction("failure", failure)) / (2.0 * _count("trials", trials, 1))


def selection_penalty(trials: int, tested: int, failure: float) -> float:
    """Added to the error of H_t on the n - t instances after it: sqrt(ln(n(n + 1)/delta) / (2(n - t))).

    The hypothesis with the smallest sum is selected. All n sums bound their risks at once with probability
    1 - delta/(n + 1).

    Source: Cesa-Bianchi, Conconi and Gentile (2004), section III.

    Examples
    --------
    >>> round(selection_penalty(1000, 900, 0.05), 4)
    0.0966
    """
    n, tested_ = _count("trials", trials, 1), _count("tested", tested, 0)
    if tested_ == 0.0:
        return math.inf
    return math.sqrt(math.log(n * (n + 1.0) / _fraction("failure", failure)) / (2.0 * tested_))


def selection_risk(loss: float, trials: int, failure: float) -> float:
    """The risk of the selected hypothesis: M_n + 6 sqrt(ln(2(n + 1)/delta) / n) with probability 1 - delta.

    Source: Cesa-Bianchi, Conconi and Gentile (2004), theorem 4; quoted, not derived here. The sum that was
    minimised, risk on the instances after it plus `selection_penalty`, is a bound of its own and usually
    far smaller.

    Examples
    --------
    >>> round(selection_risk(0.1, 100000, 0.05), 3)
    0.174
    """
    n = _count("trials", trials, 1)
    return min(
        1.0,
        _amount("loss", loss) + 6.0 * math.sqrt(math.log(2.0 * (n + 1.0) / _fraction("failure", failure)) / n),
    )


def voted_risk(trials: int, expected_bound: float) -> float:
    """Expected error of the voted Perceptron after n instances: 2/(n + 1) times its expected mistake bound.

    Conditions: independent instances; ``expected_bound`` = E[inf over u, gamma of `perceptron_deviations`]
    for n + 1 of them. It is the voted hypothesis that has the guarantee; averaged weights have none.

    Source: Freund and Schapire (1999), corollary 1.

    Examples
    --------
    >>> voted_risk(trials=999, expected_bound=50.0)
    0.1
    """
    return min(1.0, 2.0 * _amount("expected_bound", expected_bound) / (_count("trials", trials, 1) + 1.0))


def _least(value: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one valley is least: the best of a grid, then golden section around it."""
    grid = np.linspace(low, high, 201)[1:-1]
    values = [value(float(x)) for x in grid]
    at = int(np.argmin(values))
    a = float(grid[at - 1]) if at > 0 else low
    b = float(grid[at + 1]) if at + 1 < grid.size else high
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    for _ in range(100):
        left, right = b - golden * (b - a), a + golden * (b - a)
        if value(left) <= value(right):
            b = right
        else:
            a = left
    return 0.5 * (a + b)
