"""``linmax learn --cluster``: each file is a shard, learned on the workers of a cluster and mixed after each pass."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linmax.cli.output import console
from linmax.cli.reading import reading_options, refuse_too_many
from linmax.io.options import Refusals

if TYPE_CHECKING:
    from linmax.cluster import Fit, Progress
    from linmax.cluster.shards import Shard

__all__ = ["add_cluster_options", "connected", "run_on_cluster", "tell_refused"]

MOST_NOTES = 5  # about the columns of all shards
SERIAL_ONLY = ("start", "holdout", "predictions", "plot", "memory")


def add_cluster_options(parser: argparse.ArgumentParser, usual: str = "uniform") -> None:
    """Add the arguments."""
    add = parser.add_argument
    add(
        "--cluster", metavar="ADDRESS", help="learn the files in parallel: local, local:N or a Dask scheduler's address"
    )
    add(
        "--mix",
        metavar="HOW",
        default=usual,
        help=f"with --cluster, shares of the files: uniform, trials or mistakes (default: {usual})",
    )
    add("--resume", action="store_true", help="with --cluster, resume from the folder --checkpoint")


def run_on_cluster(arguments: argparse.Namespace) -> None:
    """Learn, save, test and report."""
    from linmax.cluster import fit
    from linmax.util import outputs

    _refuse_serial(arguments)
    for path in (arguments.model, arguments.json):
        if path not in (None, "-"):
            outputs.check_output(path)
    screen = console(arguments)
    reading = {name: value for name, value in reading_options(arguments).items() if value is not None}
    with connected(arguments, arguments.data, arguments.passes) as (client, shards, bars), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* could not be read and")  # reported below, for each shard
        result = fit(
            arguments.learner,
            shards,
            client=client,
            passes=arguments.passes,
            mix=arguments.mix,
            checkpoint=arguments.checkpoint,
            resume=arguments.resume,
            scale=arguments.scale,
            thresholds=not arguments.no_thresholds,
            hash_bits=arguments.hash_bits,
            reading=reading,
            watch=bars,
        )
    if not (arguments.quiet or screen.is_terminal):
        for number, one in enumerate(result.passes, 1):
            screen.print(f"pass {number}: {one.mistakes:,} mistakes in {one.trials:,} trials")
    if arguments.model:
        result.model.save(arguments.model)
    figures = _figures(result)
    if arguments.test:
        figures["test_error"] = _test_error(result, arguments)
    if not arguments.quiet:
        for note in result.notes[:MOST_NOTES]:
            screen.print(note, soft_wrap=True, markup=False)
    screen.print(
        f"{figures['learner']} mixed from {len(result.shards)} shards: {figures['mistakes']:,} mistakes in "
        f"{figures['trials']:,} trials of the first pass; {figures['classes']:,} classes, {figures['features']:,} "
        "attributes",
        soft_wrap=True,
    )
    tell_refused(result)
    if arguments.test:
        screen.print(f"test error {figures['test_error']:.4f}")
    if arguments.json:
        outputs.write_json(figures, arguments.json)
    rows = sum(counts.trials + counts.unlabelled for counts in result.passes[0].shards)
    refuse_too_many(arguments, rows, Refusals({"": figures["refused"]}))


@contextmanager
def connected(
    arguments: argparse.Namespace, data: Sequence[str], passes: int
) -> Iterator[tuple[Any, list[Shard], Callable[[Progress], None] | None]]:
    """Connect to the cluster; gives the client, the shards, and a progress bar for each pass."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    from linmax.cluster.connect import connect
    from linmax.cluster.shards import shards_of

    shards, screen = shards_of(data), console(arguments)
    with connect(arguments.cluster) as client:
        if getattr(arguments, "quiet", False):
            yield client, shards, None
            return
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        sizes = f"{workers} worker{'s' * (workers != 1)}, {len(shards)} shard{'s' * (len(shards) != 1)}"
        screen.print(f"{sizes}; dashboard: {client.dashboard_link or 'none'}")
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Bars(*columns, console=screen, disable=not screen.is_terminal) as bars:
            made: dict[int, Any] = {}

            def advance(progress: Progress) -> None:
                if progress.number not in made:
                    title = f"pass {progress.number + 1} of {passes}"
                    made[progress.number] = bars.add_task(title, total=progress.shards)
                bars.update(made[progress.number], completed=progress.done)

            yield client, shards, advance


def tell_refused(result: Fit[Any]) -> None:
    """Report shards with lines that could not be read."""
    for name, counts in zip(result.shards, result.passes[0].shards, strict=True):
        if counts.refused:
            many = "1 line" if counts.refused == 1 else f"{counts.refused:,} lines"
            first = f"; {counts.first_refused}" if counts.first_refused else ""
            print(f"linmax: {name}: {many} could not be read{first}", file=sys.stderr)


def _refuse_serial(arguments: argparse.Namespace) -> None:
    for name in SERIAL_ONLY:
        if getattr(arguments, name):
            raise ValueError(f"--{name} requires the order of one stream; remove --cluster or --{name}")
    if "-" in arguments.data:
        raise ValueError("a cluster reads files, not standard input; remove --cluster, or save it as files first")
    if arguments.checkpoint and Path(arguments.checkpoint).is_file():
        raise ValueError(f"with --cluster --checkpoint must be a folder, but {arguments.checkpoint} is a file")


def _figures(result: Fit[Any]) -> dict[str, Any]:
    first, model = result.passes[0], result.model
    return {
        "learner": str(model.learner),
        "scale": model.scaling.in_effect,
        "trials": first.trials,
        "mistakes": first.mistakes,
        "progressive_error": first.mistakes / first.trials if first.trials else None,
        "updates": model.updates,
        "classes": len(model.classes),
        "features": model.features,
        "refused": sum(counts.refused for counts in first.shards),
        "seconds": sum(one.seconds for one in result.passes),
        "shards": result.shards,
        "passes": [{"trials": one.trials, "mistakes": one.mistakes} for one in result.passes],
    }


def _test_error(result: Fit[Any], arguments: argparse.Namespace) -> float:
    from linmax.models.streams import stream

    model, trials, mistakes = result.model, 0, 0
    for batch in stream(arguments.test, model=model, grow=False, **reading_options(arguments)):
        known = batch.codes >= 0
        wrong = model.judge(model.scaled(batch, learn=False)) != batch.codes
        trials, mistakes = trials + int(known.sum()), mistakes + int((wrong & known).sum())
    if not trials:
        raise ValueError(f"{arguments.test}: no line has a label")
    return mistakes / trials
