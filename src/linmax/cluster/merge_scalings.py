"""Statistics of scaling from several models pooled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linmax.data.scaling import Scaling

__all__ = ["merge_scalings"]


def merge_scalings(
    base: Scaling | None, scalings: Sequence[Scaling], maps: Sequence[np.ndarray], columns: int
) -> Scaling:
    """Pool the statistics of scalings, counting the base once; ``maps`` place their columns, the base's last."""
    first = scalings[0]
    kept = len(scalings) - 1
    sources = [*scalings, *([] if base is None else [base])]
    signs = [1] * len(scalings) + ([-kept] if base is not None else [])
    dense = np.zeros_like(first.arrays["dense"])
    sparse = np.zeros((columns if any(len(scaling.arrays["sparse"]) for scaling in sources) else 0, 2))
    trials = sum(sign * scaling.trials for sign, scaling in zip(signs, sources, strict=True))
    for scaling, places in zip(scalings, maps, strict=False):
        own = scaling.arrays["sparse"]
        sparse[places[: len(own)], 1] = np.maximum(sparse[places[: len(own)], 1], own[:, 1])
    if first.kind == "max":
        dense[:, 0] = np.max([scaling.arrays["dense"][:, 0] for scaling in scalings], axis=0)
    else:
        sparse[:] = 0.0
        for sign, scaling, places in zip(signs, sources, maps, strict=True):
            own = scaling.arrays["sparse"]
            sparse[places[: len(own)]] += sign * own
        dense = _pooled_moments([scaling.arrays["dense"] for scaling in sources], signs, dense)
    arrays = {"trials": np.array([trials], np.int64), "dense": dense, "sparse": sparse}
    return Scaling.from_state(first.description, arrays)


def _pooled_moments(tables: Sequence[np.ndarray], signs: Sequence[int], blank: np.ndarray) -> np.ndarray:
    """Counts, means and sums of squared deviations, added with signs, about the last table's means.

    Chan, Golub and LeVeque (1983): about a common centre c the sums of x - c and (x - c)^2 simply add up.
    """
    full = [(sign, table) for sign, table in zip(signs, tables, strict=True) if table.shape == blank.shape]
    if not blank.size:
        return blank
    centre = full[-1][1][:, 1]
    count, linear, square = (np.zeros(len(blank)) for _ in range(3))
    for sign, table in full:
        away = table[:, 1] - centre
        count += sign * table[:, 0]
        linear += sign * table[:, 0] * away
        square += sign * (table[:, 2] + table[:, 0] * away * away)
    mean = np.divide(linear, count, out=np.zeros_like(linear), where=count > 0.0)
    return np.column_stack([count, centre + mean, np.maximum(square - count * mean * mean, 0.0)])
