"""Bounds of multiplicative rules: Winnow, Committee and Balanced Winnow.

At threshold zero they rest on one inequality. Let W = sum w_i and z in [-X, X]^n; an update with w.z <= tau W
multiplies W by at most cosh(X r) + (tau/X) sinh(X r), r = ln alpha (convexity of alpha^z), while
ln W >= sum u_i ln(w_i/u_i) at all times (Jensen).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from linmax.theory.bounds.arguments import Vector, above, amount, lowest_point, number, possible, shares, weights
from linmax.theory.bounds.declaration import MISTAKES_RETURNED, declared

# -- threshold zero ---------------------------------------------------------------------------------------------------


LARGEST_RATE = math.log(1e299)
"""Beyond this alpha = exp(rate) leaves the range of floats."""


@declared("Divergence, >= 0, in nats.", u=("Comparator, >= 0, with sum 1.", shares))
def divergence(u: npt.ArrayLike, start: npt.ArrayLike | None = None) -> float:
    """sum u_i ln(u_i/w_i) + ln sum w_i: what a multiplicative rule with first weights w must learn.

    Conditions: u >= 0, sum u_i = 1; w = ``start`` is 1 by default. At most ln n when all w_i are equal.

    Source: Littlestone (1989), Mistake bounds and logarithmic linear-threshold learning algorithms.

    Examples
    --------
    >>> divergence([0.25, 0.25, 0.25, 0.25])
    0.0
    >>> divergence([1, 0, 0, 0]) == math.log(4)
    True
    """
    found = np.asarray(u, dtype=float)
    first = np.ones(found.size) if start is None else np.broadcast_to(np.asarray(start, dtype=float), found.shape)
    if not (np.all(np.isfinite(first)) and first.min() > 0.0):
        raise ValueError(f"start must be > 0, got {first.min():g}; try 1")
    return _relative_entropy(found, first / float(first.sum()))


@declared("Divergence, >= 0, in nats.", u=("Comparator; its magnitudes sum to 1 at most.", weights))
def divergence_balanced(u: npt.ArrayLike) -> float:
    """The least `divergence` of u+ >= 0, u- >= 0 over the 2n attributes x and -x, u+ - u- = u, sum (u+ + u-) = 1.

    Conditions: sum |u_i| <= 1. If it is 1, u+ and u- have no attribute in common and the divergence is
    ln(2n) + sum |u_i| ln |u_i|. If it is less, the rest is laid on both sides alike, least where u+_i u-_i is the same
    for all i: then u+_i + u-_i = sqrt(u_i^2 + s^2), with s such that these add up to 1. u = 0 has nothing to learn.

    Source: derived here, after Littlestone (1989).

    Examples
    --------
    >>> divergence_balanced([0.5, -0.5]) == math.log(2)
    True
    >>> divergence_balanced([0.0, 0.0])
    0.0
    """
    magnitudes = np.abs(np.asarray(u, dtype=float))
    s = _shared(magnitudes)
    larger = (magnitudes + np.hypot(magnitudes, s)) / 2.0
    smaller = s * s / 4.0 / np.where(larger > 0.0, larger, 1.0)
    size = 2 * magnitudes.size
    return _relative_entropy(np.concatenate([larger, smaller]), np.full(size, 1.0 / size))


def _relative_entropy(u: Vector, start: Vector) -> float:
    """sum u_i ln(u_i/w_i) where both add up to 1, with its digits also where u is nearly w."""
    used = u > 0.0
    plain = float((u[used] * np.log(u[used] / start[used])).sum())
    if plain > 0.01:
        return plain
    # the same as sum w_i f(d_i), f(d) = (1 + d) ln(1 + d) - d, in which nothing cancels and a sum that is not quite 1
    # has no effect of first order
    d = (u - start) / start
    near = np.abs(d) < 1e-3
    far = np.where(near | (d <= -1.0), 0.0, d)
    exact = np.where(d <= -1.0, 1.0, (1.0 + far) * np.log1p(far) - far)
    series = d * d * (1.0 / 2.0 - d * (1.0 / 6.0 - d * (1.0 / 12.0 - d / 20.0)))
    return float((start * np.where(near, series, exact)).sum())


def _shared(magnitudes: Vector) -> float:
    """s >= 0 with sum sqrt(u_i^2 + s^2) = 1, by Newton's steps from the right, where the sum is convex."""
    if float(magnitudes.sum()) >= 1.0:
        return 0.0
    s = 1.0 / magnitudes.size
    for _ in range(100):
        roots = np.hypot(magnitudes, s)
        following = s - (float(roots.sum()) - 1.0) / float((s / roots).sum())
        if not 0.0 < following < s * (1.0 - 1e-15):
            break
        s = following
    return s


