"""A member of the pool that corrects a logit by a weight for each juror, each vote and each class.

With o_c the logarithms of the probabilities of a logit that sees the evidence of each vote, and v_i the vote of
juror i,

    P(c) = exp(o_c + sum_i w_i(v_i, c)) / sum_j exp(o_j + sum_i w_i(v_i, j)).

That is logistic regression on a column for each juror and class, the strength of stacking where labels suffice, begun
where counts lead. Each weight has a Gaussian prior of precision `RIDGE` about 0 and keeps the diagonal of its
precision. A trial takes one Newton step with these diagonals and its own curvature, by class: with g and h the slope
and the curvature of the log loss along the score of class c, and p_i the precisions of the weights that add to it, each
weight moves by (g / p_i) / (1 + h sum_j 1 / p_j), so that jurors who agree are not all corrected for the same mistake.

What was learned adds up: precisions, and pulls, which are weights times precisions.
"""

from __future__ import annotations

import math

import numpy as np

from linmax.jit.compiling import kernel
from linmax.learners.base import Arrays, Field
from linmax.learners.second_order import to_shares
from linmax.learners.votes.evidence import vote_of
from linmax.learners.votes.logits import LEAST_SEEN

__all__ = ["CORRECTION_FIELDS", "learn_corrections", "predict_corrected"]

RIDGE = 10.0

CORRECTION_FIELDS = {  # of each juror, vote and class
    "pulls": Field(("counted", "class", "class"), merge="signed"),
    "bends": Field(("counted", "class", "class")),  # precisions, without that of the prior
}


@kernel()
def predict_corrected(pool: Arrays, known: int, logit: int, shares: np.ndarray) -> None:
    """Write the corrected probabilities of a logit; its own where nothing is counted by class."""
    scores = pool.scores
    for c in range(known):
        shares[c] = pool.own[logit, c]
        scores[c] = math.log(max(LEAST_SEEN, shares[c]))
    if not pool.pulls.size:
        return
    for i in range(pool.row.size):
        vote = vote_of(pool, known, i)
        if vote >= 0:
            pulls, bends = pool.pulls[i, vote], pool.bends[i, vote]
            for c in range(known):
                scores[c] += pulls[c] / (RIDGE + bends[c])
    to_shares(scores, known, shares)


@kernel()
def learn_corrections(pool: Arrays, known: int, shares: np.ndarray) -> None:
    """Learn a trial, of which ``shares`` are the corrected probabilities."""
    if not pool.pulls.size:
        return
    scale, softness = pool.scale[0], pool.scores
    for c in range(known):
        softness[c] = 0.0
    for i in range(pool.row.size):
        vote = vote_of(pool, known, i)
        if vote >= 0:
            for c in range(known):
                softness[c] += 1.0 / (RIDGE + pool.bends[i, vote, c])
    for i in range(pool.row.size):
        vote = vote_of(pool, known, i)
        if vote < 0:
            continue
        pulls, bends = pool.pulls[i, vote], pool.bends[i, vote]
        for c in range(known):
            curvature, precision = scale * shares[c] * (1.0 - shares[c]), RIDGE + bends[c]
            step = scale * (pool.target[c] - shares[c]) / (1.0 + curvature * softness[c])
            pulls[c] = (pulls[c] + step) / precision * (precision + curvature)
            bends[c] += curvature
