"""The trials of the pool: logits with several priors and memories, and members from elsewhere, mixed by fixed share.

Member m gives class c the probability (1 - e_m) P_m(c) + e_m / k: labels are guesses at a rate e_m that is counted on
the way, and a logit is made as sure as it was right (`linmax.learners.votes.logits`). The mixture weighs the members
by w, and after each trial

    w_m <- (1 - RATE) w_m p_m(label) / sum_i w_i p_i(label) + RATE / M,

so that whoever was best lately leads (Herbster and Warmuth 1998, Tracking the best expert). A voter or rater who speaks
for the first time has, in each logit, the mean weight of its kind so far.

The arrays of the pool for votes before the first trial, and over more coordinates.

Pools for votes that learned apart, and where their coordinates are in the mixture.

What is no weight of a logit in mixtures of pools for votes: counts, which add up, and the weights of members.

Mixtures of pools for votes that learned apart.

A logit with precision P, weights w and a prior of precision r about the weights h has learned, from its trials,

    the information J = P - r  and  the pull  b = P w - r h,

both of which its steps only add to, and forget at its rate g. After T trials they are those of about
c(T) = 1 + g + ... + g^(T-1) of them. The mixture of parts that learned T_i trials each, T together, has

    J = c(T) sum_i (T_i / T) J_i / c(T_i),

b likewise, and w = (J + r)^-1 (b + r h). Without forgetting these are plain sums: what one would have learned from all
trials, to second order. With it, the mixture remembers as much as one that learned them all, and every part's own
recent trials are recent. Shares have no say in this. What all parts went on from is taken once. So it does not matter
in which order parts are merged. For the rest:

* the prior means h are averaged by the information on their coordinates;
* the factors that sharpen the logits are mixed as weights are;
* the weights of the members are mixed by their logarithms, with the shares;
* guessed labels, the sizes of raters' scores, how voters agreed and what they named are counts, and add up;
* the trials that the refitted softmax keeps are folded into its Gaussian (`linmax.learners.softmax`).

Where curvature is a diagonal, J and P are diagonals.

The pool for voters and raters at work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numba import boolean, int64, types

from linmax.core.contract import EXPERTS, KNOWN, STRIDE, Cube, Indices, Instances, InstancesT, Labels, Matrix, Vector
from linmax.core.linear_max import top_two
from linmax.jit.blocks import SIDE
from linmax.jit.compiling import address_of, kernel
from linmax.learners.base import Description, Field, Mixture, Placement, Running, grown, merged
from linmax.learners.softmax import (
    IntTable,
    PlacedSoftmax,
    RunningSoftmax,
    Store,
    StoreT,
    mix_softmaxes,
    moved_to,
    new_store,
    rate,
    symmetric,
    to_shares,
    trust,
)
from linmax.learners.votes.agreement import (
    AGREEMENT_FIELDS,
    CREDIT,
    DUE,
    LIMIT,
    REST,
    ROWS,
    Agreement,
    AgreementT,
    due,
    fit_trust,
    grow_agreement,
    no_agreement,
    note_row,
)
from linmax.learners.votes.features import (
    CONFUSED,
    COPIED,
    SHARE,
    VOTERS,
    Confusions,
    ConfusionsT,
    grow_confusions,
    log_odds,
    merge_confusions,
    note_silence,
    note_trial,
    silence_varies,
    without_attributes,
    write_evidence,
    write_silence,
    write_trial,
)
from linmax.learners.votes.logits import (
    DIAGONAL,
    SHARPNESS_KEPT,
    call_diagonal,
    curve_together,
    factor_of,
    forget,
    join_sharpness,
    learn_sharpness,
    new_sharpness,
    sharpen,
    step_by_diagonal,
    step_by_matrix,
)
from linmax.util.blas import one_blas_thread
from linmax.util.names import apart

__all__ = [
    "FULL_PRECISION",
    "LOGITS",
    "Blocks",
    "MixtureRoom",
    "Pool",
    "PoolPart",
    "RunningVotes",
    "VotesPool",
    "blocked",
    "blocks_of",
    "has_matrices",
    "mix_pools",
    "mixed_agreement",
    "mixed_guesses",
    "mixed_members",
    "mixed_sharpness",
    "narrowed",
    "new_pool",
    "no_factors",
    "no_information",
    "of_logits",
    "play_votes",
    "remembered",
    "silent_block",
    "spread_out",
    "spread_pool",
]


RIDGE = np.array([1.0, 10.0, 10.0, 10.0, 10.0])
MEMORIES = np.array([1.0, 1.0, 0.999, 0.99, 1.0])
TRUST = 0.03
LOGITS = RIDGE.size
INFORMED = np.array([2, 1, 0, 0, 1])  # what a logit sees beyond votes, scores and thresholds: see `MixtureRoom.ends`
SEES_CONFUSION = 2  # and more; 1 and more sees the votes by how many are silent
STEADY, AGREED = 1, 4  # the last one's prior mean is what agreement tells; before it tells anything, it is the second
OUTSET = np.array([1.0, 1.0, 0.0])  # the first weights of the raters made of all votes
FIRST_SHARES = np.array([0.021, 0.43, 0.25, 0.298, 0.0, 0.001])
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
    silence: np.ndarray  # (3,): see `linmax.learners.votes.features`
    sharpness: np.ndarray  # (LOGITS, 2): factors and their precisions


PoolT = types.NamedTuple(
    (Matrix, Matrix, Cube, Cube, Matrix, Indices, Matrix, Matrix, Vector, Matrix, Indices, Vector, Matrix), Pool
)


class MixtureRoom(NamedTuple):
    """Where a trial is worked out."""

    store: Store  # of one trial
    shares: np.ndarray  # (members, k): the probabilities that they give, without their guesses
    own: np.ndarray  # (LOGITS, k): those of the logits before they are sharpened, from which they learn
    scores: np.ndarray  # (k,)
    vectors: np.ndarray  # (6, max(n, k)), where n is the size of a factor
    means: np.ndarray  # (LOGITS, n): 0 between trials
    ends: np.ndarray  # int64 (3,): where the ratings of the trial end: votes, scores and thresholds; then the votes by
    # how many are silent; then what voters confuse
    chain: np.ndarray  # int64 (2, max(k, ratings))


RoomT = types.NamedTuple((StoreT, Matrix, Matrix, Vector, Matrix, Matrix, Indices, IntTable), MixtureRoom)


@kernel()
def write_all(
    pool: Pool,
    confusions: Confusions,
    instances: Instances,
    t: int,
    known: int,
    learn: bool,
    room: MixtureRoom,
) -> None:
    """Write the ratings of instance t: as they are, by how many are silent, by what was named before."""
    store, ends = room.store, room.ends
    ends[0] = write_trial(instances, t, known, pool.scales, learn, store, room.scores)
    ends[1] = write_silence(pool.silence, pool.seen, instances, t, known, pool.counts[NARROW], store, ends[0])
    ends[2] = write_evidence(confusions, instances, t, known, CONFUSED, store, ends[1], room.scores)


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
            to_shares(room.scores, known, room.own[m])
            factor = factor_of(pool.sharpness[m], pool.counts[TRIALS])
            sharpen(factor, room.scores, room.own[m], known, shares)
        else:
            to_shares(given[m - LOGITS], known, shares)
        guess = pool.guesses[m, 0] / (pool.guesses[m, 0] + pool.guesses[m, 1])
        for c in range(known):
            mixed[c] += pool.mixture[m] * ((1.0 - guess) * shares[c] + guess / known)


@kernel()
def weigh_members(pool: Pool, label: int, known: int, room: MixtureRoom) -> None:
    """Weigh the members by the probability that they gave to the label, and sharpen those of the logits."""
    members, shares, total, count = pool.mixture.size, room.shares, 0.0, 0
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
        if m < LOGITS:
            learn_sharpness(pool.sharpness[m], room.own[m], known, label, sure)
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
            room.store, room.ends, known, room.own, INFORMED, room.means[:working_logits], room.chain,
            pool.precision,
        )  # fmt: skip
    for m in range(working_logits):
        size, count = wide if INFORMED[m] else narrow, room.ends[INFORMED[m]]
        if full:
            step_by_matrix(
                room.store, count, label, room.own[m], (1.0 - MEMORIES[m]) * RIDGE[m], pool.home[m],
                pool.weights[m, :size], pool.precision[m, :size], pool.factor[m], age % (1 + (size - 1) // OFTEN) == 0,
                room.vectors,
            )  # fmt: skip
            add_up(pool, m, middle, last)
        else:
            spoke = call_diagonal(
                diagonal, room.store, count, known, label, room.own[m], RIDGE[m], MEMORIES[m], pool.home[m],
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
        write_all(pool, confusions, instances, t, known, labelled and not fresh_label, room)
        if known:
            predict(pool, agreement, instances, known, given[t - origin], room, mixed)
        for c in range(known):
            mixed[c] = math.log(mixed[c])
        predictions[t - origin] = top_two(mixed, shape)[0]
        if not labelled:
            if learn and agreement.numbers.size:
                note_row(agreement, instances, t, known, room.chain[0])
                if agreement.numbers[ROWS] >= agreement.numbers[DUE]:
                    return t + 1
            continue
        if fresh_label:
            known = shape[KNOWN] = labels[t] + 1
            write_all(pool, confusions, instances, t, known, True, room)
            predict(pool, agreement, instances, known, given[t - origin], room, room.vectors[5])
        welcome(pool, agreement, instances, room.ends[0], room.store)
        weigh_members(pool, labels[t], known, room)
        learn_trial(pool, instances, known, labels[t], room, diagonal)
        note_trial(confusions, instances, t, known, labels[t])
        if note_silence(pool.silence, pool.seen, instances, t) and pool.counts[NARROW] < pool.seen.size:
            pool.counts[AGE] = 0  # some factors become larger
        pool.counts[TRIALS] += 1
    return end


GUESSES, OTHERS = 1.0, 9.0  # labels taken to have been seen, guessed and not, before the first


POOL_FIELDS = {  # but for the precisions, which are matrices or diagonals
    "weights": Field((LOGITS, "coordinate")),
    "home": Field((LOGITS, "coordinate")),
    "seen": Field(("coordinate",), dtype=np.int64),
    "sums": Field((LOGITS, 2)),
    "scales": Field(("rater", 2)),
    "guesses": Field((FIRST_SHARES.size, 2), [GUESSES, OTHERS]),
    "silence": Field((3,)),
    "sharpness": Field((LOGITS, 2)),
}


def new_pool() -> Pool:
    """Before the first trial: no voters and no raters."""
    precision = RIDGE[:, None, None] * np.eye(VOTERS)
    return Pool(
        weights=np.tile(OUTSET, (LOGITS, 1)),
        home=np.tile(OUTSET, (LOGITS, 1)),
        precision=precision,
        factor=no_factors(precision),
        diagonal=np.zeros((LOGITS, 0)),
        seen=np.zeros(VOTERS, np.int64),
        sums=np.zeros((LOGITS, 2)),
        scales=np.zeros((0, 2)),
        mixture=FIRST_SHARES.copy(),
        guesses=np.tile([GUESSES, OTHERS], (FIRST_SHARES.size, 1)),
        counts=np.array([0, 0, 0, 0, VOTERS]),
        silence=np.zeros(3),
        sharpness=new_sharpness(LOGITS),
    )


def spread_out(array: np.ndarray, places: np.ndarray, size: int) -> np.ndarray:
    """An array whose last axis has ``size`` coordinates: its own at these places, 0 elsewhere."""
    new = np.zeros((*array.shape[:-1], size), array.dtype)
    new[..., places] = array
    return new


def has_matrices(size: int) -> bool:
    """Whether the precisions over so many coordinates are full matrices, and voters are compared with each other."""
    return size <= FULL_PRECISION


def silent_block(voters: int, others: int) -> int:
    """How many coordinates votes have by how many are silent: as many as voters, or none where that would be too many.

    Examples
    --------
    >>> silent_block(20, 10), silent_block(200, 10)
    (20, 0)
    """
    return voters if has_matrices(VOTERS + 2 * voters + others) else 0


def blocks_of(instances: Instances, k: int) -> np.ndarray:
    """How many voters, raters and thresholds there are, and voters by how many are silent."""
    voters, raters, thresholds = instances.signs.size, instances.scores.shape[1], k if instances.constant else 0
    return np.array([voters, raters, thresholds, silent_block(voters, raters + thresholds)])


def narrowed(pool: Pool) -> Pool:
    """The pool without the coordinates of votes by how many are silent."""
    narrow = int(pool.counts[NARROW])
    return pool._replace(
        weights=pool.weights[:, :narrow],
        home=pool.home[:, :narrow],
        precision=pool.precision[:, :narrow, :narrow],
        diagonal=pool.diagonal[:, :narrow],
        seen=pool.seen[:narrow],
    )


def blocked(size: int) -> int:
    """The size of a factor of a matrix of this size: the next multiple of that of a block.

    Examples
    --------
    >>> [blocked(size) for size in (3, 4, 5)]
    [4, 4, 8]
    """
    return -(-size // SIDE) * SIDE


def no_factors(precision: np.ndarray) -> np.ndarray:
    """Room for the factors of these precisions."""
    size = blocked(precision.shape[1])
    return np.zeros((LOGITS, size, size))


def no_information(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Precisions over so many coordinates of which nothing is known: full matrices or diagonals, and none of the other.

    Examples
    --------
    >>> [array.shape for array in no_information(10)]
    [(5, 10, 10), (5, 0)]
    """
    if has_matrices(size):
        return RIDGE[:, None, None] * np.eye(size), np.zeros((LOGITS, 0))
    return np.zeros((LOGITS, 0, 0)), np.tile(RIDGE[:, None], size)


