"""Instance recycling, R-B: after an update, show the recent instances again until none calls for another.

Mesterharm and Hsu, section VI. The s most recent instances are kept, right ones too, each with the number of updates
it has caused; one that reaches u is not shown again. Updates made here are no mistakes, and the bound of the basic
rule holds for all updates together when an instance's noise is counted u times. A budget of look-ups caps the cost
where labels are noisy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from linmax.core.contract import LEFT, NEXT, RECYCLED, TRIALS, UPDATES, Rule
from linmax.core.member import ACT, RunningRule
from linmax.jit.compiling import kernel
from linmax.jit.struct import act
from linmax.techniques.averaging import Averaged
from linmax.techniques.node import NO_RECYCLING, Node, Run
from linmax.techniques.technique import LearnerLike, NodeMaker, PrefixTechnique, as_learner
from linmax.util.checks import LARGEST_INT32, counted

__all__ = ["Recycled", "recycle", "recycle_instances"]

FOREVER = LARGEST_INT32  # "u = infinity", as a counter
UNLIMITED_PASSES = 1000  # most passes after one update where u = infinity
SAVED = 1000  # trials whose unused look-ups are kept for later
KEPT, USES, PASSES, BUDGET = range(4)


@kernel(ACT)
def recycle_instances(m: RunningRule, begin: int, end: int) -> int:
    """Look at begin..end, over and over, until nothing has called for an update since each was last looked at.

    Without a budget it begins with the oldest. With one it resumes where it stopped the last time, and ends when the
    look-ups that are left are used up. Returns 0, or FAILED when a weight left its range.
    """
    recycling, counts, uses = m.recycling, m.counts, m.uses
    size, budget = end - begin, recycling[BUDGET]
    first = counts[TRIALS] - end  # number of the trial at place 0; the last one played is at end - 1
    left = counts[LEFT] if budget else FOREVER * FOREVER
    t = max(begin, counts[NEXT] - first) if budget else begin
    quiet, passes = 0, 0
    m.limit = recycling[USES]
    while quiet < size and left > 0 and passes < recycling[PASSES]:
        stop = min(end, t + min(left, size - quiet))
        found = act(m.search, m, t, stop)
        looked = min(found + 1, stop) - t
        quiet += looked
        if found < stop:
            steps = act(m.learn, m, found, 0)
            if steps < 0:
                return steps
            if steps > 0:
                uses[found] += 1
                counts[UPDATES] += steps
                counts[RECYCLED] += steps
                quiet = 0
        left -= looked
        t += looked
        if t == end:
            t = begin
            passes += 1
    m.limit = 0
    if budget:
        counts[LEFT], counts[NEXT] = left, first + t
    return 0


@dataclass(frozen=True)
class Recycled(PrefixTechnique):
    """Description of R-B; made by `linmax.recycle`."""

    notation: ClassVar[str] = "R"
    s: int = 100
    u: float = 5
    passes: int = FOREVER
    budget: int | None = None

    def __post_init__(self) -> None:
        counted("s", self.s, 1)
        if self.u != math.inf:
            counted("u", self.u, 1)
        counted("passes", self.passes, 1)
        if self.budget is not None:
            counted("budget", self.budget, 1)

    @property
    def defaults(self) -> dict[str, Any]:
        return super().defaults | {"passes": default_passes(self.base, self.u, self.budget)}

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """Instances kept, uses of each, passes, budget: for the kernels."""
        return self.s, FOREVER if self.u == math.inf else int(self.u), self.passes, self.budget or 0

    def node(self, make: NodeMaker) -> Node:
        return make.member(self)

    def configure(self, run: Run, learner: Any) -> None:
        if run.recycling != NO_RECYCLING:
            raise ValueError(f"{learner} recycles twice; once is enough")
        if isinstance(self.base, Averaged):
            raise ValueError(f"{learner} recycles an average; average what is recycled instead: AR, not RA")
        run.recycling = self.numbers


def default_passes(learner: Any, u: float, budget: int | None) -> int | None:
    """Only u = infinity needs a limit; otherwise u updates of each instance end it. None if it must be given."""
    if u != math.inf:
        return FOREVER
    return None if least_margin(learner) > 0.0 and budget is None else UNLIMITED_PASSES


def least_margin(rule: Any) -> float:
    """Return the margin above which a rule has a bound on its updates: 0 but for rules that multiply.

    Their bound is RE / (margin ln alpha - ln((alpha + 1/alpha) / 2)), infinite where that is not positive.

    Examples
    --------
    >>> import linmax
    >>> least_margin(linmax.parse("perceptron")), round(least_margin(linmax.parse("winnow(1.6)")), 3)
    (0.0, 0.227)
    """
    if not isinstance(rule, Rule):
        return 0.0
    if rule.parameters.get("link") in ("sinh", "exp"):
        rate = float(rule.parameters["rate"])
    elif rule.bounded and "alpha" in rule.parameters:
        rate = math.log(rule.parameters["alpha"])
    else:
        return 0.0
    return (rate + math.log1p(math.exp(-2.0 * rate)) - math.log(2.0)) / rate


def recycle(
    learner: LearnerLike, s: int = 100, u: float = 5, passes: int | None = None, budget: int | None = None
) -> Recycled:
    """R-B: after each update show the s most recent instances again, each for at most u updates, until none errs.

    Parameters
    ----------
    s
        Instances kept.
    u
        Updates that one instance may cause; ``math.inf`` for data without noise.
    passes
        Most passes after one update. Needed only with u = infinity, since otherwise s * u updates end it: there 1000,
        for noisy data. A rule that multiplies has a bound only where the margin is large enough for its alpha; with
        u = infinity it requires ``passes`` or ``budget``.
    budget
        Look-ups of a kept instance for each trial, on average: a trial adds as many, and those not needed are kept
        for later, up to 1000 trials' worth. Recycling then continues where it stopped the last time, and stops when
        every instance has been looked at since the last update or the look-ups are used up. It caps the cost where
        labels are noisy.

    Notes
    -----
    All updates, the recycled ones included, obey B's mistake bound with each instance's noise counted u times; with
    u = 1 the bound is B's own.

    References
    ----------
    Mesterharm and Hsu, section VI.

    Examples
    --------
    >>> import linmax
    >>> print(linmax.average(linmax.recycle("winnow(1.1)", s=200)))
    AR(s=200)-winnow(1.1)
    >>> print(linmax.recycle("perceptron", s=1000, u=20, budget=200))
    R(s=1000, u=20, budget=200)-perceptron
    """
    described = as_learner(learner)
    passes = default_passes(described, u, budget) if passes is None else passes
    if passes is None:
        raise ValueError(
            f"u=inf requires passes= with {described}, got none: its updates are bounded only where the margin is "
            f"above {least_margin(described):.3g}; pass passes=100, a budget, a finite u, or a rule that adds, such as "
            "perceptron"
        )
    return Recycled(described, s, u, passes, budget)
