"""From online to batch: what a mistake bound says about the error on instances yet to come."""

from __future__ import annotations

import math

from linmax.theory.bounds.arguments import amount, count
from linmax.theory.bounds.declaration import declared


@declared("Length of the run.")
def survival_run(mistakes: int, error: float, failure: float) -> int:
    """Number of instances in a row that a hypothesis must get right: ceil((1/eps) ln((M + 1)/delta)).

    Conditions: a learner that changes only on mistakes and makes at most M; the first hypothesis with such
    a run has error at most eps = ``error`` with probability 1 - delta, delta = ``failure``.

    Proof: a hypothesis of larger error has such a run with probability below (1 - eps)^s <= delta/(M + 1),
    and there are M + 1 hypotheses.

    Source: Littlestone (1989), From on-line to batch learning.

    Examples
    --------
    >>> survival_run(10, 0.1, 0.05), survival_run_printed(0.1, 0.05)
    (54, 30)
    """
    return math.ceil(math.log((mistakes + 1.0) / failure) / error)


@declared("Number of instances.")
def survival_examples(mistakes: int, error: float, failure: float) -> int:
    """Largest number of instances that `survival_run` needs: (M + 1) runs.

    Source: Littlestone (1989), From on-line to batch learning.

    Examples
    --------
    >>> survival_examples(10, 0.1, 0.05)
    594
    """
    return (int(mistakes) + 1) * survival_run(mistakes, error, failure)


@declared("Length of the run.")
def survival_run_unknown(hypothesis: int, error: float, failure: float) -> int:
    """`survival_run` without knowing M: ceil((1/eps) ln(i(i + 1)/delta)) for the i-th hypothesis, i >= 1.

    Source: derived here.

    Examples
    --------
    >>> [survival_run_unknown(i, 0.1, 0.05) for i in (1, 2, 3)]
    [37, 48, 55]
    """
    return math.ceil(math.log(hypothesis * (hypothesis + 1.0) / failure) / error)


@declared("Length of the run.")
def survival_run_printed(error: float, failure: float) -> int:
    """ceil((1/eps) ln(1/delta)), as theorem 9.1 of the lecture notes on linear learners prints it.

    It bounds the risk that *one given* hypothesis deceives; the algorithm tries up to M + 1
    (`survival_run`). The notes also print M runs in all where M + 1 may be needed.

    Source: lecture notes on linear learners, theorem 9.1.

    Examples
    --------
    >>> survival_run_printed(error=0.1, failure=0.05)
    30
    """
    return math.ceil(math.log(1.0 / failure) / error)


@declared("Error, at most 1.", run=("Correct predictions in a row.", count(0)))
def survival_error(run: int, failure: float, mistakes: int | None = None, hypothesis: int = 1) -> float:
    """The error that a run of correct predictions guarantees, for all hypotheses at once: 1 - d^(1/run).

    d = delta/(M + 1) when at most M = ``mistakes`` can be made, else delta/(i(i + 1)) for the i-th
    ``hypothesis``. Proof: a hypothesis of error e has a run of s or more with probability (1 - e)^s.

    Source: derived here.

    Examples
    --------
    >>> survival_error(54, 0.05, mistakes=10) < 0.1
    True
    >>> survival_error(0, 0.05, mistakes=10)
    1.0
    """
    share = failure / (hypothesis * (hypothesis + 1.0) if mistakes is None else mistakes + 1.0)
    return -math.expm1(math.log(share) / run) if run else 1.0


@declared(
    "Instances m1 to learn from and m2 to test with.", mistakes_only="Whether the learner is shown its mistakes only."
)
def two_phase_examples(mistakes: int, error: float, failure: float, mistakes_only: bool = True) -> tuple[int, int]:
    """Instances to learn and to test with in the two-phase conversion.

        m1 = ceil(max(4M/eps, (16/eps) ln(2/delta))),   m2 = ceil((32/eps) ln(2(M + 2)/delta))

    Run the learner over m1 instances and keep every hypothesis; with probability 1 - delta/2 one has error
    <= eps/2. The one with the fewest errors on m2 fresh instances has error <= eps with probability 1 -
    delta. The learner must be conservative, so that it has at most M + 1 hypotheses.

    Any other learner (``mistakes_only=False``) has up to m1. Of those used, q = ceil(log2(4/delta)) are drawn:

        m1 = ceil(max(8M/eps, (32/eps) ln(4/delta))),   m2 = ceil((32/eps) ln(2(q + 1)/delta))

    With probability 1 - delta/4 half of those used have error <= eps/2, and with 1 - delta/4 one of these is drawn.

    Proof: Chernoff's bounds; if all (or half of them) had larger error, m1 trials would make more than M mistakes.

    Source: after Littlestone (1989), who removes the ln M of the second phase.

    Examples
    --------
    >>> two_phase_examples(10, 0.1, 0.05), two_phase_examples(10, 0.1, 0.05, mistakes_only=False)
    ((591, 1976), (1403, 1846))
    """
    halves = 1.0 if mistakes_only else 2.0  # the other half of the hypotheses may be bad
    learn = max(4.0 * mistakes / error, 16.0 / error * math.log(2.0 * halves / failure))
    tested = mistakes + 1 if mistakes_only else two_phase_draws(failure)
    return math.ceil(halves * learn), math.ceil(32.0 / error * math.log(2.0 * (tested + 1.0) / failure))


