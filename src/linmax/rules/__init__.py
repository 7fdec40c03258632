"""Linear-threshold rules, one a file: its step, how its states mix, its mistake bound and its factory.

A factory returns a `Rule`, a description without state. `REGISTRY` lists them, one line each; notation, documentation
and the shared tests read it. `register_rule` adds one from outside.
"""

from __future__ import annotations

import copyreg
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from linmax.core.contract import Rule as Rule
from linmax.rules.adagrad import adagrad as adagrad
from linmax.rules.alma import alma as alma
from linmax.rules.arow import arow as arow
from linmax.rules.balanced_winnow import balanced_winnow as balanced_winnow
from linmax.rules.custom import CUSTOM_RULES, TAKEN, RuleWithCode
from linmax.rules.custom import CustomRule as CustomRule
from linmax.rules.custom import rule as rule
from linmax.rules.elimination import elimination as elimination
from linmax.rules.ftrl import ftrl as ftrl
from linmax.rules.logistic import logistic as logistic
from linmax.rules.nherd import nherd as nherd
from linmax.rules.p_norm import p_norm as p_norm
from linmax.rules.paper_pool import paper_pool as paper_pool
from linmax.rules.passive_aggressive import pa as pa
from linmax.rules.passive_aggressive import pa_i as pa_i
from linmax.rules.passive_aggressive import pa_ii as pa_ii
from linmax.rules.perceptron import perceptron as perceptron
from linmax.rules.quasi_additive import quasi_additive as quasi_additive
from linmax.rules.romma import romma as romma
from linmax.rules.sasb import sasb as sasb
from linmax.rules.scw import scw_i as scw_i
from linmax.rules.scw import scw_ii as scw_ii
from linmax.rules.second_order_perceptron import second_order_perceptron as second_order_perceptron
from linmax.rules.winnow import committee as committee
from linmax.rules.winnow import winnow as winnow

__all__ = [
    "adagrad",
    "alma",
    "arow",
    "balanced_winnow",
    "committee",
    "elimination",
    "ftrl",
    "logistic",
    "nherd",
    "p_norm",
    "pa",
    "pa_i",
    "pa_ii",
    "paper_pool",
    "perceptron",
    "quasi_additive",
    "register_rule",
    "romma",
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


def register_rule(name: str, factory: Callable[..., Rule]) -> None:
    """Add a rule of another package; its models are saved, loaded, pickled and merged like any other.

    Parameters
    ----------
    name : str
        Name in text, such as "my-rule"; the `Rule` that the factory returns has the same name, or "my_rule".
    factory : callable
        Function of the rule's parameters that returns the rule.

    See Also
    --------
    rule : turns a function into a rule, without mixture and bound.

    Examples
    --------
    >>> register_rule("winnow", winnow)
    Traceback (most recent call last):
    ValueError: a rule 'winnow' exists; choose another name
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ValueError(f"name must be lower-case words joined by '-', got {name!r}; try 'my-rule'")
    if name in TAKEN or name in CUSTOM_RULES:
        raise ValueError(f"a rule {name!r} exists; choose another name")
    REGISTRY[name] = factory
    TAKEN.add(name)


def _reduce(rule: Rule) -> Any:
    """Pickle a rule as its factory and parameters: addresses of compiled functions differ between processes."""
    code, parameters = rule.code if isinstance(rule, RuleWithCode) else None, dict(rule.parameters)
    factory: Any = code if isinstance(code, CustomRule) else REGISTRY.get(rule.name.replace("_", "-"))
    if code is not None and factory is not code:
        parameters["link"] = code
    return object.__reduce_ex__(rule, 2) if factory is None else (_restore, (factory, parameters, rule.rivals))


def _restore(factory: Callable[..., Rule], parameters: dict[str, Any], rivals: str) -> Rule:
    return replace(factory(**parameters), rivals=rivals)


copyreg.pickle(Rule, _reduce)
copyreg.pickle(RuleWithCode, _reduce)
