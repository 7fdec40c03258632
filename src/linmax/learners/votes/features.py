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
from typing import Any

import numpy as np

from linmax.jit.compiling import kernel
from linmax.learners.base import Field

__all__ = [
    "CONFUSED",
    "CONFUSION_FIELDS",
    "COPIED",
    "NAMED",
    "SHARE",
    "UNIT",
    "VOTERS",
    "counted_voters",
    "log_odds",
    "note_silence",
    "note_trial",
    "silence_varies",
    "write_evidence",
    "write_silence",
    "write_trial",
]


SHARE, NAMED, CONFUSED = range(3)  # coordinates: the share of votes, whether there is any, evidence
VOTERS = 3  # the first voter's
COPIED = 0.5  # rating of a voter's copy for one value of a side column: it is learned a quarter as fast as a voter
SQUARE_ROUNDING = 1e-24  # of squares, relative: less is no difference between classes


@kernel()
def write_rater(pool: Any, i: int, known: int, counts: bool, at: int) -> int:
    """Write the ratings of rater i from ``at`` on and add its vote to ``pool.scores``; ``counts`` adds to its scale."""
    given, scale, votes = pool.given[i], pool.scales[i], pool.scores
    places, of, values = pool.places, pool.of, pool.values
    place, mean, square = VOTERS + pool.blocks[0] + i, 0.0, 0.0
    for c in range(known):
        mean += given[c] / known
    for c in range(known):
        square += (given[c] - mean) * (given[c] - mean) / known
    if square <= SQUARE_ROUNDING * mean * mean:
        return at
    size = math.sqrt((scale[1] + square) / (scale[0] + 1.0))
    if counts:
        scale[0] += 1.0
        scale[1] += square
    largest, total = -math.inf, 0.0
    for c in range(known):
        largest = max(largest, (given[c] - mean) / size)
    for c in range(known):
        total += math.exp((given[c] - mean) / size - largest)
    for c in range(known):
        value = (given[c] - mean) / size
        places[at], of[at], values[at] = place, c, value
        votes[c] += math.exp(value - largest) / total
        at += 1
    return at


@kernel()
def write_trial(pool: Any, known: int, counts: bool) -> int:
    """Write the ratings of the trial, those of a coordinate together; return how many there are.

    ``counts`` adds the raters' scores of this trial to their scales.
    """
    votes, row, signs, places, of, values = pool.scores, pool.row, pool.signs, pool.places, pool.of, pool.values
    voters, raters, thresholds = pool.blocks[0], pool.blocks[1], pool.blocks[2]
    at, speakers = 0, 0.0
    for c in range(known):
        votes[c] = 0.0
    for i in range(voters):
        vote, sign = row[i], signs[i]
        if 0 <= vote < known:
            value = sign if abs(sign) == 1.0 else math.copysign(COPIED, sign)
            places[at], of[at], values[at] = VOTERS + i, vote, value
            at += 1
            if sign == 1.0:
                votes[vote] += 1.0
                speakers += 1.0
    for c in range(known if speakers > 0.0 else 0):
        if votes[c] > 0.0:
            places[at], of[at], values[at] = NAMED, c, 1.0
            at += 1
    for i in range(raters):
        before = at
        at = write_rater(pool, i, known, counts, at)
        speakers += at > before
    if speakers > 0.0:
        for c in range(known):
            if votes[c] > 0.0:
                places[at], of[at], values[at] = SHARE, c, votes[c] / speakers
                at += 1
    for c in range(min(known, thresholds)):
        places[at], of[at], values[at] = VOTERS + voters + raters + c, c, 1.0
        at += 1
    return at


SILENCE_UNIT = 0.25  # rating of a vote one deviation from the mean: it is learned a sixteenth as fast as a voter
FARTHEST = 2.0  # deviations

ROWS, SUM, SQUARES = range(3)  # of `silence`: trials, and of the numbers of silent voters the sum and that of squares


@kernel()
def count_silent(pool: Any) -> int:
    """Return how many voters who have voted before abstain."""
    row, seen, count = pool.row, pool.seen, 0
    for i in range(row.size):
        count += row[i] < 0 and seen[VOTERS + i] == 1
    return count


@kernel()
def silence_varies(silence: np.ndarray) -> bool:
    """Return whether the number of silent voters ever differed; exact, for these are sums of whole numbers."""
    return silence[ROWS] * silence[SQUARES] > silence[SUM] * silence[SUM]


@kernel()
def write_silence(pool: Any, known: int, first: int, at: int) -> int:
    """Write the votes once more, by how many are silent, as ratings of the places from ``first`` on.

    They are written from ``at`` on; returns where they end. ``first`` is the number of all coordinates if there are no
    such places.
    """
    silence, row, signs, places, of, values = pool.silence, pool.row, pool.signs, pool.places, pool.of, pool.values
    if first == pool.seen.size or not silence_varies(silence):
        return at
    mean = silence[SUM] / silence[ROWS]
    deviation = math.sqrt(silence[ROWS] * silence[SQUARES] - silence[SUM] * silence[SUM]) / silence[ROWS]
    value = SILENCE_UNIT * max(-FARTHEST, min(FARTHEST, (count_silent(pool) - mean) / deviation))
    for i in range(row.size):
        if 0 <= row[i] < known and signs[i] == 1.0:
            places[at], of[at], values[at] = first + i, row[i], value
            at += 1
    return at


