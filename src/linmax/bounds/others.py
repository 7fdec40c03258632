"""Bounds of other learners, and what techniques do to a bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from linmax.bounds.arguments import above, amount, count, fraction, lowest_point, number

__all__ = [
    "adaptive_coverage",
    "best_beta",
    "best_share_rate",
    "elimination",
    "exponentiated_gradient",
    "fixed_share",
    "most_restarts",
    "recycling",
    "voting",
    "weighted_majority",
]


def elimination(n: int, negated: bool = False) -> float:
    """Mistakes of the elimination algorithm on disjunctions: n; n + 1 with 2n literals (the first removes n).

    Source: Valiant (1984); Littlestone (1988).

    Parameters
    ----------
    n
        Number of attributes.
    negated
        Whether the literals are x and 1 - x.

    Returns
    -------
    float
        Bound on the mistakes.

    Examples
    --------
    >>> elimination(10), elimination(10, negated=True)
    (10.0, 11.0)
    """
    return count("n", n, 1) + (1.0 if negated else 0.0)


def exponentiated_gradient(learned: float, loss: float, span: float, c: float) -> float:
    """Total square loss of EG with rate c/span^2 on the simplex.

    Conditions: the attributes of every instance lie in an interval of length ``span``; ``loss`` = sum (u.x
    - y)^2 of a comparator on the simplex; ``learned`` its `divergence`; 0 < c < 2.

        sum (yhat - y)^2 <= 2/(2 - c) * loss + span^2/c * learned

    EG+- with total weight U is EG on [Ux, -Ux]: span = 2 U max|x_i|.

    Source: Kivinen and Warmuth (1997), theorem 5.10 in another parametrisation.

    Parameters
    ----------
    learned
        The comparator's `divergence`.
    loss
        Square loss of the comparator, summed.
    span
        Length of the interval in which attributes lie.
    c
        Of the rate c/span^2, between 0 and 2.

    Returns
    -------
    float
        Bound on the total square loss.

    Examples
    --------
    >>> exponentiated_gradient(learned=2.0, loss=3.0, span=1.0, c=1.0)
    8.0
    """
    c = number("c", c)
    if not 0.0 < c < 2.0:
        raise ValueError(f"c must lie between 0 and 2, got {c!r}; try 1")
    learned, loss, span = amount("learned", learned), amount("loss", loss), amount("span", span)
    return 2.0 / (2.0 - c) * loss + span**2 / c * learned


def weighted_majority(members: int, best: float, beta: float = 0.5) -> float:
    """Mistakes of the weighted majority of whole algorithms, each weighted by beta^(its mistakes).

        M <= (ln v + m ln(1/beta)) / ln(2/(1 + beta)),   v = members, m = mistakes of the best

    Holds for any number of classes: on a mistake the label had at most half of the weight.

    Source: Littlestone and Warmuth (1994).

    Parameters
    ----------
    members
        Number of members.
    best
        Mistakes of the best member.
    beta
        Between 0 and 1: the factor by which a member loses weight for a mistake.

    Returns
    -------
    float
        Bound on the mistakes.

    Examples
    --------
    >>> round(weighted_majority(members=62, best=100, beta=0.9), 1)
    285.9
    """
    members_, best, beta = count("members", members, 1), amount("best", best), fraction("beta", beta)
    return (math.log(members_) - best * math.log(beta)) / math.log(2.0 / (1.0 + beta))


def best_beta(members: int, best: float) -> float:
    """The beta that makes `weighted_majority` least when the best member makes ``best`` mistakes.

    Source: Littlestone and Warmuth (1994).

    Parameters
    ----------
    members
        Number of members.
    best
        Mistakes of the best member.

    Returns
    -------
    float
        beta.

    Examples
    --------
    >>> best_beta(62, 100) > best_beta(62, 10)
    True
    """
    count("members", members, 1), amount("best", best)
    return lowest_point(lambda beta: weighted_majority(members, best, beta), 1e-9, 1.0 - 1e-9)


def fixed_share(
    members: int, trials: int, switches: int, share: float, rate: float = 1.0, first: float | None = None
) -> float:
    """How much more log loss fixed share has than any sequence of members that switches so often.

    Conditions: the mixture predicts sum w_i P_i(.); after the label each w_i is multiplied by P_i(label) and all are
    normalised; then every member gives the part alpha = ``share`` of its weight to the m - 1 others, in equal parts.
    Weights 1/m at first, or ``first`` for the member with which the sequence begins: then ln(1/first) for ln m.
    T = ``trials``; s = ``switches`` is how often the sequence changes its member.

        regret <= (ln m + s ln(m - 1) + s ln(1/alpha) + (T - 1 - s) ln(1/(1 - alpha))) / eta

    eta = ``rate`` is 1 for log loss, and for any other loss that is mixable with eta (weights multiplied by
    exp(-eta loss), predictions by its substitution). It holds for every data, and with equality where every other
    sequence of members has infinite loss. Where the share goes to all m members, alpha/m to each, it is this one with
    alpha (m - 1)/m for alpha.

    `best_share_rate` makes it least: ln m + s ln(m - 1) + (T - 1) H(s/(T - 1)), H the entropy in nats.

    Proof: the weights are those of Bayes' rule over all sequences, of which one with s switches has prior
    (1/m) (alpha/(m - 1))^s (1 - alpha)^(T - 1 - s).

    Source: Herbster and Warmuth (1998), Tracking the best expert.

    Parameters
    ----------
    members
        Number of members.
    trials
        Number of trials.
    switches
        How often the sequence of members changes its member.
    share
        alpha, the part of its weight that each member gives away after a trial.
    rate
        eta, with which the loss is mixable: 1 for log loss.
    first
        The first weight of the member with which the sequence begins; 1/m by default.

    Returns
    -------
    float
        Bound on the regret, in nats for log loss.

    Examples
    --------
    >>> round(fixed_share(members=7, trials=8000, switches=1, share=1e-3), 2)
    18.65
    >>> fixed_share(members=7, trials=8000, switches=0, share=0.0) == math.log(7)
    True
    """
    m, T, s = count("members", members, 1), count("trials", trials, 1), count("switches", switches, 0)
    share, rate = number("share", share), number("rate", rate)
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share must lie from 0 to 1, got {share!r}; try 0.001")
    if not rate > 0.0:
        raise ValueError(f"rate must be > 0, got {rate!r}; 1 is for log loss")
    if s > (T - 1.0 if m > 1.0 else 0.0):
        raise ValueError(f"switches must be <= trials - 1, and 0 of one member, got {switches!r}; try 0")
    kept = T - 1.0 - s if m > 1.0 else 0.0  # one member has nobody to share with
    cost = math.log(m) if first is None else -math.log(fraction("first", first))
    if s > 0.0:
        cost += s * (math.log(m - 1.0) - math.log(share)) if share > 0.0 else math.inf
    if kept > 0.0:
        cost -= kept * math.log1p(-share) if share < 1.0 else -math.inf
    return cost / rate


def best_share_rate(trials: int, switches: int) -> float:
    """The share that makes `fixed_share` least: s/(T - 1).

    Source: Herbster and Warmuth (1998).

    Parameters
    ----------
    trials
        Number of trials.
    switches
        How often the sequence of members changes its member.

    Returns
    -------
    float
        The share.

    Examples
    --------
    >>> best_share_rate(trials=101, switches=5)
    0.05
    """
    T, s = count("trials", trials, 2), count("switches", switches, 0)
    if s > T - 1.0:
        raise ValueError(f"switches must be <= trials - 1, got {switches!r}; try {int(T) - 1}")
    return s / (T - 1.0)


def recycling(bound: Callable[..., float], uses: int, *, noise: float = 0.0, **known: Any) -> float:
    """All updates of a recycling learner, on stored instances too: the base bound with noise ``uses`` * N.

    Conditions: an instance may cause at most ``uses`` updates in all; ``bound`` is the base rule's,
    ``known`` the rest of its arguments.

    Source: Mesterharm and Hsu; the instances that cause updates form a sequence in which each occurs
    ``uses`` times at most.

    Parameters
    ----------
    bound
        The bound of the rule inside, a function of this module.
    uses
        How many updates one instance may cause.
    noise
        N, the hinge loss of u: the sum over trials of max(0, margin - u.z).
    known
        The other arguments of ``bound``, by name.

    Returns
    -------
    float
        Bound on the updates.

    Examples
    --------
    >>> from linmax.bounds import perceptron
    >>> recycling(perceptron, 5, noise=0.2, radius=1, norm=1, margin=1) == perceptron(1, 1, 1, noise=1)
    True
    """
    return float(bound(noise=count("uses", uses, 1) * amount("noise", noise), **known))


def voting(mistakes: float, restarts: int) -> float:
    """Mistakes of voting over hypotheses that falls back on its basic algorithm: 2 M + restarts + 1.

    Conditions: the vote is followed while it has made no more mistakes than the basic algorithm since the
    last restart, the basic algorithm otherwise; M is what the basic algorithm makes.

    Proof: between restarts, mistakes made while following the vote number at most one more than those of
    the basic algorithm.

    Source: Mesterharm and Hsu.

    Parameters
    ----------
    mistakes
        M, the mistakes of the basic algorithm.
    restarts
        How often the vote restarts, see `most_restarts`.

    Returns
    -------
    float
        Bound on the mistakes.

    Examples
    --------
    >>> voting(mistakes=50, restarts=2)
    103.0
    """
    return 2.0 * amount("mistakes", mistakes) + count("restarts", restarts, 0) + 1.0


def most_restarts(trials: int, wait: int) -> int:
    """How often voting can restart when the wait doubles each time: floor(lg(trials/wait + 1)).

    Source: Mesterharm and Hsu.

    Parameters
    ----------
    trials
        Number of trials.
    wait
        d, the wait before the first restart.

    Returns
    -------
    int
        The largest number of restarts.

    Examples
    --------
    >>> most_restarts(trials=5000, wait=100)
    5
    """
    trials_, wait_ = int(count("trials", trials, 0)), int(count("wait", wait, 1))
    return (trials_ // wait_ + 1).bit_length() - 1


def adaptive_coverage(trials: int, step: float, miss: float = 0.1) -> float:
    """How far the share of misses of adaptive conformal inference can be from that asked for:
    (max(a, 1 - a) + g) / (T g).

    Conditions: the sets of T trials have the levels a_1 = a = ``miss``, a_{t+1} = a_t + g (a - e_t), e_t being 1 if the
    set of trial t misses the label and else 0, g the ``step``; sets of level 0 or less hold all classes, those of level
    1 or more none. For every sequence of trials, whoever chose it, and any scores.

    Source: Gibbs and Candes (2021), proposition 4.1: the levels stay within [-g, 1 + g], and their sum telescopes.

    Parameters
    ----------
    trials
        T, the number of trials.
    step
        g, by how much levels move, > 0.
    miss
        a, the share of misses that is asked for.

    Returns
    -------
    float
        The largest distance, for every sequence.

    Examples
    --------
    >>> round(adaptive_coverage(trials=8000, step=0.01), 4)
    0.0114
    """
    g, asked = above("step", step, 0.0, 0.02), fraction("miss", miss)
    return (max(asked, 1.0 - asked) + g) / (count("trials", trials, 1) * g)
