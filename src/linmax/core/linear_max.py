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
from numba import int64

from linmax.core.contract import EXPERTS, LARGEST, STRIDE, Indices, RunningTrials, call_spread
from linmax.jit.compiling import kernel
from linmax.jit.panels import lowest_bit
from linmax.jit.scores import sum_dense, sum_rows

__all__ = ["TIED", "difference", "log_sum", "longest_row", "score", "top_two"]

TIED = 1e-12  # a sum of terms below this share of their magnitudes is 0 up to rounding, and the classes tie
TINY = 1e-140  # scores below this may have lost digits to underflow
LOWEST = -300.0  # a stored weight whose logarithm is above this has all its digits, and so has a sum that it is part of
MANY_ROWS = 65_536  # rows from which on a compiled loop is worth while
FAINT, SPECK = 1e-290, 1e-300  # scores below the first are replaced by multiples of the second


def longest_row(starts: np.ndarray) -> int:
    """Most sparse attributes of an instance, given where rows start and end; 0 without any."""
    if starts.size <= 2:
        return int(starts[1] - starts[0]) if starts.size == 2 else 0
    if starts.size < MANY_ROWS:
        return int((starts[1:] - starts[:-1]).max(initial=0))
    return int(longest_of_many(starts))


@kernel(int64(Indices))
def longest_of_many(starts: np.ndarray) -> int:
    """`longest_row`, for enough rows that a compiled loop pays."""
    longest, ends = 0, starts[1:]
    for t in range(ends.size):
        longest = max(longest, ends[t] - starts[t])
    return longest


@kernel()
def score_experts(trials: RunningTrials, t: int, weights: np.ndarray, scores: np.ndarray) -> None:
    """The part of `score` that is not attributes: voters, raters, thresholds."""
    scores[:] = 0.0
    signs, votes, rated, constant = trials.signs, trials.votes, trials.scores, trials.constant
    voters, base = signs.size, trials.shape[EXPERTS]
    for i in range(voters):
        vote = votes[t, i]
        if vote >= 0:
            scores[vote] += weights[i] * signs[i]
    for i in range(rated.shape[1]):
        weight = weights[voters + i]
        for c in range(rated.shape[2]):
            scores[c] += weight * rated[t, i, c]
    if constant != 0.0:
        for c in range(trials.shape[STRIDE]):
            scores[c] += constant * weights[base + c]


@kernel()
def score(trials: RunningTrials, t: int, weights: np.ndarray, scores: np.ndarray) -> None:
    """zeta(j) of instance t for every class j, into ``scores`` (the stride, rounded up to whole vectors of 8)."""
    stride, base, constant = trials.shape[STRIDE], trials.shape[EXPERTS], trials.constant
    dense, indptr = trials.dense, trials.indptr
    row, start, factor = base + stride, scores, 1.0
    if base == 0 and (dense.shape[1] > 0 or indptr.size > 0):
        start, factor = weights, constant  # attributes alone start at the constant's row
    else:
        score_experts(trials, t, weights, scores)
    if dense.shape[1]:
        sum_dense(scores, start, 0, factor, weights, row, stride, dense[t])
        row, start, factor = row + dense.shape[1] * stride, scores, 1.0
    if indptr.size:
        rows, values, lo, hi = trials.indices, trials.values, indptr[t], indptr[t + 1]
        sum_rows(scores, start, 0, factor, weights, row, stride, rows, values, lo, hi)


@kernel()
def top_two(scores: np.ndarray, known: int, shape: np.ndarray) -> tuple[int, int]:
    """lambda_1 and lambda_2 among the known classes; of tied classes the smallest comes first (or the largest)."""
    first, second = -1, -1
    for place in range(known):
        j = known - 1 - place if shape[LARGEST] else place
        if first < 0 or scores[j] > scores[first]:
            first, second = j, first
        elif second < 0 or scores[j] > scores[second]:
            second = j
    return first, second


@kernel()
def put(index: np.ndarray, z: np.ndarray, count: int, row: int, label: int, rival: int, value: float) -> int:
    """An attribute's part of z: ``value`` for the label and ``-value`` for the rival, the smaller class first."""
    low, high = min(label, rival), max(label, rival)
    if low >= 0:
        index[count] = row + low
        z[count] = value if low == label else -value
        count += 1
    if high >= 0:
        index[count] = row + high
        z[count] = value if high == label else -value
        count += 1
    return count


