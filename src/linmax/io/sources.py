"""Bytes of files, pipes and compressed files, a block of whole lines at a time, in bounded memory.

Compression is recognized by the first bytes, not by the name: gzip, bzip2, xz and zstd. Files are read in whole blocks.
A `Pipe` delivers what has arrived, straight from the descriptor, so that no lock of Python's buffers is held when the
process ends meanwhile.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import select
import stat
import sys
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from linmax.io.bytes import PADDING
from linmax.io.read_options import Position

if TYPE_CHECKING:
    from linmax.io.records import StreamFormat

__all__ = [
    "BOM",
    "LONGEST_LINE",
    "STANDARD_INPUT",
    "LineBlocks",
    "LinesAsFile",
    "Source",
    "is_standard_input",
    "refuse_encoding",
    "refuse_unreadable",
]

STANDARD_INPUT = "-"
MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
LONGEST_MAGIC = max(map(len, MAGIC))
BOM = b"\xef\xbb\xbf"  # may begin a text in UTF-8, and means nothing
ENCODINGS = {b"\xff\xfe\0\0": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
POINTER = b"version https://git-lfs.github.com/spec/"  # begins a file of Git that stands for another
HEAD = 2**16  # bytes by which a format is recognized
PAUSE = 0.005  # seconds without a byte after which what has arrived is used
GATHER = 0.05  # seconds for which bytes are gathered, at most, while they keep coming
CAPACITY = 2**20  # bytes that a pipe should hold, so that writer and reader seldom wait for each other


def descriptor(file: Any) -> int | None:
    """The descriptor of an open file, None if it has none."""
    try:
        return int(file.fileno())
    except (AttributeError, OSError, ValueError):
        return None


def delivers_slowly(number: int) -> bool:
    """Return whether reading may have to wait for somebody to write: a pipe, a terminal or a socket, but no file."""
    mode = os.fstat(number).st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISBLK(mode) or stat.S_ISDIR(mode))


class Pipe(io.RawIOBase):
    """The bytes of a descriptor as they arrive."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._first = b""  # looked at already
        _enlarge(number)

    def fileno(self) -> int:
        """The descriptor."""
        return self._number

    def readable(self) -> bool:
        """True."""
        return True

    def peek(self, size: int) -> bytes:
        """The first bytes, ``size`` of them unless the pipe or its first line is shorter; they are read again."""
        while len(self._first) < size and b"\n" not in self._first:
            more = os.read(self._number, size - len(self._first))
            if not more:
                break
            self._first += more
        return self._first

    def readinto(self, room: Any) -> int:
        """Wait for bytes and take what is there; 0 at the end."""
        view = memoryview(room).cast("B")
        if self._first:
            part, self._first = self._first[: len(view)], self._first[len(view) :]
            view[: len(part)] = part
            return len(part)
        return os.readv(self._number, [view]) if hasattr(os, "readv") else self._copied(view)

    def _copied(self, view: memoryview) -> int:
        data = os.read(self._number, len(view))
        view[: len(data)] = data
        return len(data)

    def ready(self, seconds: float) -> bool:
        """Return whether there are bytes, or the end, within that time."""
        if self._first:
            return True
        try:
            return bool(select.select([self._number], [], [], max(0.0, seconds))[0])
        except (OSError, ValueError):  # what cannot be waited for, as pipes on Windows
            return False


class Gathering:
    """For how long bytes that keep coming are still waited for."""

    def __init__(self) -> None:
        self._until = time.monotonic() + GATHER

    def left(self) -> float:
        """Seconds to wait for the next byte; below 0 when it is time to use what there is."""
        return min(PAUSE, self._until - time.monotonic())


def _enlarge(number: int) -> None:
    """Let the pipe hold more, where the system allows it."""
    try:
        import fcntl

        fcntl.fcntl(number, fcntl.F_SETPIPE_SZ, CAPACITY)
    except (ImportError, AttributeError, OSError):
        pass


