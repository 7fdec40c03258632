"""Learners that are not rules: they use all classes of a trial, or none of its sub-experts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linmax.util.lazy import names_of

if TYPE_CHECKING:
    from linmax.learners.attributes.pool import binned_pairs, nearest
    from linmax.learners.bayes import naive_bayes
    from linmax.learners.latest_label import recent_label
    from linmax.learners.second_order import robust_softmax, softmax

__all__ = ["binned_pairs", "naive_bayes", "nearest", "recent_label", "robust_softmax", "softmax"]

_HOMES = {
    "binned_pairs": "learners.attributes.pool",
    "naive_bayes": "learners.bayes",
    "nearest": "learners.attributes.pool",
    "recent_label": "learners.latest_label",
    "robust_softmax": "learners.second_order",
    "softmax": "learners.second_order",
}

__getattr__, __dir__ = names_of(__name__, _HOMES, __all__)
