"""Tables of votes or scores, as `linmax fuse` and `linmax predict` read them.

Columns named rater:class hold the scores of raters (`linmax.data.score_columns`); in JSON lines they may be written
{"bayes": {"cat": 0.9, "dog": 0.1}}. Any other column is a voter.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from linmax.cli.reading import cells_listed, nothing_read, shown_name

if TYPE_CHECKING:
    import numpy as np

    from linmax.io.reader import ReadTable

__all__ = ["Columns", "as_ballots", "counted", "objects", "one_table", "some", "table_of"]

NAMES_SHOWN = 5  # names in a message
Columns = dict[str, list[Any]]


def table_of(
    arguments: argparse.Namespace,
    path: str,
    wanted: Sequence[str],
    voters: Sequence[str] | None = None,
    ignored: bool = True,
) -> ReadTable:
    """A table without the columns that --ignore leaves out; they, if ``ignored``, and those ``wanted`` must be there.

    With ``voters``, only their columns and those that are wanted need hold what a table can hold.
    """
    from linmax.io.reader import read_table

    known = None if voters is None else {*voters, *wanted}
    table = read_table(path, arguments.format, cells_listed(arguments.ignore), arguments.strict, known)
    if not table.lines and table.refusals.total:
        raise ValueError(nothing_read([shown_name(path)], table.refusals))
    if not table.columns and not table.left_out:
        raise ValueError(f"{shown_name(path)} is empty; give a table")
    for name in (*(cells_listed(arguments.ignore) if ignored else ()), *wanted):
        if name not in table.columns and name not in table.left_out:
            raise ValueError(f"{shown_name(path)} has no column {name!r}; it has {', '.join(table.columns)}")
    if not table.columns or not table.lines:
        raise ValueError(f"{shown_name(path)} has no rows below its header")
    return table


def one_table(
    arguments: argparse.Namespace, paths: Sequence[str], wanted: Sequence[str]
) -> tuple[ReadTable, list[str]]:
    """The rows of one or several tables, one after the other, and what to say of columns that some of them lack."""
    tables = [table_of(arguments, path, wanted, ignored=len(paths) == 1) for path in paths]
    first, remarks = tables[0], list[str]()
    if len(tables) == 1:
        return first, remarks
    names = list(dict.fromkeys(name for table in tables for name in table.columns))
    columns: Columns = {name: [] for name in names}
    lines = [line for table in tables for line in table.lines]
    for path, table in zip(paths, tables, strict=True):
        lacking = [name for name in names if name not in table.columns]
        if lacking:
            them = "column" if len(lacking) == 1 else "columns"
            remarks.append(f"{shown_name(path)} has no {them} {some(lacking)}; empty there.")
        for name, cells in columns.items():
            cells += table.columns.get(name) or [None] * len(table.lines)
    for table in tables[1:]:
        first.refusals.join(table.refusals)
    left_out, objects_of = set[str]().union(*(table.left_out for table in tables)), dict[str, str]()
    for table in tables:
        objects_of |= table.objects
    whole = replace(first, columns=columns, lines=lines, left_out=left_out, objects=objects_of)
    absent = next((name for name in cells_listed(arguments.ignore) if name not in columns.keys() | left_out), None)
    if absent is not None:
        raise ValueError(f"none of {len(paths)} tables has a column {absent!r}; they have {', '.join(columns)}")
    return whole, remarks


def as_ballots(voters: Mapping[str, Sequence[Any]], sides: Mapping[str, Sequence[Any]], rows: np.ndarray) -> Any:
    """These rows of votes, with the side columns to their right, as a fusion takes them."""
    import numpy as np

    from linmax.data.votes import ballots_of

    columns = [objects(column)[rows] for column in (*voters.values(), *sides.values())]
    return ballots_of(np.column_stack(columns), (*voters, *sides))


def objects(values: Sequence[Any]) -> np.ndarray:
    """Values of any kind as an array."""
    import numpy as np

    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def counted(number: int, what: str) -> str:
    """So many of them: "1 row", "2,000 rows"."""
    return f"{number:,d} {what}{'s' if number != 1 else ''}"


def some(names: Sequence[str]) -> str:
    """A few names, and how many more there are."""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{', '.join(names[:NAMES_SHOWN])}{more}"
