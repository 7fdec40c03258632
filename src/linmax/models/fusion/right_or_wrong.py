"""Trials of a fusion of which some say only that an answer was wrong."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.data.labels import label_array, labels_with_gaps, no_label
from linmax.data.matching import labels_meant, matched
from linmax.data.normalisation import Normaliser
from linmax.data.side_columns import Sides
from linmax.data.votes import Ballots
from linmax.models.fusion.state import FusionState
from linmax.models.fusion.trials import (
    VoteBatch,
    joined,
    make_batch,
    read_votes,
    side_columns,
    some_rows,
    weights_given,
)
from linmax.models.wrong import WRONG_STREAM, denied, mask_of
from linmax.util.draws import another

if TYPE_CHECKING:
    from linmax.models.fusion.online import OnLineFusion

__all__ = ["learned_with_wrong"]


def learned_with_wrong(fusion: OnLineFusion, votes: Any, y: Any, wrong: Any, sample_weight: Any = None) -> FusionState:
    """The state after these trials; an error leaves the fusion as it was."""
    ballots = read_votes(votes, fusion.by)
    if y is None:
        raise ValueError("wrong= says of which trials the class in y is wrong, and y is not given; pass it")
    labels = label_array(y)
    mask, weights = mask_of(wrong, len(ballots)), weights_given(sample_weight, len(ballots))
    if labels.shape != (len(ballots),):
        raise ValueError(f"y must be one label per trial: {len(ballots)} trials, got shape {labels.shape}")
    bare = next((t for t in np.flatnonzero(mask).tolist() if no_label(labels[t])), None)
    if bare is not None:
        raise ValueError(f"y: trial {bare} is marked wrong, but has no class: {labels[bare]!r}; give it, or unmark it")
    before = getattr(fusion, "_state", None)
    kept = deepcopy(before) if len(mask) > 1 else before  # a single trial is learned whole or not at all
    try:
        if before is None and ballots.scored:  # whose classes are those of all trials
            fusion._state = _begun(fusion, ballots, labels_with_gaps(labels)[0])
        begin = 0
        for t in [*np.flatnonzero(mask).tolist(), len(mask)]:
            if t > begin:
                weights_here = None if weights is None else weights[begin:t]
                if weights_here is None or weights_here.any():
                    fusion.partial_fit(some_rows(ballots, slice(begin, t)), labels[begin:t], weights_here)
            if t < len(mask) and (weights is None or weights[t] > 0.0):
                here = slice(t, t + 1)
                _one(fusion, some_rows(ballots, here), labels[here], None if weights is None else weights[here])
            begin = t + 1
    except Exception:
        if kept is None:
            fusion.__dict__.pop("_state", None)
        else:
            fusion._state = kept
        raise
    if before is None and (getattr(fusion, "_state", None) is None or not fusion.model.trials):
        fusion.__dict__.pop("_state", None)
        raise ValueError("nothing could be learned: wrong answers alone, and no other class; give classes=")
    return fusion._state


def _one(fusion: OnLineFusion, row: Ballots, wrong: np.ndarray, weight: np.ndarray | None) -> None:
    """Learn that one label is not this; nothing where no other class is known, or nobody has met this one."""
    before: FusionState | None = getattr(fusion, "_state", None)
    classes = _classes(fusion, before)
    meant, row = labels_meant(wrong, classes), matched(row, classes, fusion.abstain)
    state = _begun(fusion, row, meant.tolist()) if before is None else before
    judged, batch = _with_guests(fusion, state, row)
    ((_, judge, part),) = judged.parts_of(batch)
    table = judge.scores(part)[:, : len(judge.known)]
    given = judge.own_probabilities(table)[0].tolist() if table.size else []
    shares, not_this = dict(zip(judge.known, given, strict=True)), meant.tolist()[0]
    label = another(shares, not_this, WRONG_STREAM, state.tally.trials) if not_this in shares else None
    if label is None:
        return
    fusion._state = state
    with denied(state.model, judge.known.index(not_this)):
        fusion.partial_fit(row, [label], weight)


def _classes(fusion: OnLineFusion, state: FusionState | None) -> list[Any]:
    return list(state.model.classes if state is not None else () if fusion.classes is None else fusion.classes)


def _begun(fusion: OnLineFusion, rows: Ballots, labels: list[Any]) -> FusionState:
    """A fusion of these voters before the first trial."""
    fixed = fusion._fixed(rows, labels)
    voters, named = joined(None, rows)
    normaliser = Normaliser(fusion.normalise) if rows.scored else None
    sides = Sides(tuple(map(str, side_columns(fusion.by))))
    sides = sides.joined([[] for _ in sides.names], len(voters)) if sides.names else sides
    batch = make_batch(fusion, some_rows(rows, slice(1)), voters, named, fixed, normaliser, sides, learn=False)
    return FusionState(fusion._begun(batch, fixed), fixed, named, voters, normaliser, sides)


def _with_guests(fusion: OnLineFusion, state: FusionState, row: Ballots) -> tuple[FusionState, VoteBatch]:
    """What judges this row, with voters that are new as guests, and the row as it takes it."""
    voters, named = joined(state, row)
    batch = make_batch(fusion, row, voters, named, state.fixed, state.normaliser, state.sides, learn=False)
    return state if voters == state.voters else state.hosting(voters, batch), batch
