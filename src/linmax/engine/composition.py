"""The techniques as functions: average, recycle, vote, combine, stack and vr_combine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from linmax.core.contract import Rule
from linmax.core.rivals import RIVALS
from linmax.learners import Auto, Whole
from linmax.learners.attributes import AttributePool
from linmax.learners.votes import VotesPool
from linmax.rules import REGISTRY, OwnRule, alma, perceptron, winnow
from linmax.techniques import bracketed
from linmax.techniques.averaging import Averaged
from linmax.techniques.combining import Combined, Stacked
from linmax.techniques.recycling import DEFAULTS, Recycled, default_passes
from linmax.techniques.voting import Voted
from linmax.util.checks import one_of

__all__ = [
    "Learner",
    "as_learner",
    "as_rule",
    "average",
    "combine",
    "paper_pool",
    "recycle",
    "rivals",
    "stack",
    "vote",
    "vr_combine",
]

Learner = Rule | Averaged | Recycled | Voted | Combined | Stacked | Whole | Auto


def as_learner(learner: Any) -> Learner:
    """A learner from whatever a user may write for one: a description, a rule of their own, or text."""
    if isinstance(learner, Learner):
        return learner
    if isinstance(learner, OwnRule):
        return learner()
    if isinstance(learner, str):
        from linmax.engine.notation import parse  # the text is read with the functions of this module

        return parse(learner)
    if callable(learner) and learner in REGISTRY.values():
        raise TypeError(
            f"learner must be a rule, got the function {learner.__name__}; call it: {learner.__name__}(...)"
        )
    raise TypeError(f"learner must be a rule, a technique or text such as 'AR-winnow(1.1)', got {learner!r}")


def as_rule(learner: Any) -> Rule:
    """The same where only a plain rule will do."""
    rule = as_learner(learner)
    if not isinstance(rule, Rule):
        raise TypeError(f"a plain rule is needed here, got {rule}")
    return rule


def as_learners(learners: Any) -> list[Learner]:
    """The same for a list of them."""
    if isinstance(learners, (str, Learner)) or not isinstance(learners, Iterable):
        raise TypeError(f"learners must be a list, got {learners!r}; put it in square brackets")
    return [as_learner(learner) for learner in learners]


def average(learner: Any, scale: str = "raw", fade: bool = False) -> Averaged:
    """A-B: predict with the average of the hypotheses with which B met each trial; B itself learns as before.

    Before trial t the weights are (1/t) (w_1 + ... + w_t), w_s those of B at trial s. Kept lazily: a trial without
    update costs nothing extra, one with an update O(nonzeros).

    Parameters
    ----------
    learner
        A rule, or a recycled one.
    scale
        "raw": the weights as they are. "max", "l1": each divided by its largest magnitude, by the sum of its
        magnitudes, so that late hypotheses of a multiplicative rule do not drown early ones.
    fade
        Weigh w_s by s: (w_1 + 2 w_2 + ... + t w_t) / (t (t + 1) / 2), so that early hypotheses fade.

    References
    ----------
    Freund and Schapire (1998), Large margin classification using the perceptron algorithm. Mesterharm and Hsu,
    section V.

    Examples
    --------
    >>> import linmax
    >>> print(linmax.average("perceptron"))
    A-perceptron
    >>> print(linmax.average("winnow(1.1)", scale="max", fade=True))
    A(scale=max, fade=True)-winnow(1.1)
    """
    return Averaged(as_learner(learner), scale, fade)


def rivals(learner: Any, which: str) -> Rule:
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


def recycle(learner: Any, s: int = 100, u: float = 5, passes: int | None = None, budget: int | None = None) -> Recycled:
    """R-B: after each update show the s most recent instances again, each for at most u updates, until none errs.

    Parameters
    ----------
    s
        Instances kept.
    u
        Updates that one instance may cause; ``math.inf`` for data without noise.
    passes
        Most passes after one update. Needed only to end u = infinity on noisy data (there 1000); otherwise s * u
        updates end it.
    budget
        Look-ups of a kept instance for each trial, on average: a trial adds as many, and those not needed are kept
        for later, up to 1000 trials' worth. Recycling then goes on where it stopped the last time, and stops when
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
    return Recycled(as_learner(learner), s, u, default_passes(u) if passes is None else passes, budget)


def vote(learner: Any, h: int = 20, w: int = 100, r: int = 100, d: int = 100, scale: str = "l2") -> Voted:
    """V-B: hypotheses saved at doubling distances vote together with the current one.

    Parameters
    ----------
    learner
        A rule, its averaged or recycled form, or a combination by "best".
    h
        Saved hypotheses.
    w
        Largest window, in trials, within which a better one may replace the one just saved.
    r
        Recent instances on which "better" is judged.
    d
        Trials before a restart is considered; doubled at each restart.
    scale
        What a hypothesis is divided by before it votes: "l2" or "l1" norm, or nothing ("raw").

    Notes
    -----
    At most 2 M_B + restarts + 1 mistakes, restarts <= lg(T/d + 1).

    References
    ----------
    Mesterharm and Hsu, section V.

    Examples
    --------
    >>> import linmax
    >>> print(linmax.vote("A-perceptron", h=10))
    V(h=10)A-perceptron
    """
    return Voted(as_learner(learner), h, w, r, d, scale)


