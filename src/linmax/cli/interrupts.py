"""Ctrl-C and requests to end, between batches: what was learned is saved before the process goes."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

__all__ = ["Terminated", "unbroken"]

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # those that the system has


class Terminated(KeyboardInterrupt):
    """The process was asked to end by a signal other than Ctrl-C, whose number is ``signal``."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


@contextlib.contextmanager
def unbroken() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Turn signals into exceptions; within ``held()`` the first one waits until the work there is complete.

    So a complete state is saved. A second signal stops at once.
    """
    waiting = 0  # blocks within which nothing interrupts
    asked: KeyboardInterrupt | None = None

    def on_signal(number: int, _: object) -> None:
        nonlocal asked
        error = KeyboardInterrupt() if number == signal.SIGINT else Terminated(number)
        if not waiting or asked is not None:
            raise error
        asked = error

    @contextlib.contextmanager
    def held() -> Iterator[None]:
        nonlocal asked, waiting
        waiting += 1
        try:
            yield
        finally:
            waiting -= 1
        if asked is not None and not waiting:
            error, asked = asked, None
            raise error

    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    before = {}
    try:
        for number in numbers:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
                before[number] = signal.signal(number, on_signal)
    except ValueError:  # not in the main thread, which alone gets signals
        yield held
        return
    try:
        yield held
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
