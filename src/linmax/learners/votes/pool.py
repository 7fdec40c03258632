"""The pool for voters and raters: a mixture of logits, a refitted softmax, and members that need no fit.

Member m gives class c the probability (1 - e_m) P_m(c) + e_m / k: labels are guesses at a rate e_m that is counted
online. The mixture weighs the members by w, and after each trial

    w_m <- (1 - RATE) w_m p_m(label) / sum_i w_i p_i(label) + RATE / M,

so that the best recent member leads (Herbster and Warmuth 1998, Tracking the best expert). Shares of votes are sure
from the first trial, and so the mixture is; but with few labels they lead where a logit already has the better order.
So members that are shares have no say in the answer, except for the weighed one as far as it learned from rows without
a label. Where the answer is not the most probable class, the two exchange their probabilities.

Each member is a small unit: it predicts, learns, and declares its state as fields that grow and merge
(`linmax.learners.base`). `linmax.learners.votes.evidence` turns a trial into ratings and counts, `logits` has the
logits and how they merge, `jury` the members without a fit, and `linmax.learners.softmax` the refitted softmax.

A trial of weight w counts w times in each of them. Of a trial that only says which class it is not, the target is what
the mixture believes of the other classes, and it counts as far as the mixture believed in the one ruled out.

Pools that learned from different trials merge as their parts do: counts add up, those of a common start once; logits
and the softmax add up what they learned (shares have no say in this); the weights of the members are mixed by their
logarithms, with the shares, and the factors that sharpen the logits as weights are.

With ``open`` answers every trial has its own candidates, so that nothing is counted by class: no evidence.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numba import boolean, int64

from linmax.core.contract import EXPERTS, NO_LABEL, STRIDE, Indices, Labels, Matrix, Trials, TrialsT
from linmax.core.linear_max import top_two
from linmax.data.arrays import Layout, no_trials
from linmax.jit.compiling import kernel
from linmax.jit.small_matrices import SIDE
from linmax.jit.struct import act, entry
from linmax.learners.base import Arrays, Description, Field, Mixture, Running, grown, struct_of
from linmax.learners.second_order import (
    PlacedSoftmax,
    RunningSoftmax,
    mix_softmaxes,
    moved_to,
    stage_of,
    to_shares,
    trust,
)
from linmax.learners.votes.corrections import CORRECTION_FIELDS, learn_corrections, predict_corrected
from linmax.learners.votes.evidence import (
    COPIED,
    COUNT_FIELDS,
    SHARE,
    VOTERS,
    counted_jurors,
    log_odds,
    note_trial,
    write_evidence,
    write_trial,
)
from linmax.learners.votes.jury import (
    JURY_FIELDS,
    MOST_PAIRED,
    is_open,
    note_row,
    note_weights,
    predict_best,
    predict_share,
    predict_weighed,
    say_of_rows,
    weight_of,
)
from linmax.learners.votes.logits import (
    AGE,
    HEARD,
    LOGIT_FIELDS,
    LOGITS,
    MEMORIES,
    NARROW,
    NARROW_LOGITS,
    OFTEN,
    OUTSET,
    RIDGES,
    SHARPNESS_KEPT,
    TRIALS,
    TRUST,
    WIDE,
    LogitEvidence,
    factor_of,
    fitted,
    join_logits,
    join_sharpness,
    learn_by_diagonal,
    learn_by_matrices,
    learn_sharpness,
    predict_logits,
    times_counted,
    welcome,
)
from linmax.normalization import scaled_logarithms
from linmax.util.parts import by_part

__all__ = ["FULL_PRECISION", "MEMBERS", "RATE", "RunningVotes", "VotesPool", "play_votes"]


REFIT, BEST, PLAIN_SHARE, WEIGHED, CORRECTED = range(LOGITS, LOGITS + 5)  # after the logits
MEMBERS = (
    "logit of about 1,000 trials",
    "logit of about 100 trials",
    "logit that sees the evidence of each vote",
    "logit that sees the evidence of each vote, with a wide prior",
    "robust softmax, refitted now and then",
    "best juror so far",
    "share of votes",
    "share of votes weighed by accuracy",
    "logit corrected by a weight for each voter, vote and class",
)
FIRST_WEIGHTS = np.array([1.0, 1.0, 0.5, 0.02, 0.01, 0.1, 20.0, 10.0, 0.02])  # those sure of few labels begin small
ANSWERS = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0])  # how far members have a say in the answer
SOFT_SAY = 0.1  # of the share of votes in the answer, where these are those of raters, after many labels
SOFT_START = 0.5  # the same before the first label
SOFT_LABELS = 20.0  # labels after which it is half-way
RATE = 1e-3  # of the fixed share
LEAST_PROBABILITY = 1e-9  # least probability by which a member is weighed
LEAST_PRODUCT = 1e-90  # the same of a trial that counts many times
# Labels taken to have been seen before the first, guessed and not; the share of votes is smoothed as it is.
GUESSES = np.array([[0.0, 10.0] if m == PLAIN_SHARE else [0.1, 9.9] for m in range(len(MEMBERS))])
FULL_PRECISION = 256  # coordinates up to which the precision is a full matrix
EVIDENT = LOGITS - 2  # the logit that is corrected
REFITTED = 0.1  # precision of the prior of the refitted softmax

FIELDS = (
    COUNT_FIELDS
    | JURY_FIELDS
    | LOGIT_FIELDS
    | CORRECTION_FIELDS
    | {
        "blocks": Field((4,), merge="", dtype=np.int64),  # voters, raters, thresholds, jurors whose evidence is seen
        "signs": Field(("juror",), 1.0, ""),
        "scales": Field(("rater", 2)),  # trials and sums of squares
        "mixture": Field((len(MEMBERS),), FIRST_WEIGHTS / FIRST_WEIGHTS.sum(), ""),
        "guesses": Field((len(MEMBERS), 2), GUESSES, ""),  # labels guessed and not
        # workspace of one trial: its votes and scores, and its ratings as lists
        "row": Field(("juror",), merge="", dtype=np.int32, saved=False),
        "given": Field(("rater", "class"), merge="", saved=False),
        "places": Field(("rating",), merge="", dtype=np.int32, saved=False),
        "of": Field(("rating",), merge="", dtype=np.int32, saved=False),
        "values": Field(("rating",), merge="", saved=False),
        "ends": Field((2,), merge="", dtype=np.int64, saved=False),  # where the narrow and where all ratings end
        "target": Field(("class",), merge="", saved=False),  # probabilities of the classes, given the label
        "scale": Field((1,), merge="", saved=False),  # how much the trial counts
        "shares": Field((len(MEMBERS), "class"), merge="", saved=False),  # the members' probabilities, without guesses
        "scores": Field(("class",), merge="", saved=False),
        "mixed": Field(("class",), merge="", saved=False),
        "answer": Field(("class",), merge="", saved=False),
        "vectors": Field((6, "longest"), merge="", saved=False),
        "chain": Field((2, "chain"), merge="", dtype=np.int64, saved=False),
    }
)
PoolT = struct_of(FIELDS).numba_type


@kernel()
def read_trial(pool: Arrays, votes: np.ndarray, scores: np.ndarray, known: int, counts: bool) -> None:
    """Write the ratings of a trial; ``counts`` adds the raters' scores to their scales."""
    for i in range(votes.size):
        pool.row[i] = votes[i]
    for i in range(pool.given.shape[0]):
        for c in range(min(pool.given.shape[1], scores.shape[1])):
            pool.given[i, c] = scores[i, c]
    pool.ends[0] = write_trial(pool, known, counts)
    pool.ends[1] = write_evidence(pool, known, pool.counts[NARROW], pool.ends[0])


