"""Dask collections: their partitions as shards, and collections made of what is computed from each partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["is_collection", "is_pair", "label_of", "lazily", "partitions", "type_of_labels"]


def is_collection(given: Any) -> bool:
    """Whether this is a Dask DataFrame, Series, Array or bag. Asks its type: a delayed object has every attribute."""
    return hasattr(type(given), "to_delayed")


def is_pair(given: Any) -> bool:
    """Whether this is (X, y), both of them collections."""
    return isinstance(given, tuple) and len(given) == 2 and all(map(is_collection, given))


def _is_array(given: Any) -> bool:
    return hasattr(given, "numblocks")


def _is_frame(given: Any) -> bool:
    return hasattr(given, "columns") and hasattr(given, "npartitions")


def partitions(given: Any) -> list[Any]:
    """The pieces of a collection, or of a pair (X, y), in order; nothing is computed."""
    if is_pair(given):
        return _pairs(*given)
    if _is_array(given):
        raise TypeError("a Dask array has no labels in it; give the pair (X, y), or a DataFrame with a label column")
    return list(given.to_delayed())


def _pairs(x: Any, y: Any) -> list[Any]:
    import dask

    if _is_array(x):
        if x.ndim != 2:
            raise ValueError(f"X must have rows and columns, got {x.ndim} dimensions")
        x = x.rechunk({1: -1})
        if _is_array(y) and y.chunks[0] != x.chunks[0] and not np.isnan([*x.chunks[0], *y.chunks[0]]).any():
            y = y.rechunk({0: x.chunks[0]})
        xs = [row[0] for row in x.to_delayed()]
    else:
        xs = list(x.to_delayed())
    ys = np.ravel(np.array(y.to_delayed(), dtype=object)).tolist()
    if len(xs) != len(ys):
        raise ValueError(f"X has {len(xs)} partitions, y has {len(ys)}; repartition one of them like the other")
    label = label_of((x, y))
    return [dask.delayed(paired)(rows, labels, label) for rows, labels in zip(xs, ys, strict=True)]


def paired(x: Any, y: Any, label: str | None) -> Any:
    """Rows with their labels, as `linmax.stream` reads them."""
    labels = np.ravel(np.asarray(y))
    if len(labels) != x.shape[0]:
        raise ValueError(f"a partition of X has {x.shape[0]} rows, that of y {len(labels)}")
    if label is None:
        return (x if hasattr(x, "tocsr") else np.asarray(x)), labels
    return x.assign(**{label: labels})


def label_of(given: Any) -> str | None:
    """The column that the labels of a pair with a DataFrame get: y's name; None for arrays and for what is no pair."""
    if not is_pair(given) or not _is_frame(given[0]):
        return None
    x, y = given
    names = list(getattr(y, "columns", [])) or [getattr(y, "name", None)]
    label = "label" if names[0] is None else str(names[0])
    if label in list(x.columns):
        raise ValueError(f"X has a column {label!r}, as y is called: it would learn from the label; drop it from X")
    return label


def type_of_labels(given: Any, label: str | None) -> np.dtype | None:
    """The type of the labels if they are numbers, to give predictions back in it."""
    kinds = given[1].dtype if is_pair(given) else None
    if kinds is None and label is not None and _is_frame(given) and label in list(given.columns):
        kinds = given.dtypes[label]
    return kinds if isinstance(kinds, np.dtype) and kinds.kind in "iuf" else None


def lazily(given: Any, function: Callable[..., Any], argument: Any, empty: Any) -> Any:
    """A collection of ``function(argument, part)`` for each part, which is computed when it is asked for.

    ``empty`` is what the function would return for no rows. Of a DataFrame comes a Series or a DataFrame, of an array
    an array, of a bag a bag.
    """
    import dask

    told = dask.delayed(argument, traverse=False)
    apply = dask.delayed(function)
    if _is_array(given):
        from dask import array

        blocks = [row[0] for row in given.rechunk({1: -1}).to_delayed()]
        shapes = [(rows, *empty.shape[1:]) for rows in given.chunks[0]]
        parts = [
            array.from_delayed(apply(told, block), shape, dtype=empty.dtype)
            for block, shape in zip(blocks, shapes, strict=True)
        ]
        return array.concatenate(parts)
    parts = [apply(told, part) for part in given.to_delayed()]
    if _is_frame(given):
        import pandas as pd
        from dask import dataframe

        meta = pd.Series(empty) if empty.ndim == 1 else pd.DataFrame(empty)
        return dataframe.from_delayed(parts, meta=meta, divisions=given.divisions, verify_meta=False)
    from dask import bag

    return bag.from_delayed(parts)
