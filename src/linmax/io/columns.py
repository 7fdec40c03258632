"""Columns of tables: numbers in an array, or texts as places in a block of bytes, such as the fields of CSV.

Columns of frames and of Arrow tables become one or the other. A text may be read as a number; an empty one is missing.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import float64, int64

from linmax.io.bytes import GOOD, PADDING, Block, byte, number, plain_number, powers
from linmax.io.schema import DATES, MISSING, NUMBER, TRUTH, TYPE_SAMPLE, is_number, words_type
from linmax.io.vocabulary import Vocabulary
from linmax.jit.compiling import kernel
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import types
else:
    pa, types = LazyModule("pyarrow"), LazyModule("pyarrow.types")

__all__ = ["Fields", "Numbers", "columns_of", "is_columnar", "plain"]

INEXACT = 2**53  # from here on, whole numbers may be rounded as floats
MINUS = 45


def plain(value: object) -> str:
    """A value as text, whole numbers without a point."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


@kernel(int64(Block, int64[::1], int64[::1], float64[:], int64[::1], float64[::1], int64[:, ::1]))
def read_numbers(
    block: np.ndarray,
    begins: np.ndarray,
    ends: np.ndarray,
    values: np.ndarray,
    words: np.ndarray,
    tens: np.ndarray,
    table: np.ndarray,
) -> int:
    """Read fields as numbers, nan where one is empty; count those that are words, whose places go to ``words``."""
    many = 0
    for i in range(begins.size):
        at, end, status = begins[i], ends[i], GOOD
        minus = byte(block, at) == MINUS
        value = plain_number(block, at + minus, end - at - minus, tens)
        if value >= 0.0:
            values[i] = -value if minus else value
            continue
        value = np.nan
        if at < end:
            value, stop, status = number(block, at, tens, table)
            if status != GOOD or stop != end:
                words[many] = i
                many += 1
        values[i] = value
    return many


class Fields:
    """A column of texts between two places each in a block of bytes, which ends in `PADDING` more.

    Its ``kind`` is NUMBER, CATEGORY or why it is no attribute, and empty where its texts decide. ``is_rounded``: some
    are whole numbers that are rounded as floats.
    """

    def __init__(
        self, block: np.ndarray, begins: np.ndarray, ends: np.ndarray, kind: str = "", is_rounded: bool = False
    ) -> None:
        self.block, self.begins, self.ends, self.kind, self.is_rounded = block, begins, ends, kind, is_rounded

    @classmethod
    def of_texts(cls, texts: Sequence[str | None], kind: str, is_rounded: bool = False) -> Fields:
        """Return the column of these texts, None for those missing."""
        raw = [(text or "").encode("utf-8", "surrogateescape") for text in texts]
        ends = np.cumsum([0, *map(len, raw)], dtype=np.int64)
        block = np.frombuffer(bytearray(b"".join([*raw, bytes(PADDING)])), np.uint8)
        return cls(block, ends[:-1], ends[1:], kind, is_rounded)

    @classmethod
    def of_arrow(cls, column: pa.Array, kind: str = "", is_rounded: bool = False) -> Fields:
        """Return the column of an Arrow array; the texts decide the kind if none is given."""
        text = column.cast(pa.large_string()).fill_null("")
        _, offsets, data = text.buffers()
        ends = np.frombuffer(offsets, np.int64)[text.offset : text.offset + len(text) + 1].copy()
        block = np.frombuffer(bytearray(b"" if data is None else data) + bytes(PADDING), np.uint8)
        found = cls(block, ends[:-1], ends[1:], kind, is_rounded)
        found.kind = kind or words_type(found.sample())
        return found

    def sample(self, many: int = TYPE_SAMPLE) -> list[str]:
        """The first texts."""
        spans = zip(self.begins[:many].tolist(), self.ends[:many].tolist(), strict=True)
        return [self.block[begin:end].tobytes().decode("utf-8", "backslashreplace") for begin, end in spans]

    @cached_property
    def coded(self) -> tuple[np.ndarray, list[str]]:
        """The place of each text among the different ones, and these."""
        found = Vocabulary()
        return found.numbers_of(self.block, self.begins, self.ends), found.texts()

    def read_numbers(self, out: np.ndarray) -> np.ndarray:
        """Write all texts as floats, nan for those missing; returns the rows of words."""
        rows = np.empty(len(self.begins), np.int64)
        rows = rows[: read_numbers(self.block, self.begins, self.ends, out, rows, *powers())]
        if not len(rows):
            return rows
        codes, texts = self.of(rows).coded
        found = [number_of(text) for text in texts]
        out[rows] = np.array([math.nan if one is None else one for one in found])[codes]
        return rows[np.array([one is None for one in found])[codes]]

    def of(self, rows: np.ndarray) -> Fields:
        """Some of the texts."""
        return Fields(self.block, self.begins[rows], self.ends[rows], self.kind)

    def are(self, text: bytes) -> np.ndarray:
        """Find the fields that are this text."""
        found = self.ends - self.begins == len(text)
        rows = np.flatnonzero(found)
        spans = zip(self.begins[rows].tolist(), self.ends[rows].tolist(), strict=True)
        found[rows] = [self.block[begin:end].tobytes() == text for begin, end in spans]
        return found

    def written(self) -> list[str]:
        """All texts."""
        codes, texts = self.coded
        return np.array([*texts, ""], dtype=object)[codes].tolist()


