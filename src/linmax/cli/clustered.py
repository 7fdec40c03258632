"""Connection to a cluster and reports of its shards, for `linmax learn --cluster` and `linmax fuse --cluster`."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from linmax.cli.output import console, counted, say

if TYPE_CHECKING:
    from distributed import Client
    from rich.progress import TaskID

    from linmax.cluster import Fit, Progress
    from linmax.cluster.shards import Shard
    from linmax.models.fusion import VoteFusion
    from linmax.models.streams import StreamModel

__all__ = ["connected", "show_refused_shards"]


@contextmanager
def connected(
    arguments: argparse.Namespace, data: Sequence[str]
) -> Iterator[tuple[Client, list[Shard], Callable[[Progress], None] | None]]:
    """Connect to the cluster of ``--cluster``; gives the client, the shards, and a progress bar for each pass."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    from linmax.cluster.connect import connect
    from linmax.cluster.shards import shards_of

    if "-" in data:
        raise ValueError("a cluster reads files, not standard input; remove --cluster, or save it as files first")
    if arguments.checkpoint and Path(arguments.checkpoint).is_file():
        raise ValueError(f"with --cluster --checkpoint must be a folder, but {arguments.checkpoint} is a file")
    shards, screen = shards_of(data), console(arguments)
    with connect(arguments.cluster) as client, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* could not be read and")  # reported for each shard
        if getattr(arguments, "quiet", False):
            yield client, shards, None
            return
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        sizes = f"{counted(workers, 'worker')}, {counted(len(shards), 'shard')}"
        say(screen, f"{sizes}; dashboard: {client.dashboard_link or 'none'}")
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Bars(*columns, console=screen, disable=not screen.is_terminal) as bars:
            made: dict[int, TaskID] = {}

            def advance(progress: Progress) -> None:
                if progress.number not in made:
                    title = f"pass {progress.number + 1} of {getattr(arguments, 'passes', 1)}"
                    made[progress.number] = bars.add_task(title, total=progress.shards)
                bars.update(made[progress.number], completed=progress.done)

            yield client, shards, advance


def show_refused_shards(result: Fit[StreamModel] | Fit[VoteFusion]) -> None:
    """Print the shards with lines that could not be read on standard error."""
    for name, counts in zip(result.shards, result.passes[0].shards, strict=True):
        if counts.refused:
            first = f"; {counts.first_refused}" if counts.first_refused else ""
            print(f"linmax: {name}: {counted(counts.refused, 'line')} could not be read{first}", file=sys.stderr)
