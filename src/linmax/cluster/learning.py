"""`fit` for the command line: a cluster by its address, a link to its dashboard, and a progress bar for each pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from linmax.cluster.connecting import connect
from linmax.cluster.mixing import fit
from linmax.cluster.partitions import is_joint
from linmax.cluster.results import Fit, Progress
from linmax.cluster.shards import shards_of

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["connected", "learn"]


def learn(address: str, learner: Any, shards: Any, *, screen: Console | None = None, **options: Any) -> Fit[Any]:
    """Connect to a cluster, or start one here, and `linmax.cluster.fit`.

    Parameters
    ----------
    address
        "local" (a worker for each core), "local:N", or the address of a scheduler such as "tcp://10.0.0.1:8786".
    learner, shards, options
        As in `linmax.cluster.fit`.
    screen
        Where to show the dashboard's link and the progress: bars on a terminal, one line for each pass in a file.

    Returns
    -------
    Fit
        The model, and what happened in each pass.

    See Also
    --------
    linmax.cluster.fit : the same with a client of your own.

    Examples
    --------
    >>> import linmax
    >>> linmax.cluster.learn("local:0", "perceptron", [["1 1:1", "2 2:1"]])
    Traceback (most recent call last):
    ValueError: cluster must be 'local', 'local:N' with N >= 1 or an address, got 'local:0'
    """
    parts = shards_of(shards)
    with connected(address, len(parts), options.get("passes", 1), screen) as (client, bars):
        given = shards if is_joint(shards) else parts
        result = fit(learner, given, client=client, watch=bars, **options)
    if screen is not None and not screen.is_terminal:
        for number, one in enumerate(result.passes, 1):
            screen.print(f"pass {number}: {one.mistakes:,} mistakes in {one.trials:,} trials")
    return result


@contextmanager
def connected(address: str, shards: int, passes: int, screen: Console | None) -> Iterator[tuple[Any, Bars | None]]:
    """A client of the cluster, which is told of on the screen, and bars for the passes."""
    with connect(address) as client:
        if screen is None:
            yield client, None
            return
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        told = f"{workers} worker{'s' * (workers != 1)}, {shards} shard{'s' * (shards != 1)}"
        screen.print(f"{told}; dashboard: {client.dashboard_link or 'none'}")
        with Bars(screen, passes) as bars:
            yield client, bars


class Bars:
    """One progress bar for each pass."""

    def __init__(self, screen: Console, passes: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.shown = Progress(*columns, console=screen, disable=not screen.is_terminal)
        self.passes = passes
        self.bars: dict[int, Any] = {}

    def __enter__(self) -> Bars:
        self.shown.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shown.stop()

    def __call__(self, progress: Progress) -> None:
        """Advance the bar of this pass."""
        if progress.number not in self.bars:
            self.bars[progress.number] = self.shown.add_task(
                f"pass {progress.number + 1} of {self.passes}", total=progress.shards
            )
        self.shown.update(self.bars[progress.number], completed=progress.done)