@declared("Growth, >= 0.", rate="Logarithm of alpha.")
def log_growth(rate: float, thickness: float, largest: float) -> float:
    """ln(cosh(X r) + (tau/X) sinh(X r)): what one update can add to the logarithm of the total weight.

    r = ``rate`` = ln alpha, X = ``largest`` >= |z_i|, tau = ``thickness``.

    Source: derived here; the one inequality behind `multiplicative` and `balanced`.

    Examples
    --------
    >>> log_growth(0.0, 0.0, 1.0)
    0.0
    """
    x, tilt = largest * rate, thickness / largest
    if x < 20.0:
        return math.log1p(2.0 * math.sinh(x / 2.0) ** 2 + tilt * math.sinh(x))  # keeps its digits for small x
    return x + math.log(((1.0 + tilt) + (1.0 - tilt) * math.exp(-2.0 * x)) / 2.0)


@declared()
def from_divergence(
    learned: float, margin: float, alpha: float, noise: float, thickness: float, largest: float
) -> float:
    """`multiplicative` and `balanced` for a comparator of which the divergence is known."""
    if possible(margin, largest, noise) <= thickness:
        return math.inf
    rate = math.log(alpha)
    gain = margin * rate - log_growth(rate, thickness, largest)
    return math.inf if gain <= 0.0 else (learned + noise * rate) / gain


@declared(u=("Comparator, >= 0, with sum 1.", shares))
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
    return from_divergence(divergence(u, start), margin, alpha, noise, thickness, largest)


@declared(u=("Comparator; its magnitudes sum to 1 at most.", weights))
def balanced(
    u: npt.ArrayLike,
    margin: float,
    alpha: float,
    noise: float = 0.0,
    thickness: float = 0.0,
    largest: float = 1.0,
) -> float:
    """Updates of Balanced Winnow: `multiplicative` on the 2n attributes x and -x.

    Conditions: sum |u_i| <= 1, |z_i| <= largest, hinge loss ``noise`` at ``margin``; thick form: the rule
    updates when w.z <= tau sum(w+ + w-). For X = largest = 1 and tau = thickness = 0

        M <= (RE + N ln alpha) / (delta ln alpha - ln((alpha + 1/alpha)/2))

    with RE = `divergence_balanced` (u), which is ln(2n) + sum |u_i| ln |u_i| if sum |u_i| = 1. With noise a shorter u
    can give a smaller bound, by some per cent.

    Source: derived here; the exact form behind `balanced_printed`.

    Examples
    --------
    A disjunction of 5 among 99 attributes and a constant, margin 1/11:

    >>> target = [2 / 11] * 5 + [0] * 94 + [-1 / 11]
    >>> round(balanced(target, margin=1 / 11, alpha=12 / 11))
    855
    """
    return from_divergence(divergence_balanced(u), margin, alpha, noise, thickness, largest)


