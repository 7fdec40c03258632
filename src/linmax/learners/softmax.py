"""Second-order softmax over sub-experts, plain and with a learned guess rate.

Class j has probability P_j = exp(w.x^j) / sum_i exp(w.x^i): the conditional logit of McFadden (1974). All classes
speak at once, so this is not of the form f(w, z), and no mistake bound is lifted to it. Nor is a bound on its log loss
known: see the notes of `softmax`.

Between refits each trial is a Kalman step (the curvature of its log loss is added, then one Newton step on its
gradient). At trials 10, 15, 22, 33, ... Newton steps with a line search fit all stored trials afresh. Old trials are
folded into a Gaussian when the store is full, so that nothing grows with the stream.

The robust form takes a label for a guess with probability e: P(y) = (1 - e) P_y + e / k. Each trial then counts as
much as it is likely to be no guess, and e is learned by expectation maximisation at each refit. Under label noise log
loss alone is drawn to the worst trials; this is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from linmax.learners import Description, Running
from linmax.learners.softmax_state import RunningSoftmax
from linmax.util.checks import positive

__all__ = ["RobustSoftmax", "Softmax", "robust_softmax", "softmax"]


@dataclass(frozen=True)
class Softmax(Description):
    """Description of the second-order softmax; made by `linmax.softmax`."""

    prior: float
    name: ClassVar[str] = "softmax"
    takes_gaps: ClassVar[bool] = True
    robust: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive("prior", self.prior, 0.1)

    def start(self, size: int) -> Running:
        return RunningSoftmax(float(self.prior), self.robust, size)


@dataclass(frozen=True)
class RobustSoftmax(Softmax):
    """Description of the same with a learned guess rate; made by `linmax.robust_softmax`."""

    name: ClassVar[str] = "robust-softmax"
    robust: ClassVar[bool] = True


def softmax(prior: float = 0.1) -> Softmax:
    """Second-order softmax over sub-experts: P_c = exp(w.x^c) / sum, fitted on-line and afresh ever more rarely.

    Minimises prior/2 |w|^2 - sum_t ln P_label. Between refits, which come at trials 10, 15, 22, 33, ..., a trial is a
    Kalman step: H <- H + X (diag P - P P') X', w <- w + H^-1 (x^label - sum_c P_c x^c).

    Parameters
    ----------
    prior
        Precision of the weights around 0; the larger, the smaller they stay.

    Notes
    -----
    Refits use the last 8,192 trials (or 2^20 ratings); older ones are folded, in halves, into a Gaussian. A trial costs
    O(n^2 k) up to 128 coordinates and O(n m) with m ratings up to 1,024, where the curvature is taken at refits only.
    Beyond 1,024 coordinates, as with many attributes, the curvature is diagonal and nothing is refitted: O(m).

    No bound is known. That of the on-line Newton step (Hazan, Agarwal and Kale 2007) is for steps with the gradients'
    outer products, scaled by a constant that falls exponentially with the length of the weights, and for weights that
    are projected onto a ball; here the matrix is the curvature itself, and nothing is projected. Those from mixability
    are for other predictions: averages over all weights (Foster et al. 2018), regularised ones with pseudo-labels
    (Jezequel, Gaillard and Rudi 2021).

    References
    ----------
    McFadden (1974), Conditional logit analysis of qualitative choice behavior. Hazan, Agarwal and Kale (2007),
    Logarithmic regret algorithms for online convex optimization. Foster, Kale, Luo, Mohri and Sridharan (2018),
    Logistic regression: the importance of being improper. Jezequel, Gaillard and Rudi (2021), Mixability made
    efficient: fast online multiclass logistic regression.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.majority_problem(trials=1000, seed=1)
    >>> trace = linmax.run(linmax.softmax(0.1), linmax.experts(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 45
    True
    """
    return Softmax(prior)


def robust_softmax(prior: float = 0.1) -> RobustSoftmax:
    """Second-order softmax for noisy labels: P(label) = (1 - e) P_label + e / k, with the guess rate e learned.

    Like `softmax`, but each trial counts as much as its label is likely to be no guess,
    (1 - e) P_label / ((1 - e) P_label + e / k); e is the mean of the rest, taken at each refit, from .1 on.

    Parameters
    ----------
    prior
        As in `softmax`.

    References
    ----------
    Dempster, Laird and Rubin (1977), Maximum likelihood from incomplete data via the EM algorithm; the references of
    `softmax`.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.majority_problem(noise=0.2, trials=2000, seed=1)
    >>> instances = linmax.experts(votes=data.votes)
    >>> robust, plain = (linmax.run(text, instances, data.labels) for text in ("robust-softmax(0.1)", "softmax(0.1)"))
    >>> bool(robust.mistakes[-1] < plain.mistakes[-1])
    True
    """
    return RobustSoftmax(prior)
