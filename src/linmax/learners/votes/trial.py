"""One trial of voters and raters as ratings of the known classes, and more raters made of all votes.

Coordinates: 0 is the share of all votes that a class has; 1 is 1 for a class that any voter names; 2 is what those who
speak tell by what they named before (`linmax.learners.votes.confusions`), and 3 the same by what they named lately.
Then come the voters, the raters and, where instances have a constant, one threshold for each class.

A rater's scores are centred over the known classes and divided by their root mean square so far, so that its unit does
not matter; one that rates all classes alike is silent. In the share of votes a rater counts as one voter who divides
its vote by softmax. Negated voters, and copies of voters by side columns, have no part in it.
"""

from __future__ import annotations

import math

import numpy as np

from linmax.core.contract import Instances
from linmax.jit.compiling import kernel
from linmax.learners.softmax_trials import Store

__all__ = ["CONFUSED", "CONFUSED_LATELY", "COPIED", "NAMED", "SHARE", "VOTERS", "without_attributes", "write_trial"]

SHARE, NAMED, CONFUSED, CONFUSED_LATELY = range(4)  # coordinates: the share of votes, whether there is any, evidence
VOTERS = 4  # the first voter's
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
