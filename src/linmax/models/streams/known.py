"""What a model of streams knows: its options, names, counts, weights, and what was decided about the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from linmax.data.scaling import Scaling
from linmax.engine.engine import Engine, Settings
from linmax.io.batches import Classes
from linmax.io.vocabulary import Vocabulary
from linmax.learners.attributes.pool import PoolMember
from linmax.models.model import Model
from linmax.models.showings import heaviest
from linmax.models.weights import WeightArrays, Weights

__all__ = ["Known"]


class Known:
    """What there is to see of a `linmax.streams.StreamModel`."""

    learner: Any
    thresholds: bool
    vocabulary: Vocabulary
    labels: Classes
    scaling: Scaling
    dense_names: tuple[str, ...]
    columns: int
    memory: int | None
    _settings: Settings
    _model: Model | None

    @property
    def model(self) -> Model | None:
        """The model under it, once there is one; for the rest of the library."""
        return self._model

    @property
    def engine(self) -> Engine | None:
        """The engine, once there is one; for the rest of the library."""
        return None if self._model is None else self._model.engine

    @property
    def options(self) -> dict[str, Any]:
        """How it was made: the learner and what else matters for what it learns."""
        return {
            "learner": str(self.learner),
            "thresholds": self.thresholds,
            "tie": "largest" if self._settings.largest else "smallest",
            "update_on_tie": self._settings.update_on_tie,
            "hash_bits": self.vocabulary.bits,
        }

    @property
    def classes(self) -> list[str]:
        """The classes learned from, in the order of their first labels."""
        return [] if self._model is None else self._model.classes

    @property
    def crowded(self) -> bool:
        """Whether the budget is used up, so that attributes not met before share columns."""
        return self.vocabulary.full

    @property
    def heaviest(self) -> float:
        """The weight beyond which rows count no more (see `linmax.models.showings`)."""
        return float("inf") if self._model is None else heaviest(self._model.engine)

    @property
    def trials(self) -> int:
        """Trials learned from."""
        return 0 if self._model is None else self._model.trials

    @property
    def mistakes(self) -> int:
        """Mistakes so far, each made before the label was seen; those of later passes count as well."""
        return 0 if self._model is None else self._model.mistakes

    @property
    def updates(self) -> int:
        """Updates so far, by all members, recycled ones included."""
        return 0 if self._model is None else self._model.updates

    @property
    def curve(self) -> tuple[np.ndarray, np.ndarray]:
        """Trials, and the mistakes up to each (see `linmax.Learner.curve`)."""
        return (np.zeros(0, np.int64), np.zeros(0, np.int64)) if self._model is None else self._model.curve

    @property
    def features(self) -> int:
        """Attributes met, the constant apart."""
        return len(self.dense_names) + self.columns

    @property
    def attributes(self) -> list[str]:
        """Names of the rows of `weights`."""
        names = ["constant"] if self.scaling.prepends else []
        return [*names, *self.dense_names, *(self.vocabulary[i] for i in range(self.columns))]

    @property
    def weights(self) -> Weights:
        """The weights that it predicts with, by name, up to one positive factor (see `linmax.Learner.weights`)."""
        if self._model is None:
            none = np.zeros(0)
            return Weights(WeightArrays(none, none, none, np.zeros((0, 0))), [], [], [], [])
        return Weights(self._model.weights.arrays, self.classes, [], [], self.attributes)

    @property
    def pool(self) -> list[PoolMember]:
        """The members of the pool for attributes and the weights by which they are fused; none for other learners."""
        pool = None if self._model is None else self._model.pool
        return [] if pool is None else pool.members()

    @property
    def decided(self) -> dict[str, str | int | float]:
        """What the pool for attributes takes them for, numbers or words, and why; empty for other learners.

        Overrule it by ``auto(dense)`` or ``auto(sparse)``.
        """
        pool = None if self._model is None else self._model.pool
        return {} if pool is None else pool.decided()

    def __repr__(self) -> str:
        return f"<{self.learner} over {len(self.classes)} classes and {self.features} attributes, {self.trials} trials>"