@kernel()
def predict(pool: Arrays, refitted: np.ndarray, known: int) -> None:
    """Write the probabilities of the classes: of each member, without its guesses, and of the mixture."""
    mixed, answer, shares = pool.mixed, pool.answer, pool.shares
    predict_logits(pool, known)
    to_shares(refitted, known, shares[REFIT])
    predict_best(pool, known, shares[BEST])
    predict_share(pool, known, shares[PLAIN_SHARE])
    predict_weighed(pool, known, shares[WEIGHED])
    predict_corrected(pool, known, EVIDENT, shares[CORRECTED])
    for c in range(known):
        mixed[c] = answer[c] = 0.0
    for m in range(shares.shape[0]):
        guess = pool.guesses[m, 0] / (pool.guesses[m, 0] + pool.guesses[m, 1])
        says = ANSWERS[m]
        if m == WEIGHED:
            says = 1.0 if is_open(pool) else say_of_rows(pool)
        elif m == PLAIN_SHARE:
            says = SOFT_SAY + (SOFT_START - SOFT_SAY) * SOFT_LABELS / (SOFT_LABELS + pool.rows[1])
            says *= pool.ballots[known + 1] / max(1.0, pool.ballots[known])
        for c in range(known):
            share = pool.mixture[m] * ((1.0 - guess) * shares[m, c] + guess / known)
            mixed[c] += share
            answer[c] += says * share


