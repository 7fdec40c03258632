"""What a learner is like, found by trying one out: whether it can be carried out of the range of floats, and its size.

A probe learns a few trials and is thrown away; models with the same options share one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from linmax.models.online import Learner

__all__ = ["Probe", "probe"]

STEEP = (1.0, 30.0, 1e3, 1e6)  # numbers that a rule with a steep link cannot take


@dataclass(frozen=True)
class Probe:
    """`fragile`: numbers of ordinary size can carry the weights out of the range of floats, and spoil them."""

    fragile: bool


@lru_cache(maxsize=256)
def probe(learner: str, kind: str, classes: tuple[Any, ...] | None, thresholds: bool) -> Probe:
    """Try such a learner out.

    Examples
    --------
    >>> probe("perceptron", "attributes", None, True).fragile
    False
    >>> probe("quasi-additive(sinh)", "attributes", None, True).fragile
    True
    """
    return Probe(_is_fragile(learner, kind, classes, thresholds))


def _is_fragile(learner: str, kind: str, classes: tuple[Any, ...] | None, thresholds: bool) -> bool:
    tried = Learner(learner, classes=classes, thresholds=thresholds)
    labels = list(classes or ("a", "b"))
    if tried.bounded or kind == "votes":
        return False
    for number in STEEP:
        for label in (labels[0], labels[-1], labels[0]):
            instance: dict[str, Any] = {"attributes": {"a": number}}
            if kind == "scores":
                instance = {"scores": {"a": {labels[0]: number, labels[-1]: -number}}}
            try:
                tried.learn(**instance, label=label)
            except OverflowError:
                return True
            except (ValueError, TypeError, ArithmeticError):
                return False  # it says so before it changes anything
    return False
