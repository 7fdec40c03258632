"""What commands share in reading data: the arguments, tables as columns, reports of refused lines."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linmax.io.formats import FORMATS, format_class

if TYPE_CHECKING:
    from rich.console import Console

    from linmax.models.streams import Refusals

__all__ = [
    "add_format_option",
    "add_reading_options",
    "add_refusing_options",
    "add_shuffle_option",
    "cells_listed",
    "counted",
    "labelled_columns",
    "listed",
    "no_labels",
    "nothing_read",
    "reading_options",
    "refuse_too_many",
    "refused_share",
    "show_refusals",
    "shown_name",
    "shown_names",
    "some",
]

MOST_REFUSED = 0.01
NAMES_SHOWN = 5  # names in a message
REFUSALS_SHOWN = 5  # refused lines that are shown


def add_format_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--format``."""
    *others, last = FORMATS
    parser.add_argument("--format", metavar="F", help=f"{', '.join(others)} or {last} (default: by ending and content)")


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add = parser.add_argument
    add("data", metavar="DATA", nargs="+", help="files, packed (gzip, bzip2, xz, zstd) or not; - is standard input")
    add_format_option(parser)
    add(
        "--label",
        metavar="COLUMN",
        help="column or key of the label (default: label, target, class, y, or the last)",
    )
    add("--weight", metavar="COLUMN", help="column or key that says how much a row counts (default: 1)")
    add("--ignore", metavar="A,B", default="", help="columns to leave out")
    add("--categorical", metavar="A,B", default="", help="columns whose numbers are categories")
    add("--text", metavar="A,B", default="", help="columns whose words are attributes")
    add("--delimiter", metavar="D", help="between the fields of a table: a character, tab or space (default: detected)")
    add("--no-header", action="store_true", help="the first line of a table is data; its columns are 1, 2, ...")
    add("--ngrams", metavar="N", type=int, help="take runs of up to N words of a text (default: 1)")
    add("--pairs", metavar="A:B,...", help="pair the attributes of A with those of B; all: all of them")
    add_refusing_options(parser)


def add_refusing_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--strict`` and ``--max-refused``: what becomes of lines that cannot be read."""
    add = parser.add_argument
    add("--strict", action="store_true", help="stop at the first line that cannot be read")
    add(
        "--max-refused",
        metavar="SHARE",
        type=float,
        default=MOST_REFUSED,
        help=f"status 2 if a larger share of the lines cannot be read (default: {MOST_REFUSED:g})",
    )


def add_shuffle_option(parser: argparse.ArgumentParser, text: str) -> None:
    """Add ``--shuffle``."""
    parser.add_argument("--shuffle", metavar="SEED", nargs="?", type=int, const=0, help=text)


def listed(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def cells_listed(text: str) -> list[str]:
    """Names between commas, with their spaces, exactly as in the cells of a table (RFC 4180)."""
    return [name for name in text.split(",") if name]


def reading_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The arguments as `linmax.stream` takes them."""
    return {
        "format": arguments.format,
        "label": arguments.label,
        "weight": arguments.weight,
        "ignore": listed(arguments.ignore),
        "categorical": listed(arguments.categorical),
        "text": listed(arguments.text),
        "delimiter": arguments.delimiter,
        "header": False if arguments.no_header else None,
        "ngrams": arguments.ngrams,
        "pairs": listed(arguments.pairs or ""),
        "strict": arguments.strict,
    }


def refused_share(arguments: argparse.Namespace) -> float:
    """The share of lines that may be refused, checked."""
    share: float = arguments.max_refused
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"--max-refused must be a share from 0 to 1, got {share:g}; try {MOST_REFUSED:g}")
    return share


def refuse_too_many(arguments: argparse.Namespace, rows: int, refusals: Refusals) -> None:
    """Raise if more lines could not be read than may be."""
    lines, share = rows + refusals.total, refused_share(arguments)
    if refusals.total > share * lines:
        raise ValueError(
            f"{refusals.total:,} of {lines:,} lines could not be read, more than --max-refused {share:g} allows; the "
            "results are those of the others"
        )


def shown_name(path: str) -> str:
    """The name of the data, without folders."""
    return "standard input" if path == "-" else Path(path).name


def shown_names(paths: Sequence[str]) -> str:
    """The name of the data, and how many more files there are."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{shown_name(paths[0])}{more}"


def labelled_columns(
    path: Any, kind: str | None, label: str | None, others: Sequence[str] = ()
) -> tuple[dict[str, list[Any]], list[Any], str]:
    """The columns of a table without the label column, the labels, and the name of their column.

    The label is the named column, else the last one (for objects: the key "label"); ``others`` must exist as well.
    """
    from linmax.io.reader import open_source, read_columns

    source, kind = open_source(path, kind, columns=True)
    columns, name = read_columns(source, kind), source.name
    label = label or _label_of(columns, format_class(kind).rectangular)
    for wanted in [label, *others]:
        if wanted not in columns:
            raise ValueError(f"{name} has no column {wanted!r}; it has {', '.join(columns)}")
    labels = columns.pop(label)
    if not labels:
        raise ValueError(f"{name} has no rows below its header")
    unlabelled = next((row for row, value in enumerate(labels, start=1) if value is None), None)
    if unlabelled is not None:
        raise ValueError(f"{name}, row {unlabelled}: no label in column {label!r}; fill it in or drop it")
    return columns, labels, label


def _label_of(columns: dict[str, list[Any]], rectangular: bool) -> str:
    """The column that is the label if none is given: by its name, else the last, or "label" where columns may lack."""
    from linmax.io.schema import LABEL_NAMES, label_of

    return label_of(columns) or (next(reversed(columns), "") if rectangular else LABEL_NAMES[0])


def counted(number: int, what: str) -> str:
    """Return a number with its noun: "1 row", "2,000 rows"."""
    return f"{number:,d} {what}{'s' if number != 1 else ''}"


def some(names: Sequence[str]) -> str:
    """Return a few names, and how many more there are."""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{', '.join(names[:NAMES_SHOWN])}{more}"


def show_refusals(screen: Console, refusals: Refusals) -> None:
    """Report which lines were refused, and why."""
    if not refusals.total:
        return
    from rich.markup import escape

    reasons = "; ".join(f"{reason}: {count:,}" for reason, count in refusals.counts.items())
    if refusals.total == 1:
        screen.print("1 line could not be read:")
    else:
        screen.print(
            f"{refusals.total:,} lines could not be read ({escape(reasons)}), the first of them:", soft_wrap=True
        )
    for file, line, reason in refusals.first[:REFUSALS_SHOWN]:
        screen.print(f"  {escape(file)}, line {line}: {escape(reason)}", soft_wrap=True)


def nothing_read(data: list[str], refusals: Refusals) -> str:
    """The message when no line could be read."""
    names = ", ".join("standard input" if name == "-" else name for name in data)
    if not refusals.total:
        return f"{names}: there is no data"
    file, line, reason = refusals.first[0]
    return f"{names}: not one of {refusals.total:,} lines could be read; {file}, line {line}: {reason}"


def no_labels(data: list[str], rows: int, notes: Sequence[str]) -> str:
    """The message when no line has a label."""
    names = ", ".join("standard input" if name == "-" else name for name in data)
    return " ".join([f"{names}: not one of {rows:,} lines has a label, so there is nothing to learn.", *notes])
