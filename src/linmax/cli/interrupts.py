"""Ctrl-C between batches."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any

__all__ = ["unbroken"]


@contextlib.contextmanager
def unbroken() -> Iterator[Any]:
    """Delay Ctrl-C until the batch is done, so that a complete state is saved; a second Ctrl-C stops at once."""
    waiting = {"held": False, "asked": False}

    def on_interrupt(*_: Any) -> None:
        if not waiting["held"] or waiting["asked"]:
            raise KeyboardInterrupt
        waiting["asked"] = True

    @contextlib.contextmanager
    def held() -> Iterator[None]:
        waiting["held"] = True
        try:
            yield
        finally:
            waiting["held"] = False
        if waiting["asked"]:
            raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGINT, on_interrupt)
    except ValueError:  # not in the main thread, which alone gets Ctrl-C
        yield held
        return
    try:
        yield held
    finally:
        signal.signal(signal.SIGINT, before)
