"""Arguments that commands share, and their values as the library takes them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from linmax.io.formats import FORMATS

__all__ = [
    "add_cluster_options",
    "add_format_option",
    "add_input_options",
    "add_json_option",
    "add_refusal_options",
    "add_shuffle_option",
    "cells_listed",
    "listed",
    "reading_options",
    "refuse_options",
    "refused_share",
]

Add = Callable[..., Any]  # `add_argument` of a parser or of a group
MOST_REFUSED = 0.01
DEFAULTS = {"scale": "auto", "passes": 1}  # of options whose default is not None, False or ""


def add_format_option(add: Add) -> None:
    """Add ``--format``."""
    *others, last = FORMATS
    add("--format", metavar="F", help=f"{', '.join(others)} or {last} (default: by ending and content)")


def add_input_options(parser: argparse.ArgumentParser) -> None:
    """Add the group of arguments about the data to read."""
    add = parser.add_argument_group("input").add_argument
    add("data", metavar="DATA", nargs="+", help="files, compressed (gzip, bzip2, xz, zstd) or not; - is standard input")
    add_format_option(add)
    add(
        "--label",
        metavar="COLUMN",
        help="column or key of the label (default: label, target, class, y, or the last)",
    )
    add("--weight", metavar="COLUMN", help="column or key of the weights of the rows (default: 1)")
    add("--ignore", metavar="A,B", default="", help="columns to leave out")
    add("--categorical", metavar="A,B", default="", help="columns whose numbers are categories")
    add("--text", metavar="A,B", default="", help="columns whose words are attributes")
    add("--delimiter", metavar="D", help="separator of a table: a character, tab or space (default: detected)")
    add("--no-header", action="store_true", help="the first line of a table is data; its columns are 1, 2, ...")
    add("--ngrams", metavar="N", type=int, help="longest run of words that is an attribute of a text (default: 1)")
    add("--pairs", metavar="A:B,...", help="pair the attributes of A with those of B; all: all of them")
    add_refusal_options(add)


def add_refusal_options(add: Add) -> None:
    """Add ``--strict`` and ``--max-refused``, about lines that cannot be read."""
    add("--strict", action="store_true", help="stop at the first line that cannot be read")
    add(
        "--max-refused",
        metavar="SHARE",
        type=float,
        default=MOST_REFUSED,
        help=f"exit with status 2 if a larger share of the lines cannot be read (default: {MOST_REFUSED:g})",
    )


def add_shuffle_option(add: Add) -> None:
    """Add ``--shuffle``."""
    add("--shuffle", metavar="SEED", nargs="?", type=int, const=0, help="learn all rows in random order, from memory")


def add_json_option(add: Add) -> None:
    """Add ``--json``."""
    add("--json", metavar="FILE", help="also write the figures as JSON ('-' = standard output)")


def add_cluster_options(parser: argparse.ArgumentParser, mix: str) -> None:
    """Add the group of arguments about a cluster; ``mix`` is the default of ``--mix``."""
    add = parser.add_argument_group("cluster").add_argument
    add(
        "--cluster",
        metavar="ADDRESS",
        help="learn the files in parallel: local, local:N or the address of a Dask scheduler",
    )
    add("--mix", metavar="HOW", default=mix, help=f"weight of each file: uniform, trials or mistakes (default: {mix})")
    add("--resume", action="store_true", help="continue from the folder of --checkpoint")


def refuse_options(arguments: argparse.Namespace, names: str, reason: str, mode: str = "") -> None:
    """Raise for the first of these options that is given and makes no sense, in this mode of the command."""
    for name in names.split():
        value = getattr(arguments, name)
        if value is not None and value is not False and value not in ("", DEFAULTS.get(name)):
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} {reason}; remove {f'{mode} or ' if mode else ''}{option}")


def listed(text: str | None) -> list[str]:
    """Return names separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def cells_listed(text: str | None) -> list[str]:
    """Return names separated by commas, with their spaces, exactly as in the cells of a table (RFC 4180)."""
    return [name for name in (text or "").split(",") if name]


def reading_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `add_input_options` as `linmax.stream` takes them."""
    lists = {name: listed(getattr(arguments, name)) for name in ("ignore", "categorical", "text", "pairs")}
    plain = {name: getattr(arguments, name) for name in ("format", "label", "weight", "delimiter", "ngrams", "strict")}
    return plain | lists | {"header": False if arguments.no_header else None}


def refused_share(arguments: argparse.Namespace) -> float:
    """Return the share of lines that may be refused, checked."""
    share: float = arguments.max_refused
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"--max-refused must be a share from 0 to 1, got {share:g}; try {MOST_REFUSED:g}")
    return share
