"""The linear-max transformation: any linear-threshold rule becomes a multi-class rule over sub-experts.

With sub-experts x_1..x_n, each rating every class, the vote for class j is zeta(j) = sum_i w_i x_i^j. Predict the
largest; let the rival A be the best class other than the label rho; give the rule z = x^rho - x^A with label +1.
The rule's mistake bound carries over (Mesterharm 2001, sections 2 to 5).

An attribute a is k sub-experts "vote a for class c" and stored as a row of a linear machine; the constant attribute
is the k threshold sub-experts.
"""

from __future__ import annotations

import math

import numpy as np

from linmax.contract import EXPERTS, KNOWN, LARGEST, STRIDE, Instances, call_spread, kernel
from linmax.simd import add_dense, add_rows

__all__ = ["difference", "rescore", "score", "top_two"]

TINY = 1e-140  # scores below this may have lost digits to underflow


@kernel()
def score(instances: Instances, t: int, shape: np.ndarray, weights: np.ndarray, scores: np.ndarray) -> None:
    """zeta(j) of instance t for every class j, into ``scores`` (as long as the stride)."""
    stride = shape[STRIDE]
    scores[:] = 0.0
    voters = instances.signs.size
    for i in range(voters):
        vote = instances.votes[t, i]
        if vote >= 0:
            scores[vote] += weights[i] * instances.signs[i]
    raters = instances.scores.shape[1]
    for i in range(raters):
        weight = weights[voters + i]
        for c in range(instances.scores.shape[2]):
            scores[c] += weight * instances.scores[t, i, c]
    base = shape[EXPERTS]
    if instances.constant != 0.0:
        for c in range(stride):
            scores[c] += instances.constant * weights[base + c]
    dense = instances.dense.shape[1]
    if dense:
        add_dense(scores, weights, base + stride, stride, instances.dense[t])
    if instances.indptr.size:
        start = base + (1 + dense) * stride
        add_rows(
            scores, weights, start, stride, instances.indices, instances.values, instances.indptr[t], instances.indptr[t + 1]
        )


@kernel()
def top_two(scores: np.ndarray, shape: np.ndarray) -> tuple[int, int]:
    """lambda_1 and lambda_2 among the known classes; of tied classes the smallest comes first (or the largest)."""
    first, second = -1, -1
    known = shape[KNOWN]
    for place in range(known):
        j = known - 1 - place if shape[LARGEST] else place
        if first < 0 or scores[j] > scores[first]:
            first, second = j, first
        elif second < 0 or scores[j] > scores[second]:
            second = j
    return first, second


@kernel()
def difference(
    instances: Instances, t: int, shape: np.ndarray, label: int, rival: int, index: np.ndarray, z: np.ndarray
) -> int:
    """z = x^label - x^rival on its support; returns its size. A class of -1 rates everything 0 (not yet known)."""
    count = 0
    voters = instances.signs.size
    for i in range(voters):
        vote = instances.votes[t, i]
        if vote >= 0 and (vote == label or vote == rival):
            index[count] = i
            z[count] = instances.signs[i] if vote == label else -instances.signs[i]
            count += 1
    for i in range(instances.scores.shape[1]):
        value = 0.0
        if label >= 0:
            value += instances.scores[t, i, label]
        if rival >= 0:
            value -= instances.scores[t, i, rival]
        if value != 0.0:
            index[count] = voters + i
            z[count] = value
            count += 1
    stride = shape[STRIDE]
    base = shape[EXPERTS]
    dense = instances.dense.shape[1]
    for side in range(2):
        cls = rival if side else label
        if cls < 0:
            continue
        sign = -1.0 if side else 1.0
        if instances.constant != 0.0:
            index[count] = base + cls
            z[count] = sign * instances.constant
            count += 1
        start = base + stride + cls
        for f in range(dense):
            value = instances.dense[t, f]
            if value != 0.0:
                index[count] = start + f * stride
                z[count] = sign * value
                count += 1
        if instances.indptr.size:
            start += dense * stride
            for place in range(instances.indptr[t], instances.indptr[t + 1]):
                index[count] = start + instances.indices[place] * stride
                z[count] = sign * instances.values[place]
                count += 1
    return count


@kernel()
def rescore(
    instances: Instances,
    t: int,
    shape: np.ndarray,
    spread: int,
    memory: np.ndarray,
    scalars: np.ndarray,
    params: np.ndarray,
    index: np.ndarray,
    z: np.ndarray,
    scores: np.ndarray,
) -> None:
    """`score` from the weights' logarithms, scaled by the largest one in this instance.

    Where all stored weights of an instance are too small to hold (others have grown by hundreds of orders of
    magnitude) the plain scores are all zero and would tie; the logarithms still tell the classes apart. The scores
    keep their order, not their scale.
    """
    known = shape[KNOWN]
    largest = -np.inf
    for j in range(known):
        count = difference(instances, t, shape, j, -1, index, z)
        for place in range(count):
            factor, log = call_spread(spread, memory, scalars, index[place], params)
            if factor != 0.0 and log > largest:
                largest = log
    scores[:] = 0.0
    if largest == -np.inf:
        return
    for j in range(known):
        count = difference(instances, t, shape, j, -1, index, z)
        for place in range(count):
            factor, log = call_spread(spread, memory, scalars, index[place], params)
            scores[j] += z[place] * factor * math.exp(log - largest)
