"""Predict the lines of files and pipes with a model that `linmax learn` or `linmax fuse` saved.

The data are read as those were that the model learned from: format, columns,
texts, scaling. Labels may be there or not; if there are any, the error is
reported. Each line is answered as it comes, with a fusion when the whole table
has been read. Lines that cannot be read are reported on standard error and give
no output line, unless --strict stops at the first; CSV, JSON lines and Parquet
carry the number of the line.

  linmax predict model.linmax new.vw
  linmax predict fusion.linmax votes.csv --output probabilities
  linmax predict fusion.linmax votes.csv --reject 0.05 --sets 0.9
  linmax predict ranker.linmax ranked.jsonl --output scores --as jsonl
  linmax predict model.linmax new.csv --id customer --top 3 --as csv --out predicted.csv
  zcat new.jsonl.gz | linmax predict model.linmax - --output probabilities --as jsonl
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

from linmax.cli.interrupts import unbroken
from linmax.cli.output import add_json_option
from linmax.cli.reading import add_reading_options, nothing_read, refuse_too_many, refused_share, show_refusals

if TYPE_CHECKING:
    from linmax.cli.predictions import OutputOptions

__all__ = ["configure", "run"]

WHAT = ("labels", "scores", "probabilities")
FORM_NAMES = ("plain", "csv", "jsonl", "parquet")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``linmax predict``."""
    parser.add_argument("model", metavar="MODEL", help="a file saved by linmax learn --model or linmax fuse --model")
    add_reading_options(parser)
    add = parser.add_argument_group("output").add_argument
    add("--id", metavar="COLUMN", help="copy this column, or key, to the output, under its own name")
    add("--output", choices=WHAT, help="what to write for each line (default: labels; with --top, probabilities)")
    add("--top", metavar="K", type=int, default=0, help="write the K best classes of each line")
    add("--reject", metavar="RISK", type=float, help="give no answer where it would be wrong with a higher probability")
    add(
        "--sets",
        metavar="COVERAGE",
        type=float,
        help="of a fusion or of candidates: add sets of classes that hold the right one this often, such as 0.9",
    )
    add(
        "--as",
        dest="form",
        choices=FORM_NAMES,
        help="the form of the output (default: plain for labels without sets, else csv)",
    )
    add("--out", metavar="FILE", help="the file to write (default: standard output)")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> None:
    """Predict part by part; an output file takes its place when it is complete."""
    from linmax.cli.predictions import STANDARD, OutputOptions
    from linmax.util.checks import fraction, whole
    from linmax.util.outputs import check_outputs, claimed

    whole("top", arguments.top, 0)
    what = arguments.output or ("probabilities" if arguments.top else "labels")
    if arguments.top and what == "labels":
        raise ValueError("--top needs numbers to choose by; give --output scores or probabilities")
    form = arguments.form or ("plain" if what == "labels" and arguments.sets is None else "csv")
    if form == "plain" and what != "labels":
        raise ValueError(f"{what} are several numbers per line; write them --as csv, jsonl or parquet")
    if form == "plain" and arguments.sets is not None:
        raise ValueError("sets are several classes per line; write them --as csv, jsonl or parquet")
    for option, advice in (("reject", 0.1), ("sets", 0.9)):
        if getattr(arguments, option) is not None:
            fraction(f"--{option}", getattr(arguments, option), advice)
    if arguments.json == STANDARD and arguments.out is None:
        raise ValueError("figures and predictions cannot both go to standard output; give one of them a file")
    refused_share(arguments)
    check_outputs([arguments.out, arguments.json], [arguments.model, *arguments.data])
    with unbroken(), claimed([arguments.out]):
        _predict(arguments, OutputOptions(what, arguments.reject, arguments.sets), form)


def _predict(arguments: argparse.Namespace, wanted: OutputOptions, form: str) -> None:
    from rich.console import Console

    from linmax.cli.models import open_model
    from linmax.cli.predictions import PredictionCounts, make_form
    from linmax.util.checks import about
    from linmax.util.files import replacing
    from linmax.util.outputs import write_json

    begin, screen, counts = time.perf_counter(), Console(stderr=True, highlight=False), PredictionCounts()
    model = open_model(arguments.model)
    model.check(arguments, wanted, form)
    live = arguments.out is None
    try:
        with nullcontext(sys.stdout.buffer) if live else replacing(arguments.out) as target:
            writer = make_form(form, target, wanted.what, arguments.top, arguments.id)
            for part in model.read(arguments):
                answers = model.predict(part, wanted)
                if answers is None:
                    continue
                counts.add(part.labels, answers.predicted)
                with about(arguments.out or "standard output"):
                    writer.write(answers)
                    if live:
                        target.flush()
            if not counts.lines:
                raise ValueError(nothing_read(arguments.data, model.refusals))
            writer.end(model.nothing(wanted))
    finally:
        show_refusals(screen, model.refusals)
        for remark in model.remarks():
            screen.print(remark, soft_wrap=True, markup=False)
    if writer.lost:
        screen.print(f"{writer.lost:,} tags came after the first batch had none; they are not in the table.")
    for message in counts.messages():
        screen.print(message)
    if arguments.json is not None:
        more = {"refused": model.refusals.total, "seconds": time.perf_counter() - begin}
        write_json(counts.figures(arguments.reject) | more, arguments.json)
    sys.stdout.flush()
    refuse_too_many(arguments, counts.lines, model.refusals)
