"""Bounds of additive rules: the Perceptron, p-norm rules, ALMA, passive-aggressive and second-order rules."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from linmax.theory.bounds.arguments import Vector, above, amount, count, positive_share
from linmax.theory.bounds.declaration import MISTAKES_RETURNED, declared

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
