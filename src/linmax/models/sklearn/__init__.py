"""scikit-learn estimators: `LinearMaxClassifier` on attributes, `FusionClassifier` over base models.

Both hold a learner of this library that predicts each trial before it learns from it, and both go on with
``partial_fit``. ``fit`` starts afresh, and shows the samples in random order: an on-line learner that first sees all of
one class and then all of another remembers the last.
"""

from __future__ import annotations

from linmax.models.sklearn.classifier import LinearMaxClassifier
from linmax.models.sklearn.fusing import FusionClassifier

__all__ = ["FusionClassifier", "LinearMaxClassifier"]
