"""The vectors z of labelled instances, on which bounds are stated."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from linmax.data.experts import Experts
from linmax.data.labels import label_array, unique_labels
from linmax.theory.rows import Rows
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = ["rows_of"]

Tell: TypeAlias = Callable[[str, float], None]


def rows_of(instances: Any, labels: Sequence[Any], tell: Tell) -> tuple[Rows, Any]:
    """The vectors z of the trials and the labels as an array; ``tell`` hears what is done, and which share of it is.

    z is x^label - x^j for every wrong class j of instances from `linmax.experts`, and the instance times the sign of
    its label for an array (trials, attributes) with two labels.
    """
    names = label_array(labels)
    size = instances.shape[0] if sparse.issparse(instances) else len(instances)
    if names.ndim != 1 or len(names) != size:
        raise ValueError(f"labels must be one per trial: got shape {names.shape} for {size} instances")
    if size == 0:
        raise ValueError("there are no trials to certify; give at least one")
    distinct, inverse = unique_labels(names)
    if not isinstance(instances, Experts):
        return _two_class_rows(instances, distinct, inverse), names
    classes = _class_order(instances, distinct)
    if len(classes) < 2:
        raise ValueError(
            f"labels must have two classes or more, got only {classes!r}; one class leaves nothing to learn"
        )
    blocks = []
    for t, place in enumerate(inverse):
        blocks.append(sparse.csr_array(instances.differences(t, distinct[place], classes)))
        tell("reading the instances", t / size)
    matrix = sparse.vstack(blocks, format="csr")
    dense = matrix.nnz > 0.2 * math.prod(matrix.shape) and math.prod(matrix.shape) <= 50_000_000
    return Rows(matrix.toarray() if dense else matrix, np.repeat(np.arange(size), len(classes) - 1)), names


def _class_order(instances: Experts, distinct: list[Any]) -> list[Any]:
    """The classes in the order in which a run numbers them, so that u is laid out like its weights."""
    if instances.fixed:
        unknown = [name for name in distinct if name not in instances.names]
        if unknown:
            raise ValueError(f"labels: {unknown[0]!r} is not among the classes {list(instances.names)!r}")
        return list(instances.names)
    try:
        return sorted({*instances.names, *distinct})
    except TypeError:  # labels of several kinds have no order
        return list(dict.fromkeys([*distinct, *instances.names]))


def _two_class_rows(attributes: Any, distinct: list[Any], inverse: npt.NDArray[Any]) -> Rows:
    if len(distinct) != 2:
        raise ValueError(f"labels must be two for plain attributes, got {distinct[:5]!r}; use experts(attributes=...)")
    signs = np.where(inverse == 1, 1.0, -1.0)
    if sparse.issparse(attributes):
        return Rows(sparse.csr_array(sparse.diags_array(signs) @ sparse.csr_array(attributes)))
    table = np.asarray(attributes, dtype=float)
    if table.ndim != 2:
        raise ValueError(f"instances must be (trials, attributes), got shape {table.shape}")
    return Rows(signs[:, None] * table)
