"""Which rule does theory recommend for these data, and which makes the fewest mistakes?

DATA is any file that linmax learn reads, or - for standard input.
In a table (CSV, TSV, Parquet, Arrow), columns of numbers are attributes and
columns of text are voters that name classes; --votes takes all columns as
voters, including those of JSON lines.

For each rule, the best comparator for the data is found; its margin and noise
give the mistake bound, which is shown next to the mistakes actually made.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from linmax.cli.options import FORMAT_OPTION, JSON_OPTION, cells_listed
from linmax.cli.output import console, say, shown_name

if TYPE_CHECKING:
    from scipy import sparse

    from linmax.data.instances import Instances
    from linmax.io.batch import Batch
    from linmax.io.sources import Source
    from linmax.theory.certificates import Certificate
    from linmax.util.aliases import Label

__all__ = ["OPTIONS", "run"]


OPTIONS = f"""
most used:
DATA  a file in any format, compressed or not; - is standard input
--label COLUMN  the column, or the key, of the label (default: the last column, 'label')
--votes  take every column as a voter, numbers too
--learners L;L  rules to compare, separated by ';' (default: one of each family)
input:
{FORMAT_OPTION}
--ignore A,B  columns to leave out
learning:
--no-scale  do not divide attributes by their largest magnitude
--no-thresholds  leave out the threshold sub-experts
output:
{JSON_OPTION}
"""


def run(arguments: argparse.Namespace) -> None:
    """Certify the data for every rule; print the table and the advice, and write the figures."""
    from linmax.theory.certificates import certify
    from linmax.util import outputs, tables

    outputs.check_outputs([arguments.json], [arguments.data])
    screen = console(arguments)
    instances, labels = _read(arguments)
    certificates = [certify(instances, labels, learner) for learner in _learners(arguments, instances)]
    say(screen, f"{shown_name(arguments.data)}: {instances!r}".replace("<", "").replace(">", ""))
    if not arguments.no_scale and (instances.layout.dense or instances.layout.sparse):
        say(screen, "Attributes are divided by their largest magnitude over the whole file (--no-scale leaves them).")
    rows = [_row(certificate) for certificate in certificates]
    columns = [
        tables.Heading("learner", "learner"),
        tables.Heading("margin", "margin", ".4g"),
        tables.Heading("noise", "noise", ".4g"),
        tables.Heading("bound", "bound"),
        tables.Heading("mistakes", "mistakes", ","),
        tables.Heading("updates", "updates", ","),
    ]
    screen.print(tables.table(rows, columns))
    say(screen, _advice(certificates))
    if arguments.json:
        outputs.write_json(_figures(arguments, certificates), arguments.json)


def _learners(arguments: argparse.Namespace, instances: Instances) -> list[str]:
    if arguments.learners:
        return [text.strip() for text in arguments.learners.split(";") if text.strip()]
    layout = instances.layout
    count = layout.voters + layout.raters + layout.dense + layout.sparse
    return [
        "perceptron",
        "winnow",
        "balanced-winnow",
        f"p-norm({max(2.0, 2.0 * math.log(max(2, count))):.3g})",
        "alma(2)",
    ]


def _row(certificate: Certificate) -> dict[str, object]:
    shown = "infinite" if math.isinf(certificate.bound) else f"{certificate.bound:,.0f}"
    return {
        "learner": certificate.learner,
        "margin": certificate.margin,
        "noise": certificate.noise,
        "bound": f"{shown}{' in the mean' * certificate.expected}{' (says nothing)' if certificate.vacuous else ''}",
        "mistakes": certificate.mistakes,
        "updates": certificate.updates,
    }


def _advice(certificates: list[Certificate]) -> str:
    least = min(certificates, key=lambda c: c.bound)
    mean = ", in the mean" * least.expected
    fewest = min(certificates, key=lambda c: c.mistakes or 0)
    trials = certificates[0].trials
    theory = (
        f"No bound is below the {trials:,} trials: theory recommends nothing here"
        if least.vacuous
        else f"Theory recommends {least.learner} (at most {least.bound:,.0f} mistakes in {trials:,} trials{mean})"
    )
    return f"{theory}; the fewest mistakes were made by {fewest.learner} ({fewest.mistakes:,})."


def _figures(arguments: argparse.Namespace, certificates: list[Certificate]) -> dict[str, object]:
    return {
        "data": str(arguments.data),
        "trials": certificates[0].trials,
        "rules": {
            c.learner: {
                "bound": None if math.isinf(c.bound) else c.bound,
                "margin": c.margin,
                "noise": c.noise,
                "best_alpha": c.alpha,
                "mistakes": c.mistakes,
                "updates": c.updates,
                "vacuous": c.vacuous,
                "expected": c.expected,
                "sampled": c.sampled,
            }
            for c in certificates
        },
    }


def _read(arguments: argparse.Namespace) -> tuple[Instances, list[Label]]:
    """Instances and labels of a file."""
    from linmax.io.formats import format_class
    from linmax.io.reader import open_source

    source, kind = open_source(arguments.data, arguments.format)
    with closing(source):
        if arguments.votes or format_class(kind).rectangular:
            return _from_columns(source, kind, arguments)
        return _from_rows(source, kind, arguments)


def _from_columns(source: Source, kind: str, arguments: argparse.Namespace) -> tuple[Instances, list[Label]]:
    """Return the rows of a table: columns of numbers are attributes, others are voters."""
    from linmax.data.instances import instances as instances_of
    from linmax.io.formats import format_class
    from linmax.io.reader import read_columns
    from linmax.io.schema import LABEL_NAMES, label_of

    columns, name, ignored = read_columns(source, kind), source.name, cells_listed(arguments.ignore)
    last = next(reversed(columns), "") if format_class(kind).rectangular else LABEL_NAMES[0]
    label = arguments.label or label_of(columns) or last
    for wanted in [label, *ignored]:
        if wanted not in columns:
            raise ValueError(f"{name} has no column {wanted!r}; it has {', '.join(columns)}")
    labels = columns[label]
    if not labels:
        raise ValueError(f"{name} has no rows below its header; add them")
    if None in labels:
        row = labels.index(None) + 1
        raise ValueError(f"{name}, row {row}: no label in column {label!r}; fill it in or drop it")
    used = {column: cells for column, cells in columns.items() if column not in ignored and column != label}
    numbers = {} if arguments.votes else {n: v for n, c in used.items() if (v := _numbers(c)) is not None}
    voters = {column: cells for column, cells in used.items() if column not in numbers}
    if not used:
        raise ValueError(f"{name} has no column besides the label {label!r}")
    instances = instances_of(
        votes=[list(row) for row in zip(*voters.values(), strict=True)] if voters else None,
        attributes=[list(row) for row in zip(*numbers.values(), strict=True)] if numbers else None,
        scale=_scale(arguments),
        thresholds=not arguments.no_thresholds,
    )
    return instances, labels


def _from_rows(source: Source, kind: str, arguments: argparse.Namespace) -> tuple[Instances, list[Label]]:
    """The rows of a stream; the first bad line is an error."""
    from linmax.data.instances import instances as instances_of
    from linmax.io.batch import joined
    from linmax.io.read_options import ReadOptions
    from linmax.io.reader import StreamReader

    if arguments.ignore:
        raise ValueError(f"--ignore leaves out columns of a table, and {source.name} is {kind}; remove --ignore")
    reader = StreamReader([source], kind, ReadOptions(label=arguments.label, strict=True))
    rows = joined(_counted_once(source.name, reader))
    if rows is None:
        raise ValueError(f"{source.name} has no rows")
    attributes, labels = rows.matrix, rows.labels.tolist()
    if kind == "svmlight":
        attributes = _by_index(attributes, rows.names)
    numbers = _numbers(labels)
    if numbers is not None and all(map(math.isfinite, numbers)):
        labels = [int(number) if number.is_integer() else number for number in numbers]
    return instances_of(attributes=attributes, scale=_scale(arguments), thresholds=not arguments.no_thresholds), labels


def _counted_once(name: str, batches: Iterable[Batch]) -> Iterator[Batch]:
    """The batches; refuses rows without a label, and rows of another importance than 1."""
    for batch in batches:
        for code, weight, line in zip(batch.codes, batch.importance, batch.lines, strict=True):
            if code < 0:
                raise ValueError(f"{name}, line {line}: no label; fill it in or drop the line")
            if weight != 1.0:
                raise ValueError(
                    f"{name}, line {line}: the importance is {weight:g}, and bounds are for 1; take it out"
                )
        yield batch


def _by_index(matrix: sparse.csr_array, names: list[str]) -> sparse.csr_array:
    """The columns in the places of their svmlight indices, which count from 1 unless there is a 0."""
    import numpy as np
    from scipy import sparse

    indices = np.array(list(map(int, names)), np.int64)
    indices -= min(1, indices.min(initial=1))
    shape = (matrix.shape[0], int(indices.max(initial=-1)) + 1)
    found = sparse.csr_array((matrix.data, indices[matrix.indices], matrix.indptr), shape=shape)
    found.sort_indices()
    return found


def _scale(arguments: argparse.Namespace) -> str | None:
    return None if arguments.no_scale else "max"


def _numbers(values: Sequence[Label]) -> list[float] | None:
    """The column as numbers, or None if some value is not a number."""
    try:
        return [float(value) for value in values]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
