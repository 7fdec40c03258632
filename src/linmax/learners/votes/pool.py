"""The pool for voters and raters: logits with several priors and memories, and a refitted softmax, mixed.

Member m gives class c the probability (1 - e_m) P_m(c) + e_m / k: labels are guesses at a rate e_m that is counted
online, and a logit is made as sure as it was right (`linmax.learners.votes.logits`). The mixture weighs the members
by w, and after each trial

    w_m <- (1 - RATE) w_m p_m(label) / sum_i w_i p_i(label) + RATE / M,

so that the best recent member leads (Herbster and Warmuth 1998, Tracking the best expert). A voter or rater that votes
for the first time has, in each logit, the mean weight of its kind so far.

Pools that learned from different trials merge as follows. A logit with precision P, weights w and a prior of precision
r about the weights h has learned, from its trials,

    the information J = P - r  and  the pull  b = P w - r h,

both of which its steps only add to, and forget at its rate g. After T trials they are those of about
c(T) = 1 + g + ... + g^(T-1) of them. The mixture of parts that learned T_i trials each, T together, has

    J = c(T) sum_i (T_i / T) J_i / c(T_i),

b likewise, and w = (J + r)^-1 (b + r h). Without forgetting these are plain sums: what one would have learned from all
trials, to second order. With it, the mixture remembers as much as one that learned them all, and every part's own
recent trials are recent. Shares have no say in this. What all parts continued from is taken once. So it does not matter
in which order parts are merged. For the rest:

* the prior means h are averaged by the information on their coordinates;
* the factors that sharpen the logits are mixed as weights are;
* the weights of the members are mixed by their logarithms, with the shares;
* guessed labels, the sizes of raters' scores, how voters agreed and what they named are counts, and add up;
* the trials that the refitted softmax keeps are folded into its Gaussian (`linmax.learners.softmax`).

Where curvature is a diagonal, J and P are diagonals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import boolean, int64

from linmax.core.contract import EXPERTS, STRIDE, Indices, Labels, Matrix, Trials, TrialsT
from linmax.core.linear_max import top_two
from linmax.data.arrays import no_trials
from linmax.jit.blocks import SIDE
from linmax.jit.compiling import kernel
from linmax.jit.struct import act, entry
from linmax.learners.base import Description, Field, Mixture, Placement, Running, grown, struct_of
from linmax.learners.softmax import (
    PlacedSoftmax,
    RunningSoftmax,
    mix_softmaxes,
    moved_to,
    rate,
    symmetric,
    to_shares,
    trust,
)
from linmax.learners.votes.agreement import AGREEMENT_FIELDS, CREDIT, DUE, LIMIT, REST, ROWS, fit_trust, note_row
from linmax.learners.votes.features import (
    CONFUSED,
    CONFUSION_FIELDS,
    COPIED,
    SHARE,
    VOTERS,
    counted_voters,
    log_odds,
    note_silence,
    note_trial,
    silence_varies,
    write_evidence,
    write_silence,
    write_trial,
)
from linmax.learners.votes.logits import (
    SHARPNESS_KEPT,
    SHARPNESS_PRIOR,
    curve_together,
    factor_of,
    forget,
    join_sharpness,
    learn_sharpness,
    sharpen,
    step_by_diagonal,
    step_by_matrix,
)
from linmax.util.blas import one_blas_thread
from linmax.util.names import by_part

__all__ = ["FULL_PRECISION", "LOGITS", "RATE", "RunningVotes", "VotesPool", "play_votes"]


RIDGE = np.array([1.0, 10.0, 10.0, 10.0, 10.0])
MEMORIES = np.array([1.0, 1.0, 0.999, 0.99, 1.0])
TRUST = 0.03
LOGITS = RIDGE.size
INFORMED = np.array([2, 1, 0, 0, 1])  # what a logit sees beyond votes, scores and thresholds: see ``ends``
SEES_CONFUSION = 2  # and more; 1 and more sees the votes by how many are silent
STEADY, AGREED = 1, 4  # the last one's prior mean comes from agreement; before there is any, it equals the second
OUTSET = np.array([1.0, 1.0, 0.0])  # the first weights of the raters made of all votes
FIRST_SHARES = np.array([0.021, 0.43, 0.25, 0.298, 0.0, 0.001])
MEMBERS = FIRST_SHARES.size
RATE = 1e-3  # of the fixed share
LEAST_PROBABILITY = 1e-9  # least probability by which a member is weighed
LEAST_PRODUCT = 1e-90  # the same of a trial that counts many times
OFTEN = 64  # coordinates up to which the precision is factorized at every trial; beyond, the more rarely the more
FULL_PRECISION = 256  # coordinates up to which the precision is a full matrix, and voters are compared
REFITTED = 0.1  # precision of the prior of the softmax that is refitted to all trials now and then
GUIDED = 0.95  # first weight of the logit that agreement guides, where it tells all and no label has come
HALVING_LABELS = 50.0  # labels after which it is half as large
FAINTEST = 1e-9  # information, for each trial, of a coordinate that was heard and taught nothing
GUESSES, OTHERS = 1.0, 9.0  # labels taken to have been seen, guessed and not, before the first

TRIALS, HEARD, AGE, NARROW = 0, 1, 3, 4  # of `counts`: trials, voters and raters that were heard, the age of the
# factors, and how many coordinates there are before those of votes by how many are silent

# Precisions are full matrices over "square", of which the lower halves are stored, or diagonals over "line".
FIELDS = (
    CONFUSION_FIELDS
    | AGREEMENT_FIELDS
    | {
        "blocks": Field((4,), merge="", dtype=np.int64),  # voters, raters, thresholds, voters by how many are silent
        "signs": Field(("voter",), 1.0, ""),
        "weights": Field((LOGITS, "coordinate"), merge=""),
        "home": Field((LOGITS, "coordinate"), merge=""),  # means of the priors
        "precision": Field((LOGITS, "square", "square"), merge=""),
        "factor": Field((LOGITS, "factor"), merge=""),  # upper triangles as `linmax.jit.blocks` has them
        "diagonal": Field((LOGITS, "line"), merge=""),
        "seen": Field(("coordinate",), merge="", dtype=np.int64),  # 1 where a voter or rater was heard
        "sums": Field((LOGITS, 2), merge=""),  # of the weights of voters and of raters that were heard
        "scales": Field(("rater", 2)),  # trials and sums of squares
        "mixture": Field((MEMBERS,), FIRST_SHARES, ""),
        "guesses": Field((MEMBERS, 2), [GUESSES, OTHERS], ""),  # labels guessed and not
        "counts": Field((5,), merge="", dtype=np.int64),
        "silence": Field((3,)),  # see `linmax.learners.votes.features`
        "sharpness": Field((LOGITS, 2), [1.0, SHARPNESS_PRIOR], ""),  # factors and their precisions
        # workspace of one trial: its votes and scores, and its ratings as lists
        "row": Field(("voter",), merge="", dtype=np.int32, saved=False),
        "amount": Field((1,), merge="", saved=False),  # its weight
        "given": Field(("rater", "class"), merge="", saved=False),
        "places": Field(("rating",), merge="", dtype=np.int32, saved=False),
        "of": Field(("rating",), merge="", dtype=np.int32, saved=False),
        "values": Field(("rating",), merge="", saved=False),
        "ends": Field((3,), merge="", dtype=np.int64, saved=False),  # where the ratings of votes, scores and thresholds
        # end; then the votes by how many are silent; then what voters confuse
        "shares": Field((MEMBERS, "class"), merge="", saved=False),  # the members' probabilities without their guesses
        "own": Field((LOGITS, "class"), merge="", saved=False),  # those of the logits before they are sharpened
        "scores": Field(("class",), merge="", saved=False),
        "mixed": Field(("class",), merge="", saved=False),
        "vectors": Field((6, "longest"), merge="", saved=False),
        "means": Field((LOGITS, "coordinate"), merge="", saved=False),  # 0 between trials
        "chain": Field((2, "chain"), merge="", dtype=np.int64, saved=False),
    }
)
PoolT = struct_of(FIELDS).numba_type


@kernel()
def write_ratings(pool: Any, known: int, counts: bool) -> None:
    """Write the ratings of the trial: as they are, by how many are silent, by what was named before."""
    ends = pool.ends
    ends[0] = write_trial(pool, known, counts)
    ends[1] = write_silence(pool, known, pool.counts[NARROW], ends[0])
    ends[2] = write_evidence(pool, known, ends[1])


@kernel()
def newcomer(pool: Any, m: int, kind: int) -> float:
    """Return the weight that logit m gives to a voter (kind 0) or rater (1) that was not heard yet."""
    return (TRUST + pool.sums[m, kind]) / (1.0 + pool.counts[HEARD + kind])


@kernel()
def working(pool: Any, m: int) -> bool:
    """Return whether member m takes part: the logit that agreement guides does once there is agreement."""
    return m != AGREED or pool.mixture[m] > 0.0


@kernel()
def first_weight(pool: Any, m: int, place: int) -> float:
    """Return the weight that logit m gives to a voter or rater that was not heard with a label yet."""
    voter = place - VOTERS
    if voter >= pool.blocks[0]:
        return newcomer(pool, m, 1)
    usual = newcomer(pool, m, 0)
    return pool.trust[0, voter] + pool.trust[1, voter] * usual if m == AGREED else usual


@kernel()
def is_new(pool: Any, place: int) -> bool:
    """Return whether a coordinate belongs to a voter or rater that was not heard yet; copies of voters do not count."""
    voter = place - VOTERS
    if not 0 <= voter < pool.blocks[0] + pool.blocks[1] or pool.seen[place]:
        return False
    return voter >= pool.blocks[0] or pool.signs[voter] == 1.0


@kernel()
def welcome(pool: Any) -> None:
    """Give their first weights to those of this trial that were not heard before."""
    places, seen, sums, voters = pool.places, pool.seen, pool.sums, VOTERS + pool.blocks[0]
    joined, others, last = 0, 0, voters + pool.blocks[1]
    for j in range(pool.ends[0]):
        place = places[j]
        if is_new(pool, place):
            for m in range(LOGITS):
                if working(pool, m):
                    pool.weights[m, place] = pool.home[m, place] = first_weight(pool, m, place)
            joined += place < voters
            others += place >= voters
            seen[place] = 1
        elif VOTERS <= place < last and not seen[place]:
            seen[place] = 2
    if joined + others:
        for m in range(LOGITS):
            sums[m, 0] += joined * newcomer(pool, m, 0)
            sums[m, 1] += others * newcomer(pool, m, 1)
        pool.counts[HEARD] += joined
        pool.counts[HEARD + 1] += others


@kernel()
def predict(pool: Any, given: np.ndarray, known: int) -> None:
    """Write the probabilities of the classes: of each member, without its guesses, and of the mixture."""
    mixed, scores, places, of, values = pool.mixed, pool.scores, pool.places, pool.of, pool.values
    for c in range(known):
        mixed[c] = 0.0
    for m in range(MEMBERS):
        if not working(pool, m):
            continue
        shares, guesses = pool.shares[m], pool.guesses[m]
        if m < LOGITS:
            count, own = pool.ends[INFORMED[m]], pool.own[m]
            rate(pool, 0, count, pool.weights[m], scores)
            for j in range(count):
                if is_new(pool, places[j]):
                    scores[of[j]] += first_weight(pool, m, places[j]) * values[j]
            to_shares(scores, known, own)
            sharpen(factor_of(pool.sharpness[m], pool.counts[TRIALS]), scores, own, known, shares)
        else:
            to_shares(given, known, shares)
        guess = guesses[0] / (guesses[0] + guesses[1])
        for c in range(known):
            mixed[c] += pool.mixture[m] * ((1.0 - guess) * shares[c] + guess / known)


@kernel()
def weigh_members(pool: Any, label: int, known: int, weight: float) -> None:
    """Weigh the members by the probability that they gave to the label, and sharpen those of the logits.

    A trial counts ``weight`` times.
    """
    mixture, shares, total, count = pool.mixture, pool.shares, 0.0, 0
    for m in range(MEMBERS):
        if not working(pool, m):
            continue
        count += 1
        guesses = pool.guesses[m]
        guess = guesses[0] / (guesses[0] + guesses[1])
        likelihood = max(LEAST_PROBABILITY, (1.0 - guess) * shares[m, label] + guess / known)
        mixture[m] *= likelihood if weight == 1.0 else max(LEAST_PRODUCT, likelihood**weight)
        total += mixture[m]
        sure = trust(shares[m, label], guess, known)
        guesses[0] += weight * (1.0 - sure)
        guesses[1] += weight * sure
        if m < LOGITS:
            learn_sharpness(pool.sharpness[m], pool.own[m], known, label, weight * sure)
    for m in range(MEMBERS):
        if working(pool, m):
            mixture[m] = (1.0 - RATE) * mixture[m] / total + RATE / count


@kernel(int64(PoolT, int64, int64))
def learn_diagonal(pool: Any, known: int, label: int) -> int:
    """One step of each logit by diagonals. Called by address: few have so many voters, and it takes long to compile."""
    seen, sums, active, middle = pool.seen, pool.sums, pool.chain[0], VOTERS + pool.blocks[0]
    last = middle + pool.blocks[1]
    for m in range(LOGITS):
        if working(pool, m):
            count = step_by_diagonal(
                pool, m, pool.ends[INFORMED[m]], known, label, pool.amount[0], RIDGE[m], MEMORIES[m]
            )
            for a in range(count):
                place = active[a]
                if VOTERS <= place < last and seen[place] == 1:
                    sums[m, 0 if place < middle else 1] += pool.vectors[3, place]
    return 0


@kernel()
def learn_matrices(pool: Any, known: int, label: int, weight: float) -> None:
    """One step of each logit by full matrices."""
    age, narrow, logits = pool.counts[AGE], pool.counts[NARROW], LOGITS if working(pool, AGREED) else AGREED
    wide = pool.weights.shape[1] if silence_varies(pool.silence) else narrow
    middle = VOTERS + pool.blocks[0]
    last = middle + pool.blocks[1]
    for m in range(logits):
        if MEMORIES[m] < 1.0:
            forget(MEMORIES[m], RIDGE[m], pool.precision[m, : wide if INFORMED[m] else narrow])
    curve_together(pool, known, logits, INFORMED, weight)
    for m in range(logits):
        size, drawn = wide if INFORMED[m] else narrow, (1.0 - MEMORIES[m]) * RIDGE[m]
        fresh = age % (1 + (size - 1) // OFTEN) == 0
        step_by_matrix(pool, m, pool.ends[INFORMED[m]], label, weight, drawn, size, fresh)
        weights, sums = pool.weights[m], pool.sums[m]
        sums[0] = sums[1] = 0.0
        for i in range(VOTERS, last):
            if pool.seen[i] == 1:
                sums[0 if i < middle else 1] += weights[i]


@kernel(int64(PoolT, TrialsT, int64, Indices, Matrix, int64, boolean, Labels, Matrix))
def play_votes(
    pool: Any,
    trials: Trials,
    begin: int,
    shape: np.ndarray,
    given: np.ndarray,
    diagonal: int,
    learn: bool,
    predictions: np.ndarray,
    table: np.ndarray,
) -> int:
    """Play trials from ``begin`` on; ``given`` (trials, k) are the scores of the refitted softmax.

    ``diagonal`` is the entry of `learn_diagonal`, needed to learn without precisions in full.

    ``table`` receives the logarithms of the mixed probabilities. A label below 0 is none: voters are compared. Return
    where it stopped: when trust is to be fitted.
    """
    row, raters, mixed, seen, votes, scores = pool.row, pool.given, pool.mixed, pool.seen, trials.votes, trials.scores
    for t in range(begin, predictions.size):
        for i in range(row.size):
            row[i] = votes[t, i]
        for i in range(raters.shape[0]):
            for c in range(min(raters.shape[1], scores.shape[2])):
                raters[i, c] = scores[t, i, c]
        label, known = np.int64(trials.labels[t]) if learn else -1, trials.known[t]
        answered = False
        while True:  # with a new class the prediction comes first; the rest of the trial knows it
            write_ratings(pool, known, 0 <= label < known)
            if known:
                predict(pool, given[t], known)
            if not answered:
                for c in range(known):
                    table[t, c] = math.log(mixed[c])
                predictions[t] = top_two(table[t], known, shape)[0]
                answered = True
            if label < known:
                break
            known = label + 1
        if label < 0:
            if learn and trials.weights[t] > 0.0 and pool.habits.shape[1]:
                note_row(pool, known)
                if pool.numbers[ROWS] >= pool.numbers[DUE]:
                    return t + 1
            continue
        welcome(pool)
        weight = trials.weights[t]
        weigh_members(pool, label, known, weight)
        if pool.precision.shape[1]:
            learn_matrices(pool, known, label, weight)
        else:
            pool.amount[0] = weight
            act(diagonal, pool, known, label)
        pool.counts[AGE] += 1
        note_trial(pool, known, label, weight)
        if note_silence(pool) and pool.counts[NARROW] < seen.size:
            pool.counts[AGE] = 0  # some factors become larger
        pool.counts[TRIALS] += 1
    return predictions.size


def has_matrices(size: int) -> bool:
    """Return whether precisions over this many coordinates are full matrices, and voters are compared."""
    return size <= FULL_PRECISION


class Blocks(NamedTuple):
    """Numbers of voters, raters, thresholds, and voters by how many are silent."""

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


def blocks_of(voters: int, raters: int, thresholds: int) -> Blocks:
    """Return the blocks of coordinates; votes by how many are silent have some unless these would be too many.

    Examples
    --------
    >>> blocks_of(20, 10, 0).silent, blocks_of(200, 10, 0).silent
    (20, 0)
    """
    blocks = Blocks(voters, raters, thresholds, voters)
    return blocks if has_matrices(blocks.size) else blocks._replace(silent=0)


class Place(NamedTuple):
    """A pool, the blocks of another, and where its voters, raters and classes are among those of the other."""

    running: RunningVotes
    blocks: Blocks
    voters: np.ndarray
    raters: np.ndarray
    classes: np.ndarray

    @classmethod
    def of(cls, part: Placement, blocks: Blocks) -> Place:
        """Return the place of a part of a mixture that has these blocks."""
        return cls(part.state, blocks, part.voters, part.raters, part.classes)

    @property
    def coordinates(self) -> np.ndarray:
        """Where its coordinates are; last come those of votes by how many are silent, unless the other has none."""
        own_voters, own_raters, own_thresholds, own_silent = self.running.blocks.tolist()
        blocks = self.blocks
        return np.concatenate([
            np.arange(VOTERS),
            VOTERS + self.voters[:own_voters],
            VOTERS + blocks.voters + self.raters[:own_raters],
            VOTERS + blocks.voters + blocks.raters + self.classes[:own_thresholds],
            blocks.narrow + self.voters[: min(own_silent, blocks.silent)],
        ]).astype(np.int64)  # fmt: skip

    @property
    def softmax(self) -> PlacedSoftmax:
        """Its refitted softmax."""
        narrow = int(self.running.counts[NARROW])
        return PlacedSoftmax(self.running.refitted, self.coordinates[VOTERS:narrow] - VOTERS)

    @property
    def axes(self) -> dict[str, np.ndarray]:
        """The same by axis."""
        voters, coordinates = self.voters[: int(self.running.blocks[0])], self.coordinates
        return {
            "voter": voters, "counted": voters, "compared": voters, "rater": self.raters,
            "class": self.classes, "voted class": self.classes, "coordinate": coordinates,
            "square": coordinates, "line": coordinates, "factor": coordinates[:0],
        }  # fmt: skip

    @property
    def trials(self) -> int:
        """Trials learned."""
        return int(self.running.counts[TRIALS])

    @property
    def rows(self) -> int:
        """Trials learned, and rows without a label in which voters were compared."""
        return self.trials + (round(float(self.running.numbers[ROWS])) if self.running.compares else 0)

    @property
    def guided(self) -> bool:
        """Whether agreement guides a logit."""
        return bool(self.running.mixture[AGREED] > 0.0)

    def of_logits(self, array: np.ndarray) -> np.ndarray:
        """Return what it has of its logits; the steady one stands for one that agreement does not guide yet."""
        found = array.copy()
        if not self.guided:
            found[AGREED] = found[STEADY]
        return found


class RunningVotes(Running):
    """State: the logits and their mixture, and a robust softmax that is refitted now and then.

    It has coordinates of its own, so that it does not matter where the engine has its weights.
    """

    fields: ClassVar = FIELDS
    takes_gaps = True
    guesses: np.ndarray
    sharpness: np.ndarray
    seen: np.ndarray

    def __init__(self) -> None:
        self.refitted = RunningSoftmax(REFITTED, True, 0)
        self.grow(**self._sizes(Blocks(0, 0, 0, 0), 0, False))
        self.weights[:], self.home[:], self.counts[NARROW] = OUTSET, OUTSET, VOTERS
        self.precision[:] = RIDGE[:, None, None] * np.eye(self.precision.shape[1])
        self.diagonal[:] = RIDGE[:, None]

    @property
    def pools(self) -> dict[str, Running]:
        return {"votes": self}

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return super().arrays | {f"refitted.{name}": array for name, array in self.refitted.arrays.items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        parts = by_part(arrays)
        super().restore(parts[""])
        self.refitted.restore(parts["refitted"])
        self.grow(**self._sizes(Blocks(*self.blocks.tolist()), self.labelled.size, self.compares))

    @property
    def compares(self) -> bool:
        """Whether it is counted how voters agree."""
        return self.habits.shape[1] > 0

    def _sizes(self, blocks: Blocks, k: int, compared: bool) -> dict[str, int]:
        """Return the sizes of all axes."""
        full, size = has_matrices(blocks.size), blocks.size
        most, side = 2 * blocks.voters + k * (blocks.raters + VOTERS + 1), -(-size // SIDE) * SIDE if full else 0
        return {
            "coordinate": size, "square": size if full else 0, "line": 0 if full else size, "factor": side * side,
            "voter": blocks.voters, "rater": blocks.raters, "class": k, "counted": counted_voters(blocks.voters, k),
            "compared": blocks.voters if full and compared else 0, "voted class": k if full and compared else 0,
            "rating": most, "longest": max(side, size, k), "chain": max(k, most),
        }  # fmt: skip

    def _take(self, other: RunningVotes, blocks: Blocks, k: int, place: Place | None = None) -> None:
        """Take over the state of another over larger axes; without a place at the first ones of each block."""
        old = other.blocks.tolist()
        place = place or Place(other, blocks, *(np.arange(n) for n in (old[0], old[1], max(k, old[2]))))
        full, places, compared = has_matrices(blocks.size), place.coordinates, other.compares
        arrays = grown(FIELDS, other, self._sizes(blocks, k, compared), place.axes)
        if not (full and compared):
            arrays["numbers"][:] = FIELDS["numbers"].start
        if full:
            n, precision = places.size, np.tile(np.eye(blocks.size), (LOGITS, 1, 1)) * RIDGE[:, None, None]
            own = other.precision[:, :n, :n]
            precision[(slice(None), *np.ix_(places, places))] = np.tril(own) + np.tril(own, -1).transpose(0, 2, 1)
            arrays["precision"] = np.tril(precision)
        else:
            arrays["diagonal"][:] = RIDGE[:, None]
            own = np.diagonal(other.precision, axis1=1, axis2=2) if other.precision.size else other.diagonal
            arrays["diagonal"][:, places] = own[:, : places.size]
            if arrays["mixture"][AGREED] > 0.0:  # this many voters are not compared
                arrays["mixture"][AGREED] = 0.0
                arrays["mixture"] /= arrays["mixture"].sum()
        arrays["counts"][[AGE, NARROW]] = 0, blocks.narrow
        arrays["blocks"][:] = blocks
        self.refitted = moved_to(place.softmax, blocks.narrow - VOTERS)
        for name, array in arrays.items():
            setattr(self, name, array)

    def _fit(self, trials: Trials, k: int, compare: bool) -> None:
        """Make room for the voters and raters of these trials and for k classes, and to compare voters."""
        raters = trials.scores.shape[1]
        blocks = blocks_of(trials.signs.size, raters, k if trials.constant else 0)
        if tuple(self.blocks.tolist()) != blocks:
            self._take(self, blocks, k)
            self.signs = trials.signs
        compared = self.compares or (compare and self.precision.shape[1] > 0)
        if self.scores.size < k or (compared and self.habits.shape[1] < k):
            sizes = self._sizes(blocks, max(k, self.scores.size), compared)
            for name, array in grown(FIELDS, self, sizes).items():
                if array.shape != getattr(self, name).shape:
                    setattr(self, name, array)

    def _refitted_on(self, trials: Trials, shape: np.ndarray, k: int) -> tuple[Trials, np.ndarray]:
        """Return voters and raters alone, and the shape of the engine, for the softmax with coordinates of its own."""
        own, experts = shape.copy(), self.blocks[0] + self.blocks[1]
        own[EXPERTS], own[STRIDE] = experts, k
        if trials.dense.shape[1] or trials.indptr.size:
            none = no_trials(0)
            trials = trials._replace(
                dense=np.zeros((trials.size, 0)), indptr=none.indptr, indices=none.indices, values=none.values
            )
        return trials, own

    def play(self, shape: np.ndarray, trials: Trials, k: int) -> tuple[np.ndarray, np.ndarray]:
        self._fit(trials, k, bool(((trials.labels < 0) & (trials.weights > 0.0)).any()))
        trials, own = self._refitted_on(trials, shape, k)
        _, given = self.refitted.play(own, trials, k)
        predictions, table = np.zeros(trials.size, np.int32), np.zeros((trials.size, k))
        t, diagonal = 0, 0 if self.precision.shape[1] else entry(learn_diagonal)
        while t < trials.size:
            t = play_votes(self.struct, trials, t, shape, given, diagonal, True, predictions, table)
            known = max(int(trials.known[t - 1]), int(trials.labels[t - 1]) + 1)
            if self._due(known):
                self.follow_agreement(known)
        return predictions, table

    def judge(self, shape: np.ndarray, trials: Trials, k: int) -> tuple[np.ndarray, np.ndarray]:
        raters = trials.scores.shape[1]
        blocks = blocks_of(trials.signs.size, raters, k if trials.constant else 0)
        if tuple(self.blocks.tolist()) != blocks or self.scores.size < k:
            larger = RunningVotes()
            larger.restore(self.arrays)
            larger._fit(trials, k, False)
            return larger.judge(shape, trials, k)
        trials, own = self._refitted_on(trials, shape, k)
        given = self.refitted.rate(own, trials, k)
        predictions, table = np.zeros(trials.size, np.int32), np.zeros((trials.size, k))
        play_votes(self.struct, trials, 0, shape, given, 0, False, predictions, table)
        return predictions, table

    def _due(self, known: int) -> bool:
        """Whether it is time to fit trust."""
        return self.compares and known >= 2 and bool(self.numbers[ROWS] >= self.numbers[DUE])

    def mix(self, mixture: Mixture) -> None:
        """Become the mixture; this one has learned nothing."""
        everyone = [*mixture.parts, *([] if mixture.base is None else [mixture.base])]
        voters, raters = (
            1 + max((int(part[axis].max(initial=-1)) for part in everyone), default=-1) for axis in (1, 2)
        )
        thresholds = mixture.k if any(part.state.blocks[2] for part in everyone) else 0
        blocks = blocks_of(voters, raters, thresholds)
        places = [Place.of(part, blocks) for part in everyone]
        parts, base = places[: len(mixture.parts)], None if mixture.base is None else places[-1]
        learned = [part for part in parts if part.rows > (0 if base is None else base.rows)]
        if len(learned) <= 1:  # the only one that learned anything, bit for bit
            only = (learned or parts)[0]
            self._take(only.running, blocks, mixture.k, only)
        else:
            self._mix(mixture, parts, base)
        for part in places:
            self.signs[part.axes["voter"]] = part.running.signs

    def _mix(self, mixture: Mixture, parts: list[Place], base: Place | None) -> None:
        """Become the mixture of several that learned."""
        blocks, everyone = parts[0].blocks, [*parts, *([] if base is None else [base])]
        compared = [part for part in everyone if part.running.compares]
        sizes = self._sizes(blocks, mixture.k, bool(compared))
        for name, array in grown(FIELDS, None, sizes).items():
            setattr(self, name, array)
        self.merge_fields(
            mixture, sizes, lambda part: Place(part.state, blocks, part.voters, part.raters, part.classes).axes
        )
        before = 0 if base is None else base.trials
        self.counts[[TRIALS, NARROW]] = before + sum(part.trials - before for part in parts), blocks.narrow
        self.blocks[:] = blocks
        self.refitted = mix_softmaxes(
            [part.softmax for part in parts], None if base is None else base.softmax, blocks.narrow - VOTERS
        )
        self.mixture = self._mixed_members(parts, mixture.shares)
        guesses = [part.of_logits(part.running.guesses) for part in everyone]
        self.guesses = self.guesses if base is None else guesses.pop()
        self.guesses += sum(own - self.guesses for own in guesses)
        counted = _counted(parts, base, SHARPNESS_KEPT)
        self.sharpness = join_sharpness([(part.of_logits(part.running.sharpness), times) for part, times in counted])
        self._mix_logits(parts, base)
        if self.compares:
            self._mix_agreement(mixture, parts)

    def _units(self, part: Place) -> np.ndarray:
        """Return the units of the coordinates of a part in those of the mixture; 1 but for raters."""
        units, first = np.ones(part.coordinates.size), VOTERS + int(part.running.blocks[0])
        own = part.running.scales
        common = self.scales[part.raters[: len(own)]]
        known = (own[:, 1] > 0.0) & (common[:, 1] > 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = np.sqrt(own[:, 1] / own[:, 0]) / np.sqrt(common[:, 1] / common[:, 0])
        units[first : first + len(own)] = np.where(known, sizes, 1.0)
        return units

    def _mix_logits(self, parts: Sequence[Place], base: Place | None) -> None:
        """Mix the logits; the guided one where it was guided in some part, on average."""
        blocks, everyone = parts[0].blocks, [*parts, *([] if base is None else [base])]
        units, seen = [self._units(part) for part in everyone], np.zeros((len(parts), blocks.size), np.int64)
        for own, part in zip(seen, parts, strict=True):
            own[part.coordinates] = part.running.seen[: part.coordinates.size]
        middle, last = VOTERS + blocks.voters, VOTERS + blocks.voters + blocks.raters
        self.seen, heard = seen.max(axis=0), seen == 1
        heard[:, :VOTERS] = heard[:, last:] = True
        for m in range(LOGITS):
            evidence = [_learned(part, m, own) for part, own in zip(everyone, units, strict=True)]
            found = _joined(evidence[: len(parts)], None if base is None else evidence[-1], float(MEMORIES[m]), heard)
            self.home[m] = found.home
            right = found.pull + RIDGE[m] * found.home
            if self.precision.size:
                precision = RIDGE[m] * np.eye(blocks.size) + found.information
                self.precision[m] = np.tril(precision)
                with one_blas_thread():
                    self.weights[m] = np.linalg.solve(precision, right)
            else:
                self.diagonal[m] = RIDGE[m] + found.information
                self.weights[m] = right / self.diagonal[m]
        for kind, block in enumerate([slice(VOTERS, middle), slice(middle, last)]):
            self.counts[HEARD + kind] = (self.seen[block] == 1).sum()
            self.sums[:, kind] = (self.weights[:, block] * (self.seen[block] == 1)).sum(axis=1)

    def _mixed_members(self, parts: Sequence[Place], shares: np.ndarray) -> np.ndarray:
        """Return the members' weights: their logarithms mixed; that of the guided logit by its odds, if it is any."""
        others = np.arange(MEMBERS) != AGREED
        logs = sum(share * np.log(part.running.mixture[others]) for part, share in zip(parts, shares, strict=True))
        mixture = np.zeros(MEMBERS)
        mixture[others] = np.exp(logs - np.max(logs))
        mixture /= mixture.sum()
        guided = [(part.running.mixture[AGREED], s) for part, s in zip(parts, shares, strict=True) if part.guided]
        if guided and self.precision.size:
            weights, portions = np.array(guided).T
            mixture[AGREED] = np.exp(portions @ np.log(weights / (1.0 - weights)) / portions.sum())
            mixture /= mixture.sum()
        return mixture

    def _mix_agreement(self, mixture: Mixture, parts: Sequence[Place]) -> None:
        """Take over how voters agreed, in all rows without a label, and follow it."""
        counted = [(part.state, sign) for part, sign in mixture.counted if part.state.compares]
        numbers = self.numbers
        numbers[ROWS] = max(0.0, sum(sign * float(state.numbers[ROWS]) for state, sign in counted))
        guided = [
            (*part.running.numbers[[CREDIT, LIMIT]], share)
            for part, share in zip(parts, mixture.shares, strict=True)
            if part.guided
        ]
        if guided:
            credit, limit, portions = np.array(guided).T
            numbers[[CREDIT, LIMIT]] = portions @ credit / portions.sum(), portions @ limit / portions.sum()
            numbers[DUE] = numbers[ROWS]
        if mixture.known >= 2 and (numbers[LIMIT] or numbers[ROWS] >= numbers[DUE]):
            self.follow_agreement(mixture.known)

    def follow_agreement(self, known: int) -> None:
        """Fit trust to agreement, and move the logit that it guides as the mean of its prior moves.

        With precision P the weights that fit the labels best change by ridge P^-1 times the change of the mean.
        """
        pool, voters = self, int(self.blocks[0])
        with one_blas_thread():
            fit_trust(self, known)
        home, (trust, rest), numbers = pool.home[STEADY].copy(), self.trust, self.numbers
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
        for m, share in enumerate(self.mixture.tolist()):
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
        pool, voters, experts = self, int(self.blocks[0]), int(self.blocks[:2].sum())
        weights = pool.weights.copy()
        for kind, (first, last) in enumerate([(0, voters), (voters, experts)]):
            new = (TRUST + pool.sums[:, kind]) / (1.0 + pool.counts[HEARD + kind])
            silent = pool.seen[VOTERS + first : VOTERS + last] == 0
            firsts = np.repeat(new[:, None], last - first, axis=1)
            if kind == 0:
                silent &= self.signs == 1.0
                if self.compares:
                    firsts[AGREED] = self.trust[0] + self.trust[1] * new[AGREED]
            weights[:, VOTERS + first : VOTERS + last] += np.where(silent, firsts, 0.0)
        return weights

    def _sharpened(self, weights: np.ndarray) -> np.ndarray:
        """The weights of the logits by which they count in the mixture."""
        return np.asarray(weights * factor_of(self.sharpness.T, int(self.counts[TRIALS]))[:, None])

    def hypothesis(self) -> np.ndarray:
        """The mean of the members' weights by the mixture; the share of votes belongs to all voters and raters alike.

        A voter or rater who has not spoken has the weight of a newcomer.
        """
        experts, mixture, pool = int(self.blocks[:2].sum()), self.mixture, self
        own = self._sharpened(pool.weights)
        weights = self._sharpened(self._weights())[:, VOTERS : pool.counts[NARROW]]
        if len(self.voted):
            told = np.where(self.signs == 1.0, log_odds(self), 0.0)
            weights[:, : self.blocks[0]] += np.outer(own[:, CONFUSED], told)
        copies = np.flatnonzero(np.abs(self.signs) != 1.0)
        weights[:, :experts] += own[:, [SHARE]] / max(1, experts - len(copies))
        weights[:, copies] = own[:, VOTERS + copies] * COPIED / np.abs(self.signs[copies])
        return np.asarray(mixture[:LOGITS] @ weights + mixture[LOGITS] * self.refitted.weights)


