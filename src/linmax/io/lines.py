"""Formats of lines that a kernel cuts: Vowpal Wabbit's text, svmlight and labelled texts (see `linmax.io.lexer`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from linmax.io import lexer
from linmax.io.batch import canonical
from linmax.io.bytes import powers
from linmax.io.delimited import delimiter_of
from linmax.io.lexer import REASONS, WITH_VALUE, Lines, with_value
from linmax.io.numbering import ItemRows
from linmax.io.read_options import Position, ReadOptions
from linmax.io.records import TEXT_OPTIONS, Records, StreamFormat
from linmax.io.schema import LABEL_NAMES
from linmax.io.sources import LineBlocks, Source
from linmax.io.vocabulary import Vocabulary

__all__ = ["LineFormat", "Svmlight", "Text", "VowpalWabbit"]

MOST_ROWS, MOST_ITEMS, MOST_REFUSED = 2**13, 2**17, 2**10  # that are cut at a time
AMOUNT = re.compile(rb":?([^\s|#]*)")


class LineFormat(StreamFormat):
    """A format of lines that `linmax.io.lexer` cuts, in its dialect."""

    dialect: ClassVar[int]

    def __init__(self, options: ReadOptions, kind: str = "") -> None:
        super().__init__(options, kind)
        self._spaces, self._heads = Vocabulary(), list[bytes]()  # namespaces, and what their names begin with

    def rows(self, source: Source, start: Position | None) -> Iterator[Records]:
        """The rows of each block of lines; with ``strict`` those before a bad line, and then its error."""
        blocks, strict = self.blocks(source, start), self.options.strict
        least = min(len(blocks.block), MOST_ROWS)  # clearing what is never used takes longer than reading a few lines
        lines = _lines(least, min(len(blocks.block), MOST_ITEMS), 1 if strict else MOST_REFUSED)
        while blocks.more():
            state, begin = lines.state, blocks.at
            state[:] = begin, blocks.line, 0, 0, 1, 0, 0
            lexer.cut_lines(blocks.block, blocks.end, lines, self.dialect, not self.options.unlabelled)
            if state[lexer.AT] == begin:  # the row has more items than there is room for
                lines = _lines(least, 2 * len(lines.values), len(lines.bad))
                continue
            blocks.advance(int(state[lexer.AT]) - begin, int(state[lexer.LINE]) - blocks.line)
            bad = [
                (line, reason, blocks.block[first:last].tobytes().decode("utf-8", "backslashreplace"))
                for line, reason, first, last in lines.bad[: state[lexer.REFUSED]].tolist()
            ]
            if not strict:
                self._refuse(source.name, bad)
            if state[lexer.ROWS]:
                yield self._laid_out(source, blocks, lines, int(state[lexer.ROWS]))
            self._refuse(source.name, bad if strict else [])

    def _refuse(self, name: str, bad: Sequence[tuple[int, int, str]]) -> None:
        for line, reason, blamed in bad:
            message = with_value(reason, blamed.strip()) if reason in WITH_VALUE else None
            self.refuse(name, line, REASONS[reason], message)

    def _laid_out(self, source: Source, blocks: LineBlocks, lines: Lines, many: int) -> Records:
        """Return the rows that were cut."""
        block, columns = blocks.block, lines.rows[:many].T.copy()
        for row in np.flatnonzero(columns[lexer.DOUBTFUL]).tolist():
            start, stop = columns[[lexer.LABEL, lexer.LABEL_END], row].tolist()
            if block[start:stop].tobytes().decode("utf-8", "replace") not in self.options.classes:  # it is all text
                columns[[lexer.LABEL, lexer.LABEL_END], row] = 0
                item = lines.items[lines.starts[row]]
                item[lexer.SPAN] += item[lexer.START] - start
                item[lexer.START] = start
        labels = Vocabulary()
        codes = labels.numbers_of(block, columns[lexer.LABEL], columns[lexer.LABEL_END])
        items = self._items(block, lines, many)
        weights = lines.weights[:many].copy()
        if lines.state[lexer.HARD_ONES]:
            for row in np.flatnonzero(np.isnan(weights)).tolist():
                weights[row] = float(block[columns[lexer.WEIGHT, row] : columns[lexer.WEIGHT_END, row]].tobytes())
        tags = None
        if columns[lexer.TAG_END].any():
            spans = zip(columns[lexer.TAG].tolist(), columns[lexer.TAG_END].tolist(), strict=True)
            tags = [block[begin:end].tobytes().decode("utf-8", "backslashreplace") for begin, end in spans]
        return Records(
            source.name, columns[lexer.NUMBER], codes, labels.texts(), np.zeros((many, 0)), items, weights, tags=tags,
            offsets=blocks.place - blocks.at + columns[lexer.NEXT], after=columns[lexer.NUMBER] + 1,
            end=(blocks.place, blocks.line), done=source.done(), is_checked=True,
        )  # fmt: skip

    def _items(self, block: np.ndarray, lines: Lines, many: int) -> ItemRows:
        count, spaces = int(lines.state[lexer.ITEMS]), lines.spaces[: lines.state[lexer.SPACES]].T.copy()
        codes = self._spaces.numbers_of(block, *spaces)
        names = self._spaces.names
        for number in range(len(self._heads), len(self._spaces)):
            name = names.store[names.offsets[number] : names.offsets[number + 1]].tobytes()
            self._heads.append(name + b"^" if name else b"")
        items, values = lines.items[:count], lines.values[:count]
        if lines.state[lexer.HARD_ONES]:  # digits that only Python rounds
            for item in np.flatnonzero(np.isnan(values)).tolist():
                start, length, space = items[item].tolist()
                factor = _amount(block, int(spaces[1, space])) if space else 1.0
                values[item] = _amount(block, start + length) * factor
        is_text = self.dialect == lexer.TEXT
        found = ItemRows(
            block, len(block), items, values, lines.starts[: many + 1], self._heads, codes, is_text,
            once=self.dialect == lexer.SVMLIGHT,
        )  # fmt: skip
        return found.with_room() if is_text else found


def _lines(rows: int, items: int, refused: int) -> Lines:
    """Return arrays for this many rows, items, and lines that cannot be read."""
    return Lines(
        np.zeros(lexer.STATE, np.int64), np.zeros((rows, lexer.ROW), np.int64), np.zeros(rows + 1, np.int64),
        np.zeros(rows), np.zeros((items, lexer.ITEM), np.int64), np.zeros(items), np.zeros((items, 2), np.int64),
        np.ones(items), np.zeros((refused, 4), np.int64), *powers(),
    )  # fmt: skip


def _amount(block: np.ndarray, place: int) -> float:
    """The number behind a colon at a place, 1 without one."""
    found = AMOUNT.match(block.data, place)
    assert found is not None
    return float(found[1]) if block[place] == lexer.COLON else 1.0


FORMAT_SAMPLE = 20  # lines that decide whether a file is of this format
HEADER_WORDS = 3  # that name the text in a header, at most
LABEL_HEADERS = (*LABEL_NAMES, "labels", "category", "sentiment")  # names of the label in a header, in lower case


class Text(LineFormat):
    """``label<tab>text``; n-grams up to ``options.ngrams`` words.

    Rows to be predicted may be texts alone. There a tab ends a label if one word comes before it, or several that a
    model knows as a class; else it is part of the text.
    """

    endings = (".tsv",)
    title = "labelled text"
    dialect = lexer.TEXT
    takes = TEXT_OPTIONS

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:
        """One tab in each line, and several words behind one of them."""
        first = lines[:FORMAT_SAMPLE]
        return {line.count(b"\t") for line in first} == {1} and any(
            len(line.split(b"\t")[1].split()) > 1 for line in first
        )

    def begin(self, name: str, head: bytes) -> tuple[int, int]:  # noqa: ARG002
        """Skip a header: the name of a label and a few words, unless that name is a class."""
        line = head.partition(b"\n")[0].decode("utf-8", "replace")
        label, tab, text = line.partition("\t")
        named = label.strip().lower() in LABEL_HEADERS and canonical(label) not in self.options.classes
        if tab and named and len(text.split()) <= HEADER_WORDS and b"\n" + label.encode() + b"\t" not in head:
            note = f"The first line is a header: {line.strip()!r}."
            self.notes += [note] if note not in self.notes else []
            return head.find(b"\n") + 1 or len(head), 1
        return 0, 0


class VowpalWabbit(LineFormat):
    """``label |namespace name:value ...``."""

    endings = (".vw",)
    title = "Vowpal Wabbit's text"
    dialect = lexer.VW

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:
        """A bar, unless it stands in the text behind the only tab, or between the names of columns."""
        line = lines[0]
        if len(lines) > 1 and b" " not in line and b":" not in line and delimiter_of(lines) == "|":
            return False
        return b"|" in line and not (line.count(b"\t") == 1 and line.index(b"\t") < line.index(b"|"))


_PAIRS = re.compile(rb"[^\s|]+(\s+(qid:\d+|cost:[^\s|]+|\d+:[^\s|]+))+\s*(#.*)?")
_LABEL_ONLY = re.compile(rb"[+-]?\d+(\.\d*)?\s*(#.*)?")


class Svmlight(LineFormat):
    """``label index:value ...``."""

    endings = (".svm", ".svmlight", ".libsvm")
    title = "svmlight"
    dialect = lexer.SVMLIGHT

    @classmethod
    def looks_like(cls, lines: Sequence[bytes]) -> bool:
        """A line of pairs; the first may have none."""
        line = lines[1] if len(lines) > 1 and _LABEL_ONLY.fullmatch(lines[0]) else lines[0]
        return _PAIRS.fullmatch(line) is not None
