"""Parameters of a learner as nested parameters of an estimator: ``learner__alpha``."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any, Self

from linmax.core.contract import Rule
from linmax.engine.notation import as_learner
from linmax.learners.base import Description, scales_attributes
from linmax.rules import REGISTRY
from linmax.techniques import REGISTRY as TECHNIQUES
from linmax.techniques.technique import LearnerLike, PrefixTechnique

__all__ = ["DEFAULT_LEARNER", "LearnerParameters", "parameters_of", "scale_for", "with_parameters"]

DEFAULT_LEARNER = "auto"
PREFIX = "learner__"


class LearnerParameters:
    """Parameters of the learner among those of an estimator."""

    learner: LearnerLike

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; if ``deep``, also those of the learner, as ``learner__alpha``."""
        params = dict(super().get_params(deep=deep))  # type: ignore[misc]
        if deep:
            with suppress(TypeError, ValueError):  # `fit` refuses such a learner
                params |= {PREFIX + name: value for name, value in parameters_of(self.learner).items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``learner__alpha=1.2`` sets one of the learner."""
        nested = {name.removeprefix(PREFIX): params.pop(name) for name in [*params] if name.startswith(PREFIX)}
        super().set_params(**params)  # type: ignore[misc]
        if nested:
            self.learner = with_parameters(self.learner, nested)
        return self


def scale_for(learner: LearnerLike, scale: str | None) -> str:
    """Return the scale of attributes; by default the pools scale them themselves, and "max" is for other learners."""
    if scale is not None:
        return scale
    return "none" if scales_attributes(as_learner(learner)) else "max"


def parameters_of(learner: LearnerLike) -> dict[str, Any]:
    """Return the parameters of a rule or pool, and the options of the techniques around it.

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
    return options | _settings(described)


def with_parameters(learner: LearnerLike, values: Mapping[str, Any]) -> LearnerLike:
    """Return the learner with other parameters; text stays text.

    Examples
    --------
    >>> with_parameters("A-winnow(1.1)", {"alpha": 1.3})
    'A-winnow(1.3)'
    """
    known = parameters_of(learner)
    unknown = [name for name in values if name not in known]
    if unknown:
        names = ", ".join(known) or "none"
        raise ValueError(f"learner {str(as_learner(learner))!r} has no parameter {unknown[0]!r}; it has: {names}")
    changed = _changed(as_learner(learner), dict(values))
    return str(changed) if isinstance(learner, str) else changed


def _settings(described: Any) -> dict[str, Any]:
    """Return the parameters of a learner that no technique surrounds."""
    if isinstance(described, Rule):
        return dict(described.parameters) if described.name.replace("_", "-") in REGISTRY else {}
    if isinstance(described, Description) and not described.scales_attributes:  # the pools have nothing to tune
        return {field.name: getattr(described, field.name) for field in fields(described)}
    return {}


def _changed(described: Any, values: dict[str, Any]) -> Any:
    """Return the learner with new values, taking those that it uses out of ``values``, the innermost learner first."""
    if isinstance(described, PrefixTechnique):
        base = _changed(described.base, values)
        options = {name: values.pop(name, value) for name, value in described.options.items()}
        return TECHNIQUES[described.notation](base, **options)
    settings = {name: values.pop(name, value) for name, value in _settings(described).items()}
    if not settings:
        return described
    if isinstance(described, Rule):
        return replace(REGISTRY[described.name.replace("_", "-")](**settings), rivals=described.rivals)
    return replace(described, **settings)
