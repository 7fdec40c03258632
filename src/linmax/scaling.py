"""Attributes divided by the largest magnitude that each has had so far: x_i / max |x_i|.

Rules with a bounded instance space (Winnow and its kin) need attributes in [-1, 1]. On-line, the largest magnitude is
known only up to the present trial, and that is what a trial is divided by; so it does not matter how the trials are
cut into batches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int32, types
from scipy import sparse

from linmax.contract import Vector, deferred

__all__ = ["divided", "largest", "running"]


@deferred(types.void(int32[::1], Vector, Vector, Vector))
def divide_in_turn(indices: np.ndarray, values: np.ndarray, maxima: np.ndarray, scaled: np.ndarray) -> None:
    """Divide each value by the largest of its column so far, itself included; ``maxima`` moves along."""
    for place in range(values.size):
        column = indices[place]
        maxima[column] = max(maxima[column], abs(values[place]))
        scaled[place] = values[place] / maxima[column] if maxima[column] > 0.0 else 0.0


def largest(attributes: Any) -> np.ndarray:
    """The largest magnitude of each column of a dense or CSR block; 0 for a column of zeros."""
    if sparse.issparse(attributes):
        if not attributes.shape[0]:
            return np.zeros(attributes.shape[1])
        return np.asarray(abs(attributes).max(axis=0).toarray()).ravel()
    return np.abs(attributes).max(axis=0, initial=0.0)


def divided(attributes: Any, maxima: np.ndarray) -> Any:
    """The block with each column divided by its maximum (by 1 where it has none yet)."""
    divisors = np.where(maxima > 0.0, maxima, 1.0)
    if not sparse.issparse(attributes):
        return attributes / divisors
    data = attributes.data / divisors[attributes.indices]
    return sparse.csr_array((data, attributes.indices, attributes.indptr), shape=attributes.shape)


def running(attributes: Any, maxima: np.ndarray) -> tuple[Any, np.ndarray]:
    """Row after row divided by the maxima so far, the row itself included; and the maxima afterwards.

    Examples
    --------
    >>> import numpy as np
    >>> scaled, maxima = running(np.array([[2.0, 0.0], [1.0, -3.0], [4.0, 1.5]]), np.zeros(2))
    >>> scaled.tolist(), maxima.tolist()
    ([[1.0, 0.0], [0.5, -1.0], [1.0, 0.5]], [4.0, 3.0])
    """
    if sparse.issparse(attributes):
        after, scaled = maxima.copy(), np.zeros(attributes.data.size)
        indices, values = (
            np.require(attributes.indices, np.int32, ["C", "W"]),
            np.require(attributes.data, float, ["C", "W"]),
        )
        divide_in_turn(indices, values, after, scaled)
        return sparse.csr_array((scaled, attributes.indices, attributes.indptr), shape=attributes.shape), after
    so_far = np.maximum.accumulate(np.concatenate([maxima[None], np.abs(attributes)]), axis=0)
    return attributes / np.where(so_far[1:] > 0.0, so_far[1:], 1.0), so_far[-1]