def spread_pool(pool: Pool, places: np.ndarray, size: int, narrow: int, raters: np.ndarray, count: int) -> Pool:
    """The pool over ``size`` coordinates and ``count`` raters; what it has is at these places among them.

    From ``narrow`` on they are those of votes by how many are silent.
    """
    precision, diagonal = no_information(size)
    mixture = pool.mixture.copy()
    if precision.size:
        for mine, own in zip(precision, pool.precision, strict=True):
            whole = np.tril(own) + np.tril(own, -1).T
            mine[np.ix_(places, places)] = whole
            mine[:] = np.tril(mine)
    else:
        full = pool.precision.size > 0
        diagonal[:, places] = np.diagonal(pool.precision, axis1=1, axis2=2) if full else pool.diagonal
        if mixture[AGREED] > 0.0:  # so many voters are not compared
            mixture[AGREED] = 0.0
            mixture /= mixture.sum()
    counts = pool.counts.copy()
    counts[[AGE, NARROW]] = 0, narrow
    sizes, axes = {"coordinate": size, "rater": count}, {"coordinate": places, "rater": raters}
    return pool._replace(
        **grown(POOL_FIELDS, pool, sizes, axes),
        precision=precision,
        factor=no_factors(precision),
        diagonal=diagonal,
        mixture=mixture,
        counts=counts,
    )