def refuse_encoding(name: str, head: bytes) -> None:
    """Refuse text that is not in UTF-8 or another extension of ASCII, from its first bytes."""
    if head.startswith(POINTER):
        raise ValueError(f"{name} is a pointer of Git LFS, not the data; fetch them, as git lfs pull does")
    for mark, kind in ENCODINGS.items():
        if head.startswith(mark):
            raise ValueError(f"{name} is {kind}; convert it, as iconv -f {kind} -t UTF-8 does")
    if head[:512].count(0) > len(head[:512]) // 3:
        raise ValueError(f"{name} is UTF-16 or no text at all; convert it, as iconv -f UTF-16 -t UTF-8 does")
    if b"\r" in head and b"\n" not in head[:-1] and head.count(b"\r") > 1:
        raise ValueError(f"{name} ends its lines in carriage returns alone; convert it, as tr '\\r' '\\n' does")


def _zstd(raw: BinaryIO) -> BinaryIO:
    """Decompress zstd."""
    import pyarrow

    return cast("BinaryIO", pyarrow.CompressedInputStream(pyarrow.PythonFile(raw), "zstd"))


def _unpacked(raw: Any) -> BinaryIO:
    start = raw.peek(LONGEST_MAGIC)[:LONGEST_MAGIC]
    kind = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), None)
    if kind == "gzip":
        return cast("BinaryIO", gzip.GzipFile(fileobj=raw))
    if kind == "bzip2":
        return cast("BinaryIO", bz2.BZ2File(raw))
    if kind == "xz":
        return cast("BinaryIO", lzma.LZMAFile(raw))
    return _zstd(cast("BinaryIO", raw)) if kind == "zstd" else cast("BinaryIO", raw)


def is_standard_input(path: Any) -> bool:
    """Return whether this stands for standard input."""
    return isinstance(path, (str, os.PathLike)) and os.fspath(path) == STANDARD_INPUT


def refuse_unreadable(path: Any) -> None:
    """Raise now if this is a path without a file; opening it to find out might consume bytes of a pipe."""
    if isinstance(path, (str, os.PathLike)) and not is_standard_input(path):
        if Path(path).is_dir():
            raise ValueError(f"{path} is a folder; give a file")
        os.stat(path)


def _standard_input() -> Any:
    if sys.stdin is None:
        raise ValueError("standard input is closed; give a file, or feed it by a pipe")
    return sys.stdin.buffer


def _bytes_of(file: Any, ours: bool) -> Any:
    """Return a `Pipe` if the file may be read past Python's buffer, else a file that can peek."""
    number = descriptor(file) if ours else None
    if number is not None and delivers_slowly(number):
        return Pipe(number)
    return file if hasattr(file, "peek") else io.BufferedReader(file)


