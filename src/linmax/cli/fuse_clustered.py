"""``linmax fuse --cluster``: each table is a shard; workers learn a fusion from each, and these are merged."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from linmax import __version__
from linmax.cli.clustered import connected, tell_refused
from linmax.cli.output import console
from linmax.cli.reading import cells_listed, refuse_too_many
from linmax.io.options import Refusals

if TYPE_CHECKING:
    from linmax.models.fusion import OnLineFusion

__all__ = ["PIPED", "fuse_on_cluster"]

PIPED = 120  # characters a line, without a terminal
SERIAL_FUSE_OPTIONS = (
    "shuffle",
    "test_fraction",
    "ask",
    "costs",
    "tolerance",
    "wrong",
    "predictions",
    "plot",
    "reliability",
    "not_asked",
)


def fuse_on_cluster(arguments: argparse.Namespace, started: OnLineFusion | None) -> None:
    """Learn, print the report, save."""
    from linmax.cluster import fit
    from linmax.util import outputs

    _refuse_serial(arguments)
    screen, begun = console(arguments), time.perf_counter()
    if not screen.is_terminal:
        screen.width = PIPED
    given = {"label": arguments.label, "ignore": cells_listed(arguments.ignore), "format": arguments.format}
    given["strict"] = arguments.strict
    reading: dict[str, Any] = {name: value for name, value in given.items() if value}
    fusion = _new(arguments) if started is None else started
    saved = {"checkpoint": arguments.checkpoint, "resume": arguments.resume}
    with connected(arguments, arguments.votes, 1) as (client, shards, bars):
        result = fit(fusion, shards, client=client, mix=arguments.mix, reading=reading, watch=bars, **saved)
    counts = result.passes[0]
    report, unlabelled = result.model.report(), sum(one.unlabelled for one in counts.shards)
    more = f", and {unlabelled:,} rows without a label" if unlabelled else ""
    screen.print(f"{len(result.shards)} tables with {counts.trials:,} labelled rows{more}", soft_wrap=True)
    tell_refused(result)
    refused = sum(one.refused for one in counts.shards)
    screen.print()
    screen.print(report)
    if arguments.model is not None:
        result.model.save(arguments.model)
        screen.print(f"Model saved as {arguments.model}", soft_wrap=True, markup=False)
    if arguments.html is not None:
        report.to_html(arguments.html)
        screen.print(f"Page saved as {arguments.html}", soft_wrap=True, markup=False)
    if arguments.json:
        figures = {"version": __version__, "data": result.shards, "classes": result.model.classes_.tolist()}
        figures |= report.to_dict() | {"seconds": round(time.perf_counter() - begun, 3), "unlabelled": unlabelled}
        figures |= {"start": arguments.start, "model": arguments.model}
        outputs.write_json(figures | {"refused": refused}, arguments.json)
    refuse_too_many(arguments, counts.trials + unlabelled, Refusals({"": refused}))


def _refuse_serial(arguments: argparse.Namespace) -> None:
    for name in SERIAL_FUSE_OPTIONS:
        if getattr(arguments, name) is not None:
            option = name.replace("_", "-")
            raise ValueError(f"--{option} requires one table in order; remove --cluster or --{option}")
    if "-" in arguments.votes:
        raise ValueError("a cluster reads files, not standard input; remove --cluster, or save it as files first")


def _new(arguments: argparse.Namespace) -> OnLineFusion:
    """Return a fusion of the given classes, or of those among votes and labels."""
    from linmax.models.fusion import OnLineFusion

    by = list(dict.fromkeys(cells_listed(arguments.by)))
    classes = cells_listed(arguments.classes) if arguments.classes else None
    return OnLineFusion(arguments.learner or "auto", classes=classes, by=by or None, abstain=arguments.abstain)
