"""Pairs of attributes that are asked for: the products of two groups' attributes, as attributes of their own.

A group is a namespace of Vowpal Wabbit's text, a column of a table, a key of JSON, or an attribute: ``a`` means the
attributes ``a``, ``a^...`` and ``a=...``. ``a:b`` asks for each attribute of a with each of b, ``a:a`` for those within
a, and ``all`` for all pairs. A pair is called ``first*second``. `linmax.stream` makes them as it reads (``pairs=``);
here they are made of one instance by name and of arrays, for every other face.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.data.features.values import check_strength, rows_of
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = ["ALL", "belongs", "checked_pairs", "pairs", "pairs_of"]

ALL = "all"
MOST_GROUPS = 62
MOST_PRODUCTS = 1 << 20  # columns of products


def checked_pairs(asked: Sequence[str]) -> tuple[str, ...]:
    """Return the pairs in one spelling.

    Examples
    --------
    >>> checked_pairs(["title:body", "body:title", "title:title"])
    ('title:body', 'title:title')
    >>> checked_pairs(["title:body", "all"])
    ('all',)
    """
    if isinstance(asked, str):
        raise TypeError(f"pairs must be a list such as ['a:b'], got the text {asked!r}")
    found: list[str] = []
    for pair in asked:
        if pair == ALL:
            return (ALL,)
        first, colon, second = pair.partition(":")
        if not (first and colon and second) or ":" in second:
            raise ValueError(f"pairs: {pair!r} names no two groups of attributes; write a:b, or all")
        if f"{first}:{second}" not in found and f"{second}:{first}" not in found:
            found.append(f"{first}:{second}")
    if len({group for pair in found for group in pair.split(":")}) > MOST_GROUPS:
        raise ValueError(f"pairs: more than {MOST_GROUPS} groups; ask for fewer, or for all")
    return tuple(found)


def belongs(name: str, group: str) -> bool:
    """Return whether an attribute of this name is in the group."""
    return name == group or name.startswith((f"{group}^", f"{group}="))


def _ways(names: Sequence[str], asked: Sequence[str]) -> list[tuple[int, int]]:
    """The places of the two attributes of each pair that is asked for; of equal rank the first comes first."""
    found: dict[frozenset[int], tuple[int, int]] = {}
    for pair in checked_pairs(asked):
        if pair == ALL:
            return list(combinations(range(len(names)), 2))
        first, second = ([i for i, name in enumerate(names) if belongs(name, group)] for group in pair.split(":"))
        both = set(first) & set(second)
        for a in first:
            for b in second:
                if a != b:
                    swapped = a > b and a in both and b in both
                    found.setdefault(frozenset((a, b)), (b, a) if swapped else (a, b))
    return sorted(found.values(), key=sorted)


def pairs_of(instance: Mapping[str, float], asked: Sequence[str]) -> dict[str, float]:
    """One instance ``{name: number}`` with the products of the pairs that are asked for.

    Parameters
    ----------
    instance
        Finite numbers by name; an attribute of value 0 is in no pair.
    asked
        Groups of attributes such as ``["title:body", "user:user"]``, or ``["all"]``, as `linmax.stream` takes them.

    Returns
    -------
    dict
        The instance and its pairs, called ``first*second``: in the order asked for, and in alphabetical order where
        either order is.

    See Also
    --------
    pairs : the same for arrays.

    Examples
    --------
    >>> pairs_of({"user=ann": 1.0, "item=tea": 1.0, "hour": 9.0}, ["user:item"])
    {'user=ann': 1.0, 'item=tea': 1.0, 'hour': 9.0, 'user=ann*item=tea': 1.0}
    >>> import linmax
    >>> learner = linmax.Learner("perceptron")
    >>> _ = learner.learn(pairs_of({"a": 1.0, "b": 2.0}, ["all"]), label="yes")
    """
    if not isinstance(instance, Mapping):
        raise TypeError(f"instance must be a dict {{name: number}}, got {instance!r}; try {{'a': 1.0}}")
    found = {name: check_strength(name, value) for name, value in instance.items()}
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"the names of an instance must be strings, got {name!r}; try str({name!r})")
    names = sorted(name for name, value in found.items() if value != 0.0)
    for a, b in _ways(names, asked):
        pair = f"{names[a]}*{names[b]}"
        if pair in instance:
            raise ValueError(f"the attribute {pair!r} is there already, and is also the name of a pair; rename it")
        found[pair] = found[names[a]] * found[names[b]]
        if math.isinf(found[pair]):
            raise ValueError(f"the product {pair!r} must be finite, got {found[pair]}; scale the attributes")
    return found


def pairs(x: Any, asked: Sequence[str] = (ALL,), names: Sequence[str] | None = None) -> Any:
    """The columns of a matrix and, to the right of them, the products of the pairs that are asked for.

    Parameters
    ----------
    x
        Numbers (rows, attributes), dense, sparse or a table with names of columns.
    asked
        Groups of attributes such as ``["age:income"]``, or ``["all"]``.
    names
        Names of the columns; those of the table, or 0, 1, ... when not given.

    Returns
    -------
    array, or CSR array if x is sparse
        The products stand in the order of their columns.

    See Also
    --------
    pairs_of : the same for one instance by name.

    Examples
    --------
    >>> pairs([[1.0, 2.0, 3.0]], ["0:2"])
    array([[1., 2., 3., 3.]])

    Before an estimator of scikit-learn:

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> import linmax
    >>> added = FunctionTransformer(pairs, kw_args={"asked": ["0:1"]})
    >>> model = make_pipeline(added, linmax.LinearMaxClassifier("perceptron"))
    >>> model.fit([[1, 1], [1, -1], [-1, 1], [-1, -1]] * 5, [1, 0, 0, 1] * 5).score([[2, 1], [-1, 3]], [1, 0])
    1.0
    """
    if names is None and hasattr(x, "columns"):
        names = [str(name) for name in x.columns]
    rows = rows_of(x)
    columns = [str(i) for i in range(rows.shape[1])] if names is None else [str(name) for name in names]
    if len(columns) != rows.shape[1]:
        raise ValueError(f"names must have one for each of {rows.shape[1]} columns, got {len(columns)}")
    if checked_pairs(asked) == (ALL,) and len(columns) * (len(columns) - 1) // 2 > MOST_PRODUCTS:
        raise ValueError(
            f"pairs: all of {len(columns):,} columns are too many; name those that matter, as in a:b, or read the rows "
            "by linmax.stream(pairs=['all']), which makes only those that occur"
        )
    ways = np.array(_ways(columns, asked), np.int64).reshape(-1, 2)
    first, second = rows[:, ways[:, 0]], rows[:, ways[:, 1]]
    if sparse.issparse(rows):
        return sparse.hstack([rows, first.multiply(second)], format="csr")
    return np.hstack([rows, first * second])