class PoolPart(NamedTuple):
    """A pool that learned apart, the places of its coordinates in the mixture, and how its scores have to be scaled."""

    running: RunningVotes
    pool: Pool  # its own, without votes by how many are silent if the mixture has none
    places: np.ndarray
    voters: np.ndarray
    raters: np.ndarray
    classes: np.ndarray
    units: np.ndarray  # of its coordinates, in those of the mixture; 1 but for raters

    @property
    def trials(self) -> int:
        """Trials learned."""
        return int(self.pool.counts[TRIALS])

    @property
    def rows(self) -> int:
        """Trials learned, and rows without a label: in which voters were compared."""
        agreement = self.running.agreement
        return self.trials + (round(float(agreement.numbers[ROWS])) if agreement.numbers.size else 0)

    @property
    def guided(self) -> bool:
        """Whether agreement guides a logit."""
        return bool(self.pool.mixture[AGREED] > 0.0)


class Blocks(NamedTuple):
    """How many voters, raters, thresholds, and voters by how many are silent, the mixture has."""

    voters: int
    raters: int
    thresholds: int
    silent: int

    @property
    def size(self) -> int:
        """All coordinates, those of all votes together included."""
        return VOTERS + sum(self)

    @property
    def narrow(self) -> int:
        """Those without votes by how many are silent."""
        return self.size - self.silent


