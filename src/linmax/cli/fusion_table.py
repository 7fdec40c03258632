"""Tables of votes or scores, as `linmax fuse` and `linmax predict` read them.

Columns named rater:class hold the scores of raters (`linmax.data.score_columns`); in JSON lines they may be written
{"bayes": {"cat": 0.9, "dog": 0.1}}. Any other column is a voter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from linmax.cli.reading import shown_name

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Columns", "as_ballots", "objects", "read_table"]

Columns = dict[str, list[Any]]


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
