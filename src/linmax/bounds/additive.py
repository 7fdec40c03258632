"""Bounds of additive rules: the Perceptron and its p-norm kin."""

from __future__ import annotations

import math

from linmax.bounds.arguments import above, amount, number
from linmax.bounds.documentation import documented


def quadratic(rho: float, relative_noise: float) -> float:
    """The largest M with M - N/gamma <= rho sqrt(M)."""
    if math.isinf(relative_noise):
        return math.inf
    return relative_noise + rho * rho / 2.0 + rho * math.sqrt(relative_noise + rho * rho / 4.0)


@documented(threshold="The rule updates where w.z <= threshold.")
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
    radius, norm = amount("radius", radius), amount("norm", norm)
    margin, noise = number("margin", margin), amount("noise", noise)
    threshold = amount("threshold", threshold)
    if margin <= 0.0:
        return math.inf
    return quadratic(math.sqrt(radius * radius + 2.0 * threshold) * norm / margin, noise / margin)


@documented(deviation="Root of the summed squares of max(0, margin - u.z).")
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
    radius, norm = amount("radius", radius), amount("norm", norm)
    margin, deviation = number("margin", margin), amount("deviation", deviation)
    return math.inf if margin <= 0.0 else ((radius * norm + deviation) / margin) ** 2


@documented(radius="Largest 2-norm R of a point.", margin="Margin gamma, as above.")
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


@documented(size="Largest p-norm of an instance z.", norm="Length of the comparator in the dual norm, 1/p + 1/q = 1.")
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
    p = number("p", p)
    if p < 2.0:
        raise ValueError(f"p must be >= 2, got {p!r}; try 2")
    size, norm = amount("size", size), amount("norm", norm)
    margin, noise = number("margin", margin), amount("noise", noise)
    if margin <= 0.0:
        return math.inf
    return quadratic(math.sqrt(p - 1.0) * size * norm / margin, noise / margin)


@documented(
    "Bound on the expected mistakes; infinite without a margin.",
    b="Parameter of the probability b/(b + |w.x|) of asking for a label, > 0.",
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
    radius, norm = amount("radius", radius), amount("norm", norm)
    margin, noise = number("margin", margin), amount("noise", noise)
    b, square = above("b", b, 0.0, 0.5), radius * radius
    if margin <= 0.0:
        return math.inf
    return (1.0 + square / (2.0 * b)) * noise / margin + (2.0 * b + square) ** 2 * (norm / margin) ** 2 / (8.0 * b)


@documented("Best b.")
def best_selective_b(radius: float, norm: float, margin: float, noise: float = 0.0) -> float:
    """The b that makes `selective_perceptron` least: (R^2/2) sqrt(1 + 4 gamma N / (R^2 |u|^2)).

    Source: Cesa-Bianchi, Gentile and Zaniboni (2006).

    Examples
    --------
    >>> best_selective_b(radius=1.0, norm=1.0, margin=0.5)
    0.5
    """
    radius, norm = above("radius", radius, 0.0, 1.0), above("norm", norm, 0.0, 1.0)
    margin, noise = above("margin", margin, 0.0, 0.5), amount("noise", noise)
    return radius**2 / 2.0 * math.sqrt(1.0 + 4.0 * margin * noise / (radius * norm) ** 2)
