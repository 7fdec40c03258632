"""How the members of the pool for attributes are fused: as sub-experts of a learner of their weights.

Each member's scores of the known classes are centred, divided by their root mean square so far and made shares in
[0, 1] by softmax. The shares are sub-experts x_m with weights w, all 1 at first, for AROW with a full matrix S, I at
first: with z = x^label - x^rival, if w.z < 1 then b = 1/(z'Sz + 10/h), w <- w + (1 - w.z) b Sz,
S <- S - b Sz (Sz)' + 10^-4 I, h the weight of the trial, at most 10. What is added keeps it
tracking. Of a trial that denies a class, z = x^best other - x^wrong, and weights below 0 become 0: that all spoke for a
class that was wrong does not mean that what they speak against is right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numba import boolean, float32, int32, types

from linmax.core.contract import Indices, Labels, Matrix, Trials, Vector
from linmax.core.linear_max import top_two
from linmax.jit.compiling import kernel
from linmax.learners.attributes.member import DENIED
from linmax.learners.base import Field, LearnerState, Mixture, mix_matrices, struct_of

__all__ = ["MemberFusion", "fuse"]


REGULARISER = 10.0
INFLATION = 1e-4
HEAVIEST_TRIAL = 10.0  # one trial does not decide who is to be trusted


@kernel()
def exponentials(values: np.ndarray, bits: np.ndarray, known: int) -> None:
    """exp of single-precision numbers <= 0, in place, to 1e-6; ``bits`` are the same numbers as integers.

    Plain loops, which become vectors: 2^y = 2^floor(y) times a polynomial in the rest.
    """
    for c in range(known):
        y = max(values[c] * np.float32(1.4426950408889634), np.float32(-126.0))
        whole = np.floor(y)
        t = y - whole
        p = np.float32(0.0018671303)
        p = p * t + np.float32(0.00901702968)
        p = p * t + np.float32(0.0557999137)
        p = p * t + np.float32(0.24016445)
        p = p * t + np.float32(0.693151312)
        values[c] = p * t + np.float32(1.0)
        bits[c] += np.int32(whole) << 23


@kernel()
def to_votes(
    scores: np.ndarray, bits: np.ndarray, known: int, squares: np.ndarray, m: int, trials: float, learn: bool
) -> None:
    """Scores of member m become shares, in place: centred, over their root mean square so far, softmax."""
    mean, square = 0.0, 0.0
    for c in range(known):
        mean += scores[c]
    mean /= max(known, 1)
    for c in range(known):
        square += (scores[c] - mean) ** 2
    total = squares[m] + square / max(known, 1)
    if learn:
        squares[m] = total
    factor = 1.0 / math.sqrt(total / (trials + 1.0)) if total > 0.0 else 0.0
    largest, sum_ = scores[0], 0.0
    for c in range(1, known):
        largest = max(largest, scores[c])
    for c in range(known):
        scores[c] = (scores[c] - largest) * factor
    exponentials(scores, bits, known)
    for c in range(known):
        sum_ += scores[c]
    for c in range(known):
        scores[c] /= sum_


@kernel()
def learn_weights(
    votes: np.ndarray, label: int, rival: int, importance: float, weights: np.ndarray, matrix: np.ndarray,
    z: np.ndarray, along: np.ndarray,
) -> None:  # fmt: skip
    """AROW's step on z = x^label - x^rival, for a trial that counts this much."""
    n, margin, v = weights.size, 0.0, 0.0
    for m in range(n):
        z[m] = votes[m, label] - votes[m, rival]
        margin += weights[m] * z[m]
    if margin >= 1.0:
        return
    for m in range(n):
        along[m] = 0.0
        for i in range(n):
            along[m] += matrix[m, i] * z[i]
        v += z[m] * along[m]
    b = 1.0 / (v + REGULARISER / importance)
    for m in range(n):
        weights[m] += (1.0 - margin) * b * along[m]
        for i in range(n):
            matrix[m, i] -= b * along[m] * along[i]
        matrix[m, m] += INFLATION


FIELDS = {
    "weights": Field(("member",), 1.0, ""),
    "matrix": Field(("member", "member"), merge=""),
    "squares": Field(("member",)),  # sums of squares of the members' scores
    "trials": Field(),
    "vectors": Field((2, "member"), merge="", saved=False),
}


