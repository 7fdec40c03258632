"""When to stop asking voters: the least lead of the best class at which further votes are not worth their cost.

Voters are asked in steps. Trials in which all spoke say, for each step, how far the best class then led and how much
accuracy stopping there gives up. A lead for each step is chosen from the last step backwards, as in dynamic
programming, so that what is given up and the price of further calls are together least; and the price so that no more
than the tolerance is given up. Calls that gain less than two and a half tolerances each are left out as long as that is
within one standard error.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["stopping_leads"]

CHEAPEST, DEAREST = 1e-7, 1.0  # prices of a call, in accuracy
HALVINGS = 25  # of the range of their logarithms
WORTH = 2.5  # tolerances that a call should gain


def stopping_leads(leads: np.ndarray, losses: np.ndarray, costs: np.ndarray, tolerance: float) -> np.ndarray:
    """The lead at which to stop after each step; that of the last step with any is -inf, and further ones too.

    Parameters
    ----------
    leads, losses
        (trials, steps): how far the best class led after each step, and the accuracy given up by stopping there.
    costs
        Of each step.
    tolerance
        Accuracy that may be given up in the mean of the trials. Where every choice gives up more, about the least is.

    Examples
    --------
    >>> import numpy as np
    >>> leads = np.array([[3.0, 4.0], [1.0, 4.0], [3.0, 3.0], [1.0, 1.0]])
    >>> losses = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 0.0], [0.5, 0.0]])
    >>> stopping_leads(leads, losses, np.ones(2), tolerance=0.01).tolist()
    [2.0, -inf]
    >>> stopping_leads(leads, losses, np.ones(2), tolerance=0.5).tolist()
    [-inf, -inf]
    """
    prices = costs / costs.mean() if costs.any() else costs
    orders = np.argsort(leads, axis=0, kind="stable")

    def chosen(price: float) -> tuple[np.ndarray, float, float]:
        return _chosen(leads, losses, price * prices, orders)

    def dearest(errors: float) -> float:
        """The highest price at which no more is given up than the tolerance and so many standard errors."""
        cheap, dear = CHEAPEST, DEAREST
        for _ in range(HALVINGS):
            price = math.sqrt(cheap * dear)
            lost, error = chosen(price)[1:]
            if lost <= tolerance + errors * error:
                cheap = price
            else:
                dear = price
        return cheap

    return chosen(min(max(dearest(0.0), WORTH * tolerance), dearest(1.0)))[0]


def _chosen(
    leads: np.ndarray, losses: np.ndarray, prices: np.ndarray, orders: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """The best leads at these prices of the steps, what is given up in the mean, and the standard error of that."""
    trials, steps = leads.shape
    found, lost, paid = np.full(steps, -np.inf), losses[:, -1], np.zeros(trials)
    for step in range(steps - 2, -1, -1):
        here, order = leads[:, step], orders[:, step]
        worse = losses[:, step] - (lost + paid + prices[step + 1])  # by stopping
        gain = np.concatenate([[0.0], np.cumsum(worse[order])])  # if those that lead least go on
        ranked = here[order]
        gain[1:-1][np.diff(ranked) <= 0.0] = -np.inf  # equal leads have the same fate
        count = int(gain.argmax())
        if count:
            found[step] = np.inf if count == trials else 0.5 * (ranked[count - 1] + ranked[count])
        stops = here >= found[step]
        lost = np.where(stops, losses[:, step], lost)
        paid = np.where(stops, 0.0, paid + prices[step + 1])
    last = int(np.argmin(found))  # the first that always stops
    found[last:] = -np.inf
    return found, float(lost.mean()), float(lost.std() / math.sqrt(trials))
