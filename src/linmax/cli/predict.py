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
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from linmax.cli.interrupts import unbroken
from linmax.cli.reading import (
    add_reading_options,
    nothing_read,
    reading_options,
    refuse_too_many,
    refused_share,
    show_refusals,
)
from linmax.util.checks import about, fraction, whole

if TYPE_CHECKING:
    from linmax.models.streams import StreamModel

__all__ = ["configure", "run", "target_of"]

FUSION = "vote fusion"  # the kind of file that linmax fuse saves
OF_CANDIDATES = "learner"  # the kind of file that linmax learn --candidates saves
WHAT = ("labels", "scores", "probabilities")
FORM_NAMES = ("plain", "csv", "jsonl", "parquet")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``linmax predict``."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a file saved by linmax learn --model or linmax fuse --model")
    add_reading_options(parser)
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
    add("--json", metavar="FILE", help="also write the figures as JSON")


def run(arguments: argparse.Namespace) -> None:
    """Predict batch by batch; an output file is moved into place when it is complete."""
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
    refused_share(arguments)
    check_outputs([arguments.out, arguments.json], [arguments.model, *arguments.data])
    from linmax.util.files import kind_of

    with unbroken(), claimed([arguments.out]):
        kind = kind_of(arguments.model)
        if kind == OF_CANDIDATES:
            from linmax.cli.predict_choices import predict_choices

            predict_choices(arguments, what, form)
        elif kind == FUSION:
            from linmax.cli.predict_fusion import predict_votes

            predict_votes(arguments, what, form)
        elif arguments.sets is not None:
            raise ValueError(f"--sets needs a fusion, saved by linmax fuse; {arguments.model} is none: leave it out")
        else:
            _predict(arguments, what, form)


def _predict(arguments: argparse.Namespace, what: str, form: str) -> None:
    from rich.console import Console

    from linmax.cli.other_data import Strangeness
    from linmax.cli.prediction_counts import PredictionCounts
    from linmax.cli.prediction_forms import Answers, make_form
    from linmax.models.streams import StreamModel, stream
    from linmax.util.outputs import write_json

    begin = time.perf_counter()
    model, data = StreamModel.load(arguments.model), arguments.data
    rows = stream(
        data[0] if len(data) == 1 else [Path(name) for name in data],
        model=model,
        grow=False,
        id=arguments.id,
        **reading_options(arguments),
    )
    screen, counts, strange = Console(stderr=True, highlight=False), PredictionCounts(), Strangeness(model.classes)
    try:
        with target_of(arguments.out) as target:
            writer = make_form(form, target, what, arguments.top, arguments.id)
            for batch in rows:
                codes = model.judge(model.scaled(batch, learn=False))
                answers = Answers.of(batch, model, what, codes, arguments.reject)
                names = [*batch.classes, None]
                strange.add(batch)
                counts.add([names[code] for code in batch.codes.tolist()], answers.predicted)
                with about(arguments.out or "standard output"):
                    writer.write(answers)
                    if arguments.out is None:
                        target.flush()
            writer.end(_none(model, what))
            if not counts.lines:
                raise ValueError(nothing_read(data, rows.refusals))
    finally:
        show_refusals(screen, rows.refusals)
        for remark in rows.remarks():
            screen.print(remark, soft_wrap=True)
    for told in strange.told():
        screen.print(told, soft_wrap=True, markup=False)
    if writer.lost:
        screen.print(f"{writer.lost:,} tags came after the first batch had none; they are not in the table.")
    figures = counts.figures(arguments.reject) | {
        "refused": rows.refusals.total,
        "seconds": time.perf_counter() - begin,
    }
    for told in counts.told():
        screen.print(told)
    if arguments.json is not None:
        write_json(figures, arguments.json)
    refuse_too_many(arguments, counts.lines, rows.refusals)


def _none(model: StreamModel, what: str) -> Any:
    """The answers for no rows."""
    import numpy as np

    from linmax.cli.prediction_forms import Answers

    classes = model.classes
    return Answers([], None, [], None if what == "labels" else np.zeros((0, len(classes))), classes)


@contextmanager
def target_of(path: str | None) -> Iterator[BinaryIO]:
    """Where to write: standard output, or a draft that is moved into place when all went well."""
    from linmax.util.outputs import is_special

    if path is None:
        yield sys.stdout.buffer
        return
    if is_special(Path(path)):  # a device or a pipe, which must not be replaced by a file
        with about(path), open(path, "wb") as device:
            yield device
        return
    draft = Path(path).with_name(f"{Path(path).name}.part")
    with about(path):
        target = cast("BinaryIO", draft.open("wb"))
    try:
        yield target
        with about(path):
            target.close()
        os.replace(draft, path)
    finally:
        try:
            with about(path):
                target.close()
        finally:
            draft.unlink(missing_ok=True)
