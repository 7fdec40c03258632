"""Tables of fields between commas, semicolons, bars, tabs or spaces, quoted if necessary (RFC 4180).

LineBlocks of lines are read by Arrow. Where a block has quotes that are not in order, spaces around quoted fields, or a
control character, its fields are cut out by `read_rows` instead: a line that cannot be read costs no other.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from linmax.io.lexer import CONTROL, FEW_FIELDS, LINE, MANY_FIELDS, NEWLINE, OPEN_QUOTE, REASONS, RETURN, SPACE
from linmax.io.options import Position, ReadOptions
from linmax.io.records import COLUMN_OPTIONS, Columns, Records, StreamFormat
from linmax.io.schema import CATEGORY, MISSING, NUMBER, TYPE_SAMPLE, is_number, named_columns, refuse_repeated
from linmax.io.sources import Source
from linmax.io.tables import Column, TableLayout, floats
from linmax.util.lazy import LazyModule

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as compute
    from pyarrow import csv as arrow_csv
else:
    pa, compute, arrow_csv = (LazyModule(name) for name in ("pyarrow", "pyarrow.compute", "pyarrow.csv"))

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
NULLS = ["".join(cased) for word in MISSING for cased in product(*(sorted({c, c.upper()}) for c in word))]
Fields = tuple[int, int, list[bytes] | int]  # where a row begins and ends, and its fields or why it has none


def read_rows(raw: bytes, separator: str, is_last: bool) -> Iterator[Fields]:
    """Cut out the fields of each row, without quotes and outer spaces; the rest waits for the end of a quote.

    A quote that is not closed costs one line: the next one is read as if it stood alone.
    """
    mark = re.escape(separator.encode())
    quoted, bare = rb'"([^"\0]*(?:""[^"\0]*)*)"[ \r]*', rb'((?!")[^%b\n\0]*)' % mark
    field = re.compile(rb" *(?:%b|%b)(?=%b|\n)" % (quoted, bare, mark))
    blank = re.compile(rb"[\r ]*" if separator == " " else rb"\r*")
    at = 0
    while at < len(raw):
        begin, fields = at, list[bytes]()
        at = blank.match(raw, at).end()  # type: ignore[union-attr]
        if raw[at] == NEWLINE:
            at += 1
            continue
        while True:
            found = field.match(raw, at)
            if found is None:
                line = raw[begin : raw.index(b"\n", at) + 1]
                if b"\0" in line:
                    at = begin + len(line)
                    yield begin, at, CONTROL
                elif is_last or len(raw) - begin > LONGEST_ROW or _closes(raw, at):
                    at = raw.index(b"\n", begin) + 1
                    yield begin, at, OPEN_QUOTE
                else:
                    return
                break
            fields.append(found[2].rstrip(b" \r") if found[1] is None else found[1].replace(b'""', b'"'))
            at = found.end()
            if separator == " ":
                at = blank.match(raw, at).end()  # type: ignore[union-attr]
            if raw[at] == NEWLINE:
                at += 1
                yield begin, at, fields
                break
            at += separator != " "


def _closes(raw: bytes, at: int) -> bool:
    """Return whether the quote at this place is closed, but not at the end of a field."""
    return re.compile(rb' *"[^"]*(?:""[^"]*)*"(?!")').match(raw, at) is not None


def row_ends(raw: bytes, separator: str) -> tuple[np.ndarray, bool]:
    """Return where rows end, and whether Arrow reads these lines as `read_rows` does."""
    block = np.frombuffer(raw, np.uint8)
    newlines = np.flatnonzero(block == NEWLINE)
    in_order = b"\0" not in raw and (b"\r" not in raw or raw.count(b"\r") == raw.count(b"\r\n"))
    if b'"' not in raw:
        return newlines + 1, in_order
    if separator == " ":
        return newlines + 1, False
    quotes = np.flatnonzero(block == QUOTE)
    around = np.concatenate([[NEWLINE], block, [NEWLINE]])
    twins = np.diff(quotes) == 1
    ends = np.isin(around, [ord(separator), NEWLINE])
    opens = ends[quotes[::2]] | np.concatenate([[False], twins])[::2]
    closes = ends[quotes[1::2] + 2] | (around[quotes[1::2] + 2] == RETURN) | np.concatenate([twins, [False]])[1::2]
    spaces = np.flatnonzero(block == SPACE)
    spaces = spaces[ends[spaces] | ends[spaces + 2]]
    loose = (np.searchsorted(quotes, spaces) % 2 == 0).any()
    in_order &= not len(quotes) % 2 and bool(opens.all()) and bool(closes.all()) and not loose
    return newlines[np.searchsorted(quotes, newlines) % 2 == 0] + 1, in_order


class Csv(StreamFormat):
    """A table with a header; the label is a column; ``categorical`` columns are never numbers."""

    endings = (".csv",)
    title = "a table"
    rectangular = True
    takes = COLUMN_OPTIONS | {"delimiter", "header"}
    separator: ClassVar[str | None] = None  # recognised
    sample = TYPE_SAMPLE + 1

    def __init__(self, options: ReadOptions, kind: str = "csv") -> None:
        super().__init__(options, kind)
        self.first_row = 1 + options.header
        self.layout = TableLayout(options, self.settled, self.notes, fields=True)
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
            message = f"{', '.join(header[:5])} ..., not {', '.join(self.settled['header'][:5])} ..."
            raise ValueError(f"{name} has other columns than the data before it: {message}")
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
        _, end, fields = next(read_rows(head, separator, True), (0, 0, list[bytes]()))
        header = [] if isinstance(fields, int) else fields
        try:
            names = [field.decode() for field in header]
        except UnicodeDecodeError:
            raise ValueError(f"{name} has no header: its first bytes are {head[:16]!r}") from None
        if not any(names):
            raise ValueError(f"{name} has no header")
        if not self.options.header:
            return 0, 0, self._numbered(len(names))
        if all(map(is_number, names)):
            raise ValueError(
                f"{name} has no header, but numbers in its first line; name the columns there, or give --no-header"
            )
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
            self.layout.settle(source.name, {name: Column(NUMBER, pa.array([], pa.string())) for name in self.names})

    @property
    def names(self) -> list[str]:
        """The header."""
        found: list[str] = self.settled["header"] if "header" in self.settled else self.settled["names"]
        return found

    def _blocks_of(
        self, source: Source, start: Position | None
    ) -> Iterator[tuple[dict[str, Column], np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]]:
        """Columns of text, or of numbers, for each block; the line of each row; and the places of `Records`."""
        blocks, is_last = self.blocks(source, start), False
        while blocks.more():
            raw = blocks.lines()
            if self._must_decode:
                try:
                    raw.decode()
                except UnicodeDecodeError as error:
                    raise ValueError(f"{source.name} is not UTF-8 text ({error.reason}); convert it") from None
            line, place = int(blocks.state[LINE]), blocks.base + int(blocks.state[0])
            separator = self.settled.get("separator", ",")
            all_ends, in_order = row_ends(raw, separator)
            found = self._by_arrow(raw, separator, all_ends) if in_order else None
            if found is None:
                found = self._one_by_one(raw, separator, is_last)
            columns, begins, ends, bad, used = found
            newlines = np.flatnonzero(np.frombuffer(raw, np.uint8)[:used] == NEWLINE) if b'"' in raw else all_ends - 1
            for begin, reason, message in bad:
                self.refuse(source.name, line + int(np.searchsorted(newlines, begin)), reason, message)
            self._headers += [line + int(np.searchsorted(newlines, begin)) for begin in self._again]
            if not used:  # a quote that may be closed in the next block
                is_last = not blocks.fill()
                continue
            blocks.advance(used, len(newlines))
            if len(begins):
                lines, after = (line + np.searchsorted(newlines, places) for places in (begins, ends))
                yield columns, lines, place + ends, after, (place + used, line + len(newlines))

    def _by_arrow(self, raw: bytes, separator: str, ends: np.ndarray) -> Any:
        """Read lines whose quotes are in order: columns, begins and ends of rows, those refused, and the bytes used."""
        begins = np.concatenate([[0], ends[:-1]])
        body, self._again = raw, list[int]()
        if separator == " ":
            body = b"".join(b" ".join(line.split()) + b"\n" for line in raw.split(b"\n")[:-1])
        for written in self._written(separator):
            if self.options.header and written in body:
                again = np.array([raw[b:e].rstrip(b"\r\n") == written for b, e in zip(begins, ends, strict=True)], bool)
                self._again += begins[again].tolist()
                begins, ends = begins[~again], ends[~again]
                body = b"".join(raw[b:e] for b, e in zip(begins, ends, strict=True))
        sizes, block = ends - begins, np.frombuffer(raw, np.uint8)
        full = (sizes > 2) | ((sizes == 2) & (block[begins] != RETURN))
        if separator == " ":
            full &= np.array([bool(raw[b:e].strip()) for b, e in zip(begins, ends, strict=True)], bool)
        begins, ends = begins[full], ends[full]
        refused: list[tuple[int, int]] = []

        def refuse(row: Any) -> str:
            refused.append((row.number - 1, row.actual_columns))
            return "skip"

        table = self._parsed(body, separator, self._types(), refuse)
        if table is None:
            refused.clear()
            body = body.decode("utf-8", "backslashreplace").encode()
            table = self._parsed(body, separator, dict.fromkeys(self.names, pa.string()), refuse)
        keep = np.ones(len(begins), bool)
        keep[[row for row, _ in refused]] = False
        if table is None or table.num_rows != keep.sum():
            return None
        is_loose = b" " in body and b'"' not in body
        columns = {}
        for name, column in zip(table.column_names, table.columns, strict=True):
            cells = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            if pa.types.is_floating(cells.type):
                columns[name] = Column(NUMBER, floats(cells))
            elif is_loose and pa.types.is_dictionary(cells.type):
                words = compute.ascii_trim(cells.dictionary, " ")
                columns[name] = Column("", pa.DictionaryArray.from_arrays(cells.indices, words))
            else:
                columns[name] = Column("", compute.ascii_trim(cells, " ") if is_loose else cells)
        bad = [(int(begins[row]), *self._count(many)) for row, many in refused]
        return columns, begins[keep], ends[keep], bad, len(raw)

    def _types(self) -> dict[str, Any]:
        """The types as which Arrow reads the columns that are used."""
        kinds, widened, text = self.layout.kinds, self.layout.widened, pa.string()
        if not kinds:
            return dict.fromkeys(self.names, text)
        words = pa.dictionary(pa.int32(), text)
        types = {NUMBER: pa.float64(), CATEGORY: words, "label": words}
        return {name: text if name in widened else types.get(kinds[name], text) for name in self.names}

    def _parsed(self, body: bytes, separator: str, types: dict[str, Any], refuse: Any) -> Any:
        """Arrow's table of these lines, None if it finds something else than it is to find."""
        try:
            return arrow_csv.read_csv(
                pa.BufferReader(body),
                arrow_csv.ReadOptions(use_threads=False, block_size=len(body) + 1, column_names=self.names),
                arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True, invalid_row_handler=refuse),
                arrow_csv.ConvertOptions(column_types=types, null_values=NULLS, strings_can_be_null=False),
            )
        except pa.ArrowInvalid:
            return None

    def _one_by_one(self, raw: bytes, separator: str, is_last: bool) -> Any:
        """Read lines as `read_rows` does."""
        begins, ends, bad, rows, used = list[int](), list[int](), list[Any](), list[list[bytes]](), 0
        self._again = list[int]()
        header = [name.encode() for name in self.names]
        for begin, end, fields in read_rows(raw, separator, is_last):
            used = end
            if isinstance(fields, int):
                bad.append((begin, REASONS[fields], None))
            elif self.options.header and fields == header:
                self._again.append(begin)
            elif len(fields) != len(header):
                bad.append((begin, *self._count(len(fields))))
            else:
                begins.append(begin)
                ends.append(end)
                rows.append(fields)
        if not raw[used:].strip(b"\r\n "):
            used = len(raw)
        columns = {
            name: Column("", pa.array([row[i].decode("utf-8", "backslashreplace") for row in rows], pa.string()))
            for i, name in enumerate(self.names)
        }
        return columns, np.array(begins, np.int64), np.array(ends, np.int64), bad, used

    def _count(self, many: int) -> tuple[str, str]:
        """The reason to refuse a row with that many fields, and its wording."""
        wanted, fields = len(self.names), "fields" if many != 1 else "field"
        message = f"{many} {fields} where the header has {wanted}"
        return REASONS[FEW_FIELDS if many < wanted else MANY_FIELDS], message

    def _written(self, separator: str) -> set[bytes]:
        """The line of the header: with quotes where they are needed, and everywhere."""
        found = set()
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
            line = StringIO()
            csv.writer(line, delimiter=separator, quoting=quoting, lineterminator="").writerow(self.names)
            found.add(line.getvalue().encode())
        return found

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
