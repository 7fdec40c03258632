"""Compile part of what a first run needs in a second process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["compiling_beside"]


@contextmanager
def compiling_beside(script: str) -> Iterator[bool]:
    """Run a script in another process if the loop over trials is not in the cache yet; yields whether it is."""
    from linmax.engine import loop
    from linmax.jit import compiling

    first = compiling.JIT and not any(Path(compiling.cache_folder(loop.__file__)).rglob("*.nbc"))
    if not first:
        yield False
        return
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        yield True
