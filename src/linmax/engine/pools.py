"""Pools of learners: those of Mesterharm and Hsu, and smaller, stronger ones for votes and for attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from linmax.core.contract import Rule
from linmax.learners.attributes.pool import AttributePool
from linmax.learners.auto import AutomaticPool
from linmax.learners.base import Description
from linmax.learners.votes.pool import VotesPool
from linmax.rules import paper_pool
from linmax.techniques import average, recycle
from linmax.techniques.combining import Combined
from linmax.techniques.technique import LearnerLike, as_learners
from linmax.techniques.voting import Voted
from linmax.util.checks import one_of

__all__ = ["POOLS", "best_of_both", "pool", "pool_name", "vr_combine"]

POOLS: dict[str, Callable[[], Description]] = {"votes": VotesPool, "attributes": AttributePool, "auto": AutomaticPool}


def pool(kind: str = "auto") -> Description:
    """A pool of diverse learners, mixed online; there is nothing to tune.

    Parameters
    ----------
    kind : {"auto", "votes", "attributes"}
        "votes" is for voters and raters: online logits with several priors and memories, and one that is fitted again
        and again, mixed by which was best recently. "attributes" is for numbers and words: a few diverse learners on
        attributes scaled online, mixed by a logit. "auto" takes the one that suits the instances, or both.

    Returns
    -------
    learner
        A description, to be run or composed.

    See Also
    --------
    vr_combine : the combination that the papers describe.

    Examples
    --------
    >>> import linmax
    >>> print(linmax.pool())
    auto
    >>> data = linmax.datasets.majority_problem(trials=1000, seed=1)
    >>> votes = linmax.instances(votes=data.votes)
    >>> int(linmax.run(linmax.pool("votes"), votes, data.labels).mistakes[-1]) < 40
    True
    """
    return POOLS[one_of("kind", kind, POOLS)]()


def vr_combine(
    rules: Sequence[LearnerLike] | None = None,
    s: int = 100,
    u: float = 5,
    h: int = 20,
    w: int = 100,
    r: int = 100,
    d: int = 100,
    scale: str = "l2",
) -> Voted:
    """VR-Combine: voting over the best so far of many recycled rules and their averages.

    Parameters
    ----------
    rules
        Plain rules, each taken recycled, as it is and averaged. By default the 31 of the paper (`rules.paper_pool`),
        which make 62 algorithms.
    s, u
        See `recycle`.
    h, w, r, d, scale
        See `vote`.

    References
    ----------
    Mesterharm and Hsu, sections V to VII.

    Returns
    -------
    learner
        A description, to be run or composed.

    Examples
    --------
    >>> import linmax
    >>> print(linmax.vr_combine())
    VR-combine
    >>> data = linmax.datasets.majority_problem(trials=1000, seed=1)
    >>> trace = linmax.run("VR-combine", linmax.instances(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 120
    True
    """
    found = paper_pool() if rules is None else as_learners(rules)
    for rule in found:
        if not isinstance(rule, Rule):
            raise ValueError(f"rules must be plain rules, which are then recycled and averaged; got {rule}")
    recycled = [recycle(rule, s, u) for rule in found]
    return Voted(best_of_both(recycled, pool_name(recycled) if rules is None else ""), h, w, r, d, scale)


def pool_name(recycled: Sequence[Any]) -> str:
    """The notation of a combination of the papers' rules, all recycled alike: "R(s=200)-combine"."""
    return f"{str(recycled[0]).partition('-')[0]}-combine"


def best_of_both(learners: Sequence[Any], pool: str = "") -> Combined:
    """The best of these learners and of their averages; ``pool`` names a list that is too long to print."""
    return Combined((*learners, *(average(learner) for learner in learners)), "best", 0.5, pool)
