"""Adversaries: sequences of instances that try to make a learner break its bound.

They work in z-form (the instance times its label; the right answer is always +1), in which every rule and
every bound of this package is stated. An adaptive adversary is a function that sees the current weights and
answers with the next z, or with None when it can force no further update. Weights matter up to a positive
factor only.

`play` lets an adversary meet a learner; `as_votes` turns its instances into votes of a two-class problem, `as_scores`
into ratings of many classes.
"""

from __future__ import annotations

from linmax.theory.adversaries.adaptive import balanced_mass, orthogonal, worst_flips
from linmax.theory.adversaries.fixed import as_scores, as_votes, sparse_target, ties, turncoats
from linmax.theory.adversaries.games import Adversary, Game, meet, play

__all__ = [
    "Adversary",
    "Game",
    "as_scores",
    "as_votes",
    "balanced_mass",
    "meet",
    "orthogonal",
    "play",
    "sparse_target",
    "ties",
    "turncoats",
    "worst_flips",
]