@kernel()
def nonzero(values: np.ndarray) -> int:
    """Bits of those of at most 64 values that are not 0: zeros are hard to predict for branches."""
    bits = 0
    for j in range(values.size):
        bits |= int(values[j] != 0.0) << j
    return bits


@kernel()
def difference(trials: RunningTrials, t: int, label: int, rival: int, index: np.ndarray, z: np.ndarray) -> int:
    """z = x^label - x^rival on its support, coordinates in order; returns its size.

    A class of -1 rates everything 0 (not yet known).
    """
    count = 0
    signs, votes, rated = trials.signs, trials.votes, trials.scores
    voters = signs.size
    for i in range(voters):
        vote = votes[t, i]
        if vote >= 0 and (vote == label or vote == rival):
            index[count] = i
            z[count] = signs[i] if vote == label else -signs[i]
            count += 1
    for i in range(rated.shape[1]):
        value = 0.0
        if label >= 0:
            value += rated[t, i, label]
        if rival >= 0:
            value -= rated[t, i, rival]
        if value != 0.0:
            index[count] = voters + i
            z[count] = value
            count += 1
    row, stride = trials.shape[EXPERTS], trials.shape[STRIDE]
    if trials.constant != 0.0:
        count = put(index, z, count, row, label, rival, trials.constant)
    row += stride
    dense, indptr = trials.dense, trials.indptr
    width, lo, hi = dense.shape[1], 0, 0
    if indptr.size:
        lo, hi = indptr[t], indptr[t + 1]
    rows, values = trials.indices[lo:hi], trials.values[lo:hi]
    low, high = min(label, rival), max(label, rival)
    if low < 0:
        for f in range(width):
            if dense[t, f] != 0.0:
                count = put(index, z, count, row + f * stride, label, rival, dense[t, f])
        for j in range(rows.size):
            count = put(index, z, count, row + (width + rows[j]) * stride, label, rival, values[j])
        return count
    sign, given, place = 1.0 if low == label else -1.0, dense[t], np.uint64(count)  # unsigned: no wraparound check
    for begin in range(0, width, 64):
        bits = nonzero(given[begin : begin + 64])
        while bits != 0:
            column = np.uint64(begin + lowest_bit(bits))
            at, value = row + np.int64(column) * stride, sign * given[column]
            index[place], index[place + np.uint64(1)] = at + low, at + high
            z[place], z[place + np.uint64(1)] = value, -value
            place += np.uint64(2)
            bits &= bits - 1
    row, count = row + width * stride, int(np.int64(place))
    places, parts = index[count : count + 2 * rows.size], z[count : count + 2 * rows.size]
    for j in range(rows.size):
        first, second = np.uint64(2 * j), np.uint64(2 * j + 1)
        at, value = row + rows[j] * stride, sign * values[j]
        places[first], places[second] = at + low, at + high
        parts[first], parts[second] = value, -value
    return count + 2 * rows.size


@kernel()
def log_sum(
    spread: int, memory: np.ndarray, scalars: np.ndarray, params: np.ndarray, index: np.ndarray, x: np.ndarray
) -> tuple[float, float]:
    """w.x as (total, log) with w.x = total * exp(log); log is that of the largest weight, -inf without any."""
    largest = -np.inf
    for place in range(index.size):
        factor, log = call_spread(spread, memory, scalars, index[place], params)
        if factor != 0.0 and x[place] != 0.0:
            largest = max(largest, log + math.log(abs(factor)))
    if largest == -np.inf:
        return 0.0, largest
    total = 0.0
    for place in range(index.size):
        factor, log = call_spread(spread, memory, scalars, index[place], params)
        if factor != 0.0 and x[place] != 0.0:
            total += x[place] * factor * math.exp(log - largest)
    return total, largest


@kernel()
def smaller(a: float, log_a: float, b: float, log_b: float) -> bool:
    """|a| exp(log_a) < |b| exp(log_b), for a and b that are not 0."""
    if abs(log_a - log_b) > 600.0:
        return log_a < log_b
    return abs(a) * math.exp(log_a - log_b) < abs(b)
