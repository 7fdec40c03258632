"""Arrays under names such as "part.name": how the states of the parts of a model are kept together.

Whoever takes over a state copies its arrays, since they may be those of a model at work. Arrays that were just read
from a file are `Handed` over instead, so that there is never a second copy of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

__all__ = ["Handed", "apart", "handed_over", "taken"]


class Handed(dict[str, np.ndarray]):
    """Arrays that nobody else needs: whoever uses one takes it out."""


def handed_over(arrays: dict[str, np.ndarray]) -> Handed:
    """The arrays of a dict, which is empty then."""
    found = Handed(arrays)
    arrays.clear()
    return found


def taken(arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """An array to keep: itself if it is handed over, else a copy."""
    return arrays.pop(name) if isinstance(arrays, Handed) else arrays[name].copy()


def apart(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Arrays named "part.name", by part; those with a plain name are the part "". Those handed over are so again.

    Examples
    --------
    >>> apart({"a.x": np.zeros(1), "a.y.z": np.zeros(2), "b": np.zeros(3)}).keys()
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
