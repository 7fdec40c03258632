"""Which wrong classes a rule learns from; see `linmax.core.rivals` for how."""

from __future__ import annotations

from dataclasses import replace

from linmax.core.contract import Rule
from linmax.core.rivals import RIVALS
from linmax.techniques.technique import LearnerLike, as_rule
from linmax.util.checks import one_of

__all__ = ["rivals"]


def rivals(learner: LearnerLike, which: str) -> Rule:
    """Let a rule learn from other wrong classes than the best one.

    Parameters
    ----------
    learner
        A rule, or its text.
    which
        "best": z = x^label - x^rival with the best wrong class, the papers' way. "violated": one z after the other
        for every wrong class that the label does not lead by more than the rule's margin, the highest score first,
        tied ones by class. "all": one-vs-all, z = x^label and then z = -x^j for every wrong class.

    Notes
    -----
    Each z of "best" and "violated" is one of the transformed problem, so the rule's bound on updates holds for both.
    With "violated" a trial can cause k - 1 updates, and its noise counts once for each rival: N is the sum over trials
    *and* rivals of max(0, margin - u.z). On separable data nothing changes.

    "all" is k two-class problems (on attributes with weights of their own), of which the bounds add up; it needs a
    rule whose weights may be negative. Updates are counted z by z.

    References
    ----------
    Mesterharm (2001), section 2.4: "there is some freedom in picking this incorrect class".

    Examples
    --------
    >>> import linmax
    >>> print(linmax.rivals("arow(0.1)", "all"))
    arow(r=0.1, rivals=all)
    """
    rule = as_rule(learner)
    if one_of("rivals", which, RIVALS) == "all" and rule.start > 0.0 and rule.spread is not None:
        raise ValueError(f"rivals='all' needs weights of both signs, and {rule} has positive ones; try 'violated'")
    return replace(rule, rivals=which)