@kernel()
def settle(pool: Arrays, known: int, shape: np.ndarray, table: np.ndarray) -> int:
    """Write the logarithms of the probabilities, of which that of the answer is the largest; return the answer."""
    mixed, best = pool.mixed, 0
    answer = top_two(pool.answer, known, shape)[0]
    if not known:
        return answer
    for c in range(known):
        best = c if mixed[c] > mixed[best] else best
    for c in range(known):
        table[c] = math.log(mixed[c])
    table[answer], table[best] = math.log(mixed[best]), math.log(mixed[answer])
    return answer


@kernel()
def aim(pool: Arrays, known: int, label: int, weight: float) -> bool:
    """Write the target of a trial, and how much it counts; return whether it teaches anything."""
    target, mixed = pool.target, pool.mixed
    denied = -2 - label
    for c in range(known):
        target[c] = 1.0 if c == label else 0.0
    pool.scale[0] = weight
    if label < 0:
        rest = 1.0 - mixed[denied]
        pool.scale[0] *= mixed[denied]
        for c in range(known):
            target[c] = 0.0 if c == denied or rest <= 0.0 else mixed[c] / rest
        return weight > 0.0 and rest > 0.0 and mixed[denied] > 0.0
    return weight > 0.0


@kernel()
def weigh_members(pool: Arrays, known: int, label: int, weight: float) -> None:
    """Weigh the members by the probability that they gave to the label, and sharpen the logits."""
    mixture, shares, members, total = pool.mixture, pool.shares, pool.shares.shape[0], 0.0
    allowed = 1.0 if label >= 0 else known - 1.0
    for m in range(members):
        guesses = pool.guesses[m]
        guess = guesses[0] / (guesses[0] + guesses[1])
        right = shares[m, label] if label >= 0 else 1.0 - shares[m, -2 - label]
        given = max(LEAST_PROBABILITY, (1.0 - guess) * right + guess * allowed / known)
        mixture[m] *= given if weight == 1.0 else max(LEAST_PRODUCT, math.pow(given, weight))
        total += mixture[m]
        sure = trust(right / allowed, guess, known)
        guesses[0] += weight * (1.0 - sure)
        guesses[1] += weight * sure
        if m < NARROW_LOGITS:
            learn_sharpness(pool.sharpness[m], pool.own[m], known, pool.target, sure * pool.scale[0])
    for m in range(members):
        mixture[m] = (1.0 - RATE) * mixture[m] / total + RATE / members


@kernel(int64(PoolT, int64, int64))
def learn_diagonal(pool: Arrays, known: int, _: int) -> int:
    """Let the logits learn by diagonals. Called by address: few have this many voters, and it takes long to compile."""
    learn_by_diagonal(pool, known)
    return 0


