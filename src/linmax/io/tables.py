"""Tables as columns of Arrow: frames of pandas and polars, Arrow's own tables and batches, fields of text.

Columns of numbers are dense attributes (null, nan and words such as NA are missing, true is 1 and false is 0), columns
of text and categories become attributes ``column=value``, a text becomes its words. A word in a column of numbers is a
category there, and its number is missing.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from linmax.io.options import ReadOptions
from linmax.io.records import Items, Records
from linmax.io.schema import (
    DATES,
    MISSING,
    NUMBER,
    TRUTH,
    TYPE_SAMPLE,
    cell_type,
    dense_columns,
    is_number,
    named_columns,
    number_note,
    refuse_repeated,
    schema_of,
    text_note,
    words_type,
)
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import types
else:
    pa, types = LazyModule("pyarrow"), LazyModule("pyarrow.types")

__all__ = ["Column", "TableLayout", "columns_of", "is_columnar"]

INEXACT = 2**53  # from here on, whole numbers may be rounded as floats


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


@dataclass(frozen=True, eq=False)
class Column:
    """A column: its kind (number, category, or why it is no attribute), and its cells.

    They are numbers, with nan for those missing; an Arrow array of text; or objects with None for those missing.
    """

    kind: str
    cells: Any

    def sample(self, many: int = TYPE_SAMPLE) -> list[Any]:
        """The first values, without those missing."""
        if isinstance(self.cells, np.ndarray):
            return [value for value in self.cells[:many].tolist() if value is not None]
        return [value for value in self.cells[:many].to_pylist() if value is not None]

    @property
    def beyond(self) -> bool:
        """Whether there are whole numbers that are rounded as floats."""
        if not isinstance(self.cells, np.ndarray):
            return False
        if self.cells.dtype.kind == "O":
            return any(isinstance(value, int) and abs(value) >= INEXACT for value in self.cells.tolist())
        return self.cells.dtype.kind in "iu" and bool((np.abs(self.cells.astype(float)) >= INEXACT).any())

    @cached_property
    def coded(self) -> tuple[np.ndarray, list[Any]]:
        """The place of each cell among the different values, -1 for those missing; and these values."""
        if not isinstance(self.cells, np.ndarray):
            found = self.cells if pa.types.is_dictionary(self.cells.type) else self.cells.dictionary_encode()
            codes = found.indices.fill_null(-1) if found.null_count else found.indices
            return codes.to_numpy(zero_copy_only=False).astype(np.int64), found.dictionary.to_pylist()
        if self.cells.dtype.kind == "O":
            places: dict[tuple[type, Any], int] = {}
            objects = [-1 if v is None else places.setdefault((type(v), v), len(places)) for v in self.cells.tolist()]
            return np.array(objects, np.int64), [value for _, value in places]
        values, codes = np.unique(self.cells, return_inverse=True)
        codes = np.where(self.cells != self.cells, -1, codes)
        return codes, values.tolist()

    def texts(self) -> tuple[np.ndarray, list[str]]:
        """The same, with values as texts; an empty text is missing, too."""
        codes, values = self.coded
        return codes, [plain(value) for value in values]

    def written(self) -> list[str]:
        """All cells as texts, empty for those missing."""
        codes, texts = self.texts()
        return np.array([*texts, ""], dtype=object)[codes].tolist()

    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """All cells as floats, nan for those missing; and the rows of words."""
        none = np.zeros(0, np.int64)
        if isinstance(self.cells, np.ndarray) and self.cells.dtype.kind != "O":
            return self.cells.astype(np.float64), none
        if not isinstance(self.cells, np.ndarray):
            try:
                return self.cells.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64), none
            except pa.ArrowInvalid:
                pass
        codes, values = self.coded
        pairs = [_number(value) for value in values]
        table = np.array([*(np.nan if number is None else number for number in pairs), np.nan])
        is_word = np.array([*(number is None for number in pairs), False])
        return table[codes], np.flatnonzero(is_word[codes])


def _number(value: Any) -> float | None:
    """A value as a number, nan if it is missing, None if it is a word; true and false may be words."""
    if not isinstance(value, str):
        return float(value)
    word = value.lower()
    if word in MISSING:
        return float("nan")
    if word in TRUTH:
        return float(TRUTH.index(word))
    return float(value) if is_number(value) else None


def columns_of(table: Any) -> tuple[dict[str, Column], int]:
    """Columns by name, and the number of rows."""
    if hasattr(table, "dtypes") and hasattr(table, "columns"):
        return {str(name): _of_series(table[name]) for name in table.columns}, len(table)
    if not hasattr(table, "num_rows"):
        table = pa.table(table)
    pairs = zip(table.schema.names, table.columns, strict=True)
    return {name: _of_arrow(column) for name, column in pairs}, table.num_rows


def _of_series(series: Any) -> Column:
    """A column of a frame; one in which types are mixed is a column of objects."""
    try:
        return _of_arrow(series.to_arrow() if hasattr(series, "to_arrow") else pa.array(series, from_pandas=True))
    except (pa.ArrowException, TypeError, OverflowError):
        objects = np.array([*map(_cleared, series.tolist()), None], dtype=object)[:-1]
    values = [value for value in objects.tolist() if value is not None]
    strange = next((v for v in values if not isinstance(v, (str, int, float, decimal.Decimal, np.generic))), None)
    if strange is not None:
        return Column(f"of the type {type(strange).__name__}", objects)
    is_numeric = values and not any(isinstance(value, str) for value in values[:1000])
    return Column(NUMBER if is_numeric else words_type(values[:TYPE_SAMPLE]), objects)


def _cleared(value: Any) -> Any:
    """None for what is missing."""
    return None if value is None or value != value or type(value).__name__ in ("NAType", "NaTType") else value


def _of_arrow(column: Any) -> Column:
    kind = column.type
    if types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        text = column.cast(pa.large_string())
        return Column(words_type([value for value in text[:TYPE_SAMPLE].to_pylist() if value is not None]), text)
    if types.is_integer(kind) and not column.null_count:
        return Column(NUMBER, np.array(column.to_numpy(zero_copy_only=False)))
    if types.is_boolean(kind):
        return Column(NUMBER, np.array(column.to_pylist(), object if column.null_count else bool))
    if types.is_integer(kind) and kind.bit_width == 64:
        objects = column.to_pylist()
        if any(value is not None and abs(value) >= INEXACT for value in objects):  # where it is a name, do not round it
            return Column(NUMBER, np.array([*objects, None], dtype=object)[:-1])
    if types.is_decimal(kind):  # Arrow's own cast does not round to the nearest number
        return Column(NUMBER, np.array([np.nan if v is None else float(v) for v in column.to_pylist()], np.float64))
    if types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind):
        return Column(NUMBER, column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False).astype(np.float64))
    if types.is_temporal(kind):
        return Column(DATES, column.cast(pa.string()))
    if types.is_list(kind) or types.is_large_list(kind):
        return Column("lists", column)
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return Column("bytes", column)
    return Column(f"of the type {kind}", column)


class TableLayout:
    """Records from the columns of tables. The first of them decide what the columns are.

    ``settled`` and ``notes`` are those of the format; ``fields`` says that all cells are text, as in CSV.
    """

    def __init__(self, options: ReadOptions, settled: dict[str, Any], notes: list[str], fields: bool = False) -> None:
        self.options, self.settled, self.notes, self.fields = options, settled, notes, fields
        self.dense_names: tuple[str, ...] = ()
        self.header: list[str] = []
        self.kinds: dict[str, str] = {}
        self.widened: dict[str, tuple[str, int]] = {}  # columns of numbers with words: unit and number of the first
        if "kinds" in settled:
            self._decided()

    def settle(self, name: str, columns: dict[str, Column]) -> None:
        """Decide what the columns are."""
        header, options = named_columns(list(columns)), self.options
        refuse_repeated(name, header)
        of = dict(zip(header, columns.values(), strict=True))
        cells = {column: of[column].sample() for column in header}
        if self.fields:
            cells = {column: [text for text in some if text.lower() not in MISSING] for column, some in cells.items()}
        schema = schema_of(name, header, lambda one: cell_type(cells[one]) if self.fields else of[one].kind, options)
        kinds = dict(zip(header, schema.kinds, strict=True))
        guessed = {column: kind for column, kind in kinds.items() if column not in options.categorical}
        self.notes += [*schema.notes, *(text_note(header, schema.kinds, cells) if self.fields else [])]
        self.notes += number_note(guessed, cells)
        self.notes += [
            f"Column {column!r} has whole numbers beyond 2^53, which are rounded; if they are names, make it "
            "categorical."
            for column, kind in kinds.items()
            if kind == NUMBER and of[column].beyond
        ]
        self.settled |= {"header": header, "kinds": schema.kinds}
        self._decided()

    def _decided(self) -> None:
        self.header, kinds = self.settled["header"], self.settled["kinds"]
        self.kinds = dict(zip(self.header, kinds, strict=True))
        self.dense_names = dense_columns(self.header, kinds, self.options.known)

    def one(self, kind: str) -> str | None:
        """The column of a kind of which there is at most one."""
        return next((name for name, one in self.kinds.items() if one == kind), None)

    def rows(self, name: str, given: dict[str, Column], lines: np.ndarray, unit: str = "line") -> Records:
        """Lay out the rows of a table, and decide first what the columns are if it is the first."""
        if not self.kinds:
            self.settle(name, given)
        columns, size, options = (
            dict(zip(named_columns(list(given)), given.values(), strict=True)),
            len(lines),
            self.options,
        )
        if list(columns) != self.header:
            if sorted(columns) != sorted(self.header):
                told = f"{', '.join(list(columns)[:5])} ..., not {', '.join(self.header[:5])} ..."
                raise ValueError(f"{name} has other columns than the data before it: {told}")
            columns = {column: columns[column] for column in self.header}
        items, alone = Items(), list(self.kinds.values()).count("text") == 1
        dense = np.zeros((size, len(self.dense_names)))
        places = {column: place for place, column in enumerate(self.dense_names)}
        for column, kind in self.kinds.items():
            if kind == "number":
                head = f"{column}=".encode()
                items.head(head)
                dense[:, places[column]], words = columns[column].numbers()
                if len(words):
                    self.widened.setdefault(column, (unit, int(lines[words[0]])))
                    codes, texts = columns[column].texts()
                    only = np.full(size, -1)
                    only[words] = codes[words]
                    items.add_coded(head, only, texts)
            elif kind == "category":
                items.add_coded(f"{column}=".encode(), *columns[column].texts())
            elif kind == "text":
                items.add_coded(b"" if alone else f"{column}^".encode(), *columns[column].texts(), is_text=True)
        label, weight = self.one("label"), self.one("weight")
        codes, texts = (np.full(size, -1), []) if label is None else columns[label].texts()
        weights, weight_texts = np.ones(size), None
        if weight is not None:
            weights, words = columns[weight].numbers()
            weights[words] = np.nan
            weight_texts = columns[weight].written() if np.isnan(weights).any() else None
        return Records(
            name, lines, codes, texts, dense, items, weights, weight_texts, unit=unit, dense_names=self.dense_names,
            tags=None if options.id is None else columns[options.id].written(),
        )  # fmt: skip

    def remarks(self) -> list[str]:
        """Columns of numbers in which words were found."""
        return [
            f"Column {column!r} has words among its numbers, the first in {unit} {number:,}; they are taken as "
            "categories."
            for column, (unit, number) in self.widened.items()
        ]
