"""Every conjunction of the true literals of a row, for attributes known beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.data.features.terms import LARGEST_NUMBER, Terms, count_table
from linmax.data.features.values import check_values, rows_of
from linmax.jit.compiling import kernel
from linmax.util.checks import whole
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = ["conjunctions"]


def _true_literals(x: Any, negated: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The literals true in each row, as in CSR: starts, variables (rising in a row), signs (1 = negated)."""
    rows, n = x.shape
    if negated:  # each variable has exactly one true literal
        dense = x.toarray() if sparse.issparse(x) else x
        return n * np.arange(rows + 1), np.tile(np.arange(n), rows), (dense == 0).ravel().astype(np.int64)
    if sparse.issparse(x):
        starts, variables = x.indptr.astype(np.int64), x.indices.astype(np.int64)
    else:
        variables = np.nonzero(x)[1]
        starts = np.concatenate([[0], np.cumsum(np.count_nonzero(x, axis=1))])
    return starts, variables, np.zeros(variables.size, dtype=np.int64)


@kernel(allocates=True)
def _enumerate(starts, variables, signs, table, scratch, begin, columns):  # type: ignore[no-untyped-def]
    """Write the columns of each row's true terms, in rising order, from ``columns[begin[row]]`` on.

    Adding a literal to the list of terms of at most j literals appends the literal alone and the literal
    for each term of at most j - 1 literals so far; ``scratch[j]`` keeps the shorter lists.
    """
    k = table.shape[1] - 1
    sizes = np.zeros(k + 1, np.int64)
    for row in range(starts.size - 1):
        sizes[:] = 0
        for place in range(starts[row], starts[row + 1]):
            v, sign = variables[place], signs[place]
            for j in range(k, 0, -1):  # downwards: the list of j - 1 must not have this literal yet
                alone = table[v, j] + sign * (1 + table[v, j - 1])
                shorter = sizes[j - 1]
                if j == k:
                    end = begin[row] + sizes[k]
                    columns[end] = alone
                    for i in range(shorter):
                        columns[end + 1 + i] = alone + 1 + scratch[j - 1, i]
                else:
                    end = sizes[j]
                    scratch[j, end] = alone
                    for i in range(shorter):
                        scratch[j, end + 1 + i] = alone + 1 + scratch[j - 1, i]
                sizes[j] += 1 + shorter


def conjunctions(x: Any, k: int, negated: bool = False, names: Sequence[str] | None = None) -> tuple[Any, Terms]:
    """Make every conjunction of 1 to k literals a feature.

    A feature is the product of its literals, which are variables (and with ``negated`` also their
    negations) over distinct variables. Only subsets of the literals true in a row are enumerated, so a row
    with t of them costs sum_{j=1}^{k} C(t, j), however many features there are. With ``negated`` each
    variable has one true literal, t = n. The constant for the empty term is left to `constant` (learners
    add thresholds by themselves).

    Parameters
    ----------
    x
        0 or 1 in every place, (rows, n), dense or sparse.
    k
        Most literals in a conjunction.
    negated
        Whether negated literals take part.
    names
        Names of the n variables; x0, x1, ... when not given.

    Returns
    -------
    features : CSR array of 0 and 1 (rows, count_conjunctions(n, k, negated))
        The same term is always in the same column (the numbering is in `Terms`), also when n has grown.
    terms : Terms
        The name of each column, for instance "x0 & ~x2"; a lazy list.

    References
    ----------
    Valiant (1984), A theory of the learnable; Littlestone (1988), section 5.

    Examples
    --------
    XOR is no linear function of two variables, but one of their 2-conjunctions:

    >>> features, terms = conjunctions([[0, 0], [0, 1], [1, 0], [1, 1]], 2, negated=True, names=["a", "b"])
    >>> features.shape
    (4, 8)
    >>> [[terms[c] for c in features[[row]].indices] for row in (1, 2)]
    [['~a', 'b', '~a & b'], ['a', '~b', 'a & ~b']]
    """
    k = whole("k", k, 1)
    x = rows_of(x)
    if x.shape[1] == 0:
        raise ValueError(f"x must have at least one column, got shape {x.shape}; add attributes")
    check_values(x, lambda v: (v == 0) | (v == 1), "0 or 1", "try x > 0.5")
    terms = Terms(x.shape[1], k, negated, names)
    starts, variables, signs = _true_literals(x, negated)
    active = np.diff(starts)
    most = int(active.max(initial=0))
    subsets = count_table(most, terms.k, 1)
    lengths = subsets[active, terms.k]
    stored = float(lengths.sum(dtype=np.float64))  # a float: whole numbers could wrap around
    if stored > LARGEST_NUMBER / 16:
        raise ValueError(f"k must be smaller: k = {k} makes {stored:.3g} true conjunctions; try {max(1, k - 1)}")
    begin = np.concatenate([[0], np.cumsum(lengths)])
    wide = max(len(terms), stored) > np.iinfo(np.int32).max
    columns = np.empty(int(begin[-1]), dtype=np.int64 if wide else np.int32)
    scratch = np.empty((terms.k, int(subsets[most, terms.k - 1])), dtype=np.int64)
    _enumerate(starts, variables, signs, terms.table, scratch, begin, columns)
    begin = begin.astype(columns.dtype)  # mixed widths would make SciPy widen the columns
    features = sparse.csr_array((np.ones(columns.size), columns, begin), shape=(x.shape[0], len(terms)))
    return features, terms