class Numbers:
    """A column of numbers, nan where one is missing."""

    kind = NUMBER

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    @property
    def is_rounded(self) -> bool:
        """Return whether there are whole numbers that are rounded as floats."""
        return self.values.dtype.kind in "iu" and bool((np.abs(self.values.astype(float)) >= INEXACT).any())

    def sample(self, many: int = TYPE_SAMPLE) -> list[float]:
        """The first numbers."""
        found: list[float] = self.values[:many].tolist()
        return found

    @cached_property
    def coded(self) -> tuple[np.ndarray, list[str]]:
        """The place of each number among the texts of the different ones, -1 for those missing; and these texts."""
        values, codes = np.unique(self.values, return_inverse=True)
        return np.where(self.values != self.values, -1, codes), [plain(value) for value in values]

    def read_numbers(self, out: np.ndarray) -> np.ndarray:
        """Write all numbers as floats; returns the rows of words, none."""
        out[:] = self.values
        return np.zeros(0, np.int64)

    def written(self) -> list[str]:
        """All numbers as texts, empty for those missing."""
        codes, texts = self.coded
        return np.array([*texts, ""], dtype=object)[codes].tolist()


def number_of(text: str) -> float | None:
    """A text as a number, nan if it is missing, None if it is a word; true and false are 1 and 0."""
    word = text.lower()
    if word in MISSING:
        return math.nan
    if word in TRUTH:
        return float(TRUTH.index(word))
    return float(text) if is_number(text) else None


def is_columnar(data: object) -> bool:
    """Return whether this is a frame, or an Arrow table or batch."""
    return (
        hasattr(data, "__arrow_c_stream__")
        or hasattr(data, "__arrow_c_array__")
        or (hasattr(data, "columns") and hasattr(data, "dtypes"))
    )


def columns_of(table: Any) -> tuple[dict[str, Fields | Numbers], int]:
    """Columns by name, and the number of rows."""
    if hasattr(table, "dtypes") and hasattr(table, "columns"):
        return {str(name): _of_series(table[name]) for name in table.columns}, len(table)
    if not hasattr(table, "num_rows"):
        table = pa.table(table)
    pairs = zip(table.schema.names, table.columns, strict=True)
    return {name: _of_arrow(column) for name, column in pairs}, table.num_rows


def _of_series(series: Any) -> Fields | Numbers:
    """A column of a frame; one in which types are mixed is a column of texts."""
    try:
        return _of_arrow(series.to_arrow() if hasattr(series, "to_arrow") else pa.array(series, from_pandas=True))
    except (pa.ArrowException, TypeError, OverflowError):
        cells = [_cleared(value) for value in series.tolist()]
    values = [value for value in cells if value is not None]
    texts = [None if value is None else plain(value) for value in cells]
    strange = next((v for v in values if not isinstance(v, (str, int, float, decimal.Decimal))), None)
    if strange is not None:
        return Fields.of_texts(texts, f"of the type {type(strange).__name__}")
    if any(isinstance(value, str) for value in values[:1000]) or not values:
        return Fields.of_texts(texts, words_type(values[:TYPE_SAMPLE]))
    return Fields.of_texts(texts, NUMBER, any(isinstance(value, int) and abs(value) >= INEXACT for value in values))


def _cleared(value: Any) -> Any:
    """None for what is missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return None
    return value.item() if isinstance(value, np.generic) else value


def _of_arrow(column: Any) -> Fields | Numbers:
    kind = column.type
    if types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return Fields.of_arrow(column)
    if types.is_temporal(kind):
        return Fields.of_arrow(column.cast(pa.string()), DATES)
    if types.is_integer(kind) and not column.null_count:
        return Numbers(np.from_dlpack(column))
    if types.is_integer(kind) and kind.bit_width == 64:
        values = [value for value in column.to_pylist() if value is not None]
        if any(abs(value) >= INEXACT for value in values):  # where it is a name, do not round it
            return Fields.of_arrow(column, NUMBER, is_rounded=True)
    if types.is_decimal(kind):  # Arrow's own cast does not round to the nearest number
        return Numbers(np.array([math.nan if v is None else float(v) for v in column.to_pylist()], np.float64))
    if types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind):
        floats = column.cast(pa.float64(), safe=False)
        return Numbers(np.from_dlpack(floats.fill_null(math.nan) if floats.null_count else floats))  # no pandas needed
    names = {"lists": (types.is_list, types.is_large_list), "bytes": (types.is_binary, types.is_large_binary)}
    why = next((name for name, tests in names.items() if any(test(kind) for test in tests)), f"of the type {kind}")
    texts = [None if value is None else plain(value) for value in column.to_pylist()]
    return Fields.of_texts(texts, NUMBER if types.is_boolean(kind) else why)
