"""Online Newton steps of a conditional logit: with all of its curvature, or with the diagonal for many coordinates.

Members of the pool: logits that differ in how fast they forget and in what they see. Each is that of
`linmax.learners.softmax` with a Gaussian prior of precision r, one of `RIDGES`, about the weights ``home``, which are
those of plurality. Before each trial the past is forgotten at the rate g: with precision P about the weights w,

    P <- g P + (1 - g) r,    w is drawn towards home by (1 - g) r (home - w),

then the curvature H of the trial's log loss is added to P, and one Newton step is taken.

A juror or rater that is rated for the first time has, in each logit, the mean weight of its kind so far.

A narrow logit is right long before it is sure: its prior holds its weights back, so that it learns the order of its
scores first, and their size later. (Evidence has a size from the start, and wide logits need no correction.) So it is
mixed with its scores times a factor: the probability that it gave to class c becomes

    Q(c) = P(c)^f / sum_j P(j)^f,    f = 1 + (s - 1) a / (a + t)

after t trials, since the weights themselves learn the size in time; a is `LASTS`. After each trial s takes one Newton
step on the log loss of P^s, which was given before the label was seen, with a Gaussian prior of precision
`SHARPNESS_PRIOR` about 1. A trial counts as far as its label is no guess, and `SHARPNESS_KEPT` of the past is kept. It
is never below 1: a logit that is too sure is left to the mixture, which trusts it less.

Logits that learned from different trials merge as follows. A logit with precision P and weights w has learned, from its
trials, the information J = P - r and the pull b = P w - r h, r and h the precision and mean of its prior. Its steps
only add to both, and forget them at its rate g. After T trials they are those of about

    c(T) = 1 + g + ... + g^(T-1)

of them. The mixture of parts that learned T_i trials each, T together, has J = c(T) sum_i (T_i / T) J_i / c(T_i), b
likewise, and w = (J + r)^-1 (b + r h). Without forgetting these are plain sums: what one would have learned from all
trials, to second order. What all parts continued from is taken once, so it does not matter in which order parts are
merged. Prior means h are averaged by the information on their coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from linmax.jit.compiling import kernel
from linmax.jit.small_matrices import SIDE, add_times, factorise, solve_blocks
from linmax.learners.base import Arrays, Field
from linmax.learners.second_order import rate, symmetric, to_shares
from linmax.learners.votes.evidence import VOTERS
from linmax.util.blas import one_blas_thread

__all__ = [
    "AGE",
    "HEARD",
    "LEAST_SEEN",
    "LOGITS",
    "LOGIT_FIELDS",
    "MEMORIES",
    "NARROW",
    "NARROW_LOGITS",
    "OFTEN",
    "OUTSET",
    "RIDGES",
    "SHARPNESS_KEPT",
    "TRIALS",
    "TRUST",
    "WIDE",
    "LogitEvidence",
    "factor_of",
    "fitted",
    "join_logits",
    "join_sharpness",
    "learn_by_diagonal",
    "learn_by_matrices",
    "learn_sharpness",
    "predict_logits",
    "times_counted",
    "welcome",
]

RIDGES = np.array([10.0, 10.0, 10.0, 1.0])
MEMORIES = np.array([0.999, 0.99, 1.0, 1.0])
WIDE = np.array([0, 0, 1, 1])  # what a logit sees: the narrow ratings, or the evidence too; wide ones come last
NARROW_LOGITS = 2
LOGITS = WIDE.size
TRUST = 0.03  # weight of the first juror, and of the first rater
OUTSET = np.array([1.0, 1.0])  # the first weights of the share of votes and of being named
OFTEN = 64  # coordinates up to which the precision is factorized at every trial; beyond, the more rarely the more
FAINTEST = 1e-9  # information, for each trial, of a coordinate that was rated and taught nothing

TRIALS, HEARD, AGE, NARROW = 0, 1, 3, 4  # of `counts`: trials, jurors and raters that were heard, the age of the
# factors, and the number of narrow coordinates

# Precisions are full matrices over "square", of which the lower halves are stored, or diagonals over "line".
LOGIT_FIELDS = {
    "weights": Field((LOGITS, "coordinate"), merge=""),
    "home": Field((LOGITS, "coordinate"), merge=""),  # means of the priors
    "precision": Field((LOGITS, "square", "square"), merge=""),
    "factor": Field((LOGITS, "factor"), merge=""),  # upper triangles as `linmax.jit.small_matrices` has them
    "diagonal": Field((LOGITS, "line"), merge=""),
    "seen": Field(("coordinate",), merge="", dtype=np.int64),  # 1 where a juror or rater was heard; 2 for copies
    "sums": Field((LOGITS, 2), merge=""),  # of the weights of jurors and of raters that were heard
    "counts": Field((5,), merge="", dtype=np.int64),
    "sharpness": Field((NARROW_LOGITS, 2), [1.0, 1.0], ""),  # factors and their precisions
    "own": Field((LOGITS, "class"), merge="", saved=False),  # probabilities before they are sharpened
    "means": Field((LOGITS, "coordinate"), merge="", saved=False),  # 0 between trials
}


@kernel()
def newcomer(pool: Arrays, m: int, kind: int) -> float:
    """Return the weight that logit m gives to a juror (kind 0) or rater (1) that was not heard yet."""
    return (TRUST + pool.sums[m, kind]) / (1.0 + pool.counts[HEARD + kind])


@kernel()
def kind_of(pool: Arrays, place: int) -> int:
    """Return the kind of a coordinate: 0 for votes, 1 for scores, -1 for anything else."""
    jury = VOTERS + pool.blocks[0] + pool.blocks[1]
    if not VOTERS <= place < jury + pool.blocks[1]:
        return -1
    return 0 if place < jury else 1


@kernel()
def is_new(pool: Arrays, place: int) -> bool:
    """Return whether a coordinate belongs to a juror or rater that was not heard yet; copies do not count."""
    kind = kind_of(pool, place)
    return kind >= 0 and not pool.seen[place] and (kind == 1 or pool.signs[place - VOTERS] == 1.0)


@kernel()
def welcome(pool: Arrays) -> None:
    """Give their first weights to those of this trial that were not heard before."""
    places, joined = pool.places, (0, 0)
    for j in range(pool.ends[0]):
        place = places[j]
        kind = kind_of(pool, place)
        if is_new(pool, place):
            for m in range(LOGITS):
                pool.weights[m, place] = pool.home[m, place] = newcomer(pool, m, kind)
            joined = (joined[0] + 1 - kind, joined[1] + kind)
            pool.seen[place] = 1
        elif kind >= 0 and not pool.seen[place]:
            pool.seen[place] = 2
    for kind in range(2):
        if joined[kind]:
            for m in range(LOGITS):
                pool.sums[m, kind] += joined[kind] * newcomer(pool, m, kind)
            pool.counts[HEARD + kind] += joined[kind]
            pool.counts[AGE] = 0  # factors of before do not have them


@kernel()
def predict_logits(pool: Arrays, known: int) -> None:
    """Write the probabilities of the logits, sharpened, into the first rows of ``pool.shares``."""
    scores, places = pool.scores, pool.places
    for m in range(LOGITS):
        count, own = pool.ends[WIDE[m]], pool.own[m]
        rate(pool, 0, count, pool.weights[m], scores)
        for j in range(pool.ends[0]):
            if is_new(pool, places[j]):
                scores[pool.of[j]] += newcomer(pool, m, kind_of(pool, places[j])) * pool.values[j]
        to_shares(scores, known, own)
        factor = factor_of(pool.sharpness[m], pool.counts[TRIALS]) if m < NARROW_LOGITS else 1.0
        sharpen(factor, scores, own, known, pool.shares[m])


GRADIENT_ROUNDS = 8  # most steps of conjugate gradients
SOLVED = 1e-12  # share of the first residual, squared, below which they stop


@kernel(reorders=True)
def dot(a: np.ndarray, b: np.ndarray, size: int) -> float:
    """a.b over the first coordinates."""
    total = 0.0
    for i in range(size):
        total += a[i] * b[i]
    return total


@kernel()
def decompose(matrix: np.ndarray, factor: np.ndarray, least: np.ndarray) -> None:
    """The factor (see `linmax.jit.small_matrices`) of a matrix of which the lower half is read; ``least`` is room."""
    n, size = matrix.shape[0], factor.shape[0]
    for i in range(n):
        row = matrix[i]
        for j in range(i + 1):
            factor[j, i] = row[j]
        least[i] = 1e-12 * row[i]
    for i in range(n, size):
        for j in range(i):
            factor[j, i] = 0.0
        factor[i, i] = least[i] = 1.0
    factorise(factor, least)


@kernel()
def along(matrix: np.ndarray, x: np.ndarray) -> float:
    """x' matrix x, from the lower half."""
    total = 0.0
    for i in range(matrix.shape[0]):
        total += x[i] * (2.0 * dot(matrix[i], x, i) + matrix[i, i] * x[i])
    return total