@kernel()
def learn(pool: Arrays, known: int, label: int, weight: float, diagonal: int) -> None:
    """Let all members learn."""
    if label == NO_LABEL:
        if weight > 0.0:
            note_row(pool, known, weight)
        return
    if not aim(pool, known, label, weight):
        return
    scale = pool.scale[0]
    welcome(pool)
    weigh_members(pool, known, label, weight)
    learn_corrections(pool, known, pool.shares[CORRECTED])
    if pool.precision.shape[1]:
        learn_by_matrices(pool, known)
    else:
        act(diagonal, pool, known, 0)
    note_weights(pool, known, scale)
    note_trial(pool, known, scale)
    pool.rows[1] += scale
    pool.counts[AGE] += 1
    pool.counts[TRIALS] += 1


@kernel(int64(PoolT, TrialsT, Indices, Matrix, int64, boolean, Labels, Matrix))
def play_votes(
    pool: Arrays,
    trials: Trials,
    shape: np.ndarray,
    refitted: np.ndarray,
    diagonal: int,
    learning: bool,
    predictions: np.ndarray,
    table: np.ndarray,
) -> int:
    """Play trials; ``refitted`` (trials, k) are the scores of the refitted softmax.

    ``diagonal`` is the entry of `learn_diagonal`, needed to learn without precisions in full. ``table`` receives the
    logarithms of the mixed probabilities.
    """
    for t in range(predictions.size):
        label, known, answered = np.int64(trials.labels[t]) if learning else NO_LABEL, trials.known[t], False
        while True:  # with a new class the prediction comes first; the rest of the trial knows it
            counts = learning and label != NO_LABEL and label < known
            read_trial(pool, trials.votes[t], trials.scores[t], known, counts)
            if known:
                predict(pool, refitted[t], known)
            if not answered:
                predictions[t] = settle(pool, known, shape, table[t])
                answered = True
            if label < known:
                break
            known = label + 1
        if learning and known:
            learn(pool, known, label, trials.weights[t], diagonal)
    return predictions.size


def has_matrices(size: int) -> bool:
    """Return whether precisions over this many coordinates are full matrices."""
    return size <= FULL_PRECISION


class Blocks(NamedTuple):
    """Numbers of voters, raters, thresholds, and jurors whose own evidence is seen."""

    voters: int
    raters: int
    thresholds: int
    heard: int

    @property
    def jurors(self) -> int:
        """Voters, and raters as voters."""
        return self.voters + self.raters

    @property
    def narrow(self) -> int:
        """Coordinates without evidence."""
        return VOTERS + self.jurors + self.raters + self.thresholds

    @property
    def size(self) -> int:
        """All coordinates."""
        return self.narrow + 1 + self.heard


def blocks_of(voters: int, raters: int, thresholds: int, counted: bool = True) -> Blocks:
    """Return the blocks of coordinates; the evidence of each juror is among them unless these would be too many.

    Examples
    --------
    >>> blocks_of(20, 10, 0).heard, blocks_of(200, 10, 0).heard
    (30, 0)
    """
    blocks = Blocks(voters, raters, thresholds, voters + raters)
    return blocks if counted and has_matrices(blocks.size) else blocks._replace(heard=0)


