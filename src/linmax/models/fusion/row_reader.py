"""One row of votes at a time: read without what many rows need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.core.contract import Instances
from linmax.data.arrays import no_instances

if TYPE_CHECKING:
    from linmax.models.fusion.state import FusionState

__all__ = ["RowReader"]

NOTHING = (None, None)


class RowReader:
    """Reads single rows of a fusion whose voters and classes stay what they are, as numbers."""

    def __init__(self, state: FusionState) -> None:
        self.classes = state.model.classes  # the list itself: a model that grows has another one
        names = state.classes
        self.places = {name: place for place, name in enumerate(self.classes)} | {None: -1}
        order = [names.index(name) for name in self.classes]
        self.order = np.array([*order, -1], np.int32)  # their places when sorted; the last one is silence
        layout = state.model.layout
        self.layout, self.named = layout, state.named
        self.voters = {name: place for place, name in enumerate(state.voters)}
        self.empty = no_instances(1)._replace(signs=np.ones(layout.voters), constant=layout.constant)

    def fits(self, state: FusionState) -> bool:
        """Whether voters and classes are still what they were."""
        return self.classes is state.model.classes and self.layout is state.model.layout

    def instances(self, codes: np.ndarray) -> Instances:
        """One row of votes, as `codes` gave it, as an instance."""
        none = self.empty
        return Instances(
            codes, none.signs, none.scores, none.dense, none.indptr, none.indices, none.values, none.constant
        )

    def label(self, y: Any) -> int:
        """The place of the only label, or -1."""
        if not isinstance(y, (list, tuple, np.ndarray)) or len(y) != 1:
            return -1
        try:
            return self.places.get(y[0].item() if isinstance(y[0], np.generic) else y[0], -1)
        except TypeError:  # no label at all
            return -1

    def codes(self, votes: Any) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]:
        """One row of votes as places among the classes, and who was asked; nothing of anything but one plain row."""
        try:
            if isinstance(votes, dict):
                return self._named(votes) if self.named else NOTHING
            if not isinstance(votes, (list, np.ndarray)) or len(votes) != 1 or self.named:
                return NOTHING
            row = votes[0].tolist() if isinstance(votes[0], np.ndarray) else votes[0]
            if not isinstance(row, (list, tuple)) or len(row) != len(self.voters):
                return NOTHING
            codes = np.array([list(map(self.places.__getitem__, row))], np.int32)
            return codes, np.ones(codes.shape, bool)
        except (KeyError, TypeError):  # a voter or a class that is new, nan, or something that is no class
            return NOTHING

    def _named(self, votes: dict[Any, Any]) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]:
        """One vote by name of each voter who was asked; at no price for the others."""
        if not all(isinstance(vote, (list, np.ndarray)) and len(vote) == 1 for vote in votes.values()):
            return NOTHING
        codes = np.full((1, len(self.voters)), -1, np.int32)
        asked = np.zeros(codes.shape, bool)
        if votes:
            there = list(map(self.voters.__getitem__, votes))
            codes[0, there] = [self.places[vote[0]] for vote in votes.values()]
            asked[0, there] = True
        return codes, asked
