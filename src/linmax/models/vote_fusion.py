"""`VoteFusion`: online fusion of votes or scores as a scikit-learn estimator."""

from __future__ import annotations

from sklearn.base import BaseEstimator, ClassifierMixin

from linmax.models.fusion import OnLineFusion

__all__ = ["VoteFusion"]


class VoteFusion(ClassifierMixin, OnLineFusion, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no annotations
    """Learn on-line how far to trust each of several voters, and fuse them.

    Each trial is predicted before its label is seen, then learned from; the order of the rows is the order of the
    trials. So `report` can say what the fusion was worth on the very trials that it learned from.

    Parameters
    ----------
    learner
        Any learner of the library, described or as text. The default has nothing to tune (see `linmax.vr_combine`).
    classes
        All classes, in order. Without it they are those met in votes and labels, and more may join at any
        `partial_fit`.
    discover
        Without ``classes``: from when on a class may be predicted. "votes": from the first vote for it on, or after its
        first label; also by `predict`, where a class was never met before (it has no column in `predict_proba`, whose
        rows then add up to less than 1). "labels": after its first label only (Mesterharm 2001, section 6.2).
    normalize
        For scores only: under which normalizations the learner gets each rater (see `linmax.normalization`).
    abstain
        A label that means abstention, besides None, nan, pandas' NA and empty text; or a set of them.
    by
        Side columns among the votes, such as a subject or a source: a name, or a place where votes have no names, or a
        list of these. They are not voters: for each of their values every voter gets a copy, which votes where the
        value holds, so that a voter may be trusted on one subject and not on another (see `linmax.experts`). Where a
        value is missing or was never met, the voters themselves decide. For votes only.
    thresholds
        Let the learner prefer a class regardless of votes.
    tie, update_on_tie
        As in `linmax.run`.

    Notes
    -----
    Votes are (trials, voters) labels: an array, lists, a dict of columns, or a DataFrame of pandas or polars, whose
    columns name the voters. Scores are (trials, raters, classes) numbers, or a dict from a rater's name to its (trials,
    classes) array; the classes are then fixed by the first call: those given, or else the labels, sorted, when there
    are as many, or else 0 to k - 1. A voter that is known by name may be absent later, which means that it was not
    asked, as does a vote ``...`` among others; one with None was asked and abstained. Neither moves its weight, but
    only the second counts against asking it again (see `ask`). New ones may join at any `partial_fit`; without names,
    they are further columns at the right.

    Probabilities are a softmax of the scores, mixed with a guess, fitted to the last 1,000 trials as they were scored
    before their labels were seen (see `linmax.models.calibration`).

    References
    ----------
    Mesterharm and Hsu, Combinatorial fusion with on-line learning algorithms.

    Examples
    --------
    >>> import linmax
    >>> data = linmax.majority_problem(n=20, r=10, k=5, noise=0.05, trials=1500, seed=1)
    >>> fusion = linmax.VoteFusion("AR-winnow(1.1)").fit(data.votes[:1000], data.labels[:1000])
    >>> report = fusion.report(data.votes[1000:], data.labels[1000:])
    >>> report.test.accuracy["fusion"] > 0.9 > report.test.accuracy["plurality"]
    True
    >>> sorted(int(name) for name in list(fusion.weights())[:10])  # the ten that matter
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
