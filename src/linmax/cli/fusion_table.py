"""Tables of votes or scores, as `linmax fuse` and `linmax predict` read them.

Columns named rater:class, such as bayes:cat and bayes:dog, hold the scores of raters; in JSON lines they may be written
{"bayes": {"cat": 0.9, "dog": 0.1}}. Any other column is a voter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from linmax.cli.reading import shown_name

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Columns", "as_ballots", "objects", "read_scores", "read_table"]

Columns = dict[str, list[Any]]
SEPARATOR = ":"


def read_table(path: str, kind: str | None, wanted: Sequence[str]) -> tuple[Columns, int]:
    """The columns of a table, among which those that are ``wanted`` must be, and the line of the first row."""
    from linmax.io.reader import open_source, read_columns

    source, found = open_source(path, kind, columns=True)
    columns = read_columns(source, found)
    for name in wanted:
        if name not in columns:
            raise ValueError(f"{shown_name(path)} has no column {name!r}; it has {', '.join(columns)}")
    if not columns or not next(iter(columns.values())):
        raise ValueError(f"{shown_name(path)} has no rows below its header")
    return columns, 2 if found in ("csv", "tsv") else 1


def read_scores(name: str, columns: Mapping[str, Sequence[Any]]) -> tuple[dict[str, np.ndarray], list[str]] | None:
    """Scores (rows, classes) of each rater, and the classes; None if the columns are not named rater:class.

    A rater without any score in a row abstains there.
    """
    import numpy as np

    raters: dict[str, dict[str, str]] = {}
    for column in columns:
        rater, separator, choice = column.rpartition(SEPARATOR)
        if not (separator and rater and choice):
            return None
        raters.setdefault(rater, {})[choice] = column
    classes = list(next(iter(raters.values()), {}))
    if len(classes) < 2 or any(set(found) != set(classes) for found in raters.values()):
        return None
    tables = {}
    for rater, found in raters.items():
        table = np.column_stack([_numbers(name, found[choice], columns[found[choice]]) for choice in classes])
        silent = np.isnan(table).all(axis=1)
        table[silent] = 0.0
        if np.isnan(table).any():
            row, place = (int(i) for i in np.argwhere(np.isnan(table))[0])
            raise ValueError(
                f"{name}, row {row + 1}: column {found[classes[place]]!r} is empty, and others of {rater!r} are not; "
                "fill it in, or leave all of them empty"
            )
        tables[rater] = table
    return tables, classes


def _numbers(name: str, column: str, cells: Sequence[Any]) -> np.ndarray:
    import numpy as np

    found = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        if cell is None:
            continue
        try:
            found[row] = float(cell)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name}, row {row + 1}: the score in column {column!r} is {cell!r}, which is not a number"
            ) from None
    return found


def as_ballots(voters: Mapping[str, Sequence[Any]], sides: Mapping[str, Sequence[Any]], rows: np.ndarray) -> Any:
    """These rows of votes, with the side columns to their right, as a fusion takes them."""
    import numpy as np

    from linmax.data.votes import Ballots

    columns = [objects(column)[rows] for column in (*voters.values(), *sides.values())]
    return Ballots(np.column_stack(columns), (*voters, *sides))


def objects(values: Sequence[Any]) -> np.ndarray:
    """Values of any kind as an array."""
    import numpy as np

    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
