"""Statistics of scaling from several models pooled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linmax.data.moments import pooled_moments
from linmax.data.scaling import WITHIN, Scaling

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
    largest = first.kind in ("max", WITHIN)
    if not largest:
        sparse[:, 1] = 0.0
    for sign, scaling, places in zip(signs, sources, maps, strict=True):
        own, kept_columns = scaling.arrays["sparse"], 1 if largest else 2
        sparse[places[: len(own)], :kept_columns] += sign * own[:, :kept_columns]
    if largest:
        dense[:, 0] = np.max([scaling.arrays["dense"][:, 0] for scaling in scalings], axis=0)
    else:
        full = [
            (sign, table)
            for sign, scaling in zip(signs, sources, strict=True)
            if (table := scaling.arrays["dense"]).shape == dense.shape  # a base may not have met them
        ]
        if dense.size:
            dense = pooled_moments([table for _, table in full], [sign for sign, _ in full])
    arrays = {"trials": np.array([trials], np.int64), "dense": dense, "sparse": sparse}
    return Scaling.from_state(first.description, arrays)
