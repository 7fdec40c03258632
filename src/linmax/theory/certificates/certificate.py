"""Certificates: the result of `certify`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linmax.theory.rows import Vector

__all__ = ["Certificate", "says_nothing", "shown_alpha"]


@dataclass(frozen=True, eq=False)
class Certificate:
    """Largest number of mistakes that a learner can make on given data, and the number that it made.

    Attributes
    ----------
    learner
        The learner, as text.
    trials
        Number of trials.
    bound
        The learner makes at most so many mistakes on any data with this u, margin and noise; a rule also at
        most so many updates, and a recycled rule, with those on stored instances.
    u, margin, noise
        The comparator, its margin and its hinge noise over all trials. ||u|| = 1 in the norm of the bound:
        the 1-norm for the Winnow family, the q-norm for p-norm rules (2 for the Perceptron). A shorter u
        is one of Balanced Winnow with weight on both sides of an attribute (`bounds.divergence_balanced`);
        u = 0 is the best where nothing can be learned. For ALMA they are those of z/||z||_p. The noise of a
        trial is that of its worst rival, but for a rule with ``rivals="violated"`` the sum over all rivals,
        each of which can cause an update.
    alpha, tuned_bound
        The alpha that makes the bound least on these data, and that bound; None for rules without an alpha.
    mistakes, updates
        What the learner really did; None when it was not run.
    vacuous
        The bound is no less than ``most``, and so says nothing.
    separable
        Whether some u of the kind makes no mistake; None if it was not settled.
    sampled
        Number of trials on which u was sought, when not on all. Margin, noise and bound are of all trials
        in any case.
    expected
        The bound is one on the mean over the learner's own draws, which a single run may exceed.
    most
        Mistakes that the learner can make if it learns nothing: one a trial, but of B- in the mean a few less, as
        some of the classes drawn are right.
    """

    learner: str
    trials: int
    u: Vector
    margin: float
    noise: float
    bound: float
    alpha: float | None
    tuned_bound: float | None
    mistakes: int | None
    updates: int | None
    vacuous: bool
    separable: bool | None
    sampled: int | None
    expected: bool
    most: float

    def __str__(self) -> str:
        lines = [
            ("mistakes", "not run" if self.mistakes is None else f"{self.mistakes} ({self.updates} updates)"),
            ("bound", f"{_shown(self.bound)}{' in the mean' * self.expected}{' (vacuous)' if self.vacuous else ''}"),
            ("margin", f"{self.margin:.6g}"),
            ("noise", f"{self.noise:.6g}"),
            ("separable", {True: "yes", False: "no", None: "not settled"}[self.separable]),
            ("comparator", self._heaviest()),
        ]
        if self.alpha is not None and self.tuned_bound is not None:
            empty = ", vacuous" if says_nothing(self.tuned_bound, self.most) else ""
            lines.insert(2, ("best alpha", f"{shown_alpha(self.alpha)} (bound {_shown(self.tuned_bound)}{empty})"))
        if self.sampled is not None:
            lines.append(("sample", f"u was sought on {self.sampled} of {self.trials} trials, measured on all"))
        width = max(len(name) for name, _ in lines)
        head = f"{self.learner}, {self.trials} trials"
        return "\n".join([head, "-" * len(head), *(f"{name:<{width}}  {text}" for name, text in lines)])

    def _heaviest(self) -> str:
        order = np.argsort(-np.abs(self.u), kind="stable")[:4]
        shown = ", ".join(f"u[{i}] = {self.u[i]:.3g}" for i in order if self.u[i])
        return f"{len(self.u)} weights; {shown or 'all 0'}"


def says_nothing(bound: float, most: float) -> bool:
    """Return whether a bound is no less than the mistakes possible without any theory."""
    return bound >= most * (1.0 - 1e-9)


def shown_alpha(alpha: float) -> str:
    """An update factor with as many digits as tell it from 1.

    Examples
    --------
    >>> shown_alpha(1.1234567), shown_alpha(1.0000012345)
    ('1.12346', '1.00000123')
    """
    return next(
        text
        for digits in range(6, 18)
        if abs(float(text := f"{alpha:.{digits}g}") - alpha) <= 0.02 * (alpha - 1.0) or digits == 17
    )


def _shown(bound: float) -> str:
    return "infinite" if math.isinf(bound) else f"{bound:.1f}"
