"""Show what a model file holds: the learner, counts, classes, and the largest weights.

This works for every file that linmax saves: models of `linmax learn` and
their checkpoints, learners, fusions. A damaged file, or one of another
program, is refused.
"""

from __future__ import annotations

import argparse
from typing import Any

from linmax.cli.options import JSON_OPTION
from linmax.cli.output import console, say, wide_console

__all__ = ["OPTIONS", "run"]

SHORT = 200  # characters of a value


OPTIONS = f"""
MODEL  a file that linmax saved
--top N:int=10  attributes to show for each class
--classes A,B  show these classes only
{JSON_OPTION}
"""


def run(arguments: argparse.Namespace) -> None:
    """Read the file, print what it holds and write the figures."""
    from linmax.cli.models import open_model
    from linmax.util import checks, outputs

    checks.whole("top", arguments.top, 0)
    outputs.check_outputs([arguments.json], [arguments.model])
    figures = open_model(arguments.model).describe(arguments)
    _print(figures, arguments)
    if arguments.json:
        report, members = figures.pop("report", None), figures.get("members")
        if members is not None:
            figures["members"] = {member.name: member.value for member in members}
        outputs.write_json(figures | ({} if report is None else report.to_dict()), arguments.json)


def _print(figures: dict[str, Any], arguments: argparse.Namespace) -> None:
    from rich.table import Table
    from rich.text import Text

    from linmax.cli.models import decided_text

    screen = wide_console(arguments) if "report" in figures else console(arguments)
    weights = figures.get("weights")
    for name, value in figures.items():
        if value is None or value in ({}, []) or name == "report" or (name == "weights" and isinstance(value, dict)):
            continue
        if name == "members":
            width = max(len(member.text) for member in value)
            say(screen, "members:", *(f"  {member.text:>{width}}  {member.name}" for member in value))
        else:
            text = decided_text(value) if name == "decided" else _short(value)
            say(screen, f"{name}: {text[:SHORT]}{' ...' if len(text) > SHORT else ''}")
    if isinstance(weights, dict) and any(weights.values()):
        table = Table("class", "attributes with the largest weights", box=None, title_justify="left")
        for name, row in weights.items():
            table.add_row(Text(name), Text("  ".join(f"{word} {weight:+.3g}" for word, weight in row.items())))
        screen.print(table)
    if "report" in figures:
        screen.print()
        screen.print(figures["report"])


def _short(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(
            f"{name} {number:+.3g}" if isinstance(number, float) else f"{name} {_short(number)}"
            for name, number in value.items()
        )
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
