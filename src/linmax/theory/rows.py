"""Vectors z on which bounds are stated: the margin of a comparator on them, and its hinge noise."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from linmax.util.aliases import SparseMatrix
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = LazyModule("scipy.sparse")

__all__ = ["Rows", "Vector", "comparator"]

Vector = npt.NDArray[np.float64]


class Rows:
    """Vectors z of all trials: one each for two classes, x^label - x^j for every wrong class j for many.

    Parameters
    ----------
    matrix : array-like or sparse array
        Shape (rows, n).
    trial : array-like, optional
        Trial of each row; by default each row is one trial.
    each : bool, default=False
        Whether every row of a trial can cause an update, so that each has a hinge loss; otherwise the worst row of a
        trial counts.
    """

    def __init__(
        self, matrix: npt.ArrayLike | SparseMatrix, trial: npt.ArrayLike | None = None, each: bool = False
    ) -> None:
        rows = sparse.csr_array(matrix, dtype=float) if sparse.issparse(matrix) else np.asarray(matrix, float)
        if rows.ndim != 2 or 0 in rows.shape:
            raise ValueError(f"rows must be (rows, weights) and not empty, got shape {rows.shape}")
        if not np.all(np.isfinite(rows.data if sparse.issparse(rows) else rows)):
            raise ValueError("rows must be finite, got nan or infinity; drop or fill those instances")
        owner = np.arange(rows.shape[0]) if trial is None else np.asarray(trial)
        if owner.shape != (rows.shape[0],):
            raise ValueError(f"trial must name one trial a row: {rows.shape[0]} rows, got shape {owner.shape}")
        order = np.argsort(owner, kind="stable")
        if np.any(order[1:] < order[:-1]):
            rows, owner = rows[order], owner[order]
        self.matrix = rows
        self.starts = np.flatnonzero(np.concatenate([[True], owner[1:] != owner[:-1]]))
        self.groups = np.arange(rows.shape[0]) if each else self.starts
        self.each = each

    @property
    def trials(self) -> int:
        return len(self.starts)

    @property
    def owners(self) -> npt.NDArray[np.int64]:
        """Trial of each row, numbered from 0."""
        return np.repeat(np.arange(self.trials), np.diff(np.append(self.starts, self.shape[0])))

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.matrix.shape[0]), int(self.matrix.shape[1])

    @cached_property
    def largest(self) -> float:
        """Largest magnitude, or 1 when all are 0."""
        return float(abs(self.matrix).max()) or 1.0

    def dense(self) -> Vector:
        """Return the rows as a dense array."""
        return np.asarray(sparse.csr_array(self.matrix).toarray())

    def one_by_one(self) -> Rows:
        """Return the rows with every rival of a trial able to cause an update."""
        return Rows(self.matrix, self.owners, each=True)

    def scaled(self, factor: float) -> Rows:
        """Multiply all rows by a number."""
        return Rows(self.matrix * factor, self.owners, self.each)

    def take(self, trials: npt.NDArray[np.int64]) -> Rows:
        """Select the rows of some trials."""
        chosen = np.isin(self.owners, trials)
        return Rows(self.matrix[chosen], self.owners[chosen], self.each)

    def lowest(self, u: Vector) -> Vector:
        """Return min_j u.z of each trial, or u.z of each row where each row counts."""
        return np.asarray(np.minimum.reduceat(self.matrix @ u, self.groups))

    def losses(self, u: Vector, margin: float) -> Vector:
        """Return the hinge loss of each trial: max(0, margin - min_j u.z), or the sum over j where each row counts."""
        losses = np.maximum(0.0, margin - self.lowest(u))
        return np.asarray(np.add.reduceat(losses, self.starts)) if self.each else losses

    def noise(self, u: Vector, margin: float) -> float:
        """Return the hinge loss of all trials."""
        return float(self.losses(u, margin).sum())

    def sizes(self, p: float) -> Vector:
        """Return ||z||_p of each row."""
        magnitude = abs(self.matrix)
        scale = self.largest
        total = ((magnitude / scale) ** p).sum(axis=1)
        return np.asarray(scale * np.asarray(total).ravel() ** (1.0 / p))

    def divided(self, sizes: Vector) -> Rows:
        """Divide every row by its number; rows with 0 are unchanged."""
        factors = 1.0 / np.where(sizes > 0.0, sizes, 1.0)
        if sparse.issparse(self.matrix):
            return Rows(sparse.diags_array(factors) @ self.matrix, self.owners, self.each)
        return Rows(self.matrix * factors[:, None], self.owners, self.each)

    def soft_noise(self, u: Vector, margin: float, softness: float) -> tuple[float, Vector]:
        """Return a smooth bound of the noise and its slope in u: s sum_t ln(1 + sum_j exp((margin - u.z)/s))."""
        excess = (margin - self.matrix @ u) / softness
        top = np.maximum(np.maximum.reduceat(excess, self.groups), 0.0)
        counts = np.diff(np.append(self.groups, len(excess)))
        parts = np.exp(excess - np.repeat(top, counts))
        total = np.exp(-top) + np.add.reduceat(parts, self.groups)
        shares = parts / np.repeat(total, counts)
        return softness * float((top + np.log(total)).sum()), -(self.matrix.T @ shares)


def comparator(u: npt.ArrayLike, rows: Rows) -> Vector:
    """Check the weights of a comparator, one for each coordinate of the rows."""
    weights = np.asarray(u, dtype=float)
    if weights.shape != (rows.shape[1],):
        raise ValueError(f"u must have one weight a column: {rows.shape[1]}, got shape {weights.shape}")
    return weights
