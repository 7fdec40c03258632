"""Results of the trials that an engine has played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Outcome", "joined"]


@dataclass
class Outcome:
    """Results of an engine: predicted classes, whether any member changed, margins and scores if asked for."""

    predictions: np.ndarray
    changed: np.ndarray
    margins: np.ndarray | None
    scores: np.ndarray | None  # of the last trials
    known: np.ndarray  # classes known at each trial

    def part(self, begin: int, end: int) -> Outcome:
        """The outcome of trials begin..end, all of them scored or none, as views of the same arrays."""
        first = len(self.predictions) - (0 if self.scores is None else len(self.scores))
        return Outcome(
            self.predictions[begin:end],
            self.changed[begin:end],
            None if self.margins is None else self.margins[begin:end],
            None if self.scores is None or begin < first else self.scores[begin - first : end - first],
            self.known[begin:end],
        )


def joined(parts: Sequence[Outcome]) -> Outcome:
    """The outcome of trials that were played one part after the other, all of them scored or none."""
    margins = [part.margins for part in parts if part.margins is not None]
    scores = [part.scores for part in parts if part.scores is not None]
    return Outcome(
        np.concatenate([part.predictions for part in parts]),
        np.concatenate([part.changed for part in parts]),
        np.concatenate(margins) if margins else None,
        np.concatenate(scores) if scores else None,
        np.concatenate([part.known for part in parts]),
    )
