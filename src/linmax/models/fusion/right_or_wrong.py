"""Trials of a fusion of which some say only that an answer was wrong."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.data.blocks import silent_votes
from linmax.data.labels import label_array, no_label
from linmax.data.matching import labels_meant
from linmax.data.votes import Ballots
from linmax.engine.notation import as_learner
from linmax.models.fusion.state import FusionState
from linmax.models.fusion.trials import later, read_votes, some_rows, weights_given
from linmax.models.wrong import WRONG_STREAM, denied, mask_of
from linmax.techniques.exploring import Explored
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
    if getattr(fusion, "_state", None) is None:
        raise ValueError("nothing could be learned: wrong answers alone, and no other class; give classes=")
    return fusion._state


def _one(fusion: OnLineFusion, row: Ballots, wrong: np.ndarray, weight: np.ndarray | None) -> None:
    """Learn that one label is not this; nothing where no other class is known, or nobody has met this one."""
    not_this = wrong.tolist()[0]
    state: FusionState | None = getattr(fusion, "_state", None)
    if state is None:  # by the votes
        votes = row.table[0].tolist() if row.table.ndim == 2 else []
        said = [vote for vote in votes if not no_label(vote) and vote not in silent_votes(fusion.abstain)]
        shares = {name: 1.0 + said.count(name) for name in [*(fusion.classes if fusion.classes is not None else said)]}
        number = 0
    else:
        model = state.model
        not_this = labels_meant(wrong, model.classes).tolist()[0]
        judge, part, _ = state.judge_of(later(fusion, state, row))
        table = judge.scores(part)[:, : len(judge.known)]
        given = judge.own_probabilities(table)[0].tolist() if table.size else []
        shares = dict(zip(judge.known, given, strict=True))
        number = state.tally.trials
    label = another(shares, not_this, WRONG_STREAM, number) if state is None or not_this in shares else None
    if label is None:
        return
    if state is not None:
        with denied(state.model, state.model.known.index(not_this)):
            fusion.partial_fit(row, [label], weight)
    elif not isinstance(as_learner(fusion.learner), Explored):  # which would take what was drawn for the label
        fusion.partial_fit(row, [label], weight)
