"""Shards of data: files, patterns, folders and addresses, tables, and partitions of Dask collections.

A folder means all files in it and below, sorted by name, except for names that begin with "." or "_". Folders called
``name=value``, as Hive and Spark write them, add the column ``name`` to each row of their files. Patterns, folders and
addresses such as ``s3://bucket/part-*.svm`` are resolved by fsspec, with the credentials that it finds.
"""

from __future__ import annotations

import glob
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

from linmax.cluster.collections import Collection, as_read, is_collection, is_joint, partitions
from linmax.io.formats import make_format
from linmax.io.read_options import ReadOptions
from linmax.io.reader import open_source
from linmax.io.schema import is_number
from linmax.io.typed_tables import TableFormat, is_table
from linmax.models.shard import labels_of_rows
from linmax.util.aliases import Label, Source
from linmax.util.installation import install_command

if TYPE_CHECKING:
    import pyarrow
    from dask.delayed import Delayed
    from fsspec import AbstractFileSystem

__all__ = [
    "Shard",
    "ShardError",
    "ShardSource",
    "Shards",
    "TableFile",
    "labels_of_shard",
    "missing_files",
    "opened",
    "reason_of",
    "shards_of",
]

HIDDEN = (".", "_")
FILE = "file://"
HIVE_MISSING = "__HIVE_DEFAULT_PARTITION__"
CHANGE_TIMES = ("ETag", "etag", "mtime", "LastModified", "created")


class ShardError(ValueError):
    """Error of some shards; ``shards`` maps their names to the reasons.

    Attributes
    ----------
    shards : dict from str to str
        The reason for each shard that failed.

    See Also
    --------
    fit : raises it once all other shards are done.

    Examples
    --------
    >>> import linmax
    >>> try:
    ...     linmax.cluster.fit("perceptron", [["1 1:1"], ["no label:here"]], reading={"strict": True})
    ... except linmax.cluster.ShardError as error:
    ...     print(len(error.shards))
    1
    """

    def __init__(self, message: str, shards: Mapping[str, str]) -> None:
        super().__init__(message)
        self.shards = dict(shards)


@dataclass(frozen=True)
class TableFile:
    """File of a table, and the columns that its folders add to each row."""

    path: str
    columns: tuple[tuple[str, str | float | None], ...]


ShardSource: TypeAlias = "str | TableFile | Source | tuple[Source, ...] | Delayed"
Shards: TypeAlias = "Source | Collection | tuple[Collection, ...] | Iterable[ShardSource]"


@dataclass(frozen=True)
class Shard:
    """Part of the data with its name: a file that the workers can read, or the rows themselves."""

    name: str
    source: ShardSource

    @property
    def path(self) -> str | None:
        """Path or address of the file, if it is one."""
        if isinstance(self.source, TableFile):
            return self.source.path
        return self.source if isinstance(self.source, str) else None

    @property
    def fingerprint(self) -> list[object] | None:
        """Size and time of the last change of a file, if this process can see it."""
        if self.path is None:
            return None
        try:
            system, inside = _file_system(self.path)
            info = system.info(inside)
        except (OSError, ValueError):
            return None
        return [info.get("size"), *[str(info[name]) for name in CHANGE_TIMES if name in info][:1]]


def shards_of(given: Shards) -> list[Shard]:
    """Return shards for paths, patterns, folders, frames, pairs (X, y), lists of lines, and Dask collections.

    Examples
    --------
    >>> [shard.name for shard in shards_of(["a.svm", ["1 1:1"]])]
    ['a.svm', 'shard 1']
    """
    if isinstance(given, (str, os.PathLike)) or is_table(given) or is_collection(given) or is_joint(given):
        given = [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"shards must be a list of files or tables, or a Dask collection, got {given!r}")
    given = list(given)
    files = iter(_files_of([os.fspath(item) for item in given if isinstance(item, (str, os.PathLike))]))
    found: list[Shard] = []
    for item in given:
        if is_collection(item) or is_joint(item):
            found += [Shard(f"partition {place}", part) for place, part in enumerate(partitions(item), len(found))]
        elif isinstance(item, (str, os.PathLike)):
            found += next(files)
        else:
            found.append(item if isinstance(item, Shard) else Shard(f"shard {len(found)}", item))
    if not found:
        raise ValueError("shards must contain at least one shard, got none")
    return found


def _is_remote(path: str) -> bool:
    return "://" in path


def _file_system(path: str) -> tuple[AbstractFileSystem, str]:
    """Return the file system of an address, and the path in it."""
    try:
        from fsspec.core import url_to_fs

        found: tuple[AbstractFileSystem, str] = url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise ValueError(
            f"{path} requires the package fsspec and the one for its file system ({error}); run "
            f"{install_command('cluster')}"
        ) from None
    return found


