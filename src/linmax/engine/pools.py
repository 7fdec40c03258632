"""Pools of learners: those of Mesterharm and Hsu, and smaller, stronger ones for votes and for attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from linmax.core.contract import Rule
from linmax.learners.attributes.pool import AttributePool
from linmax.learners.auto import AutomaticPool
from linmax.learners.votes.pool import VotesPool
from linmax.rules import alma, perceptron, winnow
from linmax.techniques import average, recycle
from linmax.techniques.combining import Combined
from linmax.techniques.technique import LearnerLike, as_learners
from linmax.techniques.voting import Voted
from linmax.util.checks import one_of

__all__ = ["POOLS", "best_of_both", "paper_pool", "pool_name", "vr_combine"]

# Winnow's factors: the paper names 1.01, 1.03, 1.2, 1.25, 1.3, 1.35, 1.5, 1.6 of its 15; the rest is filled in.
PAPER_ALPHAS = (1.01, 1.03, 1.05, 1.07, *(round(1.1 + 0.05 * i, 2) for i in range(11)))
PAPER_NORMS = tuple(2.0 + 0.5 * i for i in range(15))


@cache
def _paper_rules() -> tuple[Rule, ...]:
    return *(winnow(alpha) for alpha in PAPER_ALPHAS), perceptron(), *(alma(p) for p in PAPER_NORMS)


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
    >>> len(linmax.paper_pool())
    31
    """
    return list(_paper_rules())


POOLS: dict[str, Callable[[], Any]] = {"votes": VotesPool, "attributes": AttributePool, "auto": AutomaticPool}


def vr_combine(
    pool: str | Sequence[LearnerLike] = "papers",
    s: int = 100,
    u: float = 5,
    h: int = 20,
    w: int = 100,
    r: int = 100,
    d: int = 100,
    scale: str = "l2",
) -> Any:
    """VR-Combine: voting over the best so far of many recycled rules and their averages; or a smaller, stronger pool.

    Parameters
    ----------
    pool
        "papers": the 62 algorithms of the paper (31 rules and their averages, all recycled), or rules of your own,
        each taken recycled, plain and averaged. Or what goes beyond the paper, with nothing to tune and no vote over
        saved hypotheses: "votes": online logits with several priors and memories, and one that is refitted, mixed
        by which was best recently (`linmax.learners.votes`). "attributes": a few diverse learners on attributes
        scaled online, fused by a logit (`linmax.learners.attributes`). "auto": the one for votes and
        scores, the one for attributes, or, where there are both, the first over the votes and the second's members
        together.
    s, u
        See `recycle`; with "papers" and lists only, like all that follow.
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
    >>> data = linmax.majority_problem(trials=1000, seed=1)
    >>> trace = linmax.run("VR-combine", linmax.experts(votes=data.votes), data.labels)
    >>> int(trace.mistakes[-1]) < 120
    True
    >>> int(linmax.run(linmax.vr_combine("votes"), linmax.experts(votes=data.votes), data.labels).mistakes[-1]) < 40
    True
    """
    if isinstance(pool, str) and pool != "papers":
        one_of("pool", pool, ["papers", *POOLS])
        if (s, u, h, w, r, d, scale) != (100, 5, 20, 100, 100, 100, "l2"):
            raise ValueError(f"pool={pool!r} has nothing to tune; s, u, h, w, r, d and scale are of the papers' pool")
        return POOLS[pool]()
    rules = paper_pool() if isinstance(pool, str) else as_learners(pool)
    for rule in rules:
        if not isinstance(rule, Rule):
            raise ValueError(f"pool must hold plain rules, which are then recycled and averaged; got {rule}")
    recycled = [recycle(rule, s, u) for rule in rules]
    named = isinstance(pool, str)
    return Voted(best_of_both(recycled, pool_name(recycled) if named else ""), h, w, r, d, scale)


def pool_name(recycled: Sequence[Any]) -> str:
    """The notation of a combination of the papers' rules, all recycled alike: "R(s=200)-combine"."""
    return f"{str(recycled[0]).partition('-')[0]}-combine"


def best_of_both(learners: Sequence[Any], pool: str = "") -> Combined:
    """The best of these learners and of their averages; ``pool`` names a list that is too long to print."""
    return Combined((*learners, *(average(learner) for learner in learners)), "best", 0.5, pool)