@kernel()
def forget(kept: float, ridge: float, precision: np.ndarray) -> None:
    """Draw the precision towards that of the prior; ``kept`` is g."""
    for i in range(precision.shape[0]):
        row = precision[i]
        for j in range(i + 1):
            row[j] *= kept
        row[i] += (1.0 - kept) * ridge


@kernel()
def curve_together(pool: Arrays, known: int, scale: float) -> None:
    """Add ``scale`` times the curvature of a trial to the precisions of the logits: sum_c P_c x_c x_c' - m m'."""
    places, classes, values, ends, shares = pool.places, pool.of, pool.values, pool.ends, pool.own
    means, chain, x = pool.means, pool.chain, pool.vectors[0]  # means and x are 0 before and after
    last = chain[0]  # of each class, the rating read last
    for c in range(known):
        last[c] = -1
    for a in range(ends[1]):
        chain[1, a] = last[classes[a]]
        last[classes[a]] = a
    for c in range(known):
        a = last[c]
        while a >= 0:
            x[places[a]] = values[a]
            a = chain[1, a]
        a = last[c]
        while a >= 0:
            place = places[a]
            for m in range(0 if a < ends[0] else NARROW_LOGITS, LOGITS):
                product = scale * shares[m, c] * values[a]
                means[m, place] += product
                add_times(pool.precision[m, place], x, product, place + 1)
            a = chain[1, a]
        a = last[c]
        while a >= 0:
            x[places[a]] = 0.0
            a = chain[1, a]
    for m in range(LOGITS):
        mean, precision = means[m], pool.precision[m]
        for i in range(mean.size):
            if mean[i] != 0.0:
                add_times(precision[i], mean, -mean[i] / scale, i + 1)
        for i in range(mean.size):
            mean[i] = 0.0


