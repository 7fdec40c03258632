"""Read batches in another thread while earlier ones are processed."""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Generator
from typing import Any

from linmax.io.batches import Batch

__all__ = ["ahead"]


def ahead(batches: Generator[Batch, None, None], many: int = 2) -> Generator[Batch, None, None]:
    """The same batches, read ahead by another thread, which starts now."""
    waiting: queue.Queue[Any] = queue.Queue(many)
    stop = threading.Event()

    def put(item: Any) -> bool:
        while not stop.is_set():
            try:
                waiting.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            for batch in batches:
                if not put((batch, None)):
                    return
            put((None, None))
        except BaseException as error:
            put((None, error))
        finally:
            batches.close()

    def take() -> Generator[Batch, None, None]:
        try:
            while True:
                batch, error = waiting.get()
                if error is not None:
                    raise error
                if batch is None:
                    return
                yield batch
        finally:
            stop.set()

    taken = take()
    weakref.finalize(taken, stop.set)  # even if no batch was taken
    threading.Thread(target=work, name="linmax-reader", daemon=True).start()
    return taken
