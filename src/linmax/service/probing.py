"""What a learner is like, found by trying one out: whether it can be carried out of the range of floats, and its size.

A probe learns a few trials and is thrown away; models with the same options share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from linmax.models.online import Learner

__all__ = ["Footprint", "footprint", "is_fragile"]

STEEP = (1.0, 30.0, 1e3, 1e6)  # numbers that a rule with a steep link cannot take
COUNTS, CLASSES = (256, 768), (2, 4, 8)  # sizes that are tried
INSTANCE_BLOCKS = ("attributes", "votes", "scores")


@dataclass(frozen=True)
class Footprint:
    """How the bytes of a learner's state grow with the number n of names and the number k of classes.

    `sizes` are factors of 1, n, k, nk and nkk, for attributes, voters and raters.
    """

    sizes: tuple[tuple[float, ...], ...]

    def bytes(self, counts: Sequence[int], classes: int) -> int:
        """About how large a state is with so many attributes, voters, raters and classes."""
        found = (sum(map(float.__mul__, size, _terms(n, classes))) for n, size in zip(counts, self.sizes, strict=True))
        return int(sum(found))


@lru_cache(maxsize=256)
def footprint(learner: str, kind: str, thresholds: bool) -> Footprint:
    """The footprint of such a learner.

    Examples
    --------
    >>> 8e6 < footprint("perceptron", "attributes", True).bytes([100_000, 0, 0], 10) < 3e7
    True
    """
    blocks = _blocks(kind)
    return Footprint(
        tuple(_size(learner, block, thresholds) if block in blocks else (0.0,) * 5 for block in INSTANCE_BLOCKS)
    )


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


def _size(learner: str, block: str, thresholds: bool) -> tuple[float, ...]:
    from scipy.optimize import nnls

    rows, found = [], []
    for n in COUNTS:
        for k in CLASSES:
            tried = Learner(learner, thresholds=thresholds)
            try:
                for i in range(k):
                    tried.learn(**_instance(block, n, str(i)), label=str(i))
            except (ValueError, TypeError, ArithmeticError):
                return (0.0,) * 5  # it takes no such instances, or not so many names
            rows.append(_terms(n, k))
            found.append(float(sum(array.nbytes for array in tried.state()[1].values())))
    scale = np.array(rows).max(axis=0)
    return tuple((nnls(np.array(rows) / scale, np.array(found))[0] / scale).tolist())


def _terms(n: int, k: int) -> list[float]:
    return [1.0, float(n), float(k), float(n * k), float(n * k * k)]