@kernel()
def step_by_matrix(pool: Arrays, m: int, count: int, scale: float, drawn: float, n: int, fresh: bool) -> None:
    """Let logit m learn a trial of ``count`` ratings in its first ``n`` coordinates; ``drawn`` is (1 - g) r.

    The precision has the curvature of the trial already. Unless ``fresh``, an older factor of it gives the direction,
    and the precision the length of the step.
    """
    places, of, values, shares, target = pool.places, pool.of, pool.values, pool.own[m], pool.target
    weights, home, precision = pool.weights[m], pool.home[m], pool.precision[m, :n]
    size = (n + SIDE - 1) // SIDE * SIDE
    factor = pool.factor[m, : size * size].reshape((size, size))
    gradient, step = pool.vectors[1], pool.vectors[2]
    for i in range(n):
        gradient[i] = drawn * (home[i] - weights[i])
    for j in range(count):
        gradient[places[j]] += scale * (target[of[j]] - shares[of[j]]) * values[j]
    if fresh:
        decompose(precision, factor, pool.vectors[3])
    for i in range(n):
        step[i] = gradient[i]
    for i in range(n, size):
        step[i] = 0.0
    solve_blocks(factor, step)
    length = 1.0
    if not fresh:
        square = along(precision, step)
        length = dot(gradient, step, n) / square if square > 0.0 else 0.0
    for i in range(n):
        weights[i] += length * step[i]


