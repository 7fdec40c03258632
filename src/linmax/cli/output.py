"""Messages of commands: on which console, numbers with their nouns, lines that could not be read."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from linmax.cli.options import refused_share

if TYPE_CHECKING:
    from rich.console import Console

    from linmax.io.read_options import Refusals

__all__ = [
    "console",
    "counted",
    "no_labels",
    "nothing_read",
    "refuse_too_many",
    "say",
    "show_refusals",
    "shown_name",
    "shown_names",
    "wide_console",
]

REFUSALS_SHOWN = 5  # refused lines that are shown
PIPED = 120  # characters a line, without a terminal


def console(arguments: argparse.Namespace) -> Console:
    """Return the console for messages: standard output, or standard error if figures or predictions go there."""
    from rich.console import Console

    taken = "-" in (arguments.json, getattr(arguments, "predictions", None))
    return Console(stderr=taken, highlight=False)


def wide_console(arguments: argparse.Namespace) -> Console:
    """Return the console for messages and wide tables, which are not folded without a terminal."""
    screen = console(arguments)
    if not screen.is_terminal:
        screen.width = PIPED
    return screen


def say(screen: Console, *messages: object) -> None:
    """Print messages as they are, each as one line."""
    for message in messages:
        screen.print(message, soft_wrap=True, markup=False)


def shown_name(path: str) -> str:
    """Return the name of a data file without folders."""
    return "standard input" if path == "-" else Path(path).name


def shown_names(paths: Sequence[str]) -> str:
    """Return the name of the first data file, and how many more there are."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{shown_name(paths[0])}{more}"


def counted(number: int, what: str, several: str = "") -> str:
    """Return a number with its noun: "1 row", "2,000 rows"."""
    return f"{number:,d} {what if number == 1 else several or what + 's'}"


def show_refusals(screen: Console, refusals: Refusals) -> None:
    """Print which lines were refused, and why."""
    if not refusals.total:
        return
    reasons = "; ".join(f"{reason}: {count:,}" for reason, count in refusals.counts.items())
    several = f"{refusals.total:,} lines could not be read ({reasons}), the first of them:"
    say(screen, "1 line could not be read:" if refusals.total == 1 else several)
    say(screen, *(f"  {file}, line {line}: {reason}" for file, line, reason in refusals.first[:REFUSALS_SHOWN]))


def refuse_too_many(arguments: argparse.Namespace, rows: int, refused: int) -> None:
    """Raise if more lines could not be read than ``--max-refused`` allows, given how many were read and refused."""
    lines, share = rows + refused, refused_share(arguments)
    if refused > share * lines:
        raise ValueError(
            f"{refused:,} of {lines:,} lines could not be read, more than --max-refused {share:g} allows; the "
            "results are those of the others"
        )


def nothing_read(data: Sequence[str], refusals: Refusals) -> str:
    """Return the message when no line could be read."""
    names = ", ".join("standard input" if name == "-" else name for name in data)
    if not refusals.total:
        return f"{names}: there is no data"
    file, line, reason = refusals.first[0]
    return f"{names}: not one of {refusals.total:,} lines could be read; {file}, line {line}: {reason}"


def no_labels(data: Sequence[str], rows: int, notes: Sequence[str]) -> str:
    """Return the message when no line has a label."""
    names = ", ".join("standard input" if name == "-" else name for name in data)
    return " ".join([f"{names}: not one of {rows:,} lines has a label, so there is nothing to learn.", *notes])
