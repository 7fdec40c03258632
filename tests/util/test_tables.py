"""Tables as plain text and by rich."""

import os
import subprocess
import sys

import numpy as np
from rich.console import Console

from linmax.util.tables import Heading, table

ROWS = [
    {"learner": "winnow(1.1)", "mistakes": 12345, "error": 0.25},
    {"learner": "[bold]", "mistakes": np.int64(7), "error": None},
]
COLUMNS = [Heading("learner"), Heading("mistakes", format=",d"), Heading("error", "late error", ".3f")]


def rich_text(renderable, width=80):
    console = Console(width=width, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    with console.file:
        console.print(renderable)
    return console.export_text()


class TestTable:
    def test_plain_text(self):
        assert str(table(ROWS, COLUMNS, title="Results")).splitlines() == [
            "Results",
            "learner      mistakes  late error",
            "-----------  --------  ----------",
            "winnow(1.1)    12,345       0.250",
            "[bold]              7           -",
        ]

    def test_rich_shows_the_same_cells(self):
        shown = rich_text(table(ROWS, COLUMNS, title="Results"))
        for cell in ["Results", "winnow(1.1)", "12,345", "0.250", "[bold]", "late error"]:
            assert cell in shown

    def test_no_rows_leaves_the_headings(self):
        assert str(table([], COLUMNS)).startswith("learner  mistakes  late error")

    def test_plain_table_needs_neither_rich_nor_matplotlib(self, environment):
        code = (
            "import sys; from linmax.util.tables import *; str(table([{'a': 1}], [Heading('a')]));"
            "print([m for m in ('rich', 'matplotlib') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        assert done.stdout.strip() == "[]", done.stderr
