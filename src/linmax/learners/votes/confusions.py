"""What voters name when each class is right: evidence beyond how often they are right.

Voter i named class v in C_i(c, v) of the trials whose label was c, and spoke V_i times. With f_c the share of trials
with label c, what the vote v tells of class c is the logarithm of

    (C_i(c, v) + S q_i(c, v)) / (f_c V_i + S),

where q_i is the guess before there are counts: i names the right class as often as it does on the whole, and otherwise
any other as often as it names that one. A voter who speaks only where one class is right tells so, too. Evidence is
added up over all who speak, as naive Bayes does (Dawid and Skene 1979), and becomes one more rater: a logit learns how
far to trust it, for voters err together and the sum counts the same evidence several times.

There are two of them: one counts all trials alike, the other forgets them at the rate `KEPT`, for voters that change.
To forget, the counts of the past need not be touched: the next trial counts for more, and S with it.

Raters have no part in it: the class that one rates highest says nothing of how sure it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numba import types

from linmax.core.contract import Cube, Instances, Matrix, Vector
from linmax.jit.compiling import kernel
from linmax.learners.softmax_trials import Store

__all__ = [
    "KEPT",
    "UNIT",
    "Confusions",
    "ConfusionsT",
    "PlacedConfusions",
    "evidence_range",
    "join_confusions",
    "log_odds",
    "new_confusions",
    "note_trial",
    "write_evidence",
]

GUESS_COUNTS = 5.0  # S: votes that the guess counts for
OTHERS_COUNT = (
    5.0  # votes that the others count for, in how often a voter is right; so does a habit of naming all alike
)
UNIT = 0.3  # of evidence, as a rating: it is learned a tenth as fast as a voter
KEPT = 0.999  # what a trial later is left of what was named lately
HEAVIEST = 1e9  # weight of a trial at which all counts are divided by it
MOST_COUNTS = 2**20  # beyond so many, nothing is counted and there is no evidence
NEARLY_ZERO = 1e-200  # a product whose logarithm is taken before it is multiplied further

VOTES, RIGHT = 0, 1


class Confusions(NamedTuple):
    """Counts over trials with labels, each by its weight, of n voters; n is 0 where they are too many."""

    counts: np.ndarray  # (n, k, k): trials with this label in which this class was named
    named: np.ndarray  # (n, k): how often each class was named
    votes: np.ndarray  # (n, 2): votes, and right ones
    everyone: np.ndarray  # (2,): the same of all together
    labels: np.ndarray  # (k,): trials with each label
    weight: np.ndarray  # (2,): of the next trial, and by how much more the one after it counts


ConfusionsT = types.NamedTuple((Cube, Matrix, Matrix, Vector, Vector, Vector), Confusions)


def new_confusions(n: int, k: int, kept: float = 1.0) -> Confusions:
    """Before the first trial; ``kept`` is what a trial later is left of one.

    Examples
    --------
    >>> new_confusions(3, 4).counts.shape, new_confusions(3000, 100).counts.shape
    ((3, 4, 4), (0, 100, 100))
    """
    n = n if n * k * k <= MOST_COUNTS else 0
    counts, weight = np.zeros((n, k, k)), np.array([1.0, 1.0 / kept])
    return Confusions(counts, np.zeros((n, k)), np.zeros((n, 2)), np.zeros(2), np.zeros(k), weight)


class PlacedConfusions(NamedTuple):
    """Counts, the places of their voters and of their classes among all, and how often they count."""

    own: Confusions
    voters: np.ndarray
    classes: np.ndarray
    times: float


def join_confusions(parts: Iterable[PlacedConfusions], n: int, k: int, kept: float = 1.0) -> Confusions:
    """The counts of n voters on k classes, added up; ``kept`` is what a trial later is left of one."""
    parts, new = list(parts), new_confusions(n, k, kept)
    new.weight[0] = max(part.own.weight[0] for part in parts)
    for own, voters, classes, often in parts:
        times = often * float(new.weight[0] / own.weight[0])
        classes = classes[: own.labels.size]
        new.labels[classes] += times * own.labels
        if len(own.votes) and len(new.votes):
            new.counts[np.ix_(voters, classes, classes)] += times * own.counts
            new.named[np.ix_(voters, classes)] += times * own.named
            new.votes[voters] += times * own.votes
            new.everyone[:] += times * own.everyone
    return new


@kernel()
def named_by(instances: Instances, t: int, known: int, i: int) -> int:
    """The class that voter i names; -1 if none. Negated voters and copies name none."""
    vote = instances.votes[t, i]
    return vote if 0 <= vote < known and instances.signs[i] == 1.0 else -1


@kernel()
def accuracy(confusions: Confusions, i: int) -> float:
    """How often voter i is right, drawn to how often all are."""
    unit = confusions.weight[0]
    usual = (confusions.everyone[RIGHT] + unit) / (confusions.everyone[VOTES] + 2.0 * unit)
    others = unit * OTHERS_COUNT
    return (confusions.votes[i, RIGHT] + others * usual) / (confusions.votes[i, VOTES] + others)


@kernel()
def write_evidence(
    confusions: Confusions,
    instances: Instances,
    t: int,
    known: int,
    place: int,
    store: Store,
    at: int,
    room: np.ndarray,
) -> int:
    """Write what all who speak tell of each class, as ratings of ``place`` from ``at`` on; returns where they end."""
    if not confusions.counts.size or known < 2:
        return at
    trials, spoke, mean = 0.0, False, 0.0
    guessed, others = confusions.weight[0] * GUESS_COUNTS, confusions.weight[0] * OTHERS_COUNT
    for c in range(known):
        trials += confusions.labels[c]
    for c in range(known):
        room[c] = 0.0
        store.values[at + c] = 1.0
    for i in range(len(confusions.votes)):
        vote = named_by(instances, t, known, i)
        if vote < 0:
            continue
        spoke = True
        counts, named, votes = confusions.counts[i], confusions.named[i], confusions.votes[i, VOTES]
        right = accuracy(confusions, i)
        usual = (1.0 - right) * (named[vote] + others / known)
        share = votes / trials if trials > 0.0 else 0.0
        for c in range(known):
            guess = right if c == vote else usual / (votes + others - named[c] - others / known)
            store.values[at + c] *= (counts[c, vote] + guessed * guess) / (share * confusions.labels[c] + guessed)
            if store.values[at + c] < NEARLY_ZERO:
                room[c] += math.log(store.values[at + c])
                store.values[at + c] = 1.0
    if not spoke:
        return at
    for c in range(known):
        room[c] += math.log(store.values[at + c])
        mean += room[c] / known
    for c in range(known):
        store.places[at], store.of[at], store.values[at] = place, c, UNIT * (room[c] - mean)
        at += 1
    return at


@kernel()
def rescale(confusions: Confusions) -> None:
    """Divide all counts by the weight of the next trial."""
    unit = 1.0 / confusions.weight[0]
    for i in range(len(confusions.votes)):
        for c in range(confusions.labels.size):
            for v in range(confusions.labels.size):
                confusions.counts[i, c, v] *= unit
            confusions.named[i, c] *= unit
        confusions.votes[i, VOTES] *= unit
        confusions.votes[i, RIGHT] *= unit
    for c in range(confusions.labels.size):
        confusions.labels[c] *= unit
    confusions.everyone[VOTES] *= unit
    confusions.everyone[RIGHT] *= unit
    confusions.weight[0] = 1.0


@kernel()
def note_trial(confusions: Confusions, instances: Instances, t: int, known: int, label: int) -> None:
    """Count one trial."""
    unit = confusions.weight[0]
    confusions.labels[label] += unit
    for i in range(len(confusions.votes)):
        vote = named_by(instances, t, known, i)
        if vote >= 0:
            confusions.counts[i, label, vote] += unit
            confusions.named[i, vote] += unit
            confusions.votes[i, VOTES] += unit
            confusions.everyone[VOTES] += unit
            if vote == label:
                confusions.votes[i, RIGHT] += unit
                confusions.everyone[RIGHT] += unit
    confusions.weight[0] = unit * confusions.weight[1]
    if confusions.weight[0] > HEAVIEST:
        rescale(confusions)


def accuracies(confusions: Confusions) -> np.ndarray:
    """`accuracy` of every voter."""
    unit = float(confusions.weight[0])
    usual = (confusions.everyone[RIGHT] + unit) / (confusions.everyone[VOTES] + 2.0 * unit)
    others = unit * OTHERS_COUNT
    return np.asarray((confusions.votes[:, RIGHT] + others * usual) / (confusions.votes[:, VOTES] + others))


def log_odds(confusions: Confusions) -> np.ndarray:
    """By how much, as a rating, the vote of each voter favours its class over another, on the whole."""
    right = accuracies(confusions)
    return np.asarray(UNIT * np.log(right / (1.0 - right) * (max(2, confusions.labels.size) - 1)))


def evidence_range(confusions: Confusions, known: int, numbers: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """(n, votes, classes): the least and the most that a vote for one of the known classes tells of each of them.

    There are from ``numbers[0]`` to ``numbers[1]`` classes in all, those included that are new: the more there are, the
    less a vote tells of the others. It is what `write_evidence` adds up, before it is centred and made a rating.
    """
    guessed, others = confusions.weight[0] * GUESS_COUNTS, confusions.weight[0] * OTHERS_COUNT
    labels, named, votes = confusions.labels[:known], confusions.named[:, :known], confusions.votes[:, VOTES]
    right, places = accuracies(confusions), np.arange(known)
    share = votes / max(float(labels.sum()), np.finfo(float).tiny)
    counts = confusions.counts[:, :known, :known].transpose(0, 2, 1)
    below = (share[:, None] * labels + guessed)[:, None]

    def told(classes: int) -> np.ndarray:
        usual = (1.0 - right)[:, None] * (named + others / classes)
        guess = usual[:, :, None] / (votes[:, None] + others - named - others / classes)[:, None]
        guess[:, places, places] = right[:, None]
        return np.asarray(np.log((counts + guessed * guess) / below))

    low = told(numbers[1])
    return low, low if numbers[0] == numbers[1] else told(numbers[0])
