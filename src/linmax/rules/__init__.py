"""Linear-threshold rules, one a file. Each factory returns a `Rule`: a description without state.

`REGISTRY` is the one list of them; notation, documentation and the shared tests read it.
"""

from __future__ import annotations

from collections.abc import Callable

from linmax.contract import Rule
from linmax.rules.alma import alma
from linmax.rules.balanced_winnow import balanced_winnow
from linmax.rules.elimination import elimination
from linmax.rules.own import TAKEN, OwnRule, check_rule, rule
from linmax.rules.p_norm import p_norm
from linmax.rules.perceptron import perceptron
from linmax.rules.quasi_additive import quasi_additive
from linmax.rules.sasb import sasb
from linmax.rules.winnow import committee, winnow

__all__ = [
    "REGISTRY",
    "OwnRule",
    "Rule",
    "alma",
    "balanced_winnow",
    "check_rule",
    "committee",
    "elimination",
    "p_norm",
    "perceptron",
    "quasi_additive",
    "rule",
    "sasb",
    "winnow",
]

REGISTRY: dict[str, Callable[..., Rule]] = {
    "alma": alma,
    "balanced-winnow": balanced_winnow,
    "committee": committee,
    "elimination": elimination,
    "p-norm": p_norm,
    "perceptron": perceptron,
    "quasi-additive": quasi_additive,
    "sasb": sasb,
    "winnow": winnow,
}
TAKEN.update(REGISTRY)