@declared("Number of hypotheses.")
def two_phase_draws(failure: float) -> int:
    """Hypotheses drawn of a learner that is shown every trial: ceil(log2(4/delta)); see `two_phase_examples`.

    Source: the same as that of `two_phase_examples`.

    Examples
    --------
    >>> two_phase_draws(0.05)
    7
    """
    return math.ceil(math.log2(4.0 / failure))


@declared("Bound on the mean risk, at most 1.")
def average_risk(loss: float, trials: int, failure: float) -> float:
    """The mean risk of the hypotheses H_0..H_(n-1) used in n trials: M_n + sqrt(ln(1/delta) / (2n)).

    Conditions: independent instances, losses in [0, 1], M_n = ``loss`` their mean online; with probability
    1 - delta. For a convex loss the average hypothesis has no larger risk; for mistakes there is no such
    statement about averaged weights, but a hypothesis drawn at random has this risk in the mean.

    Proof: the difference between risk and loss of a trial lies in an interval of length 1; Azuma-Hoeffding.

    Source: Cesa-Bianchi, Conconi and Gentile (2004), proposition 1, where the constant is four times
    larger.

    Examples
    --------
    >>> round(average_risk(0.1, 1000, 0.05), 4), round(average_risk_printed(0.1, 1000, 0.05), 4)
    (0.1387, 0.1774)
    """
    return min(1.0, loss + math.sqrt(math.log(1.0 / failure) / (2.0 * trials)))


@declared("Bound on the mean risk, at most 1.")
def average_risk_printed(loss: float, trials: int, failure: float) -> float:
    """`average_risk` as printed: M_n + sqrt((2/n) ln(1/delta)); true, but twice as far from M_n as needed.

    Source: Cesa-Bianchi, Conconi and Gentile (2004), proposition 1.

    Examples
    --------
    >>> round(average_risk_printed(loss=0.1, trials=1000, failure=0.05), 4)
    0.1774
    """
    return min(1.0, loss + math.sqrt(2.0 * math.log(1.0 / failure) / trials))


@declared(
    "Penalty, infinite where nothing was tested.", tested=("Number n - t of instances after the hypothesis.", count(0))
)
def selection_penalty(trials: int, tested: int, failure: float) -> float:
    """Added to the error of H_t on the n - t instances after it: sqrt(ln(n(n + 1)/delta) / (2(n - t))).

    The hypothesis with the smallest sum is selected. All n sums bound their risks at once with probability
    1 - delta/(n + 1).

    Source: Cesa-Bianchi, Conconi and Gentile (2004), section III.

    Examples
    --------
    >>> round(selection_penalty(1000, 900, 0.05), 4)
    0.0966
    """
    return math.sqrt(math.log(trials * (trials + 1.0) / failure) / (2.0 * tested)) if tested else math.inf


@declared("Bound on the risk, at most 1.")
def selection_risk(loss: float, trials: int, failure: float) -> float:
    """The risk of the selected hypothesis: M_n + 6 sqrt(ln(2(n + 1)/delta) / n) with probability 1 - delta.

    Source: Cesa-Bianchi, Conconi and Gentile (2004), theorem 4; quoted, not derived here. The sum that was
    minimised, risk on the instances after it plus `selection_penalty`, is a bound of its own and usually
    far smaller.

    Examples
    --------
    >>> round(selection_risk(0.1, 100000, 0.05), 3)
    0.174
    """
    return min(1.0, loss + 6.0 * math.sqrt(math.log(2.0 * (trials + 1.0) / failure) / trials))


@declared(
    "Bound on the expected error, at most 1.",
    expected_bound=("Expected bound of `perceptron_deviations` for one trial more.", amount),
)
def voted_risk(trials: int, expected_bound: float) -> float:
    """Expected error of the voted Perceptron after n instances: 2/(n + 1) times its expected mistake bound.

    Conditions: independent instances; ``expected_bound`` = E[inf over u, gamma of `perceptron_deviations`]
    for n + 1 of them. It is the voted hypothesis that has the guarantee; averaged weights have none.

    Source: Freund and Schapire (1999), corollary 1.

    Examples
    --------
    >>> voted_risk(trials=999, expected_bound=50.0)
    0.1
    """
    return min(1.0, 2.0 * expected_bound / (trials + 1.0))
