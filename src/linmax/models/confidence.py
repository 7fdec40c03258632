"""What a model's scores are worth: probabilities, prediction sets, and how far both can be believed."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from linmax.engine.coverage import covered, reach
from linmax.engine.engine import Engine
from linmax.engine.pool_nodes import AutoPoolNode
from linmax.engine.record import JUDGED, Record, new_record
from linmax.models.calibration import Calibration, softmax
from linmax.models.reliability import Reliability, reliability
from linmax.util.checks import fraction

__all__ = ["Confidence"]


class Confidence:
    """The part of a `linmax.models.model.Model` that looks back at the scores it gave before it saw the labels."""

    engine: Engine
    record: Record
    classes: list[Any]
    _calibration: Calibration

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Scores from `judge` as probabilities, as sharp as they lately proved right (`linmax.models.calibration`)."""
        scores = scores / self.engine.top.unit(self.engine)
        return self._calibration.probabilities(self.record, scores, self._natural)

    @property
    def _natural(self) -> bool:
        """Whether scores are logarithms of probabilities."""
        top = self.engine.top
        return isinstance(top, AutoPoolNode) and top.votes is not None

    @property
    def calibration(self) -> tuple[float, float]:
        """Sharpness, for scores of their usual size or logarithms of probabilities, and guess rate."""
        return self._calibration.fitted(self.record, self._natural)

    @property
    def follows(self) -> bool:
        """Whether it keeps the coverage of prediction sets, which needs the scores of every trial."""
        return self.record.levels.size > 0

    def follow(self) -> Self:
        """Keep the coverage of prediction sets from now on; before the first trial."""
        self.record = new_record(len(self.classes), followed=True)
        return self

    def sets(self, scores: np.ndarray, coverage: float) -> np.ndarray:
        """Scores from `judge` as prediction sets: which classes are in each (`linmax.engine.coverage`)."""
        wanted, judged = fraction("coverage", coverage, 0.9), int(self.record.counts[JUDGED])
        largest = reach(self.record.levels, self.record.gaps, judged, wanted)
        scores = scores / self.engine.top.unit(self.engine)
        highest = scores.max(axis=1, keepdims=True)
        return np.asarray((highest - scores <= largest) & np.isfinite(scores) | (scores == highest))

    @property
    def reliability(self) -> Reliability | None:
        """How far its probabilities can be believed, by recent trials; None if there are too few."""
        found = self._calibration.foreseen(self.record, self._natural)
        return None if found is None else reliability(*found)

    @property
    def coverage(self) -> dict[float, float]:
        """Share of the trials whose label was in the set of each coverage that is followed, before it was seen."""
        judged = int(self.record.counts[JUDGED])
        return covered(self.record.levels, judged) if self.follows and judged else {}

    def own_probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Scores from `judge` as the probabilities that the learner itself works with.

        Those of the pool for votes are logarithms of such; of any other learner they are `probabilities`.
        """
        return softmax(scores) if self._natural else self.probabilities(scores)
