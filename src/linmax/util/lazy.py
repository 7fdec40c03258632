"""Modules that are imported when they are first used.

SciPy takes as long to import as everything else that ``linmax learn`` needs, which makes no use of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Later"]


class Later:
    """Stands for a module until something of it is wanted.

    Examples
    --------
    >>> calendar = Later("calendar")
    >>> calendar.isleap(2024)
    True
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)

    def __repr__(self) -> str:
        return f"<{self._name}, later>"
