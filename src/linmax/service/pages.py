"""Pages of a database that carry checksums: what a disk returns changed is never taken for data.

SQLite checks the frames of its WAL, not the pages of its file. `CheckedVFS` stamps each page when it is written to the
file, with the CRC-32 of its number and its content in the page's last bytes, which SQLite leaves to it, and compares
them when it is read. A page that does not fit raises `DamagedPage`.
"""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import apsw

__all__ = ["PAGE", "CheckedVFS", "DamagedPage", "connect"]

PAGE, STAMP = 4096, 4  # bytes of a page, and of its checksum
ALL_ZERO = bytes(PAGE)
SMALLEST_PAGE = 512  # shorter reads are of the file's header
_names = count()


class DamagedPage(apsw.IOError):
    """A page does not fit its checksum."""

    extendedresult = apsw.SQLITE_IOERR_DATA


class CheckedVFS(apsw.VFS):
    """A file system that stamps and checks the pages of databases.

    Parameters
    ----------
    base : the file system under it; "" for the default.
    """

    def __init__(self, base: str = "") -> None:
        self.name, self.base = f"linmax-{next(_names)}", base
        self.main: _CheckedFile | None = None  # the database's file, once it is open
        super().__init__(self.name, base)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        """Open a file; only databases have stamped pages."""
        if not flags[0] & apsw.SQLITE_OPEN_MAIN_DB:
            return apsw.VFSFile(self.base, name, flags)
        opened = _CheckedFile(self.base, name, flags)
        self.main = self.main or opened
        return opened

    def damaged(self) -> Iterator[int]:
        """Read the whole database, and yield the numbers of damaged pages; nothing may be left in its WAL."""
        assert self.main is not None
        for offset in range(0, self.main.xFileSize(), PAGE):
            try:
                self.main.xRead(PAGE, offset)
            except DamagedPage:
                if apsw.VFSFile.xRead(self.main, PAGE, offset) != ALL_ZERO:  # unused, and never written
                    yield offset // PAGE + 1


class _CheckedFile(apsw.VFSFile):
    def xRead(self, amount: int, offset: int) -> bytes:
        data = super().xRead(amount, offset)
        if amount >= SMALLEST_PAGE:
            for place in range(0, len(data), PAGE):  # none beyond the end, where SQLite finds an empty page
                page = data[place : place + PAGE] if amount > PAGE else data
                if len(page) != PAGE or page[-STAMP:] != _stamp(page, offset + place):
                    raise DamagedPage(f"page {(offset + place) // PAGE + 1} is damaged")
        return data

    def xWrite(self, data: bytes, offset: int) -> None:
        if len(data) == PAGE:
            data = data[:-STAMP] + _stamp(data, offset)
        super().xWrite(data, offset)


def _stamp(page: bytes, offset: int) -> bytes:
    return zlib.crc32(memoryview(page)[:-STAMP], offset // PAGE + 1).to_bytes(STAMP, "little")


def connect(path: Path, vfs: CheckedVFS) -> apsw.Connection:
    """Open a database whose pages are stamped; a new one gets room for that."""
    database = apsw.Connection(str(path), vfs=vfs.name)
    room = ctypes.c_int(STAMP)
    database.file_control("main", apsw.SQLITE_FCNTL_RESERVE_BYTES, ctypes.addressof(room))
    return database
