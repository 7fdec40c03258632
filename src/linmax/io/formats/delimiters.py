"""What separates the fields of a table, told from its first lines."""

from __future__ import annotations

from collections.abc import Sequence

from linmax.io.schema import is_number

__all__ = ["DELIMITERS", "delimiter_of", "named_delimiter"]

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
