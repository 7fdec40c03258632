"""Model files: safe to open from a stranger, written completely or not at all.

A file holds named arrays and a description of plain data (JSON), in the safetensors format, and no code. Arrays are
packed (see `linmax.util.packing`); the same model always gives the same bytes. The description carries the format's
version, the kind of thing saved and a SHA-256 digest of everything else, so that a truncated file, a flipped bit,
another program's file and a newer format are each refused by name. Sizes are checked against the size of the file
before memory is allocated.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from linmax.util.checks import about
from linmax.util.outputs import is_special
from linmax.util.packing import Stored, pack, unpack

__all__ = ["FORMAT", "kind_of", "named", "plain", "read", "write"]

FORMAT = 2
HEADER_LIMIT = 64 * 2**20
READ_AT_A_TIME = 2**20  # bytes read at a time
DTYPES = {
    "F64": np.float64,
    "F32": np.float32,
    "I64": np.int64,
    "I32": np.int32,
    "I8": np.int8,
    "U8": np.uint8,
    "BOOL": np.bool_,
}


def _digest(description: str, arrays: Mapping[str, Stored]) -> str:
    found = hashlib.sha256(description.encode())
    for name in sorted(arrays):
        array = arrays[name]
        found.update(f"\0{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        for piece in array.pieces():
            found.update(piece.data)
    return found.hexdigest()


def write(
    path: str | os.PathLike[str], kind: str, description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    """Save arrays and plain data as a file of this kind; replaces an existing file only when everything is on disk.

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> name = os.path.join(tempfile.mkdtemp(), "model.linmax")
    >>> write(name, "example", {"alpha": 1.1}, {"weights": np.ones(3)})
    >>> read(name, "example")[0]
    {'alpha': 1.1}
    """
    for name, array in arrays.items():
        if array.dtype.type not in DTYPES.values():
            raise TypeError(f"array {name!r} of type {array.dtype} cannot be saved; use one of {', '.join(DTYPES)}")
    text = json.dumps(description, sort_keys=True, allow_nan=False)
    stored, how = pack(arrays)
    packing = json.dumps(how, sort_keys=True)
    labels = {"linmax_format": str(FORMAT), "kind": kind, "description": text, "packing": packing}
    head = _head(labels | {"sha256": _digest(text + packing, stored)}, stored)
    target = Path(path)
    if is_special(target):  # a device or a pipe, which must not be replaced by a file
        with about(path), target.open("wb") as file:
            _put(file, head, stored)
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target}: there is no folder {target.parent}; make it first")
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    # Not with `tempfile`: nobody else may read its files.
    with about(path):
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with about(path), os.fdopen(handle, "wb") as file:
            _put(file, head, stored)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if hasattr(os, "O_DIRECTORY"):  # the name is on disk only once the folder is
        folder = os.open(target.parent, os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _head(labels: Mapping[str, str], arrays: Mapping[str, Stored]) -> bytes:
    """The header of safetensors: its length, then where each array is; they follow in the order of their names."""
    codes = {np.dtype(kind): code for code, kind in DTYPES.items()}
    header: dict[str, Any] = {"__metadata__": dict(labels)}
    place = 0
    for name in sorted(arrays):
        array = arrays[name]
        end = place + array.nbytes
        header[name] = {"dtype": codes[array.dtype], "shape": list(array.shape), "data_offsets": [place, end]}
        place = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _put(file: IO[bytes], head: bytes, arrays: Mapping[str, Stored]) -> None:
    file.write(head)
    for name in sorted(arrays):
        for piece in arrays[name].pieces():
            file.write(piece.data)


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The description and the arrays of a file of this kind; anything else raises ValueError with the reason."""
    target = Path(path)
    header, start = _header(target)
    labels = header.pop("__metadata__", {})
    if not isinstance(labels, dict) or "linmax_format" not in labels:
        raise ValueError(f"{target} was not written by linmax")
    if labels["linmax_format"] != str(FORMAT):
        raise ValueError(
            f"{target} has format {labels['linmax_format']}, this linmax reads {FORMAT}; install a newer linmax"
        )
    if labels.get("kind") != kind:
        raise ValueError(f"{target} holds a {labels.get('kind')!r}, not a {kind!r}")
    _check_places(target, header, target.stat().st_size - start)
    text, packing = labels.get("description", ""), labels.get("packing", "")
    with target.open("rb") as file:
        stored = _stored(file, header, start)
        if labels.get("sha256") != _digest(text + packing, stored):
            raise ValueError(f"{target} is damaged: its content does not match its checksum")
        try:
            arrays = unpack(stored, json.loads(packing))
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            raise ValueError(f"{target} is damaged: {error}") from None
    return json.loads(text), arrays


