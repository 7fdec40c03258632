"""Arrays under names such as "part.name": how the states of the parts of a model are kept together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

__all__ = ["apart"]


def apart(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """Arrays named "part.name", by part; those with a plain name are the part "".

    Examples
    --------
    >>> apart({"a.x": np.zeros(1), "a.y.z": np.zeros(2), "b": np.zeros(3)}).keys()
    dict_keys(['a', ''])
    """
    parts: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        part, dot, rest = name.partition(".")
        parts.setdefault(part if dot else "", {})[rest if dot else name] = array
    return parts
