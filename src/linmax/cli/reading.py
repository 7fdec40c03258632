"""What `learn` and `predict` have in common: the arguments that say how data are read, and what could not be."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from linmax.models.streams import Refusals

__all__ = ["add_reading_options", "listed", "nothing_read", "reading_options", "show_refusals"]

REFUSALS_SHOWN = 5  # refused lines that are shown


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add = parser.add_argument
    add("data", metavar="DATA", nargs="+", help="files, packed (gzip, bzip2, xz, zstd) or not; - is standard input")
    add("--format", metavar="F", help="svmlight, vw, csv, tsv, jsonl, text, parquet or arrow (default: by content)")
    add("--label", metavar="COLUMN", help="the column, or the key, of the label (default: the last column, 'label')")
    add("--ignore", metavar="A,B", default="", help="columns to leave out")
    add("--categorical", metavar="A,B", default="", help="columns whose numbers are categories")
    add("--ngrams", metavar="N", type=int, default=1, help="take runs of up to N words of a text (default: 1)")
    add("--strict", action="store_true", help="stop at the first line that cannot be read")


def listed(text: str) -> list[str]:
    """Names between commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


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


def show_refusals(screen: Console, refusals: Refusals) -> None:
    """Say which lines were not read, and why."""
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
    """What to say when there was not one good line."""
    names = ", ".join("standard input" if name == "-" else name for name in data)
    if not refusals.total:
        return f"{names}: there is no data"
    file, line, reason = refusals.first[0]
    return f"{names}: not one of {refusals.total:,} lines could be read; {file}, line {line}: {reason}"
