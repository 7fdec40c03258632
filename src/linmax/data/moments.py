"""Counts, means and squared deviations of several samples, pooled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["pooled_moments"]


def pooled_moments(tables: Sequence[np.ndarray], signs: Sequence[int]) -> np.ndarray:
    """Tables of count, mean and sum of squared deviations, a row an attribute, added with signs.

    Chan, Golub and LeVeque (1983): about a common centre c the sums of x - c and (x - c)^2 simply add up. The centre is
    that of the last table.
    """
    centre = tables[-1][:, 1]
    count, linear, square = (np.zeros(len(centre)) for _ in range(3))
    for sign, table in zip(signs, tables, strict=True):
        away = table[:, 1] - centre
        count += sign * table[:, 0]
        linear += sign * table[:, 0] * away
        square += sign * (table[:, 2] + table[:, 0] * away * away)
    mean = np.divide(linear, count, out=np.zeros_like(linear), where=count > 0.0)
    return np.column_stack([count, centre + mean, np.maximum(square - count * mean * mean, 0.0)])