class Place(NamedTuple):
    """A pool, the blocks of another, and where its voters, raters and classes are among those of the other."""

    running: RunningVotes
    blocks: Blocks
    voters: np.ndarray
    raters: np.ndarray
    classes: np.ndarray

    @property
    def own(self) -> Blocks:
        """Its own blocks."""
        return Blocks(*self.running.blocks.tolist())

    @property
    def jurors(self) -> np.ndarray:
        """Places of its voters, and of its raters as voters."""
        return np.concatenate([self.voters[: self.own.voters], self.blocks.voters + self.raters[: self.own.raters]])

    @property
    def coordinates(self) -> np.ndarray:
        """Places of its coordinates; the evidence of jurors comes last, unless the other has none."""
        own, blocks = self.own, self.blocks
        return np.concatenate([
            np.arange(VOTERS),
            VOTERS + self.jurors,
            VOTERS + blocks.jurors + self.raters[: own.raters],
            VOTERS + blocks.jurors + blocks.raters + self.classes[: own.thresholds],
            [blocks.narrow],
            blocks.narrow + 1 + self.jurors[: min(own.heard, blocks.heard)],
        ]).astype(np.int64)  # fmt: skip

    @property
    def softmax(self) -> PlacedSoftmax:
        """Its refitted softmax."""
        return PlacedSoftmax(self.running.refitted, self.coordinates[VOTERS : self.own.narrow] - VOTERS)

    @property
    def axes(self) -> dict[str, np.ndarray]:
        """Places by axis."""
        jurors, coordinates = self.jurors, self.coordinates
        return {
            "juror": jurors, "counted": jurors, "compared": jurors, "rater": self.raters, "class": self.classes,
            "named class": self.classes, "factor": coordinates[:0], "coordinate": coordinates, "square": coordinates,
            "line": coordinates,
        }  # fmt: skip

    @property
    def trials(self) -> int:
        """Trials learned."""
        return int(self.running.counts[TRIALS])

    @property
    def learned(self) -> float:
        """Trials learned, and rows without a label."""
        return self.trials + float(self.running.rows[0])


