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
    "cells_listed",
    "labelled_columns",
    "listed",
    "nothing_read",
    "reading_options",
    "show_refusals",
    "shown_name",
]

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
    add("--label", metavar="COLUMN", help="the column, or the key, of the label (default: the last column, 'label')")
    add("--ignore", metavar="A,B", default="", help="columns to leave out")
    add("--categorical", metavar="A,B", default="", help="columns whose numbers are categories")
    add("--ngrams", metavar="N", type=int, default=1, help="take runs of up to N words of a text (default: 1)")
    add("--strict", action="store_true", help="stop at the first line that cannot be read")


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
        "ignore": listed(arguments.ignore),
        "categorical": listed(arguments.categorical),
        "ngrams": arguments.ngrams,
        "strict": arguments.strict,
    }


def shown_name(path: str) -> str:
    """The name of the data, without folders."""
    return "standard input" if path == "-" else Path(path).name


def labelled_columns(
    path: Any, kind: str | None, label: str | None, others: Sequence[str] = ()
) -> tuple[dict[str, list[Any]], list[Any], str]:
    """The columns of a table without the label column, the labels, and the name of their column.

    The label is the named column, else the last one (for objects: the key "label"); ``others`` must exist as well.
    """
    from linmax.io.reader import open_source, read_columns

    source, kind = open_source(path, kind, columns=True)
    columns, name = read_columns(source, kind), source.name
    label = label or (next(reversed(columns), "") if format_class(kind).rectangular else "label")
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
