"""How many are silent: where many voters have nothing to say, some are worth more than elsewhere, and others less.

Let s be how many of those who have spoken before are silent in a trial, and m and d its mean and deviation so far. Each
voter has a second weight, which its vote counts with

    SILENCE_UNIT * (s - m) / d, but at most FARTHEST deviations,

so that its trust is a line in s. The unit is small, so that it takes some hundred labels to learn such weights; and as
long as s was always the same there is nothing to learn, and nothing is worked out. Negated voters and copies by side
columns have no such weight.
"""

from __future__ import annotations

import math

import numpy as np

from linmax.core.contract import Instances
from linmax.jit.compiling import kernel
from linmax.learners.softmax_trials import Store
from linmax.learners.votes.trial import VOTERS

__all__ = ["count_silent", "note_silence", "silence_rating", "silence_varies", "write_silence"]

SILENCE_UNIT = 0.25  # rating of a vote one deviation from the mean: it is learned a sixteenth as fast as a voter
FARTHEST = 2.0  # deviations

ROWS, SUM, SQUARES = range(3)  # of `silence`: trials, and of the numbers of silent voters the sum and that of squares


@kernel()
def count_silent(instances: Instances, t: int, seen: np.ndarray) -> int:
    """How many voters who have spoken before are silent in trial t."""
    count = 0
    for i in range(instances.signs.size):
        if instances.votes[t, i] < 0 and seen[VOTERS + i] == 1:
            count += 1
    return count


@kernel()
def silence_varies(silence: np.ndarray) -> bool:
    """Whether it was not always the same number that was silent; exact, for these are sums of whole numbers."""
    return silence[ROWS] * silence[SQUARES] > silence[SUM] * silence[SUM]


@kernel()
def silence_rating(silence: np.ndarray, count: int) -> float:
    """What a vote counts, with its second weight, where so many are silent."""
    mean = silence[SUM] / silence[ROWS]
    deviation = math.sqrt(silence[ROWS] * silence[SQUARES] - silence[SUM] * silence[SUM]) / silence[ROWS]
    return SILENCE_UNIT * max(-FARTHEST, min(FARTHEST, (count - mean) / deviation))


@kernel()
def write_silence(
    silence: np.ndarray, seen: np.ndarray, instances: Instances, t: int, known: int, first: int, store: Store, at: int
) -> int:
    """Write the votes once more, by how many are silent, as ratings of the places from ``first`` on.

    They are written from ``at`` on; returns where they end. ``first`` is the number of all coordinates if there are no
    such places.
    """
    if first == seen.size or not silence_varies(silence):
        return at
    value = silence_rating(silence, count_silent(instances, t, seen))
    for i in range(instances.signs.size):
        vote = instances.votes[t, i]
        if 0 <= vote < known and instances.signs[i] == 1.0:
            store.places[at], store.of[at], store.values[at] = first + i, vote, value
            at += 1
    return at


@kernel()
def note_silence(silence: np.ndarray, seen: np.ndarray, instances: Instances, t: int) -> bool:
    """Count one trial; returns whether the number of silent voters differs for the first time."""
    count, before = float(count_silent(instances, t, seen)), silence_varies(silence)
    silence[ROWS] += 1.0
    silence[SUM] += count
    silence[SQUARES] += count * count
    return silence_varies(silence) and not before
