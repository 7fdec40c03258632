"""Beyond one machine: learning from shards, sweeps and fusion on the workers of a Dask cluster (extra ``cluster``).

Without a client everything runs in this process, with the same results to the last bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linmax.cluster.connecting import connect
from linmax.cluster.fusing import fuse
from linmax.cluster.learning import learn
from linmax.cluster.mixing import fit
from linmax.cluster.results import Fit, Pass, Progress
from linmax.cluster.shards import ShardError
from linmax.cluster.sweeping import Swept, sweep

if TYPE_CHECKING:
    from linmax.cluster.classifier import DaskClassifier

__all__ = [
    "DaskClassifier",
    "Fit",
    "Pass",
    "Progress",
    "ShardError",
    "Swept",
    "connect",
    "fit",
    "fuse",
    "learn",
    "sweep",
]


def __getattr__(name: str) -> Any:
    """What needs scikit-learn is imported when it is used."""
    if name == "DaskClassifier":
        from linmax.cluster.classifier import DaskClassifier

        return DaskClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
