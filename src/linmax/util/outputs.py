"""Output files of commands: checked before the work starts and claimed during it; figures as JSON."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from linmax.util.files import is_special, replacing

try:
    import fcntl
except ImportError:  # Windows, which does not replace a file that is open anyway
    fcntl = None  # type: ignore[assignment]

__all__ = ["check_output", "check_outputs", "claimed", "write_json"]


def check_output(path: str | os.PathLike[str], endings: Sequence[str] = ()) -> None:
    """Raise now the error that writing `path` would raise after the work is done."""
    target = Path(path)
    if endings and target.suffix.lower() not in endings:
        raise ValueError(f"{target}: the ending must be one of {', '.join(endings)}")
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder; name a file in it", str(target))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"no folder {target.parent}; make it first", str(target))
    if not os.access(target.parent, os.W_OK | os.X_OK) and not is_special(target):
        raise PermissionError(errno.EACCES, f"the folder {target.parent} cannot be written to", str(target))


def check_outputs(outputs: Sequence[str | None], inputs: Sequence[str]) -> None:
    """Check all outputs of a command, and refuse one that is an input, or another output; ``-`` is no file."""
    given = [path for path in outputs if path not in (None, "-")]
    for place, path in enumerate(given):
        assert path is not None
        check_output(path)
        if is_special(Path(path)):
            continue
        for other in inputs:
            if other != "-" and _same(path, other):
                raise ValueError(f"{path} is read and cannot be written as well; give the output another name")
        for other in given[:place]:
            assert other is not None
            if _same(path, other):
                raise ValueError(f"{path} cannot hold two outputs; give each a name of its own")


@contextmanager
def claimed(outputs: Sequence[str | None]) -> Iterator[None]:
    """Keep other processes from writing the same files meanwhile; the first to come has them.

    A lock file next to it marks the claim; the system releases it when the process ends.
    """
    held: list[tuple[int, Path]] = []
    try:
        names = [str(path) for path in outputs if path not in (None, "-")]
        targets = [Path(os.path.realpath(name)) for name in names if fcntl is not None]
        held.extend(_locked(target) for target in targets if not is_special(target))
        yield
    finally:
        for number, lock in reversed(held):
            lock.unlink(missing_ok=True)
            os.close(number)


def _locked(target: Path) -> tuple[int, Path]:
    lock = target.with_name(f".{target.name}.lock")
    while True:
        number = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock.exists() and os.path.samestat(os.fstat(number), lock.stat()):
                return number, lock
        except BlockingIOError:
            os.close(number)
            raise ValueError(
                f"{target} is being written by another process; wait for it, or give another name"
            ) from None
        os.close(number)  # its holder has just removed it


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def write_json(figures: Mapping[str, object], path: str | os.PathLike[str]) -> None:
    """Write figures as JSON, completely or not at all; the path ``-`` means standard output.

    NumPy numbers and arrays are written as plain ones. JSON has no ``nan`` and no infinities: they raise
    ``ValueError``, and nothing is written.

    Examples
    --------
    >>> write_json({"mistakes": np.int64(3), "curve": np.array([1, 3])}, "-")
    {
      "mistakes": 3,
      "curve": [
        1,
        3
      ]
    }
    """
    text = json.dumps(figures, indent=2, allow_nan=False, default=_plain, ensure_ascii=False) + "\n"
    if os.fspath(path) == "-":
        sys.stdout.write(text)
    else:
        with replacing(path) as file:
            file.write(text.encode())


def _plain(value: object) -> object:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"cannot write {value!r} as JSON")
