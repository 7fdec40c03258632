"""Trials of a fusion of which some say only that an answer was wrong."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.data.labels import label_array
from linmax.data.votes import Ballots
from linmax.engine.notation import as_learner
from linmax.models.fusion.state import FusionState
from linmax.models.fusion.trials import later, read_votes
from linmax.models.wrong import another, denied, mask_of
from linmax.techniques.exploring import Explored

if TYPE_CHECKING:
    from linmax.models.fusion.online import OnLineFusion

__all__ = ["learned_with_wrong"]


def learned_with_wrong(fusion: OnLineFusion, votes: Any, y: Any, wrong: Any) -> FusionState:
    """The state after these trials; an error leaves the fusion as it was."""
    ballots, labels = read_votes(votes, fusion.by), label_array(y)
    mask = mask_of(wrong, len(ballots))
    if len(labels) != len(ballots):
        raise ValueError(f"y must be one label a trial: {len(ballots)} trials, got {len(labels)}")
    before = getattr(fusion, "_state", None)
    kept = deepcopy(before) if len(mask) > 1 else before  # a single trial is learned whole or not at all
    try:
        begin = 0
        for t in [*np.flatnonzero(mask).tolist(), len(mask)]:
            if t > begin:
                fusion.partial_fit(_part(ballots, begin, t), labels[begin:t])
            if t < len(mask):
                _one(fusion, _part(ballots, t, t + 1), labels[t : t + 1])
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


def _part(ballots: Ballots, begin: int, end: int) -> Ballots:
    sides = tuple(column[begin:end] for column in ballots.sides) if ballots.sides else ballots.sides
    return Ballots(ballots.table[begin:end], ballots.names, sides)


def _one(fusion: OnLineFusion, row: Ballots, wrong: np.ndarray) -> None:
    """Learn that one label is not this; where no other class is known, nothing."""
    not_this = wrong.tolist()[0]
    state: FusionState | None = getattr(fusion, "_state", None)
    if state is None:  # by the votes
        said = [vote for vote in row.table[0].tolist() if vote is not None] if row.table.ndim == 2 else []
        shares = {name: 1.0 + said.count(name) for name in [*(fusion.classes if fusion.classes is not None else said)]}
        number = 0
    else:
        model = state.model
        table = model.scores(state.known(state.laid_out(later(fusion, state, row))))[:, : len(model.known)]
        given = model.own_probabilities(table)[0].tolist() if table.size else []
        shares = dict(zip(model.known, given, strict=True))
        number = state.tally.trials
    label = another(shares, not_this, number)
    if label is None:
        return
    if state is not None and not_this in shares:
        with denied(state.model, state.model.known.index(not_this)):
            fusion.partial_fit(row, [label])
    elif not isinstance(as_learner(fusion.learner), Explored):  # which would take what was drawn for the label
        fusion.partial_fit(row, [label])
