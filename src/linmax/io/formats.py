"""Formats of lines: told by the ending of the name and by the first lines, or forced; each with its parser."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from linmax.io import parsing
from linmax.io.batches import Classes
from linmax.io.parsing import Work
from linmax.io.scan import PADDING
from linmax.io.vocabulary import Vocabulary

__all__ = ["FORMATS", "Csv", "JsonLines", "LineFormat", "Svmlight", "Text", "VowpalWabbit", "format_of", "make_format"]

SAMPLE = 100  # lines of a table by which its columns are typed
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zstd")
ENDINGS = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".vw": "vw",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_PAIR = re.compile(rb"\S+(\s+(qid:\d+|\d+:\S+))+\s*(#.*)?")
_LABEL_ONLY = re.compile(rb"[+-]?\d+(\.\d*)?\s*(#.*)?")


def format_of(name: str, head: bytes) -> str:
    """The format of a file, from the ending of its name or else its first bytes.

    Examples
    --------
    >>> format_of("-", b"1 3:0.5 7:1"), format_of("-", b"1 |f a b"), format_of("data.svm.gz", b"")
    ('svmlight', 'vw', 'svmlight')
    """
    endings = [ending.lower() for ending in Path(name).suffixes]
    while endings and endings[-1] in COMPRESSED:
        endings.pop()
    if endings and endings[-1] in ENDINGS:
        return ENDINGS[endings[-1]]
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "arrow"
    lines = [line.strip() for line in head.split(b"\n") if line.strip() and not line.startswith(b"#")]
    if not lines:
        return "svmlight"
    line = lines[0]
    if b"\0" in head:
        raise ValueError(f"{name} is not text: its first bytes are {head[:16]!r}; give a format if it is")
    if line.startswith(b"{"):
        return "jsonl"
    if b"|" in line and not (line.count(b"\t") == 1 and line.index(b"\t") < line.index(b"|")):
        return "vw"
    if _PAIR.fullmatch(line) or (_LABEL_ONLY.fullmatch(line) and len(lines) > 1 and _PAIR.fullmatch(lines[1])):
        return "svmlight"
    tabs = {line.count(b"\t") for line in lines[:20]}
    if tabs == {1} and any(len(line.split(b"\t")[1].split()) > 1 for line in lines[:20]):
        return "text"
    if b"\t" in line:
        return "tsv"
    if b"," in line or endings:
        return "csv"
    raise ValueError(f"the format of {name} cannot be told from {line[:40]!r}; give it: {', '.join(FORMATS)}")


class LineFormat:
    """A format of lines. ``settled`` is what it found out about the input, as plain data, enough to go on elsewhere."""

    name = ""

    def __init__(self) -> None:
        self.settled: dict[str, Any] = {}
        self.dense_names: tuple[str, ...] = ()

    def begin(self, name: str, head: bytes) -> tuple[int, int]:  # noqa: ARG002
        """Look at the first lines of a file; returns the bytes and lines that are not data."""
        return 0, 0

    def restore(self, settled: dict[str, Any]) -> None:
        """Go on with what was found out before."""
        self.settled = settled

    def renewed(self) -> None:
        """The block has other bytes now."""

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines (see `linmax.io.parsing`)."""
        raise NotImplementedError

    def aside(self) -> np.ndarray:
        """Where bytes are that are not in the block."""
        raise NotImplementedError

    def new_prefix(self, raw: bytes, vocabulary: Vocabulary) -> None:
        """A namespace was met."""
        raise NotImplementedError


class Svmlight(LineFormat):
    """``label index:value ...``."""

    name = "svmlight"

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines."""
        from linmax.io.svmlight import parse_svmlight

        return int(parse_svmlight(block, work, vocabulary.names, classes.texts.names))


class VowpalWabbit(LineFormat):
    """``label |namespace name:value ...``."""

    name = "vw"

    def __init__(self) -> None:
        super().__init__()
        self._spaces = Vocabulary()

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines."""
        from linmax.io.vw import parse_vw

        return int(parse_vw(block, work, vocabulary.names, classes.texts.names, self._spaces.names))

    def new_prefix(self, raw: bytes, vocabulary: Vocabulary) -> None:
        """Number the namespace like its prefix, less one."""
        number = int(self._spaces.numbers([raw])[0])
        assert vocabulary.prefix(raw + b"^") == number + 1


