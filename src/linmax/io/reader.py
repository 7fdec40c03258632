"""The reader of all streams of files: it recognises the format of the first one, and reads all of them in it."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from linmax.io.answers import LOG_FORMATS, Answer, AnswerTable, log_format, read_log
from linmax.io.batch import Batch, Classes
from linmax.io.formats import FORMATS, format_of, make_format
from linmax.io.options import ReadOptions, Refusals
from linmax.io.records import Columns, RecordReader
from linmax.io.sources import Source
from linmax.io.vocabulary import Vocabulary
from linmax.util.checks import one_of

__all__ = ["ReadTable", "StreamReader", "open_source", "read_columns", "read_table"]


def open_source(
    path: Any, kind: str | None = None, columns: bool = False, prefer: str | None = None
) -> tuple[Source, str]:
    """Open a source; its format is the given one, or else recognised (see `format_of`)."""
    if kind is not None:
        one_of("format", kind, FORMATS)
    source = Source.of(path)
    try:
        return source, format_of(source.name, source.head(), columns, prefer) if kind is None else kind
    except BaseException:
        source.close()
        raise


class StreamReader:
    """Reads files, pipes and open binary files into batches. ``kind`` is the format, by default that of the first."""

    def __init__(
        self,
        paths: Sequence[Any],
        kind: str | None = None,
        options: ReadOptions | None = None,
        vocabulary: Vocabulary | None = None,
        classes: Classes | None = None,
    ) -> None:
        self.paths, self.kind = list(paths), kind
        self.options = ReadOptions() if options is None else options
        self.vocabulary = Vocabulary() if vocabulary is None else vocabulary
        self.classes = Classes() if classes is None else classes
        self._reader: RecordReader | None = None

    @property
    def refusals(self) -> Refusals:
        """Lines that could not be read."""
        return Refusals() if self._reader is None else self._reader.refusals

    @property
    def notes(self) -> list[str]:
        """Findings about the input."""
        return [] if self._reader is None else self._reader.notes

    def remarks(self) -> list[str]:
        """Return remarks collected while reading."""
        return [] if self._reader is None else self._reader.remarks()

    def __iter__(self) -> Generator[Batch, None, None]:
        """Batches of rows, until the input ends."""
        first = self.options.position.file
        if first < len(self.paths):
            self.paths[first], self.kind = open_source(self.paths[first], self.kind, prefer=self.options.prefer)
        if self.kind is None:
            return
        made = make_format(self.kind, self.options)
        if made.of_bytes and self.options.position.offset > 0 and self.options.settled is None:
            raise ValueError("a position needs what was settled before it; give settled=batch.settled as well")
        self._reader = RecordReader(self.paths, made, self.vocabulary, self.classes)
        if first < len(self.paths):
            source = self.paths[first] = Source.of(self.paths[first])
            try:
                made.refuse_options(source.name)
            except ValueError:
                source.close()
                raise
        yield from self._reader


@dataclass(frozen=True)
class ReadTable:
    """The unchanged cells of a table, column by column: text, or values of the types in the file.

    Attributes
    ----------
    columns
        The cells by the name of their column.
    lines
        The line of each row; the number of the row, where rows are not lines.
    refusals
        Lines that could not be read, and have no row.
    left_out
        Columns, and keys of JSON with all in their objects, that were there and are ignored.
    objects
        The key of JSON in whose object a column stands, for those that do.
    answers, remarks
        Of a log of answers, which has no columns: its records, and what was noticed on reading them.
    by_item
        The answers by item, if the columns were made from a log or from a long table.
    """

    columns: Columns
    lines: list[int]
    refusals: Refusals
    left_out: set[str]
    objects: dict[str, str]
    answers: list[Answer] | None = None
    remarks: list[str] = field(default_factory=list)
    by_item: AnswerTable | None = None


def read_table(
    path: Any,
    kind: str | None = None,
    ignore: Sequence[str] = (),
    strict: bool = False,
    wanted: Collection[str] | None = None,
) -> ReadTable:
    """Read a table in any format that has columns, or a log of answers, compressed or not; "-" is standard input.

    If only some columns are ``wanted``, lines are not refused for what stands in others.
    """
    if kind is not None:
        one_of("format", kind, [*FORMATS, *LOG_FORMATS])
    known = None if wanted is None else dict.fromkeys(wanted, "category")
    options = ReadOptions(ignore=tuple(ignore), strict=strict, known=known)
    source = Source.of(path)
    try:
        log = kind if kind in LOG_FORMATS else log_format(source.head()) if kind is None else None
        if log is not None:
            return _read_log(source, log, strict)
        _, found = open_source(source, kind, columns=True)
        made = make_format(found, options)
        if not made.has_columns():
            raise ValueError(f"{source.name} is {found}, which has no columns; give a table")
        columns = made.columns(source)
    finally:
        source.close()
    left_out = made.left_out | {name for name in ignore if name in columns}
    columns = {name: cells for name, cells in columns.items() if name not in left_out}
    lines = made.lines or list(range(1, 1 + max(map(len, columns.values()), default=0)))
    return ReadTable(columns, lines, made.refusals, left_out, made.objects)


def _read_log(source: Source, kind: str, strict: bool) -> ReadTable:
    """Read a log of answers (see `linmax.io.answers`)."""
    refusals, remarks = Refusals(), list[str]()

    def refuse(line: int, reason: str) -> None:
        if strict:
            raise ValueError(f"{source.name}, line {line}: {reason}")
        refusals.add(source.name, line, reason)

    answers = read_log(source.name, kind, source.read_all(), refuse, remarks)
    return ReadTable({}, [], refusals, set(), {}, answers, remarks)


def read_columns(path: Any, kind: str | None = None) -> Columns:
    """The columns of a table, all of whose lines can be read."""
    return read_table(path, kind, strict=True).columns
