"""VR-Combine read straight from its description, trial by trial: what a careful programmer would compile first.

Votes only (one class index a voter, -1 = abstains) with one threshold sub-expert a class. No score is remembered,
averages are summed every trial, recycling looks at every instance it may use. It shares no code with linmax.

Mesterharm and Hsu, "Combinatorial fusion with on-line learning algorithms", sections IV to VII; the hypotheses vote
with their raw scores at 2-norm 1, and the algorithm with the fewest mistakes is followed.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

WINNOW, PERCEPTRON, ALMA = 0, 1, 2
HIGH = 200.0  # logarithm of a weight beyond which all are scaled down

# The options of linmax's own kernels, so that only the programs differ.
compiled = numba.njit(error_model="numpy", fastmath={"contract", "nsz"})


def pool() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The 31 basic rules: their kinds, and alpha or p."""
    alphas = [1.01, 1.03, 1.05, 1.07] + [1.1 + 0.05 * i for i in range(11)]
    norms = [2.0 + 0.5 * i for i in range(15)]
    kinds = [WINNOW] * len(alphas) + [PERCEPTRON] + [ALMA] * len(norms)
    return np.array(kinds), np.array([*alphas, 0.0, *norms])


@compiled
def add_scores(weights, row, votes, t, k, scores):  # type: ignore[no-untyped-def]
    """Add to ``scores`` the votes of instance t weighted by ``weights[row]``."""
    voters = votes.shape[1]
    for i in range(voters):
        if votes[t, i] >= 0:
            scores[votes[t, i]] += weights[row, i]
    for c in range(k):
        scores[c] += weights[row, voters + c]


@compiled
def largest(scores, k, other_than):  # type: ignore[no-untyped-def]
    """The class with the largest score, the smallest of those that tie, leaving one out (-1: none)."""
    best = -1
    for c in range(k):
        if c != other_than and (best < 0 or scores[c] > scores[best]):
            best = c
    return best


@compiled
def predict(weights, row, votes, t, k, scores):  # type: ignore[no-untyped-def]
    """The class that ``weights[row]`` predict for instance t; its scores are left in ``scores``."""
    for c in range(k):
        scores[c] = 0.0
    add_scores(weights, row, votes, t, k, scores)
    return largest(scores, k, -1)


@compiled
def fill_z(votes, t, k, label, rival, z):  # type: ignore[no-untyped-def]
    """z = x^label - x^rival."""
    voters = votes.shape[1]
    for i in range(voters):
        z[i] = 1.0 if votes[t, i] == label else (-1.0 if votes[t, i] == rival else 0.0)
    for c in range(k):
        z[voters + c] = 1.0 if c == label else (-1.0 if c == rival else 0.0)


@compiled
def winnow_step(b, alpha, weights, memory, shift, sums, z):  # type: ignore[no-untyped-def]
    """s <- s + z, w = exp(s ln(alpha) - shift); the shift rises with the weights, the sum of weights goes along."""
    rate, highest = math.log(alpha), 0.0
    for i in range(z.size):
        if z[i] != 0.0:
            memory[b, i] += z[i]
            logarithm = rate * memory[b, i] - shift[b]
            weights[b, i] = math.exp(logarithm)
            highest = max(highest, logarithm)
    if highest > HIGH:
        for i in range(z.size):
            weights[b, i] = math.exp(rate * memory[b, i] - shift[b] - highest)
            sums[b, i] *= math.exp(-highest)
        shift[b] += highest


@compiled
def alma_step(b, p, weights, memory, count, z):  # type: ignore[no-untyped-def]
    """theta <- theta + sqrt(2) / sqrt((p-1) k) z / ||z||_p, into the unit ball; w = f^-1(theta)."""
    touched = 0
    for i in range(z.size):
        if z[i] != 0.0:
            touched += 1
    step = math.sqrt(2.0 / ((p - 1.0) * count)) / touched ** (1.0 / p)
    total = 0.0
    for i in range(z.size):
        memory[b, i] += step * z[i]
        size = abs(memory[b, i])
        if size > 0.0:
            weights[b, i] = math.copysign(size ** (p - 1.0), memory[b, i])
            total += abs(weights[b, i]) * size
        else:
            weights[b, i] = 0.0
    norm = total ** (1.0 / p)
    if norm == 0.0:
        return
    inside = max(1.0, norm)
    # f^-1 is homogeneous of degree one: dividing theta divides w.
    for i in range(z.size):
        memory[b, i] /= inside
        weights[b, i] /= inside * norm ** (p - 2.0)


@compiled
def update(b, kinds, values, weights, memory, shift, sums, counts, votes, labels, t, k, scores, z):  # type: ignore[no-untyped-def]
    """Show instance t to rule b; whether it updated."""
    predict(weights, b, votes, t, k, scores)
    label = labels[t]
    rival = largest(scores, k, label)
    if scores[label] > scores[rival]:
        return False
    fill_z(votes, t, k, label, rival, z)
    counts[b] += 1
    if kinds[b] == WINNOW:
        winnow_step(b, values[b], weights, memory, shift, sums, z)
    elif kinds[b] == ALMA:
        alma_step(b, values[b], weights, memory, counts[b], z)
    else:
        for i in range(z.size):
            weights[b, i] += z[i]
    return True


@compiled
def recycle(b, kinds, values, weights, memory, shift, sums, counts, votes, labels, begin, t, k, used, u, scores, z):  # type: ignore[no-untyped-def]
    """Passes over begin..t, oldest first, until one makes no update."""
    changed = True
    while changed:
        changed = False
        for q in range(begin, t + 1):
            if used[b, q] < u and update(
                b, kinds, values, weights, memory, shift, sums, counts, votes, labels, q, k, scores, z
            ):
                used[b, q] += 1
                changed = True


