"""The straight loop: one rule, no techniques. Every helper is written out in it, since a call costs more than it does.

`linmax.playing.play` does the same and more; both give the same bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import int64, njit

from linmax.contract import (
    GAUGE,
    HUGE,
    JIT,
    KNOWN,
    LARGEST,
    MASS,
    ON_TIES,
    OPTIONS,
    PEAK,
    REACH,
    SHIFT,
    TRIALS,
    UPDATES,
    Bytes,
    Instances,
    InstancesT,
    Labels,
    Members,
    MembersT,
    State,
    StateT,
    Vector,
    call_step,
    deferred,
    kernel,
)
from linmax.linear_max import TINY, difference, rescore, score
from linmax.member import Scratch, ScratchT, lay_out, rescale

__all__ = ["play_straight"]


OFTEN = 64  # weights looked at for each trial, after all trials


def written_out(helper: Any) -> Any:
    """A helper that is elsewhere called, here written out; not cached by itself, for its code is in its caller."""
    return (
        njit(forceinline=True, no_cpython_wrapper=True, **(OPTIONS | {"_nrt": False}))(helper.py_func)
        if JIT
        else helper
    )


score_here, difference_here = written_out(score), written_out(difference)


@kernel(hot=True)
def best_but(scores: np.ndarray, label: int, known: int, largest: int) -> int:
    """The best class other than the label, -1 when there is none; without branches, which would be mispredicted."""
    best, place = -np.inf, -1
    for j in range(known):
        value = scores[j]
        better = (value > best or (largest and value == best) or place < 0) and j != label
        best = value if better else best
        place = j if better else place
    return place


@deferred(int64(MembersT, StateT, ScratchT, InstancesT, Labels, Labels, Bytes, Vector))
def play_straight(
    members: Members,
    state: State,
    room: Scratch,
    instances: Instances,
    labels: np.ndarray,
    predictions: np.ndarray,
    changes: np.ndarray,
    margins: np.ndarray,
) -> int:
    """Play all trials. Returns -1, or the trial at which the weights left the range of floats."""
    step, spread = members.steps[0], members.spreads[0]
    shape, weights, memory = state.shape, state.weights[0], state.memory[0]
    scalars, params, counts = state.scalars[0], members.params[0], state.counts[0]
    scores, support, z = room.scores, room.support, room.z
    for t in range(labels.size):
        label = labels[t]
        score_here(instances, t, shape, weights, scores)
        rival = best_but(scores, label, shape[KNOWN], shape[LARGEST])
        new = label >= shape[KNOWN]
        if spread != 0 and rival >= 0 and abs(scores[rival]) < TINY and (new or scores[label] < TINY):
            rescore(instances, t, shape, spread, memory, scalars, params, support, z, scores)
            rival = best_but(scores, label, shape[KNOWN], shape[LARGEST])
        first = rival
        if not new and (rival < 0 or scores[label] > scores[rival]):
            first = label
        elif not new and scores[label] == scores[rival]:
            first = max(label, rival) if shape[LARGEST] else min(label, rival)
        predictions[t] = first
        counts[TRIALS] += 1
        if new:
            shape[KNOWN] = label + 1
        if rival < 0:
            if margins.size and not new:
                margins[t] = np.inf
            continue
        margin = (0.0 if new else scores[label]) - scores[rival]
        if not abs(margin) < np.inf:
            return t
        if margins.size and not new:
            margins[t] = margin * math.exp(scalars[SHIFT] + scalars[GAUGE])
        if not new and (margin > scalars[REACH] or (first == label and not shape[ON_TIES] and margin <= 0.0)):
            continue
        if spread != 0 and margin > 0.0 and not new and abs(scores[rival]) < TINY:  # a thick rule updates: which rival?
            rescore(instances, t, shape, spread, memory, scalars, params, support, z, scores)
            rival = best_but(scores, label, shape[KNOWN], shape[LARGEST])
            margin = scores[label] - scores[rival]
        count = difference_here(instances, t, shape, -1 if new else label, rival, support, z)
        if not call_step(step, weights, memory, scalars, support[:count], z[:count], margin, params):
            continue
        changes[t] = 1
        counts[UPDATES] += 1
        if spread != 0:
            largest = 0.0
            for place in range(count):
                largest = max(largest, abs(weights[support[place]]))
            if not largest < HUGE or (scalars[MASS] < 1.0 / HUGE and scalars[PEAK] > 0.0):
                rescale(lay_out(members, state, 0, 0))
    if spread == 0 and weights.size <= OFTEN * labels.size:  # weights that went out of range and were not met again
        for i in range(weights.size):
            if not abs(weights[i]) < np.inf:
                return labels.size - 1
    return -1
