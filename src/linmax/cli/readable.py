"""All weights of a model as a table that people and other programs can read."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from linmax.util.checks import about

if TYPE_CHECKING:
    from linmax.models.streams import StreamModel

__all__ = ["write_readable"]


def write_readable(model: StreamModel, path: str) -> int:
    """Write attribute, class and weight, tab-separated, wherever the weight is not 0; returns the number of weights.

    The file is moved into place when it is complete. A learner without weights of its own raises ValueError.
    """
    weights = model.weights
    names, classes, table = model.attributes, model.classes, weights.arrays.attributes
    draft, count = Path(path).with_name(f"{Path(path).name}.part"), 0
    try:
        with about(path), draft.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            writer = csv.writer(file, delimiter="\t", lineterminator="\n")
            writer.writerow(["attribute", "class", "weight"])
            thresholds = dict(weights["thresholds"])
            for name, weight in thresholds.items():
                writer.writerow(["(threshold)", name, repr(float(weight))])
            for name, row in zip(names, table, strict=True):
                some = [[name, classes[c], repr(float(row[c]))] for c in row.nonzero()[0].tolist()]
                writer.writerows(some)
                count += len(some)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return count + len(thresholds)