class Source:
    """One file, pipe or open binary file, decompressed as it is read."""

    def __init__(self, path: Any) -> None:
        self.name, self.size, self.raw_size = "standard input", None, None
        self.path = path
        self._ahead = b""  # read, but not yet handed out
        self._whole = False  # whether there is nothing after it
        self._opened = isinstance(path, (str, os.PathLike)) and not is_standard_input(path)
        if is_standard_input(path):
            self._given: Any = _standard_input()
        elif self._opened:
            self.name = str(path)
            if Path(path).is_dir():
                raise ValueError(f"{path} is a folder; give a file")
            self._given = open(path, "rb")  # noqa: SIM115
        else:
            self.name, self._given = str(getattr(path, "name", type(path).__name__)), path
        self._raw: Any = _bytes_of(self._given, self._opened or is_standard_input(path))
        self.live = isinstance(self._raw, Pipe)
        self._file = self._raw
        try:
            self._file = _unpacked(self._raw)
        except BaseException:
            self.close()
            raise
        self.packed = self._file is not self._raw
        if self._opened and Path(path).is_file():
            self.raw_size = os.path.getsize(path)
            self.size = None if self.packed else self.raw_size

    @classmethod
    def of(cls, path: Any) -> Source:
        """The source of a path or an open file; a source is returned unchanged."""
        return path if isinstance(path, cls) else cls(path)

    @property
    def plain_file(self) -> bool:
        """Return whether it is an uncompressed file that others can open by its path."""
        return self.size is not None

    @property
    def left(self) -> int | None:
        """Number of bytes still to come, if known: of a plain file, and of input that ended within its head."""
        return len(self._ahead) if self._whole else self.size

    def head(self, size: int = HEAD) -> bytes:
        """The first bytes, up to the end of a line if there is one; they are read again later.

        Of a pipe these are the bytes that have arrived, but one line at least.
        """
        room = np.zeros(size, np.uint8)
        while len(self._ahead) < size and not (self.live and b"\n" in self._ahead and not self._raw.ready(PAUSE)):
            before = self._ahead
            self._ahead = b""
            got = self.read_some(room[len(before) :])
            self._ahead = before + room[len(before) : len(before) + got].tobytes()
            if not got:
                self._whole = True
                break
        whole = len(self._ahead) < size
        return self._ahead if whole else self._ahead[: self._ahead.rfind(b"\n") + 1] or self._ahead

    def read_all(self) -> bytes:
        """The rest."""
        parts: list[bytes] = []
        room = np.zeros(2**20, np.uint8)
        while got := self.read_into(room):
            parts.append(room[:got].tobytes())
        return b"".join(parts)

    def lines(self) -> Iterator[bytes]:
        """The rest, line by line."""
        return iter(io.BufferedReader(SourceFile(self), 2**16))

    def done(self) -> float | None:
        """The share of the file that has been read, if its size is known."""
        if not self.raw_size:
            return None
        try:
            return min(1.0, self._raw.tell() / self.raw_size)
        except (OSError, ValueError):
            return None

    def ready(self, seconds: float = 0.0) -> bool:
        """Return whether something can be read without waiting longer than that: always, unless it is a pipe."""
        return not self.live or bool(self._ahead) or bool(self._raw.ready(seconds))

    def read_into(self, room: np.ndarray) -> int:
        """Fill the array as far as possible; returns the number of bytes, 0 at the end."""
        count = 0
        while count < len(room) and (got := self.read_some(room[count:])):
            count += got
        return count

    def read_some(self, room: np.ndarray) -> int:
        """Read what is there, and wait only if there is nothing; returns the number of bytes, 0 at the end.

        While a writer keeps a pipe full, its bytes are gathered for a moment, so that blocks are large.
        """
        view, count = room.data, 0
        gathering = Gathering() if self.live else None
        try:
            while count < len(view):
                got = self._read(view[count:])
                if not got:
                    break
                count += got
                if gathering is not None and not ((left := gathering.left()) >= 0.0 and self.ready(left)):
                    break
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise ValueError(f"{self.name} is damaged or cut short: {error}") from None
        except OSError as error:
            if error.errno is None:  # this is how bz2 and zstd report bad data
                raise ValueError(f"{self.name} is damaged or cut short: {error}") from None
            raise
        return count

    def _read(self, view: memoryview) -> int:
        if self._ahead:
            part, self._ahead = self._ahead[: len(view)], self._ahead[len(view) :]
            view[: len(part)] = part
            return len(part)
        if self.packed and self.live and hasattr(self._file, "readinto1"):
            return int(self._file.readinto1(view))
        if hasattr(self._file, "readinto"):
            return int(self._file.readinto(view) or 0)
        data = self._file.read(len(view))
        view[: len(data)] = data
        return len(data)

    def skip(self, count: int) -> None:
        """Skip that many bytes."""
        known = min(count, len(self._ahead))
        self._ahead, count = self._ahead[known:], count - known
        if not self.packed and self.size is not None:
            self._file.seek(count, os.SEEK_CUR)
            return
        room = np.zeros(min(count, 2**20), np.uint8)
        while count:
            got = self.read_into(room[: min(count, room.size)])
            if not got:
                raise ValueError(f"{self.name} ends before the place at which to continue")
            count -= got

    def close(self) -> None:
        """Close what was opened here."""
        if self._opened:
            self._file.close()
            self._raw.close()
            self._given.close()


