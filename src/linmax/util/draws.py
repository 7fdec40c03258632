"""Random numbers that depend on a seed and a number alone: the same on every machine, after any cut or restart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["another", "drawn"]

WORD_MASK = 2**64 - 1


def drawn(seed: int, number: int) -> float:
    """Draw ``number`` of the stream ``seed``: uniform on [0, 1), and always the same (splitmix64)."""
    bits = (0x9E3779B97F4A7C15 * (number + 1) + 0xD1342543DE82EF95 * (seed + 1)) & WORD_MASK
    bits = ((bits ^ bits >> 30) * 0xBF58476D1CE4E5B9) & WORD_MASK
    bits = ((bits ^ bits >> 27) * 0x94D049BB133111EB) & WORD_MASK
    return ((bits ^ bits >> 31) >> 11) / 2.0**53


def another(shares: Mapping[Any, float], wrong: Any, seed: int, number: int) -> Any:
    """One of these other than ``wrong``, drawn with a probability as its share; None if there is no other.

    Examples
    --------
    >>> another({"a": 0.9, "b": 0.1, "c": 0.0}, "a", seed=0, number=0)
    'b'
    """
    others = {name: float(share) for name, share in shares.items() if name != wrong}
    total = sum(others.values())
    if not total > 0.0:
        others, total = dict.fromkeys(others, 1.0), float(len(others))
    left = drawn(seed, number) * total
    for name, share in others.items():
        left -= share
        if left < 0.0:
            return name
    return next(reversed(others), None)