def remembered(trials: int, kept: float) -> float:
    """c(T): how many trials the information after so many is that of."""
    return float(trials) if kept == 1.0 else (1.0 - kept**trials) / (1.0 - kept)


def of_logits(part: PoolPart, array: np.ndarray) -> np.ndarray:
    """What a part has of its logits: the one that agreement guides is the steady one where it has told nothing yet."""
    found = array.copy()
    if not part.guided:
        found[AGREED] = found[STEADY]
    return found


def _counted(parts: Sequence[PoolPart], base: PoolPart | None, kept: float) -> list[tuple[PoolPart, float]]:
    """How often what each part has counted is taken, and what the base has; forgotten as logits forget."""
    before = 0 if base is None else base.trials
    fresh = [part.trials - before for part in parts]
    total = sum(fresh)
    # of the only one that learned, all counts for what it did, to the last bit
    times = [
        remembered(total, kept) * count / total / remembered(count, kept) if 0 < count < total else float(count > 0)
        for count in fresh
    ]
    counted = list(zip(parts, times, strict=True))
    if base is not None:
        old = sum(often * kept**count for often, count in zip(times, fresh, strict=True))
        counted.append((base, kept**total - old))
    return counted


def mixed_sharpness(parts: Sequence[PoolPart], base: PoolPart | None) -> np.ndarray:
    """The factors of the logits, by the information about them, as weights are mixed."""
    return join_sharpness(
        [(of_logits(part, part.pool.sharpness), often) for part, often in _counted(parts, base, SHARPNESS_KEPT)]
    )


def mixed_members(parts: Sequence[PoolPart], shares: np.ndarray, full: bool) -> np.ndarray:
    """The weights of the members: their logarithms mixed; that of the guided logit by its odds, where there is one."""
    others = np.arange(FIRST_SHARES.size) != AGREED
    logs = sum(share * np.log(part.running.pool.mixture[others]) for part, share in zip(parts, shares, strict=True))
    mixture = np.zeros(FIRST_SHARES.size)
    mixture[others] = np.exp(logs - np.max(logs))
    mixture /= mixture.sum()
    guided = [
        (part.running.pool.mixture[AGREED], share) for part, share in zip(parts, shares, strict=True) if part.guided
    ]
    if guided and full:
        weights, portions = np.array(guided).T
        mixture[AGREED] = np.exp(portions @ np.log(weights / (1.0 - weights)) / portions.sum())
        mixture /= mixture.sum()
    return mixture


def mixed_guesses(parts: Sequence[PoolPart], base: PoolPart | None) -> np.ndarray:
    """Labels guessed and not, as each member saw it, added up."""
    first = np.tile([GUESSES, OTHERS], (FIRST_SHARES.size, 1)) if base is None else _guessed(base)
    return np.asarray(first + sum(_guessed(part) - first for part in parts))


def _guessed(part: PoolPart) -> np.ndarray:
    return of_logits(part, part.running.pool.guesses)


def mixed_agreement(mixture: Mixture, parts: Sequence[PoolPart], blocks: Blocks) -> Agreement:
    """How voters agreed, in all rows without a label."""
    compared = mixture.of(lambda state: state.agreement if state.agreement.numbers.size else None)
    if not has_matrices(blocks.size) or not compared.parts:
        return no_agreement()
    sizes = {"voter": blocks.voters, "class": mixture.k}
    new = grow_agreement(no_agreement(), sizes)._replace(
        **merged(AGREEMENT_FIELDS, compared, sizes, lambda part: {"voter": part.voters, "class": part.classes})
    )
    new.numbers[ROWS] = max(0.0, sum(sign * float(part.state.numbers[ROWS]) for part, sign in compared.counted))
    guided = [
        (*part.running.agreement.numbers[[CREDIT, LIMIT]], share)
        for part, share in zip(parts, mixture.shares, strict=True)
        if part.guided
    ]
    if guided:
        credit, limit, portions = np.array(guided).T
        new.numbers[[CREDIT, LIMIT]] = portions @ credit / portions.sum(), portions @ limit / portions.sum()
        new.numbers[DUE] = new.numbers[ROWS]
    return new


FAINTEST = 1e-9  # information, for each trial, of a coordinate that has spoken and told nothing


