"""Members of the pool that need no fit: the share of votes, the best juror so far, and the share weighed by accuracy.

With n votes in a trial, v_c of them for class c, of k classes:

* the share of votes gives class c the probability (v_c + 1/k) / (n + 1). It is sure before any label is there.
* the best juror is the one among those who vote here that was right most often, (hits + 1) / (votes + 2); that is the
  probability of its class, and the others divide the rest. Jurors that tie divide it all.
* in the weighed share each vote counts u_i = max(0, l_i)^3, divided by the mean of u over all votes so far, where

      l_i = log(a_i (k - 1) / (1 - a_i)),    a_i = (4 * .7 + hits) / (4 + votes),

  and the share is squared. Were errors independent the log odds l_i themselves would be best (Nitzan and Paroush 1982);
  jurors err together, on the same hard instances, and then the best ones are worth more. Its counts learn from rows
  without a label as well: there a vote is right as often as all votes make it probable (one step of EM for each row:
  Dawid and Skene 1979 with one number a juror; Cappe and Moulines 2009). The m-th vote of a juror weighs m^`RECENCY`,
  since the jury knew less at first. These counts fade as labels arrive: they count a / (a + labels) times, with
  a = `FADING`.

Jurors who agree more often than their accuracies explain know the same thing, or copy each other. So where votes judge
votes, the log odds of juror i are divided by 1 + `REDUNDANT` times the sum over the other voters j of

    max(0, (A_ij - e_ij N_ij) / ((N_ij + 10) (1 - e_ij))),    e_ij = a_i a_j + (1 - a_i) (1 - a_j) / (k - 1),

where i and j voted together N_ij times and agreed A_ij times: a clique of copies counts little more than one of them.
Where jurors agree no more than their habits explain, how often each names each class, agreement says nothing: with z
the agreement beyond that in its standard errors, these counts count z^2 / (z^2 + `CONVINCED`^2) times. Nor does it say
much of a juror that always names the same class, who is right as often as that class is: with p_c the share of its
votes for class c, its counts count 2 (1 - sum_c p_c^2) k / (k - 1) times, at most once.

Where answers are open, the number of candidates shows how much the voters disagree, not how hard it is to guess: there
u_i = a_i^8.

Nothing here depends on which class is which.
"""

from __future__ import annotations

import math

import numpy as np

from linmax.jit.compiling import kernel
from linmax.learners.base import Arrays, Field
from linmax.learners.second_order import to_shares
from linmax.learners.votes.evidence import HITS, VOTED, vote_of

__all__ = [
    "JURY_FIELDS",
    "MOST_PAIRED",
    "is_open",
    "note_row",
    "note_weights",
    "predict_best",
    "predict_share",
    "predict_weighed",
    "say_of_rows",
    "weight_of",
]

TRUSTED_VOTES, TRUSTED_ACCURACY = 4.0, 0.7
POWER = 3.0
OPEN_POWER = 8.0  # of accuracies, where answers are open
LEAST, HIGHEST = 0.02, 0.98  # bounds on accuracies
REDUNDANT, PRIOR_PAIRS = 0.7, 10.0  # how far excess agreement counts, and votes together that count for none
UNCOMPARED = 2.0  # what log odds are divided by where jurors are too many to be compared
MOST_PAIRED = 256  # jurors
CONVINCED = 4.0  # standard errors
RECENCY = 1.0  # power of the number of votes by which a vote without a label counts
FADING = 50.0  # labels after which rows without a label count half
SAY, ANSWERED = 0.6, 2.0  # of the weighed share in the answer after such rows, and labels after which it is halved
TIE = 1e-12  # difference of accuracies that tie

JURY_FIELDS = {
    "unlabelled": Field(("juror", 2)),  # votes in rows without a label, and how many of them were probably right
    "together": Field(("compared", "compared")),  # rows without a label in which both voted, and in which they agreed
    "agreed": Field(("compared", "compared")),
    "habits": Field(("compared", "named class")),  # votes for each class there
    "beyond": Field((2,)),  # agreement beyond habits, and its variance
    "usual": Field((2,)),  # votes that were weighed, and the sum of their weights
    "rows": Field((2,)),  # weights of rows without a label, and with one
    "ballots": Field(("ballot",), merge="", saved=False),  # the votes for each class, their number, and that of raters
}


