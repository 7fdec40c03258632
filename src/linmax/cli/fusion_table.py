"""Tables of votes or scores, as `linmax fuse` and `linmax predict` read them.

Columns named rater:class hold the scores of raters (`linmax.data.score_columns`); in JSON lines they may be written
{"bayes": {"cat": 0.9, "dog": 0.1}}. Any other column is a voter.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from linmax.cli.reading import cells_listed, nothing_read, shown_name

if TYPE_CHECKING:
    import numpy as np

    from linmax.io.reader import ReadTable

__all__ = ["Columns", "as_ballots", "counted", "objects", "some", "table_of"]

NAMES_SHOWN = 5  # names in a message
Columns = dict[str, list[Any]]


def table_of(
    arguments: argparse.Namespace, path: str, wanted: Sequence[str], voters: Sequence[str] | None = None
) -> ReadTable:
    """A table without the columns that --ignore leaves out; they and those that are ``wanted`` must be there.

    With ``voters``, only their columns and those that are wanted need hold what a table can hold.
    """
    from linmax.io.reader import read_table

    known = None if voters is None else {*voters, *wanted}
    table = read_table(path, arguments.format, cells_listed(arguments.ignore), arguments.strict, known)
    if not table.lines and table.refusals.total:
        raise ValueError(nothing_read([shown_name(path)], table.refusals))
    for name in (*cells_listed(arguments.ignore), *wanted):
        if name not in table.columns and name not in table.left_out:
            raise ValueError(f"{shown_name(path)} has no column {name!r}; it has {', '.join(table.columns)}")
    if not table.columns or not table.lines:
        raise ValueError(f"{shown_name(path)} has no rows below its header")
    return table


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
