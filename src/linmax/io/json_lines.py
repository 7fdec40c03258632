"""JSON lines: any objects, such as ``{"label": ..., "size": 3, "colour": "red", "text": "..."}``.

Read as columns, the names are the keys of the objects and of their features.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from linmax.io import lexer
from linmax.io.evaluation_logs import NESTED
from linmax.io.lexer import REASONS
from linmax.io.read_options import ReadOptions
from linmax.io.records import COLUMN_OPTIONS, Columns, Row, RowFormat
from linmax.io.schema import DATES, LABEL_NAMES, ignored_note, label_of, number_note, words_type
from linmax.io.sources import Source

__all__ = ["JsonLines"]

FEATURES, TEXT = "features", "text"
FORMAT_SAMPLE = 20  # lines that are looked at
CELLS_KEPT = 2**18  # categories whose names stay encoded
decode = msgspec.json.Decoder().decode
_Place = tuple[str, str | None]  # a key, and a name in the object there


class JsonLines(RowFormat):
    """One object per line; ``options.label`` is the key of the label.

    Every value is used: numbers as they are, true and false as 1 and 0, text as ``key=value``, and the words of
    ``text`` and of the keys in ``options.text``. Objects within objects have names with dots, those in ``features``
    none; numbers in lists are named by their places, texts in lists are one attribute each.
    """

    endings = (".jsonl", ".ndjson", ".json")
    title = "JSON lines"
    first_bytes = (b"{",)
    takes = COLUMN_OPTIONS
    sample = FORMAT_SAMPLE

    def __init__(self, options: ReadOptions, kind: str = "jsonl") -> None:
        super().__init__(options, kind)
        self._objects: set[str] = set()  # keys with objects, of a table
        self._left_out: set[str] = {*options.ignore, *self.settled.get("dates", ())}
        self._text_keys: set[str] = {TEXT, *options.text} - self._left_out
        self._special: set[str] = self._left_out | self._text_keys | {*options.categorical}
        self._numbers: dict[str, bytes] = {}  # encoded names of numbers
        self._cells_seen: dict[tuple[str, str], bytes] = {}  # and of categories

    def begin(self, name: str, head: bytes) -> tuple[int, int]:
        """Find the key of the label among those of the first objects."""
        if head.lstrip()[:1] == b"[":
            raise ValueError(f"{name} is a JSON array; write one object per line, as jq -c '.[]' does")
        if self.options.learned_keys and "key" not in self.settled:
            self.settled |= self.options.learned_keys
            if self.options.label is not None:
                self.settled["key"] = self.options.label
        objects = [found for line in head.split(b"\n")[:FORMAT_SAMPLE] if isinstance(found := _object(line), dict)]
        keys = dict.fromkeys(key for found in objects for key in found)
        if "key" not in self.settled:
            self._look_at(objects)
            key = label_of(keys, self.options.label) or LABEL_NAMES[0]
            self.settled["key"] = key
            if not self.options.unlabelled:
                self.notes.append(f"The label is {key!r}{'' if key in keys or not keys else ', which is not there'}.")
        dates = {*self.settled.get("dates", ())}
        self._left_out, self._special = self._left_out | dates, self._special | dates
        return 0, 0

    def lines_wanted(self) -> int:
        """Number of lines that `begin` wants to see: the keys may be known from a model."""
        return 0 if self.options.learned_keys else super().lines_wanted()

    def learned_keys(self) -> dict[str, Any]:
        """The key of the label, and the keys of dates."""
        return {"keys": {name: self.settled[name] for name in ("key", "dates")}}

    def _look_at(self, objects: list[dict[str, Any]]) -> None:
        """Find the keys that hold dates and times, which are left out as in tables, and numbers written as text."""
        texts: dict[str, list[object]] = {}
        for given in objects:
            shown = {**given, FEATURES: None, **found} if isinstance(found := given.get(FEATURES), dict) else given
            _note_values("", shown, texts)
        own = {*self.options.ignore, *self.options.categorical, *self.options.text, self.options.id, self.options.label}
        kinds = {name: words_type(cells) for name, cells in texts.items() if name not in own | {TEXT, *LABEL_NAMES}}
        self.settled["dates"] = [name for name, kind in kinds.items() if kind == DATES]
        if self.settled["dates"]:
            self.notes.append(ignored_note(DATES, self.settled["dates"]))
        self.notes += number_note(kinds, texts)

    def row(self, raw: bytes) -> Row | int:
        """Label, features and texts of a line, or the reason for refusing it."""
        given = _object(raw)
        if isinstance(given, int):
            return given
        options = self.options
        if options.id is not None and options.id in given:  # a model may have learned from it
            self.id = str(given[options.id] if options.unlabelled else given.pop(options.id))
        label = given.pop(self.settled["key"], None)
        if isinstance(label, (dict, list)):
            return lexer.NOT_A_LABEL
        if options.weight is not None:
            weight = given.pop(options.weight, None)
            if not options.unlabelled:
                if not _is_weight(weight):
                    self.strange = _written(weight)
                    return lexer.IMPORTANCE
                self.weight = float(weight)
        features = given.pop(FEATURES, {})
        names: list[tuple[bytes, float]] = []
        texts: list[tuple[str, str]] = []
        parts = features.items() if isinstance(features, dict) else _named("", features)
        if reason := self._add("", parts, names, texts) or self._add("", given.items(), names, texts):
            return reason
        alone = len(texts) == 1
        heads = [(b"" if alone or name == TEXT else _raw(f"{name}^"), _raw(text)) for name, text in texts]
        return b"" if label is None else _raw(label if type(label) is str else _written(label)), names, heads

    def _add(
        self,
        prefix: str,
        given: Iterable[tuple[str, Any]],
        names: list[tuple[bytes, float]],
        texts: list[tuple[str, str]],
    ) -> int:
        """Add the values of an object to names and texts, by names with dots; return the reason for refusing it, or 0.

        Names are encoded once and looked up afterwards.
        """
        numbers, cells, reason = self._numbers, self._cells_seen, 0
        for key, value in given:
            name, kind = f"{prefix}.{key}" if prefix else key, type(value)
            if kind is float or kind is int or kind is bool:
                raw = numbers.get(name)
                if raw is not None or name not in self._special:
                    if raw is None:
                        raw = numbers[name] = _raw(name)
                    if -lexer.LARGEST_VALUE <= value <= lexer.LARGEST_VALUE:
                        if value:
                            names.append((raw, value))
                    elif value == value:  # nan is how Python writes a number that is missing
                        self.strange, reason = f"{name}: {min(max(value, -math.inf), math.inf):g}", lexer.NOT_FINITE
                    continue
                value, kind = _written(value), str
            if kind is str:
                raw = cells.get((name, value))
                if raw is None:
                    if name in self._text_keys:
                        texts.append((name, value))
                        continue
                    if name in self._left_out:
                        continue
                    if len(cells) >= CELLS_KEPT:
                        cells.clear()
                    raw = cells[name, value] = _raw(f"{name}={value}")
                names.append((raw, 1.0))
            elif value is not None and name not in self._left_out:
                inner = value.items() if kind is dict else _named(name, value)
                reason = self._add(name if kind is dict else "", inner, names, texts) or reason
        return reason

    def columns(self, source: Source) -> Columns:
        """Columns in order of first appearance; None where an object lacks the key.

        Numbers by name, {"a": {"x": 0.1, "y": 0.9}}, are columns a:x and a:y; where one of them is text, {"a": {"x":
        "yes", "y": null}}, they are columns x and y. Which of the two a key holds, all lines decide together.
        """
        found: dict[_Place, list[object]] = {}
        for number, raw in enumerate(source.lines(), start=1):
            if not raw.strip():
                continue
            given = _object(raw)
            if isinstance(given, int):
                self.refuse(source.name, number, REASONS[given])
                continue
            cells = dict(self._cells(given))
            strange = next((place for place, value in cells.items() if self._is_strange(place, value)), None)
            if strange is not None:
                self._refuse_cell(source.name, number, strange, cells[strange])
                continue
            for place, value in cells.items():
                if isinstance(value, (dict, list)):
                    continue
                column = found.setdefault(place, [])
                column += [None] * (len(self.lines) - len(column))
                column.append(None if value == "" else value)
            self.lines.append(number)
        for column in found.values():
            column += [None] * (len(self.lines) - len(column))
        return self._called(source.name, found)

    def _cells(self, given: Mapping[str, object]) -> Iterator[tuple[_Place, object]]:
        """The values of an object, and of the objects in it, by their places."""
        for key, value in given.items():
            if key in self.options.ignore:
                self.left_out.add(key)
            elif isinstance(value, dict):
                self.left_out |= value.keys() & {*self.options.ignore}
                yield from (((key, name), one) for name, one in value.items() if name not in self.left_out)
            elif value is not None or key not in self._objects:
                yield (key, None), value
            if isinstance(value, dict):
                self._objects.add(key)

    def _is_strange(self, place: _Place, value: object) -> bool:
        """Return whether no table can hold it, unless it is in a column that is not asked for."""
        known, (key, name) = self.options.known, place
        return isinstance(value, (dict, list)) and (known is None or (key if name is None else name) in known)

    def _refuse_cell(self, file: str, line: int, place: _Place, value: object) -> None:
        """Refuse a line for a value that no table can hold."""
        key, name = place
        where = repr(key) if name is None else f"{name!r} of {key!r}"
        reason = f"{where} is neither text, a number, true, false nor null"
        message = f"{where} is {json.dumps(value)[:40]}, neither text, a number, true, false nor null"
        self.refuse(file, line, reason, f"{message}; remove it with --ignore {key}")

    def _called(self, file: str, found: Mapping[_Place, list[object]]) -> Columns:
        """The columns by name; two that would be called alike are refused."""
        texts = {key for (key, name), column in found.items() if name is not None and any(map(_is_text, column))}
        named: dict[str, str] = {}
        columns: Columns = {}
        for (key, name), column in found.items():
            if name is None and key in self._objects and not any(value is not None for value in column):
                continue  # null in the place of an object
            called = key if name is None else name if key in texts or key in (FEATURES, *NESTED) else f"{key}:{name}"
            if called in columns:
                inner, outer = sorted([key, named[called]], key=lambda one: one == called)
                where = "outside of it" if outer == called else f"in that of {outer!r}"
                raise ValueError(
                    f"{file}: {called!r} is in the object of {inner!r} and {where}; remove one, for instance with "
                    f"--ignore {inner}, or rename one"
                )
            columns[called], named[called] = column, key
        self.objects = {called: key for called, key in named.items() if key in self._objects}
        return columns


def _object(raw: bytes) -> dict[str, Any] | int:
    """The object in a line, or the reason for refusing it."""
    try:
        given = decode(raw)
    except UnicodeDecodeError:
        return lexer.NOT_UTF8
    except (ValueError, RecursionError):
        try:  # NaN, as Python writes it, numbers beyond any float, and halves of surrogate pairs
            given = json.loads(raw)
        except UnicodeDecodeError:
            return lexer.NOT_UTF8
        except (ValueError, RecursionError):
            return lexer.NOT_JSON
    return given if isinstance(given, dict) else lexer.NOT_AN_OBJECT


def _note_values(name: str, value: object, texts: dict[str, list[object]]) -> None:
    """Note what stands under each name, by names with dots."""
    if isinstance(value, dict):
        for key, one in value.items():
            _note_values(f"{name}.{key}" if name else key, one, texts)
    elif value is not None:
        texts.setdefault(name, []).append(value)


def _is_weight(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 <= value <= lexer.LARGEST_VALUE


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _written(value: object) -> str:
    """A label or a category as text."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _named(name: str, values: object) -> list[tuple[str, object]]:
    """The values of a list by name: texts by that of the list, others by their places; what is no list, as features."""
    if not isinstance(values, list):
        return [(FEATURES, values)]
    start = f"{name}." if name else ""
    return [(name if name and isinstance(one, str) else f"{start}{place}", one) for place, one in enumerate(values)]
