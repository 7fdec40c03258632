"""Tables with a header whose fields are separated by commas, quoted if necessary (RFC 4180)."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from linmax.io.batches import Classes
from linmax.io.formats.base import Columns, ScratchFormat
from linmax.io.options import ReadOptions
from linmax.io.parsing import Work
from linmax.io.schema import MISSING, column_kinds, dense_columns, refuse_repeated
from linmax.io.sources import Source
from linmax.io.vocabulary import Vocabulary
from linmax.util.lazy import Later

__all__ = ["Csv"]

parser = Later("linmax.io.parsers.table")
SAMPLE = 100  # lines that decide the types of the columns


class Csv(ScratchFormat):
    """A table with a header; the label is a column; ``categorical`` columns are never numbers."""

    endings = (".csv",)
    rectangular = True
    separator: ClassVar[str] = ","
    sample = SAMPLE + 1

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self._places: np.ndarray | None = None

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:
        """A comma, and no tab."""
        return b"," in lines[0] and b"\t" not in lines[0]

    # -- in batches -----------------------------------------------------------------------------------------------

    def begin(self, name: str, head: bytes) -> tuple[int, int]:
        """Read the header; type the columns by the first lines of the first file."""
        end = head.find(b"\n") + 1 or len(head)
        header = self._header(name, head[:end])
        if self.settled:
            if header != self.settled["header"]:
                told = f"{', '.join(header[:5])} ..., not {', '.join(self.settled['header'][:5])} ..."
                raise ValueError(f"{name} has other columns than the data before it: {told}")
            return end, 1
        refuse_repeated(name, header)
        if all(map(_is_number, header)):
            raise ValueError(f"{name} has no header, but numbers in its first line; put the columns' names there")
        cells = self._sample(header, head[end:])
        kinds = column_kinds(name, header, lambda column: all(map(_is_number, cells[column])), self.options)
        self.settled = {"header": header, "kinds": kinds}
        return end, 1

    def _header(self, name: str, line: bytes) -> list[str]:
        try:
            header = next(csv.reader([line.decode("utf-8-sig").rstrip("\r\n")], delimiter=self.separator), [])
        except (UnicodeDecodeError, csv.Error):
            raise ValueError(f"{name} has no header: its first bytes are {line[:16]!r}") from None
        header = [field.strip() for field in header]
        if not any(header):
            raise ValueError(f"{name} has no header")
        return header

    def _sample(self, header: Sequence[str], rest: bytes) -> dict[str, list[str]]:
        """The non-empty values in each column of the first lines."""
        rows = [row for line in rest.split(b"\n")[:SAMPLE] if (row := self._fields(line)) is not None]
        found: dict[str, list[str]] = {}
        for place, column in enumerate(header):
            cells = (row[place].strip() for row in rows if len(row) == len(header))
            found[column] = [cell for cell in cells if cell.lower() not in MISSING]
        return found

    def _fields(self, line: bytes) -> list[str] | None:
        """The fields of a line, None when it has none."""
        try:
            return next(csv.reader([line.decode("utf-8", "replace").rstrip("\r")], delimiter=self.separator), None)
        except csv.Error:  # the parser will say what is wrong
            return None

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines."""
        if self._places is None:
            self._places = self._placed(vocabulary)
        separator, scratch = ord(self.separator), self.room_for(block)
        names, labels = vocabulary.names, classes.texts.names
        return int(
            parser.parse_table(block, work, names, labels, scratch, separator, self._places, parser.MISSING_WORDS)
        )

    def _placed(self, vocabulary: Vocabulary) -> np.ndarray:
        """The kind of each column, and its place among the dense attributes or the prefix of its names."""
        header, kinds = self.settled["header"], self.settled["kinds"]
        self.dense_names = dense_columns(header, kinds, self.options.known)
        numbers = {
            "label": parser.LABEL,
            "ignored": parser.IGNORED,
            "number": parser.NUMERIC,
            "category": parser.CATEGORY,
        }
        rows = []
        for column, kind in zip(header, kinds, strict=True):
            place = self.dense_names.index(column) if kind == "number" else 0
            place = vocabulary.prefix(f"{column}=".encode()) if kind == "category" else place
            rows.append([numbers[kind], place])
        return np.array(rows, np.int64)

    # -- in columns -----------------------------------------------------------------------------------------------

    def columns(self, source: Source) -> Columns:
        """Columns of text; an empty field is None."""
        try:
            return self._cells(source)
        except UnicodeDecodeError as error:
            raise ValueError(f"{source.name} is not UTF-8 text ({error.reason}); convert it") from None

    def _cells(self, source: Source) -> Columns:
        met: dict[str, str | None] = {"": None}
        reader = csv.reader(source.text(), delimiter=self.separator, strict=True)
        try:
            header = next(reader, [])
            cells: list[list[Any]] = [[] for _ in header]
            for row in reader:
                if not row and len(header) != 1:
                    continue  # a blank line
                if len(row) != len(header):
                    told = f"{len(row)} fields where the header has {len(header)}"
                    raise ValueError(f"{source.name}, line {reader.line_num}: {told}")
                for column, field in zip(cells, row, strict=True):
                    column.append(met.setdefault(field, field))  # equal fields share one object
        except csv.Error as error:
            told = f"{error}, at line {reader.line_num}; close quotes, and double them within a field"
            raise ValueError(f"{source.name} cannot be read: {told}") from None
        refuse_repeated(source.name, header)
        return dict(zip(header, cells, strict=True))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