def _list_files(path: str) -> tuple[int | None, list[str]]:
    """Return the files of a path, pattern, folder or address, and how many steps lead to the folder or pattern."""
    remote, pattern = _is_remote(path), glob.has_magic(path)
    if not remote and (os.path.isfile(path) or not (pattern or os.path.isdir(path))):
        return None, [path]  # a file that only workers may see
    system, inside = _file_system(path)
    if system.isdir(inside):
        depth, roots, problem = len(_steps(path)), [inside], "there is no file in"
    elif pattern:
        depth = next(place for place, step in enumerate(_steps(path)) if glob.has_magic(step))
        hidden = _steps(path)[-1].startswith(HIDDEN)  # meant, if the pattern itself begins so
        roots = sorted(one for one in system.glob(inside) if hidden or not _steps(one)[-1].startswith(HIDDEN))
        problem = "no file matches"
    else:
        return None, [path]
    found = [file for root in roots for file in (_walk(system, root) if system.isdir(root) else [root])]
    if not found:
        raise ValueError(f"shards: {problem} {path}")
    if remote:
        return depth, [system.unstrip_protocol(file) for file in found]
    return depth, found if os.path.isabs(path) else [os.path.relpath(file) for file in found]


def _walk(system: AbstractFileSystem, folder: str) -> list[str]:
    files = [(file, file[len(folder) :].strip("/").split("/")) for file in sorted(system.find(folder))]
    return [file for file, steps in files if not any(step.startswith(HIDDEN) for step in steps)]


def _steps(path: str) -> list[str]:
    return [step for step in path.partition("://")[2 if _is_remote(path) else 0].split("/") if step]


def _files_of(given: Sequence[str]) -> list[list[Shard]]:
    """Return shards for each path, pattern, folder or address, with the columns that their folders add.

    These are folders called ``name=value`` below a given folder, or from the first pattern on; for files given one by
    one, those whose values differ. Values are numbers if they are numbers in all folders of this name.
    """
    local = [path.removeprefix(FILE) for path in given]
    found = [_list_files(path if _is_remote(path) else os.path.normpath(path)) for path in local]
    single = _values(_pairs(file, 0) for depth, files in found if depth is None for file in files)
    pairs: dict[str, list[tuple[str, str]]] = {}
    for depth, files in found:
        for file in files:
            pairs[file] = [(k, v) for k, v in _pairs(file, depth or 0) if depth is not None or len(single[k]) > 1]
    numbers = {
        name
        for name, texts in _values(pairs.values()).items()
        if all(text == HIVE_MISSING or is_number(text) for text in texts)
    }

    def value_of(name: str, text: str) -> str | float | None:
        if text == HIVE_MISSING:
            return None
        return float(text) if name in numbers else unquote(text)

    def shard(file: str) -> Shard:
        columns = tuple((name, value_of(name, text)) for name, text in pairs[file])
        return Shard(file, TableFile(file, columns) if columns else file)

    return [[shard(file) for file in files] for _, files in found]


def _pairs(file: str, depth: int) -> list[tuple[str, str]]:
    """Return names and values of the folders of a file, from step ``depth`` on."""
    return [(name, value) for name, mark, value in (step.partition("=") for step in _steps(file)[depth:-1]) if mark]


def _values(several: Iterable[list[tuple[str, str]]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, value in (pair for pairs in several for pair in pairs):
        found.setdefault(name, set()).add(value)
    return found


def missing_files(paths: Sequence[str]) -> dict[int, str]:
    """Return the places of files that this process cannot read, with reasons; only the first of each remote system."""
    places = {
        tuple(path.split("/")[:3]) if _is_remote(path) else path: at for at, path in reversed([*enumerate(paths)])
    }
    found = {}
    for place in places.values():
        try:
            system, inside = _file_system(paths[place])
            if not system.exists(inside):
                found[place] = "No such file"
            elif not (_is_remote(paths[place]) or os.access(inside, os.R_OK)):
                found[place] = "Permission denied"
        except (OSError, ValueError) as error:
            found[place] = f"{type(error).__name__}: {reason_of(error)}"
    return found


class RemoteFile(io.BufferedReader):
    """File of fsspec with its name, by whose ending the format is recognized."""

    def __init__(self, file: io.RawIOBase, name: str) -> None:
        super().__init__(file)
        self._name = name

    @property
    def name(self) -> str:
        return self._name


def labels_of_shard(source: ShardSource, **reading: Any) -> list[Label]:
    """Return the distinct labels of a shard of votes; none if it cannot be read, which `fit` reports by name."""
    with suppress(Exception), opened(source) as rows:
        return labels_of_rows(rows, **reading)
    return []


@contextmanager
def opened(source: ShardSource) -> Iterator[Source | tuple[Source, ...]]:
    """Open the source of a shard for `linmax.stream`."""
    if isinstance(source, TableFile):
        with opened(source.path) as file:
            yield _tables(file, source)
    elif isinstance(source, str) and _is_remote(source):
        system, inside = _file_system(source)
        with RemoteFile(system.open(inside, "rb"), source) as file:
            yield file
    else:
        yield as_read(source)


def _tables(file: Source, part: TableFile) -> Iterator[pyarrow.Table]:
    """Yield the tables of a file with the columns of its folders."""
    import pyarrow

    source, kind = open_source(file)
    try:
        made = make_format(kind, ReadOptions())
        if not isinstance(made, TableFormat):
            names = ", ".join(name for name, _ in part.columns)
            raise ValueError(
                f"{part.path} is {kind}, but columns from folder names ({names}) need Parquet or Arrow files"
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


def reason_of(error: BaseException) -> str:
    """Return the message of an error in one line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}"
    if isinstance(error, FileNotFoundError):  # of a file system whose message is the path alone
        return f"No such file: {error}"
    return " ".join(str(error).split()) or type(error).__name__
