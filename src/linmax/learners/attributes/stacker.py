"""Fusion of the members of the pool for attributes: one conditional logit over their scores and votes.

Member m gives two inputs for each class c. Its scores are centered over the known classes; with q^2 their mean square
and r^2 the mean of q^2 over all trials before, z_mc = s_mc / sqrt(r^2 + .3 q^2). Its vote is its best class, where one
class alone is best. Then

    P(c) is proportional to exp(b_c + sum_m u_m z_mc + v_m [vote_m = c]),

and log P are the scores of the pool. A trial of weight h (at most 100) takes a Newton step on the log loss. With x^c
the inputs of class c, w = (u, v), Q the probabilities given the label (1 for the label; of a class that is denied, P
given that it is another) and g = sum_c (Q_c - P_c) x^c:

    w += h S g / (1 + h g'Sg),  S -= h Sg (Sg)' / (1 + h g'Sg),  S += 5e-6 I,  b_c += h (Q_c - P_c) / (4 + H_c),

where H_c sums h P_c (1 - P_c). At first u = .3, v = 0 and S has .1 for scores and .03 for votes on its diagonal. What
is added to S keeps it tracking. A class that is new gets the share 1 / (t + 2) of what the intercepts give to all.

There are two such logits: one for rows that are new, one for rows that were learned before. Members that remember rows
are right about these, and no better than others about new ones. The second begins with the weights of the first and the
first S, at the first row that is learned again; until then the first predicts all rows. Which rows were learned is
known by a set of fingerprints of their attributes, without the label, which doubles up to 2^18.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numba import boolean, float32, int32, int64, types

from linmax.core.contract import Indices, Labels, Matrix, Trials, Vector
from linmax.core.linear_max import top_two
from linmax.jit.compiling import JIT, kernel
from linmax.learners.attributes.group import DENIED
from linmax.learners.base import Field, LearnerState, Mixture, mix_matrices, struct_of

__all__ = ["FusionT", "MemberFusion", "fingerprints", "fuse"]

SCORE_WEIGHT = 0.3  # u at first
SCORE_VARIANCE, VOTE_VARIANCE = 0.1, 0.03
OWN_SIZE = 0.3  # the share of a trial's own scores in what they are divided by
INFLATION = 5e-6
PRIOR_TRIALS = 4.0  # precision of an intercept at first
HEAVIEST_TRIAL = 100.0  # one trial does not decide who is to be trusted

LEAST_MARKS, MOST_MARKS = 1 << 6, 1 << 18  # places for fingerprints
NEARBY = 32  # places among which a fingerprint is
USED, REPEATS, JOINED = range(3)  # of ``marked``
NEW, SEEN = range(2)  # the logit for new rows, and that for rows that were learned before
Marks = int32[::1]
WORD = (1 << 32) - 1


@kernel(types.void(Matrix, Indices, int32[::1], Vector, Indices))
def fingerprints(
    dense: np.ndarray, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, found: np.ndarray
) -> None:
    """Write a number below 2^31 that follows from the attributes of each row that are not 0, whatever their order.

    Products stay below 2^63, so that interpreted and compiled code agree.
    """
    dense_bits, bits = dense.view(np.int64), values.view(np.int64)
    for t in range(found.size):
        total = 0
        first, last = 0, 0
        if indptr.size:
            first, last = indptr[t], indptr[t + 1]
        for j in range(dense.shape[1] + last - first):
            if j < dense.shape[1]:
                column, value, b = j, dense[t, j], dense_bits[t, j]
            else:
                i = first + j - dense.shape[1]
                column, value, b = indices[i], values[i], bits[i]
            if value != 0.0:
                b ^= b >> 63
                mixed = (b & WORD) * 0x2C1B3C6D + (b >> 32) * 0x297A2D39 + column * 0x1B873593
                mixed = ((mixed ^ (mixed >> 15) ^ (mixed >> 33)) & WORD) * 0x5BD1E995
                mixed = ((mixed ^ (mixed >> 13) ^ (mixed >> 31)) & WORD) * 0x2127599B
                total += mixed ^ (mixed >> 29)
        total = ((total ^ (total >> 32)) & WORD) * 0x3C6EF373
        found[t] = max(1, (total ^ (total >> 32)) & (WORD >> 1))


if not JIT:  # integers of NumPy warn where compiled ones wrap around
    fingerprints = np.errstate(over="ignore")(fingerprints)


@kernel()
def mark_place(marks: np.ndarray, mark: int) -> int:
    """Return the place of a fingerprint, the first free one of its window, or without one any."""
    for i in range(NEARBY):
        place = (mark + i) & (marks.size - 1)
        if marks[place] == mark or marks[place] == 0:
            return place
    return (mark + (mark >> 18) % NEARBY) & (marks.size - 1)


@kernel(types.void(Marks, Marks))
def rehash(old: np.ndarray, new: np.ndarray) -> None:
    """Write fingerprints into a larger set."""
    for i in range(old.size):
        if old[i] != 0:
            new[mark_place(new, int(old[i]))] = old[i]


@kernel()
def is_full(m: Any) -> bool:
    """Return whether the set of fingerprints must double before another row is learned."""
    return 2 * m.marked[USED] >= m.marks.size and m.marks.size < MOST_MARKS


@kernel()
def begin_second(m: Any) -> None:
    """Give the logit for repeated rows the weights of the other."""
    size = m.weights.shape[1]
    for i in range(size):
        m.weights[SEEN, i] = m.weights[NEW, i]
        for j in range(size):
            m.variances[SEEN, i, j] = 0.0
        m.variances[SEEN, i, i] = VOTE_VARIANCE if i % 2 else SCORE_VARIANCE
    for c in range(m.intercepts.shape[1]):
        m.intercepts[SEEN, c], m.curvatures[SEEN, c] = m.intercepts[NEW, c], m.curvatures[NEW, c]


@kernel()
def logit_for(m: Any, mark: int, learn: bool) -> int:
    """Return which logit is for the row with this fingerprint, 0 for none; if it is learned, it is marked."""
    marks, marked = m.marks, m.marked
    if mark == 0 or marks.size == 0:
        return NEW
    place = mark_place(marks, mark)
    if marks[place] == mark:
        if learn:
            if marked[REPEATS] == 0:
                begin_second(m)
            marked[REPEATS] += 1
        return SEEN if marked[REPEATS] > 0 else NEW
    if learn:
        marked[USED] += marks[place] == 0
        marks[place] = mark
    return NEW


@kernel()
def standardize(m: Any, scores: np.ndarray, known: int, i: int, learn: bool) -> int:
    """Write z of member i over its scores; return its vote, or -1."""
    mean, square, best, ties = 0.0, 0.0, 0, 0
    for c in range(known):
        mean += scores[c]
        if scores[c] > scores[best]:
            best, ties = c, 0
        elif scores[c] == scores[best] and c > 0:
            ties = 1
    mean /= max(known, 1)
    for c in range(known):
        square += (scores[c] - mean) ** 2
    square /= max(known, 1)
    total = OWN_SIZE * square + m.squares[i] / max(m.trials[0], 1.0)
    factor = 1.0 / math.sqrt(total) if total > 0.0 else 0.0
    for c in range(known):
        scores[c] = (scores[c] - mean) * factor
    if learn:
        m.squares[i] += square
    return -1 if ties else best


@kernel()
def take_step(m: Any, state: int, votes: np.ndarray, label: int, known: int, weight: float) -> None:
    """Learn by one Newton step; ``m.shares`` has P, and then Q - P."""
    shares, chosen, pull, along = m.shares, m.chosen, m.vectors[0], m.vectors[1]
    weights, variances, intercepts, curvatures = m.weights[state], m.variances[state], m.intercepts[state], m.curvatures
    wrong = DENIED - label if label < 0 else -1
    rest = 0.0
    for c in range(known):
        rest += shares[c] if c != wrong else 0.0
        curvatures[state, c] += weight * shares[c] * (1.0 - shares[c])
    for c in range(known):
        right = (c == label) * 1.0
        if wrong >= 0:
            right = shares[c] / rest if c != wrong and rest > 0.0 else 0.0
        shares[c] = right - shares[c]
        intercepts[c] += weight * shares[c] / (PRIOR_TRIALS + curvatures[state, c])
    for i in range(chosen.size):
        total = 0.0
        for c in range(known):
            total += shares[c] * votes[i, c]
        pull[2 * i] = total
        pull[2 * i + 1] = shares[chosen[i]] if chosen[i] >= 0 else 0.0
    size = 1.0
    for i in range(pull.size):
        total = 0.0
        for j in range(pull.size):
            total += variances[i, j] * pull[j]
        along[i] = total
        size += weight * total * pull[i]
    step = weight / size
    for i in range(pull.size):
        weights[i] += step * along[i]
        if wrong >= 0:  # that all voted for a class that is wrong does not mean that what they vote against is right
            weights[i] = max(weights[i], 0.0)
        for j in range(pull.size):
            variances[i, j] -= step * along[i] * along[j]
        variances[i, i] += INFLATION


@kernel()
def join_class(m: Any, label: int) -> None:
    """Give a new class its first intercept, after all others."""
    for state in range(2):
        own, largest, total = m.intercepts[state], -np.inf, 0.0
        for c in range(label):
            largest = max(largest, own[c])
        for c in range(label):
            total += math.exp(own[c] - largest)
        own[label] = largest + math.log(total) - math.log(m.trials[0] + 1.0) if label else 0.0


FIELDS = {
    "weights": Field((2, "input"), merge=""),  # u and v of each member, one after the other
    "variances": Field((2, "input", "input"), merge=""),  # S
    "intercepts": Field((2, "class"), merge=""),  # b
    "curvatures": Field((2, "class"), merge=""),  # H
    "squares": Field(("member",), merge=""),  # sums of the mean squares of the members' scores
    "trials": Field(),
    "marks": Field(("place",), merge="", dtype=np.int32),  # fingerprints, 0 for none
    "marked": Field((3,), merge="", dtype=np.int64),  # how many; rows that repeated one; classes with an intercept
    "vectors": Field((2, "input"), merge="", saved=False),
    "shares": Field(("class",), merge="", saved=False),
    "chosen": Field(("member",), merge="", dtype=np.int64, saved=False),
}


FusionT = struct_of(FIELDS).numba_type


@kernel(int64(FusionT, float32[:, :, ::1], Indices, Indices, Labels, Vector, Indices, boolean, Labels, Matrix))
def fuse(
    m: Any,
    votes: np.ndarray,
    found: np.ndarray,
    counts: np.ndarray,
    labels: np.ndarray,
    importances: np.ndarray,
    shape: np.ndarray,
    learn: bool,
    predictions: np.ndarray,
    table: np.ndarray,
) -> int:
    """Standardize the members' scores, in place, and fuse them; ``found`` are the fingerprints of the rows.

    Returns how many trials were played: learning stops where the set of fingerprints `is_full`.
    """
    members, k, shares, chosen = votes.shape[1], table.shape[1], m.shares, m.chosen
    for t in range(predictions.size):
        if learn and is_full(m):
            return t
        known, own = counts[t], table[t]
        state = logit_for(m, found[t], learn)
        weights, intercepts = m.weights[state], m.intercepts[state]
        for c in range(k):
            own[c] = intercepts[c] if c < known else 0.0
        for i in range(members):
            chosen[i] = standardize(m, votes[t, i], known, i, learn)
            for c in range(known):
                own[c] += weights[2 * i] * votes[t, i, c]
            if chosen[i] >= 0 and known > 0:
                own[chosen[i]] += weights[2 * i + 1]
        largest, total = -np.inf, 0.0
        for c in range(known):
            largest = max(largest, own[c])
        for c in range(known):
            shares[c] = math.exp(own[c] - largest)
            total += shares[c]
        for c in range(known):
            shares[c] /= total
            own[c] -= largest + math.log(total)
        predictions[t] = top_two(own, known, shape)[0]
        if not learn:
            continue
        label, joined = labels[t], m.marked[JOINED]
        m.marked[JOINED] = max(joined, known, label + 1)
        for c in range(max(joined, known), label + 1):
            join_class(m, c)
        if known > 1 and DENIED - label < known and label < known:
            take_step(m, state, votes[t], label, known, min(importances[t], HEAVIEST_TRIAL))
        m.trials[0] += 1.0
    return predictions.size


class MemberFusion(LearnerState):
    """Two logits over the members, the sizes of the members' scores, and fingerprints of the rows learned."""

    fields: ClassVar = FIELDS
    marks: np.ndarray

    def join(self, members: int) -> None:
        """Add members, with the first weight."""
        old = len(self.squares)
        self.grow(member=old + members, input=2 * (old + members))
        self.weights[:, 2 * old :: 2] = SCORE_WEIGHT
        for state in self.variances:
            diagonal = np.tile([SCORE_VARIANCE, VOTE_VARIANCE], members)
            np.fill_diagonal(state[2 * old :, 2 * old :], 0.0)
            state[np.arange(2 * old, len(state)), np.arange(2 * old, len(state))] = diagonal

    @property
    def repeats(self) -> int:
        """Number of rows learned whose attributes had been seen before."""
        return int(self.marked[REPEATS])

    @property
    def member_weights(self) -> np.ndarray:
        """The weight of each member for new rows: that of its scores and that of its vote."""
        return self.weights[NEW, ::2] + self.weights[NEW, 1::2]

    @property
    def inverse_sizes(self) -> np.ndarray:
        """Factors of the members' scores of the usual size; 0 where they were all 0."""
        sizes = np.sqrt((1.0 + OWN_SIZE) * self.squares / max(1.0, float(self.trials[0])))
        return np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0.0)

    @property
    def is_full(self) -> bool:
        """True if the set of fingerprints must double before another row is learned."""
        return bool(2 * self.marked[USED] >= self.marks.size < MOST_MARKS)

    def double(self) -> None:
        """Make the set of fingerprints twice as large."""
        old = self.marks
        self.marks = np.zeros(max(LEAST_MARKS, 2 * old.size), np.int32)
        rehash(old, self.marks)

    def mix(self, mixture: Mixture, places: Sequence[np.ndarray], base: np.ndarray | None, same_columns: bool) -> None:
        """Become the mixture, each logit by precision; ``places`` say where members of each part are among these.

        Fingerprints are those of all parts, where the ``same_columns`` have the same numbers in all of them.
        """
        self.grow(**{"class": mixture.k})
        for state in (NEW, SEEN):
            weights, matrices, shares = [], [], []
            pull, precision = np.zeros(mixture.k), np.zeros(mixture.k)
            for (part, share), there in zip(mixture.shared, places, strict=True):
                if share > 0.0 and (state == NEW or part.state.repeats):
                    own, own_weights, matrix = part.state, self.weights[state].copy(), self.variances[state].copy()
                    inputs = (2 * there[:, None] + [0, 1]).ravel()
                    own_weights[inputs], matrix[np.ix_(inputs, inputs)] = own.weights[state], own.variances[state]
                    weights.append(own_weights)
                    matrices.append(matrix)
                    shares.append(share)
                    intercepts, sure = own.placed_intercepts(state, part.classes, mixture.k)
                    pull += share * sure * intercepts
                    precision += share * sure
            if not shares:
                continue
            self.weights[state], self.variances[state] = mix_matrices(weights, matrices, shares)
            self.intercepts[state] = pull / precision
            if mixture.alone is not None:  # bit for bit
                part = mixture.weighed[0][0]
                known = min(part.classes.size, part.state.intercepts.shape[1])
                self.intercepts[state] = 0.0
                self.intercepts[state, part.classes[:known]] = part.state.intercepts[state, :known]
        counted = zip(mixture.counted, [*places, *([] if base is None else [base])], strict=True)
        for (part, sign), there in counted:
            here = there >= 0  # what the base began with may have been given up since
            self.squares[there[here]] += sign * part.state.squares[here]
            self.trials += sign * part.state.trials
            self.marked[REPEATS] += sign * part.state.marked[REPEATS]
            self.marked[JOINED] = mixture.known
        np.maximum(self.squares, 0.0, out=self.squares)
        for part, share in mixture.shared:
            known = min(part.classes.size, part.state.curvatures.shape[1])
            self.curvatures[:, part.classes[:known]] += share * part.state.curvatures[:, :known]
        if same_columns:
            marks = np.unique(np.concatenate([part.state.marks for part in mixture.parts]))
            marks = marks[marks > 0]
            while 2 * len(marks) >= self.marks.size < MOST_MARKS:
                self.double()
            rehash(marks, self.marks)
            self.marked[USED] = np.count_nonzero(self.marks)

    def take_over(self, others: Sequence[MemberFusion]) -> None:
        """Take the logit for new rows from fusions of the same members, all classes known, each with the same share."""
        shares = [1.0 / len(others)] * len(others)
        own = [other.weights[NEW] for other in others], [other.variances[NEW] for other in others]
        self.weights[NEW], self.variances[NEW] = mix_matrices(*own, shares)
        self.intercepts[NEW] = np.mean([other.intercepts[NEW] for other in others], axis=0)

    def placed_intercepts(self, state: int, classes: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return intercepts with the classes of all, as logarithms of shares, and their precisions."""
        known = min(classes.size, self.intercepts.shape[1])
        found, sure = np.full(k, -math.log(float(self.trials[0]) + 2.0)), np.full(k, PRIOR_TRIALS)
        own = self.intercepts[state, :known]
        # logarithms of shares only where classes are missing, so that the order of merging only rounds
        found[classes[:known]] = own - np.logaddexp.reduce(own) if known < k else own
        sure[classes[:known]] += self.curvatures[state, :known]
        return found, sure

    def fuse(
        self, votes: np.ndarray, found: np.ndarray, trials: Trials, shape: np.ndarray, learn: bool, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Standardize the members' scores, in place, and fuse them: predictions and logarithms of probabilities."""
        size, played = len(votes), 0
        predictions, table = np.zeros(size, np.int32), np.zeros((size, k))
        self.grow(**{"class": k})
        m = self.struct if learn else self.reader()
        while played < size:
            rest = slice(played, size)
            played += fuse(
                m, votes[rest], found[rest], trials.known[rest], trials.labels[rest], trials.weights[rest], shape,
                learn, predictions[rest], table[rest],
            )  # fmt: skip
            if played < size:
                self.double()
        return predictions, table
