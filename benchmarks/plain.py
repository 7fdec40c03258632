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
HIGH = 1e100  # a weight beyond which all are scaled down

# The options of linmax's own kernels, so that only the programs differ.
OPTIONS = {"error_model": "numpy", "fastmath": {"contract", "nsz"}}
compiled = numba.njit(**OPTIONS)
written_out = numba.njit(**OPTIONS, forceinline=True)  # as calls they would count references, for 1.6 times as long


def pool() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The 31 basic rules: their kinds, and alpha or p."""
    alphas = [1.01, 1.03, 1.05, 1.07] + [1.1 + 0.05 * i for i in range(11)]
    norms = [2.0 + 0.5 * i for i in range(15)]
    kinds = [WINNOW] * len(alphas) + [PERCEPTRON] + [ALMA] * len(norms)
    return np.array(kinds), np.array([*alphas, 0.0, *norms])


@written_out
def add_scores(weights, choices, scores):  # type: ignore[no-untyped-def]
    """Add to ``scores`` the choices of an instance, each with its weight."""
    for i in range(choices.size):
        scores[choices[i]] += weights[i]


@written_out
def largest(scores, other_than):  # type: ignore[no-untyped-def]
    """The class with the largest score, the smallest of those that tie, leaving one out (-1: none)."""
    best = -1
    for c in range(scores.size - 1):
        if c != other_than and (best < 0 or scores[c] > scores[best]):
            best = c
    return best


@written_out
def predict(weights, choices, scores):  # type: ignore[no-untyped-def]
    """The class that the weights predict for an instance; its scores are left in ``scores``."""
    for c in range(scores.size):
        scores[c] = 0.0
    add_scores(weights, choices, scores)
    return largest(scores, -1)


@written_out
def winnow_step(alpha, weights, sums, choices, label, rival):  # type: ignore[no-untyped-def]
    """w <- w alpha^z; all weights, and their sums, are scaled down together before they leave the range of floats."""
    highest = 0.0
    for i in range(choices.size):
        if choices[i] == label:
            weights[i] *= alpha
            highest = max(highest, weights[i])
        elif choices[i] == rival:
            weights[i] /= alpha
    if highest > HIGH:
        for i in range(choices.size):
            weights[i] /= highest
            sums[i] /= highest


@written_out
def alma_step(p, weights, memory, count, choices, label, rival):  # type: ignore[no-untyped-def]
    """theta <- theta + sqrt(2) / sqrt((p-1) k) z / ||z||_p, into the unit ball; w = f^-1(theta)."""
    touched = 0
    for i in range(choices.size):
        if choices[i] == label or choices[i] == rival:
            touched += 1
    step = math.sqrt(2.0 / ((p - 1.0) * count)) / touched ** (1.0 / p)
    total = 0.0
    for i in range(choices.size):
        if choices[i] == label:
            memory[i] += step
        elif choices[i] == rival:
            memory[i] -= step
        size = abs(memory[i])
        weights[i] = math.copysign(size ** (p - 1.0), memory[i]) if size > 0.0 else 0.0
        total += abs(weights[i]) * size
    norm = total ** (1.0 / p)
    if norm == 0.0:
        return
    inside = max(1.0, norm)
    # f^-1 is homogeneous of degree one: dividing theta divides w.
    factor = 1.0 / (inside * norm ** (p - 2.0))
    for i in range(choices.size):
        memory[i] /= inside
        weights[i] *= factor


@written_out
def update(kind, value, weights, memory, sums, counts, b, choices, label, scores):  # type: ignore[no-untyped-def]
    """Show an instance, whose scores are known, to rule b; whether it updated."""
    rival = largest(scores, label)
    if scores[label] > scores[rival]:
        return False
    counts[b] += 1
    if kind == WINNOW:
        winnow_step(value, weights, sums, choices, label, rival)
    elif kind == ALMA:
        alma_step(value, weights, memory, counts[b], choices, label, rival)
    else:
        for i in range(choices.size):
            if choices[i] == label:
                weights[i] += 1.0
            elif choices[i] == rival:
                weights[i] -= 1.0
    return True


@compiled
def recycle(kind, value, weights, memory, sums, counts, b, choices, labels, begin, t, used, u, scores):  # type: ignore[no-untyped-def]
    """Passes over begin..t, oldest first, until one makes no update."""
    changed = True
    while changed:
        changed = False
        for q in range(begin, t + 1):
            if used[q] < u:
                predict(weights, choices[q], scores)
                if update(kind, value, weights, memory, sums, counts, b, choices[q], labels[q], scores):
                    used[q] += 1
                    changed = True


@compiled
def count_right(weights, choices, labels, begin, end, scores):  # type: ignore[no-untyped-def]
    """On how many of the instances begin..end the weights predict the label."""
    right = 0
    for t in range(begin, end):
        right += predict(weights, choices[t], scores) == labels[t]
    return right


@compiled
def copy_normalised(source, target):  # type: ignore[no-untyped-def]
    """``target`` = ``source`` at 2-norm 1."""
    square = 0.0
    for i in range(source.size):
        square += source[i] * source[i]
    inverse = 1.0 / math.sqrt(square) if square > 0.0 else 0.0
    for i in range(source.size):
        target[i] = inverse * source[i]


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
def play(kinds, values, choices, labels, k, s, u, h, w, r, d, predictions):  # type: ignore[no-untyped-def]
    """All trials, into ``predictions``. Algorithm a < rules is rule a recycled; rules + a is its average."""
    rules, trials = kinds.size, labels.size
    size = choices.shape[1]
    weights, memory, sums = np.zeros((rules, size)), np.zeros((rules, size)), np.zeros((rules, size))
    counts = np.zeros(rules, np.int64)
    used = np.zeros((rules, trials), np.int64)
    for b in range(rules):
        if kinds[b] == WINNOW:
            weights[b] = 1.0
            sums[b] = 1.0
    mistakes, changed = np.zeros(2 * rules, np.int64), np.ones(2 * rules, np.bool_)
    scores, total = np.zeros(k + 1), np.zeros(k + 1)  # the last is for those who abstain
    saved_weights, centres = np.zeros((h, size)), np.zeros(h, np.int64)
    current = np.zeros(size)
    saved, latest, tau, is_open = 0, 0, 0, False
    spacing, centre, wait = 1, 1, d
    voting, basic = 0, 0
    for t in range(trials):
        label, x = labels[t], choices[t]
        best = fewest(mistakes)
        # the vote
        hypothesis = weights[best] if best < rules else sums[best - rules]
        copy_normalised(hypothesis, current)
        own = predict(hypothesis, x, scores)
        for c in range(k):
            total[c] = 0.0
        add_scores(current, x, total)
        for slot in range(saved):
            add_scores(saved_weights[slot], x, total)
        voted = largest(total, -1)
        predictions[t] = voted if voting <= basic else own
        voting += voted != label
        basic += own != label
        # the algorithms
        for b in range(rules):
            mistakes[rules + b] += predict(sums[b], x, scores) != label
            mistakes[b] += predict(weights[b], x, scores) != label
            changed[b] = update(kinds[b], values[b], weights[b], memory[b], sums[b], counts, b, x, label, scores)
            if changed[b]:
                used[b, t] = 1
                begin = max(0, t + 1 - s)
                recycle(
                    kinds[b], values[b], weights[b], memory[b], sums[b], counts, b, choices, labels, begin, t, used[b],
                    u, scores,
                )  # fmt: skip
            for i in range(size):
                sums[b, i] += weights[b, i]
        # the saved hypotheses
        followed = fewest(mistakes)
        tau += 1
        half = int(min(float(w), spacing / 2.0) / 2.0)
        copy_normalised(weights[followed] if followed < rules else sums[followed - rules], current)
        if not is_open:
            if tau >= centre - half:
                latest = slot_to_fill(centres, saved, spacing)
                saved = max(saved, latest + 1)
                centres[latest] = centre
                saved_weights[latest] = current
                is_open = True
        elif followed != best or changed[followed]:
            first = max(0, t + 1 - r)
            if count_right(current, choices, labels, first, t + 1, scores) > count_right(
                saved_weights[latest], choices, labels, first, t + 1, scores
            ):
                saved_weights[latest] = current
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
    thresholds = np.tile(np.arange(k), (labels.size, 1))  # sub-experts that always name one class
    choices = np.concatenate([np.where(votes < 0, k, votes), thresholds], axis=1)
    play(kinds, values, choices, labels, k, 100, 5, 20, 100, 100, 100, predictions)
    return predictions
