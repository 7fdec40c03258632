"""Instances ``{name: strength}`` over attributes that are not known beforehand: conjunctions, and sparse rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from linmax.data.features.terms import AND, escape
from linmax.data.features.values import check_strength
from linmax.util.checks import whole
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = ["conjunctions_of", "pack"]

Name = TypeVar("Name", bound=Hashable)


def conjunctions_of(instance: Mapping[str, float], k: int) -> dict[str, float]:
    """Make every conjunction of 1 to k attributes of one instance ``{name: strength}`` a feature.

    The strength of a conjunction is the product of its members' strengths; an attribute that is absent or
    has strength 0 is in none. The name joins the members in alphabetical order with " & " (a "&", "~" or
    backslash inside a name is marked by a backslash), so the same conjunction always has the same name.

    Parameters
    ----------
    instance
        Finite strengths by name.
    k
        Most attributes in a conjunction.

    Returns
    -------
    dict
        Strengths by name of the conjunction, short ones first.

    See Also
    --------
    conjunctions : the same for arrays.

    Examples
    --------
    >>> conjunctions_of({"red": 1, "large": 0.5, "round": 0}, 2)
    {'large': 0.5, 'red': 1.0, 'large & red': 0.5}
    """
    k = whole("k", k, 1)
    if not isinstance(instance, Mapping):
        raise TypeError(f"instance must be a dict {{name: strength}}, got {instance!r}; try {{'a': 1.0}}")
    active: list[tuple[str, float]] = []
    for name, value in instance.items():
        if not isinstance(name, str):
            raise TypeError(f"the names of an instance must be strings, got {name!r}; try str({name!r})")
        strength = check_strength(name, value)
        if strength != 0.0:
            active.append((name, strength))
    active.sort()
    result: dict[str, float] = {}
    for size in range(1, min(k, len(active)) + 1):
        for members in combinations(active, size):
            term = AND.join(escape(name) for name, _ in members)
            result[term] = math.prod(strength for _, strength in members)
            if math.isinf(result[term]):
                raise ValueError(f"the strength of {term!r} must be finite, got {result[term]}; scale the strengths")
    return result


def pack(
    instances: Iterable[Mapping[Name, float]], vocabulary: Mapping[Name, int] | None = None
) -> tuple[Any, dict[Name, int]]:
    """Turn instances ``{name: strength}`` into sparse rows, giving each new name the next free column.

    Parameters
    ----------
    instances
        Finite strengths by name; a strength of 0 counts as absent.
    vocabulary
        Columns of the names known so far, 0..len-1; it is left as it is.

    Returns
    -------
    rows : CSR array (instances, names)
        The strengths.
    vocabulary : dict
        The columns of all names, old and new, to be given again with the next instances.

    See Also
    --------
    linmax.experts : takes dicts of attributes directly.

    Examples
    --------
    >>> rows, vocabulary = pack([{"red": 1, "round": 0.5}, {"large": 1}])
    >>> rows, vocabulary = pack([{"round": 1, "blue": 2}], vocabulary)
    >>> vocabulary
    {'red': 0, 'round': 1, 'large': 2, 'blue': 3}
    >>> rows.toarray()
    array([[0., 1., 0., 2.]])
    """
    if isinstance(instances, Mapping):
        raise TypeError("instances must be a list of dicts, got one dict; put it into a list")
    columns: dict[Name, int] = dict(vocabulary or {})
    if set(columns.values()) != set(range(len(columns))):
        raise ValueError(
            f"vocabulary must give its {len(columns)} names the columns 0..{len(columns) - 1}, each once, "
            f"got {sorted(columns.values())[:10]}; number them again"
        )
    starts, indices, strengths = [0], [], []
    for position, instance in enumerate(instances):
        if not isinstance(instance, Mapping):
            raise TypeError(
                f"instances[{position}] must be a dict {{name: strength}}, got {instance!r}; try {{'a': 1.0}}"
            )
        for name, value in instance.items():
            strength = check_strength(name, value)
            if strength != 0.0:
                indices.append(columns.setdefault(name, len(columns)))
                strengths.append(strength)
        starts.append(len(indices))
    shape = (len(starts) - 1, len(columns))
    rows = sparse.csr_array(
        (np.array(strengths, dtype=np.float64), np.array(indices, dtype=np.int64), starts), shape=shape
    )
    rows.sort_indices()
    return rows, columns
