"""Pipes, terminals and sockets: what is there is taken, and nobody waits for more than that.

A file that always has its bytes ready is read in whole blocks. Others deliver when somebody writes: `Pipe` reads what
has arrived, straight from the descriptor, so that no lock of Python's buffers is held when the process ends meanwhile.
"""

from __future__ import annotations

import io
import os
import select
import stat
import time
from typing import Any

__all__ = ["GATHER", "PAUSE", "Pipe", "delivers_slowly", "descriptor"]

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
    """Whether reading may have to wait for somebody to write: a pipe, a terminal or a socket, but no file."""
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
        """Whether there are bytes, or the end, within that time."""
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
