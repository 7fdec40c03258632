"""The trials of the pool: logits with several priors and memories, and members from elsewhere, mixed by fixed share.

Member m gives class c the probability (1 - e_m) P_m(c) + e_m / k: labels are guesses at a rate e_m that is counted on
the way. The mixture weighs the members by w, and after each trial

    w_m <- (1 - RATE) w_m p_m(label) / sum_i w_i p_i(label) + RATE / M,

so that whoever was best lately leads (Herbster and Warmuth 1998, Tracking the best expert). A voter or rater who speaks
for the first time has, in each logit, the mean weight of its kind so far.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import boolean, int64, types

from linmax.core.contract import KNOWN, Cube, Indices, Instances, InstancesT, Labels, Matrix, Vector
from linmax.core.linear_max import top_two
from linmax.jit.compiling import kernel
from linmax.learners.softmax_trials import IntTable, Store, StoreT, rate, to_shares, trust
from linmax.learners.votes.agreement import DUE, ROWS, Agreement, AgreementT, note_row
from linmax.learners.votes.confusions import Confusions, ConfusionsT, note_trial, write_evidence
from linmax.learners.votes.logits import call_diagonal, curve_together, forget, step_by_matrix
from linmax.learners.votes.silence import note_silence, silence_varies, write_silence
from linmax.learners.votes.trial import CONFUSED, CONFUSED_LATELY, VOTERS, write_trial

__all__ = ["FULL_PRECISION", "LOGITS", "MixtureRoom", "Pool", "play_votes"]

RIDGE = np.array([1.0, 10.0, 10.0, 10.0, 10.0, 10.0])
MEMORIES = np.array([1.0, 1.0, 0.999, 0.99, 0.97, 1.0])
TRUST = 0.03
LOGITS = RIDGE.size
INFORMED = np.array([3, 1, 0, 0, 0, 1])  # what a logit sees beyond votes, scores and thresholds: see `MixtureRoom.ends`
SEES_CONFUSION = 2  # and more; 1 and more sees the votes by how many are silent
STEADY, AGREED = 1, 5  # the last one's prior mean is what agreement tells; before it tells anything, it is the second
OUTSET = np.array([1.0, 1.0, 0.0, 0.0])  # the first weights of the raters made of all votes
FIRST_SHARES = np.array([0.021, 0.43, 0.25, 0.2, 0.098, 0.0, 0.001])
RATE = 1e-3  # of the fixed share
LEAST_PROBABILITY = 1e-9  # least probability by which a member is judged
OFTEN = 64  # coordinates up to which the precision is factorised at every trial; beyond, the more rarely the more
FULL_PRECISION = 256  # coordinates up to which the precision is a full matrix


TRIALS, SPOKEN, AGE, NARROW = 0, 1, 3, 4  # of `Pool.counts`
VOTER_KIND = 0  # a kind; that of raters is 1


class Pool(NamedTuple):
    """All the state."""

    weights: np.ndarray  # (LOGITS, n)
    home: np.ndarray  # likewise: means of the priors
    precision: np.ndarray  # (LOGITS, n, n), lower halves; or empty
    factor: np.ndarray  # likewise: upper ones as `linmax.jit.blocks` has them; or empty
    diagonal: np.ndarray  # (LOGITS, n); or empty
    seen: np.ndarray  # int64 (n): 1 where a voter or rater has spoken
    sums: np.ndarray  # (LOGITS, 2): of the weights of voters and of raters that have spoken
    scales: np.ndarray  # (raters, 2): trials and sums of squares
    mixture: np.ndarray  # (members,)
    guesses: np.ndarray  # (members, 2): labels guessed and not
    counts: np.ndarray  # int64: trials, voters and raters that have spoken, age of the factor, and how many coordinates
    # there are before those of votes by how many are silent
    silence: np.ndarray  # (3,): see `linmax.learners.votes.silence`


PoolT = types.NamedTuple(
    (Matrix, Matrix, Cube, Cube, Matrix, Indices, Matrix, Matrix, Vector, Matrix, Indices, Vector), Pool
)


class MixtureRoom(NamedTuple):
    """Where a trial is worked out."""

    store: Store  # of one trial
    shares: np.ndarray  # (members, k)
    scores: np.ndarray  # (k,)
    vectors: np.ndarray  # (6, max(n, k)), where n is the size of a factor
    means: np.ndarray  # (LOGITS, n): 0 between trials
    ends: np.ndarray  # int64 (4,): where the ratings of the trial end: votes, scores and thresholds; then the votes by
    # how many are silent; what voters confuse, in all trials; and lately
    chain: np.ndarray  # int64 (2, max(k, ratings))


RoomT = types.NamedTuple((StoreT, Matrix, Vector, Matrix, Matrix, Indices, IntTable), MixtureRoom)


@kernel()
def write_all(
    pool: Pool,
    confusions: Confusions,
    lately: Confusions,
    instances: Instances,
    t: int,
    known: int,
    learn: bool,
    room: MixtureRoom,
) -> None:
    """Write the ratings of instance t: as they are, by how many are silent, by what was named before, and lately."""
    store, ends = room.store, room.ends
    ends[0] = write_trial(instances, t, known, pool.scales, learn, store, room.scores)
    ends[1] = write_silence(pool.silence, pool.seen, instances, t, known, pool.counts[NARROW], store, ends[0])
    ends[2] = write_evidence(confusions, instances, t, known, CONFUSED, store, ends[1], room.scores)
    ends[3] = write_evidence(lately, instances, t, known, CONFUSED_LATELY, store, ends[2], room.scores)


@kernel()
def newcomer(pool: Pool, m: int, kind: int) -> float:
    """The weight that logit m gives to a voter (kind 0) or rater (1) who has not spoken yet."""
    return (TRUST + pool.sums[m, kind]) / (1.0 + pool.counts[SPOKEN + kind])


@kernel()
def working(pool: Pool, m: int) -> bool:
    """Whether member m takes part: the logit that agreement guides does once it tells anything."""
    return m != AGREED or pool.mixture[m] > 0.0


@kernel()
def first_weight(pool: Pool, agreement: Agreement, m: int, kind: int, place: int) -> float:
    """The weight that logit m gives to a voter or rater who has not been heard with a label yet."""
    usual = newcomer(pool, m, kind)
    if m == AGREED and kind == VOTER_KIND:
        return agreement.trust[0, place - VOTERS] + agreement.trust[1, place - VOTERS] * usual
    return usual


@kernel()
def welcome(pool: Pool, agreement: Agreement, instances: Instances, count: int, store: Store) -> None:
    """Give their first weights to those of this trial who have not spoken before."""
    voters = instances.signs.size
    last = VOTERS + voters + instances.scores.shape[1]
    joined, others = 0, 0
    for j in range(count):
        place = store.places[j]
        if VOTERS <= place < last and not pool.seen[place]:
            kind = 0 if place < VOTERS + voters else 1
            if kind == 1 or instances.signs[place - VOTERS] == 1.0:
                for m in range(LOGITS):
                    if working(pool, m):
                        pool.weights[m, place] = pool.home[m, place] = first_weight(pool, agreement, m, kind, place)
                joined += kind == 0
                others += kind == 1
                pool.seen[place] = 1
            else:
                pool.seen[place] = 2
    if joined + others:
        for m in range(LOGITS):
            pool.sums[m, 0] += joined * newcomer(pool, m, 0)
            pool.sums[m, 1] += others * newcomer(pool, m, 1)
        pool.counts[SPOKEN] += joined
        pool.counts[SPOKEN + 1] += others


@kernel()
def score(
    pool: Pool, agreement: Agreement, m: int, instances: Instances, count: int, store: Store, scores: np.ndarray
) -> None:
    """The scores that logit m gives, whoever speaks."""
    rate(store, 0, count, pool.weights[m], scores)
    voters = instances.signs.size
    last = VOTERS + voters + instances.scores.shape[1]
    for j in range(count):
        place = store.places[j]
        if VOTERS <= place < last and not pool.seen[place]:
            kind = 0 if place < VOTERS + voters else 1
            if kind == 1 or instances.signs[place - VOTERS] == 1.0:
                scores[store.of[j]] += first_weight(pool, agreement, m, kind, place) * store.values[j]


@kernel()
def predict(
    pool: Pool,
    agreement: Agreement,
    instances: Instances,
    known: int,
    given: np.ndarray,
    room: MixtureRoom,
    mixed: np.ndarray,
) -> None:
    """Probabilities of the classes: of each member, without its guesses, and of the mixture."""
    members = pool.mixture.size
    for c in range(known):
        mixed[c] = 0.0
    for m in range(members):
        if not working(pool, m):
            continue
        shares = room.shares[m]
        if m < LOGITS:
            score(pool, agreement, m, instances, room.ends[INFORMED[m]], room.store, room.scores)
            to_shares(room.scores, known, shares)
        else:
            to_shares(given[m - LOGITS], known, shares)
        guess = pool.guesses[m, 0] / (pool.guesses[m, 0] + pool.guesses[m, 1])
        for c in range(known):
            mixed[c] += pool.mixture[m] * ((1.0 - guess) * shares[c] + guess / known)


@kernel()
def weigh_members(pool: Pool, label: int, known: int, shares: np.ndarray) -> None:
    """Weigh the members by the probability that they gave to the label."""
    members, total, count = pool.mixture.size, 0.0, 0
    for m in range(members):
        if not working(pool, m):
            continue
        count += 1
        guesses = pool.guesses[m]
        guess = guesses[0] / (guesses[0] + guesses[1])
        pool.mixture[m] *= max(LEAST_PROBABILITY, (1.0 - guess) * shares[m, label] + guess / known)
        total += pool.mixture[m]
        sure = trust(shares[m, label], guess, known)
        guesses[0] += 1.0 - sure
        guesses[1] += sure
    for m in range(members):
        if working(pool, m):
            pool.mixture[m] = (1.0 - RATE) * pool.mixture[m] / total + RATE / count


@kernel()
def add_up(pool: Pool, m: int, middle: int, last: int) -> None:
    """The sums of the weights that logit m gives to the voters, up to ``middle``, and to the raters, up to ``last``."""
    for kind in range(2):
        total = 0.0
        for i in range(VOTERS if kind == 0 else middle, middle if kind == 0 else last):
            if pool.seen[i] == 1:
                total += pool.weights[m, i]
        pool.sums[m, kind] = total


@kernel()
def learn_trial(pool: Pool, instances: Instances, known: int, label: int, room: MixtureRoom, diagonal: int) -> None:
    """One step of each logit; ``diagonal`` is the address of `step_by_diagonal`, needed without precisions in full."""
    age, narrow = pool.counts[AGE], pool.counts[NARROW]
    wide = pool.weights.shape[1] if silence_varies(pool.silence) else narrow
    pool.counts[AGE] += 1
    first, middle = VOTERS, VOTERS + instances.signs.size
    last = middle + instances.scores.shape[1]
    full, working_logits = pool.precision.shape[1] > 0, LOGITS if working(pool, AGREED) else AGREED
    if full:
        for m in range(working_logits):
            if MEMORIES[m] < 1.0:
                forget(MEMORIES[m], RIDGE[m], pool.precision[m, : wide if INFORMED[m] else narrow])
        curve_together(
            room.store, room.ends, known, room.shares, INFORMED, room.means[:working_logits], room.chain,
            pool.precision,
        )  # fmt: skip
    for m in range(working_logits):
        size, count = wide if INFORMED[m] else narrow, room.ends[INFORMED[m]]
        if full:
            step_by_matrix(
                room.store, count, label, room.shares[m], (1.0 - MEMORIES[m]) * RIDGE[m], pool.home[m],
                pool.weights[m, :size], pool.precision[m, :size], pool.factor[m], age % (1 + (size - 1) // OFTEN) == 0,
                room.vectors,
            )  # fmt: skip
            add_up(pool, m, middle, last)
        else:
            spoke = call_diagonal(
                diagonal, room.store, count, known, label, room.shares[m], RIDGE[m], MEMORIES[m], pool.home[m],
                pool.weights[m], pool.diagonal[m], room.vectors, room.chain[0],
            )  # fmt: skip
            for a in range(spoke):
                place = room.chain[0, a]
                if first <= place < last and pool.seen[place] == 1:
                    pool.sums[m, 0 if place < middle else 1] += room.vectors[3, place]


@kernel(
    int64(
        InstancesT,
        Labels,
        int64,
        int64,
        int64,
        Indices,
        PoolT,
        AgreementT,
        ConfusionsT,
        ConfusionsT,
        RoomT,
        Cube,
        int64,
        boolean,
        Labels,
        Matrix,
    )
)
def play_votes(
    instances: Instances,
    labels: np.ndarray,
    begin: int,
    end: int,
    origin: int,
    shape: np.ndarray,
    pool: Pool,
    agreement: Agreement,
    confusions: Confusions,
    lately: Confusions,
    room: MixtureRoom,
    given: np.ndarray,
    diagonal: int,
    learn: bool,
    predictions: np.ndarray,
    table: np.ndarray,
) -> int:
    """Trials begin..end; ``given`` (trials, members, k) are the scores of the members from elsewhere.

    ``diagonal`` is the address of `step_by_diagonal`, needed to learn without precisions in full.

    ``table`` receives the logarithms of the mixed probabilities. It, what is given and the predictions are indexed from
    ``origin``. A label below 0 is none: voters are compared. Returns where it stopped: when trust is to be fitted.
    """
    for t in range(begin, end):
        mixed, known = table[t - origin], shape[KNOWN]
        labelled = learn and labels[t] >= 0
        fresh_label = labelled and labels[t] >= known
        # with a new class the prediction comes first; the rest of the trial knows it
        write_all(pool, confusions, lately, instances, t, known, labelled and not fresh_label, room)
        if known:
            predict(pool, agreement, instances, known, given[t - origin], room, mixed)
        for c in range(known):
            mixed[c] = math.log(mixed[c])
        predictions[t - origin] = top_two(mixed, shape)[0]
        if not labelled:
            if learn and agreement.trust.size:
                note_row(agreement, instances, t, known, room.chain[0])
                if agreement.numbers[ROWS] >= agreement.numbers[DUE]:
                    return t + 1
            continue
        if fresh_label:
            known = shape[KNOWN] = labels[t] + 1
            write_all(pool, confusions, lately, instances, t, known, True, room)
            predict(pool, agreement, instances, known, given[t - origin], room, room.vectors[5])
        welcome(pool, agreement, instances, room.ends[0], room.store)
        weigh_members(pool, labels[t], known, room.shares)
        learn_trial(pool, instances, known, labels[t], room, diagonal)
        note_trial(confusions, instances, t, known, labels[t])
        note_trial(lately, instances, t, known, labels[t])
        if note_silence(pool.silence, pool.seen, instances, t) and pool.counts[NARROW] < pool.seen.size:
            pool.counts[AGE] = 0  # some factors become larger
        pool.counts[TRIALS] += 1
    return end
