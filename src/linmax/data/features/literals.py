"""Attributes appended to given ones: the constant, and negations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from linmax.data.features.values import check_values, rows_of
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = ["constant", "negated_literals"]


def constant(x: Any) -> Any:
    """Append the constant attribute 1: a weight on it acts as a threshold.

    Parameters
    ----------
    x
        Finite values, (rows, attributes), dense or sparse.

    Returns
    -------
    float64 array or CSR array (rows, attributes + 1)
        Sparse when x is; the constant is the last column.

    See Also
    --------
    linmax.experts : adds a threshold for each class by itself.

    Examples
    --------
    >>> constant([[0, 2], [3, 0]])
    array([[0., 2., 1.],
           [3., 0., 1.]])
    """
    x = rows_of(x)
    check_values(x, np.isfinite, "finite", "replace or drop missing values")
    ones = np.ones((x.shape[0], 1))
    if sparse.issparse(x):
        return sparse.hstack([x, sparse.csr_array(ones)], format="csr")
    return np.hstack([x, ones])


def negated_literals(x: Any, domain: Literal["unit", "signed"] = "unit") -> Any:
    """Append the negation of every attribute, so that positive weights can count against it.

    ``domain="unit"``: [x, 1 - x] for x in [0, 1], what Winnow with a threshold needs; about half of the
    features are then active, so sparse rows do not stay sparse. ``domain="signed"``: [x, -x] for x in [-1,
    1], what multiplicative rules with threshold zero need; a zero stays zero. Balanced Winnow does the
    second by itself.

    Parameters
    ----------
    x
        Values in the domain, (rows, n), dense or sparse.
    domain
        "unit" or "signed".

    Returns
    -------
    float64 array or CSR array (rows, 2 n)
        Sparse when x is; column n + i is the negation of column i.

    References
    ----------
    Littlestone (1988), Learning quickly when irrelevant attributes abound, section 5.

    Examples
    --------
    >>> negated_literals([[0, 1]])
    array([[0., 1., 1., 0.]])
    >>> negated_literals([[0.5, -1]], domain="signed")
    array([[ 0.5, -1. , -0.5,  1. ]])
    """
    if domain not in ("unit", "signed"):
        raise ValueError(f"domain must be 'unit' or 'signed', got {domain!r}; try 'unit'")
    x = rows_of(x)
    if domain == "signed":
        check_values(x, lambda v: np.abs(v) <= 1, "from -1 to 1", "try x / abs(x).max()")
        negated = 0.0 - x if isinstance(x, np.ndarray) else -x  # 0 - 0, since -0 prints as such
    else:
        check_values(x, lambda v: (v >= 0) & (v <= 1), "from 0 to 1", "try (x - x.min()) / (x.max() - x.min())")
        negated = sparse.csr_array(1.0 - x.toarray()) if sparse.issparse(x) else 1.0 - x
    if sparse.issparse(x):
        return sparse.hstack([x, negated], format="csr")
    return np.hstack([x, negated])
