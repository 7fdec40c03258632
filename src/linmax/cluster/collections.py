"""Dask collections: their partitions as shards, and collections made of what is computed from each partition."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

import numpy as np

from linmax.io.typed_tables import is_table

if TYPE_CHECKING:
    from dask.array import Array
    from dask.bag import Bag
    from dask.dataframe import DataFrame, Series
    from dask.delayed import Delayed
    from pandas import DataFrame as Table
    from scipy.sparse import sparray

__all__ = [
    "Collection",
    "added_columns",
    "as_read",
    "is_collection",
    "is_joint",
    "joined",
    "lazily",
    "partitions",
    "type_of_labels",
]

ROW_PARTS = ("X", "y", "the weights")  # of rows, in this order
Collection: TypeAlias = "Array | Bag | DataFrame | Series"
Part: TypeAlias = "Table | np.ndarray | sparray | Sequence[object]"  # a partition, computed
Argument = TypeVar("Argument")


def is_collection(given: object) -> bool:
    """Return whether the type is a Dask DataFrame, Series, Array or bag; delayed objects have every attribute."""
    return hasattr(type(given), "to_delayed")


def is_joint(given: object) -> bool:
    """Return whether this is (X, y) or (X, y, weights) with a collection in it."""
    return isinstance(given, tuple) and len(given) in (2, 3) and any(map(is_collection, given))


def _is_array(given: object) -> bool:
    return hasattr(given, "numblocks")


def _is_frame(given: object) -> bool:
    """Return whether this has named columns, as frames of pandas and of Dask do."""
    return hasattr(given, "columns") and hasattr(given, "assign")


def partitions(given: Collection | tuple[Collection, ...]) -> list[Delayed]:
    """Return the pieces of a collection, or of (X, y) or (X, y, weights), in order; nothing is computed."""
    if is_joint(given):
        return _joint(*given)
    if _is_array(given):
        raise TypeError("a Dask array has no labels in it; give the pair (X, y), or a DataFrame with a label column")
    if hasattr(given, "to_frame") and not _is_frame(given):
        raise TypeError("a Dask Series is one column; give the pair (X, y), or a DataFrame with a label column")
    return list(cast("Bag", given).to_delayed())


def _joint(x: Collection, *others: Collection) -> list[Delayed]:
    """Return pieces of X joined with those of y and of weights."""
    if not is_collection(x):
        raise TypeError("y is a Dask collection, and X is not; give both, or y.compute()")
    if _is_array(x):
        if x.ndim != 2:
            raise ValueError(f"X must have rows and columns, got {x.ndim} dimensions")
        x = x.rechunk({1: -1})
    elif not _is_frame(x):
        raise TypeError(
            "labels of a bag are in its lines or records; give a bag alone, or X as a DataFrame or an array"
        )
    others = tuple(_like_rows(x, other, role) for other, role in zip(others, ROW_PARTS[1:], strict=False))
    pieces = [x.numblocks[0] if _is_array(x) else x.npartitions]
    pieces += [other.numblocks[0] if _is_array(other) else other.npartitions for other in others]
    for role, many in zip(ROW_PARTS, pieces, strict=False):
        if many != pieces[0]:
            raise ValueError(f"X has {pieces[0]} partitions, {role} has {many}; repartition one of them like the other")
    import dask

    columns = list(added_columns((x, *others)).values())
    # not optimized, so that pieces of X and y name what they are both computed from alike: it is computed once
    parts = [np.ravel(np.array(part.to_delayed(optimize_graph=False), object)).tolist() for part in (x, *others)]
    return [dask.delayed(joined)(*pieces, columns=columns) for pieces in zip(*parts, strict=True)]


def _like_rows(x: Collection, other: Collection, role: str) -> Collection:
    """Return labels or weights in pieces like those of X, if the lengths of these are known."""
    lengths = x.chunks[0] if _is_array(x) else (math.nan,)
    known = not np.isnan(lengths).any()
    if not is_collection(other):
        if not known:
            raise TypeError(
                f"X is a Dask collection with parts of unknown length, and {role} is not; give a Dask Series or array "
                "with the same parts"
            )
        from dask import array

        return array.from_array(np.ravel(np.asarray(other)), chunks=(lengths,))
    _refuse_wide(other, role)
    if _is_array(other) and known and other.chunks[0] != lengths and not np.isnan(other.chunks[0]).any():
        return other.rechunk({0: lengths})
    return other


def _refuse_wide(given: Collection, role: str) -> None:
    if _is_frame(given) and len(given.columns) != 1:
        raise ValueError(
            f"{role} must have one column, got {len(given.columns)}: {', '.join(map(str, given.columns))}; several "
            "DataFrames to learn from go into a list"
        )


def joined(x: Part, *others: Part, columns: Sequence[str] = ()) -> Part | tuple[Part, ...]:
    """Return rows with their labels and weights, as `linmax.stream` reads them."""
    rows = x if hasattr(x, "shape") else np.asarray(x)
    found = []
    for role, given in zip(ROW_PARTS[1:], others, strict=False):
        cells = np.ravel(np.asarray(given))
        if len(cells) != rows.shape[0]:
            raise ValueError(f"a partition of X has {rows.shape[0]} rows, that of {role} {len(cells)}")
        found.append(cells)
    if columns:
        return cast("Table", rows).assign(**dict(zip(columns, found, strict=True)))
    return (rows if hasattr(rows, "tocsr") else np.asarray(rows), *found)


def added_columns(given: Collection | tuple[Collection, ...]) -> dict[str, str]:
    """Return the names of columns for labels and weights that are added to a frame, as options of `linmax.stream`.

    The column of labels has y's name. Arrays have no names.
    """
    if not (isinstance(given, tuple) and len(given) in (2, 3) and _is_frame(given[0])):
        return {}
    x, y, *weights = given
    _refuse_wide(y, ROW_PARTS[1])
    names = list(getattr(y, "columns", [])) or [getattr(y, "name", None)]
    label = "label" if names[0] is None else str(names[0])
    found = {"label": label} | ({"weight": "sample_weight"} if weights else {})
    for option, name in found.items():
        if name in list(map(str, x.columns)):
            named = f"as {'y is called' if option == 'label' else 'the weights will be called'}"
            raise ValueError(f"X has a column {name!r}, {named}: it would learn from it; drop it from X")
    return found


def type_of_labels(given: Collection | tuple[Collection, ...], label: str | None) -> np.dtype | None:
    """Return the type of the labels if they are numbers or bools, so that predictions can have it."""
    labels: Collection | None = None
    if isinstance(given, tuple):
        y = given[1]
        labels = y[y.columns[0]] if _is_frame(y) else y
    elif label is not None and _is_frame(given) and label in list(given.columns):
        labels = given[label]
    if labels is None:
        return None
    kinds = labels.dtype if hasattr(labels, "dtype") else np.asarray(labels).dtype
    kinds = getattr(getattr(kinds, "categories", None), "dtype", kinds)
    kinds = getattr(kinds, "numpy_dtype", kinds)
    return kinds if isinstance(kinds, np.dtype) and kinds.kind in "biuf" else None


def lazily(
    given: Collection, function: Callable[[Part, Argument], Part], argument: Argument, empty: Table | np.ndarray
) -> Collection:
    """Return a lazy collection of ``function(part, argument)`` for each part.

    ``empty`` is the function's result for no rows. A DataFrame gives a Series or a DataFrame with the same partitions,
    which can be assigned to it; an array gives an array, a bag a bag.
    """
    import dask

    shared = dask.delayed(argument, traverse=False, pure=False)
    if _is_array(given):
        rows = given.rechunk({1: -1})
        shape = {"drop_axis": 1} if empty.ndim == 1 else {"chunks": (rows.chunks[0], empty.shape[1:])}
        return rows.map_blocks(function, shared, dtype=empty.dtype, meta=np.asarray(empty), **shape)
    if _is_frame(given):
        return given.map_partitions(function, shared, meta=empty, enforce_metadata=False)
    return given.map_partitions(partial(_of_bag, function), shared)


def _of_bag(function: Callable[[Part, Argument], Part], part: Part, argument: Argument) -> list[object]:
    return list(function(list(part), argument))


def as_read(part: Part) -> Part:
    """Return records, as bags contain them, as lines of JSON, and anything else unchanged.

    Examples
    --------
    >>> as_read([{"x": 1.0, "class": "a"}, {"x": float("nan"), "class": "b"}])
    ['{"x": 1.0, "class": "a"}', '{"class": "b"}']
    """
    if not (isinstance(part, Sequence) and part) or isinstance(part, tuple):  # a pair (X, y) is a tuple
        return part
    if isinstance(part[0], (tuple, float, int)) and not is_table(part[0]):
        raise TypeError(f"a bag holds lines of text or records (dicts), got {type(part[0]).__name__}: {part[0]!r}")
    if not isinstance(part[0], Mapping):
        return part
    import json

    def record(row: object) -> str:
        if not isinstance(row, Mapping):
            raise TypeError(f"a partition holds records and {type(row).__name__} objects; give one kind")
        known = {str(name): cell for name, cell in row.items() if cell is not None and cell == cell}
        return json.dumps(known, default=_plain)

    return [record(row) for row in part]


def _plain(cell: object) -> object:
    return cell.item() if hasattr(cell, "item") else str(cell)
