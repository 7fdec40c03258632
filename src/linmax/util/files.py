"""Model files and atomic writing.

A model file is a zip archive of arrays (``NAME.npy``) and a header (``model.json``) with the format's version, the kind
of model and a description of plain data. It holds no code and no pickles, so that a file from a stranger is safe to
open; NumPy and any zip program can read it. Everything that is read is checked against zip's CRC-32. The same model
gives the same bytes.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np

from linmax.util.checks import about

__all__ = [
    "FORMAT",
    "Arrays",
    "Header",
    "State",
    "UnreadableFile",
    "is_special",
    "kind_of",
    "named",
    "plain",
    "read",
    "replacing",
    "write",
]

Header: TypeAlias = dict[str, Any]  # description of a model: plain data that JSON can hold
Arrays: TypeAlias = dict[str, np.ndarray]
State: TypeAlias = tuple[Header, Arrays]  # all that a model is

FORMAT = 3
HEADER = "model.json"
DTYPES = ("float64", "float32", "int64", "int32", "int8", "uint8", "bool")
ENTRY_DATE = (1980, 1, 1, 0, 0, 0)  # of all entries, so that equal models give equal bytes
LEVEL = 1  # of deflate: the fastest
RATIO = 1100  # bytes that one deflated byte can stand for, at most
PIECE = 2**18  # bytes read or written at a time
SAMPLED_PIECES = 16  # pieces of a large array that show whether it can be compressed
SAMPLED_BYTES = 4096  # in each of them
WORTHWHILE = 0.9  # compressed size, relative to the original, up to which it is compressed


@contextmanager
def replacing(path: str | os.PathLike[str], text: bool = False) -> Iterator[IO[Any]]:
    """Open a file for writing that takes the place of ``path`` when the block ends without an error.

    Readers see the old content or the new one, whatever happens; the new one is on disk when this returns. A device or
    a pipe is written directly.

    Examples
    --------
    >>> import tempfile
    >>> name = os.path.join(tempfile.mkdtemp(), "notes.txt")
    >>> with replacing(name, text=True) as file:
    ...     _ = file.write("whole or absent")
    >>> Path(name).read_text()
    'whole or absent'
    """
    options: dict[str, Any] = {"encoding": "utf-8", "errors": "surrogateescape", "newline": ""} if text else {}
    mode = "w" if text else "wb"
    target = Path(os.path.realpath(path))
    if is_special(target):
        with about(path), open(target, mode, **options) as file:
            yield file
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {target.parent}; make it first")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    # Not with `tempfile`: nobody else may read its files.
    with about(path):
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with about(path), os.fdopen(handle, mode, **options) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if hasattr(os, "O_DIRECTORY"):  # the name is on disk only once the folder is
        folder = os.open(target.parent, os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def is_special(path: Path) -> bool:
    """Return whether a path is a device or a pipe, which is written to and not replaced."""
    return path.exists() and not stat.S_ISREG(path.stat().st_mode)


def write(
    path: str | os.PathLike[str], kind: str, description: Mapping[str, object], arrays: Mapping[str, np.ndarray]
) -> None:
    """Save arrays and plain data as a file of this kind; replaces an existing file only when everything is on disk.

    Examples
    --------
    >>> import tempfile
    >>> name = os.path.join(tempfile.mkdtemp(), "model.linmax")
    >>> write(name, "example", {"alpha": 1.1}, {"weights": np.ones(3)})
    >>> read(name, "example")[0]
    {'alpha': 1.1}
    """
    for name, array in arrays.items():
        if array.dtype.name not in DTYPES:
            raise TypeError(f"array {name!r} of type {array.dtype} cannot be saved; use one of {', '.join(DTYPES)}")
    header = {"format": FORMAT, "kind": kind, "description": description, "arrays": sorted(arrays)}
    text = json.dumps(header, sort_keys=True, allow_nan=False).encode()
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        _put(archive, HEADER, b"", np.frombuffer(text, np.uint8))
        for name in sorted(arrays):
            array = np.asarray(arrays[name], order="C")
            array = array.astype(array.dtype.newbyteorder("<"), copy=False)
            _put(archive, f"{name}.npy", _npy_header(array), array.reshape(-1).view(np.uint8))


def _npy_header(array: np.ndarray) -> bytes:
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(array))
    return head.getvalue()


def _put(archive: zipfile.ZipFile, name: str, head: bytes, content: np.ndarray) -> None:
    """Add an entry, compressed if that makes it smaller."""
    entry = zipfile.ZipInfo(name, ENTRY_DATE)
    entry.create_system, entry.external_attr = 3, 0o644 << 16  # as on Unix, everywhere
    entry.file_size = len(head) + content.size
    entry.compress_type = zipfile.ZIP_DEFLATED if _compresses(content) else zipfile.ZIP_STORED
    entry._compresslevel = LEVEL  # type: ignore[attr-defined]
    with archive.open(entry, "w") as file:
        file.write(head)
        for begin in range(0, content.size, PIECE):
            file.write(content[begin : begin + PIECE].data)


def _compresses(content: np.ndarray) -> bool:
    places = np.linspace(0, max(0, content.size - SAMPLED_BYTES), SAMPLED_PIECES).astype(int)
    sample = b"".join(content[place : place + SAMPLED_BYTES].tobytes() for place in np.unique(places).tolist())
    return len(zlib.compress(sample, LEVEL)) <= WORTHWHILE * len(sample)


def read(path: str | os.PathLike[str], kind: str) -> State:
    """Return the description and the arrays of a file of this kind; anything else raises ValueError with the reason."""
    with _opened(path) as archive:
        header = _header(path, archive)
        if header["kind"] != kind:
            raise UnreadableFile(f"{path} holds a {header['kind']!r}, not a {kind!r}")
        entries = [entry.filename for entry in archive.infolist()]
        if sorted(entries) != sorted([HEADER, *(f"{name}.npy" for name in header["arrays"])]):
            raise ValueError("its arrays are not those that its header lists")
        return header["description"], {name: _array(archive, f"{name}.npy") for name in header["arrays"]}


def kind_of(path: str | os.PathLike[str]) -> str:
    """Return the kind of model that a file holds; ValueError when linmax did not write it."""
    with _opened(path) as archive:
        return str(_header(path, archive)["kind"])


class UnreadableFile(ValueError):
    """Raised for a file that is whole, but not one to read."""


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[zipfile.ZipFile]:
    """Open an archive; errors of damaged content become one line with the remedy."""
    try:
        with open(path, "rb") as file:
            if not zipfile.is_zipfile(file):
                raise UnreadableFile(f"{path} is truncated, or not a model file; restore it from a copy")
            with zipfile.ZipFile(file) as archive:
                yield archive
    except (OSError, MemoryError, UnreadableFile):
        raise
    except Exception as error:  # zipfile, zlib, json and NumPy have a dozen kinds for damaged content
        raise ValueError(f"{path} is damaged ({error}); restore it from a copy") from error


def _header(path: str | os.PathLike[str], archive: zipfile.ZipFile) -> dict[str, Any]:
    if HEADER not in archive.namelist():
        raise UnreadableFile(f"{path} was not written by linmax")
    entry = _checked(archive, HEADER)
    header: dict[str, Any] = json.loads(archive.read(entry))
    if header["format"] != FORMAT:
        age = "a newer" if header["format"] > FORMAT else "an older"
        raise UnreadableFile(f"{path} has format {header['format']}, this linmax reads {FORMAT}; install {age} linmax")
    return header


def _checked(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """Return an entry that announces no more bytes than its compressed ones can stand for."""
    entry = archive.getinfo(name)
    assert archive.fp is not None
    size = os.fstat(archive.fp.fileno()).st_size
    if entry.compress_size > size or entry.file_size > RATIO * entry.compress_size + RATIO:
        raise ValueError(f"{name} announces {entry.file_size} bytes, too many for those stored")
    return entry


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """Read an array piece by piece; its size is checked before memory is taken."""
    entry = _checked(archive, name)
    with archive.open(entry) as file:
        np.lib.format.read_magic(file)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        size = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if fortran or dtype.name not in DTYPES or size != entry.file_size - file.tell():
            raise ValueError(f"{name} announces {size} bytes of {dtype}, which are not there")
        array = np.empty(shape, dtype)
        content = array.reshape(-1).view(np.uint8)
        for begin in range(0, size, PIECE):
            piece = file.read(min(PIECE, size - begin))
            content[begin : begin + len(piece)] = np.frombuffer(piece, np.uint8)
        if file.read(1):  # which also compares the checksum
            raise ValueError(f"{name} is longer than announced")
    return array


def plain(value: Any) -> Any:
    """Return a name or label as JSON: text, numbers, booleans, and tuples of them."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, tuple):
        return {"tuple": [plain(part) for part in value]}
    if value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and np.isfinite(value)):
        return value
    raise TypeError(f"{value!r} cannot be saved; use text, numbers or tuples of them as names and labels")


def named(value: Any) -> Any:
    """Return the name or label that `plain` turned into this."""
    if isinstance(value, dict):
        return tuple(named(part) for part in value["tuple"])
    return value
