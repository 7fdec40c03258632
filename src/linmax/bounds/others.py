"""Bounds of other learners, and what techniques do to a bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from linmax.bounds.arguments import above, amount, count, fraction, lowest_point, number
from linmax.bounds.documentation import documented


@documented("Bound on the mistakes.", negated="Whether the literals are x and 1 - x.")
def elimination(n: int, negated: bool = False) -> float:
    """Mistakes of the elimination algorithm on disjunctions: n; n + 1 with 2n literals (the first removes n).

    Source: Valiant (1984); Littlestone (1988).

    Examples
    --------
    >>> elimination(10), elimination(10, negated=True)
    (10.0, 11.0)
    """
    return count("n", n, 1) + (1.0 if negated else 0.0)


@documented(
    "Bound on the total square loss.",
    loss="Square loss of the comparator, summed.",
    span="Length of the interval in which attributes lie.",
    c="Factor of the rate c/span^2, between 0 and 2.",
)
def exponentiated_gradient(learned: float, loss: float, span: float, c: float) -> float:
    """Total square loss of EG with rate c/span^2 on the simplex.

    Conditions: the attributes of every instance lie in an interval of length ``span``; ``loss`` = sum (u.x
    - y)^2 of a comparator on the simplex; ``learned`` its `divergence`; 0 < c < 2.

        sum (yhat - y)^2 <= 2/(2 - c) * loss + span^2/c * learned

    EG+- with total weight U is EG on [Ux, -Ux]: span = 2 U max|x_i|.

    Source: Kivinen and Warmuth (1997), theorem 5.10 in another parametrisation.

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


@documented("Bound on the mistakes.", beta="Factor by which a mistake reduces the weight of a member, between 0 and 1.")
def weighted_majority(members: int, best: float, beta: float = 0.5) -> float:
    """Mistakes of the weighted majority of whole algorithms, each weighted by beta^(its mistakes).

        M <= (ln v + m ln(1/beta)) / ln(2/(1 + beta)),   v = members, m = mistakes of the best

    Holds for any number of classes: on a mistake the label had at most half of the weight.

    Source: Littlestone and Warmuth (1994).

    Examples
    --------
    >>> round(weighted_majority(members=62, best=100, beta=0.9), 1)
    285.9
    """
    members_, best, beta = count("members", members, 1), amount("best", best), fraction("beta", beta)
    return (math.log(members_) - best * math.log(beta)) / math.log(2.0 / (1.0 + beta))


@documented("Best beta.")
def best_beta(members: int, best: float) -> float:
    """The beta that makes `weighted_majority` least when the best member makes ``best`` mistakes.

    Source: Littlestone and Warmuth (1994).

    Examples
    --------
    >>> best_beta(62, 100) > best_beta(62, 10)
    True
    """
    count("members", members, 1), amount("best", best)
    return lowest_point(lambda beta: weighted_majority(members, best, beta), 1e-9, 1.0 - 1e-9)


@documented(
    "Bound on the regret, in nats for log loss.",
    share="Part alpha of its weight that each member gives away after a trial.",
    rate="Rate eta with which the loss is mixable: 1 for log loss.",
    first="First weight of the member with which the sequence begins; 1/m by default.",
)
def fixed_share(
    members: int, trials: int, switches: int, share: float, rate: float = 1.0, first: float | None = None
) -> float:
    """Regret of fixed share: its log loss minus that of any sequence of members with this many switches.

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


@documented("Share of the weight to give away.")
def best_share_rate(trials: int, switches: int) -> float:
    """The share that makes `fixed_share` least: s/(T - 1).

    Source: Herbster and Warmuth (1998).

    Examples
    --------
    >>> best_share_rate(trials=101, switches=5)
    0.05
    """
    T, s = count("trials", trials, 2), count("switches", switches, 0)
    if s > T - 1.0:
        raise ValueError(f"switches must be <= trials - 1, got {switches!r}; try {int(T) - 1}")
    return s / (T - 1.0)


@documented("Bound on the updates.", uses="Largest number of updates that one instance may cause.")
def recycling(bound: Callable[..., float], uses: int, *, noise: float = 0.0, **known: Any) -> float:
    """Updates of a recycling learner, including those on stored instances: the base bound with noise ``uses`` * N.

    Conditions: an instance may cause at most ``uses`` updates in all; ``bound`` is the base rule's,
    ``known`` the rest of its arguments.

    Source: Mesterharm and Hsu; the instances that cause updates form a sequence in which each occurs
    ``uses`` times at most.

    Examples
    --------
    >>> from linmax.bounds import perceptron
    >>> recycling(perceptron, 5, noise=0.2, radius=1, norm=1, margin=1) == perceptron(1, 1, 1, noise=1)
    True
    """
    return float(bound(noise=count("uses", uses, 1) * amount("noise", noise), **known))


@documented(
    "Bound on the mistakes.",
    mistakes="Mistakes M of the basic algorithm.",
    restarts="Number of restarts of the vote, see `most_restarts`.",
)
def voting(mistakes: float, restarts: int) -> float:
    """Mistakes of voting over hypotheses that falls back on its basic algorithm: 2 M + restarts + 1.

    Conditions: the vote is followed while it has made no more mistakes than the basic algorithm since the
    last restart, the basic algorithm otherwise; M is what the basic algorithm makes.

    Proof: between restarts, mistakes made while following the vote number at most one more than those of
    the basic algorithm.

    Source: Mesterharm and Hsu.

    Examples
    --------
    >>> voting(mistakes=50, restarts=2)
    103.0
    """
    return 2.0 * amount("mistakes", mistakes) + count("restarts", restarts, 0) + 1.0


@documented("Largest number of restarts.", wait="Wait d before the first restart.")
def most_restarts(trials: int, wait: int) -> int:
    """Largest number of restarts of voting when the wait doubles each time: floor(lg(trials/wait + 1)).

    Source: Mesterharm and Hsu.

    Examples
    --------
    >>> most_restarts(trials=5000, wait=100)
    5
    """
    trials_, wait_ = int(count("trials", trials, 0)), int(count("wait", wait, 1))
    return (trials_ // wait_ + 1).bit_length() - 1


@documented(
    "Largest distance, for every sequence.",
    step="Size g of a step of the levels, > 0.",
    miss="Desired share a of misses.",
)
def adaptive_coverage(trials: int, step: float, miss: float = 0.1) -> float:
    """Largest distance of the share of misses of adaptive conformal inference from the desired one:
    (max(a, 1 - a) + g) / (T g).

    Conditions: the sets of T trials have the levels a_1 = a = ``miss``, a_{t+1} = a_t + g (a - e_t), e_t being 1 if the
    set of trial t misses the label and else 0, g the ``step``; sets of level 0 or less hold all classes, those of level
    1 or more none. For every sequence of trials, whoever chose it, and any scores.

    Source: Gibbs and Candes (2021), proposition 4.1: the levels stay within [-g, 1 + g], and their sum telescopes.

    Examples
    --------
    >>> round(adaptive_coverage(trials=8000, step=0.01), 4)
    0.0114
    """
    g, asked = above("step", step, 0.0, 0.02), fraction("miss", miss)
    return (max(asked, 1.0 - asked) + g) / (count("trials", trials, 1) * g)