@declared("Best alpha.", margin=number)
def best_alpha(
    learned: float, margin: float, noise: float = 0.0, thickness: float = 0.0, largest: float = 1.0
) -> float:
    """The alpha that makes `multiplicative` or `balanced` least.

    ``learned`` is the divergence of the comparator, the rest as there.
    Without noise: alpha = exp((atanh(delta/X) - atanh(tau/X))/X), that is sqrt((1 + delta)/(1 - delta)) for
    X = 1, tau = 0. With noise it is smaller; the bound is a convex function over a concave one in ln alpha,
    so its only stationary point is the minimum. Kept between 1 + 1e-6 (less for X > 1) and about 1e6^(1/X), where the
    bound has reached its limit to six digits, or 1e299, the range of floats. Of a thickness >= X, with which every
    trial is an update, the bound only decreases with alpha.

    Source: derived here.

    Examples
    --------
    >>> round(best_alpha(1.0, margin=0.5), 6) == round(3**0.5, 6)
    True
    >>> best_alpha(1.0, margin=0.5, noise=10) < 3**0.5
    True
    """
    if possible(margin, largest, noise) <= thickness:
        raise ValueError(f"margin must be > thickness = {thickness:g} for a bound to exist, got {margin!r}")
    share = thickness / largest
    tilt = math.atanh(share) if share < 1.0 else 0.0
    top = min((math.atanh(min(margin / largest, 1.0 - 1e-12)) - tilt) / largest, LARGEST_RATE)
    rate = top if share >= 1.0 else _best_rate(learned, margin, noise, thickness, largest, max(0.0, top))
    return max(1.0 + max(1e-6 / max(1.0, largest), 1e-12), math.exp(rate))


def _best_rate(learned: float, margin: float, noise: float, thickness: float, largest: float, top: float) -> float:
    if noise == 0.0 or math.isinf(noise) or math.isinf(margin):
        return top if noise == 0.0 else 0.0
    tilt = math.atanh(thickness / largest)

    def slope(rate: float) -> float:
        """Return a number with the sign of the bound's derivative, which increases with the rate."""
        gain = margin * rate - log_growth(rate, thickness, largest)
        return noise * gain - (learned + noise * rate) * (margin - largest * math.tanh(largest * rate + tilt))

    low = 1e-7 / max(1.0, largest)  # below the least alpha
    if top <= low or slope(low) >= 0.0:
        return low
    return top if slope(top) <= 0.0 else float(brentq(slope, low, top, xtol=1e-16, rtol=1e-13))


# -- threshold zero, as papers print it -------------------------------------------------------------------------------


@declared(n="Number of sub-experts.")
def committee_printed(n: int, margin: float) -> float:
    """Mesterharm (2001) 4.2 on WMA for linear thresholds: 2 ln(n)/delta^2 for alpha = (1 - delta)^(-1/2).

    **False for that alpha**: with n = 20000, three relevant sub-experts and delta = 1/3 an adversary forces
    183 mistakes, and 2 ln(n)/delta^2 = 178.3. It is true for alpha = sqrt((1 + delta)/(1 - delta)); for the
    printed alpha the factor is not 2 but up to 2.67 (`multiplicative` gives it exactly).

    Source: Mesterharm (2001), section 4.2.

    Examples
    --------
    >>> round(committee_printed(20000, 1 / 3), 1)
    178.3
    """
    return 2.0 * math.log(n) / margin**2


@declared(norm="1-norm of the comparator u.", largest=amount)
def winnow_printed(n: int, norm: float, largest: float, margin: float) -> float:
    """2 ln(2n) |u|_1^2 max|x|_inf^2 / gamma^2, theorem 6.4 of the lecture notes on linear learners.

    Right for the tuned rate, r = atanh(d)/X with d = gamma/(|u|_1 X), and weights of both signs; the notes
    fix r = 1, for which nothing holds in general. `balanced` with `best_alpha` is at most this.

    Source: lecture notes on linear learners, theorem 6.4.

    Examples
    --------
    >>> round(winnow_printed(n=100, norm=1.0, largest=1.0, margin=0.5), 2)
    42.39
    """
    return 2.0 * math.log(2.0 * n) * (norm * largest) ** 2 / margin**2


