"""One trial as ratings of the known classes, and counts of which class each voter names when each class is right.

A rater is a voter as well: it votes for the class that it rates highest. Voters and these together are the jury.

Coordinates, in this order: the share of votes that a class has; 1 for a class that anybody names; the votes of the
jury; the scores of the raters; where instances have a constant, one threshold for each class. These are the narrow
ones. After them come the evidence of all votes together and, unless there are too many, that of each juror.

Scores are logarithms of probabilities where they can be (`linmax.normalization.scaled_logarithms`). They are
centered over the known classes and divided by their root mean square so far, so that the unit of a rater does not
matter; one that rates all classes alike abstains. In the share of votes a rater divides its vote by its probabilities,
or by the softmax of centered scores that are none. Negated voters, and copies of voters by side columns, have ratings
but no part in anything else.

Evidence: juror i named class v in C_i(c, v) of the trials whose label was c, and voted V_i times. With f_c the share of
trials with label c, the vote v says about class c

    E_i(c) = log (C_i(c, v) + S q_i(c, v)) / (f_c V_i + S),

where q_i is the guess before there are counts: i names the right class as often as it does in all, and any other as
often as it names that one otherwise. Their sum is naive Bayes (Dawid and Skene 1979). Jurors err together, so a logit
learns how far to trust the sum, and each juror by itself: a weight for each juror, vote and class, of which only one
number for each juror is learned by the logit and the rest is counted.
"""

from __future__ import annotations

import math

import numpy as np

from linmax.jit.compiling import kernel
from linmax.learners.base import Arrays, Field
from linmax.normalization import NEARLY_ONE, NO_SHARE

__all__ = [
    "COPIED",
    "COUNT_FIELDS",
    "HITS",
    "NAMED",
    "SHARE",
    "UNIT",
    "VOTED",
    "VOTERS",
    "counted_jurors",
    "log_odds",
    "note_trial",
    "vote_of",
    "write_evidence",
    "write_trial",
]


SHARE, NAMED, VOTERS = range(3)  # coordinates: the share of votes, whether there is any, the first juror's
LOG_SPAN = -math.log(NO_SHARE)  # of the logarithms of shares
COPIED = 0.5  # rating of a voter's copy for one value of a side column: it is learned a quarter as fast as a voter
SQUARE_ROUNDING = 1e-24  # of squares, relative: less is no difference between classes

PRIOR_VOTES = 5.0  # S; votes for which the guess counts, and those for how often a juror is right
UNIT = 0.3  # of scores and evidence, as ratings: they are learned a tenth as fast as votes
MOST_COUNTS = 2**20  # beyond this many, nothing is counted and there is no evidence

VOTED, HITS = 0, 1


def counted_jurors(jurors: int, k: int) -> int:
    """Return for how many jurors their votes are counted by class: for all, or none where these are too many."""
    return jurors if jurors * k * k <= MOST_COUNTS else 0


COUNT_FIELDS = {  # over trials with labels; "counted" are the jurors, or none where they are too many
    "confused": Field(("counted", "class", "class")),  # trials with this label in which this class was named
    "named": Field(("counted", "class")),  # how often each class was named
    "labelled": Field(("class",)),  # trials with each label
    "voted": Field(("juror", 2)),  # votes, and right ones
    "everyone": Field((2,)),  # the same for all together
}


@kernel()
def vote_of(pool: Arrays, known: int, i: int) -> int:
    """Return the class that juror i names; -1 if none. Negated voters and copies name none."""
    return pool.row[i] if 0 <= pool.row[i] < known and pool.signs[i] == 1.0 else -1


@kernel()
def write_rater(pool: Arrays, i: int, known: int, counts: bool, at: int) -> int:
    """Write the ratings of rater i from ``at`` on and add its vote to ``pool.scores``; ``counts`` adds to its scale."""
    given, scale, votes, voters = pool.given[i], pool.scales[i], pool.scores, pool.blocks[0]
    places, of, values = pool.places, pool.of, pool.values
    place, mean, square, sum_of_powers, best = VOTERS + voters + pool.blocks[1] + i, 0.0, 0.0, 0.0, 0
    pool.row[voters + i] = -1
    for c in range(known):
        mean += given[c] / known
        sum_of_powers += math.exp(LOG_SPAN * (min(given[c], 1.1) - 1.0))
        best = c if given[c] > given[best] else best
    for c in range(known):
        square += (given[c] - mean) * (given[c] - mean) / known
    if square <= SQUARE_ROUNDING * mean * mean:
        return at
    pool.row[voters + i] = best
    size = math.sqrt((scale[1] + square) / (scale[0] + 1.0))
    if counts:
        scale[0] += 1.0
        scale[1] += square
    unit, total = 1.0 / LOG_SPAN if abs(sum_of_powers - 1.0) < NEARLY_ONE else size, 0.0
    for c in range(known):
        total += math.exp((given[c] - given[best]) / unit)
    for c in range(known):
        places[at], of[at], values[at] = place, c, UNIT * (given[c] - mean) / size
        votes[c] += math.exp((given[c] - given[best]) / unit) / total
        at += 1
    return at


