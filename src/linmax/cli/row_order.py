"""``--shuffle``, and the warning that rows look sorted."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linmax.io.batches import Batch
    from linmax.io.shuffling import Runs

__all__ = ["add_shuffle_option", "check_shuffle", "in_order", "told_of_runs"]


def add_shuffle_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--shuffle``."""
    parser.add_argument(
        "--shuffle",
        metavar="SEED",
        nargs="?",
        type=int,
        const=0,
        help="learn the rows in a random order; all of them are held in memory",
    )


def check_shuffle(arguments: argparse.Namespace) -> None:
    """Refuse what needs the rows in their own order."""
    if arguments.shuffle is None:
        return
    for name, value in (("--checkpoint", arguments.checkpoint), ("--predictions", arguments.predictions)):
        if value:
            raise ValueError(
                f"{name} needs the rows in their order and cannot go with --shuffle; leave one of them out"
            )


def in_order(batches: Iterable[Batch], arguments: argparse.Namespace, number: int) -> Iterator[Batch]:
    """The batches of pass ``number`` as they come, or all of their rows shuffled, in every pass otherwise."""
    from linmax.io.shuffling import shuffled

    return iter(batches) if arguments.shuffle is None else shuffled(batches, arguments.shuffle + number)


def told_of_runs(runs: Runs) -> str:
    """What to say about rows that look sorted; nothing if they do not."""
    if not runs.long:
        return ""
    return (
        f"Warning: the rows look sorted by class: the same label comes {runs.rows / runs.runs:,.0f} times in a row on "
        f"average ({runs.rows / runs.expected:,.1f} in random order), so the progressive error says little about "
        "other rows; try --shuffle"
    )