@declared(u=("Comparator; its magnitudes sum to 1 at most.", weights))
def balanced_printed(u: npt.ArrayLike, margin: float, noise: float = 0.0) -> float:
    """Balanced Winnow as Mesterharm and Hsu print it, their (1), "for alpha = 1 + delta".

        3.2 (ln(2n) + sum |u_i| ln |u_i|)/delta^2 + 1.35 N/delta

    The constants hold for alpha = 1 + delta/2 (there `balanced` gives at most 3.08 and 1.34, for every
    delta <= 1). For alpha = 1 + delta the first constant is at most 2.13, but the noise is multiplied by
    1.47 to 2, not by 1.35.

    Source: Mesterharm and Hsu, (1).

    Examples
    --------
    >>> round(balanced_printed([2 / 11] * 5 + [0] * 94 + [-1 / 11], margin=1 / 11))
    1367
    """
    return 3.2 * divergence_balanced(u) / possible(margin, 1.0, 0.0) ** 2 + 1.35 * noise / margin


# -- fixed thresholds -------------------------------------------------------------------------------------------------

ALPHA = above(1.0, 2.0)
GAP = "Margin delta: mu.x <= 1 - delta on negatives."


def _promotions(k: float, alpha: float, threshold: float) -> float:
    return k * (math.log(threshold) / math.log(alpha) + 1.0)


def _threshold(n: float, alpha: float, threshold: float | None) -> float:
    theta = n if threshold is None else above(0.0, n)("threshold", threshold)
    if theta * alpha < 1.0:
        raise ValueError(f"threshold must be >= 1/alpha = {1 / alpha:g}, got {threshold!r}; try n = {n:g}")
    return theta


@declared(MISTAKES_RETURNED, alpha=ALPHA)
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
    theta = _threshold(n, alpha, threshold)
    return alpha * _promotions(int(k), alpha, theta) + n / theta


@declared(MISTAKES_RETURNED, alpha=ALPHA)
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
    theta = _threshold(n, alpha, threshold)
    return (1.0 + alpha) * _promotions(int(k), alpha, theta) + alpha * n / ((alpha - 1.0) * theta)


@declared(MISTAKES_RETURNED, alpha=ALPHA, margin=GAP)
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
    theta = _threshold(n, alpha, threshold)
    if margin > 1.0:
        raise ValueError(f"margin must be <= 1 (mu.x <= 1 - margin on negatives), got {margin!r}; try 1")
    slack = 1.0 - alpha * (1.0 - margin)
    if slack <= 0.0:
        return math.inf
    demotions = alpha * n / ((alpha - 1.0) * theta)
    promotions = (_promotions(total, alpha, theta) + (1.0 - margin) * demotions) / slack
    return (1.0 + alpha) * promotions + demotions


@declared("Best alpha.", margin=(GAP, above(0.0, 0.5)))
def best_winnow2_alpha(n: int, total: float, margin: float, threshold: float | None = None) -> float:
    """The alpha that makes `winnow2` least.

    Source: derived here.

    Examples
    --------
    >>> alpha = best_winnow2_alpha(n=1000, total=7 / 3, margin=1 / 3)
    >>> winnow2(1000, 7 / 3, 1 / 3, alpha) < winnow2(1000, 7 / 3, 1 / 3, 1.2)
    True
    """
    # alpha - 1 spans many magnitudes, hence the logarithm; a theta below 1/alpha is outside the bound
    top = math.log(1e6 if margin >= 1.0 else margin / (1.0 - margin))
    least = 1e-9 if threshold is None or threshold >= 1.0 else 1.0 / threshold - 1.0 + 1e-9
    if math.log(least) >= top:
        raise ValueError(f"threshold must be > {1.0 - margin:g} for this margin, got {threshold!r}; try {n}")

    def value(log_step: float) -> float:
        return winnow2(n, total, margin, 1.0 + math.exp(log_step), threshold)

    return 1.0 + math.exp(lowest_point(value, math.log(least), top))


@declared(MISTAKES_RETURNED, margin=GAP)
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
    theta = _threshold(n, 2.0, threshold)
    return 8.0 * n / (margin**2 * theta) + (5.0 / margin + 14.0 * math.log(theta) / margin**2) * total