@kernel()
def is_open(pool: Arrays) -> bool:
    """Return whether every trial has its own answers, so that nothing is counted by class."""
    return bool(pool.habits.shape[1] == 0)


@kernel()
def fading(pool: Arrays) -> float:
    """Return how much a row without a label counts."""
    faded, excess = FADING / (FADING + pool.rows[1]), max(0.0, pool.beyond[0])
    if not pool.together.size or excess == 0.0:
        return 0.0 if pool.together.size else faded
    squared = excess * excess / pool.beyond[1]
    return faded * squared / (squared + CONVINCED * CONVINCED)


@kernel()
def say_of_rows(pool: Arrays) -> float:
    """Return how far rows without a label have a say in the answer."""
    return SAY * pool.rows[0] / (pool.rows[0] + 1.0) * ANSWERED / (ANSWERED + pool.rows[1])


@kernel()
def variety(pool: Arrays, i: int) -> float:
    """Return how far juror i names different classes in rows without a label: 0 if always the same, at most 1."""
    habits, classes = pool.habits, pool.habits.shape[1]
    if i >= habits.shape[0] or classes < 2:
        return 1.0
    votes, squares = 0.0, 0.0
    for c in range(classes):
        votes += habits[i, c] + 1.0
        squares += (habits[i, c] + 1.0) * (habits[i, c] + 1.0)
    return min(1.0, 2.0 * (1.0 - squares / (votes * votes)) * classes / (classes - 1))


@kernel()
def accuracy_of(pool: Arrays, i: int) -> float:
    """Return a_i, within bounds."""
    own, other, faded = pool.voted[i], pool.unlabelled[i], 0.0
    if other[VOTED] > 0.0:
        faded = fading(pool) * variety(pool, i)
    hits = TRUSTED_VOTES * TRUSTED_ACCURACY + own[HITS] + faded * other[HITS]
    right = hits / (TRUSTED_VOTES + own[VOTED] + faded * other[VOTED])
    return min(HIGHEST, max(LEAST, right))


@kernel()
def odds(pool: Arrays, i: int, known: int) -> float:
    """Return the log odds of juror i."""
    right = accuracy_of(pool, i)
    return math.log(right / (1.0 - right) * max(1, known - 1))


@kernel()
def weight_of(pool: Arrays, i: int, known: int) -> float:
    """Return u_i, before it is divided by the mean."""
    if is_open(pool):
        own = pool.voted[i]
        accuracy = (TRUSTED_VOTES * TRUSTED_ACCURACY + own[HITS]) / (TRUSTED_VOTES + own[VOTED])
        return math.pow(accuracy, OPEN_POWER)
    return math.pow(max(0.0, odds(pool, i, known)), POWER)


@kernel()
def predict_share(pool: Arrays, known: int, shares: np.ndarray) -> None:
    """Write the smoothed share of votes."""
    for c in range(known):
        shares[c] = (pool.ballots[c] + 1.0 / known) / (pool.ballots[known] + 1.0)


@kernel()
def predict_best(pool: Arrays, known: int, shares: np.ndarray) -> None:
    """Write what the best juror says."""
    most, ties = -1.0, 0.0
    for c in range(known):
        shares[c] = 0.0
    for i in range(pool.row.size):
        vote = vote_of(pool, known, i)
        if vote < 0:
            continue
        right = (pool.voted[i, HITS] + 1.0) / (pool.voted[i, VOTED] + 2.0)
        if right > most + TIE:
            most, ties = right, 0.0
            for c in range(known):
                shares[c] = 0.0
        if right > most - TIE:
            ties += 1.0
            shares[vote] += 1.0
    for c in range(known):
        share = shares[c] / ties if ties > 0.0 else 1.0 / known
        shares[c] = most * share + (1.0 - most) * (1.0 - share) / (known - 1) if ties > 0.0 and known > 1 else share


