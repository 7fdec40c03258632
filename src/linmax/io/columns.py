"""Columns of frames and Arrow tables with what they hold: numbers, words, or something that is no attribute."""

from __future__ import annotations

import datetime
import decimal
from dataclasses import dataclass
from typing import Any

import numpy as np

from linmax.io.schema import DATES, NUMBER, TRUTH, TYPE_SAMPLE, words_type

__all__ = ["Column", "columns_of", "is_columnar", "plain"]

INEXACT = 2**53  # from here on, whole numbers may be rounded as floats
PLURALS = {"list": "lists", "tuple": "lists", "ndarray": "lists", "dict": "objects", "bytes": "bytes", "set": "sets"}


def is_columnar(data: Any) -> bool:
    """Whether this is a frame, or an Arrow table or batch."""
    return (
        hasattr(data, "__arrow_c_stream__")
        or hasattr(data, "__arrow_c_array__")
        or (hasattr(data, "columns") and hasattr(data, "dtypes"))
    )


def plain(value: Any) -> str:
    """A value as text, whole numbers without a point."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


@dataclass(frozen=True)
class Column:
    """A column: its kind (number, category, or why it is no attribute), and its values as floats or as objects."""

    kind: str
    content: np.ndarray  # float64 with nan for null; int64, uint64 or bool without nulls; or objects with None for null

    def part(self, begin: int, end: int) -> Column:
        """Some rows of it."""
        return Column(self.kind, self.content[begin:end])

    @property
    def beyond(self) -> bool:
        """Whether there are whole numbers that are rounded as floats."""
        if self.content.dtype.kind == "O":
            return any(isinstance(value, int) and abs(value) >= INEXACT for value in self.content.tolist())
        return self.content.dtype.kind in "iu" and bool((np.abs(self.content.astype(float)) >= INEXACT).any())

    def cell(self, row: int) -> str:
        """A value as text."""
        return plain(self.content[row])

    def values(self) -> list[Any]:
        """All values, None for those that are missing."""
        found = self.content.tolist()
        return [None if value is None or value != value else value for value in found]

    def numbers(self) -> tuple[np.ndarray, list[int]]:
        """All values as floats, nan for those missing; and the rows of those that are no numbers."""
        if self.content.dtype.kind != "O":
            return self.content.astype(np.float64), []
        found, strange = np.full(len(self.content), np.nan), []
        for row, value in enumerate(self.content.tolist()):
            try:
                found[row] = np.nan if value is None or value == "" else _number(value)
            except (TypeError, ValueError):
                strange.append(row)
        return found, strange


def _number(value: Any) -> float:
    """A value as a number; true and false may be words."""
    word = value.lower() if isinstance(value, str) else None
    return float(TRUTH.index(word)) if word in TRUTH else float(value)


def columns_of(table: Any) -> tuple[dict[str, Column], int]:
    """Columns by name, and the number of rows."""
    if hasattr(table, "to_pylist") or hasattr(table, "__arrow_c_array__") or hasattr(table, "read_next_batch"):
        return _arrow_columns(table)
    found: dict[str, Column] = {}
    for name in table.columns:
        column = table[name]
        array = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
        found[str(name)] = _of_array(array)
    return found, len(table)


def _of_array(array: np.ndarray) -> Column:
    kind = array.dtype.kind
    if kind in "iub":
        return Column(NUMBER, array)
    if kind == "f":
        return Column(NUMBER, array.astype(np.float64))
    if kind in "mM":
        return Column(DATES, np.array([None if value != value else str(value) for value in array], dtype=object))
    objects = np.array([_cleared(value) for value in array.tolist()] + [None], dtype=object)[:-1]
    return Column(_kind_of(objects), objects)


def _cleared(value: Any) -> Any:
    """None for what is missing."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    return None if type(value).__name__ in ("NAType", "NaTType") else value


def _kind_of(objects: np.ndarray) -> str:
    """The kind of a column of objects: that of its first values."""
    some = [value for value in objects[:1000].tolist() if value is not None]
    for value in some:
        if isinstance(value, (datetime.date, datetime.time, datetime.timedelta, np.datetime64)):
            return DATES
        if type(value).__name__ in PLURALS:
            return PLURALS[type(value).__name__]
        if not isinstance(value, (str, int, float, decimal.Decimal, np.generic)):
            return f"of the type {type(value).__name__}"
    numbers = [isinstance(value, (int, float, decimal.Decimal)) for value in some]
    if numbers and all(numbers):
        return NUMBER
    return words_type([value for value in objects[:TYPE_SAMPLE].tolist() if value is not None])


def _arrow_columns(table: Any) -> tuple[dict[str, Column], int]:
    if hasattr(table, "read_all"):
        table = table.read_all()
    pairs = zip(table.schema.names, table.columns, strict=True)
    return {name: _of_arrow(column) for name, column in pairs}, table.num_rows


def _of_arrow(column: Any) -> Column:
    import pyarrow

    kinds, kind = pyarrow.types, column.type
    if kinds.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if kinds.is_integer(kind) and not column.null_count:
        return Column(NUMBER, np.array(column.to_numpy(zero_copy_only=False)))
    if kinds.is_boolean(kind):
        return Column(NUMBER, np.array(column.to_pylist(), object if column.null_count else bool))
    if kinds.is_integer(kind) and column.type.bit_width == 64:
        objects = column.to_pylist()
        if any(value is not None and abs(value) >= INEXACT for value in objects):  # where it is a name, do not round it
            return Column(NUMBER, np.array([*objects, None], dtype=object)[:-1])
    if kinds.is_decimal(kind):  # Arrow's own cast does not round to the nearest number
        return Column(NUMBER, np.array([np.nan if v is None else float(v) for v in column.to_pylist()], np.float64))
    if kinds.is_integer(kind) or kinds.is_floating(kind):
        array = column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
        return Column(NUMBER, np.array(array, np.float64))
    if kinds.is_temporal(kind):
        return Column(DATES, np.array([*column.cast(pyarrow.string()).to_pylist(), None], dtype=object)[:-1])
    objects = np.array([*column.to_pylist(), None], dtype=object)[:-1]
    if kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind):
        return Column(words_type([value for value in objects[:TYPE_SAMPLE].tolist() if value is not None]), objects)
    if kinds.is_null(kind):
        return Column(NUMBER, np.full(len(objects), np.nan))
    if kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_fixed_size_binary(kind):
        return Column("bytes", objects)
    return Column("lists" if kinds.is_list(kind) or kinds.is_large_list(kind) else f"of the type {kind}", objects)