class SourceFile(io.RawIOBase):
    """A source as a file object for Python's own readers."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, room: Any) -> int:
        """Fill the buffer."""
        return self._source.read_into(np.frombuffer(room, np.uint8))


class LinesAsFile(io.RawIOBase):
    """Lines from an iterable, of text or bytes, as one binary file."""

    name = "Lines"

    def __init__(self, lines: Iterable[str | bytes]) -> None:
        self._lines = iter(lines)
        self._left = b""

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, room: Any) -> int:
        """Fill the buffer with lines."""
        view = memoryview(room).cast("B")
        parts, count = [self._left], len(self._left)
        while count < len(view):
            line = next(self._lines, None)
            if line is None:
                break
            raw = line.encode() if isinstance(line, str) else bytes(line)
            parts.append(raw if raw.endswith(b"\n") else raw + b"\n")
            count += len(parts[-1])
        joined = b"".join(parts)
        part, self._left = joined[: len(view)], joined[len(view) :]
        view[: len(part)] = part
        return len(part)


LONGEST_LINE = 2**24
PIPE_PATIENCE = 0.5  # seconds that a pipe is waited for when the types of columns depend on the next lines
NEWLINE = 10
TAIL = 2**12  # bytes that are searched for a newline at a time


class LineBlocks:
    """Whole lines of a source, a block at a time, from the first data of a format or from a position on.

    ``block`` holds whole lines from ``at`` to ``end``, the first of which has the number ``line``, and behind what it
    holds PADDING newlines. ``refuse(line)`` counts a line that is too long.
    """

    def __init__(self, source: Source, format: StreamFormat, start: Position | None) -> None:
        size = format.options.block if source.left is None else min(format.options.block, source.left + 1)
        self.source, self.format = source, format
        self.block = np.zeros(size + PADDING, np.uint8)
        self.at = self.end = 0
        self.line = 1
        self._base = self._filled = 0  # where the block begins in the file, and how many bytes it holds
        self._ended = False
        if start is not None:
            source.skip(start.offset)
            self._base, self.line = start.offset, start.line
            return
        self.fill()
        self._sample(size)
        head = self.block[: self._filled].tobytes()
        mark = len(BOM) if head.startswith(BOM) else 0
        refuse_encoding(source.name, head)
        skipped, lines = format.begin(source.name, head[mark:])
        self.at += min(mark + skipped, self._filled)
        self.line += lines

    @property
    def place(self) -> int:
        """The place of the next line in the file."""
        return self._base + self.at

    def _sample(self, size: int) -> None:
        """Read the lines that the format wants to see; from a pipe that pauses, those up to the first row."""
        wanted, first = self.format.lines_wanted(), self.format.first_row
        while wanted and self._filled < size:
            lines = int((self.block[: self._filled] == NEWLINE).sum())
            if lines >= wanted or (lines >= first and not self.source.ready(PIPE_PATIENCE)) or not self.fill():
                break

    def fill(self) -> bool:
        """Read more bytes after the rest of the block; False at the end."""
        if self._ended:
            return False
        left, room = self._filled - self.at, self.block.size - PADDING
        if left >= room:  # one line fills the block
            if room >= LONGEST_LINE:
                return self._skip_line()
            self.block = np.concatenate([self.block, np.zeros(room, np.uint8)])
            room *= 2
        if self.at and left:
            self.block[:left] = self.block[self.at : self._filled].copy()
        self._base += self.at
        self._received(left, self.source.read_some(self.block[left:room]), 0)
        return self._filled > 0

    def _received(self, left: int, got: int, at: int) -> None:
        """Note the bytes that came after the first ``left`` ones; the next line begins at ``at``."""
        self._ended, self._filled = not got, left + got
        if self._ended and self._filled and self.block[self._filled - 1] != NEWLINE:
            self.block[self._filled] = NEWLINE
            self._filled += 1
        self.block[self._filled : self._filled + PADDING] = NEWLINE
        self.at = at
        self.end = self._filled
        while self.end > at and self.block[self.end - 1] != NEWLINE:
            tail = self.block[max(at, self.end - TAIL) : self.end].tobytes()
            self.end += tail.rfind(b"\n") + 1 - len(tail)

    def _skip_line(self) -> bool:
        """Skip a line that is too long."""
        room = self.block.size - PADDING
        self._base += self._filled
        while True:
            got = self.source.read_some(self.block[:room])
            newlines = np.flatnonzero(self.block[:got] == NEWLINE)
            if newlines.size or not got:
                break
            self._base += got
        self.format.refuse_long_line(self.source.name, self.line)
        self.line += 1
        self._received(0, got, int(newlines[0]) + 1 if newlines.size else got)
        return True

    def more(self) -> bool:
        """Return whether there are whole lines, which are read if necessary."""
        return self.at < self.end or self.fill()

    def lines(self) -> bytes:
        """The whole lines at hand."""
        return self.block[self.at : self.end].tobytes()

    def advance(self, size: int, lines: int) -> None:
        """Continue after some bytes of some lines."""
        self.at += size
        self.line += lines
