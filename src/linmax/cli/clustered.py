"""``linmax learn --cluster``: each file is a shard, learned on the workers of a cluster and mixed after each pass."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linmax.cli.output import console
from linmax.cli.reading import reading_options, refuse_too_many
from linmax.io.refusals import Refusals

if TYPE_CHECKING:
    from linmax.cluster import Fit

__all__ = ["add_cluster_options", "run_on_cluster", "tell_refused"]

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
    add("--resume", action="store_true", help="with --cluster, go on from the folder --checkpoint")


def run_on_cluster(arguments: argparse.Namespace) -> None:
    """Learn, save, test and report."""
    from linmax import cluster
    from linmax.util import outputs

    _refuse_serial(arguments)
    for path in (arguments.model, arguments.json):
        if path not in (None, "-"):
            outputs.check_output(path)
    screen = console(arguments)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* could not be read and")  # said below, for each shard
        result = cluster.learn(
            arguments.cluster,
            arguments.learner,
            arguments.data,
            screen=None if arguments.quiet else screen,
            passes=arguments.passes,
            mix=arguments.mix,
            checkpoint=arguments.checkpoint,
            resume=arguments.resume,
            scale=arguments.scale,
            thresholds=not arguments.no_thresholds,
            hash_bits=arguments.hash_bits,
            reading={name: value for name, value in reading_options(arguments).items() if value is not None},
        )
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


def tell_refused(result: Fit[Any]) -> None:
    """Say which shards had lines that could not be read."""
    for name, counts in zip(result.shards, result.passes[0].shards, strict=True):
        if counts.refused:
            many = "1 line" if counts.refused == 1 else f"{counts.refused:,} lines"
            first = f"; {counts.first_refused}" if counts.first_refused else ""
            print(f"linmax: {name}: {many} could not be read{first}", file=sys.stderr)


def _refuse_serial(arguments: argparse.Namespace) -> None:
    for name in SERIAL_ONLY:
        if getattr(arguments, name):
            raise ValueError(f"--{name} needs the order of one stream; leave out --cluster, or --{name}")
    if "-" in arguments.data:
        raise ValueError("a cluster reads files, not standard input; leave out --cluster, or save it as files first")
    if arguments.checkpoint and Path(arguments.checkpoint).is_file():
        raise ValueError(f"with --cluster the checkpoint is a folder, and {arguments.checkpoint} is a file")


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
        "seconds": sum(one.learning + one.mixing for one in result.passes),
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
        raise ValueError(f"{arguments.test}: there is no line with a label")
    return mistakes / trials
