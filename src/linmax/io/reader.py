"""The reader of all streams of files: it recognises the format of the first one, and reads all of them in it."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linmax.io import lexer
from linmax.io.batch import Batch, Classes
from linmax.io.evaluation_logs import LOG_FORMATS, Answer, AnswerTable, log_format, read_log
from linmax.io.formats import FORMATS, format_of, make_format
from linmax.io.lexer import REASONS, with_value
from linmax.io.numbering import Numbering
from linmax.io.read_options import Position, ReadOptions, Refusals
from linmax.io.records import Columns, Records, StreamFormat
from linmax.io.sources import Source
from linmax.io.vocabulary import Vocabulary
from linmax.util.checks import one_of

__all__ = ["ReadTable", "StreamReader", "open_source", "read_columns", "read_table"]


def open_source(
    path: Any, kind: str | None = None, columns: bool = False, prefer: str | None = None
) -> tuple[Source, str]:
    """Open a source; its format is the given one, or else recognized (see `format_of`)."""
    if kind is not None:
        one_of("format", kind, FORMATS)
    source = Source.of(path)
    try:
        return source, format_of(source.name, source.head(), columns, prefer) if kind is None else kind
    except BaseException:
        source.close()
        raise


class StreamReader:
    """Reads files, pipes, open binary files or tables into batches.

    ``kind`` names the format of files, by default that of the first; ``format`` is the format of tables.
    """

    def __init__(
        self,
        sources: Iterable[Any],
        kind: str | None = None,
        options: ReadOptions | None = None,
        vocabulary: Vocabulary | None = None,
        classes: Classes | None = None,
        format: StreamFormat | None = None,
    ) -> None:
        self.kind, self._format = kind, format
        self.sources = sources if format is not None else list(sources)
        self.options = ReadOptions() if options is None else options
        self.vocabulary = Vocabulary() if vocabulary is None else vocabulary
        self.classes = Classes() if classes is None else classes
        self._numbering = Numbering(self.vocabulary, self.options.grows, self.options.ngrams)
        self._file = 0
        self._passed = 0  # rows of earlier tables

    @property
    def refusals(self) -> Refusals:
        """Lines that could not be read."""
        return Refusals() if self._format is None else self._format.refusals

    @property
    def notes(self) -> list[str]:
        """Findings about the input."""
        return [] if self._format is None else self._format.notes

    def remarks(self) -> list[str]:
        """Return remarks collected while reading."""
        return [] if self._format is None else self._format.remarks()

    def _recognized(self, sources: list[Any], first: int) -> StreamFormat | None:
        """Open the first file to be read and make its format; None if there is none."""
        if first >= len(sources):
            return None
        source, self.kind = open_source(sources[first], self.kind, prefer=self.options.prefer)
        sources[first] = source
        try:
            made = make_format(self.kind, self.options)
            if made.of_bytes and self.options.position.offset > 0 and self.options.settled is None:
                raise ValueError("position= requires settled=; pass settled=batch.settled as well")
            made.refuse_options(source.name)
        except BaseException:
            source.close()
            raise
        return made

    def __iter__(self) -> Generator[Batch, None, None]:
        """Batches of rows, until the input ends; the first rows decide what the columns are."""
        start = self.options.position
        if isinstance(self.sources, list) and self._format is None:
            self._format = self._recognized(self.sources, start.file)
        made = self._format
        for file, given in enumerate(self.sources if made is not None else []):
            assert made is not None
            self._file = file
            if file < start.file and made.of_bytes:
                continue
            if not made.of_files:
                yield from self._batches(made, made.rows(given, None))
                continue
            source = Source.of(given)
            resumes = made.of_bytes and file == start.file and start.offset > 0
            try:
                yield from self._batches(made, made.rows(source, start if resumes else None))
            finally:
                source.close()

    def _batches(self, format: StreamFormat, pieces: Iterator[Records]) -> Iterator[Batch]:
        for rows in pieces:
            size = len(rows)
            first = 0 if rows.offsets is not None else min(max(0, self.options.position.offset - self._passed), size)
            step = -(-size // -(-size // self.options.rows)) if size else 1
            for begin in range(first, size, step):
                yield self._batch(format, rows, begin, min(size, begin + step))
            self._passed += size

    def _batch(self, format: StreamFormat, rows: Records, begin: int, end: int) -> Batch:
        keep = np.arange(begin, end)
        if (wild := rows.wild[begin:end]).any():
            for row in keep[wild].tolist():
                reason, given = rows.blame(row)
                _refuse(format, rows, row, reason, with_value(reason, given))
            keep = keep[~wild]
        codes = self._codes(rows, keep)
        sparse = self._numbering.sparse_rows(rows.items, keep)
        indptr, repeated = sparse.indptr, sparse.repeated
        if repeated.any():
            for row in keep[repeated].tolist():
                _refuse(format, rows, row, lexer.TWICE)
            keep, codes = keep[~repeated], codes[~repeated]
            indptr = np.concatenate([[0], indptr[1:][~repeated]])
        part = slice(begin, end) if len(keep) == end - begin else keep
        done = rows.done
        if done is not None and isinstance(self.sources, list):
            done = (self._file + done) / len(self.sources)
        return Batch(
            rows.dense[part], indptr, sparse.indices, sparse.values, codes, rows.weights[part],
            rows.lines[part], None if rows.tags is None else [rows.tags[row] for row in keep.tolist()],
            len(self.vocabulary), self.vocabulary, self.classes, rows.dense_names, self._place(rows, end),
            sparse.unknown, done, format.settled_with_reading(),
        )  # fmt: skip

    def _place(self, rows: Records, end: int) -> Position:
        """The position after some of the rows."""
        if rows.offsets is None or rows.after is None or rows.end is None:
            return Position(self.options.position.file, self._passed + end, self._passed + end + 1)
        if end == len(rows):
            return Position(self._file, *rows.end)
        return Position(self._file, int(rows.offsets[end - 1]), int(rows.after[end - 1]))

    def _codes(self, rows: Records, keep: np.ndarray) -> np.ndarray:
        """The class of each row, -1 where there is none; new ones in the order of the rows."""
        codes = rows.codes[keep]
        table = np.full(len(rows.texts) + 1, -1, np.int32)
        first = np.full(len(table), -1)
        first[codes[::-1]] = np.arange(len(codes))[::-1]  # of two rows with a label the one before is written last
        for code in np.argsort(first)[np.count_nonzero(first < 0) :].tolist():
            if code < len(rows.texts) and rows.texts[code]:
                table[code] = self.classes.number(rows.texts[code])
                self.vocabulary.fit_classes(len(self.classes))
        return table[codes]


def _refuse(format: StreamFormat, rows: Records, row: int, reason: int, message: str | None = None) -> None:
    format.refuse(rows.name, int(rows.lines[row]), REASONS[reason], message, rows.unit)


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
    """Read a log of answers (see `linmax.io.evaluation_logs`)."""
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
