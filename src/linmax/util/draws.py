"""Random numbers that depend on a seed and a number alone: the same on every machine, after any cut or restart."""

from __future__ import annotations

__all__ = ["drawn"]

WORD_MASK = 2**64 - 1


def drawn(seed: int, number: int) -> float:
    """Draw ``number`` of the stream ``seed``: uniform on [0, 1), and always the same (splitmix64)."""
    bits = (0x9E3779B97F4A7C15 * (number + 1) + 0xD1342543DE82EF95 * (seed + 1)) & WORD_MASK
    bits = ((bits ^ bits >> 30) * 0xBF58476D1CE4E5B9) & WORD_MASK
    bits = ((bits ^ bits >> 27) * 0x94D049BB133111EB) & WORD_MASK
    return ((bits ^ bits >> 31) >> 11) / 2.0**53
