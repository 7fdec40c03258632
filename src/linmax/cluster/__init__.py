"""Learning from shards and sweeps on the workers of a Dask cluster (extra ``cluster``).

Without a client everything runs in this process, with the same results to the last bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linmax.cluster.connect import connect
from linmax.cluster.fit import Fit, Pass, Progress, fit
from linmax.cluster.shards import ShardError
from linmax.cluster.sweep import Swept, sweep

if TYPE_CHECKING:
    from linmax.cluster.dask_classifier import DaskClassifier

__all__ = ["DaskClassifier", "Fit", "Pass", "Progress", "ShardError", "Swept", "connect", "fit", "sweep"]


def __getattr__(name: str) -> object:
    """Import names that need scikit-learn when they are used."""
    if name == "DaskClassifier":
        from linmax.cluster.dask_classifier import DaskClassifier

        return DaskClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