class _Aside(LineFormat):
    """A format whose parser copies parts of a line."""

    def __init__(self) -> None:
        super().__init__()
        self._scratch = np.zeros(PADDING, np.uint8)

    def room_for(self, block: np.ndarray) -> np.ndarray:
        """Scratch as long as the block, and zeros beyond."""
        if self._scratch.size < 2 * block.size:  # an n-gram or an empty field takes one byte more than it has
            self._scratch = np.zeros(2 * block.size, np.uint8)
        return self._scratch

    def aside(self) -> np.ndarray:
        """The scratch."""
        return self._scratch


class Text(_Aside):
    """``label<tab>text``; n-grams up to ``ngrams`` words."""

    name = "text"

    def __init__(self, ngrams: int = 1) -> None:
        super().__init__()
        self.ngrams = ngrams

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines."""
        from linmax.io.text import FOLDED, parse_text

        scratch = self.room_for(block)
        return int(parse_text(block, work, vocabulary.names, classes.texts.names, scratch, FOLDED, self.ngrams))


class Csv(_Aside):
    """A table with a header; the label is a column, ``categorical`` ones are not numbers whatever they look like."""

    def __init__(
        self,
        separator: str = ",",
        label: str | None = None,
        ignore: tuple[str, ...] = (),
        categorical: tuple[str, ...] = (),
        known: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.name = "tsv" if separator == "\t" else "csv"
        self.separator, self.label, self.ignore, self.categorical = separator, label, ignore, categorical
        self.known = known
        self._columns: np.ndarray | None = None

    def begin(self, name: str, head: bytes) -> tuple[int, int]:
        """Read the header; type the columns by the first lines of the first file."""
        end = head.find(b"\n") + 1 or len(head)
        try:
            header = next(csv.reader([head[:end].decode("utf-8-sig").rstrip("\r\n")], delimiter=self.separator), [])
        except (UnicodeDecodeError, csv.Error):
            raise ValueError(f"{name} has no header: its first bytes are {head[:16]!r}") from None
        header = [field.strip() for field in header]
        if not any(header):
            raise ValueError(f"{name} has no header")
        if self.settled:
            if header != self.settled["header"]:
                told = f"{', '.join(header[:5])} ..., not {', '.join(self.settled['header'][:5])} ..."
                raise ValueError(f"{name} has other columns than the data before it: {told}")
            return end, 1
        twice = next((field for field in header if header.count(field) > 1), None)
        if twice is not None:
            raise ValueError(f"{name} has two columns {twice!r}; rename one")
        if all(_is_number(field) for field in header):
            raise ValueError(f"{name} has no header, but numbers in its first line; put the columns' names there")
        kinds = (
            known_kinds(name, header, self.known, self.label) if self.known else self._kinds(name, header, head[end:])
        )
        self.settled = {"header": header, "kinds": kinds}
        return end, 1

    def _fields(self, line: bytes) -> list[str] | None:
        """The fields of a line, None when it has none."""
        try:
            return next(csv.reader([line.decode("utf-8", "replace").rstrip("\r")], delimiter=self.separator), None)
        except csv.Error:  # the parser will say what is wrong
            return None

    def _kinds(self, name: str, header: list[str], rest: bytes) -> list[str]:
        label = self.label if self.label is not None else header[-1]
        absent = [field for field in [label, *self.ignore, *self.categorical] if field not in header]
        if absent:
            raise ValueError(f"{name} has no column {absent[0]!r}; it has {', '.join(header)}")
        lines = rest.split(b"\n")[:SAMPLE]
        rows = [row for line in lines if (row := self._fields(line)) is not None]
        kinds = []
        for place, field in enumerate(header):
            cells = [row[place].strip() for row in rows if len(row) == len(header)]
            cells = [cell for cell in cells if cell.lower() not in _MISSING]
            if field == label:
                kinds.append("label")
            elif field in self.ignore:
                kinds.append("ignored")
            elif field in self.categorical or not all(map(_is_number, cells)):
                kinds.append("category")
            else:
                kinds.append("number")
        return kinds

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines."""
        from linmax.io.table import _WORDS, CATEGORY, IGNORED, LABEL, NUMERIC, parse_table

        if self._columns is None:
            header, kinds = self.settled["header"], self.settled["kinds"]
            self.dense_names = dense_columns(header, kinds, self.known)
            numbers = {"label": LABEL, "ignored": IGNORED, "number": NUMERIC, "category": CATEGORY}
            rows = []
            for field, kind in zip(header, kinds, strict=True):
                place = self.dense_names.index(field) if kind == "number" else 0
                place = vocabulary.prefix(f"{field}=".encode()) if kind == "category" else place
                rows.append([numbers[kind], place])
            self._columns = np.array(rows, np.int64)
        separator, scratch = ord(self.separator), self.room_for(block)
        names, labels = vocabulary.names, classes.texts.names
        return int(parse_table(block, work, names, labels, scratch, separator, self._columns, _WORDS))


