"""One row of votes at a time: read without what many rows need."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from linmax.models.fusion.state import FusionState

__all__ = ["RowReader"]


class RowReader:
    """Reads single rows of a fusion whose voters and classes stay what they are, as numbers."""

    def __init__(self, state: FusionState) -> None:
        self.classes = state.model.classes  # the list itself: a model that grows has another one
        names = state.classes
        self.places = {name: place for place, name in enumerate(self.classes)} | {None: -1}
        self.order = np.array([names.index(name) for name in self.classes], np.int32)  # their places when sorted

    def label(self, y: Any) -> int:
        """The place of the only label, or -1."""
        if not isinstance(y, (list, tuple, np.ndarray)) or len(y) != 1:
            return -1
        label = y[0].item() if isinstance(y[0], np.generic) else y[0]
        return self.places.get(label, -1) if isinstance(label, Hashable) else -1

    def codes(self, votes: Any, voters: Sequence[str], named: bool) -> np.ndarray | None:
        """One row of votes as places among the classes, or None if it is anything but one plain row."""
        if isinstance(votes, dict):
            if not named or any(not isinstance(vote, (list, np.ndarray)) or len(vote) != 1 for vote in votes.values()):
                return None
            row: Sequence[Any] = [votes[name][0] if name in votes else None for name in voters]
            known = sum(name in votes for name in voters) == len(votes)
        elif isinstance(votes, (list, np.ndarray)) and len(votes) == 1 and not named:
            first = votes[0]
            row = first.tolist() if isinstance(first, np.ndarray) else first
            known = isinstance(row, (list, tuple)) and len(row) == len(voters)
        else:
            return None
        places = self.places
        try:
            codes = [places[vote] for vote in row] if known else None
        except (KeyError, TypeError):  # a class that is new, nan, or something that is no class
            return None
        return None if codes is None else np.array([codes], np.int32)
