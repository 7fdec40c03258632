"""Where a command's messages and figures go."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["add_json_option", "console"]


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--json FILE``."""
    parser.add_argument("--json", metavar="FILE", help="also write the figures as JSON ('-' = standard output)")


def console(arguments: argparse.Namespace) -> Console:
    """The console for messages: standard output, unless the figures go there."""
    from rich.console import Console

    return Console(stderr=arguments.json == "-", highlight=False)