def remembered(trials: int, kept: float) -> float:
    """c(T): how many trials the information after so many is that of."""
    return float(trials) if kept == 1.0 else (1.0 - kept**trials) / (1.0 - kept)


def _counted(parts: Sequence[Place], base: Place | None, kept: float) -> list[tuple[Place, float]]:
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


class LogitEvidence(NamedTuple):
    """What a logit has learned from its trials, over the coordinates of the mixture."""

    information: np.ndarray  # (n, n), or (n,) where it is a diagonal
    pull: np.ndarray
    home: np.ndarray
    trials: int

    def faded(self, factor: float) -> LogitEvidence:
        """Return this share of it."""
        return self._replace(information=factor * self.information, pull=factor * self.pull)


def _learned(part: Place, m: int, units: np.ndarray) -> LogitEvidence:
    """Return the information of logit m; of the guided one where it is not guided, that of the steady one."""
    pool, places, n, size = part.running, part.coordinates, units.size, part.blocks.size
    m = STEADY if m == AGREED and not part.guided else m
    weights, home = pool.weights[m, :n] / units, pool.home[m, :n] / units
    if pool.precision.size:
        own = (symmetric(pool.precision[m, :n, :n]) - RIDGE[m] * np.eye(n)) * np.outer(units, units)
    else:
        own = (pool.diagonal[m, :n] - RIDGE[m]) * units**2
    full = has_matrices(size)
    if not full and own.ndim == 2:
        own = np.diag(own)
    information, vectors = np.zeros((size, size) if full else size), np.zeros((2, size))
    information[np.ix_(places, places) if full else places] = own
    vectors[:, places] = (own @ weights if own.ndim == 2 else own * weights) + RIDGE[m] * (weights - home), home
    return LogitEvidence(information, vectors[0], vectors[1], part.trials)


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
        diagonal = np.diag(new.information) if new.information.ndim == 2 else new.information
        # a coordinate that spoke and told nothing counts for next to nothing, so that its prior mean is not lost
        weight = np.where(seen[place], np.maximum(diagonal, FAINTEST * fresh), 0.0)
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
