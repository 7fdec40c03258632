"""Learn from files and pipes; every line is predicted before it is learned from.

DATA may be svmlight, Vowpal Wabbit's text, a table (CSV, TSV, Parquet, Arrow),
JSON lines of any objects, or label<tab>text. The error
shown is progressive: each prediction is made before its label is seen.

  linmax learn train.vw --model model.linmax
  zcat logs.jsonl.gz | linmax learn - --format jsonl --scale idf
  linmax learn train.csv --label class --test test.csv --json -
  linmax learn ranked.jsonl --candidates --model ranker.linmax
"""

from __future__ import annotations

import argparse
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from linmax.cli.beside import compile_beside
from linmax.cli.clustered import add_cluster_options, run_on_cluster
from linmax.cli.interrupts import unbroken
from linmax.cli.learn_choices import learn_choices
from linmax.cli.learn_job import LearnJob
from linmax.cli.output import add_json_option
from linmax.cli.prediction_file import STANDARD
from linmax.cli.reading import add_reading_options, listed, refused_share
from linmax.cli.row_order import add_shuffle_option, check_shuffle

if TYPE_CHECKING:
    from linmax.io.sources import Source

__all__ = ["configure", "run"]

LEARNER = "auto"
LEARNED = (
    "learners.attributes.stacker:fuse",
    "engine.record:keep_table",
    "io.scan:last_line_end",
    "learners.attributes.warm_up:meet",
    "engine.record:note_all",
)  # what the default learner needs for lines of any format
WORD_KERNELS = (
    "learners.attributes.words:play_bayes",
    "learners.attributes.words:play_linear",
    *LEARNED,
    "learners.recent_label:play_recent",
)  # what it needs for words
NUMBER_KERNELS = (
    "learners.attributes.linear:play_dense",
    "learners.attributes.pairs:play_pairs",
    "learners.attributes.nearest:play_nearest",
    "io.name_table:mixed_words",
)  # what it needs for columns of numbers besides
TABLE_KERNELS = ("io.parsers.table:parse_table io.name_table:number_names", *NUMBER_KERNELS)
LEARN_KERNELS = {
    "csv": (*TABLE_KERNELS, *LEARNED, "learners.attributes.warm_up:gather"),
    "tsv": (*TABLE_KERNELS, *LEARNED, "learners.attributes.warm_up:gather"),
    "jsonl": ("io.parsers.packed:parse_packed io.name_table:number_names", *WORD_KERNELS),
    "svmlight": (
        "io.parsers.svmlight:parse_svmlight io.name_table:number_names",
        *WORD_KERNELS,
        "io.name_table:refill",
    ),
    "text": ("io.parsers.text:parse_text io.name_table:number_names", *WORD_KERNELS, "io.name_table:refill"),
    "vw": ("io.parsers.vw:parse_vw io.name_table:number_names", *WORD_KERNELS, "io.name_table:refill"),
}  # tables of numbers, and other formats for words
WORDED_TABLE = (*TABLE_KERNELS, *WORD_KERNELS, "io.name_table:refill")  # for one with columns of words
HOLDOUT = 10  # with several passes, every tenth line
EARLY_STOP = 3  # passes
EVERY = 1_000_000  # trials between checkpoints
SCALINGS_TEXT = "none, max, length, log, idf, standard or auto"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``linmax learn``."""
    add_reading_options(parser)
    add = parser.add_argument
    add("--learner", metavar="L", default=LEARNER, help=f"what learns, such as 'AR-winnow(1.2)' (default: {LEARNER})")
    add("--scale", metavar="S", default="auto", help=f"scale attributes on-line: {SCALINGS_TEXT} (default: auto)")
    add("--hash-bits", metavar="B", type=int, help="hash names to 2^B columns instead of keeping them")
    add("--memory", metavar="SIZE", help="a budget for names and weights, such as 500MB (default: none)")
    add("--numeric-classes", action="store_true", help="learn even if labels look like continuous values")
    add("--no-thresholds", action="store_true", help="leave out the constant attribute")
    add(
        "--candidates",
        action="store_true",
        help="trials have candidates of their own: JSON lines, or VW's blocks of lines",
    )
    add("--start", metavar="MODEL", help="continue with a model learned before")
    add("--passes", metavar="N", type=int, default=1, help="go through the data N times (default: 1)")
    add(
        "--holdout",
        metavar="N",
        type=int,
        help=f"predict every N-th line, but never learn from it (default: 0 = none; with several passes {HOLDOUT})",
    )
    add(
        "--early-stop",
        metavar="P",
        type=int,
        default=EARLY_STOP,
        help=f"stop after P passes without fewer mistakes on the held-out lines; 0 = never (default: {EARLY_STOP})",
    )
    add_shuffle_option(parser)
    add("--test", metavar="FILE", help="at the end, report the error on this file")
    add("--model", metavar="OUT", help="save what was learned")
    add("--readable", metavar="OUT", help="write all weights as a table: attribute, class, weight")
    add("--predictions", metavar="OUT", help="write the class predicted for each line ('-' = standard output)")
    add(
        "--checkpoint",
        metavar="FILE",
        help="save the state from time to time, and continue from this file if it exists",
    )
    add("--every", metavar="N", type=int, default=EVERY, help=f"lines between checkpoints (default: {EVERY:,})")
    add("--plot", metavar="PATH", help="save the progressive error as .png, .svg or .pdf")
    add("--quiet", action="store_true", help="show only the result")
    add_cluster_options(parser)
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> None:
    """Learn; show the table as it grows, then the result; save the requested files."""
    from linmax.util.outputs import claimed

    if arguments.candidates:
        learn_choices(arguments)
        return
    if arguments.cluster:
        run_on_cluster(arguments)
        return
    _check(arguments)
    job = LearnJob(arguments)
    written = [arguments.model, arguments.predictions, arguments.checkpoint]
    with unbroken() as held, claimed(written):
        job.begin()
        try:
            _prepare(arguments)
            job.learn(held)
        except BaseException as error:
            with held():
                job.rescue(error)
            if isinstance(error, OverflowError):
                raise ValueError(str(error)) from None
            raise
        with held():
            job.finish()


def _prepare(arguments: argparse.Namespace) -> None:
    """On a first run, compile what the job needs in several processes, as far as the first file tells what that is."""
    first = arguments.data[0]
    if arguments.learner != LEARNER or arguments.start is not None or not Path(first).is_file():
        return
    from linmax.io.reader import open_source

    source, kind = open_source(first, arguments.format)
    with closing(source):
        compile_beside(WORDED_TABLE if _has_words(arguments, source, kind) else LEARN_KERNELS.get(kind, ()))


def _has_words(arguments: argparse.Namespace, source: Source, kind: str) -> bool:
    """Whether it is a table with columns of categories or texts, as its first lines tell."""
    from linmax.io.formats import make_format
    from linmax.io.formats.csv import Csv
    from linmax.io.options import ReadOptions

    options = ReadOptions(
        label=arguments.label,
        weight=arguments.weight,
        ignore=tuple(listed(arguments.ignore)),
        categorical=tuple(listed(arguments.categorical)),
        text=tuple(listed(arguments.text)),
        delimiter=arguments.delimiter,
        header=not arguments.no_header,
    )
    table = make_format(kind, options)
    if not isinstance(table, Csv):
        return False
    with suppress(ValueError, TypeError):  # they come again when the file is read
        table.begin(source.name, source.head())
    return not {"category", "text"}.isdisjoint(table.settled.get("kinds", ()))


def _check(arguments: argparse.Namespace) -> None:
    """Raise now errors that would otherwise come at the end."""
    from linmax.util import checks
    from linmax.util.outputs import check_outputs
    from linmax.util.plots import check_plot

    checks.whole("passes", arguments.passes, 1)
    if arguments.holdout is None:
        arguments.holdout = HOLDOUT if arguments.passes > 1 else 0
    checks.whole("holdout", arguments.holdout, 0)
    checks.whole("early-stop", arguments.early_stop, 0)
    checks.whole("every", arguments.every, 1)
    if arguments.holdout == 1:
        raise ValueError("holdout must be >= 2, got 1; every line held out leaves nothing to learn from")
    once = next((path for path in arguments.data if path == STANDARD or Path(path).is_fifo()), None)
    if arguments.passes > 1 and once is not None:
        told = "standard input" if once == STANDARD else f"{once}, a pipe,"
        raise ValueError(f"{told} can be read once only; write it to a file for more passes")
    if arguments.json == STANDARD == arguments.predictions:
        raise ValueError("figures and predictions cannot both go to standard output; give one of them a file")
    check_shuffle(arguments)
    refused_share(arguments)
    inputs = [*arguments.data, *([arguments.test] if arguments.test else [])]
    outputs = [arguments.json, arguments.model, arguments.predictions, arguments.checkpoint, arguments.plot]
    check_outputs([*outputs, arguments.readable], inputs)
    if arguments.plot:
        check_plot("--plot", arguments.plot)
    for path in inputs:
        if path != STANDARD:
            if Path(path).is_dir():
                raise ValueError(f"{path} is a folder; give a file")
            if Path(path).is_fifo():  # who writes into a pipe would lose what is not read
                continue
            with open(path, "rb"):
                pass
