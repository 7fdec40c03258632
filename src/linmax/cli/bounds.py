"""Which rule does theory recommend for these data, and which makes the fewest mistakes?

DATA is a table with a header (.csv, .tsv) or svmlight (.svm, .svmlight,
.libsvm). In a table, columns of numbers are attributes and columns of text
are voters that name classes; --votes takes all columns as voters.

For each rule the best comparator of the data is sought; its margin and noise
give the mistake bound, which stands beside the mistakes really made.
"""

from __future__ import annotations

import argparse
import csv
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linmax.cli.output import add_json_option, console

if TYPE_CHECKING:
    from linmax.data.instances import Experts
    from linmax.theory.certificates import Certificate

__all__ = ["configure", "run"]

SVMLIGHT = (".svm", ".svmlight", ".libsvm")
TABLES = {".csv": ",", ".tsv": "\t"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``linmax bounds``."""
    add = parser.add_argument
    add("data", metavar="DATA", help="a .csv, .tsv or svmlight file")
    add("--label", metavar="COLUMN", help="the column of labels (default: the last)")
    add("--ignore", metavar="A,B", default="", help="columns to leave out")
    add("--votes", action="store_true", help="take every column as a voter, numbers too")
    add("--learners", metavar="L;L", help="rules to compare, separated by ';' (default: one of each family)")
    add("--no-scale", action="store_true", help="do not divide attributes by their largest magnitude")
    add("--no-thresholds", action="store_true", help="leave out the threshold sub-experts")
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> None:
    """Certify the data for every rule; print the table, the advice and write the figures."""
    from linmax.theory.certificates import certify
    from linmax.util import outputs, tables

    if arguments.json not in (None, "-"):
        outputs.check_output(arguments.json)
    screen = console(arguments)
    instances, labels = _read(arguments)
    screen.print(f"{Path(arguments.data).name}: {instances!r}".replace("<", "").replace(">", ""))
    if not arguments.no_scale and (instances.layout.dense or instances.layout.sparse):
        screen.print("Attributes are divided by their largest magnitude over the whole file (--no-scale leaves them).")
    certificates = [certify(instances, labels, learner) for learner in _learners(arguments, instances)]
    rows = [_row(certificate) for certificate in certificates]
    columns = [
        tables.Column("learner", "learner"),
        tables.Column("margin", "margin", ".4g"),
        tables.Column("noise", "noise", ".4g"),
        tables.Column("bound", "bound"),
        tables.Column("mistakes", "mistakes", ","),
        tables.Column("updates", "updates", ","),
    ]
    screen.print(tables.table(rows, columns))
    screen.print(_advice(certificates))
    if arguments.json:
        outputs.write_json(_figures(arguments, certificates), arguments.json)


def _learners(arguments: argparse.Namespace, instances: Experts) -> list[str]:
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


def _row(certificate: Certificate) -> dict[str, Any]:
    shown = "infinite" if math.isinf(certificate.bound) else f"{certificate.bound:,.0f}"
    return {
        "learner": certificate.learner,
        "margin": certificate.margin,
        "noise": certificate.noise,
        "bound": f"{shown}{' (says nothing)' if certificate.vacuous else ''}",
        "mistakes": certificate.mistakes,
        "updates": certificate.updates,
    }


def _advice(certificates: list[Certificate]) -> str:
    least = min(certificates, key=lambda c: c.bound)
    fewest = min(certificates, key=lambda c: c.mistakes or 0)
    trials = certificates[0].trials
    theory = (
        f"No bound is below the {trials:,} trials: theory recommends nothing here"
        if least.vacuous
        else f"Theory recommends {least.learner} (at most {least.bound:,.0f} mistakes in {trials:,} trials)"
    )
    return f"{theory}; the fewest mistakes were made by {fewest.learner} ({fewest.mistakes:,})."


def _figures(arguments: argparse.Namespace, certificates: list[Certificate]) -> dict[str, Any]:
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
                "sampled": c.sampled,
            }
            for c in certificates
        },
    }


def _read(arguments: argparse.Namespace) -> tuple[Experts, list[Any]]:
    """Instances and labels of a file."""
    path = Path(arguments.data)
    ending = path.suffix.lower()
    if path.is_dir():
        raise ValueError(f"{path} is a folder; give a file")
    if ending in SVMLIGHT:
        return _read_svmlight(path, arguments)
    if ending not in TABLES:
        known = ", ".join([*TABLES, *SVMLIGHT])
        raise ValueError(f"{path.name}: the ending {ending!r} is not known; known: {known}")
    return _read_table(path, arguments)


def _scale(arguments: argparse.Namespace) -> str | None:
    return None if arguments.no_scale else "max"


def _read_svmlight(path: Path, arguments: argparse.Namespace) -> tuple[Experts, list[Any]]:
    from sklearn.datasets import load_svmlight_file

    from linmax.data.instances import experts

    try:
        attributes, labels = load_svmlight_file(str(path))
    except ValueError as error:
        raise ValueError(f"{path.name} cannot be read as svmlight: {error}") from None
    names = [int(label) if float(label).is_integer() else label for label in labels.tolist()]
    return experts(attributes=attributes, scale=_scale(arguments), thresholds=not arguments.no_thresholds), names


def _read_table(path: Path, arguments: argparse.Namespace) -> tuple[Experts, list[Any]]:
    from linmax.data.instances import experts

    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file, delimiter=TABLES[path.suffix.lower()])) or [[]]
    if not header or not rows:
        raise ValueError(f"{path.name} has no rows below its header")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise ValueError(f"{path.name}, line {number}: {len(row)} fields where the header has {len(header)}")
    label = arguments.label or header[-1]
    ignored = [name for name in arguments.ignore.split(",") if name]
    for name in [label, *ignored]:
        if name not in header:
            raise ValueError(f"{path.name} has no column {name!r}; it has {', '.join(header)}")
    columns = {name: [row[i] for row in rows] for i, name in enumerate(header)}
    labels = columns.pop(label)
    used = {name: values for name, values in columns.items() if name not in ignored}
    numbers = {} if arguments.votes else {n: v for n, c in used.items() if (v := _numbers(c)) is not None}
    voters = {name: [v or None for v in values] for name, values in used.items() if name not in numbers}
    if not numbers and not voters:
        raise ValueError(f"{path.name} has no column besides the label {label!r}")
    instances = experts(
        votes=[list(row) for row in zip(*voters.values(), strict=True)] if voters else None,
        attributes=[list(row) for row in zip(*numbers.values(), strict=True)] if numbers else None,
        scale=_scale(arguments),
        thresholds=not arguments.no_thresholds,
    )
    return instances, labels


def _numbers(values: list[str]) -> list[float] | None:
    """The column as numbers, or None when some value is not one."""
    try:
        return [float(value) for value in values]
    except ValueError:
        return None
