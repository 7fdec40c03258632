"""Fuse the answers of twelve models to multiple-choice questions, as a first example.

Writes a synthetic table of answers, fuses it as `linmax fuse` does, prints the
report and saves it as a page for the browser. Weak models outnumber strong
ones, models of a family share their errors, and each family is better at one
subject, so that a plain majority vote is not the best answer.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from linmax.cli.options import JSON_OPTION, add_options
from linmax.cli.output import console, say

__all__ = ["OPTIONS", "run"]

DEMO_TABLE, DEMO_PAGE = "linmax-demo.csv", "linmax-demo.html"


OPTIONS = f"""
--rows N:int=1000  questions in the table
--seed S:int=0  seed of the table
--out FOLDER=.  where to write {DEMO_TABLE} and {DEMO_PAGE}
{JSON_OPTION}
"""


def run(arguments: argparse.Namespace) -> None:
    """Write the table, fuse it and say what to open."""
    from linmax.cli import fuse
    from linmax.util.checks import whole
    from linmax.util.outputs import check_outputs

    whole("rows", arguments.rows, 10)
    table, page = (Path(arguments.out) / name for name in (DEMO_TABLE, DEMO_PAGE))
    check_outputs([str(table), str(page), arguments.json], [])
    write_table(table, arguments.rows, arguments.seed)
    options = ["--label", "answer", "--by", "subject", "--html", str(page)]
    parser = argparse.ArgumentParser()
    add_options(parser, fuse.OPTIONS)
    fuse.run(parser.parse_args([str(table), *options, *(["--json", arguments.json] if arguments.json else [])]))
    screen = console(arguments)
    say(
        screen, f"Open {page} in a browser. The same with your own table:", f"  linmax fuse {table} {' '.join(options)}"
    )


def write_table(path: Path, rows: int, seed: int) -> None:
    """Write a table with a column for each model, the subject and the right answer."""
    import csv

    from linmax.datasets import jury_problem
    from linmax.util.files import replacing

    jury = jury_problem(trials=rows, seed=seed)
    with replacing(path, text=True) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*jury.votes, "subject", "answer"])
        writer.writerows(zip(*jury.votes.values(), jury.subjects, jury.labels, strict=True))
