"""Linear-threshold rules, one a file. Each factory returns a `Rule`: a description without state.

`REGISTRY` is the one list of them; notation, documentation and the shared tests read it.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from typing import Any

from linmax.core.contract import Rule
from linmax.rules.adagrad import adagrad
from linmax.rules.alma import alma
from linmax.rules.arow import arow
from linmax.rules.balanced_winnow import balanced_winnow
from linmax.rules.checking import check_rule
from linmax.rules.elimination import elimination
from linmax.rules.ftrl import ftrl
from linmax.rules.logistic import logistic
from linmax.rules.nherd import nherd
from linmax.rules.own import TAKEN, OwnRule, rule
from linmax.rules.p_norm import p_norm
from linmax.rules.passive_aggressive import pa, pa_i, pa_ii
from linmax.rules.perceptron import perceptron
from linmax.rules.quasi_additive import OwnLink, quasi_additive
from linmax.rules.romma import romma
from linmax.rules.sasb import sasb
from linmax.rules.scw import scw_i, scw_ii
from linmax.rules.second_order_perceptron import second_order_perceptron
from linmax.rules.shipping import Made, made_again
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


def _reduce(rule: Rule) -> Any:
    maker, parameters = getattr(rule, "maker", None), dict(rule.parameters)
    if isinstance(maker, OwnLink):
        parameters["link"] = maker
    factory = maker if isinstance(maker, OwnRule) else REGISTRY.get(rule.name.replace("_", "-"))
    return object.__reduce_ex__(rule, 2) if factory is None else (made_again, (factory, parameters, rule.rivals))


copyreg.pickle(Rule, _reduce)
copyreg.pickle(Made, _reduce)
