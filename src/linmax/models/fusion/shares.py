"""What the weights of a fusion's columns mean for its voters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.data.experts import experts

if TYPE_CHECKING:
    from linmax.models.experts_model import ExpertsModel
    from linmax.models.fusion.state import FusionState

__all__ = ["shares", "shares_by", "unit", "voter_of", "voter_weights"]


def unit(state: FusionState, model: ExpertsModel | None = None) -> tuple[float, float]:
    """Magnitude of the voters' weights, and how many times as large the model's scores are as w.x.

    The machine gives scores up to one positive factor. It shows when one voter, the heaviest, speaks alone. Of a
    learner that only resembles w.x, such as a mixture, it is 1. With ``model``, one of the few, in its unit.
    """
    own = state.model if model is None else model
    weights, k = own.weights.arrays, len(own.classes)
    columns = np.concatenate([weights.voters, weights.raters])
    heaviest = int(np.abs(columns).argmax())
    total = float(np.abs(_of_voters(state, columns) if own is state.model else columns).sum())
    if total == 0.0 or k < 2:
        return 1.0, 1.0
    if not own.engine.top.linear:
        return total, 1.0
    ratings = np.zeros((2, len(columns), k))
    ratings[1, heaviest, 0] = 1.0
    layout = own.layout
    blocks: dict[str, Any] = {"scores": ratings}
    if layout.voters:
        blocks = {"votes": np.where(ratings[:, :, 0] > 0.0, 0, -1), "abstain": -1}
    probe = experts(**blocks, classes=range(k), thresholds=bool(layout.constant))
    silent, alone = own.scores(replace(probe, names=tuple(own.classes)))
    return total, float(((alone - silent)[0] - (alone - silent)[1]) / columns[heaviest])


def shares(state: FusionState) -> np.ndarray:
    """(voters, copies) weights that add up to 1 in magnitude, or are all 0."""
    weights = state.model.weights.arrays
    table = _of_voters(state, np.concatenate([weights.voters, weights.raters]))
    total = np.abs(table).sum()
    return table / total if total > 0.0 else table


def _of_voters(state: FusionState, columns: np.ndarray) -> np.ndarray:
    """Weights of the columns as (voters, copies); with side columns the mean weight of each voter."""
    if state.sides.names:
        return state.sides.mean_weights(columns, state.tally.trials)[:, None]
    return columns.reshape(len(state.voters), state.copies)


def shares_by(state: FusionState) -> dict[str, np.ndarray]:
    """For each value of the side columns the voters' weights, in the unit of `shares`."""
    columns = state.model.weights.arrays.voters
    total = np.abs(_of_voters(state, columns)).sum()
    found = zip(state.sides.labels, state.sides.weights_by(columns, state.tally.trials), strict=True)
    return {label: weights / total if total > 0.0 else weights for label, weights in found}


def voter_of(state: FusionState) -> np.ndarray:
    """The voter of each column."""
    if state.sides.names:
        return state.sides.columns[:, 0]
    return np.repeat(np.arange(len(state.voters)), state.copies)


def voter_weights(state: FusionState) -> np.ndarray:
    """The weight of each voter, or how often it was right of late if the learner is not a single weight vector."""
    try:
        return shares(state).sum(axis=1)
    except ValueError:
        return state.recent.accuracy_lately()