class RunningVotes(Running):
    """State: counts, the logits and the mixture, and a robust softmax that is refitted now and then.

    It has coordinates of its own, so that it does not matter where the engine has its weights.
    """

    fields: ClassVar = FIELDS
    takes_gaps = True
    gives_logarithms = True
    mixture: np.ndarray
    guesses: np.ndarray
    sharpness: np.ndarray
    seen: np.ndarray

    def __init__(self, open_answers: bool = False) -> None:
        self.open = open_answers
        self.refitted = RunningSoftmax(REFITTED, True, 0)
        self._take(self, Blocks(0, 0, 0, 0), 0)

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
        self.grow(**self._sizes(Blocks(*self.blocks.tolist()), self.labelled.size))

    def _sizes(self, blocks: Blocks, k: int) -> dict[str, int]:
        """Return the sizes of all axes."""
        full, size, jurors = has_matrices(blocks.size), blocks.size, blocks.jurors
        most, side = jurors + k * (blocks.raters + VOTERS + 3 + blocks.heard), -(-size // SIDE) * SIDE if full else 0
        return {
            "coordinate": size, "square": size if full else 0, "line": 0 if full else size, "factor": side * side,
            "juror": jurors, "compared": jurors if jurors <= MOST_PAIRED else 0,
            "named class": 0 if self.open else k,
            "counted": 0 if self.open else counted_jurors(jurors, k), "rater": blocks.raters,
            "class": k, "ballot": k + 2, "rating": most, "longest": max(side, size, k), "chain": max(k, most, size),
        }  # fmt: skip

    def _take(self, other: RunningVotes, blocks: Blocks, k: int, place: Place | None = None) -> None:
        """Take over the state of another over larger axes; without a place at the first ones of each block."""
        own = Blocks(*other.blocks.tolist())
        place = place or Place(other, blocks, *(np.arange(n) for n in (own.voters, own.raters, max(k, own.thresholds))))
        full, places = has_matrices(blocks.size), place.coordinates
        begun = other.weights.shape[1] > 0
        arrays = grown(FIELDS, other if begun else None, self._sizes(blocks, k), place.axes)
        if not begun:
            arrays["weights"][:, :VOTERS] = arrays["home"][:, :VOTERS] = OUTSET
        n = places.size if begun else 0
        if full:
            precision = np.tile(np.eye(blocks.size), (LOGITS, 1, 1)) * RIDGES[:, None, None]
            lower = other.precision[:, :n, :n]
            spot = (slice(None), *np.ix_(places[:n], places[:n]))
            precision[spot] = np.tril(lower) + np.tril(lower, -1).transpose(0, 2, 1)
            arrays["precision"] = np.tril(precision)
        else:
            arrays["diagonal"][:] = RIDGES[:, None]
            diagonal = np.diagonal(other.precision, axis1=1, axis2=2) if other.precision.size else other.diagonal
            arrays["diagonal"][:, places[:n]] = diagonal[:, :n]
        arrays["counts"][[AGE, NARROW]] = 0, blocks.narrow
        arrays["blocks"][:] = blocks
        if begun:
            self.refitted = moved_to(place.softmax, blocks.narrow - VOTERS)
        for name, array in arrays.items():
            setattr(self, name, array)

    def _fit(self, trials: Trials, k: int) -> None:
        """Make room for the voters and raters of these trials and for k classes."""
        voters, raters, k = trials.signs.size, trials.scores.shape[1], max(k, self.scores.size)
        counted = not self.open and counted_jurors(voters + raters, k) > 0
        blocks = blocks_of(voters, raters, k if trials.constant else 0, counted)
        if tuple(self.blocks.tolist()) != blocks:
            self._take(self, blocks, k)
            self.signs[:voters] = trials.signs
        elif self.scores.size < k:
            for name, array in grown(FIELDS, self, self._sizes(blocks, k)).items():
                if array.shape != getattr(self, name).shape:
                    setattr(self, name, array)

    def _refitted_on(self, trials: Trials, shape: np.ndarray, k: int) -> tuple[Trials, np.ndarray]:
        """Return the jury and the raters alone, and the shape of the engine, for the coordinates of the softmax."""
        own, blocks, scores = shape.copy(), Blocks(*self.blocks.tolist()), trials.scores
        own[EXPERTS], own[STRIDE] = blocks.jurors + blocks.raters, k
        if blocks.raters:
            scores = scores if scores.shape[2] else np.zeros((*scores.shape[:2], 1))
            unknown = np.arange(scores.shape[2]) >= trials.known[:, None, None]
            tops = np.where(unknown, -np.inf, scores).argmax(axis=2)
            differ = np.ptp(np.where(unknown, scores[:, :, :1], scores), axis=2) > 0.0
            tops = np.where(differ, tops, -1).astype(np.int32)
            trials = trials._replace(votes=np.hstack([trials.votes, tops]), signs=self.signs)
        if trials.dense.shape[1] or trials.indptr.size:
            none = no_trials(0)
            trials = trials._replace(
                dense=np.zeros((trials.size, 0)), indptr=none.indptr, indices=none.indices, values=none.values
            )
        return trials, own

    def stage(self, layout: Layout, k: int, size: int) -> Hashable:
        k, jurors = max(k, self.scores.size), layout.voters + layout.raters
        counted = not self.open and counted_jurors(jurors, k) == jurors
        blocks = blocks_of(layout.voters, layout.raters, k if layout.constant else 0, counted)
        evidence = counted and has_matrices(blocks.narrow + 1 + jurors)
        rests = [(n - 1) // OFTEN for n in (blocks.narrow, blocks.size)] if has_matrices(blocks.size) else []
        return counted, evidence, *rests, jurors <= MOST_PAIRED, stage_of(blocks.narrow - VOTERS)

    def play(self, shape: np.ndarray, trials: Trials, k: int) -> tuple[np.ndarray, np.ndarray]:
        trials = trials._replace(scores=scaled_logarithms(trials.scores)) if trials.scores.size else trials
        self._fit(trials, k)
        jury, own = self._refitted_on(trials, shape, k)
        return self._played(shape, trials, self.refitted.play(own, jury, k)[1], True)

    def judge(self, shape: np.ndarray, trials: Trials, k: int) -> tuple[np.ndarray, np.ndarray]:
        if tuple(self.blocks[:2].tolist()) != (trials.signs.size, trials.scores.shape[1]) or self.scores.size < k:
            larger = RunningVotes(self.open)
            larger.restore(self.arrays)
            larger._fit(trials, k)
            return larger.judge(shape, trials, k)
        trials = trials._replace(scores=scaled_logarithms(trials.scores)) if trials.scores.size else trials
        jury, own = self._refitted_on(trials, shape, k)
        return self._played(shape, trials, self.refitted.rate(own, jury, k), False)

    def _played(
        self, shape: np.ndarray, trials: Trials, refitted: np.ndarray, learning: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        predictions, table = np.zeros(trials.size, np.int32), np.zeros(refitted.shape)
        diagonal = entry(learn_diagonal) if learning and not self.precision.shape[1] else 0
        play_votes(self.struct, trials, shape, refitted, diagonal, learning, predictions, table)
        return predictions, table

    # -- merging --

    def mix(self, mixture: Mixture) -> None:
        """Become the mixture; this one has learned nothing."""
        everyone = [*mixture.parts, *([] if mixture.base is None else [mixture.base])]
        voters, raters = (
            1 + max((int(part[axis].max(initial=-1)) for part in everyone), default=-1) for axis in (1, 2)
        )
        thresholds = mixture.k if any(part.state.blocks[2] for part in everyone) else 0
        counted = not self.open and counted_jurors(voters + raters, mixture.k) > 0
        blocks = blocks_of(voters, raters, thresholds, counted)
        places = [Place(part.state, blocks, part.voters, part.raters, part.classes) for part in everyone]
        parts, base = places[: len(mixture.parts)], None if mixture.base is None else places[-1]
        learned = [part for part in parts if part.learned > (0 if base is None else base.learned)]
        if len(learned) <= 1:  # the only one that learned anything, bit for bit
            only = (learned or parts)[0]
            self._take(only.running, blocks, mixture.k, only)
        else:
            self._mix(mixture, parts, base)
        for part in places:
            self.signs[part.jurors] = part.running.signs

    def _mix(self, mixture: Mixture, parts: list[Place], base: Place | None) -> None:
        """Become the mixture of several that learned."""
        blocks, everyone = parts[0].blocks, [*parts, *([] if base is None else [base])]
        sizes, before = self._sizes(blocks, mixture.k), 0 if base is None else base.trials
        for name, array in grown(FIELDS, None, sizes).items():
            setattr(self, name, array)
        self.merge_fields(
            mixture, sizes, lambda part: Place(part.state, blocks, part.voters, part.raters, part.classes).axes
        )
        self.counts[[TRIALS, NARROW]] = before + sum(part.trials - before for part in parts), blocks.narrow
        self.blocks[:] = blocks
        self.refitted = mix_softmaxes(
            [part.softmax for part in parts], None if base is None else base.softmax, blocks.narrow - VOTERS
        )
        logs = [share * np.log(part.running.mixture) for part, share in zip(parts, mixture.shares, strict=True)]
        self.mixture = np.exp(np.sum(logs, axis=0) - np.max(np.sum(logs, axis=0)))
        self.mixture /= self.mixture.sum()
        start = self.guesses.copy() if base is None else base.running.guesses
        self.guesses = start + sum(part.running.guesses - start for part in parts)
        times = times_counted([part.trials for part in parts], before, SHARPNESS_KEPT)
        self.sharpness = join_sharpness(
            [(part.running.sharpness, often) for part, often in zip(everyone, times, strict=False)]
        )
        self._mix_logits(parts, base)

    def _units(self, part: Place) -> np.ndarray:
        """Return the units of the coordinates of a part in those of the mixture; 1 but for raters."""
        units, first, own = np.ones(part.coordinates.size), VOTERS + part.own.jurors, part.running.scales
        common = self.scales[part.raters[: len(own)]]
        known = (own[:, 1] > 0.0) & (common[:, 1] > 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = np.sqrt(own[:, 1] / own[:, 0]) / np.sqrt(common[:, 1] / common[:, 0])
        units[first : first + len(own)] = np.where(known, sizes, 1.0)
        return units

    def _mix_logits(self, parts: Sequence[Place], base: Place | None) -> None:
        """Mix the logits."""
        blocks, everyone = parts[0].blocks, [*parts, *([] if base is None else [base])]
        full, seen = bool(self.precision.size), np.zeros((len(parts), blocks.size), np.int64)
        for own, part in zip(seen, parts, strict=True):
            own[part.coordinates] = part.running.seen[: part.coordinates.size]
        middle, last = VOTERS + blocks.jurors, VOTERS + blocks.jurors + blocks.raters
        self.seen, heard = seen.max(axis=0), seen == 1
        heard[:, :VOTERS] = heard[:, last:] = True
        for m in range(LOGITS):
            evidence = [
                LogitEvidence.of(part.running.struct, m, part.coordinates, self._units(part), blocks.size, full)
                for part in everyone
            ]
            joined = join_logits(
                evidence[: len(parts)], None if base is None else evidence[-1], float(MEMORIES[m]), heard
            )
            self.home[m] = joined.home
            (self.precision if full else self.diagonal)[m], self.weights[m] = fitted(joined, RIDGES[m])
        for kind, block in enumerate([slice(VOTERS, middle), slice(middle, last)]):
            self.counts[HEARD + kind] = (self.seen[block] == 1).sum()
            self.sums[:, kind] = (self.weights[:, block] * (self.seen[block] == 1)).sum(axis=1)

    # -- weights to look at --

    @property
    def members(self) -> dict[str, float]:
        """Shares of the members in the mixture at present; they add up to 1."""
        return dict(zip(MEMBERS, self.mixture.tolist(), strict=True))

    def hypothesis(self) -> np.ndarray:
        """Return the mean of the weights of logits and softmax by the mixture, of voters, raters and thresholds.

        The share of votes belongs to all voters and raters alike, and a rater has the weight of its vote as well. One
        that was not heard yet has the weight of a newcomer. Before the first label they are those of votes in the
        weighed share.
        """
        blocks, mixture = Blocks(*self.blocks.tolist()), self.mixture / self.mixture[:BEST].sum()
        if not self.counts[TRIALS] and self.rows[0] > 0.0:  # no label yet: the weighed share decides
            weighed = np.array([weight_of(self.struct, i, self.scores.size) for i in range(blocks.jurors)])
            return np.append(np.where(self.signs == 1.0, weighed, 0.0), np.zeros(blocks.thresholds))
        first, jurors = VOTERS + blocks.jurors, blocks.jurors
        own, copies = self.weights.copy(), np.flatnonzero(np.abs(self.signs) != 1.0)
        for kind, block in enumerate([slice(VOTERS, first), slice(first, first + blocks.raters)]):
            new = (TRUST + self.sums[:, [kind]]) / (1.0 + self.counts[HEARD + kind])
            unheard = (self.seen[block] == 0) & (kind == 1 or self.signs == 1.0)
            own[:, block] += np.where(unheard, new, 0.0)
        own[:NARROW_LOGITS] *= factor_of(self.sharpness.T, int(self.counts[TRIALS]))[:, None]
        weights = own[:, VOTERS : blocks.narrow].copy()
        weights[:, :jurors] += own[:, [SHARE]] / max(1, jurors - len(copies))
        if self.confused.size:
            odds = np.where(self.signs == 1.0, log_odds(self.struct), 0.0)
            voted = own[:, [blocks.narrow]] * WIDE[:, None]
            heard = own[:, blocks.narrow + 1 :] if blocks.heard else 0.0
            weights[:, :jurors] += odds * (voted + heard)
        weights[:, copies] = own[:, VOTERS + copies] * COPIED / np.abs(self.signs[copies])
        found = mixture[:LOGITS] @ weights + mixture[REFIT] * self.refitted.weights
        found[jurors : jurors + blocks.raters] += found[blocks.voters : jurors]
        return np.asarray(np.delete(found, np.arange(blocks.voters, jurors)))


@dataclass(frozen=True)
class VotesPool(Description):
    """Description of the pool; made by ``linmax.pool("votes")``. ``answers`` "open": see `RunningVotes`."""

    answers: str = ""
    name: ClassVar[str] = "votes"
    from_zero: ClassVar[bool] = False
    linear: ClassVar[bool] = False
    unmixable: ClassVar[str] = ""
    learns_attributes: ClassVar[bool] = False

    def start(self, size: int) -> Running:
        return RunningVotes(self.answers == "open")
