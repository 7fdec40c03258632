"""Whether a learner can be carried out of the range of floats, found by trying one out.

A probe learns a few trials and is thrown away; models with the same options share one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from linmax.models.online import Learner

__all__ = ["is_fragile"]

STEEP = (1.0, 30.0, 1e3, 1e6)  # numbers that a rule with a steep link cannot take
INSTANCE_BLOCKS = ("attributes", "votes", "scores")


@lru_cache(maxsize=256)
def is_fragile(learner: str, kind: str, thresholds: bool) -> bool:
    """Whether numbers of ordinary size can carry the weights out of the range of floats, and spoil them.

    Examples
    --------
    >>> is_fragile("perceptron", "attributes", True), is_fragile("quasi-additive(sinh)", "attributes", True)
    (False, True)
    """
    return any(_overflows(learner, block, thresholds) for block in _blocks(kind))


def _blocks(kind: str) -> tuple[str, ...]:
    return INSTANCE_BLOCKS if kind == "mixed" else (kind,)


def _instance(block: str, names: int, label: str, number: float = 1.0) -> dict[str, Any]:
    if block == "attributes":
        return {block: {str(i): number for i in range(names)}}
    if block == "votes":
        return {block: {str(i): label for i in range(names)}}
    return {block: {str(i): {label: number} for i in range(names)}}


def _overflows(learner: str, block: str, thresholds: bool) -> bool:
    tried = Learner(learner, thresholds=thresholds)
    if tried.bounded or block == "votes":
        return False
    for number in STEEP:
        for label in "aba":
            try:
                tried.learn(**_instance(block, 1, label, number), label=label)
            except OverflowError:
                return True
            except (ValueError, TypeError, ArithmeticError):
                return False  # it says so before it changes anything
    return False
