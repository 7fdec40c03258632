"""Mistake bounds as functions: how many mistakes can a learner make at most?

Every function states its conditions, formula and source, and returns a float: infinity where the bound says
nothing (a margin of zero, an alpha too large for the margin). Rounding down is the caller's. Unless said
otherwise a bound counts *updates*, ties included, hence mistakes, and holds for every sequence of
instances, whoever chose it.

Symbols: z is the instance times its label, or x^label - x^rival for many classes (Mesterharm 2001); u is
the comparator, any fixed weights; the margin delta (or gamma) is what u.z should reach, and the noise is
the hinge loss

    N = sum over trials of max(0, margin - u.z),   for many classes the largest over all rivals,

or the sum over them when every violated rival causes an update (``rivals="violated"``).

Names ending in ``_printed`` are the forms as the papers print them; each says in what it differs from the
exact one. Functions beginning with ``best_`` return the parameter that makes a bound least.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from linmax.theory.declaration import (
    MISTAKES_RETURNED,
    Vector,
    above,
    amount,
    between,
    count,
    declared,
    fraction,
    inside,
    number,
    positive_share,
    possible,
    shares,
    weights,
)

__all__ = [
    "adaptive_coverage",
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
    "bandit",
    "best_alpha",
    "best_bandit_gamma",
    "best_beta",
    "best_selective_b",
    "best_share_rate",
    "best_winnow2_alpha",
    "committee_printed",
    "divergence",
    "divergence_balanced",
    "elimination",
    "exponentiated_gradient",
    "fixed_share",
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
    "selective_perceptron",
    "survival_error",
    "survival_examples",
    "survival_run",
    "survival_run_printed",
    "survival_run_unknown",
    "two_phase_draws",
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

# -- Perceptron and p-norm rules --------------------------------------------------------------------------------------


def quadratic(rho: float, relative_noise: float) -> float:
    """The largest M with M - N/gamma <= rho sqrt(M)."""
    if math.isinf(relative_noise):
        return math.inf
    return relative_noise + rho * rho / 2.0 + rho * math.sqrt(relative_noise + rho * rho / 4.0)


@declared(threshold=("The rule updates where w.z <= threshold.", amount))
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
    return quadratic(math.sqrt(radius * radius + 2.0 * threshold) * norm / margin, noise / margin)


@declared(deviation=("Root of the summed squares of max(0, margin - u.z).", amount))
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
    return ((radius * norm + deviation) / margin) ** 2


@declared(radius="Largest 2-norm R of a point.", margin="Margin gamma, as above.")
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


@declared(
    size=("Largest p-norm of an instance z.", amount),
    norm="Length of the comparator in the dual norm, 1/p + 1/q = 1.",
)
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
    return quadratic(math.sqrt(p - 1.0) * size * norm / margin, noise / margin)


@declared(
    "Bound on the expected mistakes; infinite without a margin.",
    b=("Parameter of the probability b/(b + |w.x|) of asking for a label, > 0.", above(0.0, 0.5)),
)
def selective_perceptron(radius: float, norm: float, margin: float, b: float, noise: float = 0.0) -> float:
    """Expected mistakes of the Perceptron that asks for a label only with probability b/(b + |w.x|).

    Conditions: w = 0 at first; if the label was asked for and the prediction was wrong then w += z; |z|_2 <= radius;
    |u|_2 = norm; an instance may depend on earlier draws, not on its own. Mistakes without a label asked for count too.
    ``noise`` is the hinge loss of u at ``margin``, in the mean over trials that are asked for and wrong, or more.

        E[M] <= (1 + R^2/(2b)) N/gamma + (2b + R^2)^2 |u|^2 / (8 b gamma^2)

    For many classes put the lead of the first class over the second for |w.x|: it is at most the lead of the predicted
    class over the label, so that a wrong trial is asked for at least as often as the proof needs.

    Proof: on an update |a u - w|^2/2 falls by at least a (gamma - loss) + |w.z| - R^2/2. With a gamma = b + R^2/2 the
    sum over updates of b + |w.z| is at most a^2 |u|^2/2 + a N; its mean is b for each mistake.

    b = R^2/2 gives R^2 |u|^2/gamma^2 without noise, the bound with all labels. `best_selective_b` finds the least.

    Source: Cesa-Bianchi, Gentile and Zaniboni (2006), Worst-case analysis of selective sampling for linear
    classification, theorem 1.

    Examples
    --------
    >>> selective_perceptron(radius=1.0, norm=1.0, margin=0.5, b=0.5) == perceptron(1.0, 1.0, 0.5) == 4.0
    True
    >>> selective_perceptron(radius=1.0, norm=1.0, margin=0.5, b=0.1, noise=1.0)
    19.2
    """
    square = radius * radius
    return (1.0 + square / (2.0 * b)) * noise / margin + (2.0 * b + square) ** 2 * (norm / margin) ** 2 / (8.0 * b)


@declared("Best b.", radius=above(0.0, 1.0), norm=above(0.0, 1.0), margin=above(0.0, 0.5))
def best_selective_b(radius: float, norm: float, margin: float, noise: float = 0.0) -> float:
    """The b that makes `selective_perceptron` least: (R^2/2) sqrt(1 + 4 gamma N / (R^2 |u|^2)).

    Source: Cesa-Bianchi, Gentile and Zaniboni (2006).

    Examples
    --------
    >>> best_selective_b(radius=1.0, norm=1.0, margin=0.5)
    0.5
    """
    return radius**2 / 2.0 * math.sqrt(1.0 + 4.0 * margin * noise / (radius * norm) ** 2)


# -- ALMA -------------------------------------------------------------------------------------------------------------

REACHED = ("Share of the largest margin to reach, in (0, 1].", positive_share)


@declared(alpha=REACHED)
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
    width = max(1.0, C * C + 2.0 * (1.0 - alpha) * (B or 1.0 / alpha) * C)
    return (p - 1.0) * (width + 1.0) ** 2 / (4.0 * C * C * margin**2) + width


@declared(alpha=REACHED)
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
    rho = math.sqrt(p - 1.0) * (2.0 / C + C + 2.0 * (1.0 - alpha) * (B or 1.0 / alpha)) / margin
    value = quadratic(rho, noise / margin)
    return min(value, alma_separable(p, margin, alpha, B, C)) if noise == 0.0 else value


@declared()
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
    bound = 1.0
    for _ in range(1000):  # M -> the right side of M is increasing and concave: iterating from below converges
        following = (1.0 + math.sqrt((p - 1.0) * (1.0 + math.log(bound))) / (2.0 * margin)) ** 2 - 1.0
        if following <= bound * (1.0 + 1e-12):
            break
        bound = following
    return max(1.0, bound)


@declared(alpha=REACHED)
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
    return 2.0 * (p - 1.0) / margin**2 * (2.0 / alpha - 1.0) ** 2 + 8.0 / alpha - 4.0


@declared()
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
    rho2, relative = (p - 1.0) / (C * margin) ** 2, noise / margin
    return relative + rho2 / 2.0 + math.sqrt(rho2**2 / 4.0 + rho2 * relative + rho2)


# -- passive-aggressive and second-order rules ------------------------------------------------------------------------


@declared(
    "Bound on the mistakes.",
    hinge=("Hinge losses of u at margin 1, or their squares, summed.", amount),
    C=("Largest step (PA-I), or weight of the loss (PA-II).", above(0.0, 1.0)),
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


@declared(
    "Bound on the mistakes.",
    hinge=("Hinge losses of u at margin 1, summed.", amount),
    margin_updates=("Number U of updates that were no mistakes.", count(0)),
    r=("Parameter of the rule, > 0.", above(0.0, 1.0)),
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
    logdet = float(np.log1p(eigenvalues / r).sum())
    return math.sqrt(r * square + energy) * math.sqrt(logdet + margin_updates) + hinge - margin_updates


@declared(MISTAKES_RETURNED, a=("Parameter of the rule, > 0.", above(0.0, 1.0)))
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
    return noise / margin + math.sqrt((a * square + energy) * float(np.log1p(eigenvalues / a).sum())) / margin


# -- Winnow, threshold zero -------------------------------------------------------------------------------------------


# These rest on one inequality. Let W = sum w_i and z in [-X, X]^n; an update with w.z <= tau W multiplies W by at most
# cosh(X r) + (tau/X) sinh(X r), r = ln alpha (convexity of alpha^z), while ln W >= sum u_i ln(w_i/u_i) at all times
# (Jensen).

LARGEST_RATE = math.log(1e299)  # beyond this alpha = exp(rate) leaves the range of floats


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
    from scipy.optimize import brentq  # reports import this module, and need no optimizer

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


# -- techniques and other learners ------------------------------------------------------------------------------------


@declared("Bound on the mistakes.", negated="Whether the literals are x and 1 - x.")
def elimination(n: int, negated: bool = False) -> float:
    """Mistakes of the elimination algorithm on disjunctions: n; n + 1 with 2n literals (the first removes n).

    Source: Valiant (1984); Littlestone (1988).

    Examples
    --------
    >>> elimination(10), elimination(10, negated=True)
    (10.0, 11.0)
    """
    return n + (1.0 if negated else 0.0)


@declared(
    "Bound on the total square loss.",
    loss="Square loss of the comparator, summed.",
    span=("Length of the interval in which attributes lie.", amount),
    c=("Factor of the rate c/span^2, between 0 and 2.", inside(0.0, 2.0, 1.0)),
)
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
    return 2.0 / (2.0 - c) * loss + span**2 / c * learned


@declared(
    "Bound on the mistakes.",
    beta=("Factor by which a mistake reduces the weight of a member, between 0 and 1.", fraction),
)
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
    return (math.log(members) - best * math.log(beta)) / math.log(2.0 / (1.0 + beta))


@declared("Best beta.")
def best_beta(members: int, best: float) -> float:
    """The beta that makes `weighted_majority` least when the best member makes ``best`` mistakes.

    Source: Littlestone and Warmuth (1994).

    Examples
    --------
    >>> best_beta(62, 100) > best_beta(62, 10)
    True
    """
    return lowest_point(lambda beta: weighted_majority(members, best, beta), 1e-9, 1.0 - 1e-9)


@declared(
    "Bound on the regret, in nats for log loss.",
    share=("Part alpha of its weight that each member gives away after a trial.", between(0.0, 1.0, 0.001)),
    rate=("Rate eta with which the loss is mixable: 1 for log loss.", above(0.0, 1.0)),
    first=("First weight of the member with which the sequence begins; 1/m by default.", fraction),
)
def fixed_share(
    members: int, trials: int, switches: int, share: float, rate: float = 1.0, first: float | None = None
) -> float:
    """Regret of fixed share: its log loss minus that of any sequence of members with this many switches.

    Conditions: the mixture predicts sum w_i P_i(.); after the label each w_i is multiplied by P_i(label) and all are
    normalised; then every member gives the part alpha = ``share`` of its weight to the m - 1 others, in equal parts.
    Weights 1/m at first, or ``first`` for the member with which the sequence begins: then ln(1/first) for ln m.
    T = ``trials``; s = ``switches`` is how often the sequence changes its member.

        regret <= (ln m + s ln(m - 1) + s ln(1/alpha) + (T - 1 - s) ln(1/(1 - alpha))) / eta

    eta = ``rate`` is 1 for log loss, and for any other loss that is mixable with eta (weights multiplied by
    exp(-eta loss), predictions by its substitution). It holds for every data, and with equality where every other
    sequence of members has infinite loss. Where the share goes to all m members, alpha/m to each, it is this one with
    alpha (m - 1)/m for alpha.

    `best_share_rate` makes it least: ln m + s ln(m - 1) + (T - 1) H(s/(T - 1)), H the entropy in nats.

    Proof: the weights are those of Bayes' rule over all sequences, of which one with s switches has prior
    (1/m) (alpha/(m - 1))^s (1 - alpha)^(T - 1 - s).

    Source: Herbster and Warmuth (1998), Tracking the best expert.

    Examples
    --------
    >>> round(fixed_share(members=7, trials=8000, switches=1, share=1e-3), 2)
    18.65
    >>> fixed_share(members=7, trials=8000, switches=0, share=0.0) == math.log(7)
    True
    """
    m, s, changes = members, switches, trials - 1 if members > 1 else 0  # one member has nobody to share with
    if s > changes:
        raise ValueError(f"switches must be <= trials - 1, and 0 of one member, got {switches:g}; try 0")
    kept, cost = changes - s, math.log(m) if first is None else -math.log(first)
    if s > 0.0:
        cost += s * (math.log(m - 1.0) - math.log(share)) if share > 0.0 else math.inf
    if kept > 0.0:
        cost -= kept * math.log1p(-share) if share < 1.0 else -math.inf
    return cost / rate


@declared("Share of the weight to give away.", trials=count(2))
def best_share_rate(trials: int, switches: int) -> float:
    """The share that makes `fixed_share` least: s/(T - 1).

    Source: Herbster and Warmuth (1998).

    Examples
    --------
    >>> best_share_rate(trials=101, switches=5)
    0.05
    """
    if switches > trials - 1:
        raise ValueError(f"switches must be <= trials - 1, got {switches:g}; try {trials - 1:g}")
    return switches / (trials - 1)


@declared("Bound on the updates.", uses=("Largest number of updates that one instance may cause.", count(1)))
def recycling(bound: Callable[..., float], uses: int, *, noise: float = 0.0, **known: float) -> float:
    """Updates of a recycling learner, including those on stored instances: the base bound with noise ``uses`` * N.

    Conditions: an instance may cause at most ``uses`` updates in all; ``bound`` is the base rule's,
    ``known`` the rest of its arguments.

    Source: Mesterharm and Hsu; the instances that cause updates form a sequence in which each occurs
    ``uses`` times at most.

    Examples
    --------
    >>> from linmax.theory.bounds import perceptron
    >>> recycling(perceptron, 5, noise=0.2, radius=1, norm=1, margin=1) == perceptron(1, 1, 1, noise=1)
    True
    """
    return float(bound(noise=uses * noise, **known))


@declared(
    "Bound on the mistakes.",
    mistakes=("Mistakes M of the basic algorithm.", amount),
    restarts=("Number of restarts of the vote, see `most_restarts`.", count(0)),
)
def voting(mistakes: float, restarts: int) -> float:
    """Mistakes of voting over hypotheses that falls back on its basic algorithm: 2 M + restarts + 1.

    Conditions: the vote is followed while it has made no more mistakes than the basic algorithm since the
    last restart, the basic algorithm otherwise; M is what the basic algorithm makes.

    Proof: between restarts, mistakes made while following the vote number at most one more than those of
    the basic algorithm.

    Source: Mesterharm and Hsu.

    Examples
    --------
    >>> voting(mistakes=50, restarts=2)
    103.0
    """
    return 2.0 * mistakes + restarts + 1.0


@declared("Largest number of restarts.", wait=("Wait d before the first restart.", count(1)), trials=count(0))
def most_restarts(trials: int, wait: int) -> int:
    """Largest number of restarts of voting when the wait doubles each time: floor(lg(trials/wait + 1)).

    Source: Mesterharm and Hsu.

    Examples
    --------
    >>> most_restarts(trials=5000, wait=100)
    5
    """
    return (int(trials) // int(wait) + 1).bit_length() - 1


@declared(
    "Largest distance, for every sequence.",
    step=("Size g of a step of the levels, > 0.", above(0.0, 0.02)),
    miss=("Desired share a of misses.", fraction),
)
def adaptive_coverage(trials: int, step: float, miss: float = 0.1) -> float:
    """Largest distance of the share of misses of adaptive conformal inference from the desired one:
    (max(a, 1 - a) + g) / (T g).

    Conditions: the sets of T trials have the levels a_1 = a = ``miss``, a_{t+1} = a_t + g (a - e_t), e_t being 1 if the
    set of trial t misses the label and else 0, g the ``step``; sets of level 0 or less hold all classes, those of level
    1 or more none. For every sequence of trials, and any scores.

    Source: Gibbs and Candes (2021), proposition 4.1: the levels stay within [-g, 1 + g], and their sum telescopes.

    Examples
    --------
    >>> round(adaptive_coverage(trials=8000, step=0.01), 4)
    0.0114
    """
    return (max(miss, 1.0 - miss) + step) / (trials * step)


# -- bandits ----------------------------------------------------------------------------------------------------------


def revealed_share(classes: float, gamma: float) -> float:
    """Probability that the label of a trial that B would learn from is revealed."""
    return 1.0 if classes <= 2 else gamma / classes


@declared(
    "Bound on the expected mistakes; infinite where gamma is 0 and there are more than two classes.",
    gamma=("Share of trials in which a class is drawn at random, from 0 to 1.", between(0.0, 1.0, 0.1)),
    trials=count(0),
)
def bandit(
    bound: Callable[..., float], trials: int, classes: int, gamma: float, *, noise: float = 0.0, **known: float
) -> float:
    """Expected mistakes of a rule that tries a class and sees only whether it is right.

    Conditions: k = ``classes``, all known from the start. With probability gamma the class tried is drawn from all k,
    otherwise it is the prediction. The rule updates only where its prediction is wrong or tied. It is shown the trials
    whose label comes to light: those in which the class tried is right (where the prediction is tied, only if that
    class was drawn), and for k = 2 all. An instance and its label may depend on earlier draws, not on its own.
    ``bound`` is that of the rule with all labels; it must be concave in the noise, as those of the Perceptron, p-norm
    rules and both Winnows are. ``noise`` is the hinge loss of u over all trials, or its mean.

        E[M] <= gamma (1 - 1/k) T + (1 - gamma) bound(r N) / r,   r = gamma/k,   r = 1 for k = 2

    For the Perceptron bound(r N)/r is its bound with R^2 k/gamma for R^2. Without noise the best gamma is about
    sqrt(k/T) rho, rho = R |u|/margin, and gives about 2 sqrt(k T) rho mistakes.

    Proof: let V_t be 1 if the rule would update at trial t if it were shown it, and S_t be 1 if it is shown it. If
    V_t = 1, then S_t = 1 if and only if the label itself is drawn, which has the probability r whatever happened
    before. The updates number sum S_t V_t, and the bound on the trials shown and updated on gives
    sum S_t V_t <= bound(sum S_t V_t loss_t). In the mean, and by Jensen's inequality,
    r E[sum V_t] <= bound(r E[sum V_t loss_t]) <= bound(r N). Every wrong prediction has V_t = 1, so that their mean
    number P is at most bound(r N)/r. The class tried is wrong with probability 1 - gamma/k where the prediction is
    wrong, and gamma (1 - 1/k) where it is right: in all gamma (1 - 1/k) T + (1 - gamma) P. For k = 2 every S_t is 1.

    Source: derived here. The way of learning is that of Kakade, Shalev-Shwartz and Tewari (2008), Efficient bandit
    algorithms for online multiclass prediction, whose Banditron adds k/gamma times as much at a k/gamma-th of the
    trials.

    Examples
    --------
    >>> from linmax.theory.bounds import perceptron
    >>> round(bandit(perceptron, trials=10000, classes=4, gamma=0.04, radius=1, norm=1, margin=0.5), 6)
    684.0
    >>> bandit(perceptron, trials=10000, classes=2, gamma=0.0, radius=1, norm=1, margin=0.5)
    4.0
    """
    share = revealed_share(classes, gamma)
    if share == 0.0:
        return math.inf
    wrong = 0.0 if gamma == 1.0 else (1.0 - gamma) * float(bound(noise=share * noise, **known)) / share
    return gamma * (1.0 - 1.0 / classes) * trials + wrong


@declared("Best gamma.", trials=count(0))
def best_bandit_gamma(
    bound: Callable[..., float], trials: int, classes: int, *, noise: float = 0.0, **known: float
) -> float:
    """The gamma that makes `bandit` least; 0 for two classes, which need no draws.

    Source: derived here; found by search.

    Examples
    --------
    >>> from linmax.theory.bounds import perceptron
    >>> round(best_bandit_gamma(perceptron, trials=10000, classes=4, radius=1, norm=1, margin=0.5), 3)
    0.046
    """
    if classes == 2:
        return 0.0
    return lowest_point(lambda gamma: bandit(bound, trials, classes, gamma, noise=noise, **known), 1e-9, 1.0)


# -- from online to batch ---------------------------------------------------------------------------------------------


@declared("Length of the run.")
def survival_run(mistakes: int, error: float, failure: float) -> int:
    """Number of instances in a row that a hypothesis must get right: ceil((1/eps) ln((M + 1)/delta)).

    Conditions: a learner that changes only on mistakes and makes at most M; the first hypothesis with such
    a run has error at most eps = ``error`` with probability 1 - delta, delta = ``failure``.

    Proof: a hypothesis of larger error has such a run with probability below (1 - eps)^s <= delta/(M + 1),
    and there are M + 1 hypotheses.

    Source: Littlestone (1989), From on-line to batch learning.

    Examples
    --------
    >>> survival_run(10, 0.1, 0.05), survival_run_printed(0.1, 0.05)
    (54, 30)
    """
    return math.ceil(math.log((mistakes + 1.0) / failure) / error)


@declared("Number of instances.")
def survival_examples(mistakes: int, error: float, failure: float) -> int:
    """Largest number of instances that `survival_run` needs: (M + 1) runs.

    Source: Littlestone (1989), From on-line to batch learning.

    Examples
    --------
    >>> survival_examples(10, 0.1, 0.05)
    594
    """
    return (int(mistakes) + 1) * survival_run(mistakes, error, failure)


@declared("Length of the run.")
def survival_run_unknown(hypothesis: int, error: float, failure: float) -> int:
    """`survival_run` without knowing M: ceil((1/eps) ln(i(i + 1)/delta)) for the i-th hypothesis, i >= 1.

    Source: derived here.

    Examples
    --------
    >>> [survival_run_unknown(i, 0.1, 0.05) for i in (1, 2, 3)]
    [37, 48, 55]
    """
    return math.ceil(math.log(hypothesis * (hypothesis + 1.0) / failure) / error)


@declared("Length of the run.")
def survival_run_printed(error: float, failure: float) -> int:
    """ceil((1/eps) ln(1/delta)), as theorem 9.1 of the lecture notes on linear learners prints it.

    It bounds the risk that *one given* hypothesis deceives; the algorithm tries up to M + 1
    (`survival_run`). The notes also print M runs in all where M + 1 may be needed.

    Source: lecture notes on linear learners, theorem 9.1.

    Examples
    --------
    >>> survival_run_printed(error=0.1, failure=0.05)
    30
    """
    return math.ceil(math.log(1.0 / failure) / error)


@declared("Error, at most 1.", run=("Correct predictions in a row.", count(0)))
def survival_error(run: int, failure: float, mistakes: int | None = None, hypothesis: int = 1) -> float:
    """The error that a run of correct predictions guarantees, for all hypotheses at once: 1 - d^(1/run).

    d = delta/(M + 1) when at most M = ``mistakes`` can be made, else delta/(i(i + 1)) for the i-th
    ``hypothesis``. Proof: a hypothesis of error e has a run of s or more with probability (1 - e)^s.

    Source: derived here.

    Examples
    --------
    >>> survival_error(54, 0.05, mistakes=10) < 0.1
    True
    >>> survival_error(0, 0.05, mistakes=10)
    1.0
    """
    share = failure / (hypothesis * (hypothesis + 1.0) if mistakes is None else mistakes + 1.0)
    return -math.expm1(math.log(share) / run) if run else 1.0


@declared(
    "Instances m1 to learn from and m2 to test with.", mistakes_only="Whether the learner is shown its mistakes only."
)
def two_phase_examples(mistakes: int, error: float, failure: float, mistakes_only: bool = True) -> tuple[int, int]:
    """Instances to learn and to test with in the two-phase conversion.

        m1 = ceil(max(4M/eps, (16/eps) ln(2/delta))),   m2 = ceil((32/eps) ln(2(M + 2)/delta))

    Run the learner over m1 instances and keep every hypothesis; with probability 1 - delta/2 one has error
    <= eps/2. The one with the fewest errors on m2 fresh instances has error <= eps with probability 1 -
    delta. The learner must be conservative, so that it has at most M + 1 hypotheses.

    Any other learner (``mistakes_only=False``) has up to m1. Of those used, q = ceil(log2(4/delta)) are drawn:

        m1 = ceil(max(8M/eps, (32/eps) ln(4/delta))),   m2 = ceil((32/eps) ln(2(q + 1)/delta))

    With probability 1 - delta/4 half of those used have error <= eps/2, and with 1 - delta/4 one of these is drawn.

    Proof: Chernoff's bounds; if all (or half of them) had larger error, m1 trials would make more than M mistakes.

    Source: after Littlestone (1989), who removes the ln M of the second phase.

    Examples
    --------
    >>> two_phase_examples(10, 0.1, 0.05), two_phase_examples(10, 0.1, 0.05, mistakes_only=False)
    ((591, 1976), (1403, 1846))
    """
    halves = 1.0 if mistakes_only else 2.0  # the other half of the hypotheses may be bad
    learn = max(4.0 * mistakes / error, 16.0 / error * math.log(2.0 * halves / failure))
    tested = mistakes + 1 if mistakes_only else two_phase_draws(failure)
    return math.ceil(halves * learn), math.ceil(32.0 / error * math.log(2.0 * (tested + 1.0) / failure))


@declared("Number of hypotheses.")
def two_phase_draws(failure: float) -> int:
    """Hypotheses drawn of a learner that is shown every trial: ceil(log2(4/delta)); see `two_phase_examples`.

    Source: the same as that of `two_phase_examples`.

    Examples
    --------
    >>> two_phase_draws(0.05)
    7
    """
    return math.ceil(math.log2(4.0 / failure))


@declared("Bound on the mean risk, at most 1.")
def average_risk(loss: float, trials: int, failure: float) -> float:
    """The mean risk of the hypotheses H_0..H_(n-1) used in n trials: M_n + sqrt(ln(1/delta) / (2n)).

    Conditions: independent instances, losses in [0, 1], M_n = ``loss`` their mean online; with probability
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
    return min(1.0, loss + math.sqrt(math.log(1.0 / failure) / (2.0 * trials)))