@kernel()
def curved(
    pool: Arrays, count: int, known: int, scale: float, shares: np.ndarray, x: np.ndarray, result: np.ndarray
) -> None:
    """Add the curvature times x to ``result`` at the coordinates of the trial."""
    places, of, values, by_class, mean = pool.places, pool.of, pool.values, pool.vectors[4], 0.0
    for c in range(known):
        by_class[c] = 0.0
    for j in range(count):
        by_class[of[j]] += values[j] * x[places[j]]
    for c in range(known):
        mean += shares[c] * by_class[c]
    for j in range(count):
        result[places[j]] += scale * values[j] * shares[of[j]] * (by_class[of[j]] - mean)


@kernel()
def step_by_diagonal(pool: Arrays, m: int, count: int, known: int, scale: float, kept: float) -> int:
    """Let logit m learn by the diagonal of its precision; return how many coordinates are rated: ``chain[0]`` has them.

    Only these forget. The Newton step is one by the diagonal and all of the trial's own curvature, found by
    conjugate gradients, so that voters who always agree are not all corrected for the same mistake.
    """
    places, of, values, shares, target = pool.places, pool.of, pool.values, pool.own[m], pool.target
    weights, home, diagonal, active, room = pool.weights[m], pool.home[m], pool.diagonal[m], pool.chain[0], pool.vectors
    residual, direction, turned, step, squares = room[0], room[1], room[2], room[3], room[5]
    size = 0
    for j in range(count):
        place = places[j]
        if j == 0 or place != places[j - 1]:
            active[size] = place
            size += 1
            residual[place], step[place], squares[place] = 0.0, 0.0, 0.0
            if kept < 1.0:
                drawn = (1.0 - kept) * RIDGES[m]
                diagonal[place] = kept * diagonal[place] + drawn
                residual[place] = drawn * (home[place] - weights[place])
            turned[place] = 0.0  # the mean rating, for now
    for j in range(count):
        place, share, value = places[j], shares[of[j]], values[j]
        residual[place] += scale * (target[of[j]] - share) * value
        turned[place] += share * value
        squares[place] += share * value * value
    product = 0.0
    for a in range(size):
        place = active[a]
        squares[place] = max(0.0, squares[place] - turned[place] * turned[place])
        direction[place] = residual[place] / diagonal[place]
        product += residual[place] * direction[place]
    enough = SOLVED * product
    for _ in range(GRADIENT_ROUNDS):
        if product <= enough:
            break
        for a in range(size):
            turned[active[a]] = diagonal[active[a]] * direction[active[a]]
        curved(pool, count, known, scale, shares, direction, turned)
        square = 0.0
        for a in range(size):
            square += direction[active[a]] * turned[active[a]]
        if square <= 0.0:
            break
        length, after = product / square, 0.0
        for a in range(size):
            place = active[a]
            step[place] += length * direction[place]
            residual[place] -= length * turned[place]
            after += residual[place] * residual[place] / diagonal[place]
        for a in range(size):
            place = active[a]
            direction[place] = residual[place] / diagonal[place] + after / product * direction[place]
        product = after
    for a in range(size):
        weights[active[a]] += step[active[a]]
        diagonal[active[a]] += scale * squares[active[a]]
    return size


@kernel()
def learn_by_diagonal(pool: Arrays, known: int) -> None:
    """Take one step of each logit by diagonals."""
    active, vectors = pool.chain[0], pool.vectors
    for m in range(LOGITS):
        count = step_by_diagonal(pool, m, pool.ends[WIDE[m]], known, pool.scale[0], MEMORIES[m])
        for a in range(count):
            place = active[a]
            kind = kind_of(pool, place)
            if kind >= 0 and pool.seen[place] == 1:
                pool.sums[m, kind] += vectors[3, place]


