"""Learn on Slurm from Python, with the package dask-jobqueue; its clusters for PBS, SGE and LSF are used alike.

python examples/clusters/jobqueue.py 64 /data/part-*.svm
"""

from __future__ import annotations

import sys

from dask_jobqueue import SLURMCluster
from distributed import Client

import linmax


def made(**options: object) -> SLURMCluster:
    """Jobs of one worker with one thread: a task uses one core."""
    return SLURMCluster(cores=1, processes=1, memory="4GB", walltime="02:00:00", **options)


def main() -> None:
    """Ask for workers, wait until they are there, and learn."""
    workers, shards = int(sys.argv[1]), sys.argv[2:]
    with made() as cluster, Client(cluster) as client:
        cluster.scale(workers)
        client.wait_for_workers(workers, timeout=600)
        result = linmax.cluster.fit("auto", shards, client=client, passes=5, checkpoint="kept")
    result.model.save("model.linmax")


if __name__ == "__main__":
    main()
