"""Columns named rater:class, such as bayes:cat and bayes:dog, which hold the scores of raters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["numbers_of", "rated_columns"]

SEPARATOR = ":"


def rated_columns(name: str, columns: Mapping[str, Sequence[Any]]) -> tuple[dict[str, np.ndarray], list[str]] | None:
    """Scores (rows, classes) of each rater, and the classes; None if the columns are not named rater:class.

    A rater without any score in a row abstains there.
    """
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
        table = np.column_stack([numbers_of(name, found[choice], columns[found[choice]]) for choice in classes])
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


def numbers_of(name: str, column: str, cells: Sequence[Any]) -> np.ndarray:
    """Return the scores in a column; nan where it is empty."""
    found = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        if cell is None or cell is ...:
            continue
        try:
            found[row] = float(cell)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name}, row {row + 1}: the score in column {column!r} is {cell!r}, which is not a number"
            ) from None
        if np.isinf(found[row]):
            raise ValueError(
                f"{name}, row {row + 1}: the score in column {column!r} is {cell!r}, which is not finite; give a "
                "number, such as -100 for the logarithm of 0"
            )
    return found