def known_kinds(name: str, header: Sequence[str], known: Mapping[str, str], label: str | None) -> list[str]:
    """The kinds of columns as they were when a model learned from them; others are ignored, the label may be absent."""
    if label is not None and known.get(label) != "label":
        theirs = next((field for field, kind in known.items() if kind == "label"), None)
        raise ValueError(f"the model has learned the column {theirs!r}, not {label!r}")
    absent = [field for field, kind in known.items() if kind in ("number", "category") and field not in header]
    if absent:
        raise ValueError(
            f"{name} has no column {absent[0]!r}, which the model learned from; it has {', '.join(header)}"
        )
    return [known.get(field, "ignored") for field in header]


def dense_columns(header: Sequence[str], kinds: Sequence[str], known: Mapping[str, str] | None) -> tuple[str, ...]:
    """The columns of numbers, in the order in which a model has them."""
    order = known.items() if known else zip(header, kinds, strict=True)
    return tuple(field for field, kind in order if kind == "number")


_MISSING = ("", "na", "nan", "null", "none", "?")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


class JsonLines(_Aside):
    """``{"label": ..., "features": {...}}`` or ``{"label": ..., "text": "..."}``, or both, one a line."""

    name = "jsonl"

    def __init__(self, label: str = "label", ngrams: int = 1) -> None:
        super().__init__()
        self.label, self.ngrams = label, ngrams
        self._lines = np.zeros((0, 6), np.int64)
        self._names = np.zeros((0, 2), np.int64)
        self._amounts = np.zeros(0)
        self._source = np.zeros(PADDING, np.uint8)
        self._unpacked = False  # the block at hand

    def renewed(self) -> None:
        """Its lines must be read."""
        self._unpacked = False

    def aside(self) -> np.ndarray:
        """What was read: labels are looked up there."""
        return self._source

    def parse(self, block: np.ndarray, work: Work, vocabulary: Vocabulary, classes: Classes) -> int:
        """Take lines: Python reads them, the kernel numbers what they hold."""
        from linmax.io.packed import parse_packed
        from linmax.io.text import FOLDED

        state = work.state
        if state[parsing.AT] >= state[parsing.END]:
            return parsing.ENDED
        if not self._unpacked:
            self._unpack(block, int(state[parsing.AT]), int(state[parsing.END]))
        scratch = self.room_for(self._source)
        return int(
            parse_packed(
                block, work, vocabulary.names, classes.texts.names, self._source, scratch, FOLDED, self.ngrams,
                self._lines, self._names, self._amounts,
            )
        )  # fmt: skip

    def _unpack(self, block: np.ndarray, begin: int, end: int) -> None:
        """Read all lines of the block: what `parse_packed` says."""
        self._unpacked = True
        lines: list[list[int]] = []
        names: list[tuple[int, int]] = []
        amounts: list[float] = []
        parts: list[bytes] = []
        size = 0

        def keep(raw: bytes) -> tuple[int, int]:
            nonlocal size
            parts.append(raw)
            size += len(raw)
            return size - len(raw), size

        place = begin
        for raw in block[begin:end].tobytes().split(b"\n")[:-1]:
            place += len(raw) + 1
            label, text, first, reason = (0, 0), (0, 0), len(names), 0
            if raw.strip(b" \t\r"):
                row = self._row(raw)
                if isinstance(row, int):
                    reason = row
                else:
                    label = keep(row[0])
                    for name, value in row[1]:
                        names.append(keep(name))
                        amounts.append(value)
                    text = keep(row[2] + b"\n")
            else:
                reason = -1
            lines.append([*label, text[0], len(names) - first, reason, place])
        self._lines = np.array(lines, np.int64).reshape(-1, 6)
        self._names = np.array(names, np.int64).reshape(-1, 2)
        self._amounts = np.array(amounts, float)
        joined = b"".join(parts)
        self._source = np.zeros(len(joined) + PADDING, np.uint8)
        self._source[: len(joined)] = np.frombuffer(joined, np.uint8)

    def _row(self, raw: bytes) -> tuple[bytes, list[tuple[bytes, float]], bytes] | int:
        """Label, features and text of a line, or the reason why not."""
        try:
            given = json.loads(raw, object_pairs_hook=_pairs)
        except UnicodeDecodeError:
            return parsing.NOT_UTF8
        except _TwiceError:
            return parsing.TWICE
        except (ValueError, RecursionError):
            return parsing.NOT_JSON
        if not isinstance(given, dict) or not ("features" in given or "text" in given):
            return parsing.NOT_AN_OBJECT
        label, features, text = given.get(self.label), given.get("features", {}), given.get("text") or ""
        if isinstance(label, bool):
            label = str(label).lower()
        if isinstance(features, list):
            features = {str(i): value for i, value in enumerate(features)}
        if not isinstance(features, dict) or not isinstance(text, str) or isinstance(label, (dict, list)):
            return parsing.NOT_AN_OBJECT
        found = []
        for name, value in features.items():
            feature = _feature(name, value)
            if isinstance(feature, int):
                return feature
            if feature is not None:
                found.append(feature)
        words = text.replace("\n", " ").encode("utf-8", "replace")
        return ("" if label is None else str(label)).encode("utf-8", "replace"), found, words