@kernel(
    types.void(
        struct_of(FIELDS).numba_type, float32[:, :, ::1], int32[:, :, ::1], Indices, Labels, Vector, Indices, boolean,
        Labels, Matrix,
    )
)  # fmt: skip
def fuse(
    m: Any,
    votes: np.ndarray,
    bits: np.ndarray,
    counts: np.ndarray,
    labels: np.ndarray,
    importances: np.ndarray,
    shape: np.ndarray,
    learn: bool,
    predictions: np.ndarray,
    table: np.ndarray,
) -> None:
    """Make votes of the members' scores, in place, and fuse them; trials count as much as their ``importances`` say."""
    members, k, weights, matrix, squares, trials = (
        votes.shape[1],
        table.shape[1],
        m.weights,
        m.matrix,
        m.squares,
        m.trials,
    )
    matrix, squares, z, along = m.matrix, m.squares, m.vectors[0], m.vectors[1]
    for t in range(predictions.size):
        known = counts[t]
        for i in range(members):
            to_votes(votes[t, i], bits[t, i], known, squares, i, trials[0], learn)
        for c in range(k):
            table[t, c] = 0.0
        for i in range(members):
            for c in range(known):
                table[t, c] += weights[i] * votes[t, i, c]
        first, second = top_two(table[t], known, shape)
        predictions[t] = first
        if not learn:
            continue
        trials[0] += 1.0
        label = labels[t]
        if label < 0:
            wrong = DENIED - label
            other = second if first == wrong else first
            if other >= 0:
                learn_weights(votes[t], other, wrong, importances[t], weights, matrix, z, along)
                for i in range(members):
                    weights[i] = max(weights[i], 0.0)
        elif label >= known:
            if first >= 0:
                learn_weights(votes[t], label, first, importances[t], weights, matrix, z, along)
        elif second >= 0:
            rival = second if first == label else first
            learn_weights(votes[t], label, rival, importances[t], weights, matrix, z, along)


class MemberFusion(LearnerState):
    """Weights of the members and their matrix, the sums of squares of their scores, and the trials."""

    fields: ClassVar = FIELDS
    weights: np.ndarray
    matrix: np.ndarray

    def join(self, members: int) -> None:
        """Add members, with the first weight."""
        old = len(self.weights)
        self.grow(member=old + members)
        np.fill_diagonal(self.matrix[old:, old:], 1.0)

    @property
    def inverse_sizes(self) -> np.ndarray:
        """1 / root mean square of each member's scores so far; 0 where they were all 0."""
        sizes = np.sqrt(self.squares / max(1.0, float(self.trials[0])))
        return np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0.0)

    def mix(self, mixture: Mixture, places: Sequence[np.ndarray], base: np.ndarray | None) -> None:
        """Become the mixture, by precision; ``places`` say where the members of each part are among these."""
        weights, matrices, shares = [], [], []
        for (part, share), there in zip(mixture.shared, places, strict=True):
            if share > 0.0:
                own, matrix = self.weights.copy(), self.matrix.copy()
                own[there], matrix[np.ix_(there, there)] = part.state.weights, part.state.matrix
                weights.append(own)
                matrices.append(matrix)
                shares.append(share)
        self.weights, self.matrix = mix_matrices(weights, matrices, shares)
        counted = zip(mixture.counted, [*places, *([] if base is None else [base])], strict=True)
        for (part, sign), there in counted:
            here = there >= 0  # what the base began with may have been given up since
            self.squares[there[here]] += sign * part.state.squares[here]
            self.trials += sign * part.state.trials
        np.maximum(self.squares, 0.0, out=self.squares)

    def fuse(
        self, votes: np.ndarray, trials: Trials, shape: np.ndarray, learn: bool, k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Make votes of the members' scores of trials, in place, and fuse them: predictions and scores."""
        predictions, table, bits = np.zeros(len(votes), np.int32), np.zeros((len(votes), k)), votes.view(np.int32)
        light, m = np.minimum(trials.weights, HEAVIEST_TRIAL), self.struct if learn else self.reader()
        fuse(m, votes, bits, trials.known, trials.labels, light, shape, learn, predictions, table)
        return predictions, table
