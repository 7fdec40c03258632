"""Files of a data set by their address: patterns, folders, ``file://``, and whatever else fsspec opens.

A folder means all files in it and below, in the order of their names, but for those whose names begin with "." or "_".
Folders called ``name=value``, as Hive and Spark write them, give each row of their files the column ``name``. Addresses
such as ``s3://bucket/part-*.svm`` are opened by fsspec, with the credentials that it finds for itself.
"""

from __future__ import annotations

import glob
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from linmax.cluster.partitions import as_read
from linmax.io.formats import make_format
from linmax.io.formats.base import TableFormat
from linmax.io.options import ReadOptions
from linmax.io.reader import open_source
from linmax.io.schema import is_number

__all__ = ["TableFile", "fingerprint", "listed", "missing", "opened", "parts_of"]

PATTERN = frozenset("*?[")
HIDDEN = "._"
FILE = "file://"
HIVE_MISSING = "__HIVE_DEFAULT_PARTITION__"
NEEDS_FSSPEC = "needs the package fsspec and the one for its file system; try pip install 'linmax[cluster]'"


@dataclass(frozen=True)
class TableFile:
    """A file of a table, and the columns that its folders give to each of its rows."""

    path: str
    columns: tuple[tuple[str, str | float | None], ...]

    def __str__(self) -> str:
        return self.path


def _remote(path: str) -> bool:
    return "://" in path


def _file_system(path: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    try:
        from fsspec.core import url_to_fs

        found: tuple[Any, str] = url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise ValueError(f"{path} {NEEDS_FSSPEC}: {error}") from None
    return found


def listed(path: str) -> list[str]:
    """The files of a path, a pattern, a folder or an address; what is there no sign of is taken for a file."""
    path = path.removeprefix(FILE)
    if not _remote(path):
        if os.path.isdir(path):
            return _refuse_empty(path, _walked(path))
        if not PATTERN & set(path) or os.path.exists(path):
            return [path]
        matching = _shown(path, glob.glob(path))
        found = [file for one in matching for file in (_walked(one) if os.path.isdir(one) else [one])]
        return _refuse_empty(path, found, "no file matches")
    system, inside = _file_system(path)
    if PATTERN & set(inside):
        found = [file for one in _shown(inside, system.glob(inside)) for file in _found(system, one)]
        return _refuse_empty(path, [system.unstrip_protocol(one) for one in found], "no file matches")
    if system.isdir(inside):
        return _refuse_empty(path, [system.unstrip_protocol(one) for one in _found(system, inside)])
    return [path]


def _shown(pattern: str, found: Sequence[str]) -> list[str]:
    """In order; a pattern does not mean names that begin with "_" unless it does so itself."""
    wanted = pattern.rsplit("/", 1)[-1].startswith("_")
    return sorted(one for one in found if wanted or not one.rsplit("/", 1)[-1].startswith("_"))


def _refuse_empty(path: str, found: list[str], why: str = "there is no file in") -> list[str]:
    if not found:
        raise ValueError(f"shards: {why} {path}")
    return found


def _walked(folder: str) -> list[str]:
    found = []
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] not in HIDDEN)
        found += [os.path.join(path, name) for name in sorted(names) if name[0] not in HIDDEN]
    return found


def _found(system: Any, path: str) -> list[str]:
    if not system.isdir(path):
        return [path]
    below = [(one, one[len(path) :].strip("/").split("/")) for one in sorted(system.find(path))]
    return [one for one, steps in below if not any(step[0] in HIDDEN for step in steps)]


def parts_of(given: Sequence[str]) -> list[list[str | TableFile]]:
    """The files of each path, pattern, folder or address; where folders are called ``name=value`` with these columns.

    These are the folders below one that is given, or from the first pattern on; for files given one by one, those
    whose values differ. Values are numbers if they are in all folders of this name.

    Examples
    --------
    >>> parts = parts_of(["run=3/year=2024/a.parquet", "run=3/year=2025/a.parquet"])
    >>> [part.columns for (part,) in parts]
    [(('year', 2024.0),), (('year', 2025.0),)]
    """
    found = [(_root(path), listed(path)) for path in given]
    alone = _values(_named(file) for root, files in found if root is None for file in files)
    pairs: dict[str, list[tuple[str, str]]] = {}
    for root, files in found:
        for file in files:
            pairs[file] = [(k, v) for k, v in _named(file, root or 0) if root is not None or len(alone[k]) > 1]
    values = _values(pairs.values())
    numbers = {name for name, texts in values.items() if all(v == HIVE_MISSING or is_number(v) for v in texts)}

    def value_of(name: str, text: str) -> str | float | None:
        if text == HIVE_MISSING:
            return None
        return float(text) if name in numbers else unquote(text)

    def part(file: str) -> str | TableFile:
        columns = tuple((name, value_of(name, text)) for name, text in pairs[file])
        return TableFile(file, columns) if columns else file

    return [[part(file) for file in files] for _, files in found]


