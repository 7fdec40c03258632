"""The public names: what users type after ``linmax.``, modules opened."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import linmax

__all__ = ["DESCRIPTIONS", "missing_parts", "public_names"]

# What a learner is described by. Functions that make one return it, which the site says for all of them.
DESCRIPTIONS = {"Rule", "Averaged", "Recycled", "Voted", "Combined", "Stacked", "Selected", "Explored"}
DESCRIPTIONS |= {"Softmax", "RobustSoftmax", "NaiveBayes", "RecentLabel"}

NOT_IN_ALL = {"river"} if importlib.util.find_spec("river") else set()  # needs an extra


def public_names() -> Iterator[tuple[str, Any]]:
    """Each public name, such as "rules.perceptron", with what it is."""
    yield from _names_in(linmax, "", {*linmax.__all__, *NOT_IN_ALL} - {"__version__"})


def _names_in(module: ModuleType, prefix: str, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    for name in sorted(names):
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            yield from _names_in(value, f"{prefix}{name}.", value.__all__)
        else:
            yield prefix + name, value


def missing_parts(value: Any) -> list[str]:
    """What the docstring of a class or function does not have."""
    text = inspect.getdoc(value) or ""
    try:
        signature = inspect.signature(value)
    except ValueError:
        return ["signature"]
    arguments = [name for name in signature.parameters if name not in ("self", "args", "kwargs")]
    nothing = {None, "None", inspect.Signature.empty, *DESCRIPTIONS}
    returns = not inspect.isclass(value) and signature.return_annotation not in nothing
    made = inspect.isclass(value) and "Attributes\n----------" in text  # made by the library, not by users
    checks = {
        "Parameters": not arguments or made or "Parameters\n----------" in text,
        "Returns": not returns or "Returns\n-------" in text or "Yields\n------" in text,
        "Examples": ">>> " in text,
        "References": any(mark in text for mark in ("References\n------", "See Also\n------", "Source: ")),
    }
    return [part for part, there in checks.items() if not there]