class _TwiceError(ValueError):
    """A name comes twice in an object."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwiceError
    return found


def _feature(name: str, value: Any) -> tuple[bytes, float] | int | None:
    if value is None:
        return None
    if isinstance(value, str):
        return f"{name}={value}".encode("utf-8", "replace"), 1.0
    if not isinstance(value, (int, float)):
        return parsing.NOT_A_FEATURE
    try:
        number = float(value)
    except OverflowError:
        return parsing.NOT_FINITE
    if not abs(number) <= parsing.LARGEST:
        return parsing.NOT_FINITE
    return (name.encode("utf-8", "replace"), number) if number else None


FORMATS = ("svmlight", "vw", "csv", "tsv", "jsonl", "text", "parquet", "arrow")


def make_format(kind: str, options: dict[str, Any]) -> LineFormat:
    """The format of this name, with the options that concern it."""
    if kind == "svmlight":
        return Svmlight()
    if kind == "vw":
        return VowpalWabbit()
    if kind == "text":
        return Text(options.get("ngrams", 1))
    if kind == "jsonl":
        return JsonLines(options.get("label") or "label", options.get("ngrams", 1))
    return Csv(
        "\t" if kind == "tsv" else ",",
        options.get("label"),
        tuple(options.get("ignore", ())),
        tuple(options.get("categorical", ())),
        options.get("known"),
    )