@kernel()
def note_silence(pool: Any) -> bool:
    """Count the silent voters of a trial; return whether their number differs for the first time."""
    silence, count = pool.silence, float(count_silent(pool))
    before = silence_varies(silence)
    silence[ROWS] += 1.0
    silence[SUM] += count
    silence[SQUARES] += count * count
    return silence_varies(silence) and not before


GUESS_COUNTS = 5.0  # S: votes that the guess counts for
OTHERS_COUNT = 5.0  # votes that the others count for, in how often a voter is right, and a habit of naming all alike
UNIT = 0.3  # of evidence, as a rating: it is learned a tenth as fast as a voter
MOST_COUNTS = 2**20  # beyond so many, nothing is counted and there is no evidence
NEARLY_ZERO = 1e-200  # a product whose logarithm is taken before it is multiplied further

VOTES, RIGHT = 0, 1


def counted_voters(voters: int, k: int) -> int:
    """Return of how many voters it is counted what they name: of all, or where they are too many of none."""
    return voters if voters * k * k <= MOST_COUNTS else 0


CONFUSION_FIELDS = {  # counts over trials with labels; "counted" are the voters, or none where they are too many
    "confused": Field(("counted", "class", "class")),  # trials with this label in which this class was named
    "named": Field(("counted", "class")),  # how often each class was named
    "voted": Field(("counted", 2)),  # votes, and right ones
    "everyone": Field((2,)),  # the same of all together
    "labelled": Field(("class",)),  # trials with each label
}


@kernel()
def named_by(pool: Any, known: int, i: int) -> int:
    """Return the class that voter i names; -1 if none. Negated voters and copies name none."""
    return pool.row[i] if 0 <= pool.row[i] < known and pool.signs[i] == 1.0 else -1


@kernel()
def write_evidence(pool: Any, known: int, at: int) -> int:
    """Write what all who vote tell of each class, as ratings from ``at`` on; return where they end."""
    if not pool.confused.size or known < 2:
        return at
    evidence, places, of, values, labelled = pool.scores, pool.places, pool.of, pool.values, pool.labelled
    trials, spoke, mean = 0.0, False, 0.0
    guessed, others = GUESS_COUNTS, OTHERS_COUNT
    usual_right = (pool.everyone[RIGHT] + 1.0) / (pool.everyone[VOTES] + 2.0)
    for c in range(known):
        trials += labelled[c]
        evidence[c], values[at + c] = 0.0, 1.0
    for i in range(len(pool.voted)):
        vote = named_by(pool, known, i)
        if vote < 0:
            continue
        spoke = True
        counts, named, votes = pool.confused[i], pool.named[i], pool.voted[i, VOTES]
        right = (pool.voted[i, RIGHT] + others * usual_right) / (votes + others)  # drawn to how often all are
        usual = (1.0 - right) * (named[vote] + others / known)
        share = votes / trials if trials > 0.0 else 0.0
        for c in range(known):
            guess = right if c == vote else usual / (votes + others - named[c] - others / known)
            values[at + c] *= (counts[c, vote] + guessed * guess) / (share * labelled[c] + guessed)
            if values[at + c] < NEARLY_ZERO:
                evidence[c] += math.log(values[at + c])
                values[at + c] = 1.0
    if not spoke:
        return at
    for c in range(known):
        evidence[c] += math.log(values[at + c])
        mean += evidence[c] / known
    for c in range(known):
        places[at], of[at], values[at] = CONFUSED, c, UNIT * (evidence[c] - mean)
        at += 1
    return at


@kernel()
def note_trial(pool: Any, known: int, label: int, weight: float) -> None:
    """Count what voters named in a trial with this label."""
    pool.labelled[label] += weight
    for i in range(len(pool.voted)):
        vote = named_by(pool, known, i)
        if vote >= 0:
            right = weight if vote == label else 0.0
            pool.confused[i, label, vote] += weight
            pool.named[i, vote] += weight
            pool.voted[i, VOTES] += weight
            pool.voted[i, RIGHT] += right
            pool.everyone[VOTES] += weight
            pool.everyone[RIGHT] += right


def log_odds(pool: Any) -> np.ndarray:
    """Return by how much, as a rating, the vote of each voter favors its class over another, on the whole."""
    usual = (pool.everyone[RIGHT] + 1.0) / (pool.everyone[VOTES] + 2.0)
    votes, hits = pool.voted.T
    right = (hits + OTHERS_COUNT * usual) / (votes + OTHERS_COUNT)
    return np.asarray(UNIT * np.log(right / (1.0 - right) * (max(2, pool.labelled.size) - 1)))
