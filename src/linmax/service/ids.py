"""Ids that the service issues: time-ordered, so that the index over them grows at its end."""

from __future__ import annotations

import secrets
import time

__all__ = ["Ids"]


class Ids:
    """UUIDs of version 7 (RFC 9562), each greater than the one before even when the clock is set back.

    Parameters
    ----------
    last : milliseconds that must not be gone below, from the last run.

    Examples
    --------
    >>> ids = Ids()
    >>> first, second = ids.new(), ids.new()
    >>> first < second, len(first), first[14]
    (True, 36, '7')
    """

    def __init__(self, last: int = 0) -> None:
        self._last, self._count = last, 0

    def new(self) -> str:
        """The next id: 48 bits of time, 12 that count within a millisecond, 62 random ones."""
        now = time.time_ns() // 1_000_000
        if now > self._last:
            self._last, self._count = now, 0
        else:
            self._count += 1
            if self._count == 4096:
                self._last, self._count = self._last + 1, 0
        bits = self._last << 80 | 0x7 << 76 | self._count << 64 | 0b10 << 62 | secrets.randbits(62)
        text = f"{bits:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