@kernel()
def predict_weighed(pool: Arrays, known: int, shares: np.ndarray) -> None:
    """Write the square of the weighed share of votes."""
    first = math.pow(TRUSTED_ACCURACY, OPEN_POWER)
    if not is_open(pool):
        first = math.pow(math.log(TRUSTED_ACCURACY / (1.0 - TRUSTED_ACCURACY) * max(1, known - 1)), POWER)
    mean = (pool.usual[1] + first) / (pool.usual[0] + 1.0)
    total, power = 0.0, 0.0
    for c in range(known):
        shares[c] = 1.0 / known
    for i in range(pool.row.size):
        vote = vote_of(pool, known, i)
        if vote >= 0:
            shares[vote] += weight_of(pool, i, known) / mean
    for c in range(known):
        total += shares[c]
    for c in range(known):
        shares[c] = (shares[c] / total) * (shares[c] / total)
        power += shares[c]
    for c in range(known):
        shares[c] /= power


@kernel()
def note_weights(pool: Arrays, known: int, sure: float) -> None:
    """Count the weights of the votes of a trial."""
    for i in range(pool.row.size):
        if vote_of(pool, known, i) >= 0:
            pool.usual[0] += sure
            pool.usual[1] += sure * weight_of(pool, i, known)


@kernel()
def redundancy(pool: Arrays, i: int, known: int, accuracies: np.ndarray) -> float:
    """Return what the log odds of juror i are divided by, among the voters of this trial."""
    if not pool.together.size:
        return UNCOMPARED
    found, right = 1.0, accuracies[i]
    for j in range(pool.row.size):
        if j != i and vote_of(pool, known, j) >= 0:
            chance = right * accuracies[j] + (1.0 - right) * (1.0 - accuracies[j]) / max(1, known - 1)
            excess = pool.agreed[i, j] - chance * pool.together[i, j]
            found += REDUNDANT * max(0.0, excess / ((pool.together[i, j] + PRIOR_PAIRS) * (1.0 - chance)))
    return found


@kernel()
def note_agreement(pool: Arrays, known: int, sure: float) -> None:
    """Count how far the voters of a row agree beyond what their habits explain."""
    habits, jurors, classes = pool.habits, pool.together.shape[0], min(known, pool.habits.shape[1])
    for i in range(jurors):
        vote = vote_of(pool, known, i)
        for j in range(i if vote >= 0 else 0):
            other = vote_of(pool, known, j)
            if other < 0:
                continue
            chance, own, theirs = 1.0 / known if not classes else 0.0, 0.0, 0.0
            for c in range(classes):
                own += habits[i, c] + 1.0
                theirs += habits[j, c] + 1.0
                chance += (habits[i, c] + 1.0) * (habits[j, c] + 1.0)
            chance /= own * theirs if classes else 1.0
            pool.beyond[0] += sure * ((1.0 if vote == other else 0.0) - chance)
            pool.beyond[1] += sure * chance * (1.0 - chance)
    for i in range(jurors if classes else 0):
        vote = vote_of(pool, known, i)
        if vote >= 0:
            habits[i, vote] += sure


@kernel()
def note_unlabelled(counts: np.ndarray, right: float, sure: float) -> None:
    """Count a vote that is right with this probability; later votes count more in the share of right ones."""
    share = counts[HITS] / counts[VOTED] if counts[VOTED] > 0.0 else 0.0
    counts[VOTED] += sure
    share += (1.0 + RECENCY) * sure / (counts[VOTED] + RECENCY * sure) * (right - share)
    counts[HITS] = counts[VOTED] * share


@kernel()
def note_row(pool: Arrays, known: int, sure: float) -> None:
    """Learn from a row without a label how accurate its voters are, and how they agree."""
    scores, shares, accuracies, votes = pool.scores, pool.mixed, pool.vectors[5], 0
    for c in range(known):
        scores[c] = 0.0
    for i in range(pool.row.size):
        accuracies[i] = accuracy_of(pool, i)
        votes += vote_of(pool, known, i) >= 0
    if not votes:
        return
    for i in range(pool.row.size):
        vote = vote_of(pool, known, i)
        if vote >= 0:
            scores[vote] += odds(pool, i, known) / redundancy(pool, i, known, accuracies)
    to_shares(scores, known, shares)
    note_weights(pool, known, sure)
    pool.rows[0] += sure
    note_agreement(pool, known, sure)
    for i in range(pool.row.size):
        vote = vote_of(pool, known, i)
        if vote < 0:
            continue
        note_unlabelled(pool.unlabelled[i], shares[vote], sure)
        for j in range(pool.together.shape[0]):
            other = vote_of(pool, known, j)
            if j != i and other >= 0:
                pool.together[i, j] += sure
                pool.agreed[i, j] += sure if other == vote else 0.0
