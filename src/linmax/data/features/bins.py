"""Numbers cut into bins: a true literal for each attribute, from which `conjunctions` makes pairs and more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.data.features.values import rows_of
from linmax.util.checks import whole
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = ["Binning", "bins", "edges_of", "quantile_edges"]


@dataclass(frozen=True)
class Binning:
    """Edges and names of bins: `bins` needs them to cut further rows in the same way.

    Parameters
    ----------
    edges
        Those of each attribute, rising: bin b has the values from edge b - 1 to below edge b.
    names
        Of the bins of all attributes.

    See Also
    --------
    bins

    Examples
    --------
    >>> import linmax
    >>> _, binning = linmax.features.bins([[1.0], [2.0]], names=["a"])
    >>> binning.names
    ('a < 1.5', 'a >= 1.5')
    """

    edges: tuple[np.ndarray, ...]
    names: tuple[str, ...]


def quantile_edges(values: np.ndarray, bins: int) -> tuple[np.ndarray, bool]:
    """Edges of at most ``bins`` bins, and whether they are quantiles: else each value has its own bin."""
    return edges_of(np.sort(values), bins)


def edges_of(ordered: np.ndarray, bins: int) -> tuple[np.ndarray, bool]:
    """`quantile_edges` of values in rising order."""
    steps = np.flatnonzero(ordered[1:] > ordered[:-1])
    if steps.size < bins:
        return 0.5 * (ordered[steps] + ordered[steps + 1]), False
    edges = ordered[np.arange(1, bins) * ordered.size // bins]
    return edges[edges > np.concatenate([ordered[:1], edges[:-1]])], True


def bins(
    x: Any, most: int = 16, names: Sequence[str] | None = None, like: Binning | None = None
) -> tuple[Any, Binning]:
    """Cut each attribute into quantile bins, and make every bin a feature of 0 and 1.

    A function of the bins, or by `conjunctions` of pairs of them, is linear in these features. With rules whose
    mistakes grow with the logarithm of the number of features only, such as Winnow, it costs little that most of
    them are irrelevant: K relevant ones among n are learned with 2 + 3 K (1 + lg n) mistakes. The learner
    ``binned-pairs`` does the same on-line, hashed, without making the table.

    Parameters
    ----------
    x
        Numbers, (rows, attributes).
    most
        Bins of an attribute; one with no more values than that has a bin for each.
    names
        Names of the attributes; x0, x1, ... when not given.
    like
        Cut as another table was; ``most`` and ``names`` are then its own.

    Returns
    -------
    features : CSR array of 0 and 1 (rows, bins of all attributes)
        One 1 for each attribute.
    binning : Binning
        The edges, and the names of the columns.

    References
    ----------
    Littlestone (1988), section 5: learning over transformed instances.

    Examples
    --------
    >>> import linmax, numpy as np
    >>> points = np.random.default_rng(0).uniform(-1.0, 1.0, (1000, 2))
    >>> literals, binning = linmax.features.bins(points, 4, names=["a", "b"])
    >>> binning.names[:2]
    ('a < -0.495394', '-0.495394 <= a < 0.0381915')
    >>> pairs, terms = linmax.features.conjunctions(literals, 2, names=binning.names)
    >>> labels = points[:, 0] * points[:, 1] > 0.0
    >>> trace = linmax.run("winnow(1.5)", linmax.experts(attributes=pairs), labels)
    >>> bool(trace.wrong[500:].mean() < 0.1)
    True
    """
    rows = rows_of(x)
    dense = rows.toarray() if sparse.issparse(rows) else rows
    if not np.isfinite(dense).all():
        row, column = np.argwhere(~np.isfinite(dense))[0].tolist()
        raise ValueError(f"x must be finite, got {dense[row, column]} in row {row}, column {column}; replace it")
    if like is None:
        like = _cut(dense, whole("most", most, 2), names)
    if len(like.edges) != dense.shape[1]:
        raise ValueError(f"x must have {len(like.edges)} columns as the table cut before, got {dense.shape[1]}")
    starts = np.cumsum([0, *(edges.size + 1 for edges in like.edges)])
    places = [
        first + np.searchsorted(edges, dense[:, f], side="right")
        for f, (first, edges) in enumerate(zip(starts.tolist(), like.edges, strict=False))
    ]
    columns = np.column_stack(places).ravel() if places else np.zeros(0, int)
    indptr = dense.shape[1] * np.arange(len(dense) + 1)
    shape = (len(dense), int(starts[-1]))
    return sparse.csr_array((np.ones(columns.size), columns, indptr), shape=shape), like


def _cut(dense: np.ndarray, most: int, names: Sequence[str] | None) -> Binning:
    given = [f"x{f}" for f in range(dense.shape[1])] if names is None else list(names)
    if len(given) != dense.shape[1]:
        raise ValueError(f"names must have one name for each of the {dense.shape[1]} columns of x, got {len(given)}")
    edges = tuple(quantile_edges(column, most)[0] for column in dense.T)
    called = []
    for name, own in zip(given, edges, strict=True):
        ends = [f"{edge:.6g}" for edge in own.tolist()]
        called += [f"{name} < {ends[0]}" if ends else name]
        called += [f"{low} <= {name} < {high}" for low, high in pairwise(ends)]
        called += [f"{name} >= {ends[-1]}"] if ends else []
    return Binning(edges, tuple(called))
