"""How far events have been acknowledged, noted beside the log, so that a log that has lost its end is found out.

SQLite ends a WAL at the first damaged frame, without a word. The file ``acknowledged`` has the log's identity and the
last sequence number that was committed. It is written after each commit and not flushed: after a crash of the process
it is exact, after a loss of power it may be behind, and it is never ahead of what was stored.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

__all__ = ["Mark", "wal_damage"]

WAL_HEADER, FRAME_HEADER = 32, 24
MOST_WAL = 512 * 2**20  # a longer one is not looked at


class Mark:
    """The last acknowledged sequence number of a log, in a file.

    Examples
    --------
    >>> import tempfile
    >>> mark = Mark(Path(tempfile.mkdtemp()) / "acknowledged")
    >>> mark.read() is None
    True
    >>> mark.write("log", 17)
    >>> mark.read()
    ('log', 17)
    >>> mark.close()
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def read(self) -> tuple[str, int] | None:
        """Identity and sequence number; None if there is none, or if it is damaged."""
        identity, _, rest = os.pread(self._handle, 200, 0).decode("latin-1").partition(" ")
        seq, _, check = rest.rstrip("\n").partition(" ")
        text = f"{identity} {seq}"
        if not seq.isdigit() or check != f"{zlib.crc32(text.encode('latin-1')):08x}":
            return None
        return identity, int(seq)

    def write(self, identity: str, seq: int) -> None:
        """Note that everything up to this number is stored."""
        text = f"{identity} {seq:020d}"
        os.pwrite(self._handle, f"{text} {zlib.crc32(text.encode()):08x}\n".encode(), 0)

    def close(self) -> None:
        """Flush and close."""
        os.fsync(self._handle)
        os.close(self._handle)


def wal_damage(content: bytes) -> str | None:
    """Where a WAL breaks off although more of it follows, in words; None if nothing of it follows."""
    if len(content) < WAL_HEADER + FRAME_HEADER:
        return None
    magic, _, size, _, salt1, salt2, sum1, sum2 = struct.unpack(">8I", content[:WAL_HEADER])
    order = ">" if magic & 1 else "<"
    sums = _checksum(content[:24], (0, 0), order)
    if magic & ~1 != 0x377F0682 or sums != (sum1, sum2):
        return "the WAL is damaged at byte 0, in its header"
    step = FRAME_HEADER + size
    frames = (len(content) - WAL_HEADER) // step
    for frame in range(frames):
        at = WAL_HEADER + frame * step
        _, _, own1, own2, sum1, sum2 = struct.unpack(">6I", content[at : at + FRAME_HEADER])
        if (own1, own2) != (salt1, salt2):
            return None  # left from an earlier round: the WAL ends here
        sums = _checksum(content[at : at + 8] + content[at + FRAME_HEADER : at + step], sums, order)
        if sums != (sum1, sum2):
            return f"the WAL is damaged at byte {at}, in frame {frame + 1} of {frames}"
    return None


def _checksum(data: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    first, second = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second
