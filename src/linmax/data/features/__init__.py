"""Feature maps: attributes that make a problem linear, from attributes that do not.

``bins`` cuts numbers into literals of 0 and 1; ``constant`` appends the attribute 1 (a threshold), ``negated_literals``
the complements, ``conjunctions`` every conjunction of at most k literals, ``pairs`` the products of the pairs of
attributes that are asked for; ``conjunctions_of``, ``pairs_of`` and ``pack`` do the same for instances ``{name:
strength}`` over attributes that are not known beforehand. A k-DNF formula of K terms over the n'
conjunctions is a disjunction, which Winnow learns with 2 + 3 K (1 + lg n') mistakes.

References
----------
Littlestone, "Learning quickly when irrelevant attributes abound", Machine Learning 2 (1988).
Blum, "Learning Boolean functions in an infinite attribute space", Machine Learning 9 (1992).
"""

from __future__ import annotations

from linmax.data.features.bins import Binning, bins
from linmax.data.features.expansion import conjunctions
from linmax.data.features.literals import constant, negated_literals
from linmax.data.features.named import conjunctions_of, pack
from linmax.data.features.products import pairs, pairs_of
from linmax.data.features.terms import Terms, count_conjunctions

__all__ = [
    "Binning",
    "Terms",
    "bins",
    "conjunctions",
    "conjunctions_of",
    "constant",
    "count_conjunctions",
    "negated_literals",
    "pack",
    "pairs",
    "pairs_of",
]
