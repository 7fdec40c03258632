"""Tables of fields between commas, semicolons, bars, tabs or spaces, quoted if necessary (RFC 4180).

A kernel cuts lines into fields, which are text until the columns are known; another reads those of numbers. A line that
cannot be read costs no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numba import boolean, int64, types

from linmax.io.bytes import PADDING, Block, byte, next_stop, stops
from linmax.io.columns import Fields, Numbers
from linmax.io.lexer import (
    CONTROL,
    FEW_FIELDS,
    MANY_FIELDS,
    NEWLINE,
    OPEN_QUOTE,
    REASONS,
    RETURN,
    SPACE,
)
from linmax.io.read_options import Position, ReadOptions
from linmax.io.records import COLUMN_OPTIONS, Columns, Records, StreamFormat
from linmax.io.schema import TYPE_SAMPLE, is_number, named_columns, refuse_other_columns, refuse_repeated
from linmax.io.sources import Source
from linmax.io.typed_tables import TableLayout
from linmax.jit.compiling import kernel

__all__ = ["DELIMITERS", "Csv", "Tsv", "delimiter_of", "named_delimiter"]

DELIMITERS = (",", "\t", ";", "|")
DELIMITER_NAMES = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "bar": "|", "pipe": "|"}
LINES = 20  # that are looked at


def named_delimiter(text: str) -> str:
    """A delimiter as users write it: the character, or tab, space, comma, semicolon, bar.

    Examples
    --------
    >>> named_delimiter("tab"), named_delimiter(";")
    ('\\t', ';')
    """
    found = DELIMITER_NAMES.get(text.lower(), text)
    if len(found) != 1 or not found.isascii() or found.isalnum() or found in '"\n\r.-+\0':
        raise ValueError(f"delimiter must be one character, or tab, space, comma, semicolon or bar; got {text!r}")
    return found


def delimiter_of(lines: Sequence[bytes]) -> str | None:
    """The delimiter of these lines, of which the first may be a header; None if they are no table.

    One that all lines have equally often is preferred, then the one that the first line has most often. Spaces
    separate if all lines have the same number of words, and those after the first are numbers for the most part.
    """
    first = [line.decode("utf-8", "replace").strip("\r\n ") for line in lines[:LINES]]
    counts = {one: [_outside_quotes(line, one) for line in first] for one in DELIMITERS}
    even = {one: many[0] for one, many in counts.items() if many[0] and len(set(many)) == 1}
    some = even or {one: many[0] for one, many in counts.items() if many[0] and one != "|"}
    if some:
        return max(some, key=lambda one: some[one])
    rows = [line.split() for line in first]
    words = [word for row in rows[1:] for word in row]
    if len(rows) > 1 and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1:
        return " " if 2 * sum(map(is_number, words)) >= len(words) else None
    return None


def _outside_quotes(line: str, delimiter: str) -> int:
    return sum(part.count(delimiter) for part in line.split('"')[::2])


HEADERS_SHOWN = 5
LONGEST_ROW = 2**20  # bytes within which a quote must be closed
QUOTE = 34
USED, CUT, REFUSED, LINES = range(4)  # what `cut_rows` has done: bytes, rows, rows refused, lines
NEXT, FIRST, AFTER, MANY = range(4)  # of a row: where the next one begins, its line, that of the next one, its fields


@kernel(types.void(Block, int64, int64, boolean, int64, int64[:, :, ::1], int64[:, ::1], int64[:, ::1], int64[::1]))
def cut_rows(
    block: np.ndarray,
    end: int,
    separator: int,
    is_last: bool,
    wanted: int,
    spans: np.ndarray,
    places: np.ndarray,
    bad: np.ndarray,
    done: np.ndarray,
) -> None:
    """Cut the lines up to ``end`` into fields, without quotes and outer spaces, as far as there is room for rows.

    Field f of row r begins at spans[f, 0, r] and ends at spans[f, 1, r]; one with doubled quotes is copied behind
    ``end``. A row that has not as many fields as ``wanted`` (0: any number), or cannot be read, is refused with its
    line, the reason and its fields. A row whose quote may be closed in the next block is left. A quote that is not
    closed costs one line: the next one is read as if it stood alone.
    """
    at, rows, refused, line, free = 0, 0, 0, 0, end
    while at < end and rows < spans.shape[2]:
        begin, field, crossed, wrong, spare = at, 0, 0, 0, free
        while byte(block, at) == RETURN or (separator == SPACE and byte(block, at) == SPACE):
            at += 1
        if byte(block, at) == NEWLINE:
            at += 1
            line += 1
            continue
        base, marks = at, stops(block, at, separator, separator)
        while True:
            while byte(block, at) == SPACE:
                at += 1
            first = start = at
            if byte(block, at) != QUOTE:
                place, c = at - 1, 0
                while place < at or c not in (separator, NEWLINE, 0):
                    place, base, marks = next_stop(block, base, marks, separator, separator)
                    c = byte(block, place)
                stop = place
                while stop > start and (byte(block, stop - 1) == SPACE or byte(block, stop - 1) == RETURN):
                    stop -= 1
                wrong = CONTROL if c == 0 else 0
            else:
                start = place = at + 1
                doubled, newlines = 0, crossed
                while True:
                    c = byte(block, place)
                    if c == QUOTE:
                        if byte(block, place + 1) != QUOTE:
                            break
                        doubled += 1
                        place += 1
                    elif c == 0 or (c == NEWLINE and place + 1 >= end):
                        break
                    crossed += c == NEWLINE
                    place += 1
                stop = place
                if c == NEWLINE and not is_last and end - begin <= LONGEST_ROW:
                    done[USED], done[CUT], done[REFUSED], done[LINES] = begin, rows, refused, line
                    return
                if c == QUOTE:
                    place += 1
                    while byte(block, place) == RETURN or (byte(block, place) == SPACE and separator != SPACE):
                        place += 1
                    c = byte(block, place)
                    base, marks = place, stops(block, place, separator, separator)
                    wrong = 0 if c in (separator, NEWLINE) else OPEN_QUOTE
                else:
                    wrong = OPEN_QUOTE
                if c == 0 and crossed == newlines:
                    wrong = CONTROL
                if doubled and not wrong:
                    source, start = start, free
                    while source < stop:
                        block[free] = byte(block, source)
                        free += 1
                        source += 1 + (byte(block, source) == QUOTE)
                    stop = free
            if wrong:
                break
            if field < spans.shape[0]:
                spans[field, 0, rows], spans[field, 1, rows] = start, stop
            field += 1
            at = place
            while separator == SPACE and (byte(block, at) == SPACE or byte(block, at) == RETURN):
                at += 1
            if byte(block, at) == NEWLINE:
                break
            at += separator != SPACE
        if wrong:
            at = begin if wrong == OPEN_QUOTE else first
            crossed *= wrong != OPEN_QUOTE
            while byte(block, at) != NEWLINE:
                at += 1
        elif wanted and field != wanted:
            wrong = FEW_FIELDS if field < wanted else MANY_FIELDS
        at += 1
        if wrong:
            bad[refused, 0], bad[refused, 1], bad[refused, 2] = line, wrong, field
            refused += 1
            free = spare
        else:
            places[rows, NEXT], places[rows, FIRST], places[rows, AFTER] = at, line, line + crossed + 1
            places[rows, MANY] = field
            rows += 1
        line += 1 + crossed
    done[USED], done[CUT], done[REFUSED], done[LINES] = at, rows, refused, line


class CutRows(NamedTuple):
    """Rows cut out of some lines: their fields by column, `places`, those refused, and the bytes and lines used."""

    columns: list[Fields]
    places: np.ndarray
    bad: np.ndarray
    used: int
    lines: int


def rows_of(raw: bytes, separator: str, columns: int, is_last: bool, wanted: int, most: int = 2**62) -> CutRows:
    """Cut lines into rows (see `cut_rows`) with that many columns at most."""
    size, mark = len(raw), ord(separator)
    block = np.empty(size * (1 + (b'"' in raw)) + PADDING, np.uint8)
    block[:size] = np.frombuffer(raw, np.uint8)
    block[size : size + PADDING] = NEWLINE
    newlines = int(np.count_nonzero(block[:size] == NEWLINE)) + 1
    room = min(newlines, size // columns + 1, most)
    spans, places = np.empty((columns, 2, room), np.int64), np.empty((room, 4), np.int64)
    bad, done = np.empty((newlines, 3), np.int64), np.zeros(4, np.int64)
    cut_rows(block, size, mark, is_last, wanted, spans, places, bad, done)
    used, rows, refused, lines = done.tolist()
    many = wanted or int(places[:rows, MANY].max(initial=0))
    fields = [Fields(block, begins[:rows], ends[:rows]) for begins, ends in spans[:many]]
    return CutRows(fields, places[:rows], bad[:refused], used, lines)


def is_row(columns: Sequence[Fields], texts: Sequence[bytes]) -> np.ndarray:
    """Find the rows whose fields are these texts."""
    found = columns[0].are(texts[0])
    rows = np.flatnonzero(found)
    for column, text in zip(columns[1:], texts[1:], strict=True) if len(rows) else ():
        found[rows] &= column.of(rows).are(text)
    return found


class Csv(StreamFormat):
    """A table with a header; the label is a column; ``categorical`` columns are never numbers."""

    endings = (".csv",)
    title = "a table"
    rectangular = True
    takes = COLUMN_OPTIONS | {"delimiter", "header"}
    separator: ClassVar[str | None] = None  # recognized
    sample = TYPE_SAMPLE + 1

    def __init__(self, options: ReadOptions, kind: str = "csv") -> None:
        super().__init__(options, kind)
        self.first_row = 1 + options.header
        self.layout = TableLayout(options, self.settled, self.notes)
        self._headers: list[int] = []  # lines within the data
        self._must_decode = False  # where names do not show the bytes that are no text

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:
        """Fields between delimiters, which are not tabs."""
        return delimiter_of(lines) not in (None, "\t")

    def begin(self, name: str, head: bytes) -> tuple[int, int]:
        """Read the header."""
        separator = self.settled.get("separator") or self._separator(head)
        end, lines, header = self._header(name, head, separator)
        if "header" in self.settled and header != self.settled["header"]:
            refuse_other_columns(name, header, self.settled["header"])
        refuse_repeated(name, header)
        self.settled |= {"separator": separator, "names": header}
        return end, lines

    def _separator(self, head: bytes) -> str:
        if self.separator is not None:
            return self.separator
        if self.options.delimiter is not None:
            return self.options.delimiter
        return delimiter_of([line for line in head.split(b"\n")[:TYPE_SAMPLE] if line.strip()][:-1] or [head]) or ","

    def _header(self, name: str, head: bytes, separator: str) -> tuple[int, int, list[str]]:
        """Return where the header ends, how many lines it takes, and the names of the columns."""
        ended = head if head.endswith(b"\n") else head + b"\n"
        found = rows_of(ended, separator, head.count(separator.encode()) + 1, True, 0, most=1)
        fields = [] if len(found.bad) else found.columns
        header = [one.block[int(one.begins[0]) : int(one.ends[0])].tobytes() for one in fields]
        try:
            names = [field.decode() for field in header]
        except UnicodeDecodeError:
            raise ValueError(
                f"{name} has no header: its first bytes are {head[:16]!r}, not UTF-8; convert it, as "
                "iconv -f LATIN1 -t UTF-8 does, or pass its format"
            ) from None
        if not any(names):
            raise ValueError(
                f"{name} has no header: its first bytes are {head[:16]!r}; name the columns in its first line, or "
                "pass its format"
            )
        if not self.options.header:
            return 0, 0, self._numbered(len(names))
        if all(map(is_number, names)):
            raise ValueError(
                f"{name} has no header, but numbers in its first line; name the columns there, or give --no-header"
            )
        end = min(int(found.places[0, NEXT]), len(head))
        return end, head.count(b"\n", 0, end), named_columns(names)

    def _numbered(self, many: int) -> list[str]:
        """Names of columns without a header: their numbers; without the last, if it is a label that is left out."""
        known = self.options.known or {}
        names = [str(place) for place in range(1, many + 1)]
        if self.options.unlabelled and len(known) == many + 1:
            return [name for name, kind in known.items() if kind != "label"]
        return names

    def lines_wanted(self) -> int:
        """Number of lines that `begin` wants to see: the types of columns may be known from a model."""
        return self.first_row if self.options.known else super().lines_wanted()

    # -- in batches -----------------------------------------------------------------------------------------------

    def rows(self, source: Source, start: Position | None) -> Iterator[Records]:
        """The rows of each block of lines."""
        none = True
        for columns, lines, offsets, after, end in self._blocks_of(source, start):
            none = False
            found = self.layout.rows(source.name, columns, lines)
            found.offsets, found.after, found.end, found.done = offsets, after, end, source.done()
            yield found
        if none and not self.layout.kinds:
            self.layout.settle(source.name, {name: Numbers(np.zeros(0)) for name in self.names})

    @property
    def names(self) -> list[str]:
        """The header."""
        found: list[str] = self.settled["header"] if "header" in self.settled else self.settled["names"]
        return found

    def _blocks_of(
        self, source: Source, start: Position | None
    ) -> Iterator[tuple[dict[str, Fields], np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]]:
        """Columns of text, or of numbers, for each block; the line of each row; and the places of `Records`."""
        blocks, is_last, header = self.blocks(source, start), False, [name.encode() for name in self.names]
        while blocks.more():
            raw = blocks.lines()
            if self._must_decode:
                try:
                    raw.decode()
                except UnicodeDecodeError as error:
                    raise ValueError(f"{source.name} is not UTF-8 text ({error.reason}); convert it") from None
            line, place = blocks.line, blocks.place
            found = rows_of(raw, self.settled.get("separator", ","), len(header), is_last, len(header))
            for row, reason, many in found.bad.tolist():
                self.refuse(source.name, line + row, *self._reason(reason, many))
            if not found.used:  # a quote that may be closed in the next block
                is_last = not blocks.fill()
                continue
            blocks.advance(found.used, found.lines)
            columns, places = found.columns, found.places + np.array([place, line, line, 0])
            if self.options.header and (again := is_row(columns, header)).any():
                self._headers += places[again, FIRST].tolist()
                columns, places = [one.of(~again) for one in columns], places[~again]
            if len(places):
                end = place + found.used, line + found.lines
                yield dict(zip(self.names, columns, strict=True)), *places.T[[FIRST, NEXT, AFTER]], end

    def _reason(self, reason: int, many: int) -> tuple[str, str | None]:
        """The reason to refuse a row with that many fields, and its wording if it names more."""
        message = f"{many} {'fields' if many != 1 else 'field'} where the header has {len(self.names)}"
        return REASONS[reason], message if reason in (FEW_FIELDS, MANY_FIELDS) else None

    def remarks(self) -> list[str]:
        """Headers within the data, and columns of numbers in which words were found."""
        again = sorted(self._headers)
        shown = ", ".join(f"{line:,}" for line in again[:HEADERS_SHOWN]) + ", ..." * (len(again) > HEADERS_SHOWN)
        many = f"{len(again)} lines are" if len(again) > 1 else "1 line is"
        message = [f"{many} the header again, and left out: line {shown}."] if again else []
        return message + self.layout.remarks()

    # -- in columns -----------------------------------------------------------------------------------------------

    def columns(self, source: Source) -> Columns:
        """Columns of text; an empty field is None."""
        found: Columns = {}
        if not source.head():
            return found
        self._must_decode = True
        for columns, lines, *_ in self._blocks_of(source, None):
            for name, column in columns.items():
                codes, texts = column.coded
                found.setdefault(name, []).extend(np.array([*(text or None for text in texts), None], object)[codes])
            first, texts = columns[self.names[0]].coded
            for row in np.flatnonzero(np.isin(first, [code for code, text in enumerate(texts) if text in columns])):
                if sorted(str(found[name][len(self.lines) + row]) for name in columns) == sorted(columns):
                    message = f"line {lines[row]} is the header again, with its columns in another order"
                    raise ValueError(f"{source.name}: {message}; make what follows a table of its own")
            self.lines += lines.tolist()
        for line in self._headers:
            self.refuse(source.name, line, "the header again")
        return found or {name: [] for name in self.names}


class Tsv(Csv):
    """As `Csv`, with tabs."""

    endings = (".tsv",)
    separator = "\t"
    takes = COLUMN_OPTIONS | {"header"}

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:
        """A tab."""
        return b"\t" in lines[0]
