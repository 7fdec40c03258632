"""Parameters of a learner by name, as nested parameters of an estimator: ``learner__alpha``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from linmax.core.contract import Rule
from linmax.engine.notation import as_learner
from linmax.learners.base import Description
from linmax.rules import REGISTRY
from linmax.techniques import REGISTRY as TECHNIQUES
from linmax.techniques.technique import PrefixTechnique

PREFIX = "learner__"


def parameters_of(learner: Any) -> dict[str, Any]:
    """The parameters of a rule, or of another learner that has numbers, and the options of techniques before it.

    Where both have the same name, it is the rule's. A combination of several learners has none.

    Examples
    --------
    >>> parameters_of("R-winnow(1.1)")["alpha"]
    1.1
    """
    described, options = as_learner(learner), dict[str, Any]()
    while isinstance(described, PrefixTechnique):
        options = described.options | options
        described = described.base
    if isinstance(described, Rule) and described.name.replace("_", "-") in REGISTRY:
        return options | dict(described.parameters)
    if isinstance(described, Description):
        return options | {field.name: getattr(described, field.name) for field in fields(described)}
    return options


def rule_of(learner: Any) -> Rule:
    """The one rule that a learner is, or that techniques before it run."""
    described = as_learner(learner)
    while isinstance(described, PrefixTechnique):
        described = described.base
    if not isinstance(described, Rule):
        raise ValueError(f"{described} is not one rule")
    return described


def with_parameters(learner: Any, values: Mapping[str, Any]) -> Any:
    """The same learner with other parameters; text stays text.

    Examples
    --------
    >>> with_parameters("A-winnow(1.1)", {"alpha": 1.3})
    'A-winnow(1.3)'
    """
    known = parameters_of(learner)
    strange = [name for name in values if name not in known]
    if strange:
        has = ", ".join(known) or "none"
        raise ValueError(f"learner {str(as_learner(learner))!r} has no parameter {strange[0]!r}; it has: {has}")
    made, left = _changed(as_learner(learner), dict(values))
    assert not left
    return str(made) if isinstance(learner, str) else made


def _changed(described: Any, values: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The learner with those of the values that it or its base takes, and the others."""
    if isinstance(described, PrefixTechnique):
        base, left = _changed(described.base, values)
        own = {name: value for name, value in left.items() if name in described.options}
        technique = TECHNIQUES[described.notation](base, **(described.options | own))
        return technique, {name: left[name] for name in left if name not in own}
    if isinstance(described, Rule) and described.name.replace("_", "-") in REGISTRY:
        own = {name: value for name, value in values.items() if name in described.parameters}
        rule = REGISTRY[described.name.replace("_", "-")](**(dict(described.parameters) | own))
        return replace(rule, rivals=described.rivals), {name: values[name] for name in values if name not in own}
    if isinstance(described, Description):
        own = {name: value for name, value in values.items() if name in {field.name for field in fields(described)}}
        return replace(described, **own), {name: values[name] for name in values if name not in own}
    return described, values
