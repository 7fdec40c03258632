"""Announce compilation: a first use may compile for seconds, and its user should know why.

After `DELAY` seconds of compiling, one line appears on a terminal or in a notebook, and `logging`
(logger "linmax", level INFO) gets it everywhere. ``LINMAX_QUIET=1`` silences the terminal. The command line replaces
the line by a spinner that names the kernels (`spinning`).
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["DELAY", "announced", "spinning"]

DELAY = 1.0  # seconds of compilation before it is announced
LOG = logging.getLogger("linmax")

_seconds: dict[str, float] = {}  # compilation so far, by what it is for; -1 once it is announced
_depth = 0  # compiling a kernel compiles those that it calls
_spins = False  # whether a command runs, which shows a spinner
_status: Any = None  # the spinner, made at the first compilation


def _purpose() -> str:
    """Return the learner of the innermost caller that has one (an engine, a model), or an empty text.

    Looking at the callers costs nothing until a kernel is compiled, and names the right learner in every thread.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        if type(caller).__module__.startswith("linmax.") and (learner := getattr(caller, "learner", None)) is not None:
            return str(learner)
        frame = frame.f_back
    return ""


def _visible() -> bool:
    """Return whether a person looks at standard error: a terminal or a notebook, unless ``LINMAX_QUIET=1``."""
    if sys.stderr is None or os.environ.get("LINMAX_QUIET") == "1":
        return False
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def _announce(purpose: str) -> None:
    _seconds[purpose] = -1.0
    message = f"compiling kernels{f' for {purpose}' if purpose else ''} (first use only) ..."
    LOG.info(message)
    if not _spins and _visible():
        print(f"linmax: {message}", file=sys.stderr, flush=True)


@contextmanager
def announced(kernel: str) -> Iterator[None]:
    """Announce the compilation inside this context once it has taken `DELAY` seconds; hold the compiler's lock."""
    global _depth, _status
    if _depth:
        yield
        return
    purpose = _purpose()
    before, start = _seconds.get(purpose, 0.0), time.monotonic()
    timer = threading.Timer(max(0.0, DELAY - before), _announce, (purpose,))
    timer.daemon = True
    if before >= 0:
        timer.start()
    if _spins and _visible():
        if _status is None:
            from rich.console import Console

            _status = Console(stderr=True).status("")
        _status.update(f"compiling {kernel}{f' for {purpose}' if purpose else ''} (first use only)")
        _status.start()
    _depth = 1
    try:
        yield
    finally:
        _depth = 0
        timer.cancel()
        if _status is not None:
            _status.stop()
        if _seconds.get(purpose, 0.0) >= 0:
            _seconds[purpose] = before + time.monotonic() - start


@contextmanager
def spinning() -> Iterator[None]:
    """Show a spinner on standard error while kernels compile, if a person looks at it."""
    global _spins, _status
    _spins = True
    try:
        yield
    finally:
        _spins, _status = False, None
