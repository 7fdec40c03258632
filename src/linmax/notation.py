"""The papers' notation as text: ``parse("winnow(1.1)")`` and what ``str(learner)`` prints."""

from __future__ import annotations

import ast
import difflib
import re
from typing import Any

from linmax.contract import Rule
from linmax.rules import REGISTRY, OwnRule

__all__ = ["as_learner", "parse"]


def parse(text: str) -> Rule:
    """Read a learner from text.

    Examples
    --------
    >>> import linmax
    >>> linmax.parse("Winnow(1.1)")
    <rule winnow(1.1)>
    >>> str(linmax.parse("alma(2.5, alpha=0.9)"))
    'alma(2.5, alpha=0.9)'
    """
    match = re.fullmatch(r"\s*([A-Za-z][A-Za-z0-9_-]*)\s*(?:\((.*)\))?\s*", text, re.DOTALL)
    if not match:
        raise ValueError(f"learner {text!r} cannot be read; write a name and its parameters, such as winnow(1.1)")
    name = match[1].lower().replace("_", "-")
    if name not in REGISTRY:
        near = difflib.get_close_matches(name, REGISTRY, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"unknown learner {match[1]!r}; {hint}known: {', '.join(REGISTRY)}")
    args, kwargs = _arguments(text, match[2])
    try:
        return REGISTRY[name](*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"learner {text!r}: {error}") from None


def _arguments(text: str, inside: str | None) -> tuple[list[Any], dict[str, Any]]:
    """Numbers, names and key=value pairs between brackets; nothing is evaluated but literals."""
    try:
        call = ast.parse(f"f({inside or ''})", mode="eval").body
        assert isinstance(call, ast.Call)
        return [_literal(a) for a in call.args], {str(k.arg): _literal(k.value) for k in call.keywords}
    except (SyntaxError, ValueError, AssertionError):
        raise ValueError(f"learner {text!r}: the parameters {inside!r} cannot be read; write numbers, such as (1.1)") from None


def _literal(node: ast.expr) -> Any:
    return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)


def as_learner(learner: Any) -> Rule:
    """A learner from whatever a user may write for one: a description, a rule of their own, or text."""
    if isinstance(learner, Rule):
        return learner
    if isinstance(learner, OwnRule):
        return learner()
    if isinstance(learner, str):
        return parse(learner)
    if callable(learner) and learner in REGISTRY.values():
        raise TypeError(f"learner must be a rule, got the function {learner.__name__}; call it: {learner.__name__}(...)")
    raise TypeError(f"learner must be a rule or text such as 'winnow(1.1)', got {learner!r}")
