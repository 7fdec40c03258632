"""Trials of which some have no label, for learners that need one."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from linmax.core.contract import NO_LABEL, Trials
from linmax.data.arrays import cut
from linmax.engine.outcome import Outcome

if TYPE_CHECKING:
    from linmax.engine.engine import Engine

__all__ = ["play_around_gaps"]


def play_around_gaps(engine: Engine, trials: Trials, outcome: Outcome) -> None:
    """Play the stretches with labels, and watch those without."""
    gaps = trials.labels == NO_LABEL
    size, scored = trials.size, 0 if outcome.scores is None else len(outcome.scores)
    edges = [0, *(np.flatnonzero(np.diff(gaps.astype(np.int8))) + 1).tolist(), size]
    for first, last in pairwise(edges):
        part, late = cut(trials, first, last), min(last - first, max(0, last - (size - scored)))
        scores: np.ndarray | None
        if gaps[first]:
            predictions, scores = engine.top.watch(engine, part)
        else:
            played = engine.run(part, outcome.margins is not None, late)
            predictions, scores = played.predictions, played.scores
            outcome.changed[first:last] = played.changed
            if outcome.margins is not None:
                outcome.margins[first:last] = played.margins
        outcome.predictions[first:last] = predictions
        if outcome.scores is not None and scores is not None and late:
            end = last - (size - scored)
            outcome.scores[end - late : end] = scores[len(scores) - late :]
