"""The 31 basic rules of Mesterharm and Hsu's combination."""

from __future__ import annotations

from linmax.core.contract import Rule
from linmax.rules.alma import alma
from linmax.rules.perceptron import perceptron
from linmax.rules.winnow import winnow

__all__ = ["PAPER_ALPHAS", "PAPER_NORMS", "paper_pool"]

# Winnow's factors: the paper names 1.01, 1.03, 1.2, 1.25, 1.3, 1.35, 1.5, 1.6 of its 15; the rest is filled in.
PAPER_ALPHAS = (1.01, 1.03, 1.05, 1.07, *(round(1.1 + 0.05 * i, 2) for i in range(11)))
PAPER_NORMS = tuple(2.0 + 0.5 * i for i in range(15))


def paper_pool() -> list[Rule]:
    """The 31 basic rules of Mesterharm and Hsu: 15 Winnows (positive weights), Perceptron, ALMA(p), p = 2 to 9.

    Returns
    -------
    list of Rule
        The rules, in the paper's order.

    References
    ----------
    Mesterharm and Hsu, Combinatorial fusion with on-line learning algorithms, section VII.

    Examples
    --------
    >>> import linmax
    >>> len(linmax.rules.paper_pool())
    31
    """
    return [*(winnow(alpha) for alpha in PAPER_ALPHAS), perceptron(), *(alma(p) for p in PAPER_NORMS)]
