"""Beyond one machine: learning from shards, sweeps and fusion on the workers of a Dask cluster (extra ``cluster``).

Without a client everything runs in this process, with the same results to the last bit.
"""

from linmax.cluster.fusing import fuse
from linmax.cluster.learning import learn
from linmax.cluster.mixing import fit
from linmax.cluster.results import Fit, Pass, Progress
from linmax.cluster.shards import ShardError
from linmax.cluster.sweeping import Swept, sweep
from linmax.cluster.voting import fit_votes
from linmax.cluster.workers import connect

__all__ = ["Fit", "Pass", "Progress", "ShardError", "Swept", "connect", "fit", "fit_votes", "fuse", "learn", "sweep"]
