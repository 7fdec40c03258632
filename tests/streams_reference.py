"""Readers of lines again, slow and obvious: what `linmax.stream` must agree with."""

from __future__ import annotations

import csv
import json
import math
import re
import unicodedata

LARGEST = 1e100
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
BLANK = " \t\r"


class Refused(Exception):
    """A line that cannot be read."""


def number(text: str) -> float:
    if not NUMBER.fullmatch(text):
        raise Refused("wild" if re.fullmatch(r"[+-]?[nNiI].*", text) else "number")
    value = float(text)
    if not abs(value) <= LARGEST:
        raise Refused("wild")
    return value


def label_name(text: str) -> str:
    if NUMBER.fullmatch(text) and math.isfinite(float(text)) and float(text).is_integer() and abs(float(text)) < 2**53:
        return str(int(float(text)))
    return text


def words(line: str) -> list[str]:
    return [word for word in re.split(f"[{BLANK}]+", line) if word]


def svmlight(line: str) -> tuple[str, dict[str, float]] | None:
    line = line.split("#", 1)[0]
    parts = words(line)
    if not parts:
        return None
    number(parts[0])
    row: dict[str, float] = {}
    for part in parts[1:]:
        if part.startswith("qid:"):
            continue
        index, colon, text = part.partition(":")
        if not re.fullmatch(r"[0-9]+", index) or not colon or int(index) > 2**31 - 1:
            raise Refused("index")
        value = number(text)
        if value:
            name = str(int(index))
            if name in row:
                raise Refused("twice")
            row[name] = value
    return label_name(parts[0]), row


def vw(line: str) -> tuple[str | None, dict[str, float], float, str] | None:
    if not words(line):
        return None
    head, bar, rest = line.partition("|")
    if not bar:
        raise Refused("bar")
    parts, tag = words(head), ""
    if parts and (head[-1] not in BLANK or parts[-1].startswith("'")):
        tag = parts.pop().removeprefix("'")
    if any(part.startswith("'") for part in parts) or len(parts) > 3 or (parts and ":" in parts[0]):
        raise Refused("label")
    weight = 1.0
    if len(parts) > 1:
        weight = number(parts[1])
        if weight < 0:
            raise Refused("importance")
    row: dict[str, float] = {}
    for space in rest.split("|"):
        named = space[:1] not in ("", *BLANK)
        tokens = words(space)
        prefix, factor = "", 1.0
        if named:
            name, colon, text = tokens.pop(0).partition(":")
            factor = number(text) if colon else 1.0
            prefix = f"{name}^" if name else ""
        for token in tokens:
            name, colon, text = token.partition(":")
            value = number(text) if colon else 1.0
            if not name:
                raise Refused("nameless")
            value *= factor
            if abs(value) > LARGEST:
                raise Refused("wild")
            if value:
                row[prefix + name] = row.get(prefix + name, 0.0) + value
    return (label_name(parts[0]) if parts else None), row, weight, tag


def text_words(text: str) -> list[str]:
    """Letters, digits, marks and underscores make words, two of them at least; an ideograph is one."""
    folded = ""
    for c in text:
        small = c.casefold() if len(c.casefold()) == 1 else c.lower()[0]
        if c in "\u00ad\u200b\u200c\u200d\u2060":
            continue
        if ord(c) >= 0x32000 or not (c.isalnum() or unicodedata.category(c) in ("Mn", "Mc", "Me", "Pc")):
            folded += " "
        elif "\u3400" <= c <= "\u9fff" or "\uf900" <= c <= "\ufaff" or c >= "\U00020000":
            folded += f" \0{small} "
        else:
            folded += small
    return [word.strip("\0") for word in folded.split(" ") if len(word) >= 2]


def text(line: str, ngrams: int = 1) -> tuple[str | None, dict[str, float]] | None:
    label, tab, rest = line.partition("\t")
    if not tab:
        if line.strip(BLANK):
            raise Refused("tab")
        return None
    found = text_words(rest)
    row: dict[str, float] = {}
    for n in range(1, ngrams + 1):
        for i in range(len(found) - n + 1):
            name = " ".join(found[i : i + n])
            row[name] = row.get(name, 0.0) + 1.0
    return label_name(label.strip(BLANK)) or None, row


def table(line: str, kinds: dict[str, str]) -> tuple[str | None, list[float], dict[str, float]]:
    fields = next(csv.reader([line], skipinitialspace=True, strict=True))
    if len(fields) != len(kinds):
        raise Refused("fields")
    label, dense, row = None, [], {}
    for cell, (name, kind) in zip(fields, kinds.items(), strict=True):
        cell = cell.strip(" ")
        if kind == "label":
            label = label_name(cell) or None
        elif kind == "number":
            dense.append(math.nan)
            if cell.lower() in ("", "na", "nan", "null", "none", "?"):
                continue
            try:
                dense[-1] = number(cell)
            except Refused as refused:
                if refused.args == ("wild",):
                    raise
                row[f"{name}={cell}"] = 1.0
        elif kind == "category" and cell:
            row[f"{name}={cell}"] = 1.0
    return label, dense, row


def jsonl(line: str) -> tuple[str | None, dict[str, float]]:
    given = json.loads(line)
    row = {}
    for name, value in given.get("features", {}).items():
        if isinstance(value, str):
            row[f"{name}={value}"] = 1.0
        elif value:
            row[name] = row.get(name, 0.0) + float(value)
    counted = text("\t" + given.get("text", "").replace("\n", " "))
    for name, value in counted[1].items():
        row[name] = row.get(name, 0.0) + value
    label = given.get("label")
    return (None if label is None else label_name(str(label))), row
