"""Bounds of multiplicative rules as papers print them, each with what is wrong or loose in it."""

from __future__ import annotations

import math

import numpy.typing as npt

from linmax.bounds.arguments import amount, count, number, possible
from linmax.bounds.documentation import documented
from linmax.bounds.zero_threshold import divergence_balanced


@documented(n="Number of sub-experts.")
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
    n_, margin = count("n", n, 1), number("margin", margin)
    return math.inf if margin <= 0.0 else 2.0 * math.log(n_) / margin**2


@documented(norm="1-norm of the comparator u.")
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
    n_, margin = count("n", n, 1), number("margin", margin)
    size = amount("norm", norm) * amount("largest", largest)
    return math.inf if margin <= 0.0 else 2.0 * math.log(2.0 * n_) * size**2 / margin**2


@documented(u="Comparator; its magnitudes sum to 1 at most.")
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
    learned, margin = divergence_balanced(u), number("margin", margin)
    noise = amount("noise", noise)
    if margin <= 0.0:
        return math.inf
    return 3.2 * learned / possible(margin, 1.0, 0.0) ** 2 + 1.35 * noise / margin
