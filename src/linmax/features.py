"""Attributes made of attributes: bins, products of pairs, conjunctions, negated literals, a constant."""

from __future__ import annotations

from linmax.data.features import (
    Binning,
    bins,
    conjunctions,
    conjunctions_of,
    constant,
    negated_literals,
    pairs,
    pairs_of,
)

__all__ = ["Binning", "bins", "conjunctions", "conjunctions_of", "constant", "negated_literals", "pairs", "pairs_of"]
