"""The public names: what users type after ``linmax.``, modules opened."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import linmax

__all__ = ["DESCRIPTIONS", "missing_parts", "public_names", "untyped_parts"]

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


def untyped_parts(value: Any) -> Iterator[str]:
    """Annotations of a class, its public methods, or a function that contain `Any`: "name: annotation"."""
    functions = {"": value} if inspect.isroutine(value) else dict(_methods(value))
    if inspect.isclass(value):
        functions[""] = value
    for method, function in functions.items():
        for name, annotation in getattr(function, "__annotations__", {}).items():
            public = inspect.isroutine(function) or not name.startswith("_")
            if public and re.search(r"\bAny\b", str(annotation)):
                yield f"{method}({name}: {annotation})"


def _methods(owner: type) -> Iterator[tuple[str, Any]]:
    own = [base for base in owner.__mro__ if base.__module__.startswith("linmax")]
    for base in reversed(own):
        for name, member in vars(base).items():
            if not name.startswith("_") or name == "__init__":
                member = member.fget if isinstance(member, property) else member
                yield name, inspect.unwrap(getattr(member, "__func__", member))


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
