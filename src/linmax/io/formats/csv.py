"""Tables of fields between commas, semicolons, bars, tabs or spaces, quoted if necessary (RFC 4180)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from typing import Any, ClassVar

import numpy as np

from linmax.io.batches import Classes
from linmax.io.formats.base import COLUMN_OPTIONS, Columns, ScratchFormat
from linmax.io.formats.delimiters import delimiter_of
from linmax.io.options import ReadOptions
from linmax.io.parsing import AT, END, LINE, NEWLINE, RETURN, Work
from linmax.io.schema import (
    MISSING,
    TYPE_SAMPLE,
    cell_type,
    dense_columns,
    is_number,
    named_columns,
    number_note,
    refuse_repeated,
    schema_of,
    text_note,
)
from linmax.io.sources import Source
from linmax.io.vocabulary import Vocabulary
from linmax.util.lazy import LazyModule

__all__ = ["Csv", "Tsv"]

parser = LazyModule("linmax.io.parsers.table")
HEADERS_SHOWN = 5


class Csv(ScratchFormat):
    """A table with a header; the label is a column; ``categorical`` columns are never numbers."""

    endings = (".csv",)
    title = "a table"
    rectangular = True
    takes = COLUMN_OPTIONS | {"delimiter", "header"}
    separator: ClassVar[str | None] = None  # recognised
    sample = TYPE_SAMPLE + 1

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self._columns: np.ndarray | None = None
        self.first_row = 1 + options.header
        self._looked = False  # for headers in the block at hand
        self._headers: list[int] = []  # lines within the data

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:
        """Fields between delimiters, which are not tabs."""
        return delimiter_of(lines) not in (None, "\t")

    # -- in batches -----------------------------------------------------------------------------------------------

    def begin(self, name: str, head: bytes) -> tuple[int, int]:
        """Read the header; type the columns by the first lines of the first file."""
        settled = self.settled if "header" in self.settled else None
        separator = self._separator(head) if settled is None else settled.get("separator", ",")
        end, lines, header = self._header(name, head, separator)
        if settled is not None:
            if header != settled["header"]:
                told = f"{', '.join(header[:5])} ..., not {', '.join(settled['header'][:5])} ..."
                raise ValueError(f"{name} has other columns than the data before it: {told}")
            return end, lines
        refuse_repeated(name, header)
        cells = self._sample(header, head[end:], separator)
        schema = schema_of(name, header, lambda column: cell_type(cells[column]), self.options)
        self.notes += [*schema.notes, *text_note(header, schema.kinds, cells)]
        guessed = {c: kind for c, kind in zip(header, schema.kinds, strict=True) if c not in self.options.categorical}
        self.notes += number_note(guessed, cells)
        self.settled = {"header": header, "kinds": schema.kinds, "separator": separator}
        return end, lines

    def _separator(self, head: bytes) -> str:
        if self.separator is not None:
            return self.separator
        if self.options.delimiter is not None:
            return self.options.delimiter
        return delimiter_of([line for line in head.split(b"\n")[:TYPE_SAMPLE] if line.strip()][:-1] or [head]) or ","

    def _header(self, name: str, head: bytes, separator: str) -> tuple[int, int, list[str]]:
        """Where the header ends, how many lines it takes, and the names of the columns."""
        text = head.decode("utf-8", "surrogateescape")
        lines = text.split("\n")
        tidied = _tidied(lines, separator)
        reader = csv.reader((f"{line}\n" for line in tidied), delimiter=separator, skipinitialspace=True)
        try:
            header = next(reader, [])
        except csv.Error:
            header = []
        taken = "\n".join([*lines[: reader.line_num], ""])
        try:
            taken.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{name} has no header: its first bytes are {head[:16]!r}") from None
        if not any(field.strip() for field in header):
            raise ValueError(f"{name} has no header")
        if not self.options.header:
            return 0, 0, self._numbered(len(header))
        if all(is_number(field) for field in header):
            raise ValueError(
                f"{name} has no header, but numbers in its first line; name the columns there, or give --no-header"
            )
        return len(taken.encode()), reader.line_num, named_columns(header)

    def _numbered(self, many: int) -> list[str]:
        """Names of columns without a header: their numbers; without the last, if it is a label that is left out."""
        known = self.options.known or {}
        names = [str(place) for place in range(1, many + 1)]
        if self.options.unlabelled and len(known) == many + 1:
            return [name for name, kind in known.items() if kind != "label"]
        return names

    def _sample(self, header: Sequence[str], rest: bytes, separator: str) -> dict[str, list[str]]:
        """The non-empty values in each column of the first lines."""
        lines = rest.decode("utf-8", "replace").split("\n")[:TYPE_SAMPLE]
        rows = list(_rows(list(_tidied(lines, separator)), separator, len(header)))
        found: dict[str, list[str]] = {}
        for place, column in enumerate(header):
            cells = (row[place].strip() for row in rows)
            found[column] = [cell for cell in cells if cell.lower() not in MISSING]
        return found

    def lines_wanted(self) -> int:
        """Number of lines that `begin` wants to see: the types of columns may be known from a model."""
        return self.first_row if self.options.known else super().lines_wanted()

    def renewed(self) -> None:
        """The new lines must be looked at."""
        self._looked = False

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines; the header again, as when tables were joined, is none."""
        if self._columns is None:
            self._columns = self._placed(vocabulary)
        if not self._looked:
            self._looked = True
            self._blank_headers(block, work.state)
        separator = ord(self.settled.get("separator", ","))
        names, labels = vocabulary.names, classes.texts.names
        return int(
            parser.parse_table(
                block, work, names, labels, self.room_for(block), separator, self._columns, parser.MISSING_WORDS,
                self.words, self.taking_words("text" in self.settled["kinds"]),
            )
        )  # fmt: skip

    def _blank_headers(self, block: np.ndarray, state: np.ndarray) -> None:
        """Turn lines that are the header again into blank ones."""
        if not self.options.header:
            return
        begin, text = int(state[AT]), block[int(state[AT]) : int(state[END])].tobytes()
        for line in _written(self.settled["header"], self.settled.get("separator", ",")):
            place = -1
            while (place := text.find(line, place + 1)) >= 0:
                after = text[place + len(line) : place + len(line) + 2]
                if (place == 0 or text[place - 1] == NEWLINE) and (after[:1] == b"\n" or after == b"\r\n"):
                    block[begin + place : begin + place + len(line)] = RETURN
                    self._headers.append(int(state[LINE]) + text.count(b"\n", 0, place))

    def _placed(self, vocabulary: Vocabulary) -> np.ndarray:
        """The kind of each column, its place among the dense attributes and the prefix of its names."""
        header, kinds = self.settled["header"], self.settled["kinds"]
        self.dense_names = dense_columns(header, kinds, self.options.known)
        numbers = {
            "label": parser.LABEL,
            "ignored": parser.IGNORED,
            "number": parser.NUMERIC,
            "category": parser.CATEGORY,
            "text": parser.TEXT,
            "id": parser.IGNORED,
            "weight": parser.WEIGHT,
        }
        alone = kinds.count("text") == 1
        ends = {"number": "=", "category": "=", "text": "^"}  # of what names begin with
        named = [kind in ends and not (kind == "text" and alone) for kind in kinds]
        columns = list(zip(header, kinds, named, strict=True))
        heads = iter(vocabulary.prefixes([f"{column}{ends[kind]}".encode() for column, kind, own in columns if own]))
        places, given = {column: place for place, column in enumerate(self.dense_names)}, self.options.id
        rows = [
            [numbers[kind], places[column] if kind == "number" else 0, next(heads) if own else 0, 0, column == given]
            for column, kind, own in columns
        ]
        return np.array(rows, np.int64)

    def tag(self, block: np.ndarray, begin: int, end: int) -> str:
        """A field without its quotes."""
        found = super().tag(block, begin, end).strip()
        return found[1:-1].replace('""', '"') if found.startswith('"') and len(found) > 1 else found

    def remarks(self) -> list[str]:
        """Headers within the data, and columns of numbers in which words were found."""
        found = [] if self._columns is None else self._columns[:, parser.WIDENED].tolist()
        again = sorted(self._headers)
        shown = ", ".join(f"{line:,}" for line in again[:HEADERS_SHOWN]) + ", ..." * (len(again) > HEADERS_SHOWN)
        many = f"{len(again)} lines are" if len(again) > 1 else "1 line is"
        told = [f"{many} the header again, and left out: line {shown}."] if again else []
        return told + [
            f"Column {column!r} has words among its numbers, the first in line {line:,}; they are taken as categories."
            for column, line in zip(self.settled.get("header", ()), found, strict=False)
            if line
        ]

    # -- in columns -----------------------------------------------------------------------------------------------

    def columns(self, source: Source) -> Columns:
        """Columns of text; an empty field is None."""
        try:
            return self._cells(source)
        except UnicodeDecodeError as error:
            raise ValueError(f"{source.name} is not UTF-8 text ({error.reason}); convert it") from None

    def _cells(self, source: Source) -> Columns:
        met: dict[str, str | None] = {"": None}
        separator = self._separator(source.head())
        reader = csv.reader(source.text(), delimiter=separator, strict=True)
        try:
            header = next(reader, [])
            cells: list[list[Any]] = [[] for _ in header]
            among = set(header)
            line = reader.line_num + 1
            for row in reader:
                first, line = line, reader.line_num + 1
                if not row and len(header) != 1:
                    continue  # a blank line
                if row == header:
                    self.refuse(source.name, first, "the header again")
                    continue
                if len(row) != len(header):
                    what = "fields" if len(row) != 1 else "field"
                    self.refuse(source.name, first, f"{len(row)} {what} where the header has {len(header)}")
                    continue
                if row[0] in among and sorted(row) == sorted(header):
                    told = f"line {first} is the header again, with its columns in another order"
                    raise ValueError(f"{source.name}: {told}; make what follows a table of its own")
                self.lines.append(first)
                for column, field in zip(cells, row, strict=True):
                    column.append(met.setdefault(field, field))  # equal fields share one object
        except csv.Error as error:
            told = f"{error}, at line {reader.line_num}; close quotes, and double them within a field"
            raise ValueError(f"{source.name} cannot be read: {told}") from None
        refuse_repeated(source.name, header)
        return dict(zip(header, cells, strict=True))


