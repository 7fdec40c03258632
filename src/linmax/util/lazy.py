"""Modules that are imported when they are first used.

Importing SciPy takes as long as importing everything that ``linmax learn`` needs, which does not use SciPy.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

__all__ = ["LazyModule"]


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