def mix_pools(target: RunningVotes, mixture: Mixture) -> None:
    """Write the mixture over ``target``, which has learned nothing."""
    everyone = [*mixture.parts, *([] if mixture.base is None else [mixture.base])]
    voters = 1 + max((int(part.voters.max(initial=-1)) for part in everyone), default=-1)
    raters = 1 + max((int(part.raters.max(initial=-1)) for part in everyone), default=-1)
    thresholds = mixture.k if any(part.state.blocks[2] for part in everyone) else 0
    blocks = Blocks(voters, raters, thresholds, silent_block(voters, raters + thresholds))
    target.blocks, target.room = np.array(blocks, np.int64), None
    target.signs = np.ones(blocks.voters)
    for part in everyone:
        target.signs[part.voters[: part.state.signs.size]] = part.state.signs
    counted = merged(
        {name: POOL_FIELDS[name] for name in ("scales", "silence")}, mixture.of(lambda state: state.pool),
        {"rater": blocks.raters}, lambda part: {"rater": part.raters},
    )  # fmt: skip
    scales = counted["scales"]
    parts, shares = [_placed(part, blocks, scales) for part in mixture.parts], mixture.shares
    base = None if mixture.base is None else _placed(mixture.base, blocks, scales)
    target.confusions = merge_confusions(mixture.of(lambda state: state.confusions), blocks.voters)
    learned = [part for part in parts if part.rows > (0 if base is None else base.rows)]
    if len(learned) <= 1:
        _take(target, (learned or parts)[0], blocks, mixture.k)
        return
    target.refitted = mix_softmaxes(
        [_softmax(part) for part in parts], None if base is None else _softmax(base), blocks.narrow - VOTERS
    )
    target.pool = _mixed(parts, shares, base, blocks, **counted)
    target.agreement = mixed_agreement(mixture, parts, blocks)
    numbers = target.agreement.numbers
    if numbers.size and mixture.known >= 2 and (numbers[LIMIT] or numbers[ROWS] >= numbers[DUE]):
        target.follow_agreement(mixture.known)


