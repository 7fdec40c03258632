"""JSON lines: ``{"label": ..., "features": {...}}`` or ``{"label": ..., "text": "..."}``, or both.

Read as columns, the names are the keys of the objects and of their features.
"""

from __future__ import annotations

import json
from typing import Any

from linmax.io import parsing
from linmax.io.formats.base import Columns, Row, RowFormat
from linmax.io.parsing import REASONS
from linmax.io.sources import Source

__all__ = ["JsonLines"]

FEATURES, TEXT = "features", "text"


class JsonLines(RowFormat):
    """One object per line; ``options.label`` is the key of the label."""

    endings = (".jsonl", ".ndjson", ".json")
    first_bytes = (b"{",)

    def row(self, raw: bytes) -> Row | int:
        """Label, features and text of a line, or the reason for refusing it."""
        given = _object(raw)
        if isinstance(given, int):
            return given
        if not (FEATURES in given or TEXT in given):
            return parsing.NOT_AN_OBJECT
        label, features = given.get(self.options.label or "label"), given.get(FEATURES, {})
        text = given.get(TEXT) or ""
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

    def columns(self, source: Source) -> Columns:
        """Columns in order of first appearance; None where an object lacks the key."""
        found: Columns = {}
        rows = 0
        for number, raw in enumerate(source.lines(), start=1):
            if not raw.strip():
                continue
            given = _object(raw)
            if isinstance(given, int):
                raise ValueError(f"{source.name}, line {number}: {REASONS[given]}")
            if isinstance(features := given.get(FEATURES), dict):
                given = {name: value for name, value in given.items() if name != FEATURES} | features
            for name, value in given.items():
                if isinstance(value, (dict, list)):
                    told = f"{name!r} is {json.dumps(value)[:40]}, neither text, a number, true, false nor null"
                    raise ValueError(f"{source.name}, line {number}: {told}; take it out")
                column = found.setdefault(name, [])
                column += [None] * (rows - len(column))
                column.append(None if value == "" else value)
            rows += 1
        for column in found.values():
            column += [None] * (rows - len(column))
        return found


def _object(raw: bytes) -> dict[str, Any] | int:
    """The object in a line, or the reason for refusing it."""
    try:
        given = json.loads(raw, object_pairs_hook=_pairs)
    except UnicodeDecodeError:
        return parsing.NOT_UTF8
    except _TwiceError:
        return parsing.TWICE
    except (ValueError, RecursionError):
        return parsing.NOT_JSON
    return given if isinstance(given, dict) else parsing.NOT_AN_OBJECT


class _TwiceError(ValueError):
    """An object has a name twice."""


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