class Tsv(Csv):
    """As `Csv`, with tabs."""

    endings = (".tsv",)
    separator = "\t"
    takes = COLUMN_OPTIONS | {"header"}

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:
        """A tab."""
        return b"\t" in lines[0]


def _written(header: Sequence[str], separator: str) -> set[bytes]:
    """The line of a header: with quotes where they are needed, and everywhere."""
    found = set()
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
        line = StringIO()
        csv.writer(line, delimiter=separator, quoting=quoting, lineterminator="").writerow(header)
        found.add(line.getvalue().encode())
    return found


def _tidied(lines: Iterable[str], separator: str) -> Iterable[str]:
    """Lines for Python's reader: between words, several spaces are one."""
    if separator != " ":
        return lines
    return (" ".join(line.split()) for line in lines)


def _rows(lines: list[str], separator: str, width: int) -> Iterator[list[str]]:
    """The rows that have all fields. A quote that is not closed costs one line, as in the parser."""
    place = 0
    while place < len(lines):
        for end in range(place + 1, len(lines) + 1):
            text = "\n".join(lines[place:end])
            if text.count('"') % 2 == 0:
                break
        try:
            row = next(csv.reader(StringIO(text, newline=""), delimiter=separator, skipinitialspace=True), [])
        except csv.Error:
            row = []
        if len(row) == width:
            yield row
        place = end if len(row) == width else place + 1
