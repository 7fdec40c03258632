"""Predict each line of files and pipes with a model saved by linmax learn or linmax fuse.

The data are read like those that the model learned from: format, columns,
texts, scaling. Labels are optional; if there are any, the error is reported.
Each line is answered as it arrives; a fusion answers once the whole table has
been read. Lines that cannot be read are reported on standard error and give no
output line, unless --strict stops at the first. CSV, JSON lines and Parquet
output contain the line numbers.

  linmax predict model.linmax new.vw
  linmax predict fusion.linmax votes.csv --write probabilities
  linmax predict fusion.linmax votes.csv --reject 0.05 --sets 0.9
  linmax predict ranker.linmax ranked.jsonl --write scores --as jsonl
  linmax predict model.linmax new.csv --explain 3
  linmax predict model.linmax new.csv --id customer --top 3 --as csv --out predicted.csv
  zcat new.jsonl.gz | linmax predict model.linmax - --write probabilities --as jsonl
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from linmax.cli.interrupts import unbroken
from linmax.cli.options import INPUT_OPTIONS, JSON_OPTION, LABEL_OPTION, refused_share
from linmax.cli.output import nothing_read, refuse_too_many, say, show_refusals

if TYPE_CHECKING:
    from linmax.cli.predictions import OutputOptions

__all__ = ["DIGITS", "OPTIONS", "run"]

DIGITS = 6

OPTIONS = f"""
most used:
MODEL  a file saved by linmax learn --model or linmax fuse --model
DATA...  files, compressed (gzip, bzip2, xz, zstd) or not; - is standard input
--write labels|scores|probabilities  what to write for each line (default: labels; with --top, probabilities)
--out FILE  the file to write (default: standard output)
--id COLUMN  copy this column, or key, to the output, under its own name
{INPUT_OPTIONS}
{LABEL_OPTION}
--long ITEM,VOTER,VOTE  columns of a table with a row for each answer (fusions; recognized)
output:
--as plain|csv|jsonl|parquet  form of the output (default: plain for labels without sets, else csv)
--digits N:int={DIGITS}  significant digits of numbers, except in parquet; 0 = all
--top K:int=0  write the K best classes of each line; 0 = all
--reject RISK:float  give no answer if the probability of a mistake is higher than this
--explain N:int=0  add the N attributes that moved each prediction most, as JSON lines (models of linmax learn)
--sets COVERAGE:float  add sets of classes that contain the right one this often, such as 0.9 (fusions and candidates)
{JSON_OPTION}
"""


def run(arguments: argparse.Namespace) -> None:
    """Predict part by part; an output file takes its place when it is complete."""
    from linmax.cli.predictions import OutputOptions
    from linmax.util.checks import fraction, whole
    from linmax.util.outputs import check_outputs, claimed

    whole("top", arguments.top, 0)
    whole("digits", arguments.digits, 0)
    _refuse_swapped(arguments)
    what = arguments.write or ("probabilities" if arguments.top else "labels")
    if arguments.top and what == "labels":
        raise ValueError("--top needs numbers to choose by; give --write scores or probabilities")
    whole("explain", arguments.explain, 0)
    usual = "jsonl" if arguments.explain else "plain" if what == "labels" and arguments.sets is None else "csv"
    form = getattr(arguments, "as") or usual
    if arguments.explain and form != "jsonl":
        raise ValueError(f"--explain writes several numbers per line, and --as {form} has no place for them; use jsonl")
    if form == "plain" and what != "labels":
        raise ValueError(f"{what} are several numbers per line; write them --as csv, jsonl or parquet")
    if form == "plain" and arguments.sets is not None:
        raise ValueError("sets are several classes per line; write them --as csv, jsonl or parquet")
    for option, advice in (("reject", 0.1), ("sets", 0.9)):
        if getattr(arguments, option) is not None:
            fraction(f"--{option}", getattr(arguments, option), advice)
    if arguments.json == "-" and arguments.out is None:
        raise ValueError("figures and predictions cannot both go to standard output; give one of them a file")
    refused_share(arguments)
    check_outputs([arguments.out, arguments.json], [arguments.model, *arguments.data])
    with unbroken(), claimed([arguments.out]):
        _predict(arguments, OutputOptions(what, arguments.reject, arguments.sets, arguments.explain), form)


def _refuse_swapped(arguments: argparse.Namespace) -> None:
    """Raise if the model is among the data and the data stand in its place."""
    model = next((path for path in arguments.data if _is_model(path)), None)
    if model is not None and not _is_model(arguments.model):
        raise ValueError(
            f"{arguments.model} is no model, but {model} is; the model comes first: linmax predict {model} DATA..."
        )


def _is_model(path: str) -> bool:
    from linmax.util import files

    try:
        return Path(path).is_file() and bool(files.kind_of(path))  # a pipe must not be opened
    except (OSError, ValueError):
        return False


def _predict(arguments: argparse.Namespace, wanted: OutputOptions, form: str) -> None:
    from rich.console import Console

    from linmax.cli.models import open_model
    from linmax.cli.predictions import PredictionCounts, PredictionWriter
    from linmax.util.checks import about
    from linmax.util.files import replacing
    from linmax.util.outputs import write_json

    begin, screen, counts = time.perf_counter(), Console(stderr=True, highlight=False), PredictionCounts()
    model = open_model(arguments.model)
    model.check(arguments, wanted, form)
    live = arguments.out is None
    try:
        with nullcontext(sys.stdout.buffer) if live else replacing(arguments.out) as target:
            writer = PredictionWriter(form, target, wanted.what, arguments.top, arguments.id, arguments.digits)
            for part in model.read(arguments, arguments.data):
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
            writer.end()
    finally:
        show_refusals(screen, model.refusals)
        say(screen, *model.remarks())
    if writer.lost:
        say(screen, f"{writer.lost:,} tags came after the first batch had none; they are not in the table.")
    say(screen, *counts.messages())
    if arguments.json is not None:
        figures = counts.figures(arguments.reject)
        figures |= {"refused": model.refusals.total, "seconds": time.perf_counter() - begin}
        write_json(figures, arguments.json)
    sys.stdout.flush()
    refuse_too_many(arguments, counts.lines, model.refusals.total)