def kind_of(path: str | os.PathLike[str]) -> str:
    """The kind of thing that a file says it holds; ValueError when linmax did not write it."""
    labels = _header(Path(path))[0].get("__metadata__")
    if not isinstance(labels, dict) or not isinstance(labels.get("kind"), str):
        raise ValueError(f"{path} was not written by linmax")
    return str(labels["kind"])


def _header(target: Path) -> tuple[dict[str, Any], int]:
    """The header, and where the arrays begin; sizes are checked first."""
    size = target.stat().st_size
    with target.open("rb") as file:
        length = int.from_bytes(file.read(8), "little") if size >= 8 else 0
        if not 2 <= length <= min(size - 8, HEADER_LIMIT):
            raise ValueError(f"{target} is truncated, or not a model file")
        try:
            header = json.loads(file.read(length))
        except (UnicodeDecodeError, json.JSONDecodeError):
            raise ValueError(f"{target} is not a model file: its header cannot be read") from None
    if not isinstance(header, dict):
        raise ValueError(f"{target} is not a model file: its header cannot be read")
    return header, 8 + length


def _stored(file: IO[bytes], header: Mapping[str, Any], start: int) -> dict[str, Stored]:
    """The arrays of an open file, which are read when they are asked for."""
    found = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        pieces = partial(_blocks, file, start + begin, start + end)
        found[name] = Stored(np.dtype(DTYPES[entry["dtype"]]), tuple(entry["shape"]), pieces)
    return found


def _blocks(file: IO[bytes], begin: int, end: int) -> Iterator[np.ndarray]:
    for place in range(begin, end, READ_AT_A_TIME):
        file.seek(place)
        yield np.frombuffer(file.read(min(READ_AT_A_TIME, end - place)), np.uint8)


def _check_places(target: Path, header: Mapping[str, Any], size: int) -> None:
    """Check that every array lies inside the file and is as long as its shape says."""
    ends = [0]
    for name, entry in header.items():
        try:
            shape, (begin, end) = entry["shape"], entry["data_offsets"]
            count = int(np.prod([int(n) for n in shape], dtype=object))
            right = (
                entry["dtype"] in DTYPES
                and all(isinstance(n, int) and n >= 0 for n in [*shape, begin, end])
                and end - begin == count * np.dtype(DTYPES[entry["dtype"]]).itemsize
            )
        except (KeyError, TypeError, ValueError):
            right = False
            end = 0
        if not right:
            raise ValueError(f"{target} is damaged: array {name!r} is not described properly")
        ends.append(end)
    if max(ends) != size:
        raise ValueError(f"{target} is truncated: {size} bytes of arrays, {max(ends)} announced")


def plain(value: Any) -> Any:
    """A name or label as JSON: text, numbers, booleans, and tuples of them."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, tuple):
        return {"tuple": [plain(part) for part in value]}
    if value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and np.isfinite(value)):
        return value
    raise TypeError(f"{value!r} cannot be saved; use text, numbers or tuples of them as names and labels")


def named(value: Any) -> Any:
    """The name or label that `plain` turned into this."""
    if isinstance(value, dict):
        return tuple(named(part) for part in value["tuple"])
    return value
