"""Bounds of techniques, and of other learners."""

from __future__ import annotations

import math
from collections.abc import Callable

from linmax.theory.bounds.arguments import above, amount, between, count, fraction, inside, lowest_point
from linmax.theory.bounds.declaration import declared

# -- techniques and other learners ------------------------------------------------------------------------------------


@declared("Bound on the mistakes.", negated="Whether the literals are x and 1 - x.")
def elimination(n: int, negated: bool = False) -> float:
    """Mistakes of the elimination algorithm on disjunctions: n; n + 1 with 2n literals (the first removes n).

    Source: Valiant (1984); Littlestone (1988).

    Examples
    --------
    >>> elimination(10), elimination(10, negated=True)
    (10.0, 11.0)
    """
    return n + (1.0 if negated else 0.0)


@declared(
    "Bound on the total square loss.",
    loss="Square loss of the comparator, summed.",
    span=("Length of the interval in which attributes lie.", amount),
    c=("Factor of the rate c/span^2, between 0 and 2.", inside(0.0, 2.0, 1.0)),
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
    return 2.0 / (2.0 - c) * loss + span**2 / c * learned


@declared(
    "Bound on the mistakes.",
    beta=("Factor by which a mistake reduces the weight of a member, between 0 and 1.", fraction),
)
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
    return (math.log(members) - best * math.log(beta)) / math.log(2.0 / (1.0 + beta))


@declared("Best beta.")
def best_beta(members: int, best: float) -> float:
    """The beta that makes `weighted_majority` least when the best member makes ``best`` mistakes.

    Source: Littlestone and Warmuth (1994).

    Examples
    --------
    >>> best_beta(62, 100) > best_beta(62, 10)
    True
    """
    return lowest_point(lambda beta: weighted_majority(members, best, beta), 1e-9, 1.0 - 1e-9)


@declared(
    "Bound on the regret, in nats for log loss.",
    share=("Part alpha of its weight that each member gives away after a trial.", between(0.0, 1.0, 0.001)),
    rate=("Rate eta with which the loss is mixable: 1 for log loss.", above(0.0, 1.0)),
    first=("First weight of the member with which the sequence begins; 1/m by default.", fraction),
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
    m, s, changes = members, switches, trials - 1 if members > 1 else 0  # one member has nobody to share with
    if s > changes:
        raise ValueError(f"switches must be <= trials - 1, and 0 of one member, got {switches:g}; try 0")
    kept, cost = changes - s, math.log(m) if first is None else -math.log(first)
    if s > 0.0:
        cost += s * (math.log(m - 1.0) - math.log(share)) if share > 0.0 else math.inf
    if kept > 0.0:
        cost -= kept * math.log1p(-share) if share < 1.0 else -math.inf
    return cost / rate


@declared("Share of the weight to give away.", trials=count(2))
def best_share_rate(trials: int, switches: int) -> float:
    """The share that makes `fixed_share` least: s/(T - 1).

    Source: Herbster and Warmuth (1998).

    Examples
    --------
    >>> best_share_rate(trials=101, switches=5)
    0.05
    """
    if switches > trials - 1:
        raise ValueError(f"switches must be <= trials - 1, got {switches:g}; try {trials - 1:g}")
    return switches / (trials - 1)


@declared("Bound on the updates.", uses=("Largest number of updates that one instance may cause.", count(1)))
def recycling(bound: Callable[..., float], uses: int, *, noise: float = 0.0, **known: float) -> float:
    """Updates of a recycling learner, including those on stored instances: the base bound with noise ``uses`` * N.

    Conditions: an instance may cause at most ``uses`` updates in all; ``bound`` is the base rule's,
    ``known`` the rest of its arguments.

    Source: Mesterharm and Hsu; the instances that cause updates form a sequence in which each occurs
    ``uses`` times at most.

    Examples
    --------
    >>> from linmax.theory.bounds import perceptron
    >>> recycling(perceptron, 5, noise=0.2, radius=1, norm=1, margin=1) == perceptron(1, 1, 1, noise=1)
    True
    """
    return float(bound(noise=uses * noise, **known))


@declared(
    "Bound on the mistakes.",
    mistakes=("Mistakes M of the basic algorithm.", amount),
    restarts=("Number of restarts of the vote, see `most_restarts`.", count(0)),
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
    return 2.0 * mistakes + restarts + 1.0


@declared("Largest number of restarts.", wait=("Wait d before the first restart.", count(1)), trials=count(0))
def most_restarts(trials: int, wait: int) -> int:
    """Largest number of restarts of voting when the wait doubles each time: floor(lg(trials/wait + 1)).

    Source: Mesterharm and Hsu.

    Examples
    --------
    >>> most_restarts(trials=5000, wait=100)
    5
    """
    return (int(trials) // int(wait) + 1).bit_length() - 1


@declared(
    "Largest distance, for every sequence.",
    step=("Size g of a step of the levels, > 0.", above(0.0, 0.02)),
    miss=("Desired share a of misses.", fraction),
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
    return (max(miss, 1.0 - miss) + step) / (trials * step)


# -- bandits ----------------------------------------------------------------------------------------------------------


def revealed_share(classes: float, gamma: float) -> float:
    """Probability that the label of a trial that B would learn from is revealed."""
    return 1.0 if classes <= 2 else gamma / classes


@declared(
    "Bound on the expected mistakes; infinite where gamma is 0 and there are more than two classes.",
    gamma=("Share of trials in which a class is drawn at random, from 0 to 1.", between(0.0, 1.0, 0.1)),
    trials=count(0),
)
def bandit(
    bound: Callable[..., float], trials: int, classes: int, gamma: float, *, noise: float = 0.0, **known: float
) -> float:
    """Expected mistakes of a rule that tries a class and sees only whether it is right.

    Conditions: k = ``classes``, all known from the start. With probability gamma the class tried is drawn from all k,
    otherwise it is the prediction. The rule updates only where its prediction is wrong or tied. It is shown the trials
    whose label comes to light: those in which the class tried is right (where the prediction is tied, only if that
    class was drawn), and for k = 2 all. An instance and its label may depend on earlier draws, not on its own.
    ``bound`` is that of the rule with all labels; it must be concave in the noise, as those of the Perceptron, p-norm
    rules and both Winnows are. ``noise`` is the hinge loss of u over all trials, or its mean.

        E[M] <= gamma (1 - 1/k) T + (1 - gamma) bound(r N) / r,   r = gamma/k,   r = 1 for k = 2

    For the Perceptron bound(r N)/r is its bound with R^2 k/gamma for R^2. Without noise the best gamma is about
    sqrt(k/T) rho, rho = R |u|/margin, and gives about 2 sqrt(k T) rho mistakes.

    Proof: let V_t be 1 if the rule would update at trial t if it were shown it, and S_t be 1 if it is shown it. If
    V_t = 1, then S_t = 1 if and only if the label itself is drawn, which has the probability r whatever happened
    before. The updates number sum S_t V_t, and the bound on the trials shown and updated on gives
    sum S_t V_t <= bound(sum S_t V_t loss_t). In the mean, and by Jensen's inequality,
    r E[sum V_t] <= bound(r E[sum V_t loss_t]) <= bound(r N). Every wrong prediction has V_t = 1, so that their mean
    number P is at most bound(r N)/r. The class tried is wrong with probability 1 - gamma/k where the prediction is
    wrong, and gamma (1 - 1/k) where it is right: in all gamma (1 - 1/k) T + (1 - gamma) P. For k = 2 every S_t is 1.

    Source: derived here. The way of learning is that of Kakade, Shalev-Shwartz and Tewari (2008), Efficient bandit
    algorithms for online multiclass prediction, whose Banditron adds k/gamma times as much at a k/gamma-th of the
    trials.

    Examples
    --------
    >>> from linmax.theory.bounds import perceptron
    >>> round(bandit(perceptron, trials=10000, classes=4, gamma=0.04, radius=1, norm=1, margin=0.5), 6)
    684.0
    >>> bandit(perceptron, trials=10000, classes=2, gamma=0.0, radius=1, norm=1, margin=0.5)
    4.0
    """
    share = revealed_share(classes, gamma)
    if share == 0.0:
        return math.inf
    wrong = 0.0 if gamma == 1.0 else (1.0 - gamma) * float(bound(noise=share * noise, **known)) / share
    return gamma * (1.0 - 1.0 / classes) * trials + wrong


@declared("Best gamma.", trials=count(0))
def best_bandit_gamma(
    bound: Callable[..., float], trials: int, classes: int, *, noise: float = 0.0, **known: float
) -> float:
    """The gamma that makes `bandit` least; 0 for two classes, which need no draws.

    Source: derived here; found by search.

    Examples
    --------
    >>> from linmax.theory.bounds import perceptron
    >>> round(best_bandit_gamma(perceptron, trials=10000, classes=4, radius=1, norm=1, margin=0.5), 3)
    0.046
    """
    if classes == 2:
        return 0.0
    return lowest_point(lambda gamma: bandit(bound, trials, classes, gamma, noise=noise, **known), 1e-9, 1.0)
