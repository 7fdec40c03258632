"""One trial of voters and raters as ratings of the known classes, and more raters made of all votes.

Coordinates: 0 is the share of all votes that a class has; 1 is 1 for a class that any voter names; 2 is what those who
speak tell by what they named before.
Then come the voters, the raters and, where instances have a constant, one threshold for each class.

A rater's scores are centred over the known classes and divided by their root mean square so far, so that its unit does
not matter; one that rates all classes alike is silent. In the share of votes a rater counts as one voter who divides
its vote by softmax. Negated voters, and copies of voters by side columns, have no part in it.

How many are silent: where many voters have nothing to say, some are worth more than elsewhere, and others less.

Let s be how many of those who have spoken before are silent in a trial, and m and d its mean and deviation so far. Each
voter has a second weight, which its vote counts with

    SILENCE_UNIT * (s - m) / d, but at most FARTHEST deviations,

so that its trust is a line in s. The unit is small, so that it takes some hundred labels to learn such weights; and as
long as s was always the same there is nothing to learn, and nothing is worked out. Negated voters and copies by side
columns have no such weight.

What voters name when each class is right: evidence beyond how often they are right.

Voter i named class v in C_i(c, v) of the trials whose label was c, and spoke V_i times. With f_c the share of trials
with label c, what the vote v tells of class c is the logarithm of

    (C_i(c, v) + S q_i(c, v)) / (f_c V_i + S),

where q_i is the guess before there are counts: i names the right class as often as it does on the whole, and otherwise
any other as often as it names that one. A voter who speaks only where one class is right tells so, too. Evidence is
added up over all who speak, as naive Bayes does (Dawid and Skene 1979), and becomes one more rater: a logit learns how
far to trust it, for voters err together and the sum counts the same evidence several times.

Raters have no part in it: the class that one rates highest says nothing of how sure it is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import types

from linmax.core.contract import Cube, Instances, Matrix, Vector
from linmax.jit.compiling import kernel
from linmax.learners.base import Field, Mixture, Placement, grown, merged
from linmax.learners.softmax import Store

__all__ = [
    "CONFUSED",
    "COPIED",
    "NAMED",
    "SHARE",
    "UNIT",
    "VOTERS",
    "Confusions",
    "ConfusionsT",
    "count_silent",
    "grow_confusions",
    "log_odds",
    "merge_confusions",
    "note_silence",
    "note_trial",
    "silence_rating",
    "silence_varies",
    "without_attributes",
    "write_evidence",
    "write_silence",
    "write_trial",
]


SHARE, NAMED, CONFUSED = range(3)  # coordinates: the share of votes, whether there is any, evidence
VOTERS = 3  # the first voter's
COPIED = 0.5  # rating of a voter's copy for one value of a side column: it is learned a quarter as fast as a voter
SQUARE_ROUNDING = 1e-24  # of squares, relative: less is no difference between classes


def without_attributes(instances: Instances) -> Instances:
    """The voters and raters alone."""
    if not instances.dense.shape[1] and not instances.indptr.size:
        return instances
    dense, none = np.zeros((len(instances.dense), 0)), np.zeros(0, np.int32)
    return instances._replace(dense=dense, indptr=np.zeros(0, np.int64), indices=none, values=np.zeros(0))


@kernel()
def write_rater(
    given: np.ndarray, known: int, place: int, scale: np.ndarray, learn: bool, store: Store, at: int, votes: np.ndarray
) -> int:
    """The ratings of one rater, whose trials and sum of squares are ``scale``; its vote is added to ``votes``."""
    mean, square = 0.0, 0.0
    for c in range(known):
        mean += given[c] / known
    for c in range(known):
        square += (given[c] - mean) ** 2 / known
    if square <= SQUARE_ROUNDING * mean * mean:
        return at
    size = math.sqrt((scale[1] + square) / (scale[0] + 1.0))
    if learn:
        scale[0] += 1.0
        scale[1] += square
    largest, total = -math.inf, 0.0
    for c in range(known):
        largest = max(largest, (given[c] - mean) / size)
    for c in range(known):
        total += math.exp((given[c] - mean) / size - largest)
    for c in range(known):
        value = (given[c] - mean) / size
        store.places[at], store.of[at], store.values[at] = place, c, value
        votes[c] += math.exp(value - largest) / total
        at += 1
    return at


@kernel()
def write_trial(
    instances: Instances, t: int, known: int, scales: np.ndarray, learn: bool, store: Store, votes: np.ndarray
) -> int:
    """Write the ratings of instance t, those of a coordinate together; returns how many there are.

    ``votes`` is room for one number a class. ``learn`` counts the raters' scores of this trial in their scales.
    """
    voters, raters, at, speakers = instances.signs.size, instances.scores.shape[1], 0, 0.0
    for c in range(known):
        votes[c] = 0.0
    for i in range(voters):
        vote = instances.votes[t, i]
        if 0 <= vote < known:
            sign = instances.signs[i]
            value = sign if abs(sign) == 1.0 else math.copysign(COPIED, sign)
            store.places[at], store.of[at], store.values[at] = VOTERS + i, vote, value
            at += 1
            if sign == 1.0:
                votes[vote] += 1.0
                speakers += 1.0
    for c in range(known if speakers > 0.0 else 0):
        if votes[c] > 0.0:
            store.places[at], store.of[at], store.values[at] = NAMED, c, 1.0
            at += 1
    for i in range(raters):
        before = at
        at = write_rater(instances.scores[t, i], known, VOTERS + voters + i, scales[i], learn, store, at, votes)
        speakers += at > before
    if speakers > 0.0:
        for c in range(known):
            if votes[c] > 0.0:
                store.places[at], store.of[at], store.values[at] = SHARE, c, votes[c] / speakers
                at += 1
    if instances.constant != 0.0:
        for c in range(known):
            store.places[at], store.of[at], store.values[at] = VOTERS + voters + raters + c, c, 1.0
            at += 1
    return at


SILENCE_UNIT = 0.25  # rating of a vote one deviation from the mean: it is learned a sixteenth as fast as a voter
FARTHEST = 2.0  # deviations

ROWS, SUM, SQUARES = range(3)  # of `silence`: trials, and of the numbers of silent voters the sum and that of squares


@kernel()
def count_silent(instances: Instances, t: int, seen: np.ndarray) -> int:
    """How many voters who have spoken before are silent in trial t."""
    count = 0
    for i in range(instances.signs.size):
        if instances.votes[t, i] < 0 and seen[VOTERS + i] == 1:
            count += 1
    return count


@kernel()
def silence_varies(silence: np.ndarray) -> bool:
    """Whether it was not always the same number that was silent; exact, for these are sums of whole numbers."""
    return silence[ROWS] * silence[SQUARES] > silence[SUM] * silence[SUM]


@kernel()
def silence_rating(silence: np.ndarray, count: int) -> float:
    """What a vote counts, with its second weight, where so many are silent."""
    mean = silence[SUM] / silence[ROWS]
    deviation = math.sqrt(silence[ROWS] * silence[SQUARES] - silence[SUM] * silence[SUM]) / silence[ROWS]
    return SILENCE_UNIT * max(-FARTHEST, min(FARTHEST, (count - mean) / deviation))


@kernel()
def write_silence(
    silence: np.ndarray, seen: np.ndarray, instances: Instances, t: int, known: int, first: int, store: Store, at: int
) -> int:
    """Write the votes once more, by how many are silent, as ratings of the places from ``first`` on.

    They are written from ``at`` on; returns where they end. ``first`` is the number of all coordinates if there are no
    such places.
    """
    if first == seen.size or not silence_varies(silence):
        return at
    value = silence_rating(silence, count_silent(instances, t, seen))
    for i in range(instances.signs.size):
        vote = instances.votes[t, i]
        if 0 <= vote < known and instances.signs[i] == 1.0:
            store.places[at], store.of[at], store.values[at] = first + i, vote, value
            at += 1
    return at


@kernel()
def note_silence(silence: np.ndarray, seen: np.ndarray, instances: Instances, t: int) -> bool:
    """Count one trial; returns whether the number of silent voters differs for the first time."""
    count, before = float(count_silent(instances, t, seen)), silence_varies(silence)
    silence[ROWS] += 1.0
    silence[SUM] += count
    silence[SQUARES] += count * count
    return silence_varies(silence) and not before


GUESS_COUNTS = 5.0  # S: votes that the guess counts for
OTHERS_COUNT = (
    5.0  # votes that the others count for, in how often a voter is right; so does a habit of naming all alike
)
UNIT = 0.3  # of evidence, as a rating: it is learned a tenth as fast as a voter
MOST_COUNTS = 2**20  # beyond so many, nothing is counted and there is no evidence
NEARLY_ZERO = 1e-200  # a product whose logarithm is taken before it is multiplied further

VOTES, RIGHT = 0, 1


class Confusions(NamedTuple):
    """Counts over trials with labels, of n voters; n is 0 where they are too many."""

    counts: np.ndarray  # (n, k, k): trials with this label in which this class was named
    named: np.ndarray  # (n, k): how often each class was named
    votes: np.ndarray  # (n, 2): votes, and right ones
    everyone: np.ndarray  # (2,): the same of all together
    labels: np.ndarray  # (k,): trials with each label


ConfusionsT = types.NamedTuple((Cube, Matrix, Matrix, Vector, Vector), Confusions)


CONFUSION_FIELDS = {
    "counts": Field(("voter", "class", "class")),
    "named": Field(("voter", "class")),
    "votes": Field(("voter", 2)),
    "everyone": Field((2,)),
    "labels": Field(("class",)),
}


def _sizes(voters: int, k: int) -> dict[str, int]:
    return {"voter": voters if voters * k * k <= MOST_COUNTS else 0, "class": k}


def grow_confusions(own: Confusions | None, voters: int, k: int) -> Confusions:
    """Counts of so many voters on k classes; those of ``own`` are the first.

    Examples
    --------
    >>> grow_confusions(None, 3, 4).counts.shape, grow_confusions(None, 3000, 100).counts.shape
    ((3, 4, 4), (0, 100, 100))
    """
    sizes = _sizes(voters, k)
    return Confusions(**grown(CONFUSION_FIELDS, own, sizes, {"voter": np.arange(sizes["voter"])}))


def merge_confusions(mixture: Mixture, voters: int) -> Confusions:
    """Counts of all parts together."""
    sizes = _sizes(voters, mixture.k)

    def axes(part: Placement) -> dict[str, np.ndarray]:
        return {"voter": part.voters[: sizes["voter"]], "class": part.classes}

    return Confusions(**merged(CONFUSION_FIELDS, mixture, sizes, axes))


@kernel()
def named_by(instances: Instances, t: int, known: int, i: int) -> int:
    """The class that voter i names; -1 if none. Negated voters and copies name none."""
    vote = instances.votes[t, i]
    return vote if 0 <= vote < known and instances.signs[i] == 1.0 else -1


@kernel()
def accuracy(confusions: Confusions, i: int) -> float:
    """How often voter i is right, drawn to how often all are."""
    usual = (confusions.everyone[RIGHT] + 1.0) / (confusions.everyone[VOTES] + 2.0)
    return (confusions.votes[i, RIGHT] + OTHERS_COUNT * usual) / (confusions.votes[i, VOTES] + OTHERS_COUNT)


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
    guessed, others = GUESS_COUNTS, OTHERS_COUNT
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
def note_trial(confusions: Confusions, instances: Instances, t: int, known: int, label: int) -> None:
    """Count one trial."""
    confusions.labels[label] += 1.0
    for i in range(len(confusions.votes)):
        vote = named_by(instances, t, known, i)
        if vote >= 0:
            confusions.counts[i, label, vote] += 1.0
            confusions.named[i, vote] += 1.0
            confusions.votes[i, VOTES] += 1.0
            confusions.everyone[VOTES] += 1.0
            if vote == label:
                confusions.votes[i, RIGHT] += 1.0
                confusions.everyone[RIGHT] += 1.0


def accuracies(confusions: Confusions) -> np.ndarray:
    """`accuracy` of every voter."""
    usual = (confusions.everyone[RIGHT] + 1.0) / (confusions.everyone[VOTES] + 2.0)
    votes, right = confusions.votes.T
    return np.asarray((right + OTHERS_COUNT * usual) / (votes + OTHERS_COUNT))


def log_odds(confusions: Confusions) -> np.ndarray:
    """By how much, as a rating, the vote of each voter favours its class over another, on the whole."""
    right = accuracies(confusions)
    return np.asarray(UNIT * np.log(right / (1.0 - right) * (max(2, confusions.labels.size) - 1)))