def combine(learners: Sequence[Any], how: str = "best", beta: float = 0.5) -> Combined:
    """Run several learners on every trial and combine their predictions.

    Parameters
    ----------
    how
        "best": follow the one with the fewest mistakes so far. "wma": each votes with weight beta^mistakes (the
        Weighted Majority Algorithm: at most (ln v + m ln(1/beta)) / ln(2/(1+beta)) mistakes over v members, the best
        of which makes m). "weighted": their scores, each divided by its root mean square about the classes' mean over
        the trials before, are added with weights exp(-eta (M_i - M_min)), eta = sqrt(2 ln v / (M_min + 1)); of linear
        members this is one weight vector.
    beta
        For "wma", in (0, 1).

    References
    ----------
    Mesterharm and Hsu, section V. Littlestone and Warmuth (1994), The weighted majority algorithm.

    Examples
    --------
    >>> import linmax
    >>> print(linmax.combine(["perceptron", "A-winnow(1.1)"]))
    combine(perceptron, A-winnow(1.1))
    """
    return Combined(tuple(as_learners(learners)), how, beta)


def stack(learners: Sequence[Any], fusion: Any = "perceptron") -> Stacked:
    """The members' scores are the sub-experts of another learner, ``fusion``.

    Each member's k scores (of its weights at 2-norm 1) are centred, divided by their running root mean square, and
    made shares in [0, 1] by softmax.

    Examples
    --------
    >>> import linmax
    >>> print(linmax.stack(["perceptron", "winnow(1.1)"], fusion="winnow(1.05)"))
    stack(perceptron, winnow(1.1), fusion=winnow(1.05))
    """
    return Stacked(tuple(as_learners(learners)), as_learner(fusion))


# Winnow's factors: the paper names 1.01, 1.03, 1.2, 1.25, 1.3, 1.35, 1.5, 1.6 of its 15; the rest is filled in.
PAPER_ALPHAS = (1.01, 1.03, 1.05, 1.07, *(round(1.1 + 0.05 * i, 2) for i in range(11)))
PAPER_NORMS = tuple(2.0 + 0.5 * i for i in range(15))


def paper_pool() -> list[Rule]:
    """The 31 basic rules of Mesterharm and Hsu: 15 Winnows (positive weights), Perceptron, ALMA(p), p = 2 to 9.

    Examples
    --------
    >>> import linmax
    >>> len(linmax.paper_pool())
    31
    """
    return [*(winnow(alpha) for alpha in PAPER_ALPHAS), perceptron(), *(alma(p) for p in PAPER_NORMS)]


POOLS: dict[str, Callable[[], Learner]] = {"votes": VotesPool, "attributes": AttributePool, "auto": Auto}


def vr_combine(
    pool: str | Sequence[Any] = "papers",
    s: int = 100,
    u: float = 5,
    h: int = 20,
    w: int = 100,
    r: int = 100,
    d: int = 100,
    scale: str = "l2",
) -> Learner:
    """VR-Combine: voting over the best so far of many recycled rules and their averages; or a smaller, stronger pool.

    Parameters
    ----------
    pool
        "papers": the 62 algorithms of the paper (31 rules and their averages, all recycled), or rules of your own,
        each taken recycled, plain and averaged. Or what goes beyond the paper, with nothing to tune and no vote over
        saved hypotheses: "votes": on-line logits with several priors and memories, and one that is refitted, mixed
        by who was best lately (`linmax.learners.votes`). "attributes": three or four diverse learners on attributes
        scaled on-line, fused as sub-experts of AROW (`linmax.learners.attributes`). "auto": the one for votes and
        scores, the one for attributes, or, where there are both, the first over the votes and the second's members
        together.
    s, u
        See `recycle`; with "papers" and lists only, like all that follow.
    h, w, r, d, scale
        See `vote`.

    References
    ----------
    Mesterharm and Hsu, sections V to VII.

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
    return Voted(
        both(recycled, f"R{bracketed({'s': s, 'u': u}, DEFAULTS)}-combine" if named else ""), h, w, r, d, scale
    )


def both(learners: Sequence[Learner], pool: str = "") -> Combined:
    """The best of these learners and of their averages; ``pool`` names a list that is too long to print."""
    return Combined((*learners, *(average(learner) for learner in learners)), "best", 0.5, pool)
