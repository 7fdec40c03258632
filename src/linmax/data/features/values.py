"""Checks of what the feature maps are given: matrices, and strengths by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = ["check_strength", "check_values", "rows_of"]


def rows_of(x: Any) -> Any:
    """Return x as float64 of its own kind: a dense array, or a CSR array without duplicates or zeros."""
    is_sparse = sparse.issparse(x)
    try:
        matrix = x if is_sparse else np.asarray(x)
    except ValueError:
        raise ValueError("x must be a matrix, got rows of different lengths; make them equally long") from None
    if matrix.ndim != 2:
        raise ValueError(
            f"x must have two dimensions (rows, attributes), got shape {matrix.shape}; "
            "try x.reshape(1, -1) for a single row"
        )
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"x must hold numbers, got dtype {matrix.dtype}; try x.astype(float)")
    if not is_sparse:
        return matrix.astype(np.float64, copy=False)
    rows = sparse.csr_array(matrix, dtype=np.float64, copy=True)  # a copy: the next lines work in place
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def check_values(x: Any, allowed: Callable[[np.ndarray], np.ndarray], must: str, remedy: str) -> None:
    """Raise a ValueError that names the first value of x that is not allowed."""
    values = x.data if sparse.issparse(x) else x
    wrong = ~allowed(values)
    if not wrong.any():
        return
    if sparse.issparse(x):
        place = int(np.argmax(wrong))
        row, column = int(np.searchsorted(x.indptr, place, side="right")) - 1, int(x.indices[place])
        value = x.data[place]
    else:
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        value = x[row, column]
    raise ValueError(f"x must be {must}, got {value:g} in row {row}, column {column}; {remedy}")


def check_strength(name: Hashable, value: Any) -> float:
    if not isinstance(value, Real | np.bool_):
        raise TypeError(f"the strength of {name!r} must be a number, got {value!r}; try 1.0")
    strength = float(value)
    if not math.isfinite(strength):
        raise ValueError(
            f"the strength of {name!r} must be finite, got {strength}; leave the attribute out or give 1.0"
        )
    return strength
