"""Modules and names that are imported when they are first used.

Importing SciPy takes as long as importing everything that ``linmax learn`` needs, which does not use SciPy.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from types import MappingProxyType
from typing import Any

__all__ = ["LazyModule", "names_of"]


def names_of(
    package: str, homes: Mapping[str, str], public: Sequence[str], renamed: Mapping[str, str] = MappingProxyType({})
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose names live in modules of linmax, or are modules of it.

    ``renamed`` maps former names to the present ones; using a former name warns.

    Examples
    --------
    >>> get, listed = names_of("linmax", {"rule": "rules.custom"}, ["rule", "rules"])
    >>> get("rule").__module__, listed()
    ('linmax.rules.custom', ['rule', 'rules'])
    """
    namespace = vars(sys.modules[package])

    def get(name: str) -> Any:
        if name in homes:
            value = getattr(import_module(f"linmax.{homes[name]}"), name)
        elif not name.startswith("_") and find_spec(f"{package}.{name}") is not None:
            value = import_module(f"{package}.{name}")
        elif name in renamed:
            warnings.warn(f"{package}.{name} is now {package}.{renamed[name]}", DeprecationWarning, stacklevel=2)
            return attrgetter(renamed[name])(sys.modules[package])
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        namespace[name] = value
        return value

    return get, lambda: sorted(public)


class LazyModule:
    """A stand-in for a module, which is imported when an attribute is first used.

    Examples
    --------
    >>> calendar = LazyModule("calendar")
    >>> calendar.isleap(2024)
    True
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(sys.modules.get(self._name) or import_module(self._name), attribute)

    def __repr__(self) -> str:
        return f"<{self._name}, later>"
