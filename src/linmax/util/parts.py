"""Arrays under names such as "part.name", by which a model stores the states of its parts together.

A model that takes over a state copies the arrays, since they may belong to a model at work. Arrays that were just read
from a file are `Handed` over instead, so that memory never holds them twice.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

__all__ = ["Handed", "by_part", "handed_over", "taken"]


class Handed(dict[str, np.ndarray]):
    """Arrays without another user: `taken` removes each one."""


def handed_over(arrays: dict[str, np.ndarray]) -> Handed:
    """Move the arrays of a dict to `Handed`."""
    found = Handed(arrays)
    arrays.clear()
    return found


def taken(arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """Return an array to store: itself if it is handed over, else a copy."""
    return arrays.pop(name) if isinstance(arrays, Handed) else arrays[name].copy()


def by_part(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Group arrays named "part.name" by part; plain names belong to the part "". Arrays that are handed over stay so.

    Examples
    --------
    >>> by_part({"a.x": np.zeros(1), "a.y.z": np.zeros(2), "b": np.zeros(3)}).keys()
    dict_keys(['a', ''])
    """
    parts: dict[str, dict[str, np.ndarray]] = {}
    for name in list(arrays):
        part, dot, rest = name.partition(".")
        if isinstance(arrays, Handed):
            parts.setdefault(part if dot else "", Handed())[rest if dot else name] = arrays.pop(name)
        else:
            parts.setdefault(part if dot else "", {})[rest if dot else name] = arrays[name]
    return parts