def _values(several: Iterable[list[tuple[str, str]]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, value in (pair for pairs in several for pair in pairs):
        found.setdefault(name, set()).add(value)
    return found


def _steps(path: str) -> list[str]:
    return [step for step in path.partition("://")[2 if _remote(path) else 0].split("/") if step]


def _root(path: str) -> int | None:
    """How many steps lead to a folder that is given, or to the first pattern; None for a file."""
    path = path.removeprefix(FILE)
    steps = _steps(path)
    pattern = next((place for place, step in enumerate(steps) if PATTERN & set(step)), None)
    if pattern is not None and (_remote(path) or not os.path.exists(path)):
        return pattern
    if _remote(path):
        system, inside = _file_system(path)
        return len(steps) if system.isdir(inside) else None
    return len(steps) if os.path.isdir(path) else None


def _named(file: str, root: int = 0) -> list[tuple[str, str]]:
    """Names and values of the folders of a file, from step ``root`` on."""
    pairs = [step.partition("=") for step in _steps(file)[root:-1] if "=" in step]
    return [(name, value) for name, _, value in pairs]


def fingerprint(path: str) -> list[Any] | None:
    """Size and time of the last change of a file that can be seen from here, to know it again."""
    if not _remote(path):
        if not os.path.isfile(path):
            return None
        found = os.stat(path)
        return [found.st_size, found.st_mtime_ns]
    try:
        system, inside = _file_system(path)
        known: Mapping[str, Any] = system.info(inside)
    except (OSError, ValueError):
        return None
    times = [str(known[name]) for name in ("ETag", "etag", "mtime", "LastModified", "created") if name in known]
    return [known.get("size"), *times[:1]]


def missing(paths: Sequence[str]) -> dict[int, str]:
    """Those of the paths that cannot be read from here, and why; of addresses the first of each file system."""
    found, systems = {}, set()
    for place, path in enumerate(paths):
        if not _remote(path):
            if not os.access(path, os.R_OK):
                found[place] = "No such file" if not os.path.exists(path) else "Permission denied"
        elif (where := tuple(path.split("/")[:3])) not in systems:
            systems.add(where)
            try:
                system, inside = _file_system(path)
                if not system.exists(inside):
                    found[place] = "No such file"
            except (OSError, ValueError) as error:
                found[place] = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return found


class RemoteFile(io.BufferedReader):
    """A file of fsspec under its own name, by whose ending the format is recognised."""

    def __init__(self, file: Any, name: str) -> None:
        super().__init__(file)
        self._name = name

    @property
    def name(self) -> str:
        return self._name


@contextmanager
def opened(source: Any) -> Iterator[Any]:
    """What `linmax.stream` reads instead of the source of a shard."""
    if isinstance(source, TableFile):
        with opened(source.path) as file:
            yield _tables(file, source)
    elif isinstance(source, str) and _remote(source):
        system, inside = _file_system(source)
        with RemoteFile(system.open(inside, "rb"), source) as file:
            yield file
    else:
        yield as_read(source)


def _tables(file: Any, part: TableFile) -> Iterator[Any]:
    """The tables of a file with the columns of its folders."""
    import pyarrow

    source, kind = open_source(file)
    try:
        made = make_format(kind, ReadOptions())
        if not isinstance(made, TableFormat):
            names = ", ".join(name for name, _ in part.columns)
            raise ValueError(
                f"{part.path} is {kind}, and columns by the names of folders ({names}) need Parquet or Arrow files"
            )
        for found in made.tables(source):
            table = found if isinstance(found, pyarrow.Table) else pyarrow.Table.from_batches([found])
            for name, value in part.columns:
                if name not in table.column_names:
                    kinds = pyarrow.float64() if isinstance(value, float) else pyarrow.string()
                    table = table.append_column(name, pyarrow.array([value] * len(table), kinds))
            yield table
    finally:
        source.close()