@compiled
def count_right(weights, row, votes, labels, begin, end, k, scores):  # type: ignore[no-untyped-def]
    """On how many of the instances begin..end ``weights[row]`` predict the label."""
    right = 0
    for t in range(begin, end):
        right += predict(weights, row, votes, t, k, scores) == labels[t]
    return right


@compiled
def copy_normalised(source, row, target, place):  # type: ignore[no-untyped-def]
    """``target[place]`` = ``source[row]`` at 2-norm 1."""
    square = 0.0
    for i in range(source.shape[1]):
        square += source[row, i] * source[row, i]
    inverse = 1.0 / math.sqrt(square) if square > 0.0 else 0.0
    for i in range(source.shape[1]):
        target[place, i] = inverse * source[row, i]


@compiled
def fewest(mistakes):  # type: ignore[no-untyped-def]
    """The algorithm with the fewest mistakes, the first of those that tie."""
    best = 0
    for a in range(mistakes.size):
        if mistakes[a] < mistakes[best]:
            best = a
    return best


@compiled
def slot_to_fill(centres, saved, spacing):  # type: ignore[no-untyped-def]
    """A free slot, or that of the oldest hypothesis at an odd multiple of half the spacing."""
    if saved < centres.size:
        return saved
    oldest = -1
    for slot in range(saved):
        if centres[slot] % spacing == spacing // 2 and (oldest < 0 or centres[slot] < centres[oldest]):
            oldest = slot
    return oldest


@compiled
def play(kinds, values, votes, labels, k, s, u, h, w, r, d, predictions):  # type: ignore[no-untyped-def]
    """All trials, into ``predictions``. Algorithm a < rules is rule a recycled; rules + a is its average."""
    rules, trials = kinds.size, labels.size
    size = votes.shape[1] + k
    weights, memory, sums = np.zeros((rules, size)), np.zeros((rules, size)), np.zeros((rules, size))
    shift, counts = np.zeros(rules), np.zeros(rules, np.int64)
    used = np.zeros((rules, trials), np.int64)
    for b in range(rules):
        if kinds[b] == WINNOW:
            for i in range(size):
                weights[b, i] = 1.0
                sums[b, i] = 1.0
    mistakes, changed = np.zeros(2 * rules, np.int64), np.ones(2 * rules, np.bool_)
    scores, z = np.zeros(k), np.zeros(size)
    saved_weights, centres = np.zeros((h, size)), np.zeros(h, np.int64)
    current, total = np.zeros((1, size)), np.zeros(k)
    saved, latest, tau, is_open = 0, 0, 0, False
    spacing, centre, wait = 1, 1, d
    voting, basic = 0, 0
    for t in range(trials):
        label = labels[t]
        best = fewest(mistakes)
        # the vote
        if best < rules:
            copy_normalised(weights, best, current, 0)
            own = predict(weights, best, votes, t, k, scores)
        else:
            copy_normalised(sums, best - rules, current, 0)
            own = predict(sums, best - rules, votes, t, k, scores)
        for c in range(k):
            total[c] = 0.0
        add_scores(current, 0, votes, t, k, total)
        for slot in range(saved):
            add_scores(saved_weights, slot, votes, t, k, total)
        voted = largest(total, k, -1)
        predictions[t] = voted if voting <= basic else own
        voting += voted != label
        basic += own != label
        # the algorithms
        for b in range(rules):
            mistakes[b] += predict(weights, b, votes, t, k, scores) != label
            mistakes[rules + b] += predict(sums, b, votes, t, k, scores) != label
            changed[b] = update(b, kinds, values, weights, memory, shift, sums, counts, votes, labels, t, k, scores, z)
            if changed[b]:
                used[b, t] = 1
                begin = max(0, t + 1 - s)
                recycle(
                    b, kinds, values, weights, memory, shift, sums, counts, votes, labels, begin, t, k, used, u,
                    scores, z,
                )  # fmt: skip
            for i in range(size):
                sums[b, i] += weights[b, i]
        # the saved hypotheses
        followed = fewest(mistakes)
        tau += 1
        half = int(min(float(w), spacing / 2.0) / 2.0)
        if followed < rules:
            copy_normalised(weights, followed, current, 0)
        else:
            copy_normalised(sums, followed - rules, current, 0)
        if not is_open:
            if tau >= centre - half:
                latest = slot_to_fill(centres, saved, spacing)
                saved = max(saved, latest + 1)
                centres[latest] = centre
                saved_weights[latest] = current[0]
                is_open = True
        elif followed != best or changed[followed]:
            first = max(0, t + 1 - r)
            if count_right(current, 0, votes, labels, first, t + 1, k, scores) > count_right(
                saved_weights, latest, votes, labels, first, t + 1, k, scores
            ):
                saved_weights[latest] = current[0]
        if is_open and tau >= centre + half:
            is_open = False
            if centre == h * spacing:
                spacing *= 2
                centre = (h // 2 + 1) * spacing
            else:
                centre += spacing
        if tau >= wait and basic < voting:
            saved, tau, voting, basic, is_open = 0, 0, 0, 0, False
            spacing, centre = 1, 1
            wait *= 2


def vr_combine(votes: NDArray[np.int64], labels: NDArray[np.int64], k: int) -> NDArray[Any]:
    """Predictions of VR-Combine over the 62 algorithms: s = 100, u = 5, h = 20, w = r = d = 100."""
    kinds, values = pool()
    predictions = np.zeros(labels.size, np.int64)
    play(kinds, values, votes, labels, k, 100, 5, 20, 100, 100, 100, predictions)
    return predictions
