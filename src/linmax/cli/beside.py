"""A first run compiles; a part of it can be compiled in a second process meanwhile."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["compiling_beside"]


@contextmanager
def compiling_beside(script: str) -> Iterator[bool]:
    """Run a script in another process where the loop over trials is not in the cache yet; tells whether it is so."""
    from linmax.engine import loop
    from linmax.jit import compiling

    first = compiling.JIT and not any(Path(compiling.cache_folder(loop.__file__)).rglob("*.nbc"))
    if not first:
        yield False
        return
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        yield True
