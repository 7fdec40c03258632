"""Predict the lines of files and pipes with a model that `linmax learn` saved.

The class of each line is written to standard output at once. Lines that
cannot be read are reported on standard error and give no output line, unless
--strict stops at the first; CSV and JSON lines carry the number of the line.

  linmax predict model.linmax new.vw
  zcat new.jsonl.gz | linmax predict model.linmax - --output probabilities --as jsonl
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from linmax.cli.reading import add_reading_options, nothing_read, reading_options, show_refusals
from linmax.util.checks import about

if TYPE_CHECKING:
    import numpy as np

    from linmax.models.streams import Batch, StreamModel

__all__ = ["configure", "run"]

WHAT = ("labels", "scores", "probabilities")
FORMS = ("plain", "csv", "jsonl")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``linmax predict``."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a file saved by linmax learn --model")
    add_reading_options(parser)
    add("--output", choices=WHAT, default="labels", help="what to write for each line (default: labels)")
    add("--as", dest="form", choices=FORMS, help="how (default: plain for labels, else csv)")
    add("--out", metavar="FILE", help="where to (default: standard output)")
    add("--json", metavar="FILE", help="also write the figures as JSON")


def run(arguments: argparse.Namespace) -> None:
    """Predict batch by batch; an output file is moved into place when it is complete."""
    from rich.console import Console

    from linmax.models.streams import StreamModel, stream
    from linmax.util.outputs import check_output, write_json

    begin = time.perf_counter()

    form = arguments.form or ("plain" if arguments.output == "labels" else "csv")
    if form == "plain" and arguments.output != "labels":
        raise ValueError(f"{arguments.output} are several numbers a line; write them --as csv or jsonl")
    model = StreamModel.load(arguments.model)
    data = arguments.data
    rows = stream(
        data[0] if len(data) == 1 else [Path(name) for name in data],
        model=model,
        grow=False,
        **reading_options(arguments),
    )
    screen, count = Console(stderr=True, highlight=False), 0
    for path in (arguments.out, arguments.json):
        if path is not None:
            check_output(path)
    draft = None if arguments.out is None else Path(arguments.out).with_name(f"{Path(arguments.out).name}.part")
    target: BinaryIO = sys.stdout.buffer if draft is None else cast("BinaryIO", draft.open("wb"))
    try:
        if form == "csv":
            target.write(_head(arguments.output, model))
        for batch in rows:
            with about(arguments.out or "standard output"):
                target.write(_written(batch, model, arguments.output, form))
                if draft is None:
                    target.flush()
            count += len(batch)
        if draft is not None:
            with about(arguments.out):
                target.close()
            os.replace(draft, arguments.out)
    finally:
        show_refusals(screen, rows.refusals)
        if draft is not None:
            try:
                with about(arguments.out):
                    target.close()
            finally:
                draft.unlink(missing_ok=True)
    if not count:
        raise ValueError(nothing_read(data, rows.refusals))
    if arguments.json is not None:
        seconds = time.perf_counter() - begin
        write_json({"lines": count, "refused": rows.refusals.total, "seconds": seconds}, arguments.json)


def _head(what: str, model: StreamModel) -> bytes:
    return _csv([["line", "predicted"] if what == "labels" else ["line", "predicted", *model.classes]])


def _csv(rows: list[list[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "surrogateescape")


def _written(batch: Batch, model: StreamModel, what: str, form: str) -> bytes:
    """The output lines for a batch."""
    names = [*model.labels.names, ""]
    instances = model.scaled(batch, learn=False)
    predicted = [names[code] for code in model.judge(instances).tolist()]
    if what == "labels" and form == "plain":
        tags = batch.tags or [""] * len(batch)
        lines = (f"{name} {tag}" if tag else name for name, tag in zip(predicted, tags, strict=True))
        return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")
    table: np.ndarray | None = None
    if what == "scores":
        table = model.scores(batch)
    elif what == "probabilities":
        table = model.predict_proba(batch)
    numbers: list[list[float]] = [[]] * len(batch) if table is None else table.tolist()
    lines_of = batch.lines.tolist()
    if form == "csv":
        return _csv([[line, name, *row] for line, name, row in zip(lines_of, predicted, numbers, strict=True)])
    out = []
    for t, (line, name, row) in enumerate(zip(lines_of, predicted, numbers, strict=True)):
        entry: dict[str, Any] = {"line": line, "predicted": name or None}
        if batch.tags is not None and batch.tags[t]:
            entry["tag"] = batch.tags[t]
        if what != "labels":
            entry[what] = dict(zip(model.classes, row, strict=True))
        out.append(json.dumps(entry, ensure_ascii=False))
    return ("\n".join(out) + "\n").encode("utf-8", "surrogateescape")
