"""Statistics of scaling from several models pooled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from linmax.data.moments import pooled_moments
from linmax.data.scaling import WITHIN, Scaling

__all__ = ["merge_scalings", "pool_statistics"]

Statistics = Mapping[str, np.ndarray]  # of a scaling


def merge_scalings(
    base: Scaling | None, scalings: Sequence[Scaling], maps: Sequence[np.ndarray], columns: int
) -> Scaling:
    """Pool the statistics of scalings, counting the base once; ``maps`` place their columns, the base's last."""
    first = scalings[0]
    before = None if base is None else base.arrays
    pooled = pool_statistics(first.kind, before, [scaling.arrays for scaling in scalings], maps, columns)
    return Scaling.from_state(first.description, pooled)


def pool_statistics(
    kind: str,
    base: Statistics | None,
    parts: Sequence[Statistics],
    maps: Sequence[np.ndarray],
    columns: int,
) -> dict[str, np.ndarray]:
    """The same for the `Scaling.arrays` of scalings of this kind."""
    sources = [*parts, *([] if base is None else [base])]
    signs = [1] * len(parts) + ([1 - len(parts)] if base is not None else [])
    trials = sum(sign * int(source["trials"].item()) for sign, source in zip(signs, sources, strict=True))
    dense = np.zeros_like(parts[0]["dense"])
    sparse = np.zeros((columns if any(len(source["sparse"]) for source in sources) else 0, 2))
    pooled = {"trials": np.array([trials], np.int64), "dense": dense, "sparse": sparse}
    if not (dense.size or sparse.size):
        return pooled
    for source, places in zip(parts, maps, strict=False):
        own = source["sparse"]
        sparse[places[: len(own)], 1] = np.maximum(sparse[places[: len(own)], 1], own[:, 1])
    largest = kind in ("max", WITHIN)
    if not largest:
        sparse[:, 1] = 0.0
    for sign, source, places in zip(signs, sources, maps, strict=True):
        own, kept_columns = source["sparse"], 1 if largest else 2
        sparse[places[: len(own)], :kept_columns] += sign * own[:, :kept_columns]
    if largest:
        dense[:, 0] = np.max([source["dense"][:, 0] for source in parts], axis=0)
    elif dense.size:
        full = [
            (sign, source["dense"])
            for sign, source in zip(signs, sources, strict=True)
            if source["dense"].shape == dense.shape  # a base may not have met them
        ]
        pooled["dense"] = pooled_moments([table for _, table in full], [sign for sign, _ in full])
    return pooled