@declared("Bound on the mean risk, at most 1.")
def average_risk_printed(loss: float, trials: int, failure: float) -> float:
    """`average_risk` as printed: M_n + sqrt((2/n) ln(1/delta)); true, but twice as far from M_n as needed.

    Source: Cesa-Bianchi, Conconi and Gentile (2004), proposition 1.

    Examples
    --------
    >>> round(average_risk_printed(loss=0.1, trials=1000, failure=0.05), 4)
    0.1774
    """
    return min(1.0, loss + math.sqrt(2.0 * math.log(1.0 / failure) / trials))


@declared(
    "Penalty, infinite where nothing was tested.", tested=("Number n - t of instances after the hypothesis.", count(0))
)
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
    return math.sqrt(math.log(trials * (trials + 1.0) / failure) / (2.0 * tested)) if tested else math.inf


@declared("Bound on the risk, at most 1.")
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
    return min(1.0, loss + 6.0 * math.sqrt(math.log(2.0 * (trials + 1.0) / failure) / trials))


@declared(
    "Bound on the expected error, at most 1.",
    expected_bound=("Expected bound of `perceptron_deviations` for one trial more.", amount),
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
    return min(1.0, 2.0 * expected_bound / (trials + 1.0))


# -- searches ---------------------------------------------------------------------------------------------------------


def golden_section(value: Callable[[float], float], low: float, high: float, rounds: int) -> float:
    """Return the minimizer of a function with one valley."""
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = value(left), value(right)
    for _ in range(rounds):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = value(right)
    return left if at_left <= at_right else right


def lowest_point(value: Callable[[float], float], low: float, high: float) -> float:
    """Return the minimizer of a function with one valley: golden section around the best of a grid."""
    grid = np.linspace(low, high, 201)
    at = 1 + int(np.argmin([value(float(x)) for x in grid[1:-1]]))
    return golden_section(value, float(grid[at - 1]), float(grid[at + 1]), 100)
