"""The registry of stream formats: one line for each, which names the class that reads it.

A format is a class derived from one in `linmax.io.records`. It says by which
file extensions, first bytes and first lines it is recognized, takes its options, and parses. Everything that lists,
recognises or makes formats uses this registry; a class is imported when it is first needed.

`register_format` adds one from outside::

    register_format("pairs", "my_package.pairs:Pairs")
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linmax.io.read_options import ReadOptions
    from linmax.io.records import StreamFormat

__all__ = ["FORMATS", "endings", "format_class", "format_of", "make_format", "register_format"]

# In the order in which they are tried on the first lines, from the particular to the general.
REGISTRY: dict[str, str | type[StreamFormat]] = {
    "svmlight": "linmax.io.lines:Svmlight",
    "vw": "linmax.io.lines:VowpalWabbit",
    "text": "linmax.io.lines:Text",
    "csv": "linmax.io.delimited:Csv",
    "tsv": "linmax.io.delimited:Tsv",
    "parquet": "linmax.io.typed_tables:Parquet",
    "arrow": "linmax.io.typed_tables:Arrow",
    "jsonl": "linmax.io.json_lines:JsonLines",
}
FORMATS = REGISTRY.keys()  # the names, always up to date
WITHOUT_LINES = ("svmlight", "csv")  # for an empty input: the first that will do
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zstd")
BYTES_SHOWN = 40  # bytes of an unrecognized line in the message


def register_format(name: str, where: str | type[StreamFormat]) -> None:
    """Add a format, by its class or by "module:class"; it is tried before all others.

    Parameters
    ----------
    name
        How users call it.
    where
        The class, or "module:class", imported when it is first needed.

    See Also
    --------
    linmax.stream : reads the format from then on.

    Examples
    --------
    >>> register_format("csv", "my_package.csv:Csv")
    Traceback (most recent call last):
    ...
    ValueError: there is a format 'csv' already; choose another name
    """
    if name in REGISTRY:
        raise ValueError(f"there is a format {name!r} already; choose another name")
    if isinstance(where, str) and where.count(":") != 1:
        raise ValueError(f"a format is named by 'module:class', got {where!r}")
    others = dict(REGISTRY)
    REGISTRY.clear()
    REGISTRY.update({name: where, **others})


def format_class(name: str) -> type[StreamFormat]:
    """The class of a format."""
    where = REGISTRY[name]
    if not isinstance(where, str):
        return where
    module, wanted = where.split(":")
    found: type[StreamFormat] = getattr(import_module(module), wanted)
    REGISTRY[name] = found
    return found


def make_format(name: str, options: ReadOptions) -> StreamFormat:
    """The format of this name, with its options."""
    return format_class(name)(options, name)


def endings(columns: bool = False) -> list[str]:
    """The known file extensions; with ``columns``, those of formats that have columns."""
    return list(dict.fromkeys(ending for found in _classes(columns).values() for ending in found.endings))


def _classes(columns: bool) -> dict[str, type[StreamFormat]]:
    found = {name: format_class(name) for name in FORMATS}
    return {name: one for name, one in found.items() if one.has_columns() or not columns}


def format_of(name: str, head: bytes, columns: bool = False, prefer: str | None = None) -> str:
    """The format of a file, from its extension or else its first bytes, else the one to ``prefer`` or its first lines.

    With ``columns``, only formats that have columns are considered.

    Examples
    --------
    >>> format_of("-", b"1 3:0.5 7:1"), format_of("-", b"1 |f a b"), format_of("data.svm.gz", b"")
    ('svmlight', 'vw', 'svmlight')
    """
    from linmax.io.sources import BOM, refuse_encoding

    known = _classes(columns)
    ending = _ending(name)
    claimed = [kind for kind, one in known.items() if ending in one.endings]
    if not claimed and columns and ending in endings():
        raise ValueError(f"{name}: files that end in {ending} have no columns; known: {', '.join(endings(columns))}")
    if len(claimed) == 1:
        return claimed[0]
    head = head.removeprefix(BOM).lstrip()
    for kind, one in known.items():
        if head.startswith(one.first_bytes):
            return kind
    refuse_encoding(name, head)
    if prefer in (claimed or known):
        assert prefer is not None
        return prefer
    lines = [line.strip() for line in head.split(b"\n") if line.strip() and not line.startswith(b"#")]
    if not lines:
        if ending and not claimed:
            listed = ", ".join(endings(columns))
            raise ValueError(f"{name} is empty, and the ending {ending!r} is not known; known: {listed}")
        return claimed[-1] if claimed else next(kind for kind in WITHOUT_LINES if kind in known)
    if b"\0" in head:
        raise ValueError(f"{name} is not text: its first bytes are {head[:16]!r}; give a format if it is")
    for kind in [*claimed, *known]:
        if known[kind].looks_like(lines):
            return kind
    raise ValueError(
        f"the format of {name} cannot be recognized from {lines[0][:BYTES_SHOWN]!r}; give it: {', '.join(known)}"
    )


def _ending(name: str) -> str:
    """The extension that identifies a format, in lower case, without those of compression."""
    found = [ending.lower() for ending in Path(name).suffixes]
    while found and found[-1] in COMPRESSED:
        found.pop()
    return found[-1] if found else ""