def _placed(part: Placement, blocks: Blocks, scales: np.ndarray) -> PoolPart:
    running: RunningVotes = part.state
    own_voters, own_raters, own_thresholds, own_silent = running.blocks.tolist()
    voters, raters, classes = part.voters[:own_voters], part.raters[:own_raters], part.classes[:own_thresholds]
    places = np.concatenate(
        [np.arange(VOTERS), VOTERS + voters, VOTERS + blocks.voters + raters,
         VOTERS + blocks.voters + blocks.raters + classes, blocks.narrow + voters[: min(own_silent, blocks.silent)]]
    ).astype(np.int64)  # fmt: skip
    units = np.ones(places.size)
    own, all_of = running.pool.scales[:own_raters], scales[raters]
    told = (own[:, 1] > 0.0) & (all_of[:, 1] > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.sqrt(own[:, 1] / own[:, 0]) / np.sqrt(all_of[:, 1] / all_of[:, 0])
    units[VOTERS + own_voters : VOTERS + own_voters + own_raters] = np.where(told, sizes, 1.0)
    pool = running.pool if blocks.silent else narrowed(running.pool)
    return PoolPart(running, pool, places, voters, raters, part.classes, units)


def _softmax(part: PoolPart) -> PlacedSoftmax:
    return PlacedSoftmax(part.running.refitted, part.places[VOTERS : part.pool.counts[NARROW]] - VOTERS)


def _take(target: RunningVotes, part: PoolPart, blocks: Blocks, k: int) -> None:
    """The only one that learned anything, bit for bit."""
    own = part.running
    target.refitted = moved_to(_softmax(part), blocks.narrow - VOTERS)
    target.pool = spread_pool(part.pool, part.places, blocks.size, blocks.narrow, part.raters, blocks.raters)
    target.agreement = no_agreement()
    if own.agreement.numbers.size and target.pool.precision.size:
        sizes = {"voter": blocks.voters, "class": k}
        target.agreement = grow_agreement(own.agreement, sizes, {"voter": part.voters, "class": part.classes})


# -- logits -------------------------------------------------------------------------------------------------------


class LogitEvidence(NamedTuple):
    """What a logit has learned from its trials, over the coordinates of the mixture."""

    information: np.ndarray  # (n, n), or (n,) where it is a diagonal
    pull: np.ndarray
    home: np.ndarray
    trials: int

    def faded(self, factor: float) -> LogitEvidence:
        """The same, so much of it."""
        return self._replace(information=factor * self.information, pull=factor * self.pull)


def _learned(part: PoolPart, m: int, size: int) -> LogitEvidence:
    """The information of logit m; the one that agreement guides is the steady one where it has told nothing yet."""
    pool = part.pool
    m = STEADY if m == AGREED and not part.guided else m
    weights, home = pool.weights[m] / part.units, pool.home[m] / part.units
    if pool.precision.size:
        own = symmetric(pool.precision[m]) - RIDGE[m] * np.eye(len(part.units))
        own *= np.outer(part.units, part.units)
    else:
        own = (pool.diagonal[m] - RIDGE[m]) * part.units**2
    full = has_matrices(size)
    if not full and own.ndim == 2:
        own = np.diag(own)
    pull = (own @ weights if own.ndim == 2 else own * weights) + RIDGE[m] * (weights - home)
    if not full:
        information = spread_out(own, part.places, size)
    else:
        information = np.zeros((size, size))
        information[np.ix_(part.places, part.places)] = own
    return LogitEvidence(
        information, spread_out(pull, part.places, size), spread_out(home, part.places, size), part.trials
    )


def _joined(parts: Sequence[LogitEvidence], base: LogitEvidence | None, kept: float, seen: np.ndarray) -> LogitEvidence:
    """What they have learned together; ``seen`` tells which part knows which coordinate."""
    before = 0 if base is None else base.trials
    total = sum(part.trials - before for part in parts)
    information, pull = np.zeros_like(parts[0].information), np.zeros_like(parts[0].pull)
    home, told = np.zeros_like(pull), np.zeros_like(pull)
    for place, part in enumerate(parts):
        fresh = part.trials - before
        if fresh <= 0:
            continue
        share = remembered(total, kept) * fresh / total / remembered(fresh, kept)
        new = part.faded(share)
        if base is not None:
            old = base.faded(share * kept**fresh)
            new = new._replace(information=new.information - old.information, pull=new.pull - old.pull)
        information += new.information
        pull += new.pull
        # a coordinate that spoke and told nothing counts for next to nothing, so that its prior mean is not lost
        weight = np.where(seen[place], np.maximum(_diagonal(new.information), FAINTEST * fresh), 0.0)
        home += weight * part.home
        told += weight
    if base is not None:
        rest = base.faded(kept**total)
        information += rest.information
        pull += rest.pull
        home += FAINTEST * base.home
        told += FAINTEST * (base.home != 0.0)
    home = np.divide(home, told, out=home, where=told > 0.0)
    home[:VOTERS] = np.where(told[:VOTERS] > 0.0, home[:VOTERS], OUTSET)
    return LogitEvidence(information, pull, home, before + total)


def _diagonal(information: np.ndarray) -> np.ndarray:
    return np.diag(information) if information.ndim == 2 else information


def _mixed(
    parts: Sequence[PoolPart],
    shares: np.ndarray,
    base: PoolPart | None,
    blocks: Blocks,
    scales: np.ndarray,
    silence: np.ndarray,
) -> Pool:
    """The pool of the mixture, with the logit that agreement guides where it guided those of the parts, on average."""
    size = blocks.size
    precision, diagonal = no_information(size)
    everyone = [*parts, *([] if base is None else [base])]
    seen = np.array([spread_out(part.pool.seen, part.places, size) for part in parts]).max(axis=0)
    spoke = np.array([spread_out(part.pool.seen, part.places, size) == 1 for part in parts])
    spoke[:, :VOTERS], spoke[:, VOTERS + blocks.voters + blocks.raters :] = True, True
    weights, home = np.zeros((LOGITS, size)), np.zeros((LOGITS, size))
    for m in range(LOGITS):
        learned = [_learned(part, m, size) for part in everyone]
        found = _joined(learned[: len(parts)], None if base is None else learned[-1], float(MEMORIES[m]), spoke)
        home[m] = found.home
        right = found.pull + RIDGE[m] * found.home
        if precision.size:
            precision[m] += found.information
            with one_blas_thread():
                weights[m] = np.linalg.solve(precision[m], right)
        else:
            diagonal[m] += found.information
            weights[m] = right / diagonal[m]
    counts = np.array([0, 0, 0, 0, blocks.narrow])
    sums = np.zeros((LOGITS, 2))
    experts = [slice(VOTERS, VOTERS + blocks.voters), slice(VOTERS + blocks.voters, VOTERS + sum(blocks[:2]))]
    for kind, block in enumerate(experts):
        counts[SPOKEN + kind] = (seen[block] == 1).sum()
        sums[:, kind] = (weights[:, block] * (seen[block] == 1)).sum(axis=1)
    before = 0 if base is None else base.trials
    counts[TRIALS] = before + sum(part.trials - before for part in parts)
    return Pool(
        weights, home, np.tril(precision), no_factors(precision), diagonal, seen, sums, scales.copy(),
        mixed_members(parts, shares, bool(precision.size)), mixed_guesses(parts, base), counts,
        silence, mixed_sharpness(parts, base),
    )  # fmt: skip


REFITTED = 0.1  # precision of the prior of the logit that is fitted afresh to all trials now and then
GUIDED = 0.95  # first weight of the logit that agreement guides, where it tells all and no label has come
HALVING_LABELS = 50.0  # labels after which it is half as large
STAY = np.zeros(0, np.int32)  # labels of trials that are only judged


class RunningVotes(Running):
    """State: the logits and their mixture (`Pool`), and a robust softmax that is refitted now and then.

    It has coordinates of its own, and so does not mind where the engine has its weights.
    """

    takes_gaps = True

    def __init__(self) -> None:
        self.refitted = RunningSoftmax(REFITTED, True, 0)
        self.blocks = np.zeros(4, np.int64)  # voters, raters, thresholds, voters by how many are silent
        self.signs = np.zeros(0)  # of the voters
        self.pool = new_pool()
        self.agreement = no_agreement()
        self.confusions = grow_confusions(None, 0, 0)
        self.room: MixtureRoom | None = None

    @property
    def pools(self) -> dict[str, Running]:
        return {"votes": self}

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        parts: dict[str, Pool | Agreement | Confusions] = {
            "pool": self.pool,
            "agreement": self.agreement,
            "confusions": self.confusions,
        }
        found = {"blocks": self.blocks, "signs": self.signs}
        for part, state in parts.items():
            found |= {f"{part}.{name}": array for name, array in state._asdict().items()}
        return found | {f"refitted.{name}": array for name, array in self.refitted.arrays.items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        parts = apart({name: array.copy() for name, array in arrays.items()})
        self.blocks, self.signs = parts[""]["blocks"], parts[""]["signs"]
        self.pool, self.room = Pool(**parts["pool"]), None
        self.agreement, self.confusions = Agreement(**parts["agreement"]), Confusions(**parts["confusions"])
        self.refitted.restore(parts["refitted"])

    def _fits(self, instances: Instances, k: int) -> bool:
        """Whether there is room for these instances."""
        if self.confusions.labels.size < k:
            return False
        return np.array_equal(self.blocks, blocks_of(instances, k))

    def _fit(self, instances: Instances, k: int) -> None:
        """Make room for the voters and raters of these instances and for k classes."""
        blocks = blocks_of(instances, k)
        self.confusions = grow_confusions(self.confusions, int(blocks[0]), k)
        if np.array_equal(blocks, self.blocks):
            self.room = None
            return
        if blocks[3] < self.blocks[3]:
            self.pool, self.blocks[3] = narrowed(self.pool), 0
        starts = np.append(0, np.cumsum(blocks))
        narrow, size = int(starts[3]), int(starts[4])
        *given, silent = (starts[b] + np.arange(self.blocks[b]) for b in range(4))
        places = np.concatenate(given).astype(np.int64)
        if places.size:
            self.refitted.move(lambda array: spread_out(array, places, narrow))
        else:
            self.refitted = RunningSoftmax(REFITTED, True, narrow)
        raters = np.arange(len(self.pool.scales))
        all_places = np.concatenate([np.arange(VOTERS), VOTERS + places, VOTERS + silent])
        self.pool = spread_pool(self.pool, all_places, VOTERS + size, VOTERS + narrow, raters, int(blocks[1]))
        if self.agreement.numbers.size:
            self._compare_voters(int(blocks[0]), k)
        self.blocks, self.signs, self.room = blocks, instances.signs.copy(), None

    def _compare_voters(self, voters: int, k: int) -> None:
        """Make room to count how so many voters agree, unless they are too many."""
        sizes = {"voter": voters, "class": max(k, self.agreement.habits.shape[1])}
        self.agreement = grow_agreement(self.agreement, sizes) if self.pool.precision.size else no_agreement()

    def mix(self, mixture: Mixture) -> None:
        mix_pools(self, mixture)

    def room_for(self, k: int) -> MixtureRoom:
        """MixtureRoom for one trial; kept as long as nothing grows."""
        if self.room is None or self.room.scores.size != k:
            n, most = self.pool.weights.shape[1], int(2 * self.blocks[0] + k * (self.blocks[1] + VOTERS + 1))
            self.room = MixtureRoom(
                new_store(1, most),
                np.zeros((FIRST_SHARES.size, k)),
                np.zeros((LOGITS, k)),
                np.zeros(k),
                np.zeros((6, max(blocked(n), k))),
                np.zeros((LOGITS, n)),
                np.zeros(3, np.int64),
                np.zeros((2, max(k, most)), np.int64),
            )
        return self.room

    def _shape(self, shape: np.ndarray, k: int) -> np.ndarray:
        """That of the engine with the coordinates of this learner."""
        own = shape.copy()
        own[EXPERTS], own[STRIDE] = self.blocks[0] + self.blocks[1], k
        return own

    def play(
        self, shape: np.ndarray, instances: Instances, labels: np.ndarray, begin: int, end: int, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        if not self._fits(instances, k):
            self._fit(instances, k)
        counted = self.agreement.numbers.size > 0
        if self.agreement.habits.shape[1] < k and (counted or labels[begin:end].min(initial=0) < 0):
            self._compare_voters(int(self.blocks[0]), k)
        instances = without_attributes(instances)
        _, given = self.refitted.play(self._shape(shape, k), instances, labels, begin, end, k)
        predictions, table = np.zeros(end - begin, np.int32), np.zeros((end - begin, k))
        t, room = begin, self.room_for(k)
        diagonal = 0 if self.pool.precision.shape[1] else address_of(step_by_diagonal, DIAGONAL)
        while t < end:
            t = play_votes(
                instances, labels, t, end, begin, shape, self.pool, self.agreement, self.confusions, room,
                given[:, None], diagonal, True, predictions, table,
            )  # fmt: skip
            if due(self.agreement, int(shape[KNOWN])):
                self.follow_agreement(int(shape[KNOWN]))
        return predictions, table

    def judge(self, shape: np.ndarray, instances: Instances, size: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        if not self._fits(instances, k):
            larger = RunningVotes()
            larger.restore(self.arrays)
            larger._fit(instances, k)
            return larger.judge(shape, instances, size, k)
        instances = without_attributes(instances)
        _, given = self.refitted.judge(self._shape(shape, k), instances, size, k)
        predictions, table = np.zeros(size, np.int32), np.zeros((size, k))
        play_votes(
            instances, STAY, 0, size, 0, shape, self.pool, self.agreement, self.confusions,
            self.room_for(k), given[:, None], 0, False, predictions, table,
        )  # fmt: skip
        return predictions, table

    def follow_agreement(self, known: int) -> None:
        """Fit trust to agreement, and move the logit that it guides as the mean of its prior moves.

        With precision P the weights that fit the labels best change by ridge P^-1 times the change of the mean.
        """
        pool, voters = self.pool, int(self.blocks[0])
        with one_blas_thread():
            fit_trust(self.agreement, known)
        home, (trust, rest), numbers = pool.home[STEADY].copy(), self.agreement.trust, self.agreement.numbers
        if numbers[LIMIT] == 0.0:
            numbers[LIMIT] = GUIDED * HALVING_LABELS / (HALVING_LABELS + float(pool.counts[TRIALS]))
            for array in (pool.weights, pool.home, pool.precision, pool.guesses, pool.sharpness):
                array[AGREED] = array[STEADY]
        credit, before = numbers[LIMIT] * (1.0 - numbers[REST]), numbers[CREDIT]
        if before > 0.0:  # what labels have shown stays: the odds change as those of the first weights do
            pool.mixture[AGREED] *= credit / (1.0 - credit) * (1.0 - before) / before
        else:
            pool.mixture[AGREED] = credit / (1.0 - credit) * float(pool.mixture.sum())
        pool.mixture[:] /= pool.mixture.sum()
        numbers[CREDIT] = credit
        home[SHARE] = numbers[REST] * OUTSET[SHARE]
        heard = np.flatnonzero(pool.seen[VOTERS : VOTERS + voters] == 1)
        home[VOTERS + heard] = trust[heard] + rest[heard] * home[VOTERS + heard]
        with one_blas_thread():
            pool.weights[AGREED] += np.linalg.solve(
                symmetric(pool.precision[AGREED]), RIDGE[AGREED] * (home - pool.home[AGREED])
            )
        pool.home[AGREED] = home
        for kind, block in enumerate(np.split(np.arange(int(self.blocks[:2].sum())), [voters])):
            seen = VOTERS + block[pool.seen[VOTERS + block] == 1]
            pool.sums[AGREED, kind] = pool.weights[AGREED, seen].sum()

    @property
    def members(self) -> dict[str, float]:
        """How far the mixture follows each member at present, by what it is; the shares add up to 1."""
        found: dict[str, float] = {}
        for m, share in enumerate(self.pool.mixture.tolist()):
            name = "robust softmax, refitted now and then"
            if m == AGREED:
                if not share:
                    continue
                name = "logit that starts from how far voters agree"
            elif m < LOGITS:
                memory = "all trials" if MEMORIES[m] == 1.0 else f"about {1.0 / (1.0 - MEMORIES[m]):,.0f} trials"
                confused = ", that sees what voters confuse" if INFORMED[m] >= SEES_CONFUSION else ""
                name = f"logit of {memory}, prior {RIDGE[m]:g}{confused}"
            found[name] = found.get(name, 0.0) + share
        return found

    def _weights(self) -> np.ndarray:
        """(logits, n): with the first weights of voters and raters who have not spoken, but for copies of voters."""
        pool, voters, experts = self.pool, int(self.blocks[0]), int(self.blocks[:2].sum())
        weights = pool.weights.copy()
        for kind, (first, last) in enumerate([(0, voters), (voters, experts)]):
            new = (TRUST + pool.sums[:, kind]) / (1.0 + pool.counts[SPOKEN + kind])
            silent = pool.seen[VOTERS + first : VOTERS + last] == 0
            firsts = np.repeat(new[:, None], last - first, axis=1)
            if kind == 0:
                silent &= self.signs == 1.0
                if self.agreement.numbers.size:
                    firsts[AGREED] = self.agreement.trust[0] + self.agreement.trust[1] * new[AGREED]
            weights[:, VOTERS + first : VOTERS + last] += np.where(silent, firsts, 0.0)
        return weights

    def _sharpened(self, weights: np.ndarray) -> np.ndarray:
        """The weights of the logits by which they count in the mixture."""
        return np.asarray(weights * factor_of(self.pool.sharpness.T, int(self.pool.counts[TRIALS]))[:, None])

    def hypothesis(self) -> np.ndarray:
        """The mean of the members' weights by the mixture; the share of votes belongs to all voters and raters alike.

        A voter or rater who has not spoken has the weight of a newcomer.
        """
        experts, mixture, pool = int(self.blocks[:2].sum()), self.pool.mixture, self.pool
        own = self._sharpened(pool.weights)
        weights = self._sharpened(self._weights())[:, VOTERS : pool.counts[NARROW]]
        if len(self.confusions.votes):
            told = np.where(self.signs == 1.0, log_odds(self.confusions), 0.0)
            weights[:, : self.blocks[0]] += np.outer(own[:, CONFUSED], told)
        copies = np.flatnonzero(np.abs(self.signs) != 1.0)
        weights[:, :experts] += own[:, [SHARE]] / max(1, experts - len(copies))
        weights[:, copies] = own[:, VOTERS + copies] * COPIED / np.abs(self.signs[copies])
        return np.asarray(mixture[:LOGITS] @ weights + mixture[LOGITS] * self.refitted.weights)


@dataclass(frozen=True)
class VotesPool(Description):
    """Description of the pool; made by ``linmax.vr_combine(pool="votes")``."""

    name: ClassVar[str] = "votes"
    from_zero: ClassVar[bool] = False
    linear: ClassVar[bool] = False
    unmixable: ClassVar[str] = ""
    learns_attributes: ClassVar[bool] = False

    def start(self, size: int) -> Running:
        return RunningVotes()
