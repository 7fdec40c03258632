"""Tables of results: plain text, or with lines and colours by rich, which is imported only then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import rich.table


__all__ = ["Heading", "Table", "table"]


@dataclass(frozen=True)
class Heading:
    """One column: the rows' key, the heading (the key when empty) and a format such as ``",d"``."""

    key: str
    heading: str = ""
    format: str = ""


@dataclass(frozen=True)
class Table:
    """A table of text cells: ``str(table)`` is plain text, and rich prints it with lines and colours."""

    headings: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    title: str = ""

    def __str__(self) -> str:
        rows = [self.headings, *self.cells]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [self._line(row, widths) for row in rows]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([self.title, *lines] if self.title else lines)

    def _line(self, row: Sequence[str], widths: Sequence[int]) -> str:
        cells = (
            f"{cell:>{width}}" if numeric else f"{cell:<{width}}"
            for cell, width, numeric in zip(row, widths, self.numeric, strict=True)
        )
        return "  ".join(cells).rstrip()

    def __rich__(self) -> rich.table.Table:
        from rich import box, table
        from rich.text import Text

        shown = table.Table(title=self.title or None, title_justify="left", box=box.SIMPLE_HEAD)
        for heading, numeric in zip(self.headings, self.numeric, strict=True):
            shown.add_column(Text(heading), justify="right" if numeric else "left")
        for row in self.cells:
            shown.add_row(*map(Text, row))  # Text: a bracket in a name is not markup
        return shown


def table(rows: Iterable[Mapping[str, object]], columns: Sequence[Heading], title: str = "") -> Table:
    """Lay out rows as a table; ``None`` and absent values show as a dash, numbers are right-aligned.

    Examples
    --------
    >>> rows = [{"learner": "perceptron", "mistakes": 1234}, {"learner": "plurality", "mistakes": None}]
    >>> print(table(rows, [Heading("learner"), Heading("mistakes", format=",d")]))
    learner     mistakes
    ----------  --------
    perceptron     1,234
    plurality          -
    """
    values = [[row.get(column.key) for column in columns] for row in rows]
    return Table(
        headings=tuple(column.heading or column.key for column in columns),
        cells=tuple(tuple(map(_cell, row, columns)) for row in values),
        numeric=tuple(_all_numbers(row[i] for row in values) for i in range(len(columns))),
        title=title,
    )


def _cell(value: object, column: Heading) -> str:
    return "-" if value is None else format(value, column.format)


def _all_numbers(values: Iterable[object]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(isinstance(value, (int, float, np.number)) for value in present)