@kernel()
def write_trial(pool: Arrays, known: int, counts: bool) -> int:
    """Write the narrow ratings of the trial, those of a coordinate together; return where they end.

    ``counts`` adds the raters' scores of this trial to their scales. ``pool.ballots`` receives the votes for each
    class, then their number, and that of raters among them.
    """
    votes, row, signs, places, of, values = pool.scores, pool.row, pool.signs, pool.places, pool.of, pool.values
    voters, raters, thresholds, named = pool.blocks[0], pool.blocks[1], pool.blocks[2], pool.mixed
    at, speakers = 0, 0.0
    for c in range(known):
        votes[c] = named[c] = 0.0
    for i in range(raters):
        before = at
        at = write_rater(pool, i, known, counts, at)
        speakers += at > before
    rating = speakers
    for i in range(voters + raters):
        vote, sign = row[i], signs[i]
        if 0 <= vote < known:
            places[at], of[at] = VOTERS + i, vote
            values[at] = sign if abs(sign) == 1.0 else math.copysign(COPIED, sign)
            at += 1
            if sign == 1.0:
                named[vote] = 1.0
                if i < voters:
                    votes[vote] += 1.0
                    speakers += 1.0
    for c in range(known):
        if named[c] > 0.0:
            places[at], of[at], values[at] = NAMED, c, 1.0
            at += 1
    for c in range(known):
        pool.ballots[c] = votes[c]
        if votes[c] > 0.0:
            places[at], of[at], values[at] = SHARE, c, votes[c] / speakers
            at += 1
    pool.ballots[known] = speakers
    pool.ballots[known + 1] = rating
    for c in range(min(known, thresholds)):
        places[at], of[at], values[at] = VOTERS + voters + 2 * raters + c, c, 1.0
        at += 1
    return at


@kernel()
def write_evidence(pool: Arrays, known: int, narrow: int, at: int) -> int:
    """Write the evidence from ``at`` on: of all jurors, at coordinate ``narrow``, and of each; return where it ends."""
    if not pool.confused.size or known < 2:
        return at
    total, places, of, values, labelled = pool.scores, pool.places, pool.of, pool.values, pool.labelled
    trials, anybody, each = 0.0, False, pool.weights.shape[1] > narrow + 1
    usual_right, first = (pool.everyone[HITS] + 1.0) / (pool.everyone[VOTED] + 2.0), at
    for c in range(known):
        trials += labelled[c]
        total[c] = 0.0
    at += known
    for i in range(pool.row.size):
        vote = vote_of(pool, known, i)
        if vote < 0:
            continue
        anybody = True
        counts, named, votes, mean = pool.confused[i], pool.named[i], pool.voted[i, VOTED], 0.0
        right = (pool.voted[i, HITS] + PRIOR_VOTES * usual_right) / (votes + PRIOR_VOTES)
        usual = (1.0 - right) * (named[vote] + PRIOR_VOTES / known)
        share = votes / trials if trials > 0.0 else 0.0
        for c in range(known):
            guess = right if c == vote else usual / (votes + PRIOR_VOTES - named[c] - PRIOR_VOTES / known)
            evidence = math.log((counts[c, vote] + PRIOR_VOTES * guess) / (share * labelled[c] + PRIOR_VOTES))
            values[at + c] = evidence
            total[c] += evidence
            mean += evidence / known
        if each:
            for c in range(known):
                places[at], of[at], values[at] = narrow + 1 + i, c, UNIT * (values[at] - mean)
                at += 1
    if not anybody:
        return first
    mean = 0.0
    for c in range(known):
        mean += total[c] / known
    for c in range(known):
        places[first + c], of[first + c], values[first + c] = narrow, c, UNIT * (total[c] - mean)
    return at


@kernel()
def note_trial(pool: Arrays, known: int, sure: float) -> None:
    """Count what jurors named in a trial whose class is c with probability ``pool.target[c]``."""
    target = pool.target
    for c in range(known):
        pool.labelled[c] += sure * target[c]
    for i in range(pool.row.size):
        vote = vote_of(pool, known, i)
        if vote >= 0:
            for votes in (pool.voted[i], pool.everyone):
                votes[VOTED] += sure
                votes[HITS] += sure * target[vote]
            if pool.confused.size:
                pool.named[i, vote] += sure
                for c in range(known):
                    pool.confused[i, c, vote] += sure * target[c]


def log_odds(pool: Arrays) -> np.ndarray:
    """Return by how much, as a rating, the vote of each juror favors its class over another, in all."""
    usual = (pool.everyone[HITS] + 1.0) / (pool.everyone[VOTED] + 2.0)
    votes, hits = pool.voted.T
    right = (hits + PRIOR_VOTES * usual) / (votes + PRIOR_VOTES)
    return np.asarray(UNIT * np.log(right / (1.0 - right) * (max(2, pool.labelled.size) - 1)))