@kernel()
def learn_by_matrices(pool: Arrays, known: int) -> None:
    """Take one step of each logit by full matrices."""
    age, narrow, scale, places = pool.counts[AGE], pool.counts[NARROW], pool.scale[0], pool.weights.shape[1]
    for m in range(LOGITS):
        if MEMORIES[m] < 1.0:
            forget(MEMORIES[m], RIDGES[m], pool.precision[m, : places if WIDE[m] else narrow])
    curve_together(pool, known, scale)
    for m in range(LOGITS):
        size, drawn = places if WIDE[m] else narrow, (1.0 - MEMORIES[m]) * RIDGES[m]
        fresh = age % (1 + (size - 1) // OFTEN) == 0
        step_by_matrix(pool, m, pool.ends[WIDE[m]], scale, drawn, size, fresh)
        pool.sums[m, 0] = pool.sums[m, 1] = 0.0
        for place in range(VOTERS, narrow):
            kind = kind_of(pool, place)
            if kind >= 0 and pool.seen[place] == 1:
                pool.sums[m, kind] += pool.weights[m, place]


FACTOR, PRECISION = 0, 1  # what is kept of each logit: s, and the precision with which it is known
LASTS = 300.0  # trials
SHARPNESS_PRIOR = 1.0
SHARPNESS_KEPT = 0.99
SHARPEST = 10.0  # the greatest s
LEAST_SEEN = 1e-300  # least probability of which a logarithm is taken
MOST_LESS = 60.0  # largest magnitude of the logarithm of a ratio of probabilities


def join_sharpness(parts: list[tuple[np.ndarray, float]]) -> np.ndarray:
    """Return what was learned together from what pools learned separately, each with how many times it counts.

    The base of all counts less than not at all.

    Examples
    --------
    >>> join_sharpness([(np.array([[2.0, 3.0]]), 1.0), (np.array([[3.0, 3.0]]), 1.0)])
    array([[2.8, 5. ]])
    """
    prior = SHARPNESS_PRIOR
    pull = prior + sum(times * (own[:, FACTOR] * own[:, PRECISION] - prior) for own, times in parts)
    precision = np.maximum(prior + sum(times * (own[:, PRECISION] - prior) for own, times in parts), prior)
    return np.stack([np.clip(pull / precision, 1.0, SHARPEST), precision], axis=1)


@kernel()
def factor_of(sharpness: np.ndarray, trials: int) -> float:
    """f of a logit after this many trials."""
    return 1.0 + (sharpness[FACTOR] - 1.0) * LASTS / (LASTS + trials)


@kernel()
def sharpen(factor: float, scores: np.ndarray, own: np.ndarray, known: int, shares: np.ndarray) -> None:
    """Write Q to ``shares``; ``own`` is P, and the scores, whose softmax it is, are overwritten."""
    if factor == 1.0:
        for c in range(known):
            shares[c] = own[c]
    else:
        for c in range(known):
            scores[c] *= factor
        to_shares(scores, known, shares)


@kernel()
def learn_sharpness(sharpness: np.ndarray, own: np.ndarray, known: int, target: np.ndarray, sure: float) -> None:
    """One step of a logit's factor; ``sure`` is how much the trial counts."""
    factor, drawn, largest = sharpness[FACTOR], (1.0 - SHARPNESS_KEPT) * SHARPNESS_PRIOR, 0.0
    total, mean, square, right = 0.0, 0.0, 0.0, 0.0  # of P^s, and the mean logarithm by the target
    for c in range(known):
        largest = max(largest, own[c])
    for c in range(known):
        less = max(-MOST_LESS, math.log(max(LEAST_SEEN, own[c]) / largest))
        share = math.exp(factor * less)
        total += share
        mean += share * less
        square += share * less * less
        right += target[c] * less
    mean /= total
    square = max(0.0, square / total - mean * mean)
    sharpness[PRECISION] = SHARPNESS_KEPT * sharpness[PRECISION] + drawn + sure * square
    slope = drawn * (1.0 - factor) + sure * (right - mean)
    sharpness[FACTOR] = min(SHARPEST, max(1.0, factor + slope / sharpness[PRECISION]))


# -- merging ----------------------------------------------------------------------------------------------------------


def remembered(trials: int, kept: float) -> float:
    """Return c(T): of how many trials the information after this many is."""
    return float(trials) if kept == 1.0 else (1.0 - kept**trials) / (1.0 - kept)


def times_counted(trials: Sequence[int], before: int, kept: float) -> list[float]:
    """Return how often the counts of each part are taken, and last those of the base, of ``before`` trials.

    They are forgotten as logits forget.
    """
    fresh = [count - before for count in trials]
    total = sum(fresh)
    # of the only one that learned, all counts for what it did, to the last bit
    times = [
        remembered(total, kept) * count / total / remembered(count, kept) if 0 < count < total else float(count > 0)
        for count in fresh
    ]
    return [*times, kept**total - sum(often * kept**count for often, count in zip(times, fresh, strict=True))]


class LogitEvidence(NamedTuple):
    """Information and pull of a logit's trials, over the coordinates of the mixture."""

    information: np.ndarray  # (n, n), or (n,) where it is a diagonal
    pull: np.ndarray
    home: np.ndarray
    trials: int

    @classmethod
    def of(cls, pool: Arrays, m: int, places: np.ndarray, units: np.ndarray, size: int, full: bool) -> LogitEvidence:
        """Return that of logit m of a pool whose coordinates have these places and units among ``size``."""
        n = places.size
        weights, home = pool.weights[m, :n] / units, pool.home[m, :n] / units
        if pool.precision.size:
            own = (symmetric(pool.precision[m, :n, :n]) - RIDGES[m] * np.eye(n)) * np.outer(units, units)
        else:
            own = (pool.diagonal[m, :n] - RIDGES[m]) * units**2
        if not full and own.ndim == 2:
            own = np.diag(own)
        information, vectors = np.zeros((size, size) if full else size), np.zeros((2, size))
        information[np.ix_(places, places) if full else places] = own
        vectors[:, places] = (own @ weights if own.ndim == 2 else own * weights) + RIDGES[m] * (weights - home), home
        return cls(information, vectors[0], vectors[1], int(pool.counts[TRIALS]))

    def faded(self, factor: float) -> LogitEvidence:
        """Return this share of it."""
        return self._replace(information=factor * self.information, pull=factor * self.pull)


def join_logits(
    parts: Sequence[LogitEvidence], base: LogitEvidence | None, kept: float, seen: np.ndarray
) -> LogitEvidence:
    """Return what parts that continued from a base have learned together; ``seen`` has the coordinates each knows."""
    before = 0 if base is None else base.trials
    total = sum(part.trials - before for part in parts)
    information, pull = np.zeros_like(parts[0].information), np.zeros_like(parts[0].pull)
    home, shares = np.zeros_like(pull), np.zeros_like(pull)
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
        # a coordinate that was rated and taught nothing counts for next to nothing, so that its prior mean is not lost
        weight = np.where(seen[place], np.maximum(diagonal, FAINTEST * fresh), 0.0)
        home += weight * part.home
        shares += weight
    if base is not None:
        rest = base.faded(kept**total)
        information += rest.information
        pull += rest.pull
        home += FAINTEST * base.home
        shares += FAINTEST * (base.home != 0.0)
    home = np.divide(home, shares, out=home, where=shares > 0.0)
    home[:VOTERS] = np.where(shares[:VOTERS] > 0.0, home[:VOTERS], OUTSET)
    return LogitEvidence(information, pull, home, before + total)


def fitted(evidence: LogitEvidence, ridge: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the precision, of a matrix its lower half, and the weights of a logit with this evidence."""
    right = evidence.pull + ridge * evidence.home
    if evidence.information.ndim == 1:
        precision = ridge + evidence.information
        return precision, right / precision
    precision = ridge * np.eye(len(right)) + evidence.information
    with one_blas_thread():
        return np.tril(precision), np.linalg.solve(precision, right)
