"""scikit-learn estimators: `LinearMaxClassifier` on attributes, `FusionClassifier` over base models.

Both predict each trial before they learn from it, and continue with ``partial_fit``. ``fit`` starts from scratch, and
shows the samples in random order: an online learner that first sees all of one class and then all of another remembers
the last.
"""

from __future__ import annotations

from linmax.models.sklearn.classifier import LinearMaxClassifier
from linmax.models.sklearn.fusion_classifier import FusionClassifier

__all__ = ["FusionClassifier", "LinearMaxClassifier"]
