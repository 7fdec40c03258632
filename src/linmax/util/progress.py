"""A progress bar for work that is mostly quick."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["LateProgress"]


class LateProgress:
    """A progress bar on a terminal, once the work has taken more than a few seconds."""

    SECONDS = 3.0

    def __init__(self, title: str) -> None:
        self.title, self.begun = title, time.monotonic()
        self.bar: Progress | None = None  # rich is imported only when a bar is shown
        self.task: TaskID | None = None

    def __enter__(self) -> LateProgress:
        return self

    def update(self, doing: str, share: float | None = None) -> None:
        if self.bar is None:
            if time.monotonic() - self.begun < self.SECONDS or not sys.stderr.isatty():
                return
            self._open()
        assert self.bar is not None
        assert self.task is not None
        self.bar.update(self.task, description=doing, completed=share, total=None if share is None else 1.0)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self.bar = Progress(console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task(self.title, total=None)
        self.bar.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()
