"""Linear-threshold rules, one a file. Each factory returns a `Rule`: a description without state.

`REGISTRY` is the one list of them; notation, documentation and the shared tests read it.
"""

from __future__ import annotations

from collections.abc import Callable

from linmax.core.contract import Rule
from linmax.rules.adagrad import adagrad
from linmax.rules.alma import alma
from linmax.rules.arow import arow
from linmax.rules.balanced_winnow import balanced_winnow
from linmax.rules.elimination import elimination
from linmax.rules.ftrl import ftrl
from linmax.rules.logistic import logistic
from linmax.rules.nherd import nherd
from linmax.rules.own import TAKEN, OwnRule, check_rule, rule
from linmax.rules.p_norm import p_norm
from linmax.rules.passive_aggressive import pa, pa_i, pa_ii
from linmax.rules.perceptron import perceptron
from linmax.rules.quasi_additive import quasi_additive
from linmax.rules.romma import romma
from linmax.rules.sasb import sasb
from linmax.rules.scw import scw_i, scw_ii
from linmax.rules.second_order_perceptron import second_order_perceptron
from linmax.rules.winnow import committee, winnow

__all__ = [
    "REGISTRY",
    "OwnRule",
    "Rule",
    "adagrad",
    "alma",
    "arow",
    "balanced_winnow",
    "check_rule",
    "committee",
    "elimination",
    "ftrl",
    "logistic",
    "nherd",
    "p_norm",
    "pa",
    "pa_i",
    "pa_ii",
    "perceptron",
    "quasi_additive",
    "romma",
    "rule",
    "sasb",
    "scw_i",
    "scw_ii",
    "second_order_perceptron",
    "winnow",
]

REGISTRY: dict[str, Callable[..., Rule]] = {
    "adagrad": adagrad,
    "alma": alma,
    "arow": arow,
    "balanced-winnow": balanced_winnow,
    "committee": committee,
    "elimination": elimination,
    "ftrl": ftrl,
    "logistic": logistic,
    "nherd": nherd,
    "p-norm": p_norm,
    "pa": pa,
    "pa-i": pa_i,
    "pa-ii": pa_ii,
    "perceptron": perceptron,
    "quasi-additive": quasi_additive,
    "romma": romma,
    "sasb": sasb,
    "scw-i": scw_i,
    "scw-ii": scw_ii,
    "second-order-perceptron": second_order_perceptron,
    "winnow": winnow,
}
TAKEN.update(REGISTRY)
