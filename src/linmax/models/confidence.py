"""What a model's scores are worth: probabilities, prediction sets, and how far both can be believed."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from linmax.core.contract import KNOWN
from linmax.engine.coverage import covered, reach
from linmax.engine.engine import Engine
from linmax.engine.record import JUDGED, Record, keep_table, new_record
from linmax.learners.attributes.warm_up import Relearned, pool_at_large
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
    _at_large: tuple[Relearned, Record, Calibration] | None = None  # for rows that do not follow the stream

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Scores from `judge` as probabilities, as sharp as they lately proved right (`linmax.models.calibration`)."""
        scores = scores / self.engine.top.unit(self.engine)
        other = self._relearned()
        if other is None:
            return self._calibration.probabilities(self.record, scores, self._natural)
        if self._at_large is None or self._at_large[0] is not other:
            record = new_record(self.engine.k)
            keep_table(record, other.scores, other.labels, int(self.engine.state.shape[KNOWN]))
            self._at_large = other, record, Calibration()
        _, record, calibration = self._at_large
        return calibration.probabilities(record, scores)

    def _relearned(self) -> Relearned | None:
        """What judges rows after a stream sorted by class: a pool whose scores proved right on a sample of it."""
        pool, engine = self.engine.top.weighing, self.engine
        return None if pool is None else pool_at_large(pool, engine.state.shape, engine.k)

    @property
    def _natural(self) -> bool:
        """Whether scores are logarithms of probabilities."""
        return self.engine.top.gives_logarithms

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
        if not self.follows:
            raise ValueError(
                "this model has not kept what prediction sets need since its first trial; learn the trials anew, or "
                "use probabilities"
            )
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
